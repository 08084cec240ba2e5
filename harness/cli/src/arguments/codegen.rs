//! The arguments of `codegen`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use codegen::Form;

use super::kernel::KernelArguments;
use super::values::parse_duration;

/// `codegen`.
#[derive(Debug, Args)]
pub struct Codegen {
    /// Test files, folders, `-` for standard input, ids and globs of embedded tests, or shaders.
    ///
    /// Of a shader, the code is printed next to its lines, with the orders that the source requires. The options
    /// --form, --lanes, --explore, --baseline and --emit diff are for tests only.
    #[arg(value_name = "TEST|SHADER|DIR")]
    pub tests: Vec<String>,
    /// An embedded suite [default without a test: quick].
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Devices, as for `run`, or compile-only ones: `radv:FAMILY`, `nvk:*` and others that
    /// `devices --compile-only` lists.
    ///
    /// Append `@VERSION` to select one of several Mesa versions.
    #[arg(long, value_name = "SEL", value_delimiter = ',', required = true)]
    pub device: Vec<String>,
    /// Output: machine code, intermediate representations, effects of relaxations, or memory orders
    /// [default: asm for one test or shader on one device, else a table of which kernels compile].
    #[arg(long, value_enum)]
    pub emit: Option<CodegenEmit>,
    /// Execute the machine code on an operational model, and report reachable forbidden outcomes.
    #[arg(long, hide_short_help = true)]
    pub explore: bool,
    /// Mutation-test the explorer: drop one instruction or bit at a time.
    #[arg(long, requires = "explore", hide_short_help = true)]
    pub edits: bool,
    /// Output format: text or json; with --emit order also html.
    #[arg(long, value_enum, default_value = "text")]
    pub format: CodegenFormat,
    /// Forms of the kernels: merged, split, split.restrict, expression.restrict, vertex, vertex.restrict,
    /// fragment, fragment.restrict, mesh, task.
    ///
    /// Default: all except mesh and task; with --explore, --baseline and --emit diff only the first three; for one
    /// test on one device without --emit only merged.
    #[arg(long, value_name = "FORM", value_delimiter = ',', hide_short_help = true)]
    pub form: Vec<Form>,
    /// Folder of Mesa installations for the compile-only devices: a system root, or the output of
    /// `ci/compilers`.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub mesa: Option<PathBuf>,
    /// Invocations per workgroup if each thread has a workgroup; 1 lets compilers use scalar memory
    /// instructions.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1024), hide_short_help = true)]
    pub lanes: u32,
    /// Folder of machine code to compare with; written if it does not exist.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub baseline: Option<PathBuf>,
    /// Overwrite the folder of --baseline.
    #[arg(long, requires = "baseline", hide_short_help = true)]
    pub bless: bool,
    /// Processor time of one kernel, after which its compiler is killed.
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = parse_duration, hide_short_help = true)]
    pub timeout: Duration,
    /// For tests of this program: the compiler behaves like a broken one (`crash:OPCODE`, `hang:OPCODE`) on
    /// modules with that instruction.
    #[arg(long, value_name = "HOW:OPCODE", hide = true)]
    pub misbehave: Option<String>,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// The output of `codegen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodegenEmit {
    /// Machine code, next to the instructions of the source.
    Asm,
    /// The driver's intermediate representations.
    Ir,
    /// The effect of each relaxation of the test on the machine code.
    Diff,
    /// The memory orders of the source that machine code and NIR implement.
    Order,
}

/// The format of `codegen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodegenFormat {
    /// Text for terminals.
    Text,
    /// One JSON object per line.
    Json,
    /// A page.
    Html,
}
