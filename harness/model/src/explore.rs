//! Strategy selection for one event structure: exhaustive search while it is small, else one query per
//! question.
//!
//! All strategies give the same answers. A query that exceeds its budget stays undecided.

use litmus::Outcome;

use crate::PredictError;
use crate::brute_force::BruteForce;
use crate::flags::Flags;
use crate::guarded::{GoalEvidence, SkeletonEncoding, grounded_flags};
use crate::matrix::Matrix;
use crate::outcome_collector::{ExecutionGoal, Findings, OutcomeCollector, OutcomeStatus};
use crate::prepared::PreparedPlan;
use crate::search::{LeafVisitor, SearchLeaf, SkeletonSearch, StaticBounds, step_weight};
use crate::skeleton::Skeleton;

/// The enabled strategies and their step limits.
#[derive(Clone, Copy, Debug)]
pub struct ExplorationStrategy {
    /// If set, evaluates few executions one by one.
    pub brute_force: bool,
    /// Step limit of the search for all executions, before it falls back to single queries.
    pub search_steps: u64,
    /// Step limit of the search for one answer, before it falls back to the SAT solver.
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
    /// If set, uses thread symmetry.
    pub symmetry: bool,
    /// If set, uses RMW chains of counters.
    pub rmw_chains: bool,
    /// If set, decides by one encoding of all paths what the search by paths does not decide soon.
    pub whole_program: bool,
}

impl ExplorationStrategy {
    /// Every strategy, each with the limit at which it is fastest.
    pub const FULL: ExplorationStrategy = ExplorationStrategy {
        brute_force: true,
        search_steps: 20_000,
        decide_steps: 2_000,
        lists_outcomes: true,
        decides_first: true,
        first_listing_steps: 20_000,
        prefers_decision: false,
        listing_steps: u64::MAX,
        symmetry: true,
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

/// Limit of outcomes that are queried one by one.
const MAX_OUTCOME_QUERIES: usize = 1 << 13;

/// The result of exploring an event structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExplorationResult {
    /// True if it is known to have a consistent execution.
    pub(crate) has_execution: bool,
    /// True if the findings hold for every event structure of its orbit.
    pub(crate) covers_orbit: bool,
}

/// Adds the findings of all executions of an event structure.
pub(crate) fn explore_skeleton<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    collector: &OutcomeCollector<'_>,
    strategy: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<ExplorationResult, PredictError> {
    // Counted from zero: a sum that has saturated would hide further executions.
    let before = std::mem::take(&mut findings.consistent_executions);
    let result = explore_uncounted::<M>(skeleton, prepared, collector, strategy, findings);
    let has_some = findings.consistent_executions > 0;
    findings.consistent_executions = findings.consistent_executions.saturating_add(before);
    let result = result?;
    Ok(ExplorationResult { has_execution: result.has_execution || has_some, ..result })
}

/// As [`explore_skeleton`], without a separate count of the consistent executions.
fn explore_uncounted<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    collector: &OutcomeCollector<'_>,
    strategy: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<ExplorationResult, PredictError> {
    let result_with = |has_some| ExplorationResult {
        has_execution: has_some,
        covers_orbit: collector.symmetry_breaking.preserves_condition,
    };
    // `None` if the structure is not small enough for the exact enumeration.
    if strategy.brute_force
        && let Some(brute_force) = BruteForce::<M>::new(skeleton, prepared, collector)?
    {
        brute_force.add_findings(skeleton, prepared, collector, findings);
        return Ok(result_with(false));
    }
    collector.add_candidates(findings);
    if findings.timed_out {
        return Ok(result_with(true));
    }
    let static_bounds = StaticBounds::<M>::new(skeleton, prepared)?;
    let mut queries =
        ExecutionQueries::new(skeleton, prepared, &static_bounds, collector, strategy.decide_steps);
    // Without a list of outcomes, the exhaustive search is too expensive from the start.
    let one_by_one = collector.has_independent_values || queries.is_encodable;
    if !findings.unlisted || !one_by_one {
        let mut search = SkeletonSearch::new(
            skeleton,
            prepared,
            &static_bounds,
            skeleton.observed_storages(),
            collector.tracker,
        );
        if one_by_one {
            search.set_step_limit(strategy.search_steps);
        }
        let complete = search.run(&mut collector.findings_visitor(findings));
        // If the search ended at the purse and not at its step limit, no other strategy has budget
        // left either.
        if complete || !search.reached_step_limit() {
            findings.timed_out |= !complete;
            return Ok(result_with(findings.unlisted));
        }
    }
    // From here on executions are not counted.
    let conflicts = queries.is_encodable;
    let mut raised = vec![(findings.grounded, GoalEvidence::Grounded)];
    let any = queries.find_match(ExecutionGoal::Any, None);
    if any == Some(GoalEvidence::NoExecution) {
        return Ok(result_with(false));
    }
    let mut timed_out = any.is_none();
    let mut query = |goal: ExecutionGoal<'_>, raised: Option<&mut Vec<(Flags, GoalEvidence)>>| {
        let evidence = queries.find_match(goal, raised);
        timed_out |= evidence.is_none();
        evidence.unwrap_or(GoalEvidence::NoExecution)
    };
    query(ExecutionGoal::InFilter, Some(&mut raised));
    for (flags, evidence) in raised {
        findings.raise_flags(flags, evidence == GoalEvidence::OutOfThinAir);
    }
    if skeleton.terminated {
        findings.has_match =
            findings.has_match || query(ExecutionGoal::ConditionIs(true), None) != GoalEvidence::NoExecution;
        // A conjunction is violated if one of its conjuncts is. Under thread symmetry the whole condition is
        // invariant, but a single conjunct may not be.
        let parts = collector
            .conjunct_count()
            .filter(|_| !(conflicts && collector.symmetry_breaking.can_break_symmetry()));
        findings.has_mismatch = findings.has_mismatch
            || match parts {
                Some(parts) => (0..parts)
                    .any(|part| query(ExecutionGoal::Violates(part), None) != GoalEvidence::NoExecution),
                None => query(ExecutionGoal::ConditionIs(false), None) != GoalEvidence::NoExecution,
            };
        if !findings.unlisted {
            let open = findings.outcomes.iter().filter(|(_, status)| *status != OutcomeStatus::Allowed);
            let mut open: Vec<Outcome> = open.map(|(outcome, _)| outcome.clone()).collect();
            if open.len() > MAX_OUTCOME_QUERIES {
                findings.unlisted = true;
                open.clear();
            }
            for outcome in open {
                match queries.find_match(ExecutionGoal::Outcome(&outcome), None) {
                    Some(GoalEvidence::NoExecution) => {}
                    Some(evidence) => {
                        findings.outcomes.record_allowed(outcome, evidence == GoalEvidence::OutOfThinAir)
                    }
                    // Earlier answers stay valid.
                    None => {
                        findings.unlisted = true;
                        break;
                    }
                }
            }
        }
    }
    findings.timed_out |= timed_out;
    Ok(result_with(true))
}

/// Answers queries about one event structure, by search first and then by the SAT solver.
pub(crate) struct ExecutionQueries<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    prepared: &'a PreparedPlan,
    static_bounds: &'a StaticBounds<M>,
    collector: &'a OutcomeCollector<'a>,
    /// Step limit of the search, before it falls back to the SAT solver.
    search_steps: u64,
    /// True if the SAT solver can answer.
    is_encodable: bool,
    /// The encoding, built for the first query that needs it.
    encoding: Option<SkeletonEncoding<'a, M>>,
}

impl<'a, M: Matrix> ExecutionQueries<'a, M> {
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        prepared: &'a PreparedPlan,
        static_bounds: &'a StaticBounds<M>,
        collector: &'a OutcomeCollector<'a>,
        search_steps: u64,
    ) -> ExecutionQueries<'a, M> {
        ExecutionQueries {
            skeleton,
            prepared,
            static_bounds,
            collector,
            search_steps,
            is_encodable: SkeletonEncoding::supports(prepared, static_bounds),
            encoding: None,
        }
    }

    /// Finds the strongest evidence for an execution that meets the goal; `None` if the budget ran out first.
    ///
    /// With `raised`, it looks only for executions that raise further flags, and adds these flags with their
    /// evidence.
    pub(crate) fn find_match(
        &mut self,
        goal: ExecutionGoal<'_>,
        mut raised: Option<&mut Vec<(Flags, GoalEvidence)>>,
    ) -> Option<GoalEvidence> {
        let ExecutionQueries { skeleton, prepared, static_bounds, collector, .. } = *self;
        let mut found = false;
        // If values depend on each other, the search enumerates too many of them.
        if collector.has_independent_values || !self.is_encodable {
            let observed = skeleton.observed_storages();
            let mut search =
                SkeletonSearch::new(skeleton, prepared, static_bounds, observed, collector.tracker);
            if collector.has_independent_values {
                let Some((reads, alike)) = collector.restrict_sources(&static_bounds.reads, goal) else {
                    return Some(GoalEvidence::NoExecution);
                };
                search.restrict_reads(reads, alike);
                if self.is_encodable {
                    // A long search is not worth its steps if the matrices are wide.
                    let events = skeleton.len();
                    search.set_step_limit((self.search_steps / step_weight(events)).max(2 * events as u64));
                }
            }
            let mut flags = raised.as_deref().map(|raised| grounded_flags(raised));
            let mut visitor =
                FirstMatch { collector, goal, flags: flags.as_mut(), found: false, timed_out: false };
            let complete = search.run(&mut visitor);
            let timed_out = visitor.timed_out;
            found = visitor.found;
            // Flags found before the limit stay valid, so the SAT solver need not look for them
            // again.
            if let (Some(raised), Some(flags), true) = (raised.as_deref_mut(), flags, found) {
                raised.push((flags, GoalEvidence::Grounded));
            }
            let evidence = if found { GoalEvidence::Grounded } else { GoalEvidence::NoExecution };
            if complete && !timed_out || found && raised.is_none() {
                return Some(evidence);
            }
            // The purse is exhausted; the SAT solver would have no budget either.
            if !search.reached_step_limit() {
                return found.then_some(evidence);
            }
        }
        if self.encoding.is_none() && self.is_encodable {
            self.encoding = SkeletonEncoding::new(collector, prepared, static_bounds);
            self.is_encodable = self.encoding.is_some();
        }
        let encoding = self.encoding.as_mut()?;
        let evidence = encoding.find_evidence(collector, goal, raised)?;
        Some(if found { GoalEvidence::Grounded } else { evidence })
    }
}

struct FirstMatch<'c, 'a, 'f> {
    collector: &'c OutcomeCollector<'a>,
    goal: ExecutionGoal<'c>,
    flags: Option<&'f mut Flags>,
    found: bool,
    timed_out: bool,
}

impl LeafVisitor for FirstMatch<'_, '_, '_> {
    fn needs_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let open = match &self.flags {
            Some(raised) => raised.lacks_any_of(flags),
            None => !self.found,
        };
        open && self.collector.evaluate_goal(self.goal, reads_from, &[]) != Some(false)
    }

    fn visit_executions(&mut self, leaf: SearchLeaf, max_executions: u64) -> u64 {
        let mut tries = 0;
        match self.collector.leaf_meets_goal(&leaf, self.goal, max_executions, &mut tries) {
            Some(true) => {
                self.found = true;
                if let Some(raised) = &mut self.flags {
                    raised.add(leaf.flags);
                }
            }
            Some(false) => {}
            // The search ends at its step limit, and the SAT solver may answer.
            None if tries > max_executions => {}
            None => self.timed_out = true,
        }
        tries.max(1)
    }
}
