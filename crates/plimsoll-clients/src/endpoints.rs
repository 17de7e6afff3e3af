//! Several endpoints of one server: which of them a client connects to, and what came of it.
//!
//! Under single affinity the clients of one address stay with one endpoint, as load balancers of
//! clusters keep them; while it is gone they are refused. Under round robin each new connection
//! goes to the endpoint whose turn it is, and on to the next one where nobody answers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How clients are distributed over endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Clients of one address stay with one endpoint.
    SingleAffinity {
        /// From how many addresses clients come; nothing when each has its own.
        addresses: Option<u64>,
    },
    /// Connections take endpoints in turn.
    RoundRobin,
}

/// What came of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Connections that are open.
    pub open: u64,
    /// Connections that came about.
    pub connections: u64,
    /// Attempts at connecting, or at handing in mail that went on to another, that came to nothing.
    pub refused: u64,
    /// Connections of clients that were at another endpoint before.
    pub moved: u64,
}

/// See the module text.
#[derive(Debug)]
pub struct Endpoints {
    distribution: Distribution,
    each: RefCell<Vec<Reached>>,
    /// What was told of each before.
    told: RefCell<Vec<Reached>>,
    turn: Cell<usize>,
    /// Where each client was last.
    last: RefCell<BTreeMap<u64, usize>>,
}

/// A connection to an endpoint; it ends when this is dropped.
#[derive(Debug)]
pub struct Open {
    endpoints: Rc<Endpoints>,
    at: usize,
}

impl Open {
    /// Which endpoint it is.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.endpoints.each.borrow_mut()[self.at].open -= 1;
    }
}

impl Endpoints {
    /// So many endpoints, to which nobody has connected.
    pub fn new(distribution: Distribution, count: usize) -> Rc<Endpoints> {
        let none = vec![Reached::default(); count.max(1)];
        Rc::new(Endpoints {
            distribution,
            each: RefCell::new(none.clone()),
            told: RefCell::new(none),
            turn: Cell::new(0),
            last: RefCell::default(),
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.each.borrow().len()
    }

    /// Where a new connection of a client is tried, one endpoint after the other.
    pub fn tries(&self, client: u64) -> impl Iterator<Item = usize> + use<> {
        let count = self.count();
        let (first, tried) = match self.distribution {
            Distribution::SingleAffinity { .. } => (self.home(client), 1),
            Distribution::RoundRobin => {
                let turn = self.turn.get();
                self.turn.set((turn + 1) % count);
                (turn, count)
            }
        };
        (0..tried).map(move |more| (first + more) % count)
    }

    /// Where something is tried that belongs to one endpoint, from another on that took it last.
    pub fn onward(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.count();
        let tried = match self.distribution {
            Distribution::SingleAffinity { .. } => 1,
            Distribution::RoundRobin => count,
        };
        (0..tried).map(move |more| (at + more) % count)
    }

    /// Where a client is, was last, or would be at first.
    pub fn of(&self, client: u64) -> usize {
        let last = self.last.borrow().get(&client).copied();
        last.unwrap_or_else(|| self.home(client))
    }

    fn home(&self, client: u64) -> usize {
        let address = match self.distribution {
            Distribution::SingleAffinity { addresses: Some(addresses) } => {
                client % addresses.max(1)
            }
            _ => client,
        };
        (address % self.count() as u64) as usize
    }

    /// A connection came about: of a client, or of nobody who is one.
    pub fn opened(self: &Rc<Self>, client: Option<u64>, at: usize) -> Open {
        let before = client.and_then(|client| self.last.borrow_mut().insert(client, at));
        let mut each = self.each.borrow_mut();
        each[at].open += 1;
        each[at].connections += 1;
        each[at].moved += u64::from(before.is_some_and(|before| before != at));
        Open { endpoints: self.clone(), at }
    }

    /// Nobody answered there. Who was refused goes on to the next one and takes its turn, unless
    /// others have taken it meanwhile.
    pub fn refused(&self, at: usize) {
        let count = self.count();
        self.each.borrow_mut()[at].refused += 1;
        if self.turn.get() == (at + 1) % count {
            self.turn.set((at + 2) % count);
        }
    }

    /// What is new since it was asked last: counts since then, and what is open now. Nothing of
    /// endpoints of which nothing is new, and of a server that has one alone.
    pub fn news(&self) -> Vec<(usize, Reached)> {
        let (each, mut told) = (self.each.borrow(), self.told.borrow_mut());
        if each.len() < 2 || *each == *told {
            return Vec::new();
        }
        let news = each.iter().zip(&*told).enumerate().filter(|(_, (now, before))| now != before);
        let news = news.map(|(at, (now, before))| {
            let since = Reached {
                open: now.open,
                connections: now.connections - before.connections,
                refused: now.refused - before.refused,
                moved: now.moved - before.moved,
            };
            (at, since)
        });
        let news = news.collect();
        told.clone_from(&each);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(endpoints: &Endpoints, client: u64) -> Vec<usize> {
        endpoints.tries(client).collect()
    }

    /// Each client has an endpoint, and nothing takes it to another.
    #[test]
    fn single_affinity_keeps_each_client_where_it_is() {
        let each = Endpoints::new(Distribution::SingleAffinity { addresses: None }, 3);
        for client in 0..6 {
            assert_eq!(tries(&each, client), [client as usize % 3]);
            assert_eq!(tries(&each, client), [client as usize % 3]);
        }
        each.refused(1);
        assert_eq!(tries(&each, 1), [1], "it is refused, and stays");
    }

    /// One machine has one address, so all of its clients reach one endpoint.
    #[test]
    fn clients_of_one_address_are_all_at_one_endpoint() {
        let each = Endpoints::new(Distribution::SingleAffinity { addresses: Some(1) }, 3);
        assert!((0..50).all(|client| tries(&each, client) == [0]));
        let each = Endpoints::new(Distribution::SingleAffinity { addresses: Some(4) }, 3);
        let at: Vec<usize> = (0..4).flat_map(|client| tries(&each, client)).collect();
        assert_eq!(at, [0, 1, 2, 0]);
    }

    /// Connections take turns, also when an endpoint refuses: the others share what it would have
    /// had.
    #[test]
    fn round_robin_shares_what_a_dead_endpoint_leaves() {
        let each = Endpoints::new(Distribution::RoundRobin, 3);
        let mut open = Vec::new();
        for client in 0..30 {
            for at in each.tries(client) {
                if at == 1 {
                    each.refused(at);
                } else {
                    open.push(each.opened(Some(client), at));
                    break;
                }
            }
        }
        let news: BTreeMap<usize, Reached> = each.news().into_iter().collect();
        assert_eq!((news[&0].open, news[&2].open), (15, 15));
        assert_eq!((news[&1].refused, news[&1].open), (15, 0));
        assert!(each.news().is_empty(), "nothing is told twice");
        // A client whose endpoint died has moved when it is somewhere else.
        let from = open.remove(0);
        assert_eq!(from.at(), 0);
        drop(from);
        drop(each.opened(Some(0), 2));
        let news: BTreeMap<usize, Reached> = each.news().into_iter().collect();
        assert_eq!((news[&0].open, news[&2].moved, news[&2].open), (14, 1, 15));
    }

    /// Clients that connect at the same time take turns as well, whoever is through first.
    #[test]
    fn round_robin_takes_turns_while_connections_are_under_way() {
        let each = Endpoints::new(Distribution::RoundRobin, 2);
        let first = |client| each.tries(client).next().expect("an endpoint");
        let (one, other) = (first(0), first(1));
        let _open = each.opened(Some(0), one);
        let third = first(2);
        let _also = each.opened(Some(1), other);
        assert_eq!([one, other, third, first(3)], [0, 1, 0, 1]);
    }

    /// Of one endpoint there is nothing to tell.
    #[test]
    fn one_endpoint_is_no_news() {
        let each = Endpoints::new(Distribution::RoundRobin, 1);
        let _open = each.opened(None, 0);
        assert!(each.news().is_empty());
    }
}
