//! Messages over a byte stream: a length of four bytes, little endian, then that many bytes.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Stream, StreamError};

/// A longer message is refused, so that a stranger cannot make us reserve memory.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

const PREFIX_BYTES: usize = 4;
/// Read at once.
const READ_BYTES: usize = 64 << 10;

/// A stream that carries messages. One task at a time may send and one may receive.
///
/// What waits may be dropped: a message that was received in part is received in whole by the next
/// call, and a message that was sent in part goes out whole before the next one.
pub struct Messages {
    stream: RefCell<Box<dyn Stream>>,
    peer: String,
    received: RefCell<Vec<u8>>,
    outgoing: RefCell<Outgoing>,
}

#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Messages {
    /// Carries messages over `stream`.
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            peer: stream.peer().to_owned(),
            stream: RefCell::new(stream),
            received: RefCell::default(),
            outgoing: RefCell::default(),
        }
    }

    /// The name of the other side.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Hands one message over for sending.
    ///
    /// # Panics
    /// When the message is longer than [`MESSAGE_BYTES_MAX`].
    pub async fn send(&self, message: &[u8]) -> Result<(), StreamError> {
        assert!(message.len() <= MESSAGE_BYTES_MAX, "no sender of ours makes such messages");
        self.finish_sending().await?;
        {
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.bytes.extend((message.len() as u32).to_le_bytes());
            outgoing.bytes.extend(message);
        }
        self.finish_sending().await
    }

    /// Sends no more. Receiving goes on.
    pub async fn close(&self) -> Result<(), StreamError> {
        self.finish_sending().await?;
        poll_fn(|context| Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(context))
            .await
            .map_err(|error| StreamError::of(&error, &self.peer))
    }

    /// The next message; `None` when the peer has closed after the last one.
    pub async fn receive(&self) -> Result<Option<Vec<u8>>, StreamError> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            let count = poll_fn(|context| self.poll_receive(context, &mut buffer))
                .await
                .map_err(|error| StreamError::of(&error, &self.peer))?;
            if count == 0 {
                return if self.received.borrow().is_empty() {
                    Ok(None)
                } else {
                    Err(StreamError::CutShort(self.peer.clone()))
                };
            }
        }
    }

    async fn finish_sending(&self) -> Result<(), StreamError> {
        poll_fn(|context| self.poll_send(context))
            .await
            .map_err(|error| StreamError::of(&error, &self.peer))
    }

    fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (mut stream, mut outgoing) = (self.stream.borrow_mut(), self.outgoing.borrow_mut());
        while outgoing.sent < outgoing.bytes.len() {
            let rest = &outgoing.bytes[outgoing.sent..];
            let sent = ready!(Pin::new(&mut *stream).poll_write(context, rest))?;
            outgoing.sent += sent;
        }
        *outgoing = Outgoing::default();
        Pin::new(&mut *stream).poll_flush(context)
    }

    fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_read(context, &mut buffer))?;
        self.received.borrow_mut().extend(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn take_message(&self) -> Result<Option<Vec<u8>>, StreamError> {
        let mut received = self.received.borrow_mut();
        let Some(prefix) = received.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(StreamError::Oversized {
                peer: self.peer.clone(),
                length_bytes: length as u64,
            });
        }
        let end = PREFIX_BYTES + length;
        if received.len() < end {
            return Ok(None);
        }
        let message = received[PREFIX_BYTES..end].to_vec();
        received.drain(..end);
        Ok(Some(message))
    }
}
