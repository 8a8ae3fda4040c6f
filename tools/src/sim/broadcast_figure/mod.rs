//! The figure of a study: bandwidth over size for bucket relay and two-phase broadcasts. Formulas
//! are lines, simulations are marks.

mod study;

use crate::sim::units;
use crate::svg_drawing::{Area, Drawn};
use plotters::prelude::*;
use study::{Form, PER_NODE, Points, Reading, SIZES};

/// Sizes are in pixels.
const WIDTH: u32 = 1160;
const HEIGHT: u32 = 620;
const TITLE_HEIGHT: u32 = 60;
const LEGEND_HEIGHT: u32 = 84;
const INK: RGBColor = RGBColor(40, 40, 40);
const GREY: RGBColor = RGBColor(150, 150, 150);
/// Colours for 2, 3 and 4 ranks per node. People who cannot tell red from green can tell them
/// apart.
const COLORS: [RGBColor; 3] = [RGBColor(31, 95, 160), RGBColor(201, 93, 20), RGBColor(0, 140, 105)];
/// The top of the axis, in GB/s.
const TOP: f64 = 25.0;

/// How points are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Line,
    Dashed,
    Dot,
    Cross,
}

/// Points with their style and colour.
struct Curve {
    style: Style,
    color: RGBColor,
    points: Points,
}

/// A panel: what it shows, the legend, and the curves.
struct Panel {
    caption: &'static str,
    legend: &'static [(Style, RGBColor, &'static str)],
    curves: Vec<Curve>,
}

/// Runs the simulations and draws the figure.
pub(super) fn svg() -> anyhow::Result<String> {
    let panels = [bucket()?, two_phase()?];
    let mut svg = String::new();
    let drawn = compose(&SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area(), &panels);
    drawn.map_err(|error| anyhow::anyhow!("the figure cannot be drawn: {error}"))?;
    Ok(svg)
}

fn bucket() -> anyhow::Result<Panel> {
    let mut curves = Vec::new();
    for (per_node, color) in PER_NODE.into_iter().zip(COLORS) {
        curves.push(Curve { style: Style::Line, color, points: study::formula(Reading::Only, per_node)? });
        curves.push(Curve { style: Style::Dot, color, points: study::along_a_row(Form::Bucket, per_node)? });
        curves.push(Curve {
            style: Style::Cross,
            color,
            points: study::in_the_torus(Form::Bucket, per_node)?,
        });
    }
    let legend = &[
        (Style::Line, INK, "formula"),
        (Style::Dot, INK, "one stream over 4 hops, simulated"),
        (Style::Cross, INK, "three trees in 2x2x3, simulated"),
    ];
    Ok(Panel { caption: "Bucket relay", legend, curves })
}

fn two_phase() -> anyhow::Result<Panel> {
    let mut curves = Vec::new();
    let printed = study::formula(Reading::Printed, PER_NODE[0])?;
    curves.push(Curve { style: Style::Dashed, color: GREY, points: printed });
    for (per_node, color) in PER_NODE.into_iter().zip(COLORS) {
        curves.push(Curve { style: Style::Dashed, color, points: study::formula(Reading::Drawn, per_node)? });
        curves.push(Curve { style: Style::Line, color, points: study::formula(Reading::Honest, per_node)? });
        curves.push(Curve {
            style: Style::Dot,
            color,
            points: study::along_a_row(Form::TwoPhase, per_node)?,
        });
        let points = study::in_the_torus(Form::TwoPhase, per_node)?;
        curves.push(Curve { style: Style::Cross, color, points });
    }
    let legend = &[
        (Style::Line, INK, "formula, all copies"),
        (Style::Dashed, INK, "as drawn"),
        (Style::Dashed, GREY, "as printed"),
        (Style::Dot, INK, "three streams, simulated"),
        (Style::Cross, INK, "three trees in 2x2x3, simulated"),
    ];
    Ok(Panel { caption: "Two-phase", legend, curves })
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

fn compose(root: &Area<'_>, panels: &[Panel; 2]) -> Drawn {
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE_HEIGHT);
    title.draw_text(
        "Broadcasts run by the network interface: formulas and simulation",
        &text(21),
        (20, 14),
    )?;
    let mut x = 20;
    for (per_node, color) in PER_NODE.into_iter().zip(COLORS) {
        title.draw(&Rectangle::new([(x, 42), (x + 14, 54)], color.filled()))?;
        title.draw_text(&format!("{per_node} ranks a node"), &text(14), (x + 20, 41))?;
        x += 140;
    }
    let (left, right) = rest.split_horizontally(WIDTH / 2);
    for (panel, area) in panels.iter().zip([left, right]) {
        panel.draw(&area)?;
    }
    root.present()?;
    Ok(())
}

impl Panel {
    fn draw(&self, area: &Area<'_>) -> Drawn {
        let (head, body) = area.split_vertically(LEGEND_HEIGHT);
        head.draw_text(self.caption, &text(16), (40, 8))?;
        self.explain(&head)?;
        let (least, most) = (f64::from(*SIZES.start()) - 0.5, f64::from(*SIZES.end()) + 0.5);
        let mut chart = ChartBuilder::on(&body)
            .margin_left(16)
            .margin_right(20)
            .x_label_area_size(52)
            .y_label_area_size(56)
            .build_cartesian_2d(least..most, 0.0..TOP)?;
        let label = |log2: &f64| {
            if log2.fract() == 0.0 { units::show(1 << *log2 as u64) } else { String::new() }
        };
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(7).x_label_formatter(&label).x_desc("size of the message");
        mesh.y_labels(6).y_label_formatter(&|rate| format!("{rate:.0}")).y_desc("GB/s");
        mesh.light_line_style(WHITE).label_style(text(12)).axis_desc_style(text(14)).draw()?;
        for Curve { style, color, points } in &self.curves {
            let points = points.iter().copied();
            match style {
                Style::Line => {
                    chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
                }
                Style::Dashed => {
                    chart.draw_series(DashedLineSeries::new(points, 5, 4, color.stroke_width(1)))?;
                }
                Style::Dot => {
                    chart.draw_series(points.map(|point| Circle::new(point, 3, color.filled())))?;
                }
                Style::Cross => {
                    chart.draw_series(points.map(|point| Cross::new(point, 4, color.stroke_width(1))))?;
                }
            }
        }
        Ok(())
    }

    /// Draws the legend of the styles, in two lines.
    fn explain(&self, area: &Area<'_>) -> Drawn {
        /// The approximate width of a letter.
        const LETTER: i32 = 7;
        let (mut x, mut y) = (40, 40);
        for &(style, color, meaning) in self.legend {
            let width = 36 + meaning.len() as i32 * LETTER;
            if x + width > WIDTH as i32 / 2 {
                (x, y) = (40, y + 22);
            }
            match style {
                Style::Line => area.draw(&PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)))?,
                Style::Dashed => {
                    for from in [x, x + 8, x + 16] {
                        area.draw(&PathElement::new([(from, y), (from + 5, y)], color.stroke_width(1)))?;
                    }
                }
                Style::Dot => area.draw(&Circle::new((x + 10, y), 3, color.filled()))?,
                Style::Cross => area.draw(&Cross::new((x + 10, y), 4, color.stroke_width(1)))?,
            }
            area.draw_text(meaning, &text(13), (x + 26, y - 7))?;
            x += width;
        }
        Ok(())
    }
}
