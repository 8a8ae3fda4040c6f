//! Every case, and every failing job, on ranks that are processes, started by `tasuki run`.

use tasuki_tests::failing_jobs::FAILING;
use tasuki_tests::processes::{failing_on_processes, on_processes};
use tasuki_tests::{case::COUNTS, each_case};

const PROGRAM: &str = env!("CARGO_BIN_EXE_conformance");

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        mod shm_processes {
            use super::*;
            $(
                #[test]
                fn $name() {
                    on_processes(PROGRAM, stringify!($name), &COUNTS, &[]);
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
