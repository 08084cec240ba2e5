//! Brute-force evaluation of event structures with few executions, without the bounds of the search.
//!
//! Exact, both ways. It applies if only reads-from is open, every value depends on at most one read, and
//! there are at most [`MAX_EXECUTIONS`] candidates.

use crate::PredictError;
use crate::cat::{self, CatValue, CompiledModel, PlanNode, apply_node_with};
use crate::choice::{ReadChoice, co_bounds, static_base_value};
use crate::flags::Flags;
use crate::matrix::Matrix;
use crate::outcome_collector::{ExecutionGoal, Findings, OutcomeCollector};
use crate::prepared::PreparedPlan;
use crate::skeleton::{FinalValueSource, Skeleton, Tags};

/// Limit of executions that are evaluated one by one.
const MAX_EXECUTIONS: usize = 64;

/// An event structure in which only reads-from is open, with few candidates.
#[derive(Debug)]
pub(crate) struct BruteForce<M: Matrix> {
    /// The values of the nodes that depend only on the program; the others are empty.
    values: Vec<CatValue<M>>,
    /// Every read with all of its candidate writes.
    pub(crate) reads: Vec<ReadChoice>,
    /// The last write of each storage whose final value is observed.
    last_writes: Vec<u16>,
}

/// Callback for one execution: the source of each read, and the raised flags if it is consistent.
type VisitExecution<'v> = dyn FnMut(&[Option<u16>], Option<Flags>) -> bool + 'v;

impl<M: Matrix> BruteForce<M> {
    /// Evaluates the static nodes. Returns `None` if there are too many executions, if a write order is open,
    /// or if values depend on each other.
    pub(crate) fn new(
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        collector: &OutcomeCollector<'_>,
    ) -> Result<Option<BruteForce<M>>, PredictError> {
        let n = skeleton.len();
        let is_thread_write = |event: usize| {
            let tags = skeleton.events[event].tags;
            tags.has(Tags::W) && !tags.has(Tags::IW)
        };
        let mut written = Vec::new();
        for event in (0..n).filter(|event| is_thread_write(*event)) {
            let storage = skeleton.events[event].storage;
            // Two writes to one storage leave a modification order open.
            if written.contains(&storage) {
                return Ok(None);
            }
            written.push(storage);
        }
        let mut reads = Vec::new();
        let mut count = 1usize;
        for read in (0..n).filter(|event| skeleton.events[*event].tags.has(Tags::R)) {
            let candidates = skeleton.candidate_writes(read);
            count = count.saturating_mul(candidates.len());
            reads.push(ReadChoice { read, candidates });
        }
        if count > MAX_EXECUTIONS || !collector.has_independent_values {
            return Ok(None);
        }
        let plan = &prepared.plan;
        let mut values: Vec<CatValue<M>> =
            plan.nodes.iter().map(|node| CatValue::new_empty(node.kind(), n)).collect();
        for &(id, base) in &prepared.static_bases {
            values[id.to_index()] = static_base_value(plan, skeleton, plan.node_at(id).kind(), base)?;
        }
        for id in &prepared.co {
            // At most one write per storage except the initial ones, so the upper bound of `co` is
            // its value.
            values[id.to_index()] = CatValue::Relation(co_bounds(skeleton).1);
        }
        evaluate_nodes(plan, 0, prepared.first_dynamic, &mut values, n);
        let last_writes = skeleton.final_values.iter().filter_map(|observed| {
            let FinalValueSource::LastWrite(storage) = observed else { return None };
            let of_storage = |event: &usize| {
                skeleton.events[*event].storage == Some(*storage) && skeleton.events[*event].tags.has(Tags::W)
            };
            let thread_write = (0..n).find(|event| is_thread_write(*event) && of_storage(event));
            thread_write.or_else(|| (0..n).rfind(of_storage)).map(|event| event as u16)
        });
        let last_writes = last_writes.collect();
        Ok(Some(BruteForce { values, reads, last_writes }))
    }

    /// Visits every assignment of reads to their candidates until `visit` returns false.
    ///
    /// The flags are `None` for an inconsistent execution.
    fn for_each_execution(
        values: &mut [CatValue<M>],
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        reads: &[ReadChoice],
        visit: &mut VisitExecution<'_>,
    ) {
        // A read without a candidate excludes every execution.
        if reads.iter().any(|choice| choice.candidates.is_empty()) {
            return;
        }
        let (plan, n) = (&prepared.plan, skeleton.len());
        let mut chosen = vec![0; reads.len()];
        let mut reads_from = vec![None; n];
        loop {
            let mut rf = M::empty(n);
            for (choice, index) in reads.iter().zip(&chosen) {
                let write: usize = choice.candidates[*index];
                rf.insert(write, choice.read);
                reads_from[choice.read] = Some(write as u16);
            }
            for id in &prepared.rf {
                values[id.to_index()] = CatValue::Relation(rf.clone());
            }
            // Nodes before these do not depend on the choice.
            evaluate_nodes(plan, prepared.first_dynamic, plan.nodes.len(), values, n);
            let holds = |axiom: &cat::Axiom| cat::axiom_holds(axiom, &values[axiom.node.to_index()]);
            let consistent = plan.axioms.iter().all(|axiom| axiom.is_flag || holds(axiom));
            let flags = consistent.then(|| {
                let mut flags = Flags::default();
                plan.axioms
                    .iter()
                    .filter(|axiom| axiom.is_flag && holds(axiom))
                    .for_each(|a| flags.raise_axiom(a));
                flags
            });
            if !visit(&reads_from, flags) {
                return;
            }
            // An odometer: the first digit that does not wrap around ends the carry.
            let next = chosen.iter_mut().zip(reads).find_map(|(index, choice)| {
                *index = (*index + 1) % choice.candidates.len();
                (*index != 0).then_some(())
            });
            if next.is_none() {
                return;
            }
        }
    }

    /// Adds the findings of all executions, including those of inconsistent candidates.
    pub(crate) fn add_findings(
        mut self,
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        collector: &OutcomeCollector<'_>,
        findings: &mut Findings,
    ) {
        BruteForce::for_each_execution(
            &mut self.values,
            skeleton,
            prepared,
            &self.reads,
            &mut |reads_from, flags| {
                collector.add_execution(reads_from, &self.last_writes, flags, findings);
                true
            },
        );
    }

    /// Returns true if some consistent execution meets the goal.
    pub(crate) fn has_execution(
        &self,
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
    ) -> bool {
        let Some((reads, _)) = collector.restrict_sources(&self.reads, goal) else { return false };
        let mut found = false;
        BruteForce::for_each_execution(
            &mut self.values.clone(),
            skeleton,
            prepared,
            &reads,
            &mut |reads_from, flags| {
                found = flags.is_some()
                    && collector.evaluate_goal(goal, reads_from, &self.last_writes) == Some(true);
                !found
            },
        );
        found
    }
}

/// Evaluates a range of nodes on one execution; its base nodes are already set.
fn evaluate_nodes<M: Matrix>(
    plan: &CompiledModel,
    start: usize,
    end: usize,
    values: &mut [CatValue<M>],
    n: usize,
) {
    let mut index = start;
    while index < end {
        match plan.nodes[index] {
            PlanNode::BaseSet(_) | PlanNode::BaseRelation(_) => {}
            // The first member precedes its whole group.
            PlanNode::Recursive { group, .. } => {
                let group = &plan.groups[group.0 as usize];
                cat::evaluate_group(plan, group, values, n);
                index = group.nodes.end as usize;
                continue;
            }
            node => {
                if let Some(value) = apply_node_with(node, |id| values.get(id.to_index()), n) {
                    values[index] = value;
                }
            }
        }
        index += 1;
    }
}
