//! Small correct schedules, and variants with one fault each.

use super::{Event, Fault};
use crate::{
    BufferSpan, CollectiveKind, Contract, LAG_MAX, Location, Origin, RankPart, Schedule, Shape, StepKind,
    started,
};

const BYTES: u64 = 1000;

/// A broadcast from rank 0.
fn broadcast(name: &str, ranks: usize, part: impl Fn(&mut RankPart) + Send + Sync + 'static) -> Schedule {
    let contract = |rank| {
        let buffer = crate::BufferId(0);
        let span = BufferSpan { buffer, offset: 0, bytes: BYTES };
        let origin = Origin { ranks: vec![0], buffer, offset: 0 };
        let inputs = if rank == 0 { vec![span] } else { Vec::new() };
        Contract { inputs, outputs: vec![(span, origin)], ..Contract::default() }
    };
    Schedule::new(name, ranks, part, contract)
}

/// The variant to build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slip {
    None,
    NoReadiness,
    ReadyAddedToData,
    ForwardsTooEarly,
    MissingCopy,
    MissingBytes,
    WrongPlace,
    WrongOrigin,
    WrittenTwice,
    WrongSum,
    NeverMet,
    Cycle,
    NoSuchSignal,
    OutOfBuffer,
}

/// A chain in segments: readiness signals climb it, then the segments go down.
fn chain(ranks: usize, segments: u64, slip: Slip) -> Schedule {
    broadcast("chain", ranks, move |part| {
        let (me, last) = (part.rank(), part.rank() + 1 == ranks);
        let data = part.buffer("data", BYTES);
        let data_signals = if me == 0 { 0 } else { segments };
        let ready_too = slip == Slip::ReadyAddedToData && !last;
        let arrived =
            part.signal("arrived", data_signals + u64::from(ready_too) + u64::from(slip == Slip::WrongSum));
        let ready_signals = u64::from(!last && slip != Slip::NoReadiness && !ready_too) + u64::from(!last);
        let ready = part.signal("ready", ready_signals);
        let is_left_out = last || slip == Slip::MissingCopy && me == 0;
        let twice = slip == Slip::WrittenTwice && me == 0;
        let sent = part.signal("sent", if is_left_out { 0 } else { segments + u64::from(twice) });
        let length = |segment: u64| (segment * BYTES / segments, (segment + 1) * BYTES / segments);
        if !last {
            // A rank's own buffer is free when it has started.
            part.in_queue(2);
            part.join(started()).then(ready.on(me, 1));
            part.in_queue(0);
        }
        if me > 0 && slip != Slip::NoReadiness {
            // A rank signals when its own buffer is free and the next rank has signalled.
            let trigger = if last || ready_too { started() } else { ready.reaches(2) };
            let signal = if slip == Slip::ReadyAddedToData { arrived } else { ready };
            part.in_queue(1);
            let trigger = if slip == Slip::Cycle && last { arrived.reaches(segments) } else { trigger };
            part.join(trigger).then(signal.on(me - 1, 1));
            part.in_queue(0);
        }
        if !is_left_out {
            for segment in 0..segments {
                let (from, to) = length(segment);
                let trigger = match slip {
                    Slip::ReadyAddedToData => {
                        if me == 0 {
                            arrived.reaches(1)
                        } else {
                            arrived.reaches(segment + 2)
                        }
                    }
                    Slip::NoReadiness if me == 0 => started(),
                    Slip::ForwardsTooEarly if me > 0 => arrived.reaches(1),
                    Slip::NeverMet if me > 0 => arrived.reaches(segment + 100),
                    _ if me == 0 => ready.reaches(2),
                    _ => arrived.reaches(segment + 1),
                };
                let wrong = u64::from(slip == Slip::WrongPlace && segment + 1 == segments);
                let into = Location { offset: from - wrong, ..data.on(me + 1, 0) };
                let beyond = if slip == Slip::OutOfBuffer { BYTES } else { 0 };
                let origin = if slip == Slip::WrongOrigin && me == 0 { 0 } else { from };
                let bytes = if slip == Slip::MissingBytes && me == 0 { 0 } else { to - from + beyond };
                let step = part.copy(trigger, data.on(me, origin), into, bytes);
                step.then(arrived.on(me + 1 + if slip == Slip::NoSuchSignal { 100 } else { 0 }, 1));
                step.then(sent.on(me, 1));
            }
        }
        if twice {
            part.in_queue(3);
            part.copy(ready.reaches(2), data.on(0, 0), data.on(1, 0), 8).then(sent.on(0, 1));
        }
        if me > 0 && slip != Slip::MissingCopy {
            part.finish(arrived.reaches(segments + u64::from(ready_too)));
        }
        if !last {
            part.finish(sent.reaches(part.signal_decls()[sent.index()].per_start));
        }
    })
}

fn fault_of(schedule: &Schedule) -> Fault {
    *schedule.check().expect_err("it is wrong")
}

#[test]
fn a_chain_is_proven() {
    for (ranks, segments) in [(1, 1), (2, 1), (2, 4), (3, 1), (5, 3), (9, 7)] {
        let checked = chain(ranks, segments, Slip::None).check();
        let checked = checked.unwrap_or_else(|fault| panic!("{ranks} ranks, {segments} segments: {fault}"));
        assert_eq!(checked.depth, ranks - 1, "{ranks} ranks, {segments} segments");
        assert_eq!(checked.busiest_bytes, if ranks > 1 { BYTES } else { 0 });
    }
}

#[test]
fn without_readiness_a_start_overtakes_the_one_before() {
    let fault = fault_of(&chain(3, 1, Slip::NoReadiness));
    assert!(matches!(fault, Fault::Race { one, other, .. } if one.start != other.start), "{fault}");
}

#[test]
fn readiness_added_to_the_data_is_no_readiness() {
    let fault = fault_of(&chain(3, 4, Slip::ReadyAddedToData));
    println!("{fault}");
    assert!(matches!(fault, Fault::Race { .. } | Fault::Overtaken { .. }), "{fault}");
}

/// Rank 0 waits for signals of the others. These signal in each start without waiting, unless rank 0 releases them.
fn join(lets_go_on: bool) -> Schedule {
    let part = move |part: &mut RankPart| {
        let me = part.rank();
        let arrived = part.signal("arrived", if me == 0 { 2 } else { 0 });
        let released = part.signal("released", if me > 0 && lets_go_on { 1 } else { 0 });
        if me > 0 {
            part.join(started()).then(arrived.on(0, 1));
            part.finish(if lets_go_on { released.reaches(1) } else { started() });
            return;
        }
        let step = part.join(arrived.reaches(2));
        if lets_go_on {
            step.then(released.on(1, 1)).then(released.on(2, 1));
        }
        part.finish(arrived.reaches(2));
    };
    Schedule::new("join", 3, part, |_| Contract::default())
}

#[test]
fn a_join_is_overtaken_by_the_next_start() {
    join(true).check().unwrap_or_else(|fault| panic!("{fault}"));
    let fault = fault_of(&join(false));
    let Fault::Overtaken { at, missing, by, .. } = &fault else { panic!("{fault}") };
    // Rank 0 goes on, or ends, without one of the others, since the other has signalled twice.
    assert_eq!((at.rank, missing.start), (0, at.start), "{fault}");
    assert!(missing.rank != by.rank && by.start > missing.start, "{fault}");
}

/// How two ranks exchange data by staging buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Swap {
    Swapped,
    /// One buffer, which stays where it is.
    Fixed,
    /// A rank goes on before it has read what the other has written.
    GoesOn,
    /// Another rank accesses the swapped buffer, too.
    Third,
    /// The buffers differ in length.
    Uneven,
}

fn exchange(swap: Swap) -> Schedule {
    let ranks = if swap == Swap::Third { 3 } else { 2 };
    let part = move |part: &mut RankPart| {
        let me = part.rank();
        let other = if me == 2 { 0 } else { 1 - me };
        let data = part.buffer("data", 2 * BYTES);
        let bytes = if swap == Swap::Uneven && me == 1 { BYTES - 1 } else { BYTES };
        let stage = if swap == Swap::Fixed {
            part.scratch("stage", bytes, 1)
        } else {
            part.swapped("stage", bytes, other)
        };
        let [copied, announced, taken] = ["copied", "announced", "taken"].map(|name| part.signal(name, 1));
        part.copy(started(), data.on(me, 0), stage.on(me, 0), bytes)
            .then(copied.on(me, 1))
            .then(announced.on(other, 1));
        part.in_queue((swap == Swap::GoesOn).into());
        part.copy(announced.reaches(1), stage.on(other, 0), data.on(me, BYTES), bytes).then(taken.on(me, 1));
        part.finish(copied.reaches(1));
        if swap != Swap::GoesOn {
            part.finish(taken.reaches(1));
        }
    };
    let contract = move |rank: usize| {
        let buffer = crate::BufferId(0);
        let origin = Origin { ranks: vec![(rank as u32 + 1) % 2], buffer, offset: 0 };
        let got = BufferSpan { buffer, offset: BYTES, bytes: BYTES };
        let outputs = if swap == Swap::Swapped { vec![(got, origin)] } else { Vec::new() };
        Contract {
            inputs: vec![BufferSpan { buffer, offset: 0, bytes: BYTES }],
            outputs,
            ..Contract::default()
        }
    };
    Schedule::new("exchange", ranks, part, contract)
}

#[test]
fn swapped_places_are_free_when_their_next_writer_has_read_there() {
    exchange(Swap::Swapped).check().unwrap_or_else(|fault| panic!("{fault}"));
    for wrong in [Swap::Fixed, Swap::GoesOn] {
        let fault = fault_of(&exchange(wrong));
        assert!(
            matches!(fault, Fault::Race { one, other, .. } if one.start != other.start),
            "{wrong:?}: {fault}"
        );
    }
    for wrong in [Swap::Third, Swap::Uneven] {
        let fault = fault_of(&exchange(wrong));
        assert!(matches!(fault, Fault::OutOfBuffer { .. }), "{wrong:?}: {fault}");
    }
}

#[test]
fn each_mistake_gives_the_right_fault() {
    use Slip::*;
    let slips = [
        (ForwardsTooEarly, "race"),
        (MissingCopy, "sum"),
        (MissingBytes, "bytes"),
        (WrongOrigin, "bytes"),
        (WrittenTwice, "race"),
        (WrongSum, "sum"),
        (NeverMet, "never met"),
        (Cycle, "cycle"),
        (NoSuchSignal, "no signal"),
        (OutOfBuffer, "out of buffer"),
    ];
    for (slip, kind) in slips {
        let fault = fault_of(&chain(4, 4, slip));
        let seen = match &fault {
            Fault::Race { one, other, .. } if one.start == other.start => "race",
            Fault::WrongSum { .. } => "sum",
            Fault::WrongBytes { .. } => "bytes",
            Fault::NeverMet { .. } => "never met",
            Fault::Cycle { .. } => "cycle",
            Fault::NoSignal { .. } => "no signal",
            Fault::OutOfBuffer { .. } => "out of buffer",
            _ => "something else",
        };
        assert_eq!(seen, kind, "{slip:?}: {fault}");
    }
}

#[test]
fn inputs_and_outputs_must_lie_within_buffers() {
    for bytes in [None, Some(BYTES - 1)] {
        let fault = fault_of(&broadcast("nowhere", 3, move |part| {
            part.join(started());
            bytes.map(|bytes| part.buffer("data", bytes));
        }));
        assert!(matches!(fault, Fault::OutOfBuffer { at, .. } if at.step.is_none()), "{fault}");
        assert!(fault.to_string().contains("1000 bytes from byte 0 of buffer 0 of rank 0"), "{fault}");
    }
}

#[test]
fn inputs_and_outputs_must_lie_in_program_buffers() {
    let fault = fault_of(&broadcast("own", 1, |part| {
        part.scratch("data", BYTES, 1);
    }));
    assert!(matches!(fault, Fault::OutOfBuffer { at, .. } if at.step.is_none()), "{fault}");
}

#[test]
fn the_graph_has_the_depth_of_the_report() {
    for (ranks, segments) in [(1, 1), (2, 4), (5, 3), (9, 7)] {
        let schedule = chain(ranks, segments, Slip::None);
        let graph = schedule.graph().unwrap_or_else(|fault| panic!("{fault}"));
        assert!(graph.nodes.iter().all(|node| node.is_whole));
        // What had happened when each began, and when it was over, in moves.
        let mut depths: Vec<(Event, usize, usize)> = Vec::new();
        for node in &graph.nodes {
            let of =
                |event: Event| *depths.iter().find(|(other, ..)| *other == event).expect("it came before");
            let behind = node.behind.map_or(0, |behind| of(behind).1);
            let begun = node.waits_for().into_iter().map(|event| of(event).2).fold(behind, usize::max);
            let moves = match node.event {
                Event::Step(rank, step) => graph.parts[rank].steps()[step].action != StepKind::Nothing,
                _ => false,
            };
            depths.push((node.event, begun, begun + usize::from(moves)));
        }
        let depth = depths.iter().map(|&(_, _, over)| over).max();
        assert_eq!(depth, schedule.check().ok().map(|checked| checked.depth));
    }
}

#[test]
fn the_memory_of_a_proof_is_estimated() {
    let schedule = chain(9, 4, Slip::None);
    let bytes = schedule.check_bytes(u64::MAX);
    let events: u64 = (0..9).map(|rank| 2 + schedule.part(rank).steps().len() as u64).sum();
    assert!(bytes >= (3 * events).pow(2) / 8);
    assert!((1..bytes).contains(&schedule.check_bytes(1)), "no more ranks are looked at than it takes");
}

/// Rank 0 copies into a buffer of rank 1 with several copies used in turn; rank 1 copies the bytes on. Rank 0 waits
/// until what it copied a number of starts before has been read.
fn relay(turns: u32, lag: Option<u32>) -> Schedule {
    let part = move |part: &mut RankPart| {
        let me = part.rank() as u64;
        let data = part.buffer("data", BYTES);
        let place = part.scratch("place", me * BYTES, turns);
        let [arrived, taken] = ["arrived", "taken"].map(|name| part.signal(name, me));
        let [sent, free] = ["sent", "free"].map(|name| part.signal(name, 1 - me));
        if me == 0 {
            let trigger = lag.map_or(started(), |lag| free.reaches(1).lagging(lag));
            part.copy(trigger, data.on(0, 0), place.on(1, 0), BYTES)
                .then(arrived.on(1, 1))
                .then(sent.on(0, 1));
            part.finish(sent.reaches(1));
        } else {
            part.copy(arrived.reaches(1), place.on(1, 0), data.on(1, 0), BYTES)
                .then(taken.on(1, 1))
                .then(free.on(0, 1));
            part.finish(taken.reaches(1));
        }
    };
    broadcast("relay", 2, part)
}

#[test]
fn starts_that_share_a_copy_of_a_buffer_are_compared_however_many_turns_there_are() {
    for turns in [1, 2, 3, 4, 5, 6, 100] {
        for lag in (1..=turns.min(LAG_MAX)).map(Some) {
            relay(turns, lag).check().unwrap_or_else(|fault| panic!("{turns} turns, lag {lag:?}: {fault}"));
        }
        for lag in [None, Some(turns + 1), Some(turns + 2)] {
            let fault = fault_of(&relay(turns, lag));
            let Fault::Race { one, other, place } = &fault else {
                panic!("{turns} turns, lag {lag:?}: {fault}")
            };
            assert_eq!((one.rank, one.start, other.rank, other.start), (1, 0, 0, turns as usize), "{fault}");
            assert_eq!((place.rank, place.buffer.index()), (1, 1), "{fault}");
        }
    }
}

/// Rank 0 waits for the sum of the signals of two other ranks, one of which adds much more at once.
fn weighed(amounts: [u64; 2], synchronizes: bool) -> Schedule {
    let part = move |part: &mut RankPart| {
        let me = part.rank();
        let arrived = part.signal("arrived", if me == 0 { amounts[0] + amounts[1] } else { 0 });
        if me == 0 {
            part.join(arrived.reaches(amounts[0] + amounts[1]));
            part.finish(arrived.reaches(amounts[0] + amounts[1]));
        } else {
            part.join(started()).then(arrived.on(0, amounts[me - 1]));
            part.finish(started());
        }
    };
    Schedule::new("weighed", 3, part, move |rank| Contract {
        synchronizes: synchronizes && rank == 0,
        ..Contract::default()
    })
}

/// A rank that adds 1 in each start need only be ten starts ahead to count for one that adds 10.
#[test]
fn a_rank_many_starts_ahead_may_count_for_another() {
    for amounts in [[1, 1], [1, 2], [1, 10], [1000, 1]] {
        for synchronizes in [false, true] {
            let fault = fault_of(&weighed(amounts, synchronizes));
            assert!(matches!(fault, Fault::Overtaken { .. }), "{amounts:?}: {fault}");
        }
    }
}

/// A copy within a buffer between overlapping ranges: the result depends on the order of the pieces.
#[test]
fn a_step_with_overlapping_operands_races_with_itself() {
    let shift = |by: u64| {
        let part = move |part: &mut RankPart| {
            let data = part.buffer("data", 3 * BYTES);
            let done = part.signal("done", 1);
            part.copy(started(), data.on(0, 0), data.on(0, by), BYTES).then(done.on(0, 1));
            part.finish(done.reaches(1));
        };
        Schedule::new("shift", 1, part, |_| Contract::default())
    };
    for by in [0, BYTES, 2 * BYTES] {
        shift(by).check().unwrap_or_else(|fault| panic!("by {by}: {fault}"));
    }
    for by in [1, BYTES - 1] {
        let fault = fault_of(&shift(by));
        assert!(matches!(fault, Fault::Race { one, other, .. } if one == other), "by {by}: {fault}");
    }
}

/// A fault shows in brackets what was combined before it became a right operand.
#[test]
fn a_fault_shows_how_values_were_combined() {
    let of_pairs = |in_order| {
        let shape = Shape { in_order, ..Shape::new(CollectiveKind::Reduce, 4, 0, 8) };
        shape.build("pairs", |b| {
            let data = b.buffer("data", b.bytes());
            let pairs = [0, 2].map(|at| b.reduce(data.on(at + 1), data.on(at), false).id());
            b.reduce(data.on(2), data.on(0), false).after(pairs);
        })
    };
    of_pairs(false).check().unwrap_or_else(|fault| panic!("{fault}"));
    let fault = fault_of(&of_pairs(true)).to_string();
    let byte = |rank| format!("byte 0 of buffer 0 of rank {rank}");
    let [first, second, third, last] = [0, 1, 2, 3].map(byte);
    let is = format!("holds {first} + {second} + ({third} + {last}), and");
    let should_be = format!("should hold {first} + {second} + {third} + {last}");
    assert!(fault.contains(&is) && fault.ends_with(&should_be), "{fault}");
}
