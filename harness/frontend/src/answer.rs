//! What a model says of a lifted kernel.
//!
//! Races are looked for among few invocations first, with the others not yet started: what such a beginning of a run shows
//! some run shows. Only where none are found, and for questions about final states, all of them are looked at together.

use std::collections::BTreeSet;

use litmus::{Instruction, Label, Place, Prediction, QuestionKind, Race, Test};
use model::{
    Budget, EventOwner, ExplainOptions, Model, Options, PredictError, RaceFound, decide, explain, predict,
};

use crate::emit;
use crate::lift::{Case, Finding, FindingKind, Identity, Lifted, Spot};
use crate::stage::Stage;
use crate::suspicion::confirmed;

/// Steps of the first look at everything together.
const FIRST_LOOK: u64 = 20_000;
/// Steps for a few invocations.
const PAIR_STEPS: u64 = 20_000;
/// Steps to say where a race is.
const EXPLAIN_STEPS: u64 = 30_000;

/// What is asked, and at what cost.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'b> {
    /// What the answer may cost.
    pub budget: Budget<'b>,
    /// Whether races are asked about.
    pub race: bool,
    /// Whether the question about final states is.
    pub question: bool,
    /// Whether a race is to be shown on the lines of the source.
    pub places: bool,
}

/// What a model says.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Whether the kernel races. `Unknown` where it was not asked, time ran out or loops were cut off, and where nothing races before a
    /// divergent barrier, or it is not known whether some execution does something undefined.
    pub race: Race,
    /// Whether what is asked of final states holds.
    pub holds: Option<bool>,
    /// Runs that were cut off at the bound of loops.
    pub cut: u64,
    /// Runs that were looked at.
    pub runs: u64,
    /// Candidate executions.
    pub candidate_executions: u64,
    /// Those of them that are consistent.
    pub consistent_executions: u64,
    /// Whether the time was up.
    pub out_of_time: bool,
    /// Where it races.
    pub race_found: Option<RaceSpot>,
    /// What else is wrong with it: what the walk found, but for what no execution comes to.
    pub findings: Vec<Finding>,
}

/// Two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceSpot {
    /// What is accessed, in the words of the source.
    pub element: String,
    /// The two accesses.
    pub at: [Spot; 2],
    /// The relations of the model any of which would have to join them.
    pub missing: Vec<String>,
}

impl RaceSpot {
    /// The race in words.
    pub fn message(&self, invocations: &[Identity]) -> String {
        let who = |spot: &Spot| {
            let identity = invocations.get(usize::from(spot.thread)).copied().unwrap_or_default();
            let does = if spot.access == Some(true) { "writes" } else { "reads" };
            format!("invocation {identity} {does} it")
        };
        let missing = if self.missing.is_empty() {
            String::new()
        } else {
            format!(" (none of {})", self.missing.join(", "))
        };
        format!(
            "data race on `{}`: {}, {}, and nothing orders the two{missing}",
            self.element,
            who(&self.at[0]),
            who(&self.at[1])
        )
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([a, b, c], [x, y, z]) = (self.workgroup, self.local);
        match self.stage {
            Stage::Compute | Stage::Task | Stage::Mesh => {
                write!(f, "({x},{y},{z}) of workgroup ({a},{b},{c})")
            }
            Stage::Vertex => write!(f, "vertex {a} of instance {b}"),
            Stage::Fragment => write!(f, "fragment {c} of pixel ({a},{b})"),
        }
    }
}

/// Answers for a kernel.
///
/// # Errors
/// Where it is beyond the bounds of the engine.
pub fn answer(lifted: &Lifted, model: &Model, asking: &Asking<'_>) -> Result<Answer, PredictError> {
    let mut all = verdict(lifted, model, asking)?;
    let (findings, open) = confirmed(lifted, model, asking.budget);
    // What comes after a barrier that not everybody comes to is not defined, and no run that was looked at has it.
    let divergent = lifted.findings.iter().any(|found| found.kind == FindingKind::DivergentBarrier);
    if all.race == Race::Free && (open || divergent) {
        all.race = Race::Unknown;
        all.out_of_time |= open;
    }
    all.findings = findings;
    if asking.places && all.race == Race::Racy {
        for case in &lifted.cases {
            all.race_found = locate(case, model, asking.budget)?;
            if all.race_found.is_some() {
                break;
            }
        }
    }
    Ok(all)
}

/// [`answer`] without the place of a race.
pub(crate) fn verdict(lifted: &Lifted, model: &Model, asking: &Asking<'_>) -> Result<Answer, PredictError> {
    let mut all = Answer {
        race: Race::Free,
        holds: None,
        cut: 0,
        runs: 0,
        candidate_executions: 0,
        consistent_executions: 0,
        out_of_time: false,
        race_found: None,
        findings: Vec::new(),
    };
    let (mut found, mut excluded) = (false, true);
    for case in &lifted.cases {
        let (race, prediction) = of_case(case, model, asking)?;
        all.race = match (all.race, race) {
            (Race::Racy, _) | (_, Race::Racy) => Race::Racy,
            (Race::Unknown, _) | (_, Race::Unknown) => Race::Unknown,
            (Race::Free, Race::Free) => Race::Free,
        };
        // Counts that the engine gave up at are at their largest.
        all.cut = all.cut.saturating_add(prediction.cut);
        all.runs = all.runs.saturating_add(prediction.runs);
        all.candidate_executions = all.candidate_executions.saturating_add(prediction.candidate_executions);
        all.consistent_executions =
            all.consistent_executions.saturating_add(prediction.consistent_executions);
        let sought = sought(&case.test, &prediction);
        found |= sought == Some(true);
        excluded &= sought == Some(false);
        let open = asking.question && case.test.question.is_some() && sought.is_none();
        all.out_of_time |= (open || asking.race && race == Race::Unknown) && prediction.cut == 0;
    }
    let kind =
        lifted.cases.first().and_then(|case| case.test.question.as_ref()).map(|question| question.kind);
    all.holds = match kind.filter(|_| asking.question) {
        None => None,
        Some(QuestionKind::Exists | QuestionKind::Final) => (found || excluded).then_some(found),
        Some(QuestionKind::Forall | QuestionKind::NotExists) => (found || excluded).then_some(!found),
    };
    if !asking.race {
        all.race = Race::Unknown;
    }
    Ok(all)
}

/// Whether the outcome that a question is about was found: the one asked for, or one that breaks a claim.
fn sought(test: &Test, prediction: &Prediction) -> Option<bool> {
    match test.question.as_ref()?.kind {
        QuestionKind::Forall => prediction.misses,
        QuestionKind::Exists | QuestionKind::Final | QuestionKind::NotExists => prediction.meets,
    }
}

fn of_case(case: &Case, model: &Model, asking: &Asking<'_>) -> Result<(Race, Prediction), PredictError> {
    let mut test = case.test.clone();
    if !asking.question {
        test.question = None;
    }
    let options = |budget| Options { budget, unroll: 1 };
    let first = predict(&test, model, &options(asking.budget.at_most(FIRST_LOOK)))?;
    let race_open =
        |prediction: &Prediction| asking.race && prediction.race == Race::Unknown && prediction.cut == 0;
    let question_open = |prediction: &Prediction| {
        test.question.is_some() && sought(&test, prediction).is_none() && prediction.cut == 0
    };
    if !race_open(&first) && !question_open(&first) {
        return Ok((first.race, first));
    }
    let racy = first.race == Race::Racy || asking.race && racing_few(case, model, asking.budget)?.is_some();
    if racy && !question_open(&first) {
        return Ok((Race::Racy, first));
    }
    let prediction = decide(&test, model, &options(asking.budget))?;
    Ok((if racy { Race::Racy } else { prediction.race }, prediction))
}

/// The test with only these invocations started.
fn only(case: &Case, threads: &[usize]) -> Test {
    let mut test = case.test.clone();
    (test.question, test.filter) = (None, None);
    for (index, thread) in test.threads.iter_mut().enumerate() {
        if threads.contains(&index) {
            continue;
        }
        let code: Vec<_> = thread.instructions.iter().map(|instruction| instruction.kind.clone()).collect();
        let (idle, labels) = emit::idle(&code);
        thread.instructions =
            idle.into_iter().map(|kind| Instruction { kind, span: litmus::Span::default() }).collect();
        thread.labels = (0..labels).map(|label| Label { name: format!("LC{label:02}") }).collect();
        thread.registers.clear();
    }
    test
}

/// Invocations that race before any other starts: two, or else those of a workgroup or two, which may wait for each other.
fn racing_few(case: &Case, model: &Model, budget: Budget<'_>) -> Result<Option<Test>, PredictError> {
    let count = case.test.threads.len();
    // A filter speaks of final states, which such a beginning has not.
    if count <= 2 || case.test.filter.is_some() {
        return Ok(None);
    }
    let mut few: Vec<Vec<usize>> = Vec::new();
    for first in 0..count {
        few.extend((first + 1..count).map(|second| vec![first, second]));
    }
    let workgroup = |thread: &usize| match case.test.threads[*thread].place {
        Place::Device(placement) => Some(placement.workgroup),
        Place::Host => None,
    };
    let all: BTreeSet<Option<u32>> = (0..count).map(|thread| workgroup(&thread)).collect();
    let of = |groups: &[Option<u32>]| -> Vec<usize> {
        (0..count).filter(|thread| groups.contains(&workgroup(thread))).collect()
    };
    few.extend(all.iter().map(|group| of(&[*group])));
    for first in &all {
        few.extend(all.range(first..).skip(1).map(|second| of(&[*first, *second])));
    }
    few.retain(|threads| threads.len() > 1 && threads.len() < count);
    for threads in few {
        let test = only(case, &threads);
        let options = Options { budget: budget.at_most(PAIR_STEPS), unroll: 1 };
        if predict(&test, model, &options)?.race == Race::Racy {
            return Ok(Some(test));
        }
    }
    Ok(None)
}

/// Where a case races.
fn locate(case: &Case, model: &Model, budget: Budget<'_>) -> Result<Option<RaceSpot>, PredictError> {
    let test = match racing_few(case, model, budget)? {
        Some(few) => few,
        None => Test { question: None, ..case.test.clone() },
    };
    let options = ExplainOptions {
        unroll: Some(1),
        verdict: budget.at_most(EXPLAIN_STEPS),
        budget: budget.at_most(EXPLAIN_STEPS),
        mend_steps: 0,
        mend_programs: 0,
        ..ExplainOptions::default()
    };
    Ok(explain(&test, model, &options)?.race_found.and_then(|found| spot(case, &found)))
}

fn spot(case: &Case, found: &RaceFound) -> Option<RaceSpot> {
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
    Some(RaceSpot { element, at, missing: found.missing.clone() })
}
