//! Copies, flags of other nodes, counters, broadcasts, and copies by key.

use super::flags::NicamFlag;
use super::places::node;
use super::state::{State, state};
use crate::status::Failure;
use std::ffi::{c_int, c_void};
use tasuki::bindings::remote_flag;
use tasuki::nicam::RemoteFlag;
use tasuki::{GlobalPtr, Rank};

impl State {
    /// Returns the place of bytes of a node.
    fn place(&self, node: Rank, at: *const c_void, bytes: usize) -> Result<GlobalPtr<u8>, Failure> {
        self.places.of(self.job, node, at, bytes)
    }

    /// Returns a flag of a node.
    fn flag(&self, node: Rank, at: *const NicamFlag) -> Result<RemoteFlag, Failure> {
        if !at.is_aligned() {
            return Err(Failure::misuse(format!("the flag at {at:p} is not aligned to 8 bytes")));
        }
        let word = self.place(node, at.cast(), size_of::<NicamFlag>())?;
        Ok(remote_flag(word.cast(), self.set.on(node)))
    }

    /// Returns the two places of a copy.
    fn ends(
        &self,
        (src_node, src_addr): (c_int, *const c_void),
        (dst_node, dst_addr): (c_int, *mut c_void),
        size: usize,
    ) -> Result<(GlobalPtr<u8>, GlobalPtr<u8>), Failure> {
        let (from, to) = (node(self, src_node)?, node(self, dst_node)?);
        Ok((self.place(from, src_addr, size)?, self.place(to, dst_addr, size)?))
    }
}

calls! {
    /// Copies from a node to a node.
    nicam_bcopy(src_node: c_int, src_addr: *const c_void, dst_node: c_int, dst_addr: *mut c_void, size: usize) {
        let state = state()?;
        let (from, to) = state.ends((src_node, src_addr), (dst_node, dst_addr), size)?;
        Ok(state.transfers.copy(from, to, size)?)
    }

    /// Sets a flag of a node.
    nicam_write1(dst_node: c_int, flag_addr: *mut NicamFlag, val: u64) {
        let state = state()?;
        let flag = state.flag(node(state, dst_node)?, flag_addr)?;
        Ok(state.transfers.write_one(flag, val)?)
    }

    /// Copies, and then sets a flag of the destination.
    nicam_bcopy_notify(
        src_node: c_int,
        src_addr: *const c_void,
        dst_node: c_int,
        dst_addr: *mut c_void,
        size: usize,
        flag_addr: *mut NicamFlag,
        onoff: u64,
    ) {
        let state = state()?;
        let (from, to) = state.ends((src_node, src_addr), (dst_node, dst_addr), size)?;
        let flag = state.flag(to.rank(), flag_addr)?;
        Ok(state.transfers.copy_notify(from, to, size, flag, onoff)?)
    }

    /// Copies, and then counts the arrival at the destination.
    nicam_bcopy_countup(
        src_node: c_int,
        src_addr: *const c_void,
        dst_node: c_int,
        dst_addr: *mut c_void,
        size: usize,
    ) {
        let state = state()?;
        let (from, to) = state.ends((src_node, src_addr), (dst_node, dst_addr), size)?;
        Ok(state.transfers.copy_countup(from, to, size)?)
    }

    /// Sets a flag of this node when so many copies have arrived.
    nicam_set_counter(flag_addr: *mut NicamFlag, count: u64) {
        let state = state()?;
        let flag = state.flag(state.job.rank(), flag_addr)?;
        Ok(state.transfers.set_counter(flag, count)?)
    }

    /// Copies from a node to all.
    nicam_bcast(
        src_node: c_int,
        src_addr: *const c_void,
        dst_addr: *mut c_void,
        size: usize,
        flag_addr: *mut NicamFlag,
        onoff: u64,
    ) {
        let state = state()?;
        let from = state.place(node(state, src_node)?, src_addr, size)?;
        let ends = |rank| Ok::<_, Failure>((state.place(rank, dst_addr, size)?, state.flag(rank, flag_addr)?));
        let ends = state.job.ranks().map(ends).collect::<Result<Vec<_>, _>>()?;
        let (to, flag) = (|rank: Rank| ends[rank.index()].0, |rank: Rank| ends[rank.index()].1);
        Ok(state.transfers.bcast(from, to, size, flag, onoff)?)
    }

    /// Drops broadcasts to this node while it is on.
    nicam_bcast_discard(on: c_int) {
        Ok(state()?.transfers.bcast_discard(on != 0)?)
    }

    /// The source's side of a copy by key.
    nicam_bcopy_src(
        key: u64,
        dst_node: c_int,
        src_addr: *const c_void,
        size: usize,
        flag_addr: *mut NicamFlag,
        onoff: u64,
    ) {
        let state = state()?;
        let (me, to) = (state.job.rank(), node(state, dst_node)?);
        let (from, flag) = (state.place(me, src_addr, size)?, state.flag(me, flag_addr)?);
        Ok(state.transfers.copy_source(key, to, from, size, flag, onoff)?)
    }

    /// The destination's side of a copy by key.
    nicam_bcopy_dst(
        key: u64,
        src_node: c_int,
        dst_addr: *mut c_void,
        size: usize,
        flag_addr: *mut NicamFlag,
        onoff: u64,
    ) {
        let state = state()?;
        let (me, from) = (state.job.rank(), node(state, src_node)?);
        let (to, flag) = (state.place(me, dst_addr, size)?, state.flag(me, flag_addr)?);
        Ok(state.transfers.copy_destination(key, from, to, size, flag, onoff)?)
    }
}
