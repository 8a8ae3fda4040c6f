//! Every failing job on ranks that are threads of this process.

use tasuki_tests::{failing, run};

/// One test for all, since several of them share a name: each says which one it is when it fails.
#[test]
fn shm_threads_fail_as_they_should() {
    for failing in failing::everywhere() {
        run::failing_on_threads(failing.name);
    }
}
