//! Breadth-first search of an R-MAT graph by handlers and by messages. `tasuki_examples::graph` describes how it
//! works.

use clap::{Parser, ValueEnum};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use std::time::Duration;
use tasuki::prelude::*;
use tasuki_examples::graph::{Part, Rmat, Search, SearchMethod, distances, handlers};
use tasuki_examples::{progress_bar, ranks};

/// The template of the progress bar.
const BAR: &str = "{wide_bar} {pos} of {len} searches, {elapsed}";

/// Search a generated graph from several roots, level by level, on all ranks.
#[derive(Parser)]
#[command(name = "graph", after_help = "Example: tasuki run -n 4 graph --scale 18 --check")]
struct Options {
    /// The graph has 2^SCALE vertices
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=28))]
    scale: u32,
    /// Edges for each vertex
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1024))]
    edges: u64,
    /// Number of roots
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    roots: u32,
    /// Seed of the graph
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How ranks send visits to the owners of vertices
    #[arg(long, value_enum, default_value = "both")]
    by: By,
    /// Compare the distances with those of a serial search
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Handlers,
    Messages,
    Both,
}

impl By {
    fn methods(self) -> &'static [SearchMethod] {
        match self {
            By::Handlers => &[SearchMethod::Handlers],
            By::Messages => &[SearchMethod::Messages],
            By::Both => &[SearchMethod::Handlers, SearchMethod::Messages],
        }
    }
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    let Options { scale, edges, seed, .. } = *options;
    let graph = Rmat { scale, edge_factor: edges, seed };
    let is_first = job.rank() == 0;
    let mut search = Search::new(job, Part::new(&graph, job.rank(), job.size()))?;
    let whole = (is_first && options.check).then(|| Part::new(&graph, Rank(0), 1));
    let roots = roots(job, &graph, search.part(), options.roots)?;
    let methods = options.by.methods();
    let bar = progress_bar::on_first_rank(job, BAR);
    bar.set_length((roots.len() * methods.len()) as u64);
    let mut rates = vec![Vec::new(); methods.len()];
    for &root in &roots {
        for (method, rates) in methods.iter().zip(&mut rates) {
            job.barrier()?;
            let start = job.clock();
            let edges = search.run(root, *method)?;
            let time = (job.clock() - start).max(Duration::from_nanos(1));
            rates.push(edges as f64 / time.as_secs_f64());
            if options.check
                && let Some(tree) = search.tree(graph.vertices() as usize)?
                && let Some(whole) = &whole
            {
                compare(whole, root, &tree)?;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if is_first {
        report(job, options, methods, &mut rates);
    }
    job.barrier()
}

/// Finds roots that have edges, evenly spread over the vertices.
fn roots(job: &Job, graph: &Rmat, part: &Part, wanted: u32) -> tasuki::Result<Vec<u32>> {
    let vertices = graph.vertices();
    let mut roots: Vec<u32> = Vec::new();
    let step = (vertices / u64::from(wanted)).max(1);
    for first in (0..vertices).step_by(step as usize) {
        let own = (first..first + step).map(|vertex| (vertex % vertices) as u32).find(|&vertex| {
            part.owner(vertex) == job.rank() && !part.neighbours(part.place(vertex)).is_empty()
        });
        let least = job.world().allreduce(&own.unwrap_or(u32::MAX), Min)?;
        if least != u32::MAX && roots.len() < wanted as usize {
            roots.push(least);
        }
    }
    if roots.is_empty() {
        return Err("the graph has no edges: choose another --seed or --scale".into());
    }
    Ok(roots)
}

/// Checks that the search has reached the same vertices as the serial search, and that each vertex is one step
/// further from the root than its parent.
fn compare(whole: &Part, root: u32, tree: &[Option<u32>]) -> tasuki::Result<()> {
    let distances = distances(whole, root);
    let wrong = |vertex: usize| {
        let (from, distance) = (tree[vertex], distances[vertex]);
        let steps = from.and_then(|from| distances[from as usize]);
        let is_right = match distance {
            None => from.is_none(),
            Some(0) => from == Some(root),
            Some(distance) => {
                let is_neighbour = from.is_some_and(|from| whole.neighbours(vertex).contains(&from));
                is_neighbour && steps == Some(distance - 1)
            }
        };
        !is_right
    };
    match (0..tree.len()).find(|&vertex| wrong(vertex)) {
        None => Ok(()),
        Some(vertex) => {
            let (from, distance) = (tree[vertex], distances[vertex]);
            let text =
                format!("from root {root}: vertex {vertex}, at distance {distance:?}, has parent {from:?}");
            Err(text.into())
        }
    }
}

fn report(job: &Job, options: &Options, methods: &[SearchMethod], rates: &mut [Vec<f64>]) {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(["by", "million edges a second", "least - most"]);
    for (method, rates) in methods.iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let million = |rate: f64| format!("{:.1}", rate / 1e6);
        let (least, most) = (rates.first().copied(), rates.last().copied());
        let range = format!("{} - {}", million(least.unwrap_or(0.0)), million(most.unwrap_or(0.0)));
        table.add_row([format!("{method:?}").to_lowercase(), million(rates[rates.len() / 2]), range]);
    }
    for column in 1..3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{table}");
    let checked = if options.check { "equal to" } else { "not compared with" };
    let Options { scale, edges, .. } = options;
    let ranks = ranks(job.size());
    println!("2^{scale} vertices, {edges} edges for each, on {ranks}; {checked} the serial search");
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main_with(handlers(), |job| app(job, &options))
}
