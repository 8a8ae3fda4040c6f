//! Sizes as users type and see them: 8, 64K, 1M.

pub(crate) const K: u64 = 1 << 10;
pub(crate) const M: u64 = 1 << 20;
const UNITS: [(&str, u64); 4] = [("", 1), ("K", K), ("M", M), ("G", 1 << 30)];
/// Blocks consist of words of this many bytes.
const WORD: u64 = 8;
const MAX: u64 = 1 << 30;

/// Parses a size.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
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

/// Returns a size as users see it.
pub(crate) fn show(bytes: u64) -> String {
    let is_of = |&&(_, factor): &&(&str, u64)| bytes.is_multiple_of(factor) && bytes >= factor;
    match UNITS.iter().rev().find(is_of) {
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
            [("8", 8, "8 B"), ("64K", 65536, "64 KiB"), ("1m", M, "1 MiB"), ("2MiB", 2 * M, "2 MiB")]
        {
            assert_eq!((parse(text), show(bytes).as_str()), (Ok(bytes), shown));
        }
        for wrong in ["", "K", "0", "12", "8X", "-8", "2G", "99999999999999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
