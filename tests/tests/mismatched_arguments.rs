//! Members of a collective call that give different lengths. The call must end with an error that
//! says so, and no member may wait for ever, whatever algorithm the call takes.

use tasuki::engine::Cause;
use tasuki::{Job, Rank, Result, Sim, Sum};

/// A collective call of `first` words on rank 0 and of `other` on every other rank.
fn call(job: &Job, which: usize, first: usize, other: usize) -> Result<()> {
    let (world, count) = (job.world(), if job.rank() == 0 { first } else { other });
    match which {
        0 => world.bcast(&mut vec![0_u64; count], Rank(0)),
        1 => world.reduce(&vec![1_u64; count], Sum, Rank(0)).map(drop),
        2 => world.allreduce(&vec![1_u64; count], Sum).map(drop),
        3 => world.gather(&vec![1_u64; count], Rank(0)).map(drop),
        _ => world.allgather(&vec![1_u64; count]).map(drop),
    }
}

#[test]
fn members_with_different_lengths_get_an_error() {
    for (first, other) in
        [(1, 100), (100, 1), (0, 10), (10, 0), (2, 100), (100, 2), (3, 4), (100, 200), (200, 100)]
    {
        for which in 0..5 {
            for ranks in [2, 3] {
                let app = move |job: &Job| call(job, which, first, other);
                let on_threads = tasuki::local(ranks, app).map(drop);
                let on_sim = tasuki::sim(Sim::seed(5).ranks(ranks), app).map(drop);
                for (outcome, way) in [(on_threads, "threads"), (on_sim, "sim")] {
                    let text = format!("call {which}, {first} and {other} words, {ranks} ranks, {way}");
                    let error = outcome.expect_err(&text);
                    let is_it = matches!(error.cause(), Cause::Disagree { what: "bytes", .. });
                    assert!(
                        is_it
                            || matches!(
                                error.cause(),
                                Cause::PeerLeft { .. } | Cause::CommunicatorFailed { .. }
                            ),
                        "{text}: {error}"
                    );
                }
            }
        }
    }
}
