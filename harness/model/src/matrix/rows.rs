//! Relations over up to 16, 32 or 64 events: one word per row.

use super::{Bits, Matrix};

macro_rules! row_matrix {
    ($(#[$doc:meta])* $name:ident, $word:ty, $size:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub [$word; $size]);

        impl $name {
            #[inline]
            fn map(&self, operation: impl Fn(usize, $word) -> $word) -> Self {
                $name(std::array::from_fn(|row| operation(row, self.0[row])))
            }

            #[inline]
            fn zip(&self, other: &Self, operation: impl Fn($word, $word) -> $word) -> Self {
                $name(std::array::from_fn(|row| operation(self.0[row], other.0[row])))
            }
        }

        impl Matrix for $name {
            type Set = $word;

            #[inline]
            fn empty(_: usize) -> Self {
                $name([0; $size])
            }

            #[inline]
            fn identity(n: usize) -> Self {
                Self::identity_on(n, <$word>::universe(n))
            }

            #[inline]
            fn full(n: usize) -> Self {
                Self::product(n, <$word>::universe(n), <$word>::universe(n))
            }

            #[inline]
            fn row(&self, source: usize) -> $word {
                self.0.get(source).copied().unwrap_or(0)
            }

            #[inline]
            fn set_row(&mut self, source: usize, targets: $word) {
                if let Some(row) = self.0.get_mut(source) {
                    *row = targets;
                }
            }

            #[inline]
            fn insert(&mut self, source: usize, target: usize) {
                if let Some(row) = self.0.get_mut(source) {
                    row.insert(target);
                }
            }

            #[inline]
            fn remove(&mut self, source: usize, target: usize) {
                if let Some(row) = self.0.get_mut(source) {
                    Bits::remove(row, target);
                }
            }

            #[inline]
            fn is_empty(&self) -> bool {
                self.range() == 0
            }

            #[inline]
            fn len(&self) -> usize {
                self.0.iter().map(|row| row.count_ones() as usize).sum()
            }

            #[inline]
            fn union(&self, other: &Self) -> Self {
                self.zip(other, |a, b| a | b)
            }

            #[inline]
            fn intersection(&self, other: &Self) -> Self {
                self.zip(other, |a, b| a & b)
            }

            #[inline]
            fn difference(&self, other: &Self) -> Self {
                self.zip(other, |a, b| a & !b)
            }

            #[inline]
            fn compose(&self, other: &Self) -> Self {
                self.map(|_, row| row.iter().fold(0, |targets, middle| targets | other.0[middle]))
            }

            #[inline]
            fn transpose(&self) -> Self {
                // Swaps smaller and smaller blocks across the diagonal, all blocks of one size together.
                let mut rows = self.0;
                let mut width = $size / 2;
                let mut mask = <$word>::MAX >> width;
                while width > 0 {
                    let mut row = 0;
                    while row < $size {
                        let t = ((rows[row] >> width) ^ rows[row + width]) & mask;
                        rows[row] ^= t << width;
                        rows[row + width] ^= t;
                        row = (row + width + 1) & !width;
                    }
                    width /= 2;
                    mask ^= mask << width;
                }
                $name(rows)
            }

            #[inline]
            fn plus(&self) -> Self {
                let mut rows = self.0;
                // Closure never changes which events have a target or a source.
                // Warshall's algorithm: paths through each intermediate event in turn.
                for middle in (self.domain() & self.range()).iter() {
                    let targets = rows[middle];
                    for row in &mut rows {
                        // Without a branch: zero minus the bit is a mask of all ones or none.
                        let holds = (*row >> middle) & 1;
                        *row |= targets & (0 as $word).wrapping_sub(holds);
                    }
                }
                $name(rows)
            }

            #[inline]
            fn product(_: usize, sources: $word, targets: $word) -> Self {
                $name(std::array::from_fn(|row| (0 as $word).wrapping_sub((sources >> row) & 1) & targets))
            }

            #[inline]
            fn identity_on(_: usize, events: $word) -> Self {
                $name(std::array::from_fn(|row| events & (1 << row)))
            }

            #[inline]
            fn domain(&self) -> $word {
                self.0.iter().enumerate().fold(0, |events, (row, targets)| events | (<$word>::from(*targets != 0) << row))
            }

            #[inline]
            fn range(&self) -> $word {
                self.0.iter().fold(0, |events, row| events | row)
            }

            #[inline]
            fn restrict_rows(&self, sources: $word) -> Self {
                self.map(|row, targets| (0 as $word).wrapping_sub((sources >> row) & 1) & targets)
            }

            #[inline]
            fn restrict_columns(&self, targets: $word) -> Self {
                self.map(|_, row| row & targets)
            }

            #[inline]
            fn is_irreflexive(&self) -> bool {
                self.0.iter().enumerate().fold(0, |found, (row, targets)| found | (targets >> row) & 1) == 0
            }

            #[inline]
            fn is_acyclic(&self) -> bool {
                // Removes events without a remaining target until a fixpoint is reached.
                let mut left = self.domain() & self.range();
                loop {
                    let (mut kept, mut rest) = (left, left);
                    // Most relations follow program order, so targets have larger numbers than sources.
                    while let Some(event) = rest.last() {
                        rest &= !(1 << event);
                        if self.0[event] & kept == 0 {
                            kept &= !(1 << event);
                        }
                    }
                    if kept == left {
                        return kept == 0;
                    }
                    left = kept;
                }
            }
        }
    };
}

row_matrix!(
    /// A relation over up to 16 events.
    Matrix16, u16, 16
);
row_matrix!(
    /// A relation over up to 32 events.
    Matrix32, u32, 32
);
row_matrix!(
    /// A relation over up to 64 events.
    Matrix64, u64, 64
);
