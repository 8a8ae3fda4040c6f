//! L2 and L3: SIGKILL of any rank or of the launcher at any moment. All processes end, and nothing
//! is left behind.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{
    Running, command_line, environment, has_socket, ranks_that_exchange_program, send, start_ranks,
    tasuki_run,
};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 100;
/// The moments range from the first fork to well into the ranks' waits.
const LATEST_US: u64 = 30_000;

/// A small generator of random numbers. The moments only need to differ, and to be known when a
/// test fails.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The seed differs in each run; a failing test prints it.
fn dice() -> Dice {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let seed = std::env::var("KILLS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(now.as_nanos() as u64 | 1);
    eprintln!("KILLS_SEED={seed}");
    Dice(seed)
}

fn start(dice: &mut Dice) -> Running {
    let steps = ["join meet child wait", "child join wait", "join meet @2:child wait", "child hold"];
    let running = start_ranks(4, steps[dice.below(4) as usize]);
    let moment = Duration::from_micros(dice.below(LATEST_US));
    let start = Instant::now();
    while start.elapsed() < moment {
        std::thread::yield_now();
    }
    running
}

#[test]
fn ranks_killed_at_any_moment() {
    let mut dice = dice();
    for round in 0..ROUNDS {
        let mut running = start(&mut dice);
        let mut victim = None;
        running.until("a rank to kill", |running| {
            let ranks: Vec<u32> = running
                .ranks()
                .into_iter()
                .filter(|pid| command_line(*pid).contains("examples/scripted_rank"))
                .collect();
            victim = (!ranks.is_empty()).then(|| ranks[dice.below(ranks.len() as u64) as usize]);
            victim.is_some()
        });
        send(victim.unwrap(), Signal::KILL);
        let ended = running.wait();
        assert_eq!(ended.status.code(), Some(137), "round {round}: {ended:?}");
        assert_eq!(ended.messages().len(), 1, "round {round}: one message: {ended:?}");
        assert!(ended.err.contains("died: signal 9, SIGKILL"), "round {round}: {ended:?}");
    }
}

/// The value of a variable in a rank's environment.
fn variable(pid: u32, name: &str) -> String {
    let all = environment(pid);
    let value = all.iter().find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='));
    value.expect("the launcher has set it").to_string()
}

/// Messages of every kind are under way. The call of each other rank returns an error that names
/// the dead rank before the launcher would end that rank's process.
#[test]
fn ranks_killed_while_messages_are_under_way() {
    const RANKS: u64 = 4;
    let mut dice = dice();
    for round in 0..ROUNDS {
        let mut command = tasuki_run(&["-n", &RANKS.to_string(), ranks_that_exchange_program()]);
        command.arg(dice.below(1000).to_string());
        let mut running = Running::start(command);
        running
            .until("ranks that exchange", |running| running.out().matches("met").count() == RANKS as usize);
        let moment = Duration::from_micros(dice.below(LATEST_US));
        let start = Instant::now();
        while start.elapsed() < moment {
            std::thread::yield_now();
        }
        let victim = running.ranks()[dice.below(RANKS) as usize];
        let [rank, job] = ["TASUKI_RANK", "TASUKI_JOB_SOCKET"].map(|name| variable(victim, name));
        assert!(has_socket(&job), "round {round}: the job has no socket");
        send(victim, Signal::KILL);
        let ended = running.wait();
        assert_eq!(ended.status.code(), Some(137), "round {round}: {ended:?}");
        assert_eq!(ended.messages().len(), 1, "round {round}: one message: {ended:?}");
        for other in (0..RANKS).filter(|other| other.to_string() != rank) {
            let (said, names) = (format!("rank {other} got the error: "), format!("rank {rank} died"));
            let reports_it = |line: &str| line.starts_with(&said) && line.contains(&names);
            assert!(
                ended.err.lines().any(reports_it),
                "round {round}: rank {other} did not report it: {ended:?}"
            );
        }
        assert!(!has_socket(&job), "round {round}: a socket is left");
    }
}

#[test]
fn launchers_killed_at_any_moment() {
    let mut dice = dice();
    for round in 0..ROUNDS {
        let mut running = start(&mut dice);
        running.signal(Signal::KILL);
        let ended = running.wait();
        assert_eq!(ended.status.code(), None, "round {round}: {ended:?}");
    }
}

/// The keeper of a launcher, if it runs.
fn keeper(running: &mut Running) -> Option<u32> {
    running.children().into_iter().find(|&pid| command_line(pid).contains("__keeper"))
}

#[test]
fn a_keeper_that_was_killed_is_replaced() {
    let mut running = start_ranks(3, "join meet child wait");
    running.until_ranks_run(3);
    for _ in 0..3 {
        let mut old = None;
        running.until("a keeper", |running| {
            old = keeper(running);
            old.is_some()
        });
        send(old.expect("just found"), Signal::KILL);
        running.until("another keeper", |running| keeper(running).is_some_and(|new| Some(new) != old));
    }
    // The new keeper gets the records before it runs: it finds them in the pipe.
    running.signal(Signal::KILL);
    let ended = running.wait();
    assert_eq!(ended.status.code(), None, "{ended:?}");
}

/// The kernel ends the ranks but not their descendants.
#[test]
fn keeper_and_launcher_killed_at_once() {
    let mut running = start_ranks(3, "join meet wait");
    running.until_ranks_run(3);
    let keeper = keeper(&mut running).expect("it runs");
    send(keeper, Signal::KILL);
    running.signal(Signal::KILL);
    let ended = running.wait();
    assert_eq!(ended.status.code(), None, "{ended:?}");
}
