//! What a reader wants to know first of a step that failed: which tests, and their panics. The whole log stands far
//! above the summary, and a CI often shows only the end of its output.

use std::collections::BTreeSet;

/// Most lines that one step gives.
const LINES_MAX: usize = 60;
/// Longest line, in characters; the rest is cut off.
const LINE_MAX: usize = 240;

/// The words with which nextest and the standard harness begin or end the line of a test that failed.
const NEXTEST: [&str; 6] = ["FAIL [", "TIMEOUT [", "LEAK-FAIL [", "SIGABRT [", "SIGSEGV [", "SIGKILL ["];
const HARNESS: &str = " ... FAILED";

/// Lines of a log that name failing tests, compile errors and sanitizer reports, and the lines of panics with their
/// messages. Each line once.
pub(super) fn of(log: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut previous_panicked = false;
    for line in log.lines().map(str::trim) {
        let panicked = line.contains("panicked at ");
        if (panicked || previous_panicked || names_failure(line))
            && seen.insert(without_time(line).to_owned())
        {
            found.push(line.chars().take(LINE_MAX).collect());
        }
        previous_panicked = panicked;
    }
    // nextest names failing tests again at its end, after all output of tests
    found.drain(..found.len().saturating_sub(LINES_MAX));
    found
}

fn names_failure(line: &str) -> bool {
    NEXTEST.iter().any(|word| line.starts_with(word))
        || line.ends_with(HARNESS)
        || line.starts_with("error")
        || line.contains("SUMMARY: AddressSanitizer")
}

/// The line without nextest's `[   1.234s]` and counts: a test that failed is named twice, with different brackets.
fn without_time(line: &str) -> &str {
    match NEXTEST.iter().any(|word| line.starts_with(word)) {
        true => line.rsplit(") ").next().unwrap_or(line).rsplit("] ").next().unwrap_or(line),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "
        PASS [   0.1s] (1/3) a quiet::test
        FAIL [   2.3s] (2/3) tasuki-tests::shm shm::a
  thread 'main' panicked at tests/src/a.rs:3:5:
  assertion failed: left == right
  note: run with RUST_BACKTRACE=1
     TIMEOUT [ 180.0s] (3/3) tasuki-tests::shm shm::b
test c ... FAILED
   Summary [ 9.0s] 3 tests run
        FAIL [   2.3s] (2/3) tasuki-tests::shm shm::a
error: test run failed
";

    #[test]
    fn failing_tests_and_their_panics_are_found_once() {
        let expected = [
            "FAIL [   2.3s] (2/3) tasuki-tests::shm shm::a",
            "thread 'main' panicked at tests/src/a.rs:3:5:",
            "assertion failed: left == right",
            "TIMEOUT [ 180.0s] (3/3) tasuki-tests::shm shm::b",
            "test c ... FAILED",
            "error: test run failed",
        ];
        assert_eq!(of(LOG), expected);
    }

    #[test]
    fn long_logs_keep_their_end() {
        let log: String = (0..1000).map(|number| format!("test {number} ... FAILED\n")).collect();
        assert_eq!(of(&log).len(), LINES_MAX);
        assert_eq!(of(&log).last().unwrap(), "test 999 ... FAILED");
    }
}
