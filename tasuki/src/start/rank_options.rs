//! The options of a rank: its helper, the choice of algorithms, what a failure does, time limits, and the send buffer.

use crate::engine::Cause;
use crate::{Error, Result};
use std::time::Duration;
use tasuki_core::bootstrap::environment_variables as names;
use tasuki_core::bootstrap::helper_setting::Helper as Wanted;
use tasuki_core::bootstrap::{AnySourceSize, Settings};
use tasuki_schedule::Selection;

/// The options of a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankOptions {
    /// The helper that it shall have.
    pub(crate) helper: Wanted,
    /// The settings by which it chooses algorithms.
    pub(crate) selection: Selection,
    /// A collective call that fails ends the job.
    pub(crate) abort_on_failure: bool,
    /// The time limit of calls that have no other.
    pub(crate) call_timeout: Option<Duration>,
    /// The capacity of its send buffer in bytes.
    pub(crate) send_buffer: Option<u64>,
    /// The size of its any-source queue.
    pub(crate) any_source: AnySourceSize,
}

impl RankOptions {
    /// Reads the options from the settings. `per_processor`: the number of ranks that share a processor.
    pub(super) fn read(settings: &Settings, per_processor: usize) -> Result<RankOptions> {
        let wrong = |name: &str, value: &str, why: String| {
            Error::new(Cause::Argument(format!("{name}={value}: {why}")))
        };
        let costs =
            settings.costs.parse().map_err(|why| wrong(names::COST_PARAMETERS, &settings.costs, why))?;
        let forced = settings.collectives.parse();
        let forced = forced.map_err(|why| wrong(names::COLLECTIVES, &settings.collectives, why))?;
        let selection = Selection { costs, forced, per_processor, has_no_helper: false };
        let Settings { helper, abort_on_failure, call_timeout, send_buffer, any_source, .. } = *settings;
        Ok(RankOptions { helper, selection, abort_on_failure, call_timeout, send_buffer, any_source })
    }
}
