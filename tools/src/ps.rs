//! `tasuki ps`: the jobs that run here, and what their ranks wait for.

use crate::run::{RankState, Snapshot};
use anyhow::Context;
use std::fmt::Write;
use std::io::{IsTerminal, stdout};
use std::time::Duration;
use tasuki_command::{misuse, print};
use tasuki_core::bootstrap::rendezvous_client::ask;
use tasuki_core::bootstrap::rendezvous_server::prefix;
use tasuki_core::os::process::effective_user;

const EXAMPLE: &str = "\
Examples:
  tasuki ps
  tasuki ps 3f09a1c2
  tasuki ps --json | jq '.[].ranks[] | select(.waits_in)'";

/// How long a launcher may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Columns of a terminal that does not say how many it has.
const WIDTH: usize = 100;
/// Columns before the queues of a rank.
const QUEUES: usize = 18;

/// Show your running jobs: what each rank waits for, since when, and what command queues wait for.
///
/// A rank outside a waiting call is `running`, or `sleeping` in a system call of the program. `on`
/// is the only rank that can end a wait, if there is just one. Ranks that wait for each other for
/// ever are reported as a deadlock.
///
/// Below a rank, `send buffer` shows messages whose sends have returned and that nobody has received.
/// Queues that are not empty are shown for processes and for up to 64 threads, but not for
/// simulated ranks. On a terminal, long lines are wrapped and indented; otherwise they are not
/// wrapped.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Show this job only, by the name that `tasuki ps` shows
    job: Option<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The kernel's list of sockets.
const SOCKETS: &str = "/proc/net/unix";

/// The subcommand; its exit code: 1 if a job did not answer.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    let (mut jobs, mut silent) = (Vec::new(), Vec::new());
    let all = std::fs::read_to_string(SOCKETS).with_context(|| {
        format!("cannot read {SOCKETS}, which lists the sockets of jobs: `tasuki ps` needs /proc")
    })?;
    for socket in sockets(&all, &prefix(effective_user())) {
        match ask(&socket, PATIENCE).map_err(|error| error.to_string()).and_then(|text| parse(&text)) {
            Ok(job) => jobs.push(job),
            Err(why) => silent.push(format!("{socket} does not answer: {why}")),
        }
    }
    jobs.sort_by(|a, b| b.uptime_s.total_cmp(&a.uptime_s));
    silent.iter().for_each(|remark| eprintln!("tasuki: {remark}"));
    if let Some(job) = &args.job {
        jobs = vec![chosen(jobs, job)?];
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&jobs)?))?;
    } else if jobs.is_empty() && silent.is_empty() {
        print("no jobs\n")?;
    } else {
        let width = stdout().is_terminal().then(terminal_columns);
        print(&jobs.iter().map(|job| table(job, width)).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(u8::from(!silent.is_empty()))
}

/// The job with that name. If there is none, the error names the jobs that run.
fn chosen(jobs: Vec<Snapshot>, name: &str) -> anyhow::Result<Snapshot> {
    let names: Vec<String> = jobs.iter().map(|job| format!("{} ({})", job.job, job.program)).collect();
    let found = jobs.into_iter().find(|job| job.job == name);
    let there_are = || match &names[..] {
        [] => "no jobs run here".into(),
        names => format!("the jobs that run here are {}", names.join(", ")),
    };
    found.ok_or_else(|| misuse(format!("there is no job {name}: {}", there_are())))
}

fn parse(text: &str) -> Result<Snapshot, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The names of sockets with a listener, from a table like /proc/net/unix, that begin with this
/// user's prefix.
fn sockets(table: &str, prefix: &str) -> Vec<String> {
    let listening = |line: &&str| line.split_whitespace().nth(3).is_some_and(|flags| flags == "00010000");
    let names = table.lines().filter(listening).filter_map(|line| line.split_once(" @"));
    let mut names: Vec<String> =
        names.map(|(_, name)| name.trim().to_string()).filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

fn terminal_columns() -> usize {
    let columns = rustix::termios::tcgetwinsize(stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH } else { columns }
}

/// A job as a block of lines, wrapped to `width` columns if it is given.
fn table(job: &Snapshot, width: Option<usize>) -> String {
    let count = job.ranks.len();
    let ranks = if count == 1 { "rank" } else { "ranks" };
    let (uptime, launcher) = (time(job.uptime_s), job.launcher);
    let head = format!("{count} {ranks} ({}) for {uptime}, launcher {launcher}: {}", job.way, job.program);
    let mut text = folded(&format!("job {}: ", job.job), &head, 2, width);
    let stages =
        job.ranks.iter().map(|rank_state| rank_state.stage.chars().count()).max().unwrap_or(0).max(5);
    let _ = writeln!(text, "{:>6} {:>8}  {:<stages$}  {:>8}  {:>6}  in", "rank", "pid", "stage", "for", "on");
    for rank_state in &job.ranks {
        text.push_str(&row(rank_state, stages, width));
        if let Some(buffer) = &rank_state.send_buffer {
            text.push_str(&folded(&" ".repeat(QUEUES), &buffer.to_string(), QUEUES + 2, width));
        }
        for queue in &rank_state.queues {
            text.push_str(&folded(&" ".repeat(QUEUES), &queue.to_string(), QUEUES + 2, width));
        }
    }
    for deadlock in &job.deadlocks {
        text.push_str(&folded("  ", &deadlock.text(&job.ranks), 4, width));
    }
    text
}

fn row(rank_state: &RankState, stages: usize, width: Option<usize>) -> String {
    let waited = rank_state.waited_s.map_or(String::new(), time);
    let on = rank_state.waits_for.map_or(String::new(), |rank| rank.to_string());
    let head = format!(
        "{:>6} {:>8}  {:<stages$}  {waited:>8}  {on:>6}  ",
        rank_state.rank, rank_state.pid, rank_state.stage
    );
    match rank_state.does() {
        Some(text) => folded(&head, &text, head.chars().count() + 2, width),
        None => format!("{}\n", head.trim_end()),
    }
}

/// A line that consists of a head and a text. A text that exceeds `width` columns is broken between
/// words and continues after `indent` columns. It is not cut, because its end often says what a
/// rank waits for.
fn folded(head: &str, text: &str, indent: usize, width: Option<usize>) -> String {
    let (mut all, mut column) = (head.to_string(), head.chars().count());
    for (at, word) in text.split(' ').enumerate() {
        let len = word.chars().count();
        if at > 0 && width.is_some_and(|width| column + 1 + len > width) {
            let _ = write!(all, "\n{:indent$}", "");
            column = indent;
        } else if at > 0 {
            all.push(' ');
            column += 1;
        }
        all.push_str(word);
        column += len;
    }
    all.push('\n');
    all
}

/// A duration in the largest fitting unit.
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

    fn snapshot() -> Snapshot {
        let long =
            "wait(signal 7 >= 4) of the farthest neighbour of all that this rank has had in a long time";
        let rank_state = |rank, call: Option<&str>| RankState {
            rank,
            pid: 4_194_304,
            stage: if call.is_some() { "waiting" } else { "running" }.into(),
            waited_s: call.map(|_| 75.0),
            waits_in: call.map(Into::into),
            waits_for: (rank == 0).then_some(63),
            handles_for: None,
            send_buffer: None,
            queues: Vec::new(),
        };
        let mut ranks =
            vec![rank_state(0, Some("wait(signal 7 >= 4)")), rank_state(63, Some(long)), rank_state(2, None)];
        let queue = serde_json::json!({
            "queue": 1, "capacity": 64, "unread": 0, "waiting": 3, "under_way": 4, "failed": 0, "run_by": [0],
            "awaits": { "signal": 3, "value": 2, "wanted": 4, "is_credit": false },
            "left_to": [{ "rank": 2, "commands": 1, "computes": true }],
        });
        ranks[2].queues.push(serde_json::from_value(queue).unwrap());
        let (job, program, way) = ("00ff00ff".into(), "./heat".into(), "processes".into());
        Snapshot { job, program, way, launcher: 77, uptime_s: 12.34, ranks, deadlocks: Vec::new() }
    }

    #[test]
    fn tables_fit_the_terminal_and_lose_nothing() {
        let text = table(&snapshot(), Some(WIDTH));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.starts_with("job 00ff00ff: 3 ranks (processes) for 12.3 s, launcher 77: ./heat\n"),
            "{text}"
        );
        assert!(text.contains("     0  4194304  waiting    1:15 m      63  wait(signal 7 >= 4)\n"), "{text}");
        let queue = "    queue 1 of 64 lines: 3 waiting (signal 3 at 2, wants 4); 4 under way; run by rank\n\
            \x20                   0; 1 waits for rank 2, which computes\n";
        assert!(text.ends_with(queue), "{text}");
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        for width in [1, 30, 1000] {
            assert_eq!(words(&table(&snapshot(), Some(width))), words(&text));
        }
    }

    #[test]
    fn a_job_is_found_by_its_name() {
        assert!(chosen(vec![snapshot()], "00ff00ff").is_ok());
        let refused = |jobs| chosen(jobs, "1234").err().map(|error| error.to_string());
        let expected = "there is no job 1234: the jobs that run here are 00ff00ff (./heat)";
        assert_eq!(refused(vec![snapshot()]).as_deref(), Some(expected));
        assert_eq!(refused(Vec::new()).as_deref(), Some("there is no job 1234: no jobs run here"));
    }

    #[test]
    fn lines_that_no_terminal_gets_are_whole() {
        let text = table(&snapshot(), None);
        assert_eq!(text.lines().count(), 2 + 4, "{text}");
        assert!(
            text.ends_with("; 4 under way; run by rank 0; 1 waits for rank 2, which computes\n"),
            "{text}"
        );
    }
}
