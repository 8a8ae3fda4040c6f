//! What the program reads and writes of a plan: this member's input, its result, and the buffers of a schedule of the
//! program, as slices.
//!
//! A plan that this rank runs in its own calls has its buffers in private memory, and the slices are parts of them. The
//! buffers of a plan in queues are in job memory, which any rank can write, so that no reference to them may exist. The
//! slices are then parts of private copies: a start writes what the program has changed, and the result is read once
//! after each start.
//!
//! Steps that combine values overwrite the input where it lies. Such a plan has a copy of its input in either form, and
//! each start writes it: so the input is kept.

use crate::plan::aligned_buffer::AlignedBuffer;
use std::collections::BTreeMap;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, Result};
use tasuki_schedule::shape::{CollectiveKind, DATA, RESULT, Shape};
use tasuki_schedule::{BufferId, BufferSpan, Contract};

/// Where a member's input and its result lie in the buffers of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataSpans {
    /// None: the schedule has the input in several places.
    pub(crate) input: Option<BufferSpan>,
    /// None: the schedule has the result in several places.
    pub(crate) result: Option<BufferSpan>,
    pub(crate) kept: InputKept,
}

/// How the input lasts from one start to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InputKept {
    /// The steps leave it in its place.
    InPlace,
    /// The steps combine values in its place, so each start writes a copy of it there.
    ByCopy,
    /// The steps are the program's own and may overwrite it. Once the program has asked for the input, each start
    /// writes a copy of it there.
    OnceUsed,
}

impl DataSpans {
    /// Returns those of a collective of the library.
    pub(crate) fn of_shape(shape: &Shape, member: usize) -> DataSpans {
        use CollectiveKind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        let combines = matches!(shape.collective, Reduce | Allreduce | ReduceScatter | Scan | Exscan);
        let kept = if combines { InputKept::ByCopy } else { InputKept::InPlace };
        DataSpans { kept, ..DataSpans::of_contract(&shape.contract(member)) }
    }

    /// Returns those of a schedule of the program.
    pub(crate) fn of_contract(contract: &Contract) -> DataSpans {
        DataSpans {
            input: joined(contract.inputs.iter().copied()),
            result: joined(contract.outputs.iter().map(|&(span, _)| span)),
            kept: InputKept::OnceUsed,
        }
    }

    /// Returns those of a plan whose input and result are two buffers of these sizes.
    pub(crate) fn of_two_buffers([input, result]: [u64; 2]) -> DataSpans {
        let whole = |buffer, bytes| Some(BufferSpan { buffer, offset: 0, bytes });
        DataSpans { input: whole(DATA, input), result: whole(RESULT, result), kept: InputKept::InPlace }
    }
}

/// Returns the range that these ranges are together. None: they are not one behind the other in one buffer.
fn joined(spans: impl Iterator<Item = BufferSpan>) -> Option<BufferSpan> {
    let mut all = BufferSpan { buffer: DATA, offset: 0, bytes: 0 };
    for span in spans.filter(|span| span.bytes > 0) {
        if all.bytes == 0 {
            all = span;
        } else if (span.buffer, span.offset) == (all.buffer, all.offset + all.bytes) {
            all.bytes += span.bytes;
        } else {
            return None;
        }
    }
    Some(all)
}

/// What the program reads and writes of a plan.
pub(crate) struct ProgramData {
    pub(crate) spans: DataSpans,
    pub(crate) copies: Copies,
}

impl ProgramData {
    pub(crate) fn new(spans: DataSpans, counted: Arc<AtomicU64>) -> ProgramData {
        ProgramData { spans, copies: Copies::new(spans.kept, counted) }
    }
}

/// Private copies of what the program reads and writes of a plan. They are allocated when they are first needed.
pub(crate) struct Copies {
    input: Option<AlignedBuffer>,
    /// The result, and the number of starts after which it was read.
    result: Option<(AlignedBuffer, u64)>,
    buffers: BTreeMap<usize, BufferCopy>,
    /// True if the next start has copies to write.
    pub(crate) is_to_write: bool,
    /// Bytes of all copies, which are included in `counted`.
    bytes: u64,
    counted: Arc<AtomicU64>,
}

/// A copy of a buffer of the program's schedule.
struct BufferCopy {
    buffer: AlignedBuffer,
    /// The number of starts after which it was read.
    starts: u64,
    is_changed: bool,
}

/// Reads from, or writes to, the place of a copy: the buffer, the offset in it, and the bytes.
pub(crate) type Read<'f> = &'f dyn Fn(BufferId, u64, &mut [u8]) -> Result<()>;
pub(crate) type Write<'f> = &'f mut dyn FnMut(BufferId, u64, &[u8]) -> Result<()>;
/// Returns the error of a call for which there is no memory.
pub(crate) type Fault<'f> = &'f dyn Fn(Cause) -> Error;

impl Copies {
    pub(crate) fn new(kept: InputKept, counted: Arc<AtomicU64>) -> Copies {
        let is_to_write = kept == InputKept::ByCopy;
        Copies { input: None, result: None, buffers: BTreeMap::new(), is_to_write, bytes: 0, counted }
    }

    #[cold]
    fn allocate(&mut self, bytes: u64) -> Result<AlignedBuffer, Cause> {
        let buffer = AlignedBuffer::new(bytes)?;
        let memory = AlignedBuffer::memory(bytes);
        self.counted.fetch_add(memory, Ordering::Relaxed);
        self.bytes += memory;
        Ok(buffer)
    }

    /// Returns the copy of the input, which the next start writes.
    #[inline]
    pub(crate) fn input(&mut self, span: BufferSpan, fault: Fault<'_>) -> Result<&mut [u8]> {
        self.is_to_write = true;
        if self.input.is_none() {
            self.input = Some(self.allocate(span.bytes).map_err(fault)?);
        }
        Ok(self.input.as_mut().map_or(&mut [], AlignedBuffer::bytes_mut))
    }

    /// Returns the result after `starts` starts.
    pub(crate) fn result(
        &mut self,
        span: BufferSpan,
        starts: u64,
        read: Read<'_>,
        fault: Fault<'_>,
    ) -> Result<&[u8]> {
        if self.result.is_none() {
            self.result = Some((self.allocate(span.bytes).map_err(fault)?, u64::MAX));
        }
        let Some((buffer, read_after)) = &mut self.result else { return Ok(&[]) };
        if *read_after != starts {
            read(span.buffer, span.offset, buffer.bytes_mut())?;
            *read_after = starts;
        }
        Ok(buffer.bytes())
    }

    /// Returns a buffer of `bytes` bytes after `starts` starts. If `is_changed`, the next start writes it.
    pub(crate) fn buffer(
        &mut self,
        (buffer, bytes): (BufferId, u64),
        (starts, is_changed): (u64, bool),
        read: Read<'_>,
        fault: Fault<'_>,
    ) -> Result<&mut [u8]> {
        if !self.buffers.contains_key(&buffer.index()) {
            let copy = self.allocate(bytes).map_err(fault)?;
            self.buffers
                .insert(buffer.index(), BufferCopy { buffer: copy, starts: u64::MAX, is_changed: false });
        }
        let Some(copy) = self.buffers.get_mut(&buffer.index()) else { return Ok(&mut []) };
        if copy.starts != starts {
            read(buffer, 0, copy.buffer.bytes_mut())?;
            copy.starts = starts;
        }
        copy.is_changed |= is_changed;
        self.is_to_write |= is_changed;
        Ok(copy.buffer.bytes_mut())
    }

    /// Writes what a start needs: the buffers that were changed, then the input. A reduction whose input was never
    /// asked for has zeros.
    pub(crate) fn write(&mut self, spans: &DataSpans, write: Write<'_>, fault: Fault<'_>) -> Result<()> {
        for (&number, copy) in self.buffers.iter_mut().filter(|(_, copy)| copy.is_changed) {
            if let Some(buffer) = BufferId::numbered(number) {
                write(buffer, 0, copy.buffer.bytes())?;
                copy.is_changed = false;
            }
        }
        let Some(span) = spans.input else {
            self.is_to_write = false;
            return Ok(());
        };
        if spans.kept == InputKept::ByCopy {
            self.input(span, fault)?;
        }
        if let Some(input) = &self.input {
            write(span.buffer, span.offset, input.bytes())?;
        }
        self.is_to_write = self.input.is_some() && spans.kept != InputKept::InPlace;
        Ok(())
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.counted.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(buffer: BufferId, offset: u64, bytes: u64) -> BufferSpan {
        BufferSpan { buffer, offset, bytes }
    }

    #[test]
    fn ranges_one_behind_the_other_are_one_range() {
        let of = |spans: &[BufferSpan]| joined(spans.iter().copied());
        assert_eq!(of(&[]), Some(span(DATA, 0, 0)));
        assert_eq!(
            of(&[span(RESULT, 8, 4), span(RESULT, 0, 0), span(RESULT, 12, 8)]),
            Some(span(RESULT, 8, 12))
        );
        assert_eq!(of(&[span(DATA, 0, 4), span(DATA, 8, 4)]), None, "a gap");
        assert_eq!(of(&[span(DATA, 0, 4), span(RESULT, 4, 4)]), None, "two buffers");
    }

    #[test]
    fn inputs_and_results_are_where_the_collective_has_them() {
        let of = |collective, member| DataSpans::of_shape(&Shape::new(collective, 3, 1, 8), member);
        let gather = of(CollectiveKind::Gather, 1);
        assert_eq!((gather.input, gather.result), (Some(span(DATA, 8, 8)), Some(span(DATA, 0, 24))));
        let scatter = of(CollectiveKind::Scatter, 1);
        assert_eq!((scatter.input, scatter.result), (Some(span(DATA, 0, 24)), Some(span(DATA, 8, 8))));
        let bcast = of(CollectiveKind::Bcast, 0);
        assert_eq!((bcast.input, bcast.result), (Some(span(DATA, 0, 0)), Some(span(DATA, 0, 8))));
        assert_eq!((bcast.kept, gather.kept), (InputKept::InPlace, InputKept::InPlace));
        let part = of(CollectiveKind::ReduceScatter, 2);
        assert_eq!((part.input, part.result), (Some(span(DATA, 0, 24)), Some(span(DATA, 16, 8))));
        assert_eq!(part.kept, InputKept::ByCopy);
    }

    #[test]
    fn an_input_is_written_when_a_start_needs_it() {
        let counted = Arc::new(AtomicU64::new(0));
        let all = DataSpans::of_two_buffers([4, 4]);
        let by_copy = DataSpans { kept: InputKept::ByCopy, ..all };
        let fault = |cause| Error::new(cause);
        let once_used = DataSpans { kept: InputKept::OnceUsed, ..all };
        let starts = |copies: &mut Copies, spans: &DataSpans| {
            let mut written = Vec::new();
            if copies.is_to_write {
                let mut write = |_, _, bytes: &[u8]| {
                    written = bytes.to_vec();
                    Ok(())
                };
                copies.write(spans, &mut write, &fault).expect("nothing fails");
            }
            written
        };
        for (spans, first, later) in [(all, 0, 0), (by_copy, 4, 4), (once_used, 0, 4)] {
            let mut copies = Copies::new(spans.kept, counted.clone());
            assert_eq!(starts(&mut copies, &spans).len(), first, "{spans:?} without an input");
            copies.input(span(DATA, 0, 4), &fault).expect("there is room").fill(7);
            assert_eq!(starts(&mut copies, &spans), [7; 4], "{spans:?} with an input");
            assert_eq!(starts(&mut copies, &spans).len(), later, "{spans:?} with the same input");
            assert_eq!(counted.load(Ordering::Relaxed), AlignedBuffer::memory(4));
        }
        assert_eq!(counted.load(Ordering::Relaxed), 0, "all copies were dropped");
    }
}
