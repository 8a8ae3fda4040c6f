//! One rank of the demonstration: a process that the command started.

use super::progress_message::ProgressMessage;
use super::report::{DemoReport, RankRow};
use std::path::PathBuf;
use std::process::ExitCode;
use tasuki::Error;
use tasuki::engine::Cause;
use tasuki::prelude::*;
use tasuki_examples::heat::{Picture, Plate, Solution, serial, solve};

/// The hidden subcommand that runs a rank.
pub(crate) const SUBCOMMAND: &str = "__demo-rank";

/// How many times progress is reported.
const REPORTS: usize = 100;

/// A rank of `tasuki demo`.
#[derive(clap::Args)]
pub(crate) struct RankArgs {
    /// Cells of each side
    size: usize,
    /// Iterations
    iterations: usize,
    /// The picture
    output: PathBuf,
}

/// Runs the rank from start to end.
pub(crate) fn main(args: &RankArgs) -> ExitCode {
    tasuki::main(|job| app(job, args))
}

fn app(job: &Job, args: &RankArgs) -> tasuki::Result<()> {
    ProgressMessage::Joined(std::process::id()).send();
    let plate = Plate::new(args.size, args.size).map_err(Error::argument)?;
    let is_reporter = job.rank() == Rank(0);
    let solution = solve(job, plate, args.iterations, |done| {
        if is_reporter {
            now_and_then(done, args.iterations, ProgressMessage::Iterated);
        }
    })?;
    match solution {
        Some(solution) => finish(&solution, args),
        None => Ok(()),
    }
}

fn now_and_then(done: usize, of: usize, message: impl Fn(usize) -> ProgressMessage) {
    if done.is_multiple_of((of / REPORTS).max(1)) {
        message(done).send();
    }
}

/// What rank 0 does with the solution: compares it with a serial run, draws the picture, reports.
fn finish(solution: &Solution, args: &RankArgs) -> tasuki::Result<()> {
    let field = &solution.field;
    let progress = |done| now_and_then(done, args.iterations, ProgressMessage::Compared);
    let difference = field.difference(&serial(field.plate(), args.iterations, progress));
    let rows: Vec<usize> = solution.parts.iter().map(|part| part.rows as usize).collect();
    let picture = Picture::draw_field(field, &rows);
    picture.save(&args.output).map_err(|error| unwritable(args, &error))?;
    ProgressMessage::Done(DemoReport {
        iterations: args.iterations,
        residual: solution.residual,
        difference: difference.map(|difference| difference.max),
        pixels: (picture.width(), picture.height()),
        gathered: solution.gathered.into(),
        rows: solution.parts.iter().map(RankRow::from).collect(),
    })
    .send();
    match difference {
        None => Ok(()),
        Some(difference) => Err(Error::new(Cause::Program(format!("the solution {difference}")))),
    }
}

fn unwritable(args: &RankArgs, error: &std::io::Error) -> Error {
    Error::new(Cause::Program(format!("the picture {} cannot be written: {error}", args.output.display())))
}
