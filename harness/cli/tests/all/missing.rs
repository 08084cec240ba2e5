//! Missing inputs: the verdict for each shader of a folder.
//!
//! A comment `expect:` gives the headline of `race`, and `args:` its options.

use std::fs;

use results::wire::RaceLine;
use results::write::race::headline;

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};

fn folder() -> String {
    format!("{}/tests/all/shaders/missing", env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text after a key in the comments of a shader.
fn comment<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let start = |line: &'t str| line.strip_prefix("// ").or_else(|| line.strip_prefix("; "));
    text.lines().find_map(|line| start(line)?.strip_prefix(key)).map(str::trim)
}

#[test]
fn each_shader_has_its_verdict() {
    if !installed("glslangValidator") {
        return;
    }
    let mut wrong = Vec::new();
    let mut files: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 12);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let expected = comment(&text, "expect:").unwrap();
        let arguments = comment(&text, "args:").unwrap_or_default();
        let mut command = vk_litmus(["race", "--format", "json"]);
        let ran = Ran::run(command.arg(&file).args(arguments.split_whitespace()));
        // The schema of the contract does not list this verdict.
        let count = if expected == "needs-inputs" { 1 } else { usize::MAX };
        for schema in schemas("race.schema.json", "race.schema.json").iter().take(count) {
            assert_valid(schema, &ran.json_lines()[0]);
        }
        let line: RaceLine = serde_json::from_str(&ran.stdout).unwrap();
        let code = match expected {
            "clean" => 0,
            "needs-inputs" | "undecided" => 3,
            _ => 1,
        };
        let headline = headline(&line);
        // What a proof adds is not in the expectation.
        let verdict = headline.split(" for every input").next().unwrap_or_default();
        if (verdict, ran.code) != (expected, code) {
            wrong.push(format!("{}: {headline} {}, not {expected}", file.display(), ran.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The case that `--save-case` writes has the same verdict and findings as the chosen inputs. Fixes may differ: they
/// hold for every choice, and the case has one.
#[test]
fn a_saved_case_reproduces_the_chosen_inputs() {
    if !installed("glslangValidator") {
        return;
    }
    let saved = tempfile::tempdir().unwrap();
    for name in ["count-uniform", "stride-push", "address", "early-return", "local-size"] {
        let file = format!("{}/{name}.comp", folder());
        let case = saved.path().join(format!("{name}.toml"));
        let case = case.to_str().unwrap();
        let verdict = |arguments: &[&str]| {
            let mut command = vk_litmus(["race", "--format", "json", &file]);
            let ran = Ran::run(command.args(arguments));
            let mut line: RaceLine = serde_json::from_str(&ran.stdout).unwrap();
            line.findings.iter_mut().for_each(|finding| finding.set_changes(Vec::new()));
            (line.verdict, line.findings, ran.code)
        };
        let chosen = verdict(&["--save-case", case]);
        assert_eq!(verdict(&["--case", case]), chosen, "{name}");
    }
}

/// No command calls a shader race-free that `race` calls racy or in need of inputs, other than contents of a buffer that
/// decide a finding: `check` and `explain` are about one choice of them.
#[test]
fn no_command_is_clean_where_race_is_not() {
    if !installed("glslangValidator") || !installed("naga") {
        return;
    }
    let mut files: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 6 };
    let mut compared = 0;
    for file in files.into_iter().step_by(share) {
        let text = fs::read_to_string(&file).unwrap();
        if !matches!(comment(&text, "expect:"), Some("needs-inputs" | "racy")) {
            continue;
        }
        let arguments = comment(&text, "args:").unwrap_or_default();
        let mut race = vk_litmus(["race", "--format", "json"]);
        let race = Ran::run(race.arg(&file).args(arguments.split_whitespace()));
        let needs = race.json_lines()[0]["needs"].as_array().cloned().unwrap_or_default();
        let is_buffer = |needed: &serde_json::Value| {
            needed["lines"] == "" && needed["option"].as_str().is_some_and(|option| option.starts_with("--b"))
        };
        if !needs.is_empty() && needs.iter().all(is_buffer) {
            continue;
        }
        for command in ["check", "explain"] {
            let mut command_line = vk_litmus([command]);
            let ran = Ran::run(command_line.arg(&file).args(arguments.split_whitespace()));
            assert!([1, 3].contains(&ran.code), "{command} {}: {ran:?}", file.display());
        }
        compared += 1;
    }
    assert!(compared > 4);
}
