//! The table of communicators.
//!
//! A call finds its communicator in a copy that its thread keeps: one load tells whether the table has changed since, so
//! no lock is taken on the way of a message.
//!
//! Unsafe: results go through pointers of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::arguments::result;
use super::messages::Pending;
use crate::process_rank;
use crate::status::Failure;
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The communicators by their numbers. Empty before `fmpl_init` and after `fmpl_finalize`.
static TABLE: Mutex<Vec<Option<Arc<Group>>>> = Mutex::new(Vec::new());
/// Counts the changes of the table.
static CHANGES: AtomicU64 = AtomicU64::new(1);

fn table() -> MutexGuard<'static, Vec<Option<Arc<Group>>>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn change(number: usize, group: Option<Arc<Group>>) -> Option<Arc<Group>> {
    let mut table = table();
    if table.len() <= number {
        table.resize(number + 1, None);
    }
    let before = std::mem::replace(&mut table[number], group);
    CHANGES.fetch_add(1, Ordering::Release);
    before
}

thread_local! {
    /// The communicator that this thread has used last, its number, and the changes before that.
    static LAST: RefCell<Option<(u64, c_int, Arc<Group>)>> = const { RefCell::new(None) };
}

/// Runs `call` with a communicator.
#[inline(always)]
pub(super) fn with<R>(
    comm: c_int,
    call: impl FnOnce(&Arc<Group>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    LAST.with_borrow_mut(|last| match last {
        Some((changes, number, group)) if *number == comm && *changes == CHANGES.load(Ordering::Acquire) => {
            call(group)
        }
        _ => call(&last.insert(found(comm)?).2),
    })
}

#[cold]
fn found(comm: c_int) -> Result<(u64, c_int, Arc<Group>), Failure> {
    let table = table();
    if table.is_empty() {
        return Err(Failure::not_running("fmpl_init was not called, or fmpl_finalize was"));
    }
    let group = usize::try_from(comm).ok().and_then(|number| table.get(number)?.clone());
    let group = group.ok_or_else(|| Failure::misuse(format!("comm is {comm}, which is no communicator")))?;
    Ok((CHANGES.load(Ordering::Acquire), comm, group))
}

pub(super) fn is_running() -> bool {
    !table().is_empty()
}

pub(super) fn job() -> Result<&'static Job, Failure> {
    let job = process_rank::job().filter(|_| is_running());
    job.ok_or_else(|| Failure::not_running("fmpl_init was not called, or fmpl_finalize was"))
}

/// Makes the table.
pub(super) fn begin(job: &Job, slots: c_int) -> Result<(), Failure> {
    let world = job.world();
    // The messages of FMPL are apart from those of the other interfaces.
    let split = tasuki::collective::Split::colour(0).slots(slots as usize);
    change(0, Some(Group::new(world.split(split)?, slots)));
    Ok(())
}

/// Empties the table.
pub(super) fn end() -> Result<(), Failure> {
    let groups = std::mem::take(&mut *table());
    CHANGES.fetch_add(1, Ordering::Release);
    LAST.with_borrow_mut(|last| *last = None);
    if groups.is_empty() {
        return Err(Failure::not_running("fmpl_init was not called, or fmpl_finalize was"));
    }
    Ok(())
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
            Some(group) => {
                let free = table().iter().position(Option::is_none);
                let number = free.unwrap_or_else(|| table().len());
                change(number, Some(group));
                number as c_int
            }
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
        LAST.with_borrow_mut(|last| *last = None);
        drop(change(*comm as usize, None));
        *comm = FMPL_COMM_NULL;
        Ok(())
    }
}
