//! Forgetting values in a way that leak checkers do not report. They report only memory that
//! nothing points to.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

static FORGOTTEN: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// Keeps the value for ever, as [`std::mem::forget`] does, but still reachable.
pub(crate) fn forget(value: impl Any + Send) {
    FORGOTTEN.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(value));
}
