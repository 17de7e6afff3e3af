//! The claim of a database by a run: what becomes of it when its connection is lost, and databases
//! whose names leave no room in those of locks.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_clients::client::{ClientError, Hold, StoreClient};
use plimsoll_io::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND};

use crate::servers::Server;
use crate::world::{Door, Place, World, check_audit, run, servers, sessions};

/// What holds the claim, as the administrator finds it.
const POSTGRESQL_HOLDER: &str = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND \
     classid = 1179 AND objid = 511368263";
const MARIADB_HOLDER: &str = "SELECT IS_USED_LOCK(CONCAT('plimsoll run ', SHA1('shop')))";

/// The connection that holds the claim.
fn holder(place: &mut Place) -> String {
    let asking = if is_mariadb(place) { MARIADB_HOLDER } else { POSTGRESQL_HOLDER };
    let found = server(place).sql("shop", asking);
    assert!(found.parse::<u64>().is_ok(), "somebody has claimed the database: {found:?}");
    found
}

/// Ends the connection that holds it, and says more at once.
fn end_holder(place: &mut Place, and: &str) {
    let holder = holder(place);
    let end = match is_mariadb(place) {
        true => format!("KILL {holder}; {and}"),
        false => format!("SELECT pg_terminate_backend({holder}, 5000); {and}"),
    };
    server(place).sql("shop", &end);
}

fn server(place: &mut Place) -> &mut Server {
    place.server().expect("it is on one")
}

fn is_mariadb(place: &Place) -> bool {
    matches!(place, Place::MariaDb(_))
}

/// What it says of its claim once that is not what it was; asked ten times a second, for ten
/// seconds at most.
async fn until_changed(
    world: &World,
    store: &Rc<dyn StoreClient>,
    before: Hold,
) -> Result<Hold, ClientError> {
    let until = world.handle.now() + 10 * NANOS_PER_SECOND;
    loop {
        let found = store.hold().await;
        if found != Ok(before) || world.handle.now() > until {
            return found;
        }
        world.handle.sleep(100 * NANOS_PER_MILLISECOND).await;
    }
}

/// A server, or who looks after it, may end any connection. The run takes the database again before
/// another one comes.
#[test]
fn a_claim_whose_connection_was_ended_is_taken_again() {
    for mut place in servers() {
        let (name, door) = (place.name(), place.door());
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            assert_eq!(store.hold().await, Ok(Hold::Kept), "{name}");
            let before = holder(&mut place);
            end_holder(&mut place, "SELECT 1");
            let found = until_changed(&world, &store, Hold::Kept).await;
            assert_eq!(found, Ok(Hold::Again), "{name}");
            assert_eq!(store.hold().await, Ok(Hold::Kept), "{name}");
            assert_ne!(holder(&mut place), before, "{name}");
            let refused = door.open(&world).await.err().expect("a run has it").to_string();
            assert!(refused.contains("is in use"), "{name}: {refused}");
            sessions(&world, &store, 2, 1).await;
            check_audit(store.as_ref()).await;
            store.close().await.expect("it closes");
            assert_eq!(store.hold().await, Ok(Hold::Kept), "{name}: closed, it claims nothing");
            door.open(&world).await.expect("nobody has it").close().await.expect("it closes");
        });
    }
}

/// Another run that came in between is not shared with: what both do would be mixed.
#[test]
fn a_database_that_another_run_took_meanwhile_is_no_longer_driven() {
    for mut place in servers() {
        let (name, door) = (place.name(), place.door());
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let other = std::thread::spawn(move || {
                let and = match is_mariadb(&place) {
                    true => "DO GET_LOCK(CONCAT('plimsoll run ', SHA1('shop')), 5); DO SLEEP(3)",
                    false => "SELECT pg_advisory_lock(5064277810247); SELECT pg_sleep(3)",
                };
                end_holder(&mut place, and);
                place
            });
            // The other one is quicker, as a run is that waits for the database.
            world.handle.sleep(NANOS_PER_SECOND).await;
            let found = until_changed(&world, &store, Hold::Kept).await;
            let text = found.expect_err("another has it").to_string();
            assert!(text.contains("another run works with it since"), "{name}: {text}");
            drop(other.join().expect("it works"));
        });
    }
}

/// A server that was started again has forgotten who had claimed what.
#[test]
fn a_claim_that_a_crash_took_is_taken_again() {
    for mut place in servers() {
        let (name, door) = (place.name(), place.door());
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            server(&mut place).kill();
            let found = until_changed(&world, &store, Hold::Kept).await;
            assert_eq!(found, Ok(Hold::Lost), "{name}");
            server(&mut place).start_again();
            let found = until_changed(&world, &store, Hold::Lost).await;
            assert_eq!(found, Ok(Hold::Again), "{name}");
            holder(&mut place);
        });
    }
}

/// The name of a lock on MySQL has as many letters as that of a database, 64. Who makes a store
/// there waits for whoever does the same, by a name that fits.
#[test]
fn a_database_with_the_longest_name_is_used_and_made_by_one_alone() {
    let Some(mut server) = Server::start("mariadb") else {
        return;
    };
    let name = "s".repeat(64);
    let made = format!("CREATE DATABASE {name}; GRANT ALL ON {name}.* TO shop@'127.0.0.1'");
    server.sql("mysql", &made);
    let mut place = Place::MariaDb(Box::new(server));
    let mut door = place.door();
    let Door::MariaDb(access) = &mut door else { unreachable!("it is one") };
    access.database.clone_from(&name);
    run(|world| async move {
        let other = std::thread::spawn(move || {
            let lock = format!("CONCAT('plimsoll make ', SHA1('{name}'))");
            let held = format!("DO GET_LOCK({lock}, 0); DO SLEEP(2.5); SELECT LENGTH({lock})");
            let letters = self::server(&mut place).sql("mysql", &held);
            assert!(letters.parse::<u64>().expect("a number") <= 64, "{letters}");
            place
        });
        std::thread::sleep(Duration::from_millis(500));
        let begun = world.handle.now();
        let store = door.open(&world).await.expect("it opens");
        assert!(world.handle.now() - begun > NANOS_PER_SECOND, "somebody else was making one");
        sessions(&world, &store, 2, 1).await;
        check_audit(store.as_ref()).await;
        drop(other.join().expect("it works"));
    });
}
