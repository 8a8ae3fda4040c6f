//! The encoding of a command in one or two ring lines.
//!
//! | word | first line | second line |
//! |---|---|---|
//! | 0 | number of the position (`ring`) | number of the next position |
//! | 1 | kind:8, class:8, detail:8, lines:8, trigger:32 | inline bytes, or operands |
//! | 2 | threshold | " |
//! | 3 | source, or operand | " |
//! | 4 | destination | " |
//! | 5 | length:40, amount of the second effect:24 | " |
//! | 6 | signal of the first effect | " |
//! | 7 | amount of the first effect:32, second trigger:32 | signal of the second effect |
//!
//! In a repeating queue the threshold of a trigger may grow with each round. Bit 7 of the class marks such a command,
//! and the field of the second trigger holds the amount that is added for each round. The command is read only when its
//! trigger is met. Bit 6 of the class means that a rank which raises the signal need not run the queue: the queue's
//! rank does that when it waits.
//!
//! A trigger field holds one more than the number of a signal of the queue's rank; 0 means no trigger. The threshold of
//! the second trigger takes the last word of the inline bytes.

use super::atomic_encoding::{atomic_number, atomic_of};
use super::command::{Action, Class, Command, Effect, SECOND_AMOUNT_MAX, Trigger};
use super::handler_call::{Args, BlockBytes, Call, ReceivedCall, ReplyAddress};
use super::inline_data::{INLINE_BYTES, Inline};
use super::reduction::Reduction;
use super::ring::LINE_WORDS;
use crate::base::{Cause, Rank};
use crate::fabric::AtomicKind;
use crate::segment::GlobalAddress;
use crate::segment::layout::{RANGE_BYTES, SIGNALS_MAX, is_signal};

/// A command as it is posted: one line or two. It is made from an action; triggers and effects are added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodedCommand {
    /// The words that follow the position number in each line.
    pub words: [[u64; LINE_WORDS]; 2],
}

const NOTHING: u8 = 0;
const COPY: u8 = 1;
const PUT: u8 = 2;
const ATOMIC: u8 = 3;
const REDUCE: u8 = 4;
const CALL: u8 = 5;
const CALL_AT: u8 = 6;

/// Bit offsets of the fields of word 1.
const CLASS: u32 = 8;
const DETAIL: u32 = 16;
const LINES: u32 = 24;
const TRIGGER: u32 = 32;
const LOW: u64 = (1 << TRIGGER) - 1;
const LENGTH_BITS: u32 = 40;
/// Bit in word 1: the threshold grows with each round.
pub(super) const THRESHOLD_GROWS: u64 = 1 << (CLASS + 7);
const CLASS_BITS: u64 = 0x3f;
/// Bit in word 1: a rank that raises the signal leaves the command to the queue's rank.
pub(super) const OWNER_ONLY: u64 = 1 << (CLASS + 6);
/// Words of the second line that hold the threshold of the second trigger and the signal of the second effect.
const SECOND_THRESHOLD: usize = INLINE_BYTES / 8 - 1;
const SECOND_SIGNAL: usize = LINE_WORDS - 1;

/// Bytes that a command with two triggers can carry.
const INLINE_BYTES_TWO_TRIGGERS: usize = SECOND_THRESHOLD * 8;

/// The lowest bit of the length field that holds the peer's rank in a call. The bits below hold the number of inline
/// bytes.
const PEER: u32 = 16;
const CALL_BYTES: u64 = (1 << PEER) - 1;
const RANKS: u64 = (1 << (LENGTH_BITS - PEER)) - 1;
const _: () = assert!((Rank::MAX.0 as u64) << PEER < 1 << LENGTH_BITS);
/// Words of the second line of a call whose bytes are not inline: their number, and the first line of the block that
/// holds them, or 0.
const BUFFER_LENGTH: usize = 0;
const BLOCK_HEADER: usize = 1;

impl EncodedCommand {
    /// Encodes an action without trigger and effects that any rank may run.
    #[inline(always)]
    pub fn of(action: &Action) -> EncodedCommand {
        let mut second = [0; LINE_WORDS];
        let mut inline_bytes = |bytes: &Inline| {
            let short = bytes.len() <= 8;
            if !short {
                second[..INLINE_BYTES / 8].copy_from_slice(bytes.words());
            }
            (if short { bytes.words()[0] } else { 0 }, short)
        };
        let one = true;
        let (kind, detail, source, destination, length, short) = match *action {
            Action::Nothing => (NOTHING, 0, 0, 0, 0, one),
            Action::Copy { from, to, len } => (COPY, 0, from.bits(), to.bits(), len, one),
            Action::Put { to, bytes } => {
                let (word, short) = inline_bytes(&bytes);
                (PUT, 0, word, to.bits(), bytes.len() as u64, short)
            }
            Action::Atomic { at, atomic, result } => {
                let expected = if let AtomicKind::Cas { expected } = atomic.kind { expected } else { 0 };
                (second[0], second[1]) = (expected, result.bits());
                let short = expected == 0 && result.is_null();
                (ATOMIC, atomic_number(atomic), atomic.operand, at.bits(), atomic.width.bytes(), short)
            }
            Action::Reduce { from, to, len, how } => {
                let (number, operator) = how.encode();
                second[0] = operator;
                (REDUCE, number, from.bits(), to.bits(), len, how.operator().is_none())
            }
            Action::Call(Call { peer, handler, args: Args::At { from, len }, reply }) => {
                second[BUFFER_LENGTH] = len;
                let peer = u64::from(peer.to_word()) << PEER;
                (CALL_AT, handler, from.bits(), reply.bits(), peer, !one)
            }
            Action::Call(Call { peer, handler, args: Args::InBlock(bytes), reply }) => {
                (second[BUFFER_LENGTH], second[BLOCK_HEADER]) = (bytes.len, bytes.header.bits());
                let peer = u64::from(peer.to_word()) << PEER;
                (CALL_AT, handler, bytes.address().bits(), reply.bits(), peer, !one)
            }
            Action::Call(Call { peer, handler, args: Args::Inline(bytes), reply }) => {
                let (word, short) = inline_bytes(&bytes);
                let length = bytes.len() as u64 | u64::from(peer.to_word()) << PEER;
                (CALL, handler, word, reply.bits(), length, short)
            }
        };
        let head = u64::from(kind) | u64::from(detail) << DETAIL | (2 - u64::from(short)) << LINES;
        EncodedCommand { words: [[head, 0, source, destination, length, 0, 0], second] }
    }

    /// Encodes a call with its effects.
    ///
    /// Errors: the call or an effect is wrong in itself.
    #[inline]
    pub fn of_call(call: Call, effects: &[Option<Effect>; 2]) -> Result<EncodedCommand, Cause> {
        let action = Action::Call(call);
        action.check()?;
        let mut encoded = EncodedCommand::of(&action);
        effects.iter().flatten().try_for_each(|effect| encoded.then(*effect))?;
        Ok(encoded)
    }

    /// Adds a trigger: the command fires when all its triggers are met.
    ///
    /// Errors: there is no such signal; the command has two triggers already; the command carries too many bytes for a
    /// second trigger.
    pub fn when(&mut self, trigger: Trigger) -> Result<(), Cause> {
        let refuse = |text: String| Err(Cause::Argument(text));
        if u64::from(trigger.signal) >= SIGNALS_MAX {
            return refuse(format!("no signal has the number {}", trigger.signal));
        }
        match self.triggers() {
            [None, _] => {}
            [_, None] if self.inline_len() <= INLINE_BYTES_TWO_TRIGGERS => {}
            [_, None] => {
                return refuse(format!(
                    "a command with two triggers carries at most {INLINE_BYTES_TWO_TRIGGERS} bytes"
                ));
            }
            [_, Some(_)] => return refuse("a command has two triggers at most".into()),
        }
        self.add_trigger(trigger);
        Ok(())
    }

    /// Adds an effect: a signal that is raised when the command has succeeded.
    ///
    /// Errors: no signal lies at the address; the command has two effects already; the amount of a second effect is
    /// larger than [`SECOND_AMOUNT_MAX`].
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

    /// Sets which ranks may run the command.
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
            second[SECOND_THRESHOLD] = trigger.threshold;
            self.set_line_count(2);
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
            self.set_line_count(2);
        }
    }

    /// Number of lines that the command takes: 1 or 2.
    #[inline(always)]
    pub fn line_count(&self) -> u64 {
        self.words[0][0] >> LINES & 0xff
    }

    /// Sets the number of lines, which may exceed the number that the action needs.
    #[inline(always)]
    pub fn set_line_count(&mut self, count: u64) {
        self.words[0][0] = self.words[0][0] & !(0xff << LINES) | count << LINES;
    }

    /// Returns true if only one rank may run the command.
    #[inline(always)]
    pub fn is_bound(&self) -> bool {
        self.words[0][0] >> CLASS & CLASS_BITS != Class::Any as u64
    }

    /// The triggers for which the command waits after it was read.
    #[inline(always)]
    pub fn triggers(&self) -> [Option<Trigger>; 2] {
        let [[first, threshold, .., last], second] = &self.words;
        if first & THRESHOLD_GROWS != 0 {
            return [None, None];
        }
        [trigger_of(*first, *threshold), trigger_of(*last, second[SECOND_THRESHOLD])]
    }

    /// A copy of the command that waits for the second trigger only. The caller may use it when the first trigger is
    /// met, because a trigger that is met stays met.
    pub fn without_first_trigger(&self) -> EncodedCommand {
        let mut encoded = *self;
        let [[first, threshold, .., last], second] = &mut encoded.words;
        *first = *first & LOW | *last & !LOW;
        *threshold = std::mem::take(&mut second[SECOND_THRESHOLD]);
        *last &= LOW;
        encoded
    }

    /// The signals that are raised when the command has succeeded.
    #[inline(always)]
    pub fn effects(&self) -> [Option<Effect>; 2] {
        let [[.., length, signal, amount], second] = &self.words;
        let effect = |signal: u64, amount: u64| {
            let signal = GlobalAddress::from_bits(signal);
            (!signal.is_null()).then_some(Effect { signal, amount: amount as u32 })
        };
        [effect(*signal, *amount), effect(second[SECOND_SIGNAL], length >> LENGTH_BITS)]
    }

    /// Returns true if `predicate` holds for all addresses that the action reads or writes.
    #[inline(always)]
    pub fn all_operands(&self, mut predicate: impl FnMut(GlobalAddress) -> bool) -> bool {
        let [head, _, source, destination, ..] = self.words[0];
        let (from, to) = (GlobalAddress::from_bits(source), GlobalAddress::from_bits(destination));
        match head as u8 {
            COPY | REDUCE => predicate(from) && predicate(to),
            PUT | ATOMIC => predicate(to),
            CALL_AT => predicate(from),
            _ => true,
        }
    }

    /// Returns true if `predicate` holds for all signals that the command raises.
    #[inline(always)]
    pub fn all_effect_signals(&self, predicate: impl Fn(GlobalAddress) -> bool) -> bool {
        let signals = [self.words[0][5], self.words[1][SECOND_SIGNAL]];
        signals.into_iter().all(|bits| bits == 0 || predicate(GlobalAddress::from_bits(bits)))
    }

    /// Returns true if the command waits for a signal after it was read.
    #[inline(always)]
    pub fn is_triggered(&self) -> bool {
        self.words[0][0] >> TRIGGER != 0 && self.words[0][0] & THRESHOLD_GROWS == 0
    }

    /// Returns true if the command calls a handler.
    #[inline(always)]
    pub fn is_call(&self) -> bool {
        matches!(self.words[0][0] as u8, CALL | CALL_AT)
    }

    /// The call that the command encodes; `None` if its action is no call.
    #[inline(always)]
    pub fn call(&self) -> Option<ReceivedCall> {
        let [[head, _, source, destination, length, ..], second] = &self.words;
        let (buffer, len, block) = match *head as u8 {
            CALL => (None, length & CALL_BYTES, ReplyAddress::NONE),
            CALL_AT => {
                let block = ReplyAddress::from_bits(second[BLOCK_HEADER]);
                (Some(GlobalAddress::from_bits(*source)), second[BUFFER_LENGTH], block)
            }
            _ => return None,
        };
        let (peer, handler) = (Rank((length >> PEER & RANKS) as usize), (head >> DETAIL) as u8);
        let reply = ReplyAddress::from_bits(*destination);
        Some(ReceivedCall { peer, handler, len, buffer, block, reply })
    }

    /// Sets the number of the handler of a command that is a call.
    pub fn set_handler(&mut self, handler: u8) {
        debug_assert!(self.is_call());
        self.words[0][0] = self.words[0][0] & !(0xff << DETAIL) | u64::from(handler) << DETAIL;
    }

    /// The inline bytes of the command.
    #[inline(always)]
    pub fn inline_bytes(&self) -> &[u8] {
        let len = self.inline_len();
        let words = if len <= 8 { &self.words[0][2..3] } else { &self.words[1][..INLINE_BYTES / 8] };
        let bytes: &[u8] = bytemuck::cast_slice(words);
        &bytes[..len.min(bytes.len())]
    }

    /// The number of inline bytes of the command.
    #[inline(always)]
    fn inline_len(&self) -> usize {
        let [head, _, _, _, length, ..] = self.words[0];
        match head as u8 {
            PUT => (length & (RANGE_BYTES - 1)) as usize,
            CALL => (length & CALL_BYTES) as usize,
            _ => 0,
        }
    }
}

/// The source of a copy, from words 1 and 3 of the first line. `None` if the command is no copy.
#[inline(always)]
pub(super) fn source(head: u64, source: u64) -> Option<GlobalAddress> {
    (head as u8 == COPY).then(|| GlobalAddress::from_bits(source))
}

impl Command {
    /// Encodes the command.
    #[inline(always)]
    pub fn encode(&self) -> EncodedCommand {
        let mut encoded = EncodedCommand::of(&self.action);
        encoded.bind(self.class);
        [self.trigger, self.second_trigger]
            .into_iter()
            .flatten()
            .for_each(|trigger| encoded.add_trigger(trigger));
        self.effects.into_iter().flatten().for_each(|effect| encoded.add_effect(effect));
        encoded
    }

    /// Decodes such lines; `None` if they encode no command.
    #[inline(always)]
    pub fn decode(encoded: &EncodedCommand) -> Option<Command> {
        let [first, _, source, destination, length, _, amount] = encoded.words[0];
        let second = &encoded.words[1];
        let (detail, len) = ((first >> DETAIL) as u8, length & (RANGE_BYTES - 1));
        let (from, to) = (GlobalAddress::from_bits(source), GlobalAddress::from_bits(destination));
        let action = match first as u8 {
            NOTHING => Action::Nothing,
            COPY => Action::Copy { from, to, len },
            PUT => Action::Put { to, bytes: inline(source, second, len, amount > LOW) },
            ATOMIC => {
                let atomic = atomic_of(detail, source, second[0])?;
                Action::Atomic { at: to, atomic, result: GlobalAddress::from_bits(second[1]) }
            }
            REDUCE => Action::Reduce { from, to, len, how: Reduction::decode(detail, second[0])? },
            CALL | CALL_AT => {
                let ReceivedCall { peer, handler, len, buffer, block, reply } = encoded.call()?;
                let args = match buffer {
                    Some(_) if !block.is_none() => Args::InBlock(BlockBytes { header: block, len }),
                    Some(from) => Args::At { from, len },
                    None => Args::Inline(inline(source, second, len, amount > LOW)),
                };
                Action::Call(Call { peer, handler, args, reply })
            }
            _ => return None,
        };
        let [trigger, second_trigger] = encoded.triggers();
        Some(Command {
            class: class_of((first >> CLASS & CLASS_BITS) as u8)?,
            trigger,
            second_trigger,
            action,
            effects: encoded.effects(),
        })
    }
}

/// The first trigger, from words 1 and 2 of the first line. The second trigger has the same encoding.
#[inline(always)]
pub fn trigger_of(first: u64, threshold: u64) -> Option<Trigger> {
    let signal = (first >> TRIGGER) as u32;
    (signal != 0).then(|| Trigger { signal: signal - 1, threshold })
}

/// Decodes inline bytes: up to 8 are in the first line, more are in the second. `second_trigger`: true if the last word
/// of the second line is a threshold.
#[inline(always)]
fn inline(first: u64, second: &[u64; LINE_WORDS], len: u64, second_trigger: bool) -> Inline {
    match len {
        0..=8 => Inline::from_words(&[first], len as usize),
        _ if second_trigger => Inline::from_words(&second[..SECOND_THRESHOLD], len as usize),
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

    fn at(rank: usize, offset: u64) -> GlobalAddress {
        GlobalAddress::new(Rank(rank), offset)
    }

    fn every_action() -> Vec<Action> {
        let mut actions = vec![
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
                actions.push(Action::Atomic { at: at(1, 8), atomic, result });
            }
        }
        let call = |args| {
            let reply = ReplyAddress::new(at(4, 1 << 30), 5);
            Action::Call(Call { peer: Rank(0xff_fffe), handler: 255, args, reply })
        };
        actions.extend(
            [1, 8, 9, INLINE_BYTES].map(|len| call(Args::Inline(Inline::of(&vec![9; len]).unwrap()))),
        );
        actions.push(call(Args::At { from: at(3, 64), len: RANGE_BYTES - 1 }));
        actions
            .push(call(Args::InBlock(BlockBytes { header: ReplyAddress::new(at(3, 1 << 20), 9), len: 49 })));
        let own = [Reduction::user_defined(7, 24).with_incoming_first(true)];
        actions.extend(Reduction::all().chain(own).map(|how| Action::Reduce {
            from: at(1, 8),
            to: at(0, 16),
            len: 80,
            how,
        }));
        actions
    }

    fn assert_round_trip(command: Command) {
        let encoded = command.encode();
        assert_eq!(Command::decode(&encoded), Some(command));
        assert_eq!(
            (encoded.triggers(), encoded.effects()),
            ([command.trigger, command.second_trigger], command.effects)
        );
        if command.second_trigger.is_some() {
            let suspend = Command { trigger: command.second_trigger, second_trigger: None, ..command };
            assert_eq!(Command::decode(&encoded.without_first_trigger()), Some(suspend));
        }
    }

    #[test]
    fn every_command_decodes_to_what_was_encoded() {
        let effects = [
            [None, None],
            [Some(Effect { signal: at(7, 1 << 28), amount: u32::MAX }), None],
            [1, SECOND_AMOUNT_MAX].map(|amount| Some(Effect { signal: at(8, 1 << 28), amount })),
        ];
        let triggers = [None, Some(Trigger { signal: 0, threshold: 5 })];
        let many = Some(Trigger { signal: (1 << 20) - 1, threshold: u64::MAX });
        for action in every_action() {
            let pairs = effects.iter().flat_map(|e| triggers.iter().chain([&many]).map(move |t| (e, t)));
            for (effects, trigger) in pairs {
                for class in [Class::Any, Class::Source, Class::Destination] {
                    let command =
                        Command { class, trigger: *trigger, second_trigger: None, action, effects: *effects };
                    assert_round_trip(command);
                    let room = command.encode().inline_len() <= INLINE_BYTES_TWO_TRIGGERS;
                    if room && trigger.is_some() {
                        assert_round_trip(Command { second_trigger: many, ..command });
                    }
                }
            }
        }
    }

    #[test]
    fn invalid_encodings_are_refused() {
        let mut encoded = Command::new(Action::Nothing).encode();
        encoded.words[0][0] |= 0xff;
        assert_eq!(Command::decode(&encoded), None);
        let mut encoded = Command::new(Action::Nothing).encode();
        encoded.words[0][0] |= 7 << CLASS;
        assert_eq!(Command::decode(&encoded), None);
    }

    #[test]
    fn short_commands_take_one_line() {
        let short = |action| Command::new(action).encode().line_count() == 1;
        assert!(short(Action::Nothing) && short(Action::Copy { from: at(0, 8), to: at(1, 8), len: 5 }));
        assert!(short(Action::Put { to: at(0, 8), bytes: Inline::of(&[1; 8]).unwrap() }));
        assert!(!short(Action::Put { to: at(0, 8), bytes: Inline::of(&[1; 9]).unwrap() }));
        let atomic = Atomic { kind: AtomicKind::Add, operand: 1, width: Width::W8 };
        assert!(short(Action::Atomic { at: at(0, 8), atomic, result: GlobalAddress::NULL }));
    }
}
