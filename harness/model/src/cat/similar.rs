//! "Did you mean" suggestions by edit distance.

/// Returns the candidate that is spelt most like `word`: one edit away, one more for every four letters. Letter case
/// does not count.
pub(super) fn similar_word<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let furthest = 1 + word.len() / 4;
    let lower = word.to_ascii_lowercase();
    let away = candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(&lower, &candidate.to_ascii_lowercase()), candidate));
    away.filter(|(distance, candidate)| *distance <= furthest && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
