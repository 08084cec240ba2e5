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
    pub(super) fn lower_or_defer(&mut self, placed: &'m LocatedInstruction) -> Result<(), LoadError> {
        self.current = placed;
        if self.load_independent_constant(placed).is_none() {
            if self.can_defer(placed) {
                self.deferred.push(placed);
                return Ok(());
            }
            if self.module.decode_instruction(placed)?.is_terminator() {
                while let Some(first) = self.deferred.first().copied() {
                    self.lower_deferred(first)?;
                }
            }
            self.lower_deferred_operands(placed)?;
        }
        self.lower_instruction()?;
        self.emit_early_texels()
    }

    fn lower_deferred(&mut self, placed: &'m LocatedInstruction) -> Result<(), LoadError> {
        self.deferred.retain(|postponed| postponed.index != placed.index);
        let outer = std::mem::replace(&mut self.current, placed);
        self.lower_deferred_operands(placed)?;
        self.lower_instruction()?;
        self.emit_early_texels()?;
        self.current = outer;
        Ok(())
    }

    fn lower_deferred_operands(&mut self, placed: &'m LocatedInstruction) -> Result<(), LoadError> {
        for id in placed.ids() {
            if let Some(needed) = self.find_deferred(id) {
                self.lower_deferred(needed)?;
            }
        }
        Ok(())
    }

    fn find_deferred(&self, id: u32) -> Option<&'m LocatedInstruction> {
        self.deferred.iter().find(|placed| placed.result == id).copied()
    }

    /// Returns true if it is arithmetic on a pending load or on a deferred result.
    fn can_defer(&self, placed: &LocatedInstruction) -> bool {
        let is_pending = |id: u32| match self.pending_register(id) {
            Ok(register) => {
                self.loaded_registers.contains(&register) && !self.awaited_registers.contains(&register)
            }
            Err(_) => false,
        };
        super::number::is_arithmetic(placed.op)
            && placed.ids().any(|id| self.find_deferred(id).is_some() || is_pending(id))
    }

    /// Returns the constant register of arithmetic that does not depend on a loaded word: `a & 0`, `a * 0`,
    /// `a ^ a`, `a - a`, and `a + c - a`.
    pub(super) fn load_independent_constant(&self, placed: &LocatedInstruction) -> Option<Register> {
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
                constant(other).and_then(|_| self.pending_register(other).ok())
            }
            _ => None,
        }
    }
}
