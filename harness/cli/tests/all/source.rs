//! Shader sources, compiled by the installed compilers.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Ran, installed, vk_litmus};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/shaders");

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
