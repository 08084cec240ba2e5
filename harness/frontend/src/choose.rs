//! Chooses inputs that no option supplies, so that the code is reached and invocations interact.
//!
//! A coverage-guided search: each trial walks the kernel once ([`crate::grid::run_trial`]), with a taint bit
//! for each assumed input. The branches that an input decides, and the numbers that it is compared with, give
//! the next candidates. A candidate stays if it reaches further blocks. Then inputs of suspicious findings are
//! varied: a race that a stride of 0 makes is none of the shader.
//!
//! The search is deterministic. It may miss values that reach a block; the answer then names the inputs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rspirv::spirv::{Op, StorageClass};

use crate::assumed::{
    AssumedInput, Binding, InputKind, InputPlace, atomic_bindings, ends_in_runtime_array,
    local_size_constants, missing_inputs, used_axes,
};
use crate::error::{Problem, Refusal, SourcePosition};
use crate::grid::{Blocked, FindingKey, GridFinding, NeededInput, Trial, run_trial};
use crate::inputs::{AddressInput, AddressTarget, ImageInput, TexelInput, fill_bytes};
use crate::judge::{describe_choice, needed_inputs};
use crate::launch::Launch;
use crate::layout::Specialized;
use crate::lift::{AnalysisOptions, DEFAULT_BYTES, FindingKind};
use crate::module::{SpirvModule, SpirvType};
use crate::stage::Stage;

/// Upper bounds on the trials, on the steps of one trial and of all.
const MAX_TRIALS: usize = 72;
const MAX_TRIAL_STEPS: u64 = 3_000_000;
const MAX_STEPS: u64 = 40_000_000;
/// Upper bound on the choices that are kept, each of which reaches further blocks.
const MAX_CHOICES: usize = 6;
/// Upper bound on the bytes of a buffer whose contents are chosen.
const MAX_BLOCK: u64 = 1 << 24;
/// Upper bound on the candidates for one input.
const MAX_CANDIDATES: usize = 14;
/// Trials without a finding, or with it, from which on it counts as independent of its inputs.
const ROBUST_TRIALS: usize = 3;

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
}

/// The inputs of an analysis, with the trials that led to them.
#[derive(Clone, Debug)]
pub struct InputChoice {
    /// The choices; the first reaches the most. At least one.
    pub choices: Vec<AnalysisOptions>,
    trials: Vec<(AnalysisOptions, Trial)>,
    /// The trials of the choices.
    chosen: Vec<Trial>,
    /// True if zeros reach everything, so that the options need no values.
    is_default: bool,
}

/// What an answer for chosen inputs depends on.
#[derive(Clone, Debug, Default)]
pub struct InputNeeds {
    /// The inputs to supply.
    pub inputs: Vec<NeededInput>,
    /// True if all findings depend on assumed values.
    pub decide_findings: bool,
}

impl InputChoice {
    /// Returns the choice that reaches the most, and the options as given if zeros reach everything.
    pub fn primary(&self, given: &AnalysisOptions) -> AnalysisOptions {
        match self.choices.first() {
            Some(first) if !self.is_default => {
                AnalysisOptions { deadline: given.deadline.clone(), ..first.clone() }
            }
            _ => given.clone(),
        }
    }

    /// Lists the chosen inputs that are not zeros or defaults, in one line.
    pub fn description(&self, given: &AnalysisOptions) -> String {
        describe_choice(given, &self.primary(given))
    }

    /// Returns what an answer for the first choice depends on, for analyses other than the walk.
    pub fn needs(&self, module: &SpirvModule) -> InputNeeds {
        let (Some(options), Some(trial)) = (self.choices.first(), self.chosen.first()) else {
            return InputNeeds::default();
        };
        let mut reached = trial.reached.clone();
        for other in &self.chosen {
            reached.iter_mut().zip(&other.reached).for_each(|(known, now)| *known |= now);
        }
        let blocked: Vec<Blocked> =
            trial.blocked.iter().filter(|blocked| !blocked.is_covered(&reached)).cloned().collect();
        let dependent: Vec<&Vec<usize>> = trial.suspicious().map(|(_, inputs)| inputs).collect();
        let decide_findings = !dependent.is_empty() && dependent.len() == trial.findings.len();
        let dependent: Vec<usize> =
            dependent.into_iter().filter(|_| decide_findings).flatten().copied().collect();
        InputNeeds {
            inputs: needed_inputs(module, options, &blocked, &dependent, decide_findings),
            decide_findings,
        }
    }

    /// Returns options without any assumption.
    pub fn fixed(options: AnalysisOptions) -> InputChoice {
        InputChoice { choices: vec![options], trials: Vec::new(), chosen: Vec::new(), is_default: true }
    }

    /// Returns true if a finding exists only because of assumed values: a trial reached its code without it.
    pub(crate) fn depends_on_values(&self, found: &GridFinding) -> bool {
        if found.inputs.is_empty() && !found.by_control {
            return false;
        }
        let reaches = |trial: &Trial| {
            found.blocks.iter().all(|block| trial.reached.get(*block as usize).copied().unwrap_or_default())
        };
        let relevant: Vec<&(AnalysisOptions, Trial)> =
            self.trials.iter().filter(|(_, trial)| trial.is_complete && reaches(trial)).collect();
        let key: FindingKey = found.key();
        let everywhere = relevant.iter().all(|(_, trial)| trial.findings.contains_key(&key));
        // An uninitialized value is undefined whatever it is computed with.
        if found.inputs.is_empty() || found.kind == FindingKind::UninitialisedRead {
            return !everywhere;
        }
        let values = relevant.iter().map(|(options, _)| {
            let value = |input: &usize| options.assumed.get(*input).map(|input| input.value(options));
            found.inputs.iter().map(value).collect::<Vec<_>>()
        });
        let distinct: BTreeSet<Vec<Option<String>>> = values.collect();
        !everywhere || distinct.len() < ROBUST_TRIALS || found.kind == FindingKind::UndefinedBehaviour
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
    let fixed = || InputChoice::fixed(options.clone());
    if mode == InputMode::Zeros {
        return Ok(fixed());
    }
    let nowhere = |problem: Problem| problem.located_at(SourcePosition::Module);
    let entry = module.find_entry(options.entry.as_deref()).map_err(nowhere)?;
    let (function, stage) = (entry.function, entry.shader_stage());
    let mut start = options.clone();
    if grid == InputGrid::Chosen {
        choose_launch(module, options, (function, stage), &mut start);
    }
    let launch = Launch::new(module, &start, function).map_err(nowhere)?;
    let specialized = Specialized::new(module, &launch.by_id, &launch.by_result, Some(launch.local_size))
        .map_err(nowhere)?;
    start.assumed = missing_inputs(module, &specialized, &start, function).map_err(nowhere)?;
    if start.assumed.is_empty() {
        return Ok(InputChoice::fixed(start));
    }
    for input in &start.assumed {
        if let InputPlace::Contents(at) = input.place
            && let Some(bytes) = block_size(module, &specialized, at)
        {
            start.buffers.insert(at, vec![0; bytes as usize]);
        }
    }
    let [x, y, z] = [0, 1, 2].map(|axis: usize| u64::from(launch.grid[axis] * launch.local_size[axis]));
    let mut search = Search {
        module,
        atomics: atomic_bindings(module, function).into_iter().collect(),
        sizes: [x, y, z],
        local: u64::from(launch.local_size.iter().product::<u32>()),
        trials: Vec::new(),
        steps: 0,
    };
    let is_unchanged = start.grid == options.grid && start.specialization == options.specialization;
    Ok(search.run(start, is_unchanged).unwrap_or_else(fixed))
}

/// Chooses local size and grid: at least two workgroups in each axis that the code uses.
///
/// Sizes that the caller gave may belong to one workgroup, so the grid stays.
fn choose_launch(
    module: &SpirvModule,
    options: &AnalysisOptions,
    (function, stage): (u32, Stage),
    start: &mut AnalysisOptions,
) {
    let given = !options.buffers.is_empty() || !options.images.is_empty();
    let annotated = module.annotations != crate::annotations::Annotations::default();
    if annotated || given || options.grid.is_some() || !stage.has_workgroups() {
        return;
    }
    let constants = local_size_constants(module, options, function);
    let axes = constants.iter().fold(0, |all, (_, axes)| all + axes.iter().filter(|axis| **axis).count());
    for (id, _) in constants {
        let value = match axes {
            1 => 64,
            2 => 8,
            _ => 4,
        };
        start.specialization.insert(id, value);
    }
    let used = used_axes(module, function);
    if used.contains(&true) {
        start.grid = Some(used.map(|used| if used { 2 } else { 1 }));
    }
}

/// Returns the size of a buffer whose contents are not given.
fn block_size(module: &SpirvModule, specialized: &Specialized<'_>, at: Binding) -> Option<u64> {
    let bound = module.variables.iter().filter(|(id, variable)| {
        let decorations = module.decorations_of(**id);
        matches!(variable.class, StorageClass::Uniform | StorageClass::StorageBuffer)
            && (decorations.set.unwrap_or(0), decorations.binding) == (at.0, Some(at.1))
    });
    let size = |ty: u32| {
        let ty = module.element_type(ty);
        let size = specialized.size_of(ty).ok()?;
        let size = if ends_in_runtime_array(module, ty) { size.max(DEFAULT_BYTES) } else { size };
        (size <= MAX_BLOCK).then_some(size)
    };
    bound.filter_map(|(_, variable)| size(variable.ty)).max()
}

struct Search<'m> {
    module: &'m SpirvModule,
    /// Buffers with counters, flags or locks, which start as zeros.
    atomics: BTreeSet<Binding>,
    /// Invocations by axis.
    sizes: [u64; 3],
    /// Invocations per workgroup.
    local: u64,
    trials: Vec<(AnalysisOptions, Trial)>,
    steps: u64,
}

/// Returns the merits of a trial: complete, far-reaching and unsuspicious ones are better.
///
/// A finding that no assumed value has part in outweighs suspicious ones.
fn rank(trial: &Trial) -> (bool, usize, bool, Reverse<usize>, Reverse<usize>) {
    let suspicious = trial.suspicious().count();
    let is_certain = trial.findings.len() > suspicious;
    (trial.is_complete, trial.coverage(), is_certain, Reverse(suspicious), Reverse(trial.exceeded))
}

fn is_settled(trial: &Trial) -> bool {
    trial.is_complete && trial.blocked.is_empty() && trial.suspicious().next().is_none()
}

impl Search<'_> {
    fn run(&mut self, mut start: AnalysisOptions, is_unchanged: bool) -> Option<InputChoice> {
        self.bind_addresses(&mut start);
        let is_unchanged = is_unchanged && start.addresses.is_empty();
        let mut best: Option<usize> = None;
        let count = self.sizes.iter().copied().max().unwrap_or(1);
        let whole = self.sizes.iter().product::<u64>();
        // One number for all scalars, then contents of buffers as well.
        for (number, contents) in [
            (0, false),
            (count, false),
            (count, true),
            (1, true),
            (self.local, true),
            (whole, true),
            (4, true),
        ] {
            let options = self.uniform_choice(&start, number, contents);
            let Some(trial) = self.try_inputs(options) else { continue };
            let better = best.is_none_or(|best| rank(&self.trials[trial].1) > rank(&self.trials[best].1));
            if better {
                best = Some(trial);
            }
            if best.is_some_and(|best| is_settled(&self.trials[best].1)) {
                break;
            }
        }
        let mut primary = best?;
        let mut others: Vec<usize> = Vec::new();
        let mut covered = self.trials[primary].1.reached.clone();
        // Change one input at a time to reach further blocks.
        let mut tried: BTreeSet<(usize, String)> = BTreeSet::new();
        while let Some((base, input, numbers)) = self.next_blocked(primary, &others, &covered, &tried) {
            for candidate in self.candidates(base, input, &numbers) {
                let options = self.with_candidate(base, input, &candidate);
                if !tried.insert((input, format!("{base} {candidate:?}"))) {
                    continue;
                }
                let Some(trial) = self.try_inputs(options) else { continue };
                let reached = &self.trials[trial].1.reached;
                if !self.trials[trial].1.is_complete || !adds(reached, &covered) {
                    continue;
                }
                let superset = !adds(&self.trials[primary].1.reached, reached);
                covered.iter_mut().zip(reached).for_each(|(known, now)| *known |= now);
                if superset {
                    primary = trial;
                } else if others.len() + 1 < MAX_CHOICES {
                    others.push(trial);
                }
                break;
            }
            tried.insert((input, format!("{base} done")));
            if self.is_spent() {
                break;
            }
        }
        primary = self.settle_findings(primary);
        others.retain(|other| adds(&self.trials[*other].1.reached, &self.trials[primary].1.reached));
        let all: Vec<usize> = std::iter::once(primary).chain(others).collect();
        let choices = all.iter().map(|index| self.trials[*index].0.clone()).collect();
        let chosen = all.iter().map(|index| self.trials[*index].1.clone()).collect();
        let is_default = all == [0] && is_unchanged;
        Some(InputChoice { choices, trials: std::mem::take(&mut self.trials), chosen, is_default })
    }

    fn is_spent(&self) -> bool {
        let late = || {
            let deadline = self.trials.first().and_then(|(options, _)| options.deadline.as_ref());
            deadline.is_some_and(crate::until::Until::is_over)
        };
        self.trials.len() >= MAX_TRIALS || self.steps >= MAX_STEPS || late()
    }

    /// Walks with inputs; returns the index of the trial.
    fn try_inputs(&mut self, options: AnalysisOptions) -> Option<usize> {
        if self.is_spent() {
            return None;
        }
        let most = MAX_TRIAL_STEPS.min(MAX_STEPS - self.steps);
        let trial = run_trial(self.module, &options, most).ok()?;
        self.steps += trial.steps.max(10_000);
        self.trials.push((options, trial));
        Some(self.trials.len() - 1)
    }

    /// Returns the next input that keeps lines from being reached, with the trial to start from and the numbers
    /// that the input is compared with.
    fn next_blocked(
        &self,
        primary: usize,
        others: &[usize],
        covered: &[bool],
        tried: &BTreeSet<(usize, String)>,
    ) -> Option<(usize, usize, BTreeSet<u64>)> {
        if self.is_spent() {
            return None;
        }
        for base in std::iter::once(primary).chain(others.iter().copied()) {
            let trial = &self.trials[base].1;
            let blocked = trial.blocked.iter().filter(|blocked| !blocked.is_covered(covered));
            for input in blocked.flat_map(|blocked| &blocked.inputs) {
                if !tried.contains(&(*input, format!("{base} done"))) {
                    let numbers = trial.compared.get(input).cloned().unwrap_or_default();
                    return Some((base, *input, numbers));
                }
            }
        }
        None
    }

    /// Varies the inputs of suspicious findings until fewer are left.
    fn settle_findings(&mut self, mut primary: usize) -> usize {
        let mut tried = BTreeSet::new();
        loop {
            let suspicious: Vec<usize> = {
                let trial = &self.trials[primary].1;
                let direct = trial.suspicious().flat_map(|(_, inputs)| inputs.iter().copied());
                let by_branches = trial.compared.keys().copied().filter(|_| !trial.by_control.is_empty());
                direct.chain(by_branches).collect()
            };
            let next = suspicious.into_iter().find(|input| !tried.contains(&(primary, *input)));
            let Some(input) = next.filter(|_| !self.is_spent()) else { return primary };
            tried.insert((primary, input));
            let numbers = self.trials[primary].1.compared.get(&input).cloned().unwrap_or_default();
            for candidate in self.candidates(primary, input, &numbers) {
                let options = self.with_candidate(primary, input, &candidate);
                let Some(trial) = self.try_inputs(options) else { break };
                if rank(&self.trials[trial].1) > rank(&self.trials[primary].1) {
                    primary = trial;
                    break;
                }
            }
        }
    }

    /// Binds each address to a buffer of its own.
    fn bind_addresses(&self, options: &mut AnalysisOptions) {
        let addresses: Vec<AssumedInput> =
            options.assumed.iter().filter(|input| input.kind == InputKind::Address).cloned().collect();
        for (number, input) in addresses.iter().enumerate() {
            let at = match input.place {
                InputPlace::Push(offset, _) => AddressTarget::Push(offset),
                InputPlace::Scalar(at, offset, _) => AddressTarget::Buffer(at, offset),
                _ => continue,
            };
            let bytes = fill_bytes("zeros", DEFAULT_BYTES).unwrap_or_default();
            let name = format!("{}{number}", input.name.rsplit('.').next().unwrap_or_default());
            options.addresses.push(AddressInput { name, at, bytes });
        }
    }

    /// Returns options with one number for all scalars, and with contents of buffers and images if `contents`.
    fn uniform_choice(&self, start: &AnalysisOptions, number: u64, contents: bool) -> AnalysisOptions {
        let mut options = start.clone();
        for input in &start.assumed {
            match &input.place {
                InputPlace::Contents(at) => {
                    let word = match input.kind {
                        _ if !contents || self.atomics.contains(at) => "zeros",
                        InputKind::Float(_) => "floats",
                        _ => "iota",
                    };
                    set_contents(&mut options, *at, word);
                }
                InputPlace::Image(at) if contents => {
                    let size = default_size(self.module, *at);
                    let texels = TexelInput::Word("iota".to_owned());
                    if let Some(size) = size {
                        options.images.insert(*at, ImageInput { size, levels: 1, texels });
                    }
                }
                InputPlace::Push(..) | InputPlace::Scalar(..) if number > 0 => {
                    let in_atomic =
                        matches!(input.place, InputPlace::Scalar(at, ..) if self.atomics.contains(&at));
                    if !in_atomic {
                        set_scalar(&mut options, input, scalar_bits(input.kind, number));
                    }
                }
                InputPlace::Push(..)
                | InputPlace::Scalar(..)
                | InputPlace::Length(_)
                | InputPlace::Image(_)
                | InputPlace::Constant(_) => {}
            }
        }
        options
    }

    /// Returns candidate values for an input.
    fn candidates(&self, base: usize, input: usize, compared: &BTreeSet<u64>) -> Vec<Candidate> {
        let options = &self.trials[base].0;
        let Some(assumed) = options.assumed.get(input) else { return Vec::new() };
        let mut all: Vec<Candidate> = match (&assumed.place, assumed.kind) {
            (InputPlace::Contents(_), _) => {
                ["iota", "floats", "random", "zeros"].map(|word| Candidate::Fill(word.to_owned())).into()
            }
            (InputPlace::Image(_), _) => {
                ["iota", "floats", "zeros"].map(|word| Candidate::Fill(word.to_owned())).into()
            }
            (InputPlace::Length(_), _) => {
                [self.local * 4, self.local * 16, 1 << 20].map(Candidate::Bits).into()
            }
            (_, InputKind::Float(32)) => {
                let near = compared.iter().flat_map(|bits| {
                    let number = f32::from_bits(*bits as u32);
                    [number, number + 1.0, number - 1.0]
                });
                let all = near.filter(|number| number.is_finite()).chain([1.0, 0.0, -1.0, 0.5, 2.0, 100.0]);
                all.map(|number| Candidate::Bits(u64::from(number.to_bits()))).collect()
            }
            (_, InputKind::Boolean) => vec![Candidate::Bits(1), Candidate::Bits(0)],
            _ => {
                let [x, y, z] = self.sizes;
                let near = compared.iter().rev().take(3).chain(compared.iter().take(3));
                let near = near.flat_map(|number| [number.wrapping_add(1), *number, number.wrapping_sub(1)]);
                let generic = [x, x * y, y, z, self.local, x * y * z, 1, 2, 4, 16, 0, 256, 4096];
                near.chain(generic).map(Candidate::Bits).collect()
            }
        };
        let mut seen = BTreeSet::new();
        all.retain(|candidate| seen.insert(format!("{candidate:?}")));
        all.truncate(MAX_CANDIDATES);
        all
    }

    fn with_candidate(&self, base: usize, input: usize, candidate: &Candidate) -> AnalysisOptions {
        let mut options = self.trials[base].0.clone();
        let Some(assumed) = options.assumed.get(input).cloned() else { return options };
        match (&assumed.place, candidate) {
            (InputPlace::Contents(at), Candidate::Fill(word)) => set_contents(&mut options, *at, word),
            (InputPlace::Image(at), Candidate::Fill(word)) => {
                let known = options.images.get(at).map(|image| image.size);
                if let Some(size) = known.or_else(|| default_size(self.module, *at)) {
                    let texels = TexelInput::Word(word.clone());
                    options.images.insert(*at, ImageInput { size, levels: 1, texels });
                }
            }
            (InputPlace::Length(at), Candidate::Bits(bytes)) => {
                let mut contents = options.buffers.get(at).cloned().unwrap_or_default();
                contents.resize(*bytes as usize, 0);
                options.buffers.insert(*at, contents);
            }
            (InputPlace::Constant(id), Candidate::Bits(bits)) => {
                options.specialization.insert(*id, *bits);
            }
            (_, Candidate::Bits(bits)) => set_scalar(&mut options, &assumed, *bits),
            _ => {}
        }
        options
    }
}

#[derive(Clone, Debug)]
enum Candidate {
    Bits(u64),
    Fill(String),
}

/// Returns true if a walk reached a block that is not covered.
fn adds(reached: &[bool], covered: &[bool]) -> bool {
    reached.iter().enumerate().any(|(at, reached)| *reached && !covered.get(at).copied().unwrap_or_default())
}

fn scalar_bits(kind: InputKind, number: u64) -> u64 {
    match kind {
        InputKind::Float(32) => u64::from(1_f32.to_bits()),
        InputKind::Float(64) => 1_f64.to_bits(),
        // One in half precision.
        InputKind::Float(_) => 0x3c00,
        InputKind::Boolean => 1,
        InputKind::Integer | InputKind::Address | InputKind::Other => number,
    }
}

fn set_scalar(options: &mut AnalysisOptions, input: &AssumedInput, bits: u64) {
    if input.kind == InputKind::Address {
        return;
    }
    match input.place {
        InputPlace::Push(offset, bytes) => {
            options.push.extend((offset..).zip(bits.to_le_bytes().into_iter().take(bytes as usize)));
        }
        InputPlace::Scalar(at, offset, bytes) => {
            let Some(contents) = options.buffers.get_mut(&at) else { return };
            let place = (offset as usize..).zip(bits.to_le_bytes()).take(bytes as usize);
            for (at, byte) in place {
                if let Some(place) = contents.get_mut(at) {
                    *place = byte;
                }
            }
        }
        InputPlace::Contents(_) | InputPlace::Length(_) | InputPlace::Image(_) | InputPlace::Constant(_) => {}
    }
}

/// Fills a buffer, apart from the scalars that are inputs of their own.
fn set_contents(options: &mut AnalysisOptions, at: Binding, word: &str) {
    let Some(known) = options.buffers.get(&at).cloned() else { return };
    let mut contents = fill_bytes(word, known.len() as u64).unwrap_or_default();
    for input in &options.assumed {
        if let InputPlace::Scalar(of, offset, bytes) = input.place
            && of == at
        {
            let range = offset as usize..offset as usize + bytes as usize;
            if let (Some(place), Some(own)) = (contents.get_mut(range.clone()), known.get(range)) {
                place.copy_from_slice(own);
            }
        }
    }
    options.buffers.insert(at, contents);
}

fn default_size(module: &SpirvModule, at: Binding) -> Option<[u32; 3]> {
    let (_, variable) = module.variables.iter().find(|(id, variable)| {
        let decorations = module.decorations_of(**id);
        variable.class == StorageClass::UniformConstant
            && (decorations.set.unwrap_or(0), decorations.binding) == (at.0, Some(at.1))
    })?;
    let mut ty = module.element_type(variable.ty);
    if let Some(SpirvType::Handle(Op::TypeSampledImage)) = module.types.get(&ty) {
        ty = *module.handles.get(&ty)?.first()?;
    }
    let handle = module.handles.get(&ty)?;
    let [_, dimension, _, arrayed, ..] = handle[..] else { return None };
    Some(crate::grid::default_image(dimension, arrayed != 0).size)
}
