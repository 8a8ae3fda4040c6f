//! The rank whose program a thread runs.

use crate::{Error, Rank};
use std::cell::Cell;

thread_local! {
    /// The rank whose program this thread runs, whether other ranks share its process or not.
    static PROGRAM_OF: Cell<Option<Rank>> = const { Cell::new(None) };
}

/// Names the rank whose program this thread runs in the error of a function that knows no job. A thread that the program
/// has started runs none.
pub(crate) fn on_own_rank(error: Error) -> Error {
    match PROGRAM_OF.get() {
        Some(rank) => error.on_rank(rank),
        None => error,
    }
}

/// Runs the program of a rank. It may begin a job in this thread, one of whose ranks then runs its program here.
pub(crate) fn as_program<T>(rank: Rank, program: impl FnOnce() -> T) -> T {
    struct ResetOnDrop(Option<Rank>);
    impl Drop for ResetOnDrop {
        fn drop(&mut self) {
            PROGRAM_OF.set(self.0);
        }
    }
    let _before = ResetOnDrop(PROGRAM_OF.replace(Some(rank)));
    program()
}
