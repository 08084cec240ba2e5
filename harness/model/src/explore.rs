//! Strategy selection for one event structure: exhaustive search while it is small, else one query of the SAT solver per
//! question.
//!
//! All strategies give the same answers. A query that exceeds its budget stays undecided.

use litmus::Outcome;

use crate::PredictError;
use crate::guarded::{GoalEvidence, SkeletonEncoding};
use crate::matrix::Matrix;
use crate::outcome_collector::{ExecutionGoal, Findings, OutcomeCollector, OutcomeStatus};
use crate::prepared::PreparedPlan;
use crate::search::{SkeletonSearch, StaticBounds, step_weight};
use crate::skeleton::Skeleton;
use crate::valuation::has_independent_values;
use solver::BudgetTracker;

/// The enabled strategies and their step limits.
#[derive(Clone, Copy, Debug)]
pub struct ExplorationStrategy {
    /// Step limit of the search for all executions, before it falls back to the SAT solver.
    pub search_steps: u64,
    /// The same limit if outcomes are not listed.
    pub decide_steps: u64,
    /// If set, lists outcomes.
    pub lists_outcomes: bool,
    /// If set, decides races and question before it lists many outcomes.
    pub decides_first: bool,
    /// Step limit of the first attempt to list outcomes, before races and question are decided without a list.
    pub first_listing_steps: u64,
    /// If set, a decision that holds beyond the loop bound has precedence over a list of outcomes that does
    /// not.
    pub prefers_decision: bool,
    /// Step limit of the list of outcomes, once races and question are decided.
    pub listing_steps: u64,
    /// If set, uses RMW chains of counters.
    pub rmw_chains: bool,
    /// If set, decides by one encoding of all paths what the search by paths does not decide soon.
    pub whole_program: bool,
}

impl ExplorationStrategy {
    /// Every strategy, each with the limit at which it is fastest.
    pub const FULL: ExplorationStrategy = ExplorationStrategy {
        search_steps: 500,
        decide_steps: 200,
        lists_outcomes: true,
        decides_first: true,
        first_listing_steps: 20_000,
        prefers_decision: false,
        listing_steps: u64::MAX,
        rmw_chains: true,
        whole_program: true,
    };

    /// As [`FULL`](Self::FULL), for callers that need races and the condition first: a list of outcomes may
    /// cost about as much as the decision.
    pub const DECIDE_THEN_LIST: ExplorationStrategy = ExplorationStrategy {
        first_listing_steps: 5_000,
        prefers_decision: true,
        listing_steps: 10_000,
        ..ExplorationStrategy::FULL
    };

    /// As [`FULL`](Self::FULL), without a list of outcomes.
    pub const DECIDE_ONLY: ExplorationStrategy = ExplorationStrategy::FULL.without_list();

    /// Returns this strategy without a list of outcomes.
    pub(crate) const fn without_list(self) -> ExplorationStrategy {
        ExplorationStrategy { lists_outcomes: false, ..self }
    }
}

/// Steps of the solver that take about as long as one step of a list of outcomes.
const SOLVER_STEPS_PER_LISTING_STEP: u64 = 8;

/// Adds the findings of all executions of an event structure; returns true if one is known to be consistent.
pub(crate) fn explore_skeleton<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    collector: &OutcomeCollector<'_>,
    strategy: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<bool, PredictError> {
    collector.add_candidates(findings);
    if findings.timed_out {
        return Ok(true);
    }
    let static_bounds = StaticBounds::<M>::new(skeleton, prepared, None)?;
    let is_encodable = SkeletonEncoding::supports(prepared, &static_bounds);
    // Each given outcome is a separate question. If values depend on each other, the search enumerates too many of them.
    let asks_only = findings.outcomes.is_fixed || findings.unlisted && !has_independent_values(skeleton);
    if !(asks_only && is_encodable) {
        let mut search = SkeletonSearch::new(skeleton, prepared, &static_bounds, collector.tracker);
        if is_encodable {
            let steps = if findings.unlisted { strategy.decide_steps } else { strategy.search_steps };
            // A long search is not worth its steps if the matrices are wide.
            search.set_step_limit(steps / step_weight(skeleton.len()));
        }
        let mut visitor = collector.findings_visitor(findings);
        let complete = search.run(&mut visitor);
        let found = visitor.found;
        // If the search ended at the budget and not at its step limit, the solver has no budget left either.
        if complete || !search.reached_step_limit() {
            findings.timed_out |= !complete;
            return Ok(found);
        }
    }
    // A list needs many calls of the solver, whose steps are short.
    let parts = if findings.unlisted { 1 } else { SOLVER_STEPS_PER_LISTING_STEP };
    let tracker = BudgetTracker::new(collector.tracker.remaining().divided(parts));
    let has_execution = ask_solver(skeleton, prepared, collector, &static_bounds, findings, &tracker);
    findings.timed_out |= collector.tracker.spend(tracker.spent_steps() / parts);
    Ok(has_execution)
}

/// Adds the findings that the SAT solver decides, which does not count executions; returns true if some may exist.
fn ask_solver<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    collector: &OutcomeCollector<'_>,
    static_bounds: &StaticBounds<M>,
    findings: &mut Findings,
    tracker: &BudgetTracker<'_>,
) -> bool {
    let Some(mut encoding) = SkeletonEncoding::new(collector, prepared, static_bounds, tracker) else {
        findings.timed_out = true;
        return true;
    };
    let any = encoding.find_evidence(collector, ExecutionGoal::Any);
    if any == Some(GoalEvidence::NoExecution) {
        return false;
    }
    if !findings.outcomes.is_fixed {
        findings.timed_out |= any.is_none() || !encoding.raise_flags(collector, findings);
    }
    if !skeleton.terminated {
        return true;
    }
    if !findings.outcomes.is_fixed {
        let mut timed_out = false;
        let mut is_possible = |wanted| {
            let evidence = encoding.find_evidence(collector, ExecutionGoal::ConditionIs(wanted));
            timed_out |= evidence.is_none();
            evidence.is_some_and(|evidence| evidence != GoalEvidence::NoExecution)
        };
        findings.has_match = findings.has_match || is_possible(true);
        findings.has_mismatch = findings.has_mismatch || is_possible(false);
        findings.timed_out |= timed_out;
    }
    if !findings.unlisted {
        findings.unlisted = !match findings.outcomes.is_fixed {
            true => check_outcomes(collector, &mut encoding, findings),
            false => encoding.list_outcomes(collector, findings),
        };
    }
    true
}

/// Finds the allowed ones of the given outcomes; returns false if the budget ran out.
fn check_outcomes<M: Matrix>(
    collector: &OutcomeCollector<'_>,
    encoding: &mut SkeletonEncoding<'_, M>,
    findings: &mut Findings,
) -> bool {
    let open = findings.outcomes.iter().filter(|(_, status)| *status != OutcomeStatus::Allowed);
    let open: Vec<Outcome> = open.map(|(outcome, _)| outcome.clone()).collect();
    for outcome in open {
        match encoding.find_evidence(collector, ExecutionGoal::Outcome(&outcome)) {
            Some(GoalEvidence::NoExecution) => {}
            Some(evidence) => {
                findings.outcomes.record_allowed(outcome, evidence == GoalEvidence::OutOfThinAir)
            }
            None => return false,
        }
    }
    true
}
