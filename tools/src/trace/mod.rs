//! `tasuki trace` and `tasuki run --trace`: record what the ranks of a job did, as a file and as a
//! picture.
//!
//! ```text
//! rank_files reads the files that ranks wrote      join       makes one file of them
//! lanes      spans and arrows, on lanes            link       finds which span led to which
//! json       writes Trace Event JSON               json_read  reads Trace Event JSON
//! picture    draws it (scale: axis; colours)       names      names of commands, calls, queues
//! ```

mod colours;
mod join;
mod json;
mod json_read;
mod lanes;
mod link;
mod names;
mod picture;
mod rank_files;
mod scale;

pub(crate) use join::Trace;
use std::path::PathBuf;
use tasuki_command::misuse;

const EXAMPLE: &str = "\
Examples:
  tasuki run -n 4 --trace run.json ./prog           for https://ui.perfetto.dev
  tasuki run -n 4 --trace run.json.gz ./prog        compressed
  tasuki trace draw run.json -o run.svg
  tasuki trace draw run.json --from 1.2ms --to 1.4ms -o part.svg
  TASUKI_TRACE=run.json mpiexec -n 4 ./prog; tasuki trace join run.json";

/// Draw or join the trace of a job, which `tasuki run --trace` records.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: TraceCommand,
}

#[derive(clap::Subcommand)]
enum TraceCommand {
    /// Draw the time line as SVG: a lane for each rank and thread, arrows from cause to effect
    Draw(DrawArgs),
    /// Join the parts that ranks wrote beside FILE under a launcher other than `tasuki run`
    Join {
        /// The file that TASUKI_TRACE named
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(clap::Args)]
struct DrawArgs {
    /// What `tasuki run --trace` wrote, compressed or not
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The SVG file to write
    #[arg(short, long, value_name = "SVG")]
    output: PathBuf,
    /// Start of the picture, counted from the first event: 12us, 1.5ms, 0.2s
    #[arg(long, value_name = "TIME", value_parser = scale::time)]
    from: Option<f64>,
    /// End of the picture
    #[arg(long, value_name = "TIME", value_parser = scale::time)]
    to: Option<f64>,
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    match &args.what {
        TraceCommand::Draw(args) => draw(args)?,
        TraceCommand::Join { file } => {
            let remarks = join::join_again(file)?;
            remarks.iter().for_each(|remark| tasuki_command::warn(remark));
        }
    }
    Ok(0)
}

fn draw(args: &DrawArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    let text = json_read::load(&args.file)?;
    let run = json_read::read(&text).map_err(|why| misuse(format!("{shown}: {why}")))?;
    let (first, last) = run.times();
    let (from, to) = (args.from.unwrap_or(first), args.to.unwrap_or(last));
    if from >= to {
        return Err(misuse(format!("--from {from} us is not before --to {to} us")));
    }
    let name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let svg = picture::draw(&run, &name, from..to)?;
    let output = args.output.display();
    std::fs::write(&args.output, svg).map_err(|error| misuse(format!("{output} cannot be written: {error}")))
}
