//! The arguments of `refine`.

use std::time::Duration;

use clap::Args;

use super::values::duration;
use super::{KernelArguments, ListFormat};

/// `refine`.
#[derive(Debug, Args)]
pub struct Refine {
    /// The shader before and after a compiler; with --through, shaders to compile.
    ///
    /// SPIR-V or a source, as for `check`. With --through, also folders: every shader below them.
    #[arg(value_name = "BEFORE AFTER|SHADER", required = true)]
    pub shaders: Vec<String>,
    /// Command line of a compiler from SPIR-V `{in}` to SPIR-V `{out}`.
    #[arg(long, value_name = "COMMAND")]
    pub through: Option<String>,
    /// Memory that others may read and write at any time: descriptors, elements of their buffers, or `all` [default: none].
    #[arg(long, value_name = "all|SET.BINDING[[INDEX]]", value_delimiter = ',')]
    pub open: Vec<String>,
    /// The model: a shipped one or a cat file [default: vulkan].
    #[arg(long, value_name = "M", default_value = "vulkan", hide_default_value = true)]
    pub model: String,
    /// Time limit for one entry point; what it leaves open is `unknown`.
    #[arg(long, value_name = "DUR", default_value = "20s", value_parser = duration)]
    pub timeout: Duration,
    /// Largest number of iterations of a loop [default: 2 for loops that depend on read values].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256), hide_short_help = true)]
    pub unroll: Option<u32>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
    #[command(flatten)]
    pub kernel: KernelArguments,
}
