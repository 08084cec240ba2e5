//! The formats of `check`, and what it writes instead of answers.

use std::str::FromStr;

use clap::Args;
use results::write::{FormatError, OutputFormat};

/// The format of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFormat {
    /// Answers, in one of the result formats.
    Answers(OutputFormat),
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

/// Outputs other than answers.
#[derive(Debug, Args)]
pub struct CheckOutput {
    /// Print up to N consistent executions of each test instead, those that satisfy its condition first.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "progress")]
    pub executions: Option<u32>,
}
