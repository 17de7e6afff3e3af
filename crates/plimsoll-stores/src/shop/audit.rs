//! Counting everything once more: orders and their lines side by side, units by product, histories.

use plimsoll_workload::store::StoreAudit;

use super::schema::{inventory, orderlines, orders};
use super::{Result, Shop, ShopError};

/// Lines of an order at most.
const LINES_MAX: u64 = 10;

impl Shop {
    /// What the store holds, read from its tables as one snapshot sees them.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn audit(&self) -> Result<StoreAudit> {
        let transaction = self.instance.begin();
        let handle = &self.instance.store().handle;
        let tables = &self.tables;
        let mut audit = StoreAudit {
            customers: tables.customers.count(&transaction).await?,
            history: tables.history.count(&transaction).await?,
            ..StoreAudit::default()
        };
        let mut units = vec![0u64; self.catalogue.scale().products() as usize];
        let mut headers = tables.orders.rows(&transaction, 0, &[])?;
        let mut lines = tables.orderlines.rows(&transaction, 0, &[])?;
        let mut line = lines.next().await?;
        while let Some(header) = headers.next().await? {
            let order = tables.orders.number(&header, orders::ID)?;
            audit.orders += 1;
            let mut size = 0;
            while let Some(row) = &line {
                let of = tables.orderlines.number(row, orderlines::ORDER)?;
                if of > order {
                    break;
                }
                match of == order {
                    true => size += 1,
                    false => audit.lines_without_order += 1,
                }
                self.note_units(row, &mut units)?;
                audit.order_lines += 1;
                line = lines.next().await?;
            }
            audit.orders_of_wrong_size += u64::from(!(1..=LINES_MAX).contains(&size));
            handle.breathe().await;
        }
        while let Some(row) = &line {
            audit.lines_without_order += 1;
            audit.order_lines += 1;
            self.note_units(row, &mut units)?;
            line = lines.next().await?;
            handle.breathe().await;
        }
        let mut stock = tables.inventory.rows(&transaction, 0, &[])?;
        let mut products = units.iter();
        while let Some(row) = stock.next().await? {
            let ordered = products.next().copied().unwrap_or_default();
            let sold = tables.inventory.number(&row, inventory::SALES)?.max(0) as u64;
            audit.sold_units += sold;
            audit.products_differing += u64::from(sold != ordered);
            audit.stocks_negative +=
                u64::from(tables.inventory.number(&row, inventory::STOCK)? < 0);
            handle.breathe().await;
        }
        audit.ordered_units = units.iter().sum();
        if let Some(reviews) = &self.reviews {
            (audit.reviews, audit.ratings) = reviews.counts(&transaction).await?;
        }
        Ok(audit)
    }

    fn note_units(
        &self,
        line: &plimsoll_engine::table::StoredRow,
        units: &mut [u64],
    ) -> Result<()> {
        let sheet = &self.tables.orderlines;
        let product = sheet.number(line, orderlines::PRODUCT)?;
        let counted = usize::try_from(product - 1).ok().and_then(|at| units.get_mut(at));
        let counted = counted.ok_or_else(|| {
            ShopError::WrongContent(format!("a line orders product {product}, which there is not"))
        })?;
        *counted += sheet.number(line, orderlines::QUANTITY)?.max(0) as u64;
        Ok(())
    }

    /// Stock and sales of every product, in the order of their numbers: what must be the same
    /// behind every kind of database.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn stock_and_sales(&self) -> Result<Vec<(i64, i64)>> {
        let transaction = self.instance.begin();
        let sheet = &self.tables.inventory;
        let mut rows = sheet.rows(&transaction, 0, &[])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().await? {
            found.push((
                sheet.number(&row, inventory::STOCK)?,
                sheet.number(&row, inventory::SALES)?,
            ));
        }
        Ok(found)
    }
}
