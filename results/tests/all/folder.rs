//! The results folder: starting, ending early in every way, going on.

use std::fs;
use std::io::Write;

use crate::lines::{plan, run_lines};
use results::folder::{Folder, FolderError, JOURNAL, OUTCOMES, PLAN, SUMMARY, fresh, planned};
use results::journal::JournalError;
use tempfile::tempdir;

#[test]
fn what_was_appended_is_there_after_the_writer_is_gone() {
    let root = tempdir().unwrap();
    let path = root.path().join("out");
    let mut folder = Folder::start(&path, &plan()).unwrap();
    for line in &run_lines()[..3] {
        folder.append(line).unwrap();
    }
    drop(folder);
    let (mut folder, recovered) = Folder::resume(&path, &plan()).unwrap();
    assert_eq!(recovered.lines, run_lines()[..3]);
    assert_eq!(recovered.truncated_bytes, 0);
    folder.append(&run_lines()[3]).unwrap();
    drop(folder);
    let (_, recovered) = Folder::resume(&path, &plan()).unwrap();
    assert_eq!(recovered.lines, run_lines()[..4]);
}

#[test]
fn an_incomplete_last_line_is_cut_off() {
    let root = tempdir().unwrap();
    let mut folder = Folder::start(root.path(), &plan()).unwrap();
    folder.append(&run_lines()[0]).unwrap();
    drop(folder);
    let mut journal = fs::OpenOptions::new().append(true).open(root.path().join(JOURNAL)).unwrap();
    journal.write_all(br#"{"schema":"vk-litmus/run/1","id":"sb/S"#).unwrap();
    drop(journal);
    let (mut folder, recovered) = Folder::resume(root.path(), &plan()).unwrap();
    assert_eq!(recovered.lines, run_lines()[..1]);
    assert_eq!(recovered.truncated_bytes, 38);
    folder.append(&run_lines()[1]).unwrap();
    drop(folder);
    let (_, recovered) = Folder::resume(root.path(), &plan()).unwrap();
    assert_eq!(recovered.lines, run_lines()[..2], "the next record has a line of its own");
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_place() {
    let root = tempdir().unwrap();
    drop(Folder::start(root.path(), &plan()).unwrap());
    let good = serde_json::to_string(&run_lines()[0]).unwrap();
    fs::write(root.path().join(JOURNAL), format!("{good}\nnonsense\n{good}\n")).unwrap();
    let error = Folder::resume(root.path(), &plan()).unwrap_err();
    assert!(matches!(error, FolderError::Journal(JournalError::Malformed { line: 2, .. })), "{error}");
    let newer = good.replace("vk-litmus/run/1", "vk-litmus/run/2");
    fs::write(root.path().join(JOURNAL), format!("{newer}\n")).unwrap();
    let error = Folder::resume(root.path(), &plan()).unwrap_err();
    assert!(matches!(error, FolderError::Journal(JournalError::Version { line: 1, .. })), "{error}");
}

#[test]
fn another_plan_or_seed_is_refused() {
    let root = tempdir().unwrap();
    drop(Folder::start(root.path(), &plan()).unwrap());
    let mut other = plan();
    other.plan = "4567".into();
    assert!(matches!(Folder::resume(root.path(), &other), Err(FolderError::OtherPlan { .. })));
    let mut other = plan();
    other.seed = 8;
    assert!(matches!(Folder::resume(root.path(), &other), Err(FolderError::OtherSeed { .. })));
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let root = tempdir().unwrap();
    fs::write(root.path().join("thesis.tex"), "precious").unwrap();
    assert!(matches!(Folder::start(root.path(), &plan()), Err(FolderError::NotEmpty { .. })));
    assert!(matches!(Folder::resume(root.path(), &plan()), Err(FolderError::NotResults { .. })));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn resuming_nothing_starts() {
    let root = tempdir().unwrap();
    let path = root.path().join("deep/new");
    assert_eq!(planned(&path).unwrap(), None);
    let (folder, recovered) = Folder::resume(&path, &plan()).unwrap();
    assert!(recovered.lines.is_empty());
    assert_eq!(planned(folder.path()).unwrap(), Some(plan()));
}

#[test]
fn two_runs_never_share_a_folder() {
    let root = tempdir().unwrap();
    let first = fresh(root.path(), "2026-01-01T00-00-00").unwrap();
    let second = fresh(root.path(), "2026-01-01T00-00-00").unwrap();
    assert_ne!(first, second);
    let _held = Folder::start(&first, &plan()).unwrap();
    let error = Folder::resume(&first, &plan()).unwrap_err();
    assert!(matches!(error, FolderError::Journal(JournalError::InUse { .. })), "{error}");
    assert!(error.is_input());
}

#[test]
fn the_end_writes_table_and_summary() {
    let root = tempdir().unwrap();
    let folder = Folder::start(root.path(), &plan()).unwrap();
    folder.finish(&run_lines()).unwrap();
    let mut names: Vec<String> = fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [OUTCOMES, PLAN, JOURNAL, SUMMARY]);
    let summary = fs::read_to_string(root.path().join(SUMMARY)).unwrap();
    assert!(summary.contains("9 verdicts: 1 conforms, 2 violates"), "{summary}");
}

#[test]
fn a_plan_that_is_none_is_an_error() {
    let root = tempdir().unwrap();
    fs::write(root.path().join(PLAN), "{}").unwrap();
    assert!(matches!(planned(root.path()), Err(FolderError::MalformedPlan { .. })));
    let mut newer = plan();
    newer.schema = "vk-litmus/plan/9".into();
    fs::write(root.path().join(PLAN), serde_json::to_vec(&newer).unwrap()).unwrap();
    assert!(matches!(planned(root.path()), Err(FolderError::PlanVersion { .. })));
}
