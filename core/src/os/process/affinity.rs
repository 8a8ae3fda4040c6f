//! The processors that this process may run on, and how many of them its quota grants.
#![allow(unsafe_code)]
//! Unsafe: sched_getaffinity and sched_setaffinity on a local set, and sched_getcpu, which takes no arguments.

use crate::base::{Error, Result};

/// Returns the processors of the affinity mask in ascending order.
pub fn allowed() -> Vec<usize> {
    // SAFETY: set is valid memory for the result, and CPU_ISSET stays inside it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Returns how many processors the affinity mask and the container's quota allow: at least one.
pub fn usable() -> usize {
    granted(allowed().len())
}

/// Returns how many of `processors` the container's quota allows: at least one.
pub fn granted(processors: usize) -> usize {
    processors.min(quota().unwrap_or(usize::MAX)).max(1)
}

/// Binds the calling thread to one processor.
pub fn bind(processor: usize) -> Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(Error::argument(format!("there is no processor {processor}")));
    }
    // SAFETY: set is local, and the index was checked.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    };
    if done {
        Ok(())
    } else {
        Err(Error::last_os("sched_setaffinity").note(format!("processors allowed here: {:?}", allowed())))
    }
}

/// Returns the processor that the calling thread runs on; the thread may have moved since. `None` if the system cannot
/// tell. Costs some ns and no system call if the C library uses rseq or the vDSO.
pub fn current() -> Option<u32> {
    // SAFETY: the call takes no arguments and returns a number, negative on failure.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Returns how many processors the cgroup's quota grants, rounded up; `None` without a quota.
fn quota() -> Option<usize> {
    let unified = std::fs::read_to_string("/sys/fs/cgroup/cpu.max").ok().and_then(|text| quota_of(&text));
    unified.or_else(|| {
        let read = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/cpu/cpu.cfs_{name}_us")).ok();
        quota_of(&format!("{} {}", read("quota")?.trim(), read("period")?.trim()))
    })
}

/// Parses a quota of the form `quota period`, both in microseconds. `None` for `max` or a negative quota.
fn quota_of(text: &str) -> Option<usize> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota.div_ceil(period).max(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_both_cgroup_versions_are_parsed() {
        assert_eq!(quota_of("max 100000\n"), None);
        assert_eq!(quota_of("-1 100000"), None);
        assert_eq!(quota_of("150000 100000"), Some(2));
        assert_eq!(quota_of("50000 100000"), Some(1));
    }

    #[test]
    fn the_current_processor_is_an_allowed_one() {
        assert!(!allowed().is_empty() && usable() >= 1);
        let here = current().expect("Linux says where a thread runs");
        assert!(allowed().contains(&(here as usize)));
    }
}
