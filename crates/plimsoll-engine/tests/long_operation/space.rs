//! Space that long operation has cut into pieces: hundreds of gaps in one tree, more than a page of its extent tree can list.

use std::rc::Rc;

use plimsoll_engine::page::PageView;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, MemoryOptions, NANOS_PER_SECOND, Purpose};

use super::schema::check_files;
use super::support::*;

/// Two rows of this fill a page of 4 KiB.
const BODY_BYTES: usize = 1_800;
const ROWS: i32 = 1_600;

fn key(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

/// The extent tree splits while it is told of free pages, and takes one of them for that: a page that it has taken is not free any more.
#[test]
fn space_in_hundreds_of_gaps_is_given_out_once() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 8, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 8).await.unwrap();
        let table = instance.create_table(1, message_table("Gaps")).await.unwrap();
        table.set_intrinsic_bytes_max(2 * BODY_BYTES);
        let put = async |id: i32| {
            let transaction = instance.begin();
            let (number, body) = (id.to_le_bytes(), vec![id as u8; BODY_BYTES]);
            let values = [
                (table.column("id").unwrap(), Some(&number[..])),
                (table.column("folder").unwrap(), Some(&[0; 4][..])),
                (table.column("body").unwrap(), Some(&body[..])),
            ];
            table.insert(&transaction, &values).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        };
        for id in 0..ROWS {
            put(id).await;
        }
        let stays = |id: &i32| id / 2 % 2 == 0;
        for id in (0..ROWS).filter(|id| !stays(id)) {
            let transaction = instance.begin();
            table.delete(&transaction, &key(&table, id)).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        handle.sleep(10 * NANOS_PER_SECOND).await;
        // The extents that are available are listed in the tree two pages behind the root.
        let (cache, database) = (instance.store().cache.clone(), instance.database(1).unwrap());
        let listed = cache.load(&database, table.row_tree().root + 2, Purpose::DatabaseRead);
        let listed = listed.await.unwrap();
        assert!(
            !PageView::new(&listed.bytes(), setup.size).is_leaf(),
            "the gaps fit one page"
        );
        for id in ROWS..ROWS + 500 {
            put(id).await;
        }
        let transaction = instance.begin();
        for id in (0..ROWS).filter(stays).chain(ROWS..ROWS + 500) {
            let row = table.get(&transaction, &key(&table, id)).await.unwrap();
            let column = table.column("body").unwrap();
            let body = table
                .value(&transaction, &row.expect("it stays"), column)
                .await
                .unwrap();
            assert!(body == Some(vec![id as u8; BODY_BYTES]), "row {id}");
        }
        drop(transaction);
        drop(listed);
        instance.close().await.unwrap();
        check_files(&files, &handle).await;
    })
    .unwrap();
}
