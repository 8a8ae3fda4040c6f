//! The cases with test switches thrown, which walk the paths for poorer systems.
//!
//! Switches are variables of the environment, so each case runs in a process of its own, with ranks as threads. With
//! all switches thrown at once every case runs; with a single one those whose path it changes, chosen by their files.

use tasuki_tests::case_runner::Switches;
use tasuki_tests::{case_runner, each_case};

const PROGRAM: &str = env!("CARGO_BIN_EXE_conformance");

const FENCE: Switches = &[("TASUKI_WAKE", "fence")];
const BARRIER: Switches = &[("TASUKI_WAKE", "membarrier")];
const ASKED: Switches = &[("TASUKI_OWN_MEMORY", "request")];
const VIA: Switches = &[("TASUKI_DIRECT_SIGNALS", "off")];
const DENIED: Switches = &[("TASUKI_DISABLE", "membarrier,pidfd,process_vm")];
const HELPER_NODE: Switches = &[("TASUKI_HELPER", "node")];
const HELPER_RANK: Switches = &[("TASUKI_HELPER", "rank")];
const POOREST: Switches = &[
    ("TASUKI_WAKE", "fence"),
    ("TASUKI_OWN_MEMORY", "request"),
    ("TASUKI_DIRECT_SIGNALS", "off"),
    ("TASUKI_DISABLE", "membarrier,pidfd,process_vm"),
];

/// A test of a case in a set of switches, if the set is thrown for the case's file.
macro_rules! test_in {
    ($switches:ident $module:ident Processes $name:ident) => {};
    // Who sleeps and who wakes whom: not the mode that the library chooses by itself for that many ranks.
    (FENCE sleep $ways:ident $name:ident) => { test_in!(FENCE $name); };
    (BARRIER sleep $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (BARRIER signals $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    // Memory that is a rank's own: what the kernel copies otherwise becomes a request to the owner.
    (ASKED own_memory $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED requests $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED copies $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED promises $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED order $ways:ident $name:ident) => { test_in!(ASKED $name); };
    // Lines pass through the fabric.
    (VIA signals $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA sleep $ways:ident $name:ident) => { test_in!(VIA $name); };
    // Command queues: other posters and readers than the ranks' threads, other ways to find who looks.
    (BARRIER queues $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (BARRIER carrying $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA queues $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA carrying $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA travelling $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA poisoned $ways:ident $name:ident) => { test_in!(VIA $name); };
    (BARRIER overlooked $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA overlooked $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE overlooked $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK overlooked $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK travelling $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_NODE travelling $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_NODE queues $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_NODE carrying $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK queues $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK carrying $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK poisoned $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK midway $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_NODE midway $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK messages $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (BARRIER successors $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA successors $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE successors $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK successors $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    // Fuzzy barriers and counted transfers are made of commands.
    (FENCE fuzzy $ways:ident $name:ident) => { test_in!(FENCE $name); };
    (BARRIER fuzzy $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA fuzzy $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE fuzzy $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK fuzzy $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (FENCE transfers $ways:ident $name:ident) => { test_in!(FENCE $name); };
    (BARRIER transfers $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA transfers $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE transfers $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK transfers $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    // Without a helper each rank runs its plans alone.
    (HELPER_NODE plans $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_NODE plans_that_end $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK passing $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (BARRIER calls $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA calls $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_RANK calls $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    // What the kernel refuses.
    (DENIED own_memory $ways:ident $name:ident) => { test_in!(DENIED $name); };
    (DENIED sleep $ways:ident $name:ident) => { test_in!(DENIED $name); };
    (DENIED jobs $ways:ident $name:ident) => { test_in!(DENIED $name); };
    (POOREST $module:ident $ways:ident $name:ident) => { test_in!(POOREST $name); };
    ($switches:ident $module:ident $ways:ident $name:ident) => {};
    ($switches:ident $name:ident) => {
        #[test]
        fn $name() {
            super::case_runner::on_switched_threads(super::PROGRAM, stringify!($name), super::$switches);
        }
    };
}

macro_rules! tests_with {
    ($shm_threads:ident $switches:ident $($module:ident $ways:ident $name:ident)*) => {
        mod $shm_threads {
            $(test_in!($switches $module $ways $name);)*

            #[test]
            fn fail_as_they_should() {
                // Some hold an operation back by an owner that makes no call; its helper would carry it out.
                if super::$switches == super::HELPER_RANK {
                    return;
                }
                for failing in tasuki_tests::failing_jobs::everywhere() {
                    super::case_runner::failing_on_switched_threads(super::PROGRAM, failing.name, super::$switches);
                }
            }
        }
    };
}

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        tests_with!(shm_threads_wake_fence FENCE $($module $ways $name)*);
        tests_with!(shm_threads_wake_barrier BARRIER $($module $ways $name)*);
        tests_with!(shm_threads_own_memory_asked ASKED $($module $ways $name)*);
        tests_with!(shm_threads_direct_off VIA $($module $ways $name)*);
        tests_with!(shm_threads_denied DENIED $($module $ways $name)*);
        tests_with!(shm_threads_helper_node HELPER_NODE $($module $ways $name)*);
        tests_with!(shm_threads_helper_rank HELPER_RANK $($module $ways $name)*);
        tests_with!(shm_threads_poorest POOREST $($module $ways $name)*);
    };
}

each_case!(tests);
