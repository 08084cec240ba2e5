//! Support for the Google Test protocol: test filters, sharding, result files, and verdicts that persist when
//! a runner repeats a test.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use results::journal::{seal_record, verify_checksum};
use results::wire::{RunLine, VerdictWord};
use results::write::RunWriter;
use results::write::gtest::{GtestCase, format_json, format_xml, gtest_name};

use crate::Failure;
use crate::kinds::litmus::plan::LitmusPlan;
use crate::kinds::litmus::planned::DeviceTest;
use crate::run_log::{DEFAULT_OUTPUT_FOLDER, EarlierVerdicts};
use crate::source::LoadedTest;

/// deqp-runner and related runners set this variable for each process that they start; no other program sets
/// it.
const RUNNER_VARIABLE: &str = "DEQP_RUNNER_THREAD";
/// A runner names this file to learn whether sharding is supported.
const STATUS_FILE_VARIABLE: &str = "GTEST_SHARD_STATUS_FILE";
/// The name of the result file if only its format is given.
const DEFAULT_FILE: &str = "test_detail";
/// The name of the result file in a folder.
const DEFAULT_FILE_IN_FOLDER: &str = "vk-litmus";

/// Returns true if this process was started by a runner that repeats failed tests.
pub fn is_started_by_runner() -> bool {
    std::env::var_os(RUNNER_VARIABLE).is_some()
}

/// A filter: `POSITIVE[:POSITIVE…][-NEGATIVE[:NEGATIVE…]]` with the wildcards `*` and `?`, over whole names
/// or ids.
///
/// Ids contain dashes, which names of Google Test do not. A dash starts the negative patterns only if the
/// text before it is empty or matches a test. Otherwise it is part of the pattern, as it is in the complete
/// name of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtestFilter {
    positive: Vec<String>,
    negative: Vec<String>,
}

impl GtestFilter {
    /// Parses a filter for tests with these ids.
    pub fn new(text: &str, ids: &[&str]) -> GtestFilter {
        let matches_any = |pattern: &str| ids.iter().any(|id| matches_test(pattern, id));
        let mut filter = GtestFilter::default();
        let mut items = text.split(':');
        while let Some(item) = items.next() {
            let is_test_name = ids.iter().any(|id| *id == item || gtest_name(id) == item);
            let dash = item.match_indices('-').map(|(at, _)| at).find(|at| {
                let before = item.get(..*at).unwrap_or_default();
                before.is_empty() || matches_any(before)
            });
            match dash.filter(|_| !is_test_name) {
                None => filter.positive.push(item.to_owned()),
                Some(at) => {
                    let (before, after) = item.split_at(at);
                    if !before.is_empty() || filter.positive.is_empty() {
                        filter.positive.push(if before.is_empty() {
                            "*".to_owned()
                        } else {
                            before.to_owned()
                        });
                    }
                    filter.negative.push(after.trim_start_matches('-').to_owned());
                    filter.negative.extend(items.by_ref().map(str::to_owned));
                    break;
                }
            }
        }
        filter
    }

    /// Returns true if the filter selects the test with this id.
    pub fn selects(&self, id: &str) -> bool {
        let matches_any = |patterns: &[String]| patterns.iter().any(|pattern| matches_test(pattern, id));
        matches_any(&self.positive) && !matches_any(&self.negative)
    }
}

/// Returns true if a pattern matches the id or the Google Test name of a test.
fn matches_test(pattern: &str, id: &str) -> bool {
    matches_glob(pattern, id) || matches_glob(pattern, &gtest_name(id))
}

/// Matches a text against a glob with `*` and `?`, by backtracking to the last `*`.
fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // The position of the last star, and the end of the text that it matches.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || text.get(t) == Some(c) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|c| *c == '*')
}

/// Returns the tests that a filter selects.
pub fn filter_tests(filter: Option<&str>, tests: Vec<LoadedTest>) -> Vec<LoadedTest> {
    let Some(text) = filter else { return tests };
    let ids: Vec<&str> = tests.iter().map(|test| test.source.id.as_str()).collect();
    let filter = GtestFilter::new(text, &ids);
    tests.into_iter().filter(|test| filter.selects(&test.source.id)).collect()
}

/// Reports to the runner that this process supports sharding, by creating its status file.
///
/// # Errors
/// If the file cannot be written.
pub fn acknowledge_shards() -> Result<(), Failure> {
    if let Some(path) = std::env::var_os(STATUS_FILE_VARIABLE).filter(|path| !path.is_empty()) {
        let path = Path::new(&path);
        fs::write(path, "").map_err(|error| {
            Failure::environment_message(format!("{STATUS_FILE_VARIABLE} {}: {error}", path.display()))
        })?;
    }
    Ok(())
}

/// The result file and its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultFile {
    pub path: PathBuf,
    is_json: bool,
}

impl ResultFile {
    /// Parses `xml`, `xml:FILE`, `xml:FOLDER/`, or the same with `json`.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<ResultFile, Failure> {
        let (format, path) = text.split_once(':').unwrap_or((text, ""));
        let is_json = match format {
            "json" => true,
            "xml" => false,
            _ => {
                let expected = "expected xml or json, optionally followed by `:FILE`";
                return Err(Failure::input_message(format!("--gtest_output {text}: {expected}")));
            }
        };
        let path = match path {
            "" => PathBuf::from(format!("{DEFAULT_FILE}.{format}")),
            folder if folder.ends_with('/') => {
                Path::new(folder).join(format!("{DEFAULT_FILE_IN_FOLDER}.{format}"))
            }
            file => PathBuf::from(file),
        };
        Ok(ResultFile { path, is_json })
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// If the JSON cannot be serialized.
    pub fn format_cases(&self, cases: &[GtestCase]) -> Result<String, Failure> {
        if !self.is_json {
            return Ok(format_xml(cases));
        }
        let text = serde_json::to_string_pretty(&format_json(cases)).map_err(Failure::environment_error)?;
        Ok(text + "\n")
    }
}

/// The verdicts of all processes that one runner started, in a file.
///
/// A runner of the deqp-runner family repeats a whole group if one of its tests failed. It then counts a test
/// with another result as a flake, which is a success. But a violation proves a defect and is rare by nature.
/// So a repeated test reports its recorded verdict. Only tests without a verdict (crash, hang) are run again.
#[derive(Debug)]
pub struct SharedVerdicts {
    path: PathBuf,
}

impl SharedVerdicts {
    /// Returns the verdicts of the runner that started this process; `None` without one.
    ///
    /// # Errors
    /// If its folder cannot be created.
    pub fn for_runner() -> Result<Option<SharedVerdicts>, Failure> {
        let Some(id) = parent_process().filter(|_| is_started_by_runner()) else { return Ok(None) };
        let folder = Path::new(DEFAULT_OUTPUT_FOLDER).join("reruns");
        fs::create_dir_all(&folder).map_err(|error| Failure::file_error(&folder, error))?;
        // A later runner may get the same process id, but not the same start time. One runner may run the
        // same tests with several command lines.
        let name =
            format!("{id}-{}-{}.jsonl", process_start_time(id).unwrap_or_default(), hash_command_line());
        Ok(Some(SharedVerdicts { path: folder.join(name) }))
    }

    /// Returns the default seed of the runner's processes. It is the same for all, because their verdicts are
    /// stored in each other's folders.
    pub fn default_seed(&self) -> u64 {
        let hash = blake3::hash(self.path.as_os_str().as_encoded_bytes());
        // 32 bits, so that a reader can type it again.
        hash.as_bytes().iter().take(4).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }

    /// Returns the recorded verdicts for the tests of a plan.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_verdicts(&self, plan: &LitmusPlan) -> Result<EarlierVerdicts, Failure> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(EarlierVerdicts::new()),
            Err(error) => return Err(Failure::file_error(&self.path, error)),
        };
        // Another process may be writing the last line. Tests with a damaged line are run again.
        let intact_lines =
            bytes.split(|byte| *byte == b'\n').filter(|line| verify_checksum(line) == Some(true));
        let lines = intact_lines.filter_map(|line| serde_json::from_slice::<RunLine>(line).ok());
        let verdicts: BTreeMap<(String, String), RunLine> =
            lines.map(|line| ((line.device.clone(), line.id.clone()), line)).collect();
        let has_same_hashes = |cell: &DeviceTest, line: &RunLine| {
            let item = &plan.tests[cell.test_index];
            (&line.hashes.test, &line.hashes.model, &line.hashes.kernel)
                == (&item.hash, &cell.model.hash, &cell.kernel_hash)
        };
        let mut matching = EarlierVerdicts::new();
        for cell in &plan.device_tests {
            let id = plan.tests[cell.test_index].loaded.source.id.clone();
            let key = (plan.targets[cell.target_index].name.clone(), id);
            if let Some(line) = verdicts.get(&key).filter(|line| has_same_hashes(cell, line)) {
                matching.insert(key, line.clone());
            }
        }
        Ok(matching)
    }

    fn append_verdict(&self, line: &RunLine) -> io::Result<()> {
        let text = seal_record(line)?;
        // One write per line, because processes of the same runner append concurrently.
        OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(&text)
    }
}

/// Hashes the command line without its test filter, and the environment.
fn hash_command_line() -> String {
    let mut hasher = blake3::Hasher::new();
    let arguments = std::env::args_os().filter(|word| !word.to_string_lossy().starts_with("--gtest_filter"));
    let variables: BTreeMap<_, _> = std::env::vars_os().filter(|(name, _)| name != RUNNER_VARIABLE).collect();
    for word in arguments.chain(variables.into_iter().flat_map(|(name, value)| [name, value])) {
        hasher.update(word.as_encoded_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize().to_hex().chars().take(16).collect()
}

/// Returns the id of the parent process.
#[cfg(unix)]
fn parent_process() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// The parent is unknown on this system, so that no verdicts are shared.
#[cfg(not(unix))]
fn parent_process() -> Option<u32> {
    None
}

/// Returns the start time of a process, in the system's units.
fn process_start_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in parentheses, which may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Returns true if the verdict needs no further run.
fn is_settled(line: &RunLine) -> bool {
    line.verdict != VerdictWord::Inconclusive || line.reason.as_deref() == Some("not exercised")
}

/// A writer that records verdicts before it prints them.
pub struct RecordingWriter<'w> {
    /// The writer for the output.
    pub inner: &'w mut dyn RunWriter,
    pub verdicts: SharedVerdicts,
}

impl RunWriter for RecordingWriter<'_> {
    fn announce_tests(&mut self, ids: &[&str]) -> io::Result<()> {
        self.inner.announce_tests(ids)
    }

    fn announce_test(&mut self, id: &str) -> io::Result<()> {
        self.inner.announce_test(id)
    }

    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        if is_settled(line) {
            self.verdicts.append_verdict(line)?;
        }
        self.inner.write_verdict(line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 5] =
        ["sb/SB+rlx-rlx", "sb/SB+sc-sc", "mp/MP+rel-acq", "mp/MP+rel-acq.wg", "mp/MP+rel-acq@split"];

    fn selected_ids(filter: &str) -> Vec<&'static str> {
        let filter = GtestFilter::new(filter, &IDS);
        IDS.into_iter().filter(|id| filter.selects(id)).collect()
    }

    #[test]
    fn filters() {
        let cases: [(&str, &[&str]); 18] = [
            ("*", &IDS),
            ("litmus.sb/SB+rlx-rlx", &["sb/SB+rlx-rlx"]),
            ("sb/SB+rlx-rlx", &["sb/SB+rlx-rlx"]),
            ("litmus.sb/*", &["sb/SB+rlx-rlx", "sb/SB+sc-sc"]),
            ("litmus.mp/MP+rel-acq:litmus.sb/SB+sc-sc", &["sb/SB+sc-sc", "mp/MP+rel-acq"]),
            ("*SB+???-*", &["sb/SB+rlx-rlx"]),
            ("*-litmus.sb/*", &IDS[2..]),
            ("-litmus.sb/*", &IDS[2..]),
            ("litmus.sb/*-litmus.sb/SB+rlx-rlx", &["sb/SB+sc-sc"]),
            ("litmus.*-litmus.sb/SB+rlx-rlx:litmus.mp/*", &["sb/SB+sc-sc"]),
            ("litmus.mp/MP+rel-*", &IDS[2..]),
            ("litmus.mp/MP+rel-*-*.wg", &["mp/MP+rel-acq", "mp/MP+rel-acq@split"]),
            ("*.wg:-*", &[]),
            ("*rel-acq", &["mp/MP+rel-acq"]),
            ("litmus.mp/MP+rel-acq@*", &["mp/MP+rel-acq@split"]),
            ("sb", &[]),
            ("", &[]),
            ("?", &[]),
        ];
        for (filter, expected) in cases {
            assert_eq!(selected_ids(filter), expected, "{filter}");
        }
    }

    #[test]
    fn result_files() {
        let cases = [
            ("xml", "test_detail.xml", false),
            ("json", "test_detail.json", true),
            ("xml:out/r.xml", "out/r.xml", false),
            ("json:C:r", "C:r", true),
            ("xml:out/", "out/vk-litmus.xml", false),
        ];
        for (text, path, is_json) in cases {
            assert_eq!(ResultFile::parse(text).unwrap(), ResultFile { path: path.into(), is_json }, "{text}");
        }
        for wrong in ["", "yaml", "csv:x"] {
            assert!(ResultFile::parse(wrong).is_err(), "{wrong}");
        }
    }
}
