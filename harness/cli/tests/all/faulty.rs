//! Drivers that return wrong results, hang, crash or lose the device. Each row of ci/layer/faults.tsv has the
//! expected verdict.
//!
//! A Vulkan layer, built here with `cc`, injects the faults. `PROPTEST_RNG_SEED` selects fifteen faults and
//! one run of each; `VK_LITMUS_LAYER_FAULTS=all` tries all of them on every software driver.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Layer, Ran, software_drivers, vk_litmus};

/// Number of faults in one run of the tests.
const MAX_FAULTS_PER_RUN: usize = 15;

/// Number of parallel runs, including hanging ones.
const PARALLEL_RUNS: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_file(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn layer_source() -> String {
    ["fault.c", "images.h", "mapped.h", "modules.h", "reports.h"]
        .map(|name| read_file(&format!("ci/layer/{name}")))
        .concat()
}

/// A row of the data file.
#[derive(Clone, Debug)]
struct FaultRow {
    group: String,
    fault: String,
    tests: Vec<String>,
    /// Where the outcomes are counted.
    counts: Vec<String>,
    /// Verdicts with their reasons; `none` for a run without verdicts.
    verdicts: Vec<String>,
    code: i32,
    /// The behaviour of the driver, for the document.
    driver: String,
}

impl FaultRow {
    /// Reads all rows.
    fn fault_rows() -> Vec<FaultRow> {
        let text = read_file("ci/layer/faults.tsv");
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.next(), Some("group\tfault\ttests\tcounts\tverdicts\tcode\tdriver"));
        lines.map(FaultRow::parse).collect()
    }

    fn parse(line: &str) -> FaultRow {
        let cells: Vec<&str> = line.split('\t').collect();
        let [group, fault, tests, counts, verdicts, code, driver]: [&str; 7] = cells.try_into().unwrap();
        let words = |cell: &str| cell.split(' ').map(str::to_owned).collect();
        FaultRow {
            group: group.into(),
            fault: fault.into(),
            tests: words(tests),
            counts: words(counts),
            verdicts: verdicts.split(" or ").map(str::to_owned).collect(),
            code: code.parse().unwrap(),
            driver: driver.into(),
        }
    }

    /// Returns the fault without its number or call.
    fn kind(&self) -> &str {
        self.fault.split(':').next().unwrap()
    }

    /// Returns the row of the document.
    fn to_markdown(&self) -> String {
        let code = |words: &[String]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>();
        let verdicts = code(&self.verdicts).join(" or ").replace("`none`", "none");
        let (tests, counts) = (code(&self.tests).join(", "), self.counts.join(", "));
        format!("| `{}` | {tests} | {counts} | {} | {verdicts} | {} |\n", self.fault, self.driver, self.code)
    }

    /// Returns every run of the row on these drivers, one for each of the calls or numbers.
    fn runs(&self, calls: &BTreeSet<&str>, drivers: &[&'static str]) -> Vec<FaultRun> {
        let faults: Vec<String> = match self.fault.split_once(':') {
            Some((kind, "CALL")) => calls.iter().map(|call| format!("{kind}:{call}")).collect(),
            Some((kind, numbers)) => numbers.split(',').map(|number| format!("{kind}:{number}")).collect(),
            None => vec![self.fault.clone()],
        };
        let mut runs = Vec::new();
        for fault in &faults {
            for test in &self.tests {
                for counts in &self.counts {
                    runs.extend(drivers.iter().map(|device| FaultRun {
                        row: self.clone(),
                        fault: fault.clone(),
                        test: test.clone(),
                        is_counted_by_device: counts == "device",
                        device,
                    }));
                }
            }
        }
        runs
    }
}

#[derive(Clone, Debug)]
struct FaultRun {
    row: FaultRow,
    fault: String,
    test: String,
    is_counted_by_device: bool,
    device: &'static str,
}

/// Returns the words of a source between two texts.
fn words_between<'a>(source: &'a str, before: &str, end: char) -> BTreeSet<&'a str> {
    source.split(before).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// Returns the calls that the layer intercepts.
fn intercepted_calls(source: &str) -> BTreeSet<&str> {
    let mut calls = words_between(source, "inject_call_fault(\"", '"');
    calls.extend(words_between(source, "    X(", ','));
    calls.extend(words_between(source, "CREATE(X, ", ')'));
    calls.retain(|name| name.starts_with("vk"));
    calls
}

/// The data file has every fault of the layer, and the document has every row and call.
#[test]
fn the_document_lists_every_fault() {
    let source = layer_source();
    let rows = FaultRow::fault_rows();
    let kinds: BTreeSet<&str> = rows.iter().map(FaultRow::kind).collect();
    let mut faults = words_between(&source, "is_fault(\"", '"');
    faults.insert("none");
    assert_eq!(kinds, faults);

    let document = read_file("docs/dev/faulty-drivers.md");
    let listed = document.split("<!-- calls -->\n```text\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(listed.split_whitespace().collect::<BTreeSet<_>>(), intercepted_calls(&source));
    let groups: BTreeSet<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    let mut current = document.clone();
    for group in groups {
        let (start, end) = (format!("<!-- table: {group} -->\n"), "<!-- end of table -->");
        let from = current.find(&start).unwrap_or_else(|| panic!("no table of {group}")) + start.len();
        let to = from + current[from..].find(end).unwrap();
        let mut table =
            "| fault | tests | counted by | what the driver does | verdict | exit code |\n".to_owned();
        table += "|---|---|---|---|---|---|\n";
        table.extend(rows.iter().filter(|row| row.group == group).map(FaultRow::to_markdown));
        current.replace_range(from..to, &table);
    }
    if current != document && std::env::var_os("VK_LITMUS_BLESS").is_some() {
        std::fs::write(root().join("docs/dev/faulty-drivers.md"), &current).unwrap();
        return;
    }
    assert!(current == document, "VK_LITMUS_BLESS=1 writes docs/dev/faulty-drivers.md");
}

/// A fault never gives `conforms` or `violates`, for litmus tests, draws and shaders, wherever outcomes are
/// counted.
#[test]
fn every_fault_has_the_verdict_in_the_table() {
    let source = layer_source();
    let drivers = software_drivers();
    let Some(layer) = Layer::build_layer("fault").filter(|_| !drivers.is_empty()) else { return };
    let all = std::env::var_os("VK_LITMUS_LAYER_FAULTS").is_some_and(|value| value == "all");
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_default();
    let mut by_kind: BTreeMap<(String, String), Vec<FaultRun>> = BTreeMap::new();
    for row in FaultRow::fault_rows() {
        let key = (row.group.clone(), row.kind().to_owned());
        by_kind.entry(key).or_default().extend(row.runs(&intercepted_calls(&source), &drivers));
    }
    let mut kinds: Vec<(u64, Vec<FaultRun>)> = Vec::new();
    for (key, possible) in by_kind {
        let mut hasher = DefaultHasher::new();
        (&seed, &key).hash(&mut hasher);
        kinds.push((hasher.finish(), possible));
    }
    kinds.sort_by_key(|(hash, _)| *hash);
    let max_faults = if all { kinds.len() } else { MAX_FAULTS_PER_RUN };
    let mut runs: Vec<FaultRun> = Vec::new();
    for (hash, possible) in kinds.into_iter().take(max_faults) {
        let drawn = (hash % possible.len() as u64) as usize;
        runs.extend(
            possible.into_iter().enumerate().filter(|(at, _)| all || *at == drawn).map(|(_, run)| run),
        );
    }
    // Hanging runs start first, because they take longest.
    runs.sort_by_key(|run| !run.fault.starts_with("hang"));
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_RUNS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(at) else { break };
                    if let Some(what) = difference(run, at, layer.folder()) {
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} runs:\n{}", wrong.len(), runs.len(), wrong.join("\n"));
}

/// The fault drops one update of push constants in three, so a submission has a draw with the push constants
/// of another draw, possibly the second of two whose instances are all in other positions. These results must
/// not count.
#[test]
fn draws_with_wrong_push_constants_are_discarded() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build_layer("fault") else { return };
    for test in ["ssw/MP+ssw@fragment", "ssw/MP+ssw@vertex"] {
        let mut command = vk_litmus(["run", test, "--device", driver, "--seed", "1", "--stress", "pte"]);
        command.args(["--instances", "100000", "--format", "json"]).current_dir(layer.folder());
        let ran = Ran::run(with_fault(&mut command, "old-constants:3", layer.folder()));
        let line = &ran.json_lines()[0];
        assert_eq!((&line["reason"], &line["instances"]), (&"not executed".into(), &0.into()), "{ran:?}");
    }
}

/// A driver may fork processes that leave the session of the worker. They end with the run.
#[test]
#[cfg(target_os = "linux")]
fn processes_of_drivers_end_with_the_run() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build_layer("fault") else { return };
    for fault in ["daemon:vkCreateInstance", "leave:vkCreateDevice"] {
        let mut command = vk_litmus(["run", "sb/SB+rlx-rlx", "--device", driver, "--instances", "100000"]);
        let ran = Ran::run(with_fault(command.current_dir(layer.folder()), fault, layer.folder()));
        let mark = format!("VK_LAYER_PATH={}", layer.folder().display());
        let is_left = |process: &std::fs::DirEntry| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let left = std::fs::read_dir("/proc").unwrap().flatten().filter(is_left).count();
        assert_eq!(left, 0, "{fault}: {ran:?}");
    }
}

/// The receipt buffer has an entry for each workgroup of an instance.
#[test]
fn workgroups_executed_twice_are_detected() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build_layer("fault") else { return };
    let row = |cell: &dyn Fn(u32) -> String| (0..16).map(cell).collect::<Vec<_>>().join(" | ") + " ;\n";
    let (places, stores) =
        (row(&|number| format!("P{number}@sg 0, wg {number}, qf 0")), row(&|_| "st.atom.dv.sc0 x, 1".into()));
    let text = format!("VULKAN many\n{{ x = 0; }}\n{places}{stores}exists (x == 1)\n");
    std::fs::write(layer.folder().join("many.litmus"), text).unwrap();
    for (fault, is_executed) in [("none", true), ("twice-dispatch:3", false)] {
        let mut command = vk_litmus(["run", "many.litmus", "--device", driver, "--seed", "1"]);
        command.args(["--instances", "100", "--format", "json"]).current_dir(layer.folder());
        let ran = Ran::run(with_fault(&mut command, fault, layer.folder()));
        assert_eq!(ran.json_lines()[0]["not_executed"] == 0, is_executed, "{fault}: {ran:?}");
    }
}

/// Returns a command under the layer with a fault.
fn with_fault<'a>(command: &'a mut Command, fault: &str, folder: &Path) -> &'a mut Command {
    command
        .env("VK_LAYER_PATH", folder)
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_LITMUS_fault")
        .env("VK_LITMUS_LAYER_FAULT", fault)
        // This layer of Mesa enumerates devices, and crashes without one.
        .env("NODEVICE_SELECT", "1")
}

/// Returns the difference between a run and its row, if any.
fn difference(run: &FaultRun, number: usize, folder: &Path) -> Option<String> {
    let FaultRun { row, fault, test, device, .. } = run;
    let mut command = vk_litmus(["run", "--device", *device, "--seed", "1", "--strict", "-q"]);
    if test.ends_with(".spvasm") {
        let shaders = root().join("harness/cli/tests/all/shaders/dispatch");
        command.args(["--grid", "2"]).arg(shaders.join(test));
    } else if test.ends_with(".litmus") {
        command.arg(root().join("ci/layer").join(test));
    } else {
        command.arg(test);
    }
    // The device has all data of these dispatches, except for the counters.
    if run.is_counted_by_device {
        let stress = read_file("harness/runner/presets/throughput.toml");
        let file = folder.join(format!("{number}.toml"));
        std::fs::write(&file, stress.replace("\"host\"", "\"device\"")).unwrap();
        command.arg("--stress").arg(file);
    }
    command.args(match row.kind() {
        "hang" => ["--time", "1s"],
        // Enough submissions to meet a rare fault.
        _ if fault.ends_with(":120") => ["--instances", "60000000"],
        _ => ["--instances", instances_of(test)],
    });
    command.args(["--max-memory", "1G"]);
    command.args(["--format", "json", "--out"]).arg(folder.join(format!("{number}-results")));
    let ran = Ran::run(with_fault(command.current_dir(folder), fault, folder));
    let lines = ran.json_lines();
    let verdict = lines.first().map_or("none".to_owned(), |line| {
        let word = line["verdict"].as_str().unwrap();
        line["reason"].as_str().map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
    });
    let is_expected = ran.code == row.code && row.verdicts.contains(&verdict);
    (!is_expected || ran.stderr.contains("panicked")).then(|| {
        format!("{device} {fault} {test}, by device {}: {verdict}, {ran:?}", run.is_counted_by_device)
    })
}

/// Returns the number of instances of a test: enough for several submissions.
fn instances_of(test: &str) -> &'static str {
    match test {
        _ if test.ends_with(".spvasm") => "2000",
        _ if ["ssw/", "host/", "families/"].iter().any(|kind| test.starts_with(kind)) => "20000",
        _ if test.ends_with("@fragment") => "200000",
        _ => "2000000",
    }
}
