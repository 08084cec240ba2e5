//! Definition of the command line. Accepted values that are not implemented are rejected by name when the
//! command runs.

mod check_format;
mod codegen;
mod kernel;
mod lists;
mod measurement;
mod race;
mod record;
mod refine;
mod repro;
mod stored_results;
mod values;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

pub use self::codegen::{Codegen, CodegenEmit, CodegenFormat};
use campaign::shard::{Shard, parse_shard};
pub use check_format::{CheckFormat, CheckOutput};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub use kernel::KernelArguments;
pub use lists::{Clauses, Compilers, Devices, Help, List, Models, Patterns, Reference, Tests};
use litmus::syntax::ForeignSyntax;
pub use measurement::{Bench, Tune};
use model::progress::{Fairness, ProgressModel};
pub use race::{FailOn, FailureKind, Race, RaceFormat};
pub use record::Record;
pub use refine::{Refine, RefineFormat};
pub use repro::{Repro, ReproFormat};
use results::write::OutputFormat;
pub use stored_results::{Diff, Merge, Plot, Report};

/// Runs litmus tests on Vulkan devices and judges the outcomes by a memory model
///
/// Exit codes, in order of priority: 2 the command line or an input is wrong;
/// 1 a rule was broken or an expectation was not met; 3 no answer (no device, a
/// crash or hang, a test without a verdict); 0 otherwise.
#[derive(Debug, Parser)]
#[command(
    name = "vk-litmus",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    verbatim_doc_comment
)]
pub struct CommandLine {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
    /// Print only errors, without progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more; twice for everything. RUST_LOG, if set, decides instead.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Memory of each compiler and worker [default: half of the machine].
    #[arg(long, global = true, value_name = "SIZE", value_parser = values::parse_memory_size, hide_short_help = true)]
    pub max_memory: Option<u64>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run tests or shaders on devices and judge the outcomes.
    Run(Box<Run>),
    /// Print the outcomes that a model allows, or whether a shader races.
    Check(Check),
    /// Explain why an outcome is allowed, and how to fix a race.
    Explain(Explain),
    /// Find races and other undefined behaviour in shaders.
    Race(Race),
    /// Run a program that uses Vulkan; find races and missing barriers.
    Record(Record),
    /// Print the tests on which two models differ, or find the smallest one.
    Compare(Compare),
    /// Write the minimal forbidden tests of a model, or the smallest tests of a clause.
    Generate(Generate),
    /// Compile a test to SPIR-V.
    Compile(Compile),
    /// Print a test in another syntax.
    Convert(Convert),
    /// Search for the stress that shows most weak outcomes on a device.
    Tune(Tune),
    /// Print the machine code that a driver generates, and what relaxing a test changes in it.
    Codegen(Box<Codegen>),
    /// Measure instances and weak outcomes per second on a device.
    Bench(Bench),
    /// List the devices.
    Devices(Devices),
    /// List the compilers of shaders, and what each cannot compile.
    Compilers(Compilers),
    /// List the shipped models, or print one.
    Models(Models),
    /// List the embedded tests.
    Tests(Tests),
    /// Lint a shader (without a shader: list the rules).
    Lint(Box<LintArguments>),
    /// Check that a compiler preserves the behaviour of a shader under the memory model.
    Refine(Box<Refine>),
    /// Print patterns of shared memory, correct and incorrect, as shaders and as tests.
    Patterns(Patterns),
    /// Print the clauses of the model, the statements that encode them, and the tests that discriminate them.
    Clauses(Clauses),
    /// List the faults that the simulated GPU can inject.
    Faults(List),
    /// Write a report on the results of one or several devices.
    Report(Report),
    /// Draw histograms of tests on several devices, next to each other.
    Plot(Plot),
    /// Write a folder that reproduces a result, for a bug tracker.
    ///
    /// Kernels, a host in C, the explanation and a text.
    Repro(Repro),
    /// Compare two results and print the significant changes.
    Diff(Diff),
    /// Merge the results of all shards of a run into one folder.
    Merge(Merge),
    /// Start a language server, for editors (docs/editors.md).
    Lsp {
        /// Standard input and output: the default, which editors may name.
        #[arg(long, hide = true)]
        stdio: bool,
    },
    /// Serve the playground to a browser on this machine.
    Serve(Serve),
    /// Print a completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of the program, or of a command.
    Man {
        /// A command, such as `run`.
        command: Option<String>,
    },
    /// Print all commands, the help of a command, or a page of the documentation.
    Help(Help),
    /// Runs jobs for another process of this program.
    #[command(hide = true)]
    Worker(Worker),
    /// Writes the generated pages of the documentation.
    #[command(hide = true)]
    Reference(Reference),
}

/// `run`.
#[derive(Clone, Debug, Args)]
pub struct Run {
    /// Test files, folders, `-`, or ids and globs of embedded tests.
    ///
    /// `-` is standard input. Examples: `sb/SB+rlx-rlx`, `mp/*`. Append `@VARIANT` to run a test in another form
    /// (`mp/MP+rel-acq@split`). Shaders, as for `check`, are dispatched unchanged.
    #[arg(value_name = "TEST|DIR|SHADER")]
    pub tests: Vec<String>,
    /// An embedded suite [default without a test: quick].
    ///
    /// `progress` tests which loops terminate; tests named on the command line replace those of the suite.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Devices: a name such as `lavapipe` or `sim`, `gpu`, an index or a UUID.
    ///
    /// A part of a name is enough; commas separate several. Without it, VK_LITMUS_DEVICE applies, then the best device.
    #[arg(long, value_name = "SEL", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Break one rule of the simulated GPU (`faults` lists them).
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
    /// Time for all tests on one device, such as `15s` or `2m` [default: 1m].
    ///
    /// Without --time, each form of --transform adds 10 s, and a busy machine may take two minutes more.
    #[arg(long, value_name = "DUR", value_parser = values::parse_duration)]
    pub time: Option<Duration>,
    /// Instances of each test on each device, instead of --time.
    #[arg(long, value_name = "N", conflicts_with = "time", value_parser = clap::value_parser!(u64).range(1..))]
    pub instances: Option<u64>,
    /// Run each test N times, each in a fresh process, within the same --time or --instances.
    ///
    /// Intervals and `diff` then compare whole runs instead of parts of one; use at least 6.
    #[arg(long, value_name = "N", default_value = "1", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Also compile each test in N transformed forms, drawn by --seed.
    ///
    /// The transformations keep the accesses and their order, so each form has the allowed outcomes of its test. After a
    /// violation, those that it needs are searched for.
    #[arg(long, value_name = "N", default_value = "0", hide_short_help = true, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub transform: u16,
    /// Seed of all random choices [default: random, printed; 1 with --shard].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// How tests use a device: a preset or a TOML file [default: the device's preset].
    #[arg(long, value_name = "NAME|FILE.toml", hide_short_help = true)]
    pub stress: Option<String>,
    /// The model: a shipped one or a cat file [default: by test and device].
    #[arg(long, value_name = "M", hide_short_help = true)]
    pub model: Option<String>,
    /// Number of parallel worker processes per device.
    #[arg(long, value_name = "N", default_value = "1", hide_short_help = true)]
    pub jobs: NonZeroU32,
    /// Run only the i-th of n parts of the tests [default: by environment].
    ///
    /// The first of these that is set applies: VK_LITMUS_SHARD, or the variables of Google Test, Bazel,
    /// Kubernetes' indexed jobs, Slurm's arrays, GitLab, CircleCI, Buildkite, Azure and Semaphore.
    #[arg(long, value_name = "i/n", value_parser = parse_shard, hide_short_help = true)]
    pub shard: Option<Shard>,
    /// Set if the results folder decides on the shard, so that the environment does not.
    #[arg(skip)]
    pub knows_part: bool,
    /// Resume the run in --out, or `run --resume DIR` without tests.
    ///
    /// `--resume DIR` takes tests, devices and budgets from the run in DIR. Tests that had no time run again; --time gives
    /// them another time.
    #[arg(long)]
    pub resume: bool,
    /// Print every test with its weak outcomes, instead of violations and counts if there are many tests.
    #[arg(long, hide_short_help = true)]
    pub table: bool,
    /// For `git bisect run`: stop at the first violation, and exit with 1 for it.
    ///
    /// Exits with 0 if at least one test ran and every test conforms and was exercised, and with 125 (skip
    /// this commit) otherwise.
    #[arg(long, conflicts_with_all = ["expect", "strict", "gtest_list_tests", "gtest_filter", "gtest_output"], hide_short_help = true)]
    pub bisect: bool,
    /// Folder of known failures.
    ///
    /// A listed failure is ignored; a listed test that passes fails the run.
    ///
    /// The files are `DEVICE-fails.txt`, `DEVICE-flakes.txt` and `DEVICE-skips.txt`, in the format of
    /// deqp-runner.
    #[arg(long, value_name = "DIR")]
    pub expect: Option<PathBuf>,
    /// Number of retries of a test whose worker crashed or hung. Earlier outcomes still count.
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    pub retries: u32,
    /// Exit with 1 if a test was not exercised.
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
    /// Also exit with 1 if a shader is right in its language but the module of the compiler is undefined.
    #[arg(long, hide_short_help = true)]
    pub strict_compiler: bool,
    /// Do not fail for tests without time left by `--time`: they stay inconclusive.
    #[arg(long, hide_short_help = true)]
    pub allow_unfinished: bool,
    /// Output format: text, json, csv, junit, herd or gtest.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        default_value_if("gtest_filter", clap::builder::ArgPredicate::IsPresent, "gtest"),
        default_value_if("gtest_output", clap::builder::ArgPredicate::IsPresent, "gtest")
    )]
    pub format: OutputFormat,
    /// The results folder [default: a new one in `vk-litmus-out`].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Save the results as the devices' baselines, in `results/baselines` of the current folder.
    #[arg(long, hide_short_help = true)]
    pub save_baseline: bool,
    /// Select tests by names of the Vulkan CTS: a full name, with or without `dEQP-VK.memory_model.`, or a
    /// glob.
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    pub cts_name: Option<String>,
    /// Enable the validation layers; a message fails the run.
    #[arg(long, hide_short_help = true)]
    pub validate: bool,
    /// Run forward-progress tests on the simulated GPU with a scheduler of this progress model.
    ///
    /// The scheduler gives no stronger guarantee. Models: fair, lobe, hsa-obe, hsa, obe, unfair, or one per
    /// level as in qf=obe,sg=hsa.
    #[arg(long, value_name = "MODEL", hide_short_help = true)]
    pub progress: Option<String>,
    /// Google Test: list the tests.
    #[arg(long = "gtest_list_tests", help_heading = "Google Test", hide_short_help = true)]
    pub gtest_list_tests: bool,
    /// Google Test: run only tests that match POSITIVE:…-NEGATIVE:…, with wildcards `*` and `?`.
    ///
    /// Names and ids match. The default format is then gtest.
    #[arg(
        long = "gtest_filter",
        value_name = "FILTER",
        help_heading = "Google Test",
        hide_short_help = true
    )]
    pub gtest_filter: Option<String>,
    /// Google Test: also write results as xml or json to FILE or FOLDER/.
    #[arg(
        long = "gtest_output",
        value_name = "xml|json[:PATH]",
        help_heading = "Google Test",
        hide_short_help = true
    )]
    pub gtest_output: Option<String>,
    /// For tests of this program: the worker behaves like a broken driver (`crash:ID`, `hang:ID`, `lost:ID`).
    #[arg(long, value_name = "HOW:ID", hide = true)]
    pub misbehave: Vec<String>,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Tests: files, folders, `-`, ids, globs [default: all]; or shaders.
    ///
    /// Shader files: SPIR-V as .spv or .spvasm, GLSL by the extension of the stage (.comp, .vert, …), .hlsl,
    /// .slang or .wgsl; archives of pipelines as .foz, or a module of one as FILE.foz/HASH.
    #[arg(value_name = "TEST|DIR|SHADER")]
    pub tests: Vec<String>,
    /// An embedded suite.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// The model: a shipped one or a cat file [default: by dialect].
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Output format: text, json, csv, herd or sarif; html for shaders; with --executions text, dot, svg or
    /// html.
    ///
    /// GitHub and editors show sarif findings at their lines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    #[command(flatten)]
    pub instead: CheckOutput,
    /// Time limit for each test, including parsing.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = values::parse_duration)]
    pub timeout: Duration,
    /// Largest number of iterations of a loop [default: 1, then 2, 4, 8 while runs are cut off and time is
    /// left].
    ///
    /// For shaders the default is 2, or more if the number of iterations is known.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256), hide_short_help = true)]
    pub unroll: Option<u32>,
    /// Fairness of the scheduler with --progress: weak or strong.
    #[arg(long, value_name = "FAIRNESS", requires = "progress", value_parser = parse_fairness, default_value = "weak", hide_short_help = true)]
    pub fairness: Fairness,
    /// Also check if every run terminates under a progress model.
    ///
    /// Models: fair, lobe, hsa-obe, hsa, obe, unfair, or one per level as in qf=obe,wg=hsa,sg=fair.
    #[arg(long, value_name = "MODEL", hide_short_help = true)]
    pub progress: Option<ProgressModel>,
    /// Also exit with 1 if a shader is right in its language but the module of the compiler is undefined.
    #[arg(long, hide_short_help = true)]
    pub strict_compiler: bool,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// Parses a fairness.
fn parse_fairness(name: &str) -> Result<Fairness, String> {
    Fairness::from_name(name).ok_or_else(|| "expected weak or strong".to_owned())
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A test file or the id of an embedded test; or a shader, as for `check`.
    #[arg(value_name = "TEST|SHADER")]
    pub test: String,
    /// The model: a shipped one or a cat file [default: by dialect].
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// The outcome to explain, such as `P1:r0 == 1 /\ P1:r1 == 0` [default: the test's own].
    #[arg(long, value_name = "EXPR")]
    pub outcome: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ExplainFormat,
    /// Print only the fixed test: one that forbids the outcome if possible, else one without the race.
    #[arg(long, conflicts_with_all = ["format", "device"])]
    pub fix: bool,
    /// Devices whose machine code to print, as for `codegen`, also compile-only ones (`radv:FAMILY`).
    #[arg(long, value_name = "SEL", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Folder of Mesa installations for the compile-only devices: a system root, or the output of
    /// `ci/compilers`.
    #[arg(long, value_name = "DIR", requires = "device", hide_short_help = true)]
    pub mesa: Option<PathBuf>,
    /// Time limit for the whole explanation; what it leaves open is reported as unknown.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = values::parse_duration, hide_short_help = true)]
    pub timeout: Duration,
    /// Largest number of iterations of a loop [default: 1, then 2, 4, 8 while runs are cut off and time is
    /// left].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256), hide_short_help = true)]
    pub unroll: Option<u32>,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// The format of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text for terminals.
    Text,
    /// Graphs for Graphviz; not for shaders.
    Dot,
    /// A diagram.
    Svg,
    /// A page with diagrams, text and source.
    Html,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Both models, unless --model names them; then test files, folders, `-` for standard input, or ids and globs of
    /// embedded tests [default: all embedded tests].
    #[arg(value_name = "MODEL|TEST|DIR")]
    pub tests: Vec<String>,
    /// The model: a shipped one or a cat file; given twice.
    #[arg(long, value_name = "M")]
    pub model: Vec<String>,
    /// Search for the smallest test with at most this number of operations that distinguishes the models.
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub synthesize: Option<u32>,
    /// Also print this number of next smallest tests.
    #[arg(long, value_name = "N", requires = "synthesize", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub next: u32,
    /// Search only tests with at most this number of threads.
    #[arg(long, value_name = "N", requires = "synthesize", value_parser = clap::value_parser!(u32).range(1..=4))]
    pub threads: Option<u32>,
    /// Search only tests whose accesses are all atomic.
    #[arg(long, requires = "synthesize")]
    pub atomic: bool,
    /// Search only tests that are race-free under both models: an outcome distinguishes these.
    #[arg(long, requires = "synthesize")]
    pub race_free: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// The model: a shipped one or a cat file.
    #[arg(long, value_name = "M", default_value = "vulkan")]
    pub model: String,
    /// Largest number of threads of a test.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=4))]
    pub threads: u32,
    /// Largest number of operations of a test.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub events: u32,
    /// Write the smallest test for each mutation of a statement that encodes this clause instead.
    #[arg(long, value_name = "ID")]
    pub clause: Option<String>,
    /// Time limit. Longer searches find more and smaller tests.
    #[arg(long, value_name = "DUR", default_value = "8s", value_parser = values::parse_duration)]
    pub time: Duration,
    /// Folder for the tests, one file each [default: standard output].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `compile`.
#[derive(Debug, Args)]
pub struct Compile {
    /// A test file, or the id of an embedded test.
    #[arg(value_name = "TEST")]
    pub test: String,
    /// The device whose limits and features the kernel uses [default: a generic one].
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Output: SPIR-V, its assembly, or machine code.
    #[arg(long, value_enum, default_value = "spv")]
    pub emit: Emit,
    /// The form of the test, as after the `@` of a test id: `split`, `event`, `fence` and so on.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Output file [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The output of `compile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// SPIR-V words.
    Spv,
    /// SPIR-V assembly.
    Spvasm,
    /// The machine code of the device's compiler.
    Isa,
}

/// `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Test files, folders, `-` for standard input, or ids and globs of embedded tests; or a shader.
    #[arg(value_name = "TEST|DIR|SHADER", required = true)]
    pub tests: Vec<String>,
    /// The syntax of the tests: C11 of herd and OpenCL, or PTX of Dartagnan [default: one that `check` reads].
    #[arg(long, value_name = "c11|ptx", value_parser = values::parse_foreign_syntax)]
    pub from: Option<ForeignSyntax>,
    /// The output syntax.
    #[arg(long, value_enum)]
    pub to: Syntax,
    /// Folder for the tests, one file per id [default: standard output, with the id as a comment if there are
    /// several].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Largest number of iterations of a loop [default: as for `check`].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub unroll: Option<u32>,
    /// Memory that others may read and write at any time [default: none].
    #[arg(long, value_name = "all|SET.BINDING", value_delimiter = ',')]
    pub open: Vec<String>,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// A syntax that `convert` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Syntax {
    /// The native syntax: the Vulkan dialect of herd's format, which Dartagnan reads too.
    #[value(alias = "herd", alias = "dartagnan")]
    Litmus,
    /// The syntax of the Khronos tests.
    Khronos,
    /// A compute shader in GLSL with the same meaning.
    Glsl,
}

/// `lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Shaders, as for `check`, or folders of them.
    #[arg(value_name = "SHADER|DIR")]
    pub shaders: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Text for terminals.
    Text,
    /// One JSON document.
    Json,
}

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Port on 127.0.0.1 [default: a free one].
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Time limit for each answer.
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = values::parse_duration)]
    pub timeout: Duration,
    /// Answer one request from standard input and exit.
    #[arg(long, hide = true)]
    pub answer: bool,
}

/// `worker`.
#[derive(Debug, Args)]
pub struct Worker {
    /// Print the devices and exit.
    #[arg(long)]
    pub list: bool,
    /// Enable the validation layers.
    #[arg(long)]
    pub validate: bool,
    /// Compile kernels and print the driver's machine code.
    #[arg(long)]
    pub compile: bool,
    /// Run forward-progress tests.
    #[arg(long)]
    pub progress: bool,
    /// Run shaders.
    #[arg(long)]
    pub shader: bool,
    /// Run the classic scheme on this device, print the outcomes and exit.
    #[arg(long, value_name = "SEL", requires = "seconds")]
    pub classic: Option<String>,
    /// Time in seconds for the classic scheme.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }
}
