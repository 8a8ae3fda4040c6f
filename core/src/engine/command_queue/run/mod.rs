//! Running a queue: the rank that holds its lease reads it, fires the commands that can fire, and performs effects in
//! their order.

mod effects;
pub(super) mod long_action;
mod long_steps;
pub(super) mod poll;
mod prefetch;
mod readiness;
pub(super) mod ready_list;
mod remote_notes;
mod shared_copy;
pub(super) mod short_action;

use crate::base::sync::{Ordering, fence};
use crate::base::{Cause, Rank};
use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::lookup::{Failure, ResolvedQueue};
use crate::engine::command_queue::run::ready_list::{ReadyList, ReadyQueue};
use crate::engine::trace::EventKind;
use crate::engine::worker::Worker;
use crate::fabric::{BOUND, Poison, SEVERAL};
use crate::queue::command::{Command, Trigger};
use crate::queue::encoding::EncodedCommand;
use crate::queue::in_flight::InFlightStage;
use crate::queue::layout::WaitingCounts;

/// Lines after which the reader publishes its position, so that posters see the room.
const PUBLISH_LINES: u64 = 32;

/// The outcome for a command that was read.
enum AcceptResult {
    /// There is no room for it.
    NoRoom,
    /// It has fired.
    Fired,
    /// It waits for its trigger.
    Triggered,
}

/// What was read from the ring.
struct ReadResult {
    /// True if any command was read.
    any: bool,
    /// True if a command was added to the triggered commands.
    triggered: bool,
}

impl CommandQueues {
    /// Returns true if `owner` is another rank that polls its queues, or whose queues only it can run.
    #[inline]
    pub(in crate::engine::command_queue) fn is_left_to(&self, owner: Rank) -> bool {
        owner != self.rank
            && self.directory_of(owner).is_none_or(|directory| directory.poll_state.is_polled())
    }

    /// Adds the queues that the mark of a signal stands for.
    pub(in crate::engine::command_queue) fn add_armed_queues(
        &self,
        ready: &mut ReadyList,
        owner: Rank,
        mark: u64,
    ) {
        if mark != u64::from(SEVERAL) {
            return ready.add(owner, (mark as u32 & !BOUND) - 1);
        }
        if let Some(directory) = self.directory_of(owner) {
            directory.numbers().for_each(|number| ready.add(owner, number));
        }
    }
}

impl Worker {
    /// Called after a signal was raised that commands wait for, in the queue that `mark` names or
    /// in several queues. If the owner polls, it runs the queue; else this thread does.
    #[cold]
    pub(in crate::engine) fn raised(&self, owner: Rank, mark: u64) {
        if self.commands().directory_of(owner).is_none() {
            self.node_state().notify_helper(owner); // no other thread can run the queue
            return;
        }
        if owner == self.rank() || !self.commands().is_left_to(owner) {
            let mut ready = ReadyList::default();
            self.commands().add_armed_queues(&mut ready, owner, mark);
            self.run_ready(ready);
        }
    }

    /// Runs the queues of the list, and those that become ready by that.
    pub(in crate::engine::command_queue) fn run_ready(&self, mut ready: ReadyList) {
        loop {
            while let Some(ReadyQueue { owner, queue, held }) = ready.take() {
                if let Some(resolved) = self.commands().find_queue(owner, queue) {
                    if held {
                        self.run_held(&resolved, &mut ready);
                    } else {
                        self.run_queue(&resolved, &mut ready);
                    }
                }
            }
            let Some(ReadyQueue { owner, queue, .. }) = ready.take_held() else { return };
            if let Some(resolved) = self.commands().find_queue(owner, queue) {
                self.release(&resolved, None, &mut ready);
            }
        }
    }

    /// Runs a queue, and the queues that become ready by that. Returns true if this thread made progress in it.
    pub(in crate::engine::command_queue) fn run_queue_and_ready(&self, resolved: &ResolvedQueue<'_>) -> bool {
        let mut ready = ReadyList::default();
        let progressed = self.run_queue(resolved, &mut ready);
        self.run_ready(ready);
        progressed
    }

    /// Runs a queue until nothing in it can proceed now. If another thread holds the lease, that thread does so.
    /// Returns true if this thread made progress.
    #[inline]
    pub(in crate::engine::command_queue) fn run_queue(
        &self,
        resolved: &ResolvedQueue<'_>,
        ready: &mut ReadyList,
    ) -> bool {
        if !resolved.queue.lease().acquire_or_mark(self.rank().to_word()) {
            return false;
        }
        let (taken_command, progressed) = self.run_under_lease(resolved, ready);
        self.release(resolved, taken_command, ready);
        self.commands().fetch_destinations(resolved);
        progressed
    }

    /// Runs a queue whose lease this thread holds, and keeps the lease.
    #[inline]
    fn run_held(&self, resolved: &ResolvedQueue<'_>, ready: &mut ReadyList) {
        let (taken_command, _) = self.run_under_lease(resolved, ready);
        if taken_command.is_some() {
            ready.lease_released(resolved.owner, resolved.number);
            self.release(resolved, taken_command, ready);
        }
    }

    /// Releases a lease, and then runs the command that was taken for this rank. If the lease was
    /// marked meanwhile, runs the queue once more before it releases the lease.
    pub(in crate::engine::command_queue) fn release(
        &self,
        resolved: &ResolvedQueue<'_>,
        taken_command: Option<u64>,
        ready: &mut ReadyList,
    ) {
        let mut taken_command = taken_command;
        loop {
            while !resolved.queue.lease().release() {
                self.run_under_lease_with(resolved, ready, &mut taken_command);
            }
            match taken_command.take() {
                Some(command_number) => self.run_taken_command(resolved, command_number),
                None => return self.notify_other_runners(resolved),
            }
            if !resolved.queue.lease().acquire_or_mark(self.rank().to_word()) {
                return;
            }
            self.run_under_lease_with(resolved, ready, &mut taken_command);
        }
    }

    /// Makes sure that commands for other ranks are run: wakes the queue's rank if it sleeps, and leaves notes for
    /// others.
    #[inline]
    fn notify_other_runners(&self, resolved: &ResolvedQueue<'_>) {
        if resolved.queue.for_owner() > 0 && resolved.owner != self.rank() {
            fence(Ordering::SeqCst); // as after a raised signal
            self.node_state().rank_state(resolved.owner).wake();
        }
        if resolved.queue.for_others() > 0 {
            self.leave_remote_notes(resolved);
        }
    }

    /// Does everything that can be done under the lease. Returns a long command, if one was taken for this rank, and
    /// true if anything was done.
    #[inline]
    pub(in crate::engine::command_queue) fn run_under_lease(
        &self,
        resolved: &ResolvedQueue<'_>,
        ready: &mut ReadyList,
    ) -> (Option<u64>, bool) {
        let mut taken_command = None;
        let progressed = self.run_under_lease_with(resolved, ready, &mut taken_command);
        (taken_command, progressed || taken_command.is_some())
    }

    /// Does what [`Worker::run_under_lease`] does, if a long command may have been taken already.
    fn run_under_lease_with(
        &self,
        resolved: &ResolvedQueue<'_>,
        ready: &mut ReadyList,
        taken_command: &mut Option<u64>,
    ) -> bool {
        if !resolved.queue.is_there() {
            return false;
        }
        let mut progressed = false;
        loop {
            progressed |= self.fire_triggered(resolved, ready);
            let read = self.read_ring(resolved, ready);
            // A trigger may have been met while its command was added to the list: check once more.
            let mut again = read.triggered;
            if !resolved.queue.in_flight().is_empty() {
                again |= self.run_fired(resolved, taken_command);
                again |= self.retire(resolved, ready);
            }
            progressed |= again || read.any;
            if !again && !self.arm_head(resolved) {
                return progressed;
            }
        }
    }

    /// Fires waiting commands whose triggers are met, or fails them if their triggers can never be met. Returns true if
    /// there were any.
    #[inline]
    fn fire_triggered(&self, resolved: &ResolvedQueue<'_>, ready: &mut ReadyList) -> bool {
        let lists = resolved.queue.triggered();
        let mut progressed = false;
        while resolved.queue.in_flight().has_room() {
            let met = lists.triggers().enumerate().find_map(|(at, trigger)| {
                resolved
                    .trigger_outcome(self.shared_fabric(), trigger)
                    .map(|failure| (at, trigger.signal, failure))
            });
            let Some((at, signal, failure)) = met else { break };
            let Some((encoded, position)) = lists.first(at) else {
                self.count_unreadable(resolved);
                break;
            };
            let failure = match encoded.triggers()[1].filter(|_| failure.is_none()) {
                None => failure,
                Some(second) => match resolved.trigger_outcome(self.shared_fabric(), second) {
                    Some(failure) => failure,
                    None => {
                        resolved.remove_first(at, signal); // makes room for it
                        self.add_triggered(resolved, &encoded.without_first_trigger(), second, position);
                        progressed = true;
                        continue;
                    }
                },
            };
            match Command::decode(&encoded) {
                Some(command) => self.fire(resolved, &command, position, failure, ready),
                None => self.count_unreadable(resolved),
            }
            resolved.remove_first(at, signal); // after its effects, for which other ranks wait
            progressed = true;
        }
        progressed
    }

    /// Reads posted commands, as far as there is room for them.
    #[inline]
    fn read_ring(&self, resolved: &ResolvedQueue<'_>, ready: &mut ReadyList) -> ReadResult {
        let queue = &resolved.queue;
        let begin = queue.reader().read();
        let (mut position, mut triggered) = (begin, false);
        while let Some(encoded) = resolved.next_encoded(self.shared_fabric(), position) {
            match self.accept(resolved, &encoded, position, ready) {
                AcceptResult::NoRoom => break,
                AcceptResult::Fired => {}
                AcceptResult::Triggered => triggered = true,
            }
            position = queue.behind(position, encoded.line_count());
            queue.count_command();
            if position.wrapping_sub(begin).is_multiple_of(PUBLISH_LINES) {
                queue.reader().set_read(position);
            }
        }
        let any = position != begin;
        if any {
            queue.reader().set_read(position);
        }
        ReadResult { any, triggered }
    }

    /// Fires a command that was read, or adds it to the triggered commands.
    #[inline(always)]
    fn accept(
        &self,
        resolved: &ResolvedQueue<'_>,
        encoded: &EncodedCommand,
        position: u64,
        ready: &mut ReadyList,
    ) -> AcceptResult {
        let mut failure = None;
        if let [Some(trigger), second_trigger] = encoded.triggers() {
            match resolved.trigger_outcome(self.shared_fabric(), trigger) {
                Some(how) => failure = how,
                None => return self.add_triggered(resolved, encoded, trigger, position),
            }
            if second_trigger.is_some() && failure.is_none() {
                return self.accept_second(resolved, encoded, position, ready);
            }
            // The signal may have been raised after the waiting commands were checked. Those fire first.
            if !resolved.queue.triggered().is_empty() {
                self.fire_triggered(resolved, ready);
            }
        }
        if !resolved.queue.in_flight().has_room() {
            return AcceptResult::NoRoom;
        }
        if resolved.queue.credit().is_some() {
            failure = resolved.credit(self.shared_fabric()).flatten();
        }
        if failure.is_none() {
            failure = resolved
                .head_outcome(self.shared_fabric(), encoded, resolved.queue.place_of(position).1)
                .flatten();
        }
        match Command::decode(encoded) {
            Some(command) => self.fire(resolved, &command, position, failure, ready),
            None => self.count_unreadable(resolved),
        }
        AcceptResult::Fired
    }

    /// Accepts a command with two triggers whose first one is met.
    #[inline(never)]
    fn accept_second(
        &self,
        resolved: &ResolvedQueue<'_>,
        encoded: &EncodedCommand,
        position: u64,
        ready: &mut ReadyList,
    ) -> AcceptResult {
        self.accept(resolved, &encoded.without_first_trigger(), position, ready)
    }

    #[cold]
    fn count_unreadable(&self, resolved: &ResolvedQueue<'_>) {
        let cause = Cause::Bug("a command with an invalid encoding".into());
        resolved.queue.count_failure(Poison::of(&cause, self.rank()).words());
    }

    /// Adds a command to the triggered commands. The caller has to check the trigger once more after that.
    fn add_triggered(
        &self,
        resolved: &ResolvedQueue<'_>,
        encoded: &EncodedCommand,
        trigger: Trigger,
        position: u64,
    ) -> AcceptResult {
        let lists = resolved.queue.triggered();
        if !lists.has_room() {
            return AcceptResult::NoRoom;
        }
        let bound = encoded.is_bound();
        if lists.add(encoded, trigger, position) || bound {
            resolved.signal_control(trigger.signal).arm(resolved.number, bound);
        }
        AcceptResult::Triggered
    }

    /// Fires a command: runs a short action now, else adds the command to those in flight. There must be room for it
    /// there.
    #[inline(always)]
    fn fire(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
        position: u64,
        failure: Failure,
        ready: &mut ReadyList,
    ) {
        if let Some(recorder) = self.recorder() {
            return self.fire_and_record(recorder, resolved, command, position, failure, ready);
        }
        if failure.is_none() && self.try_run_at_once(resolved, command) {
            return self.finish_or_keep(resolved, command, Some(None), ready);
        }
        self.fire_not_inline(resolved, command, failure, ready);
    }

    /// Runs the action of a command that fires, if it is short and need not wait for another command. A reduction waits
    /// for an earlier one, because both read the destination before they write it. Returns true if it was run.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn try_run_at_once(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
    ) -> bool {
        let waits =
            command.is_reduction() && resolved.queue.in_flight().any_unfinished(Command::is_reduction);
        !waits && self.try_short_action(command)
    }

    /// Fires a command that is not a short action, or that has failed.
    #[inline(never)]
    fn fire_not_inline(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
        failure: Failure,
        ready: &mut ReadyList,
    ) {
        let outcome = self.run_call_or_fail(resolved, command, failure);
        self.finish_or_keep(resolved, command, outcome, ready);
    }

    /// How a command that is not a short action ended, if it has ended.
    pub(in crate::engine::command_queue) fn run_call_or_fail(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
        failure: Failure,
    ) -> Option<Failure> {
        match failure {
            Some(poison) => Some(Some(poison)),
            None if command.as_call().is_some() => self.call_inline(resolved, command),
            None => None,
        }
    }

    /// Performs the effects of a command that fired, or adds it to those in flight.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn finish_or_keep(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
        outcome: Option<Failure>,
        ready: &mut ReadyList,
    ) {
        match outcome {
            Some(failure) if resolved.may_perform_effects(command) => {
                self.perform_command_effects(resolved, command, failure.as_ref(), ready);
            }
            Some(failure) => {
                let in_flight = resolved.queue.in_flight();
                let number = in_flight.fire(command);
                in_flight.end(number, failure.map(Poison::words));
            }
            None => drop(resolved.queue.in_flight().fire(command)),
        }
    }

    /// Runs the fired commands that this rank can run under the lease, and takes one that it runs after it has released
    /// the lease.
    fn run_fired(&self, resolved: &ResolvedQueue<'_>, taken_command: &mut Option<u64>) -> bool {
        let in_flight = resolved.queue.in_flight();
        let (mut progressed, mut for_owner, mut for_others, mut for_room) = (false, 0, 0, 0);
        let (mut calls_wait, mut reduces_wait) = (false, false);
        for number in in_flight.numbers() {
            let stage = in_flight.stage(number);
            if !matches!(stage, InFlightStage::Fired | InFlightStage::Running(_)) {
                continue;
            }
            let Some(command) = in_flight.command(number) else { continue };
            let (is_call, is_reduction) = (command.as_call().is_some(), command.is_reduction());
            let (waits, is_next) = (calls_wait && is_call, !(is_reduction && reduces_wait));
            (calls_wait, reduces_wait) = (calls_wait || is_call, reduces_wait || is_reduction);
            if stage != InFlightStage::Fired || !is_next {
                continue; // the rank that ends the earlier reduction runs the queue again
            }
            let may_run = self.commands().may_run(&command);
            if waits {
                for_room += 1; // calls keep their order
            } else if let Some(outcome) = self.forward_in_flight(resolved, &command) {
                match outcome {
                    Some(failure) => in_flight.end(number, failure.map(Poison::words)),
                    None => for_room += 1,
                }
                calls_wait = outcome.is_none();
                progressed |= outcome.is_some();
            } else if !may_run && self.commands().is_direct() {
                let is_owners = command.runner() == Some(resolved.owner);
                for_owner += u32::from(is_owners);
                for_others += u32::from(!is_owners);
            } else if may_run && self.try_in_flight_inline(resolved, number, &command) {
                in_flight.end(number, None);
                progressed = true;
            } else if taken_command.is_none() {
                in_flight.take(number, self.rank().to_word());
                *taken_command = Some(number);
            } else {
                for_owner += 1; // any rank may run it; the owner does at the latest
            }
        }
        if resolved.owner != self.rank() {
            for_owner += std::mem::take(&mut for_room); // no rank reports room: the queue's rank tries again
        }
        resolved.queue.set_waiting_counts(WaitingCounts { for_owner, for_others, for_room });
        progressed
    }

    /// Performs the effects of in-flight commands that have ended, each stream in its order.
    pub(in crate::engine::command_queue) fn retire(
        &self,
        resolved: &ResolvedQueue<'_>,
        ready: &mut ReadyList,
    ) -> bool {
        let in_flight = resolved.queue.in_flight();
        let mut progressed = false;
        for number in in_flight.numbers() {
            if let InFlightStage::Ended(failure) = in_flight.stage(number)
                && let Some(command) = in_flight.command(number)
                && !in_flight.must_wait(&command.effects, number)
            {
                self.record_in_flight(resolved, number, false, EventKind::Retired);
                let poison = failure.and_then(Poison::from_words);
                self.perform_command_effects(resolved, &command, poison.as_ref(), ready);
                in_flight.retire(number);
                progressed = true;
            }
        }
        progressed
    }
}
