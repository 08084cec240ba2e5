//! Runs the test binaries of the workspace, several at a time, and records their times.
//!
//! `cargo test` runs binaries one after another, so a binary whose tests wait for devices leaves processors
//! idle. This module runs one binary per processor in parallel, each with one thread per processor. The
//! slowest of the previous run start first, and tests that wait on drivers run alone after them. Doc tests run
//! beside them, through cargo.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::error::ChoreError;
use crate::tidy::source::SourceReadError;
use crate::times::{self, BinaryTime, TestTime};

/// The list of slow tests.
pub const SLOW_TESTS: &str = "ci/slow-tests";

/// The packages without fast tests: their tests start programs, drivers or workers.
const WITHOUT_FAST_TESTS: [&str; 4] = ["vk-litmus", "campaign", "device", "runner"];

/// The test binaries that start first, if there are no times of an earlier run.
const SLOWEST_BINARIES: [&str; 6] =
    ["vk-litmus all", "model all", "sim all", "shaders all", "analysis all", "model lib"];

/// The test binaries that run last and alone: invocations wait for each other on drivers that share the processors, which
/// takes several times as long next to other tests.
const EXCLUSIVE_BINARIES: [&str; 1] = ["runner drivers"];

/// The longest test binary. Its tests wait for the programs that they start, so it has one more thread than processors: the
/// processors stay busy when the other binaries have ended.
const WAITING_BINARY: &str = "vk-litmus all";

/// Environment of the tests, for variables that are not set: snapshots are compared and never written, and
/// random tests have reduced counts and a fixed seed. `ci/soak` sets the full counts.
const TEST_ENVIRONMENT: [(&str, &str); 4] = [
    ("INSTA_UPDATE", "no"),
    ("PROPTEST_RNG_SEED", "1"),
    ("PROPTEST_CASES", "16"),
    ("VK_LITMUS_FUZZ_CASES", "1000"),
];

/// Returns the names in a list with their line numbers from 1; lines that begin with `#` are comments.
pub fn parse_name_list(list: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = list.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| (index + 1, line))
}

/// Runs every test of the workspace, or of the given packages.
pub fn run_all(root: &Path, packages: &[String]) -> Result<(), ChoreError> {
    let selection = package_arguments(packages);
    let mut doc_command = cargo_command(root);
    doc_command.arg("test").args(&selection).args(["--doc", "--no-fail-fast"]);
    doc_command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // They run beside the binaries: cargo compiles the examples of one package after another.
    let doc_tests = doc_command.spawn().map_err(ChoreError::Start)?;
    let outcome = run_binaries(root, &selection, &|_| true, &[]);
    let doc_output = doc_tests.wait_with_output().map_err(ChoreError::Start)?;
    let outcome = outcome?;
    let text = String::from_utf8_lossy(&doc_output.stdout);
    if !doc_output.status.success() {
        println!("{text}");
    }
    let (passed, failed) = (sum_counts(&text, "passed"), sum_counts(&text, "failed"));
    println!("{} passed, {} failed", outcome.passed + passed, outcome.failed + failed);
    match (outcome.failed_binaries, doc_output.status.success()) {
        (0, true) => Ok(()),
        (0, false) => Err(ChoreError::Command(doc_output.status)),
        (binaries, _) => Err(ChoreError::Tests(binaries)),
    }
}

/// Returns the arguments of cargo for the given packages, or for all.
fn package_arguments(packages: &[String]) -> Vec<String> {
    match packages {
        [] => vec!["--workspace".to_owned()],
        packages => packages.iter().flat_map(|name| ["-p".to_owned(), name.clone()]).collect(),
    }
}

/// Returns the sum of the counts before a word in the output of test harnesses.
fn sum_counts(output: &str, word: &str) -> usize {
    output.lines().map(|line| times::parse_count(line, word)).sum()
}

/// Runs the tests that need no device, except those in `ci/slow-tests`; of the given packages, or of all.
///
/// All packages are built as `cargo test --workspace` builds them. Without the others, their dependencies would have
/// fewer features and be compiled again.
pub fn run_fast(root: &Path, packages: &[String]) -> Result<(), ChoreError> {
    let path = root.join(SLOW_TESTS);
    let list = fs::read_to_string(&path).map_err(|source| SourceReadError { path, source })?;
    let skipped: Vec<&str> = parse_name_list(&list).map(|(_, name)| name).collect();
    let outcome = run_binaries(
        root,
        &package_arguments(packages),
        &|binary| binary.has_fast_tests(packages),
        &skipped,
    )?;
    println!("{} passed, {} failed", outcome.passed, outcome.failed);
    if outcome.failed_binaries == 0 { Ok(()) } else { Err(ChoreError::Tests(outcome.failed_binaries)) }
}

/// A message of `cargo --message-format=json` about one built target; other messages lack these fields.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    package_id: String,
    profile: ArtifactProfile,
    target: ArtifactTarget,
}

#[derive(Deserialize)]
struct ArtifactProfile {
    test: bool,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    name: String,
    kind: Vec<String>,
}

/// An executable that runs tests.
struct TestBinary {
    /// Package and target, as in `model all` and `model lib`.
    name: String,
    executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
}

impl TestBinary {
    /// Returns true if its package was given or, if none was given, has fast tests.
    fn has_fast_tests(&self, packages: &[String]) -> bool {
        let package = self.name.split(' ').next().unwrap_or_default();
        !packages.is_empty() || !WITHOUT_FAST_TESTS.contains(&package)
    }
}

/// The sums over all binaries of a run.
#[derive(Default)]
struct TestRunOutcome {
    passed: usize,
    failed: usize,
    failed_binaries: usize,
    binaries: Vec<BinaryTime>,
    tests: Vec<TestTime>,
}

/// Builds the test binaries of a selection and runs the tests of the wanted ones, without the skipped tests.
fn run_binaries(
    root: &Path,
    selection: &[String],
    is_wanted: &dyn Fn(&TestBinary) -> bool,
    skipped: &[&str],
) -> Result<TestRunOutcome, ChoreError> {
    let mut binaries = build_binaries(root, selection)?;
    binaries.retain(is_wanted);
    let folder = times::times_folder(root);
    let previous_times: BTreeMap<String, f64> =
        times::read_binaries(&folder).into_iter().map(|time| (time.name, time.wall)).collect();
    binaries.sort_by(|one, other| {
        let rank = |binary: &TestBinary| {
            let rank_in_list = SLOWEST_BINARIES
                .iter()
                .position(|name| *name == binary.name)
                .unwrap_or(SLOWEST_BINARIES.len());
            (-previous_times.get(&binary.name).copied().unwrap_or_default(), rank_in_list)
        };
        rank(one).partial_cmp(&rank(other)).unwrap_or(std::cmp::Ordering::Equal)
    });
    binaries.reverse();
    let (exclusive, binaries): (Vec<_>, Vec<_>) =
        binaries.into_iter().partition(|binary| EXCLUSIVE_BINARIES.contains(&binary.name.as_str()));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (waiting, outcome) = (Mutex::new(binaries), Mutex::new(TestRunOutcome::default()));
    let error = Mutex::new(None);
    let threads = |binary: &TestBinary| processors + usize::from(binary.name == WAITING_BINARY);
    let run = |binary: &TestBinary| match run_binary(binary, threads(binary), skipped) {
        Ok(finished) => {
            print_result(&mut outcome.lock().unwrap_or_else(PoisonError::into_inner), binary, finished);
        }
        Err(failure) => *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure),
    };
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some(binary) = next else { return };
                run(&binary);
            }
        };
        (0..processors).for_each(|_| {
            scope.spawn(work);
        });
    });
    exclusive.iter().for_each(run);
    if let Some(error) = error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    times::write_tables(&folder, &outcome.binaries, &outcome.tests)?;
    Ok(outcome)
}

/// Returns the test binaries of a selection of packages, built by cargo.
fn build_binaries(root: &Path, selection: &[String]) -> Result<Vec<TestBinary>, ChoreError> {
    let built = cargo_command(root)
        .arg("test")
        .args(selection)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(ChoreError::Start)?;
    if !built.status.success() {
        return Err(ChoreError::Command(built.status));
    }
    let text = String::from_utf8_lossy(&built.stdout);
    let artifacts = text.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    Ok(artifacts.filter(|artifact| artifact.profile.test).filter_map(to_test_binary).collect())
}

/// Returns the test binary of a built target that has an executable.
fn to_test_binary(artifact: Artifact) -> Option<TestBinary> {
    let folder = artifact.manifest_path.parent()?.to_owned();
    // `path+file:///…/harness/cli#vk-litmus@0.1.0`, or without a name if it is that of the folder.
    let id = artifact.package_id.rsplit(['#', '/']).next()?;
    let package = match id.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => folder.file_name()?.to_string_lossy().into_owned(),
    };
    let target = match artifact.target.kind.first().map(String::as_str) {
        Some("test" | "bench" | "example") => artifact.target.name,
        Some(kind) => kind.to_owned(),
        None => return None,
    };
    Some(TestBinary { name: format!("{package} {target}"), executable: artifact.executable?, folder })
}

struct BinaryResult {
    success: bool,
    output: String,
    wall: Duration,
    processor: Option<Duration>,
}

/// Runs a test binary to its end, with its output captured.
fn run_binary(binary: &TestBinary, threads: usize, skipped: &[&str]) -> Result<BinaryResult, ChoreError> {
    // Both streams go to one file, so they stay in order; a file never blocks the tests.
    let log = tempfile::tempfile().map_err(ChoreError::Start)?;
    let duplicate = || log.try_clone().map_err(ChoreError::Start);
    let mut command = Command::new(&binary.executable);
    // Times of tests are an unstable option of the test harness, which stable compilers accept with this
    // variable. Values follow a `=`, because a binary with another harness would take a separate word for a
    // filter.
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time", "--exact"]);
    command
        .arg(format!("--test-threads={threads}"))
        .args(skipped.iter().map(|name| format!("--skip={name}")));
    command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
    command.envs(TEST_ENVIRONMENT.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
    command.stdin(Stdio::null()).stdout(duplicate()?).stderr(duplicate()?);
    let started = Instant::now();
    let mut child = command.spawn().map_err(ChoreError::Start)?;
    let processor = times::processor_time_at_exit(child.id());
    let status = child.wait().map_err(ChoreError::Start)?;
    let wall = started.elapsed();
    let mut output = times::read_from_start(log).map_err(ChoreError::Start)?;
    let has_result = has_result(&output);
    if !has_result {
        output += "the binary printed no line `test result: …`\n";
    }
    Ok(BinaryResult { success: status.success() && has_result, output, wall, processor })
}

/// Returns true if a test harness ran to its end. Without this line, the number of tests that ran is unknown.
fn has_result(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("test result: "))
}

/// Prints the result of a test binary, with the output if a test failed, and adds its counts to the sums.
fn print_result(outcome: &mut TestRunOutcome, binary: &TestBinary, finished: BinaryResult) {
    let tests: Vec<TestTime> =
        finished.output.lines().filter_map(|line| TestTime::parse(&binary.name, line)).collect();
    let count =
        |word: &str| -> usize { finished.output.lines().map(|line| times::parse_count(line, word)).sum() };
    let (passed, failed) = (count("passed"), count("failed"));
    let processor = finished.processor.map(|time| time.as_secs_f64());
    let word = if finished.success { "ok" } else { "FAILED" };
    let mut text = format!("{word:6} {}: {passed} passed", binary.name);
    if failed > 0 {
        text += &format!(", {failed} failed");
    }
    text += &format!(" in {:.1} s", finished.wall.as_secs_f64());
    if let Some(time) = processor {
        text += &format!(" ({time:.1} s of processor time)");
    }
    text.push('\n');
    if finished.success {
        // Tests print this without capture by the test harness.
        let is_skip = |line: &&str| line.trim_start().starts_with("skipped: ") || line.contains(" skipped: ");
        finished.output.lines().filter(is_skip).for_each(|line| text += &format!("{line}\n"));
    } else {
        text += &finished.output;
    }
    // One write per binary, so that lines of different binaries do not mix.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    outcome.passed += passed;
    outcome.failed += failed;
    outcome.failed_binaries += usize::from(!finished.success);
    let wall = finished.wall.as_secs_f64();
    outcome.binaries.push(BinaryTime { name: binary.name.clone(), wall, processor, tests: tests.len() });
    outcome.tests.extend(tests);
}

/// Returns a command for the cargo that started this program.
fn cargo_command(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

#[cfg(test)]
mod result_tests {
    use super::has_result;

    #[test]
    fn output_without_a_result_is_a_failure() {
        assert!(has_result("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n"));
        assert!(!has_result(""));
        assert!(!has_result("test a_job_is_run_and_answered ...\n"));
    }
}
