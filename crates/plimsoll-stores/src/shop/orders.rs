//! A visit step by step: login or sign-up, searches, prices, purchase.

use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{NANOS_PER_MILLISECOND, Nanos};
use plimsoll_workload::store::{
    Customer, Entrance, Line, Step, StoreTask, Visit, VisitEnd, YEAR_DAYS, left_in_stock, tax_cents,
};

use super::prepare::customer_values;
use super::schema::{BY_USERNAME, customers, history, inventory};
use super::sheet::Value;
use super::{Result, Shop, ShopError, TRIED_NS_MAX};

/// Titles that a login shows at most.
const TITLES_MAX: usize = 10;
/// The first pause before a purchase is tried again; the next ones are up to twice as long each.
const PAUSE_NS: Nanos = NANOS_PER_MILLISECOND / 4;
const PAUSE_NS_MAX: Nanos = 50 * NANOS_PER_MILLISECOND;

enum Attempt {
    Sold,
    OutOfStock,
}

impl Shop {
    /// Carries a visit out.
    ///
    /// # Errors
    /// What the disk reports, or a row that is not what was written.
    pub async fn visit(&self, task: &StoreTask) -> Result<Visit> {
        let mut visit = Visit::begun(task);
        let mut begun = self.now();
        let mut note = |steps: &mut Vec<_>, step| {
            let ended = self.now();
            steps.push((step, ended - std::mem::replace(&mut begun, ended)));
        };
        let customer = match task.entrance {
            Entrance::Login { customer } => {
                let (number, _titles) = self.log_in(&format!("user{customer}")).await?;
                note(&mut visit.steps, Step::Login);
                if number != customer as i64 {
                    return Err(ShopError::WrongContent(format!(
                        "user{customer} is customer {number}, not {customer}"
                    )));
                }
                number
            }
            Entrance::SignUp { number } => {
                let customer = self.catalogue.new_customer(self.run, task.session, number);
                let number = self.sign_up(&customer).await?;
                note(&mut visit.steps, Step::SignUp);
                number
            }
        };
        for search in &task.searches {
            visit.rows_found += self.search(search).await?.len() as u32;
            note(&mut visit.steps, Step::Search);
        }
        for errand in &task.errands {
            visit.rows_found += self.errand(errand, customer).await?;
            note(&mut visit.steps, errand.step());
        }
        let net_cents = self.price(&task.lines).await?;
        note(&mut visit.steps, Step::Price);
        visit.end = self.purchase(customer, &task.lines, net_cents, &mut visit.retries).await?;
        note(&mut visit.steps, Step::Purchase);
        Ok(visit)
    }

    /// The number of a customer, with titles bought before and for each one that others bought with
    /// it.
    ///
    /// # Errors
    /// What the disk reports, or a customer that is not there.
    pub async fn log_in(&self, username: &str) -> Result<(i64, Vec<(String, String)>)> {
        let transaction = self.instance.begin();
        let sheet = &self.tables.customers;
        let row = sheet.get_by(&transaction, BY_USERNAME, username.into()).await?;
        let row =
            row.ok_or_else(|| ShopError::WrongContent(format!("customer {username} is missing")))?;
        let found =
            (sheet.text(&row, customers::USERNAME)?, sheet.text(&row, customers::PASSWORD)?);
        if found != (username, "password") {
            return Err(ShopError::WrongContent(format!(
                "customer {username} is not what was written"
            )));
        }
        let customer = sheet.number(&row, customers::ID)?;
        let mut bought = self.tables.history.rows(&transaction, 0, &[Value::Number(customer)])?;
        let mut titles = Vec::new();
        while titles.len() < TITLES_MAX
            && let Some(entry) = bought.next().await?
        {
            let number = self.tables.history.number(&entry, history::PRODUCT)?;
            let product = self.product(&transaction, number).await?;
            let common = self.product(&transaction, product.common_product as i64).await?;
            titles.push((product.title, common.title));
        }
        transaction.commit(Commit::Lazy).await?;
        Ok((customer, titles))
    }

    /// Adds a customer; answers the number it got.
    ///
    /// # Errors
    /// What the disk reports; a name that is taken.
    pub async fn sign_up(&self, customer: &Customer) -> Result<i64> {
        let begun = self.now();
        let number = self.next_customer.replace(self.next_customer.get() + 1);
        let transaction = self.instance.begin();
        let gender = customer.gender.to_string();
        let values = customer_values(number, customer, &gender);
        self.tables.customers.insert(&transaction, &values).await?;
        self.commit(transaction, Step::SignUp, begun).await?;
        self.count(|counts| counts.customers += 1);
        Ok(i64::from(number))
    }

    /// What lines cost without tax.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn price(&self, lines: &[Line]) -> Result<i64> {
        let transaction = self.instance.begin();
        let mut net_cents = 0;
        for line in lines {
            let product = self.product(&transaction, line.product as i64).await?;
            net_cents += i64::from(product.price_cents) * i64::from(line.quantity);
        }
        transaction.commit(Commit::Lazy).await?;
        Ok(net_cents)
    }

    /// Places an order as one transaction, tried again while other sessions are first.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn purchase(
        &self,
        customer: i64,
        lines: &[Line],
        net_cents: i64,
        retries: &mut u32,
    ) -> Result<VisitEnd> {
        // Everyone takes products in the same order.
        let mut sorted = lines.to_vec();
        sorted.sort_unstable();
        let begun = self.now();
        let order = i64::from(self.next_order.replace(self.next_order.get() + 1));
        let mut pause_ns = PAUSE_NS;
        loop {
            let transaction = self.instance.begin();
            let error = match self.order(&transaction, order, customer, &sorted, net_cents).await {
                Ok(Attempt::Sold) => {
                    self.commit(transaction, Step::Purchase, begun).await?;
                    self.count(|counts| counts.orders += 1);
                    return Ok(VisitEnd::Sold);
                }
                Ok(Attempt::OutOfStock) => {
                    transaction.rollback().await?;
                    return Ok(VisitEnd::OutOfStock);
                }
                Err(error) => error,
            };
            transaction.rollback().await?;
            if !error.is_transient() {
                return Err(error.into());
            }
            if self.now() - begun > TRIED_NS_MAX {
                return Ok(VisitEnd::GivenUp);
            }
            *retries += 1;
            let drawn_ns = pause_ns / 2 + self.pauses.borrow_mut().below(pause_ns / 2 + 1);
            self.instance.store().handle.sleep(drawn_ns).await;
            pause_ns = (2 * pause_ns).min(PAUSE_NS_MAX);
        }
    }

    async fn order(
        &self,
        transaction: &Transaction,
        order: i64,
        customer: i64,
        lines: &[Line],
        net_cents: i64,
    ) -> std::result::Result<Attempt, EngineError> {
        for line in lines {
            if !self.take_from_stock(transaction, *line).await? {
                return Ok(Attempt::OutOfStock);
            }
        }
        let (day, tax) = (YEAR_DAYS as i64, tax_cents(net_cents as u64) as i64);
        let values = [order, day, customer, net_cents, tax, net_cents + tax].map(Value::Number);
        self.tables.orders.insert(transaction, &values).await?;
        for (line, number) in lines.iter().zip(1..) {
            let product = line.product as i64;
            let values = [number, order, product, i64::from(line.quantity), day].map(Value::Number);
            self.tables.orderlines.insert(transaction, &values).await?;
            let values = [customer, order, number, product].map(Value::Number);
            self.tables.history.insert(transaction, &values).await?;
        }
        Ok(Attempt::Sold)
    }

    /// Sells so much of a product, if there is so much; restocks it when little is left.
    async fn take_from_stock(
        &self,
        transaction: &Transaction,
        line: Line,
    ) -> std::result::Result<bool, EngineError> {
        let sheet = &self.tables.inventory;
        let key = sheet.key_of_number(line.product as i64)?;
        let row = sheet.get(transaction, &key).await?.ok_or(EngineError::RowNotFound)?;
        let (stock, sales) =
            (sheet.number(&row, inventory::STOCK)?, sheet.number(&row, inventory::SALES)?);
        let Some(left) = left_in_stock(stock, line.quantity) else {
            return Ok(false);
        };
        let sold = sales + i64::from(line.quantity);
        let changed = [(inventory::STOCK, left), (inventory::SALES, sold)];
        sheet.set(transaction, &key, &changed).await?;
        Ok(true)
    }

    pub(super) async fn commit(
        &self,
        transaction: Transaction,
        step: Step,
        begun: Nanos,
    ) -> Result<()> {
        let commit_begun = self.now();
        transaction.commit(Commit::Durable).await?;
        (self.watch)(step, begun, commit_begun);
        Ok(())
    }
}
