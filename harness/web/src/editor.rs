//! The editor's requests: problems of a text, completion of words, their meanings, and variations of instructions.

use std::ops::Range;

use editor::{Correction, DocumentLanguage, Severity, TextProblem, Variation, VariedPart};
use results::wire::{
    PlaygroundAnswer, PlaygroundCorrection, PlaygroundEdit, PlaygroundName, PlaygroundProblem,
    PlaygroundSeverity, PlaygroundText, PlaygroundTextLanguage, PlaygroundVariation,
};

use crate::question::{FILE, MODEL_FILE};

pub fn list_problems(document: &PlaygroundText) -> PlaygroundAnswer {
    let PlaygroundText { language, text } = document;
    let mut found = match language {
        PlaygroundTextLanguage::Litmus => editor::test_problems(FILE, text),
        PlaygroundTextLanguage::Cat => editor::model_problems(MODEL_FILE, text, &|_| None),
    };
    found.sort_by_key(|problem| problem.range.start);
    let units = Utf16Text(text);
    let problems = found.into_iter().map(|problem| units.to_problem(problem)).collect();
    PlaygroundAnswer::Problems { problems }
}

/// Lists the words that are valid at a cursor.
pub fn list_completions(document: &PlaygroundText, offset: u32) -> PlaygroundAnswer {
    let units = Utf16Text(&document.text);
    let found = editor::complete(document_language(document), &document.text, units.to_byte_offset(offset));
    let words = found.candidates.into_iter();
    PlaygroundAnswer::Completions {
        from: units.to_units(found.range.start),
        to: units.to_units(found.range.end),
        words: words
            .map(|candidate| PlaygroundName { name: candidate.word, description: candidate.meaning })
            .collect(),
    }
}

/// Returns the meaning of the word at a cursor.
pub fn word_meaning(document: &PlaygroundText, offset: u32) -> PlaygroundAnswer {
    let units = Utf16Text(&document.text);
    match editor::hover(document_language(document), &document.text, units.to_byte_offset(offset)) {
        Some(found) => PlaygroundAnswer::Meaning {
            from: units.to_units(found.range.start),
            to: units.to_units(found.range.end),
            markdown: Some(found.markdown),
        },
        None => PlaygroundAnswer::Meaning { from: offset, to: offset, markdown: None },
    }
}

/// Lists variations of the instruction at a cursor.
pub fn list_variations(text: &str, offset: u32) -> PlaygroundAnswer {
    let units = Utf16Text(text);
    let variation = |variation: Variation| PlaygroundVariation {
        part: match variation.part {
            VariedPart::Order => "memory order",
            VariedPart::Scope => "memory scope",
            VariedPart::Strength => "strength",
            VariedPart::OrderedClasses => "ordered storage classes",
            VariedPart::StorageClass => "storage class of the location, everywhere",
        }
        .to_owned(),
        instruction: variation.instruction,
        edits: units.to_edits(variation.edits),
    };
    let found = editor::variations(text, units.to_byte_offset(offset));
    PlaygroundAnswer::Variations { variations: found.into_iter().map(variation).collect() }
}

fn document_language(document: &PlaygroundText) -> DocumentLanguage {
    match document.language {
        PlaygroundTextLanguage::Litmus => DocumentLanguage::Litmus,
        PlaygroundTextLanguage::Cat => DocumentLanguage::Cat,
    }
}

/// A text whose positions are counted in UTF-16 code units.
struct Utf16Text<'t>(&'t str);

impl Utf16Text<'_> {
    /// Returns the byte offset of a position: the end of the text if it is past it, and the start of a character if
    /// it is within one.
    fn to_byte_offset(&self, units: u32) -> usize {
        let mut counted = 0;
        for (at, character) in self.0.char_indices() {
            counted += character.len_utf16();
            if counted > units as usize {
                return at;
            }
        }
        self.0.len()
    }

    /// Returns the position of a byte offset.
    fn to_units(&self, bytes: usize) -> u32 {
        let before = self.0.char_indices().take_while(|(at, _)| *at < bytes);
        before.map(|(_, character)| character.len_utf16() as u32).sum()
    }

    fn to_edits(&self, edits: Vec<(Range<usize>, String)>) -> Vec<PlaygroundEdit> {
        let edit = |(range, insert): (Range<usize>, String)| PlaygroundEdit {
            from: self.to_units(range.start),
            to: self.to_units(range.end),
            insert,
        };
        edits.into_iter().map(edit).collect()
    }

    fn to_problem(&self, problem: TextProblem) -> PlaygroundProblem {
        let correction = |Correction { title, edits }: Correction| PlaygroundCorrection {
            title,
            edits: self.to_edits(edits),
        };
        PlaygroundProblem {
            from: self.to_units(problem.range.start),
            to: self.to_units(problem.range.end),
            severity: match problem.severity {
                Severity::Error => PlaygroundSeverity::Error,
                Severity::Warning => PlaygroundSeverity::Warning,
                Severity::Information => PlaygroundSeverity::Info,
            },
            message: problem.message,
            corrections: problem.corrections.into_iter().map(correction).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf16_units() {
        let text = Utf16Text("a🦀b");
        for (units, bytes) in [(0, 0), (1, 1), (3, 5), (4, 6), (99, 6)] {
            assert_eq!(text.to_byte_offset(units), bytes, "{units}");
        }
        // Within the crab.
        assert_eq!(text.to_byte_offset(2), 1);
        assert_eq!([0, 1, 5, 6].map(|bytes| text.to_units(bytes)), [0, 1, 3, 4]);
    }
}
