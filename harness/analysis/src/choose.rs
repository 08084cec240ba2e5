//! Chooses inputs that no option supplies, so that the code is reached and invocations interact.
//!
//! A coverage-guided search: each trial walks the kernel once ([`walk::run_trial`]), with a taint bit
//! for each assumed input. The branches that an input decides, and the numbers that it is compared with, give
//! the next candidates. A candidate stays if it reaches further blocks. Then inputs of suspicious findings are
//! varied: a race that a stride of 0 makes is none of the shader, but leaves the answer open unless a proof excludes it.
//!
//! The search ([`search`]) is deterministic. It may miss values that reach a block; the answer then names the inputs.

mod conventions;
mod elements;
mod launch;
mod resource_sizes;
mod rounds;
pub(crate) mod search;
mod settle;
mod sharing;

use std::collections::{BTreeMap, BTreeSet};

use rspirv::spirv::StorageClass;
use spirv_reader::{ArgumentPlace, KernelArgument, Specialized, SpirvModule, SpirvOperation, Stage};

pub(crate) use self::conventions::are_zero_counters;
use self::conventions::{Conventions, has_degenerate_number, is_beyond_positions};
use self::elements::has_fewer_elements;
use self::launch::{
    LaunchFindings, LaunchSearch, MissingLaunch, add_samplers, choose_launch, large_grid_workgroups,
};
use self::resource_sizes::has_larger_resource;
use self::search::InputSearch;
use crate::axes::AxisUse;
use crate::dispatch::uses_subgroups;
use crate::needs::{list_choice, needed_inputs};
use entry_point::assumed::{
    atomic_bindings, ends_in_runtime_array, has_atomic_pointees, local_size_constants, missing_inputs,
    missing_launch,
};
use entry_point::input_place::{AssumedInput, InputPlace, OverrideRole, OverrideValue, SetBinding};
use entry_point::inputs::DEFAULT_BYTES;
use entry_point::launch::{LaunchParameters, wider_grid};
use entry_point::layout::local_size_of;
use entry_point::{AnalysisOptions, DeadlinePredicate, FindingCause, FindingKind, Refusal};
use walk::{Blocked, FindingKey, GridFinding, NeededInput, Trial};

/// Upper bound on the bytes of a buffer whose contents are chosen.
const MAX_BLOCK: u64 = 1 << 24;
/// Trials without a finding, or with it, from which on it counts as independent of its inputs.
const ROBUST_TRIALS: usize = 3;

/// Elements of workgroup memory that an argument sizes.
pub(crate) const ARGUMENT_ELEMENTS: u64 = 4096;

/// Workgroups of a chain in which each waits for its predecessors.
const CHAIN_LENGTH: u32 = 4;

/// How missing inputs are supplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputMode {
    /// Chosen by a search.
    #[default]
    Auto,
    /// Zeros and one workgroup.
    Zeros,
}

/// How a missing grid is supplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputGrid {
    /// At least two workgroups in each axis that the code uses.
    Chosen,
    /// One workgroup, for analyses of few invocations.
    One,
    /// One workgroup, or every workgroup of a given grid, for analyses of final contents.
    Whole,
}

/// The inputs of an analysis, with the trials that led to them.
#[derive(Clone, Debug, Default)]
pub struct InputChoice {
    /// The choices; the first reaches the most. At least one.
    pub choices: Vec<AnalysisOptions>,
    trials: Vec<(AnalysisOptions, Trial)>,
    /// The trials of the choices.
    chosen: Vec<Trial>,
    /// True if zeros reach everything, so that the options need no values.
    is_default: bool,
    launch: LaunchChoice,
    conventions: Conventions,
    /// Races that vanish if loops have few rounds, with the inputs that bound these loops.
    due_to_bounds: BTreeMap<FindingKey, Vec<usize>>,
    /// A race that needs extents which differ, or a distance other than zero.
    by_other_values: Option<RaceOfValues>,
    /// A race of other numbers, such as a small one with large ones, which conditions of a proof may exclude.
    by_small_share: Option<RaceOfValues>,
    /// True if the deadline ended the search.
    pub(crate) is_cut_off: bool,
}

/// A race of other values than the chosen ones.
#[derive(Clone, Debug)]
pub(crate) struct RaceOfValues {
    /// The inputs that it depends on.
    pub inputs: Vec<usize>,
    pub found: GridFinding,
    /// The values that show it.
    pub options: AnalysisOptions,
}

/// Grid and local size as far as they were chosen.
#[derive(Clone, Debug, Default)]
struct LaunchChoice {
    /// True if no option and no annotation restricts the number of workgroups or of graphics invocations.
    is_grid_free: bool,
    /// True for the axes of the workgroup whose size was chosen.
    local_axes: [bool; 3],
    /// The specialization constants that give the workgroup its size, among the inputs.
    size_inputs: Vec<usize>,
    /// True if the length of an array in workgroup memory was chosen.
    has_chosen_array: bool,
    axes: AxisUse,
    found: LaunchFindings,
}

impl LaunchChoice {
    fn has_local_size(&self) -> bool {
        self.local_axes.contains(&true)
    }
}

/// The inputs that an answer for chosen inputs depends on.
#[derive(Clone, Debug, Default)]
pub struct InputNeeds {
    /// The inputs to supply.
    pub inputs: Vec<NeededInput>,
    /// True if all findings depend on assumed values.
    pub decide_findings: bool,
}

/// Returns true if an input is a specialization constant with the value of its declaration.
fn is_declared(options: &AnalysisOptions, input: usize) -> bool {
    let place = options.assumed.get(input).map(|assumed| &assumed.place);
    matches!(place, Some(InputPlace::Constant(id)) if !options.specialization.contains_key(id))
}

impl InputChoice {
    /// Returns the choice that reaches the most, and the options as given if zeros reach everything.
    pub fn primary(&self, given: &AnalysisOptions) -> AnalysisOptions {
        match self.choices.first() {
            Some(first) if !self.is_default => {
                AnalysisOptions { deadline: given.deadline.clone(), ..first.clone() }
            }
            first => {
                let subgroup_size = first.and_then(|first| first.subgroup_size);
                AnalysisOptions { subgroup_size, ..given.clone() }
            }
        }
    }

    /// Returns every choice, the primary one first.
    pub fn all_choices(&self, given: &AnalysisOptions) -> Vec<AnalysisOptions> {
        let others = self.choices.iter().skip(1).cloned();
        let others = others.map(|other| AnalysisOptions { deadline: given.deadline.clone(), ..other });
        std::iter::once(self.primary(given)).chain(others).collect()
    }

    /// Removes the choices that do not satisfy a predicate, unless none does.
    pub(crate) fn retain_choices(&mut self, is_kept: impl Fn(&AnalysisOptions) -> bool) {
        let all = self.choices.iter().cloned().zip(self.chosen.iter().cloned());
        let kept: Vec<(AnalysisOptions, Trial)> = all.filter(|(options, _)| is_kept(options)).collect();
        if !kept.is_empty() {
            (self.choices, self.chosen) = kept.into_iter().unzip();
        }
    }

    /// Lists the chosen inputs that are not zeros or defaults, in one line.
    pub fn description(&self, given: &AnalysisOptions) -> String {
        list_choice(given, &self.primary(given), &self.deciding_inputs()).join(", ")
    }

    /// Returns what an answer for the first choice depends on, for analyses other than the walk.
    pub fn needed_inputs(&self, module: &SpirvModule) -> InputNeeds {
        let (Some(options), Some(trial)) = (self.choices.first(), self.chosen.first()) else {
            return InputNeeds::default();
        };
        let reached = self.covered_blocks().unwrap_or_default();
        let blocked: Vec<Blocked> =
            trial.blocked.iter().filter(|blocked| !blocked.is_covered(&reached)).cloned().collect();
        let dependent: Vec<&Vec<usize>> = trial.suspicious_findings().map(|found| &found.inputs).collect();
        let decide_findings = !dependent.is_empty() && dependent.len() == trial.findings.len();
        let dependent: Vec<usize> =
            dependent.into_iter().filter(|_| decide_findings).flatten().copied().collect();
        let dependent: Vec<usize> =
            dependent.into_iter().chain(self.contents_that_decide_races().0).collect();
        let mut inputs = needed_inputs(module, options, &blocked, &dependent, decide_findings);
        inputs.extend(self.needed_launch(module, &reached));
        InputNeeds { inputs, decide_findings }
    }

    /// Returns the blocks that some choice reaches, or none if the search made no trial.
    fn covered_blocks(&self) -> Option<Vec<bool>> {
        let mut chosen = self.chosen.iter();
        let mut covered = chosen.next()?.reached.clone();
        for other in chosen {
            covered.iter_mut().zip(&other.reached).for_each(|(known, now)| *known |= now);
        }
        Some(covered)
    }

    /// Returns a race of a small number with large ones.
    pub(crate) fn race_of_small_share(&self) -> Option<&RaceOfValues> {
        self.by_small_share.as_ref()
    }

    /// Returns what to supply to reach the code that no chosen launch reaches; `reached` are the blocks of all walks.
    pub(crate) fn needed_launch(&self, module: &SpirvModule, reached: &[bool]) -> Vec<NeededInput> {
        let Some(options) = self.choices.first() else { return Vec::new() };
        let limits = self.launch.found.limits.iter().filter(|limit| !limit.blocked.is_covered(reached));
        launch::needed_launch(limits, module, options)
    }

    /// Returns true if steps or time ended the search for launches.
    pub(crate) fn is_launch_search_cut_off(&self) -> bool {
        self.launch.found.is_cut_off
    }

    /// Returns the first choice with more workgroups, if code stays unreached that only the contents of counters, flags
    /// and locks decide.
    ///
    /// With two workgroups, the second one of a chain never sees one that is between its first and last message.
    pub(crate) fn with_longer_chain(&self, blocked: &[Blocked]) -> Option<AnalysisOptions> {
        let mut options = self.choices.first()?.clone();
        let is_by_messages =
            |blocked: &Blocked| !blocked.lines.is_empty() && self.decides_by_counters(blocked);
        let is_free = self.launch.is_grid_free && options.workgroups.is_empty();
        // Without a chosen grid the analysis takes two workgroups.
        let grid = options.grid.unwrap_or([2, 1, 1]);
        options.grid = Some(grid.map(|count| if count == 2 { CHAIN_LENGTH } else { count }));
        (is_free && grid.contains(&2) && blocked.iter().any(is_by_messages)).then_some(options)
    }

    /// Returns the inputs that decide a branch in some choice, by the number of its instruction.
    pub(crate) fn inputs_of_branch(&self, site: u32) -> BTreeSet<usize> {
        let decided = self.chosen.iter().filter_map(|trial| trial.branches.get(&site));
        decided.flatten().copied().collect()
    }

    /// Returns true if no option and no annotation restricts the grid.
    pub(crate) fn may_choose_grid(&self) -> bool {
        self.launch.is_grid_free
    }

    /// Returns true if the analysis may use more workgroups than one for these options.
    pub(crate) fn may_widen(&self, options: &AnalysisOptions) -> bool {
        self.launch.is_grid_free && options.grid.is_none()
    }

    /// Returns options without any assumption.
    pub fn without_assumptions(options: AnalysisOptions) -> InputChoice {
        InputChoice { choices: vec![options], is_default: true, ..InputChoice::default() }
    }

    /// Returns true if a finding exists only because of assumed values: a trial reached its code without it.
    ///
    /// `options` are those that show the finding.
    pub(crate) fn depends_on_values(
        &self,
        module: &SpirvModule,
        found: &GridFinding,
        options: &AnalysisOptions,
    ) -> bool {
        if self.due_to_bounds.contains_key(&found.finding_key()) || !self.other_sizes(options).is_empty() {
            return true;
        }
        let key = found.finding_key();
        let mut showing = self.trials.iter().filter(|(_, trial)| trial.findings.contains_key(&key));
        if showing.any(|(options, trial)| has_fewer_elements(module, found, options, trial)) {
            return false;
        }
        // An array may fit only other local sizes.
        let is_sized = self.launch.has_local_size()
            || self.launch.has_chosen_array
            || self.choices.first().is_some_and(|first| first.specialization != options.specialization);
        if is_sized && matches!(found.kind, FindingKind::OutOfBounds | FindingKind::UndefinedBehaviour) {
            return true;
        }
        let is_conventional = self.conventions.is_satisfied_by(options);
        let (mut inputs, mut control) = (found.inputs.clone(), found.control.clone());
        let writes_alone = found.kind.is_race() && found.at.iter().all(|spot| spot.writes == Some(true));
        if is_conventional {
            self.conventions.remove_settled((found.kind, !writes_alone), &mut inputs, &mut control);
        }
        // Counters, flags and locks other than zero let invocations pass that should wait.
        if !is_conventional && found.kind.is_race() {
            let has_zeros = |(options, trial): &&(AnalysisOptions, Trial)| {
                self.conventions.is_satisfied_by(options) && trial.findings.contains_key(&key)
            };
            return !self.trials.iter().any(|trial| has_zeros(&trial));
        }
        if found.kind.is_race() {
            inputs.retain(|input| !is_declared(options, *input));
        }
        if inputs.is_empty() && control.is_empty() {
            return false;
        }
        // The time limit kept other values from being tried.
        if self.is_cut_off && !inputs.is_empty() && found.kind.is_race() {
            return true;
        }
        // A lock that is initially taken is not a deadlock of the shader.
        if found.kind == FindingKind::Hang && !is_conventional {
            return true;
        }
        // Without counters and flags, a loop that reads contents ends by the contents, as a linked list does.
        let is_walk = found.kind == FindingKind::Hang && self.conventions.inputs.is_empty();
        let is_buffer = |input: &usize| options.assumed.get(*input).is_some_and(AssumedInput::is_contents);
        if is_walk && inputs.iter().any(is_buffer) {
            return true;
        }
        // A count that lets fewer invocations of the same grid pass refutes nothing, nor does an offset beyond the buffer.
        let of_grid = self.trials.iter().filter(|(other, _)| other.grid == options.grid);
        let showing = of_grid.filter(|(_, trial)| trial.findings.contains_key(&key));
        let entries = showing.map(|(_, trial)| trial.fewest_entries(&found.blocks)).min().unwrap_or_default();
        let is_smaller = |other: &AnalysisOptions, trial: &Trial| {
            let is_fewer = other.grid == options.grid && trial.fewest_entries(&found.blocks) < entries;
            found.kind.is_race() && (is_fewer || trial.drops_accesses()) && !trial.has_finding_like(&key)
        };
        // A lock that is held from the start hides races of the others.
        let is_relevant = |(other, trial): &&(AnalysisOptions, Trial)| {
            let convention = !is_conventional || self.conventions.is_satisfied_by(other);
            let is_degenerate = found.kind.is_race()
                && (has_degenerate_number(&inputs, options, other)
                    || is_beyond_positions(&inputs, other, trial)
                    || has_larger_resource(module, &inputs, options, other));
            let is_covered = trial.covers(found.kind, &found.blocks) && !is_smaller(other, trial);
            trial.is_complete && is_covered && convention && !is_degenerate
        };
        let relevant: Vec<&(AnalysisOptions, Trial)> = self.trials.iter().filter(is_relevant).collect();
        // A limit ended every trial that reached the code, so that nothing is known of other inputs.
        if relevant.is_empty() {
            return true;
        }
        let is_in_all_trials = relevant.iter().all(|(_, trial)| trial.has_finding_like(&key));
        let place = |input: &usize| options.assumed.get(*input).map(|input| &input.place);
        let is_definition = |input: &usize| {
            let role = |value: &OverrideValue| value.role == OverrideRole::Definition;
            matches!(place(input), Some(InputPlace::Override(value)) if role(value))
        };
        if inputs.iter().any(is_definition) {
            return true;
        }
        // No number that was tried is an address.
        if !inputs.is_empty() && found.cause == FindingCause::NoBuffer {
            return true;
        }
        // A computation with an uninitialized value is undefined for all inputs.
        if inputs.is_empty() || found.kind == FindingKind::UninitialisedRead {
            return !is_in_all_trials;
        }
        let distinct = |inputs: &[usize]| {
            let value = |input: &usize, options: &AnalysisOptions| {
                options.assumed.get(*input).map(|input| input.describe_value(options))
            };
            let values = relevant
                .iter()
                .map(|(options, _)| inputs.iter().map(|input| value(input, options)).collect::<Vec<_>>());
            values.collect::<BTreeSet<_>>().len()
        };
        let is_contents =
            |input: &&usize| options.assumed.get(**input).is_some_and(AssumedInput::is_contents);
        // Elements that were always equal give no information about others, nor does the single value of an
        // override.
        let is_alone =
            |input: &&usize| is_contents(input) || matches!(place(input), Some(InputPlace::Override(_)));
        let is_varied = distinct(&inputs) >= ROBUST_TRIALS
            && inputs.iter().filter(is_alone).all(|input| distinct(&[*input]) >= ROBUST_TRIALS);
        // No choice of contents meets what positions, offsets or lists of indices have in common: the elements
        // may be a permutation. An update at such a place races for any two equal elements.
        let is_beyond = (found.kind == FindingKind::OutOfBounds || writes_alone)
            && inputs.iter().any(|input| is_contents(&input));
        !is_in_all_trials || !is_varied || is_beyond || found.kind == FindingKind::UndefinedBehaviour
    }

    /// Returns the inputs that a finding depends on, or those that decide whether its code is reached.
    pub(crate) fn inputs_of(&self, found: &GridFinding) -> Vec<usize> {
        let bounds = self.due_to_bounds.get(&found.finding_key()).into_iter().flatten();
        let inputs: Vec<usize> = found.inputs.iter().chain(bounds).copied().collect();
        // Others keep the first choice from reaching its code.
        let blocked = self.chosen.iter().take(1).flat_map(|trial| &trial.blocked);
        let blocking = blocked.filter(|one| one.contains(found)).flat_map(|one| one.inputs.iter().copied());
        if inputs.is_empty() { found.control.clone() } else { blocking.chain(inputs).collect() }
    }

    /// Returns true if an access may be out of bounds only in the chosen grid.
    ///
    /// An array of a fixed length may fit one workgroup along some axis.
    pub(crate) fn may_exceed_by_grid(&self, found: &GridFinding, options: &AnalysisOptions) -> bool {
        let is_wide = options.grid.is_some_and(|grid| grid != [1; 3]);
        self.launch.is_grid_free && is_wide && found.kind == FindingKind::OutOfBounds
    }

    /// Returns the inputs whose zeros and defaults an answer for a choice depends on.
    pub(crate) fn deciding_inputs(&self) -> BTreeSet<usize> {
        let influential = self.chosen.iter().flat_map(|trial| &trial.influential);
        let influential = influential.filter(|at| !self.conventions.inputs.contains(at)).copied();
        influential.chain(self.launch.size_inputs.iter().copied()).collect()
    }

    /// Returns the buffers whose contents decide whether invocations race.
    ///
    /// Those of a histogram or a linked list: if two of its elements are equal, two invocations read and write one
    /// place. Writes alone are not counted, as the elements may be a permutation. They are counted if more
    /// invocations make them for other numbers, and race with all contents that were tried.
    ///
    /// Also returns such a race, with the inputs that show it.
    pub(crate) fn contents_that_decide_races(&self) -> (Vec<usize>, Option<(GridFinding, AnalysisOptions)>) {
        let (mut all, mut race) = (BTreeSet::new(), None);
        let Some((options, first)) = self.choices.first().zip(self.chosen.first()) else {
            return (Vec::new(), race);
        };
        let is_buffer = |input: &usize| options.assumed.get(*input).is_some_and(AssumedInput::is_contents);
        let numbers = |options: &AnalysisOptions| -> Vec<String> {
            let inputs = options.assumed.iter().filter(|input| !input.is_contents());
            inputs.map(|input| input.describe_value(options)).collect()
        };
        // What is read beyond the assumed length counts among the contents.
        let is_part = |input: &usize| {
            let part = options.assumed.get(*input);
            part.is_some_and(|part| part.is_contents() || matches!(part.place, InputPlace::Length(_)))
        };
        for (options, trial) in self.trials.iter().filter(|(_, trial)| trial.is_complete) {
            for (key, found) in &trial.findings {
                if !key.0.is_race() || first.findings.contains_key(key) || !found.inputs.iter().any(is_buffer)
                {
                    continue;
                }
                let is_refuted = || {
                    let tried = numbers(options);
                    self.trials.iter().any(|(other, trial)| {
                        let is_covered = trial.is_complete && trial.covers(key.0, &found.blocks);
                        is_covered && !trial.findings.contains_key(key) && numbers(other) == tried
                    })
                };
                let is_larger = trial.fewest_entries(&found.blocks) > first.fewest_entries(&found.blocks);
                let is_decided = match found.has_read {
                    true => found.inputs.iter().all(is_buffer) || is_larger || is_refuted(),
                    false => is_larger && !is_refuted(),
                };
                if is_decided {
                    all.extend(found.inputs.iter().copied().filter(is_part));
                    race.get_or_insert_with(|| (found.without_inputs(), options.clone()));
                }
            }
        }
        if let Some(RaceOfValues { inputs, found, options }) = &self.by_other_values {
            all.extend(inputs);
            race.get_or_insert_with(|| (found.clone(), options.clone()));
        }
        (all.into_iter().collect(), race)
    }
}

/// Chooses the inputs that `options` do not supply.
///
/// # Errors
/// Returns the position of what is malformed.
pub fn choose_inputs(
    module: &SpirvModule,
    options: &AnalysisOptions,
    mode: InputMode,
    grid: InputGrid,
) -> Result<InputChoice, Refusal> {
    if mode == InputMode::Zeros {
        return Ok(InputChoice::without_assumptions(options.clone()));
    }
    let entry = module.find_entry(options.entry.as_deref())?;
    let (function, stage) = (entry.function, entry.shader_stage());
    let is_annotated = module.annotations != spirv_reader::annotations::Annotations::default();
    let is_subgroup_free = grid == InputGrid::Chosen
        && options.subgroup_size.is_none()
        && !is_annotated
        && uses_subgroups(module);
    let may_choose_grid = grid == InputGrid::Chosen && is_grid_free(module, options);
    // Sections exclude fragments of one pixel from each other, so a draw has several of them.
    let has_sections = stage == Stage::Fragment && has_sections(module);
    let is_grid_free = may_choose_grid && !has_sections;
    let is_launch_free = is_grid_free && stage.has_workgroups();
    // A given grid counts workgroups, of whatever size.
    let is_local_size_free = grid != InputGrid::One && !is_annotated && stage.has_workgroups();
    let launch_for = |axes: &AxisUse| {
        let mut start = options.clone();
        let mut local_axes = [false; 3];
        if may_choose_grid && has_sections {
            start.grid = Some(wider_grid(stage).grid);
        }
        if is_launch_free || is_local_size_free {
            let given = start.grid;
            local_axes = choose_launch(module, options, function, axes, &mut start);
            start.grid = if is_launch_free { start.grid } else { given };
        }
        let local_size = local_size_of(module, &start.specialization, &Default::default(), function);
        let invocations = local_size.map_or(1, |size| size.iter().product());
        for argument in module.kernel_arguments.iter().filter(|argument| argument.function == function) {
            if let ArgumentPlace::Workgroup(id) = argument.place {
                start.specialization.entry(id).or_insert(ARGUMENT_ELEMENTS);
            }
        }
        if grid != InputGrid::Whole && stage.has_workgroups() {
            start.workgroups = large_grid_workgroups(&start, invocations);
            start.is_sampled = start.workgroups != options.workgroups;
        }
        start.subgroup_size =
            start.subgroup_size.or(Some(options.likely_subgroup_sizes()[0])
                .filter(|size| is_subgroup_free && invocations > *size));
        (start, local_axes)
    };
    let search_for = |axes: AxisUse| -> Result<InputChoice, Refusal> {
        let (start, local_axes) = launch_for(&axes);
        // Of a grid that is too large for a walk, the workgroups that run are chosen.
        let grid = options.grid.filter(|_| !start.is_sampled);
        let parts = match stage.has_workgroups() {
            true => missing_launch(module, &AnalysisOptions { grid, ..options.clone() }, function),
            false => Vec::new(),
        };
        let choice = search_inputs(module, options, start, function, (parts, is_launch_free))?;
        let is_array = |argument: &KernelArgument| match argument.place {
            ArgumentPlace::Workgroup(id) => !options.specialization.contains_key(&id),
            ArgumentPlace::Push(..) | ArgumentPlace::Block(..) | ArgumentPlace::Resource(_) => false,
        };
        let has_chosen_array = module.kernel_arguments.iter().any(is_array);
        let sizes = local_size_constants(module, options, function);
        let assumed = choice.choices.first().map_or(&[][..], |first| &first.assumed);
        let index = |number: u32| assumed.iter().position(|one| one.place == InputPlace::Constant(number));
        let size_inputs = sizes.into_iter().filter_map(|(number, _)| index(number)).collect();
        let launch =
            LaunchChoice { is_grid_free, local_axes, size_inputs, has_chosen_array, axes, ..choice.launch };
        Ok(InputChoice { launch, ..choice })
    };
    let axes = AxisUse::analyze(module, function, None);
    let (first, _) = launch_for(&axes);
    let choice = search_for(axes)?;
    let Some(covered) = choice.covered_blocks().filter(|_| is_launch_free) else { return Ok(choice) };
    // Axes that only unreached code uses, such as that of another specialization, have an extent of 1.
    let axes = AxisUse::analyze(module, function, Some(&covered));
    let (narrow, _) = launch_for(&axes);
    if (narrow.grid, &narrow.specialization) == (first.grid, &first.specialization) {
        return Ok(choice);
    }
    let narrowed = search_for(axes)?;
    // The other values may reach code that uses a further axis.
    let axes = AxisUse::analyze(module, function, narrowed.covered_blocks().as_deref());
    let (again, _) = launch_for(&axes);
    let is_enough = (again.grid, again.specialization) == (narrow.grid, narrow.specialization);
    Ok(if is_enough { narrowed } else { choice })
}

/// Chooses the inputs that `start` does not supply, for its grid and local size.
fn search_inputs(
    module: &SpirvModule,
    options: &AnalysisOptions,
    mut start: AnalysisOptions,
    function: u32,
    (parts, is_free): (Vec<AssumedInput>, bool),
) -> Result<InputChoice, Refusal> {
    let launch = LaunchParameters::new(module, &start, function)?;
    let (by_id, by_result) = (&launch.values_by_spec_id, &launch.values_by_result);
    let specialized = Specialized::new(module, by_id, by_result, Some(launch.local_size))?;
    start.assumed = missing_inputs(module, &specialized, &start, function)?;
    if start.assumed.is_empty() && parts.is_empty() {
        return Ok(InputChoice::without_assumptions(start));
    }
    for input in &start.assumed {
        if let InputPlace::Contents(at) = input.place
            && let Some(bytes) = block_size(module, &specialized, at)
        {
            start.buffers.entry(at).or_insert_with(|| vec![0; bytes as usize].into());
        }
    }
    let mut sizes =
        [0, 1, 2].map(|axis: usize| u64::from(launch.grid[axis]) * u64::from(launch.local_size[axis]));
    let stage = module.find_entry(options.entry.as_deref())?.shader_stage();
    if !stage.has_workgroups() {
        // A count bounds all vertices or fragments of a draw.
        sizes[0] = saturating_product(wider_grid(stage).grid.map(u64::from)).max(saturating_product(sizes));
    }
    let atomics: BTreeSet<SetBinding> = atomic_bindings(module, function).into_iter().collect();
    let conventions = Conventions::of_entry(module, &specialized, (function, &atomics), &start);
    let mut code = module.functions.values().flat_map(|function| &function.code);
    let synchronizes = code.any(|one| {
        let operation = module.operation(one);
        matches!(operation, SpirvOperation::ControlBarrier { .. } | SpirvOperation::Subgroup(_))
    });
    let mut search = InputSearch {
        module,
        conventions,
        atomics,
        has_atomic_pointees: has_atomic_pointees(module, function),
        invocation_counts: sizes,
        workgroup_size: u64::from(launch.local_size.iter().product::<u32>()),
        synchronizes,
        is_single: !stage.has_workgroups(),
        trials: Vec::new(),
        steps: 0,
    };
    let is_unchanged = start.grid == options.grid
        && start.workgroups == options.workgroups
        && start.specialization == options.specialization;
    let sizes = local_size_constants(module, options, function);
    let launch = MissingLaunch { parts, local_size: launch.local_size, is_free, synchronizes };
    let mut found = search.run(start.clone());
    // Samplers matter only if positions or branches depend on sampled values.
    if found.is_none() && add_samplers(module, &mut start) {
        found = search.run(start);
    }
    let is_cut_off = || options.deadline.as_ref().is_some_and(DeadlinePredicate::has_passed);
    let Some(mut all) = found else {
        let choice = InputChoice::without_assumptions(options.clone());
        return Ok(InputChoice { is_cut_off: is_cut_off(), ..choice });
    };
    let due_to_bounds = search.races_due_to_bounds(&all, function);
    let by_other_values = search.race_of_unequal_extents(&all);
    let by_small_share = search.race_of_small_share(&all);
    let is_sampled = search.trials.iter().any(|(start, _)| start.is_sampled);
    let mut launches = LaunchSearch { search: &mut search, launch: &launch, steps: 0, is_cut_off: false };
    let found = match (launch.parts.is_empty(), is_sampled) {
        (true, _) => LaunchFindings::default(),
        (false, true) => launches.extend_running(&mut all),
        (false, false) => launches.extend_choices(&mut all),
    };
    launches.add_larger_workgroups(&sizes, &mut all);
    all.iter().for_each(|base| search.try_growing_strides(*base));
    all.extend(search.find_declared_race(&all));
    // A race of other values leaves the answer open already.
    let is_closed = by_small_share.is_none() && by_other_values.is_none();
    let rejected = is_closed.then(|| search.race_of_rejected_numbers(&all)).flatten();
    let by_small_share = by_small_share.or(rejected);
    let choice = search.into_choice(&all, is_unchanged);
    Ok(InputChoice {
        launch: LaunchChoice { found, ..choice.launch },
        due_to_bounds,
        by_other_values,
        by_small_share,
        is_cut_off: is_cut_off(),
        ..choice
    })
}

fn has_sections(module: &SpirvModule) -> bool {
    let mut code = module.functions.values().flat_map(|function| &function.code);
    code.any(|instruction| matches!(module.operation(instruction), SpirvOperation::BeginInterlock))
}

/// Returns true if neither options nor annotations restrict the grid.
///
/// Sizes that the caller gave may belong to one workgroup.
fn is_grid_free(module: &SpirvModule, options: &AnalysisOptions) -> bool {
    let is_whole = |at: &SetBinding| !options.given_members.contains_key(at);
    let given = options.buffers.keys().any(is_whole) || !options.images.is_empty();
    let annotated = module.annotations != spirv_reader::annotations::Annotations::default();
    !annotated && !given && options.grid.is_none()
}

/// Returns the size of a buffer whose contents are not given.
pub(crate) fn block_size(
    module: &SpirvModule,
    specialized: &Specialized<'_>,
    binding: SetBinding,
) -> Option<u64> {
    let bound = module.variables.iter().filter(|(id, variable)| {
        matches!(variable.class, StorageClass::Uniform | StorageClass::StorageBuffer)
            && module.descriptor_of(**id) == Some(binding)
    });
    let size = |ty: u32| {
        let ty = module.element_type(ty);
        let size = specialized.size_of(ty).ok()?;
        let size = if ends_in_runtime_array(module, ty) { size.max(DEFAULT_BYTES) } else { size };
        (size <= MAX_BLOCK).then_some(size)
    };
    bound.filter_map(|(_, variable)| size(variable.ty)).max()
}

/// Returns the product of the sizes of a grid, at least 1.
fn saturating_product(sizes: [u64; 3]) -> u64 {
    sizes.into_iter().fold(1, |product: u64, size| product.saturating_mul(size.max(1)))
}
