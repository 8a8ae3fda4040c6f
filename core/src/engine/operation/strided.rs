//! Puts and gets of blocks at equal distances, at one end or at both. Where the global memory is mapped, each block is
//! copied once. Elsewhere each block is an operation of its own; blocks of this rank's memory pass through two pieces of
//! staging memory: one is packed or unpacked while the operations of the other one travel. Contiguous memory of this rank
//! needs no staging.

use crate::base::{Cause, Result};
use crate::engine::operation::kind::{Local, Operation};
use crate::engine::operation::start::Started;
use crate::engine::sync::revocable_buffer::{BufferUse, RevocableBuffer};
use crate::engine::sync::strided_view::{BlockRun, StrideLayout, StridedView};
use crate::engine::worker::Worker;
use crate::segment::GlobalAddress;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of one piece of staging memory.
const PIECE: usize = 32 << 10;

/// The largest number of operations of one piece. The table of operations has room for those of several pieces.
const OPERATIONS_OF_PIECE: usize = 256;

/// The way of a copy between memory of this rank and global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Put,
    Get,
}

/// A part of the packed bytes whose operations have been started.
struct StartedPiece {
    /// Where it is unpacked when they have ended, and from which memory.
    unpacks: Option<(usize, Arc<RevocableBuffer>)>,
    operations: Vec<u64>,
    /// Why not all operations were started.
    failed: Option<Cause>,
}

impl Worker {
    /// Copies blocks of this rank's memory to blocks of global memory that begin at `to`. Where `layout` is `None`, they
    /// go there one behind the other.
    pub fn put_strided(
        &self,
        to: GlobalAddress,
        layout: Option<StrideLayout>,
        from: StridedView<'_>,
    ) -> Result<()> {
        self.copy_strided(Way::Put, to, layout, from)
    }

    /// Copies blocks of global memory that begin at `from` to blocks of this rank's memory. Where `layout` is `None`, they
    /// come from one behind the other.
    pub fn get_strided(
        &self,
        from: GlobalAddress,
        layout: Option<StrideLayout>,
        to: StridedView<'_>,
    ) -> Result<()> {
        self.copy_strided(Way::Get, from, layout, to)
    }

    fn copy_strided(
        &self,
        way: Way,
        at: GlobalAddress,
        layout: Option<StrideLayout>,
        own: StridedView<'_>,
    ) -> Result<()> {
        let layout = layout.unwrap_or_else(|| own.layout().packed());
        let place = Local(own.span().part(0, 0).cast_mut());
        let action = way.operation(at, place, layout.span() as u64);
        let refused = |cause| self.fault(cause, || action.to_string());
        if layout.len() != own.len() {
            let text = format!("blocks of {} bytes in all, but values of {} bytes", layout.len(), own.len());
            return Err(refused(Cause::Argument(text)));
        }
        if layout.is_contiguous()
            && let Some(bytes) = own.contiguous()
        {
            return match way {
                Way::Put => self.put_view(at, bytes),
                Way::Get => self.get_view(at, bytes),
            };
        }
        self.check().and_then(|()| self.check_access(at, layout.span() as u64)).map_err(refused)?;
        self.in_call(&action, || {
            if self.copy_mapped_blocks(way, at, layout, own) {
                return Ok(());
            }
            match own.contiguous() {
                Some(bytes) => RevocableBuffer::lend(bytes, &|| self.pause(), |bytes| {
                    self.copy_pieces(way, (at, layout), own, Some(bytes), &action)
                }),
                None => self.copy_pieces(way, (at, layout), own, None, &action),
            }
        })
    }

    /// Copies the blocks piece by piece: from or to `bytes`, if this rank's memory is contiguous, else through staging
    /// memory.
    fn copy_pieces(
        &self,
        way: Way,
        (at, layout): (GlobalAddress, StrideLayout),
        own: StridedView<'_>,
        bytes: Option<&Arc<RevocableBuffer>>,
        action: &Operation,
    ) -> Result<()> {
        let fault = |cause| self.fault(cause, || action.to_string());
        let (mut before, mut outcome) = (None, Ok(()));
        let longest = PIECE.min(layout.block().saturating_mul(OPERATIONS_OF_PIECE));
        for begin in (0..own.len()).step_by(longest) {
            let len = longest.min(own.len() - begin);
            let piece = match bytes {
                Some(bytes) => {
                    self.start_piece(way, at, layout.runs(begin, len), layout.stride(), (bytes, begin))
                }
                None => {
                    let staging = RevocableBuffer::zeroed(len);
                    if way == Way::Put {
                        own.pack(begin, staging.enter().map_err(fault)?.view(), len);
                    }
                    let runs = layout.runs(begin, len);
                    let piece = self.start_piece(way, at, runs, layout.stride(), (&staging, 0));
                    StartedPiece { unpacks: (way == Way::Get).then_some((begin, staging)), ..piece }
                }
            };
            if let Some(before) = before.replace(piece) {
                outcome = self.finish(before, own, action);
            }
            if outcome.is_err() {
                break;
            }
        }
        let last = before.map_or(Ok(()), |last| self.finish(last, own, action));
        outcome.and(last)
    }

    /// Starts the operations between blocks of global memory and `bytes`, from a place on.
    fn start_piece(
        &self,
        way: Way,
        at: GlobalAddress,
        runs: impl Iterator<Item = BlockRun>,
        stride: usize,
        (bytes, mut own): (&Arc<RevocableBuffer>, usize),
    ) -> StartedPiece {
        let (mut operations, mut unfinished) = (
            Vec::new(),
            runs.flat_map(|run| (0..run.count).map(move |number| (run.at + number * stride, run.block))),
        );
        let started = bytes.enter().and_then(|used| {
            unfinished.try_for_each(|(there, block)| {
                let part = own..own + block;
                own += block;
                self.start_block(way, at.add(there as u64), &used, part, &mut operations)
            })
        });
        StartedPiece { unpacks: None, operations, failed: started.err() }
    }

    /// Starts one operation. Waits while there is no room for it.
    fn start_block(
        &self,
        way: Way,
        at: GlobalAddress,
        used: &BufferUse<'_>,
        part: Range<usize>,
        operations: &mut Vec<u64>,
    ) -> Result<(), Cause> {
        loop {
            let started = match way {
                Way::Put => self.start_put(at, used, part.clone()),
                Way::Get => self.start_get(at, used, part.clone()),
            };
            match started? {
                Started::Done(_) => return Ok(()),
                Started::InFlight(operation) => {
                    operations.push(operation);
                    return Ok(());
                }
                Started::Later => self.pause(),
            }
        }
    }

    /// Waits for all operations of a piece, and unpacks it.
    fn finish(&self, piece: StartedPiece, own: StridedView<'_>, action: &Operation) -> Result<()> {
        let fault = |cause| self.fault(cause, || action.to_string());
        let StartedPiece { unpacks, operations, failed } = piece;
        let mut all = Ok(());
        for operation in operations {
            let ended = self.outcome(operation, action).map(drop); // also after a failure: all of them end
            all = all.and(ended);
        }
        all.and(failed.map_or(Ok(()), |cause| Err(fault(cause))))?;
        if let Some((begin, staging)) = unpacks {
            own.unpack(begin, staging.enter().map_err(fault)?.view(), staging.len());
        }
        Ok(())
    }
}

impl Way {
    fn operation(self, at: GlobalAddress, own: Local, len: u64) -> Operation {
        match self {
            Way::Put => Operation::Put { to: at, from: own, len },
            Way::Get => Operation::Get { from: at, to: own, len },
        }
    }
}
