//! Joining of ranks that another launcher started: they find each other through its process manager, by the PMI-1
//! protocol.
//!
//! ```text
//! rank 0                          process manager                others
//!   put card               ->                         <-          put card
//!   barrier                                                       barrier
//!   get all cards          ->
//!   open server, put notice ->
//!   barrier                                                       barrier
//!                                                     <-          get notice
//!   ... all join at rank 0's server as they would join at a launcher's (wire.rs) ...
//!   finalize               ->                         <-          finalize
//! ```
//!
//! Only the ranks themselves detect a death: rank 0's [`Coordinator`] watches all others, and each other rank's
//! [`Monitor`] watches rank 0, which stays until all have left.

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

/// The key of rank 0's notice, which has the address of its server.
const NOTICE: &str = "tasuki-server";
/// The rank that runs the rendezvous server.
const FIRST: Rank = Rank(0);

/// Returns the key of a rank's business card.
fn business_card_key(rank: Rank) -> String {
    format!("tasuki-{rank}")
}

/// The connections of a rank to rank 0's server and to the process manager, open while the rank lives. If they are
/// dropped before the rank has left, the other ranks take it for dead.
#[derive(Debug)]
pub struct PmiConnection {
    connection: LauncherConnection,
    watcher: Watcher,
    client: Client,
    pid: u32,
}

/// The thread of this rank that detects deaths.
#[derive(Debug)]
enum Watcher {
    Coordinator(Coordinator),
    Monitor(Monitor),
}

impl PmiConnection {
    /// Leaves the job in order. Rank 0 waits here until all others have left, because only it can detect their deaths.
    /// Does nothing in a forked child.
    pub fn leave(self) {
        self.connection.leave();
        if std::process::id() != self.pid {
            return;
        }
        match self.watcher {
            Watcher::Coordinator(coordinator) => coordinator.join_all(),
            Watcher::Monitor(monitor) => drop(monitor),
        }
        self.client.finalize();
    }
}

/// Joins the job of this process's PMI settings. Waits until all its ranks have joined.
///
/// Costs two barriers of the process manager, and joining at a rendezvous server.
pub(super) fn join(settings: &Settings, managed: &Managed) -> Result<(Membership, PmiConnection)> {
    let (rank, size) = (managed.rank, managed.size);
    let log = Log::new(format!("rank {rank}"), settings.log);
    let mut client = Client::open(managed.descriptor)?;
    client.put(&business_card_key(rank), &BusinessCard::own().encode())?;
    barrier(&mut client, managed, &log)?;
    let mut coordinator = None;
    if rank == FIRST {
        let outcome = open_server(settings, managed, &mut client);
        let (notice, opened) = match outcome {
            Ok((notice, opened)) => (notice, Ok(opened)),
            Err(error) => (Notice::Refused(format!("rank {FIRST}: {}", error.headline())), Err(error)),
        };
        client.put(NOTICE, &notice.encode(client.value_bytes_max()))?;
        barrier(&mut client, managed, &log)?;
        coordinator = opened?;
    } else {
        barrier(&mut client, managed, &log)?;
    }
    let server = match Notice::decode(&client.get(NOTICE)?)? {
        Notice::ServerAddress(address) => address,
        Notice::Refused(why) => return Err(Cause::Join(why).into()),
    };
    let (membership, connection) =
        rendezvous_client::join(settings, &LauncherSettings { rank, size, server }, "rank 0")?;
    let watcher = match coordinator {
        Some(coordinator) => Watcher::Coordinator(coordinator),
        None => Watcher::Monitor(Monitor::start(&connection, FIRST, settings.disabled)?),
    };
    Ok((membership, PmiConnection { connection, watcher, client, pid: std::process::id() }))
}

/// Waits for all ranks in a barrier of the process manager. Ranks 0 and 1 warn if that takes long:
/// rank 1 in case rank 0 does not come.
fn barrier(client: &mut Client, managed: &Managed, log: &Log) -> Result<()> {
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

/// Checks that all ranks can be one job, and starts the rendezvous server. Only rank 0 calls this.
fn open_server(
    settings: &Settings,
    managed: &Managed,
    client: &mut Client,
) -> Result<(Notice, Option<Coordinator>)> {
    let cards: Result<Vec<BusinessCard>> = Rank::all(managed.size).map(|rank| fetch(client, rank)).collect();
    let cards = cards?;
    if let Some(why) = business_card::not_on_one_node(&cards) {
        return Ok((Notice::Refused(why), None));
    }
    // For each rank: its connection, memory file and pidfd.
    process::allow_descriptors(3 * managed.size as u64)?;
    let processors = affinity::granted(business_card::processors(&cards));
    let server = RendezvousServer::open(&prefix(), Expected::Ranks(managed.size), settings.wake, processors)?;
    let notice = Notice::ServerAddress(server.address().clone());
    let pids: Vec<u32> = cards.iter().map(|card| card.pid).collect();
    let log = Log::new(format!("rank {FIRST}"), settings.log);
    Ok((notice, Some(Coordinator::start(server, &pids, settings.disabled, log)?)))
}

/// Returns the prefix of the server's name. It differs from a launcher's, because this server does
/// not answer `tasuki ps`.
fn prefix() -> String {
    format!("tasuki-pmi-{}-", process::effective_user())
}

fn fetch(client: &mut Client, rank: Rank) -> Result<BusinessCard> {
    let text = client.get(&business_card_key(rank))?;
    BusinessCard::decode(&text).ok_or_else(|| {
        Error::new(Cause::Join(format!(
            "the card of rank {rank} ({text:?}) is malformed: build all programs of the job from the same version"
        )))
    })
}
