//! Compares simulated times with the formulas of the study: within one per cent at every size.
//!
//! The formulas assume one stream, or three streams without common links, along a number of hops. They ignore readiness
//! signals, which are not counted here either, and contention, so links cost nothing here.

use super::node_chain::NodeChain;
use super::tests::SessionParameters;
use super::{Inner, PROGRESS_MAX};
use crate::network::{Grid, Network, Parameters, Time, Topology};
use crate::{Step, StepKind};

const L: f64 = 1.0e-7;
const G: f64 = 1.04762e-10;
const GAP: f64 = 1.0e-9;
const HOPS: f64 = 4.0;
const ENGINES: f64 = 4.0;

/// Message sizes, each with the number of segments.
fn sizes() -> impl Iterator<Item = (u64, u64)> {
    let segments = |exponent| match exponent {
        10..=15 => 1,
        16..=17 => 4,
        18..=19 => 8,
        20..=23 => 16,
        24..=26 => 32,
        _ => 64 << (exponent - 27),
    };
    (10..=30).map(move |exponent| (1 << exponent, segments(exponent)))
}

fn seconds(session: SessionParameters, change: impl Fn(&mut Vec<Step>) + Send + Sync + 'static) -> f64 {
    let schedule = session.schedule(move |steps, _| change(steps));
    let parameters = Parameters { link_byte: Time::ZERO, ..Parameters::default() };
    let topology = Topology::Grid(Grid::mesh(&[session.row.nodes as u64]));
    let network = Network { topology, parameters, per_node: session.per_node as u64 };
    let simulated = schedule.simulate(&network).expect("it does not get stuck");
    (simulated.time - simulated.moves_from).as_seconds()
}

/// Divides the size of copies within a node by `times`.
fn shrink(steps: &mut [Step], per_node: u32, times: u64) {
    for step in steps {
        if let StepKind::Copy { from, to, bytes } = &mut step.action
            && from.rank / per_node == to.rank / per_node
        {
            *bytes /= times;
        }
    }
}

fn assert_near(simulated: f64, formula: f64, what: &str) {
    let error = simulated / formula - 1.0;
    assert!(error.abs() < 0.01, "{what}: {simulated:e} s, and {formula:e} s by the formula, {error:.4}");
}

#[test]
fn bucket_relay_time_matches_its_formula() {
    for (bytes, segments) in sizes() {
        for per_node in [2, 3, 4] {
            let row = NodeChain { nodes: HOPS as usize + 1, paths: 1 };
            let session = SessionParameters {
                row,
                per_node,
                inner: Inner::Bucket,
                bytes,
                segments,
                progress_max: PROGRESS_MAX,
            };
            let (m, n, others) = (bytes as f64 / segments as f64, segments as f64, per_node as f64 - 1.0);
            let formula = (HOPS + 1.0) * (L + m * G) + (n * others - 1.0) * (m * G + GAP);
            assert_near(
                seconds(session, |_| ()),
                formula,
                &format!("{bytes} bytes, {per_node} ranks a node"),
            );
        }
    }
}

/// Time of the inter-node part, with `segment` bytes a segment.
fn outer(segment: f64, segments: f64) -> f64 {
    (HOPS + 1.0) * (L + segment * G) + (segments - 1.0) * (segment * G + GAP)
}

#[test]
fn two_phase_time_matches_each_reading_of_its_formula() {
    for (bytes, segments) in sizes() {
        for per_node in [2, 3, 4] {
            let of = |paths| {
                // The formulas have hops + 1 inter-node terms besides the one for the copies.
                let row = NodeChain { nodes: HOPS as usize + 2, paths };
                SessionParameters {
                    row,
                    per_node,
                    inner: Inner::TwoPhase,
                    bytes,
                    segments,
                    progress_max: PROGRESS_MAX,
                }
            };
            let (m, n, others) = (bytes as f64, segments as f64, per_node as f64 - 1.0);
            let inner = |bytes: f64| L + bytes * G + GAP;
            let what = |reading: &str| format!("{reading}: {bytes} bytes, {per_node} ranks a node");
            let (ranks, peers) = (per_node as u32, per_node as u64 - 1);

            let printed = outer(m / n, n) + inner(m / ENGINES);
            let simulated = seconds(of(1), move |steps| shrink(steps, ranks, peers));
            assert_near(simulated, printed, &what("printed"));

            let drawn = outer(m / n / 3.0, n) + inner(others * m / 12.0);
            let simulated = seconds(of(3), move |steps| shrink(steps, ranks, 3));
            assert_near(simulated, drawn, &what("drawn"));

            let complete = outer(m / n / 3.0, n) + inner(others * m / ENGINES);
            assert_near(seconds(of(3), |_| ()), complete, &what("honest"));
        }
    }
}

#[test]
fn formulas_give_the_bandwidths_of_the_study() {
    let m = (1_u64 << 30) as f64;
    let rate = |time: f64| (m / time / 1e9 * 100.0).round() / 100.0;
    let bucket = |others: f64| 5.0 * (L + m / 512.0 * G) + (512.0 * others - 1.0) * (m / 512.0 * G + GAP);
    assert_eq!([1.0, 2.0, 3.0].map(|others| rate(bucket(others))), [9.47, 4.75, 3.17]);
    assert_eq!(rate(outer(m / 512.0, 512.0) + L + m / 4.0 * G + GAP), 7.59);
    let drawn =
        [1.0, 2.0, 3.0].map(|others| rate(outer(m / 1536.0, 512.0) + L + others * m / 12.0 * G + GAP));
    assert_eq!(drawn.map(|rate| (rate * 10.0).round() / 10.0), [22.8, 19.0, 16.3]);
    let complete =
        [1.0, 2.0, 3.0].map(|others| rate(outer(m / 1536.0, 512.0) + L + others * m / 4.0 * G + GAP));
    assert_eq!(complete.map(|rate| (rate * 10.0).round() / 10.0), [16.3, 11.4, 8.8]);
}
