//! The table of communicators.
//!
//! Unsafe: results go through pointers of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::arguments::result;
use super::messages::Pending;
use crate::handles::{Handles, Last};
use crate::process_rank;
use crate::status::Failure;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki::bindings::Context;
use tasuki::{Communicator, Job};

/// The communicator of all ranks.
pub const FMPL_COMM_WORLD: c_int = 0;
/// No communicator.
pub const FMPL_COMM_NULL: c_int = -1;

/// A communicator of the program.
pub(super) struct Group {
    pub(super) communicator: Communicator,
    pub(super) context: Arc<Context>,
    /// The number of slots of each pair.
    pub(super) slots: c_int,
    /// What was begun and not waited for.
    pub(super) pending: Mutex<Pending>,
}

impl Group {
    fn new(communicator: Communicator, slots: c_int) -> Arc<Group> {
        let context = tasuki::bindings::messages(&communicator).clone();
        Arc::new(Group { communicator, context, slots, pending: Mutex::default() })
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// None before `fmpl_init` and after `fmpl_finalize`.
static GROUPS: Handles<Group> = Handles::new();

thread_local! {
    static LAST: Last<Group> = const { Last::new(None) };
}

/// Runs `call` with a communicator.
#[inline(always)]
pub(super) fn with<R>(
    comm: c_int,
    call: impl FnOnce(&Arc<Group>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    GROUPS.with(&LAST, comm, |group| match group {
        Some(group) => call(group),
        None => Err(no_such_communicator(comm)),
    })
}

#[cold]
fn no_such_communicator(comm: c_int) -> Failure {
    match is_running() {
        true => Failure::misuse(format!("comm is {comm}, which is no communicator")),
        false => not_running(),
    }
}

fn not_running() -> Failure {
    Failure::not_running("fmpl_init was not called, or fmpl_finalize was")
}

pub(super) fn is_running() -> bool {
    !GROUPS.are_none()
}

pub(super) fn job() -> Result<&'static Job, Failure> {
    process_rank::job().filter(|_| is_running()).ok_or_else(not_running)
}

/// Makes the communicator of all ranks.
pub(super) fn begin(job: &Job, slots: c_int) -> Result<(), Failure> {
    // The messages of FMPL are apart from those of the other interfaces.
    let split = tasuki::collective::Split::colour(0).slots(slots as usize);
    GROUPS.add(Group::new(job.world().split(split)?, slots));
    Ok(())
}

/// Drops all communicators.
pub(super) fn end() -> Result<(), Failure> {
    if GROUPS.remove_all(&LAST).is_empty() { Err(not_running()) } else { Ok(()) }
}

calls! {
    /// Makes a communicator of the ranks that pass a `key` other than 0, in their order. All ranks call it; the others
    /// get [`FMPL_COMM_NULL`].
    fmpl_comm_create / fmpl_comm_create_(comm: at *mut c_int, key: in c_int) {
        // SAFETY: the caller promises it.
        let comm = unsafe { result(comm, "comm")? };
        let group = with(FMPL_COMM_WORLD, |world| {
            let part = tasuki::collective::Split::colour(0).slots(world.slots as usize);
            let made = world.communicator.split((key != 0).then_some(part))?;
            Ok(made.map(|made| Group::new(made, world.slots)))
        })?;
        *comm = match group {
            None => FMPL_COMM_NULL,
            Some(group) => GROUPS.add(group),
        };
        Ok(())
    }

    /// The number of this rank in a communicator.
    fmpl_comm_rank / fmpl_comm_rank_(comm: in c_int, rank: at *mut c_int) {
        // SAFETY: the caller promises it.
        let rank = unsafe { result(rank, "rank")? };
        *rank = with(comm, |group| Ok(group.communicator.rank().0 as c_int))?;
        Ok(())
    }

    /// The number of ranks of a communicator.
    fmpl_comm_size / fmpl_comm_size_(comm: in c_int, size: at *mut c_int) {
        // SAFETY: the caller promises it.
        let size = unsafe { result(size, "size")? };
        *size = with(comm, |group| Ok(group.communicator.size() as c_int))?;
        Ok(())
    }

    /// Frees a communicator, and sets `comm` to [`FMPL_COMM_NULL`]. What was begun on it must have been waited for.
    fmpl_comm_free / fmpl_comm_free_(comm: at *mut c_int) {
        // SAFETY: the caller promises it.
        let comm = unsafe { result(comm, "comm")? };
        if *comm == FMPL_COMM_WORLD {
            return Err(Failure::misuse("FMPL_COMM_WORLD is freed by fmpl_finalize"));
        }
        let begun = with(*comm, |group| Ok(group.pending().len()))?;
        if begun != 0 {
            let text = format!("{begun} messages of the communicator were begun and not waited for");
            return Err(Failure::misuse(text));
        }
        drop(GROUPS.remove(&LAST, *comm));
        *comm = FMPL_COMM_NULL;
        Ok(())
    }
}
