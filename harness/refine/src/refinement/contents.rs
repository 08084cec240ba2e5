//! Comparison of the defects and final contents of the whole grid, for given initial contents.

use std::collections::{BTreeMap, BTreeSet};

use spirv_reader::SpirvModule;

use super::{
    Counterexample, Refinement, RefinementQuery, RefinementVerdict, is_new_defect, undefined_reason,
};
use analysis::decide;
use analysis::dispatch::plan_dispatch;
use analysis::outcomes::{FinalCell, FinalContent, FinalContents, enumerate_contents};
use entry_point::inputs::DEFAULT_BYTES;
use entry_point::open_memory::{OpenPart, OpenParts};
use entry_point::{AnalysisOptions, FindingKind, Refusal, Spot};
use walk::{GridReport, GridVerdict};

/// The numbers that others may have left in all open buffers.
const FILL_VALUES: [u32; 2] = [0, 1];

/// Looks for contents of open buffers for which AFTER breaks refinement although others access nothing afterwards.
pub(super) fn compare_for_contents(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    open: &OpenParts,
    query: &RefinementQuery<'_>,
) -> Option<Refinement> {
    let all = || before.0.descriptors().into_iter().collect();
    let whole_buffers = |parts: &BTreeSet<OpenPart>| {
        let buffers = parts.iter().filter(|part| part.scalar.is_none());
        buffers.map(|part| (part.set, part.binding)).collect::<Vec<(u32, u32)>>()
    };
    let descriptors: Vec<(u32, u32)> = open.as_ref().map_or_else(all, whole_buffers);
    FILL_VALUES.iter().find_map(|number| {
        let fill_buffers = |options: &AnalysisOptions| {
            let mut filled = options.clone();
            for at in &descriptors {
                let bytes = filled.buffers.get(at).map_or(DEFAULT_BYTES as usize, Vec::len);
                let contents = number.to_le_bytes().into_iter().cycle().take(bytes).collect();
                filled.buffers.insert(*at, contents);
            }
            filled
        };
        let (first, second) = (fill_buffers(before.1), fill_buffers(after.1));
        let report = decide(before.0, &first, query.model, query.budget).ok()?;
        if undefined_reason(&report).is_some() {
            return None;
        }
        let mut answer = compare_contents((before.0, &first), (after.0, &second), Some(&report), "", query);
        let difference =
            answer.difference.as_mut().filter(|_| answer.verdict == RefinementVerdict::Breaks)?;
        difference.environment.push(format!("have left {number} in every word of the open buffers"));
        Some(answer)
    })
}

/// Compares defects and final contents of the whole grid.
pub(super) fn compare_contents(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    report_before: Option<&GridReport>,
    why: &str,
    query: &RefinementQuery<'_>,
) -> Refinement {
    let with_contents = |options: &AnalysisOptions| AnalysisOptions { keep_final: true, ..options.clone() };
    let judge_with_final_contents = |(module, options): (&SpirvModule, &AnalysisOptions)| {
        decide(module, &with_contents(options), query.model, query.budget).ok()
    };
    let is_settled = |report: &GridReport| {
        report.verdict == GridVerdict::Clean
            && report.findings.is_empty()
            && !report.is_schedule_dependent
            && !report.has_partial_subgroups
    };
    // A defect of AFTER counts if BEFORE has none in any schedule.
    let second = judge_with_final_contents(after);
    if let (Some(first), Some(second)) = (report_before, &second)
        && is_settled(first)
        && let Some(found) = second.findings.iter().find(|found| is_new_defect(found.kind))
    {
        let spot = found.at.first();
        let after = spot.map(|at| Spot { thread: 0, line: at.line, place: at.place, writes: at.writes });
        let (message, kind) = (format!("AFTER only: {}", found.message), found.kind.name());
        return Refinement::breaks(Counterexample {
            kind,
            message,
            before: None,
            after,
            environment: Vec::new(),
        });
    }
    let first = judge_with_final_contents(before);
    if let (Some(first), Some(second)) = (first.filter(is_settled), &second) {
        if let Some(message) = undefined_content(&first, second) {
            let kind = FindingKind::UninitialisedRead.name();
            let (before, after, environment) = (None, None, Vec::new());
            return Refinement::breaks(Counterexample { kind, message, before, after, environment });
        }
        let is_known = |report: &GridReport| {
            is_settled(report) && report.final_buffers.iter().all(|buffer| buffer.first_open_byte.is_none())
        };
        if is_known(&first) && is_known(second) && !first.final_buffers.is_empty() {
            // The contents do not depend on the schedule, so equal contents suffice.
            if first.final_buffers == second.final_buffers {
                let reason = "both are free of races and leave the same contents for these inputs";
                return Refinement::new(RefinementVerdict::Refines, reason);
            }
            let is_exact = |(module, options): (&SpirvModule, &AnalysisOptions)| {
                plan_dispatch(module, options).is_ok_and(|dispatch| !dispatch.uses_floats)
            };
            if let Some(message) =
                different_content(&first, second).filter(|_| is_exact(before) && is_exact(after))
            {
                let (before, after, environment) = (None, None, Vec::new());
                return Refinement::breaks(Counterexample {
                    kind: "outcome",
                    message,
                    before,
                    after,
                    environment,
                });
            }
        }
    }
    // Otherwise all final contents of both are enumerated.
    let contents = |(module, options): (&SpirvModule, &AnalysisOptions)| {
        let dispatch = plan_dispatch(module, options)?;
        let describe = |refusal: &Refusal| refusal.to_string();
        let found = enumerate_contents(module, &dispatch, options, query.model, query.budget, &describe);
        Ok::<_, Refusal>((dispatch, found))
    };
    let (first, second) = match (contents(before), contents(after)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(refusal), _) | (_, Err(refusal)) => return Refinement::unknown(format!("{why}; {refusal}")),
    };
    let (cells, allowed) = match first.1 {
        FinalContents::Known { cells, contents } => (cells, contents),
        FinalContents::Undefined { kind, reason } if kind != FindingKind::UninitialisedRead => {
            return Refinement::undefined_before(&reason);
        }
        FinalContents::Undefined { reason: open, .. } | FinalContents::Unknown { reason: open, .. } => {
            return Refinement::unknown(format!(
                "{why}; the contents that BEFORE leaves are not known: {open}"
            ));
        }
    };
    let (more, shown) = match second.1 {
        FinalContents::Known { cells, contents } => (cells, contents),
        FinalContents::Undefined { kind, reason } if kind != FindingKind::UninitialisedRead => {
            let (kind, message) = ("race", format!("AFTER only: {reason}"));
            let (before, after, environment) = (None, None, Vec::new());
            return Refinement::breaks(Counterexample { kind, message, before, after, environment });
        }
        FinalContents::Undefined { reason: open, .. } | FinalContents::Unknown { reason: open, .. } => {
            return Refinement::unknown(format!(
                "{why}; the contents that AFTER leaves are not known: {open}"
            ));
        }
    };
    type Contents = BTreeMap<((u32, u32, u32), u64, u32), u64>;
    let initial = |at: (u32, u32, u32), offset: u64, bytes: u32| {
        let buffers = &first.0.buffers;
        let buffer = buffers.iter().find(|own| (own.set, own.binding, own.element) == at);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = buffer.and_then(|buffer| buffer.bytes.get(start..start.checked_add(bytes as usize)?));
        part.map_or(0, |part| part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    // A cell that only one of the kernels writes keeps its initial value in the other.
    let places: BTreeMap<_, _> = cells
        .iter()
        .chain(&more)
        .map(|cell| ((cell.at, cell.offset, cell.bytes), initial(cell.at, cell.offset, cell.bytes)))
        .collect();
    let all_contents = |cells: &[FinalCell], values: &[u64]| -> Contents {
        let mut all: Contents = places.clone();
        all.extend(
            cells.iter().zip(values).map(|(cell, value)| ((cell.at, cell.offset, cell.bytes), *value)),
        );
        all
    };
    let allowed_contents = |cells: &[FinalCell], of: &BTreeMap<Vec<u64>, _>| -> BTreeSet<Contents> {
        let allowed = of.iter().filter(|(_, content): &(_, &FinalContent)| content.is_allowed);
        allowed.map(|(values, _)| all_contents(cells, values)).collect()
    };
    let (allowed, shown) = (allowed_contents(&cells, &allowed), allowed_contents(&more, &shown));
    match shown.difference(&allowed).next() {
        None => {
            let fewer = shown.len() < allowed.len();
            let verdict = if fewer { RefinementVerdict::Stronger } else { RefinementVerdict::Refines };
            let reason = format!("{} of {} final contents remain", shown.len(), allowed.len());
            Refinement::new(verdict, reason)
        }
        Some(content) => {
            let parts: Vec<String> = content
                .iter()
                .map(|(((set, binding, _), offset, _), value)| {
                    format!("{set}.{binding} at byte {offset} = {value}")
                })
                .collect();
            let message = format!("AFTER may end with {}, BEFORE may not", parts.join(", "));
            let (kind, before, after, environment) = ("outcome", None, None, Vec::new());
            Refinement::breaks(Counterexample { kind, message, before, after, environment })
        }
    }
}

/// Describes the first byte that BEFORE defines and AFTER leaves undefined, in any schedule.
fn undefined_content(first: &GridReport, second: &GridReport) -> Option<String> {
    second.final_buffers.iter().find_map(|after| {
        let before = first.final_buffers.iter().find(|before| before.at == after.at)?;
        let offset = after.first_undefined_byte?;
        // Bytes that the walk does not compute are not known to be defined.
        (before.first_open_byte.is_none_or(|open| open > offset)).then(|| {
            let (set, binding, _) = after.at;
            format!(
                "AFTER leaves an undefined value in {set}.{binding} at byte {offset}, BEFORE a defined one"
            )
        })
    })
}

/// Describes the first word that differs.
fn different_content(first: &GridReport, second: &GridReport) -> Option<String> {
    second.final_buffers.iter().find_map(|after| {
        let before = first.final_buffers.iter().find(|before| before.at == after.at)?;
        let words = before.bytes.chunks(4).zip(after.bytes.chunks(4)).enumerate();
        let (index, (of_before, of_after)) = words.into_iter().find(|(_, (one, other))| one != other)?;
        let number = |word: &[u8]| word.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let (set, binding, _) = after.at;
        Some(format!(
            "AFTER ends with {set}.{binding} at byte {} = {}, BEFORE with {}",
            4 * index,
            number(of_after),
            number(of_before)
        ))
    })
}
