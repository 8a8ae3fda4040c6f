//! The loss as SVG: of each step, and the mean of the steps around it.

use super::Recipe;
use plotters::prelude::*;

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 500);
const MARGIN_RIGHT: u32 = 36;
const STEPS: RGBColor = RGBColor(170, 200, 228);
const MEAN: RGBColor = RGBColor(31, 95, 160);
const GUESSED: RGBColor = RGBColor(200, 110, 30);
const FRAME: RGBColor = RGBColor(200, 200, 200);
/// The window of the mean is this fraction (1 / WINDOWS) of all steps.
const WINDOWS: usize = 25;

/// Draws the losses and returns the text of the file.
pub fn curve(losses: &[f64], recipe: &Recipe, ranks: &str) -> Result<String, String> {
    let mut svg = String::new();
    draw(&mut svg, losses, recipe, ranks).map_err(|error| format!("the loss cannot be drawn: {error}"))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    losses: &[f64],
    recipe: &Recipe,
    ranks: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let Recipe { task, hidden, batch, .. } = recipe;
    let guessed = (task.classes as f64).ln();
    let most = losses.iter().copied().fold(guessed, f64::max) * 1.05;
    let title =
        format!("{}-{hidden}-{} perceptron, {batch} samples a step on {ranks}", task.inputs, task.classes);
    let end = losses.len().max(2) as f64;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(16)
        .margin_right(MARGIN_RIGHT) // half of the last label is outside the frame
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(1.0..end, 0.0..most)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("step")
        .y_desc("mean loss of a sample")
        .x_label_formatter(&|step| format!("{step:.0}"))
        .draw()?;
    let line = |from: f64, to: f64, colour: RGBColor, width: u32| {
        PathElement::new(
            vec![(from as i32, to as i32), (from as i32 + 18, to as i32)],
            colour.stroke_width(width),
        )
    };
    let points = |values: &[f64]| {
        values.iter().enumerate().map(|(at, &loss)| (at as f64 + 1.0, loss)).collect::<Vec<_>>()
    };
    let ends = vec![(1.0, guessed), (end, guessed)];
    let means = means(losses);
    for (name, points, colour, width) in [
        ("of each step", points(losses), STEPS, 1),
        ("mean of neighbouring steps", points(&means), MEAN, 2),
        ("of random guesses", ends, GUESSED, 1),
    ] {
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(width)))?
            .label(name)
            .legend(move |(x, y)| line(f64::from(x), f64::from(y), colour, width));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(FRAME)
        .label_font(("sans-serif", 15))
        .draw()?;
    root.present()?;
    Ok(())
}

/// The mean of each step and the same number of steps on both sides.
fn means(losses: &[f64]) -> Vec<f64> {
    let half = losses.len() / WINDOWS / 2;
    let mean = |at: usize| {
        let half = half.min(at).min(losses.len() - 1 - at);
        let around = &losses[at - half..=at + half];
        around.iter().sum::<f64>() / around.len() as f64
    };
    (0..losses.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Task;
    use super::*;

    #[test]
    fn the_picture_has_a_line_for_each_series_and_names_the_network() {
        let task = Task { inputs: 3, classes: 4, seed: 1 };
        let recipe = Recipe { task, hidden: 5, batch: 7, steps: 100, rate: 0.1 };
        let losses: Vec<f64> = (0..100).map(|step| 1.3 / f64::from(step + 1)).collect();
        for losses in [&losses[..], &losses[..1]] {
            let svg = curve(losses, &recipe, "2 ranks").unwrap();
            assert!(svg.contains("3-5-4 perceptron, 7 samples a step on 2 ranks"), "{svg}");
            for colour in ["#AAC8E4", "#1F5FA0", "#C86E1E"] {
                assert!(svg.matches(colour).count() >= 2, "{colour} in {svg}");
            }
        }
    }

    #[test]
    fn the_mean_of_a_line_is_the_line() {
        let line: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(means(&line).iter().zip(&line).all(|(mean, value)| (mean - value).abs() < 1e-9));
        assert!(means(&[]).is_empty());
    }
}
