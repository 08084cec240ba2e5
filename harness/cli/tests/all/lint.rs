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
    let ran = Ran::run(&mut vk_litmus(["lint", "mp/MP+rel-acq"]));
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// glslang rejects these semantics; other compilers emit them.
#[test]
fn semantics_without_effect_are_reported() {
    let text = "OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 2 1 1
%void = OpTypeVoid
%uint = OpTypeInt 32 0
%function = OpTypeFunction %void
%subgroup = OpConstant %uint 3
%relaxed = OpConstant %uint 0
%acquire_release_subgroup = OpConstant %uint 136
%acquire_release_shared = OpConstant %uint 264
%main = OpFunction %void None %function
%entry = OpLabel
OpControlBarrier %subgroup %subgroup %acquire_release_subgroup
OpControlBarrier %subgroup %subgroup %acquire_release_shared
OpControlBarrier %subgroup %subgroup %relaxed
OpMemoryBarrier %subgroup %relaxed
OpReturn
OpFunctionEnd
";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.spvasm");
    fs::write(&file, text).unwrap();
    let ran = Ran::run(&mut vk_litmus(["lint", file.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let rules: Vec<&str> = ran.stdout.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
    let expected = [
        "k.spvasm:14: lint:orders-nothing: OpControlBarrier names SubgroupMemory alone, which Vulkan ignores, so it orders nothing \
         (VUID-StandaloneSpirv-MemorySemantics-10870) (VK-SEM-08)",
        "k.spvasm:17: lint:orders-nothing: OpMemoryBarrier has no memory order, so it orders nothing \
         (VUID-StandaloneSpirv-MemorySemantics-10869) (VK-SEM-08)",
    ];
    assert_eq!(rules, expected);
}

/// Without a command, a shader is analysed and linted, and a litmus test is checked.
#[test]
fn a_file_implies_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let test = folder.path().join("a.litmus");
    let text =
        "VULKAN a\n{ buffer u32 x = 0; }\n P0@sg 0, wg 0, qf 0 ;\n st.atom.dv.sc0 x, 1 ;\nexists (x == 1)\n";
    fs::write(&test, text).unwrap();
    let ran = Ran::run(&mut vk_litmus([test.to_str().unwrap(), "--format", "json"]));
    assert_eq!((ran.code, &ran.json_lines()[0]["schema"]), (0, &"vk-litmus/check/1".into()), "{ran:?}");
    if !installed("glslangValidator") {
        return;
    }
    let shader = folder.path().join("k.comp");
    let body = "row[id] = id;\ndata.value[id] = row[1 - id];\n";
    fs::write(&shader, format!("{KHR}{body}}}\n")).unwrap();
    let line = |words: &[&str]| {
        let mut command = vk_litmus(words.iter().copied());
        Ran::run(command.args([shader.to_str().unwrap(), "--grid", "1", "--format", "json"]))
            .json_lines()
            .remove(0)
    };
    let (implied, raced) = (line(&["--quiet"]), line(&["race"]));
    assert_eq!((&implied["verdict"], &implied["findings"]), (&raced["verdict"], &raced["findings"]));
    assert_eq!(
        (&implied["lints"][0]["kind"], &raced["lints"]),
        (&"lint:lockstep".into(), &serde_json::Value::Null)
    );
    for schema in schemas("race.schema.json", "race.schema.json").iter().take(1) {
        assert_valid(schema, &implied);
    }
    let ran = Ran::run(&mut vk_litmus([shader.to_str().unwrap(), "--grid", "1"]));
    assert!(ran.stdout.contains("lint:lockstep"), "{ran:?}");
}
