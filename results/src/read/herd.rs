//! Parser for logs of herd7 and litmus7, including those of [`write::herd`](crate::write::herd).

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Lines;

use crate::escape;

/// The log of one test.
#[derive(Clone, Debug, PartialEq)]
pub struct HerdLog {
    /// Name of the test.
    pub name: String,
    /// `Allowed`, `Forbidden` or `Required`.
    pub expectation: String,
    /// The observed states. herd7 writes no counts.
    pub states: Vec<LogState>,
    /// Whether the condition was validated.
    pub validated: bool,
    /// Number of instances or executions that satisfy the condition.
    pub positive: u64,
    /// Number of those that do not.
    pub negative: u64,
    /// The condition as written in the log.
    pub condition: String,
    /// `Always`, `Sometimes` or `Never`.
    pub observation: String,
    /// Run time in seconds, if logged.
    pub seconds: Option<f64>,
    /// Hash of the test, if logged.
    pub hash: Option<String>,
}

/// A final state in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Number of occurrences, if logged.
    pub count: Option<u64>,
    /// Whether the log marks it as satisfying the condition.
    pub witness: bool,
    /// Final values by name.
    pub values: BTreeMap<String, String>,
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct LogError {
    /// Line number, from 1.
    pub line: usize,
    /// The mistake, escaped.
    pub what: String,
}

struct LogReader<'a> {
    lines: Peekable<std::iter::Enumerate<Lines<'a>>>,
    line_number: usize,
}

/// Parses the tests of a log; text between them (programs, comments) is ignored.
///
/// # Errors
/// Returns an error if the block of a test is incomplete or inconsistent.
pub fn parse_log(text: &str) -> Result<Vec<HerdLog>, LogError> {
    let mut log = LogReader { lines: text.lines().enumerate().peekable(), line_number: 0 };
    let mut blocks = Vec::new();
    while let Some(line) = log.next_line() {
        if let Some(header) = line.strip_prefix("Test ") {
            blocks.push(log.parse_block(header)?);
        }
    }
    Ok(blocks)
}

impl<'a> LogReader<'a> {
    fn next_line(&mut self) -> Option<&'a str> {
        let (index, line) = self.lines.next()?;
        self.line_number = index + 1;
        Some(line)
    }

    fn error(&self, what: impl Into<String>) -> LogError {
        LogError { line: self.line_number, what: what.into() }
    }

    fn expected_error(&self, what: &str, found: &str) -> LogError {
        self.error(format!("expected {what}, found `{}`", escape::escape_line(found)))
    }

    fn require_line(&mut self, what: &str) -> Result<&'a str, LogError> {
        self.next_line()
            .ok_or_else(|| LogError { line: self.line_number, what: format!("the log ends before {what}") })
    }

    fn parse_number<T: std::str::FromStr>(&self, text: &str) -> Result<T, LogError> {
        text.trim().parse().map_err(|_| self.expected_error("a number", text))
    }

    fn parse_block(&mut self, header: &str) -> Result<HerdLog, LogError> {
        let (name, expectation) = header
            .trim_end()
            .split_once(' ')
            .ok_or_else(|| self.expected_error("a name and the kind of condition", header))?;
        if !["Allowed", "Forbidden", "Required"].contains(&expectation) {
            return Err(self.expected_error("Allowed, Forbidden or Required", expectation));
        }
        let states = self.parse_states()?;
        let validated = match self.require_line("Ok or No")? {
            "Ok" => true,
            "No" => false,
            other => return Err(self.expected_error("Ok or No", other)),
        };
        let mut block = HerdLog {
            name: name.to_owned(),
            expectation: expectation.to_owned(),
            states,
            validated,
            positive: 0,
            negative: 0,
            condition: String::new(),
            observation: String::new(),
            seconds: None,
            hash: None,
        };
        self.parse_summary(&mut block)?;
        self.check_counts(&block)?;
        Ok(block)
    }

    fn parse_states(&mut self) -> Result<Vec<LogState>, LogError> {
        let header = self.require_line("the states")?;
        let histogram = header.strip_prefix("Histogram (").and_then(|rest| rest.strip_suffix(" states)"));
        let number: usize = match (histogram, header.strip_prefix("States ")) {
            (Some(number), _) | (None, Some(number)) => self.parse_number(number)?,
            (None, None) => return Err(self.expected_error("`Histogram (n states)` or `States n`", header)),
        };
        let mut states = Vec::new();
        for _ in 0..number {
            let line = self.require_line("more states than announced")?;
            states.push(self.parse_state(line, histogram.is_some())?);
        }
        Ok(states)
    }

    fn parse_state(&self, line: &str, counted: bool) -> Result<LogState, LogError> {
        let (count, witness, values) = if counted {
            let (count, values) =
                line.split_once('>').ok_or_else(|| self.expected_error("`count:>state`", line))?;
            let (count, witness) = match (count.strip_suffix('*'), count.strip_suffix(':')) {
                (Some(count), _) => (count, true),
                (None, Some(count)) => (count, false),
                (None, None) => return Err(self.expected_error("`:` or `*` before `>`", line)),
            };
            (Some(self.parse_number(count)?), witness, values)
        } else {
            (None, false, line)
        };
        let mut named = BTreeMap::new();
        for word in values.split(';').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) =
                word.split_once('=').ok_or_else(|| self.expected_error("`name=value`", word))?;
            if named.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(self.error(format!("`{}` occurs twice in a state", escape::escape_line(name))));
            }
        }
        Ok(LogState { count, witness, values: named })
    }

    /// Parses the lines after the states, in the order of either tool, up to the next test.
    fn parse_summary(&mut self, block: &mut HerdLog) -> Result<(), LogError> {
        let mut witnesses = false;
        while let Some((_, line)) = self.lines.peek() {
            if line.starts_with("Test ") || line.starts_with('%') {
                break;
            }
            let Some(line) = self.next_line() else { break };
            if let Some(counts) = line.strip_prefix("Positive: ") {
                let (positive, negative) = counts
                    .split_once("Negative: ")
                    .ok_or_else(|| self.expected_error("`Negative: n`", counts))?;
                block.positive = self.parse_number(positive.trim().trim_end_matches(','))?;
                block.negative = self.parse_number(negative)?;
                witnesses = true;
            } else if let Some(condition) = line.strip_prefix("Condition ") {
                let ends = [" is NOT validated", " is validated"];
                let text = ends.iter().find_map(|end| condition.strip_suffix(end));
                block.condition = text.unwrap_or(condition).to_owned();
            } else if let Some(observation) = line.strip_prefix("Observation ") {
                self.parse_observation(block, observation)?;
            } else if let Some(time) = line.strip_prefix("Time ") {
                let seconds = time
                    .strip_prefix(block.name.as_str())
                    .ok_or_else(|| self.expected_error("the test's name", time))?;
                block.seconds = Some(self.parse_number(seconds)?);
            } else if let Some(hash) = line.strip_prefix("Hash=") {
                block.hash = Some(hash.to_owned());
            }
        }
        if !witnesses {
            return Err(self.error(format!("no witnesses of `{}`", escape::escape_line(&block.name))));
        }
        if block.observation.is_empty() {
            return Err(self.error(format!("no observation of `{}`", escape::escape_line(&block.name))));
        }
        Ok(())
    }

    fn parse_observation(&self, block: &mut HerdLog, text: &str) -> Result<(), LogError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, word, positive, negative] = words.as_slice() else {
            return Err(self.expected_error("`Observation name word n n`", text));
        };
        let counts: (u64, u64) = (self.parse_number(positive)?, self.parse_number(negative)?);
        let fits = match *word {
            "Never" => counts.0 == 0,
            "Always" => counts.1 == 0,
            "Sometimes" => counts.0 > 0 && counts.1 > 0,
            _ => return Err(self.expected_error("Always, Sometimes or Never", word)),
        };
        if *name != block.name || counts != (block.positive, block.negative) || !fits {
            let text = escape::escape_line(text);
            return Err(self.error(format!("the observation does not agree with the witnesses: `{text}`")));
        }
        block.observation = (*word).to_owned();
        Ok(())
    }

    fn check_counts(&self, block: &HerdLog) -> Result<(), LogError> {
        let counted = block.states.iter().all(|state| state.count.is_some());
        let sum = |witness: bool| {
            let counts = block.states.iter().filter(|state| state.witness == witness);
            counts.filter_map(|state| state.count).fold(0_u64, u64::saturating_add)
        };
        let (positive, negative) = (sum(true), sum(false));
        if counted && !block.states.is_empty() && (positive, negative) != (block.positive, block.negative) {
            return Err(self.error(format!(
                "the counts of `{}` add up to {positive} and {negative}, its witnesses to {} and {}",
                escape::escape_line(&block.name),
                block.positive,
                block.negative
            )));
        }
        Ok(())
    }
}
