//! Shader sources, compiled by the installed compilers.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/shaders");

/// Runs `check` in a folder, and checks that no temporary file is left.
fn check(arguments: &[&str]) -> (Ran, Value) {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["check", "--format", "json"]);
    let ran = Ran::run(command.args(arguments).current_dir(FOLDER).env("TMPDIR", scratch.path()));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "a compiler's files are left");
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 1, "{ran:?}");
    (ran, lines[0].clone())
}

#[test]
fn sources_are_compiled_with_their_lines() {
    let cases = [
        ("glslangValidator", "exchange.comp", "", "main", " -V --target-env vulkan1.3 -S comp -g", (10, 12)),
        ("glslangValidator", "exchange.comp", "-DOTHER=1", "main", " -DOTHER=1 -V ", (10, 12)),
        ("glslangValidator", "exchange.hlsl", "--entry swap", "swap", " -V -D ", (6, 10)),
        ("naga", "exchange.wgsl", "", "swap", " -g", (6, 7)),
    ];
    for (program, file, arguments, entry, flags, (write, read)) in cases {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        if !installed(program) {
            continue;
        }
        let (ran, line) = check(&[&[file], arguments.as_slice()].concat());
        assert_eq!((ran.code, &line["race"], &line["name"]), (1, &"racy".into(), &entry.into()), "{ran:?}");
        let at = &line["findings"][0]["at"];
        let position = |index: usize| {
            let place = &at[index];
            (
                place["file"].as_str().unwrap(),
                place["line"].as_u64().unwrap(),
                place["access"].as_str().unwrap(),
            )
        };
        let mut places = [position(0), position(1)];
        places.sort_unstable();
        assert_eq!(places, [(file, write, "write"), (file, read, "read")], "{ran:?}");
        let compiler = line["compiler"].as_str().unwrap();
        assert!(compiler.starts_with(program) && compiler.contains(flags), "{compiler}");
        assert!(compiler.split(' ').nth(1).unwrap().contains('.'), "it names a version: {compiler}");
        assert!(ran.stderr.contains(&format!("{file}: compiled by {compiler}\n")), "{ran:?}");
        for schema in schemas("check.schema.json", "check.schema.json") {
            assert_valid(&schema, &line);
        }
    }
}

#[test]
fn definitions_and_included_files_reach_the_compiler() {
    if !installed("glslangValidator") {
        return;
    }
    for arguments in [
        &["exchange.comp", "-DMEND", "--grid", "1"][..],
        &["exchange.hlsl", "--entry", "swap", "--define", "MEND", "--grid", "1"],
    ] {
        let (ran, line) = check(arguments);
        assert_eq!((ran.code, &line["race"]), (0, &"free".into()), "{ran:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let source = fs::read_to_string(format!("{FOLDER}/exchange.comp")).unwrap();
    let file = folder.path().join("moved.comp");
    fs::write(&file, source.replace("part/meet", "meet")).unwrap();
    let (ran, line) = check(&[file.to_str().unwrap(), "-I", "part", "-DMEND", "--grid", "1"]);
    assert_eq!((ran.code, &line["race"]), (0, &"free".into()), "{ran:?}");
    for command in ["explain", "convert"] {
        let to: &[&str] = if command == "convert" { &["--to", "litmus"] } else { &[] };
        let mut ran = vk_litmus([command, "exchange.comp", "-DMEND", "--grid", "1"]);
        let ran = Ran::run(ran.args(to).current_dir(FOLDER));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn compile_errors_have_the_message_of_the_compiler() {
    let cases: [(&str, &[&str], &str, u64, u64); 3] = [
        (
            "glslangValidator",
            &["exchange.comp", "-DWRONG"],
            "meet.glsl:6: 'barrier' : no matching overloaded",
            8,
            1,
        ),
        ("glslangValidator", &["exchange.hlsl", "--entry", "swap", "-Did=1"], "exchange.hlsl:5: ", 5, 1),
        ("naga", &["wrong.wgsl"], "no definition in scope for identifier: `missing`", 1, 14),
    ];
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.wgsl");
    fs::write(&wrong, "fn f() { _ = missing; }").unwrap();
    for (program, arguments, words, line, column) in cases {
        if !installed(program) {
            continue;
        }
        let file = if arguments[0] == "wrong.wgsl" { wrong.to_str().unwrap() } else { arguments[0] };
        let (ran, rejected) = check(&[&[file], &arguments[1..]].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(rejected["error"].as_str().unwrap().contains(words), "{ran:?}");
        assert_eq!((&rejected["line"], &rejected["column"]), (&line.into(), &column.into()), "{ran:?}");
        for schema in schemas("rejected.schema.json", "check.schema.json") {
            assert_valid(&schema, &rejected);
        }
    }
}

#[test]
fn a_missing_compiler_is_named() {
    let nowhere = tempfile::tempdir().unwrap();
    for (file, wanted) in [
        ("exchange.comp", "`glslangValidator` (the package glslang-tools, or the Vulkan SDK) or `glslang`"),
        ("exchange.wgsl", "`naga` (`cargo install naga-cli`) or `tint` (Dawn)"),
    ] {
        for command in [&["check", file][..], &["explain", file], &["convert", file, "--to", "litmus"]] {
            let mut command = vk_litmus(command.iter().copied());
            let ran = Ran::run(command.current_dir(FOLDER).env("PATH", nowhere.path()));
            assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
            let told = format!("no compiler for it is installed: {wanted}");
            assert!(ran.words().contains(&told), "{ran:?}");
        }
    }
    let mut named = vk_litmus(["race", "exchange.comp", "--compiler", "glslc"]);
    let ran = Ran::run(named.current_dir(FOLDER).env("PATH", nowhere.path()));
    let told = "exchange.comp: not installed: `glslc` (the package glslc, or the Vulkan SDK)";
    assert!(ran.code == 3 && ran.words().ends_with(told), "{ran:?}");
    let cases: [(&[&str], &str); 2] = [
        (&["exchange.wgsl", "--compiler", "dxc"], "`dxc` is none of its compilers: `naga` or `tint`"),
        (&["exchange.wgsl", "--compiler", "naga", "-DA"], "naga takes no definitions"),
    ];
    for (arguments, words) in cases {
        let (ran, rejected) = check(arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(rejected["error"].as_str().unwrap().contains(words), "{ran:?}");
    }
}

/// A path that is not ASCII is that of the findings and of the edits.
#[test]
fn paths_may_have_any_characters() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "#version 450\nlayout(local_size_x = 2) in;\nshared uint a;\n\
                void main() {\n    if (gl_LocalInvocationIndex == 0) a = 1;\n    uint r = a;\n}\n";
    fs::write(folder.path().join("é.comp"), text).unwrap();
    let ran = Ran::run(vk_litmus(["race", "é.comp", "--fix", "fix.diff"]).current_dir(folder.path()));
    assert!(ran.code == 1 && ran.stdout.contains("read é.comp:6\n"), "{ran:?}");
    assert!(fs::read_to_string(folder.path().join("fix.diff")).unwrap().contains("+++ é.comp"), "{ran:?}");
}

/// The first of two programs rejects the source; the other produces this module.
#[cfg(unix)]
#[test]
fn another_compiler_is_tried_after_a_rejection() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let module = format!("{FOLDER}/dispatch/racy.spvasm");
    let program = |name: &str, does: &str| {
        let file = folder.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let refuses = |word: &str| format!("echo {word}; exit 1");
    let makes = format!("while [ \"$1\" != -o ]; do shift; done; cp {module} \"$2\"");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let ask = |flags: &[&str]| {
        let mut command = vk_litmus(["check", "--format", "json", "--grid", "2", "exchange.wgsl"]);
        Ran::run(command.args(flags).current_dir(FOLDER).env("PATH", &path))
    };
    program("naga", &refuses("first"));
    program("tint", &refuses("second"));
    let ran = ask(&[]);
    assert!(ran.code == 2 && ran.words().contains("nor does tint: second"), "{ran:?}");
    program("tint", "kill -SEGV $$");
    let ran = ask(&["--compiler", "tint"]);
    assert!(ran.code == 2 && ran.words().contains("tint crashed (signal 11)"), "{ran:?}");
    program("tint", &format!("[ \"$1\" = --version ] && exit; {makes}"));
    let ran = ask(&[]);
    assert_eq!((ran.code, &ran.json_lines()[0]["race"]), (1, &"racy".into()), "{ran:?}");
    assert!(ran.messages().contains("compiled by tint "), "{ran:?}");
    let ran = ask(&["--compiler", "naga"]);
    assert!(ran.code == 2 && ran.stderr.contains("first"), "{ran:?}");
}

/// Each row of `sources/cases.tsv` has a source as found in projects, and the answer of `race`. In arguments,
/// `_` is a blank.
#[test]
fn sources_of_projects_have_the_expected_answers() {
    let folder = format!("{FOLDER}/sources");
    let cases = fs::read_to_string(format!("{folder}/cases.tsv")).unwrap();
    for case in cases.lines().skip(1) {
        let [file, arguments, code, words] = case.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not four columns: {case}");
        };
        if !installed(if file.ends_with("wgsl") { "naga" } else { "glslangValidator" }) {
            continue;
        }
        let cache = tempfile::tempdir().unwrap();
        let arguments = arguments.split_whitespace().map(|argument| argument.replace('_', " "));
        let mut command = vk_litmus(["race", file]);
        let command = command.args(arguments).current_dir(&folder).env("XDG_CACHE_HOME", cache.path());
        let ran = Ran::run(command);
        assert_eq!(ran.code.to_string(), code, "{case}: {ran:?}");
        let output = format!("{}{}", ran.stdout, ran.stderr.replace("\n  │ ", " "));
        assert!(output.contains(words), "{case}: {ran:?}");
    }
}

#[test]
fn stored_modules_are_reused_until_a_source_changes() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("size.glsl"), "#define SIZE 4\n").unwrap();
    fs::copy(format!("{FOLDER}/sources/engine-version.comp"), at("k.comp")).unwrap();
    let source = fs::read_to_string(at("k.comp")).unwrap();
    fs::write(at("k.comp"), format!("#include \"size.glsl\"\n{source}")).unwrap();
    let compiler = |arguments: &[&str]| {
        let mut command = vk_litmus(["race", "k.comp", "--format", "json"]);
        command.args(arguments).current_dir(folder.path()).env("XDG_CACHE_HOME", at("cache"));
        let ran = Ran::run(&mut command);
        let line = ran.json_lines().remove(0);
        (line["compiler"].as_str().unwrap().to_owned(), line["local_size"][0].as_u64().unwrap())
    };
    let (first, size) = compiler(&[]);
    assert!(first.starts_with("glslangValidator ") && size == 4, "{first} {size}");
    let stored: Vec<_> = fs::read_dir(at("cache/vk-litmus/modules")).unwrap().collect();
    let [stored] = &stored[..] else { panic!("{stored:?}") };
    // A changed compiler name in the stored module shows that the stored module is used.
    let path = stored.as_ref().unwrap().path();
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let header = String::from_utf8_lossy(&bytes[..end]).replace("glslangValidator", "stored");
    fs::write(&path, [header.as_bytes(), &bytes[end..]].concat()).unwrap();
    assert!(compiler(&[]).0.starts_with("stored "));
    assert_eq!(compiler(&["--no-cache"]), (first.clone(), 4));
    // A damaged module is compiled again, and so is a module with a changed include file.
    fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
    assert_eq!(compiler(&[]), (first.clone(), 4));
    fs::write(at("size.glsl"), "#define SIZE 8\n").unwrap();
    assert_eq!(compiler(&[]), (first, 8));
}

/// A second analysis of an unchanged source compiles neither the source nor its fixes again.
#[test]
fn modules_of_fixes_are_stored() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer B { uint b[]; };
shared uint s[64];
void main() {
    s[gl_LocalInvocationIndex] = gl_LocalInvocationIndex;
    b[gl_GlobalInvocationID.x] = s[63 - gl_LocalInvocationIndex];
}
";
    fs::write(folder.path().join("k.comp"), text).unwrap();
    let race = || {
        let mut command = vk_litmus(["race", "k.comp", "--format", "json"]);
        command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
        let ran = Ran::run(&mut command);
        assert_eq!(ran.code, 1, "{ran:?}");
        let modules = fs::read_dir(folder.path().join("cache/vk-litmus/modules")).unwrap();
        let modules = modules.map(|entry| entry.unwrap()).map(|entry| {
            // Storing a module again would replace its file.
            (entry.file_name(), entry.metadata().unwrap().modified().unwrap())
        });
        modules.collect::<BTreeMap<_, _>>()
    };
    let stored = race();
    assert!(stored.len() > 1, "{stored:?}");
    assert_eq!(race(), stored);
}

#[test]
fn a_folder_selects_its_shaders_and_a_summary_follows() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["include.comp", "no-version.comp", "absent.comp", "empty.hlsl", "parts/width.glsl"] {
        let to = folder.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(format!("{FOLDER}/sources/{name}"), to).unwrap();
    }
    let one = |jobs: &str| {
        let mut command = vk_litmus(["race", ".", "--jobs", jobs]);
        Ran::run(command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join(".cache")))
    };
    let (ran, again) = (one("1"), one("2"));
    assert_eq!((ran.code, &ran.stdout), (again.code, &again.stdout), "the order of answers is that of files");
    assert_eq!(ran.code, 2, "{ran:?}");
    let table = "3 entry points in 3 files\n";
    assert!(ran.stderr.contains(table), "{ran:?}");
    assert!(ran.stderr.contains("       1  refused\n               1  include file not found\n"), "{ran:?}");
    assert!(ran.stderr.contains("       2  files without an entry point, skipped\n"), "{ran:?}");
    let nothing = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["race", "."]);
    let ran = Ran::run(command.current_dir(nothing.path()));
    assert!(ran.code == 2 && ran.messages().contains("no shaders below this folder"), "{ran:?}");
}

/// One language is decided for each content, so that files with equal contents have equal fixes.
#[test]
fn fixes_do_not_depend_on_the_extension() {
    if !installed("glslangValidator") {
        return;
    }
    let hlsl = "RWStructuredBuffer<uint> o : register(u0);\ngroupshared uint row[64];\n[numthreads(64, 1, 1)]\n\
                void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {\n    row[i] = i;\n    \
                o[id.x] = row[63 - i];\n}\n";
    let glsl = "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer B { uint o[]; };\n\
                shared uint row[64];\nvoid main() {\n    uint i = gl_LocalInvocationIndex;\n    row[i] = i;\n    \
                o[gl_GlobalInvocationID.x] = row[63 - i];\n}\n";
    let folder = tempfile::tempdir().unwrap();
    for (text, language, barrier, extensions) in [
        (hlsl, "HLSL", "GroupMemoryBarrierWithGroupSync();", ["hlsl", "compute", "comp"]),
        (glsl, "GLSL", "barrier();", ["comp", "glsl", "comp.glsl"]),
    ] {
        for extension in extensions {
            let name = format!("k.{extension}");
            fs::write(folder.path().join(&name), text).unwrap();
            let mut command = vk_litmus(["race", "--format", "json", &name]);
            let ran = Ran::run(command.current_dir(folder.path()));
            let line = ran.json_lines()[0].clone();
            let part = &line["findings"][0]["change"]["parts"][0];
            assert_eq!((&line["language"], &part["code"]), (&language.into(), &barrier.into()), "{ran:?}");
            let edit = part["edits"][0]["text"].as_str().unwrap();
            assert_eq!(edit.trim(), barrier, "{ran:?}");
        }
    }
    for (name, text) in [("a.wgsl", glsl), ("b.hlsl", glsl), ("c.slang", glsl), ("d.xyz", glsl)] {
        fs::write(folder.path().join(name), text).unwrap();
        let ran = Ran::run(vk_litmus(["race", name]).current_dir(folder.path()));
        let is_named = ran.stdout.contains("expected one language") || ran.stdout.contains("expected .comp");
        assert!(ran.code == 2 && is_named, "{ran:?}");
    }
}
