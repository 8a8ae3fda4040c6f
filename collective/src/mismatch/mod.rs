//! Detects members that are in different collective calls.

pub(crate) mod call_log;
pub(crate) mod call_notices;
pub(crate) mod notice_line;
