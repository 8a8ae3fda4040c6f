//! Inspection of a rank's queues by a process that only has the rank's memory file: `tasuki ps`.
#![allow(unsafe_code)]
//! Unsafe: structures of atomics over private memory into which bytes of the file were copied. The rank changes the
//! file meanwhile, so every value is checked before it is used as an index or an offset.
//!
//! The file is read, not mapped, so that pages which no rank has touched are not allocated. The parts of a report may
//! be from different moments: counts may be off by what happened in between.

use super::command::Trigger;
use super::directory::{LEVELS_MAX, QueueDirectory};
use super::in_flight::{IN_FLIGHT_MAX, InFlightCommand, InFlightStage};
use super::layout::{self, CALLS, Queue, QueueInfo};
use super::triggered::SignalList;
use crate::base::Rank;
use crate::base::sync::Ordering;
use crate::fabric::DirectCell;
use crate::os::memfile::MemFile;
use crate::segment::layout::{GRANULE, LOCAL, QUEUE_DIRECTORY, QUEUES_MAX, SIGNALS_MAX, signal_offset};
use std::ptr::NonNull;

/// Number of signal lists that are read. Only their triggers are considered for the nearest trigger.
const LISTS: usize = 256;
/// Alignment of the structures of a queue, in words.
const ALIGN_WORDS: usize = 16;
/// Bytes of a signal: one line with counter and payload, one with the signal control.
const SIGNAL_BYTES: usize = 128;

/// Identifies a queue of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueKind {
    /// The command queue with this number.
    Commands(u32),
    /// The call queue for calls that may lead to this many levels of further calls.
    Calls(u32),
}

/// The state of a queue when it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueReport {
    /// Which queue it is.
    pub kind: QueueKind,
    /// Number of lines of its ring.
    pub capacity: u64,
    /// Number of lines that were reserved and not read.
    pub unread: u64,
    /// Number of commands that wait for their triggers.
    pub waiting: u64,
    /// The trigger of a waiting command that is nearest to its threshold.
    pub nearest: Option<AwaitedSignal>,
    /// The credit that the head of a session queue waits for.
    pub credit: Option<AwaitedSignal>,
    /// Number of commands that have fired and whose effects have not happened.
    pub in_flight: u64,
    /// Ranks that run commands of the queue now, each listed once.
    pub run_by: Vec<Rank>,
    /// Ranks that have commands left to them: each rank, with the number of fired commands that only it may run and has
    /// not begun.
    pub left_to: Vec<(Rank, u64)>,
    /// Number of commands that have failed.
    pub failed: u64,
}

/// A signal of the queue's rank and the value that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AwaitedSignal {
    /// Number of the signal.
    pub signal: u32,
    /// The value of the signal.
    pub value: u64,
    /// The value that is waited for.
    pub wanted: u64,
}

/// Reports on the queues of the rank whose memory file is `file`. A queue that cannot be read is left out.
pub fn queues_in(file: &MemFile, rank: Rank) -> Vec<QueueReport> {
    let mut copy = Copy::new(size_of::<QueueDirectory>());
    if copy.read(file, QUEUE_DIRECTORY, 0..size_of::<QueueDirectory>()).is_none() {
        return Vec::new();
    }
    // SAFETY: `copy` is private memory, aligned and as long as a queue directory, which is made of atomics.
    let directory: &QueueDirectory = unsafe { copy.start().cast().as_ref() };
    let queues =
        (0..QUEUES_MAX).filter_map(|number| Some((QueueKind::Commands(number), directory.queue(number)?)));
    let calls =
        (0..LEVELS_MAX as u32).filter_map(|level| Some((QueueKind::Calls(level), directory.calls(level)?)));
    queues.chain(calls).filter_map(|(kind, at)| inspect_queue(file, rank, kind, at)).collect()
}

fn inspect_queue(file: &MemFile, rank: Rank, kind: QueueKind, at: u64) -> Option<QueueReport> {
    if !LOCAL.contains(&at) || !at.is_multiple_of(GRANULE) {
        return None;
    }
    let mut head = Copy::new(layout::HEAD_BYTES as usize);
    head.read(file, at, 0..layout::HEAD_BYTES as usize)?;
    // SAFETY: `head` is private memory, aligned and as long as the head of a queue.
    let info = unsafe { layout::queue_info_at(head.start()) }?;
    let is_it = match kind {
        QueueKind::Commands(number) => info.number == number,
        QueueKind::Calls(level) => (info.number, info.generation) == (CALLS, level),
    };
    if !is_it || layout::bytes(info.capacity) > LOCAL.end - at {
        return None;
    }
    let copy = copy_queue(file, at, &info)?;
    // SAFETY: `copy` is private memory, aligned and as long as the queue, and outlives `queue`.
    let queue = unsafe { Queue::over(copy.start(), info.capacity) };
    Some(report_of(file, rank, kind, &info, &queue))
}

/// Copies the parts of a queue that are read to their offsets; the rest is zero.
fn copy_queue(file: &MemFile, at: u64, info: &QueueInfo) -> Option<Copy> {
    let bytes = layout::bytes(info.capacity) as usize;
    let mut copy = Copy::new(bytes);
    let in_flight = layout::HEAD_BYTES as usize + IN_FLIGHT_MAX as usize * size_of::<InFlightCommand>();
    copy.read(file, at, 0..in_flight)?;
    let lists = bytes - info.capacity as usize * size_of::<SignalList>();
    let looked_at = LISTS.min(info.capacity as usize) * size_of::<SignalList>();
    copy.read(file, at, lists..lists + looked_at)?;
    Some(copy)
}

fn report_of(
    file: &MemFile,
    rank: Rank,
    kind: QueueKind,
    info: &QueueInfo,
    queue: &Queue<'_>,
) -> QueueReport {
    let need = |signal: u32, wanted: u64| AwaitedSignal {
        signal,
        value: signal_value(file, signal).unwrap_or(0),
        wanted,
    };
    let triggers = queue.triggered().triggers().take(LISTS);
    let needs = triggers.map(|Trigger { signal, threshold }| need(signal, threshold));
    let nearest = needs.min_by_key(|need| need.wanted.wrapping_sub(need.value) as i64);
    let unread = queue.writers().reserved().saturating_sub(queue.reader().read());
    let waiting = u64::from(queue.triggered().len()).min(info.capacity);
    let credit = info.credit.map(|signal| need(signal, queue.commands().wrapping_add(1)));
    let credit = credit.filter(|need| need.wanted.wrapping_sub(need.value) as i64 > 0 && unread > 0);
    let mut report = QueueReport {
        kind,
        capacity: info.capacity,
        unread: unread.min(info.capacity),
        waiting,
        nearest: nearest.filter(|_| waiting > 0),
        credit,
        in_flight: 0,
        run_by: Vec::new(),
        left_to: Vec::new(),
        failed: queue.failures().0,
    };
    count_in_flight(queue, rank, &mut report);
    if matches!(kind, QueueKind::Calls(_)) && report.unread > 0 {
        report.left_to.push((rank, report.unread)); // a call of two lines counts twice
    }
    report
}

/// The value of a signal.
fn signal_value(file: &MemFile, signal: u32) -> Option<u64> {
    let at = (u64::from(signal) < SIGNALS_MAX).then(|| signal_offset(signal))?;
    let mut copy = Copy::new(SIGNAL_BYTES);
    copy.read(file, at, 0..SIGNAL_BYTES)?;
    // SAFETY: `copy` is private memory, aligned and as long as a signal, which is made of atomics.
    let cell = unsafe { DirectCell::new(copy.start()) };
    Some(cell.control().raised_value(cell.counter().load(Ordering::Relaxed)))
}

fn count_in_flight(queue: &Queue<'_>, owner: Rank, report: &mut QueueReport) {
    let in_flight = queue.in_flight();
    let numbers = in_flight.numbers();
    let count = numbers.end.saturating_sub(numbers.start).min(IN_FLIGHT_MAX);
    for number in numbers.take(count as usize) {
        match in_flight.stage(number) {
            InFlightStage::Retired => continue,
            InFlightStage::Running(rank) if !report.run_by.contains(&Rank::from_word(rank)) => {
                report.run_by.push(Rank::from_word(rank))
            }
            InFlightStage::Fired => {
                // If any rank may run the command and none has begun, the owner runs it in the end.
                let runner = in_flight.command(number).and_then(|command| command.runner()).unwrap_or(owner);
                match report.left_to.iter_mut().find(|(rank, _)| *rank == runner) {
                    Some((_, count)) => *count += 1,
                    None => report.left_to.push((runner, 1)),
                }
            }
            InFlightStage::Running(_) | InFlightStage::Ended(_) => {}
        }
        report.in_flight += 1;
    }
}

/// Private memory for a copy, aligned as queues are. Pages that are not written take no memory.
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

    /// Copies `range` of the object that begins at `at` in the file to the same range of the copy.
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

    /// A rank's memory file with one queue, which `body` fills.
    fn rank_with(credit: Option<u32>, body: impl FnOnce(&Queue<'_>)) -> MemFile {
        let file = MemFile::create(c"inspect", RANGE_BYTES).unwrap();
        let (system, local) = (
            Mapping::shared(&file, 0, PIECE as usize).unwrap(),
            Mapping::shared(&file, LOCAL.start, PIECE as usize).unwrap(),
        );
        // SAFETY: both mappings are zeroed, aligned, long enough, and used by nobody else.
        let (directory, queue): (&QueueDirectory, Queue<'_>) = unsafe {
            (system.start().add(QUEUE_DIRECTORY as usize).cast().as_ref(), Queue::over(local.start(), 8))
        };
        queue.begin(QueueInfo { capacity: 8, number: 3, generation: 1, credit });
        directory.set_queue(3, LOCAL.start);
        body(&queue);
        file
    }

    #[test]
    fn waiting_and_in_flight_commands_are_reported() {
        let file = rank_with(None, |queue| {
            let mut command = Command::new(Action::Nothing);
            for (signal, threshold) in [(7, 9), (5, 4)] {
                let trigger = Trigger { signal, threshold };
                command.trigger = Some(trigger);
                queue.triggered().add(&command.encode(), trigger, 0);
            }
            let to = GlobalAddress::new(Rank(2), 1 << 30);
            let mut copy = Command::new(Action::Copy { from: to, to, len: 8 });
            copy.class = Class::Destination;
            for _ in 0..3 {
                queue.in_flight().fire(&copy);
            }
            queue.in_flight().take(0, 6);
            queue.writers().reserve(2, 8, &Default::default());
        });
        let seen = queues_in(&file, Rank(1));
        let expected = QueueReport {
            kind: QueueKind::Commands(3),
            capacity: 8,
            unread: 2,
            waiting: 2,
            nearest: Some(AwaitedSignal { signal: 5, value: 0, wanted: 4 }),
            credit: None,
            in_flight: 3,
            run_by: vec![Rank(6)],
            left_to: vec![(Rank(2), 2)],
            failed: 0,
        };
        assert_eq!(seen, [expected]);
    }

    #[test]
    fn missing_credit_of_a_session_queue_is_reported() {
        let file = rank_with(Some(4), |queue| {
            queue.writers().reserve(1, 8, &Default::default());
        });
        let need = AwaitedSignal { signal: 4, value: 0, wanted: 1 };
        assert_eq!(queues_in(&file, Rank(1))[0].credit, Some(need));
    }

    #[test]
    fn any_contents_of_the_file_are_handled() {
        let file = rank_with(None, |_| ());
        let queue = Mapping::shared(&file, LOCAL.start, 1 << 16).unwrap();
        let queue_info_at = QueueWord::QueueHeader.of(GlobalAddress::new(Rank(1), 0)).offset() as usize;
        for at in (0..layout::bytes(8) as usize)
            .step_by(8)
            .filter(|at| !(queue_info_at..queue_info_at + 24).contains(at))
        {
            // SAFETY: the word lies in the mapping, and no reference to it lives.
            unsafe { queue.start().add(at).cast::<u64>().write_volatile(u64::MAX - at as u64) };
        }
        let seen = queues_in(&file, Rank(1));
        assert!(seen.len() == 1 && seen[0].in_flight <= IN_FLIGHT_MAX && seen[0].waiting <= 8, "{seen:?}");
        // A header with the number of another queue, and one with an impossible capacity.
        for (word, value) in [(2, 9_u64 << 32), (1, 1 << 40)] {
            // SAFETY: the word lies in the mapping, and no reference to it lives.
            unsafe { queue.start().add(queue_info_at + 8 * word).cast::<u64>().write_volatile(value) };
            assert_eq!(queues_in(&file, Rank(1)), []);
        }
        let empty = MemFile::create(c"empty", RANGE_BYTES).unwrap();
        assert_eq!(queues_in(&empty, Rank(1)), []);
        assert_eq!(queues_in(&MemFile::create(c"short", 4096).unwrap(), Rank(1)), []);
    }
}
