//! A picture of the Mandelbrot set, whose tiles a master gives out to workers of different speed.
//! `tasuki_examples::farm` describes how it works.

use clap::Parser;
use std::path::PathBuf;
use tasuki::prelude::*;
use tasuki_examples::farm::{Harvest, View, alone, colors, farm};
use tasuki_examples::{png_file, progress_bar, ranks};

/// The template of the progress bar.
const BAR: &str = "{wide_bar} {pos} of {len} tiles, {elapsed}";

/// Compute a picture of the Mandelbrot set on all ranks.
#[derive(Parser)]
#[command(name = "farm", after_help = "Example: tasuki run -n 4 farm --size 1024 --slow 3")]
struct Options {
    /// Rows and columns of the picture
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=16384))]
    size: u32,
    /// The most steps for a pixel
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// A rank that works at a quarter of its speed
    #[arg(long)]
    slow: Option<usize>,
    /// Where rank 0 writes the picture
    #[arg(long, default_value = "farm.png")]
    output: PathBuf,
    /// Compare with the picture of one rank
    #[arg(long)]
    check: bool,
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    let size = [options.size as usize; 2];
    let view = View { size, center: [-0.75, 0.0], width: 2.6, steps: options.steps };
    let times = if options.slow == Some(job.rank().index()) { 4 } else { 1 };
    let (bar, begin) = (progress_bar::on_first_rank(job, BAR), job.clock());
    bar.set_length(view.tiles() as u64);
    let harvest = farm(job, &view, times, |tiles| bar.set_position(tiles as u64))?;
    bar.finish_and_clear();
    let seconds = (job.clock() - begin).as_secs_f64();
    harvest.map_or(Ok(()), |harvest| report(&view, &harvest, options, seconds))
}

/// Checks, draws and prints the picture on rank 0.
fn report(view: &View, harvest: &Harvest, options: &Options, seconds: f64) -> tasuki::Result<()> {
    if options.check && harvest.values != alone(view).values {
        return Err("the picture differs from that of one rank".into());
    }
    let [width, height] = view.size;
    let picture = options.output.display();
    png_file::write(&options.output, width, height, &colors(view, &harvest.values))
        .map_err(|error| format!("cannot write {picture}: {error}"))?;
    let (tiles, checked) = (view.tiles(), if options.check { "equal to" } else { "not compared with" });
    let by = harvest.tiles.iter().map(usize::to_string).collect::<Vec<_>>().join(" + ");
    let ranks = ranks(harvest.tiles.len());
    println!(
        "{tiles} tiles = {by} on {ranks} in {seconds:.2} s, {checked} the picture of one rank; see {picture}"
    );
    Ok(())
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, &options))
}
