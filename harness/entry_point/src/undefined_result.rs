//! Instructions whose result is undefined for some operands.
//!
//! SPIR-V leaves the result undefined for a shift beyond the width, a bit field beyond the number, and a dot
//! product that overflows before a saturating addition. The behaviour is undefined for a division by zero,
//! for a component beyond its vector (since version 1.6), and for a difference of pointers into two arrays.
//!
//! A finding is reported only if the result decides something or is stored to shared memory. An unused result
//! is common: compilers translate `select(b == 0, 0, a / b)` for every division.

use rspirv::spirv::Op;

use crate::finding::FindingCause;

/// Returns cause and message of the finding, if an instruction can have an undefined result.
pub fn undefined_result(op: Op) -> Option<(FindingCause, String)> {
    let mut cause = FindingCause::UndefinedResult;
    let why = match op {
        Op::UDiv | Op::UMod => {
            cause = FindingCause::DivisionByZero;
            "it divides by zero"
        }
        Op::SDiv | Op::SRem | Op::SMod => {
            cause = FindingCause::DivisionByZero;
            "it divides by zero, or the smallest number by -1"
        }
        Op::ShiftLeftLogical | Op::ShiftRightLogical | Op::ShiftRightArithmetic => {
            "it shifts by as many bits as the number has, or more"
        }
        Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract => {
            "its bit field exceeds the number"
        }
        Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => "the sum of the products does not fit",
        Op::PtrDiff => "its pointers do not point into one array",
        Op::VectorExtractDynamic | Op::VectorInsertDynamic => {
            let message = format!("Op{op:?} of a component outside the vector");
            return Some((FindingCause::BeyondVector, message));
        }
        _ => return None,
    };
    Some((cause, format!("Op{op:?} without a defined result: {why}")))
}
