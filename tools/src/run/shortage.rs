//! Whether the kernel has killed for lack of memory while a job ran: a killed process itself cannot say why.

/// How many processes the kernel had killed when the job began.
pub(crate) struct Shortage {
    before: Option<u64>,
}

impl Shortage {
    /// Begins to count.
    pub(crate) fn begin() -> Shortage {
        Shortage { before: kills() }
    }

    /// A line to add to the message of a killed process, empty if there is no sign of a shortage.
    pub(crate) fn hint(&self) -> &'static str {
        match (self.before, kills()) {
            (Some(before), Some(now)) if now > before => {
                "\n  hint: the kernel has killed a process for lack of memory since the job began (`dmesg`)"
            }
            _ => "",
        }
    }
}

fn kills() -> Option<u64> {
    count(&std::fs::read_to_string("/proc/vmstat").ok()?)
}

/// The count in a table like /proc/vmstat.
fn count(table: &str) -> Option<u64> {
    table.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found() {
        assert_eq!(count("nr_free_pages 7\noom_kill 3\noom_kills 9\n"), Some(3));
        assert_eq!(count("nr_free_pages 7\n"), None);
    }

    #[test]
    fn a_kill_since_the_beginning_gives_a_hint() {
        assert!(Shortage { before: None }.hint().is_empty());
        assert!(Shortage { before: Some(u64::MAX) }.hint().is_empty());
        if let Some(now @ 1..) = kills() {
            assert!(Shortage { before: Some(now - 1) }.hint().contains("lack of memory"));
        }
    }
}
