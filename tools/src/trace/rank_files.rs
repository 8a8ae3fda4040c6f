//! Reads the parts that the ranks of a job wrote beside the file of the trace.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use tasuki_core::base::Rank;
use tasuki_core::engine::trace::{RankTrace, part_file};

/// The parts that were found, with remarks for the user.
#[derive(Default)]
pub(super) struct Found {
    /// In order of ranks; some may be missing.
    pub(super) parts: Vec<RankTrace>,
    /// Ranks that left no part.
    pub(super) missing: Vec<usize>,
    /// Why some files could not be used.
    pub(super) remarks: Vec<String>,
}

/// Reads the parts of all ranks.
pub(super) fn read(file: &Path, ranks: usize) -> Found {
    let mut found = Found::default();
    for rank in Rank::all(ranks) {
        let path = part_file(file, rank);
        let part = fs::read(&path).map_err(|error| (error.kind() == ErrorKind::NotFound, error.to_string()));
        let part = part.and_then(|bytes| RankTrace::of_bytes(&bytes).map_err(|why| (false, why.to_string())));
        match part {
            Ok(part) if part.rank == rank && part.size == ranks => found.parts.push(part),
            Ok(_) => found.remarks.push(format!("{} is of another job", path.display())),
            Err((true, _)) => {}
            Err((false, why)) => found.remarks.push(format!("{}: {why}", path.display())),
        }
    }
    let has = |rank: &usize| found.parts.iter().any(|part| part.rank.index() == *rank);
    found.missing = (0..ranks).filter(|rank| !has(rank)).collect();
    found
}

/// The size of the job whose parts lie beside that file; `None` if there are none.
pub(super) fn count(file: &Path) -> Option<usize> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let begin = format!("{}.rank", file.file_name()?.to_str()?);
    let parts = fs::read_dir(folder).ok()?.flatten().filter(|entry| {
        entry.file_name().to_str().and_then(|name| name.strip_prefix(&begin)).is_some_and(is_number)
    });
    let mut sizes =
        parts.filter_map(|entry| Some(RankTrace::of_bytes(&fs::read(entry.path()).ok()?).ok()?.size));
    sizes.next()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes the parts of all ranks.
pub(super) fn remove(file: &Path, ranks: usize) {
    for rank in Rank::all(ranks) {
        let _ = fs::remove_file(part_file(file, rank)); // usually there is no such file
    }
}
