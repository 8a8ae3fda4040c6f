//! The Mandelbrot set, tile by tile.

/// Rows and columns of a tile.
const SIDE: usize = 32;

/// A part of the complex plane.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    /// Width and height in pixels.
    pub size: [usize; 2],
    /// The number in the middle: its real and its imaginary part.
    pub center: [f64; 2],
    /// The width of the picture in the plane.
    pub width: f64,
    /// The most steps for a pixel. Pixels of the set take all of them.
    pub steps: u32,
}

impl View {
    /// Number of pixels.
    pub fn pixels(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.size[0].div_ceil(SIDE) * self.size[1].div_ceil(SIDE)
    }

    /// The pixels of a tile, by column and row. Tiles at the right and lower border may be smaller.
    fn pixels_of(&self, tile: usize) -> impl Iterator<Item = [usize; 2]> + use<> {
        let ([width, height], across) = (self.size, self.size[0].div_ceil(SIDE));
        let (left, top) = (tile % across * SIDE, tile / across * SIDE);
        let columns = left..(left + SIDE).min(width);
        (top..(top + SIDE).min(height)).flat_map(move |row| columns.clone().map(move |column| [column, row]))
    }

    /// Computes a tile: for each pixel the steps until its number is known to be outside of the set.
    pub fn tile(&self, tile: usize) -> Vec<u32> {
        self.pixels_of(tile).map(|pixel| self.steps_of(pixel)).collect()
    }

    /// Writes the values of a tile to their places in the picture.
    pub fn place(&self, tile: usize, values: &[u32], picture: &mut [u32]) {
        for ([column, row], value) in self.pixels_of(tile).zip(values) {
            picture[row * self.size[0] + column] = *value;
        }
    }

    fn steps_of(&self, [column, row]: [usize; 2]) -> u32 {
        let ([width, height], unit) = (self.size, self.width / self.size[0] as f64);
        let re = self.center[0] + (column as f64 - width as f64 / 2.0) * unit;
        let im = self.center[1] + (row as f64 - height as f64 / 2.0) * unit;
        let (mut x, mut y) = (0.0_f64, 0.0_f64);
        for step in 0..self.steps {
            let (squared_x, squared_y) = (x * x, y * y);
            if squared_x + squared_y > 4.0 {
                return step;
            }
            (x, y) = (squared_x - squared_y + re, 2.0 * x * y + im);
        }
        self.steps
    }
}
