//! Files on volumes: the right volume, no overlap, space used again, a full volume told.

use std::path::Path;

use super::{EXTENT_BYTES, Placement};

fn placement() -> Placement {
    let folders = vec![("".into(), 0), ("logs".into(), 1)];
    Placement::new(folders, [8 * EXTENT_BYTES, 4 * EXTENT_BYTES].into_iter())
}

/// The deepest folder decides, so that a log folder inside a data folder has its own volume.
#[test]
fn the_longest_folder_decides() {
    let mut placement = placement();
    let (data, log) =
        (placement.open(Path::new("a.edb")), placement.open(Path::new("logs/e00.log")));
    assert_eq!((placement.volume(data), placement.volume(log)), (0, 1));
}

/// Two files that grow in turn never share a byte, and a long transfer is cut where a file is.
#[test]
fn files_do_not_overlap() {
    let mut placement = placement();
    let (one, two) = (placement.open(Path::new("one")), placement.open(Path::new("two")));
    for step in 1..=3 {
        assert!(placement.reserve(one, step * EXTENT_BYTES));
        assert!(placement.reserve(two, step * EXTENT_BYTES));
    }
    let (_, pieces) = placement.stretches(one, 0, 3 * EXTENT_BYTES);
    let (_, others) = placement.stretches(two, 0, 3 * EXTENT_BYTES);
    assert_eq!(pieces.iter().map(|(_, bytes)| bytes).sum::<u64>(), 3 * EXTENT_BYTES);
    for (start, bytes) in &pieces {
        assert!(
            others
                .iter()
                .all(|(other, length)| start + bytes <= *other || other + length <= *start)
        );
    }
}

/// What a deleted file leaves is used again, and a full volume is told rather than overrun.
#[test]
fn space_is_used_again_and_runs_out() {
    let mut placement = placement();
    let old = placement.open(Path::new("logs/old"));
    assert!(placement.reserve(old, 3 * EXTENT_BYTES));
    let new = placement.open(Path::new("logs/new"));
    assert!(!placement.reserve(new, 2 * EXTENT_BYTES), "one extent is left");
    placement.delete(Path::new("logs/old"));
    assert!(placement.reserve(new, 4 * EXTENT_BYTES));
    assert!(!placement.reserve(new, 5 * EXTENT_BYTES));
}

/// A file keeps its place under its new name.
#[test]
fn renaming_moves_no_data() {
    let mut placement = placement();
    let map = placement.open(Path::new("logs/a"));
    placement.reserve(map, EXTENT_BYTES);
    let before = placement.stretches(map, 0, EXTENT_BYTES);
    placement.rename(Path::new("logs/a"), Path::new("logs/b"));
    assert_eq!(placement.open(Path::new("logs/b")), map);
    assert_eq!(placement.stretches(map, 0, EXTENT_BYTES), before);
}
