//! Sizes as they are typed and shown: 8, 64K, 1M.

use crate::case::{Case, Kind};
use std::collections::BTreeSet;

const UNITS: [(&str, u64); 4] = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];

/// Bytes of the blocks of bandwidth cases, unless `--sizes` says otherwise.
const USUAL: &[u64] = &[64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Memory that nobody has prepared is asked for from a page on.
const OWN: &[u64] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// A window of 64 larger ones would take seconds; OSU's programs end there, too.
const STREAM: &[u64] = &[64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Below, a copy is over before another processor has taken much of it.
const SHARED: &[u64] = &[1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// A word, and what no longer fits in a line.
pub(crate) const SHORT: &[u64] = &[8, 8 << 10];
/// What goes in one piece, or in several.
pub(crate) const SUMS: &[u64] = &[8, 8 << 10, 1 << 20];
pub(crate) const BROADCASTS: &[u64] = &[8, 8 << 10, 1 << 20, 8 << 20];
/// Values are sent as words of this many bytes.
const WORD: u64 = 8;
/// More than this would not tell more.
const MAX: u64 = 1 << 30;

/// The sizes of a case: those that were asked for, or else its usual ones.
pub(crate) fn of(case: Case, asked: &[u64]) -> &[u64] {
    match case {
        _ if !case.has_sizes() => &[],
        _ if !asked.is_empty() => asked,
        Case::BandwidthOwn => OWN,
        Case::BandwidthStream => STREAM,
        Case::SharedCopy => SHARED,
        Case::Bcast => BROADCASTS,
        Case::Allreduce | Case::Persistent | Case::SingleDriver => SUMS,
        _ if case.kind() == Kind::Collective => SHORT,
        _ => USUAL,
    }
}

/// The sizes of one operation among those of [`Case::Persistent`].
pub(crate) fn of_prepared(operation: Case, asked: &[u64]) -> &[u64] {
    match operation {
        Case::Barrier => &SHORT[..1],
        _ if !asked.is_empty() => asked,
        Case::Bcast | Case::Allreduce => SUMS,
        _ => SHORT,
    }
}

/// All sizes of some cases, in order.
pub(crate) fn of_all(cases: &[Case], asked: &[u64]) -> Vec<u64> {
    let all: BTreeSet<u64> = cases.iter().flat_map(|&case| of(case, asked)).copied().collect();
    all.into_iter().collect()
}

/// One size: a number and K, M or G, which are powers of two.
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

/// A size for people.
pub(crate) fn show(bytes: u64) -> String {
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
    }

    #[test]
    fn cases_have_sizes_of_their_own_unless_some_are_asked_for() {
        assert_eq!(of(Case::BandwidthOwn, &[]).first(), Some(&4096));
        assert_eq!(of(Case::BandwidthOwn, &[8]), [8]);
        assert_eq!(of(Case::Message, &[8]), [0; 0]);
        assert_eq!((of(Case::Barrier, &[8]), of(Case::Scatter, &[])), (&[][..], SHORT));
        assert_eq!(of_prepared(Case::Barrier, &[64]), [8]);
        assert_eq!((of_prepared(Case::Bcast, &[]), of_prepared(Case::Reduce, &[])), (SUMS, SHORT));
        let all = of_all(&[Case::BandwidthStream, Case::BandwidthPut], &[]);
        assert_eq!((all.len(), all.last()), (USUAL.len(), Some(&(64 << 20))));
    }
}
