//! The choices of an execution, reads-from and modification order, as bounds: before any choice, after each one,
//! and the axioms under them.

use crate::PredictError;
use crate::cat::{
    Axiom, AxiomKind, BaseReference, CatValue, CompiledModel, NodeId, NodeKind, SizeConstraint,
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

pub(crate) fn rf_may<M: Matrix>(n: usize, reads: &[ReadChoice]) -> M {
    M::from_pairs(
        n,
        reads.iter().flat_map(|choice| choice.candidates.iter().map(|write| (*write, choice.read))),
    )
}

pub(crate) fn rf_must<M: Matrix>(n: usize, reads: &[ReadChoice]) -> M {
    M::from_pairs(
        n,
        reads
            .iter()
            .filter(|choice| choice.candidates.len() == 1)
            .flat_map(|choice| choice.candidates.iter().map(|write| (*write, choice.read))),
    )
}

/// Returns the must and may bounds of `co`: initial writes first, in the order of their names.
pub(crate) fn co_bounds<M: Matrix>(skeleton: &Skeleton) -> (M, M) {
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
            match (first.tags.has(Tags::IW), second.tags.has(Tags::IW)) {
                (true, false) => {
                    must.insert(i, j);
                    may.insert(i, j);
                }
                (true, true) if i < j => {
                    must.insert(i, j);
                    may.insert(i, j);
                }
                (false, false) => may.insert(i, j),
                _ => {}
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
    if axiom.negated {
        // A non-emptiness axiom fails only if no pair is possible.
        return !satisfies_axiom_kind(axiom.kind, bounds.may(axiom.node));
    }
    satisfies_axiom_kind(axiom.kind, bounds.must(axiom.node))
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

fn satisfies_axiom_kind<M: Matrix>(kind: AxiomKind, value: &CatValue<M>) -> bool {
    match (kind, value) {
        (AxiomKind::Acyclic, CatValue::Relation(relation)) => relation.is_acyclic(),
        (AxiomKind::Irreflexive, CatValue::Relation(relation)) => relation.is_irreflexive(),
        (_, value) => value.is_empty(),
    }
}
