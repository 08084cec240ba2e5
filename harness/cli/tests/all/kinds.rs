//! Shaders of many kinds: the answers of `race` with the flags in their first line, and the answers after
//! applying the fixes.
//!
//! Expected answers stand in the shader, on the line they speak of: `//~ race with 16`, `//~ fix: …`. The verdicts
//! are at its end. `VK_LITMUS_BLESS=1` writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use results::wire::ChangeRecord;
use results::write::change::describe_change;
use serde_json::Value;

use crate::common::{Ran, assert_valid, installed, schemas, vk_litmus};

/// Formats the verdict, with the orders tried, or the reason of a refusal.
fn verdict(line: &Value) -> String {
    let mut text = line["verdict"].as_str().unwrap().to_owned();
    if line["verdict"] == "clean" && line["coverage"]["schedules"]["every"] == false {
        text += " in the orders tried";
    }
    if let Some(why) = line["why"].as_str() {
        write!(text, " ({})", why.rsplit('/').next().unwrap_or(why)).unwrap();
    }
    text
}

/// Formats the verdict, and the kind and lines of each finding.
fn summary(line: &Value) -> String {
    let mut text = verdict(line);
    for finding in line["findings"].as_array().unwrap() {
        let lines = finding["at"].as_array().unwrap().iter().map(|place| place["line"].to_string());
        let lines: Vec<String> = lines.collect();
        write!(text, "; {} {}", finding["kind"].as_str().unwrap(), lines.join("/")).unwrap();
        for (number, (line, change)) in changes(finding).iter().enumerate() {
            write!(text, " {} {line}: {change}", if number == 0 { "->" } else { "and" }).unwrap();
        }
    }
    text
}

/// Returns the fixes of a finding: lines with the change.
fn changes(finding: &Value) -> Vec<(u64, String)> {
    let change = |record: &Value| {
        let record: ChangeRecord = serde_json::from_value(record.clone()).unwrap();
        (u64::from(record.line.unwrap()), describe_change(&record.change))
    };
    finding["change"]["parts"].as_array().into_iter().flatten().map(change).collect()
}

/// Applies the fixes to a shader; `None` unless every finding has edits.
fn apply_fixes(text: &str, line: &Value) -> Option<String> {
    let mut edits: BTreeSet<(u64, u64, String)> = BTreeSet::new();
    for finding in line["findings"].as_array().unwrap() {
        let found: Vec<&Value> = finding["change"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|change| change["edits"].as_array().into_iter().flatten())
            .collect();
        if found.is_empty() {
            return None;
        }
        let number = |edit: &Value, field: &str| edit[field].as_u64().unwrap();
        edits.extend(found.into_iter().map(|edit| {
            (number(edit, "line"), number(edit, "removed"), edit["text"].as_str().unwrap().to_owned())
        }));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if edits.is_empty() {
        return None;
    }
    let (mut mended, mut done) = (String::new(), 0);
    for (line, removed, new) in edits {
        let start = line as usize - 1;
        mended.extend(lines[done..start].iter().copied());
        mended.push_str(&new);
        done = start + removed as usize;
    }
    mended.extend(lines[done..].iter().copied());
    Some(mended)
}

/// Snapshot of the fixes of each kind, as `--fix` writes them for `patch`, with the answers for the fixed
/// shaders.
#[test]
fn fixes_of_each_kind() {
    if !installed("glslangValidator") || !installed("naga") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/fixes");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut table = String::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let flags = text.lines().next().unwrap().trim_start_matches("//");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), &text).unwrap();
        let race = |more: &[&str]| {
            let mut command = vk_litmus(["race", "--format", "json", name]);
            Ran::run(command.args(flags.split_whitespace()).args(more).current_dir(folder.path()))
        };
        let line = race(&["--fix", "fix.patch"]).json_lines().remove(0);
        writeln!(table, "{name}: {}", summary(&line)).unwrap();
        let patch = fs::read_to_string(folder.path().join("fix.patch")).unwrap_or_default();
        table += &patch;
        if patch.is_empty() {
            continue;
        }
        let mut command = std::process::Command::new("patch");
        let applied = Ran::run(command.args(["-p0", "-i", "fix.patch"]).current_dir(folder.path()));
        assert_eq!(applied.code, 0, "{name}: {applied:?}");
        writeln!(table, "    fixed: {}", summary(&race(&[]).json_lines()[0])).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn shaders_of_many_kinds() {
    assert_answers("kinds", 8);
}

#[test]
fn slow_shaders_of_many_kinds() {
    assert_answers("kinds/slow", 12);
}

#[test]
fn task_and_mesh_shaders() {
    assert_answers("mesh", 1);
}

/// Chains of availability and visibility operations. The model does not support nine workgroups; `race` gives
/// for them the answer of the model for two.
#[test]
fn chains_of_operations_are_as_in_the_model() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/chains");
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let flags = text.lines().next().unwrap().trim_start_matches("//");
        let (walked, modelled) = match text.contains("// Racy") {
            true => ("racy", "racy"),
            false => ("clean", "free"),
        };
        for (command, grid, field, expected) in
            [("race", "9", "verdict", walked), ("check", "2", "race", modelled)]
        {
            let ran = Ran::run(
                vk_litmus([command, "--format", "json", "--grid", grid])
                    .arg(&file)
                    .args(flags.split_whitespace()),
            );
            assert_eq!(ran.json_lines()[0][field], expected, "{command} {}", file.display());
        }
    }
}

/// Compares the answers for one in `share` shaders of a folder, in the order of their names, with the expected ones.
///
/// A soak, and a run that writes expectations, take all shaders.
fn assert_answers(folder: &str, share: usize) {
    if !installed("glslangValidator") || !installed("naga") {
        return;
    }
    let is_set = |name: &str| std::env::var(name).is_ok_and(|set| set == "1");
    let is_written = is_set("VK_LITMUS_BLESS");
    let share = if is_written || is_set("VK_LITMUS_SOAK") { 1 } else { share };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let files: Vec<_> = files.into_iter().step_by(share).collect();
    assert!(files.len() > 2);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = fs::read_to_string(file).unwrap();
            let answered = with_answers(file, &text);
            if is_written {
                fs::write(file, answered).unwrap();
            } else if answered != text {
                wrong.lock().unwrap().insert(file, changed_lines(&text, &answered));
            }
        }
    };
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "other answers than expected, `VK_LITMUS_BLESS=1` accepts them: {wrong:#?}");
}

/// Returns the lines of a shader that other answers change, as answered.
fn changed_lines(expected: &str, answered: &str) -> Vec<String> {
    let changed = answered.lines().filter(|line| !expected.lines().any(|other| other == *line));
    changed.map(str::to_owned).collect()
}

/// Returns a shader with the answers of `race`, and of `race` after the fixes, in place of those in its text.
fn with_answers(file: &Path, text: &str) -> String {
    let mut lines: Vec<String> =
        text.lines().map(|line| line.split("//~").next().unwrap().trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let flags = text.lines().next().unwrap().trim_start_matches("//");
    let race = |file: &Path| {
        let mut command = vk_litmus(["race", "--format", "json"]);
        Ran::run(command.arg(file).args(flags.split_whitespace())).json_lines()
    };
    let answers = race(file);
    assert!(!answers.is_empty(), "{}", file.display());
    let (mut marks, mut verdicts) = (BTreeSet::new(), Vec::new());
    for answer in &answers {
        for schema in schemas("race.schema.json", "race.schema.json") {
            // The schema of the contract does not list this verdict.
            let is_known =
                !schema.to_string_lossy().contains("contract") || answer["verdict"] != "needs-inputs";
            if schema.exists() && is_known {
                assert_valid(&schema, answer);
            }
        }
        marks.extend(answer["findings"].as_array().unwrap().iter().flat_map(marks_of));
        let mut verdict = format!("{}: {}", answer["entry"].as_str().unwrap(), verdict(answer));
        if let Some(mended) = apply_fixes(text, answer) {
            let folder = tempfile::tempdir().unwrap();
            let fixed_file = folder.path().join(file.file_name().unwrap());
            fs::write(&fixed_file, mended).unwrap();
            write!(verdict, "; mended: {}", summary(&race(&fixed_file)[0])).unwrap();
        }
        verdicts.push(format!("//~ {verdict}"));
    }
    for (line, _, mark) in marks {
        let line = &mut lines[line as usize - 1];
        let separator = if line.contains("//~") { ";" } else { " //~" };
        write!(line, "{separator} {mark}").unwrap();
    }
    lines.extend(verdicts);
    lines.join("\n") + "\n"
}

/// Returns the expectations for a finding: a line, whether it is of a fix, and the text.
fn marks_of(finding: &Value) -> Vec<(u64, bool, String)> {
    let kind = finding["kind"].as_str().unwrap();
    let places: Vec<u64> =
        finding["at"].as_array().unwrap().iter().filter_map(|place| place["line"].as_u64()).collect();
    let changes = changes(finding);
    let mut mark = kind.to_owned();
    if let Some(other) = places.get(1).filter(|other| **other != places[0]) {
        write!(mark, " with {other}").unwrap();
    }
    if changes.is_empty() {
        mark += ", without a fix";
    }
    let fixes = changes.into_iter().map(|(line, change)| (line, true, format!("fix: {change}")));
    places.first().map(|line| (*line, false, mark)).into_iter().chain(fixes).collect()
}

/// Every finding of a plain read-modify-write has exactly the expected fix.
#[test]
fn plain_updates_become_atomics() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/updates");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let comment = |number: usize| text.lines().nth(number).unwrap().trim_start_matches("// ");
        let ran =
            Ran::run(vk_litmus(["race", "--format", "json"]).arg(&file).args(comment(0).split_whitespace()));
        let line = &ran.json_lines()[0];
        assert_eq!(line["verdict"], "racy", "{}", file.display());
        let expected = comment(1).strip_prefix("fix: ").unwrap();
        for finding in line["findings"].as_array().unwrap() {
            let found: Vec<String> = changes(finding).into_iter().map(|(_, text)| text).collect();
            match expected {
                "none" => assert!(found.iter().all(|text| !text.starts_with("use `")), "{found:?}"),
                expected => assert_eq!(found, [expected], "{}", file.display()),
            }
        }
        files += 1;
    }
    assert!(files > 4);
}
