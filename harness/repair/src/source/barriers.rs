//! Fixes by barriers and qualifiers: a change of the module as an edit of the source, and stronger barriers
//! instead of those that order too little.

use std::ops::Range;

use litmus::StorageClass;
use results::wire::{
    ChangeMemory, ChangeQualifier, ChangeRecord, InsertionAnchor, InsertionSide, ShaderChange,
};
use spirv_reader::ShaderLanguage;

use super::divergence::BarrierNames;
use super::edit::{SourceFix, split_outside_brackets};
use super::finding::RepairTarget;
use super::invocations::shared_variable_names;
use super::text::{ShaderStatement, ShaderText, StatementKind, closing_bracket_end};
use super::update::update_fixes;
use crate::record::CodeEdit;
use shader_source::scan::{has_call, has_word, is_identifier_character};

/// Upper bound on the placements of one fix.
const MAX_PLACEMENTS: usize = 4;

/// Returns the edits for the changes of a module, one element per placement.
pub(super) fn place_changes(
    source: &ShaderText,
    target: &RepairTarget,
    changes: &[ChangeRecord],
) -> Vec<SourceFix> {
    let mut fixes: Vec<SourceFix> = vec![SourceFix::default()];
    for change in changes {
        let alternatives = find_placements(source, target, change);
        let joined = fixes.iter().flat_map(|fix| {
            alternatives.iter().map(|alternative| {
                let mut fix = fix.clone();
                fix.edits.extend(alternative.edits.iter().cloned());
                fix.changes.extend(alternative.changes.iter().cloned());
                fix
            })
        });
        fixes = joined.take(MAX_PLACEMENTS).collect();
    }
    fixes.retain(|fix| !fix.edits.is_empty());
    fixes
}

/// Returns barriers between the statements of one line, if accesses of one workgroup race there.
///
/// Changes of the module have no place within a line.
pub(super) fn separate_statements(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let Some(line) = target.lines.first().copied() else { return Vec::new() };
    let is_shared = shared_variable_names(source).into_iter().any(|name| target.may_be_element(name));
    let class = if is_shared { StorageClass::Workgroup } else { StorageClass::Buffer };
    let code = source.language.control_barrier(class);
    let statements = source.simple_statements_on(line);
    let is_within = target.is_one_workgroup && target.lines.iter().all(|other| *other == line);
    let places = statements.iter().skip(1).rev().filter(|one| is_within && !source.is_unbraced(&one.range));
    let (side, anchor) = (InsertionSide::Before, InsertionAnchor::Line);
    let change = ShaderChange::Insert { code: code.clone(), side, anchor };
    let fix = |statement: &&ShaderStatement| {
        SourceFix::new(vec![insert_next_to(source, statement, &code, true)], line, change.clone())
    };
    places.take(MAX_PLACEMENTS).map(fix).collect()
}

/// Returns the placements of one change in the source.
fn find_placements(source: &ShaderText, target: &RepairTarget, record: &ChangeRecord) -> Vec<SourceFix> {
    let line = record.line.unwrap_or(0);
    let edits: Vec<Vec<CodeEdit>> = match &record.change {
        ShaderChange::Insert { code, side, anchor } => place_insertion(source, line, code, *side, *anchor),
        ShaderChange::Declare { name, .. } => {
            declare_coherent(source, target, name).into_iter().map(|edit| vec![edit]).collect()
        }
        ShaderChange::StrengthenOrder { .. } | ShaderChange::WidenScope { .. } => {
            strengthen_call(source, line, &record.change)
        }
        ShaderChange::UseAtomic { .. } => return update_fixes(source, target),
        _ => Vec::new(),
    };
    edits.into_iter().map(|edits| SourceFix::new(edits, line, record.change.clone())).collect()
}

/// Returns the edits that strengthen a call of the Vulkan memory model in GLSL: its storage classes and
/// semantics, or its scope.
fn strengthen_call(source: &ShaderText, line: u32, change: &ShaderChange) -> Vec<Vec<CodeEdit>> {
    let mut edits = Vec::new();
    let simple_ranges = source.simple_statements_on(line).into_iter().map(|one| one.range.clone());
    let heads = statements_with_condition_on(source, line).filter_map(|statement| statement.head().cloned());
    for range in simple_ranges.chain(heads) {
        let Some(code) = source.plain.get(range.clone()) else { continue };
        // Storage classes and semantics are the last arguments of each of these functions.
        let last_arguments = || {
            let names = ["atomic", "controlBarrier", "memoryBarrier"];
            let open = names.iter().filter_map(|name| code.find(name)).min()?;
            let open = open + code[open..].find('(')?;
            let end = closing_bracket_end(code, open)?;
            let arguments = split_outside_brackets(&code[open + 1..end - 1], ",");
            let [.., classes, semantics] = &arguments[..] else { return None };
            let start = range.start + end - 1 - semantics.len();
            Some((
                (start - 1 - classes.len()..start - 1, *classes),
                (start..range.start + end - 1, *semantics),
            ))
        };
        let ShaderChange::StrengthenOrder { acquire, release, class, .. } = change else {
            let narrow = ["gl_ScopeWorkgroup", "gl_ScopeSubgroup"].into_iter();
            // The first scope of a control barrier is its execution scope.
            let scopes = narrow.filter_map(|scope| Some((code.rfind(scope)?, scope.len())));
            edits.extend(scopes.map(|(at, length)| {
                let at = range.start + at;
                vec![CodeEdit::replace(at..at + length, "gl_ScopeDevice".to_owned())]
            }));
            continue;
        };
        let class = match class {
            ChangeMemory::Buffer => "Buffer",
            ChangeMemory::Shared => "Shared",
            ChangeMemory::Image => "Image",
            ChangeMemory::Output => "Output",
        };
        let Some(((classes, old_classes), (semantics, old))) = last_arguments() else { continue };
        let join_semantics = |old: &str, added: &[String]| {
            let mut all: Vec<String> = old.split('|').map(|part| part.trim().to_owned()).collect();
            all.retain(|part| !part.ends_with("None") && !part.ends_with("Relaxed") && part != "0");
            all.extend(added.iter().filter(|part| !old.contains(part.as_str())).cloned());
            format!(" {}", all.join(" | "))
        };
        let orders: &[&str] = match (acquire, release) {
            (true, true) => &["AcquireRelease", "MakeAvailable", "MakeVisible"],
            (false, true) => &["Release", "MakeAvailable"],
            _ => &["Acquire", "MakeVisible"],
        };
        let orders: Vec<String> = orders.iter().map(|order| format!("gl_Semantics{order}")).collect();
        let class = [format!("gl_StorageSemantics{class}")];
        edits.push(vec![
            CodeEdit::replace(classes, join_semantics(old_classes, &class)),
            CodeEdit::replace(semantics, join_semantics(old, &orders)),
        ]);
    }
    edits
}

/// Returns the placements of code before or after the statement of a line.
fn place_insertion(
    source: &ShaderText,
    line: u32,
    code: &str,
    side: InsertionSide,
    anchor: InsertionAnchor,
) -> Vec<Vec<CodeEdit>> {
    let mut starting = source.statements_starting_on(line);
    if starting.is_empty() {
        starting = source.simple_statements_on(line);
    }
    let (before, after) = side.to_flags();
    let insert_around = |statement: &ShaderStatement| match source.is_unbraced(&statement.range) {
        true => vec![add_braces(source, statement, code, before, after)],
        false => {
            let sides = [(before, true), (after, false)].into_iter().filter(|(is_on_side, _)| *is_on_side);
            sides.map(|(_, is_before)| insert_next_to(source, statement, code, is_before)).collect()
        }
    };
    let is_loop = |statement: &&ShaderStatement| matches!(statement.kind, StatementKind::Loop { .. });
    let is_compound = |statement: &&ShaderStatement| !matches!(statement.kind, StatementKind::Simple);
    match anchor {
        InsertionAnchor::ControlledStatement => {
            starting.into_iter().filter(is_compound).map(insert_around).collect()
        }
        InsertionAnchor::Loop => starting.into_iter().filter(is_loop).map(insert_around).collect(),
        InsertionAnchor::LoopBody => starting
            .into_iter()
            .filter_map(|statement| match &statement.kind {
                StatementKind::Loop { body, .. } => insert_at_body_end(source, body, code),
                _ => None,
            })
            .collect(),
        // A barrier is placed at the outermost statement, a fence at the access.
        InsertionAnchor::Line => starting.into_iter().map(insert_around).collect(),
        InsertionAnchor::Atomic
        | InsertionAnchor::Barrier
        | InsertionAnchor::Read
        | InsertionAnchor::Write => {
            let is_jump = |statement: &&ShaderStatement| {
                ["return;", "break;", "continue;", "discard;"].contains(&source.code(&statement.range))
            };
            let simple = source.simple_statements_on(line).into_iter().filter(|one| !is_jump(one));
            let mut alternatives: Vec<_> = simple.rev().map(insert_around).collect();
            if alternatives.is_empty() {
                alternatives.extend(
                    statements_with_condition_on(source, line)
                        .flat_map(|one| insert_around_condition(source, one, code, before, after)),
                );
            }
            alternatives
        }
    }
}

/// Returns the conditional statements and loops whose condition is on a line.
fn statements_with_condition_on(source: &ShaderText, line: u32) -> impl Iterator<Item = &ShaderStatement> {
    let is_on_line =
        move |head: &Range<usize>| (source.line_of(head.start)..=source.line_of(head.end)).contains(&line);
    source.statements().into_iter().filter(move |statement| statement.head().is_some_and(is_on_line))
}

/// Returns the placements of code around an access in a condition. After the access is the start of the body,
/// or the end of the whole statement.
fn insert_around_condition(
    source: &ShaderText,
    statement: &ShaderStatement,
    code: &str,
    before: bool,
    after: bool,
) -> Vec<Vec<CodeEdit>> {
    let is_unbraced = source.is_unbraced(&statement.range);
    if is_unbraced && before {
        return Vec::new();
    }
    let first: Vec<CodeEdit> =
        before.then(|| insert_next_to(source, statement, code, true)).into_iter().collect();
    if !after {
        return vec![first];
    }
    let mut after = Vec::new();
    if let StatementKind::If { then, .. } = &statement.kind {
        let body = then.block_statements().first().map(|body| body.range.clone());
        if let Some(body) = body.and_then(|range| source.path_to(range.start).pop()) {
            after.push(match source.is_unbraced(&body.range) {
                true => add_braces(source, body, code, true, false),
                false => insert_next_to(source, body, code, true),
            });
        }
    }
    after.extend((!is_unbraced).then(|| insert_next_to(source, statement, code, false)));
    after.into_iter().map(|edit| first.iter().cloned().chain([edit]).collect()).collect()
}

/// Inserts a line before or after a statement.
fn insert_next_to(source: &ShaderText, statement: &ShaderStatement, code: &str, is_before: bool) -> CodeEdit {
    let indentation = source.indentation(statement.range.start);
    if is_before {
        return CodeEdit::insert(statement.range.start, format!("{code}\n{indentation}"));
    }
    CodeEdit::insert(insertion_offset(source, statement.range.end), format!("\n{indentation}{code}"))
}

/// Returns the end of the line at an offset, if only a comment follows, else the offset.
fn insertion_offset(source: &ShaderText, at: usize) -> usize {
    let end = source.text[at..].find('\n').map_or(source.text.len(), |end| at + end);
    if source.plain[at..end].trim().is_empty() { end } else { at }
}

/// Puts braces around a statement and the inserted code.
fn add_braces(
    source: &ShaderText,
    statement: &ShaderStatement,
    code: &str,
    is_before: bool,
    is_after: bool,
) -> CodeEdit {
    let indentation = source.indentation(statement.range.start);
    let outer = indentation.strip_suffix(source.indentation_unit()).unwrap_or(indentation);
    let text = source.text.get(statement.range.clone()).unwrap_or_default();
    let before = if is_before { format!("{code}\n{indentation}") } else { String::new() };
    let after = if is_after { format!("\n{indentation}{code}") } else { String::new() };
    // The brace opens at the end of the line of the condition, and the body stays on its line.
    let parent_end = source.plain[..statement.range.start].trim_end().len();
    let between = source.text.get(parent_end..statement.range.start).unwrap_or_default();
    if between.contains('\n') && between.trim().is_empty() {
        let text = format!(" {{{between}{before}{text}{after}\n{outer}}}");
        return CodeEdit::replace(parent_end..statement.range.end, text);
    }
    CodeEdit::replace(statement.range.clone(), format!("{{\n{indentation}{before}{text}{after}\n{outer}}}"))
}

/// Inserts code at the end of the body of a loop.
fn insert_at_body_end(source: &ShaderText, body: &ShaderStatement, code: &str) -> Option<Vec<CodeEdit>> {
    match (&body.kind, body.block_statements().last()) {
        (StatementKind::Block(_), Some(last)) => Some(vec![insert_next_to(source, last, code, false)]),
        (StatementKind::Block(_), None) => None,
        _ => Some(vec![add_braces(source, body, code, false, true)]),
    }
}

/// Returns the edit that declares a variable or block coherent.
pub(super) fn declare_coherent(source: &ShaderText, target: &RepairTarget, name: &str) -> Option<CodeEdit> {
    let is_named = |head: &str| has_word(head, name) || target.names.iter().any(|name| has_word(head, name));
    let plain = &source.plain;
    match source.language {
        ShaderLanguage::OpenClC | ShaderLanguage::Wgsl => None,
        ShaderLanguage::Hlsl | ShaderLanguage::Slang => {
            let words = ["RWStructuredBuffer", "RWByteAddressBuffer", "RWBuffer", "RWTexture"];
            let found = words.iter().flat_map(|word| plain.match_indices(word)).find(|(at, _)| {
                let end = plain[*at..].find(';').map_or(plain.len(), |end| at + end);
                is_named(&plain[*at..end]) && !plain[..*at].trim_end().ends_with("globallycoherent")
            });
            found.map(|(at, _)| CodeEdit::insert(at, "globallycoherent ".to_owned()))
        }
        ShaderLanguage::Glsl => {
            let found = ["buffer", "uniform"].iter().flat_map(|word| word_offsets(plain, word)).find(|at| {
                let end = plain[*at..].find([';', '{']).map_or(plain.len(), |end| at + end);
                let start = plain[..*at].rfind([';', '}']).map_or(0, |end| end + 1);
                // The instance name of a block follows its members.
                let close = plain[end..].find('}').map_or(end, |close| end + close);
                let after = plain[close..].find(';').map_or(end, |end| close + end);
                let is_block = plain[end..].starts_with('{');
                let is_here =
                    is_named(&plain[*at..end]) || is_block && plain.get(end..after).is_some_and(is_named);
                is_here && !has_word(&plain[start..*at], "coherent")
            });
            found.map(|at| CodeEdit::insert(at, "coherent ".to_owned()))
        }
    }
}

/// Returns the offsets of a word.
fn word_offsets<'a>(plain: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    plain.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !plain[..*at].ends_with(is_identifier_character)
            && !plain[at + word.len()..].starts_with(is_identifier_character)
    })
}

/// Returns candidates that replace barriers with too few storage classes, or without a wait.
pub(super) fn replace_barriers(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let is_shared = |name: &String| source.plain.contains(&format!("var<workgroup> {name}"));
    if source.language == ShaderLanguage::Wgsl && !target.names.iter().any(is_shared) {
        return Vec::new();
    }
    let calls = barrier_statements(source);
    let is_hlsl = source.language.has_hlsl_functions();
    let mut sets: Vec<Vec<Range<usize>>> = Vec::new();
    // Barriers between the lines of the finding first, then all barriers of the function.
    let [low, high] =
        [target.lines.iter().min(), target.lines.iter().max()].map(|line| line.copied().unwrap_or(0));
    let between: Vec<Range<usize>> =
        calls.iter().filter(|one| (low..=high).contains(&source.line_of(one.start))).cloned().collect();
    sets.extend(between.iter().map(|one| vec![one.clone()]));
    sets.push(between);
    sets.extend(calls.iter().map(|one| vec![one.clone()]));
    sets.push(calls);
    let coherent_edit = target.names.first().and_then(|name| declare_coherent(source, target, name));
    let mut fixes: Vec<SourceFix> = Vec::new();
    for is_coherent in [false, true] {
        for set in sets.iter().filter(|set| !set.is_empty()) {
            let mut fix = SourceFix::default();
            for range in set {
                let old = source.code(range).trim_end_matches(';').trim().to_owned();
                let Some(new) = stronger_barrier(source, &old) else { continue };
                fix.edits.push(CodeEdit::replace(range.clone(), new.clone()));
                fix.changes.push((source.line_of(range.start), ShaderChange::ReplaceBarrier { new, old }));
            }
            if is_coherent {
                // Only coherent accesses to device memory are made available by a barrier.
                let Some(edit) =
                    coherent_edit.clone().filter(|_| is_hlsl || source.language == ShaderLanguage::Glsl)
                else {
                    continue;
                };
                let qualifier =
                    if is_hlsl { ChangeQualifier::GloballyCoherent } else { ChangeQualifier::Coherent };
                let name = target.names.first().cloned().unwrap_or_default();
                let change = ShaderChange::Declare { name, qualifier };
                fix.changes.push((source.line_of(edit.range.start), change));
                fix.edits.push(edit);
            }
            if !fix.changes.is_empty() && !fixes.contains(&fix) {
                fixes.push(fix);
            }
        }
    }
    fixes
}

/// Returns the statements that consist of one call of a barrier.
fn barrier_statements(source: &ShaderText) -> Vec<Range<usize>> {
    let is_barrier = |statement: &&ShaderStatement| {
        let code = source.code(&statement.range).trim_end_matches(';').trim();
        matches!(statement.kind, StatementKind::Simple)
            && code.ends_with(')')
            && (code.contains("arrier") || has_call(code, "mem_fence"))
    };
    source.statements().into_iter().filter(is_barrier).map(|one| one.range.clone()).collect()
}

/// Returns a control barrier for all memory, to replace a weaker barrier.
fn stronger_barrier(source: &ShaderText, call: &str) -> Option<String> {
    let (name, flags) = call.strip_suffix(')')?.split_once('(')?;
    let name = name.trim();
    if source.language == ShaderLanguage::OpenClC {
        let all = "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE";
        let flags = if name == "mem_fence" { flags } else { all };
        return Some(format!("barrier({flags});")).filter(|new| new.trim_end_matches(';') != call);
    }
    let new = match (source.language, name) {
        (ShaderLanguage::Glsl, "memoryBarrierShared" | "groupMemoryBarrier") => "barrier();",
        (ShaderLanguage::Glsl, "memoryBarrierBuffer") => "memoryBarrierBuffer(); barrier();",
        (ShaderLanguage::Glsl, "memoryBarrierImage") => "memoryBarrierImage(); barrier();",
        (ShaderLanguage::Glsl, "memoryBarrier" | "barrier") => "memoryBarrier(); barrier();",
        (ShaderLanguage::Hlsl | ShaderLanguage::Slang, "GroupMemoryBarrier") => {
            "GroupMemoryBarrierWithGroupSync();"
        }
        (
            ShaderLanguage::Hlsl | ShaderLanguage::Slang,
            "DeviceMemoryBarrier"
            | "AllMemoryBarrier"
            | "GroupMemoryBarrierWithGroupSync"
            | "DeviceMemoryBarrierWithGroupSync",
        ) => "AllMemoryBarrierWithGroupSync();",
        // Only workgroup memory: the other barriers do not order it.
        (ShaderLanguage::Wgsl, "storageBarrier" | "textureBarrier") => "workgroupBarrier();",
        _ => return None,
    };
    // A replacement that equals the barrier changes nothing.
    let is_known = new.trim_end_matches(';') == call;
    (!is_known).then(|| new.to_owned())
}

/// Returns a fix without edits that splits the dispatch, for workgroups that must wait for each other; and the
/// source of each part.
///
/// The parts are the shader with the code before a barrier between the two lines, and with the code after it.
/// The fix is valid if neither part has the finding. Workgroup memory does not outlive a dispatch, so the parts must
/// not share it.
pub(super) fn split_dispatch(source: &ShaderText, target: &RepairTarget) -> Option<(SourceFix, Vec<String>)> {
    if !target.is_race() {
        return None;
    }
    let barriers = BarrierNames::of_source(source);
    // The line may be in a function that the entry point calls before and after the barrier.
    let entry = source.functions.iter().rev().find(|function| barriers.is_in(source, &function.body))?;
    let is_barrier = |statement: &&ShaderStatement| {
        matches!(statement.kind, StatementKind::Simple) && barriers.is_in(source, &statement.range)
    };
    let barrier = entry.statements.iter().rfind(is_barrier)?;
    let is_kept = |statement: &ShaderStatement| {
        let code = source.code(&statement.range);
        matches!(statement.kind, StatementKind::Simple)
            && super::divergence::parse_declaration(code).is_some()
            || code.starts_with("if") && has_word(code, "return")
    };
    let removal = |statement: &&ShaderStatement| CodeEdit::replace(statement.range.clone(), String::new());
    let (mut first, mut second) = (SourceFix::default(), SourceFix::default());
    first.edits.extend(
        entry.statements.iter().filter(|one| one.range.start > barrier.range.start).map(|one| removal(&one)),
    );
    let statements_before =
        entry.statements.iter().filter(|one| one.range.start <= barrier.range.start && !is_kept(one));
    second.edits.extend(statements_before.map(|one| removal(&one)));
    if first.edits.is_empty() || second.edits.is_empty() {
        return None;
    }
    let parts = vec![first.apply(&source.text)?, second.apply(&source.text)?];
    // The declaration of a variable is in both parts.
    let is_used = |part: &String, name: &str| word_offsets(part, name).nth(1).is_some();
    if shared_variable_names(source).iter().any(|name| parts.iter().all(|part| is_used(part, name))) {
        return None;
    }
    let line = source.line_of(barrier.range.start);
    let fix = SourceFix::new(Vec::new(), line, ShaderChange::SecondDispatch);
    Some((fix, parts))
}
