//! TLS on any stream, by rustls with the cryptography of ring. The handshake is a step of its own,
//! so that whoever measures can time it and whoever serves can let others wait less.
//!
//! A stream that ends without saying so in TLS was cut short: that is an error, not an end. So a
//! stream that is dropped says it, as far as that takes no waiting.
//!
//! Limit: keys come from the system's randomness, and certificates are compared with the system's
//! UTC. In a simulation the bytes on the wire therefore differ from run to run; the bytes that are
//! carried do not.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{Stream, StreamError};

/// The side that connects.
#[derive(Clone)]
pub struct TlsClient {
    connector: TlsConnector,
}

/// The side that is connected to.
#[derive(Clone)]
pub struct TlsServer {
    acceptor: TlsAcceptor,
}

fn failed(peer: &str, reason: impl ToString) -> StreamError {
    StreamError::Tls { peer: peer.to_owned(), reason: reason.to_string() }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, StreamError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Err(error) => Err(failed("the certificates given", error)),
        Ok(found) if found.is_empty() => {
            Err(failed("the certificates given", "none is in the text (PEM)"))
        }
        Ok(found) => Ok(found),
    }
}

impl TlsClient {
    /// Trusts servers whose certificates are signed by one of these, or are one of these (PEM).
    ///
    /// # Errors
    /// When the text holds no certificate, or one that cannot be trusted.
    pub fn trusting(certificates_pem: &[u8]) -> Result<Self, StreamError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(certificates_pem)? {
            roots.add(certificate).map_err(|error| failed("the certificates given", error))?;
        }
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed("any server", error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Puts TLS on a stream to the server of that name.
    ///
    /// # Errors
    /// When the name is none, the server is not who it should be, or the stream breaks.
    pub async fn handshake(
        &self,
        stream: Box<dyn Stream>,
        name: &str,
    ) -> Result<Box<dyn Stream>, StreamError> {
        let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(name, error))?;
        let (peer, is_local) = (stream.peer().to_owned(), stream.is_local());
        let inner = self.connector.connect(name, stream).await;
        let inner = inner.map_err(|error| of_tls(&error, &peer))?;
        Ok(Box::new(TlsStream { inner: tokio_rustls::TlsStream::Client(inner), peer, is_local }))
    }
}

impl TlsServer {
    /// Shows these certificates, its own first (PEM), and proves it by the key (PEM).
    ///
    /// # Errors
    /// When there is no certificate or key, or they do not belong together.
    pub fn new(certificates_pem: &[u8], key_pem: &[u8]) -> Result<Self, StreamError> {
        let key = PrivateKeyDer::from_pem_slice(key_pem)
            .map_err(|error| failed("the key given", error))?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed("any client", error))?
            .with_no_client_auth()
            .with_single_cert(certificates(certificates_pem)?, key)
            .map_err(|error| failed("the key given", error))?;
        // Tickets for a next time come when nobody waits for them: a client that hangs up with them
        // unread resets what it has sent.
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Puts TLS on a stream that a client has opened.
    ///
    /// # Errors
    /// When the client does not speak TLS, does not trust the certificate, or the stream breaks.
    pub async fn handshake(&self, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, StreamError> {
        let (peer, is_local) = (stream.peer().to_owned(), stream.is_local());
        let inner = self.acceptor.accept(stream).await;
        let inner = inner.map_err(|error| of_tls(&error, &peer))?;
        Ok(Box::new(TlsStream { inner: tokio_rustls::TlsStream::Server(inner), peer, is_local }))
    }
}

/// What went wrong, told as TLS where TLS said it.
fn of_tls(error: &io::Error, peer: &str) -> StreamError {
    let said = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    said.map_or_else(|| StreamError::of(error, peer), |said| failed(peer, said))
}

struct TlsStream {
    inner: tokio_rustls::TlsStream<Box<dyn Stream>>,
    peer: String,
    is_local: bool,
}

impl TlsStream {
    fn named<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        poll.map(|result| result.map_err(|error| of_tls(&error, &self.peer).into()))
    }
}

impl Stream for TlsStream {
    fn peer(&self) -> &str {
        &self.peer
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_read(context, into);
        self.named(poll)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.named(poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_flush(context);
        self.named(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_shutdown(context);
        self.named(poll)
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        // Its outcome matters to nobody who is still there.
        let _ = Pin::new(&mut self.inner).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }
}
