//! G12, J, and one case of G1 and B1: the forms in which a call takes values. They are numbers, arrays, slices and
//! vectors; a result replaces them, goes elsewhere, or is returned.

use crate::exchange::effort;
use crate::expected_error::{disagreed, misused, refused};
use tasuki::engine::Cause;
use tasuki::{Blocks, Communicator, ErrorKind, Job, Pod, Rank, Request, Result, Slot, Sum, Uneven, Zeroable};

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

/// G12: a result of another length than its room is refused on that member, and nothing is written. The other members
/// do not wait for it: the communicator has failed.
pub fn g12_room_of_another_length_is_refused(job: &Job) -> Result<()> {
    let (root, values, mut room) = (job.rank(), [1_u64; 2], [7_u64; 3]);
    for first in 0..job.size() {
        let world = &job.world().dup()?;
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
        disagreed(job, world.allreduce((&values, &mut result), Sum), &["allreduce", "has failed"]);
    }
    // A member that gets no result needs no room.
    let world = job.world();
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
            world.scope(|s| s.send(5_u64, Rank(1), slot).map(drop))?;
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

/// The block of a member in a round.
fn block(member: usize, round: usize) -> [u64; 2] {
    [(10 * member + 1) as u64, (1000 * round + member) as u64]
}

/// G12: the members gather, scatter and exchange equal blocks in different forms, often enough that the calls have
/// compiled steps.
pub fn g12_blocks_of_every_form(job: &Job) -> Result<()> {
    let (world, me, size) = (job.world(), job.rank().0, job.size());
    for round in 0..effort(job, 15, 7) {
        let (form, own, root) = ((me + round) % 4, block(me, round), Rank(round / 3 % size));
        let all: Vec<u64> = (0..size).flat_map(|member| block(member, round)).collect();
        // All blocks, of which only this member's are known.
        let in_place =
            || -> Vec<u64> { (0..size).flat_map(|member| if member == me { own } else { [7; 2] }).collect() };
        let (mut placed, is_root) = (vec![0; 2 * size], me == root.0);
        let gathered = match form {
            0 => world.allgather(&own)?,
            1 => world.allgather(&own.to_vec())?,
            2 => world.allgather((&own[..], &mut placed)).map(|()| placed)?,
            _ => {
                placed = in_place();
                world.allgather(&mut placed[..]).map(|()| placed)?
            }
        };
        assert_eq!(gathered, all, "allgather, round {round}");
        let mut placed = in_place();
        let gathered = match form {
            0 => world.gather(&own, root)?,
            1 => world.gather(&own[..], root)?,
            2 => world
                .gather((&own, &mut placed[..if is_root { 2 * size } else { 0 }]), root)?
                .map(|()| placed),
            _ => world.gather(&mut placed, root)?.map(|()| placed),
        };
        assert_eq!(gathered, is_root.then(|| all.clone()), "gather, round {round}");
        let (given, mut placed) = (if is_root { &all[..] } else { &[] }, [0; 2]);
        match form {
            0 => placed.copy_from_slice(&world.scatter(given, 2, root)?),
            1 => world.scatter(given, &mut placed, root)?,
            2 => world.scatter(given, &mut placed[..], root)?,
            _ => placed.copy_from_slice(&world.scatter(&given.to_vec(), 2, root)?),
        }
        assert_eq!(placed, own, "scatter, round {round}");
        assert_eq!(world.scatter(given, (), root)?, own, "scatter of learned lengths, round {round}");
        let out: Vec<u64> = (0..size).flat_map(|to| block(me, to + round)).collect();
        let mut into = vec![0; 2 * size];
        match form {
            0 => into = world.alltoall(&out)?,
            1 => into = world.alltoall(&out[..])?,
            2 => world.alltoall((&out, &mut into))?,
            _ => world.alltoall((&out[..], &mut into[..]))?,
        }
        assert_eq!(into, (0..size).flat_map(|from| block(from, me + round)).collect::<Vec<_>>(), "alltoall");
        let mut sum = [0; 2];
        match form {
            0 => sum.copy_from_slice(&world.reduce_scatter(&out, Sum)?),
            1 => world.reduce_scatter((&out, &mut sum), Sum)?,
            2 => world.reduce_scatter((&out[..], &mut sum[..]), Sum)?,
            _ => sum.copy_from_slice(&world.reduce_scatter(&out[..], Sum)?),
        }
        let sums =
            (0..size).map(|from| block(from, me + round)).fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        assert_eq!(sum, sums, "reduce_scatter, round {round}");
    }
    let one: Vec<usize> = world.allgather(&me)?;
    assert_eq!(one, (0..size).collect::<Vec<_>>());
    job.barrier()
}

/// G12: room of another length for blocks is refused on that member, and nothing is written. The communicator has
/// failed.
pub fn g12_room_for_blocks_of_another_length_is_refused(job: &Job) -> Result<()> {
    let (size, root) = (job.size(), job.rank());
    let (own, mut room) = ([1_u64; 2], vec![7_u64; 2 * size + 1]);
    for first in 0..size {
        let world = &job.world().dup()?;
        if root.0 == first {
            let texts = &[&format!("{} values", 2 * size + 1)[..], "2 for each"];
            misused(job, world.allgather((&own, &mut room)), &[&["allgather"], &texts[..]].concat());
            misused(job, world.gather((&own, &mut room), root), &[&["gather"], &texts[..]].concat());
            misused(job, world.iallgather((own, room.clone())), &[&["iallgather"], &texts[..]].concat());
            misused(job, world.igather((own, room.clone()), root), &[&["igather"], &texts[..]].concat());
            let values = vec![1_u64; 2 * size];
            misused(job, world.alltoall((&values, &mut room)), &[&["alltoall"], &texts[..]].concat());
            misused(
                job,
                world.ialltoall((values.clone(), room.clone())),
                &[&["ialltoall"], &texts[..]].concat(),
            );
            let texts = &["room for 3 values", "has 2"];
            let reduced = world.reduce_scatter((&values, &mut [7; 3]), Sum);
            misused(job, reduced, &[&["reduce_scatter"], &texts[..]].concat());
            let reduced = world.ireduce_scatter((values.clone(), [7; 3]), Sum);
            misused(job, reduced, &[&["ireduce_scatter"], &texts[..]].concat());
            misused(job, world.scatter(&values, &mut [7; 3], root), &["scatter", "3 for each"]);
            misused(job, world.iscatter(values, [7; 3], root), &["iscatter", "3 for each"]);
            if size > 1 {
                misused(job, world.allgather(&mut room), &["allgather", "for each"]);
                misused(job, world.gather(&mut room, Rank((first + 1) % size)), &["gather", "for each"]);
                misused(job, world.scatter(&room, (), root), &["scatter", "for each"]);
            }
            assert!(room.iter().all(|&value| value == 7), "a refused call has written");
        }
        disagreed(job, world.allgather(&own), &["has failed"]);
        assert_eq!(world.recreate()?.iallgather(own)?.wait()?, vec![1; 2 * size]);
    }
    job.barrier()
}

/// J: nonblocking calls own numbers, arrays and vectors, and return the same.
pub fn j_nonblocking_calls_of_every_form(job: &Job) -> Result<()> {
    let (world, me, size) = (job.world(), job.rank().0, job.size());
    for round in 0..effort(job, 6, 5) {
        let (root, own) = (Rank(round % size), block(me, round));
        let is_root = me == root.0;
        let all: Vec<u64> = (0..size).flat_map(|member| block(member, round)).collect();
        let sum_of = |members: usize| {
            (0..members).map(|member| block(member, round)).fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
        };
        let mut numbers =
            (world.ibcast(me, root)?, world.iallreduce(me, Sum)?, world.ireduce(me, Sum, root)?);
        let mut arrays = (world.ibcast(own, root)?, world.iallreduce(own, Sum)?, world.iscan(own, Sum)?);
        let mut vectors = (world.ireduce(own.to_vec(), Sum, root)?, world.iexscan(own.to_vec(), Sum)?);
        let mut of_all = (world.iallgather(own)?, world.igather(own.to_vec(), root)?);
        let mut placed = (
            world.iallgather((own, vec![0; 2 * size]))?,
            world.igather((own.to_vec(), vec![0; if is_root { 2 * size } else { 0 }]), root)?,
        );
        let given = if is_root { all.clone() } else { vec![] };
        let mut scattered = (
            world.iscatter(given.clone(), 2, root)?,
            world.iscatter(given.clone(), [0; 2], root)?,
            world.iscatter(given.clone(), vec![0; 2], root)?,
            world.iscatter(given, (), root)?,
        );
        let out: Vec<u64> = (0..size).flat_map(|to| block(me, to + round)).collect();
        let mut exchanged =
            (world.ialltoall(out.clone())?, world.ialltoall((out.clone(), vec![0; 2 * size]))?);
        let mut reduced =
            (world.ireduce_scatter(out.clone(), Sum)?, world.ireduce_scatter((out, [0; 2]), Sum)?);
        let sums =
            (0..size).map(|from| block(from, me + round)).fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        assert_eq!((reduced.0.wait()?, reduced.1.wait()?), (sums.to_vec(), sums), "ireduce_scatter");
        let into: Vec<u64> = (0..size).flat_map(|from| block(from, me + round)).collect();
        assert_eq!((exchanged.0.wait()?, exchanged.1.wait()?), (into.clone(), into), "ialltoall");
        let of_each = (scattered.0.wait()?, scattered.1.wait()?, scattered.2.wait()?, scattered.3.wait()?);
        assert_eq!(of_each, (own.to_vec(), own, own.to_vec(), own.to_vec()), "iscatter");
        let on_root = is_root.then(|| all.clone());
        assert_eq!((placed.0.wait()?, placed.1.wait()?), (all.clone(), on_root.clone()), "gathers with room");
        assert_eq!((of_all.0.wait()?, of_all.1.wait()?), (all, on_root), "gathers");
        let total = is_root.then(|| sum_of(size).to_vec());
        let before = (me > 0).then(|| sum_of(me).to_vec());
        assert_eq!((vectors.0.wait()?, vectors.1.wait()?), (total, before), "ireduce, iexscan");
        let expected = (block(root.0, round), sum_of(size), sum_of(me + 1));
        assert_eq!((arrays.0.wait()?, arrays.1.wait()?, arrays.2.wait()?), expected, "arrays");
        let ranks = (0..size).sum();
        let expected = (root.0, ranks, is_root.then_some(ranks));
        assert_eq!((numbers.0.wait()?, numbers.1.wait()?, numbers.2.wait()?), expected, "numbers");
    }
    job.barrier()
}

/// Types of the program's own, as long as each other.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[bytemuck(crate = "tasuki::bytemuck")]
#[repr(C)]
struct Apple(f64, f64);

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[bytemuck(crate = "tasuki::bytemuck")]
#[repr(C)]
struct Pear(f64, f64);

/// J: members whose values have different types get errors that name their own type, and what they know of the other.
/// Those of members that prepare different plans name both.
pub fn j_errors_of_different_calls_name_the_types(job: &Job) -> Result<()> {
    type Call = fn(&Communicator, is_first: bool) -> Result<()>;
    let (apple, pear) = ("call_forms::Apple", "call_forms::Pear");
    let calls: [(Call, [&str; 2]); 7] = [
        (
            |world, is_first| match is_first {
                true => world.allgather(&[Apple::zeroed()]).map(drop),
                false => world.allgather(&[Pear::zeroed()]).map(drop),
            },
            [apple, pear],
        ),
        (
            |world, is_first| match is_first {
                true => world.allgather(&[Apple::zeroed()]).map(drop),
                false => world.allgather(&[0.0; 2]).map(drop),
            },
            [apple, "of f64"],
        ),
        (
            |world, is_first| match is_first {
                true => world.iallgather([Apple::zeroed()])?.wait().map(drop),
                false => world.iallgather([Pear::zeroed()])?.wait().map(drop),
            },
            [apple, pear],
        ),
        (
            |world, is_first| match is_first {
                true => world.allgather(Uneven(&[Apple::zeroed()])).map(drop),
                false => world.allgather(Uneven(&[Pear::zeroed()])).map(drop),
            },
            [apple, pear],
        ),
        (
            |world, is_first| match is_first {
                true => world.bcast_init::<Apple>(1, Rank(0)).map(drop),
                false => world.bcast_init::<Pear>(1, Rank(0)).map(drop),
            },
            [apple, pear],
        ),
        (
            |world, is_first| world.allreduce_init::<f64>(if is_first { 1 } else { 2 }, Sum).map(drop),
            ["allreduce 16 bytes", "allreduce 8 bytes"],
        ),
        (
            |world, is_first| match is_first {
                true => world.allreduce_init::<f64>(1, Sum).map(drop),
                false => world.allreduce_init::<u64>(1, Sum).map(drop),
            },
            ["of u64, combined by Sum", "of f64, combined by Sum"],
        ),
    ];
    for (number, (call, names)) in calls.into_iter().enumerate() {
        let (world, is_first) = (job.world().dup()?, job.rank() == 0);
        let error = call(&world, is_first).expect_err("the types differ");
        let text = error.to_string();
        // A member may learn from another one that the call has failed, before it finds the difference.
        if matches!(error.cause(), Cause::Mismatch { .. }) {
            assert!(text.contains(names[usize::from(!is_first)]), "call {number}: {text}");
        }
        let found = usize::from(matches!(error.cause(), Cause::Mismatch { .. }));
        let all = job.world().allreduce(&found, Sum)?;
        assert!(all > 0, "call {number}: no member has found the difference");
    }
    job.barrier()
}

/// J: members that use forms that are different calls get an error, all of them.
pub fn j_forms_that_are_different_calls_get_errors(job: &Job) -> Result<()> {
    type Call = fn(&Communicator, bool) -> Result<()>;
    const ROOT: Rank = Rank(1);
    let calls: [(&str, Call); 8] = [
        ("allgather", |world, is_first| match is_first {
            true => world.allgather(&1_u64).map(drop),
            false => world.allgather(Uneven(&1_u64)).map(drop),
        }),
        ("gather", |world, is_first| match is_first {
            true => world.gather(Uneven(&1_u64), ROOT).map(drop),
            false => world.gather(&1_u64, ROOT).map(drop),
        }),
        ("scatter", |world, is_first| {
            let given = vec![1_u64; world.size()];
            match is_first {
                true => world.scatter(&given, (), ROOT).map(drop),
                false => world.scatter(&given, 1, ROOT).map(drop),
            }
        }),
        ("alltoall", |world, is_first| {
            let given = vec![1_u64; world.size()];
            match is_first {
                true => world.alltoall(&given).map(drop),
                false => world.alltoall(&Blocks::new(given, &vec![1; world.size()])?).map(drop),
            }
        }),
        ("iallgather", |world, is_first| match is_first {
            true => world.iallgather(1_u64)?.wait().map(drop),
            false => world.iallgather(Uneven(1_u64))?.wait().map(drop),
        }),
        ("iscatter", |world, is_first| {
            let given = vec![1_u64; world.size()];
            match is_first {
                true => world.iscatter(given, 1, ROOT)?.wait().map(drop),
                false => world.iscatter(given, (), ROOT)?.wait().map(drop),
            }
        }),
        ("init", |world, is_first| match is_first {
            true => world.allgather_init::<u64>(1).map(drop),
            false => world.allgather_init::<u64>(Uneven(1)).map(drop),
        }),
        ("init", |world, is_first| match is_first {
            true => world.alltoall_init::<u64>(1).map(drop),
            false => world.alltoall_init::<u64>(&vec![1; world.size()]).map(drop),
        }),
    ];
    for (name, call) in calls {
        let world = job.world().split(0)?;
        let outcome = call(&world, job.rank() == 0);
        // A member whose part was complete before gets the error in its next call.
        let name = if outcome.is_err() { name } else { "barrier" };
        refused(job, outcome.and_then(|()| world.barrier()), ErrorKind::Disagreement, &[name]);
        job.barrier()?;
    }
    job.barrier()
}
