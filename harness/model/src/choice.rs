//! The choices of an execution, reads-from and modification order, as bounds: before any choice, after each one,
//! and the axioms under them.

use crate::PredictError;
use crate::cat::{
    Axiom, BaseReference, CatValue, CompiledModel, NodeId, NodeKind, SizeConstraint, axiom_holds,
};
use crate::interval::Bounds;
use crate::matrix::{Bits, Matrix};
use crate::skeleton::{Skeleton, Tags};

/// A read and the writes it may read from.
#[derive(Clone, Debug)]
pub(crate) struct ReadChoice {
    pub(crate) read: usize,
    pub(crate) candidates: Vec<usize>,
}

/// Returns the value of a static base.
pub(crate) fn static_base_value<M: Matrix>(
    plan: &CompiledModel,
    skeleton: &Skeleton,
    kind: NodeKind,
    base: BaseReference,
) -> Result<CatValue<M>, PredictError> {
    let name = plan.name_text(base.name);
    match kind {
        NodeKind::Set => skeleton.base_set(name, base.mask).map(CatValue::Set),
        NodeKind::Relation => skeleton.base_relation(name).map(CatValue::Relation),
    }
    .ok_or_else(|| PredictError::UnknownBase { name: name.to_owned() })
}

/// Returns the must and may bounds of `rf`.
pub(crate) fn rf_bounds<M: Matrix>(n: usize, reads: &[ReadChoice]) -> (M, M) {
    let pairs = |choice: &ReadChoice| {
        let read = choice.read;
        choice.candidates.clone().into_iter().map(move |write| (write, read))
    };
    let certain = reads.iter().filter(|choice| choice.candidates.len() == 1);
    (M::from_pairs(n, certain.flat_map(pairs)), M::from_pairs(n, reads.iter().flat_map(pairs)))
}

/// Returns the must and may bounds of `co`: initial writes first, in the order of their names, and others as far as
/// `is_ordered` implies their order.
pub(crate) fn co_bounds<M: Matrix>(
    skeleton: &Skeleton,
    is_ordered: Option<&dyn Fn(usize, usize) -> bool>,
) -> (M, M) {
    let is_ordered = |first, second| is_ordered.is_some_and(|is_ordered| is_ordered(first, second));
    let n = skeleton.len();
    let (mut must, mut may) = (M::empty(n), M::empty(n));
    for (i, first) in skeleton.events.iter().enumerate() {
        for (j, second) in skeleton.events.iter().enumerate() {
            if i == j
                || !first.tags.has(Tags::W)
                || !second.tags.has(Tags::W)
                || first.storage != second.storage
                || skeleton.are_alternatives(i, j)
            {
                continue;
            }
            // Several initial writes of one storage exist only for models with one per name. Their
            // order is fixed instead of enumerated.
            let is_initial = [first, second].map(|write| write.tags.has(Tags::IW));
            if is_initial[0] && (!is_initial[1] || i < j) || is_ordered(i, j) {
                must.insert(i, j);
                may.insert(i, j);
            } else if is_initial == [false, false] && !is_ordered(j, i) {
                may.insert(i, j);
            }
        }
    }
    (must, may)
}

/// Restricts `rf` so that `read` reads from `write`.
pub(crate) fn fix_read_source<M: Matrix>(bounds: &mut Bounds<M>, rf: NodeId, read: usize, write: usize) {
    let n = bounds.n;
    if let Some(may) = bounds.may_relation(rf) {
        for source in 0..n {
            if source != write {
                may.remove(source, read);
            }
        }
    }
    if let Some(must) = bounds.must_relation(rf) {
        must.insert(write, read);
    }
}

/// Restricts `co` so that `write` comes before all of `remaining`.
pub(crate) fn fix_next_write<M: Matrix>(
    bounds: &mut Bounds<M>,
    co: NodeId,
    write: usize,
    remaining: &[usize],
) {
    if let Some(may) = bounds.may_relation(co) {
        for &later in remaining {
            may.remove(later, write);
        }
    }
    if let Some(must) = bounds.must_relation(co) {
        for &later in remaining {
            must.insert(write, later);
        }
    }
}

/// Returns true if some completion may satisfy the axiom, or raise the flag. Exact once every relevant choice
/// is made.
pub(crate) fn is_axiom_possible<M: Matrix>(axiom: &Axiom, bounds: &Bounds<M>) -> bool {
    // A non-emptiness axiom fails only if no pair is possible.
    let bound = if axiom.negated { bounds.may(axiom.node) } else { bounds.must(axiom.node) };
    axiom_holds(axiom, bound)
}

/// Returns true if some completion may have the size.
pub(crate) fn is_size_possible<M: Matrix>(size: &SizeConstraint, bounds: &Bounds<M>) -> bool {
    let count = |value: &CatValue<M>| match value {
        CatValue::Set(set) => set.len(),
        CatValue::Relation(relation) => relation.len(),
    };
    let (must, may) = (bounds.must(size.node), bounds.may(size.node));
    // An over-approximation: not every size between the bounds need be reachable. It is exact once
    // must and may agree.
    (count(must)..=count(may)).any(|n| size.comparison.holds(n, size.bound as usize))
}
