//! What a commit promises and what it costs the log.

use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, Files, Handle, MemoryOptions};

/// Runs `work` on an instance with one empty tree.
fn with_tree<F: Future<Output = ()> + 'static>(
    work: impl FnOnce(Rc<Instance>, Tree) -> F + 'static,
) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let setup = Setup { page_images: false, ..Setup::default() };
    run_on(&clock, &disk, move |files: Files, handle: Handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 20, 0, 8).await.unwrap();
        work(instance.clone(), tree).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Who has seen a row and reports it durably must not see it gone after a power cut.
#[test]
fn a_durable_reader_waits_for_what_it_may_have_seen() {
    with_tree(|instance, tree| async move {
        let writer = instance.begin();
        writer.insert(tree, b"key", b"data").await.unwrap();
        writer.commit(Commit::Lazy).await.unwrap();
        let log = instance.store().log.clone();
        let committed = log.tip();
        assert!(log.durable() < committed, "a lazy commit does not wait");
        let lazy = instance.begin();
        assert!(lazy.get(tree, b"key").await.unwrap().is_some());
        lazy.commit(Commit::Lazy).await.unwrap();
        assert!(log.durable() < committed, "a lazy reader does not wait either");
        let reader = instance.begin();
        assert!(reader.get(tree, b"key").await.unwrap().is_some());
        reader.commit(Commit::Durable).await.unwrap();
        assert!(log.durable() >= committed, "a durable one does");
        let flushes = log.statistics().flushes;
        instance.begin().commit(Commit::Durable).await.unwrap();
        assert_eq!(log.statistics().flushes, flushes, "nothing new, nothing to write");
    });
}

/// A sector more than half full is padded, one less full is written again: about half a sector is
/// written twice for a flush, as the published runs show. Always writing the last one again would
/// cost a whole sector, always padding waste half of one.
#[test]
fn half_a_sector_is_written_twice_for_a_flush() {
    with_tree(|instance, tree| async move {
        let log = instance.store().log.clone();
        let before = log.statistics();
        for number in 0..400u32 {
            let transaction = instance.begin();
            let data = vec![7; 300 + (number as usize * 131) % 900];
            transaction.insert(tree, &number.to_be_bytes(), &data).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        }
        let after = log.statistics();
        let flushes = (after.flushes - before.flushes) as f64;
        let framed = (after.appended_bytes - before.appended_bytes) as f64 * 512.0 / 500.0;
        let extra = ((after.written_bytes - before.written_bytes) as f64 - framed) / flushes;
        assert!((250.0..400.0).contains(&extra), "{extra} bytes a flush beyond the records");
    });
}

/// The log alone tells what was deleted.
#[test]
fn a_delete_logs_the_row_that_goes() {
    with_tree(|instance, tree| async move {
        let row = vec![9; 1000];
        let transaction = instance.begin();
        transaction.insert(tree, b"key", &row).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let log = instance.store().log.clone();
        let before = log.statistics().appended_bytes;
        let transaction = instance.begin();
        transaction.delete(tree, b"key").await.unwrap();
        let logged = log.statistics().appended_bytes - before;
        transaction.rollback().await.unwrap();
        assert!((1000..1100).contains(&logged), "{logged} bytes");
        let reader = instance.begin();
        assert_eq!(reader.get(tree, b"key").await.unwrap(), Some(row));
        reader.commit(Commit::Lazy).await.unwrap();
    });
}
