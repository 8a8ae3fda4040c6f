//! Programs: commands that are prepared once, and run anew for each start.
//!
//! A program is a queue that begins anew, whose credit counts starts. Its commands run in their order, each when what
//! it waits for at the head has come, which grows from pass to pass; so nothing is ever reset, and starting costs a
//! raise. Whoever may run a queue may run it: the rank that starts it, one that raises a signal, one that waits, a
//! helper.

use super::own::OwnQueue;
use crate::base::Cause;
use crate::engine::machine::Machine;
use crate::queue::lines::Lines;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
use std::sync::Arc;

impl Machine {
    /// Makes a program of those commands. Each raise of the own signal `starts` by one lets `per_start` of them run;
    /// all of them are as many starts in a row, after which they begin anew.
    ///
    /// Errors: there is no room for it; a command is wrong in itself. It lasts until
    /// [`drop_queue`](Machine::drop_queue).
    pub fn make_program(
        &self,
        commands: &[Lines],
        starts: u32,
        per_start: u32,
    ) -> Result<Arc<OwnQueue>, Cause> {
        let lines: u64 = commands.iter().map(Lines::count).sum();
        let own = self.make_queue(lines as usize, Some(starts))?;
        own.queue().set_per_credit(per_start, self.count_of_own(starts));
        let posted = self.post_own(&own, commands.iter()).and_then(|_| self.repeat(&own));
        posted.inspect_err(|_| self.drop_queue(&own))?;
        Ok(own)
    }

    /// How far a signal of this rank's own has come.
    pub fn count_of_own(&self, signal: u32) -> u64 {
        self.fabric().read_signal(GlobalAddress::new(self.rank(), signal_offset(signal)))
    }

    /// Whether all that was started of a program has been run.
    pub fn is_through(&self, own: &OwnQueue) -> bool {
        let queue = own.queue();
        let started = queue.credit().map_or(0, |credit| self.count_of_own(credit));
        let is_run = queue.commands() == started.wrapping_mul(queue.per_credit());
        is_run && queue.flights().is_empty() && queue.lease().glance().is_free()
    }
}
