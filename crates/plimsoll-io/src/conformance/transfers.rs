//! Promises about bytes: what is written comes back, all of it, from where it was put.

use super::subject::{CONTEXT, Subject, content, create, filled};
use crate::{Buffer, DiskErrorKind, Durability, OpenMode};

const BLOCK: usize = 4096;

/// The ground of everything: every size, both kinds of memory, also after closing and opening
/// again.
pub(super) fn written_bytes_come_back(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("data"));
    subject.run(async move {
        let sizes = [BLOCK, 8 * BLOCK, 64 * BLOCK, 256 * BLOCK, 1024 * BLOCK];
        let file = create(&files, path.clone(), sizes.iter().sum::<usize>() as u64).await;
        let mut offset = 0;
        for size in sizes {
            let lent = filled(&file, 1, offset, size);
            let returned = file
                .write(offset, lent, Durability::Volatile, CONTEXT)
                .await
                .expect("a write within the file");
            assert_eq!(returned.len(), size, "the memory comes back whole");
            offset += size as u64;
        }
        file.sync(CONTEXT).await.expect("a sync");
        file.close(CONTEXT).await.expect("a close");
        let file = files.open(path, OpenMode::Read, CONTEXT).await.expect("the file exists");
        let mut offset = 0;
        for size in sizes {
            for buffer in [file.allocate(size), Buffer::zeroed(size)] {
                let read =
                    file.read(offset, buffer, CONTEXT).await.expect("a read within the file");
                assert!(read[..] == content(1, offset, size)[..], "{size} bytes at {offset}");
            }
            offset += size as u64;
        }
    });
}

/// A durable write is also a write.
pub(super) fn durable_writes_come_back(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("log"));
    subject.run(async move {
        let file = create(&files, path, 16 * BLOCK as u64).await;
        for block in [3u64, 4, 15, 0, 3] {
            let offset = block * BLOCK as u64;
            let buffer = filled(&file, 2, offset, BLOCK);
            let buffer = file
                .write(offset, buffer, Durability::Durable, CONTEXT)
                .await
                .expect("a durable write");
            let read = file.read(offset, buffer, CONTEXT).await.expect("a read");
            assert!(read[..] == content(2, offset, BLOCK)[..]);
        }
    });
}

/// The engine never reads another user's old data.
pub(super) fn new_bytes_read_as_zero(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("new"));
    subject.run(async move {
        let file = create(&files, path, 32 * BLOCK as u64).await;
        let mut buffer = file.allocate(32 * BLOCK);
        buffer.fill(0xAA);
        let read = file.read(0, buffer, CONTEXT).await.expect("a read");
        assert!(read.iter().all(|byte| *byte == 0), "new bytes are zero");
    });
}

/// "At least this long": recovery extends again to lengths that were reached before.
pub(super) fn extend_never_shortens(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("grown"));
    subject.run(async move {
        let file = create(&files, path.clone(), 4 * BLOCK as u64).await;
        let buffer = filled(&file, 3, 0, 4 * BLOCK);
        file.write(0, buffer, Durability::Volatile, CONTEXT).await.expect("a write");
        for length in [BLOCK as u64, 4 * BLOCK as u64, 9 * BLOCK as u64] {
            file.extend(length, CONTEXT).await.expect("an extension");
        }
        let read = file.read(0, file.allocate(9 * BLOCK), CONTEXT).await.expect("nine blocks");
        assert!(read[..4 * BLOCK] == content(3, 0, 4 * BLOCK)[..], "old bytes stay");
        assert!(read[4 * BLOCK..].iter().all(|byte| *byte == 0), "new bytes are zero");
        let again = files.open(path, OpenMode::Read, CONTEXT).await.expect("the file exists");
        assert_eq!(again.opened().length_bytes, 9 * BLOCK as u64);
    });
}

/// A file that lost its end must not look like a file with a hole.
pub(super) fn reading_beyond_the_end_is_short(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("short"));
    subject.run(async move {
        let file = create(&files, path, 4 * BLOCK as u64).await;
        for (offset, size) in [(0, 8 * BLOCK), (3 * BLOCK, 2 * BLOCK), (100 * BLOCK, BLOCK)] {
            let error = file
                .read(offset as u64, file.allocate(size), CONTEXT)
                .await
                .expect_err("there are only four blocks");
            assert_eq!(error.kind, DiskErrorKind::Short, "{size} bytes at {offset}");
        }
    });
}

/// Alignment is told at open and then holds for everybody.
pub(super) fn misaligned_transfers_are_refused(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("aligned"));
    subject.run(async move {
        let file = create(&files, path, 4 * BLOCK as u64).await;
        let alignment = file.opened().alignment_bytes as usize;
        if alignment == 1 {
            return;
        }
        for (offset, size) in
            [(alignment / 2, BLOCK), (0, alignment / 2), (0, BLOCK + alignment / 2), (1, alignment)]
        {
            let write =
                file.write(offset as u64, file.allocate(size), Durability::Volatile, CONTEXT);
            let error = write.await.expect_err("not a multiple of the alignment");
            assert_eq!(error.kind, DiskErrorKind::Misaligned);
            let read = file.read(offset as u64, file.allocate(size), CONTEXT);
            let error = read.await.expect_err("not a multiple of the alignment");
            assert_eq!(error.kind, DiskErrorKind::Misaligned);
        }
    });
}

/// More transfers than any queue holds, all sizes of completion order: no answer goes to the wrong
/// asker.
pub(super) fn many_transfers_at_once_keep_apart(subject: &Subject) {
    const COUNT: u64 = 1500;
    let (files, path) = (subject.files(), subject.path("many"));
    subject.run(async move {
        let file = create(&files, path, COUNT * BLOCK as u64).await;
        let writes: Vec<_> = (0..COUNT)
            .map(|block| block * BLOCK as u64)
            .map(|offset| {
                let buffer = filled(&file, 4, offset, BLOCK);
                file.write(offset, buffer, Durability::Volatile, CONTEXT)
            })
            .collect();
        for write in writes {
            write.await.expect("a write");
        }
        let reads: Vec<_> = (0..COUNT)
            .rev()
            .map(|block| block * BLOCK as u64)
            .map(|offset| (offset, file.read(offset, file.allocate(BLOCK), CONTEXT)))
            .collect();
        for (offset, read) in reads {
            let read = read.await.expect("a read");
            assert!(read[..] == content(4, offset, BLOCK)[..], "the block at {offset}");
        }
    });
}

/// The length of a transfer is the buffer's length, not its capacity.
pub(super) fn a_shortened_buffer_transfers_its_length(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("shortened"));
    subject.run(async move {
        let file = create(&files, path, 8 * BLOCK as u64).await;
        let mut buffer = filled(&file, 5, 0, 8 * BLOCK);
        buffer.set_length(2 * BLOCK);
        file.write(0, buffer, Durability::Volatile, CONTEXT).await.expect("two blocks");
        let read = file.read(0, file.allocate(8 * BLOCK), CONTEXT).await.expect("eight blocks");
        assert!(read[..2 * BLOCK] == content(5, 0, 8 * BLOCK)[..2 * BLOCK]);
        assert!(read[2 * BLOCK..].iter().all(|byte| *byte == 0), "the rest was not written");
    });
}

/// A page is written from where it lies in the cache, and read there meanwhile; when the write is
/// done it can be changed again.
pub(super) fn shared_memory_is_written_and_stays_readable(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("shared"));
    subject.run(async move {
        let file = create(&files, path, 8 * BLOCK as u64).await;
        for (block, durability) in [(0, Durability::Volatile), (5, Durability::Durable)] {
            let offset = block * BLOCK as u64;
            let mut page = filled(&file, 6, offset, BLOCK);
            let writing = file.write(offset, page.share(), durability, CONTEXT);
            assert!(page.is_shared(), "the disk has it now");
            assert!(page[..] == content(6, offset, BLOCK)[..]);
            let returned = writing.await.expect("a write within the file");
            assert_eq!(returned.len(), BLOCK);
            drop(returned);
            page.fill(0);
            let read = file.read(offset, file.allocate(BLOCK), CONTEXT).await;
            let read = read.expect("a read within the file");
            assert!(read[..] == content(6, offset, BLOCK)[..], "block {block}");
        }
    });
}
