//! Finds words of a text that the memory model ignores.

use super::header::position_at;
use super::words::{IGNORED_CLASSES, find_word};
use crate::span::Span;
use crate::test::{IgnoredClass, IgnoredClasses, StorageClassSet, Test};

/// A word of a test that the memory model ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredWord {
    /// The ignored storage class.
    pub class: IgnoredClass,
    /// The word.
    pub word: &'static str,
    /// True if its instruction names no other storage class, so that it orders nothing.
    pub orders_nothing: bool,
    /// The source position.
    pub span: Span,
}

/// Returns the words of `text` that name ignored storage classes in semantics (VK-SEM-19).
///
/// `test` must have been parsed from `text`.
pub fn ignored_words(test: &Test, text: &str) -> Vec<IgnoredWord> {
    let mut found = Vec::new();
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        if instruction.kind.semantics().all(|semantics| semantics.ignored == IgnoredClasses::NONE) {
            continue;
        }
        let orders_nothing =
            instruction.kind.semantics().all(|semantics| semantics.classes == StorageClassSet::EMPTY);
        let start = instruction.span.offset as usize;
        let written = text.get(start..start + instruction.span.length as usize).unwrap_or_default();
        for class in IgnoredClass::ALL {
            let word = find_word(IGNORED_CLASSES, class);
            let modifiers = written
                .match_indices(word)
                .filter(|(at, _)| written.get(..*at).is_some_and(|before| before.trim_end().ends_with('.')));
            found.extend(modifiers.map(|(at, _)| {
                let span = Span { length: word.len() as u32, ..position_at(text, start + at) };
                IgnoredWord { class, word, orders_nothing, span }
            }));
        }
    }
    found.sort_by_key(|word| word.span.offset);
    found
}
