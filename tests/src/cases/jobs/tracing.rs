//! Marks and spans of a program around transfers, with and without a trace. A trace shows these
//! transfers as arrows.

use crate::exchange::{next, previous};
use tasuki::onesided::After;
use tasuki::{Job, Rank, Result};

/// D: puts, gets, and copies between two other ranks work when the program records marks and spans around them.
pub fn transfers_between_marks(job: &Job) -> Result<()> {
    let (to, from, me) = (next(job), previous(job), job.rank());
    let board = job.alloc::<u64>(4)?;
    let arrived = job.signal()?;
    let of = |rank: Rank, step: u64| 100 * rank.0 as u64 + step;
    job.mark("input is read");
    for step in 0..10 {
        let _step = job.span("step");
        board.set(0, of(me, step))?;
        job.put(board.on(to).at(1), &[of(me, step)])?;
        job.put_signal(board.on(to).at(2), &[of(me, step)], arrived.on(to), 1)?;
        arrived.wait_at_least(step + 1)?;
        assert_eq!(board.get(2)?, of(from, step));
        job.barrier()?;
        assert_eq!(board.get(1)?, of(from, step));
        let mut got = [0];
        job.get(board.on(to), &mut got)?;
        assert_eq!(got, [of(to, step)]);
        let copied = job.copy(board.on(to), board.on(from).at(3), 1, After::Nothing)?.handle();
        job.complete(copied)?;
        job.barrier()?;
        // The next rank has copied the value of the rank after it to this rank.
        assert_eq!(board.get(3)?, of(Rank((to.0 + 1) % job.size()), step));
    }
    job.barrier()?;
    job.mark("end of the program");
    Ok(())
}
