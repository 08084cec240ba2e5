//! Accesses that are out of bounds for some values only.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use entry_point::{AnalysisOptions, FindingKind};
use litmus::Race;
use model::{Budget, Model};
use symbolic::ModelQuery;

/// A lock with one element per invocation, and one with too few elements.
const LOCK_PER_INVOCATION: &str = include_str!("../../cli/tests/all/shaders/annotated/lock-array.spvasm");
const TOO_FEW_LOCKS: &str = include_str!("../../cli/tests/all/shaders/annotated/lock-array-short.spvasm");

/// Returns true if an out-of-bounds access is reported, and the race verdict.
fn out_of_bounds(text: &str, budget: Budget<'_>) -> (bool, Race) {
    let module = entry_point::read_module(text.as_bytes()).unwrap();
    let lifted = symbolic::lift(&module, &AnalysisOptions::default()).unwrap();
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let query = ModelQuery { budget, decide_race: true, decide_question: false, locate_race: false };
    let answer = symbolic::answer_with_model(&lifted, &model, &query).unwrap();
    (answer.findings.iter().any(|finding| finding.kind() == FindingKind::OutOfBounds), answer.race)
}

#[test]
fn accesses_that_no_execution_performs_are_not_reported() {
    assert_eq!(out_of_bounds(LOCK_PER_INVOCATION, Budget::default()), (false, Race::Free));
    assert_eq!(out_of_bounds(TOO_FEW_LOCKS, Budget::default()), (true, Race::Free));
}

#[test]
fn undecided_accesses_leave_the_verdict_open() {
    let stopped = || true;
    assert_eq!(out_of_bounds(LOCK_PER_INVOCATION, Budget::until(&stopped)), (false, Race::Unknown));
}
