//! Derives the costs of operations on this machine from the times of plans with forced algorithms.

use anyhow::Context;
use tasuki_schedule::{CollectiveKind, CostParameters, Forced, Measurement, Shape};

/// How long a start took.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    /// The forced algorithms, in the syntax of `tasuki run --collectives`.
    pub(crate) forced: &'static str,
    /// The number of ranks.
    pub(crate) ranks: usize,
    /// How many of the ranks shared a processor.
    pub(crate) per_processor: usize,
    /// The operation that was started, and the bytes of its block, as in `bcast 8`.
    pub(crate) what: String,
    /// The time in nanoseconds.
    pub(crate) ns: f64,
}

/// Returns the costs that explain these times best.
pub(crate) fn costs(all: &[Timed]) -> anyhow::Result<CostParameters> {
    let figures: anyhow::Result<Vec<Measurement<'_>>> = all.iter().map(figure).collect();
    Ok(CostParameters::fitted(&figures?))
}

fn figure(timed: &Timed) -> anyhow::Result<Measurement<'static>> {
    let Timed { forced, ranks, per_processor, ref what, ns } = *timed;
    let read = || {
        let (operation, bytes) = what.split_once(' ')?;
        let operation = CollectiveKind::named(operation)?;
        let shape = Shape::new(operation, ranks, 0, bytes.parse().ok()?);
        let algorithm = forced.parse::<Forced>().ok()?.of(operation)?;
        (algorithm.fits)(&shape).then_some(Measurement { algorithm, shape, per_processor, ns })
    };
    read().with_context(|| format!("{what} by {forced} is not what was asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_must_be_of_what_was_forced() {
        let timed = |what: &str| Timed {
            forced: "barrier=central,allgather=recursive-doubling",
            ranks: 3,
            per_processor: 1,
            what: what.into(),
            ns: 1000.0,
        };
        assert!(costs(&[timed("barrier 0")]).is_ok());
        for wrong in ["barrier", "barrier x", "bcast 8", "allgather 8"] {
            assert!(costs(&[timed(wrong)]).is_err(), "{wrong}");
        }
    }
}
