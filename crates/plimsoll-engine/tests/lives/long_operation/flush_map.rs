//! The flush map beyond its first page, which speaks of 32,608 database pages: 127 MiB at the
//! smallest page size. Databases of tests are smaller.

use std::path::Path;
use std::rc::Rc;

use plimsoll_engine::Signature;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::flushmap::{
    FlushMap, MAP_PAGE_BYTES, flush_map_path_of_device, open_flush_map, save_flush_map,
};
use plimsoll_io::{Clock, Context, DiskError, DiskErrorKind, Files, MemoryOptions};

use crate::support::*;

/// Two bits for each page, in what a map page has besides its header.
const PAGES_PER_MAP_PAGE: u32 = 4 * (MAP_PAGE_BYTES as u32 - 40);

fn on_disk<F: Future<Output = ()> + 'static>(story: impl FnOnce(Files) -> F + 'static) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, _| story(files)).unwrap();
}

/// Opens the map of a database of so many pages.
async fn opened(files: &Files, path: &Path, pages: u32) -> (plimsoll_io::File, FlushMap) {
    let context = Context::default();
    let opened =
        open_flush_map(files, path.to_owned(), Signature::default(), (pages, false), context).await;
    let (file, map, damaged) = opened.unwrap();
    assert_eq!(damaged, 0, "no page of {} is damaged", path.display());
    (file, map)
}

/// Why it matters: databases on block devices have their maps in the directory of the log, under
/// names that two instances may share.
#[test]
fn a_map_that_is_in_use_is_refused_and_that_of_another_database_says_nothing() {
    on_disk(|files| async move {
        let (path, context) = (flush_map_path_of_device(Path::new(LOG), 1), Context::default());
        let other = Signature::new(7, Default::default());
        let (file, mut map) = opened(&files, &path, 100).await;
        map.set(9, 2);
        save_flush_map(&file, map.take_changed(), context).await.unwrap();
        let refused = open_flush_map(&files, path.clone(), other, (100, false), context).await;
        let is_locked = |error: &DiskError| error.kind == DiskErrorKind::Locked;
        assert!(matches!(refused, Err(EngineError::Disk(error)) if is_locked(&error)));
        file.close(context).await.unwrap();
        let found = open_flush_map(&files, path.clone(), other, (100, false), context).await;
        let (file, map, damaged) = found.unwrap();
        assert_eq!((map.get(9), damaged), (0, 0), "it is of another database");
        file.close(context).await.unwrap();
    });
}

/// A type that lands on another map page is a type of another database page: the sound page is
/// accused, and the lost write is not.
#[test]
fn types_are_kept_on_both_sides_of_the_border_of_a_map_page() {
    assert_eq!(PAGES_PER_MAP_PAGE, 32_608);
    on_disk(|files| async move {
        let borders = [PAGES_PER_MAP_PAGE, 2 * PAGES_PER_MAP_PAGE];
        let pages: Vec<u32> = borders.iter().flat_map(|border| border - 5..border + 5).collect();
        // Each by itself, so that no other page takes its map page along, and then all of them.
        let mut choices: Vec<Vec<u32>> = pages.iter().map(|page| vec![*page]).collect();
        choices.push(pages.clone());
        for (number, chosen) in choices.into_iter().enumerate() {
            let path = Path::new(DATA).join(format!("{number}.jfm"));
            let (file, mut map) = opened(&files, &path, 70_000).await;
            for page in &chosen {
                map.set(*page, (page % 3 + 1) as u8);
            }
            let changed = map.take_changed();
            assert!(!map.is_changed());
            save_flush_map(&file, changed, Context::default()).await.unwrap();
            file.close(Context::default()).await.unwrap();
            let (file, again) = opened(&files, &path, 70_000).await;
            for page in 1..70_000 {
                let expected = if chosen.contains(&page) { (page % 3 + 1) as u8 } else { 0 };
                assert_eq!(again.get(page), expected, "page {page} after {chosen:?}");
            }
            file.close(Context::default()).await.unwrap();
        }
    });
}

/// The last page of a database has a place in its map, and no page more is made than it takes.
#[test]
fn a_map_has_room_for_the_last_page_of_its_database() {
    on_disk(|files| async move {
        for (pages, map_pages) in [
            (PAGES_PER_MAP_PAGE - 1, 1),
            (PAGES_PER_MAP_PAGE, 2),
            (2 * PAGES_PER_MAP_PAGE - 1, 2),
            (2 * PAGES_PER_MAP_PAGE, 3),
        ] {
            let path = Path::new(DATA).join(format!("{pages} pages.jfm"));
            let (file, _) = opened(&files, &path, pages).await;
            file.close(Context::default()).await.unwrap();
            // Opened again, because a file knows how long it was when it was opened.
            let (file, _) = opened(&files, &path, pages).await;
            let length_bytes = file.opened().length_bytes;
            assert_eq!(length_bytes, (1 + map_pages) * MAP_PAGE_BYTES as u64, "{pages} pages");
            file.close(Context::default()).await.unwrap();
        }
    });
}
