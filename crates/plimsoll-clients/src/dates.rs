//! Days of the prepared year as dates, for databases that have a type for them. DVD Store's last
//! version fills the year 2013, and so does this.

const MONTH_DAYS: [u16; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A day of the prepared year, from 0 on; the one after its last is the first of the next, on which
/// the orders of a run are placed.
///
/// ```
/// use plimsoll_clients::dates::date;
/// assert_eq!([date(0), date(31), date(364), date(365)], ["2013-01-01", "2013-02-01", "2013-12-31", "2014-01-01"]);
/// ```
pub fn date(day: u16) -> String {
    let mut left = day;
    for (month, days) in (1..).zip(MONTH_DAYS) {
        if left < days {
            return format!("2013-{month:02}-{:02}", left + 1);
        }
        left -= days;
    }
    format!("2014-01-{:02}", left + 1)
}
