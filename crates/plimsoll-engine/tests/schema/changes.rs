//! What each change comes to.

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex};

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// Each change is made while the database is open, is there at once and after a restart, and the
/// file is sound.
#[test]
fn every_change_is_made_and_stays() {
    for change in ALL {
        let disk = base(1);
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            assert!(!was_made(&instance, change).await, "{change:?}");
            carry_out(&instance, change).await.unwrap();
            assert!(was_made(&instance, change).await, "{change:?}");
            instance.close().await.unwrap();
            check_file(&files, &handle, &format!("{change:?}")).await;
        });
        assert!(look_after(&disk, change, format!("{change:?}, again")));
    }
}

/// A table that was changed goes on as if it had always been so: rows are inserted, updated and
/// deleted with the new index and columns.
#[test]
fn a_changed_table_is_worked_with() {
    let disk = base(2);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        for change in [Change::AddIndex, Change::AddColumn, Change::DropColumn, Change::DropIndex] {
            carry_out(&instance, change).await.unwrap();
        }
        let index = NewIndex::duplicates("by flags", &["-flags"]);
        instance.add_index(1, "Messages", index).await.unwrap();
        let again = Column::new("spare", ColumnType::Currency);
        instance.add_column(1, "Messages", again).await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let columns = &table.placed().table.columns;
        let stub = columns.iter().find(|column| column.is_dropped()).unwrap();
        let object = table.placed().place.object;
        assert_eq!(stub.name, format!("JetStub_{object}_{}", stub.id));
        let (flags, size) = (table.column("flags").unwrap(), table.column("size").unwrap());
        for id in 0..ROWS {
            let transaction = instance.begin();
            let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
            let (flag, larger) = ((id as i16).to_le_bytes(), (20_000 + id).to_le_bytes());
            let values = [(flags, Some(&flag[..])), (size, Some(&larger[..]))];
            match id % 3 {
                0 => table.delete(&transaction, &key).await.unwrap(),
                _ => table.update(&transaction, &key, &values).await.unwrap(),
            }
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        insert_message(&instance, &table, 500).await.unwrap();
        let dropped = [(stub.id, Some(&b"x"[..]))];
        let transaction = instance.begin();
        let key = table.key(&[Some(&500i32.to_le_bytes())]).unwrap();
        let refused = table.update(&transaction, &key, &dropped).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        let by_flags = table.index("by flags").unwrap();
        let all = KeyRange::all();
        let mut scan = table.scan(&transaction, by_flags, all, Direction::Forward);
        let mut found = Vec::new();
        while let Some(row) = scan.next().await.unwrap() {
            let value = table.value(&transaction, &row, flags).await.unwrap();
            found.push(value.map(|value| i16::from_le_bytes(value.try_into().unwrap())));
        }
        let mut expected: Vec<_> = (0..ROWS as i16).filter(|id| id % 3 != 0).map(Some).collect();
        expected.push(None);
        expected.sort_by(|left, right| right.cmp(left));
        assert_eq!(found, expected);
        drop(scan);
        transaction.commit(Commit::Lazy).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "worked with").await;
    });
}

/// A dropped table's space is used again: tables made and dropped for ever do not make the file
/// grow.
#[test]
fn the_space_of_what_is_dropped_is_used_again() {
    let disk = base(3);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let mut pages = Vec::new();
        for round in 0..8 {
            let table = instance.create_table(1, message_table("Short-lived")).await.unwrap();
            let (id_column, body) = (table.column("id").unwrap(), table.column("body").unwrap());
            for id in 0..120i32 {
                let transaction = instance.begin();
                let (key, long) = (id.to_le_bytes(), vec![b'L'; 6_000]);
                let values = [(id_column, Some(&key[..])), (body, Some(&long[..]))];
                table.insert(&transaction, &values).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            drop(table);
            if round % 2 == 0 {
                instance.drop_index(1, "Short-lived", "by folder").await.unwrap();
            }
            instance.drop_table(1, "Short-lived").await.unwrap();
            pages.push(instance.database(1).unwrap().pages_owned());
        }
        assert_eq!(pages[0], pages[7], "pages after each round: {pages:?}");
        instance.close().await.unwrap();
        check_file(&files, &handle, "short-lived").await;
    });
}

/// A unique index over rows that share a key is refused, names the index, and leaves nothing.
#[test]
fn a_unique_index_over_equal_keys_is_refused_and_leaves_nothing() {
    let disk = base(4);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        for _ in 0..3 {
            let index = NewIndex::unique("one each", &["folder"]);
            let refused = instance.add_index(1, "Messages", index).await;
            let named = matches!(&refused, Err(EngineError::KeyDuplicate {
                index: Some(name) }) if name == "one each");
            assert!(named, "{refused:?}");
        }
        carry_out(&instance, Change::AddIndex).await.unwrap();
        check_messages(&instance).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, "refused").await;
    });
}
