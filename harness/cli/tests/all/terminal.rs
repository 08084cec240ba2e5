//! Output on a terminal: control characters are escaped, and colours appear only on request.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{Ran, binary, vk_litmus};

const SB: &str = include_str!("cases/files/mixed/SB.litmus");
/// A name that would clear the screen, ring the bell and reverse the text direction.
const NAME: &str = "x\u{1b}[2J\u{7}\u{9b}31m\u{202e}.litmus";

fn is_active(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}'
}

#[test]
fn control_characters_in_file_names_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("t")).unwrap();
    fs::write(folder.path().join("t").join(NAME), SB).unwrap();
    fs::write(folder.path().join("t").join(format!("bad{NAME}")), "VULKAN\n{").unwrap();
    let command_lines: [&[&str]; 4] = [
        &["check", "t"],
        &["run", "t", "--device", "sim", "--instances", "1000", "--seed", "1", "--out", "out"],
        &["check", NAME],
        &["run", "--suite", "\u{1b}[2J"],
    ];
    for command_line in command_lines {
        let ran = Ran::run(vk_litmus(command_line.iter().copied()).current_dir(folder.path()));
        assert!(ran.stderr.contains("\\u{1b}[2J") || ran.stdout.contains("\\u{1b}[2J"), "{ran:?}");
        assert_eq!((ran.stdout + &ran.stderr).find(is_active), None, "{command_line:?}");
    }
    let summary = fs::read_to_string(folder.path().join("out/summary.txt")).unwrap();
    assert_eq!(summary.find(is_active), None, "{summary}");
    let unknown = Ran::run(&mut vk_litmus(["run", "--\u{1b}]0;title\u{7}"]));
    assert_eq!((unknown.code, unknown.stderr.find(is_active)), (2, None), "{unknown:?}");
}

/// Runs a command line on a pseudo-terminal of `script`; `None` if it is not installed.
fn on_a_terminal(folder: &std::path::Path, line: &str, no_colour: bool) -> Option<String> {
    let mut command = Command::new("script");
    command.args(["-qec", line, "/dev/null"]).current_dir(folder).env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    if no_colour {
        command.env("NO_COLOR", "1");
    }
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            println!("1 skipped: script (package bsdutils) is not installed");
            None
        }
    }
}

#[test]
fn terminals_get_colours_and_a_table_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("t")).unwrap();
    fs::write(folder.path().join("t").join(NAME), SB).unwrap();
    let binary = binary();
    let of_width = |columns: u16| {
        let binary = binary.to_str().unwrap();
        format!("stty cols {columns}; '{binary}' run t --device sim --instances 1000 --seed 1 2>/dev/null")
    };
    // The longest words of the columns and the frame need 89 columns.
    let run = of_width(90);
    let Some(coloured) = on_a_terminal(folder.path(), &run, false) else { return };
    assert!(coloured.contains("\u{1b}["), "colours: {coloured:?}");
    assert!(!coloured.contains("\u{1b}[2J") && !coloured.contains('\u{7}') && !coloured.contains('\u{9b}'));
    let Some(plain) = on_a_terminal(folder.path(), &run, true) else { return };
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let table = plain.lines().filter(|line| line.starts_with(['│', '┌', '└', '╞']));
    let widths: Vec<usize> = table.map(|line| line.trim_end().chars().count()).collect();
    assert!(widths.len() > 3 && widths.iter().all(|width| *width <= 90), "{widths:?}\n{plain}");
    // In a narrower terminal, words are still not broken.
    let Some(narrow) = on_a_terminal(folder.path(), &of_width(60), true) else { return };
    let lines: Vec<&str> = narrow.lines().map(str::trim_end).collect();
    assert!(lines.contains(&"  verdict      conforms") && !narrow.contains('│'), "{narrow}");
}

#[test]
fn progress_is_shown_only_on_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &str| {
        let binary = binary();
        let line =
            format!("'{}' run coherence/CoRR+rlx --device sim --time 2s --seed 1 {more}", binary.display());
        on_a_terminal(folder.path(), &line, true)
    };
    let (Some(shown), Some(quiet)) = (run(""), run("--quiet")) else { return };
    assert!(shown.contains("0/1") && shown.contains("left"), "{shown:?}");
    assert!(!quiet.contains("0/1"), "{quiet:?}");
}

#[test]
fn terminals_get_violations_immediately_and_a_short_report() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &str| {
        let line = format!(
            "stty cols 200; '{}' run 'coherence/*' avvis/MP+rel-acq.av-semvis --device sim --fault acquire-no-invalidate \
             --instances 2000 --seed 2 {more}",
            binary().display()
        );
        on_a_terminal(folder.path(), &line, true)
    };
    let (Some(brief), Some(whole)) = (run(""), run("--table")) else { return };
    let rows =
        |text: &str| text.lines().filter(|line| line.starts_with('│') && line.contains("conforms")).count();
    assert!(!brief.contains('┌') && rows(&whole) > 12, "{brief}\n{whole}");
    for text in [&brief, &whole] {
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}: {text}"));
        assert!(at("violates: avvis/MP+rel-acq.av-semvis on sim: ") < at("on sim: violates: "), "{text}");
        assert!(at("forbidden outcome") < at(" verdicts: "), "{text}");
    }
    let report = format!("'{}' report vk-litmus-out/*", binary().display());
    let displayed = on_a_terminal(folder.path(), &report, true).unwrap();
    assert!(displayed.contains("report in report.html"), "{displayed}");
}

/// Control characters in a test's header are escaped on a terminal, and preserved in files.
#[test]
fn control_characters_in_headers_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.litmus");
    let text = SB.replacen('\n', "\nwhy: one\rtwo \u{1b}[2J\n", 1);
    fs::write(&path, &text).unwrap();
    let test = litmus::parse(&text, "x.litmus").unwrap();
    assert_eq!(test.metadata.why.last().map(String::as_str), Some("one\rtwo \u{1b}[2J"));
    assert_eq!(litmus::parse(&litmus::print(&test), "x.litmus").unwrap().metadata, test.metadata);
    let ran = Ran::run(&mut vk_litmus(["convert", path.to_str().unwrap(), "--to", "litmus"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("why: one\\u{d}two \\u{1b}[2J"), "{ran:?}");
}
