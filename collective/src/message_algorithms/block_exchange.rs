//! Exchanges of blocks whose lengths only the two members that exchange them know: calls with a length for each block,
//! and exchanges with neighbours.
//!
//! Before any block is sent, each member sends each of its partners the lengths that it expects, in a message of one
//! cache line. So two members that disagree about a length both get an error. This costs one message latency more than
//! the blocks alone.

use super::{Peers, disagree};
use crate::neighbourhood::{Neighbourhood, Partner, Round};
use bytemuck::{Pod, Zeroable};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use tasuki_core::base::{Cause, Result};

/// What a member sends and receives in an exchange, in numbers of values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockExchange {
    /// The blocks that the member sends itself: their ranges in the sent and in the received values.
    own: Vec<[Range<usize>; 2]>,
    /// The lengths of the blocks between it and each other partner.
    lengths: Vec<BlockLengths>,
    /// The transfers, in an order in which no members wait for each other in a cycle.
    transfers: Vec<Transfer>,
    /// Number of values that it receives.
    received: usize,
}

/// A block that is sent, and one that is received meanwhile. Each has the other member and the range of values.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Transfer {
    to: Option<(usize, Range<usize>)>,
    from: Option<(usize, Range<usize>)>,
}

/// What a member knows about the lengths of the blocks between it and a partner.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BlockLengths {
    partner: usize,
    gives: Vec<usize>,
    gets: Vec<usize>,
}

/// The lengths of the blocks that go in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct SideLengths {
    /// Bytes of all blocks together.
    bytes: u64,
    /// Hash of the lengths of the blocks; 0 if there is at most one.
    division: u64,
}

impl SideLengths {
    fn of<T>(counts: &[usize]) -> SideLengths {
        let mut division = DefaultHasher::new();
        counts.hash(&mut division);
        let bytes = counts.iter().map(|&count| (count * size_of::<T>()) as u64).sum();
        SideLengths { bytes, division: if counts.len() > 1 { division.finish() } else { 0 } }
    }
}

impl BlockLengths {
    /// Returns the lengths of what this member gives and gets.
    fn sides<T>(&self) -> [SideLengths; 2] {
        [SideLengths::of::<T>(&self.gives), SideLengths::of::<T>(&self.gets)]
    }
}

/// Returns the ranges of consecutive blocks that have `counts` values each.
pub(crate) fn ranges(counts: &[usize]) -> Vec<Range<usize>> {
    let one = |end: &mut usize, &count: &usize| {
        let begin = *end;
        *end += count;
        Some(begin..*end)
    };
    counts.iter().scan(0, one).collect()
}

impl BlockExchange {
    /// Makes the exchange of member `me` of `size` members in which it sends each member the range that `give` returns
    /// for it, and receives the range that `get` returns.
    pub(crate) fn with_each(
        me: usize,
        size: usize,
        give: impl Fn(usize) -> Option<Range<usize>>,
        get: impl Fn(usize) -> Option<Range<usize>>,
    ) -> BlockExchange {
        let mut exchange = BlockExchange::default();
        exchange.own.extend(give(me).zip(get(me)).map(|(give, get)| [give, get]));
        for steps in 1..size {
            let (to, from) = ((me + steps) % size, (me + size - steps) % size);
            let counts = |range: Option<Range<usize>>| range.iter().map(ExactSizeIterator::len).collect();
            let lengths = BlockLengths { partner: to, gives: counts(give(to)), gets: counts(get(to)) };
            if !(lengths.gives.is_empty() && lengths.gets.is_empty()) {
                exchange.lengths.push(lengths);
            }
            let [to, from] = [give(to).map(|range| (to, range)), get(from).map(|range| (from, range))];
            if to.is_some() || from.is_some() {
                exchange.transfers.push(Transfer { to, from });
            }
        }
        exchange.received = (0..size).filter_map(get).map(|range| range.end).max().unwrap_or(0);
        exchange
    }

    /// Makes the exchange of member `me` with its neighbours. `gives` and `gets` hold the number of values of each
    /// block.
    pub(crate) fn with_neighbours(
        me: usize,
        with: &Neighbourhood,
        (gives, gets): (&[usize], &[usize]),
    ) -> BlockExchange {
        let (out, into) = (ranges(gives), ranges(gets));
        let mut exchange =
            BlockExchange { received: into.last().map_or(0, |last| last.end), ..Default::default() };
        for Partner { member, gives: give, gets: get } in with.partners() {
            if *member == me {
                let both = give.iter().zip(get).map(|(&give, &get)| [out[give].clone(), into[get].clone()]);
                exchange.own.extend(both);
                continue;
            }
            let counts =
                |numbers: &[usize], counts: &[usize]| numbers.iter().map(|&one| counts[one]).collect();
            let (gives, gets) = (counts(give, gives), counts(get, gets));
            exchange.lengths.push(BlockLengths { partner: *member, gives, gets });
        }
        for &Round { to, from } in with.rounds() {
            let partner = |number: Option<usize>| number.map(|number| &with.partners()[number]);
            let (to, from) = (partner(to), partner(from));
            let count = to.map_or(0, |to| to.gives.len()).max(from.map_or(0, |from| from.gets.len()));
            exchange.transfers.extend((0..count).map(|turn| Transfer {
                to: to.and_then(|to| Some((to.member, out[*to.gives.get(turn)?].clone()))),
                from: from.and_then(|from| Some((from.member, into[*from.gets.get(turn)?].clone()))),
            }));
        }
        exchange
    }

    /// Returns the number of values that the member receives.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// Returns an error unless this member sends itself blocks of the lengths that it receives from itself.
    pub(crate) fn check_own(&self) -> Result<(), Cause> {
        match self.own.iter().find(|[give, get]| give.len() != get.len()) {
            Some([give, get]) => Err(Cause::Argument(format!(
                "this member's block for itself has {} values, but its count is {}",
                give.len(),
                get.len()
            ))),
            None => Ok(()),
        }
    }

    /// Sends the blocks of `values`, and receives blocks into `all`.
    pub(crate) async fn run<T: Pod>(&self, peers: &impl Peers, values: &[T], all: &mut [T]) -> Result<()> {
        for [give, get] in &self.own {
            all[get.clone()].copy_from_slice(&values[give.clone()]);
        }
        self.agree_on_lengths::<T>(peers).await?;
        for Transfer { from, .. } in &self.transfers {
            if let Some((from, range)) = from {
                peers.expect(range.len() * size_of::<T>(), *from)?;
            }
        }
        for Transfer { to, from } in &self.transfers {
            let out = to.clone().map(|(to, range)| (to, bytemuck::cast_slice(&values[range])));
            let into = from.clone().map(|(from, range)| (from, bytemuck::cast_slice_mut(&mut all[range])));
            match (out, into) {
                (Some((to, out)), Some((from, into))) => peers.exchange(out, to, into, from).await?,
                (Some((to, out)), None) => peers.send(out, to).await?,
                (None, Some((from, into))) => peers.recv(into, from).await?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Sends this member's lengths to all partners, and compares theirs with them.
    async fn agree_on_lengths<T>(&self, peers: &impl Peers) -> Result<()> {
        // Prepost, so that neither of two partners waits for the other's receive.
        for own in &self.lengths {
            peers.expect(size_of::<[SideLengths; 2]>(), own.partner)?;
        }
        for own in &self.lengths {
            peers.send(bytemuck::bytes_of(&own.sides::<T>()), own.partner).await?;
        }
        for own in &self.lengths {
            let mut theirs = [SideLengths::zeroed(); 2];
            peers.recv(bytemuck::bytes_of_mut(&mut theirs), own.partner).await?;
            let [gives, gets] = own.sides::<T>();
            let both = [(gets, theirs[0]), (gives, theirs[1])];
            match both.into_iter().find(|(ours, theirs)| ours != theirs) {
                Some((ours, theirs)) if ours.bytes == theirs.bytes => {
                    let text = format!("member {} divides the same bytes into other blocks", own.partner);
                    let cause = Cause::mismatch(Some(own.partner), text);
                    return Err(peers.worker().fault(cause, String::new));
                }
                Some((ours, theirs)) => {
                    return Err(disagree(peers.worker(), ours.bytes, theirs.bytes, own.partner));
                }
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_one_behind_the_other() {
        assert_eq!(ranges(&[2, 0, 3]), [0..2, 2..2, 2..5]);
    }

    #[test]
    fn a_root_exchanges_blocks_with_each_member() {
        let counts = ranges(&[1, 2, 3]);
        let root =
            BlockExchange::with_each(1, 3, |to| (to == 1).then_some(0..2), |from| Some(counts[from].clone()));
        assert_eq!((root.received(), &root.own), (6, &vec![[0..2, 1..3]]));
        let partner = |partner, gets| BlockLengths { partner, gives: vec![], gets: vec![gets] };
        assert_eq!(root.lengths, [partner(2, 3), partner(0, 1)]);
        let from = |member, range| Transfer { to: None, from: Some((member, range)) };
        assert_eq!(root.transfers, [from(0, 0..1), from(2, 3..6)]);
    }

    #[test]
    fn lengths_hold_bytes_and_division() {
        let of = SideLengths::of::<u32>;
        assert_eq!(of(&[9]), SideLengths { bytes: 36, division: 0 });
        assert_ne!(of(&[0, 9]), of(&[9, 0]));
        assert_ne!(of(&[2, 7]), of(&[9]));
        assert_eq!(of(&[]), of(&[0]));
    }
}
