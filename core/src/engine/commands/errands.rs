//! Commands that only a rank may run which neither has the queue nor holds its lease: it is left a note, and takes the
//! lease when it looks.

use super::reach::Named;
use crate::base::Rank;
use crate::engine::machine::Machine;
use crate::queue::flights::Stage;
use crate::queue::station::Note;

impl Machine {
    /// Tells those who may run what has fired in a queue. The lease is not needed: whoever has it now does the same
    /// before giving it back.
    #[cold]
    pub(super) fn leave_notes(&self, named: &Named<'_>) {
        let flights = named.queue.flights();
        for number in flights.numbers() {
            let runner = (flights.stage(number) == Stage::Fired)
                .then(|| flights.command(number).and_then(|command| command.runner()))
                .flatten()
                .filter(|&rank| rank != self.rank() && rank != named.owner && rank.index() < self.size());
            if let Some((rank, station)) = runner.and_then(|rank| Some((rank, self.station_of(rank)?))) {
                station.errand.leave(named.owner.0, named.number); // a full fence
                if !station.serving.is_by_itself() {
                    self.board().seat(rank).wake();
                }
            }
        }
    }

    /// Whether another rank's queue waits for this one.
    #[inline(always)]
    pub(in crate::engine) fn has_errand(&self) -> bool {
        self.commands().station().errand.is_there()
    }

    /// Looks at queues of other ranks of which notes were left. Whether there were any.
    #[cold]
    pub(in crate::engine) fn run_errands(&self) -> bool {
        let Some(note) = self.commands().station().errand.take() else { return false };
        match note {
            Note::Queue(owner, number) => self.attend_other(Rank(owner), number),
            Note::Some => {
                for rank in Rank::all(self.size()) {
                    let numbers = self.station_of(rank).into_iter().flat_map(|station| station.numbers());
                    numbers.for_each(|number| self.attend_other(rank, number));
                }
            }
        }
        true
    }

    fn attend_other(&self, owner: Rank, number: u32) {
        if let Some(named) = self.find_queue(owner, number) {
            self.attend_with_all_that_follows(&named);
        }
    }
}
