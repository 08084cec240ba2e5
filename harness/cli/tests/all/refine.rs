//! `refine`: each transformation has its verdict, and errors of tools are reported.

use std::fs;
use std::path::{Path, PathBuf};

use results::wire::{RefineLine, RefineVerdict};

use crate::common::{Ran, assert_valid, installed, vk_litmus};

/// The folder of pairs. `NAME.before.comp` has the open descriptors, the expected verdict and its reason.
fn pairs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/refine")
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
            [line] if line.verdict.name() == key("expect") => {
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
