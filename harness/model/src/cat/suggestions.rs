//! "Did you mean" suggestions by edit distance.

/// Returns the candidate that is spelt most like `word`: one edit away, one more for every four letters. Letter case
/// does not count.
pub(super) fn similar_word<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let max_distance = 1 + word.len() / 4;
    let lower = word.to_ascii_lowercase();
    let distances = candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(&lower, &candidate.to_ascii_lowercase()), candidate));
    distances
        .filter(|(distance, candidate)| *distance <= max_distance && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
