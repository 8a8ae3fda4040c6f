//! The strongly connected components of a graph of files: the sets in which each file uses each
//! other, through others or directly.

use super::file_graph::FileGraph;
use std::collections::{BTreeMap, BTreeSet};

/// The components of at least two files, each in the order of names.
pub(super) fn components(graph: &FileGraph) -> Vec<BTreeSet<String>> {
    let mut search = Search { graph, order: BTreeMap::new(), open: Vec::new(), found: Vec::new() };
    for file in graph.keys() {
        if !search.order.contains_key(file) {
            search.visit(file);
        }
    }
    search.found.retain(|component| component.len() > 1);
    search.found
}

/// The edge within a component without which the largest cycle that remains is smallest, and its
/// line.
pub(super) fn closing_edge(
    graph: &FileGraph,
    component: &BTreeSet<String>,
) -> Option<(String, String, usize)> {
    let inside = |used: &BTreeMap<String, usize>| -> BTreeMap<String, usize> {
        used.iter()
            .filter(|(file, _)| component.contains(*file))
            .map(|(file, line)| (file.clone(), *line))
            .collect()
    };
    let part: FileGraph =
        component.iter().filter_map(|file| Some((file.clone(), inside(graph.get(file)?)))).collect();
    let edges =
        part.iter().flat_map(|(file, used)| used.iter().map(move |(other, line)| (file, other, *line)));
    let rest_without = |file: &String, other: &String| {
        let mut rest = part.clone();
        rest.entry(file.clone()).or_default().remove(other);
        components(&rest).iter().map(BTreeSet::len).max().unwrap_or(0)
    };
    let (file, other, line) = edges.min_by_key(|(file, other, _)| rest_without(file, other))?;
    Some((file.clone(), other.clone(), line))
}

/// Tarjan's algorithm.
struct Search<'a> {
    graph: &'a FileGraph,
    /// The place of each visited file in the order of visits.
    order: BTreeMap<&'a String, usize>,
    /// Visited files whose component is not complete.
    open: Vec<&'a String>,
    found: Vec<BTreeSet<String>>,
}

impl<'a> Search<'a> {
    /// Returns the earliest place that is reached from this file and still open.
    fn visit(&mut self, file: &'a String) -> usize {
        let place = self.order.len();
        self.order.insert(file, place);
        self.open.push(file);
        let mut earliest = place;
        for used in self.graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            match self.order.get(used) {
                None => earliest = earliest.min(self.visit(used)),
                Some(place) if self.open.contains(&used) => earliest = earliest.min(*place),
                Some(_) => {}
            }
        }
        if earliest == place {
            let start = self.open.iter().position(|open| *open == file).unwrap_or(0);
            self.found.push(self.open.drain(start..).cloned().collect());
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> FileGraph {
        let mut graph = FileGraph::new();
        for (line, (file, used)) in edges.iter().enumerate() {
            graph.entry(file.to_string()).or_default().insert(used.to_string(), line + 1);
        }
        graph
    }

    #[test]
    fn files_that_reach_each_other_are_one_component() {
        let graph =
            graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")]);
        let found: Vec<String> =
            components(&graph).iter().map(|files| Vec::from_iter(files.clone()).concat()).collect();
        assert_eq!(found, ["de", "abc"]);
    }

    #[test]
    fn the_edge_is_named_whose_loss_leaves_the_smallest_cycles() {
        let graph =
            graph(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "b"), ("d", "c")]);
        let component = &components(&graph)[0];
        assert_eq!(closing_edge(&graph, component), Some(("b".to_owned(), "c".to_owned(), 3)));
    }
}
