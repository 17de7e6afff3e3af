//! Worlds of a mail store. Users send, read, move and delete in several lives on one storage; each
//! life ends by a power cut, by a kill, or by being closed, and some have a storage that fails,
//! hangs or is slow. In some worlds mailboxes are moved to a further database and back meanwhile.
//! Recoveries are cut, too. After each life everything is counted, by the store's
//! audit and message by message. What the worlds met is counted and printed: a promise kept where
//! nothing was at stake is worth nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::log::framing::Framing;
use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk,
    MemoryOptions, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Purpose, Random, within,
};
use plimsoll_stores::mail::{Entry, Filling, INBOX, Layout, MailStore, Moved, Rule, SENT};

use crate::mail::book::Book;
use crate::mail::lives::audited;
use crate::mail::moves::count;
use crate::mail::world::*;

/// Sessions of a life at a time.
const SESSIONS: u64 = 3;
/// Lives of a world.
const LIVES: u64 = 3;
/// Rounds of a session in a life that is closed, and at most in others.
const ROUNDS: [u64; 2] = [6, 40];
/// A life has ended by then, in virtual time.
const LIFE_NS_MAX: u64 = 300 * NANOS_PER_MILLISECOND;
/// What takes longer than this hangs.
const HUNG_NS: u64 = 10 * NANOS_PER_SECOND;
/// What was asked of a disk is carried out by then.
const SETTLING_NS: u64 = NANOS_PER_SECOND;
/// The folder that is not the inbox.
const OTHER: i32 = 10;

/// What every large enough number of worlds meets.
const ALWAYS: [&str; 20] = [
    "a move to go on with",
    "an original that was left",
    "closed",
    "delivered and still in the queue",
    "in the queue",
    "killed",
    "mailboxes at the other place",
    "power cut",
    "power cut in recovery",
    "storage: delay",
    "storage: fail",
    "storage: fail_partly",
    "storage: flip_on_read",
    "storage: hang",
    "storage: slow",
    "unpromised mail that is there",
    "unpromised mail that is not there",
    "without page images",
    "with a rule",
    "with one copy for all",
];

type Met = BTreeMap<&'static str, u64>;
type SharedBook = Rc<RefCell<Book>>;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cut,
    Killed,
    Closed,
}

struct World {
    seed: u64,
    filling: Filling,
    setup: Setup,
    disk: Rc<MemoryDisk>,
    book: SharedBook,
    met: Met,
    ruled: Ruled,
    has_moves: bool,
}

/// A mailbox and a sender whose mail a rule of it files in the other folder.
type Ruled = Option<(u32, u32)>;

/// A store that is made anew, on a storage of some kind.
fn begin(seed: u64, random: &mut Random) -> World {
    let layout = if random.chance(0.5) { Layout::PerMailbox } else { Layout::Shared };
    let filling = Filling {
        mailboxes: 5,
        layout,
        views: random.below(3) as u32,
        is_indexed: random.chance(0.3),
        ..FILLING
    };
    let has_moves = layout == Layout::PerMailbox && !filling.is_indexed && random.chance(0.7);
    let sizes = [PageSize::KIB_4, PageSize::KIB_4, PageSize::KIB_8, PageSize::KIB_32];
    let size = sizes[random.below(4) as usize];
    let blocks = random.chance(0.5);
    let setup = Setup {
        size,
        framing: if blocks { Framing::Segments4096 } else { Framing::Sectors512 },
        has_images: random.chance(0.75),
        cache_bytes_max: (64 + random.below(64)) * size.bytes() as u64,
        checkpoint_depth_bytes: (1 + random.below(3)) << 20,
    };
    let mean_ns = 20_000 + random.below(NANOS_PER_MILLISECOND);
    let usual = MemoryOptions::default();
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Exponential { fixed_ns: 20_000, mean_ns }),
        // Torn pages are repaired by images, and without them only the storage is in the way.
        atomic_write_bytes: if setup.has_images { 512 } else { size.bytes() as u32 },
        physical_sector_bytes: if blocks { 4_096 } else { usual.physical_sector_bytes },
        ..usual
    };
    let disk = disk_of(seed, options);
    let drawn = (random.below(5) as u32, random.below(5) as u32);
    let ruled = random.chance(0.5).then_some(drawn);
    run_on(&disk, move |files, handle| async move {
        let instances = make(&files, &handle, filling, setup).await;
        if let Some((mailbox, sender)) = ruled {
            let store = open_store(&instances, filling).await;
            let rule = Rule { senders: filling.mailboxes, sender, folder: OTHER };
            store.put_rule(mailbox, 1, rule).await.expect("there is room");
        }
        if has_moves {
            make_further(&files, setup).await;
        }
        close(instances).await;
    })
    .expect("it is made");
    let book = Rc::new(RefCell::new(Book::of(filling)));
    World { seed, filling, setup, disk, book, met: Met::new(), ruled, has_moves }
}

impl World {
    fn note(&mut self, name: &'static str, count: u64) {
        if count > 0 {
            *self.met.entry(name).or_default() += count;
        }
    }

    /// Users work until the end that was chosen; the storage may be a bad one meanwhile.
    fn live(&mut self, life: u64, end: End, is_bad: bool, random: &mut Random) {
        let (disk, setup, filling) = (self.disk.clone(), self.setup, self.filling);
        let (book, seed, ruled) = (self.book.clone(), self.seed, self.ruled);
        let has_moves = self.has_moves;
        let before = disk.injected();
        if is_bad {
            (0..1 + random.below(4)).for_each(|_| disk.inject(fault(random)));
        }
        let ends_after_ns = 20 * NANOS_PER_MILLISECOND + random.below(LIFE_NS_MAX);
        if end == End::Cut {
            self.plan_cut(random);
        }
        let dying = disk.clone();
        let life = move |files: Files, handle: Handle| async move {
            if let Some((instances, store)) = open(&files, &handle, setup, filling, has_moves).await
            {
                let mut tasks: Vec<_> = (0..SESSIONS)
                    .map(|number| {
                        let name = format!("life {life} session {number}");
                        let random = Random::from_seed(seed).child(&name);
                        let work = session(store.clone(), book.clone(), random, (end, ruled));
                        handle.spawn(work)
                    })
                    .collect();
                if has_moves {
                    let random = Random::from_seed(seed).child(&format!("life {life} moves"));
                    tasks.push(handle.spawn(move_around(store.clone(), random, end)));
                }
                if end == End::Closed && !is_bad {
                    for task in tasks {
                        task.await;
                    }
                    drop(store);
                    close(instances).await;
                    return true;
                }
                handle.sleep(if end == End::Cut { LIFE_NS_MAX } else { ends_after_ns }).await;
            }
            false
        };
        run_on(&disk, move |files, handle| async move {
            // Nothing ends an opening that waits for a disk which hangs or is without power.
            let lived = within(&handle, HUNG_NS, life(files, handle.clone())).await;
            if end != End::Cut && lived != Some(true) {
                dying.process_died();
            }
        });
        for (effect, count) in disk.injected() {
            self.note(in_words(effect), count - before.get(effect).copied().unwrap_or_default());
        }
        disk.clear_faults();
        match end {
            End::Cut => self.cut(random),
            // A file whose closing hangs or fails is held for ever.
            _ if is_bad => self.cut(random),
            End::Killed => self.settle("killed"),
            End::Closed => self.note("closed", 1),
        }
    }

    /// By events as well as by time, so that quick storages are cut at work, too.
    fn plan_cut(&self, random: &mut Random) {
        if random.chance(0.5) {
            self.disk.power_cut_at_event(self.disk.events() + 1 + random.below(1_500));
        } else {
            let now = self.disk.clock().now();
            self.disk.power_cut_at(now + 1 + random.below(LIFE_NS_MAX));
        }
    }

    /// What a dead process had asked for is carried out.
    fn settle(&mut self, ended: &'static str) {
        run_on(&self.disk, |_, handle| async move { handle.sleep(SETTLING_NS).await });
        self.note(ended, 1);
    }

    fn cut(&mut self, random: &mut Random) {
        self.disk.power_cut();
        self.disk = self.disk.crash_image(Loss::Drawn, random);
        self.note("power cut", 1);
    }

    /// Opens, delivers, and loses power once more.
    fn recover_until_cut(&mut self, random: &mut Random) {
        let (setup, filling, has_moves) = (self.setup, self.filling, self.has_moves);
        self.plan_cut(random);
        let recovery = move |files: Files, handle: Handle| async move {
            let opened = open(&files, &handle, setup, filling, has_moves).await;
            if let Some((_, store)) = &opened {
                for number in store.begun_moves() {
                    let _ = store.move_mailbox(number, &|_| true).await;
                }
                let _ = store.deliver_queued(&|_| {}).await;
                while store.index_delivered(8).await.is_ok_and(|count| count > 0) {}
            }
            handle.sleep(LIFE_NS_MAX).await;
        };
        run_on(&self.disk, move |files, handle| async move {
            within(&handle, HUNG_NS, recovery(files, handle.clone())).await
        });
        self.cut(random);
        self.note("power cut in recovery", 1);
    }

    /// Counts everything on a storage that behaves, and delivers what waits.
    fn hold(&mut self, life: u64, random: &mut Random) {
        let label = format!("seed {} life {life}", self.seed);
        let (setup, filling, book) = (self.setup, self.filling, self.book.clone());
        let (is_killed, has_moves) = (random.chance(0.5), self.has_moves);
        let goes_on = random.chance(0.5);
        let dying = self.disk.clone();
        let held = run_on(&self.disk, move |files, handle| async move {
            let opened = try_all(&files, &handle, setup, has_moves).await;
            let instances = opened.unwrap_or_else(|error| panic!("{label}: {error}"));
            let mut homes = 0;
            for instance in instances.iter().step_by(2) {
                homes += count(instance, "Mailbox").await;
            }
            let store = try_store_of(&instances, filling).await;
            let store = store.unwrap_or_else(|error| panic!("{label}: {error}"));
            let store = store.expect("it is whole");
            let left = homes - u64::from(filling.mailboxes) - 1;
            let moves = [store.begun_moves().len() as u64, left, store.moved() as u64];
            let before = store.audit().await.expect("the disk is sound");
            let found = before.findings(0);
            assert!(found.is_empty(), "{label}: {found:?}: {before:?}");
            book.borrow_mut().hold_accepted(before.accepted, &label);
            for number in store.begun_moves().into_iter().filter(|_| goes_on) {
                let moved = store.move_mailbox(number, &|_| true).await;
                assert!(moved.expect("the disk is sound").is_over, "{label}");
            }
            let left = store.deliver_queued(&|_| {}).await.expect("the disk is sound");
            while store.index_delivered(100).await.expect("the disk is sound") > 0 {}
            let after = audited(&store).await;
            assert_eq!((after.delivered, after.queued), (before.accepted, 0), "{label}");
            let mut told = book.take();
            told.hold(&store, &label).await;
            let unpromised = std::mem::take(&mut told.unpromised);
            book.replace(told);
            if is_killed {
                dying.process_died();
            } else {
                drop(store);
                close(instances).await;
            }
            let is_between = left > 0 && before.queued == 0;
            (before.queued, u64::from(is_between), unpromised, moves)
        });
        let (queued, between, [there, not_there], moves) = held.expect("it comes to an end");
        self.note("a move to go on with", moves[0]);
        self.note("an original that was left", moves[1]);
        self.note("mailboxes at the other place", moves[2]);
        self.note("in the queue", queued);
        self.note("delivered and still in the queue", between);
        self.note("unpromised mail that is there", there);
        self.note("unpromised mail that is not there", not_there);
        if is_killed {
            self.settle("killed");
        } else {
            self.note("closed", 1);
        }
    }
}

/// A store on a storage that may fail.
async fn open(
    files: &Files,
    handle: &Handle,
    setup: Setup,
    filling: Filling,
    has_moves: bool,
) -> Option<(Vec<Rc<plimsoll_engine::instance::Instance>>, Rc<MailStore>)> {
    let instances = try_all(files, handle, setup, has_moves).await.ok()?;
    let store = try_store_of(&instances, filling).await.ok()?.expect("it is whole");
    Some((instances, Rc::new(store)))
}

/// Moves one mailbox after the other, some of them only in part; the first error of the storage
/// ends it.
async fn move_around(store: Rc<MailStore>, random: Random, end: End) {
    let random = RefCell::new(random);
    let told = |_: &Moved| random.borrow_mut().chance(0.98);
    for _ in 0..ROUNDS[usize::from(end != End::Closed)] {
        let drawn = random.borrow_mut().below(store.filling().mailboxes.into()) as u32;
        let number = store.begun_moves().first().copied().unwrap_or(drawn);
        let moved = store.move_mailbox(number, &told).await;
        if matches!(moved, Err(EngineError::Poisoned { .. } | EngineError::Disk(_))) {
            return;
        }
    }
}

/// Something that goes wrong with some transfers.
fn fault(random: &mut Random) -> FaultRule {
    let kinds = [DiskErrorKind::Medium, DiskErrorKind::Full, DiskErrorKind::Gone];
    let kind = kinds[random.below(3) as usize];
    let effect = match random.below(8) {
        0..3 => Effect::Fail(kind),
        3 => Effect::FailPartly(kind),
        4 => Effect::Delay(NANOS_PER_MILLISECOND * (1 + random.below(200))),
        5 => Effect::Slow(20),
        6 => Effect::Hang,
        _ => Effect::FlipOnRead,
    };
    let mut rule = FaultRule::new(effect);
    rule = match random.below(6) {
        0 => rule.with_path_part("/queue"),
        1 => rule.with_path_part("/mail"),
        2 if effect != Effect::FlipOnRead => rule.with_purpose(Purpose::LogWrite),
        3 if effect != Effect::FlipOnRead => rule.with_purpose(Purpose::DatabaseWrite),
        _ => rule,
    };
    FaultRule { skip: random.below(200), limit: 1 + random.below(3), ..rule }
}

fn in_words(effect: &str) -> &'static str {
    let words = ALWAYS.iter().find(|name| name.strip_prefix("storage: ") == Some(effect));
    words.unwrap_or_else(|| panic!("{effect} is not injected here"))
}

/// What a user does, over and over; the first error of the storage ends it.
async fn session(
    store: Rc<MailStore>,
    book: SharedBook,
    mut random: Random,
    (end, ruled): (End, Ruled),
) {
    for _ in 0..ROUNDS[usize::from(end != End::Closed)] {
        let done = round(&store, &book, &mut random, ruled).await;
        if matches!(done, Err(EngineError::Poisoned { .. } | EngineError::Disk(_))) {
            return;
        }
    }
}

async fn round(
    store: &MailStore,
    book: &SharedBook,
    random: &mut Random,
    ruled: Ruled,
) -> Result<()> {
    let mailboxes = u64::from(store.filling().mailboxes);
    let user = random.below(mailboxes) as u32;
    let first = random.below(mailboxes) as u32;
    let to: Vec<u32> =
        (first..=first + random.below(3) as u32).map(|place| place % mailboxes as u32).collect();
    let draft = store.write(user, &to, "", false)?;
    let folder_of = |to: &u32| if ruled == Some((*to, user)) { OTHER } else { INBOX };
    let places: Vec<_> = to.iter().map(|to| (*to, folder_of(to))).collect();
    book.borrow_mut().submitting(draft.document, &places);
    store.submit(&draft).await?;
    book.borrow_mut().submitted(draft.document, &to);
    book.borrow_mut().copying(user, draft.document | 1, SENT);
    store.keep_sent(&draft).await?;
    if random.chance(0.7) {
        store.deliver_queued(&|_| {}).await?;
        store.index_delivered(8).await?;
    }
    let folder = [INBOX, INBOX, OTHER][random.below(3) as usize];
    let shown = store.page(user, folder, 6, random.chance(0.3)).await?;
    for unread in shown.iter().filter(|shown| !shown.is_read) {
        let read = store.read(user, unread.entry).await?;
        assert!(read.is_none_or(|read| read.is_right), "{unread:?}");
        store.mark_read(user, &[unread.entry]).await?;
    }
    let some = random.below(3) as usize;
    let entries: Vec<Entry> = shown.iter().map(|shown| shown.entry).take(some).collect();
    match random.below(4) {
        0 => {
            book.borrow_mut().begin(user, &entries);
            let done = store.delete(user, &entries).await;
            book.borrow_mut().deleted(user, &entries, &done);
            done.map(drop)
        }
        1 => {
            let into = if folder == INBOX { OTHER } else { INBOX };
            book.borrow_mut().begin(user, &entries);
            let done = store.shift(user, &entries, into).await;
            book.borrow_mut().moved(user, &entries, into, &done);
            done.map(drop)
        }
        2 => store.post(store.filling().public(), OTHER, user).await,
        _ => store.changes(user, 0).await.map(drop),
    }
}

/// Runs a world and adds what it met.
fn run(seed: u64, met: &mut Met) {
    let mut random = Random::from_seed(seed).child("mail world");
    let mut world = begin(seed, &mut random);
    world.note("with one copy for all", u64::from(world.filling.layout == Layout::Shared));
    world.note("with moves", u64::from(world.has_moves));
    world.note("with a rule", u64::from(world.ruled.is_some()));
    world.note("without page images", u64::from(!world.setup.has_images));
    for life in 0..LIVES {
        let end = match random.below(10) {
            0 => End::Closed,
            1 | 2 => End::Killed,
            _ => End::Cut,
        };
        let is_bad = random.chance(0.3);
        world.live(life, end, is_bad, &mut random);
        while random.chance(0.3) {
            world.recover_until_cut(&mut random);
        }
        world.hold(life, &mut random);
    }
    for (name, count) in world.met {
        *met.entry(name).or_default() += count;
    }
}

/// Runs worlds until so many power cuts were met, and prints what they came to.
fn cuts(first_seed: u64, wanted: u64) -> Met {
    let mut met = Met::new();
    let mut seed = first_seed;
    while met.get("power cut").is_none_or(|cuts| *cuts < wanted) {
        println!("mail world {seed}");
        run(seed, &mut met);
        seed += 1;
    }
    println!("{} worlds of a mail store", seed - first_seed);
    met.iter().for_each(|(name, count)| println!("  {count:>8} {name}"));
    met
}

/// Mail that was accepted is delivered or queued once, moves and removals stay, and counters are
/// what rows say, whatever the storage did and whenever the power failed.
#[test]
fn mail_outlives_power_cuts_kills_and_a_failing_storage() {
    let met = cuts(1, 24);
    for name in ["power cut in recovery", "killed", "closed", "in the queue"] {
        assert!(met.contains_key(name), "{name} was never met: {met:?}");
    }
}

#[test]
#[ignore = "slow: `make simulate SEED=n` and `make slow`"]
fn two_thousand_power_cuts_lose_no_mail_and_double_none() {
    let met = cuts(seed_from_outside(1_000), 2_000);
    let missing: Vec<_> = ALWAYS.iter().filter(|name| !met.contains_key(**name)).collect();
    assert!(missing.is_empty(), "never met, so nothing is shown about it: {missing:?}");
}

/// The first seed: the usual one, or far from all others where `PLIMSOLL_SEED` says.
#[expect(clippy::disallowed_methods, reason = "the seeds to try are chosen from outside")]
fn seed_from_outside(usual: u64) -> u64 {
    let wanted = std::env::var("PLIMSOLL_SEED").ok().filter(|text| !text.is_empty());
    wanted.map_or(usual, |text| {
        let seed: u64 = text.parse().expect("PLIMSOLL_SEED is a number");
        seed * 1_000_000 + usual
    })
}
