//! Compares the proof with an interpreter that was written from docs/guide/plan-files.md alone
//! ("What a schedule means"). All algorithms must give correct results when the interpreter runs
//! them. The proof must refuse each plan for which the interpreter finds an error.

mod cases;
mod interpreter;
mod json_plan;
mod mutants;
mod random;

use cases::{Case, cases, proven, text};
use interpreter::{Finding, run};
use json_plan::Plan;
use mutants::{MUTATIONS, START, is_flow_control};
use random::Random;
use std::collections::BTreeMap;
use tasuki_schedule::{Builder, CollectiveKind, Shape};

/// Runs a plan up to `runs` times, until an error is found. Returns it with the number of starts
/// and the seed.
fn find(plan: &Plan, runs: u64, seed: u64) -> Option<(Finding, u64, u64)> {
    let mut random = Random::new(seed);
    (0..runs).find_map(|number| {
        let starts = [2, 4, 9][number as usize % 3];
        let seed = random.next();
        run(plan, starts, seed).err().map(|finding| (finding, starts, seed))
    })
}

#[test]
fn all_algorithms_are_right_when_they_are_run() {
    for (number, Case { name, plan }) in cases(1..=5).iter().enumerate() {
        if let Some((finding, starts, seed)) = find(plan, 12, number as u64) {
            panic!("{name}: {finding}, in {starts} starts, seed {seed}");
        }
    }
}

/// Counts of mutants: all, those in which the interpreter found an error, those that the proof
/// refused, and those that it refused although the interpreter found no error.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    all: usize,
    harmful: usize,
    refused: usize,
    refused_though_nothing_was_found: usize,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.all += other.all;
        self.harmful += other.harmful;
        self.refused += other.refused;
        self.refused_though_nothing_was_found += other.refused_though_nothing_was_found;
    }
}

/// Proves and runs a mutant. Returns its counts, and the error if the mutant was proven
/// nevertheless.
fn compare_with_checker(mutant: &Plan, seed: u64) -> (Tally, Option<String>) {
    let verdict = proven(mutant);
    let found = find(mutant, if verdict.is_ok() { 36 } else { 12 }, seed);
    let is_refused = verdict.is_err();
    let tally = Tally {
        all: 1,
        harmful: found.is_some().into(),
        refused: is_refused.into(),
        refused_though_nothing_was_found: (is_refused && found.is_none()).into(),
    };
    let missed = found.filter(|_| !is_refused);
    (tally, missed.map(|(finding, starts, seed)| format!("{finding} ({starts} starts, seed {seed})")))
}

/// Mutates the schedules of all algorithms for `ranks` ranks. Each mutation that removes flow
/// control is applied to every schedule, and each other mutation to about half of them.
fn spoil(ranks: usize) {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut random = Random::new(ranks as u64);
    let mut missed = Vec::new();
    for Case { name, plan } in cases(ranks..=ranks) {
        for &(kind, mutate) in MUTATIONS {
            let mut mutant = plan.clone();
            // More mutants would take minutes.
            if !is_flow_control(kind) && random.one_in(2) || mutate(&mut mutant, &mut random).is_none() {
                continue;
            }
            let (tally, harm) = compare_with_checker(&mutant, random.next());
            tallies.entry(kind).or_default().add(tally);
            missed.extend(harm.map(|harm| format!("{name}: {kind}: {harm}")));
            if is_flow_control(kind) && tally.refused == 0 {
                println!("proven, and nothing was found: {name}: {kind}");
            }
        }
    }
    let (mut sum, mut flow) = (Tally::default(), Tally::default());
    for (kind, &tally) in &tallies {
        println!("{kind:<55} {tally:?}");
        sum.add(tally);
        if is_flow_control(kind) {
            flow.add(tally);
        }
    }
    println!("flow control removed: {flow:?}\nall {} kinds: {sum:?}", tallies.len());
    assert!(missed.is_empty(), "proven:\n{}", missed.join("\n"));
    // Checks that the test has tested something: there are many mutants of many kinds, and most of
    // them do harm.
    assert!(sum.all >= 800 && tallies.len() >= 40 && sum.harmful * 2 > sum.all, "{sum:?}");
    // Little flow control is superfluous.
    assert!(flow.all > 20 && flow.refused * 4 >= flow.all * 3, "{flow:?}");
}

#[test]
fn what_goes_wrong_among_two_is_not_proven() {
    spoil(2);
}

#[test]
fn what_goes_wrong_among_three_is_not_proven() {
    spoil(3);
}

#[test]
fn what_goes_wrong_among_four_is_not_proven() {
    spoil(4);
}

/// A plan of two ranks: rank 0 writes a value into a buffer of rank 1 with `turns` copies, and rank
/// 1 copies it from there. With `lag`, rank 0 waits until rank 1 has copied the value of that many
/// starts before.
fn relay(turns: u32, lag: Option<u32>) -> Plan {
    let when = match lag {
        Some(lag) => format!(r#"{{"signal":3,"count":1,"lag":{lag}}}"#),
        None => r#"{"signal":0,"count":1}"#.into(),
    };
    let buffers = |bytes| {
        format!(r#"[{{"name":"data","bytes":8}},{{"name":"place","bytes":{bytes},"turns":{turns}}}]"#)
    };
    let signals = |counts: [u64; 4]| {
        let names = ["arrived", "sent", "free", "taken"];
        let one = |(name, count)| format!(r#",{{"name":"{name}","per_start":{count}}}"#);
        let all: String = names.into_iter().zip(counts).map(one).collect();
        format!(r#"[{{"name":"start","per_start":1}}{all}]"#)
    };
    let place = |rank, buffer| format!(r#"{{"rank":{rank},"buffer":{buffer},"offset":0}}"#);
    let copy = |from, to| format!(r#"{{"copy":{{"from":{from},"to":{to},"bytes":8}}}}"#);
    let raises = |rank, signal| format!(r#"{{"rank":{rank},"signal":{signal},"amount":1}}"#);
    Plan::read(&format!(
        r#"{{"format":"tasuki plan","version":1,"name":"relay","ranks":2,"parts":[
        {{"rank":0,"buffers":{},"signals":{},
          "steps":[{{"queue":0,"when":{when},"do":{},"then":[{},{}]}}],
          "finish":[{{"signal":2,"count":1}}],
          "contract":{{"gives":[{{"buffer":0,"offset":0,"bytes":8}}],"gets":[],"in_order":false,"meets":false}}}},
        {{"rank":1,"buffers":{},"signals":{},
          "steps":[{{"queue":0,"when":{{"signal":1,"count":1}},"do":{},"then":[{},{}]}}],
          "finish":[{{"signal":4,"count":1}}],
          "contract":{{"gives":[],"gets":[{{"buffer":0,"offset":0,"bytes":8,
            "from":{{"ranks":[0],"buffer":0,"offset":0}}}}],"in_order":false,"meets":false}}}}]}}"#,
        buffers(0),
        signals([0, 1, 1, 0]),
        copy(place(0, 0), place(1, 1)),
        raises(1, 1),
        raises(0, 2),
        buffers(8),
        signals([1, 0, 0, 1]),
        copy(place(1, 1), place(1, 0)),
        raises(0, 3),
        raises(1, 4),
    ))
}

/// If a buffer has t copies, the value of start k - t must have been read before start k writes. So
/// a lag of 1 to t is correct; a larger lag, or no flow control, is wrong.
#[test]
fn a_place_is_used_again_when_it_was_taken() {
    for turns in 1..=6 {
        for lag in (0..=7).map(Some).chain([None]) {
            let plan = relay(turns, lag);
            let is_right = lag.is_some_and(|lag| 0 < lag && lag <= turns);
            let found = find(&plan, 60, turns.into());
            assert_eq!(found.is_none(), is_right, "{turns} turns, lag {lag:?}: {found:?}");
            let verdict = proven(&plan);
            assert_eq!(verdict.is_ok(), is_right, "{turns} turns, lag {lag:?}: {verdict:?}");
            if let Some(fault) = verdict.err().filter(|_| lag != Some(0)) {
                // The fault names the start that writes too early and the start whose value has not
                // been read.
                let starts =
                    format!("step 0 of rank 1 in start 0 and step 0 of rank 0 in start {turns} use byte 0");
                assert!(fault.contains(&starts), "{turns} turns, lag {lag:?}: {fault}");
            }
        }
    }
}

/// Rank 0 combines the values of all ranks from the left.
fn from_the_left(b: &mut Builder) {
    let data = b.buffer("data", b.bytes());
    let mut last = None;
    for rank in 1..b.ranks().len() {
        last = Some(b.reduce(data.on(rank), data.on(0), false).after(last).id());
    }
}

/// Reductions that combine all values in the order of ranks. If their result depends on the brackets, too, only those
/// that set them as the combining order does are right.
#[test]
fn values_in_the_right_order_with_other_brackets_are_refused() {
    let tree = CollectiveKind::Reduce.algorithms().find(|one| one.name == "tree").expect("it exists");
    let shape = |ranks, in_order| Shape { in_order, ..Shape::new(CollectiveKind::Reduce, ranks, 0, 8) };
    let binomial = |ranks| tree.schedule(&shape(ranks, false), 1);
    let left = |ranks| shape(ranks, false).build("from the left", from_the_left);
    let cases = [
        ("v0 v1 v2 up a binomial tree", binomial(3), true),
        ("(v0 v1) (v2 v3)", binomial(4), false),
        ("up the tree of the combining order", tree.schedule(&shape(34, true), 1), true),
        ("a group and one more from the left", left(33), true),
        ("a group and two more from the left", left(34), false),
    ];
    for (name, schedule, is_right) in cases {
        let mut plan = Plan::read(&text(&schedule));
        for in_order in [false, true] {
            plan.parts.iter_mut().for_each(|part| part.contract.in_order = in_order);
            let found = find(&plan, 12, 1);
            assert_eq!(found.is_none(), is_right || !in_order, "{name}, in order: {in_order}: {found:?}");
            let verdict = proven(&plan);
            assert_eq!(verdict.is_ok(), is_right || !in_order, "{name}, in order: {in_order}: {verdict:?}");
        }
    }
}

/// Waits of an allreduce that other waits make superfluous, and neighbours of them that are needed. The verdict of the
/// proof must be that of the interpreter, which runs each mutant with the seeds of many orders.
#[test]
fn superfluous_waits_of_an_allreduce_differ_from_those_that_are_needed() {
    let shape = Shape::new(CollectiveKind::Allreduce, 4, 0, 64);
    let tree = CollectiveKind::Allreduce.algorithms().find(|one| one.name == "tree").expect("it exists");
    let plan = Plan::read(&text(&tree.schedule(&shape, 4)));
    type Change = fn(&mut Plan);
    let changes: [(&str, bool, Change); 6] = [
        // The step before it in the queue has waited for the same signal.
        ("rank 0 passes the sum on at its own start", true, |plan| plan.parts[0].steps[3].when = START),
        // A rank begins start k + 2 when start k + 1 is over. For that it has got the sum of start k + 1, which rank 0
        // sends after it has taken the value of start k.
        ("rank 1 does not wait for its place", true, |plan| plan.parts[1].steps[0].when = START),
        // In this plan the step raises nothing.
        ("rank 1 does not tell that its place is free", true, |plan| plan.parts[1].steps[0].then.clear()),
        ("rank 0 sends the sum at its own start", false, |plan| {
            plan.parts[0].steps[2].when = START;
            plan.parts[0].steps[3].when = START;
        }),
        ("rank 0 adds what has not come", false, |plan| plan.parts[0].steps[0].when = START),
        ("rank 1 does not tell that its value has come", false, |plan| plan.parts[1].steps[1].then.clear()),
    ];
    for (number, (name, is_harmless, change)) in changes.into_iter().enumerate() {
        let mut mutant = plan.clone();
        change(&mut mutant);
        let found = find(&mutant, 600, number as u64);
        assert_eq!(found.is_none(), is_harmless, "{name}: {found:?}");
        let verdict = proven(&mutant);
        assert_eq!(verdict.is_ok(), is_harmless, "{name}: {verdict:?}");
    }
}
