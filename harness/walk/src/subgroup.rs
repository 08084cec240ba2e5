//! Subgroup operations: the lanes at one dynamic instance execute them together. They do not order memory.

use arithmetic::{Instruction, mask};
use rspirv::spirv::GroupOperation;
use spirv_reader::{BallotQuery, SpirvOperation, SubgroupFunction, reduction_identity};

use entry_point::{Problem, malformed, unsupported};

use super::compute::flatten_components;
use super::program::DecodedInstruction;
use super::scalar_kind::ScalarKind;
use super::state::{Interpreter, InvocationCtx, InvocationState};
use super::step::Step;
use super::value::{ConcreteValue, INACTIVE_LANE, OPAQUE, Taint, UNDEFINED};

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

/// The operands of one lane.
struct SubgroupLane {
    index: usize,
    lane: u32,
    value: ConcreteValue,
    argument: ConcreteValue,
    cluster: Option<u64>,
}

impl SubgroupLane {
    /// Returns the components of the value.
    fn numbers(&self) -> Vec<u64> {
        let mut all = Vec::new();
        flatten_components(&self.value, &mut all);
        all.into_iter().map(|one| one.0).collect()
    }

    fn is_true(&self) -> bool {
        self.numbers().first().is_some_and(|number| *number != 0)
    }

    /// Returns the lane whose value an operation reads, with the taint of the choice.
    fn source_lane(&self, function: SubgroupFunction, subgroup_size: u32) -> Option<(u64, Taint)> {
        let mut all = Vec::new();
        flatten_components(&self.argument, &mut all);
        let ((by, taint), mine) = (all.first().copied().unwrap_or((0, 0)), u64::from(self.lane));
        let lane = match function {
            SubgroupFunction::Broadcast | SubgroupFunction::Shuffle => by,
            SubgroupFunction::ShuffleXor => mine ^ by,
            SubgroupFunction::ShuffleUp => mine.wrapping_sub(by),
            SubgroupFunction::ShuffleDown => mine.wrapping_add(by),
            SubgroupFunction::Rotate { .. } => {
                // Rotates within the cluster, or within the subgroup if none is given.
                let size = self.cluster.unwrap_or(u64::from(subgroup_size)).max(1);
                let within = mine % size;
                mine - within + within.wrapping_add(by) % size
            }
            SubgroupFunction::QuadBroadcast => mine & !3 | by & 3,
            SubgroupFunction::QuadSwap => mine ^ (by.min(2) + 1),
            SubgroupFunction::Elect
            | SubgroupFunction::All
            | SubgroupFunction::Any
            | SubgroupFunction::AllEqual
            | SubgroupFunction::Ballot
            | SubgroupFunction::BroadcastFirst
            | SubgroupFunction::QuadAll
            | SubgroupFunction::QuadAny
            | SubgroupFunction::Partition
            | SubgroupFunction::Reduce { .. } => return None,
        };
        Some((lane, taint))
    }
}

impl Interpreter<'_> {
    /// Executes the operation at which the lanes `together` wait.
    pub(super) fn execute_collective(
        &mut self,
        workgroup: &mut super::state::WorkgroupState,
        together: &[usize],
    ) -> Step<()> {
        let program = self.program;
        let Some(first) = together.first() else { return Ok(()) };
        let site = self.current_site(&workgroup.invocations[*first]);
        let Some(inst) = program.instruction_at(site).copied() else {
            return Err(malformed("unknown instruction").into());
        };
        let SpirvOperation::Subgroup(operation) = inst.operation else {
            return Err(malformed("a wait at an instruction that is not a subgroup operation").into());
        };
        let mut lanes = Vec::new();
        for index in together {
            let here = InvocationCtx { workgroup, index: *index };
            let known = |id: Option<u32>| match id {
                Some(id) => self.value_of_id(&here, id),
                None => Ok(ConcreteValue::NoBits(0)),
            };
            let (value, argument) = (known(operation.value)?, known(operation.argument)?);
            let cluster = match operation.function {
                SubgroupFunction::Rotate { cluster: Some(size) } => Some(self.bits_of_id(&here, size)?.0),
                _ => None,
            };
            let lane = workgroup.invocations[*index].lane;
            lanes.push(SubgroupLane { index: *index, lane, value, argument, cluster });
        }
        let results = self.collective_results(&inst, operation.function, &lanes)?;
        for (lane, value) in lanes.iter().zip(results) {
            let mut ctx = InvocationCtx { workgroup, index: lane.index };
            ctx.invocation_mut().state = InvocationState::Running;
            self.set_result(&mut ctx, &inst, value)?;
        }
        self.changes += 1;
        Ok(())
    }

    fn collective_results(
        &mut self,
        inst: &DecodedInstruction<'_>,
        function: SubgroupFunction,
        lanes: &[SubgroupLane],
    ) -> Result<Vec<ConcreteValue>, Problem> {
        let taint = lanes.iter().fold(0, |all, lane| all | lane.value.combined_taint());
        let for_all_lanes = |value: ConcreteValue| vec![value; lanes.len()];
        let truth = |holds: bool| ConcreteValue::from_bool(holds, taint);
        let ballot = |chosen: &dyn Fn(&&SubgroupLane) -> bool| {
            ballot_value(lanes.iter().filter(chosen).fold(0, |all, lane| all | 1 << lane.lane), taint)
        };
        let in_quad = |own: &SubgroupLane| {
            let quad = own.lane / 4;
            lanes.iter().filter(move |lane| lane.lane / 4 == quad)
        };
        let lowest = lanes.iter().min_by_key(|lane| lane.lane);
        Ok(match function {
            SubgroupFunction::Elect => {
                let is_lowest = |lane: &SubgroupLane| lowest.is_some_and(|lowest| lowest.lane == lane.lane);
                lanes.iter().map(|lane| ConcreteValue::from_bool(is_lowest(lane), 0)).collect()
            }
            SubgroupFunction::All => for_all_lanes(truth(lanes.iter().all(SubgroupLane::is_true))),
            SubgroupFunction::Any => for_all_lanes(truth(lanes.iter().any(SubgroupLane::is_true))),
            SubgroupFunction::QuadAll => {
                lanes.iter().map(|lane| truth(in_quad(lane).all(SubgroupLane::is_true))).collect()
            }
            SubgroupFunction::QuadAny => {
                lanes.iter().map(|lane| truth(in_quad(lane).any(SubgroupLane::is_true))).collect()
            }
            SubgroupFunction::AllEqual => {
                let first = lanes.first().map(SubgroupLane::numbers);
                for_all_lanes(truth(lanes.iter().all(|lane| Some(lane.numbers()) == first)))
            }
            SubgroupFunction::Ballot => for_all_lanes(ballot(&|lane| lane.is_true())),
            SubgroupFunction::Partition => {
                let equal_lanes = |own: &SubgroupLane| ballot(&|lane| lane.numbers() == own.numbers());
                lanes.iter().map(equal_lanes).collect()
            }
            SubgroupFunction::BroadcastFirst => {
                for_all_lanes(lowest.map_or(ConcreteValue::Bits(0, UNDEFINED), |lane| lane.value.clone()))
            }
            SubgroupFunction::Reduce { instruction, operation } => {
                self.reduce_lanes(inst, instruction, operation, lanes)?
            }
            SubgroupFunction::Broadcast
            | SubgroupFunction::Shuffle
            | SubgroupFunction::ShuffleXor
            | SubgroupFunction::ShuffleUp
            | SubgroupFunction::ShuffleDown
            | SubgroupFunction::Rotate { .. }
            | SubgroupFunction::QuadBroadcast
            | SubgroupFunction::QuadSwap => {
                let read_source = |own: &SubgroupLane| {
                    let (source, taint) = own.source_lane(function, self.setup.subgroup_size)?;
                    let found = lanes.iter().find(|lane| u64::from(lane.lane) == source);
                    Some(match found {
                        Some(lane) => lane.value.clone().with_taint(taint),
                        None => own.value.clone().with_taint(taint | UNDEFINED | INACTIVE_LANE),
                    })
                };
                lanes.iter().filter_map(read_source).collect()
            }
        })
    }

    /// Executes reductions and scans.
    fn reduce_lanes(
        &self,
        inst: &DecodedInstruction<'_>,
        instruction: Instruction,
        operation: GroupOperation,
        lanes: &[SubgroupLane],
    ) -> Result<Vec<ConcreteValue>, Problem> {
        let refuse = || unsupported(format!("Op{:?}", inst.raw.op));
        let shape = self.program.number_layout(inst.raw.ty);
        let (kind, bits, count) = shape.ok_or_else(refuse)?;
        let bits = if kind == ScalarKind::Bool { 1 } else { bits };
        let combine =
            |a: u64, b: u64| instruction.compute_component(&[a, b], kind.to_arithmetic(), bits, bits);
        let value = |lane: &SubgroupLane| {
            let mut all = Vec::new();
            flatten_components(&lane.value, &mut all);
            all
        };
        let cluster = match (operation, lanes.first().map(|lane| &lane.argument)) {
            (GroupOperation::ClusteredReduce, Some(ConcreteValue::Bits(size, _))) => (*size as u32).max(1),
            _ => u32::MAX,
        };
        let partition = |lane: &SubgroupLane| match operation {
            GroupOperation::PartitionedReduceNV
            | GroupOperation::PartitionedInclusiveScanNV
            | GroupOperation::PartitionedExclusiveScanNV => ballot_bits(&lane.argument).0,
            _ => u128::from(lane.lane / cluster),
        };
        let mut results = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let counts = |other: &&SubgroupLane| {
                partition(other) == partition(lane)
                    && match operation {
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
                    let (mut next, mut open) = (number, 0);
                    if let Some(before) = part.0 {
                        next = combine(before, number).ok_or_else(refuse)?;
                        let of = kind.to_arithmetic();
                        let pair = &[before, number];
                        let is_fixed = !self.setup.has_exact_floats
                            || instruction.is_fixed_component(pair, of, bits, bits, next);
                        let may_vary = instruction.may_vary_component(pair, of, bits, bits, next);
                        open = if is_fixed && !may_vary { 0 } else { OPAQUE };
                    }
                    *part = (Some(next), part.1 | taint | open);
                }
            }
            let mut values: Vec<ConcreteValue> = parts
                .into_iter()
                .map(|(number, taint): (Option<u64>, Taint)| {
                    let number = number.unwrap_or_else(|| reduction_identity(instruction, bits));
                    ConcreteValue::Bits(number, taint)
                })
                .collect();
            results.push(match count {
                Some(_) => ConcreteValue::from_components(values),
                None => values.pop().ok_or_else(refuse)?,
            });
        }
        Ok(results)
    }

    /// Returns the answer to a ballot query of one lane.
    pub(super) fn query_ballot(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        query: BallotQuery,
        ballot: u32,
    ) -> Step<ConcreteValue> {
        let lane = ctx.invocation_mut().lane;
        let all = 1_u128.checked_shl(self.setup.subgroup_size).unwrap_or(0).wrapping_sub(1);
        let (bits, taint) = ballot_bits(&self.value_of_id(ctx, ballot)?);
        let number = |number: u32| ConcreteValue::Bits(u64::from(number), taint);
        Ok(match query {
            BallotQuery::Inverse => ConcreteValue::from_bool(bits >> lane & 1 != 0, taint),
            BallotQuery::BitExtract { index } => {
                let (index, more) = self.bits_of_id(ctx, index)?;
                let outside = if index < self.setup.subgroup_size.into() { 0 } else { UNDEFINED };
                ConcreteValue::from_bool(bits >> index.min(127) & 1 != 0, taint | more | outside)
            }
            BallotQuery::BitCount { operation } => {
                let counted = match operation {
                    GroupOperation::Reduce => bits & all,
                    GroupOperation::InclusiveScan => bits & (2_u128 << lane).wrapping_sub(1),
                    GroupOperation::ExclusiveScan => bits & (1_u128 << lane).wrapping_sub(1),
                    _ => return Err(unsupported(format!("Op{:?}", inst.raw.op)).into()),
                };
                number(counted.count_ones())
            }
            BallotQuery::FindLsb | BallotQuery::FindMsb if bits & all == 0 => {
                ConcreteValue::Bits(0, taint | UNDEFINED)
            }
            BallotQuery::FindLsb => number((bits & all).trailing_zeros()),
            BallotQuery::FindMsb => number(127 - (bits & all).leading_zeros()),
        })
    }
}
