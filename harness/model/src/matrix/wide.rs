//! Relations over up to 256 events: one row per event, four words per row.

use super::{Bits, Bits256, Matrix};

/// A relation over up to 256 events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matrix256 {
    rows: Vec<Bits256>,
}

impl Matrix for Matrix256 {
    type Set = Bits256;

    fn empty(n: usize) -> Self {
        Matrix256 { rows: vec![Bits256::empty(); n.min(Self::CAPACITY)] }
    }

    #[inline]
    fn rows(&self) -> &[Bits256] {
        &self.rows
    }

    #[inline]
    fn rows_mut(&mut self) -> &mut [Bits256] {
        &mut self.rows
    }

    #[inline]
    fn map(&self, operation: impl Fn(usize, Bits256) -> Bits256) -> Self {
        let rows = self.rows.iter().enumerate();
        Matrix256 { rows: rows.map(|(row, targets)| operation(row, *targets)).collect() }
    }

    fn transpose(&self) -> Self {
        let n = self.rows.len();
        Self::from_pairs(n, self.pairs().map(|(source, target)| (target, source)))
    }
}
