//! Turns the events of all ranks into spans, and draws arrows where the events show what led to
//! what.
//!
//! The arrows lead
//! - from a post to the firing of its command, from there to the rank that ran it, and from there
//!   to its effects. The positions of commands and their numbers in flight identify them;
//! - from a put to the memory where its bytes arrive, and from the memory to a get;
//! - from an effect to the wait or command that it released: the first effect that took the signal
//!   from below the awaited value to that value or beyond.
//!
//! Where ranks do not see the value of a signal, this code adds up the effects. The sum is right if
//! nothing else raises the signal and no event was lost.

use super::lanes::{Arrow, Kind, MEMORY, Mark, Sheet, Span, UNDER_WAY};
use super::names;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use tasuki_core::base::Rank;
use tasuki_core::engine::trace::{
    CommandId, CommandSummary, EventKind, QueueId, RankTrace, TraceEvent, Transfer,
};
use tasuki_core::fabric::reached;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// One raise of a signal.
struct Raise {
    /// The signal was raised between `at` and `done`.
    at: u64,
    done: u64,
    /// The amount added to the signal.
    amount: u64,
    /// The value of the signal after the raise, if it is known.
    value: Option<u64>,
    span: usize,
}

/// A wait or command that went on because a signal had reached a value.
struct Goer {
    signal: GlobalAddress,
    value: u64,
    /// The earliest time at which it may have begun to wait.
    since: u64,
    at: u64,
    span: usize,
}

/// A transfer that the program called.
struct Moved {
    rank: u32,
    transfer: Transfer,
    span: usize,
}

/// A command that was under way.
#[derive(Default)]
struct CommandEvents {
    brief: Option<CommandSummary>,
    fired: Option<usize>,
    began: Option<(u32, u64)>,
    ended: Option<(u64, bool)>,
    ran: Option<usize>,
    shared: Vec<usize>,
    retired: Option<usize>,
}

#[derive(Default)]
struct Linker {
    sheet: Sheet,
    posts: HashMap<CommandId, usize>,
    fired: Vec<(CommandId, usize)>,
    in_flight: BTreeMap<CommandId, CommandEvents>,
    raises: BTreeMap<u64, Vec<Raise>>,
    goers: Vec<Goer>,
    moved: Vec<Moved>,
    /// When operations ended, by rank and operation number.
    arrived: HashMap<(u32, u64), u64>,
    /// True if no event was lost.
    is_complete: bool,
    /// The last span of each thread of the current rank in each queue. The effects that follow
    /// belong to it.
    last: HashMap<(u16, QueueId), usize>,
    /// The last post. One call may post several commands, and they share a span.
    post: Option<(u16, u64, u64, usize)>,
}

/// Builds the spans and arrows of these parts.
pub(super) fn link(parts: &[RankTrace]) -> Sheet {
    let mut linker = Linker { is_complete: parts.iter().all(|part| part.lost == 0), ..Linker::default() };
    for part in parts {
        (linker.last, linker.post) = (HashMap::new(), None);
        part.events.iter().for_each(|event| linker.take(part.rank.to_word(), event));
    }
    linker.finish()
}

impl Linker {
    fn span(&mut self, rank: u32, event: &TraceEvent, kind: Kind, name: impl Into<String>) -> usize {
        let name = name.into();
        let (begin, end, lane) = (event.begin_ns, event.end_ns.max(event.begin_ns), u32::from(event.thread));
        let (failed, facts) = (event.failed, Vec::new());
        self.push(Span { rank, lane, kind, begin, end, name, failed, facts })
    }

    fn fact(&mut self, span: usize, name: &'static str, fact: impl Into<Value>) {
        self.sheet.spans[span].facts.push((name, fact.into()));
    }

    fn add_command_facts(&mut self, span: usize, queue: QueueId, brief: &CommandSummary) {
        self.fact(span, "command", names::long(brief));
        self.fact(span, "in", names::queue(queue));
        names::bytes(brief).into_iter().for_each(|bytes| self.fact(span, "bytes", bytes));
        let effects = names::effects(brief).join(", ");
        if !effects.is_empty() {
            self.fact(span, "effects", effects);
        }
    }

    fn take(&mut self, rank: u32, event: &TraceEvent) {
        match event.what {
            EventKind::Posted(place, brief) => self.posted(rank, event, place, &brief),
            EventKind::Fired(place, in_flight, brief) => {
                self.take_fired(rank, event, place, in_flight, brief)
            }
            EventKind::Ran(id) => {
                let span = self.span(rank, event, Kind::Run, String::new());
                self.in_flight(id).ran = Some(span);
            }
            EventKind::Began(id) => self.in_flight(id).began = Some((rank, event.begin_ns)),
            EventKind::Ended(id) => self.in_flight(id).ended = Some((event.end_ns, event.failed)),
            EventKind::Shared(id, chunk) => {
                let span = self.span(rank, event, Kind::Share, "part");
                self.fact(span, "part", chunk);
                self.in_flight(id).shared.push(span);
            }
            EventKind::Retired(id) => {
                let span = self.span(rank, event, Kind::Effect, String::new());
                self.in_flight(id).retired = Some(span);
                self.last.insert((event.thread, id.queue), span);
            }
            EventKind::Effect(queue, signal, amount, value) => {
                if let (Some(&span), false) = (self.last.get(&(event.thread, queue)), event.failed) {
                    let (at, done) = (event.begin_ns, event.end_ns);
                    self.raise(signal, Raise { at, done, amount, value, span });
                    // The span lasts until its effect has happened.
                    let end = &mut self.sheet.spans[span].end;
                    *end = event.end_ns.max(*end);
                }
            }
            EventKind::Raised(raise) => {
                let span = self.span(rank, event, Kind::Raise, "raise");
                self.raised(event, raise, span);
            }
            EventKind::Moved(transfer) => {
                let span = self.span(rank, event, Kind::Transfer, names::transfer(&transfer));
                let ends = [("from", transfer.from), ("to", transfer.to)];
                for (name, at) in ends.into_iter().filter(|(_, at)| !at.is_null()) {
                    self.fact(span, name, at.to_string());
                }
                self.fact(span, "bytes", transfer.len);
                transfer.raise.into_iter().for_each(|raise| self.raised(event, raise, span));
                if !event.failed {
                    self.moved.push(Moved { rank, transfer, span });
                }
            }
            EventKind::Arrived(number) => drop(self.arrived.insert((rank, number), event.end_ns)),
            EventKind::Marked(name) => {
                let (lane, at) = (u32::from(event.thread), event.begin_ns);
                self.sheet.marks.push(Mark { rank, lane, at, name: name.text() });
            }
            EventKind::Spanned(name) => drop(self.span(rank, event, Kind::Program, name.text())),
            EventKind::Handled(place, name) => {
                let span = self.span(rank, event, Kind::Handler, name.text());
                self.fact(span, "in", names::queue(place.queue));
                self.last.insert((event.thread, place.queue), span);
                self.fired.push((place, span));
            }
            EventKind::Waited(awaited, text) => {
                let call = text.text();
                let span = self.span(rank, event, Kind::Wait, names::call(&call));
                self.fact(span, "call", call);
                if let (Some((signal, value)), false) = (awaited, event.failed) {
                    let (since, at) = (event.begin_ns, event.end_ns);
                    self.goers.push(Goer { signal, value, since, at, span });
                }
            }
        }
    }

    fn in_flight(&mut self, place: CommandId) -> &mut CommandEvents {
        self.in_flight.entry(place).or_default()
    }

    fn raise(&mut self, signal: GlobalAddress, raise: Raise) {
        self.raises.entry(signal.bits()).or_default().push(raise);
    }

    /// Records that a call of the program raised a signal.
    fn raised(&mut self, event: &TraceEvent, raise: tasuki_core::engine::trace::Raise, span: usize) {
        self.fact(span, "signal", names::signal(raise.signal));
        self.fact(span, "amount", raise.amount);
        if !event.failed {
            let (at, done, amount, value) = (event.begin_ns, event.end_ns, raise.amount, raise.value);
            self.raise(raise.signal, Raise { at, done, amount, value, span });
        }
    }

    fn posted(&mut self, rank: u32, event: &TraceEvent, place: CommandId, brief: &CommandSummary) {
        let call = (event.thread, event.begin_ns, event.end_ns);
        let span = match self.post {
            Some((thread, begin, end, span)) if (thread, begin, end) == call => {
                self.sheet.spans[span].name = "post several".into();
                span
            }
            _ => {
                let span = self.span(rank, event, Kind::Post, format!("post {}", names::short(brief)));
                self.add_command_facts(span, place.queue, brief);
                span
            }
        };
        self.post = Some((call.0, call.1, call.2, span));
        self.posts.insert(place, span);
    }

    fn take_fired(
        &mut self,
        rank: u32,
        event: &TraceEvent,
        place: CommandId,
        in_flight: Option<u64>,
        brief: CommandSummary,
    ) {
        let kind = if in_flight.is_some() { Kind::Fire } else { Kind::Run };
        let span = self.span(rank, event, kind, names::short(&brief));
        self.add_command_facts(span, place.queue, &brief);
        self.last.insert((event.thread, place.queue), span);
        self.fired.push((place, span));
        if let Some(number) = in_flight {
            let in_flight = self.in_flight(CommandId { number, ..place });
            (in_flight.brief, in_flight.fired) = (Some(brief), Some(span));
        }
        if let Some(trigger) = brief.command().and_then(|command| command.trigger)
            && !event.failed
        {
            let signal = GlobalAddress::new(place.queue.owner, signal_offset(trigger.signal));
            let (value, at) = (trigger.threshold, event.begin_ns);
            self.goers.push(Goer { signal, value, since: 0, at, span });
        }
    }

    fn arrow(&mut self, kind: &'static str, from: usize, to: usize, at_end: bool) {
        self.sheet.arrows.push(Arrow { kind, from, to, at_end });
    }

    fn finish(mut self) -> Sheet {
        for (place, to) in std::mem::take(&mut self.fired) {
            if let Some(&from) = self.posts.get(&place) {
                self.arrow("post", from, to, false);
            }
        }
        let mut under_way = Vec::new();
        for (place, in_flight) in std::mem::take(&mut self.in_flight) {
            self.link_command(place, in_flight, &mut under_way);
        }
        let mut accesses = Vec::new();
        for moved in std::mem::take(&mut self.moved) {
            self.move_bytes(&moved, &mut under_way, &mut accesses);
        }
        self.let_go();
        self.sheet.find_lanes(UNDER_WAY, &under_way);
        self.sheet.find_lanes(MEMORY, &accesses);
        self.sheet.lay_out();
        self.sheet
    }

    /// Adds what the events tell about a command that was under way.
    fn link_command(&mut self, place: CommandId, in_flight: CommandEvents, under_way: &mut Vec<usize>) {
        let name = in_flight.brief.as_ref().map_or_else(|| "a command".to_string(), names::short);
        let mut run = in_flight.ran;
        if let (Some((rank, begin_ns)), Some((end_ns, failed))) = (in_flight.began, in_flight.ended)
            && begin_ns <= end_ns
        {
            let what = EventKind::Ran(place);
            let event = TraceEvent { thread: 0, begin_ns, end_ns, failed, what };
            run = Some(self.span(rank, &event, Kind::Run, String::new()));
            under_way.extend(run);
        }
        match (run, in_flight.fired) {
            (Some(run), fired) => {
                self.sheet.spans[run].name.clone_from(&name);
                if let Some(brief) = &in_flight.brief {
                    self.add_command_facts(run, place.queue, brief);
                }
                fired.into_iter().for_each(|fired| self.arrow("fire", fired, run, false));
            }
            // The command ran when it fired; only its effects came later.
            (None, Some(fired)) => {
                self.sheet.spans[fired].kind = Kind::Run;
                run = Some(fired);
            }
            (None, None) => {}
        }
        let Some(run) = run else { return };
        // One arrow to the first part of each thread that helps. An arrow to each part would hide
        // the parts.
        let mut helping = HashSet::new();
        for part in in_flight.shared {
            let Span { rank, lane, .. } = self.sheet.spans[part];
            if helping.insert((rank, lane)) {
                self.arrow("share", run, part, false);
            }
        }
        if let Some(retired) = in_flight.retired {
            self.sheet.spans[retired].name = "effects".into();
            self.fact(retired, "of", name);
            self.arrow("end", run, retired, true);
        }
    }

    /// Draws arrows from the memory that a transfer reads to the memory that it writes. The calling
    /// rank's own memory is represented by the span of the call, and another rank's by a span on
    /// that rank's memory lane.
    fn move_bytes(&mut self, moved: &Moved, under_way: &mut Vec<usize>, accesses: &mut Vec<usize>) {
        let Moved { rank, transfer, span } = moved;
        let mut carrier = *span;
        if let Some(number) = transfer.number {
            let Some(&end) = self.arrived.get(&(*rank, number)) else { return }; // it failed, or its end was lost
            let mut copy = self.sheet.spans[*span].clone();
            copy.end = end.max(copy.begin);
            carrier = self.push(copy);
            under_way.push(carrier);
            self.arrow("fire", *span, carrier, false);
        }
        let mut end = |at: GlobalAddress, name: &str| {
            if at.is_null() || at.rank() == Rank::from_word(*rank) {
                return carrier;
            }
            let Span { begin, end, .. } = self.sheet.spans[carrier];
            let facts = vec![("by", Value::from(format!("rank {rank}"))), ("bytes", transfer.len.into())];
            let (rank, kind, name) = (at.rank().to_word(), Kind::Access, name.to_string());
            accesses.push(self.push(Span {
                rank,
                lane: MEMORY,
                kind,
                begin,
                end,
                name,
                failed: false,
                facts,
            }));
            accesses[accesses.len() - 1]
        };
        let (from, to) = (end(transfer.from, "read"), end(transfer.to, "write"));
        if from != to {
            self.arrow("data", from, to, false);
        }
        if from != carrier && to != carrier {
            self.arrow("copy", carrier, from, false);
        }
    }

    fn push(&mut self, span: Span) -> usize {
        self.sheet.spans.push(span);
        self.sheet.spans.len() - 1
    }

    /// Draws arrows from effects and raises to what they released.
    fn let_go(&mut self) {
        for raises in self.raises.values_mut() {
            raises.sort_by_key(|raise| raise.at);
            if self.is_complete && raises.iter().all(|raise| raise.value.is_none()) {
                let mut sum = 0_u64;
                for raise in raises {
                    sum = sum.wrapping_add(raise.amount);
                    raise.value = Some(sum);
                }
            }
        }
        for goer in std::mem::take(&mut self.goers) {
            let raises = self.raises.get(&goer.signal.bits()).map_or(&[][..], Vec::as_slice);
            if let Some(from) = first_to_reach(raises, &goer) {
                self.arrow("effect", from, goer.span, true);
            }
        }
    }
}

/// Returns the span of the raise that took the signal to the awaited value, if it is known and
/// happened during the wait.
fn first_to_reach(raises: &[Raise], goer: &Goer) -> Option<usize> {
    let before = raises.iter().take_while(|raise| raise.at <= goer.at);
    let takes = |raise: &&Raise| {
        raise.value.is_some_and(|value| {
            reached(value, goer.value) && !reached(value.wrapping_sub(raise.amount), goer.value)
        })
    };
    let first = before.clone().find(takes)?;
    ((first.at >= goer.since || first.done > goer.since) && first.span != goer.span).then_some(first.span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::engine::trace::TraceText;
    use tasuki_core::queue::command::{Action, Command, Trigger};
    use tasuki_core::queue::encoding::EncodedCommand;

    const QUEUE: QueueId = QueueId { owner: Rank(0), number: 0, generation: 1 };

    fn place(number: u64) -> CommandId {
        CommandId { queue: QUEUE, number }
    }

    fn part(rank: u32, events: &[(u64, u64, EventKind)]) -> RankTrace {
        let event =
            |&(begin_ns, end_ns, what)| TraceEvent { thread: 0, begin_ns, end_ns, failed: false, what };
        let events = events.iter().map(event).collect();
        let threads = vec!["program".into()];
        RankTrace { rank: Rank::from_word(rank), size: 2, is_virtual: false, lost: 0, threads, events }
    }

    fn signal(rank: u32) -> GlobalAddress {
        GlobalAddress::new(Rank::from_word(rank), signal_offset(3))
    }

    /// The arrows of a trace, each as its kind and the names of its two spans.
    fn arrows(sheet: &Sheet) -> Vec<(&str, &str, &str)> {
        let name = |at: usize| sheet.spans[at].name.as_str();
        sheet.arrows.iter().map(|arrow| (arrow.kind, name(arrow.from), name(arrow.to))).collect()
    }

    #[test]
    fn from_a_post_to_the_wait_that_its_effect_ends() {
        let brief = CommandSummary::of(&EncodedCommand::of(&Action::Nothing));
        let sheet = link(&[
            part(
                0,
                &[
                    (12, 13, EventKind::Fired(place(0), None, brief)),
                    (13, 14, EventKind::Effect(QUEUE, signal(1), 1, Some(1))),
                    (10, 20, EventKind::Posted(place(0), brief)),
                ],
            ),
            part(
                1,
                &[
                    (5, 9, EventKind::Waited(Some((signal(1), 2)), TraceText::of("another value"))),
                    (5, 15, EventKind::Waited(Some((signal(1), 1)), TraceText::of("wait"))),
                    (14, 16, EventKind::Waited(Some((signal(1), 1)), TraceText::of("too late"))),
                ],
            ),
        ]);
        assert_eq!(arrows(&sheet), [("post", "post signal", "signal"), ("effect", "signal", "wait")]);
    }

    #[test]
    fn from_an_effect_to_the_command_that_it_lets_fire() {
        let plain = CommandSummary::of(&EncodedCommand::of(&Action::Nothing));
        let mut command = Command::new(Action::Nothing);
        command.trigger = Some(Trigger { signal: 3, threshold: 2 });
        let brief = CommandSummary::of(&command.encode());
        for value in [Some(1), None] {
            let second = value.map(|value| value + 1);
            let sheet = link(&[part(
                0,
                &[
                    (1, 2, EventKind::Fired(place(0), None, plain)),
                    (2, 3, EventKind::Effect(QUEUE, signal(0), 1, value)),
                    (4, 5, EventKind::Fired(place(1), None, plain)),
                    (5, 6, EventKind::Effect(QUEUE, signal(0), 1, second)),
                    (7, 8, EventKind::Fired(place(2), None, brief)),
                ],
            )]);
            let arrow = Arrow { kind: "effect", from: 1, to: 2, at_end: true };
            assert_eq!(sheet.arrows, [arrow], "{value:?}");
        }
    }

    #[test]
    fn from_a_transfer_to_where_its_bytes_arrive() {
        let at = |rank| GlobalAddress::new(Rank(rank), 1 << 30);
        let own = GlobalAddress::NULL;
        let plain = Transfer { from: own, to: own, len: 8, raise: None, number: None };
        let raise = tasuki_core::engine::trace::Raise { signal: signal(1), amount: 1, value: Some(1) };
        let sheet = link(&[
            part(
                0,
                &[
                    (1, 4, EventKind::Moved(Transfer { to: at(1), raise: Some(raise), ..plain })),
                    (5, 7, EventKind::Moved(Transfer { from: at(1), ..plain })),
                    (8, 9, EventKind::Moved(Transfer { from: at(1), to: at(2), number: Some(3), ..plain })),
                    (12, 12, EventKind::Arrived(3)),
                    (13, 14, EventKind::Moved(Transfer { to: at(0), ..plain })),
                    (15, 16, EventKind::Moved(Transfer { from: at(1), to: at(2), number: Some(4), ..plain })),
                ],
            ),
            part(1, &[(0, 6, EventKind::Waited(Some((signal(1), 1)), TraceText::of("wait(signal 3 >= 1)")))]),
        ]);
        let expected = [
            ("data", "put_signal", "write"),
            ("data", "read", "get"),
            ("fire", "copy", "copy"),
            ("data", "read", "write"),
            ("copy", "copy", "read"),
            ("effect", "put_signal", "wait"),
        ];
        assert_eq!(arrows(&sheet), expected);
        let access = |name: &str, rank| {
            let mut spans = sheet.spans.iter().filter(|span| span.kind == Kind::Access && span.name == name);
            spans.any(|span| (span.rank, span.begin, span.end) == (rank, 8, 12) && span.lane >= MEMORY)
        };
        assert!(access("read", 1) && access("write", 2), "{:?}", sheet.spans);
    }

    #[test]
    fn raises_are_not_counted_where_some_were_lost() {
        let raise = tasuki_core::engine::trace::Raise { signal: signal(1), amount: 1, value: None };
        let count = |lost| {
            let mut raiser = part(0, &[(1, 2, EventKind::Raised(raise))]);
            raiser.lost = lost;
            let waiter = part(1, &[(0, 6, EventKind::Waited(Some((signal(1), 1)), TraceText::of("wait")))]);
            link(&[raiser, waiter]).arrows.len()
        };
        assert_eq!((count(0), count(5)), (1, 0));
    }

    #[test]
    fn what_is_under_way_has_its_own_lane_and_its_arrows() {
        let brief = CommandSummary::of(&EncodedCommand::of(&Action::Copy {
            from: GlobalAddress::new(Rank(0), 1 << 30),
            to: GlobalAddress::new(Rank(1), 1 << 30),
            len: 1 << 20,
        }));
        let sheet = link(&[
            part(
                0,
                &[
                    (1, 2, EventKind::Fired(place(9), Some(4), brief)),
                    (3, 3, EventKind::Began(place(4))),
                    (4, 6, EventKind::Shared(place(4), 0)),
                    (9, 9, EventKind::Retired(place(4))),
                ],
            ),
            part(1, &[(4, 8, EventKind::Shared(place(4), 1)), (8, 8, EventKind::Ended(place(4)))]),
        ]);
        let copy = "copy";
        let expected = [
            ("fire", copy, copy),
            ("share", copy, "part"),
            ("share", copy, "part"),
            ("end", copy, "effects"),
        ];
        assert_eq!(arrows(&sheet), expected);
        let run = sheet.spans.iter().find(|span| span.lane >= UNDER_WAY).unwrap();
        assert_eq!((run.rank, run.begin, run.end, run.kind), (0, 3, 8, Kind::Run));
    }
}
