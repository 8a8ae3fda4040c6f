//! The axis of a picture: round times in a readable unit. Also reads times from the command line.

use std::ops::Range;

/// A unit of time: its name and its length in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) us: f64,
}

const UNITS: [Unit; 4] = [
    Unit { name: "s", us: 1e6 },
    Unit { name: "ms", us: 1e3 },
    Unit { name: "us", us: 1.0 },
    Unit { name: "ns", us: 1e-3 },
];

/// The unit for times of about `us` microseconds.
pub(super) fn unit(us: f64) -> Unit {
    UNITS.into_iter().find(|unit| us >= 2.0 * unit.us).unwrap_or(UNITS[3])
}

/// Round times in that range, about `count` of them.
pub(super) fn ticks(range: &Range<f64>, count: f64) -> Vec<f64> {
    let rough = (range.end - range.start) / count;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (range.start / step).ceil() as i64;
    let last = (range.end / step).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// A time in that unit, with just enough digits to tell apart ticks of distance `step`.
pub(super) fn label(us: f64, step: f64, unit: Unit) -> String {
    let digits = (-(step / unit.us).log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{:.digits$}", us / unit.us)
}

/// Reads a time from the command line, in us.
pub(super) fn time(text: &str) -> Result<f64, String> {
    let at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, name) = text.split_at(at);
    let unit = UNITS.into_iter().find(|unit| unit.name == name);
    let unit = unit.ok_or("give a time with its unit: ns, us, ms or s")?;
    let number: f64 = number.trim().parse().map_err(|_| "give a time, as in 12us or 1.5ms")?;
    let us = number * unit.us;
    if us.is_finite() && us >= 0.0 { Ok(us) } else { Err("a time is 0 or more".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!((time("12us"), time("1.5ms"), time("0s")), (Ok(12.0), Ok(1500.0), Ok(0.0)));
        for wrong in ["", "12", "us", "-1us", "1 h", "nanus"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(&(0.0..10.0), 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(&(1203.0..1219.0), 4.0), [1205.0, 1210.0, 1215.0]);
        assert_eq!(label(1205.0, 5.0, unit(1219.0)), "1205");
        assert_eq!(label(1_205_000.0, 500.0, unit(1e6)), "1205.0");
    }
}
