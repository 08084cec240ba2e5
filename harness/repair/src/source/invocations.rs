//! Fixes that restrict the invocations of a statement: one of them stores, all of them initialize, and each
//! round of a reduction has its invocations.

use std::collections::BTreeSet;
use std::ops::Range;

use litmus::StorageClass;
use results::wire::{ReplacedAccesses, ShaderChange};
use spirv_reader::ShaderLanguage;

use super::divergence::{parse_declaration, variable_names};
use super::edit::{SourceFix, guard_statement, reindent, split_outside_brackets};
use super::expression::{is_element, is_uniform_element, remove_whitespace, split_assignment};
use super::finding::RepairTarget;
use super::text::{ShaderFunction, ShaderStatement, ShaderText, StatementKind, identifiers};
use super::wgsl_atomic::{AtomicPath, declare_atomic, parse_path};
use crate::record::CodeEdit;
use shader_source::scan::{has_word, is_identifier_character};

/// Upper bound on the definitions between a name and the index of the invocation.
const MAX_DEFINITIONS: usize = 4;

/// Expressions for the index of an invocation.
struct InvocationNumbers {
    /// The index within the workgroup.
    local_index: String,
    /// The edit that declares the index, if the entry point does not.
    declaration: Option<CodeEdit>,
    /// A condition that holds in one invocation of the dispatch.
    first_invocation_condition: Option<String>,
}

impl InvocationNumbers {
    fn from_source(source: &ShaderText) -> Option<InvocationNumbers> {
        let built_in = match source.language {
            ShaderLanguage::Glsl => Some(("gl_LocalInvocationIndex", "gl_GlobalInvocationID == uvec3(0)")),
            ShaderLanguage::OpenClC => Some(("get_local_id(0)", "get_global_id(0) == 0")),
            ShaderLanguage::Hlsl | ShaderLanguage::Slang | ShaderLanguage::Wgsl => None,
        };
        if let Some((local_index, first)) = built_in {
            return Some(InvocationNumbers {
                local_index: local_index.to_owned(),
                declaration: None,
                first_invocation_condition: Some(first.to_owned()),
            });
        }
        let entry = find_entry_point(source)?;
        let parameters = source.code(&entry.parameters);
        let parameter_name = |builtin: &str| {
            let part =
                split_outside_brackets(parameters, ",").into_iter().find(|part| part.contains(builtin))?;
            let name = match source.language {
                ShaderLanguage::Wgsl => part.split_once(')')?.1.split(':').next()?,
                _ => part.split(':').next()?.trim().rsplit_once(char::is_whitespace)?.1,
            };
            Some(name.trim().to_owned())
        };
        let is_wgsl = source.language == ShaderLanguage::Wgsl;
        let [index, local, global] = match is_wgsl {
            true => ["local_invocation_index", "local_invocation_id", "global_invocation_id"],
            false => ["SV_GroupIndex", "SV_GroupThreadID", "SV_DispatchThreadID"],
        };
        let is_zero_condition = |name: String| match is_wgsl {
            true => format!("all({name} == vec3<u32>(0u))"),
            false => format!("all({name} == 0)"),
        };
        let is_one_dimensional = workgroup_size(source).is_some_and(|size| !size.contains('*')) && !is_wgsl;
        let index_in_line =
            || parameter_name(local).filter(|_| is_one_dimensional).map(|name| format!("{name}.x"));
        let known = parameter_name(index).or_else(index_in_line);
        let name = "local_index";
        let declaration = known.is_none().then(|| {
            let separator = if parameters.is_empty() { "" } else { ", " };
            let declared = match is_wgsl {
                true => format!("{separator}@builtin({index}) {name}: u32"),
                false => format!("{separator}uint {name} : {index}"),
            };
            let end = entry.parameters.start + source.plain[entry.parameters.clone()].trim_end().len();
            CodeEdit::insert(end, declared)
        });
        Some(InvocationNumbers {
            local_index: known.unwrap_or_else(|| name.to_owned()),
            declaration,
            first_invocation_condition: parameter_name(global).map(is_zero_condition),
        })
    }
}

/// Returns the entry point: `main`, or the function with a workgroup size.
fn find_entry_point(source: &ShaderText) -> Option<&ShaderFunction> {
    let is_entry = |function: &&ShaderFunction| {
        let before = &source.plain[..function.parameters.start];
        let start = before.rfind([';', '}']).map_or(0, |end| end + 1);
        let head = &before[start..];
        let words = ["numthreads", "@compute", "kernel"];
        function.name == "main" || words.iter().any(|word| head.contains(word))
    };
    source.functions.iter().find(is_entry)
}

/// Returns the number of invocations in a workgroup as an expression.
fn workgroup_size(source: &ShaderText) -> Option<String> {
    if source.language == ShaderLanguage::Glsl {
        let is_multidimensional =
            ["local_size_y", "local_size_z"].iter().any(|word| source.plain.contains(word));
        let size = "gl_WorkGroupSize.x";
        return Some(match is_multidimensional {
            true => format!("{size} * gl_WorkGroupSize.y * gl_WorkGroupSize.z"),
            false => size.to_owned(),
        });
    }
    if source.language == ShaderLanguage::OpenClC {
        return Some("get_local_size(0)".to_owned());
    }
    let at = source.plain.find("numthreads")?;
    let sizes = source.plain[at..].split_once('(')?.1.split_once(')')?.0;
    let sizes: Vec<&str> = sizes.split(',').map(str::trim).filter(|size| *size != "1").collect();
    Some(if sizes.is_empty() { "1".to_owned() } else { sizes.join(" * ") })
}

/// Returns the names whose values differ between invocations.
fn invocation_dependent_names(source: &ShaderText) -> BTreeSet<String> {
    let glsl = [
        "gl_LocalInvocationIndex",
        "gl_LocalInvocationID",
        "gl_GlobalInvocationID",
        "gl_SubgroupInvocationID",
        "gl_SubgroupID",
        "gl_FragCoord",
        "gl_VertexIndex",
    ];
    let mut names: BTreeSet<String> = glsl.iter().map(|name| (*name).to_owned()).collect();
    if source.language != ShaderLanguage::Glsl
        && let Some(entry) = find_entry_point(source)
    {
        let parameters = split_outside_brackets(source.code(&entry.parameters), ",");
        let is_lane = |part: &&&str| {
            !part.contains("SV_GroupID") && !part.contains("workgroup_id") && !part.contains("num_workgroups")
        };
        names.extend(parameters.iter().filter(is_lane).flat_map(|part| variable_names(part)));
    }
    for _ in 0..MAX_DEFINITIONS {
        for statement in source.statements() {
            let parts = match &statement.kind {
                StatementKind::Simple => &statement.range,
                // The counter of a loop may start at the index of the invocation.
                StatementKind::Loop { header, .. } => header,
                StatementKind::If { .. } | StatementKind::Block(_) | StatementKind::Other => continue,
            };
            let mut heads =
                source.path_to(statement.range.start).into_iter().filter_map(ShaderStatement::head);
            let is_divergent =
                heads.any(|head| variable_names(source.code(head)).iter().any(|name| names.contains(name)));
            let parts = split_outside_brackets(source.code(parts), ";");
            for part in parts.into_iter().flat_map(|part| split_outside_brackets(part, ",")) {
                let Some((left, value)) = part.split_once('=') else { continue };
                if is_divergent || variable_names(value).iter().any(|name| names.contains(name)) {
                    names.extend(assigned_name(left).map(str::to_owned));
                }
            }
        }
    }
    names
}

/// Returns the whole variable that the left side of an assignment or a declaration changes.
fn assigned_name(left: &str) -> Option<&str> {
    let name = left.split(':').next()?;
    identifiers(name).last().filter(|_| !name.contains(['[', '.']))
}

/// Returns candidates that restrict a store, which all invocations execute, to one invocation.
pub(super) fn restrict_to_one_writer(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let Some(numbers) = InvocationNumbers::from_source(source) else { return Vec::new() };
    let lanes = invocation_dependent_names(source);
    let uses_lane = |text: &str| variable_names(text).iter().any(|name| lanes.contains(name));
    let mut fixes = Vec::new();
    for line in &target.lines {
        for statement in source.simple_statements_on(*line) {
            let code = source.code(&statement.range).trim_end_matches(';').trim().to_owned();
            let Some((element, value)) = split_assignment(&code) else { continue };
            let is_target =
                is_element(element) && target.may_be_element(element) && parse_declaration(&code).is_none();
            // A store whose element or condition depends on the invocation differs between invocations.
            if !is_target || !is_uniform_element(element) || value.contains(element.trim()) {
                continue;
            }
            let around = source.path_to(statement.range.start);
            if around.into_iter().filter_map(|one| one.head()).any(|head| uses_lane(source.code(head))) {
                fixes.extend(to_atomic_store(source, statement, element.trim(), value.trim()));
                continue;
            }
            let zero = if source.language == ShaderLanguage::Wgsl { "0u" } else { "0" };
            let local =
                Some(format!("{} == {zero}", numbers.local_index)).filter(|_| target.is_one_workgroup);
            let conditions = local.into_iter().chain(numbers.first_invocation_condition.clone());
            let conditions: Vec<String> = conditions.collect();
            for condition in conditions {
                let indentation = source.indentation(statement.range.start);
                let text = source.text.get(statement.range.clone()).unwrap_or_default();
                let text = guard_statement(source, &condition, text, indentation);
                let change = ShaderChange::RestrictStore { condition: condition.clone() };
                let fix = |text| {
                    let mut edits = vec![CodeEdit::replace(statement.range.clone(), text)];
                    let is_local = condition.starts_with(numbers.local_index.as_str());
                    edits.extend(numbers.declaration.clone().filter(|_| is_local));
                    SourceFix::new(edits, *line, change.clone())
                };
                let barrier = source.language.control_barrier(StorageClass::Workgroup);
                fixes.push(fix(text.clone()));
                fixes.push(fix(format!("{text}\n{indentation}{barrier}")));
                fixes.push(fix(format!("{barrier}\n{indentation}{text}\n{indentation}{barrier}")));
            }
        }
    }
    fixes
}

/// Returns the store as an atomic exchange, for a flag that any invocation may set.
fn to_atomic_store(
    source: &ShaderText,
    statement: &ShaderStatement,
    element: &str,
    value: &str,
) -> Option<SourceFix> {
    let function = match source.language {
        ShaderLanguage::Glsl | ShaderLanguage::OpenClC => "Exchange",
        ShaderLanguage::Hlsl | ShaderLanguage::Slang | ShaderLanguage::Wgsl => return None,
    };
    let call = source.language.atomic_named(function);
    let text = format!("{call}({}, {value});", source.language.atomic_argument(element));
    let change = ShaderChange::UseAtomic {
        function: call,
        replaces: ReplacedAccesses::Store,
        declares: false,
        extension: None,
    };
    let edits = vec![CodeEdit::replace(statement.range.clone(), text)];
    Some(SourceFix::new(edits, source.line_of(statement.range.start), change))
}

/// Returns the fix that makes the accesses of a finding atomic. It orders no other accesses.
pub(super) fn make_accesses_atomic(source: &ShaderText, target: &RepairTarget) -> Option<SourceFix> {
    let mut fix = SourceFix::default();
    let add_edit = |range: &Range<usize>, text: String, fix: &mut SourceFix| {
        let edit = CodeEdit::replace(range.clone(), text);
        if !fix.edits.contains(&edit) {
            fix.edits.push(edit);
            fix.changes.push((source.line_of(range.start), ShaderChange::MakeAccessAtomic));
        }
    };
    let is_on_line = |at: usize| target.lines.contains(&source.line_of(at));
    let stores =
        source.statements().into_iter().filter(|one| is_on_line(one.range.start)).filter_map(|one| {
            let code = source.code(&one.range).trim_end_matches(';').trim();
            let (element, value) =
                split_assignment(code).filter(|_| matches!(one.kind, StatementKind::Simple))?;
            let is_target =
                is_element(element) && target.may_be_element(element) && parse_declaration(code).is_none();
            is_target.then(|| (one.range.clone(), element.trim().to_owned(), value.trim().to_owned()))
        });
    let (mut done, mut elements): (Vec<Range<usize>>, Vec<String>) = (Vec::new(), Vec::new());
    let mut path = None;
    for (range, element, value) in stores.collect::<Vec<_>>() {
        path = AtomicPath::parse(&element);
        let at = source.language.atomic_argument(&element);
        let call = source.language.atomic_named("Exchange");
        let text = match source.language {
            ShaderLanguage::Glsl | ShaderLanguage::OpenClC => format!("{call}({at}, {value});"),
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => {
                format!("{{ uint old_value; {call}({at}, {value}, old_value); }}")
            }
            ShaderLanguage::Wgsl => format!("atomicStore({at}, {value});"),
        };
        add_edit(&range, text, &mut fix);
        done.push(range);
        elements.push(element);
    }
    if source.language == ShaderLanguage::Wgsl {
        fix.edits.extend(declare_atomic(source, &path?, &done)?);
    } else if let ShaderLanguage::Glsl | ShaderLanguage::OpenClC = source.language {
        let read_call = source.language.atomic_named("Add");
        for name in &target.names {
            for (at, _) in source.plain.match_indices(name.as_str()) {
                let is_start =
                    !source.plain[..at].ends_with(|c: char| is_identifier_character(c) || c == '.');
                let is_done = done.iter().any(|range| range.contains(&at));
                if !is_start || is_done || !is_on_line(at) || source.function_at(at).is_none() {
                    continue;
                }
                // A read that a condition tests is a flag. Another read needs an order, not only atomicity.
                let path = source.path_to(at);
                let read = path
                    .last()
                    .and_then(|one| parse_declaration(source.code(&one.range)))
                    .map(|found| found.name);
                let mut heads = source.statements().into_iter().filter_map(|one| one.head());
                let is_flag = heads.any(|head| {
                    head.contains(&at) || read.is_some_and(|name| has_word(source.code(head), name))
                });
                if !is_flag {
                    return None;
                }
                if let Some((_, end)) = parse_path(&source.plain, at) {
                    let argument = source.language.atomic_argument(&source.plain[at..end]);
                    add_edit(&(at..end), format!("{read_call}({argument}, 0)"), &mut fix);
                }
            }
        }
    }
    // Stores to elements with computed indices may be meant for different elements.
    let is_signal =
        done.len() < fix.changes.len() || elements.iter().all(|element| is_uniform_element(element));
    Some(fix).filter(|fix| !fix.edits.is_empty() && is_signal)
}

/// A shared variable.
struct SharedVariable<'a> {
    ty: &'a str,
    name: &'a str,
    sizes: Vec<&'a str>,
}

/// Returns the names of the variables in workgroup memory.
pub(super) fn shared_variable_names(source: &ShaderText) -> Vec<&str> {
    if source.language != ShaderLanguage::Wgsl {
        return parse_shared_variables(source).into_iter().map(|variable| variable.name).collect();
    }
    let declarations = source.plain.split(source.language.shared_word()).skip(1);
    declarations.filter_map(|rest| rest.split(':').next()).map(str::trim).collect()
}

/// Returns the declared shared variables; those of WGSL are initialized.
fn parse_shared_variables(source: &ShaderText) -> Vec<SharedVariable<'_>> {
    if source.language == ShaderLanguage::Wgsl {
        return Vec::new();
    }
    let word = source.language.shared_word();
    let plain = &source.plain;
    // OpenCL C has `__local`, too.
    let is_start = |before: &str| !before.trim_end_matches("__").ends_with(is_identifier_character);
    let starts = plain.match_indices(word).filter(|(at, _)| is_start(&plain[..*at]));
    let variable = |(at, _): (usize, &str)| {
        let text = plain.get(at + word.len()..)?.split_once(';')?.0.trim();
        let sizes_at = text.find('[').unwrap_or(text.len());
        let (ty, name) = text[..sizes_at].trim_end().rsplit_once(char::is_whitespace)?;
        let ty = ty.trim().rsplit(char::is_whitespace).next()?;
        let sizes =
            text[sizes_at..].split(['[', ']']).map(str::trim).filter(|size| !size.is_empty()).collect();
        Some(SharedVariable { ty, name, sizes })
    };
    starts.filter_map(variable).collect()
}

/// Returns candidates that store to shared memory before it is read.
pub(super) fn initialize_shared(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let mut fixes = Vec::new();
    let variables = parse_shared_variables(source);
    let is_target = |variable: &&SharedVariable<'_>| target.names.iter().any(|name| name == variable.name);
    let variables_of_finding: Vec<&SharedVariable<'_>> =
        match variables.iter().any(|variable| is_target(&variable)) {
            true => variables.iter().filter(is_target).collect(),
            false => variables.iter().collect(),
        };
    for variable in &variables_of_finding {
        fixes.extend(add_else_store(source, variable));
    }
    for variable in variables_of_finding {
        fixes.extend(clear_at_start(source, variable));
    }
    fixes
}

fn zero_literal(source: &ShaderText, ty: &str) -> String {
    let is_number = ["uint", "int", "float"].contains(&ty);
    if is_number { "0".to_owned() } else { source.language.zero_of(ty) }
}

/// Adds an `else` branch that stores zero to a conditional store.
fn add_else_store(source: &ShaderText, variable: &SharedVariable<'_>) -> Vec<SourceFix> {
    let mut fixes = Vec::new();
    for statement in source.statements() {
        let StatementKind::If { then, otherwise: None, .. } = &statement.kind else { continue };
        let stores: Vec<&str> = then
            .block_statements()
            .into_iter()
            .filter(|part| matches!(part.kind, StatementKind::Simple))
            .filter_map(|part| split_assignment(source.code(&part.range)))
            .map(|(element, _)| element.trim())
            .filter(|element| is_element(element) && identifiers(element).next() == Some(variable.name))
            .collect();
        let [element] = stores[..] else { continue };
        let indentation = source.indentation(statement.range.start);
        let store = format!("{element} = {};", zero_literal(source, variable.ty));
        let unit = source.indentation_unit();
        let text = match then.kind {
            StatementKind::Block(_) => format!(" else {{\n{indentation}{unit}{store}\n{indentation}}}"),
            _ => format!("\n{indentation}else\n{indentation}{unit}{store}"),
        };
        let change = ShaderChange::StoreZeroElsewhere { element: (*element).to_owned() };
        let edits = vec![CodeEdit::insert(statement.range.end, text)];
        fixes.push(SourceFix::new(edits, source.line_of(statement.range.start), change));
    }
    fixes
}

/// Clears a shared variable at the start of the entry point.
fn clear_at_start(source: &ShaderText, variable: &SharedVariable<'_>) -> Option<SourceFix> {
    let entry = find_entry_point(source)?;
    let numbers = InvocationNumbers::from_source(source)?;
    let first = entry.statements.first()?;
    let indentation = source.indentation(first.range.start);
    let unit = source.indentation_unit();
    let SharedVariable { ty, name, sizes } = variable;
    let zero = zero_literal(source, ty);
    let (local, size) = (&numbers.local_index, workgroup_size(source)?);
    let store = match sizes[..] {
        [] => format!("if ({local} == 0)\n{indentation}{unit}{name} = {zero};"),
        [count] => format!(
            "for (uint n = {local}; n < {count}; n += {size})\n{indentation}{unit}{name}[n] = {zero};"
        ),
        [rows, columns] => format!(
            "for (uint n = {local}; n < ({rows}) * ({columns}); n += {size})\n{indentation}{unit}{name}[n / ({columns})][n % ({columns})] = {zero};"
        ),
        _ => return None,
    };
    let barrier = source.language.control_barrier(StorageClass::Workgroup);
    let text = format!("{store}\n{indentation}{barrier}\n{indentation}");
    let change = ShaderChange::ClearFirst { name: (*name).to_owned(), barrier };
    let mut edits = vec![CodeEdit::insert(first.range.start, text)];
    edits.extend(numbers.declaration.clone());
    Some(SourceFix::new(edits, source.line_of(first.range.start), change))
}

/// Returns candidates that separate the rounds of a reduction that relies on lockstep execution.
///
/// Each statement `x[i] = f(x[i], x[i + n])` is restricted to invocations below `n`, and a barrier follows
/// it.
pub(super) fn separate_rounds(source: &ShaderText, target: &RepairTarget) -> Vec<SourceFix> {
    let mut fixes = Vec::new();
    for statement in source.statements() {
        let StatementKind::If { condition, then, otherwise: None } = &statement.kind else { continue };
        let lines = source.line_of(statement.range.start)..=source.line_of(statement.range.end);
        let condition = source.code(condition);
        let [lane, bound] = split_outside_brackets(condition, "<")[..] else { continue };
        let (lane, list) = (lane.trim(), then.block_statements());
        let is_near = target.lines.iter().any(|line| lines.contains(line));
        if !is_near
            || !is_element(lane)
            || source.is_unbraced(&statement.range)
            || source.has_directive(&statement.range)
        {
            continue;
        }
        let rounds: Vec<Option<String>> =
            list.iter().map(|part| round_distance(source, part, lane, target)).collect();
        if rounds.iter().flatten().count() < 2 {
            continue;
        }
        let indentation = source.indentation(statement.range.start);
        let barrier = source.language.control_barrier(StorageClass::Workgroup);
        let mut parts = Vec::new();
        for (part, round) in list.iter().zip(&rounds) {
            let body = match &part.kind {
                StatementKind::If { then, .. } if round.is_some() => {
                    then.block_statements().first().map(|one| one.range.clone())
                }
                _ => None,
            };
            let text = source.text.get(body.unwrap_or(part.range.clone())).unwrap_or_default();
            let text = reindent(text, source.indentation(part.range.start), indentation);
            match round {
                Some(offset) => {
                    let is_less = is_smaller(offset, bound.trim());
                    let limit = if is_less { offset.as_str() } else { bound.trim() };
                    parts.push(guard_statement(source, &format!("{lane} < {limit}"), &text, indentation));
                    parts.push(barrier.clone());
                }
                // The workgroup barriers replace barriers of the subgroup or of memory.
                None if source.code(&part.range).contains("arrier") => {}
                None => parts.push(guard_statement(source, condition, &text, indentation)),
            }
        }
        // A barrier after the last round exists already, if one follows the statement.
        let next = source.statements().into_iter().find(|next| next.range.start >= statement.range.end);
        let has_barrier_after = next.is_some_and(|next| source.code(&next.range) == barrier);
        parts.truncate(
            parts.len() - usize::from(has_barrier_after && rounds.last().is_some_and(Option::is_some)),
        );
        let text = parts.join(&format!("\n{indentation}"));
        let edit = CodeEdit::replace(statement.range.clone(), text);
        let line = source.line_of(statement.range.start);
        fixes.push(SourceFix::new(vec![edit], line, ShaderChange::SeparateRounds));
    }
    fixes
}

/// Returns true if the first number is known to be smaller than the second.
fn is_smaller(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim_end_matches(['u', 'U']).parse::<u32>().ok();
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one < other,
        _ => true,
    }
}

/// Returns the distance of the other element that a round reads.
fn round_distance(
    source: &ShaderText,
    part: &ShaderStatement,
    lane: &str,
    target: &RepairTarget,
) -> Option<String> {
    let statement_range = match &part.kind {
        StatementKind::If { condition, then, otherwise: None } => {
            let [name, bound] = split_outside_brackets(source.code(condition), "<")[..] else { return None };
            let [round] = then.block_statements()[..] else { return None };
            let is_bound = remove_whitespace(name) == remove_whitespace(lane);
            return round_distance(source, round, lane, target)
                .filter(|_| is_bound)
                .map(|_| bound.trim().to_owned());
        }
        _ => &part.range,
    };
    let code = source.code(statement_range).trim_end_matches(';');
    let at = code.find('=')?;
    let element = code[..at].trim_end_matches(['+', '-', '*', '&', '|', '^', ' ']);
    if !is_element(element) || !target.may_be_element(element) || !element.contains('[') {
        return None;
    }
    let value = &code[at + 1..];
    let start = format!("[{}+", remove_whitespace(lane));
    let squeezed_value = remove_whitespace(value);
    let found = squeezed_value.find(&start)?;
    let rest = &squeezed_value[found + start.len()..];
    let offset = rest.split_once(']')?.0.to_owned();
    let is_identifier = offset.chars().all(is_identifier_character) && !offset.is_empty();
    is_identifier.then_some(offset)
}
