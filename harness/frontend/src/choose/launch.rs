//! A larger launch for code that the chosen number or size of workgroups keeps from being reached.
//!
//! A probe ([`crate::grid::probe_launch`]) tracks which branches the position in the grid decides, and the
//! numbers that it is compared with. These numbers determine the next launches, the smallest first. Code that
//! stays unreached is reported with the option that sets the launch.

use std::collections::{BTreeMap, BTreeSet};

use spirv_reader::SpirvModule;

use super::search::{InputSearch, adds, rescale};
use crate::grid::{Blocked, LaunchProbe, NeededInput, line_ranges, probe_launch};
use crate::input_place::{AssumedInput, InputPlace};
use crate::launch_part::LaunchPart;
use crate::options::AnalysisOptions;

/// Upper bounds on the invocations of a chosen launch, on the steps of one probe, and of all probes.
const MAX_INVOCATIONS: u64 = 1 << 16;
const MAX_PROBE_STEPS: u64 = 4_000_000;
const MAX_STEPS: u64 = 15_000_000;
/// Upper bound on the launches that follow from one choice, each of which reaches further code.
const MAX_ROUNDS: usize = 4;
/// Upper bound on the launches that are tried in one round.
const MAX_CANDIDATES: usize = 10;
/// Upper bound on the launches that are tried for coinciding positions.
const MAX_WRAPPING: usize = 3;
/// Upper bound on the numbers that are used at each end of those compared with.
const MAX_NUMBERS: usize = 4;
/// Workgroups behind the first one that meets a comparison: the next meets a strict one, and another shares its code.
const MORE: u64 = 3;
/// Factors for an axis on which a function of the position did not change.
const GROWTH: [u64; 2] = [8, 64];
/// Sizes of a workgroup along one axis, and along each of several.
const LINE_SIZES: [u64; 4] = [128, 256, 512, 1024];
const PLANE_SIZES: [u64; 2] = [16, 32];

/// Code that the launch keeps from being reached.
#[derive(Clone, Debug)]
pub(super) struct LaunchLimit {
    pub blocked: Blocked,
    /// The part of the launch to supply.
    pub part: AssumedInput,
    /// The grid that may reach it, if the position is compared with a number.
    pub grid: Option<[u64; 3]>,
}

/// The results of a search for launches.
#[derive(Clone, Debug, Default)]
pub(super) struct LaunchFindings {
    /// The code that no launch reaches.
    pub limits: Vec<LaunchLimit>,
    /// A grid with races that the smaller ones lack: computations reduce its positions to the same result.
    pub wrapping_grid: Option<[u32; 3]>,
}

/// Returns what to supply for the lines that `options` does not reach: each part of the launch once.
pub(super) fn needed_launch<'l>(
    limits: impl Iterator<Item = &'l LaunchLimit>,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Vec<NeededInput> {
    let mut parts: Vec<(&AssumedInput, [u64; 3], BTreeSet<u32>)> = Vec::new();
    let assumed = options.grid.unwrap_or([1; 3]).map(u64::from);
    for limit in limits {
        let at = parts.iter().position(|(part, ..)| part.name == limit.part.name).unwrap_or(parts.len());
        if at == parts.len() {
            parts.push((&limit.part, assumed, BTreeSet::new()));
        }
        let (_, grid, lines) = &mut parts[at];
        let wanted = limit.grid.unwrap_or(assumed);
        grid.iter_mut().zip(wanted).for_each(|(known, wanted)| *known = wanted.max(*known));
        lines.extend(&limit.blocked.lines);
    }
    let needed = parts.into_iter().map(|(part, grid, lines)| NeededInput {
        name: part.name.clone(),
        value: part.value(options),
        // The assumed grid is large enough for the comparisons, so that other numbers decide too.
        option: match grid == assumed {
            true => part.option(),
            false => format!("--grid {},{},{}", grid[0], grid[1], grid[2]),
        },
        lines: line_ranges(module, &lines).unwrap_or_else(|| "code without line numbers".to_owned()),
        is_contents: false,
    });
    needed.collect()
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
            let (options, left, launches) = self.widen(&start, &mut covered);
            limits.extend(left);
            wrapping.extend(launches);
            if options.grid != start.grid || options.specialization != start.specialization {
                choices.extend(self.search.try_within(options, MAX_PROBE_STEPS));
            }
        }
        limits.retain(|limit| !limit.blocked.is_covered(&covered));
        LaunchFindings { limits, wrapping_grid: self.add_wrapping(wrapping, choices) }
    }

    /// Adds the first of some launches that shows a race which the choices lack, and returns its grid.
    fn add_wrapping(&mut self, launches: Vec<AnalysisOptions>, choices: &mut Vec<usize>) -> Option<[u32; 3]> {
        for launch in launches.into_iter().take(MAX_WRAPPING) {
            let most = MAX_PROBE_STEPS.min(MAX_STEPS.saturating_sub(self.steps));
            let grid = launch.grid.filter(|_| most > 0 && !self.search.is_late())?;
            let Some(at) = self.search.try_within(launch, most) else { continue };
            let trial = &self.search.trials[at].1;
            self.steps += trial.steps.max(10_000);
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
            let now = u64::from(options.grid.unwrap_or([1; 3])[axis]);
            for value in self.solved_values(*part, axis, numbers).into_iter().filter(|value| *value > now) {
                let launch = self.with_value(options, *part, value);
                all.entry(self.invocation_count(&launch)).or_insert(launch);
            }
        }
        let fitting = all.into_iter().rev().filter(|(count, _)| *count <= MAX_INVOCATIONS);
        fitting.map(|(_, launch)| launch).collect()
    }

    /// Returns options with a launch that reaches more, what it does not reach, and the launches in which its positions
    /// may coincide.
    fn widen(
        &mut self,
        start: &AnalysisOptions,
        covered: &mut [bool],
    ) -> (AnalysisOptions, Vec<LaunchLimit>, Vec<AnalysisOptions>) {
        let mut options = start.clone();
        let Some(mut probe) = self.probe(&options) else { return (options, Vec::new(), Vec::new()) };
        for _ in 0..MAX_ROUNDS {
            // Code without effects matters if it leads past a barrier or a subgroup operation.
            let is_relevant = |blocked: &&Blocked| {
                !blocked.is_covered(covered) && (self.launch.synchronizes || !blocked.lines.is_empty())
            };
            let open: Vec<Blocked> = probe.blocked.iter().filter(is_relevant).cloned().collect();
            let adding = self.launches(&options, &open, &probe.compared).into_iter().find_map(|launch| {
                let more = self.probe(&launch)?;
                (more.is_complete && adds(&more.reached, covered)).then_some((launch, more))
            });
            let next = adding.or_else(|| {
                let launch = self.shared_launch(&options, &probe)?;
                let more = self.probe(&launch)?;
                // An outcome that one workgroup alone saw is now one of several.
                let is_shared = probe
                    .alone
                    .keys()
                    .any(|outcome| more.outcomes.contains(outcome) && !more.alone.contains_key(outcome));
                (more.is_complete && is_shared).then_some((launch, more))
            });
            let Some((launch, more)) = next else { break };
            covered.iter_mut().zip(&more.reached).for_each(|(known, now)| *known |= now);
            (options, probe) = (launch, more);
        }
        let with_effects = probe.blocked.iter().filter(|blocked| !blocked.lines.is_empty());
        let limits = with_effects.filter_map(|blocked| self.limit(&options, blocked, &probe.compared));
        (options.clone(), limits.collect(), self.wrapping_launches(&options, &probe))
    }

    fn probe(&mut self, options: &AnalysisOptions) -> Option<LaunchProbe> {
        let most = MAX_PROBE_STEPS.min(MAX_STEPS.saturating_sub(self.steps));
        if most == 0 || self.search.is_late() {
            return None;
        }
        let options = AnalysisOptions { assumed: self.launch.parts.to_vec(), ..options.clone() };
        let probe = probe_launch(self.search.module, &options, most).ok()?;
        self.steps += probe.steps.max(10_000);
        Some(probe)
    }

    /// Returns launches that may reach blocked code, the smallest first.
    fn launches(
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
            for value in self.values(*part, options, numbers) {
                let launch = self.with_value(options, *part, value);
                let count = self.invocation_count(&launch);
                if count <= MAX_INVOCATIONS {
                    all.entry((count, value, at)).or_insert(launch);
                }
            }
        }
        all.into_values().take(MAX_CANDIDATES).collect()
    }

    /// Returns values of a part of the launch that may change the outcome of a comparison with one of the numbers.
    fn values(&self, part: LaunchPart, options: &AnalysisOptions, numbers: &BTreeSet<u64>) -> Vec<u64> {
        let Some(axis) = part.grid_axis() else {
            let LaunchPart::LocalSize(_, axes) = part else { return Vec::new() };
            let several = axes.iter().filter(|axis| **axis).count() > 1;
            return if several { PLANE_SIZES.to_vec() } else { LINE_SIZES.to_vec() };
        };
        let now = u64::from(options.grid.unwrap_or([1; 3])[axis]);
        let mut all = self.solved_values(part, axis, numbers);
        all.extend(GROWTH.map(|factor| now * factor));
        all.into_iter().filter(|value| *value > now).collect()
    }

    /// Returns the numbers of workgroups along an axis with which positions go beyond the numbers.
    fn solved_values(&self, part: LaunchPart, axis: usize, numbers: &BTreeSet<u64>) -> BTreeSet<u64> {
        let ends = numbers.iter().take(MAX_NUMBERS).chain(numbers.iter().rev().take(MAX_NUMBERS));
        let ends = ends.copied().filter(|number| *number <= u64::from(u32::MAX));
        let local = u64::from(self.launch.local_size[axis]).max(1);
        let by_workgroup = matches!(part, LaunchPart::Workgroups(_));
        ends.flat_map(|number| {
            let whole = Some(number + MORE).filter(|_| by_workgroup);
            whole.into_iter().chain([number / local + MORE])
        })
        .collect()
    }

    fn with_value(&self, options: &AnalysisOptions, part: LaunchPart, value: u64) -> AnalysisOptions {
        let mut launch = options.clone();
        match part {
            LaunchPart::Workgroups(axis) | LaunchPart::Invocations(axis) => {
                let mut grid = options.grid.unwrap_or([1; 3]);
                let local = u64::from(self.launch.local_size[axis]);
                let old = u64::from(grid[axis]) * local;
                grid[axis] = u32::try_from(value).unwrap_or(u32::MAX);
                launch.grid = Some(grid);
                // A count that was chosen for the smaller grid ends the added invocations.
                rescale(&mut launch, old, value.saturating_mul(local));
            }
            LaunchPart::LocalSize(id, _) => _ = launch.specialization.insert(id, value),
        }
        launch
    }

    fn invocation_count(&self, options: &AnalysisOptions) -> u64 {
        let grid = options.grid.unwrap_or([1; 3]);
        let sizes = grid.iter().chain(&self.launch.local_size);
        sizes.fold(1, |all: u64, size| all.saturating_mul(u64::from(*size)))
    }

    /// Returns a launch in which several workgroups may see the outcomes of branches that one saw alone.
    fn shared_launch(&self, options: &AnalysisOptions, probe: &LaunchProbe) -> Option<AnalysisOptions> {
        let grid = options.grid.filter(|_| self.launch.is_free)?;
        let parts = probe.alone.values().flatten().filter_map(|at| self.launch.parts.get(*at)?.launch_part());
        let axes = parts.filter_map(LaunchPart::grid_axis);
        let axes: BTreeSet<usize> = axes.filter(|axis| grid[*axis] == 2).collect();
        let grid = [0, 1, 2].map(|axis| grid[axis] + u32::from(axes.contains(&axis)));
        (!axes.is_empty()).then(|| AnalysisOptions { grid: Some(grid), ..options.clone() })
    }

    /// Returns the launch that may reach blocked code.
    fn limit(
        &self,
        options: &AnalysisOptions,
        blocked: &Blocked,
        compared: &BTreeMap<usize, BTreeSet<u64>>,
    ) -> Option<LaunchLimit> {
        let at = *blocked.inputs.first()?;
        let part = self.launch.parts.get(at)?.clone();
        let largest = compared.get(&at).and_then(|numbers| numbers.last().copied());
        let wanted = match (&part.place, largest.filter(|number| *number < u64::from(u32::MAX))) {
            (InputPlace::Launch(LaunchPart::Workgroups(axis)), Some(number)) => Some((*axis, number + 1)),
            (InputPlace::Launch(LaunchPart::Invocations(axis)), Some(number)) => {
                Some((*axis, number / u64::from(self.launch.local_size[*axis]).max(1) + 1))
            }
            _ => None,
        };
        let grid = wanted.map(|(axis, count)| {
            let mut grid = options.grid.unwrap_or([1; 3]).map(u64::from);
            grid[axis] = count.max(grid[axis]);
            grid
        });
        Some(LaunchLimit { blocked: blocked.clone(), part, grid })
    }
}
