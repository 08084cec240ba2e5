//! Numbers: arithmetic, comparisons and conversions on one word, or two for numbers of 64 bits.

use rspirv::spirv::Op as SpirvOp;

use super::{Lowering, Meaning};
use crate::module::{LoadError, Placed, Type, malformed};
use crate::program::{Binary, Conversion, Op, Place, Register};

impl Lowering<'_> {
    /// An instruction on values.
    pub(super) fn number(&mut self, placed: &Placed) -> Result<(), LoadError> {
        match placed.op() {
            SpirvOp::CompositeExtract => {
                let whole = placed.id(0)?;
                let first = self.value(placed, whole)?;
                let to = self.late(placed, placed.result()?)?;
                let each = self.width_of(placed.result()?);
                let position = placed.literal(1)?.wrapping_mul(each);
                if position >= self.width_of(whole) {
                    return Err(malformed(placed.word, "no such component"));
                }
                self.copy(to, first + position, each);
            }
            SpirvOp::CompositeConstruct => {
                let to = self.late(placed, placed.result()?)?;
                let mut next = 0;
                for position in 0..placed.instruction.operands.len() {
                    let id = placed.id(position)?;
                    let from = self.value(placed, id)?;
                    let count = self.width_of(id);
                    if next + count > self.width_of(placed.result()?) {
                        return Err(malformed(placed.word, "more components than the vector has"));
                    }
                    self.copy(to + next, from, count);
                    next += count;
                }
            }
            SpirvOp::Not => {
                let id = placed.id(0)?;
                self.no_narrow(placed, id)?;
                let from = self.value(placed, id)?;
                let (to, right) = (self.late(placed, placed.result()?)?, self.fixed.ones);
                for word in 0..self.same_width(placed, id)? {
                    self.program.ops.push(Op::Binary {
                        op: Binary::Xor,
                        to: to + word,
                        left: from + word,
                        right,
                    });
                }
            }
            SpirvOp::Bitcast => self.bitcast(placed)?,
            SpirvOp::UConvert => self.convert_size(placed)?,
            SpirvOp::ConvertFToS | SpirvOp::ConvertSToF | SpirvOp::ConvertFToU | SpirvOp::ConvertUToF => {
                self.convert_kind(placed)?;
            }
            _ => self.binary(placed)?,
        }
        Ok(())
    }

    /// The bits of a number; 32 for a boolean.
    fn bits_of(&self, id: u32) -> Option<u32> {
        match self.module.types.get(self.types.get(&id)?)? {
            Type::Number { bits, .. } => Some(*bits),
            Type::Bool => Some(32),
            _ => None,
        }
    }

    /// The bits of a number, or of each component of a vector, and how many there are.
    fn bits_of_each(&self, placed: &Placed, id: u32) -> Result<(u32, u32), LoadError> {
        match self.types.get(&id).and_then(|ty| self.module.types.get(ty)) {
            Some(Type::Vector { element, count }) => match self.module.types.get(element) {
                Some(Type::Number { bits, .. }) => Ok((*bits, *count)),
                Some(Type::Bool) => Ok((32, *count)),
                _ => Err(lacks(placed)),
            },
            _ => Ok((self.bits(placed, id)?, 1)),
        }
    }

    fn bits(&self, placed: &Placed, id: u32) -> Result<u32, LoadError> {
        self.bits_of(id).ok_or_else(|| lacks(placed))
    }

    /// Kernels compute in words of 32 or 64 bits: narrower ones are loaded, stored and widened.
    fn no_narrow(&self, placed: &Placed, id: u32) -> Result<(), LoadError> {
        if self.bits(placed, id)? < 32 { Err(lacks(placed)) } else { Ok(()) }
    }

    /// Registers of the result, which are those of the operand.
    fn same_width(&self, placed: &Placed, id: u32) -> Result<u32, LoadError> {
        let width = self.width_of(placed.result()?);
        if width == self.width_of(id) { Ok(width) } else { Err(lacks(placed)) }
    }

    fn bitcast(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let (id, result) = (placed.id(0)?, placed.result()?);
        if let Some(Type::Pointer { to, .. }) = self.module.types.get(&placed.result_type()?) {
            let word = self.addresses.get(&id).copied();
            let word = word.ok_or_else(|| {
                LoadError::Lacks("OpBitcast to a pointer of what is no address in the push constants".into())
            })?;
            let reference = self.reference(result, Place::Address(word), 0);
            self.meanings.insert(result, Meaning::Whole { reference, ty: *to });
            return Ok(());
        }
        let from = self.value(placed, id)?;
        let to = self.late(placed, result)?;
        let width = self.same_width(placed, id)?;
        self.copy(to, from, width);
        Ok(())
    }

    fn convert_size(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let (id, result) = (placed.id(0)?, placed.result()?);
        let (before, after) = (self.bits(placed, id)?, self.bits(placed, result)?);
        let from = self.value(placed, id)?;
        let to = self.late(placed, result)?;
        match after {
            64 => {
                self.copy(to, from, 1);
                self.copy(to + 1, if before == 64 { from + 1 } else { self.fixed.zero }, 1);
            }
            8 | 16 if after < before => {
                let right = if after == 8 { self.fixed.byte } else { self.fixed.half };
                self.program.ops.push(Op::Binary { op: Binary::And, to, left: from, right });
            }
            _ => self.copy(to, from, 1),
        }
        Ok(())
    }

    fn convert_kind(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let (id, result) = (placed.id(0)?, placed.result()?);
        let bits = (self.bits(placed, id)?, self.bits(placed, result)?);
        let how = match (placed.op(), bits) {
            (SpirvOp::ConvertFToS, (32, 32)) => Conversion::Integer,
            (SpirvOp::ConvertFToS, (64, 64)) => Conversion::WideInteger,
            (SpirvOp::ConvertSToF, (32, 32)) => Conversion::Float,
            (SpirvOp::ConvertSToF, (64, 64)) => Conversion::WideFloat,
            (SpirvOp::ConvertFToU, (32, 32)) => Conversion::Unsigned,
            (SpirvOp::ConvertUToF, (32, 32)) => Conversion::FloatOfUnsigned,
            _ => return Err(lacks(placed)),
        };
        let from = self.value(placed, id)?;
        let to = self.late(placed, result)?;
        self.program.ops.push(Op::Convert { to, from, how });
        Ok(())
    }

    fn binary(&mut self, placed: &Placed) -> Result<(), LoadError> {
        if let Some(from) = self.constant_whatever_was_loaded(placed) {
            let to = self.late(placed, placed.result()?)?;
            self.copy(to, from, 1);
            return Ok(());
        }
        let (op, swapped) = binary(placed.op()).ok_or_else(|| lacks(placed))?;
        let (mut first, mut second) = (placed.id(0)?, placed.id(1)?);
        if swapped {
            std::mem::swap(&mut first, &mut second);
        }
        let (bits, count) = self.bits_of_each(placed, first)?;
        let shift = matches!(op, Binary::ShiftLeft | Binary::ShiftRight);
        let (other, of_second) = self.bits_of_each(placed, second)?;
        if of_second != count || !shift && other != bits {
            return Err(malformed(placed.word, "operands of different sizes"));
        }
        if bits < 32 || bits > 32 && count > 1 || self.width_of(placed.result()?) < count {
            return Err(lacks(placed));
        }
        let (left, right) = (self.value(placed, first)?, self.value(placed, second)?);
        let to = self.late(placed, placed.result()?)?;
        let halves: Register = match (bits, op) {
            (64, Binary::And | Binary::Or | Binary::Xor) => 2,
            (64, _) => {
                self.program.ops.push(Op::Wide { op, to, left, right });
                return Ok(());
            }
            _ => count,
        };
        for word in 0..halves {
            let (to, left, right) = (to + word, left + word, right + word);
            self.program.ops.push(Op::Binary { op, to, left, right });
        }
        Ok(())
    }
}

fn lacks(placed: &Placed) -> LoadError {
    LoadError::Lacks(format!("Op{:?} of this type", placed.op()))
}

/// Whether it is an operation on two numbers.
pub(super) fn is_arithmetic(op: SpirvOp) -> bool {
    binary(op).is_some()
}

/// The operation, and whether its operands change places.
fn binary(op: SpirvOp) -> Option<(Binary, bool)> {
    use Binary as B;
    Some(match op {
        SpirvOp::IAdd => (B::Add, false),
        SpirvOp::ISub => (B::Subtract, false),
        SpirvOp::IMul => (B::Multiply, false),
        SpirvOp::UDiv => (B::Divide, false),
        SpirvOp::UMod => (B::Modulo, false),
        SpirvOp::BitwiseAnd | SpirvOp::LogicalAnd => (B::And, false),
        SpirvOp::BitwiseOr | SpirvOp::LogicalOr => (B::Or, false),
        SpirvOp::BitwiseXor | SpirvOp::LogicalNotEqual => (B::Xor, false),
        SpirvOp::ShiftLeftLogical => (B::ShiftLeft, false),
        SpirvOp::ShiftRightLogical => (B::ShiftRight, false),
        SpirvOp::IEqual | SpirvOp::LogicalEqual => (B::Equal, false),
        SpirvOp::INotEqual => (B::NotEqual, false),
        SpirvOp::SLessThan => (B::SignedLess, false),
        SpirvOp::SGreaterThan => (B::SignedLess, true),
        SpirvOp::SLessThanEqual => (B::SignedLessEqual, false),
        SpirvOp::SGreaterThanEqual => (B::SignedLessEqual, true),
        SpirvOp::ULessThan => (B::Less, false),
        SpirvOp::UGreaterThan => (B::Less, true),
        SpirvOp::ULessThanEqual => (B::LessEqual, false),
        SpirvOp::UGreaterThanEqual => (B::LessEqual, true),
        SpirvOp::FAdd => (B::FloatAdd, false),
        SpirvOp::FMul => (B::FloatMultiply, false),
        _ => return None,
    })
}
