//! A connection to PostgreSQL: the library speaks, over a stream of ours, and its driver is a task
//! of our executor.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use plimsoll_io::{Handle, Network, Stream, StreamError, TlsClient, within};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config, Error, Statement};

use super::access::Access;
use super::reviews::ReviewStatements;
use crate::client::{Claim, ClientError, Failure, Marker};

/// The code with which the purchase says that there is too little in stock.
pub const OUT_OF_STOCK: &str = "PL001";

/// A connection.
pub struct Plain {
    /// Speaks. The driver ends with it.
    pub client: Client,
}

/// A connection with what a session says on it.
pub struct Connection {
    /// Speaks.
    pub client: Client,
    /// To which endpoint.
    pub at: usize,
    /// What is said over and over.
    pub says: Statements,
    /// What is said of members and reviews, in a store that has them.
    pub of_reviews: Option<ReviewStatements>,
}

/// Prepared statements.
pub struct Statements {
    pub log_in: Statement,
    pub sign_up: Statement,
    pub by_category: Statement,
    pub by_actor: Statement,
    pub by_title: Statement,
    pub prices: Statement,
    pub purchase: Statement,
}

/// What has a database claimed waits for as long as the run takes, and is gone soon after its
/// machine is.
const LASTING: &str = "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET \
 tcp_keepalives_count = 3; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN \
 ('idle_session_timeout', 'statement_timeout')";
/// Of all runs on a database, one; by the second lock a run knows its own connection again.
const CLAIM: &str = "SELECT pg_try_advisory_lock(5064277810247), pg_try_advisory_lock($1)";
const NAMED: &str = "SELECT set_config('application_name', $1, false)";
const HOLDER: &str = "SELECT concat_ws(' at ', nullif(application_name, ''), host(client_addr)) \
 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND \
 (classid::bigint << 32 | objid::bigint) = 5064277810247 AND pg_locks.database = \
    (SELECT oid FROM pg_database WHERE datname = current_database())";
const MARKER: &str = "SELECT seed, megabytes, runs FROM plimsoll_marker WHERE id = 1";

const LOG_IN: &str = "SELECT who.customerid, one.prod_id, one.title, other.prod_id, other.title \
 FROM customers who \
    LEFT JOIN LATERAL (SELECT orderid, prod_id FROM cust_hist WHERE customerid = who.customerid \
    ORDER BY orderid, prod_id LIMIT 10) \
    bought ON true LEFT JOIN products one ON one.prod_id = bought.prod_id \
    LEFT JOIN products other ON other.prod_id = one.common_prod_id WHERE who.username = $1 AND \
    who.password = $2";
const SIGN_UP: &str = "INSERT INTO customers (firstname, lastname, address1, address2, city, \
 state, zip, country, region, email, phone, \
    creditcardtype, creditcard, creditcardexpiration, username, password, age, income, gender) \
    VALUES ($1, $2, $3, NULL, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) \
    RETURNING customerid";
const PRICES: &str = "SELECT prod_id, (price * 100)::bigint FROM products WHERE prod_id = ANY ($1)";
const PURCHASE: &str = "SELECT pg_temp.plimsoll_purchase($1, $2::text::date, $3, $4, $5, $6, $7)";
const FOUND: &str = "SELECT prod_id, title, actor, (price * 100)::bigint FROM products WHERE";

impl Plain {
    /// Connects and logs in.
    ///
    /// # Errors
    /// What came in between.
    pub async fn open(
        handle: &Handle,
        network: &dyn Network,
        access: &Access,
    ) -> Result<Plain, Failure> {
        let connecting = async {
            let stream = network.connect(&access.address()).await?;
            let mut config = Config::new();
            config.user(&access.user).dbname(&access.database).application_name("plimsoll");
            config.ssl_mode(if access.tls.is_some() { SslMode::Require } else { SslMode::Disable });
            if let Some(password) = &access.password {
                config.password(password);
            }
            let tls = Tls { client: access.tls.clone(), name: access.host.clone() };
            let connected = config.connect_raw(stream, tls).await;
            let (client, connection) = connected.map_err(|error| access.failure(&error))?;
            drop(handle.spawn(async move { drop(connection.await) }));
            // Said by the server to people who look at its notices: nobody does here.
            let quiet = client.batch_execute("SET client_min_messages TO warning").await;
            quiet.map_err(|error| access.failure(&error))?;
            Ok(Plain { client })
        };
        let connected = within(handle, access.timeout_ns, connecting).await;
        connected.unwrap_or_else(|| Err(access.silent()))
    }
}

impl Plain {
    /// Claims the database for as long as the connection lasts. `own` is a lock of this run.
    ///
    /// # Errors
    /// What the database says.
    pub async fn claim(&self, own: i64) -> Result<Claim, Error> {
        self.client.batch_execute(LASTING).await?;
        let name = format!("plimsoll, process {}", std::process::id());
        self.client.query_one(NAMED, &[&name]).await?;
        let row = self.client.query_one(CLAIM, &[&own]).await?;
        Ok(Claim::of(row.get(0), row.get(1)))
    }

    /// Who has claimed the database, as far as the server tells.
    pub async fn holder(&self) -> Option<String> {
        let row = self.client.query_opt(HOLDER, &[]).await.ok()??;
        row.try_get(0).ok().filter(|who: &String| !who.is_empty())
    }

    /// The marker of the store; nothing where there is none.
    ///
    /// # Errors
    /// What the database says.
    pub async fn marker(&self) -> Result<Option<Marker>, Error> {
        match self.client.query_opt(MARKER, &[]).await {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
            found => Ok(found?.map(|row| (row.get(0), row.get(1), row.get(2)))),
        }
    }

    /// Connects to the first endpoint that lets somebody in, and says which it is.
    ///
    /// # Errors
    /// What the last one said.
    pub async fn open_any(
        handle: &Handle,
        network: &dyn Network,
        accesses: &[Access],
    ) -> Result<(Plain, usize), Failure> {
        let mut at = 0;
        loop {
            match Plain::open(handle, network, &accesses[at]).await {
                Ok(plain) => return Ok((plain, at)),
                Err(Failure::Lost(_) | Failure::Busy(_)) if at + 1 < accesses.len() => at += 1,
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl Connection {
    /// Prepares what a session says.
    ///
    /// # Errors
    /// What came in between.
    pub async fn begin(
        Plain { client }: Plain,
        handle: &Handle,
        access: &Access,
        at: usize,
        has_reviews: bool,
    ) -> Result<Connection, Failure> {
        let preparing = async {
            client.batch_execute(include_str!("session.sql")).await?;
            let of_reviews = match has_reviews {
                true => Some(ReviewStatements::prepare(&client).await?),
                false => None,
            };
            Ok((Statements::prepare(&client).await?, of_reviews))
        };
        let Some(prepared) = within(handle, access.timeout_ns, preparing).await else {
            return Err(access.silent());
        };
        let (says, of_reviews) = prepared.map_err(|error: Error| access.failure(&error))?;
        Ok(Connection { client, at, says, of_reviews })
    }
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Statements, Error> {
        let found = |condition: &str| format!("{FOUND} {condition} ORDER BY prod_id LIMIT $2");
        let by_category = found("category = $1 AND special = 1");
        let by_actor = found("to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1)");
        let by_title = found("to_tsvector('simple', title) @@ plainto_tsquery('simple', $1)");
        Ok(Statements {
            log_in: client.prepare(LOG_IN).await?,
            sign_up: client.prepare(SIGN_UP).await?,
            by_category: client.prepare(&by_category).await?,
            by_actor: client.prepare(&by_actor).await?,
            by_title: client.prepare(&by_title).await?,
            prices: client.prepare(PRICES).await?,
            purchase: client.prepare(PURCHASE).await?,
        })
    }
}

/// What the library says where a server asks for a password and none was given.
const PASSWORD_MISSING: &str = "password missing";

impl Access {
    /// What an error of the library means for a visit.
    pub(super) fn failure(&self, error: &Error) -> Failure {
        let Some(said) = error.as_db_error() else {
            let cause = std::error::Error::source(error);
            let mut text = cause.map_or_else(|| error.to_string(), |cause| cause.to_string());
            if text == PASSWORD_MISSING {
                text.push_str("; name the file whose first line it is: password_file");
            }
            return match error.is_closed() || cause.is_some_and(|cause| cause.is::<io::Error>()) {
                true => Failure::Lost(self.says(&text)),
                false => Failure::Fatal(ClientError::Unusable(self.says(&text))),
            };
        };
        let text = self.says(&format!("{} (SQLSTATE {})", said.message(), said.code().code()));
        match said.code() {
            code if *code == SqlState::T_R_SERIALIZATION_FAILURE
                || *code == SqlState::T_R_DEADLOCK_DETECTED
                || *code == SqlState::LOCK_NOT_AVAILABLE
                // What the server lets run only for so long has done nothing.
                || *code == SqlState::QUERY_CANCELED =>
            {
                Failure::Conflict
            }
            code if *code == SqlState::TOO_MANY_CONNECTIONS
                || *code == SqlState::CANNOT_CONNECT_NOW =>
            {
                Failure::Busy(text)
            }
            code if *code == SqlState::ADMIN_SHUTDOWN
                || *code == SqlState::CRASH_SHUTDOWN
                || code.code().starts_with("08") =>
            {
                Failure::Lost(text)
            }
            code if *code == SqlState::DISK_FULL => Failure::NoSpace(text),
            code if code.code().starts_with("28") => Failure::Fatal(ClientError::Unusable(
                format!("{text}; see to the user in the address and to password_file"),
            )),
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                Failure::Fatal(ClientError::Unusable(format!(
                    "{text}; grant it to the user in the address, or let it own the database",
                )))
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => {
                Failure::Fatal(ClientError::Unusable(format!(
                    "{text}; make it (`createdb {}`) or name another one in the address",
                    self.database
                )))
            }
            code if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED => {
                Failure::wrong(text)
            }
            _ => Failure::Fatal(ClientError::Database {
                database: self.place(),
                text: format!("{} (SQLSTATE {})", said.message(), said.code().code()),
            }),
        }
    }

    fn says(&self, text: &str) -> String {
        format!("{}: {text}", self.place())
    }

    /// The server has not answered for too long.
    pub(super) fn silent(&self) -> Failure {
        let seconds = self.timeout_ns / plimsoll_io::NANOS_PER_SECOND;
        Failure::Lost(self.says(&format!("no answer within {seconds} s")))
    }
}

/// TLS as the library asks for it; the handshake is that of our network.
struct Tls {
    client: Option<TlsClient>,
    name: String,
}

impl TlsConnect<Box<dyn Stream>> for Tls {
    type Stream = Secured;
    type Error = StreamError;
    type Future = Pin<Box<dyn Future<Output = Result<Secured, StreamError>>>>;

    fn connect(self, stream: Box<dyn Stream>) -> Self::Future {
        Box::pin(async move {
            match self.client {
                Some(client) => Ok(Secured(client.handshake(stream, &self.name).await?)),
                None => Ok(Secured(stream)),
            }
        })
    }
}

struct Secured(Box<dyn Stream>);

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
