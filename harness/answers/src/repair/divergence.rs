//! Fixes for control barriers in divergent control flow: the code around the barrier moves into conditions,
//! so that every invocation reaches the barrier.
//!
//! The first candidate makes statements unconditional that use no value of the condition: the condition
//! usually guards the element of the invocation, and all invocations load the tile before the barrier. A
//! second candidate guards every statement.

use std::collections::BTreeSet;
use std::ops::Range;

use super::edit::{SourceEdit, SourceFix, guarded, negate, reindent, split_outside};
use super::text::{RepairLanguage, ShaderStatement, ShaderText, StatementKind, identifiers};
use crate::scan::has_function;

/// Upper bound on the calls between a barrier and its condition.
const MAX_CALLS: usize = 4;

/// Returns candidates for a barrier in divergent control flow.
pub(super) fn divergence_fixes(source: &ShaderText, line: u32) -> Vec<SourceFix> {
    let barriers = BarrierNames::of_source(source);
    let mut sites: Vec<usize> = source
        .simple_on(line)
        .into_iter()
        .filter(|one| barriers.is_in(source, &one.range))
        .map(|one| one.range.start)
        .collect();
    // A call of a function with a barrier is a barrier, too.
    for _ in 0..MAX_CALLS {
        let names: BTreeSet<&str> = sites
            .iter()
            .filter_map(|at| source.function_at(*at))
            .map(|function| function.name.as_str())
            .collect();
        let calls = source.statements().into_iter().filter(|one| {
            matches!(one.kind, StatementKind::Simple)
                && names.iter().any(|name| has_function(source.code(&one.range), name))
        });
        let more: Vec<usize> =
            calls.map(|one| one.range.start).filter(|start| !sites.contains(start)).collect();
        if more.is_empty() {
            break;
        }
        sites.extend(more);
    }
    let mut fixes = Vec::new();
    for is_all in [false, true] {
        for site in &sites {
            site_fixes(source, &barriers, *site, is_all, &mut fixes);
        }
    }
    fixes
}

/// Adds the fixes for the conditions around and before a barrier.
fn site_fixes(
    source: &ShaderText,
    barriers: &BarrierNames,
    site: usize,
    is_all: bool,
    fixes: &mut Vec<SourceFix>,
) {
    let path = source.path_to(site);
    for one in path.iter().rev() {
        match &one.kind {
            StatementKind::If { .. } => fixes.extend(split_if(source, barriers, one, is_all)),
            StatementKind::Loop { header, body } => {
                fixes.extend(uniform_loop(source, barriers, one, (header, body), is_all));
                fixes.extend(delayed_jumps(source, barriers, &body.list(), "continue", is_all));
            }
            StatementKind::Simple | StatementKind::Block(_) | StatementKind::Other => {}
        }
    }
    if let Some(function) = source.function_at(site) {
        let list: Vec<&ShaderStatement> = function.statements.iter().collect();
        fixes.extend(delayed_jumps(source, barriers, &list, "return", is_all));
    }
}

/// The functions that execute a control barrier.
pub(super) struct BarrierNames(Vec<String>);

impl BarrierNames {
    pub fn of_source(source: &ShaderText) -> BarrierNames {
        let known: &[&str] = match source.language {
            RepairLanguage::Glsl => &["barrier"],
            RepairLanguage::Hlsl => &[
                "GroupMemoryBarrierWithGroupSync",
                "DeviceMemoryBarrierWithGroupSync",
                "AllMemoryBarrierWithGroupSync",
            ],
            RepairLanguage::Wgsl => {
                &["workgroupBarrier", "storageBarrier", "textureBarrier", "workgroupUniformLoad"]
            }
        };
        let mut names = BarrierNames(known.iter().map(|name| (*name).to_owned()).collect());
        for _ in 0..MAX_CALLS {
            let calling = source.functions.iter().filter(|function| names.is_in(source, &function.body));
            let more: Vec<String> = calling
                .map(|function| function.name.clone())
                .filter(|name| !names.0.contains(name))
                .collect();
            names.0.extend(more);
        }
        names
    }

    /// Returns true if a part of the source executes a barrier.
    pub fn is_in(&self, source: &ShaderText, range: &Range<usize>) -> bool {
        self.0.iter().any(|name| has_function(source.code(range), name))
    }
}

/// Splits an `if` at its barriers.
fn split_if(
    source: &ShaderText,
    barriers: &BarrierNames,
    one: &ShaderStatement,
    is_all: bool,
) -> Option<SourceFix> {
    let StatementKind::If { condition, then, otherwise } = &one.kind else { return None };
    let is_else = source.parent(&one.range).is_some_and(|parent| {
        matches!(&parent.kind, StatementKind::If { otherwise: Some(other), .. } if other.range == one.range)
    });
    if is_else || source.has_directive(&one.range) {
        return None;
    }
    let indentation = source.indentation(one.range.start).to_owned();
    let condition = source.code(condition).to_owned();
    let mut writer = GuardWriter::new(source, barriers, &condition, &[], indentation.clone(), is_all)
        .keep_locals(&one.range);
    if let Some(other) = otherwise.as_deref() {
        if barriers.is_in(source, &other.range) {
            return split_both(source, barriers, one, &condition, (then, other));
        }
        writer.text(guarded(source, &negate(&condition), &body_text(source, other), &indentation));
    }
    writer.list(&then.list())?;
    // The last candidate removes the condition instead of adding guards.
    let text = writer.finish().filter(|written| is_all || written.guards > 0)?.text;
    let text = if source.is_unbraced(&one.range) { format!("{{ {text} }}") } else { text };
    let words = "split this `if` so that every invocation reaches the barrier";
    Some(SourceFix::new(
        vec![SourceEdit::replace(one.range.clone(), text)],
        source.line_of(one.range.start),
        words,
    ))
}

/// Joins the barriers of both branches of an `if`.
fn split_both(
    source: &ShaderText,
    barriers: &BarrierNames,
    one: &ShaderStatement,
    condition: &str,
    (then, other): (&ShaderStatement, &ShaderStatement),
) -> Option<SourceFix> {
    let segments = |of: &ShaderStatement| -> Option<(Vec<String>, Vec<String>)> {
        let (mut parts, mut waits) = (vec![String::new()], Vec::new());
        for statement in of.list() {
            let text = source.text.get(statement.range.clone())?;
            let is_barrier = barriers.is_in(source, &statement.range);
            if is_barrier && !matches!(statement.kind, StatementKind::Simple) {
                return None;
            }
            if is_barrier {
                waits.push(text.to_owned());
                parts.push(String::new());
            } else if let Some(last) = parts.last_mut() {
                let old = source.indentation(statement.range.start);
                *last += &format!("{}\n", reindent(text, old, ""));
            }
        }
        Some((parts, waits))
    };
    let ((first, waits), (second, others)) = (segments(then)?, segments(other)?);
    if waits.len() != others.len() {
        return None;
    }
    let indentation = source.indentation(one.range.start);
    let mut text = String::new();
    for (number, (left, right)) in first.iter().zip(&second).enumerate() {
        let (left, right) = (left.trim(), right.trim());
        let negated = negate(condition);
        for (condition, body) in [(condition, left), (negated.as_str(), right)] {
            if !body.is_empty() {
                let body = body.replace('\n', &format!("\n{indentation}"));
                text += &format!("{indentation}{}\n", guarded(source, condition, &body, indentation));
            }
        }
        if let Some(wait) = waits.get(number) {
            text += &format!("{indentation}{wait}\n");
        }
    }
    let words = "move the barriers of both branches out of this `if`";
    let edit = SourceEdit::replace(one.range.clone(), text.trim().to_owned());
    Some(SourceFix::new(vec![edit], source.line_of(one.range.start), words))
}

/// Returns the text of a statement without the braces around it.
fn body_text(source: &ShaderText, of: &ShaderStatement) -> String {
    let range = match (&of.kind, &of.list()[..]) {
        (StatementKind::Block(_), [first, .., last]) => first.range.start..last.range.end,
        (StatementKind::Block(_), [one]) => one.range.clone(),
        _ => of.range.clone(),
    };
    let old = source.indentation(range.start).to_owned();
    reindent(source.text.get(range).unwrap_or_default(), &old, source.indentation(of.range.start))
}

/// Moves jumps before a barrier in a list to the position after its last barrier.
fn delayed_jumps(
    source: &ShaderText,
    barriers: &BarrierNames,
    list: &[&ShaderStatement],
    jump: &str,
    is_all: bool,
) -> Vec<SourceFix> {
    let Some(last) = list.iter().rposition(|one| barriers.is_in(source, &one.range)) else {
        return Vec::new();
    };
    let mut fixes = Vec::new();
    for (index, one) in list.iter().enumerate().take(last) {
        let StatementKind::If { condition, then, otherwise: None } = &one.kind else { continue };
        let inner = then.list();
        let is_jump = |one: &&ShaderStatement| source.code(&one.range).trim_end_matches(';').trim() == jump;
        let Some((_, before)) = inner.split_last().filter(|(end, _)| is_jump(end)) else { continue };
        let region = one.range.start..list[last].range.end;
        if source.has_directive(&region) {
            continue;
        }
        let indentation = source.indentation(one.range.start).to_owned();
        let condition = source.code(condition).to_owned();
        let going_on = negate(&condition);
        let mut writer = GuardWriter::new(source, barriers, &going_on, &[], indentation.clone(), is_all);
        if let [first, ..] = before {
            let end = before.last().map_or(first.range.end, |last| last.range.end);
            let old = source.indentation(first.range.start).to_owned();
            let body =
                reindent(source.text.get(first.range.start..end).unwrap_or_default(), &old, &indentation);
            writer.text(guarded(source, &condition, &body, &indentation));
        }
        if writer.list(&list[index + 1..=last]).is_none() {
            continue;
        }
        // The other invocations execute the statements after the last barrier.
        if last + 1 < list.len() {
            let jump = format!("{jump};");
            writer.jump(&condition, &jump, before.is_empty().then(|| one.range.clone()));
        }
        let Some(written) = writer.finish() else { continue };
        let edit = SourceEdit::replace(region, written.text);
        let words = match written.guards {
            0 => format!("move this `{jump}` after the last barrier"),
            _ => format!(
                "move this `{jump}` after the last barrier, and guard the code before that by a condition"
            ),
        };
        fixes.push(SourceFix::new(vec![edit], source.line_of(one.range.start), words));
    }
    fixes
}

/// Rewrites a strided loop such that every invocation has the same number of iterations.
fn uniform_loop(
    source: &ShaderText,
    barriers: &BarrierNames,
    one: &ShaderStatement,
    (header, body): (&Range<usize>, &ShaderStatement),
    is_all: bool,
) -> Option<SourceFix> {
    let header = source.code(header);
    let parts = split_outside(header, ";");
    let [init, condition, step] = &parts[..] else { return None };
    let (target, first) = init.split_once('=')?;
    let (target, first) = (target.trim(), first.trim());
    let is_wgsl = source.language == RepairLanguage::Wgsl;
    let declared = target.split(':').next().unwrap_or(target).trim();
    let (ty, name) = declared.rsplit_once(char::is_whitespace)?;
    if identifiers(first).next().is_none() || source.has_directive(&one.range) {
        return None;
    }
    let base = format!("{name}_base");
    let renamed = |text: &str| replace_word(text, name, &base);
    let (start, inner) = match is_wgsl {
        true => (format!("var {base} = 0u"), format!("let {name} = {base} + {first};")),
        false => (format!("{ty} {base} = 0"), format!("{ty} {name} = {base} + {first};")),
    };
    let indentation = source.indentation(one.range.start);
    let unit = source.unit();
    let deeper = format!("{indentation}{unit}");
    let condition = condition.trim();
    let mut writer = GuardWriter::new(source, barriers, condition, &[name], deeper.clone(), is_all)
        .keep_locals(&one.range);
    writer.list(&body.list())?;
    let text = writer.finish()?.text;
    let header = format!("{start}; {}; {}", renamed(condition), renamed(step.trim()));
    let text = format!("for ({header}) {{\n{deeper}{inner}\n{deeper}{text}\n{indentation}}}");
    let words =
        "let every invocation go through the same rounds of this loop, and guard the elements by a condition";
    Some(SourceFix::new(
        vec![SourceEdit::replace(one.range.clone(), text)],
        source.line_of(one.range.start),
        words,
    ))
}

/// Replaces an identifier.
pub(super) fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let is_start = !rest[..at].ends_with(|c: char| crate::scan::is_word(c) || c == '.');
        let is_end = !rest[at + from.len()..].starts_with(crate::scan::is_word);
        replaced += &rest[..at];
        replaced += if is_start && is_end { to } else { from };
        rest = &rest[at + from.len()..];
    }
    replaced + rest
}

/// Returns the identifiers of a text that are neither members nor called functions.
pub(super) fn free_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut at = 0;
    for word in identifiers(text) {
        let Some(found) = text.get(at..).and_then(|rest| rest.find(word)) else { continue };
        let start = at + found;
        at = start + word.len();
        let is_member = text[..start].ends_with('.');
        let is_call = text[at..].trim_start().starts_with('(');
        if !is_member && !is_call {
            names.insert(word.to_owned());
        }
    }
    names
}

/// A declaration: its type, its name and its initial value.
pub(super) struct Declared<'a> {
    pub head: &'a str,
    pub name: &'a str,
    pub value: Option<&'a str>,
}

/// Returns the declaration in a simple statement, if there is one.
pub(super) fn declared(code: &str) -> Option<Declared<'_>> {
    let code = code.trim().trim_end_matches(';');
    let (left, value) = match code.split_once('=') {
        Some((left, value)) if !value.starts_with('=') => (left, Some(value.trim())),
        _ => (code, None),
    };
    let left = left.trim();
    let name_end = left.find(['[', ':']).unwrap_or(left.len());
    let named = left[..name_end].trim_end();
    let (head, name) = named.rsplit_once(char::is_whitespace)?;
    let is_head = head.chars().all(|c| crate::scan::is_word(c) || c == ' ' || c == '<' || c == '>');
    let is_jump = ["return", "break", "continue", "discard", "else"].contains(&head.trim());
    let is_name = name.chars().all(crate::scan::is_word) && !name.is_empty();
    (is_head && !is_jump && is_name).then_some(Declared { head: head.trim(), name, value })
}

/// Returns true if a text changes a variable.
fn assigns(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let behind = code[at + name.len()..].trim_start();
        let is_word = !code[..at].ends_with(|c: char| crate::scan::is_word(c) || c == '.');
        let changes = ["+=", "-=", "*=", "/=", "|=", "&=", "^=", "++", "--", ">>=", "<<="];
        let is_plain = behind.starts_with('=') && !behind.starts_with("==");
        is_word && (is_plain || changes.iter().any(|operator| behind.starts_with(operator)))
    })
}

/// Statements with guards.
struct GuardedText {
    text: String,
    guards: usize,
}

/// Writes statements such that every invocation reaches their barriers.
struct GuardWriter<'a> {
    source: &'a ShaderText,
    barriers: &'a BarrierNames,
    condition: String,
    /// The names in the condition, and names computed from them.
    tested: BTreeSet<String>,
    indentation: String,
    is_all: bool,
    /// The local variables that must keep their value in the other invocations.
    kept: BTreeSet<String>,
    pieces: Vec<GuardPiece>,
    is_changing: bool,
}

enum GuardPiece {
    Plain(String),
    Guarded(String),
    /// A jump under the opposite condition.
    Jump {
        condition: String,
        code: String,
        original: Option<String>,
    },
}

impl<'a> GuardWriter<'a> {
    fn new(
        source: &'a ShaderText,
        barriers: &'a BarrierNames,
        condition: &str,
        more: &[&str],
        indentation: String,
        is_all: bool,
    ) -> GuardWriter<'a> {
        let mut tested = free_names(condition);
        tested.extend(more.iter().map(|name| (*name).to_owned()));
        let statements = source.statements();
        let values: Vec<(&str, &str)> = statements
            .iter()
            .filter(|one| matches!(one.kind, StatementKind::Simple))
            .filter_map(|one| declared(source.code(&one.range)))
            .filter_map(|one| Some((one.name, one.value?)))
            .collect();
        // Names from which a tested value is computed are also tested.
        let sources: Vec<String> = values
            .iter()
            .filter(|(name, _)| tested.contains(*name))
            .flat_map(|(_, value)| free_names(value))
            .collect();
        tested.extend(sources);
        for _ in 0..MAX_CALLS {
            for (name, value) in &values {
                if free_names(value).iter().any(|used| tested.contains(used)) {
                    tested.insert((*name).to_owned());
                }
            }
        }
        GuardWriter {
            source,
            barriers,
            condition: condition.to_owned(),
            tested,
            indentation,
            is_all,
            kept: BTreeSet::new(),
            pieces: Vec::new(),
            is_changing: false,
        }
    }

    /// Guards statements that change a local variable declared outside a region and used after it by other
    /// invocations.
    fn keep_locals(mut self, region: &Range<usize>) -> GuardWriter<'a> {
        let outside = self.source.statements().into_iter().filter(|one| !region.contains(&one.range.start));
        let names = outside.filter_map(|one| declared(self.source.code(&one.range)));
        self.kept = names.map(|found| found.name.to_owned()).collect();
        self
    }

    fn text(&mut self, text: String) {
        self.pieces.push(GuardPiece::Plain(text));
    }

    fn jump(&mut self, condition: &str, code: &str, original: Option<Range<usize>>) {
        let original = original.and_then(|range| self.source.text.get(range)).map(str::to_owned);
        let (condition, code) = (condition.to_owned(), code.to_owned());
        self.pieces.push(GuardPiece::Jump { condition, code, original });
    }

    /// Adds statements; `None` if the condition cannot be moved around a barrier.
    fn list(&mut self, list: &[&ShaderStatement]) -> Option<()> {
        for (index, one) in list.iter().enumerate() {
            let code = self.source.code(&one.range).to_owned();
            let text = self.extent(list, index)?;
            let is_used = free_names(&code).iter().any(|name| self.tested.contains(name))
                || self.kept.iter().any(|name| assigns(&code, name));
            self.is_changing |= self.changes_condition(&code);
            if self.barriers.is_in(self.source, &one.range) {
                let text = self.around_barrier(one, &text)?;
                self.pieces.push(GuardPiece::Plain(text));
            } else if matches!(one.kind, StatementKind::Simple)
                && let Some(declaration) = declared(&code)
            {
                let later = &list[index + 1..];
                self.declaration(&declaration, &text, is_used, later);
            } else if self.is_all || is_used {
                self.pieces.push(GuardPiece::Guarded(text));
            } else {
                self.pieces.push(GuardPiece::Plain(text));
            }
        }
        Some(())
    }

    /// Adds a declaration outside of its guard, so that it stays in scope.
    fn declaration(
        &mut self,
        declaration: &Declared<'_>,
        text: &str,
        is_used: bool,
        later: &[&ShaderStatement],
    ) {
        let Declared { head, name, value } = declaration;
        let reads_memory = value.is_some_and(|value| value.contains('[') || value.contains('('));
        let ty = head.trim_start_matches("const ").trim();
        let can_split = self.source.language != RepairLanguage::Wgsl && !ty.contains(' ');
        match value {
            Some(value) if is_used && reads_memory && can_split && !later.is_empty() => {
                let zero = match self.source.language {
                    RepairLanguage::Hlsl => format!("({ty})0"),
                    _ => format!("{ty}(0)"),
                };
                // Comments before and after the declaration move with it.
                let code_start = text.lines().take_while(|line| line.trim_start().starts_with("//")).count();
                let before: String = text
                    .lines()
                    .take(code_start)
                    .map(|line| format!("{}\n{}", line.trim(), self.indentation))
                    .collect();
                let after = text.rsplit_once(';').map_or("", |(_, comment)| comment);
                self.pieces.push(GuardPiece::Plain(format!("{before}{ty} {name} = {zero};{after}")));
                self.pieces.push(GuardPiece::Guarded(format!("{name} = {value};")));
            }
            _ => self.pieces.push(GuardPiece::Plain(text.to_owned())),
        }
    }

    /// Returns a statement with the comment after it, at the indentation of the writer.
    fn extent(&self, list: &[&ShaderStatement], index: usize) -> Option<String> {
        let one = list.get(index)?;
        let text = &self.source.text;
        let line_end = text[one.range.end..].find('\n').map_or(text.len(), |end| one.range.end + end);
        let is_alone = self.source.plain[one.range.end..line_end].trim().is_empty();
        let end = if is_alone { line_end } else { one.range.end };
        // Comments on the preceding lines belong to the statement.
        let before = match index.checked_sub(1).and_then(|before| list.get(before)) {
            Some(before) => {
                let rest = text.get(before.range.end..one.range.start)?;
                rest.find('\n').map_or(one.range.start, |end| before.range.end + end + 1)
            }
            None => one.range.start,
        };
        let whole = text.get(before..end)?.trim_end();
        let old = self.source.indentation(one.range.start);
        Some(reindent(whole.trim_start(), old, &self.indentation))
    }

    fn changes_condition(&self, code: &str) -> bool {
        declared(code).is_none() && free_names(&self.condition).iter().any(|name| assigns(code, name))
    }

    /// Writes a statement that contains a barrier.
    fn around_barrier(&self, one: &ShaderStatement, text: &str) -> Option<String> {
        let body = match &one.kind {
            StatementKind::Simple => return Some(text.to_owned()),
            StatementKind::Loop { body, .. } => body,
            StatementKind::If { then, otherwise: None, .. } => then,
            StatementKind::If { .. } | StatementKind::Block(_) | StatementKind::Other => return None,
        };
        let deeper = format!("{}{}", self.indentation, self.source.unit());
        let mut inner = GuardWriter {
            source: self.source,
            barriers: self.barriers,
            condition: self.condition.clone(),
            tested: self.tested.clone(),
            indentation: deeper.clone(),
            is_all: self.is_all,
            kept: self.kept.clone(),
            pieces: Vec::new(),
            is_changing: false,
        };
        inner.list(&body.list())?;
        let inner = inner.finish()?.text;
        let head = self.source.text.get(one.range.start..body.range.start)?.trim_end();
        Some(format!("{head} {{\n{deeper}{inner}\n{}}}", self.indentation))
    }

    /// Returns the text; consecutive guards are merged.
    fn finish(self) -> Option<GuardedText> {
        let mut groups: Vec<GuardPiece> = Vec::new();
        for piece in self.pieces {
            match (groups.last_mut(), piece) {
                (Some(GuardPiece::Guarded(known)), GuardPiece::Guarded(more)) => {
                    *known += &format!("\n{}{more}", self.indentation);
                }
                (_, piece) => groups.push(piece),
            }
        }
        let guards = groups.iter().filter(|piece| matches!(piece, GuardPiece::Guarded(_))).count();
        let jumps = groups.iter().filter(|piece| matches!(piece, GuardPiece::Jump { .. })).count();
        // A condition that reads memory or whose operands change is evaluated only once.
        let is_fixed = guards + jumps > 1 && (self.condition.contains('[') || self.is_changing);
        let name =
            ["is_active", "is_active_lane"].into_iter().find(|name| !self.source.plain.contains(name))?;
        let condition = if is_fixed { name.to_owned() } else { self.condition.clone() };
        let mut lines = Vec::new();
        if is_fixed {
            let word = if self.source.language == RepairLanguage::Wgsl { "let" } else { "bool" };
            lines.push(format!("{word} {name} = {};", self.condition));
        }
        for group in groups {
            lines.push(match group {
                GuardPiece::Plain(text) => text,
                GuardPiece::Guarded(text) => guarded(self.source, &condition, &text, &self.indentation),
                GuardPiece::Jump { original: Some(original), .. } if !is_fixed => original,
                GuardPiece::Jump { condition, code, .. } => {
                    let condition = if is_fixed { format!("!{name}") } else { condition };
                    guarded(self.source, &condition, &code, &self.indentation)
                }
            });
        }
        Some(GuardedText { text: lines.join(&format!("\n{}", self.indentation)), guards })
    }
}
