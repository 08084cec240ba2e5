//! Strategies of a prediction, and the search of one event structure.
//!
//! All strategies give the same answers.

use crate::PredictError;
use crate::matrix::Matrix;
use crate::outcome_collector::{Findings, OutcomeCollector};
use crate::prepared::PreparedPlan;
use crate::search::{SkeletonSearch, StaticBounds, step_weight};
use crate::skeleton::Skeleton;

/// The enabled strategies and their step limits.
#[derive(Clone, Copy, Debug)]
pub struct ExplorationStrategy {
    /// Step limit of the search for all executions of an event structure, before outcomes are listed by the encoding of
    /// all paths.
    pub search_steps: u64,
    /// If set, lists outcomes.
    pub lists_outcomes: bool,
    /// Step limit of the first attempt to list outcomes, before races and question are decided without a list.
    pub first_listing_steps: u64,
    /// If set, a decision that holds beyond the loop bound has precedence over a list of outcomes that does
    /// not.
    pub prefers_decision: bool,
    /// Step limit of the list of outcomes, once races and question are decided.
    pub listing_steps: u64,
    /// If set, decides and lists by one encoding of all paths what the search by paths does not find soon.
    pub whole_program: bool,
}

impl ExplorationStrategy {
    /// Every strategy, each with the limit at which it is fastest.
    pub const FULL: ExplorationStrategy = ExplorationStrategy {
        search_steps: 500,
        lists_outcomes: true,
        first_listing_steps: 20_000,
        prefers_decision: false,
        listing_steps: u64::MAX,
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

/// Adds the findings of all executions of an event structure; returns true if one is known to be consistent.
///
/// A search that exceeds its limit of steps adds what it has found.
pub(crate) fn explore_skeleton<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    collector: &OutcomeCollector<'_>,
    step_limit: u64,
    findings: &mut Findings,
) -> Result<bool, PredictError> {
    collector.add_candidates(findings);
    if findings.timed_out || findings.reached_step_limit {
        return Ok(true);
    }
    let static_bounds = StaticBounds::<M>::new(skeleton, prepared, None)?;
    let mut search = SkeletonSearch::new(skeleton, prepared, &static_bounds, collector.tracker);
    // A long search is not worth its steps if the matrices are wide.
    search.set_step_limit(step_limit / step_weight(skeleton.len()));
    let mut visitor = collector.findings_visitor(findings);
    let complete = search.run(&mut visitor);
    let found = visitor.found;
    findings.reached_step_limit = search.reached_step_limit();
    findings.timed_out |= !complete && !findings.reached_step_limit;
    Ok(found)
}
