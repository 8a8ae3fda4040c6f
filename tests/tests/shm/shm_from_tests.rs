//! Jobs of processes that a test starts by `tasuki::processes`.

use std::time::{Duration, Instant};
use tasuki::{ErrorKind, processes};

/// Time in which a job must end of which a rank has failed. The other ranks have 5 s to end by themselves.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn the_output_of_each_rank_is_returned() {
    let outputs = processes(3, env!("CARGO_BIN_EXE_conformance"))
        .arg("a1_addresses_differ_and_name_their_rank")
        .env("TASUKI_LOG", "info")
        .run()
        .unwrap();
    assert_eq!(outputs.len(), 3);
    for (rank, output) in outputs.iter().enumerate() {
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && printed.contains(&format!("rank {rank}")), "{printed}");
    }
}

/// However a rank fails, the error names it, says how it ended, and shows what it has printed.
#[test]
fn a_rank_that_fails_is_named() {
    for (way, how, printed) in [
        ("error", "exit code 1", "rank 1"),
        ("panic", "exit code", "panicked"),
        ("abort", "SIGABRT", ""),
        ("kill", "SIGKILL", ""),
        ("exit", "exit code", ""),
    ] {
        let begin = Instant::now();
        let error = processes(3, env!("CARGO_BIN_EXE_ranks_that_fail")).arg(way).run().expect_err(way);
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Program, "{way}: {text}");
        assert!(text.starts_with("rank 1: "), "{way}: {text}");
        assert!(text.contains(how) && text.contains(printed), "{way}: {text}");
        assert!(begin.elapsed() < SOON, "{way}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_rank_that_exits_without_leaving_has_failed() {
    let error = processes(3, env!("CARGO_BIN_EXE_ranks_that_exit_wrongly")).arg("exit").run().unwrap_err();
    assert!(error.to_string().contains("rank 1: its process has ended: exit code 0 without"), "{error}");
}

#[test]
fn a_job_that_hangs_ends_in_time_and_says_where() {
    let limit = Duration::from_millis(700);
    let crossed = processes(2, env!("CARGO_BIN_EXE_ranks_that_block")).arg("crossed").timeout(limit);
    let (begin, error) = (Instant::now(), crossed.run().unwrap_err());
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let text = error.to_string();
    assert!(text.contains("rank 0 waits in recv(slot 5 from rank 1)"), "{text}");
    assert!(text.contains("rank 1 waits in barrier(world)"), "{text}");
    assert!(begin.elapsed() < SOON);
}

#[test]
fn wrong_programs_and_numbers_are_refused() {
    let missing = processes(2, "/nonexistent/program").run().unwrap_err();
    assert!(missing.kind() == ErrorKind::System && missing.to_string().contains("/nonexistent/program"));
    assert_eq!(processes(0, "true").run().unwrap_err().kind(), ErrorKind::Misuse);
    // A program that never joins is no rank, but ends in order.
    assert!(processes(2, "true").run().unwrap().iter().all(|output| output.status.success()));
    let lonely = processes(2, "false").run().unwrap_err().to_string();
    assert!(lonely.contains("exit code 1"), "{lonely}");
}

/// Jobs may run side by side, as tests do.
#[test]
fn jobs_run_beside_each_other() {
    std::thread::scope(|scope| {
        let job = || {
            processes(2, env!("CARGO_BIN_EXE_conformance"))
                .arg("a1_addresses_differ_and_name_their_rank")
                .run()
        };
        let jobs: Vec<_> = (0..4).map(|_| scope.spawn(job)).collect();
        jobs.into_iter().for_each(|job| assert_eq!(job.join().unwrap().unwrap().len(), 2));
    });
}
