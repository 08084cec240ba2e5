//! Arithmetic of a wave: all operands are read before any write.

use super::{
    CodeBuilder, HaltReason, WaveState, operand_at, require_constant, scalar_registers_at, unsupported,
    vector_registers_at,
};
use crate::alu::AluOperation;
use crate::code::WaveValue;
use crate::opcode::{CompareRelation, CompareType, Opcode, ScalarOperation, SccEffect, VectorOperation};
use crate::text::{MachineInstruction, MachineOperand, RegisterRange, special};

#[derive(Default)]
struct PendingWrites {
    scalar: Vec<(u16, WaveValue)>,
    /// Register, lane, value.
    vector: Vec<(u16, usize, WaveValue)>,
}

impl PendingWrites {
    fn push_mask(&mut self, registers: RegisterRange, mask: u64) {
        self.scalar.push((registers.first, WaveValue::Constant(mask as u32)));
        if registers.count > 1 {
            self.scalar.push((registers.first + 1, WaveValue::Constant((mask >> 32) as u32)));
        }
    }
}

impl CodeBuilder<'_> {
    pub(super) fn execute_arithmetic(&mut self) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let mut writes = PendingWrites::default();
        for half in [Some(instruction), instruction.dual_half.as_deref()].into_iter().flatten() {
            match half.opcode {
                Opcode::Scalar(operation) => self.execute_scalar(half, operation, &mut writes)?,
                Opcode::Vector(operation) => self.execute_vector(half, operation, &mut writes)?,
                _ => return Err(unsupported("half of a dual instruction")),
            }
        }
        for (register, lane, _) in &writes.vector {
            self.state.check_writable(*register, *lane)?;
        }
        for (register, value) in writes.scalar {
            self.state.write_scalar(register, value)?;
        }
        for (register, lane, value) in writes.vector {
            self.state.write_vector(register, lane, value)?;
        }
        Ok(())
    }

    fn execute_scalar(
        &mut self,
        instruction: &MachineInstruction,
        operation: ScalarOperation,
        writes: &mut PendingWrites,
    ) -> Result<(), HaltReason> {
        let zero = WaveValue::ZERO;
        let source = |builder: &Self, index: usize, word: u16| match instruction.operands.get(index) {
            Some(operand) => builder.scalar_operand(operand, word),
            None => Ok(zero),
        };
        match operation {
            ScalarOperation::Bitwise { alu, wide, sets_scc: flag } => {
                require_operands(instruction, 1 + alu.operand_count())?;
                let destination = scalar_registers_at(instruction, 0)?;
                let mut combined = zero;
                for word in 0..if wide { 2 } else { 1 } {
                    let (a, b) = (source(self, 1, word)?, source(self, 2, word)?);
                    let value = self.compute_value(alu, a, b, zero)?;
                    writes.scalar.push((destination.first + word, value));
                    if flag {
                        combined = self.compute_value(AluOperation::Or, combined, value, zero)?;
                    }
                }
                if flag {
                    writes.scalar.push((special::SCC, combined));
                }
            }
            ScalarOperation::Constant { alu, accumulates } => {
                require_operands(instruction, 2)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let MachineOperand::Number(number) = operand_at(instruction, 1)? else {
                    return Err(unsupported("a constant that is not a number"));
                };
                // The 16-bit constant is sign-extended.
                let constant = WaveValue::Constant(i32::from(*number as i16) as u32);
                let value = if accumulates {
                    let old = self.state.read_scalar(destination.first)?;
                    self.compute_value(alu, old, constant, zero)?
                } else {
                    constant
                };
                writes.scalar.push((destination.first, value));
            }
            ScalarOperation::Sum { subtract, carry_in, signed } => {
                require_operands(instruction, 3)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let (a, b) = (source(self, 1, 0)?, source(self, 2, 0)?);
                let carry = if carry_in { self.state.scc } else { zero };
                let (sum, flag) = if subtract {
                    (AluOperation::Sub3, AluOperation::BorrowSub)
                } else {
                    (AluOperation::Add3, AluOperation::CarryAdd)
                };
                writes.scalar.push((destination.first, self.compute_value(sum, a, b, carry)?));
                // The overflow of signed sums is not computed, so no instruction may use it.
                let flag = if signed { WaveValue::Undefined } else { self.compute_value(flag, a, b, carry)? };
                writes.scalar.push((special::SCC, flag));
            }
            ScalarOperation::Word { alu, scc_effect: flag } => {
                require_operands(instruction, 1 + alu.operand_count())?;
                let destination = scalar_registers_at(instruction, 0)?;
                let (a, b) = (source(self, 1, 0)?, source(self, 2, 0)?);
                let value = self.compute_value(alu, a, b, zero)?;
                writes.scalar.push((destination.first, value));
                match flag {
                    SccEffect::Untouched => {}
                    SccEffect::NotZero => writes.scalar.push((special::SCC, value)),
                    SccEffect::FirstSelected => {
                        let is_first = self.compute_value(AluOperation::Equal, a, value, zero)?;
                        writes.scalar.push((special::SCC, is_first));
                    }
                }
            }
            ScalarOperation::Shift64 { left } => {
                require_operands(instruction, 3)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let (low, high) = (source(self, 1, 0)?, source(self, 1, 1)?);
                let amount = require_constant(source(self, 2, 0)?)? & 63;
                let [low, high] = self.shift_words(low, high, amount, left)?;
                writes.scalar.extend([(destination.first, low), (destination.first + 1, high)]);
                let nonzero = self.compute_value(AluOperation::Or, low, high, zero)?;
                writes.scalar.push((special::SCC, nonzero));
            }
            ScalarOperation::Mask64 => {
                require_operands(instruction, 3)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let (width, start) =
                    (require_constant(source(self, 1, 0)?)?, require_constant(source(self, 2, 0)?)?);
                let mask = ((1_u64 << (width & 63)) - 1) << (start & 63);
                writes.push_mask(destination, mask);
            }
            ScalarOperation::Select { wide } => {
                require_operands(instruction, 3)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let source_index = if self.decide_nonzero(self.state.scc)? { 1 } else { 2 };
                for word in 0..if wide { 2 } else { 1 } {
                    writes.scalar.push((destination.first + word, source(self, source_index, word)?));
                }
            }
            ScalarOperation::Compare { relation, kind } => {
                require_operands(instruction, 2)?;
                let words =
                    |builder: &Self, place| Ok([source(builder, place, 0)?, source(builder, place, 1)?]);
                let narrow = !matches!(kind, CompareType::Unsigned64 | CompareType::Signed64);
                let low = |builder: &Self, place| Ok([source(builder, place, 0)?, zero]);
                let (a, b) =
                    if narrow { (low(self, 0)?, low(self, 1)?) } else { (words(self, 0)?, words(self, 1)?) };
                let truth = self.compare_values(relation, kind, a, b)?;
                writes.scalar.push((special::SCC, truth));
            }
            ScalarOperation::TestBit { set } => {
                require_operands(instruction, 2)?;
                let (value, bit) = (source(self, 0, 0)?, source(self, 1, 0)?);
                let shifted = self.compute_value(AluOperation::ShiftRight, value, bit, zero)?;
                let one = self.compute_value(AluOperation::And, shifted, WaveValue::Constant(1), zero)?;
                let truth = if set {
                    one
                } else {
                    self.compute_value(AluOperation::Xor, one, WaveValue::Constant(1), zero)?
                };
                writes.scalar.push((special::SCC, truth));
            }
            ScalarOperation::SaveExec { alu, wide } => {
                require_operands(instruction, 2)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let count = if wide { 2 } else { 1 };
                let exec = self.state.read_mask(special::EXEC, count)?;
                let mut operand = u64::from(require_constant(source(self, 1, 0)?)?);
                if wide {
                    operand |= u64::from(require_constant(source(self, 1, 1)?)?) << 32;
                }
                let half =
                    |shift: u32| u64::from(alu.apply((operand >> shift) as u32, (exec >> shift) as u32, 0));
                let result = half(0) | if wide { half(32) << 32 } else { 0 };
                let result = result & self.state.participating_mask();
                writes.push_mask(RegisterRange { first: destination.first, count }, exec);
                writes.push_mask(RegisterRange { first: special::EXEC, count }, result);
                writes.scalar.push((special::SCC, WaveValue::Constant(u32::from(result != 0))));
            }
        }
        Ok(())
    }

    fn shift_words(
        &mut self,
        low: WaveValue,
        high: WaveValue,
        amount: u32,
        left: bool,
    ) -> Result<[WaveValue; 2], HaltReason> {
        let zero = WaveValue::ZERO;
        if let (WaveValue::Constant(low), WaveValue::Constant(high)) = (low, high) {
            let value = u64::from(low) | u64::from(high) << 32;
            let value = if left { value << amount } else { value >> amount };
            return Ok([WaveValue::Constant(value as u32), WaveValue::Constant((value >> 32) as u32)]);
        }
        let shift = WaveValue::Constant(amount & 31);
        Ok(match (left, amount >= 32) {
            (true, true) => [zero, self.compute_value(AluOperation::ShiftLeft, low, shift, zero)?],
            (false, true) => [self.compute_value(AluOperation::ShiftRight, high, shift, zero)?, zero],
            (false, false) => {
                let joined = self.compute_value(AluOperation::AlignBit, high, low, shift)?;
                [joined, self.compute_value(AluOperation::ShiftRight, high, shift, zero)?]
            }
            (true, false) => {
                let right_shift = WaveValue::Constant(32 - (amount & 31));
                let joined = if amount == 0 {
                    high
                } else {
                    self.compute_value(AluOperation::AlignBit, high, low, right_shift)?
                };
                [self.compute_value(AluOperation::ShiftLeft, low, shift, zero)?, joined]
            }
        })
    }

    /// Returns the truth of a comparison as 0 or 1; it may depend on loaded values.
    fn compare_values(
        &mut self,
        relation: CompareRelation,
        kind: CompareType,
        a: [WaveValue; 2],
        b: [WaveValue; 2],
    ) -> Result<WaveValue, HaltReason> {
        let (zero, one) = (WaveValue::ZERO, WaveValue::Constant(1));
        let (swap, negate, equal) = match relation {
            CompareRelation::Equal => (false, false, true),
            CompareRelation::NotEqual => (false, true, true),
            CompareRelation::Less => (false, false, false),
            CompareRelation::GreaterOrEqual => (false, true, false),
            CompareRelation::Greater => (true, false, false),
            CompareRelation::LessOrEqual => (true, true, false),
        };
        let (a, b) = if swap { (b, a) } else { (a, b) };
        let truth = match (kind, equal) {
            (CompareType::Unsigned | CompareType::Signed, true) => {
                self.compute_value(AluOperation::Equal, a[0], b[0], zero)?
            }
            (CompareType::Unsigned, false) => {
                self.compute_value(AluOperation::LessUnsigned, a[0], b[0], zero)?
            }
            (CompareType::Signed, false) => self.compute_value(AluOperation::LessSigned, a[0], b[0], zero)?,
            (CompareType::Unsigned64 | CompareType::Signed64, true) => {
                let low = self.compute_value(AluOperation::Equal, a[0], b[0], zero)?;
                let high = self.compute_value(AluOperation::Equal, a[1], b[1], zero)?;
                self.compute_value(AluOperation::And, low, high, zero)?
            }
            (CompareType::Unsigned64 | CompareType::Signed64, false) => {
                let less = if kind == CompareType::Signed64 {
                    AluOperation::LessSigned
                } else {
                    AluOperation::LessUnsigned
                };
                let low = self.compute_value(AluOperation::LessUnsigned, a[0], b[0], zero)?;
                let same = self.compute_value(AluOperation::Equal, a[1], b[1], zero)?;
                let high = self.compute_value(less, a[1], b[1], zero)?;
                let low = self.compute_value(AluOperation::And, same, low, zero)?;
                self.compute_value(AluOperation::Or, low, high, zero)?
            }
            (CompareType::Float, true) => self.compute_value(AluOperation::EqualFloat, a[0], b[0], zero)?,
            (CompareType::Float, false) if negate => {
                // With NaN, not less is different from greater or equal.
                let [a, b] = [require_constant(a[0])?, require_constant(b[0])?].map(f32::from_bits);
                return Ok(WaveValue::Constant(u32::from(a >= b)));
            }
            (CompareType::Float, false) => self.compute_value(AluOperation::LessFloat, a[0], b[0], zero)?,
        };
        if negate { self.compute_value(AluOperation::Xor, truth, one, zero) } else { Ok(truth) }
    }

    fn execute_vector(
        &mut self,
        instruction: &MachineInstruction,
        operation: VectorOperation,
        writes: &mut PendingWrites,
    ) -> Result<(), HaltReason> {
        let zero = WaveValue::ZERO;
        let active = self.state.active_lanes()?;
        let source = |builder: &mut Self, index: usize, word: u16, lane: usize| match instruction
            .operands
            .get(index)
        {
            Some(operand) => builder.lane_operand(operand, word, lane),
            None => Ok(zero),
        };
        match operation {
            VectorOperation::Word { alu, reverse } => {
                require_operands(instruction, 1 + alu.operand_count())?;
                let (alu, write_mask) = apply_byte_selection(alu, instruction)?;
                let (register, write_mask) = match operand_at(instruction, 0)? {
                    MachineOperand::Half { register, high: false } => (*register, Some(0xffff)),
                    MachineOperand::Vector(registers) => (registers.first, write_mask),
                    other => return Err(unsupported(format!("operand {other:?}"))),
                };
                for lane in active {
                    let (mut a, mut b) = (source(self, 1, 0, lane)?, source(self, 2, 0, lane)?);
                    if reverse {
                        (a, b) = (b, a);
                    }
                    let c = source(self, 3, 0, lane)?;
                    let mut value = self.compute_value(alu, a, b, c)?;
                    if let Some(mask) = write_mask {
                        // The rest of the register is preserved.
                        let old = self.state.read_vector(register, lane)?;
                        value =
                            self.compute_value(AluOperation::Insert, WaveValue::Constant(mask), value, old)?;
                    }
                    writes.vector.push((register, lane, value));
                }
            }
            VectorOperation::Sum { subtract, reverse, carry_out, carry_in } => {
                let destination = vector_registers_at(instruction, 0)?;
                // GFX8 has a carry where later generations have an instruction of the same name without one.
                let has_mask_operand = instruction.operands.len() == 4 + usize::from(carry_in);
                if !has_mask_operand && (carry_out || carry_in || instruction.operands.len() != 3) {
                    return Err(unsupported("another number of operands"));
                }
                let first = if has_mask_operand { 2 } else { 1 };
                let (sum, flag) = if subtract {
                    (AluOperation::Sub3, AluOperation::BorrowSub)
                } else {
                    (AluOperation::Add3, AluOperation::CarryAdd)
                };
                let carries = if carry_in {
                    let registers = scalar_registers_at(instruction, first + 2)?;
                    self.state.read_mask(registers.first, registers.count)?
                } else {
                    0
                };
                let mut carry_mask = 0_u64;
                for lane in active {
                    let (mut a, mut b) = (source(self, first, 0, lane)?, source(self, first + 1, 0, lane)?);
                    if reverse {
                        (a, b) = (b, a);
                    }
                    let carry = WaveValue::Constant(u32::from(self.state.is_lane_in_mask(carries, lane)));
                    writes.vector.push((destination.first, lane, self.compute_value(sum, a, b, carry)?));
                    if has_mask_operand {
                        let carried = self.compute_value(flag, a, b, carry)?;
                        if self.decide_nonzero(carried)? {
                            carry_mask |= lane_bit(&self.state, lane);
                        }
                    }
                }
                if has_mask_operand {
                    writes.push_mask(scalar_registers_at(instruction, 1)?, carry_mask);
                }
            }
            VectorOperation::Shift64 { left, reverse } => {
                require_operands(instruction, 3)?;
                let destination = vector_registers_at(instruction, 0)?;
                for lane in active {
                    let (amount, value) = if reverse { (1, 2) } else { (2, 1) };
                    let amount = require_constant(source(self, amount, 0, lane)?)? & 63;
                    let (low, high) = (source(self, value, 0, lane)?, source(self, value, 1, lane)?);
                    let [low, high] = self.shift_words(low, high, amount, left)?;
                    writes
                        .vector
                        .extend([(destination.first, lane, low), (destination.first + 1, lane, high)]);
                }
            }
            VectorOperation::Select => {
                let destination = vector_registers_at(instruction, 0)?;
                if instruction.operands.len() != 4 {
                    require_operands(instruction, 3)?;
                }
                let mask_registers = match instruction.operands.get(3) {
                    Some(MachineOperand::Scalar(registers)) => *registers,
                    None => RegisterRange { first: special::VCC, count: 2 },
                    Some(other) => return Err(unsupported(format!("operand {other:?}"))),
                };
                let mask = self.state.read_mask(mask_registers.first, mask_registers.count)?;
                for lane in active {
                    let source_index = if self.state.is_lane_in_mask(mask, lane) { 2 } else { 1 };
                    writes.vector.push((destination.first, lane, source(self, source_index, 0, lane)?));
                }
            }
            VectorOperation::Compare { relation, kind, writes_exec: execute } => {
                // Up to GFX9, a comparison that writes exec also writes a mask.
                let has_mask_operand = instruction.operands.len() == 3;
                if !has_mask_operand {
                    require_operands(instruction, 2)?;
                }
                let first = usize::from(has_mask_operand);
                let wide = matches!(kind, CompareType::Unsigned64 | CompareType::Signed64);
                let mut mask = 0_u64;
                for lane in active {
                    let words = |builder: &mut Self, place| {
                        let high = if wide { source(builder, place, 1, lane)? } else { zero };
                        Ok::<_, HaltReason>([source(builder, place, 0, lane)?, high])
                    };
                    let (a, b) = (words(self, first)?, words(self, first + 1)?);
                    let truth = self.compare_values(relation, kind, a, b)?;
                    if self.decide_nonzero(truth)? {
                        mask |= lane_bit(&self.state, lane);
                    }
                }
                if has_mask_operand {
                    writes.push_mask(scalar_registers_at(instruction, 0)?, mask);
                } else if !execute {
                    writes.push_mask(RegisterRange { first: special::VCC, count: 2 }, mask);
                }
                if execute {
                    writes.push_mask(RegisterRange { first: special::EXEC, count: 2 }, mask);
                }
            }
            VectorOperation::MaskedBitCount { high } => {
                require_operands(instruction, 3)?;
                let destination = vector_registers_at(instruction, 0)?;
                for lane in active {
                    let mask = require_constant(source(self, 1, 0, lane)?)?;
                    let number = self.state.lanes.get(lane).copied().map_or(0, u32::from);
                    let below = match (high, number) {
                        (false, 32..) => u32::MAX,
                        (false, number) => (1_u32 << number) - 1,
                        (true, 0..32) => 0,
                        (true, number) => (1_u32 << (number & 31)) - 1,
                    };
                    let count = WaveValue::Constant((mask & below).count_ones());
                    let before = source(self, 2, 0, lane)?;
                    writes.vector.push((
                        destination.first,
                        lane,
                        self.compute_value(AluOperation::Add, count, before, zero)?,
                    ));
                }
            }
            VectorOperation::ReadFirstLane => {
                require_operands(instruction, 2)?;
                let destination = scalar_registers_at(instruction, 0)?;
                let lane = active.first().copied().unwrap_or(0);
                writes.scalar.push((destination.first, source(self, 1, 0, lane)?));
            }
        }
        Ok(())
    }
}

fn lane_bit(state: &WaveState, lane: usize) -> u64 {
    state.lanes.get(lane).map_or(0, |number| 1_u64.wrapping_shl(u32::from(*number)))
}

/// Refuses an instruction with an unexpected number of operands: it would be a different instruction.
fn require_operands(instruction: &MachineInstruction, operands: usize) -> Result<(), HaltReason> {
    if instruction.operands.len() == operands {
        return Ok(());
    }
    Err(unsupported("another number of operands"))
}

/// Returns the operation of a move with byte selection, and the mask of written bits if partial.
fn apply_byte_selection(
    alu: AluOperation,
    instruction: &MachineInstruction,
) -> Result<(AluOperation, Option<u32>), HaltReason> {
    let modifiers = &instruction.modifiers;
    let unknown = |key: &str| unsupported(format!("{key}:{}", modifiers.value(key).unwrap_or_default()));
    if modifiers.value("src1_sel").is_some_and(|value| value != "DWORD") {
        return Err(unknown("src1_sel"));
    }
    let mask = match modifiers.value("dst_sel") {
        None | Some("DWORD") => None,
        Some("BYTE_0") => Some(0xff),
        Some("WORD_0") => Some(0xffff),
        Some(_) => return Err(unknown("dst_sel")),
    };
    match (modifiers.value("dst_unused"), mask) {
        (None | Some("UNUSED_PAD" | "UNUSED_PRESERVE"), None) | (Some("UNUSED_PRESERVE"), Some(_)) => {}
        _ => return Err(unknown("dst_unused")),
    }
    match (modifiers.value("src0_sel"), alu) {
        (None | Some("DWORD"), alu) => Ok((alu, mask)),
        (Some("BYTE_0"), AluOperation::Mov) => Ok((AluOperation::LowByte, mask)),
        (Some("WORD_0"), AluOperation::Mov) => Ok((AluOperation::LowHalf, mask)),
        (Some("WORD_1"), AluOperation::Mov) => Ok((AluOperation::HighHalf, mask)),
        _ => Err(unknown("src0_sel")),
    }
}
