//! Programs that something else than `tasuki run` started several times: each copy would be a job of one, and
//! nobody would notice. So it is an error.

use super::variables::Environment;
use crate::base::{Cause, Result};

/// What other launchers set, each with what must hold for there to be several processes.
const SIGNS: &[(&str, &str, Option<&str>)] = &[
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpiexec", None),
    ("SLURM_STEP_NUM_TASKS", "srun", None),
    ("PMI_SIZE", "an mpiexec that speaks PMI", Some("PMI_FD")),
];

/// An error if this process is one of several that another launcher started.
pub fn refuse(environment: &Environment) -> Result<()> {
    for &(variable, launcher, also) in SIGNS {
        let count = environment.get(variable).and_then(|value| value.parse::<u64>().ok()).unwrap_or(1);
        if count > 1 && also.is_none_or(|also| environment.get(also).is_some()) {
            return Err(Cause::Join(format!(
                "{launcher} started {count} copies of this program ({variable}={count}), which Tasuki cannot join to \
                 one job yet: start it with `tasuki run -n {count} PROGRAM`. All ranks run on one host for now."
            ))
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pairs: &[(&str, &str)]) -> bool {
        refuse(&pairs.iter().copied().collect()).is_err()
    }

    #[test]
    fn several_copies_by_another_launcher_are_refused() {
        assert!(refused(&[("OMPI_COMM_WORLD_SIZE", "2")]));
        assert!(refused(&[("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(refused(&[("PMI_FD", "7"), ("PMI_SIZE", "2")]));
        let error = refuse(&[("OMPI_COMM_WORLD_SIZE", "3")].into_iter().collect()).unwrap_err().to_string();
        assert!(error.contains("`tasuki run -n 3 PROGRAM`") && error.contains("Open MPI"), "{error}");
    }

    #[test]
    fn one_copy_and_no_launcher_pass() {
        assert!(!refused(&[("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "1")]));
        assert!(!refused(&[("PMI_SIZE", "2")]), "without PMI_FD it is somebody's left-over");
        assert!(!refused(&[]));
    }
}
