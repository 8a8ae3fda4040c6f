//! Spans on lanes, and arrows between spans: the content of a trace, independent of the file
//! format.
//!
//! A lane is a row of the picture. There are three sorts: a thread of a rank, whose spans nest or
//! follow each other; a row for commands and transfers that are under way while the threads do
//! other things; and a row for accesses to a rank's memory by other ranks.

use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lanes from this number on are not threads; they show what is under way.
pub(super) const UNDER_WAY: u32 = 1000;
/// Lanes from this number on show a rank's memory, which other ranks read and write.
pub(super) const MEMORY: u32 = 1_000_000;

/// What a span shows. Each kind has its own colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// A span that the program made.
    Program,
    /// The program puts, gets or copies.
    Transfer,
    /// A rank reads or writes another rank's memory.
    Access,
    /// The program waits.
    Wait,
    /// The program posts commands.
    Post,
    /// The program raises a signal that commands wait for.
    Raise,
    /// A command fires; it runs later.
    Fire,
    /// A command runs.
    Run,
    /// A handler runs.
    Handler,
    /// A rank copies one part of a shared copy.
    Share,
    /// The effects of a command happen after it was under way.
    Effect,
}

impl Kind {
    /// All kinds. Of two spans with equal times, the kind that comes first here encloses the other.
    pub(super) const ALL: [Kind; 11] = [
        Kind::Program,
        Kind::Transfer,
        Kind::Access,
        Kind::Wait,
        Kind::Post,
        Kind::Raise,
        Kind::Fire,
        Kind::Run,
        Kind::Handler,
        Kind::Share,
        Kind::Effect,
    ];

    /// The word for this kind in files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Program => "program",
            Kind::Transfer => "transfer",
            Kind::Access => "access",
            Kind::Wait => "wait",
            Kind::Post => "post",
            Kind::Raise => "raise",
            Kind::Fire => "fire",
            Kind::Run => "run",
            Kind::Handler => "handler",
            Kind::Share => "share",
            Kind::Effect => "effect",
        }
    }
}

/// Something that took some time on a lane of a rank.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) rank: u32,
    pub(super) lane: u32,
    pub(super) kind: Kind,
    /// In ns. `lay_out` makes each span at least 1 ns long.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) name: String,
    pub(super) failed: bool,
    /// Details, each with its name.
    pub(super) facts: Vec<(&'static str, Value)>,
}

/// A moment that the program marked.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Mark {
    pub(super) rank: u32,
    pub(super) lane: u32,
    pub(super) at: u64,
    pub(super) name: String,
}

/// Shows that one span led to another: a post to the run of its command, an effect to what it
/// released.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Arrow {
    pub(super) kind: &'static str,
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if the arrow starts at the end of its span, as an effect comes after the action.
    pub(super) at_end: bool,
}

/// All spans, marks and arrows of a trace.
#[derive(Default, Debug)]
pub(super) struct Sheet {
    pub(super) spans: Vec<Span>,
    pub(super) marks: Vec<Mark>,
    pub(super) arrows: Vec<Arrow>,
}

impl Span {
    /// The time at which an arrow leaves the span; it lies inside the span.
    pub(super) fn leaves(&self, arrow: &Arrow) -> u64 {
        if arrow.at_end { self.end - 1 } else { self.begin }
    }

    /// The time at which an arrow reaches the span. An arrow reaches a wait at its end, because it
    /// ended the wait, and a transfer or access at its end, because its bytes have arrived then.
    pub(super) fn reached(&self) -> u64 {
        let is_at_end = matches!(self.kind, Kind::Wait | Kind::Transfer | Kind::Access);
        if is_at_end { self.end - 1 } else { self.begin }
    }
}

impl Sheet {
    /// Gives each of these spans a lane, numbered from `first`, on which none of the other spans
    /// overlaps it.
    pub(super) fn find_lanes(&mut self, first: u32, spans: &[usize]) {
        let mut order: Vec<usize> = spans.to_vec();
        order.sort_by_key(|&at| (self.spans[at].begin, self.spans[at].end));
        let mut ends: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for at in order {
            let span = &mut self.spans[at];
            let lanes = ends.entry(span.rank).or_default();
            let free = lanes.iter().position(|&end| end <= span.begin);
            let lane = free.unwrap_or_else(|| {
                lanes.push(0);
                lanes.len() - 1
            });
            lanes[lane] = span.end.max(span.begin + 1);
            span.lane = first + lane as u32;
        }
    }

    /// Makes the spans of each lane nest and gives each one a length. Where the clock is too coarse
    /// to order two times, moves one by a nanosecond.
    pub(super) fn lay_out(&mut self) {
        let mut order: Vec<usize> = (0..self.spans.len()).collect();
        order.sort_by_key(|&at| {
            let span = &self.spans[at];
            (span.rank, span.lane, span.begin, Reverse(span.end), span.kind, at)
        });
        let mut stack: Vec<usize> = Vec::new();
        let mut last: Option<((u32, u32), u64)> = None;
        for at in order {
            let span = &self.spans[at];
            let lane = (span.rank, span.lane);
            let before = last.filter(|(other, _)| *other == lane).map(|(_, begin)| begin);
            if before.is_none() {
                stack.clear();
            }
            let begin = before.map_or(span.begin, |before| span.begin.max(before + 1));
            while stack.last().is_some_and(|&around| self.spans[around].end <= begin) {
                stack.pop();
            }
            let end = span.end.max(begin + 1);
            (self.spans[at].begin, self.spans[at].end) = (begin, end);
            stack.iter().for_each(|&around| self.spans[around].end = self.spans[around].end.max(end));
            stack.push(at);
            last = Some((lane, begin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(kind: Kind, begin: u64, end: u64) -> Span {
        let (name, facts) = (String::new(), Vec::new());
        Span { rank: 0, lane: 0, kind, begin, end, name, failed: false, facts }
    }

    fn times_of(spans: Vec<Span>) -> Vec<(u64, u64)> {
        let mut sheet = Sheet { spans, ..Sheet::default() };
        sheet.lay_out();
        sheet.spans.iter().map(|span| (span.begin, span.end)).collect()
    }

    #[test]
    fn what_is_inside_stays_inside() {
        let spans = vec![span(Kind::Run, 12, 15), span(Kind::Post, 10, 20), span(Kind::Run, 15, 18)];
        assert_eq!(times_of(spans), [(12, 15), (10, 20), (15, 18)]);
    }

    #[test]
    fn what_has_no_length_gets_one_and_nothing_overlaps() {
        let runs = (0..9).map(|_| span(Kind::Run, 5, 5));
        let spans: Vec<Span> = runs.chain([span(Kind::Post, 5, 5), span(Kind::Wait, 5, 6)]).collect();
        let times = times_of(spans);
        for (at, one) in times.iter().enumerate() {
            assert!(one.0 < one.1);
            for other in &times[at + 1..] {
                let apart = one.1 <= other.0 || other.1 <= one.0;
                let inside = one.0 < other.0 && other.1 <= one.1 || other.0 < one.0 && one.1 <= other.1;
                assert!(apart || inside, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn what_is_under_way_at_a_time_has_lanes_of_its_own() {
        let spans = vec![span(Kind::Run, 1, 9), span(Kind::Run, 2, 3), span(Kind::Run, 3, 9)];
        let mut sheet = Sheet { spans, ..Sheet::default() };
        sheet.find_lanes(UNDER_WAY, &[0, 1, 2]);
        let lanes: Vec<u32> = sheet.spans.iter().map(|span| span.lane - UNDER_WAY).collect();
        assert_eq!(lanes, [0, 1, 1]);
    }
}
