//! Bandwidth over the size of blocks, in two adjacent panels: with the buffers that other benchmarks use (hot, reused),
//! and with the buffers that programs have (cold, fresh).

use super::{Area, Drawn, ORDER, Panel, head, text};
use crate::case::Case;
use crate::cases::State;
use crate::result::key::Key;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::sizes;
use plotters::prelude::*;

const STATES: [State; 2] = [State { cold: false, fresh: false }, State { cold: true, fresh: true }];

/// A library, its name and colour, and its points: logarithm of the size, GB/s.
type Curve = (Library, &'static str, RGBColor, Vec<(f64, f64)>);

/// Returns the panels of a case, if it has figures.
pub(super) fn panel<'r>(rows: &'r [Row], case: &'static Case) -> Option<Panel<'r>> {
    rows.iter().find(|row| row.case == case && row.library == Library::Tasuki)?;
    Some(Box::new(move |area| {
        let halves = area.split_horizontally(area.dim_in_pixel().0 / 2);
        let curves = STATES.map(|state| curves(rows, case, state));
        let points = || curves.iter().flatten().flat_map(|curve| &curve.3);
        let least = points().map(|point| point.0).fold(f64::MAX, f64::min) - 0.5;
        let most = points().map(|point| point.0).fold(0.0, f64::max) + 0.5;
        let top = points().map(|point| point.1).fold(0.0, f64::max) * 1.1;
        for ((state, curves), area) in STATES.into_iter().zip(&curves).zip([halves.0, halves.1]) {
            let caption = format!("{}, {}, {} buffers", case.name, state.temperature(), state.buffers());
            draw(&area, &caption, curves, (least, most), top)?;
        }
        Ok(())
    }))
}

fn curves(rows: &[Row], case: &'static Case, state: State) -> Vec<Curve> {
    let curve = |(library, name, color)| {
        let is_of_it = |row: &&Row| {
            let ours = Key::ours(case, &state.to_string(), row.bytes);
            match library {
                Library::Limit => ours.limited_by() == Some(row.key()),
                _ => row.library == library && row.key().is_alike(&ours),
            }
        };
        let of_it = rows.iter().filter(is_of_it);
        let mut points: Vec<_> = of_it.map(|row| ((row.bytes as f64).log2(), row.median / 1e9)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (library, name, color, points)
    };
    ORDER.into_iter().map(curve).filter(|curve| !curve.3.is_empty()).collect()
}

fn draw(area: &Area<'_>, caption: &str, curves: &[Curve], (least, most): (f64, f64), top: f64) -> Drawn {
    let legend: Vec<_> = curves.iter().rev().map(|(_, name, color, _)| (*color, *name)).collect();
    let body = head(area, caption, &legend)?;
    let mut chart = ChartBuilder::on(&body)
        .margin_left(16)
        .margin_right(20)
        .x_label_area_size(52)
        .y_label_area_size(56)
        .build_cartesian_2d(least..most, 0.0..top)?;
    let size = |log2: &f64| if log2.fract() == 0.0 { sizes::show(1 << *log2 as u64) } else { String::new() };
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(((most - least) as usize + 1).min(7)).x_label_formatter(&size).x_desc("size of a block");
    mesh.y_labels(6).y_label_formatter(&|rate| format!("{rate:.0}")).y_desc("GB/s").light_line_style(WHITE);
    mesh.label_style(text(12)).axis_desc_style(text(14)).draw()?;
    for (library, _, color, points) in curves {
        match library {
            Library::Limit => {
                let line = DashedLineSeries::new(points.clone(), 6, 4, color.stroke_width(2));
                chart.draw_series(line)?;
            }
            _ => drop(chart.draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?),
        }
        // A line with only one point would be invisible, so each point is drawn as a circle.
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, color.filled())))?;
    }
    Ok(())
}
