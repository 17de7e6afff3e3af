//! One stream for two tasks: one that reads and one that writes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Stream;

struct Inner {
    stream: Mutex<Box<dyn Stream>>,
    peer: String,
    is_local: bool,
}

/// A stream whose clones are the same stream. It is closed when the last of them is gone.
#[derive(Clone)]
pub struct SharedStream(Arc<Inner>);

impl SharedStream {
    /// Shares a stream.
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self(Arc::new(Inner {
            peer: stream.peer().to_owned(),
            is_local: stream.is_local(),
            stream: Mutex::new(stream),
        }))
    }

    fn with<T>(&self, work: impl FnOnce(Pin<&mut Box<dyn Stream>>) -> T) -> T {
        let mut stream = self.0.stream.lock().expect("no panic happens under this lock");
        work(Pin::new(&mut *stream))
    }
}

impl Stream for SharedStream {
    fn peer(&self) -> &str {
        &self.0.peer
    }

    fn is_local(&self) -> bool {
        self.0.is_local
    }
}

impl AsyncRead for SharedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(context, into))
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(context))
    }
}
