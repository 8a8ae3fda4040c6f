//! One connection to the rendezvous server, nonblocking: it returns complete requests, and buffers
//! replies that the other end does not take at once.

use super::wire::{self, LENGTH_BYTES, REQUEST_BYTES_MAX, Request, ServerReply};
use crate::base::{Rank, Result};
use crate::os::socket::{self, Credentials};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The most descriptors that a process may send before its request is complete.
const DESCRIPTORS_MAX: usize = 4;

/// The kind of process at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConnectionRole {
    /// Its first request has not come.
    Unknown,
    /// A rank.
    Rank(Rank),
    /// A process that runs all ranks as threads, and sent their node state.
    Host,
    /// A process that gets one reply; then the connection is closed.
    OneReply,
}

/// A connection with its buffers.
#[derive(Debug)]
pub(super) struct ServerConnection {
    stream: UnixStream,
    /// The process at the other end, as the kernel recorded it.
    pub(super) from: Credentials,
    pub(super) role: ConnectionRole,
    incoming: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    outgoing: Vec<u8>,
    /// The next part of the membership to send; `None` after the last.
    pub(super) part: Option<usize>,
    /// Descriptors that were sent and whose arrival the rank has not confirmed.
    pub(super) in_flight: usize,
}

/// The result of reading from a connection.
pub(super) struct Received {
    /// Complete requests in their order, with the descriptors that came with them.
    pub(super) requests: Vec<(Request, Vec<OwnedFd>)>,
    /// True if the connection has ended.
    pub(super) ended: bool,
}

impl ServerConnection {
    /// Makes a connection of an accepted stream.
    pub(super) fn new(stream: UnixStream, from: Credentials) -> io::Result<ServerConnection> {
        stream.set_nonblocking(true)?;
        let (incoming, descriptors, outgoing) = (Vec::new(), Vec::new(), Vec::new());
        let (role, part, in_flight) = (ConnectionRole::Unknown, Some(0), 0);
        Ok(ServerConnection { stream, from, role, incoming, descriptors, outgoing, part, in_flight })
    }

    /// Returns the descriptor, to wait for events.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns true if a reply has not been sent completely.
    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Reads all that can be read without waiting.
    pub(super) fn receive(&mut self) -> Received {
        let mut requests = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            let ended = match socket::receive_some(&self.stream, &mut bytes, &mut self.descriptors) {
                Ok(0) => true,
                Ok(count) => {
                    self.incoming.extend_from_slice(&bytes[..count]);
                    self.decode_requests(&mut requests).is_err() || self.descriptors.len() > DESCRIPTORS_MAX
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Received { requests, ended: false };
                }
                Err(_) => true,
            };
            if ended {
                return Received { requests, ended };
            }
        }
    }

    /// Decodes the complete requests in the input buffer. Error: a message is malformed.
    fn decode_requests(&mut self, requests: &mut Vec<(Request, Vec<OwnedFd>)>) -> Result<()> {
        while let Some(length) = wire::length(&self.incoming, REQUEST_BYTES_MAX)? {
            let end = LENGTH_BYTES + length;
            let Some(message) = self.incoming.get(LENGTH_BYTES..end) else { break };
            requests.push((Request::decode(message)?, std::mem::take(&mut self.descriptors)));
            self.incoming.drain(..end);
        }
        Ok(())
    }

    /// Sends a reply, now or when the other end takes it.
    pub(super) fn send(&mut self, reply: &ServerReply) {
        self.outgoing.extend_from_slice(&reply.encode());
        self.write();
    }

    /// Sends a reply with descriptors, if that is possible now.
    pub(super) fn send_with_descriptors(
        &mut self,
        reply: &ServerReply,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let message = reply.encode();
        let sent = socket::send_some(&self.stream, &message, descriptors)?;
        self.outgoing.extend_from_slice(&message[sent..]);
        Ok(())
    }

    /// Sends as much of the buffered replies as the other end takes. Drops them if it has closed: reading reports that.
    pub(super) fn write(&mut self) {
        while !self.outgoing.is_empty() {
            match socket::send_some(&self.stream, &self.outgoing, &[]) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.outgoing.clear(),
            }
        }
    }
}
