//! The count of words on ranks that are threads or simulated: equal to the serial count.
#![allow(clippy::unwrap_used)]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tasuki::{Sim, sim};
use tasuki_examples::kmer::{Counts, Shape, count, serial};
use tempfile::TempDir;

/// A genome of two sequences in which some words are frequent, with letters other than A, C, G and T. It is the same
/// in each run.
fn genome(letters: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::from(">first\n");
    for at in 0..letters {
        if at == letters / 2 {
            text.push_str("\n>second\n");
        }
        let random = next();
        let letter =
            if random.is_multiple_of(97) { 'N' } else { ['A', 'C', 'G', 'T', 'a', 'A'][random as usize % 6] };
        text.push(letter);
        if at % 60 == 59 {
            text.push('\n');
        }
    }
    text
}

fn file(folder: &TempDir, letters: usize) -> PathBuf {
    let path = folder.path().join("genome.fa");
    std::fs::write(&path, genome(letters)).unwrap();
    path
}

fn is_equal(counts: Option<Counts>, path: &Path, shape: Shape) -> bool {
    let (counts, reference) = (counts.unwrap(), serial(path, shape).unwrap());
    assert!(reference.distinct() > 0, "the file has words");
    counts.difference(&reference).is_none() && counts == reference
}

#[test]
fn every_count_equals_the_serial_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, 20_000);
    for (k, canonical) in [(1, false), (4, true), (11, false), (31, true)] {
        let shape = Shape { k, canonical };
        for ranks in [1, 2, 5] {
            let mut counts = tasuki::local(ranks, |job| count(job, &path, shape, |_, _| ())).unwrap();
            assert!(is_equal(counts.swap_remove(0), &path, shape), "k = {k}, {ranks} ranks");
        }
    }
}

#[test]
fn every_seed_gives_the_serial_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, 3_000);
    let shape = Shape { k: 3, canonical: true };
    for seed in 0..5 {
        let mut outcome = sim(Sim::seed(seed).ranks(3), |job| count(job, &path, shape, |_, _| ())).unwrap();
        assert!(is_equal(outcome.values.swap_remove(0).flatten(), &path, shape), "seed {seed}");
    }
}

#[test]
fn a_file_without_words_has_no_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.fa");
    std::fs::write(&path, ">nothing\nACG\n").unwrap();
    let shape = Shape { k: 5, canonical: false };
    let mut counts = tasuki::local(2, |job| count(job, &path, shape, |_, _| ())).unwrap();
    assert_eq!(counts.swap_remove(0).unwrap().distinct(), 0);
}

fn run(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_kmer");
    let output = Command::new(program).args(arguments).current_dir(folder.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_program_prints_the_most_frequent_and_draws_the_histogram() {
    let folder = tempfile::tempdir().unwrap();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(genome(5_000).as_bytes()).unwrap();
    std::fs::write(folder.path().join("genome.fa.gz"), compressed.finish().unwrap()).unwrap();
    let (code, out, err) = run(&folder, &["-k", "4", "--canonical", "--check", "genome.fa.gz"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("AAAA") && out.contains("equal to the serial count\nhistogram: kmer.svg"), "{out}");
    assert!(std::fs::read_to_string(folder.path().join("kmer.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn wrong_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(&folder, &["no.fa"]);
    assert!(code == Some(1) && err.contains("cannot read no.fa: No such file"), "{err}");
    let (code, _, err) = run(&folder, &["-k", "32", "no.fa"]);
    assert!(code == Some(2) && err.contains("1..=31"), "{err}");
}
