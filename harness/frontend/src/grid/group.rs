//! Operations of subgroups: all lanes that come to one instance do it together. Memory is not ordered by them.

use rspirv::spirv::{GroupOperation, Op};

use crate::error::{Problem, malformed, unsupported};

use arithmetic::{bits_of, float_of, mask};

use super::compute::flattened;
use super::machine::{Doing, Here, Machine, Step};
use super::program::{Inst, Kind};
use super::value::{NO_LANE, Taint, UNDEFINED, Value};

/// Whether lanes have to come together for it.
pub(super) fn is_collective(op: Op) -> bool {
    format!("{op:?}").starts_with("GroupNonUniform") && !is_alone(op)
}

/// Operations on a ballot that was taken: each lane does them for itself.
fn is_alone(op: Op) -> bool {
    matches!(
        op,
        Op::GroupNonUniformInverseBallot
            | Op::GroupNonUniformBallotBitExtract
            | Op::GroupNonUniformBallotBitCount
            | Op::GroupNonUniformBallotFindLSB
            | Op::GroupNonUniformBallotFindMSB
    )
}

/// The bits of a ballot.
fn ballot_of(value: &Value) -> (u128, Taint) {
    let mut words = Vec::new();
    flattened(value, &mut words);
    let bits = words
        .iter()
        .enumerate()
        .fold(0, |all, (index, word)| all | u128::from(word.0 & mask(32)) << (32 * index.min(3)));
    (bits, words.iter().fold(0, |all, word| all | word.1))
}

/// A ballot as a vector of words.
fn ballot(bits: u128, taint: Taint) -> Value {
    Value::many((0..4).map(|word| Value::Bits((bits >> (32 * word)) as u64 & mask(32), taint)))
}

/// What a reduction begins with, and how it goes on.
fn combine(op: Op, a: u64, b: u64, bits: u32) -> Option<u64> {
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

/// The value that a reduction of nothing has.
fn identity(op: Op, bits: u32) -> u64 {
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

/// What each lane comes with.
struct Lane {
    index: usize,
    lane: u32,
    arguments: Vec<Value>,
}

impl Machine<'_> {
    /// The lanes `together` of a workgroup do the operation that they wait at.
    pub(super) fn together(
        &mut self,
        workgroup: &mut super::machine::Workgroup,
        together: &[usize],
    ) -> Step<()> {
        let program = self.program;
        let Some(first) = together.first() else { return Ok(()) };
        let site = self.site_of(&workgroup.invocations[*first]);
        let Some(inst) = program.site(site).copied() else {
            return Err(malformed("no such instruction").into());
        };
        let operands = program.module.operands(&inst.raw);
        let mut lanes = Vec::new();
        for index in together {
            let here = Here { workgroup, index: *index };
            let mut arguments = Vec::new();
            for (position, id) in operands.iter().enumerate() {
                // The scope, which one operation alone has not, and the literal of what kind of reduction it is.
                let scope = position == 0 && inst.raw.op != Op::GroupNonUniformPartitionNV;
                let known = !scope && program.slots(*id).is_somewhere();
                let known = known.then(|| self.value(&here, *id).ok()).flatten();
                arguments.push(known.unwrap_or(Value::Nothing(0)));
            }
            let lane = workgroup.invocations[*index].lane;
            lanes.push(Lane { index: *index, lane, arguments });
        }
        let results = self.results(&inst, operands, &lanes)?;
        for (lane, value) in lanes.iter().zip(results) {
            let mut here = Here { workgroup, index: lane.index };
            here.me().doing = Doing::Runs;
            self.set(&mut here, &inst, value)?;
        }
        self.changes += 1;
        Ok(())
    }

    fn results(&mut self, inst: &Inst, operands: &[u32], lanes: &[Lane]) -> Result<Vec<Value>, Problem> {
        let op = inst.raw.op;
        let argument =
            |lane: &Lane, index: usize| lane.arguments.get(index).cloned().unwrap_or(Value::Nothing(0));
        let number = |lane: &Lane, index: usize| {
            let mut all = Vec::new();
            flattened(&argument(lane, index), &mut all);
            all.first().copied().unwrap_or((0, 0))
        };
        let numbers = |lane: &Lane, index: usize| {
            let mut all = Vec::new();
            flattened(&argument(lane, index), &mut all);
            all.into_iter().map(|one| one.0).collect::<Vec<_>>()
        };
        let taint_of = |index: usize| lanes.iter().fold(0, |all, lane| all | argument(lane, index).taint());
        let taint = taint_of(1);
        let of_lane = |wanted: u64, from: &Lane, more: Taint| {
            let found = lanes.iter().find(|lane| u64::from(lane.lane) == wanted);
            match found {
                Some(lane) => argument(lane, 1).tainted(more),
                None => argument(from, 1).tainted(more | UNDEFINED | NO_LANE),
            }
        };
        let every = |value: Value| Ok(vec![value; lanes.len()]);
        let lowest = lanes.iter().map(|lane| lane.lane).min().unwrap_or(0);
        match op {
            Op::GroupNonUniformElect => {
                Ok(lanes.iter().map(|lane| Value::truth(lane.lane == lowest, 0)).collect())
            }
            Op::GroupNonUniformAll => {
                every(Value::truth(lanes.iter().all(|lane| number(lane, 1).0 != 0), taint))
            }
            Op::GroupNonUniformAny => {
                every(Value::truth(lanes.iter().any(|lane| number(lane, 1).0 != 0), taint))
            }
            Op::GroupNonUniformAllEqual => {
                let first = lanes.first().map(|lane| numbers(lane, 1));
                let same = lanes.iter().all(|lane| Some(numbers(lane, 1)) == first);
                every(Value::truth(same, taint))
            }
            Op::GroupNonUniformBallot => {
                let bits = lanes
                    .iter()
                    .filter(|lane| number(lane, 1).0 != 0)
                    .fold(0, |all, lane| all | 1 << lane.lane);
                every(ballot(bits, taint))
            }
            Op::GroupNonUniformBroadcastFirst => {
                let first = lanes.iter().find(|lane| lane.lane == lowest);
                every(first.map_or(Value::Bits(0, UNDEFINED), |lane| argument(lane, 1)))
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
                    // Around its cluster, which is the whole subgroup where none is named.
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
                    ballot(alike.fold(0, |all, lane| all | 1 << lane.lane), taint_of(0))
                })
                .collect()),
            _ => self.reduced(inst, operands, lanes),
        }
    }

    /// Reductions and scans.
    fn reduced(&self, inst: &Inst, operands: &[u32], lanes: &[Lane]) -> Result<Vec<Value>, Problem> {
        let op = inst.raw.op;
        let refuse = || unsupported(format!("Op{op:?}"));
        let shape = self.program.numbers(inst.raw.ty);
        let (kind, bits, count) = shape.ok_or_else(refuse)?;
        let bits = if kind == Kind::Bool { 1 } else { bits };
        let way = operands.get(1).copied().and_then(GroupOperation::from_u32).ok_or_else(refuse)?;
        let value = |lane: &Lane| {
            let mut all = Vec::new();
            flattened(lane.arguments.get(2).unwrap_or(&Value::Nothing(0)), &mut all);
            all
        };
        let cluster = match (way, lanes.first().and_then(|lane| lane.arguments.get(3))) {
            (GroupOperation::ClusteredReduce, Some(Value::Bits(size, _))) => (*size as u32).max(1),
            _ => u32::MAX,
        };
        let partition = |lane: &Lane| match way {
            GroupOperation::PartitionedReduceNV
            | GroupOperation::PartitionedInclusiveScanNV
            | GroupOperation::PartitionedExclusiveScanNV => {
                lane.arguments.get(3).map_or(0, |of| ballot_of(of).0)
            }
            _ => u128::from(lane.lane / cluster),
        };
        let mut results = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let counts = |other: &&Lane| {
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
                        Some(before) => combine(op, before, number, bits).ok_or_else(refuse)?,
                    };
                    *part = (Some(next), part.1 | taint);
                }
            }
            if combine(op, 0, 0, bits).is_none() {
                return Err(refuse());
            }
            let mut values: Vec<Value> = parts
                .into_iter()
                .map(|(number, taint): (Option<u64>, Taint)| {
                    Value::Bits(number.unwrap_or_else(|| identity(op, bits)), taint)
                })
                .collect();
            results.push(match count {
                Some(_) => Value::many(values),
                None => values.pop().ok_or_else(refuse)?,
            });
        }
        Ok(results)
    }

    /// What a lane does with a ballot for itself.
    pub(super) fn alone_in_group(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        let op = inst.raw.op;
        let lane = here.me().lane;
        let size = self.setup.subgroup_size;
        let all = 1_u128.checked_shl(size).unwrap_or(0).wrapping_sub(1);
        let refuse = || unsupported(format!("Op{op:?}"));
        let value = match op {
            Op::GroupNonUniformInverseBallot => {
                let (bits, taint) = ballot_of(&self.operand(here, inst, 1)?);
                Value::truth(bits >> lane & 1 != 0, taint)
            }
            Op::GroupNonUniformBallotBitExtract => {
                let (bits, taint) = ballot_of(&self.operand(here, inst, 1)?);
                let (index, more) = self.bits(here, inst, 2)?;
                Value::truth(bits >> index.min(127) & 1 != 0, taint | more)
            }
            Op::GroupNonUniformBallotBitCount => {
                let way = GroupOperation::from_u32(self.program.module.operand(&inst.raw, 1)?);
                let (bits, taint) = ballot_of(&self.operand(here, inst, 2)?);
                let counted = match way {
                    Some(GroupOperation::Reduce) => bits & all,
                    Some(GroupOperation::InclusiveScan) => bits & (2_u128 << lane).wrapping_sub(1),
                    Some(GroupOperation::ExclusiveScan) => bits & (1_u128 << lane).wrapping_sub(1),
                    _ => return Err(refuse().into()),
                };
                Value::Bits(u64::from(counted.count_ones()), taint)
            }
            Op::GroupNonUniformBallotFindLSB | Op::GroupNonUniformBallotFindMSB => {
                let (bits, taint) = ballot_of(&self.operand(here, inst, 1)?);
                let bits = bits & all;
                match op {
                    _ if bits == 0 => Value::Bits(0, taint | UNDEFINED),
                    Op::GroupNonUniformBallotFindLSB => Value::Bits(u64::from(bits.trailing_zeros()), taint),
                    _ => Value::Bits(u64::from(127 - bits.leading_zeros()), taint),
                }
            }
            _ => return Err(refuse().into()),
        };
        self.set(here, inst, value)
    }
}
