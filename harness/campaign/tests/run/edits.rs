//! Every field of a journal line, edited: a reader refuses it, recomputes it, or no claim of the report depends on it.

use std::collections::BTreeSet;
use std::path::Path;

use campaign::rejudge::{OtherVersionPolicy, recompute_results};
use litmus::{Outcome, Prediction};
use results::read;
use results::wire::{RunLine, VerdictWord};
use runner::pool::WorkerFailure;
use runner::wire::{Job, JobResult};
use serde_json::{Value, json};

use super::{folder_options, job_result, not_interrupted, options, plan, run};

/// Fields that readers copy. No verdict and no count depends on the texts. Only bounds check the last two, which are
/// measurements; a resumed run compiles the kernel again.
const COPIED: [&str; 7] =
    ["detail", "memory", "counted_by_host", "replay", "hashes.kernel", "seconds", "batches"];

/// Fields that are copied without a verdict: why the run ended.
const COPIED_IF_INCONCLUSIVE: [&str; 2] = ["reason", "not_executed"];

/// Returns an answer with allowed outcomes.
fn allowed_answer(job: &Job) -> Result<JobResult, WorkerFailure> {
    let rows: &[(&[u64], u64)] = match job.id.as_str() {
        "hsa/MP+agent" => &[(&[1, 1], 1000)],
        _ => &[(&[0, 0], 400), (&[0, 1], 500), (&[1, 1], 100)],
    };
    Ok(job_result(rows, None))
}

/// Returns each path to a value in `value`, with that value.
fn leaves(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                leaves(field, &format!("{path}/{name}"), all);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}/{index}"), all);
            }
            all.push((path.to_owned(), value.clone()));
        }
        _ => all.push((path.to_owned(), value.clone())),
    }
}

/// Returns other values for a field.
fn edited_values(value: &Value) -> Vec<Value> {
    let other = match value {
        Value::Null => vec![json!("not executed")],
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            vec![json!(number as u64 + 1), json!(number as u64 * 7 + 99), json!(0)]
        }
        Value::String(text) => vec![json!(format!("{text}x")), json!("")],
        Value::Array(items) => vec![json!([]), json!([&items[..], &items[..1.min(items.len())]].concat())],
        Value::Object(_) => Vec::new(),
    };
    other.into_iter().filter(|other| other != value).collect()
}

/// Reads a folder and recomputes its lines.
fn recompute_folder(folder: &Path) -> Result<Vec<RunLine>, String> {
    let found = read::read_results(folder).map_err(|error| error.to_string())?;
    let recomputed = recompute_results(found, OtherVersionPolicy::Dropped)
        .map_err(|failure| failure.report().to_string())?;
    Ok(recomputed.results.lines)
}

/// Returns the accepted edits of the first line of a folder that change a recomputed line.
fn accepted_edits(folder: &Path) -> BTreeSet<String> {
    let journal = folder.join(read::JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let original = recompute_folder(folder).unwrap();
    let line = serde_json::to_value(serde_json::from_str::<RunLine>(first).unwrap()).unwrap();
    let mut all = Vec::new();
    leaves(&line, "", &mut all);
    assert!(all.len() > 40, "{all:?}");
    let mut accepted = BTreeSet::new();
    for (path, value) in all {
        for edit in edited_values(&value) {
            let mut edited = line.clone();
            *edited.pointer_mut(&path).unwrap() = edit.clone();
            let Ok(record) = serde_json::from_value::<RunLine>(edited) else { continue };
            let sealed = String::from_utf8(results::journal::seal_record(&record).unwrap()).unwrap();
            std::fs::write(&journal, format!("{sealed}{rest}")).unwrap();
            if recompute_folder(folder).is_ok_and(|lines| lines != original) {
                let name = path.trim_start_matches('/').replace('/', ".");
                accepted.insert(format!("{name}: {value} to {edit}"));
            }
        }
    }
    std::fs::write(&journal, text).unwrap();
    accepted
}

#[test]
fn edited_fields_are_refused_recomputed_or_listed() {
    for (ids, is_judged) in [(&["mp/MP+rel-acq", "mp/MP+rel-rlx"][..], true), (&["hsa/MP+agent"], false)] {
        let folder = tempfile::tempdir().unwrap();
        let (plan, options) = (plan(&["a"], ids), options(1));
        let (trace, _) = run(
            &plan,
            &options,
            &folder_options(folder.path(), false, Some(1)),
            &not_interrupted(),
            &allowed_answer,
        )
        .unwrap();
        assert_eq!(trace.result.lines[0].verdict == VerdictWord::Conforms, is_judged);
        let accepted = accepted_edits(folder.path());
        let copied = [&COPIED[..], &COPIED_IF_INCONCLUSIVE[..if is_judged { 0 } else { 2 }]].concat();
        let is_copied = |edit: &&String| copied.iter().any(|field| edit.starts_with(&format!("{field}:")));
        let unexpected: Vec<&String> = accepted.iter().filter(|edit| !is_copied(edit)).collect();
        assert!(unexpected.is_empty(), "{ids:?}: {unexpected:#?}");
    }
}

/// A resumed run finds out again why the plan skips a test.
#[test]
fn skips_are_planned_again() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &["coherence/CoRR+rlx", "mp/MP+rel-acq"]), options(1));
    let run_again = |is_resumed| {
        let place = folder_options(folder.path(), is_resumed, Some(1));
        run(&plan, &options, &place, &not_interrupted(), &allowed_answer).unwrap().0.result.lines
    };
    let lines = run_again(false);
    assert_eq!(lines[0].verdict, VerdictWord::Skipped);
    let journal = folder.path().join(read::JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let line = serde_json::from_str::<RunLine>(first).unwrap();
    let other = |text: &str| Some(text.to_owned());
    for edited in [
        RunLine { reason: other("not listed"), ..line.clone() },
        RunLine { detail: other("not listed"), ..line.clone() },
        RunLine { reason: None, ..line },
    ] {
        let sealed = String::from_utf8(results::journal::seal_record(&edited).unwrap()).unwrap();
        std::fs::write(&journal, format!("{sealed}{rest}")).unwrap();
        assert_eq!(run_again(true), lines);
    }
}

/// Without a baseline, a test that store buffers make weak is calibrated, and one that only weaker devices show is not.
#[test]
fn tests_without_a_baseline_are_calibrated_by_store_buffering() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&["a"], &["sb/SB+rlx-rlx", "mp/MP+rlx-rlx", "mp/MP+rel-acq"]);
    let plan = plan.with_baselines(folder.path(), &|_| ()).unwrap();
    let weak = |prediction: &Prediction| {
        prediction.outcomes.iter().filter(|(_, predicted)| predicted.weak && predicted.allowed).count()
    };
    let cells: Vec<(usize, &[Outcome])> = (plan.device_tests.iter())
        .map(|cell| (weak(cell.known_prediction().unwrap()), cell.calibrated_outcomes.as_slice()))
        .collect();
    let both_missed = Outcome(vec![litmus::Value(0); 2]);
    assert_eq!(cells, [(1, &[both_missed][..]), (1, &[]), (0, &[])]);
    assert!(plan.device_tests.iter().all(|cell| cell.expected_outcomes.is_empty()));
}
