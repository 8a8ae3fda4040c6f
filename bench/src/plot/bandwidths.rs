//! Bandwidth over the size of blocks, in two panels beside each other. A case that only we have: hot and cold, reused
//! and fresh buffers with the copy limit of each. One that other libraries have, too: each of them, in buffers as
//! other benchmarks have them (hot, reused) and as programs have them (cold, fresh).

use super::header::{self, Mark};
use super::palette::{self, LIMIT, ORDER, OURS, OURS_TOO};
use super::{Area, Drawn, text};
use crate::case::{Case, Kind};
use crate::cases::buffer_state::State;
use crate::result::figure::Key;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::sizes;
use plotters::prelude::*;

/// The two panels of a case.
pub(super) struct Blocks {
    panels: [Panel; 2],
}

/// Curves over size.
struct Panel {
    caption: String,
    curves: Vec<Curve>,
}

/// Points of log2 bytes and GB/s, in the order of size, and what they mean.
struct Curve {
    mark: Mark,
    name: &'static str,
    points: Vec<(f64, f64)>,
}

/// Hot or cold, in one panel each.
const TEMPERATURES: [(bool, &str); 2] = [(false, "hot"), (true, "cold, through 128 MiB")];

impl Blocks {
    /// Those of each case among `rows`.
    pub(super) fn of(rows: &[Row]) -> Vec<Blocks> {
        let is_there = |case: &&Case| rows.iter().any(|row| row.case == **case);
        let cases = Case::all().iter().filter(|case| case.kind() == Kind::Blocks).filter(is_there);
        cases.map(|&case| Blocks { panels: panels(case, rows) }).collect()
    }

    /// Draws both panels, on the same scale.
    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let width = area.dim_in_pixel().0;
        let (left, right) = area.split_horizontally(width / 2);
        let points = || self.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
        let least = points().map(|point| point.0).fold(f64::MAX, f64::min) - 0.5;
        let most = points().map(|point| point.0).fold(0.0, f64::max) + 0.5;
        let top = points().map(|point| point.1).fold(0.0, f64::max) * 1.1;
        for (panel, area) in self.panels.iter().zip([left, right]) {
            panel.draw(&area, (least, most), top)?;
        }
        Ok(())
    }
}

fn panels(case: Case, rows: &[Row]) -> [Panel; 2] {
    if case.has_peers() {
        [State { cold: false, fresh: false }, State { cold: true, fresh: true }]
            .map(|state| beside_others(case, state, rows))
    } else {
        TEMPERATURES.map(|(cold, name)| alone(case, cold, name, rows))
    }
}

/// Who copies in the limit of a case: one processor, or both.
fn limit_of(case: Case) -> &'static str {
    if case == Case::SharedCopy { "pair" } else { "memcpy" }
}

/// Ours and the limit, in reused and in fresh buffers.
fn alone(case: Case, cold: bool, name: &str, rows: &[Row]) -> Panel {
    let mut curves = Vec::new();
    for (fresh, color, ours) in [(true, OURS_TOO, "fresh"), (false, OURS, "reused")] {
        let state = State { cold, fresh };
        let limit = Curve::of_limit(limit_of(case), state, rows, color);
        curves.push(Curve { name: if fresh { "memcpy, fresh" } else { limit.name }, ..limit });
        curves.push(Curve::of(case, state, Library::Tasuki, rows, color, ours));
    }
    Panel { caption: format!("{case}, {name}"), curves }
}

/// All libraries and the limit.
fn beside_others(case: Case, state: State, rows: &[Row]) -> Panel {
    let buffers = state.buffers();
    let caption = format!("{case}, {}, {buffers} buffers", state.temperature());
    let curve = |library| match library {
        Library::Limit => Curve::of_limit(limit_of(case), state, rows, LIMIT),
        _ => Curve::of(case, state, library, rows, palette::color(library), palette::name(library)),
    };
    let curves = ORDER.into_iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
    Panel { caption, curves }
}

impl Curve {
    fn of(
        case: Case,
        state: State,
        library: Library,
        rows: &[Row],
        color: RGBColor,
        name: &'static str,
    ) -> Curve {
        let variant = state.to_string();
        let is_of_it = |row: &Row| (row.case, row.library, &row.variant) == (case, library, &variant);
        Curve { mark: Mark::Line(color), name, points: points(rows, is_of_it) }
    }

    fn of_limit(name: &'static str, state: State, rows: &[Row], color: RGBColor) -> Curve {
        let is_of_it = |row: &Row| row.key() == Key::copy_limit(name, state, row.bytes);
        Curve { mark: Mark::Dashed(color), name, points: points(rows, is_of_it) }
    }
}

fn points(rows: &[Row], is_of_it: impl Fn(&Row) -> bool) -> Vec<(f64, f64)> {
    let rows = rows.iter().filter(|row| is_of_it(row));
    let mut points: Vec<(f64, f64)> = rows.map(|row| (log2(row.bytes), row.median / 1e9)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

impl Panel {
    fn draw(&self, area: &Area<'_>, (least, most): (f64, f64), top: f64) -> Drawn {
        let (head, body) = area.split_vertically(header::HEIGHT);
        let marks: Vec<_> = self.curves.iter().rev().map(|curve| (curve.mark, curve.name)).collect();
        header::draw(&head, &self.caption, &marks)?;
        let mut chart = ChartBuilder::on(&body)
            .margin_left(16)
            .margin_right(20)
            .x_label_area_size(52)
            .y_label_area_size(56)
            .build_cartesian_2d(least..most, 0.0..top)?;
        let mut mesh = chart.configure_mesh();
        // No more labels than have room.
        mesh.x_labels(((most - least) as usize + 1).min(7))
            .x_label_formatter(&size_label)
            .x_desc("size of a block");
        mesh.y_labels(6)
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .y_desc("GB/s")
            .light_line_style(WHITE);
        mesh.label_style(text(12)).axis_desc_style(text(14)).draw()?;
        for Curve { mark, points, .. } in &self.curves {
            match *mark {
                Mark::Dashed(color) => {
                    let line = DashedLineSeries::new(points.clone(), 6, 4, color.stroke_width(2));
                    chart.draw_series(line)?;
                    // A line of one point is none.
                    chart.draw_series(points.iter().map(|&point| Circle::new(point, 2, color)))?;
                }
                Mark::Line(color) | Mark::Filled(color) | Mark::Dot(color) => {
                    chart.draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?;
                    chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, color.filled())))?;
                }
            }
        }
        Ok(())
    }
}

fn log2(bytes: u64) -> f64 {
    (bytes as f64).log2()
}

/// A power of two as a size; nothing between.
fn size_label(log2: &f64) -> String {
    if log2.fract() == 0.0 { sizes::show(1 << *log2 as u64) } else { String::new() }
}
