//! Of commands that measure.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ListFormat, duration};

/// `tune`.
#[derive(Debug, Args)]
pub struct Tune {
    /// Test files, `-` for standard input, folders, or ids and globs of embedded tests: mutants, whose weak or interleaved outcomes are to be seen
    /// often. A fixed choice of relaxed tests when none is given.
    #[arg(value_name = "TEST")]
    pub tests: Vec<String>,
    /// Learn from the relaxed tests of an embedded suite instead, by the outcomes that they ask about: from those of one half of the
    /// families, drawn from the seed, and judge what was found on the other half.
    #[arg(long, value_name = "NAME", conflicts_with = "tests")]
    pub suite: Option<String>,
    /// The device, as for `run`; the best one when not given.
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Time for the search.
    #[arg(long, value_name = "DUR", default_value = "1m", value_parser = duration)]
    pub time: Duration,
    /// The preset to write.
    #[arg(long, value_name = "FILE.toml")]
    pub out: PathBuf,
    /// Stresses to begin with, as for `run`; each is measured before any is drawn.
    #[arg(long, value_name = "NAME|FILE.toml", value_delimiter = ',')]
    pub from: Vec<String>,
    /// Decides what is tried; drawn itself and recorded when not given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// With --stress: the tests, as for `run`.
    #[arg(value_name = "TEST|DIR", requires = "stress")]
    pub tests: Vec<String>,
    /// Measure environments side by side, presets or TOML files, each in turn with the device's own preset: weak outcomes and deaths of
    /// mutants a second, and how many mutants are killed.
    #[arg(long, value_name = "NAME|FILE.toml", value_delimiter = ',', conflicts_with_all = ["faults", "growth"])]
    pub stress: Vec<String>,
    /// With --stress: an embedded suite; `quick` when neither this nor a test is given.
    #[arg(long, value_name = "NAME", requires = "stress")]
    pub suite: Option<String>,
    /// With --stress: time for all environments together.
    #[arg(long, value_name = "DUR", default_value = "1m", value_parser = duration)]
    pub time: Duration,
    /// With --stress: decides what is drawn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The device, as for `run`; the best one when not given.
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Measure how fast faults of the simulated GPU are found.
    #[arg(long)]
    pub faults: bool,
    /// Ask every test of the corpus about every fault instead, and write who finds which within how many instances: what
    /// reports know of the power of a run. What the file has of the same tests and faults is kept.
    #[arg(long, value_name = "FILE.json", requires = "faults")]
    pub matrix: Option<PathBuf>,
    /// Measure time and host memory as instances grow tenfold from a million to this many.
    #[arg(long, value_name = "INSTANCES", conflicts_with = "faults")]
    pub growth: Option<u64>,
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    /// For this tool's own tests: this part of the time that each run takes.
    #[arg(long, value_name = "PART", default_value_t = 1.0, hide = true)]
    pub scale: f64,
}
