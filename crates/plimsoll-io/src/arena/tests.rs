//! Buffers never overlap, and what was given back can be lent again whole.

use std::rc::Rc;

use super::{Arena, CHUNK_BYTES};
use crate::{BUFFER_ALIGNMENT, Buffer, Random};

fn lend(arena: &Rc<Arena>, length_bytes: usize) -> Buffer {
    arena.lend(length_bytes).unwrap_or_else(|| {
        arena.grow();
        arena.lend(length_bytes).expect("a new chunk has room")
    })
}

/// Two owners of one byte would be a database page inside a log record. Every buffer is filled with
/// its own mark and checked when it dies.
#[test]
fn buffers_never_overlap() {
    let mut random = Random::from_seed(7);
    let arena = Rc::new(Arena::default());
    let mut lent: Vec<(u8, Buffer)> = Vec::new();
    for round in 0..20_000u32 {
        if lent.len() > 100 || (random.chance(0.5) && !lent.is_empty()) {
            let (mark, buffer) = lent.swap_remove(random.below(lent.len() as u64) as usize);
            assert!(buffer.iter().all(|byte| *byte == mark), "round {round}");
        } else {
            let magnitude = random.below(18);
            let length_bytes = 1 + random.below(1 << magnitude) as usize;
            let mut buffer = lend(&arena, length_bytes);
            assert_eq!(buffer.len(), length_bytes);
            assert!((buffer.as_ptr() as usize).is_multiple_of(BUFFER_ALIGNMENT));
            buffer.fill(round as u8);
            lent.push((round as u8, buffer));
        }
    }
}

/// Memory in small pieces must become large pieces again, or the arena would grow with every phase
/// of a run.
#[test]
fn pieces_grow_together_again() {
    let mut random = Random::from_seed(8);
    let arena = Rc::new(Arena::default());
    for _ in 0..20 {
        let mut lent: Vec<Buffer> = (0..512).map(|_| lend(&arena, BUFFER_ALIGNMENT)).collect();
        assert_eq!(arena.size_bytes(), CHUNK_BYTES, "512 pages are one chunk");
        while !lent.is_empty() {
            lent.swap_remove(random.below(lent.len() as u64) as usize);
        }
        drop(lend(&arena, CHUNK_BYTES));
        assert_eq!(arena.size_bytes(), CHUNK_BYTES, "the chunk is whole again");
    }
    assert!(arena.lend(CHUNK_BYTES + 1).is_none(), "longer than a chunk is not lent");
}

/// Whoever looks for leaks believes this count: each buffer counts from when it is lent until the
/// last share of it is gone.
#[test]
fn what_is_lent_is_counted() {
    let mut random = Random::from_seed(9);
    let arena = Rc::new(Arena::default());
    assert_eq!(arena.lent_bytes(), 0);
    let mut lent: Vec<Buffer> = Vec::new();
    for round in 0..5_000 {
        if lent.len() > 60 || (random.chance(0.5) && !lent.is_empty()) {
            lent.swap_remove(random.below(lent.len() as u64) as usize);
        } else {
            lent.push(lend(&arena, 1 + random.below(200_000) as usize));
        }
        let bytes: usize = lent.iter().map(Buffer::capacity_bytes).sum();
        assert_eq!(arena.lent_bytes(), bytes, "round {round}");
    }
    let mut last = lent.swap_remove(0);
    let bytes = last.capacity_bytes();
    lent.clear();
    let shared = last.share();
    drop(last);
    assert_eq!(arena.lent_bytes(), bytes, "it is shared still");
    drop(shared);
    assert_eq!(arena.lent_bytes(), 0);
}

/// Only memory the kernel was told of, by this arena, goes by number: another ring knows the number
/// as something else.
#[test]
fn only_own_registered_memory_has_a_number() {
    let (arena, other) = (Rc::new(Arena::default()), Rc::new(Arena::default()));
    let chunk = arena.grow();
    let buffer = arena.lend(8192).expect("a new chunk has room");
    assert_eq!(arena.registered_index(&buffer), None, "not registered yet");
    arena.note_registered(chunk);
    assert_eq!(arena.registered_index(&buffer), Some(0));
    other.note_registered(other.grow());
    assert_eq!(other.registered_index(&buffer), None, "not its memory");
    assert_eq!(arena.registered_index(&Buffer::zeroed(8192)), None, "from the heap");
}

/// A buffer may outlive the disk that lent it.
#[test]
fn buffers_keep_their_arena() {
    let arena = Rc::new(Arena::default());
    let mut buffer = lend(&arena, CHUNK_BYTES);
    drop(arena);
    buffer.fill(1);
    assert!(buffer.iter().all(|byte| *byte == 1));
}

/// A page is written from where it lies: the memory belongs to both until one of them is gone, in
/// whichever order, and is given back once.
#[test]
fn shared_memory_is_given_back_by_the_last() {
    let arena: Rc<Arena> = Rc::default();
    arena.grow();
    for first_goes_first in [true, false] {
        let mut page = arena.lend(BUFFER_ALIGNMENT).expect("the chunk is free");
        page.fill(7);
        let address = page.as_ptr();
        let written = page.share();
        assert!(page.is_shared() && written.is_shared());
        assert!(written[..] == page[..] && written.as_ptr() == address);
        let mut left = if first_goes_first {
            drop(page);
            written
        } else {
            drop(written);
            page
        };
        let other = arena.lend(BUFFER_ALIGNMENT).expect("the chunk is free");
        assert_ne!(other.as_ptr(), address, "the memory is still in use");
        assert!(!left.is_shared());
        left.fill(8);
        drop(left);
        drop(other);
        let again = [arena.lend(BUFFER_ALIGNMENT), arena.lend(BUFFER_ALIGNMENT)];
        let at = |buffer: &Option<Buffer>| buffer.as_ref().map(|buffer| buffer.as_ptr());
        assert!(again.iter().any(|buffer| at(buffer) == Some(address)));
        assert_ne!(at(&again[0]), at(&again[1]), "given back twice");
    }
}

/// Changing a page that the kernel is reading would put half of the change on the disk, under a
/// checksum that fits neither.
#[test]
#[should_panic(expected = "shared memory is not changed")]
fn shared_memory_cannot_be_changed() {
    let mut page = Buffer::zeroed(BUFFER_ALIGNMENT);
    let _written = page.share();
    page[0] = 1;
}
