//! Fixes for control barriers in divergent control flow: the code around the barrier moves into conditions,
//! so that every invocation reaches the barrier.
//!
//! The first candidate makes statements unconditional that use no value of the condition: the condition
//! usually guards the element of the invocation, and all invocations load the tile before the barrier. A
//! second candidate guards every statement.

use std::collections::BTreeSet;
use std::ops::Range;

use results::wire::ShaderChange;
use spirv_reader::ShaderLanguage;

use super::edit::{SourceFix, guard_statement, negate, reindent, split_outside_brackets};
use super::expression::{is_element, is_uniform_element, split_assignment};
use super::text::{ShaderStatement, ShaderText, StatementKind, identifiers};
use crate::record::CodeEdit;
use shader_source::scan::has_call;

/// Upper bound on the calls between a barrier and its condition.
const MAX_CALLS: usize = 4;

/// Returns candidates for a barrier in divergent control flow.
pub(super) fn divergence_fixes(source: &ShaderText, line: u32) -> Vec<SourceFix> {
    let barriers = BarrierNames::of_source(source);
    let mut sites: Vec<usize> = source
        .simple_statements_on(line)
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
        let calls = source.statements().into_iter().filter(|statement| {
            matches!(statement.kind, StatementKind::Simple)
                && names.iter().any(|name| has_call(source.code(&statement.range), name))
        });
        let callers: Vec<usize> =
            calls.map(|one| one.range.start).filter(|start| !sites.contains(start)).collect();
        if callers.is_empty() {
            break;
        }
        sites.extend(callers);
    }
    let mut fixes = Vec::new();
    for guards_all in [false, true] {
        for site in &sites {
            add_site_fixes(source, &barriers, *site, guards_all, &mut fixes);
        }
    }
    fixes
}

/// Adds the fixes for the conditions around and before a barrier.
fn add_site_fixes(
    source: &ShaderText,
    barriers: &BarrierNames,
    site: usize,
    guards_all: bool,
    fixes: &mut Vec<SourceFix>,
) {
    let path = source.path_to(site);
    for statement in path.iter().rev() {
        match &statement.kind {
            StatementKind::If { .. } => fixes.extend(split_if(source, barriers, statement, guards_all)),
            StatementKind::Loop { header, body } => {
                fixes.extend(make_loop_uniform(source, barriers, statement, header, body, guards_all));
                fixes.extend(delay_jumps(source, barriers, &body.block_statements(), "continue", guards_all));
            }
            StatementKind::Simple | StatementKind::Block(_) | StatementKind::Other => {}
        }
    }
    if let Some(function) = source.function_at(site) {
        let list: Vec<&ShaderStatement> = function.statements.iter().collect();
        fixes.extend(delay_jumps(source, barriers, &list, "return", guards_all));
    }
}

/// The functions that execute a control barrier.
pub(super) struct BarrierNames(Vec<String>);

impl BarrierNames {
    pub fn of_source(source: &ShaderText) -> BarrierNames {
        let known = source.language.control_barriers();
        let mut names = BarrierNames(known.iter().map(|name| (*name).to_owned()).collect());
        for _ in 0..MAX_CALLS {
            let calling = source.functions.iter().filter(|function| names.is_in(source, &function.body));
            let callers: Vec<String> = calling
                .map(|function| function.name.clone())
                .filter(|name| !names.0.contains(name))
                .collect();
            names.0.extend(callers);
        }
        names
    }

    /// Returns true if a part of the source executes a barrier.
    pub fn is_in(&self, source: &ShaderText, range: &Range<usize>) -> bool {
        self.0.iter().any(|name| has_call(source.code(range), name))
    }
}

/// Splits an `if` at its barriers.
fn split_if(
    source: &ShaderText,
    barriers: &BarrierNames,
    statement: &ShaderStatement,
    guards_all: bool,
) -> Option<SourceFix> {
    let StatementKind::If { condition, then, otherwise } = &statement.kind else { return None };
    let is_else = source.parent(&statement.range).is_some_and(|parent| {
        matches!(&parent.kind, StatementKind::If { otherwise: Some(other), .. } if other.range == statement.range)
    });
    if is_else || source.has_directive(&statement.range) {
        return None;
    }
    let indentation = source.indentation(statement.range.start).to_owned();
    let condition = source.code(condition).to_owned();
    let mut writer = GuardWriter::new(source, barriers, &condition, &[], indentation.clone(), guards_all)
        .with_kept_locals(&statement.range);
    if let Some(other) = otherwise.as_deref() {
        if barriers.is_in(source, &other.range) {
            return split_both_branches(source, barriers, statement, &condition, then, other);
        }
        writer.add_text(guard_statement(
            source,
            &negate(&condition),
            &body_text(source, other),
            &indentation,
        ));
    }
    writer.add_statements(&then.block_statements())?;
    // The last candidate removes the condition instead of adding guards.
    let text = writer.finish().filter(|written| guards_all || written.guards > 0)?.text;
    let text = if source.is_unbraced(&statement.range) { format!("{{ {text} }}") } else { text };
    Some(SourceFix::new(
        vec![CodeEdit::replace(statement.range.clone(), text)],
        source.line_of(statement.range.start),
        ShaderChange::SplitIf,
    ))
}

/// Joins the barriers of both branches of an `if`.
fn split_both_branches(
    source: &ShaderText,
    barriers: &BarrierNames,
    statement: &ShaderStatement,
    condition: &str,
    then: &ShaderStatement,
    other: &ShaderStatement,
) -> Option<SourceFix> {
    let split_at_barriers = |branch: &ShaderStatement| -> Option<(Vec<String>, Vec<String>)> {
        let (mut parts, mut barrier_calls) = (vec![String::new()], Vec::new());
        for statement in branch.block_statements() {
            let text = source.text.get(statement.range.clone())?;
            let is_barrier = barriers.is_in(source, &statement.range);
            if is_barrier && !matches!(statement.kind, StatementKind::Simple) {
                return None;
            }
            if is_barrier {
                barrier_calls.push(text.to_owned());
                parts.push(String::new());
            } else if let Some(last) = parts.last_mut() {
                let old = source.indentation(statement.range.start);
                *last += &format!("{}\n", reindent(text, old, ""));
            }
        }
        Some((parts, barrier_calls))
    };
    let ((first, barrier_calls), (second, others)) = (split_at_barriers(then)?, split_at_barriers(other)?);
    if barrier_calls.len() != others.len() {
        return None;
    }
    let indentation = source.indentation(statement.range.start);
    let mut text = String::new();
    for (number, (left, right)) in first.iter().zip(&second).enumerate() {
        let (left, right) = (left.trim(), right.trim());
        let negated = negate(condition);
        for (condition, body) in [(condition, left), (negated.as_str(), right)] {
            if !body.is_empty() {
                let body = body.replace('\n', &format!("\n{indentation}"));
                text += &format!("{indentation}{}\n", guard_statement(source, condition, &body, indentation));
            }
        }
        if let Some(wait) = barrier_calls.get(number) {
            text += &format!("{indentation}{wait}\n");
        }
    }
    let edit = CodeEdit::replace(statement.range.clone(), text.trim().to_owned());
    Some(SourceFix::new(vec![edit], source.line_of(statement.range.start), ShaderChange::JoinBarriers))
}

/// Returns the text of a statement without the braces around it.
fn body_text(source: &ShaderText, of: &ShaderStatement) -> String {
    let range = match (&of.kind, &of.block_statements()[..]) {
        (StatementKind::Block(_), [first, .., last]) => first.range.start..last.range.end,
        (StatementKind::Block(_), [one]) => one.range.clone(),
        _ => of.range.clone(),
    };
    let old = source.indentation(range.start).to_owned();
    reindent(source.text.get(range).unwrap_or_default(), &old, source.indentation(of.range.start))
}

/// Moves jumps before a barrier in a list to the position after its last barrier.
fn delay_jumps(
    source: &ShaderText,
    barriers: &BarrierNames,
    list: &[&ShaderStatement],
    jump: &str,
    guards_all: bool,
) -> Vec<SourceFix> {
    let Some(last) = list.iter().rposition(|one| barriers.is_in(source, &one.range)) else {
        return Vec::new();
    };
    let mut fixes = Vec::new();
    for (index, statement) in list.iter().enumerate().take(last) {
        let StatementKind::If { condition, then, otherwise: None } = &statement.kind else { continue };
        let inner = then.block_statements();
        let is_jump =
            |statement: &&ShaderStatement| source.code(&statement.range).trim_end_matches(';').trim() == jump;
        let Some((_, before)) = inner.split_last().filter(|(end, _)| is_jump(end)) else { continue };
        let region = statement.range.start..list[last].range.end;
        if source.has_directive(&region) {
            continue;
        }
        let indentation = source.indentation(statement.range.start).to_owned();
        let condition = source.code(condition).to_owned();
        let continue_condition = negate(&condition);
        let mut writer =
            GuardWriter::new(source, barriers, &continue_condition, &[], indentation.clone(), guards_all);
        if let [first, ..] = before {
            let end = before.last().map_or(first.range.end, |last| last.range.end);
            let old = source.indentation(first.range.start).to_owned();
            let body =
                reindent(source.text.get(first.range.start..end).unwrap_or_default(), &old, &indentation);
            writer.add_text(guard_statement(source, &condition, &body, &indentation));
        }
        if writer.add_statements(&list[index + 1..=last]).is_none() {
            continue;
        }
        // The other invocations execute the statements after the last barrier.
        if last + 1 < list.len() {
            let jump = format!("{jump};");
            writer.add_jump(&condition, &jump, before.is_empty().then(|| statement.range.clone()));
        }
        let Some(written) = writer.finish() else { continue };
        let edit = CodeEdit::replace(region, written.text);
        let change = ShaderChange::MoveJump { jump: jump.to_owned(), has_guards: written.guards > 0 };
        fixes.push(SourceFix::new(vec![edit], source.line_of(statement.range.start), change));
    }
    fixes
}

/// Rewrites a strided loop such that every invocation has the same number of iterations.
fn make_loop_uniform(
    source: &ShaderText,
    barriers: &BarrierNames,
    statement: &ShaderStatement,
    header: &Range<usize>,
    body: &ShaderStatement,
    guards_all: bool,
) -> Option<SourceFix> {
    let header = source.code(header);
    let parts = split_outside_brackets(header, ";");
    let [init, condition, step] = &parts[..] else { return None };
    let (target, first) = init.split_once('=')?;
    let (target, first) = (target.trim(), first.trim());
    let is_wgsl = source.language == ShaderLanguage::Wgsl;
    let declared = target.split(':').next().unwrap_or(target).trim();
    let (ty, name) = declared.rsplit_once(char::is_whitespace)?;
    if identifiers(first).next().is_none() || source.has_directive(&statement.range) {
        return None;
    }
    let base = format!("{name}_base");
    let rename_counter = |text: &str| replace_word(text, name, &base);
    let (start, inner) = match is_wgsl {
        true => (format!("var {base} = 0u"), format!("let {name} = {base} + {first};")),
        false => (format!("{ty} {base} = 0"), format!("{ty} {name} = {base} + {first};")),
    };
    let indentation = source.indentation(statement.range.start);
    let unit = source.indentation_unit();
    let deeper = format!("{indentation}{unit}");
    let condition = condition.trim();
    let mut writer = GuardWriter::new(source, barriers, condition, &[name], deeper.clone(), guards_all)
        .with_kept_locals(&statement.range);
    writer.add_statements(&body.block_statements())?;
    let text = writer.finish()?.text;
    let header = format!("{start}; {}; {}", rename_counter(condition), rename_counter(step.trim()));
    let text = format!("for ({header}) {{\n{deeper}{inner}\n{deeper}{text}\n{indentation}}}");
    Some(SourceFix::new(
        vec![CodeEdit::replace(statement.range.clone(), text)],
        source.line_of(statement.range.start),
        ShaderChange::MakeLoopUniform,
    ))
}

/// Replaces an identifier.
pub(super) fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let is_start =
            !rest[..at].ends_with(|c: char| shader_source::scan::is_identifier_character(c) || c == '.');
        let is_end = !rest[at + from.len()..].starts_with(shader_source::scan::is_identifier_character);
        replaced += &rest[..at];
        replaced += if is_start && is_end { to } else { from };
        rest = &rest[at + from.len()..];
    }
    replaced + rest
}

/// Returns the identifiers of a text that are neither members nor called functions.
pub(super) fn variable_names(text: &str) -> BTreeSet<String> {
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
pub(super) struct Declaration<'a> {
    pub head: &'a str,
    pub name: &'a str,
    pub value: Option<&'a str>,
}

/// Returns the declaration in a simple statement, if there is one.
pub(super) fn parse_declaration(code: &str) -> Option<Declaration<'_>> {
    let code = code.trim().trim_end_matches(';');
    let (left, value) = match code.split_once('=') {
        Some((left, value)) if !value.starts_with('=') => (left, Some(value.trim())),
        _ => (code, None),
    };
    let left = left.trim();
    let name_end = left.find(['[', ':']).unwrap_or(left.len());
    let named = left[..name_end].trim_end();
    let (head, name) = named.rsplit_once(char::is_whitespace)?;
    let is_head = head
        .chars()
        .all(|c| shader_source::scan::is_identifier_character(c) || c == ' ' || c == '<' || c == '>');
    let is_jump = ["return", "break", "continue", "discard", "else"].contains(&head.trim());
    let is_name = name.chars().all(shader_source::scan::is_identifier_character) && !name.is_empty();
    (is_head && !is_jump && is_name).then_some(Declaration { head: head.trim(), name, value })
}

/// Returns true if a text changes a variable.
fn is_assigned_in(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let rest = code[at + name.len()..].trim_start();
        let is_word =
            !code[..at].ends_with(|c: char| shader_source::scan::is_identifier_character(c) || c == '.');
        let changes = ["+=", "-=", "*=", "/=", "|=", "&=", "^=", "++", "--", ">>=", "<<="];
        let is_plain = rest.starts_with('=') && !rest.starts_with("==");
        is_word && (is_plain || changes.iter().any(|operator| rest.starts_with(operator)))
    })
}

/// Statements with guards.
struct GuardedText {
    text: String,
    guards: usize,
}

/// Writes statements such that every invocation reaches their barriers.
#[derive(Clone)]
struct GuardWriter<'a> {
    source: &'a ShaderText,
    barriers: &'a BarrierNames,
    condition: String,
    /// The names in the condition, and names computed from them.
    condition_names: BTreeSet<String>,
    indentation: String,
    guards_all: bool,
    /// The local variables that must keep their value in the other invocations.
    kept_locals: BTreeSet<String>,
    pieces: Vec<GuardPiece>,
    is_changing: bool,
}

#[derive(Clone)]
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
        more_names: &[&str],
        indentation: String,
        guards_all: bool,
    ) -> GuardWriter<'a> {
        let mut condition_names = variable_names(condition);
        condition_names.extend(more_names.iter().map(|name| (*name).to_owned()));
        let statements = source.statements();
        let values: Vec<(&str, &str)> = statements
            .iter()
            .filter(|one| matches!(one.kind, StatementKind::Simple))
            .filter_map(|one| parse_declaration(source.code(&one.range)))
            .filter_map(|one| Some((one.name, one.value?)))
            .collect();
        // Names from which a tested value is computed are also tested.
        let sources: Vec<String> = values
            .iter()
            .filter(|(name, _)| condition_names.contains(*name))
            .flat_map(|(_, value)| variable_names(value))
            .collect();
        condition_names.extend(sources);
        for _ in 0..MAX_CALLS {
            for (name, value) in &values {
                if variable_names(value).iter().any(|used| condition_names.contains(used)) {
                    condition_names.insert((*name).to_owned());
                }
            }
        }
        GuardWriter {
            source,
            barriers,
            condition: condition.to_owned(),
            condition_names,
            indentation,
            guards_all,
            kept_locals: BTreeSet::new(),
            pieces: Vec::new(),
            is_changing: false,
        }
    }

    /// Guards statements that change a local variable declared outside a region and used after it by other
    /// invocations.
    fn with_kept_locals(mut self, region: &Range<usize>) -> GuardWriter<'a> {
        let outside = self.source.statements().into_iter().filter(|one| !region.contains(&one.range.start));
        let names = outside.filter_map(|one| parse_declaration(self.source.code(&one.range)));
        self.kept_locals = names.map(|found| found.name.to_owned()).collect();
        self
    }

    fn add_text(&mut self, text: String) {
        self.pieces.push(GuardPiece::Plain(text));
    }

    fn add_jump(&mut self, condition: &str, code: &str, original: Option<Range<usize>>) {
        let original = original.and_then(|range| self.source.text.get(range)).map(str::to_owned);
        let (condition, code) = (condition.to_owned(), code.to_owned());
        self.pieces.push(GuardPiece::Jump { condition, code, original });
    }

    /// Adds statements; `None` if the condition cannot be moved around a barrier.
    fn add_statements(&mut self, list: &[&ShaderStatement]) -> Option<()> {
        for (index, statement) in list.iter().enumerate() {
            let code = self.source.code(&statement.range).to_owned();
            let text = self.statement_text(list, index)?;
            let is_used = variable_names(&code).iter().any(|name| self.condition_names.contains(name))
                || self.kept_locals.iter().any(|name| is_assigned_in(&code, name));
            self.is_changing |= self.changes_condition(&code);
            if self.barriers.is_in(self.source, &statement.range) {
                let text = self.write_around_barrier(statement, &text)?;
                self.pieces.push(GuardPiece::Plain(text));
            } else if matches!(statement.kind, StatementKind::Simple)
                && let Some(declaration) = parse_declaration(&code)
            {
                let later = &list[index + 1..];
                self.add_declaration(&declaration, &text, is_used, later);
            } else if self.guards_all || is_used || self.stores_to_shared_element(statement) {
                self.pieces.push(GuardPiece::Guarded(text));
            } else {
                self.pieces.push(GuardPiece::Plain(text));
            }
        }
        Some(())
    }

    /// Returns true if a statement stores to an element that all invocations share: the condition decides its value.
    fn stores_to_shared_element(&self, statement: &ShaderStatement) -> bool {
        let all = self.source.statements();
        let simple = all.iter().filter(|one| matches!(one.kind, StatementKind::Simple));
        let codes: Vec<(usize, &str)> =
            simple.map(|one| (one.range.start, self.source.code(&one.range))).collect();
        let is_local = |element: &str| {
            let declared = codes.iter().filter_map(|(_, code)| parse_declaration(code));
            identifiers(element).next().is_none_or(|name| declared.into_iter().any(|one| one.name == name))
        };
        codes.iter().filter(|(start, _)| statement.range.contains(start)).any(|(_, code)| {
            split_assignment(code).is_some_and(|(element, _)| {
                is_element(element) && is_uniform_element(element) && !is_local(element)
            })
        })
    }

    /// Adds a declaration outside of its guard, so that it stays in scope.
    fn add_declaration(
        &mut self,
        declaration: &Declaration<'_>,
        text: &str,
        is_used: bool,
        later: &[&ShaderStatement],
    ) {
        let Declaration { head, name, value } = declaration;
        let reads_memory = value.is_some_and(|value| value.contains('[') || value.contains('('));
        let ty = head.trim_start_matches("const ").trim();
        let can_split = self.source.language != ShaderLanguage::Wgsl && !ty.contains(' ');
        match value {
            Some(value) if is_used && reads_memory && can_split && !later.is_empty() => {
                let zero = self.source.language.zero_of(ty);
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
    fn statement_text(&self, list: &[&ShaderStatement], index: usize) -> Option<String> {
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
        let full_text = text.get(before..end)?.trim_end();
        let old = self.source.indentation(one.range.start);
        Some(reindent(full_text.trim_start(), old, &self.indentation))
    }

    fn changes_condition(&self, code: &str) -> bool {
        parse_declaration(code).is_none()
            && variable_names(&self.condition).iter().any(|name| is_assigned_in(code, name))
    }

    /// Writes a statement that contains a barrier.
    fn write_around_barrier(&self, statement: &ShaderStatement, text: &str) -> Option<String> {
        let body = match &statement.kind {
            StatementKind::Simple => return Some(text.to_owned()),
            StatementKind::Loop { body, .. } => body,
            StatementKind::If { then, otherwise: None, .. } => then,
            StatementKind::If { .. } | StatementKind::Block(_) | StatementKind::Other => return None,
        };
        let deeper = format!("{}{}", self.indentation, self.source.indentation_unit());
        let mut inner = GuardWriter {
            indentation: deeper.clone(),
            pieces: Vec::new(),
            is_changing: false,
            ..self.clone()
        };
        inner.add_statements(&body.block_statements())?;
        let inner = inner.finish()?.text;
        let head = self.source.text.get(statement.range.start..body.range.start)?.trim_end();
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
        let is_evaluated_once = guards + jumps > 1 && (self.condition.contains('[') || self.is_changing);
        let name =
            ["is_active", "is_active_lane"].into_iter().find(|name| !self.source.plain.contains(name))?;
        let condition = if is_evaluated_once { name.to_owned() } else { self.condition.clone() };
        let mut lines = Vec::new();
        if is_evaluated_once {
            let word = if self.source.language == ShaderLanguage::Wgsl { "let" } else { "bool" };
            lines.push(format!("{word} {name} = {};", self.condition));
        }
        for group in groups {
            lines.push(match group {
                GuardPiece::Plain(text) => text,
                GuardPiece::Guarded(text) => {
                    guard_statement(self.source, &condition, &text, &self.indentation)
                }
                GuardPiece::Jump { original: Some(original), .. } if !is_evaluated_once => original,
                GuardPiece::Jump { condition, code, .. } => {
                    let condition = if is_evaluated_once { format!("!{name}") } else { condition };
                    guard_statement(self.source, &condition, &code, &self.indentation)
                }
            });
        }
        Some(GuardedText { text: lines.join(&format!("\n{}", self.indentation)), guards })
    }
}
