//! What the command shows while its ranks run: their process numbers, and a progress bar, or two
//! plain lines if standard error is no terminal.

use super::progress_message::ProgressMessage;
use super::report::DemoReport;
use crate::run::Stream;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use tasuki_command::print;

/// The bar fills its line, so that output of other programs begins on the next line.
const BAR: &str = "{msg} [{bar:44}] {pos} of {len} iterations, {elapsed}";
/// How many process numbers fit into a line of 100 columns.
const PIDS_A_LINE: usize = 8;

/// The stages.
const STARTING: &str = "starting";
const ITERATING: &str = "ranks";
const COMPARING: &str = "serial run, to compare";

/// The screen, and what the ranks have reported.
pub(super) struct Screen {
    bar: ProgressBar,
    is_terminal: bool,
    pids: Vec<Option<u32>>,
    /// The current stage, one of the constants above.
    stage: &'static str,
    report: Option<DemoReport>,
}

impl Screen {
    /// A screen for `ranks` processes that do `iterations` iterations.
    pub(super) fn new(ranks: usize, iterations: usize) -> Screen {
        let bar = ProgressBar::with_draw_target(Some(iterations as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(STARTING);
        let is_terminal = stderr().is_terminal();
        Screen { bar, is_terminal, pids: vec![None; ranks], stage: STARTING, report: None }
    }

    /// Handles a line that a rank wrote.
    pub(super) fn take(&mut self, rank: usize, stream: Stream, line: &[u8]) {
        match (stream, ProgressMessage::parse(line)) {
            (Stream::Out, Some(message)) => self.apply(rank, message),
            _ => self.pass(line),
        }
    }

    /// Removes the bar. Returns the report if it has come.
    pub(super) fn close(&mut self) -> Option<DemoReport> {
        if self.report.is_some() {
            self.bar.finish_and_clear();
        }
        self.leave();
        self.report.take()
    }

    /// Leaves the bar where it is and continues below it: clearing it could remove errors that
    /// others wrote.
    fn leave(&mut self) {
        if !self.bar.is_hidden() && !self.bar.is_finished() {
            let _ = writeln!(stderr());
        }
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn apply(&mut self, rank: usize, message: ProgressMessage) {
        match message {
            ProgressMessage::Joined(pid) => self.joined(rank, pid),
            ProgressMessage::Iterated(done) => self.show(ITERATING, done),
            ProgressMessage::Compared(done) => self.show(COMPARING, done),
            ProgressMessage::Done(report) => self.report = Some(report),
        }
    }

    fn joined(&mut self, rank: usize, pid: u32) {
        self.pids[rank] = Some(pid);
        if let Some(pids) = self.pids.iter().copied().collect::<Option<Vec<u32>>>() {
            // An error here is ignored: if nobody reads, printing the report fails and says so.
            let _ = print(&lines_of(&pids));
            if self.is_terminal {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }

    fn show(&mut self, stage: &'static str, done: usize) {
        if stage != self.stage {
            self.stage = stage;
            self.begin(stage);
        }
        self.bar.set_position(done as u64);
    }

    fn begin(&mut self, stage: &'static str) {
        self.bar.reset();
        self.bar.set_message(stage);
        if !self.is_terminal {
            let iterations = self.bar.length().unwrap_or(0);
            let _ = writeln!(stderr(), "{stage}: {iterations} iterations ...");
        }
    }

    /// Prints a line that is not a message, most likely an error.
    fn pass(&mut self, line: &[u8]) {
        self.leave();
        let _ = stderr().write_all(line);
    }
}

/// The numbers of all processes, in lines of limited width.
fn lines_of(pids: &[u32]) -> String {
    let numbers = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = pids.chunks(PIDS_A_LINE).map(numbers).collect();
    match pids.len() {
        1 => format!("process of rank 0: {}\n", lines[0]),
        ranks => format!("processes of ranks 0 to {}: {}\n", ranks - 1, lines.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_processes_fit_into_lines() {
        assert_eq!(lines_of(&[7, 8]), "processes of ranks 0 to 1: 7 8\n");
        assert_eq!(lines_of(&[7]), "process of rank 0: 7\n");
        let many = lines_of(&vec![4_194_304; 256]);
        assert!(many.lines().all(|line| line.len() <= 100));
    }
}
