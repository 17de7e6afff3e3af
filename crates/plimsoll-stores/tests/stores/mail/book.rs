//! What users of a mail store were told, message by message, and whether what is found agrees: a
//! message that was accepted stands in one folder of each recipient, in the one to which it was
//! moved, and a deleted one nowhere. Counters of the store itself are held by its audit.

use std::collections::BTreeMap;

use plimsoll_engine::error::Result;
use plimsoll_stores::mail::{Entry, Filling, MailStore};

/// Where a message stands in a mailbox, as its user was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    In(i32),
    Gone,
    /// It was being moved or deleted when something went wrong, or by two at a time.
    Unsure,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    /// Whether anybody was promised that it is there.
    is_promised: bool,
    place: Place,
    /// How many move or delete it just now.
    busy: u32,
    is_contested: bool,
}

/// Messages by mailbox and document.
type Messages<T> = BTreeMap<(u32, i64), T>;

/// See the module text.
#[derive(Default)]
pub struct Book {
    told: Messages<Told>,
    /// Messages times recipients: at least so many were accepted, and at most so many.
    pub accepted: u64,
    pub tried: u64,
    /// What was found of mail that nobody was promised: there, and not there.
    pub unpromised: [u64; 2],
}

impl Book {
    /// A new store, with what it was filled with.
    pub fn of(filling: Filling) -> Book {
        let mut book = Book::default();
        for mailbox in 0..filling.mailboxes {
            for message in 0..filling.messages() {
                let entry = filling.place_of(message);
                book.enter(mailbox, entry.document, entry.folder, true);
            }
        }
        book
    }

    fn enter(&mut self, mailbox: u32, document: i64, folder: i32, is_promised: bool) {
        let place = Place::In(folder);
        let told = Told { is_promised, place, busy: 0, is_contested: false };
        self.told.insert((mailbox, document), told);
    }

    /// A message will be submitted; `places` are its recipients with the folders for it.
    pub fn submitting(&mut self, document: i64, places: &[(u32, i32)]) {
        self.tried += places.len() as u64;
        for (mailbox, folder) in places {
            self.enter(*mailbox, document, *folder, false);
        }
    }

    /// Its acceptance was acknowledged.
    pub fn submitted(&mut self, document: i64, to: &[u32]) {
        self.accepted += to.len() as u64;
        for mailbox in to {
            self.of_message(*mailbox, document).is_promised = true;
        }
    }

    /// A copy will be laid into a folder, and nothing is promised of it.
    pub fn copying(&mut self, mailbox: u32, document: i64, folder: i32) {
        self.enter(mailbox, document, folder, false);
    }

    fn of_message(&mut self, mailbox: u32, document: i64) -> &mut Told {
        self.told.get_mut(&(mailbox, document)).expect("a message of this world")
    }

    /// Messages will be moved or deleted.
    pub fn begin(&mut self, mailbox: u32, entries: &[Entry]) {
        for entry in entries {
            let told = self.of_message(mailbox, entry.document);
            told.busy += 1;
            told.is_contested |= told.busy > 1;
        }
    }

    /// Those that were there were moved; an error says nothing.
    pub fn moved(&mut self, mailbox: u32, entries: &[Entry], into: i32, done: &Result<Vec<Entry>>) {
        self.end(mailbox, entries, |entry, before| match done {
            Ok(moved) if moved.iter().any(|is| is.document == entry.document) => Place::In(into),
            Ok(_) => before,
            Err(_) => Place::Unsure,
        });
    }

    /// So many were there and were deleted; which, is known where it is all of them.
    pub fn deleted(&mut self, mailbox: u32, entries: &[Entry], done: &Result<u64>) {
        let are_all = done.as_ref().is_ok_and(|count| *count == entries.len() as u64);
        self.end(mailbox, entries, |_, _| if are_all { Place::Gone } else { Place::Unsure });
    }

    fn end(&mut self, mailbox: u32, entries: &[Entry], place: impl Fn(&Entry, Place) -> Place) {
        for entry in entries {
            let told = self.of_message(mailbox, entry.document);
            told.busy -= 1;
            told.place = match told.is_contested {
                true => Place::Unsure,
                false => place(entry, told.place),
            };
        }
    }

    /// Holds what is found against what was told. Nothing may be under way, and nothing wait in the
    /// queue. What was found is told from now on.
    pub async fn hold(&mut self, store: &MailStore, label: &str) {
        let mut found = found(store, label).await;
        for ((mailbox, document), told) in &mut self.told {
            let is = found.remove(&(*mailbox, *document));
            let is_unsure = told.busy > 0 || told.is_contested || told.place == Place::Unsure;
            let is_right = is_unsure
                || match (is, told.place) {
                    (Some(is), Place::In(folder)) => is == folder,
                    (None, Place::In(_)) => !told.is_promised,
                    (is, _) => is.is_none(),
                };
            assert!(
                is_right,
                "{label}: message {document:#x} of mailbox {mailbox} is in {is:?}, and {told:?}"
            );
            if !told.is_promised {
                self.unpromised[usize::from(is.is_none())] += 1;
            }
            let place = is.map_or(Place::Gone, Place::In);
            *told = Told { is_promised: true, place, busy: 0, is_contested: false };
        }
        assert!(found.is_empty(), "{label}: nobody wrote {found:x?}");
    }

    /// Holds how many recipients were accepted.
    pub fn hold_accepted(&mut self, accepted: u64, label: &str) {
        assert!(
            (self.accepted..=self.tried).contains(&accepted),
            "{label}: {accepted} of {} to {} recipients were accepted",
            self.accepted,
            self.tried
        );
        (self.accepted, self.tried) = (accepted, accepted);
    }
}

/// Every message of every mailbox, with its folder.
async fn found(store: &MailStore, label: &str) -> Messages<i32> {
    let mut found = Messages::new();
    for mailbox in 0..store.filling().mailboxes {
        for (folder, _) in store.folders(mailbox).await.expect("the disk is sound") {
            let rows = store.page(mailbox, folder, usize::MAX, false).await;
            for shown in rows.expect("the disk is sound") {
                let document = shown.entry.document;
                let other = found.insert((mailbox, document), folder);
                assert_eq!(other, None, "{label}: {document:#x} of mailbox {mailbox} is doubled");
            }
        }
    }
    found
}
