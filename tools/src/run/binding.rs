//! QueueKind processor each rank's process runs on.

use super::options::Way;
use std::str::FromStr;
use tasuki_command::misuse;

/// What `--bind` asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bind {
    /// Wherever the system likes.
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

/// The processor of each rank, or nothing where they are free. `allowed` are those that the affinity mask leaves,
/// `usable` is how many of them the container's quota pays for.
///
/// Unasked, ranks are bound only where they fill all processors exactly: otherwise two jobs could share one while
/// another idles.
pub(crate) fn place(
    bind: Option<&Bind>,
    ranks: usize,
    way: Way,
    allowed: &[usize],
    usable: usize,
) -> anyhow::Result<Vec<usize>> {
    if way != Way::Processes {
        return match bind {
            None | Some(Bind::Free) => Ok(Vec::new()),
            _ => Err(misuse("--bind binds processes, and here all ranks are threads of one")),
        };
    }
    match bind {
        Some(Bind::Free) => Ok(Vec::new()),
        Some(Bind::Core) => Ok((0..ranks).map(|rank| allowed[rank % allowed.len()]).collect()),
        Some(Bind::List(list)) => listed(list, ranks, allowed),
        None if ranks == allowed.len() && usable == allowed.len() => Ok(allowed.to_vec()),
        None => Ok(Vec::new()),
    }
}

fn listed(list: &[usize], ranks: usize, allowed: &[usize]) -> anyhow::Result<Vec<usize>> {
    if list.len() != ranks {
        return Err(misuse(format!(
            "--bind names {} processors, and there are {ranks} ranks: name one for each",
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

    fn placed(
        bind: Option<&str>,
        ranks: usize,
        allowed: &[usize],
        usable: usize,
    ) -> anyhow::Result<Vec<usize>> {
        let bind = bind.map(|text| text.parse::<Bind>().unwrap());
        place(bind.as_ref(), ranks, Way::Processes, allowed, usable)
    }

    #[test]
    fn ranks_are_bound_unasked_only_where_they_fill_the_machine() {
        assert_eq!(placed(None, 2, &[3, 5], 2).unwrap(), [3, 5]);
        assert!(placed(None, 1, &[3, 5], 2).unwrap().is_empty());
        assert!(placed(None, 4, &[3, 5], 2).unwrap().is_empty());
        assert!(placed(None, 2, &[3, 5], 1).unwrap().is_empty(), "the quota pays for one of the two");
        assert!(placed(None, 2, &[0, 1, 2, 3], 2).unwrap().is_empty(), "others may be on the other two");
    }

    #[test]
    fn core_goes_round_and_none_binds_nobody() {
        assert_eq!(placed(Some("core"), 3, &[3, 5], 1).unwrap(), [3, 5, 3]);
        assert!(placed(Some("none"), 2, &[3, 5], 2).unwrap().is_empty());
    }

    #[test]
    fn lists_must_fit() {
        assert_eq!(placed(Some("1,0,1"), 3, &[0, 1], 2).unwrap(), [1, 0, 1]);
        assert!(placed(Some("1,0"), 3, &[0, 1], 2).unwrap_err().to_string().contains("2 processors"));
        let wrong = placed(Some("0,7"), 2, &[0, 1], 2).unwrap_err().to_string();
        assert_eq!(wrong, "--bind: processor 7 is none of those allowed here: 0,1");
        assert!(
            "0,x".parse::<Bind>().is_err() && "".parse::<Bind>().is_err() && "-1".parse::<Bind>().is_err()
        );
    }

    #[test]
    fn threads_cannot_be_bound() {
        assert!(place(Some(&Bind::Core), 2, Way::Threads, &[0, 1], 2).is_err());
        assert!(place(None, 2, Way::Threads, &[0, 1], 2).unwrap().is_empty());
    }
}
