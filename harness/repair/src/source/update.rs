//! Fixes that turn plain read-modify-writes into atomic functions of the source language.

use std::ops::Range;

use results::wire::{ReplacedAccesses, ShaderChange};
use spirv_reader::ShaderLanguage;

use super::divergence::{parse_declaration, variable_names};
use super::edit::{SourceFix, split_outside_brackets};
use super::expression::{is_element, remove_whitespace, split_assignment};
use super::finding::RepairTarget;
use super::text::{ShaderStatement, ShaderText, StatementKind, closing_bracket_end};
use super::wgsl_atomic::{AtomicPath, declare_atomic};
use crate::record::CodeEdit;

/// The extension for atomic additions of floating-point numbers.
const FLOAT_ATOMICS: &str = "GL_EXT_shader_atomic_float";

/// A read-modify-write of one element.
#[derive(Clone, Debug)]
pub(super) struct SourceUpdate {
    /// The statement to replace.
    pub range: Range<usize>,
    /// A second statement, which the atomic function replaces.
    pub removed_statement: Option<Range<usize>>,
    pub element: String,
    /// The name after `atomic` or `Interlocked`.
    pub function: &'static str,
    pub operand: String,
    /// The use of the old value.
    pub old_value: OldValue,
}

impl SourceUpdate {
    /// Returns an update whose old value is not used.
    fn new(range: &Range<usize>, element: &str, function: &'static str, operand: &str) -> SourceUpdate {
        SourceUpdate {
            range: range.clone(),
            removed_statement: None,
            element: element.trim().to_owned(),
            function,
            operand: operand.trim().to_owned(),
            old_value: OldValue::Unused,
        }
    }
}

/// The use of the value before an update.
#[derive(Clone, Debug)]
pub(super) enum OldValue {
    Unused,
    /// `T v = L;`: the type (empty without a declaration) and the name.
    Named(String, String),
    /// A statement that contains the update: the text before and after it.
    Within(String, String),
    /// `if (L == A)`: the compared value; the operand is the new one.
    Compared(String),
    /// An update of a texel: the element is image and coordinate.
    Texel,
}

/// Returns candidates that make the updates of a variable atomic.
pub(super) fn update_fixes(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let all: Vec<SourceUpdate> = source
        .statements()
        .into_iter()
        .filter_map(|one| parse_update(source, one))
        .filter(|update| target.may_be_element(&update.element))
        .collect();
    let has_line = |update: &&SourceUpdate| {
        let ranges = [Some(&update.range), update.removed_statement.as_ref()];
        ranges.into_iter().flatten().any(|range| {
            let lines = source.line_of(range.start)..=source.line_of(range.end.saturating_sub(1));
            target.lines.iter().any(|line| lines.contains(line))
        })
    };
    let updates_near_finding: Vec<SourceUpdate> = all.iter().filter(has_line).cloned().collect();
    if updates_near_finding.is_empty() {
        return Vec::new();
    }
    let mut fixes: Vec<SourceFix> = expand_increments(source, &updates_near_finding).into_iter().collect();
    let mut sets = vec![updates_near_finding];
    if sets[0].len() < all.len() {
        sets.push(all);
    }
    for updates in sets {
        fixes.extend(atomic_fix(source, &updates, false));
        if source.language == ShaderLanguage::Glsl {
            fixes.extend(atomic_fix(source, &updates, true));
        }
    }
    fixes
}

/// Returns the fix that writes `x++` as `x = x + 1`: for `x++`, glslang omits the memory operands of the
/// store, so no barrier makes it available.
fn expand_increments(source: &ShaderText, updates: &[SourceUpdate]) -> Option<SourceFix> {
    if source.language != ShaderLanguage::Glsl {
        return None;
    }
    let mut fix = SourceFix::default();
    for update in updates {
        let text = &source.text[update.range.clone()];
        let Some((element, operand)) = text.trim().strip_suffix(';').and_then(parse_increment) else {
            continue;
        };
        let operator = if operand == "1" { '+' } else { '-' };
        let written = format!("{element} = {element} {operator} 1");
        fix.edits.push(CodeEdit::replace(update.range.clone(), format!("{written};")));
        let change =
            ShaderChange::ExpandIncrement { new: written, old: format!("{element}{operator}{operator}") };
        fix.changes.push((source.line_of(update.range.start), change));
    }
    (!fix.edits.is_empty()).then_some(fix)
}

/// Returns the fix for some updates.
fn atomic_fix(source: &ShaderText, updates: &[SourceUpdate], is_float: bool) -> Option<SourceFix> {
    let mut fix = SourceFix::default();
    for update in updates {
        let text = atomic_statement(source, update)?;
        let call = atomic_call(source.language, update);
        let declares = source.language == ShaderLanguage::Wgsl;
        let replaces = match update.old_value {
            OldValue::Compared(_) if !declares => ReplacedAccesses::ComparisonAndStore,
            _ => ReplacedAccesses::LoadAndStore,
        };
        let extension = is_float.then(|| FLOAT_ATOMICS.to_owned());
        let change = ShaderChange::UseAtomic { function: call, replaces, declares, extension };
        fix.changes.push((source.line_of(update.range.start), change));
        fix.edits.push(CodeEdit::replace(update.range.clone(), text));
        fix.edits.extend(update.removed_statement.iter().map(|range| delete_statement(source, range)));
    }
    if source.language == ShaderLanguage::Wgsl {
        let first = updates.first()?;
        let path = AtomicPath::parse(&first.element)?;
        let edited_ranges: Vec<Range<usize>> = fix.edits.iter().map(|edit| edit.range.clone()).collect();
        fix.edits.extend(declare_atomic(source, &path, &edited_ranges)?);
    }
    if is_float {
        let version = source.text.find("#version")?;
        let at = version + source.text[version..].find('\n')? + 1;
        fix.edits.push(CodeEdit::insert(at, format!("#extension {FLOAT_ATOMICS} : require\n")));
    }
    Some(fix)
}

/// Removes a statement with its line, if nothing else is on it.
fn delete_statement(source: &ShaderText, range: &Range<usize>) -> CodeEdit {
    let text = &source.text;
    let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |end| range.end + end + 1);
    let is_alone = text[start..range.start].trim().is_empty() && text[range.end..end].trim().is_empty();
    CodeEdit::replace(if is_alone { start..end } else { range.clone() }, String::new())
}

fn atomic_call(language: ShaderLanguage, update: &SourceUpdate) -> String {
    match (language, &update.old_value) {
        (ShaderLanguage::Glsl, OldValue::Texel) => format!("imageAtomic{}", update.function),
        _ => language.atomic_named(update.function),
    }
}

/// Returns the statement with the atomic function.
fn atomic_statement(source: &ShaderText, update: &SourceUpdate) -> Option<String> {
    let call = atomic_call(source.language, update);
    let (element, operand) = (&update.element, &update.operand);
    let is_hlsl = source.language.has_hlsl_functions();
    let at = source.language.atomic_argument(element);
    let indentation = source.indentation(update.range.start);
    Some(match &update.old_value {
        OldValue::Unused | OldValue::Texel => format!("{call}({at}, {operand});"),
        OldValue::Named(ty, name) if is_hlsl && !ty.is_empty() => {
            format!("{ty} {name};\n{indentation}{call}({at}, {operand}, {name});")
        }
        OldValue::Named(_, name) if is_hlsl => format!("{call}({at}, {operand}, {name});"),
        OldValue::Named(ty, name) if ty.is_empty() => format!("{name} = {call}({at}, {operand});"),
        OldValue::Named(ty, name) => format!("{ty} {name} = {call}({at}, {operand});"),
        OldValue::Within(before, after) if is_hlsl => {
            let name = "old_value";
            if source.plain.contains(name) {
                return None;
            }
            format!(
                "{{\n{indentation}    uint {name};\n{indentation}    {call}({at}, {operand}, {name});\n{indentation}    {before}{name}{after}\n{indentation}}}"
            )
        }
        OldValue::Within(before, after) => format!("{before}{call}({at}, {operand}){after}"),
        OldValue::Compared(compared) => match source.language {
            ShaderLanguage::Glsl | ShaderLanguage::OpenClC => {
                format!("if ({call}({at}, {compared}, {operand}) == {compared})")
            }
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => format!(
                "uint old_value;\n{indentation}{call}({at}, {compared}, {operand}, old_value);\n{indentation}if (old_value == {compared})"
            ),
            ShaderLanguage::Wgsl => format!("if {call}({at}, {compared}, {operand}).exchanged"),
        },
    })
}

fn is_same_expression(left: &str, right: &str) -> bool {
    remove_whitespace(left) == remove_whitespace(right)
}

/// Returns the update that a statement makes.
fn parse_update(source: &ShaderText, statement: &ShaderStatement) -> Option<SourceUpdate> {
    if let StatementKind::If { condition, then, otherwise } = &statement.kind {
        return match otherwise {
            None => parse_extremum(source, statement, condition, then),
            Some(_) => None,
        }
        .or_else(|| parse_compare_and_swap(source, statement, condition, then));
    }
    if !matches!(statement.kind, StatementKind::Simple) {
        return None;
    }
    let code = source.code(&statement.range).trim_end_matches(';').trim().to_owned();
    let update = |element: &str, function, operand: String, old_value| SourceUpdate {
        old_value,
        ..SourceUpdate::new(&statement.range, element, function, &operand)
    };
    if let Some((element, operand)) = parse_increment(&code) {
        return Some(update(element, "Add", operand.to_owned(), OldValue::Unused));
    }
    if let Some(found) = parse_texel_update(&code) {
        return Some(update(&found.0, found.1, found.2, OldValue::Texel));
    }
    let functions = [("+=", "Add"), ("-=", "Sub"), ("&=", "And"), ("|=", "Or"), ("^=", "Xor")];
    for (operator, function) in functions {
        if let [element, operand] = split_outside_brackets(&code, operator)[..]
            && is_element(element)
        {
            return Some(normalize_subtraction(
                source,
                update(element, function, operand.trim().to_owned(), OldValue::Unused),
            ));
        }
    }
    if let Some((left, right)) = split_assignment(&code) {
        if is_element(left)
            && let Some((function, operand)) = parse_operation(left, right)
        {
            return Some(normalize_subtraction(source, update(left, function, operand, OldValue::Unused)));
        }
        let (ty, name) = match parse_declaration(&code) {
            Some(declaration) => (declaration.head.to_owned(), declaration.name.to_owned()),
            None => (String::new(), left.trim().to_owned()),
        };
        if let Some((element, operand)) = parse_increment(right) {
            return Some(update(element, "Add", operand.to_owned(), OldValue::Named(ty, name)));
        }
        if is_element(right)
            && !name.is_empty()
            && let Some(found) = parse_fetch_then_store(source, statement, right.trim(), &ty, &name)
        {
            return Some(found);
        }
    }
    parse_nested_increment(&code).map(|(before, element, operand, after)| {
        update(&element, "Add", operand.to_owned(), OldValue::Within(before, format!("{after};")))
    })
}

/// Returns the element of `x++`, `x--` and their prefix forms, with the operand.
fn parse_increment(code: &str) -> Option<(&str, &'static str)> {
    let code = code.trim();
    let stepped = |element: &'_ str| is_element(element);
    let (element, operand) = if let Some(element) = code.strip_suffix("++").or(code.strip_prefix("++")) {
        (element, "1")
    } else {
        (code.strip_suffix("--").or(code.strip_prefix("--"))?, "-1")
    };
    stepped(element).then_some((element.trim(), operand))
}

/// Returns the text before and after an `x++` whose value is used.
fn parse_nested_increment(code: &str) -> Option<(String, String, &'static str, String)> {
    let at = code.find("++")?;
    let before = &code[..at];
    let mut start = before.len();
    // Scans backwards over names, members and indices.
    while start > 0 {
        let last = before.as_bytes()[start - 1];
        if last == b']' {
            let mut depth = 0_usize;
            while start > 0 {
                start -= 1;
                match before.as_bytes()[start] {
                    b']' => depth += 1,
                    b'[' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
        } else if last.is_ascii_alphanumeric() || last == b'_' || last == b'.' {
            start -= 1;
        } else {
            break;
        }
    }
    let element = &before[start..];
    let is_index = code[at + 2..].trim_start().starts_with([']', ')', ',']);
    (is_element(element) && is_index)
        .then(|| (code[..start].to_owned(), element.to_owned(), "1", code[at + 2..].to_owned()))
}

/// Returns the atomic function and operand of an expression that updates an element.
fn parse_operation(element: &str, value: &str) -> Option<(&'static str, String)> {
    let operators =
        [("+", "Add", true), ("-", "Sub", false), ("&", "And", true), ("|", "Or", true), ("^", "Xor", true)];
    for (operator, function, commutes) in operators {
        let parts = split_outside_brackets(value, operator);
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { continue };
        if parts.len() < 2 {
            continue;
        }
        let operand = if is_same_expression(first, element) {
            parts[1..].join(operator)
        } else if commutes && is_same_expression(last, element) {
            parts[..parts.len() - 1].join(operator)
        } else {
            continue;
        };
        let allowed = if operator == "+" { "<>=?|&^" } else { "<>=?|&^+-" };
        if allowed.chars().any(|other| split_outside_brackets(&operand, &other.to_string()).len() > 1) {
            continue;
        }
        return Some((function, operand.trim().to_owned()));
    }
    for (call, function) in [("min", "Min"), ("max", "Max")] {
        let Some(arguments) = value.trim().strip_prefix(call).map(str::trim_start) else { continue };
        if closing_bracket_end(arguments, 0).filter(|_| arguments.starts_with('(')) != Some(arguments.len()) {
            continue;
        }
        if let [first, second] = split_outside_brackets(&arguments[1..arguments.len() - 1], ",")[..] {
            if is_same_expression(first, element) {
                return Some((function, second.trim().to_owned()));
            }
            if is_same_expression(second, element) {
                return Some((function, first.trim().to_owned()));
            }
        }
    }
    None
}

/// Writes a subtraction as an addition of the negated operand, except in WGSL.
fn normalize_subtraction(source: &ShaderText, mut update: SourceUpdate) -> SourceUpdate {
    if update.function == "Sub" && source.language != ShaderLanguage::Wgsl {
        update.function = "Add";
        let is_simple =
            update.operand.chars().all(|c| shader_source::scan::is_identifier_character(c) || c == '.');
        update.operand =
            if is_simple { format!("-{}", update.operand) } else { format!("-({})", update.operand) };
    }
    if update.operand == "-1" && source.language == ShaderLanguage::Wgsl {
        (update.function, update.operand) = ("Sub", "1".to_owned());
    }
    update
}

/// Returns the update of `v = x; …; x = v + e;`, or the exchange of `v = x; …; x = e;`.
fn parse_fetch_then_store(
    source: &ShaderText,
    statement: &ShaderStatement,
    element: &str,
    ty: &str,
    name: &str,
) -> Option<SourceUpdate> {
    let siblings: Vec<&ShaderStatement> = match source.parent(&statement.range) {
        Some(parent) => parent.children(),
        None => source.function_at(statement.range.start)?.statements.iter().collect(),
    };
    let at = siblings.iter().position(|other| other.range == statement.range)?;
    for later in siblings.iter().skip(at + 1).take(6) {
        if !matches!(later.kind, StatementKind::Simple) {
            return None;
        }
        let code = source.code(&later.range).trim_end_matches(';');
        let Some((left, right)) =
            split_assignment(code).filter(|(left, _)| is_same_expression(left, element))
        else {
            continue;
        };
        let between = statement.range.end..later.range.start;
        let uses_later_name = variable_names(right).iter().any(|used| {
            used != name
                && siblings[at + 1..].iter().any(|other| {
                    other.range.end <= between.end
                        && parse_declaration(source.code(&other.range))
                            .is_some_and(|found| found.name == used)
                })
        });
        if uses_later_name {
            return None;
        }
        let (function, operand) = match parse_operation(name, right) {
            Some(found) => found,
            None if !variable_names(right).contains(name) => ("Exchange", right.trim().to_owned()),
            None => return None,
        };
        let update = SourceUpdate {
            removed_statement: Some(later.range.clone()),
            old_value: OldValue::Named(ty.to_owned(), name.to_owned()),
            ..SourceUpdate::new(&statement.range, left, function, &operand)
        };
        return Some(normalize_subtraction(source, update));
    }
    None
}

/// Returns the update of `if (e < x) x = e;`.
fn parse_extremum(
    source: &ShaderText,
    statement: &ShaderStatement,
    condition: &Range<usize>,
    then: &ShaderStatement,
) -> Option<SourceUpdate> {
    let [store] = then.block_statements()[..] else { return None };
    let code = source.code(&store.range).trim_end_matches(';');
    let called = parse_extremum_call(code);
    let (element, value) = called.or_else(|| split_assignment(code))?;
    let condition = source.code(condition);
    for (operator, functions) in
        [("<=", ["Min", "Max"]), (">=", ["Max", "Min"]), ("<", ["Min", "Max"]), (">", ["Max", "Min"])]
    {
        let [left, right] = split_outside_brackets(condition, operator)[..] else { continue };
        let function = if is_same_expression(left, value) && is_same_expression(right, element) {
            functions[0]
        } else if is_same_expression(left, element) && is_same_expression(right, value) {
            functions[1]
        } else {
            continue;
        };
        // The atomic function repeats the comparison, so the condition stays as a fast path.
        if called.is_some() && !code.to_lowercase().contains(&function.to_lowercase()) {
            return None;
        }
        return Some(SourceUpdate::new(&statement.range, element, function, value));
    }
    None
}

/// Returns the element and the operand of a call such as `atomicMax(x, e)`.
fn parse_extremum_call(code: &str) -> Option<(&str, &str)> {
    let (name, rest) = code.split_once('(')?;
    let calls = ["atomicMax", "atomicMin", "atomic_max", "atomic_min", "InterlockedMax", "InterlockedMin"];
    let is_call = calls.contains(&name.trim());
    let arguments = rest.trim_end().strip_suffix(')').filter(|_| is_call)?;
    let [element, value] = split_outside_brackets(arguments, ",")[..] else { return None };
    Some((element.trim().trim_start_matches('&'), value.trim()))
}

/// Returns the update of `if (x == a) { x = b; … }`.
fn parse_compare_and_swap(
    source: &ShaderText,
    statement: &ShaderStatement,
    condition: &Range<usize>,
    then: &ShaderStatement,
) -> Option<SourceUpdate> {
    let store = *then.block_statements().first()?;
    let code = source.code(&store.range).trim_end_matches(';');
    let (element, value) = split_assignment(code)?;
    let [left, right] = split_outside_brackets(source.code(condition), "==")[..] else { return None };
    let compared = match (is_same_expression(left, element), is_same_expression(right, element)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    // The store can only be removed from a body with braces.
    let StatementKind::Block(parts) = &then.kind else { return None };
    if parts.len() < 2 || source.is_unbraced(&statement.range) {
        return None;
    }
    let head = statement.range.start..then.range.start;
    let blanks = source.text[head.clone()].len() - source.text[head.clone()].trim_end().len();
    Some(SourceUpdate {
        removed_statement: Some(store.range.clone()),
        old_value: OldValue::Compared(compared.trim().to_owned()),
        ..SourceUpdate::new(&(head.start..head.end - blanks), element, "CompSwap", value)
    })
}

/// Returns the image and coordinate, the function and the operand of an update of a texel.
fn parse_texel_update(code: &str) -> Option<(String, &'static str, String)> {
    let arguments = code.strip_prefix("imageStore")?.trim();
    let inner = arguments.strip_prefix('(')?.strip_suffix(')')?;
    let parts = split_outside_brackets(inner, ",");
    let [image, coordinate, value @ ..] = &parts[..] else { return None };
    let value = value.join(",");
    let mut value = value.trim();
    for vector in ["uvec4", "ivec4"] {
        if let Some(inside) = value.strip_prefix(vector).map(str::trim) {
            let inside = inside.strip_prefix('(')?.strip_suffix(')')?;
            value = split_outside_brackets(inside, ",").first()?.trim();
        }
    }
    let load = format!("imageLoad({},{})", remove_whitespace(image), remove_whitespace(coordinate));
    let match_load = |text: &str| {
        let text = remove_whitespace(text);
        let rest = text.strip_prefix(&load)?;
        ["", ".x", ".r"].contains(&rest).then_some(())
    };
    let (function, operand) = parse_loaded_operation(value, match_load)?;
    let operand = ["uvec4(", "ivec4("]
        .iter()
        .find_map(|vector| operand.strip_prefix(vector)?.strip_suffix(')'))
        .map_or(operand.clone(), |inside| {
            split_outside_brackets(inside, ",").first().unwrap_or(&inside).trim().to_owned()
        });
    Some((format!("{}, {}", image.trim(), coordinate.trim()), function, operand))
}

/// Returns the function and the operand of an operation that has the loaded value as one operand.
fn parse_loaded_operation(
    value: &str,
    is_loaded: impl Fn(&str) -> Option<()>,
) -> Option<(&'static str, String)> {
    // The loaded operand is replaced by a name for the general case.
    for operator in ["+", "-", "&", "|", "^", ","] {
        let text = match operator {
            "," => {
                value.trim().strip_prefix("min(").or(value.trim().strip_prefix("max("))?.strip_suffix(')')?
            }
            _ => value,
        };
        let parts = split_outside_brackets(text, operator);
        let Some(found) = parts.iter().find(|part| is_loaded(part).is_some()) else { continue };
        return parse_operation("loaded_texel", &value.replacen(found.trim(), "loaded_texel", 1));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atomic_statements(file: &str, text: &str) -> Vec<String> {
        let source = ShaderText::parse(ShaderLanguage::from_extension(&file[2..]).unwrap(), text);
        let updates = source.statements().into_iter().filter_map(|one| parse_update(&source, one));
        updates.filter_map(|update| atomic_statement(&source, &update)).collect()
    }

    #[test]
    fn updates_become_atomic_functions() {
        let cases = [
            ("a.comp", "s[i]++;", "atomicAdd(s[i], 1);"),
            ("a.comp", "s[i] = s[i] + a * b;", "atomicAdd(s[i], a * b);"),
            ("a.comp", "s -= n + 1;", "atomicAdd(s, -(n + 1));"),
            ("a.comp", "s = max(v, s);", "atomicMax(s, v);"),
            ("a.comp", "uint slot = count++;", "uint slot = atomicAdd(count, 1);"),
            ("a.comp", "list[count++] = x;", "list[atomicAdd(count, 1)] = x;"),
            ("a.comp", "uint next = head; head = i;", "uint next = atomicExchange(head, i);"),
            ("a.comp", "if (v < low) low = v;", "atomicMin(low, v);"),
            (
                "a.comp",
                "if (owner[i] == 0) { owner[i] = me; n = 1; }",
                "if (atomicCompSwap(owner[i], 0, me) == 0)",
            ),
            (
                "a.comp",
                "imageStore(count, at, uvec4(imageLoad(count, at).x + 1));",
                "imageAtomicAdd(count, at, 1);",
            ),
            ("a.hlsl", "s[i] |= bit;", "InterlockedOr(s[i], bit);"),
            ("a.hlsl", "slot = count; count = slot + 1;", "InterlockedAdd(count, 1, slot);"),
            ("a.wgsl", "s[i] -= 1u;", "atomicSub(&s[i], 1u);"),
            ("a.cl", "s[i] ^= bit;", "atomic_xor(&s[i], bit);"),
            ("a.cl", "uint next = head; head = i;", "uint next = atomic_xchg(&head, i);"),
            ("a.cl", "if (o[i] == 0) { o[i] = me; n = 1; }", "if (atomic_cmpxchg(&o[i], 0, me) == 0)"),
            ("a.cl", "if (v < low) atomic_min(&low, v);", "atomic_min(&low, v);"),
        ];
        for (file, code, expected) in cases {
            let text = match file {
                "a.wgsl" => format!("fn f() {{ {code} }}"),
                _ => format!("void f() {{ {code} }}"),
            };
            assert_eq!(atomic_statements(file, &text).first().map(String::as_str), Some(expected), "{code}");
        }
        for other in ["s[i] = 1 - s[i];", "s = s - a + b;", "s = t;", "uint a = s; t = a;"] {
            assert_eq!(atomic_statements("a.comp", &format!("void f() {{ {other} }}")), [""; 0], "{other}");
        }
    }
}
