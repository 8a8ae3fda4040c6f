//! The heat equation on ranks that are threads: equal to the serial run to the last bit, however the rows are dealt.
#![allow(clippy::unwrap_used)]

use tasuki_examples::heat::{Plate, Solution, Way, serial, solve, solve_by};

/// Rows, columns, iterations: odd and even, rows that do not divide, fewer rows than ranks, one of each.
const GRIDS: &[(usize, usize, usize)] =
    &[(1, 1, 3), (1, 8, 5), (8, 1, 5), (3, 17, 40), (7, 7, 33), (16, 5, 20), (37, 53, 101), (64, 64, 100)];

const WAYS: [Way; 3] = [Way::Puts, Way::Messages, Way::Commands];

fn solution(way: Way, ranks: usize, plate: Plate, iterations: usize) -> Solution {
    let mut outcomes = tasuki::local(ranks, |job| solve_by(way, job, plate, iterations, |_| ())).unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_some()).count(), 1);
    outcomes.swap_remove(0).expect("rank 0 has the solution")
}

#[test]
fn every_cell_is_bit_for_bit_that_of_the_serial_run() {
    for &(rows, columns, iterations) in GRIDS {
        let plate = Plate::new(rows, columns).unwrap();
        let judge = serial(plate, iterations, |_| ());
        for (way, ranks) in WAYS.into_iter().flat_map(|way| (1..=7).map(move |ranks| (way, ranks))) {
            let difference = solution(way, ranks, plate, iterations).field.difference(&judge);
            assert_eq!(difference, None, "{rows} x {columns} on {ranks} ranks by {way:?}");
        }
    }
}

#[test]
fn the_residual_is_the_last_change_of_any_cell() {
    let plate = Plate::new(19, 23).unwrap();
    let last = serial(plate, 30, |_| ()).difference(&serial(plate, 29, |_| ())).unwrap();
    for ranks in [1, 3, 5] {
        assert_eq!(solution(Way::Puts, ranks, plate, 30).residual, last.most);
    }
}

#[test]
fn what_was_moved_is_counted() {
    WAYS.into_iter().for_each(|way| is_counted(&solution(way, 4, Plate::new(10, 6).unwrap(), 50)));
}

fn is_counted(solution: &Solution) {
    let puts: Vec<u64> = solution.parts.iter().map(|part| part.put.count).collect();
    assert_eq!(puts, [49, 98, 98, 49], "the last rows are wanted by nobody");
    assert!(solution.parts.iter().all(|part| part.put.bytes == part.put.count * 6 * 8));
    let taken: Vec<u64> = solution.parts.iter().map(|part| part.taken.count).collect();
    assert_eq!(taken, [49, 98, 98, 49]);
    assert_eq!(solution.parts.iter().map(|part| part.rows).collect::<Vec<_>>(), [3, 3, 2, 2]);
    assert_eq!((solution.gathered.count, solution.gathered.bytes), (3, 7 * 6 * 8));
    let shares = solution.parts.iter().map(|part| part.share_communicating());
    assert!(shares.clone().all(|share| share > 0.0 && share < 1.0), "{:?}", shares.collect::<Vec<_>>());
}

#[test]
fn progress_is_told_after_each_iteration() {
    let plate = Plate::new(5, 5).unwrap();
    let told = tasuki::local(2, |job| {
        let mut told = Vec::new();
        solve(job, plate, 4, |done| told.push(done))?;
        Ok(told)
    });
    assert_eq!(told.unwrap(), [[1, 2, 3, 4], [1, 2, 3, 4]]);
}

/// Several runs in one job use signals and memory of their own.
#[test]
fn a_job_can_solve_twice() {
    let (first, second) = (Plate::new(9, 4).unwrap(), Plate::new(4, 9).unwrap());
    for way in WAYS {
        let outcomes = tasuki::local(3, |job| {
            let one = solve_by(way, job, first, 7, |_| ())?;
            Ok((one, solve_by(way, job, second, 8, |_| ())?))
        });
        let (one, two) = outcomes.unwrap().swap_remove(0);
        assert_eq!(one.unwrap().field.difference(&serial(first, 7, |_| ())), None);
        assert_eq!(two.unwrap().field.difference(&serial(second, 8, |_| ())), None);
    }
}
