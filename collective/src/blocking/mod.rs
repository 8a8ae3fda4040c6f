//! Blocking collective calls. A call begins, looks for a compiled schedule of its kind, then for a collective of the
//! network (`by_fabric`), and otherwise uses messages.
//!
//! ```text
//! movement    barrier, bcast, gather, scatter, allgather, alltoall    vector    blocks of different lengths
//! reductions  reduce, allreduce, reduce_scatter, scan, exscan         channel   the messages of these calls
//! ```

pub(crate) mod by_fabric;
pub(crate) mod channel;
pub(crate) mod movement;
pub(crate) mod reductions;
pub(crate) mod vector;

use crate::communicator::Communicator;
use crate::current_call::CallWord;
use crate::message_algorithms::gather::allgather_words;
use crate::message_algorithms::run_now;
use bytemuck::Pod;
use tasuki_core::base::{Cause, Result};

impl Communicator {
    /// Runs an algorithm of the call that has begun.
    #[inline]
    fn by_messages<R>(
        &self,
        algorithm: impl Future<Output = Result<R>>,
        call: &dyn Fn() -> String,
    ) -> Result<R> {
        run_now(algorithm).map_err(|error| self.step_failed(error, call))
    }

    /// Returns the values of all members, inside a call that has already begun.
    pub(crate) fn allgather_steps<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        run_now(allgather_words(&self.channel, values))
    }

    /// Returns an error unless `room` holds exactly a block of `count` values.
    pub(crate) fn check_block(&self, room: usize, count: usize, word: CallWord) -> Result<()> {
        let text = || format!("there is room for {room} values, but a member's block has {count}");
        self.check_argument(room == count, text, word)
    }

    /// Returns an error unless `room` holds exactly `count` values for each member.
    pub(crate) fn check_room(&self, room: usize, count: usize, word: CallWord) -> Result<()> {
        let (size, wanted) = (self.size(), self.size() * count);
        let text = || format!("{room} values are not {count} for each of {size} members, which are {wanted}");
        self.check_argument(room == wanted, text, word)
    }

    /// Refuses the call for an argument that is wrong by itself.
    #[inline]
    fn check_argument(&self, is_right: bool, text: impl FnOnce() -> String, word: CallWord) -> Result<()> {
        if is_right { Ok(()) } else { Err(self.refuse_call(Cause::Argument(text()), word)) }
    }
}
