//! The cases with test switches set, which make the library take the code paths for systems that
//! lack something.
//!
//! Switches are environment variables, so each case runs in a process of its own, with ranks as
//! threads. `POOREST` sets several switches, and every case runs with it. With one switch only
//! those cases run whose code path the switch changes; they are selected by the file of the case.

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

/// Makes a test of a case under one set of switches, if the set is used for the file of the case.
macro_rules! test_in {
    ($switches:ident $module:ident Processes $name:ident) => {};
    // Which ranks sleep, and who wakes them: the library would choose another mode for so few
    // ranks.
    (FENCE sleeping_ranks $ways:ident $name:ident) => { test_in!(FENCE $name); };
    (BARRIER sleeping_ranks $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (BARRIER signals $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    // A rank's registered memory: accesses become requests to the owner instead of copies through
    // the kernel.
    (ASKED registered_memory $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED transfer_requests $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED copies $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED freed_memory $ways:ident $name:ident) => { test_in!(ASKED $name); };
    (ASKED operation_order $ways:ident $name:ident) => { test_in!(ASKED $name); };
    // Payload signals are sent through the fabric.
    (VIA signals $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA sleeping_ranks $ways:ident $name:ident) => { test_in!(VIA $name); };
    // Command queues: threads other than the ranks' own post and run commands, and waiting ranks
    // are found in other ways.
    (BARRIER command_queues $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (BARRIER command_actions $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA command_queues $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA command_actions $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA offloaded_commands $ways:ident $name:ident) => { test_in!(VIA $name); };
    (VIA failed_commands $ways:ident $name:ident) => { test_in!(VIA $name); };
    (BARRIER lost_wakeups $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA lost_wakeups $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE lost_wakeups $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK lost_wakeups $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK offloaded_commands $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_NODE offloaded_commands $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_NODE command_queues $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_NODE command_actions $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK command_queues $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK command_actions $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK failed_commands $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_RANK interrupted_messages $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_NODE interrupted_messages $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK messages $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (BARRIER command_order $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA command_order $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE command_order $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK command_order $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    // Fuzzy barriers and counted transfers consist of commands.
    (FENCE fuzzy_barriers $ways:ident $name:ident) => { test_in!(FENCE $name); };
    (BARRIER fuzzy_barriers $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA fuzzy_barriers $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE fuzzy_barriers $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK fuzzy_barriers $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (FENCE nicam_transfers $ways:ident $name:ident) => { test_in!(FENCE $name); };
    (BARRIER nicam_transfers $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA nicam_transfers $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_NODE nicam_transfers $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK nicam_transfers $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    // The helper runs commands of plans; without it each rank runs only its own.
    (HELPER_NODE extremes $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK extremes $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (HELPER_NODE plans $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_NODE plan_lifetime $ways:ident $name:ident) => { test_in!(HELPER_NODE $name); };
    (HELPER_RANK chunked_plans $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    (BARRIER handlers $ways:ident $name:ident) => { test_in!(BARRIER $name); };
    (VIA handlers $ways:ident $name:ident) => { test_in!(VIA $name); };
    (HELPER_RANK handlers $ways:ident $name:ident) => { test_in!(HELPER_RANK $name); };
    // The kernel refuses what the library asks for.
    (DENIED registered_memory $ways:ident $name:ident) => { test_in!(DENIED $name); };
    (DENIED sleeping_ranks $ways:ident $name:ident) => { test_in!(DENIED $name); };
    (DENIED several_jobs $ways:ident $name:ident) => { test_in!(DENIED $name); };
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
                // Some jobs need an operation that stays unfinished while its owner makes no call.
                // The owner's helper would carry it out.
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
