//! Plan files: one JSON object that describes a schedule completely. docs/guide/plan-files.md describes the format.
//!
//! ```
//! # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
//! use tasuki::schedule::{Builder, CollectiveKind, Shape, json};
//! fn star(b: &mut Builder) {
//!     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
//!     for &rank in &ranks[1..] {
//!         b.copy(data.on(ranks[0]), data.on(rank));
//!     }
//! }
//! let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
//! let mut text = Vec::new();
//! json::write(&schedule, &mut text)?;
//! let again = json::parse(std::str::from_utf8(&text)?)?;
//! assert_eq!((again.name(), again.check()?), ("star", schedule.check()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::ScheduleError;
use crate::{
    BufferDecl, BufferId, BufferKind, BufferSpan, Contract, ExplicitPart, ExplicitStep, Location, Origin,
    QueueId, Schedule, SignalDecl, SignalId, StepEffect, StepKind, StepTrigger,
};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use std::io::{self, Write};

/// The value of the format field.
const FORMAT: &str = "tasuki plan";
/// The version of the format. It changes if readers of an older version could misread a file.
const VERSION: u32 = 1;

/// The fields that are checked before the rest is parsed.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    name: String,
    ranks: usize,
    parts: Vec<PartJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartJson {
    rank: usize,
    buffers: Vec<BufferJson>,
    signals: Vec<SignalJson>,
    steps: Vec<StepJson>,
    finish: Vec<TriggerJson>,
    contract: ContractJson,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferJson {
    name: String,
    bytes: u64,
    /// The number of copies, for a scratch buffer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    turns: Option<u32>,
    /// The rank with which the buffer is swapped at each start, if it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    swapped: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalJson {
    name: String,
    per_start: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepJson {
    queue: u16,
    when: TriggerJson,
    #[serde(rename = "do")]
    action: ActionJson,
    then: Vec<EffectJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TriggerJson {
    signal: usize,
    count: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    lag: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum ActionJson {
    Nothing,
    Copy { from: PlaceJson, to: PlaceJson, bytes: u64 },
    Reduce { from: PlaceJson, to: PlaceJson, bytes: u64, in_front: bool },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceJson {
    rank: u32,
    buffer: usize,
    offset: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EffectJson {
    rank: u32,
    signal: usize,
    amount: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContractJson {
    gives: Vec<SpanJson>,
    gets: Vec<GetsJson>,
    in_order: bool,
    meets: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpanJson {
    buffer: usize,
    offset: u64,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GetsJson {
    buffer: usize,
    offset: u64,
    bytes: u64,
    from: OriginJson,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginJson {
    ranks: Vec<u32>,
    buffer: usize,
    offset: u64,
}

fn is_zero(lag: &u32) -> bool {
    *lag == 0
}

/// Writes a schedule: one step to a line, one part after the other.
pub fn write(schedule: &Schedule, out: &mut impl Write) -> io::Result<()> {
    let (name, ranks) = (json(&schedule.name())?, schedule.ranks());
    writeln!(
        out,
        "{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"name\":{name},\"ranks\":{ranks},\"parts\":["
    )?;
    for rank in 0..ranks {
        let explicit = schedule.part(rank).to_explicit(schedule.contract(rank));
        writeln!(out, " {{\"rank\":{rank},")?;
        rows(out, "buffers", explicit.buffers.iter().map(|decl| buffer_json(decl, rank as u32)))?;
        rows(out, "signals", explicit.signals.iter().map(signal_json))?;
        rows(out, "steps", explicit.steps.iter().map(step_json))?;
        rows(out, "finish", explicit.finish.iter().map(trigger_json))?;
        let contract = json(&contract_json(&explicit.contract))?;
        writeln!(out, "  \"contract\":{contract}}}{}", if rank + 1 < ranks { "," } else { "" })?;
    }
    writeln!(out, "]}}")
}

fn rows<T: Serialize>(out: &mut impl Write, name: &str, all: impl Iterator<Item = T>) -> io::Result<()> {
    write!(out, "  \"{name}\":[")?;
    for (number, one) in all.enumerate() {
        write!(out, "{}\n   {}", if number > 0 { "," } else { "" }, json(&one)?)?;
    }
    writeln!(out, "],")
}

fn json(what: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(what)?)
}

fn buffer_json(decl: &BufferDecl, rank: u32) -> BufferJson {
    let (turns, swapped) = match decl.kind {
        BufferKind::User => (None, None),
        BufferKind::Turns(turns) => (Some(turns), None),
        BufferKind::Swapped(both) => (None, Some(BufferKind::partner(both, rank))),
    };
    BufferJson { name: decl.name.to_string(), bytes: decl.bytes, turns, swapped }
}

fn signal_json(counter: &SignalDecl) -> SignalJson {
    SignalJson { name: counter.name.to_string(), per_start: counter.per_start }
}

fn trigger_json(trigger: &StepTrigger) -> TriggerJson {
    TriggerJson { signal: trigger.signal.index(), count: trigger.count, lag: trigger.lag }
}

fn step_json(step: &ExplicitStep) -> StepJson {
    let place =
        |place: Location| PlaceJson { rank: place.rank, buffer: place.buffer.index(), offset: place.offset };
    let action = match step.action {
        StepKind::Nothing => ActionJson::Nothing,
        StepKind::Copy { from, to, bytes } => ActionJson::Copy { from: place(from), to: place(to), bytes },
        StepKind::Reduce { from, to, bytes, in_front } => {
            ActionJson::Reduce { from: place(from), to: place(to), bytes, in_front }
        }
    };
    let effect = |effect: &StepEffect| EffectJson {
        rank: effect.rank,
        signal: effect.signal.index(),
        amount: effect.amount,
    };
    let (when, then) = (trigger_json(&step.trigger), step.effects.iter().map(effect).collect());
    StepJson { queue: step.queue, when, action, then }
}

fn contract_json(contract: &Contract) -> ContractJson {
    let gives = contract.inputs.iter().map(|span| SpanJson {
        buffer: span.buffer.index(),
        offset: span.offset,
        bytes: span.bytes,
    });
    let gets = contract.outputs.iter().map(|(span, origin)| GetsJson {
        buffer: span.buffer.index(),
        offset: span.offset,
        bytes: span.bytes,
        from: OriginJson {
            ranks: origin.ranks.clone(),
            buffer: origin.buffer.index(),
            offset: origin.offset,
        },
    });
    ContractJson {
        gives: gives.collect(),
        gets: gets.collect(),
        in_order: contract.in_order,
        meets: contract.synchronizes,
    }
}

/// Reads a schedule. Errors name the place in the text.
pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
    read(text).map_err(ScheduleError::Text)
}

fn read(text: &str) -> Result<Schedule, String> {
    let head: Head = serde_json::from_str(text).map_err(|error| explain(&error))?;
    if head.format != FORMAT {
        return Err(format!("its format is {:?}, and should be {FORMAT:?}", head.format));
    }
    if head.version != VERSION {
        return Err(format!(
            "its format has version {}, and this command reads version {VERSION}",
            head.version
        ));
    }
    let file: File = serde_json::from_str(text).map_err(|error| explain(&error))?;
    if file.parts.len() != file.ranks {
        let have = ranks(file.parts.len());
        return Err(format!("it declares {}, but has parts of {have}", ranks(file.ranks)));
    }
    let parts = file.parts.into_iter().enumerate().map(|(rank, part)| {
        if part.rank != rank {
            return Err(format!(
                "the part of rank {} is where that of rank {rank} should be: parts are in the order of ranks",
                part.rank
            ));
        }
        explicit_part(part).map_err(|why| format!("rank {rank}: {why}"))
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    check_name(&file.name)?;
    Schedule::from_parts(file.name, parts).map_err(|unfit| unfit.to_string())
}

/// Names are shown in lines and pictures, so they must not break lines.
fn check_name(name: &str) -> Result<(), String> {
    match name.chars().find(|letter| letter.is_control()) {
        Some(letter) => Err(format!("the name {name:?} contains the control character {letter:?}")),
        None => Ok(()),
    }
}

fn ranks(count: usize) -> String {
    if count == 1 { "1 rank".into() } else { format!("{count} ranks") }
}

/// Describes a parse error. Only a text that ends too early has a description of our own.
fn explain(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => format!("it ends too early, at line {} column {}", error.line(), error.column()),
        _ => error.to_string(),
    }
}

fn explicit_part(part: PartJson) -> Result<ExplicitPart, String> {
    let decl = |BufferJson { name, bytes, turns, swapped }: BufferJson| {
        let kind = match (turns, swapped) {
            (None, None) => BufferKind::User,
            (Some(turns), None) => BufferKind::Turns(turns),
            (None, Some(with)) => BufferKind::swapped(part.rank as u32, with),
            (Some(_), Some(_)) => {
                return Err(format!(
                    "buffer {name:?} has both turns and swapped: it can have only one of them"
                ));
            }
        };
        check_name(&name)?;
        Ok(BufferDecl { name: name.into(), bytes, kind })
    };
    let counter = |SignalJson { name, per_start }: SignalJson| {
        check_name(&name).map(|()| SignalDecl { name: name.into(), per_start })
    };
    let step = |(number, one): (usize, StepJson)| step(one).map_err(|why| format!("step {number}: {why}"));
    Ok(ExplicitPart {
        buffers: part.buffers.into_iter().map(decl).collect::<Result<_, _>>()?,
        signals: part.signals.into_iter().map(counter).collect::<Result<_, _>>()?,
        steps: part.steps.into_iter().enumerate().map(step).collect::<Result<_, _>>()?,
        finish: part.finish.into_iter().map(trigger).collect::<Result<_, _>>()?,
        contract: contract(part.contract)?,
    })
}

fn step(step: StepJson) -> Result<ExplicitStep, String> {
    let action = match step.action {
        ActionJson::Nothing => StepKind::Nothing,
        ActionJson::Copy { from, to, bytes } => {
            StepKind::Copy { from: place(&from)?, to: place(&to)?, bytes }
        }
        ActionJson::Reduce { from, to, bytes, in_front } => {
            StepKind::Reduce { from: place(&from)?, to: place(&to)?, bytes, in_front }
        }
    };
    let effect = |one: EffectJson| Ok(signal(one.signal)?.on(one.rank as usize, one.amount));
    let effects = step.then.into_iter().map(effect).collect::<Result<_, String>>()?;
    Ok(ExplicitStep { queue: QueueId(step.queue).0, trigger: trigger(step.when)?, action, effects })
}

fn trigger(trigger: TriggerJson) -> Result<StepTrigger, String> {
    Ok(signal(trigger.signal)?.reaches(trigger.count).lagging(trigger.lag))
}

fn place(place: &PlaceJson) -> Result<Location, String> {
    Ok(buffer(place.buffer)?.on(place.rank as usize, place.offset))
}

fn contract(contract: ContractJson) -> Result<Contract, String> {
    let span = |number, offset, bytes| Ok::<_, String>(BufferSpan { buffer: buffer(number)?, offset, bytes });
    let gives = contract.gives.into_iter().map(|one| span(one.buffer, one.offset, one.bytes));
    let gets = contract.gets.into_iter().map(|one| {
        let (ranks, offset) = (one.from.ranks, one.from.offset);
        let origin = Origin { ranks, buffer: buffer(one.from.buffer)?, offset };
        Ok((span(one.buffer, one.offset, one.bytes)?, origin))
    });
    Ok(Contract {
        inputs: gives.collect::<Result<_, _>>()?,
        outputs: gets.collect::<Result<_, String>>()?,
        in_order: contract.in_order,
        synchronizes: contract.meets,
    })
}

fn buffer(number: usize) -> Result<BufferId, String> {
    BufferId::numbered(number).ok_or_else(|| format!("buffer {number} does not exist"))
}

fn signal(number: usize) -> Result<SignalId, String> {
    SignalId::numbered(number).ok_or_else(|| format!("signal {number} does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{ALGORITHMS, Algorithm};
    use crate::shape::{CollectiveKind, Shape};

    fn text(schedule: &Schedule) -> String {
        let mut bytes = Vec::new();
        write(schedule, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plan_files_are_written_and_read() {
        for algorithm in ALGORITHMS {
            for ranks in [1, 2, 5, 8] {
                let shape = Shape::new(algorithm.collective, ranks, ranks - 1, 64);
                if !(algorithm.fits)(&shape) {
                    continue;
                }
                let schedule = algorithm.schedule(&shape, 3);
                let written = text(&schedule);
                let again = parse(&written).unwrap();
                assert_eq!(text(&again), written, "{} on {ranks}", algorithm.name);
                let explicit =
                    |schedule: &Schedule, rank| schedule.part(rank).to_explicit(schedule.contract(rank));
                for rank in 0..ranks {
                    assert_eq!(explicit(&again, rank), explicit(&schedule, rank), "{}", algorithm.name);
                }
            }
        }
    }

    #[test]
    fn a_buffer_has_copies_or_is_swapped() {
        let is_copy_in_copy_out =
            |one: &&Algorithm| one.name == "copy in copy out" && one.collective == CollectiveKind::Allgather;
        let shape = Shape::new(CollectiveKind::Allgather, 2, 0, 64);
        let swapped = text(&ALGORITHMS.iter().find(is_copy_in_copy_out).unwrap().schedule(&shape, 1));
        let both = swapped.replacen("\"swapped\":1", "\"turns\":2,\"swapped\":1", 1);
        assert_ne!(both, swapped);
        let why = read(&both).expect_err("it does both");
        assert!(why.contains("stage") && why.contains("swapped"), "{why}");
    }

    #[test]
    fn names_that_would_break_lines_are_refused() {
        let binary = ALGORITHMS.iter().find(|one| one.name == "binary").expect("it is there");
        let whole = text(&binary.schedule(&Shape::new(binary.collective, 3, 0, 64), 1));
        for name in ["binary", "data", "arrived"] {
            let name = format!("\"{name}\"");
            assert!(whole.contains(&name), "{name} is in {whole}");
            for control in ["\\n", "\\u0000", "\\u001b[2J"] {
                let broken = whole.replacen(&name, &format!("\"a{control}b\""), 1);
                let why = read(&broken).expect_err("it has a control character");
                assert!(why.contains("control character"), "{why}");
            }
        }
    }

    #[test]
    fn each_truncated_file_is_an_error_with_its_position() {
        let shape = Shape::new(ALGORITHMS[1].collective, 3, 0, 64);
        let whole = text(&ALGORITHMS[1].schedule(&shape, 1));
        for end in 0..whole.trim_end().len() {
            let why = read(&whole[..end]).expect_err("it is cut off");
            assert!(why.contains("line"), "{end}: {why}");
        }
    }
}
