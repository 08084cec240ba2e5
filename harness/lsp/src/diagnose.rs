//! Problems of texts that parsers of this workspace read.

use std::ops::Range;
use std::path::Path;

use campaign::contained_path::path_inside;
use campaign::inputs::embedded_tests;
use campaign::recorded_contents::unpack_contents;
use editor::words::Topic;
use editor::{
    DocumentLanguage, Severity, TextProblem, labelled_problem, model_problems, offset_at, suggest,
    test_problems, word_range, words,
};
use entry_point::inputs::{CaseError, parse_case_file};
use litmus::Suite;
use results::expectation::{ExpectationMistake, Expectations};
use runner::{Stress, StressError};
use shader_source::scan::line_range;

/// The largest file that a model includes or a case file names.
const MAX_SIBLING_BYTES: u64 = 1 << 24;

/// Returns the problems of a text, in text order.
///
/// `path` names the document; files that the text refers to are read from its folder. Shaders have no parser
/// here and no problems.
pub fn diagnose(language: DocumentLanguage, path: &Path, text: &str) -> Vec<TextProblem> {
    let mut problems = match language {
        DocumentLanguage::Litmus => test_problems(&file_name(path), text),
        DocumentLanguage::Cat => cat_file_problems(path, text),
        DocumentLanguage::Expectations => expectation_problems(path, text),
        DocumentLanguage::Suite => suite_problems(path, text),
        DocumentLanguage::Stress => {
            let problem = |error: StressError| {
                let key = error.key().map(str::to_owned);
                toml_problem(error.span(), key, error.message(), text, Topic::Stress)
            };
            Stress::from_toml("", text).err().map(problem).into_iter().collect()
        }
        DocumentLanguage::Case => {
            let read = |name: &str| read_sibling(path, name);
            let problem = |error: CaseError| {
                let key = error.key().map(str::to_owned);
                toml_problem(error.span(), key, error.message(), text, Topic::Case)
            };
            parse_case_file(text, &read).err().map(problem).into_iter().collect()
        }
        DocumentLanguage::Shader => Vec::new(),
    };
    problems.sort_by_key(|problem| problem.range.start);
    problems
}

/// Returns the name of a document for messages.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Reads a file in the folder of a document.
fn read_sibling(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = path_inside(folder, name)?;
    let size = std::fs::metadata(&file).map_err(|error| error.to_string())?;
    if !size.is_file() || size.len() > MAX_SIBLING_BYTES {
        return Err(format!("not a file of at most {} MiB", MAX_SIBLING_BYTES >> 20));
    }
    unpack_contents(&file, std::fs::read(&file).map_err(|error| error.to_string())?)
}

fn cat_file_problems(path: &Path, text: &str) -> Vec<TextProblem> {
    let include = |name: &str| read_sibling(path, name).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    model_problems(&path.file_stem().unwrap_or_default().to_string_lossy(), text, &include)
}

fn expectation_problems(path: &Path, text: &str) -> Vec<TextProblem> {
    let name = file_name(path);
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
                    ExpectationMistake::UnknownStatus(status) => {
                        let within = text[problem.range.clone()].find(status.as_str()).unwrap_or(0);
                        let start = problem.range.start + within;
                        let problem = TextProblem { range: start..start + status.len(), ..problem };
                        suggest(problem, text, words::topic_words(Topic::Status))
                    }
                    _ => problem,
                }
            };
            return errors.iter().map(problem).collect();
        }
    };
    let ids: Vec<String> = embedded_tests().into_iter().map(|source| source.id).collect();
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

fn suite_problems(path: &Path, text: &str) -> Vec<TextProblem> {
    let ids: Vec<String> = litmus::corpus::tests().into_iter().map(|test| test.id).collect();
    let selected =
        Suite::parse(text, &file_name(path)).and_then(|suite| suite.select(ids.iter().map(String::as_str)));
    let Err(errors) = selected else { return Vec::new() };
    let problem = |error: &litmus::suite::SuiteError| {
        suggest(labelled_problem(error, text), text, ids.iter().map(String::as_str))
    };
    errors.errors().iter().map(problem).collect()
}

/// Returns the problem of a text in TOML: at the place that the parser found, or at a key.
fn toml_problem(
    span: Option<Range<usize>>,
    key: Option<String>,
    message: String,
    text: &str,
    topic: Topic,
) -> TextProblem {
    // `memory_stress.percent` is the key `percent` of a table.
    let key = key.as_deref().and_then(|key| key.rsplit('.').next()).unwrap_or_default();
    let start = span.map_or_else(|| key_offset(text, key).unwrap_or(0), |span| span.start);
    let word = word_range(text, start, "-");
    let range = if word.is_empty() { start..line_end(text, start) } else { word };
    let is_known = words::topic_words(topic).any(|known| text.get(range.clone()) == Some(known));
    let problem = TextProblem::new(range, Severity::Error, "toml", message);
    if is_known { problem } else { suggest(problem, text, words::topic_words(topic)) }
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
