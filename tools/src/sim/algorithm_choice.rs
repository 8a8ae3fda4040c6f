//! Chooses the algorithm to simulate: the one that the user asks for; otherwise the one that plans
//! would take, unless its simulation takes too long; otherwise the usual one. Where trying all
//! fitting algorithms is quick, the reason also names the fastest.

use super::units;
use crate::algorithm_choices::{NetworkChoice, on_network};
use crate::arguments::collective_names;
use tasuki_command::misuse;
use tasuki_schedule::Schedule;
use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
use tasuki_schedule::network::{Network, Time};
use tasuki_schedule::shape::{Counts, Placement, Shape};

/// What the user asks for.
pub(super) struct ChoiceWanted<'w> {
    pub(super) shape: &'w Shape,
    pub(super) network: &'w Network,
    pub(super) algorithm: Option<&'w str>,
    pub(super) segments: u64,
    /// Available memory, in bytes.
    pub(super) memory: u64,
}

/// What is simulated.
pub(super) struct Choice {
    pub(super) schedule: Schedule,
    pub(super) name: String,
    /// Why this algorithm was chosen.
    pub(super) reason: String,
    /// The number of segments, unless the schedule comes from a file.
    pub(super) segments: Option<u64>,
}

/// The usual algorithms for many ranks, and whether each is for messages in segments.
const USUAL: &[(&str, bool)] =
    &[("binary", false), ("pipelined", true), ("dissemination", false), ("dissemination", true)];
/// The default choice has at most this number of steps: a million take some seconds.
const CHOSEN_STEPS_MAX: u64 = 10_000_000;
/// Algorithms are tried against each other if each has at most about this number of steps.
const TRIED_STEPS_MAX: u64 = 500_000;
/// Bytes per step and per rank for an algorithm whose parts are too long to inspect.
const STEP_BYTES: u64 = 250;
const RANK_BYTES: u64 = 600;

/// An estimate of what a simulation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Needs {
    /// Steps of all ranks.
    steps: u64,
    /// Bytes of memory.
    bytes: u64,
}

impl Choice {
    /// Chooses the algorithm.
    pub(super) fn make(wanted: &ChoiceWanted<'_>) -> anyhow::Result<Choice> {
        let ChoiceWanted { shape, segments, .. } = *wanted;
        if let Some(name) = wanted.algorithm {
            let algorithm = named(shape, name)?;
            return Choice::of(algorithm, needs(algorithm, wanted), wanted, "as asked for".into());
        }
        let fitting = fitting(wanted);
        let NetworkChoice { algorithm: chosen, here } = on_network(shape)?;
        let here = here.map(|here| format!("; a job here would run {here}")).unwrap_or_default();
        let is_chosen = |one: &Algorithm| one.name == chosen.name;
        let of_chosen = fitting.iter().find(|(algorithm, _)| is_chosen(algorithm));
        if let Some((_, needs)) = of_chosen.filter(|(_, needs)| needs.steps <= CHOSEN_STEPS_MAX) {
            let quickest = quickest(wanted, &fitting).filter(|(one, _)| !is_chosen(one));
            let reason = match (fitting.len(), quickest) {
                (1, _) => "the only one that fits".into(),
                (_, None) => format!("what plans take on a network{here}"),
                (_, Some((one, time))) => {
                    format!(
                        "what plans take on a network{here}; {}, the quickest of all, takes {time}",
                        collective_names::typed(one.name)
                    )
                }
            };
            return Choice::of(chosen, *needs, wanted, reason);
        }
        let is_usual = |algorithm: &Algorithm| USUAL.contains(&(algorithm.name, segments > 1));
        let usual = fitting.iter().min_by_key(|(algorithm, needs)| (!is_usual(algorithm), needs.steps));
        let Some((algorithm, needs)) = usual else {
            return Err(misuse(format!("no algorithm of {} fits", shape.collective.name())));
        };
        let why = if is_usual(algorithm) { "the usual one" } else { "the one with fewest steps" };
        let reason = match fitting.len() {
            1 => "the only one that fits".into(),
            _ => format!("{why}; {}, what plans take, may have too many steps", chosen.name),
        };
        Choice::of(algorithm, *needs, wanted, reason)
    }

    fn of(
        algorithm: &Algorithm,
        needs: Needs,
        wanted: &ChoiceWanted<'_>,
        reason: String,
    ) -> anyhow::Result<Choice> {
        if needs.bytes > wanted.memory {
            return Err(misuse(refusal(algorithm, needs, wanted)));
        }
        let schedule = algorithm.schedule(wanted.shape, wanted.segments);
        Ok(Choice { schedule, name: algorithm.name.into(), reason, segments: Some(wanted.segments) })
    }
}

/// All algorithms that fit, each with what it needs.
fn fitting(wanted: &ChoiceWanted<'_>) -> Vec<(&'static Algorithm, Needs)> {
    let fits = |algorithm: &&Algorithm| (algorithm.fits)(wanted.shape);
    let all = wanted.shape.collective.algorithms().filter(fits);
    all.map(|algorithm| (algorithm, needs(algorithm, wanted))).collect()
}

/// Explains why an algorithm is not simulated, and names an alternative.
fn refusal(algorithm: &Algorithm, needs: Needs, wanted: &ChoiceWanted<'_>) -> String {
    let (ranks, collective) = (wanted.shape.ranks, wanted.shape.collective.name());
    let Needs { steps, bytes } = needs;
    let (bytes, there) = (units::show(bytes), units::show(wanted.memory));
    let why = format!(
        "{} on {ranks} ranks has about {steps} steps, which would take about {bytes} of memory, and {there} are \
         available",
        collective_names::typed(algorithm.name)
    );
    let name = |one: &Algorithm| collective_names::typed(one.name);
    if let Some((other, needs)) = least(wanted) {
        let bytes = units::show(needs.bytes);
        return format!("{why}; --algorithm {} would take about {bytes}", name(other));
    }
    // Lists of counts and graphs hold for this number of ranks only, so no smaller number can be
    // tried.
    let mut fewer = if matches!(wanted.shape.counts, Counts::Equal(_)) { ranks / 2 } else { 0 };
    while fewer > 1 {
        let shape = Shape { ranks: fewer, root: wanted.shape.root.min(fewer - 1), ..wanted.shape.clone() };
        if let Some((other, _)) = least(&ChoiceWanted { shape: &shape, ..*wanted }) {
            return format!(
                "{why}, and no other algorithm of {collective} takes less than that; give fewer ranks: \
                 {fewer} ranks fit with --algorithm {}",
                name(other)
            );
        }
        fewer /= 2;
    }
    format!("{why}; give fewer ranks or segments")
}

/// The algorithm that needs least memory, if there is enough for it.
fn least(wanted: &ChoiceWanted<'_>) -> Option<(&'static Algorithm, Needs)> {
    let there_is = |(_, needs): &(&Algorithm, Needs)| needs.bytes <= wanted.memory;
    fitting(wanted).into_iter().filter(there_is).min_by_key(|(_, needs)| needs.bytes)
}

/// The fastest of the fitting algorithms and its time, if all of them have few steps.
fn quickest<'a>(
    wanted: &ChoiceWanted<'_>,
    fitting: &[(&'a Algorithm, Needs)],
) -> Option<(&'a Algorithm, Time)> {
    if fitting.iter().any(|(_, needs)| needs.steps > TRIED_STEPS_MAX) {
        return None;
    }
    let time = |algorithm: &Algorithm| {
        let schedule = algorithm.schedule(wanted.shape, wanted.segments);
        schedule.simulate(wanted.network).ok().map(|simulated| simulated.time)
    };
    let timed = fitting.iter().filter_map(|(algorithm, _)| Some((*algorithm, time(algorithm)?)));
    timed.min_by_key(|(_, time)| *time)
}

/// The algorithm with that name.
fn named(shape: &Shape, name: &str) -> anyhow::Result<&'static Algorithm> {
    let of_it: Vec<&Algorithm> =
        ALGORITHMS.iter().filter(|algorithm| algorithm.collective == shape.collective).collect();
    let algorithm = collective_names::algorithm(name, &of_it, shape.collective.name())?;
    if !(algorithm.fits)(shape) {
        let remedy = if algorithm.name.starts_with("trinaryx3") {
            "it needs ranks that fill a torus of up to three dimensions, as in --ranks 24 --per-node 2 \
             --topology torus:2x2x3"
        } else if algorithm.name == "two-level" {
            "it needs several ranks on each of several nodes, as in --ranks 64 --per-node 16"
        } else {
            "it does not support this number of ranks"
        };
        return Err(misuse(format!("--algorithm {name} does not fit: {remedy}")));
    }
    Ok(algorithm)
}

/// Number of ranks whose parts are inspected: for the shape itself, and for the same shape on few
/// ranks.
const LOOKED_AT: usize = 32;
const LOOKED_AT_OF_FEW: usize = 8;
/// Approximate limit on the steps of the inspected parts.
const STEPS_LOOKED_AT: u64 = 4_000_000;

/// Estimates what a simulation needs. It inspects some ranks as representatives, and those that may
/// have more to do. If parts already grow with the number of ranks on few ranks, it extrapolates
/// from there, since making the large parts would take long.
fn needs(algorithm: &Algorithm, wanted: &ChoiceWanted<'_>) -> Needs {
    const FEW: usize = 512;
    let (shape, ranks) = (wanted.shape, wanted.shape.ranks);
    let of_few = |ranks: usize| {
        let placement = Placement::SPREAD;
        let few = Shape { ranks, root: 0, placement, ..shape.clone() };
        (algorithm.fits)(&few).then(|| {
            let schedule = algorithm.schedule(&few, wanted.segments);
            look_at(&schedule, 0, LOOKED_AT_OF_FEW).steps / ranks as u64
        })
    };
    // A graph is inspected whole: its first few ranks do not represent its edges, and its edges are
    // few.
    if ranks > 2 * FEW
        && !matches!(shape.counts, Counts::Graph(_))
        && let Some((few, more)) = of_few(FEW).zip(of_few(2 * FEW))
        && 2 * more > 3 * few
    {
        let each = more as f64 * ranks as f64 / (2 * FEW) as f64;
        let steps = (each * ranks as f64) as u64;
        let bytes = steps.saturating_mul(STEP_BYTES).saturating_add(ranks as u64 * RANK_BYTES);
        return Needs { steps, bytes };
    }
    look_at(&algorithm.schedule(shape, wanted.segments), shape.root, LOOKED_AT)
}

/// Estimates what the ranks of a schedule need from the parts of some of them.
fn look_at(schedule: &Schedule, root: usize, looked_at: usize) -> Needs {
    let ranks = schedule.ranks();
    let of = |rank: usize| {
        let part = schedule.part(rank);
        Needs { steps: part.steps().len() as u64, bytes: part.simulation_bytes() }
    };
    let mut special = vec![0, root, (root + 1) % ranks, ranks - 1];
    special.sort_unstable();
    special.dedup();
    let (mut all, mut usual, mut count) = (Needs::default(), Needs::default(), 0);
    for &rank in &special {
        let needs = of(rank);
        all = Needs { steps: all.steps + needs.steps, bytes: all.bytes + needs.bytes };
    }
    let some = (0..looked_at).map(|number| (number * ranks / looked_at + number) % ranks);
    let mut some: Vec<usize> = some.filter(|rank| !special.contains(rank)).collect();
    some.sort_unstable();
    some.dedup();
    for rank in some {
        let needs = of(rank);
        usual = Needs { steps: usual.steps + needs.steps, bytes: usual.bytes + needs.bytes };
        count += 1;
        if usual.steps > STEPS_LOOKED_AT {
            break;
        }
    }
    let times = |sum: u64| (sum as f64 / f64::from(count.max(1)) * (ranks - special.len()) as f64) as u64;
    Needs { steps: all.steps + times(usual.steps), bytes: all.bytes + times(usual.bytes) }
}

/// Estimates the bytes that the simulation of a file's plan needs.
pub(super) fn bytes_of_file(schedule: &Schedule) -> u64 {
    (0..schedule.ranks()).map(|rank| schedule.part(rank).simulation_bytes()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::network::Topology;
    use tasuki_schedule::shape::CollectiveKind;

    const GIB: u64 = 1 << 30;

    fn choose(
        collective: CollectiveKind,
        ranks: usize,
        algorithm: Option<&str>,
        memory: u64,
    ) -> Result<String, String> {
        let shape = Shape::new(collective, ranks, 0, 8192);
        let network = Network::new(Topology::Crossbar(ranks as u64), 1);
        let wanted = ChoiceWanted { shape: &shape, network: &network, algorithm, segments: 1, memory };
        Choice::make(&wanted).map(|choice| choice.name).map_err(|error| error.to_string())
    }

    #[test]
    fn what_memory_has_no_room_for_is_refused_before_it_starts() {
        let scan = choose(CollectiveKind::Scan, 1_000_000, None, GIB).unwrap_err();
        assert!(scan.contains("of memory, and 1 GiB are available"), "{scan}");
        assert!(
            scan.contains("give fewer ranks: ") && scan.contains(" ranks fit with --algorithm tree"),
            "{scan}"
        );
        assert!(choose(CollectiveKind::Bcast, 1_000_000, Some("binary"), GIB / 2).is_err());
        assert_eq!(choose(CollectiveKind::Bcast, 1_000_000, Some("binary"), 2 * GIB).unwrap(), "binary");
    }

    #[test]
    fn what_is_refused_names_what_would_do() {
        let ring = choose(CollectiveKind::Allgather, 100_000, Some("ring"), 16 * GIB).unwrap_err();
        assert!(ring.contains("; --algorithm ") && ring.contains(" would take about "), "{ring}");
        let pairs = choose(CollectiveKind::Alltoall, 100_000, Some("pairwise"), 16 * GIB).unwrap_err();
        assert!(pairs.contains("--algorithm "), "{pairs}");
        for said in [ring, pairs] {
            // The algorithm that a refusal names is not refused on the number of ranks that it
            // names.
            let name = said.rsplit("--algorithm ").next().unwrap().split(' ').next().unwrap();
            let ranks = said
                .split_once("give fewer ranks: ")
                .and_then(|(_, rest)| rest.split(" ").next()?.parse().ok());
            let collective =
                if said.starts_with("ring") { CollectiveKind::Allgather } else { CollectiveKind::Alltoall };
            choose(collective, ranks.unwrap_or(100_000), Some(name), 16 * GIB).unwrap();
        }
    }

    #[test]
    fn what_one_rank_alone_has_to_do_counts_once() {
        let shape = Shape::new(CollectiveKind::Gather, 100_000, 7, 8);
        let network = Network::new(Topology::Crossbar(100_000), 1);
        let wanted =
            ChoiceWanted { shape: &shape, network: &network, algorithm: None, segments: 1, memory: 0 };
        let flat = shape.collective.algorithms().find(|one| one.name == "flat").unwrap();
        let found = needs(flat, &wanted).steps;
        let schedule = flat.schedule(&shape, 1);
        let steps: usize = (0..shape.ranks).map(|rank| schedule.part(rank).steps().len()).sum();
        assert!((steps as u64 / 2..steps as u64 * 2).contains(&found), "{found} of {steps}");
    }
}
