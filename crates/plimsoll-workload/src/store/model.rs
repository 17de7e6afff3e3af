//! What stock and sales must come to, in arithmetic: the measure for every backend, as long as one
//! session orders alone.

use super::rows::Catalogue;
use super::task::Line;
use super::visit::VisitEnd;

/// Below this a product is restocked to what it was, so that the share of orders that find too
/// little stays the same.
pub const RESTOCK_BELOW: i64 = 3;

/// What is left of a stock after a sale; `None` where there is too little. This is the whole rule,
/// for every backend.
pub fn left_in_stock(stock: i64, quantity: u32) -> Option<i64> {
    let left = stock - i64::from(quantity);
    match left {
        ..0 => None,
        0..RESTOCK_BELOW => Some(stock),
        _ => Some(left),
    }
}

/// Stock and sales of every product, product 1 first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelves {
    products: Vec<(i64, i64)>,
}

impl Shelves {
    /// As prepared.
    pub fn new(catalogue: &Catalogue) -> Shelves {
        let both = catalogue.sales().into_iter().zip(1..);
        Shelves {
            products: both
                .map(|(sold, id)| (i64::from(catalogue.stock(id)), i64::from(sold)))
                .collect(),
        }
    }

    /// Orders, and says how that must end.
    pub fn order(&mut self, lines: &[Line]) -> VisitEnd {
        let before = self.products.clone();
        for line in lines {
            let (stock, sales) = &mut self.products[line.product as usize - 1];
            let Some(left) = left_in_stock(*stock, line.quantity) else {
                self.products = before;
                return VisitEnd::OutOfStock;
            };
            *stock = left;
            *sales += i64::from(line.quantity);
        }
        VisitEnd::Sold
    }

    /// Stock and sales of every product, product 1 first.
    pub fn stock_and_sales(&self) -> &[(i64, i64)] {
        &self.products
    }
}
