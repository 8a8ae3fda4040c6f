//! Blocking calls that the network performs, where it has a barrier and a broadcast of its own and members do not reach
//! each other's memory.

use crate::communicator::Communicator;
use crate::fabric_collectives::{FabricAddresses, FabricCall, FabricCollectives, FabricMemory, PLACE_MAX};
use crate::failure::call_notices::LeaveNotice;
use bytemuck::Zeroable;
use std::sync::Arc;
use tasuki_core::base::Result;

impl Communicator {
    /// Returns the collectives of the network for a call that has begun, if all members have them. Collective the
    /// first time.
    #[inline]
    pub(crate) fn fabric_collectives<'c>(
        &'c self,
        call: &'c dyn Fn() -> String,
    ) -> Result<Option<FabricCall<'c>>> {
        if self.worker().reaches_words() || self.size() == 1 {
            Ok(None)
        } else {
            self.find_fabric_collectives(call)
        }
    }

    fn find_fabric_collectives<'c>(&'c self, call: &'c dyn Fn() -> String) -> Result<Option<FabricCall<'c>>> {
        let fabric_collectives = match self.fabric_collectives.get() {
            Some(fabric_collectives) => fabric_collectives.as_ref(),
            None => {
                let made = self.agree_on_fabric_collectives(call)?;
                self.fabric_collectives.get_or_init(|| made).as_ref()
            }
        };
        Ok(fabric_collectives.map(|fabric_collectives| FabricCall {
            fabric_collectives,
            group: self.group(),
            call,
        }))
    }

    /// Opens a group of all members. Either all members have it, or none.
    #[cold]
    fn agree_on_fabric_collectives(&self, call: &dyn Fn() -> String) -> Result<Option<FabricCollectives>> {
        let can = self.worker().fabric().capabilities();
        let Some(call_notices) = self.monitor().call_notices().filter(|_| can.barrier) else {
            return Ok(None);
        };
        let failed = |error| self.step_failed(error, call);
        let part = FabricMemory::new(self.messages().worker(), can.multicast_bytes_max.min(PLACE_MAX)).ok();
        let word = part.as_ref().map_or(FabricAddresses::zeroed(), |part| part.word);
        let words = self.allgather_steps(&[word]).map_err(failed)?;
        let has_room = words.iter().all(|word| word.found_room != 0);
        let part = part.filter(|_| has_room);
        let fabric_collectives =
            part.and_then(|part| FabricCollectives::new(self.group(), part, &words, call_notices).ok());
        let all = self.allgather_steps(&[u64::from(fabric_collectives.is_some())]).map_err(failed)?;
        let Some(fabric_collectives) = fabric_collectives.filter(|_| !all.contains(&0)) else {
            return Ok(None);
        };
        let leave_notice =
            LeaveNotice { call_notices: call_notices.clone(), is_freed: self.plans().is_freed.clone() };
        self.messages().add_finalize_hook(Arc::new(leave_notice))?;
        Ok(Some(fabric_collectives))
    }
}
