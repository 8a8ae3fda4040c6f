//! Starter memory, registrations, and addresses.
//!
//! Unsafe: the functions are symbols of C; memory of C is registered, and its owner vouches for it.
#![allow(unsafe_code)]

use super::state::state;
use crate::status::Failure;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki::GlobalPtr;
use tasuki::onesided::{GlobalAddress, RawRegistration};

/// Shared memory has one path between two ranks.
const COLORS: c_int = 1;

/// The last key, and the registrations of this rank by their keys.
static REGISTRATIONS: Mutex<(u64, BTreeMap<u64, RawRegistration>)> = Mutex::new((0, BTreeMap::new()));

fn registrations() -> MutexGuard<'static, (u64, BTreeMap<u64, RawRegistration>)> {
    REGISTRATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all registrations.
pub(super) fn end_all() {
    registrations().1.clear();
}

fn no_registration(key: u64) -> Failure {
    Failure::misuse(format!("there is no registration with key {key}"))
}

/// Returns the place of an address.
pub(super) fn place(ga: u64) -> GlobalPtr<u8> {
    GlobalPtr::new(GlobalAddress::from_bits(ga))
}

calls! {
    /// The address of a rank's starter memory.
    acp_query_starter_ga(rank: c_int) -> u64, 0; {
        let state = state()?;
        Ok(state.starter.on(state.rank_of(rank)?).address().bits())
    }

    /// Makes memory of this rank accessible to all.
    acp_register_memory(addr: *mut c_void, size: usize, color: c_int) -> u64, 0; {
        let state = state()?;
        if !(0..COLORS).contains(&color) {
            return Err(Failure::misuse(format!("color {color} does not exist: 0 to {}", COLORS - 1)));
        }
        if addr.is_null() || size == 0 {
            return Err(Failure::misuse(format!("there is no memory of {size} bytes at {addr:p}")));
        }
        // SAFETY: the caller keeps the memory until it ends the registration, or the rank leaves.
        let registration = unsafe { state.job.register_raw(addr.cast(), size)? };
        let (last, all) = &mut *registrations();
        *last += 1;
        all.insert(*last, registration);
        Ok(*last)
    }

    /// Ends a registration.
    acp_unregister_memory(key: u64) -> c_int, -1; {
        state()?;
        let ended = registrations().1.remove(&key);
        ended.map(|_| 0).ok_or_else(|| no_registration(key)) // dropped without the lock: it waits for accesses
    }

    /// The address of a byte of a registration.
    acp_query_ga(key: u64, addr: *mut c_void) -> u64, 0; {
        state()?;
        let all = registrations();
        Ok(all.1.get(&key).ok_or_else(|| no_registration(key))?.address_of(addr.cast())?.bits())
    }

    /// The byte of an address of this rank.
    acp_query_address(ga: u64) -> *mut c_void, std::ptr::null_mut(); {
        let (job, ga) = (state()?.job, GlobalAddress::from_bits(ga));
        if ga.is_null() || ga.rank() != job.rank() {
            return Err(Failure::misuse(format!("{ga} is no address of this rank")));
        }
        Ok(tasuki::bindings::own_byte(job, ga)?.cast())
    }

    /// The rank of an address.
    acp_query_rank(ga: u64) -> c_int, -1; {
        let (state, ga) = (state()?, GlobalAddress::from_bits(ga));
        if ga.is_null() || ga.rank().index() >= state.job.size() {
            return Err(Failure::misuse(format!("{ga} is no address of a rank")));
        }
        Ok(state.number_of(ga.rank()))
    }

    /// The color of an address.
    acp_query_color(ga: u64) -> c_int, -1; {
        let _state = state()?;
        if ga == 0 {
            return Err(Failure::misuse("the null address has no color"));
        }
        Ok(0)
    }

    /// The number of colors.
    acp_colors() -> c_int, -1; {
        state().map(|_| COLORS)
    }
}
