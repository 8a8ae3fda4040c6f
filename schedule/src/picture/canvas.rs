//! Drawing of lines, arrows and text on a page, and the colours of step kinds.

use super::Kind;
use crate::ScheduleError;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const GREY: RGBColor = RGBColor(130, 130, 130);
pub(super) const FAINT: RGBColor = RGBColor(222, 222, 222);
pub(super) const BAND: RGBColor = RGBColor(246, 247, 249);

/// Height in pixels of the page's head: title, remark and legend.
pub(super) const HEAD: i32 = 96;
/// Pixels around the drawing.
pub(super) const MARGIN: i32 = 24;
/// Estimated widths in pixels of a letter of the title, and of the remark and the legend.
const TITLE_LETTER: i32 = 10;
const LETTER: i32 = 7;
const LEGEND_LETTER: i32 = 6;
/// Width in pixels of a symbol of the legend.
const SIGN: i32 = 52;
/// Subdivisions of a pixel for curves; whole pixels would make them jagged.
const FINE: i32 = 8;

/// A point of the page in pixels.
pub(super) type Point = (i32, i32);
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A page under construction.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// A symbol in the legend.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    Arrow(RGBColor),
    Dashes(RGBColor),
    Square(RGBColor),
    Bar(RGBColor),
    Beam(RGBColor),
    Ring,
}

/// Draws a page of that size in pixels.
pub(super) fn page(
    (width, height): (i32, i32),
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<String, ScheduleError> {
    let mut svg = String::new();
    let drawn = {
        let size = ((width * FINE).unsigned_abs(), (height * FINE).unsigned_abs());
        let canvas = Canvas { area: SVGBackend::with_string(&mut svg, size).into_drawing_area() };
        canvas.area.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&canvas)).and_then(|()| {
            canvas.area.present()?;
            Ok(())
        })
    };
    drawn.map_err(|error| ScheduleError::Drawing(error.to_string()))?;
    // The outer size is in pixels, the inner coordinates in subdivisions.
    let fine = format!("width=\"{}\" height=\"{}\"", width * FINE, height * FINE);
    Ok(svg.replacen(&fine, &format!("width=\"{width}\" height=\"{height}\""), 1))
}

/// The colour of a kind of step, distinguishable without red-green vision.
pub(super) fn colour(kind: Kind) -> RGBColor {
    match kind {
        Kind::Copy => RGBColor(31, 95, 160),
        Kind::Reduce | Kind::Sum => RGBColor(213, 94, 0),
        Kind::Local => RGBColor(0, 140, 105),
        Kind::Join => GREY,
    }
}

impl Canvas<'_> {
    pub(super) fn line(&self, points: &[Point], colour: RGBColor, width: u32) -> Drawn {
        let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.into(), y.into())).collect();
        self.curve(&points, colour, width)
    }

    /// A line through points with fractional coordinates.
    pub(super) fn curve(&self, points: &[(f64, f64)], colour: RGBColor, width: u32) -> Drawn {
        let fine = |at: f64| (at * f64::from(FINE)).round() as i32;
        let points: Vec<Point> = points.iter().map(|&(x, y)| (fine(x), fine(y))).collect();
        self.area.draw(&PathElement::new(points, colour.stroke_width(width * FINE as u32)))?;
        Ok(())
    }

    /// A straight dashed line.
    pub(super) fn dashes(&self, from: Point, to: Point, colour: RGBColor, width: u32) -> Drawn {
        const DASH: f64 = 5.0;
        let length = f64::from(to.0 - from.0).hypot(f64::from(to.1 - from.1));
        let count = (length / DASH).floor().max(1.0) as i32;
        let at = |dash: i32| {
            let part = (f64::from(dash) * DASH / length).min(1.0);
            let along = |from: i32, to: i32| f64::from(from) + f64::from(to - from) * part;
            (along(from.0, to.0), along(from.1, to.1))
        };
        (0..count).step_by(2).try_for_each(|dash| self.curve(&[at(dash), at(dash + 1)], colour, width))
    }

    /// The head of an arrow that comes from `from` and ends at `to`.
    pub(super) fn head(&self, from: Point, to: Point, colour: RGBColor) -> Drawn {
        self.head_from((from.0.into(), from.1.into()), to, colour)
    }

    /// The head of an arrow that comes from a point with fractional coordinates.
    pub(super) fn head_from(&self, from: (f64, f64), to: Point, colour: RGBColor) -> Drawn {
        let (dx, dy) = (f64::from(to.0) - from.0, f64::from(to.1) - from.1);
        let length = dx.hypot(dy).max(1.0);
        let (x, y) = (dx / length, dy / length);
        let point = |along: f64, across: f64| {
            let fine = |at: i32, by: f64| at * FINE + (by * f64::from(FINE)).round() as i32;
            (fine(to.0, x * along - y * across), fine(to.1, y * along + x * across))
        };
        let corners = [point(0.0, 0.0), point(-9.0, 3.8), point(-9.0, -3.8)];
        self.area.draw(&Polygon::new(corners, colour.filled()))?;
        Ok(())
    }

    pub(super) fn rectangle(&self, corners: [Point; 2], fill: RGBColor) -> Drawn {
        let corners = corners.map(|(x, y)| (x * FINE, y * FINE));
        self.area.draw(&Rectangle::new(corners, fill.filled()))?;
        Ok(())
    }

    pub(super) fn circle(&self, at: Point, radius: i32, fill: RGBColor, edge: RGBColor) -> Drawn {
        let (at, radius) = ((at.0 * FINE, at.1 * FINE), radius * FINE);
        self.area.draw(&Circle::new(at, radius, fill.filled()))?;
        self.area.draw(&Circle::new(at, radius, edge.stroke_width(FINE as u32)))?;
        Ok(())
    }

    /// Text centred on a point.
    pub(super) fn centred(&self, words: &str, at: Point, size: u32, colour: RGBColor) -> Drawn {
        self.words(words, at, size, colour, Pos::new(HPos::Center, VPos::Center))
    }

    /// Text that ends at a point.
    pub(super) fn before(&self, words: &str, at: Point, size: u32, colour: RGBColor) -> Drawn {
        self.words(words, at, size, colour, Pos::new(HPos::Right, VPos::Center))
    }

    /// Text that begins at a point.
    pub(super) fn behind(&self, words: &str, at: Point, size: u32, colour: RGBColor) -> Drawn {
        self.words(words, at, size, colour, Pos::new(HPos::Left, VPos::Center))
    }

    fn words(&self, words: &str, at: Point, size: u32, colour: RGBColor, pos: Pos) -> Drawn {
        let style = ("sans-serif", size * FINE as u32).into_text_style(&(0, 0)).color(&colour).pos(pos);
        self.area.draw_text(words, &style, (at.0 * FINE, at.1 * FINE))?;
        Ok(())
    }

    /// Title, remark and legend.
    pub(super) fn head_of_page(&self, title: &str, remark: &str, legend: &[(Sign, &str)]) -> Drawn {
        self.behind(title, (MARGIN, 24), 19, INK)?;
        self.behind(remark, (MARGIN, 48), 13, GREY)?;
        let (mut x, y) = (MARGIN, 74);
        for &(sign, meaning) in legend {
            match sign {
                Sign::Arrow(colour) => {
                    self.line(&[(x, y), (x + 18, y)], colour, 2)?;
                    self.head((x, y), (x + 24, y), colour)?;
                }
                Sign::Dashes(colour) => {
                    self.dashes((x, y), (x + 20, y), colour, 1)?;
                    self.head((x, y), (x + 24, y), colour)?;
                }
                Sign::Square(colour) => {
                    self.rectangle([(x + 4, y - 7), (x + 20, y + 7)], colour)?;
                }
                Sign::Bar(colour) => self.line(&[(x + 12, y - 7), (x + 12, y + 7)], colour, 3)?,
                Sign::Beam(colour) => self.line(&[(x + 2, y), (x + 24, y)], colour, 4)?,
                Sign::Ring => self.circle((x + 12, y), 6, WHITE, INK)?,
            }
            self.behind(meaning, (x + 31, y), 13, INK)?;
            x += SIGN + meaning.chars().count() as i32 * LEGEND_LETTER;
        }
        Ok(())
    }
}

/// The width in pixels of a page's head.
pub(super) fn head_width(title: &str, remark: &str, legend: &[(Sign, &str)]) -> i32 {
    let letters = |words: &str| words.chars().count() as i32;
    let legend: i32 = legend.iter().map(|(_, meaning)| SIGN + letters(meaning) * LEGEND_LETTER).sum();
    (letters(title) * TITLE_LETTER).max(letters(remark) * LETTER).max(legend) + 2 * MARGIN
}
