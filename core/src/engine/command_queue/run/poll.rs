//! A rank looks at its own queues while a thread of it waits, and lets others know.

use crate::base::Rank;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::wait::helper::HelperScope;
use crate::engine::worker::Worker;
use crate::queue::directory::{PollerKind, QueueDirectory};
use crate::queue::encoding::EncodedCommand;
use crate::queue::in_flight::InFlightStage;
use crate::queue::lease::Glance;
use crate::queue::ring::{LINE_WORDS, RingLineState};
use std::cell::Cell;

/// How often a thread that waits looks for posts, among its looks at signals. Whoever writes a line that it looks at
/// has to wait for it, and many posts in a row are read in one go.
const RING_EVERY: u32 = 4;
/// Looks of a wait before it says that it looks at queues, too, which costs two locked instructions.
const QUICK_LOOKS: u32 = 16;

/// How often in a row a thread that waits may be of use before it looks whether its wait is to end otherwise.
const USES_MAX: u32 = 256;

/// A thread that waits, and looks at the rank's queues meanwhile, or, as a helper, at those of the whole node. At its
/// end, however it comes, they are looked at once more if it was the last.
pub(in crate::engine) struct QueuePoller<'m> {
    worker: &'m Worker,
    helps: Option<HelperScope>,
    present: Cell<bool>,
}

impl<'m> QueuePoller<'m> {
    /// A thread of the program's begins to look. Nobody is told where it has no processor of its own: what others
    /// left to it would wait for its turn.
    pub(in crate::engine) fn new(worker: &'m Worker) -> QueuePoller<'m> {
        let present = worker.commands().are_used() && worker.has_processor();
        if present {
            worker.commands().station().serving.begin(PollerKind::Itself);
        }
        QueuePoller { worker, helps: None, present: present.into() }
    }

    /// A helper begins to look.
    pub(in crate::engine) fn of_helper(worker: &'m Worker, help: HelperScope) -> QueuePoller<'m> {
        let attendance = QueuePoller { worker, helps: Some(help), present: false.into() };
        attendance.rise();
        attendance
    }

    /// The other ranks that this thread looks after.
    fn others(&self) -> impl Iterator<Item = (Rank, &'m QueueDirectory)> + use<'m> {
        let worker = self.worker;
        let all = if self.helps == Some(HelperScope::Node) { worker.size() } else { 0 };
        let others = Rank::all(all).filter(move |&rank| rank != worker.rank());
        others.filter_map(move |rank| Some((rank, worker.station_of(rank)?)))
    }

    /// The thread is about to sleep, and looks for work once more when others can see that.
    pub(in crate::engine) fn rest(&self) {
        if self.present.replace(false) {
            self.worker.commands().station().serving.end(PollerKind::Itself);
            self.others().for_each(|(_, station)| {
                station.serving.end(PollerKind::Another);
            });
        }
    }

    /// It has slept.
    pub(in crate::engine) fn rise(&self) {
        let looks = self.helps.is_some() || self.worker.commands().are_used() && self.worker.has_processor();
        if looks && !self.present.replace(true) {
            self.worker.commands().station().serving.begin(PollerKind::Itself);
            self.others().for_each(|(_, station)| station.serving.begin(PollerKind::Another));
        }
    }

    /// Looks at the queues of other ranks. Whether that was of use.
    pub(in crate::engine) fn poll_other_ranks(&self) -> bool {
        let mut served = false;
        for named in self.others_queues() {
            if self.worker.looks_ready(&named, true, false) {
                served |= self.worker.run_queue_and_ready(&named);
            }
        }
        served
    }

    /// Whether [`QueuePoller::poll_other_ranks`] would find something.
    pub(in crate::engine) fn has_work(&self) -> bool {
        self.others_queues().any(|named| self.worker.looks_ready(&named, true, true))
    }

    fn others_queues(&self) -> impl Iterator<Item = ResolvedQueue<'m>> + use<'m> {
        let worker = self.worker;
        let queues = move |(rank, station): (Rank, &'m QueueDirectory)| {
            station.numbers().filter_map(move |number| worker.find_queue(rank, number))
        };
        self.others().flat_map(queues)
    }
}

impl Drop for QueuePoller<'_> {
    fn drop(&mut self) {
        if !self.present.replace(false) {
            return;
        }
        self.others().for_each(|(_, station)| {
            station.serving.end(PollerKind::Another);
        });
        let is_last =
            self.worker.commands().station().serving.end(PollerKind::Itself) || self.helps.is_some();
        // A thread that panics looks no more: what it was at may have been what panicked.
        if is_last && !std::thread::panicking() {
            self.worker.look_once_more();
            self.worker.look_once_more_at(|| self.others_queues());
        }
    }
}

/// EventKind was posted to a queue and not read.
enum RingState {
    /// Nothing.
    Nothing,
    /// A place was reserved, and not written when it was looked at.
    Unwritten,
    /// A command that can be read now.
    Readable,
    /// One that waits for the queue's credit, or for room.
    Waiting,
}

/// EventKind came of some looks.
struct PollResult {
    /// EventKind was waited for has happened.
    met: bool,
    /// Something was run.
    of_use: bool,
}

impl Worker {
    /// Looks whether something is `met`, so many times after the last time that it was of use to look at the rank's own
    /// queues, at which it looks meanwhile.
    pub(in crate::engine) fn wait_and_poll(&self, spins: u32, met: &dyn Fn() -> bool) -> bool {
        if met() {
            return true;
        }
        // EventKind is about to happen needs nobody told: until then others do not count on this rank.
        for _ in 0..QUICK_LOOKS.min(spins) {
            if self.queues_look_ready(false) {
                break;
            }
            std::hint::spin_loop();
            if met() {
                return true;
            }
        }
        let _attendance = QueuePoller::new(self);
        self.look_on(spins, spins, met).met
    }

    /// Runs what is ready, and looks on for a while for what comes next. Whether it was of use.
    pub(in crate::engine) fn poll_on(&self, met: &dyn Fn() -> bool) -> bool {
        self.look_on(RING_EVERY, self.spins(None), met).of_use
    }

    /// Looks at what this rank serves, so many times, and after each time that it was of use as many times as `again`
    /// says, but not for ever: who waits has a time-out to keep, and must hear of failures.
    #[inline]
    fn look_on(&self, looks: u32, again: u32, met: &dyn Fn() -> bool) -> PollResult {
        let (mut left, mut of_use, mut uses) = (looks, false, 0);
        while left > 0 {
            if met() {
                return PollResult { met: true, of_use };
            }
            let with_ring = left.is_multiple_of(RING_EVERY);
            let shares = self.has_shares() && self.share();
            if self.run_calls() | self.forward_taken() | self.poll_ready(with_ring) | shares {
                uses += 1;
                (left, of_use) = (if uses < USES_MAX { again } else { 0 }, true);
            } else {
                left -= 1;
                std::hint::spin_loop();
            }
        }
        PollResult { met: false, of_use }
    }

    /// Looks at the rank's own queues, and goes on with what it carries out for any.
    pub(in crate::engine) fn poll_queues(&self) {
        self.use_inbox();
        if self.has_in_flight() {
            self.advance_in_flight();
        }
        self.collect_offloaded();
        self.poll_ready(true);
        for own in self.commands().own.iter().filter(|own| own.queue().for_room() > 0) {
            self.run_queue_and_ready(&self.named(own));
        }
    }

    /// Looks at the rank's own queues; at what was posted only if `with_ring`. Whether that was of use.
    #[inline]
    fn poll_ready(&self, with_ring: bool) -> bool {
        let mut served = self.has_remote_note() && self.run_remote_notes();
        for own in self.commands().own.iter() {
            let named = self.named(own);
            if self.looks_ready(&named, with_ring, false) {
                served |= self.run_queue_and_ready(&named);
            }
        }
        served
    }

    /// Whether [`Worker::poll_queues`] would find something. `strictly`: places that were reserved and are not
    /// written yet count, too.
    pub(in crate::engine) fn queues_look_ready(&self, strictly: bool) -> bool {
        self.has_remote_note()
            || self.inbox_has_come()
            || self.commands().are_used()
                && (self.calls_look_ready()
                    || self.has_to_forward()
                    || self.have_offloaded_ended()
                    || self
                        .commands()
                        .own
                        .iter()
                        .any(|own| self.looks_ready(&self.named(own), true, strictly)))
    }

    /// Whether commands are under way in the rank's own queues.
    pub(in crate::engine) fn queues_are_busy(&self) -> bool {
        if !self.commands().are_used() {
            return false;
        }
        let glances = || self.commands().own.iter().map(|own| self.named(own).queue.lease().glance());
        let seen: Vec<Glance> = glances().collect();
        let is_busy = |named: &ResolvedQueue<'_>| {
            !named.queue.flights().is_empty() || self.looks_ready(named, true, true)
        };
        // Who has a lease, or had one meanwhile, may have taken out what these looks were for, and not yet done it.
        !seen.iter().all(|glance| glance.is_free())
            || self.commands().own.iter().any(|own| is_busy(&self.named(own)))
            || !glances().eq(seen)
    }

    /// The last look before the rank is away.
    fn look_once_more(&self) {
        self.run_calls();
        self.forward_taken();
        self.poll_queues();
        self.look_once_more_at(|| self.commands().own.iter().map(|own| self.named(own)));
    }

    /// The last look at those queues. EventKind was posted and raised while others counted on this thread is run, or is left
    /// to who has the lease, by a call.
    fn look_once_more_at<'q, Q: Iterator<Item = ResolvedQueue<'q>>>(&self, queues: impl Fn() -> Q) {
        let is_unwritten = |is: bool, named: ResolvedQueue<'_>| is | self.look_last(&named);
        if queues().fold(false, is_unwritten) {
            // Whoever writes there now either sees that nobody serves, or has written before this.
            self.platform().barrier();
            queues().for_each(|named| {
                self.run_queue_and_ready(&named);
            });
        }
    }

    /// The last look at a queue. Whether places were reserved there that had not been written when it came to them.
    fn look_last(&self, named: &ResolvedQueue<'_>) -> bool {
        if !named.queue.lease().glance().is_free() || self.is_ready(named, false, false) {
            self.run_queue_and_ready(named);
        }
        loop {
            match self.unread(named, true) {
                RingState::Unwritten => return true,
                // EventKind can be read now has come since.
                RingState::Readable if self.run_queue_and_ready(named) => {}
                _ => return false,
            }
        }
    }

    /// Whether a look at a queue might let something in it go on. Reads only, without the lease. `strictly`: also if
    /// somebody has the lease, whose last look may have been before this, or if places were reserved.
    #[inline]
    fn looks_ready(&self, named: &ResolvedQueue<'_>, with_ring: bool, strictly: bool) -> bool {
        if !named.queue.lease().glance().is_free() {
            return strictly; // its holder sees to it
        }
        self.is_ready(named, with_ring, strictly)
    }

    #[inline]
    fn is_ready(&self, named: &ResolvedQueue<'_>, with_ring: bool, strictly: bool) -> bool {
        let queue = &named.queue;
        let flights = queue.flights();
        let mut triggers = queue.parked().triggers();
        if let Some(list) = triggers.position(|trigger| named.firing(self, trigger).is_some())
            && flights.has_room()
        {
            self.fetch_source(named, list);
            return true;
        }
        with_ring && self.has_posts(named, strictly)
            || queue.for_owner() > 0
            || !flights.is_empty() && has_ended(named)
    }

    /// Whether a command was posted that can be read now.
    #[inline]
    fn has_posts(&self, named: &ResolvedQueue<'_>, strictly: bool) -> bool {
        matches!(self.unread(named, strictly), RingState::Readable | RingState::Unwritten)
    }

    /// EventKind was posted to a queue and not read. `strictly`: places that were reserved are looked for, in the posters'
    /// line, which they then have to take back.
    #[inline(always)]
    fn unread(&self, named: &ResolvedQueue<'_>, strictly: bool) -> RingState {
        let queue = &named.queue;
        let read = queue.reader().read();
        let (written, pass) = queue.place_of(read);
        let line = queue.line(written);
        let found = match strictly && queue.cycle().is_none() {
            true => queue.posters().found_at(read, line),
            false if line.holds(written) => RingLineState::Written,
            false => RingLineState::Nothing,
        };
        match found {
            RingLineState::Nothing => RingState::Nothing,
            RingLineState::Reserved => RingState::Unwritten,
            RingLineState::Written if self.may_be_read(named, written, pass) => RingState::Readable,
            RingLineState::Written => RingState::Waiting,
        }
    }

    /// Whether the command that lies there may be read now.
    #[inline]
    fn may_be_read(&self, named: &ResolvedQueue<'_>, written: u64, pass: u64) -> bool {
        let waits = |pass: u64| {
            let lines = EncodedCommand { words: [named.queue.line(written).read(), [0; LINE_WORDS]] };
            named.head_goes_on(self, &lines, pass).is_none()
        };
        named.credit(self).is_some()
            && !(named.queue.cycle().is_some() && waits(pass))
            && self.has_room(named, written)
    }

    /// Whether the command that lies there would find a place if it were read now.
    fn has_room(&self, named: &ResolvedQueue<'_>, written: u64) -> bool {
        if !named.queue.flights().has_room() {
            return false;
        }
        if named.queue.parked().has_room() {
            return true;
        }
        let line = |at: u64| named.queue.line(at).read();
        let mut lines = EncodedCommand { words: [line(written), [0; LINE_WORDS]] };
        if lines.count() == 2 {
            lines.words[1] = line(written + 1);
        }
        lines.triggers().into_iter().flatten().all(|trigger| named.firing(self, trigger).is_some())
    }
}

/// Whether the effects of a command may happen now. Those that wait for an earlier command are nothing to look at:
/// whoever runs that may be dead, which is found out only by who does not look here all the time.
fn has_ended(named: &ResolvedQueue<'_>) -> bool {
    let flights = named.queue.flights();
    let may_happen = |number: u64| {
        matches!(flights.stage(number), InFlightStage::Ended(_))
            && flights.command(number).is_none_or(|command| !flights.holds_back(&command.effects, number))
    };
    flights.numbers().any(may_happen)
}
