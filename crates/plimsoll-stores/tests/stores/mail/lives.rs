//! What becomes of mail between its runs and in crashes: nothing accepted is lost, nothing arrives
//! twice, counters are what rows say.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::rc::Rc;

use plimsoll_engine::Commit;
use plimsoll_io::{Handle, Loss, NANOS_PER_MILLISECOND, Random};
use plimsoll_stores::mail::{Entry, Filling, INBOX, MailAudit, MailStore};

use crate::mail::world::*;

/// Every message of the mailboxes; the one of the public folders has none.
fn prepared(filling: Filling) -> u64 {
    u64::from(filling.mailboxes) * filling.messages()
}

pub async fn audited(store: &MailStore) -> MailAudit {
    let audit = store.audit().await.expect("the disk is sound");
    let found = audit.findings(store.acknowledged());
    assert!(found.is_empty(), "{found:?}: {audit:?}");
    audit
}

/// Holds a store that was cut off to what was accepted, and delivers what waits: what was found
/// before that, and behind it.
pub async fn delivered_once(
    store: &MailStore,
    accepted: RangeInclusive<u64>,
    seed: u64,
) -> [MailAudit; 2] {
    let audit = audited(store).await;
    assert!(
        accepted.contains(&audit.accepted),
        "seed {seed}: {} of {accepted:?}, {audit:?}",
        audit.accepted
    );
    store.deliver_queued(&|_| {}).await.expect("the disk is sound");
    let after = audited(store).await;
    assert_eq!((after.delivered, after.queued), (audit.accepted, 0), "seed {seed}");
    [audit, after]
}

/// Does what users do, until told to stop or the store goes away; what was begun is counted.
pub async fn busy(store: Rc<MailStore>, session: u64, rounds: u64, tried: Rc<Cell<u64>>) {
    // The first error ends it: the disk is gone.
    let _ = rounds_of(&store, session, rounds, &tried).await;
}

async fn rounds_of(
    store: &MailStore,
    session: u64,
    rounds: u64,
    tried: &Cell<u64>,
) -> plimsoll_engine::error::Result<()> {
    let mut random = Random::from_seed(session);
    let mut since = 0;
    for _ in 0..rounds {
        let user = random.below(8) as u32;
        let count = 1 + random.below(3) as u32;
        let to: Vec<u32> = (1..=count).map(|place| (user + place) % 8).collect();
        tried.set(tried.get() + u64::from(count));
        let draft = store.write(user, &to, "", false)?;
        store.submit(&draft).await?;
        store.keep_sent(&draft).await?;
        store.deliver_queued(&|_| {}).await?;
        store.index_delivered(8).await?;
        let rows = store.page(user, INBOX, 4, false).await?;
        for shown in rows.iter().filter(|shown| !shown.is_read) {
            let read = store.read(user, shown.entry).await?;
            assert!(read.is_none_or(|read| read.is_right), "{shown:?}");
            if read.is_some_and(|read| read.has_attachment) {
                let file = store.read_attachment(user, shown.entry).await?;
                assert!(file.is_none_or(|read| read.is_right), "{shown:?}");
            }
            store.mark_read(user, &[shown.entry]).await?;
        }
        let entries: Vec<Entry> = rows.iter().map(|shown| shown.entry).collect();
        match random.below(4) {
            0 => drop(store.delete(user, &entries[..entries.len().min(2)]).await?),
            1 => drop(store.shift(user, &entries[..entries.len().min(2)], 10).await?),
            2 => store.post(8, 10, user).await?,
            _ => since = store.changes(user, since).await?.until,
        }
    }
    Ok(())
}

async fn sessions(handle: &Handle, store: &Rc<MailStore>, run: u64, tried: &Rc<Cell<u64>>) {
    let tasks: Vec<_> = (0..4)
        .map(|session| {
            let (store, tried) = (store.clone(), tried.clone());
            handle.spawn(async move { rounds_of(&store, 10 * run + session, 12, &tried).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("the disk is sound");
    }
}

/// A store is kept between runs: the next one finds all mail of the last, and numbers of its own.
#[test]
fn the_next_run_finds_the_mail_of_the_last() {
    for filling in [FILLING, SHARED] {
        let ended = run_on(&disk(), move |files, handle| async move {
            let mut instances = new_instances(&files, &handle, filling).await;
            let mut accepted = 0;
            for run in 1..=3 {
                let store = open_store(&instances, filling).await;
                assert_eq!(store.run(), run);
                sessions(&handle, &store, run, &Rc::default()).await;
                accepted += store.acknowledged();
                let audit = audited(&store).await;
                assert!(audit.deleted > 0 && store.acknowledged() > 40);
                assert_eq!((audit.accepted, audit.delivered), (accepted, accepted));
                assert_eq!(audit.received, prepared(filling) + accepted + others(run));
                assert_eq!(audit.messages, audit.received - audit.deleted);
                assert_eq!(audit.contents < audit.messages, filling == SHARED, "{audit:?}");
                drop(store);
                close(instances).await;
                instances = open_instances(&files, &handle).await;
            }
            close(instances).await;
        });
        ended.expect("it comes to an end");
    }
}

/// Copies of what was sent, and posts, of so many runs of four sessions with twelve rounds each.
fn others(runs: u64) -> u64 {
    let mut count = 0;
    for session in (1..=runs).flat_map(|run| (0..4).map(move |number| 10 * run + number)) {
        let mut random = Random::from_seed(session);
        for _ in 0..12 {
            let _ = (random.below(8), random.below(3));
            count += 1 + u64::from(random.below(4) == 2);
        }
    }
    count
}

/// Power cuts while mail is accepted, delivered, read, moved and deleted. What was accepted is
/// delivered or queued once afterwards, whichever of both logs went first.
#[test]
fn a_power_cut_loses_no_accepted_mail_and_doubles_none() {
    let mut waited = 0;
    for seed in 0..24 {
        let filling = if seed % 2 == 0 { FILLING } else { SHARED };
        let disk = disk();
        run_on(&disk, move |files, handle| async move {
            close(new_instances(&files, &handle, filling).await).await;
        })
        .expect("it is made");
        let (acknowledged, tried) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let moment = Random::from_seed(seed).below(200 * NANOS_PER_MILLISECOND);
        let (noted, counted) = (acknowledged.clone(), tried.clone());
        run_on(&disk, move |files, handle| async move {
            let instances = open_instances(&files, &handle).await;
            let store = open_store(&instances, filling).await;
            let tasks: Vec<_> = (0..4)
                .map(|session| {
                    let work = busy(store.clone(), 10 * seed + session, 1_000, counted.clone());
                    handle.spawn(work)
                })
                .collect();
            handle.sleep(40 * NANOS_PER_MILLISECOND + moment).await;
            noted.set(store.acknowledged());
            drop(tasks);
        });
        disk.power_cut();
        let image = disk.crash_image(Loss::Drawn, &mut Random::from_seed(seed).child("image"));
        let (low, high) = (acknowledged.get(), tried.get());
        assert!(low > 0, "seed {seed}: nothing was accepted");
        waited += run_on(&image, move |files, handle| async move {
            let instances = open_instances(&files, &handle).await;
            let store = open_store(&instances, filling).await;
            let [audit, _] = delivered_once(&store, low..=high, seed).await;
            while store.index_delivered(100).await.expect("the disk is sound") > 0 {}
            drop(store);
            close(instances).await;
            audit.queued
        })
        .expect("it comes to an end");
    }
    assert!(waited > 0, "no cut met a message in the queue");
}

/// The audit finds what went, or came, without the store's knowing.
#[test]
fn planted_losses_are_found() {
    type Findings = fn(&MailAudit) -> u64;
    let cases: [(usize, &str, Vec<i64>, &[Findings]); 4] = [
        (
            0,
            "Contents",
            vec![3, 0, 2, 2],
            &[
                |audit| audit.folders_wrong,
                |audit| audit.totals_wrong,
                |audit| audit.references_wrong,
            ],
        ),
        (0, "Message", vec![3, 2], &[|audit| audit.missing]),
        (0, "Mailbox", vec![5], &[|audit| audit.totals_wrong]),
        (1, "Queue", vec![(1 << 40) | 2], &[|audit| audit.accepted - audit.delivered]),
    ];
    for (engine, table, key, findings) in cases {
        let ended = run_on(&disk(), move |files, handle| async move {
            let instances = new_instances(&files, &handle, FILLING).await;
            let store = open_store(&instances, FILLING).await;
            let draft = store.write(1, &[2], "", false).expect("they are there");
            store.submit(&draft).await.expect("there is room");
            audited(&store).await;
            remove(&instances[engine], table, &key).await;
            let audit = store.audit().await.expect("the disk is sound");
            assert!(!audit.findings(1).is_empty(), "{table}: {audit:?}");
            for finding in findings {
                assert_eq!(finding(&audit), 1, "{table}: {audit:?}");
            }
            drop(store);
            close(instances).await;
        });
        ended.expect("it comes to an end");
    }
}

/// Deletes a row by its key behind the back of the store.
async fn remove(instance: &Rc<plimsoll_engine::instance::Instance>, table: &str, key: &[i64]) {
    let table = instance.open_table(1, table).await.expect("it is there");
    let columns = &table.placed().table;
    let widths = columns.indexes[0].columns.iter().map(|column| {
        let found = columns.column(column.column).expect("a column");
        found.column_type.fixed_bytes().expect("a number")
    });
    let bytes: Vec<Vec<u8>> =
        key.iter().zip(widths).map(|(part, width)| part.to_le_bytes()[..width].to_vec()).collect();
    let parts: Vec<Option<&[u8]>> = bytes.iter().map(|part| Some(&part[..])).collect();
    let transaction = instance.begin();
    let key = table.key(&parts).expect("a key");
    table.delete(&transaction, &key).await.expect("it was there");
    transaction.commit(Commit::Durable).await.expect("it is written");
}

/// Recipients that are not there, named twice or none at all are refused, and a store with another
/// filling is not driven.
#[test]
fn wrong_recipients_and_other_stores_are_refused() {
    let ended = run_on(&disk(), |files, handle| async move {
        let instances = new_instances(&files, &handle, FILLING).await;
        let store = open_store(&instances, FILLING).await;
        for to in [&[][..], &[8], &[1, 1]] {
            let error = store.write(0, to, "", false).err().expect("it is refused").to_string();
            assert!(error.contains("name each mailbox once, from 0 to 7"), "{error}");
        }
        assert_eq!((store.acknowledged(), store.waiting()), (0, 0));
        drop(store);
        for (other, told) in [
            (Filling { mailboxes: 9, ..FILLING }, "mailboxes 8, not 9"),
            (Filling { views: 1, ..FILLING }, "kept views 0, not 1"),
            (Filling { is_indexed: true, ..FILLING }, "index 0, not 1"),
        ] {
            let error = try_store(&instances, other).await.err().expect("it is another");
            assert!(error.to_string().contains(told), "{error}");
        }
        close(instances).await;
    });
    ended.expect("it comes to an end");
}

/// A client that asks for changes hears of every message once at least, however deliveries overlap
/// with its questions.
#[test]
fn changes_leave_nothing_out() {
    let ended = run_on(&disk(), |files, handle| async move {
        let instances = new_instances(&files, &handle, FILLING).await;
        let store = open_store(&instances, FILLING).await;
        let writers: Vec<_> = (0..6)
            .map(|session| handle.spawn(busy(store.clone(), 70 + session, 20, Rc::default())))
            .collect();
        let mut known = std::collections::BTreeSet::new();
        let mut since = 0;
        for _ in 0..200 {
            since = heed(&store, since, &mut known).await;
            handle.sleep(3 * NANOS_PER_MILLISECOND).await;
        }
        for writer in writers {
            writer.await;
        }
        heed(&store, since, &mut known).await;
        let there = store.page(4, INBOX, usize::MAX, false).await.expect("the disk is sound");
        // Messages that were there before have no changes unless they were touched.
        let came = there.iter().filter(|shown| shown.entry.received > 1 << 40);
        let came: Vec<Entry> = came.map(|shown| shown.entry).collect();
        assert!(came.len() > 10, "{came:?}");
        assert!(came.iter().all(|entry| known.contains(entry)));
        drop(store);
        close(instances).await;
    });
    ended.expect("it comes to an end");
}

async fn heed(store: &MailStore, since: i64, known: &mut std::collections::BTreeSet<Entry>) -> i64 {
    let found = store.changes(4, since).await.expect("the disk is sound");
    for changed in found.list {
        if changed.came {
            known.insert(changed.entry);
        }
    }
    found.until
}

/// What is searched is found, by the index as without it, and no longer once it is deleted.
#[test]
fn a_search_finds_the_same_with_an_index_and_without() {
    let mut found = Vec::new();
    for is_indexed in [false, true] {
        let filling = Filling { folders: 1, messages_per_folder: 0, is_indexed, ..FILLING };
        found.push(
            run_on(&disk(), move |files, handle| async move {
                let instances = new_instances(&files, &handle, filling).await;
                let store = open_store(&instances, filling).await;
                let draft = store.write(1, &[2, 3], "", false).expect("they are there");
                store.submit(&draft).await.expect("there is room");
                store.deliver_queued(&|_| {}).await.expect("there is room");
                while store.index_delivered(1).await.expect("there is room") > 0 {}
                let first = store.page(2, INBOX, 1, true).await.expect("it can be read");
                store.delete(2, &[first[0].entry]).await.expect("it is there");
                let mut counts = Vec::new();
                for number in 0..64 {
                    let word = plimsoll_workload::store::word(number).to_ascii_lowercase();
                    counts.push(store.search(2, &word).await.expect("it can be read"));
                }
                drop(store);
                close(instances).await;
                counts
            })
            .expect("it comes to an end"),
        );
    }
    assert_eq!(found[0], found[1]);
    assert!(found[0].iter().sum::<u64>() > 0);
}
