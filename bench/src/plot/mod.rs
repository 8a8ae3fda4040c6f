//! The figures as a picture. Words and calls are marks beside their limits and the figures of other libraries; blocks
//! are lines over the size, with a dashed line for the limit.

mod bandwidths;
mod marks;

use crate::case::{CASES, Played};
use crate::result::library::Library;
use crate::result::row::Row;
use plotters::coord::Shift;
use plotters::prelude::*;

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 64;
const PANEL_HEIGHT: u32 = 380;
/// The height of the head of a panel.
const HEAD_HEIGHT: u32 = 58;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

const INK: RGBColor = RGBColor(40, 40, 40);
/// The order in which libraries are drawn, with their names and colours. Tasuki is drawn last, on top of the others.
const ORDER: [(Library, &str, RGBColor); 6] = [
    (Library::Limit, "limit", RGBColor(150, 150, 150)),
    (Library::Mpich, "MPICH", RGBColor(204, 121, 167)),
    (Library::Openmpi, "Open MPI", RGBColor(230, 159, 0)),
    (Library::Intel, "Intel", RGBColor(0, 158, 115)),
    (Library::Ucx, "UCX", RGBColor(170, 50, 40)),
    (Library::Tasuki, "Tasuki", RGBColor(31, 95, 160)),
];

/// A panel of the picture.
type Panel<'r> = Box<dyn Fn(&Area<'_>) -> Drawn + 'r>;

/// Returns true if figures of a case are drawn.
pub(crate) fn draws(played: Played) -> bool {
    matches!(played, Played::Two(_) | Played::Handlers | Played::Blocks | Played::Collective)
}

/// Returns the picture as SVG, or `None` if no figure can be drawn.
pub(crate) fn draw(rows: &[Row], machine: &str) -> anyhow::Result<Option<String>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    let words = |row: &Row| row.case.is_for_two() && row.case.played != Played::Blocks;
    let calls = |row: &Row| row.case.played == Played::Collective && row.variant.is_empty() && row.bytes == 8;
    let of_words = "8 bytes: time of one way, of one operation, of one of many (less is better)";
    let of_calls = "collective calls, 8 bytes, on two processors, by ranks: time of a call (less is better)";
    panels.extend(marks::panel(rows, of_words, words));
    panels.extend(marks::panel(rows, of_calls, calls));
    for case in CASES.iter().filter(|case| case.played == Played::Blocks) {
        panels.extend(bandwidths::panel(rows, case));
    }
    if panels.is_empty() {
        return Ok(None);
    }
    let unsteady = rows.iter().filter(|row| !row.steady).count();
    let subtitle = match unsteady {
        0 => machine.to_string(),
        _ => format!("{machine}; the machine was not quiet: {unsteady} of {} figures unsteady", rows.len()),
    };
    let mut svg = String::new();
    let height = TITLE_HEIGHT + panels.len() as u32 * PANEL_HEIGHT;
    let drawn =
        compose(&SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area(), &subtitle, &panels);
    drawn.map_err(|error| anyhow::anyhow!("the picture cannot be drawn: {error}"))?;
    Ok(Some(svg))
}

fn compose(root: &Area<'_>, subtitle: &str, panels: &[Panel<'_>]) -> Drawn {
    root.fill(&WHITE)?;
    let (title, mut rest) = root.split_vertically(TITLE_HEIGHT);
    title.draw_text("Tasuki beside the limits of the machine", &text(21), (20, 14))?;
    title.draw_text(subtitle, &text(14), (20, 42))?;
    for panel in panels {
        let (area, below) = rest.split_vertically(PANEL_HEIGHT);
        panel(&area)?;
        rest = below;
    }
    root.present()?;
    Ok(())
}

/// Draws the title of a panel and the meaning of its colours, in a line that no curve reaches. Returns the area below.
fn head<'a>(
    area: &Area<'a>,
    caption: &str,
    marks: &[(RGBColor, &str)],
) -> Result<Area<'a>, Box<dyn std::error::Error>> {
    let (head, body) = area.split_vertically(HEAD_HEIGHT);
    head.draw_text(caption, &text(16), (40, 12))?;
    let mut x = 40;
    for (color, meaning) in marks {
        head.draw(&Circle::new((x + 9, 42), 5, color.filled()))?;
        head.draw_text(meaning, &text(13), (x + 22, 35))?;
        x += 34 + meaning.len() as i32 * 7;
    }
    Ok(body)
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Limit, named};
    use crate::cases::State;
    use crate::harness::repetition::Summary;
    use crate::result::comparison::{Field, compare};
    use crate::result::key::Key;

    fn row(key: Key, ranks: usize, median: f64) -> Row {
        Row::new(key, ranks, Summary { median, min: median, max: median, repetitions: 5, steady: true })
    }

    #[test]
    fn the_picture_names_what_it_shows() {
        let limit = |limit, state, bytes, median| row(Key::limit(limit, state, bytes), 2, median);
        let mut rows = vec![limit(Limit::HandOver, State::default(), 8, 50.0)];
        let mut add = |name: &str, variant: &str, bytes, ranks, ours: f64, step: f64| {
            rows.push(row(Key::ours(named(name), variant, bytes), ranks, ours));
            for (index, library) in Library::PEERS.into_iter().enumerate() {
                let key = Key { library, ..Key::ours(named(name), variant, bytes) };
                rows.push(row(key, ranks, ours * step * (1.0 + index as f64)));
            }
        };
        add("message", "", 8, 2, 55.0, 1.8);
        add("posted", "post_gap", 8, 2, 40.0, 1.2);
        add("rate", "", 8, 2, 40e6, 0.2);
        [2, 4, 8].into_iter().for_each(|ranks| add("allgather", "", 8, ranks, 130.0 * ranks as f64, 2.0));
        for state in State::ALL {
            [4 << 10, 1 << 20]
                .into_iter()
                .for_each(|bytes| add("bandwidth_own", &state.to_string(), bytes, 2, 50e9, 0.2));
        }
        rows.push(row(Key::ours(named("put"), "", 8), 2, 80.0));
        compare(&mut rows, &Field { asked: Library::PEERS.to_vec(), off: Vec::new() });
        let svg = draw(&rows, "the machine").unwrap().unwrap();
        for word in [
            "the machine",
            "put",
            "post_gap",
            "limit",
            "4 KiB",
            "1 MiB",
            "GB/s",
            "hot",
            "cold",
            "MPICH",
            "Open MPI",
            "Intel",
            "UCX",
            "allgather",
            "bandwidth_own",
        ] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(
            draw(&[row(Key::limit(Limit::HandOver, State::default(), 8), 2, 50.0)], "").unwrap().is_none()
        );
    }
}
