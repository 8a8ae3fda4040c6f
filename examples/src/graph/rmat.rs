//! R-MAT graphs, in which few vertices have many edges.
//!
//! Each bit of the two ends of an edge is drawn from the four quarters of the adjacency matrix with the probabilities
//! of Graph500 (0.57, 0.19, 0.19, 0.05). Then the vertex numbers are permuted.
//!
//! Source: Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining" (2004); Graph500 specification.

use crate::random::hash64;

/// The parameters of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rmat {
    /// The graph has 2^scale vertices.
    pub scale: u32,
    /// Edges for each vertex.
    pub edge_factor: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl Rmat {
    /// The number of vertices.
    pub fn vertices(&self) -> u64 {
        1 << self.scale
    }

    /// The number of edges drawn, including duplicates and edges from a vertex to itself.
    pub fn edges(&self) -> u64 {
        self.edge_factor << self.scale
    }

    /// The two ends of an edge.
    pub fn edge(&self, number: u64) -> [u32; 2] {
        let own = hash64(self.seed ^ hash64(number));
        let mut random = own;
        let mut ends = [0_u64; 2];
        for bit in 0..self.scale {
            if bit > 0 && bit % 4 == 0 {
                random = hash64(own.wrapping_add(u64::from(bit))); // all bits of the previous one are used
            }
            // Sixteen bits choose one quarter.
            let share = (random & 0xffff) as f64 / 65536.0;
            random >>= 16;
            let [down, right] = match share {
                share if share < 0.57 => [0, 0],
                share if share < 0.76 => [0, 1],
                share if share < 0.95 => [1, 0],
                _ => [1, 1],
            };
            ends = [ends[0] << 1 | down, ends[1] << 1 | right];
        }
        ends.map(|end| self.permuted(end))
    }

    /// Permutes the vertex numbers. Each step can be inverted, so that no two vertices get the same number.
    fn permuted(&self, vertex: u64) -> u32 {
        let mask = self.vertices() - 1;
        let odd = hash64(self.seed) | 1;
        let half = self.scale.div_ceil(2);
        let turned = vertex.wrapping_mul(odd) & mask;
        ((turned ^ turned >> half).wrapping_mul(odd) & mask) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_permutation_is_a_bijection() {
        for scale in [1, 2, 7, 12] {
            let graph = Rmat { scale, edge_factor: 1, seed: 9 };
            let all: BTreeSet<u32> = (0..graph.vertices()).map(|vertex| graph.permuted(vertex)).collect();
            assert_eq!(all.len() as u64, graph.vertices());
        }
    }

    #[test]
    fn few_vertices_have_many_edges() {
        let graph = Rmat { scale: 10, edge_factor: 16, seed: 1 };
        let mut degrees = vec![0_u64; 1 << 10];
        for number in 0..graph.edges() {
            graph.edge(number).into_iter().for_each(|end| degrees[end as usize] += 1);
        }
        degrees.sort_unstable();
        let largest: u64 = degrees.iter().rev().take(102).sum();
        let all: u64 = degrees.iter().sum();
        assert!(largest * 5 > all * 2, "a tenth of the vertices has only {largest} of {all} ends");
        let touched = degrees.iter().filter(|&&degree| degree > 0).count();
        assert!(touched > 512, "only {touched} of 1024 vertices have an edge");
        assert_ne!(graph.edge(3), Rmat { seed: 2, ..graph }.edge(3));
    }
}
