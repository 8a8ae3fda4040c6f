//! Reads the threads of a rank from /proc: to describe a rank that publishes no wait, and to find
//! threads other than the waiting one.

use tasuki_core::engine::HELPER_THREAD;

/// A thread of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::run) struct Thread {
    /// The kernel's number of the thread.
    pub(in crate::run) id: u32,
    /// The name that the kernel shows: at most 15 bytes, and inherited from the thread that started
    /// it if it was not named.
    pub(in crate::run) name: String,
    /// True if the thread sleeps, for any reason.
    pub(in crate::run) sleeps: bool,
}

/// The threads of a process, without Tasuki's helper thread. Empty if /proc is not readable.
pub(in crate::run) fn threads_of(pid: u32) -> Vec<Thread> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| thread_of(&std::fs::read_to_string(task.path().join("stat")).ok()?)).collect()
}

/// The thread of a text like `/proc/PID/task/TID/stat`.
fn thread_of(stat: &str) -> Option<Thread> {
    let (head, rest) = stat.rsplit_once(')')?; // the name may contain any character
    let (id, name) = head.split_once(" (")?;
    let sleeps = rest.trim_start().starts_with(['S', 'D', 'I']);
    let thread = Thread { id: id.parse().ok()?, name: name.into(), sleeps };
    (name != HELPER_THREAD).then_some(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_by_state_and_name() {
        let thread = |id, name: &str, sleeps| Some(Thread { id, name: name.into(), sleeps });
        assert_eq!(thread_of("17 (heat) S 1 17"), thread(17, "heat", true));
        assert_eq!(thread_of("18 (a) S (b) R 1 17"), thread(18, "a) S (b", false));
        assert_eq!(thread_of(&format!("19 ({HELPER_THREAD}) S 1 17")), None);
        assert_eq!(thread_of(""), None);
    }

    #[test]
    fn this_thread_runs() {
        let own = tasuki_core::os::process::thread_id();
        let threads = threads_of(std::process::id());
        assert!(threads.iter().any(|thread| thread.id == own && !thread.sleeps), "{threads:?}");
    }
}
