//! Small schedules of all algorithms.

use crate::json_plan::Plan;
use std::sync::Arc;
use tasuki_schedule::Schedule;
use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
use tasuki_schedule::json;
use tasuki_schedule::{CollectiveKind, Counts, NeighbourGraph, Placement, Shape};

/// A schedule and its name.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) plan: Plan,
}

/// The schedules of each algorithm for some shapes that it supports, with these numbers of ranks.
pub(crate) fn cases(ranks: std::ops::RangeInclusive<usize>) -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in ALGORITHMS {
        for ranks in ranks.clone() {
            cases.extend(
                shapes(algorithm.collective, ranks).into_iter().filter_map(|shape| case(algorithm, &shape)),
            );
        }
    }
    cases
}

fn shapes(collective: CollectiveKind, ranks: usize) -> Vec<Shape> {
    let combines = matches!(
        collective,
        CollectiveKind::Reduce | CollectiveKind::Allreduce | CollectiveKind::ReduceScatter
    ) || matches!(collective, CollectiveKind::Scan | CollectiveKind::Exscan);
    let even =
        |root: usize, bytes| Shape { in_order: combines, ..Shape::new(collective, ranks, root, bytes) };
    let mut shapes = vec![even(0, 16), even(ranks - 1, 9)];
    if combines {
        shapes.push(Shape { in_order: false, ..even(ranks / 2, 16) });
    }
    let odd = |at: usize| (at * 37 % 3 * 4) as u64;
    let uneven = |counts| Shape { counts, ..Shape::new(collective, ranks, ranks / 2, 8) };
    match collective {
        CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::Allgather => {
            shapes.push(uneven(Counts::Each((0..ranks).map(odd).collect())));
        }
        CollectiveKind::Alltoall => {
            shapes.push(uneven(Counts::Matrix((0..ranks * ranks).map(odd).collect())))
        }
        CollectiveKind::Neighbours => {
            let ring = NeighbourGraph::cartesian(&[ranks], &[true], 8).expect("there are ranks");
            shapes = vec![uneven(Counts::Graph(Arc::new(ring)))];
        }
        _ => {}
    }
    if ranks.is_multiple_of(2) && ranks > 2 {
        let placement = Placement { per_node: 2, torus: [ranks / 2, 1, 1] };
        shapes.push(Shape { placement, ..even(1, 12) });
    }
    shapes
}

fn case(algorithm: &Algorithm, shape: &Shape) -> Option<Case> {
    if !(algorithm.fits)(shape) {
        return None;
    }
    let schedule = algorithm.schedule(shape, 2);
    let Shape { collective, ranks, root, in_order, .. } = shape;
    let name = format!(
        "{} by {}, {ranks} ranks, root {root}, in order: {in_order}",
        collective.name(),
        algorithm.name
    );
    Some(Case { name, plan: Plan::read(&text(&schedule)) })
}

pub(crate) fn text(schedule: &Schedule) -> String {
    let mut bytes = Vec::new();
    json::write(schedule, &mut bytes).expect("memory takes all");
    String::from_utf8(bytes).expect("it is text")
}

/// Proves a plan. The error is the fault.
pub(crate) fn proven(plan: &Plan) -> Result<(), String> {
    let schedule = json::parse(&plan.text()).map_err(|error| error.to_string())?;
    schedule.check().map(drop).map_err(|fault| fault.to_string())
}
