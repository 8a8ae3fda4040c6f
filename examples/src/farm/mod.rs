//! A farm: one rank, the master, gives out tiles of a picture, and all others, the workers, compute them.
//!
//! Tiles cost very different times, and workers may be of different speed. So the master gives a worker its next tile
//! when its last one has come. It neither knows nor asks which worker that will be: all send their tiles to its
//! any-source queue, whose memory does not grow with the number of workers. A tile is longer than a place of the queue.
//! Then only a header passes through the queue, and the master fetches the values from the worker.
//!
//! ```text
//!  worker                                        master
//!  send_any(nothing)            ----------->     recv_any_vec: who is it?
//!  recv: tile 17                <-----------     send the next tile to it
//!  compute; send_any(17, values) ---------->     recv_any_vec: into the picture
//!  recv: DONE                   <-----------     no tile is left
//! ```
//!
//! The values of a pixel do not depend on who computes it, so the picture is the same for any number of ranks.

mod mandelbrot;
mod picture;

pub use mandelbrot::View;
pub use picture::colors;

use std::ops::Range;
use tasuki::prelude::*;

/// The master.
const MASTER: Rank = Rank(0);
/// Slot of the tiles that were computed.
const TILES: Slot = Slot(0);
/// Slot of the numbers of tiles to compute.
const NEXT: Slot = Slot(1);
/// What a worker gets instead of a number when no tile is left.
const DONE: u32 = u32::MAX;

/// The picture, and who has computed it.
#[derive(Clone, PartialEq, Debug)]
pub struct Harvest {
    /// The value of each pixel, row by row.
    pub values: Vec<u32>,
    /// How many tiles each rank has computed.
    pub tiles: Vec<usize>,
}

/// Computes the picture on all ranks. `times`: how often this rank computes each tile; a rank that does so more than
/// once plays a slow machine. `progress` gets how many tiles have come. The master returns the picture, and the others
/// nothing. A job of one rank computes all tiles itself.
pub fn farm(
    job: &Job,
    view: &View,
    times: usize,
    progress: impl FnMut(usize),
) -> tasuki::Result<Option<Harvest>> {
    if job.size() == 1 {
        return Ok(Some(alone(view)));
    }
    if job.rank() == MASTER {
        return master(job, view, progress).map(Some);
    }
    worker(job.world(), view, times).map(|()| None)
}

/// The picture, computed by one rank.
pub fn alone(view: &View) -> Harvest {
    let mut values = vec![0; view.pixels()];
    (0..view.tiles()).for_each(|tile| view.place(tile, &view.tile(tile), &mut values));
    Harvest { values, tiles: vec![view.tiles()] }
}

fn master(job: &Job, view: &View, mut progress: impl FnMut(usize)) -> tasuki::Result<Harvest> {
    let world = job.world();
    let mut harvest = Harvest { values: vec![0; view.pixels()], tiles: vec![0; job.size()] };
    let mut next: Range<u32> = 0..view.tiles() as u32;
    let mut workers = job.size() - 1;
    while workers > 0 {
        let (message, from) = world.recv_any_vec::<u32>(TILES)?;
        if let [tile, values @ ..] = &message[..] {
            view.place(*tile as usize, values, &mut harvest.values);
            harvest.tiles[from.source.index()] += 1;
            progress(harvest.tiles.iter().sum());
        }
        let tile = next.next().unwrap_or(DONE);
        world.send(&tile, from.source, NEXT)?;
        workers -= usize::from(tile == DONE);
    }
    Ok(harvest)
}

fn worker(world: &Communicator, view: &View, times: usize) -> tasuki::Result<()> {
    let mut message = Vec::new();
    loop {
        world.send_any(&message, MASTER, TILES)?;
        let mut tile = 0;
        world.recv(&mut tile, MASTER, NEXT)?;
        if tile == DONE {
            return Ok(());
        }
        message.clear();
        message.push(tile);
        (0..times).for_each(|_| {
            message.truncate(1);
            message.extend(view.tile(tile as usize));
        });
    }
}
