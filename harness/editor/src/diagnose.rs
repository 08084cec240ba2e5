//! Problems of litmus tests and cat models.

use litmus::{Span, text_warnings};
use miette::Diagnostic;
use model::Model;
use model::cat::{CatError, CatProblem, SourceId};

use crate::problem::{Correction, Severity, TextProblem, word_range};
use crate::suggest::suggest;
use crate::words::{self, Topic};
use shader_source::scan::line_range;

fn span_bytes(span: Span) -> std::ops::Range<usize> {
    let start = span.offset as usize;
    start..start + span.length as usize
}

/// Converts an error with labels: the first one is its range.
pub fn labelled_problem(error: &dyn Diagnostic, text: &str) -> TextProblem {
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

/// Returns the problems of a litmus test: its mistakes, or the warnings about it.
pub fn test_problems(file: &str, text: &str) -> Vec<TextProblem> {
    let test = match litmus::parse(text, file) {
        Ok(test) => test,
        Err(errors) => {
            let problem = |error: &litmus::ParseError| {
                suggest(labelled_problem(error, text), text, words::topic_words(Topic::Litmus))
            };
            return errors.errors().iter().map(problem).collect();
        }
    };
    let mut problems = Vec::new();
    let models = || Model::shipped_models().iter().map(|(name, _)| *name);
    for claim in &test.metadata.expectations {
        // A claim about a model of the user is checked with `--model` only.
        if !models().any(|known| known == claim.model) {
            let at = text.get(span_bytes(claim.span)).and_then(|line| line.find(&claim.model)).unwrap_or(0);
            let start = claim.span.offset as usize + at;
            let message = format!("unknown shipped model `{}`", claim.model);
            let range = start..start + claim.model.len();
            let problem = TextProblem::new(range, Severity::Warning, "check::unknown-model", message);
            problems.push(suggest(problem, text, models()));
        }
    }
    let all_clauses = model::clauses::list_clauses();
    for id in &test.metadata.clauses {
        if all_clauses.iter().any(|clause| clause.id == id) {
            continue;
        }
        let header = text.find('{').unwrap_or(text.len());
        let at = text[..header].find(id.as_str()).unwrap_or(0);
        let message = format!("unknown clause `{id}`; `vk-litmus clauses` lists all");
        let problem =
            TextProblem::new(at..at + id.len(), Severity::Warning, "check::unknown-clause", message);
        problems.push(suggest(problem, text, all_clauses.iter().map(|clause| clause.id)));
    }
    for warning in text_warnings(&test, text) {
        let range = span_bytes(warning.span);
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

/// Returns the problems of a cat model. `include` returns the text of an included file by its name.
pub fn model_problems(name: &str, text: &str, include: &dyn Fn(&str) -> Option<String>) -> Vec<TextProblem> {
    let Err(errors) = Model::from_text(name, text, include) else { return Vec::new() };
    errors.errors.iter().map(|error| cat_problem(error, text)).collect()
}

fn cat_problem(error: &CatError, text: &str) -> TextProblem {
    if error.span.source != SourceId(0) {
        let location = format!("{}:{}:{}", error.file_name(), error.span.line, error.span.column);
        let include = format!("\"{}\"", error.file_name());
        // An included file may include the one with the error.
        let at = text.find(&include).or_else(|| text.find("include")).unwrap_or(0);
        let line = 1 + text[..at].matches('\n').count();
        let code = error.code().map(|code| code.to_string()).unwrap_or_default();
        return TextProblem::new(
            line_range(text, line),
            Severity::Error,
            &code,
            format!("{location}: {error}"),
        );
    }
    let problem = labelled_problem(error, text);
    match &error.problem {
        CatProblem::UnknownName { similar: Some(similar), .. } => problem.with_replacement(similar),
        CatProblem::UnknownOption { known, .. } => suggest_within(problem, text, known),
        CatProblem::UnknownOptionValue { allowed, .. } => suggest_within(problem, text, allowed),
        CatProblem::Unexpected { .. } => suggest(problem, text, words::topic_words(Topic::Cat)),
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
