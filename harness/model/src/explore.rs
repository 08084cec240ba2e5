//! What is found out about one skeleton, and in which way: all of its executions where these are few enough, otherwise one
//! question after the other, each only until it is answered.

use std::rc::Rc;

use litmus::Outcome;

use crate::PredictError;
use crate::combine::{ExecutionGoal, Findings, OutcomeCollector, OutcomeStatus};
use crate::few::BruteForce;
use crate::matrix::Matrix;
use crate::prepared::Prepared;
use crate::refute::{Domains, Refuter, Shown, is_refutable, known};
use crate::sat::Batsat;
use crate::search::{Flags, Leaf, LeafVisitor, Search, StaticBounds};
use crate::skeleton::Skeleton;
use crate::symmetry::ConditionOrbit;

/// In which ways a skeleton may be explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExplorationStrategy {
    /// Whether few executions are evaluated one by one.
    brute_force: bool,
    /// How many steps the search for all executions may take before single questions are asked instead.
    steps: u64,
    /// How many steps the search for one answer may take before a solver is asked that learns from conflicts.
    pub(crate) decide_steps: u64,
    /// How many steps the search may take in which threads that do the same come in their order, for each two of them. Of others than
    /// threads that count it makes little: locks are left to the solver.
    pub(crate) ordered_steps: u64,
    /// Whether outcomes are listed.
    pub(crate) lists_outcomes: bool,
    /// Whether threads may change places.
    pub(crate) symmetry: bool,
    /// Whether storages that are only counted on are known as such.
    pub(crate) rmw_chains: bool,
    /// Whether threads that wait and then only read come past their loops one at a time.
    pub(crate) spin_loops: bool,
}

impl ExplorationStrategy {
    /// Every way, each where it is quickest.
    pub(crate) const FULL: ExplorationStrategy = ExplorationStrategy {
        brute_force: true,
        steps: 20_000,
        decide_steps: 2_000,
        ordered_steps: 4,
        lists_outcomes: true,
        symmetry: true,
        rmw_chains: true,
        spin_loops: true,
    };

    /// The same without a list of outcomes.
    pub(crate) const DECIDE_ONLY: ExplorationStrategy =
        ExplorationStrategy { lists_outcomes: false, ..ExplorationStrategy::FULL };
}

/// Outcomes that are asked for one by one at most.
const MAX_OUTCOME_QUERIES: usize = 1 << 13;

/// What is known of a skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExplorationResult {
    /// Whether it has executions, as far as that is known.
    pub(crate) has_execution: bool,
    /// Whether what was found is so of every skeleton that is alike.
    pub(crate) covers_orbit: bool,
}

/// Adds what the executions of a skeleton show.
pub(crate) fn explore_skeleton<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    combiner: &OutcomeCollector<'_>,
    ways: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<ExplorationResult, PredictError> {
    // Counted anew: a sum that has come to its end would hide that there are more.
    let before = std::mem::take(&mut findings.consistent_executions);
    let asked = explore_uncounted::<M>(skeleton, prepared, combiner, ways, findings);
    let has_some = findings.consistent_executions > 0;
    findings.consistent_executions = findings.consistent_executions.saturating_add(before);
    let asked = asked?;
    Ok(ExplorationResult { has_execution: asked.has_execution || has_some, ..asked })
}

/// Adds what the executions show. Whether there may be some that were not counted.
fn explore_uncounted<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    combiner: &OutcomeCollector<'_>,
    ways: ExplorationStrategy,
    findings: &mut Findings,
) -> Result<ExplorationResult, PredictError> {
    let one = |has_some| ExplorationResult {
        has_execution: has_some,
        covers_orbit: combiner.alike.preserves_condition,
    };
    if ways.brute_force
        && let Some(few) = BruteForce::<M>::new(skeleton, prepared, combiner)?
    {
        few.add_findings(skeleton, prepared, combiner, findings);
        return Ok(one(false));
    }
    combiner.add_candidates(findings);
    let ground = StaticBounds::<M>::new(skeleton, prepared)?;
    if findings.unlisted
        && let Some(explored) = explore_in_order(skeleton, prepared, &ground, combiner, ways, findings)
    {
        return Ok(explored);
    }
    let mut questions = ExecutionQueries::new(skeleton, prepared, &ground, combiner, ways.decide_steps);
    // Where outcomes are not listed, all executions are too many from the start.
    let one_by_one = combiner.plain || questions.domains.is_some();
    if !findings.unlisted || !one_by_one {
        let mut search =
            Search::new(skeleton, prepared, &ground, skeleton.observed_storages(), combiner.purse);
        if one_by_one {
            search.limit(ways.steps);
        }
        let complete = search.run(&mut combiner.findings_visitor(findings));
        if complete || !search.gave_up() {
            findings.timed_out |= !complete;
            return Ok(one(findings.unlisted));
        }
        if let Some(explored) = explore_in_order(skeleton, prepared, &ground, combiner, ways, findings) {
            return Ok(explored);
        }
    }
    // From here on executions are no longer counted.
    let conflicts = questions.domains.is_some();
    let mut raised = vec![(findings.grounded, Shown::Grounded)];
    let mut timed_out = false;
    let mut ask = |sought: ExecutionGoal<'_>, raised: Option<&mut Vec<(Flags, Shown)>>| {
        let shown = questions.find_match(sought, raised);
        timed_out |= shown.is_none();
        shown.unwrap_or(Shown::Never)
    };
    let has_some = ask(ExecutionGoal::Any, None) != Shown::Never;
    ask(ExecutionGoal::InFilter, Some(&mut raised));
    for (flags, shown) in raised {
        findings.raise_flags(flags, shown == Shown::OutOfThinAir);
    }
    if skeleton.terminated {
        findings.has_match |=
            findings.has_match || ask(ExecutionGoal::ConditionIs(true), None) != Shown::Never;
        // A conjunction is missed where one of its parts is. Where threads may change places, the whole says the same of all of them
        // and a part need not.
        let parts = combiner.conjunct_count().filter(|_| !(conflicts && combiner.alike.can_break_symmetry()));
        findings.has_mismatch |= findings.has_mismatch
            || match parts {
                Some(parts) => {
                    (0..parts).any(|part| ask(ExecutionGoal::Violates(part), None) != Shown::Never)
                }
                None => ask(ExecutionGoal::ConditionIs(false), None) != Shown::Never,
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
                    Some(Shown::Never) => {}
                    Some(shown) => findings.outcomes.record_allowed(outcome, shown == Shown::OutOfThinAir),
                    // What was asked before stands.
                    None => {
                        findings.unlisted = true;
                        break;
                    }
                }
            }
        }
    }
    findings.timed_out |= timed_out;
    Ok(one(has_some || timed_out))
}

/// Adds what is shown by the executions in which threads that do the same come in their order, the condition told of them in every way;
/// `None` where nothing is alike or that was not answered.
///
/// Every execution is alike one of these: whoever changes places with another does so with all that he does, so that threads may be put
/// in the order in which their writes come, those of a group first, then the groups. What an execution shows of the condition, one that
/// is alike shows of it as it is told with these threads in each other's places, so that the condition in every such way asks these
/// executions what it asks of all. Races do not hang on names of threads, nor does the filter, which only swaps that keep it are taken from.
fn explore_in_order<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    ground: &StaticBounds<M>,
    combiner: &OutcomeCollector<'_>,
    ways: ExplorationStrategy,
    findings: &mut Findings,
) -> Option<ExplorationResult> {
    let tellings = combiner.condition_orbit.filter(|_| !combiner.alike.ordered_writes.is_empty())?;
    if !findings.unlisted || findings.needs_full_order || ways.ordered_steps == 0 {
        return None;
    }
    let mut search = Search::new(skeleton, prepared, ground, skeleton.observed_storages(), combiner.purse);
    search.in_order(&combiner.alike.ordered_writes);
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
        .then_some(ExplorationResult { has_execution: found || !answered, covers_orbit: answered })
}

/// All that is asked of a skeleton, of the executions in which threads come in their order.
struct OrderedVisitor<'f, 'c, 'a> {
    combiner: &'c OutcomeCollector<'a>,
    tellings: &'c ConditionOrbit,
    findings: &'f mut Findings,
    /// Whether there is an execution.
    found: bool,
    timed_out: bool,
}

impl LeafVisitor for OrderedVisitor<'_, '_, '_> {
    fn wants_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        let findings = &self.findings;
        let answered = !self.combiner.skeleton.terminated || findings.has_match && findings.has_mismatch;
        (!self.found || !answered || findings.grounded.lacks_any_of(flags))
            && !self.combiner.breaks_path(reads_from)
    }

    fn take_leaf(&mut self, leaf: Leaf, most: u64) -> u64 {
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

/// A skeleton that is asked one question after the other.
pub(crate) struct ExecutionQueries<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    prepared: &'a Prepared,
    ground: &'a StaticBounds<M>,
    combiner: &'a OutcomeCollector<'a>,
    /// The steps of the search after which the solver is asked.
    alone: u64,
    /// What the solver needs to know of values, where it can be asked.
    domains: Option<Rc<Domains>>,
    /// Made for the first question that it is asked.
    refuter: Option<Refuter<'a, M, Batsat<'a>>>,
}

impl<'a, M: Matrix> ExecutionQueries<'a, M> {
    pub(crate) fn new(
        skeleton: &'a Skeleton,
        prepared: &'a Prepared,
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

    /// What is shown of the executions of the skeleton that are looked for; `None` when the budget was used up before that
    /// was known. With `raised` those are looked for that raise other flags than these, and what they raise is added, with
    /// what it rests on.
    pub(crate) fn find_match(
        &mut self,
        sought: ExecutionGoal<'_>,
        mut raised: Option<&mut Vec<(Flags, Shown)>>,
    ) -> Option<Shown> {
        let ExecutionQueries { skeleton, prepared, ground, combiner, .. } = *self;
        let mut found = false;
        // Where values depend on each other the search tries too much.
        if combiner.plain || self.domains.is_none() {
            let observed = skeleton.observed_storages();
            let mut search = Search::new(skeleton, prepared, ground, observed, combiner.purse);
            if combiner.plain {
                let Some((reads, alike)) = combiner.restrict_sources(&ground.reads, sought) else {
                    return Some(Shown::Never);
                };
                search.restrict_reads(reads, alike);
                if self.domains.is_some() {
                    search.limit(self.alone);
                }
            }
            let mut flags = raised.as_deref().map(|raised| known(raised));
            let mut goal =
                FirstMatch { combiner, sought, flags: flags.as_mut(), found: false, timed_out: false };
            let complete = search.run(&mut goal);
            let timed_out = goal.timed_out;
            found = goal.found;
            if let (Some(raised), Some(flags), true) = (raised.as_deref_mut(), flags, found) {
                raised.push((flags, Shown::Grounded));
            }
            let shown = if found { Shown::Grounded } else { Shown::Never };
            if complete && !timed_out || found && raised.is_none() {
                return Some(shown);
            }
            if !search.gave_up() {
                return found.then_some(shown);
            }
        }
        let domains = self.domains.clone()?;
        let refuter = self.refuter.get_or_insert_with(|| {
            Refuter::new(combiner, prepared, ground, domains, Batsat::new(combiner.purse))
        });
        let shown = refuter.ask(combiner, sought, raised)?;
        Some(if found { Shown::Grounded } else { shown })
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

    fn take_leaf(&mut self, leaf: Leaf, _: u64) -> u64 {
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

#[cfg(test)]
#[expect(dead_code, reason = "other tests use the other kinds of random tests")]
#[path = "../tests/common/mod.rs"]
pub(crate) mod random;

#[cfg(test)]
mod tests;
