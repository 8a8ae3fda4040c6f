//! One rank's rows of the plate, with room for a row of each neighbour, and Jacobi's step on them.

use super::Plate;
use std::ops::Range;

/// The rows of `rank`, counted from 0, when `rows` are dealt to `ranks`: as even as can be, the first ranks one
/// more where it does not divide, the last ones none where there are fewer rows than ranks.
pub fn strip_of(rows: usize, ranks: usize, rank: usize) -> Range<usize> {
    let (each, more) = (rows / ranks, rows % ranks);
    let first = rank * each + rank.min(more);
    first..first + each + usize::from(rank < more)
}

/// A strip in two iterations: the old one is read, the new one written.
///
/// Rows are counted from 1; row 0 and the row behind the last are ghost rows: the neighbours' nearest rows, or the
/// rim.
#[derive(Debug)]
pub struct Strip {
    rows: usize,
    /// Columns of the plate with the rim on both sides.
    width: usize,
    old: Vec<f64>,
    new: Vec<f64>,
    held: Held,
}

/// The cells that keep their temperature: column and temperature, row by row.
#[derive(Debug)]
struct Held {
    cells: Vec<(usize, f64)>,
    /// Where the cells of row `i + 1` begin; one more at the end.
    begin: Vec<usize>,
}

impl Strip {
    /// The rows `own` of the plate, counted from 0, as they are before the first iteration.
    pub fn new(plate: Plate, own: Range<usize>) -> Strip {
        let width = plate.columns() + 2;
        let with_ghosts = own.start..own.end + 2;
        let start = |row| (0..width).map(move |column| plate.start(row, column));
        let values: Vec<f64> = with_ghosts.flat_map(start).collect();
        let held = Held::new(plate, own.clone());
        Strip { rows: own.len(), width, old: values.clone(), new: values, held }
    }

    /// How many rows, without ghosts.
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

    /// The ghost row above the strip in the old iteration, without the rim.
    pub fn ghost_above(&mut self) -> &mut [f64] {
        self.ghost(0)
    }

    /// The ghost row below the strip.
    pub fn ghost_below(&mut self) -> &mut [f64] {
        self.ghost(self.rows + 1)
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

    /// By how much the step has changed a cell at most. Of `old` it is the residual in the maximum norm: how far a
    /// cell is from the mean of its neighbours.
    pub fn change(&self) -> f64 {
        let rows = 1..self.rows + 1;
        rows.map(|row| most_apart(self.new_row(row), self.old_row(row))).fold(0.0, f64::max)
    }

    /// The new iteration becomes the old one.
    pub fn turn(&mut self) {
        std::mem::swap(&mut self.old, &mut self.new);
    }

    fn ghost(&mut self, row: usize) -> &mut [f64] {
        &mut self.old[row * self.width + 1..(row + 1) * self.width - 1]
    }
}

fn inner(values: &[f64], width: usize, row: usize) -> &[f64] {
    &values[row * width + 1..(row + 1) * width - 1]
}

fn most_apart(one: &[f64], two: &[f64]) -> f64 {
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

    /// 2 + x - 3 y + x y is harmonic also in the sense of the four neighbours: a step must not change it.
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
            (1..=5).map(|row| most_apart(strip.new_row(row), strip.old_row(row))).fold(0.0, f64::max),
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
            strip.turn();
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
