//! The types of an SVG picture that plotters draws.

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, SVGBackend};

/// A part of the picture.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The outcome of drawing something.
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;
