//! `tasuki plan`: shows, proves, draws and exports collectives as data.
//!
//! ```text
//! arguments    the command line      names    names of steps, buffers and signals
//! show         prints a plan         check    proves plans
//! ```
//!
//! The crate `tasuki-plans` writes the files and draws the pictures.

mod arguments;
mod check;
mod names;
mod show;

use crate::arguments::proof::warn_of_unproven;
use arguments::{Ask, Plan};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tasuki_command::{Sink, is_standard_output};
use tasuki_command::{misuse, not_written};
use tasuki_schedule::{ScheduleError, goal, json, picture};

const EXAMPLE: &str = "\
Examples:
  tasuki plan show bcast --ranks 1000000 --rank 7
  tasuki plan check bcast --ranks 33 --bytes 1000
  tasuki plan draw allgather --ranks 8 --bytes 8192 -o a.svg
  tasuki plan export bcast --ranks 4 --bytes 8 --format goal";

const SHOW: &str = "\
Examples:
  tasuki plan show bcast --ranks 8 --bytes 1000
  tasuki plan show bcast --ranks 1000000 --rank 7
  tasuki plan show allgatherv --ranks 4 --counts 8,0,16,8 --algorithm ring";

const CHECK: &str = "\
Examples:
  tasuki plan check bcast --ranks 33 --bytes 1000
  tasuki plan check allgather --ranks 8 --algorithm bruck --json
  tasuki plan check mine.json
  tasuki plan check mine.goal         (GOAL text: whether messages fit each other, and nothing waits for itself)

Exit codes: 0 proven, 1 wrong, 2 misuse, a file that cannot be read, or too large to be proven.";

const DRAW: &str = "\
Examples:
  tasuki plan draw bcast --ranks 8 --bytes 8192 -o a.svg
  tasuki plan draw allgather --ranks 8 --algorithm bruck --as graph -o b.svg";

const EXPORT: &str = "\
Examples:
  tasuki plan export bcast --ranks 4 --bytes 8 --format json -o bcast.json
  tasuki plan export bcast --ranks 4 --bytes 8 --format goal";

/// Show, prove, draw and export the steps of a collective.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Print the steps of each rank
    #[command(after_help = SHOW)]
    Show {
        #[command(flatten)]
        ask: Ask,
        /// Build and print the steps of this rank only
        #[arg(long, value_name = "R")]
        rank: Option<usize>,
        /// Show what helpers or the network run, even where the ranks of a job would run their
        /// steps in their own calls
        #[arg(long)]
        engine: bool,
    },
    /// Prove that every rank gets the right bytes in every possible order of steps
    #[command(after_help = CHECK)]
    Check {
        #[command(flatten)]
        ask: Ask,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Draw a plan as SVG
    #[command(after_help = DRAW)]
    Draw {
        #[command(flatten)]
        ask: Ask,
        /// The SVG file to write
        #[arg(short, long, value_name = "SVG")]
        output: PathBuf,
        /// The kind of picture
        #[arg(long = "as", value_enum, default_value_t = View::Time)]
        view: View,
    },
    /// Write a plan for other programs
    #[command(after_help = EXPORT)]
    Export {
        #[command(flatten)]
        ask: Ask,
        /// Format of the file
        #[arg(long, value_enum)]
        format: Format,
        /// File to write [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The whole plan; `tasuki plan` reads it
    Json,
    /// Messages and computations of one start, for the simulator LogGOPSim
    Goal,
}

/// The kind of picture.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum View {
    /// Steps as nodes, dependencies as arrows
    Graph,
    /// Ranks as lanes, transfers as arrows between them, time in rounds
    Time,
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    match &args.what {
        What::Show { ask, rank, engine } => show::command(ask, *rank, *engine).map(|()| 0),
        What::Check { ask, json } => check::command(ask, *json),
        What::Draw { ask, output, view } => draw(ask, *view, output).map(|()| 0),
        What::Export { ask, format, output } => export(ask, *format, output.as_deref()).map(|()| 0),
    }
}

/// Draws a plan into a file.
fn draw(ask: &Ask, view: View, output: &Path) -> anyhow::Result<()> {
    let sink = Sink::open(output)?;
    let plan = ask.plan()?;
    plan.say_what_was_chosen();
    if let Some(file) = ask.file() {
        warn_of_unproven(file, &plan.schedule);
    }
    let view = match view {
        View::Graph => picture::View::Graph,
        View::Time => picture::View::Time,
    };
    let svg = picture::draw(&plan.schedule, &plan.title, view).map_err(|error| match error {
        ScheduleError::Ranks { .. } | ScheduleError::Steps { .. } => misuse(format!(
            "{error}: take fewer ranks or segments; `tasuki plan show` prints any, \
             `tasuki plan export --format goal` writes the graph for other programs"
        )),
        ScheduleError::Wrong(_) => misuse(format!("{}: {error}", plan.title)),
        other => other.into(),
    })?;
    sink.replace(&svg)
}

fn export(ask: &Ask, format: Format, output: Option<&Path>) -> anyhow::Result<()> {
    let plan = ask.plan()?;
    plan.say_what_was_chosen();
    let Some(path) = output.filter(|path| !is_standard_output(path)) else {
        return write(&plan, format, &mut io::stdout().lock()).map_err(|error| match error {
            ScheduleError::Writing(error) => not_written(error),
            other => misuse(other.to_string()),
        });
    };
    let failed = |error: io::Error| misuse(format!("{} cannot be written: {error}", path.display()));
    let refused = |error| match error {
        ScheduleError::Writing(error) => failed(error),
        other => misuse(other.to_string()),
    };
    if path.exists() && !path.is_file() {
        return write(&plan, format, &mut fs::File::create(path).map_err(failed)?).map_err(refused);
    }
    // A schedule may turn out to have no GOAL form after many ranks were written. The old file
    // stays until the new one is complete.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    check_room(&plan, folder)?;
    let mut builder = tempfile::Builder::new();
    builder.permissions(fs::Permissions::from_mode(0o666)); // the umask applies, as for any new file
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    let removing = RemovedOnSignal::new(file.path()).map_err(failed)?;
    write(&plan, format, file.as_file_mut()).map_err(refused)?;
    drop(removing);
    file.persist(&path).map_err(|error| failed(error.error)).map(|_| ())
}

/// Removes an unfinished file if a signal ends the program, until it is dropped.
struct RemovedOnSignal(signal_hook::iterator::Handle);

impl RemovedOnSignal {
    fn new(file: &Path) -> io::Result<RemovedOnSignal> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (handle, file) = (signals.handle(), file.to_path_buf());
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let _ = fs::remove_file(&file);
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
        Ok(RemovedOnSignal(handle))
    }
}

impl Drop for RemovedOnSignal {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Bytes of a step in a file, at the least.
const STEP_BYTES: u64 = 25;

/// Refuses a file that will not fit, as far as the parts of three ranks show.
fn check_room(plan: &Plan, folder: &Path) -> anyhow::Result<()> {
    let ranks = plan.schedule.ranks();
    let of = |rank: usize| plan.schedule.part(rank).steps().len() as u64;
    let usual = [ranks - 1, ranks / 2, ranks / 3].map(of).into_iter().min().unwrap_or(0);
    let needed = usual.saturating_mul(ranks as u64).saturating_mul(STEP_BYTES);
    let Ok(room) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let there = room.f_bavail.saturating_mul(room.f_frsize);
    if needed <= there {
        return Ok(());
    }
    let [needed, there] = [needed, there].map(|bytes| bytes >> 30);
    Err(misuse(format!(
        "{} has about {usual} steps on each of {ranks} ranks, which take more than {needed} GiB, and {} has {there} GiB \
         left: give fewer ranks, or another algorithm",
        plan.title,
        folder.display()
    )))
}

/// Writes a plan. If a small plan is refused, nothing is written.
fn write(plan: &Plan, format: Format, out: &mut dyn Write) -> Result<(), ScheduleError> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let written = match format {
        Format::Json => json::write(&plan.schedule, &mut out).map_err(ScheduleError::Writing),
        Format::Goal => goal::export(&plan.schedule, &remark(plan), &mut out),
    };
    match written {
        Ok(()) => out.flush().map_err(ScheduleError::Writing),
        Err(error) => {
            let _ = out.into_parts(); // drops the buffer without writing it
            Err(error)
        }
    }
}

fn remark(plan: &Plan) -> String {
    format!("{}: one start; r1s2 is step 2 of rank 1; a unit of calc is a byte", plan.title)
}
