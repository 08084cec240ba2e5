//! GLSL.std.450 on whole numbers of 32 bits, as comparisons and choices.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{GlslStd450Op as GLOp, Op, Word};

use super::{Simple, id_of, instruction, malformed};
use crate::module::LoadError;

impl Simple<'_, '_> {
    /// Says an extended instruction by plain ones.
    pub(super) fn extended(
        &mut self,
        own: &Instruction,
        simple: &mut Vec<Instruction>,
    ) -> Result<(), LoadError> {
        let set = id_of(own, 0)?;
        if self.plain.silent.contains(&set) {
            return Ok(());
        }
        let (Some(ty), Some(result)) = (own.result_type, own.result_id) else {
            return Err(malformed(0, "OpExtInst without a result"));
        };
        let operation = match own.operands.get(1) {
            Some(Operand::LiteralExtInstInteger(number)) if self.plain.glsl.contains(&set) => {
                GLOp::from_u32(*number)
            }
            _ => None,
        };
        let name = operation.map_or_else(|| "OpExtInst".to_owned(), |known| format!("OpExtInst {known:?}"));
        let whole = self.plain.types.get(&ty).is_some_and(|of| {
            of.class.opcode == Op::TypeInt && of.operands.first() == Some(&Operand::LiteralBit32(32))
        });
        let given = |index: usize| id_of(own, 2 + index);
        let signed = matches!(operation, Some(GLOp::SMin | GLOp::SMax | GLOp::SClamp));
        let less = if signed { Op::SLessThan } else { Op::ULessThan };
        match operation.filter(|_| whole) {
            Some(GLOp::UMin | GLOp::SMin) => {
                self.one_of_two(less, [given(0)?, given(1)?], false, (ty, result), simple)
            }
            Some(GLOp::UMax | GLOp::SMax) => {
                self.one_of_two(less, [given(0)?, given(1)?], true, (ty, result), simple)
            }
            Some(GLOp::UClamp | GLOp::SClamp) => {
                let raised = self.plain.fresh();
                self.one_of_two(less, [given(0)?, given(1)?], true, (ty, raised), simple);
                self.one_of_two(less, [raised, given(2)?], false, (ty, result), simple);
            }
            _ => return Err(LoadError::Lacks(name)),
        }
        Ok(())
    }

    /// The smaller or the larger of two numbers.
    fn one_of_two(
        &mut self,
        less: Op,
        [one, other]: [Word; 2],
        larger: bool,
        (ty, result): (Word, Word),
        simple: &mut Vec<Instruction>,
    ) {
        let (truth, condition) = (self.truth_type(), self.plain.fresh());
        let compared = vec![Operand::IdRef(one), Operand::IdRef(other)];
        simple.push(instruction(less, Some(truth), Some(condition), compared));
        let (yes, no) = if larger { (other, one) } else { (one, other) };
        let operands = [condition, yes, no].map(Operand::IdRef).to_vec();
        simple.push(instruction(Op::Select, Some(ty), Some(result), operands));
    }

    /// The type of what comparisons say.
    fn truth_type(&mut self) -> Word {
        let known = self.plain.types.iter().find(|(_, of)| of.class.opcode == Op::TypeBool);
        if let Some((id, _)) = known {
            return *id;
        }
        let id = self.plain.fresh();
        let ty = instruction(Op::TypeBool, None, Some(id), Vec::new());
        self.plain.types.insert(id, ty.clone());
        self.plain.head.push(ty);
        id
    }
}
