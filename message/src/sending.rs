//! The sender's side of a message that did not end at once.
//!
//! ```text
//! Looking --a short one, or one that does not fit in a short receive--------> Telling --> ended
//!  |   ^                                                                        ^
//!  v   | the receiver was quicker and has withdrawn it                          |
//! Claiming --> Claimed --the posting names a place--> Putting ------------------+
//!                   |      or, copied by both ranks -> Sharing -------------------+
//!                   +----it names none--------------> Staging, chunk by chunk --> ended
//! ```
//!
//! A message that fails before its receive was taken was never there; one that fails later is told to have failed, and
//! counts.
//!
//! A receive in the message's own slot comes first, then one of any slot, which is always claimed: two messages may
//! want it.

use super::page::{ANY, Block, Page, pack};
use super::place::Place;
use super::ring::Rings;
use super::sharing::Sharing;
use super::staging::{Filled, Meeting, Staging};
use super::way::{Done, End, Progress};
use super::words::{self, Claim, Posting, SHORT_MAX};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Caching, Launched, Machine};
use tasuki_core::fabric::{Atomic, AtomicKind, Refused, SLOT_PAYLOAD, Width};
use tasuki_core::segment::GlobalAddress;

/// A send under way.
#[derive(Debug)]
pub(crate) struct Sending {
    from: Place,
    /// It meets a receive of any slot, in the block that the pair has for those.
    any: bool,
    stage: Stage,
    end: Option<End>,
}

#[derive(Debug)]
enum Stage {
    Looking,
    Claiming {
        receive: Receive,
        operation: u64,
    },
    Claimed {
        receive: Receive,
    },
    Putting {
        operation: u64,
    },
    Staging(Staging),
    Sharing(Sharing),
    Telling(Notice),
    /// The message has ended; whoever asks how may come late, and its ring is for others.
    Over,
}

/// A receive that was posted for a long message.
#[derive(Clone, Copy, Debug)]
struct Receive {
    version: u32,
    to: GlobalAddress,
    room: u64,
}

impl Receive {
    /// Whether a message of so many bytes goes through a ring.
    fn is_staged(&self, len: u64) -> bool {
        self.to.is_null() && len > SHORT_MAX as u64 && len <= self.room
    }
}

/// What the receiver is to be told; then the message has ended.
#[derive(Debug)]
struct Notice {
    word: u64,
    payload: [u64; SLOT_PAYLOAD],
    used: usize,
    failed: Option<Cause>,
}

enum Next {
    Stage(Stage),
    Waits,
    /// It waits, after something was done.
    Moved,
    /// The receiver knows of it, or knows that it failed.
    Ended(Option<Cause>),
    /// It cannot go on.
    Failed(Cause),
}

impl From<Cause> for Next {
    fn from(cause: Cause) -> Next {
        Next::Failed(cause)
    }
}

impl Sending {
    pub(crate) fn new(from: Place) -> Sending {
        Sending { from, any: false, stage: Stage::Looking, end: None }
    }

    /// How it ended.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether nobody knows of the message yet.
    pub(crate) fn is_looking(&self) -> bool {
        matches!(self.stage, Stage::Looking)
    }

    /// The bytes, where a message that nobody knows of yet is to be kept.
    pub(crate) fn from(&self) -> &Place {
        &self.from
    }

    /// Whether no step of this rank's will bring it on, and no operation of it is under way.
    pub(crate) fn is_stuck(&self, page: &Arc<Page>, block: Block, rings: &Rings) -> bool {
        let is_under_way = match &self.stage {
            Stage::Claiming { .. } | Stage::Putting { .. } => true,
            Stage::Staging(staging) => staging.is_copying(),
            _ => false,
        };
        !is_under_way && !self.can_step(page, block, rings)
    }

    /// Whether a step would bring it on.
    pub(crate) fn can_step(&self, page: &Arc<Page>, block: Block, rings: &Rings) -> bool {
        match &self.stage {
            Stage::Looking => match find(page, block, self.from.len()) {
                Found::Staged => rings.have_room(),
                Found::Nothing => any_posted(page).is_some(),
                _ => true,
            },
            Stage::Staging(staging) => {
                let (at, meets) = self.meeting_place(page, block);
                staging.can_step(at.taken(meets, at.next_number(meets), staging.berth.cut.chunks()))
            }
            Stage::Sharing(sharing) => {
                let (at, meets) = self.meeting_place(page, block);
                sharing.can_step(at, meets, at.next_number(meets))
            }
            Stage::Claimed { receive } => !receive.is_staged(self.from.len()) || rings.have_room(),
            Stage::Telling { .. } => true,
            // The fabric tells of their end.
            Stage::Claiming { .. } | Stage::Putting { .. } | Stage::Over => false,
        }
    }

    /// Where it meets its receive: in its own slot, or where receives of any are posted.
    fn meeting_place<'p>(&self, page: &'p Arc<Page>, block: Block) -> (&'p Arc<Page>, Block) {
        if self.any { (page.pair(), ANY) } else { (page, block) }
    }

    /// Moves it on as far as it goes.
    pub(crate) fn step(
        &mut self,
        machine: &Machine,
        page: &Arc<Page>,
        block: Block,
        rings: &Rings,
    ) -> Progress {
        let slot = page.slot(block);
        let mut moved = false;
        loop {
            let (place, meets) = self.meeting_place(page, block);
            let number = place.next_number(meets);
            let at = Meeting { page: place, block: meets, number, slot };
            let next = match &self.stage {
                Stage::Looking => self.look(machine, page, block, rings),
                Stage::Claiming { receive, operation } => {
                    let (receive, operation) = (*receive, *operation);
                    landed(machine, operation, |found| after_claim(number, receive, found))
                }
                Stage::Claimed { receive } => self.begin(machine, at, rings, *receive),
                Stage::Putting { operation } => landed(machine, *operation, |_| self.in_place(number, slot)),
                Stage::Staging(_) => self.fill(machine, at),
                Stage::Sharing(_) => self.share(machine, at),
                Stage::Telling(notice) => tell(place, meets, notice),
                Stage::Over => Next::Waits,
            };
            match next {
                Next::Stage(stage) => {
                    moved |= !matches!(stage, Stage::Looking);
                    self.any &= !matches!(stage, Stage::Looking);
                    self.stage = stage;
                }
                Next::Waits => return Progress::Waits { moved },
                Next::Moved => return Progress::Waits { moved: true },
                Next::Failed(cause) if self.is_known() && !is_known_to_all(&cause) => {
                    self.stage = Stage::Telling(failed(number, cause))
                }
                Next::Failed(cause) => return self.over(End::Failed(cause)),
                Next::Ended(failed) => {
                    place.state(meets).sent.store(number, Relaxed);
                    let done = Done { len: self.from.len(), slot };
                    return self.over(failed.map_or(End::Done(done), End::Failed));
                }
            }
        }
    }

    /// Whether its receiver waits for it, and for no other.
    fn is_known(&self) -> bool {
        !matches!(self.stage, Stage::Looking | Stage::Claiming { .. })
    }

    fn over(&mut self, end: End) -> Progress {
        self.stage = Stage::Over;
        self.end = Some(end);
        Progress::Ended
    }

    /// Looks whether a receive stands there: first in its own slot.
    fn look(&mut self, machine: &Machine, page: &Arc<Page>, block: Block, rings: &Rings) -> Next {
        let number = page.next_number(block);
        match find(page, block, self.from.len()) {
            Found::Short => return self.short(number, page.slot(block)),
            Found::TooShort { version, room } => return too_long(number, version, self.from.len(), room),
            Found::Staged => return self.stage(machine, rings),
            Found::Long { version } => return claim(machine, page, block, number, version),
            Found::Nothing => {}
        }
        let Some(version) = any_posted(page) else { return Next::Waits };
        let claimed = claim(machine, page.pair(), ANY, page.pair().next_number(ANY), version);
        self.any = matches!(claimed, Next::Stage(_));
        claimed
    }

    /// The message goes into the receiver's line.
    fn short(&self, number: u32, slot: u32) -> Next {
        let mut bytes = [0; SHORT_MAX];
        let bytes = &mut bytes[..self.from.len() as usize];
        if let Err(cause) = self.from.enter().and_then(|from| from.read(bytes)) {
            return cause.into();
        }
        let word = words::short_data(number, slot, bytes.len());
        let used = bytes.len().div_ceil(8);
        Next::Stage(Stage::Telling(Notice { word, payload: pack(bytes), used, failed: None }))
    }

    /// The receive is ours: begins to move the bytes.
    fn begin(&self, machine: &Machine, at: Meeting<'_>, rings: &Rings, receive: Receive) -> Next {
        let Meeting { page, number, slot, .. } = at;
        let Receive { version, to, room } = receive;
        let len = self.from.len();
        if len > room {
            return too_long(number, version, len, room);
        }
        if len <= SHORT_MAX as u64 {
            return self.short(number, slot);
        }
        if to.is_null() {
            return self.stage(machine, rings);
        }
        if let Some(sharing) = Sharing::of(machine, page, &self.from, to) {
            return Next::Stage(Stage::Sharing(sharing));
        }
        match self.from.enter().and_then(|from| from.launch(machine, (0, len), to, Caching::Cached)) {
            Ok(Launched::Done(_)) => self.in_place(number, slot),
            Ok(Launched::UnderWay(operation)) => Next::Stage(Stage::Putting { operation }),
            Ok(Launched::Later) => Next::Waits,
            Err(cause) => cause.into(),
        }
    }

    /// Begins to stage the bytes.
    fn stage(&self, machine: &Machine, rings: &Rings) -> Next {
        match rings.take(machine, self.from.len()) {
            Ok(Some(ring)) => Next::Stage(Stage::Staging(Staging::new(ring))),
            Ok(None) => Next::Waits,
            Err(cause) => cause.into(),
        }
    }

    fn in_place(&self, number: u32, slot: u32) -> Next {
        let payload = padded([self.from.len(), u64::from(slot), 0]);
        let word = words::in_place_data(number);
        Next::Stage(Stage::Telling(Notice { word, payload, used: 2, failed: None }))
    }

    /// Copies its part.
    fn share(&mut self, machine: &Machine, at: Meeting<'_>) -> Next {
        let Stage::Sharing(sharing) = &mut self.stage else { return Next::Waits };
        let copied = sharing.run(machine, at);
        next(copied, || self.in_place(at.number, at.slot))
    }

    /// Fills the ring.
    fn fill(&mut self, machine: &Machine, at: Meeting<'_>) -> Next {
        let (from, Stage::Staging(staging)) = (&self.from, &mut self.stage) else { return Next::Waits };
        let filled = from.enter().and_then(|from| {
            let copy = |part, place| from.launch(machine, part, place, Caching::Outward);
            staging.run(machine, at, copy)
        });
        next(filled, || Next::Ended(None))
    }
}

/// What follows when so much was copied.
fn next(filled: Result<Filled, Cause>, over: impl FnOnce() -> Next) -> Next {
    match filled {
        Ok(Filled::Over) => over(),
        Ok(Filled::Waits { moved: true }) => Next::Moved,
        Ok(Filled::Waits { moved: false }) => Next::Waits,
        Err(cause) => cause.into(),
    }
}

/// What the next message on a slot finds there.
pub(super) enum Found {
    /// No receive, or one whose description has not arrived or that was withdrawn.
    Nothing,
    /// The message goes into the line of the receive.
    Short,
    /// The message does not fit.
    TooShort { version: u32, room: u64 },
    /// The message goes through a ring.
    Staged,
    /// Who has claimed the receive may know where the message goes.
    Long { version: u32 },
}

/// What the next message on a slot finds there, where it has `len` bytes.
#[inline]
pub(super) fn find(page: &Page, block: Block, len: u64) -> Found {
    let (word, number) = (page.posting(block), page.next_number(block));
    match words::read_posting(word, number) {
        Posting::Short { room } if len > room as u64 => {
            Found::TooShort { version: words::posting_version(word), room: room as u64 }
        }
        Posting::Short { .. } => Found::Short,
        Posting::Long { .. } | Posting::Staged { .. } if len <= SHORT_MAX as u64 => Found::Short,
        Posting::Staged { least, .. } if len <= least => Found::Staged,
        Posting::Staged { version, .. } if posted(page, block, number, version) => {
            match page.wanted_size(block, version) {
                Some(room) if len > room => Found::TooShort { version, room },
                Some(_) => Found::Staged,
                None => Found::Nothing, // withdrawn since
            }
        }
        Posting::Long { version } => {
            page.will_claim(block);
            if posted(page, block, number, version) { Found::Long { version } } else { Found::Nothing }
        }
        _ => Found::Nothing,
    }
}

/// The version of a receive of any slot that stands there, and that nobody has taken.
fn any_posted(page: &Arc<Page>) -> Option<u32> {
    let (pair, number) = (page.pair(), page.pair().next_number(ANY));
    match words::read_posting(pair.posting(ANY), number) {
        Posting::Long { version } if posted(pair, ANY, number, version) => Some(version),
        _ => None,
    }
}

/// Whether the description of a long receive has arrived, and it has not been withdrawn.
fn posted(page: &Page, block: Block, number: u32, version: u32) -> bool {
    page.claim(block) == words::claim(number, version, Claim::Posted)
}

/// Takes a long receive, unless its receiver withdraws it first.
fn claim(machine: &Machine, page: &Page, block: Block, number: u32, version: u32) -> Next {
    // What is read here is what was posted if the claim succeeds: a later posting has another version.
    let Some(room) = page.wanted_size(block, version) else { return Next::Waits };
    let receive = Receive { version, to: page.wanted_at(block), room };
    let expected = words::claim(number, version, Claim::Posted);
    let operand = words::claim(number, version, Claim::Claimed);
    let kind = AtomicKind::Cas { expected };
    match machine
        .launch_atomic(page.claim_at(machine.rank(), block), Atomic { kind, operand, width: Width::W8 })
    {
        Ok(Launched::Done(found)) => after_claim(number, receive, found),
        Ok(Launched::UnderWay(operation)) => Next::Stage(Stage::Claiming { receive, operation }),
        Ok(Launched::Later) => Next::Waits,
        Err(cause) => cause.into(),
    }
}

fn after_claim(number: u32, receive: Receive, found: u64) -> Next {
    let is_ours = found == words::claim(number, receive.version, Claim::Posted);
    Next::Stage(if is_ours { Stage::Claimed { receive } } else { Stage::Looking })
}

fn tell(page: &Page, block: Block, notice: &Notice) -> Next {
    match page.write_data(block, notice.word, &notice.payload[..notice.used]) {
        Ok(()) => Next::Ended(notice.failed.clone()),
        Err(Refused::Never(cause)) => Next::Ended(Some(*cause)),
        Err(Refused::Again | Refused::Relay) => Next::Waits,
    }
}

/// What follows the end of an operation, if it has ended.
fn landed(machine: &Machine, operation: u64, then: impl FnOnce(u64) -> Next) -> Next {
    match machine.landed(operation) {
        None => Next::Waits,
        Some(Err(cause)) => cause.into(),
        Some(Ok(value)) => then(value),
    }
}

fn too_long(number: u32, version: u32, len: u64, room: u64) -> Next {
    let (word, failed) = (words::too_long_data(number, version), Some(Cause::Truncated { len, room }));
    Next::Stage(Stage::Telling(Notice { word, payload: padded([len, 0, 0]), used: 1, failed }))
}

/// Whether the receiver learns of it by itself.
fn is_known_to_all(cause: &Cause) -> bool {
    matches!(cause, Cause::PeerDied { .. } | Cause::JobOver)
}

/// The message failed when its receive was taken already.
fn failed(number: u32, cause: Cause) -> Notice {
    Notice { word: words::failed_data(number), payload: padded([0; 3]), used: 0, failed: Some(cause) }
}

fn padded(words: [u64; 3]) -> [u64; SLOT_PAYLOAD] {
    let mut payload = [0; SLOT_PAYLOAD];
    payload[..3].copy_from_slice(&words);
    payload
}
