//! The plate: its cells, and the cells whose temperature is held.
//!
//! The plate contains two interleaved spirals, one hot (1) and one cold (0). Along its rim two warm and two cold
//! stretches alternate. The shapes are half circles and polynomials, computed with `+ - * /` and comparisons only:
//! every rank computes them itself, and all processors get the same bits.

/// The largest number of cells. A run with its check keeps about six numbers of 8 bytes for each cell, so this is 3
/// GiB.
pub const CELLS_MAX: usize = 1 << 26;

/// The initial temperature of cells that are not held: the mean of hot and cold.
const START: f64 = 0.5;

/// Half circles of a spiral: one and a half turns.
const HALF_TURNS: usize = 3;
/// The distance of the two centres of the half circles from the centre of the plate, in units of the plate's shorter
/// side. The radius grows by twice this distance at each half turn, and the spirals end at `(2 * HALF_TURNS + 1) *
/// CENTRE` = 0.42 of 0.5.
const CENTRE: f64 = 0.06;
/// Half the width of a spiral, in units of the plate's shorter side.
const HALF_WIDTH: f64 = 0.016;

/// A plate of `rows x columns` cells inside a rim that is one cell wide and not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plate {
    rows: usize,
    columns: usize,
}

impl Plate {
    /// Makes a plate of 1 to [`CELLS_MAX`] cells, or returns a sentence that says what is wrong.
    pub fn new(rows: usize, columns: usize) -> Result<Plate, String> {
        if rows == 0 || columns == 0 {
            return Err("a plate has at least one row and one column".into());
        }
        match rows.checked_mul(columns) {
            Some(cells) if cells <= CELLS_MAX => Ok(Plate { rows, columns }),
            _ => Err(format!("{rows} x {columns} cells are more than {CELLS_MAX}, which need 3 GiB")),
        }
    }

    /// Rows without the rim.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns without the rim.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The temperature at which a cell is held, if it is held. Row and column 0 and the last ones, `rows + 1` and
    /// `columns + 1`, are the rim, which is held everywhere.
    pub fn held(&self, row: usize, column: usize) -> Option<f64> {
        let (down, right) = (row as f64 / (self.rows + 1) as f64, column as f64 / (self.columns + 1) as f64);
        let around = match (row, column) {
            (0, _) => right,
            (_, last) if last == self.columns + 1 => 1.0 + down,
            (last, _) if last == self.rows + 1 => 3.0 - right,
            (_, 0) => 4.0 - down,
            _ => return self.spiral(row, column),
        };
        Some(rim(around / 4.0))
    }

    /// The temperature of a cell before the first iteration.
    pub fn start(&self, row: usize, column: usize) -> f64 {
        self.held(row, column).unwrap_or(START)
    }

    /// The temperature of the spiral that covers a cell, if one does.
    fn spiral(&self, row: usize, column: usize) -> Option<f64> {
        let side = self.rows.min(self.columns) as f64;
        let from_middle = |at: usize, of: usize| (at as f64 - (of + 1) as f64 / 2.0) / side;
        let (x, y) = (from_middle(column, self.columns), from_middle(row, self.rows));
        if hot_covers(x, y) {
            return Some(1.0);
        }
        hot_covers(-x, -y).then_some(0.0) // the cold spiral is the hot one turned by half a turn
    }
}

/// Returns true if the hot spiral covers a point. Above the middle it consists of the even half circles around one
/// centre, below the middle of the odd ones around the other centre. Its ends are round.
fn hot_covers(x: f64, y: f64) -> bool {
    let (centre, first) = if y < 0.0 { (CENTRE, 0) } else { (-CENTRE, 1) };
    let on_arc = (first..HALF_TURNS).step_by(2).any(|turn| {
        let radius = radius(turn);
        let (inner, outer) = (radius - HALF_WIDTH, radius + HALF_WIDTH);
        (inner * inner..=outer * outer).contains(&squared_distance(x - centre, y))
    });
    let ends = [CENTRE - radius(0), CENTRE + radius(HALF_TURNS - 1)];
    on_arc || ends.iter().any(|end| squared_distance(x - end, y) <= HALF_WIDTH * HALF_WIDTH)
}

/// The radius of a half circle.
fn radius(turn: usize) -> f64 {
    2.0 * CENTRE * (turn + 1) as f64
}

fn squared_distance(x: f64, y: f64) -> f64 {
    x * x + y * y
}

/// The temperature of the rim: two smooth bumps along the way around, which runs from 0 to 1.
fn rim(around: f64) -> f64 {
    let along = (2.0 * around + 0.55) % 1.0;
    let bump = 4.0 * along * (1.0 - along);
    bump * bump
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rim_is_held_everywhere_and_is_continuous() {
        let plate = Plate::new(200, 300).unwrap();
        let top = (0..=301).map(|column| (0, column));
        let right = (0..=201).map(|row| (row, 301));
        let bottom = (0..=301).rev().map(|column| (201, column));
        let left = (0..=201).rev().map(|row| (row, 0));
        let around: Vec<f64> =
            top.chain(right).chain(bottom).chain(left).map(|(r, c)| plate.held(r, c).unwrap()).collect();
        assert!(around.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 0.03));
        assert!(around.iter().copied().fold(0.0, f64::max) > 0.99);
        assert!(around.iter().copied().fold(1.0, f64::min) < 0.01);
    }

    #[test]
    fn the_spirals_mirror_each_other_and_do_not_touch() {
        let plate = Plate::new(300, 300).unwrap();
        let mut held = [0, 0];
        for (row, column) in (1..=300).flat_map(|row| (1..=300).map(move |column| (row, column))) {
            let here = plate.held(row, column);
            assert_eq!(plate.held(301 - row, 301 - column), here.map(|t| 1.0 - t), "{row} {column}");
            let Some(here) = here else { continue };
            held[here as usize] += 1;
            assert!(plate.held(row, column + 1).is_none_or(|next| next == here), "{row} {column}");
        }
        assert_eq!(held[0], held[1]);
        assert!(held[0] > 4_000, "{held:?}");
    }

    #[test]
    fn plates_of_invalid_sizes_are_refused() {
        assert!(Plate::new(0, 5).unwrap_err().contains("at least one"));
        assert!(Plate::new(1 << 14, 1 << 13).unwrap_err().contains("3 GiB"));
        assert!(Plate::new(usize::MAX, 2).is_err());
    }
}
