//! The search of a receive for a message that met an earlier receive: a late match (`late_match.rs`) or a kept message
//! (`kept.rs`).

use super::{RecvNext, RecvProtocol, RecvState};
use crate::protocol::kept::KeptSearch;
use crate::protocol::late_match::{LateMatch, LateMatchSearch, LateMatches};
use crate::protocol::outcome::{Done, Outcome};
use crate::protocol::ring_consumer::RingConsumer;
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding::{self, Claim};
use std::sync::Arc;
use tasuki_core::base::Rank;
use tasuki_core::engine::{Started, Worker};

impl RecvProtocol {
    /// Lets a receive that names its slot and waits for its message look for a kept message.
    pub(crate) fn look_for_kept(
        &mut self,
        bank: &SlotBank,
        index: SlotIndex,
        late_matches: &Arc<LateMatches>,
    ) {
        if self.search.is_none() && index != ANY && self.end.is_none() {
            self.search = Some(Box::new(LateMatchSearch::new(late_matches, Some(bank.slot(index)))));
        }
    }

    /// Returns the late match to which the receive was redirected.
    pub(super) fn redirected(&self) -> Option<&LateMatch> {
        self.search.as_ref().and_then(|search| search.redirected())
    }

    /// Returns true if the receive could be redirected to a late match.
    pub(super) fn can_redirect(&self, member: Rank) -> bool {
        self.search.as_ref().is_some_and(|search| search.can_find(member))
    }

    /// Searches for a message that met another receive. Withdraws the receive if there is one.
    pub(super) fn look_for_late_match(
        &mut self,
        worker: &Worker,
        bank: &SlotBank,
        index: SlotIndex,
    ) -> RecvNext {
        let Some(search) = &mut self.search else { return RecvNext::Waits };
        if !search.has_kept(bank.member) && !search.find(bank.member) {
            if index != ANY {
                self.search = None; // another receive was quicker
            }
            return RecvNext::Waits;
        }
        if !self.needs_claim {
            return self.withdraw_staged(worker, bank, index);
        }
        let posted = encoding::claim(self.consumer.number, self.consumer.version, Claim::Posted);
        self.withdraw_claim(worker, bank, index, posted)
    }

    /// Searches for a message that met another receive, and for transfers that must end first. If there is none, the
    /// receive is posted next.
    #[cold]
    pub(super) fn search_before_posting(
        &mut self,
        worker: &Worker,
        bank: &SlotBank,
        index: SlotIndex,
    ) -> RecvNext {
        if let Some(next) = self.take_kept(worker, bank.member) {
            return next;
        }
        if let Some(search) = &mut self.search {
            let (is_found, is_named) = (search.find(bank.member), search.slot().is_some());
            if is_found {
                self.redirect();
                return self.go_to(RecvState::Posted);
            }
            if search.is_blocked(bank.member) {
                return RecvNext::Waits;
            }
            if is_named {
                self.search = None;
            }
        }
        self.consumer = RingConsumer::next(bank, index);
        self.go_to(RecvState::Describing)
    }

    /// Takes a kept message, if there is one for this receive, which is not posted.
    #[cold]
    pub(super) fn take_kept(&mut self, worker: &Worker, member: Rank) -> Option<RecvNext> {
        let receive = (self.kind, self.into.len());
        let (message, done) = match self.search.as_ref()?.take_kept(member, receive) {
            KeptSearch::Nothing => return None,
            KeptSearch::Unfit(cause) => return Some(self.fail(cause)),
            KeptSearch::Found(message, done) => (message, Done { was_kept: true, ..done }),
        };
        let bytes = message.bytes.clone();
        self.kept = Some(message);
        let into = self.into.make_for(done.len).and_then(|()| self.into.enter());
        let copied = into.and_then(|into| into.start_copy_of(worker, &bytes, done.len));
        Some(match copied {
            Ok(Started::Done(_)) => {
                self.kept = None;
                self.ended(Outcome::Done(done))
            }
            Ok(Started::InFlight(operation)) => self.go_to(RecvState::StoringKept { operation, done }),
            Ok(Started::Later) => {
                self.put_back_kept(member, done.slot);
                self.state = RecvState::Searching;
                RecvNext::Waits
            }
            Err(cause) => {
                self.put_back_kept(member, done.slot);
                self.fail(cause)
            }
        })
    }

    pub(super) fn put_back_kept(&mut self, member: Rank, slot: u32) {
        if let (Some(search), Some(message)) = (&self.search, self.kept.take()) {
            search.kept().put_back(member, slot, message);
        }
    }

    /// Redirects a withdrawn receive to its late match. Returns false if it has none.
    pub(super) fn redirect(&mut self) -> bool {
        let Some(number) = self.search.as_mut().and_then(|search| search.redirect()) else { return false };
        self.consumer.number = number;
        self.needs_claim = false;
        // The receive keeps the version of its own posting, because a message that did not fit in the receive that it
        // met is no late match.
        true
    }

    /// Frees the slot of the late match.
    pub(super) fn release_late_match(&mut self, worker: &Worker) {
        if self.search.take().is_some_and(|search| search.has_one()) {
            worker.wake_own_threads(); // another thread may wait for the slot
        }
    }
}
