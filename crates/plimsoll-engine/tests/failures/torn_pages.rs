//! Torn pages. With page images no tear loses anything, however small the disk's atomic unit.
//! Without images a disk that writes whole pages loses nothing either; one that tears them makes
//! recovery refuse, and then exactly the torn pages are named: wrong data is never returned.
//!
//! Named is every damaged page but those that the log to be redone makes anew: their old content
//! matters to nobody, and redo mends them. A page that was being written when the power failed is
//! always one that the log to be redone speaks of, so none is passed over.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::database::peek_header;
use plimsoll_engine::edit::Edit;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::{PageClass, classify, mend};
use plimsoll_io::{
    Clock, Context, Effect, FaultRule, Loss, MemoryDisk, MemoryOptions, OperationKind, Purpose,
    Random,
};

use crate::support::*;

struct Torn {
    image: Rc<MemoryDisk>,
    field: Field,
    ledger: Ledger,
    setup: Setup,
    /// Pages of the file that are not what was last written there.
    harmed: usize,
    /// Those that are damaged.
    damaged: BTreeSet<u32>,
}

/// How many of the writes at risk survive, torn or whole: in a third of the worlds all, so that
/// what is found is torn as badly as can be, and in the others some are missing, so that later ones
/// are there without earlier ones.
const SURVIVAL: [f64; 3] = [1.0, 0.8, 0.5];

/// Works until a database write is under way, cuts there, and tears most of what survives.
fn torn_world(seed: u64, setup: Setup, atomic_write_bytes: u32) -> Option<Torn> {
    let mut random = Random::from_seed(seed).child("torn");
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryOptions { atomic_write_bytes, ..MemoryOptions::default() };
    let disk = new_disk(&clock, seed, memory);
    let creating = setup.clone();
    run_on(&clock, &disk, move |files, _| async move {
        create_databases(&files, &creating).await.unwrap();
    })
    .unwrap();
    let cut = FaultRule::new(Effect::CutPowerWhenSubmitted)
        .with_kind(OperationKind::Write)
        .with_purpose(Purpose::DatabaseWrite);
    disk.inject(cut.nth(1 + random.below(400)));
    let field: Rc<RefCell<Option<Field>>> = Rc::default();
    let ledger: Rc<RefCell<Ledger>> = Rc::default();
    let (working, known, books) = (setup.clone(), field.clone(), ledger.clone());
    run_until_power_lost(&disk, move |files, handle| async move {
        let Ok((instance, _)) = open(&files, &handle, &working, seed).await else {
            return;
        };
        let row_bytes_max = working.size.bytes() as u64 / 6;
        let Ok(created) = create_field(&instance, &working, 1_000, row_bytes_max).await else {
            return;
        };
        let tip = instance.store().log.tip();
        if instance.store().log.make_durable(tip).await.is_err() {
            return;
        }
        *known.borrow_mut() = Some(created.clone());
        let mut random = Random::from_seed(seed).child("session");
        let weights = Weights { lazy: 0.2, ..Weights::swarm(&mut random) };
        for serial in 0..1_500 {
            let done =
                one_transaction(&instance, &created, &weights, serial, &mut random, &books).await;
            if done.is_err() {
                return;
            }
            if serial % 40 == 39 {
                // Redo begins with a generation: what was made in earlier ones is not made again.
                let next = instance.store().log.begin_generation().end;
                let rolled = instance.store().log.make_durable(next).await;
                if rolled.is_err() || instance.checkpoint().await.is_err() {
                    return;
                }
            }
        }
    });
    let written = disk.bytes(database_path(1)).unwrap();
    disk.power_cut();
    let loss = Loss::Chance { survival: SURVIVAL[(seed % 3) as usize], tearing: 0.7 };
    let image = disk.crash_image(loss, &mut random);
    let field = field.borrow().clone()?;
    let ledger = ledger.borrow().clone();
    let found = image.bytes(database_path(1)).unwrap();
    Some(Torn {
        image,
        field,
        ledger,
        harmed: pages(&written, setup.size)
            .filter(|(page, bytes)| page_of(&found, setup.size, *page) != Some(*bytes))
            .count(),
        damaged: pages(&found, setup.size)
            .filter(|(page, bytes)| is_damaged(bytes, *page))
            .map(|(page, _)| page)
            .collect(),
        setup,
    })
}

/// The pages of a file, which begin behind both copies of its header.
fn pages(file: &[u8], size: PageSize) -> impl Iterator<Item = (u32, &[u8])> {
    let pages = file.chunks_exact(size.bytes()).enumerate().skip(2);
    pages.map(|(index, bytes)| (index as u32 - 1, bytes))
}

fn page_of(file: &[u8], size: PageSize, page: u32) -> Option<&[u8]> {
    file.chunks_exact(size.bytes()).nth(page as usize + 1)
}

/// Whether no reader can make anything of a page that was written.
fn is_damaged(bytes: &[u8], page: u32) -> bool {
    match classify(bytes, page) {
        PageClass::Ok | PageClass::Uninitialized => false,
        PageClass::Correctable { .. } => mend(&mut bytes.to_vec(), page).is_none(),
        PageClass::Bad { .. } | PageClass::WrongPageNumber { .. } => true,
    }
}

/// Pages that the log to be redone makes anew.
fn made_anew(torn: &Torn) -> BTreeSet<u32> {
    let clock = torn.image.clock().clone();
    run_on(&clock, &torn.image, |files, _| async move {
        let names = LogNames::new(LOG, "E00");
        let header = peek_header(&files, &database_path(1), Context::default()).await.unwrap();
        let start = Lsn::new(header.generation_min_required, 0);
        let reader = LogReader::new(files, names, Context::default());
        let mut pages = BTreeSet::new();
        for file in reader.generations().await.unwrap() {
            let generation = reader.read_generation(&file.path).await.unwrap();
            let records = generation.records(0).map(|record| record.unwrap());
            for (_, record) in records.filter(|(at, _): &(Lsn, LogRecord)| *at >= start) {
                let LogRecord::Structure(structure) = record else {
                    continue;
                };
                let anew = structure.pages.into_iter();
                let anew = anew.filter(|page| page.edits.first().is_some_and(Edit::makes_anew));
                pages.extend(anew.map(|page| page.page));
            }
        }
        pages
    })
    .unwrap()
}

/// What recovery says; when it succeeds, the audit must too.
fn recover(torn: &Torn) -> Result<(), EngineError> {
    let (setup, field, ledger) = (torn.setup.clone(), torn.field.clone(), torn.ledger.clone());
    run_on(&torn.image.clock().clone(), &torn.image, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 9).await?;
        audit(&instance, &field, &ledger).await?;
        instance.close().await
    })
    .unwrap()
}

fn setup_of(size: PageSize, page_images: bool) -> Setup {
    Setup { size, page_images, cache_frames: 64, checkpoint_generations: 1, ..Setup::default() }
}

#[test]
fn with_images_no_tear_loses_anything_even_on_the_largest_pages() {
    let mut worlds = 0;
    for seed in first_seed(0)..first_seed(10) {
        for size in [PageSize::KIB_4, PageSize::KIB_32] {
            if let Some(torn) = torn_world(seed, setup_of(size, true), 512) {
                recover(&torn).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                worlds += u64::from(!torn.damaged.is_empty());
            }
        }
    }
    println!("{worlds} worlds with torn pages");
    assert!(worlds > 5, "only {worlds} worlds of 20 had torn pages");
}

#[test]
fn without_images_a_disk_that_writes_whole_pages_loses_nothing() {
    let mut worlds = 0;
    for seed in first_seed(0)..first_seed(10) {
        for size in [PageSize::KIB_4, PageSize::KIB_32] {
            let Some(torn) = torn_world(seed, setup_of(size, false), size.bytes() as u32) else {
                continue;
            };
            assert_eq!(torn.damaged, BTreeSet::new(), "seed {seed}: the disk tore a page");
            recover(&torn).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            worlds += u64::from(torn.harmed > 0);
        }
    }
    println!("{worlds} worlds in which writes of pages were lost");
    assert!(worlds > 5, "only {worlds} worlds of 20 lost a write");
}

/// What became of worlds without images on a disk that tears pages.
#[derive(Debug, Default)]
struct Fates {
    named: usize,
    mended: usize,
    refused: u64,
    recovered: u64,
}

#[test]
fn without_images_every_torn_page_is_named_and_no_sound_one_accused() {
    let kinds = [
        (PageSize::KIB_4, 512),
        (PageSize::KIB_8, 512),
        (PageSize::KIB_16, 4096),
        (PageSize::KIB_32, 512),
    ];
    for (size, atomic_write_bytes) in kinds {
        let mut fates = Fates::default();
        for seed in first_seed(0)..first_seed(24) {
            if let Some(torn) = torn_world(seed, setup_of(size, false), atomic_write_bytes) {
                expect_named(seed, &torn, &mut fates);
            }
        }
        println!("{size} in units of {atomic_write_bytes}: {fates:?}");
        assert!(
            fates.named > 20 && fates.mended > 5 && fates.refused > 5 && fates.recovered > 0,
            "{size}: {fates:?}: the test has lost its teeth"
        );
    }
}

/// Exactly the pages that redo cannot make anew are named, and where there are none nothing is
/// lost.
fn expect_named(seed: u64, torn: &Torn, fates: &mut Fates) {
    let anew = made_anew(torn);
    let expected: BTreeSet<u32> = torn.damaged.difference(&anew).copied().collect();
    fates.mended += torn.damaged.len() - expected.len();
    let named = match recover(torn) {
        Ok(()) => {
            fates.recovered += 1;
            BTreeSet::new()
        }
        Err(EngineError::DamagedPages { pages, .. }) => {
            fates.refused += 1;
            pages.into_iter().map(|(page, _)| page).collect()
        }
        Err(error) => panic!("seed {seed}: {error}"),
    };
    fates.named += named.len();
    assert_eq!(named, expected, "seed {seed}: other pages are named than are torn");
}
