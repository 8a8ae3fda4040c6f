//! Ends of channels that were dropped before they knew the other end. Any waiting call of the rank tells the other end
//! as soon as it is known, a leaving rank at the latest, unless the other rank leaves first.

use crate::context::Context;
use crate::progress::engine::ProgressEngine;
use crate::progress::{Continuation, FinalizeHook};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use tasuki_core::base::Result;
use tasuki_core::engine::{Condition, Deadline, Worker};

/// An end that was dropped too early.
pub(super) trait EarlyEnd: Send + Debug {
    /// Returns true if the other end is known, or will never be. Has no effects.
    fn can_end(&self) -> bool;

    /// What a leaving rank waits for; `None`: for nothing.
    fn awaited(&self) -> Option<Condition>;

    /// Tells the other end.
    fn end(self: Box<Self>);
}

/// The work that is left.
#[derive(Debug)]
pub(super) struct EarlyDrop {
    end: Mutex<Option<Box<dyn EarlyEnd>>>,
    progress: Weak<ProgressEngine>,
}

impl EarlyDrop {
    pub(super) fn add(context: &Arc<Context>, end: Box<dyn EarlyEnd>) {
        let is_awaited = end.awaited().is_some();
        let progress = &context.progress;
        let early = Arc::new(EarlyDrop { end: Mutex::new(Some(end)), progress: Arc::downgrade(progress) });
        progress.add_continuation(early.clone());
        if is_awaited {
            // Fails only if another hook does, whose owner learns of it when the rank leaves.
            let _ = progress.add_finalize_hook(&context.worker, early);
        }
    }

    /// Returns the end, if no other thread uses it. Never waits: in the simulator a look at it takes time, in which a
    /// thread that waits would keep the others from running.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Box<dyn EarlyEnd>>>> {
        match self.end.try_lock() {
            Ok(end) => Some(end),
            Err(TryLockError::Poisoned(end)) => Some(end.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn run(&self) {
        if let Some(mut end) = self.try_lock() {
            end.take().into_iter().for_each(EarlyEnd::end); // locked: others see it under way until the other end knows
        }
        if !self.is_under_way()
            && let Some(progress) = self.progress.upgrade()
        {
            progress.remove_continuation(self);
        }
    }
}

impl Continuation for EarlyDrop {
    fn can_resume(&self) -> bool {
        self.try_lock().is_some_and(|end| end.as_ref().is_some_and(|end| end.can_end()))
    }

    fn is_under_way(&self) -> bool {
        self.try_lock().is_none_or(|end| end.is_some())
    }

    fn resume(&self) {
        self.run();
    }
}

impl FinalizeHook for EarlyDrop {
    fn is_finalized(&self, _worker: &Worker) -> bool {
        !self.is_under_way()
    }

    fn finalize(&self, worker: &Worker) -> Result<()> {
        while self.is_under_way() {
            let awaited = self.try_lock().and_then(|end| end.as_ref()?.awaited());
            match awaited {
                // Ends with an error if the other rank has left, or the job is over: then nobody waits for it.
                Some(awaited) => {
                    let waited =
                        worker.wait(&awaited, Deadline::NEVER, &|| "leave(): a dropped channel".into());
                    if waited.is_err() || self.can_resume() {
                        self.run();
                    }
                }
                None => worker.pause(), // another thread tells the other end
            }
        }
        Ok(())
    }
}
