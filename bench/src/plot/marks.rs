//! Times of all libraries side by side, on a logarithmic scale: a column for each figure, a mark for each library, and
//! a dash for the limit.

use super::{Area, Drawn, INK, ORDER, Panel, head, text};
use crate::case::Played;
use crate::result::library::Library;
use crate::result::metric::Metric;
use crate::result::row::Row;
use crate::result::target::With;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// With fewer columns than this, each column would be too wide.
const COLUMNS_MIN: f64 = 4.0;
const RADIUS: i32 = 5;

/// A figure of Tasuki and those of other libraries, with its limit and its name in two lines.
struct Column<'r> {
    rows: Vec<&'r Row>,
    limit: Option<f64>,
    name: [String; 2],
}

/// Returns the panel of these rows, if there are any.
pub(super) fn panel<'r>(
    rows: &'r [Row],
    caption: &'static str,
    is_of_it: fn(&Row) -> bool,
) -> Option<Panel<'r>> {
    let ours = rows.iter().filter(|row| row.library == Library::Tasuki && row.is_shown() && is_of_it(row));
    let columns: Vec<Column<'r>> = ours.map(|ours| Column::new(ours, rows)).collect();
    (!columns.is_empty()).then(|| Box::new(move |area: &Area<'_>| draw(&columns, caption, area)) as Panel<'r>)
}

impl<'r> Column<'r> {
    fn new(ours: &Row, rows: &'r [Row]) -> Column<'r> {
        let is_alike = |row: &&Row| row.key().is_alike(&ours.key()) && row.ranks == ours.ranks;
        let name = match ours.case.played {
            Played::Collective => [ours.ranks.to_string(), ours.case.name.to_string()],
            _ if ours.metric.is_rate() => [format!("1 / {}", ours.case.name), String::new()],
            _ if ours.variant.is_empty() => [ours.case.name.to_string(), String::new()],
            _ => [ours.variant.clone(), ours.case.name.to_string()],
        };
        let limit = ours.comparison(With::Limit).and_then(|limit| limit.median);
        Column { rows: rows.iter().filter(is_alike).collect(), limit, name }
    }
}

fn draw(columns: &[Column<'_>], caption: &str, area: &Area<'_>) -> Drawn {
    let times =
        || columns.iter().flat_map(|column| column.rows.iter().map(|row| ns(row)).chain(column.limit));
    let (least, most) = (times().fold(f64::MAX, f64::min) / 1.5, times().fold(0.0, f64::max) * 1.5);
    let has = |library: Library| match library {
        Library::Limit => columns.iter().any(|column| column.limit.is_some()),
        _ => columns.iter().flat_map(|column| &column.rows).any(|row| row.library == library),
    };
    let legend: Vec<_> =
        ORDER.iter().rev().filter(|one| has(one.0)).map(|&(_, name, color)| (color, name)).collect();
    let body = head(area, caption, &legend)?;
    let width = (columns.len() as f64).max(COLUMNS_MIN);
    let mut chart = ChartBuilder::on(&body)
        .margin_left(16)
        .margin_right(20)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..width, least.log10()..most.log10())?;
    chart.configure_mesh().disable_mesh().x_labels(0).y_labels(0).draw()?;
    for tick in ticks(least, most) {
        let (height, left) = (tick.log10(), text(13).pos(Pos::new(HPos::Right, VPos::Center)));
        let line = PathElement::new([(0.0, height), (width, height)], INK.mix(0.12).stroke_width(1));
        chart.draw_series([line])?;
        let label = Text::new(Metric::TimeNs.show(tick), (-8, 0), left);
        chart.draw_series([EmptyElement::at((0.0, height)) + label])?;
    }
    for (place, column) in columns.iter().enumerate() {
        let middle = place as f64 + 0.5;
        if let Some(limit) = column.limit {
            let ends = [-0.25, 0.25].map(|side| (middle + side, limit.log10()));
            chart.draw_series([PathElement::new(ends, ORDER[0].2.stroke_width(3))])?;
        }
        for (library, _, color) in ORDER {
            let marks = column.rows.iter().filter(|row| row.library == library);
            chart.draw_series(
                marks.map(|row| Circle::new((middle, ns(row).log10()), RADIUS, color.filled())),
            )?;
        }
        // A second line that is the same for several columns is written once, below all of them.
        let [first, second] = &column.name;
        let alike = columns[place..].iter().take_while(|column| column.name[1] == *second).count();
        let begins = place == 0 || columns[place - 1].name[1] != *second;
        let shift = (alike as f64 - 1.0) / 2.0;
        for (name, at, line) in [(first, middle, 0), (second, middle + shift, 1)] {
            if line == 0 || begins {
                let below = text(12).pos(Pos::new(HPos::Center, VPos::Top));
                let label = Text::new(name.clone(), (0, 8 + 18 * line), below);
                chart.draw_series([EmptyElement::at((at, least.log10())) + label])?;
            }
        }
    }
    Ok(())
}

/// Returns the time of one operation; a rate is converted.
fn ns(row: &Row) -> f64 {
    if row.metric.is_rate() { 1e9 / row.median } else { row.median }
}

/// Returns round times between the least and the most.
fn ticks(least: f64, most: f64) -> impl Iterator<Item = f64> {
    let steps: &[f64] = if most / least > 1e3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let all = decades.flat_map(move |decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
    all.filter(move |tick| (least..=most).contains(tick))
}
