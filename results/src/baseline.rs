//! Baselines: committed observations of past runs, one file per device and driver.
//!
//! A baseline is evidence, not a claim: it records one observation for comparison with later runs. Its first
//! line is a header with the plan, the others are run lines in plan order.

use std::path::{Path, PathBuf};

use crate::checksum::seal_record;
use crate::folder::{FolderError, replace_file};
use crate::number::plural;
use crate::read::Results;
use crate::reason::Reason;
use crate::wire::{BASELINE_SCHEMA, BaselineRecord, DeviceRecord, PlanRecord, RunLine};

/// Folder of baselines, relative to the root of a project.
pub const BASELINES_FOLDER: &str = "results/baselines";

/// Why a baseline cannot be saved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum BaselineError {
    /// A test has no verdict.
    #[error("no baseline of {device}: {} of the plan without a verdict", plural(*missing as u64, "test"))]
    Unfinished { device: String, missing: usize },
    /// The results are of a shard.
    #[error("no baseline of a shard: merge the shards first")]
    Shard,
    /// The results are of no device, or of several.
    #[error("a baseline needs results of one device, not of {0}")]
    Devices(usize),
    /// A record cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A file cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Returns the file name for a device: its name and driver version, in characters that are safe in any path.
pub fn file_name(device: &DeviceRecord) -> String {
    let mut name = String::new();
    for c in format!("{} {}", device.name, driver_version(device)).chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            // A leading dot would hide the file.
            '.' if !name.is_empty() => name.push('.'),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.truncate(120);
    let name = name.trim_end_matches(['-', '.']);
    format!("{}.jsonl", if name.is_empty() { "device" } else { name })
}

/// Returns the driver's version from its information string; if that is empty, its encoded number.
fn driver_version(device: &DeviceRecord) -> String {
    let info = device.driver_info.trim();
    // In `Mesa 22.3.6 (LLVM 15.0.6)`, the part in parentheses is a build dependency.
    let info = info.split('(').next().unwrap_or_default().trim();
    if !info.is_empty() {
        return info.to_owned();
    }
    // Encoded by `VK_MAKE_API_VERSION`; drivers with another encoding have an information string.
    let packed = device.driver_version;
    format!("{}.{}.{}", packed >> 22, (packed >> 12) & 0x3ff, packed & 0xfff)
}

/// Saves the verdicts on each device of a finished run below `folder`, and returns the files.
///
/// # Errors
/// Returns an error if the run is a shard or unfinished, or a file cannot be written.
pub fn save(folder: &Path, plan: &PlanRecord, lines: &[RunLine]) -> Result<Vec<PathBuf>, BaselineError> {
    if plan.shard.is_some() {
        return Err(BaselineError::Shard);
    }
    let mut files = Vec::new();
    for (index, device) in plan.devices.iter().enumerate() {
        let device_lines: Vec<&RunLine> = plan
            .tests
            .iter()
            .filter_map(|test| lines.iter().find(|line| line.device == device.name && line.id == test.id))
            .filter(|line| !line.has_reason(Reason::Missing))
            .collect();
        let missing = plan.tests.len() - device_lines.len();
        if missing > 0 {
            return Err(BaselineError::Unfinished { device: device.name.clone(), missing });
        }
        let text = format_baseline(
            PlanRecord { devices: vec![device.clone()], ..plan.clone() },
            index,
            &device_lines,
        )?;
        files.push((folder.join(file_name(device)), text));
    }
    std::fs::create_dir_all(folder).map_err(|source| FolderError::Io { path: folder.to_owned(), source })?;
    for (path, text) in &files {
        replace_file(path, text)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// Writes the verdicts on one device to `path`; used to store a re-judged baseline.
///
/// # Errors
/// Returns an error if the run is a shard, has several devices or is unfinished, or the file cannot be
/// written.
pub fn write(path: &Path, plan: &PlanRecord, lines: &[RunLine]) -> Result<(), BaselineError> {
    if plan.shard.is_some() {
        return Err(BaselineError::Shard);
    }
    let [device] = plan.devices.as_slice() else { return Err(BaselineError::Devices(plan.devices.len())) };
    let missing = plan.tests.len().saturating_sub(lines.len());
    if missing > 0 {
        return Err(BaselineError::Unfinished { device: device.name.clone(), missing });
    }
    Ok(replace_file(path, &format_baseline(plan.clone(), 0, &lines.iter().collect::<Vec<_>>())?)?)
}

/// Returns the results of one device in the format of a baseline, finished or not; without a plan, only the
/// lines.
///
/// # Errors
/// Returns an error if a record cannot be written as JSON.
pub fn format_device(results: &Results, name: &str) -> Result<Vec<u8>, serde_json::Error> {
    let lines: Vec<&RunLine> = results.lines.iter().filter(|line| line.device == name).collect();
    if let Some(plan) = &results.plan
        && let Some((index, device)) = plan.devices.iter().enumerate().find(|(_, device)| device.name == name)
    {
        return format_baseline(PlanRecord { devices: vec![device.clone()], ..plan.clone() }, index, &lines);
    }
    lines.into_iter().try_fold(Vec::new(), |mut text, line| {
        text.extend(seal_record(line)?);
        Ok(text)
    })
}

/// Formats a baseline. `plan` has exactly one device, and `device` is its index in the lists of models.
fn format_baseline(
    mut plan: PlanRecord,
    device: usize,
    lines: &[&RunLine],
) -> Result<Vec<u8>, serde_json::Error> {
    for test in &mut plan.tests {
        test.models = test.models.get(device).cloned().into_iter().collect();
        // The hash identifies the test; the committed file omits its text.
        test.text.clear();
    }
    plan.plan = plan.hash()?;
    let mut text = serde_json::to_vec(&BaselineRecord { schema: BASELINE_SCHEMA.to_owned(), plan })?;
    text.push(b'\n');
    for line in lines {
        text.extend(seal_record(line)?);
    }
    Ok(text)
}
