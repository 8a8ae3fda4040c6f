//! The signal of a particular rank, as other ranks use it.

use crate::Rank;
use crate::command::Effect;
use crate::data::single_value_data;
use crate::onesided::GlobalAddress;

/// The signal of a particular rank, as other ranks raise it: 8 bytes, which may be sent to any rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct RemoteSignal(pub(crate) GlobalAddress);

impl RemoteSignal {
    /// An effect of a command: when the command has succeeded, this signal is raised by `amount`, at most 2^32 - 1.
    #[allow(clippy::should_implement_trait)] // it describes an effect and adds nothing itself
    pub fn add(self, amount: u32) -> Effect {
        Effect(tasuki_core::queue::command::Effect { signal: self.0, amount })
    }

    /// The rank whose signal it is.
    pub fn rank(self) -> Rank {
        self.0.rank()
    }
}

single_value_data! { [] RemoteSignal; }
