//! Names the collective call that a rank is in, for errors, traces and `tasuki ps`.
//!
//! One word of the communicator holds the call that is under way. A wait inside a step of the call knows only the
//! communicator, and reads the word to name the call that the program made. This costs the call nothing.

use crate::call_kind::CallKind;
use crate::failure::job_call::JobCall;
use crate::one_call::OneCall;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Rank;
use tasuki_message::CallNames;
use tasuki_schedule::collective_names::COLLECTIVES;
use tasuki_schedule::shape::CollectiveKind;

/// A call in a word: 34 bits for its bytes or values, 24 bits for the root, five bits for the kind of call, and one bit
/// that is set if it is nonblocking. It is never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallWord(u64);

/// Calls that are not in [`CollectiveKind`]. Their word holds a number of values instead of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VectorCall {
    GatherV = 13,
    ScatterV,
    AllgatherV,
    AlltoallV,
    NeighborAlltoall,
}

const AMOUNT_BITS: u32 = 34;
const AMOUNT_MAX: u64 = (1 << AMOUNT_BITS) - 1;
const ROOT_BITS: u32 = 24;
const CODE_AT: u32 = AMOUNT_BITS + ROOT_BITS;
const CODE_NAMED: u64 = 30;
const NONBLOCKING: u64 = 1 << 63;

const _: () = assert!(Rank::MAX.0 < 1 << ROOT_BITS);

/// The names of calls whose word holds nothing but the name: calls that are not operations, and calls that a member has
/// not begun because an argument was wrong.
#[rustfmt::skip]
const NAMED_CALLS: [&str; 51] = [
    "barrier", "ibarrier", "barrier_init", "bcast", "ibcast", "bcast_init", "reduce", "ireduce", "reduce_init",
    "allreduce", "iallreduce", "allreduce_init", "gather", "igather", "gather_init", "scatter", "iscatter",
    "scatter_init", "allgather", "iallgather", "allgather_init", "alltoall", "ialltoall", "alltoall_init",
    "reduce_scatter", "ireduce_scatter", "reduce_scatter_init", "scan", "iscan", "scan_init", "exscan", "iexscan",
    "exscan_init", "neighbours", "ineighbours", "neighbours_init", "neighbor_alltoall", "ineighbor_alltoall",
    "neighbor_alltoall_init", "plan", "split", "dup", "recreate", "quiesce", "Cartesian::new", "Neighbourhood::new",
    "fuzzy_barrier", "alloc_on", "job.barrier", "job.alloc", "plan.start",
];

/// The names of these calls.
pub(crate) const VECTOR_CALLS: [(VectorCall, &str); 5] = [
    (VectorCall::GatherV, "gather"),
    (VectorCall::ScatterV, "scatter"),
    (VectorCall::AllgatherV, "allgather"),
    (VectorCall::AlltoallV, "alltoall"),
    (VectorCall::NeighborAlltoall, "neighbor_alltoall"),
];

impl CallWord {
    /// A start of a plan.
    pub(crate) const START: CallWord = CallWord(CODE_NAMED << CODE_AT | NAMED_CALLS.len() as u64);

    #[inline]
    fn new(code: u64, root: usize, amount: usize) -> CallWord {
        let root = root.min(Rank::MAX.0) as u64; // a root that does not exist is refused only after the call has its name
        CallWord(code << CODE_AT | root << AMOUNT_BITS | (amount as u64).min(AMOUNT_MAX))
    }

    #[inline]
    pub(crate) fn of(kind: &CallKind) -> CallWord {
        CallWord::new(kind.collective as u64 + 1, kind.root, kind.bytes)
    }

    pub(crate) fn of_vector_call(what: VectorCall, values: usize, root: Rank) -> CallWord {
        CallWord::new(what as u64, root.index(), values)
    }

    /// A call of which the word holds only the name, for example one that prepares a plan. While it is under way,
    /// [`CurrentCall`] holds its text.
    pub(crate) fn named(name: &str) -> CallWord {
        let number = NAMED_CALLS.iter().position(|known| *known == name).map_or(0, |at| at + 1);
        CallWord::new(CODE_NAMED, 0, number)
    }

    /// Returns the number of the call's name, if the word holds only that. 0 is a call without a name.
    pub(crate) fn number_of_name(self) -> Option<u64> {
        (self.code() == CODE_NAMED).then_some(self.0 & AMOUNT_MAX)
    }

    /// A collective call of the job, in the record of its failure.
    pub(crate) fn of_job_call(call: JobCall) -> CallWord {
        CallWord::named(call.name())
    }

    /// Returns the call of the job that the word stands for.
    pub(crate) fn job_call(self) -> Option<JobCall> {
        let is = |call: &JobCall| self == CallWord::of_job_call(*call);
        [JobCall::Barrier, JobCall::Alloc].into_iter().find(is)
    }

    pub(crate) fn from_bits(bits: u64) -> CallWord {
        CallWord(bits)
    }

    /// The nonblocking form of the call.
    #[inline]
    pub(crate) fn nonblocking(self) -> CallWord {
        CallWord(self.0 | NONBLOCKING)
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    fn code(self) -> u64 {
        self.0 >> CODE_AT & 0x1f
    }

    /// Returns the text of the call on the communicator of that name; None if the word does not name it.
    pub(crate) fn text(self, communicator: &str) -> Option<String> {
        if let Some(call) = self.job_call() {
            return Some(format!("{}()", call.name()));
        }
        if let Some(number) = self.number_of_name() {
            return name_of_number(number).map(|name| format!("{name}({communicator})"));
        }
        let (root, amount) = (self.0 >> AMOUNT_BITS & ((1 << ROOT_BITS) - 1), self.0 & AMOUNT_MAX);
        let (code, root_is) = (self.code(), number_of(communicator));
        let i = if self.0 & NONBLOCKING == 0 { "" } else { "i" };
        if let Some((what, name)) = VECTOR_CALLS.iter().find(|(what, _)| *what as u64 == code) {
            let rooted = match what {
                VectorCall::GatherV => format!(" to {root_is} {root}"),
                VectorCall::ScatterV => format!(" from {root_is} {root}"),
                _ => String::new(),
            };
            let how = if *what == VectorCall::NeighborAlltoall { "" } else { "uneven, " };
            let s = if amount == 1 { "" } else { "s" };
            return Some(format!("{i}{name}({how}{amount} value{s}{rooted}, {communicator})"));
        }
        let (name, collective) =
            *COLLECTIVES.iter().find(|(_, collective)| *collective as u64 + 1 == code)?;
        let what = described(collective, root as usize, amount, communicator);
        Some(call_on(&format!("{i}{name}({what})"), communicator))
    }
}

/// Returns the name of the call of that number among those that have only a name.
pub(crate) fn name_of_number(number: u64) -> Option<&'static str> {
    NAMED_CALLS.get((number as usize).checked_sub(1)?).copied()
}

/// The name of the communicator of all ranks.
pub(crate) const WORLD: &str = "world";

/// Returns what the numbers of a communicator's members are: in the world, ranks.
fn number_of(communicator: &str) -> &'static str {
    if communicator == WORLD { "rank" } else { "member" }
}

/// Returns what an operation moves on a communicator: `8 KiB from rank 0`. The largest amounts are given as `16 GiB or
/// more`.
pub(crate) fn described(collective: CollectiveKind, root: usize, bytes: u64, communicator: &str) -> String {
    let root_is = number_of(communicator);
    let size = if bytes >= AMOUNT_MAX { "16 GiB or more".into() } else { size(bytes) };
    match collective {
        CollectiveKind::Barrier => String::new(),
        CollectiveKind::Bcast => format!("{size} from {root_is} {root}"),
        CollectiveKind::Reduce | CollectiveKind::Gather => format!("{size} to {root_is} {root}"),
        CollectiveKind::Scatter => format!("{size} for each from {root_is} {root}"),
        CollectiveKind::Alltoall | CollectiveKind::ReduceScatter | CollectiveKind::Neighbours => {
            format!("{size} for each")
        }
        _ => size,
    }
}

/// Returns a size as text: `8 bytes`, `8 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.is_multiple_of(1 << bits));
    unit.map_or_else(|| format!("{bytes} bytes"), |(bits, unit)| format!("{} {unit}", bytes >> bits))
}

/// Adds the communicator to the text of a call: `allreduce(8 bytes)` becomes `allreduce(8 bytes, world)`.
pub(crate) fn call_on(call: &str, communicator: &str) -> String {
    match call.strip_suffix(')') {
        Some(call) if call.ends_with('(') => format!("{call}{communicator})"),
        Some(call) => format!("{call}, {communicator})"),
        None => format!("{call}({communicator})"),
    }
}

/// The name of a communicator, and the collective call that its rank is in.
#[derive(Debug)]
pub(crate) struct CurrentCall {
    communicator_name: Arc<str>,
    /// The call under way, as a [`CallWord`].
    pub(crate) one_call: OneCall,
    /// The text of the call under way, if its word holds only a name.
    text: Mutex<String>,
}

impl CurrentCall {
    pub(crate) fn new(communicator_name: Arc<str>) -> Arc<CurrentCall> {
        Arc::new(CurrentCall { communicator_name, one_call: OneCall::none(), text: Mutex::default() })
    }

    pub(crate) fn communicator_name(&self) -> &Arc<str> {
        &self.communicator_name
    }

    /// Records the text of a call that begins and whose word holds only a name.
    pub(crate) fn note_text(&self, call: String) {
        *self.lock_text() = call;
    }

    pub(crate) fn call(&self, word: CallWord) -> String {
        let known = if word.number_of_name().is_some() { None } else { word.text(&self.communicator_name) };
        known.unwrap_or_else(|| self.lock_text().clone())
    }

    fn lock_text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallNames for CurrentCall {
    fn call_on(&self, _slot: u32) -> Option<String> {
        let word = CallWord(self.one_call.word());
        (1..=CODE_NAMED).contains(&word.code()).then(|| self.call(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(collective: CollectiveKind, root: usize, bytes: usize) -> String {
        let current_call = CurrentCall::new("world".into());
        let word = CallWord::of(&CallKind::of::<u8>(collective, Rank(root), bytes));
        current_call.one_call.begin(word.bits());
        current_call.call_on(3).expect("a call is under way")
    }

    #[test]
    fn calls_are_named_as_the_program_made_them() {
        assert_eq!(named(CollectiveKind::Barrier, 0, 0), "barrier(world)");
        assert_eq!(named(CollectiveKind::Allreduce, 0, 8), "allreduce(8 bytes, world)");
        assert_eq!(named(CollectiveKind::Bcast, 7, 8192), "bcast(8 KiB from rank 7, world)");
        assert_eq!(
            named(CollectiveKind::Reduce, Rank::MAX.0, 3 << 20),
            format!("reduce(3 MiB to rank {}, world)", Rank::MAX)
        );
        let in_part = CallWord::new(CollectiveKind::Bcast as u64 + 1, 2, 8).text("part 1 of world");
        assert_eq!(in_part.as_deref(), Some("bcast(8 bytes from member 2, part 1 of world)"));
        assert_eq!(
            named(CollectiveKind::Scatter, 0, 5 << 40),
            "scatter(16 GiB or more for each from rank 0, world)"
        );
        for (name, collective) in COLLECTIVES {
            assert!(named(collective, 1, 24).starts_with(&format!("{name}(")), "{name}");
        }
    }

    #[test]
    fn other_calls_are_named_too() {
        let current_call = CurrentCall::new("split(colour 1) of world".into());
        assert_eq!(current_call.call_on(0), None);
        let word = CallWord::of_vector_call(VectorCall::GatherV, 12, Rank(3));
        assert_eq!(
            current_call.call(word),
            "gather(uneven, 12 values to member 3, split(colour 1) of world)"
        );
        current_call.note_text("plan(ring)".into());
        assert_eq!(current_call.call(CallWord::named("plan")), "plan(ring)");
    }

    /// Other members know only the name.
    #[test]
    fn other_members_know_the_name() {
        assert_eq!(CallWord::named("").text("world"), None);
        assert_eq!(CallWord::START.text("world").as_deref(), Some("plan.start(world)"));
        let word = CallWord::of(&CallKind::of::<u8>(CollectiveKind::Exscan, Rank(0), 8)).nonblocking();
        assert_eq!(word.text("world").as_deref(), Some("iexscan(8 bytes, world)"));
        let forms = |name: &str| [name.to_string(), format!("i{name}"), format!("{name}_init")];
        let of_vectors = VECTOR_CALLS.iter().flat_map(|(_, name)| forms(name));
        let all = COLLECTIVES.iter().flat_map(|(name, _)| forms(name)).chain(of_vectors);
        for name in all.chain(["split", "dup", "plan"].map(String::from)) {
            assert_eq!(CallWord::named(&name).text("world"), Some(format!("{name}(world)")));
        }
    }
}
