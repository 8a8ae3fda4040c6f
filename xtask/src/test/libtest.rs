//! Reads the output of the standard test harness: how many tests ran, and whether one failed.

/// The counts of all harnesses of a run.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Harnesses in which no test ran.
    pub(super) idle: usize,
}

impl Tally {
    /// Adds up the lines `test result: ok. 3 passed; 0 failed; ...`.
    pub(super) fn of(output: &str) -> Tally {
        let mut tally = Tally::default();
        for line in output.lines().filter_map(|line| line.trim_start().strip_prefix("test result: ")) {
            let (passed, failed) = (count(line, "passed"), count(line, "failed"));
            tally.passed += passed;
            tally.failed += failed;
            tally.idle += usize::from(passed + failed == 0);
        }
        tally
    }
}

/// The number before a word.
fn count(line: &str, word: &str) -> usize {
    let words: Vec<&str> = line.split([' ', ';', '.']).collect();
    let number = words.windows(2).find(|pair| pair[1] == word);
    number.and_then(|pair| pair[0].parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str =
        "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.1s";
    const BAD: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out;";
    const NONE: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out;";

    #[test]
    fn harnesses_are_added_up() {
        let output = format!("running 3 tests\n{OK}\n\n{BAD}\n{NONE}\n");
        assert_eq!(Tally::of(&output), Tally { passed: 4, failed: 2, idle: 1 });
    }

    #[test]
    fn a_run_that_did_not_compile_has_no_tests() {
        assert_eq!(Tally::of("error: could not compile `a`\n"), Tally::default());
    }
}
