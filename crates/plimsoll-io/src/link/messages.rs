//! Messages over a byte stream: a length of four bytes, little endian, then that many bytes.

use std::cell::RefCell;

use super::{Link, LinkError};

/// A longer message is refused, so that a stranger cannot make us reserve memory.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

const PREFIX_BYTES: usize = 4;

/// A link that carries messages.
pub struct Messages {
    link: Box<dyn Link>,
    received: RefCell<Vec<u8>>,
}

impl Messages {
    /// Carries messages over `link`.
    pub fn new(link: Box<dyn Link>) -> Self {
        Self {
            link,
            received: RefCell::default(),
        }
    }

    /// The link below.
    pub fn link(&self) -> &dyn Link {
        &*self.link
    }

    /// Hands one message over for sending.
    ///
    /// # Panics
    /// When the message is longer than [`MESSAGE_BYTES_MAX`].
    pub async fn send(&self, message: &[u8]) -> Result<(), LinkError> {
        assert!(
            message.len() <= MESSAGE_BYTES_MAX,
            "no sender of ours makes such messages"
        );
        let mut bytes = Vec::with_capacity(PREFIX_BYTES + message.len());
        bytes.extend((message.len() as u32).to_le_bytes());
        bytes.extend(message);
        self.link.send(bytes).await
    }

    /// The next message; `None` when the peer has closed after the last one. One task at a time may wait here.
    pub async fn receive(&self) -> Result<Option<Vec<u8>>, LinkError> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            let more = self.link.receive().await?;
            if more.is_empty() {
                return if self.received.borrow().is_empty() {
                    Ok(None)
                } else {
                    Err(LinkError::CutShort(self.link.peer().to_owned()))
                };
            }
            self.received.borrow_mut().extend(more);
        }
    }

    fn take_message(&self) -> Result<Option<Vec<u8>>, LinkError> {
        let mut received = self.received.borrow_mut();
        let Some(prefix) = received.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(LinkError::Oversized {
                peer: self.link.peer().to_owned(),
                length_bytes: length as u64,
            });
        }
        let end = PREFIX_BYTES + length;
        if received.len() < end {
            return Ok(None);
        }
        let message = received[PREFIX_BYTES..end].to_vec();
        received.drain(..end);
        Ok(Some(message))
    }
}
