//! The recorder of a rank: a ring of a fixed number of events. When it is full, the last events replace the first.
//!
//! A thread that records takes the next number by one addition, and the slot of that number. The
//! slot's stamp says which event it holds: it is odd while the slot is being filled, and even when
//! it is full (`SYNC trace-event`). No thread waits for another. An event is lost if its slot is
//! still being filled by a thread that was interrupted for a whole round of the ring, or if its
//! slot is being filled when the ring is read.

use super::event::{EventKind, TraceEvent, WORDS};
use super::rank_file::{RankTrace, part_file};
use crate::base::Rank;
use crate::base::sync::{AtomicU64, Ordering, RealAtomicU64, fence};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Events that a rank keeps by default: 8.5 MiB.
pub const EVENTS: usize = 1 << 16;
/// The most events that a rank may keep: 2.1 GiB.
pub const EVENTS_MAX: usize = 1 << 24;

/// Where and how much ranks record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceTo {
    /// The file of the whole job; each rank writes its own file beside it.
    pub file: PathBuf,
    /// How many events each rank keeps.
    pub events: usize,
}

/// The recorder of a rank.
#[derive(Debug)]
pub struct Recorder {
    file: PathBuf,
    rank: Rank,
    size: usize,
    is_virtual: bool,
    /// Distinguishes recorders, for threads that belong to several jobs.
    number: u64,
    next: AtomicU64,
    slots: Box<[Slot]>,
    /// The threads that have recorded an event, by their numbers.
    threads: Mutex<Vec<(ThreadId, String)>>,
}

/// One event of the ring.
#[derive(Debug)]
struct Slot {
    /// Twice the number of its event, counted from 1; one less while it is being filled. 0 before the first.
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Slot {
    fn new() -> Slot {
        Slot { stamp: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Stores event `number`, unless the slot is being filled or holds a later event.
    fn fill(&self, number: u64, words: [u64; WORDS]) {
        let (before, full) = (self.stamp.load(Ordering::Relaxed), 2 * number);
        let is_free = before % 2 == 0 && before < full;
        let claim = |stamp: &AtomicU64| {
            stamp.compare_exchange(before, full - 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if !is_free || !claim(&self.stamp) {
            return;
        }
        fence(Ordering::Release); // SYNC trace-event: a thread that reads one of these words finds the stamp changed
        for (into, word) in self.words.iter().zip(words) {
            into.store(word, Ordering::Relaxed);
        }
        self.stamp.store(full, Ordering::Release); // SYNC trace-event
    }

    /// Returns the event and its number, if the slot is full.
    fn read(&self) -> Option<(u64, TraceEvent)> {
        let stamp = self.stamp.load(Ordering::Acquire); // SYNC trace-event
        let words = std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed));
        fence(Ordering::Acquire); // SYNC trace-event
        let is_whole = stamp.is_multiple_of(2) && stamp != 0 && self.stamp.load(Ordering::Relaxed) == stamp;
        TraceEvent::of_words(&words).filter(|_| is_whole).map(|event| (stamp / 2, event))
    }
}

thread_local! {
    /// The recorder that this thread used last, and its number there.
    static CURRENT_THREAD: Cell<(u64, u16)> = const { Cell::new((0, 0)) };
}

impl Recorder {
    /// Creates a recorder for `rank` of `size`; called by the thread of its program. Takes 136 bytes for each event.
    pub fn new(to: &TraceTo, rank: Rank, size: usize, is_virtual: bool) -> Recorder {
        static RECORDERS_CREATED: RealAtomicU64 = RealAtomicU64::new(1);
        let recorder = Recorder {
            // The program may change its working directory.
            file: std::path::absolute(&to.file).unwrap_or_else(|_| to.file.clone()),
            rank,
            size,
            is_virtual,
            number: RECORDERS_CREATED.fetch_add(1, Ordering::Relaxed),
            next: AtomicU64::new(0),
            slots: (0..to.events).map(|_| Slot::new()).collect(),
            threads: Mutex::default(),
        };
        recorder.name_thread("program");
        recorder
    }

    /// Names the calling thread, if it has not recorded anything yet.
    pub fn name_thread(&self, name: &str) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let me = thread::current().id();
        let known = threads.iter().position(|(id, _)| *id == me);
        let number = known.unwrap_or_else(|| {
            threads.push((me, name.to_string()));
            threads.len() - 1
        });
        CURRENT_THREAD.set((self.number, u16::try_from(number).unwrap_or(u16::MAX)));
    }

    fn thread(&self) -> u16 {
        let (recorder, number) = CURRENT_THREAD.get();
        if recorder == self.number {
            return number;
        }
        let name = thread::current().name().unwrap_or("thread").to_string();
        self.name_thread(&name);
        CURRENT_THREAD.get().1
    }

    /// Records an event of the calling thread between two times of the rank's clock. Does not wait; allocates only at a
    /// thread's first event.
    pub fn record(&self, begin_ns: u64, end_ns: u64, failed: bool, what: EventKind) {
        let before = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(slot) = self.slots.get((before % self.slots.len().max(1) as u64) as usize) else { return };
        slot.fill(before + 1, TraceEvent { thread: self.thread(), begin_ns, end_ns, failed, what }.words());
    }

    /// Returns the last events that were recorded up to now, in order.
    pub fn part(&self) -> RankTrace {
        let recorded = self.next.load(Ordering::Relaxed);
        let mut numbered: Vec<(u64, TraceEvent)> = self.slots.iter().filter_map(Slot::read).collect();
        numbered.sort_by_key(|(number, _)| *number);
        let events: Vec<TraceEvent> = numbered.into_iter().map(|(_, event)| event).collect();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        RankTrace {
            rank: self.rank,
            size: self.size,
            is_virtual: self.is_virtual,
            lost: recorded.saturating_sub(events.len() as u64),
            threads: threads.iter().map(|(_, name)| name.clone()).collect(),
            events,
        }
    }

    /// Writes the trace beside the file of the job. Returns the file that could not be written, and why.
    pub fn write(&self) -> Result<(), (PathBuf, std::io::Error)> {
        let file = part_file(&self.file, self.rank);
        std::fs::write(&file, self.part().bytes()).map_err(|error| (file, error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::one_of_each_kind;
    use super::*;

    fn recorder(events: usize) -> Recorder {
        Recorder::new(&TraceTo { file: "x".into(), events }, Rank(1), 2, false)
    }

    #[test]
    fn a_full_ring_keeps_the_last_events_and_says_how_many_are_lost() {
        let recorder = recorder(10);
        let all = one_of_each_kind();
        all.iter().for_each(|&what| recorder.record(1, 2, false, what));
        let part = recorder.part();
        let kept: Vec<EventKind> = part.events.iter().map(|event| event.what).collect();
        let lost = all.len() - 10;
        assert_eq!((kept, part.lost), (all[lost..].to_vec(), lost as u64));
        assert_eq!((part.rank, part.size, part.threads), (Rank(1), 2, vec!["program".to_string()]));
    }

    #[test]
    fn threads_that_overtake_each_other_in_a_small_ring_tear_no_event() {
        const EACH: u64 = 20_000;
        let recorder = recorder(3);
        let is_whole = |event: &TraceEvent| {
            let EventKind::Arrived(number) = event.what else { return false };
            event.begin_ns == number && event.end_ns == number
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    (0..EACH).for_each(|number| {
                        recorder.record(number, number, false, EventKind::Arrived(number))
                    });
                });
            }
            for _ in 0..200 {
                assert!(recorder.part().events.iter().all(is_whole));
            }
        });
        let part = recorder.part();
        assert!(part.events.iter().all(is_whole));
        assert_eq!(part.lost + part.events.len() as u64, 3 * EACH);
    }

    #[test]
    fn a_thread_that_comes_a_turn_too_late_overwrites_nothing() {
        let slot = Slot::new();
        let event = |number| {
            let what = EventKind::Arrived(number);
            TraceEvent { thread: 0, begin_ns: 0, end_ns: 0, failed: false, what }
        };
        slot.fill(7, event(7).words());
        slot.fill(4, event(4).words());
        assert_eq!(slot.read(), Some((7, event(7))));
        slot.stamp.store(2 * 10 - 1, Ordering::Relaxed); // a thread is interrupted while it fills the slot
        slot.fill(13, event(13).words());
        assert_eq!(slot.read(), None);
    }

    #[test]
    fn threads_have_numbers_in_each_recorder() {
        let (one, other) = (recorder(99), recorder(99));
        let what = one_of_each_kind()[0];
        thread::scope(|scope| {
            let body = || {
                for _ in 0..9 {
                    [&one, &other].into_iter().for_each(|recorder| recorder.record(1, 1, false, what));
                }
            };
            let name = thread::Builder::new().name("second".into());
            name.spawn_scoped(scope, body).unwrap().join().unwrap();
        });
        one.record(1, 1, false, what);
        let part = one.part();
        assert_eq!(part.threads, ["program", "second"]);
        assert_eq!(part.events.iter().map(|event| event.thread).collect::<Vec<_>>()[8..], [1, 0]);
    }
}
