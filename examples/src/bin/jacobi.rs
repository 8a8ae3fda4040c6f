//! Jacobi's iteration on a square plate, on a grid of ranks. `tasuki_examples::jacobi` describes how it works.

use clap::Parser;
use tasuki::prelude::*;
use tasuki_examples::jacobi::{serial, solve};

/// Iterate on a plate that is divided into tiles, one on each rank.
#[derive(Parser)]
#[command(name = "jacobi", after_help = "Example: tasuki run -n 4 jacobi --side 400")]
struct Options {
    /// Rows and columns of the plate
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=8192))]
    side: u32,
    /// Steps
    #[arg(long, default_value_t = 1000)]
    steps: usize,
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    let (sides, steps, begin) = ([options.side as usize; 2], options.steps, job.clock());
    let Some(solution) = solve(job, sides, steps)? else { return Ok(()) };
    let each = (job.clock() - begin).as_secs_f64() * 1e6 / steps.max(1) as f64;
    if solution != serial(sides, steps) {
        return Err("the solution differs from that of the serial run".into());
    }
    let ([down, across], change) = (dims_create(job.size(), [0, 0])?, solution.0);
    println!("change {change:.1e} on {down} x {across} ranks, {each:.2} us a step, equal to the serial run");
    Ok(())
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, &options))
}
