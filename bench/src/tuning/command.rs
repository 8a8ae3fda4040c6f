//! `tasuki bench --tune`: which way messages in a program's own memory go, by size, and what things cost by which plans
//! choose their algorithms, as measured here.

use crate::case::Case;
use crate::harness::interleaved_jobs::{self, JobsWanted};
use crate::harness::measurement_plan::Effort;
use crate::harness::progress_bar::Progress;
use crate::machine::Machine;
use crate::peers::{Invited, Opponents};
use crate::result::row::Row;
use crate::sizes;
use crate::tuning::cost_fit;
use crate::tuning::file::{self, Values};
use crate::tuning::plan_times;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use tasuki_command::print;

/// Smaller ones are staged anyway: asking the kernel costs more than copying.
const SIZES: &[u64] = &[16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// What must be gained: less could be the noise of the day.
const GAIN: f64 = 1.05;
/// Roughly how many seconds one way takes.
const SECONDS: f64 = 60.0;
/// And the costs.
const COSTS_SECONDS: f64 = 20.0;

/// Measures both ways, writes down which is quicker from what size on, and says so. The exit code.
pub(crate) fn command(machine: &Machine) -> anyhow::Result<u8> {
    let mut progress = Progress::new(2.0 * SECONDS + COSTS_SECONDS);
    let folder = tempfile::tempdir()?;
    let mut measure = |what: &str, direct_from_bytes: Option<u64>| -> anyhow::Result<Vec<Row>> {
        progress.begin(what, SECONDS);
        let file = folder.path().join("tune.json");
        file::write_to(&file, Values { direct_from_bytes, costs: None })?;
        take(machine, file, &mut progress)
    };
    let (staged, direct) = (measure("staged", None)?, measure("direct", Some(0))?);
    progress.begin("costs", COSTS_SECONDS);
    let timed = plan_times::take(&machine.processors, plan_times::PlanTimesEffort::FULL, &mut |share| {
        progress.share(share)
    })?;
    let costs = cost_fit::costs(&timed)?;
    drop(progress);
    let gains = gains(&staged, &direct);
    let values = Values { direct_from_bytes: from(&gains), costs: Some(costs) };
    let file = file::write_here(values)?;
    let mut text = format!("{machine}\n\n   size    direct / staged, GB/s\n");
    for (bytes, gain) in &gains {
        let _ = writeln!(text, "{:>8}    {gain:.2}", sizes::show(*bytes));
    }
    let said = match values.direct_from_bytes {
        Some(bytes) => format!("are written by their senders from {} on", sizes::show(bytes)),
        None => "are staged, of any size".into(),
    };
    let _ = writeln!(text, "\nMessages in a program's own memory {said}");
    let _ = writeln!(text, "Plans choose by {}", file::costs(&costs.named()));
    let _ = writeln!(text, "Written to {}; `tasuki info --collectives` shows what is chosen", file.display());
    print(&text)?;
    Ok(0)
}

fn take(machine: &Machine, tune: PathBuf, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let (cases, effort, processors) = (&[Case::BandwidthOwn], Effort::TUNE, &machine.processors);
    let wanted = JobsWanted { cases, sizes: SIZES, ranks: 2, effort, processors, tune: Some(tune) };
    let bound = processors.iter().copied().take(2).collect();
    let (peers, home, sizes) = (Vec::new(), PathBuf::new(), SIZES.to_vec());
    let nobody = Invited { peers, home, processors: bound, ranks: 2, sizes, rounds: effort.rounds };
    Ok(interleaved_jobs::take(&wanted, Opponents::new(nobody), progress)?.rows)
}

/// By how much the direct way is quicker at each size: the geometric mean over all states of the buffers.
fn gains(staged: &[Row], direct: &[Row]) -> Vec<(u64, f64)> {
    let is_it = |row: &&Row| row.case == Case::BandwidthOwn;
    let all: BTreeSet<u64> = staged.iter().filter(is_it).map(|row| row.bytes).collect();
    let gain = |bytes: u64| {
        let pairs = staged.iter().filter(is_it).filter(|row| row.bytes == bytes).filter_map(|one| {
            let other = direct.iter().find(|other| other.is_of(&one.key()))?;
            Some((other.median / one.median).ln())
        });
        let logs: Vec<f64> = pairs.collect();
        (bytes, (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp())
    };
    all.into_iter().map(gain).collect()
}

/// From which size on the direct way is quicker, and stays so.
fn from(gains: &[(u64, f64)]) -> Option<u64> {
    gains.iter().rev().take_while(|(_, gain)| *gain >= GAIN).last().map(|(bytes, _)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::from;

    #[test]
    fn from_where_on_it_stays_quicker() {
        assert_eq!(from(&[(1, 2.0), (2, 0.9), (3, 1.0)]), None);
        assert_eq!(from(&[(1, 2.0), (2, 0.9), (3, 1.1), (4, 1.2)]), Some(3));
        assert_eq!(from(&[(1, 2.0), (2, 1.5)]), Some(1));
        assert_eq!(from(&[]), None);
    }
}
