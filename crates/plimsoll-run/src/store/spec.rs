//! What a plan says of a store and of the customers that visit it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_workload::store::{Catalogue, ReviewHabits, Scale, StoreHabits};

use crate::RunError;
use crate::spec::{DistributionSpec, InstanceSpec, WorkloadSpec};

/// Numbers of reviews stay below two to the 31st in stores of ten million products.
const REVIEWS_PER_PRODUCT_MAX: u64 = 200;

/// What only this family knows of a database.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreDatabase {
    /// Nominal megabytes: 10 are 20,000 customers, 10,000 products and 12,000 orders.
    pub store_mb: u64,
    /// Reviews for each product: the store is that of DVD Store 3. None: of DVD Store 2.
    pub reviews_per_product: Option<u64>,
}

/// A store in a database that is not ours: on a server, or in a file of SQLite.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientInstanceSpec {
    /// Where the server is; nothing for a file.
    pub server: Option<ServerSpec>,
    /// Whether rows of ours are made, or those that somebody else made are driven.
    pub rows: RowsOf,
    /// A server that does not answer for so long is lost.
    pub timeout_s: f64,
    /// A run in which no order has come to an end for so long ends.
    pub lost_after_s: f64,
}

/// Whose rows a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowsOf {
    /// Ours.
    Seed,
    /// Those of a DVD Store that is there; members and reviews are left alone.
    DvdStore,
    /// The same, with members and reviews.
    #[serde(rename = "dvd_store_3")]
    DvdStore3,
}

/// Where a server is and who comes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// What is used there.
    pub database: String,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// Whether it is talked to in TLS, and a file with the certificates (PEM) that are trusted
    /// then.
    pub ca_file: Option<PathBuf>,
    /// Further endpoints where the same database is reached; absent: none.
    #[serde(default)]
    pub endpoints: Vec<EndpointSpec>,
    /// How clients are distributed over all of them; absent: each has one where it stays.
    pub distribution: Option<DistributionSpec>,
}

/// Where a server is reached, too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointSpec {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What only this family knows of a workload.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreSpec {
    /// Mean think time between two orders of a session; uniform from nothing to twice as much.
    pub think_s: f64,
    /// Share of the customers that sign up; the others log in.
    pub new_customers_percent: f64,
    /// Mean number of searches before an order.
    pub searches_mean: u32,
    /// Mean number of rows that a search wants.
    pub search_rows_mean: u32,
    /// Mean number of lines of an order; never more than ten.
    pub lines_mean: u32,
    /// Share of the visits in which a customer becomes a member, in a store that has reviews.
    pub new_members_percent: Option<f64>,
    /// Mean number of searches for reviews.
    pub reviews_mean: Option<u32>,
    /// Share of the visits in which a review is written.
    pub new_reviews_percent: Option<f64>,
    /// Share of the visits in which a review is rated.
    pub new_ratings_percent: Option<f64>,
}

impl StoreSpec {
    /// What a workload says.
    ///
    /// # Errors
    /// A key that is missing, unknown, or of a wrong kind or value.
    pub fn of(workload: &WorkloadSpec) -> Result<StoreHabits, String> {
        let spec: StoreSpec = workload.options_as()?;
        let usual = ReviewHabits::USUAL;
        let habits = StoreHabits {
            think_s: spec.think_s,
            new_customers_percent: spec.new_customers_percent,
            searches_mean: spec.searches_mean,
            search_rows_mean: spec.search_rows_mean,
            lines_mean: spec.lines_mean,
            reviews: ReviewHabits {
                new_members_percent: spec.new_members_percent.unwrap_or(usual.new_members_percent),
                reviews_mean: spec.reviews_mean.unwrap_or(usual.reviews_mean),
                new_reviews_percent: spec.new_reviews_percent.unwrap_or(usual.new_reviews_percent),
                new_ratings_percent: spec.new_ratings_percent.unwrap_or(usual.new_ratings_percent),
            },
        };
        habits.check().map_err(|error| format!("workload {}: {error}", workload.name))?;
        Ok(habits)
    }
}

/// The rows of the store that an instance holds.
///
/// # Errors
/// When it holds none, or more than one.
pub fn catalogue_of(instance: &InstanceSpec) -> Result<Catalogue, RunError> {
    let [database] = &instance.databases[..] else {
        return Err(RunError::Spec(format!(
            "instance {} has {} databases; a store is exactly one",
            instance.name,
            instance.databases.len()
        )));
    };
    let options: StoreDatabase = instance.database_options_as(0).map_err(RunError::Spec)?;
    let scale = Scale::of_megabytes(options.store_mb)
        .map_err(|error| RunError::Spec(format!("instance {}: {error}", instance.name)))?;
    let catalogue = Catalogue::new(database.seed, scale);
    match options.reviews_per_product {
        None => Ok(catalogue),
        Some(each @ 1..=REVIEWS_PER_PRODUCT_MAX) => {
            Ok(catalogue.with_reviews(each * scale.products()))
        }
        Some(other) => Err(RunError::Spec(format!(
            "instance {}: reviews_per_product is {other}; take 1 to {REVIEWS_PER_PRODUCT_MAX}",
            instance.name
        ))),
    }
}
