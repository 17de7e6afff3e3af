//! What becomes of mail between its runs and in crashes: nothing accepted is lost, nothing arrives twice, counters are what rows say.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::{Handle, Loss, NANOS_PER_MILLISECOND, Random};
use plimsoll_stores::mail::{MailAudit, MailStore};

use crate::world::*;

const PREPARED: u64 = (FILLING.mailboxes * FILLING.messages) as u64;

async fn audited(store: &MailStore) -> MailAudit {
    let audit = store.audit().await.expect("the disk is sound");
    assert!(audit.is_consistent(), "{audit:?}");
    audit
}

/// Submits, delivers, reads and deletes until told to stop or the store goes away. `tried` counts before the commit.
async fn busy(store: Rc<MailStore>, session: u64, rounds: u64, tried: Rc<Cell<u64>>) {
    let mut random = Random::from_seed(session);
    for _ in 0..rounds {
        let first = random.below(8) as u32;
        let count = 1 + random.below(3) as u32;
        let to: Vec<u32> = (0..count).map(|place| (first + place) % 8).collect();
        let body = vec![0x61; 1 + random.below(12_000) as usize];
        tried.set(tried.get() + u64::from(count));
        if store.submit(&to, &body).await.is_err() || store.deliver_queued().await.is_err() {
            return;
        }
        let Ok(read) = store.read(first, 2).await else {
            return;
        };
        if let Some((document, _)) = read.first()
            && random.chance(0.3)
            && store.delete(first, *document).await.is_err()
        {
            return;
        }
    }
}

async fn sessions(handle: &Handle, store: &Rc<MailStore>, run: u64, tried: &Rc<Cell<u64>>) {
    let tasks: Vec<_> = (0..4)
        .map(|session| handle.spawn(busy(store.clone(), 10 * run + session, 12, tried.clone())))
        .collect();
    for task in tasks {
        task.await;
    }
}

/// A store is kept between runs: the next one finds all mail of the last, and numbers of its own.
#[test]
fn the_next_run_finds_the_mail_of_the_last() {
    let ended = run_on(&disk(), |files, handle| async move {
        let mut instances = new_instances(&files, &handle).await;
        let mut received = PREPARED;
        for run in 1..=3 {
            let store = Rc::new(open_store(&instances).await.expect("it is whole"));
            assert_eq!(store.run(), run);
            sessions(&handle, &store, run, &Rc::default()).await;
            received += store.accepted();
            let audit = audited(&store).await;
            assert!(audit.deleted > 0 && store.accepted() > 40);
            assert_eq!((audit.received, audit.queued), (received, 0));
            drop(store);
            close(instances).await;
            instances = open_instances(&files, &handle).await;
        }
        close(instances).await;
    });
    ended.expect("it comes to an end");
}

/// Power cuts while mail is accepted, delivered, read and deleted. What was accepted is delivered or queued once afterwards.
#[test]
fn a_power_cut_loses_no_accepted_mail_and_doubles_none() {
    let mut waited = 0;
    for seed in 0..24 {
        let disk = disk();
        run_on(&disk, |files, handle| async move {
            close(new_instances(&files, &handle).await).await;
        })
        .expect("it is made");
        let (accepted, tried) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let moment = Random::from_seed(seed).below(200 * NANOS_PER_MILLISECOND);
        let (noted, counted) = (accepted.clone(), tried.clone());
        run_on(&disk, move |files, handle| async move {
            let instances = open_instances(&files, &handle).await;
            let store = Rc::new(open_store(&instances).await.expect("it is whole"));
            let tasks: Vec<_> = (0..4)
                .map(|session| handle.spawn(busy(store.clone(), 10 * seed + session, 1_000, counted.clone())))
                .collect();
            handle.sleep(40 * NANOS_PER_MILLISECOND + moment).await;
            noted.set(store.accepted());
            drop(tasks);
        });
        disk.power_cut();
        let image = disk.crash_image(Loss::Drawn, &mut Random::from_seed(seed).child("image"));
        let (low, high) = (PREPARED + accepted.get(), PREPARED + tried.get());
        assert!(accepted.get() > 0, "seed {seed}: nothing was accepted");
        waited += run_on(&image, move |files, handle| async move {
            let instances = open_instances(&files, &handle).await;
            let store = open_store(&instances).await.expect("it is whole");
            let audit = audited(&store).await;
            let sum = audit.received + audit.queued;
            assert!(
                (low..=high).contains(&sum),
                "seed {seed}: {sum} of {low} to {high}, {audit:?}"
            );
            store.deliver_queued().await.expect("the disk is sound");
            let after = audited(&store).await;
            assert_eq!((after.received, after.queued), (sum, 0), "seed {seed}");
            drop(store);
            close(instances).await;
            audit.queued
        })
        .expect("it comes to an end");
    }
    assert!(waited > 0, "no cut met a message in the queue");
}

/// The audit finds a message that went without the store's knowing.
#[test]
fn a_planted_loss_is_found() {
    let ended = run_on(&disk(), |files, handle| async move {
        let instances = new_instances(&files, &handle).await;
        let store = open_store(&instances).await.expect("it is whole");
        audited(&store).await;
        let table = instances[0].open_table(1, "Message").await.expect("it is there");
        let key = table.key(&[Some(&3i32.to_le_bytes()), Some(&2i64.to_le_bytes())]);
        let transaction = instances[0].begin();
        let lost = table.delete(&transaction, &key.expect("a key")).await;
        lost.expect("it was there");
        transaction
            .commit(plimsoll_engine::Commit::Durable)
            .await
            .expect("it is written");
        let audit = store.audit().await.expect("the disk is sound");
        assert!(!audit.is_consistent());
        assert_eq!(
            (audit.totals_wrong, audit.used_wrong, audit.unread_wrong),
            (1, 1, 0)
        );
        drop((store, table));
        close(instances).await;
    });
    ended.expect("it comes to an end");
}

/// Recipients that are not there, named twice or none at all are refused, and a store of another seed is not driven.
#[test]
fn wrong_recipients_and_other_stores_are_refused() {
    let ended = run_on(&disk(), |files, handle| async move {
        let instances = new_instances(&files, &handle).await;
        let store = open_store(&instances).await.expect("it is whole");
        for to in [&[][..], &[8], &[1, 1]] {
            let error = store
                .submit(to, b"text")
                .await
                .expect_err("it is refused")
                .to_string();
            assert!(error.contains("name each mailbox once, from 0 to 7"), "{error}");
        }
        assert_eq!(
            (store.accepted(), store.queued().await.expect("it can be read")),
            (0, 0)
        );
        drop(store);
        let other = MailStore::open(&instances[0], &instances[1], SEED + 1, FILLING).await;
        let error = other.err().expect("it is another").to_string();
        assert!(
            error.contains("holds 8 mailboxes of 5 messages made with seed 17"),
            "{error}"
        );
        close(instances).await;
    });
    ended.expect("it comes to an end");
}
