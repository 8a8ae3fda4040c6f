//! A hash of all events of a run, which compares two runs, and the events as text if wanted.

/// Kinds of events. Their numbers enter the hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunEvent {
    Call,
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
    DeathReported,
    Leave,
    DeadlockCheck,
    Deadlock,
    BarrierArrival,
    BarrierEnd,
}

/// The hash of the events so far. Addresses and clocks of the real machine never enter it.
#[derive(Debug)]
pub(crate) struct RunHash {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl RunHash {
    pub(crate) fn new(keeps_lines: bool) -> RunHash {
        RunHash { hash: 0, lines: keeps_lines.then(Vec::new) }
    }

    /// Records an event at `at_ns`. The other numbers are ranks, sizes or addresses, depending on the event.
    #[inline]
    pub(crate) fn record(&mut self, at_ns: u64, event: RunEvent, numbers: [u64; 3]) {
        for word in [at_ns, event as u64, numbers[0], numbers[1], numbers[2]] {
            // The mixing step of Fx hash: it is quick, and each input bit changes many bits.
            self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        if let Some(lines) = &mut self.lines {
            let [a, b, c] = numbers;
            lines.push(format!("{at_ns:>12} {event:?} {a} {b} {c}"));
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
    fn the_hash_depends_on_order_kind_and_numbers() {
        let run = |notes: &[(u64, RunEvent, u64)]| {
            let mut trace = RunHash::new(true);
            notes.iter().for_each(|&(at, event, number)| trace.record(at, event, [number, 0, 0]));
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
