//! J: exchanges with neighbours, on grids and in graphs, by blocking calls, nonblocking calls and
//! plans.

use crate::exchange::effort;
use crate::expected_error::{disagreed, misused, refused, refused_together};
use tasuki::collective::{CollectiveRequest, Neighbourhood};
use tasuki::{Blocks, Cartesian, Communicator, ErrorKind, Job, Member, Plan, Rank, Request, Result, Sum};

/// Values that tell the rank that gives them, the number of its block, the start, and the place.
fn block(from: usize, number: usize, start: usize, count: usize) -> Vec<u64> {
    let first = from * 1_000_003 + number * 10_007 + start * 101;
    (0..count).map(|at| (first + at % 8191) as u64).collect()
}

/// The number of values in a block: none, or some.
fn count(from: usize, number: usize, scale: usize) -> usize {
    (from * 2 + number * 3) % 4 * scale
}

/// The exchanges of a grid or a graph.
trait Neighbours {
    fn returned(&self, values: &[u64]) -> Result<Vec<u64>>;
    fn into(&self, values: &[u64], result: &mut [u64]) -> Result<()>;
    fn uneven(&self, blocks: &Blocks<u64>) -> Result<Blocks<u64>>;
    fn begun(&self, values: Vec<u64>) -> Result<CollectiveRequest<Vec<u64>>>;
    fn begun_into(&self, values: Vec<u64>, result: Vec<u64>) -> Result<CollectiveRequest<Vec<u64>>>;
    fn begun_uneven(&self, blocks: Blocks<u64>) -> Result<CollectiveRequest<Blocks<u64>>>;
    fn planned(&self, count: usize) -> Result<Plan<u64>>;
    fn planned_uneven(&self, counts: &[usize]) -> Result<Plan<u64>>;
}

macro_rules! neighbours {
    ([$($of:tt)*] $kind:ty) => {
        impl $($of)* Neighbours for $kind {
            fn returned(&self, values: &[u64]) -> Result<Vec<u64>> {
                self.neighbor_alltoall(values)
            }
            fn into(&self, values: &[u64], result: &mut [u64]) -> Result<()> {
                self.neighbor_alltoall((values, result))
            }
            fn uneven(&self, blocks: &Blocks<u64>) -> Result<Blocks<u64>> {
                self.neighbor_alltoall(blocks)
            }
            fn begun(&self, values: Vec<u64>) -> Result<CollectiveRequest<Vec<u64>>> {
                self.ineighbor_alltoall(values)
            }
            fn begun_into(&self, values: Vec<u64>, result: Vec<u64>) -> Result<CollectiveRequest<Vec<u64>>> {
                self.ineighbor_alltoall((values, result))
            }
            fn begun_uneven(&self, blocks: Blocks<u64>) -> Result<CollectiveRequest<Blocks<u64>>> {
                self.ineighbor_alltoall(blocks)
            }
            fn planned(&self, count: usize) -> Result<Plan<u64>> {
                self.neighbor_alltoall_init(count)
            }
            fn planned_uneven(&self, counts: &[usize]) -> Result<Plan<u64>> {
                self.neighbor_alltoall_init(counts)
            }
        }
    };
}

neighbours!([<const N: usize>] Cartesian<N>);
neighbours!([] Neighbourhood);

/// What stays in the place of a missing neighbour.
const BOUNDARY: u64 = u64::MAX;

/// The blocks of a member.
struct Edges {
    me: usize,
    /// The number of blocks that it has, also for missing neighbours.
    gives: usize,
    /// For each block that it gets, the giving rank and the number of the block there. None: nobody gives it.
    gets: Vec<Option<(usize, usize)>>,
}

impl Edges {
    fn given(&self, start: usize, count: impl Fn(usize, usize) -> usize) -> Blocks<u64> {
        (0..self.gives).map(|number| block(self.me, number, start, count(self.me, number))).collect()
    }

    /// The blocks that come; `missing` are those of missing neighbours.
    fn got(&self, start: usize, count: impl Fn(usize, usize) -> usize, missing: &[u64]) -> Blocks<u64> {
        let one = |&edge: &Option<(usize, usize)>| match edge {
            Some((from, number)) => block(from, number, start, count(from, number)),
            None => missing.to_vec(),
        };
        self.gets.iter().map(one).collect()
    }

    /// Exchanges blocks of different lengths in all three ways, several times.
    fn exchange(&self, with: &impl Neighbours, scale: usize, starts: usize) -> Result<()> {
        let count = |from, number| count(from, number, scale);
        let counts: Vec<usize> = (0..self.gives).map(|number| count(self.me, number)).collect();
        let mut plan = with.planned_uneven(&counts)?;
        for start in 0..starts {
            let (given, got) = (self.given(start, count), self.got(start, count, &[]));
            plan.input()?.copy_from_slice(given.values());
            plan.start()?;
            let mut begun = with.begun_uneven(given.clone())?;
            assert_eq!(with.uneven(&given)?, got, "blocking, scale {scale}");
            assert_eq!(begun.wait()?, got, "nonblocking, scale {scale}");
            plan.wait()?;
            assert_eq!(plan.result()?, got.values(), "planned, scale {scale}, start {start}");
        }
        Ok(())
    }

    /// Exchanges blocks of equal length in all ways, several times.
    fn exchange_equal(&self, with: &impl Neighbours, count: usize, starts: usize) -> Result<()> {
        let mut plan = with.planned(count)?;
        for start in 0..starts {
            let given = self.given(start, |_, _| count).into_values();
            let [zeros, kept] = [0, BOUNDARY]
                .map(|missing| self.got(start, |_, _| count, &vec![missing; count]).into_values());
            plan.input()?.copy_from_slice(&given);
            plan.start()?;
            assert_eq!(with.returned(&given)?, zeros, "blocking, {count} values");
            let mut begun = with.begun(given.clone())?;
            let mut place = vec![BOUNDARY; kept.len()];
            with.into(&given, &mut place)?;
            assert_eq!(place, kept, "blocking, into, {count} values");
            plan.wait()?;
            assert_eq!(plan.result()?, zeros, "planned, {count} values, start {start}");
            assert_eq!(begun.wait()?, zeros, "nonblocking, {count} values");
            let place = vec![BOUNDARY; kept.len()];
            assert_eq!(with.begun_into(given, place)?.wait()?, kept, "nonblocking, into, {count} values");
        }
        Ok(())
    }
}

/// The coordinates of a member on a grid.
fn place<const N: usize>(mut rank: usize, dims: [usize; N]) -> [usize; N] {
    let mut place = [0; N];
    for dim in (0..N).rev() {
        (place[dim], rank) = (rank % dims[dim], rank / dims[dim]);
    }
    place
}

/// The member that is `steps` further along a dimension, found by a look at all members.
fn beside<const N: usize>(
    me: usize,
    (dims, periodic): ([usize; N], [bool; N]),
    dim: usize,
    steps: isize,
) -> Option<usize> {
    let mut there = place(me, dims);
    let at = there[dim] as isize + steps;
    let len = dims[dim] as isize;
    if !periodic[dim] && !(0..len).contains(&at) {
        return None;
    }
    there[dim] = ((at % len + len) % len) as usize;
    (0..dims.iter().product()).find(|&rank| place(rank, dims) == there)
}

/// All grids with sides of 1 to 3 that have as many places, periodic or not in each dimension.
fn grids<const N: usize>(places: usize) -> Vec<([usize; N], [bool; N])> {
    let sides = (0..3_usize.pow(N as u32)).map(|all| place(all, [3; N]).map(|side| side + 1));
    let fitting = sides.filter(|dims| dims.iter().product::<usize>() == places);
    fitting
        .flat_map(|dims| {
            (0..2_usize.pow(N as u32)).map(move |all| (dims, place(all, [2; N]).map(|bit| bit == 1)))
        })
        .collect()
}

/// Calls one function for grids of one, two and three dimensions of the first members of a communicator, of each number
/// of members that it can have.
macro_rules! for_small_grids {
    ($job:expr, $call:ident) => {
        for places in 1..=$job.size() {
            let part = $job.world().split((($job.rank().0) < places).then_some(0))?;
            if let Some(part) = part {
                // A simulated job is slow, and takes some of them.
                let some = effort($job, 1, 7);
                grids::<1>(places).into_iter().try_for_each(|grid| $call($job, &part, grid))?;
                grids::<2>(places).into_iter().step_by(some).try_for_each(|grid| $call($job, &part, grid))?;
                grids::<3>(places).into_iter().step_by(some).try_for_each(|grid| $call($job, &part, grid))?;
            }
            $job.barrier()?;
        }
    };
}

/// J: blocks from neighbours arrive at the right side, also around the end of a dimension and from
/// the member itself. Blocks of missing neighbours have their places.
pub fn j_neighbours_exchange_on_grids(job: &Job) -> Result<()> {
    for_small_grids!(job, exchange_on_grid);
    let (world, ranks) = (job.world(), job.size());
    let half = (1..=ranks / 2).rev().find(|half| ranks % half == 0).unwrap_or(1);
    let (dims, periodic) = ([1, half, ranks / half], [false, true, false]);
    let (grid, edges) = (Cartesian::new(world, dims, periodic)?, edges_on_grid(world, (dims, periodic)));
    for scale in [effort(job, 9001, 201), 3] {
        edges.exchange(&grid, scale, effort(job, 4, 2))?;
        edges.exchange_equal(&grid, scale, effort(job, 4, 2))?;
    }
    job.barrier()
}

/// What goes to one side comes from the opposite side.
fn edges_on_grid<const N: usize>(part: &Communicator, grid: ([usize; N], [bool; N])) -> Edges {
    let me = part.rank().0;
    let side = |side: usize| {
        let steps = if side.is_multiple_of(2) { -1 } else { 1 };
        beside(me, grid, side / 2, steps).map(|rank| (rank, side ^ 1))
    };
    Edges { me, gives: 2 * N, gets: (0..2 * N).map(side).collect() }
}

fn exchange_on_grid<const N: usize>(
    job: &Job,
    part: &Communicator,
    (dims, periodic): ([usize; N], [bool; N]),
) -> Result<()> {
    let grid = Cartesian::new(part, dims, periodic)?;
    let edges = edges_on_grid(part, (dims, periodic));
    edges.exchange(&grid, 1, effort(job, 2, 1))?;
    edges.exchange_equal(&grid, effort(job, 1, 2), effort(job, 2, 1))
}

/// J: a grid knows the places of its members, its neighbours, shifts, and the communicators of its rows.
pub fn j_grids_know_their_places(job: &Job) -> Result<()> {
    for_small_grids!(job, check_places);
    let grid = Cartesian::new(job.world(), [job.size(), 1, 1], [true, true, false])?;
    assert_eq!(grid.communicator().size(), job.size());
    assert_eq!((grid.dims(), grid.periodic()), ([job.size(), 1, 1], [true, true, false]));
    // Numbers of steps that no grid has.
    let me = Some(Member(job.rank().0));
    assert_eq!(grid.shift(1, isize::MIN), (me, me));
    assert_eq!(grid.shift(2, isize::MIN), (None, None));
    assert_eq!(grid.shift(2, isize::MAX), (None, None));
    let turns = job.size() as isize * 1000;
    assert_eq!((grid.shift(0, turns), grid.shift(0, -turns)), ((me, me), (me, me)));
    job.barrier()
}

fn check_places<const N: usize>(
    _: &Job,
    part: &Communicator,
    (dims, periodic): ([usize; N], [bool; N]),
) -> Result<()> {
    let (grid, me) = (Cartesian::new(part, dims, periodic)?, part.rank().0);
    assert_eq!(grid.coords(), place(me, dims));
    for member in part.members() {
        let coords = grid.coords_of(member).expect("it is a member");
        assert_eq!(
            (coords, grid.member_at(coords.map(|at| at as isize))),
            (place(member.0, dims), Some(member))
        );
    }
    assert_eq!(grid.coords_of(Member(part.size())), None);
    for dim in 0..N {
        for steps in -4..=4 {
            let there = |steps| beside(me, (dims, periodic), dim, steps).map(Member);
            assert_eq!(
                grid.shift(dim, steps),
                (there(-steps), there(steps)),
                "{dims:?} {periodic:?} {dim} {steps}"
            );
        }
        assert_eq!(grid.neighbors()[dim], [grid.shift(dim, 1).0, grid.shift(dim, 1).1]);
        let mut keep = [false; N];
        keep[dim] = true;
        let row = grid.sub(keep)?;
        assert_eq!((row.size(), row.rank().0), (dims[dim], place(me, dims)[dim]));
        let same = |&rank: &usize| {
            (0..N).all(|other| other == dim || place(rank, dims)[other] == place(me, dims)[other])
        };
        let sum: usize = (0..part.size()).filter(same).sum();
        assert_eq!(row.allreduce(&me, Sum)?, sum, "{dims:?}, row {dim}");
    }
    assert_eq!((grid.sub([true; N])?.size(), grid.sub([false; N])?.size()), (part.size(), 1));
    Ok(())
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
        let graph = Neighbourhood::new(world, &sources, &destinations)?;
        assert_eq!((graph.sources(), graph.destinations()), (&sources[..], &destinations[..]));
        assert_eq!(graph.communicator().size(), ranks);
        let edges = Edges {
            me,
            gives: destinations.len(),
            gets: gets.into_iter().map(|(from, turn)| Some((from, number(from, turn)))).collect(),
        };
        for scale in [1, 3, effort(job, 9001, 201)] {
            edges.exchange(&graph, scale, effort(job, 4, 2))?;
            edges.exchange_equal(&graph, scale, effort(job, 4, 2))?;
        }
    }
    job.barrier()
}

/// J: neighbourhoods whose members disagree are refused on all members; the members concerned are
/// told the reason.
pub fn j_neighbourhoods_that_disagree_are_refused(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.world().rank(), job.size());
    let apart = || world.dup();
    misused(job, Cartesian::new(&apart()?, [ranks + 1], [true]), &["Cartesian::new", "places", "members"]);
    misused(job, Cartesian::new(&apart()?, [ranks, 0], [true, true]), &["places"]);
    misused(job, Cartesian::new(&apart()?, [usize::MAX, 2], [true, true]), &["places"]);
    if ranks > 1 {
        disagreed(job, Cartesian::new(&apart()?, [ranks], [me == Member(0)]), &["another grid"]);
        let part = apart()?;
        let other = match me == Member(0) {
            true => Cartesian::new(&part, [ranks], [true]).map(drop),
            false => Cartesian::new(&part, [ranks, 1], [true, true]).map(drop),
        };
        disagreed(job, other, &["another grid"]);
        // Rank 1 gives rank 0 a block that rank 0 does not expect; then rank 0 expects one that
        // rank 1 does not give.
        for forgets in [Member(0), Member(1)] {
            let sources = if me == Member(0) && forgets != me { &[Member(1)][..] } else { &[] };
            let destinations = if me == Member(1) && forgets != me { &[Member(0)][..] } else { &[] };
            let texts: &[&str] = match me.0 {
                0 => &["Neighbourhood::new", "this member sends 0 blocks to member 1"],
                1 => &["blocks to member 0"],
                _ => &["member 0 was refused"],
            };
            disagreed(job, Neighbourhood::new(&apart()?, sources, destinations), texts);
        }
        let none = [Member(ranks)];
        let names = if me == Member(1) { &none[..] } else { &[] };
        let text = if me == Member(1) { "no member" } else { "was refused" };
        refused_together(job, Neighbourhood::new(&apart()?, names, &[]), me == Member(1), &[text]);
    }
    let own = Neighbourhood::new(&apart()?, &[me, me], &[me, me])?;
    job.barrier()?; // a failure also ends calls that were right and are still under way
    misused(job, own.neighbor_alltoall(&[1_u8; 3]), &["3 values", "2 destinations"]);
    misused(job, own.neighbor_alltoall((&[1_u8; 4], &mut [0; 3])), &["3 values", "2 sources"]);
    misused(job, own.neighbor_alltoall((&[1_u8; 4], &mut [0; 2])), &["itself"]);
    misused(job, own.neighbor_alltoall(&Blocks::new(vec![1_u8; 3], &[3])?), &["1 blocks for 2"]);
    let wrong = Blocks::ending_at(vec![1_u8; 3], &[1, 2]);
    misused(job, own.ineighbor_alltoall(wrong), &["ineighbor_alltoall(3 values", "ends at value 2"]);
    let own = Neighbourhood::new(world, &[me, me], &[me, me])?;
    let got = own.neighbor_alltoall(&Blocks::new(vec![1_u8, 2, 3], &[1, 2])?)?;
    assert_eq!(got, Blocks::new(vec![1, 2, 3], &[1, 2])?);
    // A member that only receives learns how long blocks are.
    let next = (me.index() + 1) % ranks;
    let to = if me == Member(0) { &[Member(next)][..] } else { &[] };
    let from = if me.index() == 1 % ranks { &[Member(0)][..] } else { &[] };
    let one = Neighbourhood::new(world, from, to)?;
    let given = if to.is_empty() { vec![] } else { vec![3_u8, 4] };
    let wanted = if from.is_empty() { vec![] } else { vec![3, 4] };
    assert_eq!(one.neighbor_alltoall(&given)?, wanted);
    assert_eq!(one.ineighbor_alltoall(given)?.wait()?, wanted);
    let one = Neighbourhood::new(&apart()?, from, to)?;
    job.barrier()?; // likewise
    if to.is_empty() {
        misused(job, one.neighbor_alltoall(&[1_u8]), &["1 values", "0 destinations"]);
        misused(job, one.neighbor_alltoall(&Blocks::ending_at(vec![1_u8], &[])), &["1 values", "no blocks"]);
    }
    job.barrier()
}

/// A neighbourhood of two members, each of which gives the other one block.
fn pair(part: &Communicator) -> Result<Neighbourhood> {
    let other = [Member(1 - part.rank().0)];
    Neighbourhood::new(part, &other, &other)
}

/// J10: two neighbours that disagree about a length get an error. For a plan all members get one,
/// and no memory remains in use.
pub fn j10_neighbours_with_different_lengths_get_errors(job: &Job) -> Result<()> {
    let (world, me) = (job.world(), job.rank());
    for (gives, gets) in [(0, 1), (1, 0), (4, 5), (9, 2), (2, 9), (900, 901), (20_000, 19_999)] {
        for is_begun in [true, false] {
            let part = world.split((me.0 < 2).then_some(0))?;
            if let Some(part) = part {
                let with = pair(&part)?;
                let (out, into) = if part.rank() == 0 { (gives, 3) } else { (3, gets) };
                let (values, mut place) = (vec![0_u64; out], vec![0; into]);
                let outcome = match is_begun {
                    true => with.ineighbor_alltoall((values, place))?.wait().map(drop),
                    false => with.neighbor_alltoall((&values, &mut place)),
                };
                refused(job, outcome, ErrorKind::Disagreement, &["disagree", "neighbor_alltoall"]);
            }
            job.barrier()?;
        }
        let ring = Cartesian::new(world, [job.size()], [true])?;
        let mut plan = ring.neighbor_alltoall_init::<u64>(1)?;
        let apart = Cartesian::new(&world.dup()?, [job.size()], [true])?;
        let _plan = apart.neighbor_alltoall_init::<u64>(1)?;
        let kept = || (job.memory().local, job.memory().plans);
        let before = kept();
        let is_concerned = me == 0 || ring.neighbors()[0].contains(&Some(Member(0)));
        let texts: &[&str] =
            if is_concerned { &["disagree", "neighbor_alltoall_init"] } else { &["was refused"] };
        let count = if me == 0 { gives } else { gets };
        disagreed(job, apart.neighbor_alltoall_init::<u64>(count), texts);
        assert_eq!(kept(), before, "the refused plan left memory in use");
        plan.input()?.copy_from_slice(&[7, 8]);
        plan.start()?;
        plan.wait()?;
        assert_eq!(plan.result()?, [8, 7]);
    }
    let wrong = Cartesian::new(&world.dup()?, [job.size()], [true])?;
    let counts: &[usize] = if me == Rank(0) { &[1] } else { &[1, 1] };
    let texts: &[&str] = if me == Rank(0) { &["1 counts for 2"] } else { &["was refused"] };
    refused_together(job, wrong.neighbor_alltoall_init::<u8>(counts), me == Rank(0), texts);
    let wrong = Cartesian::new(&world.dup()?, [job.size()], [true])?;
    let vast = wrong.neighbor_alltoall_init::<u64>(&[usize::MAX, 1]);
    misused(job, vast, &["neighbor_alltoall_init", "more bytes than memory can have"]);
    unequal_blocks_for_a_member_that_cannot_know(job)
}

/// A member without destinations learns the length of equal blocks from its sources, which must agree.
fn unequal_blocks_for_a_member_that_cannot_know(job: &Job) -> Result<()> {
    let part = job.world().split((job.rank().0 < 3 && job.size() > 2).then_some(0))?;
    if let Some(part) = part {
        let me = part.rank().0;
        let star = match me {
            0 => Neighbourhood::new(&part, &[Member(1), Member(2)], &[])?,
            _ => Neighbourhood::new(&part, &[], &[Member(0)])?,
        };
        let outcome = star.neighbor_alltoall(&vec![1_u8; me]);
        if me == 0 {
            refused(job, outcome, ErrorKind::Disagreement, &["disagree", "neighbor_alltoall"]);
        }
        assert!(part.barrier().is_err(), "the communicator has failed");
    }
    job.barrier()
}
