//! The arguments of `race`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use campaign::CommandOutcome;
use clap::{Args, ValueEnum};
use entry_point::ScheduleToken;

use super::{KernelArguments, values};

/// `race`.
#[derive(Debug, Args)]
pub struct Race {
    /// Shader files, or folders of them: .comp and other GLSL stages, .hlsl, .slang, .wgsl, .spv, .spvasm or .foz.
    #[arg(value_name = "SHADER|DIR", required = true)]
    pub shaders: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: RaceFormat,
    /// Number of shaders analysed in parallel [default: processors].
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroU32>,
    /// Print the smallest litmus test of each race instead: the two racing invocations, racy under the model
    /// as well.
    #[arg(long, value_enum, conflicts_with = "format", hide_short_help = true)]
    pub emit: Option<RaceEmit>,
    /// Output file; further tests get a number. Without it only the first is printed.
    #[arg(long, value_name = "FILE", requires = "emit", hide_short_help = true)]
    pub out: Option<PathBuf>,
    /// Number of schedules to try [default: 12; small grids: up to 1000].
    ///
    /// With a number, all schedules are tried, whatever earlier ones find. Only shaders whose behaviour
    /// depends on the schedule need more than one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub schedules: Option<u64>,
    /// Seed of the schedules.
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    pub seed: u64,
    /// Explore only one schedule, by the token of a failure.
    #[arg(long, value_name = "SEED:NUMBER", conflicts_with_all = ["seed", "schedules"], hide_short_help = true)]
    pub replay: Option<ScheduleToken>,
    /// Limit of the steps of all schedules [default: 150000000, or more for large grids].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub steps: Option<u64>,
    /// Time limit for inputs, schedules and proof of an entry point, and separately for fixes.
    ///
    /// If the first schedule exceeds it, the result is undecided.
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = values::parse_duration)]
    pub time: Duration,
    /// Time limit for all answers; what has none by then is undecided.
    #[arg(long, value_name = "DUR", value_parser = values::parse_duration, hide_short_help = true)]
    pub total_time: Option<Duration>,
    /// Time limit for the model, which decides small grids that the schedules leave undecided.
    #[arg(long, value_name = "DUR", default_value = "3s", value_parser = values::parse_duration, hide_short_help = true)]
    pub timeout: Duration,
    /// Print the findings of `lint` as well.
    #[arg(long, conflicts_with = "emit", hide_short_help = true)]
    pub lint: bool,
    /// Without a proof for every input, report a clean shader as undecided.
    #[arg(long, hide_short_help = true, conflicts_with = "emit")]
    pub prove: bool,
    /// Installed SMT solver for what the built-in one of proofs leaves open.
    #[arg(long, value_parser = ["z3", "cvc5", "bitwuzla"], hide_short_help = true, conflicts_with = "emit")]
    pub solver: Option<String>,
    /// Condition on the inputs for the proof, such as `pc.stride >= pc.width`.
    #[arg(long, value_name = "EXPR", hide_short_help = true)]
    pub assume: Vec<String>,
    /// Print the steps of both invocations of a finding [default: the first].
    ///
    /// On a terminal, one at a time.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", require_equals = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub step: Option<u32>,
    /// Show the source lines of findings, as on a terminal.
    #[arg(long, hide_short_help = true)]
    pub snippets: bool,
    /// Also exit with 1 if a shader is right in its language but the module of the compiler is undefined.
    #[arg(long, hide_short_help = true)]
    pub strict_compiler: bool,
    /// Add the final contents of buffers, in hexadecimal, to `--format json`, without a proof.
    #[arg(long, hide_short_help = true)]
    pub contents: bool,
    /// With --contents, add those that one dispatch leaves on a device.
    #[arg(long, value_name = "SEL", requires = "contents", hide_short_help = true)]
    pub device: Option<String>,
    /// Write a case file with the inputs that were used, for `--case`.
    #[arg(long, value_name = "FILE.toml", hide_short_help = true)]
    pub save_case: Option<PathBuf>,
    /// Write the fixes that change code as a diff, for `patch -p0`.
    #[arg(long, value_name = "FILE.diff", conflicts_with = "emit")]
    pub fix: Option<PathBuf>,
    #[command(flatten)]
    pub fail_on: FailOn,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// The output of `race` other than findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RaceEmit {
    /// Litmus tests.
    Litmus,
}

/// The format of `race`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RaceFormat {
    /// Text for terminals.
    Text,
    /// One JSON object per entry point.
    Json,
    /// SARIF, for GitHub and editors.
    Sarif,
    /// JUnit XML: one case per entry point.
    Junit,
    /// A page with the source lines.
    Html,
}

/// An answer that may fail a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailureKind {
    /// A finding in a shader.
    Finding,
    /// Two commands of a recording without order.
    Hazard,
    /// Two commands of a recording without order, one of which may not access the bytes.
    PossibleHazard,
    /// No answer about a shader or a command.
    Unjudged,
    /// A failure of the recorded program itself.
    Program,
}

/// A choice of the answers that fail.
#[derive(Clone, Debug, Args)]
pub struct FailOn {
    /// Kinds of answers that fail [default: all but program].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND", hide_short_help = true)]
    fail_on: Vec<FailureKind>,
}

impl FailOn {
    /// Returns the outcome of an answer, a success if its kind does not fail.
    pub fn outcome(&self, kind: FailureKind, outcome: CommandOutcome) -> CommandOutcome {
        let is_chosen = match &self.fail_on[..] {
            [] => kind != FailureKind::Program,
            chosen => chosen.contains(&kind),
        };
        if is_chosen { outcome } else { CommandOutcome::Success }
    }
}
