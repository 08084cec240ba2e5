//! Taint analysis of assumed inputs: which branches, addresses and divisors they decide.
//!
//! Each input that no option supplies has a taint bit ([`super::value::INPUT_MASK`]). The walk records the
//! sites where such a value decides something, and the numbers that it is compared with. Explicit flows are
//! tracked exactly, and implicit flows only as the union of all branches so far.

use std::collections::{BTreeMap, BTreeSet};

use arithmetic::Instruction;
use rspirv::spirv::Op;
use rustc_hash::FxHashMap;
use spirv_reader::{SpirvOperation, switch_cases};

use super::compute::flatten_components;
use super::machine::{Interpreter, InvocationCtx, Step};
use super::program::Inst;
use super::trial::depends_on_control;
use super::value::{INPUT_MASK, SCHEDULE_DEPENDENT, Taint, inputs_in};
use crate::assumed::{AssumedInput, InputPlace, OverrideValue};
use crate::lift::FindingKind;

/// Upper bound on the numbers that are recorded for an input.
const MAX_NUMBERS: usize = 48;
/// Executions of a branch whose comparisons are recorded.
const MAX_EXECUTIONS: u32 = 512;
/// Upper bound on nested logical operations of a condition.
const MAX_DEPTH: u32 = 4;

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
    /// The numbers that values of each input are compared with.
    pub compared: BTreeMap<usize, BTreeSet<u64>>,
    /// In a probe of the launch, the workgroups that saw each outcome of a branch: the first, and true if others
    /// followed.
    pub outcomes: BTreeMap<(u32, bool), (u32, bool)>,
    /// The inputs of the addresses and operands at a site.
    sites: FxHashMap<u32, Taint>,
    /// The executions of each branch, by site and inputs: of few inputs in most invocations and of more in the rest.
    executions: FxHashMap<(u32, Taint), u32>,
    /// The position of the instruction that defines an id, by function and id.
    definitions: FxHashMap<(usize, u32), Option<usize>>,
}

impl InputInfluence {
    /// Returns the influence of inputs before the first step.
    pub fn of_inputs(assumed: &[AssumedInput]) -> InputInfluence {
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
    pub fn of_site(&self, site: u32) -> Taint {
        self.sites.get(&site).copied().unwrap_or(0)
    }

    /// Returns the inputs that decided branches, if a finding of this kind may be due to them.
    pub fn control_of(&self, kind: FindingKind) -> Vec<usize> {
        // A counter that is compared with an input orders invocations only for the right value: the last
        // workgroup needs the number of workgroups.
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
        for (input, numbers) in &other.compared {
            self.compared.entry(*input).or_default().extend(numbers);
        }
    }

    fn add_numbers(&mut self, taint: Taint, numbers: &[u64]) {
        for input in inputs_in(taint, self.count) {
            let known = self.compared.entry(input).or_default();
            known.extend(numbers);
            // The smallest and the largest numbers are the boundaries.
            while known.len() > MAX_NUMBERS {
                let middle = known.iter().nth(MAX_NUMBERS / 2).copied().unwrap_or_default();
                known.remove(&middle);
            }
        }
    }
}

impl Interpreter<'_> {
    /// Records that the current instruction uses a value that depends on assumed inputs.
    pub(super) fn note_inputs(&mut self, here: &InvocationCtx<'_>, taint: Taint) {
        if taint & INPUT_MASK != 0 {
            let site = self.current_site(&here.workgroup.invocations[here.index]);
            *self.influence.sites.entry(site).or_default() |= taint & INPUT_MASK;
        }
    }

    /// Records a branch, and the numbers that its condition compares assumed inputs with.
    ///
    /// `cases` are those of a switch.
    pub(super) fn note_branch(
        &mut self,
        here: &InvocationCtx<'_>,
        condition: u32,
        cases: &[u32],
    ) -> Step<()> {
        let whole = self.value_of_id(here, condition)?.combined_taint();
        let taint = whole & INPUT_MASK;
        if taint == 0 || self.is_probing() {
            return Ok(());
        }
        let site = self.current_site(&here.workgroup.invocations[here.index]);
        self.influence.control |= taint;
        // A condition that compares an input with a counter decides which invocation continues, and
        // so how invocations synchronize.
        if whole & SCHEDULE_DEPENDENT != 0 {
            self.influence.synchronization |= taint;
        }
        *self.influence.branches.entry(site).or_default() |= taint;
        if self.setup.launch_taint.is_tracked() && cases.is_empty() {
            let holds = self.bits_of_id(here, condition)?.0 != 0;
            let workgroup = here.workgroup.invocations[here.index].identity.workgroup_index;
            let seen = self.influence.outcomes.entry((site, holds)).or_insert((workgroup, false));
            seen.1 |= seen.0 != workgroup;
        }
        let executed = self.influence.executions.entry((site, taint)).or_default();
        *executed += 1;
        if *executed <= MAX_EXECUTIONS {
            let literals = switch_cases(cases, self.program.number_bits(condition));
            let literals: Vec<u64> = literals.map(|case| case.literal).collect();
            match literals.is_empty() {
                true => self.note_comparison(here, condition, 0),
                false => self.influence.add_numbers(taint, &literals),
            }
        }
        Ok(())
    }

    fn note_comparison(&mut self, here: &InvocationCtx<'_>, condition: u32, depth: u32) {
        let Some(frame) = here.workgroup.invocations[here.index].frames.last() else { return };
        let code = &self.program.functions[frame.function].code;
        let key = (frame.function, condition);
        let at = *self
            .influence
            .definitions
            .entry(key)
            // A linear search per condition, so its result is stored.
            .or_insert_with(|| code.iter().position(|inst| inst.raw.result == condition));
        let Some(inst) = at.and_then(|at| code.get(at)) else { return };
        let (instruction, operands) = match inst.operation {
            SpirvOperation::Compute { instruction, operands } => (instruction, operands),
            // The comparison was stored in a variable, or made before the paths met.
            SpirvOperation::Load { pointer, .. } if depth < MAX_DEPTH => {
                let stored = |inst: &Inst<'_>| match inst.operation {
                    SpirvOperation::Store { pointer: to, value, .. } if to == pointer => Some(value),
                    _ => None,
                };
                code.iter().filter_map(stored).for_each(|value| self.note_comparison(here, value, depth + 1));
                return;
            }
            SpirvOperation::Phi { sources } if depth < MAX_DEPTH => {
                sources.iter().for_each(|[value, _]| self.note_comparison(here, *value, depth + 1));
                return;
            }
            _ => return,
        };
        match instruction {
            Instruction::Core(Op::LogicalAnd | Op::LogicalOr | Op::LogicalNot | Op::Any | Op::All)
                if depth < MAX_DEPTH =>
            {
                operands.iter().for_each(|id| self.note_comparison(here, *id, depth + 1));
            }
            _ => {
                let [left, right] = operands else { return };
                let sides = [left, right].map(|id| {
                    let mut parts = Vec::new();
                    if let Ok(value) = self.value_of_id(here, *id) {
                        flatten_components(&value, &mut parts);
                    }
                    parts
                });
                for (one, other) in sides[0].iter().zip(&sides[1]) {
                    // A number that depends on the same input is not a boundary for it.
                    self.influence.add_numbers(one.1 & !other.1, &[other.0]);
                    self.influence.add_numbers(other.1 & !one.1, &[one.0]);
                }
            }
        }
    }
}
