//! The schedules of a walk: how many there are, and what they show together.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use entry_point::layout::element_names;
use entry_point::question::{Claim, ViolatedPart, resolve_claim};
use entry_point::{AnalysisOptions, FindingCause, FindingKind, InvocationId, Problem, Refusal};
use results::wire::RaceVerdict;
use spirv_reader::{MemoryEffect, SourcePosition, SpirvInstruction, SpirvModule};

use super::influence::InputInfluence;
use super::race_classes::classify_races;
use super::report::{CoverageLimit, FinalBuffer, GridFinding, GridReport, GridSpot, variable_of_element};
use super::schedule::{MAX_STEPS, SchedulePolicy};
use super::setup::{MAX_INVOCATIONS, with_interpreter};
use super::state::{Interpreter, SiteFinding, WalkSetup};
use super::trial::blocked_lines;

/// Schedules to explore if the kernel is schedule-dependent and no number was requested.
pub const DEFAULT_SCHEDULES: u64 = 12;
/// Schedules to explore if they are cheap.
const MAX_CHEAP_SCHEDULES: u64 = 1_000;
/// Steps up to which further schedules count as cheap, including the memory that a walk copies.
const CHEAP_STEPS: u64 = 2_000_000;
/// Bytes of memory whose copying costs about as much as one step.
const BYTES_PER_STEP: u64 = 256;
/// Upper bound on the findings of a report.
const MAX_FINDINGS: usize = 32;

/// Executes a kernel over its whole grid and reports races and other defects.
///
/// # Errors
/// Returns the position of what is malformed or unsupported, unless a defect was found before it.
pub fn analyze_grid(module: &SpirvModule, options: &AnalysisOptions) -> Result<GridReport, Refusal> {
    let most = options.max_steps.unwrap_or(MAX_STEPS);
    explore_schedules(module, options, most, DEFAULT_SCHEDULES, &|_| false)
}

/// Like [`analyze_grid`], with many schedules where they are cheap.
///
/// Many defects of two invocations appear in few schedules.
///
/// # Errors
/// See [`analyze_grid`].
pub fn analyze_grid_thoroughly(
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Result<GridReport, Refusal> {
    let most = options.max_steps.unwrap_or(MAX_STEPS);
    explore_schedules(module, options, most, MAX_CHEAP_SCHEDULES, &|_| false)
}

/// Like [`analyze_grid_thoroughly`], with at most `most` steps, until a finding satisfies `is_decisive`.
///
/// # Errors
/// See [`analyze_grid`].
pub fn analyze_until(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
    is_decisive: &dyn Fn(&GridFinding) -> bool,
) -> Result<GridReport, Refusal> {
    explore_schedules(module, options, most, MAX_CHEAP_SCHEDULES, is_decisive)
}

/// Runs up to `orders` schedules if `options` request no number.
///
/// The first [`DEFAULT_SCHEDULES`] may use the whole step budget, the others only [`CHEAP_STEPS`].
fn explore_schedules(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
    orders: u64,
    is_decisive: &dyn Fn(&GridFinding) -> bool,
) -> Result<GridReport, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    with_interpreter(module, options, entry, |first| {
        let WalkSetup { stage, grid, local_size, subgroup_size, .. } = *first.setup;
        let mut report = GridReport::new(entry.name.clone(), stage, grid, local_size, subgroup_size);
        report.workgroups.clone_from(&first.setup.running_workgroups);
        let bytes: u64 = first.objects.iter().map(|object| object.bytes.len() as u64).sum();
        let mut exploration = Exploration {
            module,
            options,
            first,
            copied: bytes / BYTES_PER_STEP,
            // A claim about other memory than buffers is for the model.
            claim: resolve_claim(module, options).ok().flatten(),
            report,
            influence: InputInfluence::for_inputs(&options.assumed),
            notes: BTreeSet::new(),
            reached: first.blocks_entered(1),
            first_contents: None,
        };
        let all = 0..options.schedules.unwrap_or(orders).max(1);
        for order in options.replay.map_or(all, |only| only.schedule..only.schedule.saturating_add(1)) {
            let is_last = exploration.run_schedule(order, most).is_break();
            if !exploration.report.findings.is_empty() {
                exploration.report.finding_schedule.get_or_insert(order);
            }
            if is_last || exploration.report.findings.iter().any(is_decisive) {
                break;
            }
        }
        exploration.conclude()
    })
}

/// The combined results of the schedules so far.
struct Exploration<'a, 'm> {
    module: &'a SpirvModule,
    options: &'a AnalysisOptions,
    /// The initial state of every schedule.
    first: &'a Interpreter<'m>,
    /// The cost of copying that state, in steps.
    copied: u64,
    claim: Option<Claim>,
    report: GridReport,
    influence: InputInfluence,
    notes: BTreeSet<String>,
    reached: Vec<bool>,
    /// The final contents of the first schedule that ran to its end.
    first_contents: Option<Vec<FinalBuffer>>,
}

impl Exploration<'_, '_> {
    /// Runs a schedule with a budget of steps for all; breaks if further ones would show nothing or cost too much.
    fn run_schedule(&mut self, order: u64, most: u64) -> ControlFlow<()> {
        let requested_schedules = self.options.schedules.unwrap_or(DEFAULT_SCHEDULES).max(1);
        let is_few = order < requested_schedules && self.report.findings.is_empty();
        let most = if is_few { most } else { most.min(CHEAP_STEPS) };
        // An expensive walk leaves no budget for a second schedule.
        if order > 0 && self.report.steps + self.report.schedules * self.copied > most / 2 {
            return ControlFlow::Break(());
        }
        let mut machine = self.first.clone();
        machine.rotation = order as u32 + 1;
        let seed = self.options.replay.map_or(self.options.seed, |only| only.seed);
        let plan = SchedulePolicy::for_schedule(order, seed);
        let budget = self.first.setup.step_budget(order, most).saturating_sub(self.report.steps);
        let result = machine.run_schedule(plan, budget);
        self.add_schedule(&mut machine);
        match result {
            Ok(()) => self.add_contents(&machine),
            Err(refusal) => {
                if self.report.schedules > 1 && refusal.what.is_limit() {
                    // The schedule hit a limit and counts as not tried.
                    self.report.schedules -= 1;
                } else {
                    self.report.refusal = Some(refusal);
                }
                return ControlFlow::Break(());
            }
        }
        // Another schedule may show another defect.
        let enough = self.options.schedules.is_none() && !self.report.findings.is_empty();
        // The schedule may decide what a load reads that is stored, without influence on other code.
        let is_open = |buffer: &FinalBuffer| buffer.first_open_byte.is_some();
        let may_differ = order < STORED_LOAD_SCHEDULES
            && self.report.order_dependent_element.is_none()
            && self.first_contents.iter().flatten().any(is_open);
        // A walk that no schedule-dependent value influences covers all schedules.
        if !self.report.is_schedule_dependent && !may_differ || enough && order + 1 >= requested_schedules {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Adds what a schedule has shown, whether it ran to its end or not.
    fn add_schedule(&mut self, machine: &mut Interpreter<'_>) {
        let report = &mut self.report;
        report.schedules += 1;
        report.steps += machine.steps;
        report.is_schedule_dependent |= machine.is_schedule_dependent;
        report.has_partial_subgroups |= machine.has_partial_subgroups;
        if report.order_dependent_element.is_none() {
            report.order_dependent_element.clone_from(&machine.unordered_write);
        }
        let (accessed, shadow) = machine.shadow_bytes();
        if shadow > report.shadow_bytes {
            (report.accessed_bytes, report.shadow_bytes) = (accessed, shadow);
        }
        self.notes.append(&mut machine.notes);
        machine.add_exceeded(self.module, &mut report.exceeded);
        self.influence.merge(&machine.influence);
        self.reached.iter_mut().zip(machine.blocks_entered(1)).for_each(|(known, now)| *known |= now);
        add_findings(&mut report.findings, machine);
    }

    /// Adds the final contents of a schedule: checks the claim on them, and compares them with those of the first.
    fn add_contents(&mut self, machine: &Interpreter<'_>) {
        // Nothing is claimed of contents that are not final, as an invocation has not ended.
        let is_final = !machine.findings.iter().any(|found| found.cause.kind() == FindingKind::Hang);
        if let Some(claim) = self.claim.as_ref().filter(|_| is_final) {
            match violated_claim(self.module, self.options, claim, &machine.final_buffers()) {
                Some(Ok(message)) => {
                    let found = GridFinding::new(FindingCause::BrokenClaim, message, Vec::new());
                    if !self.report.findings.iter().any(|known| known.kind == FindingKind::Assertion) {
                        self.report.findings.push(found);
                    }
                }
                Some(Err(element)) => {
                    let open = Problem::OpaqueClaim { element };
                    self.report.refusal = Some(open.located_at(SourcePosition::Module));
                }
                None => {}
            }
        }
        // The contents stem from one schedule, since a mixture of several shows no execution: the first with a finding, else the
        // first.
        let is_first_finding = self.report.finding_schedule.is_none() && !self.report.findings.is_empty();
        if self.options.keep_final && (self.report.schedules == 1 || is_first_finding) {
            self.report.final_buffers = machine.final_buffers();
        }
        if is_final && self.report.schedules <= COMPARED_SCHEDULES && self.copied <= MAX_COMPARED {
            let current_buffers = machine.final_buffers();
            match &self.first_contents {
                Some(first) if self.report.order_dependent_element.is_none() => {
                    self.report.order_dependent_element =
                        differing_element(self.module, self.options, first, &current_buffers);
                }
                Some(_) => {}
                None => self.first_contents = Some(current_buffers),
            }
        }
    }

    /// Returns the report with its verdict.
    fn conclude(self) -> Result<GridReport, Refusal> {
        let Exploration { module, options, first, mut report, influence, notes, reached, .. } = self;
        if report.findings.is_empty() && report.refusal.is_none() {
            report.refusal = missed_part(options, &report);
        }
        classify_races(&mut report.findings);
        if report.findings.iter().any(|found| found.kind.is_race()) {
            report.findings.retain(|found| found.cause != FindingCause::StoredUnwritten);
        }
        report.verdict = match (report.findings.is_empty(), &report.refusal) {
            (false, _) => RaceVerdict::Racy,
            (true, None) => RaceVerdict::Clean,
            (true, Some(Refusal { what: Problem::OpaqueClaim { .. }, .. })) => RaceVerdict::Undecided,
            (true, Some(refusal)) if refusal.what.is_limit() => RaceVerdict::Undecided,
            (true, Some(refusal)) => return Err(refusal.clone()),
        };
        report.unreached = first.program.unreached_lines(&reached);
        report.blocked = blocked_lines(first.program, &influence, &reached);
        report.reached = reached;
        report.has_unordered_interlock = first.setup.has_unordered_interlock();
        report.limits = notes.into_iter().map(CoverageLimit::Note).collect();
        if report.verdict == RaceVerdict::Clean {
            report.limits.extend(report.unreached_limit(module));
        }
        Ok(report)
    }
}

/// Returns the refusal of a walk that found nothing in fewer schedules or workgroups than requested: no pass.
fn missed_part(options: &AnalysisOptions, report: &GridReport) -> Option<Refusal> {
    let is_missed = |asked: &u64| report.is_schedule_dependent && report.schedules < *asked;
    let requested = options.schedules.filter(|asked| options.replay.is_none() && is_missed(asked));
    let missed = match requested {
        Some(asked) => Problem::TooFewSchedules { tried: report.schedules, asked },
        None if options.is_sampled => {
            Problem::Invocations { bound: MAX_INVOCATIONS as usize, one_workgroup: false }
        }
        None => return None,
    };
    Some(missed.located_at(SourcePosition::Module))
}

/// Schedules whose final contents are compared, and the largest contents, in units of [`BYTES_PER_STEP`].
const COMPARED_SCHEDULES: u64 = 24;
/// Further schedules for code in which only final contents may depend on the schedule.
const STORED_LOAD_SCHEDULES: u64 = 3;
const MAX_COMPARED: u64 = (4 << 20) / BYTES_PER_STEP;

/// Returns the description of a claim that does not hold, or the element that the walk does not compute.
fn violated_claim(
    module: &SpirvModule,
    options: &AnalysisOptions,
    claim: &Claim,
    buffers: &[FinalBuffer],
) -> Option<Result<String, String>> {
    let places: Vec<(u32, u32, u32, u64)> = claim
        .places
        .iter()
        .map(|((set, binding, element), offset, _)| (*set, *binding, *element, *offset))
        .collect();
    let names = element_names(module, options, &places).unwrap_or_default();
    let mut values = Vec::with_capacity(claim.places.len());
    let name_of = |index: usize| names.get(index).cloned().unwrap_or_default();
    for (index, (at, offset, bytes)) in claim.places.iter().enumerate() {
        let end = *offset as usize + *bytes as usize;
        let contents = buffers.iter().find(|buffer| buffer.at == *at);
        let known = contents.filter(|buffer| buffer.first_unknown_byte.is_none_or(|unknown| end <= unknown));
        let Some(range) = known.and_then(|buffer| buffer.bytes.get(*offset as usize..end)) else {
            return Some(Err(name_of(index)));
        };
        values.push(range.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte)));
    }
    if claim.holds(&values) {
        return None;
    }
    let violated = claim.violated_parts(&values);
    let shown = violated.get(..MAX_VIOLATED_PARTS).unwrap_or(&violated);
    let text = |part: &ViolatedPart<'_>| match part.line {
        Some(line) => format!("`{}` of line {line}", part.text),
        None => format!("`{}`", part.text),
    };
    let mut texts: Vec<String> = shown.iter().map(text).collect();
    if violated.len() > shown.len() {
        texts.push("…".to_owned());
    }
    let cells: BTreeSet<usize> = shown.iter().flat_map(|part| part.cells.iter().copied()).collect();
    let cells = cells
        .iter()
        .map(|cell| format!("{} is {}", name_of(*cell), values.get(*cell).copied().unwrap_or_default()));
    let (text, cells) = (texts.join(" and "), cells.collect::<Vec<_>>().join(", "));
    let verb = if texts.len() == 1 { "does" } else { "do" };
    Some(Ok(format!("{text} {verb} not hold in the final state: {cells}")))
}

/// Upper bound on the parts of a long claim that a message lists.
const MAX_VIOLATED_PARTS: usize = 4;

/// Describes the first element with different contents.
fn differing_element(
    module: &SpirvModule,
    options: &AnalysisOptions,
    first: &[FinalBuffer],
    now: &[FinalBuffer],
) -> Option<String> {
    let differs = |(one, other): (&FinalBuffer, &FinalBuffer)| {
        let at = one.bytes.iter().zip(&other.bytes).position(|(one, other)| one != other)?;
        let word = at / 4 * 4;
        let number = |buffer: &FinalBuffer| {
            let bytes = buffer.bytes.get(word..word + 4).unwrap_or_default();
            bytes.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte))
        };
        let (set, binding, element) = one.at;
        let names = element_names(module, options, &[(set, binding, element, word as u64)]);
        let name = names.ok()?.pop()?;
        let (one, other) = (number(one), number(other));
        let mut code = module.functions.values().flat_map(|function| &function.code);
        let is_atomic = |instruction: &SpirvInstruction| {
            matches!(module.operation(instruction).memory_effect(), MemoryEffect::Atomic(_))
        };
        let unordered = if code.any(is_atomic) { "atomics" } else { "invocations" };
        Some(format!(
            "the final value of `{name}` is {one} or {other}, depending on the order of {unordered}; \
             this is not a race"
        ))
    };
    first.iter().zip(now).find_map(differs)
}

impl Interpreter<'_> {
    /// Returns a finding with its source positions, and with the inputs that it depends on.
    pub(super) fn to_grid_finding(&self, found: &SiteFinding) -> GridFinding {
        let spot = |(site, invocation, writes): &(u32, InvocationId, Option<bool>)| {
            let (line, place) = self.program.source_place(*site);
            GridSpot { line, place, invocation: *invocation, writes: *writes }
        };
        let (kind, influence) = (found.cause.kind(), &self.influence);
        let mut sites: Vec<u32> = found.at.iter().map(|at| at.0).collect();
        sites.sort_unstable();
        let is_decided = |at: &(u32, InvocationId, Option<bool>)| influence.inputs_at_site(at.0) != 0;
        let has_decided = found.at.iter().any(is_decided);
        let is_keyed = self.is_keyed_race(found);
        // Later invocations may access other elements at the same sites, by further inputs.
        let at_sites = found.at.iter().fold(0, |all, at| all | influence.inputs_at_site(at.0));
        let at_sites = if is_keyed { 0 } else { at_sites };
        GridFinding {
            element: found.element.clone(),
            inputs: influence.inputs_of(kind, found.inputs | at_sites),
            control: influence.control_inputs(kind),
            blocks: sites.iter().filter_map(|site| self.program.block_of(*site)).collect(),
            sites,
            has_read: found.at.iter().any(|at| at.2 == Some(false) || has_decided && !is_decided(at)),
            is_keyed,
            ..GridFinding::new(found.cause, found.message.clone(), found.at.iter().map(spot).collect())
        }
    }
}

fn add_findings(findings: &mut Vec<GridFinding>, machine: &Interpreter<'_>) {
    for found in &machine.findings {
        let finding = machine.to_grid_finding(found);
        let kind = finding.kind;
        let lines = |at: &[GridSpot]| {
            // Schedules differ in where others stop while an invocation repeats its loop.
            let at = if kind == FindingKind::Hang { at.get(..1).unwrap_or_default() } else { at };
            let source_line = |spot: &GridSpot| machine.program.module.source_line(spot.line);
            let line = |spot: &GridSpot| match source_line(spot) {
                Some(source) if kind == FindingKind::Hang => (source.line, SourcePosition::Module),
                _ => (spot.line, spot.place),
            };
            let mut lines: Vec<_> = at.iter().map(line).collect();
            // Another schedule may reach the same places in another order.
            lines.sort_unstable();
            lines
        };
        let is_equal = |cause| cause == FindingCause::EqualStores;
        let known = findings.iter().any(|known| {
            (known.kind, is_equal(known.cause)) == (kind, is_equal(found.cause))
                && (!kind.is_race()
                    || variable_of_element(&known.element) == variable_of_element(&finding.element))
                && lines(&known.at) == lines(&finding.at)
        });
        if !known && findings.len() < MAX_FINDINGS {
            findings.push(finding);
        }
    }
}
