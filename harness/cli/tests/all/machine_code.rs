//! Machine code in explanations, results and reports.

use std::path::Path;

use crate::codegen::has_radv;
use crate::common::{Ran, assert_valid, software_drivers, vk_litmus};
use results::wire::{RunLine, VerdictWord};
use serde_json::{Value, json};

const EXTENSION: &str = "VK_KHR_pipeline_executable_properties";

fn explain(arguments: &[&str]) -> Ran {
    Ran::run(vk_litmus(["explain"]).args(arguments))
}

/// Returns true if the release is on the line of the store that it was compiled to.
fn has_release(text: &str) -> bool {
    let is_beside_store = |line: &str| {
        line.contains("P0.1: st.atom.rel.dv.sc0.semsc0 f, 1") && line.contains("|   buffer_store")
    };
    text.lines().any(is_beside_store)
}

#[test]
fn explanations_show_compiled_code() {
    if !has_radv() {
        return;
    }
    let explanation = explain(&["mp/MP+rel-acq"]).stdout;
    let with_code = explain(&["mp/MP+rel-acq", "--device", "radv:vega10,radv:navi21"]);
    assert_eq!(with_code.code, 0, "{}", with_code.stderr);
    let code = with_code.stdout.strip_prefix(&explanation).expect("the explanation comes first");
    // Each device has the kernel of both threads, with the instructions next to their accesses.
    assert_eq!(code.matches("mp/MP+rel-acq on radv:").count(), 2, "{code}");
    for (instruction, access) in [
        ("P0.0: st.atom.dv.sc0 x, 1", "buffer_store_dword"),
        ("P0.1: st.atom.rel.dv.sc0.semsc0 f, 1", "buffer_store_dword"),
        ("P1.0: ld.atom.acq.dv.sc0.semsc0 r0, f", "buffer_load_dword"),
        ("P1.1: ld.atom.dv.sc0 r1, x", "buffer_load_dword"),
    ] {
        let is_instruction_of = |line: &&str| line.starts_with(instruction) && line.contains(access);
        assert_eq!(code.lines().filter(is_instruction_of).count(), 2, "{instruction}\n{code}");
    }
    // The kernels are those that `run` dispatches for the variant: here one pipeline per role.
    let split = explain(&["mp/MP+rel-acq@split.restrict", "--device", "radv:navi21"]);
    assert_eq!(split.code, 0, "{}", split.stderr);
    assert!(split.stdout.contains("split.restrict, P0 (producer)"), "{}", split.stdout);
    assert!(split.stdout.contains("split.restrict, P1 (consumer)"), "{}", split.stdout);

    let page = explain(&["mp/MP+rel-acq", "--device", "radv:navi21", "--format", "html"]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(page.stdout.contains("<h2>Machine code on radv:navi21"), "{}", page.stdout);
    assert!(has_release(&page.stdout), "{}", page.stdout);

    let unknown = explain(&["mp/MP+rel-acq", "--device", "radv:navi99"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (3, ""), "{unknown:?}");
    let picture = explain(&["mp/MP+rel-acq", "--device", "radv:navi21", "--format", "svg"]);
    assert_eq!((picture.code, picture.stdout.as_str()), (2, ""), "{picture:?}");
}

#[test]
fn a_driver_without_disassembly_is_reported() {
    for driver in software_drivers() {
        let ran = explain(&["mp/MP+rel-acq", "--device", driver]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let last = ran.stdout.lines().last().unwrap();
        assert!(last.starts_with("no machine code on ") && last.ends_with(EXTENSION), "{last}");
    }
    let simulated = explain(&["mp/MP+rel-acq", "--device", "sim"]);
    assert_eq!(simulated.code, 2, "{simulated:?}");
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

/// Mutation-tests the explorer on the driver's code: each removed instruction is detected or explained.
#[test]
fn edits_are_detected_or_explained() {
    if !has_radv() {
        return;
    }
    let edits = |tests: &[&str]| {
        let ran = Ran::run(
            vk_litmus(["codegen", "--device", "radv:vega10,radv:navi21", "--form", "merged"])
                .args(["--explore", "--edits", "--format", "json"])
                .args(tests),
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json_lines()
    };
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/schema/codegen-edit.schema.json");
    let found = edits(&["mp/MP+rel-acq", "barrier/MP+cbar", "wrc/WRC+rlx-rel-acq.wg"]);
    found.iter().for_each(|line| assert_valid(&schema, line));
    let results_of = |device: &str, edit: &str| -> Vec<&str> {
        let lines = found
            .iter()
            .filter(|line| line["device"].as_str().unwrap().starts_with(device) && line["edit"] == edit);
        lines.map(|line| line["fate"].as_str().unwrap()).collect()
    };
    for device in ["radv:vega10", "radv:navi21"] {
        assert!(results_of(device, "barrier").iter().all(|fate| *fate == "reachable"), "{found:#?}");
        assert!(!results_of(device, "barrier").is_empty());
        assert!(results_of(device, "load bit").contains(&"reachable"));
        assert!(results_of(device, "load bit").contains(&"survives: nothing acquired before it"));
    }
    assert!(results_of("radv:navi21", "store wait").contains(&"reachable"), "{found:#?}");
    // Every survivor is explained, and the code has the reason for every forbidden outcome.
    let is_explained = |line: &Value| !line["fate"].as_str().unwrap().contains("unexplained");
    assert!(found.iter().all(is_explained), "{found:#?}");
    // If the outcome is allowed, a mutation cannot be detected.
    assert!(edits(&["mp/MP+rlx-rlx"]).is_empty());
}
