//! Detects that the kernel killed processes for lack of memory while a job ran. A killed process
//! cannot report that.

/// The kernel's count of such kills when the job began.
pub(crate) struct OomKills {
    before: Option<u64>,
}

impl OomKills {
    /// Reads the count at the job's start.
    pub(crate) fn begin() -> OomKills {
        OomKills { before: kills() }
    }

    /// A line to add to the message of a killed process, empty if there is no sign of such a kill.
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
        assert!(OomKills { before: None }.hint().is_empty());
        assert!(OomKills { before: Some(u64::MAX) }.hint().is_empty());
        if let Some(now @ 1..) = kills() {
            assert!(OomKills { before: Some(now - 1) }.hint().contains("lack of memory"));
        }
    }
}
