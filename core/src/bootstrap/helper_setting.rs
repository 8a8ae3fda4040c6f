//! The setting of helper threads, which progress operations besides the program's own threads.

use std::str::FromStr;

/// Which helpers a job has, and where they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Helper {
    /// Which helpers there are.
    pub kind: HelperKind,
    /// The processor that they are bound to; none: they are not bound.
    pub processor: Option<usize>,
}

/// Which helpers there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HelperKind {
    /// No helper if the ranks of the node need all its processors; else one for the node, in the rank that first
    /// needs one.
    #[default]
    Auto,
    /// No helper.
    Off,
    /// One helper for all ranks of the node, in the lowest rank.
    Node,
    /// One helper for each rank.
    Rank,
}

impl FromStr for Helper {
    type Err = String;

    fn from_str(text: &str) -> Result<Helper, String> {
        let (kind, processor) = match text.split_once(':') {
            Some((kind, processor)) => (kind, Some(processor)),
            None => (text, None),
        };
        let kind = match kind {
            "auto" => HelperKind::Auto,
            "off" => HelperKind::Off,
            "node" => HelperKind::Node,
            "rank" => HelperKind::Rank,
            _ => return Err("give off, node, rank or auto, optionally with :PROCESSOR".into()),
        };
        let number =
            |text: &str| text.parse().map_err(|_| format!("`{text}` is not the number of a processor"));
        Ok(Helper { kind, processor: processor.map(number).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_settings_are_parsed() {
        let helper = |kind, processor| Ok(Helper { kind, processor });
        assert_eq!("auto".parse(), helper(HelperKind::Auto, None));
        assert_eq!("node:1".parse(), helper(HelperKind::Node, Some(1)));
        assert_eq!("rank:0".parse(), helper(HelperKind::Rank, Some(0)));
        for wrong in ["", "on", "node:", "node:x", "node:-1", "node:1:2"] {
            assert!(wrong.parse::<Helper>().is_err(), "{wrong}");
        }
    }
}
