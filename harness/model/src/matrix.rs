//! Sets and relations over the events of one execution, as bit sets and bit matrices.
//!
//! A relation over n events is an n×n bit matrix: row = source, column = target. The engine is generic over
//! [`Matrix`] and uses the smallest type that holds the test: [`Matrix16`], [`Matrix32`] and [`Matrix64`] store
//! one word per row, [`Matrix256`] four. Each type compiles the engine again, so there are no others: relations of 8
//! events in one word saved 4 % of the time over the corpus, and two words per row nothing.
//!
//! All matrices and sets of one execution must have the same number of events, and event numbers must be
//! below it. A number past the capacity is never a member, and inserting it has no effect.

mod bits;
mod rows;
mod wide;

pub use bits::{Bits, Bits256};
pub use rows::{Matrix16, Matrix32, Matrix64};
pub use wide::Matrix256;

use std::fmt::Debug;
use std::hash::Hash;

/// Evaluates an expression in which the given name is the smallest matrix type that holds a number of events.
macro_rules! with_smallest_matrix {
    ($events:expr, $matrix:ident => $value:expr) => {{
        use $crate::matrix::{Matrix16, Matrix32, Matrix64, Matrix256};
        match $events {
            0..=16 => {
                type $matrix = Matrix16;
                $value
            }
            17..=32 => {
                type $matrix = Matrix32;
                $value
            }
            33..=64 => {
                type $matrix = Matrix64;
                $value
            }
            _ => {
                type $matrix = Matrix256;
                $value
            }
        }
    }};
}
pub(crate) use with_smallest_matrix;

/// A binary relation over the events 0 … n−1.
pub trait Matrix: Clone + PartialEq + Eq + Hash + Debug + Send + Sync + 'static {
    /// Sets of events: the rows of the matrix.
    type Set: Bits;

    /// The largest number of events that the type can hold.
    const CAPACITY: usize = Self::Set::CAPACITY;

    /// The relation without pairs.
    fn empty(n: usize) -> Self;

    /// The events that each event is related to; rows past the last event are empty.
    fn rows(&self) -> &[Self::Set];

    /// Returns the rows for changes.
    fn rows_mut(&mut self) -> &mut [Self::Set];

    /// Returns the relation whose rows are computed from those of this one.
    fn map(&self, operation: impl Fn(usize, Self::Set) -> Self::Set) -> Self;

    /// Each pair turned round.
    fn transpose(&self) -> Self;

    /// The identity relation over n events.
    #[inline]
    fn identity(n: usize) -> Self {
        Self::identity_on(n, Self::Set::universe(n))
    }

    /// The full relation over n events.
    #[inline]
    fn full(n: usize) -> Self {
        Self::product(n, Self::Set::universe(n), Self::Set::universe(n))
    }

    /// The events that `source` is related to.
    #[inline]
    fn row(&self, source: usize) -> Self::Set {
        self.rows().get(source).copied().unwrap_or_else(Self::Set::empty)
    }

    /// Replaces the events that `source` is related to.
    #[inline]
    fn set_row(&mut self, source: usize, targets: Self::Set) {
        if let Some(row) = self.rows_mut().get_mut(source) {
            *row = targets;
        }
    }

    /// Returns true if the pair is in the relation.
    #[inline]
    fn contains(&self, source: usize, target: usize) -> bool {
        self.row(source).contains(target)
    }

    /// Adds a pair.
    #[inline]
    fn insert(&mut self, source: usize, target: usize) {
        if let Some(row) = self.rows_mut().get_mut(source) {
            row.insert(target);
        }
    }

    /// Removes a pair.
    #[inline]
    fn remove(&mut self, source: usize, target: usize) {
        if let Some(row) = self.rows_mut().get_mut(source) {
            row.remove(target);
        }
    }

    /// Returns true if the relation has no pair.
    #[inline]
    fn is_empty(&self) -> bool {
        self.range().is_empty()
    }

    /// Number of pairs.
    #[inline]
    fn len(&self) -> usize {
        self.rows().iter().map(|row| row.len()).sum()
    }

    /// Pairs of either operand.
    #[inline]
    fn union(&self, other: &Self) -> Self {
        self.map(|row, targets| targets.union(other.row(row)))
    }

    /// Pairs of both.
    #[inline]
    fn intersection(&self, other: &Self) -> Self {
        self.map(|row, targets| targets.intersection(other.row(row)))
    }

    /// Pairs of `self` that are not in `other`.
    #[inline]
    fn difference(&self, other: &Self) -> Self {
        self.map(|row, targets| targets.difference(other.row(row)))
    }

    /// Adds the pairs of `other` in place.
    #[inline]
    fn union_with(&mut self, other: &Self) {
        for (row, more) in self.rows_mut().iter_mut().zip(other.rows()) {
            *row = row.union(*more);
        }
    }

    /// Pairs over n events that are not in `self`.
    #[inline]
    fn complement(&self, n: usize) -> Self {
        Self::full(n).difference(self)
    }

    /// Returns true if every pair of `self` is in `other`.
    #[inline]
    fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Pairs (a, c) with (a, b) in `self` and (b, c) in `other`.
    #[inline]
    fn compose(&self, other: &Self) -> Self {
        self.map(|_, row| {
            row.iter().fold(Self::Set::empty(), |targets, middle| targets.union(other.row(middle)))
        })
    }

    /// Transitive closure: one step or more.
    #[inline]
    fn plus(&self) -> Self {
        // Warshall's algorithm: paths through each intermediate event in turn. Closure never changes which events have
        // a target or a source.
        let mut closure = self.clone();
        for middle in self.domain().intersection(self.range()).iter() {
            let targets = closure.row(middle);
            for row in closure.rows_mut() {
                *row = row.union(targets.only_if(row.contains(middle)));
            }
        }
        closure
    }

    /// Reflexive and transitive closure over n events.
    #[inline]
    fn star(&self, n: usize) -> Self {
        self.plus().optional(n)
    }

    /// Reflexive closure over n events.
    #[inline]
    fn optional(&self, n: usize) -> Self {
        self.union(&Self::identity(n))
    }

    /// Pairs that no longer path implies: `r \ (r; r⁺)` (transitive reduction of an acyclic relation).
    #[inline]
    fn immediate(&self) -> Self {
        self.difference(&self.compose(&self.plus()))
    }

    /// The Cartesian product of `sources` and `targets`, among n events.
    #[inline]
    fn product(n: usize, sources: Self::Set, targets: Self::Set) -> Self {
        Self::empty(n).map(|row, _| targets.only_if(sources.contains(row)))
    }

    /// The identity relation on a set, among n events.
    #[inline]
    fn identity_on(n: usize, events: Self::Set) -> Self {
        Self::empty(n).map(|row, _| Self::Set::single(row).intersection(events))
    }

    /// Events with at least one target.
    #[inline]
    fn domain(&self) -> Self::Set {
        let rows = self.rows().iter().enumerate();
        rows.fold(Self::Set::empty(), |events, (event, row)| {
            events.union(Self::Set::single(event).only_if(!row.is_empty()))
        })
    }

    /// Events with at least one source.
    #[inline]
    fn range(&self) -> Self::Set {
        self.rows().iter().fold(Self::Set::empty(), |events, row| events.union(*row))
    }

    /// Pairs whose source is in the set: `[sources]; r`.
    #[inline]
    fn restrict_rows(&self, sources: Self::Set) -> Self {
        self.map(|row, targets| targets.only_if(sources.contains(row)))
    }

    /// Pairs whose target is in the set: `r; [targets]`.
    #[inline]
    fn restrict_columns(&self, targets: Self::Set) -> Self {
        self.map(|_, row| row.intersection(targets))
    }

    /// Returns true if no event is related to itself.
    #[inline]
    fn is_irreflexive(&self) -> bool {
        !self.rows().iter().enumerate().fold(false, |found, (event, row)| found | row.contains(event))
    }

    /// Returns true if no event reaches itself.
    #[inline]
    fn is_acyclic(&self) -> bool {
        // Removes events without a remaining target until a fixpoint is reached.
        let mut left = self.domain().intersection(self.range());
        loop {
            let (mut kept, mut rest) = (left, left);
            // Most relations follow program order, so targets have larger numbers than sources.
            while let Some(event) = rest.last() {
                rest.remove(event);
                if self.row(event).intersection(kept).is_empty() {
                    kept.remove(event);
                }
            }
            if kept == left {
                return kept.is_empty();
            }
            left = kept;
        }
    }

    /// Iterates over the pairs in the order of their sources, then of their targets.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.domain()
            .iter()
            .flat_map(move |source| self.row(source).iter().map(move |target| (source, target)))
    }

    /// The relation over n events that holds the given pairs.
    fn from_pairs(n: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut matrix = Self::empty(n);
        for (source, target) in pairs {
            matrix.insert(source, target);
        }
        matrix
    }

    /// Returns a shortest cycle as its events in order, starting at the smallest; `None` for an acyclic
    /// relation.
    ///
    /// For explanations; too slow for the search.
    fn shortest_cycle(&self) -> Option<Vec<usize>> {
        let mut best: Option<Vec<usize>> = None;
        // An event on a cycle has a target and a source.
        for start in self.domain().intersection(self.range()).iter() {
            if let Some(path) = self.shortest_path(start, start)
                && best.as_ref().is_none_or(|known| path.len() < known.len() + 1)
            {
                best = Some(path[..path.len() - 1].to_vec());
            }
        }
        best
    }

    /// Returns a shortest path of at least one step, including both ends; `None` if there is none.
    fn shortest_path(&self, source: usize, target: usize) -> Option<Vec<usize>> {
        let mut previous = vec![usize::MAX; Self::CAPACITY];
        let mut seen = Self::Set::empty();
        let mut frontier = vec![source];
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for &event in &frontier {
                let row = self.row(event);
                if row.contains(target) {
                    let mut path = vec![target, event];
                    let mut last = event;
                    while last != source {
                        last = previous[last];
                        path.push(last);
                    }
                    path.reverse();
                    return Some(path);
                }
                for found in row.difference(seen).iter() {
                    seen.insert(found);
                    // The source has no predecessor, so that the way back ends there.
                    if found != source {
                        previous[found] = event;
                        next.push(found);
                    }
                }
            }
            frontier = next;
        }
        None
    }
}
