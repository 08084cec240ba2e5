//! A larger launch for code that the chosen number or size of workgroups keeps from being reached.
//!
//! A probe ([`walk::probe_launch`]) tracks which branches the position in the grid decides, and the
//! numbers that it is compared with. These numbers determine the next launches, the smallest first. Of a launch that is
//! too large for a walk, the workgroups at both ends and at these numbers run. Code that stays unreached is reported with
//! the option that sets the launch.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::spirv::Op;
use spirv_reader::{CodePlace, SpirvModule, SpirvType};

use super::search::{InputSearch, reaches_new_block, rescale};
use super::{InputChoice, is_declared};
use crate::axes::{AxisUse, grid_axis, local_axis};
use entry_point::assumed::local_size_constants;
use entry_point::input_place::{AssumedInput, InputPlace, LaunchPart};
use entry_point::inputs::Sampler;
use entry_point::launch::{end_coordinates, positions_at};
use entry_point::layout::local_size_of;
use entry_point::{AnalysisOptions, FindingKind};
use walk::{
    Blocked, FindingKey, GridFinding, LaunchProbe, MAX_INVOCATIONS as MAX_WALK_INVOCATIONS, NeededInput,
    Trial, line_ranges, probe_launch,
};

/// Upper bounds on the running invocations of a chosen launch, on the steps of one probe, and of all probes.
const MAX_INVOCATIONS: u64 = 1 << 16;
const MAX_PROBE_STEPS: u64 = 4_000_000;
const MAX_STEPS: u64 = 15_000_000;
/// Upper bound on the launches that follow from one choice, each of which reaches further code.
const MAX_ROUNDS: usize = 4;
/// Upper bound on the launches that are tried in one round.
const MAX_CANDIDATES: usize = 10;
/// Upper bound on the launches of each kind that are tried for coinciding positions.
const MAX_WRAPPING_LAUNCHES: usize = 3;
/// Upper bound on the workgroups of an axis: the largest `maxComputeWorkGroupCount` of common devices. Every device has
/// 65,535.
const MAX_WORKGROUPS: u64 = (1 << 31) - 1;
/// Upper bound on the workgroups of an axis that keep running if a launch grows beyond what a walk runs.
const MAX_RUNNING_PER_AXIS: u32 = 64;
/// Upper bound on the numbers that are used at each end of those compared with.
const MAX_COMPARED_NUMBERS: usize = 4;
/// Workgroups after the first that satisfies a comparison: one for a strict comparison, and one that shares its code.
const EXTRA_WORKGROUPS: u64 = 3;
/// Factors for an axis on which a function of the position did not change.
const GROWTH_FACTORS: [u64; 2] = [8, 64];
/// Sizes of a workgroup along one axis, and along each of several.
const LINE_SIZES: [u64; 4] = [128, 256, 512, 1024];
const PLANE_SIZES: [u64; 2] = [16, 32];
/// Upper bound on the invocations of a workgroup, that of common devices.
const MAX_WORKGROUP_SIZE: u64 = 1024;

/// Code that the launch keeps from being reached.
#[derive(Clone, Debug)]
pub(super) struct LaunchLimit {
    pub blocked: Blocked,
    /// The part of the launch to supply.
    pub part: AssumedInput,
}

/// The results of a search for launches.
#[derive(Clone, Debug, Default)]
pub(super) struct LaunchFindings {
    /// The code that no launch reaches.
    pub limits: Vec<LaunchLimit>,
    /// A grid with races that the smaller ones lack: computations reduce its positions to the same result.
    pub wrapping_grid: Option<[u32; 3]>,
    /// A smaller grid than the chosen one, in which computations reduce no two positions to the same result.
    pub exact_grid: Option<[u32; 3]>,
    /// True if steps or time ended the search before it tried the larger grids.
    pub is_cut_off: bool,
}

/// Returns what to supply for the lines that `options` does not reach: each part of the launch once.
pub(super) fn needed_launch<'l>(
    limits: impl Iterator<Item = &'l LaunchLimit>,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Vec<NeededInput> {
    let mut parts: Vec<(&AssumedInput, BTreeSet<CodePlace>)> = Vec::new();
    for limit in limits {
        let lines = limit.blocked.lines.iter();
        match parts.iter_mut().find(|(part, _)| part.name == limit.part.name) {
            Some((_, known)) => known.extend(lines),
            None => parts.push((&limit.part, lines.copied().collect())),
        }
    }
    let needed = parts.into_iter().map(|(part, lines)| NeededInput {
        name: part.name.clone(),
        value: part.describe_value(options),
        option: part.example_option(&options.assumed),
        lines: line_ranges(module, &lines).unwrap_or_default(),
        place: lines.first().copied(),
        finding: None,
        is_contents: false,
    });
    needed.collect()
}

impl InputChoice {
    /// Returns the inputs that give workgroups another size than the declared one, if the first choice has that.
    pub(crate) fn other_sizes(&self, options: &AnalysisOptions) -> Vec<usize> {
        let Some(first) = self.choices.first() else { return Vec::new() };
        let is_other = |at: &usize| is_declared(first, *at) && !is_declared(options, *at);
        self.launch.size_inputs.iter().copied().filter(is_other).collect()
    }

    /// Returns true if a race exists only because of the chosen grid or local size.
    ///
    /// A smaller grid may lack it, because computations reduce positions of the chosen one to the same result. Or its
    /// invocations differ in axes that neither address depends on, and the kernel uses another axis: it may be meant
    /// for one workgroup in them.
    pub(crate) fn is_due_to_grid(&self, found: &GridFinding, options: &AnalysisOptions) -> bool {
        let wrapping = self.launch.found.wrapping_grid;
        if wrapping.is_some() && options.grid == wrapping && found.kind.is_race() {
            let key = found.finding_key();
            let mut smaller = self.trials.iter().filter(|(options, _)| options.grid != wrapping);
            return !smaller.any(|(_, trial)| trial.findings.contains_key(&key));
        }
        if let (Some(exact), Some(grid), [first, second]) =
            (self.launch.found.exact_grid, options.grid, &found.at[..])
            && found.kind.is_race()
            // One workgroup does not race with others. It may be meant only where positions meet in one instruction.
            && (exact != [1; 3] || found.sites.iter().all(|site| Some(site) == found.sites.first()))
        {
            let (first, second) = (first.invocation.workgroup, second.invocation.workgroup);
            let depends = |axis: usize| {
                let axes = grid_axis(axis) | local_axis(axis);
                found.sites.iter().all(|site| self.launch.axes.address_depends_on(*site, axes))
            };
            let is_reduced =
                |axis: usize| grid[axis] > exact[axis] && first[axis] != second[axis] && depends(axis);
            let key = found.finding_key();
            let in_exact = |(options, trial): &(AnalysisOptions, Trial)| {
                options.grid == Some(exact) && trial.findings.contains_key(&key)
            };
            if (0..3).any(is_reduced) && !self.trials.iter().any(in_exact) {
                return true;
            }
        }
        let ([first, second], true, Some(grid)) = (&found.at[..], found.kind.is_race(), options.grid) else {
            return false;
        };
        if !self.launch.is_grid_free {
            return false;
        }
        let (first, second) = (first.invocation, second.invocation);
        let mut axes = 0;
        let mut left = 0_u32;
        for (axis, count) in grid.into_iter().enumerate() {
            let is_local = first.local[axis] != second.local[axis];
            let is_global = first.workgroup[axis] != second.workgroup[axis];
            if is_local && !self.launch.local_axes[axis] {
                return false;
            }
            axes |= if is_local { local_axis(axis) } else { 0 };
            axes |= if is_global { grid_axis(axis) } else { 0 };
            left += u32::from(!is_local && !is_global && count > 1);
        }
        let depends = |site: &u32| self.launch.axes.address_depends_on(*site, axes);
        left > 0 && !found.sites.iter().any(depends)
    }
}

/// The launch as far as no option supplies it.
pub(super) struct MissingLaunch {
    pub parts: Vec<AssumedInput>,
    /// Invocations per workgroup.
    pub local_size: [u32; 3],
    /// True if a launch may be chosen.
    pub is_free: bool,
    /// True if the code has control barriers or subgroup operations.
    pub synchronizes: bool,
}

/// A search for launches, from the choices of a search for other inputs.
pub(super) struct LaunchSearch<'s, 'm> {
    pub search: &'s mut InputSearch<'m>,
    pub launch: &'s MissingLaunch,
    pub steps: u64,
    /// True if steps or time ended a trial.
    pub is_cut_off: bool,
}

impl LaunchSearch<'_, '_> {
    /// Adds choices with a larger launch.
    pub fn extend_choices(&mut self, choices: &mut Vec<usize>) -> LaunchFindings {
        let (mut limits, mut wrapping) = (Vec::new(), Vec::new());
        let mut covered: Vec<bool> = Vec::new();
        for at in choices.iter() {
            let reached = &self.search.trials[*at].1.reached;
            covered.resize(reached.len(), false);
            covered.iter_mut().zip(reached).for_each(|(known, now)| *known |= now);
        }
        for at in choices.clone() {
            let start = self.search.trials[at].0.clone();
            let (options, left, launches) = self.widen_launch(&start, &mut covered);
            limits.extend(left);
            wrapping.extend(launches);
            if options.grid != start.grid || options.specialization != start.specialization {
                choices.extend(self.search.try_with_steps(options, MAX_PROBE_STEPS));
            }
        }
        limits.retain(|limit| !limit.blocked.is_covered(&covered));
        let exact_grid = choices.first().and_then(|first| self.try_exact_grid(*first));
        let wrapping_grid = self.add_wrapping(wrapping, choices);
        let is_cut_off = self.is_cut_off && wrapping_grid.is_none();
        LaunchFindings { limits, wrapping_grid, exact_grid, is_cut_off }
    }

    /// Tries the grid in which no position of a choice exceeds the numbers that reduce it, if it is smaller.
    fn try_exact_grid(&mut self, choice: usize) -> Option<[u32; 3]> {
        let options = self.search.trials[choice].0.clone();
        let grid = options.grid.filter(|_| self.launch.is_free && options.workgroups.is_empty())?;
        let mut exact = grid;
        for (at, numbers) in self.run_probe(&options)?.reductions {
            let part = self.launch.parts.get(at).and_then(AssumedInput::launch_part)?;
            let Some(axis) = part.grid_axis() else { continue };
            let each = match part {
                LaunchPart::Workgroups(_) => 1,
                LaunchPart::Invocations(_) | LaunchPart::LocalSize(..) => {
                    u64::from(self.launch.local_size[axis])
                }
            };
            let counts = numbers.into_iter().map(|number| number.div_ceil(each.max(1)));
            let fewer = counts.filter(|count| *count > 0 && *count < u64::from(grid[axis])).max();
            exact[axis] = fewer.map_or(exact[axis], |fewer| exact[axis].min(fewer as u32));
        }
        let smaller = AnalysisOptions { grid: Some(exact), ..options };
        (exact != grid).then_some(())?;
        let at = self.search.try_with_steps(smaller, MAX_PROBE_STEPS)?;
        self.search.trials[at].1.is_complete.then_some(exact)
    }

    /// Adds a choice with larger workgroups that shows a race or a divergent barrier, if the code declares a size that a
    /// specialization constant changes.
    ///
    /// Other sizes than the declared one are those of other devices. A race that another input has part in does not count.
    pub fn add_larger_workgroups(&mut self, sizes: &[(u32, [bool; 3])], choices: &mut Vec<usize>) {
        let Some(base) = choices.first().copied() else { return };
        let (base_options, total) = (self.search.trials[base].0.clone(), self.search.workgroup_size);
        let declared = |(number, _): &&(u32, [bool; 3])| !base_options.specialization.contains_key(number);
        for (number, axes) in sizes.iter().filter(declared) {
            let Some(axis) = axes.iter().position(|axis| *axis) else { continue };
            let size = u64::from(self.launch.local_size[axis]);
            let count = axes.iter().filter(|axis| **axis).count() as u32;
            for larger in [2 * size, MAX_WORKGROUP_SIZE * size / total] {
                if total / size.pow(count) * larger.pow(count) > MAX_WORKGROUP_SIZE || larger <= size {
                    continue;
                }
                let mut options = base_options.clone();
                options.specialization.insert(*number, larger);
                let Some(at) = self.search.try_inputs(options) else { return };
                let trial = &self.search.trials[at].1;
                let is_size = |at: &usize| {
                    let input = base_options.assumed.get(*at);
                    input.is_some_and(|input| input.place == InputPlace::Constant(*number))
                };
                let is_new = |(key, found): (&FindingKey, &GridFinding)| {
                    let is_known = |at: &usize| self.search.trials[*at].1.has_finding_like(key);
                    (key.0.is_race() || key.0 == FindingKind::DivergentBarrier)
                        && found.inputs.iter().chain(&found.control).all(is_size)
                        && !choices.iter().any(is_known)
                };
                if trial.findings.iter().any(is_new) {
                    choices.push(at);
                    return;
                }
            }
        }
    }

    /// Lets those workgroups of a given grid run as well that the first choice compares positions with, or in which its
    /// computations reduce positions to the same result.
    pub fn extend_running(&mut self, choices: &mut [usize]) -> LaunchFindings {
        let Some(first) = choices.first_mut() else { return LaunchFindings::default() };
        let mut options = self.search.trials[*first].0.clone();
        if let Some(probe) = self.run_probe(&options) {
            let grid = options.grid.unwrap_or([1; 3]);
            let mut coordinates =
                [0, 1, 2].map(|axis: usize| options.workgroups.iter().map(|at| at[axis]).collect());
            for (at, numbers) in probe.compared.iter().chain(&probe.reductions) {
                let part = self.launch.parts.get(*at).and_then(AssumedInput::launch_part);
                let Some((part, axis)) = part.and_then(|part| Some((part, part.grid_axis()?))) else {
                    continue;
                };
                let end_positions = self.solved_values(part, axis, numbers);
                let last =
                    end_positions.into_iter().flat_map(|end| end.saturating_sub(EXTRA_WORKGROUPS)..end);
                let inside = last.filter_map(|at| u32::try_from(at).ok()).filter(|at| *at < grid[axis]);
                let all: &mut BTreeSet<u32> = &mut coordinates[axis];
                all.extend(inside);
            }
            options.workgroups = positions_at(&coordinates);
            let count = options.workgroups.len() as u64;
            if count.saturating_mul(self.search.workgroup_size) <= MAX_INVOCATIONS
                && let Some(trial_index) = self.search.try_with_steps(options, MAX_PROBE_STEPS)
            {
                *first = trial_index;
            }
        }
        LaunchFindings { is_cut_off: self.is_cut_off, ..LaunchFindings::default() }
    }

    /// Adds the first of some launches that shows a race which the choices lack, and returns its grid.
    fn add_wrapping(&mut self, launches: Vec<AnalysisOptions>, choices: &mut Vec<usize>) -> Option<[u32; 3]> {
        // A grid of which all workgroups run is easier to examine.
        let (whole, sampled): (Vec<_>, Vec<_>) =
            launches.into_iter().partition(|launch| launch.workgroups.is_empty());
        let sampled = sampled.into_iter().take(MAX_WRAPPING_LAUNCHES);
        for launch in whole.into_iter().take(MAX_WRAPPING_LAUNCHES).chain(sampled) {
            let (most, grid) = (self.remaining_steps()?, launch.grid?);
            let Some(at) = self.search.try_with_steps(launch, most) else { continue };
            let trial = &self.search.trials[at].1;
            self.steps += trial.steps.max(10_000);
            self.is_cut_off |= !trial.is_complete;
            let is_known =
                |key| choices.iter().any(|at| self.search.trials[*at].1.findings.contains_key(key));
            if trial.is_complete && trial.findings.keys().any(|key| key.0.is_race() && !is_known(key)) {
                choices.push(at);
                return Some(grid);
            }
        }
        None
    }

    /// Returns launches in which computations give several positions one result, the largest first.
    fn wrapping_launches(&self, options: &AnalysisOptions, probe: &LaunchProbe) -> Vec<AnalysisOptions> {
        let mut all: BTreeMap<u64, AnalysisOptions> = BTreeMap::new();
        for (at, numbers) in probe.reductions.iter().filter(|_| self.launch.is_free) {
            let Some(InputPlace::Launch(part)) = self.launch.parts.get(*at).map(|part| &part.place) else {
                continue;
            };
            let Some(axis) = part.grid_axis() else { continue };
            let current_count = u64::from(options.grid.unwrap_or([1; 3])[axis]);
            for value in
                self.solved_values(*part, axis, numbers).into_iter().filter(|value| *value > current_count)
            {
                if let Some(launch) = self.with_value(options, *part, value) {
                    all.entry(self.invocation_count(&launch)).or_insert(launch);
                }
            }
        }
        all.into_values().rev().collect()
    }

    /// Returns options with a launch that reaches more, what it does not reach, and the launches in which its positions
    /// may coincide.
    fn widen_launch(
        &mut self,
        start: &AnalysisOptions,
        covered: &mut [bool],
    ) -> (AnalysisOptions, Vec<LaunchLimit>, Vec<AnalysisOptions>) {
        let mut options = start.clone();
        let Some(mut probe) = self.run_probe(&options) else { return (options, Vec::new(), Vec::new()) };
        for _ in 0..MAX_ROUNDS {
            // Code without effects matters if it leads past a barrier or a subgroup operation.
            let is_relevant = |blocked: &&Blocked| {
                !blocked.is_covered(covered) && (self.launch.synchronizes || !blocked.lines.is_empty())
            };
            let open: Vec<Blocked> = probe.blocked.iter().filter(is_relevant).cloned().collect();
            let extended =
                self.candidate_launches(&options, &open, &probe.compared).into_iter().find_map(|launch| {
                    let next_probe = self.run_probe(&launch)?;
                    (next_probe.is_complete && reaches_new_block(&next_probe.reached, covered))
                        .then_some((launch, next_probe))
                });
            let next = extended.or_else(|| {
                let launch = self.shared_launch(&options, &probe)?;
                let next_probe = self.run_probe(&launch)?;
                // An outcome that one workgroup alone saw is now one of several.
                let is_shared = probe.single_workgroup_outcomes.keys().any(|outcome| {
                    next_probe.outcomes.contains(outcome)
                        && !next_probe.single_workgroup_outcomes.contains_key(outcome)
                });
                (next_probe.is_complete && is_shared).then_some((launch, next_probe))
            });
            let Some((launch, more)) = next else { break };
            covered.iter_mut().zip(&more.reached).for_each(|(known, now)| *known |= now);
            (options, probe) = (launch, more);
        }
        let with_effects = probe.blocked.iter().filter(|blocked| !blocked.lines.is_empty());
        let limits = with_effects.filter_map(|blocked| {
            let part = self.launch.parts.get(*blocked.inputs.first()?)?.clone();
            Some(LaunchLimit { blocked: blocked.clone(), part })
        });
        (options.clone(), limits.collect(), self.wrapping_launches(&options, &probe))
    }

    /// Returns the steps for the next walk, if any are left.
    fn remaining_steps(&mut self) -> Option<u64> {
        let most = MAX_PROBE_STEPS.min(MAX_STEPS.saturating_sub(self.steps));
        let is_over = most == 0 || self.search.is_past_deadline();
        self.is_cut_off |= is_over;
        Some(most).filter(|_| !is_over)
    }

    fn run_probe(&mut self, options: &AnalysisOptions) -> Option<LaunchProbe> {
        let most = self.remaining_steps()?;
        let options = AnalysisOptions { assumed: self.launch.parts.to_vec(), ..options.clone() };
        let probe = probe_launch(self.search.module, &options, most).ok()?;
        self.steps += probe.steps.max(10_000);
        Some(probe)
    }

    /// Returns launches that may reach blocked code, the smallest first.
    fn candidate_launches(
        &self,
        options: &AnalysisOptions,
        open: &[Blocked],
        compared: &BTreeMap<usize, BTreeSet<u64>>,
    ) -> Vec<AnalysisOptions> {
        let parts: BTreeSet<usize> = open.iter().flat_map(|blocked| blocked.inputs.iter().copied()).collect();
        let none = BTreeSet::new();
        let mut all: BTreeMap<(u64, u64, usize), AnalysisOptions> = BTreeMap::new();
        for at in parts.into_iter().filter(|_| self.launch.is_free) {
            let Some(InputPlace::Launch(part)) = self.launch.parts.get(at).map(|part| &part.place) else {
                continue;
            };
            let numbers = compared.get(&at).unwrap_or(&none);
            for value in self.candidate_values(*part, options, numbers) {
                if let Some(launch) = self.with_value(options, *part, value) {
                    all.entry((self.invocation_count(&launch), value, at)).or_insert(launch);
                }
            }
        }
        all.into_values().take(MAX_CANDIDATES).collect()
    }

    /// Returns values of a part of the launch that may change the outcome of a comparison with one of the numbers.
    fn candidate_values(
        &self,
        part: LaunchPart,
        options: &AnalysisOptions,
        numbers: &BTreeSet<u64>,
    ) -> Vec<u64> {
        let Some(axis) = part.grid_axis() else {
            let LaunchPart::LocalSize(_, axes) = part else { return Vec::new() };
            let has_several_axes = axes.iter().filter(|axis| **axis).count() > 1;
            return if has_several_axes { PLANE_SIZES.to_vec() } else { LINE_SIZES.to_vec() };
        };
        let current_count = u64::from(options.grid.unwrap_or([1; 3])[axis]);
        let mut all = self.solved_values(part, axis, numbers);
        all.extend(GROWTH_FACTORS.map(|factor| current_count * factor));
        all.into_iter().filter(|value| *value > current_count).collect()
    }

    /// Returns the numbers of workgroups along an axis with which positions go beyond the numbers.
    fn solved_values(&self, part: LaunchPart, axis: usize, numbers: &BTreeSet<u64>) -> BTreeSet<u64> {
        let extremes =
            numbers.iter().take(MAX_COMPARED_NUMBERS).chain(numbers.iter().rev().take(MAX_COMPARED_NUMBERS));
        let extremes = extremes.copied().filter(|number| *number <= u64::from(u32::MAX));
        let local = u64::from(self.launch.local_size[axis]).max(1);
        let by_workgroup = matches!(part, LaunchPart::Workgroups(_));
        extremes
            .flat_map(|number| {
                let workgroup_count = Some(number + EXTRA_WORKGROUPS).filter(|_| by_workgroup);
                workgroup_count.into_iter().chain([number / local + EXTRA_WORKGROUPS])
            })
            .collect()
    }

    /// Returns options with a value for a part of the launch, or none if more invocations would run than a walk can
    /// run.
    fn with_value(&self, options: &AnalysisOptions, part: LaunchPart, value: u64) -> Option<AnalysisOptions> {
        let mut launch = options.clone();
        match part {
            LaunchPart::Workgroups(axis) | LaunchPart::Invocations(axis) => {
                let mut grid = options.grid.unwrap_or([1; 3]);
                let local = u64::from(self.launch.local_size[axis]);
                let old = u64::from(grid[axis]) * local;
                // No device has more, and positions have 32 bits.
                if value > MAX_WORKGROUPS || value.saturating_mul(local) > 1 << 32 {
                    return None;
                }
                grid[axis] = u32::try_from(value).ok()?;
                launch.grid = Some(grid);
                if !options.workgroups.is_empty() || self.invocation_count(&launch) > MAX_INVOCATIONS {
                    launch.workgroups = running_workgroups(options, axis, grid[axis]);
                }
                // A count that was chosen for the smaller grid ends the added invocations.
                rescale(&mut launch, old, value.saturating_mul(local));
            }
            LaunchPart::LocalSize(id, _) => _ = launch.specialization.insert(id, value),
        }
        let running = match launch.workgroups.len() as u64 {
            0 => self.invocation_count(&launch),
            count => self.launch.local_size.iter().fold(count, |all, size| all * u64::from(*size)),
        };
        (running <= MAX_INVOCATIONS).then_some(launch)
    }

    fn invocation_count(&self, options: &AnalysisOptions) -> u64 {
        let grid = options.grid.unwrap_or([1; 3]);
        let sizes = grid.iter().chain(&self.launch.local_size);
        sizes.fold(1, |all: u64, size| all.saturating_mul(u64::from(*size)))
    }

    /// Returns a launch in which several workgroups may see the outcomes of branches that one saw alone.
    fn shared_launch(&self, options: &AnalysisOptions, probe: &LaunchProbe) -> Option<AnalysisOptions> {
        let grid = options.grid.filter(|_| self.launch.is_free)?;
        let parts = probe
            .single_workgroup_outcomes
            .values()
            .flatten()
            .filter_map(|at| self.launch.parts.get(*at)?.launch_part());
        let axes = parts.filter_map(LaunchPart::grid_axis);
        let axes: BTreeSet<usize> = axes.filter(|axis| grid[*axis] == 2).collect();
        let mut launch = options.clone();
        for axis in &axes {
            if !launch.workgroups.is_empty() {
                launch.workgroups = running_workgroups(&launch, *axis, grid[*axis] + 1);
            }
        }
        launch.grid = Some([0, 1, 2].map(|axis| grid[axis] + u32::from(axes.contains(&axis))));
        (!axes.is_empty()).then_some(launch)
    }
}

/// Returns the workgroups that run if the grid grows to `count` workgroups along an axis: those of the smaller grid, and
/// the last ones, which exceed a number by up to [`EXTRA_WORKGROUPS`].
fn running_workgroups(smaller: &AnalysisOptions, axis: usize, count: u32) -> Vec<[u32; 3]> {
    let old = smaller.grid.unwrap_or([1; 3]);
    let mut coordinates = [0, 1, 2].map(|axis: usize| match smaller.workgroups.is_empty() {
        true if old[axis] <= MAX_RUNNING_PER_AXIS => (0..old[axis]).collect(),
        true => end_coordinates(old[axis]),
        false => smaller.workgroups.iter().map(|position| position[axis]).collect::<BTreeSet<u32>>(),
    });
    coordinates[axis].extend(count.saturating_sub(EXTRA_WORKGROUPS as u32)..count);
    positions_at(&coordinates)
}

/// Adds a linear sampler for each sampler without one; returns false if none is missing.
pub(super) fn add_samplers(module: &SpirvModule, options: &mut AnalysisOptions) -> bool {
    let before = options.samplers.len();
    for (id, variable) in &module.variables {
        let own = module.decorations_of(*id);
        let ty = module.element_type(variable.ty);
        let is_sampler =
            matches!(module.types.get(&ty), Some(SpirvType::Handle(Op::TypeSampledImage | Op::TypeSampler)));
        if let (true, Some(binding), Some(linear)) = (is_sampler, own.binding, Sampler::parse("linear")) {
            options.samplers.entry((own.set.unwrap_or(0), binding)).or_insert(linear);
        }
    }
    options.samplers.len() > before
}

/// Returns the workgroups that run: those at both ends of each axis, if the grid is too large for a walk.
///
/// An assertion is about the contents that the whole grid leaves.
pub(super) fn large_grid_workgroups(start: &AnalysisOptions, local: u32) -> Vec<[u32; 3]> {
    let grid = start.grid.unwrap_or([1; 3]);
    let all = grid.iter().fold(u64::from(local), |all, count| all.saturating_mul(u64::from(*count)));
    match all > MAX_WALK_INVOCATIONS && start.workgroups.is_empty() && start.assertion.is_none() {
        true => positions_at(&grid.map(end_coordinates)),
        false => start.workgroups.clone(),
    }
}

/// Chooses local size and grid: at least two workgroups in each axis that the code uses.
///
/// A local size whose default has more than one invocation is the author's and stays. Returns the axes of the
/// workgroup whose size was chosen.
pub(super) fn choose_launch(
    module: &SpirvModule,
    options: &AnalysisOptions,
    function: u32,
    axes: &AxisUse,
    start: &mut AnalysisOptions,
) -> [bool; 3] {
    let mut constants = local_size_constants(module, options, function);
    let default = local_size_of(module, &options.specialization, &Default::default(), function);
    if default.is_ok_and(|size| size.iter().product::<u32>() > 1) {
        constants.clear();
    }
    let local = axes.local_axes();
    let is_used = |of: &[bool; 3]| of.iter().zip(local).any(|(own, used)| *own && used);
    let any_used = constants.iter().any(|(_, of)| is_used(of));
    // An axis that the code does not use needs one invocation, unless the constants decide no other
    // axis.
    constants.retain(|(_, of)| is_used(of) || !any_used);
    let count = constants.iter().flat_map(|(_, of)| of).filter(|axis| **axis).count();
    let mut chosen = [false; 3];
    for (id, of) in constants {
        // About 64 invocations, whatever the number of axes.
        let value = match count {
            1 => 64,
            2 => 8,
            _ => 4,
        };
        start.specialization.insert(id, value);
        chosen.iter_mut().zip(of).for_each(|(chosen, own)| *chosen |= own);
    }
    let used = axes.grid_axes();
    if used.contains(&true) {
        start.grid = Some(used.map(|used| if used { 2 } else { 1 }));
    }
    chosen
}
