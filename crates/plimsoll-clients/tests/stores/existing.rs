//! A store that somebody else made is driven as it is: nothing is made there, nothing is taken for granted, nothing is left behind.

use std::rc::Rc;

use plimsoll_clients::client::{ClientError, StoreClient};
use plimsoll_clients::postgresql::{PostgresStore, Source};
use plimsoll_workload::store::VisitEnd;

use crate::servers::Server;
use crate::world::{Door, access, ended, run, sessions};

const OBJECTS: &str = "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace) || ' ' || \
    (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)";

/// Its inventory does not add up from the start, as after runs of a driver that loses updates: only what this run adds is judged.
#[test]
fn a_store_of_somebody_else_is_driven_and_audited_from_where_it_stood() {
    let Some(mut server) = Server::start("postgresql") else {
        return;
    };
    let access = access(&server);
    let own = Door::Postgres(access.clone());
    run(|world| async move {
        own.open(&world).await.expect("it opens");
    });
    server.sql("shop", "DROP TABLE plimsoll_marker; UPDATE inventory SET sales = sales + 5 WHERE prod_id < 4; UPDATE products SET actor = 'ANN OTHER', title = 'SOME THING'");
    let before = server.sql("shop", OBJECTS);
    run(|world| async move {
        let open = || {
            PostgresStore::open(
                &world.handle,
                world.network.clone(),
                access.clone(),
                Source::Existing,
            )
        };
        let store: Rc<dyn StoreClient> = Rc::new(open().await.expect("it opens"));
        assert_eq!(
            (store.population().customers, store.population().products),
            (2_000, 10_000)
        );
        let visits = sessions(&world, &store, 4, 2).await;
        assert!(ended(&visits, VisitEnd::Sold) > 20);
        let found: u32 = visits.iter().map(|(visit, _)| visit.rows_found).sum();
        assert!(
            found as usize > visits.len(),
            "searches are for what is there: {found} rows"
        );
        assert_eq!(
            store.audit().await.expect("it reads").findings(&store.counts()),
            Vec::<String>::new()
        );
        store.close().await.expect("it closes");
        // Its new customers do not meet those of the run before.
        let again: Rc<dyn StoreClient> = Rc::new(open().await.expect("it opens"));
        sessions(&world, &again, 2, 1).await;
        assert_eq!(
            again.audit().await.expect("it reads").findings(&again.counts()),
            Vec::<String>::new()
        );
        let lost = "UPDATE inventory SET sales = sales - 1 WHERE prod_id = 9";
        server.sql("shop", lost);
        let findings = again.audit().await.expect("it reads").findings(&again.counts());
        assert!(
            findings.len() == 1 && findings[0].starts_with("lost updates"),
            "{findings:?}"
        );
        assert_eq!(server.sql("shop", OBJECTS), before, "nothing is left behind");
    });
}

/// A database without such tables is refused, with what is missing.
#[test]
fn a_database_without_a_store_is_refused() {
    let Some(server) = Server::start("postgresql") else {
        return;
    };
    let access = access(&server);
    let refused = run(|world| async move {
        PostgresStore::open(&world.handle, world.network.clone(), access, Source::Existing)
            .await
            .err()
    });
    let refused = refused.expect("nothing is there");
    assert!(matches!(refused, ClientError::NotOurs(_)), "{refused}");
    assert!(
        refused.to_string().contains("has no table customers"),
        "{refused}"
    );
}
