//! The temperatures of a whole plate, gathered in one place.

use super::Plate;
use std::fmt;

/// All cells of a plate without its rim, row by row.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    plate: Plate,
    values: Vec<f64>,
}

/// The first cell in which two fields differ, and by how much they differ at most anywhere.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    /// Row of the first, from 0.
    pub row: usize,
    /// Column of the first, from 0.
    pub column: usize,
    /// The largest difference of all cells.
    pub most: f64,
}

impl Field {
    /// A field of zeros.
    pub fn new(plate: Plate) -> Field {
        Field { plate, values: vec![0.0; plate.rows() * plate.columns()] }
    }

    /// The plate it is of.
    pub fn plate(&self) -> Plate {
        self.plate
    }

    /// One cell, counted from 0.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.plate.columns() + column]
    }

    /// `count` rows from `first` on, counted from 0.
    pub fn rows_mut(&mut self, first: usize, count: usize) -> &mut [f64] {
        let columns = self.plate.columns();
        &mut self.values[first * columns..(first + count) * columns]
    }

    /// How this field differs from another of the same plate; `None` if all bits are equal.
    pub fn difference(&self, other: &Field) -> Option<Difference> {
        let pairs = || self.values.iter().zip(&other.values);
        let first = pairs().position(|(one, two)| one.to_bits() != two.to_bits())?;
        let most = pairs().map(|(one, two)| (one - two).abs()).fold(0.0, f64::max);
        let columns = self.plate.columns();
        Some(Difference { row: first / columns, column: first % columns, most })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "differs from the serial run by up to {:.1e}", self.most)?;
        write!(f, ", first in row {}, column {}", self.row, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differing_cell_and_the_largest_difference_are_found() {
        let field = Field::new(Plate::new(3, 4).unwrap());
        let mut other = field.clone();
        assert_eq!(field.difference(&other), None);
        other.rows_mut(1, 2)[2] = 0.25;
        other.rows_mut(2, 1)[0] = -1.0;
        assert_eq!(field.difference(&other), Some(Difference { row: 1, column: 2, most: 1.0 }));
    }

    #[test]
    fn a_difference_of_signs_of_zero_is_one() {
        let field = Field::new(Plate::new(1, 1).unwrap());
        let mut other = field.clone();
        other.rows_mut(0, 1)[0] = -0.0;
        assert!(field.difference(&other).is_some());
    }
}
