//! Names of the Vulkan CTS on the command line.

use std::collections::BTreeSet;

use crate::common::{Ran, vk_litmus};
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
