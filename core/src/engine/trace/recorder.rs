//! Where a rank records: a buffer of a fixed number of events, which takes no more when it is full.
//!
//! Whoever records takes the next place by one addition and fills it, the first word last (`SYNC trace-event`): nobody
//! waits for anybody, and a place that is being filled when the buffer is read counts as lost.

use super::event::{EventKind, TraceEvent, WORDS};
use super::rank_file::{RankTrace, part_file};
use crate::base::Rank;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Events that a rank keeps, if nothing else is said: 8 MiB.
pub const EVENTS: usize = 1 << 16;
/// The most that it may be told to keep: 2 GiB.
pub const EVENTS_MAX: usize = 1 << 24;

/// Where ranks write what happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceTo {
    /// The file of the whole job; each rank writes its part beside it.
    pub file: PathBuf,
    /// How many events each rank keeps.
    pub events: usize,
}

/// EventKind a rank records into.
#[derive(Debug)]
pub struct Recorder {
    file: PathBuf,
    rank: Rank,
    size: usize,
    is_virtual: bool,
    /// Tells recorders apart, for threads that are in several jobs.
    number: u64,
    next: AtomicU64,
    slots: Box<[[AtomicU64; WORDS]]>,
    /// The threads that have recorded something, by their numbers.
    threads: Mutex<Vec<(ThreadId, String)>>,
}

thread_local! {
    /// The recorder in which this thread was last, and its number there.
    static RECENT_THREAD: Cell<(u64, u16)> = const { Cell::new((0, 0)) };
}

impl Recorder {
    /// A recorder for `rank` of `size`, made by the thread of its program. Takes 128 bytes an event.
    pub fn new(to: &TraceTo, rank: Rank, size: usize, is_virtual: bool) -> Recorder {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let slot = || std::array::from_fn(|_| AtomicU64::new(0));
        let recorder = Recorder {
            // The program may change its folder.
            file: std::path::absolute(&to.file).unwrap_or_else(|_| to.file.clone()),
            rank,
            size,
            is_virtual,
            number: MADE.fetch_add(1, Ordering::Relaxed),
            next: AtomicU64::new(0),
            slots: (0..to.events).map(|_| slot()).collect(),
            threads: Mutex::default(),
        };
        recorder.name_thread("program");
        recorder
    }

    /// EventKind the calling thread is called, if it has recorded nothing yet.
    pub fn name_thread(&self, name: &str) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let me = thread::current().id();
        let known = threads.iter().position(|(id, _)| *id == me);
        let number = known.unwrap_or_else(|| {
            threads.push((me, name.to_string()));
            threads.len() - 1
        });
        RECENT_THREAD.set((self.number, u16::try_from(number).unwrap_or(u16::MAX)));
    }

    fn thread(&self) -> u16 {
        let (recorder, number) = RECENT_THREAD.get();
        if recorder == self.number {
            return number;
        }
        let name = thread::current().name().unwrap_or("thread").to_string();
        self.name_thread(&name);
        RECENT_THREAD.get().1
    }

    /// Records that something happened on the calling thread, between two times of the rank's clock. Neither waits nor
    /// allocates, but at a thread's first event.
    pub fn record(&self, begin_ns: u64, end_ns: u64, failed: bool, what: EventKind) {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(slot) = usize::try_from(place).ok().and_then(|place| self.slots.get(place)) else { return };
        let words = TraceEvent { thread: self.thread(), begin_ns, end_ns, failed, what }.words();
        for (into, word) in slot.iter().zip(words).skip(1) {
            into.store(word, Ordering::Relaxed);
        }
        slot[0].store(words[0], Ordering::Release); // SYNC trace-event
    }

    /// EventKind was recorded up to now.
    pub fn part(&self) -> RankTrace {
        let begun = self.next.load(Ordering::Relaxed);
        let slots = self.slots.iter().take(usize::try_from(begun).unwrap_or(usize::MAX));
        let event = |slot: &[AtomicU64; WORDS]| {
            let first = slot[0].load(Ordering::Acquire); // SYNC trace-event
            let mut words = std::array::from_fn(|word| slot[word].load(Ordering::Relaxed));
            words[0] = first;
            TraceEvent::of_words(&words)
        };
        let events: Vec<TraceEvent> = slots.filter_map(event).collect();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        RankTrace {
            rank: self.rank,
            size: self.size,
            is_virtual: self.is_virtual,
            lost: begun - events.len() as u64,
            threads: threads.iter().map(|(_, name)| name.clone()).collect(),
            events,
        }
    }

    /// Writes that beside the file of the job; the file that could not be written, and why.
    pub fn write(&self) -> Result<(), (PathBuf, std::io::Error)> {
        let file = part_file(&self.file, self.rank);
        std::fs::write(&file, self.part().bytes()).map_err(|error| (file, error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::some_of_each;
    use super::*;

    fn recorder(events: usize) -> Recorder {
        Recorder::new(&TraceTo { file: "x".into(), events }, Rank(1), 2, false)
    }

    #[test]
    fn a_full_buffer_takes_no_more_and_says_how_many_are_lost() {
        let recorder = recorder(10);
        let all = some_of_each();
        all.iter().for_each(|&what| recorder.record(1, 2, false, what));
        let part = recorder.part();
        let kept: Vec<EventKind> = part.events.iter().map(|event| event.what).collect();
        assert_eq!((kept, part.lost), (all[..10].to_vec(), all.len() as u64 - 10));
        assert_eq!((part.rank, part.size, part.threads), (Rank(1), 2, vec!["program".to_string()]));
    }

    #[test]
    fn threads_have_numbers_in_each_recorder() {
        let (one, other) = (recorder(99), recorder(99));
        let what = some_of_each()[0];
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
