//! Fits the cost parameters to measurements.
//!
//! An estimate is a sum of shares times prices. The fit minimizes the sum of squared relative errors, so a barrier of
//! 100 ns counts as much as a broadcast of a millisecond. A small penalty for the distance from the built-in prices
//! keeps a price at its default if no measurement depends on it.

use super::cost_model::Shares;
use super::cost_parameters::COUNT;
use super::{CostParameters, Selection};
use crate::{Algorithm, Shape};

/// The measured time of a start.
#[derive(Clone, Debug)]
pub struct Measurement<'m> {
    /// The algorithm.
    pub algorithm: &'m Algorithm,
    /// The shape of the collective.
    pub shape: Shape,
    /// Number of ranks that shared a processor.
    pub per_processor: usize,
    /// Time in nanoseconds.
    pub ns: f64,
}

/// The penalty of a price twice the built-in one, relative to the error of an estimate twice the measured time.
const DEFAULT_PENALTY: f64 = 0.005;
/// The lowest price relative to the built-in one; its reciprocal is the highest.
const LOWEST_RATIO: f64 = 0.05;
/// Passes over all prices, many more than convergence takes.
const SWEEPS: usize = 500;

impl CostParameters {
    /// The cost parameters that explain these measurements best.
    pub fn fitted(figures: &[Measurement<'_>]) -> CostParameters {
        let rows: Vec<Shares> = figures.iter().filter_map(relative).collect();
        let built_in = CostParameters::default().prices();
        // Prices in units of the built-in ones.
        let rows: Vec<Shares> =
            rows.into_iter().map(|row| std::array::from_fn(|at| row[at] * built_in[at])).collect();
        let mut prices = [1.0; COUNT];
        for _ in 0..SWEEPS {
            for at in 0..prices.len() {
                let (mut above, mut below) = (DEFAULT_PENALTY, DEFAULT_PENALTY);
                for row in &rows {
                    let others: f64 = (0..prices.len())
                        .filter(|other| *other != at)
                        .map(|other| row[other] * prices[other])
                        .sum();
                    above += row[at] * (1.0 - others);
                    below += row[at] * row[at];
                }
                prices[at] = (above / below).clamp(LOWEST_RATIO, 1.0 / LOWEST_RATIO);
            }
        }
        CostParameters::at(std::array::from_fn(|at| prices[at] * built_in[at]))
    }
}

/// The shares of a measurement, divided by the measured time.
fn relative(figure: &Measurement<'_>) -> Option<Shares> {
    let selection = Selection { per_processor: figure.per_processor, ..Selection::default() };
    let work = figure.algorithm.work(&figure.shape).filter(|_| figure.ns > 0.0)?;
    Some(selection.shares(&work, figure.shape.ranks).map(|share| share / figure.ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CollectiveKind;

    /// The times that a machine with these parameters would measure.
    fn figures(costs: CostParameters, crowds: &[usize]) -> Vec<Measurement<'static>> {
        let mut all = Vec::new();
        for &per_processor in crowds {
            for collective in [CollectiveKind::Barrier, CollectiveKind::Bcast, CollectiveKind::Allreduce] {
                for algorithm in collective.algorithms() {
                    for bytes in [8, 1 << 15, 1 << 20] {
                        let shape = Shape::new(collective, 2 * per_processor, 0, bytes);
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
    fn a_fit_recovers_the_parameters_behind_its_measurements() {
        let costs = "hand_over_ns=200,turn_ns=3000,step_ns=60,copied_per_us=6000,combined_per_us=2000";
        let costs: CostParameters = costs.parse().unwrap();
        let found = CostParameters::fitted(&figures(costs, &[1, 2]));
        for ((name, expected), (_, found)) in costs.named().into_iter().zip(found.named()) {
            assert!(found.abs_diff(expected) * 10 <= expected, "{name}: {found} and not {expected}");
        }
    }

    #[test]
    fn an_unmeasured_parameter_keeps_its_default() {
        let costs = CostParameters { hand_over_ns: 300, ..CostParameters::default() };
        let found = CostParameters::fitted(&figures(costs, &[1]));
        assert!(found.hand_over_ns > 250 && found.turn_ns == CostParameters::default().turn_ns, "{found}");
        assert_eq!(CostParameters::fitted(&[]), CostParameters::default());
    }
}
