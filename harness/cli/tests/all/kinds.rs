//! Shaders of many kinds, as people write them: what `race` says of each, with the flags of its first line.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};

/// Verdict, and kind and lines of each finding.
fn said(line: &Value) -> String {
    let mut text = line["verdict"].as_str().unwrap().to_owned();
    if line["verdict"] == "clean" && line["coverage"]["every_order"] == false {
        text += " in the orders tried";
    }
    if let Some(why) = line["why"].as_str() {
        write!(text, " ({})", why.rsplit('/').next().unwrap_or(why)).unwrap();
    }
    for finding in line["findings"].as_array().unwrap() {
        let lines = finding["at"].as_array().unwrap().iter().map(|place| place["line"].to_string());
        let lines: Vec<String> = lines.collect();
        write!(text, "; {} {}", finding["kind"].as_str().unwrap(), lines.join("/")).unwrap();
    }
    text
}

#[test]
fn shaders_of_many_kinds() {
    if !installed("glslangValidator") || !installed("naga") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/kinds");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut table = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let flags = text.lines().next().unwrap().trim_start_matches("// ");
        let ran = Ran::of(vk_litmus(["race", "--format", "json"]).arg(&file).args(flags.split_whitespace()));
        let lines = ran.json_lines();
        assert!(!lines.is_empty(), "{ran:?}");
        for line in lines {
            for schema in schemas("race.schema.json", "race.schema.json") {
                if schema.exists() {
                    assert_valid(&schema, &line);
                }
            }
            let name = file.file_name().unwrap().to_str().unwrap();
            writeln!(table, "{name} {}: {}", line["entry"].as_str().unwrap(), said(&line)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
