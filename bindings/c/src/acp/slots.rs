//! The slots of the messages by which ranks set up what they share.

use tasuki::Slot;

/// The ends of channels find each other in the slots 0 to this one. So many channels of a pair, in one direction, may be
/// created before their first messages.
pub(super) const CHANNELS: usize = 64;
/// The ends of segmented buffers: if the source is the lower rank, and if it is the higher one.
pub(super) const CONNECTIONS: [Slot; 2] = [Slot(CHANNELS), Slot(CHANNELS + 1)];
/// Members of a group to the first one, which creates a collective with them; and its answers.
pub(super) const TO_FIRST: Slot = Slot(CHANNELS + 2);
pub(super) const FROM_FIRST: Slot = Slot(CHANNELS + 3);
/// All slots.
pub(super) const SLOTS: usize = CHANNELS + 4;
