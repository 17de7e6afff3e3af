//! What becomes of a store between its runs: closed, dropped as by a crash, opened for another one,
//! read by others.

use plimsoll_engine::PageSize;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_io::{NANOS_PER_SECOND, Random};
use plimsoll_stores::shop::Shop;
use plimsoll_workload::store::{Catalogue, Scale};

use crate::shop::world::*;

/// Databases are kept between runs: the next one goes on with the numbers and never meets a name
/// that is taken.
#[test]
fn the_next_run_goes_on_where_the_last_one_ended() {
    run_on(&disk(), |files, handle| async move {
        let mut shop = new_shop(&files, &handle, PageSize::KIB_8).await;
        let mut orders = catalogue().scale().orders();
        for run in 1..=3 {
            assert_eq!((shop.run(), shop.counts().orders), (run, orders));
            let deadline = handle.now() + NANOS_PER_SECOND / 2;
            let visits = session(handle.clone(), shop.clone(), 0.0, deadline).await;
            assert!(visits.len() > 20);
            let audit = shop.audit().await.expect("the disk is sound");
            assert_eq!(audit.findings(&shop.counts()), Vec::<String>::new());
            orders = shop.counts().orders;
            close(shop).await;
            let instance = open_instance(&files, &handle, PageSize::KIB_8).await;
            shop = std::rc::Rc::new(open_shop(&instance).await.expect("it is whole"));
        }
        close(shop).await;
    });
}

/// Whatever was acknowledged is there after a crash, and what was under way is there whole or not
/// at all.
#[test]
fn a_crash_in_the_middle_loses_no_acknowledged_order() {
    for seed in 0..3 {
        let crashed = disk();
        let handle_moment = Random::from_seed(seed).below(NANOS_PER_SECOND);
        run_on(&crashed, move |files, handle| async move {
            let shop = new_shop(&files, &handle, PageSize::KIB_4).await;
            let deadline = handle.now() + 10 * NANOS_PER_SECOND;
            let sessions: Vec<_> = (0..6)
                .map(|_| handle.spawn(session_until_closed(handle.clone(), shop.clone(), deadline)))
                .collect();
            handle.sleep(NANOS_PER_SECOND + handle_moment).await;
            let acknowledged = shop.counts();
            let instance = shop.instance().clone();
            instance.abandon().await.expect("the disk is sound");
            let after = shop.counts();
            drop(shop);
            drop(sessions);
            let instance = open_instance(&files, &handle, PageSize::KIB_4).await;
            let shop = open_shop(&instance).await.expect("it is whole");
            let audit = shop.audit().await.expect("the disk is sound");
            assert!(acknowledged.orders > catalogue().scale().orders(), "nothing was sold");
            let expected = plimsoll_workload::store::StoreCounts {
                orders_unknown: after.orders - acknowledged.orders + 6,
                customers_unknown: after.customers - acknowledged.customers + 6,
                ..acknowledged
            };
            assert_eq!(audit.findings(&expected), Vec::<String>::new(), "seed {seed}");
            drop(shop);
            instance.close().await.expect("it closes");
        });
    }
}

/// A session whose instance goes away below it.
async fn session_until_closed(handle: plimsoll_io::Handle, shop: std::rc::Rc<Shop>, deadline: u64) {
    use plimsoll_workload::Demand;
    let mut demand = demand(&shop, 0.0);
    while handle.now() < deadline {
        let step = demand.next(handle.now(), None).expect("a store never closes");
        if shop.visit(&step.task).await.is_err() {
            return;
        }
    }
}

/// A store of another size or seed is not driven as if it were the one asked for.
#[test]
fn another_store_is_refused() {
    run_on(&disk(), |files, handle| async move {
        let shop = new_shop(&files, &handle, PageSize::KIB_4).await;
        let instance = shop.instance().clone();
        for other in
            [Catalogue::new(SEED + 1, catalogue().scale()), Catalogue::new(SEED, Scale::SMALL)]
        {
            let refused = Shop::open(&instance, other, Box::new(|_, _, _| {})).await;
            let error = refused.err().expect("it is another").to_string();
            assert!(error.contains("holds a store of 1MB made with seed 11"), "{error}");
        }
        drop(instance);
        close(shop).await;
    });
}

/// What a run leaves is an ordinary database: the deep check finds nothing and another reader finds
/// every order.
#[test]
fn what_is_left_is_sound_and_readable() {
    for size in [PageSize::KIB_4, PageSize::KIB_32] {
        run_on(&disk(), move |files, handle| async move {
            let shop = new_shop(&files, &handle, size).await;
            let deadline = handle.now() + NANOS_PER_SECOND;
            session(handle.clone(), shop.clone(), 0.0, deadline).await;
            let orders = shop.counts().orders;
            close(shop).await;
            let reader =
                DatabaseReader::open(&files, &handle, &database(), WhenDirty::Refuse).await;
            let reader = reader.expect("it is clean");
            let table = reader.table("ORDERS").expect("it is there");
            let mut rows = reader.rows(table);
            let mut count = 0;
            while rows.next().await.expect("it can be read").is_some() {
                count += 1;
            }
            assert_eq!(count, orders);
            let report = verify_deep(&files, &handle, database(), DeepOptions::default()).await;
            let report = report.expect("it can be read");
            assert!(report.is_sound(), "{:#?}", report.findings);
        });
    }
}
