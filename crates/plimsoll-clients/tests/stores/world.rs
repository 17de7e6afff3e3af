//! Stores of every kind, in real time, and sessions that visit them.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_clients::client::{ClientError, Mode, Source, StoreClient};
use plimsoll_clients::endpoints::Distribution;
use plimsoll_clients::mysql::{self, MysqlStore};
use plimsoll_clients::postgresql::{Access, PostgresStore};
use plimsoll_clients::sqlite::SqliteStore;
use plimsoll_io::{
    Clock, Executor, Handle, NANOS_PER_SECOND, Nanos, Random, RealDisk, RealDiskOptions,
    RealNetwork, RealNetworkOptions,
};
use plimsoll_workload::store::{Catalogue, Scale, StoreDemand, StoreHabits, Visit, VisitEnd};
use plimsoll_workload::{Demand, Done, Seen};

use crate::engine::OnEngine;
use crate::servers::Server;

pub const SEED: u64 = 11;
/// A server of one endpoint.
pub const ONE: Distribution = Distribution::SingleAffinity { addresses: None };

pub fn catalogue() -> Catalogue {
    Catalogue::new(SEED, Scale::of_megabytes(1).expect("a size"))
}

/// A kind of database that is at hand, and what it lies in.
pub enum Place {
    File(Folder),
    Postgres(Box<Server>),
    MariaDb(Box<Server>),
    Engine(Folder),
}

/// All kinds that are there.
pub fn places() -> Vec<Place> {
    let mut found = vec![Place::Engine(Folder::new()), Place::File(Folder::new())];
    found.extend(servers());
    found
}

/// All servers that are there.
pub fn servers() -> Vec<Place> {
    let postgres = Server::start("postgresql").map(|server| Place::Postgres(Box::new(server)));
    let mariadb = Server::start("mariadb").map(|server| Place::MariaDb(Box::new(server)));
    postgres.into_iter().chain(mariadb).collect()
}

impl Place {
    pub fn name(&self) -> &'static str {
        match self {
            Place::File(_) => "sqlite",
            Place::Postgres(_) => "postgresql",
            Place::MariaDb(_) => "mariadb",
            Place::Engine(_) => "engine",
        }
    }

    /// What a task needs to open the store; it can be sent into one.
    pub fn door(&self) -> Door {
        match self {
            Place::File(folder) => Door::File(folder.file()),
            Place::Postgres(server) => Door::Postgres(access(server)),
            Place::MariaDb(server) => Door::MariaDb(mysql::Access {
                host: server.text("host"),
                port: server.port(),
                user: server.text("user"),
                password: Some(server.text("password")),
                database: server.text("database"),
                timeout_ns: 20 * NANOS_PER_SECOND,
            }),
            Place::Engine(folder) => Door::Engine(folder.0.clone()),
        }
    }

    /// The server of a store that is on one.
    pub fn server(&mut self) -> Option<&mut Server> {
        match self {
            Place::Postgres(server) | Place::MariaDb(server) => Some(server),
            Place::File(_) | Place::Engine(_) => None,
        }
    }
}

pub fn access(server: &Server) -> Access {
    Access {
        host: server.text("host"),
        port: server.port(),
        user: server.text("user"),
        password: Some(server.text("password")),
        database: server.text("database"),
        tls: None,
        timeout_ns: 20 * NANOS_PER_SECOND,
    }
}

#[derive(Clone)]
pub enum Door {
    File(PathBuf),
    Postgres(Access),
    MariaDb(mysql::Access),
    Engine(PathBuf),
}

impl Door {
    pub async fn open(&self, world: &World) -> Result<Rc<dyn StoreClient>, ClientError> {
        self.open_as(world, catalogue()).await
    }

    pub async fn open_as(
        &self,
        world: &World,
        catalogue: Catalogue,
    ) -> Result<Rc<dyn StoreClient>, ClientError> {
        let handle = &world.handle;
        Ok(match self {
            Door::File(path) => Rc::new(SqliteStore::open(handle, path, catalogue).await?),
            Door::Postgres(access) => {
                let source = Source::Made(catalogue);
                let opening = PostgresStore::open(
                    handle,
                    world.network.clone(),
                    vec![access.clone()],
                    ONE,
                    source,
                );
                Rc::new(opening.await?)
            }
            Door::MariaDb(access) => Rc::new(
                MysqlStore::open(handle, vec![access.clone()], ONE, Source::Made(catalogue))
                    .await?,
            ),
            Door::Engine(folder) => Rc::new(OnEngine::open(world, folder, catalogue).await?),
        })
    }
}

impl Door {
    /// Opens what somebody else made there.
    pub async fn open_existing(
        &self,
        world: &World,
        mode: Mode,
    ) -> Result<Rc<dyn StoreClient>, ClientError> {
        let handle = &world.handle;
        Ok(match self {
            Door::Postgres(access) => {
                let network = world.network.clone();
                let opening = PostgresStore::open(
                    handle,
                    network,
                    vec![access.clone()],
                    ONE,
                    Source::Existing(mode),
                );
                Rc::new(opening.await?)
            }
            Door::MariaDb(access) => Rc::new(
                MysqlStore::open(handle, vec![access.clone()], ONE, Source::Existing(mode)).await?,
            ),
            Door::File(_) | Door::Engine(_) => unreachable!("a DVD Store lies on a server"),
        })
    }
}

/// A folder of its own that is deleted when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-stores-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("there is room");
        Folder(path)
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What tasks work with.
#[derive(Clone)]
pub struct World {
    pub handle: Handle,
    pub network: Rc<RealNetwork>,
    pub disk: Rc<RealDisk>,
}

pub fn run<T: 'static, F: Future<Output = T> + 'static>(work: impl FnOnce(World) -> F) -> T {
    let clock = Rc::new(Clock::real());
    let disk = RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("a disk");
    let executor = Executor::new(clock, disk.clone());
    let handle = executor.handle();
    let network =
        RealNetwork::open(&handle, Some(&disk), RealNetworkOptions::default()).expect("a network");
    let network = Rc::new(network);
    executor.run(work(World { handle, network, disk })).expect("it comes to an end")
}

pub fn demand(store: &dyn StoreClient) -> StoreDemand {
    let session = store.begin_session();
    let random = Random::from_seed(SEED).child(&format!("session {session}"));
    StoreDemand::new(random, StoreHabits::USUAL, store.population(), session)
}

/// One session until a deadline: its visits with how long each took.
pub async fn session(
    handle: Handle,
    store: Rc<dyn StoreClient>,
    deadline: Nanos,
) -> Result<Vec<(Visit, Nanos)>, ClientError> {
    let mut demand = demand(store.as_ref());
    let mut visits = Vec::new();
    let mut last = None;
    while handle.now() < deadline {
        let seen = last.as_ref().map(|(finished, task)| Seen {
            intended: 0,
            finished: *finished,
            task,
            done: Done::Done,
        });
        let step = demand.next(handle.now(), seen).expect("a store never closes");
        let begun = handle.now();
        let visit = store.visit(&step.task).await?;
        visits.push((visit, handle.now() - begun));
        last = Some((handle.now(), step.task));
    }
    Ok(visits)
}

/// Several sessions at once.
pub async fn sessions(
    world: &World,
    store: &Rc<dyn StoreClient>,
    count: usize,
    seconds: u64,
) -> Vec<(Visit, Nanos)> {
    let deadline = world.handle.now() + seconds * NANOS_PER_SECOND;
    let begun: Vec<_> = (0..count)
        .map(|_| {
            let visiting = session(world.handle.clone(), store.clone(), deadline);
            world.handle.spawn(visiting)
        })
        .collect();
    let mut visits = Vec::new();
    for session in begun {
        visits.extend(session.await.expect("a visit that comes to nothing is no error"));
    }
    visits
}

pub fn ended(visits: &[(Visit, Nanos)], end: VisitEnd) -> u64 {
    visits.iter().filter(|(visit, _)| visit.end == end).count() as u64
}

/// The audit of a store that is sound.
pub async fn check_audit(store: &dyn StoreClient) {
    let audit = store.audit().await.expect("it reads");
    assert_eq!(audit.findings(&store.counts()), Vec::<String>::new());
}
