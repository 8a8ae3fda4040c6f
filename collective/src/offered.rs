//! Barriers and broadcasts that the fabric offers of its own, where members do not reach each other by loads and
//! stores.
//!
//! At the first such call of a communicator its members lay out what the network needs, tell each other where by two
//! allgathers, and use it from then on if all have it. A barrier is a meeting. In a broadcast the root's bytes come
//! into a place of each member's, with a head that says what they are; each takes them from there, and comes to a
//! meeting: when that is over, which nobody waits for before the next call, all places are free. So a broadcast takes
//! one way through the network, unless the root comes before the others have taken the last one.
//!
//! Nothing here tells of members that do not come: that do [notices](super::notices).

use super::communicator::Communicator;
use super::habit::Kind;
use super::notices::{LINES, Notices};
use super::roll::Noted;
use bytemuck::{Pod, Zeroable};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Machine;
use tasuki_core::fabric::{Fabric, Group, GroupMember, Refused, SignalCell, plainly_reached};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;
use tasuki_message::SHORT_MAX;

/// Most bytes of a member's place.
const PLACE_MAX: u64 = 64 << 10;
/// Signals that a group raises: meetings, and what was brought.
const SIGNALS: u32 = 2;

/// What each member tells all others: a short message.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Word {
    /// The first of its signals, and of its lines.
    signals: u32,
    lines: u32,
    /// What the counters of the lines are.
    stood: [u64; LINES as usize],
    place: u64,
    /// 0: this member has no room.
    found_room: u64,
}

const _: () = assert!(size_of::<Word>() <= SHORT_MAX);

/// What comes before the bytes of a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct Head {
    number: u64,
    root: u32,
    bytes: u32,
}

/// Signals and memory of the own part, which go back when it is dropped.
#[derive(Debug)]
struct Part {
    machine: Arc<Machine>,
    word: Word,
    bytes: u64,
}

/// What a communicator uses of the fabric's own.
#[derive(Debug)]
pub(super) struct Offered {
    part: Part,
    key: u64,
    /// Its signals, and what they were at first.
    met: (SignalCell, u64),
    brought: (SignalCell, u64),
    /// How much was brought to this member, and broadcasts there were.
    gotten: AtomicU64,
    broadcasts: AtomicU64,
    notices: Arc<Notices>,
    watch: u32,
}

/// A call that the fabric does, while it lasts.
pub(super) struct Turn<'c> {
    offered: &'c Offered,
    members: &'c Communicator,
    call: &'c dyn Fn() -> String,
    _noted: Option<Noted>,
}

impl Part {
    fn new(machine: &Arc<Machine>, bytes: u64) -> Result<Part> {
        let registry = machine.registry();
        let (signals, lines) = (registry.private_signals(SIGNALS)?, registry.private_signals(LINES)?);
        let stood = [lines, lines + 1].map(|line| machine.count_of_own(line));
        let word = Word { signals, lines, stood, place: 0, found_room: 1 };
        let mut part = Part { machine: machine.clone(), word, bytes };
        if bytes > 0 {
            part.word.place = registry.allocate_local(bytes)?;
        }
        Ok(part)
    }

    fn place(&self) -> GlobalAddress {
        GlobalAddress::new(self.machine.rank(), self.word.place)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.word.place != 0 {
            let freed = self.machine.registry().free(self.word.place);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
        self.machine.registry().give_back_signals(self.word.signals, SIGNALS);
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.part.machine.fabric().close_group(self.key); // before its memory goes back, which the part does
    }
}

impl Word {
    fn member(&self, rank: Rank) -> GroupMember {
        let signal = |number| GlobalAddress::new(rank, signal_offset(number));
        let place = if self.place == 0 { GlobalAddress::NULL } else { GlobalAddress::new(rank, self.place) };
        GroupMember { met: signal(self.signals), brought: signal(self.signals + 1), place }
    }
}

impl Offered {
    /// This thread is in that call, as long as the result lasts.
    #[inline]
    pub(super) fn note(&self, kind: Option<&Kind>) -> Noted {
        self.notices.note(kind, self.watch)
    }

    fn new(members: &Communicator, part: Part, words: &[Word]) -> Result<Offered, Cause> {
        let machine = part.machine.clone();
        let fabric = machine.fabric();
        let (me, key) = (members.rank().index(), members.messages().number());
        let ranks: Box<[Rank]> =
            (0..words.len() as u32).filter_map(|member| members.messages().rank_of(Rank(member))).collect();
        let seats: Vec<GroupMember> =
            words.iter().zip(&ranks).map(|(word, &rank)| word.member(rank)).collect();
        let signals = [0, 1].map(|at| part.word.signals + at);
        let own = |signal: u32| Ok((fabric.own_signal(signal)?, machine.count_of_own(signal)));
        let (met, brought) = (own(signals[0])?, own(signals[1])?);
        let next = (me + 1) % words.len();
        let line = |at: usize| {
            let number = words[next].lines + at as u32;
            (GlobalAddress::new(ranks[next], signal_offset(number)), words[next].stood[at])
        };
        let lines = [part.word.lines, part.word.lines + 1];
        let notices = Arc::new(Notices::new(&machine, (me, ranks.clone()), lines, [line(0), line(1)])?);
        fabric.open_group(&Group { key, members: &seats, me, bytes: part.bytes })?;
        let watch = machine.add_watch(notices.clone());
        let [gotten, broadcasts] = Default::default();
        Ok(Offered { part, key, met, brought, gotten, broadcasts, notices, watch })
    }
}

impl Turn<'_> {
    /// Whether a broadcast of so many bytes has room.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        (size_of::<Head>() + bytes) as u64 <= self.offered.part.bytes
    }

    /// A barrier.
    pub(super) fn barrier(&self) -> Result<()> {
        self.end(self.expect_nothing().and_then(|()| self.meet()).and_then(|()| self.wait_met()))
    }

    /// A broadcast of bytes that have [room](Turn::takes).
    pub(super) fn bcast(&self, bytes: &mut [u8], root: Rank) -> Result<()> {
        let number = self.offered.broadcasts.fetch_add(1, Ordering::Relaxed) + 1;
        let head = Head { number, root: root.0, bytes: bytes.len() as u32 };
        let moved = match self.members.rank() == root {
            true => self.bring(head, bytes),
            false => self.take(head, bytes),
        };
        self.end(moved.and_then(|()| self.meet()))
    }

    /// A call that has failed is the last one: how far other members are is not known.
    fn end(&self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.offered.notices.fail();
        }
        outcome
    }

    fn machine(&self) -> &Machine {
        &self.offered.part.machine
    }

    /// Comes to the next meeting, when the last one is over.
    fn meet(&self) -> Result<()> {
        self.wait_met()?;
        self.offered.notices.come();
        self.insist(|fabric| fabric.meet(self.offered.key))
    }

    /// Returns when the last meeting is over to which this member has come.
    fn wait_met(&self) -> Result<()> {
        let (cell, stood) = self.offered.met;
        let threshold = stood + self.offered.notices.meetings();
        // By the network: also when others have left, whom it has told before.
        self.machine().wait_signal(cell, threshold, Some(self.machine().rank()), None, self.call)
    }

    /// That nothing was brought which was not taken: a member is in a broadcast, that is not the next one, for this one
    /// has not come to the meeting before that.
    fn expect_nothing(&self) -> Result<()> {
        let (cell, stood) = self.offered.brought;
        let gotten = stood + self.offered.gotten.load(Ordering::Relaxed);
        if !plainly_reached(cell.read(self.machine().fabric()), gotten + 1) {
            return Ok(());
        }
        let text = "another member is in a bcast: members make the same calls in the same order";
        Err(self.machine().fault(Cause::Argument(text.into()), self.call))
    }

    /// Sends bytes to all, when all have taken what was sent before.
    fn bring(&self, head: Head, bytes: &[u8]) -> Result<()> {
        self.wait_met()?;
        let all = [bytemuck::bytes_of(&head), bytes].concat();
        self.machine().put(self.offered.part.place(), &all)?;
        self.insist(|fabric| fabric.multicast(self.offered.key, all.len() as u64))
    }

    /// Takes what the root sends.
    fn take(&self, wanted: Head, bytes: &mut [u8]) -> Result<()> {
        let root = self.members.messages().rank_of(Rank(wanted.root));
        let (cell, stood) = self.offered.brought;
        let threshold = stood + self.offered.gotten.fetch_add(1, Ordering::Relaxed) + 1;
        self.machine().wait_signal(cell, threshold, root, None, self.call)?;
        let mut all = vec![0; size_of::<Head>() + bytes.len()];
        self.machine().get(self.offered.part.place(), &mut all)?;
        let (head, brought) = all.split_at(size_of::<Head>());
        let head: Head = bytemuck::pod_read_unaligned(head);
        if head != wanted {
            return Err(self.machine().fault(disagree(head, wanted), self.call));
        }
        bytes.copy_from_slice(brought);
        Ok(())
    }

    /// Hands something to the fabric, as soon as it has room.
    fn insist(&self, hand: impl Fn(&dyn Fabric) -> Result<(), Refused>) -> Result<()> {
        loop {
            match hand(self.machine().fabric()) {
                Ok(()) => return Ok(()),
                Err(Refused::Never(cause)) => return Err(self.machine().fault(*cause, self.call)),
                Err(Refused::Again | Refused::Relay) => self.machine().relax(&(self.call)())?,
            }
        }
    }
}

/// That a member sent something else than was waited for.
#[cold]
fn disagree(head: Head, wanted: Head) -> Cause {
    if (Head { bytes: wanted.bytes, ..head }) == wanted {
        let (one, other) = (head.bytes.into(), wanted.bytes.into());
        return Cause::Disagree { what: "bytes", least: u64::min(one, other), most: u64::max(one, other) };
    }
    Cause::Argument(format!(
        "broadcast {} came from root {}, and {} of root {} was waited for: members make the same calls in the same \
         order",
        head.number, head.root, wanted.number, wanted.root
    ))
}

impl Communicator {
    /// What the fabric offers for a call that has begun, if it does and all members have it. Collective the first time.
    #[inline]
    pub(super) fn offered<'c>(
        &'c self,
        kind: &Kind,
        call: &'c dyn Fn() -> String,
    ) -> Result<Option<Turn<'c>>> {
        if self.machine().reaches_words() || self.size() == 1 {
            Ok(None)
        } else {
            self.find_offered(kind, call)
        }
    }

    fn find_offered<'c>(&'c self, kind: &Kind, call: &'c dyn Fn() -> String) -> Result<Option<Turn<'c>>> {
        let (offered, noted) = match self.offered.get() {
            Some(offered) => (offered.as_ref(), None),
            None => {
                let offered = self.agree_on_offered(call)?;
                let offered = self.offered.get_or_init(|| offered).as_ref();
                (offered, offered.map(|offered| offered.note(Some(kind))))
            }
        };
        let Some(offered) = offered else { return Ok(None) };
        if offered.notices.has_failed() {
            let text =
                "an earlier barrier or bcast of this communicator has failed: members are no longer in step";
            return Err(self.machine().fault(Cause::Argument(text.into()), call));
        }
        Ok(Some(Turn { offered, members: self, call, _noted: noted }))
    }

    /// Opens a group of all members. None has it unless all have.
    #[cold]
    fn agree_on_offered(&self, call: &dyn Fn() -> String) -> Result<Option<Offered>> {
        let can = self.machine().fabric().capabilities();
        if !can.barrier {
            return Ok(None);
        }
        let failed = |error| self.step_failed(error, call);
        let part = Part::new(self.messages().machine(), can.multicast_bytes_max.min(PLACE_MAX)).ok();
        let word = part.as_ref().map_or(Word::zeroed(), |part| part.word);
        let words = self.allgather_steps(&[word]).map_err(failed)?;
        let has_room = words.iter().all(|word| word.found_room != 0);
        let part = part.filter(|_| has_room);
        let offered = part.and_then(|part| Offered::new(self, part, &words).ok());
        let all = self.allgather_steps(&[u64::from(offered.is_some())]).map_err(failed)?;
        let Some(offered) = offered.filter(|_| !all.contains(&0)) else { return Ok(None) };
        self.messages().owe(offered.notices.clone())?;
        Ok(Some(offered))
    }
}
