//! Rules on prose: comments and Markdown use standard terms, and a documentation comment starts with a
//! description of its item.

use super::source::{Finding, SourceFile};

/// Rejected words and phrases, each with its replacement.
const REFUSED_WORDS: [(&str, &str); 8] = [
    ("whoever", "the thread, driver or caller that"),
    ("whom", "the thread, driver or caller that"),
    ("nobody", "no thread, no invocation or no option"),
    ("somebody", "a thread, a driver or a caller"),
    ("anew", "again"),
    ("so many", "the number"),
    ("so much", "the amount"),
    ("of their own", "their"),
];

/// First words of a documentation comment that describe the reader's question instead of the item.
const REFUSED_STARTS: [&str; 3] = ["What", "Who", "So"];

/// Rejects words that are not the field's, in comments of Rust code and in Markdown outside code blocks.
pub fn refused_words(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        let prose = if file.path.ends_with(".rs") {
            line.trim_start().strip_prefix("//")
        } else {
            in_code ^= line.trim_start().starts_with("```");
            (!in_code).then_some(line)
        };
        let prose = prose.unwrap_or_default();
        for (refused, replacement) in REFUSED_WORDS {
            if has_phrase(prose, refused) {
                let message = format!("`{refused}` in prose: write \"{replacement}\"");
                findings.push(Finding { file: file.path.clone(), line: number, message });
            }
        }
    }
    findings
}

/// Rejects documentation comments that begin with a question word.
pub fn refused_first_words(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before = "";
    for (number, line) in (1..).zip(file.text.lines()) {
        let first = line.trim_start().strip_prefix("/// ").and_then(|text| text.split_whitespace().next());
        let is_start = !before.trim_start().starts_with("///");
        if let Some(word) = first.filter(|word| is_start && REFUSED_STARTS.contains(word)) {
            let message =
                format!("a documentation comment starts with `{word}`: state what the item is or returns");
            findings.push(Finding { file: file.path.clone(), line: number, message });
        }
        before = line;
    }
    findings
}

/// Returns true if a text has these words, in any case, and not as parts of others.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let text = text.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + phrase.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
