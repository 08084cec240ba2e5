//! Tests of merging shards and of baselines.

use results::baseline;
use results::folder::FolderError;
use results::merge::{MergeError, merge, merge_into};
use results::read::{Results, read_results};
use results::wire::{
    MACHINE_CODE_SCHEMA, MachineCodeLine, NeededTransformations, PlanRecord, RunLine, TestRecord,
};
use tempfile::tempdir;

use crate::lines::{plan, run_lines};

fn shards(count: usize) -> (PlanRecord, Vec<RunLine>, Vec<Results>) {
    let lines = run_lines();
    let mut complete = PlanRecord { shard: None, ..plan() };
    let template = complete.tests[0].clone();
    complete.tests =
        lines.iter().map(|line| TestRecord { id: line.id.clone(), ..template.clone() }).collect();
    complete.plan = complete.hash().unwrap();
    let parts = (0..count)
        .map(|shard| {
            let mine = |index: &usize| index % count == shard;
            let tests: Vec<TestRecord> =
                (0..complete.tests.len()).filter(mine).map(|index| complete.tests[index].clone()).collect();
            let shard_lines: Vec<RunLine> =
                (0..lines.len()).filter(mine).map(|index| lines[index].clone()).collect();
            let mut plan =
                PlanRecord { shard: Some(format!("{}/{count}", shard + 1)), tests, ..complete.clone() };
            plan.plan = plan.hash().unwrap();
            Results {
                source: format!("part{shard}").into(),
                plan: Some(plan),
                lines: shard_lines,
                incomplete: None,
                ..Results::default()
            }
        })
        .collect();
    (complete, lines, parts)
}

#[test]
fn shards_merge_in_any_order() {
    for count in [1, 2, 4, 9, 12] {
        let (complete, lines, mut parts) = shards(count);
        parts.reverse();
        let (plan, merged) = merge(&parts).unwrap();
        assert_eq!(plan, complete, "{count}");
        assert_eq!(merged, lines);
    }
}

#[test]
fn the_merged_folder_is_a_results_folder() {
    let root = tempdir().unwrap();
    let (complete, lines, parts) = shards(2);
    let out = root.path().join("whole");
    merge_into(&parts, &out).unwrap();
    let found = read_results(&out).unwrap();
    assert_eq!((found.plan, found.lines), (Some(complete), lines));
    let second_merge = merge_into(&parts, &out).unwrap_err();
    assert!(
        matches!(second_merge, MergeError::Folder(FolderError::NotEmpty { .. })) && second_merge.is_input()
    );
}

#[test]
fn incomplete_or_foreign_shards_are_refused() {
    let (_, _, parts) = shards(3);
    let refused = |parts: &[Results]| -> String {
        let error = merge(parts).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    assert_eq!(refused(&parts[..2]), "shard 3/3 is missing");
    assert_eq!(refused(&[]), "shard 1/1 is missing");
    let twice = [parts[0].clone(), parts[1].clone(), parts[0].clone(), parts[2].clone()];
    assert_eq!(refused(&twice), "part0 and part0 are both shard 1/3");
    let change = |edit: &dyn Fn(&mut PlanRecord)| -> String {
        let mut parts = parts.clone();
        edit(parts[1].plan.as_mut().unwrap());
        refused(&parts)
    };
    let conflict = "conflicting plans: `seed` of part0 is 7, of part1 it is 8";
    assert_eq!(change(&|plan| plan.seed = 8), conflict);
    assert!(change(&|plan| plan.budget = "1m".into()).contains("`budget`"));
    assert!(change(&|plan| plan.tool = "9".into()).contains("`tool`"));
    assert!(change(&|plan| plan.devices[0].driver_info = "Mesa 25".into()).contains("`devices`"));
    assert!(change(&|plan| plan.devices[0].stress = "rounds = 9".into()).contains("`stress`"));
    assert!(change(&|plan| plan.shard = Some("2/4".into())).contains("`number of shards`"));
    let other_model =
        |plan: &mut PlanRecord| plan.tests.iter_mut().for_each(|t| t.models[0].name = "sc".into());
    assert!(
        change(&other_model).contains("`models` of part0 is vulkan bb on lavapipe, of part1 it is sc bb")
    );
    let other_text =
        |plan: &mut PlanRecord| plan.tests.iter_mut().for_each(|t| t.models[0].hash = "cc".into());
    assert!(change(&other_text).contains("`models`"));
    let variable = |plan: &mut PlanRecord, name: &str| {
        let environment = plan.environment.as_mut().unwrap();
        environment.variables.insert(name.to_owned(), "1".to_owned());
    };
    assert!(change(&|plan| variable(plan, "LP_PERF")).contains("`environment`"));
    let mut elsewhere = parts.clone();
    variable(elsewhere[1].plan.as_mut().unwrap(), "VK_DRIVER_FILES");
    assert!(merge(&elsewhere).is_ok(), "drivers may lie elsewhere");
    assert!(change(&|plan| plan.shard = None).contains("not a shard"));
    assert!(change(&|plan| drop(plan.tests.pop())).contains("does not match the other shards"));
    let first = parts[0].plan.as_ref().unwrap().tests[0].clone();
    assert!(change(&|plan| plan.tests[0] = first.clone()).contains("is in two shards"));
    let mut without_plan = parts.clone();
    without_plan[0].plan = None;
    assert!(refused(&without_plan).contains("no plan"));
}

#[test]
fn a_baseline_is_read_back() {
    let root = tempdir().unwrap();
    let (complete, lines, _) = shards(1);
    let saved = baseline::save(&root.path().join("deep/baselines"), &complete, &lines).unwrap();
    assert_eq!(saved.len(), 1);
    assert!(saved[0].ends_with("lavapipe-mesa-22.3.6.jsonl"), "{saved:?}");
    let found = read_results(&saved[0]).unwrap();
    assert_eq!(found.lines, lines);
    assert!(found.plan.unwrap().tests.iter().all(|test| test.text.is_empty()));
    let unfinished = baseline::save(root.path(), &complete, &lines[1..]).unwrap_err();
    assert!(unfinished.to_string().contains("1 test of the plan without a verdict"), "{unfinished}");
    assert!(baseline::save(root.path(), &plan(), &lines).is_err(), "a shard is no baseline");
}

/// For any driver name, the file has a safe name and stays in the folder.
#[test]
fn names_of_baselines_are_safe() {
    let name = |device: &str, info: &str| {
        let mut record = plan().devices[0].clone();
        record.name = device.into();
        record.driver_info = info.into();
        baseline::file_name(&record)
    };
    assert_eq!(name("sim", "0.1.0"), "sim-0.1.0.jsonl");
    assert_eq!(name("sim", "0.1.0, fault hang"), "sim-0.1.0-fault-hang.jsonl");
    assert_eq!(name("../../etc/passwd", "/"), "etc-passwd.jsonl");
    assert_eq!(name("\u{1b}[31mA B", "é"), "31ma-b.jsonl");
    assert_eq!(name("", ""), "0.0.1.jsonl");
    assert!(name(&"x".repeat(500), "").len() < 200);
}

#[test]
fn machine_code_is_merged_and_read_back() {
    let root = tempdir().unwrap();
    let (_, lines, mut parts) = shards(2);
    let record = |line: &RunLine| MachineCodeLine {
        schema: MACHINE_CODE_SCHEMA.to_owned(),
        id: line.id.clone(),
        device: line.device.clone(),
        driver: "Mesa".to_owned(),
        no_code_reason: Some("an extension".to_owned()),
        kernels: Vec::new(),
        ran: Vec::new(),
        replay: String::new(),
        transformations: Some(NeededTransformations {
            id: line.id.clone(),
            names: vec!["call".to_owned()],
            replay: "vk-litmus run".to_owned(),
        }),
    };
    for part in &mut parts {
        part.machine_code = vec![record(&part.lines[0])];
    }
    let out = root.path().join("merged");
    merge_into(&parts, &out).unwrap();
    let found = read_results(&out).unwrap();
    assert_eq!(found.lines, lines);
    assert_eq!(found.machine_code, [parts[0].machine_code.clone(), parts[1].machine_code.clone()].concat());
    // A second record of one verdict is an error that names its line.
    let file = out.join(results::folder::MACHINE_CODE);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.clone() + &text).unwrap();
    let error = read_results(&out).unwrap_err();
    assert!(
        error.is_input() && error.to_string().contains("machine-code.jsonl:3: a second record"),
        "{error}"
    );
}
