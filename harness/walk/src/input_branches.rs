//! Records the assumed inputs that decide branches, addresses and operands.

use arithmetic::Instruction;
use rspirv::spirv::Op;
use spirv_reader::{SpirvOperation, switch_cases};

use super::compute::flatten_components;
use super::launch_taint::reduces_positions;
use super::program::DecodedInstruction;
use super::state::{Interpreter, InvocationCtx};
use super::step::Step;
use super::value::{ConcreteValue, INPUT_MASK, LAST_VALUE, SCHEDULE_DEPENDENT, Taint};

/// Executions of a branch whose comparisons are recorded.
const MAX_EXECUTIONS: u32 = 512;
/// Upper bound on nested logical operations of a condition.
const MAX_DEPTH: u32 = 4;
/// Positions with more bits are beyond the grids of applications.
const MAX_KEPT_BITS: u32 = 24;

impl Interpreter<'_> {
    /// Records that the current instruction uses a value that depends on assumed inputs.
    pub(super) fn note_inputs(&mut self, ctx: &InvocationCtx<'_>, taint: Taint) {
        if taint & INPUT_MASK != 0 {
            let site = self.current_site(&ctx.workgroup.invocations[ctx.index]);
            *self.influence.sites.entry(site).or_default() |= taint & INPUT_MASK;
        }
    }

    /// Records a branch, and the numbers that its condition compares assumed inputs with.
    ///
    /// `cases` are those of a switch.
    pub(super) fn note_branch(&mut self, ctx: &InvocationCtx<'_>, condition: u32, cases: &[u32]) -> Step<()> {
        let condition_taint = self.value_of_id(ctx, condition)?.combined_taint();
        let taint = condition_taint & INPUT_MASK;
        if taint == 0 || self.is_probing() {
            return Ok(());
        }
        let site = self.current_site(&ctx.workgroup.invocations[ctx.index]);
        self.influence.control |= taint;
        // A condition that compares an input with a counter decides which invocation continues, and
        // so how invocations synchronize.
        if condition_taint & (SCHEDULE_DEPENDENT | LAST_VALUE) != 0 {
            self.influence.synchronization |= taint;
        }
        *self.influence.branches.entry(site).or_default() |= taint;
        if self.setup.launch_taint.is_tracked() && cases.is_empty() {
            let holds = self.bits_of_id(ctx, condition)?.0 != 0;
            let workgroup = ctx.workgroup.invocations[ctx.index].identity.workgroup_index;
            let workgroups_with_outcome =
                self.influence.outcomes.entry((site, holds)).or_insert((workgroup, false));
            workgroups_with_outcome.1 |= workgroups_with_outcome.0 != workgroup;
        }
        if !self.influence.records_numbers {
            return Ok(());
        }
        let executed = self.influence.executions.entry((site, taint)).or_default();
        *executed += 1;
        if *executed <= MAX_EXECUTIONS {
            let literals = switch_cases(cases, self.program.number_bits(condition));
            let literals: Vec<u64> = literals.map(|case| case.literal).collect();
            match literals.is_empty() {
                true => self.note_comparison(ctx, condition, 0),
                false => self.influence.add_numbers(taint, &literals),
            }
        }
        Ok(())
    }

    /// In a probe of the launch, records the numbers by which a computation reduces positions. The operands and the
    /// result have `bits`.
    pub(super) fn note_reduction(
        &mut self,
        instruction: Instruction,
        operands: &[ConcreteValue],
        bits: [u32; 2],
    ) {
        if let Some(kept) = kept_bits(instruction, operands, bits) {
            let taint = operands.first().map_or(0, ConcreteValue::combined_taint);
            if kept <= MAX_KEPT_BITS {
                self.influence.add_reductions(taint & INPUT_MASK, &[1 << kept]);
            }
            return;
        }
        let ([left, right, ..], true) = (operands, reduces_positions(instruction)) else { return };
        // Of a shift of 32 bits, the number of results.
        let number_of = |other: u64| match instruction {
            Instruction::Core(Op::ShiftRightLogical) => 1 << 32_u32.saturating_sub(other as u32),
            _ => other,
        };
        // The upper bound of a clamp is its third operand.
        let bound = operands.get(2).unwrap_or(right);
        let [mut one, mut other] = [const { Vec::new() }; 2];
        flatten_components(left, &mut one);
        flatten_components(bound, &mut other);
        for (one, other) in one.iter().zip(&other) {
            for (position, number) in [(one, other), (other, one)] {
                let taint = position.1 & !number.1 & INPUT_MASK;
                if taint != 0 {
                    self.influence.add_reductions(taint, &[number_of(number.0)]);
                }
            }
        }
    }

    /// In a probe of the launch, records the numbers with which the condition of a selection compares positions.
    pub(super) fn note_selection(&mut self, ctx: &InvocationCtx<'_>, condition: u32) {
        let compared = std::mem::take(&mut self.influence.compared);
        self.note_comparison(ctx, condition, 0);
        let found = std::mem::replace(&mut self.influence.compared, compared);
        for (input, numbers) in found {
            self.influence.reductions.entry(input).or_default().extend(numbers);
        }
    }

    fn note_comparison(&mut self, ctx: &InvocationCtx<'_>, condition: u32, depth: u32) {
        let Some(frame) = ctx.workgroup.invocations[ctx.index].frames.last() else { return };
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
                let stored = |inst: &DecodedInstruction<'_>| match inst.operation {
                    SpirvOperation::Store { pointer: to, value, .. } if to == pointer => Some(value),
                    _ => None,
                };
                code.iter().filter_map(stored).for_each(|value| self.note_comparison(ctx, value, depth + 1));
                return;
            }
            SpirvOperation::Phi { sources } if depth < MAX_DEPTH => {
                sources.iter().for_each(|[value, _]| self.note_comparison(ctx, *value, depth + 1));
                return;
            }
            _ => return,
        };
        match instruction {
            Instruction::Core(Op::LogicalAnd | Op::LogicalOr | Op::LogicalNot | Op::Any | Op::All)
                if depth < MAX_DEPTH =>
            {
                operands.iter().for_each(|id| self.note_comparison(ctx, *id, depth + 1));
            }
            _ => {
                let [left, right] = operands else { return };
                let sides = [left, right].map(|id| {
                    let mut parts = Vec::new();
                    if let Ok(value) = self.value_of_id(ctx, *id) {
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

/// Returns the lower bits of its operand that the result of a conversion, shift or bit field depends on.
fn kept_bits(instruction: Instruction, operands: &[ConcreteValue], [from, bits]: [u32; 2]) -> Option<u32> {
    let Instruction::Core(op) = instruction else { return None };
    let number = |at: usize| {
        let mut parts = Vec::new();
        flatten_components(operands.get(at)?, &mut parts);
        parts.first().map(|(number, _)| *number as u32)
    };
    Some(match op {
        Op::UConvert | Op::SConvert => {
            if bits < from {
                bits
            } else {
                u32::MAX
            }
        }
        // The bits of the significand.
        Op::ConvertUToF | Op::ConvertSToF => {
            if bits == 16 {
                11
            } else {
                u32::MAX
            }
        }
        Op::ShiftLeftLogical => bits.saturating_sub(number(1)?),
        Op::BitFieldUExtract | Op::BitFieldSExtract => number(1)?.saturating_add(number(2)?),
        _ => return None,
    })
}
