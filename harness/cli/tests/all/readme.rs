//! The README's litmus test has the output and the relaxed outcome that it shows.

use std::path::Path;

use crate::common::{Ran, vk_litmus};

/// Returns the first block of the README in this language.
fn block<'a>(readme: &'a str, language: &str) -> &'a str {
    let start = format!("```{language}\n");
    readme.split_once(&start).unwrap().1.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let test = block(&readme, "litmus file=handoff.litmus");
    let example = &readme[readme.find(test).unwrap()..];
    std::fs::write(folder.path().join("handoff.litmus"), test).unwrap();
    let ran = Ran::run(vk_litmus(["check", "handoff.litmus"]).current_dir(folder.path()));
    assert_eq!(
        (ran.code, ran.stdout.trim_end()),
        (0, block(example, "text output").trim_end()),
        "{}",
        ran.stderr
    );

    // The README has the stale value as an outcome of relaxed atomics.
    let relaxed = test.replace(".rel.dv.sc0.semsc0", ".dv.sc0").replace(".acq.dv.sc0.semsc0", ".dv.sc0");
    assert_ne!(relaxed, test);
    std::fs::write(folder.path().join("relaxed.litmus"), relaxed).unwrap();
    let ran = Ran::run(vk_litmus(["check", "relaxed.litmus"]).current_dir(folder.path()));
    assert!(ran.stdout.trim_end().ends_with("(P1:r0 == 1 /\\ P1:r1 == 0) holds"), "{}", ran.stdout);
}
