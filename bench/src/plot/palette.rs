//! Who is drawn in which colour.

use crate::result::library::Library;
use plotters::style::RGBColor;

/// Ours, and ours in another state.
pub(super) const OURS: RGBColor = RGBColor(31, 95, 160);
pub(super) const OURS_TOO: RGBColor = RGBColor(201, 93, 20);
/// Limits, and what is written.
pub(super) const LIMIT: RGBColor = RGBColor(150, 150, 150);
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);

/// All that can be in one panel, ours last, so that it lies above the others.
pub(super) const ORDER: [Library; 6] =
    [Library::Limit, Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx, Library::Tasuki];

/// The colour of a library; told apart by people who see no difference of red and green.
pub(super) fn color(library: Library) -> RGBColor {
    match library {
        Library::Tasuki => OURS,
        Library::Mpich => RGBColor(204, 121, 167),
        Library::Openmpi => RGBColor(230, 159, 0),
        Library::Intel => RGBColor(0, 158, 115),
        Library::Ucx => RGBColor(170, 50, 40),
        Library::Limit => LIMIT,
    }
}

/// The name of a library for people.
pub(super) fn name(library: Library) -> &'static str {
    match library {
        Library::Tasuki => "Tasuki",
        Library::Mpich => "MPICH",
        Library::Openmpi => "Open MPI",
        Library::Intel => "Intel",
        Library::Ucx => "UCX",
        Library::Limit => "limit",
    }
}
