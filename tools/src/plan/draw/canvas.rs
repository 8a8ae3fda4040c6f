//! Lines, arrows and letters on a page; and which kind of thing has which colour.

use super::Kind;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const GREY: RGBColor = RGBColor(130, 130, 130);
pub(super) const FAINT: RGBColor = RGBColor(222, 222, 222);
pub(super) const BAND: RGBColor = RGBColor(246, 247, 249);

/// Pixels of the page's head: title, remark, legend.
pub(super) const HEAD: i32 = 96;
/// Around everything.
pub(super) const MARGIN: i32 = 24;
/// Letters of the legend are about this wide.
const LETTER: i32 = 7;

/// A point of the page.
pub(super) type Point = (i32, i32);
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A page that is being drawn.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// A sign in the legend.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    Arrow(RGBColor),
    Dashes(RGBColor),
    Square(RGBColor),
    Bar(RGBColor),
    Ring,
}

/// Draws a page of that size.
pub(super) fn page(
    (width, height): (i32, i32),
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> anyhow::Result<String> {
    let mut svg = String::new();
    let drawn = {
        let size = (width.unsigned_abs(), height.unsigned_abs());
        let canvas = Canvas { area: SVGBackend::with_string(&mut svg, size).into_drawing_area() };
        canvas.area.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&canvas)).and_then(|()| {
            canvas.area.present()?;
            Ok(())
        })
    };
    drawn.map_err(|error| anyhow::anyhow!("the picture cannot be drawn: {error}"))?;
    Ok(svg)
}

/// The colour of a kind; told apart by people who see no difference of red and green.
pub(super) fn colour(kind: Kind) -> RGBColor {
    match kind {
        Kind::Copy => RGBColor(31, 95, 160),
        Kind::Reduce => RGBColor(213, 94, 0),
        Kind::Local => RGBColor(0, 140, 105),
        Kind::Join => GREY,
    }
}

impl Canvas<'_> {
    pub(super) fn line(&self, points: &[Point], colour: RGBColor, width: u32) -> Drawn {
        self.area.draw(&PathElement::new(points.to_vec(), colour.stroke_width(width)))?;
        Ok(())
    }

    /// A straight line of dashes.
    pub(super) fn dashes(&self, from: Point, to: Point, colour: RGBColor, width: u32) -> Drawn {
        const DASH: f64 = 5.0;
        let length = f64::from(to.0 - from.0).hypot(f64::from(to.1 - from.1));
        let count = (length / DASH).floor().max(1.0) as i32;
        let at = |part: f64| {
            let along = |from: i32, to: i32| from + (f64::from(to - from) * part).round() as i32;
            (along(from.0, to.0), along(from.1, to.1))
        };
        for dash in (0..count).step_by(2) {
            let (begin, end) = (f64::from(dash) * DASH / length, f64::from(dash + 1) * DASH / length);
            self.line(&[at(begin), at(end.min(1.0))], colour, width)?;
        }
        Ok(())
    }

    /// The head of an arrow that comes from there.
    pub(super) fn head(&self, from: Point, to: Point, colour: RGBColor) -> Drawn {
        let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let length = dx.hypot(dy).max(1.0);
        let (x, y) = (dx / length, dy / length);
        let point = |along: f64, across: f64| {
            let at = (x * along - y * across, y * along + x * across);
            (to.0 + at.0.round() as i32, to.1 + at.1.round() as i32)
        };
        self.area.draw(&Polygon::new([to, point(-9.0, 4.0), point(-9.0, -4.0)], colour.filled()))?;
        Ok(())
    }

    pub(super) fn rectangle(&self, corners: [Point; 2], fill: RGBColor, edge: Option<RGBColor>) -> Drawn {
        self.area.draw(&Rectangle::new(corners, fill.filled()))?;
        if let Some(edge) = edge {
            self.area.draw(&Rectangle::new(corners, edge.stroke_width(1)))?;
        }
        Ok(())
    }

    pub(super) fn circle(&self, at: Point, radius: i32, fill: RGBColor, edge: RGBColor) -> Drawn {
        self.area.draw(&Circle::new(at, radius, fill.filled()))?;
        self.area.draw(&Circle::new(at, radius, edge.stroke_width(1)))?;
        Ok(())
    }

    /// Letters around a point.
    pub(super) fn centred(&self, words: &str, at: Point, size: u32, colour: RGBColor) -> Drawn {
        self.words(words, at, size, colour, Pos::new(HPos::Center, VPos::Center))
    }

    /// Letters that end left of a point.
    pub(super) fn before(&self, words: &str, at: Point, size: u32, colour: RGBColor) -> Drawn {
        self.words(words, at, size, colour, Pos::new(HPos::Right, VPos::Center))
    }

    /// Letters that begin at a point.
    pub(super) fn behind(&self, words: &str, at: Point, size: u32, colour: RGBColor) -> Drawn {
        self.words(words, at, size, colour, Pos::new(HPos::Left, VPos::Center))
    }

    fn words(&self, words: &str, at: Point, size: u32, colour: RGBColor, pos: Pos) -> Drawn {
        let style = ("sans-serif", size).into_text_style(&(0, 0)).color(&colour).pos(pos);
        self.area.draw_text(words, &style, at)?;
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
                    self.rectangle([(x + 4, y - 7), (x + 20, y + 7)], colour, None)?;
                }
                Sign::Bar(colour) => self.line(&[(x + 12, y - 7), (x + 12, y + 7)], colour, 3)?,
                Sign::Ring => self.circle((x + 12, y), 6, WHITE, INK)?,
            }
            self.behind(meaning, (x + 31, y), 13, INK)?;
            x += 50 + meaning.chars().count() as i32 * LETTER;
        }
        Ok(())
    }
}

/// How wide a head is.
pub(super) fn head_width(title: &str, remark: &str, legend: &[(Sign, &str)]) -> i32 {
    let letters = |words: &str| words.chars().count() as i32;
    let legend: i32 = legend.iter().map(|(_, meaning)| 50 + letters(meaning) * LETTER).sum();
    (letters(title) * 10).max(letters(remark) * LETTER).max(legend) + 2 * MARGIN
}
