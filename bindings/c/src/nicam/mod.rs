//! NICAM: transfers with notification.
//!
//! Source: Matsuda, Tanaka, Kubota, Sato, "Network Interface Active Messages for SMP clusters". The transfers are those of
//! [`tasuki::nicam`]; `nicam.h` says what each call does.
//!
//! | file | what |
//! |---|---|
//! | `state` | what a rank has while it runs; start and end |
//! | `places` | which memory of which node an address of C names |
//! | `transfers` | copies, flags of other nodes, counters, broadcasts, copies by key |
//! | `flags` | waiting for flags; flags that are set when a barrier or all transfers are done |
//!
//! Unsafe: the functions are symbols of C. No other library of the program has their names, which begin with the paper's
//! prefix.
#![allow(unsafe_code)]

/// Defines calls for C.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As `nicam.h` says: pointers point to what the call names, which nobody else uses in a way that it forbids.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::status::code_of(stringify!($name), || $body)
        }
    )*};
}

pub mod flags;
pub mod places;
pub mod state;
pub mod transfers;
