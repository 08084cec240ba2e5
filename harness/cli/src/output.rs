//! Output: data to standard output, messages to standard error.
//!
//! On a terminal, control characters in data and messages are escaped.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;

use clap::error::ContextKind;
use results::escape::escape_block as shown_lines;
use results::write::TextLayout;
use textwrap::{WordSeparator, WordSplitter};

use crate::arguments::ListFormat;
use crate::exit::{Failure, Outcome};

/// Width of diagnostics in columns.
const DIAGNOSTIC_WIDTH: usize = 100;

/// Returns the command line of this process without its output format, as a shell reads it.
pub fn command_line() -> String {
    let mut line = "vk-litmus".to_owned();
    // Arguments need not be UTF-8.
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if word == "--format" {
            words.next();
        } else if !word.starts_with("--format=") {
            line += &format!(" {}", campaign::kinds::quote_for_shell(&word));
        }
    }
    line
}

/// Standard output that ignores a closed pipe, as after `| head`. On a terminal, control characters are
/// escaped; colours pass only if `coloured`.
#[derive(Debug)]
pub struct StandardOutput {
    out: io::Stdout,
    is_closed: bool,
    is_terminal: bool,
    is_coloured: bool,
}

impl StandardOutput {
    /// Creates standard output without colours.
    pub fn new() -> StandardOutput {
        let out = io::stdout();
        StandardOutput { is_closed: false, is_terminal: out.is_terminal(), is_coloured: false, out }
    }

    /// Creates standard output for a writer that uses colours and escapes untrusted text itself.
    pub fn coloured() -> StandardOutput {
        StandardOutput { is_coloured: true, ..StandardOutput::new() }
    }

    /// Prints a text.
    ///
    /// # Errors
    /// Returns any error of the stream except a closed pipe.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.write_all(text.as_bytes()).and_then(|()| self.flush()).map_err(output_failure)
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = if self.is_terminal && bytes.iter().any(|byte| is_suspicious(*byte)) {
            self.out.write_all(&escape_controls(bytes, self.is_coloured)).map(|()| bytes.len())
        } else {
            self.out.write(bytes)
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        match self.out.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            other => other,
        }
    }
}

/// Prints a value as JSON.
///
/// # Errors
/// Returns an error if it cannot be printed.
pub fn print_json(value: &impl serde::Serialize) -> Result<Outcome, Failure> {
    let text = results::write::json::format_document(value).map_err(Failure::environment_error)?;
    print_text(&text)
}

/// Refuses a results folder with the name of a file, such as `junit.xml`.
///
/// # Errors
/// Returns an error for such a name, unless a folder has it.
pub fn refuse_file_name(out: &Path) -> Result<(), Failure> {
    const FILES: [&str; 7] = ["xml", "json", "jsonl", "csv", "txt", "html", "sarif"];
    let extension = out.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if out.is_dir() || !FILES.contains(&extension) {
        return Ok(());
    }
    Err(Failure::input_message(format!(
        "`--out` names the results folder; for a file, redirect the output: `> {}`",
        out.display()
    )))
}

/// Prints a text and returns success.
///
/// # Errors
/// Returns an error if it cannot be printed.
pub fn print_text(text: &str) -> Result<Outcome, Failure> {
    StandardOutput::new().print(text).map(|()| Outcome::Success)
}

/// Prints a value as JSON, or as the text that `text` formats.
///
/// # Errors
/// Returns an error if it cannot be printed.
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

/// Writes a file atomically. A symbolic link is replaced, and its target stays unchanged; pipes and devices
/// are written in place.
///
/// # Errors
/// Returns an error if the path is a folder or cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let describe_error = |error: &io::Error| format!("{}: {error}", path.display());
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(Failure::input_message(format!("{} is a folder: name the file to write", path.display())))
        }
        // Links such as `/dev/stdout` must not be replaced.
        found
            if found.as_ref().is_ok_and(|found| !found.is_file() && !found.is_symlink())
                || path.starts_with("/dev")
                || path.starts_with("/proc") =>
        {
            std::fs::write(path, bytes).map_err(|error| Failure::environment_message(describe_error(&error)))
        }
        _ => results::folder::replace_file(path, bytes).map_err(Failure::folder_error),
    }
}

/// Checks that a folder is missing or empty.
///
/// # Errors
/// Returns an error if it has entries.
pub fn check_empty_folder(folder: &Path) -> Result<(), Failure> {
    let displayed_folder = folder.display();
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            Err(Failure::input_message(format!("{displayed_folder} is not empty: choose another folder")))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::environment_message(format!("{displayed_folder}: {error}")))
        }
        _ => Ok(()),
    }
}

/// Creates a folder if it is missing.
///
/// # Errors
/// Returns an error if it cannot be created.
pub fn create_folder(folder: &Path) -> Result<(), Failure> {
    let to_failure = |error: io::Error| Failure::file_error(folder, error);
    std::fs::create_dir_all(folder).map_err(to_failure)
}

/// Returns true if a byte may start a sequence that a terminal interprets.
fn is_suspicious(byte: u8) -> bool {
    (byte.is_ascii_control() && byte != b'\n' && byte != b'\t') || byte >= 0xc2
}

/// Escapes what a terminal interprets. If `coloured`, colour sequences pass.
fn escape_controls(bytes: &[u8], coloured: bool) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\u{1b}').filter(|_| coloured) {
            let (before, escape) = rest.split_at(at);
            escaped.extend_from_slice(shown_lines(before).as_bytes());
            let end = colour_length(escape);
            let (colour, after) = escape.split_at(end.unwrap_or(1));
            match end {
                Some(_) => escaped.extend_from_slice(colour.as_bytes()),
                None => escaped.extend_from_slice(shown_lines(colour).as_bytes()),
            }
            rest = after;
        }
        escaped.extend_from_slice(shown_lines(rest).as_bytes());
        // An incomplete character continues in the next call.
        escaped.extend_from_slice(chunk.invalid());
    }
    escaped
}

/// Returns the length of a colour sequence at the start of the text: `ESC [ digits and semicolons m`.
fn colour_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inner.get(end..)?.starts_with('m').then_some(end + 3)
}

/// Converts an error of standard output.
pub fn output_failure(error: io::Error) -> Failure {
    Failure::environment_message(format!("standard output: {error}"))
}

/// Prints a message to standard error. A failure is ignored: there is no stream left to report it.
pub fn print_message(text: &str) {
    let _ = writeln!(io::stderr(), "{}", shown_lines(text));
}

/// Returns a function that prints messages, or drops them if `quiet`.
pub fn message_printer(quiet: bool) -> impl Fn(&str) {
    move |text| {
        if !quiet {
            print_message(text);
        }
    }
}

/// Prints a diagnostic to standard error.
pub fn print_diagnostic(report: &miette::Report) {
    let mut plain = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let handler =
        miette::GraphicalReportHandler::new_themed(theme).with_width(DIAGNOSTIC_WIDTH).with_context_lines(1);
    let handler = handler
        .with_word_separator(WordSeparator::AsciiSpace)
        .with_word_splitter(WordSplitter::NoHyphenation);
    let rendered = handler.with_links(false).render_report(&mut plain, report.as_ref());
    print_coloured(if rendered.is_ok() { &plain } else { "" }, &format!("{report:?}"));
}

/// Prints the reason why an input is skipped, and updates the exit code.
pub fn report_rejected(outcome: &mut Outcome, failure: &Failure) {
    print_diagnostic(failure.report());
    outcome.escalate_to(Outcome::from(failure));
}

/// Prints a command-line error, or the requested help.
pub fn print_command_line_error(error: &clap::Error) {
    if let Some(text) = describe_number_error(error) {
        print_message(&text);
    } else if error.use_stderr() {
        let rendered = error.render();
        let coloured = if has_colours(io::stderr().is_terminal()) {
            rendered.ansi().to_string()
        } else {
            rendered.to_string()
        };
        print_coloured(&rendered.to_string(), &coloured);
    } else {
        // Help and version contain no untrusted text.
        let _ = error.print();
    }
}

/// Describes an argument that is not a number, and the expected numbers.
fn describe_number_error(error: &clap::Error) -> Option<String> {
    let source = std::error::Error::source(error)?.downcast_ref::<ParseIntError>()?;
    let expected = match source.kind() {
        IntErrorKind::Zero => "a number of at least 1",
        IntErrorKind::PosOverflow => "a smaller number",
        IntErrorKind::NegOverflow => "a positive number",
        _ => "a whole number",
    };
    let (value, argument) = (error.get(ContextKind::InvalidValue)?, error.get(ContextKind::InvalidArg)?);
    Some(format!(
        "error: `{value}` for `{argument}`; expected {expected}\n\nFor more information, try '--help'."
    ))
}

/// Prints a message in colours. If its plain text has control characters, that text is escaped and printed
/// instead.
fn print_coloured(plain: &str, coloured: &str) {
    let is_harmless = matches!(shown_lines(plain), Cow::Borrowed(_));
    if is_harmless && has_colours(io::stderr().is_terminal()) {
        let _ = writeln!(io::stderr(), "{}", coloured.trim_end());
    } else {
        print_message(if plain.is_empty() { coloured } else { plain }.trim_end());
    }
}

/// Returns true if the stream may have colours.
fn has_colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the layout of standard output; brief on a terminal, unless `is_complete`.
pub fn text_layout(is_complete: bool) -> TextLayout {
    let terminal = io::stdout().is_terminal();
    TextLayout {
        width: terminal.then(terminal_width).flatten(),
        has_colour: has_colours(terminal),
        is_brief: !is_complete,
    }
}

/// Returns the width of the terminal on standard output; its height may be unknown.
#[cfg(unix)]
fn terminal_width() -> Option<u16> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Not implemented on this system: tables have their natural width.
#[cfg(not(unix))]
fn terminal_width() -> Option<u16> {
    None
}

/// Configures diagnostics: the same layout everywhere, colours only on terminals.
pub fn set_up_diagnostics() {
    let terminal = io::stderr().is_terminal();
    let colour = has_colours(terminal);
    // Fails only if it was set before.
    let _ = miette::set_hook(Box::new(move |_| {
        let handler = miette::MietteHandlerOpts::new()
            .color(colour)
            .unicode(true)
            .terminal_links(false)
            .width(DIAGNOSTIC_WIDTH)
            .context_lines(1)
            // Names with hyphens are not broken, so that they can be copied.
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .build();
        Box::new(handler)
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colour_sequences_reach_a_terminal() {
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
            assert_eq!(escape_controls(bytes, coloured), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
