//! The receiver's side of a receive that is no short one: its posting, and what its sender does to it.
//!
//! A short receive needs nothing of this: its message comes into the slot's line, where the receiver finds it.
//!
//! ```text
//! Describing --> Posting --> Posted --a message in the line, or in place--> ended
//!                             |  ^--a chunk--> Fetching --+
//!                             +--unwanted----> Withdrawing --> withdrawn, or Posted: its message is on its way
//! ```
//!
//! A receive of any slot to which a stray has come (`strays.rs`) takes itself back, too; if nobody has claimed it, it
//! goes on as the receive of that message, in its slot.

use super::berth::Berth;
use super::page::{ANY, Block, Page};
use super::place::Place;
use super::sharing;
use super::strays::{Seeker, Stray, Strays};
use super::taking::Taking;
use super::way::{Done, End, Progress};
use super::words::{self, CHUNKS_MAX, Claim, Data, SHORT_MAX};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::{Launched, Machine, Registration};
use tasuki_core::fabric::{Atomic, AtomicKind, Refused, Width};
use tasuki_core::segment::GlobalAddress;

/// A receive under way.
#[derive(Debug)]
pub(crate) struct Receiving {
    into: Place,
    /// Where the sender shall put it; null: it stages it.
    to: GlobalAddress,
    /// Whether its sender has to claim it.
    claimed: bool,
    /// One of any slot looks for strays.
    seeker: Option<Box<Seeker>>,
    /// Keeps the sender's way to memory of the program's own, until the receive is over.
    registered: Option<Registration>,
    taking: Taking,
    stage: Stage,
    /// It is to be taken back.
    unwanted: bool,
    /// Whether all parts of a message that both ranks copy are taken.
    helped: bool,
    /// Why the message cannot be received to its end, of which its sender knows already that it is being received.
    failed: Option<Cause>,
    end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The description is to be written, then the posting.
    Describing,
    Posting,
    Posted,
    /// The claim is being taken back; what stood there when last looked at.
    Withdrawing {
        operation: u64,
        expected: u64,
    },
    /// A chunk is on its way out of the ring.
    Fetching {
        operation: u64,
    },
    /// A short message is on its way into job memory.
    Storing {
        operation: u64,
        done: Done,
    },
}

/// What comes next. Small, and the stage is changed where it stands: what has just been put together in pieces can be
/// copied as a whole only when all that was stored before has drained, the word to the peer included.
#[derive(Clone, Copy)]
enum Next {
    Goes,
    Waits,
    Ended,
}

impl Receiving {
    /// The next receive on a slot. `to` is where the sender can put it; null where it cannot. `strays`: of its context.
    pub(crate) fn new(
        into: Place,
        to: GlobalAddress,
        registered: Option<Registration>,
        page: &Page,
        block: Block,
        strays: &Arc<Strays>,
    ) -> Receiving {
        // A receive of any slot may be wanted by two messages; memory that the sender writes must be its alone.
        let claimed = !to.is_null() || block == ANY;
        let seeker = (block == ANY).then(|| Box::new(Seeker::new(strays)));
        let posted = Receiving::posted(into, Taking::next(page, block));
        Receiving { to, claimed, seeker, registered, stage: Stage::Describing, ..posted }
    }

    /// One that was posted, to be staged, and of which so much was taken.
    pub(crate) fn posted(into: Place, taking: Taking) -> Receiving {
        Receiving {
            into,
            to: GlobalAddress::NULL,
            claimed: false,
            seeker: None,
            registered: None,
            taking,
            stage: Stage::Posted,
            unwanted: false,
            helped: false,
            failed: None,
            end: None,
        }
    }

    /// How it ended.
    #[inline]
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// It is to be taken back, if its message is not on its way already.
    pub(crate) fn withdraw(&mut self) {
        self.unwanted = true;
    }

    /// Which message it is for.
    pub(crate) fn number(&self) -> u32 {
        self.taking.number
    }

    /// Whether it needs nothing of its sender for its next step: an operation of it is under way, or it has found a
    /// stray.
    pub(crate) fn is_under_way(&self) -> bool {
        let has_stray = || self.seeker.as_ref().is_some_and(|seeker| seeker.has_one());
        matches!(self.stage, Stage::Withdrawing { .. } | Stage::Fetching { .. } | Stage::Storing { .. })
            || has_stray()
    }

    /// The stray whose receive it is.
    fn turned(&self) -> Option<&Stray> {
        self.seeker.as_ref().and_then(|seeker| seeker.turned())
    }

    /// Whether it would go on with a stray.
    fn can_turn(&self, member: Rank) -> bool {
        self.seeker.as_ref().is_some_and(|seeker| seeker.can_find(member))
    }

    /// Whether a step would bring it on; `unwanted`: it is to be taken back.
    pub(crate) fn can_step(&self, page: &Page, block: Block, unwanted: bool) -> bool {
        let (page, block) = self.turned().map_or((page, block), |stray| (&stray.page, stray.block));
        match self.stage {
            Stage::Describing | Stage::Posting => true,
            Stage::Posted => match words::read_data(page.data(block), self.taking.number) {
                Data::None => self.unwanted || unwanted || self.can_turn(page.member),
                Data::Staged { .. } if self.failed.is_some() => true,
                Data::Staged { chunks } => {
                    chunks > self.taking.taken || self.taking.is_owed(Berth::at(page, block))
                }
                Data::Shared => !self.helped || self.failed.is_some() && self.taking.told != CHUNKS_MAX,
                Data::Short { .. } | Data::InPlace | Data::TooLong { .. } | Data::Failed => true,
            },
            // The fabric tells of their end.
            Stage::Withdrawing { .. } | Stage::Fetching { .. } | Stage::Storing { .. } => false,
        }
    }

    /// Moves it on as far as it goes.
    pub(crate) fn step(&mut self, machine: &Machine, page: &Page, block: Block) -> Progress {
        let mut moved = false;
        loop {
            let turned = self.turned().map(|stray| (stray.page.clone(), stray.block));
            let (page, block) = turned.as_ref().map_or((page, block), |(page, block)| (page, *block));
            let next = match self.stage {
                Stage::Describing | Stage::Posting if self.unwanted => self.ended(End::Withdrawn),
                Stage::Describing => self.describe(page, block),
                Stage::Posting => self.post(page, block),
                Stage::Posted => self.look(machine, page, block),
                Stage::Withdrawing { operation, expected } => match machine.landed(operation) {
                    None => Next::Waits,
                    Some(Err(cause)) => self.not_answered(page, block, cause),
                    Some(Ok(found)) => self.taken_back(machine, page, block, expected, found),
                },
                Stage::Fetching { operation } => match machine.landed(operation) {
                    None => Next::Waits,
                    Some(Err(cause)) => self.fail_midway(cause),
                    Some(Ok(_)) => self.fetched(),
                },
                Stage::Storing { operation, done } => match machine.landed(operation) {
                    None => Next::Waits,
                    Some(Err(cause)) => self.fail(cause),
                    Some(Ok(_)) => self.done(page, block, done),
                },
            };
            match next {
                Next::Goes => moved = true,
                Next::Waits => return Progress::Waits { moved },
                Next::Ended => {
                    self.registered = None;
                    self.give_back(machine);
                    return Progress::Ended;
                }
            }
        }
    }

    #[inline(always)]
    fn goes(&mut self, stage: Stage) -> Next {
        self.stage = stage;
        Next::Goes
    }

    #[inline(always)]
    fn ended(&mut self, end: End) -> Next {
        self.end = Some(end);
        Next::Ended
    }

    #[cold]
    fn fail(&mut self, cause: Cause) -> Next {
        self.ended(End::Failed(cause))
    }

    /// It cannot go on. Where its sender has not been told of any chunk, the message is there for the next receive.
    #[cold]
    fn fail_midway(&mut self, cause: Cause) -> Next {
        if self.taking.told == 0 && !self.helped {
            return self.fail(cause);
        }
        self.failed = Some(cause);
        self.goes(Stage::Posted)
    }

    /// Has the sender believe that all was taken, so that it comes to its end. A buffer that the sender writes is its
    /// own until then.
    #[cold]
    fn give_up(&mut self, page: &Page, block: Block, cause: Cause) -> Next {
        let chunks = match words::read_data(page.data(block), self.taking.number) {
            Data::Staged { .. } => Berth::at(page, block).cut.chunks(),
            Data::Shared if self.taking.told == CHUNKS_MAX => return Next::Waits,
            Data::Shared => CHUNKS_MAX,
            _ => {
                page.state(block).received.store(self.taking.number, Relaxed);
                return self.fail(cause);
            }
        };
        match page.tell_taken(block, self.taking.number, chunks) {
            Err(Refused::Again | Refused::Relay) => Next::Waits,
            Ok(()) if chunks == CHUNKS_MAX => {
                self.taking.told = CHUNKS_MAX;
                Next::Waits
            }
            Ok(()) | Err(Refused::Never(_)) => {
                page.state(block).received.store(self.taking.number, Relaxed);
                self.fail(cause)
            }
        }
    }

    /// Tells the sender that it is taken back. Nobody else writes its memory: what is sent now is for the next receive.
    fn withdraw_staged(&mut self, page: &Page, block: Block) -> Next {
        let withdrawn = words::withdrawn_posting(self.taking.number, page.next_version(block));
        match page.write_posting(block, withdrawn) {
            Ok(()) => self.ended(End::Withdrawn),
            Err(Refused::Never(cause)) => self.fail(*cause),
            Err(Refused::Again | Refused::Relay) => Next::Waits,
        }
    }

    fn describe(&mut self, page: &Page, block: Block) -> Next {
        let written =
            page.describe(block, (self.taking.number, self.taking.version), (self.to, self.into.len()));
        self.written_then(written, Stage::Posting)
    }

    fn post(&mut self, page: &Page, block: Block) -> Next {
        let word = match self.claimed {
            true => words::long_posting(self.taking.number, self.taking.version),
            false => words::staged_posting(self.taking.number, self.taking.version, self.into.len()),
        };
        let written = page.write_posting(block, word);
        self.written_then(written, Stage::Posted)
    }

    /// Looks what has come.
    fn look(&mut self, machine: &Machine, page: &Page, block: Block) -> Next {
        let room = self.into.len();
        if let Some(cause) = self.failed.clone() {
            return self.give_up(page, block, cause);
        }
        match words::read_data(page.data(block), self.taking.number) {
            Data::None if self.unwanted && !self.claimed => self.withdraw_staged(page, block),
            Data::None if self.unwanted => {
                let posted = words::claim(self.taking.number, self.taking.version, Claim::Posted);
                self.take_back(machine, page, block, posted)
            }
            Data::None => self.look_for_stray(machine, page, block),
            // It was sent to a receive that was withdrawn, and waits for one with more room.
            Data::Staged { .. } if page.data_word(block, 1) > room => {
                self.fail(Cause::Truncated { len: page.data_word(block, 1), room })
            }
            Data::Staged { chunks } => self.fetch(machine, page, block, chunks),
            Data::Shared if self.helped => Next::Waits,
            Data::Shared => {
                self.helped = true;
                match sharing::help(machine, page, block, self.taking.number, &self.into) {
                    Ok(true) => Next::Goes,
                    Err(Refused::Never(cause)) => self.fail_midway(*cause),
                    Ok(false) | Err(_) => Next::Waits,
                }
            }
            Data::InPlace => {
                let done = Done { len: page.data_word(block, 0), slot: page.data_word(block, 1) as u32 };
                self.done(page, block, done)
            }
            Data::Short { slot, len } if len as u64 <= room => {
                let mut bytes = [0; SHORT_MAX];
                page.unpack(block, &mut bytes[..len]);
                let done = Done { len: len as u64, slot };
                match self.into.enter().and_then(|into| into.store(machine, &bytes[..len])) {
                    Ok(Launched::Done(_)) => self.done(page, block, done),
                    Ok(Launched::UnderWay(operation)) => self.goes(Stage::Storing { operation, done }),
                    Ok(Launched::Later) => Next::Waits,
                    Err(cause) => self.fail(cause),
                }
            }
            Data::Failed => {
                page.state(block).received.store(self.taking.number, Relaxed);
                self.fail(Cause::NotSent { peer: page.peer })
            }
            Data::Short { len, .. } => self.fail(Cause::Truncated { len: len as u64, room }),
            Data::TooLong { version } if version == self.taking.version => {
                page.state(block).received.store(self.taking.number, Relaxed);
                self.fail(Cause::Truncated { len: page.data_word(block, 0), room })
            }
            // It did not fit in a receive that was withdrawn since; its sender knows. This one is for the next.
            Data::TooLong { .. } => {
                page.state(block).received.store(self.taking.number, Relaxed);
                self.taking.number = self.taking.number.wrapping_add(1);
                self.taking.version = page.next_version(block);
                self.goes(Stage::Describing)
            }
        }
    }

    /// One of any slot looks for a stray, and takes itself back if there is one.
    fn look_for_stray(&mut self, machine: &Machine, page: &Page, block: Block) -> Next {
        if !self.seeker.as_mut().is_some_and(|seeker| seeker.find(page.member)) {
            return Next::Waits;
        }
        let posted = words::claim(self.taking.number, self.taking.version, Claim::Posted);
        self.take_back(machine, page, block, posted)
    }

    /// It was taken back: if for a stray, it is the receive of that from here on. Whether it is.
    fn turn(&mut self) -> bool {
        let Some(number) = self.seeker.as_mut().and_then(|seeker| seeker.turn()) else { return false };
        self.taking.number = number;
        self.claimed = false;
        // The version stays that of its own posting: what did not fit in the receive that met it is no stray.
        true
    }

    /// The slot of its stray is free again.
    fn give_back(&mut self, machine: &Machine) {
        if self.seeker.take().is_some_and(|seeker| seeker.has_one()) {
            machine.stir(); // another thread may wait for it
        }
    }

    /// Copies chunks out of the sender's ring, or tells it of those taken.
    fn fetch(&mut self, machine: &Machine, page: &Page, block: Block, chunks: u32) -> Next {
        let berth = Berth::at(page, block);
        if self.taking.is_owed(berth) {
            let written = page.tell_taken(block, self.taking.number, self.taking.taken);
            return match written {
                Ok(()) if self.taking.taken < berth.cut.chunks() => {
                    self.taking.told = self.taking.taken;
                    Next::Goes
                }
                Ok(()) => {
                    let (len, slot) = (page.data_word(block, 1), page.data_word(block, 2) as u32);
                    self.done(page, block, Done { len, slot })
                }
                Err(_) => self.written_then(written, Stage::Posted),
            };
        }
        if chunks == self.taking.taken {
            return Next::Waits;
        }
        let taken = self.into.enter().and_then(|into| {
            let copy = |place, part, caching| into.fetch(machine, place, part, caching);
            self.taking.take((page, block), berth, chunks, copy)
        });
        match taken {
            Ok(Launched::Done(_)) => Next::Goes,
            Ok(Launched::UnderWay(operation)) => self.goes(Stage::Fetching { operation }),
            Ok(Launched::Later) => Next::Waits,
            Err(cause) => self.fail_midway(cause),
        }
    }

    fn fetched(&mut self) -> Next {
        self.taking.taken += 1;
        self.goes(Stage::Posted)
    }

    /// Takes the claim back, which was `expected` when last looked at.
    fn take_back(&mut self, machine: &Machine, page: &Page, block: Block, expected: u64) -> Next {
        let operand = words::claim(self.taking.number, self.taking.version, Claim::Withdrawn);
        let atomic = Atomic { kind: AtomicKind::Cas { expected }, operand, width: Width::W8 };
        match machine.launch_atomic(page.their_claim_at(block), atomic) {
            Ok(Launched::Done(found)) => self.taken_back(machine, page, block, expected, found),
            Ok(Launched::UnderWay(operation)) => self.goes(Stage::Withdrawing { operation, expected }),
            Ok(Launched::Later) => Next::Waits,
            Err(cause) => self.not_answered(page, block, cause),
        }
    }

    /// The claim cannot be taken back. From a sender that has left all has come that it ever claimed.
    #[cold]
    fn not_answered(&mut self, page: &Page, block: Block, cause: Cause) -> Next {
        if !matches!(cause, Cause::PeerLeft { .. }) {
            return self.fail(cause);
        }
        if page.is_about(block, self.taking.number) {
            self.unwanted = false;
            return self.goes(Stage::Posted);
        }
        self.is_back()
    }

    /// Nobody has the claim any more: goes on with the stray that it was taken back for, if it was.
    fn is_back(&mut self) -> Next {
        if self.turn() { self.goes(Stage::Posted) } else { self.ended(End::Withdrawn) }
    }

    fn taken_back(
        &mut self,
        machine: &Machine,
        page: &Page,
        block: Block,
        expected: u64,
        found: u64,
    ) -> Next {
        if found == expected {
            return self.is_back();
        }
        if found == words::claim(self.taking.number, self.taking.version, Claim::Claimed) {
            self.unwanted = false; // its message is on its way
            self.give_back(machine); // a stray waits for the next
            return self.goes(Stage::Posted);
        }
        // The posting has not arrived yet, and will come too late.
        self.take_back(machine, page, block, found)
    }

    fn done(&mut self, page: &Page, block: Block, done: Done) -> Next {
        page.state(block).received.store(self.taking.number, Relaxed);
        self.ended(End::Done(done))
    }

    #[inline(always)]
    fn written_then(&mut self, written: Result<(), Refused>, stage: Stage) -> Next {
        match written {
            Ok(()) => self.goes(stage),
            Err(Refused::Never(cause)) => self.fail(*cause),
            Err(Refused::Again | Refused::Relay) => Next::Waits,
        }
    }
}
