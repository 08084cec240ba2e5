//! The committed JSON schemas match the types, and written records are valid under them and under the
//! contract.

use std::path::{Path, PathBuf};

use crate::lines::{check_lines, plan, rejected, run_lines};
use jsonschema::Validator;
use results::wire::{
    BaselineRecord, CheckLine, ClausesRecord, CodegenDiffLine, CodegenEditLine, CodegenExploreLine,
    CodegenLine, CompareRecord, DiffRecord, LintLine, MachineCodeLine, PatternsRecord, PlanRecord,
    PlaygroundAnswer, PlaygroundRequest, RefineLine, RejectedLine, ReportRecord, RunLine,
};
use schemars::Schema;
use serde_json::Value;

/// Every published type with the file of its schema.
fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("check.schema.json", schemars::schema_for!(CheckLine)),
        ("rejected.schema.json", schemars::schema_for!(RejectedLine)),
        ("run.schema.json", schemars::schema_for!(RunLine)),
        ("plan.schema.json", schemars::schema_for!(PlanRecord)),
        ("bench.schema.json", schemars::schema_for!(results::bench::BenchReport)),
        ("bench-stress.schema.json", schemars::schema_for!(results::wire::BenchStressRecord)),
        ("clauses.schema.json", schemars::schema_for!(ClausesRecord)),
        ("compare.schema.json", schemars::schema_for!(CompareRecord)),
        ("baseline.schema.json", schemars::schema_for!(BaselineRecord)),
        ("diff.schema.json", schemars::schema_for!(DiffRecord)),
        ("race.schema.json", schemars::schema_for!(results::wire::RaceLine)),
        ("recording.schema.json", schemars::schema_for!(results::wire::RecordingRecord)),
        ("hazard.schema.json", schemars::schema_for!(results::wire::HazardLine)),
        ("judgement.schema.json", schemars::schema_for!(results::wire::JudgementLine)),
        ("report.schema.json", schemars::schema_for!(ReportRecord)),
        ("codegen.schema.json", schemars::schema_for!(CodegenLine)),
        ("codegen-explore.schema.json", schemars::schema_for!(CodegenExploreLine)),
        ("codegen-diff.schema.json", schemars::schema_for!(CodegenDiffLine)),
        ("codegen-edit.schema.json", schemars::schema_for!(CodegenEditLine)),
        ("machine-code.schema.json", schemars::schema_for!(MachineCodeLine)),
        ("lint.schema.json", schemars::schema_for!(LintLine)),
        ("refine.schema.json", schemars::schema_for!(RefineLine)),
        ("patterns.schema.json", schemars::schema_for!(PatternsRecord)),
        ("playground-request.schema.json", schemars::schema_for!(PlaygroundRequest)),
        ("playground-answer.schema.json", schemars::schema_for!(PlaygroundAnswer)),
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema")
}

fn read(path: &Path) -> Validator {
    let text = std::fs::read_to_string(path).expect("a schema is readable");
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// `VK_LITMUS_BLESS=1` regenerates the files.
#[test]
fn committed_schemas_are_current() {
    for (name, schema) in schemas() {
        let path = folder().join(name);
        let current = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("VK_LITMUS_BLESS").is_some() {
            std::fs::write(&path, &current).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == current,
            "results/schema/{name} is not what the types say: run this test with VK_LITMUS_BLESS=1"
        );
    }
}

#[test]
fn every_schema_has_a_type() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(schemas().iter().any(|(known, _)| name == *known), "{name:?} belongs to no type");
    }
}

#[track_caller]
fn assert_valid(validator: &Validator, value: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{value:#}\n{errors:#?}");
}

fn values() -> Vec<(&'static str, Value)> {
    let mut values = Vec::new();
    for line in check_lines() {
        values.push(("check.schema.json", serde_json::to_value(line).unwrap()));
    }
    for line in run_lines() {
        values.push(("run.schema.json", serde_json::to_value(line).unwrap()));
    }
    values.push(("rejected.schema.json", serde_json::to_value(rejected()).unwrap()));
    values.push(("plan.schema.json", serde_json::to_value(plan()).unwrap()));
    values
}

#[test]
fn written_records_are_valid() {
    for (schema, value) in values() {
        assert_valid(&read(&folder().join(schema)), &value);
    }
}

#[test]
fn written_records_can_be_read() {
    for line in run_lines() {
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<RunLine>(&text).unwrap(), line);
    }
    for line in check_lines() {
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<CheckLine>(&text).unwrap(), line);
    }
}

#[test]
fn instances_are_the_sum_of_the_listed_counts() {
    for line in run_lines() {
        let outcomes: u64 = line.outcomes.iter().map(|o| o.count).sum();
        let unexpected: u64 = line.unexpected.iter().map(|u| u.count).sum();
        assert_eq!(line.instances, outcomes + unexpected + line.unresolved, "{}", line.id);
    }
}

/// Scripts of other tools rely on this contract, which is stored with the reference corpora.
#[test]
fn written_records_fulfil_the_contract() {
    let Some(contract) = std::env::var_os("VK_LITMUS_CORPORA")
        .and_then(|corpora| Some(Path::new(&corpora).parent()?.join("contract")))
        .filter(|folder| folder.is_dir())
    else {
        println!("skipped: 1 (VK_LITMUS_CORPORA has no contract beside it)");
        return;
    };
    for (schema, value) in values() {
        let file = match schema {
            "rejected.schema.json" => "check.schema.json",
            "plan.schema.json" => continue,
            other => other,
        };
        // The contract does not have the null of models without race conditions.
        if value.get("race").is_none_or(|race| !race.is_null()) {
            assert_valid(&read(&contract.join(file)), &value);
        }
    }
}
