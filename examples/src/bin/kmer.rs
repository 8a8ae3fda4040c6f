//! Counts the words of k letters of a genome in a hash table that is distributed over all ranks.
//! `tasuki_examples::kmer` describes how it works.

use clap::Parser;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use std::path::PathBuf;
use tasuki::prelude::*;
use tasuki_examples::kmer::{Counts, K_MAX, Shape, count, histogram, serial};
use tasuki_examples::{progress_bar, ranks};

/// The number of words that are printed.
const TOP: usize = 10;
/// The template of the progress bar.
const BAR: &str = "{wide_bar} {human_pos} of {human_len} words, {elapsed}";

/// Count the words of k letters of a FASTA file on all ranks.
#[derive(Parser)]
#[command(name = "kmer", after_help = "Example: tasuki run -n 4 kmer -k 8 --canonical lambda_virus.fa")]
struct Options {
    /// FASTA file, plain or compressed by gzip
    file: PathBuf,
    /// Letters of a word
    #[arg(short, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=i64::from(K_MAX)))]
    k: u32,
    /// Count a word and its reverse complement as one
    #[arg(long)]
    canonical: bool,
    /// Where rank 0 writes the histogram of counts
    #[arg(long, default_value = "kmer.svg")]
    output: PathBuf,
    /// Compare with a serial count
    #[arg(long)]
    check: bool,
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    let shape = Shape { k: options.k, canonical: options.canonical };
    let bar = progress_bar::on_first_rank(job, BAR);
    let counts = count(job, &options.file, shape, |passed, windows| {
        bar.set_length(windows);
        bar.set_position(passed);
    })?;
    bar.finish_and_clear();
    counts.map_or(Ok(()), |counts| report(job, &counts, options))
}

/// Checks, draws and prints the counts on rank 0.
fn report(job: &Job, counts: &Counts, options: &Options) -> tasuki::Result<()> {
    if options.check
        && let Some(difference) = counts.difference(&serial(&options.file, counts.shape())?)
    {
        return Err(format!("{difference} by the serial count").into());
    }
    let (svg, picture) = (histogram(counts)?, options.output.display());
    std::fs::write(&options.output, svg).map_err(|error| format!("cannot write {picture}: {error}"))?;
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(["word", "times"]);
    table.add_rows(counts.top(TOP).into_iter().map(|(word, times)| [word, times.to_string()]));
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    let (total, distinct, k) = (counts.total(), counts.distinct(), counts.shape().k);
    let checked = if options.check { "equal to" } else { "not compared with" };
    let ranks = ranks(job.size());
    println!("{total} words of {k} letters, {distinct} different, on {ranks}, {checked} the serial count");
    println!("histogram: {picture}");
    Ok(())
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, &options))
}
