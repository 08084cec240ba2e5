//! Words of the languages with their meanings, for hovers, completion and corrections.

/// A group of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Keywords and modifiers of the native dialect of litmus tests.
    Litmus,
    /// Keys of the header of a test.
    Header,
    /// Keywords and built-in functions of cat.
    Cat,
    /// Statuses in files of known failures.
    Status,
    /// Keys of stress files.
    Stress,
    /// Keys of case files.
    Case,
}

/// A word with its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordEntry {
    pub word: &'static str,
    /// One sentence without a full stop.
    pub meaning: &'static str,
}

/// Lines of a topic, a word and a meaning.
const WORD_TABLE: &str = include_str!("words.tsv");

impl Topic {
    fn name(self) -> &'static str {
        match self {
            Topic::Litmus => "litmus",
            Topic::Header => "header",
            Topic::Cat => "cat",
            Topic::Status => "status",
            Topic::Stress => "stress",
            Topic::Case => "case",
        }
    }
}

/// Returns the words of a topic with their meanings, in the order of the table.
pub fn topic_entries(topic: Topic) -> impl Iterator<Item = WordEntry> {
    WORD_TABLE.lines().filter_map(move |line| {
        let mut fields = line.split('\t');
        let (name, word, meaning) = (fields.next()?, fields.next()?, fields.next()?);
        (name == topic.name()).then_some(WordEntry { word, meaning })
    })
}

pub fn topic_words(topic: Topic) -> impl Iterator<Item = &'static str> {
    topic_entries(topic).map(|entry| entry.word)
}

pub fn word_meaning(topic: Topic, word: &str) -> Option<&'static str> {
    topic_entries(topic).find(|entry| entry.word == word).map(|entry| entry.meaning)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_keyword_of_litmus_tests_has_a_meaning() {
        let missing: Vec<&str> = litmus::syntax::keywords_by_category()
            .into_iter()
            // Names that other tools reserve have no meaning here.
            .filter(|(group, _)| !group.starts_with("words that no location"))
            .flat_map(|(_, words)| words)
            .filter(|word| word_meaning(Topic::Litmus, word).is_none())
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn every_key_of_presets_has_a_meaning() {
        for preset in runner::Stress::preset_names() {
            let text = runner::Stress::preset(preset).unwrap().to_toml().unwrap();
            let keys = text.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key.trim());
            let missing: BTreeSet<&str> =
                keys.filter(|key| word_meaning(Topic::Stress, key).is_none()).collect();
            assert_eq!(missing, BTreeSet::new(), "{preset}");
        }
    }

    #[test]
    fn every_line_of_the_table_belongs_to_a_topic() {
        use Topic::{Case, Cat, Header, Litmus, Status, Stress};
        let all = [Litmus, Header, Cat, Status, Stress, Case];
        let known: usize = all.into_iter().map(|topic| topic_entries(topic).count()).sum();
        assert_eq!(known, WORD_TABLE.lines().count());
        for topic in all {
            let words: Vec<&str> = topic_words(topic).collect();
            assert_eq!(words.len(), words.iter().collect::<BTreeSet<_>>().len(), "{topic:?} repeats a word");
        }
    }
}
