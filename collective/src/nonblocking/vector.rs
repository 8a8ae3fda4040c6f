//! Nonblocking calls whose blocks differ in length.

use super::{Communicator, StartedCollective};
use crate::current_call::{CallWord, VectorCall};
use crate::exchange_partners::{ExchangeBlocks, Partner};
use crate::failure::signature::CallSignature;
use crate::neighbourhood::Neighbourhood;
use crate::nonblocking::length_check::swap;
use bytemuck::Pod;
use tasuki_core::base::{Cause, Rank, Result};

/// Returns the words that name a call in errors and in the call log.
fn words_of<T: 'static>(call: VectorCall, values: usize, root: Rank) -> (CallWord, CallSignature) {
    let is_rooted = matches!(call, VectorCall::GatherV | VectorCall::ScatterV);
    let signature = CallSignature::of_vector_call::<T>(call, if is_rooted { root.index() } else { 0 });
    (CallWord::of_vector_call(call, values, root), signature.nonblocking())
}

impl Communicator {
    /// Begins a gather of blocks to the root, which passes their lengths as `counts`.
    pub fn start_gather_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<StartedCollective<Option<Vec<T>>>> {
        let call = format!("igather_v({} values to rank {root})", values.len());
        self.check_root(root, &|| call.clone())?;
        let is_root = self.rank() == root;
        let blocks = if is_root {
            self.check_size(counts, &|| call.clone())?;
            let gives = |member: usize| if member == root.index() { vec![0] } else { vec![] };
            let partners = self.everybody(gives, |member| vec![member]);
            ExchangeBlocks::new(&[values.len()], counts, partners)
        } else {
            let partner = Partner { member: root.index(), gives: vec![0], gets: vec![] };
            ExchangeBlocks::new(&[values.len()], &[], vec![partner])
        };
        self.check_kept(&blocks, &|| call.clone())?;
        let words = words_of::<T>(VectorCall::GatherV, values.len(), root);
        self.start(words, call, move |channel| async move {
            let all = swap(&channel, values, blocks).await?;
            Ok(is_root.then_some(all))
        })
    }

    /// Begins a scatter of the root's blocks, of lengths `counts`. This member's block has `count` values.
    pub fn start_scatter_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("iscatter_v({count} values from rank {root})");
        self.check_root(root, &|| call.clone())?;
        let blocks = if self.rank() == root {
            self.check_counts(counts, values.len(), &|| call.clone())?;
            let gets = |member: usize| if member == root.index() { vec![0] } else { vec![] };
            ExchangeBlocks::new(counts, &[count], self.everybody(|member| vec![member], gets))
        } else {
            let partner = Partner { member: root.index(), gives: vec![], gets: vec![0] };
            ExchangeBlocks::new(&[], &[count], vec![partner])
        };
        let words = words_of::<T>(VectorCall::ScatterV, count, root);
        self.start_swap(words, call, values, blocks)
    }

    /// Begins a gather of blocks to all members.
    pub fn start_allgather_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("iallgather_v({} values)", values.len());
        self.check_size(counts, &|| call.clone())?;
        let partners = self.everybody(|_| vec![0], |member| vec![member]);
        let blocks = ExchangeBlocks::new(&[values.len()], counts, partners);
        let words = words_of::<T>(VectorCall::AllgatherV, values.len(), self.rank());
        self.start_swap(words, call, values, blocks)
    }

    /// Begins an exchange of blocks with all members.
    pub fn start_alltoall_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        gives: &[usize],
        gets: &[usize],
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("ialltoall_v({} values)", values.len());
        self.check_counts(gives, values.len(), &|| call.clone())?;
        self.check_size(gets, &|| call.clone())?;
        let partners = self.everybody(|member| vec![member], |member| vec![member]);
        let words = words_of::<T>(VectorCall::AlltoallV, values.len(), self.rank());
        self.start_swap(words, call, values, ExchangeBlocks::new(gives, gets, partners))
    }

    /// Begins an exchange with neighbours, with the given number of values for each and from each.
    pub fn start_exchange<T: Pod + Send>(
        &self,
        with: &Neighbourhood,
        values: Vec<T>,
        (gives, gets): (&[usize], &[usize]),
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("iexchange({} values)", values.len());
        let blocks = self.check_exchange(with, values.len(), (gives, gets), &|| call.clone())?;
        let words = words_of::<T>(VectorCall::Exchange, values.len(), self.rank());
        self.start_swap(words, call, values, blocks)
    }

    fn start_swap<T: Pod + Send>(
        &self,
        words: (CallWord, CallSignature),
        call: String,
        values: Vec<T>,
        blocks: ExchangeBlocks,
    ) -> Result<StartedCollective<Vec<T>>> {
        self.check_kept(&blocks, &|| call.clone())?;
        self.start(words, call, move |channel| async move { swap(&channel, values, blocks).await })
    }

    /// Returns all members as partners, this one first and then those after it, so that not all begin with the same
    /// member.
    fn everybody(
        &self,
        gives: impl Fn(usize) -> Vec<usize>,
        gets: impl Fn(usize) -> Vec<usize>,
    ) -> Vec<Partner> {
        let members = (0..self.size()).map(|steps| self.after(self.rank(), steps).index());
        members.map(|member| Partner { member, gives: gives(member), gets: gets(member) }).collect()
    }

    /// Returns an error unless the blocks that a member sends itself have the lengths that it receives.
    pub(crate) fn check_kept(&self, blocks: &ExchangeBlocks, call: &dyn Fn() -> String) -> Result<()> {
        let me = self.rank().index();
        for partner in blocks.partners.iter().filter(|partner| partner.member == me) {
            let [gives, gets] = blocks.counts(partner);
            if gives != gets {
                let text = format!(
                    "this member gives itself blocks of {gives:?} values, and gets {gets:?} of itself"
                );
                return Err(self.worker().fault(Cause::Argument(text), call));
            }
        }
        Ok(())
    }
}
