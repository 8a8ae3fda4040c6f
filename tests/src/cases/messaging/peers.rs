//! G13: whom the calls of a communicator mean: a member by its number, a rank of the job, or nobody.

use crate::exchange::is_simulated;
use crate::expected_error::misused;
use std::time::Duration;
use tasuki::collective::Max;
use tasuki::engine::Cause;
use tasuki::message::{Peer, close, recv_into, send_from};
use tasuki::{
    Blocks, Communicator, ErrorKind, Job, Member, Rank, Received, Request, Result, Slot, Sum, Uneven,
};

/// Communicators of all ranks or of a part of them, in the order of the job, in reverse order and shuffled, each with
/// the ranks of its members.
fn communicators(job: &Job) -> Result<Vec<(Communicator, Vec<Rank>)>> {
    let shuffled = |rank: Rank| (rank.0 * 5 + 3) as isize % 11;
    let orders: [&dyn Fn(Rank) -> isize; 3] =
        [&|rank| rank.0 as isize, &|rank| -(rank.0 as isize), &shuffled];
    let mut made = Vec::new();
    for (parts, order) in [1, 2, 3].into_iter().flat_map(|parts| orders.map(|order| (parts, order))) {
        let colour = |rank: Rank| rank.0 % parts;
        let part = job.world().split((colour(job.rank()), order(job.rank())))?;
        let mut ranks: Vec<Rank> = job.ranks().filter(|&rank| colour(rank) == colour(job.rank())).collect();
        ranks.sort_by_key(|&rank| (order(rank), rank));
        made.push((part, ranks));
    }
    made.push((job.world().clone(), job.ranks().collect()));
    Ok(made)
}

/// Sends a value around a ring of the members, to and from peers that `named` names.
fn around<P: Peer>(part: &Communicator, named: impl Fn(Member) -> P, slot: Slot) -> Result<()> {
    let (before, after) = (part.members().after(-1), part.members().after(1));
    let (own, mut got) = ([part.rank().0], [usize::MAX; 3]);
    let source = |got: Received| {
        assert_eq!(got, Received { slot, source: before, count: 1 });
    };
    let mut send = part.isend(own.to_vec(), named(after), slot)?;
    source(part.recv(&mut got[..1], named(before), slot)?);
    send.wait()?;
    let mut receive = part.irecv(vec![usize::MAX], named(before), slot)?;
    part.scope(|s| s.send(own, named(after), slot)?.wait())?;
    let (values, received) = receive.wait()?;
    source(received);
    let short = &mut got[1..2];
    part.scope(|s| {
        let mut receive = s.recv(short, named(before), slot)?;
        s.send(own, named(after), slot)?.wait()?;
        source(receive.wait()?);
        Ok(())
    })?;
    let mut send = part.isend(own.to_vec(), named(after), slot)?;
    source(part.within(Duration::from_secs(3600)).recv(&mut got[2..], named(before), slot)?);
    send.wait()?;
    assert_eq!((values, got), (vec![before.0], [before.0; 3]));
    Ok(())
}

/// G13: ranks and members translate both ways, in every order of the members. A member and its rank mean the same in
/// messages and as a root.
pub fn g13_ranks_and_members_translate(job: &Job) -> Result<()> {
    for (part, ranks) in communicators(job)? {
        let members = part.members();
        assert_eq!((part.size(), members.iter().len()), (ranks.len(), ranks.len()));
        assert_eq!(members.into_iter().collect::<Vec<_>>(), (0..ranks.len()).map(Member).collect::<Vec<_>>());
        assert_eq!(ranks[part.rank().index()], job.rank());
        for member in members {
            assert_eq!(members.rank_of(member), Some(ranks[member.index()]), "{ranks:?}");
        }
        for rank in job.ranks() {
            let member = ranks.iter().position(|&other| other == rank).map(Member);
            assert_eq!(members.member_of(rank), member, "{rank} of {ranks:?}");
        }
        for beyond in [job.size(), 1 << 24, 1 << 32, usize::MAX] {
            assert_eq!(members.member_of(Rank(beyond)), None);
        }
        assert_eq!((members.rank_of(Member(ranks.len())), members.rank_of(Member::NONE)), (None, None));
        for steps in [0, 1, -1, 7, -13] {
            let after = (part.rank().0 as isize + steps).rem_euclid(ranks.len() as isize);
            assert_eq!(members.after(steps), Member(after as usize));
        }
        around(&part, |member| member, Slot(1))?;
        around(&part, |member| ranks[member.index()], Slot(2))?;
        around(&part, Some, Slot(1))?;
        around(&part, |member| Some(ranks[member.index()]), Slot(2))?;
        let ours: Vec<usize> = (0..ranks.len()).collect();
        for root in members {
            let mut values = [[part.rank().0; 2], [part.rank().0; 2]];
            part.bcast(&mut values[0], root)?;
            part.bcast(&mut values[1], ranks[root.index()])?;
            assert_eq!(values, [[root.0; 2]; 2]);
            let is_root = part.rank() == root;
            let sum = part.reduce(&[1_usize], Sum, Some(ranks[root.index()]))?;
            assert_eq!(sum, is_root.then_some([ranks.len()]));
            let mine = part.scatter(if is_root { &ours[..] } else { &[] }, 1, ranks[root.index()])?;
            assert_eq!(mine, [part.rank().0]);
            let gathered = part.igather(vec![part.rank().0], ranks[root.index()])?.wait()?;
            assert_eq!(gathered, is_root.then(|| (0..ranks.len()).collect()));
        }
    }
    job.barrier()
}

/// Asserts that a call is refused because `rank` is no member.
fn no_member<T>(job: &Job, outcome: Result<T>, rank: Rank, call: &str) {
    let text = format!("rank {rank} is not a member of this communicator");
    let error = misused(job, outcome, &[&text, call, "hint: a Rank is a rank of the job"]);
    assert_eq!((error.cause(), error.kind()), (&Cause::NotAMember { rank }, ErrorKind::Misuse));
}

/// G13: a rank of the job that is no member is refused, even if a member has its number; so is a member that does not
/// exist, and `None` as a root. The communicator goes on.
pub fn g13_who_is_no_member_is_refused(job: &Job) -> Result<()> {
    let colour = job.rank().0 % 2;
    let part = job.world().split((colour, -(job.rank().0 as isize)))?;
    let (slot, table) = (Slot(0), job.alloc::<u8>(1)?);
    let at = table.pointer();
    for other in job.ranks().filter(|rank| rank.0 % 2 != job.rank().0 % 2) {
        let (long, limit) = (vec![0_u8; 100], Duration::from_secs(3600));
        no_member(job, part.send(&[1_u8], other, slot), other, "send");
        no_member(job, part.send(&long, Some(other), slot), other, "send");
        no_member(job, part.recv(&mut [1_u8], other, slot), other, "recv");
        no_member(job, part.within(limit).recv(&mut [1_u8], other, slot), other, "recv");
        no_member(job, part.isend(long.clone(), other, slot), other, "isend");
        no_member(job, part.irecv(long, other, slot), other, "irecv");
        no_member(job, send_from(&part, at.slice(1), other, slot), other, "send_from");
        no_member(job, recv_into(&part, at.slice(1), other, slot), other, "recv_into");
        no_member(job, part.scope(|s| s.send([1_u8], other, slot).map(drop)), other, "send");
        no_member(job, part.scope(|s| s.send_from(at.slice(1), other, slot).map(drop)), other, "send_from");
        no_member(job, part.scope(|s| s.recv_into(at.slice(1), other, slot).map(drop)), other, "recv_into");
        let mut into = [0_u8];
        no_member(job, part.scope(|s| s.recv(&mut into, other, slot).map(drop)), other, "recv");
        no_member(job, close(&part, other), other, "close");
        no_member(job, part.bcast(&mut [1_u8], other), other, "bcast");
        no_member(job, part.reduce(&[1_u8], Sum, other), other, "reduce");
        no_member(job, part.gather(&[1_u8], other), other, "gather");
        no_member(job, part.scatter(&[0_u8; 0], 1, other), other, "scatter");
        no_member(job, part.gather(Uneven(&[1_u8]), other), other, "gather");
        no_member(job, part.scatter(&Blocks::<u8>::default(), (), other), other, "scatter");
        no_member(job, part.ibcast(vec![1_u8], other), other, "ibcast");
        no_member(job, part.ireduce(vec![1_u8], Max, other), other, "ireduce");
        no_member(job, part.bcast_init::<u8>(1, other), other, "bcast_init");
        no_member(job, part.reduce_init::<u8>(1, Sum, other), other, "reduce_init");
        no_member(job, part.gather_init::<u8>(Uneven(1), other), other, "gather_init");
    }
    for beyond in [part.size(), 1 << 24, 1 << 32, Member::NONE.0] {
        let texts = [
            &format!("there is no member {beyond}: the ")[..],
            "hint: take members from communicator.members()",
        ];
        for error in [
            misused(job, part.send(&[1_u8], Member(beyond), slot), &texts),
            misused(job, part.irecv(vec![1_u8; 100], Some(Member(beyond)), slot), &texts),
            misused(job, close(&part, Member(beyond)), &texts),
            misused(job, part.bcast(&mut [1_u8], Member(beyond)), &texts),
            misused(job, part.bcast_init::<u8>(1, Member(beyond)), &texts),
        ] {
            assert_eq!(*error.cause(), Cause::NoSuchMember { member: beyond, size: part.size() });
        }
        let rank = Rank(beyond.max(job.size()));
        let error = misused(job, part.send(&[1_u8], rank, slot), &[&format!("there is no rank {rank}")]);
        assert_eq!(*error.cause(), Cause::NoSuchRank { rank, size: job.size() });
    }
    let nobody = None::<Member>;
    misused(job, part.bcast(&mut [1_u8], nobody), &["bcast", "the root is None"]);
    misused(job, part.ibcast(vec![1_u8], None::<Rank>), &["ibcast", "the root is None"]);
    misused(job, part.gather_init::<u8>(1, nobody), &["gather_init", "the root is None"]);
    let part = part.recreate()?; // the refused collective calls have failed it
    assert_eq!(part.allreduce(&[1_usize], Sum)?, [part.size()]);
    around(&part, |member| member, slot)?;
    job.barrier()
}

/// G13: a message with nobody ends at once. It leaves the buffer alone, and the slot free.
pub fn g13_messages_with_nobody_end_at_once(job: &Job) -> Result<()> {
    let (world, slot, limit) = (job.world(), Slot(3), Duration::from_secs(3600));
    let (nobody, no_rank) = (None::<Member>, None::<Rank>);
    let nothing = Received { slot, source: Member::NONE, count: 0 };
    let table = job.alloc::<u64>(2)?;
    table.fill(7)?;
    for len in [1, 6, 7, 9000] {
        let (own, mut into) = (vec![5_u64; len], vec![9_u64; len]);
        for _ in 0..3 {
            world.send(&own, nobody, slot)?;
            assert_eq!(world.recv(&mut into, no_rank, slot)?, nothing);
            assert_eq!(world.within(limit).recv(&mut into, nobody, slot)?, nothing);
            send_from(world, table.pointer().slice(2), no_rank, slot)?;
            assert_eq!(recv_into(world, table.pointer().slice(2), nobody, slot)?, nothing);
            let (mut send, mut receive) =
                (world.isend(own.clone(), no_rank, slot)?, world.irecv(vec![9_u64; len], nobody, slot)?);
            assert!(send.test() && receive.test());
            assert_eq!((send.wait()?, receive.wait()?), (own.clone(), (vec![9; len], nothing)));
            assert!(send.wait().is_err() && receive.wait().is_err(), "values are returned once");
            assert_eq!(pollster::block_on(world.isend(own.clone(), nobody, slot)?)?, own);
            let awaited = pollster::block_on(world.irecv(vec![9_u64; len], no_rank, slot)?)?;
            assert_eq!(awaited, (vec![9; len], nothing));
            drop((world.isend(own.clone(), nobody, slot)?, world.irecv(own.clone(), nobody, slot)?));
        }
        world.scope(|s| {
            s.send(&own, nobody, slot)?.wait()?;
            assert_eq!(s.recv(&mut into, no_rank, slot)?.wait()?, nothing);
            s.send_from(table.pointer().slice(2), nobody, slot)?;
            s.recv_into(table.pointer().slice(2), no_rank, slot)?;
            s.wait_all()
        })?;
        assert_eq!(into, vec![9; len]);
        close(world, nobody)?;
        around(world, |member| member, slot)?;
    }
    assert_eq!(table.to_vec()?, [7; 2]);
    // A line with two ends: each rank but the last sends to the next one.
    let me = job.rank().0;
    let (before, after) =
        (me.checked_sub(1).map(Rank), Some(Rank(me + 1)).filter(|next| next.0 < job.size()));
    for round in 0..if is_simulated(job) { 3 } else { 100 } {
        let mut got = [usize::MAX];
        world.scope(|s| {
            s.send(std::slice::from_ref(&me), after, slot)?;
            s.recv(&mut got, before, slot).map(drop)
        })?;
        assert_eq!(got, [me.wrapping_sub(1)], "round {round}");
    }
    job.barrier()
}
