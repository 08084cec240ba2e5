//! Findings in a frame with the source lines of both accesses, as compilers show errors.

use std::collections::BTreeMap;

use campaign::files;
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity,
};
use results::escape::{escape_block, escape_line};
use results::wire::{FindingRecord, RaceLine, RaceVerdict};
use results::write::change::describe_placed_change;
use results::write::race::{
    format_finding, format_head, format_lints, format_needs, format_open_finding, open_findings,
};

/// Columns of a frame on an unknown terminal.
const DEFAULT_WIDTH: usize = 100;

/// Colours and width of frames.
#[derive(Clone, Copy, Debug)]
pub struct SnippetStyle {
    /// True for colours.
    pub has_colour: bool,
    /// The width in columns, if it is known.
    pub width: Option<u16>,
}

/// Formats an entry point: its verdict, then each finding as a frame, or as lines without a source.
pub fn format_with_snippets(line: &RaceLine, style: SnippetStyle) -> String {
    let width = style.width.map_or(DEFAULT_WIDTH, usize::from);
    let mut text = wrap_lines(&(format_head(line) + &format_lints(line)), width);
    let others = line.needs.iter().filter(|needed| needed.finding.is_none()).cloned();
    text += &wrap_lines(&format_needs(&others.collect::<Vec<_>>()), width);
    for open in open_findings(&line.needs) {
        let options: Vec<String> = open.describe_options().collect();
        let words = FrameWords {
            message: open.describe(),
            help: Some(options.join("\n")),
            severity: Severity::Warning,
        };
        text += &frame(open.finding, &line.file, &words, style)
            .unwrap_or_else(|| wrap_lines(&format_open_finding(&open), width));
    }
    let is_clean = line.verdict == RaceVerdict::Clean;
    for finding in &line.findings {
        let lead = if is_clean { "workaround" } else { "fix" };
        let fixes = finding.changes().iter().map(describe_placed_change).collect::<Vec<_>>().join("\nand ");
        let words = FrameWords {
            message: finding.message.clone(),
            help: (!fixes.is_empty()).then(|| format!("{lead}: {fixes}")),
            severity: if is_clean { Severity::Warning } else { Severity::Error },
        };
        text += &frame(finding, &line.file, &words, style)
            .unwrap_or_else(|| wrap_lines(&format_finding(line.verdict, finding), width));
    }
    let has_fix = line.findings.iter().any(|finding| !finding.changes().is_empty());
    if !line.findings.is_empty() {
        text += "  next: `explain` instead of `race` says why";
        text += if has_fix { "; `--fix FILE.diff` writes the change\n" } else { "\n" };
    }
    text
}

/// Breaks long lines between words, with a deeper indentation behind the break.
fn wrap_lines(text: &str, width: usize) -> String {
    let wrap = |line: &str| {
        let indentation = " ".repeat(line.len() - line.trim_start().len() + 2);
        let options = textwrap::Options::new(width)
            .subsequent_indent(&indentation)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false);
        textwrap::fill(line, options) + "\n"
    };
    escape_block(text).lines().map(wrap).collect()
}

/// The words of a frame.
struct FrameWords {
    message: String,
    help: Option<String>,
    severity: Severity,
}

/// Draws a finding, a frame for each file of its places; `None` if a source cannot be read.
fn frame(finding: &FindingRecord, input: &str, words: &FrameWords, style: SnippetStyle) -> Option<String> {
    let mut files: Vec<&str> = Vec::new();
    for place in &finding.at {
        let file = place.file.as_deref()?;
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let theme = if style.has_colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(style.width.map_or(DEFAULT_WIDTH, usize::from))
        .with_context_lines(1)
        .with_links(false)
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation);
    let last = files.len().checked_sub(1)?;
    let mut text = String::new();
    for (number, file) in files.into_iter().enumerate() {
        let source = files::read_named_source(file, input)?;
        let spans = labelled_spans(finding, file, &source)?;
        // The frame's own colours are control characters, so its parts are escaped one by one.
        let source =
            source.replace(|letter: char| letter.is_ascii_control() && !"\n\t".contains(letter), "?");
        let mut diagnostic = match number {
            0 => MietteDiagnostic::new(escape_line(&words.message)).with_code(&finding.kind),
            _ => MietteDiagnostic::new(format!("the other place of this {}", finding.kind)),
        };
        diagnostic.labels = Some(spans);
        diagnostic.severity = Some(if number == 0 { words.severity } else { Severity::Advice });
        diagnostic.help =
            words.help.as_ref().filter(|_| number == last).map(|help| escape_block(help).into());
        let report = Report::new(diagnostic).with_source_code(NamedSource::new(escape_line(file), source));
        handler.render_report(&mut text, report.as_ref()).ok()?;
    }
    Some(text)
}

/// Labels the lines of a file that a finding has places in; `None` if a line is unknown.
fn labelled_spans(finding: &FindingRecord, file: &str, source: &str) -> Option<Vec<LabeledSpan>> {
    let mut labels: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for place in finding.at.iter().filter(|place| place.file.as_deref() == Some(file)) {
        let access = place.access.as_deref().unwrap_or("here");
        let invocation = place.invocation.as_ref().map(|id| format!(" by {id}")).unwrap_or_default();
        labels.entry(place.line?).or_default().push(escape_line(&format!("{access}{invocation}")).into());
    }
    let spans = labels.into_iter().map(|(number, words)| {
        let (start, length) = statement_of(source, number)?;
        Some(LabeledSpan::new(Some(words.join("\n")), start, length))
    });
    spans.collect()
}

/// Returns the offset and length in bytes of a line's text, without indentation, comment and line end.
fn statement_of(source: &str, number: u32) -> Option<(usize, usize)> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    let before: usize = source.split_inclusive('\n').take(index).map(str::len).sum();
    let line = source.split_inclusive('\n').nth(index)?;
    let code = line.split("//").next().unwrap_or(line).trim_end();
    let start = code.len() - code.trim_start().len();
    Some((before + start, code.len() - start))
}

#[cfg(test)]
mod tests {
    use super::statement_of;

    #[test]
    fn statements_are_lines_without_indentation_and_comments() {
        let source = "a;\n  b = 1; // c\n\n";
        let texts =
            [1, 2, 3].map(|number| statement_of(source, number).map(|(at, length)| &source[at..at + length]));
        assert_eq!(texts, [Some("a;"), Some("b = 1;"), Some("")]);
        assert_eq!((statement_of(source, 0), statement_of(source, 9)), (None, None));
    }
}
