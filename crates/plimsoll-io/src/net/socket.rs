//! The system calls on TCP sockets. Every socket is nonblocking, and sends small pieces at once
//! (TCP_NODELAY). Source: tcp(7), socket(7).

use std::io;
use std::mem::{ManuallyDrop, MaybeUninit, size_of};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

/// What a listener does, for errors.
pub(super) const LISTENING: &str = "listening at";
/// What whoever connects does, for errors.
pub(super) const CONNECTING: &str = "connecting to";
/// What a listener does when somebody comes, for errors.
pub(super) const ACCEPTING: &str = "accepting a connection at";

/// Keep-alive probes are sent so many times before a silent peer counts as gone.
const PROBES: u64 = 3;

/// Thrown away at once, and how often.
const DISCARD_BYTES: usize = 1 << 20;
const DISCARDS_MAX: usize = 16;

/// A socket that begins to connect; whether it succeeds is told by [`connected`] once it is
/// writable.
pub(super) fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed; the result is checked.
    let socket = owned(unsafe { libc::socket(family, kind, 0) })?;
    match begin_connecting(socket.as_raw_fd(), address) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

fn begin_connecting(socket: RawFd, address: &SocketAddr) -> io::Result<()> {
    // SAFETY: the structures live through the call, and their sizes are passed with them.
    checked(unsafe {
        match address {
            SocketAddr::V4(v4) => {
                let name = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                libc::connect(
                    socket,
                    (&raw const name).cast(),
                    size_of::<libc::sockaddr_in>() as u32,
                )
            }
            SocketAddr::V6(v6) => {
                let name = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                libc::connect(
                    socket,
                    (&raw const name).cast(),
                    size_of::<libc::sockaddr_in6>() as u32,
                )
            }
        }
    })
}

/// Whether a socket that is writable is connected.
pub(super) fn connected(socket: RawFd) -> io::Result<()> {
    let (mut errno, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: both are writable, and the length is that of the number.
    checked(unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut errno).cast(),
            &mut length,
        )
    })?;
    match errno {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A socket that listens.
pub(super) fn listen(addresses: &[SocketAddr]) -> io::Result<(OwnedFd, SocketAddr)> {
    let listener = TcpListener::bind(addresses)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener.into(), address))
}

/// The next connection at a socket that listens.
pub(super) fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the address of the peer is not asked for; the result is checked.
    owned(unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) })
}

/// Prepares a connected socket: small pieces go at once, and a peer that is silent for so long,
/// although asked, is gone. Answers the addresses of this side and the other.
pub(super) fn prepare(
    socket: RawFd,
    vanished_after_ns: Nanos,
) -> io::Result<(SocketAddr, SocketAddr)> {
    let seconds = vanished_after_ns.div_ceil(NANOS_PER_SECOND);
    let interval_s = (seconds / (2 * PROBES)).max(1);
    let settings = [
        (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, (seconds / 2).max(1)),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, interval_s),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, PROBES),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, vanished_after_ns / NANOS_PER_MILLISECOND),
    ];
    for (level, option, value) in settings {
        let value = i32::try_from(value).unwrap_or(i32::MAX);
        // SAFETY: the number lives through the call, and its length is passed.
        checked(unsafe {
            libc::setsockopt(
                socket,
                level,
                option,
                (&raw const value).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        })?;
    }
    // SAFETY: the descriptor stays open meanwhile, and is not closed by this view of it.
    let stream = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(socket) });
    Ok((stream.local_addr()?, stream.peer_addr()?))
}

/// Receives what is there; 0 is the end.
pub(super) fn receive(socket: RawFd, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    // SAFETY: the memory is writable and of that length.
    counted(unsafe { libc::recv(socket, into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) })
}

/// Sends as much as there is room for. A peer that is gone is an error, never a signal.
pub(super) fn send(socket: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the memory is readable and of that length.
    counted(unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Throws away what has arrived, up to a limit: a peer that sends for ever is not waited for.
pub(super) fn discard(socket: RawFd) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    for _ in 0..DISCARDS_MAX {
        // SAFETY: with MSG_TRUNC nothing is written to memory.
        if unsafe { libc::recv(socket, std::ptr::null_mut(), DISCARD_BYTES, flags) } <= 0 {
            return;
        }
    }
}

/// Ends one or both directions. A connection that is gone already has none.
pub(super) fn shutdown(socket: RawFd, how: i32) {
    // SAFETY: no pointers are passed.
    unsafe { libc::shutdown(socket, how) };
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    checked(fd.min(0))?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn counted(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
