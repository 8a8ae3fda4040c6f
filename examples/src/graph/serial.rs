//! The search without ranks.

use super::part::Part;

/// The distance of each vertex of the whole graph from the root; `None` for vertices that cannot be reached.
pub fn distances(whole: &Part, root: u32) -> Vec<Option<u32>> {
    let mut distances = vec![None; whole.count()];
    distances[root as usize] = Some(0);
    let mut level = vec![root];
    for distance in 1.. {
        let mut next = Vec::new();
        for &vertex in &level {
            for &other in whole.neighbours(vertex as usize) {
                let place = &mut distances[other as usize];
                if place.is_none() {
                    *place = Some(distance);
                    next.push(other);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    distances
}
