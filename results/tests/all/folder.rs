//! Tests of the results folder: start, every kind of early end, and resuming.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::lines::{plan, run_lines, whole_plan};
use results::folder::{
    FolderError, JOURNAL, OUTCOMES_FILE, PLAN, ResultsFolder, SUMMARY_FILE, create_unique, read_plan,
};
use results::journal::{JournalError, seal_record};
use results::read::{ReadError, read_results};
use results::wire::{PlanRecord, RunLine, VerdictWord};
use tempfile::tempdir;

#[test]
fn appended_records_survive_the_writer() {
    let root = tempdir().unwrap();
    let path = root.path().join("out");
    let plan = whole_plan();
    let mut folder = ResultsFolder::start(&path, &plan).unwrap();
    for line in &run_lines()[..3] {
        folder.append(line).unwrap();
    }
    drop(folder);
    let (mut folder, recovered) = ResultsFolder::resume(&path, &plan).unwrap();
    assert_eq!(recovered.lines, run_lines()[..3]);
    assert_eq!(recovered.truncated_bytes, 0);
    folder.append(&run_lines()[3]).unwrap();
    drop(folder);
    let (_, recovered) = ResultsFolder::resume(&path, &plan).unwrap();
    assert_eq!(recovered.lines, run_lines()[..4]);
}

#[test]
fn an_incomplete_last_line_is_removed() {
    let root = tempdir().unwrap();
    let plan = whole_plan();
    let mut folder = ResultsFolder::start(root.path(), &plan).unwrap();
    folder.append(&run_lines()[0]).unwrap();
    drop(folder);
    let mut journal = fs::OpenOptions::new().append(true).open(root.path().join(JOURNAL)).unwrap();
    journal.write_all(br#"{"schema":"vk-litmus/run/1","id":"sb/S"#).unwrap();
    drop(journal);
    let (mut folder, recovered) = ResultsFolder::resume(root.path(), &plan).unwrap();
    assert_eq!(recovered.lines, run_lines()[..1]);
    assert_eq!(recovered.truncated_bytes, 38);
    folder.append(&run_lines()[1]).unwrap();
    drop(folder);
    let (_, recovered) = ResultsFolder::resume(root.path(), &plan).unwrap();
    assert_eq!(recovered.lines, run_lines()[..2], "the next record has a line of its own");
}

/// Another process removes, replaces or truncates files while a run writes them. The run notices it at the
/// next verdict or at its end, and leaves a folder that can be resumed.
#[test]
fn changed_files_are_written_again() {
    let lines = run_lines();
    let journal_bytes = |range: std::ops::Range<usize>| -> Vec<u8> {
        lines[range].iter().flat_map(|line| seal_record(line).unwrap()).collect()
    };
    type Case<'a> = (&'a [&'a str], &'a dyn Fn(&Path));
    let changes: [Case<'_>; 8] = [
        (&[], &|_| ()),
        (&[JOURNAL], &|folder| fs::remove_file(folder.join(JOURNAL)).unwrap()),
        (&[JOURNAL], &|folder| {
            fs::File::options().write(true).open(folder.join(JOURNAL)).unwrap().set_len(0).unwrap()
        }),
        (&[JOURNAL], &|folder| {
            let file = fs::File::options().write(true).open(folder.join(JOURNAL)).unwrap();
            file.set_len(file.metadata().unwrap().len() - 7).unwrap();
        }),
        (&[JOURNAL], &|folder| {
            fs::rename(folder.join(JOURNAL), folder.join("old")).unwrap();
            fs::write(folder.join(JOURNAL), journal_bytes(0..1)).unwrap();
        }),
        (&[PLAN], &|folder| fs::write(folder.join(PLAN), "{}").unwrap()),
        (&[PLAN], &|folder| fs::remove_file(folder.join(PLAN)).unwrap()),
        (&[PLAN, JOURNAL], &|folder| fs::remove_dir_all(folder).unwrap()),
    ];
    for (number, (changed, change)) in changes.into_iter().enumerate() {
        for last in [2, 3] {
            let root = tempdir().unwrap();
            let path = root.path().join("out");
            let mut folder = ResultsFolder::start(&path, &whole_plan()).unwrap();
            lines[..2].iter().for_each(|line| folder.append(line).unwrap());
            change(&path);
            lines[2..last].iter().for_each(|line| folder.append(line).unwrap());
            let restored = folder.restore(&lines[..last]).unwrap();
            assert_eq!(restored.iter().map(|file| file.name).collect::<Vec<_>>(), changed, "case {number}");
            assert!(restored.iter().all(|file| file.is_restored));
            assert_eq!(folder.restore(&lines[..last]).unwrap(), [], "case {number}");
            folder.append(&lines[last]).unwrap();
            drop(folder);
            let (_, recovered) = ResultsFolder::resume(&path, &whole_plan()).unwrap();
            assert_eq!(recovered.lines, lines[..=last], "case {number}");
        }
    }
}

/// A plan has an entry for each test, so that very many make it longer than any other record.
#[test]
fn a_long_plan_is_read_back() {
    let root = tempdir().unwrap();
    let path = root.path().join("out");
    let mut long = PlanRecord { budget: "x".repeat(65 << 20), ..whole_plan() };
    long.plan = long.hash().unwrap();
    let mut folder = ResultsFolder::start(&path, &long).unwrap();
    assert_eq!(folder.restore(&[]).unwrap(), []);
    drop(folder);
    assert!(ResultsFolder::resume(&path, &long).is_ok());
}

/// A killed run leaves a journal without holes, although another process truncated it.
#[test]
fn verdicts_after_a_truncation_follow_complete_lines() {
    let root = tempdir().unwrap();
    let mut folder = ResultsFolder::start(root.path(), &whole_plan()).unwrap();
    run_lines()[..2].iter().for_each(|line| folder.append(line).unwrap());
    let file = fs::File::options().write(true).open(root.path().join(JOURNAL)).unwrap();
    file.set_len(file.metadata().unwrap().len() - 7).unwrap();
    folder.append(&run_lines()[2]).unwrap();
    drop(folder);
    let (_, recovered) = ResultsFolder::resume(root.path(), &whole_plan()).unwrap();
    assert_eq!(recovered.lines, [run_lines()[0].clone(), run_lines()[2].clone()]);
}

/// A run never writes to the folder of another run that took its place.
#[test]
fn a_folder_that_another_run_uses_stays_unchanged() {
    let root = tempdir().unwrap();
    let path = root.path().join("out");
    let mut first = ResultsFolder::start(&path, &whole_plan()).unwrap();
    first.append(&run_lines()[0]).unwrap();
    fs::remove_dir_all(&path).unwrap();
    let mut second = ResultsFolder::start(&path, &whole_plan()).unwrap();
    second.append(&run_lines()[1]).unwrap();
    let changed = first.restore(&run_lines()[..1]).unwrap();
    assert!(!changed.is_empty() && changed.iter().all(|file| !file.is_restored), "{changed:?}");
    assert_eq!(second.restore(&run_lines()[1..2]).unwrap(), []);
}

#[test]
fn a_malformed_line_is_an_error_with_its_position() {
    let root = tempdir().unwrap();
    let plan = whole_plan();
    drop(ResultsFolder::start(root.path(), &plan).unwrap());
    let good = seal_record(&run_lines()[0]).unwrap();
    let resumed = |journal: &[&[u8]]| {
        fs::write(root.path().join(JOURNAL), journal.concat()).unwrap();
        match ResultsFolder::resume(root.path(), &plan) {
            Err(FolderError::Journal(JournalError::Read(error))) => error,
            other => panic!("{other:?}"),
        }
    };
    let error = resumed(&[&good, b"nonsense\n"]);
    assert!(matches!(error, ReadError::Malformed { line: 2, .. }), "{error}");
    let newer = String::from_utf8(good).unwrap().replace("vk-litmus/run/1", "vk-litmus/run/2");
    let error = resumed(&[newer.as_bytes()]);
    assert!(matches!(error, ReadError::Newer { line: 1, .. }), "{error}");
}

/// Edited journals that would hide a violation.
#[test]
fn a_journal_that_was_edited_is_refused() {
    let root = tempdir().unwrap();
    let plan = whole_plan();
    drop(ResultsFolder::start(root.path(), &plan).unwrap());
    let refused = |journal: Vec<Vec<u8>>| {
        fs::write(root.path().join(JOURNAL), journal.concat()).unwrap();
        let resumed = ResultsFolder::resume(root.path(), &plan).unwrap_err();
        assert!(resumed.is_input());
        assert_eq!(resumed.to_string(), read_results(root.path()).unwrap_err().to_string(), "one reader");
        resumed.to_string()
    };
    let violates = run_lines().into_iter().find(|line| line.verdict == VerdictWord::Violates).unwrap();
    let edited = |edit: &dyn Fn(&mut RunLine)| {
        let mut line = violates.clone();
        edit(&mut line);
        seal_record(&line).unwrap()
    };
    let unchanged = edited(&|_| ());
    let conforms = edited(&|line| line.verdict = VerdictWord::Conforms);
    let text = String::from_utf8(unchanged.clone()).unwrap();
    let word = text.replace("\"violates\"", "\"conforms\"").into_bytes();
    let bare = [serde_json::to_vec(&violates).unwrap(), b"\n".to_vec()].concat();
    assert!(refused(vec![word]).contains("run.jsonl:1: the record was changed"));
    assert!(refused(vec![bare]).contains("its checksum differs or is missing"));
    assert!(
        refused(vec![conforms.clone()]).contains("does not follow from the counts: `conforms` although 3")
    );
    assert!(refused(vec![unchanged.clone(), unchanged.clone()]).contains("run.jsonl:2: a second verdict"));
    assert!(refused(vec![unchanged, conforms]).contains("run.jsonl:2:"));
    assert!(refused(vec![edited(&|line| line.id = "sb/other".into())]).contains("not in the plan"));
    assert!(refused(vec![edited(&|line| line.model = "sc".into())]).contains("not the plan's model"));
    assert!(refused(vec![edited(&|line| line.hashes.model = "cc".into())]).contains("not the plan's model"));
    assert!(refused(vec![edited(&|line| line.hashes.test = "cc".into())]).contains("text differs"));
    assert!(refused(vec![edited(&|line| line.name = "SB".into())]).contains("name differs"));
}

/// A journal copied from another run of the same tests by the same models.
#[test]
fn a_journal_of_another_run_is_refused() {
    let root = tempdir().unwrap();
    let line = run_lines().remove(0);
    let refused = |edit: &dyn Fn(&mut PlanRecord, &mut RunLine)| {
        let (mut plan, mut line) = (whole_plan(), line.clone());
        edit(&mut plan, &mut line);
        plan.plan = plan.hash().unwrap();
        let mut text = serde_json::to_vec(&plan).unwrap();
        text.push(b'\n');
        fs::write(root.path().join(PLAN), text).unwrap();
        fs::write(root.path().join(JOURNAL), seal_record(&line).unwrap()).unwrap();
        let resumed = ResultsFolder::resume(root.path(), &plan).map(|_| ());
        let read = read_results(root.path()).map(|_| ());
        let to_text = |error: &dyn ToString| error.to_string();
        assert_eq!(
            resumed.map_err(|error| to_text(&error)),
            read.as_ref().map_err(|error| to_text(error)).copied()
        );
        read.err().map(|error| error.to_string().rsplit_once("of another run: ").unwrap().1.to_owned())
    };
    type Edit = &'static dyn Fn(&mut PlanRecord, &mut RunLine);
    let foreign: [Edit; 9] = [
        &|_, line| (line.tool, line.driver) = (String::new(), None),
        &|_, line| (line.seed, line.replay) = (99, String::new()),
        &|plan, _| plan.seed = 0,
        &|_, line| line.tool = "9".into(),
        &|_, line| line.stress = "gpu".into(),
        &|_, line| line.driver.as_mut().unwrap().version = 2,
        &|plan, line| {
            plan.budget = "1000 instances a test".into();
            line.replay += " --instances 448 --model vulkan";
        },
        &|plan, line| {
            plan.budget = "1000 instances a test".into();
            line.outcomes[0].count += 1 << 33;
            line.instances += 1 << 33;
        },
        &|plan, line| {
            plan.budget = "5 dispatches a placement".into();
            line.replay += " --instances 6";
        },
    ];
    insta::assert_snapshot!(foreign.map(|edit| refused(edit).unwrap()).join("\n"));
    let accepted: [Edit; 5] = [
        &|_, _| (),
        // A plan with two stresses, and a plan with the default stress of each device.
        &|plan, _| plan.stress = "gpu,cpu".into(),
        &|plan, _| plan.stress = "default".into(),
        &|plan, line| {
            plan.budget = "1000 instances a test".into();
            line.replay += " --instances 1000";
        },
        // For a time budget, the number of instances in the replay command is irrelevant.
        &|_, line| line.replay += " --instances 448",
    ];
    for edit in accepted {
        assert_eq!(refused(edit), None);
    }
}

/// The files of a run that was killed before it wrote its plan.
#[test]
fn an_unfinished_plan_is_replaced() {
    let root = tempdir().unwrap();
    for left in [&["plan.json.unfinished"][..], &[JOURNAL], &[JOURNAL, "plan.json.unfinished"]] {
        let path = root.path().join(left.concat());
        fs::create_dir(&path).unwrap();
        for name in left {
            fs::write(path.join(name), if *name == JOURNAL { "" } else { "{\"sche" }).unwrap();
        }
        let (folder, recovered) = ResultsFolder::resume(&path, &plan()).unwrap();
        assert!(recovered.lines.is_empty());
        assert_eq!(read_plan(folder.path()).unwrap(), Some(plan()));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    }
    // Verdicts without a plan belong to another program.
    let path = root.path().join("verdicts");
    fs::create_dir(&path).unwrap();
    fs::write(path.join(JOURNAL), "x").unwrap();
    assert!(matches!(ResultsFolder::resume(&path, &plan()), Err(FolderError::NotResults { .. })));
}

/// A symbolic link in place of a file is replaced, and its target stays unchanged.
#[cfg(unix)]
#[test]
fn symbolic_links_are_replaced_or_refused() {
    let root = tempdir().unwrap();
    let precious = root.path().join("precious");
    fs::write(&precious, "text").unwrap();
    let path = root.path().join("out");
    let folder = ResultsFolder::start(&path, &plan()).unwrap();
    for name in [SUMMARY_FILE, "outcomes.csv.unfinished"] {
        std::os::unix::fs::symlink(&precious, path.join(name)).unwrap();
    }
    folder.finish(&folder.plan().complete_lines(Vec::new())).unwrap();
    drop(folder);
    assert!(fs::symlink_metadata(path.join(SUMMARY_FILE)).unwrap().is_file());
    fs::remove_file(path.join(JOURNAL)).unwrap();
    std::os::unix::fs::symlink(&precious, path.join(JOURNAL)).unwrap();
    let error = ResultsFolder::resume(&path, &plan()).unwrap_err();
    assert!(error.is_input(), "{error}");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
}

#[test]
fn another_plan_or_seed_is_refused() {
    let root = tempdir().unwrap();
    drop(ResultsFolder::start(root.path(), &plan()).unwrap());
    let refused = |edit: &dyn Fn(&mut PlanRecord)| {
        let mut other = plan();
        edit(&mut other);
        other.plan = other.hash().unwrap();
        let error = ResultsFolder::resume(root.path(), &other).unwrap_err();
        assert!(matches!(error, FolderError::OtherPlan { .. }), "{error}");
        error.to_string().split_once("another run: ").unwrap().1.split_once("; use").unwrap().0.to_owned()
    };
    type Edit = &'static dyn Fn(&mut PlanRecord);
    let edits: [Edit; 10] = [
        &|plan| plan.tool = "0.2.0".into(),
        &|plan| plan.devices[0].name = "sim".into(),
        &|plan| plan.budget = "500 instances a test".into(),
        &|plan| plan.stress = "gpu".into(),
        &|plan| plan.shard = None,
        &|plan| plan.tests.clear(),
        &|plan| plan.tests[0].hash = "cc".into(),
        &|plan| plan.tests[0].models[0].name = "sc".into(),
        &|plan| plan.tests[0].models[0].hash = "cc".into(),
        &|plan| plan.devices[0].driver_info = "Mesa 23.1".into(),
    ];
    insta::assert_snapshot!(edits.map(|edit| refused(edit)).join("\n"));
    let mut other = plan();
    other.seed = 8;
    assert!(matches!(ResultsFolder::resume(root.path(), &other), Err(FolderError::OtherSeed { .. })));
}

/// A resumed run may have another time limit, and retries tests without a verdict.
#[test]
fn a_run_is_resumed_with_more_time() {
    let root = tempdir().unwrap();
    let mut folder = ResultsFolder::start(root.path(), &whole_plan()).unwrap();
    let mut lines = run_lines()[..2].to_vec();
    lines[1].verdict = VerdictWord::Inconclusive;
    lines[1].reason = Some("no time".into());
    lines[1].outcomes.clear();
    lines[1].unexpected.clear();
    (lines[1].instances, lines[1].interleaved, lines[1].unresolved) = (0, 0, 0);
    for line in &lines {
        folder.append(line).unwrap();
    }
    drop(folder);
    let mut longer = whole_plan();
    let budget = longer.budget.clone();
    longer.budget = "2m".into();
    longer.plan = longer.hash().unwrap();
    for _ in 0..2 {
        let (folder, recovered) = ResultsFolder::resume(root.path(), &longer).unwrap();
        assert_eq!(recovered.lines, lines[..1]);
        assert_eq!(folder.plan().budget, format!("{budget}, then 2m"));
        assert_eq!(read_plan(root.path()).unwrap().unwrap(), *folder.plan());
        let locked = ResultsFolder::resume(root.path(), &longer).unwrap_err();
        assert!(matches!(locked, FolderError::Journal(JournalError::InUse { .. })), "{locked}");
    }
    let journal = fs::read_to_string(root.path().join(JOURNAL)).unwrap();
    assert_eq!(journal.lines().count(), 1);
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let root = tempdir().unwrap();
    fs::write(root.path().join("thesis.tex"), "precious").unwrap();
    assert!(matches!(ResultsFolder::start(root.path(), &plan()), Err(FolderError::NotEmpty { .. })));
    assert!(matches!(ResultsFolder::resume(root.path(), &plan()), Err(FolderError::NotResults { .. })));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn resuming_an_empty_folder_starts_a_run() {
    let root = tempdir().unwrap();
    let path = root.path().join("deep/new");
    assert_eq!(read_plan(&path).unwrap(), None);
    let (folder, recovered) = ResultsFolder::resume(&path, &plan()).unwrap();
    assert!(recovered.lines.is_empty());
    assert_eq!(read_plan(folder.path()).unwrap(), Some(plan()));
}

#[test]
fn two_runs_never_share_a_folder() {
    let root = tempdir().unwrap();
    let first = create_unique(root.path(), "2026-01-01T00-00-00").unwrap();
    let second = create_unique(root.path(), "2026-01-01T00-00-00").unwrap();
    assert_ne!(first, second);
    let _held = ResultsFolder::start(&first, &plan()).unwrap();
    let error = ResultsFolder::resume(&first, &plan()).unwrap_err();
    assert!(matches!(error, FolderError::Journal(JournalError::InUse { .. })), "{error}");
    assert!(error.is_input());
}

#[test]
fn the_end_writes_table_and_summary() {
    let root = tempdir().unwrap();
    let folder = ResultsFolder::start(root.path(), &whole_plan()).unwrap();
    folder.finish(&folder.plan().complete_lines(run_lines())).unwrap();
    let mut names: Vec<String> = fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [OUTCOMES_FILE, PLAN, JOURNAL, SUMMARY_FILE]);
    let summary = fs::read_to_string(root.path().join(SUMMARY_FILE)).unwrap();
    assert!(summary.contains("9 verdicts: 1 conforms, 2 violates"), "{summary}");
}

#[test]
fn an_invalid_plan_is_an_error() {
    let root = tempdir().unwrap();
    fs::write(root.path().join(PLAN), "{}").unwrap();
    assert!(matches!(read_plan(root.path()), Err(FolderError::Read(ReadError::Malformed { .. }))));
    let write = |edit: &dyn Fn(&mut PlanRecord)| {
        let mut plan = plan();
        edit(&mut plan);
        fs::write(root.path().join(PLAN), serde_json::to_vec(&plan).unwrap()).unwrap();
        read_plan(root.path())
    };
    let newer = write(&|plan| plan.schema = "vk-litmus/plan/9".into());
    assert!(matches!(newer, Err(FolderError::Read(ReadError::Newer { .. }))));
    let changed = write(&|plan| plan.tests.clear()).unwrap_err();
    assert!(changed.to_string().contains("its hash differs"), "{changed}");
    let older = write(&|plan| {
        plan.schema = "vk-litmus/plan/1".into();
        plan.plan = plan.hash().unwrap();
    });
    assert!(older.is_ok(), "older plans are read");
    let resumed = ResultsFolder::resume(root.path(), &plan());
    assert!(matches!(resumed, Err(FolderError::OlderPlan { .. })), "and not gone on with");
}
