//! Checksums of the words that the host reads back.

use shaders::checksum::{PUSH_CONSTANT_BYTES, WordRange, kernel, parse_push_constants, push_constants};

#[test]
fn the_kernel_keeps_the_rules_of_modules() {
    crate::common::assert_valid_uses(&kernel());
}

/// A changed, exchanged, stale or missing word changes the checksum of its range.
#[test]
fn every_change_of_a_range_changes_its_checksum() {
    let words: Vec<u32> = (0..256).map(|word| word % 3).collect();
    for range in [WordRange::first_words(256), WordRange { first: 5, step: 7, count: 30 }] {
        let checksum = range.checksum(&words, 1).unwrap();
        assert_ne!(range.checksum(&words, 2), Some(checksum), "another salt");
        let indices: Vec<usize> =
            (0..range.count).map(|word| (range.first + word * range.step) as usize).collect();
        for (left, right) in indices.iter().zip(indices.iter().skip(1)) {
            let mut other = words.clone();
            other[*left] ^= 1;
            assert_ne!(range.checksum(&other, 1), Some(checksum), "a bit of word {left}");
            let mut other = words.clone();
            other.swap(*left, *right);
            let is_same = other == words;
            assert_eq!(range.checksum(&other, 1) == Some(checksum), is_same, "words {left} and {right}");
        }
        let mut other = words.clone();
        let outside = (0..words.len()).filter(|word| !indices.contains(word));
        outside.for_each(|word| other[word] += 1);
        assert_eq!(range.checksum(&other, 1), Some(checksum), "words outside of the range");
    }
    assert_eq!(WordRange::first_words(257).checksum(&words, 1), None);
    assert_eq!(WordRange { first: 1 << 20, step: u32::MAX, count: 0 }.checksum(&words, 1), Some(0));
    assert_eq!(WordRange { first: 1, step: u32::MAX, count: u32::MAX }.checksum(&words, 1), None);
}

#[test]
fn constants_are_parsed_as_written() {
    let range = WordRange { first: 1, step: 2, count: 3 };
    let bytes = push_constants(range, 4, 5);
    assert_eq!(
        (bytes.len() as u32, parse_push_constants(&bytes)),
        (PUSH_CONSTANT_BYTES, Some((range, 4, 5)))
    );
    assert_eq!(parse_push_constants(&bytes[1..]), None);
}
