//! Subgroup operations, from the text of SPIR-V ("Non-Uniform Instructions") and of Vulkan's shaders chapter ("Group
//! Operations"): an invocation's result comes of what the invocations of its scope restricted tangle bring. None of them is a
//! memory operation or a memory barrier, and synchronizes-with is a closed list (VK-SW), so that they order nothing.

use litmus::{
    ArithmeticOperation, InstructionKind, Operand, QuadDirection, ScalarType, Scope, SubgroupKind,
    SubgroupSpan, Test, Value,
};

use crate::operation::Instances;
use crate::path::{NodeId, Path};
use crate::values::value;

/// A subgroup operation that a thread executes.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Which dynamic instance: those with one name are one.
    pub name: String,
    /// What is computed.
    pub kind: SubgroupKind,
    /// What the thread brings.
    pub brought: Option<NodeId>,
}

/// The type of all values: 32 bits without a sign.
pub const WORD: ScalarType = ScalarType::U32;

/// What a thread brings, as an operand.
pub fn operand(kind: &InstructionKind) -> Option<Operand> {
    kind.subgroup_operation().and_then(|operation| operation.value)
}

/// What the n-th operation of a thread gives it; none while a value that it needs is not known. What is undefined is 0: the
/// language lets nobody look at it.
pub fn result(
    test: &Test,
    instances: &Instances,
    paths: &[&Path],
    values: &[Vec<Option<Value>>],
    (thread, number): (usize, usize),
) -> Option<Value> {
    let exchange = paths[thread].exchanges.get(number)?;
    let same_subgroup =
        |left: usize, right: usize| left == right || instances.reaches(Scope::Subgroup, left, right);
    // SubgroupLocalInvocationId: the invocations of a subgroup are numbered as the columns are.
    let id = |of: usize| (0..of).filter(|other| same_subgroup(of, *other)).count() as u32;
    let mut tangle = Vec::new();
    for other in (0..test.threads.len()).filter(|other| same_subgroup(thread, *other)) {
        let found = paths[other].exchanges.iter().find(|found| found.name == exchange.name);
        tangle.extend(found.map(|found| (id(other), other, found.brought)));
    }
    let brought = |(_, other, node): &(u32, usize, Option<NodeId>)| -> Option<u32> {
        let node = (*node)?;
        Some(value(paths[*other], node, &values[*other])?.truncate(WORD).0 as u32)
    };
    let own = id(thread);
    let of = |wanted: u32| match tangle.iter().find(|(id, ..)| *id == wanted) {
        Some(found) => brought(found),
        None => Some(0),
    };
    let everyone = || tangle.iter().map(brought).collect::<Option<Vec<u32>>>();
    let answer = match exchange.kind {
        SubgroupKind::Elect => u32::from(tangle.iter().all(|(id, ..)| *id >= own)),
        SubgroupKind::All => u32::from(!everyone()?.contains(&0)),
        SubgroupKind::Any => u32::from(everyone()?.iter().any(|value| *value != 0)),
        SubgroupKind::AllEqual => {
            let all = everyone()?;
            u32::from(all.iter().all(|value| Some(value) == all.first()))
        }
        SubgroupKind::Ballot => {
            let mut bits = 0;
            for (member, value) in tangle.iter().zip(everyone()?) {
                bits |= u32::from(value != 0) << member.0;
            }
            bits
        }
        SubgroupKind::BroadcastFirst => of(tangle.iter().map(|(id, ..)| *id).min()?)?,
        SubgroupKind::Broadcast(source) | SubgroupKind::Shuffle(source) => of(source)?,
        SubgroupKind::ShuffleXor(mask) => of(own ^ mask)?,
        SubgroupKind::ShuffleUp(delta) => of(own.wrapping_sub(delta))?,
        SubgroupKind::ShuffleDown(delta) => of(own.wrapping_add(delta))?,
        SubgroupKind::Rotate { delta, cluster } => {
            of(own / cluster * cluster + (own % cluster + delta) % cluster)?
        }
        SubgroupKind::QuadBroadcast(index) => of(own / 4 * 4 + index)?,
        SubgroupKind::QuadSwap(direction) => {
            // A quad has two rows of two.
            let (row, column) = (own % 4 / 2, own % 2);
            let (row, column) = match direction {
                QuadDirection::Horizontal => (row, 1 - column),
                QuadDirection::Vertical => (1 - row, column),
                QuadDirection::Diagonal => (1 - row, 1 - column),
            };
            of(own / 4 * 4 + 2 * row + column)?
        }
        SubgroupKind::Arithmetic(span, operation) => {
            let mut counted = Vec::new();
            for member in &tangle {
                let counts = match span {
                    SubgroupSpan::Reduce => true,
                    SubgroupSpan::Inclusive => member.0 <= own,
                    SubgroupSpan::Exclusive => member.0 < own,
                };
                if counts {
                    counted.push(brought(member)?);
                }
            }
            match operation {
                ArithmeticOperation::Add => counted.iter().fold(0_u32, |sum, value| sum.wrapping_add(*value)),
                ArithmeticOperation::Minimum => counted.iter().copied().min().unwrap_or(u32::MAX),
                ArithmeticOperation::Maximum => counted.iter().copied().max().unwrap_or(0),
                ArithmeticOperation::And => counted.iter().fold(u32::MAX, |all, value| all & value),
                ArithmeticOperation::Or => counted.iter().fold(0, |all, value| all | value),
                ArithmeticOperation::Xor => counted.iter().fold(0, |all, value| all ^ value),
                _ => return None,
            }
        }
    };
    Some(Value(answer.into()))
}
