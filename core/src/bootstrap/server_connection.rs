//! One connection that somebody made to the door: requests come in whole, answers go out when the other end takes them.

use super::wire::{self, Answer, LENGTH_BYTES, REQUEST_BYTES_MAX, Request};
use crate::base::{Rank, Result};
use crate::os::socket::{self, Credentials};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Descriptors that somebody may send before he has said what for.
const DESCRIPTORS_MAX: usize = 4;

/// What a visitor turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConnectionRole {
    /// He has not said.
    Unknown,
    /// A rank.
    Rank(Rank),
    /// A process that shows the node state of its ranks.
    Host,
    /// Somebody who is answered and leaves.
    Asker,
}

/// Somebody who has connected.
#[derive(Debug)]
pub(super) struct ServerConnection {
    stream: UnixStream,
    /// Who it is, as the kernel knows.
    pub(super) from: Credentials,
    pub(super) role: ConnectionRole,
    incoming: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    outgoing: Vec<u8>,
    /// The next part of the welcome for him; `None` when he has them all.
    pub(super) part: Option<usize>,
    /// Descriptors that he was sent and has not said that he has.
    pub(super) in_flight: usize,
}

/// What a look at a connection brought.
pub(super) struct Received {
    /// Requests in their order, with the descriptors that came along.
    pub(super) requests: Vec<(Request, Vec<OwnedFd>)>,
    /// Whether nothing more will come.
    pub(super) ended: bool,
}

impl ServerConnection {
    /// Somebody new.
    pub(super) fn new(stream: UnixStream, from: Credentials) -> io::Result<ServerConnection> {
        stream.set_nonblocking(true)?;
        let (incoming, descriptors, outgoing) = (Vec::new(), Vec::new(), Vec::new());
        let (role, part, in_flight) = (ConnectionRole::Unknown, Some(0), 0);
        Ok(ServerConnection { stream, from, role, incoming, descriptors, outgoing, part, in_flight })
    }

    /// The connection.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether an answer waits to go out.
    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Reads what there is.
    pub(super) fn listen(&mut self) -> Received {
        let mut requests = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            let ended = match socket::receive_some(&self.stream, &mut bytes, &mut self.descriptors) {
                Ok(0) => true,
                Ok(count) => {
                    self.incoming.extend_from_slice(&bytes[..count]);
                    self.understand(&mut requests).is_err() || self.descriptors.len() > DESCRIPTORS_MAX
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

    /// Takes whole requests from what has come. An error if it makes no sense.
    fn understand(&mut self, requests: &mut Vec<(Request, Vec<OwnedFd>)>) -> Result<()> {
        while let Some(length) = wire::length(&self.incoming, REQUEST_BYTES_MAX)? {
            let end = LENGTH_BYTES + length;
            let Some(message) = self.incoming.get(LENGTH_BYTES..end) else { break };
            requests.push((Request::decode(message)?, std::mem::take(&mut self.descriptors)));
            self.incoming.drain(..end);
        }
        Ok(())
    }

    /// Answers, now or when the other end takes it.
    pub(super) fn say(&mut self, answer: &Answer) {
        self.outgoing.extend_from_slice(&answer.encode());
        self.write();
    }

    /// Answers with descriptors, if that is possible now.
    pub(super) fn hand(&mut self, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let message = answer.encode();
        let sent = socket::send_some(&self.stream, &message, descriptors)?;
        self.outgoing.extend_from_slice(&message[sent..]);
        Ok(())
    }

    /// Writes what the other end takes. One that has gone shows when it is read.
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
