//! The search of a graph on ranks that are threads or simulated: each vertex is as far from the root as one processor
//! finds.
#![allow(clippy::unwrap_used)]

use tasuki::{Job, Rank, Sim, local_with, sim_with};
use tasuki_examples::graph::{Part, Rmat, Search, Way, distances, handlers};

const GRAPH: Rmat = Rmat { scale: 8, edge_factor: 6, seed: 5 };

/// Two vertices from which much can be reached.
fn roots() -> [u32; 2] {
    let whole = Part::new(&GRAPH, Rank(0), 1);
    let mut busy =
        (0..GRAPH.vertices() as u32).filter(|&vertex| whole.neighbours(vertex as usize).len() > 20);
    [busy.next().unwrap(), busy.next_back().unwrap()]
}

/// All searches, one after the other; where each vertex was found from, on rank 0.
fn search(job: &Job) -> tasuki::Result<Vec<Option<Vec<Option<u32>>>>> {
    let mut search = Search::new(job, Part::new(&GRAPH, job.rank(), job.size()))?;
    let mut trees = Vec::new();
    for way in [Way::Handlers, Way::Messages, Way::Handlers] {
        for root in roots() {
            search.run(root, way)?;
            trees.push(search.tree(GRAPH.vertices() as usize)?);
            job.barrier()?;
        }
    }
    Ok(trees)
}

/// How far a vertex is from the root, by where it was found from.
fn steps(tree: &[Option<u32>], root: u32, vertex: u32) -> Option<u32> {
    let (mut at, mut steps) = (vertex, 0);
    while at != root {
        (at, steps) = (tree[at as usize]?, steps + 1);
        assert!(steps < tree.len() as u32, "it goes round");
    }
    Some(steps)
}

fn are_right(trees: &[Option<Vec<Option<u32>>>]) {
    let whole = Part::new(&GRAPH, Rank(0), 1);
    assert_eq!(trees.len(), 6);
    for (at, tree) in trees.iter().enumerate() {
        let (tree, root) = (tree.as_ref().unwrap(), roots()[at % 2]);
        let judge = distances(&whole, root);
        assert!(judge.iter().flatten().count() > 100, "there is something to find");
        for vertex in 0..GRAPH.vertices() as u32 {
            let found = if tree[vertex as usize].is_some() { steps(tree, root, vertex) } else { None };
            assert_eq!(found, judge[vertex as usize], "vertex {vertex} from {root}");
        }
    }
}

#[test]
fn every_vertex_is_as_far_as_one_processor_finds() {
    for ranks in [1, 2, 5] {
        are_right(&local_with(ranks, &handlers(), search).unwrap()[0]);
    }
}

#[test]
fn every_seed_finds_the_same_distances() {
    for seed in 0..3 {
        let outcome = sim_with(Sim::seed(seed).ranks(3), &handlers(), search).unwrap();
        are_right(outcome.values[0].as_ref().unwrap());
    }
}
