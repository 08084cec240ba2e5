//! Expectation files on the simulated GPU, with and without a fault: their effect on messages and exit codes.

use std::fs;
use std::path::Path;

use crate::common::{Ran, vk_litmus};

/// A fault, and a test that detects it in every run.
const FAULT: &str = "acquire-no-invalidate";
const VIOLATING: &str = "avvis/MP+rel-acq.av-semvis";
/// A test that does not detect the fault.
const SOUND: &str = "coherence/CoRR+rlx";

/// Runs both tests on the faulty simulated GPU with these expectation files.
fn run(files: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let expectations = folder.path().join("expectations");
    fs::create_dir(&expectations).unwrap();
    for (name, text) in files {
        fs::write(expectations.join(name), text).unwrap();
    }
    run_in(folder.path(), &["--expect", "expectations"])
}

fn run_in(folder: &Path, more: &[&str]) -> Ran {
    let mut command = vk_litmus(["run", VIOLATING, SOUND, "--device", "sim", "--fault", FAULT]);
    command.args(["--instances", "2000", "--seed", "2", "--format", "json"]).args(more);
    Ran::run(command.current_dir(folder))
}

#[test]
fn only_listed_results_are_expected() {
    let (violating, sound) = (format!("{VIOLATING},Fail\n"), format!("{SOUND},Fail\n"));
    let reason = format!("# the invalidate is lost\n# https://example.org/1\n{VIOLATING} # since 1.2\n");
    let not_ours = format!("{VIOLATING}\n{SOUND}\n");
    // The files; with them, the expected exit code and message.
    type Files<'a> = &'a [(&'a str, &'a str)];
    let cases: &[(Files<'_>, i32, &str)] = &[
        (&[("sim-fails.txt", &violating)], 0, "expected Fail (sim-fails.txt:1)"),
        (
            &[("sim-fails.txt", &reason)],
            0,
            "(sim-fails.txt:3: the invalidate is lost https://example.org/1 since 1.2)",
        ),
        (&[("all-fails.txt", "avvis/MP.*av-semvis\n")], 0, "expected Fail (all-fails.txt:1)"),
        // An unknown name is an error, because it could excuse a failure.
        (
            &[("simm-fails.txt", &violating)],
            2,
            "simm-fails.txt: `simm` (did you mean `sim`?) is neither a device of this run",
        ),
        (&[("ci-fails.txt", &violating)], 2, "ci-fails.txt: `ci` is neither a device of this run"),
        (&[("sim-fails.txt", &violating), ("alll-flakes.txt", "")], 2, "(did you mean `all`?)"),
        (&[("sim-fails.txt", &violating), ("lavapip-progress.txt", "obe")], 2, "(did you mean `lavapipe`?)"),
        // A file for another driver is not read.
        (
            &[("sim-fails.txt", &violating), ("radv-fails.txt", "no/Such+test\n(\n")],
            0,
            "1 failed as expected",
        ),
        // The file of another driver has no effect.
        (&[("lvp-fails.txt", &not_ours)], 1, "1 violations are not listed"),
        (
            &[("radv-navi21-fails.txt", &not_ours), ("sim-slow-skips.txt", "")],
            1,
            "1 violations are not listed",
        ),
        // A violation cannot be a flake.
        (&[("sim-flakes.txt", &not_ours)], 1, "a violation is never a flake"),
        // A test that may fail is listed both as failing and as flaky.
        (
            &[("sim-fails.txt", &not_ours), ("sim-flakes.txt", &not_ours)],
            0,
            "known flake, this time Pass (sim-flakes.txt:2)",
        ),
        (
            &[("sim-fails.txt", &format!("{violating}{sound}"))],
            1,
            &format!("{SOUND} on sim: unexpected pass (sim-fails.txt:2)"),
        ),
        (
            &[("sim-fails.txt", &format!("{VIOLATING},Crash"))],
            1,
            &format!("{VIOLATING} on sim: expected Crash, was Fail (sim-fails.txt:1)"),
        ),
        (
            &[("sim-fails.txt", &format!("{violating}no/Such+test\n"))],
            1,
            "sim-fails.txt:2: no test matches `no/Such+test`",
        ),
        (
            &[("sim-fails.txt", &violating), ("sim-skips.txt", "gone\\.")],
            1,
            "sim-skips.txt:1: no test matches",
        ),
        // A line may name a test outside this run.
        (
            &[("sim-fails.txt", &format!("{violating}sb/SB+rlx-rlx\niriw/.*,Timeout"))],
            0,
            "1 failed as expected",
        ),
        (&[("sim-skips.txt", "avvis")], 0, "1 not run"),
        // An id is matched literally, not as a regular expression.
        (&[("sim-skips.txt", "avvis/MP+rel-acq.av\n")], 1, "no test matches"),
    ];
    for (files, code, said) in cases {
        let ran = run(files);
        assert_eq!(ran.code, *code, "{files:?}: {ran:?}");
        assert!(ran.stderr.contains(said), "{files:?}: {}", ran.stderr);
    }
}

#[test]
fn a_skipped_test_names_the_line_that_lists_it() {
    let ran = run(&[("sim-skips.txt", "# takes too long\n^avvis/\n")]);
    let line = ran.json_lines().into_iter().find(|line| line["id"] == VIOLATING).unwrap();
    assert_eq!((&line["verdict"], &line["instances"]), (&"skipped".into(), &0.into()));
    assert_eq!(line["reason"], "skip list sim-skips.txt:2: takes too long");
}

#[test]
fn the_record_is_independent_of_expectations() {
    let ran = run(&[("sim-fails.txt", &format!("{VIOLATING},Fail"))]);
    let line = ran.json_lines().into_iter().find(|line| line["id"] == VIOLATING).unwrap();
    assert_eq!((ran.code, &line["verdict"]), (0, &"violates".into()));
}

#[test]
fn a_shard_accepts_lines_for_other_shards() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sim-fails.txt"), format!("{VIOLATING},Fail")).unwrap();
    for shard in ["1/2", "2/2"] {
        let ran = run_in(folder.path(), &["--expect", ".", "--shard", shard]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn mistakes_are_reported_with_positions() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    write("all-fails.txt", b"# fine\nsb/SB,Fail,0.5\n  sb/LB,Wrong\nmp/MP,Pass\n,Fail\nsb/SB,Crash\n");
    write("sim-flakes.txt", b"mp/MP,Fail\nmp/(\n\xc3\xa4\xc3\xb6 [z-a]\n");
    write("sim-skips.txt", b"mp\n\xc3\xa4b\xff\n");
    write("sim-fail.txt", b"mp\n");
    write("README.md", b"anything");
    let ran = run_in(folder.path(), &["--expect", "."]);
    assert_eq!(ran.code, 2, "{ran:?}");
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn a_folder_without_expectations_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::create_dir_all(folder.path().join("odd/sim-fails.txt")).unwrap();
    for (name, said) in
        [("none", "No such file"), ("empty", "no file named DEVICE-fails.txt"), ("odd", "Is a directory")]
    {
        let ran = run_in(folder.path(), &["--expect", name]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

/// The expectation files of the repository are well-formed, and every line has a reason.
#[test]
fn shipped_expectation_files_are_well_formed() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/expectations");
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", SOUND, "--device", "sim", "--instances", "100", "--seed", "1"]);
    let ran = Ran::run(command.arg("--expect").arg(&shipped).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    for entry in fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let parsed = results::expectation::Expectations::parse(&name, &name, &fs::read(&path).unwrap());
        for entry in parsed.unwrap().iter().flat_map(|file| &file.entries) {
            assert!(!entry.reason.is_empty(), "{name}:{}: without a reason", entry.line);
        }
    }
}
