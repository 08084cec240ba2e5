//! Relations over up to 16, 32 or 64 events: one word per row.

use super::Matrix;

macro_rules! row_matrix {
    ($(#[$doc:meta])* $name:ident, $word:ty, $size:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub [$word; $size]);

        impl Matrix for $name {
            type Set = $word;

            #[inline]
            fn empty(_: usize) -> Self {
                $name([0; $size])
            }

            #[inline]
            fn rows(&self) -> &[$word] {
                &self.0
            }

            #[inline]
            fn rows_mut(&mut self) -> &mut [$word] {
                &mut self.0
            }

            #[inline]
            fn map(&self, operation: impl Fn(usize, $word) -> $word) -> Self {
                $name(std::array::from_fn(|row| operation(row, self.0[row])))
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
