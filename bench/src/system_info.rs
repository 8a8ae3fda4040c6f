//! What this machine calls itself.

use std::fs;

/// Its processor's model.
pub(crate) fn processor() -> String {
    field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// The release of its kernel.
pub(crate) fn kernel() -> String {
    read("/proc/sys/kernel/osrelease").trim().to_string()
}

/// Bytes of its memory.
pub(crate) fn memory() -> u64 {
    let kib = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    kib.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start_matches([' ', '\t', ':']).trim().to_string())
}
