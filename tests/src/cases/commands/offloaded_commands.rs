//! B3, D18: commands that are run by a rank other than the owner of their queue.

use crate::cases::command_queues::post;
use crate::exchange::effort;
use crate::pattern;
use crate::wait_until::Idle;
use tasuki::engine::Cause;
use tasuki::onesided::AtomicOp;
use tasuki::{Command, GlobalPtr, Job, Rank, Result, Signal};

/// The rank that ran a failed command, taken from the error of its signal.
fn ran_by(failed: Result<()>) -> Rank {
    let failed = failed.expect_err("the signal is poisoned");
    let Cause::Poisoned { origin, ref cause } = *failed.cause() else { panic!("{failed}") };
    assert!(matches!(**cause, Cause::OutOfRange { .. } | Cause::Stale { .. }), "{failed}");
    origin
}

/// D18: commands that only one rank may run are run by that rank, whichever queue they are in; the
/// error of a failed one names the rank. Their effects happen at the owner of the queue, and other
/// commands continue.
pub fn d18_commands_bound_to_a_rank_run_there(job: &Job) -> Result<()> {
    let data = job.alloc::<u64>(8)?;
    let (me, from, to) = (job.rank(), job.rank_after(1), job.rank_after(2));
    let signals = (0..5).map(|_| job.signal()).collect::<Result<Vec<Signal<'_>>>>()?;
    let done = job.signal()?;
    let queue = if me.0.is_multiple_of(2) { Some(job.queue(16)?) } else { None };
    data.fill(me.0 as u64 + 1)?;
    job.barrier()?;
    if let Some(queue) = &queue {
        let outside = |rank: Rank| data.on(rank).at(1 << 30);
        let wrong = [
            (Command::copy(data.on(from), outside(to), 1).by_source(), from),
            (Command::copy(outside(from), data.on(to), 1).by_destination(), to),
            (Command::put(outside(to), &[7_u64]).by_destination(), to),
            (Command::atomic(outside(from), AtomicOp::Add(1)).by_source(), from),
            (Command::fetch_atomic(outside(to), AtomicOp::Add(1), data.on(me)).by_destination(), to),
        ];
        for ((command, _), signal) in wrong.iter().zip(&signals) {
            let good = Command::copy(data.on(from), data.on(to).at(1 + me.index()), 1);
            queue.post(command.clone().then(signal.on(me).add(1)))?;
            queue.post(good.by_source().then(done.on(me).add(1)))?;
        }
        for ((command, runner), signal) in wrong.iter().zip(&signals) {
            assert_eq!(ran_by(signal.wait_at_least(1)), *runner, "{command:?}");
        }
        done.wait_at_least(wrong.len() as u64)?;
        assert_eq!(queue.stats().failed, wrong.len() as u64);
    }
    job.barrier()?;
    let owner = job.rank_after(-2);
    if owner.0.is_multiple_of(2) {
        let source = job.rank_after(-1);
        assert_eq!(data.get(1 + owner.index())?, source.0 as u64 + 1);
    }
    job.barrier()
}

/// B3: copies of every size between two other ranks, bound to one of them and not bound. Each is
/// complete when its effect is visible, and changes nothing else. Effects keep their order,
/// although short copies overtake long ones.
pub fn b3_sizes_between_two_others(job: &Job) -> Result<()> {
    const GAP: usize = 16;
    const GUARD: u8 = 0xee;
    let lengths = [70_001, 0, 1, 8, 9_000, 48, 8_192, 1_000, 8_193, 7];
    let starts: Vec<usize> =
        lengths.iter().scan(0, |at, len| Some(std::mem::replace(at, *at + len + GAP))).collect();
    let all = starts[lengths.len() - 1] + lengths[lengths.len() - 1] + GAP;
    let (source, target) = (job.alloc::<u8>(all)?, job.alloc::<u8>(all)?);
    let (arrived, me, from, to) = (job.signal()?, job.rank(), job.rank_after(1), job.rank_after(2));
    let (queue, idle) = (job.queue(8)?, Idle::new(job)?);
    let seed = |rank: Rank, round: u64, at: usize| rank.0 as u64 * 1_000 + round * 100 + at as u64;
    for round in 0..effort(job, 20, 3) as u64 {
        target.fill(GUARD)?;
        for (at, (&start, &len)) in starts.iter().zip(&lengths).enumerate() {
            source.write(start, &pattern::bytes(seed(me, round, at), len))?;
        }
        job.barrier()?;
        for (&start, &len) in starts.iter().zip(&lengths) {
            let copy = Command::copy(source.on(from).at(start), target.on(to).at(start), len);
            let copy = match round % 3 {
                0 => copy,
                1 => copy.by_source(),
                _ => copy.by_destination(),
            };
            post(&queue, &idle, &copy.then(arrived.on(to).add(1)))?;
        }
        // The queue belongs to the rank two before this one, and the source to the rank before.
        let before = job.rank_after(-1);
        for (at, (&start, &len)) in starts.iter().zip(&lengths).enumerate() {
            arrived.wait_at_least(round * lengths.len() as u64 + at as u64 + 1)?;
            let mut bytes = vec![0; len + GAP];
            target.read(start, &mut bytes)?;
            pattern::check(&bytes[..len], seed(before, round, at), &format!("{len} bytes in round {round}"));
            assert!(
                bytes[len..].iter().all(|&byte| byte == GUARD),
                "bytes behind {len} bytes were changed, round {round}"
            );
        }
        job.barrier()?;
    }
    Ok(())
}

/// D18: all other ranks post more commands for one rank, in several queues, than fit into its
/// inbox. Each is run once.
pub fn d18_more_than_an_inbox_has_places(job: &Job) -> Result<()> {
    const QUEUES: usize = 3;
    const EACH: usize = 64;
    let (words, done, me) = (job.alloc::<u64>(2)?, job.signal()?, job.rank());
    let queues = (0..QUEUES).map(|_| job.queue(EACH)).collect::<Result<Vec<_>>>()?;
    let idle = Idle::new(job)?;
    let host = Rank(0);
    let word: GlobalPtr<u64> = words.on(host);
    let rounds = effort(job, 20, 1) as u64;
    for round in 1..=rounds {
        if me != host {
            for at in 0..EACH * QUEUES {
                let add = Command::atomic(word.at(at % 2), AtomicOp::Add(1)).by_destination();
                post(&queues[at % QUEUES], &idle, &add.then(done.on(me).add(1)))?;
            }
            done.wait_at_least(round * (EACH * QUEUES) as u64)?;
        }
        job.barrier()?;
        if me == host {
            let each = round * (EACH * QUEUES / 2 * (job.size() - 1)) as u64;
            assert_eq!(words.to_vec()?, [each, each], "round {round}");
        }
        job.barrier()?;
    }
    Ok(())
}
