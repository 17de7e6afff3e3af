//! What a stream carries, and how it ends.

use std::cell::Cell;
use std::rc::Rc;

use super::subject::{
    BLOCK_BYTES, Expected, Pair, Subject, beginning, check_error, greet, read_content,
};
use crate::{
    MESSAGE_BYTES_MAX, Messages, NANOS_PER_MILLISECOND, Random, SharedStream, Stream, StreamError,
    close, read, write_all,
};

pub(super) fn bytes_arrive_in_order_both_ways_at_once(subject: &Subject) {
    const LENGTH: usize = 3 << 20;
    subject.run_pair(|Pair { handle, near, far }| async move {
        let mut readers = Vec::new();
        for (stream, sent, received) in [(near, 1, 2), (far, 2, 1)] {
            let (mut writer, mut reader) = {
                let shared = SharedStream::new(stream);
                (shared.clone(), shared)
            };
            handle.spawn(async move {
                let mut random = Random::from_seed(sent);
                let (bytes, mut from) = (beginning(sent, LENGTH), 0);
                while from < LENGTH {
                    let until = LENGTH.min(from + 1 + random.below(100_000) as usize);
                    write_all(&mut writer, &bytes[from..until]).await.unwrap();
                    from = until;
                }
                close(&mut writer).await.unwrap();
            });
            readers.push(handle.spawn(async move { read_content(&mut reader, received).await }));
        }
        for reader in readers {
            assert_eq!(reader.await, Ok(LENGTH));
        }
    });
}

pub(super) fn a_closed_stream_gives_its_rest_then_the_end(subject: &Subject) {
    subject.run_pair(|Pair { mut near, mut far, .. }| async move {
        let mut buffer = [0; 64];
        write_all(&mut near, &beginning(3, 5000)).await.unwrap();
        close(&mut near).await.unwrap();
        let refused = write_all(&mut near, b"more").await;
        assert!(matches!(refused, Err(StreamError::Closed(_))), "{refused:?}");
        assert_eq!(read_content(&mut far, 3).await, Ok(5000));
        for _ in 0..3 {
            assert_eq!(read(&mut far, &mut buffer).await, Ok(0), "the end stays the end");
        }
        write_all(&mut far, b"still heard").await.unwrap();
        let count = read(&mut near, &mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"still heard");
    });
}

pub(super) fn a_dropped_stream_gives_its_rest_then_the_end(subject: &Subject) {
    subject.run_pair(|Pair { mut near, mut far, .. }| async move {
        greet(&mut near, &mut far).await;
        write_all(&mut near, &beginning(4, 100_000)).await.unwrap();
        drop(near);
        assert_eq!(read_content(&mut far, 4).await, Ok(100_000));
    });
}

pub(super) fn writing_to_an_end_that_is_gone_resets(subject: &Subject) {
    subject.run_pair(|Pair { handle, mut near, far }| async move {
        drop(far);
        let peer = near.peer().to_owned();
        let broken = loop {
            if let Err(error) = write_all(&mut near, b"is anybody there?").await {
                break error;
            }
            handle.sleep(NANOS_PER_MILLISECOND).await;
        };
        assert_eq!(broken, StreamError::Reset(peer.clone()));
        for _ in 0..3 {
            let again = check_error(write_all(&mut near, b"again").await, &peer);
            assert_eq!(again, broken, "a broken stream stays broken");
        }
    });
}

pub(super) fn a_writer_waits_for_a_peer_that_does_not_read(subject: &Subject) {
    const LENGTH: usize = 48 << 20;
    subject.run_pair(|Pair { handle, mut near, mut far }| async move {
        let written = Rc::new(Cell::new(0));
        let (counted, bytes) = (written.clone(), beginning(5, LENGTH));
        let writer = handle.spawn(async move {
            for block in bytes.chunks(BLOCK_BYTES) {
                write_all(&mut near, block).await.unwrap();
                counted.set(counted.get() + block.len());
            }
            near
        });
        let mut before = usize::MAX;
        while written.get() != before {
            before = written.get();
            handle.sleep(300 * NANOS_PER_MILLISECOND).await;
        }
        assert!(before < LENGTH, "everything was taken although nobody read");
        let reader = handle.spawn(async move { read_content(&mut far, 5).await });
        drop(writer.await);
        assert_eq!(reader.await, Ok(LENGTH));
    });
}

pub(super) fn a_slow_peer_gets_everything(subject: &Subject) {
    const LENGTH: usize = 400_000;
    subject.run_pair(|Pair { handle, mut near, mut far }| async move {
        handle.spawn(async move {
            write_all(&mut near, &beginning(6, LENGTH)).await.unwrap();
        });
        let (mut expected, mut buffer) = (Expected::of(6), [0; 1000]);
        loop {
            match read(&mut far, &mut buffer).await.unwrap() {
                0 => break,
                count => expected.check(&buffer[..count]),
            }
            handle.sleep(NANOS_PER_MILLISECOND / 2).await;
        }
        assert_eq!(expected.seen, LENGTH);
    });
}

pub(super) fn a_very_long_write_arrives_whole(subject: &Subject) {
    const LENGTH: usize = (64 << 20) + 1;
    subject.run_pair(|Pair { handle, mut near, mut far }| async move {
        handle.spawn(async move {
            write_all(&mut near, &beginning(7, LENGTH)).await.unwrap();
        });
        assert_eq!(read_content(&mut far, 7).await, Ok(LENGTH));
    });
}

pub(super) fn messages_keep_their_borders(subject: &Subject) {
    const LENGTHS: [usize; 7] = [0, 1, 3, 70_000, 0, MESSAGE_BYTES_MAX, 5];
    subject.run_pair(|Pair { handle, near, far }| async move {
        let (near, far) = (Messages::new(near), Messages::new(far));
        handle.spawn(async move {
            for length in LENGTHS {
                near.send(&beginning(8, length)).await.unwrap();
            }
            near.close().await.unwrap();
            assert_eq!(near.receive().await, Ok(Some(b"thanks".to_vec())), "receiving goes on");
        });
        for length in LENGTHS {
            let message = far.receive().await.unwrap().expect("there is one more");
            assert!(message == beginning(8, length), "another message than was sent");
        }
        assert_eq!(far.receive().await, Ok(None));
        far.send(b"thanks").await.unwrap();
    });
}
