//! How connections come about, and every way in which they do not.

use super::subject::{Subject, both, check_error, greet, listen};
use crate::StreamError;

pub(super) fn connecting_where_nobody_listens_is_refused(subject: &Subject) {
    let (client, closed) = (subject.client.clone(), subject.closed.clone());
    subject.run(async move {
        for _ in 0..3 {
            let refused = check_error(client.connect(&closed).await, &closed);
            assert_eq!(refused, StreamError::Refused(closed.clone()));
        }
    });
}

pub(super) fn connecting_to_silence_times_out(subject: &Subject) {
    let (client, silent) = (subject.impatient.clone(), subject.silent.clone());
    subject.run(async move {
        let silence = check_error(client.connect(&silent).await, &silent);
        assert_eq!(silence, StreamError::TimedOut(silent));
    });
}

pub(super) fn a_name_without_a_meaning_is_said_so(subject: &Subject) {
    let (client, unknown) = (subject.client.clone(), subject.unknown.clone());
    subject.run(async move {
        let host = unknown.split(':').next().expect("there is a host").to_owned();
        let unknown = check_error(client.connect(&unknown).await, &host);
        assert!(matches!(unknown, StreamError::UnknownName { .. }), "{unknown}");
    });
}

pub(super) fn a_text_that_is_no_address_is_said_so(subject: &Subject) {
    let (client, server) = (subject.client.clone(), subject.server.clone());
    subject.run(async move {
        for wrong in ["nonsense", "", "host:many", ":1", "::1:1", "host:70000"] {
            let expected = StreamError::BadAddress(wrong.to_owned());
            assert_eq!(check_error(client.connect(wrong).await, wrong), expected);
            assert_eq!(check_error(server.listen(wrong).await, wrong), expected);
        }
    });
}

pub(super) fn an_address_is_listened_at_once(subject: &Subject) {
    let (client, server) = (subject.client.clone(), subject.server.clone());
    let address = subject.address.clone();
    subject.run(async move {
        let first = listen(&*server, &address).await;
        let second = listen(&*server, &address).await;
        assert_ne!(first.address(), second.address(), "port 0 is any that is free");
        let taken = check_error(server.listen(first.address()).await, first.address());
        assert_eq!(taken, StreamError::InUse(first.address().to_owned()));
        let free = first.address().to_owned();
        drop(first);
        let refused = check_error(client.connect(&free).await, &free);
        assert_eq!(refused, StreamError::Refused(free.clone()));
        listen(&*server, &free).await;
    });
}

pub(super) fn ending_to_listen_leaves_what_was_accepted(subject: &Subject) {
    let (client, server) = (subject.client.clone(), subject.server.clone());
    let address = subject.address.clone();
    subject.run(async move {
        let listener = listen(&*server, &address).await;
        let (near, far) = both(client.connect(listener.address()), listener.accept()).await;
        drop(listener);
        let (mut near, mut far) = (near.unwrap(), far.unwrap());
        greet(&mut near, &mut far).await;
        greet(&mut far, &mut near).await;
        assert!(!near.peer().is_empty() && !far.peer().is_empty());
    });
}
