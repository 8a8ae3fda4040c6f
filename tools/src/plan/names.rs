//! Steps and places of plans in words.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tasuki_schedule::{
    BufferId, BufferSpan, Location, Name, RankPart, Schedule, SignalId, Step, StepEffect, StepKind,
    StepTrigger,
};

/// Longest name shown, in letters.
const NAME_MAX: usize = 20;

/// Number of ranks whose names are cached.
const KEPT_MAX: usize = 4096;

/// The names of the buffers and signals of all ranks, made when needed.
pub(super) struct Everybody<'s> {
    schedule: &'s Schedule,
    kept: RefCell<BTreeMap<usize, Rc<Own>>>,
}

/// The names of one rank's buffers and signals. Names that occur several times are numbered.
struct Own {
    buffers: Vec<String>,
    signals: Vec<String>,
}

/// Names as one rank sees them: names of another rank's buffers and signals include that rank.
pub(super) struct Names<'s> {
    rank: usize,
    own: Rc<Own>,
    everybody: &'s Everybody<'s>,
}

impl Own {
    fn of(part: &RankPart) -> Own {
        Own {
            buffers: numbered(part.buffer_decls().iter().map(|buffer| &buffer.name)),
            signals: numbered(part.signal_decls().iter().map(|counter| &counter.name)),
        }
    }

    fn buffer(&self, buffer: BufferId) -> String {
        self.buffers.get(buffer.index()).cloned().unwrap_or_else(|| format!("buffer {}", buffer.index()))
    }

    fn signal(&self, signal: SignalId) -> String {
        self.signals.get(signal.index()).cloned().unwrap_or_else(|| format!("signal {}", signal.index()))
    }
}

impl<'s> Everybody<'s> {
    pub(super) fn of(schedule: &'s Schedule) -> Everybody<'s> {
        Everybody { schedule, kept: RefCell::default() }
    }

    /// The names that the rank of this part sees.
    pub(super) fn names(&'s self, part: &RankPart) -> Names<'s> {
        Names { rank: part.rank(), own: Rc::new(Own::of(part)), everybody: self }
    }

    fn own(&self, rank: usize) -> Rc<Own> {
        let mut kept = self.kept.borrow_mut();
        if kept.len() > KEPT_MAX {
            kept.clear();
        }
        kept.entry(rank).or_insert_with(|| Rc::new(Own::of(&self.schedule.part(rank)))).clone()
    }
}

impl Names<'_> {
    pub(super) fn buffer(&self, buffer: BufferId) -> String {
        self.own.buffer(buffer)
    }

    pub(super) fn signal(&self, signal: SignalId) -> String {
        self.own.signal(signal)
    }

    /// The names of rank `rank`, or of this rank if there is no such rank.
    fn of(&self, rank: u32) -> Rc<Own> {
        let rank = rank as usize;
        let is_other = rank != self.rank && rank < self.everybody.schedule.ranks();
        if is_other { self.everybody.own(rank) } else { self.own.clone() }
    }

    /// A range of bytes in a buffer, with the rank if it is another one.
    pub(super) fn place(&self, place: &Location, bytes: u64) -> String {
        let (name, end) = (self.of(place.rank).buffer(place.buffer), place.offset.saturating_add(bytes));
        let whose =
            if place.rank as usize == self.rank { String::new() } else { format!("rank {} ", place.rank) };
        format!("{whose}{name}[{}..{end}]", place.offset)
    }

    pub(super) fn span(&self, span: &BufferSpan) -> String {
        self.place(&span.buffer.on(self.rank, span.offset), span.bytes)
    }

    pub(super) fn trigger(&self, trigger: &StepTrigger) -> String {
        let of = match trigger.lag {
            0 => String::new(),
            1 => " of the start before".into(),
            lag => format!(" of {lag} starts before"),
        };
        format!("{} >= {}{of}", self.signal(trigger.signal), trigger.count)
    }

    /// The action of a step, in one piece or two.
    pub(super) fn action(&self, action: &StepKind) -> Vec<String> {
        let (word, side, from, to, bytes) = match action {
            StepKind::Nothing => return vec!["nothing".into()],
            StepKind::Copy { from, to, bytes } => ("copy", "to", from, to, *bytes),
            StepKind::Reduce { from, to, bytes, in_front: true } => {
                ("reduce", "in front of", from, to, *bytes)
            }
            StepKind::Reduce { from, to, bytes, in_front: false } => ("reduce", "behind", from, to, *bytes),
        };
        // If both ranges are equal, the other rank is enough.
        let to = if (from.buffer, from.offset) == (to.buffer, to.offset) && to.rank as usize != self.rank {
            format!("rank {}", to.rank)
        } else {
            self.place(to, bytes)
        };
        vec![format!("{word} {}", self.place(from, bytes)), format!("{side} {to}")]
    }

    pub(super) fn effect(&self, effect: &StepEffect) -> String {
        let whose =
            if effect.rank as usize == self.rank { String::new() } else { format!("rank {} ", effect.rank) };
        let name = self.of(effect.rank).signal(effect.signal);
        format!("{whose}{name} +{}", effect.amount)
    }

    /// A step in pieces for columns: its number, its trigger, its action and its effects.
    pub(super) fn step(&self, number: usize, step: &Step) -> Pieces {
        let effects: Vec<String> = step.effects().map(|effect| self.effect(&effect)).collect();
        let then = if effects.is_empty() { String::new() } else { format!("then {}", effects.join(", ")) };
        Pieces { number, trigger: self.trigger(&step.trigger), action: self.action(&step.action), then }
    }
}

/// A step in words.
pub(super) struct Pieces {
    number: usize,
    trigger: String,
    action: Vec<String>,
    then: String,
}

/// Longest line, in letters.
const WIDTH: usize = 100;
/// Widest columns, in letters, before a line is broken.
const TRIGGER_MAX: usize = 28;
const ACTION_CHARS_MAX: usize = 46;

/// Steps as lines of at most 100 letters, in columns if they are short enough.
pub(super) fn lines(steps: &[Pieces]) -> String {
    let width = |of: &dyn Fn(&Pieces) -> usize, max: usize| {
        steps.iter().map(of).filter(|&width| width <= max).max().unwrap_or(0)
    };
    let trigger = width(&|step| step.trigger.chars().count(), TRIGGER_MAX);
    let action = width(&|step| step.action.join(" ").chars().count(), ACTION_CHARS_MAX);
    let mut text = String::new();
    for step in steps {
        let mut line = format!("  {:>4}  {:trigger$}", step.number, step.trigger);
        let indent = " ".repeat(8 + 4);
        let mut add = |piece: &str, pad: usize| {
            if piece.is_empty() {
                return;
            }
            if line.chars().count() + 2 + piece.chars().count() > WIDTH {
                text.extend([line.trim_end(), "\n"]);
                line.clone_from(&indent);
            } else {
                line += "  ";
            }
            line += &format!("{piece:pad$}");
        };
        let whole = step.action.join(" ");
        let is_short = whole.chars().count() <= ACTION_CHARS_MAX;
        if is_short || 8 + step.trigger.chars().count().max(trigger) + 2 + whole.chars().count() <= WIDTH {
            add(&whole, action);
        } else {
            step.action.iter().for_each(|piece| add(piece, 0));
        }
        add(&step.then, 0);
        text.extend([line.trim_end(), "\n"]);
    }
    text
}

/// Adds a number to each name that occurs several times.
fn numbered<'n>(names: impl Iterator<Item = &'n Name> + Clone) -> Vec<String> {
    let mut counts = BTreeMap::new();
    names.clone().for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let mut seen = BTreeMap::new();
    let number = |name: &'n Name| {
        let short = short(name);
        if counts[name] == 1 {
            return short;
        }
        let number = seen.entry(name).or_insert(0);
        *number += 1;
        format!("{short}#{}", *number - 1)
    };
    names.map(number).collect()
}

/// A name with control characters replaced and cut in length: a file may contain any name.
fn short(name: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let is_long = name.chars().count() > NAME_MAX;
    let kept = name.chars().take(if is_long { NAME_MAX - 1 } else { NAME_MAX }).map(clean);
    kept.chain(is_long.then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_short() {
        let names: [Name; 4] = ["round".into(), "a\nb".into(), "round".into(), "x".repeat(50).into()];
        let said = numbered(names.iter());
        assert_eq!(said[..3], ["round#0", "a?b", "round#1"]);
        assert_eq!(said[3].chars().count(), NAME_MAX);
    }

    #[test]
    fn signals_of_others_have_the_names_that_these_give_them() {
        let part = |part: &mut RankPart| {
            let names = [["here", "there"], ["there", "here"]][part.rank()];
            let signals = names.map(|name| part.signal(name, 1));
            part.join(signals[0].reaches(1)).then(signals[0].on(1, 1));
        };
        let schedule = Schedule::new("names", 2, part, |_| Default::default());
        let everybody = Everybody::of(&schedule);
        let said = |rank: usize| {
            let part = schedule.part(rank);
            let names = everybody.names(&part);
            part.steps()[0].effects().map(|effect| names.effect(&effect)).collect::<Vec<_>>()
        };
        assert_eq!((said(0), said(1)), (vec!["rank 1 there +1".into()], vec!["there +1".into()]));
    }
}
