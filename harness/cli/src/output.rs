//! Standard output for data, standard error for people.

use std::io::{self, IsTerminal, Write};

use results::write::Layout;

use crate::exit::Failure;

/// Standard output that falls silent when its reader is gone: whoever reads only the first lines wants no complaint.
#[derive(Debug)]
pub struct Data {
    out: io::Stdout,
    closed: bool,
}

impl Data {
    /// Standard output.
    pub fn new() -> Data {
        Data { out: io::stdout(), closed: false }
    }

    /// Prints a text.
    ///
    /// # Errors
    /// Any but that the reader is gone.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.write_all(text.as_bytes()).and_then(|()| self.flush()).map_err(cannot_print)
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        match self.out.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.out.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            other => other,
        }
    }
}

/// What to make of an error of standard output.
pub fn cannot_print(error: io::Error) -> Failure {
    Failure::environment_message(format!("standard output: {error}"))
}

/// Prints a message for people. There is nobody to tell when that fails.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a diagnostic for people.
pub fn complain(report: &miette::Report) {
    say(format!("{report:?}").trim_end());
}

/// Whether a stream may have colours.
fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How text on standard output is laid out.
pub fn layout() -> Layout {
    let terminal = io::stdout().is_terminal();
    Layout { width: terminal.then(terminal_width).flatten(), colour: colour(terminal) }
}

/// Columns of the terminal behind standard output.
fn terminal_width() -> Option<u16> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Says how diagnostics look: the same in every place but for colours.
pub fn set_up_diagnostics() {
    let terminal = io::stderr().is_terminal();
    let colour = colour(terminal);
    // Only fails when it was set before.
    let _ = miette::set_hook(Box::new(move |_| {
        let handler = miette::MietteHandlerOpts::new()
            .color(colour)
            .unicode(true)
            .terminal_links(false)
            .width(100)
            .context_lines(0)
            .build();
        Box::new(handler)
    }));
}
