//! Commands over results that are kept.

use std::path::PathBuf;

use clap::Args;
use results::write::ReportFormat;

use super::ListFormat;

/// `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Results folders, saved lines of `run --format json`, or baselines; several stand side by side.
    #[arg(value_name = "RESULTS", required = true)]
    pub results: Vec<PathBuf>,
    /// html, md, csv, json, junit or herd.
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    pub format: ReportFormat,
    /// The file to write; standard output when not given.
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Writes a site of static pages instead, with a page a device, a page a test, and the data: a new folder, an empty one, or
    /// a site made before.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "out"])]
    pub site: Option<PathBuf>,
    /// Writes plots of each device as SVG instead: rates of weak outcomes, instances a second, and how rates went from results to
    /// results of one device.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "out", "site"])]
    pub plots: Option<PathBuf>,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The earlier results: a folder, saved lines of `run --format json`, or a baseline.
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The later results. Without them the earlier ones, judged again by the models of today: their counts stay.
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,
    /// The model that judges again, a shipped one or a cat file, instead of the one that judged.
    #[arg(long, value_name = "MODEL", conflicts_with = "new")]
    pub model: Option<String>,
    /// The file for what was judged again, as a baseline; of one device.
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    pub out: Option<PathBuf>,
    /// text or json.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// The results folders of all shards of one run.
    #[arg(value_name = "DIR", required = true)]
    pub results: Vec<PathBuf>,
    /// The folder for the whole: a new one, or an empty one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
