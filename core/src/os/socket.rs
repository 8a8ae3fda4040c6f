//! Unix stream sockets in the abstract namespace, which can send descriptors and know the peer's credentials.
#![allow(unsafe_code)]
//! Unsafe: sendmsg and recvmsg with control messages built in local buffers.

use crate::base::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Descriptors that one message may carry: the kernel's limit (SCM_MAX_FD).
pub const DESCRIPTORS_A_MESSAGE: usize = 253;

/// The process at the other end of a socket, as the kernel recorded it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Process id.
    pub pid: u32,
    /// User id.
    pub user: u32,
}

/// Listens under an abstract name. The name is in no file system and disappears with the socket.
pub fn listen(name: &str) -> Result<UnixListener> {
    let address =
        SocketAddr::from_abstract_name(name).map_err(|error| Error::from_io("socket name", &error))?;
    UnixListener::bind_addr(&address).map_err(|error| Error::from_io("bind", &error))
}

/// Connects to an abstract name.
pub fn connect(name: &str) -> Result<UnixStream> {
    let address =
        SocketAddr::from_abstract_name(name).map_err(|error| Error::from_io("socket name", &error))?;
    UnixStream::connect_addr(&address).map_err(|error| Error::from_io("connect", &error))
}

/// Returns the credentials of the process at the other end of `stream`.
pub fn credentials(stream: &UnixStream) -> Result<Credentials> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: peer and len are valid memory of matching size.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut len,
        )
    };
    if done != 0 {
        return Err(Error::last_os("getsockopt(SO_PEERCRED)"));
    }
    Ok(Credentials { pid: peer.pid as u32, user: peer.uid })
}

/// Returns a socket that the parent process left open for this one, by its descriptor number.
/// Programs that this process starts do not inherit it: they could be taken for this process.
pub fn inherited(descriptor: RawFd) -> Result<UnixStream> {
    let mut kind: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the calls take numbers, and kind and len are valid memory of matching size. If the number is no
    // descriptor, or not a socket, the calls fail. The descriptor that is owned is a duplicate made here.
    unsafe {
        let result = (&raw mut kind).cast();
        if libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_TYPE, result, &mut len) != 0 {
            return Err(Error::last_os("getsockopt(SO_TYPE)"));
        }
        let copy = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 {
            return Err(Error::last_os("fcntl(F_DUPFD_CLOEXEC)"));
        }
        if descriptor > libc::STDERR_FILENO {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        Ok(UnixStream::from(OwnedFd::from_raw_fd(copy)))
    }
}

/// A buffer for a control message with the most descriptors, aligned as its header requires.
#[repr(align(8))]
struct Control([u8; 8 * DESCRIPTORS_A_MESSAGE + 64]);

/// Sends `bytes`, with `descriptors` (at most [`DESCRIPTORS_A_MESSAGE`]) attached to the first byte. Returns how many
/// bytes were sent. On a nonblocking stream `WouldBlock` is an ordinary result; then no descriptor was sent.
pub fn send_some(
    stream: &UnixStream,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> std::io::Result<usize> {
    assert!(!bytes.is_empty() && descriptors.len() <= DESCRIPTORS_A_MESSAGE);
    let mut control = Control([0; size_of::<Control>()]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let size = descriptors.len() * size_of::<RawFd>();
    // SAFETY: the message points to `part` and `control`, which outlive the call; the control message fits, because it
    // has at most `DESCRIPTORS_A_MESSAGE` descriptors.
    retried(|| unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if size > 0 {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size as u32) as _;
            let numbers = libc::CMSG_DATA(header).cast::<RawFd>();
            for (i, fd) in descriptors.iter().enumerate() {
                numbers.add(i).write_unaligned(fd.as_raw_fd());
            }
        }
        libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    })
}

/// Receives up to `bytes.len()` bytes, and adds the descriptors that came with them (close-on-exec) to `descriptors`.
/// Returns how many bytes were received: 0 if the other end has closed.
pub fn receive_some(
    stream: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> std::io::Result<usize> {
    let mut control = Control([0; size_of::<Control>()]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the message points to `part` and `control`, which outlive the call. The CMSG macros walk what the
    // kernel wrote there. Each descriptor in it is new, and nobody else owns it.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        let got = retried(|| libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC))?;
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let size = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let numbers = libc::CMSG_DATA(header).cast::<RawFd>();
                for i in 0..size / size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(numbers.add(i).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
        if message.msg_flags & libc::MSG_CTRUNC != 0 {
            // The kernel silently drops descriptors that exceed the receiver's limit.
            return Err(std::io::Error::from_raw_os_error(libc::EMFILE));
        }
        Ok(got)
    }
}

/// Repeats a call while signals interrupt it. Returns its count or its error.
fn retried(mut call: impl FnMut() -> libc::ssize_t) -> std::io::Result<usize> {
    loop {
        let count = call();
        if count >= 0 {
            return Ok(count as usize);
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends all of `bytes`, with `descriptors` (at most [`DESCRIPTORS_A_MESSAGE`]) attached to the
/// first byte. The receiver must read exactly as many bytes with one [`receive`].
pub fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    let sent = send_some(stream, bytes, descriptors).map_err(|error| Error::from_io("sendmsg", &error))?;
    let mut stream = stream;
    std::io::Write::write_all(&mut stream, &bytes[sent..]).map_err(|error| Error::from_io("send", &error))
}

/// Receives exactly `bytes.len()` bytes and the descriptors that came with them (close-on-exec). Returns `Ok(None)` if
/// the other end closed before the first byte.
pub fn receive(stream: &UnixStream, bytes: &mut [u8]) -> Result<Option<Vec<OwnedFd>>> {
    let mut descriptors = Vec::new();
    let got = receive_some(stream, bytes, &mut descriptors);
    let got = got.map_err(|error| Error::from_io("recvmsg", &error))?;
    if got == 0 {
        return Ok(None);
    }
    let mut stream = stream;
    std::io::Read::read_exact(&mut stream, &mut bytes[got..])
        .map_err(|error| Error::from_io("receive", &error))?;
    Ok(Some(descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn bytes_descriptors_and_credentials_are_received() {
        let name = format!("tasuki-test-{}", std::process::id());
        let listener = listen(&name).unwrap();
        let client = connect(&name).unwrap();
        let (server, _) = listener.accept().unwrap();
        let file = std::fs::File::open("/proc/self/status").unwrap();
        send(&client, b"hello", &[file.as_fd(), file.as_fd()]).unwrap();
        let mut bytes = [0; 5];
        let descriptors = receive(&server, &mut bytes).unwrap().unwrap();
        assert_eq!((&bytes, descriptors.len()), (b"hello", 2));
        assert_eq!(credentials(&server).unwrap().pid, std::process::id());
        drop(client);
        assert!(receive(&server, &mut bytes).unwrap().is_none());
    }
}
