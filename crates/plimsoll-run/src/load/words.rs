//! A rate as people read it: with the digits that `results/digits.py` gives a figure by itself.

/// Three digits are enough for a figure by itself.
const DIGITS: i32 = 3;

/// Operations per second: whole, or with three digits.
pub fn rate_in_words(per_s: f64) -> String {
    if per_s.fract() == 0.0 {
        return format!("{per_s:.0}");
    }
    let decimals = (DIGITS - 1 - per_s.log10().floor() as i32).max(0) as usize;
    let text = format!("{per_s:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::rate_in_words;

    #[test]
    fn a_rate_has_the_digits_that_say_something() {
        let cases = [
            (20.0, "20"),
            (20.5, "20.5"),
            (16.666_667, "16.7"),
            (99.96, "100"),
            (12_345.6, "12346"),
            (0.1, "0.1"),
            (0.004_166_67, "0.00417"),
            (0.0, "0"),
        ];
        for (per_s, expected) in cases {
            assert_eq!(rate_in_words(per_s), expected);
        }
    }
}
