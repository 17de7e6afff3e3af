//! One suite for every kind of database: the same rows, the same endings, the same stock and sales.

use std::collections::BTreeSet;

use plimsoll_clients::client::{ClientError, Mode};
use plimsoll_io::{Nanos, Random};
use plimsoll_workload::Demand;
use plimsoll_workload::store::{
    Catalogue, Product, ReviewHabits, Search, SearchBy, Shelves, Step, StoreDemand, StoreHabits,
    VisitEnd,
};

use crate::world::{
    Place, SEED, catalogue, check_audit, demand, ended, places, run, servers, sessions,
};

const ORDERS: usize = 300;

/// Rows that a search must find.
fn matching(products: &[Product], search: &Search) -> u32 {
    let is_found = |product: &&Product| match &search.by {
        SearchBy::Category(category) => product.is_special && product.category == *category,
        SearchBy::Actor(name) => product.actor == *name,
        SearchBy::Title(both) => {
            let mut words = both.split(' ');
            words.all(|word| product.title.split(' ').any(|other| other == word))
        }
    };
    products.iter().filter(is_found).take(search.limit as usize).count() as u32
}

/// What the engine's store is held against, too: stock, sales, endings and rows found of one
/// session are arithmetic, so they are the same behind every kind of database.
#[test]
fn one_session_leaves_the_stock_that_the_rule_says_everywhere() {
    for place in places() {
        let (door, name) = (place.door(), place.name());
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let mut shelves = Shelves::new(&catalogue());
            assert_eq!(
                store.stock_and_sales().await.expect("it reads"),
                shelves.stock_and_sales(),
                "{name}"
            );
            let products: Vec<_> = (1..=10_000).map(|id| catalogue().product(id)).collect();
            let mut demand = demand(store.as_ref());
            let (mut rolled_back, mut found) = (0, 0);
            for _ in 0..ORDERS {
                let task = demand.next(0, None).expect("a store never closes").task;
                let mut sorted = task.lines.clone();
                sorted.sort_unstable();
                let expected = shelves.order(&sorted);
                let visit = store.visit(&task).await.expect("it works");
                assert_eq!((visit.end, &visit.trouble), (expected, &None), "{name}: {task:?}");
                rolled_back += u32::from(expected == VisitEnd::OutOfStock);
                let rows: u32 =
                    task.searches.iter().map(|search| matching(&products, search)).sum();
                assert_eq!(visit.rows_found, rows, "{name}: {:?}", task.searches);
                found += rows;
            }
            assert!(rolled_back > 1 && found > 200, "{name}: {rolled_back}, {found}");
            assert_eq!(
                store.stock_and_sales().await.expect("it reads"),
                shelves.stock_and_sales(),
                "{name}"
            );
            check_audit(store.as_ref()).await;
            assert!(store.size_bytes().await.expect("it reads") > 1 << 20, "{name}");
            store.close().await.expect("it closes");
        });
    }
}

/// Every unit sold stands in one line however many order at once, and steps are parts of their
/// order.
#[test]
fn eight_sessions_lose_nothing() {
    for place in places() {
        let door = place.door();
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let visits = sessions(&world, &store, 8, 2).await;
            assert!(visits.len() > 50, "{}", visits.len());
            check_audit(store.as_ref()).await;
            let sold = ended(&visits, VisitEnd::Sold);
            assert_eq!(store.counts().orders, catalogue().scale().orders() + sold);
            for (visit, response_ns) in &visits {
                let steps: Nanos = visit.steps.iter().map(|(_, took)| took).sum();
                assert!(steps <= *response_ns, "{visit:?} in {response_ns}");
                assert_eq!(visit.steps.last().map(|(step, _)| *step), Some(Step::Purchase));
            }
            store.close().await.expect("it closes");
        });
    }
}

/// Arrivals share a demand and so the number of a session: each visit has a connection to itself
/// all the same.
#[test]
fn visits_of_one_session_at_once_do_not_mix() {
    for place in places() {
        let door = place.door();
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let mut demand = demand(store.as_ref());
            let visits: Vec<_> = (0..12)
                .map(|_| {
                    let (task, store) =
                        (demand.next(0, None).expect("a store never closes").task, store.clone());
                    world.handle.spawn(async move { store.visit(&task).await })
                })
                .collect();
            for visit in visits {
                let end = visit.await.expect("it works").end;
                assert!(matches!(end, VisitEnd::Sold | VisitEnd::OutOfStock), "{end:?}");
            }
            check_audit(store.as_ref()).await;
            store.close().await.expect("it closes");
        });
    }
}

/// The next run goes on with the store of the last one, and nobody's name is taken twice.
#[test]
fn the_next_run_goes_on_where_the_last_one_ended() {
    for place in places() {
        let mut orders = catalogue().scale().orders();
        for _ in 1..=2 {
            let door = place.door();
            orders = run(|world| async move {
                let store = door.open(&world).await.expect("it opens");
                assert_eq!(store.counts().orders, orders);
                sessions(&world, &store, 2, 1).await;
                check_audit(store.as_ref()).await;
                let orders = store.counts().orders;
                store.close().await.expect("it closes");
                orders
            });
        }
        assert!(orders > catalogue().scale().orders());
    }
}

/// A store of another seed or size is refused, and says which it is.
#[test]
fn a_store_of_another_seed_or_size_is_refused() {
    for place in places() {
        let door = place.door();
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            store.close().await.expect("it closes");
            let other = Catalogue::new(12, catalogue().scale());
            let refused = door.open_as(&world, other).await.err().expect("it is another");
            let text = refused.to_string();
            assert!(matches!(refused, ClientError::NotOurs(_)), "{text}");
            assert!(text.contains("a store of 1MB made with seed 11"), "{text}");
            let same = door.open(&world).await.expect("nothing was done to it");
            assert_eq!(same.counts().orders, catalogue().scale().orders());
            same.close().await.expect("it closes");
        });
    }
}

/// Two runs at once would find each other's orders in their audits, so the second is refused before
/// it has done anything; the first one's end, however it ends, lets the next in.
#[test]
fn a_database_that_a_run_works_with_is_refused_to_another() {
    for place in servers() {
        let (name, door) = (place.name(), place.door());
        run(|world| async move {
            let first = door.open(&world).await.expect("it opens");
            for refused in
                [door.open(&world).await, door.open_existing(&world, Mode::Version2).await]
            {
                let text = refused.err().expect("the first one has it").to_string();
                assert!(
                    text.contains(" is in use by ")
                        && text.ends_with("; stop the run that works with it first"),
                    "{name}: {text}"
                );
            }
            sessions(&world, &first, 2, 1).await;
            check_audit(first.as_ref()).await;
            first.close().await.expect("it closes");
            let second = door.open(&world).await.expect("nobody has it");
            drop(second);
            door.open(&world).await.expect("nobody has it").close().await.expect("it closes");
        });
    }
}

/// A database of somebody else is refused and nothing is done to it.
#[test]
fn a_database_of_somebody_else_is_left_alone() {
    for mut place in servers() {
        let server = place.server().expect("it is on one");
        server.sql("shop", "CREATE TABLE precious (id INTEGER)");
        let door = place.door();
        let refused = run(|world| async move { door.open(&world).await.err() });
        let text = refused.expect("it is somebody else's").to_string();
        assert!(text.contains("another user's database: it has a table precious"), "{text}");
        let server = place.server().expect("it is on one");
        let schema = "('public', 'shop')";
        let count = format!(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema IN {schema}"
        );
        assert_eq!(server.sql("shop", &count), "1");
    }
}

/// A purchase that reads the stock and then writes what it made of it loses updates; the audit says
/// so to the unit.
#[test]
fn a_lost_update_is_found() {
    for mut place in servers() {
        let door = place.door();
        run(|world| async move {
            let store = door.open(&world).await.expect("it opens");
            let upper = matches!(place, Place::MariaDb(_));
            let server = place.server().expect("it is on one");
            let table = if upper { "INVENTORY" } else { "inventory" };
            server.sql("shop", &format!("UPDATE {table} SET sales = sales - 3 WHERE prod_id = 7"));
            let findings = store.audit().await.expect("it reads").findings(&store.counts());
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(
                findings[0].starts_with("lost updates: ")
                    && findings[0].ends_with("1 products differ"),
                "{findings:?}"
            );
        });
    }
}

/// Reviews of the test: few products of the ten thousand have any.
const REVIEWS: u64 = 2_000;

/// Members, reviews and ratings: one session finds as many rows everywhere, what was acknowledged
/// is there, and a store keeps what it has for a run that asks for it again.
#[test]
fn reviews_are_found_written_and_rated_alike_everywhere() {
    let with_reviews = catalogue().with_reviews(REVIEWS);
    let mut everywhere = Vec::new();
    for place in places() {
        let (name, door) = (place.name(), place.door());
        let found = run(|world| async move {
            // A store without reviews gets them when it is asked for them first.
            let store = door.open(&world).await.expect("it opens");
            store.close().await.expect("it closes");
            let store = door.open_as(&world, with_reviews).await.expect("it opens");
            let before = store.counts();
            assert_eq!((before.reviews, store.population().reviews), (REVIEWS, REVIEWS), "{name}");
            let often = ReviewHabits {
                new_members_percent: 50.0,
                new_reviews_percent: 50.0,
                new_ratings_percent: 50.0,
                ..ReviewHabits::USUAL
            };
            let habits = StoreHabits { reviews: often, ..StoreHabits::USUAL };
            let random = Random::from_seed(SEED);
            let mut demand = StoreDemand::new(random, habits, store.population(), 0);
            let (mut rows, mut steps) = (Vec::new(), BTreeSet::new());
            for _ in 0..30 {
                let task = demand.next(0, None).expect("a store never closes").task;
                let visit = store.visit(&task).await.expect("it works");
                rows.push(visit.rows_found);
                steps.extend(visit.steps.iter().map(|(step, _)| *step));
            }
            assert_eq!(steps.len(), Step::ALL.len(), "{name}: every step was taken");
            check_audit(store.as_ref()).await;
            let after = store.counts();
            assert!(after.reviews > REVIEWS && after.ratings > before.ratings, "{name}: {after:?}");
            store.close().await.expect("it closes");
            let again = door.open_as(&world, with_reviews).await.expect("it opens");
            let (reviews, ratings) = (again.counts().reviews, again.counts().ratings);
            assert_eq!((reviews, ratings), (after.reviews, after.ratings), "{name}");
            again.close().await.expect("it closes");
            let other = door.open_as(&world, catalogue().with_reviews(REVIEWS + 1)).await.err();
            let other = other.expect("it has others").to_string();
            assert!(other.contains("2000 reviews, not 2001"), "{name}: {other}");
            (rows, after.reviews, after.ratings)
        });
        everywhere.push((name, found));
    }
    for (name, found) in &everywhere {
        assert_eq!(*found, everywhere[0].1, "{name} and {}", everywhere[0].0);
    }
    let rows: u32 = everywhere[0].1.0.iter().sum();
    assert!(rows > 100, "reviews are found: {rows}");
}
