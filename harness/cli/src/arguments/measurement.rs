//! Arguments of the commands that measure.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::ListFormat;
use super::values::parse_duration;

/// `tune`.
#[derive(Debug, Args)]
pub struct Tune {
    /// Mutants whose weak or interleaved outcomes to maximize, as for `run` [default: a fixed set of relaxed
    /// tests].
    #[arg(value_name = "TEST")]
    pub tests: Vec<String>,
    /// Learn from the relaxed tests of an embedded suite instead, by the outcomes that they ask about.
    ///
    /// The search uses one half of the families, chosen by the seed, and the result is evaluated on the other
    /// half.
    #[arg(long, value_name = "NAME", conflicts_with = "tests")]
    pub suite: Option<String>,
    /// The device, as for `run` [default: the best one].
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Time for the search.
    #[arg(long, value_name = "DUR", default_value = "1m", value_parser = parse_duration)]
    pub time: Duration,
    /// Output file for the preset [default: standard output].
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
    /// Initial stresses, as for `run`; each is measured before the random search.
    #[arg(long, value_name = "NAME|FILE.toml", value_delimiter = ',')]
    pub from: Vec<String>,
    /// Seed of the search [default: random, recorded].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// The tests, as for `run`, under the device's preset and the environments of --stress.
    #[arg(value_name = "TEST|DIR", conflicts_with_all = ["faults", "growth"])]
    pub tests: Vec<String>,
    /// Compare stress environments (presets or TOML files) with the device's preset.
    ///
    /// Prints weak outcomes and deaths of mutants per second, and the number of killed mutants.
    #[arg(long, value_name = "NAME|FILE.toml", value_delimiter = ',', conflicts_with_all = ["faults", "growth"])]
    pub stress: Vec<String>,
    /// An embedded suite instead of tests [default with --stress and without a test: quick].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["faults", "growth"])]
    pub suite: Option<String>,
    /// With tests, a suite or --stress: time for all environments together.
    #[arg(long, value_name = "DUR", default_value = "1m", value_parser = parse_duration)]
    pub time: Duration,
    /// With tests, a suite or --stress: seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub seed: u64,
    /// The device, as for `run` [default: the best one].
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Measure how fast faults of the simulated GPU are found.
    #[arg(long)]
    pub faults: bool,
    /// Run every test of the corpus against every fault instead, and write the power matrix.
    ///
    /// The matrix lists which test finds which fault within how many instances; reports use it. Entries of
    /// unchanged tests and faults are reused.
    #[arg(long, value_name = "FILE.json", requires = "faults")]
    pub matrix: Option<PathBuf>,
    /// Measure time and host memory while instances grow tenfold from a million to this number.
    #[arg(long, value_name = "INSTANCES", conflicts_with = "faults")]
    pub growth: Option<u64>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    /// For tests of this program: factor for the time of each run.
    #[arg(long, value_name = "PART", default_value_t = 1.0, hide = true)]
    pub scale: f64,
}
