//! Strategy selection for one event structure: exhaustive search while it is small, else one query per
//! question.
//!
//! All strategies give the same answers. A query that exceeds its budget stays undecided.

use std::rc::Rc;

use litmus::Outcome;

use crate::PredictError;
use crate::combine::{ExecutionGoal, Findings, OutcomeCollector, OutcomeStatus};
use crate::few::BruteForce;
use crate::flags::Flags;
use crate::matrix::Matrix;
use crate::prepared::PreparedPlan;
use crate::refute::{Domains, GoalEvidence, Refuter, is_refutable, known};
use crate::sat::Batsat;
use crate::search::{LeafVisitor, Search, SearchLeaf, StaticBounds, step_weight};
use crate::skeleton::Skeleton;
use crate::symmetry::ConditionOrbit;

/// The enabled strategies and their step limits.
#[derive(Clone, Copy, Debug)]
pub struct ExplorationStrategy {
    /// If set, evaluates few executions one by one.
    pub brute_force: bool,
    /// Step limit of the search for all executions, before it falls back to single queries.
    pub steps: u64,
    /// Step limit of the search for one answer, before it falls back to the SAT solver.
    pub decide_steps: u64,
    /// Step limit, per pair of symmetric threads, of the search with ordered threads. It pays off only for
    /// threads that count; locks are left to the SAT solver.
    pub ordered_steps: u64,
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
    /// If set, reduces spin loops that are followed only by reads.
    pub spin_loops: bool,
    /// If set, excludes combinations of paths by the values that their writes can supply.
    pub value_supply: bool,
}

impl ExplorationStrategy {
    /// Every strategy, each with the limit at which it is fastest.
    pub const FULL: ExplorationStrategy = ExplorationStrategy {
        brute_force: true,
        steps: 20_000,
        decide_steps: 2_000,
        ordered_steps: 4,
        lists_outcomes: true,
        decides_first: true,
        first_listing_steps: 20_000,
        prefers_decision: false,
        listing_steps: u64::MAX,
        symmetry: true,
        rmw_chains: true,
        spin_loops: true,
        value_supply: true,
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
    combiner: &OutcomeCollector<'_>,
    ways: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<ExplorationResult, PredictError> {
    // Counted from zero: a sum that has saturated would hide further executions.
    let before = std::mem::take(&mut findings.consistent_executions);
    let asked = explore_uncounted::<M>(skeleton, prepared, combiner, ways, findings);
    let has_some = findings.consistent_executions > 0;
    findings.consistent_executions = findings.consistent_executions.saturating_add(before);
    let asked = asked?;
    Ok(ExplorationResult { has_execution: asked.has_execution || has_some, ..asked })
}

/// Adds the findings of the executions; returns true if uncounted executions may exist.
fn explore_uncounted<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    combiner: &OutcomeCollector<'_>,
    ways: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<ExplorationResult, PredictError> {
    let one = |has_some| ExplorationResult {
        has_execution: has_some,
        covers_orbit: combiner.alike.preserves_condition,
    };
    // `None` if the structure is not small enough for the exact enumeration.
    if ways.brute_force
        && let Some(few) = BruteForce::<M>::new(skeleton, prepared, combiner)?
    {
        few.add_findings(skeleton, prepared, combiner, findings);
        return Ok(one(false));
    }
    combiner.add_candidates(findings);
    if findings.timed_out {
        return Ok(one(true));
    }
    let ground = StaticBounds::<M>::new(skeleton, prepared)?;
    if findings.unlisted
        && let Some(explored) = explore_in_order(skeleton, prepared, &ground, combiner, ways, findings)
    {
        return Ok(explored);
    }
    let mut questions = ExecutionQueries::new(skeleton, prepared, &ground, combiner, ways.decide_steps);
    // Without a list of outcomes, the exhaustive search is too expensive from the start.
    let one_by_one = combiner.plain || questions.domains.is_some();
    if !findings.unlisted || !one_by_one {
        let mut search =
            Search::new(skeleton, prepared, &ground, skeleton.observed_storages(), combiner.purse);
        if one_by_one {
            search.limit(ways.steps);
        }
        let complete = search.run(&mut combiner.findings_visitor(findings));
        // If the search ended at the purse and not at its step limit, no other strategy has budget
        // left either.
        if complete || !search.gave_up() {
            findings.timed_out |= !complete;
            return Ok(one(findings.unlisted));
        }
        if let Some(explored) = explore_in_order(skeleton, prepared, &ground, combiner, ways, findings) {
            return Ok(explored);
        }
    }
    // From here on executions are not counted.
    let conflicts = questions.domains.is_some();
    let mut raised = vec![(findings.grounded, GoalEvidence::Grounded)];
    let any = questions.find_match(ExecutionGoal::Any, None);
    if any == Some(GoalEvidence::Never) {
        return Ok(one(false));
    }
    let mut timed_out = any.is_none();
    let mut ask = |sought: ExecutionGoal<'_>, raised: Option<&mut Vec<(Flags, GoalEvidence)>>| {
        let shown = questions.find_match(sought, raised);
        timed_out |= shown.is_none();
        shown.unwrap_or(GoalEvidence::Never)
    };
    ask(ExecutionGoal::InFilter, Some(&mut raised));
    for (flags, shown) in raised {
        findings.raise_flags(flags, shown == GoalEvidence::OutOfThinAir);
    }
    if skeleton.terminated {
        findings.has_match =
            findings.has_match || ask(ExecutionGoal::ConditionIs(true), None) != GoalEvidence::Never;
        // A conjunction is violated if one of its conjuncts is. Under thread symmetry the whole condition is
        // invariant, but a single conjunct may not be.
        let parts = combiner.conjunct_count().filter(|_| !(conflicts && combiner.alike.can_break_symmetry()));
        findings.has_mismatch = findings.has_mismatch
            || match parts {
                Some(parts) => {
                    (0..parts).any(|part| ask(ExecutionGoal::Violates(part), None) != GoalEvidence::Never)
                }
                None => ask(ExecutionGoal::ConditionIs(false), None) != GoalEvidence::Never,
            };
        if !findings.unlisted {
            let open = findings.outcomes.iter().filter(|(_, standing)| *standing != OutcomeStatus::Allowed);
            let mut open: Vec<Outcome> = open.map(|(outcome, _)| outcome.clone()).collect();
            if open.len() > MAX_OUTCOME_QUERIES {
                findings.unlisted = true;
                open.clear();
            }
            for outcome in open {
                match questions.find_match(ExecutionGoal::Outcome(&outcome), None) {
                    Some(GoalEvidence::Never) => {}
                    Some(shown) => {
                        findings.outcomes.record_allowed(outcome, shown == GoalEvidence::OutOfThinAir)
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
    Ok(one(true))
}

/// Adds the findings of the executions in which symmetric threads are ordered, for every variant of the
/// condition.
///
/// Returns `None` if there is no symmetry or the query was not answered.
///
/// Every execution is symmetric to one of these: a swap exchanges threads with all of their events. So
/// threads can be sorted by the order of their writes, first within a group, then the groups. If an execution
/// satisfies the condition, its symmetric image satisfies the permuted condition. So all variants of the
/// condition on the ordered executions cover the condition on all executions. Races do not depend on thread
/// names. Neither does the filter, since only swaps that preserve it are used.
fn explore_in_order<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &PreparedPlan,
    ground: &StaticBounds<M>,
    combiner: &OutcomeCollector<'_>,
    ways: ExplorationStrategy,
    findings: &mut Findings,
) -> Option<ExplorationResult> {
    let tellings = combiner.condition_orbit.filter(|_| !combiner.alike.ordered_writes.is_empty())?;
    // The ordered search visits one execution per orbit, so it cannot list or count outcomes.
    if !findings.unlisted || findings.needs_full_order || ways.ordered_steps == 0 {
        return None;
    }
    let mut search = Search::new(skeleton, prepared, ground, skeleton.observed_storages(), combiner.purse);
    search.in_order(&combiner.alike.ordered_writes);
    // There is one pair for two neighbours of a row, so a row has one more thread than pairs.
    let threads = combiner.alike.ordered_writes.len() as u64 + 1;
    search.limit(ways.ordered_steps.saturating_mul(threads * threads));
    let mut goal = OrderedVisitor { combiner, tellings, findings, found: false, timed_out: false };
    let complete = search.run(&mut goal);
    let OrderedVisitor { found, timed_out, .. } = goal;
    let answered = complete && !timed_out;
    if !answered {
        findings.timed_out |= !search.gave_up();
        findings.needs_full_order = true;
    }
    (answered || findings.timed_out)
        // Unknown counts as existing: the caller must not conclude that the paths are infeasible.
        .then_some(ExplorationResult { has_execution: found || !answered, covers_orbit: answered })
}

/// Visitor that collects all findings of the executions with ordered threads.
struct OrderedVisitor<'f, 'c, 'a> {
    combiner: &'c OutcomeCollector<'a>,
    tellings: &'c ConditionOrbit,
    findings: &'f mut Findings,
    /// True if a consistent execution was found.
    found: bool,
    timed_out: bool,
}

impl LeafVisitor for OrderedVisitor<'_, '_, '_> {
    fn wants_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let findings = &self.findings;
        // Each query stops at its first answer. A leaf is visited only while a match, a mismatch or
        // a flag is open.
        let answered = !self.combiner.skeleton.terminated || findings.has_match && findings.has_mismatch;
        (!self.found || !answered || findings.grounded.lacks_any_of(flags))
            && !self.combiner.breaks_path(reads_from)
    }

    fn take_leaf(&mut self, leaf: SearchLeaf, most: u64) -> u64 {
        let OrderedVisitor { combiner, tellings, findings, found, timed_out } = self;
        let looked_at = combiner.outcomes(&leaf, most, &mut |outcome, thin_air| {
            *found = true;
            if combiner.is_goal_met(ExecutionGoal::InFilter, outcome) {
                findings.raise_flags(leaf.flagged, thin_air);
                if combiner.skeleton.terminated {
                    let says = |wanted| tellings.any_variant_is(&combiner.condition, outcome, wanted);
                    findings.has_match = findings.has_match || says(true);
                    findings.has_mismatch = findings.has_mismatch || says(false);
                }
            }
            true
        });
        *timed_out |= looked_at.is_none();
        looked_at.unwrap_or(most)
    }
}

/// Answers queries about one event structure, by search first and then by the SAT solver.
pub(crate) struct ExecutionQueries<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    prepared: &'a PreparedPlan,
    ground: &'a StaticBounds<M>,
    combiner: &'a OutcomeCollector<'a>,
    /// Step limit of the search, before it falls back to the SAT solver.
    alone: u64,
    /// The value domains of the SAT encoding, if it applies.
    domains: Option<Rc<Domains>>,
    /// The SAT encoding, built for the first query that needs it.
    refuter: Option<Refuter<'a, M, Batsat<'a>>>,
}

impl<'a, M: Matrix> ExecutionQueries<'a, M> {
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        prepared: &'a PreparedPlan,
        ground: &'a StaticBounds<M>,
        combiner: &'a OutcomeCollector<'a>,
        alone: u64,
    ) -> ExecutionQueries<'a, M> {
        let domains = is_refutable(prepared, ground)
            .then(|| Domains::new(skeleton, &ground.reads, &combiner.rules, &combiner.rmw_chains))
            .flatten()
            .filter(|domains| domains.can_ask(skeleton, combiner));
        let domains = domains.map(Rc::new);
        ExecutionQueries { skeleton, prepared, ground, combiner, alone, domains, refuter: None }
    }

    /// Finds the strongest evidence for an execution that meets the goal; `None` if the budget ran out first.
    ///
    /// With `raised`, it looks only for executions that raise further flags, and adds these flags with their
    /// evidence.
    pub(crate) fn find_match(
        &mut self,
        sought: ExecutionGoal<'_>,
        mut raised: Option<&mut Vec<(Flags, GoalEvidence)>>,
    ) -> Option<GoalEvidence> {
        let ExecutionQueries { skeleton, prepared, ground, combiner, .. } = *self;
        let mut found = false;
        // If values depend on each other, the search enumerates too many of them.
        if combiner.plain || self.domains.is_none() {
            let observed = skeleton.observed_storages();
            let mut search = Search::new(skeleton, prepared, ground, observed, combiner.purse);
            if combiner.plain {
                let Some((reads, alike)) = combiner.restrict_sources(&ground.reads, sought) else {
                    return Some(GoalEvidence::Never);
                };
                search.restrict_reads(reads, alike);
                if self.domains.is_some() {
                    // A long search is not worth its steps if the matrices are wide.
                    let events = skeleton.len();
                    search.limit((self.alone / step_weight(events)).max(2 * events as u64));
                }
            }
            let mut flags = raised.as_deref().map(|raised| known(raised));
            let mut goal =
                FirstMatch { combiner, sought, flags: flags.as_mut(), found: false, timed_out: false };
            let complete = search.run(&mut goal);
            let timed_out = goal.timed_out;
            found = goal.found;
            // Flags found before the limit stay valid, so the SAT solver need not look for them
            // again.
            if let (Some(raised), Some(flags), true) = (raised.as_deref_mut(), flags, found) {
                raised.push((flags, GoalEvidence::Grounded));
            }
            let shown = if found { GoalEvidence::Grounded } else { GoalEvidence::Never };
            if complete && !timed_out || found && raised.is_none() {
                return Some(shown);
            }
            // The purse is exhausted; the SAT solver would have no budget either.
            if !search.gave_up() {
                return found.then_some(shown);
            }
        }
        let domains = self.domains.clone()?;
        let refuter = self.refuter.get_or_insert_with(|| {
            Refuter::new(combiner, prepared, ground, domains, Batsat::new(combiner.purse))
        });
        let shown = refuter.ask(combiner, sought, raised)?;
        Some(if found { GoalEvidence::Grounded } else { shown })
    }
}

struct FirstMatch<'c, 'a, 'f> {
    combiner: &'c OutcomeCollector<'a>,
    sought: ExecutionGoal<'c>,
    flags: Option<&'f mut Flags>,
    found: bool,
    timed_out: bool,
}

impl LeafVisitor for FirstMatch<'_, '_, '_> {
    fn wants_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let open = match &self.flags {
            Some(raised) => raised.lacks_any_of(flags),
            None => !self.found,
        };
        open && self.combiner.partial_match(self.sought, reads_from, &[]) != Some(false)
    }

    fn take_leaf(&mut self, leaf: SearchLeaf, _: u64) -> u64 {
        match self.combiner.leaf_meets_goal(&leaf, self.sought) {
            Some(true) => {
                self.found = true;
                if let Some(raised) = &mut self.flags {
                    raised.add(leaf.flagged);
                }
            }
            Some(false) => {}
            None => self.timed_out = true,
        }
        1
    }
}
