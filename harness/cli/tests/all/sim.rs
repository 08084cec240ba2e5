//! The simulated GPU on the command line: it needs no Vulkan loader, its output depends only on the seed, and
//! its faults are detected.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Ran, assert_valid, schemas, vk_litmus};

fn run_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = vk_litmus(["run", "--format", "json"]);
    command.args(arguments).current_dir(folder);
    command
}

/// Returns a line without the fields that depend on time.
fn timeless(mut line: Value) -> Value {
    line.as_object_mut().unwrap().remove("seconds");
    line
}

#[test]
fn without_a_vulkan_loader_the_simulated_gpu_is_used_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let libraries = folder.path().join("libraries");
    std::fs::create_dir(&libraries).unwrap();
    // This file precedes the real loader in the path and is not a library, so there is no loader.
    std::fs::write(libraries.join("libvulkan.so.1"), "none").unwrap();
    std::fs::write(libraries.join("libvulkan.so"), "none").unwrap();
    let mut command = run_in(folder.path(), &["--instances", "500", "--seed", "3"]);
    let ran = Ran::run(command.env("LD_LIBRARY_PATH", &libraries).env_remove("CI"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.messages().contains("no Vulkan device: tests run on the built-in simulated GPU (sim)"),
        "{}",
        ran.stderr
    );
    let lines = ran.json_lines();
    assert!(lines.len() > 20);
    assert!(lines.iter().all(|line| line["device"] == "sim"));
    assert!(lines.iter().any(|line| line["verdict"] == "conforms"));
    assert!(lines.iter().all(|line| line["verdict"] != "violates"));
    for schema in schemas("run.schema.json", "run.schema.json") {
        assert_valid(&schema, &lines[0]);
    }
}

/// If a driver has no device, tests must not pass on the simulated GPU.
#[test]
fn a_broken_driver_does_not_select_the_simulated_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let library =
        r#"{"file_format_version": "1.0.1", "ICD": {"library_path": "LIBRARY", "api_version": "1.3.0"}}"#;
    let broken_drivers = [
        file("missing_icd.json", &library.replace("LIBRARY", "/nowhere/libgpu.so")),
        // A library that is not a driver has no devices.
        file("libc_icd.json", &library.replace("LIBRARY", "libc.so.6")),
        file("text_icd.json", "nonsense"),
    ];
    let run = |drivers: &std::path::Path, more: &[&str]| {
        let mut command = run_in(folder.path(), &["sb/SB+rlx-rlx", "--instances", "200", "--seed", "1"]);
        let ran = Ran::run(command.args(more).env("VK_DRIVER_FILES", drivers));
        (ran.code, ran.json_lines().len(), ran.stderr)
    };
    for driver in &broken_drivers {
        let (code, lines, said) = run(driver, &[]);
        assert_eq!((code, lines), (3, 0), "{said}");
        assert!(said.contains("no Vulkan device, although there are driver files"), "{said}");
        assert!(said.contains(&*driver.file_name().unwrap().to_string_lossy()), "{said}");
        let (code, lines, said) = run(driver, &["--device", "sim"]);
        assert_eq!((code, lines), (0, 1), "{said}");
    }
    let (code, lines, said) = run(&folder.path().join("none"), &[]);
    assert_eq!((code, lines), (3, 0), "{said}");
    assert!(said.contains("VK_DRIVER_FILES is set: nothing was run"), "{said}");
}

/// A run that expects a Vulkan device fails without one instead of using the simulated GPU.
#[test]
fn a_missing_device_fails_runs_that_expect_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libvulkan.so.1"), "none").unwrap();
    std::fs::write(folder.path().join("libvulkan.so"), "none").unwrap();
    let run = |flags: &[&str], variable: Option<(&str, &str)>| {
        let mut command = run_in(folder.path(), &["sb/SB+rlx-rlx", "--instances", "200", "--seed", "1"]);
        command.args(flags).env("LD_LIBRARY_PATH", folder.path()).env_remove("CI");
        command.envs(variable);
        let ran = Ran::run(&mut command);
        (ran.code, ran.json_lines().len(), ran.stderr)
    };
    type Case<'a> = (&'a [&'a str], Option<(&'a str, &'a str)>, i32, &'a str);
    let cases: [Case<'_>; 6] = [
        (&["--strict"], None, 3, "`--strict` is given: nothing was run"),
        (&["--bisect"], None, 125, "`--bisect` is given: nothing was run"),
        (&[], Some(("CI", "true")), 3, "CI is set: nothing was run"),
        (&[], Some(("VK_ICD_FILENAMES", "/nowhere.json")), 3, "VK_ICD_FILENAMES is set: nothing was run"),
        (&[], Some(("CI", "false")), 0, "tests run on the built-in simulated GPU"),
        (&["--strict", "--device", "sim"], Some(("CI", "true")), 0, "results in"),
    ];
    for (flags, variable, code, message) in cases {
        let (exit_code, lines, stderr) = run(flags, variable);
        assert_eq!((exit_code, lines), (code, usize::from(code == 0)), "{flags:?} {variable:?}: {stderr}");
        assert!(stderr.contains(message), "{flags:?} {variable:?}: {stderr}");
    }
}

#[test]
fn the_seed_determines_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |seed: &str| -> Vec<Value> {
        let tests = ["mp/MP+rlx-rlx", "barrier/MP+cbar", "avvis/MP+rel-acq.noav", "rmw/RMW+add-add"];
        let mut command = run_in(folder.path(), &["--device", "sim", "--instances", "3000", "--seed", seed]);
        let ran = Ran::run(command.args(tests));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json_lines().into_iter().map(timeless).collect()
    };
    let first = lines("5");
    assert_eq!(first, lines("5"));
    assert_ne!(first[0]["outcomes"], lines("6")[0]["outcomes"]);
}

#[test]
fn a_fault_is_found_and_its_replay_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--fault", "corr-stale-atomic-load", "--instances", "20000", "--seed", "1", "coherence/CoRR+rlx"];
    let ran = Ran::run(&mut run_in(folder.path(), &arguments));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let line = &ran.json_lines()[0];
    assert_eq!(line["verdict"], "violates");
    let replay = line["replay"].as_str().unwrap();
    assert!(
        replay.contains("--device sim --seed 1") && replay.contains("--fault corr-stale-atomic-load"),
        "{replay}"
    );
}

/// Writes the preset of the simulated GPU with another place for counting.
fn counted_by(folder: &Path, counter: &str) -> String {
    let preset = include_str!("../../../runner/presets/sim.toml");
    assert!(preset.contains("classify = \"host\""));
    let path = folder.join(format!("{counter}.toml"));
    let text = preset.replace("classify = \"host\"", &format!("classify = \"{counter}\""));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn host_and_device_account_for_every_instance_of_the_quick_suite() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |counter: &str| -> Vec<Value> {
        let stress = counted_by(folder.path(), counter);
        let arguments =
            ["--device", "sim", "--suite", "quick", "--instances", "600", "--seed", "4", "--stress", &stress];
        let ran = Ran::run(&mut run_in(folder.path(), &arguments));
        assert_ne!(ran.code, 1, "{}", ran.stderr);
        ran.json_lines()
    };
    let (host, both) = (lines("host"), lines("both"));
    assert!(host.len() > 100 && host.len() == both.len());
    let account = |line: &Value| -> Vec<Value> {
        let keys = ["id", "instances", "not_executed", "unresolved", "unexpected", "batches"];
        keys.iter().map(|key| line[key].clone()).collect()
    };
    for (host, both) in host.iter().zip(&both) {
        assert_ne!(both["verdict"], "violates", "{both}");
        // Any other difference would be a crash.
        assert_ne!(both["reason"], "crashed", "{both}");
        // A device cannot count observations of host threads, or outcomes in memory with an owner.
        let by_host = both["counted_by_host"].as_str();
        let expected_reasons = ["host threads report to the host", "its locations are in two buffers"];
        assert!(by_host.is_none_or(|why| expected_reasons.contains(&why)), "{both}");
        if host["verdict"] != "skipped" && host["unresolved"] == 0 && both["unresolved"] == 0 {
            assert_eq!(account(host), account(both));
        }
    }
}

#[test]
fn a_fault_is_found_by_counts_of_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let stress = counted_by(folder.path(), "device");
    for (fault, test) in [
        ("corr-stale-atomic-load", "coherence/CoRR+rlx"),
        ("release-does-not-drain-stores", "mp/MP+rel-acq"),
        ("cbar-orders-nothing", "barrier/MP+cbar"),
    ] {
        let arguments = ["--fault", fault, "--instances", "20000", "--seed", "1", "--stress", &stress, test];
        let ran = Ran::run(&mut run_in(folder.path(), &arguments));
        assert_eq!(ran.code, 1, "{fault}: {}", ran.stderr);
        let line = &ran.json_lines()[0];
        assert_eq!(line["verdict"], "violates", "{fault}");
        assert_eq!(line["counted_by_host"], Value::Null, "{fault}");
    }
}

/// Wrong counters in memory that is not shared are not outcomes of the test.
#[test]
fn a_miscounting_device_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let stress = counted_by(folder.path(), "device");
    let arguments = [
        "--fault",
        "atomic-scope-demoted-wg",
        "--instances",
        "20000",
        "--seed",
        "1",
        "--stress",
        &stress,
        "mp/MP+rel-acq",
    ];
    let ran = Ran::run(&mut run_in(folder.path(), &arguments));
    let line = &ran.json_lines()[0];
    let detail = line["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("dispatch ") && detail.contains(": the device counts"), "{line}");
    assert!(line["instances"].as_u64().unwrap() < 20_000, "the run has ended early: {line}");
    // Outcomes counted on the host are used; they are violations.
    assert_eq!(line["verdict"], "violates");
}

#[test]
fn a_device_that_hangs_times_out_by_its_step_budget() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--fault", "hang", "--instances", "200000", "--seed", "1", "sb/SB+rlx-rlx"];
    let ran = Ran::run(&mut run_in(folder.path(), &arguments));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let line = &ran.json_lines()[0];
    assert_eq!((&line["verdict"], &line["reason"]), (&"inconclusive".into(), &"timed out".into()));
    assert_eq!(line["detail"], "step budget");
}

#[test]
fn an_unknown_fault_is_refused() {
    let ran = Ran::run(&mut vk_litmus(["run", "--fault", "gremlin", "sb/SB+rlx-rlx"]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.messages().contains("unknown fault `gremlin`; `faults` lists all"), "{}", ran.stderr);
}

#[test]
fn the_list_of_faults_matches_the_contract() {
    let ran = Ran::run(&mut vk_litmus(["faults", "--format", "json"]));
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(list.as_array().unwrap().len() >= 40);
    let contract = std::env::var_os("VK_LITMUS_CORPORA")
        .and_then(|corpora| Some(Path::new(&corpora).parent()?.join("contract/faults.schema.json")))
        .filter(|path| path.is_file());
    match contract {
        Some(schema) => assert_valid(&schema, &list),
        None => println!("1 skipped: VK_LITMUS_CORPORA has no contract beside it"),
    }
}

/// The workgroups of an instance are executed, however many there are.
#[test]
fn many_workgroups_of_an_instance_are_executed() {
    let folder = tempfile::tempdir().unwrap();
    let row = |cell: &dyn Fn(u32) -> String| (0..32).map(cell).collect::<Vec<_>>().join(" | ") + " ;\n";
    let (places, adds) = (
        row(&|number| format!("P{number}@sg 0, wg {number}, qf 0")),
        row(&|_| "rmw.atom.dv.sc0.add r0, x, 1".into()),
    );
    let text = format!("VULKAN many\n{{ x = 0; }}\n{places}{adds}exists (x == 32)\n");
    std::fs::write(folder.path().join("many.litmus"), text).unwrap();
    let mut command =
        vk_litmus(["run", "many.litmus", "--device", "sim", "--instances", "50", "--seed", "1"]);
    let ran = Ran::run(command.args(["--format", "json"]).current_dir(folder.path()));
    let line = &ran.json_lines()[0];
    assert!(line["instances"].as_u64().unwrap() >= 50 && line["not_executed"] == 0, "{ran:?}");
}

/// Seven threads increment: 5,040 outcomes, all allowed, exceed the histogram. Outcomes beyond it are
/// reported as such, not as values that no execution produces. If the time limit of the model is reached,
/// that is reported instead.
#[test]
fn outcomes_beyond_the_histogram_are_not_violations() {
    let folder = tempfile::tempdir().unwrap();
    let columns = |cell: &dyn Fn(usize) -> String| (0..7).map(cell).collect::<Vec<_>>().join(" | ");
    let heads = columns(&|thread| format!("P{thread}@sg 0, wg {thread}, qf 0"));
    let row = columns(&|_| "rmw.atom.dv.sc0.add r0, x, 1".to_owned());
    let test = format!("VULKAN count\n{{ x = 0; }}\n{heads} ;\n{row} ;\nexists (~(x == 7))\n");
    std::fs::write(folder.path().join("count.litmus"), test).unwrap();
    let arguments = ["count.litmus", "--device", "sim", "--instances", "40000", "--seed", "1"];
    let ran = Ran::run(&mut run_in(folder.path(), &arguments));
    let line = &ran.json_lines()[0];
    assert_eq!((ran.code, &line["verdict"]), (3, &"inconclusive".into()), "{ran:?}");
    let counts = |rows: &serde_json::Value| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum()
    };
    let raw = line["unexpected"].as_array().unwrap();
    assert!(
        raw.iter().all(|row| row["raw"].as_array().unwrap().len() == 8),
        "what was counted alone is no row"
    );
    let total = counts(&line["outcomes"]) + counts(&line["unexpected"]);
    let (past, all) = (line["unresolved"].as_u64().unwrap(), line["instances"].as_u64().unwrap());
    assert!(past > 0 && total + past == all, "{total} + {past}, {all}");
}

/// A violation in a form is tried without the form.
#[test]
fn violations_of_forms_are_reduced() {
    let folder = tempfile::tempdir().unwrap();
    let fault = ["--fault", "acquire-no-invalidate", "--instances", "2000", "--seed", "2"];
    let id = "avvis/MP+rel-acq.av-semvis";
    let mut command = run_in(folder.path(), &[id, "--transform", "3", "--out", "results"]);
    let ran = Ran::run(command.args(fault));
    let lines = ran.json_lines();
    assert_eq!((ran.code, lines.len()), (1, 4), "{}", ran.stderr);
    let ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&id) && ids.contains(&format!("{id}@form-8").as_str()), "{ids:?}");
    assert!(lines.iter().all(|line| line["verdict"] == "violates"));
    let reduced = format!("{id}@form-6 on sim: the violation needs no transformation");
    assert!(ran.stderr.contains(&reduced), "{}", ran.stderr);
    let resumed = Ran::run(vk_litmus(["run", "--resume", "results"]).current_dir(folder.path()));
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
}
