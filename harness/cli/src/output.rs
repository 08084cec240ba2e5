//! Standard output for data, standard error for people.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use results::show::block as shown_lines;
use results::write::Layout;

use crate::arguments::ListFormat;
use crate::exit::{Failure, Outcome};

/// Columns of diagnostics.
const WIDTH: usize = 100;

/// Standard output that falls silent when its reader is gone: whoever reads only the first lines wants no complaint.
/// A terminal gets nothing that it would act upon, but for colours where they are ours.
#[derive(Debug)]
pub struct Data {
    out: io::Stdout,
    closed: bool,
    terminal: bool,
    coloured: bool,
}

impl Data {
    /// Standard output without colours.
    pub fn new() -> Data {
        let out = io::stdout();
        Data { closed: false, terminal: out.is_terminal(), coloured: false, out }
    }

    /// Standard output for a writer that uses colours, and writes out what it was given by others.
    pub fn coloured() -> Data {
        Data { coloured: true, ..Data::new() }
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
        let written = if self.terminal && bytes.iter().any(|byte| is_suspicious(*byte)) {
            self.out.write_all(&harmless(bytes, self.coloured)).map(|()| bytes.len())
        } else {
            self.out.write(bytes)
        };
        match written {
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

/// Prints a value as JSON.
///
/// # Errors
/// When it cannot be printed.
pub fn print_json(value: &impl serde::Serialize) -> Result<Outcome, Failure> {
    let text = results::write::json::document(value).map_err(Failure::environment_error)?;
    print_text(&text)
}

/// Prints a text, and nothing is wrong then.
///
/// # Errors
/// When it cannot be printed.
pub fn print_text(text: &str) -> Result<Outcome, Failure> {
    Data::new().print(text).map(|()| Outcome::Success)
}

/// Prints a value as JSON, or as the text that `text` makes of it.
///
/// # Errors
/// When it cannot be printed.
pub fn print_as<T: serde::Serialize>(
    format: ListFormat,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<Outcome, Failure> {
    match format {
        ListFormat::Json => print_json(value),
        ListFormat::Text => print_text(&text(value)),
    }
}

/// Writes a file as a whole, made anew: where there is a link of that name, the link is replaced and what it points at stays as it
/// is. A pipe or a device is written to.
///
/// # Errors
/// When it is a folder, or cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let told = |error: &io::Error| format!("{}: {error}", path.display());
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(Failure::input_message(format!("{} is a folder: name the file to write", path.display())))
        }
        // Links of the system's own devices are what they point at.
        found
            if found.as_ref().is_ok_and(|found| !found.is_file() && !found.is_symlink())
                || path.starts_with("/dev")
                || path.starts_with("/proc") =>
        {
            std::fs::write(path, bytes).map_err(|error| Failure::environment_message(told(&error)))
        }
        _ => results::folder::replace(path, bytes).map_err(Failure::folder),
    }
}

/// Refuses a folder that holds something.
///
/// # Errors
/// When it does.
pub fn expect_empty(folder: &Path) -> Result<(), Failure> {
    let shown = folder.display();
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(Failure::input_message(format!("{shown} is not empty: choose another folder"))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::environment_message(format!("{shown}: {error}")))
        }
        _ => Ok(()),
    }
}

/// Makes a folder where there is none.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    let told = |error: io::Error| Failure::of_file(folder, error);
    std::fs::create_dir_all(folder).map_err(told)
}

/// Whether a byte may begin what a terminal acts upon.
fn is_suspicious(byte: u8) -> bool {
    (byte.is_ascii_control() && byte != b'\n' && byte != b'\t') || byte >= 0xc2
}

/// The bytes with what a terminal would act upon written out. Where `coloured`, colours stay.
fn harmless(bytes: &[u8], coloured: bool) -> Vec<u8> {
    let mut shown = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\u{1b}').filter(|_| coloured) {
            let (before, escape) = rest.split_at(at);
            shown.extend_from_slice(shown_lines(before).as_bytes());
            let end = colour_length(escape);
            let (colour, after) = escape.split_at(end.unwrap_or(1));
            match end {
                Some(_) => shown.extend_from_slice(colour.as_bytes()),
                None => shown.extend_from_slice(shown_lines(colour).as_bytes()),
            }
            rest = after;
        }
        shown.extend_from_slice(shown_lines(rest).as_bytes());
        // A character that goes on in the next piece.
        shown.extend_from_slice(chunk.invalid());
    }
    shown
}

/// The length of the colour that a text begins with: `ESC [ digits and semicolons m`.
fn colour_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inner.get(end..)?.starts_with('m').then_some(end + 3)
}

/// What to make of an error of standard output.
pub fn cannot_print(error: io::Error) -> Failure {
    Failure::environment_message(format!("standard output: {error}"))
}

/// Prints a message for people. There is nobody to tell when that fails.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", shown_lines(text));
}

/// Prints messages for people, unless they want none.
pub fn note(quiet: bool) -> impl Fn(&str) {
    move |text| {
        if !quiet {
            say(text);
        }
    }
}

/// Prints a diagnostic for people.
pub fn complain(report: &miette::Report) {
    let mut plain = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_context_lines(1);
    let rendered = handler.with_links(false).render_report(&mut plain, report.as_ref());
    print_coloured(if rendered.is_ok() { &plain } else { "" }, &format!("{report:?}"));
}

/// Prints why something is left out, and notes what that makes of the exit code.
pub fn reject(outcome: &mut Outcome, failure: &Failure) {
    complain(failure.report());
    outcome.note(Outcome::from(failure));
}

/// Prints what is wrong with a command line, or the help that it asks for.
pub fn complain_of_command_line(error: &clap::Error) {
    if error.use_stderr() {
        let rendered = error.render();
        let coloured = if colour(io::stderr().is_terminal()) {
            rendered.ansi().to_string()
        } else {
            rendered.to_string()
        };
        print_coloured(&rendered.to_string(), &coloured);
    } else {
        // Help and version are our own text.
        let _ = error.print();
    }
}

/// Prints a message in colours, unless its plain text holds something that a terminal would act upon: then that text,
/// made harmless.
fn print_coloured(plain: &str, coloured: &str) {
    let is_harmless = matches!(shown_lines(plain), Cow::Borrowed(_));
    if is_harmless && colour(io::stderr().is_terminal()) {
        let _ = writeln!(io::stderr(), "{}", coloured.trim_end());
    } else {
        say(if plain.is_empty() { coloured } else { plain }.trim_end());
    }
}

/// Whether a stream may have colours.
fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How text on standard output is laid out: on a terminal in few lines, unless `whole`.
pub fn layout(whole: bool) -> Layout {
    let terminal = io::stdout().is_terminal();
    Layout {
        width: terminal.then(terminal_width).flatten(),
        colour: colour(terminal),
        brief: terminal && !whole,
    }
}

/// Columns of the terminal behind standard output, whether or not it says how many rows it has.
#[cfg(unix)]
fn terminal_width() -> Option<u16> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Is not asked for on this system: tables are as wide as they are.
#[cfg(not(unix))]
fn terminal_width() -> Option<u16> {
    None
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
            .width(WIDTH)
            .context_lines(1)
            .build();
        Box::new(handler)
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_colours_and_nothing_else() {
        let cases: [(&[u8], bool, &[u8]); 7] = [
            (b"plain\n\ttext", false, b"plain\n\ttext"),
            (b"\x1b[31mred\x1b[0m", true, b"\x1b[31mred\x1b[0m"),
            (b"\x1b[31mred\x1b[0m", false, b"\\u{1b}[31mred\\u{1b}[0m"),
            (b"\x1b[2Jgone", true, b"\\u{1b}[2Jgone"),
            (b"\x1b]0;title\x07", true, b"\\u{1b}]0;title\\u{7}"),
            ("\u{9b}31m \u{202e}\u{e9}".as_bytes(), true, "\\u{9b}31m \\u{202e}\u{e9}".as_bytes()),
            (b"end\x1b", true, b"end\\u{1b}"),
        ];
        for (bytes, coloured, expected) in cases {
            assert_eq!(harmless(bytes, coloured), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
