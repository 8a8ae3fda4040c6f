//! The temperature of a plate that contains a hot and a cold spiral: Laplace's equation, with a strip of rows on each
//! rank. `tasuki_examples::heat` describes how it works.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::path::PathBuf;
use tasuki::prelude::*;
use tasuki_examples::heat::{ExchangeMethod, Picture, Plate, Solution, check_writable, serial, solve_by};
use tasuki_examples::ranks;

/// Compute the temperature of a plate on all ranks and draw it.
#[derive(Parser)]
#[command(name = "heat", after_help = "Example: tasuki run -n 4 heat --rows 300 --columns 400")]
struct Options {
    /// Rows of the plate
    #[arg(long, default_value_t = 256)]
    rows: usize,
    /// Columns of the plate
    #[arg(long, default_value_t = 256)]
    columns: usize,
    /// Iterations
    #[arg(long, default_value_t = 2000)]
    iterations: usize,
    /// How neighbours exchange rows
    #[arg(long, value_enum, default_value_t = ExchangeMethod::Puts)]
    by: ExchangeMethod,
    /// Where rank 0 writes the picture
    #[arg(long, default_value = "heat.png")]
    output: PathBuf,
    /// Do not compare with a serial run
    #[arg(long)]
    no_check: bool,
}

fn app(job: &Job, plate: Plate, options: &Options) -> tasuki::Result<()> {
    if job.rank() == 0 {
        check_writable(&options.output).map_err(|error| unwritable(options, error))?;
    }
    match solve_by(options.by, job, plate, options.iterations, |_| ())? {
        Some(solution) => report(&solution, options),
        None => Ok(()),
    }
}

/// Checks, draws and prints the solution on rank 0.
fn report(solution: &Solution, options: &Options) -> tasuki::Result<()> {
    let Solution { field, residual, parts, .. } = solution;
    if !options.no_check
        && let Some(difference) = field.difference(&serial(field.plate(), options.iterations, |_| ()))
    {
        return Err(format!("the solution {difference}").into());
    }
    let rows: Vec<usize> = parts.iter().map(|part| part.rows as usize).collect();
    Picture::draw_field(field, &rows).save(&options.output).map_err(|error| unwritable(options, error))?;
    let checked = if options.no_check { "not compared with" } else { "bit for bit as" };
    let picture = options.output.display();
    let ranks = ranks(parts.len());
    let speed = speed(solution, options);
    println!("residual {residual:.1e} on {ranks}, {speed}, {checked} the serial run; see {picture}");
    Ok(())
}

/// The time of an iteration on the slowest rank, for which the other ranks waited.
fn speed(solution: &Solution, options: &Options) -> String {
    let nanoseconds = solution.parts.iter().map(|part| part.nanoseconds).max().unwrap_or(0);
    let each = nanoseconds as f64 / options.iterations.max(1) as f64;
    format!("{:.2} us an iteration", each / 1000.0)
}

fn unwritable(options: &Options, error: std::io::Error) -> String {
    format!("cannot write {}: {error}", options.output.display())
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    match Plate::new(options.rows, options.columns) {
        Ok(plate) => tasuki::main(|job| app(job, plate, &options)),
        Err(why) => Options::command().error(ErrorKind::ValueValidation, why).exit(),
    }
}
