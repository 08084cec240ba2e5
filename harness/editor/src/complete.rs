//! Completion: words that are valid at the cursor.

use std::ops::Range;

use litmus::corpus;
use model::clauses::list_clauses;
use model::{BASE_RELATIONS, BASE_SETS, Model};
use runner::RunVariant;

use crate::DocumentLanguage;
use crate::problem::word_range;
use crate::words::{Topic, topic_entries};

/// A word that is valid at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedWord {
    pub word: String,
    /// Its meaning; empty if the word explains itself.
    pub meaning: String,
}

/// The words for a cursor, and the bytes that they replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The bytes of the word at the cursor.
    pub range: Range<usize>,
    pub candidates: Vec<ProposedWord>,
}

/// Instructions of the native dialect, which begin a cell.
const INSTRUCTIONS: [&str; 26] = [
    "st",
    "ld",
    "rmw",
    "membar",
    "cbar",
    "avdevice",
    "visdevice",
    "flush",
    "invalidate",
    "submit",
    "wait",
    "call",
    "barrier",
    "set",
    "await",
    "signal",
    "transfer",
    "interlock",
    "sg",
    "goto",
    "beq",
    "bne",
    "bge",
    "ble",
    "bgt",
    "blt",
];

/// Returns the words that are valid at a byte offset.
pub fn complete(language: DocumentLanguage, text: &str, offset: usize) -> Completion {
    let before = text.get(..offset).unwrap_or(text);
    let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    // Comments and headers cite clauses.
    let clause = word_range(text, offset, "-");
    let typed = before.get(clause.start..).unwrap_or_default();
    if typed.starts_with("VK") || typed.starts_with("HSA-") || line.trim_start().starts_with("clause:") {
        return Completion { range: clause, candidates: clause_ids() };
    }
    let (more, candidates) = match language {
        DocumentLanguage::Litmus => complete_test(before, line),
        DocumentLanguage::Cat => ("-", complete_model(text)),
        DocumentLanguage::Expectations if line.contains(',') => ("", topic_words(Topic::Status)),
        DocumentLanguage::Expectations | DocumentLanguage::Suite if line.contains('@') => {
            ("-", variant_words())
        }
        DocumentLanguage::Expectations | DocumentLanguage::Suite => ("/+.-", test_ids()),
        DocumentLanguage::Stress => ("", topic_words(Topic::Stress)),
        DocumentLanguage::Case => ("", topic_words(Topic::Case)),
        DocumentLanguage::Shader => ("", Vec::new()),
    };
    Completion { range: word_range(text, offset, more), candidates }
}

fn candidate(word: &str, meaning: &str) -> ProposedWord {
    ProposedWord { word: word.to_owned(), meaning: meaning.to_owned() }
}

fn topic_words(topic: Topic) -> Vec<ProposedWord> {
    topic_entries(topic).map(|entry| candidate(entry.word, entry.meaning)).collect()
}

fn clause_ids() -> Vec<ProposedWord> {
    list_clauses().iter().map(|clause| candidate(clause.id, clause.statement)).collect()
}

fn variant_words() -> Vec<ProposedWord> {
    RunVariant::words().map(|word| candidate(word, "")).collect()
}

fn test_ids() -> Vec<ProposedWord> {
    corpus::tests().iter().chain(&corpus::model_only_tests()).map(|test| candidate(&test.id, "")).collect()
}

fn complete_test(before: &str, line: &str) -> (&'static str, Vec<ProposedWord>) {
    let litmus = |includes: &dyn Fn(&str) -> bool| -> Vec<ProposedWord> {
        topic_entries(Topic::Litmus)
            .filter(|entry| includes(entry.word))
            .map(|entry| candidate(entry.word, entry.meaning))
            .collect()
    };
    if !before.contains('{') {
        let Some((key, value)) = line.split_once(':') else { return ("", topic_words(Topic::Header)) };
        let words: Vec<&str> = value.split_whitespace().collect();
        // The word at the cursor does not count yet.
        let complete_words = words.len() - usize::from(!value.ends_with(' ') && !words.is_empty());
        return match (key.trim(), complete_words) {
            ("expect", 0) => {
                ("-", Model::shipped_models().iter().map(|(name, about)| candidate(name, about)).collect())
            }
            ("expect", 1) => (
                "",
                vec![
                    candidate("allowed", "some execution shows it"),
                    candidate("forbidden", "none shows it"),
                ],
            ),
            ("expect", 2) => ("", vec![candidate("free", "no data race"), candidate("racy", "a data race")]),
            ("terminates", 0) => {
                ("", vec![candidate("weak", "weak fairness"), candidate("strong", "strong fairness")])
            }
            ("reconvergence", 0) => ("", vec![candidate("maximal", "")]),
            _ => ("", Vec::new()),
        };
    }
    let cell = line.rsplit(['|', ';', '{', '}']).next().unwrap_or_default().trim_start();
    let is_modifier = cell.rfind('.').is_some_and(|dot| !cell[dot..].contains(' '));
    let candidates = if is_modifier {
        litmus(&|word| !INSTRUCTIONS.contains(&word) || ["sg", "wait"].contains(&word))
    } else if before.ends_with('}') || cell.is_empty() || !cell.contains(' ') {
        litmus(&|word| {
            INSTRUCTIONS.contains(&word) || ["exists", "forall", "filter", "locations", "ssw"].contains(&word)
        })
    } else {
        Vec::new()
    };
    ("", candidates)
}

fn complete_model(text: &str) -> Vec<ProposedWord> {
    let mut all = topic_words(Topic::Cat);
    all.extend(BASE_SETS.iter().chain(BASE_RELATIONS).map(|(name, about)| candidate(name, about)));
    for line in text.lines() {
        let bare = line.trim();
        let rest = ["let rec ", "let ", "and ", "procedure "].iter().find_map(|word| bare.strip_prefix(word));
        let Some(rest) = rest else { continue };
        let is_part = |c: char| c.is_alphanumeric() || "_-.'".contains(c);
        let name = &rest[..rest.len() - rest.trim_start_matches(is_part).len()];
        if !name.is_empty() && all.iter().all(|known| known.word != name) {
            all.push(candidate(name, bare));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes at `§`; returns the replaced text and the words.
    fn completed_words(language: DocumentLanguage, marked: &str) -> (String, Vec<String>) {
        let offset = marked.find('§').unwrap();
        let text = marked.replace('§', "");
        let found = complete(language, &text, offset);
        (text[found.range].to_owned(), found.candidates.into_iter().map(|found| found.word).collect())
    }

    #[test]
    fn completions_fit_the_cursor() {
        use DocumentLanguage::{Case, Cat, Expectations, Litmus, Stress, Suite};
        let cases = [
            (Litmus, "VULKAN A\nexp§", "exp", Some("expect"), Some("st")),
            (Litmus, "VULKAN A\nexpect: vul§", "vul", Some("vulkan"), Some("allowed")),
            (Litmus, "VULKAN A\nexpect: vulkan §", "", Some("forbidden"), Some("vulkan")),
            (Litmus, "VULKAN A\nclause: VK-S§", "VK-S", Some("VK-SW-01"), Some("expect")),
            (Litmus, "V A\n{ x = 0; }\nP0@sg 0 ;\ns§", "s", Some("st"), Some("sc0")),
            (Litmus, "V A\n{ x = 0; }\nP0@sg 0 ;\nst x, 1 | st.av.d§", "d", Some("dv"), Some("st")),
            (Litmus, "V A\n{ x = 0; }\nP0@sg 0 ;\nst x§", "x", None, Some("st")),
            (Cat, "let mine = rf\nempty mi§", "mi", Some("mine"), None),
            (Cat, "(* VK-LO§ *)", "VK-LO", Some("VK-LO-05"), Some("let")),
            (Expectations, "mp/MP§", "mp/MP", Some("mp/MP+rel-acq"), Some("Fail")),
            (Expectations, "mp/MP+rel-acq@sp§", "sp", Some("split"), Some("Fail")),
            (Expectations, "mp/MP+rel-acq,F§", "F", Some("Fail"), Some("split")),
            (Suite, "s§", "s", Some("sb/SB+rlx-rlx"), None),
            (Stress, "sp§", "sp", Some("spin"), Some("grid")),
            (Case, "gr§", "gr", Some("grid"), Some("spin")),
        ];
        for (language, text, replaced, has, lacks) in cases {
            let (word, found) = completed_words(language, text);
            assert_eq!(word, replaced, "{text}");
            let contains = |word: &str| found.iter().any(|found| found == word);
            assert!(has.is_none_or(contains), "{text} lacks {has:?}");
            assert!(!lacks.is_some_and(contains), "{text} has {lacks:?}");
        }
    }
}
