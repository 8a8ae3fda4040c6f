//! Every case, and every failing job, on ranks that are processes, started by `tasuki run`: on two processes and on five.
//! Threads run the cases on all numbers of ranks.

use tasuki_tests::case_runner::the_case;
use tasuki_tests::each_case;
use tasuki_tests::failing_jobs::FAILING;
use tasuki_tests::processes::{failing_on_processes, on_processes};

const PROGRAM: &str = env!("CARGO_BIN_EXE_conformance");

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        mod shm_processes {
            use super::*;
            $(
                #[test]
                fn $name() {
                    let name = stringify!($name);
                    on_processes(PROGRAM, name, &the_case(name).few_and_many(5), &[]);
                }
            )*
        }
    };
}

each_case!(tests);

#[test]
fn shm_processes_fail_as_they_should() {
    for failing in FAILING {
        failing_on_processes(PROGRAM, failing.name, &[]);
    }
}
