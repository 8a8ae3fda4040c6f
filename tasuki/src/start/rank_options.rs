//! The options of a rank: its helper, and the choice of algorithms.

use crate::{Cause, Error, Result};
use tasuki_core::bootstrap::Settings;
use tasuki_core::bootstrap::environment_variables as names;
use tasuki_core::bootstrap::helper_setting::Helper as Wanted;
use tasuki_schedule::Selection;

/// The helper that the rank shall have, and the settings by which it chooses algorithms.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankOptions {
    pub(crate) helper: Wanted,
    pub(crate) selection: Selection,
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
        Ok(RankOptions { helper: settings.helper, selection })
    }
}
