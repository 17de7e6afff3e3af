//! Space that long operation has cut into pieces: hundreds of gaps in one tree, more than a page of
//! its extent tree can list.

use std::rc::Rc;

use plimsoll_engine::PageNumber;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::page::PageView;
use plimsoll_engine::space;
use plimsoll_engine::store::Progress;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, Files, Handle, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Purpose};

use super::schema::check_files;
use crate::support::*;

/// Two rows of this fill a page of 4 KiB.
const BODY_BYTES: usize = 1_800;
const ROWS: i32 = 1_600;

fn key(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

/// The extent tree splits while it is told of free pages, and takes one of them for that: a page
/// that it has taken is not free any more.
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
        assert!(!PageView::new(&listed.bytes(), setup.size).is_leaf(), "the gaps fit one page");
        for id in ROWS..ROWS + 500 {
            put(id).await;
        }
        let transaction = instance.begin();
        for id in (0..ROWS).filter(stays).chain(ROWS..ROWS + 500) {
            let row = table.get(&transaction, &key(&table, id)).await.unwrap();
            let column = table.column("body").unwrap();
            let body = table.value(&transaction, &row.expect("it stays"), column).await.unwrap();
            assert!(body == Some(vec![id as u8; BODY_BYTES]), "row {id}");
        }
        drop(transaction);
        drop(listed);
        instance.close().await.unwrap();
        check_files(&files, &handle).await;
    })
    .unwrap();
}

/// Pages of the tree whose free space is cut into pieces, every second of which is free.
const CUT_PAGES: u32 = 24_000;

fn cut_setup() -> Setup {
    Setup { cache_frames: 2_000, extension_pages: 4_096, ..Setup::default() }
}

/// A tree with thousands of free pages, none of which lie next to each other, and room for more
/// behind them.
async fn cut_up(files: &Files, handle: &Handle) -> PageNumber {
    let setup = cut_setup();
    create_databases(files, &setup).await.unwrap();
    let (instance, _) = open(files, handle, &setup, 9).await.unwrap();
    let tree = instance.create_tree(1, 1, 50, 0, CUT_PAGES + 5_000).await.unwrap();
    let (store, database) = (instance.store(), instance.database(1).unwrap());
    let mut taken = Vec::new();
    for _ in 0..CUT_PAGES {
        let page =
            store.change(&database, |batch| space::allocate(batch, tree.root).map(Progress::Done));
        taken.push(page.await.unwrap());
    }
    for page in taken.into_iter().step_by(2) {
        let freed = store
            .change(&database, |batch| space::free(batch, tree.root, page).map(Progress::Done));
        freed.await.unwrap();
    }
    instance.close().await.unwrap();
    tree.root
}

/// Takes `pages` pages that lie side by side; answers the first, how often the step was begun, and
/// how many looks at pages that took.
async fn take(instance: &Instance, root: PageNumber, pages: u32) -> (PageNumber, u32, u64) {
    let (store, database) = (instance.store(), instance.database(1).unwrap());
    let (before, mut begun) = (store.cache.statistics().hits, 0);
    let taken = store.change(&database, |batch| {
        begun += 1;
        space::take_extent(batch, root, pages).map(Progress::Done)
    });
    let extent = taken.await.unwrap();
    (extent.first(), begun, store.cache.statistics().hits - before)
}

fn on_cut_up(story: impl AsyncFnOnce(Rc<Instance>, PageNumber) + 'static) -> Rc<MemoryDisk> {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 9, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let root = cut_up(&files, &handle).await;
        let (instance, _) = open(&files, &handle, &cut_setup(), 9).await.unwrap();
        story(instance.clone(), root).await;
        instance.close().await.unwrap();
    })
    .unwrap();
    disk
}

/// Why it matters: a database that has been in use for long is full of gaps, and every growth of a
/// tree would walk over all of them and let nobody else run.
#[test]
fn gaps_that_are_too_small_are_walked_over_once_with_breaths() {
    on_cut_up(async |instance, root| {
        let gaps = u64::from(CUT_PAGES / 2);
        let (first, begun, looks) = take(&instance, root, 2).await;
        println!(
            "the first after opening: {looks} looks at pages for {gaps} gaps, begun {begun} times"
        );
        assert!(looks < 4 * gaps, "what was looked at is not looked at again after a fault");
        let (next, _, looks) = take(&instance, root, 2).await;
        println!("the next: {looks} looks");
        assert_eq!(next, first + 2, "first fit");
        assert!(looks < 300, "the gaps are known");
        let (smaller, begun, looks) = take(&instance, root, 1).await;
        println!("one page, which fits the first gap: {looks} looks, begun {begun} times");
        assert!(smaller < first && looks < 300);
        let (larger, begun, looks) = take(&instance, root, 3).await;
        println!("a larger one: {looks} looks, begun {begun} times");
        assert!(larger == first + 4 && looks < 300, "where two do not fit, three do not");
        let (store, database) = (instance.store(), instance.database(1).unwrap());
        let freed =
            store.change(&database, |batch| space::free(batch, root, smaller).map(Progress::Done));
        freed.await.unwrap();
        let (_, _, looks) = take(&instance, root, 4).await;
        println!("after one was freed at the front: {looks} looks");
        assert!(looks < 300, "it is too small, too");
        let (at_front, ..) = take(&instance, root, 1).await;
        assert_eq!(at_front, smaller, "what was freed is found");
        for page in [smaller, smaller + 1] {
            let freed =
                store.change(&database, |batch| space::free(batch, root, page).map(Progress::Done));
            freed.await.unwrap();
        }
        // Three side by side now, and whatever is behind them may be large enough, too.
        let (at_front, ..) = take(&instance, root, 3).await;
        assert_eq!(at_front, smaller);
        let (_, begun, looks) = take(&instance, root, 3).await;
        println!(
            "after three were freed at the front and taken: {looks} looks, begun {begun} times"
        );
        assert!(begun > 2, "others may run meanwhile, though all of it is in memory");
    });
}

/// Why it matters: free space that is not seen is lost until the next opening.
#[test]
fn a_gap_that_becomes_large_enough_is_found_before_all_others() {
    on_cut_up(async |instance, root| {
        let (store, database) = (instance.store(), instance.database(1).unwrap());
        let (behind, ..) = take(&instance, root, 2).await;
        let (gap, ..) = take(&instance, root, 1).await;
        assert!(gap < behind);
        // Between two gaps: the three become one.
        for page in [gap + 3, gap] {
            let freed =
                store.change(&database, |batch| space::free(batch, root, page).map(Progress::Done));
            freed.await.unwrap();
        }
        let (joined, ..) = take(&instance, root, 3).await;
        assert_eq!(joined, gap + 2);
        let (single, ..) = take(&instance, root, 1).await;
        assert_eq!(single, gap);
    });
}
