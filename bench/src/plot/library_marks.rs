//! Times of all libraries side by side: a column for each figure, a mark for each library, on a logarithmic scale.

use super::header::{self, Mark};
use super::palette::{self, INK, LIMIT, ORDER};
use super::{Area, Drawn, text};
use crate::case::{Case, Kind};
use crate::result::library::Library;
use crate::result::row::{Metric, Row};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Columns there are at least, so that one alone is no desert.
const COLUMNS_MIN: f64 = 4.0;
/// Width of a limit's mark, in columns.
const DASH: f64 = 0.5;
/// Bytes of what collective calls move that are drawn.
const WORD: u64 = 8;
/// Pixels of a mark.
const RADIUS: i32 = 5;

/// One panel.
pub(super) struct Marks<'r> {
    caption: &'static str,
    columns: Vec<Column<'r>>,
}

/// One figure of all libraries.
struct Column<'r> {
    rows: Vec<&'r Row>,
    limit: Option<f64>,
    /// What stands below it, in two lines.
    name: [String; 2],
}

impl<'r> Marks<'r> {
    /// Messages of a word, where other libraries were measured.
    pub(super) fn of_messages(rows: &'r [Row]) -> Option<Marks<'r>> {
        let caption = "8 bytes: one way of a message, posting a receive, a message of many (less is better)";
        let is_message = |row: &Row| matches!(row.case, Case::Message | Case::Posted | Case::Rate);
        Marks::new(rows, caption, is_message)
            .filter(|_| rows.iter().any(|row| row.library.is_peer() && is_message(row)))
    }

    /// Collective calls.
    pub(super) fn of_collectives(rows: &'r [Row]) -> Option<Marks<'r>> {
        let caption =
            "collective calls, 8 bytes, on two processors, by ranks: time of a call (less is better)";
        Marks::new(rows, caption, |row| {
            let has_variants = matches!(row.case, Case::Persistent | Case::SingleDriver);
            row.case.kind() == Kind::Collective && !has_variants && row.bytes == WORD
        })
    }

    fn new(rows: &'r [Row], caption: &'static str, is_of_it: fn(&Row) -> bool) -> Option<Marks<'r>> {
        let ours = rows.iter().filter(|row| row.library == Library::Tasuki && is_of_it(row));
        let columns: Vec<Column<'r>> = ours.map(|ours| Column::new(ours, rows)).collect();
        (!columns.is_empty()).then_some(Marks { caption, columns })
    }

    /// Draws the panel.
    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let (head, body) = area.split_vertically(header::HEIGHT);
        header::draw(&head, self.caption, &self.legend())?;
        let (least, most) = self.range();
        let columns = (self.columns.len() as f64).max(COLUMNS_MIN);
        let mut chart = ChartBuilder::on(&body)
            .margin_left(16)
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..columns, least.log10()..most.log10())?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_mesh().x_labels(0).y_labels(0).draw()?;
        for tick in ticks(least, most) {
            let (height, left) = (tick.log10(), text(13).pos(Pos::new(HPos::Right, VPos::Center)));
            let line = PathElement::new([(0.0, height), (columns, height)], INK.mix(0.12).stroke_width(1));
            chart.draw_series([line])?;
            chart.draw_series([
                EmptyElement::at((0.0, height)) + Text::new(time_label(tick), (-8, 0), left)
            ])?;
        }
        for (place, column) in self.columns.iter().enumerate() {
            let middle = place as f64 + 0.5;
            if let Some(limit) = column.limit {
                let ends = [-DASH / 2.0, DASH / 2.0].map(|side| (middle + side, limit.log10()));
                chart.draw_series([PathElement::new(ends, LIMIT.stroke_width(3))])?;
            }
            for row in column.in_order() {
                let mark =
                    Circle::new((middle, ns(row).log10()), RADIUS, palette::color(row.library).filled());
                chart.draw_series([mark])?;
            }
            chart.draw_series(self.names(place).map(|(name, shift, line)| {
                let below = text(13).pos(Pos::new(HPos::Center, VPos::Top));
                EmptyElement::at((middle + shift, least.log10())) + Text::new(name, (0, 8 + 18 * line), below)
            }))?;
        }
        Ok(())
    }

    /// What stands below a column, how far beside its middle, in which line. The second line is written once for all
    /// columns that have the same, in the middle of them.
    fn names(&self, place: usize) -> impl Iterator<Item = (String, f64, i32)> {
        let [first, second] = self.columns[place].name.clone();
        let alike = self.columns[place..].iter().take_while(|column| column.name[1] == second).count();
        let begins = place == 0 || self.columns[place - 1].name[1] != second;
        let shift = (alike as f64 - 1.0) / 2.0;
        [Some((first, 0.0, 0)), begins.then_some((second, shift, 1))].into_iter().flatten()
    }

    /// Those who are in the panel.
    fn legend(&self) -> Vec<(Mark, &'static str)> {
        let has =
            |library| self.columns.iter().flat_map(|column| &column.rows).any(|row| row.library == library);
        let libraries = ORDER.into_iter().rev().filter(|&library| has(library));
        let mut legend: Vec<(Mark, &str)> =
            libraries.map(|library| (Mark::Dot(palette::color(library)), palette::name(library))).collect();
        if self.columns.iter().any(|column| column.limit.is_some()) {
            legend.push((Mark::Line(LIMIT), "limit: hand-over"));
        }
        legend
    }

    /// The ends of the axis: a little beyond what is drawn.
    fn range(&self) -> (f64, f64) {
        let times = || {
            let of =
                |column: &Column<'_>| column.rows.iter().map(|row| ns(row)).chain(column.limit).collect();
            self.columns.iter().flat_map(of as fn(&Column<'_>) -> Vec<f64>)
        };
        (times().fold(f64::MAX, f64::min) / 1.5, times().fold(0.0, f64::max) * 1.5)
    }
}

impl<'r> Column<'r> {
    fn new(ours: &'r Row, rows: &'r [Row]) -> Column<'r> {
        let is_like = |row: &&Row| {
            (row.case, &row.variant, row.bytes, row.ranks)
                == (ours.case, &ours.variant, ours.bytes, ours.ranks)
        };
        let name = match ours.case {
            Case::Rate => ["rate".to_string(), "1 / rate".to_string()],
            Case::Posted if !ours.variant.is_empty() => [ours.variant.clone(), "600 posted".to_string()],
            Case::Post | Case::Chain => [ours.variant.replace('_', " "), ours.case.to_string()],
            Case::Posted => ["posted".to_string(), "600 posted".to_string()],
            _ if ours.case.kind() == Kind::Collective => [ours.ranks.to_string(), ours.case.to_string()],
            _ => [ours.case.to_string(), String::new()],
        };
        Column { rows: rows.iter().filter(is_like).collect(), limit: ours.limit(), name }
    }

    /// As they lie above each other.
    fn in_order(&self) -> impl Iterator<Item = &'r Row> {
        ORDER
            .into_iter()
            .flat_map(|library| self.rows.iter().copied().filter(move |row| row.library == library))
    }
}

/// A time, or the time that a rate leaves for each.
fn ns(row: &Row) -> f64 {
    if row.metric == Metric::RatePerS { 1e9 / row.median } else { row.median }
}

/// Where lines are drawn across: at 1, 2 and 5 of each power of ten, only at 1 where there would be many.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let steps: &[f64] = if most / least > 1e3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
    all.filter(|tick| (least..=most).contains(tick)).collect()
}

fn time_label(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{:.0} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{:.0} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}
