//! Agrees on the lengths of blocks that differ between members. Each member knows the length of its own block. The root
//! knows all lengths; if there is no root, every member does. An allgather gives all members the same words, so all
//! either accept the lengths or return the same error.

use crate::communicator::Communicator;
use crate::current_call::size;
use bytemuck::{Pod, Zeroable};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_schedule::shape::CollectiveKind;

/// What each member sends to all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct MemberCounts {
    /// Bytes of its own block.
    own: u64,
    /// Hash of the lengths of all blocks as it knows them; 0 if it does not know them.
    all: u64,
    /// Hash of the collective, and its root.
    collective: u64,
    root: u64,
}

/// Returns a hash that is not 0.
fn number(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish() | 1
}

/// Returns the error that the words of all members show, if any: members prepare different plans, the blocks are too
/// long, or a member that must know all lengths has passed wrong ones.
fn fault(words: &[MemberCounts], blocks: &[u64]) -> Option<String> {
    let first = words[0];
    let differs = |word: &MemberCounts| (word.collective, word.root) != (first.collective, first.root);
    if let Some(other) = words.iter().position(differs) {
        return Some(format!("member {other} prepares something else than member 0, or with another root"));
    }
    if blocks.iter().try_fold(0_u64, |all, &one| all.checked_add(one)).is_none_or(|all| all > i64::MAX as u64)
    {
        return Some("the blocks have more bytes than memory can have".into());
    }
    let knows_not = |&(member, word): &(usize, &MemberCounts)| {
        (first.root == EVERYBODY || first.root == member as u64) && word.all != number(&blocks)
    };
    let (member, _) = words.iter().enumerate().find(knows_not)?;
    Some(format!(
        "the counts of member {member} differ from the lengths that members pass for their own blocks"
    ))
}

/// The root of a collective that has none.
const EVERYBODY: u64 = u64::MAX;

impl Communicator {
    /// Returns the bytes of each member's block. Each member passes its own; the root, or every member if there is no
    /// root, passes all. Collective. Error, on all members: they do not agree.
    pub fn agree_on_blocks(
        &self,
        collective: CollectiveKind,
        own: u64,
        known: Option<&[u64]>,
        root: Option<Rank>,
    ) -> Result<Arc<[u64]>> {
        let call = || self.call_on(&format!("{}_v_init({})", collective.name(), size(own)));
        self.begin(None, &call)?.run_agreed(|| {
            let root_of = root.map_or(EVERYBODY, |root| root.0 as u64);
            let all = known.map_or(0, |known| number(&known));
            let word = MemberCounts { own, all, collective: number(&collective), root: root_of };
            let words = self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, &call))?;
            let blocks: Vec<u64> = words.iter().map(|word| word.own).collect();
            let refuse = |cause| self.worker().fault(cause, call);
            if let Some(known) = known {
                if known.len() != self.size() {
                    let text = format!("{} counts, but the group has {} members", known.len(), self.size());
                    return Ok(Err(refuse(Cause::Argument(text))));
                }
                let two = || known.iter().copied().zip(blocks.iter().copied());
                if let Some(other) = two().position(|(known, given)| known != given) {
                    let (known, given) = (known[other], blocks[other]);
                    let cause =
                        Cause::Disagree { what: "bytes", least: known.min(given), most: known.max(given) };
                    return Ok(Err(refuse(cause).note(format!("of the block of member {other}"))));
                }
            }
            Ok(match fault(&words, &blocks) {
                Some(text) => Err(refuse(Cause::mismatch(None, text))),
                None => root.map_or(Ok(()), |root| self.check_root(root, &call)).map(|()| blocks.into()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(own: u64, known: Option<&[u64]>, root: u64) -> MemberCounts {
        let all = known.map_or(0, |known| number(&known));
        MemberCounts { own, all, collective: 7, root }
    }

    #[test]
    fn all_members_find_the_same_fault() {
        let blocks = [8, 0, 16];
        let of = |known: &[u64], root| {
            let one = |(member, own): (usize, u64)| {
                word(own, (member == 1 || root == EVERYBODY).then_some(known), root)
            };
            fault(&blocks.into_iter().enumerate().map(one).collect::<Vec<_>>(), &blocks)
        };
        assert_eq!(of(&blocks, 1), None);
        assert_eq!(of(&blocks, EVERYBODY), None);
        assert!(of(&[8, 8, 16], 1).is_some_and(|text| text.contains("member 1")));
        assert!(of(&[8, 8, 16], EVERYBODY).is_some_and(|text| text.contains("member 0")));
        assert!(of(&blocks, 0).is_some_and(|text| text.contains("member 0")), "it knows nothing");
        assert!(of(&blocks, 3).is_none(), "`check_root` refuses that root on all members");
        let two = [word(1, None, 0), word(1, None, 1)];
        assert!(fault(&two, &[1, 1]).is_some_and(|text| text.contains("another root")));
        let much = [word(u64::MAX, None, 1), word(2, None, 1)];
        assert!(fault(&much, &[u64::MAX, 2]).is_some_and(|text| text.contains("more bytes")));
    }
}
