//! The trace of a whole job. The launcher checks before the job starts that it can write the trace,
//! and writes it when the job has ended.

use super::{json, lanes, link, rank_files};
use crate::run::names;
use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tasuki_command::misuse;
use tasuki_core::base::Rank;
use tasuki_core::engine::trace::part_file;

/// A trace of a running job.
#[derive(Debug)]
pub(crate) struct Trace {
    file: PathBuf,
    ranks: usize,
}

impl Trace {
    /// Checks that the file and its parts can be written, and removes the parts of an earlier job.
    /// An error is misuse by the user.
    pub(crate) fn begin(file: &Path, ranks: usize) -> anyhow::Result<Trace> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        let refused = |path: &Path, error: std::io::Error| {
            misuse(format!("the trace cannot be written to {}: {error}", path.display()))
        };
        let part = part_file(&file, Rank(0));
        for path in [&file, &part] {
            File::create(path).map_err(|error| refused(path, error))?;
        }
        rank_files::remove(&file, ranks);
        Ok(Trace { file, ranks })
    }

    /// Joins the parts that the ranks wrote. Returns remarks for the user.
    pub(crate) fn join(&self) -> anyhow::Result<Vec<String>> {
        let found = rank_files::read(&self.file, self.ranks);
        let remarks = remarks(&found);
        let sheet = link::link(&found.parts);
        write(&self.file, &found, &sheet)
            .with_context(|| format!("the trace could not be written to {}", self.file.display()))?;
        rank_files::remove(&self.file, self.ranks);
        Ok(remarks)
    }
}

/// Joins the parts that lie beside a file. Returns remarks for the user.
pub(super) fn join_again(file: &Path) -> anyhow::Result<Vec<String>> {
    let none = || misuse(format!("there are no parts {}.rank0 and so on", file.display()));
    let ranks = rank_files::count(file).ok_or_else(none)?;
    Trace { file: file.to_path_buf(), ranks }.join()
}

fn remarks(found: &rank_files::Found) -> Vec<String> {
    let mut remarks = found.remarks.clone();
    if !found.missing.is_empty() {
        let who = names(&found.missing);
        remarks.push(format!(
            "the trace has no events of {who}: the program does not use Tasuki, was killed, or had no time to write"
        ));
    }
    let lost: u64 = found.parts.iter().map(|part| part.lost).sum();
    if lost > 0 {
        let full = found.parts.iter().filter(|part| part.lost > 0);
        let who = names(&full.map(|part| part.rank.index()).collect::<Vec<_>>());
        remarks.push(format!(
            "the first {lost} events of {who} are not in the trace, there was no room: \
             TASUKI_TRACE_EVENTS=N keeps the last N of each rank"
        ));
    }
    remarks
}

/// Writes the trace, compressed if the file's name ends in `.gz`.
fn write(file: &Path, found: &rank_files::Found, sheet: &lanes::Sheet) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    if file.extension().is_some_and(|end| end == "gz") {
        let mut compressed = GzEncoder::new(out, Compression::default());
        json::write(&mut compressed, found, sheet)?;
        out = compressed.finish()?;
    } else {
        json::write(&mut out, found, sheet)?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_place_that_cannot_be_written_is_reported_and_old_parts_go() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("none").join("x.json");
        let error = Trace::begin(&wrong, 2).unwrap_err().to_string();
        assert!(error.contains("cannot be written") && error.contains("none"), "{error}");
        let file = folder.path().join("x.json");
        fs::write(part_file(&file, Rank(1)), "of yesterday").unwrap();
        let trace = Trace::begin(&file, 2).unwrap();
        assert!(!part_file(&file, Rank(1)).exists());
        assert!(trace.join().unwrap()[0].starts_with("the trace has no events of ranks 0, 1"));
        assert!(serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&file).unwrap()).is_ok());
    }
}
