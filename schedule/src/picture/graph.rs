//! Draws the dependency graph: one column for each rank, steps from top to bottom.

use super::canvas::{BAND, Canvas, Drawn, GREY, HEAD, INK, MARGIN, Point, Sign, colour, head_width, page};
use super::{Kind, action, size};
use crate::ScheduleError;
use crate::{Event, Graph};
use plotters::style::{RGBColor, WHITE};
use std::collections::{BTreeMap, BTreeSet};

/// The most columns of steps for which steps are labelled.
const WORDS_MAX: usize = 18;
/// The colour of arrows from a rank's own steps to the end of its start: there are many, and they are expected.
const PALE: RGBColor = RGBColor(190, 196, 204);
/// Pixels between ranks, and height of their names.
const GAP: i32 = 14;
const NAMES: i32 = 30;

/// The sizes of steps in pixels.
#[derive(Clone, Copy)]
struct NodeSizes {
    /// Width of a column of steps, and distance of levels.
    lane: i32,
    level: i32,
    /// Half the width and height of a step that moves data.
    half: Point,
    has_words: bool,
}

const LARGE: NodeSizes = NodeSizes { lane: 96, level: 64, half: (42, 17), has_words: true };
const SMALL: NodeSizes = NodeSizes { lane: 34, level: 46, half: (12, 10), has_words: false };

struct GraphPicture<'g> {
    graph: &'g Graph,
    sizes: NodeSizes,
    /// The position of each event.
    places: BTreeMap<Event, Point>,
    /// The left and right edge of the column of each rank.
    columns: Vec<(i32, i32)>,
    bottom: i32,
}

/// Draws the graph as SVG.
pub(super) fn draw(graph: &Graph, title: &str) -> Result<String, ScheduleError> {
    let picture = GraphPicture::new(graph);
    let count = graph.nodes.len() - 2 * graph.parts.len();
    let inside = if picture.sizes.has_words { "" } else { "; each step shows the destination rank" };
    let remark = format!(
        "{count} steps; arrows lead from a step to those that wait for it; implied ones are left out{inside}"
    );
    let legend = picture.legend();
    let right = picture.columns.last().map_or(0, |column| column.1);
    let width = (right + MARGIN).max(head_width(title, &remark, &legend));
    page((width, picture.bottom + MARGIN), |canvas| {
        canvas.head_of_page(title, &remark, &legend)?;
        picture.draw_columns(canvas)?;
        picture.draw_edges(canvas)?;
        graph.nodes.iter().try_for_each(|node| picture.draw_node(canvas, node.event))
    })
}

impl<'g> GraphPicture<'g> {
    fn new(graph: &'g Graph) -> GraphPicture<'g> {
        let (levels, depth) = levels(graph);
        // Steps of one rank and level stand side by side, in the order of their queues.
        let mut rows: BTreeMap<(usize, usize), Vec<Event>> = BTreeMap::new();
        for (&event, &level) in &levels {
            rows.entry((rank_of(event), level)).or_default().push(event);
        }
        let queue = |event: &Event| match *event {
            Event::Step(rank, step) => Some(graph.parts[rank].steps()[step].queue),
            Event::Begin(_) | Event::End(_) => None,
        };
        rows.values_mut().for_each(|row| row.sort_by_key(queue));
        let mut widths = vec![1; graph.parts.len()];
        for (&(rank, _), row) in &rows {
            widths[rank] = row.len().max(widths[rank]);
        }
        let sizes = if widths.iter().sum::<usize>() <= WORDS_MAX { LARGE } else { SMALL };
        let mut x = MARGIN;
        let mut columns = Vec::new();
        for width in widths {
            columns.push((x, x + width as i32 * sizes.lane));
            x += width as i32 * sizes.lane + GAP;
        }
        let y = |level: usize| HEAD + NAMES + sizes.level / 2 + level as i32 * sizes.level;
        let mut places = BTreeMap::new();
        for (&(rank, level), row) in &rows {
            let left = (columns[rank].0 + columns[rank].1 - row.len() as i32 * sizes.lane) / 2;
            for (number, &event) in row.iter().enumerate() {
                places.insert(event, (left + number as i32 * sizes.lane + sizes.lane / 2, y(level)));
            }
        }
        GraphPicture { graph, sizes, places, columns, bottom: y(depth) + sizes.level / 2 }
    }

    fn legend(&self) -> Vec<(Sign, &'static str)> {
        let kinds: BTreeSet<Kind> = self
            .graph
            .nodes
            .iter()
            .filter_map(|node| action(self.graph, node.event))
            .map(|it| it.0)
            .collect();
        let sign = |kind| match kind {
            Kind::Copy => (Sign::Square(colour(kind)), "copies to another rank"),
            Kind::Reduce => (Sign::Square(colour(kind)), "combines at another rank"),
            Kind::Local => (Sign::Square(colour(kind)), "copies within a rank"),
            Kind::Sum => (Sign::Square(colour(kind)), "combines within a rank"),
            Kind::Join => (Sign::Ring, "joins or signals"),
        };
        let others = [(Sign::Dashes(GREY), "next in its queue"), (Sign::Beam(INK), "start, and its end")];
        kinds.into_iter().map(sign).chain(others).collect()
    }

    fn draw_columns(&self, canvas: &Canvas<'_>) -> Drawn {
        for (rank, &(left, right)) in self.columns.iter().enumerate() {
            canvas.rectangle([(left, HEAD), (right, self.bottom)], BAND)?;
            let is_narrow = right - left < 50;
            let name = if is_narrow { rank.to_string() } else { format!("rank {rank}") };
            canvas.centred(&name, ((left + right) / 2, HEAD + 16), 14, INK)?;
        }
        Ok(())
    }

    fn draw_edges(&self, canvas: &Canvas<'_>) -> Drawn {
        for (number, causes) in direct_causes(self.graph).into_iter().enumerate() {
            let node = &self.graph.nodes[number];
            let to = self.above(node.event);
            if let Some(behind) = node.behind.filter(|_| matches!(node.event, Event::Step(..))) {
                let from = self.below(behind);
                canvas.dashes(from, to, GREY, 1)?;
                canvas.head(from, to, GREY)?;
            }
            for cause in causes {
                let kind = action(self.graph, cause).map_or(Kind::Join, |it| it.0);
                let is_end = matches!(node.event, Event::End(_)) && rank_of(cause) == rank_of(node.event);
                let ink = if is_end { PALE } else { colour(kind) };
                let points = curve(self.below(cause), to, self.sizes);
                canvas.curve(&points, ink, 1)?;
                canvas.head_from(points[points.len() - 2], to, ink)?;
            }
        }
        Ok(())
    }

    /// Half of the height of an event.
    fn half(&self, event: Event) -> i32 {
        match action(self.graph, event) {
            None => 3,
            Some((Kind::Join, ..)) => 6,
            Some(_) => self.sizes.half.1,
        }
    }

    fn below(&self, event: Event) -> Point {
        let (x, y) = self.places[&event];
        (x, y + self.half(event))
    }

    fn above(&self, event: Event) -> Point {
        let (x, y) = self.places[&event];
        (x, y - self.half(event))
    }

    fn draw_node(&self, canvas: &Canvas<'_>, event: Event) -> Drawn {
        let (x, y) = self.places[&event];
        let (width, height) = self.sizes.half;
        let Some((kind, from, to, bytes)) = action(self.graph, event) else {
            return canvas.line(&[(x - width, y), (x + width, y)], INK, 4);
        };
        if kind == Kind::Join {
            return canvas.circle((x, y), 6, WHITE, INK);
        }
        let corners = [(x - width, y - height), (x + width, y + height)];
        canvas.rectangle(corners, colour(kind))?;
        let own = rank_of(event);
        if !self.sizes.has_words {
            return canvas.centred(&to.to_string(), (x, y), 12, WHITE);
        }
        let words = match (kind, from == own) {
            (Kind::Local, true) => "copy".into(),
            (Kind::Sum, true) => "combine".into(),
            (Kind::Local | Kind::Sum, false) => format!("at {to}"),
            (_, true) => format!("to {to}"),
            (_, false) => format!("{from} to {to}"),
        };
        canvas.centred(&words, (x, y - 8), 13, WHITE)?;
        canvas.centred(&size(bytes), (x, y + 8), 13, WHITE)
    }
}

fn rank_of(event: Event) -> usize {
    match event {
        Event::Begin(rank) | Event::End(rank) | Event::Step(rank, _) => rank,
    }
}

/// For each node the direct causes: those that no other predecessor implies.
fn direct_causes(graph: &Graph) -> Vec<Vec<Event>> {
    let count = graph.nodes.len();
    let index: BTreeMap<Event, usize> =
        graph.nodes.iter().enumerate().map(|(number, node)| (node.event, number)).collect();
    let mut known: Vec<Vec<bool>> = Vec::with_capacity(count);
    let mut direct_causes = Vec::with_capacity(count);
    for node in &graph.nodes {
        let causes: BTreeSet<usize> = node.waits_for().into_iter().map(|event| index[&event]).collect();
        let before: BTreeSet<usize> =
            causes.iter().copied().chain(node.behind.map(|it| index[&it])).collect();
        let follows = |cause: usize| before.iter().any(|&other| known[other][cause]);
        let kept = causes.iter().filter(|&&cause| !follows(cause));
        direct_causes.push(kept.map(|&cause| graph.nodes[cause].event).collect());
        let mut own = vec![false; count];
        for &other in &before {
            own.iter_mut().zip(&known[other]).for_each(|(own, other)| *own |= other);
        }
        causes.iter().for_each(|&cause| own[cause] = true);
        known.push(own);
    }
    direct_causes
}

/// The level of each event, counted from the top, and the deepest level.
fn levels(graph: &Graph) -> (BTreeMap<Event, usize>, usize) {
    let mut levels: BTreeMap<Event, usize> = BTreeMap::new();
    for node in &graph.nodes {
        let before = node.waits_for().into_iter().chain(node.behind);
        let level = before.map(|before| levels[&before] + 1).max().unwrap_or(0);
        // Steps begin below the level of the starts.
        let is_step = matches!(node.event, Event::Step(..));
        levels.insert(node.event, level.max(usize::from(is_step)));
    }
    // The end of a start stands below all steps of its rank, also those that only concern later starts.
    for rank in 0..graph.parts.len() {
        let own = levels.iter().filter(|(event, _)| matches!(event, Event::Step(whose, _) if *whose == rank));
        let last = own.map(|(_, &level)| level + 1).max().unwrap_or(0);
        levels.entry(Event::End(rank)).and_modify(|level| *level = last.max(*level));
    }
    let depth = levels.values().copied().max().unwrap_or(0);
    (levels, depth)
}

/// A curve that leaves downwards and arrives from above; it bypasses the steps between if both ends are in one column.
fn curve(from: Point, to: Point, sizes: NodeSizes) -> Vec<(f64, f64)> {
    const PIECES: i32 = 32;
    let is_far = from.0 == to.0 && to.1 - from.1 > sizes.level;
    if !is_far && from.0 == to.0 {
        return [from, to].map(|(x, y)| (x.into(), y.into())).to_vec();
    }
    let bulge = if is_far { f64::from(sizes.half.0 + 14) * 4.0 / 3.0 } else { 0.0 };
    let bend = f64::from((to.1 - from.1).abs()).max(30.0) * if is_far { 0.15 } else { 0.4 };
    let corners = [
        (f64::from(from.0), f64::from(from.1)),
        (f64::from(from.0) + bulge, f64::from(from.1) + bend),
        (f64::from(to.0) + bulge, f64::from(to.1) - bend),
        (f64::from(to.0), f64::from(to.1)),
    ];
    let point = |piece: i32| {
        let part = f64::from(piece) / f64::from(PIECES);
        let rest = 1.0 - part;
        let shares = [rest.powi(3), 3.0 * rest.powi(2) * part, 3.0 * rest * part.powi(2), part.powi(3)];
        let sum = |of: fn(&(f64, f64)) -> f64| {
            corners.iter().zip(shares).map(|(at, share)| of(at) * share).sum::<f64>()
        };
        (sum(|at| at.0), sum(|at| at.1))
    };
    (0..=PIECES).map(point).collect()
}
