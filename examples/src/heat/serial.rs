//! The same iterations without ranks on one grid, written independently of the parallel code so that it can check it.

use super::{Field, Plate};

/// The plate after `iterations` iterations. `progress` is called after each iteration with the number of iterations
/// done.
pub fn serial(plate: Plate, iterations: usize, mut progress: impl FnMut(usize)) -> Field {
    let (rows, columns) = (plate.rows(), plate.columns());
    let width = columns + 2;
    let cells = (0..rows + 2).flat_map(|row| (0..width).map(move |column| (row, column)));
    let mut old: Vec<f64> = cells.clone().map(|(row, column)| plate.start(row, column)).collect();
    let held = cells.enumerate().filter_map(|(at, (row, column))| Some((at, plate.held(row, column)?)));
    let held: Vec<(usize, f64)> = held.collect();
    let mut new = old.clone();
    for iteration in 0..iterations {
        relax(&old, &mut new, width);
        held.iter().for_each(|&(at, temperature)| new[at] = temperature);
        std::mem::swap(&mut old, &mut new);
        progress(iteration + 1);
    }
    let mut field = Field::new(plate);
    for row in 0..rows {
        field.rows_mut(row, 1).copy_from_slice(&old[(row + 1) * width + 1..][..columns]);
    }
    field
}

/// Computes all cells from the first inner one to the last as if they were one long row. This also changes the rim,
/// which the caller restores.
fn relax(old: &[f64], new: &mut [f64], width: usize) {
    let first = width + 1;
    let count = old.len() - 2 * first;
    let from = |at: usize| &old[at..at + count];
    let (up, down) = (from(first - width), from(first + width));
    let (left, right) = (from(first - 1), from(first + 1));
    let new = &mut new[first..first + count];
    for at in 0..count {
        new[at] = ((up[at] + down[at]) + (left[at] + right[at])) * 0.25;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plate_of_one_cell_is_the_mean_of_its_rim_after_one_iteration() {
        let plate = Plate::new(1, 1).unwrap();
        let rim = |row, column| plate.held(row, column).unwrap();
        let held = plate.held(1, 1);
        let mean = ((rim(0, 1) + rim(2, 1)) + (rim(1, 0) + rim(1, 2))) * 0.25;
        assert_eq!(serial(plate, 1, |_| ()).at(0, 0), held.unwrap_or(mean));
        assert_eq!(serial(plate, 0, |_| ()).at(0, 0), plate.start(1, 1));
    }

    /// The more iterations, the nearer every cell is to the mean of its neighbours.
    #[test]
    fn the_iteration_converges() {
        let plate = Plate::new(20, 20).unwrap();
        let change = |iterations| {
            let difference =
                serial(plate, iterations, |_| ()).difference(&serial(plate, iterations + 1, |_| ()));
            difference.map_or(0.0, |difference| difference.max)
        };
        assert!(change(10) > 1e-3);
        assert!(change(500) < 1e-6);
    }
}
