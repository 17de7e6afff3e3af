//! An allocator that counts: bytes allocated now, and the most there ever were.
//!
//! A test or a measuring program makes it its global allocator and so learns what the engine takes
//! in all, buffers known to the kernel included, because those come from the program's allocator
//! too (see `arena`). The product does not use it.
//!
//! Limits: it counts what was asked for, not what the system's allocator rounds it up to or keeps
//! for later.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counted.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    live_bytes: AtomicUsize,
    live_bytes_max: AtomicUsize,
}

impl CountingAllocator {
    /// Nothing counted yet.
    pub const fn new() -> Self {
        Self { live_bytes: AtomicUsize::new(0), live_bytes_max: AtomicUsize::new(0) }
    }

    /// Bytes allocated and not given back.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Relaxed)
    }

    /// The most that was allocated at once since the last [`CountingAllocator::forget_max`].
    pub fn live_bytes_max(&self) -> usize {
        self.live_bytes_max.load(Relaxed)
    }

    /// Begins anew with what is allocated now.
    pub fn forget_max(&self) {
        self.live_bytes_max.store(self.live_bytes(), Relaxed);
    }

    fn add(&self, bytes: usize) {
        let live_bytes = self.live_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.live_bytes_max.fetch_max(live_bytes, Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.live_bytes.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract;
// counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        let start = unsafe { System.alloc(layout) };
        if !start.is_null() {
            self.add(layout.size());
        }
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        let start = unsafe { System.alloc_zeroed(layout) };
        if !start.is_null() {
            self.add(layout.size());
        }
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(start, layout) };
        self.subtract(layout.size());
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, length_bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promised.
        let moved = unsafe { System.realloc(start, layout, length_bytes) };
        if !moved.is_null() {
            self.add(length_bytes);
            self.subtract(layout.size());
        }
        moved
    }
}
