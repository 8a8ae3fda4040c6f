//! Latencies of a word, each beside the limit that it is held against.

use super::header::{self, Mark};
use super::palette::{INK, LIMIT, OURS};
use super::{Area, Drawn, text};
use crate::case::Kind;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::result::target::With;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of a bar, in places of one case each.
const BAR: f64 = 0.3;
/// Places there are at least, so that one case alone is not a wall.
const PLACES_MIN: f64 = 4.0;

/// The rows of this panel.
pub(super) struct Words<'r> {
    rows: Vec<&'r Row>,
    hand_over: Option<f64>,
}

impl<'r> Words<'r> {
    /// Those among `rows` that are latencies of ours.
    pub(super) fn of(rows: &'r [Row]) -> Option<Words<'r>> {
        let is_word = |row: &&Row| {
            let is_time = !row.metric.is_rate();
            row.library == Library::Tasuki && row.case.kind() == Kind::Words && is_time
        };
        let words: Vec<&Row> = rows.iter().filter(is_word).collect();
        let hand_over = rows.iter().find(|row| row.variant == "hand_over").map(|row| row.median);
        (!words.is_empty()).then_some(Words { rows: words, hand_over })
    }

    /// Draws the panel.
    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let (head, body) = area.split_vertically(header::HEIGHT);
        let marks = [
            (Mark::Filled(OURS), "Tasuki"),
            (Mark::Filled(LIMIT), "limit: the same by a bare loop"),
            (Mark::Dashed(INK), "hand-over"),
        ];
        header::draw(&head, "8 bytes: time of one way, or of one operation (less is better)", &marks)?;
        let heights = self.rows.iter().flat_map(|row| [row.median, row.limit().unwrap_or(0.0)]);
        let top = heights.fold(0.0, f64::max) * 1.15;
        let places = (self.rows.len() as f64).max(PLACES_MIN);
        let mut chart = ChartBuilder::on(&body)
            .margin_left(16)
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..places, 0.0..top)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .x_labels(0)
            .y_labels(6)
            .y_label_formatter(&|ns| format!("{ns:.0}"))
            .y_desc("ns")
            .light_line_style(WHITE);
        mesh.y_label_style(text(13)).axis_desc_style(text(14)).draw()?;
        for (place, row) in self.rows.iter().enumerate() {
            let middle = place as f64 + 0.5;
            let bars = [(middle - BAR, Some(row.median), OURS), (middle, row.limit(), LIMIT)];
            for (left, height, color) in bars {
                let Some(height) = height else { continue };
                let (right, center) = (left + BAR - 0.01, left + BAR / 2.0);
                chart.draw_series([Rectangle::new([(left, 0.0), (right, height)], color.filled())])?;
                let above = text(13).pos(Pos::new(HPos::Center, VPos::Bottom));
                let label = Text::new(format!("{height:.0}"), (0, -3), above);
                chart.draw_series([EmptyElement::at((center, height)) + label])?;
            }
            for (line, name) in names(row).into_iter().enumerate() {
                let below = text(14).pos(Pos::new(HPos::Center, VPos::Top));
                let label = Text::new(name, (0, 6 + 18 * line as i32), below);
                chart.draw_series([EmptyElement::at((middle, 0.0)) + label])?;
            }
        }
        if let Some(height) = self.hand_over {
            let ends = [(0.0, height), (places, height)];
            chart.draw_series(DashedLineSeries::new(ends, 6, 4, INK.stroke_width(1)))?;
        }
        Ok(())
    }
}

/// What stands below a case, in two lines.
fn names(row: &Row) -> [String; 2] {
    let name = if row.variant.is_empty() { row.case.to_string() } else { row.variant.clone() };
    let ratio = match (row.ratio_to_limit, row.ratio(With::Message)) {
        (Some(ratio), _) => format!("{ratio:.2} x limit"),
        (None, Some(ratio)) => format!("{ratio:.2} x message"),
        (None, None) if !row.steady => "unsteady".to_string(),
        (None, None) => String::new(),
    };
    [name, ratio]
}
