//! Relations over up to 256 events: one row per event, four words per row.

use super::{Bits, Bits256, Matrix};

/// A relation over up to 256 events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matrix256 {
    rows: Vec<Bits256>,
}

impl Matrix256 {
    #[inline]
    fn map(&self, operation: impl Fn(usize, Bits256) -> Bits256) -> Self {
        Matrix256 {
            rows: self.rows.iter().enumerate().map(|(row, targets)| operation(row, *targets)).collect(),
        }
    }

    #[inline]
    fn zip(&self, other: &Self, operation: impl Fn(Bits256, Bits256) -> Bits256) -> Self {
        self.map(|row, targets| operation(targets, other.row(row)))
    }
}

impl Matrix for Matrix256 {
    type Set = Bits256;

    fn empty(n: usize) -> Self {
        Matrix256 { rows: vec![Bits256::empty(); n.min(Self::CAPACITY)] }
    }

    fn identity(n: usize) -> Self {
        Self::identity_on(n, Bits256::universe(n))
    }

    fn full(n: usize) -> Self {
        Self::product(n, Bits256::universe(n), Bits256::universe(n))
    }

    #[inline]
    fn row(&self, source: usize) -> Bits256 {
        row_of(&self.rows, source)
    }

    #[inline]
    fn set_row(&mut self, source: usize, targets: Bits256) {
        if let Some(row) = self.rows.get_mut(source) {
            *row = targets;
        }
    }

    #[inline]
    fn insert(&mut self, source: usize, target: usize) {
        if let Some(row) = self.rows.get_mut(source) {
            row.insert(target);
        }
    }

    #[inline]
    fn remove(&mut self, source: usize, target: usize) {
        if let Some(row) = self.rows.get_mut(source) {
            row.remove(target);
        }
    }

    fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.is_empty())
    }

    fn len(&self) -> usize {
        self.rows.iter().map(|row| row.len()).sum()
    }

    fn union(&self, other: &Self) -> Self {
        self.zip(other, Bits256::union)
    }

    fn intersection(&self, other: &Self) -> Self {
        self.zip(other, Bits256::intersection)
    }

    fn difference(&self, other: &Self) -> Self {
        self.zip(other, Bits256::difference)
    }

    fn union_with(&mut self, other: &Self) {
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            *row = row.union(*more);
        }
    }

    fn compose(&self, other: &Self) -> Self {
        self.map(|_, row| {
            row.iter().fold(Bits256::empty(), |targets, middle| targets.union(other.row(middle)))
        })
    }

    fn transpose(&self) -> Self {
        let n = self.rows.len();
        Self::from_pairs(n, self.pairs().map(|(source, target)| (target, source)))
    }

    fn plus(&self) -> Self {
        let mut rows = self.rows.clone();
        // Closure never changes which events have a target or a source.
        for middle in self.domain().intersection(self.range()).iter() {
            let targets = row_of(&rows, middle);
            for row in rows.iter_mut().filter(|row| row.contains(middle)) {
                *row = row.union(targets);
            }
        }
        Matrix256 { rows }
    }

    fn product(n: usize, sources: Bits256, targets: Bits256) -> Self {
        Self::empty(n).map(|row, none| if sources.contains(row) { targets } else { none })
    }

    fn identity_on(n: usize, events: Bits256) -> Self {
        Self::from_pairs(n, events.iter().map(|event| (event, event)))
    }

    fn domain(&self) -> Bits256 {
        Bits256::from_events(
            self.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()).map(|(event, _)| event),
        )
    }

    fn range(&self) -> Bits256 {
        self.rows.iter().fold(Bits256::empty(), |events, row| events.union(*row))
    }

    fn restrict_rows(&self, sources: Bits256) -> Self {
        self.map(|row, targets| if sources.contains(row) { targets } else { Bits256::empty() })
    }

    fn restrict_columns(&self, targets: Bits256) -> Self {
        self.map(|_, row| row.intersection(targets))
    }

    fn is_irreflexive(&self) -> bool {
        self.rows.iter().enumerate().all(|(event, row)| !row.contains(event))
    }

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
}

#[inline]
fn row_of(rows: &[Bits256], event: usize) -> Bits256 {
    rows.get(event).copied().unwrap_or_else(Bits256::empty)
}
