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
    text.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(key)).map(str::trim)
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

/// The case of a finding that depends on chosen inputs shows the finding.
#[test]
fn a_saved_case_shows_a_finding_of_a_larger_grid() {
    if !installed("glslangValidator") {
        return;
    }
    let saved = tempfile::tempdir().unwrap();
    let case = saved.path().join("case.toml");
    let file = format!("{}/larger-grid.comp", folder());
    let code = |option: &str| Ran::run(vk_litmus(["race", &file, option]).arg(&case)).code;
    assert_eq!((code("--save-case"), code("--case")), (3, 1));
}

/// Every command names the code that no chosen launch reaches, and the option that supplies the launch.
#[test]
fn unreached_code_is_named_with_its_option() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/position-hashed.comp", folder());
    for arguments in [
        &["race"][..],
        &["race", "--format", "json"],
        &["race", "--format", "sarif"],
        &["check"],
        &["check", "--format", "json"],
        &["explain"],
        &["run", "--device", "sim", "--instances", "8"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = vk_litmus(arguments.iter().copied());
        let ran = Ran::run(command.arg(&file).current_dir(folder.path()));
        assert_eq!(ran.code, 3, "{arguments:?}: {ran:?}");
        let all = format!("{}{}", ran.stdout, ran.stderr);
        for word in ["needs-inputs", "grid", "line 9", "--grid X,Y,Z"] {
            assert!(all.contains(word), "{arguments:?}, {word}: {all}");
        }
    }
}

#[test]
fn a_part_of_the_launch_is_needed_once() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/position-hashed-twice.comp", folder());
    let ran = Ran::run(&mut vk_litmus(["race", "--format", "json", &file]));
    let line: RaceLine = serde_json::from_str(&ran.stdout).unwrap();
    let needs: Vec<_> = line.needs.iter().map(|needed| (&*needed.name, &*needed.lines)).collect();
    assert_eq!(needs, [("grid", "lines 8, 11")]);
}

#[test]
fn some_workgroups_are_not_enough_for_final_contents() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/workgroups-chosen.comp", folder());
    for arguments in [&["run", "--device", "sim"][..], &["refine", &file]] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = vk_litmus(arguments.iter().copied());
        command.args([&file, "--grid", "4", "--workgroup", "0"]);
        let ran = Ran::run(command.current_dir(folder.path()));
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.messages().contains("--workgroup: "), "{arguments:?}: {ran:?}");
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

/// Each kind of answer has the input, the assumed value, the lines and the option.
#[test]
fn an_answer_names_the_inputs_that_it_needs() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/hash.comp", folder());
    for (command, format) in [
        ("race", "text"),
        ("race", "json"),
        ("race", "sarif"),
        ("race", "html"),
        ("check", "text"),
        ("check", "json"),
        ("check", "sarif"),
        ("check", "html"),
        ("explain", "text"),
        ("explain", "html"),
    ] {
        let ran = Ran::run(&mut vk_litmus([command, &file, "--format", format]));
        assert_eq!(ran.code, 3, "{command} {format}: {ran:?}");
        // `check` prints the answer to standard output, and the assumed inputs to standard error.
        let all = if (command, format) == ("check", "text") { ran.stdout + &ran.stderr } else { ran.stdout };
        for word in ["needs-inputs", "key", "line 13", "--push 0=VALUE"] {
            assert!(all.contains(word), "{command} {format}, {word}: {all}");
        }
    }
}

/// Each command names each kind of input. An exception is `run`, which cannot bind addresses.
#[test]
fn every_command_names_every_kind_of_input() {
    if !installed("glslangValidator") || !installed("naga") {
        return;
    }
    let commands = [
        &["race", "--grid", "2"][..],
        &["check"],
        &["explain"],
        &["run", "--device", "sim", "--instances", "8"],
    ];
    for (file, macros, name, option) in [
        ("hash.comp", None, "key", "--push 0=VALUE"),
        ("key.comp", Some("UNIFORM"), "key", "--buffer key=VALUE"),
        ("key.comp", Some("BUFFER"), "K", "--buffer 0.1=FILE"),
        ("key.comp", Some("IMAGE"), "picture", "--image 0.1=WIDTHxHEIGHT"),
        ("key.comp", Some("CONSTANT"), "key", "--spec 3=VALUE"),
        ("key.comp", Some("ADDRESS"), "at", "--bind push@0=at"),
        ("override-guard.wgsl", None, "limit", "--spec limit=VALUE"),
        ("override-stride.wgsl", None, "count", "--spec count=VALUE"),
    ] {
        let file = format!("{}/{file}", folder());
        for command in commands.iter().filter(|command| command[0] != "run" || macros != Some("ADDRESS")) {
            let macros = macros.iter().flat_map(|name| ["-D", name]);
            let folder = tempfile::tempdir().unwrap();
            let mut command_line = vk_litmus(command.iter().copied());
            let ran = Ran::run(command_line.arg(&file).args(macros).current_dir(folder.path()));
            assert_eq!(ran.code, 3, "{command:?} {file}: {ran:?}");
            let all = format!("{}{}", ran.stdout, ran.stderr);
            for word in ["needs-inputs", &format!("`{name}` is not given"), option] {
                assert!(all.contains(word), "{command:?} {file}, {word}: {ran:?}");
            }
        }
    }
}

/// The assumed addresses point to no buffer, so a dispatch would fault.
#[test]
fn run_skips_shaders_with_addresses() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/key.comp", folder());
    for inputs in ["auto", "zeros"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = vk_litmus(["run", "--device", "sim", "--instances", "8", "-D", "ADDRESS", &file]);
        let ran = Ran::run(command.args(["--inputs", inputs]).current_dir(folder.path()));
        assert_eq!(ran.code, 3, "{ran:?}");
        let all = ran.stdout + &ran.stderr;
        assert!(all.contains("skipped: not available: dispatching buffers that are accessed by"), "{all}");
    }
}

#[test]
fn a_value_for_an_unknown_override_is_refused() {
    let file = format!("{}/override-guard.wgsl", folder());
    let ran = Ran::run(&mut vk_litmus(["race", &file, "--spec", "limmit=1"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    let all = ran.stdout + &ran.stderr;
    assert!(all.contains("--spec limmit: no such override; expected one of limit"), "{all}");
}

/// A command that tries a single choice of inputs must not report the shader race-free because of it.
#[test]
fn every_analysis_needs_contents_that_decide_a_race() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/histogram-plain.comp", folder());
    for command in ["race", "check", "explain"] {
        let ran = Ran::run(&mut vk_litmus([command, &file]));
        assert_eq!(ran.code, 3, "{command}: {ran:?}");
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(all.contains("needs-inputs") && all.contains("`Values` is not given"), "{command}: {ran:?}");
    }
}

/// A race that exists with any contents needs no inputs, although the trial of one choice cannot tell.
#[test]
fn every_analysis_reports_a_race_that_exists_with_any_contents() {
    if !installed("glslangValidator") {
        return;
    }
    let file = format!("{}/histogram-modulus.comp", folder());
    for command in ["race", "check", "explain"] {
        let ran = Ran::run(&mut vk_litmus([command, &file]));
        assert_eq!(ran.code, 1, "{command}: {ran:?}");
        assert!(ran.stdout.contains("data race on `Bins.bins["), "{command}: {ran:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", "--device", "sim", "--instances", "200", "--seed", "1", &file]);
    let ran = Ran::run(command.current_dir(folder.path()));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stdout.contains("undefined") && ran.stdout.contains("prints source lines and fixes"),
        "{ran:?}"
    );
}

#[test]
fn an_assertion_about_an_unknown_name_lists_the_names() {
    let file = format!("{}/assert-false.comp", folder());
    if !installed("glslangValidator") {
        return;
    }
    let ran = Ran::run(&mut vk_litmus(["race", &file, "--assert", "nothing[0] == 1"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stdout.contains("data"), "{ran:?}");
}
