//! Each file of `cases/` is a command line; a snapshot holds its exit code and output.
//!
//! A case has one argument per line; `env NAME=VALUE` sets a variable and `#` begins a comment. It runs in
//! the folder of the cases. Tests of several commands, and those with varying output, are in `steps/`.

use std::path::Path;

use crate::common::{Ran, vk_litmus};

#[test]
fn command_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/cases");
    insta::glob!("cases/*.case", |case| {
        let text = std::fs::read_to_string(case).unwrap();
        let mut arguments = Vec::new();
        let mut variables = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix("env ") {
                Some(variable) => variables.push(variable.split_once('=').unwrap()),
                None => arguments.push(line),
            }
        }
        let mut command = vk_litmus(arguments.iter().copied());
        let ran = Ran::run(command.envs(variables).current_dir(&folder));
        let stdout = without_model_lines(&without_times(&ran.stdout));
        let shown = format!(
            "$ vk-litmus {}\nexit code: {}\n-- stdout\n{stdout}-- stderr\n{}",
            arguments.join(" "),
            ran.code,
            ran.stderr
        );
        assert!(!ran.stderr.contains("panicked"), "{shown}");
        insta::assert_snapshot!(shown);
    });
    assert!(!folder.join("vk-litmus-out").exists(), "no case may leave a results folder");
}

/// Removes line numbers of cat files, which change with comments in them.
fn without_model_lines(text: &str) -> String {
    let mut parts = text.split(".cat:");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown += ".cat:…";
        shown += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    shown
}

/// Removes times.
fn without_times(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\"micros\":") {
        shown += before;
        shown += "\"micros\":…";
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let mut lines: Vec<String> = (shown + rest).lines().map(str::to_owned).collect();
    // The time in a log of herd's format.
    for line in lines.iter_mut().filter(|line| line.starts_with("Time ")) {
        let name = line.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        line.replace_range(name.., "…");
    }
    lines.into_iter().map(|line| line + "\n").collect()
}
