//! An open store as the sessions of a load see it, whatever database it lies in.

use plimsoll_clients::endpoints::Endpoints;
use plimsoll_io::Nanos;
use plimsoll_workload::store::{Population, StoreAudit, StoreCounts, StoreTask, Visit};

use crate::RunError;
use crate::backend::Work;
use crate::outcome::AuditReport;

/// See the module text.
pub trait OpenStore {
    /// Its nominal size.
    fn size_in_words(&self) -> String;

    /// Who can log in and what can be ordered.
    fn population(&self) -> Population;

    /// A number for a session that no other session of this run has.
    fn begin_session(&self) -> u64;

    /// Carries a visit out.
    fn visit<'a>(&'a self, task: &'a StoreTask) -> Work<'a, Result<Visit, RunError>>;

    /// How long nothing may come to an end before the run does; no limit where that is the
    /// storage's fault alone.
    fn lost_after_ns(&self) -> Option<Nanos> {
        None
    }

    /// The endpoints of its server, and who is at which.
    fn endpoints(&self) -> Option<&Endpoints> {
        None
    }
}

/// What an audit found, held against what was acknowledged.
pub fn audit_report(audit: &StoreAudit, counts: &StoreCounts) -> AuditReport {
    let counted = [
        ("customers", audit.customers),
        ("orders", audit.orders),
        ("orders_acknowledged", counts.orders),
        ("order_lines", audit.order_lines),
        ("units_ordered", audit.ordered_units),
        ("units_sold", audit.sold_units),
    ];
    let written = [("reviews", audit.reviews), ("ratings", audit.ratings)];
    let written = written.into_iter().filter(|(_, count)| *count > 0);
    let unknown = [
        ("orders_unknown", counts.orders_unknown),
        ("customers_unknown", counts.customers_unknown),
        ("writings_unknown", counts.writings_unknown),
    ];
    let unknown = unknown.into_iter().filter(|(_, count)| *count > 0);
    AuditReport {
        counts: counted.into_iter().chain(written).chain(unknown).collect(),
        findings: audit.findings(counts),
    }
}
