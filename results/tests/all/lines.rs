//! One record of every kind of verdict.

use litmus::{Observation, Race};
use results::wire::{
    CheckContext, CheckLine, DeviceRecord, DriverRecord, EnvironmentRecord, Hashes, LineVerdict, ModelRecord,
    PLAN_SCHEMA, PlanRecord, RaceWord, RejectedLine, RunContext, RunLine, TestRecord,
};
use results::{Ending, Evidence, judge};

use crate::fixture::{Synchronization, observation, outcome, prediction, store_buffering};

fn context(id: &str) -> RunContext {
    RunContext {
        id: id.into(),
        device: "lavapipe".into(),
        model: "vulkan".into(),
        seed: 7,
        stress: "cpu".into(),
        replay: format!("vk-litmus run {id} --device lavapipe --seed 7"),
        hashes: Hashes { test: "aa".into(), model: "bb".into(), kernel: "cc".into() },
        driver: Some(DriverRecord {
            name: "llvmpipe".into(),
            info: "Mesa 22.3.6".into(),
            id: 13,
            version: 1,
        }),
        ..RunContext::default()
    }
}

/// One line of each verdict.
pub fn run_lines() -> Vec<RunLine> {
    let test = store_buffering(Synchronization::Nothing);
    let allowed = prediction(&test, true, Race::Free);
    let forbidden = prediction(&test, false, Race::Free);
    let racy = prediction(&test, true, Race::Racy);
    let mut corrupt = observation([0, 400, 400, 400]);
    corrupt.histogram.add_count(outcome(7, 0), 2);
    corrupt.unexpected.insert(vec![1, 0xdead_beef], 1);
    let mut discarded = observation([1, 2, 3, 4]);
    discarded.not_executed = 96;
    discarded.discarded_dispatches = 20;
    let unresolved = Observation { unresolved: 12, ..observation([93_214, 3_100_000, 3_100_000, 106_774]) };
    let cases = [
        ("sb/SB+rlx-rlx", &allowed, unresolved, Ending::Finished),
        ("sb/SB+forbidden", &forbidden, observation([3, 500, 500, 200]), Ending::Finished),
        ("sb/SB+corrupt", &allowed, corrupt, Ending::Finished),
        ("sb/SB+racy", &racy, observation([30, 500, 500, 200]), Ending::Finished),
        ("sb/SB+dull", &allowed, observation([0, 5000, 5000, 3]), Ending::Finished),
        ("sb/SB+hang", &allowed, observation([0; 4]), Ending::TimedOut("no answer for 5 s".into())),
        ("sb/SB+lost", &allowed, observation([0, 5, 5, 0]), Ending::DeviceLost("submit".into())),
        ("sb/SB+discarded", &allowed, discarded, Ending::Finished),
    ];
    let mut lines: Vec<RunLine> = cases
        .iter()
        .map(|(id, prediction, observation, ending)| {
            judge(&Evidence::new(&test, prediction, observation, ending), context(id))
        })
        .collect();
    let skipped = LineVerdict::skipped("sc1 across workgroups");
    lines.push(RunLine::of_test(&test, context("classes/SB+sc1")).with_verdict(skipped));
    lines
}

/// Lines with an expected, an unexpected and an undecided answer, without an execution, and for a model
/// without race conditions.
pub fn check_lines() -> Vec<CheckLine> {
    let test = store_buffering(Synchronization::Nothing);
    let mut nothing = prediction(&test, false, Race::Free);
    nothing.outcomes.values_mut().for_each(|predicted| predicted.allowed = false);
    (nothing.can_meet_condition, nothing.can_miss_condition) = (Some(false), Some(false));
    let mut unfinished = prediction(&test, false, Race::Unknown);
    unfinished.complete = false;
    (unfinished.can_meet_condition, unfinished.can_miss_condition) = (None, None);
    [
        ("sb/SB+rlx-rlx", prediction(&test, true, Race::Free)),
        ("sb/SB+surprise", prediction(&test, false, Race::Free)),
        ("sb/SB+racy", prediction(&test, true, Race::Racy)),
        ("sb/SB+late", unfinished),
        ("sb/SB+nothing", nothing),
        ("sb/SB+sc", prediction(&test, false, Race::Free)),
    ]
    .iter()
    .map(|(id, prediction)| {
        let file = format!("{id}.litmus");
        let context =
            CheckContext { id, file: &file, question: "exists (P0:r0 == 0 /\\ P1:r0 == 0)", micros: 120 };
        let line = CheckLine::new(&test, prediction, context);
        if *id == "sb/SB+sc" {
            return CheckLine { race: RaceWord::NotDefined, model: "sc".into(), ..line };
        }
        line
    })
    .collect()
}

/// A file that is not a valid test.
pub fn rejected() -> RejectedLine {
    RejectedLine { file: "broken.litmus".into(), error: "expected a register".into(), line: 4, column: 17 }
}

/// A plan with all lines.
pub fn whole_plan() -> PlanRecord {
    let mut complete = plan();
    let template = complete.tests[0].clone();
    complete.tests =
        run_lines().iter().map(|line| TestRecord { id: line.id.clone(), ..template.clone() }).collect();
    complete.plan = complete.hash().unwrap();
    complete
}

pub fn plan() -> PlanRecord {
    let mut plan = PlanRecord {
        schema: PLAN_SCHEMA.into(),
        tool: "0.1.0".into(),
        plan: String::new(),
        seed: 7,
        budget: "15s".into(),
        stress: "cpu".into(),
        shard: Some("1/4".into()),
        devices: vec![DeviceRecord {
            name: "lavapipe".into(),
            device_name: "llvmpipe (LLVM 15.0.6, 256 bits)".into(),
            kind: "cpu".into(),
            driver_name: "llvmpipe".into(),
            driver_info: "Mesa 22.3.6".into(),
            driver_id: 13,
            driver_version: 1,
            api_version: "1.3.230".into(),
            vendor_id: 0x10005,
            device_id: 0,
            uuid: "00".repeat(16),
            features: vec!["vulkanMemoryModel".into()],
            limits: [("subgroup size".to_owned(), "8".to_owned())].into(),
            memory_types: vec!["DEVICE_LOCAL HOST_VISIBLE HOST_COHERENT".into()],
            stress: "rounds = 4\n".into(),
        }],
        tests: vec![TestRecord {
            id: "sb/SB+rlx-rlx".into(),
            name: "SB+rlx-rlx".into(),
            file: "sb/SB+rlx-rlx.litmus".into(),
            hash: "aa".into(),
            models: vec![ModelRecord { name: "vulkan".into(), hash: "bb".into() }],
            text: "VULKAN SB+rlx-rlx\n".into(),
            clauses: vec!["mm.visible-to".into()],
        }],
        environment: Some(EnvironmentRecord {
            os: "linux".into(),
            architecture: "x86_64".into(),
            processors: 2,
            jobs: 1,
            variables: [("LP_NUM_THREADS".to_owned(), "2".to_owned())].into(),
            started: "2026-01-02T03:04:05Z".into(),
            suite: "quick".into(),
        }),
    };
    plan.plan = plan.hash().unwrap();
    plan
}
