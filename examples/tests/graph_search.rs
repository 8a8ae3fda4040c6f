//! The graph search on ranks that are threads or simulated: all distances equal those of the serial search.
#![allow(clippy::unwrap_used)]

use tasuki::{Job, Rank, Sim, local_with, sim_with};
use tasuki_examples::graph::{Part, Rmat, Search, SearchMethod, distances, handlers};

const GRAPH: Rmat = Rmat { scale: 8, edge_factor: 6, seed: 5 };

/// Two vertices from which many others can be reached.
fn roots() -> [u32; 2] {
    let whole = Part::new(&GRAPH, Rank(0), 1);
    let mut well_connected =
        (0..GRAPH.vertices() as u32).filter(|&vertex| whole.neighbours(vertex as usize).len() > 20);
    [well_connected.next().unwrap(), well_connected.next_back().unwrap()]
}

/// Runs all searches one after the other. Returns the parents of all vertices, on rank 0.
fn search(job: &Job) -> tasuki::Result<Vec<Option<Vec<Option<u32>>>>> {
    let mut search = Search::new(job, Part::new(&GRAPH, job.rank(), job.size()))?;
    let mut trees = Vec::new();
    for method in [SearchMethod::Handlers, SearchMethod::Messages, SearchMethod::Handlers] {
        for root in roots() {
            search.run(root, method)?;
            trees.push(search.tree(GRAPH.vertices() as usize)?);
            job.barrier()?;
        }
    }
    Ok(trees)
}

/// The distance of a vertex from the root, found by following the parents.
fn steps(tree: &[Option<u32>], root: u32, vertex: u32) -> Option<u32> {
    let (mut at, mut steps) = (vertex, 0);
    while at != root {
        (at, steps) = (tree[at as usize]?, steps + 1);
        assert!(steps < tree.len() as u32, "the parents form a cycle");
    }
    Some(steps)
}

fn check_distances(trees: &[Option<Vec<Option<u32>>>]) {
    let whole = Part::new(&GRAPH, Rank(0), 1);
    assert_eq!(trees.len(), 6);
    for (at, tree) in trees.iter().enumerate() {
        let (tree, root) = (tree.as_ref().unwrap(), roots()[at % 2]);
        let reference = distances(&whole, root);
        assert!(reference.iter().flatten().count() > 100, "the search finds many vertices");
        for vertex in 0..GRAPH.vertices() as u32 {
            let found = if tree[vertex as usize].is_some() { steps(tree, root, vertex) } else { None };
            assert_eq!(found, reference[vertex as usize], "vertex {vertex} from {root}");
        }
    }
}

#[test]
fn threads_find_the_distances_of_the_serial_search() {
    for ranks in [1, 2, 5] {
        check_distances(&local_with(ranks, handlers(), search).unwrap()[0]);
    }
}

#[test]
fn simulated_ranks_find_the_distances_of_the_serial_search() {
    for seed in 0..3 {
        let outcome = sim_with(Sim::seed(seed).ranks(3), handlers(), search).unwrap();
        check_distances(outcome.values[0].as_ref().unwrap());
    }
}
