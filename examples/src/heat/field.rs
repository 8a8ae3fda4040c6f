//! The temperatures of a whole plate on one rank.

use super::Plate;
use std::fmt;

/// All cells of a plate without its rim, row by row.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    plate: Plate,
    values: Vec<f64>,
}

/// The first cell in which two fields differ, and the largest difference of all cells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    /// The row of the first cell that differs, from 0.
    pub row: usize,
    /// The column of the first cell that differs, from 0.
    pub column: usize,
    /// The largest difference of all cells.
    pub max: f64,
}

impl Field {
    /// A field of zeros.
    pub fn new(plate: Plate) -> Field {
        Field { plate, values: vec![0.0; plate.rows() * plate.columns()] }
    }

    /// The plate of this field.
    pub fn plate(&self) -> Plate {
        self.plate
    }

    /// The temperature of one cell; row and column count from 0.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.plate.columns() + column]
    }

    /// `count` rows from row `first` on, counted from 0.
    pub fn rows_mut(&mut self, first: usize, count: usize) -> &mut [f64] {
        let columns = self.plate.columns();
        &mut self.values[first * columns..(first + count) * columns]
    }

    /// Compares this field with another one of the same plate. Returns `None` if all bits are equal.
    pub fn difference(&self, other: &Field) -> Option<Difference> {
        let pairs = || self.values.iter().zip(&other.values);
        let first = pairs().position(|(one, two)| one.to_bits() != two.to_bits())?;
        let max = pairs().map(|(one, two)| (one - two).abs()).fold(0.0, f64::max);
        let columns = self.plate.columns();
        Some(Difference { row: first / columns, column: first % columns, max })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "differs from the serial run by up to {:.1e}", self.max)?;
        write!(f, ", first in row {}, column {}", self.row, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_reports_the_first_cell_and_the_largest_difference() {
        let field = Field::new(Plate::new(3, 4).unwrap());
        let mut other = field.clone();
        assert_eq!(field.difference(&other), None);
        other.rows_mut(1, 2)[2] = 0.25;
        other.rows_mut(2, 1)[0] = -1.0;
        assert_eq!(field.difference(&other), Some(Difference { row: 1, column: 2, max: 1.0 }));
    }

    #[test]
    fn negative_zero_differs_from_zero() {
        let field = Field::new(Plate::new(1, 1).unwrap());
        let mut other = field.clone();
        other.rows_mut(0, 1)[0] = -0.0;
        assert!(field.difference(&other).is_some());
    }
}
