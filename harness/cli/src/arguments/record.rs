//! The arguments of `record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{parse_duration, parse_memory_size};
use super::{FailOn, RaceFormat};

/// `record`.
#[derive(Debug, Args)]
pub struct Record {
    /// The program and its arguments, after `--`.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<String>,
    /// Folder for the recording: new or empty [default: vk-litmus-recording, with a number if it exists].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Cases with different contents per kind of dispatch; 0 records no contents.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub keep: u32,
    /// Largest size of all recorded contents.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_memory_size)]
    pub limit: u64,
    /// Record only; `race DIR` judges the recording.
    #[arg(long)]
    pub no_judge: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: RaceFormat,
    #[command(flatten)]
    pub fail_on: FailOn,
    /// Time limit for each kind of dispatch.
    #[arg(long, value_name = "DUR", default_value = "20s", value_parser = parse_duration)]
    pub time: Duration,
    /// Time limit for all answers; what has none by then is undecided.
    #[arg(long, value_name = "DUR", default_value = "2m", value_parser = parse_duration)]
    pub total_time: Duration,
}
