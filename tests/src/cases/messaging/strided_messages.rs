//! Messages, puts and gets of values in blocks at equal distances.

use crate::exchange::{effort, exchange_all, next, previous};
use crate::expected_error::{disagreed, misused};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{Strided, StridedMut, recv_into, send_from, set_send_buffer};
use tasuki::{Blocks, Cartesian, Error, GlobalPtr, Job, Pod, Rank, Request, Result, Slot, dims_create};

const FIRST: Rank = Rank(0);

/// The value of that number in a message: its bytes follow from both.
fn value<T: Pod>(message: usize, number: usize) -> T {
    let mut value = T::zeroed();
    let seed = (message * 1_000_003 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bytes = bytemuck::bytes_of_mut(&mut value);
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (seed >> (8 * (at % 7) + 3)) as u8 ^ at as u8);
    value
}

/// Where the values of a message are: `blocks` blocks of `block_len` values, each `stride` after the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    blocks: usize,
    block_len: usize,
    stride: usize,
}

impl Shape {
    const fn new(blocks: usize, block_len: usize, stride: usize) -> Shape {
        Shape { blocks, block_len, stride }
    }

    fn len(self) -> usize {
        self.blocks * self.block_len
    }

    /// The number of values of memory that has the blocks and a gap before and behind them.
    fn memory(self) -> usize {
        2 + self.blocks * self.stride.max(self.block_len)
    }

    /// The places of the values.
    fn places(self) -> impl Iterator<Item = usize> {
        let of = move |block| (0..self.block_len).map(move |at| 1 + block * self.stride + at);
        (0..self.blocks).flat_map(of)
    }

    /// Memory with the values of a message in the blocks, and others in the gaps.
    fn filled<T: Pod>(self, message: usize) -> Vec<T> {
        let mut memory: Vec<T> = (0..self.memory()).map(|at| value(usize::MAX / 2_000_006, at)).collect();
        self.places().enumerate().for_each(|(number, place)| memory[place] = value(message, number));
        memory
    }

    fn of<T: Pod>(self, memory: &[T]) -> Strided<'_, T> {
        Strided::new(&memory[1..], self.blocks, self.block_len, self.stride)
    }

    fn of_mut<T: Pod>(self, memory: &mut [T]) -> StridedMut<'_, T> {
        StridedMut::new(&mut memory[1..], self.blocks, self.block_len, self.stride)
    }

    /// Checks that the first `count` values are those of a message, and that nothing else was written.
    fn check<T: Pod>(self, memory: &[T], message: usize, count: usize) {
        let mut expected: Vec<T> = (0..self.memory()).map(gap).collect();
        let values = self.places().enumerate().take(count);
        values.for_each(|(number, place)| expected[place] = value(message, number));
        let [found, expected] = [memory, &expected].map(bytemuck::cast_slice::<T, u8>);
        let wrong = found.iter().zip(expected).position(|(one, other)| one != other);
        assert_eq!(wrong, None, "{self:?}, values of {} bytes: the byte at that place", size_of::<T>());
    }
}

/// What is in memory that waits for a message.
fn gap<T: Pod>(at: usize) -> T {
    value(77, at)
}

fn gaps<T: Pod>(shape: Shape) -> Vec<T> {
    (0..shape.memory()).map(gap).collect()
}

/// Pairs of shapes for messages of `len` values: contiguous and in blocks, on one side and on both.
fn shapes(len: usize) -> Vec<[Shape; 2]> {
    let flat = Shape::new(1, len, len.max(1));
    let thin = Shape::new(len, 1, 3);
    let mut all = vec![[flat, flat], [thin, flat], [flat, thin], [thin, thin]];
    if len.is_multiple_of(6) && len > 0 {
        let (pairs, wide) = (Shape::new(len / 2, 2, 5), Shape::new(6, len / 6, len / 6 + 1));
        all.extend([[pairs, wide], [wide, pairs], [Shape::new(len / 3, 3, 3), thin]]);
    }
    all
}

/// Passes messages of `len` values around the ring of ranks, by all calls.
fn pass<T: Pod + Debug + Send>(job: &Job, len: usize, round: &mut usize) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    for [source, target] in shapes(len) {
        *round += 1;
        let (own, theirs) = (*round * 8 + job.rank().0, *round * 8 + from.0);
        let out: Vec<T> = source.filled(own);
        // One call for both.
        let mut into = gaps::<T>(target);
        let got = world.sendrecv(&source.of(&out), to, &mut target.of_mut(&mut into), from, Slot(1))?;
        assert_eq!((got.count, got.slot, got.source.0), (len, Slot(1), from.0));
        target.check(&into, theirs, len);
        // In a scope; a send by value, and a receive of any slot.
        let mut into = gaps::<T>(target);
        let mut blocks = target.of_mut(&mut into);
        world.scope(|s| {
            let mut receive = s.recv(&mut blocks, from, Slot::ANY)?;
            s.send(source.of(&out), to, Slot(2))?;
            assert_eq!(receive.wait()?.count, len);
            Ok(())
        })?;
        target.check(&into, theirs, len);
        // Blocking calls beside requests.
        let packed = source.of(&out).to_vec();
        let mut into = gaps::<T>(target);
        let mut sending = world.isend(packed.clone(), to, Slot(3))?;
        assert_eq!(world.recv(&mut target.of_mut(&mut into), from, Slot(3))?.count, len);
        sending.wait()?;
        target.check(&into, theirs, len);
        let mut receiving = world.irecv(vec![T::zeroed(); len], from, Slot(4))?;
        world.send(&source.of(&out), to, Slot(4))?;
        let expected: Vec<T> = (0..len).map(|number| value(theirs, number)).collect();
        let got = receiving.wait()?.0;
        assert!(bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&expected));
        let mut receiving = world.irecv_vec::<T>(from, Slot(5))?;
        world.send(&source.of(&out), to, Slot(5))?;
        let got = receiving.wait()?.0;
        assert!(bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&expected));
    }
    Ok(())
}

/// Messages of every length around the limits of the line and of a chunk, between contiguous values and blocks.
pub fn g_strided_messages_of_every_length(job: &Job) -> Result<()> {
    let mut round = 0;
    for bytes in [0, 1, 6, 46, 47, 48, 49, 54, 512, 513, 2048, 4096, 4098] {
        pass::<u8>(job, bytes, &mut round)?;
    }
    for words in [0, 1, 5, 6, 7, 60, 66, 256, 510, 516] {
        pass::<u64>(job, words, &mut round)?;
    }
    for triples in [1, 2, 3, 6, 84, 90, 342] {
        pass::<[u64; 3]>(job, triples, &mut round)?;
    }
    job.barrier()
}

/// Messages of many chunks: 1 MiB in blocks of 8 bytes and of 5 KiB.
pub fn g_strided_messages_of_many_chunks(job: &Job) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    let len = effort(job, 1 << 17, 1 << 15);
    let (words, wide) = (Shape::new(len, 1, 2), Shape::new(len.div_ceil(640), 640, 701));
    let flat = |shape: Shape| Shape::new(1, shape.len(), shape.len());
    let pairs =
        [[words, words], [words, flat(words)], [flat(words), words], [wide, wide], [wide, flat(wide)]];
    for (round, [source, target]) in pairs.into_iter().chain([[flat(wide), wide]]).enumerate() {
        let (own, theirs) = (round * 8 + job.rank().0, round * 8 + from.0);
        let (out, mut into) = (source.filled::<u64>(own), gaps::<u64>(target));
        world.sendrecv(&source.of(&out), to, &mut target.of_mut(&mut into), from, Slot(0))?;
        target.check(&into, theirs, target.len());
        let mut into = gaps::<u64>(target);
        if job.size() > 1 {
            // One after the other, so that the receive waits for the send, or the send for the receive.
            for turn in 0..2 {
                if job.rank().0 % 2 == turn {
                    world.send(&source.of(&out), to, Slot(1))?;
                }
                if from.0 % 2 == turn {
                    world.recv(&mut target.of_mut(&mut into), from, Slot(1))?;
                }
            }
            target.check(&into, theirs, target.len());
        }
    }
    job.barrier()
}

/// Blocks to and from job memory, whose address the peer has.
pub fn g_strided_messages_and_job_memory(job: &Job) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    for (round, len) in [3, 7, 600, effort(job, 40_000, 9000)].into_iter().enumerate() {
        let shape = Shape::new(len, 1, 2);
        let memory = job.alloc::<u64>(len)?;
        let out: Vec<u64> = shape.filled(round * 8 + job.rank().0);
        let mut sending = world.isend(shape.of(&out).to_vec(), to, Slot(0))?;
        world.recv(&mut shape.of_mut(&mut gaps::<u64>(shape)), from, Slot(0))?;
        sending.wait()?;
        // Into job memory.
        world.scope(|s| {
            let mut receive = s.recv_into(memory.pointer().slice(len), from, Slot(1))?;
            s.send(shape.of(&out), to, Slot(1))?;
            receive.wait().map(drop)
        })?;
        let expected: Vec<u64> = (0..len).map(|number| value(round * 8 + from.0, number)).collect();
        assert!(memory.to_vec()? == expected);
        if job.size() == 2 {
            let (out, slice) = (shape.of(&out), memory.pointer().slice(len));
            memory.fill(0)?;
            if job.rank() == FIRST {
                world.send(&out, to, Slot(2))?
            } else {
                recv_into(world, slice, from, Slot(2)).map(drop)?
            }
            if job.rank() == FIRST {
                recv_into(world, slice, from, Slot(3)).map(drop)?
            } else {
                world.send(&out, to, Slot(3))?
            }
            assert!(memory.to_vec()? == expected);
            // And back.
            let mut into = gaps::<u64>(shape);
            if job.rank() == FIRST {
                send_from(world, slice, to, Slot(4))?;
                world.recv(&mut shape.of_mut(&mut into), from, Slot(5))?;
            } else {
                world.recv(&mut shape.of_mut(&mut into), from, Slot(4))?;
                send_from(world, slice, to, Slot(5))?;
            }
            shape.check(&into, round * 8 + job.rank().0, len);
        }
        job.barrier()?;
    }
    Ok(())
}

/// A message may be shorter than its receive; one that is longer or of another type is an error of both.
pub fn g_strided_messages_that_do_not_fit(job: &Job) -> Result<()> {
    let (world, peer) = (job.world(), Rank(1 - job.rank().0));
    set_send_buffer(job, 0, None)?;
    let (long, short) = (Shape::new(50, 2, 3), Shape::new(5, 1, 2));
    let fitting = [0, 1, 3, 5, 6, 7, 99].map(|count| (count, long)).into_iter();
    for (count, shape) in fitting.chain([0, 1, 4, 5].map(|count| (count, short))) {
        let mut into = gaps::<u64>(shape);
        if job.rank() == FIRST {
            let out: Vec<u64> = Shape::new(count, 1, 4).filled(count);
            world.send(&Shape::new(count, 1, 4).of(&out), peer, Slot(0))?;
        } else {
            assert_eq!(world.recv(&mut shape.of_mut(&mut into), peer, Slot(0))?.count, count);
            shape.check(&into, count, count);
        }
    }
    for (count, room) in [(6, 5), (7, 6), (101, 100), (5000, 100), (5000, 3)] {
        let (source, target) = (Shape::new(count, 1, 2), Shape::new(room, 1, 2));
        if job.rank() == FIRST {
            let out: Vec<u64> = source.filled(1);
            disagreed(job, world.send(&source.of(&out), peer, Slot(1)), &["send", "rank 1"]);
        } else {
            let mut into = gaps::<u64>(target);
            disagreed(job, world.recv(&mut target.of_mut(&mut into), peer, Slot(1)), &["recv", "rank 0"]);
            target.check(&into, 0, 0);
        }
        job.barrier()?;
    }
    for len in [4, 90] {
        let shape = Shape::new(len, 1, 2);
        if job.rank() == FIRST {
            let out: Vec<u64> = shape.filled(1);
            disagreed(job, world.send(&shape.of(&out), peer, Slot(2)), &["u64"]);
        } else {
            let mut into = gaps::<f64>(shape);
            disagreed(job, world.recv(&mut shape.of_mut(&mut into), peer, Slot(2)), &["f64"]);
            shape.check(&into, 0, 0);
        }
        job.barrier()?;
    }
    Ok(())
}

/// A scope that is cancelled at many moments lets the next receive have the message, and has written no gap. A receive that
/// reaches its limit has written nothing.
pub fn g17_cancelled_strided_receives_lose_nothing(job: &Job) -> Result<()> {
    let world = job.world();
    set_send_buffer(job, 0, None)?;
    let other_error = || Error::new(Cause::Argument("cancelled".into()));
    for (round, len) in [5, 7, 600, 12_000, effort(job, 70_000, 9000)].into_iter().enumerate() {
        let (source, target) = (Shape::new(len, 1, 2), Shape::new(len, 1, 3));
        for turn in 0..effort(job, 40, 8) {
            let (message, named) = (round * 100 + turn, if turn % 5 == 4 { Slot::ANY } else { Slot(9) });
            if job.rank() == FIRST {
                job.compute(Duration::from_nanos((turn * 7919 % 5000) as u64));
                let out: Vec<u64> = source.filled(message);
                world.send(&source.of(&out), Rank(1), Slot(9))?;
                job.barrier()?; // receives of any slot and of this one have no order
                continue;
            }
            let mut first = gaps::<u64>(target);
            let mut blocks = target.of_mut(&mut first);
            let cancelled: Result<()> = world.scope(|s| {
                let mut receive = s.recv(&mut blocks, FIRST, named)?;
                for _ in 0..turn % 11 {
                    job.compute(Duration::from_nanos((turn * 37 % 900) as u64));
                    let _ = receive.test();
                }
                Err(other_error())
            });
            assert!(cancelled.is_err());
            let mut second = gaps::<u64>(target);
            let got = match turn % 3 {
                0 => world.recv(&mut target.of_mut(&mut second), FIRST, Slot(9))?,
                1 => world.recv(&mut target.of_mut(&mut second), FIRST, Slot::ANY)?,
                _ => {
                    let (values, got) = world.recv_vec::<u64>(FIRST, Slot(9))?;
                    target.of_mut(&mut second).copy_from_slice(&values);
                    got
                }
            };
            assert_eq!((got.count, got.slot), (len, Slot(9)));
            target.check(&second, message, len);
            target.places().for_each(|place| first[place] = gap(place));
            target.check(&first, 0, 0);
            job.barrier()?;
        }
        job.barrier()?;
        let mut into = gaps::<u64>(target);
        if job.rank() == Rank(1) {
            let limited = world.within(Duration::from_millis(2));
            let error =
                limited.recv(&mut target.of_mut(&mut into), FIRST, Slot(10)).expect_err("nobody sends");
            assert!(error.is_timeout(), "{error}");
            target.check(&into, 0, 0);
            let out: Vec<u64> = source.filled(1);
            let error = limited.send(&source.of(&out), FIRST, Slot(11)).expect_err("nobody receives");
            assert!(error.is_timeout(), "{error}");
        }
        job.barrier()?;
        if job.rank() == FIRST {
            let out: Vec<u64> = source.filled(round);
            world.send(&source.of(&out), Rank(1), Slot(10))?;
            world.recv(&mut target.of_mut(&mut into), Rank(1), Slot(11))?;
            target.check(&into, 2, len);
        } else {
            world.recv(&mut target.of_mut(&mut into), FIRST, Slot(10))?;
            target.check(&into, round, len);
            let out: Vec<u64> = source.filled(2);
            world.send(&source.of(&out), FIRST, Slot(11))?;
        }
    }
    Ok(())
}

/// A panic leaves a scope whose receive into blocks has met its message. The memory of the blocks is the program's again.
pub fn g17_panics_beside_strided_receives(job: &Job) -> Result<()> {
    let world = job.world();
    let (source, target) = (Shape::new(9000, 1, 2), Shape::new(9000, 1, 3));
    for turn in 0..effort(job, 20, 5) {
        if job.rank() == FIRST {
            let out: Vec<u64> = source.filled(turn);
            world.send(&source.of(&out), Rank(1), Slot(3))?;
            continue;
        }
        let mut into = gaps::<u64>(target);
        let mut blocks = target.of_mut(&mut into);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            world.scope(|s| -> Result<()> {
                let mut receive = s.recv(&mut blocks, FIRST, Slot(3))?;
                (0..turn).for_each(|_| {
                    let _ = receive.test();
                });
                std::panic::resume_unwind(Box::new(()))
            })
        }));
        assert!(panicked.is_err());
        target.places().for_each(|place| into[place] = gap(place));
        target.check(&into, 0, 0);
        world.recv(&mut target.of_mut(&mut into), FIRST, Slot(3))?;
        target.check(&into, turn, 9000);
    }
    job.barrier()
}

/// Buffered sends of blocks: the memory may be changed at once.
pub fn g5_strided_sends_are_buffered(job: &Job) -> Result<()> {
    let world = job.world();
    set_send_buffer(job, 1 << 20, Some(Duration::ZERO))?;
    let lens = [1, 6, 7, 500, 9000];
    for (slot, len) in lens.into_iter().enumerate() {
        let shape = Shape::new(len, 1, 2);
        if job.rank() == FIRST {
            let mut out: Vec<u64> = shape.filled(len);
            world.send(&shape.of(&out), Rank(1), Slot(slot))?;
            out.fill(0);
        }
    }
    job.barrier()?;
    if job.rank() == Rank(1) {
        for (slot, len) in lens.into_iter().enumerate().rev() {
            let (shape, mut into) = (Shape::new(1, len, len), gaps::<u64>(Shape::new(1, len, len)));
            world.recv(&mut shape.of_mut(&mut into), FIRST, Slot(slot))?;
            shape.check(&into, len, len);
        }
    }
    set_send_buffer(job, 0, None)?; // waits until the send buffer is empty
    job.barrier()
}

/// Checks a put and a get between own memory and memory of the next rank, each in blocks.
fn put_and_get<T: Pod>(
    job: &Job,
    [own, there]: [Shape; 2],
    at: GlobalPtr<T>,
    image: &dyn Fn() -> Result<Vec<T>>,
) -> Result<()> {
    let (round, len) = (own.len() + 13 * own.stride, own.len());
    let out: Vec<T> = own.filled(round);
    let target = at.at(1).strided(there.blocks, there.block_len, there.stride);
    job.put(at, &gaps::<T>(there))?;
    if there.blocks == 1 {
        job.put(at.at(1), &own.of(&out))?;
    } else {
        job.put_strided(target, &own.of(&out))?;
    }
    job.barrier()?;
    there.check(&image()?, round, len);
    job.barrier()?;
    let mut into = gaps::<T>(own);
    if there.blocks == 1 {
        job.get(at.at(1), &mut own.of_mut(&mut into))?;
    } else {
        job.get_strided(target, &mut own.of_mut(&mut into))?;
    }
    own.check(&into, round, len);
    if own.blocks == 1 {
        job.put(at, &gaps::<T>(there))?;
        let values: Vec<T> = own.of(&out).to_vec();
        job.put_strided(target, &values)?;
        let mut values = vec![T::zeroed(); len];
        job.get_strided(target, &mut values)?;
        let mut into = gaps::<T>(own);
        own.of_mut(&mut into).copy_from_slice(&values);
        own.check(&into, round, len);
    }
    job.barrier()
}

fn puts_and_gets<T: Pod>(job: &Job, lens: &[usize]) -> Result<()> {
    for shapes in lens.iter().flat_map(|&len| shapes(len)) {
        let [_, there] = shapes;
        let memory = job.alloc::<T>(there.memory())?;
        put_and_get(job, shapes, memory.on(next(job)), &|| memory.to_vec())?;
        // Memory of the program, to which only its owner may have access.
        let own = job.register(gaps::<T>(there))?;
        let addresses = exchange_all(job, own.pointer().address())?;
        put_and_get(job, shapes, GlobalPtr::new(addresses[next(job).0]), &|| Ok(own.to_vec()))?;
        job.barrier()?;
    }
    Ok(())
}

/// Puts and gets between contiguous values and blocks, in memory of the job and of the program.
pub fn b_strided_puts_and_gets(job: &Job) -> Result<()> {
    puts_and_gets::<u8>(job, &[0, 1, 6, 48, 54])?;
    puts_and_gets::<u64>(job, &[1, 6, 7, 600])?;
    puts_and_gets::<[u64; 3]>(job, &[2, 6])?;
    let len = effort(job, 1 << 17, 1 << 11);
    let wide = Shape::new(len / 640 + 3, 640, 701);
    for own in [wide, Shape::new(1, wide.len(), wide.len()), Shape::new(wide.len() / 128, 128, 129)] {
        for there in [wide, Shape::new(1, wide.len(), wide.len()), Shape::new(wide.len() / 64, 64, 70)] {
            let memory = job.alloc::<u64>(there.memory())?;
            put_and_get(job, [own, there], memory.on(next(job)), &|| memory.to_vec())?;
        }
    }
    Ok(())
}

/// Blocks that are not all in one registration, overlap or are too many are refused, and nothing is written.
pub fn b_strided_puts_that_are_refused(job: &Job) -> Result<()> {
    let memory = job.alloc::<u64>(20)?;
    let at = memory.on(next(job));
    let values = [7_u64; 8];
    let own = Strided::new(&values, 4, 1, 2);
    for target in [
        at.at(15).strided(4, 1, 2),
        at.strided(4, 1, 7),
        at.strided(4, 1, usize::MAX / 8),
        GlobalPtr::NULL.strided(4, 1, 2),
    ] {
        misused(job, job.put_strided(target, &own), &[]);
        misused(job, job.put_strided(target, &[1, 2, 3, 4]), &[]);
        misused(job, job.get_strided(target, &mut [0; 4]), &[]);
    }
    misused(job, job.put(at.at(17), &own), &["put"]);
    misused(job, job.put_strided(at.strided(4, 2, 1), &values), &["put_strided", "overlap"]);
    misused(job, job.put_strided(at.strided(4, 1, 2), &values), &["32 bytes", "64 bytes"]);
    misused(job, job.get_strided(at.strided(3, 1, 2), &mut [0_u64; 4]), &["24 bytes", "32 bytes"]);
    let mut overlapping = [1; 6];
    job.get_strided(at.strided(3, 2, 1), &mut overlapping)?;
    assert_eq!(overlapping, [0; 6]);
    job.barrier()?;
    assert_eq!(memory.to_vec()?, [0; 20]);
    job.barrier()
}

/// Tiles on a grid exchange their edges, whose neighbours may use blocks of values instead.
pub fn i_neighbours_exchange_strided_edges(job: &Job) -> Result<()> {
    for (round, [rows, columns, halo]) in
        [[1, 1, 1], [5, 3, 1], [6, 9, 2], [effort(job, 700, 90), 65, 3]].into_iter().enumerate()
    {
        for periodic in [[false, false], [true, false], [true, true]] {
            let dims = dims_create(job.size(), [0, 0])?;
            let grid = Cartesian::new(job.world(), dims, periodic)?;
            let width = columns + 2 * halo;
            let cell = |rank: usize, row: usize, column: usize| -> u64 {
                value(round, (rank * 1000 + row) * 1000 + column)
            };
            let filled = |rank: usize| -> Vec<u64> {
                (0..(rows + 2 * halo) * width).map(|at| cell(rank, at / width, at % width)).collect()
            };
            let mut tile = filled(job.rank().0);
            let (edges, mut halos) = StridedMut::edges_and_halos(&mut tile, width, halo);
            if job.rank().0.is_multiple_of(2) {
                grid.neighbor_alltoall((&edges[..], &mut halos[..]))?;
            } else {
                let blocks: Blocks<u64> = edges.iter().map(Strided::to_vec).collect();
                let got = grid.neighbor_alltoall(&blocks)?;
                for (halo, block) in halos.iter_mut().zip(got.iter()).filter(|(_, block)| !block.is_empty()) {
                    halo.copy_from_slice(block);
                }
            }
            let mut expected = filled(job.rank().0);
            let [[above, below], [left, right]] =
                grid.neighbors().map(|pair| pair.map(|one| one.map(|one| one.0)));
            for (at, cell_here) in expected.iter_mut().enumerate() {
                let (row, column) = (at / width, at % width);
                let (in_rows, in_columns) =
                    ((halo..halo + rows).contains(&row), (halo..halo + columns).contains(&column));
                let from = match (in_rows, in_columns) {
                    (false, true) if row < halo => above.map(|from| (from, row + rows, column)),
                    (false, true) => below.map(|from| (from, row - rows, column)),
                    (true, false) if column < halo => left.map(|from| (from, row, column + columns)),
                    (true, false) => right.map(|from| (from, row, column - columns)),
                    _ => None,
                };
                *cell_here = from.map_or(*cell_here, |(from, row, column)| cell(from, row, column));
            }
            assert!(tile == expected, "{rows} x {columns}, halo {halo}, {periodic:?}");
        }
    }
    Ok(())
}

/// Neighbours that disagree about a length get an error, and nothing is written; blocks must be as many as neighbours.
pub fn i_strided_edges_that_do_not_fit(job: &Job) -> Result<()> {
    // A member that fails at once would fail another that still waits for the end of `Cartesian::new`. This
    // communicator has no failures, so that all members are through before one goes on.
    let aside = job.world().dup()?;
    let line = Cartesian::new(job.world(), [job.size()], [true])?;
    aside.barrier()?;
    let mut tile = vec![job.rank().0 as u64; 60];
    let (edges, mut halos) =
        StridedMut::submatrices(&mut tile, 6, [[0..10, 1..2]], [[0..10, 0..1], [0..10, 5..6]]);
    misused(job, line.neighbor_alltoall((&edges, &mut halos)), &["1 blocks for 2 neighbours"]);
    let world = job.world().recreate()?;
    let line = Cartesian::new(&world, [job.size()], [true])?;
    aside.barrier()?;
    let rows = if job.rank() == FIRST { 10 } else { 9 };
    let (edges, mut halos) = StridedMut::submatrices(
        &mut tile,
        6,
        [[0..10, 1..2], [0..10, 4..5]],
        [[0..rows, 0..1], [0..10, 5..6]],
    );
    let failed = line.neighbor_alltoall((&edges, &mut halos));
    assert!(failed.is_err(), "rank 1 has too little room");
    assert!(tile.iter().all(|&value| value == job.rank().0 as u64));
    job.barrier()
}
