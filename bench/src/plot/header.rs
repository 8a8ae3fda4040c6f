//! The head of a panel: what it shows, and what its marks mean, in a line where no curve can be.

use super::{Area, Drawn, text};
use plotters::prelude::*;

/// Pixels of the head.
pub(super) const HEIGHT: u32 = 58;
/// Where marks begin and what one takes.
const LEFT: i32 = 40;
const MARK: i32 = 22;
/// Roughly what a letter takes at the size of the legend.
const LETTER: i32 = 7;

/// How something is drawn.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// A bar.
    Filled(RGBColor),
    /// A dot.
    Dot(RGBColor),
    /// A line.
    Line(RGBColor),
    /// A dashed line.
    Dashed(RGBColor),
}

/// Writes the caption and explains the marks, from left to right.
pub(super) fn draw(area: &Area<'_>, caption: &str, marks: &[(Mark, &str)]) -> Drawn {
    area.draw_text(caption, &text(16), (LEFT, 12))?;
    let (mut x, y) = (LEFT, 42);
    for (mark, meaning) in marks {
        match *mark {
            Mark::Filled(color) => {
                area.draw(&Rectangle::new([(x, y - 6), (x + 18, y + 6)], color.filled()))?
            }
            Mark::Dot(color) => area.draw(&Circle::new((x + 9, y), 5, color.filled()))?,
            Mark::Line(color) => {
                area.draw(&PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)))?;
            }
            Mark::Dashed(color) => {
                for from in [x, x + 7, x + 14] {
                    area.draw(&PathElement::new([(from, y), (from + 4, y)], color.stroke_width(2)))?;
                }
            }
        }
        area.draw_text(meaning, &text(13), (x + MARK, y - 7))?;
        x += MARK + meaning.len() as i32 * LETTER + 12;
    }
    Ok(())
}
