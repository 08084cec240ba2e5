//! Runs on the installed software drivers. Counts are small, and no test depends on time.

use std::path::Path;
use std::process::Command;

use crate::common::{Ran, assert_valid, schemas, software_drivers, vk_litmus};
use serde_json::Value;

/// Number of instances in one attempt to observe an outcome.
const INSTANCES: &str = "1000000";
/// Number of attempts, each with another seed. Overlap depends on the load of the machine, so one attempt
/// must observe the outcome.
const ATTEMPTS: u32 = 50;

fn run_in(folder: &Path, device: &str, more: &[&str]) -> Command {
    let mut command = vk_litmus(["run", "--device", device, "--seed", "1", "--format", "json"]);
    command.args(more).current_dir(folder);
    command
}

#[track_caller]
fn assert_accounted(line: &Value) {
    let sum = |list: &str| -> u64 {
        line[list].as_array().unwrap().iter().map(|entry| entry["count"].as_u64().unwrap()).sum()
    };
    let unresolved = line["unresolved"].as_u64().unwrap();
    assert_eq!(
        line["instances"].as_u64().unwrap(),
        sum("outcomes") + sum("unexpected") + unresolved,
        "{line}"
    );
}

/// Runs a test with consecutive seeds until its line satisfies a condition, and returns that line. Every line
/// must be free of violations and account for all instances.
#[track_caller]
fn run_until(driver: &str, id: &str, is_accepted: impl Fn(&Value) -> bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut last = Value::Null;
    for seed in 1..=ATTEMPTS {
        let seed = seed.to_string();
        let mut command = vk_litmus(["run", "--device", driver, "--format", "json", "--seed", &seed]);
        let ran = Ran::run(command.args(["--instances", INSTANCES, id]).current_dir(folder.path()));
        assert_eq!(ran.code, 0, "{driver}: {ran:?}");
        last = ran.json_lines().remove(0);
        assert_accounted(&last);
        if is_accepted(&last) {
            return last;
        }
    }
    assert!(is_accepted(&last), "{driver} does not show it in {ATTEMPTS} attempts; the last one: {last}");
    last
}

fn line_of<'a>(lines: &'a [Value], id: &str) -> &'a Value {
    lines.iter().find(|line| line["id"] == id).unwrap()
}

#[test]
fn weak_outcomes_occur_and_forbidden_ones_do_not() {
    for driver in software_drivers() {
        let sb = run_until(driver, "sb/SB+rlx-rlx", |line| {
            let weak = |o: &Value| o["weak"] == true && o["count"].as_u64().unwrap() > 0;
            line["verdict"] == "conforms" && line["outcomes"].as_array().unwrap().iter().any(weak)
        });
        assert_eq!(sb["exercised"], true, "{sb}");
        let mp = run_until(driver, "mp/MP+rel-acq", |line| line["verdict"] == "conforms");
        assert_eq!(mp["exercised"], true, "{mp}");
    }
}

/// The lowered program is judged; the verdict also prints the answer of HSA's model, which does not count.
#[test]
fn hsa_tests_run_as_their_lowered_programs() {
    let tests = [
        ("hsa/MP+overwritten", "portable", false),
        ("hsa/SB+screl-scacq", "model-only", false),
        ("hsa/MP+later-store", "vulkan-race", false),
        ("hsa/Race+st-ld", "both-race", true),
        ("hsa/SB+rlx", "portable", true),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut command = run_in(folder.path(), "sim", &["--instances", "20000", "hsa/MP+agent-far"]);
    let ran = Ran::run(command.args(tests.map(|(id, ..)| id)));
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = ran.json_lines();
    assert_eq!(lines.len(), tests.len() + 1);
    for line in &lines {
        assert_accounted(line);
        for schema in schemas("run.schema.json", "run.schema.json") {
            assert_valid(&schema, line);
        }
    }
    assert_eq!(line_of(&lines, "hsa/MP+agent-far")["reason"], "agent scope between agents");
    for (id, class, allowed) in tests {
        let line = line_of(&lines, id);
        assert_eq!((&line["model"], &line["hsa"]["model"]), (&"vulkan".into(), &"hsa".into()), "{line}");
        assert_eq!(
            (&line["hsa"]["class"], &line["hsa"]["allowed"]),
            (&class.into(), &allowed.into()),
            "{line}"
        );
        let race = if class.ends_with("race") { "undefined" } else { "conforms" };
        assert_eq!(line["verdict"], race, "{line}");
        let outcomes = line["outcomes"].as_array().unwrap();
        assert!(outcomes.iter().all(|outcome| outcome["filtered"] == outcome.get("hsa").is_none()), "{line}");
        let passed = outcomes.iter().filter(|outcome| outcome["filtered"] == false);
        let passed: u64 = passed.map(|outcome| outcome["count"].as_u64().unwrap()).sum();
        assert_eq!(line["hsa"]["passed"], passed, "{line}");
        assert!(passed > 0, "{line}");
    }
    // The outcome is observed; HSA forbids it and Vulkan allows it, so it is not a violation.
    let outcomes = line_of(&lines, "hsa/SB+screl-scacq")["outcomes"].as_array().unwrap().clone();
    let only_vulkan = |outcome: &&Value| outcome["hsa"] == false && outcome["count"].as_u64() > Some(0);
    let witness = outcomes.iter().find(only_vulkan).expect("the simulated GPU shows store buffering");
    assert_eq!(witness["state"], serde_json::json!({"P0:$s0": 0, "P1:$s0": 0}), "{outcomes:?}");
    assert_eq!(witness["allowed"], true);
}

/// HSA's model judges no device, and a Vulkan model judges no HSA test.
#[test]
fn foreign_models_of_hsa_tests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Ran::run(&mut run_in(folder.path(), "sim", &["--model", "hsa", "hsa/SB+rlx"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = Ran::run(vk_litmus(["check", "--model", "vulkan", "hsa/SB+rlx"]).current_dir(folder.path()));
    assert_eq!(ran.code, 2, "{ran:?}");
    let arguments = ["--model", "vulkan-2019", "--instances", "10000", "hsa/SB+rlx"];
    let ran = Ran::run(&mut run_in(folder.path(), "sim", &arguments));
    assert_eq!((ran.code, &ran.json_lines()[0]["model"]), (0, &"vulkan-2019".into()), "{ran:?}");
}

#[test]
fn every_instance_is_accounted_for_and_every_record_is_valid() {
    for driver in software_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let tests = ["sb/SB+rlx-rlx", "mp/MP+rel-acq", "sb/SB+plain-plain", "barrier/MP+cbar"];
        let ran = Ran::run(run_in(folder.path(), driver, &["--instances", "100000"]).args(tests));
        assert_eq!(ran.code, 0, "{driver}: {ran:?}");
        let lines = ran.json_lines();
        assert_eq!(lines.len(), tests.len());
        let schemas = schemas("run.schema.json", "run.schema.json");
        for line in &lines {
            schemas.iter().for_each(|schema| assert_valid(schema, line));
            assert_accounted(line);
            assert_eq!(line["device"], driver);
            assert_eq!(line["not_executed"], 0, "{line}");
            assert_eq!(line["unexpected"].as_array().unwrap().len(), 0, "{line}");
            assert!(line["instances"].as_u64().unwrap() >= 100_000, "{line}");
        }
        assert_eq!(
            line_of(&lines, "sb/SB+plain-plain")["verdict"],
            "undefined",
            "a racy test is never judged"
        );

        let out = std::fs::read_dir(folder.path().join("vk-litmus-out")).unwrap().next().unwrap().unwrap();
        for file in ["plan.json", "run.jsonl", "outcomes.csv", "summary.txt"] {
            assert!(out.path().join(file).is_file(), "{file}");
        }
        let journal = std::fs::read_to_string(out.path().join("run.jsonl")).unwrap();
        let mut journal: Vec<Value> =
            journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sums = journal.iter_mut().map(|line| line.as_object_mut().unwrap().remove("sum"));
        assert!(sums.into_iter().all(|sum| sum.is_some()), "each has its checksum");
        assert_eq!(journal, lines);
        let plan = std::fs::read_to_string(out.path().join("plan.json")).unwrap();
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/schema/plan.schema.json");
        assert_valid(&schema, &serde_json::from_str(&plan).unwrap());
    }
}

#[test]
fn an_invalid_test_is_reported_and_the_others_run() {
    for driver in software_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/cases/files/mixed");
        let more = [tests.to_str().unwrap(), "--instances", "1000"];
        let ran = Ran::run(&mut run_in(folder.path(), driver, &more));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert_eq!(ran.json_lines().len(), 2);
        assert!(ran.stderr.contains("bad.litmus:4:"), "{}", ran.stderr);
    }
}

/// A worker that crashes, hangs or loses its device affects one test.
#[test]
fn a_failed_worker_affects_one_test() {
    for driver in software_drivers() {
        let cases = [("crash", "crashed"), ("lost", "device lost"), ("hang", "timed out")];
        for (how, reason) in cases {
            let folder = tempfile::tempdir().unwrap();
            let misbehave = format!("{how}:coherence/CoRR+rlx");
            let tests = ["coherence/CoRR+rlx", "mp/MP+rel-acq", "sb/SB+rlx-rlx"];
            let more = ["--instances", "20000", "--misbehave", &misbehave];
            let ran = Ran::run(run_in(folder.path(), driver, &more).args(tests));
            assert_eq!(ran.code, 3, "{driver} {how}: {ran:?}");
            let lines = ran.json_lines();
            assert_eq!(lines.len(), 3);
            let faulty_line = line_of(&lines, "coherence/CoRR+rlx");
            assert_eq!(
                (&faulty_line["verdict"], &faulty_line["reason"]),
                (&"inconclusive".into(), &reason.into())
            );
            assert_accounted(faulty_line);
            for id in ["mp/MP+rel-acq", "sb/SB+rlx-rlx"] {
                assert!(line_of(&lines, id)["instances"].as_u64().unwrap() >= 20_000, "{driver} {how}: {id}");
            }
        }
    }
}

/// If every worker fails, the run ends early and the remaining tests do not run.
#[test]
fn a_run_ends_if_every_worker_fails() {
    for driver in software_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let more = ["--suite", "quick", "--misbehave", "crash:*"];
        let ran = Ran::run(&mut run_in(folder.path(), driver, &more));
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        let lines = ran.json_lines();
        let (mut tried, mut given_up) = (0, 0);
        for line in lines.iter().filter(|line| line["verdict"] == "inconclusive") {
            assert_eq!(line["reason"], "crashed");
            if line["detail"].as_str().unwrap().contains("not tried") {
                given_up += 1;
            } else {
                tried += 1;
            }
        }
        assert!(tried < 10 && given_up > 10, "{tried} tried, {given_up} given up");
        assert!(lines.iter().all(|l| l["verdict"] == "inconclusive" || l["verdict"] == "skipped"));
    }
}

#[test]
fn a_killed_run_is_resumed() {
    for driver in software_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["--out", "out", "--instances", "30000", "--resume", "mp/MP+r*"];
        let journal = folder.path().join("out/run.jsonl");
        let lines_in = |path: &Path| -> Vec<String> {
            std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
        };
        // The second test hangs, so the journal has the line of the first one when the run is killed.
        let first = "mp/MP+rel-acq";
        let mut child = run_in(folder.path(), driver, &arguments)
            .args(["--misbehave", "hang:mp/MP+rlx-rlx"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while !lines_in(&journal).iter().any(|line| line.contains(first)) {
            assert!(child.try_wait().unwrap().is_none(), "the run ended too early");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let before = lines_in(&journal);

        let ran = Ran::run(&mut run_in(folder.path(), driver, &arguments));
        let after = lines_in(&journal);
        assert_eq!(after[..before.len()], before, "what was there stays");
        let journalled: Vec<&str> = after.iter().map(String::as_str).collect();
        assert_eq!(ran.json_lines().len(), journalled.len(), "{ran:?}");
        let ids: std::collections::BTreeSet<String> =
            ran.json_lines().iter().map(|line| line["id"].to_string()).collect();
        assert_eq!(ids.len(), journalled.len(), "every test once");
        assert!(folder.path().join("out/summary.txt").is_file());
    }
}

#[test]
fn an_interrupted_run_prints_how_to_resume() {
    for driver in software_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("out/run.jsonl");
        let child = run_in(
            folder.path(),
            driver,
            &["--out", "out", "--time", "600s", "coherence/CoRR+rlx", "mp/MP+rel-acq"],
        )
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
        while !journal.is_file() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.messages().contains("`vk-litmus run --resume out`"), "{}", ran.stderr);
    }
}

/// A resumed run retries tests without a verdict with a new time limit. For contradicting options the error
/// has the field and both values.
#[test]
fn resume_retries_tests_without_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| Ran::run(vk_litmus(arguments.iter().copied()).current_dir(folder.path()));
    let tests = ["sb/SB+rlx-rlx", "coherence/CoRR+rlx", "mp/MP+rel-acq", "mp/MP+rlx-rlx"];
    let begun = ["run", "--device", "sim", "--time", "1ms", "--seed", "1", "--out", "out"];
    let hang = ["--misbehave", "hang:coherence/CoRR+rlx"];
    let first = run(&[&begun[..], &hang, &tests].concat());
    assert_eq!(first.code, 3, "{first:?}");
    let last = first.stderr.lines().last().unwrap();
    assert!(last.contains("`vk-litmus report out` lists them"), "{first:?}");
    let summary = std::fs::read_to_string(folder.path().join("out/summary.txt")).unwrap();
    assert!(summary.starts_with("Incomplete: 3 of 4 tests did not run. "), "{summary}");
    let resumed = run(&["run", "--resume", "out", "--time", "10s", "--format", "json"]);
    assert!(
        resumed.messages().contains("1 of 4 tests have a verdict; running 3 again that had too little time"),
        "{resumed:?}"
    );
    let late = resumed.json_lines().iter().filter(|line| line["reason"] == "no time").count();
    assert_eq!(late, 0, "{resumed:?}");
    let plan = std::fs::read_to_string(folder.path().join("out/plan.json")).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["budget"], "1ms a device, then 10s a device");
    let other = run(&["run", "--resume", "out", "--instances", "500"]);
    assert_eq!(other.code, 2, "{other:?}");
    let difference = "the time or number of instances is `1ms a device, then 10s a device` there and `500 instances a test` here";
    assert!(other.stderr.replace("\n  │", "").contains(difference), "{other:?}");
}

/// `-q` only prints errors.
#[test]
fn a_quiet_run_prints_errors_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| Ran::run(vk_litmus(arguments.iter().copied()).current_dir(folder.path()));
    let sound = ["run", "mp/MP+rel-acq", "--device", "sim", "--instances", "2000", "--seed", "2", "-q"];
    let ran = run(&sound);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{ran:?}");
    let faulty_run =
        ["run", "avvis/MP+rel-acq.av-semvis", "--fault", "acquire-no-invalidate", "--instances", "2000"];
    let ran = run(&[&faulty_run[..], &["--seed", "2", "-q", "--out", "bug"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: the device broke a rule in 1 test: "), "{ran:?}");
}

/// A worker hangs until the time limit, so later tests do not start.
#[test]
fn tests_without_time_are_reported_and_may_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let tests = ["sb/SB+rlx-rlx", "coherence/CoRR+rlx", "mp/MP+rel-acq", "mp/MP+rlx-rlx"];
        let mut command = vk_litmus(["run", "--device", "sim", "--time", "1ms", "--seed", "1", "-q"]);
        Ran::run(command.args(["--format", "json"]).args(tests).args(more).current_dir(folder.path()))
    };
    // The first test in file order takes longer than the time limit.
    let hang = ["--misbehave", "hang:coherence/CoRR+rlx"];
    let ran = run(&hang);
    let reasons = |ran: &Ran| -> Vec<(String, String)> {
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        ran.json_lines().iter().map(|line| (text(line, "id"), text(line, "reason"))).collect()
    };
    assert_eq!(ran.code, 3, "{ran:?}");
    let late = reasons(&ran).into_iter().filter(|(_, reason)| reason == "no time").count();
    assert_eq!(late, 3, "{ran:?}");
    // A hanging test is a failure unless an expectation file lists it.
    std::fs::write(folder.path().join("sim-flakes.txt"), "coherence/CoRR+rlx\n").unwrap();
    let allowed = run(&[&hang[..], &["--expect", ".", "--allow-unfinished"]].concat());
    assert_eq!((allowed.code, reasons(&allowed)), (0, reasons(&ran)), "{allowed:?}");
}

#[test]
fn a_replay_command_parses() {
    let Some(driver) = software_drivers().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ran = Ran::run(&mut run_in(folder.path(), driver, &["--instances", "1000", "sb/SB+rlx-rlx"]));
    let line = &ran.json_lines()[0];
    let replay = line["replay"].as_str().unwrap();
    assert_eq!(replay, format!("vk-litmus run sb/SB+rlx-rlx --device {driver} --seed 1 --instances 1000"));
    let words: Vec<&str> = replay.split(' ').skip(1).collect();
    let replayed = Ran::run(vk_litmus(words).args(["--format", "json"]).current_dir(folder.path()));
    assert_eq!(replayed.json_lines()[0]["hashes"], line["hashes"]);
    assert_eq!(replayed.json_lines()[0]["replay"], line["replay"]);
}

/// Exit codes for `git bisect run`: 0 is good, 1 is bad, 125 is neither.
#[test]
fn bisect_exits_with_0_1_or_125() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let fixed = ["run", "--bisect", "--seed", "1", "--quiet"];
        Ran::run(vk_litmus(fixed.iter().chain(more).copied()).arg("--out").arg(&out))
    };
    let (good, bad) = ("coherence/CoRR+rlx", "avvis/MP+rel-acq.av-semvis");
    let sim = ["--device", "sim", "--instances", "2000"];
    let faulty = ["--device", "sim", "--fault", "acquire-no-invalidate", "--instances", "4000"];
    let code = |name: &str, tests: &[&str], more: &[&str]| run(name, &[tests, more].concat()).code;
    assert_eq!(code("good", &[good, bad], &sim), 0);
    assert_eq!(code("bad", &[good, bad], &faulty), 1);
    // The test is not exercised, not run, or unknown, or the device is unknown.
    assert_eq!(code("few", &["iriw/IRIW+rlx"], &["--device", "sim", "--instances", "1"]), 125);
    assert_eq!(code("skipped", &[good, "scopes/CoWW+mp.qf-families"], &sim), 125);
    assert_eq!(code("nowhere", &[good], &["--device", "none such"]), 125);
    assert_eq!(code("nothing", &["none/such"], &sim), 125);
    assert_eq!(code("some", &[good, "none/such"], &sim), 125);
    // The first violation ends the run without an interruption. Later tests are long enough to be stopped on
    // a busy machine.
    let long = ["--device", "sim", "--fault", "acquire-no-invalidate", "--instances", "100000"];
    let many = run("many", &[&[bad, "sb/*", "mp/*"], &long[..]].concat());
    assert_eq!(many.code, 1, "{}", many.stderr);
    assert!(!many.stderr.contains("interrupted"), "{}", many.stderr);
    let journal = std::fs::read_to_string(folder.path().join("many/run.jsonl")).unwrap();
    let planned = std::fs::read_to_string(folder.path().join("many/plan.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&planned).unwrap();
    assert!(journal.lines().count() < plan["tests"].as_array().unwrap().len(), "{journal}");
}

#[test]
fn resume_restores_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| Ran::run(vk_litmus(arguments.iter().copied()).current_dir(folder.path()));
    let arguments =
        ["run", "sb/SB+rlx-rlx", "mp/MP+rel-acq", "--device", "sim", "--instances", "2000", "--seed", "7"];
    let complete = run(&[&arguments[..], &["--format", "json", "--out", "whole"]].concat());
    assert_eq!(complete.code, 0, "{}", complete.stderr);
    let journal = folder.path().join("whole/run.jsonl");
    let lines = std::fs::read_to_string(&journal).unwrap();
    let (first, _) = lines.split_once('\n').unwrap();
    std::fs::write(&journal, format!("{first}\n")).unwrap();
    let resumed = run(&["run", "--resume", "whole", "--format", "json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(resumed.json_lines().len(), 2, "{}", resumed.stdout);
    assert_eq!(std::fs::read_to_string(&journal).unwrap().lines().count(), 2);
    for (folder, told) in [("none", "none/command.json"), ("sb/SB+rlx-rlx", "command.json")] {
        let wrong = run(&["run", "--resume", folder]);
        assert_eq!(wrong.code, 2, "{}", wrong.stderr);
        assert!(wrong.stderr.contains(told), "{}", wrong.stderr);
    }
}

/// A results folder may come from an untrusted source, so its command line must not select output files or
/// programs.
#[test]
fn resume_takes_no_output_path_from_a_results_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| Ran::run(vk_litmus(arguments.iter().copied()).current_dir(folder.path()));
    let begun =
        ["run", "sb/SB+rlx-rlx", "--device", "sim", "--instances", "2000", "--seed", "7", "--out", "foreign"];
    assert_eq!(run(&begun).code, 0);
    let command = folder.path().join("foreign/command.json");
    let recorded: Vec<String> = serde_json::from_str(&std::fs::read_to_string(&command).unwrap()).unwrap();
    let victim = folder.path().join("victim");
    for (added, flags) in [
        (&["--format", "gtest", "--gtest_output=xml:victim"][..], "--gtest_output"),
        (&["--save-baseline", "--strict"], "--strict, --save-baseline"),
        (&["--expect", "none-such"], "--expect"),
        (&["--compiler", "./victim"], "--compiler"),
    ] {
        std::fs::write(&victim, "precious").unwrap();
        let words: Vec<&str> = recorded.iter().map(String::as_str).chain(added.iter().copied()).collect();
        std::fs::write(&command, serde_json::to_string(&words).unwrap()).unwrap();
        let resumed = run(&["run", "--resume", "foreign"]);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{added:?}: {resumed:?}");
        assert!(!folder.path().join("results").exists(), "{added:?}: {resumed:?}");
        assert_eq!(resumed.code, 0, "{added:?}: {resumed:?}");
        assert!(resumed.stderr.contains(&format!("also has {flags}:")), "{added:?}: {resumed:?}");
    }
    let resumed = run(&["run", "--resume", "foreign", "--format", "gtest", "--gtest_output=xml:victim"]);
    assert!(std::fs::read_to_string(&victim).unwrap().contains("testsuites"), "{resumed:?}");
}
