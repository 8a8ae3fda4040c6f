//! Sizes as they are typed and shown: 8, 64K, 1M.

const UNITS: [(&str, u64); 4] = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];

/// Bytes of the blocks of bandwidth cases, unless `--sizes` says otherwise.
pub(super) const DEFAULT: [u64; 6] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Values are sent as words of this many bytes.
const WORD: u64 = 8;
/// More than this would not tell more.
const MAX: u64 = 1 << 30;

/// One size: a number and K, M or G, which are powers of two.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit = unit.to_uppercase();
    let unit = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let bytes = digits.parse::<u64>().ok().zip(factor).and_then(|(number, f)| number.checked_mul(*f));
    match bytes {
        Some(bytes) if !bytes.is_multiple_of(WORD) || bytes == 0 => {
            Err(format!("a size is a multiple of {WORD} bytes"))
        }
        Some(bytes) if bytes > MAX => Err(format!("a size is at most {}", show(MAX))),
        Some(bytes) => Ok(bytes),
        None => Err("give sizes like 8,64K,1M".into()),
    }
}

/// A size for people.
pub(super) fn show(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, factor)| bytes.is_multiple_of(*factor) && bytes >= *factor);
    match unit {
        Some((name, factor)) if *factor > 1 => format!("{} {name}iB", bytes / factor),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes, shown) in
            [("8", 8, "8 B"), ("64K", 65536, "64 KiB"), ("1m", 1 << 20, "1 MiB"), ("2MiB", 2 << 20, "2 MiB")]
        {
            assert_eq!(parse(text), Ok(bytes));
            assert_eq!(show(bytes), shown);
        }
        assert_eq!(show(1000), "1000 B");
        for wrong in ["", "K", "0", "12", "8X", "-8", "2G", "99999999999999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(DEFAULT.iter().all(|bytes| bytes.is_multiple_of(WORD)));
    }
}
