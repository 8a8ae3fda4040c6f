//! A stream of frames passes through all ranks, and each rank works on every frame. Receives are posted ahead of the
//! frames and sends are awaited later, as futures, so that no rank waits for one frame while it could work on
//! another.

use clap::Parser;
use std::collections::VecDeque;
use tasuki::prelude::*;

/// The number of frames in flight between two ranks. They use that many slots in turn.
const DEPTH: usize = 4;
/// Sizes of the frames in bytes, in turn. Some fit into a cache line, some pass through a ring in many pieces.
const SIZES: [usize; 5] = [24, 300, 5000, 70_000, FRAME_MAX];
const FRAME_MAX: usize = 300_000;

/// Send a stream of frames through all ranks.
#[derive(Parser)]
#[command(name = "pipeline", after_help = "Example: tasuki run -n 4 pipeline --frames 1000")]
struct Options {
    /// Number of frames
    #[arg(long, default_value_t = 200)]
    frames: usize,
}

/// The bytes of a frame when the first rank makes it.
fn new_frame(number: usize) -> Vec<u8> {
    (0..SIZES[number % SIZES.len()]).map(|place| (number + place) as u8).collect()
}

/// The work of a rank on a frame, by which the last rank can check that all ranks had the frame.
fn work(frame: &mut [u8], rank: Rank) {
    frame.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3).wrapping_add(rank.index() as u8));
}

/// Processes all frames in order. Returns the number of their bytes.
async fn stage(job: &Job, frames: usize) -> tasuki::Result<usize> {
    let (world, previous, next) = (job.world(), job.rank_after(-1), job.rank_after(1));
    let slot = |number: usize| Slot(number % DEPTH);
    let (mut incoming, mut outgoing, mut bytes) = (VecDeque::new(), VecDeque::new(), 0);
    for number in 0..frames {
        // The next frames are in flight while this one is awaited. The first rank makes the frames.
        while job.rank() != 0 && incoming.len() < DEPTH.min(frames - number) {
            incoming.push_back(world.irecv(vec![0; FRAME_MAX], previous, slot(number + incoming.len()))?);
        }
        let mut frame = match incoming.pop_front() {
            Some(receiving) => receiving.await?.0, // as long as the message
            None => new_frame(number),
        };
        bytes += frame.len();
        work(&mut frame, job.rank());
        if next == 0 {
            check(job, number, &frame)?;
            continue;
        }
        if outgoing.len() == DEPTH
            && let Some(earliest) = outgoing.pop_front()
        {
            earliest.await?; // the next rank has received the previous frame of this slot
        }
        outgoing.push_back(world.isend(frame, next, slot(number))?);
    }
    wait_all(Vec::from(outgoing))?;
    Ok(bytes)
}

fn check(job: &Job, number: usize, frame: &[u8]) -> tasuki::Result<()> {
    let mut expected = new_frame(number);
    job.ranks().for_each(|rank| work(&mut expected, rank));
    if frame == expected { Ok(()) } else { Err(format!("frame {number} has wrong bytes").into()) }
}

fn app(job: &Job, frames: usize) -> tasuki::Result<()> {
    job.barrier()?;
    let begin = job.clock();
    let bytes = block_on(stage(job, frames))?;
    if job.rank_after(1) == 0 {
        let (seconds, megabytes) = ((job.clock() - begin).as_secs_f64(), bytes as f64 / 1e6);
        let passed = format!("passed through {} ranks and are correct", job.size());
        println!("{frames} frames, {megabytes:.1} MB in total, {passed}");
        println!("{:.0} frames/s, {:.0} MB/s at each rank", frames as f64 / seconds, megabytes / seconds);
    }
    job.barrier()
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, options.frames))
}
