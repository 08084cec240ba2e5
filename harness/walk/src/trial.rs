//! One walk in one schedule, to learn what chosen inputs reach.

use std::collections::{BTreeMap, BTreeSet};

use arithmetic::Instruction;
use rspirv::spirv::Op;
use spirv_reader::{CodePlace, SpirvModule, SpirvOperation};

use entry_point::dataflow::is_ordering;
use entry_point::input_place::{OverrideRole, OverrideValue};
use entry_point::{AnalysisOptions, FindingCause, FindingKind, Refusal};

use super::implicit_flow::JoinedCondition;
use super::influence::InputInfluence;
use super::program::DecodedProgram;
use super::report::{Blocked, ExceededSize, FindingKey, GridFinding};
use super::schedule::SchedulePolicy;
use super::setup;
use super::state::{Interpreter, SiteFinding};
use super::value::{Taint, inputs_in};

/// The blocks that a walk with certain inputs reached, and its findings.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The blocks that were reached, by the number of their label instruction.
    pub reached: Vec<bool>,
    /// Number of instructions in them whose effects others can observe.
    pub effects: usize,
    /// Entries of each block; 255 and more are one.
    pub entries: Vec<u8>,
    /// True for the blocks that several invocations entered.
    pub is_shared: Vec<bool>,
    /// The invocation that entered each block first, plus one.
    first_invocations: Vec<u32>,
    /// The code that one invocation alone reaches, because inputs bound the positions of the others.
    pub alone: Vec<Blocked>,
    /// The code that one invocation alone reaches behind another comparison with inputs.
    pub alone_by_equality: Vec<Blocked>,
    /// The inputs that decide a branch together with a value that the schedule decides, such as a counter.
    pub synchronizing: Vec<usize>,
    /// The inputs that decide branches, addresses or operands.
    pub influential: BTreeSet<usize>,
    /// The findings, with what each depends on.
    pub findings: BTreeMap<FindingKey, GridFinding>,
    /// The inputs that keep lines from being reached, with these lines.
    pub blocked: Vec<Blocked>,
    /// The numbers that each input is compared with.
    pub compared: BTreeMap<usize, BTreeSet<u64>>,
    /// The inputs that decide branches, by site.
    pub branches: BTreeMap<u32, Vec<usize>>,
    /// False if a limit ended the walk.
    pub is_complete: bool,
    /// The buffers and images accessed beyond their assumed size.
    pub exceeded: Vec<ExceededSize>,
    /// Number of steps.
    pub steps: u64,
}

impl Trial {
    /// Returns the number of reached blocks.
    pub fn coverage(&self) -> usize {
        self.reached.iter().filter(|reached| **reached).count()
    }

    /// Returns true if the blocks of a finding were entered: by two invocations if it needs two.
    pub fn covers(&self, kind: FindingKind, blocks: &[u32]) -> bool {
        let first = |block: &u32| self.first_invocations.get(*block as usize);
        let is_shared = |block: &u32| self.is_shared.get(*block as usize) == Some(&true);
        let by_two = || {
            let firsts = || blocks.iter().map(first);
            blocks.iter().any(is_shared) || firsts().any(|other| Some(other) != firsts().next())
        };
        self.fewest_entries(blocks) > 0 && (!kind.is_race() || by_two())
    }

    /// Returns the entries of the block that was entered least often.
    pub fn fewest_entries(&self, blocks: &[u32]) -> u8 {
        let entries = |block: &u32| self.entries.get(*block as usize).copied().unwrap_or_default();
        blocks.iter().map(entries).min().unwrap_or(u8::MAX)
    }

    /// Returns the numbers of blocks that several invocations entered, and that were entered more than once.
    pub fn repeated_blocks(&self) -> (usize, usize) {
        let shared = self.is_shared.iter().filter(|is_shared| **is_shared).count();
        (shared, self.entries.iter().filter(|entries| **entries > 1).count())
    }

    /// Returns true if an input is a bound beyond all numbers that it is compared with.
    ///
    /// Such a count lets every invocation pass, and the elements behind those of the grid are accessed by none.
    pub fn is_beyond_positions(&self, input: usize, number: u64) -> bool {
        let last = self.compared.get(&input).and_then(|numbers| numbers.iter().next_back());
        let decides = || self.branches.values().any(|inputs| inputs.contains(&input));
        last.is_some_and(|last| number > last.saturating_add(1)) && decides()
    }

    /// Returns true if the walk has this finding, or a race of one of its accesses with another one.
    pub fn has_finding_like(&self, key: &FindingKey) -> bool {
        let shares_access = |other: &FindingKey| {
            other.0 == FindingKind::Race
                && other.0 == key.0
                && other.1.iter().any(|site| key.1.contains(site))
        };
        self.findings.contains_key(key) || self.findings.keys().any(shares_access)
    }

    /// Returns true if accesses lie beyond a buffer, so that they race with none.
    pub fn drops_accesses(&self) -> bool {
        !self.exceeded.is_empty() || self.findings.keys().any(|key| key.0 == FindingKind::OutOfBounds)
    }

    /// Returns the findings that another choice of inputs may not have.
    pub fn suspicious_findings(&self) -> impl Iterator<Item = &GridFinding> {
        self.findings.values().filter(|found| !found.inputs.is_empty() || !found.control.is_empty())
    }
}

/// Description of a store whose number was computed from memory that no invocation has written.
///
/// Not reported where invocations race: a missing barrier lets one read before another writes.
pub(crate) const STORED_UNWRITTEN: &str =
    "a stored number is computed from workgroup memory that no invocation has written";

/// Returns the inputs that keep lines from being reached.
pub(super) fn blocked_lines(
    program: &DecodedProgram<'_>,
    influence: &InputInfluence,
    reached: &[bool],
) -> Vec<Blocked> {
    let unreached = program.unreached_lines(reached);
    let blocked = |(site, taint): (&u32, &Taint)| {
        let skipped = program.skipped_by_branch(*site, reached);
        let (blocks, targets) = (skipped.blocks, skipped.targets);
        let mut lines = skipped.lines;
        lines.retain(|line| unreached.contains(line));
        // A statement may be on the line of its condition.
        if lines.is_empty() {
            lines = skipped.effects;
        }
        let inputs = inputs_in(*taint, influence.count);
        (!lines.is_empty()).then_some(Blocked { inputs, lines, blocks, targets })
    };
    let mut all: Vec<Blocked> = influence.branches.iter().filter_map(blocked).collect();
    all.extend(implicitly_blocked(program, influence, reached, &all));
    let is_value = |(_, value): &&(usize, OverrideValue)| value.role != OverrideRole::Definition;
    let overrides: Vec<usize> =
        influence.overrides.iter().filter(is_value).map(|(index, _)| *index).collect();
    if overrides.is_empty() {
        return all;
    }
    // No branch on an override is left, so each other line may be unreached because of it.
    let mut lines: BTreeSet<CodePlace> =
        unreached.into_iter().filter(|line| !all.iter().any(|one| one.lines.contains(line))).collect();
    let mut blocks = program.blocks_with_lines(&lines);
    // A statement may be on the line of its condition.
    for (block, line) in program.unreached_effects(reached) {
        if !all.iter().any(|one| one.blocks.contains(&block)) {
            lines.insert(line);
            blocks.insert(block);
        }
    }
    if !lines.is_empty() {
        all.push(Blocked { inputs: overrides, lines, targets: blocks.clone(), blocks });
    }
    all
}

/// Returns the code that one invocation alone reaches behind a branch of several: where the branch compares inputs by
/// order, and elsewhere.
fn lines_of_one_invocation(
    program: &DecodedProgram<'_>,
    influence: &InputInfluence,
    is_shared: &[bool],
    reached: &[bool],
) -> [Vec<Blocked>; 2] {
    let is_in = |all: &[bool], block: &u32| all.get(*block as usize).copied().unwrap_or_default();
    let alone = |(site, taint): (&u32, &Taint)| {
        let of_several = program.block_of(*site).is_some_and(|block| is_in(is_shared, &block));
        if !of_several {
            return None;
        }
        let mut skipped = program.skipped_by_branch(*site, is_shared);
        // A side that no invocation takes is not reached.
        skipped.targets.retain(|block| is_in(reached, block));
        let blocked = Blocked {
            inputs: inputs_in(*taint, influence.count),
            lines: skipped.effects,
            blocks: skipped.blocks,
            targets: skipped.targets,
        };
        let is_alone = !blocked.targets.is_empty() && !blocked.lines.is_empty();
        is_alone.then(|| (compares_order(program, *site), blocked))
    };
    let (by_order, others): (Vec<_>, Vec<_>) =
        influence.branches.iter().filter_map(alone).partition(|(is_by_order, _)| *is_by_order);
    [by_order, others].map(|all| all.into_iter().map(|(_, blocked)| blocked).collect())
}

/// Returns true if the condition of a branch consists of comparisons by order.
fn compares_order(program: &DecodedProgram<'_>, site: u32) -> bool {
    let branch = program.instruction_at(site).map(|inst| inst.operation);
    let (Some(function), Some(SpirvOperation::BranchConditional { condition, .. })) =
        (program.function_of(site), branch)
    else {
        return false;
    };
    let (mut worklist, mut seen) = (vec![condition], BTreeSet::new());
    let mut is_ordered = false;
    while let Some(id) = worklist.pop() {
        if !seen.insert(id) || program.module.constants.contains_key(&id) {
            continue;
        }
        match function.code.iter().find(|inst| inst.raw.result == id).map(|inst| inst.operation) {
            Some(SpirvOperation::Phi { sources }) => worklist.extend(sources.iter().map(|[value, _]| *value)),
            Some(SpirvOperation::Compute { instruction: Instruction::Core(op), operands }) => match op {
                Op::LogicalAnd | Op::LogicalOr | Op::LogicalNot | Op::Any | Op::All => {
                    worklist.extend(operands);
                }
                _ if is_ordering(op) => is_ordered = true,
                _ => return false,
            },
            _ => return false,
        }
    }
    is_ordered
}

/// Returns the code that no input keeps from being reached by an explicit flow, but one may by an implicit flow.
fn implicitly_blocked(
    program: &DecodedProgram<'_>,
    influence: &InputInfluence,
    reached: &[bool],
    known: &[Blocked],
) -> Vec<Blocked> {
    let known: BTreeSet<u32> = known.iter().flat_map(|blocked| blocked.blocks.iter().copied()).collect();
    let taint_of = |is_deciding: &dyn Fn(u32) -> bool| {
        let deciding = influence.branches.iter().filter(|(site, _)| is_deciding(**site));
        deciding.fold(0, |all, (_, taint)| all | taint)
    };
    let is_one_sided = |site: u32| !program.skipped_by_branch(site, reached).blocks.is_empty();
    let blocked = |joined: JoinedCondition| {
        let JoinedCondition { blocks, lines, branches, is_open } = joined;
        let taint = taint_of(&|site| branches.contains(&site) || is_open && is_one_sided(site));
        let inputs = inputs_in(taint, influence.count);
        (taint != 0).then(|| Blocked { inputs, lines, targets: blocks.clone(), blocks })
    };
    program.skipped_by_joined_values(reached, &known).into_iter().filter_map(blocked).collect()
}

/// The influence of the launch on one walk.
#[derive(Clone, Debug)]
pub struct LaunchProbe {
    /// The blocks that were reached, by the number of their label instruction.
    pub reached: Vec<bool>,
    /// The blocks that parts of the launch keep from being reached, each with the lines of its effects.
    pub blocked: Vec<Blocked>,
    /// The numbers that each part is compared with.
    pub compared: BTreeMap<usize, BTreeSet<u64>>,
    /// The numbers by which computations and selections reduce positions of each part.
    pub reductions: BTreeMap<usize, BTreeSet<u64>>,
    /// The outcomes of branches, by site.
    pub outcomes: BTreeSet<(u32, bool)>,
    /// The outcomes that one workgroup alone saw, with the parts that decide them.
    pub single_workgroup_outcomes: BTreeMap<(u32, bool), Vec<usize>>,
    /// False if a limit ended the walk.
    pub is_complete: bool,
    /// Number of steps.
    pub steps: u64,
}

/// Walks a kernel in one schedule, with at most `most` steps; `summarize` gets true if the walk reached
/// its end.
///
/// A walk that a limit ended still shows what its inputs reach.
fn walk_once<T>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
    summarize: impl FnOnce(Interpreter<'_>, bool) -> T,
) -> Result<T, Refusal> {
    walk_prepared(module, options, most, |_| {}, summarize)
}

/// As [`walk_once`], after `prepare` has changed the state before the first step.
pub(super) fn walk_prepared<T>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
    prepare: impl FnOnce(&mut Interpreter<'_>),
    summarize: impl FnOnce(Interpreter<'_>, bool) -> T,
) -> Result<T, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    setup::with_interpreter(module, options, entry, |first| {
        let mut machine: Interpreter<'_> = first.clone();
        machine.influence.records_numbers = true;
        prepare(&mut machine);
        match machine.run_schedule(SchedulePolicy::Forward, most) {
            Err(refusal) if !refusal.what.is_limit() => Err(refusal),
            walked => Ok(summarize(machine, walked.is_ok())),
        }
    })
}

/// Walks a kernel once, with at most `most` steps, to learn what the parts of the launch in `options.assumed` decide.
///
/// # Errors
/// See [`super::analyze_grid`]; limits are not errors.
pub fn probe_launch(
    module: &SpirvModule,
    options: &AnalysisOptions,
    most: u64,
) -> Result<LaunchProbe, Refusal> {
    walk_once(module, options, most, |machine, is_complete| {
        let (program, influence) = (machine.program, &machine.influence);
        let parts = |taint: Taint| inputs_in(taint, influence.count);
        let reached = machine.blocks_entered(1);
        let blocked = |(site, taint): (&u32, &Taint)| {
            let skipped = program.skipped_by_branch(*site, &reached);
            let is_one_sided = !skipped.blocks.is_empty();
            is_one_sided.then(|| Blocked {
                inputs: parts(*taint),
                lines: skipped.effects,
                blocks: skipped.blocks,
                targets: skipped.targets,
            })
        };
        let alone = influence.outcomes.iter().filter(|(_, (_, others))| !others).map(|(at, _)| {
            let taint = influence.branches.get(&at.0).copied().unwrap_or_default();
            (*at, parts(taint))
        });
        // A branch that skips code without effects selects a value, such as a place.
        let mut reductions = influence.reductions.clone();
        for (site, taint) in &influence.branches {
            let skipped = program.skipped_by_branch(*site, &reached);
            if !skipped.blocks.is_empty() && skipped.effects.is_empty() && !skipped.has_return {
                for part in parts(*taint) {
                    let numbers = influence.compared.get(&part).into_iter().flatten();
                    reductions.entry(part).or_default().extend(numbers);
                }
            }
        }
        let mut all: Vec<Blocked> = influence.branches.iter().filter_map(blocked).collect();
        all.extend(implicitly_blocked(program, influence, &reached, &all));
        LaunchProbe {
            blocked: all,
            compared: influence.compared.clone(),
            reductions,
            outcomes: influence.outcomes.keys().copied().collect(),
            single_workgroup_outcomes: alone.collect(),
            is_complete,
            steps: machine.steps,
            reached,
        }
    })
}

/// Walks a kernel once, with at most `most` steps.
///
/// # Errors
/// See [`super::analyze_grid`]; limits are not errors.
pub fn run_trial(module: &SpirvModule, options: &AnalysisOptions, most: u64) -> Result<Trial, Refusal> {
    walk_once(module, options, most, |machine, is_complete| {
        let mut findings: BTreeMap<FindingKey, GridFinding> = BTreeMap::new();
        let influence = &machine.influence;
        let has_race = machine.findings.iter().any(|found| found.cause.kind().is_race());
        let is_secondary = |found: &&SiteFinding| !(has_race && found.cause == FindingCause::StoredUnwritten);
        for found in machine.findings.iter().filter(is_secondary) {
            let mut finding = machine.to_grid_finding(found);
            if let Some(known) = findings.remove(&finding.finding_key()) {
                finding.inputs.splice(..0, known.inputs);
                finding.has_read |= known.has_read;
                finding.is_keyed |= known.is_keyed;
            }
            findings.insert(finding.finding_key(), finding);
        }
        let reached = machine.blocks_entered(1);
        let mut exceeded = Vec::new();
        machine.add_exceeded(module, &mut exceeded);
        let deciding = influence.branches.values().chain(influence.sites.values());
        let influential = deciding.fold(0, |all, taint| all | taint);
        let shared = &machine.block_entries.is_shared;
        let [alone, alone_by_equality] =
            lines_of_one_invocation(machine.program, influence, shared, &reached);
        Trial {
            blocked: blocked_lines(machine.program, influence, &reached),
            alone,
            alone_by_equality,
            synchronizing: inputs_in(influence.synchronization, influence.count),
            influential: inputs_in(influential, influence.count).into_iter().collect(),
            findings,
            compared: influence.compared.clone(),
            branches: influence
                .branches
                .iter()
                .map(|(site, taint)| (*site, inputs_in(*taint, influence.count)))
                .collect(),
            is_complete,
            exceeded,
            effects: machine.program.count_reached_effects(&reached),
            steps: machine.steps,
            is_shared: machine.block_entries.is_shared,
            first_invocations: machine.block_entries.first,
            entries: machine.block_entries.counts,
            reached,
        }
    })
}
