//! What must hold of a store whatever was done to it: every unit sold stands in exactly one line of
//! an order.
//!
//! The purchase takes from stock and adds to sales in one step with the lines of the order. If two
//! purchases read the same stock and both write what they made of it, one of them is lost: sales
//! then lag behind the lines. That difference is exact and stays for ever.

/// What a store was found to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreAudit {
    /// Rows of customers.
    pub customers: u64,
    /// Rows of orders.
    pub orders: u64,
    /// Lines of orders.
    pub order_lines: u64,
    /// Entries of customers' histories.
    pub history: u64,
    /// Units sold, by the inventory.
    pub sold_units: u64,
    /// Units ordered, by the lines of orders.
    pub ordered_units: u64,
    /// Products of which these differ.
    pub products_differing: u64,
    /// Products whose stock is below zero.
    pub stocks_negative: u64,
    /// Orders that have no line, or more than ten.
    pub orders_of_wrong_size: u64,
    /// Lines whose order is not there.
    pub lines_without_order: u64,
    /// Rows of reviews, in a store that has them.
    pub reviews: u64,
    /// Rows of ratings of reviews.
    pub ratings: u64,
}

/// What a store held and what was added since, as those know who added it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Customers.
    pub customers: u64,
    /// Orders that were not rolled back.
    pub orders: u64,
    /// Orders whose end nobody knows, because the connection was lost before it was told.
    pub orders_unknown: u64,
    /// Customers of whom the same is true.
    pub customers_unknown: u64,
    /// Reviews, in a store that has them.
    pub reviews: u64,
    /// Ratings of reviews.
    pub ratings: u64,
    /// Reviews and ratings whose end nobody knows.
    pub writings_unknown: u64,
}

impl StoreAudit {
    /// The same without what did not add up before: of a store that others have worked on.
    pub fn since(&self, before: &StoreAudit) -> StoreAudit {
        let moved = |now: u64, then: u64, reference: u64| {
            now.saturating_add(reference).saturating_sub(then)
        };
        StoreAudit {
            history: moved(self.history, before.history, before.order_lines),
            sold_units: moved(self.sold_units, before.sold_units, before.ordered_units),
            products_differing: self.products_differing.saturating_sub(before.products_differing),
            stocks_negative: self.stocks_negative.saturating_sub(before.stocks_negative),
            orders_of_wrong_size: self
                .orders_of_wrong_size
                .saturating_sub(before.orders_of_wrong_size),
            lines_without_order: self
                .lines_without_order
                .saturating_sub(before.lines_without_order),
            ..*self
        }
    }

    /// Everything that does not hold, in sentences; nothing of a sound store.
    pub fn findings(&self, expected: &StoreCounts) -> Vec<String> {
        let mut found = Vec::new();
        if self.products_differing > 0 || self.sold_units != self.ordered_units {
            found.push(format!(
                "lost updates: the inventory says that {} units were sold, the lines of orders say \
                 {}; {} products differ",
                self.sold_units, self.ordered_units, self.products_differing
            ));
        }
        let within =
            |rows: u64, known: u64, unknown: u64| (known..=known + unknown).contains(&rows);
        if !within(self.orders, expected.orders, expected.orders_unknown) {
            found.push(format!(
                "orders: {} rows, but {} were acknowledged{}",
                self.orders,
                expected.orders,
                also_unknown(expected.orders_unknown)
            ));
        }
        if !within(self.customers, expected.customers, expected.customers_unknown) {
            found.push(format!(
                "customers: {} rows, but {} were acknowledged{}",
                self.customers,
                expected.customers,
                also_unknown(expected.customers_unknown)
            ));
        }
        let writings = [
            ("reviews", self.reviews, expected.reviews),
            ("ratings", self.ratings, expected.ratings),
        ];
        for (name, rows, known) in writings {
            if !within(rows, known, expected.writings_unknown) {
                found.push(format!(
                    "{name}: {rows} rows, but {known} were acknowledged{}",
                    also_unknown(expected.writings_unknown)
                ));
            }
        }
        if self.history != self.order_lines {
            found.push(format!(
                "histories: {} entries, but orders have {} lines",
                self.history, self.order_lines
            ));
        }
        let counts = [
            (self.stocks_negative, "products have a stock below zero"),
            (self.orders_of_wrong_size, "orders have no line or more than ten"),
            (self.lines_without_order, "lines belong to no order"),
        ];
        let wrong = counts.iter().filter(|(count, _)| *count > 0);
        found.extend(wrong.map(|(count, what)| format!("{count} {what}")));
        found
    }
}

fn also_unknown(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(" and the end of {count} is unknown"),
    }
}
