//! The simulated GPU by the command line: it needs no driver and no loader, a seed decides its bytes, its faults are found.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Ran, assert_valid, schemas, vk_litmus};

fn run_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = vk_litmus(["run", "--format", "json"]);
    command.args(arguments).current_dir(folder);
    command
}

/// A line without what depends on the time.
fn timeless(mut line: Value) -> Value {
    line.as_object_mut().unwrap().remove("seconds");
    line
}

#[test]
fn without_a_vulkan_loader_the_first_command_works_and_says_what_ran() {
    let folder = tempfile::tempdir().unwrap();
    let libraries = folder.path().join("libraries");
    std::fs::create_dir(&libraries).unwrap();
    // Found before the real one, and no library: as good as none.
    std::fs::write(libraries.join("libvulkan.so.1"), "none").unwrap();
    std::fs::write(libraries.join("libvulkan.so"), "none").unwrap();
    let mut command = run_in(folder.path(), &["--instances", "500", "--seed", "3"]);
    let ran = Ran::of(command.env("LD_LIBRARY_PATH", &libraries));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("no Vulkan device: tests run on the built-in simulated GPU (sim)"),
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

#[test]
fn a_seed_decides_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |seed: &str| -> Vec<Value> {
        let tests = ["mp/MP+rlx-rlx", "barrier/MP+cbar", "avvis/MP+rel-acq.noav", "rmw/RMW+add-add"];
        let mut command = run_in(folder.path(), &["--device", "sim", "--instances", "3000", "--seed", seed]);
        let ran = Ran::of(command.args(tests));
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
    let ran = Ran::of(&mut run_in(folder.path(), &arguments));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let line = &ran.json_lines()[0];
    assert_eq!(line["verdict"], "violates");
    let replay = line["replay"].as_str().unwrap();
    assert!(
        replay.contains("--device sim --seed 1") && replay.contains("--fault corr-stale-atomic-load"),
        "{replay}"
    );
}

#[test]
fn a_device_that_hangs_times_out_by_its_step_budget() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--fault", "hang", "--instances", "200000", "--seed", "1", "sb/SB+rlx-rlx"];
    let ran = Ran::of(&mut run_in(folder.path(), &arguments));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let line = &ran.json_lines()[0];
    assert_eq!((&line["verdict"], &line["reason"]), (&"inconclusive".into(), &"timed out".into()));
    assert_eq!(line["detail"], "step budget");
}

#[test]
fn an_unknown_fault_is_refused_with_the_list() {
    let ran = Ran::of(&mut vk_litmus(["run", "--fault", "gremlin", "sb/SB+rlx-rlx"]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("no fault `gremlin`; there are release-no-flush,"), "{}", ran.stderr);
}

#[test]
fn the_list_of_faults_is_as_agreed() {
    let ran = Ran::of(&mut vk_litmus(["faults", "--format", "json"]));
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
