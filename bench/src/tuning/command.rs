//! `tasuki bench --tune`: measures which of two methods is faster for messages in a program's own memory, by size, and
//! measures the costs with which plans choose their algorithms.

use super::file::{self, Values};
use super::{cost_fit, plan_times};
use crate::case::named;
use crate::harness::run::Run;
use crate::harness::schedule_of_run::Wanted;
use crate::machine::Machine;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::sizes::{self, K, M};
use anyhow::bail;
use std::collections::BTreeSet;
use std::fmt::Write;
use tasuki_command::print;

/// Sizes of messages.
const SIZES: [u64; 6] = [16 * K, 64 * K, 256 * K, M, 4 * M, 16 * M];
/// Direct messages must be faster by this factor, because they need the kernel's permission.
const GAIN: f64 = 1.05;

/// Measures, writes the file, and prints what it has written.
pub(crate) fn command(machine: &Machine) -> anyhow::Result<u8> {
    let folder = tempfile::tempdir()?;
    let measure = |direct_from_bytes: Option<u64>| -> anyhow::Result<Vec<Row>> {
        let file = folder.path().join("tune.json");
        file::write_to(&file, Values { direct_from_bytes, costs: None })?;
        let (cases, sizes) = (vec![named("bandwidth_own")], SIZES.to_vec());
        let wanted = Wanted { cases, sizes, tuning: Some(file), ..Wanted::default() };
        let mut run = Run::new(wanted, machine, None, false)?;
        run.take("")?;
        match run.failures.pop() {
            Some((case, why)) => bail!("{}: {why}", case.name),
            None => Ok(run.rows),
        }
    };
    let gains = gains(&measure(None)?, &measure(Some(0))?);
    let costs = cost_fit::costs(&plan_times::take(&machine.processors)?)?;
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
    print(&text).map(|()| 0)
}

/// Returns the factor between the times of staged and direct messages of each size: the geometric mean over all states
/// of buffers.
fn gains(staged: &[Row], direct: &[Row]) -> Vec<(u64, f64)> {
    let is_ours = |row: &&Row| row.library == Library::Tasuki;
    let all: BTreeSet<u64> = staged.iter().filter(is_ours).map(|row| row.bytes).collect();
    let gain = |bytes: u64| {
        let of_size = staged.iter().filter(is_ours).filter(|row| row.bytes == bytes);
        let logs: Vec<f64> = of_size
            .filter_map(|one| {
                let other = direct.iter().filter(is_ours).find(|other| other.key().is_alike(&one.key()))?;
                Some((other.median / one.median).ln())
            })
            .collect();
        (bytes, (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp())
    };
    all.into_iter().map(gain).collect()
}

/// Returns the smallest size from which on direct messages of all sizes are faster by [`GAIN`], if there is one.
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
        assert_eq!((from(&[(1, 2.0), (2, 1.5)]), from(&[])), (Some(1), None));
    }
}
