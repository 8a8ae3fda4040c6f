//! The run on all ranks: iterate, then gather the strips and the reports of the ranks on rank 0.

use super::exchange::Exchange;
use super::exchange_method::ExchangeMethod;
use super::field::Field;
use super::plate::Plate;
use super::strip::{Strip, strip_of};
use super::transfer_count::{RankReport, TransferCount, nanoseconds};
use tasuki::prelude::*;

/// The solution on rank 0.
#[derive(Clone, PartialEq, Debug)]
pub struct Solution {
    /// The temperatures.
    pub field: Field,
    /// The largest change of a cell in the last iteration. It is the residual of the iteration before, in the maximum
    /// norm.
    pub residual: f64,
    /// The report of each rank, by rank.
    pub parts: Vec<RankReport>,
    /// The strips that rank 0 got from the other ranks.
    pub gathered: TransferCount,
}

/// Does `iterations` iterations on the plate. Returns the solution on rank 0 and `None` on the other ranks.
///
/// Collective: all ranks pass the same plate and number. `progress` is called after each iteration with the number of
/// iterations done. Cost on each rank: two puts of a row in each iteration, and memory for three strips.
pub fn solve(
    job: &Job,
    plate: Plate,
    iterations: usize,
    progress: impl FnMut(usize),
) -> tasuki::Result<Option<Solution>> {
    solve_by(ExchangeMethod::Puts, job, plate, iterations, progress)
}

/// [`solve`] with a method to exchange rows, the same on all ranks. All methods give the same bits.
pub fn solve_by(
    method: ExchangeMethod,
    job: &Job,
    plate: Plate,
    iterations: usize,
    mut progress: impl FnMut(usize),
) -> tasuki::Result<Option<Solution>> {
    let own = strip_of(plate.rows(), job.size(), job.rank().index());
    let [above, below] = [own.start > 0, own.end < plate.rows()].map(|inside| inside && !own.is_empty());
    let peers = [above.then(|| job.rank_after(-1)), below.then(|| job.rank_after(1))];
    let mut exchange = method.exchange(job, plate.columns(), peers)?;
    let shared = job.alloc(strip_of(plate.rows(), job.size(), 0).len() * plate.columns())?;
    let mut strip = Strip::new(plate, own);
    job.barrier()?; // so that no rank's time includes the preparation of another rank
    let begin = job.clock();
    for iteration in 0..iterations {
        step(&mut strip, &mut *exchange, iteration, iteration + 1 == iterations)?;
        progress(iteration + 1);
    }
    let [put, taken] = exchange.transfer_counts();
    let (rows, nanoseconds) = (strip.rows() as u64, nanoseconds(job.clock() - begin));
    let change = if iterations > 0 { strip.change() } else { 0.0 };
    let part = RankReport { rows, change, put, taken, nanoseconds };
    gather(job, plate, &shared, &strip, part)
}

/// One iteration. The outermost rows are computed and sent first, so that they are in flight while the other rows are
/// computed. The outermost rows of the last iteration are not sent.
fn step(
    strip: &mut Strip,
    exchange: &mut dyn Exchange,
    iteration: usize,
    is_last: bool,
) -> tasuki::Result<()> {
    strip.swap();
    exchange.take(iteration, strip)?;
    let rows = strip.rows();
    if rows > 0 {
        strip.relax(1);
        strip.relax(rows);
    }
    if !is_last {
        exchange.put(iteration + 1, strip)?;
    }
    (2..rows).for_each(|row| strip.relax(row));
    Ok(())
}

/// Gathers the strips and the reports of all ranks. `shared` is the job memory in which each rank puts its strip.
fn gather(
    job: &Job,
    plate: Plate,
    shared: &Array<f64>,
    strip: &Strip,
    part: RankReport,
) -> tasuki::Result<Option<Solution>> {
    for row in 0..strip.rows() {
        shared.write(row * plate.columns(), strip.new_row(row + 1))?;
    }
    let parts = job.world().gather(&[part], Rank(0))?; // rank 0 has all reports when all strips are in place
    let solution = parts.map(|parts| solution(job, plate, shared, parts)).transpose()?;
    job.barrier()?; // rank 0 has the strips: the memory may be freed
    Ok(solution)
}

fn solution(
    job: &Job,
    plate: Plate,
    shared: &Array<f64>,
    parts: Vec<RankReport>,
) -> tasuki::Result<Solution> {
    let (mut field, mut gathered) = (Field::new(plate), TransferCount::default());
    for rank in job.ranks() {
        let own = strip_of(plate.rows(), job.size(), rank.index());
        let rows = field.rows_mut(own.start, own.len());
        if rank == job.rank() {
            shared.read(0, rows)?;
        } else if !rows.is_empty() {
            gathered.measure(job, rows.len(), || job.get(shared.on(rank), rows))?;
        }
    }
    let residual = parts.iter().map(|part| part.change).fold(0.0, f64::max);
    Ok(Solution { field, residual, parts, gathered })
}
