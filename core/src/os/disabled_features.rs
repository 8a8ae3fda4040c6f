//! Facilities of the system that a test takes away, to walk the paths for systems that lack them.

/// Which facilities to treat as refused: `TASUKI_DISABLE=membarrier,pidfd,process_vm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DisabledFeatures {
    /// membarrier(2) answers EPERM.
    pub membarrier: bool,
    /// pidfd_open(2) answers ENOSYS.
    pub pidfd: bool,
    /// process_vm_readv(2) and process_vm_writev(2) answer EPERM.
    pub process_vm: bool,
}

impl DisabledFeatures {
    /// Reads a list of names, as the variable holds it; the wrong name, if there is one.
    pub fn parse(list: &str) -> Result<DisabledFeatures, String> {
        let mut denied = DisabledFeatures::default();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "membarrier" => denied.membarrier = true,
                "pidfd" => denied.pidfd = true,
                "process_vm" => denied.process_vm = true,
                other => return Err(other.to_string()),
            }
        }
        Ok(denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_wrong_names_returned() {
        let both = DisabledFeatures { membarrier: true, process_vm: true, ..DisabledFeatures::default() };
        assert_eq!(DisabledFeatures::parse("membarrier, process_vm"), Ok(both));
        assert_eq!(DisabledFeatures::parse("pidfd,mmap"), Err("mmap".to_string()));
    }
}
