//! `tasuki ps`: the jobs that run here, and what their ranks wait for.

use crate::run::{Seat, Snapshot};
use crate::say::print;
use std::fmt::Write;
use std::time::Duration;
use tasuki_core::bootstrap::door::prefix;
use tasuki_core::bootstrap::launched::ask;
use tasuki_core::os::process::effective_user;

const EXAMPLE: &str = "\
Examples:
  tasuki ps
  tasuki ps --json | jq '.[].ranks[] | select(.waits_in)'";

/// How long a launcher may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Columns of a line: as wide as a terminal may be expected to be.
const WIDTH: usize = 100;

/// Show your running jobs: who waits for what, since when, and what command queues wait for.
///
/// Queues are shown that have something in them, of processes, and of up to 64 threads; not of simulated ranks.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The subcommand; its exit code: 1 if a job did not answer.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    let (mut jobs, mut silent) = (Vec::new(), Vec::new());
    for socket in sockets(&std::fs::read_to_string("/proc/net/unix")?, &prefix(effective_user())) {
        match ask(&socket, PATIENCE).map_err(|error| error.to_string()).and_then(|text| parse(&text)) {
            Ok(job) => jobs.push(job),
            Err(why) => silent.push(format!("{socket} does not answer: {why}")),
        }
    }
    jobs.sort_by(|a, b| b.uptime_s.total_cmp(&a.uptime_s));
    silent.iter().for_each(|remark| eprintln!("tasuki: {remark}"));
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&jobs)?))?;
    } else if jobs.is_empty() && silent.is_empty() {
        print("no jobs\n")?;
    } else {
        print(&jobs.iter().map(table).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(u8::from(!silent.is_empty()))
}

fn parse(text: &str) -> Result<Snapshot, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Names of the sockets in a table like /proc/net/unix on which somebody listens, and that begin like this user's.
fn sockets(table: &str, prefix: &str) -> Vec<String> {
    let listening = |line: &&str| line.split_whitespace().nth(3).is_some_and(|flags| flags == "00010000");
    let names = table.lines().filter(listening).filter_map(|line| line.split_once(" @"));
    let mut names: Vec<String> =
        names.map(|(_, name)| name.trim().to_string()).filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// A job as a block of lines.
fn table(job: &Snapshot) -> String {
    let count = job.ranks.len();
    let ranks = if count == 1 { "rank" } else { "ranks" };
    let (uptime, launcher) = (time(job.uptime_s), job.launcher);
    let head = format!(
        "job {}: {count} {ranks} ({}) for {uptime}, launcher {launcher}: {}",
        job.job, job.way, job.program
    );
    let mut text = format!("{}\n", cut(&head, WIDTH));
    let stages = job.ranks.iter().map(|seat| seat.stage.chars().count()).max().unwrap_or(0).max(5);
    let _ = writeln!(text, "{:>6} {:>8}  {:<stages$}  {:>8}  in", "rank", "pid", "stage", "for");
    for seat in &job.ranks {
        text.push_str(&row(seat, stages));
        let queues = seat.queues.iter().map(|queue| cut(&format!("{:>16}  {queue}", ""), WIDTH));
        queues.for_each(|queue| text.push_str(&format!("{queue}\n")));
    }
    text
}

fn row(seat: &Seat, stages: usize) -> String {
    let waited = seat.waited_s.map_or(String::new(), time);
    let call = seat.waits_in.as_deref().unwrap_or("");
    let line = format!("{:>6} {:>8}  {:<stages$}  {waited:>8}  {call}", seat.rank, seat.pid, seat.stage);
    format!("{}\n", cut(line.trim_end(), WIDTH))
}

/// A text of at most `width` characters, with an ellipsis where something is missing.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// Seconds as people say them.
fn time(seconds: f64) -> String {
    match seconds as u64 {
        0..60 => format!("{seconds:.1} s"),
        whole @ 60..3600 => format!("{}:{:02} m", whole / 60, whole % 60),
        whole => format!("{}:{:02} h", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_this_user_are_found() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12345 @tasuki-7-00ff00ff\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 12346 @tasuki-7-00ff00ff\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12347 @tasuki-77-00000001\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12348 /run/tasuki-7-file\n";
        assert_eq!(sockets(table, "tasuki-7-"), ["tasuki-7-00ff00ff"]);
    }

    #[test]
    fn tables_fit_the_terminal() {
        let seat = |rank, call: Option<String>| Seat {
            rank,
            pid: 4_194_304,
            stage: if call.is_some() { "waiting" } else { "running" }.into(),
            waited_s: call.as_ref().map(|_| 75.0),
            waits_in: call,
            queues: Vec::new(),
        };
        let ranks =
            vec![seat(0, Some("wait(signal 7 >= 4)".into())), seat(63, Some("x".repeat(190))), seat(2, None)];
        let (job, program, way) = ("00ff00ff".into(), "./heat".into(), "processes".into());
        let text = table(&Snapshot { job, program, way, launcher: 77, uptime_s: 12.34, ranks });
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.starts_with("job 00ff00ff: 3 ranks (processes) for 12.3 s, launcher 77: ./heat\n"),
            "{text}"
        );
        assert!(text.contains("     0  4194304  waiting    1:15 m  wait(signal 7 >= 4)\n"), "{text}");
    }
}
