//! The rank of this process as BLACS sees it: its grids, and what is printed.
//!
//! Sends of BLACS return whether or not their receives are posted, for any size and number of messages. So the send
//! buffer of the rank has no bound here: a message that waits longer than [`BUFFERED_AFTER`] is copied into it.

use crate::grid::Grid;
use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tasuki::bindings::Context;
use tasuki::message::set_send_buffer;
use tasuki::onesided::LocalArray;
use tasuki::{Error, Job, Rank};
use tasuki_c::handles::{Handles, Last};
use tasuki_c::process_rank;

/// How long a send waits for its receive before its message is copied. Waking a receiver that is about to post takes a
/// few microseconds.
const BUFFERED_AFTER: Duration = Duration::from_micros(10);
/// Bytes of the send buffer: more than any machine has.
const BUFFERED_BYTES: u64 = 1 << 60;
/// Grids of which this rank is the first process at a time.
pub(crate) const CREATED_MAX: usize = 1 << 10;
/// The slots of a grid's message context.
pub(crate) const SLOTS: u32 = 16;
/// In the number of a message context: it belongs to BLACS. Communicators count their contexts from 0.
const OF_BLACS: u64 = 1 << 39;

/// What BLACS has on this rank.
pub struct Library {
    /// The job of this process.
    pub job: &'static Job,
    /// For the messages by which grids are made.
    pub(crate) creation: Context,
    /// For each grid of which this rank is the first process: how many processes have left it.
    pub(crate) exits: LocalArray<u64>,
    /// For these grids: the number of their processes. 0: the entry is free.
    pub(crate) created: Mutex<Vec<u64>>,
    /// How many grids of which it is the first process this rank has not left.
    pub(crate) live: AtomicUsize,
    /// The message contexts of grids, by the first process and its number for the grid. They are used again.
    contexts: Mutex<HashMap<(Rank, u64), Arc<Context>>>,
    /// For each number of a grid: the ranks of the last grid that had it, in the order of the grid.
    pub(crate) system_handles: Mutex<Vec<Arc<[Rank]>>>,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

/// The grids of this rank.
pub(crate) static GRIDS: Handles<Grid> = Handles::new();

thread_local! {
    pub(crate) static LAST: Last<Grid> = const { Last::new(None) };
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the library. Joins the job at the first call.
pub fn library() -> &'static Library {
    if let Some(library) = LIBRARY.get() {
        return library;
    }
    let _starting = lock(&STARTING);
    LIBRARY.get_or_init(|| match start() {
        Ok(library) => library,
        Err(text) => fail(-1, text),
    })
}

fn start() -> Result<Library, String> {
    let job = process_rank::start().map_err(|failure| failure.to_string())?;
    let begun = || {
        set_send_buffer(job, BUFFERED_BYTES, Some(BUFFERED_AFTER))?;
        let creation = tasuki::bindings::messages(job.world()).another(OF_BLACS, SLOTS, None);
        Ok(Library {
            job,
            creation,
            exits: job.alloc_local(CREATED_MAX)?,
            created: Mutex::new(vec![0; CREATED_MAX]),
            live: AtomicUsize::new(0),
            contexts: Mutex::default(),
            system_handles: Mutex::default(),
        })
    };
    begun().map_err(|error: Error| error.to_string())
}

impl Library {
    /// Returns the message context of a grid: that of the first process with its number for the grid.
    pub(crate) fn context(&self, first: Rank, number: u64) -> Arc<Context> {
        let mut contexts = lock(&self.contexts);
        let made = contexts.entry((first, number)).or_insert_with(|| {
            let number = (first.0 as u64) << 40 | OF_BLACS | (number + 1);
            Arc::new(tasuki::bindings::messages(self.job.world()).another(number, SLOTS, None))
        });
        made.clone()
    }
}

/// Prints what BLACS prints in front of errors and warnings, and the text.
fn say(what: &str, context: c_int, text: impl Display) {
    let number = process_rank::job().map_or(-1, |job| job.rank().0 as c_int);
    let grid = GRIDS.get(context);
    let (row, column) = grid.map_or((-1, -1), |grid| (grid.me.0 as c_int, grid.me.1 as c_int));
    let line =
        format!("BLACS {what} '{text}'\nfrom {{{row},{column}}}, pnum={number}, Contxt={context}.\n\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// A warning. The program goes on.
pub(crate) fn warn(context: c_int, text: impl Display) {
    say("WARNING", context, text);
}

/// An error. It ends the job.
#[cold]
pub(crate) fn fail(context: c_int, text: impl Display) -> ! {
    say("ERROR", context, text);
    tasuki::bindings::end_process(1)
}

/// Returns the value, or ends the job with the error of the library.
#[inline]
pub(crate) fn or_fail<T>(context: c_int, outcome: Result<T, Error>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => fail(context, error),
    }
}

/// Runs `call` with a grid. Ends the job if there is none of that number.
#[inline(always)]
pub(crate) fn with_grid<R>(context: c_int, call: impl FnOnce(&Grid) -> R) -> R {
    GRIDS.with(&LAST, context, |grid| match grid {
        Some(grid) => call(grid),
        None => fail(context, "Invalid context handle"),
    })
}
