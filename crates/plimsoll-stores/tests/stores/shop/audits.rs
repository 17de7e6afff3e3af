//! The audit finds what it is for: a purchase that reads the stock in one transaction and writes
//! what it made of it in another.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{ColumnType, PageSize};
use plimsoll_io::{Handle, NANOS_PER_MILLISECOND};
use plimsoll_stores::shop::{INVENTORY, ORDERLINES, Sheet, Shop};
use plimsoll_workload::store::{Line, StoreCounts, VisitEnd};

use crate::shop::world::*;

const STOCK: usize = 1;
const SALES: usize = 2;

async fn inventory(shop: &Shop) -> Sheet {
    let columns = ["PROD_ID", "QUAN_IN_STOCK", "SALES"].map(|name| (name, ColumnType::Long));
    let opened = Sheet::open(shop.instance(), INVENTORY, &columns).await;
    opened.expect("the table is there")
}

/// A purchase with the fault: it decides on what it read before others wrote. Its own rows are
/// right.
async fn read_then_write(shop: Rc<Shop>, handle: Handle, line: Line) {
    let sheet = inventory(&shop).await;
    let key = sheet.key_of_number(line.product as i64).expect("a key");
    let reading = shop.instance().begin();
    let row = sheet.get(&reading, &key).await.expect("the disk is sound").expect("it is there");
    let (stock, sales) = (sheet.number(&row, STOCK), sheet.number(&row, SALES));
    let (stock, sales) = (stock.expect("a number"), sales.expect("a number"));
    reading.commit(Commit::Lazy).await.expect("nothing was changed");
    handle.sleep(NANOS_PER_MILLISECOND).await;
    // The sound purchase makes the rows of the order; then its inventory is overwritten with what
    // was read.
    let mut retries = 0;
    let end = shop.purchase(1, &[line], 100, &mut retries).await;
    assert_eq!(end.expect("the disk is sound"), VisitEnd::Sold);
    loop {
        let writing = shop.instance().begin();
        let quantity = i64::from(line.quantity);
        let changed = [(STOCK, stock - quantity), (SALES, sales + quantity)];
        match sheet.set(&writing, &key, &changed).await {
            Ok(()) => {
                return writing.commit(Commit::Durable).await.expect("the disk is sound");
            }
            Err(EngineError::WriteConflict) => writing.rollback().await.expect("the disk is sound"),
            Err(error) => panic!("{error}"),
        }
        handle.sleep(NANOS_PER_MILLISECOND).await;
    }
}

/// Alone such a purchase is right, so only an audit after a run with several sessions can tell.
#[test]
fn a_purchase_that_reads_then_writes_is_caught_as_lost_updates() {
    run_on(&disk(), |files, handle| async move {
        let shop = new_shop(&files, &handle, PageSize::KIB_8).await;
        let plenty = (1..).find(|id| catalogue().stock(*id) > 100).expect("a product");
        let line = Line { product: plenty, quantity: 2 };
        read_then_write(shop.clone(), handle.clone(), line).await;
        let audit = shop.audit().await.expect("the disk is sound");
        assert_eq!(audit.findings(&shop.counts()), Vec::<String>::new());
        let tasks: Vec<_> = (0..8)
            .map(|_| handle.spawn(read_then_write(shop.clone(), handle.clone(), line)))
            .collect();
        for task in tasks {
            task.await;
        }
        let audit = shop.audit().await.expect("the disk is sound");
        let findings = audit.findings(&shop.counts());
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("lost updates: the inventory says"), "{findings:?}");
        assert!(findings[0].ends_with("1 products differ"), "{findings:?}");
        assert_eq!(audit.ordered_units - audit.sold_units, 14);
        close(shop).await;
    });
}

/// Each thing that must hold is looked at by itself.
#[test]
fn every_broken_promise_has_a_finding() {
    run_on(&disk(), |files, handle| async move {
        let shop = new_shop(&files, &handle, PageSize::KIB_8).await;
        let sheet = inventory(&shop).await;
        let transaction = shop.instance().begin();
        let key = sheet.key_of_number(77).expect("a key");
        sheet.set(&transaction, &key, &[(STOCK, -1)]).await.expect("it is there");
        let columns = ["ORDERLINEID", "ORDERID", "PROD_ID", "QUANTITY", "ORDERDATE"];
        let columns = columns.map(|name| (name, ColumnType::Long));
        let lines =
            Sheet::open(shop.instance(), ORDERLINES, &columns).await.expect("the table is there");
        let stray = [1, 999_999, 5, 3, 0].map(plimsoll_stores::shop::Value::from);
        lines.insert(&transaction, &stray).await.expect("there is room");
        transaction.commit(Commit::Durable).await.expect("the disk is sound");
        let audit = shop.audit().await.expect("the disk is sound");
        let expected = StoreCounts { orders: 7, customers: 9, ..shop.counts() };
        let findings = audit.findings(&expected).join("\n");
        for part in [
            "lost updates: the inventory says",
            "orders: 1200 rows, but 7 were acknowledged",
            "customers: 2000 rows, but 9 were acknowledged",
            "histories: ",
            "1 products have a stock below zero",
            "1 lines belong to no order",
        ] {
            assert!(findings.contains(part), "{part} is not in\n{findings}");
        }
        let unknown = StoreCounts { orders: 1199, orders_unknown: 1, ..shop.counts() };
        assert!(!audit.findings(&unknown).join("\n").contains("orders: "));
        close(shop).await;
    });
}
