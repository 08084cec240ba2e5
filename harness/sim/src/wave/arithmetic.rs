//! What a wave computes in registers, lane by lane.

use super::{Wave, get, join};
use crate::program::{Binary, Conversion, LANES, Lanes, Register};

impl Wave {
    pub(super) fn split(&mut self, to: Register) -> Option<(&[Lanes], &mut Lanes)> {
        let (sources, rest) = self.registers.split_at_mut_checked(to as usize)?;
        Some((sources, rest.first_mut()?))
    }

    pub(super) fn convert(&mut self, to: Register, from: Register, how: Conversion) {
        let Some((sources, to)) = self.split_wide(to) else { return };
        let zeros = [0; LANES];
        let Some(from_low) = get(sources, from) else { return };
        let from_high = get(sources, from.wrapping_add(1)).unwrap_or(&zeros);
        for lane in 0..LANES {
            let (word, whole) = (from_low[lane], join(from_low[lane], from_high[lane]));
            let given = match how {
                Conversion::Integer => (f32::from_bits(word) as i32 as u32).into(),
                Conversion::Float => (word as i32 as f32).to_bits().into(),
                Conversion::Unsigned => (f32::from_bits(word) as u32).into(),
                Conversion::FloatOfUnsigned => (word as f32).to_bits().into(),
                Conversion::WideInteger => f64::from_bits(whole) as i64 as u64,
                Conversion::WideFloat => (whole as i64 as f64).to_bits(),
            };
            if let Some(low) = to.first_mut() {
                low[lane] = given as u32;
            }
            if matches!(how, Conversion::WideInteger | Conversion::WideFloat)
                && let Some(high) = to.get_mut(1)
            {
                high[lane] = (given >> 32) as u32;
            }
        }
    }

    /// What is behind a register, and it with its successor.
    pub(super) fn split_wide(&mut self, to: Register) -> Option<(&[Lanes], &mut [Lanes])> {
        let (sources, rest) = self.registers.split_at_mut_checked(to as usize)?;
        Some((sources, rest))
    }

    pub(super) fn wide(&mut self, op: Binary, to: Register, left: Register, right: Register) {
        let Some((sources, to)) = self.split_wide(to) else { return };
        let (Some(left_low), Some(left_high)) = (get(sources, left), get(sources, left + 1)) else { return };
        let Some(right_low) = get(sources, right) else { return };
        let zeros = [0; LANES];
        let shift = matches!(op, Binary::ShiftLeft | Binary::ShiftRight);
        let right_high = if shift { &zeros } else { get(sources, right + 1).unwrap_or(&zeros) };
        let truth = matches!(
            op,
            Binary::Equal
                | Binary::NotEqual
                | Binary::SignedLess
                | Binary::SignedLessEqual
                | Binary::Less
                | Binary::LessEqual
        );
        for lane in 0..LANES {
            let (a, b) = (join(left_low[lane], left_high[lane]), join(right_low[lane], right_high[lane]));
            let given = match op {
                Binary::Add => a.wrapping_add(b),
                Binary::Subtract => a.wrapping_sub(b),
                Binary::Multiply => a.wrapping_mul(b),
                Binary::Divide => a.checked_div(b).unwrap_or(0),
                Binary::Modulo => a.checked_rem(b).unwrap_or(0),
                Binary::And => a & b,
                Binary::Or => a | b,
                Binary::Xor => a ^ b,
                Binary::ShiftLeft => a.wrapping_shl(b as u32),
                Binary::ShiftRight => a.wrapping_shr(b as u32),
                Binary::Equal => (a == b).into(),
                Binary::NotEqual => (a != b).into(),
                Binary::SignedLess => ((a as i64) < (b as i64)).into(),
                Binary::SignedLessEqual => ((a as i64) <= (b as i64)).into(),
                Binary::Less => (a < b).into(),
                Binary::LessEqual => (a <= b).into(),
                Binary::FloatAdd => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
                Binary::FloatMultiply => (f64::from_bits(a) * f64::from_bits(b)).to_bits(),
            };
            if let Some(low) = to.first_mut() {
                low[lane] = given as u32;
            }
            if !truth && let Some(high) = to.get_mut(1) {
                high[lane] = (given >> 32) as u32;
            }
        }
    }

    pub(super) fn binary(&mut self, op: Binary, to: Register, left: Register, right: Register) {
        let Some((sources, to)) = self.split(to) else { return };
        let (Some(left), Some(right)) = (get(sources, left), get(sources, right)) else { return };
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
            Binary::Divide => divide(to, left, right, |a, b| a / b),
            Binary::Modulo => divide(to, left, right, |a, b| a % b),
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

fn divide(to: &mut Lanes, left: &Lanes, right: &Lanes, by: impl Fn(u32, u32) -> u32) {
    // Most divisors are the same in all lanes, and a power of two often enough; the processor's division is slow.
    for lane in 0..LANES {
        to[lane] = if right[lane] == 0 { 0 } else { by(left[lane], right[lane]) };
    }
}
