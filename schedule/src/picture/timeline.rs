//! Draws the transfers over time: one lane for each rank, time from left to right.

use super::canvas::{
    BAND, Canvas, Drawn, FAINT, GREY, HEAD, INK, MARGIN, Point, Sign, colour, head_width, page,
};
use super::rounds::Rounds;
use super::{Kind, action, size};
use crate::ScheduleError;
use crate::{Event, Graph};
use plotters::style::{RGBColor, WHITE};
use std::collections::BTreeSet;

/// Pixels left of the lanes, and below them.
const LEFT: i32 = 96;
const AXIS: i32 = 56;
/// Pixels between lanes, and between rounds.
const LANE_MAX: i32 = 64;
const LANE_MIN: i32 = 26;
const LANES_HEIGHT: i32 = 520;
const ROUND_MAX: i32 = 180;
const ROUND_MIN: i32 = 36;
const ROUNDS_WIDTH: i32 = 1150;
/// The most transfers for which sizes are shown.
const LABELS_MAX: usize = 72;

struct Timeline<'g> {
    graph: &'g Graph,
    rounds: Rounds,
    lane: i32,
    round: i32,
}

/// Draws the timeline as SVG.
pub(super) fn draw(graph: &Graph, title: &str) -> Result<String, ScheduleError> {
    let (rounds, ranks) = (Rounds::of(graph), graph.parts.len() as i32);
    let lane = (LANES_HEIGHT / ranks).clamp(LANE_MIN, LANE_MAX);
    let round = (ROUNDS_WIDTH / (rounds.end as i32).max(1)).clamp(ROUND_MIN, ROUND_MAX);
    let picture = Timeline { graph, rounds, lane, round };
    let (remark, legend) = (picture.remark(), picture.legend());
    let width = LEFT + picture.rounds.end as i32 * round + 40 + MARGIN;
    let width = width.max(head_width(title, &remark, &legend));
    let height = HEAD + ranks * lane + AXIS;
    page((width, height), |canvas| {
        canvas.head_of_page(title, &remark, &legend)?;
        picture.draw_lanes(canvas)?;
        for kind in [Kind::Join, Kind::Copy, Kind::Reduce, Kind::Local, Kind::Sum] {
            picture.draw_steps(canvas, kind)?;
        }
        picture.draw_ends(canvas)?;
        picture.draw_labels(canvas)
    })
}

impl Timeline<'_> {
    fn y(&self, rank: usize) -> i32 {
        HEAD + self.lane / 2 + rank as i32 * self.lane
    }

    fn x(&self, round: usize) -> i32 {
        LEFT + round as i32 * self.round
    }

    fn bytes(&self) -> BTreeSet<u64> {
        self.transfers().map(|(_, _, bytes)| bytes).collect()
    }

    /// Steps that move bytes between ranks: begin, end, and size.
    fn transfers(&self) -> impl Iterator<Item = (Point, Point, u64)> + '_ {
        self.graph.nodes.iter().filter_map(|node| match action(self.graph, node.event) {
            Some((Kind::Copy | Kind::Reduce, from, to, bytes)) => {
                let begin = self.rounds.begin[&node.event];
                Some(((self.x(begin), self.y(from)), (self.x(begin + 1), self.y(to)), bytes))
            }
            _ => None,
        })
    }

    fn remark(&self) -> String {
        let model = "a message takes a round; a rank sends one with bytes at a time, and receives one";
        let count = self.transfers().count();
        let bytes: Vec<u64> = self.bytes().into_iter().collect();
        match &bytes[..] {
            [] => model.into(),
            [one] if count == 1 => format!("1 transfer of {}; {model}", size(*one)),
            [one] => format!("{count} transfers of {}; {model}", size(*one)),
            [.., most] if count > LABELS_MAX => {
                format!("{count} transfers of {} to {}; {model}", size(bytes[0]), size(*most))
            }
            _ => format!("{count} transfers; {model}"),
        }
    }

    fn legend(&self) -> Vec<(Sign, &'static str)> {
        let steps =
            self.graph.nodes.iter().filter_map(|node| Some((node.event, action(self.graph, node.event)?.0)));
        let is_seen =
            |&(event, kind): &(Event, Kind)| kind != Kind::Join || self.signalled(event).next().is_some();
        let kinds: BTreeSet<Kind> = steps.filter(is_seen).map(|(_, kind)| kind).collect();
        let sign = |kind| match kind {
            Kind::Copy => (Sign::Arrow(colour(kind)), "copies bytes"),
            Kind::Reduce => (Sign::Arrow(colour(kind)), "combines values at another rank"),
            Kind::Local => (Sign::Square(colour(kind)), "copies within a rank"),
            Kind::Sum => (Sign::Square(colour(kind)), "combines values"),
            Kind::Join => (Sign::Dashes(colour(kind)), "signals, without bytes"),
        };
        kinds.into_iter().map(sign).chain([(Sign::Bar(INK), "the start is over for the rank")]).collect()
    }

    /// The other ranks whose signals a step raises.
    fn signalled(&self, event: Event) -> impl Iterator<Item = usize> + '_ {
        let step = match event {
            Event::Step(rank, step) => Some((rank, &self.graph.parts[rank].steps()[step])),
            Event::Begin(_) | Event::End(_) => None,
        };
        step.into_iter().flat_map(|(rank, step)| {
            step.effects().map(|effect| effect.rank as usize).filter(move |&whose| whose != rank)
        })
    }

    fn draw_lanes(&self, canvas: &Canvas<'_>) -> Drawn {
        let (end, ranks) = (self.x(self.rounds.end), self.graph.parts.len());
        for rank in 0..ranks {
            let (y, half) = (self.y(rank), self.lane / 2);
            if rank % 2 == 0 {
                canvas.rectangle([(LEFT - 8, y - half), (end + 16, y + half)], BAND)?;
            }
        }
        let step = self.rounds.end.div_ceil(32).max(1);
        let bottom = HEAD + ranks as i32 * self.lane;
        for round in (0..=self.rounds.end).step_by(step) {
            let x = self.x(round);
            canvas.line(&[(x, HEAD), (x, bottom + 5)], FAINT, 1)?;
            canvas.centred(&round.to_string(), (x, bottom + 16), 13, INK)?;
        }
        for rank in 0..ranks {
            let y = self.y(rank);
            canvas.line(&[(LEFT, y), (end, y)], GREY, 1)?;
            canvas.before(&format!("rank {rank}"), (LEFT - 16, y), 14, INK)?;
        }
        canvas.behind("rounds", (LEFT, bottom + 36), 13, INK)
    }

    fn draw_steps(&self, canvas: &Canvas<'_>, which: Kind) -> Drawn {
        for node in &self.graph.nodes {
            let Some((kind, from, to, _)) = action(self.graph, node.event) else { continue };
            let Event::Step(rank, _) = node.event else { continue };
            if kind != which {
                continue;
            }
            let (begin, ink) = (self.rounds.begin[&node.event], colour(kind));
            match kind {
                Kind::Join => {
                    for whose in self.signalled(node.event) {
                        let (from, to) = ((self.x(begin), self.y(rank)), (self.x(begin + 1), self.y(whose)));
                        canvas.dashes(from, to, ink, 1)?;
                        canvas.head(from, to, ink)?;
                    }
                }
                Kind::Copy | Kind::Reduce => {
                    let (from, to) = ((self.x(begin), self.y(from)), (self.x(begin + 1), self.y(to)));
                    canvas.line(&[from, to], ink, 2)?;
                    canvas.head(from, to, ink)?;
                }
                Kind::Local | Kind::Sum => {
                    let (x, y, half) = (self.x(begin), self.y(from), (self.lane / 6).min(7));
                    canvas.rectangle([(x + 3, y - half), (self.x(begin + 1) - 3, y + half)], ink)?;
                }
            }
        }
        Ok(())
    }

    fn draw_ends(&self, canvas: &Canvas<'_>) -> Drawn {
        let half = (self.lane / 3).min(11);
        for node in &self.graph.nodes {
            let (at, y) = match node.event {
                Event::End(rank) => (self.x(self.rounds.begin[&node.event]), self.y(rank)),
                _ => continue,
            };
            canvas.line(&[(at, y - half), (at, y + half)], INK, 3)?;
        }
        Ok(())
    }

    /// Shows sizes beside arrows if they differ or are few.
    fn draw_labels(&self, canvas: &Canvas<'_>) -> Drawn {
        let count = self.transfers().count();
        if count > LABELS_MAX || self.bytes().len() == 1 && count > LABELS_MAX / 3 {
            return Ok(());
        }
        let mut taken: Vec<Point> = Vec::new();
        for (from, to, bytes) in self.transfers() {
            let words = size(bytes);
            let half = (words.chars().count() as i32 * 6 + 6) / 2;
            // Near the sender, where arrows that cross are apart, at a position not yet taken.
            let at = [26, 36, 18, 48, 62]
                .map(|part| (from.0 + (to.0 - from.0) * part / 100, from.1 + (to.1 - from.1) * part / 100));
            let is_free = |at: &&Point| {
                taken.iter().all(|other| (other.0 - at.0).abs() > 2 * half || (other.1 - at.1).abs() > 15)
            };
            let at = *at.iter().find(is_free).unwrap_or(&at[0]);
            taken.push(at);
            let ink = RGBColor(20, 60, 110);
            canvas.rectangle([(at.0 - half, at.1 - 7), (at.0 + half, at.1 + 7)], WHITE)?;
            canvas.centred(&words, at, 12, ink)?;
        }
        Ok(())
    }
}
