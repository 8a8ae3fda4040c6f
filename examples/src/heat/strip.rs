//! One rank's rows of the plate, with ghost rows for the neighbours, and Jacobi's step on them.

use super::Plate;
use std::ops::Range;

/// The rows of `rank`, counted from 0, when `rows` rows are distributed over `ranks` ranks as evenly as possible: the
/// first ranks get one more row if the division leaves a remainder; the last ranks get none if there are fewer rows
/// than ranks.
pub fn strip_of(rows: usize, ranks: usize, rank: usize) -> Range<usize> {
    let (each, remainder) = (rows / ranks, rows % ranks);
    let first = rank * each + rank.min(remainder);
    first..first + each + usize::from(rank < remainder)
}

/// A strip in two iterations: the old one is read, the new one is written.
///
/// Rows are counted from 1. Row 0 and the row after the last are ghost rows: the nearest row of a neighbour, or the
/// rim.
#[derive(Debug)]
pub struct Strip {
    rows: usize,
    /// Columns of the plate, including the rim on both sides.
    width: usize,
    old: Vec<f64>,
    new: Vec<f64>,
    held: Held,
}

/// The cells whose temperature is held: column and temperature, row by row.
#[derive(Debug)]
struct Held {
    cells: Vec<(usize, f64)>,
    /// The beginning of the cells of row `i + 1`, and the end of the last row.
    begin: Vec<usize>,
}

impl Strip {
    /// The rows `own` of the plate, counted from 0, before the first iteration.
    pub fn new(plate: Plate, own: Range<usize>) -> Strip {
        let width = plate.columns() + 2;
        let with_ghosts = own.start..own.end + 2;
        let start = |row| (0..width).map(move |column| plate.start(row, column));
        let values: Vec<f64> = with_ghosts.flat_map(start).collect();
        let held = Held::new(plate, own.clone());
        Strip { rows: own.len(), width, old: values.clone(), new: values, held }
    }

    /// The number of rows without ghost rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The new row `row`, 1 to `rows`, without the rim.
    pub fn new_row(&self, row: usize) -> &[f64] {
        inner(&self.new, self.width, row)
    }

    /// The old row `row`, 1 to `rows`, without the rim.
    pub fn old_row(&self, row: usize) -> &[f64] {
        inner(&self.old, self.width, row)
    }

    /// The outermost new row above (side 0) or below (side 1), without the rim.
    pub fn edge(&self, side: usize) -> &[f64] {
        self.new_row([1, self.rows][side])
    }

    /// The ghost row above (side 0) or below (side 1) in the old iteration, without the rim.
    pub fn ghost(&mut self, side: usize) -> &mut [f64] {
        let row = [0, self.rows + 1][side];
        &mut self.old[row * self.width + 1..(row + 1) * self.width - 1]
    }

    /// Computes the new row `row`, 1 to `rows`, from the old rows around it.
    pub fn relax(&mut self, row: usize) {
        let old = |row: usize| &self.old[row * self.width..(row + 1) * self.width];
        let (above, here, below) = (old(row - 1), old(row), old(row + 1));
        let new = &mut self.new[row * self.width..(row + 1) * self.width];
        let inside = 1..self.width - 1;
        let vertical = above[inside.clone()].iter().zip(&below[inside.clone()]);
        let horizontal = here.iter().zip(&here[2..]);
        for ((new, (up, down)), (left, right)) in new[inside].iter_mut().zip(vertical).zip(horizontal) {
            *new = ((up + down) + (left + right)) * 0.25;
        }
        for &(column, temperature) in self.held.of(row) {
            new[column] = temperature;
        }
    }

    /// The largest change of a cell in the step. It is the residual of `old` in the maximum norm: the largest
    /// distance of a cell from the mean of its neighbours.
    pub fn change(&self) -> f64 {
        let rows = 1..self.rows + 1;
        rows.map(|row| max_difference(self.new_row(row), self.old_row(row))).fold(0.0, f64::max)
    }

    /// Makes the new iteration the old one.
    pub fn swap(&mut self) {
        std::mem::swap(&mut self.old, &mut self.new);
    }
}

fn inner(values: &[f64], width: usize, row: usize) -> &[f64] {
    &values[row * width + 1..(row + 1) * width - 1]
}

fn max_difference(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| (one - two).abs()).fold(0.0, f64::max)
}

impl Held {
    fn new(plate: Plate, own: Range<usize>) -> Held {
        let mut held = Held { cells: Vec::new(), begin: vec![0] };
        for row in own {
            let columns = 1..plate.columns() + 1;
            let cells = columns.filter_map(|column| Some((column, plate.held(row + 1, column)?)));
            held.cells.extend(cells);
            held.begin.push(held.cells.len());
        }
        held
    }

    fn of(&self, row: usize) -> &[(usize, f64)] {
        &self.cells[self.begin[row - 1]..self.begin[row]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_all_rows_once_and_differ_by_one_at_most() {
        for (rows, ranks) in [(1, 1), (10, 3), (3, 7), (512, 4), (7, 7), (100, 64)] {
            let strips: Vec<_> = (0..ranks).map(|rank| strip_of(rows, ranks, rank)).collect();
            assert_eq!(strips.iter().cloned().flatten().collect::<Vec<_>>(), (0..rows).collect::<Vec<_>>());
            let lengths = strips.iter().map(Range::len);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1, "{rows} on {ranks}");
        }
    }

    /// 2 + x - 3 y + x y is harmonic also for the mean of four neighbours: a step must not change it.
    #[test]
    fn a_step_keeps_a_harmonic_field() {
        let mut strip = Strip::new(Plate::new(5, 9).unwrap(), 0..5);
        strip.held = Held { cells: Vec::new(), begin: vec![0; 6] };
        let harmonic = |at: usize| {
            let (x, y) = ((at % 11) as f64, (at / 11) as f64);
            2.0 + x - 3.0 * y + x * y
        };
        strip.old = (0..7 * 11).map(harmonic).collect();
        strip.new.fill(f64::NAN);
        (1..=5).for_each(|row| strip.relax(row));
        assert_eq!(
            (1..=5).map(|row| max_difference(strip.new_row(row), strip.old_row(row))).fold(0.0, f64::max),
            0.0
        );
        assert!(strip.new_row(3).iter().all(|value| value.is_finite()));
    }

    #[test]
    fn held_cells_keep_their_temperature_and_others_change() {
        let plate = Plate::new(60, 60).unwrap();
        let mut strip = Strip::new(plate, 10..50);
        for _ in 0..5 {
            (1..=40).for_each(|row| strip.relax(row));
            strip.swap();
        }
        let mut changed = 0;
        for (row, column) in (1..=40).flat_map(|row| (1..=60).map(move |column| (row, column))) {
            let now = strip.old_row(row)[column - 1];
            match plate.held(row + 10, column) {
                Some(held) => assert_eq!(now, held),
                None => changed += usize::from(now != 0.5),
            }
        }
        assert!(changed > 500, "{changed}");
    }
}
