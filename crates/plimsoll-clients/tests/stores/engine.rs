//! The store on our own engine, seen as one more kind of database: what all others are held
//! against. It is recovered when it is opened again, as after a crash.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use plimsoll_clients::client::{ClientError, ClientWork, StoreClient};
use plimsoll_engine::create::create_database;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{Context, Files, Random};
use plimsoll_stores::shop::{Shop, ShopError};
use plimsoll_workload::store::{Catalogue, Population, StoreAudit, StoreCounts, StoreTask, Visit};

use crate::world::World;

pub struct OnEngine {
    shop: RefCell<Option<Rc<Shop>>>,
    catalogue: Catalogue,
}

fn options(folder: &Path) -> InstanceOptions {
    InstanceOptions {
        context: Context::default(),
        log: LogNames::new(folder, "E00"),
        databases: vec![folder.join("store.edb")],
        framing: Framing::Segments4096,
        circular: true,
        log_buffer_bytes: 1 << 20,
        cache_bytes_min: 0,
        cache_bytes_max: 32 << 20,
        checkpoint_depth_bytes: 4 << 20,
        hold_checkpoint: false,
        version_store_bytes_max: 64 << 20,
        page_images: true,
        extension_pages: 256,
        waypoint_generations: 0,
        writes_outstanding_max: 32,
    }
}

fn failed(error: ShopError) -> ClientError {
    match error {
        ShopError::NotOurs(text) => ClientError::NotOurs(text),
        other => ClientError::Database { database: "engine".into(), text: other.to_string() },
    }
}

impl OnEngine {
    pub async fn open(
        world: &World,
        folder: &Path,
        catalogue: Catalogue,
    ) -> Result<OnEngine, ClientError> {
        let files = Files::new(world.disk.clone());
        let database = folder.join("store.edb");
        let is_there =
            files.exists(&database, Context::default()).await.expect("it can be looked for");
        if !is_there {
            let signature = Signature::new(9, LogTime::from_utc_ns(1_600_000_000_000_000_000));
            let made =
                create_database(&files, &database, PageSize::KIB_8, signature, Context::default());
            made.await.expect("there is room");
        }
        let mut random = Random::from_seed(5);
        let opened =
            Instance::open(files, world.handle.clone(), options(folder), &mut random).await;
        let (instance, _) = opened.expect("it opens");
        if !is_there {
            Shop::prepare(&instance, &catalogue, &|_, _| {}).await.expect("it is filled");
        }
        match Shop::open(&instance, catalogue, Box::new(|_, _, _| {})).await {
            Ok(shop) => Ok(OnEngine {
                shop: RefCell::new(Some(Rc::new(shop.expect("it is whole")))),
                catalogue,
            }),
            Err(error) => {
                instance.close().await.expect("it closes");
                Err(failed(error))
            }
        }
    }

    fn shop(&self) -> Rc<Shop> {
        self.shop.borrow().clone().expect("it is open")
    }
}

impl StoreClient for OnEngine {
    fn place(&self) -> String {
        "engine".into()
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(&self.catalogue)
    }

    fn population(&self) -> Population {
        Population::from(&self.catalogue)
    }

    fn begin_session(&self) -> u64 {
        self.shop().begin_session()
    }

    fn counts(&self) -> StoreCounts {
        self.shop().counts()
    }

    fn visit<'a>(&'a self, task: &'a StoreTask) -> ClientWork<'a, Visit> {
        Box::pin(async move { self.shop().visit(task).await.map_err(failed) })
    }

    fn audit(&self) -> ClientWork<'_, StoreAudit> {
        Box::pin(async move { self.shop().audit().await.map_err(failed) })
    }

    fn size_bytes(&self) -> ClientWork<'_, u64> {
        let shop = self.shop();
        let open = shop.instance().store().databases.all();
        let bytes =
            open.iter().map(|database| database.size().file_bytes(database.pages_in_use())).sum();
        Box::pin(std::future::ready(Ok(bytes)))
    }

    fn stock_and_sales(&self) -> ClientWork<'_, Vec<(i64, i64)>> {
        Box::pin(async move { self.shop().stock_and_sales().await.map_err(failed) })
    }

    fn close(&self) -> ClientWork<'_, ()> {
        Box::pin(async move {
            if let Some(shop) = self.shop.take() {
                let instance = shop.instance().clone();
                drop(shop);
                instance.close().await.expect("it closes");
            }
            Ok(())
        })
    }
}
