//! JSON lines: an object a line, in the published record types.

use std::io::{self, Write};

use serde::Serialize;

use crate::show;
use crate::wire::{CheckLine, RejectedLine, RunLine};
use crate::write::{CheckWriter, RunWriter};

/// Writes an object a line and flushes each.
pub struct Lines<W> {
    out: W,
}

impl<W: Write> Lines<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Lines<W> {
        Lines { out }
    }

    /// Writes one object with its line end, in one piece.
    ///
    /// # Errors
    /// What the stream says.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = harmless(&serde_json::to_string(value)?) + "\n";
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// A value as one document, with its line end.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn document(value: &impl Serialize) -> io::Result<String> {
    Ok(harmless(&serde_json::to_string_pretty(value)?) + "\n")
}

/// The same JSON without characters that a terminal would act on. They stand in strings alone, where an escape means the
/// same.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && show::acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text += &format!("\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

impl<W: Write> CheckWriter for Lines<W> {
    fn answered(&mut self, line: &CheckLine) -> io::Result<()> {
        self.write(line)
    }

    fn rejected(&mut self, line: &RejectedLine) -> io::Result<()> {
        self.write(line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> RunWriter for Lines<W> {
    fn judged(&mut self, line: &RunLine) -> io::Result<()> {
        self.write(line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
