//! The names of BLACS in C (`Cdgesd2d`, arguments by value) and in Fortran (`dgesd2d_`, arguments by reference).
//!
//! Unsafe: the functions are symbols of C, whose pointers the program vouches for. A panic ends the process, since BLACS
//! has no way to return an error.
#![allow(unsafe_code)]

use crate::combine::{Extreme, Places};
use crate::library::library;
use crate::matrix::Form;
use crate::{broadcast, combine, environment, grids, point_to_point};
use std::ffi::{c_char, c_double, c_int};
use tasuki::collective::Complex;

/// The first letter of a string; a blank if there is none.
///
/// # Safety
/// The pointer is null or points to a letter.
unsafe fn letter(at: *const c_char) -> u8 {
    // SAFETY: the caller promises it.
    unsafe { at.as_ref() }.map_or(b' ', |&letter| letter as u8)
}

/// Defines a call in C, and in Fortran. `in` arguments are integers, passed by value in C; the others are pointers in
/// both.
macro_rules! calls {
    ($($c:ident $fortran:ident ($($argument:ident: $kind:tt $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        #[doc = concat!("`", stringify!($fortran), "` in C.")]
        ///
        /// # Safety
        /// The pointers point to what BLACS says.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $c($($argument: $type),*) $(-> $result)? {
            // SAFETY: the program promises it.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }

        #[doc = concat!("`", stringify!($c), "` in Fortran.")]
        ///
        /// # Safety
        /// The pointers point to what BLACS says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran($($argument: by_reference!($kind $type)),*) $(-> $result)? {
            // SAFETY: the program promises it.
            #[allow(unused_unsafe)]
            unsafe { $c($(value_of!($kind $argument)),*) }
        }
    )*};
}

macro_rules! by_reference {
    (in $type:ty) => { *const $type };
    (at $type:ty) => { $type };
}

macro_rules! value_of {
    (in $argument:ident) => {
        $argument.read()
    };
    (at $argument:ident) => {
        $argument
    };
}

/// The calls for the elements of one type.
macro_rules! calls_of {
    ($type:ty:
        $gesd:ident $gesd_:ident $gerv:ident $gerv_:ident $trsd:ident $trsd_:ident $trrv:ident $trrv_:ident
        $gebs:ident $gebs_:ident $gebr:ident $gebr_:ident $trbs:ident $trbs_:ident $trbr:ident $trbr_:ident
        $gsum:ident $gsum_:ident $gamx:ident $gamx_:ident $gamn:ident $gamn_:ident
    ) => {
        calls! {
            $gesd $gesd_ (
                ctxt: in c_int, m: in c_int, n: in c_int, a: at *const $type, lda: in c_int,
                rdest: in c_int, cdest: in c_int
            ) { point_to_point::send(ctxt, Form::All, [m, n, lda], a, (rdest, cdest)) }
            $gerv $gerv_ (
                ctxt: in c_int, m: in c_int, n: in c_int, a: at *mut $type, lda: in c_int,
                rsrc: in c_int, csrc: in c_int
            ) { point_to_point::recv(ctxt, Form::All, [m, n, lda], a, (rsrc, csrc)) }
            $trsd $trsd_ (
                ctxt: in c_int, uplo: at *const c_char, diag: at *const c_char, m: in c_int, n: in c_int,
                a: at *const $type, lda: in c_int, rdest: in c_int, cdest: in c_int
            ) {
                let form = Form::trapezoid(letter(uplo), letter(diag));
                point_to_point::send(ctxt, form, [m, n, lda], a, (rdest, cdest))
            }
            $trrv $trrv_ (
                ctxt: in c_int, uplo: at *const c_char, diag: at *const c_char, m: in c_int, n: in c_int,
                a: at *mut $type, lda: in c_int, rsrc: in c_int, csrc: in c_int
            ) {
                let form = Form::trapezoid(letter(uplo), letter(diag));
                point_to_point::recv(ctxt, form, [m, n, lda], a, (rsrc, csrc))
            }
            $gebs $gebs_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, m: in c_int, n: in c_int,
                a: at *mut $type, lda: in c_int
            ) {
                let how = (letter(scope), letter(top));
                broadcast::broadcast(ctxt, how, Form::All, [m, n, lda], a, None)
            }
            $gebr $gebr_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, m: in c_int, n: in c_int,
                a: at *mut $type, lda: in c_int, rsrc: in c_int, csrc: in c_int
            ) {
                let how = (letter(scope), letter(top));
                broadcast::broadcast(ctxt, how, Form::All, [m, n, lda], a, Some((rsrc, csrc)))
            }
            $trbs $trbs_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, uplo: at *const c_char,
                diag: at *const c_char, m: in c_int, n: in c_int, a: at *mut $type, lda: in c_int
            ) {
                let (how, form) = ((letter(scope), letter(top)), Form::trapezoid(letter(uplo), letter(diag)));
                broadcast::broadcast(ctxt, how, form, [m, n, lda], a, None)
            }
            $trbr $trbr_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, uplo: at *const c_char,
                diag: at *const c_char, m: in c_int, n: in c_int, a: at *mut $type, lda: in c_int,
                rsrc: in c_int, csrc: in c_int
            ) {
                let (how, form) = ((letter(scope), letter(top)), Form::trapezoid(letter(uplo), letter(diag)));
                broadcast::broadcast(ctxt, how, form, [m, n, lda], a, Some((rsrc, csrc)))
            }
            $gsum $gsum_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, m: in c_int, n: in c_int,
                a: at *mut $type, lda: in c_int, rdest: in c_int, cdest: in c_int
            ) { combine::sum(ctxt, (letter(scope), letter(top)), [m, n, lda], a, (rdest, cdest)) }
            $gamx $gamx_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, m: in c_int, n: in c_int,
                a: at *mut $type, lda: in c_int, ra: at *mut c_int, ca: at *mut c_int, ldia: in c_int,
                rdest: in c_int, cdest: in c_int
            ) {
                let (how, places) = ((letter(scope), letter(top)), Places { rows: ra, columns: ca, lda: ldia });
                combine::extreme(ctxt, how, [m, n, lda], a, (Extreme::Largest, places), (rdest, cdest))
            }
            $gamn $gamn_ (
                ctxt: in c_int, scope: at *const c_char, top: at *const c_char, m: in c_int, n: in c_int,
                a: at *mut $type, lda: in c_int, ra: at *mut c_int, ca: at *mut c_int, ldia: in c_int,
                rdest: in c_int, cdest: in c_int
            ) {
                let (how, places) = ((letter(scope), letter(top)), Places { rows: ra, columns: ca, lda: ldia });
                combine::extreme(ctxt, how, [m, n, lda], a, (Extreme::Smallest, places), (rdest, cdest))
            }
        }
    };
}

calls_of! { i32:
    Cigesd2d igesd2d_ Cigerv2d igerv2d_ Citrsd2d itrsd2d_ Citrrv2d itrrv2d_
    Cigebs2d igebs2d_ Cigebr2d igebr2d_ Citrbs2d itrbs2d_ Citrbr2d itrbr2d_
    Cigsum2d igsum2d_ Cigamx2d igamx2d_ Cigamn2d igamn2d_
}
calls_of! { f32:
    Csgesd2d sgesd2d_ Csgerv2d sgerv2d_ Cstrsd2d strsd2d_ Cstrrv2d strrv2d_
    Csgebs2d sgebs2d_ Csgebr2d sgebr2d_ Cstrbs2d strbs2d_ Cstrbr2d strbr2d_
    Csgsum2d sgsum2d_ Csgamx2d sgamx2d_ Csgamn2d sgamn2d_
}
calls_of! { f64:
    Cdgesd2d dgesd2d_ Cdgerv2d dgerv2d_ Cdtrsd2d dtrsd2d_ Cdtrrv2d dtrrv2d_
    Cdgebs2d dgebs2d_ Cdgebr2d dgebr2d_ Cdtrbs2d dtrbs2d_ Cdtrbr2d dtrbr2d_
    Cdgsum2d dgsum2d_ Cdgamx2d dgamx2d_ Cdgamn2d dgamn2d_
}
calls_of! { Complex<f32>:
    Ccgesd2d cgesd2d_ Ccgerv2d cgerv2d_ Cctrsd2d ctrsd2d_ Cctrrv2d ctrrv2d_
    Ccgebs2d cgebs2d_ Ccgebr2d cgebr2d_ Cctrbs2d ctrbs2d_ Cctrbr2d ctrbr2d_
    Ccgsum2d cgsum2d_ Ccgamx2d cgamx2d_ Ccgamn2d cgamn2d_
}
calls_of! { Complex<f64>:
    Czgesd2d zgesd2d_ Czgerv2d zgerv2d_ Cztrsd2d ztrsd2d_ Cztrrv2d ztrrv2d_
    Czgebs2d zgebs2d_ Czgebr2d zgebr2d_ Cztrbs2d ztrbs2d_ Cztrbr2d ztrbr2d_
    Czgsum2d zgsum2d_ Czgamx2d zgamx2d_ Czgamn2d zgamn2d_
}

calls! {
    Cblacs_pinfo blacs_pinfo_ (mypnum: at *mut c_int, nprocs: at *mut c_int) {
        (*mypnum, *nprocs) = environment::pinfo();
    }
    Cblacs_setup blacs_setup_ (mypnum: at *mut c_int, nprocs: at *mut c_int) {
        (*mypnum, *nprocs) = environment::pinfo();
    }
    Cblacs_get blacs_get_ (ctxt: in c_int, what: in c_int, val: at *mut c_int) {
        library();
        for (place, value) in environment::get(ctxt, what).into_iter().enumerate() {
            val.add(place).write(value);
        }
    }
    Cblacs_set blacs_set_ (ctxt: in c_int, what: in c_int, val: at *const c_int) {
        environment::set(ctxt, what, val.read())
    }
    Cblacs_gridinit blacs_gridinit_ (ctxt: at *mut c_int, order: at *const c_char, nprow: in c_int, npcol: in c_int) {
        library();
        *ctxt = grids::init(*ctxt, letter(order), nprow, npcol);
    }
    Cblacs_gridmap blacs_gridmap_ (
        ctxt: at *mut c_int, usermap: at *const c_int, ldup: in c_int, nprow: in c_int, npcol: in c_int
    ) {
        library();
        let ldup = usize::try_from(ldup).unwrap_or(0);
        *ctxt = grids::map(*ctxt, |row, column| usermap.add(row + column * ldup).read(), nprow, npcol);
    }
    Cblacs_gridinfo blacs_gridinfo_ (
        ctxt: in c_int, nprow: at *mut c_int, npcol: at *mut c_int, myrow: at *mut c_int, mycol: at *mut c_int
    ) {
        let values = grids::info(ctxt);
        // The places may be the same one.
        for (at, value) in [nprow, npcol, myrow, mycol].into_iter().zip(values) {
            at.write(value);
        }
    }
    Cblacs_gridexit blacs_gridexit_ (ctxt: in c_int) { grids::exit(ctxt) }
    Cblacs_exit blacs_exit_ (notdone: in c_int) { environment::exit(notdone != 0) }
    Cblacs_abort blacs_abort_ (ctxt: in c_int, errornum: in c_int) { environment::abort(ctxt, errornum) }
    Cblacs_freebuff blacs_freebuff_ (ctxt: in c_int, wait: in c_int) {
        let _ = (ctxt, wait);
        environment::free_buffers()
    }
    Cblacs_barrier blacs_barrier_ (ctxt: in c_int, scope: at *const c_char) { grids::barrier(ctxt, letter(scope)) }
    Cblacs_pnum blacs_pnum_ (ctxt: in c_int, prow: in c_int, pcol: in c_int) -> c_int {
        grids::number(ctxt, prow, pcol)
    }
    Cblacs_pcoord blacs_pcoord_ (ctxt: in c_int, nodenum: in c_int, prow: at *mut c_int, pcol: at *mut c_int) {
        (*prow, *pcol) = grids::place(ctxt, nodenum);
    }
    Cdcputime00 dcputime00_ () -> c_double { -1.0 }
    Cdwalltime00 dwalltime00_ () -> c_double {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
    }
    Cksendid ksendid_ (ctxt: in c_int, rdest: in c_int, cdest: in c_int) -> c_int { let _ = (ctxt, rdest, cdest); 0 }
    Ckrecvid krecvid_ (ctxt: in c_int, rsrc: in c_int, csrc: in c_int) -> c_int { let _ = (ctxt, rsrc, csrc); 0 }
    Ckbsid kbsid_ (ctxt: in c_int, scope: at *const c_char) -> c_int { let _ = (ctxt, scope); 0 }
    Ckbrid kbrid_ (ctxt: in c_int, scope: at *const c_char, rsrc: in c_int, csrc: in c_int) -> c_int {
        let _ = (ctxt, scope, rsrc, csrc);
        0
    }
    Csys2blacs_handle sys2blacs_handle_ (system: in c_int) -> c_int { system }
    Cblacs2sys_handle blacs2sys_handle_ (handle: in c_int) -> c_int { handle }
    Cfree_blacs_system_handle free_blacs_system_handle_ (handle: in c_int) { let _ = handle; }
}
