//! Tests of the reader: older, foreign, newer, truncated and hostile records. Each case is a file of
//! `records/` with a snapshot of the result.

use std::path::{Path, PathBuf};

use results::journal::seal_record;
use results::read::{ReadError, read_results};
use results::report::Report;
use results::write::{ReportFormat, write_report};
use tempfile::tempdir;

use crate::lines::{plan, run_lines, whole_plan};

fn records() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/records")
}

/// Returns true for characters that a terminal or a text reader interprets.
fn is_control(text: &str) -> bool {
    text.chars().any(|c| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)))
}

#[test]
fn every_record_file_is_read_or_refused_with_its_line() {
    insta::glob!("records/*.jsonl", |path| {
        let answer = match read_results(path) {
            Ok(found) => {
                let lines: Vec<String> = found
                    .lines
                    .iter()
                    .map(|line| format!("{:?} on {:?}: {}\n", line.id, line.device, line.verdict.name()))
                    .collect();
                format!("{}incomplete: {:?}\n", lines.concat(), found.incomplete)
            }
            Err(error) => {
                assert!(error.is_input());
                let folder = records().to_string_lossy().into_owned();
                error.to_string().replace(&folder, "records")
            }
        };
        assert!(!is_control(&answer), "{answer:?}");
        insta::assert_snapshot!(answer);
    });
}

/// Every format escapes such characters, and its syntax stays valid.
#[test]
fn hostile_names_are_escaped() {
    let found = read_results(&records().join("hostile.jsonl")).unwrap();
    let all = [found];
    let laid = Report::new(&all);
    for format in [
        ReportFormat::Html,
        ReportFormat::Markdown,
        ReportFormat::Csv,
        ReportFormat::Json,
        ReportFormat::Junit,
        ReportFormat::Herd,
    ] {
        let mut out = Vec::new();
        write_report(format, &all, &laid, &[], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!is_control(&text), "{format:?}");
        if matches!(format, ReportFormat::Html | ReportFormat::Markdown | ReportFormat::Junit) {
            assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{format:?}");
        }
        match format {
            ReportFormat::Json => {
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(value["runs"][0]["id"], laid.tests[0].id, "escapes mean the same");
            }
            ReportFormat::Junit => {
                let read = quick_junit::Report::deserialize_from_str(&text).unwrap();
                let cases: usize = read.test_suites.iter().map(|suite| suite.test_cases.len()).sum();
                assert_eq!(cases, laid.tests.len());
            }
            ReportFormat::Herd => {
                let blocks = crate::herd::read_log(crate::herd::Rule::log, &text);
                let logged = all[0].lines.iter().filter(|line| line.outcomes.iter().any(|o| o.count > 0));
                assert_eq!(blocks.len(), logged.count());
            }
            ReportFormat::Csv => {
                let mut rows = csv::Reader::from_reader(text.as_bytes());
                assert!(
                    rows.records().all(|row| row.unwrap().len() == results::write::csv::RUN_COLUMNS.len())
                );
            }
            ReportFormat::Html | ReportFormat::Markdown => {}
        }
    }
}

#[test]
fn a_folder_is_read_in_plan_order() {
    let root = tempdir().unwrap();
    let (lines, whole) = (run_lines(), whole_plan());
    let mut folder = results::folder::ResultsFolder::start(root.path(), &whole).unwrap();
    for line in lines.iter().rev() {
        folder.append(line).unwrap();
    }
    let found = read_results(root.path()).unwrap();
    assert_eq!(found.lines, lines);
    assert_eq!(found.plan, Some(whole));
    assert_eq!(found.incomplete, None);
}

#[test]
fn a_verdict_that_is_not_in_the_plan_is_foreign() {
    let root = tempdir().unwrap();
    let mut folder = results::folder::ResultsFolder::start(root.path(), &plan()).unwrap();
    folder.append(&run_lines()[1]).unwrap();
    let error = read_results(root.path()).unwrap_err();
    assert!(matches!(error, ReadError::Malformed { line: 1, .. }), "{error}");
    assert!(error.to_string().contains("not in the plan"), "{error}");
}

#[test]
fn an_incomplete_last_line_is_skipped_and_reported() {
    let root = tempdir().unwrap();
    let path = root.path().join("run.jsonl");
    let lines: Vec<String> = run_lines().iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    let text = format!("{}\n{}\n{}", lines[0], lines[1], &lines[2][..40]);
    std::fs::write(&path, text).unwrap();
    let found = read_results(&path).unwrap();
    assert_eq!(found.lines, run_lines()[..2]);
    assert_eq!(found.incomplete.map(|incomplete| (incomplete.line, incomplete.bytes)), Some((3, 40)));
    // A last line without a line end is complete.
    std::fs::write(&path, format!("{}\n{}", lines[0], lines[1])).unwrap();
    assert_eq!(read_results(&path).unwrap().lines.len(), 2);
}

/// After flipping any bit of a journal, the reader returns only verdicts that were written.
#[test]
fn flipped_bits_never_change_a_verdict() {
    let (lines, whole) = (&run_lines()[..3], whole_plan());
    let journal: Vec<u8> = lines.iter().flat_map(|line| seal_record(line).unwrap()).collect();
    let read = |bytes: &[u8]| results::read::read_lines(Path::new("run.jsonl"), bytes, Some(whole.clone()));
    let written = read(&journal).unwrap().lines;
    assert_eq!(written.len(), 3);
    let (mut refused, mut cut) = (0, 0);
    for bit in 0..journal.len() * 8 {
        let mut flipped = journal.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match read(&flipped) {
            Err(error) => {
                assert!(error.is_input());
                refused += 1;
            }
            // A flipped bit in the last line end makes the line incomplete.
            Ok(found) => {
                assert!(found.incomplete.is_some() && found.lines.len() == 2, "bit {bit}: {found:?}");
                assert!(found.lines.iter().all(|line| written.contains(line)), "bit {bit}");
                cut += 1;
            }
        }
    }
    assert_eq!((refused, cut), (journal.len() * 8 - 8, 8));
}

/// A file truncated at any byte is read up to that byte or refused, without a panic.
#[test]
fn truncated_files_cause_no_panic() {
    let root = tempdir().unwrap();
    let path = root.path().join("run.jsonl");
    let text = serde_json::to_string(&run_lines()[0]).unwrap();
    for end in 0..text.len() {
        std::fs::write(&path, &text[..end]).unwrap();
        if let Ok(found) = read_results(&path) {
            assert!(found.lines.is_empty() && found.incomplete.is_some(), "{end}");
        }
    }
}

#[test]
fn files_without_results_are_refused() {
    let root = tempdir().unwrap();
    assert!(matches!(read_results(root.path()), Err(ReadError::NotResults { .. })));
    let missing = root.path().join("missing");
    assert!(read_results(&missing).unwrap_err().is_input());
    std::fs::write(&missing, "").unwrap();
    assert!(matches!(read_results(&missing), Err(ReadError::Empty { .. })));
    assert!(matches!(read_results(Path::new("/dev/null")), Err(ReadError::NotAFile { .. })));
    for plan in ["", "{}", "[1]", "{\"schema\":\"vk-litmus/plan/7\"}", "nonsense"] {
        std::fs::write(root.path().join("plan.json"), plan).unwrap();
        let error = read_results(root.path()).unwrap_err();
        assert!(error.is_input(), "{error}");
        assert_eq!(matches!(error, ReadError::Newer { .. }), plan.contains('7'), "{error}");
    }
}
