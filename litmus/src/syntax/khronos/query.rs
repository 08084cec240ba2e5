//! Parses SATISFIABLE and NOSOLUTION lines.

use crate::comparison::Comparison;
use crate::error::KhronosError;
use crate::khronos::{QueryKind, QueryTerm, SatisfiabilityLine};

use super::{KhronosLine, SourceWord};

/// Parses a line that begins with one of the keywords.
pub(super) fn parse_query(
    line: KhronosLine<'_>,
    keyword: SourceWord<'_>,
) -> Result<SatisfiabilityLine, KhronosError> {
    let kind = match keyword.text {
        "SATISFIABLE" => QueryKind::Satisfiable,
        _ => QueryKind::NoSolution,
    };
    let mut scanner = QueryScanner { line, at: keyword.at + keyword.text.len() };
    let without_chains = scanner.accept_word("NOCHAINS");
    let mut terms = Vec::new();
    let mut open = 0_usize;
    loop {
        while scanner.accept_word("(") {
            open += 1;
        }
        terms.push(scanner.parse_term()?);
        while open > 0 && scanner.accept_word(")") {
            open -= 1;
        }
        if !scanner.accept_word("&&") {
            break;
        }
    }
    if open > 0 || !scanner.rest_of_line().is_empty() {
        return Err(scanner.unknown_term());
    }
    let text = line.text.to_owned();
    Ok(SatisfiabilityLine { kind, without_chains, terms, text, span: line.span_between(0, line.text.len()) })
}

struct QueryScanner<'a> {
    line: KhronosLine<'a>,
    at: usize,
}

impl<'a> QueryScanner<'a> {
    /// Returns the rest of the line after blanks.
    fn rest_of_line(&mut self) -> &'a str {
        let rest = self.line.text.get(self.at..).unwrap_or("");
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Consumes `word` if it is next.
    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.rest_of_line().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn unknown_term(&mut self) -> KhronosError {
        self.rest_of_line();
        KhronosError::UnknownTerm { span: self.line.span_between(self.at, self.line.text.len()) }
    }

    fn parse_term(&mut self) -> Result<QueryTerm, KhronosError> {
        if self.accept_word("consistent[X]") {
            return Ok(QueryTerm::Consistent);
        }
        let make = if self.accept_word("#dr") {
            QueryTerm::Races
        } else if self.accept_word("#rs") {
            QueryTerm::ReleaseSequences
        } else {
            return Err(self.unknown_term());
        };
        let comparisons = [
            ("!=", Comparison::NotEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            ("=<", Comparison::LessOrEqual),
            ("=", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let Some((_, comparison)) = comparisons.into_iter().find(|(text, _)| self.accept_word(text)) else {
            return Err(self.unknown_term());
        };
        let digits = self.rest_of_line().chars().take_while(char::is_ascii_digit).count();
        let number = self.rest_of_line().get(..digits).and_then(|digits| digits.parse().ok());
        let Some(number) = number else { return Err(self.unknown_term()) };
        self.at += digits;
        Ok(make(comparison, number))
    }
}
