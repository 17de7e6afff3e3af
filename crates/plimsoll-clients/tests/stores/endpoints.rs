//! Endpoints that do not lead to the same database.

use std::rc::Rc;

use plimsoll_clients::client::{ClientError, Mode, Result, Source, StoreClient};
use plimsoll_clients::endpoints::Distribution;
use plimsoll_clients::mysql::MysqlStore;
use plimsoll_clients::postgresql::PostgresStore;
use plimsoll_io::NANOS_PER_SECOND;
use plimsoll_workload::store::Catalogue;

use crate::world::{Door, Place, SEED, World, catalogue, run, servers, session};

/// Makes another, empty database of the user, and the door to it.
fn make_other(place: &mut Place, name: &str) -> Door {
    let mut door = place.door();
    let server = place.server().expect("it is on one");
    match &mut door {
        Door::Postgres(access) => {
            server.sql("postgres", &format!("CREATE DATABASE {name} OWNER shop"));
            access.database = name.into();
        }
        Door::MariaDb(access) => {
            let rights = format!("GRANT ALL ON {name}.* TO shop@'127.0.0.1'");
            server.sql("mysql", &format!("CREATE DATABASE {name}; {rights}"));
            access.database = name.into();
        }
        Door::File(_) | Door::Engine(_) => unreachable!("it is on a server"),
    }
    door
}

/// A store with two endpoints, of which each connection takes the next.
async fn open_both(
    world: &World,
    first: &Door,
    second: &Door,
    source: Source,
) -> Result<Rc<dyn StoreClient>> {
    let (handle, by_turns) = (&world.handle, Distribution::RoundRobin);
    Ok(match (first, second) {
        (Door::Postgres(one), Door::Postgres(two)) => {
            let accesses = vec![one.clone(), two.clone()];
            let network = world.network.clone();
            Rc::new(PostgresStore::open(handle, network, accesses, by_turns, source).await?)
        }
        (Door::MariaDb(one), Door::MariaDb(two)) => {
            let accesses = vec![one.clone(), two.clone()];
            Rc::new(MysqlStore::open(handle, accesses, by_turns, source).await?)
        }
        _ => unreachable!("both are on servers of one kind"),
    })
}

/// Two sessions, one at each endpoint: what the first that failed said.
async fn both_sessions(world: &World, store: &Rc<dyn StoreClient>) -> Option<ClientError> {
    let deadline = world.handle.now() + NANOS_PER_SECOND;
    let begun: Vec<_> = (0..2)
        .map(|_| world.handle.spawn(session(world.handle.clone(), store.clone(), deadline)))
        .collect();
    let mut failed = None;
    for session in begun {
        failed = failed.or(session.await.err());
    }
    failed
}

/// An endpoint that leads elsewhere is refused before anything is ordered there, and left as it is:
/// an empty database, a store of another seed, and one that differs in the runs it has seen.
#[test]
fn an_endpoint_of_another_database_is_refused_by_its_name() {
    for mut place in servers() {
        let (name, door) = (place.name(), place.door());
        run(|world| async move {
            for (other, made, holds) in [
                ("empty", None, "no store"),
                ("strange", Some(SEED + 1), "made with seed 12"),
                ("copied", Some(SEED), "that has seen 1 runs"),
            ] {
                let leads_to = make_other(&mut place, other);
                if let Some(seed) = made {
                    let made = Catalogue::new(seed, catalogue().scale());
                    let store = leads_to.open_as(&world, made).await.expect("it opens");
                    store.close().await.expect("it closes");
                }
                door.open(&world).await.expect("it opens").close().await.expect("it closes");
                let source = Source::Made(catalogue());
                let store = open_both(&world, &door, &leads_to, source).await.expect("it opens");
                let error = both_sessions(&world, &store).await.expect("one leads elsewhere");
                let text = error.to_string();
                assert!(matches!(error, ClientError::NotOurs(_)), "{name}: {text}");
                assert!(text.contains(&format!("/{other} is another database than")), "{text}");
                assert!(text.contains("it holds ") && text.contains(holds), "{name}: {text}");
                store.close().await.expect("it closes");
            }
        });
    }
}

/// Of a store that somebody else made nothing is known before. What was acknowledged at one
/// endpoint is missing at the other, and each is looked at.
#[test]
fn the_audit_of_each_endpoint_tells_which_leads_elsewhere() {
    for mut place in servers() {
        let (name, door) = (place.name(), place.door());
        let other = make_other(&mut place, "other");
        run(|world| async move {
            for door in [&door, &other] {
                let store = door.open(&world).await.expect("it opens");
                store.close().await.expect("it closes");
            }
            let existing = Source::Existing(Mode::Version2);
            let store = open_both(&world, &door, &other, existing).await.expect("it opens");
            assert_eq!(both_sessions(&world, &store).await, None, "{name}");
            let findings = store.audit().await.expect("it reads").findings(&store.counts());
            assert!(findings.join(" ").contains("were acknowledged"), "{name}: {findings:?}");
            let audits = store.audits().await.expect("they read");
            let [(first, here), (second, there)] = &audits[..] else { panic!("{audits:?}") };
            assert!(first.ends_with("/shop") && second.ends_with("/other"), "{name}");
            let made = catalogue().scale().orders();
            let sold = here.orders + there.orders - 2 * made;
            assert!(there.orders > made && here.orders > made, "{name}: {audits:?}");
            assert_eq!(store.counts().orders, made + sold, "{name}");
            drop(place);
        });
    }
}
