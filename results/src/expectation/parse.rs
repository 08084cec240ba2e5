//! Parser of expectation files; it reports every mistake with its position.

use std::collections::BTreeMap;

use regex::Regex;

use super::{
    ExpectationEntry, ExpectationError, ExpectationFile, ExpectationKind, ExpectationMistake, Status,
};

/// Statuses of deqp-runner's result lists that cover every failure when the list is used as a fails file.
const ANY_FAILURE: [&str; 1] = ["ExpectedFail"];
/// Statuses of deqp-runner that are not failures.
const NON_FAILURES: [&str; 4] = ["Pass", "Flake", "KnownFlake", "UnexpectedImprovement"];
/// A pattern without these characters is literal, so its dots are escaped.
const REGEX_CHARACTERS: &str = "*+?()[]{}|^$\\";

struct ExpectationReader<'a> {
    display_name: &'a str,
    kind: ExpectationKind,
    entries: Vec<ExpectationEntry>,
    first_lines: BTreeMap<String, u32>,
    errors: Vec<ExpectationError>,
}

/// Parses a file.
pub fn parse(
    name: &str,
    display_name: &str,
    kind: ExpectationKind,
    bytes: &[u8],
) -> Result<ExpectationFile, Vec<ExpectationError>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
        let line = 1 + before.matches('\n').count();
        let last = before.rsplit('\n').next().unwrap_or_default();
        let (line, column) = (saturating_u32(line), saturating_u32(1 + last.chars().count()));
        vec![ExpectationError {
            file: display_name.to_owned(),
            line,
            column,
            mistake: ExpectationMistake::NotText,
        }]
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ExpectationReader {
        display_name,
        kind,
        entries: Vec::new(),
        first_lines: BTreeMap::new(),
        errors: Vec::new(),
    };
    // Comment lines directly above patterns are their reason; an empty line ends it.
    let mut above: Vec<&str> = Vec::new();
    let mut is_used = false;
    for (index, raw) in text.lines().enumerate() {
        let trimmed = raw.trim();
        if let Some(comment) = trimmed.strip_prefix('#') {
            if is_used {
                above.clear();
                is_used = false;
            }
            above.push(comment.trim_start_matches('#').trim());
        } else if trimmed.is_empty() {
            above.clear();
            is_used = false;
        } else {
            is_used = true;
            reader.parse_line(saturating_u32(index + 1), raw, &above.join(" "));
        }
    }
    if reader.errors.is_empty() {
        Ok(ExpectationFile { name: name.to_owned(), kind, entries: reader.entries })
    } else {
        Err(reader.errors)
    }
}

impl ExpectationReader<'_> {
    fn parse_line(&mut self, line: u32, raw: &str, above: &str) {
        // A trailing comment starts at a `#` after white space: ids contain neither.
        let comment = raw.char_indices().find(|(at, c)| {
            *c == '#' && raw.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace))
        });
        let (text, trailing) = match comment {
            Some((at, _)) => raw.split_at(at),
            None => (raw, ""),
        };
        let trailing = trailing.trim_start_matches('#').trim();
        let reason =
            [above, trailing].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let start = saturating_u32(1 + text.chars().take_while(|c| c.is_whitespace()).count());
        let text = text.trim();
        let column_of =
            |offset: usize| start + saturating_u32(text.get(..offset).unwrap_or(text).chars().count());

        let (pattern, status) = match self.kind {
            ExpectationKind::Fails => match split_fails_line(text) {
                Ok(split) => split,
                Err((offset, mistake)) => return self.add_error(line, column_of(offset), mistake),
            },
            ExpectationKind::Flakes | ExpectationKind::Skips => {
                let misplaced = Status::LISTED.iter().find_map(|status| {
                    let before = text.strip_suffix(status.name())?.strip_suffix(',')?;
                    Some((before.len(), status.name()))
                });
                if let Some((offset, word)) = misplaced {
                    return self.add_error(
                        line,
                        column_of(offset),
                        ExpectationMistake::MisplacedStatus(word),
                    );
                }
                (text, None)
            }
        };
        if let Some(first) = self.first_lines.insert(pattern.to_owned(), line)
            && self.kind == ExpectationKind::Fails
        {
            let mistake = ExpectationMistake::Duplicate { pattern: pattern.to_owned(), line: first };
            return self.add_error(line, start, mistake);
        }
        match compile_pattern(pattern) {
            Ok(regex) => {
                self.entries.push(ExpectationEntry {
                    pattern: pattern.to_owned(),
                    line,
                    status,
                    reason,
                    regex,
                });
            }
            Err((offset, what)) => {
                self.add_error(line, start + saturating_u32(offset), ExpectationMistake::InvalidPattern(what))
            }
        }
    }

    fn add_error(&mut self, line: u32, column: u32, mistake: ExpectationMistake) {
        self.errors.push(ExpectationError { file: self.display_name.to_owned(), line, column, mistake });
    }
}

/// Splits a line of a fails file into pattern and status. The error is the byte offset and the mistake.
///
/// A line of a result list, which ends in seconds, is accepted.
fn split_fails_line(text: &str) -> Result<(&str, Option<Status>), (usize, ExpectationMistake)> {
    let mut rest = text;
    // The seconds column of deqp-runner's results.csv.
    if let Some((before, seconds)) = rest.rsplit_once(',')
        && before.contains(',')
        && seconds.trim().parse::<f64>().is_ok()
    {
        rest = before;
    }
    let Some((pattern, word)) = rest.rsplit_once(',') else { return Ok((rest, None)) };
    let at = pattern.len() + 1;
    let word = word.trim();
    if let Some(status) = Status::LISTED.into_iter().find(|status| status.name() == word) {
        let pattern = pattern.trim_end();
        return if pattern.is_empty() {
            Err((0, ExpectationMistake::NoPattern))
        } else {
            Ok((pattern, Some(status)))
        };
    }
    if ANY_FAILURE.contains(&word) {
        return Ok((pattern.trim_end(), None));
    }
    if NON_FAILURES.iter().any(|known| word.starts_with(known)) {
        return Err((at, ExpectationMistake::NotAFailure(word.to_owned())));
    }
    // A comma inside braces belongs to a repetition such as `{1,3}`.
    if word.ends_with('}') || word.contains("}") {
        return Ok((rest, None));
    }
    Err((at, ExpectationMistake::UnknownStatus(word.to_owned())))
}

/// Compiles a pattern, matched anywhere in an id. The error is the character offset and the message.
fn compile_pattern(pattern: &str) -> Result<Regex, (usize, String)> {
    let is_plain = !pattern.contains(|c| REGEX_CHARACTERS.contains(c));
    let text = if is_plain { pattern.replace('.', r"\.") } else { pattern.to_owned() };
    match regex_syntax::Parser::new().parse(&text) {
        Ok(_) => Regex::new(&text).map_err(|error| (0, error.to_string())),
        Err(regex_syntax::Error::Parse(error)) => {
            Err((error.span().start.column.saturating_sub(1), error.kind().to_string()))
        }
        Err(regex_syntax::Error::Translate(error)) => {
            Err((error.span().start.column.saturating_sub(1), error.kind().to_string()))
        }
        Err(error) => Err((0, error.to_string())),
    }
}

fn saturating_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
