//! A rank's vertices with their neighbours.

use super::rmat::Rmat;
use tasuki::prelude::*;

/// The vertices of one rank and the list of neighbours of each, one list behind the other. A vertex belongs to the
/// rank equal to its number modulo the number of ranks.
#[derive(Clone, Debug)]
pub struct Part {
    rank: usize,
    ranks: usize,
    /// The beginning of each vertex's list, and the end of the last list.
    begins: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Part {
    /// The part of `rank` among `ranks` ranks. An edge is in the lists of both its ends. Edges from a vertex to
    /// itself are left out.
    pub fn new(graph: &Rmat, rank: Rank, ranks: usize) -> Part {
        let rank = rank.index();
        let count = (graph.vertices() as usize).saturating_sub(rank).div_ceil(ranks);
        let mut part = Part { rank, ranks, begins: vec![0; count + 1], neighbours: Vec::new() };
        // The first pass counts and the second pass fills, so that no list is larger than necessary.
        part.each_end(graph, |part, place, _| part.begins[place] += 1);
        let mut sum = 0;
        for begin in &mut part.begins {
            sum += std::mem::replace(begin, sum);
        }
        part.neighbours = vec![0; sum];
        part.each_end(graph, |part, place, other| {
            part.neighbours[part.begins[place]] = other;
            part.begins[place] += 1;
        });
        part.begins.rotate_right(1); // each beginning was advanced to that of the next list
        part.begins[0] = 0;
        part
    }

    fn each_end(&mut self, graph: &Rmat, mut take: impl FnMut(&mut Part, usize, u32)) {
        for number in 0..graph.edges() {
            let [one, two] = graph.edge(number);
            for (own, other) in [(one, two), (two, one)] {
                if own != other && self.owner(own) == self.rank {
                    let place = self.place(own);
                    take(self, place, other);
                }
            }
        }
    }

    /// The rank that owns the vertex.
    #[inline]
    pub fn owner(&self, vertex: u32) -> Rank {
        Rank(vertex as usize % self.ranks)
    }

    /// The index of the vertex on its owner.
    #[inline]
    pub fn place(&self, vertex: u32) -> usize {
        vertex as usize / self.ranks
    }

    /// The vertex of this rank with that index.
    #[inline]
    pub fn vertex(&self, place: usize) -> u32 {
        (place * self.ranks + self.rank) as u32
    }

    /// The number of vertices of the rank.
    pub fn count(&self) -> usize {
        self.begins.len() - 1
    }

    /// The neighbours of the vertex with that index.
    #[inline]
    pub fn neighbours(&self, place: usize) -> &[u32] {
        &self.neighbours[self.begins[place]..self.begins[place + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_form_the_whole_graph() {
        let graph = Rmat { scale: 7, edge_factor: 4, seed: 3 };
        let whole = Part::new(&graph, Rank(0), 1);
        assert!(whole.count() == 128 && whole.neighbours.len() > 256);
        for ranks in [2, 3, 5] {
            let mut count = 0;
            for rank in 0..ranks {
                let part = Part::new(&graph, Rank(rank), ranks);
                count += part.count();
                for place in 0..part.count() {
                    let vertex = part.vertex(place);
                    assert_eq!((part.owner(vertex), part.place(vertex)), (Rank(rank), place));
                    assert_eq!(part.neighbours(place), whole.neighbours(vertex as usize));
                    let back = |other: &u32| whole.neighbours(*other as usize).contains(&vertex);
                    assert!(
                        part.neighbours(place).iter().all(back),
                        "an edge is in the lists of both its ends"
                    );
                }
            }
            assert_eq!(count, 128);
        }
    }
}
