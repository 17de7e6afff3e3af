//! What arithmetic says of a store before it is measured.

use super::rows::is_hot;

/// Lines fail whose product has too little in stock: of the stocks 0 to 500, all three quantities
/// at 0, two at 1, one at 2.
const LINE_FAILS: f64 = 2.0 / 501.0;

/// Orders per minute as DVD Store prints them: whole, and with those that were rolled back.
pub fn opm(orders: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (60.0 * orders as f64 / seconds).floor() as u64 } else { 0 }
}

/// Orders per minute that so many sessions make when each thinks so long on average and an order
/// takes so long.
pub fn ceiling_opm(sessions: u64, think_s: f64, response_s: f64) -> f64 {
    60.0 * sessions as f64 / (think_s + response_s)
}

/// The share of orders that are rolled back for want of stock, when no line's product is hot and
/// stocks are those of a new store.
pub fn expected_rollback_share(lines_mean: u64, lines_max: u64) -> f64 {
    let counts = 1..2 * lines_mean;
    let drawn = counts.clone().count() as f64;
    let kept: f64 = counts.map(|lines| (1.0 - LINE_FAILS).powi(lines.min(lines_max) as i32)).sum();
    1.0 - kept / drawn
}

/// How many places of the wheel from which products are drawn each product has.
pub(crate) fn places(product: u64) -> u64 {
    if is_hot(product) { 10 } else { 1 }
}
