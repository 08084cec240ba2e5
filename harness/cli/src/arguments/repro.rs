//! The arguments of `repro`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::parse_duration;

/// The form of a reproduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReproFormat {
    /// A folder with kernels, a host program and explanations.
    Bundle,
    /// An Amber script, as VK-GL-CTS has them.
    Amber,
}

/// `repro`.
#[derive(Debug, Args)]
pub struct Repro {
    /// A test file or the id of an embedded test; append `@VARIANT` for another form.
    ///
    /// With --results, the id of a test there; optional if exactly one test violates.
    #[arg(value_name = "TEST", required_unless_present = "results")]
    pub test: Option<String>,
    /// Output: a folder and everything to reproduce the result, or an Amber script.
    #[arg(long, value_enum, default_value = "bundle")]
    pub format: ReproFormat,
    /// Output folder, new or empty; for a script, its file.
    #[arg(long, value_name = "PATH")]
    pub out: PathBuf,
    /// A results folder, or saved lines of `run --format json`, whose counts to include.
    #[arg(long, value_name = "RESULTS")]
    pub results: Option<PathBuf>,
    /// The device to compile for, and whose machine code to add, as for `codegen` [default with --results:
    /// the device of the run, if present].
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// The model: a shipped one or a cat file [default: by dialect].
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Folder of Mesa installations for the compile-only devices: a system root, or the output of
    /// `ci/compilers`.
    #[arg(long, value_name = "DIR", requires = "device")]
    pub mesa: Option<PathBuf>,
    /// Time limit for the prediction, and separately for the explanation.
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = parse_duration)]
    pub timeout: Duration,
}
