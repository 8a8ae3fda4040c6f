//! L2 and L3: SIGKILL of any rank, or of the launcher, at any moment. Whatever the moment, all end, and nothing is
//! left behind.

mod launcher;

use launcher::{Running, command_line, send, start_ranks};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 100;
/// Moments lie between the first fork and well into the ranks' waits.
const LATEST_US: u64 = 30_000;

/// A small generator: the moments need not be good, only different, and known when a test fails.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A different seed in each run, said if the test fails.
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
                .filter(|pid| command_line(*pid).contains("examples/rank"))
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

/// The process that ends the ranks when the launcher is killed, if it runs.
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
    // It was told of the ranks before it ran: what is in the pipe, it reads at the end.
    running.signal(Signal::KILL);
    let ended = running.wait();
    assert_eq!(ended.status.code(), None, "{ended:?}");
}

/// The kernel ends the ranks; descendants of theirs would stay.
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
