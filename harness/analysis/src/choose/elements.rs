//! Trials with other elements of buffers than the search has chosen, and races whatever the elements are.

use std::collections::BTreeSet;

use rspirv::spirv::StorageClass;
use spirv_reader::{SpirvConstant, SpirvModule, SpirvOperation, SpirvType};

use super::search::{Candidate, InputSearch, scalar_bits, set_contents};
use entry_point::AnalysisOptions;
use entry_point::input_place::{AssumedInput, InputKind, InputPlace};
use walk::{FindingKey, GridFinding, Trial};

/// Fill words whose elements differ, for floats and for other numbers, and scalars as a share of the invocations.
const DISTINCT_VALUES: [(&str, &str, u64); 2] = [("floats", "random", 2), ("iota", "iota", 5)];

impl InputSearch<'_> {
    /// Tries contents in which elements of integer contents are equal, as keys and indices may be; returns the first trial
    /// with a race of keyed atomics that no other trial has.
    ///
    /// Adjacent elements are in order, as offsets are. But invocations that take the minimum of a place one after the other
    /// pass only if their numbers fall.
    pub(super) fn try_coinciding_contents(&mut self, base: usize, others: &[usize]) -> Option<usize> {
        let words =
            ["pairs", "small"].into_iter().take(if self.conventions.minima.is_empty() { 1 } else { 2 });
        let mut shown = None;
        for word in words {
            let options = self.with_integer_contents(base, word)?;
            let Some(at) = self.try_inputs(options) else { break };
            let trial = &self.trials[at].1;
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let has_new_race = trial.findings.iter().any(|(key, found)| found.is_keyed && !is_known(key));
            if has_new_race && trial.is_complete && self.is_conventional(at) {
                shown = shown.or(Some(at));
            }
        }
        shown
    }

    fn with_integer_contents(&self, base: usize, word: &str) -> Option<AnalysisOptions> {
        let mut options = self.trials[base].0.clone();
        let is_integer = |input: &&AssumedInput| input.kind == InputKind::Integer;
        let mut changed = false;
        for input in options.assumed.clone().iter().filter(is_integer) {
            if let InputPlace::Contents(at) = input.place
                && !self.atomics.contains(&at)
            {
                set_contents(&mut options, at, word);
                changed = true;
            }
        }
        changed.then_some(options)
    }

    /// Returns a trial in which the elements that decide branches differ, if invocations race only then.
    ///
    /// Equal elements let a sorting network reach all code without an exchange. A race at places that inputs decide
    /// does not count, nor do writes alone, as the elements may be a permutation or mark one invocation.
    pub(super) fn try_distinct_elements(&mut self, others: &[usize]) -> Option<usize> {
        let base = *others.first()?;
        let (options, trial) = &self.trials[base];
        let branch_inputs: BTreeSet<usize> = trial.branches.values().flatten().copied().collect();
        let decides_branch = |at: &usize| branch_inputs.contains(at) && !self.conventions.inputs.contains(at);
        // Where the language defines the collision of equal stores, equal elements hide a race.
        let counts_stores = self.module.defines_collisions();
        let is_element = |input: &AssumedInput| match input.place {
            InputPlace::Contents(at) => !self.atomics.contains(&at),
            InputPlace::Image(_) => true,
            InputPlace::Push(..) | InputPlace::Scalar(..) if counts_stores && input.is_number() => true,
            _ => input.kind == InputKind::Address,
        };
        let assumed = options.assumed.iter().enumerate();
        let changed: Vec<AssumedInput> = assumed
            .filter(|(at, input)| (counts_stores || decides_branch(at)) && is_element(input))
            .map(|(_, input)| input.clone())
            .collect();
        if changed.is_empty() {
            return None;
        }
        let (options, suspicious) = (options.clone(), trial.suspicious_findings().count());
        let invocations = self.invocation_counts.iter().copied().max().unwrap_or(1);
        for (floats, numbers, share) in DISTINCT_VALUES {
            let mut options = options.clone();
            for input in &changed {
                let is_float =
                    matches!(input.kind, InputKind::Float(_)) || matches!(input.place, InputPlace::Image(_));
                let number = invocations / share;
                let candidate = match input.place {
                    InputPlace::Push(..) | InputPlace::Scalar(..) if input.is_number() => {
                        Candidate::Bits(scalar_bits(input.kind, (number, number as f32)))
                    }
                    _ => Candidate::Fill(if is_float { floats } else { numbers }.to_owned()),
                };
                self.set_input(&mut options, input, &candidate);
            }
            let Some(at) = self.try_inputs(options) else { continue };
            let trial = &self.trials[at].1;
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let has_new_race = trial.findings.iter().any(|(key, found)| {
                let is_certain = found.inputs.is_empty() && found.control.is_empty();
                key.0.is_race() && (found.has_read || counts_stores) && is_certain && !is_known(key)
            });
            let is_regular = trial.is_complete && self.is_conventional(at);
            if has_new_race && is_regular && trial.suspicious_findings().count() <= suspicious {
                return Some(at);
            }
        }
        None
    }
}

/// Returns true if two of the writes of a race are to one element whatever the inputs are: more invocations of a workgroup
/// than its array has elements execute a store that no loop repeats.
pub(super) fn has_fewer_elements(
    module: &SpirvModule,
    found: &GridFinding,
    options: &AnalysisOptions,
    trial: &Trial,
) -> bool {
    let (Ok(entry), Some(site)) = (module.find_entry(options.entry.as_deref()), found.sites.first()) else {
        return false;
    };
    let Some(function) = module.functions.get(&entry.function) else { return false };
    let before = module.functions.iter().take_while(|(id, _)| **id != entry.function);
    let first_site: usize = before.map(|(_, function)| function.code.len()).sum();
    let at = (*site as usize).wrapping_sub(first_site);
    let is_one_store = found.kind.is_race() && found.sites.iter().all(|other| other == site);
    let store = function.code.get(at).filter(|_| is_one_store).map(|one| module.operation(one));
    let Some(SpirvOperation::Store { pointer, .. }) = store else { return false };
    let chain = function.code.iter().find(|one| one.result == pointer).map(|chain| module.operation(chain));
    let Some(SpirvOperation::AccessChain { base, indices: [_], .. }) = chain else { return false };
    let array = module.variables.get(&base).filter(|variable| variable.class == StorageClass::Workgroup);
    let length = match array.and_then(|variable| module.types.get(&variable.ty)) {
        Some(SpirvType::Array { length, .. }) => module.constants.get(length),
        _ => None,
    };
    let Some((_, SpirvConstant::Scalar(length))) = length else { return false };
    let [x, y, z] = options.grid.unwrap_or([1; 3]).map(u64::from);
    let workgroups = if options.workgroups.is_empty() { x * y * z } else { options.workgroups.len() as u64 };
    !lint::is_in_loop(module, function, at)
        && u64::from(trial.fewest_entries(&found.blocks)) > length.saturating_mul(workgroups)
}
