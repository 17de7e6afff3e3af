//! How clients are distributed over the endpoints of a server.

use plimsoll_clients::endpoints::Distribution;
use schemars::JsonSchema;
use serde::Deserialize;

/// See the module text.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistributionSpec {
    /// Who comes to which endpoint.
    pub policy: PolicySpec,
    /// Under single affinity: from how many addresses clients come; absent: each has its own.
    pub client_addresses: Option<u64>,
}

/// Who comes to which endpoint.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
pub enum PolicySpec {
    /// Clients of one address stay with one endpoint.
    #[serde(rename = "single affinity")]
    SingleAffinity,
    /// Connections take endpoints in turn.
    #[serde(rename = "round robin")]
    RoundRobin,
}

impl DistributionSpec {
    /// What is wrong with it.
    pub fn mistake(self) -> Option<String> {
        match (self.policy, self.client_addresses) {
            (_, Some(0)) => Some("client_addresses is 0; take at least 1".into()),
            (PolicySpec::RoundRobin, Some(_)) => {
                Some("client_addresses means nothing under round robin; leave it out".into())
            }
            _ => None,
        }
    }
}

/// What a plan says; each client has an endpoint of its own where it says nothing.
pub fn distribution_of(spec: Option<DistributionSpec>) -> Distribution {
    match spec.map(|spec| (spec.policy, spec.client_addresses)) {
        Some((PolicySpec::RoundRobin, _)) => Distribution::RoundRobin,
        Some((PolicySpec::SingleAffinity, addresses)) => Distribution::SingleAffinity { addresses },
        None => Distribution::SingleAffinity { addresses: None },
    }
}
