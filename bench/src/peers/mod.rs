//! Other libraries, measured by our own small programs (`bench/peers/`) which `cargo xtask peers` installs: started
//! once for each figure, asked for one repetition at a time, so that they and ours take turns on one machine.
//!
//! ```text
//! launch            which settings of which library, and the command line of each
//! peer_process      a program that was started: its answers, its end
//! selection         who takes turns with a job of ours, in the best of its settings
//! reference_figures what each is known to reach: one that falls far behind does not count
//! ```

mod launch;
mod peer_process;
mod reference_figures;
mod selection;

pub(crate) use launch::Peer;
pub(crate) use reference_figures::too_bad;
pub(crate) use selection::{Invited, Opponents};

use crate::cases::message_latency::SendMode;
use crate::cases::oversubscription;
use crate::harness::process_role::ProcessRole;
use anyhow::{Context, ensure};
use launch::Order;
use peer_process::{Limits, Running};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of all peers: beside the folder that this program was built in, below cargo's target folder.
pub(crate) fn home() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("this program lies in no folder")?;
    Ok(target.join("peers"))
}

/// The library and its version, as its installation has noted it; an error says how to install it.
pub(crate) fn version(peer: Peer, home: &Path) -> anyhow::Result<String> {
    let (name, folder) = (peer.name(), home.join(peer.name()));
    let stamp = std::fs::read_to_string(folder.join("stamp")).unwrap_or_default();
    let library = stamp.lines().find_map(|line| line.strip_prefix("library "));
    let is_there = library.is_some() && peer.program(home).exists();
    ensure!(is_there, "{name} is not installed in {}: cargo xtask peers {name}", folder.display());
    Ok(library.unwrap_or_default().to_owned())
}

/// Starts the program that an order asks for, and returns when it has come up and waits without using its processors.
fn start(order: &Order, home: &Path) -> anyhow::Result<Running> {
    version(order.peer, home)?;
    let what = format!("{} ({}): {}", order.peer.name(), order.setting.name, order.case);
    Running::start(order.command(home), what, order.ranks, Limits::USUAL)
}

/// Starts our own ranks of which two exchange messages; they are spoken to in the same way.
fn start_oversubscribed(mode: SendMode, rounds: u64, processors: &[usize]) -> anyhow::Result<Running> {
    let bound: Vec<usize> =
        (0..oversubscription::RANKS).map(|rank| processors[rank % processors.len()]).collect();
    let command = ProcessRole::Oversubscribed(mode, rounds).job(oversubscription::RANKS, &bound)?;
    Running::start(
        command,
        format!("tasuki: {} ranks, oversubscribed", oversubscription::RANKS),
        oversubscription::RANKS,
        Limits::USUAL,
    )
}

/// A command as one would type it, with the variables that it sets.
fn line_of(command: &Command) -> String {
    let assigned = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())));
    let words = [command.get_program()].into_iter().chain(command.get_args());
    assigned.chain(words.map(|word| word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::buffer_state::State;

    #[test]
    fn a_peer_that_is_absent_says_how_to_install_it() {
        let folder = tempfile::tempdir().unwrap();
        let told = version(Peer::Mpich, folder.path()).unwrap_err().to_string();
        assert!(told.ends_with("cargo xtask peers mpich"), "{told}");
    }

    /// An executable script. The shell writes it: while this process has it open for writing, a child that another
    /// test starts at that moment has, too, and then nobody can execute it.
    pub(crate) fn script(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"printf '%s' "$1" > "$2" && chmod +x "$2""#, "sh", text]).arg(path);
        assert!(shell.status().unwrap().success());
    }

    /// A library whose launcher starts one rank and whose program answers as many ranks and bytes as it was told.
    fn fake_installation(home: &Path) {
        script(&home.join("mpich/bin/mpiexec"), "#!/bin/sh\nexport RANKS=$2; shift 2; exec \"$@\"");
        let program = r#"#!/bin/sh
            echo "{\"ready\":\"$1\"}"
            while read word bytes rest && [ $word = go ]; do
                echo "{\"ranks\":$RANKS,\"bytes\":$bytes,\"value\":7}"
            done"#;
        script(&Peer::Mpich.program(home), program);
        std::fs::write(home.join("mpich/stamp"), "wanted x\nlibrary mpich 5.0.2\nprogram 0\n").unwrap();
    }

    #[test]
    fn what_is_installed_is_started_and_measured() {
        let folder = tempfile::tempdir().unwrap();
        fake_installation(folder.path());
        assert_eq!(version(Peer::Mpich, folder.path()).unwrap(), "mpich 5.0.2");
        for setting in Peer::Mpich.settings() {
            for &by in Peer::Mpich.ways("bandwidth_job") {
                let (case, state) = ("bandwidth_job", State { cold: true, fresh: false });
                let (ranks, bytes, processors) = (2, 65536, vec![0, 1]);
                let order = Order { peer: Peer::Mpich, setting, case, by, ranks, bytes, processors };
                let mut program = start(&order, folder.path()).unwrap();
                assert_eq!(program.repetition(4096, state).unwrap(), 7.0);
                program.end().unwrap();
            }
        }
    }

    #[test]
    fn home_is_below_the_target_folder() {
        assert!(home().unwrap().ends_with("peers"));
    }
}
