//! J: exchanges with neighbours, on grids and in graphs, by blocking calls, nonblocking calls and
//! plans.

use crate::exchange::effort;
use crate::expected_error::{disagreed, misused, refused, refused_together};
use tasuki::collective::Neighbourhood;
use tasuki::{Communicator, ErrorKind, Job, Member, Rank, Request, Result};

/// Values that tell the rank that gives them, the number of its block, the start, and the place.
fn block(from: usize, number: usize, start: usize, count: usize) -> Vec<u64> {
    let first = from * 1_000_003 + number * 10_007 + start * 101;
    (0..count).map(|at| (first + at % 8191) as u64).collect()
}

/// The number of values in a block: none, or some.
fn count(from: usize, number: usize, scale: usize) -> usize {
    (from * 2 + number * 3) % 4 * scale
}

/// The blocks that a member gives, by number, and the blocks that it gets, by giving rank and
/// number.
struct Edges {
    me: usize,
    gives: Vec<usize>,
    gets: Vec<(usize, usize)>,
}

impl Edges {
    fn given(&self, start: usize, count: impl Fn(usize, usize) -> usize) -> Vec<u64> {
        let one = |&number: &usize| block(self.me, number, start, count(self.me, number));
        self.gives.iter().flat_map(one).collect()
    }

    fn got(&self, start: usize, count: impl Fn(usize, usize) -> usize) -> Vec<u64> {
        let one = |&(from, number): &(usize, usize)| block(from, number, start, count(from, number));
        self.gets.iter().flat_map(one).collect()
    }

    /// Exchanges blocks of different lengths in all three ways, several times.
    fn exchange(&self, with: &Neighbourhood, scale: usize, starts: usize) -> Result<()> {
        let count = |from, number| count(from, number, scale);
        let gives: Vec<usize> = self.gives.iter().map(|&number| count(self.me, number)).collect();
        let gets: Vec<usize> = self.gets.iter().map(|&(from, number)| count(from, number)).collect();
        let mut plan = with.exchange_v_init::<u64>(&gives, &gets)?;
        for start in 0..starts {
            let (given, got) = (self.given(start, count), self.got(start, count));
            plan.input()?.copy_from_slice(&given);
            plan.start()?;
            let mut begun = with.iexchange_v(given.clone(), &gives, &gets)?;
            assert_eq!(with.exchange_v(&given, &gives, &gets)?, got, "blocking, scale {scale}");
            assert_eq!(begun.wait()?, got, "nonblocking, scale {scale}");
            plan.wait()?;
            assert_eq!(plan.result()?, got, "planned, scale {scale}, start {start}");
        }
        Ok(())
    }

    /// Exchanges blocks of equal length in all three ways, several times.
    fn exchange_equal(&self, with: &Neighbourhood, count: usize, starts: usize) -> Result<()> {
        let mut plan = with.exchange_init::<u64>(count)?;
        for start in 0..starts {
            let (given, got) = (self.given(start, |_, _| count), self.got(start, |_, _| count));
            plan.input()?.copy_from_slice(&given);
            plan.start()?;
            assert_eq!(with.exchange(&given)?, got, "blocking, {count} values");
            let mut begun = with.iexchange(given)?;
            plan.wait()?;
            assert_eq!(plan.result()?, got, "planned, {count} values, start {start}");
            assert_eq!(begun.wait()?, got, "nonblocking, {count} values");
        }
        Ok(())
    }
}

/// The coordinates of a member on a grid.
fn place(mut rank: usize, dims: &[usize]) -> Vec<usize> {
    let mut place: Vec<usize> = dims.iter().rev().map(|&len| (rank % len, rank /= len).0).collect();
    place.reverse();
    place
}

/// The blocks of a member on a grid, each with the neighbour on its side. The number of a block is
/// twice the dimension, plus one for the side with the higher coordinate.
fn sides(me: usize, dims: &[usize], periodic: &[bool]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for dim in 0..dims.len() {
        for side in 0..2 {
            let (mut there, len) = (place(me, dims), dims[dim]);
            let is_edge = there[dim] == if side == 0 { 0 } else { len - 1 };
            there[dim] = (there[dim] + if side == 0 { len - 1 } else { 1 }) % len;
            if periodic[dim] || !is_edge {
                let rank = there.iter().zip(dims).fold(0, |rank, (at, len)| rank * len + at);
                all.push((2 * dim + side, rank));
            }
        }
    }
    all
}

/// J: blocks from neighbours arrive at the right side, also around the end of a dimension and from
/// the member itself.
pub fn j_neighbours_exchange_on_grids(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let half = (1..=ranks / 2).rev().find(|half| ranks % half == 0).unwrap_or(1);
    let grids: [(Vec<usize>, Vec<bool>); 5] = [
        (vec![ranks], vec![true]),
        (vec![ranks], vec![false]),
        (vec![ranks, 1], vec![true, true]),
        (vec![half, ranks / half], vec![true, false]),
        (vec![1, half, ranks / half], vec![false, true, true]),
    ];
    for (dims, periodic) in grids {
        let grid = world.grid(&dims, &periodic)?;
        let sides = sides(me, &dims, &periodic);
        let there: Vec<Member> = sides.iter().map(|&(_, member)| Member(member)).collect();
        assert_eq!((grid.sources(), grid.destinations()), (&there[..], &there[..]), "{dims:?}");
        let edges = Edges {
            me,
            gives: sides.iter().map(|&(side, _)| side).collect(),
            gets: sides.iter().map(|&(side, rank)| (rank, side ^ 1)).collect(),
        };
        for scale in [1, effort(job, 9001, 201), 0, 3].into_iter().take(effort(job, 4, 1)) {
            edges.exchange(&grid, scale, effort(job, 4, 2))?;
            edges.exchange_equal(&grid, effort(job, scale, 200), effort(job, 4, 2))?;
        }
    }
    job.barrier()
}

/// J: any graph: double edges, edges in one direction, edges to oneself, and members without edges.
/// Sources are in another order than destinations.
pub fn j_neighbours_exchange_in_graphs(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    for round in 0..effort(job, 6, 3) {
        let edges = |from: usize, to: usize| if from == round { 0 } else { (from * 2 + to + round) % 3 };
        // The members to which `from` gives blocks, by number of block.
        let gives = |from: usize| -> Vec<usize> {
            (0..2).flat_map(|turn| (0..ranks).filter(move |&to| edges(from, to) > turn)).collect()
        };
        let number = |from: usize, turn: usize| {
            let all = gives(from).into_iter().enumerate();
            all.filter(|&(_, to)| to == me).nth(turn).expect("the edge exists").0
        };
        let from = |turn: usize| (0..ranks).rev().filter(move |&from| edges(from, me) > turn);
        let gets: Vec<(usize, usize)> =
            (0..2).flat_map(|turn| from(turn).map(move |from| (from, turn))).collect();
        let destinations: Vec<Member> = gives(me).into_iter().map(Member).collect();
        let sources: Vec<Member> = gets.iter().map(|&(from, _)| Member(from)).collect();
        let graph = world.graph(&sources, &destinations)?;
        assert_eq!((graph.sources(), graph.destinations()), (&sources[..], &destinations[..]));
        let edges = Edges {
            me,
            gives: (0..destinations.len()).collect(),
            gets: gets.into_iter().map(|(from, turn)| (from, number(from, turn))).collect(),
        };
        for scale in [1, 3, effort(job, 9001, 201)] {
            edges.exchange(&graph, scale, effort(job, 4, 2))?;
        }
    }
    job.barrier()
}

/// J: neighbourhoods whose members disagree are refused on all members; the members concerned are
/// told the reason.
pub fn j_neighbourhoods_that_disagree_are_refused(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.world().rank(), job.size());
    misused(job, world.grid(&[ranks + 1], &[true]), &["places", "members"]);
    misused(job, world.grid(&[ranks, 1], &[true]), &["equal lengths"]);
    misused(job, world.grid(&[ranks, 0], &[true, true]), &["places"]);
    misused(job, world.grid(&[usize::MAX, 2], &[true, true]), &["places"]);
    if ranks > 1 {
        disagreed(job, world.grid(&[ranks], &[me == Member(0)]), &["another grid"]);
        // Rank 1 gives rank 0 a block that rank 0 does not expect; then rank 0 expects one that
        // rank 1 does not give.
        for forgets in [Member(0), Member(1)] {
            let sources = if me == Member(0) && forgets != me { &[Member(1)][..] } else { &[] };
            let destinations = if me == Member(1) && forgets != me { &[Member(0)][..] } else { &[] };
            let texts: &[&str] = match me.0 {
                0 => &["this member sends 0 blocks to member 1"],
                1 => &["blocks to member 0"],
                _ => &["member 0 was refused"],
            };
            disagreed(job, world.graph(sources, destinations), texts);
        }
        let none = [Member(ranks)];
        let names = if me == Member(1) { &none[..] } else { &[] };
        let text = if me == Member(1) { "no rank" } else { "was refused" };
        refused_together(job, world.graph(names, &[]), me == Member(1), &[text]);
    }
    // A member that only receives cannot tell how long blocks are.
    let sink = world.graph(&[me, me], &[me, me])?;
    misused(job, sink.exchange(&[1_u8; 3]), &["3 values", "2 destinations"]);
    misused(job, sink.exchange_v(&[1_u8; 3], &[1, 2], &[2, 1]), &["itself"]);
    misused(job, sink.exchange_v(&[1_u8; 3], &[3], &[2, 1]), &["1 counts for 2"]);
    misused(job, sink.iexchange_v(vec![1_u8; 3], &[1, 1], &[1, 1]), &["add up to 2"]);
    assert_eq!(sink.exchange_v(&[1_u8, 2, 3], &[1, 2], &[1, 2])?, [1, 2, 3]);
    let next = (me.index() + 1) % ranks;
    let to = if me == Member(0) { &[Member(next)][..] } else { &[] };
    let from = if me.index() == 1 % ranks { &[Member(0)][..] } else { &[] };
    let one = world.graph(from, to)?;
    if to.is_empty() && !from.is_empty() {
        misused(job, one.exchange::<u8>(&[]), &["the length of a block is unknown", "_v"]);
    }
    job.barrier()
}

/// A neighbourhood of two members, each of which gives the other one block.
fn pair(part: &Communicator) -> Result<Neighbourhood> {
    let other = [Member(1 - part.rank().0)];
    part.graph(&other, &other)
}

/// J10: two neighbours that disagree about a length get an error. For a plan all members get one,
/// and no memory remains in use.
pub fn j10_neighbours_with_different_lengths_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    for (gives, gets) in [(0, 1), (1, 0), (4, 5), (9, 2), (2, 9), (900, 901), (20_000, 19_999)] {
        let counts = |is_first: bool| if is_first { ([gives], [3]) } else { ([3], [gets]) };
        for is_begun in [true, false] {
            let part = world.split((me.0 < 2).then_some(0))?;
            if let Some(part) = part {
                let with = pair(&part)?;
                let (out, into) = counts(part.rank() == 0);
                let values = vec![0_u64; out[0]];
                let outcome = match is_begun {
                    true => with.iexchange_v(values, &out, &into)?.wait().map(drop),
                    false => with.exchange_v(&values, &out, &into).map(drop),
                };
                refused(job, outcome, ErrorKind::Disagreement, &["disagree", "exchange"]);
            }
            job.barrier()?;
        }
        let ring = world.grid(&[job.size()], &[true])?;
        let mut plan = ring.exchange_init::<u64>(1)?;
        let kept = || (job.memory().local, job.memory().plans);
        let before = kept();
        let out = [3, if me == Rank(0) { gives } else { 3 }];
        let into = [if me == Rank(1) { gets } else { 3 }, 3];
        let texts: &[&str] = if me.0 < 2 { &["disagree", "exchange_init"] } else { &["was refused"] };
        disagreed(job, ring.exchange_v_init::<u64>(&out, &into), texts);
        assert_eq!(kept(), before, "the refused plan left memory in use");
        plan.input()?.copy_from_slice(&[7, 8]);
        plan.start()?;
        plan.wait()?;
        assert_eq!(plan.result()?, [8, 7]);
    }
    let wrong = world.grid(&[job.size()], &[true])?;
    let counts: &[usize] = if me == Rank(0) { &[1] } else { &[1, 1] };
    let texts: &[&str] = if me == Rank(0) { &["1 counts for 2"] } else { &["was refused"] };
    refused_together(job, wrong.exchange_v_init::<u8>(counts, &[1, 1]), me == Rank(0), texts);
    job.barrier()
}
