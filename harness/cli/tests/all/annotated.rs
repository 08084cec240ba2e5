//! SPIR-V kernels with Dartagnan's annotations: locks, barriers and queues of several workgroups.
//!
//! The tests compare the answers of `check`: races, assertions and other findings.

use std::fmt::Write;

use crate::common::{Ran, vk_litmus};

#[test]
fn answers_for_annotated_kernels() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/shaders/annotated");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let files = files.iter().map(|path| path.to_str().unwrap());
    let ran = Ran::run(vk_litmus(["check", "--format", "json", "--timeout", "60s"]).args(files));
    let mut answers = String::new();
    for line in ran.json_lines() {
        let name = line["id"].as_str().unwrap().trim_end_matches(":k");
        write!(answers, "{name}: {}", line["race"].as_str().unwrap()).unwrap();
        for query in line["queries"].as_array().unwrap() {
            write!(answers, "; holds: {}", query["holds"]).unwrap();
        }
        for finding in line["findings"].as_array().unwrap() {
            if finding["kind"] != "race" {
                let message = finding["message"].as_str().unwrap();
                write!(answers, "; {}: {message}", finding["kind"].as_str().unwrap()).unwrap();
            }
        }
        answers.push('\n');
    }
    insta::assert_snapshot!(answers);
}
