//! Instructions that have no defined result for some operands: what is told of them, once somebody looks at what they give.
//!
//! Of a shift by too many bits, of a field beyond its number and of a sum of products that does not fit SPIR-V leaves the result undefined; of a division by zero and of a
//! component beyond its vector, since 1.6, and of a difference of pointers to two arrays the behaviour, so that compilers may take it that neither happens. Both are told where the
//! result decides something or is stored where others see it. Computed and thrown away, as on the other side of
//! `select(b == 0, 0, a / b)`, it is not, as with reads beyond an end: translators of other languages emit that for every division.

use rspirv::spirv::Op;

use crate::error::malformed;
use crate::lift::FindingKind;
use crate::state::State;
use crate::walk::{Step, Walk};

/// The kind and the words, where an instruction is one of these.
pub(crate) fn without_result(op: Op) -> Option<(FindingKind, String)> {
    let why = match op {
        Op::UDiv | Op::UMod => "it divides by zero",
        Op::SDiv | Op::SRem | Op::SMod => "it divides by zero, or the smallest number by -1",
        Op::ShiftLeftLogical | Op::ShiftRightLogical | Op::ShiftRightArithmetic => {
            "it shifts by as many bits as the number has, or more"
        }
        Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract => {
            "its field goes beyond the number"
        }
        Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => "the sum of the products does not fit",
        Op::PtrDiff => "its pointers are not to elements of one array",
        Op::VectorExtractDynamic | Op::VectorInsertDynamic => {
            let message = format!("Op{op:?} of a component that the vector does not have");
            return Some((FindingKind::OutOfBounds, message));
        }
        _ => return None,
    };
    Some((FindingKind::UndefinedBehaviour, format!("Op{op:?} without a defined result: {why}")))
}

impl Walk<'_> {
    /// Tells an instruction without a defined result, as somebody looks at what it gives.
    pub(crate) fn without_result(&mut self, state: &mut State, id: u32) -> Step<()> {
        let mut code = self.setting.module().functions.values().flat_map(|function| &function.code);
        let lacking = code.find(|instruction| instruction.result == id);
        let told = lacking.and_then(|instruction| Some((instruction, without_result(instruction.op)?)));
        let (instruction, (kind, message)) = told.ok_or_else(|| malformed("no such instruction"))?;
        let here = std::mem::replace(&mut self.at, (instruction.line, instruction.place));
        let suspected = self.suspect(state, kind, message);
        self.at = here;
        suspected
    }
}
