//! Names the collective call that a rank is in, for errors, traces and `tasuki ps`.
//!
//! One word of the communicator holds the call that is under way. A wait inside a step of the call knows only the
//! communicator, and reads the word to name the call that the program made. This costs the call nothing.

use crate::call_kind::CallKind;
use crate::call_name::{CallName, NAMED};
use crate::one_call::OneCall;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Rank;
use tasuki_message::CallNames;
use tasuki_schedule::shape::CollectiveKind;

/// A call in a word: 34 bits for its bytes or values, 24 bits for the root, five bits for the kind of call, and one bit
/// that is set if it is nonblocking. It is never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallWord(u64);

const AMOUNT_BITS: u32 = 34;
const AMOUNT_MAX: u64 = (1 << AMOUNT_BITS) - 1;
const ROOT_BITS: u32 = 24;
const CODE_AT: u32 = AMOUNT_BITS + ROOT_BITS;
const NONBLOCKING: u64 = 1 << 63;

const _: () = assert!(Rank::MAX.0 < 1 << ROOT_BITS);

impl CallWord {
    /// A start of a plan.
    pub(crate) const START: CallWord = CallWord::of_name(CallName::START);

    #[inline]
    fn new(name: CallName, root: usize, amount: usize) -> CallWord {
        let root = root.min(Rank::MAX.0) as u64; // a root that does not exist is refused only after the call has its name
        CallWord(name.code() << CODE_AT | root << AMOUNT_BITS | (amount as u64).min(AMOUNT_MAX))
    }

    #[inline]
    pub(crate) fn of(kind: &CallKind) -> CallWord {
        CallWord::new(CallName::Collective(kind.collective), kind.root, kind.bytes)
    }

    /// The word of such a call holds a number of values instead of bytes.
    pub(crate) fn of_uneven(kind: CollectiveKind, values: usize, root: Rank) -> CallWord {
        CallWord::new(CallName::Uneven(kind), root.index(), values)
    }

    /// A call of which the word holds only the name, for example one that prepares a plan. While it is under way,
    /// [`CurrentCall`] holds its text.
    pub(crate) const fn of_name(name: CallName) -> CallWord {
        let number = if let CallName::Named(number) = name { number } else { 0 };
        CallWord(name.code() << CODE_AT | number)
    }

    /// Returns true if the word holds only the name of the call.
    #[inline]
    pub(crate) fn is_named(self) -> bool {
        self.code() == NAMED
    }

    /// Returns which call it is; none if no call is under way.
    pub(crate) fn name(self) -> Option<CallName> {
        CallName::of_code(self.code(), self.0 & AMOUNT_MAX)
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
        let (call, root_is) = (self.name()?, number_of(communicator));
        let (root, amount) = (self.0 >> AMOUNT_BITS & ((1 << ROOT_BITS) - 1), self.0 & AMOUNT_MAX);
        let (i, name) = (if self.0 & NONBLOCKING == 0 { "" } else { "i" }, call.text()?);
        let what = match call {
            CallName::Named(_) if call.is_of_job() => return Some(format!("{name}()")),
            CallName::Named(_) => String::new(),
            CallName::Uneven(kind) => {
                let rooted = match kind {
                    CollectiveKind::Gather => format!(" to {root_is} {root}"),
                    CollectiveKind::Scatter => format!(" from {root_is} {root}"),
                    _ => String::new(),
                };
                let how = if kind == CollectiveKind::Neighbours { "" } else { "uneven, " };
                let s = if amount == 1 { "" } else { "s" };
                format!("{how}{amount} value{s}{rooted}")
            }
            CallName::Collective(collective) => described(collective, root as usize, amount, communicator),
        };
        Some(call_on(&format!("{i}{name}({what})"), communicator))
    }
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
        let known = if word.is_named() { None } else { word.text(&self.communicator_name) };
        known.unwrap_or_else(|| self.lock_text().clone())
    }

    fn lock_text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallNames for CurrentCall {
    fn call_on(&self, _slot: u32) -> Option<String> {
        let word = CallWord(self.one_call.word());
        word.name().map(|_| self.call(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::collective_names::COLLECTIVES;

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
        let in_part =
            CallWord::new(CallName::Collective(CollectiveKind::Bcast), 2, 8).text("part 1 of world");
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
        let word = CallWord::of_uneven(CollectiveKind::Gather, 12, Rank(3));
        assert_eq!(
            current_call.call(word),
            "gather(uneven, 12 values to member 3, split(colour 1) of world)"
        );
        current_call.note_text("plan(ring)".into());
        assert_eq!(current_call.call(CallWord::of_name(CallName::named("plan"))), "plan(ring)");
    }

    /// Other members know only the name.
    #[test]
    fn other_members_know_the_name() {
        assert_eq!(CallWord::of_name(CallName::named("")).text("world"), None);
        assert_eq!(CallWord::START.text("world").as_deref(), Some("plan.start(world)"));
        let word = CallWord::of(&CallKind::of::<u8>(CollectiveKind::Exscan, Rank(0), 8)).nonblocking();
        assert_eq!(word.text("world").as_deref(), Some("iexscan(8 bytes, world)"));
        let word = |name| CallWord::of_name(CallName::named(name)).text("world");
        assert_eq!(word("bcast_init").as_deref(), Some("bcast_init(world)"));
        assert_eq!(word("job.alloc").as_deref(), Some("job.alloc()"), "it is not one of the communicator");
    }
}
