//! Learns the lengths of blocks that differ between members. In a gather each member knows the length of its own block;
//! in a scatter the root knows all. All members get the same words, so all either accept the lengths or return an
//! error.

use crate::communicator::Communicator;
use crate::current_call::size;
use crate::message_algorithms::bcast::bcast;
use crate::message_algorithms::run_now;
use bytemuck::{Pod, Zeroable};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_schedule::shape::CollectiveKind;

/// What each member sends to all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct MemberCounts {
    /// In a gather, the bytes of its own block; in a scatter, the number of blocks that it passes.
    own: u64,
    /// Hash of the collective.
    collective: u64,
    root: u64,
}

/// The root of a collective that has none.
const EVERYBODY: u64 = u64::MAX;

fn number(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Returns the text that a member prepares something else than the first one, if one does.
fn other_plan(words: &[MemberCounts]) -> Option<String> {
    let differs = |word: &MemberCounts| (word.collective, word.root) != (words[0].collective, words[0].root);
    let other = words.iter().position(differs)?;
    Some(format!("member {other} prepares something else than member 0, or with another root"))
}

/// Returns true if memory can have blocks of these numbers of bytes.
fn fit_in_memory(blocks: &[u64]) -> bool {
    let all = blocks.iter().try_fold(0_u64, |all, &one| all.checked_add(one));
    all.is_some_and(|all| all <= i64::MAX as u64)
}

impl Communicator {
    /// Returns the bytes of each member's block. Each member passes those of its own. Collective. Error, on all
    /// members: they do not agree.
    pub fn agree_on_blocks(
        &self,
        collective: CollectiveKind,
        own: u64,
        root: Option<Rank>,
    ) -> Result<Arc<[u64]>> {
        let what = format!("{}_init", collective.name());
        let call = || self.call_on(&format!("{what}(uneven, {})", size(own)));
        self.begin_named(&what, &call)?.run_agreed(|| {
            let root_of = root.map_or(EVERYBODY, |root| u64::from(root.to_word()));
            let word = MemberCounts { own, collective: number(&collective), root: root_of };
            let words = self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, &call))?;
            let blocks = words.iter().map(|word| word.own).collect();
            Ok(self.checked_blocks(&words, blocks, root, &call))
        })
    }

    /// Returns the bytes of each member's block. The root passes them. Collective. Error, on all members: they do not
    /// agree; the root has not a block for each member.
    pub fn learn_blocks(&self, collective: CollectiveKind, own: &[u64], root: Rank) -> Result<Arc<[u64]>> {
        let what = format!("{}_init", collective.name());
        let call = || self.call_on(&format!("{what}(uneven, {} blocks)", own.len()));
        self.begin_named(&what, &call)?.run_agreed(|| {
            let word =
                MemberCounts { own: own.len() as u64, collective: number(&collective), root: root.0 as u64 };
            let words = self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, &call))?;
            if let Err(error) = self.checked_blocks(&words, Vec::new(), Some(root), &call) {
                return Ok(Err(error));
            }
            let (count, members) = (words[root.index()].own, self.size());
            if count != members as u64 {
                let text = format!("{count} counts, but the group has {members} members");
                let cause = match self.rank() == root {
                    true => Cause::Argument(text),
                    false => Cause::mismatch(Some(root.index()), format!("member {root} has passed {text}")),
                };
                return Ok(Err(self.worker().fault(cause, call)));
            }
            let mut blocks = if self.rank() == root { own.to_vec() } else { vec![0; members] };
            let bytes = bytemuck::cast_slice_mut(&mut blocks);
            run_now(bcast(&self.channel, bytes, root.index()))
                .map_err(|error| self.step_failed(error, &call))?;
            Ok(self.checked_blocks(&words, blocks, Some(root), &call))
        })
    }

    /// Returns the blocks, unless the words of all members show an error.
    fn checked_blocks(
        &self,
        words: &[MemberCounts],
        blocks: Vec<u64>,
        root: Option<Rank>,
        call: &dyn Fn() -> String,
    ) -> Result<Arc<[u64]>> {
        let refuse = |cause| self.worker().fault(cause, call);
        if let Some(text) = other_plan(words) {
            return Err(refuse(Cause::mismatch(None, text)));
        }
        if let Some(root) = root.filter(|root| root.index() >= self.size()) {
            return Err(refuse(Cause::NoSuchMember { member: root.index(), size: self.size() }));
        }
        if !fit_in_memory(&blocks) {
            return Err(refuse(Cause::Argument("the blocks have more bytes than memory can have".into())));
        }
        Ok(blocks.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_prepare_different_plans_are_found() {
        let word = |collective, root| MemberCounts { own: 8, collective: number(&collective), root };
        let (gather, scatter) = (CollectiveKind::Gather, CollectiveKind::Scatter);
        assert_eq!(other_plan(&[word(gather, 1), word(gather, 1)]), None);
        for other in [word(gather, 0), word(scatter, 1)] {
            let text = other_plan(&[word(gather, 1), word(gather, 1), other]);
            assert!(text.is_some_and(|text| text.contains("member 2")));
        }
    }

    #[test]
    fn blocks_that_memory_cannot_have_are_found() {
        assert!(fit_in_memory(&[0, 7, i64::MAX as u64 - 7]));
        assert!(!fit_in_memory(&[i64::MAX as u64, 1]));
        assert!(!fit_in_memory(&[u64::MAX, 2]));
    }
}
