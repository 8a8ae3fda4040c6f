//! Every case with test switches thrown, which walk the paths for poorer systems.
//!
//! Switches are variables of the environment, so each case runs in a process of its own, with ranks as threads.

use tasuki_tests::run::Switches;
use tasuki_tests::{each_case, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_conformance");

macro_rules! test_of {
    ($switches:ident Processes $name:ident) => {};
    ($switches:ident $ways:ident $name:ident) => {
        #[test]
        fn $name() {
            super::run::on_switched_threads(super::PROGRAM, stringify!($name), super::$switches);
        }
    };
}

macro_rules! tests_with {
    ($shm_threads:ident $switches:ident $($ways:ident $name:ident)*) => {
        mod $shm_threads {
            $(test_of!($switches $ways $name);)*

            #[test]
            fn fail_as_they_should() {
                for failing in tasuki_tests::failing::FAILING {
                    super::run::failing_on_switched_threads(super::PROGRAM, failing.name, super::$switches);
                }
            }
        }
    };
}

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        tests_with!(shm_threads_wake_fence FENCE $($ways $name)*);
        tests_with!(shm_threads_wake_barrier BARRIER $($ways $name)*);
        tests_with!(shm_threads_own_memory_asked ASKED $($ways $name)*);
        tests_with!(shm_threads_direct_off VIA $($ways $name)*);
        tests_with!(shm_threads_denied DENIED $($ways $name)*);
        tests_with!(shm_threads_poorest POOREST $($ways $name)*);
    };
}

const FENCE: Switches = &[("TASUKI_WAKE", "fence")];
const BARRIER: Switches = &[("TASUKI_WAKE", "barrier")];
const ASKED: Switches = &[("TASUKI_OWN_MEMORY", "asked")];
const VIA: Switches = &[("TASUKI_DIRECT", "off")];
const DENIED: Switches = &[("TASUKI_DENY", "membarrier,pidfd,process_vm")];
const POOREST: Switches = &[
    ("TASUKI_WAKE", "fence"),
    ("TASUKI_OWN_MEMORY", "asked"),
    ("TASUKI_DIRECT", "off"),
    ("TASUKI_DENY", "membarrier,pidfd,process_vm"),
];

each_case!(tests);
