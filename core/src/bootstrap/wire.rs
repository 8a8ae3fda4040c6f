//! Messages between the rendezvous server and its clients, over a Unix stream socket.
//!
//! A message is `length: u32 | kind: u8 | body`, little-endian. Each text is preceded by its
//! length. Descriptors come with the first byte of the message that gives their number.
//!
//! ```text
//! rank                            server
//!   Hello + memory file     ->
//!                           <-      Refused | Dead | Welcome + node state + files (first part)
//!   Received                ->
//!                           <-      More + files (next part)
//!   Received                ->
//!   ... the socket stays open while the rank lives ...
//! ```
//!
//! A process whose ranks are threads sends its node state instead (`Host` + node state; the reply
//! is an empty Welcome). `tasuki ps` asks for the status (`Ask`; the reply is a Report). The first
//! request on a connection starts with a [`Greeting`], whose form never changes, so that any two
//! versions can report their versions to each other.

use super::settings::Key;
use crate::base::{Cause, Error, Rank, Result};
use crate::segment::layout;

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-w");
/// The most bytes of a request. The server does not trust its clients.
pub const REQUEST_BYTES_MAX: usize = 16 << 10;
/// The most bytes of a reply. A Report of 16 thousand ranks has nearly as many.
pub const REPLY_BYTES_MAX: usize = 16 << 20;
/// The most bytes of a text in a request.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Bytes of the length before each message.
pub const LENGTH_BYTES: usize = 4;

/// The version of a process: the beginning of the first request on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// Version of the handshake.
    pub protocol: u32,
    /// Version of the library.
    pub version: String,
    /// Path of the executable.
    pub executable: String,
}

impl Greeting {
    /// Returns the greeting of this process.
    pub fn own() -> Greeting {
        let path = std::env::current_exe().map(|path| path.display().to_string());
        let mut executable = path.unwrap_or_else(|_| "(unknown executable)".to_string());
        executable.truncate(executable.floor_char_boundary(TEXT_BYTES_MAX));
        Greeting { protocol: layout::PROTOCOL, version: env!("CARGO_PKG_VERSION").to_string(), executable }
    }
}

/// A request to the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A rank asks to join. Its memory file comes with the request.
    Hello {
        /// Its version.
        greeting: Greeting,
        /// The hash of its memory layout.
        layout: u64,
        /// The job's key.
        key: Key,
        /// The rank.
        rank: Rank,
        /// The number of ranks in its environment.
        size: u32,
        /// True if it has registered for fences by membarrier.
        has_membarrier: bool,
    },
    /// A process that runs all ranks as threads sends its node state, and perhaps memory files.
    Host {
        /// Its version.
        greeting: Greeting,
        /// The hash of its memory layout.
        layout: u64,
        /// The job's key.
        key: Key,
        /// The number of ranks that it runs.
        size: u32,
    },
    /// The last part of the membership has arrived.
    Received,
    /// A process asks for the job's status.
    Ask(Greeting),
    /// The first request of a process with another version of the protocol. The rest of it is not decoded.
    OtherVersion(Greeting),
}

/// A reply of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerReply {
    /// The request is refused, for this reason.
    Refused(String),
    /// All ranks have asked to join. The node state and the first memory files come with the reply.
    Welcome {
        /// The number of ranks of the job.
        size: u32,
        /// The number of descriptors of this part.
        descriptors: u32,
    },
    /// More memory files.
    More {
        /// The number of descriptors of this part.
        descriptors: u32,
    },
    /// A rank died before all had joined.
    Dead {
        /// The rank that died.
        rank: Rank,
        /// How it died, in words.
        how: String,
    },
    /// The job's status, for `tasuki ps`.
    Report(String),
}

const HELLO: u8 = 1;
const HOST: u8 = 2;
const RECEIVED: u8 = 3;
const ASK: u8 = 4;
const REFUSED: u8 = 16;
const WELCOME: u8 = 17;
const MORE: u8 = 18;
const DEAD: u8 = 19;
const REPORT: u8 = 20;

impl Request {
    /// Encodes the message, with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Request::Hello { greeting, layout, key, rank, size, has_membarrier } => {
                let message = MessageWriter::new(HELLO).greeting(greeting).u64(*layout).bytes(&key.0);
                message.u32(rank.to_word()).u32(*size).u32(u32::from(*has_membarrier)).done()
            }
            Request::Host { greeting, layout, key, size } => {
                MessageWriter::new(HOST).greeting(greeting).u64(*layout).bytes(&key.0).u32(*size).done()
            }
            Request::Received => MessageWriter::new(RECEIVED).done(),
            Request::Ask(greeting) | Request::OtherVersion(greeting) => {
                MessageWriter::new(ASK).greeting(greeting).done()
            }
        }
    }

    /// Decodes a message, without its length. A malformed message is an error, never a panic.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let mut from = MessageReader(message);
        let kind = from.u8()?;
        if kind == RECEIVED {
            return from.end(Request::Received);
        }
        let greeting = from.greeting()?;
        if greeting.protocol != layout::PROTOCOL {
            return Ok(Request::OtherVersion(greeting));
        }
        let request = match kind {
            HELLO => Request::Hello {
                greeting,
                layout: from.u64()?,
                key: from.key()?,
                rank: Rank::from_word(from.u32()?),
                size: from.u32()?,
                has_membarrier: from.u32()? != 0,
            },
            HOST => Request::Host { greeting, layout: from.u64()?, key: from.key()?, size: from.u32()? },
            ASK => Request::Ask(greeting),
            _ => return Err(malformed("its kind is unknown")),
        };
        from.end(request)
    }
}

impl ServerReply {
    /// Encodes the message, with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            ServerReply::Refused(why) => MessageWriter::new(REFUSED).text(why).done(),
            ServerReply::Welcome { size, descriptors } => {
                MessageWriter::new(WELCOME).u32(*size).u32(*descriptors).done()
            }
            ServerReply::More { descriptors } => MessageWriter::new(MORE).u32(*descriptors).done(),
            ServerReply::Dead { rank, how } => MessageWriter::new(DEAD).u32(rank.to_word()).text(how).done(),
            ServerReply::Report(text) => MessageWriter::new(REPORT).text(text).done(),
        }
    }

    /// Decodes a message, without its length. A malformed message is an error, never a panic.
    pub fn decode(message: &[u8]) -> Result<ServerReply> {
        let mut from = MessageReader(message);
        let reply = match from.u8()? {
            REFUSED => ServerReply::Refused(from.text(REPLY_BYTES_MAX)?),
            WELCOME => ServerReply::Welcome { size: from.u32()?, descriptors: from.u32()? },
            MORE => ServerReply::More { descriptors: from.u32()? },
            DEAD => {
                ServerReply::Dead { rank: Rank::from_word(from.u32()?), how: from.text(REPLY_BYTES_MAX)? }
            }
            REPORT => ServerReply::Report(from.text(REPLY_BYTES_MAX)?),
            _ => return Err(malformed("its kind is unknown")),
        };
        from.end(reply)
    }
}

/// Returns the length of the message that begins with `bytes`, without the bytes of the length
/// itself; `None` if there are too few bytes. Error: the message is empty or longer than `limit`.
pub fn length(bytes: &[u8], limit: usize) -> Result<Option<usize>> {
    let Some(first) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*first) as usize;
    if length == 0 || length > limit {
        return Err(malformed(&format!("it claims {length} bytes, but at most {limit} are allowed")));
    }
    Ok(Some(length))
}

fn malformed(why: &str) -> Error {
    Cause::Join(format!("a message between launcher and rank is malformed: {why}")).into()
}

/// Encodes a message.
struct MessageWriter(Vec<u8>);

impl MessageWriter {
    fn new(kind: u8) -> MessageWriter {
        MessageWriter(vec![0, 0, 0, 0, kind])
    }

    fn bytes(mut self, bytes: &[u8]) -> MessageWriter {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, number: u32) -> MessageWriter {
        self.bytes(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> MessageWriter {
        self.bytes(&number.to_le_bytes())
    }

    fn text(self, text: &str) -> MessageWriter {
        self.u32(text.len() as u32).bytes(text.as_bytes())
    }

    fn greeting(self, greeting: &Greeting) -> MessageWriter {
        self.u64(MAGIC).u32(greeting.protocol).text(&greeting.version).text(&greeting.executable)
    }

    fn done(mut self) -> Vec<u8> {
        let length = (self.0.len() - LENGTH_BYTES) as u32;
        self.0[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// Decodes a message.
struct MessageReader<'m>(&'m [u8]);

impl<'m> MessageReader<'m> {
    fn bytes(&mut self, count: usize) -> Result<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| malformed("it is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.bytes(N).map(|bytes| bytes.try_into().expect("as many as were asked for"))
    }

    fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn key(&mut self) -> Result<Key> {
        self.array().map(Key)
    }

    fn text(&mut self, limit: usize) -> Result<String> {
        let length = self.u32()? as usize;
        if length > limit {
            return Err(malformed("a text in it is too long"));
        }
        Ok(String::from_utf8_lossy(self.bytes(length)?).into_owned())
    }

    fn greeting(&mut self) -> Result<Greeting> {
        if self.u64()? != MAGIC {
            return Err(malformed("it is not a message of Tasuki"));
        }
        let protocol = self.u32()?;
        Ok(Greeting { protocol, version: self.text(TEXT_BYTES_MAX)?, executable: self.text(TEXT_BYTES_MAX)? })
    }

    fn end<T>(self, message: T) -> Result<T> {
        if self.0.is_empty() { Ok(message) } else { Err(malformed("it is too long")) }
    }
}

#[cfg(test)]
mod tests;
