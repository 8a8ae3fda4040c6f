//! Exchanges blocks whose lengths only the two members that exchange them know.
//!
//! Each member first sends each of its partners the lengths of all blocks between the two, as this member knows them.
//! So if two members disagree, both get an error before any block is sent. Blocks that fit behind the lengths are part
//! of that first message.

use crate::exchange_partners::{ExchangeBlocks, Partner};
use crate::nonblocking::channel::{CallChannel, ChannelRecv};
use bytemuck::Pod;
use std::borrow::Cow;
use std::ops::Range;
use tasuki_core::base::{Rank, Result};
use tasuki_message::{PendingSend, SHORT_MAX};

/// The first message between a member and a partner: the bytes of each block.
struct LengthLine<'b> {
    partner: &'b Partner,
    gives: Vec<u64>,
    gets: Vec<u64>,
}

impl LengthLine<'_> {
    fn of<'b, T>(blocks: &'b ExchangeBlocks, partner: &'b Partner) -> LengthLine<'b> {
        let bytes = |count: &usize| (count * size_of::<T>()) as u64;
        let [gives, gets] = blocks.counts(partner).map(|counts| counts.iter().map(bytes).collect());
        LengthLine { partner, gives, gets }
    }

    /// Returns the bytes of the lengths.
    fn head(&self) -> usize {
        (self.gives.len() + self.gets.len()) * size_of::<u64>()
    }

    /// Returns the most bytes that such a message may have.
    fn room(&self) -> usize {
        self.head().max(SHORT_MAX)
    }

    /// Returns true if blocks of these lengths fit into the first message.
    fn takes(&self, bytes: &[u64]) -> bool {
        self.head() as u64 + bytes.iter().sum::<u64>() <= SHORT_MAX as u64
    }

    /// Returns the first message.
    fn with_lengths<T: Pod>(&self, values: &[T]) -> Vec<u8> {
        let lengths = self.gives.iter().chain(&self.gets);
        let mut line: Vec<u8> = lengths.flat_map(|bytes| bytes.to_le_bytes()).collect();
        if self.takes(&self.gives) {
            line.extend_from_slice(bytemuck::cast_slice(values));
        }
        line
    }

    /// Returns the first length that differs: as the partner's message has it, and as this member knows it.
    fn differs(&self, message: &[u8]) -> Option<(u64, u64)> {
        let mut words = message.chunks_exact(size_of::<u64>());
        let known = self.gets.iter().chain(&self.gives);
        let with_words = known.map(|&known| {
            let word = words.next().and_then(|word| word.try_into().ok());
            (word.map_or(0, u64::from_le_bytes), known)
        });
        let length = (message.len() as u64, self.expected());
        with_words.chain([length]).find(|(got, expected)| got != expected)
    }

    /// Returns the expected bytes of the partner's message.
    fn expected(&self) -> u64 {
        let with = if self.takes(&self.gets) { self.gets.iter().sum() } else { 0 };
        self.head() as u64 + with
    }
}

/// Sends each partner its blocks of `values`, and receives theirs.
pub(super) async fn swap<T: Pod + Send>(
    channel: &CallChannel,
    values: Vec<T>,
    blocks: ExchangeBlocks,
) -> Result<Vec<T>> {
    let mut all = vec![T::zeroed(); blocks.all()];
    let others = blocks.partners.iter().filter(|partner| partner.member != channel.place);
    let lines: Vec<LengthLine<'_>> = others.map(|partner| LengthLine::of::<T>(&blocks, partner)).collect();
    let begin_receive = |line: &LengthLine<'_>| channel.recv::<u8>(line.room(), line.partner.member);
    let receives: Vec<ChannelRecv> = lines.iter().map(begin_receive).collect::<Result<_>>()?;
    let sends = send_first(channel, &values, &blocks, &lines)?;
    blocks.keep(channel.place, &values, &mut all);
    let (mut coming, mut sent) = (Vec::new(), Vec::new());
    for ((line, receive), send) in lines.iter().zip(receives).zip(sends) {
        let member = line.partner.member;
        let theirs = channel.recv_up_to(receive, line.room()).await?;
        if let Some((one, other)) = line.differs(&theirs) {
            return Err(channel.disagree(one, other, Rank(member as u32)));
        }
        channel.sent([send]).await?; // completes soon: the partner posted its receive before it sent `theirs`
        if line.takes(&line.gets) {
            unpack(&theirs[line.head()..], &mut all, &blocks.gets, &line.partner.gets);
        } else {
            let bytes = line.gets.iter().sum::<u64>() as usize;
            coming.push((line, bytes, channel.recv::<u8>(bytes, member)?));
        }
        if !line.takes(&line.gives) {
            sent.push(channel.send(&packed(&values, &blocks.gives, &line.partner.gives), member)?);
        }
    }
    for (line, bytes, receive) in coming {
        if let [only] = line.partner.gets[..] {
            channel.complete_recv(receive, &mut all[blocks.gets[only].clone()]).await?;
        } else {
            let theirs = channel.recv_up_to(receive, bytes).await?;
            unpack(&theirs, &mut all, &blocks.gets, &line.partner.gets);
        }
    }
    channel.sent(sent).await?;
    Ok(all)
}

/// Begins to send the first messages.
fn send_first<T: Pod>(
    channel: &CallChannel,
    values: &[T],
    blocks: &ExchangeBlocks,
    lines: &[LengthLine<'_>],
) -> Result<Vec<PendingSend>> {
    let one = |line: &LengthLine<'_>| {
        let gives = packed(values, &blocks.gives, &line.partner.gives);
        channel.send(&line.with_lengths(&gives), line.partner.member)
    };
    lines.iter().map(one).collect()
}

/// Returns the given blocks, one after the other.
fn packed<'v, T: Pod>(values: &'v [T], ranges: &[Range<usize>], numbers: &[usize]) -> Cow<'v, [T]> {
    let block = |&number: &usize| &values[ranges[number].clone()];
    match numbers {
        [only] => Cow::Borrowed(block(only)),
        _ => numbers.iter().flat_map(block).copied().collect(),
    }
}

/// Copies blocks, which lie one after the other, to their places.
fn unpack<T: Pod>(mut bytes: &[u8], all: &mut [T], ranges: &[Range<usize>], numbers: &[usize]) {
    for &number in numbers {
        let into: &mut [u8] = bytemuck::cast_slice_mut(&mut all[ranges[number].clone()]);
        let (block, rest) = bytes.split_at(into.len());
        into.copy_from_slice(block);
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_the_partner_knows_differently_is_found() {
        let partner = Partner { member: 1, gives: vec![0], gets: vec![0, 1] };
        let here = ExchangeBlocks::new(&[2], &[0, 9], vec![partner]);
        let there = |gives: &[usize], gets: &[usize]| {
            let partner = Partner { member: 0, gives: vec![0, 1], gets: vec![0] };
            ExchangeBlocks::new(gives, gets, vec![partner])
        };
        let line = LengthLine::of::<u8>(&here, &here.partners[0]);
        let differs = |there: ExchangeBlocks| {
            let theirs = LengthLine::of::<u8>(&there, &there.partners[0]);
            line.differs(&theirs.with_lengths(&vec![0_u8; there.gives[1].end]))
        };
        assert_eq!(differs(there(&[0, 9], &[2])), None);
        assert_eq!(differs(there(&[9, 0], &[2])), Some((9, 0)));
        assert_eq!(differs(there(&[0, 9], &[3])), Some((3, 2)));
        assert_eq!(line.differs(&[]), Some((0, 9)), "the message is empty");
    }
}
