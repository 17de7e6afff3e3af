//! A store that somebody else made is driven as it is: nothing is made there, nothing is taken for
//! granted, nothing is left behind.

use plimsoll_clients::client::{ClientError, Mode};
use plimsoll_workload::store::VisitEnd;

use crate::world::{Place, catalogue, ended, run, servers, sessions};

/// Everything that a database has beside its rows, by the kind of server.
fn objects(kind: &str) -> &'static str {
    match kind {
        "postgresql" => {
            "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace) || \
             ' ' || (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)"
        }
        _ => {
            "SELECT group_concat(TABLE_NAME ORDER BY TABLE_NAME) FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = 'shop'"
        }
    }
}

/// Its inventory does not add up from the start, as after runs of a driver that loses updates: only
/// what this run adds is judged. Its names hold what is an operator to searches of text.
#[test]
fn a_store_of_somebody_else_is_driven_and_audited_from_where_it_stood() {
    for place in servers() {
        drive(place);
    }
}

fn drive(mut place: Place) {
    let (kind, door) = (place.name(), place.door());
    let own = door.clone();
    run(|world| async move {
        own.open(&world).await.expect("it opens").close().await.expect("it closes");
    });
    let server = place.server().expect("it lies on one");
    for text in [
        "DROP TABLE plimsoll_marker",
        "UPDATE INVENTORY SET SALES = SALES + 5 WHERE PROD_ID < 4",
        "UPDATE PRODUCTS SET ACTOR = CONCAT('ANN O''OTHER-SIDE', PROD_ID + 100000, ' (+X)'), \
         TITLE = CONCAT('A \"THING', PROD_ID + 100000, '\" @ HOME')",
    ] {
        server.sql("shop", text);
    }
    let before = server.sql("shop", objects(kind));
    run(|world| async move {
        let store = door.open_existing(&world, Mode::Version2).await.expect("it opens");
        assert_eq!((store.population().customers, store.population().products), (2_000, 10_000));
        assert!(store.catalogue().is_none());
        let visits = sessions(&world, &store, 4, 2).await;
        assert!(ended(&visits, VisitEnd::Sold) > 20, "{kind}");
        let found: u32 = visits.iter().map(|(visit, _)| visit.rows_found).sum();
        assert!(found as usize > visits.len(), "{kind}: searches are for what is there: {found}");
        let sound = Vec::<String>::new();
        let audit = store.audit().await.expect("it reads");
        assert_eq!(audit.findings(&store.counts()), sound, "{kind}");
        store.close().await.expect("it closes");
        // Its new customers do not meet those of the run before.
        let again = door.open_existing(&world, Mode::Version2).await.expect("it opens");
        sessions(&world, &again, 2, 1).await;
        let audit = again.audit().await.expect("it reads");
        assert_eq!(audit.findings(&again.counts()), sound, "{kind}");
        let server = place.server().expect("it lies on one");
        server.sql("shop", "UPDATE INVENTORY SET SALES = SALES - 1 WHERE PROD_ID = 9");
        let findings = again.audit().await.expect("it reads").findings(&again.counts());
        assert!(findings.len() == 1 && findings[0].starts_with("lost updates"), "{findings:?}");
        assert_eq!(server.sql("shop", objects(kind)), before, "{kind}: nothing is left behind");
    });
}

/// Whoever is drawn by number must be there: that was found out by the first who was not, in the
/// middle of a run, and taken for damage.
#[test]
fn a_store_in_which_some_are_missing_is_refused() {
    for mut place in servers() {
        let (kind, door) = (place.name(), place.door());
        let own = door.clone();
        run(|world| async move {
            own.open(&world).await.expect("it opens").close().await.expect("it closes");
        });
        let server = place.server().expect("it lies on one");
        server.sql("shop", "DROP TABLE plimsoll_marker");
        for (gap, said) in [
            ("DELETE FROM PRODUCTS WHERE PROD_ID = 17", "9999 products numbered 1 to 10000"),
            ("DELETE FROM CUSTOMERS WHERE CUSTOMERID = 5", "1999 customers called user1 to 2000"),
            ("DELETE FROM CUSTOMERS WHERE CUSTOMERID < 2001", "0 customers called user1 and so on"),
        ] {
            server.sql("shop", gap);
            let again = door.clone();
            let refused =
                run(|world| async move { again.open_existing(&world, Mode::Version2).await.err() });
            let refused = refused.expect("some are missing");
            assert!(matches!(refused, ClientError::NotOurs(_)), "{kind}: {refused}");
            assert!(refused.to_string().contains(said), "{kind}: {refused}");
        }
    }
}

/// The same with members and reviews.
#[test]
fn reviews_of_somebody_else_are_read_and_rated() {
    for mut place in servers() {
        let (kind, door) = (place.name(), place.door());
        let own = door.clone();
        run(|world| async move {
            let with_reviews = catalogue().with_reviews(300);
            let store = own.open_as(&world, with_reviews).await.expect("it opens");
            store.close().await.expect("it closes");
        });
        place.server().expect("it lies on one").sql("shop", "DROP TABLE plimsoll_marker");
        run(|world| async move {
            let store = door.open_existing(&world, Mode::Version3).await.expect("it opens");
            assert_eq!(store.population().reviews, 300, "{kind}");
            sessions(&world, &store, 4, 3).await;
            let counts = store.counts();
            assert!(counts.reviews + counts.ratings > 300, "{kind}: {counts:?}");
            let audit = store.audit().await.expect("it reads");
            assert_eq!(audit.findings(&counts), Vec::<String>::new(), "{kind}");
            store.close().await.expect("it closes");
            let older = door.open_existing(&world, Mode::Version2).await.expect("it opens");
            assert_eq!(older.population().reviews, 0, "{kind}: they are left alone");
            older.close().await.expect("it closes");
        });
    }
}

/// A database without such tables is refused, with what is missing.
#[test]
fn a_database_without_a_store_is_refused() {
    for place in servers() {
        let door = place.door();
        let refused =
            run(|world| async move { door.open_existing(&world, Mode::Version2).await.err() });
        let refused = refused.expect("nothing is there");
        assert!(matches!(refused, ClientError::NotOurs(_)), "{refused}");
        assert!(refused.to_string().contains("has no table customers"), "{refused}");
    }
}
