//! Mailboxes that change their database while users go on: reachable all the time, each message
//! there once, also when the power goes in the middle of a move.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, Files, Handle, Loss, MemoryDisk, NANOS_PER_MILLISECOND,
    Purpose, Random,
};
use plimsoll_stores::mail::{Entry, Filling, INBOX, MailStore, Moved};

use crate::mail::lives::{audited, busy, delivered_once};
use crate::mail::world::*;

const VIEWED: Filling = Filling { views: 1, ..FILLING };
/// More than a batch holds.
const BIG: Filling = Filling { messages_per_folder: 90, ..VIEWED };

fn on(_: &Moved) -> bool {
    true
}

/// Makes a store with a further database, all closed.
fn made(filling: Filling) -> Rc<MemoryDisk> {
    let disk = disk();
    run_on(&disk, move |files, handle| async move {
        close(new_instances(&files, &handle, filling).await).await;
        make_further(&files, USUAL).await;
    })
    .expect("it is made");
    disk
}

async fn open(files: &Files, handle: &Handle, filling: Filling) -> (Vec<Rc<Instance>>, MailStore) {
    let all = try_all(files, handle, USUAL, true).await.expect("they open");
    let store = try_store_of(&all, filling).await.expect("it can be read");
    (all, store.expect("it is whole"))
}

pub async fn count(instance: &Rc<Instance>, table: &str) -> u64 {
    let table = match instance.open_table(1, table).await {
        Ok(table) => table,
        Err(EngineError::NoSuchObject { .. }) => return 0,
        Err(error) => panic!("{error}"),
    };
    let all = plimsoll_engine::cursor::KeyRange::all();
    table.count(&instance.begin(), 0, all, u64::MAX).await.expect("the disk is sound")
}

/// Users send, read and delete while each mailbox is moved, and half of them back. Nothing is lost
/// or doubled, each place holds its own alone, and the next run finds them where they are.
#[test]
fn users_go_on_while_mailboxes_are_moved() {
    let ended = run_on(&made(VIEWED), |files, handle| async move {
        let (all, store) = open(&files, &handle, VIEWED).await;
        let store = Rc::new(store);
        let tried = Rc::new(Cell::new(0));
        let users: Vec<_> = (0..4)
            .map(|session| handle.spawn(busy(store.clone(), session, 40, tried.clone())))
            .collect();
        let mut moved = Vec::new();
        for number in (0..8).chain([1, 3, 5, 7]) {
            moved.push(store.move_mailbox(number, &on).await.expect("the disk is sound"));
        }
        for user in users {
            user.await;
        }
        for one in &moved {
            assert!(one.is_over && one.written_bytes > 10_000, "{one:?}");
            assert!(one.read_bytes >= one.written_bytes, "{one:?}");
            assert!(one.log_bytes > one.written_bytes, "{one:?}");
            assert!(one.rows > 2 * VIEWED.messages() && one.deleted_rows > 0, "{one:?}");
        }
        assert_eq!(store.acknowledged(), tried.get(), "every user came to an end");
        let audit = audited(&store).await;
        assert_eq!(audit.accepted, audit.delivered);
        // One row for each of the others and the public folders.
        assert_eq!((count(&all[0], "Mailbox").await, count(&all[2], "Mailbox").await), (5, 4));
        assert_eq!((count(&all[0], "Moving").await, count(&all[2], "Moving").await), (0, 0));
        assert!(store.page(2, INBOX, 50, false).await.expect("it is there").len() > 1);
        drop(store);
        close(all).await;
        let (all, store) = open(&files, &handle, VIEWED).await;
        let store = Rc::new(store);
        assert_eq!(store.moved(), 4);
        busy(store.clone(), 77, 20, Rc::default()).await;
        assert_eq!(audited(&store).await.accepted, audit.accepted + store.acknowledged());
        drop(store);
        close(all).await;
    });
    ended.expect("it comes to an end");
}

/// What its user does in a mailbox after its rows were copied is there after the move: read marks,
/// removals, folders, posts, rules.
#[test]
fn a_change_during_a_move_is_not_lost() {
    let ended = run_on(&made(VIEWED), |files, handle| async move {
        let (all, store) = open(&files, &handle, VIEWED).await;
        let store = Rc::new(store);
        let told = Cell::new(0);
        // Ended when everything was copied: what follows comes to a copy that is there.
        let ends = |_: &Moved| {
            told.set(told.get() + 1);
            told.get() < 8
        };
        assert!(!store.move_mailbox(3, &ends).await.expect("the disk is sound").is_over);
        assert_eq!(store.begun_moves(), [3]);
        let before = store.page(3, INBOX, 50, false).await.expect("it is there");
        let entries: Vec<Entry> = before.iter().map(|shown| shown.entry).collect();
        store.delete(3, &entries[..1]).await.expect("there is room");
        store.shift(3, &entries[1..2], 10).await.expect("there is room");
        let draft = store.write(1, &[3, 4], "", false).expect("they are there");
        store.submit(&draft).await.expect("there is room");
        store.deliver_queued(&|_| {}).await.expect("there is room");
        let inbox = store.page(3, INBOX, 50, false).await.expect("it is there");
        let unread = inbox.iter().find(|shown| !shown.is_read).expect("it came").entry;
        assert_eq!(store.mark_read(3, &[unread]).await.expect("there is room"), 1);
        let seen = async |store: &MailStore| {
            let inbox = store.page(3, INBOX, 50, false).await.expect("it is there");
            let other = store.page(3, 10, 50, false).await.expect("it is there");
            let changes = store.changes(3, 0).await.expect("it is there").list.len();
            format!("{inbox:?} {other:?} {changes} {:?}", store.folders(3).await)
        };
        let wanted = seen(&store).await;
        let moved = store.move_mailbox(3, &on).await.expect("the disk is sound");
        assert!(moved.is_over && store.moved() == 1 && store.begun_moves().is_empty());
        assert_eq!(seen(&store).await, wanted);
        audited(&store).await;
        drop(store);
        close(all).await;
    });
    ended.expect("it comes to an end");
}

/// A move that was ended, or cut off by the power, goes on where it was: it writes what is missing,
/// not everything again.
#[test]
fn a_move_goes_on_where_it_was() {
    for is_cut in [false, true] {
        let disk = made(BIG);
        let written = Rc::new(Cell::new(0));
        let first = written.clone();
        run_on(&disk, move |files, handle| async move {
            let (all, store) = open(&files, &handle, BIG).await;
            let ends = |moved: &Moved| moved.rows < 200;
            let moved = store.move_mailbox(2, &ends).await.expect("the disk is sound");
            assert!(!moved.is_over && moved.rows >= 200, "{moved:?}");
            first.set(moved.rows);
            // The copy stands for nothing yet.
            assert_eq!(store.moved(), 0);
            audited(&store).await;
            if is_cut {
                // A commit of the log brings what came before it.
                let log = &all[2].store().log;
                log.make_durable(log.tip()).await.expect("there is room");
                return;
            }
            drop(store);
            close(all).await;
        });
        let image = match is_cut {
            true => {
                disk.power_cut();
                disk.crash_image(Loss::Drawn, &mut Random::from_seed(1))
            }
            false => disk,
        };
        let first = written.get();
        let ended = run_on(&image, move |files, handle| async move {
            let (all, store) = open(&files, &handle, BIG).await;
            assert_eq!((store.begun_moves(), store.moved()), (vec![2], 0));
            audited(&store).await;
            let moved = store.move_mailbox(2, &on).await.expect("the disk is sound");
            assert!(moved.is_over);
            // Its own row is none of those that are deleted in batches.
            let whole = moved.deleted_rows + 1;
            assert_eq!(moved.rows + first, whole, "cut {is_cut}: {moved:?} after {first}");
            audited(&store).await;
            drop(store);
            close(all).await;
        });
        ended.expect("it comes to an end");
    }
}

/// Power cuts while mailboxes are moved and users go on: copies that were begun go on, originals
/// that were left go, and every accepted message is there once.
#[test]
fn a_power_cut_in_a_move_loses_no_mail_and_doubles_none() {
    let (mut begun, mut left, mut switched) = (0, 0, 0);
    for seed in 0..40 {
        let disk = made(VIEWED);
        let (acknowledged, tried) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let moment = Random::from_seed(seed).below(160 * NANOS_PER_MILLISECOND);
        let (noted, counted) = (acknowledged.clone(), tried.clone());
        run_on(&disk, move |files, handle| async move {
            let (_all, store) = open(&files, &handle, VIEWED).await;
            let store = Rc::new(store);
            let mut tasks: Vec<_> = (0..3)
                .map(|session| {
                    let work = busy(store.clone(), 10 * seed + session, 1_000, counted.clone());
                    handle.spawn(work)
                })
                .collect();
            let mover = store.clone();
            tasks.push(handle.spawn(async move {
                for number in (0..8).cycle() {
                    mover.move_mailbox(number, &on).await.expect("the disk is sound");
                }
            }));
            handle.sleep(20 * NANOS_PER_MILLISECOND + moment).await;
            noted.set(store.acknowledged());
            drop(tasks);
        });
        disk.power_cut();
        let image = disk.crash_image(Loss::Drawn, &mut Random::from_seed(seed).child("image"));
        let (low, high) = (acknowledged.get(), tried.get());
        let met = run_on(&image, move |files, handle| async move {
            let all = try_all(&files, &handle, USUAL, true).await.expect("they open");
            let rows = [count(&all[0], "Mailbox").await, count(&all[2], "Mailbox").await];
            let store = try_store_of(&all, VIEWED).await.expect("it can be read");
            let store = Rc::new(store.expect("it is whole"));
            let met = [store.begun_moves().len(), (rows[0] + rows[1] - 9) as usize, store.moved()];
            let [_, after] = delivered_once(&store, low..=high, seed).await;
            for number in 0..8 {
                store.move_mailbox(number, &on).await.expect("the disk is sound");
            }
            assert_eq!(audited(&store).await.messages, after.messages, "seed {seed}");
            assert_eq!(store.moved(), 8 - met[2], "seed {seed}");
            drop(store);
            close(all).await;
            met
        });
        let [marks, doubles, moved] = met.expect("it comes to an end");
        begun += marks;
        left += doubles;
        switched += moved;
    }
    assert!(begun > 0, "no cut met a copy that was begun");
    assert!(left > 0, "no cut met an original that was left");
    assert!(switched > 10, "only {switched} mailboxes had been moved");
}

/// A mailbox that has just come begins to move back, and the power goes. There is one original: the
/// end of the first move must not be forgotten when the beginning of the second is known.
#[test]
fn a_crash_when_a_mailbox_moves_back_loses_nothing() {
    let disk = made(VIEWED);
    run_on(&disk, |files, handle| async move {
        let (_all, store) = open(&files, &handle, VIEWED).await;
        assert!(store.move_mailbox(6, &on).await.expect("the disk is sound").is_over);
        let begun = store.move_mailbox(6, &|_| false).await.expect("the disk is sound");
        assert!(!begun.is_over);
        std::mem::forget(store);
    });
    disk.power_cut();
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    let ended = run_on(&image, |files, handle| async move {
        let (all, store) = open(&files, &handle, VIEWED).await;
        assert_eq!(store.moved(), 1);
        audited(&store).await;
        assert_eq!(store.page(6, INBOX, 50, false).await.expect("it is there").len(), 4);
        drop(store);
        close(all).await;
    });
    ended.expect("it comes to an end");
}

/// The user of a mailbox waits for its switch alone: it is copied with the mailbox open.
#[test]
fn a_mailbox_is_closed_for_a_part_of_its_move_only() {
    let ended = run_on(&made(BIG), |files, handle| async move {
        let (all, store) = open(&files, &handle, BIG).await;
        let begun = handle.now();
        let moved = store.move_mailbox(1, &on).await.expect("the disk is sound");
        let took = handle.now() - begun;
        assert!(moved.closed_ns > 0 && 2 * moved.closed_ns < took, "{moved:?} in {took} ns");
        drop(store);
        close(all).await;
    });
    ended.expect("it comes to an end");
}

/// Where the commit of a switch fails, nobody knows where the mailbox lives. Whoever comes is
/// refused, or what he is promised at one place may be lost at the other; opening again decides.
#[test]
fn nobody_enters_a_mailbox_whose_switch_failed() {
    let tells_before = Rc::new(Cell::new(0));
    let counted = tells_before.clone();
    run_on(&made(VIEWED), move |files, handle| async move {
        let (_all, store) = open(&files, &handle, VIEWED).await;
        let tell = |moved: &Moved| {
            counted.set(counted.get() + u32::from(!moved.is_over));
            true
        };
        assert!(store.move_mailbox(4, &tell).await.expect("the disk is sound").is_over);
    });
    let disk = made(VIEWED);
    let (failing, last) = (disk.clone(), tells_before.get());
    run_on(&disk, move |files, handle| async move {
        let (_all, store) = open(&files, &handle, VIEWED).await;
        let tells = Cell::new(0);
        let tell = |_: &Moved| {
            tells.set(tells.get() + 1);
            if tells.get() == last {
                let rule = FaultRule::new(Effect::Fail(DiskErrorKind::Medium));
                failing.inject(rule.with_path_part("/further").with_purpose(Purpose::LogWrite));
            }
            true
        };
        let error = store.move_mailbox(4, &tell).await.expect_err("the log fails");
        assert!(!matches!(error, EngineError::BadRow(_)), "{error}");
        let refused = store.page(4, INBOX, 50, false).await.expect_err("it is in doubt");
        assert!(matches!(refused, EngineError::Poisoned { .. }), "{refused}");
        assert_eq!(store.page(5, INBOX, 50, false).await.expect("it stays").len(), 4);
        failing.process_died();
    });
    disk.clear_faults();
    let ended = run_on(&disk, |files, handle| async move {
        let (all, store) = open(&files, &handle, VIEWED).await;
        audited(&store).await;
        assert_eq!(store.page(4, INBOX, 50, false).await.expect("it is there").len(), 4);
        drop(store);
        close(all).await;
    });
    ended.expect("it comes to an end");
}

/// What cannot be moved is refused with what to do, and a store whose mailboxes were moved is not
/// opened without the database they are in.
#[test]
fn moves_that_cannot_be_are_refused() {
    let ended = run_on(&made(VIEWED), |files, handle| async move {
        let both = open_instances(&files, &handle).await;
        let alone = open_store(&both, VIEWED).await;
        let error = alone.move_mailbox(1, &on).await.expect_err("there is no place");
        assert!(error.to_string().contains("needs a further database"), "{error}");
        drop(alone);
        close(both).await;
        let (all, store) = open(&files, &handle, VIEWED).await;
        store.move_mailbox(1, &on).await.expect("the disk is sound");
        // Of this one nobody can tell where it is without the other database.
        assert!(!store.move_mailbox(2, &|_| false).await.expect("the disk is sound").is_over);
        let error = store.move_mailbox(8, &on).await.expect_err("it is the public one");
        assert!(error.to_string().contains("there is none with this number"), "{error}");
        drop(store);
        close(all).await;
        let both = open_instances(&files, &handle).await;
        let error = try_store(&both, VIEWED).await.err().expect("a mailbox is missing");
        assert!(error.to_string().contains("2 mailboxes of the store were moved"), "{error}");
        close(both).await;
    });
    ended.expect("it comes to an end");
    for (filling, told) in [
        (Filling { is_indexed: false, ..SHARED }, "write layout = \"per_mailbox\""),
        (Filling { is_indexed: true, ..FILLING }, "write indexed = false"),
    ] {
        let ended = run_on(&made(filling), move |files, handle| async move {
            let (all, store) = open(&files, &handle, filling).await;
            let error = store.move_mailbox(1, &on).await.expect_err("it is refused");
            assert!(error.to_string().contains(told), "{error}");
            drop(store);
            close(all).await;
        });
        ended.expect("it comes to an end");
    }
}

/// A move holds a batch in memory, however large the mailbox: it tells of each.
#[test]
fn a_move_goes_in_batches() {
    let ended = run_on(&made(BIG), |files, handle| async move {
        let (all, store) = open(&files, &handle, BIG).await;
        let steps = RefCell::new(vec![Moved::default()]);
        let tell = |moved: &Moved| {
            steps.borrow_mut().push(*moved);
            true
        };
        store.move_mailbox(0, &tell).await.expect("the disk is sound");
        for pair in steps.borrow().windows(2) {
            assert!(pair[1].rows - pair[0].rows <= 64, "{pair:?}");
            assert!(pair[1].written_bytes - pair[0].written_bytes <= 300 << 10, "{pair:?}");
            assert!(pair[1].deleted_rows - pair[0].deleted_rows <= 64, "{pair:?}");
        }
        drop(store);
        close(all).await;
    });
    ended.expect("it comes to an end");
}
