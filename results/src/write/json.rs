//! JSON lines: an object a line, in the published record types.

use std::io::{self, Write};

use serde::Serialize;

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
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        self.out.write_all(&text)?;
        self.out.flush()
    }

    /// The stream.
    pub fn get_ref(&self) -> &W {
        &self.out
    }
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
