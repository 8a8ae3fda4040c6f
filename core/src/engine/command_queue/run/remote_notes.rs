//! Remote notes: if a command may only be run by a rank that neither owns the queue nor holds its lease, that rank is
//! left a note. It takes the lease when it reads the note.

use crate::base::Rank;
use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::worker::Worker;
use crate::queue::directory::Note;
use crate::queue::in_flight::InFlightStage;

impl CommandQueues {
    /// Returns true if a queue of another rank waits for this rank.
    #[inline(always)]
    pub(in crate::engine) fn has_remote_note(&self) -> bool {
        self.directory().notes.is_set()
    }
}

impl Worker {
    /// Leaves notes for the ranks that alone may run commands which have fired in a queue. Needs no lease: a thread
    /// that holds it now does the same before it releases it.
    #[cold]
    pub(in crate::engine::command_queue) fn leave_remote_notes(&self, resolved: &ResolvedQueue<'_>) {
        let in_flight = resolved.queue.in_flight();
        for number in in_flight.numbers() {
            let runner = (in_flight.stage(number) == InFlightStage::Fired)
                .then(|| in_flight.command(number).and_then(|command| command.runner()))
                .flatten()
                .filter(|&rank| rank != self.rank() && rank != resolved.owner && rank.index() < self.size());
            if let Some((rank, directory)) =
                runner.and_then(|rank| Some((rank, self.commands().directory_of(rank)?)))
            {
                directory.notes.leave(resolved.owner.to_word(), resolved.number); // a full fence
                if !directory.poll_state.has_own_thread() {
                    self.node_state().rank_state(rank).wake();
                }
            }
        }
    }

    /// Runs the queues of other ranks about which notes were left. Returns true if there were any.
    #[cold]
    pub(in crate::engine) fn run_remote_notes(&self) -> bool {
        let Some(note) = self.commands().directory().notes.take() else { return false };
        match note {
            Note::Queue(owner, number) => self.run_other_queue(Rank::from_word(owner), number),
            Note::Several => {
                for rank in Rank::all(self.size()) {
                    let numbers = self
                        .commands()
                        .directory_of(rank)
                        .into_iter()
                        .flat_map(|directory| directory.numbers());
                    numbers.for_each(|number| self.run_other_queue(rank, number));
                }
            }
        }
        true
    }

    fn run_other_queue(&self, owner: Rank, number: u32) {
        if let Some(resolved) = self.commands().find_queue(owner, number) {
            self.run_queue_and_ready(&resolved);
        }
    }
}
