//! Relations over up to 8 events in one word: bit 8·source + target.
//!
//! Multiplying by [`COLUMN`] copies a byte into every row. If a word has at most bit 0 of each row set,
//! multiplying by 255 fills those rows. With these two, composition and closure take eight branch-free steps.

use super::{Bits, Matrix};

/// Bit 0 of every row.
const COLUMN: u64 = 0x0101_0101_0101_0101;
/// Bit i of row i.
const DIAGONAL: u64 = 0x8040_2010_0804_0201;

/// A relation over up to 8 events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Matrix8(pub u64);

/// Bit 0 of every row that is not empty.
#[inline]
fn occupied_rows(rows: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The sum carries into bit 7 of each byte whose lower bits are not all zero, and never into the
    // next byte.
    ((((rows & LOW) + LOW) | rows) & !LOW) >> 7
}

/// Fills the rows whose number is in the set.
#[inline]
fn fill_rows(rows: u8) -> u64 {
    occupied_rows((u64::from(rows) * COLUMN) & DIAGONAL) * 0xff
}

/// One step of composition: the rows of `left` that hold `middle` get row `middle` of `right`.
#[inline]
fn compose_through(left: u64, right: u64, middle: usize) -> u64 {
    (((left >> middle) & COLUMN) * 0xff) & (((right >> (8 * middle)) & 0xff) * COLUMN)
}

#[inline]
fn bit(source: usize, target: usize) -> u64 {
    if source < 8 && target < 8 { 1 << (8 * source + target) } else { 0 }
}

impl Matrix for Matrix8 {
    type Set = u8;

    #[inline]
    fn empty(_: usize) -> Self {
        Matrix8(0)
    }

    #[inline]
    fn identity(n: usize) -> Self {
        Matrix8(DIAGONAL & Self::full(n).0)
    }

    #[inline]
    fn full(n: usize) -> Self {
        Self::product(n, u8::universe(n), u8::universe(n))
    }

    #[inline]
    fn row(&self, source: usize) -> u8 {
        self.0.to_le_bytes().get(source).copied().unwrap_or(0)
    }

    #[inline]
    fn set_row(&mut self, source: usize, targets: u8) {
        let mut rows = self.0.to_le_bytes();
        if let Some(row) = rows.get_mut(source) {
            *row = targets;
        }
        self.0 = u64::from_le_bytes(rows);
    }

    #[inline]
    fn contains(&self, source: usize, target: usize) -> bool {
        self.0 & bit(source, target) != 0
    }

    #[inline]
    fn insert(&mut self, source: usize, target: usize) {
        self.0 |= bit(source, target);
    }

    #[inline]
    fn remove(&mut self, source: usize, target: usize) {
        self.0 &= !bit(source, target);
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.count_ones() as usize
    }

    #[inline]
    fn union(&self, other: &Self) -> Self {
        Matrix8(self.0 | other.0)
    }

    #[inline]
    fn intersection(&self, other: &Self) -> Self {
        Matrix8(self.0 & other.0)
    }

    #[inline]
    fn difference(&self, other: &Self) -> Self {
        Matrix8(self.0 & !other.0)
    }

    #[inline]
    fn compose(&self, other: &Self) -> Self {
        Matrix8((0..8).fold(0, |rows, middle| rows | compose_through(self.0, other.0, middle)))
    }

    #[inline]
    fn transpose(&self) -> Self {
        // Hacker's Delight 7-3: swap 1×1, then 2×2, then 4×4 blocks across the diagonal.
        let mut x = self.0;
        let mut swap = |distance: u32, mask: u64| {
            let t = (x ^ (x >> distance)) & mask;
            x ^= t ^ (t << distance);
        };
        swap(7, 0x00aa_00aa_00aa_00aa);
        swap(14, 0x0000_cccc_0000_cccc);
        swap(28, 0x0000_0000_f0f0_f0f0);
        Matrix8(x)
    }

    #[inline]
    fn plus(&self) -> Self {
        Matrix8((0..8).fold(self.0, |rows, middle| rows | compose_through(rows, rows, middle)))
    }

    #[inline]
    fn product(_: usize, sources: u8, targets: u8) -> Self {
        Matrix8(fill_rows(sources) & (u64::from(targets) * COLUMN))
    }

    #[inline]
    fn identity_on(_: usize, events: u8) -> Self {
        Matrix8((u64::from(events) * COLUMN) & DIAGONAL)
    }

    #[inline]
    fn domain(&self) -> u8 {
        // The factor moves bit 8i to bit 56 + i; no two of the other partial products meet, so nothing is carried.
        (occupied_rows(self.0).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    }

    #[inline]
    fn range(&self) -> u8 {
        let mut x = self.0;
        x |= x >> 32;
        x |= x >> 16;
        x |= x >> 8;
        x as u8
    }

    #[inline]
    fn restrict_rows(&self, sources: u8) -> Self {
        Matrix8(self.0 & fill_rows(sources))
    }

    #[inline]
    fn restrict_columns(&self, targets: u8) -> Self {
        Matrix8(self.0 & (u64::from(targets) * COLUMN))
    }

    #[inline]
    fn is_irreflexive(&self) -> bool {
        self.0 & DIAGONAL == 0
    }

    #[inline]
    fn is_acyclic(&self) -> bool {
        self.plus().is_irreflexive()
    }
}
