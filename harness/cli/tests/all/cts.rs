//! Names of the Vulkan CTS on the command line, and variants of tests.

use std::collections::BTreeSet;

use crate::common::{Ran, assert_valid, schemas, software_drivers, vk_litmus};
use serde_json::Value;

const PREFIX: &str = "dEQP-VK.memory_model.";

fn listed() -> Vec<(String, String)> {
    let ran = Ran::run(&mut vk_litmus(["tests", "--cts"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let line = |line: &str| {
        let (name, id) = line.split_once(' ').unwrap();
        (name.to_owned(), id.to_owned())
    };
    ran.stdout.lines().map(line).collect()
}

/// Returns the lines of a run on one driver. Its exit code is 0, or 3 if every test was skipped.
#[track_caller]
fn run(driver: &str, more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", "--device", driver, "--format", "json", "--seed", "1"]);
    let ran = Ran::run(command.args(["--instances", "2000"]).args(more).current_dir(folder.path()));
    let lines = ran.json_lines();
    let expected = if lines.iter().all(|line| line["verdict"] == "skipped") { 3 } else { 0 };
    assert_eq!(ran.code, expected, "{driver} {more:?}: {ran:?}");
    lines
}

#[test]
fn every_cts_name_has_a_test() {
    let lines = listed();
    assert_eq!(lines.len(), 16_510 + 576 + 3);
    let names: BTreeSet<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let ids: BTreeSet<&str> = lines.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!((names.len(), ids.len()), (lines.len(), lines.len()));
    assert!(names.iter().all(|name| name.starts_with(PREFIX)));
    let ran = Ran::run(&mut vk_litmus(["tests", "--cts", "--format", "json"]));
    let json: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let entries: Vec<(String, String)> = json
        .iter()
        .map(|entry| (entry["cts"].as_str().unwrap().into(), entry["id"].as_str().unwrap().into()))
        .collect();
    assert_eq!(entries, lines);
}

#[test]
fn a_name_runs_with_and_without_its_prefix() {
    let name = "message_passing.ext.u32.coherent.fence_fence.atomicwrite.device.payload_local.buffer.guard_local.buffer";
    let id = "cts/message_passing/u32.coherent.fence_fence.atomicwrite.device.buffer.buffer";
    for driver in software_drivers() {
        for given in [format!("{name}.comp"), format!("{PREFIX}{name}.comp")] {
            let lines = run(driver, &["--cts-name", &given]);
            assert_eq!(lines.len(), 1, "{given}");
            assert_eq!(lines[0]["id"], id);
            assert!(lines[0]["instances"].as_u64().unwrap() >= 2000, "{}", lines[0]);
            assert_eq!(lines[0]["outcomes"].as_array().unwrap().len(), 6, "{}", lines[0]);
            for schema in schemas("run.schema.json", "run.schema.json") {
                assert_valid(&schema, &lines[0]);
            }
        }
        // An id and a glob over ids are accepted as arguments.
        assert_eq!(run(driver, &[id])[0]["id"], id);
        assert_eq!(
            run(driver, &["cts/message_passing/u32.coherent.fence_fence.*.device.buffer.buffer"]).len(),
            1
        );
    }
}

/// The same program in each stage. Every instance is accounted for; a stage without overlap is reported as
/// serial.
#[test]
fn names_of_every_stage_run() {
    let pattern =
        "write_after_read.ext.u32.coherent.fence_fence.*.device.payload_local.buffer.guard_local.buffer.*";
    for driver in software_drivers() {
        let lines = run(driver, &["--cts-name", pattern]);
        let stages: Vec<&str> =
            lines.iter().map(|line| line["id"].as_str().unwrap().rsplit('@').next().unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert!(stages.contains(&"vertex") && stages.contains(&"fragment"), "{stages:?}");
        for line in lines {
            let (verdict, detail) =
                (line["verdict"].as_str().unwrap(), line["detail"].as_str().unwrap_or_default());
            assert!(["conforms", "inconclusive"].contains(&verdict), "{line}");
            assert!(line["instances"].as_u64().unwrap() > 0 && line["not_executed"] == 0, "{line}");
            let serial = driver == "lavapipe" && line["id"].as_str().unwrap().ends_with("@vertex");
            assert_eq!(detail.starts_with("stage runs serially"), serial, "{line}");
        }
    }
}

#[test]
fn names_about_layout_are_refused() {
    for (name, why) in [
        ("shared.*", "a layout test of workgroup memory"),
        ("dEQP-VK.memory_model.padding.test", "a layout test of blocks"),
    ] {
        let ran = Ran::run(&mut vk_litmus(["run", "--cts-name", name]));
        let messages = ran.messages();
        assert!(messages.contains(why), "{messages}");
    }
}

#[test]
fn an_unsupported_stage_feature_is_named_with_the_clause() {
    let Some(driver) = software_drivers().first().copied() else { return };
    let lines = run(driver, &["barrier/ISA2+cbar-rel-acq@vertex", "classes/MP+rel-acq.sc1-flag@fragment"]);
    for line in &lines {
        assert_eq!(line["verdict"], "skipped");
        assert!(line["reason"].as_str().unwrap().starts_with("no workgroups in this stage: "), "{line}");
    }
}

/// If a stage does not support stores, its tests are skipped with the name of the feature, and those of the
/// other stage run.
#[test]
fn a_stage_without_stores_is_skipped_by_the_feature() {
    let ids = ["mp/MP+rel-acq@fragment", "mp/MP+rel-acq@vertex", "mp/MP+rel-acq@vertex-fragment"];
    for (feature, skipped) in [
        ("vertexPipelineStoresAndAtomics", [false, true, true]),
        ("fragmentStoresAndAtomics", [true, false, true]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = vk_litmus(["run", "--device", "sim", "--format", "json", "--instances", "500"]);
        let ran = Ran::run(command.args(ids).env("VK_LITMUS_MASK", feature).current_dir(folder.path()));
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines = ran.json_lines();
        for (id, skipped) in ids.into_iter().zip(skipped) {
            let line = lines.iter().find(|line| line["id"] == id).unwrap();
            assert_eq!(line["verdict"] == "skipped", skipped, "{line}");
            assert!(!skipped || line["detail"] == feature, "{line}");
        }
    }
}

#[test]
fn memory_that_a_device_lacks_is_named() {
    let name = "message_passing.ext.u32.coherent.fence_fence.atomicwrite.device.payload_nonlocal.buffer.guard_*.buffer.comp";
    for driver in software_drivers() {
        let lines = run(driver, &["--cts-name", name]);
        let details: Vec<&str> = lines.iter().filter_map(|line| line["detail"].as_str()).collect();
        assert_eq!(details, ["memory type without DEVICE_LOCAL"; 2], "{driver}");
    }
}

/// Payload and guard in two memory types, for every storage class with a memory type. Software drivers have
/// one type; the simulated GPU has two.
#[test]
fn payload_and_guard_are_in_two_memory_types() {
    let (local, host) = ("DEVICE_LOCAL", "HOST_VISIBLE | HOST_COHERENT");
    for (pattern, memory) in [
        ("payload_nonlocal.[bip]*.guard_local.[bip]*", format!("{local} and {host}")),
        ("payload_local.[bip]*.guard_nonlocal.[bip]*", format!("{local} and {host}")),
        ("payload_nonlocal.[bip]*.guard_nonlocal.buffer", host.to_owned()),
    ] {
        let pattern = format!("*.ext.u32.coherent.fence_fence.atomicwrite.device.{pattern}.comp");
        let lines = run("sim", &["--cts-name", &pattern]);
        assert!(lines.len() == 18 || lines.len() == 6, "{pattern}: {}", lines.len());
        for line in lines {
            assert_eq!(line["verdict"], "conforms", "{line}");
            assert_eq!(line["memory"], memory, "{line}");
            // A message was received, and final values are read from the memory that has them.
            let outcomes = line["outcomes"].as_array().unwrap();
            let observed = outcomes.iter().filter(|outcome| outcome["count"].as_u64() > Some(0)).count();
            assert!(observed >= 2, "{line}");
            assert_eq!(line["unexpected"], serde_json::json!([]), "{line}");
        }
    }
    let atomics_only = run("sim", &["sb/SB+rlx-rlx@nonlocal-payload"]);
    assert_eq!(atomics_only[0]["detail"], "no location to separate");
}

#[test]
fn variants_select_how_dispatches_are_ordered() {
    for driver in software_drivers() {
        let lines = run(
            driver,
            &[
                "ssw/MP+ssw",
                "ssw/MP+ssw@event",
                "ssw/MP+ssw@fence",
                "ssw/WAR+ssw@timeline",
                "ssw/WAW+ssw@split",
            ],
        );
        let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 5);
        for line in &lines {
            assert_eq!(line["verdict"], "conforms", "{line}");
            assert!(line["memory"].as_str().unwrap().contains("DEVICE_LOCAL"), "{line}");
        }
    }
}

/// Synchronization validation reports a hazard if and only if the model finds a race; also for draws with two
/// stages.
#[test]
fn validation_agrees_with_the_model_on_races() {
    let is_soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let (one_stage, two_stages) =
        if is_soak { ("ssw/*", "ssw/*@vertex-fragment") } else { ("ssw/MP+*", "ssw/W*@vertex-fragment") };
    for driver in software_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let mut command =
            vk_litmus(["run", "--device", driver, "--format", "json", "--seed", "1", "--validate"]);
        command.args(["--instances", "20", one_stage, "mp/MP+rel-acq@split", two_stages]);
        command.current_dir(folder.path());
        let ran = Ran::run(&mut command);
        assert_eq!(ran.code, 0, "{driver}: {ran:?}");
        let lines = ran.json_lines();
        for racy in ["ssw/MP+ssw.exec-only", "ssw/MP+ssw.noav"] {
            let line = lines.iter().find(|line| line["id"] == racy).unwrap();
            assert_eq!(line["verdict"], "undefined", "{driver}");
        }
    }
}

#[test]
fn a_test_of_several_dispatches_is_written_as_several_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["compile", "ssw/ISA2+ssw-rel-acq", "--out", "k.spv"]);
    let ran = Ran::run(command.current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut files: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["k.1.spv", "k.spv"]);
}
