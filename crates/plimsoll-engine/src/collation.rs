//! The order of Unicode text in indexes: sort keys of the root collation of CLDR, made by ICU4X.
//!
//! Windows sorts by tables of its own, which are not public; an index that it made over Unicode
//! text is read and not checked. Ours compare letters and accents and neither case, width nor kind
//! of kana, as the flags of an index of Windows ask by default. Sort keys change with the tables
//! they are made from. The index therefore names the order and its version, and a program that
//! makes other keys refuses to change the index. A test holds the keys of every character to those
//! of this version. See `docs/decisions/unicode-keys.md`.

use std::sync::Arc;

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};

/// What the catalog calls the order: a language tag with our version of the keys. The version rises
/// when the keys do not stay the same.
pub const UNICODE_LOCALE: &str = "und-u-ks-level2-x-plimsoll-1";

/// UTF-16 units of a text that count for its key. One unit less than what is read of a long value,
/// so that a longer one is known to be.
pub const UNICODE_UNITS_MAX: usize = 32_767;

/// By which rules an index sorts Unicode text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnicodeOrder {
    /// Rules that are not known here, such as those of Windows, or none because it sorts no such
    /// text.
    #[default]
    Unknown,
    /// See [`UNICODE_LOCALE`].
    Root,
}

/// Makes sort keys of Unicode text.
#[derive(Clone, Debug)]
pub(crate) struct Collation(Arc<CollatorBorrowed<'static>>);

/// The sort key of a text.
pub(crate) struct SortKey {
    /// Bytes that compare as the texts do; none of them is zero.
    pub(crate) bytes: Vec<u8>,
    /// Whether the text goes on behind what counts.
    pub(crate) is_truncated: bool,
}

impl Collation {
    pub(crate) fn root() -> Self {
        let mut options = CollatorOptions::default();
        options.strength = Some(Strength::Secondary);
        let collator = CollatorBorrowed::try_new(CollatorPreferences::default(), options);
        Self(Arc::new(collator.expect("the root collation is compiled in")))
    }

    /// The sort key of UTF-16LE text. It is empty for text that compares equal to no text at all.
    /// `None` where characters are not whole.
    pub(crate) fn sort_key(&self, text: &[u8]) -> Option<SortKey> {
        let (pairs, rest) = text.as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let is_truncated = pairs.len() > UNICODE_UNITS_MAX;
        let pairs = &pairs[..pairs.len().min(UNICODE_UNITS_MAX)];
        let mut units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        // The cut may have gone through a character.
        if is_truncated && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
            units.pop();
        }
        if char::decode_utf16(units.iter().copied()).any(|character| character.is_err()) {
            return None;
        }
        let mut bytes = Vec::with_capacity(units.len() * 2 + 4);
        let Ok(()) = self.0.write_sort_key_utf16_to(&units, &mut bytes);
        // Nothing but separators of levels.
        if bytes.iter().all(|byte| *byte == 1) {
            bytes.clear();
        }
        Some(SortKey { bytes, is_truncated })
    }
}
