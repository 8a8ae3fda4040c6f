//! The colours of spans and arrows. People who cannot tell red from green can tell them apart.

use super::lanes::Kind;
use plotters::style::RGBColor;

pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const FAINT: RGBColor = RGBColor(226, 226, 226);
pub(super) const BAND: RGBColor = RGBColor(246, 247, 249);
pub(super) const FAILED: RGBColor = RGBColor(200, 30, 30);
/// Arrows from posts to runs, arrows of bytes, and arrows from effects to what they release.
pub(super) const COURSE: RGBColor = RGBColor(120, 120, 120);
pub(super) const DATA: RGBColor = RGBColor(0, 130, 130);
pub(super) const CAUSE: RGBColor = RGBColor(201, 93, 20);

/// The colour of a kind of span.
pub(super) fn of(kind: Kind) -> RGBColor {
    match kind {
        Kind::Program => RGBColor(236, 226, 190),
        Kind::Transfer => RGBColor(0, 130, 130),
        Kind::Access => RGBColor(150, 210, 205),
        Kind::Wait => RGBColor(205, 212, 222),
        Kind::Post => RGBColor(230, 159, 0),
        Kind::Raise => RGBColor(204, 121, 167),
        Kind::Fire => RGBColor(120, 180, 225),
        Kind::Run => RGBColor(31, 95, 160),
        Kind::Handler => RGBColor(120, 81, 169),
        Kind::Share => RGBColor(0, 158, 115),
        Kind::Effect => RGBColor(213, 94, 60),
    }
}

/// The kind with that word. A word that Tasuki does not write counts as `run`.
pub(super) fn kind(word: &str) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.word() == word).unwrap_or(Kind::Run)
}

/// What the legend says about a kind.
pub(super) fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Program => "span of the program",
        Kind::Transfer => "puts, gets, copies",
        Kind::Access => "memory is reached",
        Kind::Wait => "waits",
        Kind::Post => "posts",
        Kind::Raise => "raises a signal",
        Kind::Fire => "command fires",
        Kind::Run => "command runs",
        Kind::Handler => "handler runs",
        Kind::Share => "part of a shared copy",
        Kind::Effect => "effects",
    }
}
