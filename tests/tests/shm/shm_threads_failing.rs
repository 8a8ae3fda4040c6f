//! Every failing job on ranks that are threads of this process.

use tasuki_tests::{case_runner, failing_jobs};

/// One test for all jobs, because several of them have one function. The message of a failure names
/// the job.
#[test]
fn shm_threads_fail_as_they_should() {
    for failing in failing_jobs::everywhere() {
        case_runner::failing_on_threads(failing.name);
    }
}
