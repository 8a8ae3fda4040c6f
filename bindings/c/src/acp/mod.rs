//! ACP: a global address space. The basic layer, and of the middle layer: channels, segmented buffers, memory of any rank,
//! and the collectives of the paper.
//!
//! Source: Honda, Yamada, Morie, Nanri, Takami, the collective communication interface of the ACP library, with the names
//! of version 3 of that library. The addresses, handles and accesses are those of Tasuki; `acp.h` says what each call
//! does.
//!
//! | file | what |
//! |---|---|
//! | `infrastructure` | start and end, the barrier |
//! | `state` | what a rank has while ACP runs, the numbers of the ranks |
//! | `memory` | starter memory, registrations, addresses |
//! | `access` | copies, atomic operations, completion |
//! | `allocation` | memory of any rank, which any rank allocates and frees |
//! | `channels` | messages in order from one rank to another |
//! | `segmented_buffers` | rings of segments in memory of the program |
//! | `broadcast`, `allgather` | the calls of the collectives; `collective_calls` has what these have in common |
//! | `collectives` | the collectives of a rank, and the handles of their starts |
//! | `collective` | a collective of a group: starts in rounds, end |
//! | `collective_setup` | how the members of a group create it |
//! | `command_list` | the copies of a round, which one rank executes |
//! | `ongoing` | the waker that advances channels and collectives |
//! | `signals` | signals that are used again |
//! | `slots` | the slots of messages by which ranks set up what they share |
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
pub mod allgather;
pub mod allocation;
pub mod broadcast;
pub mod channels;
mod collective;
mod collective_calls;
mod collective_setup;
mod collectives;
mod command_list;
pub mod infrastructure;
pub mod memory;
mod ongoing;
pub mod segmented_buffers;
mod signals;
mod slots;
mod state;
