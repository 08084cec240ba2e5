//! Readers of results: folders, journals, lines of `run --format json`, and baselines, of this and older
//! schemas.
//!
//! Files are untrusted. The readers reject a record of a newer schema or another tool, counts that do not add
//! up, a verdict that does not follow from the counts, a test that is not in the plan or occurs twice, and a
//! record changed after it was written; the error names the line. Reports, diffs, merges and resumed runs all
//! read results through this module.

mod check;
mod replay;
mod unique_keys;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub use check::MAX_INSTANCES_PER_SECOND;

use crate::checksum::verify_checksum;
use crate::escape;
use crate::wire::{
    BASELINE_SCHEMA, BaselineRecord, DEFAULT_STRESS, DeviceRecord, MACHINE_CODE_SCHEMA, MachineCodeLine,
    PLAN_SCHEMA, PLAN_SCHEMA_WITHOUT_CHECKSUMS, PlanRecord, RUN_SCHEMA, RunLine,
};

/// File name of the plan.
pub const PLAN: &str = "plan.json";
/// File name of the journal.
pub const JOURNAL: &str = "run.jsonl";
/// File name of the machine code of violating tests.
pub const MACHINE_CODE: &str = "machine-code.jsonl";

/// Upper limit of the instances of one dispatch: more than the result memory of any device holds.
pub const MAX_INSTANCES_PER_DISPATCH: u64 = 1 << 32;

/// Largest size of a record in bytes.
const MAX_RECORD_BYTES: u64 = 64 << 20;
/// Largest size of a plan, which has an entry for each test: a million tests fit.
const MAX_PLAN_BYTES: u64 = 1 << 30;

/// The content of a results folder or file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Path that was read.
    pub source: PathBuf,
    /// The plan; `None` if the file has only run lines.
    pub plan: Option<PlanRecord>,
    /// The verdicts in plan order; without a plan, in file order.
    pub lines: Vec<RunLine>,
    /// An incomplete last line, which was omitted: its writer was killed while writing.
    pub incomplete: Option<IncompleteLine>,
    /// The machine code of violating tests; only folders have it.
    pub machine_code: Vec<MachineCodeLine>,
}

impl Results {
    /// Returns a verdict for every device and test of the plan, in plan order; a line with the reason
    /// `missing` for each without one.
    pub fn complete_lines(&self) -> Vec<RunLine> {
        let Some(plan) = &self.plan else { return self.lines.clone() };
        plan.complete_lines(self.lines.clone())
    }

    /// Returns the number of verdicts of the plan that are missing.
    pub fn count_missing(&self) -> usize {
        let planned = self.plan.as_ref().map_or(0, |plan| plan.tests.len() * plan.devices.len());
        planned.saturating_sub(self.lines.len())
    }
}

/// An incomplete last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncompleteLine {
    /// Line number, from 1.
    pub line: usize,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Why results cannot be read. Quoted file content is escaped.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum ReadError {
    /// The operating system returned an error.
    #[error("{}: {source}", escape_path(path))]
    Io { path: PathBuf, source: io::Error },
    /// The path is neither a folder nor a regular file, for example a pipe.
    #[error("{}: neither a folder nor a regular file", escape_path(path))]
    NotAFile { path: PathBuf },
    /// The folder has no plan.
    #[error("{} is not a results folder: it holds no {PLAN}", escape_path(path))]
    NotResults { path: PathBuf },
    /// The file has no record.
    #[error("{}: no results: the file contains no run record", escape_path(path))]
    Empty { path: PathBuf },
    /// A record is not valid JSON of its schema, or contradicts itself.
    #[error("{}:{line}: {what}", escape_path(path))]
    Malformed {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The mistake.
        what: String,
    },
    /// A record has a newer schema than this version reads.
    #[error(
        "{}:{line}: a record of version `{found}`; this tool reads up to `{known}`: a newer one wrote it",
        escape_path(path)
    )]
    Newer {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        found: String,
        known: &'static str,
    },
}

impl ReadError {
    /// Returns true if the user's input caused the error, rather than the system.
    pub fn is_input(&self) -> bool {
        match self {
            ReadError::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
            _ => true,
        }
    }
}

fn escape_path(path: &Path) -> String {
    escape::escape_line(&path.to_string_lossy()).into_owned()
}

/// Reads a results folder, a journal, saved lines of `run --format json`, or a baseline.
///
/// # Errors
/// Returns an error if `path` is none of these.
pub fn read_results(path: &Path) -> Result<Results, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        return read_folder(path);
    }
    // Opening a pipe blocks until a process writes to it.
    if !metadata.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let found = read_lines(path, BufReader::new(open_regular_file(path)?), None)?;
    if found.plan.is_none() && found.lines.is_empty() && found.incomplete.is_none() {
        return Err(ReadError::Empty { path: path.to_owned() });
    }
    Ok(found)
}

fn read_folder(path: &Path) -> Result<Results, ReadError> {
    let plan = read_plan(path)?.ok_or_else(|| ReadError::NotResults { path: path.to_owned() })?;
    let journal = path.join(JOURNAL);
    let mut found = match open_if_exists(&journal)? {
        Some(file) => read_lines(&journal, BufReader::new(file), Some(plan))?,
        // The run was killed before its first verdict, or the journal is lost.
        None => Results { plan: Some(plan), ..Results::default() },
    };
    found.source = path.to_owned();
    found.machine_code = read_machine_code(path)?;
    Ok(found)
}

/// Reads the plan of a results folder; `None` if it has none.
///
/// # Errors
/// Returns an error if the file is not an unchanged plan, or cannot be read.
pub fn read_plan(folder: &Path) -> Result<Option<PlanRecord>, ReadError> {
    let path = folder.join(PLAN);
    let Some(file) = open_if_exists(&path)? else { return Ok(None) };
    let bytes = read_to_limit(file, &path, MAX_PLAN_BYTES)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| ReadError::Malformed {
        path: path.clone(),
        line: error.line().max(1),
        what: escape::escape_line(&error.to_string()).into_owned(),
    })?;
    parse_plan(&path, value).map(Some)
}

/// Reads the machine code of violating tests from a results folder; empty if there is none.
///
/// # Errors
/// Returns an error if the file has other content or cannot be read.
pub fn read_machine_code(folder: &Path) -> Result<Vec<MachineCodeLine>, ReadError> {
    let path = folder.join(MACHINE_CODE);
    let Some(file) = open_if_exists(&path)? else { return Ok(Vec::new()) };
    let bytes = read_to_limit(file, &path, MAX_RECORD_BYTES)?;
    let mut found: Vec<MachineCodeLine> = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let malformed = |error: &serde_json::Error| ReadError::Malformed {
            path: path.clone(),
            line: number,
            what: format!("not a record of machine code: {}", escape::escape_line(&error.to_string())),
        };
        let value: Value = serde_json::from_slice(line).map_err(|error| malformed(&error))?;
        check_version(&path, number, &value, MACHINE_CODE_SCHEMA)?;
        let line: MachineCodeLine = serde_json::from_value(value).map_err(|error| malformed(&error))?;
        if found.iter().any(|known| (&known.id, &known.device) == (&line.id, &line.device)) {
            return Err(ReadError::Malformed {
                path,
                line: number,
                what: format!(
                    "a second record of `{}` on `{}`",
                    escape::escape_line(&line.id),
                    escape::escape_line(&line.device)
                ),
            });
        }
        found.push(line);
    }
    Ok(found)
}

fn open_regular_file(path: &Path) -> Result<File, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    File::open(path).map_err(io)
}

/// Opens a regular file; `None` if the path does not exist.
fn open_if_exists(path: &Path) -> Result<Option<File>, ReadError> {
    match open_regular_file(path) {
        Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn read_to_limit(file: File, path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > most {
        return Err(too_long_error(path, 1, most));
    }
    Ok(bytes)
}

fn too_long_error(path: &Path, line: usize, most: u64) -> ReadError {
    let what = format!("longer than {} MiB", most >> 20);
    ReadError::Malformed { path: path.to_owned(), line, what }
}

fn parse_plan(path: &Path, value: Value) -> Result<PlanRecord, ReadError> {
    let malformed = |what: String| ReadError::Malformed { path: path.to_owned(), line: 1, what };
    check_version(path, 1, &value, PLAN_SCHEMA)?;
    let plan: PlanRecord = serde_json::from_value(value)
        .map_err(|error| malformed(format!("not a plan: {}", escape::escape_line(&error.to_string()))))?;
    let mut devices = BTreeSet::new();
    if let Some(twice) = plan.devices.iter().find(|device| !devices.insert(&device.name)) {
        return Err(malformed(format!(
            "device `{}` occurs twice in the plan",
            escape::escape_line(&twice.name)
        )));
    }
    let mut tests = BTreeSet::new();
    if let Some(twice) = plan.tests.iter().find(|test| !tests.insert(&test.id)) {
        return Err(malformed(format!("test `{}` occurs twice in the plan", escape::escape_line(&twice.id))));
    }
    let devices = plan.devices.len();
    if let Some(test) = plan.tests.iter().find(|test| test.models.len() != devices) {
        let (test, models) = (escape::escape_line(&test.id), test.models.len());
        return Err(malformed(format!("test `{test}` has {models} models for {devices} devices")));
    }
    match plan.hash() {
        Ok(hash) if hash == plan.plan => {}
        _ => {
            return Err(malformed("the plan was changed after it was written: its hash differs".to_owned()));
        }
    }
    Ok(plan)
}

/// Checks that a record has `newest_schema` or an older version of it.
fn check_version(path: &Path, line: usize, value: &Value, known: &'static str) -> Result<(), ReadError> {
    let malformed = |what: String| ReadError::Malformed { path: path.to_owned(), line, what };
    let Some(found) = value.get("schema").and_then(Value::as_str) else {
        return Err(malformed(format!("not a record of vk-litmus: no `schema` (expected `{known}`)")));
    };
    let (kind, newest) = known.rsplit_once('/').unwrap_or((known, "1"));
    let newest: u32 = newest.parse().unwrap_or(1);
    let number = found.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
    match number.and_then(|number| number.parse::<u32>().ok()) {
        Some(number) if (1..=newest).contains(&number) => Ok(()),
        Some(number) if number > newest => Err(ReadError::Newer {
            path: path.to_owned(),
            line,
            found: escape::escape_line(found).into_owned(),
            known,
        }),
        _ => Err(malformed(format!("a record of kind `{}`, expected `{known}`", escape::escape_line(found)))),
    }
}

/// Reads run lines, preceded by a header if the file is a baseline. With a plan, each line must belong to it.
///
/// # Errors
/// Returns an error if a line is not a run record, contradicts itself or is not in the plan.
pub fn read_lines(
    path: &Path,
    mut reader: impl BufRead,
    mut plan: Option<PlanRecord>,
) -> Result<Results, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let mut lines: Vec<RunLine> = Vec::new();
    let mut plan_index = PlanIndex::new(plan.as_ref());
    let has_sums = |plan: &PlanRecord| plan.schema != PLAN_SCHEMA_WITHOUT_CHECKSUMS;
    let mut has_checksums = plan.as_ref().is_some_and(has_sums);
    let mut incomplete = None;
    let mut number = 0;
    loop {
        let mut bytes = Vec::new();
        number += 1;
        let read = (&mut reader).take(MAX_RECORD_BYTES + 1).read_until(b'\n', &mut bytes).map_err(io)?;
        if read == 0 {
            break;
        }
        if read as u64 > MAX_RECORD_BYTES {
            return Err(too_long_error(path, number, MAX_RECORD_BYTES));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let malformed = |what: String| ReadError::Malformed { path: path.to_owned(), line: number, what };
        let has_line_end = bytes.last() == Some(&b'\n');
        let record = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let value: Value = match unique_keys::parse_unique(record.trim_ascii_end()) {
            // The writer was killed in the middle of the line.
            Err(_) if !has_line_end => {
                incomplete = Some(IncompleteLine { line: number, bytes: bytes.len() });
                break;
            }
            Ok(_) if !has_line_end && has_checksums => {
                incomplete = Some(IncompleteLine { line: number, bytes: bytes.len() });
                break;
            }
            Ok(value) => value,
            Err(error) => {
                let text = error.to_string();
                let text = text.split(" at line ").next().unwrap_or_default();
                return Err(malformed(format!(
                    "not a record (column {}): {}",
                    error.column(),
                    escape::escape_line(text)
                )));
            }
        };
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
        if number == 1 && plan.is_none() && schema.starts_with("vk-litmus/baseline/") {
            let header = baseline_header(path, value)?;
            plan_index = PlanIndex::new(Some(&header));
            has_checksums = has_sums(&header);
            plan = Some(header);
            continue;
        }
        check_version(path, number, &value, RUN_SCHEMA)?;
        if verify_checksum(record).map_or(has_checksums, |whole| !whole) {
            return Err(malformed(
                "the record was changed after it was written: its checksum differs or is missing".to_owned(),
            ));
        }
        let line = parse_run_line(value).map_err(malformed)?;
        plan_index.add_line(&line, number).map_err(malformed)?;
        lines.push(line);
    }
    if plan.is_some() {
        lines.sort_by_key(|line| plan_index.position(line));
    }
    Ok(Results { source: path.to_owned(), plan, lines, incomplete, machine_code: Vec::new() })
}

fn baseline_header(path: &Path, value: Value) -> Result<PlanRecord, ReadError> {
    check_version(path, 1, &value, BASELINE_SCHEMA)?;
    let inner = value.get("plan").cloned().unwrap_or_default();
    let checked = parse_plan(path, inner)?;
    let header: BaselineRecord = serde_json::from_value(value).map_err(|error| ReadError::Malformed {
        path: path.to_owned(),
        line: 1,
        what: format!("not a baseline: {}", escape::escape_line(&error.to_string())),
    })?;
    debug_assert_eq!(header.plan, checked);
    Ok(header.plan)
}

/// Index of the plan: positions of devices and tests, and the verdicts read so far.
struct PlanIndex {
    plan: Option<PlanRecord>,
    devices: BTreeMap<String, usize>,
    tests: BTreeMap<String, usize>,
    line_numbers: BTreeMap<(String, String), usize>,
}

impl PlanIndex {
    fn new(plan: Option<&PlanRecord>) -> PlanIndex {
        let devices = plan.iter().flat_map(|plan| &plan.devices).map(|device| device.name.clone());
        let tests = plan.iter().flat_map(|plan| &plan.tests).map(|test| test.id.clone());
        PlanIndex {
            devices: devices.zip(0..).collect(),
            tests: tests.zip(0..).collect(),
            plan: plan.cloned(),
            line_numbers: BTreeMap::new(),
        }
    }

    fn position(&self, line: &RunLine) -> (usize, usize) {
        let place = |places: &BTreeMap<String, usize>, name| places.get(name).copied().unwrap_or(usize::MAX);
        (place(&self.devices, &line.device), place(&self.tests, &line.id))
    }

    fn add_line(&mut self, line: &RunLine, number: usize) -> Result<(), String> {
        let describe =
            || format!("`{}` on `{}`", escape::escape_line(&line.id), escape::escape_line(&line.device));
        if let Some(plan) = &self.plan {
            let (device, test) = self.position(line);
            let (Some(record), Some(test)) = (plan.devices.get(device), plan.tests.get(test)) else {
                return Err(format!("a verdict for {}, which is not in the plan", describe()));
            };
            if differs(&line.hashes.test, &test.hash) {
                return Err(format!("a verdict for {}, whose text differs from the plan's", describe()));
            }
            if differs(&line.name, &test.name) {
                return Err(format!("a verdict for {}, whose name differs from the plan's", describe()));
            }
            let planned = test.models.get(device);
            if planned
                .is_none_or(|model| model.name != line.model || differs(&line.hashes.model, &model.hash))
            {
                let model = escape::escape_line(&line.model);
                return Err(format!(
                    "a verdict for {} by `{model}`, which is not the plan's model",
                    describe()
                ));
            }
            if let Some((field, found, planned)) = find_foreign_field(plan, record, line) {
                let (found, planned) = (escape::escape_line(&found), escape::escape_line(&planned));
                return Err(format!(
                    "a verdict for {} of another run: its `{field}` is `{found}`, the plan's is \
                     `{planned}`",
                    describe()
                ));
            }
        }
        match self.line_numbers.insert((line.device.clone(), line.id.clone()), number) {
            Some(earlier) => {
                Err(format!("a second verdict for {}; the first is in line {earlier}", describe()))
            }
            None => Ok(()),
        }
    }
}

/// Returns true if the record does not have the value of the plan. Older plans lack newer fields, like their
/// records.
fn differs(found: &str, planned: &str) -> bool {
    !planned.is_empty() && found != planned
}

/// Returns the first field in which `line` cannot belong to a run of `plan` on `device`, with the found and
/// the planned value.
///
/// The plan has no hash of compiled shaders; a resumed run compiles them again and compares.
fn find_foreign_field(
    plan: &PlanRecord,
    device: &DeviceRecord,
    line: &RunLine,
) -> Option<(&'static str, String, String)> {
    let driver = |name: &str, info: &str, id: i32, version: u32| format!("{name} {info} ({id}, {version})");
    let found = line.driver.as_ref().map(|found| driver(&found.name, &found.info, found.id, found.version));
    let planned = driver(&device.driver_name, &device.driver_info, device.driver_id, device.driver_version);
    let found = found.unwrap_or_default();
    if differs(&found, &planned) {
        return Some(("driver", found, planned));
    }
    if differs(&line.tool, &plan.tool) {
        return Some(("tool", line.tool.clone(), plan.tool.clone()));
    }
    // A plan lists the stress names of all its devices, or states that each device uses its default.
    let is_planned = plan.stress == line.stress
        || plan.stress == DEFAULT_STRESS
        || plan.stress.split(',').any(|one| one == line.stress);
    if !is_planned && differs(&line.stress, &plan.stress) {
        return Some(("stress", line.stress.clone(), plan.stress.clone()));
    }
    // A skipped test of an older schema has no seed.
    if line.seed != plan.seed && !line.stress.is_empty() {
        return Some(("seed", line.seed.to_string(), plan.seed.to_string()));
    }
    // Dispatches in flight may exceed the budget.
    let max_instances =
        plan.instance_budget().map(|planned| planned.saturating_add(MAX_INSTANCES_PER_DISPATCH));
    if max_instances.is_some_and(|most| line.instances > most) {
        return Some(("instances", line.instances.to_string(), plan.budget.clone()));
    }
    let replayed = replay::number_after_flag(line, "--instances")?;
    let is_other = plan.instance_budget().is_some_and(|planned| planned != replayed);
    is_other.then(|| ("replay", format!("--instances {replayed}"), plan.budget.clone()))
}

/// Converts a JSON value of any supported schema to a record.
fn parse_run_line(mut value: Value) -> Result<RunLine, String> {
    if let Value::Object(fields) = &mut value {
        upgrade_fields(fields)?;
    }
    let line: RunLine = serde_json::from_value(value)
        .map_err(|error| format!("not a run record: {}", escape::escape_line(&error.to_string())))?;
    check::check_invariants(&line)?;
    Ok(line)
}

/// Adds the fields that a skipped test may omit and those that older schemas lack.
fn upgrade_fields(fields: &mut Map<String, Value>) -> Result<(), String> {
    let skipped = fields.get("verdict").and_then(Value::as_str) == Some("skipped");
    let defaults = [
        ("reason", Value::Null),
        ("detail", Value::Null),
        ("exercised", json!(false)),
        ("instances", json!(0)),
        ("interleaved", json!(0)),
        ("not_executed", json!(0)),
        ("unresolved", json!(0)),
        ("seconds", json!(0.0)),
        ("outcomes", json!([])),
        ("unexpected", json!([])),
        ("seed", json!(0)),
        ("stress", json!("")),
        ("replay", json!("")),
    ];
    for (name, default) in defaults {
        // These two may be absent in every record.
        if skipped || matches!(name, "reason" | "detail") {
            fields.entry(name).or_insert(default);
        }
    }
    if let Some(Value::String(seed)) = fields.get("seed") {
        let seed: u64 =
            seed.parse().map_err(|_| format!("seed `{}` is not a number", escape::escape_line(seed)))?;
        fields.insert("seed".to_owned(), json!(seed));
    }
    if let Some(stress) = fields.get("stress").filter(|stress| !stress.is_string()) {
        let text = stress.to_string();
        fields.insert("stress".to_owned(), Value::String(text));
    }
    Ok(())
}
