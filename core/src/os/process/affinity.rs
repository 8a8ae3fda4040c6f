//! Which processors this process may use, and how many of them it is granted.
#![allow(unsafe_code)]
//! Unsafe: sched_getaffinity and sched_setaffinity on a local set, and sched_getcpu, which takes nothing.

use crate::base::{Error, Result};

/// Processors of the affinity mask, in ascending order.
pub fn allowed() -> Vec<usize> {
    // SAFETY: set is a valid place for the answer, and CPU_ISSET stays inside it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// How many processors the mask and the container's quota leave: at least one.
pub fn usable() -> usize {
    granted(allowed().len())
}

/// How many of so many processors the container's quota leaves: at least one.
pub fn granted(processors: usize) -> usize {
    processors.min(quota().unwrap_or(usize::MAX)).max(1)
}

/// Binds the calling thread to one processor.
pub fn bind(processor: usize) -> Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(Error::argument(format!("there is no processor {processor}")));
    }
    // SAFETY: set is local, the index was checked.
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

/// The processor that the calling thread is on, or was just now; `None` where the system does not say. Costs some ns
/// and no system call, where the C library knows of rseq or of the kernel's page.
pub fn current() -> Option<u32> {
    // SAFETY: takes nothing, returns a number, negative if there is none.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Whole processors that the cgroup's quota grants, rounded up; `None` without a quota.
fn quota() -> Option<usize> {
    let unified = std::fs::read_to_string("/sys/fs/cgroup/cpu.max").ok().and_then(|text| quota_of(&text));
    unified.or_else(|| {
        let read = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/cpu/cpu.cfs_{name}_us")).ok();
        quota_of(&format!("{} {}", read("quota")?.trim(), read("period")?.trim()))
    })
}

/// The quota in a text of the form `quota period`, both in microseconds; `max` or a negative quota is none.
fn quota_of(text: &str) -> Option<usize> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota.div_ceil(period).max(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_in_both_forms() {
        assert_eq!(quota_of("max 100000\n"), None);
        assert_eq!(quota_of("-1 100000"), None);
        assert_eq!(quota_of("150000 100000"), Some(2));
        assert_eq!(quota_of("50000 100000"), Some(1));
    }

    #[test]
    fn somewhere_to_run_there_always_is() {
        assert!(!allowed().is_empty() && usable() >= 1);
        let here = current().expect("Linux says where a thread runs");
        assert!(allowed().contains(&(here as usize)));
    }
}
