//! A trace as it is read back, to be drawn: as much of the Trace Event Format as `tasuki run --trace` writes.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A lane: rank and number of the thread.
pub(super) type Lane = (u32, u32);

/// Something that took a time; in us from the first event.
pub(super) struct Box {
    pub(super) lane: Lane,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) begin: f64,
    pub(super) end: f64,
    /// In how many others of its lane it lies.
    pub(super) depth: usize,
    pub(super) failed: bool,
}

/// From where and when to where and when.
pub(super) struct Arrow {
    pub(super) kind: String,
    pub(super) from: (Lane, f64),
    pub(super) to: (Lane, f64),
}

/// A trace.
#[derive(Default)]
pub(super) struct Run {
    pub(super) boxes: Vec<Box>,
    pub(super) arrows: Vec<Arrow>,
    /// Names of lanes, by rank and thread.
    pub(super) lanes: BTreeMap<Lane, String>,
    /// EventKind is to be said below the title.
    pub(super) clock: String,
    /// Events that are not in it.
    pub(super) lost: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    trace_events: Vec<Event>,
    #[serde(default)]
    other_data: OtherData,
}

#[derive(Deserialize, Default)]
struct OtherData {
    #[serde(default)]
    clock: String,
    #[serde(default)]
    lost: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Event {
    ph: String,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tid: u32,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    id: u64,
    #[serde(default)]
    args: serde_json::Map<String, serde_json::Value>,
}

/// Reads a file of `tasuki run --trace`; why it is none.
pub(super) fn read(text: &str) -> Result<Run, String> {
    let file: File = serde_json::from_str(text).map_err(|error| format!("no trace: {error}"))?;
    let mut run = Run { clock: file.other_data.clock, ..Run::default() };
    run.lost = file.other_data.lost.values().sum();
    let (mut lanes, mut starts) = (BTreeSet::new(), HashMap::new());
    for event in file.trace_events {
        let lane = (event.pid, event.tid);
        match event.ph.as_str() {
            "X" => {
                lanes.insert(lane);
                let failed = event.args.contains_key("failed");
                let (begin, end) = (event.ts, event.ts + event.dur);
                let (kind, name) = (event.cat, event.name);
                run.boxes.push(Box { lane, kind, name, begin, end, depth: 0, failed });
            }
            "M" if event.name == "thread_name" => {
                let name = event.args.get("name").and_then(|name| name.as_str()).unwrap_or_default();
                run.lanes.insert(lane, name.to_string());
            }
            "s" => drop(starts.insert(event.id, (lane, event.ts))),
            "f" => {
                let kind = event.name;
                let from = starts.remove(&event.id);
                run.arrows.extend(from.map(|from| Arrow { kind, from, to: (lane, event.ts) }));
            }
            _ => {}
        }
    }
    if run.boxes.is_empty() {
        return Err("there is nothing in it".into());
    }
    // A thread that has a name and did nothing needs no lane.
    run.lanes.retain(|lane, _| lanes.contains(lane));
    for lane in lanes {
        run.lanes.entry(lane).or_default();
    }
    run.find_depths();
    Ok(run)
}

impl Run {
    /// When the first thing begins and the last one ends.
    pub(super) fn times(&self) -> (f64, f64) {
        let first = self.boxes.iter().map(|one| one.begin).fold(f64::MAX, f64::min);
        let last = self.boxes.iter().map(|one| one.end).fold(f64::MIN, f64::max);
        (first, last)
    }

    fn find_depths(&mut self) {
        self.boxes.sort_by(|a, b| {
            a.lane.cmp(&b.lane).then(a.begin.total_cmp(&b.begin)).then(b.end.total_cmp(&a.end))
        });
        let mut around: Vec<(Lane, f64)> = Vec::new();
        // Times are rounded to the ns.
        let is_over = |(lane, end): &(Lane, f64), one: &Box| *lane != one.lane || *end < one.begin + 1e-4;
        for one in &mut self.boxes {
            while around.last().is_some_and(|last| is_over(last, one)) {
                around.pop();
            }
            one.depth = around.len();
            around.push((one.lane, one.end));
        }
    }
}
