//! `tasuki demo`: runs a real program on several processes. The command starts its own executable
//! as the ranks, shows their progress, and ends with what was moved and how fast.
//!
//! ```text
//! mod                 the command: checks, starts the ranks, prints the outcome
//! rank                what each of the processes does
//! progress_message    messages of the ranks to the command
//! screen              what the command shows while they run
//! report              the figures at the end
//! ```

mod progress_message;
mod rank;
mod report;
mod screen;

pub(crate) use rank::{RankArgs, SUBCOMMAND, main as rank};

use crate::run::{self, Options, Output, Stream, Way};
use anyhow::{Context, bail};
use screen::Screen;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use tasuki_command::print;
use tasuki_examples::heat::check_writable;

/// Cell updates in total. The ranks compute them together, and rank 0 repeats them alone for the
/// comparison. An ordinary laptop takes a few seconds.
const UPDATES: usize = 8_000 * 512 * 512;
/// Most iterations, for a small plate: more would not change the picture.
const ITERATIONS_MAX: usize = 20_000;
/// Fewest iterations, for a large plate: fewer would leave the picture empty.
const ITERATIONS_MIN: usize = 200;
/// Cells of each side: a smaller plate shows nothing, a larger one takes too long.
const SIZE: std::ops::RangeInclusive<i64> = 16..=4096;
/// Most processes: more would show nothing new.
const RANKS_MAX: i64 = 256;

const EXAMPLE: &str = "\
Examples:
  tasuki demo
  tasuki demo --ranks 2 --size 1024 --output plate.png

A hot and a cold band wind into each other on a plate. Each process computes the temperature of a \
strip of the plate, and in each iteration puts its outermost rows into the memory of its neighbours.";

/// Show a real program on four processes: progress, a picture, what was moved and how fast.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Number of processes
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: u32,
    /// Cells of each side of the plate
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(SIZE))]
    size: u32,
    /// Where to write the picture
    #[arg(long, value_name = "FILE", default_value = "heat.png")]
    output: PathBuf,
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    check_writable(&args.output)
        .with_context(|| format!("the picture {} cannot be written", args.output.display()))?;
    let (ranks, size) = (args.ranks as usize, args.size as usize);
    let iterations = (UPDATES / (size * size)).clamp(ITERATIONS_MIN, ITERATIONS_MAX);
    print(&format!("plate: {size} x {size} cells\n"))?;
    let screen = Rc::new(RefCell::new(Screen::new(ranks, iterations)));
    let code = run::launch(options(args, iterations, screen.clone())?)?;
    let report = screen.borrow_mut().close();
    match report {
        Some(report) => print(&report.text(&args.output)).map(|()| code),
        None if code == 0 => bail!("the ranks ended without a result"),
        None => Ok(code),
    }
}

/// The options of a job whose ranks run this executable.
fn options(args: &Args, iterations: usize, screen: Rc<RefCell<Screen>>) -> anyhow::Result<Options> {
    let program = std::env::current_exe().context("the path of this program cannot be found")?;
    let text = |number: usize| number.to_string().into();
    let size = text(args.size as usize);
    let capture =
        move |rank: usize, stream: Stream, line: &[u8]| screen.borrow_mut().take(rank, stream, line);
    Ok(Options {
        ranks: args.ranks as usize,
        way: Way::Processes,
        bind: None,
        timeout: None,
        grace: run::GRACE,
        env: Vec::new(),
        program: program.into(),
        args: vec![SUBCOMMAND.into(), size, text(iterations), "--".into(), args.output.clone().into()],
        input: false,
        output: Output::Capture(Box::new(capture)),
    })
}
