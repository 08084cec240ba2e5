//! JSON lines: one object per line, in the published record types.

use std::io::{self, Write};

use serde::Serialize;

use crate::escape;
use crate::wire::{CheckLine, RejectedLine, RunLine};
use crate::write::{CheckWriter, RunWriter};

/// Writer of JSON lines, flushed after each object.
pub struct JsonLinesWriter<W> {
    out: W,
}

impl<W: Write> JsonLinesWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W) -> JsonLinesWriter<W> {
        JsonLinesWriter { out }
    }

    /// Writes one object and its line end in a single call.
    ///
    /// # Errors
    /// Returns the error of the stream.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = escape_controls(&serde_json::to_string(value)?) + "\n";
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Formats a value as one indented document with a line end.
///
/// # Errors
/// Returns an error if it cannot be written as JSON.
pub fn format_document(value: &impl Serialize) -> io::Result<String> {
    Ok(escape_controls(&serde_json::to_string_pretty(value)?) + "\n")
}

/// Escapes characters that a terminal would interpret. They occur only inside strings, where an escape has
/// the same meaning.
fn escape_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && escape::needs_escape(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text += &format!("\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

impl<W: Write> CheckWriter for JsonLinesWriter<W> {
    fn write_prediction(&mut self, line: &CheckLine) -> io::Result<()> {
        self.write(line)
    }

    fn write_rejected(&mut self, line: &RejectedLine) -> io::Result<()> {
        self.write(line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> RunWriter for JsonLinesWriter<W> {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        self.write(line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
