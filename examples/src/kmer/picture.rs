//! The histogram of counts as SVG: how many words occur once, twice, and so on.

use super::counts::Counts;
use plotters::prelude::*;

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 500);
/// The largest number of bars. The last bar also contains all larger counts.
const BARS: u64 = 60;
const COLOR: RGBColor = RGBColor(31, 95, 160);

/// Draws the histogram and returns the text of the file.
pub fn histogram(counts: &Counts) -> Result<String, String> {
    let mut bars = vec![0_u64; BARS as usize + 1];
    for (count, words) in counts.histogram() {
        bars[count.min(BARS) as usize] += words;
    }
    let mut svg = String::new();
    draw(&mut svg, counts, &bars).map_err(|error| format!("the histogram cannot be drawn: {error}"))?;
    Ok(svg)
}

/// The axis for the number of words is logarithmic, because many words occur once and few occur often.
fn draw(svg: &mut String, counts: &Counts, bars: &[u64]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let last = bars.iter().rposition(|&words| words > 0).unwrap_or(1) as f64;
    let most = bars.iter().copied().max().unwrap_or(1).max(1) as f64;
    let title = format!("{} different words of {} letters", counts.distinct(), counts.shape().k);
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0.5..last + 0.5, (0.5..most * 1.5).log_scale())?;
    let description = format!("occurrences of a word ({BARS}: or more)");
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_desc(description)
        .y_desc("different words")
        .x_label_formatter(&|at| format!("{at:.0}"))
        .y_label_formatter(&|words| format!("{words:.0}"))
        .draw()?;
    chart.draw_series(bars.iter().enumerate().filter(|(_, words)| **words > 0).map(|(count, &words)| {
        let (at, top) = (count as f64, words as f64);
        Rectangle::new([(at - 0.4, 0.5), (at + 0.4, top)], COLOR.filled())
    }))?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::word::Shape;
    use super::*;

    #[test]
    fn each_count_that_occurs_has_a_bar() {
        let shape = Shape { k: 3, canonical: true };
        let bars = |counts: Vec<(u64, u64)>| {
            histogram(&Counts::new(shape, counts)).unwrap().matches("fill=\"#1F5FA0\"").count()
        };
        assert_eq!(bars(vec![(0, 1), (1, 1), (2, 5), (3, 1000), (4, 2000)]), 3);
        assert_eq!(bars(vec![]), 0);
    }
}
