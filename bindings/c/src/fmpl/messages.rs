//! Messages.
//!
//! Unsafe: buffers are pointers of C, which the caller keeps in place until the call or the wait for it has ended.
#![allow(unsafe_code)]

use super::arguments::{member, read, slot, slot_or_any, written};
use super::communicators::{Group, with};
use crate::status::Failure;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use tasuki::bindings::{BufferView, Context, MessageBuffer, PendingRecv, PendingSend, RevocableBuffer};
use tasuki::bindings::{TypedSlot, ValueKind};
use tasuki::{Member, Rank, Slot};

/// A message that was begun: its request, and the buffer that it uses.
struct Begun<R> {
    request: R,
    buffer: Option<InUse>,
}

/// A buffer of the program, which no thread of the library touches any more once this is dropped.
struct InUse {
    buffer: Arc<RevocableBuffer>,
    context: Arc<Context>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let worker = self.context.worker();
        self.buffer.revoke(|| worker.pause());
    }
}

/// The messages of a communicator that were begun, by peer and slot.
#[derive(Default)]
pub(super) struct Pending {
    sends: HashMap<(Member, Slot), Begun<PendingSend>>,
    receives: HashMap<(Member, Slot), Begun<PendingRecv>>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.sends.len() + self.receives.len()
    }
}

fn typed(slot: Slot) -> TypedSlot {
    let number = if slot == Slot::ANY { Context::ANY } else { slot.0 as u32 };
    TypedSlot { slot: number, kind: ValueKind::BYTES }
}

/// Lends memory of the program to a message.
///
/// # Safety
/// The program keeps the bytes in place, and does not use them otherwise, until the message was waited for.
unsafe fn lend(context: &Arc<Context>, bytes: BufferView<'_>) -> InUse {
    // SAFETY: the caller promises it; `InUse` revokes the buffer.
    InUse { buffer: unsafe { RevocableBuffer::of_view(bytes) }, context: context.clone() }
}

impl Group {
    fn busy(&self, call: &'static str, peer: Member, slot: Slot) -> Failure {
        let what = if slot == Slot::ANY { "FMPL_TAG_ANY".into() } else { format!("mai {}", slot.0) };
        let text = format!("{call} of {what} with rank {} was begun and not waited for", peer.0);
        Failure::misuse(text)
    }

    fn isend(self: &Arc<Self>, bytes: &[u8], to: Member, slot: Slot) -> Result<(), Failure> {
        let mut pending = self.pending();
        if pending.sends.contains_key(&(to, slot)) {
            return Err(self.busy("an fmpl_isend", to, slot));
        }
        let (context, peer) = (&self.context, Rank(to.0));
        let begun = match context.try_begin_send(bytes, peer, typed(slot))? {
            Some(request) => Begun { request, buffer: None },
            None => {
                // SAFETY: the program promises it until fmpl_isend_wait.
                let in_use = unsafe { lend(context, BufferView::of(bytes)) };
                let buffer = MessageBuffer::Unregistered(in_use.buffer.clone());
                Begun { request: context.begin_send(buffer, peer, typed(slot))?, buffer: Some(in_use) }
            }
        };
        pending.sends.insert((to, slot), begun);
        Ok(())
    }

    fn irecv(self: &Arc<Self>, into: &mut [u8], from: Member, slot: Slot) -> Result<(), Failure> {
        let mut pending = self.pending();
        if pending.receives.contains_key(&(from, slot)) {
            return Err(self.busy("an fmpl_irecv", from, slot));
        }
        // SAFETY: the program promises it until fmpl_irecv_wait.
        let in_use = unsafe { lend(&self.context, BufferView::of_mut(into)) };
        let buffer = MessageBuffer::Unregistered(in_use.buffer.clone());
        let request = self.context.begin_long_recv(buffer, Rank(from.0), typed(slot))?;
        pending.receives.insert((from, slot), Begun { request, buffer: Some(in_use) });
        Ok(())
    }

    fn nothing_begun(&self, call: &str, peer: Member, slot: Slot) -> Failure {
        let what = if slot == Slot::ANY { "FMPL_TAG_ANY".into() } else { format!("mai {}", slot.0) };
        Failure::misuse(format!("no {call} of {what} with rank {} was begun", peer.0))
    }
}

calls! {
    /// Sends `size` bytes to rank `dst` of a communicator on slot `mai`. Returns when `buf` may be reused.
    fmpl_send / fmpl_send_(buf: at *const c_void, size: in usize, dst: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { read(buf, size)? };
            let to = member(dst, group.communicator.size())?;
            Ok(group.context.send(bytes, Rank(to.0), typed(slot(mai, group.slots)?))?)
        })
    }

    /// Receives a message of at most `size` bytes from rank `src` of a communicator on slot `mai`, or on any slot
    /// ([`FMPL_TAG_ANY`](super::arguments::FMPL_TAG_ANY)).
    fmpl_recv / fmpl_recv_(buf: at *mut c_void, size: in usize, src: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { written(buf, size)? };
            let from = member(src, group.communicator.size())?;
            group.context.recv(bytes, Rank(from.0), typed(slot_or_any(mai, group.slots)?))?;
            Ok(())
        })
    }

    /// Begins a send, for which [`fmpl_isend_wait`] waits. `buf` must not be changed before that.
    fmpl_isend / fmpl_isend_(buf: at *const c_void, size: in usize, dst: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { read(buf, size)? };
            group.isend(bytes, member(dst, group.communicator.size())?, slot(mai, group.slots)?)
        })
    }

    /// Begins a receive, for which [`fmpl_irecv_wait`] waits. `buf` must not be used before that.
    fmpl_irecv / fmpl_irecv_(buf: at *mut c_void, size: in usize, src: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { written(buf, size)? };
            group.irecv(bytes, member(src, group.communicator.size())?, slot_or_any(mai, group.slots)?)
        })
    }

    /// Waits for a send that was begun.
    fmpl_isend_wait / fmpl_isend_wait_(dst: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            let (to, slot) = (member(dst, group.communicator.size())?, slot(mai, group.slots)?);
            let begun = group.pending().sends.remove(&(to, slot));
            let Begun { request, buffer } =
                begun.ok_or_else(|| group.nothing_begun("fmpl_isend", to, slot))?;
            let sent = request.wait();
            drop(buffer);
            Ok(sent?)
        })
    }

    /// Waits for a receive that was begun. The message is in its buffer then.
    fmpl_irecv_wait / fmpl_irecv_wait_(src: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            let (from, slot) = (member(src, group.communicator.size())?, slot_or_any(mai, group.slots)?);
            let begun = group.pending().receives.remove(&(from, slot));
            let Begun { mut request, buffer } =
                begun.ok_or_else(|| group.nothing_begun("fmpl_irecv", from, slot))?;
            let got = request.take(&mut []);
            drop(buffer);
            got?;
            Ok(())
        })
    }

    /// Sends to a rank that receives from any rank ([`fmpl_recv_any`]). Returns when the message is in the receiver's
    /// queue or, if it is longer than a buffer of that, when the receiver has fetched it.
    fmpl_send_any / fmpl_send_any_(buf: at *const c_void, size: in usize, dst: in c_int, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { read(buf, size)? };
            let (to, slot) = (member(dst, group.communicator.size())?, slot(mai, group.slots)?);
            Ok(group.communicator.send_any(bytes, to, slot)?)
        })
    }

    /// Receives a message that any rank has sent by [`fmpl_send_any`].
    fmpl_recv_any / fmpl_recv_any_(buf: at *mut c_void, size: in usize, mai: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { written(buf, size)? };
            group.communicator.recv_any(bytes, slot_or_any(mai, group.slots)?)?;
            Ok(())
        })
    }
}
