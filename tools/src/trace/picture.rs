//! Draws a trace: one lane for each thread, time from left to right, nested spans below the span
//! that encloses them.

use super::colours::{BAND, CAUSE, COURSE, DATA, FAILED, FAINT, INK, kind, meaning, of};
use super::json_read::{Lane, PictureArrow, PictureBox, PictureMark, Run};
use super::lanes::{Kind, UNDER_WAY};
use super::scale::{label, ticks, unit};
use crate::svg_drawing::{Area, Drawn};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Sizes are in pixels.
const WIDTH: u32 = 1400;
const LEFT: i32 = 150;
const RIGHT: i32 = 24;
const HEAD: i32 = 102;
/// Where the legend begins, and the distance of its rows.
const LEGEND: i32 = 58;
const LEGEND_ROW: i32 = 18;
const AXIS: i32 = 44;
const ROW: i32 = 16;
const BETWEEN_LANES: i32 = 8;
const BETWEEN_RANKS: i32 = 8;
/// The approximate width of a letter in a box and in the legend.
const LETTER: f64 = 6.0;
const LEGEND_LETTER: i32 = 6;
/// The number of rows that a lane has at most: more rows would be unreadable.
const DEPTH_MAX: usize = 6;
/// The number of arrows drawn at most: more of them hide the picture.
const ARROWS_MAX: usize = 300;
/// The number of marks drawn at most.
const MARKS_MAX: usize = 300;
/// The least length of an arrow within one lane, in pixels from left to right; shorter ones are not
/// drawn.
const ARROW_MIN: i32 = 3;

/// Draws what happened between two times, given in us.
pub(super) fn draw(run: &Run, name: &str, range: Range<f64>) -> anyhow::Result<String> {
    let mut svg = String::new();
    let picture = Picture::new(run, range);
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, picture.height as u32));
        picture.compose(&root.into_drawing_area(), name)
    };
    drawn.map_err(|error| anyhow::anyhow!("the picture cannot be drawn: {error}"))?;
    Ok(svg)
}

/// The layout of the picture.
struct Picture<'r> {
    run: &'r Run,
    range: Range<f64>,
    /// The top of each lane and its number of rows.
    lanes: BTreeMap<Lane, (i32, usize)>,
    height: i32,
}

impl<'r> Picture<'r> {
    fn new(run: &'r Run, range: Range<f64>) -> Picture<'r> {
        // A thread has a lane even if it does nothing in this range; other lanes are shown only
        // where they have spans.
        let threads = run.lanes.keys().filter(|lane| lane.1 <= UNDER_WAY); // threads count from 1
        let mut rows: BTreeMap<Lane, usize> = threads.map(|lane| (*lane, 1)).collect();
        for one in run.boxes.iter().filter(|one| overlap(one, &range)) {
            let rows = rows.entry(one.lane).or_insert(1);
            *rows = (*rows).max(one.depth.min(DEPTH_MAX - 1) + 1);
        }
        let (mut y, mut rank, mut lanes) = (HEAD, None, BTreeMap::new());
        for (lane, rows) in rows {
            if rank.is_some_and(|rank| rank != lane.0) {
                y += BETWEEN_RANKS;
            }
            rank = Some(lane.0);
            lanes.insert(lane, (y, rows));
            y += rows as i32 * ROW + BETWEEN_LANES;
        }
        Picture { run, range, lanes, height: y + AXIS }
    }

    fn bottom(&self) -> i32 {
        self.height - AXIS
    }

    fn x(&self, us: f64) -> i32 {
        let width = f64::from(WIDTH as i32 - LEFT - RIGHT);
        let part = (us - self.range.start) / (self.range.end - self.range.start);
        LEFT + (part.clamp(0.0, 1.0) * width).round() as i32
    }

    fn compose(&self, root: &Area<'_>, name: &str) -> Drawn {
        root.fill(&WHITE)?;
        self.draw_head(root, name)?;
        self.draw_bands(root)?;
        self.draw_axis(root)?;
        for kind in Kind::ALL {
            self.draw_boxes(root, kind)?;
        }
        self.draw_arrows(root)?;
        let marks = self.run.marks.iter().filter(|mark| self.range.contains(&mark.at));
        marks.take(MARKS_MAX).try_for_each(|mark| self.draw_mark(root, mark))?;
        root.present()?;
        Ok(())
    }

    fn draw_head(&self, root: &Area<'_>, name: &str) -> Drawn {
        let ranks: HashSet<u32> = self.run.lanes.keys().map(|lane| lane.0).collect();
        let count = if ranks.len() == 1 { "1 rank".into() } else { format!("{} ranks", ranks.len()) };
        root.draw_text(&format!("{name}: what {count} did"), &text(19), (20, 10))?;
        root.draw_text(&self.remark(), &text(12), (20, 36))?;
        self.draw_legend(root)
    }

    /// Draws the legend: colours of boxes, failures and arrows.
    fn draw_legend(&self, root: &Area<'_>) -> Drawn {
        let shown: HashSet<&str> = self.run.boxes.iter().map(|one| one.kind.as_str()).collect();
        let boxes = Kind::ALL.into_iter().filter(|kind| shown.contains(kind.word()));
        let boxes = boxes.map(|kind| (of(kind), meaning(kind), true));
        let failed =
            self.run.boxes.iter().any(|one| one.failed).then_some((FAILED, "ended with an error", true));
        let arrows =
            [(COURSE, "its course"), (DATA, "bytes move"), (CAUSE, "its effect lets go on")].into_iter();
        let arrows = arrows.map(|(colour, meaning)| (colour, meaning, false));
        let (mut x, mut y) = (20, LEGEND);
        for (colour, meaning, is_box) in boxes.chain(failed).chain(arrows) {
            let width = 42 + meaning.len() as i32 * LEGEND_LETTER;
            if x + width > WIDTH as i32 {
                (x, y) = (20, y + LEGEND_ROW);
            }
            if is_box {
                root.draw(&Rectangle::new([(x, y), (x + 16, y + 12)], colour.filled()))?;
            } else {
                root.draw(&PathElement::new([(x, y + 6), (x + 16, y + 6)], colour.stroke_width(2)))?;
            }
            root.draw_text(meaning, &text(12), (x + 21, y - 1))?;
            x += width;
        }
        Ok(())
    }

    fn remark(&self) -> String {
        let mut remarks = vec![self.run.clock.clone()];
        if self.run.lost > 0 {
            remarks.push(format!("the first {} events are missing: there was no room", self.run.lost));
        }
        let count = self.arrows().count();
        if count > ARROWS_MAX {
            remarks
                .push(format!("the first {ARROWS_MAX} of {count} arrows: --from and --to show the others"));
        }
        remarks.retain(|remark| !remark.is_empty());
        remarks.join("; ")
    }

    fn draw_bands(&self, root: &Area<'_>) -> Drawn {
        for (&(rank, lane), &(y, rows)) in &self.lanes {
            let end = y + rows as i32 * ROW;
            let name = self.run.lanes.get(&(rank, lane)).map_or("", String::as_str);
            root.draw(&Rectangle::new([(LEFT, y), (WIDTH as i32 - RIGHT, end)], BAND.filled()))?;
            let right = text(12).pos(Pos::new(HPos::Right, VPos::Center));
            let middle = y + ROW / 2;
            root.draw_text(&cut(name, 13), &right, (LEFT - 8, middle))?;
            let is_first = self.lanes.keys().find(|other| other.0 == rank) == Some(&(rank, lane));
            if is_first {
                let left = text(13).pos(Pos::new(HPos::Left, VPos::Center));
                let name = self.run.processes.get(&rank).map_or("", String::as_str);
                root.draw_text(&cut(name, 12), &left, (12, middle))?;
            }
        }
        Ok(())
    }

    fn draw_axis(&self, root: &Area<'_>) -> Drawn {
        let ticks = ticks(&self.range, 10.0);
        let step = ticks.get(1).map_or(self.range.end - self.range.start, |second| second - ticks[0]);
        let unit = unit(self.range.end - self.range.start);
        let below = text(12).pos(Pos::new(HPos::Center, VPos::Top));
        for tick in ticks {
            let x = self.x(tick);
            root.draw(&PathElement::new([(x, HEAD - 4), (x, self.bottom())], FAINT.stroke_width(1)))?;
            root.draw_text(&label(tick, step, unit), &below, (x, self.bottom() + 5))?;
        }
        let right = text(12).pos(Pos::new(HPos::Right, VPos::Top));
        let what = format!("{} since the first event", unit.name);
        root.draw_text(&what, &right, (WIDTH as i32 - RIGHT, self.bottom() + 22))?;
        Ok(())
    }

    fn place(&self, one: &PictureBox) -> Option<(i32, i32)> {
        let &(y, _) = self.lanes.get(&one.lane)?;
        let top = y + one.depth.min(DEPTH_MAX - 1) as i32 * ROW;
        Some((top + 1, top + ROW - 1))
    }

    fn draw_boxes(&self, root: &Area<'_>, which: Kind) -> Drawn {
        // A box that would cover the pixels of one already drawn is skipped.
        let mut drawn: HashSet<(Lane, usize, i32)> = HashSet::new();
        for one in self.run.boxes.iter().filter(|one| kind(&one.kind) == which && overlap(one, &self.range)) {
            let Some((top, bottom)) = self.place(one) else { continue };
            let (left, right) = (self.x(one.begin), self.x(one.end));
            let right = right.max(left + 1);
            if right == left + 1 && !one.failed && !drawn.insert((one.lane, one.depth, left)) {
                continue;
            }
            let colour = if one.failed { FAILED } else { of(which) };
            let gap = i32::from(right - left > 3); // a gap keeps neighbours apart
            root.draw(&Rectangle::new([(left, top), (right - gap, bottom)], colour.filled()))?;
            let room = (f64::from(right - left - 6) / LETTER) as usize;
            if room >= 3 {
                let ink = if which == Kind::Run || one.failed { WHITE } else { INK };
                let style = ("sans-serif", 11).into_text_style(&(0, 0)).color(&ink);
                let style = style.pos(Pos::new(HPos::Left, VPos::Center));
                root.draw_text(&cut(&one.name, room), &style, (left + 4, (top + bottom) / 2))?;
            }
        }
        Ok(())
    }

    /// Draws a line through the lane, with the name beside it.
    fn draw_mark(&self, root: &Area<'_>, mark: &PictureMark) -> Drawn {
        let Some(&(top, rows)) = self.lanes.get(&mark.lane) else { return Ok(()) };
        let (x, bottom) = (self.x(mark.at), top + rows as i32 * ROW);
        root.draw(&PathElement::new([(x, top - 4), (x, bottom)], INK.stroke_width(2)))?;
        root.draw(&Polygon::new([(x - 4, top - 5), (x + 4, top - 5), (x, top + 1)], INK.filled()))?;
        let name = cut(&mark.name, 24);
        let has_room = x + 5 + (name.chars().count() as f64 * LETTER) as i32 <= WIDTH as i32 - RIGHT;
        let (side, at) = if has_room { (HPos::Left, x + 5) } else { (HPos::Right, x - 5) };
        root.draw_text(&name, &text(11).pos(Pos::new(side, VPos::Center)), (at, bottom - ROW / 2))?;
        Ok(())
    }

    /// The arrows that have an end in the picture and are long enough to be seen.
    fn arrows(&self) -> impl Iterator<Item = &'r PictureArrow> {
        self.run.arrows.iter().filter(|arrow| {
            let inside = |us: f64| self.range.contains(&us);
            let width = self.x(arrow.to.1) - self.x(arrow.from.1);
            let is_seen = arrow.from.0 != arrow.to.0 || width >= ARROW_MIN;
            inside(arrow.from.1) && inside(arrow.to.1) && is_seen
        })
    }

    fn draw_arrows(&self, root: &Area<'_>) -> Drawn {
        for arrow in self.arrows().take(ARROWS_MAX) {
            let (Some(mut from), Some(mut to)) = (self.end(arrow.from), self.end(arrow.to)) else { continue };
            if from.1 == to.1 {
                (from.1, to.1) = (from.1 + ROW / 2 - 3, to.1 + ROW / 2 - 3); // below the names
            }
            let colour = match arrow.kind.as_str() {
                "effect" => CAUSE,
                "data" => DATA,
                _ => COURSE,
            };
            root.draw(&PathElement::new([from, to], colour.stroke_width(1)))?;
            root.draw(&Polygon::new(head(from, to), colour.filled()))?;
        }
        Ok(())
    }

    /// Where an arrow begins or ends: at the middle of the innermost box at that time.
    fn end(&self, (lane, us): (Lane, f64)) -> Option<(i32, i32)> {
        let first = self.run.boxes.partition_point(|one| one.lane < lane);
        let behind = self.run.boxes.partition_point(|one| (one.lane, one.begin) <= (lane, us + 1e-4));
        let around = self.run.boxes[first..behind].iter().rev().find(|one| us < one.end + 1e-4)?;
        let (top, bottom) = self.place(around)?;
        Some((self.x(us), (top + bottom) / 2))
    }
}

/// The triangle at the head of an arrow.
fn head(from: (i32, i32), to: (i32, i32)) -> [(i32, i32); 3] {
    let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = dx.hypot(dy).max(1.0);
    let (x, y) = (dx / length, dy / length);
    let point = |along: f64, across: f64| {
        let at = (x * along - y * across, y * along + x * across);
        (to.0 + at.0.round() as i32, to.1 + at.1.round() as i32)
    };
    [to, point(-7.0, 3.0), point(-7.0, -3.0)]
}

fn overlap(one: &PictureBox, range: &Range<f64>) -> bool {
    one.end >= range.start && one.begin <= range.end
}

/// A text shortened to at most `room` letters.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0)).color(&INK)
}

#[cfg(test)]
mod tests {
    use super::super::json_read::read;
    use super::*;

    const FILE: &str = r#"{"otherData":{"clock":"a clock","lost":{"0":0,"1":7}},"traceEvents":[
        {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"program"}},
        {"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"rank 0"}},
        {"ph":"M","pid":2,"tid":1,"name":"process_name","args":{"name":"rank 1"}},
        {"ph":"X","pid":1,"tid":1,"ts":1,"dur":9,"name":"post copy","cat":"post","args":{"bytes":8}},
        {"ph":"X","pid":1,"tid":1,"ts":2,"dur":3,"name":"copy","cat":"run","args":{"bytes":8}},
        {"ph":"i","s":"t","pid":1,"tid":1,"ts":6,"name":"checkpoint","cat":"mark"},
        {"ph":"s","pid":1,"tid":1,"ts":4,"id":1,"name":"effect","cat":"arrow"},
        {"ph":"f","pid":2,"tid":1,"ts":11.9,"id":1,"name":"effect","cat":"arrow","bp":"e"},
        {"ph":"X","pid":2,"tid":1,"ts":0,"dur":12,"name":"wait","cat":"wait","args":{"call":"wait(signal 3 >= 1)"}}]}"#;

    #[test]
    fn the_picture_names_what_it_shows() {
        let run = read(FILE).unwrap();
        let svg = draw(&run, "run.json", 0.0..12.0).unwrap();
        let words =
            ["run.json: what 2 ranks did", "rank 1", "program", "post copy 8 B", "wait(signal 3 &gt;= 1)"];
        let others = ["a clock", "first 7 events are missing", "checkpoint", "polygon", "us since"];
        for word in words.into_iter().chain(others) {
            assert!(svg.contains(word), "{word}: {svg}");
        }
        let part = draw(&run, "run.json", 11.0..12.0).unwrap();
        assert!(!part.contains("post copy") && !part.contains("checkpoint") && !part.contains("polygon"));
    }

    #[test]
    fn an_arrow_ends_in_the_innermost_box() {
        let run = read(FILE).unwrap();
        let picture = Picture::new(&run, 0.0..12.0);
        let y = |us| picture.end(((1, 1), us)).unwrap().1;
        assert_eq!(y(4.0) - y(7.0), ROW);
    }
}
