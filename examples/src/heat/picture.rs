//! The picture of a field: perceptually uniform colours from black (0) to pale yellow (1), lines of equal temperature
//! at every twentieth, and ticks at both sides where one rank's rows end.

use super::Field;
use crate::png_file;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::path::Path;

/// The smallest and the largest length of a side in pixels. A plate whose sides have a ratio of more than four is
/// stretched.
const SIDE: RangeInclusive<usize> = 512..=2048;
/// Pixels of the longer side within these limits.
const LONGER_SIDE: f64 = 1024.0;

/// Number of equal steps into which lines of equal temperature divide the range of temperatures.
const LINES: f64 = 20.0;
/// Half the width of a line in pixels, including its soft edge.
const LINE_REACH: f64 = 1.2;
/// The opacity of every other line, from 0 to 1, and of the lines between them.
const LINE_STRENGTHS: [f64; 2] = [0.5, 0.25];
/// A line is white where the temperature is below this value, and black above it.
const DARK_BELOW: f64 = 0.52;
/// Below this change of temperature per pixel no line is drawn: it would be a blot.
const FLAT: f64 = 1e-5;

/// Size of the ticks in pixels.
const TICK: (usize, usize) = (24, 3);

/// The pixels of a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    width: usize,
    height: usize,
    /// Red, green, blue; row by row.
    rgb: Vec<u8>,
}

/// Checks that a picture can be written to this path. Leaves no file behind.
pub fn check_writable(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            File::create_new(path)?;
            std::fs::remove_file(path)
        }
        outcome => outcome.map(drop),
    }
}

impl Picture {
    /// Draws a field whose rows are distributed over ranks; `rows_by_rank` has each rank's number of rows.
    pub fn draw_field(field: &Field, rows_by_rank: &[usize]) -> Picture {
        let (rows, columns) = (field.plate().rows(), field.plate().columns());
        let scale = LONGER_SIDE / rows.max(columns) as f64;
        let side = |cells: usize| ((cells as f64 * scale) as usize).clamp(*SIDE.start(), *SIDE.end());
        let (width, height) = (side(columns), side(rows));
        let mut picture = Picture { width, height, rgb: vec![0; width * height * 3] };
        picture.draw(&Canvas { field, width, height });
        picture.mark(rows, rows_by_rank);
        picture
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows of pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Writes the picture as PNG.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        png_file::write(path, self.width, self.height, &self.rgb)
    }

    fn draw(&mut self, canvas: &Canvas<'_>) {
        for (at, pixel) in self.rgb.chunks_exact_mut(3).enumerate() {
            pixel.copy_from_slice(&canvas.color(at % self.width, at / self.width));
        }
    }

    /// Draws ticks where the rows of one rank end and those of the next begin.
    fn mark(&mut self, rows: usize, rows_by_rank: &[usize]) {
        let ends = rows_by_rank.iter().scan(0, |end, rows| {
            *end += rows;
            Some(*end)
        });
        for end in ends.filter(|&end| 0 < end && end < rows) {
            let top = (end * self.height / rows).saturating_sub(TICK.1 / 2);
            for y in top..(top + TICK.1).min(self.height) {
                let row = &mut self.rgb[y * self.width * 3..(y + 1) * self.width * 3];
                row[..TICK.0 * 3].fill(255);
                row[(self.width - TICK.0) * 3..].fill(255);
            }
        }
    }
}

/// A field that is stretched over pixels.
struct Canvas<'f> {
    field: &'f Field,
    width: usize,
    height: usize,
}

impl Canvas<'_> {
    fn color(&self, x: usize, y: usize) -> [u8; 3] {
        let here = self.value(x, y);
        let ground = colorous::INFERNO.eval_continuous(here.clamp(0.0, 1.0));
        let nearest = (here * LINES).round() / LINES;
        let strength = if 0.0 < nearest && nearest < 1.0 { self.line(x, y, here, nearest) } else { 0.0 };
        let line = if nearest < DARK_BELOW { 255.0 } else { 0.0 };
        let shades = [ground.r, ground.g, ground.b].map(f64::from);
        shades.map(|shade| (shade * (1.0 - strength) + line * strength).round() as u8)
    }

    /// The opacity of the line of temperature `nearest` at a pixel with temperature `here`. The distance to the line
    /// in pixels is the difference of temperature divided by the slope. Lines fade where the slope is too steep for
    /// them.
    fn line(&self, x: usize, y: usize, here: f64, nearest: f64) -> f64 {
        let right = self.value((x + 1).min(self.width - 1), y);
        let down = self.value(x, (y + 1).min(self.height - 1));
        let slope = (right - here).hypot(down - here);
        if slope < FLAT {
            return 0.0;
        }
        let pixels = (here - nearest).abs() / slope;
        let strength = LINE_STRENGTHS[(nearest * LINES).round() as usize % 2];
        let crowded = (slope * LINES * 2.0).min(1.0);
        (LINE_REACH - pixels).clamp(0.0, 1.0) * strength * (1.0 - crowded)
    }

    /// The temperature at the centre of a pixel, interpolated between the centres of the four cells around it.
    fn value(&self, x: usize, y: usize) -> f64 {
        let plate = self.field.plate();
        let (left, right, across) = between(x, self.width, plate.columns());
        let (top, bottom, down) = between(y, self.height, plate.rows());
        let at = |row| self.field.at(row, left) * (1.0 - across) + self.field.at(row, right) * across;
        at(top) * (1.0 - down) + at(bottom) * down
    }
}

/// The cells before and after the centre of a pixel, and the weight of the second one.
fn between(pixel: usize, pixels: usize, cells: usize) -> (usize, usize, f64) {
    let place = (pixel as f64 + 0.5) / pixels as f64 * cells as f64 - 0.5;
    let place = place.clamp(0.0, (cells - 1) as f64);
    let before = place as usize;
    (before, (before + 1).min(cells - 1), place - before as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{Plate, serial};

    fn picture(rows: usize, columns: usize) -> Picture {
        Picture::draw_field(&serial(Plate::new(rows, columns).unwrap(), 3, |_| ()), &[])
    }

    #[test]
    fn the_picture_has_the_plate_s_proportions_within_limits() {
        let sides = |rows, columns| {
            let picture = picture(rows, columns);
            (picture.height(), picture.width())
        };
        assert_eq!(sides(100, 100), (1024, 1024));
        assert_eq!(sides(1, 1), (1024, 1024));
        assert_eq!(sides(300, 400), (768, 1024));
        assert_eq!(sides(1, 90), (512, 1024));
    }

    #[test]
    fn hot_is_light_and_cold_is_dark() {
        let mut field = Field::new(Plate::new(2, 1).unwrap());
        field.rows_mut(1, 1)[0] = 1.0;
        let picture = Picture::draw_field(&field, &[]);
        let brightness = |pixel: &[u8]| pixel.iter().map(|&shade| u32::from(shade)).sum::<u32>();
        assert!(brightness(&picture.rgb[..3]) < 30);
        assert!(brightness(&picture.rgb[picture.rgb.len() - 3..]) > 500);
    }

    #[test]
    fn ticks_are_only_at_rank_boundaries() {
        let field = Field::new(Plate::new(4, 4).unwrap());
        let plain = Picture::draw_field(&field, &[4, 0]);
        let marked = Picture::draw_field(&field, &[1, 3]);
        let differing = (0..1024).filter(|y| {
            let row = y * 1024 * 3..(y + 1) * 1024 * 3;
            plain.rgb[row.clone()] != marked.rgb[row]
        });
        assert_eq!(differing.collect::<Vec<_>>(), [255, 256, 257]);
    }

    #[test]
    fn check_writable_refuses_folders_and_missing_folders() {
        assert!(check_writable(Path::new("/")).is_err());
        assert!(check_writable(Path::new("no such folder/heat.png")).is_err());
    }
}
