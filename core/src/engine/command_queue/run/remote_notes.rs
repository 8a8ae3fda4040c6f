//! CommandQueues that only a rank may run which neither has the queue nor holds its lease: it is left a note, and takes the
//! lease when it looks.

use crate::base::Rank;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::worker::Worker;
use crate::queue::directory::Note;
use crate::queue::in_flight::InFlightStage;

impl Worker {
    /// Tells those who may run what has fired in a queue. The lease is not needed: whoever has it now does the same
    /// before yield_hint it back.
    #[cold]
    pub(in crate::engine::command_queue) fn leave_remote_notes(&self, named: &ResolvedQueue<'_>) {
        let flights = named.queue.flights();
        for number in flights.numbers() {
            let runner = (flights.stage(number) == InFlightStage::Fired)
                .then(|| flights.command(number).and_then(|command| command.runner()))
                .flatten()
                .filter(|&rank| rank != self.rank() && rank != named.owner && rank.index() < self.size());
            if let Some((rank, station)) = runner.and_then(|rank| Some((rank, self.station_of(rank)?))) {
                station.errand.leave(named.owner.0, named.number); // a full fence
                if !station.serving.is_by_itself() {
                    self.node_state().rank_state(rank).wake();
                }
            }
        }
    }

    /// Whether another rank's queue waits for this one.
    #[inline(always)]
    pub(in crate::engine) fn has_remote_note(&self) -> bool {
        self.commands().station().errand.is_there()
    }

    /// Looks at queues of other ranks of which notes were left. Whether there were any.
    #[cold]
    pub(in crate::engine) fn run_remote_notes(&self) -> bool {
        let Some(note) = self.commands().station().errand.take() else { return false };
        match note {
            Note::Queue(owner, number) => self.run_other_queue(Rank(owner), number),
            Note::Some => {
                for rank in Rank::all(self.size()) {
                    let numbers = self.station_of(rank).into_iter().flat_map(|station| station.numbers());
                    numbers.for_each(|number| self.run_other_queue(rank, number));
                }
            }
        }
        true
    }

    fn run_other_queue(&self, owner: Rank, number: u32) {
        if let Some(named) = self.find_queue(owner, number) {
            self.run_queue_and_ready(&named);
        }
    }
}
