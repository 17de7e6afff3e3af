//! Futures that are dropped at any of their awaits, and peers that go away at the wrong moment.

use std::future::Future;
use std::task::Poll;

use super::subject::{
    Expected, Pair, Subject, beginning, both, check_error, greet, listen, read_content,
};
use crate::{
    Handle, Messages, NANOS_PER_MILLISECOND, Random, Stream, StreamError, close, flush, read,
    write, write_all,
};

/// Polls once and drops the future.
async fn once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Polls so many times, each time when it is woken or a while has passed, and then drops the
/// future.
async fn a_few_times<T>(handle: &Handle, polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        if let Some(value) = once(future.as_mut()).await {
            return Some(value);
        }
        handle.sleep(NANOS_PER_MILLISECOND / 20).await;
    }
    None
}

pub(super) fn dropped_reads_lose_nothing(subject: &Subject) {
    const LENGTH: usize = 200_000;
    subject.run_pair(|Pair { handle, mut near, mut far }| async move {
        let pause = handle.clone();
        handle.spawn(async move {
            let mut random = Random::from_seed(9);
            let (bytes, mut from) = (beginning(9, LENGTH), 0);
            while from < LENGTH {
                let until = LENGTH.min(from + 1 + random.below(3000) as usize);
                write_all(&mut near, &bytes[from..until]).await.unwrap();
                from = until;
                pause.sleep(random.below(NANOS_PER_MILLISECOND / 2)).await;
            }
        });
        let (mut expected, mut random, mut dropped) = (Expected::of(9), Random::from_seed(10), 0);
        let mut buffer = [0; 2000];
        loop {
            let polls = 1 + random.below(3);
            match a_few_times(&handle, polls, read(&mut far, &mut buffer)).await {
                None => dropped += 1,
                Some(Ok(0)) => break,
                Some(count) => expected.check(&buffer[..count.unwrap()]),
            }
        }
        assert_eq!(expected.seen, LENGTH);
        assert!(dropped > 20, "only {dropped} reads waited at all");
    });
}

pub(super) fn dropped_writes_send_nothing(subject: &Subject) {
    const LENGTH: usize = 24 << 20;
    subject.run_pair(|Pair { handle, mut near, mut far }| async move {
        let reader = handle.spawn({
            let handle = handle.clone();
            async move {
                // Lets the writer find everything full.
                handle.sleep(200 * NANOS_PER_MILLISECOND).await;
                read_content(&mut far, 11).await
            }
        });
        let (bytes, mut from, mut dropped) = (beginning(11, LENGTH), 0, 0);
        while from < LENGTH {
            let rest = &bytes[from..LENGTH.min(from + 300_000)];
            match a_few_times(&handle, 2, write(&mut near, rest)).await {
                None => dropped += 1,
                Some(count) => from += count.unwrap(),
            }
        }
        flush(&mut near).await.unwrap();
        close(&mut near).await.unwrap();
        assert_eq!(reader.await, Ok(LENGTH));
        assert!(dropped > 20, "only {dropped} writes waited at all");
    });
}

pub(super) fn dropped_messages_are_neither_lost_nor_halved(subject: &Subject) {
    const COUNT: usize = 40;
    let message = |number: usize| beginning(12 + number as u64, 1000 + number * 20_000);
    subject.run_pair(move |Pair { handle, near, far }| async move {
        let (near, far) = (Messages::new(near), Messages::new(far));
        let pause = handle.clone();
        handle.spawn(async move {
            for number in 0..COUNT {
                // Whether it was dropped or not, the message goes out, the latest with the next.
                a_few_times(&pause, 1, near.send(&message(number))).await;
                pause.sleep(NANOS_PER_MILLISECOND).await;
            }
            near.close().await.unwrap();
        });
        let mut random = Random::from_seed(13);
        for number in 0..COUNT {
            let received = loop {
                let polls = 1 + random.below(3);
                if let Some(received) = a_few_times(&handle, polls, far.receive()).await {
                    break received;
                }
            };
            assert!(received == Ok(Some(message(number))), "message {number} is another one");
        }
        assert_eq!(far.receive().await, Ok(None));
    });
}

pub(super) fn dropped_accepts_and_connects_do_no_harm(subject: &Subject) {
    let (client, server) = (subject.client.clone(), subject.server.clone());
    let (handle, address) = (subject.executor.handle(), subject.address.clone());
    subject.run(async move {
        let listener = listen(&*server, &address).await;
        for polls in 0..20 {
            // With TLS a client that gave up is an error of its own accept.
            drop(once(listener.accept()).await);
            drop(a_few_times(&handle, polls, client.connect(listener.address())).await);
        }
        // What the dropped ones left in the queue ends by itself, and whoever comes after them is
        // served.
        let answering = listener.clone();
        let server = handle.spawn(async move {
            loop {
                let Ok(mut far) = answering.accept().await else {
                    continue;
                };
                let mut buffer = [0; 4];
                if let Ok(4) = read(&mut far, &mut buffer).await {
                    write_all(&mut far, &buffer).await.unwrap();
                    return far;
                }
            }
        });
        let mut near = client.connect(listener.address()).await.expect("the server listens");
        write_all(&mut near, b"here").await.unwrap();
        let mut buffer = [0; 4];
        crate::read_exact(&mut near, &mut buffer).await.expect("the server answers");
        let mut far = server.await;
        greet(&mut near, &mut far).await;
    });
}

pub(super) fn a_peer_that_vanishes_in_a_message_is_told(subject: &Subject) {
    subject.run_pair(|Pair { mut near, far, .. }| async move {
        let far = Messages::new(far);
        write_all(&mut near, &[9, 0, 0, 0, 1, 2]).await.unwrap();
        drop(near);
        let peer = far.peer().to_owned();
        for _ in 0..2 {
            let cut = check_error(far.receive().await, &peer);
            assert_eq!(cut, StreamError::CutShort(peer.clone()));
        }
    });
    let (client, server) = (subject.client.clone(), subject.server.clone());
    let address = subject.address.clone();
    subject.run(async move {
        let listener = listen(&*server, &address).await;
        let (near, far) = both(client.connect(listener.address()), listener.accept()).await;
        let (mut near, far) = (near.unwrap(), Messages::new(far.unwrap()));
        write_all(&mut near, b"GET / HTTP").await.unwrap();
        let strange = check_error(far.receive().await, far.peer());
        assert!(matches!(strange, StreamError::Oversized { .. }), "{strange}");
        assert!(near.peer().contains(listener.address()), "{}", near.peer());
    });
}
