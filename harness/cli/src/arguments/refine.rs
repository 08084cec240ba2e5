//! The arguments of `refine`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::KernelArguments;
use super::values::parse_duration;

/// `refine`.
#[derive(Debug, Args)]
pub struct Refine {
    /// The shader before and after a compiler; with --through, shaders to compile.
    ///
    /// SPIR-V or a source, as for `check`. With --through, also folders: every shader below them. Also tests and
    /// ids of tests: a test is compared as GLSL, in an open world each of its workgroups separately.
    #[arg(value_name = "BEFORE AFTER|SHADER|TEST")]
    pub shaders: Vec<String>,
    /// An embedded suite of tests, with --through.
    #[arg(long, value_name = "NAME", requires = "through")]
    pub suite: Option<String>,
    /// Command line of a compiler from SPIR-V `{in}` to SPIR-V `{out}`; may be repeated.
    ///
    /// `{source}` is the file of the shader itself, for compilers of sources.
    #[arg(long, value_name = "COMMAND")]
    pub through: Vec<String>,
    /// Memory that others may read and write at any time [default: none].
    ///
    /// Descriptors such as `0.1`, elements of their buffers such as `0.1[3]`, or `all`.
    #[arg(long, value_name = "all|SET.BINDING", value_delimiter = ',')]
    pub open: Vec<String>,
    /// The model: a shipped one or a cat file [default: vulkan].
    #[arg(long, value_name = "M", default_value = "vulkan", hide_default_value = true)]
    pub model: String,
    /// Time limit for one entry point; what it leaves open is `unknown`.
    #[arg(long, value_name = "DUR", default_value = "20s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Largest number of iterations of a loop [default: 2 for loops that depend on read values].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256), hide_short_help = true)]
    pub unroll: Option<u32>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: RefineFormat,
    /// Number of comparisons at a time [default: the number of processors].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub jobs: Option<NonZeroU32>,
    #[command(flatten)]
    pub kernel: KernelArguments,
}

/// The format of `refine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RefineFormat {
    /// Text for terminals.
    Text,
    /// One JSON object per comparison.
    Json,
    /// SARIF, for GitHub and editors.
    Sarif,
}
