//! Problems of texts that parsers of this workspace read.

use std::path::Path;

use campaign::check::text_warnings;
use campaign::inputs::all_embedded;
use campaign::within::path_within;
use frontend::inputs::parse_case_file;
use litmus::{Span, Suite};
use miette::Diagnostic;
use model::Model;
use model::cat::{CatError, CatProblem, SourceId};
use results::expectation::{Expectations, Mistake};
use runner::Stress;

use crate::language::DocumentLanguage;
use crate::problem::{Correction, Severity, TextProblem, line_range, offset_at, word_range};
use crate::suggest::suggest;
use crate::words::{self, Topic};

/// The largest file that a model includes or a case file names.
const MAX_SIBLING_BYTES: u64 = 1 << 24;

/// Returns the problems of a text, in text order.
///
/// `path` names the document; files that the text refers to are read from its folder. Shaders have no parser
/// here and no problems.
pub fn diagnose(language: DocumentLanguage, path: &Path, text: &str) -> Vec<TextProblem> {
    let mut problems = match language {
        DocumentLanguage::Litmus => of_test(path, text),
        DocumentLanguage::Cat => of_model(path, text),
        DocumentLanguage::Expectations => of_expectations(path, text),
        DocumentLanguage::Suite => of_suite(path, text),
        DocumentLanguage::Stress => {
            let error = Stress::from_toml("", text).err();
            error.map(|error| of_toml(&error.to_string(), text, Topic::Stress)).into_iter().collect()
        }
        DocumentLanguage::Case => {
            let read = |name: &str| read_sibling(path, name);
            let error = parse_case_file(text, &read).err();
            error.map(|error| of_toml(&error.to_string(), text, Topic::Case)).into_iter().collect()
        }
        DocumentLanguage::Shader => Vec::new(),
    };
    problems.sort_by_key(|problem| problem.range.start);
    problems
}

/// Returns the name of a document for messages.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Reads a file in the folder of a document.
fn read_sibling(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = path_within(folder, name)?;
    let size = std::fs::metadata(&file).map_err(|error| error.to_string())?;
    if !size.is_file() || size.len() > MAX_SIBLING_BYTES {
        return Err(format!("not a file of at most {} MiB", MAX_SIBLING_BYTES >> 20));
    }
    std::fs::read(&file).map_err(|error| error.to_string())
}

fn bytes_of(span: Span) -> std::ops::Range<usize> {
    let start = span.offset as usize;
    start..start + span.length as usize
}

/// Converts an error with labels: the first one is its range.
fn labelled_problem(error: &dyn Diagnostic, text: &str) -> TextProblem {
    let mut labels = error.labels().into_iter().flatten().map(|label| {
        let range = label.offset().min(text.len())..(label.offset() + label.len()).min(text.len());
        (range, label.label().unwrap_or_default().to_owned())
    });
    let (range, expected) = labels.next().unwrap_or((0..0, String::new()));
    let code = error.code().map(|code| code.to_string()).unwrap_or_default();
    let mut message = error.to_string();
    if !expected.is_empty() {
        message = format!("{message}; {expected}");
    }
    if let Some(help) = error.help() {
        message = format!("{message}\n{help}");
    }
    TextProblem { related: labels.collect(), ..TextProblem::new(range, Severity::Error, &code, message) }
}

fn of_test(path: &Path, text: &str) -> Vec<TextProblem> {
    let test = match litmus::parse(text, &name_of(path)) {
        Ok(test) => test,
        Err(errors) => {
            let problem = |error: &litmus::ParseError| {
                suggest(labelled_problem(error, text), text, words::of(Topic::Litmus))
            };
            return errors.errors().iter().map(problem).collect();
        }
    };
    let mut problems = Vec::new();
    let models = || Model::names().iter().map(|(name, _)| *name);
    for claim in &test.metadata.expectations {
        // A claim about a model of the user is checked with `--model` only.
        if !models().any(|known| known == claim.model) {
            let at = text.get(bytes_of(claim.span)).and_then(|line| line.find(&claim.model)).unwrap_or(0);
            let start = claim.span.offset as usize + at;
            let message = format!("unknown shipped model `{}`", claim.model);
            let range = start..start + claim.model.len();
            let problem = TextProblem::new(range, Severity::Warning, "check::unknown-model", message);
            problems.push(suggest(problem, text, models()));
        }
    }
    let known = model::clauses::clauses();
    for id in &test.metadata.clauses {
        if known.iter().any(|clause| clause.id == id) {
            continue;
        }
        let header = text.find('{').unwrap_or(text.len());
        let at = text[..header].find(id.as_str()).unwrap_or(0);
        let message = format!("unknown clause `{id}`; `vk-litmus clauses` lists all");
        let problem =
            TextProblem::new(at..at + id.len(), Severity::Warning, "check::unknown-clause", message);
        problems.push(suggest(problem, text, known.iter().map(|clause| clause.id)));
    }
    for warning in text_warnings(&test, text) {
        let range = bytes_of(warning.span);
        let mut problem = TextProblem::new(range, Severity::Warning, warning.code, warning.message);
        problem.corrections.extend(warning_correction(warning.code, &problem, text));
        problems.push(problem);
    }
    problems
}

/// Returns the correction of a warning of `check`.
fn warning_correction(code: &str, problem: &TextProblem, text: &str) -> Option<Correction> {
    let word = text.get(problem.range.clone())?;
    match code {
        "check::undeclared" => {
            let name = text.get(word_range(text, problem.range.start, ""))?;
            let open = text.find('{')? + 1;
            let edits = vec![(open..open, format!(" {name} = 0;"))];
            Some(Correction { title: format!("Declare `{name} = 0`"), edits })
        }
        "check::ignored-class" => {
            let dot = text.get(..problem.range.start)?.ends_with('.');
            let start = problem.range.start - usize::from(dot);
            let edits = vec![(start..problem.range.end, String::new())];
            Some(Correction { title: format!("Remove `{word}`"), edits })
        }
        _ => None,
    }
}

fn of_model(path: &Path, text: &str) -> Vec<TextProblem> {
    let include = |name: &str| read_sibling(path, name).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let Err(errors) = Model::from_text(&stem, text, &include) else { return Vec::new() };
    errors.errors.iter().map(|error| of_cat(error, text)).collect()
}

fn of_cat(error: &CatError, text: &str) -> TextProblem {
    if error.span.source != SourceId(0) {
        let place = format!("{}:{}:{}", error.file_name(), error.span.line, error.span.column);
        let include = format!("\"{}\"", error.file_name());
        // An included file may include the one with the error.
        let at = text.find(&include).or_else(|| text.find("include")).unwrap_or(0);
        let line = 1 + text[..at].matches('\n').count();
        let code = error.code().map(|code| code.to_string()).unwrap_or_default();
        return TextProblem::new(line_range(text, line), Severity::Error, &code, format!("{place}: {error}"));
    }
    let problem = labelled_problem(error, text);
    match &error.problem {
        CatProblem::UnknownName { similar: Some(similar), .. } => problem.replaced_by(similar),
        CatProblem::UnknownOption { known, .. } => suggest_within(problem, text, known),
        CatProblem::UnknownOptionValue { allowed, .. } => suggest_within(problem, text, allowed),
        CatProblem::Unexpected { .. } => suggest(problem, text, words::of(Topic::Cat)),
        _ => problem,
    }
}

/// Suggests a key or a value of the range `KEY=VALUE`.
fn suggest_within(problem: TextProblem, text: &str, known: &[&'static str]) -> TextProblem {
    let written = text.get(problem.range.clone()).unwrap_or_default();
    let Some(equals) = written.find('=') else { return suggest(problem, text, known.iter().copied()) };
    let start = problem.range.start;
    let parts = [start..start + equals, start + equals + 1..problem.range.end];
    for part in parts {
        let narrow = TextProblem { range: part, ..problem.clone() };
        let suggested = suggest(narrow, text, known.iter().copied());
        if !suggested.corrections.is_empty() {
            return TextProblem { range: problem.range, ..suggested };
        }
    }
    problem
}

fn of_expectations(path: &Path, text: &str) -> Vec<TextProblem> {
    let name = name_of(path);
    let file = match Expectations::parse(&name, &name, text.as_bytes()) {
        Ok(Some(file)) => file,
        Ok(None) => return Vec::new(),
        Err(errors) => {
            let problem = |error: &results::expectation::ExpectationError| {
                let (line, column) = (error.line as usize, error.column as usize);
                let start = offset_at(text, line, column);
                let range = start..line_range(text, line).end.max(start);
                let message = error.mistake.to_string();
                let problem = TextProblem::new(range, Severity::Error, "expectation::mistake", message);
                match &error.mistake {
                    Mistake::UnknownStatus(status) => {
                        let within = text[problem.range.clone()].find(status.as_str()).unwrap_or(0);
                        let start = problem.range.start + within;
                        let problem = TextProblem { range: start..start + status.len(), ..problem };
                        suggest(problem, text, words::of(Topic::Status))
                    }
                    _ => problem,
                }
            };
            return errors.iter().map(problem).collect();
        }
    };
    let ids: Vec<String> = all_embedded().into_iter().map(|source| source.id).collect();
    let is_id = |pattern: &str| {
        let test = pattern.rsplit_once('@').map_or(pattern, |(test, _)| test);
        ids.iter().any(|id| id == test)
    };
    let mut problems = Vec::new();
    for entry in &file.entries {
        // Tests of the user and of the CTS are not embedded: this is a remark.
        if is_id(&entry.pattern) || ids.iter().any(|id| entry.matches(id, is_id)) {
            continue;
        }
        let line = line_range(text, entry.line as usize);
        let range = line.start..(line.start + entry.pattern.len()).min(line.end);
        let message = format!("no embedded test matches `{}`", entry.pattern);
        let problem = TextProblem::new(range, Severity::Information, "expectation::no-test", message);
        problems.push(suggest(problem, text, ids.iter().map(String::as_str)));
    }
    problems
}

fn of_suite(path: &Path, text: &str) -> Vec<TextProblem> {
    let ids: Vec<String> = litmus::corpus::tests().into_iter().map(|test| test.id).collect();
    let selected =
        Suite::parse(text, &name_of(path)).and_then(|suite| suite.select(ids.iter().map(String::as_str)));
    let Err(errors) = selected else { return Vec::new() };
    let problem = |error: &litmus::suite::SuiteError| {
        suggest(labelled_problem(error, text), text, ids.iter().map(String::as_str))
    };
    errors.errors().iter().map(problem).collect()
}

/// Converts the message of a TOML parser, or of a check after it, which names a key in backticks.
fn of_toml(message: &str, text: &str, topic: Topic) -> TextProblem {
    let place = message.split_once("at line ").and_then(|(_, rest)| {
        let (line, rest) = rest.split_once(", column ")?;
        let column = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((line.parse().ok()?, column.parse().ok()?))
    });
    let is_excerpt = |line: &&str| {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        line.starts_with('|') || line.contains("TOML parse error")
    };
    let words: Vec<&str> =
        message.lines().filter(|line| !is_excerpt(line) && !line.trim().is_empty()).collect();
    let words = words.join("\n");
    let words = words.strip_prefix("stress ``: ").unwrap_or(&words).to_owned();
    let quoted = words.split('`').nth(1).unwrap_or_default();
    // `memory_stress.percent` is the key `percent` of a table.
    let key = quoted.rsplit('.').next().unwrap_or_default();
    let start = match place {
        Some((line, column)) => offset_at(text, line, column),
        None => key_offset(text, key).unwrap_or(0),
    };
    let word = word_range(text, start, "-");
    let range = if word.is_empty() { start..line_end(text, start) } else { word };
    let problem = TextProblem::new(range, Severity::Error, "toml", words.clone());
    if words.contains("unknown") { suggest(problem, text, words::of(topic)) } else { problem }
}

fn line_end(text: &str, start: usize) -> usize {
    text.get(start..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| start + end)
}

/// Returns the byte offset of a key at the start of a line, or of its table.
fn key_offset(text: &str, key: &str) -> Option<usize> {
    if key.is_empty() {
        return None;
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start().trim_start_matches('[');
        let rest = bare.strip_prefix(key);
        if rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '.', ']'])) {
            return Some(start + line.len() - bare.len());
        }
        start += line.len();
    }
    None
}
