//! Where a server is and how the way to it is secured.

use plimsoll_io::{Network, Stream, StreamError, TlsClient};

/// When TLS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Never.
    None,
    /// After a greeting in the clear.
    StartTls,
    /// At once.
    Tls,
}

/// See the module text.
#[derive(Clone)]
pub struct Endpoint {
    /// `host:port`.
    pub address: String,
    /// When TLS begins.
    pub security: Security,
    /// What is trusted; needed unless there is no TLS.
    pub tls: Option<TlsClient>,
    /// The name that the certificate must bear.
    pub tls_name: String,
}

impl Endpoint {
    /// A stream to the server, with TLS where it begins at once.
    ///
    /// # Errors
    /// What the network or TLS says.
    pub async fn connect(&self, network: &dyn Network) -> Result<Box<dyn Stream>, StreamError> {
        let stream = network.connect(&self.address).await?;
        match self.security {
            Security::Tls => self.secure(stream).await,
            Security::None | Security::StartTls => Ok(stream),
        }
    }

    /// The same stream with TLS.
    ///
    /// # Errors
    /// What TLS says.
    pub async fn secure(&self, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, StreamError> {
        let Some(tls) = &self.tls else {
            return Err(StreamError::Tls {
                peer: self.address.clone(),
                reason: "no certificates to trust were named".to_owned(),
            });
        };
        tls.handshake(stream, &self.tls_name).await
    }
}
