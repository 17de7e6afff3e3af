//! The simulated network: hosts, listeners, and the weather between them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};

use super::wire::{End, LinkOptions, SimulatedLink, carry, get_through};
use super::{Link, LinkError, LinkFuture, Listener, Network};
use crate::{Handle, Nanos, Notify, Random};

/// What happens to segments between hosts.
pub(super) struct Weather {
    pub(super) options: LinkOptions,
    random: RefCell<Random>,
    /// Pairs of hosts that cannot reach each other, each pair in alphabetical order.
    parted: RefCell<BTreeSet<(String, String)>>,
    lost: Cell<u64>,
}

impl Weather {
    pub(super) fn delay_ns(&self) -> Nanos {
        self.options.delay.sample(&mut self.random.borrow_mut())
    }

    pub(super) fn loses(&self) -> bool {
        let lost = self.random.borrow_mut().chance(self.options.loss);
        self.lost.set(self.lost.get() + u64::from(lost));
        lost
    }

    pub(super) fn breaks(&self) -> bool {
        self.random.borrow_mut().chance(self.options.reset)
    }

    pub(super) fn is_parted(&self, left: &str, right: &str) -> bool {
        self.parted.borrow().contains(&pair(left, right))
    }
}

fn pair(left: &str, right: &str) -> (String, String) {
    let (first, second) = if left <= right {
        (left, right)
    } else {
        (right, left)
    };
    (first.to_owned(), second.to_owned())
}

struct Shared {
    handle: Handle,
    weather: Rc<Weather>,
    listeners: RefCell<BTreeMap<String, Rc<Backlog>>>,
}

#[derive(Default)]
struct Backlog {
    waiting: RefCell<VecDeque<SimulatedLink>>,
    arrived: Notify,
}

/// A network of named hosts on one executor.
pub struct SimulatedNetwork {
    shared: Rc<Shared>,
}

impl SimulatedNetwork {
    /// A network whose tasks run on `handle`'s executor and whose chances come from `random`.
    pub fn new(handle: Handle, random: Random, options: LinkOptions) -> Self {
        let weather = Rc::new(Weather {
            options,
            random: RefCell::new(random),
            parted: RefCell::default(),
            lost: Cell::new(0),
        });
        Self {
            shared: Rc::new(Shared {
                handle,
                weather,
                listeners: RefCell::default(),
            }),
        }
    }

    /// The network as seen from a host. Addresses are `host:port`; who listens decides which host an address is on.
    pub fn host(&self, name: &str) -> SimulatedHost {
        SimulatedHost {
            name: name.to_owned(),
            shared: self.shared.clone(),
        }
    }

    /// Lets nothing pass between two hosts from now on. What is on the way still arrives.
    pub fn part(&self, left: &str, right: &str) {
        self.shared.weather.parted.borrow_mut().insert(pair(left, right));
    }

    /// Lets everything pass between two hosts again.
    pub fn heal(&self, left: &str, right: &str) {
        self.shared.weather.parted.borrow_mut().remove(&pair(left, right));
    }

    /// How many tries chance has lost.
    pub fn lost(&self) -> u64 {
        self.shared.weather.lost.get()
    }
}

/// See [`SimulatedNetwork::host`].
#[derive(Clone)]
pub struct SimulatedHost {
    name: String,
    shared: Rc<Shared>,
}

fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

impl Network for SimulatedHost {
    fn listen(&self, address: &str) -> LinkFuture<'static, Box<dyn Listener>> {
        let (shared, address) = (self.shared.clone(), address.to_owned());
        Box::pin(async move {
            let backlog = Rc::new(Backlog::default());
            if shared.listeners.borrow().contains_key(&address) {
                return Err(LinkError::InUse(address));
            }
            let mut listeners = shared.listeners.borrow_mut();
            listeners.insert(address.clone(), backlog.clone());
            let listener = SimulatedListener {
                address,
                backlog,
                shared: Rc::downgrade(&shared),
            };
            Ok(Box::new(listener) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> LinkFuture<'static, Box<dyn Link>> {
        let (host, address) = (self.clone(), address.to_owned());
        Box::pin(async move {
            host.open_link(address)
                .await
                .map(|link| Box::new(link) as Box<dyn Link>)
        })
    }
}

impl SimulatedHost {
    /// A request to the listener and an answer back, then a link.
    async fn open_link(self, address: String) -> Result<SimulatedLink, LinkError> {
        let Shared {
            handle,
            weather,
            listeners,
        } = &*self.shared;
        let target = host_of(&address);
        let there_ns = get_through(handle, weather, &self.name, target).await;
        handle
            .sleep(there_ns.ok_or_else(|| LinkError::TimedOut(address.clone()))?)
            .await;
        let backlog = listeners.borrow().get(&address).cloned();
        let near = End::on(&self.name);
        let far = End::on(target);
        // Made before the answer is here: if it never comes, dropping this end tells the other.
        let link = self.link(&near, address.clone());
        if let Some(backlog) = &backlog {
            backlog
                .waiting
                .borrow_mut()
                .push_back(self.link(&far, self.name.clone()));
            backlog.arrived.notify_all();
            handle.spawn(carry(handle.clone(), weather.clone(), near.clone(), far.clone()));
            handle.spawn(carry(handle.clone(), weather.clone(), far, near.clone()));
        }
        let back_ns = get_through(handle, weather, target, &self.name).await;
        handle
            .sleep(back_ns.ok_or_else(|| LinkError::TimedOut(address.clone()))?)
            .await;
        if backlog.is_none() {
            return Err(LinkError::Refused(address));
        }
        Ok(link)
    }

    fn link(&self, end: &Rc<End>, peer: String) -> SimulatedLink {
        SimulatedLink {
            handle: self.shared.handle.clone(),
            weather: self.shared.weather.clone(),
            end: end.clone(),
            peer,
        }
    }
}

struct SimulatedListener {
    address: String,
    backlog: Rc<Backlog>,
    shared: Weak<Shared>,
}

impl SimulatedListener {
    async fn next_link(&self) -> Result<Box<dyn Link>, LinkError> {
        loop {
            if let Some(link) = self.backlog.waiting.borrow_mut().pop_front() {
                return Ok(Box::new(link) as Box<dyn Link>);
            }
            self.backlog.arrived.notified().await;
        }
    }
}

impl Listener for SimulatedListener {
    fn accept(&self) -> LinkFuture<'_, Box<dyn Link>> {
        Box::pin(self.next_link())
    }
}

impl Drop for SimulatedListener {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.listeners.borrow_mut().remove(&self.address);
        }
    }
}
