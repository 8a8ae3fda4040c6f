//! Allgathers: each member of a group gets a block of every other. Each member executes the list for its own block.
//!
//! Unsafe: the functions are symbols of C; groups and arrays are memory of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::collective::{Array, Data};
use super::collective_calls;
use super::collective_setup::{Kind, Memory};
use std::ffi::{c_int, c_void};

calls! {
    /// Creates an allgather of one array.
    acp_create_allgather_direct(group: *const c_int, np_group: c_int, array: *mut c_void, arraysize: usize) -> usize, 0; {
        // SAFETY: the caller promises both.
        unsafe {
            collective_calls::create(Kind::Allgather, (group, np_group), |state| Memory::direct(state, array, arraysize))
        }
    }

    /// Starts an allgather of a part of its array.
    acp_send_allgather_direct(allgather: usize, offset: usize, size: usize) -> u64, 0; {
        collective_calls::start(Kind::Allgather, allgather, Data::InArray { offset, bytes: size })
    }

    /// Frees an allgather of one array.
    acp_free_allgather_direct(allgather: usize) -> c_int, -1; {
        collective_calls::free(Kind::Allgather, allgather)
    }

    /// Creates an allgather of any arrays.
    acp_create_allgather_buffered(group: *const c_int, np_group: c_int, buffersize: usize) -> usize, 0; {
        // SAFETY: the caller promises it.
        unsafe {
            collective_calls::create(Kind::Allgather, (group, np_group), |state| Memory::buffered(state, buffersize))
        }
    }

    /// Starts an allgather of an array.
    acp_send_allgather_buffered(allgather: usize, array: *mut c_void, size: usize) -> u64, 0; {
        collective_calls::start(Kind::Allgather, allgather, Data::Staged { array: Array::new(array), bytes: size })
    }

    /// Frees an allgather of any arrays.
    acp_free_allgather_buffered(allgather: usize) -> c_int, -1; {
        collective_calls::free(Kind::Allgather, allgather)
    }
}
