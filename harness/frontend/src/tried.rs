//! What is tried for values that nobody gave: memory without contents, undefined constants, variables that were never written.
//!
//! Any value may stand there, and what is looked at is which way a kernel goes. So each value is tried on both sides of what the
//! code compares and computes with, and what the question asks for.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::spirv::Op;

use crate::lift::Setting;
use crate::value::Origin;

/// What is tried in all combinations, of so many values that nobody gave.
const FIRST: [u64; 2] = [0, 1];
const COMBINED: usize = 4;
/// Further values at most, and ways to choose at most.
const MAX_VALUES: usize = 24;
const MAX_WAYS: usize = 64;

/// One way to choose.
pub(crate) type Assignment = BTreeMap<Origin, u64>;

/// Values by which the code or a question may tell something: beside the first ones.
pub(crate) fn values(setting: &Setting<'_>, asked: &BTreeSet<u64>) -> Vec<u64> {
    let module = setting.module();
    let (mut constants, mut signed) = (BTreeSet::new(), false);
    for instruction in module.functions.values().flat_map(|function| &function.code) {
        let computes = match instruction.op {
            Op::SLessThan | Op::SLessThanEqual | Op::SGreaterThan | Op::SGreaterThanEqual => {
                signed = true;
                true
            }
            Op::Switch => {
                // A selector and a default, then each time a literal and a label.
                let literals = module.operands(instruction).iter().skip(2).step_by(2);
                constants.extend(literals.map(|literal| u64::from(*literal)));
                false
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
            let operands = module.operands(instruction).iter();
            constants.extend(operands.filter_map(|id| setting.specialized.number(*id)));
        }
    }
    // What a constant makes of what is asked.
    let sums = asked.iter().flat_map(|asked| {
        constants.iter().flat_map(|known| [asked.wrapping_sub(*known), asked.wrapping_add(*known)])
    });
    let near = constants.iter().flat_map(|known| [*known, known.wrapping_add(1)]);
    let below_zero = signed.then_some(u64::from(u32::MAX));
    let mut values: Vec<u64> = asked.iter().copied().chain(below_zero).chain(near).chain(sums).collect();
    let mut seen: BTreeSet<u64> = FIRST.into_iter().collect();
    values.retain(|value| seen.insert(*value));
    values.truncate(MAX_VALUES);
    values
}

/// The ways to choose, but for the one that takes each for zero.
pub(crate) fn ways(origins: &BTreeSet<Origin>, values: &[u64]) -> Vec<Assignment> {
    let mut ways = Vec::new();
    let combined: Vec<Origin> = origins.iter().take(COMBINED).copied().collect();
    for way in 1..FIRST.len().pow(combined.len() as u32) {
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
