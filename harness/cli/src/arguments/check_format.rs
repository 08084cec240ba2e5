//! What `check` can write.

use std::str::FromStr;

use results::write::{Format, FormatError};

/// How `check` writes what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFormat {
    /// A form of its answers.
    Answers(Format),
    /// Graphs of executions for Graphviz.
    Dot,
    /// A picture of executions.
    Svg,
    /// A page of executions.
    Html,
}

impl FromStr for CheckFormat {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<CheckFormat, FormatError> {
        match name {
            "dot" => Ok(CheckFormat::Dot),
            "svg" => Ok(CheckFormat::Svg),
            "html" => Ok(CheckFormat::Html),
            _ => name.parse().map(CheckFormat::Answers),
        }
    }
}
