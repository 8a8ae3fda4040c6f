//! Assertions on errors. An error must name the rank and the call, be of the right kind, and tell
//! the remedy.

use tasuki::{Error, ErrorKind, Job, Request, Result};

/// Asserts that a call failed as expected: the error names this rank and a call, has the expected
/// kind, and contains all of `texts`. One of the texts should be the remedy.
#[track_caller]
pub(crate) fn refused<T>(job: &Job, outcome: Result<T>, kind: ErrorKind, texts: &[&str]) -> Error {
    let Err(error) = outcome else {
        panic!("the call succeeded, but should fail with {kind:?} and {texts:?}")
    };
    check_error(job, &error, kind, texts);
    error
}

/// Asserts that `error` is as [`refused`] expects it.
#[track_caller]
pub(crate) fn check_error(job: &Job, error: &Error, kind: ErrorKind, texts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert_eq!(error.rank(), Some(job.rank()), "which rank? {text}");
    assert!(!error.call().is_empty(), "which call? {text}");
    for wanted in texts {
        assert!(text.contains(wanted), "{wanted:?} is not in: {text}");
    }
}

/// Asserts that a call was refused as misuse, which is the most frequent reason.
#[track_caller]
pub(crate) fn misused<T>(job: &Job, outcome: Result<T>, texts: &[&str]) -> Error {
    refused(job, outcome, ErrorKind::Misuse, texts)
}

/// Asserts that a call has failed because ranks made different calls, or with different arguments.
#[track_caller]
pub(crate) fn disagreed<T>(job: &Job, outcome: Result<T>, texts: &[&str]) -> Error {
    refused(job, outcome, ErrorKind::Disagreement, texts)
}

/// Asserts that a call was refused on all members: as misuse on those whose own arguments are wrong, and as a
/// disagreement on the others.
#[track_caller]
pub(crate) fn refused_together<T>(
    job: &Job,
    outcome: Result<T>,
    is_own_fault: bool,
    texts: &[&str],
) -> Error {
    refused(job, outcome, if is_own_fault { ErrorKind::Misuse } else { ErrorKind::Disagreement }, texts)
}

/// Waits for the outcome of a call that does not wait. A fabric may detect an error only after the
/// call has returned.
pub(crate) fn ended(issued: Result<impl Request>) -> Result<()> {
    issued.and_then(|mut request| request.wait()).map(drop)
}
