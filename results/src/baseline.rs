//! Baselines: committed past observations, a file a device and driver.
//!
//! A baseline is evidence, not a claim: it says what was seen once, so that a later run can be compared with it. Its first line
//! is a header with the plan, its others are run lines, in plan order.

use std::path::{Path, PathBuf};

use crate::folder::{FolderError, replace};
use crate::journal::sealed;
use crate::judge::Reason;
use crate::read::Results;
use crate::wire::{BASELINE_SCHEMA, BaselineRecord, DeviceRecord, PlanRecord, RunLine};
use crate::write::number::plural;

/// Where baselines lie, seen from the root of a project that keeps them.
pub const FOLDER: &str = "results/baselines";

/// Why a baseline cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// Not every test has a verdict.
    #[error("no baseline of {device}: {} of the plan without a verdict", plural(*missing as u64, "test"))]
    Unfinished {
        /// The device.
        device: String,
        /// How many tests.
        missing: usize,
    },
    /// Only a part of the tests was run.
    #[error("no baseline of a shard: merge the shards first")]
    Shard,
    /// The results are of no device, or of several.
    #[error("a baseline is of one device, and these results are of {0}")]
    Devices(usize),
    /// A record cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A file cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The name of a device's file: device and driver version, in characters that are safe in any path.
pub fn file_name(device: &DeviceRecord) -> String {
    let mut name = String::new();
    for c in format!("{} {}", device.name, version(device)).chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            // Not at the start, where a dot hides a file.
            '.' if !name.is_empty() => name.push('.'),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.truncate(120);
    let name = name.trim_end_matches(['-', '.']);
    format!("{}.jsonl", if name.is_empty() { "device" } else { name })
}

/// What tells the versions of a driver apart, as far as its information string says it; else its number.
fn version(device: &DeviceRecord) -> String {
    let info = device.driver_info.trim();
    // `Mesa 22.3.6 (LLVM 15.0.6)`: what it was built with is not its version.
    let info = info.split('(').next().unwrap_or_default().trim();
    if !info.is_empty() {
        return info.to_owned();
    }
    // As `VK_MAKE_API_VERSION` packs it: drivers that pack it otherwise have an information string.
    let packed = device.driver_version;
    format!("{}.{}.{}", packed >> 22, (packed >> 12) & 0x3ff, packed & 0xfff)
}

/// Saves the verdicts on each device of a finished run below `folder`, and says where.
///
/// # Errors
/// When the run is a shard or not finished, or a file cannot be written.
pub fn save(folder: &Path, plan: &PlanRecord, lines: &[RunLine]) -> Result<Vec<PathBuf>, BaselineError> {
    if plan.shard.is_some() {
        return Err(BaselineError::Shard);
    }
    let mut files = Vec::new();
    for (index, device) in plan.devices.iter().enumerate() {
        let of_device: Vec<&RunLine> = plan
            .tests
            .iter()
            .filter_map(|test| lines.iter().find(|line| line.device == device.name && line.id == test.id))
            .filter(|line| line.reason.as_deref() != Some(Reason::Missing.word()))
            .collect();
        let missing = plan.tests.len() - of_device.len();
        if missing > 0 {
            return Err(BaselineError::Unfinished { device: device.name.clone(), missing });
        }
        let text = text(PlanRecord { devices: vec![device.clone()], ..plan.clone() }, index, &of_device)?;
        files.push((folder.join(file_name(device)), text));
    }
    std::fs::create_dir_all(folder).map_err(|source| FolderError::Io { path: folder.to_owned(), source })?;
    for (path, text) in &files {
        replace(path, text)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// Writes what is known of one device to `path`, a baseline judged again for one.
///
/// # Errors
/// When the run is a shard, of several devices or not finished, or the file cannot be written.
pub fn write(path: &Path, plan: &PlanRecord, lines: &[RunLine]) -> Result<(), BaselineError> {
    if plan.shard.is_some() {
        return Err(BaselineError::Shard);
    }
    let [device] = plan.devices.as_slice() else { return Err(BaselineError::Devices(plan.devices.len())) };
    let missing = plan.tests.len().saturating_sub(lines.len());
    if missing > 0 {
        return Err(BaselineError::Unfinished { device: device.name.clone(), missing });
    }
    Ok(replace(path, &text(plan.clone(), 0, &lines.iter().collect::<Vec<_>>())?)?)
}

/// What is known of one device of some results, in the form of a baseline, finished or not; lines alone where they have no plan.
///
/// # Errors
/// When a record cannot be written as JSON.
pub fn of_device(results: &Results, name: &str) -> Result<Vec<u8>, serde_json::Error> {
    let lines: Vec<&RunLine> = results.lines.iter().filter(|line| line.device == name).collect();
    if let Some(plan) = &results.plan
        && let Some((index, device)) = plan.devices.iter().enumerate().find(|(_, device)| device.name == name)
    {
        return text(PlanRecord { devices: vec![device.clone()], ..plan.clone() }, index, &lines);
    }
    lines.into_iter().try_fold(Vec::new(), |mut text, line| {
        text.extend(sealed(line)?);
        Ok(text)
    })
}

/// The text of a baseline. `plan` has the device alone, which has the place `device` in the lists of models.
fn text(mut plan: PlanRecord, device: usize, lines: &[&RunLine]) -> Result<Vec<u8>, serde_json::Error> {
    for test in &mut plan.tests {
        test.models = test.models.get(device).cloned().into_iter().collect();
        // The hash tells whether it is still the same test; a file that is committed need not hold it as well.
        test.text.clear();
    }
    plan.plan = plan.hash()?;
    let mut text = serde_json::to_vec(&BaselineRecord { schema: BASELINE_SCHEMA.to_owned(), plan })?;
    text.push(b'\n');
    for line in lines {
        text.extend(sealed(line)?);
    }
    Ok(text)
}
