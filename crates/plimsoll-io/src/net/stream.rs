//! The few operations on streams that everything else is made of, with errors that name the peer.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::ready;

use tokio::io::ReadBuf;

use super::{Stream, StreamError};

/// Reads what is there, at least one byte; 0 when the peer has closed.
pub async fn read<S: Stream + ?Sized>(
    stream: &mut S,
    into: &mut [u8],
) -> Result<usize, StreamError> {
    poll_fn(|context| {
        let mut buffer = ReadBuf::new(into);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
        std::task::Poll::Ready(Ok(buffer.filled().len()))
    })
    .await
    .map_err(|error: std::io::Error| StreamError::of(&error, stream.peer()))
}

/// Fills the whole slice. Dropped while it waits, it has read a part: whoever may drop it reads by
/// [`read`].
pub async fn read_exact<S: Stream + ?Sized>(
    stream: &mut S,
    into: &mut [u8],
) -> Result<(), StreamError> {
    let mut filled = 0;
    while filled < into.len() {
        match read(stream, &mut into[filled..]).await? {
            0 => return Err(StreamError::CutShort(stream.peer().to_owned())),
            count => filled += count,
        }
    }
    Ok(())
}

/// Hands over some of the bytes, at least one; answers how many.
pub async fn write<S: Stream + ?Sized>(stream: &mut S, bytes: &[u8]) -> Result<usize, StreamError> {
    poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes))
        .await
        .map_err(|error| StreamError::of(&error, stream.peer()))
}

/// Hands over all bytes and flushes; waits while too many are on their way. Dropped while it waits,
/// it has handed over a part: what goes on with the stream after that is [`super::Messages`] or
/// starts with a new one.
pub async fn write_all<S: Stream + ?Sized>(
    stream: &mut S,
    mut bytes: &[u8],
) -> Result<(), StreamError> {
    while !bytes.is_empty() {
        let written = write(stream, bytes).await?;
        bytes = &bytes[written..];
    }
    flush(stream).await
}

/// Sees to it that everything handed over is on its way.
pub async fn flush<S: Stream + ?Sized>(stream: &mut S) -> Result<(), StreamError> {
    poll_fn(|context| Pin::new(&mut *stream).poll_flush(context))
        .await
        .map_err(|error| StreamError::of(&error, stream.peer()))
}

/// Writes no more. What was handed over still goes out, and reading goes on.
pub async fn close<S: Stream + ?Sized>(stream: &mut S) -> Result<(), StreamError> {
    poll_fn(|context| Pin::new(&mut *stream).poll_shutdown(context))
        .await
        .map_err(|error| StreamError::of(&error, stream.peer()))
}
