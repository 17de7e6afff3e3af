//! Damage in what goes: a tree whose space cannot be given back, a deleted row that cannot be
//! removed. The rest of the database goes on.

use std::rc::Rc;

use plimsoll_engine::cursor::KeyRange;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::page::PageView;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{PageNumber, PageSize};
use plimsoll_io::{MemoryDisk, NANOS_PER_SECOND};

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// Flips two bits of a page, which no checksum puts right.
fn spoil(disk: &MemoryDisk, page: PageNumber) {
    let at = PageSize::KIB_4.offset_of(page) + 1_000;
    assert!(disk.corrupt(database_path(1), at, |bytes| bytes[0] ^= 0x11));
}

/// Why it matters: whoever dropped a table because it was damaged could not open the database any
/// more, nor close it.
#[test]
fn a_damaged_tree_that_was_dropped_does_not_keep_the_database_shut() {
    for is_killed in [false, true] {
        let disk = base(31);
        let root = live(&disk, |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            let table = instance.open_table(1, "Messages").await.unwrap();
            let root = table.placed().long_values.unwrap().root;
            drop(table);
            instance.close().await.unwrap();
            root
        });
        // The list of what the tree owns: many extents of long values.
        spoil(&disk, root + 1);
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            instance.drop_table(1, "Messages").await.unwrap();
            if !is_killed {
                instance.close().await.unwrap();
            }
        });
        // Each recovery tries the release again, and each is killed once it is open.
        for life in 0..2 {
            live(&disk, move |files, handle| async move {
                let opened = open(&files, &handle, &setup(), life).await;
                let (instance, _) = opened.unwrap_or_else(|error| panic!("life {life}: {error}"));
                let transaction = instance.begin();
                transaction.commit(Commit::Durable).await.unwrap();
            });
        }
        for life in 0..2 {
            live(&disk, move |files, handle| async move {
                let opened = open(&files, &handle, &setup(), life).await;
                let (instance, _) = opened
                    .unwrap_or_else(|error| panic!("killed {is_killed}, life {life}: {error}"));
                let gone = instance.open_table(1, "Messages").await.map(drop);
                assert!(matches!(gone, Err(EngineError::NoSuchObject { .. })), "{gone:?}");
                instance.create_table(1, notes(&format!("Later {life}"))).await.map(drop).unwrap();
                instance.close().await.unwrap();
            });
        }
    }
}

/// A leaf with a row that is deleted, and is in no cache.
fn leaf_of_last_rows(disk: &Rc<MemoryDisk>) -> PageNumber {
    let bytes = disk.bytes(database_path(1)).unwrap();
    let object = live(disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let object = instance.open_table(1, "Messages").await.unwrap().placed().place.object;
        instance.close().await.unwrap();
        object
    });
    let pages = bytes.chunks_exact(4096).skip(2).zip(1..);
    let leaves = pages.filter(|(page, _)| {
        let view = PageView::new(page, PageSize::KIB_4);
        view.object() == object
            && view.is_leaf()
            && !view.is_root()
            && view.next() == 0
            && view.previous() != 0
            && view.lines() > 1
    });
    leaves.map(|(_, number)| number).next().expect("the last leaf of the rows")
}

/// Why it matters: one bad sector under rows that nobody needs any more stopped every session, and
/// again after each restart.
#[test]
fn a_damaged_leaf_does_not_stop_the_purge_of_others() {
    let disk = base(32);
    let leaf = leaf_of_last_rows(&disk);
    let spoilt = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let reader = instance.begin();
        let table = instance.open_table(1, "Messages").await.unwrap();
        for id in 0..ROWS {
            let transaction = instance.begin();
            let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
            table.delete(&transaction, &key).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        }
        // Everything is written, and leaves the cache: other rows take its place.
        let other = instance.create_table(1, message_table("Other")).await.unwrap();
        let (id_column, body) = (other.column("id").unwrap(), other.column("body").unwrap());
        for id in 0..150i32 {
            let transaction = instance.begin();
            let (id, long) = (id.to_le_bytes(), [b'o'; 6_000]);
            let values = [(id_column, Some(&id[..])), (body, Some(&long[..]))];
            other.insert(&transaction, &values).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        }
        handle.sleep(3 * NANOS_PER_SECOND).await;
        spoil(&spoilt, leaf);
        let refused = instance.database(1).unwrap().statistics().refused;
        reader.rollback().await.unwrap();
        handle.sleep(10 * NANOS_PER_SECOND).await;
        assert!(
            instance.database(1).unwrap().statistics().refused > refused,
            "the purge never met the damaged page"
        );
        assert_eq!(instance.store().purge.len(), 0, "rows wait for the purge");
        let transaction = instance.begin();
        let id = 7_000i32.to_le_bytes();
        other.insert(&transaction, &[(id_column, Some(&id[..]))]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let transaction = instance.begin();
        let met = table.count(&transaction, 0, KeyRange::all(), u64::MAX).await;
        assert!(
            matches!(met, Err(EngineError::DamagedPage { .. })),
            "who needs it is told: {met:?}"
        );
        transaction.rollback().await.unwrap();
        drop((table, other));
        instance.close().await.unwrap();
    });
}
