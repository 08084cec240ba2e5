//! Seeds of tests, derived from the seed of a run.

/// Returns the BLAKE3 hash of a test's text, in hexadecimal digits.
pub fn text_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Derives the seed of a repeated run after `earlier` runs; the first one has the seed itself.
pub fn repeat_seed(seed: u64, earlier: u32) -> u64 {
    seed.wrapping_add(u64::from(earlier).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Derives the seed of one test from the [hash of its text](text_hash), independent of the other tests of the
/// run.
pub fn test_seed(seed: u64, text_hash: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(text_hash.as_bytes());
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
