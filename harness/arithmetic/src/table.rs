//! Instructions on one or two numbers of 32 bits, looked up once by whoever executes them often.

use rspirv::spirv::Op;

use crate::{Kind, scalar};

/// Computes as [`scalar`] does; an instruction on one number does not look at the second.
pub type Computation = fn(u64, u64) -> Option<u64>;

macro_rules! table {
    ($($kind:ident: $($op:ident)*;)*) => {
        /// The computation of an instruction on numbers of `from` bits, where it is among those that are often met and `from` and `bits`
        /// are 32.
        pub fn computation(op: Op, kind: Kind, from: u32, bits: u32) -> Option<Computation> {
            match (kind, op) {
                _ if (from, bits) != (32, 32) => None,
                $($((Kind::$kind, Op::$op) => Some(|a, b| scalar(Op::$op, &[a, b], Kind::$kind, 32, 32)),)*)*
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
