//! Atomic types in WGSL: the edits change the declaration and every access of an element.

use std::ops::Range;

use super::expression::split_assignment;
use super::text::{ShaderText, StatementKind, closing_bracket_end};
use crate::record::CodeEdit;
use shader_source::scan::is_identifier_character;

/// Upper bound on the nesting of arrays.
const MAX_NESTING: usize = 4;

/// The elements that become atomic: a variable with its members, and `[]` for any index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AtomicPath {
    variable: String,
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Member(String),
    Index,
}

impl AtomicPath {
    /// Returns the path of an element such as `s.list[i].count`.
    pub fn parse(element: &str) -> Option<AtomicPath> {
        let (path, end) = parse_path(element, 0)?;
        (end == element.len()).then_some(path)
    }
}

/// Returns the path that starts at an offset, and the offset after it.
pub(super) fn parse_path(text: &str, start: usize) -> Option<(AtomicPath, usize)> {
    let word_at = |at: usize| -> &str {
        let rest = &text[at..];
        &rest[..rest.find(|c: char| !is_identifier_character(c)).unwrap_or(rest.len())]
    };
    let variable = word_at(start).to_owned();
    let (mut at, mut steps) = (start + variable.len(), Vec::new());
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'[' => {
                at = closing_bracket_end(text, at)?;
                steps.push(PathStep::Index);
            }
            b'.' => {
                let member = word_at(at + 1);
                at += 1 + member.len();
                steps.push(PathStep::Member(member.to_owned()));
            }
            _ => break,
        }
    }
    (!variable.is_empty()).then_some((AtomicPath { variable, steps }, at))
}

/// Returns the edits that make an element atomic, except those of statements that are already changed.
pub(super) fn declare_atomic(
    source: &ShaderText,
    path: &AtomicPath,
    edited_ranges: &[Range<usize>],
) -> Option<Vec<CodeEdit>> {
    let mut edits = vec![declaration_edit(source, path)?];
    for function in &source.functions {
        let mut at = function.body.start;
        while at < function.body.end {
            let rest = source.plain.get(at..function.body.end)?;
            let Some(found) = rest.find(path.variable.as_str()) else { break };
            let start = at + found;
            at = start + path.variable.len();
            let before = source.plain[..start].trim_end();
            let is_word_start =
                !source.plain[..start].ends_with(|c: char| is_identifier_character(c) || c == '.');
            let Some((other, end)) = parse_path(&source.plain, start).filter(|_| is_word_start) else {
                continue;
            };
            let is_edited = edited_ranges.iter().any(|range| range.contains(&start));
            if other != *path || is_edited || before.ends_with('&') {
                continue;
            }
            let element = source.plain.get(start..end)?;
            let statement = source
                .path_to(start)
                .into_iter()
                .next_back()
                .filter(|one| matches!(one.kind, StatementKind::Simple) && one.range.start == start);
            let store = statement.and_then(|one| {
                let (left, value) = split_assignment(source.code(&one.range).trim_end_matches(';'))?;
                (left.trim() == element).then(|| (one.range.clone(), value.trim().to_owned()))
            });
            match store {
                Some((range, value)) => {
                    at = range.end;
                    // A value that also reads the element is not rewritten.
                    if value.contains(path.variable.as_str()) {
                        return None;
                    }
                    edits.push(CodeEdit::replace(range, format!("atomicStore(&{element}, {value});")));
                }
                None => edits.push(CodeEdit::replace(start..end, format!("atomicLoad(&{element})"))),
            }
        }
    }
    Some(edits)
}

/// Returns the edit of the type in a declaration of a variable or member.
fn declaration_edit(source: &ShaderText, path: &AtomicPath) -> Option<CodeEdit> {
    let plain = &source.plain;
    let mut ty = module_variable_type(plain, &path.variable)?;
    for step in &path.steps {
        let text = plain.get(ty.clone())?;
        ty = match step {
            PathStep::Index => {
                let open = text.find('<')?;
                let inner = ty.start + open + 1;
                inner..inner + first_argument_length(plain.get(inner..ty.end)?)
            }
            PathStep::Member(member) => member_type(plain, text.trim(), member)?,
        };
    }
    let text = plain.get(ty.clone())?;
    let is_number = ["u32", "i32"].contains(&text.trim());
    let start = ty.start + text.len() - text.trim_start().len();
    let range = start..start + text.trim().len();
    is_number.then(|| CodeEdit::replace(range, format!("atomic<{}>", text.trim())))
}

/// Returns the length in bytes of the first argument of a type.
fn first_argument_length(arguments: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b',' | b'>' if depth == 0 => return at,
            b'>' => depth -= 1,
            _ => {}
        }
        if depth > MAX_NESTING {
            break;
        }
    }
    arguments.len()
}

/// Returns the byte range of the type of a module variable.
fn module_variable_type(plain: &str, name: &str) -> Option<Range<usize>> {
    plain.match_indices("var<").find_map(|(at, _)| {
        let end = at + plain[at..].find(';')?;
        let names = at + plain[at..end].find('>')? + 1;
        let colon = names + plain[names..end].find(':')?;
        (plain[names..colon].trim() == name).then_some(colon + 1..end)
    })
}

/// Returns the byte range of the type of a structure member.
fn member_type(plain: &str, structure: &str, member: &str) -> Option<Range<usize>> {
    let open = plain.match_indices("struct").find_map(|(at, _)| {
        let open = at + plain[at..].find('{')?;
        (plain[at + "struct".len()..open].trim() == structure).then_some(open)
    })?;
    let end = closing_bracket_end(plain, open)? - 1;
    let mut at = open + 1;
    while at < end {
        // The comma after a member is outside the brackets of its type.
        let length = first_argument_length(&plain[at..end]);
        let text = &plain[at..at + length];
        if let Some(colon) = text.rfind(':')
            && text[..colon].trim().ends_with(member)
            && !text[..colon].trim().trim_end_matches(member).ends_with(is_identifier_character)
        {
            return Some(at + colon + 1..at + length);
        }
        at += length + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::edit::SourceFix;

    #[test]
    fn declaration_and_accesses_change_together() {
        let text = "struct S { n: u32, list: array<u32, 4>, }\n\
                    @group(0) @binding(0) var<storage, read_write> s: S;\n\
                    @compute @workgroup_size(4) fn main() {\n    s.list[0] += 1u;\n    s.list[1] = 2u;\n    s.n = s.list[2];\n}\n";
        let source = ShaderText::parse(spirv_reader::ShaderLanguage::Wgsl, text);
        let update = text.find("s.list[0]").unwrap();
        let path = AtomicPath::parse("s.list[0]").unwrap();
        let range = update..update + "s.list[0] += 1u;".len();
        let mut edits = declare_atomic(&source, &path, std::slice::from_ref(&range)).unwrap();
        edits.push(CodeEdit::replace(range, "atomicAdd(&s.list[0], 1u);".to_owned()));
        let fixed = SourceFix { edits, changes: Vec::new() }.apply(text).unwrap();
        assert!(fixed.contains("list: array<atomic<u32>, 4>, }"), "{fixed}");
        assert!(fixed.contains("atomicStore(&s.list[1], 2u);\n    s.n = atomicLoad(&s.list[2]);"), "{fixed}");
    }
}
