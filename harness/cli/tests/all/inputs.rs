//! Inputs that cannot be committed: too large files, broken links, pipes; and outputs that fail.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::{Ran, assert_valid, binary, schemas, vk_litmus};
use serde_json::Value;

const SB: &str = include_str!("cases/files/mixed/SB.litmus");

/// Checks a folder with a valid test and with `bad`, which `make` creates; returns the rejected line of
/// `bad`.
fn rejected(make: impl FnOnce(&std::path::Path)) -> Value {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.litmus"), SB).unwrap();
    let bad = folder.path().join("bad.litmus");
    make(&bad);
    let ran = Ran::run(&mut vk_litmus(["check", "--format", "json", folder.path().to_str().unwrap()]));
    assert_eq!(ran.code, 2, "{ran:?}");
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 2, "the walk goes on: {ran:?}");
    assert_eq!(lines[0]["file"], bad.to_str().unwrap(), "in the order of files");
    assert_eq!(lines[1]["id"], "good");
    for schema in schemas("rejected.schema.json", "check.schema.json") {
        assert_valid(&schema, &lines[0]);
    }
    for schema in schemas("check.schema.json", "check.schema.json") {
        assert_valid(&schema, &lines[1]);
    }
    assert!(ran.stderr.contains("bad.litmus"), "{}", ran.stderr);
    lines[0].clone()
}

#[test]
fn a_test_larger_than_a_mebibyte() {
    let line = rejected(|path| std::fs::write(path, vec![b' '; (1 << 20) + 1]).unwrap());
    assert_eq!(line["error"], "larger than 1024 KiB");
}

#[cfg(unix)]
#[test]
fn a_broken_link_is_refused() {
    let line = rejected(|path| std::os::unix::fs::symlink("nowhere", path).unwrap());
    assert!(line["error"].as_str().unwrap().contains("No such file"), "{line}");
}

fn pipe(path: &std::path::Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Files in a folder that are not tests are ignored; a named file is read.
#[cfg(unix)]
#[test]
fn a_pipe_in_a_folder_is_skipped_and_one_that_is_named_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.litmus"), SB).unwrap();
    let path = folder.path().join("pipe.litmus");
    pipe(&path);
    let walked = Ran::run(&mut vk_litmus(["check", "--format", "json", folder.path().to_str().unwrap()]));
    assert_eq!((walked.code, walked.json_lines().len()), (0, 1), "{walked:?}");
    assert!(walked.messages().contains("pipe.litmus is skipped"), "{walked:?}");
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || std::fs::write(path, SB).unwrap())
    };
    let named = Ran::run(&mut vk_litmus(["check", "--format", "json", path.to_str().unwrap()]));
    writer.join().unwrap();
    assert_eq!((named.code, &named.json_lines()[0]["id"]), (0, &Value::from("pipe")), "{named:?}");
    // Reading stops at the size limit.
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || drop(std::fs::write(path, vec![b' '; 4 << 20])))
    };
    let large = Ran::run(&mut vk_litmus(["check", path.to_str().unwrap()]));
    writer.join().unwrap();
    assert_eq!(large.code, 2, "{large:?}");
    assert!(large.messages().contains("larger than 1024 KiB"), "{large:?}");
    // Neither plan nor journal may be a pipe.
    let results = folder.path().join("results");
    std::fs::create_dir(&results).unwrap();
    pipe(&results.join("plan.json"));
    for command in [&["report"][..], &["run", "--resume", "sb/SB+rlx-rlx", "--device", "sim", "--out"]] {
        let ran = Ran::run(vk_litmus(command.iter().copied()).arg(&results));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.messages().contains("neither a folder nor a regular file"), "{ran:?}");
    }
}

#[test]
fn a_test_from_standard_input() {
    let mut child = vk_litmus(["check", "--format", "json", "-", "sb/SB+rlx-rlx"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), SB.as_bytes()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    let ids: Vec<Value> = ran.json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!((ran.code, ids), (0, vec![Value::from("stdin"), Value::from("sb/SB+rlx-rlx")]), "{ran:?}");
}

/// Tests with equal names have separate verdicts, and a resumed run keeps them.
#[test]
fn tests_with_equal_names_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/corpus/avvis");
    let violating = std::fs::read_to_string(corpus.join("MP+rel-acq.av-semvis.litmus")).unwrap();
    let sound = std::fs::read_to_string(corpus.join("../coherence/CoRR+rlx.litmus")).unwrap();
    for (name, text) in [("d1/x.litmus", &violating), ("d2/x.litmus", &sound), ("x.litmus", &sound)] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // A local file with the displayed path of an embedded test.
    let embedded = folder.path().join("litmus/corpus/coherence/CoRR+rlx.litmus");
    std::fs::create_dir_all(embedded.parent().unwrap()).unwrap();
    std::fs::write(&embedded, &violating).unwrap();
    let run = |more: &[&str]| {
        let mut command = vk_litmus(["run", "--device", "sim", "--fault", "acquire-no-invalidate"]);
        command.args(["--instances", "2000", "--seed", "2", "--format", "json", "--out", "out"]);
        Ran::run(
            command
                .args(["d1", "d2", ".", "coherence/CoRR+rlx", "litmus/corpus/coherence/CoRR+rlx.litmus"])
                .args(more)
                .current_dir(folder.path()),
        )
    };
    let first = run(&[]);
    let verdicts_of = |ran: &Ran| -> Vec<(String, String)> {
        let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
        ran.json_lines().iter().map(|line| (text(line, "id"), text(line, "verdict"))).collect()
    };
    let ids: std::collections::BTreeSet<String> = verdicts_of(&first).into_iter().map(|(id, _)| id).collect();
    assert_eq!((first.code, ids.len(), verdicts_of(&first).len()), (1, 5, 5), "{first:?}");
    let violations = verdicts_of(&first).iter().filter(|(_, verdict)| verdict == "violates").count();
    assert_eq!(violations, 2, "{first:?}");
    let resumed = run(&["--resume"]);
    assert_eq!((resumed.code, verdicts_of(&resumed)), (1, verdicts_of(&first)), "{resumed:?}");
}

/// Output files are replaced, and the target of a symbolic link stays unchanged. Folders may be links.
#[cfg(unix)]
#[test]
fn output_does_not_follow_symbolic_links() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "text").unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(&precious, folder.path().join(name)).unwrap();
    std::fs::create_dir(folder.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("linked")).unwrap();
    ["k.spv", "report.csv", "gtest.xml"].iter().for_each(|name| link(name));
    let command_lines: [&[&str]; 3] = [
        &["compile", "sb/SB+rlx-rlx", "--out", "k.spv"],
        &[
            "run",
            "sb/SB+rlx-rlx",
            "--device",
            "sim",
            "--instances",
            "300",
            "--out",
            "linked",
            "--format",
            "gtest",
            "--gtest_output",
            "xml:gtest.xml",
        ],
        &["report", "linked", "--format", "csv", "--out", "report.csv"],
    ];
    for line in command_lines {
        let ran = Ran::run(vk_litmus(line.iter().copied()).current_dir(folder.path()));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "text");
    for name in ["k.spv", "report.csv", "gtest.xml", "real/plan.json", "real/run.jsonl", "real/outcomes.csv"]
    {
        assert!(std::fs::symlink_metadata(folder.path().join(name)).unwrap().is_file(), "{name}");
    }
}

#[test]
fn an_empty_file() {
    let line = rejected(|path| std::fs::write(path, "").unwrap());
    assert_eq!((&line["line"], &line["column"]), (&Value::from(1), &Value::from(1)));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = vk_litmus(["tests"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_run_with_a_closed_pipe_completes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = vk_litmus(["run", "sb/*", "--device", "sim", "--instances", "300", "--seed", "1", "-q"])
        .args(["--format", "json", "--out", "out"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let found = results::read::read_results(&folder.path().join("out")).unwrap();
    assert_eq!((found.count_missing(), found.incomplete), (0, None));
    assert!(folder.path().join("out/summary.txt").is_file());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = vk_litmus(["tests"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn a_file_given_twice_is_checked_once_and_ids_stay_unique() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("SB.litmus"), SB).unwrap();
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b) = (path("a"), path("b/SB.litmus"));
    let ran = Ran::run(&mut vk_litmus(["check", "--format", "json", &a, &b, &b]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let ids: Vec<Value> = ran.json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Ran::run(&mut vk_litmus(["completions", shell]));
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("VK_LITMUS_COMPLETE"), "{shell}");
    }
    let ran = Ran::run(&mut vk_litmus(["man"]));
    assert!(ran.stdout.contains(".TH vk-litmus"), "{}", ran.stdout);
    for command in ["run", "check", "explain", "report", "devices"] {
        let ran = Ran::run(&mut vk_litmus(["man", command]));
        assert!(ran.stdout.contains(&format!(".TH vk-litmus-{command}")), "{}", ran.stdout);
    }
    let unknown = Ran::run(&mut vk_litmus(["man", "worker"]));
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

/// bash itself requests the completions.
#[test]
fn bash_completes_commands_tests_suites_models_devices_faults_and_variants() {
    let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sbox.litmus"), "").unwrap();
    let complete = |words: &[&str]| {
        let script = "source <(vk-litmus completions bash)
            COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
            $(complete -p vk-litmus | sed 's/.* -F \\([^ ]*\\) .*/\\1/') vk-litmus \"${@: -1}\" \"${@: -2:1}\"
            printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", script, "bash", "vk-litmus"]).args(words).env("PATH", &path);
        let ran = Ran::run(command.current_dir(folder.path()));
        ran.stdout.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    for (words, wanted, unwanted) in [
        (&["exp"][..], "explain", "run"),
        (&["run", "sb"], "sb/", "sb/SB+rlx-rlx"),
        (&["run", "sb"], "sbox.litmus", "mp/"),
        (&["run", "mp/MP+rel-a"], "mp/MP+rel-acq", "mp/MP+rel-rlx"),
        (&["explain", "mp/MP+rel-acq@sp"], "mp/MP+rel-acq@split", "mp/MP+rel-acq@event"),
        (&["run", "--suite", ""], "quick", "quic"),
        (&["check", "--model", "vulkan-"], "vulkan-2019", "sc"),
        (&["run", "--device", "sw"], "swiftshader", "sim"),
        (&["run", "--fault", "release-no"], "release-no-flush", "hang"),
        (&["compile", "--variant", "sp"], "split", "event"),
        (&["run", "--re"], "--resume", "--misbehave"),
        (&["run", "--"], "--bisect", "--misbehave"),
        (&[""], "repro", "worker"),
    ] {
        let found = complete(words);
        let has = |word: &str| found.iter().any(|found| found == word);
        assert!(has(wanted) && !has(unwanted), "{words:?}: {found:?}");
    }
}

/// Control characters in a test's header are escaped on a terminal, and preserved in files.
#[test]
fn control_characters_in_headers_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.litmus");
    let text = SB.replacen('\n', "\nwhy: one\rtwo \u{1b}[2J\n", 1);
    std::fs::write(&path, &text).unwrap();
    let test = litmus::parse(&text, "x.litmus").unwrap();
    assert_eq!(test.metadata.why.last().map(String::as_str), Some("one\rtwo \u{1b}[2J"));
    assert_eq!(litmus::parse(&litmus::print(&test), "x.litmus").unwrap().metadata, test.metadata);
    let ran = Ran::run(&mut vk_litmus(["convert", path.to_str().unwrap(), "--to", "litmus"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("why: one\\u{d}two \\u{1b}[2J"), "{ran:?}");
}

#[test]
fn a_run_that_skips_every_test_fails() {
    let folder = tempfile::tempdir().unwrap();
    let unplaceable =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/cases/files/unplaceable.litmus");
    let run = |more: &[&str]| {
        let mut command = vk_litmus(["run", unplaceable.to_str().unwrap(), "--device", "sim", "-q"]);
        Ran::run(command.args(["--instances", "300"]).args(more).current_dir(folder.path()))
    };
    for strict in [&[][..], &["--strict"]] {
        let ran = run(strict);
        assert_eq!(ran.code, 3, "{ran:?}");
        let (_, reason) = ran.stderr.split_once("error: every test was skipped: ").unwrap();
        assert!(!reason.trim().is_empty(), "{ran:?}");
    }
    assert_eq!(run(&["--gtest_filter=*"]).code, 0, "a runner is told of each skipped test");
    assert_eq!(run(&["--strict", "sb/SB+rlx-rlx", "--instances", "2000"]).code, 2, "given twice");
    std::fs::write(folder.path().join("sim-skips.txt"), "unplaceable # nobody asks for it\n").unwrap();
    let listed = run(&["--strict", "--expect", "."]);
    assert_eq!(listed.code, 3, "on a list or not, nothing was run: {listed:?}");
    assert!(listed.messages().contains("every test was skipped"), "{listed:?}");
    assert_eq!(run(&["--expect", "."]).code, 0);
    let named = run(&["--strict", "--expect", ".", "--gtest_filter=*"]);
    assert_eq!(named.code, 0, "what a runner asks for by name, and is on a list, is meant: {named:?}");
    let none = run(&["--strict", "--gtest_filter=nothing"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.messages().contains("no test was run"), "{none:?}");
}

/// If there are more shards than tests, some are empty.
#[test]
fn an_empty_shard_is_reported_and_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    for quiet in [&[][..], &["-q"]] {
        let mut command = vk_litmus(["run", "sb/SB+rlx-rlx", "--device", "sim", "--strict"]);
        command.args(quiet).env("CI_NODE_INDEX", "2").env("CI_NODE_TOTAL", "2");
        let ran = Ran::run(command.current_dir(folder.path()));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.messages().contains("part 2/2 of the tests, by CI_NODE_"), "{ran:?}");
        assert!(ran.messages().contains("part 2/2 of 1 test is empty"), "{ran:?}");
    }
    let mut command = vk_litmus(["run", "sb/SB+rlx-rlx", "--device", "sim", "--shard", "2/2", "--strict"]);
    let ran = Ran::run(command.current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.messages().contains("part 2/2 of 1 test is empty"), "{ran:?}");
    assert!(ran.stdout.contains("0 verdicts: ") && ran.stdout.contains(" 0 instances in 0.0 s"), "{ran:?}");
}

/// A worker receives the test in the native syntax, independent of the extension of its file.
#[test]
fn an_id_that_ends_like_a_file_of_another_syntax() {
    let folder = tempfile::tempdir().unwrap();
    let tests = folder.path().join("ee");
    std::fs::create_dir(&tests).unwrap();
    std::fs::write(tests.join("x.litmus"), SB).unwrap();
    std::fs::write(tests.join("foo.test.litmus"), SB).unwrap();
    let khronos = ["convert", "ee/x.litmus", "--to", "khronos"];
    let khronos = Ran::run(vk_litmus(khronos).current_dir(folder.path()));
    assert_eq!(khronos.code, 0, "{khronos:?}");
    std::fs::write(tests.join("x.test"), khronos.stdout).unwrap();
    let run = ["run", "ee", "--device", "sim", "--instances", "3000", "--seed", "1", "--format", "json"];
    let ran = Ran::run(vk_litmus(run).args(["--out", "out"]).current_dir(folder.path()));
    let id_and_verdict = |line: &serde_json::Value| {
        (line["id"].as_str().unwrap().to_owned(), line["verdict"].as_str().unwrap().to_owned())
    };
    let verdicts: Vec<(String, String)> = ran.json_lines().iter().map(id_and_verdict).collect();
    let conforms = |id: &str| (id.to_owned(), "conforms".to_owned());
    assert_eq!(verdicts, ["foo.test", "ee/x.litmus", "ee/x.test"].map(conforms), "{ran:?}");
    let page = ["report", "out", "--format", "html", "--out", "-"];
    let page = Ran::run(vk_litmus(page).current_dir(folder.path()));
    assert_eq!(page.stdout.matches("<figure>").count(), 3, "each is explained");
}

/// Two signals in quick succession count as one, and reports are written. A later signal ends the program.
#[cfg(unix)]
#[test]
fn two_simultaneous_signals_count_as_one() {
    ends_in_order("kill -TERM {0}; kill -INT {0}; kill -TERM {0}");
}

/// SIGHUP interrupts a run as other signals do; if it is ignored, as under `nohup`, the run continues.
#[cfg(target_os = "linux")]
#[test]
fn a_hangup_interrupts_a_run() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    // Children inherit an ignored signal from the process that starts the tests.
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 0 {
        ends_in_order("kill -HUP {0}");
    }
}

#[cfg(unix)]
fn ends_in_order(signals: &str) {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("out/run.jsonl");
    let mut command = vk_litmus(["run", "sb/*", "--device", "sim", "--time", "600s", "--seed", "1"]);
    let child = command
        .args(["--format", "junit", "--out", "out"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !journal.is_file() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let signals = signals.replace("{0}", &child.id().to_string());
    assert!(std::process::Command::new("sh").args(["-c", &signals]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 3, "{ran:?}");
    let junit = quick_junit::Report::deserialize_from_str(&ran.stdout).unwrap();
    assert!(junit.errors > 0, "{ran:?}");
    assert!(folder.path().join("out/summary.txt").is_file());
}

#[test]
fn a_printed_test_is_the_same_test() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["sb/SB+rlx-rlx", "mp/MP+rel-acq", "barrier/MP+cbar"] {
        let printed = Ran::run(&mut vk_litmus(["convert", id, "--to", "litmus"]));
        assert_eq!(printed.code, 0, "{printed:?}");
        let path = folder.path().join("printed.litmus");
        std::fs::write(&path, &printed.stdout).unwrap();
        let converted = Ran::run(&mut vk_litmus(["convert", path.to_str().unwrap(), "--to", "litmus"]));
        assert_eq!(converted.stdout, printed.stdout);
    }
}

#[test]
fn a_kernel_is_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.spv");
    let ran = Ran::run(&mut vk_litmus(["compile", "sb/SB+rlx-rlx", "--out", path.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes.get(..4), Some(0x0723_0203_u32.to_le_bytes().as_slice()), "SPIR-V's magic number");
    let ran = Ran::run(&mut vk_litmus(["compile", "sb/SB+rlx-rlx", "--emit", "spvasm"]));
    assert!(ran.stdout.contains("OpMemoryModel Logical Vulkan"), "{}", ran.stdout);
}

/// The glob library aborts on this pattern.
#[test]
fn a_too_large_glob_is_refused() {
    let glob = "?*".repeat(60_000);
    for arguments in
        [vec!["run", &glob, "--device", "sim"], vec!["run", "--cts-name", &glob, "--device", "sim"]]
    {
        let ran = Ran::run(&mut vk_litmus(arguments));
        assert_eq!(ran.code, 2, "{}", ran.stderr.chars().rev().take(300).collect::<String>());
        assert!(!ran.stderr.contains("panicked"));
    }
}
