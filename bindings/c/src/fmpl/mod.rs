//! FMPL: messages that are matched in exclusive slots.
//!
//! Source: Tatebe and others, Design and Implementation of FMPL, section 3 (table 1). Each call exists twice: for C, where
//! it returns its code, and for Fortran, where every argument is passed by reference and the last one receives the code.
//! Where the paper is silent, `fmpl.h` says what happens.
//!
//! | file | calls |
//! |---|---|
//! | `environment` | init, finalize, the send buffer |
//! | `communicators` | the table of communicators; create, rank, size, free |
//! | `messages` | send and receive, and their nonblocking forms |
//! | `collectives` | barrier, bcast, reduce, allreduce |
//! | `operations` | the operations of reductions |
//! | `arguments` | pointers and numbers of C as values of Rust |
//!
//! Unsafe: the functions are symbols of C. No other library of the program has their names, which begin with the paper's
//! prefix.
#![allow(unsafe_code)]

/// Defines a call for C, and the external symbol for Fortran that passes the values of its arguments on.
///
/// In the Fortran form, numbers are default integers; a pointer stays a pointer; the last argument gets the code.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $name:ident / $fortran:ident ($($argument:ident: $kind:tt $type:ty),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As `fmpl.h` says: pointers point to as many bytes as the call names, which nobody else uses meanwhile.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::status::code_of(stringify!($name), || $body)
        }

        /// The same for Fortran.
        ///
        /// # Safety
        /// That of the call for C; all arguments are passed by reference.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran(
            $($argument: fortran_type!($kind $type),)*
            ier: *mut std::ffi::c_int,
        ) {
            // SAFETY: Fortran passes references to its arguments, and the caller promises the rest.
            unsafe {
                let code = $name($(fortran_value!($kind $argument)),*);
                if !ier.is_null() {
                    ier.write(code);
                }
            }
        }
    )*};
}

/// The type of an argument in Fortran: `in` numbers are default integers by reference, `at` pointers stay pointers.
macro_rules! fortran_type {
    (in $type:ty) => { *const std::ffi::c_int };
    (at $type:ty) => { $type };
}

/// The value of an argument of Fortran, as C passes it.
macro_rules! fortran_value {
    (in $argument:ident) => {
        // A null pointer is an argument that was left out: no number that a call takes.
        if $argument.is_null() { -2 } else { $argument.read() } as _
    };
    (at $argument:ident) => { $argument };
}

pub mod arguments;
pub mod collectives;
pub mod communicators;
pub mod environment;
pub mod messages;
pub mod operations;
