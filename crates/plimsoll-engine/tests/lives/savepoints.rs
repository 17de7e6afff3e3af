//! Transactions that end with nothing left of what they logged.

use plimsoll_engine::transaction::Commit;
use plimsoll_io::{MemoryOptions, NANOS_PER_SECOND};

use crate::life::*;
use crate::support::*;

/// Why it matters: a checkpoint that stays keeps all log from there on, until the disk is full, and
/// makes recovery redo it.
#[test]
fn a_commit_after_everything_was_taken_back_lets_the_checkpoint_go_on() {
    for how in [Commit::Durable, Commit::Lazy] {
        let setup = Setup { cache_frames: 400, checkpoint_generations: 1, ..Setup::default() };
        let disk = disk_with_databases(1, &setup, MemoryOptions::default());
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            let transaction = instance.begin();
            let start = transaction.savepoint();
            transaction.insert(tree, b"a row", b"of data").await.unwrap();
            transaction.rollback_to(start).await.unwrap();
            transaction.commit(how).await.unwrap();
            for number in 0..8_000 {
                let transaction = instance.begin();
                transaction.insert(tree, &row_key(number), &[1; 600]).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            handle.sleep(10 * NANOS_PER_SECOND).await;
            let (tip, checkpoint) = (instance.store().log.tip(), instance.store().checkpoint.get());
            assert!(tip.generation > 5, "{tip}");
            assert!(tip.generation - checkpoint.generation <= 3, "{checkpoint} of {tip}");
            assert!(instance.store().log.oldest_generation() >= checkpoint.generation);
            // And a crash finds nothing to take back.
        });
        live(&disk, move |files, handle| async move {
            let (_, report) = open(&files, &handle, &Setup::default(), 2).await.unwrap();
            assert_eq!(report.rolled_back, 0);
        });
    }
}
