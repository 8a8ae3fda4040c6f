//! What is seen of a rank's queues by somebody who has no more than the rank's memory file: `tasuki ps`.
#![allow(unsafe_code)]
//! Unsafe: structures of atomics over memory of our own, into which bytes of the file were copied. Whatever they say
//! while the rank goes on, nothing is followed that was not checked.
//!
//! The file is read, not mapped: pages that nobody has touched stay away. The parts of what is seen need not be of one
//! moment: counts may be off by what happened meanwhile.

use super::command::Trigger;
use super::directory::{LEVELS_MAX, QueueDirectory};
use super::in_flight::{IN_FLIGHT_MAX, InFlightCommand, InFlightStage};
use super::layout::{self, CALLS, Queue, QueueInfo};
use super::triggered::SignalList;
use crate::base::Rank;
use crate::fabric::DirectCell;
use crate::os::memfile::MemFile;
use crate::segment::layout::{GRANULE, LOCAL, QUEUES_MAX, SIGNALS_MAX, STATION, signal_offset};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// TriggeredLists of waiting commands that are looked at: the nearest is sought among so many signals.
const LISTS: usize = 256;
/// As structures of queues are aligned, in words.
const ALIGN_WORDS: usize = 16;
/// Of a signal: counter and payload, then who waits for it.
const SIGNAL_BYTES: usize = 128;

/// QueueKind queue of its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueKind {
    /// The one of commands that has this number.
    Commands(u32),
    /// The one of calls that may lead to so many levels of further calls.
    Calls(u32),
}

/// A queue as it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueReport {
    /// QueueKind it is.
    pub which: QueueKind,
    /// EncodedCommand of its ring.
    pub capacity: u64,
    /// EncodedCommand that were reserved and not read.
    pub unread: u64,
    /// Commands that wait for their triggers.
    pub waiting: u64,
    /// Of those, what the one needs that needs the least.
    pub nearest: Option<AwaitedSignal>,
    /// What the head of a session queue needs to be read.
    pub credit: Option<AwaitedSignal>,
    /// Commands that have fired and whose effects have not happened.
    pub under_way: u64,
    /// Ranks that run some of them, each once.
    pub run_by: Vec<Rank>,
    /// Ranks that alone may run some of them, and have not begun: with how many.
    pub left_to: Vec<(Rank, u64)>,
    /// Commands that have failed.
    pub failed: u64,
}

/// A signal of the queue's rank, and how far it is to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AwaitedSignal {
    /// ElementType of the signal.
    pub signal: u32,
    /// How far it has come.
    pub value: u64,
    /// What is waited for.
    pub wanted: u64,
}

/// The queues of the rank whose memory file that is, as they are now. One that cannot be read is left out.
pub fn queues_in(file: &MemFile, rank: Rank) -> Vec<QueueReport> {
    let mut copy = Copy::new(size_of::<QueueDirectory>());
    if copy.read(file, STATION, 0..size_of::<QueueDirectory>()).is_none() {
        return Vec::new();
    }
    // SAFETY: memory of our own, aligned, as long as a station, which is made of atomics.
    let station: &QueueDirectory = unsafe { copy.start().cast().as_ref() };
    let queues =
        (0..QUEUES_MAX).filter_map(|number| Some((QueueKind::Commands(number), station.queue(number)?)));
    let calls =
        (0..LEVELS_MAX as u32).filter_map(|level| Some((QueueKind::Calls(level), station.calls(level)?)));
    queues.chain(calls).filter_map(|(which, at)| sight(file, rank, which, at)).collect()
}

fn sight(file: &MemFile, rank: Rank, which: QueueKind, at: u64) -> Option<QueueReport> {
    if !LOCAL.contains(&at) || !at.is_multiple_of(GRANULE) {
        return None;
    }
    let mut head = Copy::new(layout::HEAD_BYTES as usize);
    head.read(file, at, 0..layout::HEAD_BYTES as usize)?;
    // SAFETY: memory of our own, aligned, as long as a head.
    let card = unsafe { layout::queue_info_at(head.start()) }?;
    let is_it = match which {
        QueueKind::Commands(number) => card.number == number,
        QueueKind::Calls(level) => (card.number, card.generation) == (CALLS, level),
    };
    if !is_it || layout::bytes(card.capacity) > LOCAL.end - at {
        return None;
    }
    let copy = copy_queue(file, at, &card)?;
    // SAFETY: memory of our own, aligned, of that size, for as long as the copy lives.
    let queue = unsafe { Queue::over(copy.start(), card.capacity) };
    Some(look(file, rank, which, &card, &queue))
}

/// The parts of a queue that are looked at, where they belong; the rest is zero.
fn copy_queue(file: &MemFile, at: u64, card: &QueueInfo) -> Option<Copy> {
    let bytes = layout::bytes(card.capacity) as usize;
    let mut copy = Copy::new(bytes);
    let flights = layout::HEAD_BYTES as usize + IN_FLIGHT_MAX as usize * size_of::<InFlightCommand>();
    copy.read(file, at, 0..flights)?;
    let lists = bytes - card.capacity as usize * size_of::<SignalList>();
    let looked_at = LISTS.min(card.capacity as usize) * size_of::<SignalList>();
    copy.read(file, at, lists..lists + looked_at)?;
    Some(copy)
}

fn look(file: &MemFile, rank: Rank, which: QueueKind, card: &QueueInfo, queue: &Queue<'_>) -> QueueReport {
    let need =
        |signal: u32, wanted: u64| AwaitedSignal { signal, value: height(file, signal).unwrap_or(0), wanted };
    let triggers = queue.parked().triggers().take(LISTS);
    let needs = triggers.map(|Trigger { signal, threshold }| need(signal, threshold));
    let nearest = needs.min_by_key(|need| need.wanted.wrapping_sub(need.value) as i64);
    let unread = queue.posters().reserved().saturating_sub(queue.reader().read());
    let waiting = u64::from(queue.parked().len()).min(card.capacity);
    let credit = card.credit.map(|signal| need(signal, queue.commands().wrapping_add(1)));
    let credit = credit.filter(|need| need.wanted.wrapping_sub(need.value) as i64 > 0 && unread > 0);
    let mut sight = QueueReport {
        which,
        capacity: card.capacity,
        unread: unread.min(card.capacity),
        waiting,
        nearest: nearest.filter(|_| waiting > 0),
        credit,
        under_way: 0,
        run_by: Vec::new(),
        left_to: Vec::new(),
        failed: queue.failures().0,
    };
    look_at_flights(queue, rank, &mut sight);
    if matches!(which, QueueKind::Calls(_)) && sight.unread > 0 {
        sight.left_to.push((rank, sight.unread)); // one of two lines counts twice
    }
    sight
}

/// How far a signal has come.
fn height(file: &MemFile, signal: u32) -> Option<u64> {
    let at = (u64::from(signal) < SIGNALS_MAX).then(|| signal_offset(signal))?;
    let mut copy = Copy::new(SIGNAL_BYTES);
    copy.read(file, at, 0..SIGNAL_BYTES)?;
    // SAFETY: memory of our own, aligned, as long as a signal, which is made of atomics.
    let cell = unsafe { DirectCell::new(copy.start()) };
    Some(cell.arming().raised_value(cell.counter().load(Ordering::Relaxed)))
}

fn look_at_flights(queue: &Queue<'_>, owner: Rank, sight: &mut QueueReport) {
    let flights = queue.flights();
    let numbers = flights.numbers();
    let count = numbers.end.saturating_sub(numbers.start).min(IN_FLIGHT_MAX);
    for number in numbers.take(count as usize) {
        match flights.stage(number) {
            InFlightStage::Retired => continue,
            InFlightStage::Running(rank) if !sight.run_by.contains(&Rank(rank)) => {
                sight.run_by.push(Rank(rank))
            }
            InFlightStage::Fired => {
                // What any rank may run, and none has, its owner does at the latest.
                let runner = flights.command(number).and_then(|command| command.runner()).unwrap_or(owner);
                match sight.left_to.iter_mut().find(|(rank, _)| *rank == runner) {
                    Some((_, count)) => *count += 1,
                    None => sight.left_to.push((runner, 1)),
                }
            }
            InFlightStage::Running(_) | InFlightStage::Ended(_) => {}
        }
        sight.under_way += 1;
    }
}

/// Memory of our own for a copy, aligned as queues are. What is not written takes no memory.
struct Copy {
    words: Vec<u64>,
    skip: usize,
}

impl Copy {
    fn new(bytes: usize) -> Copy {
        let words = vec![0; bytes.div_ceil(8) + ALIGN_WORDS];
        let skip = words.as_ptr().align_offset(8 * ALIGN_WORDS).min(ALIGN_WORDS);
        Copy { words, skip }
    }

    fn start(&self) -> NonNull<u8> {
        NonNull::from(&self.words[self.skip]).cast()
    }

    /// Copies that range of what begins at `at` in the file to its place.
    fn read(&mut self, file: &MemFile, at: u64, range: std::ops::Range<usize>) -> Option<()> {
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut self.words[self.skip..]);
        file.read_at(at + range.start as u64, bytes.get_mut(range)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::{Action, Class, Command};
    use super::super::layout::QueueWord;
    use super::*;
    use crate::os::mapping::Mapping;
    use crate::segment::GlobalAddress;
    use crate::segment::layout::{PIECE, RANGE_BYTES};

    /// A rank's file with one queue that waits, as its owner has it.
    fn rank_with(credit: Option<u32>, body: impl FnOnce(&Queue<'_>)) -> MemFile {
        let file = MemFile::create(c"sight", RANGE_BYTES).unwrap();
        let (system, local) = (
            Mapping::shared(&file, 0, PIECE as usize).unwrap(),
            Mapping::shared(&file, LOCAL.start, PIECE as usize).unwrap(),
        );
        // SAFETY: mapped, zeroed, aligned, and nobody else's.
        let (station, queue): (&QueueDirectory, Queue<'_>) =
            unsafe { (system.start().add(STATION as usize).cast().as_ref(), Queue::over(local.start(), 8)) };
        queue.begin(QueueInfo { capacity: 8, number: 3, generation: 1, credit });
        station.set_queue(3, LOCAL.start);
        body(&queue);
        file
    }

    #[test]
    fn waiting_commands_and_flights_are_seen() {
        let file = rank_with(None, |queue| {
            let mut command = Command::new(Action::Nothing);
            for (signal, threshold) in [(7, 9), (5, 4)] {
                let trigger = Trigger { signal, threshold };
                command.trigger = Some(trigger);
                queue.parked().park(&command.lines(), trigger, 0);
            }
            let to = GlobalAddress::new(Rank(2), 1 << 30);
            let mut copy = Command::new(Action::Copy { from: to, to, len: 8 });
            copy.class = Class::Destination;
            for _ in 0..3 {
                queue.flights().fire(&copy);
            }
            queue.flights().take(0, 6);
            queue.posters().reserve(2, 8, &Default::default());
        });
        let seen = queues_in(&file, Rank(1));
        let expected = QueueReport {
            which: QueueKind::Commands(3),
            capacity: 8,
            unread: 2,
            waiting: 2,
            nearest: Some(AwaitedSignal { signal: 5, value: 0, wanted: 4 }),
            credit: None,
            under_way: 3,
            run_by: vec![Rank(6)],
            left_to: vec![(Rank(2), 2)],
            failed: 0,
        };
        assert_eq!(seen, [expected]);
    }

    #[test]
    fn a_session_s_head_waits_for_credit() {
        let file = rank_with(Some(4), |queue| {
            queue.posters().reserve(1, 8, &Default::default());
        });
        let need = AwaitedSignal { signal: 4, value: 0, wanted: 1 };
        assert_eq!(queues_in(&file, Rank(1))[0].credit, Some(need));
    }

    #[test]
    fn whatever_is_in_the_file_nothing_breaks() {
        let file = rank_with(None, |_| ());
        let queue = Mapping::shared(&file, LOCAL.start, 1 << 16).unwrap();
        let queue_info_at = QueueWord::QueueHeader.of(GlobalAddress::new(Rank(0), 0)).offset() as usize;
        for at in (0..layout::bytes(8) as usize)
            .step_by(8)
            .filter(|at| !(queue_info_at..queue_info_at + 24).contains(at))
        {
            // SAFETY: mapped; no reference to it lives.
            unsafe { queue.start().add(at).cast::<u64>().write_volatile(u64::MAX - at as u64) };
        }
        let seen = queues_in(&file, Rank(1));
        assert!(seen.len() == 1 && seen[0].under_way <= IN_FLIGHT_MAX && seen[0].waiting <= 8, "{seen:?}");
        // A queue of another number was there before, or is no queue.
        for (word, value) in [(2, 9_u64 << 32), (1, 1 << 40)] {
            // SAFETY: as above.
            unsafe { queue.start().add(queue_info_at + 8 * word).cast::<u64>().write_volatile(value) };
            assert_eq!(queues_in(&file, Rank(1)), []);
        }
        let empty = MemFile::create(c"empty", RANGE_BYTES).unwrap();
        assert_eq!(queues_in(&empty, Rank(1)), []);
        assert_eq!(queues_in(&MemFile::create(c"short", 4096).unwrap(), Rank(1)), []);
    }
}
