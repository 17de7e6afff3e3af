//! IMAP servers that stall, break off, refuse, say goodbye, lie about lengths and change under the
//! client.

use plimsoll_clients::mail::{MailError, Security};
use plimsoll_io::{NANOS_PER_SECOND, TlsServer};

use crate::rig::{Peer, SERVER_KEY, SERVER_PEM, STRANGER_PEM, TIMEOUT_NS, meet};

/// The whole of a plain session: what the client asks, what it makes of the answers, and how many
/// writes that takes.
#[test]
fn a_session_from_greeting_to_goodbye() {
    let server = async |mut peer: Peer| {
        peer.greet("LITERAL+ SASL-IR AUTH=PLAIN UIDPLUS MOVE IDLE CONDSTORE").await;
        // The letters are those of NUL u1 NUL secret.
        peer.answer(
            "AUTHENTICATE PLAIN AHUxAHNlY3JldA==",
            "{tag} OK [CAPABILITY IMAP4rev1 LITERAL+ UIDPLUS MOVE IDLE CONDSTORE] in\r\n",
        )
        .await;
        peer.answer(
            "LIST",
            "* LIST (\\HasNoChildren) \"/\" INBOX\r\n* LIST (\\Noselect) \"/\" \"a b\"\r\n{tag} \
             OK\r\n",
        )
        .await;
        peer.answer(
            "SELECT \"INBOX\" (CONDSTORE)",
            "* 3 EXISTS\r\n* OK [UIDVALIDITY 9] ok\r\n* OK [UIDNEXT 12] ok\r\n* OK [HIGHESTMODSEQ \
             40] ok\r\n{tag} OK done\r\n",
        )
        .await;
        peer.answer(
            "FETCH 1:3 (UID FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)",
            "* 1 FETCH (UID 4 FLAGS (\\Seen) INTERNALDATE \"01-Jan-2026 00:00:00 +0000\" \
             RFC822.SIZE 100 ENVELOPE (NIL {5}\r\nhello NIL NIL NIL NIL NIL NIL NIL NIL))\r\n* 2 \
             FETCH (UID 7 FLAGS ())\r\n{tag} OK\r\n",
        )
        .await;
        peer.answer(
            "UID FETCH 7 (UID BODY.PEEK[HEADER] BODY.PEEK[1])",
            "* 2 FETCH (UID 7 BODY[HEADER] {10}\r\nA: b\r\n\r\n\r\n BODY[1] {4}\r\nbody)\r\n{tag} \
             OK\r\n",
        )
        .await;
        peer.answer("UID STORE 4,7:8 +FLAGS (\\Seen)", "{tag} OK\r\n").await;
        let line = peer.answer("APPEND \"Sent\" (\\Seen) {12+}", "").await;
        assert_eq!(peer.bytes(14).await, b"Subject: x\r\n\r\n");
        let tag = line.split(' ').next().unwrap_or_default().to_owned();
        peer.say(&format!("{tag} OK [APPENDUID 1 77] done\r\n")).await;
        peer.answer("UID SEARCH UNSEEN", "* SEARCH 7 8\r\n{tag} OK\r\n").await;
        let idle = peer.answer("IDLE", "+ idling\r\n* 4 EXISTS\r\n").await;
        assert_eq!(peer.line().await, "DONE");
        let tag = idle.split(' ').next().unwrap_or_default().to_owned();
        peer.say(&format!("{tag} OK idled\r\n")).await;
        peer.answer("UID MOVE 7 \"a \\\"b\\\"\"", "* 2 EXPUNGE\r\n{tag} OK\r\n").await;
        peer.answer("LOGOUT", "* BYE bye\r\n{tag} OK\r\n").await;
    };
    let ((), _) = meet(server, async |party| {
        let mut imap = party.imap().await.expect("it greets");
        imap.login("u1", "secret").await.expect("it lets us in");
        assert!(imap.offers("IDLE") && !imap.offers("SASL-IR"));
        let folders = imap.list().await.expect("it lists");
        assert_eq!((folders[1].name.as_str(), folders[1].is_selectable), ("a b", false));
        let mailbox = imap.select("INBOX").await.expect("it opens");
        assert_eq!(
            (mailbox.exists, mailbox.uid_validity, mailbox.uid_next, mailbox.highest_modseq),
            (3, 9, 12, 40)
        );
        let page = imap.page(1..=3).await.expect("it shows");
        assert!(page.rows[0].is_seen() && !page.rows[1].is_seen());
        assert_eq!((page.rows[0].uid, page.rows[0].size_bytes), (Some(4), Some(100)));
        let shown = imap.show(7, "1").await.expect("it shows");
        let [head, text] = &shown.rows[0].contents[..] else { panic!("two contents") };
        assert_eq!((head.section.as_str(), &head.head[..]), ("HEADER", &b"A: b\r\n\r\n\r\n"[..8]));
        assert_eq!((text.section.as_str(), text.whole.bytes), ("1", 4));
        imap.store(&[4, 7, 8], "\\Seen").await.expect("it marks");
        let uid = imap.append("Sent", "\\Seen", b"Subject: x\r\n").await;
        assert_eq!(uid, Ok(Some(77)));
        assert_eq!(imap.search("UNSEEN").await, Ok(vec![7, 8]));
        imap.begin_idle().await.expect("it idles");
        imap.end_idle().await.expect("it wakes");
        assert_eq!(imap.mailbox().map(|mailbox| mailbox.exists), Some(4));
        imap.r#move(&[7], "a \"b\"").await.expect("it moves");
        assert_eq!(imap.mailbox().map(|mailbox| mailbox.exists), Some(3));
        imap.logout().await.expect("it lets us go");
        assert!(!imap.is_open());
    });
}

/// A server that lacks extensions gets a literal only when it asks for it, and a move in three
/// steps.
#[test]
fn a_plain_server_is_spoken_to_plainly() {
    let server = async |mut peer: Peer| {
        peer.say("* OK ready\r\n").await;
        peer.answer("CAPABILITY", "* CAPABILITY IMAP4rev1\r\n{tag} OK\r\n").await;
        peer.answer("LOGIN \"u\" \"a\\\"b\"", "{tag} OK\r\n").await;
        peer.answer("CAPABILITY", "* CAPABILITY IMAP4rev1\r\n{tag} OK\r\n").await;
        peer.select().await;
        let line = peer.answer("APPEND \"INBOX\" () {3}", "+ go on\r\n").await;
        assert_eq!(peer.bytes(5).await, b"abc\r\n");
        let tag = line.split(' ').next().unwrap_or_default().to_owned();
        peer.say(&format!("{tag} OK\r\n")).await;
        peer.answer("UID COPY 3 \"x\"", "{tag} OK\r\n").await;
        peer.answer("UID STORE 3 +FLAGS (\\Deleted)", "{tag} OK\r\n").await;
        peer.answer("EXPUNGE", "* 3 EXPUNGE\r\n{tag} OK\r\n").await;
    };
    meet(server, async |party| {
        let mut imap = party.imap().await.expect("it greets");
        imap.login("u", "a\"b").await.expect("it lets us in");
        imap.select("INBOX").await.expect("it opens");
        assert_eq!(imap.append("INBOX", "", b"abc").await, Ok(None));
        imap.r#move(&[3], "x").await.expect("it moves");
        assert!(matches!(imap.begin_idle().await, Err(MailError::NotOffered { .. })));
    });
}

/// A server that hangs costs one command timeout and the connection, not the run.
#[test]
fn a_stalled_server_is_given_up_in_time() {
    let server = async |mut peer: Peer| {
        peer.greet("").await;
        peer.select().await;
        peer.line().await;
        peer.handle.sleep(100 * NANOS_PER_SECOND).await;
    };
    let ((), ended) = meet(server, async |party| {
        let mut imap = party.opened().await;
        let error = imap.noop().await.expect_err("it hangs");
        assert!(
            matches!(error, MailError::TimedOut { command: "NOOP", seconds: 10, .. }),
            "{error}"
        );
        assert!(error.is_lost());
        assert!(matches!(imap.noop().await, Err(MailError::Closed { .. })));
    });
    assert!((TIMEOUT_NS..TIMEOUT_NS + NANOS_PER_SECOND).contains(&ended));
}

/// A stall shorter than the timeout is waited for, to the nanosecond of the virtual clock.
#[test]
fn a_slow_server_is_waited_for() {
    let server = async |mut peer: Peer| {
        peer.handle.sleep(6 * NANOS_PER_SECOND).await;
        peer.greet("").await;
        let line = peer.line().await;
        peer.handle.sleep(5 * NANOS_PER_SECOND).await;
        let tag = line.split(' ').next().unwrap_or_default().to_owned();
        peer.say(&format!("{tag} OK\r\n")).await;
    };
    let ((), ended) = meet(server, async |party| {
        party.imap().await.expect("it greets").noop().await.expect("it answers");
    });
    assert!((11 * NANOS_PER_SECOND..11 * NANOS_PER_SECOND + 2_000_000).contains(&ended));
    let late = async |peer: Peer| peer.handle.sleep(60 * NANOS_PER_SECOND).await;
    let (error, _) = meet(late, async |party| party.imap().await.err());
    assert!(matches!(error, Some(MailError::TimedOut { command: "greeting", .. })));
}

/// A command that meets this in the place of its answer ends as said.
fn check(said: &'static str, expected: fn(&MailError) -> bool, stays_open: bool) {
    let server = async move |mut peer: Peer| {
        peer.greet("").await;
        peer.select().await;
        peer.answer("UID FETCH", said).await;
    };
    let (text, _) = meet(server, async move |party| {
        let mut imap = party.opened().await;
        let error = imap.fetch(&[5], "").await.expect_err("it goes wrong");
        assert!(expected(&error), "{said:?} gave {error:?}");
        assert_eq!(imap.is_open(), stays_open, "{said:?}");
        error.to_string()
    });
    assert!(text.contains("server:143"), "it says which server: {text}");
}

/// Refusals keep the connection; everything else ends it, with a word for what it was.
#[test]
fn wrong_answers_have_their_names() {
    check(
        "{tag} NO not now\r\n",
        |error| matches!(error, MailError::No { text, .. } if text == "not now"),
        true,
    );
    check("{tag} BAD what?\r\n", |error| matches!(error, MailError::Bad { .. }), true);
    check(
        "* BYE shutting down\r\n",
        |error| matches!(error, MailError::Bye { text, .. } if text == "shutting down"),
        false,
    );
    check("", |error| matches!(error, MailError::Closed { .. }), false);
    // Broken off inside a literal.
    check(
        "* 1 FETCH (UID 5 BODY[] {1000}\r\nabc",
        |error| matches!(error, MailError::Closed { .. }),
        false,
    );
    check(
        "* 1 FETCH (UID 5 BODY[] {1073741824}\r\n",
        |error| matches!(error, MailError::TooLong { bytes: 1_073_741_824, limit: 1_048_576, .. }),
        false,
    );
    check(
        "HTTP/1.1 400 Bad Request\r\n",
        |error| matches!(error, MailError::Garbled { .. }),
        false,
    );
    check("p77 OK somebody else's\r\n", |error| matches!(error, MailError::Garbled { .. }), false);
    check("+ more?\r\n", |error| matches!(error, MailError::Garbled { .. }), false);
}

/// A literal that is shorter or longer than announced puts the talk out of step. That ends the
/// connection and is never taken for content.
#[test]
fn a_literal_of_the_wrong_length_is_noticed() {
    // Longer: the rest is read as responses, of which it is none.
    check(
        "* 1 FETCH (UID 5 BODY[] {4}\r\nabc\r\ndef\r\nghi)\r\n{tag} OK\r\n",
        |error| matches!(error, MailError::Garbled { .. }),
        false,
    );
    // Shorter: the answer is swallowed by the literal, and the server is silent or gone.
    check(
        "* 1 FETCH (UID 5 BODY[] {40}\r\nabc)\r\n{tag} OK\r\n",
        |error| matches!(error, MailError::Closed { .. }),
        false,
    );
}

/// Answers that the grammar does not know are counted, and the command goes on.
#[test]
fn a_dialect_is_counted_and_survived() {
    let server = async |mut peer: Peer| {
        peer.greet("").await;
        peer.answer(
            "NOOP",
            "* XWHATEVER (1 2 {3}\r\nabc)\r\n* 12 FROBNICATED\r\n{tag} OK [XCODE (a] odd\r\n",
        )
        .await;
    };
    meet(server, async |party| {
        let mut imap = party.imap().await.expect("it greets");
        imap.noop().await.expect("it answers");
        assert!(imap.unparsed() >= 2, "{}", imap.unparsed());
    });
}

/// Another client removes messages: numbers shift at once, and only UIDs go on to mean the same.
#[test]
fn unsolicited_expunges_shift_numbers() {
    let server = async |mut peer: Peer| {
        peer.greet("").await;
        peer.select().await;
        peer.answer("NOOP", "* 2 EXPUNGE\r\n* 2 EXPUNGE\r\n{tag} OK\r\n").await;
        peer.answer("NOOP", "* VANISHED 30:31\r\n* 9 EXISTS\r\n{tag} OK\r\n").await;
        peer.answer("SELECT", "* 9 EXISTS\r\n* OK [UIDVALIDITY 8] changed\r\n{tag} OK\r\n").await;
    };
    meet(server, async |party| {
        let mut imap = party.opened().await;
        imap.noop().await.expect("it answers");
        assert_eq!(
            imap.mailbox().map(|mailbox| (mailbox.exists, mailbox.expunged_count)),
            Some((3, 2))
        );
        let found = imap.noop().await.expect("it answers");
        assert_eq!(found.vanished, [30..=31]);
        assert_eq!(imap.mailbox().map(|mailbox| mailbox.exists), Some(9));
        let again = imap.select("INBOX").await.expect("it opens");
        assert_eq!((again.uid_validity, again.expunged_count), (8, 0), "the folder was made anew");
    });
}

/// A command that is dropped half-way leaves an answer on the wire that must not be taken for that
/// of the next.
#[test]
fn a_dropped_command_ends_the_connection() {
    let server = async |mut peer: Peer| {
        peer.greet("").await;
        peer.select().await;
        peer.line().await;
        peer.handle.sleep(5 * NANOS_PER_SECOND).await;
        peer.say("p2 OK late\r\n").await;
    };
    meet(server, async |party| {
        let mut imap = party.opened().await;
        let soon = plimsoll_io::within(&party.handle, NANOS_PER_SECOND, imap.noop()).await;
        assert!(soon.is_none());
        assert!(!imap.is_open());
        assert!(matches!(imap.noop().await, Err(MailError::Closed { .. })));
    });
}

/// TLS at once and after a greeting; a server that is not who it should be is refused, and so is
/// text smuggled in before TLS.
#[test]
fn tls_begins_when_it_should_and_refuses_strangers() {
    for (security, trusted) in [
        (Security::Tls, SERVER_PEM),
        (Security::StartTls, SERVER_PEM),
        (Security::Tls, STRANGER_PEM),
        (Security::StartTls, STRANGER_PEM),
    ] {
        let server = async move |peer: Peer| {
            let secure = TlsServer::new(SERVER_PEM, SERVER_KEY).expect("they belong together");
            let Peer { stream, handle, .. } = match security {
                Security::StartTls => {
                    let mut peer = peer;
                    peer.greet("STARTTLS").await;
                    peer.answer("STARTTLS", "{tag} OK begin\r\n").await;
                    peer
                }
                _ => peer,
            };
            let Ok(stream) = secure.handshake(stream).await else {
                return;
            };
            let mut peer = Peer::on(stream, handle);
            if security == Security::Tls {
                peer.greet("").await;
            } else {
                peer.answer("CAPABILITY", "* CAPABILITY IMAP4rev1 XSECURE\r\n{tag} OK\r\n").await;
            }
            peer.answer("NOOP", "{tag} OK\r\n").await;
        };
        let (result, _) = meet(server, async move |party| {
            let endpoint = party.endpoint(security, trusted);
            let mut imap = party.imap_at(&endpoint, 1000).await?;
            imap.noop().await.map(drop)
        });
        match trusted == SERVER_PEM {
            true => assert_eq!(result, Ok(())),
            false => assert!(
                result.expect_err("a stranger").to_string().contains("TLS with"),
                "{security:?}"
            ),
        }
    }
    let smuggler = async |mut peer: Peer| {
        peer.greet("STARTTLS").await;
        peer.answer(
            "STARTTLS",
            "{tag} OK begin\r\n* OK [CAPABILITY IMAP4rev1 XEVIL] in the clear\r\n",
        )
        .await;
    };
    let (error, _) = meet(smuggler, async |party| {
        let endpoint = party.endpoint(Security::StartTls, SERVER_PEM);
        party.imap_at(&endpoint, 1000).await.err()
    });
    assert!(matches!(error, Some(MailError::Garbled { command: "STARTTLS", .. })), "{error:?}");
}

/// Names and passwords cannot carry a second command.
#[test]
fn line_breaks_are_never_sent() {
    let server = async |mut peer: Peer| {
        peer.greet("").await;
        assert_eq!(peer.line().await, "", "nothing was sent");
    };
    meet(server, async |party| {
        let mut imap = party.imap().await.expect("it greets");
        let unsendable = |result: Result<(), MailError>| {
            assert!(matches!(result, Err(MailError::Unsendable { .. })), "{result:?}");
        };
        unsendable(imap.login("u\r\np9 DELETE x", "p").await);
        unsendable(imap.login("u", "p\0").await);
        unsendable(imap.select("a\r\nb").await.map(drop));
    });
}
