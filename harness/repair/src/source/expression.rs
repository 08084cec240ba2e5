//! The forms of expressions that fixes recognize, without a grammar.

use super::text::closing_bracket_end;

/// Removes all blanks from a text.
pub(super) fn remove_whitespace(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns true if a text is an element of a variable: a name with members and indices.
pub(super) fn is_element(text: &str) -> bool {
    let text = text.trim();
    let Some(name_end) = text.find(|c: char| !shader_source::scan::is_identifier_character(c)) else {
        return !text.is_empty();
    };
    let mut at = name_end;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with('[') {
            let Some(end) = closing_bracket_end(text, at) else { return false };
            at = end;
        } else if let Some(member) = rest.strip_prefix('.') {
            at += 1 + member
                .find(|c: char| !shader_source::scan::is_identifier_character(c))
                .unwrap_or(member.len());
        } else {
            return false;
        }
    }
    name_end > 0
}

/// Returns true if an element is the same in every invocation of a workgroup: its indices are constants or
/// the index of the workgroup.
pub(super) fn is_uniform_element(element: &str) -> bool {
    let is_constant = |name: &str| {
        let is_number = name.starts_with(|c: char| c.is_ascii_digit());
        let is_macro = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        is_number || is_macro || ["gl_WorkGroupID", "x", "y", "z"].contains(&name)
    };
    let indices = element.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    indices.flat_map(shader_source::scan::words).all(is_constant)
}

/// Returns the left and right side of an assignment.
pub(super) fn split_assignment(code: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let bytes = code.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'=' if depth == 0 => {
                let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
                let is_other_operator = b"+-*/%&|^<>=!".contains(&before) || bytes.get(at + 1) == Some(&b'=');
                return (!is_other_operator).then(|| (&code[..at], &code[at + 1..]));
            }
            _ => {}
        }
    }
    None
}
