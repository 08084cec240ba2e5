//! Comparison of the defects and final contents of the whole grid, for given initial contents.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Counterexample, KernelVersion, RefineVerdict, Refinement, RefinementQuery, is_new_defect,
    undefined_reason,
};
use analysis::decide;
use analysis::dispatch::{KernelDispatch, plan_dispatch};
use analysis::outcomes::{FinalCell, FinalContent, FinalContents, enumerate_contents};
use entry_point::inputs::DEFAULT_BYTES;
use entry_point::open_memory::{OpenPart, OpenParts};
use entry_point::{AnalysisOptions, FindingKind, Refusal, Spot};
use walk::{GridReport, RaceVerdict};

/// The numbers that others may have left in all open buffers.
const FILL_VALUES: [u32; 2] = [0, 1];

/// Looks for contents of open buffers for which AFTER breaks refinement although others access nothing afterwards.
pub(super) fn compare_for_contents(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    open: &OpenParts,
    query: &RefinementQuery<'_>,
) -> Option<Refinement> {
    let all = || before.module.descriptors().into_iter().collect();
    let whole_buffers = |parts: &BTreeSet<OpenPart>| {
        let buffers = parts.iter().filter(|part| part.scalar.is_none());
        buffers.map(|part| (part.set, part.binding)).collect::<Vec<(u32, u32)>>()
    };
    let descriptors: Vec<(u32, u32)> = open.as_ref().map_or_else(all, whole_buffers);
    FILL_VALUES.iter().find_map(|number| {
        let fill_buffers = |options: &AnalysisOptions| {
            let mut filled = options.clone();
            for at in &descriptors {
                let bytes = filled.buffers.get(at).map_or(DEFAULT_BYTES as usize, |known| known.len());
                let contents: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(bytes).collect();
                filled.buffers.insert(*at, contents.into());
            }
            filled
        };
        let (first, second) = (fill_buffers(before.options), fill_buffers(after.options));
        let report = decide(before.module, &first, query.model, query.budget).ok()?;
        if undefined_reason(&report).is_some() {
            return None;
        }
        let (before, after) = (before.with_options(&first), after.with_options(&second));
        let mut answer = compare_contents(before, after, Some(&report), "", query);
        let difference = answer.difference.as_mut().filter(|_| answer.verdict == RefineVerdict::Breaks)?;
        difference.environment.push(format!("have left {number} in every word of the open buffers"));
        Some(answer)
    })
}

/// Compares defects and final contents of the whole grid.
pub(super) fn compare_contents(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    report_before: Option<&GridReport>,
    why: &str,
    query: &RefinementQuery<'_>,
) -> Refinement {
    let decide_with_contents = |kernel: KernelVersion<'_>| {
        let options = AnalysisOptions { keep_final: true, ..kernel.options.clone() };
        decide(kernel.module, &options, query.model, query.budget).ok()
    };
    let second = decide_with_contents(after);
    // A defect of AFTER counts if BEFORE has none in any schedule.
    if report_before.is_some_and(is_settled)
        && let Some(difference) = second.as_ref().and_then(new_defect)
    {
        return Refinement::breaks(difference);
    }
    let first = decide_with_contents(before).filter(is_settled);
    let settled = first.zip(second).and_then(|(first, second)| {
        let is_exact = |kernel: KernelVersion<'_>| {
            plan_dispatch(kernel.module, kernel.options).is_ok_and(|dispatch| !dispatch.uses_floats)
        };
        compare_settled_contents(&first, &second, || is_exact(before) && is_exact(after))
    });
    settled.unwrap_or_else(|| compare_all_contents(before, after, why, query))
}

/// Returns true if all schedules have this result, without a defect.
fn is_settled(report: &GridReport) -> bool {
    report.verdict == RaceVerdict::Clean
        && report.findings.is_empty()
        && !report.is_schedule_dependent
        && !report.has_partial_subgroups
}

/// Returns the first defect of AFTER that a compiler may not add.
fn new_defect(report: &GridReport) -> Option<Counterexample> {
    let found = report.findings.iter().find(|found| is_new_defect(found.kind))?;
    let spot = found.at.first();
    let after = spot.map(|at| Spot { thread: 0, line: at.line, place: at.place, writes: at.writes });
    let message = format!("AFTER only: {}", found.message);
    Some(Counterexample { after, ..Counterexample::new(found.kind.name(), message) })
}

/// Compares the contents after one schedule each, if those of BEFORE do not depend on it.
///
/// `is_exact` returns true if the walk computes every number exactly.
fn compare_settled_contents(
    first: &GridReport,
    second: &GridReport,
    is_exact: impl Fn() -> bool,
) -> Option<Refinement> {
    if let Some(message) = undefined_content(first, second) {
        let kind = FindingKind::UninitialisedRead.name();
        return Some(Refinement::breaks(Counterexample::new(kind, message)));
    }
    let is_known = |report: &GridReport| {
        is_settled(report) && report.final_buffers.iter().all(|buffer| buffer.first_open_byte.is_none())
    };
    if !is_known(first) || !is_known(second) || first.final_buffers.is_empty() {
        return None;
    }
    // The contents do not depend on the schedule, so equal contents suffice.
    if first.final_buffers == second.final_buffers {
        let reason = "both are free of races and leave the same contents for these inputs";
        return Some(Refinement::new(RefineVerdict::Refines, reason));
    }
    let message = different_content(first, second).filter(|_| is_exact())?;
    Some(Refinement::breaks(Counterexample::new("outcome", message)))
}

/// Compares all final contents of both, as the model enumerates them.
fn compare_all_contents(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    why: &str,
    query: &RefinementQuery<'_>,
) -> Refinement {
    let contents = |KernelVersion { module, options }: KernelVersion<'_>| {
        let dispatch = plan_dispatch(module, options)?;
        let describe = |refusal: &Refusal| refusal.to_string();
        let found = enumerate_contents(module, &dispatch, options, query.model, query.budget, &describe);
        Ok::<_, Refusal>((dispatch, found))
    };
    let ((dispatch, first), second) = match (contents(before), contents(after)) {
        (Ok(first), Ok((_, second))) => (first, second),
        (Err(refusal), _) | (_, Err(refusal)) => return Refinement::unknown(format!("{why}; {refusal}")),
    };
    let unknown = |module: &str, open: &str| {
        Refinement::unknown(format!("{why}; the contents that {module} leaves are not known: {open}"))
    };
    let (cells, allowed) = match first {
        FinalContents::Known { cells, contents } => (cells, contents),
        FinalContents::Undefined { kind, reason } if kind != FindingKind::UninitialisedRead => {
            return Refinement::undefined_before(&reason);
        }
        FinalContents::Undefined { reason: open, .. } | FinalContents::Unknown { reason: open, .. } => {
            return unknown("BEFORE", &open);
        }
    };
    let (more, shown) = match second {
        FinalContents::Known { cells, contents } => (cells, contents),
        FinalContents::Undefined { kind, reason } if kind != FindingKind::UninitialisedRead => {
            return Refinement::breaks(Counterexample::new("race", format!("AFTER only: {reason}")));
        }
        FinalContents::Undefined { reason: open, .. } | FinalContents::Unknown { reason: open, .. } => {
            return unknown("AFTER", &open);
        }
    };
    // A cell that only one of the kernels writes keeps its initial value in the other.
    let initial =
        cells.iter().chain(&more).map(|cell| (CellPlace::of(cell), initial_number(&dispatch, cell)));
    let initial: Contents = initial.collect();
    let allowed = allowed_contents(&initial, &cells, &allowed);
    let shown = allowed_contents(&initial, &more, &shown);
    let Some(content) = shown.difference(&allowed).next() else {
        let fewer = shown.len() < allowed.len();
        let verdict = if fewer { RefineVerdict::Stronger } else { RefineVerdict::Refines };
        return Refinement::new(
            verdict,
            format!("{} of {} final contents remain", shown.len(), allowed.len()),
        );
    };
    let describe = |(place, value): (&CellPlace, &u64)| {
        let (set, binding, _) = place.at;
        format!("{set}.{binding} at byte {} = {value}", place.offset)
    };
    let parts: Vec<String> = content.iter().map(describe).collect();
    let message = format!("AFTER may end with {}, BEFORE may not", parts.join(", "));
    Refinement::breaks(Counterexample::new("outcome", message))
}

/// The bytes of a cell, which both kernels share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellPlace {
    at: (u32, u32, u32),
    offset: u64,
    bytes: u32,
}

impl CellPlace {
    fn of(cell: &FinalCell) -> CellPlace {
        CellPlace { at: cell.at, offset: cell.offset, bytes: cell.bytes }
    }
}

type Contents = BTreeMap<CellPlace, u64>;

/// Returns the number that a cell holds before the dispatch.
fn initial_number(dispatch: &KernelDispatch, cell: &FinalCell) -> u64 {
    let buffers = &dispatch.buffers;
    let buffer = buffers.iter().find(|own| (own.set, own.binding, own.element) == cell.at);
    let start = usize::try_from(cell.offset).unwrap_or(usize::MAX);
    let part = buffer.and_then(|buffer| buffer.bytes.get(start..start.checked_add(cell.bytes as usize)?));
    part.map_or(0, |part| part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// Returns the allowed ones of the contents of `cells`, with `initial` elsewhere.
fn allowed_contents(
    initial: &Contents,
    cells: &[FinalCell],
    contents: &BTreeMap<Vec<u64>, FinalContent>,
) -> BTreeSet<Contents> {
    let allowed = contents.iter().filter(|(_, content)| content.is_allowed);
    allowed
        .map(|(values, _)| {
            let mut all = initial.clone();
            all.extend(cells.iter().map(CellPlace::of).zip(values.iter().copied()));
            all
        })
        .collect()
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
