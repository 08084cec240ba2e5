//! Relations over up to 1,024 events: one row per event, sixteen words per row.

use super::{Bits, Bits1024, Matrix};

/// A relation over up to 1,024 events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matrix1024 {
    rows: Vec<Bits1024>,
}

impl Matrix for Matrix1024 {
    type Set = Bits1024;

    fn empty(n: usize) -> Self {
        Matrix1024 { rows: vec![Bits1024::empty(); n.min(Self::CAPACITY)] }
    }

    #[inline]
    fn rows(&self) -> &[Bits1024] {
        &self.rows
    }

    #[inline]
    fn rows_mut(&mut self) -> &mut [Bits1024] {
        &mut self.rows
    }

    #[inline]
    fn map(&self, operation: impl Fn(usize, Bits1024) -> Bits1024) -> Self {
        let rows = self.rows.iter().enumerate();
        Matrix1024 { rows: rows.map(|(row, targets)| operation(row, *targets)).collect() }
    }

    fn transpose(&self) -> Self {
        let n = self.rows.len();
        Self::from_pairs(n, self.pairs().map(|(source, target)| (target, source)))
    }
}
