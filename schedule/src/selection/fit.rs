//! Costs from what was measured: those at which the model's estimates are nearest to it.
//!
//! An estimate is a sum of shares times prices, so the nearest prices are those with the least sum of squares, here of
//! relative errors: a barrier of 100 ns counts as much as a broadcast of a millisecond. A little is added for prices
//! that lie far from the built-in ones, so that one that no measurement tells of stays where it is.

use super::cost::Shares;
use super::costs::COUNT;
use super::{Costs, Selection};
use crate::{Algorithm, Shape};

/// CombineWith long a start took.
#[derive(Clone, Debug)]
pub struct Measurement<'m> {
    /// By which algorithm.
    pub algorithm: &'m Algorithm,
    /// Of what.
    pub shape: Shape,
    /// CombineWith many ranks shared a processor.
    pub per_processor: usize,
    /// Nanoseconds.
    pub ns: f64,
}

/// What a price that is twice the built-in one counts, beside an estimate that is twice what was measured.
const PULL: f64 = 0.005;
/// Prices are no less than this part of the built-in ones, and no more than so many times as high.
const LEAST: f64 = 0.05;
/// Each price in turn, so often: many more than it takes.
const SWEEPS: usize = 500;

impl Costs {
    /// The costs that explain these figures best.
    pub fn fitted(figures: &[Measurement<'_>]) -> Costs {
        let rows: Vec<Shares> = figures.iter().filter_map(relative).collect();
        let built_in = Costs::default().prices();
        // In units of the built-in prices.
        let rows: Vec<Shares> =
            rows.into_iter().map(|row| std::array::from_fn(|at| row[at] * built_in[at])).collect();
        let mut prices = [1.0; COUNT];
        for _ in 0..SWEEPS {
            for at in 0..prices.len() {
                let (mut above, mut below) = (PULL, PULL);
                for row in &rows {
                    let others: f64 = (0..prices.len())
                        .filter(|other| *other != at)
                        .map(|other| row[other] * prices[other])
                        .sum();
                    above += row[at] * (1.0 - others);
                    below += row[at] * row[at];
                }
                prices[at] = (above / below).clamp(LEAST, 1.0 / LEAST);
            }
        }
        Costs::at(std::array::from_fn(|at| prices[at] * built_in[at]))
    }
}

/// The shares of a figure, for each nanosecond that it took.
fn relative(figure: &Measurement<'_>) -> Option<Shares> {
    let selection = Selection { per_processor: figure.per_processor, ..Selection::default() };
    let work = figure.algorithm.work(&figure.shape).filter(|_| figure.ns > 0.0)?;
    Some(selection.shares(&work, figure.shape.ranks).map(|share| share / figure.ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CollectiveKind;

    /// What a machine with such costs would measure.
    fn figures(costs: Costs, crowds: &[usize]) -> Vec<Measurement<'static>> {
        let mut all = Vec::new();
        for &per_processor in crowds {
            for operation in [CollectiveKind::Barrier, CollectiveKind::Bcast, CollectiveKind::Allreduce] {
                for algorithm in operation.algorithms() {
                    for bytes in [8, 1 << 15, 1 << 20] {
                        let shape = Shape::new(operation, 2 * per_processor, 0, bytes);
                        let selection = Selection { costs, per_processor, ..Selection::default() };
                        let Some(ns) = selection.estimate(algorithm, &shape) else { continue };
                        all.push(Measurement { algorithm, shape, per_processor, ns });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn costs_are_found_from_what_they_lead_to() {
        let costs = "hand_over_ns=200,turn_ns=3000,step_ns=60,copied_per_us=6000,combined_per_us=2000";
        let costs: Costs = costs.parse().unwrap();
        let found = Costs::fitted(&figures(costs, &[1, 2]));
        for ((name, wanted), (_, found)) in costs.named().into_iter().zip(found.named()) {
            assert!(found.abs_diff(wanted) * 10 <= wanted, "{name}: {found} and not {wanted}");
        }
    }

    #[test]
    fn what_nothing_tells_of_stays() {
        let costs = Costs { hand_over_ns: 300, ..Costs::default() };
        let found = Costs::fitted(&figures(costs, &[1]));
        assert!(found.hand_over_ns > 250 && found.turn_ns == Costs::default().turn_ns, "{found}");
        assert_eq!(Costs::fitted(&[]), Costs::default());
    }
}
