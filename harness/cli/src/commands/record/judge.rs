//! Judges a recording: every kind of dispatch by its cases, and the order between commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ::record::hazards::{ResourceBytes, find_hazards};
use ::record::journal::{Command, DispatchResource, read_journals};
use ::record::timeline::build_timeline;
use campaign::contained_path::path_inside;
use campaign::parallel::process_in_order_on;
use frontend::grid::{self, accessed_bytes};
use frontend::{AnalysisOptions, inputs};
use results::wire::{HazardLine, RaceLine, RaceVerdict, RecordedKind, RecordingRecord, UnrecordedCommand};
use results::write::json::JsonLinesWriter;
use results::write::race::format_race;
use vk_litmus::{RaceDetector, ShaderInputs, ShaderModule, program};

use super::hazard_lines::{format_hazard, hazard_line};
use super::inventory::number_kinds;
use super::{PROCESS_FOLDER, RECORDING_FILE};
use crate::arguments::ListFormat;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, output_failure, print_message};

/// Upper bound on the steps of the walk that finds the bytes of a dispatch.
const ACCESS_STEPS: u64 = 50_000_000;

/// How a recording is judged.
#[derive(Clone, Copy, Debug)]
pub struct JudgeOptions {
    /// Output format.
    pub format: ListFormat,
    /// Time limit for each case.
    pub time_limit: Duration,
    /// Number of kinds judged in parallel [default: processors].
    pub jobs: Option<usize>,
}

/// The bytes that a case accesses.
struct CaseBytes {
    bytes: grid::AccessedBytes,
    /// True if walks with other contents of buffers access the same bytes.
    is_fixed: bool,
}

/// The answer about a kind.
struct KindAnswer {
    kind: u64,
    lines: Vec<RaceLine>,
    /// By number of the case; without those whose walk did not end.
    bytes: BTreeMap<u64, CaseBytes>,
}

/// Judges a recording and prints the answers.
///
/// # Errors
/// If the recording cannot be read.
pub fn judge_recording(folder: &Path, options: &JudgeOptions, quiet: bool) -> Result<Outcome, Failure> {
    let path = folder.join(RECORDING_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::file_error(&path, error))?;
    let recording: RecordingRecord = serde_json::from_str(&text).map_err(|error| {
        Failure::input_message(format!("{}: {error}; record the program again", path.display()))
    })?;
    let detector = RaceDetector::new().map_err(program::into_failure)?.time_limit(options.time_limit);
    let (mut out, mut outcome) = (StandardOutput::new(), Outcome::Success);
    let (mut verdicts, mut accessed) = (BTreeMap::<String, u64>::new(), BTreeMap::new());
    let workers = options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let judge = |kind: &RecordedKind| judge_kind(folder, kind, &detector);
    process_in_order_on(workers, &recording.kinds, judge, |answer: Result<KindAnswer, Failure>| {
        let answer = answer?;
        for line in &answer.lines {
            *verdicts.entry(line.verdict.to_string()).or_default() += 1;
            outcome.escalate_to(match line.verdict {
                RaceVerdict::Racy => Outcome::RuleBroken,
                RaceVerdict::Clean => Outcome::Success,
                RaceVerdict::Refused | RaceVerdict::Undecided | RaceVerdict::NeedsInputs => {
                    Outcome::Environment
                }
            });
            match options.format {
                ListFormat::Json => JsonLinesWriter::new(&mut out).write(line).map_err(output_failure)?,
                ListFormat::Text if line.verdict == RaceVerdict::Clean && line.findings.is_empty() => {}
                ListFormat::Text => out.print(&format_race(line))?,
            }
        }
        accessed.insert(answer.kind, answer.bytes);
        Ok::<(), Failure>(())
    })?;
    let hazards = hazards_of(folder, &accessed)?;
    for line in &hazards {
        outcome.escalate_to(Outcome::RuleBroken);
        match options.format {
            ListFormat::Json => JsonLinesWriter::new(&mut out).write(line).map_err(output_failure)?,
            ListFormat::Text => out.print(&format_hazard(line))?,
        }
    }
    if options.format == ListFormat::Text {
        out.print(&summarize(&recording, &verdicts, hazards.len()))?;
    } else if !quiet {
        print_message(&summarize(&recording, &verdicts, hazards.len()));
    }
    Ok(outcome)
}

/// Analyses the cases of a kind.
fn judge_kind(folder: &Path, kind: &RecordedKind, detector: &RaceDetector) -> Result<KindAnswer, Failure> {
    let mut answer = KindAnswer { kind: kind.kind, lines: Vec::new(), bytes: BTreeMap::new() };
    let name = format!("kinds/{}/module.spv", kind.kind);
    let module = folder.join(&name);
    let module_bytes = std::fs::read(&module).map_err(|error| Failure::file_error(&module, error))?;
    for case in &kind.cases {
        let path = folder.join(case);
        let text = std::fs::read_to_string(&path).map_err(|error| Failure::file_error(&path, error))?;
        let read_file = |name: &str| {
            let path = path_inside(&path.with_file_name(""), name)?;
            std::fs::read(path).map_err(|error| error.to_string())
        };
        let inputs = ShaderInputs::from_case(&text, &read_file).map_err(program::into_failure)?;
        let shader = ShaderModule::from_spirv(&name, module_bytes.clone());
        answer.lines.extend(detector.find_races(&shader, &inputs).into_iter().map(|found| found.line));
        let number =
            Path::new(case).file_stem().and_then(|stem| stem.to_str()?.strip_prefix("case-")?.parse().ok());
        let case = inputs::parse_case_file(&text, &read_file).ok();
        if let (Some(number), Some(case)) = (number, case)
            && let Some(bytes) = walk_case(&module_bytes, &case.options)
        {
            answer.bytes.insert(number, bytes);
        }
    }
    Ok(answer)
}

/// Returns the bytes that a case accesses, if its walk ends.
fn walk_case(module: &[u8], options: &AnalysisOptions) -> Option<CaseBytes> {
    let module = inputs::read_bound_module(module, options).ok()?;
    let walk = |options: &AnalysisOptions| {
        accessed_bytes(&module, options, ACCESS_STEPS).ok().filter(|bytes| bytes.is_complete)
    };

    let bytes = walk(options)?;
    let has_equal_bytes = |word: &str| {
        let mut other = options.clone();
        let buffers = other.buffers.values_mut().chain(other.addresses.iter_mut().map(|one| &mut one.bytes));
        buffers
            .for_each(|buffer| *buffer = inputs::fill_bytes(word, buffer.len() as u64).unwrap_or_default());
        walk(&other).is_some_and(|other| other == bytes)
    };
    let is_fixed = options.images.is_empty() && ["zeros", "random"].into_iter().all(has_equal_bytes);
    Some(CaseBytes { bytes, is_fixed })
}

/// Finds the hazards of each process.
fn hazards_of(
    folder: &Path,
    accessed: &BTreeMap<u64, BTreeMap<u64, CaseBytes>>,
) -> Result<Vec<HazardLine>, Failure> {
    let processes = read_journals(&folder.join(PROCESS_FOLDER)).map_err(Failure::input_error)?;
    let numbers = number_kinds(&processes);
    let mut lines = Vec::new();
    for process in &processes {
        let timeline = build_timeline(&process.events);
        // The push constants of each case. A kind has the same number in one process as its folder had.
        let pushed: BTreeMap<(u64, u64), u64> = timeline
            .commands
            .iter()
            .filter_map(|executed| match executed.command {
                Command::Dispatch { kind, case: Some(case), push, .. } => Some(((*kind, *case), *push)),
                _ => None,
            })
            .collect();
        let bytes_of = |command: &Command, resource: &DispatchResource| {
            let Command::Dispatch { kind, case, push, .. } = command else { return None };
            let cases = accessed.get(numbers.get(&(process.process, *kind))?)?;
            let own = case.and_then(|case| cases.get(&case));
            let has_equal_push = |case: &&u64| pushed.get(&(*kind, **case)) == Some(push);
            let shared = || {
                let equal = cases.iter().find(|(case, bytes)| bytes.is_fixed && has_equal_push(case));
                equal.map(|(_, bytes)| bytes)
            };
            let bytes = &own.or_else(shared)?.bytes;
            let access = match (resource.binding, resource.push) {
                (Some(binding), _) => {
                    let place = (resource.set.unwrap_or(0), binding, resource.element.unwrap_or(0));
                    bytes.bindings.get(&place)?
                }
                (None, Some(push)) => bytes.addresses.get(&format!("push{push}"))?,
                (None, None) => return None,
            };
            let (reads, writes) = (access.reads.clone(), access.writes.clone());
            Some(ResourceBytes { reads, writes })
        };
        let hazards = find_hazards(&timeline, &process.events, bytes_of);
        lines.extend(hazards.iter().map(|hazard| hazard_line(process, &timeline, hazard)));
    }
    Ok(lines)
}

/// Formats the counts of a recording.
fn summarize(recording: &RecordingRecord, verdicts: &BTreeMap<String, u64>, hazards: usize) -> String {
    let devices: Vec<&str> =
        recording.processes.iter().flat_map(|process| &process.devices).map(String::as_str).collect();
    let without_case: u64 =
        recording.kinds.iter().filter(|kind| kind.cases.is_empty()).map(|kind| kind.dispatches).sum();
    let mut text = format!(
        "{} dispatches of {} kinds on {}\n",
        recording.dispatches,
        recording.kinds.len(),
        if devices.is_empty() { "no device".to_owned() } else { devices.join(", ") }
    );
    for (verdict, count) in verdicts {
        text += &format!("  {count:>6}  {verdict}\n");
    }
    if without_case > 0 {
        text += &format!("  {without_case:>6}  dispatches without recorded contents\n");
    }
    text += &format!("  {hazards:>6}  hazards between commands\n");
    for UnrecordedCommand { what, count } in &recording.unrecorded {
        text += &format!("  {count:>6}  {what}: not recorded\n");
    }
    for process in recording.processes.iter().filter(|process| process.is_truncated) {
        text += &format!(
            "  the journal of process {} has no end: it crashed, or the disk was full\n",
            process.process
        );
    }
    text
}
