//! What things cost here, from the times of plans whose algorithms were forced.

use anyhow::Context;
use tasuki_schedule::{CollectiveKind, CostParameters, Forced, Measurement, Shape};

/// How long a start took.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    /// By which algorithms, as `tasuki run --collectives` takes them.
    pub(crate) forced: &'static str,
    /// How many ranks there were,
    pub(crate) ranks: usize,
    /// and how many of them shared a processor.
    pub(crate) per_processor: usize,
    /// What was started, by its name and bytes of a block, as in `bcast 8`.
    pub(crate) what: String,
    /// Nanoseconds.
    pub(crate) ns: f64,
}

/// The costs that explain these times best.
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
