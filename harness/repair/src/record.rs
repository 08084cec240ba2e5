//! Fixes of findings as edits of a source text.

use std::ops::Range;

use crate::fix::{ChangeKind, KernelChange, WalkFixes};
use entry_point::accessed_variable::variable_label;
use litmus::{Scope, StorageClass};
use results::wire::{
    ChangeMemory, ChangeQualifier, ChangeRecord, InsertionAnchor, InsertionSide, RaceLine, ReplacedAccesses,
    ShaderChange,
};
use results::write::change::fix_title;
use shader_source::scan::line_range;
use similar::TextDiff;
use spirv_reader::{ShaderLanguage, SpirvModule};

use entry_point::source_location;

/// Code to replace a range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeEdit {
    /// The replaced bytes; empty for an insertion.
    pub range: Range<usize>,
    /// The code, with line ends and indentation.
    pub code: String,
}

impl CodeEdit {
    pub fn insert(at: usize, code: String) -> CodeEdit {
        CodeEdit { range: at..at, code }
    }

    pub fn replace(range: Range<usize>, code: String) -> CodeEdit {
        CodeEdit { range, code }
    }
}

/// Sorts edits by offset, and removes repeated ones.
pub(crate) fn sort_edits(edits: &mut Vec<CodeEdit>) {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end, edit.code.clone()));
    edits.dedup();
}

/// Returns a text with sorted edits; `None` if they overlap.
pub(crate) fn apply_edits(edits: &[CodeEdit], text: &str) -> Option<String> {
    let mut fixed = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        fixed.push_str(text.get(done..edit.range.start)?);
        fixed.push_str(&edit.code);
        done = edit.range.end;
    }
    fixed.push_str(text.get(done..)?);
    Some(fixed)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixEdits {
    /// A title in the imperative.
    pub title: String,
    /// The edits by offset.
    pub edits: Vec<CodeEdit>,
}

impl FixEdits {
    /// Adds the edits of another fix of the same text, without duplicates.
    pub fn merge(&mut self, other: FixEdits) {
        self.edits.extend(other.edits);
        sort_edits(&mut self.edits);
    }

    /// Returns true if both fixes change the same bytes in different ways.
    pub fn conflicts_with(&self, other: &FixEdits) -> bool {
        let overlap = |one: &CodeEdit, two: &CodeEdit| {
            one != two && one.range.start < two.range.end && two.range.start < one.range.end
        };
        self.edits.iter().any(|one| other.edits.iter().any(|two| overlap(one, two)))
    }

    /// Returns the text with all edits, or unchanged if they overlap.
    pub fn apply(&self, text: &str) -> String {
        apply_edits(&self.edits, text).unwrap_or_else(|| text.to_owned())
    }

    /// Returns the edits as a unified diff, which `patch` applies to the file.
    pub fn to_unified_diff(&self, file: &str, text: &str) -> String {
        let fixed = self.apply(text);
        let diff = TextDiff::from_lines(text, &fixed);
        diff.unified_diff().header(file, file).to_string()
    }
}

/// Adds the fixes to the findings that they remove.
pub fn add_fixes(line: &mut RaceLine, module: &SpirvModule, fixes: &WalkFixes) {
    for (finding, changes) in line.findings.iter_mut().zip(&fixes.changes) {
        finding.set_changes(changes.iter().map(|change| change_record(&line.file, module, change)).collect());
    }
}

/// Converts a change of a module to its published record.
pub fn change_record(file: &str, module: &SpirvModule, change: &KernelChange) -> ChangeRecord {
    let (file, line) = source_location(file, module, change.line, change.place);
    let change = shader_change(module, &change.kind);
    ChangeRecord { file: Some(file), line, change, edits: Vec::new() }
}

/// Returns a change of a module in the words of its source language.
fn shader_change(module: &SpirvModule, change: &ChangeKind) -> ShaderChange {
    let language = module.language.unwrap_or(ShaderLanguage::Glsl);
    let insert = |code, side: &InsertionSide, anchor: &InsertionAnchor| ShaderChange::Insert {
        code,
        side: *side,
        anchor: *anchor,
    };
    let use_atomic = |function: Option<String>, declares| ShaderChange::UseAtomic {
        function: function.unwrap_or_default(),
        replaces: ReplacedAccesses::LoadAndStore,
        declares,
        extension: None,
    };
    match change {
        ChangeKind::InsertBarrier { side, anchor, scope: Scope::Subgroup, .. } => {
            insert("subgroupBarrier();".to_owned(), side, anchor)
        }
        ChangeKind::InsertBarrier { side, anchor, class, .. } => {
            insert(language.control_barrier(*class), side, anchor)
        }
        ChangeKind::InsertFences { side, anchor, classes, .. } => {
            insert(language.memory_barrier(classes), side, anchor)
        }
        ChangeKind::MakeCoherent { root, is_left_out: true } => {
            ShaderChange::MakeAccessCoherent { name: variable_label(module, *root) }
        }
        ChangeKind::MakeCoherent { root, .. } => {
            let qualifier = match language {
                ShaderLanguage::Glsl | ShaderLanguage::OpenClC => ChangeQualifier::Coherent,
                ShaderLanguage::Hlsl if module.is_declared_coherent(*root) => ChangeQualifier::OtherCompiler,
                ShaderLanguage::Hlsl | ShaderLanguage::Slang => ChangeQualifier::GloballyCoherent,
                ShaderLanguage::Wgsl => ChangeQualifier::NagaCoherent,
            };
            ShaderChange::Declare { name: variable_label(module, *root), qualifier }
        }
        ChangeKind::ZeroInitialize(id) => ShaderChange::Initialize { name: module.display_name(*id) },
        ChangeKind::StrengthenOrder { anchor, more, .. } => ShaderChange::StrengthenOrder {
            operation: *anchor,
            acquire: more.acquire,
            release: more.release,
            class: match more.class {
                StorageClass::Buffer => ChangeMemory::Buffer,
                StorageClass::Workgroup => ChangeMemory::Shared,
                StorageClass::Image => ChangeMemory::Image,
                StorageClass::Output => ChangeMemory::Output,
            },
        },
        ChangeKind::WidenScope { anchor, .. } => ShaderChange::WidenScope { operation: *anchor },
        ChangeKind::MakeAtomic { .. } => ShaderChange::MakeAccessesAtomic,
        ChangeKind::MakeUpdate { atomic, .. } => {
            use_atomic(language.atomic_function(*atomic), language == ShaderLanguage::Wgsl)
        }
        ChangeKind::MakeImageUpdate { atomic, .. } => {
            use_atomic(language.image_atomic_function(*atomic), false)
        }
    }
}

/// Returns the edits of a fix; `None` unless each change has edits of this text or inserts code before or
/// after a line. `is_here` returns true for names of the text's file.
pub fn fix_edits(
    changes: &[ChangeRecord],
    is_here: impl Fn(&Option<String>) -> bool,
    text: &str,
) -> Option<FixEdits> {
    let mut fix = FixEdits { title: fix_title(changes), edits: Vec::new() };
    for change in changes {
        if !is_here(&change.file) {
            return None;
        }
        if change.edits.is_empty() {
            fix.edits.extend(insertions(change, text)?);
        }
        for edit in &change.edits {
            let start = line_start(text, edit.line as usize);
            let end = line_start(text, edit.line.saturating_add(edit.removed) as usize);
            fix.edits.push(CodeEdit::replace(start..end, edit.text.clone()));
        }
    }
    sort_edits(&mut fix.edits);
    Some(fix).filter(|fix| !fix.edits.is_empty())
}

/// Returns the edits of a change that inserts code next to a line.
fn insertions(change: &ChangeRecord, text: &str) -> Option<Vec<CodeEdit>> {
    let ShaderChange::Insert { code, side, anchor } = &change.change else { return None };
    let range = line_range(text, change.line? as usize);
    let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let indentation = &text[start..range.start];
    let (before, after) = side.to_flags();
    // The end of a loop or of a controlled statement is on another line, as that of an unfinished statement.
    if !anchor.is_on_line() || after && !text[range.clone()].trim_end().ends_with(';') {
        return None;
    }
    let mut edits = Vec::new();
    edits.extend(before.then(|| CodeEdit::insert(range.start, format!("{code}\n{indentation}"))));
    edits.extend(after.then(|| CodeEdit::insert(range.end, format!("\n{indentation}{code}"))));
    Some(edits)
}

/// Returns the offset of the first byte of a line, from 1; the end of the text for a line past the end.
fn line_start(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use results::wire::EditRecord;

    use super::*;

    const TEXT: &str = "void main() {\n    tile[i] = x;\n    y = tile[j];\n}\n";

    fn insertion(line: u32, side: InsertionSide, anchor: InsertionAnchor) -> Option<FixEdits> {
        let change = ShaderChange::Insert { code: "barrier();".to_owned(), side, anchor };
        let change = ChangeRecord { line: Some(line), change, file: None, edits: Vec::new() };
        fix_edits(&[change], |_| true, TEXT)
    }

    #[test]
    fn a_fix_is_offered_only_as_a_whole() {
        let both = insertion(2, InsertionSide::Around, InsertionAnchor::Line).unwrap();
        assert_eq!(both.title, "Put `barrier();` before and after line 2");
        let fixed = "void main() {\n    barrier();\n    tile[i] = x;\n    barrier();\n    y = tile[j];\n}\n";
        assert_eq!(both.apply(TEXT), fixed);
        // The statement may end on another line.
        assert_eq!(insertion(1, InsertionSide::After, InsertionAnchor::Atomic), None);
        assert_eq!(insertion(2, InsertionSide::After, InsertionAnchor::ControlledStatement), None);
    }

    #[test]
    fn edits_replace_whole_lines() {
        let edit = EditRecord { line: 2, removed: 1, text: "    atomicAdd(tile[i], x);\n".to_owned() };
        let change = ShaderChange::ReplaceBarrier { new: "barrier();".to_owned(), old: "x()".to_owned() };
        let change = ChangeRecord { line: Some(2), change, file: None, edits: vec![edit] };
        let fix = fix_edits(&[change], |_| true, TEXT).unwrap();
        assert_eq!(fix.title, "Use `barrier();` instead of `x();` (line 2)");
        assert_eq!(fix.apply(TEXT), TEXT.replace("tile[i] = x", "atomicAdd(tile[i], x)"));
    }
}
