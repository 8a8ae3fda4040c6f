//! Ranks in virtual time: the whole program runs under delays, reordering and faults that one seed determines.

use super::RankOptions;
use super::rank::{self, Reporter};
use crate::{Error, Handlers, Job, Result};
use std::borrow::Borrow;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;
use tasuki_core::base::log::{Level, Log};
use tasuki_core::bootstrap::environment_variables as names;
use tasuki_core::bootstrap::settings::ServerAddress;
use tasuki_core::bootstrap::{Settings, rendezvous_client};
use tasuki_core::engine::trace::TraceTo;
use tasuki_fabric_sim::{Member, Outcome, Sim, simulate};

/// The outcome of a simulated job.
///
/// ```
/// use std::time::Duration;
/// use tasuki::engine::Simulated;
/// use tasuki::{Sim, Sum};
/// let run: Simulated<u64> = tasuki::sim(Sim::seed(7).ranks(4), |job| job.world().allreduce(&1_u64, Sum))?;
/// assert_eq!(run.values, [Some(4); 4]);
/// assert!(run.time > Duration::ZERO); // virtual time
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulated<T> {
    /// The value that each rank returned; `None` for a rank that the simulation killed.
    pub values: Vec<Option<T>>,
    /// A hash of all events, equal for equal seeds and programs.
    pub trace_hash: u64,
    /// The virtual time at the end.
    pub time: Duration,
    /// One line for each event, if [`Sim::keep_trace`](crate::Sim::keep_trace) was set.
    pub trace: Vec<String>,
}

impl<T> Simulated<T> {
    /// Returns the values of the ranks, in their order, without those of ranks that the simulation killed. If none was
    /// killed, that is what [`local`](crate::local()) returns.
    ///
    /// ```
    /// use tasuki::Sim;
    /// let ranks = tasuki::sim(Sim::seed(7).ranks(3), |job| Ok(job.rank().index()))?.into_values();
    /// assert_eq!(ranks, [0, 1, 2]);
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn into_values(self) -> Vec<T> {
        self.values.into_iter().flatten().collect()
    }
}

/// The number of lines of the trace at the end of an error.
const LAST_LINES: usize = 20;

/// Runs `app` on simulated ranks. Returns their values, or the first error.
///
/// With [`Sim::seeds`] there is a run for each seed, one after the other. The first that fails is the outcome: its
/// error names the seed, and `TASUKI_SIM_SEED` repeats that run alone. If none fails, the outcome is that of the last
/// run.
///
/// Another rank may run at every call of a rank. The seed of [`Sim`](crate::Sim) determines delays, order and faults,
/// and so every event of the outcome. The ranks' memories are separate. Time is virtual: [`Job::clock`] reads it,
/// [`Job::compute`] lets it pass. Errors: those of [`local`](crate::local()); no event can happen any more (the error
/// names each rank's wait). Cost: a thread for each rank, 0.1 us for each call, and some us for each switch to
/// another thread. All threads, including those that they start, stay on the processor on which this call began.
///
/// ```
/// use tasuki::{Sim, sim};
/// let run = || sim(Sim::seed(7).ranks(16), |job| job.barrier());
/// let (once, again) = (run()?, run()?);
/// assert_eq!(once.trace_hash, again.trace_hash);
/// sim(Sim::seeds(0..20).ranks(4), |job| job.barrier())?; // names the first seed that fails
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn sim<T: Send>(sim: Sim, app: impl Fn(&Job) -> Result<T> + Sync) -> Result<Simulated<T>> {
    sim_with(sim, Handlers::new(), app)
}

/// Runs `app` like [`sim`](sim()), with handlers on each rank.
///
/// ```
/// use tasuki::{Handler, Handlers, Request, Sim};
///
/// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
/// let doubled = tasuki::sim_with(Sim::seed(7).ranks(3), Handlers::new().add(DOUBLE), |job| {
///     let doubled = DOUBLE.call(job, job.rank_after(1), &21)?.wait()?;
///     job.barrier()?;
///     Ok(doubled)
/// })?;
/// assert_eq!(doubled.values, [Some(42), Some(42), Some(42)]);
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn sim_with<T: Send>(
    sim: Sim,
    handlers: impl Borrow<Handlers>,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Simulated<T>> {
    let seeds = chosen_seeds(&sim, std::env::var(names::SIM_SEED).ok())?;
    let mut last = None;
    for seed in seeds.clone() {
        let outcome = run(&sim.with_seed(seed), &SimulatedSettings::default(), None, handlers.borrow(), &app);
        let is_one_of_many = seeds.end - seeds.start > 1;
        last = Some(outcome.map_err(|error| match is_one_of_many {
            true => error.note(format!(
                "seed {seed} failed after {} that passed; {}={seed} repeats it alone",
                seed - seeds.start,
                names::SIM_SEED
            )),
            false => error,
        })?);
    }
    last.ok_or_else(|| Error::argument("there is no seed in the range"))
}

/// Returns the seeds to run: those that the program names, or the one of them that the environment names.
fn chosen_seeds(sim: &Sim, only: Option<String>) -> Result<Range<u64>> {
    let named = sim.seed_range();
    let Some(only) = only.filter(|_| named.end - named.start.min(named.end) > 1) else { return Ok(named) };
    match only.parse::<u64>() {
        Ok(seed) if named.contains(&seed) => Ok(seed..seed + 1),
        _ => {
            let (variable, Range { start, end }) = (names::SIM_SEED, named);
            Err(Error::argument(format!("{variable}={only}: the test runs the seeds {start} to {}", end - 1)))
        }
    }
}

/// Runs `app` like [`sim_with`], in a process that the launcher has started.
pub(super) fn launched<T: Send>(
    ranks: usize,
    seed: u64,
    settings: &Settings,
    server: Option<&ServerAddress>,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Simulated<T>> {
    let rank_options = RankOptions::read(settings, 1)?;
    let simulated = SimulatedSettings {
        reporter: Reporter::Simulated,
        log: settings.log,
        rank_options,
        trace: settings.trace.clone(),
    };
    run(&Sim::seed(seed).ranks(ranks), &simulated, server, handlers, app)
}

/// The settings of a simulated rank.
struct SimulatedSettings {
    reporter: Reporter,
    log: Level,
    rank_options: RankOptions,
    trace: Option<TraceTo>,
}

impl Default for SimulatedSettings {
    fn default() -> SimulatedSettings {
        SimulatedSettings {
            reporter: Reporter::Caller,
            log: Level::Warn,
            rank_options: RankOptions::default(),
            trace: None,
        }
    }
}

fn run<T: Send>(
    sim: &Sim,
    simulated: &SimulatedSettings,
    server: Option<&ServerAddress>,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Simulated<T>> {
    let launcher: Mutex<Option<UnixStream>> = Mutex::default();
    let body = |member: Member| {
        if let Some(server) = server {
            // The first rank that runs sends the node state to the launcher, because any rank may end the process.
            let mut launcher = launcher.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if launcher.is_none() {
                *launcher = Some(rendezvous_client::send_node_state(server, &member.node_state, &[])?);
            }
        }
        let log = Log::new(format!("rank {}", member.rank), simulated.log);
        let (rank, node_state) = (member.rank, member.node_state.clone());
        let worker = || Ok(member.join(log)?.with_trace(simulated.trace.as_ref()));
        let run = || {
            rank::run(
                rank,
                simulated.reporter,
                &node_state,
                Ok(simulated.rank_options.clone()),
                handlers,
                worker,
                &app,
            )
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
            Outcome::Panicked(message) => outcomes.push(Err(match simulated.reporter {
                Reporter::Caller => rank::panicked(&message),
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
    use tasuki_core::base::sync::{AtomicUsize, Ordering};

    #[test]
    fn keep_trace_returns_the_trace() {
        let run = |keeps: bool| sim(Sim::seed(3).ranks(4).keep_trace(keeps), |job| job.barrier());
        let (without, with) = (run(false).unwrap(), run(true).unwrap());
        assert!(without.trace.is_empty() && !with.trace.is_empty());
        assert_eq!(without.trace_hash, with.trace_hash);
    }

    #[test]
    fn the_first_seed_that_fails_is_named() {
        let fails_in_run = |number: usize, seeds| {
            let run = AtomicUsize::new(0);
            let ended = sim(Sim::seeds(seeds), |job| match job.rank() {
                Rank(0) if run.fetch_add(1, Ordering::Relaxed) == number => {
                    Err(Error::new(Cause::Program("gives up".into())))
                }
                _ => job.barrier(),
            });
            ended.map_or_else(|error| format!("{error:#}"), |_| "passed".into())
        };
        let late = fails_in_run(3, 10..19);
        assert!(late.contains("seed 13 failed after 3 that passed; TASUKI_SIM_SEED=13"), "{late}");
        let alone = fails_in_run(0, 13..14);
        assert!(alone.contains("gives up") && !alone.contains("passed"), "{alone}");
        assert_eq!(fails_in_run(9, 10..19), "passed");
        assert!(fails_in_run(0, 5..5).contains("no seed"));
    }

    #[test]
    fn the_environment_chooses_one_of_the_seeds() {
        let chosen = |only: &str| chosen_seeds(&Sim::seeds(10..20), Some(only.into()));
        assert_eq!(chosen("17").unwrap(), 17..18);
        assert!(chosen("20").unwrap_err().to_string().contains("10 to 19"));
        assert!(chosen("x").is_err());
        assert_eq!(
            chosen_seeds(&Sim::seed(4), Some("17".into())).unwrap(),
            4..5,
            "the test names one seed only"
        );
        assert_eq!(chosen_seeds(&Sim::seeds(10..20), None).unwrap(), 10..20);
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
