//! Candidate values for unspecified inputs: uninitialized memory, undefined constants and variables.
//!
//! Any value is possible there, but only the resulting control flow matters. So the candidates are boundary
//! values around the constants that the code and the question compare or compute with. This is a heuristic:
//! it may miss a value that reaches another path.

use std::collections::BTreeSet;

use arithmetic::Instruction;
use entry_point::layout::specialize;
use entry_point::{AnalysisOptions, Refusal};
use rspirv::spirv::Op;
use spirv_reader::{Specialized, SpirvModule, SpirvOperation, switch_cases};

use crate::context::Assignment;
use crate::value::UndefOrigin;

/// Values that are combined exhaustively, for a few unspecified inputs.
const COMBINED_VALUES: [u64; 2] = [0, 1];
const MAX_COMBINED_ORIGINS: usize = 4;
/// Upper bounds on further values and on assignments.
const MAX_VALUES: usize = 24;
const MAX_ASSIGNMENTS: usize = 64;

/// Returns the values near those that the code of a module compares with.
///
/// # Errors
/// Fails if the entry point or its constants are malformed.
pub fn compared_values(module: &SpirvModule, options: &AnalysisOptions) -> Result<Vec<u64>, Refusal> {
    Ok(candidate_values(&specialize(module, options)?, &BTreeSet::new()))
}

/// Returns values that may change a comparison, in addition to [`COMBINED_VALUES`].
pub(crate) fn candidate_values(specialized: &Specialized<'_>, queried_values: &BTreeSet<u64>) -> Vec<u64> {
    let module = specialized.module;
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
            constants.extend(operands.iter().filter_map(|id| specialized.constant_number(*id)));
        }
    }
    // The values for which adding or subtracting a constant yields a queried value.
    let sums = queried_values.iter().flat_map(|queried| {
        constants.iter().flat_map(|known| [queried.wrapping_sub(*known), queried.wrapping_add(*known)])
    });
    // A comparison with a constant changes at the constant or at the next number.
    let neighbours = constants.iter().flat_map(|known| [*known, known.wrapping_add(1)]);
    let below_zero = signed.then_some(u64::from(u32::MAX));
    let mut values: Vec<u64> =
        queried_values.iter().copied().chain(below_zero).chain(neighbours).chain(sums).collect();
    let mut seen: BTreeSet<u64> = COMBINED_VALUES.into_iter().collect();
    values.retain(|value| seen.insert(*value));
    values.truncate(MAX_VALUES);
    values
}

/// Returns the assignments other than all zeros.
pub(crate) fn enumerate_assignments(origins: &BTreeSet<UndefOrigin>, values: &[u64]) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    let combined: Vec<UndefOrigin> = origins.iter().take(MAX_COMBINED_ORIGINS).copied().collect();
    for number in 1..COMBINED_VALUES.len().pow(combined.len() as u32) {
        // The digits of `number` are indices into `COMBINED_VALUES`. 0 is omitted: all zeros are the
        // default.
        let digit = |at: usize| {
            COMBINED_VALUES[number / COMBINED_VALUES.len().pow(at as u32) % COMBINED_VALUES.len()]
        };
        assignments.push(combined.iter().enumerate().map(|(at, origin)| (*origin, digit(at))).collect());
    }
    for value in values {
        assignments.push(origins.iter().map(|origin| (*origin, *value)).collect());
    }
    if origins.len() > 1 {
        let single_assignments =
            values.iter().flat_map(|value| origins.iter().map(|origin| [(*origin, *value)].into()));
        assignments.extend(single_assignments);
    }
    assignments.truncate(MAX_ASSIGNMENTS);
    assignments
}
