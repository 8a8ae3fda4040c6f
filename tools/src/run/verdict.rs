//! The exit code of a job, and where it comes from.

use super::process::Process;
use tasuki_core::os::child_status::Exit;

/// The source of the job's exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// This code.
    Code(u8),
    /// The exit code of a process that has reported its failure and still runs; the second value if
    /// it exits without one.
    OfProcess(usize, u8),
}

impl Verdict {
    /// The code, once all have ended.
    pub(super) fn code(self, processes: &[Process]) -> u8 {
        match self {
            Verdict::Code(code) => code,
            Verdict::OfProcess(index, otherwise) => match processes[index].exit {
                // Success, and the signals that the launcher sends, do not describe the failure.
                None | Some(Exit::Code(0) | Exit::Signal { number: 9 | 15, .. }) => otherwise,
                Some(exit) => exit_code(exit),
            },
        }
    }
}

/// The exit code for an end, as shells define it.
pub(super) fn exit_code(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => code as u8,
        Exit::Signal { number, .. } => 128_u8.wrapping_add(number as u8),
    }
}
