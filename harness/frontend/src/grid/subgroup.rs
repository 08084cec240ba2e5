//! Subgroup operations: the lanes at one dynamic instance execute them together. They do not order memory.

use rspirv::spirv::{GroupOperation, Op};

use crate::error::{Problem, malformed, unsupported};

use arithmetic::{bits_of, float_of, mask};

use super::compute::flatten_components;
use super::machine::{Interpreter, InvocationCtx, InvocationState, Step};
use super::program::{Inst, ScalarKind};
use super::value::{ConcreteValue, INACTIVE_LANE, Taint, UNDEFINED};

/// Returns true if the lanes have to meet for the operation.
pub(super) fn is_collective(op: Op) -> bool {
    format!("{op:?}").starts_with("GroupNonUniform") && !is_ballot_query(op)
}

/// Returns true for queries of an existing ballot, which each lane executes alone.
fn is_ballot_query(op: Op) -> bool {
    matches!(
        op,
        Op::GroupNonUniformInverseBallot
            | Op::GroupNonUniformBallotBitExtract
            | Op::GroupNonUniformBallotBitCount
            | Op::GroupNonUniformBallotFindLSB
            | Op::GroupNonUniformBallotFindMSB
    )
}

/// Returns the bits of a ballot.
fn ballot_bits(value: &ConcreteValue) -> (u128, Taint) {
    let mut words = Vec::new();
    flatten_components(value, &mut words);
    let bits = words
        .iter()
        .enumerate()
        .fold(0, |all, (index, word)| all | u128::from(word.0 & mask(32)) << (32 * index.min(3)));
    (bits, words.iter().fold(0, |all, word| all | word.1))
}

/// Returns a ballot as a vector of four words.
fn ballot_value(bits: u128, taint: Taint) -> ConcreteValue {
    ConcreteValue::from_components(
        (0..4).map(|word| ConcreteValue::Bits((bits >> (32 * word)) as u64 & mask(32), taint)),
    )
}

/// Combines two values of a reduction.
fn combine_values(op: Op, a: u64, b: u64, bits: u32) -> Option<u64> {
    let integer = |op: Op| arithmetic::fold(op, &[a, b], bits, bits);
    let less = |op: Op| arithmetic::fold(op, &[a, b], bits, 32).map(|holds| holds != 0);
    let (x, y) = (float_of(a, bits), float_of(b, bits));
    Some(match op {
        Op::GroupNonUniformIAdd => integer(Op::IAdd)?,
        Op::GroupNonUniformIMul => integer(Op::IMul)?,
        Op::GroupNonUniformFAdd => bits_of(x + y, bits),
        Op::GroupNonUniformFMul => bits_of(x * y, bits),
        Op::GroupNonUniformFMin => bits_of(x.min(y), bits),
        Op::GroupNonUniformFMax => bits_of(x.max(y), bits),
        Op::GroupNonUniformSMin => {
            if less(Op::SLessThan)? {
                a
            } else {
                b
            }
        }
        Op::GroupNonUniformSMax => {
            if less(Op::SLessThan)? {
                b
            } else {
                a
            }
        }
        Op::GroupNonUniformUMin => a.min(b),
        Op::GroupNonUniformUMax => a.max(b),
        Op::GroupNonUniformBitwiseAnd | Op::GroupNonUniformLogicalAnd => a & b,
        Op::GroupNonUniformBitwiseOr | Op::GroupNonUniformLogicalOr => a | b,
        Op::GroupNonUniformBitwiseXor | Op::GroupNonUniformLogicalXor => a ^ b,
        _ => return None,
    })
}

/// Returns the identity of a reduction.
fn reduction_identity(op: Op, bits: u32) -> u64 {
    let float = |value: f64| bits_of(value, bits);
    match op {
        Op::GroupNonUniformIMul | Op::GroupNonUniformLogicalAnd => 1,
        Op::GroupNonUniformFMul => float(1.0),
        Op::GroupNonUniformFMin => float(f64::INFINITY),
        Op::GroupNonUniformFMax => float(f64::NEG_INFINITY),
        Op::GroupNonUniformSMin => mask(bits) >> 1,
        Op::GroupNonUniformSMax => mask(bits) & !(mask(bits) >> 1),
        Op::GroupNonUniformUMin | Op::GroupNonUniformBitwiseAnd => mask(bits),
        _ => 0,
    }
}

/// The operands of one lane.
struct SubgroupLane {
    index: usize,
    lane: u32,
    arguments: Vec<ConcreteValue>,
}

impl Interpreter<'_> {
    /// Executes the operation at which the lanes `together` wait.
    pub(super) fn execute_collective(
        &mut self,
        workgroup: &mut super::machine::WorkgroupState,
        together: &[usize],
    ) -> Step<()> {
        let program = self.program;
        let Some(first) = together.first() else { return Ok(()) };
        let site = self.current_site(&workgroup.invocations[*first]);
        let Some(inst) = program.instruction_at(site).copied() else {
            return Err(malformed("unknown instruction").into());
        };
        let operands = program.module.operands_of(&inst.raw);
        let mut lanes = Vec::new();
        for index in together {
            let here = InvocationCtx { workgroup, index: *index };
            let mut arguments = Vec::new();
            for (position, id) in operands.iter().enumerate() {
                // Skips the scope operand, which one operation does not have, and the literal of the group
                // operation.
                let scope = position == 0 && inst.raw.op != Op::GroupNonUniformPartitionNV;
                let known = !scope && program.slots_of(*id).has_value();
                let known = known.then(|| self.value_of_id(&here, *id).ok()).flatten();
                arguments.push(known.unwrap_or(ConcreteValue::NoBits(0)));
            }
            let lane = workgroup.invocations[*index].lane;
            lanes.push(SubgroupLane { index: *index, lane, arguments });
        }
        let results = self.collective_results(&inst, operands, &lanes)?;
        for (lane, value) in lanes.iter().zip(results) {
            let mut here = InvocationCtx { workgroup, index: lane.index };
            here.invocation_mut().state = InvocationState::Running;
            self.set_result(&mut here, &inst, value)?;
        }
        self.changes += 1;
        Ok(())
    }

    fn collective_results(
        &mut self,
        inst: &Inst,
        operands: &[u32],
        lanes: &[SubgroupLane],
    ) -> Result<Vec<ConcreteValue>, Problem> {
        let op = inst.raw.op;
        let argument = |lane: &SubgroupLane, index: usize| {
            lane.arguments.get(index).cloned().unwrap_or(ConcreteValue::NoBits(0))
        };
        let number = |lane: &SubgroupLane, index: usize| {
            let mut all = Vec::new();
            flatten_components(&argument(lane, index), &mut all);
            all.first().copied().unwrap_or((0, 0))
        };
        let numbers = |lane: &SubgroupLane, index: usize| {
            let mut all = Vec::new();
            flatten_components(&argument(lane, index), &mut all);
            all.into_iter().map(|one| one.0).collect::<Vec<_>>()
        };
        let taint_of =
            |index: usize| lanes.iter().fold(0, |all, lane| all | argument(lane, index).combined_taint());
        let taint = taint_of(1);
        let of_lane = |wanted: u64, from: &SubgroupLane, more: Taint| {
            let found = lanes.iter().find(|lane| u64::from(lane.lane) == wanted);
            match found {
                Some(lane) => argument(lane, 1).with_taint(more),
                None => argument(from, 1).with_taint(more | UNDEFINED | INACTIVE_LANE),
            }
        };
        let every = |value: ConcreteValue| Ok(vec![value; lanes.len()]);
        let lowest = lanes.iter().map(|lane| lane.lane).min().unwrap_or(0);
        match op {
            Op::GroupNonUniformElect => {
                Ok(lanes.iter().map(|lane| ConcreteValue::from_bool(lane.lane == lowest, 0)).collect())
            }
            Op::GroupNonUniformAll => {
                every(ConcreteValue::from_bool(lanes.iter().all(|lane| number(lane, 1).0 != 0), taint))
            }
            Op::GroupNonUniformAny => {
                every(ConcreteValue::from_bool(lanes.iter().any(|lane| number(lane, 1).0 != 0), taint))
            }
            Op::GroupNonUniformAllEqual => {
                let first = lanes.first().map(|lane| numbers(lane, 1));
                let same = lanes.iter().all(|lane| Some(numbers(lane, 1)) == first);
                every(ConcreteValue::from_bool(same, taint))
            }
            Op::GroupNonUniformBallot => {
                let bits = lanes
                    .iter()
                    .filter(|lane| number(lane, 1).0 != 0)
                    .fold(0, |all, lane| all | 1 << lane.lane);
                every(ballot_value(bits, taint))
            }
            Op::GroupNonUniformBroadcastFirst => {
                let first = lanes.iter().find(|lane| lane.lane == lowest);
                every(first.map_or(ConcreteValue::Bits(0, UNDEFINED), |lane| argument(lane, 1)))
            }
            Op::GroupNonUniformBroadcast | Op::GroupNonUniformShuffle => Ok(lanes
                .iter()
                .map(|lane| {
                    let (wanted, taint) = number(lane, 2);
                    of_lane(wanted, lane, taint)
                })
                .collect()),
            Op::GroupNonUniformShuffleXor | Op::GroupNonUniformShuffleUp | Op::GroupNonUniformShuffleDown => {
                Ok(lanes
                    .iter()
                    .map(|lane| {
                        let ((by, taint), mine) = (number(lane, 2), u64::from(lane.lane));
                        let wanted = match op {
                            Op::GroupNonUniformShuffleXor => mine ^ by,
                            Op::GroupNonUniformShuffleUp => mine.wrapping_sub(by),
                            _ => mine.wrapping_add(by),
                        };
                        of_lane(wanted, lane, taint)
                    })
                    .collect())
            }
            Op::GroupNonUniformRotateKHR => Ok(lanes
                .iter()
                .map(|lane| {
                    let ((by, taint), mine) = (number(lane, 2), u64::from(lane.lane));
                    // Rotates within the cluster, or within the subgroup if none is given.
                    let size = match operands.get(3) {
                        Some(_) => number(lane, 3).0.max(1),
                        None => u64::from(self.setup.subgroup_size),
                    };
                    let within = mine % size;
                    of_lane(mine - within + within.wrapping_add(by) % size, lane, taint)
                })
                .collect()),
            Op::GroupNonUniformQuadBroadcast | Op::GroupNonUniformQuadSwap => Ok(lanes
                .iter()
                .map(|lane| {
                    let ((by, taint), mine) = (number(lane, 2), u64::from(lane.lane));
                    let wanted = match (op, by) {
                        (Op::GroupNonUniformQuadBroadcast, by) => mine & !3 | by & 3,
                        (_, 0) => mine ^ 1,
                        (_, 1) => mine ^ 2,
                        _ => mine ^ 3,
                    };
                    of_lane(wanted, lane, taint)
                })
                .collect()),
            Op::GroupNonUniformPartitionNV => Ok(lanes
                .iter()
                .map(|lane| {
                    let mine = numbers(lane, 0);
                    let alike = lanes.iter().filter(|other| numbers(other, 0) == mine);
                    ballot_value(alike.fold(0, |all, lane| all | 1 << lane.lane), taint_of(0))
                })
                .collect()),
            _ => self.reduce_lanes(inst, operands, lanes),
        }
    }

    /// Executes reductions and scans.
    fn reduce_lanes(
        &self,
        inst: &Inst,
        operands: &[u32],
        lanes: &[SubgroupLane],
    ) -> Result<Vec<ConcreteValue>, Problem> {
        let op = inst.raw.op;
        let refuse = || unsupported(format!("Op{op:?}"));
        let shape = self.program.number_layout(inst.raw.ty);
        let (kind, bits, count) = shape.ok_or_else(refuse)?;
        let bits = if kind == ScalarKind::Bool { 1 } else { bits };
        let way = operands.get(1).copied().and_then(GroupOperation::from_u32).ok_or_else(refuse)?;
        let value = |lane: &SubgroupLane| {
            let mut all = Vec::new();
            flatten_components(lane.arguments.get(2).unwrap_or(&ConcreteValue::NoBits(0)), &mut all);
            all
        };
        let cluster = match (way, lanes.first().and_then(|lane| lane.arguments.get(3))) {
            (GroupOperation::ClusteredReduce, Some(ConcreteValue::Bits(size, _))) => (*size as u32).max(1),
            _ => u32::MAX,
        };
        let partition = |lane: &SubgroupLane| match way {
            GroupOperation::PartitionedReduceNV
            | GroupOperation::PartitionedInclusiveScanNV
            | GroupOperation::PartitionedExclusiveScanNV => {
                lane.arguments.get(3).map_or(0, |of| ballot_bits(of).0)
            }
            _ => u128::from(lane.lane / cluster),
        };
        let mut results = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let counts = |other: &&SubgroupLane| {
                partition(other) == partition(lane)
                    && match way {
                        GroupOperation::InclusiveScan | GroupOperation::PartitionedInclusiveScanNV => {
                            other.lane <= lane.lane
                        }
                        GroupOperation::ExclusiveScan | GroupOperation::PartitionedExclusiveScanNV => {
                            other.lane < lane.lane
                        }
                        _ => true,
                    }
            };
            let mut parts = vec![(None, 0); count.unwrap_or(1) as usize];
            for other in lanes.iter().filter(counts) {
                for (part, (number, taint)) in parts.iter_mut().zip(value(other)) {
                    let next = match part.0 {
                        None => number,
                        Some(before) => combine_values(op, before, number, bits).ok_or_else(refuse)?,
                    };
                    *part = (Some(next), part.1 | taint);
                }
            }
            if combine_values(op, 0, 0, bits).is_none() {
                return Err(refuse());
            }
            let mut values: Vec<ConcreteValue> = parts
                .into_iter()
                .map(|(number, taint): (Option<u64>, Taint)| {
                    ConcreteValue::Bits(number.unwrap_or_else(|| reduction_identity(op, bits)), taint)
                })
                .collect();
            results.push(match count {
                Some(_) => ConcreteValue::from_components(values),
                None => values.pop().ok_or_else(refuse)?,
            });
        }
        Ok(results)
    }

    /// Executes a ballot query for one lane.
    pub(super) fn execute_ballot_query(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<()> {
        let op = inst.raw.op;
        let lane = here.invocation_mut().lane;
        let size = self.setup.subgroup_size;
        let all = 1_u128.checked_shl(size).unwrap_or(0).wrapping_sub(1);
        let refuse = || unsupported(format!("Op{op:?}"));
        let value = match op {
            Op::GroupNonUniformInverseBallot => {
                let (bits, taint) = ballot_bits(&self.operand_value(here, inst, 1)?);
                ConcreteValue::from_bool(bits >> lane & 1 != 0, taint)
            }
            Op::GroupNonUniformBallotBitExtract => {
                let (bits, taint) = ballot_bits(&self.operand_value(here, inst, 1)?);
                let (index, more) = self.operand_bits(here, inst, 2)?;
                ConcreteValue::from_bool(bits >> index.min(127) & 1 != 0, taint | more)
            }
            Op::GroupNonUniformBallotBitCount => {
                let way = GroupOperation::from_u32(self.program.module.operand_at(&inst.raw, 1)?);
                let (bits, taint) = ballot_bits(&self.operand_value(here, inst, 2)?);
                let counted = match way {
                    Some(GroupOperation::Reduce) => bits & all,
                    Some(GroupOperation::InclusiveScan) => bits & (2_u128 << lane).wrapping_sub(1),
                    Some(GroupOperation::ExclusiveScan) => bits & (1_u128 << lane).wrapping_sub(1),
                    _ => return Err(refuse().into()),
                };
                ConcreteValue::Bits(u64::from(counted.count_ones()), taint)
            }
            Op::GroupNonUniformBallotFindLSB | Op::GroupNonUniformBallotFindMSB => {
                let (bits, taint) = ballot_bits(&self.operand_value(here, inst, 1)?);
                let bits = bits & all;
                match op {
                    _ if bits == 0 => ConcreteValue::Bits(0, taint | UNDEFINED),
                    Op::GroupNonUniformBallotFindLSB => {
                        ConcreteValue::Bits(u64::from(bits.trailing_zeros()), taint)
                    }
                    _ => ConcreteValue::Bits(u64::from(127 - bits.leading_zeros()), taint),
                }
            }
            _ => return Err(refuse().into()),
        };
        self.set_result(here, inst, value)
    }
}
