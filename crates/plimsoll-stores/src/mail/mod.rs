//! A mail store on the engine: mailboxes in one instance, the transport queue in another with its
//! own database and log.
//!
//! A message is accepted with a durable commit in the queue, which counts in the same transaction
//! what was ever accepted. The mover delivers it to all its recipients in one transaction of the
//! store, and then deletes it from the queue. The two instances share no commit: a row of
//! `Delivered` says what a crash between both had already delivered, so that nothing arrives twice.
//! Counters of mailboxes and folders are added to, so deliveries at a time do not conflict on them.
//!
//! What a mailbox holds is a pure function of its corpus and of what users do. Every body that is
//! read is compared with what was written.

mod align;
mod audit;
mod homes;
mod items;
mod moves;
mod prepare;
mod reading;
mod rows;
mod rules;
mod schema;
mod search;
mod tally;
mod transport;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::retry::Retry;
use plimsoll_engine::table::StoredRow;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{NANOS_PER_SECOND, Notify, Permits, Random};
use plimsoll_workload::mail::Corpus;

pub use audit::MailAudit;
use homes::{Doors, Home, Inside};
pub use items::Property;
pub use prepare::Preparing;
pub use reading::{Changed, Changes, Read, Shown};
pub use rules::Rule;
pub use schema::is_table;
use schema::{MARKER, Tables, marker};
pub use tally::Moved;
pub use transport::Draft;

use crate::shop::{Sheet, Value};

/// How long a transaction is tried when others are first again and again.
const TRIED_NS_MAX: u64 = 10 * NANOS_PER_SECOND;
/// Documents of one run at most, as a power of two: each run has numbers of its own.
const RUN_BITS: u32 = 40;
/// Long values begin with a byte that other readers do not take for a mark of compression.
const LONG_FIRST_BYTE: u8 = 0x41;
/// Who owns messages that are kept once for all their recipients.
const SHARED: i64 = -1;
/// The first folder that users have made or were given.
const OWN_FOLDERS: i32 = 10;

/// The inbox of a mailbox.
pub const INBOX: i32 = 0;
/// Where copies of sent messages go.
pub const SENT: i32 = 1;
/// Contacts.
pub const CONTACTS: i32 = 2;
/// Things to be done.
pub const TASKS: i32 = 3;

/// How messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A copy in each mailbox, so that a mailbox lies together.
    PerMailbox,
    /// One copy in a database for all recipients, in the order of arrival.
    Shared,
}

/// What a store is filled with and how it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Mailboxes, numbered from 0. One more holds the public folders.
    pub mailboxes: u32,
    /// Folders of each besides those that all have.
    pub folders: u32,
    /// Read messages of each of these folders.
    pub messages_per_folder: u32,
    /// Read messages of each inbox.
    pub inbox: u32,
    /// How messages are kept.
    pub layout: Layout,
    /// Views of each folder that are kept sorted, besides the one by date.
    pub views: u32,
    /// Whether words are indexed.
    pub is_indexed: bool,
}

impl Filling {
    /// Messages of each mailbox.
    pub fn messages(&self) -> u64 {
        u64::from(self.inbox) + u64::from(self.folders) * u64::from(self.messages_per_folder)
    }

    /// The mailbox of the public folders.
    pub fn public(&self) -> u32 {
        self.mailboxes
    }

    /// A folder of its own of a mailbox, from 0 on.
    pub fn folder(&self, number: u32) -> i32 {
        OWN_FOLDERS + (number % self.folders.max(1)) as i32
    }

    /// Where a prepared message was laid, counted from 0 in its mailbox.
    pub fn place_of(&self, message: u64) -> Entry {
        let number = message as i64 + 1;
        let folder = match message.checked_sub(u64::from(self.inbox)) {
            None => INBOX,
            Some(rest) => OWN_FOLDERS + (rest / u64::from(self.messages_per_folder.max(1))) as i32,
        };
        Entry { folder, received: number, document: number }
    }
}

/// Where a message stands in a mailbox: its folder, when it came, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The folder.
    pub folder: i32,
    /// Nanoseconds of UTC; small numbers for prepared messages.
    pub received: i64,
    /// Number of the message.
    pub document: i64,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MailStoreError {
    /// The engine or the disk below it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The database holds something else than what is asked for.
    #[error("{0}")]
    NotOurs(String),
}

/// Numbers of changes that are handed out and not committed yet: who asks for changes must not take
/// a later one for the last.
#[derive(Default)]
struct OpenNumbers(RefCell<BTreeSet<i64>>);

/// Numbers of changes; they count as committed when this is dropped.
struct ChangeNumbers<'a> {
    open: &'a OpenNumbers,
    first: i64,
    count: i64,
}

impl Drop for ChangeNumbers<'_> {
    fn drop(&mut self) {
        let mut open = self.open.0.borrow_mut();
        (self.first..self.first + self.count).for_each(|number| {
            open.remove(&number);
        });
    }
}

/// See the module text.
pub struct MailStore {
    /// The database that it began with, and the further one that mailboxes are moved to.
    homes: Vec<Home>,
    /// Mailboxes that live in the further database.
    moved: RefCell<BTreeSet<u32>>,
    /// Those of which a copy is being made.
    begun: RefCell<BTreeSet<u32>>,
    doors: Doors,
    /// One move at a time.
    movers: Permits,
    /// Whether a message was delivered to some of its recipients and an error came.
    half_way: Cell<bool>,
    queue: Rc<Instance>,
    filling: Filling,
    corpus: Rc<Corpus>,
    run: i64,
    next: Cell<i64>,
    next_change: Cell<i64>,
    changing: OpenNumbers,
    acknowledged: Cell<u64>,
    /// Below zero for a moment when the mover is faster than whoever has just submitted.
    waiting: Cell<i64>,
    news: Notify,
    pauses: RefCell<Random>,
    /// One mover at a time: two would deliver one message twice.
    mover: Permits,
    /// Likewise: two would index one message twice.
    indexer: Permits,
}

impl MailStore {
    /// Opens the store of two instances, if there is a whole one, and finishes what a crash left
    /// between queue and store; the run takes the next number.
    ///
    /// # Errors
    /// What the disk reports, or a store made with another seed or filling.
    pub async fn open(
        mail: &Rc<Instance>,
        queue: &Rc<Instance>,
        corpus: Rc<Corpus>,
        filling: Filling,
    ) -> std::result::Result<Option<MailStore>, MailStoreError> {
        MailStore::open_with(mail, None, queue, corpus, filling).await
    }

    /// The same with a further database, to which mailboxes can be moved. It is made where it is
    /// empty. A store whose mailboxes were moved needs it from then on.
    ///
    /// # Errors
    /// As [`MailStore::open`].
    pub async fn open_with(
        mail: &Rc<Instance>,
        further: Option<&Rc<Instance>>,
        queue: &Rc<Instance>,
        corpus: Rc<Corpus>,
        filling: Filling,
    ) -> std::result::Result<Option<MailStore>, MailStoreError> {
        match mail.open_table(1, MARKER).await {
            Ok(_) => {}
            Err(EngineError::NoSuchObject { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let tables = Tables::open(mail, queue).await?;
        let transaction = mail.begin();
        let sheet = &tables.marker;
        let key = sheet.key_of_number(1)?;
        let Some(row) = sheet.get(&transaction, &key).await? else {
            return Ok(None);
        };
        hold_marker(sheet, &row, &corpus, filling)?;
        let run = sheet.number(&row, marker::RUNS)? + 1;
        sheet.set(&transaction, &key, &[(marker::RUNS, run)]).await?;
        transaction.commit(Commit::Durable).await?;
        let seed = corpus.seed();
        let homes = match further {
            Some(further) => open_homes([mail, further], tables, queue, &corpus, filling).await?,
            None => {
                hold_all_there(mail, &tables, filling).await?;
                vec![Home { mail: mail.clone(), tables, marks: None }]
            }
        };
        let store = MailStore {
            homes,
            moved: RefCell::default(),
            begun: RefCell::default(),
            doors: Doors::default(),
            movers: Permits::new(1),
            half_way: Cell::new(false),
            queue: queue.clone(),
            filling,
            corpus,
            run,
            next: Cell::new(1),
            next_change: Cell::new(run << RUN_BITS),
            changing: OpenNumbers::default(),
            acknowledged: Cell::new(0),
            waiting: Cell::new(0),
            news: Notify::new(),
            pauses: RefCell::new(Random::from_seed(seed).child("mail pauses")),
            mover: Permits::new(1),
            indexer: Permits::new(1),
        };
        let waiting = store.first().tables.queue.count(&store.queue.begin()).await?;
        store.waiting.set(waiting as i64);
        store.settle_moves().await?;
        store.settle().await?;
        Ok(Some(store))
    }

    /// What it was filled with.
    pub fn filling(&self) -> Filling {
        self.filling
    }

    /// What its messages are made of.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Which run of the database this is, from 1 on.
    pub fn run(&self) -> u64 {
        self.run as u64
    }

    /// Counts what was acknowledged in the life of the store before, when it came back from a
    /// crash in the middle of a run.
    pub fn remember(&self, acknowledged: u64) {
        self.acknowledged.set(self.acknowledged.get() + acknowledged);
    }

    /// Messages times recipients whose acceptance was acknowledged since the store was opened.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.get()
    }

    /// Messages that wait in the queue.
    pub fn waiting(&self) -> u64 {
        self.waiting.get().max(0) as u64
    }

    /// Waits until a message is accepted.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// The number of a new message. Numbers of messages are even: odd ones are copies of what was
    /// sent.
    pub fn next_document(&self) -> i64 {
        let number = self.next.replace(self.next.get() + 1);
        (self.run << RUN_BITS) | (number << 1)
    }

    /// Nanoseconds of UTC.
    fn utc_ns(&self) -> i64 {
        self.first().mail.store().handle.clock().anchor().utc_ns as i64
    }

    fn open_changes(&self, count: usize) -> ChangeNumbers<'_> {
        let first = self.next_change.get();
        let count = count as i64;
        self.next_change.set(first + count);
        self.changing.0.borrow_mut().extend(first..first + count);
        ChangeNumbers { open: &self.changing, first, count }
    }

    /// Every change up to this number is committed or will never be.
    fn settled_change(&self) -> i64 {
        let first_open = self.changing.0.borrow().first().copied();
        first_open.unwrap_or(self.next_change.get()) - 1
    }

    /// The database of a mailbox, once it may be entered. Nobody may enter a mailbox that he is in:
    /// somebody who closes it would wait for him.
    ///
    /// # Errors
    /// [`EngineError::Poisoned`] where nobody knows which database it lives in.
    async fn enter(&self, mailbox: u32) -> Result<Inside<'_>> {
        self.doors.enter(mailbox, || &self.homes[self.place_of(mailbox)]).await
    }

    /// The position of the database of a mailbox.
    fn place_of(&self, mailbox: u32) -> usize {
        usize::from(self.moved.borrow().contains(&mailbox))
    }

    /// The database that the store began with.
    fn first(&self) -> &Home {
        &self.homes[0]
    }

    /// Mailboxes that live in the further database.
    pub fn moved(&self) -> usize {
        self.moved.borrow().len()
    }

    async fn transact<T>(
        &self,
        home: &Home,
        how: Commit,
        work: impl AsyncFn(&Transaction) -> Result<T>,
    ) -> Result<T> {
        let retry = Retry::until(home.mail.store().handle.now() + TRIED_NS_MAX);
        let drawn = self.pauses.borrow_mut().next_u64();
        let mut random = Random::from_seed(drawn);
        home.mail.transact(how, retry, &mut random, work).await
    }
}

/// Whether a marker is that of the store that is asked for.
fn hold_marker(
    sheet: &Sheet,
    row: &StoredRow,
    corpus: &Corpus,
    filling: Filling,
) -> std::result::Result<(), MailStoreError> {
    for (position, what, wanted) in marked(corpus, filling) {
        let found = sheet.number(row, position)?;
        if found != wanted {
            return Err(MailStoreError::NotOurs(format!(
                "the database holds a mail store with {what} {found}, not {wanted}; say so in \
                 the plan, or let it be made again"
            )));
        }
    }
    Ok(())
}

/// Whether all mailboxes of a store that once had two databases are in the first one. Of one whose
/// move was begun only the further database knows.
async fn hold_all_there(
    mail: &Rc<Instance>,
    tables: &Tables,
    filling: Filling,
) -> std::result::Result<(), MailStoreError> {
    let marks = match Tables::open_marks(mail).await {
        Ok(marks) => marks.count(&mail.begin()).await?,
        Err(EngineError::NoSuchObject { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let there = tables.mailboxes.count(&mail.begin()).await?;
    let moved = (u64::from(filling.public()) + 1).saturating_sub(there) + marks;
    if moved > 0 {
        return Err(MailStoreError::NotOurs(format!(
            "{moved} mailboxes of the store were moved to a further database, or began to move; \
             open it with that one"
        )));
    }
    Ok(())
}

/// Opens both databases of a store, and makes the tables of the further one where it has no marker
/// yet: what was begun without one holds nothing.
async fn open_homes(
    both: [&Rc<Instance>; 2],
    tables: Tables,
    queue: &Rc<Instance>,
    corpus: &Corpus,
    filling: Filling,
) -> std::result::Result<Vec<Home>, MailStoreError> {
    let further = both[1];
    let marks = Tables::create_for_moves(both[0], further).await?;
    let of_further = Tables::open(further, queue).await?;
    hold_or_write_marker(further, &of_further, corpus, filling).await?;
    let homes = both.into_iter().zip([tables, of_further]).zip(marks);
    let home = |((mail, tables), marks)| {
        let mail: &Rc<Instance> = mail;
        Home { mail: mail.clone(), tables, marks: Some(marks) }
    };
    Ok(homes.map(home).collect())
}

async fn hold_or_write_marker(
    further: &Rc<Instance>,
    tables: &Tables,
    corpus: &Corpus,
    filling: Filling,
) -> std::result::Result<(), MailStoreError> {
    let sheet = &tables.marker;
    let key = sheet.key_of_number(1)?;
    let row = sheet.get(&further.begin(), &key).await?;
    if let Some(row) = row {
        return hold_marker(sheet, &row, corpus, filling);
    }
    let mut values = [0; marker::COLUMNS.len()];
    values[marker::ID] = 1;
    for (position, _, value) in marked(corpus, filling) {
        values[position] = value;
    }
    let transaction = further.begin();
    sheet.insert(&transaction, &values.map(Value::Number)).await?;
    transaction.commit(Commit::Durable).await?;
    Ok(())
}

/// What the marker of a store says of it: the column, what it is called, the value.
fn marked(corpus: &Corpus, filling: Filling) -> [(usize, &'static str, i64); 9] {
    [
        (marker::SEED, "seed", corpus.seed() as i64),
        (marker::SIZES, "messages of kind", corpus.fingerprint() as i64),
        (marker::MAILBOXES, "mailboxes", filling.mailboxes.into()),
        (marker::FOLDERS, "folders of a mailbox", filling.folders.into()),
        (marker::PER_FOLDER, "messages of a folder", filling.messages_per_folder.into()),
        (marker::INBOX, "messages of an inbox", filling.inbox.into()),
        (marker::LAYOUT, "layout", (filling.layout == Layout::Shared).into()),
        (marker::VIEWS, "kept views", filling.views.into()),
        (marker::INDEXED, "index", filling.is_indexed.into()),
    ]
}

/// A long value as it is stored.
fn long(bytes: &[u8]) -> Vec<u8> {
    [&[LONG_FIRST_BYTE], bytes].concat()
}

/// A long value as it was before [`long`].
fn of_long(bytes: &[u8]) -> &[u8] {
    bytes.get(1..).unwrap_or_default()
}

/// The key of a row of the table of what folders show.
fn entry_key(sheet: &Sheet, mailbox: u32, entry: Entry) -> Result<Vec<u8>> {
    let values = [mailbox.into(), entry.folder.into(), entry.received, entry.document];
    sheet.prefix(0, &values.map(Value::Number))
}
