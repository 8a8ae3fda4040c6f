//! What a call names a handler by: its name or its number.

use crate::Result;
use std::fmt;
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;
use tasuki_core::queue::inline_data::INLINE_BYTES;

/// A handler by its number, found by [`Job::handler`](crate::Job::handler).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler {
    pub(crate) number: u8,
    returns: usize,
}

/// A handler's name or number.
pub trait HandlerName: Copy + fmt::Debug + sealed::Sealed {
    #[doc(hidden)]
    fn number(self, worker: &Worker, returns: Option<usize>) -> Result<u8, Cause>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for super::Handler {}
}

impl HandlerName for &str {
    fn number(self, worker: &Worker, returns: Option<usize>) -> Result<u8, Cause> {
        worker.handler_table().find(self, returns)
    }
}

impl HandlerName for Handler {
    #[inline]
    fn number(self, _: &Worker, returns: Option<usize>) -> Result<u8, Cause> {
        match returns {
            Some(bytes) if bytes != self.returns => {
                let Handler { number, returns } = self;
                Err(Cause::Argument(format!("handler {number} returns {returns} bytes, not {bytes}")))
            }
            _ => Ok(self.number),
        }
    }
}

impl Handler {
    pub(crate) fn find(worker: &Worker, name: &str) -> Result<Handler, Cause> {
        let number = worker.handler_table().find(name, None)?;
        let sizes = 0..=INLINE_BYTES;
        let returns = sizes.into_iter().find(|&bytes| worker.handler_table().find(name, Some(bytes)).is_ok());
        Ok(Handler { number, returns: returns.unwrap_or(0) })
    }
}
