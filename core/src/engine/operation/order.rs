//! Order handles: when an operation may start, and what its completion implies.

/// An operation that this rank issued. Numbers grow in the order of issue. Null handles and handles of finished or
/// never-issued operations count as complete.
///
/// Source: ACP basic layer (order, completion). Completion is by identity, never by counting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Handle(pub(crate) u64);

impl Handle {
    /// The null handle: always complete.
    pub const NULL: Handle = Handle(0);

    /// Returns the handle with a number that [`Handle::number`] returned. One that was never issued counts as complete.
    pub fn from_number(number: u64) -> Handle {
        Handle(number)
    }

    /// Returns the number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Condition to *start* an operation. If a predecessor failed, the operation does not start but fails.
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
    /// Like `All`, but the operation may start earlier if it stays behind its predecessors on the same path. At present
    /// it never does, because no fabric promises such order.
    Cont,
}

/// An `After`, resolved at issue to the numbers that must be finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Order {
    Free,
    Exact(u64),
    /// All up to that one, which the caller named.
    Prefix(u64),
    /// All up to that one, which was the last one issued.
    All(u64),
}

impl After {
    /// Resolves the condition for an operation issued when `issued` numbers were in use.
    pub(in crate::engine) fn fix(self, issued: u64) -> Order {
        match self {
            After::Nothing => Order::Free,
            After::Exact(Handle(0)) | After::Prefix(Handle(0)) => Order::Free,
            // A handle that was never issued counts as complete, even if its number is issued later.
            After::Exact(Handle(number)) | After::Prefix(Handle(number)) if number > issued => Order::Free,
            After::Exact(Handle(number)) => Order::Exact(number),
            After::Prefix(Handle(number)) => Order::Prefix(number),
            After::All | After::Cont => Order::All(issued),
        }
    }
}
