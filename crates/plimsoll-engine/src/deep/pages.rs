//! Reading pages for the check: several reads in flight, neighbouring pages in one read.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, DiskError, File, Files, Handle, OpenMode, Purpose};

// Circle: what is asked is declared above.
use super::DeepOptions;
use crate::page::PageView;
use crate::reader::{DatabaseReader, ReadError};
use crate::{PageClass, PageNumber, PageSize, classify, correct};

/// Units of work, each well below a microsecond, after which others get a turn.
const WORK_MAX: u32 = 64;

/// Where pages come from, and the pace at which they are worked through.
#[derive(Clone)]
pub(super) struct PageSource {
    file: File,
    handle: Handle,
    context: Context,
    size: PageSize,
    pages_per_read: usize,
    reads_outstanding: usize,
    correctable: Rc<Cell<u64>>,
    work: Rc<Cell<u32>>,
}

/// A page that was read, sound by its checksum or not.
pub(super) struct ReadPage {
    pub number: PageNumber,
    /// What its checksum says; a correctable page is already corrected.
    pub class: PageClass,
    bytes: Rc<Buffer>,
    start: usize,
    size: PageSize,
}

impl ReadPage {
    pub(super) fn view(&self) -> PageView<'_> {
        PageView::new(&self.bytes[self.start..self.start + self.size.bytes()], self.size)
    }
}

impl PageSource {
    pub(super) async fn open(
        files: &Files,
        handle: &Handle,
        path: &Path,
        reader: &DatabaseReader,
        options: DeepOptions,
    ) -> Result<Self, ReadError> {
        let context = Context { purpose: Purpose::Checksum, ..options.context };
        let size = reader.page_size();
        Ok(Self {
            file: files.open(path, OpenMode::Read, context).await?,
            handle: handle.clone(),
            context,
            size,
            pages_per_read: (options.read_bytes / size.bytes()).max(1),
            reads_outstanding: options.reads_outstanding.max(1),
            correctable: Rc::default(),
            work: Rc::default(),
        })
    }

    pub(super) async fn close(&self) -> Result<(), DiskError> {
        self.file.close(self.context).await
    }

    pub(super) fn size(&self) -> PageSize {
        self.size
    }

    pub(super) fn correctable(&self) -> u64 {
        self.correctable.get()
    }

    /// Counts work done and lets others run when it has been enough.
    pub(super) async fn spend(&self, units: u32) {
        self.work.set(self.work.get() + units);
        if self.work.get() >= WORK_MAX {
            self.work.set(0);
            self.handle.yield_now().await;
        }
    }

    /// Pages in the order given, read ahead.
    pub(super) fn read(&self, pages: Vec<PageNumber>) -> PageStream {
        PageStream {
            source: self.clone(),
            waiting: pages.into(),
            in_flight: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }
}

type PendingRead = Pin<Box<dyn Future<Output = Result<Buffer, DiskError>>>>;

/// See [`PageSource::read`].
pub(super) struct PageStream {
    source: PageSource,
    waiting: VecDeque<PageNumber>,
    /// Reads of neighbouring pages: first page, how many, the answer.
    in_flight: VecDeque<(PageNumber, usize, PendingRead)>,
    ready: VecDeque<(PageNumber, Rc<Buffer>, usize)>,
}

impl PageStream {
    /// The next page, or `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<ReadPage>, ReadError> {
        while self.ready.is_empty() {
            self.fill();
            let Some((first, count, answer)) = self.in_flight.pop_front() else {
                return Ok(None);
            };
            let buffer = Rc::new(answer.await?);
            let page_bytes = self.source.size.bytes();
            self.ready
                .extend((0..count).map(|place| {
                    (first + place as PageNumber, buffer.clone(), place * page_bytes)
                }));
        }
        self.fill();
        let ready = self.ready.pop_front();
        let page = ready.map(|(number, bytes, start)| self.source.check(number, bytes, start));
        self.source.spend(16).await;
        Ok(page)
    }

    /// Starts as many reads as may be in flight.
    fn fill(&mut self) {
        while self.in_flight.len() < self.source.reads_outstanding {
            let Some(first) = self.waiting.pop_front() else {
                return;
            };
            let mut count = 1;
            while count < self.source.pages_per_read
                && self.waiting.front() == first.checked_add(count as PageNumber).as_ref()
            {
                self.waiting.pop_front();
                count += 1;
            }
            let source = &self.source;
            let buffer = source.file.allocate(count * source.size.bytes());
            let answer = source.file.read(source.size.offset_of(first), buffer, source.context);
            self.in_flight.push_back((first, count, Box::pin(answer)));
        }
    }
}

impl PageSource {
    fn check(&self, number: PageNumber, bytes: Rc<Buffer>, start: usize) -> ReadPage {
        let size = self.size;
        let class = classify(&bytes[start..start + size.bytes()], number);
        let (bytes, start) = if let PageClass::Correctable { .. } = class {
            self.correctable.set(self.correctable.get() + 1);
            let mut corrected = Buffer::copy_of(&bytes[start..start + size.bytes()]);
            correct(&mut corrected, number);
            (Rc::new(corrected), 0)
        } else {
            (bytes, start)
        };
        ReadPage { number, class, bytes, start, size }
    }
}
