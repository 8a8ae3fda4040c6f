//! The run on all ranks: iterate, then rank 0 gets the strips and what each rank tells.

use super::exchange::{Exchange, Way};
use super::field::Field;
use super::moved::{Moved, Part, nanoseconds};
use super::plate::Plate;
use super::strip::{Strip, strip_of};
use tasuki::prelude::*;

/// What rank 0 has at the end.
#[derive(Clone, PartialEq, Debug)]
pub struct Solution {
    /// The temperatures.
    pub field: Field,
    /// By how much the last iteration changed a cell at most: the residual, in the maximum norm, of the iteration
    /// before.
    pub residual: f64,
    /// What each rank did, by rank.
    pub parts: Vec<Part>,
    /// The strips that rank 0 got from the others.
    pub gathered: Moved,
}

/// Does `iterations` iterations on the plate; rank 0 is given the solution, the others nothing.
///
/// Collective: all ranks with the same plate and number. `progress` is told after each iteration how many are done.
/// Costs on each rank two puts of a row per iteration, and memory for three strips.
pub fn solve(
    job: &Job,
    plate: Plate,
    iterations: usize,
    progress: impl FnMut(usize),
) -> tasuki::Result<Option<Solution>> {
    solve_by(Way::Puts, job, plate, iterations, progress)
}

/// The same with rows exchanged in a way that all ranks choose alike: the same to the bit.
pub fn solve_by(
    way: Way,
    job: &Job,
    plate: Plate,
    iterations: usize,
    mut progress: impl FnMut(usize),
) -> tasuki::Result<Option<Solution>> {
    let own = strip_of(plate.rows(), job.size(), job.rank().index());
    let [above, below] = [own.start > 0, own.end < plate.rows()].map(|inside| inside && !own.is_empty());
    let mut exchange = way.exchange(job, plate.columns(), above, below)?;
    let gather = Gather::new(job, plate)?;
    let mut strip = Strip::new(plate, own);
    job.barrier()?; // so that nobody's time contains others' preparation
    let begin = job.clock();
    for iteration in 0..iterations {
        step(&mut strip, &mut *exchange, iteration, iteration + 1 == iterations)?;
        progress(iteration + 1);
    }
    let [put, taken] = exchange.moved();
    let part = Part {
        rows: strip.rows() as u64,
        change: if iterations > 0 { strip.change() } else { 0.0 },
        put,
        taken,
        nanoseconds: nanoseconds(job.clock() - begin),
    };
    gather.gather(job, &strip, part)
}

/// One iteration. The outermost rows are computed and given away first, so that they travel while the others are
/// computed; those of the last iteration are wanted by nobody.
fn step(
    strip: &mut Strip,
    exchange: &mut dyn Exchange,
    iteration: usize,
    is_last: bool,
) -> tasuki::Result<()> {
    strip.turn();
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

/// Job memory from which rank 0 gets everything: on every rank its strip and its part.
struct Gather {
    plate: Plate,
    rows: Array<f64>,
    part: Array<Part>,
}

impl Gather {
    fn new(job: &Job, plate: Plate) -> tasuki::Result<Gather> {
        let rows_max = strip_of(plate.rows(), job.size(), 0).len();
        Ok(Gather { plate, rows: job.alloc(rows_max * plate.columns())?, part: job.alloc(1)? })
    }

    fn gather(self, job: &Job, strip: &Strip, part: Part) -> tasuki::Result<Option<Solution>> {
        let columns = self.plate.columns();
        for row in 0..strip.rows() {
            self.rows.write(row * columns, strip.new_row(row + 1))?;
        }
        self.part.set(0, part)?;
        job.barrier()?; // all strips are in place
        let solution = if job.rank() == Rank(0) { Some(self.solution(job)?) } else { None };
        job.barrier()?; // rank 0 has them: the memory may go
        Ok(solution)
    }

    fn solution(&self, job: &Job) -> tasuki::Result<Solution> {
        let mut field = Field::new(self.plate);
        let mut gathered = Moved::default();
        for rank in job.ranks() {
            let own = strip_of(self.plate.rows(), job.size(), rank.index());
            let rows = field.rows_mut(own.start, own.len());
            if rank == job.rank() {
                self.rows.read(0, rows)?;
            } else if !rows.is_empty() {
                gathered.counting(job, rows.len(), || job.get(self.rows.on(rank), rows))?;
            }
        }
        let parts = job.ranks().map(|rank| job.get_value(self.part.on(rank)));
        let parts = parts.collect::<tasuki::Result<Vec<Part>>>()?;
        let residual = parts.iter().map(|part| part.change).fold(0.0, f64::max);
        Ok(Solution { field, residual, parts, gathered })
    }
}
