//! Spans on lanes, and arrows between spans: what a trace consists of, whatever it is written as.
//!
//! A lane is a thread of a rank, on which spans lie inside each other or one behind the other; or a row of its own for
//! what is under way beside all threads; or one for what happens to a rank's memory that no thread of it did.

use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lanes from here on are no threads: what is under way.
pub(super) const UNDER_WAY: u32 = 1000;
/// Lanes from here on are a rank's memory, which others read and write.
pub(super) const MEMORY: u32 = 1_000_000;

/// What a span is of; each has its colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// A span that the program made.
    Program,
    /// The program puts, gets or copies.
    Transfer,
    /// A rank reads or writes the memory of another one.
    Access,
    /// The program waits.
    Wait,
    /// It posts commands.
    Post,
    /// It raises a signal that commands wait for.
    Raise,
    /// A command fires, and is run later.
    Fire,
    /// A command is run.
    Run,
    /// A handler runs.
    Handler,
    /// A part of a shared copy.
    Share,
    /// The effects of a command that was under way happen.
    Effect,
}

impl Kind {
    /// All, from what lies outside to what lies inside where times are equal.
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

    /// Its word in files.
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

/// Something that took a time on a lane of a rank.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) rank: u32,
    pub(super) lane: u32,
    pub(super) kind: Kind,
    /// In ns; at least one long once it is laid out.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) name: String,
    pub(super) failed: bool,
    /// More about it, by name.
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

/// One span led to another: a post to its run, an effect to what it let go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Arrow {
    pub(super) kind: &'static str,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether it starts where its span ends: an effect comes after the action.
    pub(super) at_end: bool,
}

/// All of it.
#[derive(Default, Debug)]
pub(super) struct Sheet {
    pub(super) spans: Vec<Span>,
    pub(super) marks: Vec<Mark>,
    pub(super) arrows: Vec<Arrow>,
}

impl Span {
    /// Where an arrow leaves it, inside.
    pub(super) fn leaves(&self, arrow: &Arrow) -> u64 {
        if arrow.at_end { self.end - 1 } else { self.begin }
    }

    /// Where an arrow reaches it: a wait at its end, which is what it let come; what moves bytes when they are there.
    pub(super) fn reached(&self) -> u64 {
        let is_at_end = matches!(self.kind, Kind::Wait | Kind::Transfer | Kind::Access);
        if is_at_end { self.end - 1 } else { self.begin }
    }
}

impl Sheet {
    /// Gives each of those spans a lane from `first` on, on which no other of them is at that time.
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

    /// Spans of a lane lie inside each other, and none has no length: where times are too coarse to tell, by a
    /// nanosecond.
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

    fn laid_out(spans: Vec<Span>) -> Vec<(u64, u64)> {
        let mut sheet = Sheet { spans, ..Sheet::default() };
        sheet.lay_out();
        sheet.spans.iter().map(|span| (span.begin, span.end)).collect()
    }

    #[test]
    fn what_is_inside_stays_inside() {
        let spans = vec![span(Kind::Run, 12, 15), span(Kind::Post, 10, 20), span(Kind::Run, 15, 18)];
        assert_eq!(laid_out(spans), [(12, 15), (10, 20), (15, 18)]);
    }

    #[test]
    fn what_has_no_length_gets_one_and_nothing_overlaps() {
        let runs = (0..9).map(|_| span(Kind::Run, 5, 5));
        let spans: Vec<Span> = runs.chain([span(Kind::Post, 5, 5), span(Kind::Wait, 5, 6)]).collect();
        let times = laid_out(spans);
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
