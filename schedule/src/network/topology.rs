//! Topologies by name, as they are typed and shown.

use super::dragonfly::Dragonfly;
use super::fat_tree::FatTree;
use super::grid::{DIMENSIONS_MAX, Grid};
use std::fmt;

/// A topology. Nodes are numbered from 0 on, and so are links, each of which carries one direction.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Topology, WrongTopology};
/// let torus = Topology::parse("torus:8x8", 64)?;
/// assert_eq!((torus.nodes(), torus.hops(0, 63)), (64, 2)); // around in both dimensions
/// # Ok::<(), WrongTopology>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Topology {
    /// One switch without contention for that many nodes: each node has a link to it, and one from it.
    Crossbar(u64),
    /// Switches in levels.
    FatTree(FatTree),
    /// A torus or mesh.
    Grid(Grid),
    /// Groups of routers.
    Dragonfly(Dragonfly),
}

/// Why a text is no topology.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Topology, WrongTopology};
/// let wrong = Topology::parse("hypercube", 64).expect_err("there is none of that name");
/// assert_eq!(wrong, WrongTopology::Kind("hypercube".into()));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WrongTopology {
    /// The kind is unknown.
    Kind(String),
    /// The parameters after the kind are invalid; the text says what is expected.
    Form(&'static str),
    /// The topology has too few nodes.
    TooSmall {
        /// Nodes of the topology.
        has: u64,
        /// Nodes that are needed.
        needs: u64,
    },
    /// The topology has too many links for the simulation.
    TooLarge,
}

/// The most nodes of a topology: rank numbers distinguish no more.
const NODES_MAX: u64 = 1 << 28;
/// The most links: their state is found by pages, and a larger page table would outweigh what it saves.
const LINKS_MAX: u64 = 1 << 32;

impl Topology {
    /// The names of the kinds.
    pub const KINDS: [&'static str; 5] = ["crossbar", "fat-tree", "torus", "mesh", "dragonfly"];

    /// Parses a topology for at least `nodes` nodes: `crossbar`, `fat-tree:ARITY`, `torus` (with three sides that
    /// differ little), `torus:AxBx..`, `mesh:AxBx..`, `dragonfly:GROUPSxROUTERSxNODES`.
    pub fn parse(text: &str, nodes: u64) -> Result<Topology, WrongTopology> {
        let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        let sides = rest.map(sides);
        let topology = match (kind, sides) {
            ("crossbar", None) => Topology::Crossbar(nodes),
            ("crossbar", _) => return Err(WrongTopology::Form("crossbar")),
            ("fat-tree", Some(Some(sides))) if sides.len() == 1 && sides[0] >= 2 => {
                Topology::FatTree(FatTree::new(sides[0], nodes))
            }
            ("fat-tree", _) => {
                return Err(WrongTopology::Form("fat-tree:ARITY, 2 or more, as in fat-tree:36"));
            }
            ("torus", None) => Topology::Grid(Grid::near_cubic(nodes)),
            ("torus", Some(Some(sides))) => Topology::Grid(Grid::torus(&sides)),
            ("torus", _) => return Err(WrongTopology::Form("torus, or torus:AxBx.. as in torus:10x10x10")),
            ("mesh", Some(Some(sides))) => Topology::Grid(Grid::mesh(&sides)),
            ("mesh", _) => return Err(WrongTopology::Form("mesh:AxBx.. as in mesh:4x4")),
            ("dragonfly", Some(Some(sides))) if sides.len() == 3 => {
                Topology::Dragonfly(Dragonfly::new(sides[0], sides[1], sides[2]))
            }
            ("dragonfly", _) => {
                return Err(WrongTopology::Form("dragonfly:GROUPSxROUTERSxNODES as in dragonfly:9x4x2"));
            }
            _ => return Err(WrongTopology::Kind(kind.to_string())),
        };
        if topology.links() > LINKS_MAX {
            return Err(WrongTopology::TooLarge);
        }
        let has = topology.nodes();
        if has < nodes { Err(WrongTopology::TooSmall { has, needs: nodes }) } else { Ok(topology) }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u64 {
        match self {
            Topology::Crossbar(nodes) => *nodes,
            Topology::FatTree(tree) => tree.nodes(),
            Topology::Grid(grid) => grid.nodes(),
            Topology::Dragonfly(fly) => fly.nodes(),
        }
    }

    /// All link numbers are below this.
    pub fn links(&self) -> u64 {
        match self {
            Topology::Crossbar(nodes) => nodes.saturating_mul(2),
            Topology::FatTree(tree) => tree.links(),
            Topology::Grid(grid) => grid.links(),
            Topology::Dragonfly(fly) => fly.links(),
        }
    }

    /// Number of links between two nodes; 0 from a node to itself.
    pub fn hops(&self, from: u64, to: u64) -> u64 {
        match self {
            Topology::Crossbar(_) => 2 * u64::from(from != to),
            Topology::FatTree(tree) => tree.hops(from, to),
            Topology::Grid(grid) => grid.hops(from, to),
            Topology::Dragonfly(fly) => fly.hops(from, to),
        }
    }

    /// Appends the links between two nodes, in the order in which a transfer passes them. The route is always the same.
    pub fn route(&self, from: u64, to: u64, links: &mut Vec<u64>) {
        match self {
            Topology::Crossbar(_) if from == to => {}
            Topology::Crossbar(_) => links.extend([2 * from, 2 * to + 1]),
            Topology::FatTree(tree) => tree.route(from, to, links),
            Topology::Grid(grid) => grid.route(from, to, links),
            Topology::Dragonfly(fly) => fly.route(from, to, links),
        }
    }

    /// Describes a link.
    pub fn link_name(&self, link: u64) -> String {
        match self {
            Topology::Crossbar(_) if link.is_multiple_of(2) => format!("link from node {}", link / 2),
            Topology::Crossbar(_) => format!("link to node {}", link / 2),
            Topology::FatTree(tree) => tree.name(link),
            Topology::Grid(grid) => grid.name(link),
            Topology::Dragonfly(fly) => fly.name(link),
        }
    }
}

/// Parses numbers such as `4x3x2`. Returns `None` if one is 0, or their product exceeds the largest topology.
fn sides(text: &str) -> Option<Vec<u64>> {
    let sides: Option<Vec<u64>> = text.split('x').map(|side| side.parse().ok()).collect();
    let sides = sides.filter(|sides| sides.len() <= DIMENSIONS_MAX && !sides.contains(&0))?;
    let product = sides.iter().try_fold(1_u64, |product, &side| product.checked_mul(side));
    product.filter(|&product| product <= NODES_MAX).map(|_| sides)
}

impl fmt::Display for Topology {
    /// The form that [`Topology::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Crossbar(_) => write!(f, "crossbar"),
            Topology::FatTree(tree) => write!(f, "{tree}"),
            Topology::Grid(grid) => write!(f, "{grid}"),
            Topology::Dragonfly(fly) => write!(f, "{fly}"),
        }
    }
}

impl fmt::Display for WrongTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongTopology::Kind(kind) => {
                write!(f, "{kind:?} is no topology: choose one of {}", Topology::KINDS.join(", "))
            }
            WrongTopology::Form(form) => write!(f, "give {form}"),
            WrongTopology::TooSmall { has, needs } => {
                write!(f, "it has {has} nodes, but {needs} are needed")
            }
            WrongTopology::TooLarge => write!(f, "it has more than {LINKS_MAX} links"),
        }
    }
}

impl std::error::Error for WrongTopology {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_are_formatted_and_parsed() {
        for text in
            ["crossbar", "fat-tree:4", "torus:2x2x3", "mesh:12", "torus:2x1x2x1x3x1", "dragonfly:3x2x2"]
        {
            let topology = Topology::parse(text, 12).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
            assert_eq!(topology.to_string(), text);
            assert!(topology.nodes() >= 12);
            let mut links = Vec::new();
            for to in 0..12 {
                links.clear();
                topology.route(3, to, &mut links);
                assert_eq!(links.len() as u64, topology.hops(3, to), "{text}");
                assert!(links.iter().all(|&link| link < topology.links()), "{text}");
            }
            assert!(!topology.link_name(links[0]).is_empty());
        }
        assert_eq!(
            Topology::parse("torus", 12).map(|topology| topology.to_string()),
            Ok("torus:2x2x3".into())
        );
    }

    #[test]
    fn invalid_topologies_are_reported() {
        let wrong = |text| Topology::parse(text, 12).map(|topology| topology.to_string()).unwrap_err();
        assert_eq!(wrong("trous"), WrongTopology::Kind("trous".into()));
        assert_eq!(wrong("torus:2x2"), WrongTopology::TooSmall { has: 4, needs: 12 });
        for text in ["torus:", "torus:0x9", "torus:axb", "mesh", "fat-tree", "fat-tree:1", "fat-tree:2x2"] {
            assert!(matches!(wrong(text), WrongTopology::Form(_)), "{text}");
        }
        for text in ["dragonfly:3x2", "crossbar:12", "torus:99999999x99999999x99999999", "mesh:-4"] {
            assert!(matches!(wrong(text), WrongTopology::Form(_)), "{text}");
        }
        assert_eq!(wrong("dragonfly:16384x16384x1"), WrongTopology::TooLarge);
        assert!(matches!(wrong("torus:1x1x1x1x1x1x1x1x1x1x1x1x12"), WrongTopology::Form(_)));
    }
}
