//! Owned, aligned memory for direct I/O.
//!
//! A buffer is moved into an operation and comes back with its completion, so a cancelled caller
//! can never free memory that the kernel still writes to. Buffers may come from memory registered
//! with the kernel; dropping one gives it back.
//!
//! One memory may be shared by several buffers for reading, so that a page can be written from
//! where it lies. While it is, nobody can change it.
//!
//! What a disk in memory reads may be a [`Promise`]: the bytes are made when somebody first looks
//! at them, and until somebody changes them the maker can be asked what it knows of them. Nobody
//! can tell from the bytes when they were made.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// Every buffer starts at a multiple of this, enough for any block device in use.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// Memory that lends buffers, such as an arena registered with io_uring.
pub trait BufferHome {
    /// Takes back memory lent by this home.
    fn give_back(&self, start: NonNull<u8>, capacity_bytes: usize);
}

/// What the maker of some bytes knows of them without making them. What it means is between the
/// maker and the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vouch(pub u64);

/// Bytes that can be made at any time and are always the same.
pub trait Promise {
    /// Makes all bytes of a buffer.
    fn keep(&self, bytes: &mut [u8]);

    /// What the maker knows of the unit that begins at `position` in the buffer.
    fn vouch(&self, position: usize) -> Option<Vouch>;
}

/// An owned, aligned byte buffer.
pub struct Buffer {
    start: NonNull<u8>,
    length_bytes: usize,
    capacity_bytes: usize,
    home: Option<(Rc<dyn BufferHome>, u16)>,
    /// Held by every buffer over the same memory, once it was shared.
    sharers: Option<Rc<()>>,
    /// Where the bytes come from, until they are changed.
    promised: Option<Box<Promised>>,
}

struct Promised {
    promise: Box<dyn Promise>,
    is_kept: Cell<bool>,
}

impl Buffer {
    /// A zeroed buffer from the heap.
    pub fn zeroed(length_bytes: usize) -> Self {
        let capacity_bytes = length_bytes.max(1).next_multiple_of(BUFFER_ALIGNMENT);
        let layout = Self::layout(capacity_bytes);
        // SAFETY: the layout has a non-zero size.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        Self { start, length_bytes, capacity_bytes, home: None, sharers: None, promised: None }
    }

    /// A buffer holding a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// A buffer over memory lent by `home`.
    ///
    /// # Safety
    /// `start` must be aligned to [`BUFFER_ALIGNMENT`], point to `capacity_bytes` initialised bytes
    /// that nobody else uses until `give_back`, and `length_bytes` must not exceed
    /// `capacity_bytes`.
    pub unsafe fn lent(
        start: NonNull<u8>,
        length_bytes: usize,
        capacity_bytes: usize,
        home: Rc<dyn BufferHome>,
        registered_index: u16,
    ) -> Self {
        assert!(length_bytes <= capacity_bytes);
        Self {
            start,
            length_bytes,
            capacity_bytes,
            home: Some((home, registered_index)),
            sharers: None,
            promised: None,
        }
    }

    /// A second buffer over the same memory. Until one of the two is dropped neither can be
    /// changed.
    pub fn share(&mut self) -> Buffer {
        self.make();
        let sharers = self.sharers.get_or_insert_default().clone();
        Self {
            start: self.start,
            length_bytes: self.length_bytes,
            capacity_bytes: self.capacity_bytes,
            home: self.home.clone(),
            sharers: Some(sharers),
            promised: None,
        }
    }

    /// Gives the buffer content that is made when somebody first looks at it.
    ///
    /// # Panics
    /// When the memory is shared.
    pub fn promise(&mut self, promise: Box<dyn Promise>) {
        assert!(!self.is_shared(), "shared memory is not changed");
        self.promised = Some(Box::new(Promised { promise, is_kept: Cell::new(false) }));
    }

    /// What the maker of the content knows of the unit that begins at `position`, if it was made by
    /// one and not changed since.
    pub fn vouch(&self, position: usize) -> Option<Vouch> {
        self.promised.as_ref()?.promise.vouch(position)
    }

    /// Its length; asking for it is not looking at the bytes.
    pub fn len(&self) -> usize {
        self.length_bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length_bytes == 0
    }

    /// Makes what is still only promised.
    #[inline]
    fn make(&self) {
        if let Some(promised) = &self.promised {
            self.keep(promised);
        }
    }

    fn keep(&self, promised: &Promised) {
        if !promised.is_kept.get() {
            // SAFETY: as in `deref_mut`: no other buffer is over this memory, because `share` keeps
            // the promise first. No reference into the memory exists either, because every way to
            // one leads through here, and the promise cannot reach this buffer.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length_bytes) };
            promised.promise.keep(bytes);
            promised.is_kept.set(true);
        }
    }

    /// Whether another buffer over the same memory is left.
    pub fn is_shared(&self) -> bool {
        self.sharers.as_ref().is_some_and(|sharers| Rc::strong_count(sharers) > 1)
    }

    /// Where the bytes lie, for handing them to the kernel to be read.
    pub(crate) fn source(&self) -> *mut u8 {
        self.make();
        self.start.as_ptr()
    }

    fn layout(capacity_bytes: usize) -> Layout {
        Layout::from_size_align(capacity_bytes, BUFFER_ALIGNMENT)
            .expect("buffer sizes are far below isize::MAX")
    }

    /// The index under which the kernel knows this memory, if it is registered.
    pub fn registered_index(&self) -> Option<u16> {
        self.home.as_ref().map(|(_, index)| *index)
    }

    /// Changes the length within the capacity.
    ///
    /// # Panics
    /// When `length_bytes` exceeds the capacity.
    pub fn set_length(&mut self, length_bytes: usize) {
        assert!(length_bytes <= self.capacity_bytes, "a buffer does not grow");
        // What was promised was promised for the length there was.
        self.make();
        self.promised = None;
        self.length_bytes = length_bytes;
    }

    /// How long the buffer could be.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.make();
        // SAFETY: the memory is initialised, at least `length_bytes` long, and owned by this buffer
        // or by several that cannot be changed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length_bytes) }
    }
}

impl DerefMut for Buffer {
    /// # Panics
    /// When the memory is shared: whoever changes it asks [`Buffer::is_shared`] first.
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_shared(), "shared memory is not changed");
        self.make();
        self.promised = None;
        // SAFETY: as in `deref`, and `&mut self` makes the access unique: no other buffer is over
        // this memory.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length_bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.is_shared() {
            return;
        }
        match &self.home {
            Some((home, _)) => home.give_back(self.start, self.capacity_bytes),
            // SAFETY: without a home the memory came from `alloc_zeroed` with this very layout.
            None => unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity_bytes)) },
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Buffer({} bytes)", self.length_bytes)
    }
}
