//! Parses ranks, bytes, sides of a grid, and blocks of different sizes.

use std::sync::Arc;
use tasuki_command::misuse;
use tasuki_schedule::BYTES_MAX;
use tasuki_schedule::shape::{CollectiveKind, Counts};

/// Largest number of ranks: as many as addresses can name.
pub(crate) const RANKS_MAX: usize = tasuki_core::bootstrap::settings::SIZE_MAX;
/// Largest number of dimensions of a grid.
const DIMENSIONS_MAX: usize = 8;

/// Ranks along each dimension.
#[derive(Clone)]
pub(crate) struct Grid(pub(super) Vec<usize>);

/// A number of ranks.
pub(crate) fn ranks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=RANKS_MAX).contains(number));
    number.ok_or_else(|| format!("give 1 to {RANKS_MAX} ranks"))
}

/// A number of bytes, with an optional unit (K, M, G: powers of two).
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const HOW: &str = "give bytes as in 1000, 64K or 1MiB";
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let shift = match unit.to_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(HOW.into()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or(HOW)?;
    if bytes <= BYTES_MAX { Ok(bytes) } else { Err(format!("at most {BYTES_MAX} bytes are possible")) }
}

/// The sides of a grid.
pub(crate) fn grid(text: &str) -> Result<Grid, String> {
    let sides: Option<Vec<usize>> = text.split('x').map(|side| side.parse().ok()).collect();
    let is_sane = |sides: &Vec<usize>| {
        sides.len() <= DIMENSIONS_MAX && sides.iter().all(|side| (1..=RANKS_MAX).contains(side))
    };
    let sides = sides.filter(is_sane);
    sides.map(Grid).ok_or_else(|| format!("give the sides of a grid, at most {DIMENSIONS_MAX}, as in 4x2"))
}

/// Blocks of different sizes, from a list or from a file that holds one.
pub(super) fn each(list: &str, collective: CollectiveKind, ranks: usize) -> anyhow::Result<Counts> {
    use CollectiveKind::*;
    let wanted = match collective {
        Gather | Scatter | Allgather | ReduceScatter => ranks,
        Alltoall => ranks.saturating_mul(ranks),
        _ => return Err(misuse("--counts: all blocks of this collective have one size; give --bytes")),
    };
    let is_list = list.split(',').all(|word| bytes(word).is_ok());
    let no_file = |error| misuse(format!("--counts {list} is no list of bytes, and as a file: {error}"));
    let read = || super::text(list).map_err(no_file);
    let text = if is_list { list.to_string() } else { read()? };
    let numbers = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let counts: Result<Vec<u64>, _> = numbers.map(|word| bytes(word).map_err(|why| (word, why))).collect();
    let counts = counts.map_err(|(word, why)| misuse(format!("--counts: {word:?}: {why}")))?;
    if counts.len() != wanted {
        return Err(misuse(format!("--counts has {} numbers, but needs {wanted} here", counts.len())));
    }
    if counts.iter().map(|&count| u128::from(count)).sum::<u128>() > BYTES_MAX.into() {
        return Err(misuse(format!("the sum of --counts is more than {BYTES_MAX} bytes")));
    }
    let counts = Arc::from(counts);
    Ok(if collective == Alltoall { Counts::Matrix(counts) } else { Counts::Each(counts) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_parsed() {
        assert_eq!((bytes("1000"), bytes("8K"), bytes("1MiB")), (Ok(1000), Ok(8192), Ok(1 << 20)));
        assert_eq!((bytes("0"), bytes("8b"), bytes("64kb")), (Ok(0), Ok(8), Ok(65536)));
        for wrong in ["", "K", "8Q", "8I", "1T", "-1", "1.5K", "99999999999999999999", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_parsed() {
        let each = |list: &str, collective| each(list, collective, 2).map_err(|error| error.to_string());
        assert_eq!(each("8,0", CollectiveKind::Gather).unwrap(), Counts::Each(Arc::from([8, 0])));
        assert_eq!(
            each("1,2,3,4", CollectiveKind::Alltoall).unwrap(),
            Counts::Matrix(Arc::from([1, 2, 3, 4]))
        );
        assert!(each("8", CollectiveKind::Gather).unwrap_err().contains("needs 2 here"));
        assert!(each("8,0", CollectiveKind::Bcast).unwrap_err().contains("have one size"));
        assert!(each("no-such-file", CollectiveKind::Gather).unwrap_err().contains("no-such-file"));
    }

    #[test]
    fn grids_are_parsed() {
        assert_eq!(grid("4x2").map(|grid| grid.0), Ok(vec![4, 2]));
        for wrong in ["", "0x1", "4x", "1x1x1x1x1x1x1x1x1"] {
            assert!(grid(wrong).is_err(), "{wrong}");
        }
    }
}
