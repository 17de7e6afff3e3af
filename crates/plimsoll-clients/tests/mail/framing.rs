//! Where responses end, however they are cut into pieces and whatever lengths are announced.

use plimsoll_clients::mail::{FrameError, Framer};
use plimsoll_io::Random;
use plimsoll_workload::mail::PartSum;

/// Complete responses with what was read of their contents.
fn frames(
    bytes: &[u8],
    pieces: impl Fn(usize) -> usize,
) -> Result<Vec<(String, usize)>, FrameError> {
    let mut framer = Framer::new(1 << 20);
    let (mut frames, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let end = (at + pieces(at).max(1)).min(bytes.len());
        let (count, is_whole) = framer.take(&bytes[at..end])?;
        at += count;
        if is_whole {
            let message = String::from_utf8_lossy(framer.message()).into_owned();
            frames.push((message, framer.take_literals().len()));
            framer.begin_next();
        }
    }
    Ok(frames)
}

const TALK: &str = "* OK hello {you}\r\n* 1 FETCH (UID 4 ENVELOPE (NIL {5}\r\na{3}\r NIL) FLAGS \
 (\\Seen))\r\n\
    * 2 FETCH (UID 5 BODY[1] {7}\r\n}\r\n* OK BODY[]<0> {3}\r\nx\r\n)\r\np1 OK done\r\n";

/// A response is the same however the network cuts it.
#[test]
fn responses_do_not_depend_on_pieces() {
    let whole = frames(TALK.as_bytes(), |_| usize::MAX >> 1).expect("it can be read");
    assert_eq!(whole.len(), 4);
    assert_eq!(
        whole[1].0, "* 1 FETCH (UID 4 ENVELOPE (NIL {5}\r\na{3}\r NIL) FLAGS (\\Seen))\r\n",
        "short literals that are no content stay"
    );
    let two = "* 2 FETCH (UID 5 BODY[1] {0}\r\n BODY[]<0> {0}\r\n)\r\n".to_owned();
    assert_eq!(whole[2], (two, 2));
    for piece in 1..40 {
        assert_eq!(frames(TALK.as_bytes(), |_| piece).expect("it can be read"), whole);
    }
}

/// Contents are summed up, split behind their headers, and not kept: a quarter of a gigabyte passes
/// through a few kilobytes.
#[test]
fn contents_pass_through_and_are_not_kept() {
    let mut framer = Framer::new(1 << 30);
    let chunk = vec![b'x'; 1 << 20];
    let length = (256 << 20) + 9;
    let begin = format!("* 1 FETCH (BODY[] {{{length}}}\r\nA: b\r\n\r\nz");
    framer.take(begin.as_bytes()).expect("it can be read");
    for _ in 0..256 {
        assert_eq!(framer.take(&chunk), Ok((1 << 20, false)));
        assert!(framer.message().len() < 100);
    }
    assert_eq!(framer.take(b" UID 1)\r\n"), Ok((9, true)));
    let [literal] = &framer.take_literals()[..] else { panic!("one content") };
    assert_eq!(literal.whole.bytes, length);
    assert_eq!(literal.body.bytes, (256 << 20) + 1);
    assert_eq!(literal.head, b"A: b\r\n\r\n");
    let mut sum = PartSum::default();
    sum.add(b"z");
    (0..256).for_each(|_| sum.add(&chunk));
    assert_eq!(literal.body, sum.part());
}

/// Lengths beyond the limits are refused when they are announced; nothing is made room for.
#[test]
fn lengths_beyond_the_limits_are_refused() {
    let refused = |text: &str| Framer::new(1000).take(text.as_bytes()).expect_err("too long");
    let check = |text: &str, bytes, limit| {
        assert_eq!(refused(text), FrameError::TooLong { bytes, limit }, "{text}");
    };
    check("* 1 FETCH (BODY[] {1073741824}\r\n", 1 << 30, 1000);
    check("* 1 FETCH (ENVELOPE ({70000}\r\n", 70_000, 64 << 10);
    assert_eq!(refused("* 1 FETCH (BODY[] {99999999999999999999999}\r\n"), FrameError::Garbled);
    assert_eq!(refused("* OK\n"), FrameError::Garbled);
    let mut framer = Framer::new(1000);
    let endless = vec![b'x'; 1 << 20];
    let error = (0..20).find_map(|_| framer.take(&endless).err());
    assert!(matches!(error, Some(FrameError::TooLong { .. })), "{error:?}");
}

/// Damaged talk never makes it panic, read beyond what is there, or stand still.
#[test]
fn damaged_talk_is_survived() {
    for seed in 0..3000 {
        let mut random = Random::from_seed(seed);
        let mut bytes = TALK.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = b"{}[]<>0129 \r\n\0\xFF"[random.below(15) as usize];
        }
        let _ = frames(&bytes, |at| 1 + (at + seed as usize) % 13);
    }
}
