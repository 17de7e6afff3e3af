//! Links between host and array: each carries one transfer at a time in each direction, in order.
//!
//! A request on a link that is lost goes to another one after the path timeout; while no link is
//! left requests wait for one to return. Limit: no frames, no congestion inside a switch; a link's
//! rate is its payload rate.

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

use crate::spec::{CapSpec, PathPolicy, PathSpec};
use crate::station::{Line, Station};

#[derive(Clone)]
struct Link {
    is_alive: bool,
    to_array_free_at: Nanos,
    to_host_free_at: Nanos,
    busy_ns: [Nanos; 2],
    /// The part of it for other hosts.
    neighbour_busy_ns: [Nanos; 2],
    request_count: u64,
    /// Transfers from the moment they are ready until their last byte is sent.
    lines: [Line; 2],
}

/// What goes over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// When it is ready, now or later.
    pub(crate) ready: Nanos,
    pub(crate) bytes: u32,
    pub(crate) is_neighbours: bool,
}

/// Which direction data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToArray,
    ToHost,
}

/// All links of a host.
pub(crate) struct Links {
    links: Vec<Link>,
    policy: PathPolicy,
    ns_per_byte: f64,
    host_ns_per_byte: f64,
    host_free_at: Nanos,
    host_busy_ns: Nanos,
    latency_ns: Nanos,
    timeout_ns: Nanos,
    turn: Vec<u32>,
    cap: Option<Cap>,
}

struct Cap {
    spec: CapSpec,
    credits: f64,
    updated_ns: f64,
    free_at_ns: f64,
    busy_ns: f64,
    /// Requests from the moment they are ready until they are let through.
    line: Line,
}

/// How a cap was used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapUse {
    pub(crate) busy_ns: Nanos,
    pub(crate) credit_count: f64,
    pub(crate) spec: CapSpec,
    /// Requests that waited for it.
    pub(crate) waiting: Station,
}

/// How a link was used: to the array and to the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkUse {
    pub(crate) is_alive: bool,
    pub(crate) busy_ns: [Nanos; 2],
    /// The part of it for other hosts.
    pub(crate) neighbour_busy_ns: [Nanos; 2],
    pub(crate) request_count: u64,
}

impl Links {
    pub(crate) fn new(spec: &PathSpec, volume_count: usize) -> Self {
        let link = Link {
            is_alive: true,
            to_array_free_at: 0,
            to_host_free_at: 0,
            busy_ns: [0; 2],
            neighbour_busy_ns: [0; 2],
            request_count: 0,
            lines: Default::default(),
        };
        Self {
            links: vec![link; spec.link_count as usize],
            policy: spec.policy,
            ns_per_byte: 1e9 / spec.link_bytes_per_second,
            host_ns_per_byte: spec.host_bytes_per_second.map_or(0.0, |rate| 1e9 / rate),
            host_free_at: 0,
            host_busy_ns: 0,
            latency_ns: spec.link_latency_ns,
            timeout_ns: spec.path_timeout_ns,
            // Volumes have sessions of their own, which begin at different links.
            turn: (0..volume_count as u32).collect(),
            cap: spec.cap.map(|spec| Cap {
                spec,
                credits: spec.credit_count_max,
                updated_ns: 0.0,
                free_at_ns: 0.0,
                busy_ns: 0.0,
                line: Line::default(),
            }),
        }
    }

    /// Chooses a link for a request; `None` while all are lost.
    pub(crate) fn choose(&mut self, volume: u32) -> Option<u32> {
        let count = self.links.len() as u32;
        let alive = |links: &[Link], index: u32| links[index as usize].is_alive;
        let chosen = match self.policy {
            PathPolicy::Failover => (0..count).find(|index| alive(&self.links, *index)),
            PathPolicy::LeastBusy => {
                (0..count).filter(|index| alive(&self.links, *index)).min_by_key(|index| {
                    let link = &self.links[*index as usize];
                    link.to_array_free_at.max(link.to_host_free_at)
                })
            }
            PathPolicy::RoundRobin => {
                let turn = &mut self.turn[volume as usize];
                let found = (0..count)
                    .map(|step| (*turn + step) % count)
                    .find(|index| alive(&self.links, *index));
                *turn = found.map_or(*turn, |index| index + 1);
                found
            }
        }?;
        self.links[chosen as usize].request_count += 1;
        Some(chosen)
    }

    /// When it has arrived at the other end.
    pub(crate) fn send(&mut self, now: Nanos, link: u32, way: Way, sent: Sending) -> Nanos {
        let Sending { ready, bytes, is_neighbours } = sent;
        let transfer_ns = (f64::from(bytes) * self.ns_per_byte) as Nanos;
        let link = &mut self.links[link as usize];
        let free_at = match way {
            Way::ToArray => &mut link.to_array_free_at,
            Way::ToHost => &mut link.to_host_free_at,
        };
        let start = ready.max(*free_at);
        *free_at = start + transfer_ns;
        let mut end = *free_at;
        link.lines[way as usize].pass(now, ready, end);
        link.busy_ns[way as usize] += transfer_ns;
        link.neighbour_busy_ns[way as usize] += if is_neighbours { transfer_ns } else { 0 };
        if way == Way::ToHost && self.host_ns_per_byte > 0.0 && !is_neighbours {
            // The host takes data in while it arrives, one link's after the other's.
            let taking_in_ns = (f64::from(bytes) * self.host_ns_per_byte) as Nanos;
            self.host_free_at = self.host_free_at.max(start) + taking_in_ns;
            self.host_busy_ns += taking_in_ns;
            end = end.max(self.host_free_at);
        }
        end + self.latency_ns
    }

    /// When a provider's cap lets a request start.
    pub(crate) fn admitted_at(&mut self, now: Nanos, ready: Nanos, bytes: u32) -> Nanos {
        let Some(cap) = &mut self.cap else {
            return ready;
        };
        let admitted = cap.admit(ready, bytes);
        cap.line.pass(now, ready, admitted);
        admitted
    }

    /// A link is lost or back.
    pub(crate) fn set_alive(&mut self, link: u32, is_alive: bool) {
        self.links[link as usize].is_alive = is_alive;
    }

    /// Whether a link can carry anything.
    pub(crate) fn is_alive(&self, link: u32) -> bool {
        self.links[link as usize].is_alive
    }

    /// One way, for an answer without data.
    pub(crate) fn latency_ns(&self) -> Nanos {
        self.latency_ns
    }

    pub(crate) fn timeout_ns(&self) -> Nanos {
        self.timeout_ns
    }

    /// Counts anew.
    pub(crate) fn reset_usage(&mut self, now: Nanos) {
        for link in &mut self.links {
            (link.busy_ns, link.neighbour_busy_ns) = ([0; 2], [0; 2]);
            link.request_count = 0;
            link.lines.iter_mut().for_each(|line| line.reset(now));
        }
        self.host_busy_ns = 0;
        if let Some(cap) = &mut self.cap {
            cap.busy_ns = 0.0;
            cap.line.reset(now);
        }
    }

    /// Who stood in the lines of one direction.
    pub(crate) fn stations(&self, now: Nanos, way: Way) -> impl Iterator<Item = Station> + '_ {
        self.links.iter().map(move |link| link.lines[way as usize].station_at(now))
    }

    /// How long the host itself took data in, where it limits.
    pub(crate) fn host_busy_ns(&self) -> Option<Nanos> {
        (self.host_ns_per_byte > 0.0).then_some(self.host_busy_ns)
    }

    /// How the cap was used, and what is saved up by now.
    pub(crate) fn cap_use(&self, now: Nanos) -> Option<CapUse> {
        self.cap.as_ref().map(|cap| CapUse {
            busy_ns: cap.busy_ns as Nanos,
            credit_count: cap.credits_at(now as f64),
            spec: cap.spec,
            waiting: cap.line.station_at(now),
        })
    }

    /// How each link was used.
    pub(crate) fn usage(&self) -> impl Iterator<Item = LinkUse> + '_ {
        self.links.iter().map(|link| LinkUse {
            is_alive: link.is_alive,
            busy_ns: link.busy_ns,
            neighbour_busy_ns: link.neighbour_busy_ns,
            request_count: link.request_count,
        })
    }
}

impl Cap {
    fn credits_at(&self, at_ns: f64) -> f64 {
        let elapsed_s = (at_ns - self.updated_ns).max(0.0) / NANOS_PER_SECOND as f64;
        let earned = elapsed_s * self.spec.operations_per_second;
        (self.credits + earned).min(self.spec.credit_count_max.max(1.0))
    }

    /// A request costs a credit. Credits come in at the base rate; while there are some, only the
    /// burst rate holds back.
    fn admit(&mut self, now: Nanos, bytes: u32) -> Nanos {
        let mut start_ns = self.free_at_ns.max(now as f64);
        self.credits = self.credits_at(start_ns);
        if self.credits < 1.0 {
            let wait_ns =
                (1.0 - self.credits) / self.spec.operations_per_second * NANOS_PER_SECOND as f64;
            start_ns += wait_ns;
            self.busy_ns += wait_ns;
            self.credits = 1.0;
        }
        self.credits -= 1.0;
        self.updated_ns = start_ns;
        let bytes_s = f64::from(bytes) / self.spec.bytes_per_second;
        let share_s = (1.0 / self.spec.burst_operations_per_second).max(bytes_s);
        self.free_at_ns = start_ns + share_s * NANOS_PER_SECOND as f64;
        self.busy_ns += share_s * NANOS_PER_SECOND as f64;
        start_ns.ceil() as Nanos
    }
}
