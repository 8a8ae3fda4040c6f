//! The order of buffered messages.
//!
//! Messages of different slots leave the send buffer in any order, as their receives are posted. But a receive of any
//! slot takes the oldest of its sender, as it would without a buffer: there the second send begins when the first one
//! is over.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki_core::base::sync::{AtomicU64, Ordering};

/// A pair in one context: the address of its first bank, which buffered messages keep alive.
pub(crate) type Pair = usize;

/// The buffered messages of a rank, by pair.
#[derive(Debug, Default)]
pub(crate) struct BufferedOrder {
    /// How many messages were ever buffered. A message that is being buffered by another thread has no order yet.
    given: AtomicU64,
    waiting: Mutex<HashMap<Pair, BTreeSet<u64>>>,
}

impl BufferedOrder {
    /// Puts a message behind all others of its pair. Returns its number.
    pub(crate) fn enter(&self, pair: Pair) -> u64 {
        let mut waiting = self.waiting();
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        waiting.entry(pair).or_default().insert(number);
        number
    }

    /// Takes out a message that has ended.
    pub(crate) fn leave(&self, pair: Pair, number: u64) {
        let mut waiting = self.waiting();
        let of_pair = waiting.get_mut(&pair);
        if of_pair.is_some_and(|of_pair| of_pair.remove(&number) && of_pair.is_empty()) {
            waiting.remove(&pair);
        }
    }

    /// Returns true if no other buffered message of the pair has to go before this one. `None`: the message is not
    /// buffered, and goes behind all that are: their sends have returned.
    pub(crate) fn is_first(&self, pair: Pair, number: Option<u64>) -> bool {
        if self.given.load(Ordering::Relaxed) == 0 {
            return true; // most ranks never buffer
        }
        self.waiting().get(&pair).and_then(BTreeSet::first).copied() == number
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Pair, BTreeSet<u64>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_waits_is_first() {
        let order = BufferedOrder::default();
        assert!(order.is_first(7, None));
        let [one, two, other, three] = [7, 7, 8, 7].map(|pair| order.enter(pair));
        assert!(order.is_first(7, Some(one)) && !order.is_first(7, Some(two)) && !order.is_first(7, None));
        assert!(order.is_first(8, Some(other)) && order.is_first(9, None));
        order.leave(7, two);
        order.leave(7, one);
        assert!(order.is_first(7, Some(three)));
        order.leave(7, three);
        order.leave(8, other);
        assert!(order.is_first(7, None) && order.waiting().is_empty());
    }
}
