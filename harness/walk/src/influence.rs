//! Taint analysis of assumed inputs: which branches, addresses and divisors they decide.
//!
//! Each input that no option supplies has a taint bit ([`super::value::INPUT_MASK`]). The walk records the
//! sites where such a value decides something, and the numbers that it is compared with. Explicit flows are
//! tracked exactly, and implicit flows only as the union of all branches so far.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::value::{Taint, inputs_in};
use entry_point::FindingKind;
use entry_point::input_place::{AssumedInput, InputPlace, OverrideValue};

/// Upper bound on the numbers that are recorded for an input.
const MAX_NUMBERS: usize = 48;

/// The influence of assumed inputs on a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct InputInfluence {
    /// Number of assumed inputs.
    pub count: usize,
    /// The inputs that the compiler replaced by values, so that no taint tracks them.
    pub overrides: Vec<(usize, OverrideValue)>,
    /// The inputs that decided a branch.
    pub control: Taint,
    /// The inputs that decided a branch together with a value that the schedule decides, such as a counter.
    pub synchronization: Taint,
    /// The branches that inputs decided, by site.
    pub branches: BTreeMap<u32, Taint>,
    /// True if the numbers that inputs are compared with are recorded, as a search for inputs needs them.
    pub records_numbers: bool,
    /// These numbers, by input.
    pub compared: BTreeMap<usize, BTreeSet<u64>>,
    /// In a probe of the launch, the workgroups that saw each outcome of a branch: the first, and true if others
    /// followed.
    pub outcomes: BTreeMap<(u32, bool), (u32, bool)>,
    /// In a probe of the launch, the numbers by which computations reduce positions of each input, such as a
    /// modulus: positions that differ by more may have one result.
    pub reductions: BTreeMap<usize, BTreeSet<u64>>,
    /// The inputs of the addresses and operands at a site.
    pub sites: FxHashMap<u32, Taint>,
    /// The executions of each branch, by site and inputs: most invocations have few inputs, the others more.
    pub executions: FxHashMap<(u32, Taint), u32>,
    /// The position of the instruction that defines an id, by function and id.
    pub definitions: FxHashMap<(usize, u32), Option<usize>>,
}

impl InputInfluence {
    /// Returns the influence of inputs before the first step.
    pub fn for_inputs(assumed: &[AssumedInput]) -> InputInfluence {
        let value = |(index, input): (usize, &AssumedInput)| match &input.place {
            InputPlace::Override(value) => Some((index, value.clone())),
            _ => None,
        };
        let overrides = assumed.iter().enumerate().filter_map(value).collect();
        InputInfluence { count: assumed.len(), overrides, ..InputInfluence::default() }
    }

    /// Returns the inputs that the values or addresses of a finding depend on.
    pub fn inputs_of(&self, kind: FindingKind, taint: Taint) -> Vec<usize> {
        let overrides = self.overrides.iter().filter(|(_, value)| value.may_decide(kind));
        inputs_in(taint, self.count).into_iter().chain(overrides.map(|(index, _)| *index)).collect()
    }

    /// Returns the inputs that an address or operand at a site depends on.
    pub fn inputs_at_site(&self, site: u32) -> Taint {
        self.sites.get(&site).copied().unwrap_or(0)
    }

    /// Returns the inputs that decided branches, if a finding of this kind may be due to them.
    pub fn control_inputs(&self, kind: FindingKind) -> Vec<usize> {
        // A counter that is compared with an input orders invocations only for the right value: the last
        // workgroup must know how many there are.
        let taint = if depends_on_control(kind) {
            self.control
        } else if kind.is_race() {
            self.synchronization
        } else {
            0
        };
        inputs_in(taint, self.count)
    }

    /// Adds what another walk recorded.
    pub fn merge(&mut self, other: &InputInfluence) {
        self.control |= other.control;
        self.synchronization |= other.synchronization;
        for (site, taint) in &other.branches {
            *self.branches.entry(*site).or_default() |= taint;
        }
    }

    pub fn add_numbers(&mut self, taint: Taint, numbers: &[u64]) {
        add_numbers(&mut self.compared, &inputs_in(taint, self.count), numbers);
    }

    /// Records numbers that reduce the positions of inputs.
    pub fn add_reductions(&mut self, taint: Taint, numbers: &[u64]) {
        add_numbers(&mut self.reductions, &inputs_in(taint, self.count), numbers);
    }
}

fn add_numbers(all: &mut BTreeMap<usize, BTreeSet<u64>>, inputs: &[usize], numbers: &[u64]) {
    for input in inputs {
        let known = all.entry(*input).or_default();
        known.extend(numbers);
        // The smallest and the largest numbers are the boundaries.
        while known.len() > MAX_NUMBERS {
            let threshold = known.iter().nth(MAX_NUMBERS / 2).copied().unwrap_or_default();
            known.remove(&threshold);
        }
    }
}

/// Returns true if a finding of this kind may be due to a branch that an input decided.
///
/// A race is one for every input that leads to it, except for inputs that decide how invocations synchronize. An access out of bounds may be due to a count that the real
/// program never has.
fn depends_on_control(kind: FindingKind) -> bool {
    match kind {
        FindingKind::OutOfBounds
        | FindingKind::UninitialisedRead
        | FindingKind::UndefinedBehaviour
        | FindingKind::Hang => true,
        FindingKind::Race
        | FindingKind::Lockstep
        | FindingKind::UnpublishedRead
        | FindingKind::DivergentBarrier
        | FindingKind::Assertion => false,
    }
}
