//! The figures as a picture: words as bars beside their limits, blocks as lines over size with the limit dashed.

mod blocks;
mod header;
mod words;

use super::row::Row;
use blocks::Blocks;
use plotters::coord::Shift;
use plotters::prelude::*;
use words::Words;

/// Pixels.
const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 64;
const PANEL_HEIGHT: u32 = 380;

/// Ours, ours in another state, the limits, and what is written.
const OURS: RGBColor = RGBColor(31, 95, 160);
const OURS_TOO: RGBColor = RGBColor(201, 93, 20);
const LIMIT: RGBColor = RGBColor(165, 165, 165);
const INK: RGBColor = RGBColor(40, 40, 40);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The picture as SVG, or nothing if no figure among these can be drawn.
pub(super) fn draw(rows: &[Row], machine: &str) -> anyhow::Result<Option<String>> {
    let (words, blocks) = (Words::of(rows), Blocks::of(rows));
    let panels = u32::from(words.is_some()) + u32::from(blocks.is_some());
    if panels == 0 {
        return Ok(None);
    }
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, TITLE_HEIGHT + panels * PANEL_HEIGHT));
        compose(&root.into_drawing_area(), &subtitle(rows, machine), words, blocks)
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

fn compose(root: &Area<'_>, subtitle: &str, words: Option<Words<'_>>, blocks: Option<Blocks<'_>>) -> Drawn {
    root.fill(&WHITE)?;
    let (title, mut rest) = root.split_vertically(TITLE_HEIGHT);
    title.draw_text("Tasuki beside the limits of the machine", &text(21), (20, 14))?;
    title.draw_text(subtitle, &text(14), (20, 42))?;
    if let Some(words) = words {
        let (panel, below) = rest.split_vertically(PANEL_HEIGHT);
        words.draw(&panel)?;
        rest = below;
    }
    if let Some(blocks) = blocks {
        let (left, right) = rest.split_horizontally(WIDTH / 2);
        blocks.draw(&left, false)?;
        blocks.draw(&right, true)?;
    }
    root.present()?;
    Ok(())
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::comparison::{Field, compare};
    use super::super::figure::Key;
    use super::super::repetition::Summary;
    use super::super::state::State;
    use super::*;

    fn row(key: Key, median: f64) -> Row {
        Row::new(key, 2, Summary { median, min: median, max: median, repetitions: 5, steady: true })
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

    #[test]
    fn without_a_figure_to_draw_there_is_no_picture() {
        assert!(draw(&[row(Key::limit("hand_over"), 50.0)], "").unwrap().is_none());
    }
}
