//! Keeping a changed page of a prepared database in a few dozen bytes, exactly.
//!
//! Nearly everything on such a page is known: the page as prepared, and every record, index entry
//! and chunk of a long value by its number and version. So the code of a page is a script that
//! rebuilds it, and a residue that corrects what the script gets wrong. The residue makes the
//! coding exact whatever the page holds; the script only makes it short.
//!
//! ```text
//! page code  = 0x00 residue | kind page number, heading, ghosts, steps, residue
//! kind       = 0x01 | 0x04 + flush type: a check would find the page sound and in its place
//! heading    = database time, object, flags, neighbours, external header; each as its difference from the prepared page
//! ghosts     = count, { place, number, version }: records no longer on the page whose bytes still lie in its free space
//! steps      = count, { step }: the lines of the page in order, see `script.rs`
//! residue    = the coding of `plimsoll_io::Runs` of the page against what the script gives, checksums aside
//! ```
//!
//! Numbers are LEB128, signed ones zigzag. Only pages whose checksums are right have a script;
//! their checksums are computed, not kept.

mod compose;
mod ghosts;
mod numbers;
mod script;

use std::sync::Arc;

use plimsoll_io::{Delta, Runs, Vouch};

use self::compose::{Composer, Heading};
use self::ghosts::Ghost;
use self::numbers::{push_number, take_number};
use super::PreparedDatabase;
use plimsoll_engine::page::PageView;
use plimsoll_engine::whole_pages::{KnownPage, SLOTS, is_sound_under};
use plimsoll_engine::{PageNumber, PageSize};
use plimsoll_engine::{page_checksums, set_checksum, stored_checksums};

const PLAIN: u8 = 0;
const SCRIPTED: u8 = 1;
const SOUND: u8 = 4;
const FLUSH_TYPE_MASK: u8 = 3;

/// The coding of changed pages of one prepared database.
#[derive(Clone, Debug)]
pub struct PageDelta {
    database: Arc<PreparedDatabase>,
}

impl PageDelta {
    /// The coding for pages of `database`.
    pub fn new(database: Arc<PreparedDatabase>) -> Self {
        Self { database }
    }

    fn size(&self) -> PageSize {
        self.database.page_size()
    }

    /// The scripted code, if the page is one the script can speak about.
    fn encode_scripted(&self, generated: &[u8], written: &[u8]) -> Option<Vec<u8>> {
        let page = page_number(written)?;
        let view = PageView::new(written, self.size());
        view.check_structure().ok()?;
        let heading = Heading::of(&view)?;
        let mut coded = Vec::with_capacity(128);
        coded.push(kind_of(&view, page));
        push_number(&mut coded, page.into());
        let mut composer = Composer::new(&self.database, generated, page, heading);
        composer.push_heading(&mut coded);
        let steps = script::write(&mut composer, &view)?;
        let ghosts = ghosts::find(&self.database, &composer, &view);
        let mut composed = generated.to_vec();
        let remains = ghosts::remains(&ghosts, &composer);
        composer.finish(&remains, &mut composed);
        ghosts::push(&mut coded, &ghosts);
        push_number(&mut coded, steps.count);
        coded.extend(steps.bytes);
        copy_checksums(written, &mut composed);
        coded.extend(Runs.encode(&composed, written));
        Some(coded)
    }

    fn decode_scripted(&self, mut coded: &[u8], unit: &mut [u8]) {
        let page = take_number(&mut coded) as PageNumber;
        let generated = unit.to_vec();
        let heading = Heading::take(&mut coded, &PageView::new(&generated, self.size()), page);
        let mut composer = Composer::new(&self.database, &generated, page, heading);
        let ghosts: Vec<Ghost> = ghosts::take(&mut coded);
        script::run(&mut composer, &mut coded);
        let remains = ghosts::remains(&ghosts, &composer);
        composer.finish(&remains, unit);
        Runs.decode(coded, unit);
        set_checksum(unit, page);
    }
}

impl Delta for PageDelta {
    fn encode(&self, generated: &[u8], written: &[u8]) -> Vec<u8> {
        if generated == written {
            return Vec::new();
        }
        let mut plain = vec![PLAIN];
        if let Some(scripted) = self.encode_scripted(generated, written) {
            // A short script is never worth a second look.
            if scripted.len() <= 64 {
                return scripted;
            }
            plain.extend(Runs.encode(generated, written));
            return if plain.len() < scripted.len() { plain } else { scripted };
        }
        plain.extend(Runs.encode(generated, written));
        plain
    }

    fn decode(&self, coded: &[u8], unit: &mut [u8]) {
        match coded.split_first() {
            None => {}
            Some((&PLAIN, residue)) => Runs.decode(residue, unit),
            Some((_, scripted)) => self.decode_scripted(scripted, unit),
        }
    }

    fn vouch(&self, coded: &[u8]) -> Option<Vouch> {
        let (kind, mut scripted) = coded.split_first()?;
        let flush_type = kind & FLUSH_TYPE_MASK;
        (kind & SOUND != 0).then(|| {
            KnownPage::Sound { flush_type }.vouch(take_number(&mut scripted) as PageNumber)
        })
    }
}

/// The kind of code of a page with a sound structure and right checksums under this number.
fn kind_of(view: &PageView<'_>, page: PageNumber) -> u8 {
    if is_sound_under(view.bytes(), page) { SOUND | view.flush_type() } else { SCRIPTED }
}

/// The number under which the page's checksums are right. It enters only their XOR half, so it can
/// be read out of them.
fn page_number(page: &[u8]) -> Option<PageNumber> {
    let (sums, stored) = (page_checksums(page, 0), stored_checksums(page));
    let number = (stored[0] ^ sums[0]) as u32;
    let blocks = block_count(page);
    let is_right = |block: usize| sums[block] ^ u64::from(number) == stored[block];
    (number > 0 && (0..blocks).all(is_right)).then_some(number)
}

fn block_count(page: &[u8]) -> usize {
    if page.len() > PageSize::KIB_8.bytes() { 4 } else { 1 }
}

/// Makes the checksum fields equal, so that they leave no residue.
fn copy_checksums(from: &[u8], to: &mut [u8]) {
    for slot in SLOTS.into_iter().take(block_count(from)) {
        to[slot..slot + 8].copy_from_slice(&from[slot..slot + 8]);
    }
}
