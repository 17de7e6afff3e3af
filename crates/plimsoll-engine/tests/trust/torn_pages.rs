//! Torn pages. With page images no tear loses anything, however small the disk's atomic unit. Without images a disk that writes whole pages loses
//! nothing either; one that tears them makes recovery refuse, and then exactly the torn pages are named: wrong data is never returned.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::{PageClass, classify};
use plimsoll_io::{
    Clock, Effect, FaultRule, Loss, MemoryDisk, MemoryOptions, OperationKind, Purpose, Random,
};

use crate::support::*;

struct Torn {
    image: Rc<MemoryDisk>,
    field: Field,
    ledger: Ledger,
    setup: Setup,
}

/// Works until a database write is under way, cuts there, and lets everything at risk survive, torn.
fn torn_world(seed: u64, setup: Setup, atomic_write_bytes: u32) -> Option<Torn> {
    let mut random = Random::from_seed(seed).child("torn");
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryOptions {
        atomic_write_bytes,
        ..MemoryOptions::default()
    };
    let disk = new_disk(&clock, seed, memory);
    let creating = setup.clone();
    run_on(&clock, &disk, move |files, _| async move {
        create_databases(&files, &creating).await.unwrap();
    })
    .unwrap();
    let cut = FaultRule::new(Effect::CutPowerWhenSubmitted)
        .with_kind(OperationKind::Write)
        .with_purpose(Purpose::DatabaseWrite);
    disk.inject(cut.nth(1 + random.below(120)));
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
        let weights = Weights {
            lazy: 0.2,
            ..Weights::swarm(&mut random)
        };
        for serial in 0..1_500 {
            let done = one_transaction(&instance, &created, &weights, serial, &mut random, &books).await;
            if done.is_err() || (serial % 40 == 39 && instance.checkpoint().await.is_err()) {
                return;
            }
        }
    });
    disk.power_cut();
    let loss = Loss::Chance {
        survival: 1.0,
        tearing: 0.7,
    };
    let image = disk.crash_image(loss, &mut random);
    let field = field.borrow().clone()?;
    let ledger = ledger.borrow().clone();
    Some(Torn {
        image,
        field,
        ledger,
        setup,
    })
}

/// What recovery says; when it succeeds, the audit must too.
fn recover(torn: &Torn) -> Result<(), EngineError> {
    let (setup, field, ledger) = (torn.setup.clone(), torn.field.clone(), torn.ledger.clone());
    run_on(
        &torn.image.clock().clone(),
        &torn.image,
        move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &setup, 9).await?;
            audit(&instance, &field, &ledger).await?;
            instance.close().await
        },
    )
    .unwrap()
}

fn setup_of(size: PageSize, page_images: bool) -> Setup {
    Setup {
        size,
        page_images,
        cache_frames: 64,
        checkpoint_generations: 1,
        ..Setup::default()
    }
}

#[test]
fn with_images_no_tear_loses_anything_even_on_the_largest_pages() {
    for seed in first_seed(0)..first_seed(10) {
        for size in [PageSize::KIB_4, PageSize::KIB_32] {
            if let Some(torn) = torn_world(seed, setup_of(size, true), 512) {
                recover(&torn).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
        }
    }
}

#[test]
fn without_images_a_disk_that_writes_whole_pages_loses_nothing() {
    for seed in first_seed(0)..first_seed(10) {
        let setup = setup_of(PageSize::KIB_4, false);
        if let Some(torn) = torn_world(seed, setup, 4096) {
            recover(&torn).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}

#[test]
fn without_images_every_torn_page_is_named_and_no_sound_one_accused() {
    let (mut named, mut sound) = (0, 0);
    for seed in first_seed(0)..first_seed(30) {
        let setup = setup_of(PageSize::KIB_4, false);
        let Some(torn) = torn_world(seed, setup, 512) else {
            continue;
        };
        let file = torn.image.bytes(database_path(1)).unwrap();
        let page_of = |page: u32| {
            let start = (page as usize + 1) * 4096;
            file[start..start + 4096].to_vec()
        };
        match recover(&torn) {
            Ok(()) => sound += 1,
            Err(EngineError::DamagedPages { pages, .. }) => {
                for (page, damage) in pages {
                    let class = classify(&page_of(page), page);
                    assert!(
                        !matches!(class, PageClass::Ok),
                        "seed {seed}: page {page} is sound and was called damaged: {damage}"
                    );
                    named += 1;
                }
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{named} torn pages named, {sound} worlds without a tear that matters");
    assert!(
        named > 5 && sound > 2,
        "{named} named, {sound} sound: the test has lost its teeth"
    );
}
