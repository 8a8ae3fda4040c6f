//! A fingerprint of everything that happened, so that two runs can be compared, and its text where wanted.

/// Kinds of things that happen. Their numbers are part of the fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunEvent {
    CallKind,
    Switch,
    Accept,
    Refuse,
    Read,
    Land,
    Apply,
    WriteBack,
    Visible,
    Fail,
    End,
    EndEarly,
    Wait,
    Wake,
    Die,
    Tell,
    Leave,
    LookAround,
    Stuck,
    Come,
    Met,
}

/// The running fingerprint. Addresses of the host and its clock never enter it.
#[derive(Debug)]
pub(crate) struct RunHash {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl RunHash {
    pub(crate) fn new(keeps_lines: bool) -> RunHash {
        RunHash { hash: 0, lines: keeps_lines.then(Vec::new) }
    }

    /// Something happened at `at_ns`; the other numbers are ranks, sizes or addresses, as the mark has them.
    #[inline]
    pub(crate) fn note(&mut self, at_ns: u64, mark: RunEvent, numbers: [u64; 3]) {
        for word in [at_ns, mark as u64, numbers[0], numbers[1], numbers[2]] {
            // The mixing step of Fx hash: quick, and every bit of a word moves many.
            self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        if let Some(lines) = &mut self.lines {
            let [a, b, c] = numbers;
            lines.push(format!("{at_ns:>12} {mark:?} {a} {b} {c}"));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_kind_and_numbers_all_count() {
        let run = |notes: &[(u64, RunEvent, u64)]| {
            let mut trace = RunHash::new(true);
            notes.iter().for_each(|&(at, mark, number)| trace.note(at, mark, [number, 0, 0]));
            (trace.hash(), trace.take_lines().len())
        };
        let base = run(&[(1, RunEvent::Read, 2), (3, RunEvent::Land, 4)]);
        assert_eq!(base.1, 2);
        assert_eq!(run(&[(1, RunEvent::Read, 2), (3, RunEvent::Land, 4)]), base);
        for other in [
            [(3, RunEvent::Land, 4), (1, RunEvent::Read, 2)],
            [(1, RunEvent::Read, 2), (3, RunEvent::Read, 4)],
            [(1, RunEvent::Read, 2), (3, RunEvent::Land, 5)],
            [(1, RunEvent::Read, 2), (4, RunEvent::Land, 4)],
        ] {
            assert_ne!(run(&other).0, base.0);
        }
    }
}
