//! Dynamic race detection over a whole grid: happens-before by vector clocks, one walk per schedule.
//!
//! Every invocation is executed with concrete inputs. Two conflicting accesses race if neither happens before
//! the other in the walked schedule, independent of the time between them. The clocks follow FastTrack
//! (Flanagan and Freund, PLDI 2009, <https://doi.org/10.1145/1542476.1542490>), extended by barrier epochs
//! and by the availability and visibility operations of the Vulkan memory model (appendix "Memory Model").
//!
//! A reported race is a race of the walked schedule. If no schedule-dependent value decides control flow, an
//! address or an acquire, one walk covers every schedule. Otherwise several schedules are tried. Races of
//! other schedules may then be missed, which the report's coverage states.

mod access;
mod access_names;
mod access_recorder;
mod accessed_bytes;
mod atomic;
mod both_branches;
mod bytecode;
mod compute;
mod deadlock;
mod decode;
mod execute;
mod fast_path;
mod final_contents;
pub mod happens_before;
mod image;
mod implicit_flow;
mod influence;
mod input_branches;
mod interlock;
mod launch_taint;
mod machine;
mod memory;
mod program;
mod race_check;
mod race_classes;
mod ray_query;
mod register_variables;
mod schedule;
mod setup;
mod shadow;
mod slots;
mod split_barrier;
mod state;
mod step;
mod subgroup;
mod subgroup_starvation;
mod sync;
mod trial;
mod type_layout;
mod value;
pub mod vector_clock;
mod workgroup_start;

use crate::coverage::{CoverageLimit, DecidingModel, WiderGridFinding};
use crate::lifted::Lifted;
use entry_point::AnalysisOptions;
use entry_point::question;
use entry_point::{FindingCause, FindingKind, InvocationId, Spot};
use entry_point::{Problem, Refusal};
use spirv_reader::SourcePosition;

pub use accessed_bytes::{AccessedBytes, ResourceAccess, accessed_bytes, declared_bindings};
pub use final_contents::{pack_texels, unpack_texels};
use schedule::{MAX_STEPS, SchedulePolicy};
pub(crate) use setup::{MAX_INVOCATIONS, initial_texels};
use spirv_reader::{SpirvModule, SpirvOperation, Stage};
use state::Interpreter;
pub(crate) use trial::{Blocked, FindingKey, LaunchProbe, Trial, TrialFinding, probe_launch, run_trial};

/// Schedules to explore if the kernel is schedule-dependent and no number was requested.
pub(crate) const DEFAULT_SCHEDULES: u64 = 12;
/// Schedules to explore if they are cheap.
const MAX_CHEAP_SCHEDULES: u64 = 1_000;
/// Steps up to which further schedules count as cheap, including the memory that a walk copies.
const CHEAP_STEPS: u64 = 2_000_000;
/// Bytes of memory whose copying costs about as much as one step.
const BYTES_PER_STEP: u64 = 256;
/// Upper bound on the ranges of unreached lines that the report lists.
const MAX_RANGES: usize = 8;
/// Upper bound on the findings of a report.
const MAX_FINDINGS: usize = 32;

/// The outcome of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridVerdict {
    /// At least one finding.
    Racy,
    /// No finding, within the reported coverage.
    Clean,
    /// No finding, but a limit ended the walk.
    Undecided,
    /// The answer depends on inputs that no option supplies.
    NeedsInputs,
}

/// A source location of a finding, with the invocation that executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridSpot {
    /// Index of the source line; 0 if unknown.
    pub line: u32,
    /// The position in the module.
    pub place: SourcePosition,
    /// The invocation at this position.
    pub invocation: InvocationId,
    /// For an access, true if it writes.
    pub writes: Option<bool>,
}

/// A defect found by the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridFinding {
    /// The class of the defect.
    pub kind: FindingKind,
    pub cause: FindingCause,
    /// The accessed element; empty if none is known.
    pub element: String,
    /// The description, as one sentence.
    pub message: String,
    /// The positions involved.
    pub at: Vec<GridSpot>,
    /// The assumed inputs that its values or addresses depend on, by index.
    pub inputs: Vec<usize>,
    /// The assumed inputs that decided a branch before it, if the kind may be due to that.
    pub(crate) control: Vec<usize>,
    /// The numbers of its instructions, and of the labels of their blocks.
    pub(crate) sites: Vec<u32>,
    pub(crate) blocks: Vec<u32>,
}

impl GridFinding {
    /// Returns a finding that depends on no assumed input.
    pub(crate) fn new(cause: FindingCause, message: String, at: Vec<GridSpot>) -> GridFinding {
        let (inputs, control, sites, blocks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (kind, element) = (cause.kind(), String::new());
        GridFinding { kind, cause, element, message, at, inputs, control, sites, blocks }
    }

    /// Returns the two invocations of a race.
    pub fn racing_pair(&self) -> Option<[InvocationId; 2]> {
        match &self.at[..] {
            [one, other] if self.kind.is_race() && one.invocation != other.invocation => {
                Some([one.invocation, other.invocation])
            }
            _ => None,
        }
    }

    /// Returns a finding of the model.
    pub(crate) fn from_spots(
        lifted: &Lifted,
        cause: FindingCause,
        (element, message): (String, String),
        at: &[Spot],
    ) -> GridFinding {
        let spot = |spot: &Spot| GridSpot {
            line: spot.line,
            place: spot.place,
            invocation: lifted.invocations.get(usize::from(spot.thread)).copied().unwrap_or_default(),
            writes: spot.writes,
        };
        GridFinding { element, ..GridFinding::new(cause, message, at.iter().map(spot).collect()) }
    }

    /// Returns true if an instruction of the finding is atomic.
    pub fn has_atomic_access(&self, module: &SpirvModule) -> bool {
        let mut code = module.functions.values().flat_map(|function| &function.code);
        code.any(|instruction| {
            matches!(module.operation(instruction), SpirvOperation::Atomic(_))
                && self.at.iter().any(|spot| spot.place == instruction.place)
        })
    }

    /// Returns the finding as one of a wider grid than the assumed one.
    pub(crate) fn with_wider_grid(&self, grid: String) -> WiderGridFinding {
        let (kind, element, message) = (self.kind, self.element.clone(), self.message.clone());
        WiderGridFinding { grid, kind, element, message }
    }

    /// Returns the kind and the instructions, which are equal in other walks.
    pub(crate) fn finding_key(&self) -> FindingKey {
        (trial::kind_group(self.kind), self.sites.clone())
    }
}

/// An input that no option supplies and that the answer depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededInput {
    /// The source name.
    pub name: String,
    /// The assumed value.
    pub value: String,
    /// The option that supplies it.
    pub option: String,
    /// The source lines that were not reached because of it, as ranges; empty if it decides a finding.
    pub lines: String,
    /// The first of them, as an index into the lines of the module; 0 if there is none.
    pub line: u32,
    /// The finding that depends on it.
    pub finding: Option<Box<GridFinding>>,
    /// True for the contents of a storage buffer.
    pub is_contents: bool,
}

impl NeededInput {
    /// Returns the grid of a shader that is clean in one workgroup, vertex or pixel alone.
    pub fn missing_grid(stage: Stage) -> NeededInput {
        let (value, option) = match stage {
            Stage::Compute | Stage::Task | Stage::Mesh => ("one workgroup", "--grid X,Y,Z"),
            Stage::Vertex => ("one vertex", "--grid VERTICES,INSTANCES"),
            Stage::Fragment => ("one fragment", "--grid WIDTH,HEIGHT,FRAGMENTS"),
        };
        NeededInput::for_finding("grid".to_owned(), value.to_owned(), option.to_owned())
    }

    /// Returns a grid that decides a finding.
    pub(crate) fn grid_for_finding(value: String) -> NeededInput {
        NeededInput::for_finding("grid".to_owned(), value, "--grid X,Y,Z".to_owned())
    }

    /// Returns a subgroup size that decides a finding.
    pub(crate) fn subgroup_size_for_finding(value: String) -> NeededInput {
        NeededInput::for_finding("subgroup size".to_owned(), value, "--subgroup-size N".to_owned())
    }

    /// Returns an input that decides a finding.
    pub(crate) fn for_finding(name: String, value: String, option: String) -> NeededInput {
        NeededInput { name, value, option, lines: String::new(), line: 0, finding: None, is_contents: false }
    }

    /// Returns the input with the finding that depends on it.
    pub(crate) fn with_finding(self, finding: &GridFinding) -> NeededInput {
        NeededInput { finding: Some(Box::new(finding.clone())), ..self }
    }
}

/// The content of a buffer after all invocations have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalBuffer {
    /// Descriptor set, binding, and element of an array of buffers.
    pub at: (u32, u32, u32),
    /// The content.
    pub bytes: Vec<u8>,
    /// Offset of the first byte that is schedule-dependent or not computed by the walk.
    pub first_open_byte: Option<usize>,
    /// Offset of the first byte that the walk does not compute.
    pub first_unknown_byte: Option<usize>,
    /// Offset of the first byte of an undefined value.
    pub first_undefined_byte: Option<usize>,
}

/// The result of analyzing one kernel.
#[derive(Clone, Debug)]
pub struct GridReport {
    /// The name of the entry point.
    pub entry: String,
    /// The shader stage.
    pub stage: Stage,
    /// Workgroups; for graphics stages vertices and instances, or pixels and fragments per pixel.
    pub grid: [u32; 3],
    /// Invocations per workgroup, by axis.
    pub local_size: [u32; 3],
    /// Invocations per subgroup.
    pub subgroup_size: u32,
    /// The workgroups that ran, by their position in the grid; empty if all did.
    pub workgroups: Vec<[u32; 3]>,
    /// The outcome.
    pub verdict: GridVerdict,
    /// The limit or unsupported feature that ended the walk, if any.
    pub refusal: Option<Refusal>,
    /// The defects found.
    pub findings: Vec<GridFinding>,
    /// True if the schedule decides control flow or addresses, so that a pass covers only the tried
    /// schedules.
    pub is_schedule_dependent: bool,
    /// The axiomatic model, if it decided every execution where the walk was incomplete.
    pub model: Option<DecidingModel>,
    /// True if interlocked sections run in any order.
    pub has_unordered_interlock: bool,
    /// True if lanes of a subgroup executed a subgroup operation without others. Other reconvergences are possible.
    pub has_partial_subgroups: bool,
    /// Number of schedules tried.
    pub schedules: u64,
    /// Steps executed by all invocations.
    pub steps: u64,
    /// Bytes of memory with a recorded access, in the schedule with the largest shadow memory.
    pub accessed_bytes: u64,
    /// Bytes of shadow memory in that schedule; see [`accessed_bytes`](GridReport::accessed_bytes).
    pub shadow_bytes: u64,
    /// Final buffer contents of the first schedule, if requested and if it ran to its end.
    pub final_buffers: Vec<FinalBuffer>,
    /// The first defect with two workgroups, if no grid was given and one workgroup is clean.
    pub two_workgroup_finding: Option<WiderGridFinding>,
    /// The findings that chosen inputs, the assumed grid or the assumed subgroup size decide.
    pub open_findings: Vec<GridFinding>,
    /// The inputs that were chosen: all of the first choice, then what differs in each further one.
    pub chosen_inputs: Vec<Vec<String>>,
    /// The limits of the answer.
    pub limits: Vec<CoverageLimit>,
    /// The inputs to supply, if the verdict is [`GridVerdict::NeedsInputs`].
    pub needs: Vec<NeededInput>,
    /// True if the verdict is that for the one reason that a race needs a small number with large ones.
    pub is_open_by_share: bool,
    /// The first element whose final contents depend on the schedule although nothing races.
    pub order_dependent_element: Option<String>,
    /// The lines that no invocation reached.
    pub(crate) unreached: std::collections::BTreeSet<u32>,
    /// The lines that assumed inputs keep from being reached.
    pub(crate) blocked: Vec<Blocked>,
    /// The blocks that were reached.
    pub(crate) reached: Vec<bool>,
}

impl GridReport {
    /// Returns the number of source lines that no invocation reached; 0 for modules without line information.
    pub fn count_unreached_lines(&self) -> usize {
        self.unreached.len()
    }

    /// Returns an empty report for a kernel that was lifted without a walk.
    pub(crate) fn from_lifted(lifted: &Lifted, entry: String) -> GridReport {
        let grid_size = |of: fn(&InvocationId) -> [u32; 3]| {
            let all = lifted.invocations.iter().map(of);
            all.fold([1; 3], |all, one| [0, 1, 2].map(|axis: usize| all[axis].max(one[axis] + 1)))
        };
        let local_size = grid_size(|identity| identity.local);
        let stage = lifted.invocations.first().map(|identity| identity.stage).unwrap_or_default();
        let grid = grid_size(|identity| identity.workgroup);
        let verdict = GridVerdict::Undecided;
        GridReport { verdict, ..GridReport::new(entry, stage, (grid, local_size), lifted.subgroup_size) }
    }

    /// Returns a clean report of no schedule, for workgroups and their size.
    fn new(
        entry: String,
        stage: Stage,
        (grid, local_size): ([u32; 3], [u32; 3]),
        subgroup_size: u32,
    ) -> GridReport {
        GridReport {
            entry,
            stage,
            grid,
            local_size,
            subgroup_size,
            workgroups: Vec::new(),
            verdict: GridVerdict::Clean,
            refusal: None,
            findings: Vec::new(),
            is_schedule_dependent: false,
            model: None,
            has_unordered_interlock: false,
            has_partial_subgroups: false,
            schedules: 0,
            steps: 0,
            accessed_bytes: 0,
            shadow_bytes: 0,
            final_buffers: Vec::new(),
            two_workgroup_finding: None,
            open_findings: Vec::new(),
            chosen_inputs: Vec::new(),
            limits: Vec::new(),
            needs: Vec::new(),
            is_open_by_share: false,
            order_dependent_element: None,
            unreached: std::collections::BTreeSet::new(),
            blocked: Vec::new(),
            reached: Vec::new(),
        }
    }
}

/// Executes a kernel over its whole grid and reports races and other defects.
///
/// # Errors
/// Returns the position of what is malformed or unsupported, unless a defect was found before it.
pub fn analyze_grid(module: &SpirvModule, options: &AnalysisOptions) -> Result<GridReport, Refusal> {
    explore_schedules(module, options, MAX_STEPS, DEFAULT_SCHEDULES)
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
    analyze_within_steps(module, options, MAX_STEPS)
}

/// Like [`analyze_grid_thoroughly`], with at most `most` steps.
pub(crate) fn analyze_within_steps(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
) -> Result<GridReport, Refusal> {
    explore_schedules(module, options, most, MAX_CHEAP_SCHEDULES)
}

/// Runs up to `orders` schedules if `options` request no number.
///
/// The first [`DEFAULT_SCHEDULES`] may use the whole step budget, the others only [`CHEAP_STEPS`].
fn explore_schedules(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
    orders: u64,
) -> Result<GridReport, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    let (function, stage, name) = (entry.function, entry.shader_stage(), entry.name.clone());
    setup::with_interpreter(module, options, (function, stage), |first| {
        let setup = first.setup;
        let sizes = (setup.grid, setup.local_size);
        let mut report = GridReport::new(name, stage, sizes, setup.subgroup_size);
        report.workgroups.clone_from(&setup.running_workgroups);
        let mut influence = influence::InputInfluence::for_inputs(&options.assumed);
        // A claim about other memory than buffers is for the model.
        let claim = question::resolve_claim(module, options).ok().flatten();
        let mut first_contents: Option<Vec<FinalBuffer>> = None;
        let mut notes = std::collections::BTreeSet::new();
        let mut reached = first.blocks_entered(1);
        let copied =
            first.objects.iter().map(|object| object.bytes.len() as u64).sum::<u64>() / BYTES_PER_STEP;
        let requested_schedules = options.schedules.unwrap_or(DEFAULT_SCHEDULES).max(1);
        for order in 0..options.schedules.unwrap_or(orders).max(1) {
            let is_few = order < requested_schedules && report.findings.is_empty();
            let most = if is_few { most } else { most.min(CHEAP_STEPS) };
            // An expensive walk leaves no budget for a second schedule.
            if order > 0 && report.steps + report.schedules * copied > most / 2 {
                break;
            }
            // Every schedule starts from the same initial state.
            let mut machine = first.clone();
            machine.rotation = order as u32 + 1;
            let plan = SchedulePolicy::for_schedule(order, options.seed);
            let budget = setup.step_budget(order, most).saturating_sub(report.steps);
            let result = machine.run_schedule(plan, budget);
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
            notes.append(&mut machine.notes);
            influence.merge(&machine.influence);
            reached.iter_mut().zip(machine.blocks_entered(1)).for_each(|(known, now)| *known |= now);
            add_findings(&mut report.findings, &machine);
            // The contents stem from one schedule: a mixture of several shows no execution.
            if options.keep_final && order == 0 && result.is_ok() {
                report.final_buffers = machine.final_buffers();
            }
            if let (Some(claim), Ok(())) = (&claim, &result) {
                match violated_claim(module, options, claim, &machine.final_buffers()) {
                    Some(Ok(message)) => {
                        let found = GridFinding::new(FindingCause::BrokenClaim, message, Vec::new());
                        if !report.findings.iter().any(|known| known.kind == FindingKind::Assertion) {
                            report.findings.push(found);
                        }
                    }
                    Some(Err(element)) => {
                        let open = Problem::OpaqueClaim { element };
                        report.refusal = Some(open.located_at(SourcePosition::Module));
                    }
                    None => {}
                }
            }
            if result.is_ok() && order < COMPARED_SCHEDULES && copied <= MAX_COMPARED {
                let current_buffers = machine.final_buffers();
                match &first_contents {
                    Some(first) if report.order_dependent_element.is_none() => {
                        report.order_dependent_element =
                            differing_element(module, options, first, &current_buffers);
                    }
                    Some(_) => {}
                    None => first_contents = Some(current_buffers),
                }
            }
            if let Err(refusal) = result {
                if order > 0 && refusal.what.is_limit() {
                    // The schedule hit a limit and counts as not tried.
                    report.schedules -= 1;
                    break;
                }
                report.refusal = Some(refusal);
                break;
            }
            // Another schedule may show another defect.
            let enough = options.schedules.is_none() && !report.findings.is_empty();
            // The schedule may decide what a load reads that is stored, without influence on other code.
            let is_open = |buffer: &FinalBuffer| buffer.first_open_byte.is_some();
            let may_differ = order < STORED_LOAD_SCHEDULES
                && report.order_dependent_element.is_none()
                && first_contents.iter().flatten().any(is_open);
            // A walk that no schedule-dependent value influences covers all schedules.
            if !report.is_schedule_dependent && !may_differ || enough && order + 1 >= requested_schedules {
                break;
            }
        }
        // A requested number of schedules that was not reached is a refusal, not a pass.
        if let Some(asked) =
            options.schedules.filter(|asked| report.is_schedule_dependent && report.schedules < *asked)
            && report.findings.is_empty()
            && report.refusal.is_none()
        {
            let missed = Problem::TooFewSchedules { tried: report.schedules, asked };
            report.refusal = Some(missed.located_at(SourcePosition::Module));
        }
        if options.is_sampled && report.findings.is_empty() && report.refusal.is_none() {
            let bound = MAX_INVOCATIONS as usize;
            let missed = Problem::Invocations { bound, one_workgroup: false };
            report.refusal = Some(missed.located_at(SourcePosition::Module));
        }
        race_classes::classify_races(&mut report.findings);
        if report.findings.iter().any(|found| found.kind.is_race()) {
            report.findings.retain(|found| found.cause != FindingCause::StoredUnwritten);
        }
        report.verdict = match (report.findings.is_empty(), &report.refusal) {
            (false, _) => GridVerdict::Racy,
            (true, None) => GridVerdict::Clean,
            (true, Some(Refusal { what: Problem::OpaqueClaim { .. }, .. })) => GridVerdict::Undecided,
            (true, Some(refusal)) if refusal.what.is_limit() => GridVerdict::Undecided,
            (true, Some(refusal)) => return Err(refusal.clone()),
        };
        report.unreached = first.program.unreached_lines(&reached);
        report.blocked = trial::blocked_lines(first.program, &influence, &reached);
        report.reached = reached;
        report.has_unordered_interlock = first.setup.has_unordered_interlock();
        report.limits = notes.into_iter().map(CoverageLimit::Note).collect();
        if report.verdict == GridVerdict::Clean {
            report.limits.extend(unreached_limit(module, &report.unreached));
        }
        Ok(report)
    })
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
    claim: &question::Claim,
    buffers: &[FinalBuffer],
) -> Option<Result<String, String>> {
    let places: Vec<(u32, u32, u32, u64)> = claim
        .places
        .iter()
        .map(|((set, binding, element), offset, _)| (*set, *binding, *element, *offset))
        .collect();
    let names = entry_point::element_names(module, options, &places).unwrap_or_default();
    let mut values = Vec::with_capacity(claim.places.len());
    let mut value_texts = Vec::new();
    for (index, (at, offset, bytes)) in claim.places.iter().enumerate() {
        let name = names.get(index).cloned().unwrap_or_default();
        let end = *offset as usize + *bytes as usize;
        let contents = buffers.iter().find(|buffer| buffer.at == *at);
        let known = contents.filter(|buffer| buffer.first_unknown_byte.is_none_or(|unknown| end <= unknown));
        let Some(range) = known.and_then(|buffer| buffer.bytes.get(*offset as usize..end)) else {
            return Some(Err(name));
        };
        let value = range.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
        value_texts.push(format!("{name} is {value}"));
        values.push(value);
    }
    let text = &claim.text;
    (!claim.holds(&values))
        .then(|| Ok(format!("`{text}` does not hold in the final state: {}", value_texts.join(", "))))
}

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
        let names = entry_point::element_names(module, options, &[(set, binding, element, word as u64)]);
        let name = names.ok()?.pop()?;
        let (one, other) = (number(one), number(other));
        Some(format!(
            "the final value of `{name}` is {one} or {other}, depending on the order of atomics; \
             this is not a race"
        ))
    };
    first.iter().zip(now).find_map(differs)
}

fn add_findings(findings: &mut Vec<GridFinding>, machine: &Interpreter<'_>) {
    for found in &machine.findings {
        let spot = |(site, invocation, access): &(u32, InvocationId, Option<bool>)| {
            let (line, place) = machine.program.source_place(*site);
            GridSpot { line, place, invocation: *invocation, writes: *access }
        };
        let at: Vec<GridSpot> = found.at.iter().map(spot).collect();
        let lines = |at: &[GridSpot]| {
            // Schedules differ in where others stop while an invocation repeats its loop.
            let at =
                if found.cause.kind() == FindingKind::Hang { at.get(..1).unwrap_or_default() } else { at };
            let source_line = |spot: &GridSpot| machine.program.module.source_line(spot.line);
            let line = |spot: &GridSpot| match source_line(spot) {
                Some(source) if found.cause.kind() == FindingKind::Hang => {
                    (source.line, SourcePosition::Module)
                }
                _ => (spot.line, spot.place),
            };
            let mut lines: Vec<_> = at.iter().map(line).collect();
            // Another schedule may reach the same places in another order.
            lines.sort_unstable();
            lines
        };
        let kind = found.cause.kind();
        let is_equal = |cause| cause == FindingCause::EqualStores;
        let known = findings.iter().any(|known| {
            (known.kind, is_equal(known.cause)) == (kind, is_equal(found.cause))
                && lines(&known.at) == lines(&at)
        });
        if !known && findings.len() < MAX_FINDINGS {
            let mut sites: Vec<u32> = found.at.iter().map(|at| at.0).collect();
            sites.sort_unstable();
            let influence = &machine.influence;
            findings.push(GridFinding {
                inputs: influence.inputs_of(kind, found.inputs),
                control: influence.control_inputs(kind),
                blocks: sites.iter().filter_map(|site| machine.program.block_of(*site)).collect(),
                sites,
                element: found.element.clone(),
                ..GridFinding::new(found.cause, found.message.clone(), at)
            });
        }
    }
}

/// Returns the lines that no invocation reached as a limit.
pub(crate) fn unreached_limit(
    module: &SpirvModule,
    lines: &std::collections::BTreeSet<u32>,
) -> Option<CoverageLimit> {
    line_ranges(module, lines).map(CoverageLimit::Unreached)
}

/// Describes source lines as ranges, such as `lines 3-5, 9`.
pub(crate) fn line_ranges(module: &SpirvModule, lines: &std::collections::BTreeSet<u32>) -> Option<String> {
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
    Some(format!("line{} {ranges}{more}", if all.len() == 1 { "" } else { "s" }))
}
