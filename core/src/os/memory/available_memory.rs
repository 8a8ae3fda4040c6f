//! The memory that the machine and the container have left.
#![allow(unsafe_code)]
//! Unsafe: system calls that write into local variables.

use std::path::PathBuf;

/// The available memory and the limit that it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Available {
    /// Bytes that this process can still allocate.
    pub bytes: u64,
    /// A description of the limit, e.g. `this machine (MemAvailable)`.
    pub limit: String,
}

/// Returns the smallest amount that the machine or one of this process's control groups has left.
pub fn available() -> Available {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    let machine = match machine {
        Some(bytes) => Available { bytes, limit: "this machine (MemAvailable)".into() },
        // Without /proc, the page cache does not count as available.
        None => Available { bytes: free_memory(), limit: "this machine (sysinfo)".into() },
    };
    let groups = groups().into_iter().filter_map(|group| group.available());
    groups
        .chain(address_space())
        .fold(machine, |least, other| if other.bytes < least.bytes { other } else { least })
}

/// Returns the free memory of the machine by the system call `sysinfo`.
fn free_memory() -> u64 {
    let mut info = std::mem::MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: the call writes into `info`, all of whose bytes are set, and any bytes are a valid value.
    let info = unsafe {
        libc::sysinfo(info.as_mut_ptr());
        info.assume_init()
    };
    info.freeram.saturating_mul(u64::from(info.mem_unit))
}

/// Returns what the limit of the address space (`ulimit -v`) leaves, if there is one.
fn address_space() -> Option<Available> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes into `limit`.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } != 0;
    if failed || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    // SAFETY: no memory is passed.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let used = pages * u64::try_from(page).unwrap_or(4096);
    Some(Available {
        bytes: limit.rlim_cur.saturating_sub(used),
        limit: "the address space (ulimit -v)".into(),
    })
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
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
        assert_eq!(mem_available("MemTotal: 10 kB\nMemAvailable:   5 kB\n"), Some(5 * 1024));
        assert_eq!(mem_available("nonsense"), None);
    }

    #[test]
    fn without_proc_the_free_memory_is_known() {
        let free = free_memory();
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
