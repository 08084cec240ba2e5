//! Backward propagation: the reads-from and modification-order choices that the axioms exclude.
//!
//! [`Bounds`] propagates bounds from operands to results. This module propagates violations from axioms to
//! operands. If a pair is excluded from a node, every operand pair that would produce it in all completions
//! is excluded too. Sound for every model: it never removes a pair that some consistent execution within the
//! bounds has. At operations without such a rule, propagation stops.

use crate::cat::{AxiomKind, NodeId, PlanNode};
use crate::choice::ReadChoice;
use crate::interval::Bounds;
use crate::matrix::{Bits, Matrix};
use crate::prepared::PreparedPlan;

/// Result of narrowing the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NarrowResult {
    /// No bound changed.
    Unchanged,
    /// Some bounds are narrower.
    Narrower,
    /// No consistent execution is within the bounds.
    Contradiction,
}

/// Removes the pairs of `rf` and `co` that would violate an axiom.
///
/// A read with one source left reads from it, and of two writes to one storage one comes first. The operands
/// of the axioms must be evaluated.
pub(crate) fn narrow<M: Matrix>(
    prepared: &PreparedPlan,
    bounds: &mut Bounds<M>,
    reads: &[ReadChoice],
) -> NarrowResult {
    let forbidden = forbidden_pairs(prepared, bounds);
    let mut narrowed = NarrowResult::Unchanged;
    let n = bounds.n;
    for &id in &prepared.rf {
        let Some(excluded) = forbidden.get(id.to_index()).and_then(Option::as_ref) else { continue };
        let Some(may) = bounds.may_relation(id) else { continue };
        if excluded.intersection(may).is_empty() {
            continue;
        }
        *may = may.difference(excluded);
        // A certain edge is excluded: no consistent execution is left.
        if bounds.must(id).as_relation().is_some_and(|must| !excluded.intersection(must).is_empty()) {
            return NarrowResult::Contradiction;
        }
        let Some(may) = bounds.may(id).as_relation() else { continue };
        narrowed = NarrowResult::Narrower;
        let sources = may.transpose();
        for choice in reads {
            let remaining = sources.row(choice.read);
            match remaining.iter().next() {
                None => return NarrowResult::Contradiction,
                // The only source that is left is certain.
                Some(write) if remaining.len() == 1 => {
                    if let Some(must) = bounds.must_relation(id) {
                        must.insert(write, choice.read);
                    }
                }
                Some(_) => {}
            }
        }
    }
    for &id in &prepared.co {
        let Some(excluded) = forbidden.get(id.to_index()).and_then(Option::as_ref) else { continue };
        let Some(may) = bounds.may(id).as_relation().cloned() else { continue };
        // If one write cannot precede another, the other precedes it.
        let inverse = excluded.intersection(&may).transpose().intersection(&may);
        if inverse.is_empty() {
            continue;
        }
        add_certain_order(bounds, id, &inverse, n);
        narrowed = NarrowResult::Narrower;
    }
    narrowed
}

/// Adds certain pairs to an order of writes.
pub(crate) fn add_certain_order<M: Matrix>(bounds: &mut Bounds<M>, co: NodeId, pairs: &M, n: usize) {
    let Some(must) = bounds.must_relation(co) else { return };
    // A pair of a total order implies its transitive consequences, and each certain pair excludes
    // its inverse.
    *must = must.union(pairs).plus();
    let before = must.union(&M::identity(n)).transpose();
    if let Some(may) = bounds.may_relation(co) {
        *may = may.difference(&before);
    }
}

/// Returns for each node the pairs found to be in no consistent execution within the bounds.
fn forbidden_pairs<M: Matrix>(prepared: &PreparedPlan, bounds: &Bounds<M>) -> Vec<Option<M>> {
    let (plan, n) = (&prepared.plan, bounds.n);
    let mut forbidden: Vec<Option<M>> = vec![None; plan.nodes.len()];
    let add = |forbidden: &mut Vec<Option<M>>, id: NodeId, pairs: M| {
        if id.to_index() < prepared.first_dynamic || pairs.is_empty() {
            return;
        }
        match &mut forbidden[id.to_index()] {
            Some(known) => known.union_with(&pairs),
            none => *none = Some(pairs),
        }
    };
    for axiom in plan.axioms.iter().filter(|axiom| !axiom.is_flag && !axiom.negated) {
        let Some(must) = bounds.must(axiom.node).as_relation() else { continue };
        let pairs = match axiom.kind {
            AxiomKind::Empty => M::full(n),
            AxiomKind::Irreflexive => M::identity(n),
            // An edge from x to y closes a cycle if y certainly reaches x, or if x is y.
            AxiomKind::Acyclic => must.star(n).transpose(),
        };
        add(&mut forbidden, axiom.node, pairs);
    }
    // Users come after their operands, so all exclusions of a node are known when it is reached.
    for index in (prepared.first_dynamic..plan.nodes.len()).rev() {
        let Some(excluded) = forbidden[index].take() else { continue };
        let must = |id: NodeId| bounds.must(id).as_relation();
        match plan.nodes[index] {
            PlanNode::BaseRelation(_) => forbidden[index] = Some(excluded),
            PlanNode::Union(a, b) => {
                add(&mut forbidden, a, excluded.clone());
                add(&mut forbidden, b, excluded);
            }
            // A pair must leave one side if it is certain in the other.
            PlanNode::Intersection(a, b) => {
                for (one, other) in [(a, b), (b, a)] {
                    if let Some(certain) = must(other) {
                        add(&mut forbidden, one, excluded.intersection(certain));
                    }
                }
            }
            // Only the first operand: a pair of it that the second may still remove is not
            // excluded. Requiring a pair of the second operand excludes nothing.
            PlanNode::Difference(a, b) => {
                if let Some(possible) = bounds.may(b).as_relation() {
                    add(&mut forbidden, a, excluded.difference(possible));
                }
            }
            PlanNode::Inverse(a) => add(&mut forbidden, a, excluded.transpose()),
            PlanNode::Optional(a) => add(&mut forbidden, a, excluded),
            // `a` must not contain a step to an event from which `b` certainly leads to an excluded
            // end, and symmetrically.
            PlanNode::Sequence(a, b) => {
                if let Some(certain) = must(b) {
                    add(&mut forbidden, a, excluded.compose(&certain.transpose()));
                }
                if let Some(certain) = must(a) {
                    add(&mut forbidden, b, certain.transpose().compose(&excluded));
                }
            }
            // A step is excluded if certain steps before and after it complete an excluded path.
            PlanNode::Plus(a) | PlanNode::Star(a) => {
                if let Some(certain) = must(a) {
                    let around = certain.star(n).transpose();
                    add(&mut forbidden, a, around.compose(&excluded).compose(&around));
                }
            }
            PlanNode::RestrictRows(set, pairs) => {
                if let Some(certain) = bounds.must(set).as_set() {
                    add(&mut forbidden, pairs, excluded.restrict_rows(certain));
                }
            }
            PlanNode::RestrictColumns(pairs, set) => {
                if let Some(certain) = bounds.must(set).as_set() {
                    add(&mut forbidden, pairs, excluded.restrict_columns(certain));
                }
            }
            // No backward rule for sets, complements and fixpoints.
            _ => {}
        }
    }
    forbidden
}
