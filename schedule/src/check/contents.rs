//! Checks that each rank gets the right bytes. Without races, each access reads what was written last before it in
//! every order, so all orders of steps and starts give equal bytes. One of these orders runs the starts one after the
//! other ([`super::dry_run`]); one such start is evaluated. Bytes left from before that start count as unknown, so a
//! correct result was given, moved and combined in that very start.

use super::dry_run::DryRun;
use super::fault::Fault;
use super::unrolled::{Event, Unrolled};
use crate::combining_order::combinations_after;
use crate::{BufferId, BufferKind, BufferSpan, Location, Origin, StepKind};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A contribution: an input byte of a rank, from a buffer, and the operators that follow it if the combination is
/// written with each operator behind its operands. So a value keeps how it was combined, not only in which order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Provenance {
    rank: u32,
    buffer: BufferId,
    /// Offset of the source byte, minus the offset where the byte is now.
    shift: i64,
    /// Number of combinations whose right operand ends with this contribution.
    combinations: u32,
}

/// The value of bytes: contributions in the order in which they are combined.
type Value = Rc<Vec<Provenance>>;

/// The bytes of a buffer: maps the first byte of each range to its length and value. Bytes that are missing were never
/// written.
#[derive(Default, Debug)]
struct Memory(BTreeMap<u64, (u64, Value)>);

impl Memory {
    /// The values of some bytes, each with offset and length.
    fn read(&self, offset: u64, bytes: u64) -> Vec<(u64, u64, Option<Value>)> {
        let end = offset + bytes;
        let mut values = Vec::new();
        let mut at = offset;
        let first = self.0.range(..=offset).next_back().map_or(offset, |(&first, _)| first);
        for (&start, (len, value)) in self.0.range(first..end) {
            let (from, to) = (start.max(offset), (start + len).min(end));
            if from >= to {
                continue;
            }
            if at < from {
                values.push((at, from - at, None));
            }
            values.push((from, to - from, Some(value.clone())));
            at = to;
        }
        if at < end {
            values.push((at, end - at, None));
        }
        values
    }

    /// Removes the values of some bytes.
    fn clear(&mut self, offset: u64, bytes: u64) {
        let end = offset + bytes;
        let first = self.0.range(..=offset).next_back().map_or(offset, |(&first, _)| first);
        let hit: Vec<u64> = self.0.range(first..end).map(|(&start, _)| start).collect();
        for start in hit {
            let Some((len, value)) = self.0.remove(&start) else { continue };
            if start < offset {
                self.0.insert(start, ((start + len).min(offset) - start, value.clone()));
            }
            if start + len > end {
                self.0.insert(start.max(end), (start + len - start.max(end), value));
            }
        }
    }

    fn write(&mut self, offset: u64, bytes: u64, value: Option<Value>) {
        self.clear(offset, bytes);
        if let Some(value) = value.filter(|_| bytes > 0) {
            self.0.insert(offset, (bytes, value));
        }
    }
}

/// A buffer of a rank, in the copy that a start uses.
type Home = (u32, BufferId);

pub(super) fn compare(world: &Unrolled, run: &DryRun) -> Result<(), Box<Fault>> {
    let mut memories: BTreeMap<Home, Memory> = BTreeMap::new();
    for &event in &run.order {
        match world.event(event) {
            Event::Begin(rank) => give(world, &mut memories, rank),
            Event::End(rank) => {
                for (span, origin) in &world.contracts[rank].outputs {
                    let memory = memories.entry((rank as u32, span.buffer)).or_default();
                    look_at(memory, rank, span, origin, world.contracts[rank].in_order)?;
                }
            }
            Event::Step(rank, step) => {
                carry_out(&mut memories, world.parts[rank].steps()[step].action);
            }
        }
    }
    Ok(())
}

/// Writes the inputs of the program; other bytes of its buffers are unknown.
fn give(world: &Unrolled, memories: &mut BTreeMap<Home, Memory>, rank: usize) {
    for (buffer, decl) in world.parts[rank].buffer_decls().iter().enumerate() {
        if decl.kind == BufferKind::User {
            memories.remove(&(rank as u32, BufferId(buffer as u32)));
        }
    }
    for span in &world.contracts[rank].inputs {
        let given = Provenance { rank: rank as u32, buffer: span.buffer, shift: 0, combinations: 0 };
        let memory = memories.entry((rank as u32, span.buffer)).or_default();
        memory.write(span.offset, span.bytes, Some(Rc::new(vec![given])));
    }
}

fn carry_out(memories: &mut BTreeMap<Home, Memory>, action: StepKind) {
    let home = |place: &Location| (place.rank, place.buffer);
    let (from, to, bytes) = match action {
        StepKind::Nothing => return,
        StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. } => (from, to, bytes),
    };
    let by = from.offset as i64 - to.offset as i64;
    let moved = memories.entry(home(&from)).or_default().read(from.offset, bytes);
    let target = memories.entry(home(&to)).or_default();
    for (at, len, value) in moved {
        let value = value.map(|value| shifted(&value, by));
        let at = (at as i64 - by) as u64;
        match action {
            StepKind::Reduce { in_front, .. } => {
                for (at, len, there) in target.read(at, len) {
                    let both = value.as_ref().zip(there);
                    let both = both.map(
                        |(here, there)| if in_front { joined(here, &there) } else { joined(&there, here) },
                    );
                    target.write(at, len, both);
                }
            }
            _ => target.write(at, len, value),
        }
    }
}

fn shifted(value: &Value, by: i64) -> Value {
    if by == 0 {
        return value.clone();
    }
    Rc::new(value.iter().map(|given| Provenance { shift: given.shift + by, ..given.clone() }).collect())
}

fn joined(front: &Value, back: &Value) -> Value {
    let mut both: Vec<Provenance> = front.iter().chain(back.iter()).cloned().collect();
    if let Some(last) = both.last_mut() {
        last.combinations += 1;
    }
    Rc::new(both)
}

/// Compares the outputs of a rank with its contract.
fn look_at(
    memory: &Memory,
    rank: usize,
    span: &BufferSpan,
    origin: &Origin,
    in_order: bool,
) -> Result<(), Box<Fault>> {
    let shift = origin.offset as i64 - span.offset as i64;
    let should = |(number, &rank): (usize, &u32)| {
        let combinations = combinations_after(number, origin.ranks.len());
        Provenance { rank, buffer: origin.buffer, shift, combinations }
    };
    let mut wanted: Vec<Provenance> = origin.ranks.iter().enumerate().map(should).collect();
    if !in_order {
        forget_order(&mut wanted);
    }
    for (at, _, value) in memory.read(span.offset, span.bytes) {
        let is_right = value.as_ref().is_some_and(|value| {
            if in_order {
                return **value == wanted;
            }
            let mut is = (**value).clone();
            forget_order(&mut is);
            is == wanted
        });
        if !is_right {
            let should_be = show(&wanted, at);
            let mut is = value.map_or_else(|| "a byte that no rank wrote".into(), |value| show(&value, at));
            if is == should_be {
                is += ", combined otherwise further on";
            }
            let place = span.buffer.on(rank, at);
            return Err(Box::new(Fault::WrongBytes { place, start: 0, is, should_be }));
        }
    }
    Ok(())
}

/// Makes values equal that consist of the same contributions.
fn forget_order(value: &mut [Provenance]) {
    value.iter_mut().for_each(|given| given.combinations = 0);
    value.sort();
}

/// Describes some contributions in words. Brackets show what is combined before it becomes a right operand.
fn show(value: &[Provenance], at: u64) -> String {
    const SHOWN: usize = 8;
    let mut brackets = vec![[0_usize; 2]; value.len()];
    let mut operands = Vec::new();
    for (number, given) in value.iter().enumerate() {
        operands.push(number);
        for _ in 0..given.combinations {
            if let Some(first) = operands.pop().filter(|&first| first < number) {
                brackets[first][0] += 1;
                brackets[number][1] += 1;
            }
        }
    }
    let one = |(given, [opened, closed]): (&Provenance, &[usize; 2])| {
        let (offset, buffer) = (at as i64 + given.shift, given.buffer.index());
        let (opened, closed) = ("(".repeat(*opened), ")".repeat(*closed));
        format!("{opened}byte {offset} of buffer {buffer} of rank {}{closed}", given.rank)
    };
    let mut text = value.iter().zip(&brackets).take(SHOWN).map(one).collect::<Vec<_>>().join(" + ");
    if value.len() > SHOWN {
        text += &format!(" + {} more", value.len() - SHOWN);
    }
    text
}
