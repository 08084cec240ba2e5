//! Enumerates the final contents of a kernel's buffers.
//!
//! For few invocations the model enumerates every execution. For a whole grid the walk yields them if nothing
//! is schedule-dependent: then there is exactly one.

use std::collections::BTreeMap;

use litmus::{LocationId, Observable, Race, Reference, Term};
use model::{Budget, Model, predict};
use spirv_reader::SpirvModule;

use crate::dispatch::KernelDispatch;
use entry_point::{AnalysisOptions, FindingKind, Refusal};
use symbolic::{Lifted, LiftedCase, lift};
use walk::{FinalBuffer, GridReport, RaceVerdict};

/// A number in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalCell {
    pub name: String,
    /// Descriptor set, binding, and element of an array of buffers.
    pub at: (u32, u32, u32),
    pub offset: u64,
    pub bytes: u32,
}

/// The status of a final content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalContent {
    /// True if some consistent execution leaves it.
    pub is_allowed: bool,
    /// True if sequential consistency does not allow it.
    pub is_weak: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinalContents {
    /// All final contents.
    Known {
        /// The numbers that some invocation writes; everything else is unchanged.
        cells: Vec<FinalCell>,
        /// Their final values, in cell order.
        contents: BTreeMap<Vec<u64>, FinalContent>,
    },
    /// Every content is allowed, for the given reason.
    Undefined { kind: FindingKind, reason: String },
    /// The contents are not known.
    Unknown {
        /// True if the kernel is known to be race-free.
        is_race_free: bool,
        reason: String,
    },
}

/// Enumerates the final contents of a kernel's buffers. `format_refusal` formats a refusal with its file.
///
/// If every allowed content equals the initial one, the result is unknown: a dispatch that never ran would
/// pass.
pub fn final_contents(
    module: &SpirvModule,
    dispatch: &KernelDispatch,
    options: &AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
    format_refusal: &dyn Fn(&Refusal) -> String,
) -> FinalContents {
    match enumerate_contents(module, dispatch, options, model, budget, format_refusal) {
        FinalContents::Known { cells, contents } if leaves_memory_unchanged(dispatch, &cells, &contents) => {
            FinalContents::Unknown {
                is_race_free: true,
                reason: "the shader does not change its buffers".to_owned(),
            }
        }
        finals => finals,
    }
}

/// Returns true if every allowed content equals the initial one.
fn leaves_memory_unchanged(
    dispatch: &KernelDispatch,
    cells: &[FinalCell],
    contents: &BTreeMap<Vec<u64>, FinalContent>,
) -> bool {
    let before = |cell: &FinalCell| {
        let buffer = dispatch.buffers.iter().find(|own| (own.set, own.binding, own.element) == cell.at)?;
        let start = usize::try_from(cell.offset).ok()?;
        let bytes = buffer.bytes.get(start..start + cell.bytes as usize)?;
        Some(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    let first: Vec<Option<u64>> = cells.iter().map(before).collect();
    let mut allowed = contents.iter().filter(|(_, status)| status.is_allowed);
    allowed.all(|(values, _)| values.iter().zip(&first).all(|(now, before)| Some(*now) == *before))
}

/// [`final_contents`], also if a dispatch changes nothing.
pub fn enumerate_contents(
    module: &SpirvModule,
    dispatch: &KernelDispatch,
    options: &AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
    format_refusal: &dyn Fn(&Refusal) -> String,
) -> FinalContents {
    let options = AnalysisOptions { keep_final: true, assertion: None, ..options.clone() };
    let walk_report = crate::decide::decide(module, &options, model, budget);
    let mut race_free = false;
    if let Ok(report) = &walk_report {
        if let Some(found) = report.findings.first() {
            let what = format!("{}: {}", found.kind.name(), found.message);
            // A kernel that may not end leaves nothing to compare.
            return match found.kind {
                FindingKind::Hang => FinalContents::Unknown { is_race_free: race_free, reason: what },
                kind => FinalContents::Undefined { kind, reason: what },
            };
        }
        race_free = report.verdict == RaceVerdict::Clean && !report.is_schedule_dependent;
        if dispatch.variation_reason.is_none()
            && let Some(known) = contents_of_walk(report, dispatch, race_free)
        {
            return known;
        }
    }
    let unknown = |race_free, why: String| FinalContents::Unknown { is_race_free: race_free, reason: why };
    if let Some(what) = dispatch.variation_reason {
        return unknown(race_free, format!("they may depend on {what}"));
    }
    if let Some(image) = dispatch.buffers.iter().find(|buffer| buffer.image.is_some()) {
        return unknown(race_free, format!("the contents of the image `{}` are not modelled", image.name));
    }
    // The walk does not settle the contents, so the model enumerates them.
    let lifted = match lift(module, &options) {
        Ok(lifted) => lifted,
        Err(refusal) => return unknown(race_free, describe_refusal(&walk_report, &refusal, format_refusal)),
    };
    match symbolic::confirm_suspicions(&lifted, model, budget) {
        (found, _) if !found.is_empty() => {
            let kind = found[0].kind();
            let reason = format!("{}: {}", kind.name(), found[0].message);
            return FinalContents::Undefined { kind, reason };
        }
        (_, true) => {
            return unknown(
                race_free,
                "the time was too short to determine whether all contents are defined".to_owned(),
            );
        }
        (_, false) => {}
    }
    let [case] = &lifted.cases[..] else {
        return unknown(race_free, "they depend on uninitialized memory".to_owned());
    };
    if lifted.is_sampled {
        return unknown(race_free, "they depend on uninitialized memory".to_owned());
    }
    contents_of_case(&lifted, case, module, model, race_free, budget)
}

/// Returns why a kernel has no test, preferring the walk's reason if it is more specific.
fn describe_refusal(
    walk_report: &Result<GridReport, Refusal>,
    refusal: &Refusal,
    format_refusal: &dyn Fn(&Refusal) -> String,
) -> String {
    match walk_report {
        Ok(GridReport { verdict: RaceVerdict::Undecided, refusal: Some(why), .. }) => {
            format!("{}; {}", format_refusal(refusal), format_refusal(why))
        }
        _ => format_refusal(refusal),
    }
}

/// Returns the one final content of a schedule-independent walk.
fn contents_of_walk(
    report: &GridReport,
    dispatch: &KernelDispatch,
    race_free: bool,
) -> Option<FinalContents> {
    // Devices may round floats differently.
    if !race_free || report.model.is_some() || dispatch.uses_floats || report.final_buffers.is_empty() {
        return None;
    }
    let (mut cells, mut content) = (Vec::new(), Vec::new());
    for buffer in &dispatch.buffers {
        let at = (buffer.set, buffer.binding, buffer.element);
        let Some(FinalBuffer { bytes, first_open_byte: open, .. }) =
            report.final_buffers.iter().find(|own| own.at == at)
        else {
            continue;
        };
        // A single open byte leaves the contents unknown.
        if open.is_some() {
            return None;
        }
        for (number, (now, before)) in bytes.chunks(4).zip(buffer.bytes.chunks(4)).enumerate() {
            if now != before {
                let offset = 4 * number as u64;
                cells.push(FinalCell { name: String::new(), at, offset, bytes: 4 });
                content.push(now.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
            }
        }
    }
    let status = FinalContent { is_allowed: true, is_weak: false };
    Some(FinalContents::Known { cells, contents: BTreeMap::from([(content, status)]) })
}

/// Returns the final contents of a litmus test.
fn contents_of_case(
    lifted: &Lifted,
    case: &LiftedCase,
    module: &SpirvModule,
    model: &Model,
    race_free: bool,
    budget: Budget<'_>,
) -> FinalContents {
    let mut test = case.test.clone();
    // All final states count, not only those of a question.
    (test.question, test.filter) = (None, None);
    let in_buffer = |location: &LocationId| {
        test.locations.get(usize::from(location.0)).is_some_and(|of| of.reference == Some(Reference::Buffer))
    };
    let locations: Vec<LocationId> = (0..case.cells.len() as u16).map(LocationId).filter(in_buffer).collect();
    test.listed_terms = locations.iter().map(|location| Term::Location(*location, 0)).collect();
    let unknown = |race_free, why: String| FinalContents::Unknown { is_race_free: race_free, reason: why };
    let prediction = match predict(&test, model, &model::PredictOptions { budget, unroll: 1 }) {
        Ok(prediction) => prediction,
        Err(error) => return unknown(race_free, error.to_string()),
    };
    let race_free = race_free || prediction.race == Race::Free;
    if prediction.race == Race::Racy {
        let reason = "race: data race, found by the model".to_owned();
        return FinalContents::Undefined { kind: FindingKind::Race, reason };
    }
    if !prediction.complete || !race_free {
        let why = if prediction.truncated_runs > 0 {
            "loops exceed the bound"
        } else {
            "the time was too short to find all of them"
        };
        return unknown(race_free, format!("{why} ({} invocations)", lifted.invocations.len()));
    }
    let mut cells = Vec::with_capacity(locations.len());
    let mut positions = Vec::with_capacity(locations.len());
    for location in &locations {
        let observable = Observable::Location(*location, 0);
        let position = prediction.observables.iter().position(|known| *known == observable);
        let (Some(position), Some(cell), Some(name)) =
            (position, case.cells.get(usize::from(location.0)), case.names.get(usize::from(location.0)))
        else {
            continue;
        };
        let decorations = module.decorations_of(cell.object.variable);
        let (set, binding) = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
        // Instance 0 is a single buffer; the elements of an array are counted from 1.
        let element = cell.object.instance.saturating_sub(1) as u32;
        cells.push(FinalCell {
            name: name.clone(),
            at: (set, binding, element),
            offset: cell.offset,
            bytes: cell.bytes,
        });
        positions.push(position);
    }
    let mut contents: BTreeMap<Vec<u64>, FinalContent> = BTreeMap::new();
    for (outcome, verdict) in &prediction.outcomes {
        let values = positions.iter().map(|at| outcome.0.get(*at).map_or(0, |value| value.0)).collect();
        // Outcomes that differ elsewhere may agree in the buffers. A content is weak only if all of
        // them are.
        let entry = contents.entry(values).or_insert(FinalContent { is_allowed: false, is_weak: true });
        entry.is_allowed |= verdict.allowed;
        entry.is_weak &= verdict.weak;
    }
    FinalContents::Known { cells, contents }
}
