//! Renders explanations as a self-contained HTML page: pictures, text and source.

use std::collections::BTreeSet;
use std::fmt::Write;

use model::{EventId, ExplainedExecution, ExplanationAnswer};

use super::picture::build_pictures;
use super::svg::escape;
use super::{Explained, clauses, phrases, plain, svg, text};

pub(crate) const STYLE: &str = "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1500px; padding: 0 1em; \
    color: #222; background: #fff } h1 { font-size: 1.3em } h2 { font-size: 1.1em; margin-top: 2em } h1, h2 { overflow-wrap: anywhere } \
    pre { background: #f7f7f7; padding: .8em; overflow-x: auto; line-height: 1.4 } \
    summary { cursor: pointer; font-size: 1.1em; font-weight: bold; margin: 1.5em 0 .8em } .picture { overflow-x: auto } .added { color: #1a6e2e } .removed { color: #b3261e } .number { color: #999; user-select: none } mark { background: #ffe3cf; color: inherit } \
    @media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } pre { background: #242424 } \
    a { color: #8cb4ff } .added { color: #8fd39f } .removed { color: #ff9d94 } mark { background: #5a3214 } }";

/// Escapes a message; text in backticks becomes code.
pub(crate) fn escape_prose(message: &str) -> String {
    let mut page = String::new();
    let mut rest = message;
    while let Some((before, quoted, after)) = rest
        .split_once('`')
        .and_then(|(before, quoted)| quoted.split_once('`').map(|(quoted, after)| (before, quoted, after)))
    {
        page += &format!("{}<code>{}</code>", escape(before), escape(quoted));
        rest = after;
    }
    page + &escape(rest)
}

/// Formats a unified diff, with the changed lines in colour.
pub(crate) fn render_diff(text: &str) -> String {
    let line = |line: &str| {
        let class = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++") => "added",
            Some(b'-') if !line.starts_with("---") => "removed",
            _ => return escape(line),
        };
        format!("<span class=\"{class}\">{}</span>", escape(line))
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    format!("<pre tabindex=\"0\">{}</pre>\n", lines.join("\n"))
}

/// Renders the page; `machine_codes` has the machine code by device.
pub fn render(explained: Explained<'_>, machine_codes: &[(String, String)]) -> String {
    let Explained { test, source, file, explanation } = explained;
    let headline = phrases::headline(test, explanation);
    let mut sentences = plain::sentences(explained).into_iter();
    // The plain sentence is the title, if there is one; the formal answer comes below it.
    let (title, answer) = match sentences.next() {
        Some(sentence) => (escape(&sentence), format!("<p><code>{}</code></p>\n", escape(&headline))),
        None => (escape(&headline), String::new()),
    };
    let marked = marked_lines(explained);
    let mut listing = String::new();
    for (index, line) in source.lines().enumerate() {
        let number = index + 1;
        let text = escape(line);
        let text = if marked.contains(&number) { format!("<mark>{text}</mark>") } else { text };
        // Writing to a string cannot fail.
        let _ = writeln!(listing, "<span class=\"number\">{number:>4}  </span>{text}");
    }
    let machine_code: String = machine_codes
        .iter()
        .map(|(device, code)| {
            format!(
                "<h2>Machine code on {}</h2>\n<pre tabindex=\"0\">{}</pre>\n",
                escape(device),
                escape(code.trim_start())
            )
        })
        .collect();
    let others: String = sentences.map(|sentence| format!("<p>{}</p>\n", escape(&sentence))).collect();
    let rules: String = clauses::cited_sections(explanation).iter().map(render_section).collect();
    let rules = if rules.is_empty() { rules } else { fold("The rules in short", &rules) };
    let mut pictures = build_pictures(explained);
    // The page has these texts already: the sentences above the picture, the formulas in the steps.
    if let Some(first) = pictures.first_mut() {
        first.title.drain(..first.title.len().saturating_sub(1));
        first.rules.clear();
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta property=\"og:title\" content=\"{title}\">\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{answer}{others}<div class=\"picture\" tabindex=\"0\">\n{}</div>\n\
         <h2>{}</h2>\n<pre tabindex=\"0\">{listing}</pre>\n{}{rules}{machine_code}</main>\n</body>\n</html>\n",
        svg::render_document(&headline, pictures),
        escape(file),
        fold(
            "Step by step",
            &format!("<pre tabindex=\"0\">{}</pre>\n", escape(&text::render_steps(explained)))
        ),
    )
}

/// Renders a part of the page that opens on a click.
fn fold(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n{body}</details>\n")
}

fn render_section(section: &clauses::SpecificationSection) -> String {
    let name = escape(&section.name);
    let name = match &section.link {
        Some(link) => format!("<a href=\"{}\">{name}</a>", escape(link)),
        None => name,
    };
    let clauses: String = section
        .clauses
        .iter()
        .map(|(id, statement)| format!("<li><b>{}</b> {}</li>\n", escape(id), escape(statement)))
        .collect();
    format!("<p>{name}</p>\n<ul>\n{clauses}</ul>\n")
}

/// Returns the lines of the events that break an axiom, read uninitialised memory, or race.
fn marked_lines(explained: Explained<'_>) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    let mut mark = |execution: &ExplainedExecution, events: &[EventId]| {
        let found = events.iter().filter_map(|id| phrases::find_event(execution, *id));
        lines.extend(found.map(|event| event.span.line as usize));
    };
    if let ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } =
        &explained.explanation.answer
    {
        mark(execution, &broken.events);
    }
    if let Some(found) = &explained.explanation.found_uninitialised_read {
        mark(&found.execution, &[found.read]);
    }
    if let Some(found) = &explained.explanation.found_race
        && let Some((from, to)) = found.pair
    {
        mark(&found.execution, &[from, to]);
    }
    lines
}
