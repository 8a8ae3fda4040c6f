//! Neighbourhoods. A neighbourhood holds the members that one member exchanges blocks with.

use crate::communicator::Communicator;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_schedule::neighbour_graph::sides;

/// A member that this member exchanges blocks with, perhaps itself, and those blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Partner {
    /// Its place.
    pub(crate) member: usize,
    /// The numbers of the blocks that this member sends to the partner, in the order of sending.
    pub(crate) gives: Vec<usize>,
    /// The numbers of the blocks that this member receives from the partner, in the order of sending.
    pub(crate) gets: Vec<usize>,
}

/// The members to which a member sends blocks, and those from which it receives blocks. A block of a missing neighbour
/// has its place among the blocks, but is neither sent nor received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbourhood {
    /// The numbers of blocks in the buffer that this member sends from, and in the one that it receives into.
    blocks: [usize; 2],
    /// The numbers of the blocks that it really sends, and of those that it receives, in ascending order.
    present: [Vec<usize>; 2],
    /// Each partner once, ordered by its place.
    partners: Vec<Partner>,
    /// The rounds of an exchange, nearest partners first. If all members use this order, no members wait for each other
    /// in a cycle.
    rounds: Vec<Round>,
}

/// Two partners at equal distances from this member: one sends to it, it sends to the other. Both are indices of
/// `partners`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Round {
    pub(crate) to: Option<usize>,
    pub(crate) from: Option<usize>,
}

impl Neighbourhood {
    /// Makes the neighbourhood of member `me` of `size` members. `turns` has one entry for each source. If a member is
    /// several sources, it sends the blocks in the order of these entries. None is a missing neighbour.
    fn new(
        (me, size): (usize, usize),
        sources: &[Option<usize>],
        turns: &[usize],
        destinations: &[Option<usize>],
    ) -> Neighbourhood {
        let mut partners: BTreeMap<usize, Partner> = BTreeMap::new();
        let none = |member| Partner { member, gives: vec![], gets: vec![] };
        for (number, to) in destinations.iter().enumerate() {
            to.iter().for_each(|&to| partners.entry(to).or_insert_with(|| none(to)).gives.push(number));
        }
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|&slot| turns[slot]);
        for slot in order {
            let from = sources[slot];
            from.iter().for_each(|&from| partners.entry(from).or_insert_with(|| none(from)).gets.push(slot));
        }
        let partners: Vec<Partner> = partners.into_values().collect();
        let mut rounds: BTreeMap<usize, Round> = BTreeMap::new();
        for (number, partner) in partners.iter().enumerate().filter(|(_, partner)| partner.member != me) {
            rounds.entry((partner.member + size - me) % size).or_default().to = Some(number);
            rounds.entry((me + size - partner.member) % size).or_default().from = Some(number);
        }
        let present = |members: &[Option<usize>]| {
            (0..members.len()).filter(|&number| members[number].is_some()).collect()
        };
        Neighbourhood {
            blocks: [destinations.len(), sources.len()],
            present: [present(destinations), present(sources)],
            partners,
            rounds: rounds.into_values().collect(),
        }
    }

    /// Makes a neighbourhood of all members, in their order.
    pub(crate) fn everybody(me: usize, size: usize) -> Neighbourhood {
        let (all, turns): (Vec<Option<usize>>, Vec<usize>) =
            (0..size).map(|member| (Some(member), member)).unzip();
        Neighbourhood::new((me, size), &all, &turns, &all)
    }

    /// Makes the neighbourhood on a grid, with two blocks for each dimension. The shape must be valid.
    pub(crate) fn of_grid(me: usize, dims: &[usize], periodic: &[bool]) -> Neighbourhood {
        let mut members = vec![None; 2 * dims.len()];
        sides(dims, periodic, me).into_iter().for_each(|(side, member)| members[side] = Some(member));
        // What is sent to one side comes from the opposite side, also between two members that are both sides.
        let turns: Vec<usize> = (0..members.len()).map(|side| side ^ 1).collect();
        Neighbourhood::new((me, dims.iter().product()), &members, &turns, &members)
    }

    /// Returns the numbers of blocks in the buffer that this member sends from, and in the one that it receives into.
    pub fn blocks(&self) -> [usize; 2] {
        self.blocks
    }

    /// Returns the numbers of the blocks that this member really sends, and of those that it receives, in ascending
    /// order: all but those of missing neighbours.
    pub fn present(&self) -> [&[usize]; 2] {
        self.present.each_ref().map(Vec::as_slice)
    }

    pub(crate) fn partners(&self) -> &[Partner] {
        &self.partners
    }

    pub(crate) fn rounds(&self) -> &[Round] {
        &self.rounds
    }
}

impl Communicator {
    /// Returns the neighbourhood of this member on a grid of all members. Collective. Error, on all members: they
    /// passed different grids, or the number of places in the grid is not the number of members.
    pub fn grid(&self, dims: &[usize], periodic: &[bool]) -> Result<Neighbourhood> {
        let call = || self.call_on(&format!("Cartesian::new({dims:?}, {periodic:?})"));
        self.begin_named("Cartesian::new", &call)?.run_agreed(|| {
            let mut hasher = DefaultHasher::new();
            (dims, periodic).hash(&mut hasher);
            let words = self.allgather_steps(&[hasher.finish()]);
            let words = words.map_err(|error| self.step_failed(error, &call))?;
            let fault = |cause| Ok(Err(self.worker().fault(cause, call)));
            let own = words[self.rank().index()];
            if let Some(other) = words.iter().position(|&word| word != own) {
                let text =
                    format!("member {other} passed another grid: pass equal dimensions on all members");
                return fault(Cause::mismatch(Some(other), text));
            }
            let places = dims.iter().try_fold(1_usize, |places, &len| places.checked_mul(len));
            if dims.len() != periodic.len() {
                return fault(Cause::Argument("`dims` and `periodic` must have equal lengths".into()));
            }
            if places != Some(self.size()) {
                let text = format!(
                    "the grid must have as many places as the communicator has members: {}",
                    self.size()
                );
                return fault(Cause::Argument(text));
            }
            Ok(Ok(Neighbourhood::of_grid(self.rank().index(), dims, periodic)))
        })
    }

    /// Returns the neighbourhood of this member in a graph. Each member passes its own edges. Collective. Error, on all
    /// members: two members disagree about the edges between them, or a member names a rank that does not exist.
    pub fn graph(&self, sources: &[Rank], destinations: &[Rank]) -> Result<Neighbourhood> {
        let (gets, gives) = (sources.len(), destinations.len());
        let call = || self.call_on(&format!("Neighbourhood::new({gets} sources, {gives} destinations)"));
        self.begin_named("Neighbourhood::new", &call)?.run_agreed(|| {
        let (me, size) = (self.rank().index(), self.size());
        let known = |ranks: &[Rank]| -> Vec<usize> {
            ranks.iter().map(|rank| rank.index()).filter(|&place| place < size).collect()
        };
        let (from, to) = (known(sources), known(destinations));
        // Numbers of blocks that this member sends to each member and receives from it.
        let mut edges = vec![[0_u32; 2]; size];
        to.iter().for_each(|&member| edges[member][0] += 1);
        from.iter().for_each(|&member| edges[member][1] += 1);
        let received = self.alltoall_steps(&edges).map_err(|error| self.step_failed(error, &call))?;
        let fault = |cause| self.worker().fault(cause, call);
        let differs = |&member: &usize| edges[member] != [received[member][1], received[member][0]];
        let all_known = sources.iter().chain(destinations).find(|rank| rank.index() >= size);
        let own = if let Some(&rank) = all_known {
            Err(fault(self.messages().no_such_member(rank)))
        } else if let Some(member) = (0..size).find(differs) {
            let ([out, into], [theirs, wanted]) = (edges[member], received[member]);
            Err(fault(Cause::mismatch(Some(member), format!(
                "this member sends {out} blocks to member {member} and receives {into} from it, but that member sends \
                 {theirs} and receives {wanted}"
            ))))
        } else {
            Ok(())
        };
        let agreed = self.check_all(own, &call)?;
        let [from, to]: [Vec<Option<usize>>; 2] = [from, to].map(|all| all.into_iter().map(Some).collect());
        Ok(agreed.map(|()| Neighbourhood::new((me, size), &from, &vec![0; from.len()], &to)))
        })
    }

    /// Makes all members fail together, within a collective call. If `own` is an error on any member, each member gets
    /// an inner error: its own, or else that another member was refused.
    pub(crate) fn check_all(&self, own: Result<()>, call: &dyn Fn() -> String) -> Result<Result<()>> {
        let all = self.allgather_steps(&[u64::from(own.is_ok())]);
        let all = all.map_err(|error| self.step_failed(error, call))?;
        let refused = all.iter().position(|&is_well| is_well == 0).map(|other| {
            let text = format!("member {other} was refused: its arguments do not agree with those of others");
            self.worker().fault(Cause::mismatch(Some(other), text), call)
        });
        Ok(own.and_then(|()| refused.map_or(Ok(()), Err)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::neighbour_graph::NeighbourGraph;

    /// The neighbourhoods of all members together are the graph of the whole grid.
    #[test]
    fn a_member_knows_its_part_of_the_grid() {
        let grids: [(&[usize], &[bool]); 5] = [
            (&[2], &[true]),
            (&[1, 3], &[true, false]),
            (&[2, 2], &[true, true]),
            (&[3, 2, 2], &[false, true, false]),
            (&[5], &[true]),
        ];
        for (dims, periodic) in grids {
            let whole = NeighbourGraph::cartesian(dims, periodic, 1).expect("there are ranks");
            let of = |me| Neighbourhood::of_grid(me, dims, periodic);
            for me in 0..whole.ranks() {
                let own = of(me);
                assert_eq!(own.blocks, [2 * dims.len(); 2]);
                assert_eq!(own.present[0].len(), whole.sent_blocks(me).count());
                for partner in &own.partners {
                    let theirs = of(partner.member);
                    let back = theirs.partners.iter().find(|theirs| theirs.member == me).expect("both know");
                    assert_eq!(partner.gives.len(), back.gets.len());
                    for (&give, &slot) in partner.gives.iter().zip(&back.gets) {
                        assert_eq!(slot, give ^ 1, "what goes to one side comes from the other");
                        // The graph numbers blocks without those of missing neighbours.
                        let number =
                            own.present[0].iter().position(|&sent| sent == give).expect("it is sent");
                        let place = theirs.present[1].iter().position(|&got| got == slot).expect("it comes");
                        let (edge, _) = whole.sent_blocks(me).nth(number).expect("it is there");
                        assert_eq!((edge.to, edge.slot), (partner.member, place), "{dims:?} {periodic:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_of_missing_neighbours_have_their_places() {
        let corner = Neighbourhood::of_grid(0, &[2, 3], &[false, true]);
        assert_eq!(corner.present(), [&[1, 2, 3][..]; 2], "nobody is above");
        let alone = Neighbourhood::of_grid(0, &[1, 1], &[true, false]);
        let oneself = Partner { member: 0, gives: vec![0, 1], gets: vec![1, 0] };
        assert_eq!((alone.partners(), alone.blocks()), (&[oneself][..], [4, 4]));
    }

    #[test]
    fn rounds_pair_partners_at_equal_distances() {
        let ring = Neighbourhood::of_grid(1, &[4], &[true]);
        let members: Vec<usize> = ring.partners.iter().map(|partner| partner.member).collect();
        assert_eq!(members, [0, 2]);
        let round = |to, from| Round { to: Some(to), from: Some(from) };
        assert_eq!(ring.rounds, [round(1, 0), round(0, 1)]);
        assert_eq!(Neighbourhood::of_grid(0, &[1], &[true]).rounds, []);
    }
}
