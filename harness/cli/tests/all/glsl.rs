//! Tests as GLSL: the output compiles and lifts to the same test.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use entry_point::AnalysisOptions;
use litmus::glsl::{GlslShader, to_glsl};
use litmus::{Dialect, InstructionKind, Prediction, QuestionKind, Race, Test};
use model::{Budget, Model};
use symbolic::ModelQuery;

use crate::common::{Ran, installed};
use crate::docs::compare_generated;

/// The model allows and marks out-of-thin-air values, but symbolic execution does not try them.
const THIN_AIR: [&str; 3] = ["lb/LB+ctrl-ctrl", "lb/LB+data-data", "lb/LB+masked-data-data"];

/// The corpus in the Vulkan dialect.
fn corpus() -> Vec<(String, Test)> {
    let tests = litmus::corpus::tests().into_iter();
    let parsed = tests.map(|test| {
        let parsed = litmus::parse(test.text, &test.id).unwrap();
        (test.id, parsed)
    });
    parsed.filter(|(_, test)| test.dialect == Dialect::Vulkan).collect()
}

/// Describes the memory accesses of a thread, without registers.
fn events(code: &[litmus::Instruction], name: &dyn Fn(litmus::LocationId) -> String) -> Vec<String> {
    let event = |kind: &InstructionKind| {
        if let InstructionKind::ControlBarrier(barrier) = kind {
            let (execution, memory) = (barrier.execution_scope, barrier.memory_scope);
            return Some(format!("{execution:?} {memory:?} {:?}", barrier.semantics));
        }
        match kind.access() {
            Some(access) => {
                let does = match access.kind {
                    litmus::AccessKind::Load(_) => "load",
                    litmus::AccessKind::Store(_) => "store",
                    _ => "update",
                };
                let unequal = access.unequal_semantics();
                let (strength, class) = (access.strength, access.place.class);
                Some(format!("{does} {} {strength:?} {unequal:?} {class:?}", name(access.place.location)))
            }
            None if kind.is_event() => Some(format!("{kind:?}")),
            None => None,
        }
    };
    let all = code.iter().filter_map(|instruction| event(&instruction.kind));
    all.filter(|event| !event.contains(" result.")).collect()
}

/// Evaluates the question of a test.
fn holds(test: &Test, prediction: &Prediction) -> Option<bool> {
    match test.question.as_ref()?.kind {
        QuestionKind::Forall => prediction.can_miss_condition.map(|misses| !misses),
        QuestionKind::Exists | QuestionKind::Final | QuestionKind::NotExists => {
            prediction.can_meet_condition.map(|meets| !meets)
        }
    }
}

/// Converts to GLSL and back; returns the difference, or `None` if a prediction is missing.
fn round_trip(test: &Test, glsl: &GlslShader, module: &[u8], model: &Model) -> Option<Result<(), String>> {
    let wrong = |what: String| Some(Err(what));
    let module = match entry_point::read_module(module) {
        Ok(module) => module,
        Err(refusal) => return wrong(refusal.to_string()),
    };
    let assertion = glsl.claim.as_ref().map(|claim| spirv_reader::annotations::parse_formula(claim).unwrap());
    let options = AnalysisOptions {
        grid: Some(glsl.grid),
        subgroup_size: glsl.subgroup_size,
        assertion,
        keep_all: true,
        ..AnalysisOptions::default()
    };
    let lifted = match symbolic::lift(&module, &options) {
        Ok(lifted) => lifted,
        Err(refusal) => return wrong(refusal.to_string()),
    };
    let case = &lifted.cases[0];
    let straight = !test
        .threads
        .iter()
        .flat_map(|thread| &thread.instructions)
        .any(|instruction| matches!(instruction.kind, InstructionKind::Flow(_)));
    let lifted_straight = |thread: &litmus::Thread| {
        !thread.instructions.iter().any(|instruction| matches!(instruction.kind, InstructionKind::Flow(_)))
    };
    // A compare-exchange whose result is used has two paths.
    if straight && case.test.threads.iter().all(lifted_straight) {
        let before: Vec<Vec<String>> = test
            .threads
            .iter()
            .map(|thread| {
                events(&thread.instructions, &|id| {
                    let name = &test.location(id).name;
                    name.strip_prefix("m_").unwrap_or(name).to_owned()
                })
            })
            .filter(|events| !events.is_empty())
            .collect();
        let after: Vec<Vec<String>> = case
            .test
            .threads
            .iter()
            .map(|thread| {
                events(&thread.instructions, &|id| {
                    let name = &case.names[usize::from(id.0)];
                    name.strip_suffix(".value").unwrap_or(name).trim_start_matches("m_").to_owned()
                })
            })
            .filter(|events| !events.is_empty())
            .collect();
        let sorted = |mut all: Vec<Vec<String>>| {
            all.sort();
            all
        };
        let (before, after) = (sorted(before), sorted(after));
        if before != after {
            return wrong(format!("events\n  {before:?}\n  {after:?}"));
        }
    }
    let budget = Budget::from_steps(300_000);
    let predicted =
        model::predict_with_growing_bound(test, model, &model::PredictOptions { budget, unroll: 1 }).unwrap();
    let asking = ModelQuery { budget, decide_race: true, decide_question: true, locate_race: false };
    let answer = symbolic::answer_with_model(&lifted, model, &asking).unwrap();
    if predicted.race == Race::Unknown || answer.race == Race::Unknown {
        return None;
    }
    if predicted.race != answer.race {
        return wrong(format!("race: {:?}, {:?}", predicted.race, answer.race));
    }
    match (holds(test, &predicted), answer.holds) {
        (Some(before), Some(after)) if before != after => wrong(format!("holds: {before}, {after}")),
        (None, Some(_)) | (Some(_), None) => None,
        _ => Some(Ok(())),
    }
}

#[test]
fn printed_glsl_lifts_to_the_same_test() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("test.spv");
    let compiles = installed("glslangValidator");
    // A soak lifts every test, other runs one in twelve.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 12 };
    let (mut printed, mut open, mut wrong) = (0, 0, Vec::new());
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for (id, test) in corpus() {
        let glsl = match to_glsl(&test) {
            Ok(glsl) => glsl,
            Err(error) => {
                *refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        printed += 1;
        if !compiles || printed % share > 0 && !THIN_AIR.contains(&id.as_str()) {
            continue;
        }
        let file = folder.path().join(format!("test.{}", glsl.file_extension()));
        fs::write(&file, &glsl.source).unwrap();
        let mut command = Command::new("glslangValidator");
        let ran =
            Ran::run(command.args(["-V", "--target-env", "vulkan1.3"]).arg(&file).arg("-o").arg(&module));
        if ran.code != 0 {
            wrong.push(format!("{id}: {}\n{}", ran.stdout, glsl.source));
            continue;
        }
        match round_trip(&test, &glsl, &fs::read(&module).unwrap(), &model) {
            Some(Ok(())) if THIN_AIR.contains(&id.as_str()) => wrong.push(format!("{id}: as before")),
            Some(Err(what)) if THIN_AIR.contains(&id.as_str()) => {
                assert_eq!(what, "holds: false, true", "{id}");
            }
            Some(Ok(())) => {}
            Some(Err(what)) => wrong.push(format!("{id}: {what}\n{}", glsl.source)),
            None => open += 1,
        }
    }
    assert!(wrong.is_empty(), "{} of {printed}:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(
        open * 20 * share < printed,
        "{open} of one in {share} of {printed} are not answered on both sides"
    );
    let row = |(what, count): (&String, &usize)| {
        let what = what.strip_prefix("GLSL cannot express ").unwrap_or(what);
        format!("| no {what} | {count} |\n")
    };
    let rows: String = refused.iter().map(row).collect();
    let total: usize = refused.values().sum();
    let table = format!(
        "| of the {} tests of the corpus in this dialect | |\n|---|---|\n| printed | {printed} |\n{rows}",
        printed + total
    );
    compare_generated("reference/shading-languages.md", "tests as GLSL", &table);
}
