//! ACP: a global address space. The basic layer; channels, segmented buffers and collectives are missing.
//!
//! Source: Honda, Yamada, Morie, Nanri, Takami, the collective communication interface of the ACP library, with the names
//! of version 3 of that library. The addresses, handles and accesses are those of Tasuki; `acp.h` says what each call
//! does.
//!
//! | file | what |
//! |---|---|
//! | `infrastructure` | start and end, the numbers of the ranks, the barrier |
//! | `memory` | starter memory, registrations, addresses |
//! | `access` | copies, atomic operations, completion |
//!
//! Unsafe: the functions are symbols of C. No other library of the program has their names, which begin with the paper's
//! prefix.
#![allow(unsafe_code)]

/// Defines calls for C: what each returns, and what it returns when it fails.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $name:ident ($($argument:ident: $type:ty),* $(,)?) -> $result:ty, $failed:expr; $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As `acp.h` says: pointers point to what the call names, which stays for as long as it says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            let mut result = $failed;
            let call = || -> Result<$result, $crate::status::Failure> { $body };
            $crate::status::code_of(stringify!($name), || call().map(|value| result = value));
            result
        }
    )*};
}

pub mod access;
pub mod infrastructure;
pub mod memory;
