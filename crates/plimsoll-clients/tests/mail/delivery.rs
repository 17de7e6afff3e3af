//! LMTP and SMTP servers that take some recipients and not others, break off, or say no.

use plimsoll_clients::mail::{
    Delivery, DeliveryProtocol, MailError, Recipient, Security, Submission,
};

use crate::rig::{Party, Peer, SERVER_PEM, TIMEOUT_NS, meet};

async fn submission(party: &Party, protocol: DeliveryProtocol) -> Result<Submission, MailError> {
    let endpoint = party.endpoint(Security::None, SERVER_PEM);
    Submission::connect(&*party.network, &endpoint, protocol, None, &party.handle, TIMEOUT_NS).await
}

async fn send(party: &Party, protocol: DeliveryProtocol) -> Result<Delivery, MailError> {
    let to = ["a@x", "b@x", "c@x"].map(str::to_owned);
    let mut submission = submission(party, protocol).await?;
    let sent = submission.send("me@x", &to, b"Subject: x\r\n\r\n.dot\r\n").await;
    submission.quit().await;
    sent
}

async fn greet(peer: &mut Peer, hello: &str, extensions: &str) {
    peer.say("220 here\r\n").await;
    let line = peer.line().await;
    assert!(line.starts_with(hello), "{line}");
    peer.say(&format!("250-here\r\n{extensions}250 8BITMIME\r\n")).await;
}

/// Takes the commands of one message whose recipients are answered like this.
async fn take(peer: &mut Peer, recipients: [&str; 3]) {
    assert_eq!(peer.line().await, "MAIL FROM:<me@x>");
    peer.say("250 ok\r\n").await;
    for (name, answer) in ["a", "b", "c"].iter().zip(recipients) {
        assert_eq!(peer.line().await, format!("RCPT TO:<{name}@x>"));
        peer.say(&format!("{answer}\r\n")).await;
    }
}

async fn take_content(peer: &mut Peer) {
    assert_eq!(peer.line().await, "DATA");
    peer.say("354 go on\r\n").await;
    let mut lines = Vec::new();
    loop {
        let line = peer.line().await;
        if line == "." {
            break;
        }
        lines.push(line);
    }
    assert_eq!(lines, ["Subject: x", "", "..dot"], "a dot at a line's begin is doubled");
}

use Recipient::{Accepted, Refused, Unknown};

/// One of three recipients is refused, one by name and one for the message itself: the others get
/// theirs and each is told apart.
#[test]
fn a_refused_recipient_does_not_cost_the_others() {
    let server = async |mut peer: Peer| {
        greet(&mut peer, "LHLO", "250-PIPELINING\r\n").await;
        take(&mut peer, ["250 ok", "550 no such user", "250 ok"]).await;
        take_content(&mut peer).await;
        peer.say("250 stored\r\n452 quota of c\r\n").await;
        assert_eq!(peer.line().await, "QUIT");
        peer.say("221 bye\r\n").await;
    };
    let (sent, _) = meet(server, async |party| send(&party, DeliveryProtocol::Lmtp).await);
    let sent = sent.expect("it was delivered");
    assert_eq!(sent.recipients, [Accepted, Refused(550), Refused(452)]);
    assert!(sent.lost.is_none());
    assert_eq!(sent.count(|end| matches!(end, Refused(_))), 2);
}

/// SMTP answers once for all recipients.
#[test]
fn smtp_answers_for_all_at_once() {
    let server = async |mut peer: Peer| {
        greet(&mut peer, "EHLO", "").await;
        take(&mut peer, ["250 ok", "250 ok", "451 later"]).await;
        take_content(&mut peer).await;
        peer.say("250 queued\r\n").await;
        peer.line().await;
        peer.say("221 bye\r\n").await;
    };
    let (sent, _) = meet(server, async |party| send(&party, DeliveryProtocol::Smtp).await);
    assert_eq!(sent.expect("it was delivered").recipients, [Accepted, Accepted, Refused(451)]);
}

/// The connection breaks after the message: whether it was delivered nobody knows, and that is what
/// is said.
#[test]
fn a_break_after_the_message_leaves_the_end_unknown() {
    let server = async |mut peer: Peer| {
        greet(&mut peer, "LHLO", "").await;
        take(&mut peer, ["250 ok", "550 no", "250 ok"]).await;
        take_content(&mut peer).await;
        peer.say("250 stored\r\n").await;
    };
    let (sent, _) = meet(server, async |party| send(&party, DeliveryProtocol::Lmtp).await);
    let sent = sent.expect("a part is known");
    assert_eq!(sent.recipients, [Accepted, Refused(550), Unknown]);
    assert!(matches!(sent.lost, Some(MailError::Closed { command: "DATA", .. })));
}

/// Before the message, a break means that nothing was delivered for certain.
#[test]
fn a_break_before_the_message_is_certain() {
    let server = async |mut peer: Peer| {
        greet(&mut peer, "LHLO", "").await;
        peer.line().await;
        peer.say("250 ok\r\n").await;
    };
    let (sent, _) = meet(server, async |party| send(&party, DeliveryProtocol::Lmtp).await);
    assert!(matches!(
        sent,
        Err(MailError::Closed { command: "RCPT", .. } | MailError::Stream { command: "RCPT", .. })
    ));
}

/// A server that takes no recipient, no sender or no message is left in a state in which the next
/// message can follow.
#[test]
fn a_refused_message_leaves_the_connection() {
    let server = async |mut peer: Peer| {
        greet(&mut peer, "LHLO", "").await;
        take(&mut peer, ["550 no", "550 no", "550 no"]).await;
        assert_eq!(peer.line().await, "RSET");
        peer.say("250 ok\r\n").await;
        assert_eq!(peer.line().await, "MAIL FROM:<me@x>");
        peer.say("452 queue volume full\r\n").await;
        assert_eq!(peer.line().await, "RSET");
        peer.say("250 ok\r\n").await;
        take(&mut peer, ["250 ok", "250 ok", "250 ok"]).await;
        assert_eq!(peer.line().await, "DATA");
        peer.say("431 disk full\r\n").await;
        assert_eq!(peer.line().await, "RSET");
        peer.say("250 ok\r\n").await;
    };
    meet(server, async |party| {
        let to = ["a@x", "b@x", "c@x"].map(str::to_owned);
        let mut submission = submission(&party, DeliveryProtocol::Lmtp).await.expect("it greets");
        for code in [550, 452, 431] {
            let sent = submission.send("me@x", &to, b"x\r\n").await.expect("an answer");
            assert_eq!(sent.recipients, [Refused(code); 3]);
            assert!(submission.is_open());
        }
        let error = submission.send("me@x>\r\nRSET", &to, b"x\r\n").await;
        assert!(matches!(error, Err(MailError::Unsendable { .. })));
    });
}

/// What is no mail server, hangs, or has no place left says so.
#[test]
fn wrong_servers_have_their_names() {
    let greeted = |said: &'static str| {
        let server = async move |mut peer: Peer| {
            peer.say(said).await;
            peer.line().await;
        };
        let (error, _) =
            meet(server, async |party| submission(&party, DeliveryProtocol::Smtp).await.err());
        error.expect("it is refused")
    };
    assert!(matches!(greeted("* OK IMAP4rev1 ready\r\n"), MailError::Garbled { .. }));
    let error = greeted("421 too many connections\r\n");
    assert!(error.to_string().contains("421 too many connections"), "{error}");
    let silent = async |peer: Peer| peer.handle.sleep(60_000_000_000).await;
    let (error, _) =
        meet(silent, async |party| submission(&party, DeliveryProtocol::Smtp).await.err());
    assert!(matches!(error, Some(MailError::TimedOut { seconds: 10, .. })));
}
