//! Drivers that lie, hang, crash or lose the device: each row of docs/dev/faulty-drivers.md states the expected
//! verdict.
//!
//! The faults are injected by a Vulkan layer that is built here with `cc`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Layer, Ran, software_drivers, vk_litmus};

/// Number of runs in parallel with hanging ones.
const AT_ONCE: usize = 4;
/// The calls that hang by default; others only on request.
const HANGS: [&str; 3] = ["vkCreateInstance", "vkCreateComputePipelines", "vkWaitForFences"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A row of the table.
#[derive(Clone, Debug)]
struct Row {
    fault: String,
    /// Verdicts with their reasons; `None` for a run without a verdict.
    verdicts: Vec<Option<String>>,
    code: i32,
    /// The test that runs, with its instances.
    test: (&'static str, &'static str),
    /// Where outcomes are counted.
    counts: Counts,
}

/// The test for the faults of the first table, and the tests for those of draws.
const DISPATCHED: [(&str, &str); 1] = [("sb/SB+rlx-rlx", "2000000")];
/// The tests whose results the host reads from copies.
const COPIED: [(&str, &str); 1] = [("sb/SB+rlx-rlx@visible", "2000000")];
const DRAWN: [(&str, &str); 2] = [("ssw/MP+ssw@fragment", "20000"), ("ssw/MP+ssw@vertex", "20000")];

/// Returns the rows of a table, once for each test.
fn rows(document: &str, tests: &[(&'static str, &'static str)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        // A row may hold for one stage only.
        let (fault, stage) = cells[0].split_once(" in ").unwrap_or((cells[0], ""));
        let verdicts = cells[2].split(" or ").map(|verdict| match verdict {
            "none" => None,
            verdict => Some(verdict.trim_matches('`').to_owned()),
        });
        let row = Row {
            fault: fault.trim_matches('`').to_owned(),
            verdicts: verdicts.collect(),
            code: cells[3].trim_end_matches([' ', '|']).parse().unwrap(),
            test: DISPATCHED[0],
            counts: Counts::Host,
        };
        let tests = tests.iter().filter(|test| test.0.ends_with(stage.trim_matches('`')));
        rows.extend(tests.map(|test| Row { test: *test, ..row.clone() }));
    }
    rows
}

/// Returns the words of a source between two texts.
fn between<'a>(source: &'a str, before: &str, end: char) -> BTreeSet<&'a str> {
    source.split(before).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[test]
fn every_fault_is_told_as_the_table_says() {
    let document = std::fs::read_to_string(root().join("docs/dev/faulty-drivers.md")).unwrap();
    let source = std::fs::read_to_string(root().join("ci/layer/fault.c")).unwrap();
    let (dispatched, drawn) = document.split_once("<!-- draws -->").unwrap();
    let (drawn, copied) = drawn.split_once("<!-- copies -->").unwrap();
    let mut table = rows(dispatched, &DISPATCHED);
    table.extend(rows(drawn, &DRAWN));
    let copied_by_host = rows(copied, &COPIED);
    let copied_by_device =
        rows(copied, &DISPATCHED).into_iter().map(|row| Row { counts: Counts::Device, ..row });
    let copied: Vec<Row> = copied_by_host.into_iter().chain(copied_by_device).collect();
    let listed = document.split("<!-- calls -->\n```text\n").nth(1).unwrap().split("```").next().unwrap();
    let calls: BTreeSet<&str> = listed.split_whitespace().collect();
    // The document lists every fault and every call of the layer.
    let all_rows = table.iter().chain(&copied);
    let kinds: BTreeSet<&str> = all_rows.map(|row| row.fault.split(':').next().unwrap()).collect();
    let mut faults = between(&source, "is(\"", '"');
    faults.insert("none");
    assert_eq!(kinds, faults);
    let mut hooked = between(&source, "fault(\"", '"');
    hooked.extend(between(&source, "    X(", ','));
    hooked.extend(between(&source, "CREATE(X, ", ')'));
    hooked.retain(|name| name.starts_with("vk"));
    assert_eq!(calls, hooked);

    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build("fault") else { return };
    let all = std::env::var_os("VK_LITMUS_LAYER_HANGS").is_some_and(|value| value == "all");
    let mut runs: Vec<Row> = Vec::new();
    for row in table {
        match row.fault.strip_suffix(":CALL") {
            Some(kind) => {
                let tried = calls.iter().filter(|call| kind != "hang" || all || HANGS.contains(*call));
                runs.extend(tried.map(|call| Row { fault: format!("{kind}:{call}"), ..row.clone() }));
            }
            None => runs.push(row),
        }
    }
    for at in 0..runs.len() {
        let row = runs[at].clone();
        if row.verdicts.contains(&Some("inconclusive: not executed".to_owned())) {
            runs.push(Row { counts: Counts::Device, ..row });
        }
    }
    runs.extend(copied);
    // Start the hanging ones first, as they take longest.
    runs.sort_by_key(|row| !row.fault.starts_with("hang"));
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(what) = told(row, driver, layer.folder()) {
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Contents left by an earlier dispatch of a user's shader are never attributed to a skipped one. The same
/// holds for dispatches whose copies are skipped, and for those executed twice or partially; none is reported
/// as a violation.
#[test]
fn a_shader_that_a_driver_skips_is_neither_conformance_nor_violation() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build("fault") else { return };
    let shaders = root().join("harness/cli/tests/all/shaders/dispatch");
    let inconclusive = ("inconclusive", &["not executed"][..], 3);
    let conforms = ("conforms", &[][..], 0);
    // The driver goes on executing on memory that the worker frees, which may end the worker.
    let may_crash = ("inconclusive", &["not executed", "crashed"][..], 3);
    for (shader, fault, expected) in [
        ("message.spvasm", "none", conforms),
        ("message.spvasm", "empty-submission:7", inconclusive),
        ("message.spvasm", "early-fence:3", may_crash),
        // An unchanged buffer is an allowed result; a skipped dispatch among others must be detected too.
        ("message.spvasm", "no-dispatch:2", inconclusive),
        ("message.spvasm", "no-dispatch:3", inconclusive),
        ("message.spvasm", "no-dispatch:4", inconclusive),
        ("tickets.spvasm", "none", conforms),
        ("tickets.spvasm", "no-dispatch:5", inconclusive),
        ("tickets.spvasm", "no-copy:3", inconclusive),
        ("tickets.spvasm", "no-copy:7", inconclusive),
        // Four tickets for two invocations, or one.
        ("message.spvasm", "twice-dispatch:3", inconclusive),
        ("message.spvasm", "half-dispatch:3", inconclusive),
        ("tickets.spvasm", "twice-dispatch:2", inconclusive),
        ("tickets.spvasm", "twice-dispatch:3", inconclusive),
        ("tickets.spvasm", "twice-dispatch:5", inconclusive),
        ("tickets.spvasm", "half-dispatch:2", inconclusive),
        ("tickets.spvasm", "half-dispatch:3", inconclusive),
        ("tickets.spvasm", "half-dispatch:5", inconclusive),
        ("message.spvasm", "more-dispatch:3", inconclusive),
        ("message.spvasm", "double-dispatch:2", inconclusive),
        ("message.spvasm", "double-local:1", inconclusive),
        ("tickets.spvasm", "more-dispatch:2", inconclusive),
        ("tickets.spvasm", "more-dispatch:5", inconclusive),
        ("tickets.spvasm", "double-dispatch:3", inconclusive),
        ("tickets.spvasm", "second-row:3", inconclusive),
        ("tickets.spvasm", "larger-local:1", inconclusive),
    ] {
        let mut command = vk_litmus(["run", "--device", driver, "--grid", "2", "--seed", "1"]);
        command.args(["--instances", "2000", "--format", "json"]).arg(shaders.join(shader));
        let ran = Ran::of(under(command.current_dir(layer.folder()), fault, layer.folder()));
        let line = &ran.json_lines()[0];
        let (verdict, reasons, code) = expected;
        assert_eq!(
            (line["verdict"].as_str().unwrap(), ran.code),
            (verdict, code),
            "{shader} {fault}: {ran:?}"
        );
        let reason = line["reason"].as_str();
        assert!(reason.map_or(reasons.is_empty(), |one| reasons.contains(&one)), "{shader} {fault}: {ran:?}");
    }
}

/// One update in three is dropped: each submission has a draw with the push constants of another, possibly
/// the second of two draws whose instances all exist in other positions. None of it counts.
#[test]
fn draws_with_the_push_constants_of_others_count_nowhere() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build("fault") else { return };
    for test in ["ssw/MP+ssw@fragment", "ssw/MP+ssw@vertex"] {
        let mut command = vk_litmus(["run", test, "--device", driver, "--seed", "1", "--stress", "pte"]);
        command.args(["--instances", "500000", "--format", "json"]).current_dir(layer.folder());
        let ran = Ran::of(under(&mut command, "old-constants:3", layer.folder()));
        let line = &ran.json_lines()[0];
        assert_eq!((&line["reason"], &line["instances"]), (&"not executed".into(), &0.into()), "{ran:?}");
    }
}

/// The receipt buffer has a slot for each workgroup of an instance.
#[test]
fn many_workgroups_that_are_executed_twice_are_noticed() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let Some(layer) = Layer::build("fault") else { return };
    let row = |cell: &dyn Fn(u32) -> String| (0..32).map(cell).collect::<Vec<_>>().join(" | ") + " ;\n";
    let (places, stores) =
        (row(&|number| format!("P{number}@sg 0, wg {number}, qf 0")), row(&|_| "st.atom.dv.sc0 x, 1".into()));
    let text = format!("VULKAN many\n{{ x = 0; }}\n{places}{stores}exists (x == 1)\n");
    std::fs::write(layer.folder().join("many.litmus"), text).unwrap();
    for (fault, is_executed) in [("none", true), ("twice-dispatch:3", false)] {
        let mut command = vk_litmus(["run", "many.litmus", "--device", driver, "--seed", "1"]);
        command.args(["--instances", "2000", "--format", "json"]).current_dir(layer.folder());
        let ran = Ran::of(under(&mut command, fault, layer.folder()));
        assert_eq!(ran.json_lines()[0]["not_executed"] == 0, is_executed, "{fault}: {ran:?}");
    }
}

/// Returns a command under the layer with a fault.
fn under<'a>(command: &'a mut Command, fault: &str, folder: &Path) -> &'a mut Command {
    command
        .env("VK_LAYER_PATH", folder)
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_LITMUS_fault")
        .env("VK_LITMUS_LAYER_FAULT", fault)
        // A layer of Mesa's that enumerates devices itself, and crashes without one.
        .env("NODEVICE_SELECT", "1")
}

/// Where memory is initialized and outcomes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Host,
    Device,
}

/// Returns how a run differs from its row, if it does.
fn told(row: &Row, driver: &str, folder: &Path) -> Option<String> {
    let counts = row.counts;
    let many = row.fault.contains("120");
    let name = format!("{}-{}", row.test.0, row.fault).replace(['/', ':'], "-");
    let mut command = vk_litmus(["run", row.test.0, "--device", driver, "--seed", "1", "--strict", "-q"]);
    // The device holds all data of these dispatches except the counters.
    if counts == Counts::Device {
        let stress = std::fs::read_to_string(root().join("harness/runner/presets/throughput.toml")).unwrap();
        let file = folder.join(format!("{name}.toml"));
        std::fs::write(&file, stress.replace("\"host\"", "\"device\"")).unwrap();
        command.arg("--stress").arg(file);
    }
    // Enough submissions for rare faults, however long they take.
    if many {
        command.args(["--instances", "60000000"]);
    } else if row.fault.starts_with("hang") {
        command.args(["--time", "1s"]);
    } else {
        command.args(["--instances", row.test.1]);
    }
    command.args(["--max-memory", "1G"]);
    command.args(["--format", "json", "--out"]).arg(folder.join(format!("{name}-{counts:?}")));
    let ran = Ran::of(under(&mut command, &row.fault, folder));
    let lines = ran.json_lines();
    let verdict = lines.first().map(|line| {
        let word = line["verdict"].as_str().unwrap();
        line["reason"].as_str().map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
    });
    let is_as_told = ran.code == row.code && row.verdicts.contains(&verdict);
    (!is_as_told || ran.stderr.contains("panicked")).then(|| format!("{row:?}: {verdict:?}, {ran:?}"))
}
