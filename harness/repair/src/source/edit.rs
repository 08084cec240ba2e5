//! Edits of a source text, and the fixes that consist of them.

use results::wire::ShaderChange;
use spirv_reader::ShaderLanguage;

use super::text::ShaderText;
use crate::record::{CodeEdit, apply_edits, sort_edits};

/// A fix that is not verified yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceFix {
    /// The edits; empty for a fix that edits cannot express.
    pub edits: Vec<CodeEdit>,
    /// The changes, with their lines from 1.
    pub changes: Vec<(u32, ShaderChange)>,
}

impl SourceFix {
    pub fn new(edits: Vec<CodeEdit>, line: u32, change: ShaderChange) -> SourceFix {
        SourceFix { edits, changes: vec![(line, change)] }
    }

    /// Returns the text with all edits; `None` if they overlap.
    pub fn apply(&self, text: &str) -> Option<String> {
        let mut edits = self.edits.clone();
        sort_edits(&mut edits);
        apply_edits(&edits, text)
    }
}

/// Returns a text with another indentation of its lines after the first.
pub(super) fn reindent(text: &str, old: &str, new: &str) -> String {
    let mut lines = text.lines();
    let mut reindented = lines.next().unwrap_or_default().trim_start().to_owned();
    for line in lines {
        reindented.push('\n');
        if !line.trim().is_empty() {
            reindented.push_str(new);
            reindented.push_str(line.strip_prefix(old).unwrap_or(line.trim_start()));
        }
    }
    reindented
}

/// Returns the negation of a condition, without parentheses around it.
pub(super) fn negate(condition: &str) -> String {
    let condition = condition.trim();
    for (operator, dual_operator) in [("||", " && "), ("&&", " || ")] {
        let parts = split_outside_brackets(condition, operator);
        if parts.len() > 1 {
            let parts: Vec<String> = parts.iter().map(|part| negate(part)).collect();
            let is_simple = |part: &String| !part.contains("||") && !part.contains("&&");
            if parts.iter().all(is_simple) {
                return parts.join(dual_operator);
            }
            return format!("!({condition})");
        }
    }
    for (comparison, inverse) in
        [("<=", ">"), (">=", "<"), ("==", "!="), ("!=", "=="), ("<", ">="), (">", "<=")]
    {
        if let [left, right] = &split_outside_brackets(condition, comparison)[..]
            && !right.starts_with(['=', '<', '>'])
            && !left.ends_with(['<', '>', '!'])
        {
            return format!("{} {inverse} {}", left.trim(), right.trim());
        }
    }
    match condition.strip_prefix('!') {
        Some(inner) if inner.chars().all(|c| shader_source::scan::is_identifier_character(c) || c == '.') => {
            inner.to_owned()
        }
        _ if condition.chars().all(|c| shader_source::scan::is_identifier_character(c) || c == '.') => {
            format!("!{condition}")
        }
        _ => format!("!({condition})"),
    }
}

/// Splits a text at a separator outside brackets.
pub(super) fn split_outside_brackets<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut at) = (0_usize, 0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest[0] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && rest.starts_with(separator.as_bytes()) => {
                parts.push(&text[start..at]);
                at += separator.len();
                start = at;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&text[start..]);
    parts
}

/// Returns an `if` statement with a body.
pub(super) fn guard_statement(source: &ShaderText, condition: &str, body: &str, indentation: &str) -> String {
    let unit = source.indentation_unit();
    let inner = format!("{indentation}{unit}");
    let body = reindent(body, indentation, &inner);
    if source.language == ShaderLanguage::Wgsl {
        return format!("if {condition} {{\n{inner}{body}\n{indentation}}}");
    }
    match body.contains('\n') || body.matches(';').count() != 1 {
        true => format!("if ({condition}) {{\n{inner}{body}\n{indentation}}}"),
        false => format!("if ({condition})\n{inner}{body}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_negated() {
        let cases = [
            ("i >= count", "i < count"),
            ("a.x < n && b(c, d) != 1", "a.x >= n || b(c, d) == 1"),
            ("!done", "done"),
            ("done", "!done"),
            ("a << 2 == b", "a << 2 != b"),
            ("f(x || y)", "!(f(x || y))"),
            ("a || b && c", "!(a || b && c)"),
        ];
        for (condition, negated) in cases {
            assert_eq!(negate(condition), negated);
        }
    }
}
