//! A figure that compares collectives driven by one rank with those driven by all ranks: time and
//! bytes over the number of ranks, on a torus.

use super::progress_bar::Bar;
use super::units::power_of_ten_seconds;
use crate::svg_drawing::{Area, Drawn};
use anyhow::Context;
use plotters::prelude::*;
use tasuki_schedule::Simulation;
use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
use tasuki_schedule::network::{Network, Topology};
use tasuki_schedule::shape::{CollectiveKind, Shape};

/// Sizes are in pixels.
const WIDTH: u32 = 1160;
const HEIGHT: u32 = 520;
const TITLE_HEIGHT: u32 = 56;
const LEGEND_HEIGHT: u32 = 84;
const INK: RGBColor = RGBColor(40, 40, 40);
/// People who cannot tell red from green can tell these apart.
const COLORS: [RGBColor; 3] = [RGBColor(31, 95, 160), RGBColor(201, 93, 20), RGBColor(0, 140, 105)];
/// The largest number of ranks.
pub(super) const RANKS_MAX: usize = 1_000_000;
/// Powers of two, for the algorithm that needs one. Each rank has one step for each doubling.
const POWERS: [usize; 5] = [128, 1024, 8192, 32_768, 131_072];
const TENS: [usize; 5] = [100, 1000, 10_000, 100_000, 1_000_000];
/// Few ranks, for the algorithm in which each rank has a list for all others: more ranks would have
/// too many steps.
const SQUARES: [usize; 4] = [100, 200, 500, 1000];

/// A case to simulate in both forms.
struct Case {
    what: &'static str,
    collective: CollectiveKind,
    algorithm: &'static str,
    bytes: u64,
    ranks: &'static [usize],
}

const fn bcast(what: &'static str, bytes: u64) -> Case {
    Case { what, collective: CollectiveKind::Bcast, algorithm: "binary", bytes, ranks: &TENS }
}

const BCASTS: [Case; 3] = [bcast("8 B", 8), bcast("8 KiB", 8 << 10), bcast("1 MiB", 1 << 20)];
const ALLGATHERS: [Case; 2] = [
    Case {
        what: "recursive doubling",
        collective: CollectiveKind::Allgather,
        algorithm: "recursive doubling",
        bytes: 8,
        ranks: &POWERS,
    },
    Case {
        what: "lists of the paper",
        collective: CollectiveKind::Allgather,
        algorithm: "command lists",
        bytes: 8,
        ranks: &SQUARES,
    },
];

/// A point of a curve: seconds, and bytes of the rank with the longest list.
#[derive(Clone, Copy)]
struct Point {
    ranks: usize,
    seconds: f64,
    bytes: u64,
}

/// A case, simulated with the steps spread over all ranks and with one driver.
#[derive(Clone)]
struct Both {
    what: &'static str,
    spread: Vec<Point>,
    driven: Vec<Point>,
}

/// A panel: curves of values over ranks. Curves of a single driver are dashed.
struct DriverPanel<'p> {
    caption: &'static str,
    curves: Vec<(&'p Both, RGBColor)>,
    value: fn(&Point) -> f64,
    label: fn(f64) -> String,
}

/// Simulates all cases and draws the figure, for at most `ranks_max` ranks.
pub(super) fn svg(ranks_max: usize) -> anyhow::Result<String> {
    let bcasts = BCASTS.iter().map(|case| case.simulate(ranks_max)).collect::<anyhow::Result<Vec<_>>>()?;
    let allgathers =
        ALLGATHERS.iter().map(|case| case.simulate(ranks_max)).collect::<anyhow::Result<Vec<_>>>()?;
    let seconds: fn(&Point) -> f64 = |point| point.seconds;
    let bcast = Both { what: "broadcast", ..bcasts[1].clone() };
    let memory = [&bcast, &allgathers[0], &allgathers[1]];
    // The allgather has the same colour in both panels.
    let panels = [
        DriverPanel {
            caption: "Broadcast down a binary tree: time",
            curves: bcasts.iter().zip(COLORS).collect(),
            value: seconds,
            label: power_of_ten_seconds,
        },
        DriverPanel {
            caption: "Allgather of 8 B: time",
            curves: allgathers.iter().zip(COLORS[1..].iter().copied()).collect(),
            value: seconds,
            label: power_of_ten_seconds,
        },
        DriverPanel {
            caption: "Lists of the rank that has most",
            curves: memory.into_iter().zip(COLORS).collect(),
            value: |point| point.bytes as f64,
            label: bytes,
        },
    ];
    let mut svg = String::new();
    let drawn = compose(&SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area(), &panels);
    drawn.map_err(|error| anyhow::anyhow!("the figure cannot be drawn: {error}"))?;
    Ok(svg)
}

impl Case {
    fn simulate(&self, ranks_max: usize) -> anyhow::Result<Both> {
        let points = |by: Option<usize>| {
            let ranks = self.ranks.iter().filter(|ranks| **ranks <= ranks_max);
            ranks.map(|&ranks| self.point(ranks, by)).collect::<anyhow::Result<Vec<_>>>()
        };
        Ok(Both { what: self.what, spread: points(None)?, driven: points(Some(0))? })
    }

    fn point(&self, ranks: usize, by: Option<usize>) -> anyhow::Result<Point> {
        let is_it = |one: &&Algorithm| (one.collective, one.name) == (self.collective, self.algorithm);
        let algorithm = ALGORITHMS.iter().find(is_it).context("an algorithm of the figure")?;
        let spread = algorithm.schedule(&Shape::new(self.collective, ranks, 0, self.bytes), 1);
        let schedule = by.map_or(spread.clone(), |by| spread.driven_by(by));
        let network = Network::new(Topology::parse("torus", ranks as u64)?, 1);
        let mut bar = Bar::new();
        let simulated = Simulation::new(&schedule, &network).watch(|progress| bar.show(progress)).run();
        let simulated = simulated.context("a schedule of the figure")?;
        Ok(Point { ranks, seconds: simulated.time.as_seconds(), bytes: simulated.memory_max })
    }
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

/// A power of ten, in bytes, as text.
fn bytes(bytes: f64) -> String {
    let (unit, name) =
        [(1e6, "MB"), (1e3, "kB")].into_iter().find(|(unit, _)| bytes >= *unit * 0.999).unwrap_or((1.0, "B"));
    format!("{:.0} {name}", bytes / unit)
}

fn compose(root: &Area<'_>, panels: &[DriverPanel<'_>; 3]) -> Drawn {
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE_HEIGHT);
    let line = "Lists of all ranks, and one list that one rank runs: simulated on a torus";
    title.draw_text(line, &text(21), (20, 14))?;
    for (panel, area) in panels.iter().zip(rest.split_evenly((1, panels.len()))) {
        panel.draw(&area)?;
    }
    root.present()?;
    Ok(())
}

impl DriverPanel<'_> {
    fn draw(&self, area: &Area<'_>) -> Drawn {
        let (head, body) = area.split_vertically(LEGEND_HEIGHT);
        head.draw_text(self.caption, &text(16), (24, 6))?;
        self.explain(&head)?;
        let points = || self.curves.iter().flat_map(|(both, _)| both.spread.iter().chain(&both.driven));
        let values = || points().map(self.value);
        let most = points().map(|point| point.ranks).max().unwrap_or(1) as f64;
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN_POSITIVE, f64::max));
        let (left, right) = (100_f64.log10() - 0.1, most.log10().max(3.0) + 0.15);
        let mut chart = ChartBuilder::on(&body)
            .margin_left(12)
            .margin_right(16)
            .x_label_area_size(48)
            .y_label_area_size(56)
            .build_cartesian_2d(left..right, low.log10().floor()..high.log10().ceil())?;
        let power = |name: fn(f64) -> String| {
            move |log: &f64| {
                if (log - log.round()).abs() < 0.01 { name(10_f64.powf(log.round())) } else { String::new() }
            }
        };
        let (ranks, value) = (power(|ranks| format!("{ranks:.0}")), power(self.label));
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(5).x_label_formatter(&ranks).x_desc("ranks");
        mesh.y_labels(10).y_label_formatter(&value);
        mesh.light_line_style(WHITE).label_style(text(12)).axis_desc_style(text(14)).draw()?;
        for &(both, color) in &self.curves {
            let at = |point: &Point| ((point.ranks as f64).log10(), (self.value)(point).log10());
            chart.draw_series(LineSeries::new(both.spread.iter().map(at), color.stroke_width(2)))?;
            let dashed = both.driven.iter().map(at);
            chart.draw_series(DashedLineSeries::new(dashed, 6, 4, color.stroke_width(2)))?;
            let dots = both.spread.iter().chain(&both.driven).map(at);
            chart.draw_series(dots.map(|point| Circle::new(point, 3, color.filled())))?;
        }
        Ok(())
    }

    /// Draws the legend: colours in one line, the two forms in another.
    fn explain(&self, area: &Area<'_>) -> Drawn {
        /// The approximate width of a letter.
        const LETTER: i32 = 7;
        let mut x = 24;
        for &(both, color) in &self.curves {
            area.draw(&Circle::new((x + 5, 40), 5, color.filled()))?;
            area.draw_text(both.what, &text(13), (x + 15, 33))?;
            x += 30 + both.what.len() as i32 * LETTER;
        }
        area.draw(&PathElement::new([(24, 62), (48, 62)], INK.stroke_width(2)))?;
        area.draw_text("lists of all ranks", &text(13), (54, 55))?;
        for from in [190, 200, 210] {
            area.draw(&PathElement::new([(from, 62), (from + 6, 62)], INK.stroke_width(2)))?;
        }
        area.draw_text("one list of rank 0", &text(13), (222, 55))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_has_both_forms_of_all_cases() {
        let svg = svg(1000).unwrap();
        for word in ["8 KiB", "recursive doubling", "lists of the paper", "one list of rank 0", "ranks"] {
            assert!(svg.contains(word), "{word}");
        }
    }

    #[test]
    fn powers_of_ten_have_units() {
        assert_eq!(
            [1e-6, 1e-4, 1e-3, 1.0, 10.0].map(power_of_ten_seconds),
            ["1 us", "100 us", "1 ms", "1 s", "10 s"]
        );
        assert_eq!([100.0, 1e3, 1e8].map(bytes), ["100 B", "1 kB", "100 MB"]);
    }
}
