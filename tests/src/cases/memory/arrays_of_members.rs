//! Memory with a part on each member of a communicator.

use crate::expected_error::refused;
use tasuki::collective::Split;
use tasuki::{ErrorKind, Job, Member, Rank, Result};

/// Each half of the ranks, in reversed order, has memory of its own. Members and ranks name its parts, and others have
/// no part.
pub fn parts_belong_to_members(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().0, job.size());
    let _other_offsets = if me % 3 == 0 { Some(job.alloc_local::<u8>(100_000)?) } else { None };
    let half = job.world().split(Split::colour(me % 2).key(-(me as isize)))?;
    let members = half.members();
    for count in [1, 1000] {
        let table = job.alloc_on::<usize>(&half, count)?;
        assert_eq!((table.len(), table.to_vec()?), (count, vec![0; count]));
        half.barrier()?;
        for member in members {
            let part = table.on(member).at(count - 1);
            assert_eq!(Some(part.rank()), members.rank_of(member));
            job.fetch_add(part.cast::<u64>(), 1 + me as u64)?;
        }
        half.barrier()?;
        let sum: usize = (0..size).filter(|rank| rank % 2 == me % 2).map(|rank| rank + 1).sum();
        assert_eq!(table.get(count - 1)?, sum);
        assert_eq!(table.on(half.rank()), table.pointer());
        for rank in job.ranks() {
            let part = table.on(rank);
            assert_eq!(part.is_null(), rank.0 % 2 != me % 2);
            assert!(part.is_null() || part.rank() == rank);
        }
        for nobody in [table.on(Member(half.size())), table.on(None::<Member>), table.on(None::<Rank>)] {
            assert!(nobody.is_null() && nobody.at(3).is_null());
            refused(job, job.get_value(nobody), ErrorKind::Misuse, &["null"]);
        }
        half.barrier()?;
    }
    job.barrier()
}

/// Members that disagree, or of which one has no room, all get an error, and the communicator goes on.
pub fn members_that_disagree_allocate_nothing(job: &Job) -> Result<()> {
    let (dup, is_first) = (job.world().dup()?, job.rank() == 0);
    let before = job.memory().local;
    let differ = job.alloc_on::<u64>(&dup, if is_first { 10 } else { 20 });
    if job.size() > 1 {
        refused(job, differ, ErrorKind::Disagreement, &["alloc_on(", "dup", "10", "20"]);
    } else {
        drop(differ);
    }
    let no_room = job.alloc_on::<u64>(&dup, if is_first { 1 << 50 } else { 20 });
    let kind = if is_first || job.size() == 1 { ErrorKind::NoMemory } else { ErrorKind::Disagreement };
    refused(job, no_room, kind, &["alloc_on("]);
    refused(job, job.alloc_on::<u64>(&dup, 1 << 50), ErrorKind::NoMemory, &["alloc_on("]);
    assert_eq!(job.memory().local, before, "what was allocated was freed");
    let table = job.alloc_on::<u64>(&dup, 5)?;
    job.put(table.on(dup.members().after(1)), &[3; 5])?;
    dup.barrier()?;
    assert_eq!(table.to_vec()?, [3; 5]);
    dup.barrier()
}
