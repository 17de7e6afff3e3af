//! Whoever believes a vouch looks no further, so a wrong one would hide damage: what is vouched for
//! is compared with what looking finds.

use std::sync::Arc;

use plimsoll_io::{Content, Delta, Random, Vouch};

use plimsoll_engine::page::{PageMut, PageView, page_flags};
use plimsoll_engine::whole_pages::KnownPage;
use plimsoll_engine::{PageClass, PageNumber, PageSize, classify, set_checksum};
use plimsoll_prepare::{Extent, LongValues, PageDelta, Plan, PreparedContent, PreparedDatabase};

/// What looking at a page in this place finds, if it is something that can be vouched for.
fn looked_at(bytes: &[u8], size: PageSize, page: PageNumber) -> Option<KnownPage> {
    match classify(bytes, page) {
        PageClass::Uninitialized => Some(KnownPage::Empty),
        PageClass::Ok => {
            let view = PageView::new(bytes, size);
            let flush_type = view.flush_type();
            view.check_bounds().ok().map(|()| KnownPage::Sound { flush_type })
        }
        _ => None,
    }
}

/// Whether there is a vouch; if so, it must be true in whatever place it is asked about.
fn check(vouch: Option<Vouch>, bytes: &[u8], size: PageSize, page: PageNumber) -> bool {
    for place in [page, page + 1] {
        let known = vouch.and_then(|vouch| KnownPage::of(vouch, place));
        assert!(
            known.is_none() || known == looked_at(bytes, size, place),
            "{size}, page {page} in the place of {place}: {known:?}"
        );
    }
    vouch.is_some_and(|vouch| KnownPage::of(vouch, page).is_some())
}

fn database(size: PageSize) -> Arc<PreparedDatabase> {
    let plan = Plan {
        long_values: Some(LongValues { every: 5, bytes: 20_000 }),
        free_pages: 40,
        ..Plan::new(size, Extent::Records(800), 3)
    };
    Arc::new(PreparedDatabase::new(plan).unwrap())
}

/// Every page of a prepared database is what is said of it, and something is said of all but those
/// of the catalog.
#[test]
fn prepared_pages_are_what_is_vouched_for() {
    for size in PageSize::ALL {
        let database = database(size);
        let content = PreparedContent::new(database.clone());
        let mut bytes = vec![0; size.bytes()];
        let mut vouched = 0;
        for page in 1..=database.pages() + 3 {
            database.page(page, &mut bytes);
            vouched += usize::from(check(content.vouch(size.offset_of(page)), &bytes, size, page));
        }
        assert!(vouched > database.pages() as usize / 2, "{size}: {vouched} pages");
        for header in [0, size.bytes() as u64] {
            assert_eq!(content.vouch(header), None, "a header is no page");
        }
    }
}

/// Something that happens to a page before it is written.
fn change(bytes: &mut [u8], size: PageSize, page: PageNumber, random: &mut Random) -> &'static str {
    let mut open = PageMut::new(bytes, size);
    open.set_flush_type(random.below(4) as u8);
    open.set_dbtime(random.below(1 << 40));
    let lines = open.view().lines() as u64;
    if lines > 0 && random.chance(0.5) {
        open.remove(random.below(lines) as usize);
    }
    match random.below(8) {
        0 => {
            let at = random.below(size.bytes() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
            set_checksum(bytes, page);
            return "a flipped bit under a right checksum";
        }
        1 => {
            set_checksum(bytes, page + 1);
            return "a page of another place";
        }
        2 => {
            let at = 36 + page_flags::NEW_CHECKSUM.trailing_zeros() as usize / 8;
            bytes[at] &= !(page_flags::NEW_CHECKSUM >> (8 * (at - 36))) as u8;
            set_checksum(bytes, page);
            return "a page without the mark of its checksum";
        }
        _ => {}
    }
    set_checksum(bytes, page);
    if random.chance(0.2) {
        let at = random.below(size.bytes() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        return "a flipped bit";
    }
    "sound"
}

/// A code vouches only for what looking at the decoded page finds, whatever was wrong with the page
/// when it was written.
#[test]
fn written_pages_are_what_is_vouched_for() {
    for size in PageSize::ALL {
        let database = database(size);
        let (delta, mut random) = (PageDelta::new(database.clone()), Random::from_seed(11));
        let mut generated = vec![0; size.bytes()];
        let (mut sound, mut vouched) = (0, 0);
        for page in (1..=database.pages()).cycle().take(3000) {
            database.page(page, &mut generated);
            if generated.iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut written = generated.clone();
            let what = change(&mut written, size, page, &mut random);
            let coded = delta.encode(&generated, &written);
            let mut decoded = generated.clone();
            delta.decode(&coded, &mut decoded);
            assert!(decoded == written, "{size}, page {page}: {what}");
            let is_vouched = check(delta.vouch(&coded), &decoded, size, page);
            sound += usize::from(what == "sound");
            vouched += usize::from(is_vouched && what == "sound");
        }
        assert!(2 * vouched > sound, "{size}: {vouched} of {sound} sound pages");
    }
}
