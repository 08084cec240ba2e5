//! The shader patterns: the claims for each form hold, and the generated tests and pages are current.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use results::wire::{PatternForm, PatternRecord, PatternsRecord};
use serde_json::Value;

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn patterns() -> Vec<PatternRecord> {
    let ran = Ran::run(&mut vk_litmus(["patterns", "--format", "json"]));
    let record: PatternsRecord = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(record.schema, "vk-litmus/patterns/1");
    for schema in schemas("patterns.schema.json", "patterns.schema.json") {
        assert_valid(&schema, &serde_json::to_value(&record).unwrap());
    }
    record.patterns
}

fn is_blessing() -> bool {
    std::env::var_os("VK_LITMUS_BLESS").is_some()
}

/// Compares a file with its generated text, or regenerates it.
fn assert_current(path: &Path, expected: &str) {
    if is_blessing() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} is not current: run the test with VK_LITMUS_BLESS=1", path.display());
}

fn run_on_form(command: &[&str], file: &Path, pattern: &PatternRecord) -> Ran {
    let grid = pattern.grid.map(|n| n.to_string()).join(",");
    let mut program = vk_litmus(command.iter().copied());
    program.arg(file).args(["--grid", &grid, "--assert", &pattern.assertion]);
    // `check` determines the loop bound itself.
    if let Some(bound) = pattern.unroll.filter(|_| command[0] != "check") {
        program.args(["--unroll", &bound.to_string()]);
    }
    Ran::run(&mut program)
}

/// Returns the litmus test of a form: the lifted shader with a name and an expectation.
fn litmus_of(pattern: &PatternRecord, form: &PatternForm, lifted: &str, line: &Value) -> String {
    let body = lifted.strip_prefix("VULKAN main\n").unwrap();
    let holds = line["queries"][0]["holds"].as_bool().unwrap();
    // The outcome in the condition is one that violates the assertion.
    let expected = if holds { "forbidden" } else { "allowed" };
    let race = line["race"].as_str().unwrap();
    let why = form.why.trim().replace('\n', " ");
    let origin = format!("form {} of the pattern {}", form.name, pattern.name);
    format!(
        "VULKAN {}+{}\norigin: {origin}\nwhy: {why}\nexpect: vulkan {expected} {race}\n{body}",
        pattern.name, form.name
    )
}

#[test]
fn each_form_has_the_verdict_that_is_claimed() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    // A soak, and a run that updates the files, take all patterns.
    let share = if is_blessing() || std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 3 };
    for pattern in patterns().into_iter().step_by(share) {
        for form in &pattern.forms {
            let file = folder.path().join(format!("{}.comp", form.name));
            fs::write(&file, &form.glsl).unwrap();
            let ran = run_on_form(&["check", "--format", "json"], &file, &pattern);
            let line = &ran.json_lines()[0];
            let kinds: BTreeSet<&str> = line["findings"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|f| f["kind"].as_str())
                .collect();
            let found = match (line["race"].as_str(), line["queries"][0]["holds"].as_bool()) {
                (Some("racy"), _) => "racy",
                (Some("unknown"), _) if kinds.contains("divergent-barrier") => "divergent",
                (Some("free"), Some(true)) if kinds.is_empty() => "right",
                (Some("free"), Some(false)) if kinds.is_empty() => "wrong",
                _ => "unknown",
            };
            if found != form.verdict || (ran.code == 0) != (found == "right") {
                wrong.push(format!("{} {}: {found}, {ran:?}", pattern.name, form.name));
            }
            // A thread that waits forever has no final values.
            if found == "divergent" {
                continue;
            }
            let lifted = run_on_form(&["convert", "--to", "litmus"], &file, &pattern);
            assert_eq!(lifted.code, 0, "{lifted:?}");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("patterns").join(&pattern.name);
            assert_current(
                &path.join(format!("{}.litmus", form.name)),
                &litmus_of(&pattern, form, &lifted.stdout, line),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks the claims on the generated litmus tests, without a compiler.
#[test]
fn generated_litmus_tests_have_the_claimed_verdicts() {
    let patterns = Path::new(env!("CARGO_MANIFEST_DIR")).join("patterns");
    let ran = Ran::run(&mut vk_litmus(["check", patterns.to_str().unwrap(), "--format", "json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = ran.json_lines();
    let forms: usize = self::patterns()
        .iter()
        .flat_map(|pattern| &pattern.forms)
        .filter(|form| !form.litmus.is_empty())
        .count();
    assert_eq!(lines.len(), forms);
    assert!(lines.iter().all(|line| !line["queries"][0]["expected"].is_null()), "each has its claim");
}

#[test]
fn descriptions_of_patterns_are_consistent() {
    let clause_ids: BTreeSet<&str> = model::clauses::list_clauses().iter().map(|clause| clause.id).collect();
    for pattern in patterns() {
        let name = &pattern.name;
        for clause in &pattern.clauses {
            assert!(clause_ids.contains(clause.as_str()), "{name}: no clause {clause}");
        }
        let names: BTreeSet<&str> = pattern.forms.iter().map(|form| form.name.as_str()).collect();
        assert_eq!(names.len(), pattern.forms.len(), "{name}: forms of one name");
        let (right, wrong): (Vec<_>, Vec<_>) = pattern.forms.iter().partition(|form| form.verdict == "right");
        assert!(!wrong.is_empty(), "{name}: nothing wrong");
        for form in wrong {
            let name = format!("{name} {}", form.name);
            assert!(!form.mend.is_empty() && !form.why.is_empty(), "{name}: no mend");
            // The fix restores the correct form; some fixes are in a separate file.
            for change in &form.mend {
                let is_in_right_form = |text: &str| right.iter().any(|form| form.glsl.contains(text));
                assert!(
                    change.to.split("\n…\n").all(is_in_right_form),
                    "{name}: no right form has `{}`",
                    change.to
                );
            }
            let replaced = form.mend.iter().rev().filter(|change| !change.from.is_empty());
            let undone =
                replaced.fold(form.glsl.clone(), |text, change| text.replacen(&change.from, &change.to, 1));
            if form.mend.iter().all(|change| !change.from.is_empty()) {
                assert_eq!(undone, right[0].glsl, "{name}: undone");
            }
        }
    }
}

#[test]
fn pages_are_current() {
    let folder = root().join("docs/patterns");
    let mut index = String::from(
        "# Patterns of shaders\n\nWays to share memory between invocations of a compute shader, right and commonly wrong, under the Vulkan memory \
         model. Each is GLSL that\n`vk-litmus check` answers, and a litmus test. `vk-litmus patterns NAME` prints a page, `--form FORM` the shader of one \
         form, `--format json`\nall of it as data. Order between dispatches, queues and the host is not part of a shader: see the families `ssw` and `host` \
         of the tests.\n\n| pattern | what | wrong forms |\n|---|---|---|\n",
    );
    let mut names = BTreeSet::from(["README.md".to_owned()]);
    for pattern in patterns() {
        let ran = Ran::run(&mut vk_litmus(["patterns", &pattern.name]));
        assert_eq!(ran.code, 0, "{ran:?}");
        let file = format!("{}.md", pattern.name);
        assert_current(&folder.join(&file), &ran.stdout);
        let wrong: Vec<&str> = pattern
            .forms
            .iter()
            .filter(|form| form.verdict != "right")
            .map(|form| form.name.as_str())
            .collect();
        index += &format!("| [{}]({file}) | {} | {} |\n", pattern.name, pattern.title, wrong.join(", "));
        names.insert(file);
    }
    assert_current(&folder.join("README.md"), &index);
    let found: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, names);
}
