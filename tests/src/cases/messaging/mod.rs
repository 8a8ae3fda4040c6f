//! Cases of messages.

pub mod any_source;
pub mod cancelled_messages;
pub mod channels;
pub mod dropped_receives;
pub mod interrupted_messages;
pub mod message_limits;
pub mod message_requests;
pub mod messages;
pub mod objects;
pub mod peers;
pub mod receive_queues;
pub mod slot_bank_reuse;
pub mod strided_messages;
pub mod typed_messages;
pub mod unknown_lengths;
