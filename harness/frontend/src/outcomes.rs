//! All final contents of a kernel's buffers, where they can be enumerated.
//!
//! Of few invocations the model is asked, which looks at every execution. Of a whole grid the walk gives them where nothing in it
//! depends on the order of the invocations: then there is one.

use std::collections::BTreeMap;

use litmus::{LocationId, Observable, Race, Reference, Term};
use model::{Budget, Model, predict};

use crate::dispatch::Dispatch;
use crate::error::Refusal;
use crate::grid::{FinalBuffer, GridReport, GridVerdict};
use crate::lift::{Case, FindingKind, Lifted, Options, lift};
use crate::module::Module;

/// A number in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalCell {
    /// What a reader calls it.
    pub name: String,
    /// Descriptor set, binding, and element of an array of buffers.
    pub at: (u32, u32, u32),
    /// Where it lies, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u32,
}

/// What is said of a content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalSays {
    /// Some consistent execution leaves it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
}

/// What is known of final contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finals {
    /// All of them.
    Known {
        /// The numbers that some invocation writes; all else stays as it is.
        cells: Vec<FinalCell>,
        /// What they hold in the end, in the order of the cells.
        contents: BTreeMap<Vec<u64>, FinalSays>,
    },
    /// Every content is allowed: why.
    Undefined(String),
    /// They are not known: why.
    Unknown {
        /// Whether the kernel is known to be free of races.
        race_free: bool,
        /// Why.
        why: String,
    },
}

/// All final contents of a kernel's buffers. Where each that is allowed leaves everything as it was, a dispatch that was never
/// executed would do as well, so that nothing is known of what is seen. `told` are the words of a refusal with its file.
pub fn finals(
    module: &Module,
    dispatch: &Dispatch,
    options: &Options,
    model: &Model,
    budget: Budget<'_>,
    told: &dyn Fn(&Refusal) -> String,
) -> Finals {
    match all_finals(module, dispatch, options, model, budget, told) {
        Finals::Known { cells, contents } if leaves_all(dispatch, &cells, &contents) => {
            Finals::Unknown { race_free: true, why: "it leaves all its buffers as they were".to_owned() }
        }
        finals => finals,
    }
}

/// Whether numbers hold in every allowed content what they held at first.
fn leaves_all(dispatch: &Dispatch, cells: &[FinalCell], contents: &BTreeMap<Vec<u64>, FinalSays>) -> bool {
    let before = |cell: &FinalCell| {
        let buffer = dispatch.buffers.iter().find(|own| (own.set, own.binding, own.element) == cell.at)?;
        let start = usize::try_from(cell.offset).ok()?;
        let bytes = buffer.bytes.get(start..start + cell.bytes as usize)?;
        Some(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    let first: Vec<Option<u64>> = cells.iter().map(before).collect();
    let mut allowed = contents.iter().filter(|(_, says)| says.allowed);
    allowed.all(|(values, _)| values.iter().zip(&first).all(|(now, before)| Some(*now) == *before))
}

fn all_finals(
    module: &Module,
    dispatch: &Dispatch,
    options: &Options,
    model: &Model,
    budget: Budget<'_>,
    told: &dyn Fn(&Refusal) -> String,
) -> Finals {
    let options = Options { keep_final: true, assertion: None, ..options.clone() };
    let judged = crate::judge::judge(module, &options, model, budget);
    let mut race_free = false;
    if let Ok(report) = &judged {
        if let Some(found) = report.findings.first() {
            let what = format!("{}: {}", found.kind.name(), found.message);
            // It may not end, which says nothing of what it leaves.
            return match found.kind {
                FindingKind::Hang => Finals::Unknown { race_free, why: what },
                _ => Finals::Undefined(what),
            };
        }
        race_free = report.verdict == GridVerdict::Clean && !report.is_schedule_dependent;
        if dispatch.varies.is_none()
            && let Some(known) = of_walk(report, dispatch, race_free)
        {
            return known;
        }
    }
    let unknown = |race_free, why: String| Finals::Unknown { race_free, why };
    if let Some(what) = dispatch.varies {
        return unknown(race_free, format!("they may depend on {what}"));
    }
    if let Some(image) = dispatch.buffers.iter().find(|buffer| buffer.image.is_some()) {
        return unknown(race_free, format!("the model is not asked what the image `{}` holds", image.name));
    }
    let lifted = match lift(module, &options) {
        Ok(lifted) => lifted,
        Err(refusal) => return unknown(race_free, why_not(&judged, &refusal, told)),
    };
    match crate::suspicion::confirmed(&lifted, model, budget) {
        (found, _) if !found.is_empty() => {
            return Finals::Undefined(format!("{}: {}", found[0].kind.name(), found[0].message));
        }
        (_, true) => {
            return unknown(race_free, "whether all of it is defined is not known in time".to_owned());
        }
        (_, false) => {}
    }
    let [case] = &lifted.cases[..] else {
        return unknown(race_free, "they depend on memory that nobody wrote".to_owned());
    };
    if lifted.sampled {
        return unknown(race_free, "they depend on memory that nobody wrote".to_owned());
    }
    of_case(&lifted, case, module, model, race_free, budget)
}

/// Why a kernel has no test: what the walk says of it where that is more.
fn why_not(
    judged: &Result<GridReport, Refusal>,
    refusal: &Refusal,
    told: &dyn Fn(&Refusal) -> String,
) -> String {
    match judged {
        Ok(GridReport { verdict: GridVerdict::Undecided, refusal: Some(why), .. }) => {
            format!("{}; {}", told(refusal), told(why))
        }
        _ => told(refusal),
    }
}

/// The one content of a kernel in which nothing depends on the order of the invocations.
fn of_walk(report: &GridReport, dispatch: &Dispatch, race_free: bool) -> Option<Finals> {
    // Devices may round what is computed of floats.
    if !race_free || report.decided_by_model || dispatch.floats || report.final_buffers.is_empty() {
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
    let says = FinalSays { allowed: true, weak: false };
    Some(Finals::Known { cells, contents: BTreeMap::from([(content, says)]) })
}

/// All contents of a test.
fn of_case(
    lifted: &Lifted,
    case: &Case,
    module: &Module,
    model: &Model,
    race_free: bool,
    budget: Budget<'_>,
) -> Finals {
    let mut test = case.test.clone();
    (test.question, test.filter) = (None, None);
    let in_buffer = |location: &LocationId| {
        test.locations.get(usize::from(location.0)).is_some_and(|of| of.reference == Some(Reference::Buffer))
    };
    let locations: Vec<LocationId> = (0..case.cells.len() as u16).map(LocationId).filter(in_buffer).collect();
    test.listed = locations.iter().map(|location| Term::Location(*location, 0)).collect();
    let unknown = |race_free, why: String| Finals::Unknown { race_free, why };
    let prediction = match predict(&test, model, &model::Options { budget, unroll: 1 }) {
        Ok(prediction) => prediction,
        Err(error) => return unknown(race_free, error.to_string()),
    };
    let race_free = race_free || prediction.race == Race::Free;
    if prediction.race == Race::Racy {
        return Finals::Undefined("race: data race, by the model".to_owned());
    }
    if !prediction.complete || !race_free {
        let why = if prediction.cut > 0 {
            "loops are longer than what is looked at"
        } else {
            "they are too many to be found within the time"
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
        let decorations = module.decorations(cell.object.variable);
        let (set, binding) = (decorations.set.unwrap_or(0), decorations.binding.unwrap_or(0));
        let element = cell.object.instance.saturating_sub(1) as u32;
        cells.push(FinalCell {
            name: name.clone(),
            at: (set, binding, element),
            offset: cell.offset,
            bytes: cell.bytes,
        });
        positions.push(position);
    }
    let mut contents: BTreeMap<Vec<u64>, FinalSays> = BTreeMap::new();
    for (outcome, says) in &prediction.outcomes {
        let values = positions.iter().map(|at| outcome.0.get(*at).map_or(0, |value| value.0)).collect();
        let entry = contents.entry(values).or_insert(FinalSays { allowed: false, weak: true });
        entry.allowed |= says.allowed;
        entry.weak &= says.weak;
    }
    Finals::Known { cells, contents }
}
