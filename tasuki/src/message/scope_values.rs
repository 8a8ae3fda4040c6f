//! What a scope can send.

use crate::message::scope::Scope;
use crate::message::{Outgoing, Strided};
use crate::values::Layout;
use crate::{Pod, Rank, Result};
use tasuki_message::{Context, SentShort, TypedSlot};

/// Values that a [`Scope`] sends: borrowed for the scope, or kept by it.
///
/// Borrowed for `'env`: anything that a [`send`](crate::Communicator::send) takes, behind a reference, and [`Strided`]
/// values themselves. Kept by the scope until the message has been sent: a number, an array, a vector. Most short messages
/// are sent at once, and nothing is kept.
///
/// ```
/// use tasuki::Slot;
/// use tasuki::message::Strided;
/// tasuki::local(2, |job| {
///     let (peer, matrix) = (job.rank_after(1), vec![1, 2, 3, 4]); // two rows of two values
///     let (mut row, mut column, mut sum) = ([0; 2], [0; 2], 0);
///     job.world().scope(|s| {
///         s.recv(&mut row, peer, Slot(0))?;
///         s.recv(&mut column, peer, Slot(1))?;
///         s.recv(&mut sum, peer, Slot(2))?;
///         s.send(&matrix[..2], peer, Slot(0))?; // borrowed
///         s.send(Strided::column(&matrix, 2, 1), peer, Slot(1))?; // what it names is borrowed
///         s.send(matrix.iter().sum::<i32>(), peer, Slot(2))?; // kept by the scope
///         Ok(())
///     })?;
///     assert_eq!((row, column, sum), ([1, 2], [2, 4], 10));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait ScopeValues<'env>: sealed::SealedValues {
    /// The type of one value.
    type Value: Pod;

    /// Sends the values if they are short and can be sent at once.
    #[doc(hidden)]
    fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>>;

    /// Begins a send in the scope.
    #[doc(hidden)]
    fn send_in(self, scope: &Scope<'_, 'env>, to: Rank, slot: TypedSlot) -> Result<()>;
}

/// Values that stay in place until a message has been sent.
#[derive(Debug)]
pub(crate) enum Kept<'env, T> {
    /// By the program.
    Borrowed(&'env [T]),
    /// By the scope.
    Own(Vec<T>),
}

mod sealed {
    pub trait SealedValues {}
}

macro_rules! scope_values {
    ([$($generics:tt)*] $type:ty, $value:ty, |$it:ident| $values:expr, $keep:expr) => {
        impl<$($generics)*> sealed::SealedValues for $type {}
        impl<'env, $($generics)*> ScopeValues<'env> for $type {
            type Value = $value;

            #[inline(always)]
            fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>> {
                let $it = self;
                context.try_send_short(bytemuck::cast_slice::<$value, u8>($values), to, slot)
            }

            #[inline(never)]
            fn send_in(self, scope: &Scope<'_, 'env>, to: Rank, slot: TypedSlot) -> Result<()> {
                let $it = &self;
                if scope.try_begin_send(bytemuck::cast_slice::<$value, u8>($values), to, slot)? {
                    return Ok(());
                }
                let $it = self;
                scope.begin_send::<$value>(Kept::Own($keep), to, slot)
            }
        }
    };
}

impl<D: Outgoing + ?Sized> sealed::SealedValues for &D {}
impl<'env, D: Outgoing + ?Sized> ScopeValues<'env> for &'env D {
    type Value = D::Value;

    #[inline(always)]
    fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>> {
        (**self).try_send_by(context, to, slot)
    }

    #[inline(always)]
    fn send_in(self, scope: &Scope<'_, 'env>, to: Rank, slot: TypedSlot) -> Result<()> {
        match self.layout() {
            Layout::Contiguous(values) => scope.begin_send_borrowed(values, to, slot),
            Layout::Blocks(blocks) => scope.begin_send_blocks(blocks, to, slot),
        }
    }
}

impl<T> sealed::SealedValues for Strided<'_, T> {}
impl<'env, T: Pod> ScopeValues<'env> for Strided<'env, T> {
    type Value = T;

    fn try_send_by<'c>(&self, context: &'c Context, to: Rank, slot: TypedSlot) -> Option<SentShort<'c>> {
        Outgoing::try_send_by(self, context, to, slot)
    }

    fn send_in(self, scope: &Scope<'_, 'env>, to: Rank, slot: TypedSlot) -> Result<()> {
        scope.begin_send_blocks(self.blocks(), to, slot)
    }
}

scope_values!([T: Pod] Vec<T>, T, |it| it, it);
scope_values!([T: Pod, const N: usize] [T; N], T, |it| it, it.to_vec());

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            scope_values!([] $number, $number, |it| std::slice::from_ref(it), vec![it]);
        )*
    };
}

numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
