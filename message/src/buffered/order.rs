//! The order of the buffered messages of a pair.
//!
//! Messages of different slots leave the send buffer in any order, as their receives are posted. But a receive of any
//! slot takes the oldest, as it would without a buffer: there the second send begins when the first one is over.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The buffered messages of a pair in one context. The pair's first bank owns it.
#[derive(Debug, Default)]
pub(crate) struct BufferedOrder {
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    /// How many messages were ever buffered.
    given: u64,
    /// Those that have not ended.
    waiting: BTreeSet<u64>,
}

impl BufferedOrder {
    /// Puts a message behind all others. Returns its number.
    pub(crate) fn enter(&self) -> u64 {
        let mut numbers = self.numbers();
        numbers.given += 1;
        let number = numbers.given;
        numbers.waiting.insert(number);
        number
    }

    /// Takes out a message that has ended.
    pub(crate) fn leave(&self, number: u64) {
        self.numbers().waiting.remove(&number);
    }

    /// Returns true if no other buffered message has to go before this one. `None`: the message is not buffered, and
    /// all that are were sent before it.
    pub(crate) fn is_first(&self, number: Option<u64>) -> bool {
        self.numbers().waiting.first().copied() == number
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_waits_is_first() {
        let order = BufferedOrder::default();
        assert!(order.is_first(None));
        let [one, two, three] = [order.enter(), order.enter(), order.enter()];
        assert!(order.is_first(Some(one)) && !order.is_first(Some(two)) && !order.is_first(None));
        order.leave(two);
        order.leave(one);
        assert!(order.is_first(Some(three)));
        order.leave(three);
        assert!(order.is_first(None));
    }
}
