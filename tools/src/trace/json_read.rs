//! Reads a trace file for drawing. It understands the part of the Trace Event Format that `tasuki
//! run --trace` writes.

use super::names;
use crate::arguments::text_of;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};
use std::path::Path;
use tasuki_command::misuse;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A lane: process and thread, as the file numbers them. See [`rank`].
pub(super) type Lane = (u32, u32);

/// Something that took some time, in us from the first event.
pub(super) struct PictureBox {
    pub(super) lane: Lane,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) begin: f64,
    pub(super) end: f64,
    /// The number of boxes of its lane that enclose it.
    pub(super) depth: usize,
    pub(super) failed: bool,
}

/// A moment that the program marked, in us from the first event.
pub(super) struct PictureMark {
    pub(super) lane: Lane,
    pub(super) name: String,
    pub(super) at: f64,
}

/// An arrow between two points, each a lane and a time.
pub(super) struct PictureArrow {
    pub(super) kind: String,
    pub(super) from: (Lane, f64),
    pub(super) to: (Lane, f64),
}

/// The content of a trace file.
#[derive(Default)]
pub(super) struct Run {
    pub(super) boxes: Vec<PictureBox>,
    pub(super) arrows: Vec<PictureArrow>,
    pub(super) marks: Vec<PictureMark>,
    /// Names of lanes, by process and thread.
    pub(super) lanes: BTreeMap<Lane, String>,
    /// Names of processes.
    pub(super) processes: BTreeMap<u32, String>,
    /// The line below the title.
    pub(super) clock: String,
    /// The number of events that the file lacks.
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
    args: serde_json::Map<String, Value>,
}

/// The text of a file, compressed or not.
pub(super) fn load(path: &Path) -> anyhow::Result<String> {
    let shown = path.display().to_string();
    let mut start = Vec::new();
    let failed = |error: io::Error| misuse(format!("{shown}: {error}"));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut start).map_err(failed)?;
    let is_compressed = start == GZIP;
    let all = io::Cursor::new(start).chain(file);
    if is_compressed { text_of(&shown, MultiGzDecoder::new(all)) } else { text_of(&shown, all) }
}

/// Reads the text of a trace file. The error says why it is not one.
pub(super) fn read(json: &str) -> Result<Run, String> {
    let file: File = serde_json::from_str(json).map_err(|error| format!("not a trace: {error}"))?;
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
                let name = shown(event.name, &event.args);
                let kind = event.cat;
                run.boxes.push(PictureBox { lane, kind, name, begin, end, depth: 0, failed });
            }
            "M" if event.name == "thread_name" => drop(run.lanes.insert(lane, text(&event.args, "name"))),
            "M" if event.name == "process_name" => {
                run.processes.insert(event.pid, text(&event.args, "name"));
            }
            "i" if event.cat == "mark" => {
                lanes.insert(lane);
                run.marks.push(PictureMark { lane, name: event.name, at: event.ts });
            }
            "s" => drop(starts.insert(event.id, (lane, event.ts))),
            "f" => {
                let kind = event.name;
                let from = starts.remove(&event.id);
                run.arrows.extend(from.map(|from| PictureArrow { kind, from, to: (lane, event.ts) }));
            }
            _ => {}
        }
    }
    if run.boxes.is_empty() && run.marks.is_empty() {
        return Err("it contains no events".into());
    }
    // A thread that did nothing gets no lane, though it has a name.
    run.lanes.retain(|lane, _| lanes.contains(lane));
    for lane in lanes {
        run.lanes.entry(lane).or_default();
    }
    run.find_depths();
    Ok(run)
}

/// The text of a box: the call with its arguments, or the name with the number of bytes moved.
fn shown(name: String, args: &serde_json::Map<String, Value>) -> String {
    match (args.get("call").and_then(Value::as_str), args.get("bytes").and_then(Value::as_u64)) {
        (Some(call), _) if !call.is_empty() => call.to_string(),
        (_, Some(bytes)) => format!("{name} {}", names::size(bytes)),
        _ => name,
    }
}

fn text(args: &serde_json::Map<String, Value>, name: &str) -> String {
    args.get(name).and_then(Value::as_str).unwrap_or_default().to_string()
}

impl Run {
    /// When the first event begins and the last one ends.
    pub(super) fn times(&self) -> (f64, f64) {
        let marks = || self.marks.iter().map(|mark| mark.at);
        let first = self.boxes.iter().map(|one| one.begin).chain(marks()).fold(f64::MAX, f64::min);
        let last = self.boxes.iter().map(|one| one.end).chain(marks()).fold(f64::MIN, f64::max);
        (first, last)
    }

    fn find_depths(&mut self) {
        self.boxes.sort_by(|a, b| {
            a.lane.cmp(&b.lane).then(a.begin.total_cmp(&b.begin)).then(b.end.total_cmp(&a.end))
        });
        let mut around: Vec<(Lane, f64)> = Vec::new();
        // Times are rounded to the nanosecond.
        let is_over =
            |(lane, end): &(Lane, f64), one: &PictureBox| *lane != one.lane || *end < one.begin + 1e-4;
        for one in &mut self.boxes {
            while around.last().is_some_and(|last| is_over(last, one)) {
                around.pop();
            }
            one.depth = around.len();
            around.push((one.lane, one.end));
        }
    }
}
