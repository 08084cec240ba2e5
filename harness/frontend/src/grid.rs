//! Walks over whole grids: every invocation with its inputs, and everything that two of them do without an order.
//!
//! A walk is one order of the invocations, and whether two accesses race is decided by what happens before in it, not by
//! when they came. Where no value that depends on the order decides about control or addresses, one walk speaks for all
//! orders; else several are tried, and the report says so.

mod access;
mod access_names;
mod atomic;
mod both_branches;
mod compute;
mod deadlock;
mod decode;
mod execute;
mod extended;
mod fast_path;
mod final_contents;
mod group;
mod happens_before;
mod image;
mod interlock;
mod machine;
mod memory;
mod program;
mod sampler;
mod schedule;
mod setup;
mod shadow;
mod split_barrier;
mod subgroup_starvation;
mod sync;
mod value;
mod vector_clock;
mod workgroup_start;

use crate::error::{Place, Problem, Refusal};
use crate::lift::{FindingKind, Identity, Options};
use crate::module::Module;
use crate::stage::Stage;

pub(crate) use final_contents::pack_texels;
use machine::Interpreter;
pub use sampler::{AddressMode, Sampler};
use schedule::SchedulePolicy;
pub(crate) use setup::{default_image, initial_texels};

/// Steps of all walks of a kernel at most.
const MAX_STEPS: u64 = 150_000_000;
/// Orders that are tried where the order decides and nothing else is said.
pub(crate) const DEFAULT_SCHEDULES: u64 = 12;
/// Orders that are tried where they cost next to nothing.
const MAX_CHEAP_SCHEDULES: u64 = 1_000;
/// Steps up to which they do, what a walk copies included.
const CHEAP_STEPS: u64 = 2_000_000;
/// Bytes of memory that are copied in the time of a step.
const BYTES_PER_STEP: u64 = 256;
/// Ranges of lines that nobody came to, which are named.
const MAX_RANGES: usize = 8;
/// Findings at most.
const MAX_FINDINGS: usize = 32;

/// What a walk found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridVerdict {
    /// Something is wrong.
    Racy,
    /// Nothing is, as far as the coverage says.
    Clean,
    /// It could not be found out.
    Undecided,
}

/// A place of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridSpot {
    /// Index of the source line, 0 where there is none.
    pub line: u32,
    /// The place in the module.
    pub place: Place,
    /// Who is there.
    pub invocation: Identity,
    /// Whether it writes, where it is an access.
    pub access: Option<bool>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridFinding {
    /// Its kind.
    pub kind: FindingKind,
    /// In words.
    pub message: String,
    /// Where.
    pub at: Vec<GridSpot>,
}

/// What a buffer holds when all invocations have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalBuffer {
    /// Descriptor set, binding, and element of an array of buffers.
    pub at: (u32, u32, u32),
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The first byte of which another order of the invocations, or something that is not computed here, may leave another.
    pub first_open_byte: Option<usize>,
}

/// What is said of a kernel.
#[derive(Clone, Debug)]
pub struct GridReport {
    /// The entry point.
    pub entry: String,
    /// Its stage.
    pub stage: Stage,
    /// Workgroups; vertices and instances, or pixels and fragments of each.
    pub grid: [u32; 3],
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// The verdict.
    pub verdict: GridVerdict,
    /// Why nothing could be found out.
    pub refusal: Option<Refusal>,
    /// What is wrong.
    pub findings: Vec<GridFinding>,
    /// Whether the order of the invocations decides about control or addresses, so that a pass covers the orders tried.
    pub is_schedule_dependent: bool,
    /// Whether the model answered, over every execution, where the walk left something open.
    pub decided_by_model: bool,
    /// Orders that were tried.
    pub schedules: u64,
    /// Steps of all invocations.
    pub steps: u64,
    /// Bytes of memory that accesses were looked at of, and bytes that this took, in the order that took most.
    pub accessed_bytes: u64,
    /// See [`accessed_bytes`](Report::accessed_bytes).
    pub shadow_bytes: u64,
    /// What buffers hold in the end, where that was asked for and the first order has come there.
    pub final_buffers: Vec<FinalBuffer>,
    /// What is wrong with two workgroups where nothing is said of how many there are, and nothing is of one.
    pub two_workgroup_finding: Option<String>,
    /// What a pass covers, in words.
    pub coverage: String,
}

impl GridReport {
    /// What is known of a kernel that was lifted alone.
    pub(crate) fn from_lifted(lifted: &crate::lift::Lifted, entry: String) -> GridReport {
        let most = |of: fn(&Identity) -> [u32; 3]| {
            let all = lifted.invocations.iter().map(of);
            all.fold([1; 3], |all, one| [0, 1, 2].map(|axis: usize| all[axis].max(one[axis] + 1)))
        };
        let local_size = most(|identity| identity.local);
        GridReport {
            entry,
            stage: lifted.invocations.first().map(|identity| identity.stage).unwrap_or_default(),
            grid: most(|identity| identity.workgroup),
            local_size,
            subgroup_size: lifted.subgroup_size,
            verdict: GridVerdict::Undecided,
            refusal: None,
            findings: Vec::new(),
            is_schedule_dependent: false,
            decided_by_model: false,
            schedules: 0,
            steps: 0,
            accessed_bytes: 0,
            shadow_bytes: 0,
            final_buffers: Vec::new(),
            two_workgroup_finding: None,
            coverage: String::new(),
        }
    }
}

/// Walks a kernel over its whole grid.
///
/// # Errors
/// What of it is malformed or beyond the walk, with its place, where nothing wrong was found before.
pub fn analyze_grid(module: &Module, options: &Options) -> Result<GridReport, Refusal> {
    explore_schedules(module, options, MAX_STEPS, DEFAULT_SCHEDULES)
}

/// The same, with many orders where they cost little: many a bug of two invocations is in few of them.
///
/// # Errors
/// See [`walk`].
pub fn analyze_grid_thoroughly(module: &Module, options: &Options) -> Result<GridReport, Refusal> {
    analyze_within_steps(module, options, MAX_STEPS)
}

/// The same with `most` steps at most.
pub(crate) fn analyze_within_steps(
    module: &Module,
    options: &Options,
    most: u64,
) -> Result<GridReport, Refusal> {
    explore_schedules(module, options, most, MAX_CHEAP_SCHEDULES)
}

/// `orders` are those that are tried where `options` do not say how many: the first few whatever they cost, the others with few steps.
fn explore_schedules(
    module: &Module,
    options: &Options,
    most: u64,
    orders: u64,
) -> Result<GridReport, Refusal> {
    let nowhere = |problem: Problem| problem.at(Place::Module);
    let entry = module.entry(options.entry.as_deref()).map_err(nowhere)?;
    let (function, stage, name) = (entry.function, entry.stage(), entry.name.clone());
    setup::with_interpreter(module, options, (function, stage), |first| {
        let mut report = GridReport {
            entry: name,
            stage,
            grid: first.setup.grid,
            local_size: first.setup.local_size,
            subgroup_size: first.setup.subgroup_size,
            verdict: GridVerdict::Clean,
            refusal: None,
            findings: Vec::new(),
            is_schedule_dependent: false,
            decided_by_model: false,
            schedules: 0,
            steps: 0,
            accessed_bytes: 0,
            shadow_bytes: 0,
            final_buffers: Vec::new(),
            two_workgroup_finding: None,
            coverage: String::new(),
        };
        let mut notes = std::collections::BTreeSet::new();
        let mut reached = first.reached_blocks.clone();
        let copied =
            first.objects.iter().map(|object| object.bytes.len() as u64).sum::<u64>() / BYTES_PER_STEP;
        let few = options.schedules.unwrap_or(DEFAULT_SCHEDULES).max(1);
        for order in 0..options.schedules.unwrap_or(orders).max(1) {
            let most = if order < few { most } else { most.min(CHEAP_STEPS) };
            // What spends a large part of the steps leaves no room for other orders.
            if order > 0 && report.steps + report.schedules * copied > most / 2 {
                break;
            }
            let mut machine = first.clone();
            machine.rotation = order as u32 + 1;
            let plan = SchedulePolicy::for_schedule(order, options.seed);
            let walked = machine.run_schedule(plan, most.saturating_sub(report.steps));
            report.schedules += 1;
            report.steps += machine.steps;
            report.is_schedule_dependent |= machine.schedule_dependent;
            let (accessed, shadow) = machine.shadow_bytes();
            if shadow > report.shadow_bytes {
                (report.accessed_bytes, report.shadow_bytes) = (accessed, shadow);
            }
            notes.append(&mut machine.notes);
            reached.iter_mut().zip(&machine.reached_blocks).for_each(|(known, now)| *known |= now);
            add_findings(&mut report.findings, &machine);
            if options.keep_final && order == 0 && walked.is_ok() {
                report.final_buffers = machine.final_buffers();
            }
            if let Err(refusal) = walked {
                if order > 0 && refusal.what.is_limit() && report.findings.is_empty() {
                    // Fewer orders than there might be.
                    report.schedules -= 1;
                    break;
                }
                report.refusal = Some(refusal);
                break;
            }
            let enough = options.schedules.is_none() && !report.findings.is_empty();
            if !report.is_schedule_dependent || enough {
                break;
            }
        }
        // Who asks for a number of orders is told where it was not reached.
        if let Some(asked) =
            options.schedules.filter(|asked| report.is_schedule_dependent && report.schedules < *asked)
            && report.findings.is_empty()
            && report.refusal.is_none()
        {
            let missed = Problem::Orders { tried: report.schedules, asked };
            report.refusal = Some(missed.at(Place::Module));
        }
        classify_lockstep_races(&mut report.findings);
        report.verdict = match (report.findings.is_empty(), &report.refusal) {
            (false, _) => GridVerdict::Racy,
            (true, None) => GridVerdict::Clean,
            (true, Some(refusal)) if refusal.what.is_limit() => GridVerdict::Undecided,
            (true, Some(refusal)) => return Err(refusal.clone()),
        };
        if report.verdict == GridVerdict::Clean {
            notes.extend(describe_unreached_lines(module, &first.program.unreached_lines(&reached)));
        }
        report.coverage = describe_coverage(&report, first.setup.has_unordered_interlock(), notes);
        Ok(report)
    })
}

fn add_findings(findings: &mut Vec<GridFinding>, machine: &Interpreter<'_>) {
    for found in &machine.findings {
        let spot = |(site, invocation, access): &(u32, Identity, Option<bool>)| {
            let (line, place) = machine.program.source_place(*site);
            GridSpot { line, place, invocation: *invocation, access: *access }
        };
        let at: Vec<GridSpot> = found.at.iter().map(spot).collect();
        let lines = |at: &[GridSpot]| at.iter().map(|spot| (spot.line, spot.place)).collect::<Vec<_>>();
        let known = findings.iter().any(|known| known.kind == found.kind && lines(&known.at) == lines(&at));
        if !known && findings.len() < MAX_FINDINGS {
            findings.push(GridFinding { kind: found.kind, message: found.message.clone(), at });
        }
    }
}

/// Lockstep is assumed where lanes of one subgroup alone race. Where others do on these lines as well, it is a race like theirs.
fn classify_lockstep_races(findings: &mut Vec<GridFinding>) {
    let lines = |found: &GridFinding| -> Vec<(u32, Place)> {
        let line = |spot: &GridSpot| match spot.line {
            0 => (0, spot.place),
            line => (line, Place::Module),
        };
        let mut all: Vec<_> = found.at.iter().map(line).collect();
        all.sort_unstable();
        all
    };
    let wider = findings.iter().filter(|found| found.kind.is_race() && found.kind != FindingKind::Lockstep);
    let wider: Vec<Vec<(u32, Place)>> = wider.map(lines).collect();
    findings.retain(|found| found.kind != FindingKind::Lockstep || !wider.contains(&lines(found)));
    for found in findings.iter_mut().filter(|found| found.kind == FindingKind::Lockstep) {
        if lines(found).iter().any(|line| wider.iter().flatten().any(|known| known == line)) {
            found.kind = FindingKind::Race;
        }
    }
}

/// Which lines nobody came to, in words.
fn describe_unreached_lines(module: &Module, lines: &std::collections::BTreeSet<u32>) -> Option<String> {
    let mut all: Vec<(&str, u32)> = lines
        .iter()
        .filter_map(|line| module.source_line(*line))
        .map(|at| (at.file.as_str(), at.line))
        .collect();
    all.sort_unstable();
    let (file, _) = all.first().copied()?;
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (_, line) in all.iter().filter(|(of, _)| *of == file) {
        match ranges.last_mut() {
            Some((_, last)) if *line <= *last + 1 => *last = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    let more = if ranges.len() > MAX_RANGES { ", …" } else { "" };
    let ranges = ranges.iter().take(MAX_RANGES).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    Some(format!("nobody came to line{} {ranges}{more}", if all.len() == 1 { "" } else { "s" }))
}

/// What a pass covers, in words. `unordered` is whether interlocked sections come in any order.
fn describe_coverage(
    report: &GridReport,
    unordered: bool,
    notes: std::collections::BTreeSet<String>,
) -> String {
    let workgroups: u64 = report.grid.iter().map(|n| u64::from(*n)).product();
    let each: u64 = report.local_size.iter().map(|n| u64::from(*n)).product();
    let why = match unordered {
        true => "sections come in any order",
        false => "atomics decide where it goes or what is ordered",
    };
    let orders = match (report.is_schedule_dependent, report.schedules) {
        (false, _) => "every order of the invocations".to_owned(),
        (true, 1) => format!("the one order of the invocations tried, since {why}"),
        (true, orders) => format!("the {orders} orders of the invocations tried, since {why}"),
    };
    let invocations = report.stage.counted(report.grid).unwrap_or_else(|| {
        let plural = if workgroups == 1 { "" } else { "s" };
        format!("{workgroups} workgroup{plural} of {each}, subgroups of {}", report.subgroup_size)
    });
    let mut all = format!("these inputs, {invocations}, loops whole, {orders}");
    for note in notes {
        all += &format!("; {note}");
    }
    all
}
