//! `refine`: each transformation has its verdict, and errors of tools are reported.

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
    let ran = Ran::run(&mut vk_litmus(
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
                let code = match line.verdict {
                    RefineVerdict::Refines | RefineVerdict::Stronger => 0,
                    RefineVerdict::Breaks => 1,
                    RefineVerdict::Unknown | RefineVerdict::Failed => 3,
                };
                assert_eq!(ran.code, code, "{ran:?}");
                assert_eq!(line.difference.is_some(), breaks, "{line:?}");
            }
            _ => wrong.push(format!("{before}: expected {}: {ran:?}", key("expect"))),
        }
        // Every module refines itself, whatever other code may write.
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
    // In a closed world, no other code writes the word.
    let (ran, lines) = refine(&["--through", command, &file]);
    assert_eq!((ran.code, lines[0].verdict), (0, RefineVerdict::Refines), "{ran:?}");
}

#[test]
fn a_tool_failure_is_reported_per_shader() {
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
fn wrong_inputs_are_refused_with_the_expected_form() {
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
    let containers = ["a.foz", "a.amber"].map(|name| folder.path().join(name).display().to_string());
    containers.iter().for_each(|path| fs::write(path, [b'x', 0]).unwrap());
    let [foz, amber] = &containers;
    let binding = changed("binding.spvasm", "%data Binding 0", "%data Binding 7");
    let cases: [(&[&str], &str); 10] = [
        (&[&file], "expected two, before and after a compiler"),
        (&[&file, &size], "the workgroup size of BEFORE is [1, 1, 1] and that of AFTER is [2, 1, 1]"),
        (&[&file, &binding], "AFTER uses the descriptor 0.7, which BEFORE does not have"),
        (&[&file, &file, "--entry", "other"], "no entry point `other`"),
        (&[&file, &file, "--open", "3.1"], "expected one of 0.0, 0.1, 0.2"),
        (&[&file, &file, "--open", "data"], "expected `all`, SET.BINDING or SET.BINDING[INDEX]"),
        (&["--through", "cp {in} out.spv", &file], "no {in} or no {out}"),
        (&[foz, &file], "no header of Fossilize"),
        (&[amber, &file], "no first line `#!amber`"),
        (&["--through", "cp {in} {out}", foz], "expected `FOSSILIZEDB`"),
    ];
    for (arguments, expected) in cases {
        let ran = Ran::run(&mut vk_litmus(["refine"].iter().chain(arguments).copied()));
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.messages().contains(expected), "{expected}: {ran:?}");
    }
}

/// A change in code that no chosen input reaches is not proved; with the input it is refuted.
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

/// Writes a shader with two buffers and a flag, whose body is `body`.
fn two_buffers(folder: &Path, name: &str, body: &str) -> String {
    let text = format!(
        "#version 450\n#pragma use_vulkan_memory_model\n#extension GL_KHR_memory_scope_semantics : require\n\
         layout(local_size_x = 1) in;\n\
         layout(set = 0, binding = 0) devicecoherent buffer First {{ uint x[2]; }};\n\
         layout(set = 0, binding = 1) devicecoherent buffer Second {{ uint y[4]; }};\n\
         layout(set = 0, binding = 2) buffer Out {{ uint a; uint b; }};\n\
         layout(set = 0, binding = 3) buffer Flags {{ uint f; uint g; }};\n\
         uint acquire() {{ return atomicLoad(g, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible); }}\n\
         void release() {{ atomicStore(f, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable); }}\n\
         void main() {{\n{body}\n}}\n"
    );
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Two descriptors of one buffer alias: a store through one of them changes what the other one loads.
#[test]
fn stores_through_an_alias_affect_loads() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = two_buffers(folder.path(), "before.comp", "a = x[1]; y[1] = 7u; b = x[1];");
    let after = two_buffers(folder.path(), "after.comp", "a = x[1]; y[1] = 7u; b = a;");
    let case = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let alias = case("alias.toml", "[buffer.\"0.1\"]\nalias = \"0.0\"\n");
    let reversed = case("reversed.toml", "[buffer.\"0.0\"]\nalias = \"0.1\"\n");
    let separate = case("apart.toml", "[buffer.\"0.1\"]\nbytes = 16\n");
    for (case, verdict) in [
        (&alias, RefineVerdict::Breaks),
        (&reversed, RefineVerdict::Breaks),
        (&separate, RefineVerdict::Refines),
    ] {
        let (ran, lines) = refine(&[&before, &after, "--case", case]);
        assert_eq!(lines[0].verdict, verdict, "{case}: {ran:?}");
    }
    // Other commands alias, too: the load returns 7, and a store beyond the smaller type is inside the
    // buffer.
    let far = two_buffers(folder.path(), "far.comp", "y[3] = 7u; y[1] = 5u; a = x[1];");
    for (case, holds) in [(&alias, true), (&reversed, true), (&separate, false)] {
        let check = Ran::run(&mut vk_litmus([
            "check",
            &far,
            "--grid",
            "1",
            "--case",
            case,
            "--assert",
            "0.2[0] == 5",
        ]));
        assert_eq!(check.code, i32::from(!holds), "{case}: {check:?}");
        let race = Ran::run(&mut vk_litmus(["race", &far, "--grid", "1", "--case", case]));
        assert_eq!(race.code, 0, "{case}: {race:?}");
        let run = ["run", &far, "--case", case, "--device", "sim", "--assert", "0.2[0] == 5"];
        let ran = Ran::run(vk_litmus(run).args(["--instances", "20"]).current_dir(folder.path()));
        assert_eq!(ran.code, i32::from(!holds), "{case}: {ran:?}");
    }
    // Two invocations race on one word through different names.
    let two_writes = two_buffers(
        folder.path(),
        "both.comp",
        "if (gl_WorkGroupID.x == 0u) { x[0] = 1u; } else { y[0] = 2u; }",
    );
    for (case, code) in [(&alias, 1), (&separate, 0)] {
        let ran = Ran::run(&mut vk_litmus(["race", &two_writes, "--grid", "2", "--case", case]));
        assert_eq!(ran.code, code, "{case}: {ran:?}");
    }
    for (text, expected) in [
        ("[buffer.\"0.1\"]\nalias = \"0.9\"\n", "0.1 as an alias of 0.9, which the kernel does not have"),
        ("[buffer.\"0.1\"]\nalias = \"first\"\n", "alias = \"SET.BINDING\" of another buffer expected"),
        ("[buffer.\"0.1\"]\nalias = \"0.1\"\n", "alias = \"SET.BINDING\" of another buffer expected"),
        ("[buffer.\"0.1\"]\nalias = \"0.0\"\nbytes = 4\n", "alias, not `bytes`, expected"),
        (
            "[buffer.\"0.1\"]\nalias = \"0.0\"\n[buffer.\"0.0\"]\nalias = \"0.2\"\n",
            "an alias of a buffer that is not an alias itself, as 0.0 is",
        ),
    ] {
        let wrong = case("wrong.toml", text);
        let ran = Ran::run(&mut vk_litmus(["race", &far, "--case", &wrong]));
        assert_ne!(ran.code, 0, "{text}: {ran:?}");
        assert!(ran.words().contains(expected), "{expected}: {ran:?}");
    }
}

/// A race of two invocations of the kernel is named by its element, not by the place that the environment accesses.
#[test]
fn a_race_without_the_environment_is_named_by_its_element() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["barrier();", ""].map(|barrier| {
        let text = format!(
            "#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer A {{ uint a[]; }};\n\
             layout(binding = 1) buffer B {{ uint b[]; }};\nshared uint s[4];\nvoid main() {{\n\
             uint i = gl_LocalInvocationIndex;\ns[i] = a[i];\n{barrier}\nb[i] = s[3u - i];\n}}\n"
        );
        let path =
            folder.path().join(format!("{}.comp", if barrier.is_empty() { "after" } else { "before" }));
        fs::write(&path, text).unwrap();
        path.display().to_string()
    });
    let ran = Ran::run(&mut vk_litmus(["refine", &before, &after, "--open", "all"]));
    assert!(ran.stdout.contains("AFTER races on `s["), "{ran:?}");
}

/// Only the named words of a buffer are open to other writers.
#[test]
fn single_words_are_opened_by_set_binding_and_index() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lease = |again: &str| format!("a = x[1]; release(); if (acquire() == 1u) {{ b = {again}; }}");
    let before = two_buffers(folder.path(), "before.comp", &lease("x[1]"));
    let after = two_buffers(folder.path(), "after.comp", &lease("a"));
    let flags = "0.3[0],0.3[1]";
    for (open, verdict) in [
        ("0.0[1],0.3", RefineVerdict::Breaks),
        (&format!("0.0[1],{flags}"), RefineVerdict::Breaks),
        ("0.0.x[1],0.3.f,0.3.g", RefineVerdict::Breaks),
        ("0.0[0],0.3", RefineVerdict::Unknown),
    ] {
        let (ran, lines) = refine(&[&before, &after, "--open", open]);
        assert_eq!(lines[0].verdict, verdict, "{open}: {ran:?}");
        assert_eq!(lines[0].open.join(","), open);
    }
    for (open, expected) in [
        ("0.0[2]", "in `0.0[2]`"),
        ("0.9[0]", "expected one of 0.0, 0.1, 0.2, 0.3"),
        ("x[0]", "expected `all`, SET.BINDING or SET.BINDING[INDEX]"),
    ] {
        let ran = Ran::run(&mut vk_litmus(["refine", &before, &after, "--open", open]));
        assert_eq!(ran.code, 2, "{open}: {ran:?}");
        let words: Vec<&str> =
            ran.stderr.split_whitespace().filter(|word| !["│", "×"].contains(word)).collect();
        assert!(words.join(" ").contains(expected), "{open}: {}", ran.stderr);
    }
    // A load of memory that the shader never writes is kept if others may write it.
    let loads = |open: &[&str]| {
        let ran =
            Ran::run(&mut vk_litmus(["convert", "--to", "litmus", &before].iter().chain(open).copied()));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.lines().filter(|line| line.contains("ld.") && line.contains(", First")).count()
    };
    assert_eq!((loads(&[]), loads(&["--open", "0.0[1],0.3"])), (0, 2));
    assert_eq!(loads(&["--open", "0.3"]), 0);
}

/// Tests are compared as GLSL: the whole test in a closed world, and each workgroup with read-only buffers in
/// an open one.
#[test]
fn tests_are_compared_through_several_compilers() {
    if !installed("glslangValidator") || !installed("spirv-opt") {
        return;
    }
    let merge = "spirv-opt --strip-debug --redundancy-elimination {in} -o {out}";
    let through = ["--through", "cp {in} {out}", "--through", merge, "--jobs", "2"];
    let test = "lease/Lease+rel-acq";
    let (ran, lines) = refine(&[&through[..], &[test]].concat());
    assert_eq!((ran.code, lines.len()), (0, 2), "{ran:?}");
    assert!(lines.iter().all(|line| line.verdict == RefineVerdict::Refines), "{ran:?}");
    let table: Vec<&str> = ran.stderr.lines().collect();
    assert!(table[0].contains("refines") && table[0].ends_with("command"), "{ran:?}");
    assert!(table[1].ends_with("cp {in} {out}") && table[2].ends_with(merge), "{ran:?}");
    // naga refuses debug lines and sizes by id, which the compilers of sources write.
    if installed("naga") {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a.comp").display().to_string();
        let text = "layout(local_size_x = 4) in;\nlayout(binding = 0) buffer X { uint x[4]; };";
        let body = "x[gl_LocalInvocationIndex] = gl_LocalInvocationIndex;";
        fs::write(&source, format!("#version 450\n{text}\nvoid main() {{ {body} }}\n")).unwrap();
        let (ran, lines) = refine(&["--through", "naga {in} {out}", &source]);
        assert_eq!(lines[0].verdict, RefineVerdict::Refines, "{ran:?}");
    }
    let (_, lines) = refine(&[&through[..2], &[test, "--open", "all"]].concat());
    let names: Vec<&str> = lines.iter().map(|line| line.before.as_str()).collect();
    assert_eq!(names, [&format!("{test} P0"), &format!("{test} P1")]);
    let ran = Ran::run(&mut vk_litmus(["refine", "--suite", "quick"]));
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn a_broken_shader_is_a_result_of_sarif() {
    let file = path("readonly-lease.spvasm");
    let ran = Ran::run(&mut vk_litmus(["refine", "--format", "sarif", &file, &file]));
    let log: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, log["runs"][0]["results"].as_array().map(Vec::len)), (0, Some(0)), "{ran:?}");
    let ran =
        Ran::run(&mut vk_litmus(["refine", "--format", "sarif", "--through", "false {in} {out}", &file]));
    let log: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "compiler-failed", "{ran:?}");
    assert_eq!(ran.code, 3);
}
