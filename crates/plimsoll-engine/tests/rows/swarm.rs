//! A swarm of transactions on one table against a model: operations of one transaction at once or
//! given up at any moment, indexed columns that move between record and long-value tree.
//!
//! There are rollbacks to savepoints, some of them taken in the middle of a change, and long values
//! written in pieces over some of these. Readers stay open while everything changes.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use plimsoll_engine::PageSize;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Savepoint, Transaction};
use plimsoll_io::{Random, either};

use crate::at_once::slow_disk;
use crate::people::*;
use crate::support::*;

const IDS: u64 = 24;

#[derive(Clone, Debug)]
enum Operation {
    Insert(i32, Person),
    Update(i32, Person),
    Delete(i32),
}

impl Operation {
    fn drawn(random: &mut Random) -> Operation {
        let id = random.below(IDS) as i32;
        let letter = b'A' + random.below(26) as u8;
        let note_bytes = [0, 5, 60, 150, 240][random.below(5) as usize];
        let note = (note_bytes > 0).then(|| vec![letter; note_bytes]);
        let picture_bytes = [0, 10, 900, 9_000][random.below(4) as usize];
        let picture = (picture_bytes > 0).then(|| vec![letter; picture_bytes]);
        let person = (format!("NAME {:02}", random.below(IDS)), note, picture);
        match random.below(5) {
            0 | 1 => Operation::Insert(id, person),
            2 | 3 => Operation::Update(id, person),
            _ => Operation::Delete(id),
        }
    }

    async fn run(&self, table: &OpenTable, transaction: &Transaction) -> Result<()> {
        match self {
            Operation::Insert(id, person) => insert(table, transaction, *id, person).await,
            Operation::Update(id, person) => update(table, transaction, *id, person).await,
            Operation::Delete(id) => table.delete(transaction, &key_of(table, *id)).await,
        }
    }

    fn apply(self, people: &mut People) {
        match self {
            Operation::Insert(id, person) | Operation::Update(id, person) => {
                people.insert(id, person)
            }
            Operation::Delete(id) => people.remove(&id),
        };
    }
}

/// How an operation ended: with a result, or given up.
type Ending = Option<Result<()>>;

type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A savepoint taken while operations were running, and how many had ended by then.
type Place = (Savepoint, usize);

/// Runs operations at once, each for at most its number of polls, and answers how they ended in the
/// order in which they did. After so many rounds of polls a savepoint is taken, if any is left.
async fn at_once(
    table: &OpenTable,
    transaction: &Transaction,
    operations: &[(Operation, u64)],
    rounds: u64,
) -> (Vec<(usize, Ending)>, Option<Place>) {
    let mut left: Vec<(usize, u64, Running<'_>)> = Vec::new();
    for (number, (operation, polls)) in operations.iter().enumerate() {
        left.push((number, *polls, Box::pin(operation.run(table, transaction))));
    }
    let (mut endings, mut place, mut rounds) = (Vec::new(), None, rounds);
    poll_fn(|context| {
        left.retain_mut(|(number, polls, work)| {
            match (work.as_mut().poll(context), *polls) {
                (Poll::Ready(result), _) => endings.push((*number, Some(result))),
                (Poll::Pending, 0) => endings.push((*number, None)),
                (Poll::Pending, _) => {
                    *polls -= 1;
                    return true;
                }
            }
            false
        });
        if left.is_empty() {
            return Poll::Ready(());
        }
        if rounds == 0 && place.is_none() {
            place = Some((transaction.savepoint(), endings.len()));
        }
        rounds = rounds.saturating_sub(1);
        Poll::Pending
    })
    .await;
    (endings, place)
}

/// What became of a picture.
enum Drawn {
    /// There it is.
    Whole(Operation),
    /// There is nothing of it.
    Nothing,
    /// A part of it is there, and its transaction must not be committed.
    Half,
}

struct World {
    instance: Rc<Instance>,
    table: Rc<OpenTable>,
    people: RefCell<People>,
}

impl World {
    /// One transaction. What it did becomes the model's in the moment of its commit.
    async fn transaction(&self, random: &mut Random, pictures: &mut Random) {
        let transaction = self.instance.begin();
        let mut mine = Vec::new();
        let mut given_up = false;
        for _ in 0..=random.below(3) {
            let savepoint = (transaction.savepoint(), mine.len(), given_up);
            let mut operations = Vec::new();
            for _ in 0..=random.below(3) {
                let polls = if random.chance(0.05) { random.below(6) } else { u64::MAX };
                operations.push((Operation::drawn(random), polls));
            }
            let rounds = pictures.below(6);
            let goes_back = pictures.chance(0.3);
            let ran = at_once(&self.table, &transaction, &operations, rounds);
            let (endings, place) = ran.await;
            let mut middle = None;
            for (count, (number, ending)) in endings.into_iter().enumerate() {
                if let Some((savepoint, ended)) = place
                    && ended == count
                {
                    middle = Some((savepoint, mine.len(), given_up));
                }
                match ending {
                    Some(Ok(())) => mine.push(operations[number].0.clone()),
                    Some(Err(EngineError::WriteConflict)) => {
                        return transaction.rollback().await.unwrap();
                    }
                    Some(Err(error)) => assert!(is_refusal(&error), "{error}"),
                    None => given_up = true,
                }
            }
            if let Some((savepoint, done, was_given_up)) = middle
                && goes_back
            {
                transaction.rollback_to(savepoint).await.unwrap();
                mine.truncate(done);
                given_up = was_given_up;
            }
            if !given_up && pictures.chance(0.3) {
                match self.draw_picture(&transaction, pictures).await {
                    Ok(Drawn::Whole(done)) => mine.push(done),
                    Ok(Drawn::Nothing) => {}
                    Ok(Drawn::Half) => given_up = true,
                    Err(EngineError::WriteConflict) => {
                        return transaction.rollback().await.unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            if random.chance(0.2) {
                transaction.rollback_to(savepoint.0).await.unwrap();
                mine.truncate(savepoint.1);
                given_up = savepoint.2;
            }
        }
        if random.chance(0.1) {
            return transaction.rollback().await.unwrap();
        }
        let how = if given_up || random.chance(0.5) { Commit::Lazy } else { Commit::Durable };
        // The first poll of a commit is the commit; nobody else runs before it.
        let mut commit = Box::pin(transaction.commit(how));
        let begun = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
        // What was given up and had changed something is half done: nobody knows how much of it is
        // there, and all of the transaction must go.
        let is_committed = !given_up || matches!(begun, Poll::Ready(Ok(())));
        if is_committed {
            let mut people = self.people.borrow_mut();
            mine.into_iter().for_each(|operation| operation.apply(&mut people));
        }
        let ended = match begun {
            Poll::Ready(result) => result,
            Poll::Pending => commit.await,
        };
        assert_eq!(ended.is_ok(), is_committed, "{ended:?}");
    }

    /// Gives a person a picture in pieces, and goes back between them now and then: to before a
    /// piece, which the picture does not outlive, or to behind it.
    async fn draw_picture(&self, transaction: &Transaction, random: &mut Random) -> Result<Drawn> {
        let (table, id) = (&self.table, random.below(IDS) as i32);
        let key = key_of(table, id);
        let Some(row) = table.get(transaction, &key).await? else {
            return Ok(Drawn::Nothing);
        };
        let (_, mut person) = person_of(table, transaction, &row).await?;
        let before = transaction.savepoint();
        let mut writer = table.write_long_value(transaction).await?;
        let (mut picture, mut is_broken) = (Vec::new(), false);
        let mut middle = before;
        for letter in b'a'..=b'd' {
            let place = transaction.savepoint();
            let piece = vec![letter; [1, 700, 4_014, 9_000][random.below(4) as usize]];
            let written = writer.write(&piece).await;
            if is_broken {
                assert!(matches!(written, Err(EngineError::BadRow(_))), "{written:?}");
                break;
            }
            written?;
            picture.extend(piece);
            middle = transaction.savepoint();
            match random.below(8) {
                0 => {
                    transaction.rollback_to(place).await?;
                    is_broken = true;
                }
                1 => {
                    let place = transaction.savepoint();
                    let beside = Operation::drawn(random).run(table, transaction).await;
                    if let Err(EngineError::WriteConflict) = beside {
                        return Err(EngineError::WriteConflict);
                    }
                    transaction.rollback_to(place).await?;
                }
                _ => {}
            }
        }
        let column = table.column("picture")?;
        match table.attach_long_value(transaction, &key, column, writer).await {
            Ok(()) => {
                assert!(!is_broken, "a picture was drawn of which a part was taken back");
                if random.chance(0.1) {
                    transaction.rollback_to(middle).await?;
                    return Ok(Drawn::Half);
                }
                person.2 = Some(picture);
                Ok(Drawn::Whole(Operation::Update(id, person)))
            }
            Err(EngineError::BadRow(_)) if is_broken => {
                transaction.rollback_to(before).await?;
                Ok(Drawn::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// A reader that stays while others change everything: it goes on seeing what it saw.
    async fn old_reader(&self, handle: &plimsoll_io::Handle, pause_ns: u64, title: &str) {
        let (reader, seen) = (self.instance.begin(), self.people.borrow().clone());
        check_people(&self.table, &reader, &seen, title).await;
        handle.sleep(pause_ns).await;
        check_people(&self.table, &reader, &seen, title).await;
    }
}

fn run_swarm(seed: u64, setup: Setup, sessions: u64) {
    with_people(
        seed,
        setup,
        slow_disk(),
        &People::new(),
        move |instance, table, _, handle| async move {
            let mut random = Random::from_seed(seed).child("swarm");
            table.set_intrinsic_bytes_max([32, 100, 1_023][random.below(3) as usize]);
            let people = RefCell::default();
            let world = Rc::new(World { instance, table, people });
            let mut tasks = Vec::new();
            for session in 0..sessions {
                let (world, mut random) =
                    (world.clone(), random.child(&format!("session {session}")));
                let mut pictures = random.child("pictures");
                tasks.push(handle.spawn(async move {
                    for _ in 0..25 {
                        world.transaction(&mut random, &mut pictures).await;
                    }
                }));
            }
            for maker in 0..2 {
                let (instance, mut random) =
                    (world.instance.clone(), random.child(&format!("maker {maker}")));
                let sleeper = handle.clone();
                tasks.push(handle.spawn(async move {
                    for number in 0..2 {
                        sleeper.sleep(random.below(60_000_000)).await;
                        let table = message_table(&format!("Table {maker} {number}"));
                        let patience_ns = random.below(30_000_000);
                        // Given up now and then; the file is looked at when all is over.
                        let made = async { drop(instance.create_table(1, table).await.unwrap()) };
                        either(made, sleeper.sleep(patience_ns)).await;
                    }
                }));
            }
            for reader in 0..2 {
                let (world, sleeper) = (world.clone(), handle.clone());
                tasks.push(handle.spawn(async move {
                    sleeper.sleep((1 + reader) * 20_000_000).await;
                    let title = format!("seed {seed}, reader {reader}");
                    world.old_reader(&sleeper, 200_000_000, &title).await;
                }));
            }
            for task in tasks {
                task.await;
            }
            let expected = world.people.borrow().clone();
            let title = format!("seed {seed}, at the end");
            check_people(&world.table, &world.instance.begin(), &expected, &title).await;
        },
    );
}

#[test]
fn a_swarm_of_impolite_transactions_leaves_what_the_model_says() {
    for seed in first_seed(0)..first_seed(30) {
        run_swarm(seed, Setup { cache_frames: 64, ..Setup::default() }, 3);
    }
}

/// So many sessions that what they hold while they wait is all that the smallest cache has.
#[test]
fn a_swarm_in_the_smallest_cache_leaves_what_the_model_says() {
    for seed in first_seed(0)..first_seed(12) {
        let size = [PageSize::KIB_16, PageSize::KIB_32][seed as usize % 2];
        run_swarm(seed, Setup { size, cache_frames: 16, ..Setup::default() }, 8 + 4 * (seed % 4));
    }
}
