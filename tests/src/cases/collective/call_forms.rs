//! G12, J, and one case of G1 and B1: the forms in which a call takes values. They are numbers, arrays, slices and
//! vectors; a result replaces them, goes elsewhere, or is returned.

use crate::exchange::effort;
use crate::expected_error::{misused, refused};
use tasuki::{ErrorKind, Job, Rank, Result, Slot, Sum};

/// Makes a call of two values in the form of that number, and returns the result of a call that has one. The call
/// returns an `Option`. Without a result, values that were passed to be replaced have not changed.
macro_rules! in_form {
    ($form:expr, $values:expr, |$buffers:ident| $call:expr) => {{
        let (values, mut place): ([u64; 2], [u64; 2]) = ($values, $values);
        match $form % 7 {
            0 => {
                let $buffers = &values;
                $call?
            }
            1 => {
                let $buffers = &values[..];
                $call?.map(|result| [result[0], result[1]])
            }
            2 => {
                let vector = values.to_vec();
                let $buffers = &vector;
                $call?.map(|result| [result[0], result[1]])
            }
            3 | 4 => {
                let result = if $form % 7 == 3 {
                    let $buffers = &mut place;
                    $call?
                } else {
                    let $buffers = &mut place[..];
                    $call?
                };
                assert!(result.is_some() || place == values, "values that no result replaces have changed");
                result.map(|()| place)
            }
            5 => {
                place = [0; 2];
                let $buffers = (&values, &mut place[..]);
                $call?.map(|()| place)
            }
            _ => {
                let (vector, mut place) = (values.to_vec(), vec![0; 2]);
                let $buffers = (&vector[..], &mut place);
                $call?.map(|()| [place[0], place[1]])
            }
        }
    }};
}

/// G12: the members make the same reduction in different forms, often enough that it has compiled steps.
pub fn g12_reductions_of_every_form(job: &Job) -> Result<()> {
    let (world, me, size) = (job.world(), job.rank().0, job.size());
    let of = |member: usize, round: usize| [(member + 1) as u64, (100 * member + round) as u64];
    let sum = |members: usize, round: usize| {
        (0..members).map(|member| of(member, round)).fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
    };
    for round in 0..effort(job, 21, 9) {
        let (form, values, root) = (me + round, of(me, round), Rank(round / 3 % size));
        let all = in_form!(form, values, |buffers| world.allreduce(buffers, Sum).map(Some));
        assert_eq!(all, Some(sum(size, round)), "allreduce, round {round}");
        let reduced = in_form!(form, values, |buffers| world.reduce(buffers, Sum, root));
        assert_eq!(reduced, (me == root.0).then(|| sum(size, round)), "reduce, round {round}");
        let through = in_form!(form, values, |buffers| world.scan(buffers, Sum).map(Some));
        assert_eq!(through, Some(sum(me + 1, round)), "scan, round {round}");
        let before = in_form!(form, values, |buffers| world.exscan(buffers, Sum));
        assert_eq!(before, (me > 0).then(|| sum(me, round)), "exscan, round {round}");
    }
    let one = me as f64 + 1.0;
    let total: f64 = (1..=size).map(|member| member as f64).sum();
    let mut replaced = one;
    world.allreduce(&mut replaced, Sum)?;
    let mut elsewhere = 0.0;
    world.allreduce((&one, &mut elsewhere), Sum)?;
    assert_eq!((world.allreduce(&one, Sum)?, replaced, elsewhere), (total, total, total));
    job.barrier()
}

/// G12: a result of another length than its room is refused on that member, and nothing has happened: the others wait,
/// and the next call completes theirs.
pub fn g12_room_of_another_length_is_refused(job: &Job) -> Result<()> {
    let (world, root) = (job.world(), job.rank());
    let (values, mut room) = ([1_u64; 2], [7_u64; 3]);
    for first in 0..job.size() {
        if root.0 == first {
            misused(
                job,
                world.allreduce((&values, &mut room), Sum),
                &["allreduce", "room for 3 values", "has 2"],
            );
            misused(job, world.reduce((&values, &mut room), Sum, root), &["reduce", "room for 3 values"]);
            misused(job, world.scan((&values, &mut room[..1]), Sum), &["scan", "room for 1 values"]);
            misused(job, world.exscan((&values, &mut room[..0]), Sum), &["exscan", "room for 0 values"]);
            assert_eq!(room, [7; 3], "a refused call has written");
        }
        let mut result = [0; 2];
        world.allreduce((&values, &mut result), Sum)?;
        assert_eq!(result, [job.size() as u64; 2]);
    }
    // A member that gets no result needs no room.
    let reduced = world.reduce((&values, &mut room[..if root == 0 { 2 } else { 0 }]), Sum, Rank(0))?;
    assert_eq!(reduced.is_some(), root == 0);
    job.barrier()
}

/// G1: a message that was sent in one form is received in another.
pub fn g1_messages_of_every_form(job: &Job) -> Result<()> {
    let (world, slot) = (job.world(), Slot(3));
    if job.rank() == 0 {
        for _ in 0..4 {
            world.send(&5_u64, Rank(1), slot)?;
            world.send(&[5_u64], Rank(1), slot)?;
            world.send(&vec![5_u64], Rank(1), slot)?;
            world.send(&[4_u64, 5, 6][1..2], Rank(1), slot)?;
            world.scope(|s| s.send(&5_u64, Rank(1), slot).map(drop))?;
        }
    } else if job.rank() == 1 {
        for _ in 0..5 {
            let (mut number, mut array, mut vector, mut part) = (0_u64, [0_u64], vec![0_u64], [0_u64; 3]);
            world.recv(&mut number, Rank(0), slot)?;
            world.recv(&mut array, Rank(0), slot)?;
            world.recv(&mut vector, Rank(0), slot)?;
            world.scope(|s| s.recv(&mut part[1..2], Rank(0), slot).map(drop))?;
            assert_eq!((number, array, &vector[..], part), (5, [5], &[5][..], [0, 5, 0]));
        }
    }
    let (mut number, mut part) = (job.rank().0, [job.rank().0; 3]);
    for root in 0..job.size() {
        world.bcast(&mut number, Rank(root))?;
        world.bcast(&mut part[1..], Rank(root))?;
        assert_eq!((number, part), (0, [job.rank().0, 0, 0]));
    }
    job.barrier()
}

/// B1: values are put and got in every form.
pub fn b1_transfers_of_every_form(job: &Job) -> Result<()> {
    let (table, arrived) = (job.alloc::<u64>(8)?, job.signal()?);
    let (next, me) = (job.rank_after(1), job.rank().0 as u64);
    let there = table.on(next);
    job.put(there, &(me + 10))?;
    job.put(there.at(1), &[me + 11])?;
    job.put(there.at(2), &vec![me + 12, me + 13])?;
    job.put(there.at(4), &[0, me + 14, me + 15][1..])?;
    job.put_signal(there.at(6), &(me + 16), arrived.on(next), 1)?;
    arrived.wait_at_least(1)?;
    job.barrier()?;
    let expected: Vec<u64> = (me + 10..me + 17).collect();
    let (mut number, mut array, mut vector) = (0_u64, [0_u64; 2], vec![0_u64; 4]);
    job.get(there, &mut number)?;
    job.get(there.at(1), &mut array)?;
    job.get(there.at(3), &mut vector)?;
    assert_eq!([&[number], &array[..], &vector].concat(), expected);
    assert_eq!(job.get_vec(there, 7)?, expected);
    assert!(job.get_vec(there, 0)?.is_empty());
    refused(job, job.get_vec(there, usize::MAX / 16), ErrorKind::NoMemory, &["get_vec", "not enough memory"]);
    job.barrier()
}
