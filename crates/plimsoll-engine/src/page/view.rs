//! Reading a page. Every accessor is total: damaged offsets give a [`PageFault`], never a panic.

use std::cmp::Ordering;

use super::{TAG_BYTES, TAGS_MAX, field, node_flags, page_flags};
use crate::{PageNumber, PageSize};

/// What is structurally wrong inside a page whose checksum was right (or was not checked).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageFault {
    /// A tag points outside the data area.
    #[error("tag {tag} points outside the page")]
    TagOutside {
        /// Tag number.
        tag: usize,
    },
    /// A node is shorter than its own key.
    #[error("the node of tag {tag} is cut short")]
    NodeCut {
        /// Tag number.
        tag: usize,
    },
    /// A node asks for more prefix than the page has.
    #[error("the node of tag {tag} asks for a longer prefix than the page holds")]
    PrefixMissing {
        /// Tag number.
        tag: usize,
    },
    /// More tags than fit.
    #[error("the page claims {count} tags")]
    TooManyTags {
        /// Claimed number.
        count: usize,
    },
    /// The free-space count does not add up.
    #[error("the page counts {counted} free bytes where {found} are free")]
    FreeMiscounted {
        /// In the header.
        counted: usize,
        /// From the tags.
        found: usize,
    },
    /// Keys do not rise.
    #[error("the key of line {line} is not above the one before")]
    KeyOrder {
        /// Line number.
        line: usize,
    },
    /// Two nodes share bytes.
    #[error("the nodes of the page overlap")]
    Overlap,
    /// A branch entry holds no child page number.
    #[error("line {line} of a branch page holds no child")]
    NoChild {
        /// Line number.
        line: usize,
    },
}

/// One node, borrowed from its page.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// See [`node_flags`].
    pub flags: u8,
    /// The part of the key that comes from the external header.
    pub prefix: &'a [u8],
    /// The rest of the key.
    pub suffix: &'a [u8],
    /// Record, bookmark, chunk, extent size or child page.
    pub data: &'a [u8],
}

impl Node<'_> {
    /// The whole key.
    pub fn key(&self) -> Vec<u8> {
        [self.prefix, self.suffix].concat()
    }

    /// Bytes of the whole key.
    pub fn key_bytes(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }

    /// Whether the node is flagged deleted.
    pub fn is_deleted(&self) -> bool {
        self.flags & node_flags::DELETED != 0
    }

    /// Compares this node's key with `key`.
    pub fn compare_key(&self, key: &[u8]) -> Ordering {
        let shared_bytes = self.prefix.len().min(key.len());
        self.prefix[..shared_bytes].cmp(&key[..shared_bytes]).then_with(|| {
            if key.len() < self.prefix.len() {
                Ordering::Greater
            } else {
                self.suffix.cmp(&key[self.prefix.len()..])
            }
        })
    }
}

/// A node whose prefix was not looked up.
struct Parts<'a> {
    flags: u8,
    prefix_bytes: usize,
    suffix: &'a [u8],
    data: &'a [u8],
}

/// A key that is looked for on a page. Most nodes begin with the page's prefix, so that this is
/// compared once and not for every node.
struct Wanted<'a> {
    key: &'a [u8],
    external: &'a [u8],
    /// So many leading bytes of the external header are those of the key.
    shared_bytes: usize,
}

impl<'a> Wanted<'a> {
    fn new(view: &PageView<'a>, key: &'a [u8]) -> Result<Self, PageFault> {
        let external = view.external()?;
        let both = key.iter().zip(external);
        let shared_bytes = both.take_while(|(left, right)| left == right).count();
        Ok(Self { key, external, shared_bytes })
    }

    /// Compares the key of a line with this one.
    #[inline]
    fn compare(&self, view: &PageView<'_>, line: usize) -> Result<Ordering, PageFault> {
        let tag = line + 1;
        let parts = view.parts(tag)?;
        let prefix_bytes = parts.prefix_bytes;
        if prefix_bytes <= self.shared_bytes {
            return Ok(parts.suffix.cmp(&self.key[prefix_bytes..]));
        }
        let prefix = self.external.get(..prefix_bytes);
        let prefix = prefix.ok_or(PageFault::PrefixMissing { tag })?;
        // The prefix and the key part within the prefix, or the key ends there.
        Ok(prefix.cmp(&self.key[..self.key.len().min(prefix_bytes)]))
    }

    /// Where the key lies if the keys of the lines `0..=last` are spread evenly between the first
    /// and the last of them.
    fn guess(&self, view: &PageView<'_>, last: usize) -> Option<usize> {
        let (first_line, last_line) = (view.parts(1).ok()?, view.parts(last + 1).ok()?);
        let prefix_bytes = first_line.prefix_bytes;
        if prefix_bytes > self.shared_bytes || last_line.prefix_bytes != prefix_bytes {
            return None;
        }
        let (low, high) = (leading_word(first_line.suffix), leading_word(last_line.suffix));
        let from_low = leading_word(&self.key[prefix_bytes..]).checked_sub(low)?;
        let span = high.checked_sub(low).filter(|span| *span > 0)?;
        let line = u128::from(from_low) * last as u128 / u128::from(span);
        Some((line as usize).min(last))
    }
}

/// The first eight bytes as a number in key order.
fn leading_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(word.len());
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(word)
}

/// The bounds of a search after steps that double from a guess on: no line before the first is
/// above, and the second is, or is the end.
fn narrow(
    mut low: usize,
    mut high: usize,
    guess: usize,
    is_above: impl Fn(usize) -> Result<bool, PageFault>,
) -> Result<(usize, usize), PageFault> {
    let mut step = 1;
    if is_above(guess)? {
        high = guess;
        while high - low >= step {
            if !is_above(high - step)? {
                return Ok((high - step + 1, high));
            }
            high -= step;
            step *= 2;
        }
    } else {
        low = guess + 1;
        while high - low >= step {
            if is_above(low + step - 1)? {
                return Ok((low, low + step - 1));
            }
            low += step;
            step *= 2;
        }
    }
    Ok((low, high))
}

/// On a page with fewer lines halving is as fast as guessing.
const GUESSED_LINES_MIN: usize = 64;

/// A page to be read.
#[derive(Clone, Copy)]
pub struct PageView<'a> {
    bytes: &'a [u8],
    size: PageSize,
}

#[inline]
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

impl<'a> PageView<'a> {
    /// Looks at `bytes` as a page.
    ///
    /// # Panics
    /// When `bytes` is not exactly one page.
    pub fn new(bytes: &'a [u8], size: PageSize) -> Self {
        assert_eq!(bytes.len(), size.bytes(), "a page view needs exactly one page");
        Self { bytes, size }
    }

    /// The raw bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The page size.
    pub fn size(&self) -> PageSize {
        self.size
    }

    /// Database time of the last change.
    pub fn dbtime(&self) -> u64 {
        u64::from_le_bytes(
            self.bytes[field::DBTIME..field::DBTIME + 8].try_into().expect("eight bytes"),
        )
    }

    /// Left neighbour on the leaf level, 0 if none.
    pub fn previous(&self) -> PageNumber {
        u32_at(self.bytes, field::PREVIOUS)
    }

    /// Right neighbour on the leaf level, 0 if none.
    pub fn next(&self) -> PageNumber {
        u32_at(self.bytes, field::NEXT)
    }

    /// Object the page belongs to.
    pub fn object(&self) -> u32 {
        u32_at(self.bytes, field::OBJECT)
    }

    /// See [`page_flags`].
    pub fn flags(&self) -> u32 {
        u32_at(self.bytes, field::FLAGS)
    }

    /// The 2-bit flush type, 0 if the page was never written.
    pub fn flush_type(&self) -> u8 {
        ((self.flags() & page_flags::FLUSH_TYPE_MASK) >> page_flags::FLUSH_TYPE_SHIFT) as u8
    }

    /// Whether the page is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.flags() & page_flags::LEAF != 0
    }

    /// Whether the page is a root.
    pub fn is_root(&self) -> bool {
        self.flags() & page_flags::ROOT != 0
    }

    /// Free bytes, contiguous or not.
    pub fn free_bytes(&self) -> usize {
        usize::from(u16_at(self.bytes, field::FREE))
    }

    /// Whether one more node fits that takes so many bytes, its tag included.
    pub fn has_room_for(&self, cost_bytes: usize) -> bool {
        cost_bytes <= self.free_bytes() && self.tag_count() < TAGS_MAX
    }

    /// End of the used data area, from the end of the header.
    pub fn data_end(&self) -> usize {
        usize::from(u16_at(self.bytes, field::DATA_END))
    }

    pub(super) fn tag_count(&self) -> usize {
        usize::from(u16_at(self.bytes, field::TAG_COUNT)) & TAGS_MAX
    }

    /// Bytes in use at the front (header and data) and at the back (tags) of the page.
    pub fn used_ends(&self) -> (usize, usize) {
        (self.size.header_bytes() + self.data_end(), self.tag_count() * TAG_BYTES)
    }

    /// Number of nodes.
    pub fn lines(&self) -> usize {
        self.tag_count().saturating_sub(1)
    }

    fn data_area_bytes(&self) -> usize {
        self.size.bytes() - self.size.header_bytes()
    }

    /// (offset from the end of the header, length, flags of a small page's node) of a tag.
    #[inline]
    pub(super) fn tag(&self, tag: usize) -> Result<(usize, usize, u8), PageFault> {
        let outside = PageFault::TagOutside { tag };
        let slot =
            (tag + 1).checked_mul(TAG_BYTES).and_then(|back| self.size.bytes().checked_sub(back));
        let slot = slot.filter(|slot| *slot >= self.size.header_bytes()).ok_or(outside)?;
        let (length, offset) = (u16_at(self.bytes, slot), u16_at(self.bytes, slot + 2));
        let (length, offset, flags) = if self.size.is_large() {
            (length & 0x7FFF, offset & 0x7FFF, 0)
        } else {
            (length & 0x1FFF, offset & 0x1FFF, (offset >> 13) as u8)
        };
        let (length, offset) = (usize::from(length), usize::from(offset));
        if offset + length > self.data_area_bytes() {
            return Err(outside);
        }
        Ok((offset, length, flags))
    }

    #[inline]
    pub(super) fn tag_bytes(&self, tag: usize) -> Result<(&'a [u8], u8), PageFault> {
        let (offset, length, flags) = self.tag(tag)?;
        let start = self.size.header_bytes() + offset;
        Ok((&self.bytes[start..start + length], flags))
    }

    /// The external header: space header on roots, key prefix elsewhere.
    #[inline]
    pub fn external(&self) -> Result<&'a [u8], PageFault> {
        if self.tag_count() == 0 { Ok(&[]) } else { self.tag_bytes(0).map(|(bytes, _)| bytes) }
    }

    /// The parts of a node, its prefix only counted: what every look at a node has in common.
    #[inline]
    fn parts(&self, tag: usize) -> Result<Parts<'a>, PageFault> {
        let (bytes, tag_flags) = self.tag_bytes(tag)?;
        let cut = PageFault::NodeCut { tag };
        if bytes.len() < 2 {
            return Err(cut);
        }
        let first_word = u16_at(bytes, 0);
        let flags = if self.size.is_large() { (first_word >> 13) as u8 } else { tag_flags };
        let (prefix_bytes, rest) = if flags & node_flags::COMPRESSED != 0 {
            (usize::from(first_word & 0x1FFF), bytes.get(2..).ok_or(cut)?)
        } else {
            (0, bytes)
        };
        if rest.len() < 2 {
            return Err(cut);
        }
        let suffix_bytes = usize::from(u16_at(rest, 0) & 0x1FFF);
        let (suffix, data) = rest[2..].split_at_checked(suffix_bytes).ok_or(cut)?;
        Ok(Parts { flags, prefix_bytes, suffix, data })
    }

    /// The node of a line.
    #[inline]
    pub fn node(&self, line: usize) -> Result<Node<'a>, PageFault> {
        let tag = line + 1;
        let parts = self.parts(tag)?;
        let prefix = if parts.prefix_bytes == 0 { &[][..] } else { self.external()? };
        let prefix = prefix.get(..parts.prefix_bytes).ok_or(PageFault::PrefixMissing { tag })?;
        Ok(Node { flags: parts.flags, prefix, suffix: parts.suffix, data: parts.data })
    }

    /// The child page of a branch line.
    #[inline]
    pub fn child(&self, line: usize) -> Result<PageNumber, PageFault> {
        let data = self.node(line)?.data;
        let bytes = data.get(..4).ok_or(PageFault::NoChild { line })?;
        Ok(u32_at(bytes, 0))
    }

    /// The line of `key`, or the line where it would be inserted.
    pub fn find(&self, key: &[u8]) -> Result<Result<usize, usize>, PageFault> {
        let wanted = Wanted::new(self, key)?;
        let (mut low, mut high) = (0, self.lines());
        while low < high {
            let middle = low + (high - low) / 2;
            match wanted.compare(self, middle)? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(Ok(middle)),
            }
        }
        Ok(Err(low))
    }

    /// The branch line whose child may hold `key`: the first separator above it (an empty separator
    /// is infinite).
    pub fn find_child(&self, key: &[u8]) -> Result<usize, PageFault> {
        let last = self.lines().checked_sub(1).ok_or(PageFault::NoChild { line: 0 })?;
        let wanted = Wanted::new(self, key)?;
        let (mut low, mut high) = (0, last);
        let is_above = |line| Ok::<_, PageFault>(wanted.compare(self, line)? == Ordering::Greater);
        // Looking at a line of a large page costs two misses of the processor's cache. Keys are
        // often spread evenly, and then the line is close to the guess: it is looked for in steps
        // that double from there on. A wrong guess costs a few looks, never a wrong answer.
        if last >= GUESSED_LINES_MIN
            && let Some(guess) = wanted.guess(self, last - 1)
        {
            (low, high) = narrow(low, high, guess, is_above)?;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if is_above(middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// The quick checks every page has to pass when it is read: all nodes can be reached, and the
    /// free space fits.
    pub fn check_bounds(&self) -> Result<(), PageFault> {
        let count = self.tag_count();
        if count == 0 || self.size.header_bytes() + count * TAG_BYTES > self.size.bytes() {
            return Err(PageFault::TooManyTags { count });
        }
        let mut used_bytes = count * TAG_BYTES;
        for tag in 0..count {
            let (offset, length, _) = self.tag(tag)?;
            if offset + length > self.data_end() {
                return Err(PageFault::TagOutside { tag });
            }
            used_bytes += length;
        }
        let found = self.data_area_bytes().checked_sub(used_bytes).ok_or(PageFault::Overlap)?;
        if self.free_bytes() != found {
            return Err(PageFault::FreeMiscounted { counted: self.free_bytes(), found });
        }
        if self.data_end() > self.data_area_bytes() - count * TAG_BYTES {
            return Err(PageFault::Overlap);
        }
        (0..self.lines()).try_for_each(|line| self.node(line).map(|_| ()))
    }

    /// Checks the page's inner structure: tags, overlap, key order, free space.
    pub fn check_structure(&self) -> Result<(), PageFault> {
        let count = self.tag_count();
        if self.size.header_bytes() + count * TAG_BYTES > self.size.bytes() {
            return Err(PageFault::TooManyTags { count });
        }
        let mut spans = Vec::with_capacity(count);
        let mut used_bytes = count * TAG_BYTES;
        for tag in 0..count {
            let (offset, length, _) = self.tag(tag)?;
            if offset + length > self.data_end() {
                return Err(PageFault::TagOutside { tag });
            }
            used_bytes += length;
            spans.push((offset, length));
        }
        spans.sort_unstable();
        if spans.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            return Err(PageFault::Overlap);
        }
        let found = self.data_area_bytes().checked_sub(used_bytes).ok_or(PageFault::Overlap)?;
        if self.free_bytes() != found {
            return Err(PageFault::FreeMiscounted { counted: self.free_bytes(), found });
        }
        self.check_keys()
    }

    fn check_keys(&self) -> Result<(), PageFault> {
        let lines = self.lines();
        let mut before: Option<Vec<u8>> = None;
        for line in 0..lines {
            let key = self.node(line)?.key();
            let infinite = !self.is_leaf() && line + 1 == lines && key.is_empty();
            if !infinite && before.as_ref().is_some_and(|before| *before >= key) {
                return Err(PageFault::KeyOrder { line });
            }
            before = Some(key);
        }
        Ok(())
    }
}
