//! Arguments of the commands that read stored results.

use std::path::PathBuf;

use clap::Args;
use results::write::ReportFormat;
use results::write::histograms::{PictureSize, PictureTheme};

use super::ListFormat;

/// `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Results folders, saved lines of `run --format json`, or baselines.
    #[arg(value_name = "RESULTS", required = true)]
    pub results: Vec<PathBuf>,
    /// Output format: html, md, csv, json, junit or herd [default: html].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// Output file, `-` for standard output [default: report.html, or the next number if it exists; other formats to
    /// standard output].
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Write a site of static pages instead, with pages per device and test, and the data.
    ///
    /// The folder must be new or empty, or hold an earlier site.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "out"])]
    pub site: Option<PathBuf>,
    /// Write SVG plots; with --out or --format, the report as well.
    ///
    /// The plots show the outcome histograms of each family (as slides and columns of a paper, light and dark) and,
    /// for each device, rates of weak outcomes, instances per second, and rates over several results of the device.
    #[arg(long, value_name = "DIR", conflicts_with = "site")]
    pub plots: Option<PathBuf>,
}

/// `plot`.
#[derive(Debug, Args)]
pub struct Plot {
    /// The test: an id, or a glob such as `sb/*` for a picture of several.
    #[arg(value_name = "TEST")]
    pub test: String,
    /// Results folders, saved lines of `run --format json`, or baselines [default: the newest folder in
    /// `vk-litmus-out`].
    #[arg(value_name = "RESULTS")]
    pub results: Vec<PathBuf>,
    /// Size: slide (1600 × 900 pixels) or column (of a paper, 340 pixels).
    #[arg(long, value_name = "SIZE", default_value = "slide")]
    pub size: PictureSize,
    /// Background: light or dark.
    #[arg(long, value_name = "THEME", default_value = "light")]
    pub theme: PictureTheme,
    /// Output file, .svg or .png; the numbers are written next to it as .csv. `-` is SVG on standard output,
    /// without numbers [default: TEST.svg].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The earlier results: a folder, saved lines of `run --format json`, or a baseline.
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The later results [default: the earlier ones, judged by the current models].
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,
    /// The model: a shipped one or a cat file [default: the recorded one].
    #[arg(long, value_name = "MODEL", conflicts_with = "new")]
    pub model: Option<String>,
    /// Write the re-judged results of one device as a baseline to this file.
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    pub out: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListFormat,
}

/// `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// The results folders of all shards of one run.
    #[arg(value_name = "DIR", required = true)]
    pub results: Vec<PathBuf>,
    /// Output folder: new or empty.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
