//! Which threads beside the program's own move its ranks' work on.

use std::str::FromStr;

/// Whether there are helpers, and where they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Helper {
    /// Which.
    pub kind: HelperKind,
    /// The processor that they are bound to; free to move otherwise.
    pub processor: Option<usize>,
}

/// Which helpers there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HelperKind {
    /// None where the ranks of a node fill its processors, else one for the node, once the lowest rank uses commands.
    #[default]
    Auto,
    /// None.
    Off,
    /// One for all ranks of the node, in the lowest of them.
    Node,
    /// One for each rank.
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
            _ => return Err("give off, node, rank or auto, perhaps with :PROCESSOR".into()),
        };
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number of a processor"));
        Ok(Helper { kind, processor: processor.map(number).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_read() {
        let helper = |kind, processor| Ok(Helper { kind, processor });
        assert_eq!("auto".parse(), helper(HelperKind::Auto, None));
        assert_eq!("node:1".parse(), helper(HelperKind::Node, Some(1)));
        assert_eq!("rank:0".parse(), helper(HelperKind::Rank, Some(0)));
        for wrong in ["", "on", "node:", "node:x", "node:-1", "node:1:2"] {
            assert!(wrong.parse::<Helper>().is_err(), "{wrong}");
        }
    }
}
