//! The figures as a picture: words as bars beside their limits, blocks as lines over size with the limit dashed, and
//! other libraries as marks or lines of their own.

mod bandwidths;
mod header;
mod latencies;
mod library_marks;
mod palette;

use crate::result::row::Row;
use bandwidths::Blocks;
use latencies::Words;
use library_marks::Marks;
use palette::INK;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Pixels.
const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 64;
const PANEL_HEIGHT: u32 = 380;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A panel, or two beside each other: as wide as the picture.
enum Band<'r> {
    Words(Words<'r>),
    Marks(Marks<'r>),
    Blocks(Blocks),
}

/// All that can be drawn of these figures, from above.
fn bands(rows: &[Row]) -> Vec<Band<'_>> {
    let words = Words::of(rows).map(Band::Words);
    let marks = [Marks::of_messages(rows), Marks::of_collectives(rows)].into_iter().flatten();
    words
        .into_iter()
        .chain(marks.map(Band::Marks))
        .chain(Blocks::of(rows).into_iter().map(Band::Blocks))
        .collect()
}

/// The picture as SVG, or nothing if no figure among these can be drawn.
pub(crate) fn draw(rows: &[Row], machine: &str) -> anyhow::Result<Option<String>> {
    let bands = bands(rows);
    if bands.is_empty() {
        return Ok(None);
    }
    let mut svg = String::new();
    let drawn = {
        let height = TITLE_HEIGHT + bands.len() as u32 * PANEL_HEIGHT;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height));
        compose(&root.into_drawing_area(), &subtitle(rows, machine), &bands)
    };
    drawn.map_err(|error| anyhow::anyhow!("the picture cannot be drawn: {error}"))?;
    Ok(Some(svg))
}

/// The machine, and how much of the picture is to be believed.
fn subtitle(rows: &[Row], machine: &str) -> String {
    let unsteady = rows.iter().filter(|row| !row.steady).count();
    match unsteady {
        0 => machine.to_string(),
        _ => format!("{machine}; the machine was not quiet: {unsteady} of {} figures unsteady", rows.len()),
    }
}

fn compose(root: &Area<'_>, subtitle: &str, bands: &[Band<'_>]) -> Drawn {
    root.fill(&WHITE)?;
    let (title, mut rest) = root.split_vertically(TITLE_HEIGHT);
    title.draw_text("Tasuki beside the limits of the machine", &text(21), (20, 14))?;
    title.draw_text(subtitle, &text(14), (20, 42))?;
    for band in bands {
        let (area, below) = rest.split_vertically(PANEL_HEIGHT);
        match band {
            Band::Words(words) => words.draw(&area)?,
            Band::Marks(marks) => marks.draw(&area)?,
            Band::Blocks(blocks) => blocks.draw(&area)?,
        }
        rest = below;
    }
    root.present()?;
    Ok(())
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Kind};
    use crate::cases::buffer_state::State;
    use crate::harness::repetition::Summary;
    use crate::result::comparison::{Field, compare};
    use crate::result::figure::Key;
    use crate::result::library::Library;

    fn row(key: Key, median: f64) -> Row {
        row_of(key, 2, median)
    }

    fn row_of(key: Key, ranks: usize, median: f64) -> Row {
        Row::new(key, ranks, Summary { median, min: median, max: median, repetitions: 5, steady: true })
    }

    fn rows() -> Vec<Row> {
        let mut rows = vec![row(Key::limit("hand_over"), 50.0), row(Key::limit("remote_load"), 90.0)];
        rows.push(row(Key::ours(Case::Put, "", 8), 80.0));
        rows.push(row(Key::ours(Case::Get, "", 8), 100.0));
        for state in State::all() {
            for bytes in [64 << 10, 1 << 20] {
                rows.push(row(Key::ours(Case::BandwidthPut, &state.to_string(), bytes), 50e9));
                rows.push(row(Key::copy_limit("memcpy", state, bytes), 55e9));
            }
        }
        compare(&mut rows, &Field::default());
        rows
    }

    #[test]
    fn the_picture_names_what_it_shows() {
        let svg = draw(&rows(), "the machine").unwrap().unwrap();
        let whole = ["the machine", "put", "get", "hand-over", "64 KiB", "1 MiB", "GB/s", "hot", "cold"];
        for word in whole {
            assert!(svg.contains(word), "{word}");
        }
    }

    /// Everything at once, with all libraries: what a person should look at when the picture changes. Set
    /// `TASUKI_PICTURE` to a file to have it written there.
    fn rows_of_all() -> Vec<Row> {
        let mut rows = rows();
        let peers = [Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx];
        let mut add = |case, variant: &str, bytes, ranks, ours: f64, step: f64| {
            rows.push(row_of(Key::ours(case, variant, bytes), ranks, ours));
            for (index, library) in peers.into_iter().enumerate() {
                let key = Key { library, ..Key::ours(case, variant, bytes) };
                rows.push(row_of(key, ranks, ours * step * (1.0 + index as f64)));
            }
        };
        add(Case::Message, "", 8, 2, 55.0, 1.8);
        add(Case::Posted, "", 8, 2, 57.0, 9.0);
        add(Case::Posted, "post_gap", 8, 2, 40.0, 1.2);
        add(Case::Rate, "", 8, 2, 40e6, 0.2);
        for ranks in [2, 4, 8] {
            for &case in Case::all().iter().filter(|case| case.kind() == Kind::Collective) {
                add(case, "", 8, ranks, 130.0 * (ranks * ranks) as f64, 2.0);
            }
        }
        for state in State::all() {
            for bytes in [4 << 10, 64 << 10, 1 << 20, 16 << 20] {
                add(Case::BandwidthOwn, &state.to_string(), bytes, 2, 50e9, 0.2);
            }
        }
        rows.push(row(Key::ours(Case::Oversubscribed, "", 8), 60.0));
        rows.push(row(Key::ours(Case::PutNear, "", 8), 54.0));
        rows.push(row(Key::ours(Case::Atomic, "", 8), 110.0));
        rows.sort_by_key(Row::place);
        compare(&mut rows, &Field { asked: peers.to_vec(), off: Vec::new() });
        rows
    }

    #[test]
    fn each_library_has_its_marks_and_lines() {
        let svg = draw(&rows_of_all(), "the machine").unwrap().unwrap();
        for word in ["MPICH", "Open MPI", "Intel", "UCX", "allgather", "bandwidth_own", "post_gap", "4 KiB"] {
            assert!(svg.contains(word), "{word}");
        }
        if let Some(file) = std::env::var_os("TASUKI_PICTURE") {
            std::fs::write(file, svg).unwrap();
        }
    }

    #[test]
    fn without_a_figure_to_draw_there_is_no_picture() {
        assert!(draw(&[row(Key::limit("hand_over"), 50.0)], "").unwrap().is_none());
    }
}
