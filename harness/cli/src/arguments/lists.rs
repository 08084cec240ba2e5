//! Arguments of the commands that list what the program contains.

use std::path::PathBuf;

use clap::Args;

use super::ListFormat;

/// `devices`.
#[derive(Debug, Args)]
pub struct Devices {
    /// Also list compile-only devices: compilers for chips that are not there, for `codegen`.
    #[arg(long)]
    pub compile_only: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `compilers`.
#[derive(Debug, Args)]
pub struct Compilers {
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `models`.
#[derive(Debug, Args)]
pub struct Models {
    /// A shipped model [default: list all].
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print its text, with line numbers as in explanations.
    #[arg(long, requires = "name", conflicts_with = "format")]
    pub text: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `clauses`.
#[derive(Debug, Args)]
pub struct Clauses {
    /// Clauses, such as `VK-SW-01` [default: all].
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Also judge every mutant of the models by the tests, which takes some minutes.
    #[arg(long, conflicts_with = "ids")]
    pub mutants: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `help`.
#[derive(Debug, Args)]
pub struct Help {
    /// A command such as `race`, or a page such as `port-tests` [default: the most used commands].
    #[arg(value_name = "COMMAND|PAGE")]
    pub topic: Option<String>,
    /// List all commands and all pages.
    #[arg(long, conflicts_with = "topic")]
    pub all: bool,
}

/// `reference`.
#[derive(Debug, Args)]
pub struct Reference {
    /// Output folder.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// A list command.
#[derive(Debug, Args)]
pub struct List {
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `patterns`.
#[derive(Clone, Debug, Args)]
pub struct Patterns {
    /// A pattern, such as `spin-lock` [default: list all].
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print only the shader of one form, such as `right`.
    #[arg(long, value_name = "FORM", requires = "name", conflicts_with = "format")]
    pub form: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `tests`.
#[derive(Debug, Args)]
pub struct Tests {
    /// List only tests with this text in their id or reason (`why:`), or with an id that matches this glob.
    #[arg(conflicts_with_all = ["cts", "device"])]
    pub pattern: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    /// List the names of the Vulkan CTS with the ids of their tests.
    #[arg(long)]
    pub cts: bool,
    /// Devices: print Markdown tables of the tests that each runs, and why it skips the others.
    ///
    /// With --cts, the tables include the names of the CTS.
    #[arg(long, value_name = "SEL", value_delimiter = ',', conflicts_with = "format")]
    pub device: Vec<String>,
}
