//! Loads a model with its includes, its options and the clauses that its comments cite.

use super::ast::{CatModel, Identifier, Statement};
use super::error::{CatError, CatErrors, CatProblem};
use super::lexer::{Comment, tokenize_text};
use super::options::PartialOptions;
use super::parser::{ParsedItem, parse_tokens};
use super::source::{CatSpan, SourceId, SourceText};
use std::sync::Arc;

/// Bytes of one text.
const TEXT_LIMIT: usize = 1 << 20;
/// Files that one model may include, repetitions counted.
const INCLUDE_LIMIT: usize = 64;
/// Statements of one model.
const STATEMENT_LIMIT: usize = 4096;

/// The file of herd's library that generates orders; with it a model has herd's names for the orders of C11.
pub(crate) const HERD_ORDERS_FILE: &str = "cross.cat";

/// Parses a model and its includes.
///
/// `name` identifies the text in messages. `resolve` returns the text of an included file by the name in the
/// `include` statement.
///
/// # Errors
/// All syntax errors; [`compile`](super::compile) reports the semantic ones.
pub fn parse_model(
    name: &str,
    text: &str,
    resolve: &dyn Fn(&str) -> Option<String>,
) -> Result<CatModel, CatErrors> {
    parse_model_from(SourceId(0), name, text, resolve)
}

/// [`parse_model`], with the sources numbered from `first`.
pub(crate) fn parse_model_from(
    first: SourceId,
    name: &str,
    text: &str,
    resolve: &dyn Fn(&str) -> Option<String>,
) -> Result<CatModel, CatErrors> {
    let mut loader = Loader {
        resolve,
        first,
        sources: Vec::new(),
        open: Vec::new(),
        options: PartialOptions::default(),
        statements: Vec::new(),
        errors: Vec::new(),
    };
    let model_name = loader.load_file(name, text);
    if loader.errors.is_empty() {
        Ok(CatModel {
            name: model_name,
            options: loader.options.resolve_defaults(),
            statements: loader.statements,
            sources: loader.sources.into(),
        })
    } else {
        Err(CatErrors::new(name.to_owned(), loader.errors))
    }
}

/// Extends a model with the axioms for undefined initial values.
///
/// # Errors
/// None in practice: the added text is part of the engine.
pub(crate) fn with_uninitialised_reads(model: &CatModel) -> Result<CatModel, CatErrors> {
    // Numbered after the sources of the model, so that the spans of both stay valid.
    let first = SourceId(model.sources.len() as u16);
    let extension =
        parse_model_from(first, "uninitialised.cat", include_str!("uninitialised.cat"), &|_| None)?;
    let mut extended = model.clone();
    extended.statements.extend(extension.statements);
    extended.sources = model.sources.iter().chain(extension.sources.iter()).cloned().collect();
    Ok(extended)
}

struct Loader<'a> {
    resolve: &'a dyn Fn(&str) -> Option<String>,
    first: SourceId,
    sources: Vec<SourceText>,
    /// The files that are being read, each included by its predecessor.
    open: Vec<String>,
    options: PartialOptions,
    statements: Vec<Statement>,
    errors: Vec<CatError>,
}

impl Loader<'_> {
    fn load_file(&mut self, name: &str, text: &str) -> Option<String> {
        let index = self.sources.len();
        let id = SourceId(self.first.0 + index as u16);
        let source = SourceText { name: name.to_owned(), text: Arc::from(text) };
        self.sources.push(source.clone());
        if text.len() > TEXT_LIMIT {
            let problem = CatProblem::TextTooLong { bytes: text.len(), limit: TEXT_LIMIT };
            let start = CatSpan { source: id, line: 1, column: 1, ..CatSpan::default() };
            self.errors.push(CatError::new(problem, start, &source));
            return None;
        }
        let lexed = tokenize_text(text, id);
        let parsed = parse_tokens(lexed.tokens);
        let mut problems = lexed.problems;
        problems.extend(parsed.problems);
        let mut options = PartialOptions::default();
        read_options(&lexed.comments, &mut options, &mut problems);
        self.options = self.options.merge_with(options);
        // The lexer, the parser and the options each found some; messages follow the text.
        problems.sort_by_key(|(_, span)| span.offset);
        self.errors.extend(problems.into_iter().map(|(problem, span)| CatError::new(problem, span, &source)));

        let spans: Vec<CatSpan> = parsed
            .items
            .iter()
            .map(|item| match item {
                ParsedItem::Statement(_, span) => *span,
                ParsedItem::Include(file) => file.span,
            })
            .collect();
        let clauses = cited_clauses(&lexed.comments, &spans, text);
        self.open.push(name.to_owned());
        for (item, clauses) in parsed.items.into_iter().zip(clauses) {
            match item {
                ParsedItem::Statement(kind, span) => {
                    self.statements.push(Statement { kind, span, clauses });
                    // Only the first statement beyond the limit is reported.
                    if self.statements.len() == STATEMENT_LIMIT + 1 {
                        let problem = CatProblem::TooManyStatements { limit: STATEMENT_LIMIT };
                        self.errors.push(CatError::new(problem, span, &source));
                    }
                }
                ParsedItem::Include(file) => self.include_file(&file, &source),
            }
        }
        self.open.pop();
        parsed.name
    }

    fn include_file(&mut self, file: &Identifier, source: &SourceText) {
        let name = file.text.clone();
        let problem = if self.open.contains(&name) {
            CatProblem::IncludeCycle { name, chain: self.open.clone() }
        } else if self.sources.len() > INCLUDE_LIMIT {
            CatProblem::TooManyIncludes { limit: INCLUDE_LIMIT }
        } else if name == HERD_ORDERS_FILE && self.sources.iter().any(|source| source.name == name) {
            return;
        } else if let Some(text) = (self.resolve)(&name) {
            let before = self.statements.len();
            self.load_file(&name, &text);
            if name == HERD_ORDERS_FILE {
                // herd predefines these names if it generates orders.
                let added_statements = self.statements.len() - before;
                self.statements.rotate_right(added_statements);
            }
            return;
        } else {
            CatProblem::IncludeNotFound { name }
        };
        // One report is enough: each further include would repeat it.
        let repeated = matches!(problem, CatProblem::TooManyIncludes { .. })
            && self.errors.iter().any(|error| error.problem == problem);
        if !repeated {
            self.errors.push(CatError::new(problem, file.span, source));
        }
    }
}

/// Reads the options from the first comment, if it holds any.
fn read_options(
    comments: &[Comment],
    options: &mut PartialOptions,
    problems: &mut Vec<(CatProblem, CatSpan)>,
) {
    for (index, comment) in comments.iter().enumerate() {
        let Some(words) = comment.text.trim_start().strip_prefix("options:") else {
            continue;
        };
        if index > 0 {
            problems.push((CatProblem::MisplacedOptions, comment.span));
            continue;
        }
        let list_start = comment.text.len() - words.len();
        for word in words.split_whitespace() {
            if let Err(problem) = options.read_word(word) {
                // The word is a slice of the comment, so the distance of their starts is its offset.
                let offset = list_start + (word.as_ptr() as usize - words.as_ptr() as usize);
                problems.push((problem, span_in_comment(comment, offset, word.len())));
            }
        }
    }
}

/// The span of a part of a comment's text.
fn span_in_comment(comment: &Comment, start: usize, length: usize) -> CatSpan {
    let before = comment.text.get(..start).unwrap_or("");
    let line = comment.span.line + before.matches('\n').count() as u32;
    let column = match before.rsplit_once('\n') {
        Some((_, last)) => 1 + last.chars().count() as u32,
        None => comment.span.column + comment.opening_length + before.chars().count() as u32,
    };
    CatSpan {
        source: comment.span.source,
        offset: comment.span.offset + comment.opening_length + start as u32,
        length: length as u32,
        line,
        column,
    }
}

/// Returns true if a word is a clause id: `VK-SW-01`, `HSA-2.2.1-01`.
fn is_clause(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let [family, middle @ .., number] = parts.as_slice() else {
        return false;
    };
    !middle.is_empty()
        && !family.is_empty()
        && family.bytes().all(|b| b.is_ascii_uppercase())
        && middle.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'.')
        })
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// The clause ids of a comment that is a list of them; a comment with any other word cites nothing.
fn find_citations(comment: &str) -> Vec<String> {
    let words = || comment.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    if words().all(is_clause) { words().map(str::to_owned).collect() } else { Vec::new() }
}

/// Returns the clause ids of the comment that directly precedes the end of `text`. Skips `|` and opening
/// parentheses.
pub(crate) fn clauses_cited_before(text: &str) -> Vec<String> {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || c == '|' || c == '(');
    let comment = text.strip_suffix("*)").and_then(|text| text.rsplit_once("(*"));
    comment.map_or(Vec::new(), |(_, comment)| find_citations(comment))
}

/// For each statement the clauses that are cited inside it, after it on its last line, or before it: on its first
/// line, or on the lines directly above.
fn cited_clauses(comments: &[Comment], statements: &[CatSpan], text: &str) -> Vec<Vec<String>> {
    let last_line = |span: &CatSpan| {
        let lines =
            text.get(span.offset as usize..span.end_offset() as usize).unwrap_or("").matches('\n').count();
        span.line + lines as u32
    };
    let mut owners: Vec<Option<usize>> = vec![None; comments.len()];
    // From the last comment to the first, so that a comment above another joins the same statement.
    for (index, comment) in comments.iter().enumerate().rev() {
        let after = statements.partition_point(|span| span.offset < comment.span.offset);
        let before = after.checked_sub(1);
        owners[index] =
            before.filter(|before| last_line(&statements[*before]) >= comment.span.line).or_else(|| {
                let next_comment = comments.get(index + 1);
                let next_line = next_comment.map(|next| next.span.line);
                match statements.get(after) {
                    Some(next) if next.line <= comment.last_line + 1 => Some(after),
                    Some(_) if next_line.is_some_and(|line| line <= comment.last_line + 1) => {
                        owners.get(index + 1).copied().flatten().filter(|owner| *owner == after)
                    }
                    _ => None,
                }
            });
    }
    let mut clauses = vec![Vec::new(); statements.len()];
    for (comment, owner) in comments.iter().zip(owners) {
        if let Some(owner) = owner {
            for clause in find_citations(&comment.text) {
                if !clauses[owner].contains(&clause) {
                    clauses[owner].push(clause);
                }
            }
        }
    }
    clauses
}
