//! Parses SATISFIABLE and NOSOLUTION lines.

use crate::error::KhronosError;
use crate::khronos::{Query, QueryKind, QueryTerm, SizeComparison};

use super::{Line, Word};

/// Parses a line that begins with one of the keywords.
pub(super) fn parse(line: Line<'_>, keyword: Word<'_>) -> Result<Query, KhronosError> {
    let kind = match keyword.text {
        "SATISFIABLE" => QueryKind::Satisfiable,
        _ => QueryKind::NoSolution,
    };
    let mut scanner = Scanner { line, at: keyword.at + keyword.text.len() };
    let without_chains = scanner.word("NOCHAINS");
    let mut terms = Vec::new();
    let mut open = 0_usize;
    loop {
        while scanner.word("(") {
            open += 1;
        }
        terms.push(scanner.term()?);
        while open > 0 && scanner.word(")") {
            open -= 1;
        }
        if !scanner.word("&&") {
            break;
        }
    }
    if open > 0 || !scanner.rest().is_empty() {
        return Err(scanner.unknown());
    }
    let text = line.text.to_owned();
    Ok(Query { kind, without_chains, terms, text, span: line.span(0, line.text.len()) })
}

struct Scanner<'a> {
    line: Line<'a>,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Returns the rest of the line after blanks.
    fn rest(&mut self) -> &'a str {
        let rest = self.line.text.get(self.at..).unwrap_or("");
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Consumes `word` if it is next.
    fn word(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn unknown(&mut self) -> KhronosError {
        self.rest();
        KhronosError::UnknownTerm { span: self.line.span(self.at, self.line.text.len()) }
    }

    fn term(&mut self) -> Result<QueryTerm, KhronosError> {
        if self.word("consistent[X]") {
            return Ok(QueryTerm::Consistent);
        }
        let make = if self.word("#dr") {
            QueryTerm::Races
        } else if self.word("#rs") {
            QueryTerm::ReleaseSequences
        } else {
            return Err(self.unknown());
        };
        let comparisons = [
            ("!=", SizeComparison::NotEqual),
            (">=", SizeComparison::GreaterOrEqual),
            ("<=", SizeComparison::LessOrEqual),
            ("=<", SizeComparison::LessOrEqual),
            ("=", SizeComparison::Equal),
            ("<", SizeComparison::Less),
            (">", SizeComparison::Greater),
        ];
        let Some((_, comparison)) = comparisons.into_iter().find(|(text, _)| self.word(text)) else {
            return Err(self.unknown());
        };
        let digits = self.rest().chars().take_while(char::is_ascii_digit).count();
        let number = self.rest().get(..digits).and_then(|digits| digits.parse().ok());
        let Some(number) = number else { return Err(self.unknown()) };
        self.at += digits;
        Ok(make(comparison, number))
    }
}
