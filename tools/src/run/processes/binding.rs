//! The processor that each rank's process runs on.
//!
//! Ranks are bound only on request. All threads of a program inherit its mask, and OpenMP, rayon
//! and others count the processors in it: a rank bound to one processor would run all its threads
//! there.

use crate::run::options::Way;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::str::FromStr;
use tasuki_command::misuse;

/// What `--bind` asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bind {
    /// The system chooses.
    Free,
    /// Each rank on one processor, in turn.
    Core,
    /// Each rank on the processor named.
    List(Vec<usize>),
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Bind, String> {
        match text {
            "none" => Ok(Bind::Free),
            "core" => Ok(Bind::Core),
            list => {
                let numbers: Result<Vec<usize>, _> = list.split(',').map(str::parse).collect();
                numbers
                    .map(Bind::List)
                    .map_err(|_| "give none, core, or the processor of each rank, as in 0,1,0".into())
            }
        }
    }
}

/// The processor of each rank, or nothing if ranks are not bound. `allowed` are the processors of
/// the affinity mask.
pub(crate) fn place(
    bind: Option<&Bind>,
    ranks: usize,
    way: Way,
    allowed: &[usize],
) -> anyhow::Result<Vec<usize>> {
    if way != Way::Processes {
        return match bind {
            None | Some(Bind::Free) => Ok(Vec::new()),
            _ => Err(misuse("--bind binds processes, and here all ranks are threads of one")),
        };
    }
    match bind {
        None | Some(Bind::Free) => Ok(Vec::new()),
        Some(Bind::Core) => Ok((0..ranks).map(|rank| allowed[rank % allowed.len()]).collect()),
        Some(Bind::List(list)) => listed(list, ranks, allowed),
    }
}

/// The error with which the system refuses to bind a thread to these processors, if it does. Tries
/// it on the calling thread and restores that thread's mask.
pub(crate) fn refusal(processors: &[usize]) -> Option<Errno> {
    if processors.is_empty() {
        return None;
    }
    let attempt = || {
        let own = sched_getaffinity(None)?;
        let distinct: BTreeSet<usize> = processors.iter().copied().collect();
        let outcome =
            distinct.into_iter().try_for_each(|processor| sched_setaffinity(None, &only(processor)));
        sched_setaffinity(None, &own)?;
        outcome
    };
    attempt().err()
}

/// A mask of one processor.
pub(crate) fn only(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}

fn listed(list: &[usize], ranks: usize, allowed: &[usize]) -> anyhow::Result<Vec<usize>> {
    if list.len() != ranks {
        return Err(misuse(format!(
            "--bind names {} processors, but there are {ranks} ranks: name one for each",
            list.len()
        )));
    }
    if let Some(wrong) = list.iter().find(|processor| !allowed.contains(processor)) {
        let all: Vec<String> = allowed.iter().map(usize::to_string).collect();
        return Err(misuse(format!(
            "--bind: processor {wrong} is none of those allowed here: {}",
            all.join(",")
        )));
    }
    Ok(list.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(bind: Option<&str>, ranks: usize, allowed: &[usize]) -> anyhow::Result<Vec<usize>> {
        let bind = bind.map(|text| text.parse::<Bind>().unwrap());
        place(bind.as_ref(), ranks, Way::Processes, allowed)
    }

    #[test]
    fn ranks_are_not_bound_by_default() {
        for ranks in [1, 2, 4] {
            assert!(placed(None, ranks, &[3, 5]).unwrap().is_empty(), "{ranks} ranks");
        }
    }

    #[test]
    fn core_goes_round_and_none_binds_nobody() {
        assert_eq!(placed(Some("core"), 3, &[3, 5]).unwrap(), [3, 5, 3]);
        assert!(placed(Some("none"), 2, &[3, 5]).unwrap().is_empty());
    }

    #[test]
    fn a_refusal_is_found_and_leaves_the_mask_as_it_was() {
        let allowed = tasuki_core::os::affinity::allowed();
        assert_eq!(refusal(&[]), None);
        assert_eq!(refusal(&[allowed[0]]), None);
        assert_eq!(tasuki_core::os::affinity::allowed(), allowed);
        assert_eq!(refusal(&[allowed[0], CpuSet::MAX_CPU - 1]), Some(Errno::INVAL), "no such processor");
        assert_eq!(tasuki_core::os::affinity::allowed(), allowed);
    }

    #[test]
    fn lists_must_fit() {
        assert_eq!(placed(Some("1,0,1"), 3, &[0, 1]).unwrap(), [1, 0, 1]);
        assert!(placed(Some("1,0"), 3, &[0, 1]).unwrap_err().to_string().contains("2 processors"));
        let wrong = placed(Some("0,7"), 2, &[0, 1]).unwrap_err().to_string();
        assert_eq!(wrong, "--bind: processor 7 is none of those allowed here: 0,1");
        assert!(
            "0,x".parse::<Bind>().is_err() && "".parse::<Bind>().is_err() && "-1".parse::<Bind>().is_err()
        );
    }

    #[test]
    fn threads_cannot_be_bound() {
        assert!(place(Some(&Bind::Core), 2, Way::Threads, &[0, 1]).is_err());
        assert!(place(None, 2, Way::Threads, &[0, 1]).unwrap().is_empty());
    }
}
