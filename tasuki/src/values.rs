//! What sends and puts read, and what receives and gets fill: contiguous values, or blocks of them. For contiguous
//! values each method is one call, which is inlined, so that a short message costs no more than without the traits.

use crate::collective::Data;
use crate::message::{Strided, StridedMut};
use crate::{Pod, Rank, Result};
use tasuki_core::engine::{BufferView, StridedView, Worker};
use tasuki_core::segment::GlobalAddress;
use tasuki_message::{Context, Received, SHORT_MAX, SentShort, TypedSlot};

/// Values that a send or a put reads: any [`Data`], or [`Strided`] values.
///
/// ```
/// use tasuki::message::Strided;
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let (world, matrix) = (job.world(), vec![1, 2, 3, 4]); // two rows of two values
///     if job.rank() == 0 {
///         world.send(&7, Rank(1), Slot(0))?;
///         world.send(&matrix[..2], Rank(1), Slot(0))?;
///         world.send(&Strided::column(&matrix, 2, 1), Rank(1), Slot(0))?;
///     } else {
///         for sent in [vec![7], vec![1, 2], vec![2, 4]] {
///             assert_eq!(world.recv_vec::<i32>(Rank(0), Slot(0))?.0, sent);
///         }
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold values that a call can read",
    note = "values are numbers, arrays, slices and vectors of numbers or of types that are `Pod`, and `Strided` values"
)]
pub trait Outgoing: sealed::SealedOutgoing {
    /// The type of one value.
    type Value: Pod;

    /// Sends the values. Blocks.
    #[doc(hidden)]
    fn send_by(&self, context: &Context, to: Rank, slot: TypedSlot) -> Result<()>;

    /// Sends the values if they are short and can be sent at once.
    #[doc(hidden)]
    fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>>;

    /// Copies the values to global memory. Blocks.
    #[doc(hidden)]
    fn put_by(&self, worker: &Worker, to: GlobalAddress) -> Result<()>;

    /// Where the values lie.
    #[doc(hidden)]
    fn layout(&self) -> Layout<'_, Self::Value>;
}

/// Values that a receive or a get fills: any [`Data`], or [`StridedMut`] values.
///
/// ```
/// use tasuki::message::StridedMut;
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let (mut number, mut row, mut matrix) = (0, [0; 2], vec![0; 4]);
///     if job.rank() == 0 {
///         for values in [&[7][..], &[1, 2], &[3, 4]] {
///             job.world().send(values, Rank(1), Slot(0))?;
///         }
///     } else {
///         job.world().recv(&mut number, Rank(0), Slot(0))?;
///         job.world().recv(&mut row, Rank(0), Slot(0))?;
///         job.world().recv(&mut StridedMut::column(&mut matrix, 2, 1), Rank(0), Slot(0))?;
///         assert_eq!((number, row, matrix), (7, [1, 2], vec![0, 3, 0, 4]));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold values that a call can fill",
    note = "values are numbers, arrays, slices and vectors of numbers or of types that are `Pod`, and `StridedMut` values"
)]
pub trait Incoming: sealed::SealedIncoming {
    /// The type of one value.
    type Value: Pod;

    /// Receives a message. Blocks.
    #[doc(hidden)]
    fn recv_by(&mut self, context: &Context, from: Rank, slot: TypedSlot) -> Result<Received>;

    /// Copies global memory to the values. Blocks.
    #[doc(hidden)]
    fn get_by(&mut self, worker: &Worker, from: GlobalAddress) -> Result<()>;

    /// Where the values lie, to fill them.
    #[doc(hidden)]
    fn layout_mut(&mut self) -> LayoutMut<'_, Self::Value>;
}

/// Values to read.
#[doc(hidden)]
#[derive(Debug)]
pub enum Layout<'a, T> {
    /// One behind the other.
    Contiguous(&'a [T]),
    /// In blocks of bytes.
    Blocks(StridedView<'a>),
}

/// Values to fill.
#[doc(hidden)]
#[derive(Debug)]
pub enum LayoutMut<'a, T> {
    /// One behind the other.
    Contiguous(&'a mut [T]),
    /// In blocks of bytes.
    Blocks(StridedView<'a>),
}

impl<'a, T: Pod> Layout<'a, T> {
    /// The values as blocks.
    pub(crate) fn blocks(self) -> StridedView<'a> {
        match self {
            Layout::Contiguous(values) => StridedView::whole(BufferView::of(bytemuck::cast_slice(values))),
            Layout::Blocks(blocks) => blocks,
        }
    }
}

impl<'a, T: Pod> LayoutMut<'a, T> {
    /// The values as blocks.
    pub(crate) fn blocks(self) -> StridedView<'a> {
        match self {
            LayoutMut::Contiguous(values) => {
                StridedView::whole(BufferView::of_mut(bytemuck::cast_slice_mut(values)))
            }
            LayoutMut::Blocks(blocks) => blocks,
        }
    }
}

#[diagnostic::do_not_recommend]
impl<D: Data + ?Sized> Outgoing for D {
    type Value = D::Value;

    #[inline(always)]
    fn send_by(&self, context: &Context, to: Rank, slot: TypedSlot) -> Result<()> {
        context.send(bytemuck::cast_slice(self.values()), to, slot)
    }

    #[inline(always)]
    fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>> {
        context.try_send_short(bytemuck::cast_slice(self.values()), to, slot)
    }

    #[inline(always)]
    fn put_by(&self, worker: &Worker, to: GlobalAddress) -> Result<()> {
        worker.put(to, bytemuck::cast_slice(self.values()))
    }

    #[inline(always)]
    fn layout(&self) -> Layout<'_, D::Value> {
        Layout::Contiguous(self.values())
    }
}

#[diagnostic::do_not_recommend]
impl<D: Data + ?Sized> Incoming for D {
    type Value = D::Value;

    #[inline(always)]
    fn recv_by(&mut self, context: &Context, from: Rank, slot: TypedSlot) -> Result<Received> {
        context.recv(bytemuck::cast_slice_mut(self.values_mut()), from, slot)
    }

    #[inline(always)]
    fn get_by(&mut self, worker: &Worker, from: GlobalAddress) -> Result<()> {
        worker.get(from, bytemuck::cast_slice_mut(self.values_mut()))
    }

    #[inline(always)]
    fn layout_mut(&mut self) -> LayoutMut<'_, D::Value> {
        LayoutMut::Contiguous(self.values_mut())
    }
}

impl<T: Pod> Outgoing for Strided<'_, T> {
    type Value = T;

    fn send_by(&self, context: &Context, to: Rank, slot: TypedSlot) -> Result<()> {
        context.send_strided(self.blocks(), to, slot)
    }

    fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>> {
        let (mut line, blocks) = ([0; SHORT_MAX], self.blocks());
        let line = line.get_mut(..blocks.len())?;
        blocks.read(0, line);
        context.try_send_short(line, to, slot)
    }

    fn put_by(&self, worker: &Worker, to: GlobalAddress) -> Result<()> {
        worker.put_strided(to, None, self.blocks())
    }

    fn layout(&self) -> Layout<'_, T> {
        Layout::Blocks(self.blocks())
    }
}

impl<T: Pod> Incoming for StridedMut<'_, T> {
    type Value = T;

    fn recv_by(&mut self, context: &Context, from: Rank, slot: TypedSlot) -> Result<Received> {
        context.recv_strided(self.blocks(), from, slot)
    }

    fn get_by(&mut self, worker: &Worker, from: GlobalAddress) -> Result<()> {
        worker.get_strided(from, None, self.blocks())
    }

    fn layout_mut(&mut self) -> LayoutMut<'_, T> {
        LayoutMut::Blocks(self.blocks())
    }
}

mod sealed {
    use crate::collective::Data;
    use crate::message::{Strided, StridedMut};

    pub trait SealedOutgoing {}
    impl<D: Data + ?Sized> SealedOutgoing for D {}
    impl<T> SealedOutgoing for Strided<'_, T> {}

    pub trait SealedIncoming {}
    impl<D: Data + ?Sized> SealedIncoming for D {}
    impl<T> SealedIncoming for StridedMut<'_, T> {}
}
