//! Load sinking: arithmetic on a loaded value is lowered where its result is first needed. If its result is
//! the same for every loaded value, it does not depend on the load at all. So stores in between, and stores
//! of such results, do not wait for the load, as in compiled code.

use rspirv::spirv::Op as SpirvOp;
use spirv_reader::SpirvType;

use super::Lowering;
use crate::instruction::{LoadError, LocatedInstruction};
use crate::program::Register;

impl<'m> Lowering<'m> {
    /// Lowers an instruction now, or defers it until its result is needed.
    pub(super) fn in_turn(&mut self, placed: &'m LocatedInstruction) -> Result<(), LoadError> {
        if self.constant_whatever_was_loaded(placed).is_none() {
            if self.can_wait(placed) {
                self.postponed.push(placed);
                return Ok(());
            }
            if self.module.operation(placed)?.is_terminator() {
                while let Some(first) = self.postponed.first().copied() {
                    self.compute_now(first)?;
                }
            }
            self.compute_operands(placed)?;
        }
        self.instruction(placed)?;
        self.early_texels(placed)
    }

    /// Lowers the deferred instructions.
    fn compute_now(&mut self, placed: &'m LocatedInstruction) -> Result<(), LoadError> {
        self.postponed.retain(|postponed| postponed.index != placed.index);
        self.compute_operands(placed)?;
        self.instruction(placed)?;
        self.early_texels(placed)
    }

    fn compute_operands(&mut self, placed: &'m LocatedInstruction) -> Result<(), LoadError> {
        for id in placed.ids() {
            if let Some(needed) = self.is_postponed(id) {
                self.compute_now(needed)?;
            }
        }
        Ok(())
    }

    fn is_postponed(&self, id: u32) -> Option<&'m LocatedInstruction> {
        self.postponed.iter().find(|placed| placed.result == id).copied()
    }

    /// Returns true if it is arithmetic on a pending load or on a deferred result.
    fn can_wait(&self, placed: &LocatedInstruction) -> bool {
        let is_under_way = |id: u32| match self.late(placed, id) {
            Ok(register) => self.loaded.contains(&register) && !self.awaited.contains(&register),
            Err(_) => false,
        };
        super::number::is_arithmetic(placed.op)
            && placed.ids().any(|id| self.is_postponed(id).is_some() || is_under_way(id))
    }

    /// Returns the constant register of arithmetic that does not depend on a loaded word: `a & 0`, `a * 0`,
    /// `a ^ a`, `a - a`, and `a + c - a`.
    pub(super) fn constant_whatever_was_loaded(&self, placed: &LocatedInstruction) -> Option<Register> {
        use SpirvOp::{BitwiseAnd, BitwiseXor, IAdd, IMul, ISub};
        if !matches!(placed.op, BitwiseAnd | BitwiseXor | IMul | ISub) {
            return None;
        }
        let ty = self.module.type_of(placed.ty)?;
        let [left, right] = placed.operands[..] else { return None };
        let constant = |id: u32| self.module.constants.get(&id).map(|(_, value)| *value);
        let zero = Some(self.fixed.zero);
        match placed.op {
            _ if !matches!(ty, SpirvType::Integer { bits: 32, .. } | SpirvType::Float { bits: 32 }) => None,
            BitwiseAnd | IMul if constant(left) == Some(0) || constant(right) == Some(0) => zero,
            BitwiseXor | ISub if left == right => zero,
            ISub => {
                let is_sum = |sum: &&LocatedInstruction| sum.op == IAdd && sum.result == left;
                let sum = self.module.body.iter().find(is_sum)?;
                let other = match sum.operands[..] {
                    [other, same] | [same, other] if same == right => other,
                    _ => return None,
                };
                constant(other).and_then(|_| self.late(placed, other).ok())
            }
            _ => None,
        }
    }
}
