//! Everybody lays out what it gives where all can reach it, and takes what it gets from where others have laid it.
//!
//! Nobody reads or writes the data of another rank, so these may be the program's own memory, out of everybody's reach;
//! and each signal has one rank that raises it. That suits ranks which share a node: two copies for a byte, each by the
//! rank that has it at hand, and as few turns on a processor as can be.
//!
//! What is laid out lies on places that starts take in turn. Where everybody hears of everybody, two of them suffice:
//! who comes to lay something on the first one again has been told by all of the start between, and they have taken
//! what was there. Else readers say when a place is free. Two ranks swap places with each start: where each takes from
//! the other, or the root changes, what one lays out lies where it has just taken something, in its caches already.
//!
//! Of two ranks with a root each tells the other as often, whichever is the root: the taker says that it has taken by
//! the signal by which it is told. So calls with either root can follow each other on the same places: who comes to
//! lay something has taken what the other had laid there last, or was answered two starts ago.
//!
//! Values are combined in the order of ranks, from the first one on, by whoever combines them: the same to the bit.

use crate::algorithm::layout::swap_buffers::SwapBuffers;
use crate::algorithm::{Algorithm, CollectiveKind, Make, signal_all};
use crate::shape::{DATA, RESULT, Shape};
use crate::{BufferId, Location, RankPart, SignalId, Step, StepTrigger, started};

/// The root lays out, all others take.
pub(crate) const BCAST: Algorithm = algorithm("copy in copy out", CollectiveKind::Bcast, bcast);
/// The root lays a block out for each.
pub(crate) const SCATTER: Algorithm = algorithm("copy in copy out", CollectiveKind::Scatter, scatter);
/// Each lays its block out for the root.
pub(crate) const GATHER: Algorithm = algorithm("copy in copy out", CollectiveKind::Gather, gather);
/// Each lays its values out for the root, which combines them.
pub(crate) const REDUCE: Algorithm = algorithm("copy in copy out", CollectiveKind::Reduce, reduce);
/// Each lays its values out, and combines all of them for itself.
pub(crate) const ALLREDUCE: Algorithm = algorithm("copy in copy out", CollectiveKind::Allreduce, allreduce);
/// Each lays its values out, combines its share of all of them, and lays that out.
pub(crate) const SHARED: Algorithm = algorithm("reduce scatter allgather", CollectiveKind::Allreduce, shared);
/// Each lays its values out, and combines its block of all of them.
pub(crate) const REDUCE_SCATTER: Algorithm =
    algorithm("copy in copy out", CollectiveKind::ReduceScatter, reduce_scatter);
/// Each lays its block out, and takes all others.
pub(crate) const ALLGATHER: Algorithm = algorithm("copy in copy out", CollectiveKind::Allgather, allgather);
/// Each lays its blocks out, and takes its own of all others.
pub(crate) const ALLTOALL: Algorithm = algorithm("copy in copy out", CollectiveKind::Alltoall, alltoall);
/// Each lays its values out, and combines those of the ranks before it with its own.
pub(crate) const SCAN: Algorithm = algorithm("copy in copy out", CollectiveKind::Scan, scan);
/// Each lays its values out, and combines those of the ranks before it.
pub(crate) const EXSCAN: Algorithm = algorithm("copy in copy out", CollectiveKind::Exscan, exscan);
/// Everybody tells everybody.
pub(crate) const BARRIER: Algorithm = algorithm("all to all", CollectiveKind::Barrier, barrier);

const fn algorithm(
    name: &'static str,
    operation: CollectiveKind,
    make: fn(&Shape, u64, &mut RankPart),
) -> Algorithm {
    Algorithm { name, operation, fits: |_| true, make: Make::Cut(make) }
}

/// Who takes from whom.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// All others from the root.
    From(usize),
    /// The root from all others.
    To(usize),
    /// Each from those before it.
    Onward,
    /// Each from all others.
    Around,
}

impl Flow {
    fn reads(self, reader: usize, source: usize) -> bool {
        reader != source
            && match self {
                Flow::From(root) => source == root,
                Flow::To(root) => reader == root,
                Flow::Onward => source < reader,
                Flow::Around => true,
            }
    }

    /// Whether it is from or to a root.
    fn is_rooted(self) -> bool {
        matches!(self, Flow::From(_) | Flow::To(_))
    }
}

/// What a rank lays out, and what it takes.
struct StageTable {
    flow: Flow,
    ranks: usize,
    me: usize,
    stage: BufferId,
    /// CombineWith often this rank has laid something, and taken something.
    laid: SignalId,
    taken: SignalId,
    /// By whom a rank is told: one signal each, or one where that can be but one.
    told: Vec<SignalId>,
    /// Who says that a place is free: as above; none where everybody hears of everybody.
    free: Vec<SignalId>,
    /// CombineWith much that one adds to it.
    freeing: u64,
    /// After how many starts a place is laid on again.
    turns: u32,
}

/// CombineWith much is on a table.
#[derive(Clone, Copy)]
struct Amounts {
    /// Bytes of this rank's place.
    bytes: u64,
    /// CombineWith often this rank lays something, and takes something.
    lays: u64,
    takes: u64,
    /// CombineWith often a reader is told by a source.
    tells: u64,
}

/// Two that may swap places: what either lays out is as long.
fn are_two(shape: &Shape) -> bool {
    shape.ranks == 2 && shape.is_even()
}

impl StageTable {
    fn set(flow: Flow, shape: &Shape, amounts: Amounts, part: &mut RankPart) -> StageTable {
        let (me, ranks) = (part.rank(), shape.ranks);
        let Amounts { bytes, lays, takes, tells } = amounts;
        let are_two = are_two(shape);
        let turns = if flow == Flow::Around || are_two && flow.is_rooted() { 2 } else { 4 };
        let stage = match flow {
            Flow::Around | Flow::From(_) | Flow::To(_) if are_two => part.swapped("stage", bytes, 1 - me),
            _ => part.scratch("stage", bytes, turns),
        };
        let laid = part.signal("copied_in", lays);
        let taken = part.signal("taken", takes);
        if are_two && flow.is_rooted() {
            let told = part.signal("available", tells);
            return StageTable {
                flow,
                ranks,
                me,
                stage,
                laid,
                taken,
                told: vec![told],
                free: vec![told],
                freeing: tells,
                turns,
            };
        }
        let all = |is_one: bool| if is_one { 0..1 } else { 0..ranks };
        let sources = all(matches!(flow, Flow::From(_)));
        let told = sources.map(|source| {
            let source = if let Flow::From(root) = flow { root } else { source };
            part.signal("available", if flow.reads(me, source) { tells } else { 0 })
        });
        let told = told.collect();
        let readers = if flow == Flow::Around { 0..0 } else { all(matches!(flow, Flow::To(_))) };
        let free = readers.map(|reader| {
            let reader = if let Flow::To(root) = flow { root } else { reader };
            part.signal("free", u64::from(flow.reads(reader, me)))
        });
        let free = free.collect();
        StageTable { flow, ranks, me, stage, laid, taken, told, free, freeing: 1, turns }
    }

    fn told(&self, source: usize) -> SignalId {
        self.told[if self.told.len() == 1 { 0 } else { source }]
    }

    fn free(&self, reader: usize) -> Option<SignalId> {
        self.free.get(if self.free.len() == 1 { 0 } else { reader }).copied()
    }

    /// Who takes from this rank, the next one first.
    fn readers(&self) -> impl Iterator<Item = usize> + use<> {
        let (flow, me, ranks) = (self.flow, self.me, self.ranks);
        (1..ranks).map(move |step| (me + step) % ranks).filter(move |&reader| flow.reads(reader, me))
    }

    /// From whom this rank takes, the one before it first.
    fn sources(&self) -> impl Iterator<Item = usize> + use<> {
        let (flow, me, ranks) = (self.flow, self.me, self.ranks);
        let before = (1..ranks).map(move |step| (me + ranks - step) % ranks);
        before.filter(move |&source| flow.reads(me, source))
    }

    /// Waits until this rank's place is free.
    fn clear(&self, part: &mut RankPart) {
        for reader in self.readers() {
            if let Some(free) = self.free(reader) {
                part.join(free.reaches(self.freeing).lagging(self.turns));
            }
        }
    }

    /// Lays bytes of the data out, where they begin there and here; the `number`th time, from 1 on.
    fn copy_in(&self, number: u64, (from, to, bytes): (u64, u64, u64), part: &mut RankPart) {
        self.copy_in_at(self.stage.on(self.me, to), number, (from, bytes), part);
    }

    /// The same on that place.
    fn copy_in_at(&self, place: Location, number: u64, (from, bytes): (u64, u64), part: &mut RankPart) {
        part.copy(started(), DATA.on(self.me, from), place, bytes).then(self.laid.on(self.me, 1));
        part.join(self.laid.reaches(number));
    }

    /// Tells those of it.
    fn tell(&self, readers: impl Iterator<Item = usize>, part: &mut RankPart) {
        let told = self.told(self.me);
        signal_all(part, readers.map(|reader| told.on(reader, 1)));
    }

    /// What `source` has laid out the `number`th time, from 1 on.
    fn there(&self, source: usize, number: u64) -> StepTrigger {
        if source == self.me { self.laid.reaches(number) } else { self.told(source).reaches(number) }
    }

    /// A step took something.
    fn took(&self, step: &mut Step) {
        step.then(self.taken.on(self.me, 1));
    }

    /// Takes values that the `sources` have laid out, in that order: the data from `to` on become the
    /// first one's, combined with the next. `at` is where values lie on a place; the `number`th time. This rank has
    /// laid its own out, too.
    fn combine(
        &self,
        sources: std::ops::Range<usize>,
        number: u64,
        (at, to, bytes): (u64, u64, u64),
        part: &mut RankPart,
    ) {
        let (me, first) = (self.me, sources.start);
        let has_own = sources.contains(&me);
        let before = (number - 1) * StageTable::combinations(me, sources.clone());
        for source in sources {
            let (from, to) = (self.stage.on(source, at), DATA.on(me, to));
            let there = self.there(source, number);
            match (source - first, me - first) {
                (0, 0) | (1, 1) => {} // they are there already
                (0, 1) if has_own => self.took(part.reduce(there, from, to, bytes, true)),
                (0, _) => {
                    self.took(part.copy(there, from, to, bytes));
                    part.join(self.taken.reaches(before + 1));
                }
                _ => self.took(part.reduce(there, from, to, bytes, false)),
            }
        }
    }

    /// CombineWith many steps that is.
    fn combinations(me: usize, sources: std::ops::Range<usize>) -> u64 {
        let is_there = sources.contains(&me) && me - sources.start < 2;
        sources.len() as u64 - u64::from(is_there)
    }

    /// The places of those from whom this rank has taken all are free; and its start is over.
    fn finish(&self, amounts: Amounts, part: &mut RankPart) {
        if let Some(free) = self.free(self.me)
            && self.sources().next().is_some()
        {
            part.join(self.taken.reaches(amounts.takes));
            signal_all(part, self.sources().map(|source| free.on(source, self.freeing)));
        }
        part.finish(self.laid.reaches(amounts.lays));
        part.finish(self.taken.reaches(amounts.takes));
    }
}

/// Where the parts of so many bytes begin, and how many bytes each has.
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
    let laid = if is_root || are_two(shape) { bytes } else { 0 };
    let amounts = Amounts { bytes: laid, lays: own, takes: others, tells: segments };
    let table = StageTable::set(Flow::From(root), shape, amounts, part);
    if is_root {
        table.clear(part);
    }
    for (number, (begin, bytes)) in (1..).zip(cuts(shape, bytes, segments)) {
        if is_root {
            table.copy_in(number, (begin, begin, bytes), part);
            table.tell(table.readers(), part);
        } else {
            let (from, to) = (table.stage.on(root, begin), DATA.on(me, begin));
            table.took(part.copy(table.there(root, number), from, to, bytes));
        }
    }
    table.finish(amounts, part);
}

fn scatter(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    let is_root = me == root;
    part.buffer("data", shape.rooms(me)[0]);
    let (lays, takes) = if is_root { (others, 0) } else { (0, 1) };
    let bytes = if is_root || are_two(shape) { shape.bytes_of_all() } else { 0 };
    let amounts = Amounts { bytes, lays, takes, tells: 1 };
    let table = StageTable::set(Flow::From(root), shape, amounts, part);
    let at = |rank: usize| shape.offset_of(rank);
    if is_root {
        table.clear(part);
        for (number, rank) in (1..).zip(table.readers()) {
            table.copy_in(number, (at(rank), at(rank), shape.bytes_of(rank)), part);
            table.tell(std::iter::once(rank), part);
        }
    } else {
        let (from, to) = (table.stage.on(root, at(me)), DATA.on(me, 0));
        table.took(part.copy(table.there(root, 1), from, to, shape.bytes_of(me)));
    }
    table.finish(amounts, part);
}

fn gather(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, root, others) = (part.rank(), shape.root, shape.ranks as u64 - 1);
    let is_root = me == root;
    part.buffer("data", shape.rooms(me)[0]);
    let (lays, takes) = if is_root { (0, others) } else { (1, 0) };
    let bytes = if is_root && !are_two(shape) { 0 } else { shape.bytes_of(me) };
    let amounts = Amounts { bytes, lays, takes, tells: 1 };
    let table = StageTable::set(Flow::To(root), shape, amounts, part);
    if !is_root {
        table.clear(part);
        table.copy_in(1, (0, 0, bytes), part);
        table.tell(table.readers(), part);
    }
    for source in table.sources() {
        let (from, to) = (table.stage.on(source, 0), DATA.on(me, shape.offset_of(source)));
        table.took(part.copy(table.there(source, 1), from, to, shape.bytes_of(source)));
    }
    table.finish(amounts, part);
}

/// Each lays all its values out, and `combiner` says who combines those of which ranks.
fn combined(
    shape: &Shape,
    segments: u64,
    flow: Flow,
    sources: impl Fn(usize) -> std::ops::Range<usize>,
    part: &mut RankPart,
) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let sources = sources(me);
    let takes = segments * StageTable::combinations(me, sources.clone());
    // Who comes later than second among those that it combines needs its own again.
    let is_again = sources.contains(&me) && me - sources.start > 1;
    let is_laid = is_again || (0..shape.ranks).any(|reader| flow.reads(reader, me));
    let (bytes_laid, lays) = if is_laid { (bytes, segments) } else { (0, 0) };
    let bytes_laid = if flow.is_rooted() && are_two(shape) { bytes } else { bytes_laid };
    let amounts = Amounts { bytes: bytes_laid, lays, takes, tells: segments };
    let table = StageTable::set(flow, shape, amounts, part);
    table.clear(part);
    for (number, (begin, bytes)) in (1..=lays).zip(cuts(shape, bytes, segments)) {
        table.copy_in(number, (begin, begin, bytes), part);
        table.tell(table.readers(), part);
    }
    for (number, (begin, bytes)) in (1..).zip(cuts(shape, bytes, segments)) {
        table.combine(sources.clone(), number, (begin, begin, bytes), part);
    }
    table.finish(amounts, part);
}

fn reduce(shape: &Shape, segments: u64, part: &mut RankPart) {
    let (root, ranks) = (shape.root, shape.ranks);
    combined(shape, segments, Flow::To(root), |me| if me == root { 0..ranks } else { me..me + 1 }, part);
}

fn allreduce(shape: &Shape, segments: u64, part: &mut RankPart) {
    combined(shape, segments, Flow::Around, |_| 0..shape.ranks, part);
}

fn scan(shape: &Shape, segments: u64, part: &mut RankPart) {
    combined(shape, segments, Flow::Onward, |me| 0..me + 1, part);
}

fn exscan(shape: &Shape, segments: u64, part: &mut RankPart) {
    combined(shape, segments, Flow::Onward, |me| 0..me, part);
}

fn reduce_scatter(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, all) = (part.rank(), shape.bytes_of_all());
    part.buffer("data", all);
    let takes = StageTable::combinations(me, 0..shape.ranks);
    let amounts = Amounts { bytes: all, lays: 1, takes, tells: 1 };
    let table = StageTable::set(Flow::Around, shape, amounts, part);
    table.copy_in(1, (0, 0, all), part);
    table.tell(table.readers(), part);
    let at = shape.offset_of(me);
    table.combine(0..shape.ranks, 1, (at, at, shape.bytes_of(me)), part);
    table.finish(amounts, part);
}

fn shared(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, ranks, bytes) = (part.rank(), shape.ranks, shape.bytes_of(0));
    let shares: Vec<(u64, u64)> = cuts(shape, bytes, ranks as u64).collect();
    let (at, share) = shares[me];
    let longest = shares.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    // The share of either of two lies at the beginning, where they swap places.
    let place = |rank: usize| if ranks == 2 { 0 } else { shares[rank].0 };
    part.buffer("data", bytes);
    // Who has but one before it combines in place.
    let lays_own = me > 1;
    let lays = ranks as u64 - 1 + u64::from(lays_own);
    let laid = if ranks == 2 { longest } else { bytes };
    let given = Amounts { bytes: laid, lays, takes: StageTable::combinations(me, 0..ranks), tells: 1 };
    let gives = StageTable::set(Flow::Around, shape, given, part);
    let gotten = Amounts { bytes: longest, lays: 1, takes: ranks as u64 - 1, tells: 1 };
    let gets = StageTable::set(Flow::Around, shape, gotten, part);
    for (number, to) in (1..).zip(gives.readers()) {
        let (begin, bytes) = shares[to];
        gives.copy_in(number, (begin, place(to), bytes), part);
        gives.tell(std::iter::once(to), part);
    }
    if lays_own {
        gives.copy_in(given.lays, (at, place(me), share), part);
    }
    gives.combine(0..ranks, 1, (place(me), at, share), part);
    part.join(gives.taken.reaches(given.takes));
    gets.copy_in(1, (at, 0, share), part);
    gets.tell(gets.readers(), part);
    for source in gets.sources() {
        let (begin, bytes) = shares[source];
        let (from, to) = (gets.stage.on(source, 0), DATA.on(me, begin));
        gets.took(part.copy(gets.there(source, 1), from, to, bytes));
    }
    gives.finish(given, part);
    gets.finish(gotten, part);
}

fn allgather(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(part.rank()));
    part.buffer("data", shape.rooms(me)[0]);
    let amounts = Amounts { bytes, lays: 1, takes: shape.ranks as u64 - 1, tells: 1 };
    let table = StageTable::set(Flow::Around, shape, amounts, part);
    table.copy_in(1, (shape.offset_of(me), 0, bytes), part);
    table.tell(table.readers(), part);
    for source in table.sources() {
        let (from, to) = (table.stage.on(source, 0), DATA.on(me, shape.offset_of(source)));
        table.took(part.copy(table.there(source, 1), from, to, shape.bytes_of(source)));
    }
    table.finish(amounts, part);
}

fn alltoall(shape: &Shape, _segments: u64, part: &mut RankPart) {
    let (me, others) = (part.rank(), shape.ranks as u64 - 1);
    let [data, result] = shape.rooms(me);
    part.buffer("data", data);
    part.buffer("result", result);
    let pairs = SwapBuffers::set(shape, part);
    // Nothing is laid out for oneself.
    let laid = if pairs.is_some() { 0 } else { data - shape.block(me, me) };
    let amounts = Amounts { bytes: laid, lays: others, takes: others + 1, tells: 1 };
    let table = StageTable::set(Flow::Around, shape, amounts, part);
    let place = |from: usize, to: usize| match &pairs {
        Some(pairs) => pairs.place(from, to),
        None => {
            let before = shape.sent_before(from, to);
            table.stage.on(from, before - if to > from { shape.block(from, from) } else { 0 })
        }
    };
    for (number, to) in (1..).zip(table.readers()) {
        table.copy_in_at(place(me, to), number, (shape.sent_before(me, to), shape.block(me, to)), part);
        table.tell(std::iter::once(to), part);
    }
    let (from, into) = (DATA.on(me, shape.sent_before(me, me)), RESULT.on(me, shape.got_before(me, me)));
    part.copy(started(), from, into, shape.block(me, me)).then(table.taken.on(me, 1));
    for source in table.sources() {
        let (from, into) = (place(source, me), RESULT.on(me, shape.got_before(source, me)));
        table.took(part.copy(table.there(source, 1), from, into, shape.block(source, me)));
    }
    table.finish(amounts, part);
}

fn barrier(shape: &Shape, _segments: u64, part: &mut RankPart) {
    part.buffer("data", 0);
    let amounts = Amounts { bytes: 0, lays: 0, takes: 0, tells: 1 };
    let table = StageTable::set(Flow::Around, shape, amounts, part);
    table.tell(table.readers(), part);
    for source in table.sources() {
        part.finish(table.there(source, 1));
    }
}
