//! Exchanges of blocks whose lengths only the two members that exchange them know: calls with a length for each block,
//! and exchanges with neighbours.
//!
//! Before any block is sent, each member sends each of its partners the lengths of the blocks that it gives, and those
//! that it expects, in messages of one cache line. A receiver that expects no length learns it from the sender. Two
//! members that disagree about a length both get an error. This costs one message latency more than the blocks alone.

use super::{ONE_LINE_MAX, Peers, disagree};
use crate::blocking::channel::CollectiveChannel;
use crate::neighbourhood::{Neighbourhood, Partner, Round};
use bytemuck::Pod;
use std::ops::Range;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::StridedView;
use tasuki_core::segment::check_available;

/// What a member sends and receives in an exchange, in numbers of values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct BlockExchange {
    /// The blocks that the member sends itself: the range of the sent values, and the number of the received block.
    own: Vec<(Range<usize>, usize)>,
    /// What it exchanges with each other partner.
    partners: Vec<PartnerBlocks>,
    /// The transfers, in an order in which no members wait for each other in a cycle.
    transfers: Vec<Transfer>,
    /// The number of values of each received block, in the order of the blocks. None: the sender knows it.
    gets: Vec<Option<usize>>,
    /// True if all received blocks must have the same length, also if only the senders know it.
    is_equal: bool,
}

/// A block that is sent, and one that is received meanwhile. Each has the other member, and the range of the sent
/// values or the number of the received block.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Transfer {
    to: Option<(usize, Range<usize>)>,
    from: Option<(usize, usize)>,
}

/// The blocks between this member and a partner.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PartnerBlocks {
    member: usize,
    /// The numbers of values of the blocks that go to the partner.
    gives: Vec<usize>,
    /// The numbers of the blocks that come from it.
    gets: Vec<usize>,
}

/// In place of the bytes of a block: the receiver takes a block of any length.
const ANY_LENGTH: u64 = u64::MAX;
/// Lengths in one message.
const LENGTHS_MAX: usize = ONE_LINE_MAX / size_of::<u64>();

fn bytes_of<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}

/// Returns the numbers of values of blocks of memory.
pub(crate) fn counts_of<T>(blocks: &[StridedView<'_>]) -> Vec<usize> {
    blocks.iter().map(|block| block.len() / size_of::<T>().max(1)).collect()
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

/// Returns the sum of the counts. Error: no memory has room for so many values.
pub(crate) fn total(counts: &[usize]) -> Result<usize, Cause> {
    match counts.iter().try_fold(0, |all: usize, &count| all.checked_add(count)) {
        Some(all) => Ok(all),
        None => Err(check_available(u64::MAX).map_or_else(
            |error| error.cause().clone(),
            |()| Cause::Argument("the sum of the counts is above 2^64".into()),
        )),
    }
}

impl BlockExchange {
    /// Makes the exchange of member `me` of `size` members in which it sends each member the range that `give` returns
    /// for it, and receives a block of the length that `get` returns, or of any length.
    pub(crate) fn with_each(
        me: usize,
        size: usize,
        give: impl Fn(usize) -> Option<Range<usize>>,
        get: impl Fn(usize) -> Option<Option<usize>>,
    ) -> BlockExchange {
        let mut exchange = BlockExchange::default();
        let mut numbers = vec![None; size];
        for (member, number) in numbers.iter_mut().enumerate() {
            if let Some(known) = get(member) {
                *number = Some(exchange.gets.len());
                exchange.gets.push(known);
            }
        }
        exchange.own.extend(give(me).zip(numbers[me]));
        for steps in 1..size {
            let (to, from) = ((me + steps) % size, (me + size - steps) % size);
            let gives: Vec<usize> = give(to).iter().map(ExactSizeIterator::len).collect();
            let gets: Vec<usize> = numbers[to].into_iter().collect();
            if !(gives.is_empty() && gets.is_empty()) {
                exchange.partners.push(PartnerBlocks { member: to, gives, gets });
            }
            let to = give(to).map(|range| (to, range));
            let from = numbers[from].map(|number| (from, number));
            if to.is_some() || from.is_some() {
                exchange.transfers.push(Transfer { to, from });
            }
        }
        exchange
    }

    /// Makes the exchange of member `me` with its neighbours. `out` has the range of each block that it sends, and
    /// `gets` the length of each block that it receives, if it knows that.
    pub(crate) fn with_neighbours(
        me: usize,
        with: &Neighbourhood,
        out: &[Range<usize>],
        gets: Vec<Option<usize>>,
    ) -> BlockExchange {
        let mut exchange = BlockExchange { gets, ..Default::default() };
        for Partner { member, gives: give, gets } in with.partners() {
            if *member == me {
                exchange.own.extend(give.iter().zip(gets).map(|(&give, &get)| (out[give].clone(), get)));
                continue;
            }
            let gives = give.iter().map(|&one| out[one].len()).collect();
            exchange.partners.push(PartnerBlocks { member: *member, gives, gets: gets.clone() });
        }
        for &Round { to, from } in with.rounds() {
            let partner = |number: Option<usize>| number.map(|number| &with.partners()[number]);
            let (to, from) = (partner(to), partner(from));
            let count = to.map_or(0, |to| to.gives.len()).max(from.map_or(0, |from| from.gets.len()));
            exchange.transfers.extend((0..count).map(|turn| Transfer {
                to: to.and_then(|to| Some((to.member, out[*to.gives.get(turn)?].clone()))),
                from: from.and_then(|from| Some((from.member, *from.gets.get(turn)?))),
            }));
        }
        exchange
    }

    /// The same exchange, in which received blocks of different lengths are an error.
    pub(crate) fn with_equal_blocks(self) -> BlockExchange {
        BlockExchange { is_equal: true, ..self }
    }

    /// Returns an error unless this member sends itself blocks of the lengths that it expects from itself.
    pub(crate) fn check_own(&self) -> Result<(), Cause> {
        let differs = |(give, get): &&(Range<usize>, usize)| {
            self.gets[*get].is_some_and(|expected| expected != give.len())
        };
        match self.own.iter().find(differs) {
            Some((give, get)) => Err(Cause::Argument(format!(
                "this member's block for itself has {} values, but its count is {}",
                give.len(),
                self.gets[*get].unwrap_or_default()
            ))),
            None => Ok(()),
        }
    }

    /// Sends the blocks of `values`, and receives blocks into what `room` returns for the number of values that come.
    /// Returns it, and the ends of the blocks in it.
    pub(crate) async fn run<T: Pod, R: AsMut<[T]>>(
        &self,
        peers: &impl Peers,
        values: &[T],
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<(R, Vec<usize>)> {
        let counts = self.learn_lengths::<T>(peers).await?;
        let room = total(&counts).and_then(room);
        let mut room = room.map_err(|cause| peers.worker().fault(cause, || "room for the blocks".into()))?;
        let (all, into) = (room.as_mut(), ranges(&counts));
        for (give, get) in &self.own {
            all[into[*get].clone()].copy_from_slice(&values[give.clone()]);
        }
        for Transfer { from, .. } in &self.transfers {
            if let Some((from, number)) = *from {
                peers.expect(into[number].len() * size_of::<T>(), from)?;
            }
        }
        for Transfer { to, from } in &self.transfers {
            let out = to.clone().map(|(to, range)| (to, bytemuck::cast_slice(&values[range])));
            let into =
                from.map(|(from, number)| (from, bytemuck::cast_slice_mut(&mut all[into[number].clone()])));
            match (out, into) {
                (Some((to, out)), Some((from, into))) => peers.exchange(out, to, into, from).await?,
                (Some((to, out)), None) => peers.send(out, to).await?,
                (None, Some((from, into))) => peers.recv(into, from).await?,
                (None, None) => {}
            }
        }
        Ok((room, into.into_iter().map(|range| range.end).collect()))
    }

    /// Sends the blocks `gives`, whose packed values lie one behind the other in the numbers of this exchange, and receives
    /// into the blocks `gets`.
    pub(crate) async fn run_strided<T: Pod>(
        &self,
        channel: &CollectiveChannel,
        gives: &[StridedView<'_>],
        gets: &[StridedView<'_>],
    ) -> Result<()> {
        self.learn_lengths::<T>(channel).await?;
        let numbers = ranges(&counts_of::<T>(gives));
        let given = |range: &Range<usize>| {
            let number = numbers.iter().position(|numbers| numbers == range);
            number.map(|number| gives[number]).ok_or_else(|| {
                channel.worker().fault(Cause::Bug("a block is none of those given".into()), String::new)
            })
        };
        for (give, get) in &self.own {
            let give = given(give)?;
            let mut packed = vec![0; give.len()];
            give.read(0, &mut packed);
            gets[*get].write(0, &packed);
        }
        for Transfer { from, .. } in &self.transfers {
            if let Some((from, number)) = *from {
                channel.expect(gets[number].len(), from)?;
            }
        }
        for Transfer { to, from } in &self.transfers {
            match (to, from) {
                (Some((to, range)), &Some((from, number))) => {
                    channel.exchange_blocks(given(range)?, Rank(*to), gets[number], Rank(from))?;
                }
                (Some((to, range)), None) => channel.send_blocks(given(range)?, Rank(*to))?,
                (None, &Some((from, number))) => channel.recv_blocks(gets[number], Rank(from))?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Sends this member's lengths to all partners, and compares theirs with them. Returns the number of values of each
    /// received block.
    pub(crate) async fn learn_lengths<T: Pod>(&self, peers: &impl Peers) -> Result<Vec<usize>> {
        let words = |partner: &PartnerBlocks| -> Vec<u64> {
            let gives = partner.gives.iter().map(|&count| bytes_of::<T>(count));
            let gets = partner.gets.iter().map(|&get| self.gets[get].map_or(ANY_LENGTH, bytes_of::<T>));
            gives.chain(gets).collect()
        };
        let ours: Vec<Vec<u64>> = self.partners.iter().map(words).collect();
        let mut theirs: Vec<Vec<u64>> = ours.iter().map(|ours| vec![0; ours.len()]).collect();
        let messages = ours.iter().map(|ours| ours.len().div_ceil(LENGTHS_MAX)).max().unwrap_or(0);
        // All messages are short, and each is received before the next one is sent: no two members wait for each other.
        for number in 0..messages {
            let part = |len: usize| number * LENGTHS_MAX..len.min((number + 1) * LENGTHS_MAX);
            let is_sent = |ours: &[u64]| number * LENGTHS_MAX < ours.len();
            let with = || self.partners.iter().zip(&ours).filter(|(_, ours)| is_sent(ours));
            for (partner, ours) in with() {
                peers.expect(part(ours.len()).len() * size_of::<u64>(), partner.member)?;
            }
            for (partner, ours) in with() {
                peers.send(bytemuck::cast_slice(&ours[part(ours.len())]), partner.member).await?;
            }
            for (partner, theirs) in
                self.partners.iter().zip(&mut theirs).filter(|(_, theirs)| is_sent(theirs))
            {
                let part = part(theirs.len());
                peers.recv(bytemuck::cast_slice_mut(&mut theirs[part]), partner.member).await?;
            }
        }
        let mut counts: Vec<usize> = self.gets.iter().map(|known| known.unwrap_or(0)).collect();
        for (give, get) in &self.own {
            counts[*get] = give.len();
        }
        let mut first_bytes = None;
        for ((partner, ours), theirs) in self.partners.iter().zip(&ours).zip(&theirs) {
            let ((gives, gets), (given, expected)) =
                (ours.split_at(partner.gives.len()), theirs.split_at(partner.gets.len()));
            let both = gets.iter().zip(given).chain(expected.iter().zip(gives));
            let differs = |&(&expected, &given): &(&u64, &u64)| expected != ANY_LENGTH && expected != given;
            let cannot_be = |&(_, &given): &(&u64, &u64)| !given.is_multiple_of(size_of::<T>().max(1) as u64);
            if let Some((&expected, &given)) = both.clone().find(|pair| differs(pair) || cannot_be(pair)) {
                return Err(disagree(peers.worker(), expected, given, partner.member));
            }
            for (&number, &bytes) in partner.gets.iter().zip(given) {
                counts[number] = bytes as usize / size_of::<T>().max(1);
                let first = first_bytes.get_or_insert(bytes);
                if self.is_equal && *first != bytes {
                    return Err(disagree(peers.worker(), *first, bytes, partner.member));
                }
            }
        }
        Ok(counts)
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
        let root = BlockExchange::with_each(1, 3, |to| (to == 1).then_some(0..2), |_| Some(None));
        assert_eq!((&root.own, &root.gets), (&vec![(0..2, 1)], &vec![None; 3]));
        let partner = |member, get| PartnerBlocks { member, gives: vec![], gets: vec![get] };
        assert_eq!(root.partners, [partner(2, 2), partner(0, 0)]);
        let from = |member, number| Transfer { to: None, from: Some((member, number)) };
        assert_eq!(root.transfers, [from(0, 0), from(2, 2)]);
    }

    #[test]
    fn a_member_receives_one_block_from_the_root() {
        let member = BlockExchange::with_each(1, 3, |_| None, |from| (from == 2).then_some(Some(7)));
        assert_eq!((&member.own, &member.gets), (&vec![], &vec![Some(7)]));
        assert_eq!(member.partners, [PartnerBlocks { member: 2, gives: vec![], gets: vec![0] }]);
        assert_eq!(member.transfers, [Transfer { to: None, from: Some((2, 0)) }]);
    }

    #[test]
    fn a_block_for_oneself_has_the_length_that_is_expected() {
        let of = |expected| BlockExchange::with_each(0, 1, |_| Some(0..2), |_| Some(expected)).check_own();
        assert!(of(None).is_ok() && of(Some(2)).is_ok() && of(Some(3)).is_err());
    }
}
