//! What a rank was asked for, of what its job and its communicators go by.

use crate::{Cause, Error, Result};
use tasuki_core::bootstrap::Settings;
use tasuki_core::bootstrap::environment_variables as names;
use tasuki_core::bootstrap::helper_setting::Helper as Wanted;
use tasuki_schedule::Selection;

/// Which helper it is to have, and what it would choose algorithms by.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankOptions {
    pub(crate) helper: Wanted,
    pub(crate) selection: Selection,
}

impl RankOptions {
    /// As the settings say, for ranks of which so many share a processor.
    pub(super) fn read(settings: &Settings, per_processor: usize) -> Result<RankOptions> {
        let wrong = |name: &str, value: &str, why: String| {
            Error::new(Cause::Argument(format!("{name}={value}: {why}")))
        };
        let costs = settings.costs.parse().map_err(|why| wrong(names::COSTS, &settings.costs, why))?;
        let forced = settings.collectives.parse();
        let forced = forced.map_err(|why| wrong(names::COLLECTIVES, &settings.collectives, why))?;
        let selection = Selection { costs, forced, per_processor, has_no_helper: false };
        Ok(RankOptions { helper: settings.helper, selection })
    }
}
