//! Ranks that a foreign launcher started: they find each other through its process manager, by the protocol PMI-1.
//!
//! ```text
//! rank 0                          process manager                others
//!   put card               ->                         <-          put card
//!   barrier                                                       barrier
//!   get all cards          ->
//!   open door, put notice  ->
//!   barrier                                                       barrier
//!                                                     <-          get notice
//!   ... all come to rank 0's door as they would come to a launcher's (wire.rs) ...
//!   finalize               ->                         <-          finalize
//! ```
//!
//! Nobody but the ranks tells of a death: rank 0's [`Coordinator`] watches all others, and each other rank's [`Monitor`]
//! watches rank 0, which stays until all have left.

mod business_card;
mod client;
mod coordinator;
mod monitor;

use super::Membership;
use super::rendezvous_client::{self, LauncherConnection};
use super::rendezvous_server::{Expected, RendezvousServer};
use super::settings::{LauncherSettings, Managed, Settings};
use crate::base::log::{Level, Log};
use crate::base::{Cause, Error, Rank, Result};
use crate::os::{affinity, process};
use business_card::{BusinessCard, Notice};
use client::Client;
use coordinator::Coordinator;
use monitor::Monitor;

/// Under which key rank 0 puts where its door is.
const NOTICE: &str = "tasuki-door";
/// Who brings the ranks together.
const FIRST: Rank = Rank(0);

/// Under which key a rank puts its card.
fn business_card_key(rank: Rank) -> String {
    format!("tasuki-{rank}")
}

/// What ties a rank to the others and to the process manager while it lives. Dropped before the rank has left, it
/// tells the others that the rank is dead.
#[derive(Debug)]
pub struct PmiConnection {
    line: LauncherConnection,
    watcher: Watcher,
    client: Client,
    pid: u32,
}

/// Who tells this rank of deaths.
#[derive(Debug)]
enum Watcher {
    Coordinator(Coordinator),
    Monitor(Monitor),
}

impl PmiConnection {
    /// The rank has left in order. Rank 0 waits here until all others have, because who dies meanwhile is noticed by
    /// it alone. In a forked child it does nothing.
    pub fn leave(self) {
        self.line.leave();
        if std::process::id() != self.pid {
            return;
        }
        match self.watcher {
            Watcher::Coordinator(porter) => porter.join_all(),
            Watcher::Monitor(sentry) => drop(sentry),
        }
        self.client.finalize();
    }
}

/// Joins the job of which a process manager has told this process. Waits until all its ranks are there.
///
/// Costs two barriers of the process manager, and what joining at a launcher's door costs.
pub(super) fn join(settings: &Settings, managed: &Managed) -> Result<(Membership, PmiConnection)> {
    let (rank, size) = (managed.rank, managed.size);
    let log = Log::new(format!("rank {rank}"), settings.log);
    let mut client = Client::open(managed.descriptor)?;
    client.put(&business_card_key(rank), &BusinessCard::own().encode())?;
    meet(&mut client, managed, &log)?;
    let mut porter = None;
    if rank == FIRST {
        let outcome = bring_together(settings, managed, &mut client);
        let (notice, opened) = match outcome {
            Ok((notice, opened)) => (notice, Ok(opened)),
            Err(error) => (Notice::Refused(format!("rank {FIRST}: {}", error.headline())), Err(error)),
        };
        client.put(NOTICE, &notice.encode(client.value_bytes_max()))?;
        meet(&mut client, managed, &log)?;
        porter = opened?;
    } else {
        meet(&mut client, managed, &log)?;
    }
    let door = match Notice::decode(&client.get(NOTICE)?)? {
        Notice::ServerAddress(door) => door,
        Notice::Refused(why) => return Err(Cause::Join(why).into()),
    };
    let (membership, line) =
        rendezvous_client::enter(settings, &LauncherSettings { rank, size, door }, "rank 0")?;
    let watcher = match porter {
        Some(porter) => Watcher::Coordinator(porter),
        None => Watcher::Monitor(Monitor::start(&line, FIRST, settings.denied)?),
    };
    Ok((membership, PmiConnection { line, watcher, client, pid: std::process::id() }))
}

/// Waits for all ranks at the process manager, and says so when that takes long: one rank does, and a second one in
/// case it is the first that does not come.
fn meet(client: &mut Client, managed: &Managed, log: &Log) -> Result<()> {
    client.barrier(|waited| {
        let size = managed.size;
        if managed.rank > Rank(1) {
            return;
        }
        log.say(
            Level::Warn,
            format_args!(
                "has waited {waited:?} for all {size} ranks to join (the barrier of the process manager): a rank \
                 whose program ended before it joined, or that does not use Tasuki, never comes"
            ),
        );
    })
}

/// Rank 0's part: looks whether all can be one job, and opens the door to it.
fn bring_together(
    settings: &Settings,
    managed: &Managed,
    client: &mut Client,
) -> Result<(Notice, Option<Coordinator>)> {
    let cards: Result<Vec<BusinessCard>> = Rank::all(managed.size).map(|rank| fetch(client, rank)).collect();
    let cards = cards?;
    if let Some(why) = business_card::apart(&cards) {
        return Ok((Notice::Refused(why), None));
    }
    // The line, file and process descriptor of each.
    process::allow_descriptors(3 * managed.size as u64)?;
    let processors = affinity::granted(business_card::processors(&cards));
    let door = RendezvousServer::open(&prefix(), Expected::Ranks(managed.size), settings.wake, processors)?;
    let notice = Notice::ServerAddress(door.address().clone());
    let pids: Vec<u32> = cards.iter().map(|card| card.pid).collect();
    let log = Log::new(format!("rank {FIRST}"), settings.log);
    Ok((notice, Some(Coordinator::start(door, &pids, settings.denied, log)?)))
}

/// Other than a launcher's door, which answers `tasuki ps`.
fn prefix() -> String {
    format!("tasuki-pmi-{}-", process::effective_user())
}

fn fetch(client: &mut Client, rank: Rank) -> Result<BusinessCard> {
    let text = client.get(&business_card_key(rank))?;
    BusinessCard::decode(&text).ok_or_else(|| {
        Error::new(Cause::Join(format!(
            "the card of rank {rank} ({text:?}) makes no sense: build all programs of the job from the same version"
        )))
    })
}
