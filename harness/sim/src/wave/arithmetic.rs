//! Register arithmetic of a wave, lane by lane.

use arithmetic::{NumberShape, Operand};

use super::{Wave, WaveContext, join_halves, register_lanes};
use crate::program::{BallotKind, Binary, LANES, LaneValues, NumberInstruction, Op, Register};
use crate::random::lanes_in_mask;

impl Wave {
    pub(super) fn split_destination(&mut self, to: Register) -> Option<(&[LaneValues], &mut LaneValues)> {
        let (sources, rest) = self.registers.split_at_mut_checked(to as usize)?;
        Some((sources, rest.first_mut()?))
    }

    /// Executes an instruction once per number.
    pub(super) fn apply_instruction(&mut self, application: &NumberInstruction) {
        let NumberInstruction { instruction, to, result, operands } = application;
        let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); operands.len()];
        for lane in lanes_in_mask(self.execution_mask) {
            for (numbers, (register, shape)) in numbers.iter_mut().zip(operands) {
                numbers.clear();
                numbers.extend(
                    (0..shape.count() as u32).map(|at| self.read_number(*register, *shape, at, lane)),
                );
            }
            let inputs: Vec<Operand<'_>> = (numbers.iter().zip(operands))
                .map(|(numbers, (_, shape))| Operand { numbers, shape: *shape })
                .collect();
            let all = instruction.compute(&inputs, result).unwrap_or_default();
            let mut register = *to;
            let bits = result.iter().flat_map(|shape| (0..shape.count()).map(|_| shape.bits));
            for (number, bits) in all.into_iter().zip(bits) {
                let words = [number as u32, (number >> 32) as u32];
                for word in words.into_iter().take(if bits > 32 { 2 } else { 1 }) {
                    self.write_word(register, lane, word);
                    register += 1;
                }
            }
        }
    }

    fn read_number(&self, first: Register, shape: NumberShape, at: u32, lane: usize) -> u64 {
        let word =
            |register: Register| register_lanes(&self.registers, register).map_or(0, |values| values[lane]);
        match shape.bits {
            0..=32 => word(first + at).into(),
            _ => join_halves(word(first + 2 * at), word(first + 2 * at + 1)),
        }
    }

    fn write_word(&mut self, register: Register, lane: usize, word: u32) {
        if let Some(values) = self.registers.get_mut(register as usize) {
            values[lane] = word;
        }
    }

    /// Reads or writes a register at a computed index; out of range it does nothing.
    pub(super) fn execute_indexed(&mut self, op: Op) {
        let word = |wave: &Wave, register: Register, lane: usize| {
            register_lanes(&wave.registers, register).map_or(0, |values| values[lane])
        };
        for lane in lanes_in_mask(self.execution_mask) {
            match op {
                Op::ReadIndexed { to, from, offset, index, words } => {
                    let at = word(self, index, lane).saturating_add(offset);
                    let value = if at < words { word(self, from + at, lane) } else { 0 };
                    self.write_word(to, lane, value);
                }
                Op::WriteIndexed { to, offset, index, from, words } => {
                    let at = word(self, index, lane).saturating_add(offset);
                    if at < words {
                        let value = word(self, from, lane);
                        self.write_word(to + at, lane, value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Loads words of the push constants.
    pub(super) fn load_push_constant(
        &mut self,
        to: Register,
        word: u32,
        index: Register,
        context: &WaveContext<'_>,
    ) {
        let index = register_lanes(&self.registers, index).copied().unwrap_or([0; LANES]);
        let parameters = &context.dispatch.parameters;
        if let Some(to) = self.registers.get_mut(to as usize) {
            for (to, index) in to.iter_mut().zip(index) {
                // The computed index is a byte offset.
                *to = parameters.get(word.wrapping_add(index / 4) as usize).copied().unwrap_or(0);
            }
        }
    }

    /// Executes a ballot query in each lane.
    pub(super) fn execute_ballot(
        &mut self,
        kind: BallotKind,
        to: Register,
        ballot: Register,
        argument: Register,
    ) {
        let word = |wave: &Wave, register: Register, lane: usize| {
            register_lanes(&wave.registers, register).map_or(0, |values| values[lane])
        };
        for lane in lanes_in_mask(self.execution_mask) {
            // No subgroup has more lanes than a word has bits.
            let bits = word(self, ballot, lane) & BallotKind::SUBGROUP_MASK;
            let own = self.places.get(lane).map_or(0, |place| place[3]);
            let value = match kind {
                BallotKind::Inverse => bits >> own & 1,
                BallotKind::Bit => bits.checked_shr(word(self, argument, lane)).unwrap_or(0) & 1,
                BallotKind::Count => bits.count_ones(),
                BallotKind::CountUpTo => (bits & ((2 << own) - 1)).count_ones(),
                BallotKind::CountBefore => (bits & ((1 << own) - 1)).count_ones(),
                BallotKind::Lowest => bits.trailing_zeros(),
                BallotKind::Highest => bits.checked_ilog2().unwrap_or(0),
            };
            self.write_word(to, lane, value);
        }
    }

    pub(super) fn execute_binary(&mut self, op: Binary, to: Register, left: Register, right: Register) {
        let Some((sources, to)) = self.split_destination(to) else { return };
        let (Some(left), Some(right)) = (register_lanes(sources, left), register_lanes(sources, right))
        else {
            return;
        };
        macro_rules! each {
            ($function:expr) => {
                for lane in 0..LANES {
                    to[lane] = $function(left[lane], right[lane]);
                }
            };
        }
        match op {
            Binary::Add => each!(u32::wrapping_add),
            Binary::Subtract => each!(u32::wrapping_sub),
            Binary::Multiply => each!(u32::wrapping_mul),
            Binary::Divide => divide_lanes(to, left, right, |a, b| a / b),
            Binary::Modulo => divide_lanes(to, left, right, |a, b| a % b),
            Binary::And => each!(|a: u32, b: u32| a & b),
            Binary::Or => each!(|a: u32, b: u32| a | b),
            Binary::Xor => each!(|a: u32, b: u32| a ^ b),
            Binary::ShiftLeft => each!(u32::wrapping_shl),
            Binary::ShiftRight => each!(u32::wrapping_shr),
            Binary::Equal => each!(|a: u32, b: u32| u32::from(a == b)),
            Binary::NotEqual => each!(|a: u32, b: u32| u32::from(a != b)),
            Binary::SignedLess => each!(|a: u32, b: u32| u32::from((a as i32) < (b as i32))),
            Binary::SignedLessEqual => each!(|a: u32, b: u32| u32::from((a as i32) <= (b as i32))),
            Binary::Less => each!(|a: u32, b: u32| u32::from(a < b)),
            Binary::LessEqual => each!(|a: u32, b: u32| u32::from(a <= b)),
            Binary::FloatAdd => each!(|a, b| (f32::from_bits(a) + f32::from_bits(b)).to_bits()),
            Binary::FloatMultiply => each!(|a, b| (f32::from_bits(a) * f32::from_bits(b)).to_bits()),
        }
    }
}

fn divide_lanes(to: &mut LaneValues, left: &LaneValues, right: &LaneValues, by: impl Fn(u32, u32) -> u32) {
    // Most divisors are uniform, and often powers of two; the processor's division is slow.
    for lane in 0..LANES {
        to[lane] = if right[lane] == 0 { 0 } else { by(left[lane], right[lane]) };
    }
}
