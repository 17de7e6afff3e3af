//! Where a server of PostgreSQL is and who comes to it.

use plimsoll_io::{Nanos, TlsClient};

/// How a server is reached and who comes.
#[derive(Clone)]
pub struct Access {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// By what; never shown.
    pub password: Option<String>,
    /// What is used there.
    pub database: String,
    /// How it is talked to in secret, if it is.
    pub tls: Option<TlsClient>,
    /// A server that does not answer for so long is lost.
    pub timeout_ns: Nanos,
}

impl Access {
    /// As the network takes it.
    pub(super) fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Where it is, without a password.
    pub fn place(&self) -> String {
        format!("postgresql://{}@{}/{}", self.user, self.address(), self.database)
    }
}
