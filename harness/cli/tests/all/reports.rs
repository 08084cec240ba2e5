//! Reports, diffs, merges and baselines of runs on the simulated GPU, and the HTML page in Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use results::wire::{PlanRecord, RunLine, VerdictWord};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::common::{Ran, binary, vk_litmus};
use crate::machine_code::rewrite;

const TESTS: [&str; 4] = ["sb/SB+rlx-rlx", "mp/MP+rel-acq", "mp/MP+plain", "avvis/MP+rel-acq.semav-semvis"];

/// Runs tests on the simulated GPU into `folder/name`.
pub(crate) fn run(folder: &Path, name: &str, more: &[&str]) -> Ran {
    let mut command =
        vk_litmus(["run", "--device", "sim", "--seed", "2", "--instances", "4000", "-q", "--out", name]);
    let ran = Ran::run(command.args(TESTS).args(more).current_dir(folder));
    assert!(ran.code <= 1, "{ran:?}");
    ran
}

pub(crate) fn in_folder(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = Ran::run(vk_litmus(arguments.iter().copied()).current_dir(folder));
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    ran
}

/// The current models confirm the committed records. `VK_LITMUS_BLESS=1` judges them again; review the diff.
#[test]
fn committed_baselines_agree_with_the_current_models() {
    let folder = tempdir().unwrap();
    let baselines_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/baselines");
    let mut baselines = 0;
    for entry in std::fs::read_dir(baselines_folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.to_str().unwrap();
        let rejudged = in_folder(folder.path(), &["diff", file, "--out", "again.jsonl"]);
        assert_eq!(rejudged.code, 0, "{rejudged:?}");
        let (before, after) =
            (std::fs::read(&path).unwrap(), std::fs::read(folder.path().join("again.jsonl")).unwrap());
        if before != after && std::env::var_os("VK_LITMUS_BLESS").is_some() {
            std::fs::write(&path, after).unwrap();
            continue;
        }
        assert!(
            before == after,
            "{file} was judged by other models: VK_LITMUS_BLESS=1 judges it again\n{}",
            rejudged.stdout
        );
        baselines += 1;
    }
    assert!(baselines >= 5 || std::env::var_os("VK_LITMUS_BLESS").is_some());
}

/// Every committed baseline can be read, and has neither violations nor local paths.
#[test]
fn committed_baselines_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/baselines");
    let mut number = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let found = results::read::read_results(&path).unwrap();
        let plan = found.plan.unwrap();
        let name = results::baseline::file_name(&plan.devices[0]);
        assert_eq!(path.file_name().unwrap().to_str(), Some(name.as_str()));
        assert_eq!((found.incomplete, found.lines.len()), (None, plan.tests.len()), "{name}");
        let violation = found.lines.iter().find(|line| line.verdict == results::wire::VerdictWord::Violates);
        assert!(violation.is_none(), "{violation:?}");
        assert!(plan.environment.is_none_or(|environment| environment.variables.is_empty()), "{name}");
        number += 1;
    }
    assert!(number >= 2, "{number}");
}

/// The worked example in the guide is the current output.
#[test]
fn the_worked_example_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/dev/measurements.md")).unwrap();
    let example =
        guide.split("<!-- checked: the diff of the two lavapipes -->\n```\n$ vk-litmus ").nth(1).unwrap();
    let (command, output) = example.split("\n```").next().unwrap().split_once('\n').unwrap();
    let ran = in_folder(&root, &command.split(' ').collect::<Vec<&str>>());
    assert_eq!(ran.code, 0, "{ran:?}");
    let [printed, expected] = [ran.stdout.trim_end(), output].map(|text| text.lines().collect::<Vec<_>>());
    assert!(
        crate::docs::matches_pattern(&printed, &expected),
        "docs/dev/measurements.md differs from {printed:#?}"
    );
}

#[test]
fn hostile_results_are_escaped_and_write_no_other_files() {
    let folder = tempdir().unwrap();
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/tests/all/records");
    for entry in std::fs::read_dir(records).unwrap() {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        for format in ["html", "md", "csv", "json", "junit", "herd"] {
            let ran = in_folder(folder.path(), &["report", path, "--format", format, "--out", "-"]);
            // A record of another version's model may lose its verdict.
            assert!([0, 2, 3].contains(&ran.code), "{ran:?}");
            assert_eq!(ran.code == 2, ran.stdout.is_empty(), "{path} {format}");
            let acts = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
            assert!(!acts(&ran.stdout) && !acts(&ran.stderr), "{path} {format}: {ran:?}");
        }
        let diff = in_folder(folder.path(), &["diff", path, path]);
        assert!([0, 2, 3].contains(&diff.code), "{diff:?}");
        assert_eq!(in_folder(folder.path(), &["merge", path, "--out", "merged"]).code, 2, "{path}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
    let into = in_folder(folder.path(), &["report", "nothing-there", "--out", "."]);
    assert_eq!(into.code, 2);
}

/// Commands recompute verdicts: an edited verdict with matching flags and a new checksum is rejected.
#[test]
fn edited_records_are_refused() {
    let folder = tempdir().unwrap();
    run(folder.path(), "sound", &[]);
    run(folder.path(), "other", &["--shard", "2/2"]);
    let edit = |line: &mut RunLine| {
        if line.verdict == VerdictWord::Violates {
            (line.verdict, line.detail) = (VerdictWord::Conforms, None);
            line.outcomes.iter_mut().for_each(|outcome| outcome.allowed = true);
        }
    };
    for (name, more) in [("whole", None), ("half", Some(["--shard", "1/2"]))] {
        let faulty = ["--fault", "release-no-flush"].into_iter().chain(more.into_iter().flatten());
        let ran = run(folder.path(), name, &faulty.collect::<Vec<_>>());
        assert_eq!(ran.code, 1, "{ran:?}");
        rewrite(&folder.path().join(name), edit);
    }
    for arguments in [
        &["report", "whole", "--format", "csv"][..],
        &["diff", "sound", "whole"],
        &["diff", "whole"],
        &["merge", "half", "other", "--out", "merged"],
        &["run", "--resume", "whole"],
    ] {
        let ran = in_folder(folder.path(), arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {ran:?}");
        let what = "its `allowed` of P1:r0=1 P1:r1=0 is true, the model's answer is false";
        let text = ran.stderr.replace("\n  │ ", " ");
        assert!(
            text.contains(what) && text.contains("avvis/MP+rel-acq.semav-semvis"),
            "{arguments:?}: {ran:?}"
        );
    }
    assert!(!folder.path().join("merged").exists());
}

/// An omitted outcome is added. A record of another version's model is confirmed by the current one, or loses its
/// verdict: a record can claim any version.
#[test]
fn outcome_lists_are_recomputed_under_the_same_model() {
    let folder = tempdir().unwrap();
    run(folder.path(), "one", &[]);
    let table = || in_folder(folder.path(), &["report", "one", "--format", "csv"]);
    let before = table();
    assert_eq!((before.code, before.stderr.as_str()), (0, ""), "{before:?}");
    rewrite(&folder.path().join("one"), |line| line.outcomes.retain(|outcome| outcome.count > 0));
    assert_eq!(table().stdout, before.stdout);
    let path = folder.path().join("one/plan.json");
    let mut plan: PlanRecord = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    plan.tests.iter_mut().for_each(|test| test.models[0].hash = "0".repeat(64));
    plan.plan = plan.hash().unwrap();
    std::fs::write(&path, serde_json::to_vec(&plan).unwrap()).unwrap();
    let journal = folder.path().join("one/run.jsonl");
    let hash = campaign::models::load_shipped("vulkan").unwrap().hash;
    let lines: Vec<RunLine> = (std::fs::read_to_string(&journal).unwrap().lines())
        .map(|line| serde_json::from_str(&line.replace(&hash, &"0".repeat(64))).unwrap())
        .collect();
    let sealed = lines.iter().flat_map(|line| results::journal::seal_record(line).unwrap());
    std::fs::write(&journal, sealed.collect::<Vec<u8>>()).unwrap();
    let confirmed = table();
    assert_eq!((confirmed.code, confirmed.stderr.as_str()), (0, ""), "{confirmed:?}");
    let copied = in_folder(folder.path(), &["diff", "one"]);
    let note = "note: 4 verdicts copied without judging again: recorded by another version of the model";
    assert!(copied.code == 0 && copied.stderr.starts_with(note), "{copied:?}");
    rewrite(&folder.path().join("one"), |line| line.outcomes.iter_mut().for_each(|row| row.weak = !row.weak));
    let dropped = table();
    assert!(dropped.code == 3 && dropped.stderr.starts_with("error: "), "{dropped:?}");
    assert!(dropped.messages().contains("dropped: the current model does not confirm them"), "{dropped:?}");
    assert!(dropped.stdout.contains("not judged"), "{dropped:?}");
}

/// Returns a headless Chromium; prints a skip if it is missing.
pub(crate) fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .flat_map(|name| {
            std::env::split_paths(&path).map(move |folder| folder.join(name)).collect::<Vec<_>>()
        })
        .find(|file| file.is_file());
    if found.is_none() {
        println!("1 skipped: chromium is not installed");
    }
    found
}

/// Returns the document of the page after its script ran.
pub(crate) fn document(browser: &Path, profile: &TempDir, page: &Path, fragment: &str) -> String {
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("file://{}{fragment}", page.display()))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the displayed number of tests, and the number of tests that are not hidden.
fn displayed_tests(document: &str) -> (String, usize) {
    let displayed_count =
        document.split("<output id=\"shown\">").nth(1).and_then(|rest| rest.split('<').next());
    let tests: Vec<&str> =
        document.split("<details class=\"test\"").skip(1).filter_map(|rest| rest.split('>').next()).collect();
    (
        displayed_count.unwrap_or_default().to_owned(),
        tests.iter().filter(|tag| !tag.contains("hidden")).count(),
    )
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = chromium() else { return };
    let (folder, profile) = (tempdir().unwrap(), tempdir().unwrap());
    run(folder.path(), "sound", &[]);
    run(folder.path(), "faulty", &["--fault", "release-no-flush"]);
    let page = folder.path().join("page.html");
    assert_eq!(in_folder(folder.path(), &["report", "sound", "faulty", "--out", "page.html"]).code, 0);
    let displayed = |fragment: &str| displayed_tests(&document(&browser, &profile, &page, fragment));
    assert_eq!(displayed(""), ("4 of 4 tests".to_owned(), 4));
    assert_eq!(displayed("#find=sb"), ("1 of 4 tests".to_owned(), 1));
    assert_eq!(displayed("#verdict=violates"), ("1 of 4 tests".to_owned(), 1));
    assert_eq!(displayed("#verdict=violates&device=0"), ("0 of 4 tests".to_owned(), 0));
    let opened = document(&browser, &profile, &page, "#t2");
    assert_eq!(
        opened.matches("open=\"\"").count(),
        3,
        "the families, the violating test, and that of the address"
    );
    // Names from results have no effect: only the script of the page ran.
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/tests/all/records/hostile.jsonl");
    let hostile = hostile.to_str().unwrap();
    assert_eq!(in_folder(folder.path(), &["report", hostile, "--out", "page.html"]).code, 0);
    let document = document(&browser, &profile, &page, "");
    assert_eq!(displayed_tests(&document), ("13 of 13 tests".to_owned(), 13));
    assert_eq!((document.matches("<script").count(), document.matches("<img").count()), (1, 0));
}

/// 2,000 tests on three devices, copied from a few results.
#[test]
fn a_large_page_is_small_enough_and_works() {
    let folder = tempdir().unwrap();
    run(folder.path(), "few", &[]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("few").join(name)).unwrap();
    let mut plan: Value = serde_json::from_str(&read("plan.json")).unwrap();
    // Older schemas have no checksums.
    plan["schema"] = json!("vk-litmus/plan/1");
    let lines: Vec<Value> =
        read("run.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let devices = ["one", "two", "three"];
    let device = plan["devices"][0].clone();
    plan["devices"] = devices
        .iter()
        .map(|name| {
            let mut copy = device.clone();
            copy["name"] = json!(name);
            copy
        })
        .collect();
    let tests = plan["tests"].as_array().unwrap().clone();
    let id = |index: usize| format!("family{}/T{index}", index % 20);
    plan["tests"] = (0..2000)
        .map(|index| {
            let mut copy = tests[index % tests.len()].clone();
            copy["id"] = json!(id(index));
            copy["models"] = json!(vec![copy["models"][0].clone(); devices.len()]);
            copy
        })
        .collect();
    let mut plan: results::wire::PlanRecord = serde_json::from_value(plan).unwrap();
    plan.plan = plan.hash().unwrap();
    let mut journal = String::new();
    for name in devices {
        for index in 0..2000 {
            let test = &tests[index % tests.len()];
            let mut line = lines.iter().find(|line| line["id"] == test["id"]).unwrap().clone();
            (line["id"], line["device"]) = (json!(id(index)), json!(name));
            line.as_object_mut().unwrap().remove("sum");
            journal += &format!("{line}\n");
        }
    }
    let many = folder.path().join("many");
    std::fs::create_dir(&many).unwrap();
    std::fs::write(many.join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
    std::fs::write(many.join("run.jsonl"), journal).unwrap();
    let ran = in_folder(folder.path(), &["report", "many", "--out", "page.html"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = folder.path().join("page.html");
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes < 10_000_000, "{bytes}");
    let Some(browser) = chromium() else { return };
    let profile = tempdir().unwrap();
    assert_eq!(displayed_tests(&document(&browser, &profile, &page, "")).0, "2000 of 2000 tests");
    assert_eq!(
        displayed_tests(&document(&browser, &profile, &page, "#find=family3/")),
        ("100 of 2000 tests".to_owned(), 100)
    );
}

/// The examples in the help of each command run, except those that need a GPU, a compiler, or files that only their
/// reader has.
#[test]
fn examples_of_help_run() {
    const MISSING: [&str; 13] = [
        ".comp", ".spv", ".wgsl", "FOLDER", "gpu", "radv", "lavapipe", "--resume", " serve", " lsp", ">",
        "|", "part1",
    ];
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| Ran::run(Command::new("bash").args(["-c", line]).current_dir(folder.path()));
    let program = binary().display().to_string();
    for out in ["results", "before", "after"] {
        let line = format!("{program} run sb/SB+rlx-rlx --device sim --instances 2000 --out {out}");
        assert_eq!(run(&line).code, 0);
    }
    let mut ran = 0;
    let commands =
        ["patterns", "check", "explain", "tests", "convert", "compile", "devices", "faults", "models"]
            .into_iter()
            .chain([
                "clauses", "compare", "generate", "report", "plot", "repro", "diff", "merge", "lint",
                "refine",
            ]);
    for command in commands {
        let help = run(&format!("{program} {command} --help")).stdout;
        let examples = help.split_once("Examples:\n").unwrap().1.lines().map(str::trim);
        for example in examples.filter(|line| line.starts_with("vk-litmus ")) {
            if MISSING.iter().any(|word| example.contains(word)) {
                continue;
            }
            let line = example.replacen("vk-litmus", &program, 1);
            let answer = run(&line);
            assert_eq!(answer.code, 0, "{example}: {answer:?}");
            ran += 1;
        }
    }
    assert!(ran >= 20, "{ran}");
    let picture = std::fs::read_to_string(folder.path().join("sb-SB+rlx-rlx.svg")).unwrap();
    assert!(picture.contains("P0:r0=0 P1:r0=0") && picture.ends_with("</svg>\n"), "{picture}");
    let numbers = std::fs::read_to_string(folder.path().join("sb-SB+rlx-rlx.csv")).unwrap();
    assert!(numbers.lines().count() > 8 && numbers.contains("\"P0:r0=0 P1:r0=0\",weak,"), "{numbers}");
}
