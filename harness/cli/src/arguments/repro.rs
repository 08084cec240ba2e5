//! The arguments of `repro`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// `repro`.
#[derive(Debug, Args)]
pub struct Repro {
    /// A test file, or the id of an embedded test, with `@` and words behind it for another way to tell it; with --results the id
    /// of a test there, which may be left out where one test violates.
    #[arg(value_name = "TEST", required_unless_present = "results")]
    pub test: Option<String>,
    /// The folder to write: a new one, or an empty one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// A results folder, or saved lines of `run --format json`, whose counts are told.
    #[arg(long, value_name = "RESULTS")]
    pub results: Option<PathBuf>,
    /// The device that kernels are made for, and whose machine code is added: as for `codegen`. With --results the device of the
    /// run, where it is here, when not given.
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// The model that judges: a shipped one or a cat file.
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// A folder with Mesas whose drivers make the compile-only devices: the root of a system, or what `ci/compilers` makes.
    #[arg(long, value_name = "DIR", requires = "device")]
    pub mesa: Option<PathBuf>,
    /// Time for the prediction, and again for the explanation.
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = duration)]
    pub timeout: Duration,
}
