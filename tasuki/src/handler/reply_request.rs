//! Replies of handlers, as requests.

use crate::handler::call::Reply;
use crate::request::{Request, future_by_request};
use crate::{Pod, Result};
use std::task::{self, Poll};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Awaited, PendingCall};

/// Errors of a wait: the handler panicked or failed, with the beginning of its message; the called rank died or left.
impl<R: Pod> Request for Reply<'_, R> {
    type Value = R;

    #[inline]
    fn test(&mut self) -> bool {
        let Some(pending) = &self.pending else { return true };
        pending.has_arrived() || !matches!(self.job.worker.test(&pending.arrival(), &String::new), Ok(false))
    }

    #[inline]
    fn wait(&mut self) -> Result<R> {
        let worker = &self.job.worker;
        let Some(pending) = self.pending.take() else {
            let text = "the reply was returned already: call the handler again";
            return Err(worker.fault(Cause::Argument(text.into()), || "wait(reply)".into()));
        };
        let to = pending.to();
        let value = worker.wait_reply(pending, &|| format!("wait(reply of rank {to})"))?;
        bytemuck::try_pod_read_unaligned(value.bytes())
            .map_err(|_| worker.fault(Cause::Bug("a reply of another size".into()), || "wait".into()))
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        if let Some(arrival) = self.pending.as_ref().map(PendingCall::arrival) {
            self.awaited.set(&self.job.worker, Awaited::only(arrival), context.waker());
        }
        Poll::Pending
    }
}

future_by_request!(['job, R: Pod] Reply<'job, R>);
