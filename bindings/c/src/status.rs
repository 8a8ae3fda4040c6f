//! The codes of errors, and the text of each thread's last error.
//!
//! Unsafe: two functions are symbols of C.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tasuki::{Error, ErrorKind};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        $($(#[$doc])* pub const $name: c_int = $code;)*

        /// What a code means, if no error of this thread says more.
        fn meaning(code: c_int) -> &'static CStr {
            match code {
                $($code => $text,)*
                _ => c"no such code",
            }
        }
    };
}

codes! {
    /// The call succeeded.
    SUCCESS = 0, c"success";
    /// A wrong argument, or a call at a wrong time.
    ERR_MISUSE = 1, c"a wrong argument, or a call at a wrong time";
    /// Ranks made different calls, or a message does not fit its receive.
    ERR_DISAGREEMENT = 2, c"ranks made different calls, or a message does not fit its receive";
    /// Another rank has died or left.
    ERR_PEER = 3, c"another rank has died or left";
    /// The time limit of the call is over.
    ERR_TIMEOUT = 4, c"the time limit of the call is over";
    /// A bounded structure has no room.
    ERR_FULL = 5, c"a bounded structure has no room";
    /// There is too little memory.
    ERR_NO_MEMORY = 6, c"there is too little memory";
    /// A function of the program has failed.
    ERR_PROGRAM = 7, c"a function of the program has failed";
    /// The system refused something.
    ERR_SYSTEM = 8, c"the system refused something";
    /// The library has a bug.
    ERR_BUG = 9, c"the library has a bug";
    /// The library was not initialised, or was finalised.
    ERR_INIT = 10, c"the library was not initialised, or was finalised";
}

/// Why a call of C fails.
#[derive(Clone, Debug)]
pub struct Failure {
    code: c_int,
    text: String,
}

impl Failure {
    /// A wrong argument.
    pub fn misuse(text: impl Into<String>) -> Failure {
        Failure { code: ERR_MISUSE, text: text.into() }
    }

    /// A bounded structure without room.
    pub fn full(text: impl Into<String>) -> Failure {
        Failure { code: ERR_FULL, text: text.into() }
    }

    /// Too little memory.
    pub fn no_memory(text: impl Into<String>) -> Failure {
        Failure { code: ERR_NO_MEMORY, text: text.into() }
    }

    /// Ranks that made different calls.
    pub fn disagreement(text: impl Into<String>) -> Failure {
        Failure { code: ERR_DISAGREEMENT, text: text.into() }
    }

    /// A call before the library is initialised, or after it was finalised.
    pub fn not_running(text: impl Into<String>) -> Failure {
        Failure { code: ERR_INIT, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::Misuse => ERR_MISUSE,
            ErrorKind::Disagreement => ERR_DISAGREEMENT,
            ErrorKind::PeerFailed => ERR_PEER,
            ErrorKind::TimedOut => ERR_TIMEOUT,
            ErrorKind::Full => ERR_FULL,
            ErrorKind::NoMemory => ERR_NO_MEMORY,
            ErrorKind::Program => ERR_PROGRAM,
            ErrorKind::System => ERR_SYSTEM,
            _ => ERR_BUG,
        };
        Failure { code, text: error.to_string() }
    }
}

thread_local! {
    /// The code and the text of the last error of this thread.
    static LAST: RefCell<Option<(c_int, CString)>> = const { RefCell::new(None) };
}

/// Makes a call for C: returns the code of its error, and keeps the text. A panic becomes the code of a bug.
#[inline(always)]
pub fn code_of(name: &'static str, call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(failure)) => keep(name, failure),
        Err(_) => keep(name, Failure { code: ERR_BUG, text: "the library panicked".into() }),
    }
}

#[cold]
fn keep(name: &str, Failure { code, text }: Failure) -> c_int {
    let text = format!("{name}: {text}").replace('\0', "?");
    // Without the memory of the thread, which is ending, there is nobody to ask for the text.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).ok().map(|text| (code, text)));
    code
}

/// Returns a text for a code: that of the last error of this thread if it has that code, otherwise what the code means.
/// The text is valid until the next call of this thread that fails. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn tasuki_error_string(code: c_int) -> *const c_char {
    let last = LAST.try_with(|last| match &*last.borrow() {
        Some((of, text)) if *of == code => Some(text.as_ptr()),
        _ => None,
    });
    last.ok().flatten().unwrap_or_else(|| meaning(code).as_ptr())
}

/// Returns the code of this thread's last error; 0 if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn tasuki_error_code() -> c_int {
    let code = LAST.try_with(|last| last.borrow().as_ref().map(|(code, _)| *code));
    code.ok().flatten().unwrap_or(SUCCESS)
}

/// Returns the text of this thread's last error; an empty one if there was none.
pub(crate) fn last_text() -> String {
    let text =
        LAST.try_with(|last| last.borrow().as_ref().map(|(_, text)| text.to_string_lossy().into_owned()));
    text.ok().flatten().unwrap_or_default()
}
