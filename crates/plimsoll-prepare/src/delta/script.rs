//! The script of a page: its lines in order, as runs of steps.
//!
//! ```text
//! step    = number: count << 4 | moved << 3 | kind, [signed: how far from where it was expected], rest by kind
//! keep    = nothing: the next prepared lines
//! skip    = nothing: prepared lines that are gone
//! replace = version: the next prepared records in this version, at their places
//! new     = signed: number from the expected one, version: records or index entries, numbers rising by one
//! literal = key, data
//! chunk   = signed: record number, version, signed: long-value identifier, chunk, length
//! ```
//!
//! A kept or replaced node is expected where it was prepared, moved as far as the one before; any
//! other right behind the node of the line before.

use std::borrow::Cow;

use super::compose::{Composer, Content};
use super::numbers::{
    push_bytes, push_difference, push_number, take_bytes, take_difference, take_number,
};
use crate::keys::number_of_key;
use crate::value::{identify_chunk, write_chunk};
use plimsoll_engine::page::PageView;

/// One line of the page, or one prepared line that is not on it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Skip,
    Replace { version: u64 },
    New { number: u64, version: u64 },
    Literal { key: Vec<u8>, data: Vec<u8> },
    Chunk(Chunk),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    number: u64,
    version: u64,
    value: u64,
    chunk: u64,
    bytes: usize,
}

const KEEP: u64 = 0;
const SKIP: u64 = 1;
const REPLACE: u64 = 2;
const NEW: u64 = 3;
const LITERAL: u64 = 4;
const CHUNK: u64 = 5;

/// A written script.
#[derive(Default)]
pub(super) struct Steps {
    pub count: u64,
    pub bytes: Vec<u8>,
}

/// Writes the script of a page, composing it on the way. `None` when a line cannot be read.
pub(super) fn write(composer: &mut Composer<'_>, view: &PageView<'_>) -> Option<Steps> {
    let mut writer = Writer::default();
    for line in 0..view.lines() {
        let (offset, length, _) = view.node_place(line)?;
        let start = view.size().header_bytes() + offset;
        let stored = &view.bytes()[start..start + length];
        loop {
            let step = next_step(composer, view, line, stored)?;
            let is_line = step != Step::Skip;
            writer.add(composer, step, offset as u64)?;
            if is_line {
                break;
            }
        }
    }
    writer.flush();
    Some(writer.steps)
}

/// The step that gives this line, or the skip that must come before it.
fn next_step(
    composer: &Composer<'_>,
    view: &PageView<'_>,
    line: usize,
    stored: &[u8],
) -> Option<Step> {
    if composer.prepared().is_some_and(|(_, bytes)| *bytes == *stored) {
        return Some(Step::Keep);
    }
    let node = view.node(line).ok()?;
    let key = node.key();
    if let Ok(prepared) = composer.generated.node(composer.cursor)
        && composer.cursor < composer.generated.lines()
    {
        match prepared.compare_key(&key) {
            std::cmp::Ordering::Less => return Some(Step::Skip),
            std::cmp::Ordering::Equal => {
                if prepared.data == node.data {
                    return Some(Step::Keep);
                }
                return Some(match identify(composer, &key, node.data) {
                    Some(Step::New { version, .. }) => Step::Replace { version },
                    _ => Step::Skip,
                });
            }
            std::cmp::Ordering::Greater => {}
        }
    }
    let literal = || Step::Literal { key: key.clone(), data: node.data.to_vec() };
    Some(identify(composer, &key, node.data).unwrap_or_else(literal))
}

/// The step that makes this node out of a number, if there is one.
fn identify(composer: &Composer<'_>, key: &[u8], data: &[u8]) -> Option<Step> {
    let database = composer.database;
    match composer.content {
        Content::Records => {
            let (number, version) = database.form.identify(data)?;
            let is_known =
                database.record_key(number) == key && database.record(number, version) == data;
            let version = version.into();
            is_known.then_some(Step::New { number, version })
        }
        Content::Entries => {
            let number = number_of_key(data)?;
            (database.scatter_key(number) == key).then_some(Step::New { number, version: 0 })
        }
        Content::Values => {
            let (number, version, chunk) = identify_chunk(data)?;
            let step = Chunk {
                number,
                version: version.into(),
                value: u32::from_be_bytes(*key.first_chunk()?).into(),
                chunk,
                bytes: data.len(),
            };
            let is_known = chunk_node(composer, &step) == (key.to_vec(), data.to_vec());
            is_known.then_some(Step::Chunk(step))
        }
        Content::Other => None,
    }
}

fn chunk_node(composer: &Composer<'_>, step: &Chunk) -> (Vec<u8>, Vec<u8>) {
    let database = composer.database;
    let chunk_bytes = crate::value::chunk_bytes(database.page_size()) as u64;
    let mut key = (step.value as u32).to_be_bytes().to_vec();
    key.extend(((step.chunk * chunk_bytes) as u32).to_be_bytes());
    let mut data = vec![0; step.bytes];
    let (version, percent) = (step.version as u32, database.random_percent());
    write_chunk(database.value_key, step.number, version, step.chunk, percent, &mut data);
    (key, data)
}

/// Where the node of a step is expected.
fn expected_offset(composer: &Composer<'_>, step: &Step) -> u64 {
    match step {
        Step::Keep | Step::Skip | Step::Replace { .. } => composer.expected_prepared(),
        Step::New { .. } | Step::Literal { .. } | Step::Chunk(_) => composer.end as u64,
    }
}

/// Does one step. `None` when it asks for a prepared line that is not there.
fn apply(composer: &mut Composer<'_>, step: &Step, offset: u64) -> Option<()> {
    let database = composer.database;
    if let Step::Keep | Step::Replace { .. } = step {
        let prepared_offset = composer.expected_prepared().wrapping_sub(composer.shift);
        composer.shift = offset.wrapping_sub(prepared_offset);
        composer.next_number = None;
    }
    let node = match step {
        Step::Skip => {
            composer.cursor += 1;
            return Some(());
        }
        Step::Keep => composer.prepared()?,
        Step::Replace { version } => {
            let key = composer.generated.node(composer.cursor).ok()?.key();
            let record = database.record(number_of_key(&key)?, *version as u32);
            owned(composer.node(&key, &record))
        }
        Step::New { number, version } => {
            composer.next_number = Some(number + 1);
            let key = database.record_key(*number);
            owned(if composer.content == Content::Entries {
                composer.node(&database.scatter_key(*number), &key)
            } else {
                composer.node(&key, &database.record(*number, *version as u32))
            })
        }
        Step::Literal { key, data } => owned(composer.node(key, data)),
        Step::Chunk(chunk) => {
            composer.last_value = chunk.value;
            composer.next_number = Some(chunk.number);
            let (key, data) = chunk_node(composer, chunk);
            owned(composer.node(&key, &data))
        }
    };
    if let Step::Keep | Step::Replace { .. } = step {
        composer.cursor += 1;
    }
    composer.place(offset, node);
    Some(())
}

fn owned<'a>((flags, bytes): (u8, Vec<u8>)) -> (u8, Cow<'a, [u8]>) {
    (flags, Cow::Owned(bytes))
}

/// Gathers equal steps into runs.
#[derive(Default)]
struct Writer {
    steps: Steps,
    run: Option<Run>,
}

struct Run {
    last: Step,
    count: u64,
    moved: Option<(u64, u64)>,
    payload: Vec<u8>,
}

impl Writer {
    fn add(&mut self, composer: &mut Composer<'_>, step: Step, offset: u64) -> Option<()> {
        let expected = expected_offset(composer, &step);
        let offset = if step == Step::Skip { expected } else { offset };
        match &mut self.run {
            Some(run) if offset == expected && follows(&run.last, &step) => {
                run.count += 1;
                run.last = step.clone();
            }
            _ => {
                self.flush();
                self.run = Some(Run {
                    payload: payload(composer, &step),
                    last: step.clone(),
                    count: 1,
                    moved: (offset != expected).then_some((offset, expected)),
                });
            }
        }
        apply(composer, &step, offset)
    }

    fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        let kind = match run.last {
            Step::Keep => KEEP,
            Step::Skip => SKIP,
            Step::Replace { .. } => REPLACE,
            Step::New { .. } => NEW,
            Step::Literal { .. } => LITERAL,
            Step::Chunk(_) => CHUNK,
        };
        let moved = u64::from(run.moved.is_some());
        self.steps.count += 1;
        push_number(&mut self.steps.bytes, run.count << 4 | moved << 3 | kind);
        if let Some((offset, expected)) = run.moved {
            push_difference(&mut self.steps.bytes, offset, expected);
        }
        self.steps.bytes.extend(run.payload);
    }
}

/// Whether `step` continues a run that ends with `last`.
fn follows(last: &Step, step: &Step) -> bool {
    match (last, step) {
        (Step::Keep, Step::Keep) | (Step::Skip, Step::Skip) => true,
        (Step::Replace { version: before }, Step::Replace { version }) => before == version,
        (Step::New { number: number_before, version: before }, Step::New { number, version }) => {
            number_before + 1 == *number && before == version
        }
        _ => false,
    }
}

fn payload(composer: &Composer<'_>, step: &Step) -> Vec<u8> {
    let mut coded = Vec::new();
    match step {
        Step::Keep | Step::Skip => {}
        Step::Replace { version } => push_number(&mut coded, *version),
        Step::New { number, version } => {
            push_difference(&mut coded, *number, composer.expected_number());
            push_number(&mut coded, *version);
        }
        Step::Literal { key, data } => {
            push_bytes(&mut coded, key);
            push_bytes(&mut coded, data);
        }
        Step::Chunk(chunk) => {
            push_difference(&mut coded, chunk.number, composer.next_number.unwrap_or(0));
            push_number(&mut coded, chunk.version);
            push_difference(&mut coded, chunk.value, composer.last_value);
            push_number(&mut coded, chunk.chunk);
            push_number(&mut coded, chunk.bytes as u64);
        }
    }
    coded
}

/// Takes a script from the front of `coded` and composes the page by it.
pub(super) fn run(composer: &mut Composer<'_>, coded: &mut &[u8]) {
    for _ in 0..take_number(coded) {
        let head = take_number(coded);
        let (count, moved, kind) = (head >> 4, head >> 3 & 1, head & 7);
        let moved = if moved == 1 { take_difference(coded, 0) } else { 0 };
        let mut step = take_step(composer, kind, coded);
        for place in 0..count {
            let expected = expected_offset(composer, &step);
            let offset = if place == 0 { expected.wrapping_add(moved) } else { expected };
            apply(composer, &step, offset).expect("the script was written for this prepared page");
            if let Step::New { number, .. } = &mut step {
                *number += 1;
            }
        }
    }
}

fn take_step(composer: &Composer<'_>, kind: u64, coded: &mut &[u8]) -> Step {
    match kind {
        KEEP => Step::Keep,
        SKIP => Step::Skip,
        REPLACE => Step::Replace { version: take_number(coded) },
        NEW => Step::New {
            number: take_difference(coded, composer.expected_number()),
            version: take_number(coded),
        },
        LITERAL => {
            Step::Literal { key: take_bytes(coded).to_vec(), data: take_bytes(coded).to_vec() }
        }
        CHUNK => Step::Chunk(Chunk {
            number: take_difference(coded, composer.next_number.unwrap_or(0)),
            version: take_number(coded),
            value: take_difference(coded, composer.last_value),
            chunk: take_number(coded),
            bytes: take_number(coded) as usize,
        }),
        other => panic!("step kind {other} was never written"),
    }
}
