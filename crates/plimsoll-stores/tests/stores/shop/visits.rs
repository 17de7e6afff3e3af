//! What visits do, alone and side by side.

use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_workload::Demand;
use plimsoll_workload::store::{
    Search, SearchBy, Shelves, Step, Visit, VisitEnd, ceiling_opm, expected_rollback_share,
};

use crate::shop::world::*;

/// Sessions side by side for so long in virtual time; their visits and the store.
async fn side_by_side(
    files: plimsoll_io::Files,
    handle: plimsoll_io::Handle,
    sessions: usize,
    think_s: f64,
    seconds: u64,
) -> (Vec<(Visit, Nanos)>, Rc<plimsoll_stores::shop::Shop>) {
    let shop = new_shop(&files, &handle, PageSize::KIB_8).await;
    let deadline = handle.now() + seconds * NANOS_PER_SECOND;
    let tasks: Vec<_> = (0..sessions)
        .map(|_| handle.spawn(session(handle.clone(), shop.clone(), think_s, deadline)))
        .collect();
    let mut visits = Vec::new();
    for task in tasks {
        visits.extend(task.await);
    }
    (visits, shop)
}

/// Searches find what the rows say, no more than wanted: otherwise an empty search would pass for a
/// fast one.
#[test]
fn searches_find_exactly_what_the_rows_say() {
    run_on(&disk(), |files, handle| async move {
        let shop = new_shop(&files, &handle, PageSize::KIB_4).await;
        let products: Vec<_> = (1..=10_000).map(|id| catalogue().product(id)).collect();
        let check = async |by: SearchBy, limit: u32| {
            let wanted: Vec<_> = products
                .iter()
                .filter(|product| match &by {
                    SearchBy::Category(category) => {
                        product.is_special && product.category == *category
                    }
                    SearchBy::Actor(name) => product.actor == *name,
                    SearchBy::Title(both) => both
                        .split(' ')
                        .all(|word| product.title.split(' ').any(|other| other == word)),
                })
                .take(limit as usize)
                .cloned()
                .collect();
            let search = Search { by, limit };
            let found = shop.search(&search).await.expect("the disk is sound");
            assert_eq!(found, wanted, "{search:?}");
            found.len()
        };
        let mut found = 0;
        for category in 1..=16 {
            found += check(SearchBy::Category(category), 1000).await;
        }
        assert!(found > 50, "{found} special offers");
        let [actor, title] = [&products[4711].actor, &products[4711].title];
        assert!(check(SearchBy::Actor(actor.clone()), 9).await >= 1);
        assert_eq!(check(SearchBy::Title(title.clone()), 9).await, 1);
        let turned: Vec<&str> = title.split(' ').rev().collect();
        assert_eq!(check(SearchBy::Title(turned.join(" ")), 9).await, 1);
        assert!(check(SearchBy::Category(3), 2).await <= 2);
        assert_eq!(check(SearchBy::Title("NOSUCH WORD".into()), 5).await, 0);
        close(shop).await;
    });
}

/// A login shows what was bought before, of this customer and nobody else.
#[test]
fn a_login_shows_the_titles_of_this_customer() {
    run_on(&disk(), |files, handle| async move {
        let shop = new_shop(&files, &handle, PageSize::KIB_4).await;
        let mut shown = 0;
        for customer in 1..=200 {
            let mut wanted = Vec::new();
            for id in 1..=catalogue().scale().orders() {
                let order = catalogue().order(id);
                let lines = order.lines.iter().filter(|_| order.customer == customer);
                wanted.extend(lines.map(|line| {
                    let product = catalogue().product(line.product);
                    (product.title, catalogue().product(product.common_product).title)
                }));
            }
            wanted.truncate(10);
            let (number, titles) =
                shop.log_in(&format!("user{customer}")).await.expect("it is there");
            assert_eq!((number as u64, &titles), (customer, &wanted));
            shown += titles.len();
        }
        assert!(shown > 100, "{shown}");
        let error = shop.log_in("user2001").await.expect_err("nobody has this name");
        assert!(error.to_string().contains("customer user2001 is missing"), "{error}");
        close(shop).await;
    });
}

/// The whole loop under contention: every unit sold stands in one line, conflicts are tried again
/// and counted, and the share of orders that are rolled back is the published one.
#[test]
fn twenty_sessions_lose_nothing() {
    let (visits, retries) = run_on(&disk(), |files, handle| async move {
        let (visits, shop) = side_by_side(files, handle, 20, 0.0, 3).await;
        let audit = shop.audit().await.expect("the disk is sound");
        assert_eq!(audit.findings(&shop.counts()), Vec::<String>::new());
        let sold = ended(&visits, VisitEnd::Sold);
        assert_eq!(audit.orders, catalogue().scale().orders() + sold);
        let new = visits.iter().filter(|(visit, _)| visit.steps[0].0 == Step::SignUp).count();
        assert_eq!(audit.customers, catalogue().scale().customers() + new as u64);
        close(shop).await;
        let retries: u32 = visits.iter().map(|(visit, _)| visit.retries).sum();
        (visits, retries)
    });
    assert!(visits.len() > 5_000, "{}", visits.len());
    assert!(retries > 0, "nobody met");
    assert_eq!(ended(&visits, VisitEnd::GivenUp), 0);
    let share = ended(&visits, VisitEnd::OutOfStock) as f64 / visits.len() as f64;
    let expected = expected_rollback_share(5, 10);
    assert!((share - expected).abs() < 0.006, "{share}, expected {expected}");
    let mut met = Step::ALL.to_vec();
    met.retain(|step| visits.iter().any(|(visit, _)| visit.steps.iter().any(|(of, _)| of == step)));
    let without_reviews = [Step::Login, Step::SignUp, Step::Search, Step::Price, Step::Purchase];
    assert_eq!(met, without_reviews);
}

/// The steps of a visit are all of it: their sum is the response time.
#[test]
fn steps_add_up_to_the_visit() {
    let (visits, _) = run_on(&disk(), |files, handle| async move {
        let (visits, shop) = side_by_side(files, handle, 4, 0.1, 3).await;
        close(shop).await;
        (visits, ())
    });
    for (visit, response_ns) in visits {
        let sum: Nanos = visit.steps.iter().map(|(_, took)| took).sum();
        assert_eq!(sum, response_ns);
    }
}

/// Think time bounds the rate as the formula says: 20 sessions that think 1.5 s make 800 orders a
/// minute less what orders take.
#[test]
fn the_rate_is_the_formula() {
    for sessions in [20, 50] {
        let seconds = 60;
        let visits = run_on(&disk(), move |files, handle| async move {
            let (visits, shop) = side_by_side(files, handle, sessions, 1.5, seconds).await;
            close(shop).await;
            visits
        });
        let response_s =
            visits.iter().map(|(_, ns)| *ns as f64).sum::<f64>() / visits.len() as f64 / 1e9;
        let measured = visits.len() as f64 * 60.0 / seconds as f64;
        let ceiling = ceiling_opm(sessions as u64, 1.5, response_s);
        let off = (measured / ceiling - 1.0).abs();
        assert!(off < 0.05, "{measured} orders per minute, the formula says {ceiling}");
    }
}

/// One session alone is arithmetic: stock and sales of every product are what the rule says, order
/// after order, restocked and rolled back ones included.
#[test]
fn one_session_leaves_the_stock_that_the_rule_says() {
    run_on(&disk(), |files, handle| async move {
        let shop = new_shop(&files, &handle, PageSize::KIB_8).await;
        let mut shelves = Shelves::new(&catalogue());
        let mut demand = demand(&shop, 0.0);
        let mut rolled_back = 0;
        for _ in 0..1500 {
            let task = demand.next(0, None).expect("a store never closes").task;
            let mut sorted = task.lines.clone();
            sorted.sort_unstable();
            let expected = shelves.order(&sorted);
            let visit = shop.visit(&task).await.expect("the disk is sound");
            assert_eq!(visit.end, expected, "{task:?}");
            rolled_back += u32::from(expected == VisitEnd::OutOfStock);
        }
        assert!(rolled_back > 5, "{rolled_back}");
        let found = shop.stock_and_sales().await.expect("the disk is sound");
        assert_eq!(found, shelves.stock_and_sales());
        let prepared = Shelves::new(&catalogue());
        let sold = |position: usize| found[position].1 > prepared.stock_and_sales()[position].1;
        let restocked = (0..found.len())
            .filter(|at| sold(*at) && found[*at].0 == prepared.stock_and_sales()[*at].0);
        assert!(restocked.count() > 0, "nothing was restocked");
        close(shop).await;
    });
}

/// A seed decides everything in virtual time: stock, sales, times.
#[test]
fn the_same_seed_gives_the_same_store() {
    let once = || {
        run_on(&disk(), |files, handle| async move {
            let (visits, shop) = side_by_side(files, handle, 7, 0.05, 4).await;
            let stock = shop.stock_and_sales().await.expect("the disk is sound");
            close(shop).await;
            (visits, stock)
        })
    };
    assert_eq!(once(), once());
}
