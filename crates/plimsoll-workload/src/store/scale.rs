//! How large a store is. One rule makes every table of the nominal size, and more megabytes never
//! mean fewer rows.
//!
//! DVD Store has three sizes and two formulas between them, by which 2 GB has fewer products than
//! 999 MB. Its small and medium size come out of this rule as published: 10 MB are 20,000
//! customers, 10,000 products and 1,000 orders a month; 1 GB are a hundred times as many customers
//! and orders and 100,000 products. Megabytes are nominal: reports state the bytes on disk.

use std::fmt;
use std::str::FromStr;

const CUSTOMERS_PER_MB: u64 = 2_000;
const PRODUCTS_MIN: u64 = 10_000;
const CUSTOMERS_PER_PRODUCT: u64 = 20;
/// Orders of the year before, in tenths of the number of customers.
const ORDERS_IN_TENTHS: u64 = 6;
const MB_PER_GB: u64 = 1_000;
/// Numbers of customers and of products stay below two to the 31st, which every database's integer
/// holds.
const MB_MAX: u64 = 1_000_000;

/// The nominal size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale {
    megabytes: u64,
}

/// A size that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleError(String);

impl fmt::Display for ScaleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScaleError(text) = self;
        write!(
            formatter,
            "{text:?} is not the size of a store; write S, M, L, or a whole number of MB or GB up \
             to 1000GB, such as 500MB"
        )
    }
}

impl std::error::Error for ScaleError {}

impl Scale {
    /// 10 MB.
    pub const SMALL: Scale = Scale { megabytes: 10 };

    /// So many nominal megabytes.
    ///
    /// # Errors
    /// For none, or more than a million.
    pub fn of_megabytes(megabytes: u64) -> Result<Scale, ScaleError> {
        match megabytes {
            1..=MB_MAX => Ok(Scale { megabytes }),
            _ => Err(ScaleError(format!("{megabytes}MB"))),
        }
    }

    /// Nominal megabytes.
    pub fn megabytes(self) -> u64 {
        self.megabytes
    }

    /// Customers when prepared, numbered from 1.
    pub fn customers(self) -> u64 {
        self.megabytes * CUSTOMERS_PER_MB
    }

    /// Products, numbered from 1. None is added later.
    pub fn products(self) -> u64 {
        (self.customers() / CUSTOMERS_PER_PRODUCT).max(PRODUCTS_MIN)
    }

    /// Orders of the year before the run, numbered from 1.
    pub fn orders(self) -> u64 {
        self.customers() * ORDERS_IN_TENTHS / 10
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Scale, ScaleError> {
        let upper: String = text.trim().to_ascii_uppercase();
        let refused = || ScaleError(text.to_owned());
        let megabytes = match upper.as_str() {
            "S" => 10,
            "M" => MB_PER_GB,
            "L" => 100 * MB_PER_GB,
            sized => {
                let (number, factor) = match (sized.strip_suffix("MB"), sized.strip_suffix("GB")) {
                    (Some(number), _) => (number, 1),
                    (_, Some(number)) => (number, MB_PER_GB),
                    (None, None) => return Err(refused()),
                };
                let digits = number.trim_end();
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(refused());
                }
                let number: u64 = digits.parse().map_err(|_| refused())?;
                number.checked_mul(factor).ok_or_else(refused)?
            }
        };
        Scale::of_megabytes(megabytes).map_err(|_| refused())
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.megabytes % MB_PER_GB {
            0 => write!(formatter, "{}GB", self.megabytes / MB_PER_GB),
            _ => write!(formatter, "{}MB", self.megabytes),
        }
    }
}
