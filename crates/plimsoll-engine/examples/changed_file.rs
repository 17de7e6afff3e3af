//! Prepares a database, lets the engine change it at random, stops cleanly, and prints what must be
//! in it as JSON, for the reader tests.
//!
//! `changed_file PATH PAGE_BYTES changes=N [records=N] [seed=N] [database=N]`
//!
//! Four sessions work at once: one on the prepared records, three on a table of messages that is
//! created first, with a unique and a non-unique index, text, and bodies from nothing to many
//! pages. Some transactions are rolled back, wholly or to a savepoint. What is printed comes from
//! the program's own account of what it committed and not from the engine: the version of each
//! record, and each message with length and CRC-32 of its body.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::page::page_flags;
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{
    Caching, Clock, Context, Executor, Files, Handle, Random, RealDisk, RealDiskOptions,
};
use plimsoll_prepare::{Extent, Plan, PreparedDatabase, TABLE_NAME, WriteOptions, write_database};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const MESSAGE_SESSIONS: u64 = 3;
const IDS_PER_SESSION: u64 = 600;

#[derive(Clone)]
struct Wishes {
    path: PathBuf,
    size: PageSize,
    changes: u64,
    records: u64,
    seed: u64,
    database: u32,
}

impl Wishes {
    fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Wishes> {
        let path = PathBuf::from(arguments.next().ok_or("the path is missing")?);
        let page_bytes = arguments.next().ok_or("the page size is missing")?.parse()?;
        let size = PageSize::from_bytes(page_bytes).ok_or("no such page size")?;
        let mut wishes = Wishes { path, size, changes: 1_000, records: 400, seed: 1, database: 0 };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or("arguments look like name=value")?;
            match name {
                "changes" => wishes.changes = value.parse()?,
                "records" => wishes.records = value.parse()?,
                "seed" => wishes.seed = value.parse()?,
                "database" => wishes.database = value.parse()?,
                _ => return Err(format!("unknown argument {name}").into()),
            }
        }
        Ok(wishes)
    }

    fn options(&self) -> InstanceOptions {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        InstanceOptions {
            context: Context::default(),
            log: LogNames::new(directory, "E00"),
            databases: vec![self.path.clone()],
            framing: Framing::Sectors512,
            circular: true,
            hold_checkpoint: false,
            log_buffer_bytes: 1 << 20,
            cache_bytes_min: 0,
            // Far smaller than the database: pages come and go.
            cache_bytes_max: 96 * self.size.bytes() as u64,
            checkpoint_depth_bytes: 4 << 20,
            version_store_bytes_max: 64 << 20,
            page_images: true,
            extension_pages: 64,
            waypoint_generations: 0,
            writes_outstanding_max: 16,
        }
    }
}

fn main() -> Outcome<()> {
    let wishes = Wishes::read(std::env::args().skip(1))?;
    let plan = Plan {
        branch_fill_percent: 10,
        database: wishes.database,
        ..Plan::new(wishes.size, Extent::Records(wishes.records), wishes.seed)
    };
    let prepared = Arc::new(PreparedDatabase::new(plan)?);
    let clock = Rc::new(Clock::real());
    let disk_options =
        RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
    let disk = RealDisk::open(disk_options, clock.clone())?;
    let files = Files::new(disk.clone());
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    let printed = executor.run(async move { change(wishes, prepared, files, handle).await })?;
    println!("{}", printed?);
    Ok(())
}

fn messages() -> Table {
    Table::builder("Messages")
        .column(Column::new("Id", ColumnType::Long))
        .column(Column::new("Folder", ColumnType::Long))
        .column(Column::new("Name", ColumnType::Text))
        .column(Column::new("Body", ColumnType::LongBinary))
        .primary("Primary", &["Id"])
        .unique("ByName", &["Name"])
        .duplicates("ByFolder", &["Folder"])
        .build()
        .expect("a valid table")
}

async fn change(
    wishes: Wishes,
    prepared: Arc<PreparedDatabase>,
    files: Files,
    handle: Handle,
) -> Outcome<String> {
    write_database(&files, &handle, &wishes.path, &prepared, &WriteOptions::default()).await?;
    let reader = DatabaseReader::open(&files, &handle, &wishes.path, WhenDirty::Refuse).await?;
    let placed = reader.table(TABLE_NAME).ok_or("a prepared database has its table")?.clone();
    reader.close().await?;
    let [records, by_scatter] = [(0, 0), (1, page_flags::INDEX)].map(|(index, kind)| Tree {
        database: 1,
        root: placed.indexes[index].place.root,
        object: placed.indexes[index].place.object,
        kind,
    });
    let random = Random::from_seed(wishes.seed);
    let mut opening = random.child("instance");
    let (instance, _) =
        Instance::open(files, handle.clone(), wishes.options(), &mut opening).await?;
    let table = Rc::new(instance.create_table(1, messages()).await?);
    let share = wishes.changes / (MESSAGE_SESSIONS + 1);
    let sessions: Vec<_> = (0..MESSAGE_SESSIONS)
        .map(|session| {
            let (instance, table) = (instance.clone(), table.clone());
            let random = random.child(&format!("messages {session}"));
            handle.spawn(
                async move { change_messages(&instance, &table, session, share, random).await },
            )
        })
        .collect();
    let on_records = {
        let (instance, random, records_at_first) =
            (instance.clone(), random.child("records"), wishes.records);
        let trees = (records, by_scatter);
        handle.spawn(async move {
            change_records(&instance, &prepared, trees, records_at_first, share, random).await
        })
    };
    let versions = on_records.await?;
    let mut lines = Vec::new();
    for session in sessions {
        lines.extend(session.await?.iter().map(|(id, message)| message.json(*id)));
    }
    drop(table);
    instance.close().await?;
    let versions: Vec<String> =
        versions.iter().map(|(number, version)| format!("\"{number}\": {version}")).collect();
    Ok(format!(
        "{{\"versions\": {{{}}}, \"messages\": [{}]}}",
        versions.join(", "),
        lines.join(", ")
    ))
}

type EngineResult<T> = plimsoll_engine::error::Result<T>;

/// Changes prepared records; answers the version of each that is left.
async fn change_records(
    instance: &Instance,
    prepared: &PreparedDatabase,
    (records, by_scatter): (Tree, Tree),
    records_at_first: u64,
    changes: u64,
    mut random: Random,
) -> EngineResult<BTreeMap<u64, u32>> {
    let mut versions: BTreeMap<u64, u32> =
        (0..records_at_first).map(|number| (number, 0)).collect();
    let mut next = records_at_first;
    for _ in 0..changes {
        let transaction = instance.begin();
        // Keeping what was before costs a copy: few are rolled back.
        let before = random.chance(0.02).then(|| versions.clone());
        let victim = versions.range(random.below(next)..).next().or(versions.first_key_value());
        let victim = *victim.expect("more is inserted than deleted").0;
        match random.below(100) {
            0..40 => {
                let key = prepared.record_key(next);
                transaction.insert(records, &key, &prepared.record(next, 0)).await?;
                transaction.insert(by_scatter, &prepared.scatter_key(next), &key).await?;
                versions.insert(next, 0);
                next += 1;
            }
            40..60 => {
                transaction.delete(records, &prepared.record_key(victim)).await?;
                transaction.delete(by_scatter, &prepared.scatter_key(victim)).await?;
                versions.remove(&victim);
            }
            _ => {
                let version = versions[&victim] + 1;
                let record = prepared.record(victim, version);
                transaction.replace(records, &prepared.record_key(victim), &record).await?;
                versions.insert(victim, version);
            }
        }
        match before {
            Some(before) => {
                transaction.rollback().await?;
                versions = before;
            }
            None => transaction.commit(how(&mut random)).await?,
        }
    }
    Ok(versions)
}

fn how(random: &mut Random) -> Commit {
    if random.chance(0.05) { Commit::Durable } else { Commit::Lazy }
}

#[derive(Clone)]
struct Message {
    folder: i32,
    name: String,
    body: Vec<u8>,
}

impl Message {
    fn draw(id: i32, random: &mut Random) -> Message {
        let bytes = match random.below(10) {
            0 => 0,
            1 | 2 => random.below(30_000),
            _ => random.below(900),
        };
        // Values that begin below 0x40 could be taken for compressed ones by other readers.
        let body = (0..bytes).map(|_| 0x40 | (random.next_u64() as u8 & 0x3F)).collect();
        Message {
            folder: random.below(7) as i32,
            name: format!("message {id} of {}", random.below(1_000_000)),
            body,
        }
    }

    fn json(&self, id: i32) -> String {
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, &self.body);
        format!(
            "{{\"id\": {id}, \"folder\": {}, \"name\": \"{}\", \"bytes\": {}, \"crc\": {crc}}}",
            self.folder,
            self.name,
            self.body.len()
        )
    }
}

type Held = BTreeMap<i32, Message>;

/// Changes the messages of one session; answers those that are left.
async fn change_messages(
    instance: &Instance,
    table: &OpenTable,
    session: u64,
    changes: u64,
    mut random: Random,
) -> EngineResult<Held> {
    let mut held = Held::new();
    for _ in 0..changes {
        let transaction = instance.begin();
        let id = (random.below(IDS_PER_SESSION) * MESSAGE_SESSIONS + session) as i32;
        if random.chance(0.1) {
            let savepoint = transaction.savepoint();
            change_message(table, &transaction, id, &mut held.clone(), &mut random).await?;
            transaction.rollback_to(savepoint).await?;
        }
        let before = held.get(&id).cloned();
        change_message(table, &transaction, id, &mut held, &mut random).await?;
        if random.chance(0.9) {
            transaction.commit(how(&mut random)).await?;
            continue;
        }
        transaction.rollback().await?;
        match before {
            Some(message) => held.insert(id, message),
            None => held.remove(&id),
        };
    }
    Ok(held)
}

async fn change_message(
    table: &OpenTable,
    transaction: &Transaction,
    id: i32,
    held: &mut Held,
    random: &mut Random,
) -> EngineResult<()> {
    let (stored_id, message) = (id.to_le_bytes(), Message::draw(id, random));
    let folder = message.folder.to_le_bytes();
    let values = [
        (table.column("Id")?, Some(&stored_id[..])),
        (table.column("Folder")?, Some(&folder[..])),
        (table.column("Name")?, Some(message.name.as_bytes())),
        (table.column("Body")?, Some(&message.body[..])),
    ];
    let key = table.key(&[Some(&stored_id)])?;
    if !held.contains_key(&id) {
        table.insert(transaction, &values).await?;
    } else if random.chance(0.4) {
        table.delete(transaction, &key).await?;
        held.remove(&id);
        return Ok(());
    } else {
        table.update(transaction, &key, &values[1..]).await?;
    }
    held.insert(id, message);
    Ok(())
}
