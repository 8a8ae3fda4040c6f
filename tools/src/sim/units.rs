//! Reads times from the command line; shows sizes and rates.

use tasuki_schedule::network::Time;

const TIMES: [(&str, f64); 4] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
/// Longest computing time, in seconds.
const COMPUTE_MAX: f64 = 1000.0;

/// Reads a time with its unit.
pub(super) fn time(text: &str) -> Result<Time, String> {
    let split = TIMES.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let seconds = split.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    match seconds {
        Some(seconds) if (0.0..=COMPUTE_MAX).contains(&seconds) => Ok(Time::of_seconds(seconds)),
        Some(seconds) if seconds >= 0.0 => Err(format!("{text} is more than {COMPUTE_MAX} s")),
        _ => Err("give a time with its unit (ns, us, ms, s), like 10us or 1.5ms".into()),
    }
}

const RATES: [(&str, f64); 4] = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("Gbit/s", 1.25e8)];

/// Reads the time of a byte: a time with its unit, or a rate.
pub(super) fn per_byte(text: &str) -> Result<Time, String> {
    let found = RATES.iter().find_map(|(unit, rate)| Some((text.strip_suffix(unit)?, rate)));
    let of_rate = found.and_then(|(number, unit)| Some(1.0 / (number.parse::<f64>().ok()? * unit)));
    let of_rate = of_rate.filter(|seconds| (1e-15..=COMPUTE_MAX).contains(seconds)).map(Time::of_seconds);
    of_rate.or_else(|| time(text.strip_suffix("/B").unwrap_or(text)).ok()).ok_or_else(|| {
        "give the time of a byte with its unit, like 0.1ns, or a rate, like 12.5GB/s or 100Gbit/s".into()
    })
}

/// Bytes as text: a whole number in the largest unit that divides them, otherwise three digits.
pub(super) fn show(bytes: u64) -> String {
    let units = [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, factor)| bytes >= *factor) {
        Some((name, factor)) if bytes.is_multiple_of(factor) => format!("{} {name}", bytes / factor),
        Some((name, factor)) => {
            let value = bytes as f64 / factor as f64;
            let digits = 2_usize.saturating_sub(value.log10() as usize);
            format!("{value:.digits$} {name}")
        }
        None => format!("{bytes} B"),
    }
}

/// Bytes per second as text, with three digits.
pub(super) fn rate(rate: f64) -> String {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];
    let (name, unit) = units.into_iter().find(|(_, unit)| rate >= *unit).unwrap_or(units[3]);
    let value = rate / unit;
    let digits = 2_usize.saturating_sub(value.max(1.0).log10() as usize);
    format!("{value:.digits$} {name}")
}

/// A power of ten, in seconds, as text.
pub(super) fn power_of_ten_seconds(seconds: f64) -> String {
    let (unit, name) = [(1.0, "s"), (1e-3, "ms")]
        .into_iter()
        .find(|(unit, _)| seconds >= *unit * 0.999)
        .unwrap_or((1e-6, "us"));
    format!("{:.0} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown() {
        let shown = [0, 8, 65536, 1 << 20, 1500].map(show);
        assert_eq!(shown, ["0 B", "8 B", "64 KiB", "1 MiB", "1.46 KiB"]);
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(time("10us"), Ok(Time::nanoseconds(10_000)));
        assert_eq!(time("1.5ms"), Ok(Time::nanoseconds(1_500_000)));
        assert_eq!(time("0s"), Ok(Time::ZERO));
        assert_eq!(time("36000s"), Err("36000s is more than 1000 s".into()));
        assert!(time("10").is_err() && time("us").is_err() && time("-1s").is_err() && time("nans").is_err());
    }

    #[test]
    fn what_a_byte_takes_is_a_time_or_a_rate() {
        assert_eq!(per_byte("12.5GB/s"), Ok(Time::femtoseconds(80_000)));
        assert_eq!(per_byte("100Gbit/s"), Ok(Time::femtoseconds(80_000)));
        assert_eq!(per_byte("0.104762ns"), Ok(Time::femtoseconds(104_762)));
        assert_eq!(per_byte("0.05ns/B"), per_byte("20GB/s"));
        assert_eq!(per_byte("0ns"), Ok(Time::ZERO));
        for wrong in ["", "GB/s", "0GB/s", "-1GB/s", "12.5", "9e99GB/s", "nanGB/s", "1GB"] {
            assert!(per_byte(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(
            [9.474e9, 123.4e6, 71.4e3, 5.0].map(rate),
            ["9.47 GB/s", "123 MB/s", "71.4 kB/s", "5.00 B/s"]
        );
    }
}
