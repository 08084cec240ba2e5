//! The Google Test protocol as test runners parse it, and Mesa's runner if installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Ran, binary, vk_litmus};

/// Arguments with a fault, tests that detect it, and tests that do not.
const RUN: [&str; 10] = [
    "run",
    "avvis/*",
    "coherence/CoRR+rlx",
    "sb/SB+plain-plain",
    "--device",
    "sim",
    "--fault",
    "acquire-no-invalidate",
    "--instances",
    "2000",
];
const VIOLATING: &str = "litmus.avvis/MP+rel-acq.av-semvis";

fn protocol(folder: &Path, more: &[&str]) -> Command {
    let mut command = vk_litmus(RUN);
    command.args(["--seed", "2"]).args(more).current_dir(folder);
    command
}

/// Parses the list as Mesa's gtest-runner does: a line with a dot is a group up to its last dot, any other a
/// test.
fn listed(text: &str) -> Vec<String> {
    let mut group = String::new();
    let mut names = Vec::new();
    for line in text.lines() {
        match line.rfind('.') {
            Some(dot) => line[..=dot].rsplit(' ').next().unwrap().clone_into(&mut group),
            None => names.push(format!("{group}{}", line.split_whitespace().next().unwrap())),
        }
    }
    names
}

/// Parses the results as Mesa's gtest-runner does: the first bracketed word after a RUN line is the status.
fn results(text: &str) -> Vec<(String, String)> {
    let mut current: Option<String> = None;
    let mut results = Vec::new();
    for line in text.lines() {
        if let Some(name) = current.take_if(|_| bracketed(line).is_some()) {
            results.push((name, bracketed(line).unwrap().to_owned()));
        } else if current.is_none()
            && let Some(name) = line.strip_prefix("[ RUN      ] ")
        {
            current = Some(name.to_owned());
        }
    }
    assert_eq!(current, None, "a test without an end");
    results
}

/// Returns the only bracketed word of a line that is followed by white space.
fn bracketed(line: &str) -> Option<&str> {
    let (_, after) = line.split_once('[')?;
    let (inner, rest) = after.split_once(']')?;
    let word = inner.trim();
    (!word.contains(char::is_whitespace) && rest.starts_with(char::is_whitespace)).then_some(word)
}

#[test]
fn a_runner_reads_list_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let list = Ran::run(&mut protocol(folder.path(), &["--gtest_list_tests"]));
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{list:?}");
    let names = listed(&list.stdout);
    assert!(names.iter().any(|name| name == VIOLATING), "{names:?}");
    assert!(!folder.path().join("vk-litmus-out").exists(), "a list runs nothing");

    let filter = format!("--gtest_filter={}", names.join(":"));
    let ran = Ran::run(&mut protocol(folder.path(), &[&filter, "--gtest_output=json:out/results.json"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    let results = results(&ran.stdout);
    let mut expected = names.clone();
    expected.sort();
    let mut names: Vec<String> = results.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(names, expected);
    let status = |name: &str| results.iter().find(|(known, _)| known == name).unwrap().1.as_str();
    assert_eq!(status(VIOLATING), "FAILED");
    assert_eq!(status("litmus.coherence/CoRR+rlx"), "OK");
    assert_eq!(status("litmus.sb/SB+plain-plain"), "SKIPPED", "racy: not judged");

    let file = fs::read_to_string(folder.path().join("out/results.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let failures = results.iter().filter(|(_, status)| status == "FAILED").count();
    assert_eq!(
        (file["tests"].as_u64(), file["failures"].as_u64()),
        (Some(results.len() as u64), Some(failures as u64))
    );
    assert!(ran.stdout.contains(&format!("[  FAILED  ] {failures} test")), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("again: vk-litmus run avvis/MP+rel-acq.av-semvis --device sim"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_xml_file() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Ran::run(&mut protocol(folder.path(), &["--gtest_output=xml:results/"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    let xml = fs::read_to_string(folder.path().join("results/vk-litmus.xml")).unwrap();
    let failures = xml.matches("<failure ").count();
    assert!(failures > 0, "{xml}");
    assert!(xml.contains(&format!("failures=\"{failures}\"")), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), results(&ran.stdout).len());
    assert!(xml.contains("classname=\"litmus\""), "{xml}");
}

#[test]
fn filters_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let list = |more: &[&str]| {
        listed(&Ran::run(&mut protocol(folder.path(), &[more, &["--gtest_list_tests"]].concat())).stdout)
    };
    let all = list(&[]);
    assert_eq!(list(&["--gtest_filter=*.av-semvis"]), [VIOLATING]);
    assert_eq!(list(&["--gtest_filter=*-litmus.avvis/*"]).len(), 2);
    assert!(list(&["--gtest_filter=nothing"]).is_empty());

    let mut together = Vec::new();
    for shard in ["0", "1", "2"] {
        let status = folder.path().join(format!("status-{shard}"));
        let mut command = protocol(folder.path(), &["--format", "gtest"]);
        command.env("GTEST_SHARD_INDEX", shard).env("GTEST_TOTAL_SHARDS", "3");
        let ran = Ran::run(command.env("GTEST_SHARD_STATUS_FILE", &status));
        assert!(status.is_file(), "shards are acknowledged");
        together.extend(results(&ran.stdout).into_iter().map(|(name, _)| name));
    }
    together.sort();
    let mut all = all;
    all.sort();
    assert_eq!(together, all);

    let nothing = Ran::run(&mut protocol(folder.path(), &["--gtest_filter=nothing"]));
    assert_eq!(nothing.code, 0, "{nothing:?}");
    assert!(nothing.stdout.contains("0 tests"), "{}", nothing.stdout);
}

/// A runner repeats a group after a failure, and reports a flake if a test then passes. Violations are rare,
/// so the second run, with another seed, must report the violations of the first again.
#[test]
fn a_violation_survives_the_second_run() {
    let folder = tempfile::tempdir().unwrap();
    // With one instance per test, seeds determine the outcomes.
    let run = |seed: &str, driven: bool| {
        let mut command =
            vk_litmus(["run", "--device", "sim", "--fault", "acquire-no-invalidate", "--seed", seed]);
        command.args(["avvis/*", "--instances", "100", "--format", "gtest"]).current_dir(folder.path());
        if driven {
            command.env("DEQP_RUNNER_THREAD", "0");
        }
        let mut failed: Vec<String> = results(&Ran::run(&mut command).stdout)
            .into_iter()
            .filter_map(|(name, status)| (status == "FAILED").then_some(name))
            .collect();
        failed.sort();
        failed
    };
    let first = (1..50).map(|seed| (seed.to_string(), run(&seed.to_string(), false)));
    let mut first = first.filter(|(_, failed)| !failed.is_empty());
    let (seed, failed) = first.next().unwrap();
    // The command line as the runner writes it: without a seed, so that each run has a new one.
    assert_eq!(run(&seed, true), failed);
    let other = (50..100).map(|seed: i32| seed.to_string()).find(|seed| run(seed, false).is_empty());
    let other = other.expect("a seed that shows nothing");
    assert_eq!(run(&other, true), Vec::<String>::new(), "another command line is another run");
    assert_eq!(run(&seed, true), failed, "the same one is not run again");
    let folders = fs::read_dir(folder.path().join("vk-litmus-out/reruns")).unwrap().count();
    assert_eq!(folders, 2, "one memory for each way of running");
}

/// Processes of one runner without a seed share one, and the second process restores the outcomes of the
/// first.
#[test]
fn stored_outcomes_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut command = vk_litmus(["run", "sb/SB+rlx-rlx", "--device", "sim", "--instances", "2000"]);
        command.args(["--format", "gtest"]).env("DEQP_RUNNER_THREAD", "0").current_dir(folder.path());
        assert_eq!(Ran::run(&mut command).code, 0);
    }
    let out = fs::read_dir(folder.path().join("vk-litmus-out")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = out.filter(|path| path.join("plan.json").is_file()).collect();
    assert_eq!(folders.len(), 2);
    let read: Vec<_> = folders.iter().map(|path| results::read::read_results(path).unwrap()).collect();
    assert_eq!(read[0].lines, read[1].lines);
}

#[test]
fn hostile_ids_have_one_name_each() {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("cases/files/mixed/SB.litmus");
    fs::create_dir(folder.path().join("t")).unwrap();
    for name in
        ["a b.litmus", "a:b.litmus", "a*b.litmus", "[ OK ] x.litmus", "\u{1b}[2J.litmus", "a#b.litmus"]
    {
        fs::write(folder.path().join("t").join(name), text).unwrap();
    }
    let run = |more: &[&str]| {
        let mut command = vk_litmus(["run", "t", "--device", "sim", "--instances", "2000", "--seed", "1"]);
        Ran::run(command.args(more).current_dir(folder.path()))
    };
    let names = listed(&run(&["--gtest_list_tests"]).stdout);
    assert_eq!(names.len(), 6, "{names:?}");
    for name in &names {
        let ran = run(&[&format!("--gtest_filter={name}")]);
        assert_eq!(results(&ran.stdout), [(name.clone(), "OK".to_owned())], "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'));
    }
}

/// Mesa's gtest-runner, in the path or in VK_LITMUS_GTEST_RUNNER, runs the unmodified binary.
#[test]
fn mesas_gtest_runner_drives_the_binary() {
    let runner = std::env::var_os("VK_LITMUS_GTEST_RUNNER").unwrap_or_else(|| "gtest-runner".into());
    if Command::new(&runner).arg("--help").output().is_err() {
        println!("1 skipped: gtest-runner is not installed (cargo install deqp-runner)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let drive = |output: &str, more: &[&str]| {
        let mut command = Command::new(&runner);
        command.args(["run", "--jobs", "2", "--output", output, "--gtest"]).arg(binary());
        command.args(more).arg("--").args(RUN).args(["--seed", "1"]).current_dir(folder.path());
        let ran = Ran::run(&mut command);
        let results = fs::read_to_string(folder.path().join(output).join("results.csv")).unwrap();
        let rows: Vec<(String, String)> = results
            .lines()
            .map(|line| {
                let mut fields = line.split(',');
                (fields.next().unwrap().to_owned(), fields.next().unwrap().to_owned())
            })
            .collect();
        (ran, rows)
    };
    let (ran, rows) = drive("first", &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let status = |rows: &[(String, String)], name: &str| {
        rows.iter().find(|(known, _)| known == name).map(|(_, status)| status.clone()).unwrap()
    };
    assert_eq!(status(&rows, VIOLATING), "Fail", "{rows:?}");
    assert_eq!(status(&rows, "litmus.coherence/CoRR+rlx"), "Pass");
    assert_eq!(status(&rows, "litmus.sb/SB+plain-plain"), "Skip");
    assert!(rows.iter().all(|(_, status)| status != "Flake" && status != "Missing"), "{rows:?}");

    // The baseline files of the runner accept the names.
    let baseline = folder.path().join("first/failures.csv");
    let (ran, rows) = drive("second", &["--baseline", baseline.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(status(&rows, VIOLATING), "ExpectedFail");
}
