//! How a command is written into one or two lines.
//!
//! | word | first line | second line |
//! |---|---|---|
//! | 0 | number of the position (`ring`) | the same |
//! | 1 | kind:8, class:8, detail:8, lines:8, trigger:32 | bytes inline, or operands |
//! | 2 | threshold | " |
//! | 3 | source, or operand | " |
//! | 4 | destination | " |
//! | 5 | length:40, amount of the second effect:24 | " |
//! | 6 | signal of the first effect | " |
//! | 7 | amount of the first effect:32, second trigger:32 | signal of the second effect |
//!
//! In a queue that begins anew a trigger may count from pass to pass: bit 7 of the class says so, and the second
//! trigger's place says by how much the threshold grows with each pass. The command is not read before it is met. Bit 6
//! says that whoever raises its signal need not see to it: its rank does when it waits.
//!
//! A trigger is one more than the number of a signal of the queue's rank; 0: none. The threshold of the second one is
//! the last of the words that bytes inline have else.

use super::atomic_encoding::{atomic_number, atomic_of};
use super::command::{Action, Class, Command, Effect, SECOND_AMOUNT_MAX, Trigger};
use super::handler_call::{Args, BUFFER_MAX, Call, ReceivedCall, ReplyAddress};
use super::inline_data::{INLINE_BYTES, Inline};
use super::reduction::Reduction;
use super::ring::LINE_WORDS;
use crate::base::{Cause, Rank};
use crate::fabric::AtomicKind;
use crate::segment::GlobalAddress;
use crate::segment::layout::{RANGE_BYTES, SIGNALS_MAX, is_signal};

/// A command as it is posted: one line or two. Made of a deed, to which the rest is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodedCommand {
    /// The words behind the number of each line.
    pub words: [[u64; LINE_WORDS]; 2],
}

const NOTHING: u8 = 0;
const COPY: u8 = 1;
const PUT: u8 = 2;
const ATOMIC: u8 = 3;
const REDUCE: u8 = 4;
const CALL: u8 = 5;
const CALL_AT: u8 = 6;

/// Where the fields of word 1 begin.
const CLASS: u32 = 8;
const DETAIL: u32 = 16;
const COUNT: u32 = 24;
const TRIGGER: u32 = 32;
const LOW: u64 = (1 << TRIGGER) - 1;
const LENGTH_BITS: u32 = 40;
/// In word 1: the threshold grows from pass to pass.
pub(super) const EACH: u64 = 1 << (CLASS + 7);
const CLASS_BITS: u64 = 0x3f;
/// In word 1: nobody but the queue's rank is to hurry.
pub(super) const LEFT: u64 = 1 << (CLASS + 6);
/// Where the second line has the threshold of the second trigger, and the signal of the second effect.
const ALSO: usize = INLINE_BYTES / 8 - 1;
const SECOND_SIGNAL: usize = LINE_WORDS - 1;

/// Bytes that a command with two triggers can carry.
const INLINE_BYTES_ALSO: usize = ALSO * 8;

/// Where the peer of a call begins in the length, of which a call needs less. A buffer of 0 bytes is the largest: one
/// that is empty is carried.
const PEER: u32 = 16;
const CALL_BYTES: u64 = (1 << PEER) - 1;
const RANKS: u64 = (1 << (LENGTH_BITS - PEER)) - 1;
const _: () = assert!(BUFFER_MAX == CALL_BYTES + 1 && (Rank::MAX.0 as u64) << PEER < 1 << LENGTH_BITS);

impl EncodedCommand {
    /// That deed, at once, by anyone, with nothing to follow.
    #[inline(always)]
    pub fn of(deed: &Action) -> EncodedCommand {
        let mut second = [0; LINE_WORDS];
        let mut carried = |bytes: &Inline| {
            let short = bytes.len() <= 8;
            if !short {
                second[..INLINE_BYTES / 8].copy_from_slice(bytes.words());
            }
            (if short { bytes.words()[0] } else { 0 }, short)
        };
        let one = true;
        let (kind, detail, source, destination, length, short) = match *deed {
            Action::Nothing => (NOTHING, 0, 0, 0, 0, one),
            Action::Copy { from, to, len } => (COPY, 0, from.bits(), to.bits(), len, one),
            Action::Put { to, bytes } => {
                let (word, short) = carried(&bytes);
                (PUT, 0, word, to.bits(), bytes.len() as u64, short)
            }
            Action::Atomic { at, atomic, result } => {
                let expected = if let AtomicKind::Cas { expected } = atomic.kind { expected } else { 0 };
                (second[0], second[1]) = (expected, result.bits());
                let short = expected == 0 && result.is_null();
                (ATOMIC, atomic_number(atomic), atomic.operand, at.bits(), atomic.width.bytes(), short)
            }
            Action::Reduce { from, to, len, how } => {
                let (number, operator) = how.numbers();
                second[0] = operator;
                (REDUCE, number, from.bits(), to.bits(), len, how.operator().is_none())
            }
            Action::Call(Call { peer, handler, args: Args::At { from, len }, answer }) => {
                let length = (len & CALL_BYTES) | u64::from(peer.0) << PEER;
                (CALL_AT, handler, from.bits(), answer.bits(), length, one)
            }
            Action::Call(Call { peer, handler, args: Args::Inline(bytes), answer }) => {
                let (word, short) = carried(&bytes);
                let length = bytes.len() as u64 | u64::from(peer.0) << PEER;
                (CALL, handler, word, answer.bits(), length, short)
            }
        };
        let head = u64::from(kind) | u64::from(detail) << DETAIL | (2 - u64::from(short)) << COUNT;
        EncodedCommand { words: [[head, 0, source, destination, length, 0, 0], second] }
    }

    /// It fires when that has happened, too.
    pub fn when(&mut self, trigger: Trigger) -> Result<(), Cause> {
        let refuse = |text: String| Err(Cause::Argument(text));
        if u64::from(trigger.signal) >= SIGNALS_MAX {
            return refuse(format!("no signal has the number {}", trigger.signal));
        }
        match self.triggers() {
            [None, _] => {}
            [_, None] if self.carries() <= INLINE_BYTES_ALSO => {}
            [_, None] => {
                return refuse(format!(
                    "a command with two triggers carries at most {INLINE_BYTES_ALSO} bytes"
                ));
            }
            [_, Some(_)] => return refuse("a command has two triggers at most".into()),
        }
        self.add_trigger(trigger);
        Ok(())
    }

    /// What follows when it has ended well.
    pub fn then(&mut self, effect: Effect) -> Result<(), Cause> {
        let refuse = |text: String| Err(Cause::Argument(text));
        if !is_signal(effect.signal.offset()) {
            return refuse(format!("no signal lies at {}", effect.signal));
        }
        match self.effects() {
            [None, _] => {}
            [_, None] if effect.amount <= SECOND_AMOUNT_MAX => {}
            [_, None] => {
                let most = SECOND_AMOUNT_MAX;
                return refuse(format!("a second effect adds at most {most}, not {}", effect.amount));
            }
            [_, Some(_)] => return refuse("a command has two effects at most".into()),
        }
        self.add_effect(effect);
        Ok(())
    }

    /// Who may run it.
    #[inline(always)]
    pub fn bind(&mut self, class: Class) {
        self.words[0][0] = self.words[0][0] & !(CLASS_BITS << CLASS) | (class as u64) << CLASS;
    }

    #[inline(always)]
    fn add_trigger(&mut self, trigger: Trigger) {
        let [[head, threshold, .., last], second] = &mut self.words;
        let number = (u64::from(trigger.signal) + 1) << TRIGGER;
        if *head & !LOW == 0 {
            *head |= number;
            *threshold = trigger.threshold;
        } else {
            *last |= number;
            second[ALSO] = trigger.threshold;
            self.set_count(2);
        }
    }

    #[inline(always)]
    fn add_effect(&mut self, effect: Effect) {
        let [[.., length, signal, amount], second] = &mut self.words;
        if *signal == 0 {
            *signal = effect.signal.bits();
            *amount |= u64::from(effect.amount);
        } else {
            second[SECOND_SIGNAL] = effect.signal.bits();
            *length |= u64::from(effect.amount) << LENGTH_BITS;
            self.set_count(2);
        }
    }

    /// How many lines it takes: 1 or 2.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.words[0][0] >> COUNT & 0xff
    }

    /// It takes so many, whatever it needs.
    #[inline(always)]
    pub fn set_count(&mut self, count: u64) {
        self.words[0][0] = self.words[0][0] & !(0xff << COUNT) | count << COUNT;
    }

    /// Whether only a certain rank may run it.
    #[inline(always)]
    pub fn are_bound(&self) -> bool {
        self.words[0][0] >> CLASS & CLASS_BITS != Class::Any as u64
    }

    /// When it fires, once it was read.
    #[inline(always)]
    pub fn triggers(&self) -> [Option<Trigger>; 2] {
        let [[first, threshold, .., last], second] = &self.words;
        if first & EACH != 0 {
            return [None, None];
        }
        [trigger_of(*first, *threshold), trigger_of(*last, second[ALSO])]
    }

    /// The same, to wait only for the second trigger: the first one is met, and stays so.
    pub fn past_first(&self) -> EncodedCommand {
        let mut lines = *self;
        let [[first, threshold, .., last], second] = &mut lines.words;
        *first = *first & LOW | *last & !LOW;
        *threshold = std::mem::take(&mut second[ALSO]);
        *last &= LOW;
        lines
    }

    /// What follows when it has ended well.
    #[inline(always)]
    pub fn effects(&self) -> [Option<Effect>; 2] {
        let [[.., length, signal, amount], second] = &self.words;
        let effect = |signal: u64, amount: u64| {
            let signal = GlobalAddress::from_bits(signal);
            (!signal.is_null()).then_some(Effect { signal, amount: amount as u32 })
        };
        [effect(*signal, *amount), effect(second[SECOND_SIGNAL], length >> LENGTH_BITS)]
    }

    /// Whether all addresses of what it reads or changes are so.
    #[inline(always)]
    pub fn all_ends(&self, mut are_so: impl FnMut(GlobalAddress) -> bool) -> bool {
        let [head, _, source, destination, ..] = self.words[0];
        let (from, to) = (GlobalAddress::from_bits(source), GlobalAddress::from_bits(destination));
        match head as u8 {
            COPY | REDUCE => are_so(from) && are_so(to),
            PUT | ATOMIC => are_so(to),
            CALL_AT => are_so(from),
            _ => true,
        }
    }

    /// Whether all signals that it raises are so.
    #[inline(always)]
    pub fn all_effects(&self, are_so: impl Fn(GlobalAddress) -> bool) -> bool {
        let signals = [self.words[0][5], self.words[1][SECOND_SIGNAL]];
        signals.into_iter().all(|bits| bits == 0 || are_so(GlobalAddress::from_bits(bits)))
    }

    /// Whether it waits for a signal once it was read.
    #[inline(always)]
    pub fn is_triggered(&self) -> bool {
        self.words[0][0] >> TRIGGER != 0 && self.words[0][0] & EACH == 0
    }

    /// Whether it calls a handler.
    #[inline(always)]
    pub fn is_call(&self) -> bool {
        matches!(self.words[0][0] as u8, CALL | CALL_AT)
    }

    /// What it says of a call, if it is one.
    #[inline(always)]
    pub fn call(&self) -> Option<ReceivedCall> {
        let [head, _, source, destination, length, ..] = self.words[0];
        let (buffer, len) = match (head as u8, length & CALL_BYTES) {
            (CALL, len) => (None, len),
            (CALL_AT, 0) => (Some(GlobalAddress::from_bits(source)), BUFFER_MAX),
            (CALL_AT, len) => (Some(GlobalAddress::from_bits(source)), len),
            _ => return None,
        };
        let (peer, handler) = (Rank((length >> PEER & RANKS) as u32), (head >> DETAIL) as u8);
        Some(ReceivedCall { peer, handler, len, buffer, answer: ReplyAddress::from_bits(destination) })
    }

    /// The bytes that it carries.
    #[inline(always)]
    pub fn carried(&self) -> &[u8] {
        let len = self.carries();
        let words = if len <= 8 { &self.words[0][2..3] } else { &self.words[1][..INLINE_BYTES / 8] };
        let bytes: &[u8] = bytemuck::cast_slice(words);
        &bytes[..len.min(bytes.len())]
    }

    /// How many bytes it carries.
    #[inline(always)]
    fn carries(&self) -> usize {
        let [head, _, _, _, length, ..] = self.words[0];
        match head as u8 {
            PUT => (length & (RANGE_BYTES - 1)) as usize,
            CALL => (length & CALL_BYTES) as usize,
            _ => 0,
        }
    }
}

/// What a command copies from, if it is a copy, by the words 1 and 3 of its line.
#[inline(always)]
pub(super) fn source(head: u64, source: u64) -> Option<GlobalAddress> {
    (head as u8 == COPY).then(|| GlobalAddress::from_bits(source))
}

impl Command {
    /// What it is written as.
    #[inline(always)]
    pub fn lines(&self) -> EncodedCommand {
        let mut lines = EncodedCommand::of(&self.deed);
        lines.bind(self.class);
        [self.trigger, self.also].into_iter().flatten().for_each(|trigger| lines.add_trigger(trigger));
        self.effects.into_iter().flatten().for_each(|effect| lines.add_effect(effect));
        lines
    }

    /// The command of such lines. `None` if no command is written so.
    #[inline(always)]
    pub fn from_lines(lines: &EncodedCommand) -> Option<Command> {
        let [first, _, source, destination, length, _, amount] = lines.words[0];
        let second = &lines.words[1];
        let (detail, len) = ((first >> DETAIL) as u8, length & (RANGE_BYTES - 1));
        let (from, to) = (GlobalAddress::from_bits(source), GlobalAddress::from_bits(destination));
        let deed = match first as u8 {
            NOTHING => Action::Nothing,
            COPY => Action::Copy { from, to, len },
            PUT => Action::Put { to, bytes: inline(source, second, len, amount > LOW) },
            ATOMIC => {
                let atomic = atomic_of(detail, source, second[0])?;
                Action::Atomic { at: to, atomic, result: GlobalAddress::from_bits(second[1]) }
            }
            REDUCE => Action::Reduce { from, to, len, how: Reduction::of_numbers(detail, second[0])? },
            CALL | CALL_AT => {
                let ReceivedCall { peer, handler, len, buffer, answer } = lines.call()?;
                let args = match buffer {
                    Some(from) => Args::At { from, len },
                    None => Args::Inline(inline(source, second, len, amount > LOW)),
                };
                Action::Call(Call { peer, handler, args, answer })
            }
            _ => return None,
        };
        let [trigger, also] = lines.triggers();
        Some(Command {
            class: class_of((first >> CLASS & CLASS_BITS) as u8)?,
            trigger,
            also,
            deed,
            effects: lines.effects(),
        })
    }
}

/// The trigger of a command, in words 1 and 2 of its first line; the second one is written so, too.
#[inline(always)]
pub fn trigger_of(first: u64, threshold: u64) -> Option<Trigger> {
    let signal = (first >> TRIGGER) as u32;
    (signal != 0).then(|| Trigger { signal: signal - 1, threshold })
}

/// Bytes that a command carries, in its first line as far as they fit there; `also`: beside a second threshold.
#[inline(always)]
fn inline(first: u64, second: &[u64; LINE_WORDS], len: u64, also: bool) -> Inline {
    match len {
        0..=8 => Inline::from_words(&[first], len as usize),
        _ if also => Inline::from_words(&second[..ALSO], len as usize),
        _ => Inline::from_words(&second[..INLINE_BYTES / 8], len as usize),
    }
}

fn class_of(number: u8) -> Option<Class> {
    [Class::Any, Class::Source, Class::Destination].into_iter().find(|class| *class as u8 == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Atomic, Width};
    use crate::queue::atomic_encoding::KINDS;

    fn at(rank: u32, offset: u64) -> GlobalAddress {
        GlobalAddress::new(Rank(rank), offset)
    }

    fn every_deed() -> Vec<Action> {
        let mut deeds = vec![
            Action::Nothing,
            Action::Copy { from: at(1, 1 << 30), to: at(0xff_fffe, RANGE_BYTES - 1), len: RANGE_BYTES - 1 },
            Action::Put { to: at(2, 77), bytes: Inline::of(&[]).unwrap() },
            Action::Put { to: at(2, 77), bytes: Inline::of(&[1; 8]).unwrap() },
            Action::Put { to: at(2, 77), bytes: Inline::of(&[1; 9]).unwrap() },
            Action::Put { to: at(2, 77), bytes: Inline::of(&[255; INLINE_BYTES]).unwrap() },
        ];
        for kind in KINDS {
            let kind = if let AtomicKind::Cas { .. } = kind { AtomicKind::Cas { expected: 9 } } else { kind };
            for (width, result) in [(Width::W4, GlobalAddress::NULL), (Width::W8, at(3, 4096))] {
                let atomic = Atomic { kind, operand: u64::MAX, width };
                deeds.push(Action::Atomic { at: at(1, 8), atomic, result });
            }
        }
        let call = |args| {
            let answer = ReplyAddress::new(at(4, 1 << 30), 5);
            Action::Call(Call { peer: Rank(0xff_fffe), handler: 255, args, answer })
        };
        deeds.extend(
            [1, 8, 9, INLINE_BYTES].map(|len| call(Args::Inline(Inline::of(&vec![9; len]).unwrap()))),
        );
        deeds.push(call(Args::At { from: at(3, 64), len: 1 << 16 }));
        let own = [Reduction::own(7, 24).placed(true)];
        deeds.extend(Reduction::all().chain(own).map(|how| Action::Reduce {
            from: at(1, 8),
            to: at(0, 16),
            len: 80,
            how,
        }));
        deeds
    }

    fn read_as_written(command: Command) {
        let lines = command.lines();
        assert_eq!(Command::from_lines(&lines), Some(command));
        assert_eq!((lines.triggers(), lines.effects()), ([command.trigger, command.also], command.effects));
        if command.also.is_some() {
            let rest = Command { trigger: command.also, also: None, ..command };
            assert_eq!(Command::from_lines(&lines.past_first()), Some(rest));
        }
    }

    #[test]
    fn every_command_is_read_as_it_was_written() {
        let effects = [
            [None, None],
            [Some(Effect { signal: at(7, 1 << 28), amount: u32::MAX }), None],
            [1, SECOND_AMOUNT_MAX].map(|amount| Some(Effect { signal: at(8, 1 << 28), amount })),
        ];
        let triggers = [None, Some(Trigger { signal: 0, threshold: 5 })];
        let many = Some(Trigger { signal: (1 << 20) - 1, threshold: u64::MAX });
        for deed in every_deed() {
            let pairs = effects.iter().flat_map(|e| triggers.iter().chain([&many]).map(move |t| (e, t)));
            for (effects, trigger) in pairs {
                for class in [Class::Any, Class::Source, Class::Destination] {
                    let command = Command { class, trigger: *trigger, also: None, deed, effects: *effects };
                    read_as_written(command);
                    let room = command.lines().carries() <= INLINE_BYTES_ALSO;
                    if room && trigger.is_some() {
                        read_as_written(Command { also: many, ..command });
                    }
                }
            }
        }
    }

    #[test]
    fn what_nobody_wrote_is_no_command() {
        let mut lines = Command::new(Action::Nothing).lines();
        lines.words[0][0] |= 0xff;
        assert_eq!(Command::from_lines(&lines), None);
        let mut lines = Command::new(Action::Nothing).lines();
        lines.words[0][0] |= 7 << CLASS;
        assert_eq!(Command::from_lines(&lines), None);
    }

    #[test]
    fn short_commands_take_one_line() {
        let short = |deed| Command::new(deed).lines().count() == 1;
        assert!(short(Action::Nothing) && short(Action::Copy { from: at(0, 8), to: at(1, 8), len: 5 }));
        assert!(short(Action::Put { to: at(0, 8), bytes: Inline::of(&[1; 8]).unwrap() }));
        assert!(!short(Action::Put { to: at(0, 8), bytes: Inline::of(&[1; 9]).unwrap() }));
        let atomic = Atomic { kind: AtomicKind::Add, operand: 1, width: Width::W8 };
        assert!(short(Action::Atomic { at: at(0, 8), atomic, result: GlobalAddress::NULL }));
    }
}
