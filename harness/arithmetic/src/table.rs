//! A table of frequent 32-bit instructions, for interpreters that decode once.

use rspirv::spirv::Op;

use crate::{Instruction, NumberKind, scalar};

/// Computes like [`scalar`], but no result that may vary; a unary instruction ignores the second number.
pub type Computation = fn(u64, u64) -> Option<u64>;

macro_rules! table {
    ($($kind:ident: $($op:ident)*;)*) => {
        /// Returns the function of a frequent instruction if `from` and `bits` are 32.
        pub fn computation(op: Op, kind: NumberKind, from: u32, bits: u32) -> Option<Computation> {
            match (kind, op) {
                _ if (from, bits) != (32, 32) => None,
                $($((NumberKind::$kind, Op::$op) => Some(|a, b| {
                    let kind = NumberKind::$kind;
                    scalar(Op::$op, &[a, b], kind, 32, 32).filter(|result| {
                        !Instruction::Core(Op::$op).may_vary_component(&[a, b], kind, 32, 32, *result)
                    })
                }),)*)*
                _ => None,
            }
        }
    };
}

table! {
    Bool: LogicalEqual LogicalNotEqual LogicalOr LogicalAnd LogicalNot;
    Integer:
        IAdd ISub IMul UDiv SDiv UMod SRem SMod SNegate Not
        BitwiseAnd BitwiseOr BitwiseXor ShiftLeftLogical ShiftRightLogical ShiftRightArithmetic BitCount
        IEqual INotEqual ULessThan ULessThanEqual UGreaterThan UGreaterThanEqual
        SLessThan SLessThanEqual SGreaterThan SGreaterThanEqual
        ConvertSToF ConvertUToF;
    Float:
        FAdd FSub FMul FDiv FNegate ConvertFToU ConvertFToS IsNan IsInf
        FOrdEqual FUnordEqual FOrdNotEqual FUnordNotEqual FOrdLessThan FUnordLessThan
        FOrdGreaterThan FUnordGreaterThan FOrdLessThanEqual FUnordLessThanEqual
        FOrdGreaterThanEqual FUnordGreaterThanEqual;
}
