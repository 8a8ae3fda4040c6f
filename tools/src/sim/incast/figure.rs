//! The figure: time to drain over the number of senders, for each network and each way of waiting.

use super::question::{CounterHome, IncastProtocol, TicketWaiting};
use super::report::IncastRow;
use crate::sim::units::power_of_ten_seconds;
use crate::svg_drawing::{Area, Drawn};
use plotters::prelude::*;

/// Sizes are in pixels.
const PANEL_WIDTH: u32 = 540;
const PANEL_HEIGHT: u32 = 400;
const TITLE_HEIGHT: u32 = 118;
const INK: RGBColor = RGBColor(40, 40, 40);
const GREY: RGBColor = RGBColor(130, 130, 130);
/// Colours of tickets, by the number of shares. People who cannot tell red from green can tell them apart.
const COLORS: [RGBColor; 6] = [
    RGBColor(20, 20, 20),
    RGBColor(31, 95, 160),
    RGBColor(201, 93, 20),
    RGBColor(0, 140, 105),
    RGBColor(190, 80, 150),
    RGBColor(150, 120, 0),
];

/// Draws the figure. A line ends where a simulation did not drain.
pub(super) fn svg(rows: &[IncastRow]) -> anyhow::Result<String> {
    let topologies = distinct(rows.iter().map(|row| row.topology.as_str()));
    let waitings = distinct(rows.iter().filter_map(|row| match row.protocol {
        IncastProtocol::Tickets(_, waiting) => Some(waiting),
        _ => None,
    }));
    let size = (PANEL_WIDTH * topologies.len() as u32, TITLE_HEIGHT + PANEL_HEIGHT * waitings.len() as u32);
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let drawn = compose(&root, rows, &topologies, &waitings);
    drop(root);
    drawn.map_err(|error| anyhow::anyhow!("the figure cannot be drawn: {error}"))?;
    Ok(svg)
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut found, one| {
        if !found.contains(&one) {
            found.push(one);
        }
        found
    })
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

/// The colour of a protocol, and the lengths of dashes and gaps if it is dashed.
fn style(protocol: IncastProtocol) -> (RGBColor, Option<(u32, u32)>) {
    match protocol {
        IncastProtocol::Tickets(CounterHome::Receiver, _) => (COLORS[0], None),
        IncastProtocol::Tickets(CounterHome::Split(shares), _) => {
            (COLORS[(1 + shares.ilog2() as usize / 2) % COLORS.len()], None)
        }
        IncastProtocol::EagerDropped => (GREY, Some((2, 4))),
        IncastProtocol::EagerPiled => (GREY, Some((7, 4))),
        IncastProtocol::Rendezvous => (COLORS[5], Some((7, 4))),
    }
}

fn compose(root: &Area<'_>, rows: &[IncastRow], topologies: &[&str], waitings: &[TicketWaiting]) -> Drawn {
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE_HEIGHT);
    title.draw_text("Many senders to one receiver: simulated time to drain", &text(21), (20, 12))?;
    explain(&title, rows, root.dim_in_pixel().0)?;
    let panels = rest.split_evenly((waitings.len(), topologies.len()));
    let pairs =
        waitings.iter().flat_map(|waiting| topologies.iter().map(move |topology| (*waiting, *topology)));
    for ((waiting, topology), area) in pairs.zip(&panels) {
        draw_panel(area, rows, topology, waiting)?;
    }
    root.present()?;
    Ok(())
}

/// Draws the legend, in as many lines as needed.
fn explain(area: &Area<'_>, rows: &[IncastRow], width: u32) -> Drawn {
    const COLUMN: i32 = 262;
    let protocols = distinct(rows.iter().map(|row| row.protocol));
    let mut shown: Vec<String> = Vec::new();
    for protocol in protocols {
        let name = protocol.to_string();
        if shown.contains(&name) {
            continue;
        }
        let columns = (width as i32 - 20) / COLUMN;
        let place = shown.len() as i32;
        let (x, y) = (20 + place % columns.max(1) * COLUMN, 52 + place / columns.max(1) * 20);
        let (color, dashes) = style(protocol);
        let (dash, gap) = dashes.map_or((26, 0), |(dash, gap)| (dash as i32, gap as i32));
        for from in (x..x + 26).step_by((dash + gap) as usize) {
            area.draw(&PathElement::new([(from, y), ((from + dash).min(x + 26), y)], color.stroke_width(2)))?;
        }
        area.draw_text(&name, &text(13), (x + 32, y - 7))?;
        shown.push(name);
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, rows: &[IncastRow], topology: &str, waiting: TicketWaiting) -> Drawn {
    let how = match waiting {
        TicketWaiting::Growing => "pauses grow up to 1 ms",
        TicketWaiting::Paced => "pauses by the place in the queue",
    };
    area.draw_text(&format!("{topology}: {how}"), &text(16), (64, 4))?;
    let log = |row: &IncastRow| (f64::from(row.senders).log10(), row.outcome.last_taken.as_seconds().log10());
    let extent = |values: Vec<f64>| {
        (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(f64::MIN, f64::max))
    };
    let (left, right) = extent(rows.iter().map(|row| log(row).0).collect());
    let (low, high) = extent(rows.iter().map(|row| log(row).1).collect());
    let mut chart = ChartBuilder::on(area)
        .margin_top(28)
        .margin_left(10)
        .margin_right(18)
        .x_label_area_size(46)
        .y_label_area_size(54)
        .build_cartesian_2d(left - 0.1..right + 0.1, low.floor()..high.ceil())?;
    let is_whole = |log: f64| (log - log.round()).abs() < 0.01;
    let count = |log: &f64| if is_whole(*log) { format!("{:.0}", 10_f64.powf(*log)) } else { String::new() };
    let time = |log: &f64| {
        if is_whole(*log) { power_of_ten_seconds(10_f64.powf(log.round())) } else { String::new() }
    };
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(6).x_label_formatter(&count).x_desc("senders");
    mesh.y_labels(8).y_label_formatter(&time);
    mesh.light_line_style(WHITE).label_style(text(12)).axis_desc_style(text(14)).draw()?;
    let here = |row: &&IncastRow| {
        row.topology == topology
            && row.is_drained()
            && !matches!(row.protocol, IncastProtocol::Tickets(_, other) if other != waiting)
    };
    let rows: Vec<&IncastRow> = rows.iter().filter(here).collect();
    for protocol in distinct(rows.iter().map(|row| row.protocol)) {
        let (color, dashes) = style(protocol);
        let points: Vec<(f64, f64)> =
            rows.iter().filter(|row| row.protocol == protocol).map(|row| log(row)).collect();
        match dashes {
            None => chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?,
            Some((dash, gap)) => chart.draw_series(DashedLineSeries::new(
                points.iter().copied(),
                dash,
                gap,
                color.stroke_width(2),
            ))?,
        };
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    Ok(())
}
