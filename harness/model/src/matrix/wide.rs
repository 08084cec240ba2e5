//! Relations over up to 128 or 256 events: two or four words per row, one row per event.

use super::{Bits, Matrix, WideBits};

/// A relation over up to 128 events.
pub type Matrix128 = WideMatrix<2>;
/// A relation over up to 256 events.
pub type Matrix256 = WideMatrix<4>;

/// A relation with a fixed number of words per row. It has one row per event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WideMatrix<const WORDS: usize> {
    rows: Vec<WideBits<WORDS>>,
}

impl<const WORDS: usize> WideMatrix<WORDS> {
    #[inline]
    fn map(&self, operation: impl Fn(usize, WideBits<WORDS>) -> WideBits<WORDS>) -> Self {
        WideMatrix {
            rows: self.rows.iter().enumerate().map(|(row, targets)| operation(row, *targets)).collect(),
        }
    }

    #[inline]
    fn zip(
        &self,
        other: &Self,
        operation: impl Fn(WideBits<WORDS>, WideBits<WORDS>) -> WideBits<WORDS>,
    ) -> Self {
        self.map(|row, targets| operation(targets, other.row(row)))
    }
}

impl<const WORDS: usize> Matrix for WideMatrix<WORDS> {
    type Set = WideBits<WORDS>;

    fn empty(n: usize) -> Self {
        WideMatrix { rows: vec![WideBits::empty(); n.min(Self::CAPACITY)] }
    }

    fn identity(n: usize) -> Self {
        Self::identity_on(n, WideBits::universe(n))
    }

    fn full(n: usize) -> Self {
        Self::product(n, WideBits::universe(n), WideBits::universe(n))
    }

    #[inline]
    fn row(&self, source: usize) -> WideBits<WORDS> {
        row_of(&self.rows, source)
    }

    #[inline]
    fn set_row(&mut self, source: usize, targets: WideBits<WORDS>) {
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
        self.zip(other, WideBits::union)
    }

    fn intersection(&self, other: &Self) -> Self {
        self.zip(other, WideBits::intersection)
    }

    fn difference(&self, other: &Self) -> Self {
        self.zip(other, WideBits::difference)
    }

    fn union_with(&mut self, other: &Self) {
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            *row = row.union(*more);
        }
    }

    fn compose(&self, other: &Self) -> Self {
        self.map(|_, row| {
            row.iter().fold(WideBits::empty(), |targets, middle| targets.union(other.row(middle)))
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
        WideMatrix { rows }
    }

    fn product(n: usize, sources: WideBits<WORDS>, targets: WideBits<WORDS>) -> Self {
        Self::empty(n).map(|row, none| if sources.contains(row) { targets } else { none })
    }

    fn identity_on(n: usize, events: WideBits<WORDS>) -> Self {
        Self::from_pairs(n, events.iter().map(|event| (event, event)))
    }

    fn domain(&self) -> WideBits<WORDS> {
        WideBits::from_events(
            self.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()).map(|(event, _)| event),
        )
    }

    fn range(&self) -> WideBits<WORDS> {
        self.rows.iter().fold(WideBits::empty(), |events, row| events.union(*row))
    }

    fn restrict_rows(&self, sources: WideBits<WORDS>) -> Self {
        self.map(|row, targets| if sources.contains(row) { targets } else { WideBits::empty() })
    }

    fn restrict_columns(&self, targets: WideBits<WORDS>) -> Self {
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
fn row_of<const WORDS: usize>(rows: &[WideBits<WORDS>], event: usize) -> WideBits<WORDS> {
    rows.get(event).copied().unwrap_or_else(WideBits::empty)
}
