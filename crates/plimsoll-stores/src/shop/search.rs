//! Looking for products: special offers of a category by an index, actors and titles by the lists
//! of their words.

use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_workload::store::{Product, Search, SearchBy};

use super::prepare::{ACTOR_WORDS, TITLE_WORDS, products_of};
use super::schema::{BY_CATEGORY, products, words};
use super::sheet::Value;
use super::{Result, Shop, ShopError};

impl Shop {
    /// The products that a search finds, by rising numbers, no more than it wants.
    ///
    /// # Errors
    /// What the disk reports, or a product that is not what was written.
    pub async fn search(&self, search: &Search) -> Result<Vec<Product>> {
        let transaction = self.instance.begin();
        let limit = search.limit as usize;
        let numbers = match &search.by {
            SearchBy::Category(category) => {
                self.special_offers(&transaction, *category, limit).await?
            }
            SearchBy::Actor(name) => {
                self.with_words(&transaction, ACTOR_WORDS, name, limit).await?
            }
            SearchBy::Title(both) => {
                self.with_words(&transaction, TITLE_WORDS, both, limit).await?
            }
        };
        let mut found = Vec::with_capacity(numbers.len());
        for number in numbers {
            found.push(self.product(&transaction, number).await?);
        }
        transaction.commit(Commit::Lazy).await?;
        Ok(found)
    }

    async fn special_offers(
        &self,
        transaction: &Transaction,
        category: u8,
        limit: usize,
    ) -> Result<Vec<i64>> {
        let sheet = &self.tables.products;
        let wanted = [Value::Number(i64::from(category)), Value::Number(1)];
        let mut rows = sheet.rows(transaction, BY_CATEGORY, &wanted)?;
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(row) = rows.next().await?
        {
            found.push(sheet.number(&row, products::ID)?);
        }
        Ok(found)
    }

    /// Numbers of products that all words of a text lead to.
    pub(super) async fn with_words(
        &self,
        transaction: &Transaction,
        kind: i32,
        text: &str,
        limit: usize,
    ) -> Result<Vec<i64>> {
        let mut both: Option<Vec<u32>> = None;
        for word in text.split(' ') {
            let list = self.list_of(transaction, kind, word).await?;
            both = Some(match both {
                Some(before) => {
                    before.into_iter().filter(|number| list.binary_search(number).is_ok()).collect()
                }
                None => list,
            });
        }
        let found = both.unwrap_or_default().into_iter().take(limit);
        Ok(found.map(i64::from).collect())
    }

    async fn list_of(&self, transaction: &Transaction, kind: i32, word: &str) -> Result<Vec<u32>> {
        let sheet = &self.tables.words;
        let key = sheet.prefix(0, &[Value::from(kind), word.into()])?;
        match sheet.get(transaction, &key).await? {
            Some(row) => {
                let list = sheet.long_value(transaction, &row, words::PRODUCTS).await?;
                Ok(products_of(&list)?)
            }
            None => Ok(Vec::new()),
        }
    }

    /// A product, compared with what must be there.
    pub(super) async fn product(&self, transaction: &Transaction, number: i64) -> Result<Product> {
        let sheet = &self.tables.products;
        let key = sheet.key_of_number(number)?;
        let row = sheet.get(transaction, &key).await?;
        let row =
            row.ok_or_else(|| ShopError::WrongContent(format!("product {number} is missing")))?;
        let product = self.catalogue.product(number as u64);
        let is_right = sheet.text(&row, products::TITLE)? == product.title
            && sheet.text(&row, products::ACTOR)? == product.actor
            && sheet.number(&row, products::PRICE)? == i64::from(product.price_cents);
        match is_right {
            true => Ok(product),
            false => {
                Err(ShopError::WrongContent(format!("product {number} is not what was written")))
            }
        }
    }
}
