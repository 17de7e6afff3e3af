//! Promises about names: create, lock, rename, delete, list, stat, directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::subject::{CONTEXT, Subject, content, create, filled};
use crate::{DiskErrorKind, Durability, Entry, OpenMode};

const BLOCK: usize = 4096;

/// Recovery decides by this error that a log generation does not exist.
pub(super) fn a_missing_file_is_not_found(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("missing"));
    let other = subject.path("other");
    let nowhere = subject.folder.join("no folder").join("file");
    subject.run(async move {
        for mode in [OpenMode::Read, OpenMode::Write] {
            let error = files.open(&path, mode, CONTEXT).await.err();
            assert_eq!(error.map(|error| error.kind), Some(DiskErrorKind::NotFound));
        }
        let kinds =
            [files.delete(&path, CONTEXT).await, files.rename(&path, &other, CONTEXT).await]
                .map(|result| result.expect_err("there is no such file").kind);
        assert_eq!(kinds, [DiskErrorKind::NotFound; 2]);
        let error = files.open(&nowhere, OpenMode::Read, CONTEXT).await.err();
        assert_eq!(error.map(|error| error.kind), Some(DiskErrorKind::NotFound));
        assert!(!files.exists(&path, CONTEXT).await.expect("an answer"));
    });
}

/// Nothing is ever overwritten by creating.
pub(super) fn create_refuses_an_existing_name(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("existing"));
    subject.run(async move {
        let file = create(&files, path.clone(), BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        let error = files.open(&path, OpenMode::Create, CONTEXT).await.err();
        assert_eq!(error.map(|error| error.kind), Some(DiskErrorKind::AlreadyExists));
        assert!(files.exists(&path, CONTEXT).await.expect("an answer"));
    });
}

/// Two runs on one database would destroy it; also two runs in one process.
pub(super) fn a_second_writer_is_locked_out(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("locked"));
    subject.run(async move {
        let first = create(&files, path.clone(), BLOCK as u64).await;
        let error = files.open(&path, OpenMode::Write, CONTEXT).await.err();
        assert_eq!(
            error.map(|error| error.kind),
            Some(DiskErrorKind::Locked),
            "the creator holds it"
        );
        first.close(CONTEXT).await.expect("a close");
        let second = files.open(&path, OpenMode::Write, CONTEXT).await.expect("free after close");
        let error = files.open(&path, OpenMode::Write, CONTEXT).await.err();
        assert_eq!(
            error.map(|error| error.kind),
            Some(DiskErrorKind::Locked),
            "the writer holds it"
        );
        second.close(CONTEXT).await.expect("a close");
    });
}

/// Replication and verify read files that are being written.
pub(super) fn readers_share_with_a_writer(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("shared"));
    subject.run(async move {
        let writer = create(&files, path.clone(), 2 * BLOCK as u64).await;
        let reader =
            files.open(&path, OpenMode::Read, CONTEXT).await.expect("readers take no lock");
        let buffer = filled(&writer, 6, 0, BLOCK);
        writer.write(0, buffer, Durability::Volatile, CONTEXT).await.expect("a write");
        let read = reader.read(0, reader.allocate(BLOCK), CONTEXT).await.expect("a read");
        assert!(read[..] == content(6, 0, BLOCK)[..], "a reader sees completed writes");
        writer.close(CONTEXT).await.expect("a close");
        let writer = files.open(&path, OpenMode::Write, CONTEXT).await;
        assert!(writer.is_ok(), "a reader does not lock a writer out");
    });
}

/// A checkpoint is replaced by renaming the new one over it.
pub(super) fn rename_replaces_its_target(subject: &Subject) {
    let files = subject.files();
    let (from, to) = (subject.path("new"), subject.path("current"));
    subject.run(async move {
        for (seed, path) in [(7, &from), (8, &to)] {
            let file = create(&files, path.clone(), BLOCK as u64).await;
            let buffer = filled(&file, seed, 0, BLOCK);
            file.write(0, buffer, Durability::Durable, CONTEXT).await.expect("a write");
            file.close(CONTEXT).await.expect("a close");
        }
        files.rename(&from, &to, CONTEXT).await.expect("a rename");
        assert!(!files.exists(&from, CONTEXT).await.expect("an answer"));
        let file = files.open(&to, OpenMode::Read, CONTEXT).await.expect("the target exists");
        let read = file.read(0, file.allocate(BLOCK), CONTEXT).await.expect("a read");
        assert!(read[..] == content(7, 0, BLOCK)[..], "the target has the new content");
    });
}

/// The current log generation is renamed while it is open.
pub(super) fn an_open_file_survives_its_rename(subject: &Subject) {
    let files = subject.files();
    let (from, to) = (subject.path("current.log"), subject.path("0001.log"));
    subject.run(async move {
        let file = create(&files, from.clone(), 2 * BLOCK as u64).await;
        files.rename(&from, &to, CONTEXT).await.expect("a rename");
        let buffer = filled(&file, 9, 0, BLOCK);
        file.write(0, buffer, Durability::Durable, CONTEXT).await.expect("the handle still works");
        file.close(CONTEXT).await.expect("a close");
        let file = files.open(&to, OpenMode::Write, CONTEXT).await.expect("the new name");
        let read = file.read(0, file.allocate(BLOCK), CONTEXT).await.expect("a read");
        assert!(read[..] == content(9, 0, BLOCK)[..]);
    });
}

/// Log truncation deletes, and the name is free again.
pub(super) fn delete_removes_the_name(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("deleted"));
    subject.run(async move {
        let file = create(&files, path.clone(), BLOCK as u64).await;
        let buffer = filled(&file, 10, 0, BLOCK);
        file.write(0, buffer, Durability::Durable, CONTEXT).await.expect("a write");
        file.close(CONTEXT).await.expect("a close");
        files.delete(&path, CONTEXT).await.expect("a delete");
        assert!(!files.exists(&path, CONTEXT).await.expect("an answer"));
        let file = create(&files, path, BLOCK as u64).await;
        let read = file.read(0, file.allocate(BLOCK), CONTEXT).await.expect("a read");
        assert!(read.iter().all(|byte| *byte == 0), "the new file knows nothing of the old one");
    });
}

/// Recovery finds its log generations by listing.
pub(super) fn a_list_is_sorted_and_complete(subject: &Subject) {
    let (files, folder) = (subject.files(), subject.folder.clone());
    subject.run(async move {
        assert_eq!(files.list(&folder, CONTEXT).await.expect("an empty folder"), Vec::new());
        for (name, blocks) in [("c", 1), ("a", 3), ("b", 2)] {
            let file = create(&files, folder.join(name), blocks * BLOCK as u64).await;
            file.close(CONTEXT).await.expect("a close");
        }
        let expected: Vec<Entry> = [("a", 3), ("b", 2), ("c", 1)]
            .map(|(name, blocks)| Entry {
                name: name.to_owned(),
                length_bytes: blocks * BLOCK as u64,
                is_directory: false,
            })
            .into();
        assert_eq!(files.list(&folder, CONTEXT).await.expect("three files"), expected);
    });
}

/// Folders of other people have spaces and bytes that are no UTF-8 in their names.
pub(super) fn any_name_is_a_name(subject: &Subject) {
    let (files, folder) = (subject.files(), subject.folder.clone());
    subject.run(async move {
        for name in [b"with space".as_slice(), b"\xFFnot\xC3utf8", "größe".as_bytes()] {
            let path = folder.join(OsStr::from_bytes(name));
            let file = create(&files, path.clone(), BLOCK as u64).await;
            file.close(CONTEXT).await.expect("a close");
            assert!(files.exists(&path, CONTEXT).await.expect("an answer"));
        }
        assert_eq!(files.list(&folder, CONTEXT).await.expect("a listing").len(), 3);
    });
}

/// Without this no create, rename or delete is ever durable.
pub(super) fn directories_can_be_synced(subject: &Subject) {
    let (files, folder) = (subject.files(), subject.folder.clone());
    subject.run(async move {
        let file = create(&files, folder.join("file"), BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        files.sync_directory(&folder, CONTEXT).await.expect("a directory sync");
    });
}

/// A client of a share asks for a name before it opens it.
pub(super) fn a_stat_tells_what_a_name_stands_for(subject: &Subject) {
    let (files, folder) = (subject.files(), subject.folder.clone());
    subject.run(async move {
        let path = folder.join("three blocks");
        let error = files.stat(&path, CONTEXT).await.expect_err("there is no such file");
        assert_eq!(error.kind, DiskErrorKind::NotFound);
        let file = create(&files, path.clone(), 3 * BLOCK as u64).await;
        let expected = Entry {
            name: "three blocks".to_owned(),
            length_bytes: 3 * BLOCK as u64,
            is_directory: false,
        };
        assert_eq!(files.stat(&path, CONTEXT).await.expect("an open file"), expected);
        file.close(CONTEXT).await.expect("a close");
        let beyond = files.stat(&path.join("in a file"), CONTEXT).await;
        assert_eq!(beyond.expect_err("a file").kind, DiskErrorKind::NotFound);
        let itself = files.stat(&folder, CONTEXT).await.expect("a directory");
        assert!(itself.is_directory && itself.length_bytes == 0, "{itself:?}");
    });
}

/// Whoever makes a tree must know what was there, and may take away only what is empty.
pub(super) fn directories_are_made_and_removed(subject: &Subject) {
    let (files, folder) = (subject.files(), subject.folder.clone());
    subject.run(async move {
        let (path, inside) = (folder.join("made"), folder.join("made").join("within"));
        let kind = |result: Result<(), crate::DiskError>| result.expect_err("refused").kind;
        let early = files.make_directory(&inside, CONTEXT).await;
        assert_eq!(kind(early), DiskErrorKind::NotFound, "it has no parent");
        files.make_directory(&path, CONTEXT).await.expect("a new name");
        let again = files.make_directory(&path, CONTEXT).await;
        assert_eq!(kind(again), DiskErrorKind::AlreadyExists);
        files.make_directory(&inside, CONTEXT).await.expect("a parent that was made");
        assert!(files.stat(&inside, CONTEXT).await.expect("a directory").is_directory);
        assert!(files.remove_directory(&path, CONTEXT).await.is_err(), "it is not empty");
        files.remove_directory(&inside, CONTEXT).await.expect("an empty directory");
        files.remove_directory(&path, CONTEXT).await.expect("empty by now");
        let gone = files.remove_directory(&path, CONTEXT).await;
        assert_eq!(kind(gone), DiskErrorKind::NotFound);
        assert_eq!(files.list(&folder, CONTEXT).await.expect("the folder"), Vec::new());
        let file = create(&files, path.clone(), BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        let taken = files.make_directory(&path, CONTEXT).await;
        assert_eq!(kind(taken), DiskErrorKind::AlreadyExists, "a file has the name");
        assert!(files.remove_directory(&path, CONTEXT).await.is_err(), "a file is no directory");
        files.delete(&path, CONTEXT).await.expect("the file is still there");
    });
}

/// A listing tells of one directory, whatever is called alike beside it and lies below it.
pub(super) fn directories_are_full_of_their_own_names(subject: &Subject) {
    let (files, folder) = (subject.files(), subject.folder.clone());
    subject.run(async move {
        for name in ["a", "a b", "b"] {
            files.make_directory(&folder.join(name), CONTEXT).await.expect("a new name");
            for file in ["1", "2"] {
                let path = folder.join(name).join(file);
                let file = create(&files, path, BLOCK as u64).await;
                file.close(CONTEXT).await.expect("a close");
            }
        }
        let deep = folder.join("a").join("deep");
        files.make_directory(&deep, CONTEXT).await.expect("a new name");
        let file = create(&files, deep.join("3"), BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        files.rename(&folder.join("b").join("1"), &deep.join("4"), CONTEXT).await.expect("moved");
        for (path, expected) in [
            (folder.clone(), "a, a b, b"),
            (folder.join("a"), "1, 2, deep"),
            (folder.join("a b"), "1, 2"),
            (folder.join("b"), "2"),
            (deep, "3, 4"),
        ] {
            let entries = files.list(&path, CONTEXT).await.expect("a directory");
            let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names.join(", "), expected, "{}", path.display());
            for entry in entries {
                let stat = files.stat(&path.join(&entry.name), CONTEXT).await.expect("listed");
                assert_eq!(stat, entry, "a listing and a stat agree");
            }
        }
    });
}
