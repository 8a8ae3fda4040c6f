//! The memory that the machine and the container have left.
#![allow(unsafe_code)]
//! Unsafe: a system call that writes into a local variable.

use crate::os::process;
use std::path::PathBuf;

/// The available memory and the limit that it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Available {
    /// Bytes that this process can still allocate.
    pub bytes: u64,
    /// A description of the limit, e.g. `this machine (MemAvailable)`.
    pub limit: String,
}

/// Returns the smallest amount that is left of the machine's memory, of one of this process's control groups, or of its
/// address space.
pub fn available() -> Available {
    let machine =
        std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| size_in(&text, "MemAvailable:"));
    let machine = match machine {
        Some(bytes) => Available { bytes, limit: "this machine (MemAvailable)".into() },
        // Without /proc, the page cache does not count as available.
        None => {
            Available { bytes: free_memory().unwrap_or(u64::MAX), limit: "this machine (sysinfo)".into() }
        }
    };
    let groups = groups().into_iter().filter_map(|group| group.available());
    groups
        .chain(address_space())
        .fold(machine, |least, other| if other.bytes < least.bytes { other } else { least })
}

/// Returns the free memory of the machine by the system call `sysinfo`; None if that is refused.
fn free_memory() -> Option<u64> {
    let mut info = std::mem::MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: the call writes into `info`, all of whose bytes are set, and any bytes are a valid value.
    let (failed, info) = unsafe { (libc::sysinfo(info.as_mut_ptr()) != 0, info.assume_init()) };
    (!failed).then(|| info.freeram.saturating_mul(u64::from(info.mem_unit)))
}

/// Returns what the limit of the address space (`ulimit -v`) leaves, if there is one.
fn address_space() -> Option<Available> {
    let limit = process::address_space_allowed();
    if limit == u64::MAX {
        return None;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used = size_in(&status, "VmSize:").unwrap_or(0);
    Some(Available { bytes: limit.saturating_sub(used), limit: "the address space (ulimit -v)".into() })
}

/// Returns the size in bytes that a line of a file of /proc gives in KiB.
fn size_in(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// One level of a memory control group.
struct Cgroup {
    folder: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Cgroup {
    fn available(&self) -> Option<Available> {
        let limit = self.number(self.limit)?;
        let used = self.number(self.usage)?.saturating_sub(self.reclaimable());
        // Version 1 writes "no limit" as a number near 2^63.
        (limit < 1 << 62).then(|| Available {
            bytes: limit.saturating_sub(used),
            limit: format!("the container's {} ({})", self.limit, self.folder.display()),
        })
    }

    fn number(&self, name: &str) -> Option<u64> {
        std::fs::read_to_string(self.folder.join(name)).ok()?.trim().parse().ok()
    }

    /// Bytes of page cache that the kernel reclaims before an allocation fails.
    fn reclaimable(&self) -> u64 {
        let stat = std::fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let value = |name: &str| {
            stat.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        value("inactive_file").unwrap_or(0)
    }
}

/// Returns the memory control groups of this process, from its own up to the root, of cgroup version 1 or 2.
fn groups() -> Vec<Cgroup> {
    let mine = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut groups = Vec::new();
    for line in mine.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (mount, limit, usage) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        let below = PathBuf::from(path.trim_start_matches('/'));
        for level in below.ancestors() {
            groups.push(Cgroup { folder: PathBuf::from(mount).join(level), limit, usage });
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mem_available_is_parsed_from_meminfo() {
        assert_eq!(size_in("MemTotal: 10 kB\nMemAvailable:   5 kB\n", "MemAvailable:"), Some(5 * 1024));
        assert_eq!(size_in("nonsense", "MemAvailable:"), None);
    }

    #[test]
    fn without_proc_the_free_memory_is_known() {
        let free = free_memory().unwrap();
        assert!(free > 1 << 20 && free < 1 << 50, "{free}");
    }

    #[test]
    fn a_cgroup_has_its_limit_minus_usage_without_page_cache_available() {
        let folder = std::env::temp_dir().join(format!("tasuki-group-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("memory.max"), "1000\n").unwrap();
        std::fs::write(folder.join("memory.current"), "700\n").unwrap();
        std::fs::write(folder.join("memory.stat"), "anon 500\ninactive_file 100\n").unwrap();
        let group = Cgroup { folder: folder.clone(), limit: "memory.max", usage: "memory.current" };
        assert_eq!(group.available().map(|available| available.bytes), Some(400));
        std::fs::write(folder.join("memory.max"), "max\n").unwrap();
        assert_eq!(group.available(), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
