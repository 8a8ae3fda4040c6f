//! Numbers, sizes and times, as they are typed and shown.

use tasuki_core::netmodel::Time;

const SIZES: [(&str, u64); 4] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];
const TIMES: [(&str, f64); 4] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
/// More ranks than that have no number.
const RANKS_MAX: usize = (1 << 24) - 1;
/// More bytes than that take longer than virtual time lasts.
const BYTES_MAX: u64 = 1 << 40;
/// Longest time of computing, in seconds.
const COMPUTE_MAX: f64 = 1000.0;

/// A number of ranks.
pub(super) fn ranks(text: &str) -> Result<usize, String> {
    let ranks = text.parse().ok().filter(|ranks| (1..=RANKS_MAX).contains(ranks));
    ranks.ok_or_else(|| format!("give 1 to {RANKS_MAX} ranks"))
}

/// Bytes: a number, and K, M or G, which are powers of two.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let upper = text.to_uppercase();
    let plain = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let split = SIZES.iter().find_map(|(unit, factor)| Some((plain.strip_suffix(unit)?, factor)));
    let bytes = split.and_then(|(number, factor)| number.parse::<u64>().ok()?.checked_mul(*factor));
    match bytes {
        Some(bytes) if bytes <= BYTES_MAX => Ok(bytes),
        Some(_) => Err(format!("give at most {}", show(BYTES_MAX))),
        None => Err("give a size like 8, 64K or 1M".into()),
    }
}

/// A time with its unit.
pub(super) fn time(text: &str) -> Result<Time, String> {
    let split = TIMES.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let seconds = split.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    let seconds = seconds.filter(|seconds| (0.0..=COMPUTE_MAX).contains(seconds));
    seconds.map(Time::of_seconds).ok_or_else(|| "give a time with its unit, like 10us or 1.5ms".into())
}

/// Bytes for people: whole in the largest unit in which they are, or else with three digits.
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

/// Bytes per second for people, with three digits.
pub(super) fn rate(rate: f64) -> String {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)];
    let (name, unit) = units.into_iter().find(|(_, unit)| rate >= *unit).unwrap_or(units[2]);
    let value = rate / unit;
    let digits = 2_usize.saturating_sub(value.max(1.0).log10() as usize);
    format!("{value:.digits$} {name}")
}

/// Segments of a message, as the study of offloaded broadcasts has them.
pub(super) fn usual_segments(bytes: u64) -> u64 {
    match bytes.next_power_of_two().trailing_zeros() {
        0..=15 => 1,
        16..=17 => 4,
        18..=19 => 8,
        20..=23 => 16,
        24..=26 => 32,
        exponent @ 27..=30 => 64 << (exponent - 27),
        _ => 512,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, value, shown) in [
            ("0", 0, "0 B"),
            ("8", 8, "8 B"),
            ("64K", 65536, "64 KiB"),
            ("1mib", 1 << 20, "1 MiB"),
            ("1500", 1500, "1.46 KiB"),
            ("1T", 0, ""),
        ] {
            match bytes(text) {
                Ok(bytes) => assert_eq!((bytes, show(bytes).as_str()), (value, shown)),
                Err(_) => assert_eq!(shown, ""),
            }
        }
        assert!(bytes("9999999G").is_err() && bytes("K").is_err() && bytes("-1").is_err());
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(time("10us"), Ok(Time::nanoseconds(10_000)));
        assert_eq!(time("1.5ms"), Ok(Time::nanoseconds(1_500_000)));
        assert_eq!(time("0s"), Ok(Time::ZERO));
        assert!(time("10").is_err() && time("us").is_err() && time("-1s").is_err() && time("nans").is_err());
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(
            [rate(9.474e9), rate(123.4e6), rate(71.4e3), rate(5.0)],
            ["9.47 GB/s", "123 MB/s", "71.4 kB/s", "0.01 kB/s"]
        );
    }

    #[test]
    fn segments_are_those_of_the_study() {
        let of = |bytes| usual_segments(bytes);
        assert_eq!([of(1 << 10), of(32 << 10), of(64 << 10), of(512 << 10)], [1, 1, 4, 8]);
        assert_eq!(
            [of(8 << 20), of(64 << 20), of(128 << 20), of(1 << 30), of(1 << 40)],
            [16, 32, 64, 512, 512]
        );
    }
}
