//! Dragonflies: groups of routers. All routers of a group are linked with each other, and each pair of groups by one
//! link; the ends of these links are spread over the routers of both groups. Routes are minimal: to the router with the
//! link, over the link, and on to the node.
//!
//! Source: Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology" (2008).

use std::fmt;

/// A dragonfly: nodes at routers in groups.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Dragonfly, Topology};
/// let dragonfly = Dragonfly::new(9, 4, 2); // 9 groups of 4 routers with 2 nodes each
/// assert_eq!(dragonfly.nodes(), 72);
/// assert!(Topology::Dragonfly(dragonfly).hops(0, 71) > 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dragonfly {
    groups: u64,
    routers: u64,
    per_router: u64,
}

impl Dragonfly {
    /// Creates a dragonfly of `groups` groups of `routers` routers with `nodes` nodes each; none may be 0.
    pub fn new(groups: u64, routers: u64, per_router: u64) -> Dragonfly {
        Dragonfly { groups, routers, per_router }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u64 {
        self.groups * self.routers * self.per_router
    }

    /// Number of the first link between routers of a group; two links for each node come before.
    fn first_local(&self) -> u64 {
        2 * self.nodes()
    }

    /// Number of the first link between groups.
    fn first_global(&self) -> u64 {
        let pairs = self.routers.saturating_mul(self.routers);
        self.first_local().saturating_add(pairs.saturating_mul(self.groups))
    }

    /// All link numbers are below this.
    pub(super) fn links(&self) -> u64 {
        self.first_global().saturating_add(self.groups.saturating_mul(self.groups))
    }

    /// The router of a group that has the link to another group.
    fn gateway(&self, group: u64, to: u64) -> u64 {
        (if to > group { to - 1 } else { to }) % self.routers
    }

    fn place(&self, node: u64) -> (u64, u64) {
        let router = node / self.per_router;
        (router / self.routers, router % self.routers)
    }

    pub(super) fn hops(&self, from: u64, to: u64) -> u64 {
        if from == to {
            return 0;
        }
        let ((from, out), (to, into)) = (self.place(from), self.place(to));
        if from == to {
            return 2 + u64::from(out != into);
        }
        let (leaves, enters) = (self.gateway(from, to), self.gateway(to, from));
        3 + u64::from(out != leaves) + u64::from(enters != into)
    }

    pub(super) fn route(&self, from: u64, to: u64, links: &mut Vec<u64>) {
        if from == to {
            return;
        }
        let (source, target) = (from, to);
        let ((from, out), (to, into)) = (self.place(from), self.place(to));
        links.push(2 * source);
        let mut local = |group: u64, one: u64, other: u64| {
            if one != other {
                links.push(self.first_local() + (group * self.routers + one) * self.routers + other);
            }
        };
        if from == to {
            local(from, out, into);
        } else {
            local(from, out, self.gateway(from, to));
            let between = self.first_global() + from * self.groups + to;
            let enters = self.gateway(to, from);
            links.push(between);
            if enters != into {
                links.push(self.first_local() + (to * self.routers + enters) * self.routers + into);
            }
        }
        links.push(2 * target + 1);
    }

    pub(super) fn name(&self, link: u64) -> String {
        if link < self.first_local() {
            let way = if link.is_multiple_of(2) { "up from" } else { "down to" };
            return format!("link {way} node {}", link / 2);
        }
        if link < self.first_global() {
            let link = link - self.first_local();
            let (pair, group) = (link % (self.routers * self.routers), link / self.routers / self.routers);
            return format!("router {} to {} of group {group}", pair / self.routers, pair % self.routers);
        }
        let link = link - self.first_global();
        format!("group {} to {}", link / self.groups, link % self.groups)
    }
}

impl fmt::Display for Dragonfly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dragonfly:{}x{}x{}", self.groups, self.routers, self.per_router)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_minimal() {
        // 3 groups of 2 routers of 2 nodes: 12 nodes, 24 links to nodes, 12 in groups from 24 on, 9 from 36 on.
        let fly = Dragonfly::new(3, 2, 2);
        assert_eq!((fly.nodes(), fly.links()), (12, 45));
        let route = |from, to| {
            let mut links = Vec::new();
            fly.route(from, to, &mut links);
            assert_eq!(links.len() as u64, fly.hops(from, to), "{from} to {to}");
            links
        };
        assert!(route(5, 5).is_empty());
        assert_eq!(route(0, 1), [0, 3]);
        assert_eq!(route(0, 2), [0, 24 + 1, 5]);
        // Group 0 to 1 leaves at router 0 and arrives at router 0 of group 1: node 4 is there, node 6 is one hop on.
        assert_eq!(route(0, 4), [0, 36 + 1, 9]);
        assert_eq!(route(0, 6), [0, 36 + 1, 24 + 4 + 1, 13]);
        // Group 0 to 2 leaves at router 1.
        assert_eq!(route(0, 8), [0, 24 + 1, 36 + 2, 17]);
        assert_eq!(fly.name(36 + 2), "group 0 to 2");
        assert_eq!(fly.name(24 + 4 + 1), "router 0 to 1 of group 1");
        for from in 0..12 {
            for to in 0..12 {
                assert!(route(from, to).iter().all(|&link| link < fly.links()));
            }
        }
    }
}
