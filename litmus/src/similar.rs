//! "Did you mean" suggestions by edit distance.

/// The maximum edit distance.
const MAX_DISTANCE: usize = 2;

/// Returns the most similar word of `known`. Its edit distance is at most 2 and less than half of the word's
/// length. Among several, a word that only lacks letters is preferred.
pub fn most_similar<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let max_distance = MAX_DISTANCE.min(word.chars().count().saturating_sub(1) / 2);
    let lacks_letters = |known: &str| {
        let mut letters = word.chars();
        known.chars().all(|letter| letters.any(|other| other == letter))
    };
    let rank = |known| (strsim::damerau_levenshtein(word, known), !lacks_letters(known), known);
    let ranks = known.into_iter().map(rank).filter(|(distance, ..)| (1..=max_distance).contains(distance));
    ranks.min().map(|(_, _, known)| known)
}

/// Returns ` (did you mean \`KNOWN\`?)` to append to a word, or an empty string.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    most_similar(word, known).map_or_else(String::new, |known| format!(" (did you mean `{known}`?)"))
}
