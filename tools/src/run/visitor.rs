//! One connection to the launcher: requests come in whole, answers go out when the other end takes them.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tasuki_core::base::Rank;
use tasuki_core::bootstrap::wire::{self, Answer, LENGTH_BYTES, REQUEST_BYTES_MAX, Request};
use tasuki_core::os::socket::{self, Credentials};

/// Descriptors that somebody may send before he has said what for.
const DESCRIPTORS_MAX: usize = 4;

/// What a visitor turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// He has not said.
    Unknown,
    /// A rank.
    Rank(Rank),
    /// A process that shows the board of its ranks.
    Host,
    /// Somebody who is answered and leaves.
    Asker,
}

/// Somebody who has connected.
pub(crate) struct Visitor {
    stream: UnixStream,
    /// Who it is, as the kernel knows.
    pub(crate) from: Credentials,
    pub(crate) role: Role,
    incoming: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    outgoing: Vec<u8>,
    /// The next part of the welcome for him; `None` when he has them all.
    pub(crate) part: Option<usize>,
    /// Descriptors that he was sent and has not said that he has.
    pub(crate) in_flight: usize,
}

/// What a look at a connection brought.
pub(crate) struct Heard {
    /// Requests in their order, with the descriptors that came along.
    pub(crate) requests: Vec<(Request, Vec<OwnedFd>)>,
    /// Whether nothing more will come.
    pub(crate) ended: bool,
}

impl Visitor {
    /// Somebody new.
    pub(crate) fn new(stream: UnixStream, from: Credentials) -> io::Result<Visitor> {
        stream.set_nonblocking(true)?;
        let (incoming, descriptors, outgoing) = (Vec::new(), Vec::new(), Vec::new());
        let (role, part, in_flight) = (Role::Unknown, Some(0), 0);
        Ok(Visitor { stream, from, role, incoming, descriptors, outgoing, part, in_flight })
    }

    /// The connection.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether an answer waits to go out.
    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Reads what there is.
    pub(crate) fn listen(&mut self) -> Heard {
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
                    return Heard { requests, ended: false };
                }
                Err(_) => true,
            };
            if ended {
                return Heard { requests, ended };
            }
        }
    }

    /// Takes whole requests from what has come. An error if it makes no sense.
    fn understand(&mut self, requests: &mut Vec<(Request, Vec<OwnedFd>)>) -> tasuki_core::base::Result<()> {
        while let Some(length) = wire::length(&self.incoming, REQUEST_BYTES_MAX)? {
            let end = LENGTH_BYTES + length;
            let Some(message) = self.incoming.get(LENGTH_BYTES..end) else { break };
            requests.push((Request::decode(message)?, std::mem::take(&mut self.descriptors)));
            self.incoming.drain(..end);
        }
        Ok(())
    }

    /// Answers, now or when the other end takes it.
    pub(crate) fn say(&mut self, answer: &Answer) {
        self.outgoing.extend_from_slice(&answer.encode());
        self.write();
    }

    /// Answers with descriptors, if that is possible now.
    pub(crate) fn hand(&mut self, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let message = answer.encode();
        let sent = socket::send_some(&self.stream, &message, descriptors)?;
        self.outgoing.extend_from_slice(&message[sent..]);
        Ok(())
    }

    /// Writes what the other end takes. One that has gone shows when it is read.
    pub(crate) fn write(&mut self) {
        while !self.outgoing.is_empty() {
            match socket::send_some(&self.stream, &self.outgoing, &[]) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.outgoing.clear(),
            }
        }
    }
}
