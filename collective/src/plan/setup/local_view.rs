//! Plans of exchanges in which blocks differ in length and a member knows only its own blocks. Each member exchanges
//! the lengths and addresses of blocks with each of its partners, and knows no blocks between other members. So the
//! time and memory that a member needs depend only on its own blocks.

use crate::communicator::Communicator;
use crate::message_algorithms::block_exchange::{BlockExchange, ranges};
use crate::message_algorithms::{Peers, run_now};
use crate::neighbourhood::{Neighbourhood, Partner, Round};
use crate::plan::program_data::DataSpans;
use crate::plan::{Plan, PlanValues};
use std::collections::BTreeMap;
use tasuki_core::base::{Cause, Result, ValueKind};
use tasuki_core::queue::reduction::ReduceOperation;
use tasuki_schedule::algorithm::{BlockToSend, put_all, put_blocks};
use tasuki_schedule::{Contract, RankPart, Schedule};

/// What one member knows about an exchange.
#[derive(Clone, Debug, Default)]
struct LocalView {
    /// Bytes of this member's two buffers, with the places of missing neighbours.
    rooms: [u64; 2],
    /// For each partner, the bytes of all data that it sends. Its receive buffer follows them.
    given_by: BTreeMap<usize, u64>,
    /// The blocks that it really sends.
    gives: Vec<BlockToSend>,
    /// For each block that it really receives: its sender, and its number among those that the sender really sends.
    gets: Vec<(usize, usize)>,
    /// True if each member exchanges exactly one block with each member.
    is_dense: bool,
}

/// The byte ranges of the blocks that a member sends and receives, and its partners.
struct OwnBlocks<'e> {
    with: &'e Neighbourhood,
    gives: Vec<std::ops::Range<usize>>,
    gets: Vec<std::ops::Range<usize>>,
}

impl OwnBlocks<'_> {
    fn rooms(&self) -> [u64; 2] {
        [&self.gives, &self.gets].map(|ranges| ranges.last().map_or(0, |last| last.end as u64))
    }

    /// Returns the words for a partner: the bytes of all data that this member sends; for each block to the partner,
    /// its bytes and its number among those really sent; for each block from the partner, its bytes and its offset in
    /// the receive buffer.
    fn lengths(&self, partner: &Partner) -> Vec<u64> {
        let give = |&number: &usize| [self.gives[number].len() as u64, self.place(0, number) as u64];
        let get = |&slot: &usize| [self.gets[slot].len() as u64, self.gets[slot].start as u64];
        let pairs = partner.gives.iter().map(give).chain(partner.gets.iter().map(get));
        std::iter::once(self.rooms()[0]).chain(pairs.flatten()).collect()
    }

    /// Returns the place of a block among those really sent (direction 0) or received (1).
    fn place(&self, direction: usize, number: usize) -> usize {
        let present = self.with.present()[direction];
        present.binary_search(&number).unwrap_or_else(|_| unreachable!("a partner's block is present"))
    }

    /// Records the words of a partner. Error: they disagree about a block. The error holds the bytes of the block
    /// according to the partner, and according to this member.
    fn learn(&self, partner: &Partner, lengths: &[u64], view: &mut LocalView) -> Result<(), (u64, u64)> {
        let (&given, pairs) = lengths.split_first().unwrap_or((&0, &[]));
        let (theirs, wanted) = pairs.split_at(2 * partner.gets.len());
        view.given_by.insert(partner.member, given);
        for (&slot, pair) in partner.gets.iter().zip(theirs.chunks_exact(2)) {
            agree(pair[0], self.gets[slot].len())?;
            view.gets[self.place(1, slot)] = (partner.member, pair[1] as usize);
        }
        for (&number, pair) in partner.gives.iter().zip(wanted.chunks_exact(2)) {
            agree(pair[0], self.gives[number].len())?;
            let (from, bytes) = (self.gives[number].start as u64, pair[0]);
            view.gives[self.place(0, number)] =
                BlockToSend { to: partner.member, from, into: pair[1], bytes };
        }
        Ok(())
    }
}

fn agree(announced: u64, known: usize) -> Result<(), (u64, u64)> {
    if announced == known as u64 { Ok(()) } else { Err((announced, known as u64)) }
}

impl LocalView {
    /// Makes a view that has no words of partners yet.
    fn new(own: &OwnBlocks<'_>, is_dense: bool) -> LocalView {
        let none = BlockToSend { to: 0, from: 0, into: 0, bytes: 0 };
        LocalView {
            rooms: own.rooms(),
            given_by: BTreeMap::new(),
            gives: vec![none; own.with.present()[0].len()],
            gets: vec![(0, 0); own.with.present()[1].len()],
            is_dense,
        }
    }

    /// Builds the part of the member whose view this is.
    fn own_part(&self, ranks: usize, part: &mut RankPart) {
        part.buffer("data", self.rooms[0]);
        part.buffer("result", self.rooms[1]);
        if self.is_dense {
            return put_all(part, ranks, |to| self.gives[to]);
        }
        let named = self.gets.iter().map(|&(_, number)| number + 1).max().unwrap_or(0);
        put_blocks(part, &self.gives, &self.gets, named.max(self.gives.len()));
    }

    /// Builds the known portion of another member's part.
    fn other_part(&self, part: &mut RankPart) {
        part.buffer("data", self.given_by.get(&part.rank()).copied().unwrap_or(0));
        part.buffer("result", 0);
    }

    fn schedule(self, name: &str, me: usize, ranks: usize) -> Schedule {
        let part = move |part: &mut RankPart| match part.rank() == me {
            true => self.own_part(ranks, part),
            false => self.other_part(part),
        };
        Schedule::new(name, ranks, part, |_| Contract::default()).with_local_view()
    }
}

/// Returns an error unless memory can have so many bytes together.
fn check_sum(bytes: &[usize]) -> Result<(), Cause> {
    match bytes.iter().try_fold(0, |all: usize, &one| all.checked_add(one)) {
        Some(all) if all <= isize::MAX as usize => Ok(()),
        _ => Err(Cause::Argument("the blocks have more bytes than memory can have".into())),
    }
}

impl Communicator {
    /// Prepares an exchange with all members. `gives` are the bytes of the block for each member. The members learn the
    /// lengths of the blocks that they receive.
    pub fn plan_alltoall_v(&self, gives: &[usize], of: ValueKind, prepare: &dyn Fn()) -> Result<Plan> {
        let with = Neighbourhood::everybody(self.rank().index(), self.size());
        self.plan_local_view("alltoall", (&with, true), (gives, None), of, prepare)
    }

    /// Prepares an exchange with neighbours: of blocks of so many bytes each, or of blocks of different lengths, whose
    /// receivers learn them.
    pub fn plan_neighbor_alltoall(
        &self,
        with: &Neighbourhood,
        bytes: Result<usize, &[usize]>,
        of: ValueKind,
        prepare: &dyn Fn(),
    ) -> Result<Plan> {
        let name = "neighbor_alltoall";
        match bytes {
            Ok(bytes) => {
                let [gives, gets] = with.blocks().map(|blocks| vec![bytes; blocks]);
                self.plan_local_view(name, (with, false), (&gives, Some(&gets)), of, prepare)
            }
            Err(gives) => self.plan_local_view(name, (with, false), (gives, None), of, prepare),
        }
    }

    /// Prepares an exchange. Errors: two partners disagree about the bytes of a block. Then no member has the plan.
    fn plan_local_view(
        &self,
        name: &str,
        (with, is_dense): (&Neighbourhood, bool),
        (gives, gets): (&[usize], Option<&[usize]>),
        kind: ValueKind,
        prepare: &dyn Fn(),
    ) -> Result<Plan> {
        let what = format!("{name}_init");
        let call = || self.call_on(&format!("{what}({} blocks for others)", gives.len()));
        let view = self.begin_named(&what, &call)?.run_agreed(|| {
            let learned;
            let gets = match gets {
                Some(gets) => gets,
                None => match self.learn_lengths((with, is_dense), gives, &call)? {
                    Ok(lengths) => {
                        learned = lengths;
                        &learned
                    }
                    Err(error) => return Ok(Err(error)),
                },
            };
            if let Err(error) = self.check_all(self.check_bytes((gives, gets), &call), &call)? {
                return Ok(Err(error));
            }
            let own = OwnBlocks { with, gives: ranges(gives), gets: ranges(gets) };
            let mut view = LocalView::new(&own, is_dense);
            let agreed = self.exchange_lengths(&own, &mut view, &call)?;
            Ok(self.check_all(agreed, &call)?.map(|()| view))
        })?;
        let spans = DataSpans::of_two_buffers(view.rooms);
        let schedule = view.schedule(name, self.rank().index(), self.size());
        let values = PlanValues { kind, operation: ReduceOperation::Nothing };
        self.plan_as(&what, name, (&schedule, &|_| spans), values, prepare)
    }

    /// Returns the bytes of the blocks that the partners have for this member, whose blocks for them have `gives`
    /// bytes.
    fn learn_lengths(
        &self,
        (with, is_dense): (&Neighbourhood, bool),
        gives: &[usize],
        call: &dyn Fn() -> String,
    ) -> Result<Result<Vec<usize>>> {
        let (counts, [blocks, sources]) = (gives.len(), with.blocks());
        let own = match counts == blocks {
            true => check_sum(gives),
            false if is_dense => {
                Err(Cause::Argument(format!("{counts} counts, but the group has {blocks} members")))
            }
            false => Err(Cause::Argument(format!("{counts} counts for {blocks} neighbours"))),
        };
        if let Err(error) = self.check_all(own.map_err(|cause| self.worker().fault(cause, call)), call)? {
            return Ok(Err(error));
        }
        let learned = match is_dense {
            true => self.alltoall_steps(gives),
            false => {
                let (me, out) = (self.rank().index(), ranges(gives));
                let exchange = BlockExchange::with_neighbours(me, with, &out, vec![None; sources]);
                run_now(exchange.learn_lengths::<u8>(&self.channel))
            }
        };
        learned.map(Ok).map_err(|error| self.step_failed(error, call))
    }

    /// Returns an error unless the sums of the lengths fit in memory.
    fn check_bytes(&self, (gives, gets): (&[usize], &[usize]), call: &dyn Fn() -> String) -> Result<()> {
        let sums = check_sum(gives).and_then(|()| check_sum(gets));
        sums.map_err(|cause| self.worker().fault(cause, call))
    }

    /// Exchanges words with all partners. The inner error means that this member disagrees with a partner.
    fn exchange_lengths(
        &self,
        own: &OwnBlocks<'_>,
        view: &mut LocalView,
        call: &dyn Fn() -> String,
    ) -> Result<Result<()>> {
        let (me, partners) = (self.rank().index(), own.with.partners());
        let mut agreed = Ok(());
        let mut learn = |partner: &Partner, lengths: &[u64]| {
            let learned = own.learn(partner, lengths, view);
            if let Err((one, other)) = learned
                && agreed.is_ok()
            {
                let cause = Cause::bytes_differ(partner.member, one, other);
                agreed = Err(self.worker().fault(cause, call));
            }
        };
        for partner in partners.iter().filter(|partner| partner.member == me) {
            learn(partner, &own.lengths(partner));
        }
        for &round in own.with.rounds() {
            let received = self.swap_words(own, round).map_err(|error| self.step_failed(error, call))?;
            round.from.iter().for_each(|&from| learn(&partners[from], &received));
        }
        Ok(agreed)
    }

    fn swap_words(&self, own: &OwnBlocks<'_>, Round { to, from }: Round) -> Result<Vec<u64>> {
        let partner = |number: usize| &own.with.partners()[number];
        let words = |partner: &Partner| vec![0; 1 + 2 * (partner.gives.len() + partner.gets.len())];
        let lengths = to.map(|to| own.lengths(partner(to)));
        let mut received = from.map_or(Vec::new(), |from| words(partner(from)));
        let into = bytemuck::cast_slice_mut(&mut received);
        match (to.map(partner), from.map(partner), &lengths) {
            (Some(to), Some(from), Some(lengths)) => {
                let lengths = bytemuck::cast_slice(lengths);
                run_now(self.channel.exchange(lengths, to.member, into, from.member))?;
            }
            (Some(to), None, Some(lengths)) => {
                run_now(self.channel.send(bytemuck::cast_slice(lengths), to.member))?;
            }
            (_, Some(from), _) => run_now(self.channel.recv(into, from.member))?,
            _ => {}
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tasuki_schedule::neighbour_graph::NeighbourGraph;
    use tasuki_schedule::shape::{CollectiveKind, Counts, Shape};

    /// Returns the views of members after each has sent its words to its partners.
    fn all_views(with: &[Neighbourhood], counts: &[[Vec<usize>; 2]], is_dense: bool) -> Vec<LocalView> {
        let own = |(with, [gives, gets]): (_, &[Vec<usize>; 2])| OwnBlocks {
            with,
            gives: ranges(gives),
            gets: ranges(gets),
        };
        let all: Vec<OwnBlocks<'_>> = with.iter().zip(counts).map(own).collect();
        let learned = |(me, own): (usize, &OwnBlocks<'_>)| {
            let mut view = LocalView::new(own, is_dense);
            for partner in own.with.partners() {
                let theirs = &all[partner.member];
                let back = theirs.with.partners().iter().find(|back| back.member == me).expect("both know");
                own.learn(partner, &theirs.lengths(back), &mut view).expect("they agree");
            }
            view
        };
        all.iter().enumerate().map(learned).collect()
    }

    /// Proves that the parts that members build from their own views are a correct schedule together.
    fn prove(
        ranks: usize,
        contract: impl Fn(usize) -> Contract + Send + Sync + 'static,
        view: Vec<LocalView>,
    ) {
        let part = move |part: &mut RankPart| view[part.rank()].own_part(ranks, part);
        let whole = Schedule::new("seen", ranks, part, contract);
        whole.check().unwrap_or_else(|fault| panic!("{ranks} ranks: {fault}"));
    }

    #[test]
    fn local_views_of_all_members_make_an_exchange() {
        for ranks in 1..=6 {
            let bytes = |from: usize, to: usize| (from * 3 + to * 2) % 4 * 8;
            let with: Vec<_> = (0..ranks).map(|me| Neighbourhood::everybody(me, ranks)).collect();
            let row = |me: usize| (0..ranks).map(|to| bytes(me, to)).collect();
            let column = |me: usize| (0..ranks).map(|from| bytes(from, me)).collect();
            let counts: Vec<_> = (0..ranks).map(|me| [row(me), column(me)]).collect();
            let matrix = (0..ranks * ranks).map(|at| bytes(at / ranks, at % ranks) as u64).collect();
            let shape = Shape::new(CollectiveKind::Alltoall, ranks, 0, 8);
            let shape = Shape { counts: Counts::Matrix(matrix), ..shape };
            for is_dense in [true, false] {
                let shape = shape.clone();
                prove(ranks, move |rank| shape.contract(rank), all_views(&with, &counts, is_dense));
            }
        }
    }

    #[test]
    fn local_views_of_a_grid_make_an_exchange() {
        let grids: [(&[usize], &[bool]); 6] = [
            (&[1], &[true]),
            (&[2], &[true]),
            (&[1, 2], &[false, false]),
            (&[3, 1], &[false, true]),
            (&[2, 2], &[true, false]),
            (&[2, 3], &[true, true]),
        ];
        for (dims, periodic) in grids {
            let whole = NeighbourGraph::cartesian(dims, periodic, 24).expect("there are ranks");
            let ranks = whole.ranks();
            let with: Vec<_> = (0..ranks).map(|me| Neighbourhood::of_grid(me, dims, periodic)).collect();
            let each = |one: &Neighbourhood| one.blocks().map(|count| vec![24; count]);
            let counts: Vec<_> = with.iter().map(each).collect();
            let shape = Shape::new(CollectiveKind::Neighbours, ranks, 0, 8);
            let shape = Shape { counts: Counts::Graph(Arc::new(whole)), ..shape };
            let views = all_views(&with, &counts, false);
            // The contract has no places for blocks of missing neighbours.
            let place = move |direction: usize, rank: usize, at: u64| {
                with[rank].present()[direction][(at / 24) as usize] as u64 * 24
            };
            let contract = move |rank: usize| {
                let mut contract = shape.contract(rank);
                contract.inputs.iter_mut().for_each(|span| span.bytes = 24 * 2 * dims.len() as u64);
                for (span, origin) in &mut contract.outputs {
                    span.offset = place(1, rank, span.offset);
                    origin.offset = place(0, origin.ranks[0] as usize, origin.offset);
                }
                contract
            };
            prove(ranks, contract, views);
        }
    }

    #[test]
    fn blocks_of_other_lengths_are_found() {
        let with: Vec<_> = (0..2).map(|me| Neighbourhood::everybody(me, 2)).collect();
        let own = |me: usize, gives: &[usize], gets: &[usize]| OwnBlocks {
            with: &with[me],
            gives: ranges(gives),
            gets: ranges(gets),
        };
        let (first, second) = (own(0, &[0, 5], &[0, 6]), own(1, &[7, 0], &[5, 0]));
        let learn = |one: &OwnBlocks<'_>, other: &OwnBlocks<'_>, at: usize| {
            let lengths = other.lengths(&other.with.partners()[1 - at]);
            one.learn(&one.with.partners()[at], &lengths, &mut LocalView::new(one, true))
        };
        assert_eq!((learn(&first, &second, 1), learn(&second, &first, 0)), (Err((7, 6)), Err((6, 7))));
    }
}
