//! Messages on standard input and output, of limited size.
//!
//! `lsp_server` allocates as much memory as the header of a message announces, so it gets only messages that
//! are complete and within the limit.

use std::io::{self, BufRead, Read};
use std::thread::{Builder, JoinHandle};

use lsp_server::{Connection, Message};

/// The largest message in bytes: larger than any document that the server analyses.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;
/// The largest header in bytes.
const MAX_HEADER_BYTES: u64 = 8 << 10;

/// The threads of a connection. They end with its channels or with standard input.
pub(crate) struct StdioThreads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl StdioThreads {
    /// Starts the threads and returns the connection to them.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start() -> io::Result<(Connection, StdioThreads)> {
        let (server, Connection { sender, receiver }) = Connection::memory();
        let reader = Builder::new().spawn(move || {
            let mut input = io::stdin().lock();
            while let Some(message) = read_message(&mut input)? {
                let is_exit = matches!(&message, Message::Notification(own) if own.method == "exit");
                if sender.send(message).is_err() || is_exit {
                    break;
                }
            }
            Ok(())
        })?;
        let writer = Builder::new().spawn(move || {
            let mut output = io::stdout().lock();
            receiver.into_iter().try_for_each(|message| message.write(&mut output))
        })?;
        Ok((server, StdioThreads { reader, writer }))
    }

    /// Waits until the threads end.
    ///
    /// # Errors
    /// If standard input or output failed, or a message exceeds a limit.
    pub fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the connection panicked")))
        };
        ended(self.reader).and(ended(self.writer))
    }

    /// Returns the error that ended the input, if it has ended.
    pub fn input_error(self) -> io::Result<()> {
        if self.reader.is_finished() { self.reader.join().unwrap_or(Ok(())) } else { Ok(()) }
    }
}

/// Reads a message; `None` at the end of the input. What has the announced length and is not a message is skipped.
fn read_message(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    while let Some((text, is_complete)) = read_frame(input)? {
        match Message::read(&mut text.as_slice()) {
            Err(error) if is_complete && error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!("a message of the editor: {error}");
            }
            read => return read,
        }
    }
    Ok(None)
}

/// Reads a header with what it announces, and returns true if it has the announced length; `None` at the end of the input.
fn read_frame(input: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, bool)>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut text = Vec::new();
    let mut length = None;
    loop {
        let start = text.len();
        let room = MAX_HEADER_BYTES - (start as u64).min(MAX_HEADER_BYTES);
        if room == 0 {
            return Err(invalid(format!("a header of more than {MAX_HEADER_BYTES} bytes")));
        }
        if input.take(room).read_until(b'\n', &mut text)? == 0 {
            return Ok(None);
        }
        let line = text.get(start..).unwrap_or_default().trim_ascii();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = String::from_utf8_lossy(line).split_once(':')
            && name.trim().eq_ignore_ascii_case("Content-Length")
        {
            let bytes = value.trim().parse::<u64>();
            length = Some(bytes.map_err(|_| {
                invalid(format!(
                    "Content-Length `{}`; expected the bytes of the message, as a number",
                    value.trim()
                ))
            })?);
        }
    }
    // `Message::read` rejects a header without a valid length.
    let Some(length) = length else { return Ok(Some((text, false))) };
    if length > MAX_MESSAGE_BYTES {
        let limit = MAX_MESSAGE_BYTES >> 20;
        return Err(invalid(format!("a message of {length} bytes; expected at most {limit} MiB")));
    }
    let is_complete = input.take(length).read_to_end(&mut text)? as u64 == length;
    Ok(Some((text, is_complete)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_beyond_a_limit_are_errors() {
        let body = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let framed = |length: &str| format!("Content-Type: x\r\ncontent-length: {length}\r\n\r\n{body}");
        let read = |text: &str| read_message(&mut text.as_bytes());
        assert!(matches!(read(&framed(&body.len().to_string())), Ok(Some(Message::Notification(_)))));
        assert!(matches!(read(""), Ok(None)));
        let behind_text = format!("Content-Length: 5\r\n\r\nhello{}", framed(&body.len().to_string()));
        assert!(matches!(read(&behind_text), Ok(Some(Message::Notification(_)))));
        let headers = "a: b\r\n".repeat(2000);
        for wrong in [&framed("1099511627776"), &framed("67108865"), &framed("99"), &framed("-1"), &headers] {
            assert!(read(wrong).is_err(), "{}", wrong.get(..60).unwrap_or(wrong));
        }
    }
}
