//! The command line as scripts rely on it. What is not built yet is accepted here and refused by name later.

mod check_format;
mod kept;
mod kernel;
mod measured;
mod repro;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use campaign::shard::{Shard, shard};
pub use check_format::CheckFormat;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use codegen::Form;
pub use kept::{Diff, Merge, Report};
pub use kernel::KernelArguments;
pub use measured::{Bench, Tune};
use model::progress::{Fairness, ProgressModel};
pub use repro::Repro;
use results::write::Format;

/// Runs litmus tests on Vulkan devices and judges what they show by an axiomatic memory model.
///
/// Exit codes: 2 the input or the command line is wrong; else 1 a rule was broken (a forbidden outcome seen, an answer
/// unlike the expected one); else 3 the environment failed (no device, a test that did not end, I/O); else 0.
#[derive(Debug, Parser)]
#[command(name = "vk-litmus", version, max_term_width = 100)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Say less: errors only, no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice for everything. RUST_LOG, where set, decides instead.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run tests on devices and judge what they show.
    Run(Box<Run>),
    /// Say which outcomes a model allows.
    Check(Check),
    /// Say why an outcome is allowed or forbidden, and what would mend a race.
    Explain(Explain),
    /// Look for races, divergent barriers and the like in shaders, over whole grids.
    Race(Race),
    /// Say on which tests two models differ, or find the smallest one.
    Compare(Compare),
    /// Write the minimal forbidden tests of a model, or the smallest tests of a clause.
    Generate(Generate),
    /// Compile a test to SPIR-V.
    Compile(Compile),
    /// Print a test in another syntax.
    Convert(Convert),
    /// Look for the stress that shows most on a device.
    Tune(Tune),
    /// Show the machine code that a driver makes, and what relaxing a test changes in it.
    Codegen(Box<Codegen>),
    /// Measure how much a device shows a second.
    Bench(Bench),
    /// List the devices.
    Devices(List),
    /// List the shipped models.
    Models(List),
    /// List the embedded tests.
    Tests(Tests),
    /// Say what is wrong with a shader whatever its dispatch is; without one, list the rules.
    Lint(Box<LintArguments>),
    /// Show ways to share memory between invocations, right and commonly wrong, as shaders and as tests.
    Patterns(Patterns),
    /// Show which statement of a model encodes which clause, which tests discriminate it, and what tests miss.
    Clauses(List),
    /// List the faults that the simulated GPU can have.
    Faults(List),
    /// Write a report: results of one or several devices side by side, as a page, a table or a log.
    Report(Report),
    /// Write all that somebody else needs to see what a test shows: kernels, a host in C, the explanation, a text for a tracker.
    Repro(Repro),
    /// Say what changed between two results, and whether by more than chance.
    Diff(Diff),
    /// Merge the results of all shards of a run into one folder.
    Merge(Merge),
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
    /// Runs jobs for another process of this program.
    #[command(hide = true)]
    Worker(Worker),
}

/// `run`.
#[derive(Clone, Debug, Args)]
pub struct Run {
    /// Test files, `-` for standard input, folders, or ids and globs of embedded tests (`sb/SB+rlx-rlx`, `mp/*`); `@` and words behind one tell it
    /// to devices in another way (`mp/MP+rel-acq@split`). Or shaders, as `check` takes them, which are dispatched as they are.
    #[arg(value_name = "TEST|DIR|SHADER")]
    pub tests: Vec<String>,
    /// An embedded suite; `quick` when neither this nor a test is given. `progress` asks which loops end; tests that are
    /// named beside it are asked in place of its own.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Devices: `lavapipe`, `swiftshader`, `sim`, `gpu`, an index of `devices`, a UUID, or part of a name. VK_LITMUS_DEVICE
    /// says it where this does not.
    #[arg(long, value_name = "SEL", value_delimiter = ',')]
    pub device: Vec<String>,
    /// A fault of the simulated GPU, which then breaks one rule (`faults` lists them).
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
    /// Time for all tests on one device, such as `15s` or `2m`; a minute when neither this nor --instances is given.
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub time: Option<Duration>,
    /// Instances of each test on each device.
    #[arg(long, value_name = "N", conflicts_with = "time", value_parser = clap::value_parser!(u64).range(1..))]
    pub instances: Option<u64>,
    /// Decides everything that is drawn at random; drawn itself and printed when not given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How tests are spread over a device: a preset or a TOML file; what suits the device when not given.
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub stress: Option<String>,
    /// The model that judges: a shipped one or a cat file.
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Worker processes at once for one device.
    #[arg(long, value_name = "N", default_value = "1")]
    pub jobs: NonZeroU32,
    /// Only the i-th of n parts of the tests, i from 1. Where not given, VK_LITMUS_SHARD and the variables of Google Test,
    /// Bazel, Kubernetes' indexed jobs, Slurm's arrays, GitLab, CircleCI, Buildkite, Azure and Semaphore say it, the first
    /// of them that does.
    #[arg(long, value_name = "i/n", value_parser = shard)]
    pub shard: Option<Shard>,
    /// The folder that a run goes on in says which part it is, whatever the environment says.
    #[arg(skip)]
    pub knows_part: bool,
    /// Go on with the run in the folder of --out; or alone, `--resume DIR`, with the tests, devices and budgets of the run in DIR.
    #[arg(long)]
    pub resume: bool,
    /// On a terminal, show every test, where otherwise of more than a dozen only those that broke a rule or are not decided.
    #[arg(long)]
    pub table: bool,
    /// For `git bisect run`: stop at the first violation, and exit with 1 for it, with 0 when at least one test ran and every
    /// one conforms and was exercised, and with 125, which means that nothing can be said, in all other cases.
    #[arg(long, conflicts_with_all = ["expect", "strict", "gtest_list_tests", "gtest_filter", "gtest_output"])]
    pub bisect: bool,
    /// A folder of files `DEVICE-fails.txt`, `DEVICE-flakes.txt` and `DEVICE-skips.txt`, as deqp-runner reads them: what is
    /// listed there changes the exit code no more, and what is listed and did not happen does.
    #[arg(long, value_name = "DIR")]
    pub expect: Option<PathBuf>,
    /// How often a test whose worker crashed or hung is run again. What was seen before counts.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,
    /// Exit with 1 when a test was not exercised.
    #[arg(long)]
    pub strict: bool,
    /// Do not fail for tests that `--time` left no time for: they stay inconclusive.
    #[arg(long)]
    pub allow_unfinished: bool,
    /// text, json, csv, junit, herd or gtest.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        default_value_if("gtest_filter", clap::builder::ArgPredicate::IsPresent, "gtest"),
        default_value_if("gtest_output", clap::builder::ArgPredicate::IsPresent, "gtest")
    )]
    pub format: Format,
    /// Where the results folder is; a fresh one in `vk-litmus-out` when not given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Keep the results as the devices' baselines, in `results/baselines` of the current folder.
    #[arg(long)]
    pub save_baseline: bool,
    /// Choose tests by names of the Vulkan CTS: a complete name with or without `dEQP-VK.memory_model.`, or a glob.
    #[arg(long, value_name = "PATTERN")]
    pub cts_name: Option<String>,
    /// Turn the validation layers on; no message is accepted.
    #[arg(long)]
    pub validate: bool,
    /// Run tests for forward progress on the simulated GPU, whose scheduler keeps this progress model and no more: fair,
    /// lobe, hsa-obe, hsa, obe, unfair, or one a level as in qf=obe,sg=hsa.
    #[arg(long, value_name = "MODEL")]
    pub progress: Option<String>,
    /// Google Test: list the tests.
    #[arg(long = "gtest_list_tests", help_heading = "Google Test")]
    pub gtest_list_tests: bool,
    /// Google Test: only tests whose name or id is like one of POSITIVE:…-NEGATIVE:…, with the wildcards `*` and `?`.
    /// Output is in the format gtest where no other is asked for.
    #[arg(long = "gtest_filter", value_name = "FILTER", help_heading = "Google Test")]
    pub gtest_filter: Option<String>,
    /// Google Test: results as xml or json go to FILE or FOLDER/ as well.
    #[arg(long = "gtest_output", value_name = "xml|json[:PATH]", help_heading = "Google Test")]
    pub gtest_output: Option<String>,
    /// For this tool's own tests: the worker of a test behaves as a broken driver would (`crash:ID`, `hang:ID`,
    /// `lost:ID`).
    #[arg(long, value_name = "HOW:ID", hide = true)]
    pub misbehave: Vec<String>,
    /// For shaders.
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Test files, `-` for standard input, folders, or ids and globs of embedded tests; all embedded tests when none is given.
    /// Or shaders: SPIR-V as .spv or .spvasm, or a source that is compiled: GLSL by the extensions of its stages, .hlsl, .slang
    /// or .wgsl.
    #[arg(value_name = "TEST|DIR|SHADER")]
    pub tests: Vec<String>,
    /// An embedded suite.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// A shipped model or a cat file; what suits the dialect when not given.
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// text, json, csv, herd or sarif (for GitHub and editors, which show findings on their lines), of shaders html as well; with
    /// --executions text, dot, svg or html.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    /// Shows up to N consistent executions of each test instead, those first that show what the test asks about.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "progress")]
    pub executions: Option<u32>,
    /// Time for each test, parsing included.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
    /// How often a loop body is run at most. When not given 1, and 2, 4, 8 while runs are cut off and time lasts; of shaders 2 or more,
    /// and what is known to its end.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub unroll: Option<u32>,
    /// What a promise of progress is worth: weak or strong; with --progress.
    #[arg(long, value_name = "FAIRNESS", requires = "progress", value_parser = fairness, default_value = "weak")]
    pub fairness: Fairness,
    /// Asks whether every run ends under a progress model as well: fair, lobe, hsa-obe, hsa, obe, unfair, or one a level
    /// as in qf=obe,wg=hsa,sg=fair.
    #[arg(long, value_name = "MODEL")]
    pub progress: Option<ProgressModel>,
    /// For shaders.
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// `race`.
#[derive(Debug, Args)]
pub struct Race {
    /// Shaders: SPIR-V as .spv or .spvasm.
    #[arg(value_name = "SHADER", required = true)]
    pub shaders: Vec<String>,
    /// How it is written.
    #[arg(long, value_enum, default_value = "text")]
    pub format: RaceFormat,
    /// Print the smallest litmus test of each race instead: of the two invocations alone, which the model calls racy as well.
    #[arg(long, value_enum, conflicts_with = "format")]
    pub emit: Option<RaceEmit>,
    /// The file for the litmus test, and for each further one a file beside it with a number; printed is the first alone.
    #[arg(long, value_name = "FILE", requires = "emit")]
    pub out: Option<PathBuf>,
    /// Orders of the invocations that are tried where the order decides, all of them whatever earlier ones show; until something is
    /// found 12, or up to 1000 of small grids, when not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub schedules: Option<u64>,
    /// What these orders are drawn from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Time for the walks of an entry point, and again for the search for fixes: undecided if the first order takes longer, later orders are left out.
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = duration)]
    pub time: Duration,
    /// Time for the model, which decides small grids that the walk leaves undecided.
    #[arg(long, value_name = "DUR", default_value = "3s", value_parser = duration)]
    pub timeout: Duration,
    /// For shaders.
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// What `race` prints instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RaceEmit {
    /// Litmus tests.
    Litmus,
}

/// How `race` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RaceFormat {
    /// For people.
    Text,
    /// An object a kernel.
    Json,
    /// What is wrong on its lines, for GitHub and editors.
    Sarif,
    /// A page with the lines of the source.
    Html,
}

/// The fairness of that name.
fn fairness(name: &str) -> Result<Fairness, String> {
    [Fairness::Weak, Fairness::Strong]
        .into_iter()
        .find(|fairness| fairness.as_str() == name)
        .ok_or_else(|| "expected weak or strong".to_owned())
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A test file, or the id of an embedded test; or a shader, as for `check`.
    #[arg(value_name = "TEST|SHADER")]
    pub test: String,
    /// A shipped model or a cat file; what suits the dialect when not given.
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// The outcome to explain, such as `P1:r0 == 1 /\ P1:r1 == 0`; the test's own when not given.
    #[arg(long, value_name = "EXPR")]
    pub outcome: Option<String>,
    /// How it is written.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ExplainFormat,
    /// Print the test with what mends it, and no explanation: what forbids the outcome where anything does, else what ends the race.
    #[arg(long, conflicts_with_all = ["format", "device"])]
    pub fix: bool,
    /// Devices whose machine code is shown beside the test, as for `codegen`: compile-only ones (`radv:FAMILY`) too.
    #[arg(long, value_name = "SEL", value_delimiter = ',')]
    pub device: Vec<String>,
    /// A folder with Mesas whose drivers make the compile-only devices: the root of a system, or what `ci/compilers` makes.
    #[arg(long, value_name = "DIR", requires = "device")]
    pub mesa: Option<PathBuf>,
    /// Time for all of it; what is not found by then stays unknown.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
    /// How often a loop body is run at most. When not given 1, and 2, 4, 8 while runs are cut off and time lasts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub unroll: Option<u32>,
    /// For shaders.
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// How `explain` writes an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For people, on a terminal.
    Text,
    /// Graphs for Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// A page with pictures, text and source.
    Html,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Test files, `-` for standard input, folders, or ids and globs of embedded tests; all embedded tests when none is given.
    #[arg(value_name = "TEST|DIR", conflicts_with = "synthesize")]
    pub tests: Vec<String>,
    /// A shipped model or a cat file; given twice.
    #[arg(long, value_name = "M", required = true)]
    pub model: Vec<String>,
    /// Look for the smallest test that tells the models apart, of so many operations at most, and print it.
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub synthesize: Option<u32>,
    /// Print so many tests after the smallest one as well, those of few operations first.
    #[arg(long, value_name = "N", requires = "synthesize", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub next: u32,
    /// Look among tests of so many threads at most.
    #[arg(long, value_name = "N", requires = "synthesize", value_parser = clap::value_parser!(u32).range(1..=4))]
    pub threads: Option<u32>,
    /// Look among tests whose accesses are all atomic.
    #[arg(long, requires = "synthesize")]
    pub atomic: bool,
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// A shipped model or a cat file.
    #[arg(long, value_name = "M", default_value = "vulkan")]
    pub model: String,
    /// The most threads of a test.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=4))]
    pub threads: u32,
    /// The most operations of a test.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub events: u32,
    /// Write the smallest test for each change of a statement that encodes this clause instead.
    #[arg(long, value_name = "ID")]
    pub clause: Option<String>,
    /// A folder for the tests, a file each; all on standard output when not given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `compile`.
#[derive(Debug, Args)]
pub struct Compile {
    /// A test file, or the id of an embedded test.
    #[arg(value_name = "TEST")]
    pub test: String,
    /// The device whose sizes and features the kernel is made for; a plain one when not given.
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// What to write: SPIR-V, its text, an Amber script or machine code.
    #[arg(long, value_enum, default_value = "spv")]
    pub emit: Emit,
    /// How the test is told, by the words that stand behind the `@` of a test id: `split`, `event`, `fence` and so on.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Where to; standard output when not given.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What `compile` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// SPIR-V words.
    Spv,
    /// SPIR-V as text.
    Spvasm,
    /// An Amber script. Not available yet.
    Amber,
    /// What the device's compiler makes of it.
    Isa,
}

/// `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Test files, `-` for standard input, folders, or ids and globs of embedded tests; or a shader, whose litmus test it prints.
    #[arg(value_name = "TEST|DIR|SHADER", required = true)]
    pub tests: Vec<String>,
    /// The syntax.
    #[arg(long, value_enum)]
    pub to: Syntax,
    /// A folder for the tests, a file each by its id; all on standard output when not given, each under a comment with its id
    /// where there are several.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How often a loop body of a shader is run at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub unroll: Option<u32>,
    /// For shaders.
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// A syntax that `convert` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Syntax {
    /// The native one: the Vulkan dialect of herd's format.
    Litmus,
    /// Khronos' one.
    Khronos,
    /// A compute shader in GLSL with the same meaning.
    Glsl,
}

/// `codegen`.
#[derive(Debug, Args)]
pub struct Codegen {
    /// Test files, `-` for standard input, folders, or ids and globs of embedded tests.
    #[arg(value_name = "TEST|DIR")]
    pub tests: Vec<String>,
    /// An embedded suite; `quick` when neither this nor a test is given.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Devices: as for `run`; or compile-only ones: `radv:FAMILY`, `nvk:*` and other vendors' as `devices` lists them, and
    /// `@VERSION` behind one for one Mesa of several.
    #[arg(long, value_name = "SEL", value_delimiter = ',', required = true)]
    pub device: Vec<String>,
    /// What to show: machine code beside the test, the driver's intermediate forms, what relaxing the test changes, or what
    /// became of each order.
    /// Whether every kernel compiles when not given.
    #[arg(long, value_enum)]
    pub emit: Option<CodegenEmit>,
    /// Execute the machine code on an operational machine, and say whether a forbidden outcome is reachable.
    #[arg(long)]
    pub explore: bool,
    /// Take one instruction or bit at a time away from code that shows nothing forbidden, and say whether that is noticed.
    #[arg(long, requires = "explore")]
    pub edits: bool,
    /// text or json; html with --emit order: a page with what each compiler does to each ordering.
    #[arg(long, value_enum, default_value = "text")]
    pub format: CodegenFormat,
    /// The forms of the kernels: merged, split, split.restrict, expression.restrict, vertex, vertex.restrict, fragment, fragment.restrict,
    /// mesh, task; all but the last two when none is given, and the first three with --explore, --baseline and --emit diff.
    #[arg(long, value_name = "FORM", value_delimiter = ',')]
    pub form: Vec<Form>,
    /// A folder with Mesas whose drivers make the compile-only devices: the root of a system, or what `ci/compilers` makes.
    #[arg(long, value_name = "DIR")]
    pub mesa: Option<PathBuf>,
    /// Invocations of a workgroup where each thread has one of its own; 1 lets compilers take scalar paths to memory.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub lanes: u32,
    /// A folder of machine code: written where it does not exist or with --bless, compared with otherwise.
    #[arg(long, value_name = "DIR")]
    pub baseline: Option<PathBuf>,
    /// Write the folder of --baseline anew.
    #[arg(long, requires = "baseline")]
    pub bless: bool,
    /// Time for one kernel, after which its compiler is ended.
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = duration)]
    pub timeout: Duration,
    /// For this tool's own tests: the compiler behaves as a broken one would (`crash:OPCODE`, `hang:OPCODE`) on modules
    /// with that instruction.
    #[arg(long, value_name = "HOW:OPCODE", hide = true)]
    pub misbehave: Option<String>,
}

/// What `codegen` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodegenEmit {
    /// Machine code, aligned with the test.
    Asm,
    /// The driver's intermediate forms.
    Ir,
    /// What each relaxation of the test changes in the machine code.
    Diff,
    /// Whether what each order of the test needs stands in the machine code, and in NIR.
    Order,
}

/// A list.
#[derive(Debug, Args)]
pub struct List {
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Shaders, as for `check`.
    #[arg(value_name = "SHADER")]
    pub shaders: Vec<String>,
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    /// For shaders.
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// `patterns`.
#[derive(Clone, Debug, Args)]
pub struct Patterns {
    /// A pattern, such as `spin-lock`; all are listed when none is given.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the shader of one form alone, such as `right`.
    #[arg(long, value_name = "FORM", requires = "name", conflicts_with = "format")]
    pub form: Option<String>,
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `tests`.
#[derive(Debug, Args)]
pub struct Tests {
    /// Only tests with this in their id or in what they say of themselves (`why:`); a glob is one over ids.
    #[arg(conflicts_with_all = ["cts", "device"])]
    pub pattern: Option<String>,
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    /// The names of the Vulkan CTS, each with the id of our test and its variant.
    #[arg(long)]
    pub cts: bool,
    /// Devices: how many of the tests (with --cts, of the compute names of the CTS too) each of them runs, and what the
    /// others are skipped for, as tables in Markdown.
    #[arg(long, value_name = "SEL", value_delimiter = ',', conflicts_with = "format")]
    pub device: Vec<String>,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    Text,
    /// One JSON array.
    Json,
}

/// What `codegen` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodegenFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
    /// A page.
    Html,
}

/// `worker`.
#[derive(Debug, Args)]
pub struct Worker {
    /// Print the devices and end.
    #[arg(long)]
    pub list: bool,
    /// Turn the validation layers on.
    #[arg(long)]
    pub validate: bool,
    /// Compile kernels and tell what the driver made of them.
    #[arg(long)]
    pub compile: bool,
    /// Jobs of forward progress.
    #[arg(long)]
    pub progress: bool,
    /// Jobs of users' shaders.
    #[arg(long)]
    pub shader: bool,
    /// Run the classic scheme on this device, print what was seen and end.
    #[arg(long, value_name = "SEL", requires = "seconds")]
    pub classic: Option<String>,
    /// For so long.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
}

/// A span of time: `15s`, `2m 30s`; a bare number means seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?,
        Err(_) => humantime::parse_duration(text).map_err(|error| error.to_string())?,
    };
    if duration.is_zero() { Err("expected some time".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["0", "0s", "-3", "inf", "NaN", "soon", "1e300"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
