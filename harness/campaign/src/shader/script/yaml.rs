//! YAML as a tree of nodes with their places in the script.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::Marker;

use super::{ScriptError, ScriptProblem};

/// Upper bound on the nesting of nodes.
const MAX_DEPTH: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct YamlNode {
    line: u32,
    column: u32,
    value: YamlValue,
}

#[derive(Clone, Debug)]
enum YamlValue {
    Scalar(String),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

/// A list or a mapping that is not complete.
struct OpenNode {
    node: YamlNode,
    /// The key of the next value of a mapping.
    key: Option<String>,
}

impl YamlNode {
    /// Parses the first document of a text. The text has the lines of the script.
    ///
    /// # Errors
    /// If the text is not YAML, or has an alias, which is not supported.
    pub fn parse(text: &str) -> Result<YamlNode, ScriptError> {
        let text = indent_flows(text);
        let mut parser = Parser::new_from_str(&text);
        let mut open: Vec<OpenNode> = Vec::new();
        loop {
            let (event, mark) = parser.next_token().map_err(|error| {
                error_at(*error.marker(), ScriptProblem::Unexpected(error.info().to_owned(), "YAML"))
            })?;
            let new = |value| YamlNode { line: mark.line() as u32, column: mark.col() as u32 + 1, value };
            let complete = match event {
                Event::Scalar(text, ..) => new(YamlValue::Scalar(text)),
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    if open.len() == MAX_DEPTH {
                        return Err(error_at(mark, ScriptProblem::TooMany(MAX_DEPTH as u64, "nested nodes")));
                    }
                    let is_list = matches!(event, Event::SequenceStart(..));
                    let value =
                        if is_list { YamlValue::List(Vec::new()) } else { YamlValue::Map(Vec::new()) };
                    open.push(OpenNode { node: new(value), key: None });
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                    Some(ended) => ended.node,
                    None => continue,
                },
                Event::Alias(_) => {
                    return Err(error_at(mark, ScriptProblem::Unsupported("an alias of YAML".to_owned())));
                }
                Event::StreamEnd | Event::DocumentEnd => {
                    return Err(error_at(mark, ScriptProblem::Ended("a mapping of YAML")));
                }
                Event::Nothing | Event::StreamStart | Event::DocumentStart => continue,
            };
            let Some(parent) = open.last_mut() else { return Ok(complete) };
            match &mut parent.node.value {
                YamlValue::List(items) => items.push(complete),
                YamlValue::Map(entries) => match (parent.key.take(), &complete.value) {
                    (Some(key), _) if entries.iter().any(|(known, _)| *known == key) => {
                        return Err(complete.error(ScriptProblem::RepeatedKey(key)));
                    }
                    (Some(key), _) => entries.push((key, complete)),
                    (None, YamlValue::Scalar(key)) => parent.key = Some(key.clone()),
                    (None, _) => return Err(complete.error(ScriptProblem::Ended("a key"))),
                },
                YamlValue::Scalar(_) => {}
            }
        }
    }

    /// Returns its line and column.
    pub fn place(&self) -> (u32, u32) {
        (self.line, self.column)
    }

    /// Returns an error at this node.
    pub fn error(&self, problem: ScriptProblem) -> ScriptError {
        ScriptError { line: self.line, column: self.column, problem }
    }

    /// Returns the error that this is not what is expected.
    fn unexpected(&self, expected: &'static str) -> ScriptError {
        let found = match &self.value {
            YamlValue::Scalar(text) => text,
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a mapping",
        };
        self.error(ScriptProblem::Unexpected(found.to_owned(), expected))
    }

    /// Returns the text of a scalar.
    ///
    /// # Errors
    /// If this is a list or a mapping.
    pub fn text(&self) -> Result<&str, ScriptError> {
        let YamlValue::Scalar(text) = &self.value else { return Err(self.unexpected("a value")) };
        Ok(text)
    }

    /// Returns a number.
    ///
    /// # Errors
    /// If this is not a number of the type.
    pub fn number<T: TryFrom<u64>>(&self) -> Result<T, ScriptError> {
        let text = self.text()?;
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let invalid = || self.error(ScriptProblem::Value(text.to_owned(), "a number in its range"));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(invalid)
    }

    /// Returns the items of a list; a missing value is a list without items.
    ///
    /// # Errors
    /// If this is another scalar or a mapping.
    pub fn items(&self) -> Result<&[YamlNode], ScriptError> {
        match &self.value {
            YamlValue::List(items) => Ok(items),
            YamlValue::Scalar(text) if text.is_empty() || text == "~" => Ok(&[]),
            YamlValue::Scalar(_) | YamlValue::Map(_) => Err(self.unexpected("a list")),
        }
    }

    /// Returns the entries of a mapping, each of which is taken once.
    ///
    /// # Errors
    /// If this is not a mapping.
    pub fn fields(&self) -> Result<YamlFields<'_>, ScriptError> {
        let YamlValue::Map(entries) = &self.value else { return Err(self.unexpected("a mapping")) };
        let entries = entries.iter().map(|(key, node)| (key.as_str(), node)).collect();
        Ok(YamlFields { node: self, entries })
    }
}

/// Indents the lines that continue a list or a mapping in brackets, which LLVM accepts at any column.
fn indent_flows(text: &str) -> String {
    let (mut indented, mut depth) = (String::with_capacity(text.len()), 0_usize);
    for line in text.lines() {
        if depth > 0 {
            indented.push_str(&" ".repeat(2 * MAX_DEPTH));
        }
        indented.push_str(line);
        indented.push('\n');
        let (mut quote, mut previous) = (None, ' ');
        for letter in line.chars() {
            match (quote, letter) {
                (Some(open), _) if open == letter => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(letter),
                (None, '#') if previous.is_whitespace() => break,
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') => depth = depth.saturating_sub(1),
                (None, _) => {}
            }
            previous = letter;
        }
    }
    indented
}

fn error_at(mark: Marker, problem: ScriptProblem) -> ScriptError {
    ScriptError { line: mark.line() as u32, column: mark.col() as u32 + 1, problem }
}

/// The entries of a mapping that are not taken yet.
pub(super) struct YamlFields<'n> {
    pub node: &'n YamlNode,
    entries: Vec<(&'n str, &'n YamlNode)>,
}

impl<'n> YamlFields<'n> {
    /// Takes the value of a key.
    pub fn take(&mut self, key: &str) -> Option<&'n YamlNode> {
        let position = self.entries.iter().position(|(known, _)| *known == key)?;
        Some(self.entries.remove(position).1)
    }

    /// Takes the value of a key.
    ///
    /// # Errors
    /// If the mapping lacks it.
    pub fn require(&mut self, key: &'static str) -> Result<&'n YamlNode, ScriptError> {
        self.take(key).ok_or_else(|| self.node.error(ScriptProblem::Missing(key)))
    }

    /// Returns an error if an entry is left.
    ///
    /// # Errors
    /// The first entry that was not taken is not supported.
    pub fn finish(self) -> Result<(), ScriptError> {
        match self.entries.first() {
            Some((key, node)) => Err(node.error(ScriptProblem::Unsupported((*key).to_owned()))),
            None => Ok(()),
        }
    }
}
