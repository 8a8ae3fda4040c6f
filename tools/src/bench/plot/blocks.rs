//! Bandwidth over the size of blocks, hot or cold; reused and fresh buffers with the copy limit of each.

use super::super::case::Case;
use super::super::figure::Key;
use super::super::library::Library;
use super::super::row::Row;
use super::super::sizes;
use super::super::state::State;
use super::header::{self, Mark};
use super::{Area, Drawn, OURS, OURS_TOO, text};
use plotters::prelude::*;

/// The rows of both panels.
pub(super) struct Blocks<'r> {
    rows: Vec<&'r Row>,
}

impl<'r> Blocks<'r> {
    /// Bandwidths of ours and their limits among `rows`.
    pub(super) fn of(rows: &'r [Row]) -> Option<Blocks<'r>> {
        let ours = |row: &&Row| row.case == Case::BandwidthPut;
        let limits = |row: &&Row| row.library == Library::Limit && row.variant.starts_with("memcpy");
        let any = rows.iter().any(|row| ours(&row));
        any.then(|| Blocks { rows: rows.iter().filter(|row| ours(row) || limits(row)).collect() })
    }

    /// Draws one of the two panels. Both have the same scale.
    pub(super) fn draw(&self, area: &Area<'_>, cold: bool) -> Drawn {
        let (head, body) = area.split_vertically(header::HEIGHT);
        let caption = if cold { "cold: rotating through 128 MiB" } else { "hot: one pair of buffers" };
        let marks = [
            (Mark::Line(OURS), "reused"),
            (Mark::Line(OURS_TOO), "fresh"),
            (Mark::Dashed(OURS), "memcpy"),
            (Mark::Dashed(OURS_TOO), "memcpy, fresh"),
        ];
        header::draw(&head, &format!("bandwidth_put, {caption}"), &marks)?;
        let (least, most) = self.range();
        let top = self.rows.iter().map(|row| row.median / 1e9).fold(0.0, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(&body)
            .margin_left(16)
            .margin_right(20)
            .x_label_area_size(52)
            .y_label_area_size(56)
            .build_cartesian_2d(least..most, 0.0..top)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(self.ticks()).x_label_formatter(&size_label).x_desc("size of a block");
        mesh.y_labels(6)
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .y_desc("GB/s")
            .light_line_style(WHITE);
        mesh.label_style(text(12)).axis_desc_style(text(14)).draw()?;
        for (fresh, color) in [(false, OURS), (true, OURS_TOO)] {
            let state = State { cold, fresh };
            let variant = state.to_string();
            let limit = self.curve(|row| row.key() == Key::copy_limit("memcpy", state, row.bytes));
            let ours = self.curve(|row| row.case == Case::BandwidthPut && row.variant == variant);
            chart.draw_series(DashedLineSeries::new(limit, 6, 4, color.stroke_width(2)))?;
            chart.draw_series(LineSeries::new(ours.clone(), color.stroke_width(2)))?;
            chart.draw_series(ours.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
        }
        Ok(())
    }

    /// Points of log2 bytes and GB/s, in the order of size.
    fn curve(&self, is_of_it: impl Fn(&Row) -> bool) -> Vec<(f64, f64)> {
        let rows = self.rows.iter().filter(|row| is_of_it(row));
        let mut points: Vec<(f64, f64)> = rows.map(|row| (log2(row.bytes), row.median / 1e9)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    /// The ends of the axis: half a doubling beyond the sizes.
    fn range(&self) -> (f64, f64) {
        let sizes = || self.rows.iter().map(|row| log2(row.bytes));
        (sizes().fold(f64::MAX, f64::min) - 0.5, sizes().fold(0.0, f64::max) + 0.5)
    }

    /// No more labels than have room.
    fn ticks(&self) -> usize {
        let (least, most) = self.range();
        ((most - least) as usize + 1).min(7)
    }
}

fn log2(bytes: u64) -> f64 {
    (bytes as f64).log2()
}

/// A power of two as a size; nothing between.
fn size_label(log2: &f64) -> String {
    if log2.fract() == 0.0 { sizes::show(1 << *log2 as u64) } else { String::new() }
}
