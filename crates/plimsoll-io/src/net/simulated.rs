//! The simulated network: hosts, listeners, and the weather between them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use super::weather::{Weather, WireOptions};
use super::wire::{End, SimulatedStream, carry, deliver, get_through};
use super::{Listener, Network, NetworkFuture, Stream, StreamError, address};
use crate::{Handle, Notify, Random};

struct Shared {
    handle: Handle,
    weather: Rc<Weather>,
    listeners: RefCell<BTreeMap<String, Rc<Backlog>>>,
    /// Every host that was ever asked for: their names can be resolved.
    hosts: RefCell<BTreeSet<String>>,
    next_port: Cell<u16>,
}

/// The first port that is given to whoever wants any.
const PORT_FIRST: u16 = 49_152;

#[derive(Default)]
struct Backlog {
    waiting: RefCell<VecDeque<SimulatedStream>>,
    arrived: Notify,
}

/// A network of named hosts on one executor.
pub struct SimulatedNetwork {
    shared: Rc<Shared>,
}

impl SimulatedNetwork {
    /// A network whose tasks run on `handle`'s executor and whose chances come from `random`.
    pub fn new(handle: Handle, random: Random, options: WireOptions) -> Self {
        let weather = Rc::new(Weather::new(random, options));
        Self {
            shared: Rc::new(Shared {
                handle,
                weather,
                listeners: RefCell::default(),
                hosts: RefCell::default(),
                next_port: Cell::new(PORT_FIRST),
            }),
        }
    }

    /// The network as seen from a host. Addresses are `host:port`; who listens decides which host
    /// an address is on.
    pub fn host(&self, name: &str) -> SimulatedHost {
        self.shared.hosts.borrow_mut().insert(name.to_owned());
        SimulatedHost { name: name.to_owned(), shared: self.shared.clone() }
    }

    /// Lets nothing pass between two hosts from now on. What is on the way still arrives.
    pub fn part(&self, left: &str, right: &str) {
        self.shared.weather.part(left, right, true);
    }

    /// Lets everything pass between two hosts again.
    pub fn heal(&self, left: &str, right: &str) {
        self.shared.weather.part(left, right, false);
    }

    /// How many tries chance has lost.
    pub fn lost(&self) -> u64 {
        self.shared.weather.lost()
    }
}

/// See [`SimulatedNetwork::host`].
#[derive(Clone)]
pub struct SimulatedHost {
    name: String,
    shared: Rc<Shared>,
}

impl Network for SimulatedHost {
    fn listen(&self, address: &str) -> NetworkFuture<'static, Box<dyn Listener>> {
        let (shared, address) = (self.shared.clone(), address.to_owned());
        Box::pin(async move {
            let address = shared.with_port(address)?;
            let backlog = Rc::new(Backlog::default());
            if shared.listeners.borrow().contains_key(&address) {
                return Err(StreamError::InUse(address));
            }
            let mut listeners = shared.listeners.borrow_mut();
            listeners.insert(address.clone(), backlog.clone());
            let listener = SimulatedListener { address, backlog, shared: Rc::downgrade(&shared) };
            Ok(Box::new(listener) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> NetworkFuture<'static, Box<dyn Stream>> {
        let (host, address) = (self.clone(), address.to_owned());
        Box::pin(async move {
            let stream = host.open_stream(address).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

impl Shared {
    /// The address with a free port where any was wanted.
    fn with_port(&self, wanted: String) -> Result<String, StreamError> {
        let (host, port) = address::parse(&wanted)?;
        if port != 0 {
            return Ok(wanted);
        }
        let port = self.next_port.get();
        self.next_port.set(port.checked_add(1).unwrap_or(PORT_FIRST));
        Ok(format!("{host}:{port}"))
    }
}

impl SimulatedHost {
    /// A request to the listener and an answer back, then a stream.
    async fn open_stream(self, address: String) -> Result<SimulatedStream, StreamError> {
        let (target, _) = address::parse(&address)?;
        let Shared { handle, weather, listeners, hosts, .. } = &*self.shared;
        if !hosts.borrow().contains(target) {
            return Err(StreamError::UnknownName {
                name: target.to_owned(),
                reason: "no such host in the simulation".to_owned(),
            });
        }
        let there_ns = get_through(handle, weather, &self.name, target).await;
        handle.sleep(there_ns.ok_or_else(|| StreamError::TimedOut(address.clone()))?).await;
        let backlog = listeners.borrow().get(&address).cloned();
        let near = End::on(&self.name);
        let far = End::on(target);
        // Made before the answer is here: if it never comes, dropping this end tells the other.
        let stream = self.stream(&near, &far, address.clone());
        if let Some(backlog) = &backlog {
            let accepted = self.stream(&far, &near, self.name.clone());
            backlog.waiting.borrow_mut().push_back(accepted);
            backlog.arrived.notify_all();
            for (from, to) in [(&near, &far), (&far, &near)] {
                handle.spawn(carry(handle.clone(), weather.clone(), from.clone(), to.clone()));
                handle.spawn(deliver(handle.clone(), to.clone()));
            }
        }
        let back_ns = get_through(handle, weather, target, &self.name).await;
        handle.sleep(back_ns.ok_or_else(|| StreamError::TimedOut(address.clone()))?).await;
        if backlog.is_none() {
            return Err(StreamError::Refused(address));
        }
        Ok(stream)
    }

    fn stream(&self, end: &Arc<End>, other: &Arc<End>, peer: String) -> SimulatedStream {
        let options = &self.shared.weather.options;
        SimulatedStream {
            is_local: end.host == other.host,
            end: end.clone(),
            segment_bytes: options.segment_bytes,
            send_buffer_bytes: options.send_buffer_bytes,
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
    async fn next_stream(&self) -> Result<Box<dyn Stream>, StreamError> {
        loop {
            if let Some(stream) = self.backlog.waiting.borrow_mut().pop_front() {
                return Ok(Box::new(stream) as Box<dyn Stream>);
            }
            self.backlog.arrived.notified().await;
        }
    }
}

impl Listener for SimulatedListener {
    fn accept(&self) -> NetworkFuture<'_, Box<dyn Stream>> {
        Box::pin(self.next_stream())
    }

    fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for SimulatedListener {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.listeners.borrow_mut().remove(&self.address);
        }
    }
}
