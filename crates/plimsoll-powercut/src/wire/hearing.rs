//! The witness: writes down what one connection says, and answers only for what lies on its disk.

use std::future::Future;
use std::pin::Pin;

use plimsoll_io::{
    Handle, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Stream, StreamError, within, write_all,
};

use super::{END, GREETING_BYTES_MAX, Lines, NoLines, READY, RECEIVED_BYTES_MAX, TICK};

/// The time is noted among the acknowledgements so often.
const NOTED_EVERY_NS: Nanos = NANOS_PER_SECOND;
/// What somebody else is told.
const STRANGER: &[u8] = b"no: this is a witness of Plimsoll\n";

/// The future of a step of a log; its error ends the connection and says why.
pub type LogFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + 'a>>;

/// Where a witness writes. What a step was asked to write is on stable storage when its future
/// completes.
pub trait WitnessLog {
    /// Notes that a run begins, as its first line describes it; false when that describes none.
    fn begin(&self, peer: &str, greeting: Vec<u8>) -> LogFuture<'_, bool>;

    /// Appends whole lines.
    fn append(&self, lines: Vec<u8>) -> LogFuture<'_, ()>;
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Acknowledgements that lie on the disk.
    pub lines: u64,
    /// "stopped" by its user, "closed", "silent", or what was wrong.
    pub why: String,
}

/// Hears one connection to its end. A machine without power says nothing: after `silence_ns` it is
/// waited for no longer.
pub async fn hear(
    stream: Box<dyn Stream>,
    handle: &Handle,
    log: &dyn WitnessLog,
    silence_ns: Nanos,
) -> Heard {
    let mut hearer =
        Hearer { stream, handle, log, silence_ns, lines: Lines::new(), count: 0, noted_at: None };
    let Err(why) = hearer.until_the_end().await;
    Heard { lines: hearer.count, why }
}

struct Hearer<'a> {
    stream: Box<dyn Stream>,
    handle: &'a Handle,
    log: &'a dyn WitnessLog,
    silence_ns: Nanos,
    lines: Lines,
    count: u64,
    noted_at: Option<Nanos>,
}

impl Hearer<'_> {
    /// Goes on until something ends it: the error says what.
    async fn until_the_end(&mut self) -> Result<std::convert::Infallible, String> {
        let mut said = self.next(GREETING_BYTES_MAX).await?;
        let greeting = said.remove(0);
        let peer = host_of(self.stream.peer()).to_owned();
        if greeting.len() > GREETING_BYTES_MAX || !self.log.begin(&peer, greeting).await? {
            self.answer(STRANGER).await?;
            return Err("it was no machine under test".to_owned());
        }
        self.answer(format!("{READY}\n").as_bytes()).await?;
        if said.is_empty() {
            said = self.next(RECEIVED_BYTES_MAX).await?;
        }
        loop {
            self.write_down(said).await?;
            said = self.next(RECEIVED_BYTES_MAX).await?;
        }
    }

    async fn next(&mut self, rest_max: usize) -> Result<Vec<Vec<u8>>, String> {
        let lines = self.lines.next(&mut self.stream, rest_max);
        match within(self.handle, self.silence_ns, lines).await {
            None => Err("silent".to_owned()),
            Some(Ok(lines)) => Ok(lines),
            Some(Err(NoLines::Closed)) => Err("closed".to_owned()),
            Some(Err(NoLines::Endless)) => Err("a line without end was sent".to_owned()),
            Some(Err(NoLines::Broken(error))) => Err(broken(&error)),
        }
    }

    async fn answer(&mut self, text: &[u8]) -> Result<(), String> {
        match within(self.handle, self.silence_ns, write_all(&mut self.stream, text)).await {
            None => Err("silent".to_owned()),
            Some(result) => result.map_err(|error| broken(&error)),
        }
    }

    /// Appends acknowledgements and says so.
    async fn write_down(&mut self, said: Vec<Vec<u8>>) -> Result<(), String> {
        let is_last = said.iter().any(|line| line == END.as_bytes());
        let kept: Vec<_> = said
            .into_iter()
            .filter(|line| line != END.as_bytes() && line != TICK.as_bytes())
            .collect();
        if !kept.iter().all(|line| is_acknowledgement(line)) {
            return Err("something else was said".to_owned());
        }
        if !kept.is_empty() {
            let mut text = self.time_note();
            for line in &kept {
                text.extend(line);
                text.push(b'\n');
            }
            self.log.append(text).await?;
            self.count += kept.len() as u64;
        }
        self.answer(format!("{}\n", self.count).as_bytes()).await?;
        if is_last { Err("stopped".to_owned()) } else { Ok(()) }
    }

    /// A line with the time, once a second.
    fn time_note(&mut self) -> Vec<u8> {
        let now = self.handle.now();
        if self.noted_at.is_some_and(|noted| now < noted + NOTED_EVERY_NS) {
            return Vec::new();
        }
        self.noted_at = Some(now);
        let utc_ms = self.handle.clock().anchor().utc_ns / NANOS_PER_MILLISECOND;
        format!("t {utc_ms}\n").into_bytes()
    }
}

fn broken(error: &StreamError) -> String {
    match error {
        StreamError::Reset(_) | StreamError::Closed(_) | StreamError::CutShort(_) => {
            "closed".to_owned()
        }
        other => format!("the log or the link failed: {other}"),
    }
}

/// The host of an address, without brackets.
pub(super) fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// `c` or `m` and four numbers: lane, sequence, number, acknowledgements at its beginning.
fn is_acknowledgement(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    let is_kind = matches!(words.next(), Some(b"c" | b"m"));
    is_kind
        && [5, 20, 20, 20].into_iter().all(|digits_max| {
            words.next().is_some_and(|word| {
                (1..=digits_max).contains(&word.len()) && word.iter().all(u8::is_ascii_digit)
            })
        })
        && words.next().is_none()
}
