//! Corrections of misspelled words.

use litmus::similar::most_similar;

use crate::problem::TextProblem;

/// Adds the correction to the most similar known word, if there is one.
pub fn suggest<'k>(
    problem: TextProblem,
    text: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> TextProblem {
    let word = text.get(problem.range.clone()).unwrap_or_default();
    let bare = word.trim_start_matches('.');
    match most_similar(bare, known) {
        Some(known) => {
            let dots = &word[..word.len() - bare.len()];
            problem.with_replacement(&format!("{dots}{known}"))
        }
        None => problem,
    }
}
