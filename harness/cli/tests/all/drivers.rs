//! Cases of driver and compiler developers have their expected answers. Needs `VK_LITMUS_CORPORA`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::common::{Ran, installed, vk_litmus};

/// Returns the folder of cases; prints a skip if it is missing.
fn cases() -> Option<PathBuf> {
    let corpora = std::env::var_os("VK_LITMUS_CORPORA").map(PathBuf::from);
    let folder = corpora.map(|corpora| corpora.join("../cases/drivers")).filter(|folder| folder.is_dir());
    if folder.is_none() {
        println!("1 skipped: VK_LITMUS_CORPORA names no folder next to cases/drivers");
    }
    folder
}

/// A command for a shader, its exit code, and substrings of its output.
struct ShaderCase {
    file: &'static str,
    command: &'static [&'static str],
    code: i32,
    words: &'static [&'static str],
}

const fn case(
    file: &'static str,
    command: &'static [&'static str],
    code: i32,
    words: &'static [&'static str],
) -> ShaderCase {
    ShaderCase { file, command, code, words }
}

const SHADERS: [ShaderCase; 14] = [
    case("s02-half-wave-min.comp", &["race"], 1, &["racy"]),
    case("s04-uniform-load-bare.comp", &["race"], 1, &["racy"]),
    case("s06-init-barrier-joined.comp", &["race"], 1, &["divergent-barrier"]),
    case("s08-coherent-image-upgrade.comp", &["check", "--grid", "2"], 0, &["race-free"]),
    case("s10-globallycoherent.hlsl", &["race", "--grid", "2"], 0, &["clean"]),
    // Invocations may or may not reconverge at an inner merge. A walk takes one way and reports that.
    case(
        "s12-elect-behind-branch-then-write.comp",
        &["race", "--grid", "1"],
        0,
        &["clean", "subgroup operations in branches executed together by the lanes that reach them"],
    ),
    case("s13-lint-early-return.comp", &["lint"], 0, &["lint:divergent-barrier"]),
    case(
        "s15-readonly-poll.comp",
        &["refine", "--open", "0.1,0.2", "--through", "spirv-opt --loop-invariant-code-motion {in} -o {out}"],
        1,
        &["breaks", "AFTER races on 0.1 at byte 0"],
    ),
    case("s21-cross-device.spvasm", &["check", "--grid", "2"], 2, &["invalid SPIR-V", "10871", "04638"]),
    case("s21-cross-device.spvasm", &["lint"], 0, &["10871", "04638"]),
    case("s23-order-without-class.spvasm", &["check", "--grid", "2"], 2, &["invalid SPIR-V", "10870"]),
    case("s23-order-without-class.spvasm", &["lint"], 0, &["10870"]),
    case(
        "s25-barrier-class-without-order.spvasm",
        &["check", "--grid", "2"],
        2,
        &["invalid SPIR-V", "10869"],
    ),
    case("s25-barrier-class-without-order.spvasm", &["lint"], 0, &["10869"]),
];

#[test]
fn each_case_has_its_expected_answer() {
    let Some(folder) = cases() else { return };
    let mut tried = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // The expectation is in the file of the test.
    for name in names.iter().filter(|name| name.ends_with(".litmus")) {
        let ran = Ran::run(&mut vk_litmus(["check", folder.join(name).to_str().unwrap()]));
        assert!(fs::read_to_string(folder.join(name)).unwrap().contains("\nexpect: "), "{name}");
        if ran.code != 0 {
            wrong.push(format!("{name}: {ran:?}"));
        }
        tried.insert(name.clone());
    }
    for ShaderCase { file, command, code, words } in &SHADERS {
        tried.insert((*file).to_owned());
        let tools = [("comp", "glslangValidator"), ("hlsl", "glslangValidator"), ("spvasm", "true")];
        let tool = tools.iter().find(|(extension, _)| file.ends_with(extension)).unwrap().1;
        if !installed(tool) || command.contains(&"refine") && !installed("spirv-opt") {
            continue;
        }
        let path = folder.join(file);
        let ran = Ran::run(vk_litmus(command.iter().copied()).arg(&path));
        let text = ran.words();
        if ran.code != *code || !words.iter().all(|word| text.contains(word)) {
            wrong.push(format!("{file}, {command:?}: expected {code} and {words:?}: {ran:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing: Vec<&String> = names.iter().filter(|name| !tried.contains(*name)).collect();
    assert!(missing.is_empty(), "cases without an expectation here: {missing:?}");
}
