//! The machine under test: introduces its run, tells each acknowledgement, and hears how many the
//! witness has.

use plimsoll_io::{
    Handle, Nanos, Network, SharedStream, Stream, StreamError, close, within, write_all,
};

use super::{END, Lines, NoLines, READY, RECEIVED_BYTES_MAX};

/// Why there is no witness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It cannot be reached.
    #[error("{0}")]
    Unreachable(StreamError),
    /// It says nothing.
    #[error("{0} does not answer")]
    Silent(String),
    /// It says something else than a free witness does.
    #[error("{1}")]
    Answered(String, String),
}

/// The connection to a witness.
pub struct Teller {
    stream: SharedStream,
    handle: Handle,
    patience_ns: Nanos,
}

impl Teller {
    /// Connects and introduces the run by its first line. Both answers are waited for, each at most
    /// `patience_ns`.
    ///
    /// # Errors
    /// When the witness cannot be reached, is silent or no free witness.
    pub async fn introduce(
        network: &dyn Network,
        handle: &Handle,
        address: &str,
        greeting: &str,
        patience_ns: Nanos,
    ) -> Result<(Self, Answers), Refused> {
        let silent = || Refused::Silent(address.to_owned());
        let stream = match within(handle, patience_ns, network.connect(address)).await {
            None | Some(Err(StreamError::TimedOut(_))) => return Err(silent()),
            Some(connected) => SharedStream::new(connected.map_err(Refused::Unreachable)?),
        };
        let mut teller = Self { stream: stream.clone(), handle: handle.clone(), patience_ns };
        let said = teller.tell(greeting.as_bytes()).await;
        said.map_err(Refused::Unreachable)?;
        let mut lines = Lines::new();
        let mut reader = stream.clone();
        let answer = within(handle, patience_ns, lines.next(&mut reader, RECEIVED_BYTES_MAX)).await;
        let answered = |text: &str| Refused::Answered(address.to_owned(), text.to_owned());
        let answer = match answer.ok_or_else(silent)? {
            Ok(answer) => answer,
            Err(NoLines::Closed) => return Err(answered("")),
            Err(NoLines::Endless) => return Err(answered("a line without end")),
            Err(NoLines::Broken(error)) => return Err(Refused::Unreachable(error)),
        };
        let first = String::from_utf8_lossy(&answer[0]).trim().to_owned();
        if first != READY {
            return Err(answered(&first));
        }
        let answers = Answers { stream, lines, handle: handle.clone(), patience_ns };
        Ok((teller, answers))
    }

    /// Whether the witness is on this machine.
    pub fn is_local(&self) -> bool {
        self.stream.is_local()
    }

    /// Sends whole lines.
    ///
    /// # Errors
    /// When the witness is gone, or takes nothing for too long.
    pub async fn tell(&mut self, lines: &[u8]) -> Result<(), StreamError> {
        let peer = self.stream.peer().to_owned();
        let told = within(&self.handle, self.patience_ns, write_all(&mut self.stream, lines)).await;
        told.unwrap_or(Err(StreamError::TimedOut(peer)))
    }

    /// Leaves of one's own will. The witness may be gone already.
    pub async fn end(mut self) {
        if self.tell(format!("{END}\n").as_bytes()).await.is_ok() {
            let _ = close(&mut self.stream).await;
        }
    }
}

/// What the witness says.
pub struct Answers {
    stream: SharedStream,
    lines: Lines,
    handle: Handle,
    patience_ns: Nanos,
}

impl Answers {
    /// The highest count of those that have come; an error says why the witness is gone.
    ///
    /// # Errors
    /// When it is silent for too long, has closed, or says something else than counts.
    pub async fn next(&mut self) -> Result<u64, String> {
        let lines = self.lines.next(&mut self.stream, RECEIVED_BYTES_MAX);
        let lines = match within(&self.handle, self.patience_ns, lines).await {
            None => return Err("it does not answer".to_owned()),
            Some(Err(NoLines::Closed)) => return Err("it has closed the link".to_owned()),
            Some(Err(NoLines::Endless)) => return Err("it sends a line without end".to_owned()),
            Some(Err(NoLines::Broken(error))) => return Err(error.to_string()),
            Some(Ok(lines)) => lines,
        };
        let mut count = 0;
        for line in lines {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            let is_count = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let told = is_count.then(|| text.parse().ok()).flatten();
            count = told.ok_or_else(|| {
                format!("it said {:?}", text.chars().take(60).collect::<String>())
            })?;
        }
        Ok(count)
    }
}
