//! Copy in, copy out: each rank copies its input into a staging buffer that all ranks can access, and copies its output
//! from the staging buffers of others.
//!
//! No rank accesses the data of another rank, so the data may be memory of the program that others cannot access; and
//! each signal is raised by one rank only. This suits ranks that share a node: two copies for each byte, each made by
//! the rank that has it in its caches, and few turns on a processor.
//!
//! Successive starts use several copies of a staging buffer in turn. Where each rank waits for all ranks, two copies
//! suffice: a rank that writes to the first copy again has been signalled by all ranks in the start between, and these
//! have read the first copy before. Otherwise the readers signal that a copy is free. Two ranks swap their staging
//! buffers at each start: where each reads from the other, or the root changes, a rank writes where it has just read,
//! which is in its caches already.
//!
//! With two ranks and a root, both ranks raise the other's signal equally often, whichever is the root: the reader
//! acknowledges by the signal that tells of new data. So calls with either root can follow each other on the same
//! buffers: before a rank writes, it has read what the other one wrote there last, or its data of two starts ago have
//! been acknowledged.
//!
//! Every rank combines values from the left, so all results are equal to the bit.

use crate::algorithm::layout::swap_buffers::SwapBuffers;
use crate::algorithm::{Algorithm, CollectiveKind, Make, signal_all};
use crate::combining_order::is_from_the_left;
use crate::shape::{DATA, RESULT, Shape};
use crate::{BufferId, Location, RankPart, SignalId, Step, StepTrigger, started};

/// The root copies in; all others copy out.
pub(crate) const BCAST: Algorithm = algorithm("copy in copy out", CollectiveKind::Bcast, bcast);
/// The root copies in a block for each rank.
pub(crate) const SCATTER: Algorithm = algorithm("copy in copy out", CollectiveKind::Scatter, scatter);
/// Each rank copies in its block for the root.
pub(crate) const GATHER: Algorithm = algorithm("copy in copy out", CollectiveKind::Gather, gather);
/// Each rank copies in its values; the root combines them.
pub(crate) const REDUCE: Algorithm = algorithm("copy in copy out", CollectiveKind::Reduce, reduce);
/// Each rank copies in its values, and combines the values of all ranks itself.
pub(crate) const ALLREDUCE: Algorithm = algorithm("copy in copy out", CollectiveKind::Allreduce, allreduce);
/// Each rank copies in its values, combines its share of the values of all ranks, and copies in the result.
pub(crate) const REDUCE_SCATTER_ALLGATHER: Algorithm =
    algorithm("reduce scatter allgather", CollectiveKind::Allreduce, reduce_scatter_allgather);
/// Each rank copies in its values, and combines its block of the values of all ranks.
pub(crate) const REDUCE_SCATTER: Algorithm =
    algorithm("copy in copy out", CollectiveKind::ReduceScatter, reduce_scatter);
/// Each rank copies in its block, and copies out the blocks of all others.
pub(crate) const ALLGATHER: Algorithm = algorithm("copy in copy out", CollectiveKind::Allgather, allgather);
/// Each rank copies in its blocks, and copies out its own blocks from all others.
pub(crate) const ALLTOALL: Algorithm = algorithm("copy in copy out", CollectiveKind::Alltoall, alltoall);
/// Each rank copies in its values, and combines those of the ranks before it with its own.
pub(crate) const SCAN: Algorithm = algorithm("copy in copy out", CollectiveKind::Scan, scan);
/// Each rank copies in its values, and combines those of the ranks before it.
pub(crate) const EXSCAN: Algorithm = algorithm("copy in copy out", CollectiveKind::Exscan, exscan);
/// Each rank signals every other rank.
pub(crate) const BARRIER: Algorithm = algorithm("all to all", CollectiveKind::Barrier, barrier);

const fn algorithm(
    name: &'static str,
    collective: CollectiveKind,
    make: fn(&Shape, u64, &mut RankPart),
) -> Algorithm {
    Algorithm { name, collective, fits: is_from_the_left, make: Make::Cut(make) }
}

/// Which ranks read from which.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// All others read from the root.
    FromRoot(usize),
    /// The root reads from all others.
    ToRoot(usize),
    /// Each rank reads from the ranks before it.
    Prefix,
    /// Each rank reads from all others.
    AllToAll,
}

impl Flow {
    fn reads(self, reader: usize, source: usize) -> bool {
        reader != source
            && match self {
                Flow::FromRoot(root) => source == root,
                Flow::ToRoot(root) => reader == root,
                Flow::Prefix => source < reader,
                Flow::AllToAll => true,
            }
    }

    /// Returns true if the flow has a root.
    fn is_rooted(self) -> bool {
        matches!(self, Flow::FromRoot(_) | Flow::ToRoot(_))
    }
}

/// The staging buffer of a rank, and the signals of its use.
struct Staging {
    flow: Flow,
    ranks: usize,
    me: usize,
    stage: BufferId,
    /// Counts the copies into the staging buffer, and the reads from those of others.
    copied_in: SignalId,
    copied_out: SignalId,
    /// The signals of new data: one for each source, or one if there is only one source.
    available: Vec<SignalId>,
    /// The signals that the staging buffer is free: one for each reader, or one if there is only one. None where each
    /// rank waits for all ranks.
    free: Vec<SignalId>,
    /// What a reader adds to `free` in a start.
    free_amount: u64,
    /// Number of starts after which a copy of the staging buffer is written again.
    turns: u32,
}

/// How much a rank copies in and reads in a start.
#[derive(Clone, Copy)]
struct Amounts {
    /// Size of this rank's staging buffer in bytes.
    bytes: u64,
    /// Number of copies into the staging buffer, and number of reads.
    copies_in: u64,
    reads: u64,
    /// Number of times that a source signals a reader.
    signals: u64,
}

/// Returns true if two ranks may swap staging buffers: both copy in the same number of bytes.
fn are_two(shape: &Shape) -> bool {
    shape.ranks == 2 && shape.is_even()
}

impl Staging {
    fn declare(flow: Flow, shape: &Shape, amounts: Amounts, part: &mut RankPart) -> Staging {
        let (me, ranks) = (part.rank(), shape.ranks);
        let Amounts { bytes, copies_in, reads, signals } = amounts;
        let are_two = are_two(shape);
        let turns = if flow == Flow::AllToAll || are_two && flow.is_rooted() { 2 } else { 4 };
        let stage = match flow {
            Flow::AllToAll | Flow::FromRoot(_) | Flow::ToRoot(_) if are_two => {
                part.swapped("stage", bytes, 1 - me)
            }
            _ => part.scratch("stage", bytes, turns),
        };
        let copied_in = part.signal("copied_in", copies_in);
        let copied_out = part.signal("copied_out", reads);
        if are_two && flow.is_rooted() {
            let available = part.signal("available", signals);
            return Staging {
                flow,
                ranks,
                me,
                stage,
                copied_in,
                copied_out,
                available: vec![available],
                free: vec![available],
                free_amount: signals,
                turns,
            };
        }
        let all = |is_one: bool| if is_one { 0..1 } else { 0..ranks };
        let sources = all(matches!(flow, Flow::FromRoot(_)));
        let available = sources.map(|source| {
            let source = if let Flow::FromRoot(root) = flow { root } else { source };
            part.signal("available", if flow.reads(me, source) { signals } else { 0 })
        });
        let available = available.collect();
        let readers = if flow == Flow::AllToAll { 0..0 } else { all(matches!(flow, Flow::ToRoot(_))) };
        let free = readers.map(|reader| {
            let reader = if let Flow::ToRoot(root) = flow { root } else { reader };
            part.signal("free", u64::from(flow.reads(reader, me)))
        });
        let free = free.collect();
        Staging { flow, ranks, me, stage, copied_in, copied_out, available, free, free_amount: 1, turns }
    }

    fn available_signal(&self, source: usize) -> SignalId {
        self.available[if self.available.len() == 1 { 0 } else { source }]
    }

    fn free_signal(&self, reader: usize) -> Option<SignalId> {
        self.free.get(if self.free.len() == 1 { 0 } else { reader }).copied()
    }

    /// The ranks that read from this rank, the next one first.
    fn readers(&self) -> impl Iterator<Item = usize> + use<> {
        let (flow, me, ranks) = (self.flow, self.me, self.ranks);
        (1..ranks).map(move |step| (me + step) % ranks).filter(move |&reader| flow.reads(reader, me))
    }

    /// The ranks that this rank reads from, the one before it first.
    fn sources(&self) -> impl Iterator<Item = usize> + use<> {
        let (flow, me, ranks) = (self.flow, self.me, self.ranks);
        let before = (1..ranks).map(move |step| (me + ranks - step) % ranks);
        before.filter(move |&source| flow.reads(me, source))
    }

    /// Waits until this rank's staging buffer is free.
    fn wait_until_free(&self, part: &mut RankPart) {
        for reader in self.readers() {
            if let Some(free) = self.free_signal(reader) {
                part.join(free.reaches(self.free_amount).lagging(self.turns));
            }
        }
    }

    /// Copies bytes of the data in: `from` and `to` are offsets in the data and in the staging buffer. `number` counts
    /// the copies from 1 on.
    fn copy_in(&self, number: u64, (from, to, bytes): (u64, u64, u64), part: &mut RankPart) {
        self.copy_in_at(self.stage.on(self.me, to), number, (from, bytes), part);
    }

    /// Copies bytes of the data in to `place`.
    fn copy_in_at(&self, place: Location, number: u64, (from, bytes): (u64, u64), part: &mut RankPart) {
        part.copy(started(), DATA.on(self.me, from), place, bytes).then(self.copied_in.on(self.me, 1));
        part.join(self.copied_in.reaches(number));
    }

    /// Signals these readers that new data are available.
    fn signal_readers(&self, readers: impl Iterator<Item = usize>, part: &mut RankPart) {
        let available = self.available_signal(self.me);
        signal_all(part, readers.map(|reader| available.on(reader, 1)));
    }

    /// The trigger that is met when `source` has copied in for the `number`th time, counted from 1.
    fn data_trigger(&self, source: usize, number: u64) -> StepTrigger {
        if source == self.me {
            self.copied_in.reaches(number)
        } else {
            self.available_signal(source).reaches(number)
        }
    }

    /// Counts a step that has read from a staging buffer.
    fn count_read(&self, step: &mut Step) {
        step.then(self.copied_out.on(self.me, 1));
    }

    /// Combines the values that the `sources` have copied in, in that order: the data from offset `to` on become the
    /// first source's values, combined with those of the next. `at` is the offset in the staging buffers; `number`
    /// counts the segments from 1 on. If this rank is a source, it has copied its values in, too.
    fn combine(
        &self,
        sources: std::ops::Range<usize>,
        number: u64,
        (at, to, bytes): (u64, u64, u64),
        part: &mut RankPart,
    ) {
        let (me, first) = (self.me, sources.start);
        let has_own = sources.contains(&me);
        let before = (number - 1) * Staging::combinations(me, sources.clone());
        for source in sources {
            let (from, to) = (self.stage.on(source, at), DATA.on(me, to));
            let trigger = self.data_trigger(source, number);
            match (source - first, me - first) {
                (0, 0) | (1, 1) => {} // the data hold these values already
                (0, 1) if has_own => self.count_read(part.reduce(trigger, from, to, bytes, true)),
                (0, _) => {
                    self.count_read(part.copy(trigger, from, to, bytes));
                    part.join(self.copied_out.reaches(before + 1));
                }
                _ => self.count_read(part.reduce(trigger, from, to, bytes, false)),
            }
        }
    }

    /// Number of steps that [`Staging::combine`] adds.
    fn combinations(me: usize, sources: std::ops::Range<usize>) -> u64 {
        let is_there = sources.contains(&me) && me - sources.start < 2;
        sources.len() as u64 - u64::from(is_there)
    }

    /// Signals to the sources that their staging buffers are free, and completes the start of this rank.
    fn finish(&self, amounts: Amounts, part: &mut RankPart) {
        if let Some(free) = self.free_signal(self.me)
            && self.sources().next().is_some()
        {
            part.join(self.copied_out.reaches(amounts.reads));
            signal_all(part, self.sources().map(|source| free.on(source, self.free_amount)));
        }
        part.finish(self.copied_in.reaches(amounts.copies_in));
        part.finish(self.copied_out.reaches(amounts.reads));
    }
}

/// The segments of `bytes` bytes, as (offset, size).
fn cuts(shape: &Shape, bytes: u64, segments: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..segments).map(move |segment| {
        let begin = shape.cut(bytes, segments, segment);
        (begin, shape.cut(bytes, segments, segment + 1) - begin)
    })
}

fn bcast(shape: &Shape, segments: u64, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let is_root = me == root;
    part.buffer("data", bytes);
    let (own, others) = if is_root { (segments, 0) } else { (0, segments) };
    let stage_bytes = if is_root || are_two(shape) { bytes } else { 0 };
    let amounts = Amounts { bytes: stage_bytes, copies_in: own, reads: others, signals: segments };
    let stage = Staging::declare(Flow::FromRoot(root), shape, amounts, part);
    if is_root {
        stage.wait_until_free(part);
    }
    for (number, (begin, bytes)) in (1..).zip(cuts(shape, bytes, segments)) {
        if is_root {
            stage.copy_in(number, (begin, begin, bytes), part);
            stage.signal_readers(stage.readers(), part);
        } else {
            let (from, to) = (stage.stage.on(root, begin), DATA.on(me, begin));
            stage.count_read(part.copy(stage.data_trigger(root, number), from, to, bytes));
        }
    }
    stage.finish(amounts, part);
}

fn scatter(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    let is_root = me == root;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let (copies_in, reads) = if is_root { (others, 0) } else { (0, 1) };
    let bytes = if is_root || are_two(shape) { shape.bytes_of_all() } else { 0 };
    let amounts = Amounts { bytes, copies_in, reads, signals: 1 };
    let stage = Staging::declare(Flow::FromRoot(root), shape, amounts, part);
    let at = |rank: usize| shape.offset_of(rank);
    if is_root {
        stage.wait_until_free(part);
        for (number, rank) in (1..).zip(stage.readers()) {
            stage.copy_in(number, (at(rank), at(rank), shape.bytes_of(rank)), part);
            stage.signal_readers(std::iter::once(rank), part);
        }
    } else {
        let (from, to) = (stage.stage.on(root, at(me)), DATA.on(me, 0));
        stage.count_read(part.copy(stage.data_trigger(root, 1), from, to, shape.bytes_of(me)));
    }
    stage.finish(amounts, part);
}

fn gather(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    let is_root = me == root;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let (copies_in, reads) = if is_root { (0, others) } else { (1, 0) };
    let bytes = if is_root && !are_two(shape) { 0 } else { shape.bytes_of(me) };
    let amounts = Amounts { bytes, copies_in, reads, signals: 1 };
    let stage = Staging::declare(Flow::ToRoot(root), shape, amounts, part);
    if !is_root {
        stage.wait_until_free(part);
        stage.copy_in(1, (0, 0, bytes), part);
        stage.signal_readers(stage.readers(), part);
    }
    for source in stage.sources() {
        let (from, to) = (stage.stage.on(source, 0), DATA.on(me, shape.offset_of(source)));
        stage.count_read(part.copy(stage.data_trigger(source, 1), from, to, shape.bytes_of(source)));
    }
    stage.finish(amounts, part);
}

/// Adds a reduction: each rank copies in all its values; `sources` returns the ranks whose values a rank combines.
fn reduction(
    shape: &Shape,
    segments: u64,
    flow: Flow,
    sources: impl Fn(usize) -> std::ops::Range<usize>,
    part: &mut RankPart,
) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let sources = sources(me);
    let reads = segments * Staging::combinations(me, sources.clone());
    // A rank with two sources before it needs its own values again, after its data were overwritten.
    let needs_own_again = sources.contains(&me) && me - sources.start > 1;
    let copies_any_in = needs_own_again || (0..shape.ranks).any(|reader| flow.reads(reader, me));
    let (stage_bytes, copies_in) = if copies_any_in { (bytes, segments) } else { (0, 0) };
    let stage_bytes = if flow.is_rooted() && are_two(shape) { bytes } else { stage_bytes };
    let amounts = Amounts { bytes: stage_bytes, copies_in, reads, signals: segments };
    let stage = Staging::declare(flow, shape, amounts, part);
    stage.wait_until_free(part);
    for (number, (begin, bytes)) in (1..=copies_in).zip(cuts(shape, bytes, segments)) {
        stage.copy_in(number, (begin, begin, bytes), part);
        stage.signal_readers(stage.readers(), part);
    }
    for (number, (begin, bytes)) in (1..).zip(cuts(shape, bytes, segments)) {
        stage.combine(sources.clone(), number, (begin, begin, bytes), part);
    }
    stage.finish(amounts, part);
}

fn reduce(shape: &Shape, segments: u64, part: &mut RankPart) {
    let (root, ranks) = (shape.root, shape.ranks);
    reduction(shape, segments, Flow::ToRoot(root), |me| if me == root { 0..ranks } else { me..me + 1 }, part);
}

fn allreduce(shape: &Shape, segments: u64, part: &mut RankPart) {
    reduction(shape, segments, Flow::AllToAll, |_| 0..shape.ranks, part);
}

fn scan(shape: &Shape, segments: u64, part: &mut RankPart) {
    reduction(shape, segments, Flow::Prefix, |me| 0..me + 1, part);
}

fn exscan(shape: &Shape, segments: u64, part: &mut RankPart) {
    reduction(shape, segments, Flow::Prefix, |me| 0..me, part);
}

fn reduce_scatter(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, all) = (part.rank(), shape.bytes_of_all());
    part.buffer("data", all);
    let reads = Staging::combinations(me, 0..shape.ranks);
    let amounts = Amounts { bytes: all, copies_in: 1, reads, signals: 1 };
    let stage = Staging::declare(Flow::AllToAll, shape, amounts, part);
    stage.copy_in(1, (0, 0, all), part);
    stage.signal_readers(stage.readers(), part);
    let at = shape.offset_of(me);
    stage.combine(0..shape.ranks, 1, (at, at, shape.bytes_of(me)), part);
    stage.finish(amounts, part);
}

fn reduce_scatter_allgather(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, ranks, bytes) = (part.rank(), shape.ranks, shape.bytes_of(0));
    let shares: Vec<(u64, u64)> = cuts(shape, bytes, ranks as u64).collect();
    let (at, share) = shares[me];
    let longest = shares.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    // With two ranks, which swap staging buffers, the share lies at the beginning.
    let location = |rank: usize| if ranks == 2 { 0 } else { shares[rank].0 };
    part.buffer("data", bytes);
    // Ranks 0 and 1 combine in place.
    let copies_own_in = me > 1;
    let copies_in = ranks as u64 - 1 + u64::from(copies_own_in);
    let input_bytes = if ranks == 2 { longest } else { bytes };
    let input_amounts =
        Amounts { bytes: input_bytes, copies_in, reads: Staging::combinations(me, 0..ranks), signals: 1 };
    let inputs = Staging::declare(Flow::AllToAll, shape, input_amounts, part);
    let result_amounts = Amounts { bytes: longest, copies_in: 1, reads: ranks as u64 - 1, signals: 1 };
    let results = Staging::declare(Flow::AllToAll, shape, result_amounts, part);
    for (number, to) in (1..).zip(inputs.readers()) {
        let (begin, bytes) = shares[to];
        inputs.copy_in(number, (begin, location(to), bytes), part);
        inputs.signal_readers(std::iter::once(to), part);
    }
    if copies_own_in {
        inputs.copy_in(input_amounts.copies_in, (at, location(me), share), part);
    }
    inputs.combine(0..ranks, 1, (location(me), at, share), part);
    part.join(inputs.copied_out.reaches(input_amounts.reads));
    results.copy_in(1, (at, 0, share), part);
    results.signal_readers(results.readers(), part);
    for source in results.sources() {
        let (begin, bytes) = shares[source];
        let (from, to) = (results.stage.on(source, 0), DATA.on(me, begin));
        results.count_read(part.copy(results.data_trigger(source, 1), from, to, bytes));
    }
    inputs.finish(input_amounts, part);
    results.finish(result_amounts, part);
}

fn allgather(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(part.rank()));
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let amounts = Amounts { bytes, copies_in: 1, reads: shape.ranks as u64 - 1, signals: 1 };
    let stage = Staging::declare(Flow::AllToAll, shape, amounts, part);
    stage.copy_in(1, (shape.offset_of(me), 0, bytes), part);
    stage.signal_readers(stage.readers(), part);
    for source in stage.sources() {
        let (from, to) = (stage.stage.on(source, 0), DATA.on(me, shape.offset_of(source)));
        stage.count_read(part.copy(stage.data_trigger(source, 1), from, to, shape.bytes_of(source)));
    }
    stage.finish(amounts, part);
}

fn alltoall(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, others) = (part.rank(), shape.ranks as u64 - 1);
    let [data, result] = shape.buffer_bytes(me);
    part.buffer("data", data);
    part.buffer("result", result);
    let pairs = SwapBuffers::declare(shape, part);
    // The block of a rank for itself is not copied in.
    let stage_bytes = if pairs.is_some() { 0 } else { data - shape.block(me, me) };
    let amounts = Amounts { bytes: stage_bytes, copies_in: others, reads: others + 1, signals: 1 };
    let stage = Staging::declare(Flow::AllToAll, shape, amounts, part);
    let location = |from: usize, to: usize| match &pairs {
        Some(pairs) => pairs.location(from, to),
        None => {
            let before = shape.send_offset(from, to);
            stage.stage.on(from, before - if to > from { shape.block(from, from) } else { 0 })
        }
    };
    for (number, to) in (1..).zip(stage.readers()) {
        stage.copy_in_at(location(me, to), number, (shape.send_offset(me, to), shape.block(me, to)), part);
        stage.signal_readers(std::iter::once(to), part);
    }
    let (from, into) = (DATA.on(me, shape.send_offset(me, me)), RESULT.on(me, shape.recv_offset(me, me)));
    part.copy(started(), from, into, shape.block(me, me)).then(stage.copied_out.on(me, 1));
    for source in stage.sources() {
        let (from, into) = (location(source, me), RESULT.on(me, shape.recv_offset(source, me)));
        stage.count_read(part.copy(stage.data_trigger(source, 1), from, into, shape.block(source, me)));
    }
    stage.finish(amounts, part);
}

fn barrier(shape: &Shape, _segments: u64, part: &mut RankPart) {
    part.buffer("data", 0);
    let amounts = Amounts { bytes: 0, copies_in: 0, reads: 0, signals: 1 };
    let stage = Staging::declare(Flow::AllToAll, shape, amounts, part);
    stage.signal_readers(stage.readers(), part);
    for source in stage.sources() {
        part.finish(stage.data_trigger(source, 1));
    }
}
