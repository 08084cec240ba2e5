//! `refine`: each transformation gets its verdict, and what tools do wrong is named.

use std::fs;
use std::path::{Path, PathBuf};

use results::wire::{RefineLine, RefineVerdict};

use crate::common::{Ran, assert_valid, installed, vk_litmus};

/// The folder of pairs. `NAME.before.comp` has the open descriptors, the expected verdict and its reason.
fn pairs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/refine")
}

fn path(name: &str) -> String {
    pairs().join(name).display().to_string()
}

/// Runs `refine --format json`.
fn refine(arguments: &[&str]) -> (Ran, Vec<RefineLine>) {
    let ran = Ran::of(&mut vk_litmus(
        ["refine", "--format", "json", "--timeout", "5m"].iter().chain(arguments).copied(),
    ));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/schema/refine.schema.json");
    ran.json_lines().iter().for_each(|line| assert_valid(&schema, line));
    let lines = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ran, lines)
}

#[test]
fn each_transformation_has_its_verdict() {
    if !installed("glslangValidator") {
        return;
    }
    let mut wrong = Vec::new();
    let mut kinds = 0;
    let mut names: Vec<PathBuf> = fs::read_dir(pairs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for before in names.iter().filter(|name| name.display().to_string().ends_with(".before.comp")) {
        let text = fs::read_to_string(before).unwrap();
        let key = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("// {key}: ")));
            line.unwrap_or_else(|| panic!("{}: no `{key}:`", before.display())).to_owned()
        };
        assert!(!key("why").is_empty());
        let before = before.display().to_string();
        let after = before.replace(".before.comp", ".after.comp");
        let mut arguments = vec![before.as_str(), after.as_str()];
        let open = key("open");
        if open != "closed" {
            arguments.extend(["--open", open.as_str()]);
        }
        let (ran, lines) = refine(&arguments);
        kinds += 1;
        match &lines[..] {
            [line] if line.verdict.as_str() == key("expect") => {
                let breaks = line.verdict == RefineVerdict::Breaks;
                assert_eq!(ran.code, i32::from(breaks), "{ran:?}");
                assert_eq!(line.difference.is_some(), breaks, "{line:?}");
            }
            _ => wrong.push(format!("{before}: expected {}: {ran:?}", key("expect"))),
        }
        // Every module refines itself, in every world.
        let (_, lines) = refine(&[before.as_str(), before.as_str(), "--open", "all"]);
        if lines.iter().any(|line| line.verdict != RefineVerdict::Refines) {
            wrong.push(format!("{before}: does not refine itself: {lines:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kinds >= 20, "{kinds} pairs");
}

#[test]
fn loads_that_an_optimizer_merges_over_an_acquire_are_found() {
    if !installed("spirv-opt") {
        return;
    }
    let file = path("readonly-lease.spvasm");
    let command =
        "spirv-opt --strip-debug --redundancy-elimination --eliminate-dead-code-aggressive {in} -o {out}";
    let (ran, lines) = refine(&["--through", command, "--open", "0.0,0.1", &file]);
    let [line] = &lines[..] else { panic!("{ran:?}") };
    assert_eq!((ran.code, line.verdict), (1, RefineVerdict::Breaks), "{ran:?}");
    assert_eq!(line.reduced.as_deref(), Some("spirv-opt --redundancy-elimination {in} -o {out}"));
    let difference = line.difference.as_ref().unwrap();
    assert_eq!(difference.kind, "outcome");
    assert_eq!(difference.environment.len(), 4, "{difference:?}");
    // Without others, nothing writes the word.
    let (ran, lines) = refine(&["--through", command, &file]);
    assert_eq!((ran.code, lines[0].verdict), (0, RefineVerdict::Refines), "{ran:?}");
}

#[test]
fn what_a_tool_does_wrong_is_named_and_ends_no_other_shader() {
    let file = path("readonly-lease.spvasm");
    let cases = [
        ("cp {in} {out}", RefineVerdict::Refines, "in every context"),
        ("false {in} {out}", RefineVerdict::Failed, "ended with exit status: 1"),
        ("true {in} {out}", RefineVerdict::Failed, "wrote no {out}"),
        ("sh -c 'kill -SEGV $$' {in} {out}", RefineVerdict::Failed, "signal: 11"),
        ("sh -c 'echo nothing > $1' {in} {out}", RefineVerdict::Failed, "wrote an invalid module"),
    ];
    for (command, verdict, reason) in cases {
        let (ran, lines) = refine(&["--through", command, &file, &file]);
        assert_eq!(lines.len(), 2, "{command}: {ran:?}");
        for line in &lines {
            assert_eq!(line.verdict, verdict, "{command}: {line:?}");
            assert!(line.reason.contains(reason), "{command}: {}", line.reason);
        }
        let code = if verdict == RefineVerdict::Failed { 3 } else { 0 };
        assert_eq!(ran.code, code, "{command}");
    }
}

#[test]
fn wrong_inputs_are_refused_with_what_was_expected() {
    let file = path("readonly-lease.spvasm");
    let text = fs::read_to_string(&file).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let changed = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let path = folder.path().join(name);
        fs::write(&path, text.replace(from, to)).unwrap();
        path.display().to_string()
    };
    let size = changed("size.spvasm", "LocalSize 1 1 1", "LocalSize 2 1 1");
    let binding = changed("binding.spvasm", "%data Binding 0", "%data Binding 7");
    let cases: [(&[&str], &str); 7] = [
        (&[&file], "expected two, before and after a compiler"),
        (&[&file, &size], "the workgroup size of BEFORE is [1, 1, 1] and that of AFTER is [2, 1, 1]"),
        (&[&file, &binding], "AFTER uses the descriptor 0.7, which BEFORE does not have"),
        (&[&file, &file, "--entry", "other"], "no entry point `other`"),
        (&[&file, &file, "--open", "3.1"], "expected one of 0.0, 0.1, 0.2"),
        (&[&file, &file, "--open", "data"], "expected `all` or SET.BINDING"),
        (&["--through", "cp {in} out.spv", &file], "no {in} or no {out}"),
    ];
    for (arguments, expected) in cases {
        let ran = Ran::of(&mut vk_litmus(["refine"].iter().chain(arguments).copied()));
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        // Messages are wrapped to the width of a terminal.
        let words: Vec<&str> =
            ran.stderr.split_whitespace().filter(|word| !["│", "×"].contains(word)).collect();
        assert!(words.join(" ").contains(expected), "{expected}: {}", ran.stderr);
    }
}

/// A change in code that no chosen input reaches is not proved, and found with the input.
#[test]
fn a_proof_names_the_inputs_that_could_refute_it() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, value: &str| {
        let text = format!(
            "#version 450\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Out {{ uint x; }};\n\
             layout(push_constant) uniform P {{ uint key; }};\nvoid main() {{\n\
             if (key * 2654435761u == 0xdeadbeefu) {{ x = {value}; }} else {{ x = 2u; }}\n}}\n"
        );
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (before, after) = (file("before.comp", "1u"), file("after.comp", "3u"));
    for (inputs, verdict, code) in [
        (&[][..], RefineVerdict::Unknown, 3),
        (&["--open", "all"], RefineVerdict::Unknown, 3),
        (&["--push", "0=1"], RefineVerdict::Refines, 0),
        (&["--push", "0=416041631"], RefineVerdict::Breaks, 1),
    ] {
        let (ran, lines) = refine(&[&[before.as_str(), after.as_str()], inputs].concat());
        assert_eq!((ran.code, lines[0].verdict), (code, verdict), "{inputs:?}: {ran:?}");
        let names =
            lines[0].reason.contains("`key` is not given") && lines[0].reason.contains("--push 0=VALUE");
        assert_eq!(names, verdict == RefineVerdict::Unknown, "{inputs:?}: {ran:?}");
    }
}
