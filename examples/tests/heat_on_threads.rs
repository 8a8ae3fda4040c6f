//! The heat equation on ranks that are threads: equal to the serial run in every bit, for any distribution of the
//! rows.
#![allow(clippy::unwrap_used)]

use tasuki_examples::heat::{ExchangeMethod, Plate, Solution, serial, solve, solve_by};

/// Rows, columns, iterations: odd and even numbers, rows that the ranks do not divide, fewer rows than ranks, one row
/// or column.
const GRIDS: &[(usize, usize, usize)] =
    &[(1, 1, 3), (1, 8, 5), (8, 1, 5), (3, 17, 40), (7, 7, 33), (16, 5, 20), (37, 53, 101), (64, 64, 100)];

const METHODS: [ExchangeMethod; 3] =
    [ExchangeMethod::Puts, ExchangeMethod::Messages, ExchangeMethod::Commands];

fn solution(method: ExchangeMethod, ranks: usize, plate: Plate, iterations: usize) -> Solution {
    let mut outcomes = tasuki::local(ranks, |job| solve_by(method, job, plate, iterations, |_| ())).unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_some()).count(), 1);
    outcomes.swap_remove(0).expect("rank 0 has the solution")
}

#[test]
fn every_cell_equals_the_serial_run_in_every_bit() {
    for &(rows, columns, iterations) in GRIDS {
        let plate = Plate::new(rows, columns).unwrap();
        let reference = serial(plate, iterations, |_| ());
        for (method, ranks) in
            METHODS.into_iter().flat_map(|method| (1..=7).map(move |ranks| (method, ranks)))
        {
            let difference = solution(method, ranks, plate, iterations).field.difference(&reference);
            assert_eq!(difference, None, "{rows} x {columns} on {ranks} ranks by {method:?}");
        }
    }
}

#[test]
fn the_residual_is_the_largest_change_of_the_last_iteration() {
    let plate = Plate::new(19, 23).unwrap();
    let last = serial(plate, 30, |_| ()).difference(&serial(plate, 29, |_| ())).unwrap();
    for ranks in [1, 3, 5] {
        assert_eq!(solution(ExchangeMethod::Puts, ranks, plate, 30).residual, last.max);
    }
}

#[test]
fn transfers_are_counted() {
    METHODS.into_iter().for_each(|method| check_counts(&solution(method, 4, Plate::new(10, 6).unwrap(), 50)));
}

fn check_counts(solution: &Solution) {
    let puts: Vec<u64> = solution.parts.iter().map(|part| part.put.count).collect();
    assert_eq!(puts, [49, 98, 98, 49], "the rows of the last iteration are not sent");
    assert!(solution.parts.iter().all(|part| part.put.bytes == part.put.count * 6 * 8));
    let taken: Vec<u64> = solution.parts.iter().map(|part| part.taken.count).collect();
    assert_eq!(taken, [49, 98, 98, 49]);
    assert_eq!(solution.parts.iter().map(|part| part.rows).collect::<Vec<_>>(), [3, 3, 2, 2]);
    assert_eq!((solution.gathered.count, solution.gathered.bytes), (3, 7 * 6 * 8));
    let shares = solution.parts.iter().map(|part| part.communication_share());
    assert!(shares.clone().all(|share| share > 0.0 && share < 1.0), "{:?}", shares.collect::<Vec<_>>());
}

#[test]
fn progress_is_called_after_each_iteration() {
    let plate = Plate::new(5, 5).unwrap();
    let calls = tasuki::local(2, |job| {
        let mut calls = Vec::new();
        solve(job, plate, 4, |done| calls.push(done))?;
        Ok(calls)
    });
    assert_eq!(calls.unwrap(), [[1, 2, 3, 4], [1, 2, 3, 4]]);
}

/// Several runs in one job use signals and memory of their own.
#[test]
fn a_job_can_solve_twice() {
    let (first, second) = (Plate::new(9, 4).unwrap(), Plate::new(4, 9).unwrap());
    for method in METHODS {
        let outcomes = tasuki::local(3, |job| {
            let one = solve_by(method, job, first, 7, |_| ())?;
            Ok((one, solve_by(method, job, second, 8, |_| ())?))
        });
        let (one, two) = outcomes.unwrap().swap_remove(0);
        assert_eq!(one.unwrap().field.difference(&serial(first, 7, |_| ())), None);
        assert_eq!(two.unwrap().field.difference(&serial(second, 8, |_| ())), None);
    }
}
