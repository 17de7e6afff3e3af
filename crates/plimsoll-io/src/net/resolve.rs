//! From a name to addresses. Numbers are read here; names are asked of the system's resolver, which
//! blocks, on a thread of their own.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use super::{StreamError, address};
use crate::executor::{Outside, reply};
use crate::{Permits, posix};

/// So many names are asked for at once.
pub(super) const LOOKUPS_MAX: usize = 4;

/// The addresses that `text`, `host:port`, stands for, in the resolver's order.
pub(super) async fn resolve(
    text: &str,
    outside: &Outside,
    lookups: &Permits,
) -> Result<Vec<SocketAddr>, StreamError> {
    let (host, port) = address::parse(text)?;
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let unknown = |reason: String| StreamError::UnknownName { name: host.to_owned(), reason };
    let _permit = lookups.acquire().await;
    let (replier, found) = reply(outside);
    let wanted = (host.to_owned(), port);
    std::thread::Builder::new()
        .name("plimsoll-names".to_owned())
        .spawn(move || {
            posix::block_signals();
            let found = wanted.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            replier.send(found.map_err(|error| error.to_string()));
        })
        .map_err(|error| unknown(format!("no thread could be started: {error}")))?;
    let found = found.await.expect("the thread always answers").map_err(unknown)?;
    if found.is_empty() {
        return Err(unknown("it has no address".to_owned()));
    }
    Ok(found)
}
