//! Finds the words of a text that are read and ignored.

use super::header::place;
use super::words::{IGNORED_CLASSES, word_of};
use crate::span::Span;
use crate::test::{IgnoredClass, IgnoredClasses, StorageClassSet, Test};

/// A word of a test that the memory model ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredWord {
    /// What it names.
    pub class: IgnoredClass,
    /// The word.
    pub word: &'static str,
    /// True if its instruction names no storage class that is ordered: it orders nothing then.
    pub orders_nothing: bool,
    /// The source position.
    pub span: Span,
}

/// The words of `text`, which `test` was read from, that name storage classes of semantics that are ignored (VK-SEM-19).
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
            let word = word_of(IGNORED_CLASSES, class);
            let modifiers = written
                .match_indices(word)
                .filter(|(at, _)| written.get(..*at).is_some_and(|before| before.trim_end().ends_with('.')));
            found.extend(modifiers.map(|(at, _)| {
                let span = Span { length: word.len() as u32, ..place(text, start + at) };
                IgnoredWord { class, word, orders_nothing, span }
            }));
        }
    }
    found.sort_by_key(|word| word.span.offset);
    found
}
