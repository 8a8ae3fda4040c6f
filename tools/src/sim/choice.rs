//! Which algorithm is simulated: the one that is asked for; else the one that plans take, where that takes no longer
//! than one waits; else the usual one. Beside it stands the quickest of those that fit, where trying all of them takes
//! no time worth speaking of.

use super::size;
use crate::asked::words;
use tasuki_command::{misuse, warn};
use tasuki_core::os::available_memory;
use tasuki_schedule::Schedule;
use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
use tasuki_schedule::network::{Network, Time};
use tasuki_schedule::shape::{Counts, Placement, Shape};

/// What is asked for.
pub(super) struct Wanted<'w> {
    pub(super) shape: &'w Shape,
    pub(super) network: &'w Network,
    pub(super) algorithm: Option<&'w str>,
    pub(super) segments: u64,
}

/// What is simulated.
pub(super) struct Choice {
    pub(super) schedule: Schedule,
    pub(super) name: String,
    /// Why this one.
    pub(super) reason: String,
    /// Into how many it is cut, unless a file says all.
    pub(super) segments: Option<u64>,
}

/// What is taken among many ranks, and whether that is for messages in segments.
const USUAL: &[(&str, bool)] =
    &[("binary", false), ("pipelined", true), ("dissemination", false), ("dissemination", true)];
/// One with more takes longer than one waits: a million take some seconds.
const CHOSEN_COMMANDS: u64 = 10_000_000;
/// An algorithm with about so many commands is tried beside others.
const TRIED_COMMANDS: u64 = 500_000;
/// What a simulation takes at most for each command and each rank, found with a million ranks.
const COMMAND_BYTES: u64 = 200;
const RANK_BYTES: u64 = 600;
/// One with more does not fit into memory: a command takes some 200 bytes.
const COMMANDS_MAX: u64 = 100_000_000;

impl Choice {
    /// Chooses.
    pub(super) fn make(wanted: &Wanted<'_>) -> anyhow::Result<Choice> {
        let Wanted { shape, segments, .. } = *wanted;
        if let Some(name) = wanted.algorithm {
            let algorithm = named(shape, name)?;
            let commands = commands(algorithm, wanted);
            if commands > COMMANDS_MAX {
                return Err(too_many(name, shape, commands));
            }
            return Ok(Choice::of(algorithm, wanted, "as asked for".into()));
        }
        let all = || ALGORITHMS.iter().filter(|algorithm| algorithm.operation == shape.operation);
        let fitting: Vec<(&Algorithm, u64)> = all()
            .filter(|algorithm| (algorithm.fits)(shape))
            .map(|algorithm| (algorithm, commands(algorithm, wanted)))
            .collect();
        let chosen = Algorithm::choose(shape);
        let is_chosen = |one: &Algorithm| one.name == chosen.name;
        let of_chosen = fitting.iter().find(|(algorithm, _)| is_chosen(algorithm));
        if of_chosen.is_some_and(|(_, commands)| *commands <= CHOSEN_COMMANDS) {
            let quickest = quickest(wanted, &fitting).filter(|(one, _)| !is_chosen(one));
            let reason = match (fitting.len(), quickest) {
                (1, _) => "the only one that fits".into(),
                (_, None) => "what plans take".into(),
                (_, Some((one, time))) => {
                    format!("what plans take; {}, the quickest here, takes {time}", words::typed(one.name))
                }
            };
            return Ok(Choice::of(chosen, wanted, reason));
        }
        let is_usual = |algorithm: &Algorithm| USUAL.contains(&(algorithm.name, segments > 1));
        let usual = fitting.iter().min_by_key(|(algorithm, commands)| (!is_usual(algorithm), *commands));
        match usual {
            Some((algorithm, commands)) if *commands <= COMMANDS_MAX => {
                let why = if is_usual(algorithm) { "the usual one" } else { "the one with fewest commands" };
                let reason = match fitting.len() {
                    1 => "the only one that fits".into(),
                    _ => format!("{why}; {}, what plans take, may have too many commands", chosen.name),
                };
                Ok(Choice::of(algorithm, wanted, reason))
            }
            Some((algorithm, commands)) => Err(too_many(algorithm.name, shape, *commands)),
            None => Err(misuse(format!("no algorithm of {} fits", shape.operation.name()))),
        }
    }

    fn of(algorithm: &Algorithm, wanted: &Wanted<'_>, reason: String) -> Choice {
        let ranks = wanted.shape.ranks as u64;
        let needed = commands(algorithm, wanted) * COMMAND_BYTES + ranks * RANK_BYTES;
        let there = available_memory::available().bytes;
        if needed > there {
            let (needed, there) = (size::show(needed), size::show(there));
            warn(&format!("this may take {needed} of memory, and {there} are available"));
        }
        let schedule = algorithm.schedule(wanted.shape, wanted.segments);
        Choice { schedule, name: algorithm.name.into(), reason, segments: Some(wanted.segments) }
    }
}

/// The quickest of those that fit, with its time, if all of them have few commands.
fn quickest<'a>(wanted: &Wanted<'_>, fitting: &[(&'a Algorithm, u64)]) -> Option<(&'a Algorithm, Time)> {
    if fitting.iter().any(|(_, commands)| *commands > TRIED_COMMANDS) {
        return None;
    }
    let time = |algorithm: &Algorithm| {
        let schedule = algorithm.schedule(wanted.shape, wanted.segments);
        schedule.simulate(wanted.network).ok().map(|simulated| simulated.time)
    };
    let timed = fitting.iter().filter_map(|(algorithm, _)| Some((*algorithm, time(algorithm)?)));
    timed.min_by_key(|(_, time)| *time)
}

/// The algorithm of that name.
fn named(shape: &Shape, name: &str) -> anyhow::Result<&'static Algorithm> {
    let of_it: Vec<&Algorithm> =
        ALGORITHMS.iter().filter(|algorithm| algorithm.operation == shape.operation).collect();
    let algorithm = words::algorithm(name, &of_it, shape.operation.name())?;
    if !(algorithm.fits)(shape) {
        let remedy = if algorithm.name.starts_with("trinaryx3") {
            "it wants ranks that fill a torus of up to three dimensions, as in --ranks 24 --per-node 2 \
             --topology torus:2x2x3"
        } else if algorithm.name == "two-level" {
            "it wants several ranks on each of several nodes, as in --ranks 64 --per-node 16"
        } else {
            "it does not take so many ranks"
        };
        return Err(misuse(format!("--algorithm {name} does not fit: {remedy}")));
    }
    Ok(algorithm)
}

/// About how many commands all ranks have: as many as the largest of a few of their parts, each. Where already a
/// thousand ranks show that parts grow with the number of ranks, that is reckoned from there: to make them would take
/// long.
fn commands(algorithm: &Algorithm, wanted: &Wanted<'_>) -> u64 {
    const FEW: usize = 512;
    let (shape, ranks) = (wanted.shape, wanted.shape.ranks);
    let of_few = |ranks: usize| {
        let placement = Placement::SPREAD;
        let few = Shape { ranks, root: 0, placement, ..shape.clone() };
        (algorithm.fits)(&few).then(|| steps_max(algorithm, &few, wanted.segments))
    };
    // Edges of a graph are not among the first few ranks alone, and are few.
    if ranks > 2 * FEW
        && !matches!(shape.counts, Counts::Graph(_))
        && let Some((few, more)) = of_few(FEW).zip(of_few(2 * FEW))
        && 2 * more > 3 * few
    {
        let each = more as f64 * ranks as f64 / (2 * FEW) as f64;
        return (each * ranks as f64) as u64;
    }
    steps_max(algorithm, shape, wanted.segments).saturating_mul(ranks as u64)
}

/// The most steps that one of a few ranks has.
fn steps_max(algorithm: &Algorithm, shape: &Shape, segments: u64) -> u64 {
    let (schedule, ranks) = (algorithm.schedule(shape, segments), shape.ranks);
    let looked_at = [0, shape.root, (shape.root + 1) % ranks, ranks / 2, ranks - 1];
    looked_at.into_iter().map(|rank| schedule.part(rank).steps().len() as u64).max().unwrap_or(0)
}

fn too_many(name: &str, shape: &Shape, commands: u64) -> anyhow::Error {
    misuse(format!(
        "{name} on {} ranks has about {commands} commands, and {COMMANDS_MAX} are the most; give fewer ranks or \
         segments",
        shape.ranks
    ))
}
