//! Broadcasts: the first member of a group gives bytes to all others. That rank executes the list of copies.
//!
//! Unsafe: the functions are symbols of C; groups and arrays are memory of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::collective::{Array, Data};
use super::collective_calls;
use super::collective_setup::{Kind, Memory};
use std::ffi::{c_int, c_void};

calls! {
    /// Creates a broadcast of one array.
    acp_create_bcast_direct(group: *const c_int, np_group: c_int, array: *mut c_void, arraysize: usize) -> usize, 0; {
        // SAFETY: the caller promises both.
        unsafe {
            collective_calls::create(Kind::Broadcast, (group, np_group), |state| Memory::direct(state, array, arraysize))
        }
    }

    /// Starts a broadcast of a part of its array.
    acp_send_bcast_direct(broadcast: usize, offset: usize, size: usize) -> u64, 0; {
        collective_calls::start(Kind::Broadcast, broadcast, Data::InArray { offset, bytes: size })
    }

    /// Frees a broadcast of one array.
    acp_free_bcast_direct(broadcast: usize) -> c_int, -1; {
        collective_calls::free(Kind::Broadcast, broadcast)
    }

    /// Creates a broadcast of any arrays.
    acp_create_bcast_buffered(group: *const c_int, np_group: c_int, buffersize: usize) -> usize, 0; {
        // SAFETY: the caller promises it.
        unsafe {
            collective_calls::create(Kind::Broadcast, (group, np_group), |state| Memory::buffered(state, buffersize))
        }
    }

    /// Starts a broadcast of an array.
    acp_send_bcast_buffered(broadcast: usize, array: *mut c_void, size: usize) -> u64, 0; {
        collective_calls::start(Kind::Broadcast, broadcast, Data::Staged { array: Array::new(array), bytes: size })
    }

    /// Frees a broadcast of any arrays.
    acp_free_bcast_buffered(broadcast: usize) -> c_int, -1; {
        collective_calls::free(Kind::Broadcast, broadcast)
    }
}
