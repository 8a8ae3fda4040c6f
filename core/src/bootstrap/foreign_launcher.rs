//! Detects programs that another launcher than `tasuki run` started. If the launcher speaks PMI-1, its processes become
//! the ranks of one job. With any other launcher each copy would silently be a job of one, so that is an error.

use super::environment_variables::Environment;
use super::settings::{Managed, SIZE_MAX};
use crate::base::{Cause, Rank, Result};

/// The descriptor of the process manager.
const PMI_FD: &str = "PMI_FD";
/// This process's rank.
const PMI_RANK: &str = "PMI_RANK";
/// The number of ranks.
const PMI_SIZE: &str = "PMI_SIZE";
/// The address of a process manager that listens on a port: MPICH's `mpiexec -pmi-port`.
const PMI_PORT: &str = "PMI_PORT";

/// Variables that unsupported launchers set to the number of copies, and the launcher's name.
const COPY_COUNTS: &[(&str, &str)] =
    &[("OMPI_COMM_WORLD_SIZE", "Open MPI's mpiexec"), ("SLURM_STEP_NUM_TASKS", "srun")];

/// Variables that unsupported launchers set to the index of each copy, from 0. These launchers do not always give the
/// number of copies. The index 0 may be the only copy, as in the shell of an allocation (`salloc`, `sbatch`) or under
/// `srun -n 1`.
const COPY_INDICES: &[(&str, &str)] = &[
    ("PMIX_RANK", "a launcher that speaks PMIx"),
    ("SLURM_PROCID", "srun"),
    ("FLUX_TASK_RANK", "flux run"),
    ("PALS_RANKID", "mpiexec of HPE Cray PALS"),
];

/// Returns the settings from a launcher that speaks PMI-1, if this process is one of several.
pub fn managed(environment: &Environment) -> Result<Option<Managed>> {
    let Some(descriptor) = environment.get(PMI_FD) else { return Ok(None) };
    let number = |name: &str, least: usize, most: usize| {
        let value = environment.get(name);
        let right = value.and_then(|value| value.parse().ok()).filter(|n| (least..=most).contains(n));
        right.ok_or_else(|| {
            let is = value.map_or_else(|| "is not set".to_string(), |value| format!("is {value:?}"));
            Cause::Join(format!(
                "{PMI_FD} is set ({descriptor}), but {name} {is}, which should be a number from {least} to {most}: \
                 mpiexec sets {PMI_FD}, {PMI_RANK} and {PMI_SIZE} for the ranks that it starts; unset them to run a \
                 job of one"
            ))
        })
    };
    let size = number(PMI_SIZE, 1, SIZE_MAX)?;
    if size == 1 {
        return Ok(None); // a job of one needs no process manager
    }
    let rank = Rank(number(PMI_RANK, 0, size - 1)?);
    let descriptor = number(PMI_FD, 0, i32::MAX as usize)? as i32;
    Ok(Some(Managed { rank, size, descriptor }))
}

/// Returns an error if this process is one of several that an unsupported launcher started.
pub fn refuse(environment: &Environment) -> Result<()> {
    if environment.get(PMI_PORT).is_some() {
        return Err(Cause::Join(format!(
            "an mpiexec whose process manager listens on a port ({PMI_PORT}) started this program, but Tasuki supports \
             only the connection that {PMI_FD} names: omit `-pmi-port`, or use `tasuki run -n N PROGRAM`"
        ))
        .into());
    }
    let number = |variable: &str| environment.get(variable).and_then(|value| value.parse::<u64>().ok());
    for &(variable, launcher) in COPY_COUNTS {
        let count = number(variable).unwrap_or(1);
        if count > 1 {
            return Err(Cause::Join(format!(
                "{launcher} started {count} copies of this program ({variable}={count}), but Tasuki cannot join copies \
                 that it started to one job: start it with `tasuki run -n {count} PROGRAM`, or with the mpiexec \
                 of MPICH or Intel MPI. All ranks run on one host for now."
            ))
            .into());
        }
    }
    for &(variable, launcher) in COPY_INDICES {
        let index = number(variable).unwrap_or(0);
        if index > 0 {
            return Err(Cause::Join(format!(
                "{launcher} started several copies of this program (this one has {variable}={index}), but Tasuki \
                 cannot join copies that it started to one job, so each would be a job of one: start it with \
                 `tasuki run -n N PROGRAM`, or with the mpiexec of MPICH or Intel MPI. All ranks run on one host for \
                 now. If this copy is meant to be a job of its own, unset {variable}."
            ))
            .into());
        }
    }
    Ok(())
}

/// Returns a warning for a job of one that may be one of several copies: the first one of a launcher that sets its
/// index, 0, and not their number; or any of a launcher that speaks PMI-1, but whose connection is missing.
pub fn one_of_copies(environment: &Environment) -> Option<String> {
    let number = |variable: &str| environment.get(variable).and_then(|value| value.parse::<u64>().ok());
    // With PMI_FD this copy would have joined, or been refused.
    let copies = number(PMI_SIZE).filter(|&size| size > 1 && environment.get(PMI_FD).is_none());
    if let Some(copies) = copies {
        return Some(format!(
            "this is a job of one rank, although {PMI_SIZE}={copies} may mean that a launcher started {copies} copies: \
             {PMI_FD}, which names the connection to the process manager, is not set; to start a job of {copies} ranks \
             use `tasuki run -n {copies} PROGRAM`, or the mpiexec of MPICH or Intel MPI; unset {PMI_SIZE} to silence \
             this warning"
        ));
    }
    let mut counts = COPY_COUNTS.iter().map(|(variable, _)| *variable).chain([PMI_SIZE]);
    let has_count = counts.any(|variable| environment.get(variable).is_some());
    let (variable, launcher) =
        COPY_INDICES.iter().find(|(variable, _)| environment.get(variable) == Some("0"))?;
    (!has_count).then(|| {
        format!(
            "this is a job of one rank, although {variable}=0 may mean that {launcher} started several copies: to start \
             a job of several ranks use `tasuki run -n N PROGRAM`, or the mpiexec of MPICH or Intel MPI; unset {variable} \
             to silence this warning"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pairs: &[(&str, &str)]) -> bool {
        refuse(&pairs.iter().copied().collect()).is_err()
    }

    fn managed_by(pairs: &[(&str, &str)]) -> Result<Option<Managed>> {
        managed(&pairs.iter().copied().collect())
    }

    #[test]
    fn several_copies_by_another_launcher_are_refused() {
        assert!(refused(&[("OMPI_COMM_WORLD_SIZE", "2")]));
        assert!(refused(&[("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(refused(&[("PMI_PORT", "host:4711"), ("PMI_ID", "0")]));
        let error = refuse(&[("OMPI_COMM_WORLD_SIZE", "3")].into_iter().collect()).unwrap_err().to_string();
        assert!(error.contains("`tasuki run -n 3 PROGRAM`") && error.contains("Open MPI"), "{error}");
    }

    #[test]
    fn a_copy_with_an_index_above_0_is_refused() {
        for variable in ["PMIX_RANK", "SLURM_PROCID", "FLUX_TASK_RANK", "PALS_RANKID"] {
            assert!(refused(&[(variable, "1")]), "{variable}");
            assert!(!refused(&[(variable, "0")]), "{variable}: it may be the only one");
            assert!(!refused(&[(variable, "")]) && !refused(&[(variable, "-1")]), "{variable}");
        }
        let error = refuse(&[("PMIX_RANK", "3")].into_iter().collect()).unwrap_err().to_string();
        assert!(error.contains("PMIX_RANK=3") && error.contains("`tasuki run -n N PROGRAM`"), "{error}");
        assert!(error.contains("unset PMIX_RANK"), "{error}");
    }

    #[test]
    fn shells_of_allocations_and_steps_of_one_task_are_accepted() {
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")];
        assert!(!refused(&batch));
        assert!(!refused(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "4")]));
        assert!(refused(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(refused(&[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")]));
    }

    #[test]
    fn the_first_of_perhaps_several_copies_is_warned() {
        let warned = |pairs: &[(&str, &str)]| one_of_copies(&pairs.iter().copied().collect()).is_some();
        assert!(warned(&[("PMIX_RANK", "0")]) && warned(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]));
        assert!(!warned(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]), "it is the only copy");
        assert!(!warned(&[("PMIX_RANK", "0"), ("PMI_SIZE", "1")]), "so is this one");
        assert!(!warned(&[]));
    }

    #[test]
    fn a_copy_of_several_without_a_connection_is_warned() {
        let warning = |pairs: &[(&str, &str)]| one_of_copies(&pairs.iter().copied().collect());
        for rank in ["0", "1"] {
            let said = warning(&[("PMI_RANK", rank), ("PMI_SIZE", "2")]).expect("a warning");
            assert!(
                said.contains("PMI_SIZE=2") && said.contains("PMI_FD") && said.contains("unset"),
                "{said}"
            );
        }
        assert_eq!(warning(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        assert_eq!(warning(&[("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]), None);
    }

    #[test]
    fn one_copy_or_no_launcher_is_accepted() {
        assert!(!refused(&[("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "1")]));
        assert!(!refused(&[("PMI_SIZE", "2")]), "without PMI_FD no process manager is there");
        assert!(!refused(&[]));
    }

    #[test]
    fn rank_and_size_are_read_from_the_variables_of_pmi() {
        let all = [("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        assert_eq!(managed_by(&all).unwrap(), Some(Managed { rank: Rank(1), size: 2, descriptor: 9 }));
        assert_eq!(managed_by(&all[1..]).unwrap(), None);
        assert_eq!(managed_by(&[("PMI_FD", "9"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]).unwrap(), None);
        for (at, wrong) in [(0, "-3"), (0, "nine"), (1, "2"), (1, ""), (2, "0"), (2, "99999999999")] {
            let mut pairs = all;
            pairs[at].1 = wrong;
            let error = managed_by(&pairs).unwrap_err().to_string();
            assert!(error.contains(pairs[at].0) && error.contains("unset them"), "{error}");
        }
    }
}
