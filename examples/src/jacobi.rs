//! Jacobi's iteration on a grid of ranks, each of which has a tile of a plate and one row or column of halos on each
//! side.
//!
//! In each step every cell becomes the mean of its four neighbours. All cells are 0 at first, and the rim of the plate,
//! one cell wide and not counted, is held at 1. Before each step the members of the grid exchange the outermost rows
//! and columns of their tiles in one call, which takes them from the tile and puts them into the halos. A member at the
//! rim has no neighbour there, and its halo stays the rim.

use crate::heat::strip_of;
use crate::progress_bar;
use tasuki::message::StridedMut;
use tasuki::prelude::*;

/// The ranks agree on the largest change of a cell each time after this number of steps.
const REPORT_AFTER: usize = 100;

/// A plate or a tile of zeros with its rim or its halos of ones, row by row. A tile beyond the end of a small plate has
/// no cells, but an edge of ones: the rim.
fn start(rows: usize, columns: usize) -> Vec<f64> {
    let mut cells = vec![1.0; (rows.max(1) + 2) * (columns.max(1) + 2)];
    inside(rows, columns).for_each(|at| cells[at] = 0.0);
    cells
}

/// The indices of the cells without rim or halos, row by row.
fn inside(rows: usize, columns: usize) -> impl Iterator<Item = usize> {
    (1..=rows).flat_map(move |row| row * (columns + 2) + 1..=row * (columns + 2) + columns)
}

/// One step. Returns the largest change of a cell.
fn relax(old: &mut Vec<f64>, new: &mut Vec<f64>, rows: usize, columns: usize) -> f64 {
    let (mut change, width) = (0.0_f64, columns + 2);
    for at in inside(rows, columns) {
        new[at] = ((old[at - width] + old[at + width]) + (old[at - 1] + old[at + 1])) / 4.0;
        change = change.max((new[at] - old[at]).abs());
    }
    std::mem::swap(old, new);
    change
}

/// Does `steps` steps on a plate of `sides` rows and columns. Returns the largest change of a cell in the last step and
/// the cells, on rank 0, and `None` on other ranks.
///
/// Collective. Rank 0 draws a progress bar. Cost, besides the work: two messages to each neighbour in each step.
pub fn solve(job: &Job, sides: [usize; 2], steps: usize) -> tasuki::Result<Option<(f64, Vec<f64>)>> {
    let bar = progress_bar::on_first_rank(job, "{wide_bar} {msg}, {pos} of {len} steps, {elapsed}");
    bar.set_length(steps as u64);
    let grid = Cartesian::new(job.world(), dims_create(job.size(), [0, 0])?, [false, false])?;
    let tile = |at: [usize; 2]| [0, 1].map(|dim| strip_of(sides[dim], grid.dims()[dim], at[dim]));
    let [rows, columns] = tile(grid.coords()).map(|own| own.len());
    let (mut old, mut new, mut change) = (start(rows, columns), start(rows, columns), 0.0);
    for step in 1..=steps {
        let (edges, mut halos) = StridedMut::edges_and_halos(&mut old, columns.max(1) + 2, 1);
        grid.neighbor_alltoall((&edges, &mut halos))?;
        let own_change = relax(&mut old, &mut new, rows, columns);
        if step % REPORT_AFTER == 0 || step == steps {
            change = job.world().allreduce(&own_change, Max)?;
            bar.set_message(format!("change {change:.1e}"));
            bar.set_position(step as u64);
        }
    }
    bar.finish_and_clear();
    let own: Vec<f64> = inside(rows, columns).map(|at| old[at]).collect();
    let Some(all) = job.world().gather(Uneven(&own), Rank(0))? else { return Ok(None) };
    let mut cells = vec![0.0; sides[0] * sides[1]];
    let coords = job.world().members().iter().filter_map(|member| grid.coords_of(member));
    for ([rows, columns], values) in coords.map(tile).zip(all.iter()) {
        let places = rows.flat_map(|row| columns.clone().map(move |column| row * sides[1] + column));
        places.zip(values).for_each(|(place, &value)| cells[place] = value);
    }
    Ok(Some((change, cells)))
}

/// The same steps without ranks.
pub fn serial([rows, columns]: [usize; 2], steps: usize) -> (f64, Vec<f64>) {
    let (mut old, mut new) = (start(rows, columns), start(rows, columns));
    let change = (0..steps).fold(0.0, |_, _| relax(&mut old, &mut new, rows, columns));
    (change, inside(rows, columns).map(|at| old[at]).collect())
}
