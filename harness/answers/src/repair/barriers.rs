//! Fixes by barriers and qualifiers: a change of the module as an edit of the source, and stronger barriers
//! instead of those that order too little.

use std::ops::Range;

use results::wire::MendRecord;

use super::divergence::BarrierNames;
use super::edit::{SourceEdit, SourceFix, split_outside};
use super::finding::RepairTarget;
use super::text::{RepairLanguage, ShaderStatement, ShaderText, StatementKind, closing};
use super::update::update_fixes;
use crate::scan::{has_word, is_word};

/// Upper bound on the placements of one fix.
const MAX_PLACEMENTS: usize = 4;

/// Returns the edits for the changes of a module, one element per placement.
pub(super) fn placed_changes(
    source: &ShaderText,
    target: &RepairTarget,
    changes: &[MendRecord],
) -> Vec<SourceFix> {
    let mut fixes: Vec<SourceFix> = vec![SourceFix::default()];
    for change in changes {
        let ways = placements(source, target, change);
        let joined = fixes.iter().flat_map(|fix| {
            ways.iter().map(|way| {
                let mut fix = fix.clone();
                fix.edits.extend(way.edits.iter().cloned());
                fix.changes.extend(way.changes.iter().cloned());
                fix
            })
        });
        fixes = joined.take(MAX_PLACEMENTS).collect();
    }
    fixes.retain(|fix| !fix.edits.is_empty());
    fixes
}

/// Returns the placements of one change in the source.
fn placements(source: &ShaderText, target: &RepairTarget, change: &MendRecord) -> Vec<SourceFix> {
    let line = change.line.unwrap_or(0);
    let with_words = |edits: Vec<SourceEdit>| SourceFix { edits, changes: vec![(line, change.text.clone())] };
    if let Some((code, side)) = change.text.strip_prefix("put `").and_then(|rest| rest.split_once("` ")) {
        return insertions(source, line, code, side).into_iter().map(with_words).collect();
    }
    if let Some(name) = change.text.strip_prefix("declare `").and_then(|rest| rest.split_once('`')) {
        return qualified(source, target, name.0).map(|edit| with_words(vec![edit])).into_iter().collect();
    }
    if change.text.starts_with("give this") || change.text.starts_with("widen") {
        return stronger_call(source, line, &change.text).into_iter().map(with_words).collect();
    }
    if change.text.contains("instead of this load and store") {
        return update_fixes(source, target);
    }
    Vec::new()
}

/// Returns the edits that strengthen a call of the Vulkan memory model in GLSL: its storage classes and
/// semantics, or its scope.
fn stronger_call(source: &ShaderText, line: u32, words: &str) -> Vec<Vec<SourceEdit>> {
    let mut edits = Vec::new();
    let simple = source.simple_on(line).into_iter().map(|one| one.range.clone());
    let heads = conditions_on(source, line).filter_map(|one| match &one.kind {
        StatementKind::If { condition: head, .. } | StatementKind::Loop { header: head, .. } => {
            Some(head.clone())
        }
        StatementKind::Simple | StatementKind::Block(_) | StatementKind::Other => None,
    });
    for range in simple.chain(heads) {
        let Some(code) = source.plain.get(range.clone()) else { continue };
        // Storage classes and semantics are the last arguments of each of these functions.
        let last_arguments = || {
            let names = ["atomic", "controlBarrier", "memoryBarrier"];
            let open = names.iter().filter_map(|name| code.find(name)).min()?;
            let open = open + code[open..].find('(')?;
            let end = closing(code, open)?;
            let arguments = split_outside(&code[open + 1..end - 1], ",");
            let [.., classes, semantics] = &arguments[..] else { return None };
            let start = range.start + end - 1 - semantics.len();
            Some((
                (start - 1 - classes.len()..start - 1, *classes),
                (start..range.start + end - 1, *semantics),
            ))
        };
        if words.starts_with("widen") {
            let narrow = ["gl_ScopeWorkgroup", "gl_ScopeSubgroup"].into_iter();
            // The first scope of a control barrier is its execution scope.
            let scopes = narrow.filter_map(|scope| Some((code.rfind(scope)?, scope.len())));
            edits.extend(scopes.map(|(at, length)| {
                let at = range.start + at;
                vec![SourceEdit::replace(at..at + length, "gl_ScopeDevice".to_owned())]
            }));
            continue;
        }
        let class = [("buffer", "Buffer"), ("shared", "Shared"), ("images", "Image"), ("outputs", "Output")]
            .into_iter()
            .find(|(name, _)| words.contains(&format!("semantics on {name}")));
        let (Some((_, class)), Some(((classes, old_classes), (semantics, old)))) = (class, last_arguments())
        else {
            continue;
        };
        let joined = |old: &str, more: &[String]| {
            let mut all: Vec<String> = old.split('|').map(|part| part.trim().to_owned()).collect();
            all.retain(|part| !part.ends_with("None") && !part.ends_with("Relaxed") && part != "0");
            all.extend(more.iter().filter(|part| !old.contains(part.as_str())).cloned());
            format!(" {}", all.join(" | "))
        };
        let orders: &[&str] = match (words.contains("Acquire"), words.contains("Release")) {
            (true, true) => &["AcquireRelease", "MakeAvailable", "MakeVisible"],
            (false, true) => &["Release", "MakeAvailable"],
            _ => &["Acquire", "MakeVisible"],
        };
        let orders: Vec<String> = orders.iter().map(|order| format!("gl_Semantics{order}")).collect();
        let class = [format!("gl_StorageSemantics{class}")];
        edits.push(vec![
            SourceEdit::replace(classes, joined(old_classes, &class)),
            SourceEdit::replace(semantics, joined(old, &orders)),
        ]);
    }
    edits
}

/// Returns the placements of code before or after the statement of a line.
fn insertions(source: &ShaderText, line: u32, code: &str, side: &str) -> Vec<Vec<SourceEdit>> {
    let is_loop = |one: &&ShaderStatement| matches!(one.kind, StatementKind::Loop { .. });
    let mut starting = source.starting_on(line);
    if starting.is_empty() {
        starting = source.simple_on(line);
    }
    let around = |one: &ShaderStatement, sides: [bool; 2]| {
        let mut edits = Vec::new();
        edits.extend(sides[0].then(|| beside(source, one, code, true)));
        edits.extend(sides[1].then(|| beside(source, one, code, false)));
        match source.is_unbraced(&one.range) {
            true => vec![braced(source, one, code, sides)],
            false => edits,
        }
    };
    match side {
        "after the statement that this line controls" => {
            let controls = |one: &&ShaderStatement| !matches!(one.kind, StatementKind::Simple);
            starting.into_iter().filter(controls).map(|one| around(one, [false, true])).collect()
        }
        "before the loop in this line" => {
            starting.into_iter().filter(is_loop).map(|one| around(one, [true, false])).collect()
        }
        "after the loop in this line" => {
            starting.into_iter().filter(is_loop).map(|one| around(one, [false, true])).collect()
        }
        "at the end of the body of the loop in this line" => starting
            .into_iter()
            .filter_map(|one| match &one.kind {
                StatementKind::Loop { body, .. } => end_of_body(source, body, code),
                _ => None,
            })
            .collect(),
        _ => {
            let sides = match side.rsplit_once(" this ") {
                Some(("before and after", _)) => [true, true],
                Some(("before", _)) => [true, false],
                Some(("after", _)) => [false, true],
                _ => return Vec::new(),
            };
            // A fence is placed at the access, a barrier at the outermost statement.
            if side.ends_with("line") {
                starting.into_iter().map(|one| around(one, sides)).collect()
            } else {
                let is_jump = |one: &&ShaderStatement| {
                    ["return;", "break;", "continue;", "discard;"].contains(&source.code(&one.range))
                };
                let simple: Vec<&ShaderStatement> =
                    source.simple_on(line).into_iter().filter(|one| !is_jump(one)).collect();
                let mut ways: Vec<_> = simple.into_iter().rev().map(|one| around(one, sides)).collect();
                if ways.is_empty() {
                    ways.extend(
                        conditions_on(source, line)
                            .flat_map(|one| around_condition(source, one, code, sides)),
                    );
                }
                ways
            }
        }
    }
}

/// Returns the conditional statements and loops whose condition is on a line.
fn conditions_on(source: &ShaderText, line: u32) -> impl Iterator<Item = &ShaderStatement> {
    source.statements().into_iter().filter(move |one| match &one.kind {
        StatementKind::If { condition: head, .. } | StatementKind::Loop { header: head, .. } => {
            (source.line_of(head.start)..=source.line_of(head.end)).contains(&line)
        }
        StatementKind::Simple | StatementKind::Block(_) | StatementKind::Other => false,
    })
}

/// Returns the placements of code around an access in a condition. After the access is the start of the body,
/// or the end of the whole statement.
fn around_condition(
    source: &ShaderText,
    one: &ShaderStatement,
    code: &str,
    sides: [bool; 2],
) -> Vec<Vec<SourceEdit>> {
    let is_unbraced = source.is_unbraced(&one.range);
    if is_unbraced && sides[0] {
        return Vec::new();
    }
    let before: Vec<SourceEdit> = sides[0].then(|| beside(source, one, code, true)).into_iter().collect();
    if !sides[1] {
        return vec![before];
    }
    let mut after = Vec::new();
    if let StatementKind::If { then, .. } = &one.kind {
        let first = then.list().first().map(|first| first.range.clone());
        if let Some(first) = first.and_then(|range| source.path_to(range.start).pop()) {
            after.push(match source.is_unbraced(&first.range) {
                true => braced(source, first, code, [true, false]),
                false => beside(source, first, code, true),
            });
        }
    }
    after.extend((!is_unbraced).then(|| beside(source, one, code, false)));
    after.into_iter().map(|edit| before.iter().cloned().chain([edit]).collect()).collect()
}

/// Inserts a line before or after a statement.
fn beside(source: &ShaderText, one: &ShaderStatement, code: &str, is_before: bool) -> SourceEdit {
    let indentation = source.indentation(one.range.start);
    if is_before {
        return SourceEdit::insert(one.range.start, format!("{code}\n{indentation}"));
    }
    SourceEdit::insert(line_end(source, one.range.end), format!("\n{indentation}{code}"))
}

/// Returns the end of the line at an offset, if only a comment follows, else the offset.
fn line_end(source: &ShaderText, at: usize) -> usize {
    let end = source.text[at..].find('\n').map_or(source.text.len(), |end| at + end);
    if source.plain[at..end].trim().is_empty() { end } else { at }
}

/// Puts braces around a statement and the inserted code.
fn braced(source: &ShaderText, one: &ShaderStatement, code: &str, sides: [bool; 2]) -> SourceEdit {
    let indentation = source.indentation(one.range.start);
    let outer = indentation.strip_suffix(source.unit()).unwrap_or(indentation);
    let text = source.text.get(one.range.clone()).unwrap_or_default();
    let before = if sides[0] { format!("{code}\n{indentation}") } else { String::new() };
    let after = if sides[1] { format!("\n{indentation}{code}") } else { String::new() };
    // The brace opens at the end of the line of the condition, and the body stays on its line.
    let parent_end = source.plain[..one.range.start].trim_end().len();
    let between = source.text.get(parent_end..one.range.start).unwrap_or_default();
    if between.contains('\n') && between.trim().is_empty() {
        let text = format!(" {{{between}{before}{text}{after}\n{outer}}}");
        return SourceEdit::replace(parent_end..one.range.end, text);
    }
    SourceEdit::replace(one.range.clone(), format!("{{\n{indentation}{before}{text}{after}\n{outer}}}"))
}

/// Inserts code at the end of the body of a loop.
fn end_of_body(source: &ShaderText, body: &ShaderStatement, code: &str) -> Option<Vec<SourceEdit>> {
    match (&body.kind, body.list().last()) {
        (StatementKind::Block(_), Some(last)) => Some(vec![beside(source, last, code, false)]),
        (StatementKind::Block(_), None) => None,
        _ => Some(vec![braced(source, body, code, [false, true])]),
    }
}

/// Returns the edit that declares a variable or block coherent.
pub(super) fn qualified(source: &ShaderText, target: &RepairTarget, name: &str) -> Option<SourceEdit> {
    let is_named = |head: &str| has_word(head, name) || target.names.iter().any(|name| has_word(head, name));
    let plain = &source.plain;
    match source.language {
        RepairLanguage::Wgsl => None,
        RepairLanguage::Hlsl => {
            let words = ["RWStructuredBuffer", "RWByteAddressBuffer", "RWBuffer", "RWTexture"];
            let found = words.iter().flat_map(|word| plain.match_indices(word)).find(|(at, _)| {
                let end = plain[*at..].find(';').map_or(plain.len(), |end| at + end);
                is_named(&plain[*at..end]) && !plain[..*at].trim_end().ends_with("globallycoherent")
            });
            found.map(|(at, _)| SourceEdit::insert(at, "globallycoherent ".to_owned()))
        }
        RepairLanguage::Glsl => {
            let found = ["buffer", "uniform"].iter().flat_map(|word| words_of(plain, word)).find(|at| {
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
            found.map(|at| SourceEdit::insert(at, "coherent ".to_owned()))
        }
    }
}

/// Returns the offsets of a word.
fn words_of<'a>(plain: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    plain
        .match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !plain[..*at].ends_with(is_word) && !plain[at + word.len()..].starts_with(is_word))
}

/// Returns candidates that replace barriers with too few storage classes, or without a wait.
pub(super) fn barrier_replacements(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let is_shared = |name: &String| source.plain.contains(&format!("var<workgroup> {name}"));
    if source.language == RepairLanguage::Wgsl && !target.names.iter().any(is_shared) {
        return Vec::new();
    }
    let calls = barrier_statements(source);
    let is_hlsl = source.language == RepairLanguage::Hlsl;
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
    let declared = target.names.first().and_then(|name| qualified(source, target, name));
    let mut fixes: Vec<SourceFix> = Vec::new();
    for is_coherent in [false, true] {
        for set in sets.iter().filter(|set| !set.is_empty()) {
            let mut fix = SourceFix::default();
            for range in set {
                let old = source.code(range).trim_end_matches(';').trim().to_owned();
                let Some(new) = replacement(source, &old) else { continue };
                fix.changes.push((source.line_of(range.start), format!("use `{new}` instead of `{old};`")));
                fix.edits.push(SourceEdit::replace(range.clone(), new));
            }
            if is_coherent {
                // Only coherent accesses to device memory are made available by a barrier.
                let Some(edit) =
                    declared.clone().filter(|_| is_hlsl || source.language == RepairLanguage::Glsl)
                else {
                    continue;
                };
                let word = if is_hlsl { "globallycoherent" } else { "coherent" };
                let name = target.names.first().map_or("", String::as_str);
                fix.changes.push((source.line_of(edit.range.start), format!("declare `{name}` {word}")));
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
    let is_barrier = |one: &&ShaderStatement| {
        let code = source.code(&one.range);
        matches!(one.kind, StatementKind::Simple)
            && code.trim_end_matches(';').trim().ends_with("()")
            && (code.contains("arrier"))
    };
    source.statements().into_iter().filter(is_barrier).map(|one| one.range.clone()).collect()
}

/// Returns a control barrier for all memory, to replace a weaker barrier.
fn replacement(source: &ShaderText, call: &str) -> Option<String> {
    let name = call.strip_suffix("()")?.trim();
    let new = match (source.language, name) {
        (RepairLanguage::Glsl, "memoryBarrierShared" | "groupMemoryBarrier") => "barrier();",
        (RepairLanguage::Glsl, "memoryBarrierBuffer") => "memoryBarrierBuffer(); barrier();",
        (RepairLanguage::Glsl, "memoryBarrierImage") => "memoryBarrierImage(); barrier();",
        (RepairLanguage::Glsl, "memoryBarrier" | "barrier") => "memoryBarrier(); barrier();",
        (RepairLanguage::Hlsl, "GroupMemoryBarrier") => "GroupMemoryBarrierWithGroupSync();",
        (
            RepairLanguage::Hlsl,
            "DeviceMemoryBarrier"
            | "AllMemoryBarrier"
            | "GroupMemoryBarrierWithGroupSync"
            | "DeviceMemoryBarrierWithGroupSync",
        ) => "AllMemoryBarrierWithGroupSync();",
        // Only workgroup memory: the other barriers do not order it.
        (RepairLanguage::Wgsl, "storageBarrier" | "textureBarrier") => "workgroupBarrier();",
        _ => return None,
    };
    // A replacement that equals the barrier changes nothing.
    let is_known = new.trim_end_matches(';') == call;
    (!is_known).then(|| new.to_owned())
}

/// Returns a fix in words that splits the dispatch, for workgroups that must wait for each other; and the
/// source of each part.
///
/// The parts are the shader with the code before a barrier between the two lines, and with the code after it.
/// The fix is valid if neither part has the finding.
pub(super) fn second_dispatch(
    source: &ShaderText,
    target: &RepairTarget,
) -> Option<(SourceFix, Vec<String>)> {
    if !target.is_race() {
        return None;
    }
    let barriers = BarrierNames::of_source(source);
    // The line may be in a function that the entry point calls before and after the barrier.
    let entry = source.functions.iter().rev().find(|function| barriers.is_in(source, &function.body))?;
    let is_barrier = |one: &&ShaderStatement| {
        matches!(one.kind, StatementKind::Simple) && barriers.is_in(source, &one.range)
    };
    let barrier = entry.statements.iter().rfind(is_barrier)?;
    let is_kept = |one: &ShaderStatement| {
        let code = source.code(&one.range);
        matches!(one.kind, StatementKind::Simple) && super::divergence::declared(code).is_some()
            || code.starts_with("if") && has_word(code, "return")
    };
    let cut = |one: &&ShaderStatement| SourceEdit::replace(one.range.clone(), String::new());
    let (mut first, mut second) = (SourceFix::default(), SourceFix::default());
    first.edits.extend(
        entry.statements.iter().filter(|one| one.range.start > barrier.range.start).map(|one| cut(&one)),
    );
    let before =
        entry.statements.iter().filter(|one| one.range.start <= barrier.range.start && !is_kept(one));
    second.edits.extend(before.map(|one| cut(&one)));
    if first.edits.is_empty() || second.edits.is_empty() {
        return None;
    }
    let parts = vec![first.apply(&source.text)?, second.apply(&source.text)?];
    let words = "run the code after this barrier in a second dispatch: a barrier orders the invocations of one \
                 workgroup, and no workgroup waits for others";
    let fix = SourceFix {
        edits: Vec::new(),
        changes: vec![(source.line_of(barrier.range.start), words.to_owned())],
    };
    Some((fix, parts))
}
