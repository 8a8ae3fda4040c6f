//! rate, and the time from one posting to the next: windows of messages of eight bytes.

use crate::cases::message_latency::MessageEnds;
use crate::harness::measure::{Measure, wrong};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use std::slice::{from_mut, from_ref};
use tasuki::{Job, Slot};

/// Messages of a window.
pub(crate) const WINDOW: usize = 64;
/// The slot of what stands before a window or behind it; those of its messages begin at [`FIRST`].
const ANSWER: Slot = Slot(2);
const FIRST: u32 = 64;

/// The slots of a window, in order.
pub(crate) fn slots() -> impl Iterator<Item = Slot> {
    (FIRST..FIRST + WINDOW as u32).map(Slot)
}

fn expect(window: &[u64; WINDOW], first: u64) -> tasuki::Result<()> {
    let is_right = window.iter().zip(first..).all(|(&got, value)| got == value);
    if is_right { Ok(()) } else { Err(wrong("a window of messages")) }
}

fn values(first: u64) -> [u64; WINDOW] {
    std::array::from_fn(|index| first + index as u64)
}

/// By which call the messages of a window are sent; the better one counts, for every library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowMode {
    /// All are begun, then waited for.
    Begun,
    /// Each by the call that returns when its value may be overwritten.
    Call,
}

/// Messages a second from lead to follower: 64 receives posted, 64 sends, one answer, which does not count.
pub(crate) struct Rate<'j> {
    ends: MessageEnds<'j>,
    mode: WindowMode,
    sent: u64,
    windows: u64,
}

impl<'j> Rate<'j> {
    /// `windows` windows.
    pub(crate) fn new(job: &'j Job, mode: WindowMode, windows: u64) -> Rate<'j> {
        Rate { ends: MessageEnds::new(job), mode, sent: 0, windows }
    }

    fn exchange(&mut self, windows: u64) -> tasuki::Result<u64> {
        let first = self.sent;
        self.sent += windows * WINDOW as u64;
        if self.ends.side == Side::Follow {
            return rate_follow(&self.ends, first, windows).map(|()| 0);
        }
        self.ends.meet()?;
        let watch = Stopwatch::start();
        rate_lead(&self.ends, self.mode, first, windows)?;
        Ok(watch.ns(0))
    }
}

impl Measure for Rate<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        self.exchange(self.windows / 10 + 1)?;
        let took = self.exchange(self.windows)?;
        Ok((self.windows * WINDOW as u64) as f64 / (took as f64 / 1e9))
    }
}

#[inline(never)]
fn rate_lead(ends: &MessageEnds<'_>, mode: WindowMode, first: u64, windows: u64) -> tasuki::Result<()> {
    for window in 0..windows {
        let first = first + window * WINDOW as u64;
        let (words, mut answer) = (values(first), [0]);
        ends.world.scope(|scope| {
            scope.recv(&mut answer, ends.peer, ANSWER)?;
            for (word, slot) in words.iter().zip(slots()) {
                match mode {
                    WindowMode::Begun => scope.send(from_ref(word), ends.peer, slot)?,
                    WindowMode::Call => ends.world.send(from_ref(word), ends.peer, slot)?,
                }
            }
            Ok(())
        })?;
        if answer[0] != !first {
            return Err(wrong("rate"));
        }
    }
    Ok(())
}

/// The next window is posted before the answer that lets the other side fill it.
#[inline(never)]
fn rate_follow(ends: &MessageEnds<'_>, first: u64, windows: u64) -> tasuki::Result<()> {
    let answer = |window: u64| ends.world.send(&[!(first + window * WINDOW as u64)], ends.peer, ANSWER);
    for window in 0..windows {
        let mut words = [0; WINDOW];
        ends.world.scope(|scope| {
            for (word, slot) in words.iter_mut().zip(slots()) {
                scope.recv(from_mut(word), ends.peer, slot)?;
            }
            if window == 0 { ends.meet() } else { answer(window - 1) }
        })?;
        expect(&words, first + window * WINDOW as u64)?;
    }
    answer(windows - 1)
}

/// Time from one posting to the next, 64 in a row.
pub(crate) struct PostGap<'j> {
    ends: MessageEnds<'j>,
    sent: u64,
    windows: u64,
    clock_ns: u64,
}

impl<'j> PostGap<'j> {
    /// `windows` windows.
    pub(crate) fn new(job: &'j Job, windows: u64) -> PostGap<'j> {
        PostGap { ends: MessageEnds::new(job), sent: 0, windows, clock_ns: Stopwatch::cost_ns() }
    }

    fn exchange(&mut self, windows: u64) -> tasuki::Result<u64> {
        let mut took = 0;
        for _ in 0..windows {
            let first = self.sent;
            self.sent += WINDOW as u64;
            match self.ends.side {
                Side::Lead => took += gap_lead(&self.ends, first, self.clock_ns)?,
                Side::Follow => gap_follow(&self.ends, first)?,
            }
        }
        Ok(took)
    }
}

impl Measure for PostGap<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        self.exchange(self.windows / 10 + 1)?;
        let took = self.exchange(self.windows)?;
        Ok(took as f64 / (self.windows * WINDOW as u64) as f64)
    }
}

#[inline(never)]
fn gap_lead(ends: &MessageEnds<'_>, first: u64, clock_ns: u64) -> tasuki::Result<u64> {
    let mut words = [0; WINDOW];
    let took = ends.world.scope(|scope| {
        let watch = Stopwatch::start();
        for (word, slot) in words.iter_mut().zip(slots()) {
            scope.recv(from_mut(word), ends.peer, slot)?;
        }
        let took = watch.ns(clock_ns);
        ends.world.send(&[first], ends.peer, ANSWER)?;
        Ok(took)
    })?;
    expect(&words, first).map(|()| took)
}

#[inline(never)]
fn gap_follow(ends: &MessageEnds<'_>, first: u64) -> tasuki::Result<()> {
    let mut got = [0];
    ends.world.recv(&mut got, ends.peer, ANSWER)?;
    if got[0] != first {
        return Err(wrong("post_gap"));
    }
    let words = values(first);
    ends.world.scope(|scope| {
        for (word, slot) in words.iter().zip(slots()) {
            scope.send(from_ref(word), ends.peer, slot)?;
        }
        Ok(())
    })
}
