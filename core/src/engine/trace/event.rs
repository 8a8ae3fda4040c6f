//! A trace event, encoded in sixteen words.
//!
//! | word | holds |
//! |---|---|
//! | 0 | kind:8, failed:8, thread:16, length of the text:32 |
//! | 1, 2 | begin and end, in ns of the rank's clock |
//! | 3 | the queue: owner:32, number:32; or the number of an operation |
//! | 4 | its generation |
//! | 5, 6 | positions, in-flight commands, signals, values, both ends of a transfer: depends on the kind |
//! | 7 to 15 | a command summary, 72 bytes of text, or the rest of a transfer |

use crate::base::Rank;
use crate::queue::command::Command;
use crate::queue::encoding::EncodedCommand;
use crate::queue::ring::LINE_WORDS;
use crate::segment::GlobalAddress;

/// Words of an event.
pub(super) const WORDS: usize = 16;
/// Bytes of an event.
pub const EVENT_BYTES: usize = 8 * WORDS;
const TEXT_AT: usize = 7;
const TEXT_BYTES: usize = 8 * (WORDS - TEXT_AT);
/// Stands for a missing number: no command in flight, no value that could be read.
const NONE: u64 = u64::MAX;

/// Something that happened on a thread of a rank.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceEvent {
    /// The thread, numbered in the order in which the threads of the rank first recorded an event.
    pub thread: u16,
    /// When it began, in ns of the rank's clock.
    pub begin_ns: u64,
    /// When it ended; equal to `begin_ns` for an instant event.
    pub end_ns: u64,
    /// True if it ended with an error.
    pub failed: bool,
    /// What happened.
    pub what: EventKind,
}

/// The name of a queue in traces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QueueId {
    /// The rank that owns the queue.
    pub owner: Rank,
    /// The number of the queue at its owner.
    pub number: u32,
    /// Distinguishes queues that had the same number one after the other.
    pub generation: u32,
}

/// A command in a queue: the position where it was posted or, once it is in flight, its number among those in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId {
    /// The queue.
    pub queue: QueueId,
    /// The position of its first line, or its number in flight.
    pub number: u64,
}

/// A command without the bytes that it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandSummary([u64; LINE_WORDS + 1]);

/// A put, get or copy that the program started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The source; null for a buffer of the calling rank.
    pub from: GlobalAddress,
    /// The destination; null for a buffer of the calling rank.
    pub to: GlobalAddress,
    /// Length in bytes.
    pub len: u64,
    /// The signal that a `put_signal` raises.
    pub raise: Option<Raise>,
    /// The number of the operation, if it was unfinished when the call returned;
    /// [`EventKind::Arrived`] records its end.
    pub number: Option<u64>,
}

/// A raise of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raise {
    /// The signal.
    pub signal: GlobalAddress,
    /// What was added to the signal.
    pub amount: u64,
    /// The value after the raise, if it could be read.
    pub value: Option<u64>,
}

/// A short text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceText {
    words: [u64; WORDS - TEXT_AT],
    len: usize,
}

/// The kinds of events.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EventKind {
    /// A command was posted: the whole call, which may include other commands.
    Posted(CommandId, CommandSummary),
    /// A command fired, and ran if it was short: its position, and its number in flight if it did not end at once.
    Fired(CommandId, Option<u64>, CommandSummary),
    /// A command in flight was run to its end.
    Ran(CommandId),
    /// This rank takes a command in flight to run it without the queue's lease.
    Began(CommandId),
    /// The run of such a command has ended.
    Ended(CommandId),
    /// A chunk of a copy that several ranks share was copied.
    Shared(CommandId, u64),
    /// The effects of a command in flight were applied.
    Retired(CommandId),
    /// A signal was raised as an effect of the last recorded event of that queue on this thread:
    /// the amount, and the value after it, if it could be read.
    Effect(QueueId, GlobalAddress, u64, Option<u64>),
    /// The program raised a signal.
    Raised(Raise),
    /// A handler ran: where its call was posted, and its name.
    Handled(CommandId, TraceText),
    /// The program waited; for a signal and its value, if the wait was for one.
    Waited(Option<(GlobalAddress, u64)>, TraceText),
    /// The program moved bytes: the whole call.
    Moved(Transfer),
    /// The operation of that number has ended.
    Arrived(u64),
    /// The program set a mark.
    Marked(TraceText),
    /// A span that the program named has ended.
    Spanned(TraceText),
}

impl CommandSummary {
    /// Returns the summary of a command.
    pub fn of(encoded: &EncodedCommand) -> CommandSummary {
        let mut words = [0; LINE_WORDS + 1];
        words[..LINE_WORDS].copy_from_slice(&encoded.words[0]);
        words[LINE_WORDS] = encoded.words[1][LINE_WORDS - 1];
        CommandSummary(words)
    }

    /// Returns the command; of its second line only the second effect is kept. `None` if the words are no command.
    pub fn command(&self) -> Option<Command> {
        let mut encoded = EncodedCommand { words: [[0; LINE_WORDS]; 2] };
        encoded.words[0].copy_from_slice(&self.0[..LINE_WORDS]);
        encoded.words[1][LINE_WORDS - 1] = self.0[LINE_WORDS];
        Command::decode(&encoded)
    }
}

impl TraceText {
    /// Returns the beginning of a text, up to 72 bytes.
    pub fn of(text: &str) -> TraceText {
        let mut len = text.len().min(TEXT_BYTES);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut words = [0; WORDS - TEXT_AT];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..len].copy_from_slice(&text.as_bytes()[..len]);
        TraceText { words, len }
    }

    /// Returns the text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&bytemuck::cast_slice(&self.words)[..self.len.min(TEXT_BYTES)]).into_owned()
    }
}

impl TraceEvent {
    /// Returns the event as words; the first is not 0.
    pub(super) fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        (words[1], words[2]) = (self.begin_ns, self.end_ns);
        let kind = self.what.write(&mut words);
        words[0] |= kind | u64::from(self.failed) << 8 | u64::from(self.thread) << 16;
        words
    }

    /// Returns the event of such words; `None` if they are no event of this version.
    pub(super) fn of_words(words: &[u64; WORDS]) -> Option<TraceEvent> {
        let [first, begin_ns, end_ns, ..] = *words;
        let what = EventKind::read(words)?;
        Some(TraceEvent {
            thread: (first >> 16) as u16,
            begin_ns,
            end_ns,
            failed: first >> 8 & 0xff != 0,
            what,
        })
    }
}

impl EventKind {
    /// Writes all words but the kind in the first, and returns the kind.
    fn write(&self, words: &mut [u64; WORDS]) -> u64 {
        let mut put = |queue: QueueId, one: u64, two: u64| {
            words[3] = u64::from(queue.owner.to_word()) | u64::from(queue.number) << 32;
            (words[4], words[5], words[6]) = (u64::from(queue.generation), one, two);
        };
        match *self {
            EventKind::Posted(place, _) => put(place.queue, place.number, NONE),
            EventKind::Fired(place, in_flight, _) => {
                put(place.queue, place.number, in_flight.unwrap_or(NONE))
            }
            EventKind::Ran(place)
            | EventKind::Began(place)
            | EventKind::Ended(place)
            | EventKind::Retired(place) => {
                put(place.queue, place.number, NONE);
            }
            EventKind::Handled(place, _) => put(place.queue, place.number, NONE),
            EventKind::Shared(place, chunk) => put(place.queue, place.number, chunk),
            EventKind::Effect(queue, signal, amount, value) => {
                put(queue, signal.bits(), value.unwrap_or(NONE));
                words[TEXT_AT] = amount;
            }
            EventKind::Raised(raise) => put_raise(words, raise),
            EventKind::Moved(transfer) => {
                words[3] = transfer.number.unwrap_or(NONE);
                (words[5], words[6]) = (transfer.from.bits(), transfer.to.bits());
                words[TEXT_AT + 3] = transfer.len;
                transfer.raise.into_iter().for_each(|raise| put_raise(words, raise));
            }
            EventKind::Arrived(number) => words[3] = number,
            EventKind::Marked(text) | EventKind::Spanned(text) => put_text(words, &text),
            EventKind::Waited(awaited, text) => {
                (words[5], words[6]) = awaited.map_or((0, 0), |(signal, value)| (signal.bits(), value));
                put_text(words, &text);
            }
        }
        if let EventKind::Handled(_, text) = self {
            put_text(words, text);
        }
        if let EventKind::Posted(_, CommandSummary(summary))
        | EventKind::Fired(_, _, CommandSummary(summary)) = self
        {
            words[TEXT_AT..TEXT_AT + summary.len()].copy_from_slice(summary);
        }
        self.kind()
    }

    fn kind(&self) -> u64 {
        match self {
            EventKind::Posted(..) => 1,
            EventKind::Fired(..) => 2,
            EventKind::Ran(_) => 3,
            EventKind::Began(_) => 4,
            EventKind::Ended(_) => 5,
            EventKind::Shared(..) => 6,
            EventKind::Retired(_) => 7,
            EventKind::Effect(..) => 8,
            EventKind::Raised(..) => 9,
            EventKind::Waited(..) => 10,
            EventKind::Handled(..) => 11,
            EventKind::Moved(_) => 12,
            EventKind::Arrived(_) => 13,
            EventKind::Marked(_) => 14,
            EventKind::Spanned(_) => 15,
        }
    }

    fn read(words: &[u64; WORDS]) -> Option<EventKind> {
        let [first, _, _, names, generation, one, two, ..] = *words;
        let (owner, number) = (Rank::from_word(names as u32), (names >> 32) as u32);
        let queue = QueueId { owner, number, generation: generation as u32 };
        let place = CommandId { queue, number: one };
        let summary = CommandSummary(words[TEXT_AT..=TEXT_AT + LINE_WORDS].try_into().ok()?);
        let text =
            || Some(TraceText { words: words[TEXT_AT..].try_into().ok()?, len: (first >> 32) as usize });
        let (signal, other) = (GlobalAddress::from_bits(one), (two != NONE).then_some(two));
        Some(match first & 0xff {
            1 => EventKind::Posted(place, summary),
            2 => EventKind::Fired(place, other, summary),
            3 => EventKind::Ran(place),
            4 => EventKind::Began(place),
            5 => EventKind::Ended(place),
            6 => EventKind::Shared(place, two),
            7 => EventKind::Retired(place),
            8 => EventKind::Effect(queue, signal, words[TEXT_AT], other),
            9 => EventKind::Raised(read_raise(words)),
            10 => EventKind::Waited((!signal.is_null()).then_some((signal, two)), text()?),
            11 => EventKind::Handled(place, text()?),
            12 => EventKind::Moved(Transfer {
                from: signal,
                to: GlobalAddress::from_bits(two),
                len: words[TEXT_AT + 3],
                raise: Some(read_raise(words)).filter(|raise| !raise.signal.is_null()),
                number: (names != NONE).then_some(names),
            }),
            13 => EventKind::Arrived(names),
            14 => EventKind::Marked(text()?),
            15 => EventKind::Spanned(text()?),
            _ => return None,
        })
    }
}

fn put_text(words: &mut [u64; WORDS], text: &TraceText) {
    words[TEXT_AT..].copy_from_slice(&text.words);
    words[0] = (text.len as u64) << 32;
}

/// Writes a raise into the first three words of the text.
fn put_raise(words: &mut [u64; WORDS], raise: Raise) {
    let value = raise.value.unwrap_or(NONE);
    words[TEXT_AT..TEXT_AT + 3].copy_from_slice(&[raise.signal.bits(), raise.amount, value]);
}

fn read_raise(words: &[u64; WORDS]) -> Raise {
    let [signal, amount, value] = [0, 1, 2].map(|at| words[TEXT_AT + at]);
    Raise { signal: GlobalAddress::from_bits(signal), amount, value: (value != NONE).then_some(value) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::queue::command::{Action, Effect};

    pub(in crate::engine::trace) fn one_of_each_kind() -> Vec<EventKind> {
        let queue = QueueId { owner: Rank(7), number: 4095, generation: 65_535 };
        let place = CommandId { queue, number: 1 << 40 };
        let signal = GlobalAddress::new(Rank(3), crate::segment::layout::signal_offset(9));
        let summary = CommandSummary::of(&EncodedCommand::of(&Action::Nothing));
        vec![
            EventKind::Posted(place, summary),
            EventKind::Fired(place, None, summary),
            EventKind::Fired(place, Some(0), summary),
            EventKind::Ran(place),
            EventKind::Began(place),
            EventKind::Ended(place),
            EventKind::Shared(place, 77),
            EventKind::Retired(place),
            EventKind::Effect(queue, signal, 5, Some(0)),
            EventKind::Effect(queue, signal, 5, None),
            EventKind::Raised(Raise { signal, amount: 2, value: Some(3) }),
            EventKind::Raised(Raise { signal, amount: u64::MAX, value: None }),
            EventKind::Moved(Transfer {
                from: GlobalAddress::NULL,
                to: signal,
                len: 8,
                raise: None,
                number: None,
            }),
            EventKind::Moved(Transfer {
                from: signal,
                to: signal,
                len: 1 << 40,
                raise: Some(Raise { signal, amount: 1, value: None }),
                number: Some(7),
            }),
            EventKind::Arrived(7),
            EventKind::Marked(TraceText::of("checkpoint")),
            EventKind::Spanned(TraceText::of("step")),
            EventKind::Waited(Some((signal, 1 << 63)), TraceText::of("wait(signal 9 >= 4)")),
            EventKind::Waited(None, TraceText::of("")),
            EventKind::Handled(place, TraceText::of("insert")),
        ]
    }

    #[test]
    fn every_event_is_read_as_it_was_written() {
        for what in one_of_each_kind() {
            for (thread, failed) in [(0, false), (u16::MAX, true)] {
                let event = TraceEvent { thread, begin_ns: 5, end_ns: u64::MAX, failed, what };
                assert_eq!(TraceEvent::of_words(&event.words()), Some(event));
            }
        }
        assert_eq!(TraceEvent::of_words(&[0; WORDS]), None);
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        assert_eq!(TraceText::of(&"ä".repeat(99)).text(), "ä".repeat(TEXT_BYTES / 2));
    }

    #[test]
    fn a_command_in_short_keeps_what_it_does() {
        let at = |rank, offset| GlobalAddress::new(Rank(rank), offset);
        let mut command = Command::new(Action::Copy { from: at(0, 1 << 30), to: at(1, 1 << 30), len: 9 });
        command.effects = [1, 2].map(|amount| Some(Effect { signal: at(1, 256 << 20), amount }));
        assert_eq!(CommandSummary::of(&command.encode()).command(), Some(command));
    }
}
