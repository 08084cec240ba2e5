//! Parser of expectation files; it reports every mistake with its position.

use std::collections::BTreeMap;

use regex::Regex;

use super::{Entry, ExpectationError, ExpectationFile, ExpectationKind, Mistake, Status};

/// Statuses of deqp-runner's result lists that cover every failure when the list is used as a fails file.
const ANY_FAILURE: [&str; 1] = ["ExpectedFail"];
/// Statuses of deqp-runner that are not failures.
const NO_FAILURE: [&str; 4] = ["Pass", "Flake", "KnownFlake", "UnexpectedImprovement"];
/// A pattern without these characters is literal, so its dots are escaped.
const REGEX_CHARACTERS: &str = "*+?()[]{}|^$\\";

struct ExpectationReader<'a> {
    shown: &'a str,
    kind: ExpectationKind,
    entries: Vec<Entry>,
    seen: BTreeMap<String, u32>,
    errors: Vec<ExpectationError>,
}

/// Parses a file.
pub fn parse(
    name: &str,
    shown: &str,
    kind: ExpectationKind,
    bytes: &[u8],
) -> Result<ExpectationFile, Vec<ExpectationError>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
        let line = 1 + before.matches('\n').count();
        let last = before.rsplit('\n').next().unwrap_or_default();
        let (line, column) = (number(line), number(1 + last.chars().count()));
        vec![ExpectationError { file: shown.to_owned(), line, column, mistake: Mistake::NotText }]
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader =
        ExpectationReader { shown, kind, entries: Vec::new(), seen: BTreeMap::new(), errors: Vec::new() };
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
            reader.entry(number(index + 1), raw, &above.join(" "));
        }
    }
    if reader.errors.is_empty() {
        Ok(ExpectationFile { name: name.to_owned(), kind, entries: reader.entries })
    } else {
        Err(reader.errors)
    }
}

impl ExpectationReader<'_> {
    fn entry(&mut self, line: u32, raw: &str, above: &str) {
        // A trailing comment starts at a `#` after white space: ids contain neither.
        let comment = raw.char_indices().find(|(at, c)| {
            *c == '#' && raw.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace))
        });
        let (text, behind) = match comment {
            Some((at, _)) => raw.split_at(at),
            None => (raw, ""),
        };
        let behind = behind.trim_start_matches('#').trim();
        let reason =
            [above, behind].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let start = number(1 + text.chars().take_while(|c| c.is_whitespace()).count());
        let text = text.trim();
        let place = |offset: usize| start + number(text.get(..offset).unwrap_or(text).chars().count());

        let (pattern, status) = match self.kind {
            ExpectationKind::Fails => match fails(text) {
                Ok(split) => split,
                Err((offset, mistake)) => return self.complain(line, place(offset), mistake),
            },
            ExpectationKind::Flakes | ExpectationKind::Skips => {
                let misplaced = Status::LISTED.iter().find_map(|status| {
                    let before = text.strip_suffix(status.word())?.strip_suffix(',')?;
                    Some((before.len(), status.word()))
                });
                if let Some((offset, word)) = misplaced {
                    return self.complain(line, place(offset), Mistake::MisplacedStatus(word));
                }
                (text, None)
            }
        };
        if let Some(first) = self.seen.insert(pattern.to_owned(), line)
            && self.kind == ExpectationKind::Fails
        {
            let mistake = Mistake::Twice { pattern: pattern.to_owned(), line: first };
            return self.complain(line, start, mistake);
        }
        match regex(pattern) {
            Ok(regex) => {
                self.entries.push(Entry { pattern: pattern.to_owned(), line, status, reason, regex });
            }
            Err((offset, what)) => self.complain(line, start + number(offset), Mistake::Pattern(what)),
        }
    }

    fn complain(&mut self, line: u32, column: u32, mistake: Mistake) {
        self.errors.push(ExpectationError { file: self.shown.to_owned(), line, column, mistake });
    }
}

/// Splits a line of a fails file into pattern and status. The error is the byte offset and the mistake.
///
/// A line of a result list, which ends in seconds, is accepted.
fn fails(text: &str) -> Result<(&str, Option<Status>), (usize, Mistake)> {
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
    if let Some(status) = Status::LISTED.into_iter().find(|status| status.word() == word) {
        let pattern = pattern.trim_end();
        return if pattern.is_empty() { Err((0, Mistake::NoPattern)) } else { Ok((pattern, Some(status))) };
    }
    if ANY_FAILURE.contains(&word) {
        return Ok((pattern.trim_end(), None));
    }
    if NO_FAILURE.iter().any(|known| word.starts_with(known)) {
        return Err((at, Mistake::NoFailure(word.to_owned())));
    }
    // A comma inside braces belongs to a repetition such as `{1,3}`.
    if word.ends_with('}') || word.contains("}") {
        return Ok((rest, None));
    }
    Err((at, Mistake::UnknownStatus(word.to_owned())))
}

/// Compiles a pattern, matched anywhere in an id. The error is the character offset and the message.
fn regex(pattern: &str) -> Result<Regex, (usize, String)> {
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

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
