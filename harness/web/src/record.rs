//! The results folder of a run on the GPU of a browser, which `report` reads.

use results::journal::seal_record;
use results::sources_hash;
use results::state::State;
use results::wire::{
    DeviceRecord, DriverRecord, EnvironmentRecord, Hashes, INSTANCES_PER_TEST_SUFFIX, ModelRecord,
    PLAN_SCHEMA, PlanRecord, PlaygroundAnswer, PlaygroundFile, PlaygroundGpuRun, PlaygroundQuestion,
    RejectedLine, TestRecord,
};
use runner::text_hash;
use verdicts::{JudgeRequest, judge_test};

use crate::question::{FILE, ParsedQuestion, mistake_without_position};

/// The name of the device, and of its stress.
const DEVICE_NAME: &str = "webgpu";

/// Judges a run and returns the files of its results folder.
pub fn record_run(
    question: &PlaygroundQuestion,
    run: &PlaygroundGpuRun,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let ParsedQuestion { test, model, budget } = &ParsedQuestion::parse(question)?;
    let counts: Vec<(State, u64)> =
        run.outcomes.iter().map(|outcome| (outcome.state.clone(), outcome.count)).collect();
    let mut line = judge_test(&JudgeRequest {
        test,
        id: &test.name,
        model,
        budget: *budget,
        device: DEVICE_NAME,
        counts: &counts,
        dispatches: run.dispatches,
        not_executed: run.not_executed,
    })
    .map_err(|error| mistake_without_position(error.to_string()))?;
    let model_hash = sources_hash(model.sources());
    line.seed = run.seed;
    line.stress = DEVICE_NAME.to_owned();
    line.seconds = run.milliseconds as f64 / 1000.0;
    line.hashes =
        Hashes { test: text_hash(&question.text), model: model_hash.clone(), kernel: text_hash(&run.kernel) };
    line.driver =
        Some(DriverRecord { name: "WebGPU".to_owned(), info: run.browser.clone(), id: 0, version: 0 });

    let mut plan = PlanRecord {
        schema: PLAN_SCHEMA.to_owned(),
        tool: line.tool.clone(),
        plan: String::new(),
        seed: run.seed,
        budget: format!("{}{INSTANCES_PER_TEST_SUFFIX}", line.instances),
        stress: DEVICE_NAME.to_owned(),
        shard: None,
        devices: vec![device_record(run)],
        tests: vec![TestRecord {
            id: line.id.clone(),
            name: test.name.clone(),
            file: FILE.to_owned(),
            hash: line.hashes.test.clone(),
            models: vec![ModelRecord { name: line.model.clone(), hash: model_hash }],
            text: question.text.clone(),
            clauses: test.metadata.clauses.clone(),
        }],
        environment: Some(EnvironmentRecord {
            os: run.system.clone(),
            processors: run.processors,
            jobs: 1,
            started: run.started.clone(),
            ..EnvironmentRecord::default()
        }),
    };
    let to_mistakes = |error: serde_json::Error| mistake_without_position(error.to_string());
    plan.plan = plan.hash().map_err(to_mistakes)?;
    let mut plan = serde_json::to_string_pretty(&plan).map_err(to_mistakes)?;
    plan.push('\n');
    let line = String::from_utf8(seal_record(&line).map_err(to_mistakes)?)
        .map_err(|error| mistake_without_position(error.to_string()))?;
    let file = |name: &str, text: String| PlaygroundFile { name: name.to_owned(), text };
    let files = vec![
        file(results::read::PLAN, plan),
        file(results::read::JOURNAL, line),
        file("kernel.wgsl", run.kernel.clone()),
    ];
    Ok(PlaygroundAnswer::Record { files })
}

/// Returns the record of the adapter; browsers report neither driver nor ids.
fn device_record(run: &PlaygroundGpuRun) -> DeviceRecord {
    DeviceRecord {
        name: DEVICE_NAME.to_owned(),
        device_name: run.adapter.clone(),
        kind: "other".to_owned(),
        driver_name: "WebGPU".to_owned(),
        driver_info: run.browser.clone(),
        driver_id: 0,
        driver_version: 0,
        api_version: "WebGPU".to_owned(),
        vendor_id: 0,
        device_id: 0,
        uuid: String::new(),
        features: Vec::new(),
        limits: std::collections::BTreeMap::new(),
        memory_types: Vec::new(),
        stress: String::new(),
    }
}
