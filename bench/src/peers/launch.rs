//! How each peer is started: programs, settings that are tried, environments, each with its reason.

use crate::result::key::Library;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One way to start a peer. Each is tried for each number of ranks, and the best counts: nobody knows beforehand which
/// a library likes on this machine.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    /// As rows show it.
    pub(crate) name: &'static str,
    /// True if each rank is bound to the processor to which the rank of Tasuki's job is bound. The program does that
    /// itself, because each launcher numbers processors, cores and threads in its own way; the launcher binds nothing.
    bound: bool,
    environment: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
}

const MPICH: &[Setting] = &[
    // MPICH binds nothing unless it is asked to.
    Setting { name: "bound", bound: true, environment: &[], arguments: &[] },
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
];

const OPENMPI: &[Setting] = &[
    Setting { name: "bound", bound: true, environment: &[], arguments: &["--bind-to", "none"] },
    // Two ranks are bound to a core each, more to a NUMA domain.
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
    Setting { name: "unbound", bound: false, environment: &[], arguments: &["--bind-to", "none"] },
];

const INTEL: &[Setting] = &[
    Setting { name: "bound", bound: true, environment: &[("I_MPI_PIN", "0")], arguments: &[] },
    // It pins ranks by itself: right for two; four on two processors take 19 us for a barrier so,
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
    // 5 us where the kernel may move them,
    Setting { name: "I_MPI_PIN=0", bound: false, environment: &[("I_MPI_PIN", "0")], arguments: &[] },
    // and 4 where a rank that waits lets the next one have its processor.
    Setting {
        name: "I_MPI_WAIT_MODE=1",
        bound: false,
        environment: &[("I_MPI_WAIT_MODE", "1")],
        arguments: &[],
    },
];

const UCX: &[Setting] = &[
    Setting { name: "bound", bound: true, environment: &[], arguments: &[] },
    // By itself it also looks for messages on each network there is, TCP among them, between two looks at memory.
    Setting {
        name: "bound UCX_TLS=shm",
        bound: true,
        environment: &[("UCX_TLS", "posix,sysv,cma,self")],
        arguments: &[],
    },
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
];

/// Variables of the libraries, which somebody may have set for other programs: they would change figures unseen.
const OWN_PREFIXES: &[&str] =
    &["FI_", "HYDRA_", "I_MPI_", "MPICH_", "MPIR_", "OMPI_", "OPAL_", "PMIX_", "PRTE_", "UCX_"];

impl Library {
    /// What to try.
    pub(crate) fn settings(self) -> &'static [Setting] {
        match self {
            Library::Mpich => MPICH,
            Library::Openmpi => OPENMPI,
            Library::Intel => INTEL,
            _ => UCX,
        }
    }

    /// Returns true if it can play a case with that many ranks. UCP has no collectives, and its program has two ranks;
    /// MPI has no handlers.
    pub(crate) fn plays(self, case: &str, ranks: usize) -> bool {
        match case {
            "handler" => self == Library::Ucx && ranks == 2,
            // Intel's (2021.18) now and then leaves other ranks' values of the start before.
            "allgather_init" if self == Library::Intel => false,
            _ if FOR_TWO.contains(&case) => ranks == 2,
            _ => self != Library::Ucx,
        }
    }

    /// The calls by which it may play a case, of which the best counts: the usual one, and those that the program is
    /// told by `--by`.
    pub(crate) fn ways(self, case: &str) -> &'static [Option<&'static str>] {
        match case {
            // A put with a notification instead of a message.
            "bandwidth_job" => &[None, Some("put")],
            // Sends by the call that returns when the value may be overwritten.
            "rate" => &[None, Some("send")],
            // Looks, also between pieces of work, instead of one wait behind it.
            "fuzzy" | "fuzzy_hidden" => &[None, Some("test")],
            // Receives by the call that returns with the message. UCX has none.
            "message" | "posted" if self != Library::Ucx => &[None, Some("recv")],
            _ => &[None],
        }
    }

    /// Its program below the folder of all peers.
    pub(crate) fn program(self, home: &Path) -> PathBuf {
        let name = if self == Library::Ucx { "peer_ucx" } else { "peer_mpi" };
        home.join(self.name()).join("bin").join(name)
    }

    /// What starts `ranks` ranks of it, on which `processors` processors whoever they are; the program's name follows.
    fn launcher(self, home: &Path, ranks: usize, processors: usize) -> Option<Command> {
        let mut command = Command::new(home.join(self.name()).join("bin/mpiexec"));
        match self {
            // The program is both of its ranks.
            Library::Ucx => return None,
            Library::Openmpi => {
                // It refuses to be started by root, as in a container, without both.
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                // Its wheel has a part for puts over UCX that complains on each start, and does nothing on one node.
                command.env("OMPI_MCA_osc", "^ucx");
                if ranks > processors {
                    command.arg("--oversubscribe");
                }
            }
            Library::Intel => {
                // Its launcher finds its parts by this.
                command.env("I_MPI_ROOT", home.join(self.name()));
            }
            _ => {}
        }
        command.args(["-n", &ranks.to_string()]);
        Some(command)
    }
}

/// Cases for two ranks that all play. `post_gap` is the variant of `posted`.
const FOR_TWO: &[&str] =
    &["message", "posted", "post_gap", "rate", "bandwidth_job", "bandwidth_own", "bandwidth_stream"];

/// What one program is to measure.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Which library,
    pub(crate) peer: Library,
    /// started how.
    pub(crate) setting: &'static Setting,
    /// The case as the program calls it,
    pub(crate) case: &'static str,
    /// and one of the peer's [`ways`](Library::ways).
    pub(crate) by: Option<&'static str>,
    /// How many ranks.
    pub(crate) ranks: usize,
    /// Bytes of a message, or of the largest block that it will be asked for.
    pub(crate) bytes: u64,
    /// The processors that there are; ranks that are bound go to them in turn.
    pub(crate) processors: Vec<usize>,
}

impl Order {
    /// The command that starts the program, `home` being the folder of all peers.
    pub(super) fn command(&self, home: &Path) -> Command {
        let program = self.peer.program(home);
        let mut command = match self.peer.launcher(home, self.ranks, self.processors.len()) {
            Some(mut launcher) => {
                launcher.args(self.setting.arguments).arg(program);
                launcher
            }
            None => Command::new(program),
        };
        for name in foreign(std::env::vars_os().map(|(name, _)| name)) {
            if !command.get_envs().any(|(own, _)| own == name) {
                command.env_remove(name);
            }
        }
        command.envs(self.setting.environment.iter().copied()).args(self.arguments());
        command
    }

    /// What the program is told.
    fn arguments(&self) -> Vec<String> {
        let mut words = vec![self.case.to_owned(), "--on-line".to_owned()];
        words.extend(["--size".to_owned(), self.bytes.to_string()]);
        if let Some(by) = self.by {
            words.extend(["--by".to_owned(), by.to_owned()]);
        }
        if self.setting.bound {
            let list: Vec<String> = self.processors.iter().map(ToString::to_string).collect();
            words.extend(["--processors".to_owned(), list.join(",")]);
        }
        words
    }
}

/// Those variables that are a library's own.
fn foreign(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_own = |name: &OsString| {
        OWN_PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
    };
    names.filter(is_own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::program::line_of;

    fn line(peer: Library, setting: usize, ranks: usize) -> String {
        let (setting, processors) = (&peer.settings()[setting], vec![3, 5]);
        let order = Order { peer, setting, case: "barrier", by: Some("put"), ranks, bytes: 8, processors };
        line_of(&order.command(Path::new("h")))
    }

    #[test]
    fn launch_lines_are_those_that_each_library_needs() {
        let options = "barrier --on-line --size 8 --by put";
        assert_eq!(
            line(Library::Mpich, 1, 4),
            format!("h/mpich/bin/mpiexec -n 4 h/mpich/bin/peer_mpi {options}")
        );
        let openmpi = line(Library::Openmpi, 2, 4);
        assert!(openmpi.contains("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"), "{openmpi}");
        assert!(openmpi.contains("mpiexec --oversubscribe -n 4 --bind-to none h/openmpi/bin/peer_mpi"));
        assert!(!line(Library::Openmpi, 0, 2).contains("--oversubscribe"));
        let intel = line(Library::Intel, 3, 4);
        assert!(intel.contains("I_MPI_ROOT=h/intel") && intel.contains("I_MPI_WAIT_MODE=1"), "{intel}");
        assert_eq!(line(Library::Ucx, 0, 2), format!("h/ucx/bin/peer_ucx {options} --processors 3,5"));
        let names = ["I_MPI_PIN", "PATH", "OMPI_MCA_btl", "UCX_TLS", "HOME"].map(OsString::from);
        assert_eq!(foreign(names.into_iter()), ["I_MPI_PIN", "OMPI_MCA_btl", "UCX_TLS"]);
    }
}
