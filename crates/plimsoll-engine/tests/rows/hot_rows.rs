//! One row that is changed again and again while older transactions stay open: what a change costs
//! does not grow with the changes before it, and every transaction sees the row of its own time.
//! Work is counted in versions that were looked at, which no slow machine can spoil.

use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{Clock, MemoryOptions, Random};

const ROW: &[u8] = b"row";
/// Where the counters of the row begin, and how wide they are.
const COUNTERS: [(usize, u8); 3] = [(0, 8), (8, 4), (12, 4)];

fn with_row<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>, Tree) -> F + 'static,
) {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let first = instance.begin();
        first.insert(tree, ROW, &[0; 16]).await.unwrap();
        first.commit(Commit::Lazy).await.unwrap();
        story(instance.clone(), tree).await;
        assert_eq!(left(&instance), (0, 0), "nothing needs a version");
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Rows with versions, and the bytes of these.
fn left(instance: &Instance) -> (usize, usize) {
    let versions = instance.store().versions.borrow();
    (versions.rows(), versions.bytes())
}

/// Versions that were looked at so far.
fn visited(instance: &Instance) -> u64 {
    instance.store().versions.borrow().visited()
}

async fn change(instance: &Instance, tree: Tree, by_delta: bool, number: u64) {
    let transaction = instance.begin();
    if by_delta {
        transaction.add(tree, ROW, 0, 8, 1).await.unwrap();
    } else {
        let data = [number.to_le_bytes(), [7; 8]].concat();
        transaction.replace(tree, ROW, &data).await.unwrap();
    }
    transaction.commit(Commit::Lazy).await.unwrap();
}

/// Each change, and each look at the row, went over all versions of it: 5,000 commits took 0.2 s at
/// first and 2 s later on. Versions that no transaction can see filled the store.
#[test]
fn a_change_costs_the_same_however_many_were_before_it() {
    const CHANGES: u64 = 500;
    // A look-up, a change and a commit look at a few versions each.
    const VISITS_MAX: u64 = 40 * CHANGES;
    for by_delta in [false, true] {
        with_row(move |instance, tree| async move {
            let old = instance.begin();
            let seen = old.get(tree, ROW).await.unwrap();
            for round in 0..5 {
                let before = visited(&instance);
                for number in 0..CHANGES {
                    change(&instance, tree, by_delta, number).await;
                    assert_eq!(old.get(tree, ROW).await.unwrap(), seen);
                }
                let visits = visited(&instance) - before;
                assert!(
                    visits <= VISITS_MAX,
                    "{visits} versions were looked at in round {round}, by delta: {by_delta}"
                );
            }
            let bytes = instance.store().versions.borrow().bytes();
            assert!(bytes < 10_000, "{bytes} bytes of versions that no one can tell apart");
            let before = visited(&instance);
            old.rollback().await.unwrap();
            let visits = visited(&instance) - before;
            assert!(visits <= VISITS_MAX, "{visits} versions were looked at for the end");
        });
    }
}

/// A transaction that changes one row many times: neither it nor who reads the row meanwhile
/// goes over all of that.
#[test]
fn a_transaction_may_change_one_row_many_times() {
    with_row(|instance, tree| async move {
        let (reader, writer) = (instance.begin(), instance.begin());
        let before = visited(&instance);
        for number in 0..2_000u32 {
            let data = [number.to_le_bytes(); 4].concat();
            writer.replace(tree, ROW, &data).await.unwrap();
            assert_eq!(writer.get(tree, ROW).await.unwrap(), Some(data));
            assert_eq!(reader.get(tree, ROW).await.unwrap(), Some(vec![0; 16]));
        }
        let visits = visited(&instance) - before;
        assert!(visits <= 20_000, "{visits} versions were looked at");
        writer.commit(Commit::Lazy).await.unwrap();
        assert_eq!(reader.get(tree, ROW).await.unwrap(), Some(vec![0; 16]));
        reader.rollback().await.unwrap();
    });
}

type State = Option<Vec<u8>>;

/// The row after an addition.
fn added(state: &mut State, counter: usize, amount: i64) {
    let Some(data) = state else { return };
    let (at, width) = (COUNTERS[counter].0, usize::from(COUNTERS[counter].1));
    let mut number = [0; 8];
    number[..width].copy_from_slice(&data[at..at + width]);
    let sum = u64::from_le_bytes(number).wrapping_add(amount as u64).to_le_bytes();
    data[at..at + width].copy_from_slice(&sum[..width]);
}

/// A transaction that adds, and stays open for a while.
struct Adding {
    transaction: Transaction,
    additions: Vec<(usize, i64)>,
}

/// The row as it was committed, and who may see it otherwise.
struct World {
    instance: Rc<Instance>,
    tree: Tree,
    random: Random,
    committed: State,
    readers: Vec<(Transaction, State)>,
    adding: Vec<Adding>,
}

impl World {
    async fn step(&mut self) {
        match self.random.below(20) {
            0..2 => self.readers.push((self.instance.begin(), self.committed.clone())),
            2 if self.readers.len() > 1 => {
                let one = self.random.below(self.readers.len() as u64) as usize;
                let (transaction, _) = self.readers.remove(one);
                transaction.rollback().await.unwrap();
            }
            3 => {
                let transaction = self.instance.begin();
                self.adding.push(Adding { transaction, additions: Vec::new() });
            }
            4..9 if !self.adding.is_empty() => self.add().await,
            9..11 if !self.adding.is_empty() => self.end_adding().await,
            _ => self.change().await,
        }
        // One of the readers looks; all do at their end.
        if !self.readers.is_empty() {
            let one = self.random.below(self.readers.len() as u64) as usize;
            let (transaction, seen) = &self.readers[one];
            assert_eq!(transaction.get(self.tree, ROW).await.unwrap(), *seen);
        }
        let fresh = self.instance.begin();
        assert_eq!(fresh.get(self.tree, ROW).await.unwrap(), self.committed);
    }

    async fn add(&mut self) {
        let one = self.random.below(self.adding.len() as u64) as usize;
        let counter = self.random.below(3) as usize;
        let amount = self.random.below(2_000) as i64 - 1_000;
        let adding = &mut self.adding[one];
        let (at, width) = COUNTERS[counter];
        let result = adding.transaction.add(self.tree, ROW, at as u32, width, amount).await;
        match result {
            Ok(()) => adding.additions.push((counter, amount)),
            Err(EngineError::WriteConflict | EngineError::RowNotFound) => {}
            Err(error) => panic!("{error}"),
        }
    }

    async fn end_adding(&mut self) {
        let one = self.random.below(self.adding.len() as u64) as usize;
        let adding = self.adding.remove(one);
        if self.random.below(4) == 0 {
            adding.transaction.rollback().await.unwrap();
            return;
        }
        adding.transaction.commit(Commit::Lazy).await.unwrap();
        for (counter, amount) in adding.additions {
            added(&mut self.committed, counter, amount);
        }
    }

    /// A transaction of one to three changes, which ends at once.
    async fn change(&mut self) {
        let transaction = self.instance.begin();
        let mut state = self.committed.clone();
        for _ in 0..=self.random.below(3) {
            let savepoint = transaction.savepoint();
            let before = state.clone();
            let data = vec![self.random.below(250) as u8; 16];
            let result = match (&state, self.random.below(6)) {
                (None, _) => {
                    state = Some(data.clone());
                    transaction.insert(self.tree, ROW, &data).await
                }
                (_, 0) => {
                    state = None;
                    transaction.delete(self.tree, ROW).await
                }
                (_, 1..3) => {
                    state = Some(data.clone());
                    transaction.replace(self.tree, ROW, &data).await
                }
                (_, what) => {
                    let counter = what as usize - 3;
                    added(&mut state, counter, 17);
                    let (at, width) = COUNTERS[counter];
                    transaction.add(self.tree, ROW, at as u32, width, 17).await
                }
            };
            match result {
                Ok(()) => {}
                Err(EngineError::WriteConflict) => {
                    assert!(!self.adding.is_empty(), "no one else has the row");
                    transaction.rollback().await.unwrap();
                    return;
                }
                Err(error) => panic!("{error}"),
            }
            if self.random.below(5) == 0 {
                transaction.rollback_to(savepoint).await.unwrap();
                state = before;
            }
        }
        assert_eq!(transaction.get(self.tree, ROW).await.unwrap(), state);
        transaction.commit(Commit::Lazy).await.unwrap();
        self.committed = state;
    }
}

/// Whatever is joined of the versions of a row: readers of many moments, which end in any order,
/// see the row of their own, through replacements, deletions and additions that overlap.
#[test]
fn readers_of_many_moments_see_the_row_of_their_own() {
    for seed in 1..=6 {
        with_row(move |instance, tree| async move {
            let random = Random::from_seed(seed);
            let committed = Some(vec![0; 16]);
            let (readers, adding) = (Vec::new(), Vec::new());
            let mut world = World { instance, tree, random, committed, readers, adding };
            for _ in 0..1_500 {
                world.step().await;
            }
            for (transaction, seen) in world.readers {
                assert_eq!(transaction.get(tree, ROW).await.unwrap(), seen, "seed {seed}");
                transaction.rollback().await.unwrap();
            }
            for adding in world.adding {
                adding.transaction.rollback().await.unwrap();
            }
        });
    }
}
