//! The slots of a share, as the receiver knows them. They check what the protocol promises.

use anyhow::bail;

/// What is in a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Free,
    Coming,
    Filled,
    /// Taken, but a message before it is not.
    Taken,
}

/// The slots of a share; a power of two.
pub(super) struct ShareSlots {
    states: Vec<SlotState>,
    senders: Vec<u32>,
    /// The length of the prefix of tickets that were taken.
    taken: u32,
    /// Those of them that senders cannot know of.
    unpublished: u32,
}

impl ShareSlots {
    pub(super) fn new(slots: u32) -> ShareSlots {
        let count = slots as usize;
        ShareSlots { states: vec![SlotState::Free; count], senders: vec![0; count], taken: 0, unpublished: 0 }
    }

    pub(super) fn count(&self) -> u32 {
        self.states.len() as u32
    }

    /// The sender of the message in a slot.
    pub(super) fn sender(&self, slot: u32) -> u32 {
        self.senders[slot as usize]
    }

    /// A sender begins to write the slot of its ticket, which is returned.
    pub(super) fn begin(&mut self, ticket: u32, sender: u32) -> anyhow::Result<u32> {
        let slot = (ticket & (self.count() - 1)) as usize;
        if ticket - self.taken >= self.count() {
            bail!(
                "ticket {ticket} is used when {} are taken: more than {} are out",
                self.taken,
                self.count()
            );
        }
        if self.states[slot] != SlotState::Free {
            bail!("slot {slot} is overwritten by ticket {ticket} before it is consumed");
        }
        (self.states[slot], self.senders[slot]) = (SlotState::Coming, sender);
        Ok(slot as u32)
    }

    /// The message of a slot has arrived.
    pub(super) fn fill(&mut self, slot: u32) -> anyhow::Result<()> {
        let state = &mut self.states[slot as usize];
        if *state != SlotState::Coming {
            bail!("a message arrives in slot {slot}, where none is expected");
        }
        *state = SlotState::Filled;
        Ok(())
    }

    /// The receiver takes the message of a slot. Returns its sender.
    pub(super) fn take(&mut self, slot: u32) -> anyhow::Result<u32> {
        if self.states[slot as usize] != SlotState::Filled {
            bail!("slot {slot} is taken, but holds no message");
        }
        self.states[slot as usize] = SlotState::Taken;
        let mask = self.count() - 1;
        while self.states[(self.taken & mask) as usize] == SlotState::Taken {
            self.states[(self.taken & mask) as usize] = SlotState::Free;
            self.taken += 1;
            self.unpublished += 1;
        }
        Ok(self.senders[slot as usize])
    }

    /// How many consumed tickets the receiver publishes now: all, or none if they are fewer than an eighth of the slots.
    pub(super) fn publish(&mut self, all: bool) -> Option<u32> {
        let least = if all { 1 } else { (self.count() / 8).max(1) };
        (self.unpublished >= least).then(|| std::mem::take(&mut self.unpublished))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumed_is_a_prefix() {
        let mut slots = ShareSlots::new(4);
        for ticket in 0..4 {
            let slot = slots.begin(ticket, 10 + ticket).expect("free");
            slots.fill(slot).expect("expected");
        }
        assert_eq!(slots.take(1).expect("filled"), 11);
        assert_eq!(slots.publish(true), None, "ticket 0 is not taken");
        slots.take(0).expect("filled");
        assert_eq!(slots.publish(true), Some(2));
        assert_eq!(slots.begin(5, 1).expect("free"), 1);
    }

    #[test]
    fn breaches_are_found() {
        let mut slots = ShareSlots::new(2);
        slots.begin(0, 1).expect("free");
        assert!(slots.begin(2, 1).expect_err("too many").to_string().contains("more than 2 are out"));
        assert!(slots.begin(0, 1).expect_err("used").to_string().contains("overwritten"));
        assert!(slots.take(0).expect_err("empty").to_string().contains("holds no message"));
        slots.fill(0).expect("expected");
        assert!(slots.fill(0).expect_err("twice").to_string().contains("none is expected"));
    }
}
