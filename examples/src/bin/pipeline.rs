//! A stream of frames passes through all ranks, and each rank works on every frame. Receives are posted ahead of the
//! frames and sends are awaited later, as futures, so that no rank waits for one frame while it could work on
//! another.

use clap::Parser;
use std::collections::VecDeque;
use std::process::ExitCode;
use tasuki::Error;
use tasuki::engine::Cause;
use tasuki::message::{RecvRequest, SendRequest};
use tasuki::prelude::*;

/// The number of frames in flight between two ranks. They use that many slots in turn.
const DEPTH: usize = 4;
/// Sizes of the frames in bytes, in turn. Some fit into a cache line, some pass through a ring in many pieces.
const SIZES: [usize; 5] = [24, 300, 5000, 70_000, 300_000];
const FRAME_MAX: usize = 300_000;

/// Send a stream of frames through all ranks.
#[derive(Parser)]
#[command(name = "pipeline", after_help = "Example: tasuki run -n 4 pipeline --frames 1000")]
struct Options {
    /// Number of frames
    #[arg(long, default_value_t = 200)]
    frames: usize,
}

/// The stage of one rank.
struct Stage<'job> {
    job: &'job Job,
    frames: usize,
    incoming: VecDeque<RecvRequest<u8>>,
    outgoing: VecDeque<SendRequest<u8>>,
    /// The number of receives posted so far.
    posted: usize,
    bytes: usize,
}

fn slot(frame: usize) -> Slot {
    Slot(frame % DEPTH)
}

/// The bytes of a frame when the first rank makes it.
fn new_frame(frame: usize) -> Vec<u8> {
    let first = frame as u8;
    (0..SIZES[frame % SIZES.len()]).map(|place| first.wrapping_add(place as u8)).collect()
}

/// The work of a rank on a frame, by which the last rank can check that all ranks had the frame.
fn work(frame: &mut [u8], rank: Rank) {
    frame.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3).wrapping_add(rank.0 as u8));
}

impl Stage<'_> {
    fn is_last(&self) -> bool {
        self.job.rank().index() + 1 == self.job.size()
    }

    /// Processes all frames in order.
    async fn run(mut self) -> tasuki::Result<usize> {
        for frame in 0..self.frames {
            let mut bytes = self.receive(frame).await?;
            self.bytes += bytes.len();
            work(&mut bytes, self.job.rank());
            if self.is_last() {
                self.check(frame, &bytes)?;
            } else {
                self.forward(frame, bytes).await?;
            }
        }
        for sending in self.outgoing {
            sending.await?;
        }
        Ok(self.bytes)
    }

    /// Receives the frame from the previous rank while the next frames are in flight. The first rank makes the frame.
    async fn receive(&mut self, frame: usize) -> tasuki::Result<Vec<u8>> {
        if self.job.rank() == Rank(0) {
            return Ok(new_frame(frame));
        }
        while self.posted < self.frames.min(frame + DEPTH) {
            let buffer = vec![0; FRAME_MAX];
            self.incoming.push_back(self.job.world().irecv(
                buffer,
                self.job.rank_after(-1),
                slot(self.posted),
            )?);
            self.posted += 1;
        }
        let Some(receiving) = self.incoming.pop_front() else { return Ok(Vec::new()) };
        let (mut bytes, got) = receiving.await?;
        bytes.truncate(got.count);
        Ok(bytes)
    }

    /// Sends the frame to the next rank when the previous frame of the same slot has been received.
    async fn forward(&mut self, frame: usize, bytes: Vec<u8>) -> tasuki::Result<()> {
        if self.outgoing.len() == DEPTH
            && let Some(earliest) = self.outgoing.pop_front()
        {
            earliest.await?;
        }
        self.outgoing.push_back(self.job.world().isend(bytes, self.job.rank_after(1), slot(frame))?);
        Ok(())
    }

    fn check(&self, frame: usize, bytes: &[u8]) -> tasuki::Result<()> {
        let mut expected = new_frame(frame);
        self.job.ranks().for_each(|rank| work(&mut expected, rank));
        if bytes == expected {
            return Ok(());
        }
        Err(Error::new(Cause::Program(format!("frame {frame} has wrong bytes"))))
    }
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    job.barrier()?;
    let begin = job.clock();
    let (incoming, outgoing) = (VecDeque::new(), VecDeque::new());
    let stage = Stage { job, frames: options.frames, incoming, outgoing, posted: 0, bytes: 0 };
    let is_last = stage.is_last();
    let bytes = pollster::block_on(stage.run())?;
    if is_last {
        let seconds = (job.clock() - begin).as_secs_f64();
        let (frames, megabytes) = (options.frames, bytes as f64 / 1e6);
        println!(
            "{frames} frames, {megabytes:.1} MB in total, passed through {} ranks and are correct",
            job.size()
        );
        println!("{:.0} frames/s, {:.0} MB/s at each rank", frames as f64 / seconds, megabytes / seconds);
    }
    job.barrier()
}

fn main() -> ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, &options))
}
