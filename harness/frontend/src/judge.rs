//! Whether a kernel is racy: the walk over its whole grid, and for small grids the model itself where the walk leaves
//! something open.

use litmus::Race;
use model::{Budget, Model};

use crate::annotations::Annotations;
use crate::answer::{Asking, answer};
use crate::error::{Problem, Refusal};
use crate::grid::{self, GridFinding, GridReport, GridSpot, GridVerdict};
use crate::lift::{FindingKind, Identity, Lifted, Options, Spot, lift};
use crate::module::Module;
use crate::stage::Stage;

/// Looks for everything that is wrong with a kernel.
///
/// # Errors
/// What of it is malformed or beyond the walk and the model, with its place.
pub fn judge(
    module: &Module,
    options: &Options,
    model: &Model,
    budget: Budget<'_>,
) -> Result<GridReport, Refusal> {
    let mut judged = judged(module, options, model, budget);
    if let Ok(report) = &mut judged
        && report.verdict == GridVerdict::Clean
        && let Some(wider) = wider(module, options)
    {
        report.coverage += &format!("; {wider}");
        report.two_workgroup_finding = Some(wider);
    }
    judged
}

/// What is wrong with two workgroups, in words, where nothing is said of how many there are; a single one shares with nobody. Of vertices
/// two, and of fragments two of each of two pixels.
pub fn wider(module: &Module, options: &Options) -> Option<String> {
    if options.grid.is_some() {
        return None;
    }
    let stage = module.entry(options.entry.as_deref()).ok()?.stage();
    let (grid, words) = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => ([2, 1, 1], "2 workgroups (--grid 2)"),
        Stage::Vertex => ([2, 1, 1], "2 vertices (--grid 2)"),
        Stage::Fragment => ([2, 1, 2], "2 fragments of each of 2 pixels (--grid 2,1,2)"),
    };
    let report = grid::analyze_grid(module, &Options { grid: Some(grid), ..options.clone() }).ok()?;
    let found = report.findings.first()?;
    Some(format!("nothing is said of the grid, and of {words} something is wrong: {}", found.message))
}

/// What a walk over the grid finds that no model is asked of: loops that never end, or that wait for a lane of their own
/// subgroup, and values that nobody wrote and something depends on. Modules with annotations of the peer have their own questions.
pub fn beside_races(module: &Module, options: &Options) -> Vec<GridFinding> {
    if module.annotations != Annotations::default() {
        return Vec::new();
    }
    let findings = grid::analyze_grid(module, options).map_or_else(|_| Vec::new(), |report| report.findings);
    let beside = |kind| {
        matches!(kind, FindingKind::Hang | FindingKind::UninitialisedRead | FindingKind::UndefinedBehaviour)
    };
    findings.into_iter().filter(|found| beside(found.kind)).collect()
}

fn judged(
    module: &Module,
    options: &Options,
    model: &Model,
    budget: Budget<'_>,
) -> Result<GridReport, Refusal> {
    let walked = grid::analyze_grid_thoroughly(module, options);
    match &walked {
        Ok(report)
            if report.verdict == GridVerdict::Racy
                || report.verdict == GridVerdict::Clean && !report.is_schedule_dependent =>
        {
            return walked;
        }
        // What does not fit is none of the model's business.
        Err(Refusal { what: Problem::Input(_), .. }) => return walked,
        _ => {}
    }
    let Ok(lifted) = lift(module, options) else { return walked };
    let asking = Asking { budget, race: true, question: false, places: true };
    let Ok(answered) = answer(&lifted, model, &asking) else { return walked };
    let mut findings: Vec<GridFinding> = answered
        .findings
        .iter()
        .map(|found| finding(&lifted, found.kind, found.message.clone(), &found.at))
        .collect();
    if let Some(found) = &answered.race_found {
        let message = found.message(&lifted.invocations);
        findings.push(finding(&lifted, FindingKind::Race, message, &found.at));
    } else if answered.race == Race::Racy {
        let message = "data race: where is not known".to_owned();
        findings.push(GridFinding { kind: FindingKind::Race, message, at: Vec::new() });
    }
    let complete = answered.race == Race::Free && !lifted.sampled;
    if findings.is_empty() && !complete {
        return walked;
    }
    let verdict = if findings.is_empty() { GridVerdict::Clean } else { GridVerdict::Racy };
    let entry = lifted.entry.clone();
    let mut report = match walked {
        Ok(report) => report,
        Err(_) => GridReport::from_lifted(&lifted, entry),
    };
    report.coverage = format!(
        "these inputs, {} invocations, every execution that `{}` allows",
        lifted.invocations.len(),
        model.name()
    );
    (report.verdict, report.findings, report.refusal, report.is_schedule_dependent) =
        (verdict, findings, None, false);
    report.decided_by_model = true;
    Ok(report)
}

fn finding(lifted: &Lifted, kind: FindingKind, message: String, at: &[Spot]) -> GridFinding {
    let invocation = |spot: &Spot| {
        lifted.invocations.get(usize::from(spot.thread)).copied().unwrap_or_else(Identity::default)
    };
    let at = at
        .iter()
        .map(|spot| GridSpot {
            line: spot.line,
            place: spot.place,
            invocation: invocation(spot),
            access: spot.access,
        })
        .collect();
    GridFinding { kind, message, at }
}
