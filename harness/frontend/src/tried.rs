//! Candidate values for unspecified inputs: uninitialized memory, undefined constants and variables.
//!
//! Any value is possible there, but only the resulting control flow matters. So the candidates are boundary
//! values around the constants that the code and the question compare or compute with. This is a heuristic:
//! it may miss a value that reaches another path.

use std::collections::BTreeSet;

use arithmetic::Instruction;
use rspirv::spirv::Op;
use spirv_reader::{SpirvOperation, switch_cases};

use crate::context::{Assignment, LiftContext};
use crate::value::UndefOrigin;

/// Values that are combined exhaustively, for a few unspecified inputs.
const FIRST: [u64; 2] = [0, 1];
const COMBINED: usize = 4;
/// Upper bounds on further values and on assignments.
const MAX_VALUES: usize = 24;
const MAX_WAYS: usize = 64;

/// Returns values that may change a comparison, in addition to [`FIRST`].
pub(crate) fn values(setting: &LiftContext<'_>, asked: &BTreeSet<u64>) -> Vec<u64> {
    let module = setting.module();
    let (mut constants, mut signed) = (BTreeSet::new(), false);
    let instructions = module
        .functions
        .values()
        .flat_map(|function| function.code.iter().map(move |instruction| (function, instruction)));
    for (function, instruction) in instructions {
        let (op, operands) = match module.operation(instruction) {
            // The cases of a switch are literals, not ids of constants.
            SpirvOperation::Switch { cases, .. } => {
                let bits = module.selector_bits(&function.types, instruction);
                constants.extend(switch_cases(cases, bits).map(|case| case.literal));
                continue;
            }
            SpirvOperation::Compute { instruction: Instruction::Core(op), operands } => (op, operands),
            _ => continue,
        };
        let computes = match op {
            Op::SLessThan | Op::SLessThanEqual | Op::SGreaterThan | Op::SGreaterThanEqual => {
                signed = true;
                true
            }
            Op::IEqual
            | Op::INotEqual
            | Op::ULessThan
            | Op::ULessThanEqual
            | Op::UGreaterThan
            | Op::UGreaterThanEqual
            | Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::UDiv
            | Op::SDiv
            | Op::UMod
            | Op::SMod
            | Op::SRem
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor => true,
            _ => false,
        };
        if computes {
            constants.extend(operands.iter().filter_map(|id| setting.specialized.constant_number(*id)));
        }
    }
    // The values for which adding or subtracting a constant yields a queried value.
    let sums = asked.iter().flat_map(|asked| {
        constants.iter().flat_map(|known| [asked.wrapping_sub(*known), asked.wrapping_add(*known)])
    });
    // A comparison with a constant changes at the constant or at the next number.
    let near = constants.iter().flat_map(|known| [*known, known.wrapping_add(1)]);
    let below_zero = signed.then_some(u64::from(u32::MAX));
    let mut values: Vec<u64> = asked.iter().copied().chain(below_zero).chain(near).chain(sums).collect();
    let mut seen: BTreeSet<u64> = FIRST.into_iter().collect();
    values.retain(|value| seen.insert(*value));
    values.truncate(MAX_VALUES);
    values
}

/// Returns the assignments other than all zeros.
pub(crate) fn ways(origins: &BTreeSet<UndefOrigin>, values: &[u64]) -> Vec<Assignment> {
    let mut ways = Vec::new();
    let combined: Vec<UndefOrigin> = origins.iter().take(COMBINED).copied().collect();
    for way in 1..FIRST.len().pow(combined.len() as u32) {
        // The digits of `way` are indices into `FIRST`. Number 0 is left out: all zeros are the
        // default.
        let digit = |at: usize| FIRST[way / FIRST.len().pow(at as u32) % FIRST.len()];
        ways.push(combined.iter().enumerate().map(|(at, origin)| (*origin, digit(at))).collect());
    }
    for value in values {
        ways.push(origins.iter().map(|origin| (*origin, *value)).collect());
    }
    if origins.len() > 1 {
        let alone = values.iter().flat_map(|value| origins.iter().map(|origin| [(*origin, *value)].into()));
        ways.extend(alone);
    }
    ways.truncate(MAX_WAYS);
    ways
}
