//! Which calls members are in: who waits long looks whether all are in the same.
//!
//! Messages find members that disagree about a call. Steps that were arranged move what they move, whatever others do:
//! one that came with another length, or to another call, would wait for what never comes, and its partners, too. So
//! from the first such steps on each member notes its calls where others can read them, in words of its own memory: a
//! number, which counts calls on the communicator, and what the call is. A member that has waited for long compares.
//!
//! Where two members have a root both may be wrong and wait for nothing: each gives what nobody takes. So now and then
//! a member of two compares without having waited, too.
//!
//! Words are written by their member and read by others at any time, each by itself: they order nothing.

use super::habit::Kind;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Machine, Watch, name_watch};
use tasuki_core::fabric::{DirectCell, Line, SignalCell};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// Calls of a member that others find.
pub(super) const KEPT: u32 = 4;

/// So many calls apart two members are that do not wait for each other at all: what is sent ahead is less.
const APART_MIN: u16 = 16;

/// The words of all members, as one of them reads them.
#[derive(Debug)]
pub(super) struct Roll {
    me: usize,
    /// For each member the first word, and those behind it.
    words: Box<[[DirectCell; KEPT as usize]]>,
    /// How many calls there were.
    calls: AtomicU64,
    /// What the present one is.
    present: AtomicU64,
}

/// A call is in the roll, while it lasts.
pub(super) struct Noted;

impl Drop for Noted {
    fn drop(&mut self) {
        name_watch(0);
    }
}

impl Roll {
    /// The roll of members whose words are signals from `firsts` on. None: they are out of reach.
    pub(super) fn new(machine: &Machine, me: usize, firsts: &[(Rank, u32)]) -> Result<Option<Roll>, Cause> {
        let mut words = Vec::with_capacity(firsts.len());
        for &(rank, first) in firsts {
            let mut cells = Vec::with_capacity(KEPT as usize);
            for number in first..first + KEPT {
                let cell = if rank == machine.rank() {
                    let SignalCell::Direct(cell) = machine.fabric().own_signal(number)? else {
                        return Ok(None);
                    };
                    cell.counter().store(0, Ordering::Relaxed);
                    cell
                } else {
                    let at = GlobalAddress::new(rank, signal_offset(number));
                    let Line::Direct(line) = machine.fabric().line(at)? else { return Ok(None) };
                    line.cell()
                };
                cells.push(cell);
            }
            words.push(cells.try_into().map_err(|_| Cause::Bug("a roll has so many words".into()))?);
        }
        let (calls, present) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Some(Roll { me, words: words.into(), calls, present }))
    }

    /// Notes the next call, which this thread is in from now on.
    #[inline]
    fn note(&self, call: u64) {
        let number = self.calls.load(Ordering::Relaxed) + 1;
        let word = number << 48 | call;
        self.calls.store(number, Ordering::Relaxed);
        self.present.store(word, Ordering::Relaxed);
        let own = &self.words[self.me][(number % u64::from(KEPT)) as usize];
        own.counter().store(word, Ordering::Relaxed);
    }

    /// What the calls of two members show, if they are different ones, or far apart. That of two calls ago is compared:
    /// both have been in it.
    fn complaint_of_two(&self) -> Option<Cause> {
        let read =
            |words: &[DirectCell; KEPT as usize], slot: usize| words[slot].counter().load(Ordering::Relaxed);
        let (present, other) = (self.present.load(Ordering::Relaxed), 1 - self.me);
        let ahead = |word: u64| ((word >> 48) as u16).wrapping_sub((present >> 48) as u16) as i16;
        let all = (0..KEPT as usize).map(|slot| read(&self.words[other], slot));
        let latest = all.max_by_key(|&word| ahead(word))?;
        if ahead(latest).unsigned_abs() >= APART_MIN {
            return Some(complain_of(other, latest, present));
        }
        let slot = (self.calls.load(Ordering::Relaxed).wrapping_sub(2) % u64::from(KEPT)) as usize;
        let (ours, theirs) = (read(&self.words[self.me], slot), read(&self.words[other], slot));
        (ours >> 48 == theirs >> 48 && ours != theirs).then(|| complain_of(other, theirs, ours))
    }
}

impl Watch for Roll {
    fn complaint(&self) -> Option<Cause> {
        let ours = self.present.load(Ordering::Relaxed);
        let slot = (self.calls.load(Ordering::Relaxed) % u64::from(KEPT)) as usize;
        let read = |words: &[DirectCell; KEPT as usize]| words[slot].counter().load(Ordering::Relaxed);
        let is_other = |theirs: u64| theirs >> 48 == ours >> 48 && theirs != ours;
        let member = self.words.iter().position(|words| is_other(read(words)))?;
        let theirs = read(&self.words[member]);
        Some(complain_of(member, theirs, ours))
    }
}

/// That a member is in another call than this one, as both are noted.
pub(super) fn complain_of(member: usize, theirs: u64, ours: u64) -> Cause {
    if Kind::name_of(ours) == Kind::name_of(theirs) && Kind::root_of(ours) == Kind::root_of(theirs) {
        let (one, other) = (Kind::bytes_of(ours), Kind::bytes_of(theirs));
        if one != other {
            return Cause::Disagree { what: "bytes", least: one.min(other), most: one.max(other) };
        }
    }
    Cause::Argument(format!(
        "member {member} is in another call, {}, while this one is in {}: members make the same calls in the \
         same order",
        Named(theirs),
        Named(ours)
    ))
}

/// A call, as it is told.
pub(super) struct Named(pub(super) u64);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = Kind::name_of(self.0) else { return f.write_str("one that prepares something") };
        write!(f, "{name}({} bytes, root {})", Kind::bytes_of(self.0), Kind::root_of(self.0))
    }
}

/// The roll of a communicator and the number of its watch.
#[derive(Debug)]
pub(super) struct Watched {
    roll: Arc<Roll>,
    number: u32,
}

impl Watched {
    pub(super) fn new(machine: &Machine, roll: Roll) -> Watched {
        let roll = Arc::new(roll);
        Watched { number: machine.add_watch(roll.clone()), roll }
    }

    /// This thread is in that call, as long as the result lasts.
    #[inline]
    pub(super) fn note(&self, kind: Option<&Kind>) -> Noted {
        self.roll.note(kind.map_or(Kind::OTHER, Kind::in_roll));
        name_watch(self.number);
        Noted
    }

    /// What two members disagree about, as far as it shows.
    #[cold]
    pub(super) fn complaint_of_two(&self) -> Option<Cause> {
        self.roll.complaint_of_two()
    }
}
