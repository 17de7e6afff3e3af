//! Rules of mailboxes, carried out by deliveries.

use plimsoll_engine::error::EngineError;
use plimsoll_stores::mail::{INBOX, MailStore, Rule};

use crate::mail::lives::audited;
use crate::mail::world::*;

/// A rule for one sender of four.
fn rule(sender: u32, folder: i32) -> Rule {
    Rule { senders: 4, sender, folder }
}

/// Messages of a folder with how many are unread, less what it was filled with.
async fn came(store: &MailStore, mailbox: u32, folder: i32) -> (u64, u64) {
    let filled = if folder == INBOX { FILLING.inbox } else { FILLING.messages_per_folder };
    let folders = store.folders(mailbox).await.expect("the disk is sound");
    let (_, unread) = folders.iter().find(|(number, _)| *number == folder).expect("it is there");
    let total = store.total(mailbox, folder).await.expect("the disk is sound");
    (total - u64::from(filled), *unread)
}

async fn send(store: &MailStore, from: u32, to: &[u32]) {
    let draft = store.write(from, to, "", false).expect("they are there");
    store.submit(&draft).await.expect("there is room");
    store.deliver_queued(&|_| {}).await.expect("there is room");
}

/// Each recipient's own rules decide, the first that fits, as they stand when the message is
/// delivered; counters of all folders stay right.
#[test]
fn mail_goes_where_the_first_rule_that_fits_says() {
    for filling in [FILLING, SHARED] {
        let ended = run_on(&disk(), move |files, handle| async move {
            let instances = new_instances(&files, &handle, filling).await;
            let store = open_store(&instances, filling).await;
            store.put_rule(2, 5, rule(1, 10)).await.expect("there is room");
            assert_eq!(store.rules(2).await.expect("the disk is sound"), [rule(1, 10)]);
            send(&store, 1, &[2, 3]).await;
            send(&store, 6, &[2]).await;
            assert_eq!(came(&store, 2, 10).await, (1, 1));
            assert_eq!(came(&store, 2, INBOX).await, (1, 1), "another sender");
            assert_eq!(came(&store, 3, INBOX).await, (1, 1), "no rule of its own");
            audited(&store).await;
            store.put_rule(2, 1, rule(1, 11)).await.expect("there is room");
            send(&store, 5, &[2]).await;
            assert_eq!(came(&store, 2, 11).await, (1, 1), "a lower number is asked first");
            store.put_rule(2, 1, rule(3, 11)).await.expect("there is room");
            send(&store, 5, &[2]).await;
            assert_eq!(came(&store, 2, 10).await, (2, 2), "the rule is another one now");
            let moved = store.page(2, 10, 1, false).await.expect("the disk is sound");
            let read = store.read(2, moved[0].entry).await.expect("the disk is sound");
            assert!(read.is_some_and(|read| read.is_right));
            while store.index_delivered(100).await.expect("there is room") > 0 {}
            audited(&store).await;
            drop(store);
            close(instances).await;
        });
        ended.expect("it comes to an end");
    }
}

/// A delivery into a folder that is not there would never succeed and hold up all others.
#[test]
fn a_rule_for_a_folder_that_is_not_there_is_refused() {
    let ended = run_on(&disk(), |files, handle| async move {
        let instances = new_instances(&files, &handle, FILLING).await;
        let store = open_store(&instances, FILLING).await;
        let error = store.put_rule(2, 1, rule(1, 12)).await.expect_err("it is refused");
        assert!(
            matches!(&error, EngineError::BadRow(told) if told.contains("folder 12")),
            "{error}"
        );
        assert_eq!(store.rules(2).await.expect("the disk is sound"), []);
        drop(store);
        close(instances).await;
    });
    ended.expect("it comes to an end");
}
