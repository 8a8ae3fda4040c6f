//! The receiving sides of engines. Each receives one transfer at a time, so transfers from many senders to one receiver
//! queue there. The sender does not wait meanwhile: the transfers have left the links.
//!
//! Transfers are requested in the order in which they begin, but arrive in a different one: a near one arrives before a
//! distant one that began earlier. So a port keeps the intervals in which it is taken, and a transfer gets the first
//! gap that is long enough.

use super::time::Time;

/// The receiving sides of all engines, in pages that are allocated when first touched.
#[derive(Debug)]
pub struct Ports {
    pages: Vec<Option<Box<[Port; PAGE]>>>,
    nodes: u64,
}

const PAGE: usize = 256;

/// The intervals in which the port is taken, in order, with gaps between them.
#[derive(Default, Debug)]
struct Port {
    taken: Vec<(Time, Time)>,
}

impl Ports {
    /// Creates the ports of `per_node` engines on each of `nodes` nodes, all free.
    pub fn new(nodes: u64, engines: u32) -> Ports {
        let pages = nodes.saturating_mul(u64::from(engines.max(1))).div_ceil(PAGE as u64);
        let mut all = Vec::new();
        all.resize_with(pages as usize, || None);
        Ports { pages: all, nodes }
    }

    /// Reserves a node's port for a duration, from the arrival of a transfer on or in the next gap. Returns the
    /// beginning. Later requests never ask for times before `now`.
    pub fn take(&mut self, node: u64, engine: u64, now: Time, comes: Time, lasts: Time) -> Time {
        let number = (engine * self.nodes + node) as usize;
        let page = &mut self.pages[number / PAGE];
        let page = page.get_or_insert_with(|| Box::new(std::array::from_fn(|_| Port::default())));
        page[number % PAGE].take(now, comes, lasts)
    }
}

impl Port {
    fn take(&mut self, now: Time, comes: Time, lasts: Time) -> Time {
        let past = self.taken.iter().take_while(|(_, until)| *until <= now).count();
        self.taken.drain(..past);
        let (mut from, mut place) = (comes, 0);
        while place < self.taken.len() && self.taken[place].0 < from + lasts {
            from = from.max(self.taken[place].1);
            place += 1;
        }
        let until = from + lasts;
        let joins_last = place > 0 && self.taken[place - 1].1 == from;
        let joins_next = self.taken.get(place).is_some_and(|next| next.0 == until);
        match (joins_last, joins_next) {
            (true, true) => {
                self.taken[place - 1].1 = self.taken[place].1;
                self.taken.remove(place);
            }
            (true, false) => self.taken[place - 1].1 = until,
            (false, true) => self.taken[place].0 = from,
            (false, false) => self.taken.insert(place, (from, until)),
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(count: u64) -> Time {
        Time::nanoseconds(count)
    }

    #[test]
    fn transfers_queue_and_use_the_gaps_between_others() {
        let mut ports = Ports::new(3, 2);
        let mut take = |comes, lasts| ports.take(1, 1, ns(0), ns(comes), ns(lasts));
        assert_eq!(take(10, 5), ns(10));
        assert_eq!(take(10, 5), ns(15));
        // A transfer from a distant node, which arrives late, leaves the time before it free.
        assert_eq!(take(100, 10), ns(100));
        assert_eq!(take(12, 80), ns(20));
        assert_eq!(take(12, 1), ns(110));
        assert_eq!(take(111, 1), ns(111));
        // Other ports are free.
        assert_eq!(ports.take(1, 0, ns(0), ns(10), ns(5)), ns(10));
        assert_eq!(ports.take(2, 1, ns(0), ns(10), ns(5)), ns(10));
    }

    #[test]
    fn past_intervals_are_removed_and_adjacent_ones_merged() {
        let mut port = Port::default();
        for number in 0..1000 {
            assert_eq!(port.take(ns(0), ns(0), ns(2)), ns(2 * number));
        }
        assert_eq!(port.taken, [(ns(0), ns(2000))]);
        assert_eq!(port.take(ns(2000), ns(3000), ns(2)), ns(3000));
        assert_eq!(port.take(ns(2000), ns(2500), ns(500)), ns(2500));
        assert_eq!(port.taken, [(ns(2500), ns(3002))]);
    }
}
