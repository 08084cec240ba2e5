//! Machine code in explanations, results and reports.

use std::path::Path;

use crate::codegen::has_radv;
use crate::common::{Ran, assert_valid, software_drivers, vk_litmus};
use results::wire::{RunLine, VerdictWord};
use serde_json::{Value, json};

const EXTENSION: &str = "VK_KHR_pipeline_executable_properties";

/// Returns true if the release is on the line of the store that it was compiled to.
fn has_release(text: &str) -> bool {
    let is_beside_store = |line: &str| {
        line.contains("P0.1: st.atom.rel.dv.sc0.semsc0 f, 1") && line.contains("|   buffer_store")
    };
    text.lines().any(is_beside_store)
}

/// Applies `change` to a line of a journal.
pub(crate) fn rewrite(folder: &Path, change: impl Fn(&mut RunLine)) {
    let mut changed = Vec::new();
    for mut line in results::read::read_results(folder).unwrap().lines {
        change(&mut line);
        changed.extend(results::journal::seal_record(&line).unwrap());
    }
    std::fs::write(folder.join("run.jsonl"), changed).unwrap();
}

fn records(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("machine-code.jsonl")).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/schema/machine-code.schema.json");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.iter().for_each(|record| assert_valid(&schema, record));
    records
}

fn report(folder: &Path, format: &str) -> String {
    let ran = Ran::run(vk_litmus(["report", "--out", "-", "--format", format]).arg(folder));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

/// A compile-only device executes nothing, so `run` rejects it. A test hook accepts it, and the test edits
/// the verdict in the journal; all later steps are those of a run.
#[test]
fn a_violation_has_its_machine_code() {
    if !has_radv() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = |resume: &[&str]| {
        let tests = ["mp/MP+rel-acq", "mp/MP+rel-acq@split", "sb/SB+rlx-rlx"];
        let mut command = vk_litmus(["run", "--device", "radv:navi21", "--seed", "1", "--instances", "10"]);
        command.args(["--misbehave", "null:*"]).args(tests).args(resume).arg("--out").arg(&out);
        Ran::run(&mut command)
    };
    assert_eq!(run(&[]).code, 3);
    assert!(!out.join("machine-code.jsonl").exists(), "nothing violates");
    rewrite(&out, |line| {
        if line.name == "MP+rel-acq" {
            (line.verdict, line.reason) = (VerdictWord::Violates, None);
            (line.instances, line.interleaved) = (1, 1);
            line.outcomes.iter_mut().find(|outcome| !outcome.allowed).unwrap().count = 1;
        }
    });
    assert_eq!(run(&["--resume"]).code, 1);
    let found = records(&out);
    let ids: Vec<&str> = found.iter().map(|record| record["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["mp/MP+rel-acq", "mp/MP+rel-acq@split"]);
    let names = |record: &Value, list: &str, key: &str| -> Vec<String> {
        record[list].as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    for (record, kernels) in found.iter().zip([vec!["P0,P1"], vec!["P0", "P1"]]) {
        assert_eq!(record["no_code_reason"], Value::Null, "{record:#}");
        assert_eq!(names(record, "kernels", "kernel"), kernels);
        assert_eq!(names(record, "ran", "name"), kernels);
        // Kernels of a run also have code for rounds and parameters.
        let lines = |text: &str| text.lines().count();
        let aligned_count = record["kernels"][0]["code"].as_array().unwrap().len();
        assert!(lines(record["ran"][0]["text"].as_str().unwrap()) > aligned_count, "{record:#}");
    }
    // Machine code in the folder is not compiled again.
    let before = std::fs::read(out.join("machine-code.jsonl")).unwrap();
    assert_eq!(run(&["--resume"]).code, 1);
    assert_eq!(std::fs::read(out.join("machine-code.jsonl")).unwrap(), before);

    let page = report(&out, "html");
    assert!(page.contains("machine code on radv:navi21") && has_release(&page), "{page}");
    assert_eq!(page.matches("the kernel that ran").count(), 3);
    let text = report(&out, "md");
    assert!(text.contains("## Machine code of what violates") && has_release(&text), "{text}");

    std::fs::write(out.join("machine-code.jsonl"), "{\"schema\":\"vk-litmus/machine-code/3\"}\n").unwrap();
    let newer = Ran::run(vk_litmus(["report", "--format", "md"]).arg(&out));
    assert_eq!(newer.code, 2, "{newer:?}");
    assert!(
        newer.messages().contains("machine-code.jsonl:1: a record of version `vk-litmus/machine-code/3`")
    );
}

/// SwiftShader compares 32-bit integers as unsigned in atomic minimum and maximum.
#[test]
fn a_violation_on_a_driver_without_text_names_the_extension() {
    if !software_drivers().contains(&"swiftshader") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The fault appears only if the threads overlap, which may take several attempts on a busy machine.
    let attempt = |seed: u32| {
        let out = folder.path().join(format!("out-{seed}"));
        let mut command = vk_litmus(["run", "types/RMW+min-max.i32", "--device", "swiftshader", "-q"]);
        command.args(["--instances", "1000000", "--seed", &seed.to_string()]).arg("--out").arg(&out);
        (Ran::run(&mut command).code == 1).then_some(out)
    };
    let out = (1..=40).find_map(attempt).expect("a violation in one of forty runs");
    let found = records(&out);
    assert_eq!((found.len(), &found[0]["no_code_reason"]), (1, &json!(EXTENSION)), "{found:#?}");
    let expected = format!("no machine code: the driver lacks {EXTENSION}");
    assert!(report(&out, "html").contains(&expected));
    assert!(report(&out, "md").replace('\\', "").contains(&expected));
}
