//! What an error must tell: who, in which call, whose doing, and the way out.

use tasuki::{Blame, Error, Handle, Job, Pod, Request, Result};

/// Asserts that a call was refused as it should be: the error names this rank and a call, blames rightly, and its
/// text has all of `texts` in it, of which one is the remedy.
#[track_caller]
pub(crate) fn refused<T>(job: &Job, outcome: Result<T>, blame: Blame, texts: &[&str]) -> Error {
    let Err(error) = outcome else { panic!("the call went well; expected was {blame:?} with {texts:?}") };
    told(job, &error, blame, texts);
    error
}

/// The same of an error at hand.
#[track_caller]
pub(crate) fn told(job: &Job, error: &Error, blame: Blame, texts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.blame(), blame, "{text}");
    assert_eq!(error.rank(), Some(job.rank()), "which rank? {text}");
    assert!(!error.call().is_empty(), "which call? {text}");
    for wanted in texts {
        assert!(text.contains(wanted), "{wanted:?} is not in: {text}");
    }
}

/// Misuse, by far the commonest.
#[track_caller]
pub(crate) fn misused<T>(job: &Job, outcome: Result<T>, texts: &[&str]) -> Error {
    refused(job, outcome, Blame::Misuse, texts)
}

/// What a call that does not wait gives, to be waited for.
pub(crate) trait Unfinished {
    fn end(self, job: &Job) -> Result<()>;
}

impl Unfinished for Handle {
    fn end(self, job: &Job) -> Result<()> {
        job.complete(self)
    }
}

impl<T: Pod> Unfinished for Request<T> {
    fn end(self, _: &Job) -> Result<()> {
        self.wait().map(drop)
    }
}

/// The outcome of a call that does not wait: a fabric may find out what is wrong only when it has begun.
pub(crate) fn ended(job: &Job, issued: Result<impl Unfinished>) -> Result<()> {
    issued.and_then(|unfinished| unfinished.end(job))
}
