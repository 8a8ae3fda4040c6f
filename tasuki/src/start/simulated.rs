//! Ranks in virtual time: the whole program under delay, reordering and faults that one seed decides.

use super::RankOptions;
use super::rank::{self, Teller};
use crate::{Error, Handlers, Job, Result};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;
use tasuki_core::base::log::{Level, Log};
use tasuki_core::bootstrap::settings::ServerAddress;
use tasuki_core::bootstrap::{Settings, rendezvous_client};
use tasuki_core::engine::trace::TraceTo;
use tasuki_fabric_sim::{Member, Outcome, Sim, simulate};

/// What came of a simulated job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulated<T> {
    /// What each rank returned; `None` for one that the simulation killed.
    pub values: Vec<Option<T>>,
    /// A fingerprint of everything that happened, equal for equal seeds and programs.
    pub trace_hash: u64,
    /// Virtual time at the end.
    pub time: Duration,
    /// A line for each event, if [`Sim::keep_trace`](crate::Sim::keep_trace) asked for it.
    pub trace: Vec<String>,
}

/// EncodedCommand of the trace that an error of a run ends with.
const LAST_LINES: usize = 20;

/// Runs `app` on simulated ranks: their values, or the first error.
///
/// Every call of a rank is a moment at which another may run; delays, orders and faults follow from the seed of
/// [`Sim`](crate::Sim), and so does the outcome, event by event. The ranks' memories are separate. Time is virtual:
/// [`Job::clock`] reads it, [`Job::compute`] lets it pass. Errors: as for [`local`](crate::local()), and that nothing
/// could happen any more (each rank's wait is named). Costs a thread per rank, 0.1 us a call, some us a change of
/// thread; all of them, and those that they begin, stay on the processor where the call began.
///
/// ```
/// use tasuki::{Sim, sim};
/// let run = || sim(Sim::seed(7).ranks(16), |job| job.barrier());
/// let (once, again) = (run()?, run()?);
/// assert_eq!(once.trace_hash, again.trace_hash);
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn sim<T: Send>(sim: Sim, app: impl Fn(&Job) -> Result<T> + Sync) -> Result<Simulated<T>> {
    sim_with(sim, &Handlers::new(), app)
}

/// [`sim`](sim()) with handlers, which each rank then has.
pub fn sim_with<T: Send>(
    sim: Sim,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Simulated<T>> {
    run(&sim, &Ways::default(), None, handlers, app)
}

/// [`sim`] as the launcher starts it.
pub(super) fn started<T: Send>(
    ranks: usize,
    seed: u64,
    settings: &Settings,
    door: Option<&ServerAddress>,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Simulated<T>> {
    let rank_options = RankOptions::read(settings, 1)?;
    let ways =
        Ways { teller: Teller::FirstRank, log: settings.log, rank_options, trace: settings.trace.clone() };
    run(&Sim::seed(seed).ranks(ranks), &ways, door, handlers, app)
}

/// What of the settings a simulated rank goes by.
struct Ways {
    teller: Teller,
    log: Level,
    rank_options: RankOptions,
    trace: Option<TraceTo>,
}

impl Default for Ways {
    fn default() -> Ways {
        Ways { teller: Teller::Caller, log: Level::Warn, rank_options: RankOptions::default(), trace: None }
    }
}

fn run<T: Send>(
    sim: &Sim,
    ways: &Ways,
    door: Option<&ServerAddress>,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Simulated<T>> {
    let shown: Mutex<Option<UnixStream>> = Mutex::default();
    let body = |member: Member| {
        if let Some(door) = door {
            // The first rank that runs shows it: any of them may end the process.
            let mut shown = shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if shown.is_none() {
                *shown = Some(rendezvous_client::send_node_state(door, &member.node_state, &[])?);
            }
        }
        let log = Log::new(format!("rank {}", member.rank), ways.log);
        let (rank, node_state) = (member.rank, member.node_state.clone());
        let worker = || Ok(member.join(log)?.with_trace(ways.trace.as_ref()));
        let run = || {
            rank::run(rank, ways.teller, &node_state, Ok(ways.rank_options.clone()), handlers, worker, &app)
        };
        rank::as_thread(rank, &node_state, run)
    };
    let report = simulate(sim, body)?;
    let time = Duration::from_nanos(report.end_ns);
    let last = &report.trace[report.trace.len().saturating_sub(LAST_LINES)..];
    let with_last = |error: Error| match last {
        [] => error,
        last => error.note(format!("the last events:\n{}", last.join("\n"))),
    };
    if let Some(failure) = report.failure {
        return Err(with_last(failure.note(format!("at {time:?} of virtual time"))));
    }
    let (mut values, mut outcomes) = (Vec::new(), Vec::new());
    for outcome in report.outcomes {
        match outcome {
            Outcome::Returned(outcome) => outcomes.push(outcome.map(Some)),
            Outcome::Killed => outcomes.push(Ok(None)),
            // Rust has printed the panic.
            Outcome::Panicked(message) => outcomes.push(Err(match ways.teller {
                Teller::Caller => rank::panicked(&message),
                _ => rank::panicked(&message).mark_printed(),
            })),
        }
    }
    values.extend(rank::all_or_first(outcomes).map_err(with_last)?);
    Ok(Simulated { values, trace_hash: report.trace_hash, time, trace: report.trace })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rank, sim};
    use tasuki_core::base::Cause;

    #[test]
    fn the_trace_that_was_asked_for_is_handed_over() {
        let run = |keeps: bool| sim(Sim::seed(3).ranks(4).keep_trace(keeps), |job| job.barrier());
        let (without, with) = (run(false).unwrap(), run(true).unwrap());
        assert!(without.trace.is_empty() && !with.trace.is_empty());
        assert_eq!(without.trace_hash, with.trace_hash);
    }

    #[test]
    fn an_error_ends_with_the_last_events() {
        let failed = |keeps: bool| {
            let ended = sim(Sim::seed(3).ranks(2).keep_trace(keeps), |job| match job.rank() {
                Rank(0) => job.barrier(),
                _ => Err(Error::new(Cause::Program("gives up".into()))),
            });
            format!("{:#}", ended.unwrap_err())
        };
        assert!(failed(true).contains("the last events:"), "{}", failed(true));
        assert!(!failed(false).contains("the last events:"), "{}", failed(false));
    }
}
