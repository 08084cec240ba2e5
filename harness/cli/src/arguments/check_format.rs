//! The formats of `check`.

use std::str::FromStr;

use results::write::{Format, FormatError};

/// The format of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFormat {
    /// Answers, in one of the result formats.
    Answers(Format),
    /// Graphs of executions for Graphviz.
    Dot,
    /// A diagram of executions.
    Svg,
    /// A page: of executions, or of answers for shaders.
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
