//! Requests of sends and receives, and the calls of messages that few programs need. The others are methods of
//! [`Communicator`](crate::Communicator) and [`Scope`](crate::Scope).

mod any_source;
mod buffered_sends;
mod channel;
mod job_memory;
mod message_limit;
#[cfg(feature = "serde")]
pub(crate) mod object;
#[cfg(feature = "serde")]
mod object_request;
mod receive_queue;
pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod scope_list;
pub(crate) mod scope_request;
pub(crate) mod scope_values;
mod send_any_request;
pub(crate) mod slot;
mod strided;

pub use crate::data::RequestValues;
pub use crate::member::Peer;
pub use crate::values::{Incoming, Outgoing};
pub use any_source::{MessageStream, MessagesFromAny, RecvAnyRequest};
pub use buffered_sends::{BUFFERED_OVERHEAD, check_send_buffer, set_buffered, set_send_buffer};
pub use channel::{ChannelReady, ChannelReceiver, ChannelSender, channel_from, channel_over, channel_to};
pub use job_memory::{recv_into, send_from};
pub use message_limit::{MessageLimit, MessageLimitAddress, MessagePermits};
#[cfg(feature = "serde")]
pub use object::Object;
#[cfg(feature = "serde")]
pub use object_request::{ObjectRecvRequest, ObjectSendRequest};
pub use receive_queue::{QueueReceived, ReceiveQueue, ReceiveQueueAddress, ReceiveQueueSender};
pub use request::{RecvRequest, SendRequest};
pub use scope_request::ScopeRequest;
pub use scope_values::ScopeValues;
pub use send_any_request::SendAnyRequest;
pub use slot::{close, slots};
pub use strided::{Strided, StridedMut};
