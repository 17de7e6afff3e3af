//! What can become of a server: killed and started again, full of connections, in the way of
//! another session, closed to us.

use std::time::Duration;

use plimsoll_clients::client::ClientError;
use plimsoll_clients::client::Source;
use plimsoll_clients::postgresql::PostgresStore;
use plimsoll_io::{NANOS_PER_SECOND, TlsClient};
use plimsoll_workload::store::VisitEnd;

use crate::servers::Server;
use crate::world::{
    Door, ONE, Place, access, catalogue, check_audit, ended, run, servers, sessions,
};

/// Work of an administrator while sessions order.
fn meanwhile<T: Send + 'static>(
    mut place: Place,
    work: impl FnOnce(&mut Server) -> T + Send + 'static,
) -> std::thread::JoinHandle<(Place, T)> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        let done = work(place.server().expect("it is on one"));
        (place, done)
    })
}

/// Orders that were under way are lost or not, and it is known how many; what was acknowledged is
/// there, and sessions go on.
#[test]
fn a_server_that_is_killed_and_started_again_loses_nothing_acknowledged() {
    for place in servers() {
        let (door, name) = (place.door(), place.name());
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let crash = meanwhile(place, |server| {
                server.kill();
                std::thread::sleep(Duration::from_millis(300));
                server.start_again();
            });
            let visits = sessions(&world, &store, 4, 8).await;
            let lost = ended(&visits, VisitEnd::ConnectionLost);
            let reconnects: u32 = visits.iter().map(|(visit, _)| visit.reconnects).sum();
            assert!(
                lost >= 1 && lost + u64::from(reconnects) >= 4,
                "{name}: each session noticed, {lost} and {reconnects}"
            );
            let troubles =
                visits.iter().filter(|(visit, _)| visit.trouble.is_some()).count() as u64;
            assert!(troubles >= lost, "{name}: what the server said is kept");
            let last = visits.last().expect("there were some");
            assert!(
                matches!(last.0.end, VisitEnd::Sold | VisitEnd::OutOfStock),
                "{name}: {last:?}"
            );
            assert!(ended(&visits, VisitEnd::Sold) > 20, "{name}");
            check_audit(store.as_ref()).await;
            let unknown = store.counts().orders_unknown + store.counts().customers_unknown;
            assert!(unknown <= lost, "{name}: {unknown} of {lost}");
            let (_place, ()) = crash.join().expect("it works");
        });
    }
}

/// A wrong password is said at once, with what to look at, and shown nowhere.
#[test]
fn a_wrong_password_or_database_is_said_and_not_shown() {
    for place in servers() {
        let mut doors = Vec::new();
        for (password, database, wanted) in
            [("wrong-word", "shop", "password_file"), ("a-word-of-tests", "nowhere", "nowhere")]
        {
            let mut door = place.door();
            match &mut door {
                Door::Postgres(access) => {
                    (access.password, access.database) = (Some(password.into()), database.into());
                }
                Door::MariaDb(access) => {
                    (access.password, access.database) = (Some(password.into()), database.into());
                }
                _ => unreachable!("it is on a server"),
            }
            doors.push((door, wanted));
        }
        for (door, wanted) in doors {
            let error =
                run(|world| async move { door.open(&world).await.err() }).expect("it is refused");
            let text = error.to_string();
            assert!(matches!(error, ClientError::Unusable(_)), "{text}");
            assert!(text.contains(wanted) && !text.contains("wrong-word"), "{text}");
        }
    }
}

/// More sessions than the server has connections: some are refused and counted, the others go on,
/// and the audit has one.
#[test]
fn the_limit_of_connections_is_counted_and_not_an_error() {
    for mut place in servers() {
        let (door, name) = (place.door(), place.name());
        let limit = match &place {
            Place::MariaDb(_) => {
                "GRANT USAGE ON *.* TO shop@'127.0.0.1' WITH MAX_USER_CONNECTIONS 3"
            }
            _ => "ALTER ROLE shop CONNECTION LIMIT 3",
        };
        place.server().expect("it is on one").sql("shop", limit);
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let visits = sessions(&world, &store, 6, 3).await;
            assert!(ended(&visits, VisitEnd::ConnectionRefused) >= 2, "{name}");
            assert!(ended(&visits, VisitEnd::Sold) > 20, "{name}");
            check_audit(store.as_ref()).await;
        });
    }
}

/// Whoever is in the way makes purchases begin again, inside their response time, and that is
/// counted.
#[test]
fn conflicts_are_tried_again_and_counted() {
    for mut place in servers() {
        let (door, name) = (place.door(), place.name());
        let (setting, in_the_way) = match &place {
            Place::MariaDb(_) => (
                "SET GLOBAL innodb_lock_wait_timeout = 1",
                "BEGIN; UPDATE INVENTORY SET SALES = SALES + 0; DO SLEEP(2.5); ROLLBACK",
            ),
            _ => (
                "ALTER ROLE shop SET lock_timeout = 200",
                "BEGIN; LOCK TABLE inventory; SELECT pg_sleep(2); ROLLBACK",
            ),
        };
        place.server().expect("it is on one").sql("shop", setting);
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let other = meanwhile(place, move |server| server.sql("shop", in_the_way));
            let visits = sessions(&world, &store, 4, 5).await;
            let retries: u32 = visits.iter().map(|(visit, _)| visit.retries).sum();
            assert!(retries > 0, "{name}: somebody was in the way");
            assert!(ended(&visits, VisitEnd::Sold) > 20, "{name}");
            check_audit(store.as_ref()).await;
            let (_place, _said) = other.join().expect("it works");
        });
    }
}

/// At the strictest isolation the server aborts some of two that meet: a failed serialisation is
/// tried again like a deadlock.
#[test]
fn failed_serialisations_are_tried_again() {
    let Some(mut server) = Server::start("postgresql") else {
        return;
    };
    server.sql("shop", "ALTER ROLE shop SET default_transaction_isolation = 'serializable'");
    let access = access(&server);
    run(|world| async move {
        let door = Door::Postgres(access);
        let store = door.open(&world).await.expect("it opens");
        let in_the_way =
            "BEGIN; UPDATE inventory SET sales = sales + 0; SELECT pg_sleep(1); COMMIT";
        let place = Place::Postgres(Box::new(server));
        let other = meanwhile(place, move |server| server.sql("shop", in_the_way));
        let visits = sessions(&world, &store, 8, 4).await;
        let retries: u32 = visits.iter().map(|(visit, _)| visit.retries).sum();
        assert!(retries >= 4, "each that waited had to begin again: {retries}");
        check_audit(store.as_ref()).await;
        let (_place, _said) = other.join().expect("it works");
    });
}

/// TLS by the certificate that is trusted; a server with another one is not talked to.
#[test]
fn a_server_is_talked_to_in_secret_where_that_is_asked_for() {
    let Some(mut server) = Server::start("postgresql") else {
        return;
    };
    let mut secret = access(&server);
    secret.host = "localhost".into();
    let mut stranger = secret.clone();
    let certificate = std::fs::read(server.text("ca_file")).expect("it is there");
    secret.tls = Some(TlsClient::trusting(&certificate).expect("it is one"));
    let other = include_bytes!("../../../plimsoll-io/tests/net/tls/stranger.pem");
    stranger.tls = Some(TlsClient::trusting(other).expect("it is one"));
    run(|world| async move {
        let source = Source::Made(catalogue());
        let refused =
            PostgresStore::open(&world.handle, world.network.clone(), vec![stranger], ONE, source)
                .await;
        let text = refused.err().expect("nobody vouches for it").to_string();
        assert!(text.contains("TLS") || text.contains("certificate"), "{text}");
        let store = Door::Postgres(secret).open(&world).await.expect("it opens");
        let visits = sessions(&world, &store, 2, 1).await;
        assert!(ended(&visits, VisitEnd::Sold) > 1);
        let seen = server.sql(
            "shop",
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity \
         USING (pid) WHERE ssl AND usename = 'shop'",
        );
        assert!(seen != "0", "the server says who is talked to in secret");
        check_audit(store.as_ref()).await;
    });
}

/// What a server is set to by which commits can be lost is told, as it is at the moment.
#[test]
fn settings_that_lose_commits_are_told() {
    for mut place in servers() {
        let (door, name) = (place.door(), place.name());
        let (before, changes, after): (&[&str], &[&str], &[&str]) = match &place {
            Place::MariaDb(_) => (
                &["innodb_flush_method is nosync"],
                &[
                    "SET GLOBAL innodb_flush_log_at_trx_commit = 0",
                    "ALTER TABLE CUST_HIST ENGINE = Aria",
                ],
                &[
                    "innodb_flush_log_at_trx_commit is 0",
                    "innodb_flush_method is nosync",
                    "table CUST_HIST is kept by Aria",
                ],
            ),
            _ => (
                &["fsync is off"],
                &[
                    "ALTER ROLE shop SET synchronous_commit = off",
                    "ALTER TABLE orders SET UNLOGGED",
                ],
                &["fsync is off", "synchronous_commit is off", "table orders is unlogged"],
            ),
        };
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            assert_eq!(store.commits_at_risk().await.expect("it says"), before, "{name}");
            for change in changes {
                place.server().expect("it is on one").sql("shop", change);
            }
            assert_eq!(store.commits_at_risk().await.expect("it says"), after, "{name}");
            store.close().await.expect("it closes");
        });
    }
}

/// A server that lets statements take only so long ends no run: what it cancelled has done nothing,
/// and is tried again. The audit, which takes as long as a store is large, has all the time.
#[test]
fn what_a_server_cancels_is_tried_again_and_the_audit_is_not_cancelled() {
    let Some(mut server) = Server::start("postgresql") else {
        return;
    };
    server.sql("shop", "ALTER ROLE shop SET statement_timeout = 300");
    let access = access(&server);
    run(|world| async move {
        let store = Door::Postgres(access).open(&world).await.expect("it opens");
        let in_the_way = "BEGIN; LOCK TABLE inventory; SELECT pg_sleep(1); ROLLBACK";
        let other = meanwhile(Place::Postgres(Box::new(server)), move |server| {
            server.sql("shop", in_the_way);
        });
        let visits = sessions(&world, &store, 4, 4).await;
        let retries: u32 = visits.iter().map(|(visit, _)| visit.retries).sum();
        assert!(retries >= 4, "each that waited had to begin again: {retries}");
        let (place, ()) = other.join().expect("it works");
        let locked = meanwhile(place, move |server| {
            server.sql("shop", "BEGIN; LOCK TABLE cust_hist; SELECT pg_sleep(2); ROLLBACK");
        });
        world.handle.sleep(2 * NANOS_PER_SECOND).await;
        check_audit(store.as_ref()).await;
        let _ = locked.join().expect("it works");
    });
}
