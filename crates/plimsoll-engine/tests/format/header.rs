//! Database headers: every field has its place, real headers survive a round trip, and a damaged
//! first copy is replaced by the shadow.
//!
//! Why it matters: a header that is off by one byte makes a database unreadable everywhere, and
//! recovery trusts its positions.

use plimsoll_engine::{
    DatabaseHeader, DatabaseState, FileType, FormatError, HeaderCopy, LogPosition, LogTime,
    PageSize, Signature,
};
use proptest::prelude::*;

/// The fields follow one another without gap or overlap, so no byte of the header is forgotten.
#[test]
fn the_layout_has_no_gap() {
    let mut end = 8;
    for (name, offset, length_bytes) in DatabaseHeader::layout() {
        assert_eq!(*offset, end, "{name}");
        end = offset + length_bytes;
    }
    assert_eq!(end, 671);
}

fn check_round_trip(name: &str, bytes: &[u8]) {
    let header = DatabaseHeader::decode(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let page = header.encode();
    assert!(page[8..671] == bytes[8..671], "{name}: every known field is kept");
    let has_later_fields = bytes[671..page.len()].iter().any(|byte| *byte != 0);
    assert!(has_later_fields || page == bytes[..page.len()], "{name}: the whole page is the same");
}

/// Synthetic and Windows-made headers are read and written back byte for byte.
#[test]
fn known_headers_survive_a_round_trip() {
    for (name, _, bytes) in crate::golden::synthetic().iter().chain(&crate::golden::real()) {
        check_round_trip(name, bytes);
    }
}

/// What Windows and the prototype wrote is what their manifests say.
#[test]
fn headers_say_what_the_manifests_say() {
    for (name, entry, bytes) in crate::golden::real() {
        let (header, copy) = DatabaseHeader::choose(&bytes).expect("the header is whole");
        assert_eq!(copy, HeaderCopy::Primary);
        assert_eq!(u64::from(header.page_bytes), entry["page_size"], "{name}");
        assert_eq!(u64::from(header.object_max), entry["objid_last"], "{name}");
        assert_eq!(header.dbtime_max, entry["dbtime"], "{name}");
        let version = format!("{:#x},{:#x},{}", header.version, header.update, header.update_minor);
        assert_eq!(version, entry["version"].as_str().unwrap(), "{name}");
        let expected = if entry["dbstate"] == "CleanShutdown" {
            DatabaseState::Clean
        } else {
            DatabaseState::Dirty
        };
        assert_eq!(header.state, expected, "{name}");
    }
}

fn sample(size: PageSize) -> DatabaseHeader {
    let made = LogTime::from_utc_ns(1_577_836_800_123_000_000);
    DatabaseHeader {
        dbtime_max: 0x1122_3344_5566,
        attach_position: LogPosition { generation: 9, sector: 8, byte: 7 },
        ..DatabaseHeader::new(size, Signature::new(1, made), Signature::new(2, made))
    }
}

/// With the first copy damaged anywhere, the header is read from the shadow; with both damaged it
/// is refused.
#[test]
fn a_damaged_first_copy_is_replaced_by_the_shadow() {
    for size in PageSize::ALL {
        let header = sample(size);
        let page = header.encode();
        for damaged_byte in [0, 5, 100, 237, 668, size.bytes() - 1] {
            let mut file = [page.clone(), page.clone()].concat();
            file[damaged_byte] ^= 0x40;
            let chosen = DatabaseHeader::choose(&file);
            assert_eq!(
                chosen,
                Ok((header.clone(), HeaderCopy::Shadow)),
                "byte {damaged_byte} of {size}"
            );
            file[size.bytes() + damaged_byte] ^= 0x40;
            assert!(
                DatabaseHeader::choose(&file).is_err(),
                "both copies, byte {damaged_byte} of {size}"
            );
        }
    }
}

/// Files that are something else are refused with the reason.
#[test]
fn other_files_are_refused() {
    assert!(matches!(
        DatabaseHeader::choose(&[]),
        Err(FormatError::HeaderShort { found_bytes: 0 })
    ));
    assert!(matches!(DatabaseHeader::choose(&[7; 65536]), Err(FormatError::NotEse { .. })));
    let mut header = sample(PageSize::KIB_4);
    header.file_type = FileType::FlushMap;
    let error = DatabaseHeader::choose(&header.encode()).unwrap_err();
    assert_eq!(error, FormatError::FileType { found: FileType::FlushMap });
    assert!(error.to_string().contains("FlushMap"), "{error}");
}

/// Dates go in and out to the millisecond, including leap days and the turn of a century.
#[test]
fn log_times_hold_dates() {
    for (text, utc_seconds) in [
        ("1970-01-01 00:00:00", 0),
        ("2000-02-29 23:59:59", 951_868_799),
        ("2020-01-01 00:00:00", 1_577_836_800),
        ("2026-11-21 05:04:03", 1_795_237_443),
        ("2100-03-01 12:00:00", 4_107_585_600),
    ] {
        let utc_ns = utc_seconds * 1_000_000_000 + 987_000_000;
        let time = LogTime::from_utc_ns(utc_ns);
        assert_eq!(time.to_string(), text);
        assert_eq!(time.utc_ns(), Some(utc_ns), "{text}");
    }
    assert_eq!(LogTime::NEVER.utc_ns(), None);
}

/// Positions sort by generation, then sector, then byte, whatever their order on disk.
#[test]
fn log_positions_sort_by_generation_first() {
    let position = |generation, sector, byte| LogPosition { generation, sector, byte };
    let mut positions =
        vec![position(2, 0, 0), position(1, 5, 0), position(1, 4, 900), position(1, 4, 3)];
    positions.sort();
    assert_eq!(
        positions,
        [position(1, 4, 3), position(1, 4, 900), position(1, 5, 0), position(2, 0, 0)]
    );
    assert_eq!(position(0x0403_0201, 0x0605, 0x0807).to_bytes(), [7, 8, 5, 6, 1, 2, 3, 4]);
}

proptest! {
    /// No bytes make the decoder panic, and what it accepts it can write back.
    #[test]
    fn any_bytes_are_decoded_or_refused(mut bytes in proptest::collection::vec(any::<u8>(),
        0..9000), make_plausible: bool) {
        if make_plausible && bytes.len() >= 4096 {
            bytes[4..8].copy_from_slice(&0x89AB_CDEFu32.to_le_bytes());
            bytes[236..240].copy_from_slice(&4096u32.to_le_bytes());
            bytes[667..671].copy_from_slice(&1u32.to_le_bytes());
            let sum = plimsoll_engine::header_checksum(&bytes[..4096]);
            bytes[..4].copy_from_slice(&sum.to_le_bytes());
            let header = DatabaseHeader::decode(&bytes).expect("the checksum is right");
            prop_assert_eq!(&header.encode()[8..671], &bytes[8..671]);
        }
        let _ = DatabaseHeader::choose(&bytes);
    }

    /// Every date a log time can hold survives.
    #[test]
    fn log_times_survive(milliseconds in 0u64..5_800_000_000_000) {
        let utc_ns = milliseconds * 1_000_000;
        prop_assert_eq!(LogTime::from_utc_ns(utc_ns).utc_ns(), Some(utc_ns));
    }
}
