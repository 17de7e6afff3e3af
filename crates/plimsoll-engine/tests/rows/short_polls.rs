//! No task holds the executor for long: what can go on over many pages, units or rows lets others
//! run in between. How long polls really are is measured in release by `examples/longest_poll.rs`;
//! here they are counted, which a slow build cannot spoil.

use std::path::Path;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::PageSize;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::verify::{Depth, VerifyOptions, verify};
use plimsoll_io::{Clock, Executor, Files, Handle, MemoryDisk, MemoryOptions, Random};
use plimsoll_prepare::{Extent, Plan, PreparedDatabase, WriteOptions, write_database};

/// On the real clock, where `breathe` looks at the time, on a disk that answers at once.
fn in_real_time<T: 'static, F: Future<Output = T> + 'static>(
    work: impl FnOnce(Files, Handle) -> F,
) -> T {
    let clock = Rc::new(Clock::real());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    disk.create_directory(DATA);
    disk.create_directory(LOG);
    let executor = Executor::new(clock, disk.clone());
    let handle = executor.handle();
    executor.run(work(Files::new(disk), handle)).unwrap()
}

/// How many polls `work` takes, that is how often it lets others run.
async fn polls_of<T>(handle: &Handle, work: impl Future<Output = T>) -> (u64, T) {
    handle.take_statistics();
    let result = work.await;
    (handle.take_statistics().polls, result)
}

/// A rollback of rows in memory waits for nothing; without breathing it would be one poll.
#[test]
fn sessions_and_rollbacks_of_rows_in_memory_let_others_run() {
    in_real_time(|files, handle| async move {
        let setup = Setup { cache_frames: 4_000, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let field = create_field(&instance, &setup, 0, 0).await.unwrap();
        let transaction = instance.begin();
        let inserting = async {
            for number in 0..2_000 {
                let key = row_key(number);
                transaction.insert(field.data[0], &key, &[1; 100]).await.unwrap();
            }
        };
        let (while_inserting, ()) = polls_of(&handle, inserting).await;
        let reading = async {
            for number in 0..2_000 {
                transaction.get(field.data[0], &row_key(number)).await.unwrap();
            }
        };
        let (while_reading, ()) = polls_of(&handle, reading).await;
        let (while_going_back, result) = polls_of(&handle, transaction.rollback()).await;
        result.unwrap();
        println!(
            "polls: {while_inserting} inserting, {while_reading} reading, {while_going_back} going \
             back"
        );
        // 2,000 rows take milliseconds in any build.
        assert!(while_inserting > 50 && while_going_back > 50 && while_reading > 10);
        instance.close().await.unwrap();
    });
}

/// Pages are made, checked and copied in pieces of at most 64 KiB.
#[test]
fn prepare_verify_and_backup_let_others_run_after_every_piece() {
    const PIECE_BYTES: u64 = 64 * 1024;
    for (size, records) in [(PageSize::KIB_4, 2_000), (PageSize::KIB_32, 4_000)] {
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, 1, MemoryOptions::default());
        run_on(&clock, &disk, move |files, handle| async move {
            let path = database_path(1);
            let database =
                PreparedDatabase::new(Plan::new(size, Extent::Records(records), 2)).unwrap();
            let pieces = database.file_bytes() / PIECE_BYTES;
            assert!(pieces > 20);
            let options = WriteOptions::default();
            let preparing = write_database(&files, &handle, Path::new(&path), &database, &options);
            let (polls, made) = polls_of(&handle, preparing).await;
            made.unwrap();
            assert!(polls >= pieces, "prepare: {polls} polls for {pieces} pieces");
            let options = VerifyOptions { depth: Depth::Pages, ..VerifyOptions::default() };
            let paths = [path];
            let (polls, report) =
                polls_of(&handle, verify(&files, &handle, &paths, &options)).await;
            assert!(report.is_sound());
            assert!(polls >= pieces, "verify: {polls} polls for {pieces} pieces");
            let setup = Setup { size, ..Setup::default() };
            let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
            let mut backup = Backup::start(&instance, 1, 4 << 20).unwrap();
            let copying = async { while backup.next_chunk().await.unwrap().is_some() {} };
            let (polls, ()) = polls_of(&handle, copying).await;
            assert!(polls >= pieces / 2, "backup: {polls} polls for {pieces} pieces");
            drop(backup);
            instance.close().await.unwrap();
        })
        .unwrap();
    }
}
