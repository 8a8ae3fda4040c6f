//! Large blocks between two ranks. One block is in flight in bandwidth_put, bandwidth_job, bandwidth_own and
//! shared_copy. bandwidth_stream sends windows of 64 blocks, each followed by one answer.
//!
//! In hot memory all blocks of a window use the same buffer, as in OSU's programs. Two receives cannot borrow one
//! buffer, so the number of outstanding receives is at most the number of buffers; all sends of a window are
//! outstanding at once.

use super::block_memory::{Block, BlockMemory, count, read, write};
use super::messages::{WINDOW, window_slots};
use super::{Figures, Setup, Stopwatch, expect, figure, wrong};
use std::rc::Rc;
use tasuki::message::send_from;
use tasuki::{Command, Request, Slot};

const SLOT: Slot = Slot(3);
const ANSWER: Slot = Slot(2);

/// How a case transfers a block: a function that writes it, one that sends it to the other rank and back (returns the
/// time in ns), and one that reads it.
struct Carrier {
    write: fn(&BlockMemory<'_>, Block) -> tasuki::Result<()>,
    ping_pong: fn(&BlockMemory<'_>, Block) -> tasuki::Result<u64>,
    read: fn(&BlockMemory<'_>, Block) -> tasuki::Result<()>,
}

const PUT: Carrier = Carrier { write: write_own, ping_pong: ping_pong_by_put, read: read_job };
const JOB: Carrier = Carrier { write: write_job, ping_pong: ping_pong_in_job_memory, read: read_job };
const OWN: Carrier = Carrier { write: write_own, ping_pong: ping_pong_in_own_memory, read: read_own };
const SHARED: Carrier = Carrier { write: write_job, ping_pong: ping_pong_by_commands, read: read_job };

/// Blocks are put into job memory, with a signal.
pub(crate) fn bandwidth_put<'j>(s: &Setup<'j>) -> Figures<'j> {
    carried(s, &PUT)
}

/// Blocks are sent as messages from job memory to job memory.
pub(crate) fn bandwidth_job<'j>(s: &Setup<'j>) -> Figures<'j> {
    carried(s, &JOB)
}

/// Blocks are sent as messages between memory that only the two programs own.
pub(crate) fn bandwidth_own<'j>(s: &Setup<'j>) -> Figures<'j> {
    carried(s, &OWN)
}

/// Commands copy blocks while both ranks wait: each rank copies a part of each block.
pub(crate) fn shared_copy<'j>(s: &Setup<'j>) -> Figures<'j> {
    carried(s, &SHARED)
}

fn memory<'j>(s: &Setup<'j>) -> tasuki::Result<Rc<BlockMemory<'j>>> {
    s.blocks.clone().ok_or_else(|| wrong("the memory of blocks"))
}

/// Bytes per second of blocks that are sent to the other rank and back.
fn carried<'j>(s: &Setup<'j>, carrier: &'static Carrier) -> Figures<'j> {
    let (memory, words, fresh) = (memory(s)?, s.words(), s.state.fresh);
    let (places, blocks, bytes) = (s.effort.places(s.bytes, s.state.cold), s.effort.blocks(s.bytes), s.bytes);
    let exchange = move |blocks: u64| -> tasuki::Result<u64> {
        let mut took = 0;
        for _ in 0..blocks {
            let number = count(&memory.blocks);
            let block = Block { first: number as usize % places * words, words, number, fresh };
            (carrier.write)(&memory, block)?;
            took += (carrier.ping_pong)(&memory, block)?;
            (carrier.read)(&memory, block)?;
        }
        Ok(took)
    };
    Ok(vec![figure(s.state.to_string(), move || {
        exchange(places as u64 + 1)?;
        Ok((2 * blocks * bytes) as f64 / (exchange(blocks)? as f64 / 1e9))
    })])
}

fn write_own(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<()> {
    memory.own_source().write(block);
    Ok(())
}

fn write_job(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<()> {
    write(&memory.job_source, block)
}

fn read_own(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<()> {
    memory.own_target().read(block)
}

fn read_job(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<()> {
    read(&memory.job_target, block)
}

#[inline(never)]
fn ping_pong_by_put(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<u64> {
    let number = count(&memory.puts);
    let mut source = memory.own_source();
    let words = source.block(block);
    let to = memory.job_target.on(memory.peer).at(block.first);
    let raise = memory.arrived.on(memory.peer);
    memory.meet()?;
    let watch = Stopwatch::start();
    if memory.is_lead {
        memory.job.put_signal(to, words, raise, 1)?;
    }
    memory.arrived.wait_at_least(number)?;
    if !memory.is_lead {
        memory.job.put_signal(to, words, raise, 1)?;
    }
    Ok(watch.ns(memory.clock_ns))
}

#[inline(never)]
fn ping_pong_in_job_memory(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<u64> {
    let (world, peer) = (memory.job.world(), memory.peer);
    let source = memory.job_source.pointer().at(block.first);
    let target = memory.job_target.pointer().at(block.first);
    world.scope(|scope| {
        let mut receive = scope.recv_into(target.slice(block.words), peer, SLOT)?;
        memory.meet()?;
        let watch = Stopwatch::start();
        if memory.is_lead {
            send_from(world, source.slice(block.words), peer, SLOT)?;
        }
        receive.wait()?;
        if !memory.is_lead {
            send_from(world, source.slice(block.words), peer, SLOT)?;
        }
        Ok(watch.ns(memory.clock_ns))
    })
}

#[inline(never)]
fn ping_pong_in_own_memory(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<u64> {
    let (world, peer) = (memory.job.world(), memory.peer);
    let (mut source, mut target) = (memory.own_source(), memory.own_target());
    let (source, target) = (source.block(block), target.block(block));
    world.scope(|scope| {
        let mut receive = scope.recv(target, peer, SLOT)?;
        memory.meet()?;
        let watch = Stopwatch::start();
        if memory.is_lead {
            world.send(source, peer, SLOT)?;
        }
        receive.wait()?;
        if !memory.is_lead {
            world.send(source, peer, SLOT)?;
        }
        Ok(watch.ns(memory.clock_ns))
    })
}

/// The follower posts its copy after the lead's copy has ended.
#[inline(never)]
fn ping_pong_by_commands(memory: &BlockMemory<'_>, block: Block) -> tasuki::Result<u64> {
    let ended = &memory.ended;
    let before = (count(&memory.copies) - 1) * 2;
    let from = memory.job_source.pointer().at(block.first);
    let to = memory.job_target.on(memory.peer).at(block.first);
    memory.meet()?;
    let watch = Stopwatch::start();
    if !memory.is_lead {
        ended.wait_at_least(before + 1)?;
    }
    let copy = Command::copy(from, to, block.words)
        .then(ended.on(memory.peer).add(1))
        .then(ended.on(memory.job.rank()).add(1));
    memory.queue.post(&copy)?;
    ended.wait_at_least(before + 2)?;
    Ok(watch.ns(memory.clock_ns))
}

/// Bytes per second of windows of blocks.
pub(crate) fn bandwidth_stream<'j>(s: &Setup<'j>) -> Figures<'j> {
    let stream = Stream {
        memory: memory(s)?,
        words: s.words(),
        places: s.effort.places(s.bytes, s.state.cold),
        fresh: s.state.fresh,
    };
    let window = WINDOW as u64;
    let (windows, bytes) = (s.effort.blocks(s.bytes * window), s.bytes);
    Ok(vec![figure(s.state.to_string(), move || {
        stream.window()?;
        let took = (0..windows).map(|_| stream.window()).sum::<tasuki::Result<u64>>()?;
        Ok((windows * window * bytes) as f64 / (took as f64 / 1e9))
    })])
}

struct Stream<'j> {
    memory: Rc<BlockMemory<'j>>,
    words: usize,
    places: usize,
    fresh: bool,
}

impl Stream<'_> {
    /// Returns the index of the first buffer of a window, and the number of buffers that the window uses.
    fn run(&self, number: u64) -> (usize, usize) {
        let used = self.places.min(WINDOW);
        (number as usize % (self.places / used) * used, used)
    }

    fn block(&self, place: usize, number: u64) -> Block {
        Block { first: place * self.words, words: self.words, number, fresh: self.fresh }
    }

    fn window(&self) -> tasuki::Result<u64> {
        let number = count(&self.memory.blocks);
        if self.memory.is_lead { self.send(number) } else { self.receive(number).map(|()| 0) }
    }

    #[inline(never)]
    fn send(&self, number: u64) -> tasuki::Result<u64> {
        let (memory, (first, used)) = (&self.memory, self.run(number));
        let (mut source, mut answer) = (memory.own_source(), [0]);
        (first..first + used).for_each(|place| source.write(self.block(place, number)));
        let source: &[u64] = source.words();
        let took = memory.job.world().scope(|scope| {
            scope.recv(&mut answer, memory.peer, ANSWER)?;
            memory.meet()?;
            let watch = Stopwatch::start();
            for (index, slot) in window_slots().enumerate() {
                let begin = (first + index % used) * self.words;
                scope.send(&source[begin..begin + self.words], memory.peer, slot)?;
            }
            scope.wait_all()?;
            Ok(watch.ns(memory.clock_ns))
        })?;
        expect(answer[0], number, "bandwidth_stream").map(|()| took)
    }

    #[inline(never)]
    fn receive(&self, number: u64) -> tasuki::Result<()> {
        let (memory, (first, used)) = (&self.memory, self.run(number));
        let (world, mut target) = (memory.job.world(), memory.own_target());
        let all: Vec<Slot> = window_slots().collect();
        for (run, slots) in all.chunks(used).enumerate() {
            let blocks = target.words()[first * self.words..].chunks_exact_mut(self.words);
            world.scope(|scope| {
                for (block, &slot) in blocks.zip(slots) {
                    scope.recv(block, memory.peer, slot)?;
                }
                if run == 0 { memory.meet() } else { Ok(()) }
            })?;
        }
        world.send(&[number], memory.peer, ANSWER)?;
        (first..first + used).try_for_each(|place| target.read(self.block(place, number)))
    }
}
