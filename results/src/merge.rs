//! Merging of shards: combines the results of all parts of a plan into the results of the whole plan.

use std::collections::BTreeSet;
use std::path::Path;

use crate::escape;
use crate::folder::{FolderError, ResultsFolder};
use crate::read::Results;
use crate::wire::{DeviceRecord, PlanRecord, RunLine, TestRecord};

/// Why results cannot be merged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum MergeError {
    /// The results have no plan, as they are not from a folder.
    #[error("{0}: no plan; only results folders can be merged")]
    NoPlan(String),
    #[error("{0}: a complete run, not a shard (`run --shard i/n` makes shards); `report` compares runs")]
    NotAShard(String),
    /// A field that all shards must share differs.
    #[error("conflicting plans: `{field}` of {left} is {left_value}, of {right} it is {right_value}")]
    Conflict { field: &'static str, left: String, left_value: String, right: String, right_value: String },
    /// Two results are the same shard.
    #[error("{left} and {right} are both shard {shard}")]
    DuplicateShard {
        /// The shard, as `index/count`.
        shard: String,
        left: String,
        right: String,
    },
    #[error("shard {0} is missing")]
    Missing(String),
    #[error("{0} has {1} tests, which does not match the other shards")]
    TestCountMismatch(String, usize),
    #[error("test `{0}` is in two shards")]
    SharedTest(String),
    #[error("{0}:{1}: the last line is incomplete: resume that run first")]
    Incomplete(String, usize),
    /// The plan cannot be hashed.
    #[error(transparent)]
    Plan(#[from] serde_json::Error),
    /// The folder cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl MergeError {
    /// Returns true if the user's input caused the error, rather than the system.
    pub fn is_input(&self) -> bool {
        match self {
            MergeError::Folder(error) => error.is_input(),
            MergeError::Plan(_) => false,
            _ => true,
        }
    }
}

/// Returns the plan whose shards are `parts`, with the verdicts in plan order. Tests may lack a verdict.
///
/// # Errors
/// Returns an error unless `parts` are all shards of one plan, each exactly once.
pub fn merge(parts: &[Results]) -> Result<(PlanRecord, Vec<RunLine>), MergeError> {
    let mut shards: Vec<(usize, usize, String, &Results, &PlanRecord)> = Vec::new();
    for part in parts {
        let name = escape::escape_line(&part.source.to_string_lossy()).into_owned();
        let plan = part.plan.as_ref().ok_or_else(|| MergeError::NoPlan(name.clone()))?;
        if let Some(incomplete) = part.incomplete {
            return Err(MergeError::Incomplete(name, incomplete.line));
        }
        let (index, count) = shard(plan).ok_or_else(|| MergeError::NotAShard(name.clone()))?;
        shards.push((index, count, name, part, plan));
    }
    let Some((_, count, first_name, _, first)) = shards.first().cloned() else {
        return Err(MergeError::Missing("1/1".to_owned()));
    };
    for (_, _, name, _, plan) in shards.iter().skip(1) {
        check_same_settings(first, &first_name, plan, name)?;
    }
    shards.sort_by_key(|(index, ..)| *index);
    let twice = shards.iter().zip(shards.iter().skip(1)).find(|(left, right)| left.0 == right.0);
    if let Some((left, right)) = twice {
        let shard = format!("{}/{count}", left.0);
        return Err(MergeError::DuplicateShard { shard, left: left.2.clone(), right: right.2.clone() });
    }
    if let Some(missing) =
        (1..=count).find(|index| shards.get(index - 1).is_none_or(|shard| shard.0 != *index))
    {
        return Err(MergeError::Missing(format!("{missing}/{count}")));
    }
    let mut plan = PlanRecord { shard: None, tests: restore_test_order(&shards)?, ..first.clone() };
    plan.plan = plan.hash()?;
    let mut lines: Vec<RunLine> = shards.iter().flat_map(|(_, _, _, part, _)| part.lines.clone()).collect();
    let plan_position = |line: &RunLine| {
        (
            plan.devices.iter().position(|device| device.name == line.device),
            plan.tests.iter().position(|test| test.id == line.id),
        )
    };
    lines.sort_by_cached_key(plan_position);
    Ok((plan, lines))
}

/// Merges `parts` into a new results folder at `out`.
///
/// # Errors
/// Returns an error unless `parts` are all shards of one plan, or if the folder is not empty or cannot be
/// written.
pub fn merge_into(parts: &[Results], out: &Path) -> Result<(PlanRecord, Vec<RunLine>), MergeError> {
    let (plan, lines) = merge(parts)?;
    let mut folder = ResultsFolder::start(out, &plan)?;
    for line in &lines {
        folder.append(line)?;
    }
    folder.finish(&plan.complete_lines(lines.clone()))?;
    let machine_code: Vec<_> = parts.iter().flat_map(|part| part.machine_code.iter().cloned()).collect();
    folder.write_machine_code(&machine_code)?;
    Ok((plan, lines))
}

/// Parses the shard of a plan: its index, from 1, and the number of shards.
fn shard(plan: &PlanRecord) -> Option<(usize, usize)> {
    let (index, count) = plan.shard.as_deref()?.split_once('/')?;
    let (index, count) = (index.parse().ok()?, count.parse().ok()?);
    // The bound keeps the loop over missing shards short when a record is forged.
    ((1..=count).contains(&index) && count <= 1_000_000).then_some((index, count))
}

/// Environment variables that set the paths of drivers.
const DRIVER_FILE_VARIABLES: [&str; 3] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"];

/// Checks that every plan field on which a verdict depends is equal. The tests differ by construction.
fn check_same_settings(
    left: &PlanRecord,
    left_name: &str,
    right: &PlanRecord,
    right_name: &str,
) -> Result<(), MergeError> {
    let devices = |plan: &PlanRecord| {
        let names: Vec<String> = plan
            .devices
            .iter()
            .map(|device| {
                format!(
                    "{} ({}, {} {}, {})",
                    device.name,
                    device.device_name,
                    device.driver_name,
                    device.driver_info,
                    device.driver_version
                )
            })
            .collect();
        names.join(", ")
    };
    let stress = |plan: &PlanRecord| {
        let all: Vec<&str> = plan.devices.iter().map(|device| device.stress.as_str()).collect();
        format!("{} ({})", plan.stress, all.join("; "))
    };
    let count = |plan: &PlanRecord| shard(plan).map_or(0, |(_, count)| count).to_string();
    let models = |plan: &PlanRecord| {
        let models_on_device = |(index, device): (usize, &DeviceRecord)| {
            let models: BTreeSet<String> = plan
                .tests
                .iter()
                .filter_map(|test| test.models.get(index))
                .map(|model| format!("{} {}", model.name, model.hash))
                .collect();
            format!("{} on {}", models.into_iter().collect::<Vec<_>>().join(" and "), device.name)
        };
        // A shard without tests lists no models.
        (!plan.tests.is_empty())
            .then(|| plan.devices.iter().enumerate().map(models_on_device).collect::<Vec<_>>().join(", "))
    };
    let environment = |plan: &PlanRecord| {
        let environment = plan.environment.as_ref()?;
        // Paths of drivers may differ between machines; the devices show that the drivers are the same.
        let changes =
            environment.variables.iter().filter(|(name, _)| !DRIVER_FILE_VARIABLES.contains(&name.as_str()));
        let variables: Vec<String> = changes.map(|(name, value)| format!("{name}={value}")).collect();
        let (os, architecture) = (&environment.os, &environment.architecture);
        Some(format!("{os} {architecture} {}", variables.join(" ")).trim_end().to_owned())
    };
    let both_values = |property: &dyn Fn(&PlanRecord) -> Option<String>| {
        property(left).zip(property(right)).unwrap_or_default()
    };
    let (left_models, right_models) = both_values(&models);
    let (left_surroundings, right_surroundings) = both_values(&environment);
    let fields: [(&'static str, String, String); 9] = [
        ("schema", left.schema.clone(), right.schema.clone()),
        ("tool", left.tool.clone(), right.tool.clone()),
        ("number of shards", count(left), count(right)),
        ("seed", left.seed.to_string(), right.seed.to_string()),
        ("budget", left.budget.clone(), right.budget.clone()),
        ("stress", stress(left), stress(right)),
        ("devices", devices(left), devices(right)),
        ("models", left_models, right_models),
        ("environment", left_surroundings, right_surroundings),
    ];
    let conflict = |field, left_value: String, right_value: String| MergeError::Conflict {
        field,
        left: left_name.to_owned(),
        left_value: escape::escape_line(&left_value).into_owned(),
        right: right_name.to_owned(),
        right_value: escape::escape_line(&right_value).into_owned(),
    };
    for (field, left_value, right_value) in fields {
        if left_value != right_value {
            return Err(conflict(field, left_value, right_value));
        }
    }
    if left.devices != right.devices {
        return Err(conflict("devices", "one thing".to_owned(), "different stylesheets".to_owned()));
    }
    Ok(())
}

/// Restores the order of all tests: shards take the tests in turn.
fn restore_test_order(
    shards: &[(usize, usize, String, &Results, &PlanRecord)],
) -> Result<Vec<TestRecord>, MergeError> {
    let total: usize = shards.iter().map(|(.., plan)| plan.tests.len()).sum();
    for (index, count, name, _, plan) in shards {
        if plan.tests.len() != (total + count - index) / count {
            return Err(MergeError::TestCountMismatch(name.clone(), plan.tests.len()));
        }
    }
    let longest = shards.first().map_or(0, |(.., plan)| plan.tests.len());
    let tests: Vec<TestRecord> = (0..longest)
        .flat_map(|place| shards.iter().filter_map(move |(.., plan)| plan.tests.get(place).cloned()))
        .collect();
    let mut ids = BTreeSet::new();
    if let Some(twice) = tests.iter().find(|test| !ids.insert(&test.id)) {
        return Err(MergeError::SharedTest(escape::escape_line(&twice.id).into_owned()));
    }
    Ok(tests)
}
