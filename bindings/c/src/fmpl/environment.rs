//! Starting, ending, and the send buffer.
//!
//! Unsafe: results go through pointers of C, which the caller vouches for.
#![allow(unsafe_code)]

use super::arguments::result;
use super::communicators;
use crate::process_rank;
use crate::status::Failure;
use std::ffi::{c_int, c_void};
use std::time::Duration;
use tasuki::message::{BUFFERED_OVERHEAD, check_send_buffer, set_send_buffer};

/// Bytes of the send buffer that each message takes beside its own.
pub const FMPL_SENDBUF_OVERHEAD: u64 = 1024;
const _: () = assert!(FMPL_SENDBUF_OVERHEAD == BUFFERED_OVERHEAD);

calls! {
    /// Joins the job. `count` is the number of slots, `mai` 0 .. `count` - 1, that each sender has for each receiver in
    /// each communicator. `ma` and `fa` are not used, and may be null: the library has memory of its own.
    fmpl_init / fmpl_init_(ma: at *const c_void, fa: at *const c_void, count: in c_int) {
        let _ = (ma, fa);
        if count < 1 {
            return Err(Failure::misuse(format!("count is {count}, and must be 1 or more")));
        }
        if communicators::is_running() {
            return Err(Failure::misuse("it was called before"));
        }
        let job = process_rank::start()?;
        // FMPL's sends wait for their receives until fmpl_sendbuf_set says otherwise.
        let begun = set_send_buffer(job, 0, None).map_err(Failure::from);
        match begun.and_then(|()| communicators::begin(job, count)) {
            Ok(()) => Ok(()),
            Err(failure) => process_rank::end().and(Err(failure)),
        }
    }

    /// Leaves the job. Sends what is in the send buffer first.
    fmpl_finalize / fmpl_finalize_() {
        communicators::end()?;
        process_rank::end()
    }

    /// Sets the send buffer: `size` bytes for all messages, each with [`FMPL_SENDBUF_OVERHEAD`] (`buf` is not used, and
    /// may be null), and the time in milliseconds after which a send whose receive is not there copies its message into
    /// it. Less than 0: never.
    fmpl_sendbuf_set / fmpl_sendbuf_set_(buf: at *const c_void, size: in usize, ipara: in c_int) {
        let _ = buf;
        if size > isize::MAX as usize {
            return Err(Failure::misuse(format!("size is {}, and must be 0 or more", size.cast_signed())));
        }
        let after = u64::try_from(ipara).ok().map(Duration::from_millis);
        Ok(set_send_buffer(communicators::job()?, size as u64, after)?)
    }

    /// Sends the messages of the send buffer whose receives are there now. `nsend`: how many went; `nspool`: how many
    /// remain.
    fmpl_sendbuf_check / fmpl_sendbuf_check_(nsend: at *mut c_int, nspool: at *mut c_int) {
        // SAFETY: the caller promises it.
        let (nsend, nspool) = unsafe { (result(nsend, "nsend")?, result(nspool, "nspool")?) };
        let (sent, left) = check_send_buffer(communicators::job()?)?;
        (*nsend, *nspool) = (sent as c_int, left as c_int);
        Ok(())
    }
}
