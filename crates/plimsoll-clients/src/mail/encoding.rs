//! How names, sets of UIDs and credentials are written.

use std::ops::RangeInclusive;

/// A mailbox name, account or password as a quoted string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

/// UIDs as a set, with runs written as such.
pub(super) fn uid_set(uids: &[u32]) -> String {
    let mut runs: Vec<RangeInclusive<u32>> = Vec::new();
    for uid in uids {
        match runs.last_mut() {
            Some(last) if last.end().checked_add(1) == Some(*uid) => *last = *last.start()..=*uid,
            _ => runs.push(*uid..=*uid),
        }
    }
    let written = runs.iter().map(|run| match run.start() == run.end() {
        true => run.start().to_string(),
        false => format!("{}:{}", run.start(), run.end()),
    });
    written.collect::<Vec<_>>().join(",")
}

/// Bytes as the letters of base64 (RFC 4648), with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for place in 0..4 {
            match place <= three.len() {
                true => text.push(char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, quoted, uid_set};

    /// What goes out is what servers read.
    #[test]
    fn names_sets_and_credentials_are_written_as_servers_read_them() {
        assert_eq!(quoted(r#"a "b" \c"#), r#""a \"b\" \\c""#);
        assert_eq!(uid_set(&[1, 2, 3, 7, 9, 10]), "1:3,7,9:10");
        assert_eq!(uid_set(&[u32::MAX]), "4294967295");
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
