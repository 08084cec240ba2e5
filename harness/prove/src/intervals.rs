//! Barrier intervals: which accesses of two invocations of a workgroup no barrier orders.
//!
//! All invocations of a workgroup pass the same barriers in the same order, as each barrier is in uniform control flow. Two
//! accesses are unordered only if both follow the same instance of a barrier, or the start, without another barrier that
//! orders their class of memory. Both invocations agree on the iterations of the loops around that barrier; an access that
//! is reached over the back edge of such a loop belongs to the next iteration.

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::{Scope, StorageClass};

use crate::execute::{Barrier, Strength};
use crate::graph::Graph;

/// The iteration of a loop around a barrier at which an access after it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Crossing {
    /// The iteration of the barrier.
    Same,
    /// The iteration after it.
    Next,
    /// The first iteration of a loop that begins in the interval.
    First,
    /// Any iteration.
    Free,
}

/// A node of an interval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Visit {
    pub node: usize,
    pub path: VisitPath,
}

/// The way of an invocation to a node of an interval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VisitPath {
    /// The crossings of the loops around the node, the outermost first.
    pub crossings: Vec<Crossing>,
    /// The nodes of barriers that it has not reached in this iteration.
    pub skipped: Vec<usize>,
    /// Loops with barriers that it has left, with the iterations in which it did: their last ones.
    pub left: BTreeMap<usize, Crossing>,
}

/// A node of an interval, before the barriers that it has skipped are known.
type Step = (usize, Vec<Crossing>, BTreeMap<usize, Crossing>);

/// The nodes of an interval.
pub(crate) type Interval = BTreeSet<Visit>;

impl Barrier {
    /// Returns true if a barrier orders two accesses of a class and of at least a strength.
    fn orders(&self, class: StorageClass, strength: Strength) -> bool {
        let semantics = self.semantics;
        let is_wide = !matches!(self.scope, Scope::Invocation | Scope::Subgroup);
        is_wide
            && semantics.order.releases()
            && semantics.order.acquires()
            && semantics.classes.contains(class)
            && match strength {
                Strength::Private => false,
                Strength::NonPrivate => semantics.make_available && semantics.make_visible,
                Strength::Published => true,
            }
    }
}

/// Returns the intervals for accesses of a class and a strength.
pub(crate) fn intervals(
    graph: &Graph<'_>,
    barriers: &[Barrier],
    class: StorageClass,
    strength: Strength,
) -> Vec<Interval> {
    let cuts: BTreeSet<usize> =
        barriers.iter().filter(|one| one.orders(class, strength)).map(|one| one.node).collect();
    let mut all = vec![interval(graph, None, &cuts)];
    all.extend(cuts.iter().map(|node| interval(graph, Some(*node), &cuts)));
    all
}

/// Returns the interval that begins after a barrier, or at the start.
fn interval(graph: &Graph<'_>, start: Option<usize>, cuts: &BTreeSet<usize>) -> Interval {
    let mut nodes = BTreeSet::new();
    let around = |node: usize, crossing| vec![crossing; graph.loops_around(node).len()];
    let mut open: Vec<Step> = match start {
        // The entry may be the header of a loop.
        None => vec![(0, around(0, Crossing::First), BTreeMap::new())],
        Some(node) => follow(graph, cuts, &(node, around(node, Crossing::Same), BTreeMap::new())),
    };
    while let Some(step) = open.pop() {
        if !cuts.contains(&step.0) && nodes.insert(step.clone()) {
            open.extend(follow(graph, cuts, &step));
        }
    }
    let visit = |(node, crossings, left): Step| {
        let skipped = skipped_barriers(graph, cuts, start, node, &crossings);
        Visit { node, path: VisitPath { crossings, skipped, left } }
    };
    nodes.into_iter().map(visit).collect()
}

/// Returns the successors of a node with their crossings.
fn follow(graph: &Graph<'_>, cuts: &BTreeSet<usize>, (node, crossings, left): &Step) -> Vec<Step> {
    let loops = graph.loops_around(*node);
    let successors = graph.nodes[*node].successors.iter();
    successors
        .map(|target| {
            let (mut next, mut left) = (Vec::new(), left.clone());
            let targets = graph.loops_around(*target);
            for (depth, index) in targets.iter().enumerate() {
                let is_around = loops.get(depth) == Some(index);
                let is_header = graph.loops[*index].header == *target;
                if is_header {
                    // The loops within, and the loop itself if it is entered again, have no last iteration yet.
                    let body = &graph.loops[*index].body;
                    left.retain(|inner, _| !body.contains(&graph.loops[*inner].header));
                }
                next.push(match crossings.get(depth).filter(|_| is_around) {
                    None => Crossing::First,
                    Some(_) if !is_header => crossings[depth],
                    Some(Crossing::Same) => Crossing::Next,
                    Some(Crossing::Next | Crossing::First | Crossing::Free) => Crossing::Free,
                });
            }
            for (index, crossing) in loops.iter().zip(crossings) {
                let has_cut = || !cuts.is_disjoint(&graph.loops[*index].body);
                if !targets.contains(index) && *crossing != Crossing::Free && has_cut() {
                    left.insert(*index, *crossing);
                }
            }
            (*target, next, left)
        })
        .collect()
}

/// Returns the barriers that an invocation at a node of an interval cannot have reached in this iteration.
///
/// Such a barrier lies between the start and the node, but would have ended the interval.
fn skipped_barriers(
    graph: &Graph<'_>,
    cuts: &BTreeSet<usize>,
    start: Option<usize>,
    node: usize,
    crossings: &[Crossing],
) -> Vec<usize> {
    let around = graph.loops_around(node);
    let is_skipped = |barrier: &usize| {
        let loops = graph.loops_around(*barrier);
        around.starts_with(&loops)
            && crossings[..loops.len()].iter().all(|one| *one == Crossing::Same)
            && start.is_none_or(|start| graph.loops_around(start).starts_with(&loops))
            && start.is_none_or(|start| graph.comes_before(start, *barrier))
            && graph.comes_before(*barrier, node)
            && !graph.comes_before(node, *barrier)
    };
    cuts.iter().copied().filter(is_skipped).collect()
}
