//! The only source of randomness: a small generator whose seed determines every choice of the machine.

/// The xorshift64* generator (Vigna, <https://doi.org/10.1145/2845077>): one word per choice, 64 bits of
/// state.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator; neighbouring seeds give unrelated sequences.
    pub fn new(seed: u64) -> Random {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        // The finalizer of splitmix64. The state of a xorshift generator must not be 0.
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((state ^ (state >> 31)) | 1)
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `count`, or 0.
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        // The high word of the product is uniform below `count`, up to 2⁻⁶⁴ × `count`.
        ((u128::from(self.next_word()) * count as u128) >> 64) as usize
    }

    /// Returns true in `rate` of 256 cases.
    #[inline]
    pub fn chance(&mut self, rate: u32) -> bool {
        ((self.next_word() >> 56) as u32) < rate
    }

    /// Returns a mask in which each bit is set in about `rate` of 256 cases, in steps of 32.
    #[inline]
    pub fn mask(&mut self, rate: u32) -> u64 {
        // An `and` with a random word halves the density; an `or` halves the distance to 1.
        match rate / 32 {
            0 if rate == 0 => 0,
            0 | 1 => self.next_word() & self.next_word() & self.next_word(),
            2 => self.next_word() & self.next_word(),
            3 => self.next_word() & (self.next_word() | self.next_word()),
            4 => self.next_word(),
            5 => self.next_word() | (self.next_word() & self.next_word()),
            6 => self.next_word() | self.next_word(),
            7 => self.next_word() | self.next_word() | self.next_word(),
            _ => u64::MAX,
        }
    }
}

/// Iterates over the lanes of a mask, lowest first.
#[inline]
pub(crate) fn lanes_in_mask(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_determine_numbers_and_neighbouring_seeds_differ() {
        let words = |seed| {
            let mut random = Random::new(seed);
            (0..4).map(|_| random.next_word()).collect::<Vec<_>>()
        };
        assert_eq!(words(7), words(7));
        assert_ne!(words(7), words(8));
        assert_ne!(words(0), words(1));
    }

    #[test]
    fn masks_have_the_requested_density() {
        let mut random = Random::new(3);
        for rate in [0, 32, 64, 96, 128, 160, 192, 224, 256] {
            let bits: u32 = (0..1000).map(|_| random.mask(rate).count_ones()).sum();
            let wanted = f64::from(rate) / 256.0 * 64_000.0;
            assert!((f64::from(bits) - wanted).abs() < 1500.0, "{rate}: {bits}");
        }
    }

    #[test]
    fn lanes_of_a_mask_are_in_order() {
        assert_eq!(lanes_in_mask(0b1010_0001).collect::<Vec<_>>(), [0, 5, 7]);
        assert_eq!(lanes_in_mask(1 << 63).collect::<Vec<_>>(), [63]);
    }
}
