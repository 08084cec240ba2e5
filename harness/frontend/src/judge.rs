//! Decides whether a kernel is racy: by a walk over its whole grid, and by the model if the walk is
//! incomplete.
//!
//! The model is exhaustive but accepts only small grids. It runs only if the walk is schedule-dependent or
//! hit a limit, and its answer replaces the walk's.

use litmus::Race;
use model::{Budget, Model};

use crate::annotations::Annotations;
use crate::answer::{ModelQuery, answer_with_model};
use crate::error::{Problem, Refusal};
use crate::grid::{self, GridFinding, GridReport, GridSpot, GridVerdict};
use crate::lift::{AnalysisOptions, FindingKind, InvocationId, Lifted, Spot, lift};
use crate::module::SpirvModule;
use crate::stage::Stage;

/// Analyzes a kernel for races and other defects.
///
/// # Errors
/// Returns the position of what is malformed, or beyond the walk and the model.
pub fn judge(
    module: &SpirvModule,
    options: &AnalysisOptions,
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

/// Repeats the walk with two workgroups if no grid was given, and describes the first finding.
///
/// A single workgroup shares memory with no other. For graphics stages these are two vertices, or two
/// fragments of each of two pixels.
pub fn wider(module: &SpirvModule, options: &AnalysisOptions) -> Option<String> {
    if options.grid.is_some() {
        return None;
    }
    let stage = module.find_entry(options.entry.as_deref()).ok()?.shader_stage();
    let (grid, words) = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => ([2, 1, 1], "2 workgroups (--grid 2)"),
        Stage::Vertex => ([2, 1, 1], "2 vertices (--grid 2)"),
        Stage::Fragment => ([2, 1, 2], "2 fragments of each of 2 pixels (--grid 2,1,2)"),
    };
    let report = grid::analyze_grid(module, &AnalysisOptions { grid: Some(grid), ..options.clone() }).ok()?;
    let found = report.findings.first()?;
    Some(format!("nothing is said of the grid, and of {words} something is wrong: {}", found.message))
}

/// Returns the findings of a walk that a model does not check: endless loops and uninitialized values.
///
/// Modules with annotations define their own questions, so they get none.
pub fn beside_races(module: &SpirvModule, options: &AnalysisOptions) -> Vec<GridFinding> {
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
    module: &SpirvModule,
    options: &AnalysisOptions,
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
        // Inputs that do not fit the kernel are an error for the model too.
        Err(Refusal { what: Problem::Input(_), .. }) => return walked,
        _ => {}
    }
    let Ok(lifted) = lift(module, options) else { return walked };
    let asking = ModelQuery { budget, race: true, question: false, places: true };
    let Ok(answered) = answer_with_model(&lifted, model, &asking) else { return walked };
    let mut findings: Vec<GridFinding> = answered
        .findings
        .iter()
        .map(|found| finding(&lifted, found.kind, found.message.clone(), &found.at))
        .collect();
    if let Some(found) = &answered.race_found {
        let message = found.describe(&lifted.invocations);
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
        lifted.invocations.get(usize::from(spot.thread)).copied().unwrap_or_else(InvocationId::default)
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
