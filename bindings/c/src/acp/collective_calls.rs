//! What the calls of broadcasts and allgathers have in common.
//!
//! Unsafe: a group is an array of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::collective::{Collective, Data};
use super::collective_setup::{Kind, Memory};
use super::collectives::collectives;
use super::state::{State, state};
use crate::status::Failure;
use std::ffi::c_int;

/// Creates a collective.
///
/// # Safety
/// The group is null, or has that many ranks.
pub(super) unsafe fn create(
    kind: Kind,
    (group, members): (*const c_int, c_int),
    memory: impl FnOnce(&State) -> Result<Memory, Failure>,
) -> Result<usize, Failure> {
    let state = state()?;
    let members = usize::try_from(members).ok().filter(|members| *members > 0 && !group.is_null());
    let members = members.ok_or_else(|| Failure::misuse("the group is null, or has no members"))?;
    // SAFETY: the caller promises it.
    let group = unsafe { std::slice::from_raw_parts(group, members) };
    let collective = Collective::create(state, kind, group, || memory(state))?;
    collectives()?.with(|all| all.add(collective))
}

/// Starts a collective. Returns the handle of the start.
pub(super) fn start(kind: Kind, collective: usize, data: Data) -> Result<u64, Failure> {
    collectives()?.with(|all| all.start(collective, kind, data))
}

/// Frees a collective when its starts have ended.
pub(super) fn free(kind: Kind, collective: usize) -> Result<c_int, Failure> {
    let taken = collectives()?.wait(|all| all.take_idle(collective, kind))?;
    taken.free(state()?).map(|()| 0)
}
