//! The hand-over as the bench itself takes it, between runs of whole jobs: against a process that sleeps otherwise.

use super::{HandOver, Rounds, Shared, SharedFile, Side};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

/// What the child is told to take part in one measurement.
const MEASURE: u8 = b'm';

/// A process that answers hand-overs on a processor of its own. Between measurements it sleeps in a read.
#[derive(Debug)]
pub(crate) struct Probe {
    hand_over: HandOver,
    processor: usize,
    child: Child,
    /// Closed before the child is waited for: that is how it learns that it is over.
    orders: Option<ChildStdin>,
    _file: SharedFile,
}

impl Probe {
    /// Starts the process by `command`, which is to call [`answer_probe`] with the file that is added as its last
    /// argument, and with the same rounds. This side works on `processor` while it measures.
    pub(crate) fn start(mut command: Command, processor: usize, rounds: Rounds) -> io::Result<Probe> {
        let file = SharedFile::create(0)?;
        let shared = Arc::new(Shared::open(&file.path())?);
        let mut child = command.arg(file.path()).stdin(Stdio::piped()).spawn()?;
        let orders = child.stdin.take();
        let hand_over = on_processor(processor, || HandOver::new(shared, Side::Lead, rounds))?;
        Ok(Probe { hand_over, processor, child, orders, _file: file })
    }

    /// Half a round trip, in ns.
    pub(crate) fn measure(&mut self) -> io::Result<f64> {
        if let Some(orders) = &mut self.orders {
            orders.write_all(&[MEASURE])?;
        }
        on_processor(self.processor, || self.hand_over.measure())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.child.wait();
    }
}

/// The process's part: answers on `processor` until its standard input ends.
pub(crate) fn answer_probe(file: &str, processor: usize, rounds: Rounds) -> io::Result<()> {
    let shared = Arc::new(Shared::open(file)?);
    sched_setaffinity(None, &only(processor))?;
    let mut hand_over = HandOver::new(shared, Side::Follow, rounds);
    for order in io::stdin().lock().bytes() {
        if order? == MEASURE {
            hand_over.measure();
        }
    }
    Ok(())
}

/// Does something on one processor; afterwards the thread may run where it could before, and so may its children.
fn on_processor<T>(processor: usize, body: impl FnOnce() -> T) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, &only(processor))?;
    let done = body();
    sched_setaffinity(None, &before)?;
    Ok(done)
}

fn only(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}
