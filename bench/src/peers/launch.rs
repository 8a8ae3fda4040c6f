//! How each peer is started: its program, the settings that are tried and the environment, each with its reason.

use crate::result::library::Library;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One way to start a peer. Each setting is tried for each number of ranks, and the best counts, because it is not
/// known beforehand which setting suits a library on this machine.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    /// The name that rows show.
    pub(crate) name: &'static str,
    /// True if each rank is bound to the processor to which the rank of Tasuki's job is bound. The program itself does
    /// that, because each launcher numbers processors, cores and threads in a different way; the launcher binds
    /// nothing.
    bound: bool,
    environment: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
}

const MPICH: &[Setting] = &[
    // MPICH does not bind ranks unless an option asks for it.
    Setting { name: "bound", bound: true, environment: &[], arguments: &[] },
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
];

const OPENMPI: &[Setting] = &[
    Setting { name: "bound", bound: true, environment: &[], arguments: &["--bind-to", "none"] },
    // Open MPI binds each of two ranks to a core; more than two ranks it binds to a NUMA domain.
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
    Setting { name: "unbound", bound: false, environment: &[], arguments: &["--bind-to", "none"] },
];

const INTEL: &[Setting] = &[
    Setting { name: "bound", bound: true, environment: &[("I_MPI_PIN", "0")], arguments: &[] },
    // Intel MPI binds ranks itself. That suits two ranks, but a barrier of four ranks on two processors takes 19 us.
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
    // The same barrier takes 5 us if the kernel may move the ranks.
    Setting { name: "I_MPI_PIN=0", bound: false, environment: &[("I_MPI_PIN", "0")], arguments: &[] },
    // It takes 4 us if a rank that waits yields its processor.
    Setting {
        name: "I_MPI_WAIT_MODE=1",
        bound: false,
        environment: &[("I_MPI_WAIT_MODE", "1")],
        arguments: &[],
    },
];

const UCX: &[Setting] = &[
    Setting { name: "bound", bound: true, environment: &[], arguments: &[] },
    // Without this setting it also polls every network, including TCP, between two polls of shared memory.
    Setting {
        name: "bound UCX_TLS=shm",
        bound: true,
        environment: &[("UCX_TLS", "posix,sysv,cma,self")],
        arguments: &[],
    },
    Setting { name: "default", bound: false, environment: &[], arguments: &[] },
];

/// Prefixes of the libraries' variables. A user may have set such variables for other programs; they would change the
/// figures without notice.
const OWN_PREFIXES: &[&str] =
    &["FI_", "HYDRA_", "I_MPI_", "MPICH_", "MPIR_", "OMPI_", "OPAL_", "PMIX_", "PRTE_", "UCX_"];

impl Library {
    /// Returns the settings to try.
    pub(crate) fn settings(self) -> &'static [Setting] {
        match self {
            Library::Mpich => MPICH,
            Library::Openmpi => OPENMPI,
            Library::Intel => INTEL,
            _ => UCX,
        }
    }

    /// Returns true if the library can run a case with this many ranks. UCP has no collectives, and its program has two
    /// ranks; MPI has no handlers.
    pub(crate) fn plays(self, case: &str, ranks: usize) -> bool {
        match case {
            "handler" => self == Library::Ucx && ranks == 2,
            // With Intel MPI (2021.18), the values of other ranks are now and then those of the previous start.
            "allgather_init" if self == Library::Intel => false,
            _ if FOR_TWO.contains(&case) => ranks == 2,
            _ => self != Library::Ucx,
        }
    }

    /// Returns the calls that the library may use for a case; the best of them counts. `None` is the usual call, the
    /// others are passed to the program with `--by`.
    pub(crate) fn ways(self, case: &str) -> &'static [Option<&'static str>] {
        match case {
            // A put with a notification instead of a message.
            "bandwidth_job" => &[None, Some("put")],
            // Sends by the call that returns when the value may be overwritten.
            "rate" | "channel" => &[None, Some("send")],
            // Receives that are begun before their messages come, 64 at a time.
            name if name.starts_with("incast") || name.starts_with("flood") => &[None, Some("window")],
            // Tests for completion, also between pieces of work, instead of one wait after the work.
            "fuzzy" | "fuzzy_hidden" => &[None, Some("test")],
            // Receives by the call that returns with the message. UCX has none.
            "message" | "anysource" | "posted" if self != Library::Ucx => &[None, Some("recv")],
            _ => &[None],
        }
    }

    /// Returns the path of the library's program below the folder of all peers.
    pub(crate) fn program(self, home: &Path) -> PathBuf {
        let name = if self == Library::Ucx { "peer_ucx" } else { "peer_mpi" };
        home.join(self.name()).join("bin").join(name)
    }

    /// Returns the command that starts `ranks` ranks of the library on `processors` processors; it does not say which
    /// processors these are. The caller appends the name of the program.
    fn launcher(self, home: &Path, ranks: usize, processors: usize) -> Option<Command> {
        let mut command = Command::new(home.join(self.name()).join("bin/mpiexec"));
        match self {
            // The program is both of its ranks.
            Library::Ucx => return None,
            Library::Openmpi => {
                // Without both variables it refuses to be started by root, which is the usual user in a container.
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                // Its Python wheel has a component for puts over UCX that prints a warning at each start, and is not
                // used on one node.
                command.env("OMPI_MCA_osc", "^ucx");
                if ranks > processors {
                    command.arg("--oversubscribe");
                }
            }
            Library::Intel => {
                // The launcher finds its files with this variable.
                command.env("I_MPI_ROOT", home.join(self.name()));
            }
            _ => {}
        }
        command.args(["-n", &ranks.to_string()]);
        Some(command)
    }
}

/// Cases for two ranks that all peers run. `post_gap` is the variant of `posted`.
const FOR_TWO: &[&str] = &[
    "message",
    "anysource",
    "posted",
    "post_gap",
    "rate",
    "channel",
    "bandwidth_job",
    "bandwidth_own",
    "bandwidth_stream",
];

/// What one program is to measure.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The library.
    pub(crate) peer: Library,
    /// How the program is started.
    pub(crate) setting: &'static Setting,
    /// The case, by the name that the program uses.
    pub(crate) case: &'static str,
    /// One of the peer's [`ways`](Library::ways).
    pub(crate) by: Option<&'static str>,
    /// The number of ranks.
    pub(crate) ranks: usize,
    /// Bytes of a message, or of the largest block that the program will be asked for.
    pub(crate) bytes: u64,
    /// The number of messages, if it differs from that of usual runs.
    pub(crate) iterations: Option<u64>,
    /// All available processors. Ranks that are bound are bound to them in turn.
    pub(crate) processors: Vec<usize>,
}

impl Order {
    /// Returns the command that starts the program. `home` is the folder of all peers.
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

    /// Returns the arguments of the program.
    fn arguments(&self) -> Vec<String> {
        let mut words = vec![self.case.to_owned(), "--on-line".to_owned()];
        words.extend(["--size".to_owned(), self.bytes.to_string()]);
        if let Some(iterations) = self.iterations {
            words.extend(["--iterations".to_owned(), iterations.to_string()]);
        }
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

/// Returns those of the variables that belong to a library.
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
        let order = Order {
            peer,
            setting,
            case: "barrier",
            by: Some("put"),
            ranks,
            bytes: 8,
            iterations: None,
            processors,
        };
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
