//! Forgetting values so that leak checkers, which find what nobody can reach any more, do not report them.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

static FORGOTTEN: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// Never drops the value, like [`std::mem::forget`], and never loses it.
pub(crate) fn forget(value: impl Any + Send) {
    FORGOTTEN.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(value));
}
