//! Writing a prepared database: the file is exactly the rule's pages, it is there after a power cut
//! once the call has returned, and until then nothing can take it for a database.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::{DatabaseHeader, NewValue, PageSize, RecordLayout, encode_record};
use plimsoll_io::{
    Clock, Context, DiskErrorKind, Durability, Executor, Files, Loss, MemoryDisk, MemoryOptions,
    OpenMode, Purpose, Random,
};
use plimsoll_prepare::{
    Extent, LongValues, Plan, PrepareError, PreparedContent, PreparedDatabase, WriteOptions,
    WriteReport, write_database,
};

const PATH: &str = "/db/one.edb";

fn database(size: PageSize) -> Arc<PreparedDatabase> {
    let plan = Plan {
        long_values: Some(LongValues { every: 9, bytes: 20_000 }),
        free_pages: 20,
        ..Plan::new(size, Extent::Records(900), 21)
    };
    Arc::new(PreparedDatabase::new(plan).unwrap())
}

fn disk(options: MemoryOptions) -> Rc<MemoryDisk> {
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/db");
    disk
}

fn write(
    disk: &Rc<MemoryDisk>,
    database: &Arc<PreparedDatabase>,
    options: WriteOptions,
) -> Result<WriteReport, PrepareError> {
    let executor = Executor::new(disk.clock().clone(), disk.clone());
    let (handle, files, database) = (executor.handle(), Files::new(disk.clone()), database.clone());
    executor
        .run(async move { write_database(&files, &handle, Path::new(PATH), &database,
            &options).await })
        .unwrap()
}

fn small_blocks() -> WriteOptions {
    WriteOptions { block_bytes: 5 * 32 * 1024, ..WriteOptions::default() }
}

fn expected_file(database: &PreparedDatabase) -> Vec<u8> {
    let page_bytes = database.page_size().bytes();
    let mut file = vec![0; database.file_bytes() as usize];
    for (index, place) in file.chunks_exact_mut(page_bytes).enumerate() {
        match index {
            0 | 1 => place.copy_from_slice(&database.header_page()),
            page => database.page(page as u32 - 1, place),
        }
    }
    file
}

#[test]
fn the_file_is_the_rule_and_survives_a_power_cut() {
    for size in PageSize::ALL {
        let (database, disk) = (database(size), disk(MemoryOptions::default()));
        let options = small_blocks();
        let progress = options.progress.clone();
        let report = write(&disk, &database, options).unwrap();
        assert_eq!((report.bytes, progress.get()), (database.file_bytes(), database.file_bytes()));
        let after_cut = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
        let found = after_cut.bytes(PATH).expect("the name is durable");
        assert!(found == expected_file(&database), "{size}");
    }
}

#[test]
fn a_power_cut_in_the_middle_leaves_nothing_that_looks_like_a_database() {
    let database = database(PageSize::KIB_8);
    let whole = disk(MemoryOptions::default());
    write(&whole, &database, small_blocks()).unwrap();
    let mut halves = 0;
    for event in 1..whole.events() {
        let disk = disk(MemoryOptions::default());
        disk.power_cut_at_event(event);
        let executor = Executor::new(disk.clock().clone(), disk.clone());
        let (handle, files, database) =
            (executor.handle(), Files::new(disk.clone()), database.clone());
        // After the cut nothing completes any more, so the run stalls.
        let outcome = executor.run(async move {
            write_database(&files, &handle, Path::new(PATH), &database, &small_blocks())
                .await
                .is_ok()
        });
        assert!(!matches!(outcome, Ok(true)), "event {event}");
        for seed in 0..4 {
            let image = disk.crash_image(Loss::Drawn, &mut Random::from_seed(seed));
            let Some(bytes) = image.bytes(PATH) else {
                continue;
            };
            halves += 1;
            if DatabaseHeader::choose(&bytes).is_ok() {
                let body = 2 * 8192..;
                assert!(bytes[body.clone()] == expected_file_of(&whole)[body], "event {event}");
            }
        }
    }
    assert!(halves > 100, "only {halves} images had a file at all");
}

fn expected_file_of(disk: &Rc<MemoryDisk>) -> Vec<u8> {
    disk.bytes(PATH).unwrap()
}

#[test]
fn too_little_space_is_known_before_anything_is_written() {
    let database = database(PageSize::KIB_4);
    let disk = disk(MemoryOptions {
        capacity_bytes: Some(database.file_bytes() - 1),
        ..MemoryOptions::default()
    });
    let options = small_blocks();
    let progress = options.progress.clone();
    match write(&disk, &database, options) {
        Err(PrepareError::Disk(error)) => assert_eq!(error.kind, DiskErrorKind::Full),
        other => panic!("{other:?}"),
    }
    assert_eq!(progress.get(), 0);
    assert_eq!(disk.bytes(PATH), None, "what was begun is deleted");
}

#[test]
fn an_existing_file_is_left_alone() {
    let disk = disk(MemoryOptions::default());
    disk.load(PATH, b"somebody's");
    match write(&disk, &database(PageSize::KIB_4), WriteOptions::default()) {
        Err(PrepareError::Disk(error)) => assert_eq!(error.kind, DiskErrorKind::AlreadyExists),
        other => panic!("{other:?}"),
    }
    assert_eq!(disk.bytes(PATH).unwrap(), b"somebody's");
}

#[test]
fn impossible_blocks_are_refused() {
    for (block_bytes, depth) in [(0, 4), (6000, 4), (1 << 20, 0)] {
        let options = WriteOptions { block_bytes, depth, ..WriteOptions::default() };
        let disk = disk(MemoryOptions::default());
        let outcome = write(&disk, &database(PageSize::KIB_4), options);
        assert!(matches!(outcome, Err(PrepareError::Blocks { .. })));
        assert_eq!(disk.bytes(PATH), None);
    }
}

#[test]
fn the_engines_own_reader_finds_every_row() {
    for size in PageSize::ALL {
        let (database, disk) = (database(size), disk(MemoryOptions::default()));
        disk.load(PATH, &expected_file(&database));
        let executor = Executor::new(disk.clock().clone(), disk.clone());
        let (handle, files) = (executor.handle(), Files::new(disk.clone()));
        let rows = executor
            .run(async move {
                let reader =
                    DatabaseReader::open(&files, &handle, PATH, WhenDirty::Refuse).await.unwrap();
                let placed = reader.table("PlimsollMail").unwrap().clone();
                assert_eq!(placed.table.columns, database.schema().columns);
                let body = placed.table.column_named("Body").unwrap();
                let mut rows = reader.rows(&placed);
                let mut number = 0;
                while let Some(row) = rows.next().await.unwrap() {
                    let value = row.bytes(body).await.unwrap();
                    let has_value = number % 9 == 0;
                    assert_eq!(value.is_some(), has_value, "record {number}");
                    if let Some(value) = value {
                        assert!(*value == database.long_value(number, 0), "record {number}");
                    }
                    number += 1;
                }
                number
            })
            .unwrap();
        assert_eq!(rows, 900);
    }
}

#[test]
fn a_record_is_what_the_record_layer_packs_from_its_columns() {
    for size in PageSize::ALL {
        let database = database(size);
        let (schema, mut packed) = (database.schema(), Vec::new());
        let layout = RecordLayout::of(&schema);
        for (number, version) in [(0, 0), (1, 0), (9, 4), (899, 1), (900, 0), (5000, 2)] {
            let columns = database.record_columns(number, version);
            let (number_bytes, scatter) =
                (columns.number.to_le_bytes(), columns.scatter.to_le_bytes());
            let (version_bytes, size_bytes) =
                (columns.version.to_le_bytes(), columns.size.to_le_bytes());
            let check = columns.check.to_le_bytes();
            let mut values = vec![
                (1, NewValue::Bytes(&number_bytes)),
                (2, NewValue::Bytes(&scatter)),
                (3, NewValue::Bytes(&version_bytes)),
                (4, NewValue::Bytes(&size_bytes)),
                (5, NewValue::Bytes(&check)),
                (128, NewValue::Bytes(&columns.short_pad)),
                (256, NewValue::Bytes(&columns.long_pad)),
            ];
            if let Some(long_value) = columns.body {
                values.push((257, NewValue::Separated { long_value }));
            }
            packed.clear();
            encode_record(&schema, &layout, size, &values, &mut packed).unwrap();
            assert!(packed == database.record(number, version), "{size} record {number}");
        }
    }
}

#[test]
fn a_sparse_disk_gives_the_same_file_and_keeps_what_is_written_over_it() {
    let database = database(PageSize::KIB_32);
    let disk = disk(MemoryOptions::ram());
    disk.load_sparse(PATH, database.file_bytes(), PreparedContent::sparse(&database));
    assert!(disk.bytes(PATH).unwrap() == expected_file(&database));
    let stored_before = disk.stored_bytes();
    let executor = Executor::new(disk.clock().clone(), disk.clone());
    let files = Files::new(disk.clone());
    let changed = executor
        .run(async move {
            let context = Context::of(Purpose::DatabaseWrite);
            let file = files.open(PATH, OpenMode::Write, context).await.unwrap();
            let mut page = file.allocate(32768);
            database.page(40, &mut page);
            let view = plimsoll_engine::page::PageView::new(&page, PageSize::KIB_32);
            let record_bytes = view.node(2).unwrap().data.len();
            let number = u64::from_le_bytes(view.node(2).unwrap().data[4..12].try_into().unwrap());
            plimsoll_engine::page::PageMut::new(&mut page, PageSize::KIB_32).splice(
                2,
                0,
                record_bytes,
                &database.record(number, 1),
            );
            plimsoll_engine::set_checksum(&mut page, 40);
            let content = page.to_vec();
            file.write(41 * 32768, page, Durability::Durable, context).await.unwrap();
            content
        })
        .unwrap();
    assert!(disk.bytes(PATH).unwrap()[41 * 32768..42 * 32768] == changed);
    let kept_bytes = disk.stored_bytes() - stored_before;
    assert!(kept_bytes < 200, "{kept_bytes} bytes for one replaced record");
}

#[test]
fn other_plans_have_other_identities() {
    let plan = Plan::new(PageSize::KIB_4, Extent::Records(10), 1);
    let identity = |plan: &Plan| PreparedDatabase::new(plan.clone()).unwrap().header().signature;
    assert_eq!(identity(&plan), identity(&plan.clone()));
    for other in [
        Plan { seed: 2, ..plan.clone() },
        Plan { database: 2, ..plan.clone() },
        Plan { extent: Extent::Records(11), ..plan.clone() },
        Plan { page_size: PageSize::KIB_8, ..plan.clone() },
        Plan { compressible_percent: 1, ..plan.clone() },
    ] {
        assert_ne!(identity(&plan), identity(&other));
    }
}
