//! Answers questions about a lifted kernel with an axiomatic model.
//!
//! Races are first searched among few invocations; the others have not started. A race in this prefix is a race
//! of the whole kernel. If none is found, and for questions about final states, all invocations are checked.

use std::collections::BTreeSet;

use litmus::{Instruction, Label, Prediction, QuestionKind, Race, Test, ThreadPlace};
use model::{
    Budget, EventOwner, ExplainOptions, FoundRace, Model, PredictError, PredictOptions, explain_outcome,
    predict, predict_without_outcomes,
};

use crate::emit;
use crate::lifted::{Lifted, LiftedCase};
use crate::suspicion::confirm_suspicions;
use entry_point::{FindingCause, InvocationId, LiftFinding, Spot};

/// Model steps for the first check of all invocations.
const FIRST_CHECK_STEPS: u64 = 20_000;
/// Model steps for a few invocations.
const PAIR_STEPS: u64 = 20_000;
/// Model steps to locate a race.
const EXPLAIN_STEPS: u64 = 30_000;

/// A query to the model, with its cost limit.
#[derive(Clone, Copy, Debug)]
pub struct ModelQuery<'b> {
    pub budget: Budget<'b>,
    /// True to decide races.
    pub decide_race: bool,
    /// True to decide the question about final states.
    pub decide_question: bool,
    /// True to locate a race in the source.
    pub locate_race: bool,
}

#[derive(Clone, Debug)]
pub struct ModelAnswer {
    /// The race verdict.
    ///
    /// `Unknown` if it was not queried, a limit was hit, loops were cut off, or the result rests on undefined
    /// behaviour or a divergent barrier.
    pub race: Race,
    /// The truth of the claim about final states.
    pub holds: Option<bool>,
    /// Number of runs that were cut off at the unrolling bound.
    pub cut_off_runs: u64,
    pub runs: u64,
    pub candidate_executions: u64,
    pub consistent_executions: u64,
    /// True if the deadline passed.
    pub is_out_of_time: bool,
    /// The position of a race.
    pub race_spot: Option<RaceSpot>,
    /// Other defects: those of the lifter, without the infeasible ones.
    pub findings: Vec<LiftFinding>,
}

/// Two racing accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceSpot {
    /// The source name of the accessed element.
    pub element: String,
    /// The two accesses.
    pub at: [Spot; 2],
    /// The relations of the model, any of which would order the accesses.
    pub missing: Vec<String>,
}

impl RaceSpot {
    pub fn describe(&self, invocations: &[InvocationId]) -> String {
        let describe_invocation = |spot: &Spot| {
            let identity = invocations.get(usize::from(spot.thread)).copied().unwrap_or_default();
            let does = if spot.writes == Some(true) { "writes" } else { "reads" };
            format!("invocation {identity} {does} it")
        };
        let missing = if self.missing.is_empty() {
            String::new()
        } else {
            format!(" (in none of the model's relations {})", self.missing.join(", "))
        };
        format!(
            "data race on `{}`: {}, {}, and the accesses are not ordered{missing}",
            self.element,
            describe_invocation(&self.at[0]),
            describe_invocation(&self.at[1])
        )
    }
}

/// Answers a query.
///
/// # Errors
/// Fails beyond the bounds of the engine.
pub fn answer_with_model(
    lifted: &Lifted,
    model: &Model,
    query: &ModelQuery<'_>,
) -> Result<ModelAnswer, PredictError> {
    let mut all = decide_with_model(lifted, model, query)?;
    let (findings, open) = confirm_suspicions(lifted, model, query.budget);
    // Nothing after a divergent barrier is defined, and no examined run contains it.
    let divergent = lifted.findings.iter().any(|found| found.cause == FindingCause::MissedBarrier);
    if all.race == Race::Free && (open || divergent) {
        all.race = Race::Unknown;
        all.is_out_of_time |= open;
    }
    all.findings = findings;
    if query.locate_race && all.race == Race::Racy {
        for case in &lifted.cases {
            all.race_spot = locate_race(case, model, query.budget)?;
            if all.race_spot.is_some() {
                break;
            }
        }
    }
    Ok(all)
}

/// [`answer_with_model`] without locating a race.
pub fn decide_with_model(
    lifted: &Lifted,
    model: &Model,
    query: &ModelQuery<'_>,
) -> Result<ModelAnswer, PredictError> {
    let mut all = ModelAnswer {
        race: Race::Free,
        holds: None,
        cut_off_runs: 0,
        runs: 0,
        candidate_executions: 0,
        consistent_executions: 0,
        is_out_of_time: false,
        race_spot: None,
        findings: Vec::new(),
    };
    // `found`: some case shows the outcome. `excluded`: no case can show it.
    let (mut found, mut excluded) = (false, true);
    for case in &lifted.cases {
        let (race, prediction) = predict_case(case, model, query)?;
        all.race = match (all.race, race) {
            (Race::Racy, _) | (_, Race::Racy) => Race::Racy,
            (Race::Unknown, _) | (_, Race::Unknown) => Race::Unknown,
            (Race::Free, Race::Free) => Race::Free,
        };
        // Counts at which the engine gave up are saturated.
        all.cut_off_runs = all.cut_off_runs.saturating_add(prediction.truncated_runs);
        all.runs = all.runs.saturating_add(prediction.runs);
        all.candidate_executions = all.candidate_executions.saturating_add(prediction.candidate_executions);
        all.consistent_executions =
            all.consistent_executions.saturating_add(prediction.consistent_executions);
        let sought = find_queried_outcome(&case.test, &prediction);
        found |= sought == Some(true);
        excluded &= sought == Some(false);
        let open = query.decide_question && case.test.question.is_some() && sought.is_none();
        all.is_out_of_time |=
            (open || query.decide_race && race == Race::Unknown) && prediction.truncated_runs == 0;
    }
    let kind =
        lifted.cases.first().and_then(|case| case.test.question.as_ref()).map(|question| question.kind);
    all.holds = match kind.filter(|_| query.decide_question) {
        None => None,
        Some(QuestionKind::Exists | QuestionKind::Final) => (found || excluded).then_some(found),
        Some(QuestionKind::Forall | QuestionKind::NotExists) => (found || excluded).then_some(!found),
    };
    if !query.decide_race {
        all.race = Race::Unknown;
    }
    Ok(all)
}

/// Returns whether the queried outcome was found: a witness, or a counterexample of a claim.
fn find_queried_outcome(test: &Test, prediction: &Prediction) -> Option<bool> {
    match test.question.as_ref()?.kind {
        QuestionKind::Forall => prediction.can_miss_condition,
        QuestionKind::Exists | QuestionKind::Final | QuestionKind::NotExists => prediction.can_meet_condition,
    }
}

fn predict_case(
    case: &LiftedCase,
    model: &Model,
    query: &ModelQuery<'_>,
) -> Result<(Race, Prediction), PredictError> {
    let mut test = case.test.clone();
    if !query.decide_question {
        test.question = None;
    }
    let options = |budget| PredictOptions { budget, unroll: 1 };
    let first = predict(&test, model, &options(query.budget.with_step_limit(FIRST_CHECK_STEPS)))?;
    let race_open = |prediction: &Prediction| {
        query.decide_race && prediction.race == Race::Unknown && prediction.truncated_runs == 0
    };
    let question_open = |prediction: &Prediction| {
        test.question.is_some()
            && find_queried_outcome(&test, prediction).is_none()
            && prediction.truncated_runs == 0
    };
    if !race_open(&first) && !question_open(&first) {
        return Ok((first.race, first));
    }
    // A race of a few threads is one of the test: the other threads need not have started.
    let racy = first.race == Race::Racy
        || query.decide_race && find_racing_subset(case, model, query.budget)?.is_some();
    if racy && !question_open(&first) {
        return Ok((Race::Racy, first));
    }
    let prediction = predict_without_outcomes(&test, model, &options(query.budget))?;
    Ok((if racy { Race::Racy } else { prediction.race }, prediction))
}

/// Returns the test with only the given threads started.
fn restrict_to_threads(case: &LiftedCase, threads: &[usize]) -> Test {
    let mut test = case.test.clone();
    (test.question, test.filter) = (None, None);
    for (index, thread) in test.threads.iter_mut().enumerate() {
        if threads.contains(&index) {
            continue;
        }
        let code: Vec<_> = thread.instructions.iter().map(|instruction| instruction.kind.clone()).collect();
        let (idle, labels) = emit::never_started_code(&code);
        thread.instructions =
            idle.into_iter().map(|kind| Instruction { kind, span: litmus::Span::default() }).collect();
        thread.labels = (0..labels).map(|label| Label { name: format!("LC{label:02}") }).collect();
        thread.registers.clear();
    }
    test
}

/// Returns a test with few invocations that race: two, or a workgroup or two that may wait for each other.
fn find_racing_subset(
    case: &LiftedCase,
    model: &Model,
    budget: Budget<'_>,
) -> Result<Option<Test>, PredictError> {
    let count = case.test.threads.len();
    // A filter is about final states, which a prefix does not reach.
    if count <= 2 || case.test.filter.is_some() {
        return Ok(None);
    }
    let mut subsets: Vec<Vec<usize>> = Vec::new();
    for first in 0..count {
        subsets.extend((first + 1..count).map(|second| vec![first, second]));
    }
    let workgroup = |thread: &usize| match case.test.threads[*thread].place {
        ThreadPlace::Device(placement) => Some(placement.workgroup),
        ThreadPlace::Host => None,
    };
    let all: BTreeSet<Option<u32>> = (0..count).map(|thread| workgroup(&thread)).collect();
    let members_of = |groups: &[Option<u32>]| -> Vec<usize> {
        (0..count).filter(|thread| groups.contains(&workgroup(thread))).collect()
    };
    subsets.extend(all.iter().map(|group| members_of(&[*group])));
    for first in &all {
        subsets.extend(all.range(first..).skip(1).map(|second| members_of(&[*first, *second])));
    }
    subsets.retain(|threads| threads.len() > 1 && threads.len() < count);
    for threads in subsets {
        let test = restrict_to_threads(case, &threads);
        let options = PredictOptions { budget: budget.with_step_limit(PAIR_STEPS), unroll: 1 };
        if predict(&test, model, &options)?.race == Race::Racy {
            return Ok(Some(test));
        }
    }
    Ok(None)
}

pub fn locate_race(
    case: &LiftedCase,
    model: &Model,
    budget: Budget<'_>,
) -> Result<Option<RaceSpot>, PredictError> {
    let test = match find_racing_subset(case, model, budget)? {
        Some(few) => few,
        None => Test { question: None, ..case.test.clone() },
    };
    let options = ExplainOptions {
        unroll: Some(1),
        verdict_budget: budget.with_step_limit(EXPLAIN_STEPS),
        search_budget: budget.with_step_limit(EXPLAIN_STEPS),
        max_fix_steps: 0,
        max_fix_programs: 0,
        ..ExplainOptions::default()
    };
    Ok(explain_outcome(&test, model, &options)?.found_race.and_then(|found| race_spot(case, &found)))
}

fn race_spot(case: &LiftedCase, found: &FoundRace) -> Option<RaceSpot> {
    let (first, second) = found.pair?;
    let mut element = String::new();
    let mut at = Vec::new();
    for id in [first, second] {
        let event = found.execution.events.get(usize::from(id.0))?;
        let EventOwner::Thread(thread, index) = event.owner else { return None };
        at.push(*case.origins.get(thread)?.get(index)?);
        let instruction = case.test.threads.get(thread)?.instructions.get(index)?;
        if let Some(location) = emit::location_of(&instruction.kind) {
            element.clone_from(case.names.get(usize::from(location.0))?);
        }
    }
    let at = <[Spot; 2]>::try_from(at).ok()?;
    Some(RaceSpot { element, at, missing: found.missing_relations.clone() })
}
