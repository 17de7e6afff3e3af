//! Many connections at once, each with its own pace: one missed wake-up among them and the story
//! hangs.

use std::rc::Rc;

use super::subject::{Subject, beginning, listen};
use crate::{
    Handle, Listener, NANOS_PER_MILLISECOND, Random, Stream, StreamError, close, read, read_exact,
    write_all,
};

/// Each of the crowd says so many things.
const ROUNDS: u64 = 8;
/// Connecting at once without overrunning the queue of the listener.
const CONNECTING_MAX: usize = 64;

pub(super) fn hundreds_talk_at_once(subject: &Subject) {
    a_crowd_talks(subject, 300);
}

/// So many clients ask and are answered, with pauses by chance on both sides.
pub fn a_crowd_talks(subject: &Subject, count: u64) {
    let (client, server) = (subject.client.clone(), subject.server.clone());
    let (handle, address) = (subject.executor.handle(), subject.address.clone());
    subject.run(async move {
        let listener = listen(&*server, &address).await;
        handle.spawn(serve(handle.clone(), listener.clone(), count));
        let permits = Rc::new(crate::Permits::new(CONNECTING_MAX));
        let clients: Vec<_> = (0..count)
            .map(|number| {
                let (client, handle) = (client.clone(), handle.clone());
                let (address, permits) = (listener.address().to_owned(), permits.clone());
                handle.clone().spawn(async move {
                    let permit = permits.acquire().await;
                    let stream = client.connect(&address).await.expect("the server listens");
                    drop(permit);
                    ask(handle, stream, number).await
                })
            })
            .collect();
        for client in clients {
            client.await.expect("the server answers");
        }
    });
}

async fn serve(handle: Handle, listener: Rc<dyn Listener>, count: u64) {
    for number in 0..count {
        let stream = listener.accept().await.expect("somebody comes");
        handle.spawn(answer(handle.clone(), stream, number));
    }
}

/// Sends everything back, now and then late.
async fn answer(
    handle: Handle,
    mut stream: Box<dyn Stream>,
    number: u64,
) -> Result<(), StreamError> {
    let mut random = Random::from_seed(1_000_000 + number);
    let mut buffer = vec![0; 4096];
    loop {
        let count = read(&mut stream, &mut buffer).await?;
        if count == 0 {
            return close(&mut stream).await;
        }
        stall(&handle, &mut random).await;
        write_all(&mut stream, &buffer[..count]).await?;
    }
}

async fn ask(handle: Handle, mut stream: Box<dyn Stream>, number: u64) -> Result<(), StreamError> {
    let mut random = Random::from_seed(number);
    for round in 0..ROUNDS {
        let question = beginning(number << 8 | round, 1 + random.below(6000) as usize);
        write_all(&mut stream, &question).await?;
        stall(&handle, &mut random).await;
        let mut answer = vec![0; question.len()];
        read_exact(&mut stream, &mut answer).await?;
        assert!(answer == question, "client {number} got another answer");
    }
    close(&mut stream).await?;
    assert_eq!(read(&mut stream, &mut [0; 8]).await?, 0, "the server says goodbye");
    Ok(())
}

async fn stall(handle: &Handle, random: &mut Random) {
    if random.chance(0.3) {
        handle.sleep(random.below(20 * NANOS_PER_MILLISECOND)).await;
    }
}
