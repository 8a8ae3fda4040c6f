//! The numbers of the figure: the values of the study's formulas, and the results of simulations.
//!
//! The formulas describe one stream, or three streams that never meet, along four hops. They ignore
//! the readiness of receivers and contention for links. Simulated times count from the moment at
//! which the first bytes move, as in the formulas.

use crate::arguments::segments_of_study;
use anyhow::Context;
use tasuki_schedule::Schedule;
use tasuki_schedule::algorithm::{ALGORITHMS, streams};
use tasuki_schedule::network::{Grid, Network, Time, Topology};
use tasuki_schedule::shape::{CollectiveKind, Placement, Shape};

/// Ranks per node.
pub(super) const PER_NODE: [usize; 3] = [2, 3, 4];
/// The sides of the study's torus: 12 nodes.
const TORUS: [usize; 3] = [2, 2, 3];
const HOPS: usize = 4;
/// L, G and g, in seconds.
const L: f64 = 1.0e-7;
const G: f64 = 1.04762e-10;
const GAP: f64 = 1.0e-9;

/// Sizes, as powers of two.
pub(super) const SIZES: std::ops::RangeInclusive<u32> = 10..=30;

/// The two forms of the broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Bucket,
    TwoPhase,
}

/// A reading of a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// The only reading for bucket relay.
    Only,
    /// Readings for two-phase: as printed, as in the study's figure, and with all copies that must
    /// be made.
    Printed,
    Drawn,
    Honest,
}

/// Points: the binary logarithm of the bytes, and GB/s.
pub(super) type Points = Vec<(f64, f64)>;

fn points(seconds: impl Fn(u64) -> anyhow::Result<f64>) -> anyhow::Result<Points> {
    let point = |exponent: u32| {
        let bytes = 1_u64 << exponent;
        Ok((f64::from(exponent), bytes as f64 / seconds(bytes)? / 1e9))
    };
    SIZES.map(point).collect()
}

/// The values of the formula.
pub(super) fn formula(reading: Reading, per_node: usize) -> anyhow::Result<Points> {
    let (hops, others) = (HOPS as f64 + 1.0, per_node as f64 - 1.0);
    points(|bytes| {
        let (m, n) = (bytes as f64, segments_of_study(bytes) as f64);
        let outer = |segment: f64| hops * (L + segment * G) + (n - 1.0) * (segment * G + GAP);
        let inner = |bytes: f64| L + bytes * G + GAP;
        Ok(match reading {
            Reading::Only => hops * (L + m / n * G) + (n * others - 1.0) * (m / n * G + GAP),
            Reading::Printed => outer(m / n) + inner(m / 4.0),
            Reading::Drawn => outer(m / n / 3.0) + inner(others * m / 12.0),
            Reading::Honest => outer(m / n / 3.0) + inner(others * m / 4.0),
        })
    })
}

fn shape(sides: [usize; 3], per_node: usize, bytes: u64) -> Shape {
    let placement = Placement { per_node, torus: sides };
    let ranks = sides.iter().product::<usize>() * per_node;
    Shape { placement, ..Shape::new(CollectiveKind::Bcast, ranks, 0, bytes) }
}

/// The simulated time from the moment at which the first byte leaves.
fn seconds(schedule: &Schedule, network: &Network) -> anyhow::Result<f64> {
    let simulated = schedule.simulate(network).context("the figure's schedules")?;
    Ok((simulated.time - simulated.moves_from).as_seconds())
}

/// Simulates what the formulas describe: streams along a row of nodes. Links take no time, so there
/// is no contention.
pub(super) fn along_a_row(form: Form, per_node: usize) -> anyhow::Result<Points> {
    // The formula of two-phase counts one hop more than there are, besides the copies within nodes.
    let (nodes, paths) = if form == Form::Bucket { (HOPS + 1, 1) } else { (HOPS + 2, 3) };
    let topology = Topology::Grid(Grid::mesh(&[nodes as u64]));
    let mut network = Network::new(topology, per_node as u64);
    network.parameters.link_byte = Time::ZERO;
    points(|bytes| {
        let shape = shape([nodes, 1, 1], per_node, bytes);
        seconds(&streams(&shape, paths, segments_of_study(bytes), form == Form::TwoPhase), &network)
    })
}

/// Simulates three trees in the study's torus.
pub(super) fn in_the_torus(form: Form, per_node: usize) -> anyhow::Result<Points> {
    let name = if form == Form::Bucket { "trinaryx3 bucket" } else { "trinaryx3 two-phase" };
    let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
    let algorithm = algorithm.with_context(|| format!("there is no {name}"))?;
    let network = Network::new(Topology::Grid(Grid::torus(&TORUS.map(|side| side as u64))), per_node as u64);
    points(|bytes| {
        let shape = shape(TORUS, per_node, bytes);
        seconds(&algorithm.schedule(&shape, segments_of_study(bytes)), &network)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_simulated_along_a_row_is_what_the_formulas_say() {
        for (form, reading) in [(Form::Bucket, Reading::Only), (Form::TwoPhase, Reading::Honest)] {
            for per_node in PER_NODE {
                let (simulated, formula) =
                    (along_a_row(form, per_node).unwrap(), formula(reading, per_node).unwrap());
                for (simulated, formula) in simulated.into_iter().zip(formula) {
                    assert!((simulated.1 / formula.1 - 1.0).abs() < 0.01, "{simulated:?} {formula:?}");
                }
            }
        }
    }
}
