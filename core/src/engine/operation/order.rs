//! Order handles: when an operation may start, and what its completion implies.

/// An operation that this rank issued. Numbers grow in the order of issue; null, finished and never-issued handles
/// count as complete.
///
/// Source: ACP basic layer (order, completion); completion is by identity, never by counting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Handle(pub(crate) u64);

impl Handle {
    /// The handle of nothing: complete at once.
    pub const NULL: Handle = Handle(0);

    /// The handle of that number, as [`Handle::number`] gave it. One that was never issued counts as complete.
    pub fn from_number(number: u64) -> Handle {
        Handle(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Condition to *start* an operation. A predecessor that failed means: do not start, report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum After {
    /// At once.
    #[default]
    Nothing,
    /// After that operation alone.
    Exact(Handle),
    /// After that operation and everything this rank issued before it (ACP's handle order).
    Prefix(Handle),
    /// After everything this rank issued so far.
    All,
    /// Like `All`; may start earlier where it stays behind its predecessors on the same path. Today it never does:
    /// no fabric promises such order.
    Cont,
}

/// An `After` fixed at issue: which numbers must be finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Order {
    Free,
    Exact(u64),
    /// All up to that one, which was named.
    Prefix(u64),
    /// All up to that one, which merely was the last.
    All(u64),
}

impl After {
    /// What it means for an operation issued when `issued` numbers were out.
    pub(in crate::engine) fn fix(self, issued: u64) -> Order {
        match self {
            After::Nothing => Order::Free,
            After::Exact(Handle(0)) | After::Prefix(Handle(0)) => Order::Free,
            // Never issued counts as complete, also if the number becomes somebody's later.
            After::Exact(Handle(number)) | After::Prefix(Handle(number)) if number > issued => Order::Free,
            After::Exact(Handle(number)) => Order::Exact(number),
            After::Prefix(Handle(number)) => Order::Prefix(number),
            After::All | After::Cont => Order::All(issued),
        }
    }
}
