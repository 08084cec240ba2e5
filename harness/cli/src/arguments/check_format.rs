//! The formats of `check`, and what it writes instead of answers.

use std::path::PathBuf;
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
    /// Write a certificate of the answer for each test to DIR instead: executions and a proof.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["progress", "executions", "format"])]
    pub certify: Option<PathBuf>,
    /// Verify the certificates in DIR, or a single one, instead.
    ///
    /// Trusted: the parser of tests, and the event structures, which are derived again and compared.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tests", "suite", "model", "progress", "executions", "format", "certify"], hide_short_help = true)]
    pub verify: Option<PathBuf>,
}
