//! Lint rules: each has a finding in incorrect shaders and none in correct ones.

use lint::LintRule;
use std::fs;

use results::wire::LintLine;

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};

const KHR: &str = "#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) nonprivate buffer Data { uint value[2]; uint flag; } data;
shared uint row[2];
void main() {
    uint id = gl_LocalInvocationIndex;
";

/// Lints the body of a shader and returns rules and lines, counted after the preamble.
fn lint_body(body: &str) -> Vec<(String, u32)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.comp");
    fs::write(&file, format!("{KHR}{body}}}\n")).unwrap();
    let ran = Ran::run(&mut vk_litmus(["lint", "--format", "json", file.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{ran:?}");
    for schema in schemas("lint.schema.json", "lint.schema.json") {
        assert_valid(&schema, &ran.json_lines()[0]);
    }
    let line: LintLine = serde_json::from_str(&ran.stdout).unwrap();
    let head = KHR.lines().count() as u32;
    line.findings.iter().map(|finding| (finding.kind.clone(), finding.at[0].line.unwrap() - head)).collect()
}

#[test]
fn each_rule_finds_its_mistakes() {
    if !installed("glslangValidator") {
        return;
    }
    // Bodies of shaders, each with the rules next to the lines of their findings.
    for body in include_str!("lint/bodies.comp").split("\n\n") {
        let marks = body.lines().map(|line| line.split_once("//~ ").map(|(_, rule)| rule.to_owned()));
        let expected: Vec<_> = marks.zip(1..).filter_map(|(rule, line)| Some((rule?, line))).collect();
        assert_eq!(lint_body(&format!("{}\n", body.trim_end())), expected, "{body}");
    }
}

#[test]
fn the_right_forms_of_patterns_are_clean() {
    if !installed("glslangValidator") {
        return;
    }
    let listed = Ran::run(&mut vk_litmus(["patterns", "--format", "json"]));
    let all: results::wire::PatternsRecord = serde_json::from_str(&listed.stdout).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for pattern in &all.patterns {
        let file = folder.path().join(format!("{}.comp", pattern.name));
        fs::write(&file, &pattern.forms[0].glsl).unwrap();
        let ran = Ran::run(&mut vk_litmus(["lint", file.to_str().unwrap(), "-q"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", pattern.name);
    }
}

#[test]
fn rules_cite_existing_clauses() {
    let clauses = model::clauses::list_clauses();
    let ran = Ran::run(&mut vk_litmus(["lint"]));
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, LintRule::ALL.len()), "{ran:?}");
    for rule in LintRule::ALL {
        assert!(clauses.iter().any(|one| one.id == rule.clause()), "{rule:?}: no clause {}", rule.clause());
        assert!(ran.stdout.contains(&format!("lint:{} ", rule.name())), "{ran:?}");
    }
}
