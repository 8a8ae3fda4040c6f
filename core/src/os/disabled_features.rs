//! System features that a test disables, to run the code for systems that lack them.

/// The system features to treat as missing: `TASUKI_DISABLE=membarrier,pidfd,process_vm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DisabledFeatures {
    /// membarrier(2) fails with EPERM.
    pub membarrier: bool,
    /// pidfd_open(2) fails with ENOSYS.
    pub pidfd: bool,
    /// process_vm_readv(2) and process_vm_writev(2) fail with EPERM.
    pub process_vm: bool,
}

impl DisabledFeatures {
    /// Parses the comma-separated names in the variable. The error is the first unknown name.
    pub fn parse(list: &str) -> Result<DisabledFeatures, String> {
        let mut disabled = DisabledFeatures::default();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "membarrier" => disabled.membarrier = true,
                "pidfd" => disabled.pidfd = true,
                "process_vm" => disabled.process_vm = true,
                other => return Err(other.to_string()),
            }
        }
        Ok(disabled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_and_unknown_names_are_returned() {
        let both = DisabledFeatures { membarrier: true, process_vm: true, ..DisabledFeatures::default() };
        assert_eq!(DisabledFeatures::parse("membarrier, process_vm"), Ok(both));
        assert_eq!(DisabledFeatures::parse("pidfd,mmap"), Err("mmap".to_string()));
    }
}
