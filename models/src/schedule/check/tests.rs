//! Small schedules that are right, and the same with one thing wrong.

use super::Fault;
use crate::schedule::{Contract, Origin, Part, Place, Schedule, Span, started};

const BYTES: u64 = 1000;

/// The root's bytes for everybody: rank 0 gives.
fn broadcast(name: &str, ranks: usize, part: impl Fn(&mut Part) + Send + Sync + 'static) -> Schedule {
    let contract = |rank| {
        let buffer = crate::schedule::Buffer(0);
        let span = Span { buffer, offset: 0, bytes: BYTES };
        let origin = Origin { ranks: vec![0], buffer, offset: 0 };
        let gives = if rank == 0 { vec![span] } else { Vec::new() };
        Contract { gives, gets: vec![(span, origin)], ..Contract::default() }
    };
    Schedule::new(name, ranks, part, contract)
}

/// What to do differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slip {
    None,
    NoReadiness,
    ReadyAddedToData,
    ForwardsTooEarly,
    MissingCopy,
    WrongPlace,
    WrongSum,
    NeverMet,
    Cycle,
    NoSuchSignal,
    OutOfBuffer,
}

/// A chain in segments: ready climbs it, and then the segments go down.
fn chain(ranks: usize, segments: u64, slip: Slip) -> Schedule {
    broadcast("chain", ranks, move |part| {
        let (me, last) = (part.rank(), part.rank() + 1 == ranks);
        let data = part.buffer("data", BYTES);
        let heard = if me == 0 { 0 } else { segments };
        let ready_too = slip == Slip::ReadyAddedToData && !last;
        let arrived =
            part.signal("arrived", heard + u64::from(ready_too) + u64::from(slip == Slip::WrongSum));
        let told = u64::from(!last && slip != Slip::NoReadiness && !ready_too) + u64::from(!last);
        let ready = part.signal("ready", told);
        let sent =
            part.signal("sent", if last || (slip == Slip::MissingCopy && me == 0) { 0 } else { segments });
        let length = |segment: u64| (segment * BYTES / segments, (segment + 1) * BYTES / segments);
        if !last {
            // Its own buffer is free when it has started.
            part.in_queue(2);
            part.join(started()).then(ready.on(me, 1));
            part.in_queue(0);
        }
        if me > 0 && slip != Slip::NoReadiness {
            // A rank reports when its own buffer is free and the one behind it has reported.
            let trigger = if last || ready_too { started() } else { ready.reaches(2) };
            let signal = if slip == Slip::ReadyAddedToData { arrived } else { ready };
            part.in_queue(1);
            let trigger = if slip == Slip::Cycle && last { arrived.reaches(segments) } else { trigger };
            part.join(trigger).then(signal.on(me - 1, 1));
            part.in_queue(0);
        }
        if !(last || slip == Slip::MissingCopy && me == 0) {
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
                let into = Place { offset: from - wrong, ..data.on(me + 1, 0) };
                let beyond = if slip == Slip::OutOfBuffer { BYTES } else { 0 };
                let step = part.copy(trigger, data.on(me, from), into, to - from + beyond);
                step.then(arrived.on(me + 1 + if slip == Slip::NoSuchSignal { 100 } else { 0 }, 1));
                step.then(sent.on(me, 1));
            }
        }
        if me > 0 && slip != Slip::MissingCopy {
            part.finish(arrived.reaches(segments + u64::from(ready_too)));
        }
        if !last {
            part.finish(sent.reaches(part.counters()[sent.index()].per_start));
        }
    })
}

fn fault_of(schedule: &Schedule) -> Fault {
    *schedule.check().expect_err("it is wrong")
}

#[test]
fn a_chain_is_right() {
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

#[test]
fn each_slip_is_seen_as_what_it_is() {
    let fault = |slip| fault_of(&chain(4, 3, slip));
    for slip in [
        Slip::ForwardsTooEarly,
        Slip::MissingCopy,
        Slip::WrongPlace,
        Slip::WrongSum,
        Slip::NeverMet,
        Slip::Cycle,
        Slip::NoSuchSignal,
        Slip::OutOfBuffer,
    ] {
        println!("{slip:?}: {}", fault(slip));
    }
    assert!(
        matches!(fault(Slip::ForwardsTooEarly), Fault::Race { one, other, .. } if one.start == other.start)
    );
    assert!(matches!(fault(Slip::MissingCopy), Fault::WrongBytes { .. } | Fault::WrongSum { .. }));
    assert!(matches!(fault(Slip::WrongSum), Fault::WrongSum { .. }));
    assert!(matches!(fault(Slip::NeverMet), Fault::NeverMet { .. }));
    assert!(matches!(fault(Slip::Cycle), Fault::Cycle { .. }));
    assert!(matches!(fault(Slip::NoSuchSignal), Fault::NoSignal { .. }));
    assert!(matches!(fault(Slip::OutOfBuffer), Fault::OutOfBuffer { .. }));
}
