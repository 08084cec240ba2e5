//! Hovers: the meaning of the word under the cursor, as Markdown.

use std::ops::Range;

use litmus::corpus;
use model::clauses::{Clause, list_citations, list_clauses};
use model::{BASE_RELATIONS, BASE_SETS, Model};

use crate::DocumentLanguage;
use crate::problem::word_range;
use crate::words::{Topic, word_meaning};

/// The meaning of a word, with the word's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The bytes of the word.
    pub range: Range<usize>,
    pub markdown: String,
}

/// Returns the meaning of the word at a byte offset.
pub fn hover(language: DocumentLanguage, text: &str, offset: usize) -> Option<Meaning> {
    let long = word_range(text, offset, "-.");
    let clause = text.get(trim_punctuation(text, long.clone())).and_then(clause_text);
    if let Some(markdown) = clause {
        return Some(Meaning { range: trim_punctuation(text, long), markdown });
    }
    let more = match language {
        DocumentLanguage::Litmus
        | DocumentLanguage::Stress
        | DocumentLanguage::Case
        | DocumentLanguage::Shader => "",
        DocumentLanguage::Cat => "-",
        DocumentLanguage::Expectations | DocumentLanguage::Suite => "/+.@-",
    };
    let range = word_range(text, offset, more);
    let word = text.get(range.clone()).filter(|word| !word.is_empty())?;
    let markdown = match language {
        DocumentLanguage::Litmus => test_meaning(text, word, &range),
        DocumentLanguage::Cat => model_meaning(text, word, range.start),
        DocumentLanguage::Expectations | DocumentLanguage::Suite => list_meaning(word),
        DocumentLanguage::Stress => topic_text(Topic::Stress, word),
        DocumentLanguage::Case => topic_text(Topic::Case, word),
        DocumentLanguage::Shader => None,
    };
    markdown.map(|markdown| Meaning { range, markdown })
}

/// Returns a range without the punctuation at its end.
fn trim_punctuation(text: &str, range: Range<usize>) -> Range<usize> {
    let word = text.get(range.clone()).unwrap_or_default();
    range.start..range.start + word.trim_end_matches(['.', '-']).len()
}

fn topic_text(topic: Topic, word: &str) -> Option<String> {
    word_meaning(topic, word).map(|meaning| format!("**{word}**: {meaning}"))
}

/// Returns a clause of a specification with the statements that cite it.
fn clause_text(id: &str) -> Option<String> {
    let clause: Clause = list_clauses().into_iter().find(|clause| clause.id == id)?;
    let mut markdown = format!("**{id}** ({})\n\n{}", clause.specification.model_name(), clause.statement);
    if let Some(why) = clause.why {
        markdown += &format!("\n\nNot encoded: {why}");
    }
    let cited = list_citations().unwrap_or_default();
    let cited: Vec<String> = cited
        .iter()
        .filter(|citation| citation.clauses.iter().any(|clause| clause == id))
        .map(|citation| format!("`{}` ({}:{})", citation.name, citation.file, citation.line))
        .take(6)
        .collect();
    if !cited.is_empty() {
        markdown += &format!("\n\nEncoded by {}", cited.join(", "));
    }
    Some(markdown)
}

fn test_meaning(text: &str, word: &str, range: &Range<usize>) -> Option<String> {
    let line = text.get(..range.start)?.rfind('\n').map_or(0, |end| end + 1);
    let before = text.get(line..range.start)?;
    let in_header = !text.get(..range.start)?.contains('{');
    if in_header && before.trim().is_empty() && text[range.end..].starts_with(':') {
        return topic_text(Topic::Header, word);
    }
    if in_header && before.trim_start().starts_with("expect:") {
        // Names of models have hyphens.
        let long = word_range(text, range.start, "-");
        return model_text(text.get(long)?);
    }
    if !in_header && let Some(location) = location_text(text, word) {
        return Some(location);
    }
    if let Some(text) = topic_text(Topic::Litmus, word) {
        return Some(text);
    }
    // A vector type is one word with its component type.
    let (scalar, suffix) = word.split_at_checked(word.rfind('x')?)?;
    Some(format!(
        "**{word}**: {}, {}",
        word_meaning(Topic::Litmus, scalar)?,
        word_meaning(Topic::Litmus, suffix)?
    ))
}

fn model_text(name: &str) -> Option<String> {
    let (_, about) = Model::shipped_models().iter().find(|(known, _)| *known == name)?;
    Some(format!("**{name}**: {about}"))
}

/// Returns the declaration of a location of the test.
fn location_text(text: &str, name: &str) -> Option<String> {
    if word_meaning(Topic::Litmus, name).is_some() {
        return None;
    }
    let test = litmus::parse(text, "").ok()?;
    let location = test.locations.iter().find(|location| location.name == name)?;
    let start = location.span.offset as usize;
    let declared = text.get(start..)?.split([';', '}']).next()?.trim();
    Some(if location.declared {
        format!("```litmus\n{declared}\n```")
    } else {
        format!("**{name}**: not declared; it holds 0")
    })
}

fn model_meaning(text: &str, word: &str, offset: usize) -> Option<String> {
    if let Some(definition) = definition(text, word, offset) {
        return Some(format!("```cat\n{definition}\n```"));
    }
    let bases = BASE_SETS.iter().chain(BASE_RELATIONS);
    let base = bases.into_iter().find(|(name, _)| *name == word);
    base.map(|(name, about)| format!("**{name}**: {about}")).or_else(|| topic_text(Topic::Cat, word))
}

/// Returns the first line of the last definition of a name at or before a byte offset.
fn definition<'t>(text: &'t str, name: &str, offset: usize) -> Option<&'t str> {
    let mut found = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if start > offset && found.is_some() {
            break;
        }
        start += line.len();
        let bare = line.trim();
        let rest = ["let rec ", "let ", "and ", "procedure "].iter().find_map(|word| bare.strip_prefix(word));
        let rest = rest.and_then(|rest| rest.trim_start().strip_prefix(name));
        if rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '('])) {
            found = Some(bare);
        }
    }
    found
}

/// Returns the reasons of a test by its id, or the meaning of a status.
fn list_meaning(word: &str) -> Option<String> {
    if let Some(status) = topic_text(Topic::Status, word) {
        return Some(status);
    }
    let id = word.split('@').next().unwrap_or(word);
    let test = corpus::tests().into_iter().chain(corpus::model_only_tests()).find(|test| test.id == id)?;
    let why = litmus::parse(test.text, &test.path).ok()?.metadata.why.join("\n\n");
    Some(format!("**{id}**\n\n{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "VULKAN MP\nexpect: vulkan forbidden\nclause: VK-SW-01\n{ x = 0; u32x2 v = 1; }\n\
        P0@sg 0, wg 0, qf 0 ;\nst.av.dv.sc0 x, 1 ;\nld.sc0 {r0, r1}, v ;\nexists (x == 1)\n";

    #[test]
    fn keywords_have_hover_texts() {
        let cases = [
            (DocumentLanguage::Litmus, TEST, "expect", Some("**expect**: `expect: MODEL")),
            (DocumentLanguage::Litmus, TEST, "vulkan f", Some("**vulkan**: ")),
            (DocumentLanguage::Litmus, TEST, "VK-SW-01", Some("**VK-SW-01** (vulkan)\n\n")),
            (DocumentLanguage::Litmus, TEST, "av.dv", Some("**av**: a store with")),
            (DocumentLanguage::Litmus, TEST, "dv.", Some("**dv**: scope")),
            (DocumentLanguage::Litmus, TEST, "u32x2", Some("**u32x2**: unsigned 32-bit integer, suffix")),
            (DocumentLanguage::Litmus, TEST, "x, 1", Some("```litmus\nx = 0\n```")),
            (DocumentLanguage::Litmus, TEST, "MP", None),
            (DocumentLanguage::Cat, "let fr = rf\nempty fr & rf\n", "fr &", Some("```cat\nlet fr = rf\n```")),
            (DocumentLanguage::Cat, "empty rf & co", "rf", Some("**rf**: reads-from")),
            (DocumentLanguage::Cat, "(* VK-LO-05. *)", "VK", Some("**VK-LO-05**")),
            (DocumentLanguage::Cat, "empty po-loc", "po-loc", Some("**po-loc**: program order")),
            (
                DocumentLanguage::Expectations,
                "mp/MP+rel-acq,Fail",
                "mp/",
                Some("**mp/MP+rel-acq**\n\nThe acquire"),
            ),
            (DocumentLanguage::Expectations, "mp/MP+rel-acq,Fail", "Fail", Some("**Fail**: ")),
            (DocumentLanguage::Stress, "spin = [1, 2]", "spin", Some("**spin**: range")),
            (DocumentLanguage::Case, "grid = [1]", "grid", Some("**grid**: the number")),
            (DocumentLanguage::Shader, "void main() {}", "void", None),
        ];
        for (language, text, at, expected) in cases {
            let found = hover(language, text, text.find(at).unwrap() + 1);
            let found = found.map(|meaning| meaning.markdown);
            match expected {
                Some(expected) => assert!(
                    found.as_deref().is_some_and(|text| text.starts_with(expected)),
                    "{at}: {found:?}"
                ),
                None => assert_eq!(found, None, "{at}"),
            }
        }
    }
}
