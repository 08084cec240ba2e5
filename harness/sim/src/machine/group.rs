//! Executes subgroup operations across waves, and computes which lanes meet at barriers in divergent control
//! flow.

use super::{BarrierArrivals, Machine};
use crate::fault::Fault;
use crate::program::{Program, SubgroupOpKind};
use crate::wave::{LaneOperand, LaneStatus, compute_group_result};

impl Machine {
    /// Executes the subgroup operation at a wave's program counter, once no lane of its subgroups can still
    /// arrive. Returns false if some can, or if the wave is not at such an operation. The lanes that have
    /// arrived continue; pending memory operations do not delay them.
    pub(super) fn execute_subgroup_op(&mut self, number: usize, program: &Program) -> bool {
        let own = &self.waves[number];
        let Some(group) = own.current_group_op(program) else { return false };
        // The arrived lanes by subgroup, each with its wave.
        let mut subgroups: Vec<u32> = own.arrived_lanes().map(|lane| own.paths[lane][1]).collect();
        subgroups.sort_unstable();
        subgroups.dedup();
        let mut arrived: Vec<(usize, usize)> = Vec::new();
        let mut next = 0;
        // Each subgroup may extend to other waves, whose subgroups must also have arrived.
        while let Some(subgroup) = subgroups.get(next).copied() {
            next += 1;
            for (other, wave) in self.waves.iter().enumerate() {
                if wave.dispatch != self.waves[number].dispatch {
                    continue;
                }
                for lane in 0..wave.places.len() {
                    if wave.paths[lane][1] != subgroup {
                        continue;
                    }
                    match wave.lane_status(lane, &self.waves[number], program) {
                        // Some lane may still arrive.
                        LaneStatus::MayArrive => return false,
                        LaneStatus::Passed => {}
                        LaneStatus::Arrived => {
                            arrived.push((other, lane));
                            for also in wave.arrived_lanes().map(|lane| wave.paths[lane][1]) {
                                if !subgroups.contains(&also) {
                                    subgroups.push(also);
                                }
                            }
                        }
                    }
                }
            }
        }
        let mut results = Vec::with_capacity(arrived.len());
        for subgroup in subgroups {
            let mut arrived_here: Vec<LaneRef> = arrived
                .iter()
                .filter(|(wave, lane)| self.waves[*wave].paths[*lane][1] == subgroup)
                .map(|(wave, lane)| (self.waves[*wave].places[*lane][3], *wave, *lane))
                .collect();
            // By lane number, which decides election and the first lane of a broadcast.
            arrived_here.sort_unstable();
            for tangle in self.split_into_tangles(arrived_here) {
                let operands: Vec<LaneOperand> = tangle
                    .iter()
                    .map(|(number, wave, lane)| LaneOperand {
                        lane: *number,
                        value: self.waves[*wave].lane_operand(&group, *lane),
                    })
                    .collect();
                // A barrier in divergent control flow: the lanes of this tangle will meet there.
                if group.kind == SubgroupOpKind::Reconverge {
                    let meeting = self.tangle_arrivals.len() as u32;
                    self.tangle_arrivals
                        .push(BarrierArrivals { size: tangle.len() as u32, ..BarrierArrivals::default() });
                    results.extend(tangle.iter().map(|(_, wave, lane)| (*wave, *lane, [meeting, 0, 0, 0])));
                    continue;
                }
                for (number, wave, lane) in &tangle {
                    let argument = self.waves[*wave].register_value(group.argument, *lane);
                    let words = match self.fault {
                        Fault::SubgroupActiveLanesIgnored => compute_group_result(
                            &group,
                            *number,
                            argument,
                            &add_inactive_lanes(&operands),
                            &mut self.random,
                        ),
                        _ => compute_group_result(&group, *number, argument, &operands, &mut self.random),
                    };
                    results.push((*wave, *lane, words));
                }
            }
        }
        let width = group.width();
        for (wave, lane, words) in results {
            self.waves[wave].write_result(group.to, lane, words.get(..width).unwrap_or_default());
        }
        arrived.sort_unstable();
        arrived.dedup_by_key(|(wave, _)| *wave);
        for (wave, _) in arrived {
            self.waves[wave].finish_group_op();
        }
        true
    }

    /// Partitions the arrived lanes of a subgroup into tangles, which execute the operation together. Lanes
    /// with the same branch history are in one tangle, so lanes of shaders with maximal reconvergence never
    /// diverge here. In non-uniform control flow the specification leaves reconvergence of other lanes open:
    /// they reconverge at random. A complete subgroup forms one tangle.
    fn split_into_tangles(&mut self, here: Vec<LaneRef>) -> Vec<Vec<LaneRef>> {
        let history_of = |(_, wave, lane): &LaneRef| self.waves[*wave].branch_history(*lane);
        let mut histories: Vec<u64> = here.iter().map(history_of).collect();
        histories.sort_unstable();
        histories.dedup();
        if histories.len() < 2 || self.is_whole_subgroup(&here) {
            return vec![here];
        }
        // By random group: the branch history that its lanes continue with, and the lanes.
        let mut groups: Vec<(usize, u64, Vec<LaneRef>)> = Vec::new();
        for history in &histories {
            let own: Vec<LaneRef> =
                here.iter().filter(|lane| history_of(lane) == *history).copied().collect();
            // Histories that draw the same number form one tangle.
            let drawn = self.random.below(histories.len());
            match groups.iter_mut().find(|(number, ..)| *number == drawn) {
                Some((.., lanes)) => lanes.extend(own),
                None => groups.push((drawn, *history, own)),
            }
        }
        let mut tangles = Vec::with_capacity(groups.len());
        for (_, history, mut lanes) in groups {
            lanes.sort_unstable();
            for (_, wave, lane) in &lanes {
                self.waves[*wave].reconverge_lane(*lane, history);
            }
            tangles.push(lanes);
        }
        tangles
    }

    /// Returns true if these are all lanes of their subgroup.
    fn is_whole_subgroup(&self, here: &[LaneRef]) -> bool {
        let Some((_, wave, lane)) = here.first() else { return true };
        let (dispatch, subgroup) = (self.waves[*wave].dispatch, self.waves[*wave].paths[*lane][1]);
        let same_dispatch = self.waves.iter().filter(|wave| wave.dispatch == dispatch);
        let all = same_dispatch.flat_map(|wave| &wave.paths).filter(|path| path[1] == subgroup);
        all.count() == here.len()
    }
}

/// A lane: its number in the subgroup, its wave, and its index there.
type LaneRef = (u32, usize, usize);

/// Adds the inactive lanes with operand 1; for a fault.
fn add_inactive_lanes(operands: &[LaneOperand]) -> Vec<LaneOperand> {
    let value = |lane: u32| operands.iter().find(|known| known.lane == lane).map_or(1, |known| known.value);
    (0..crate::limits::SUBGROUP_SIZE).map(|lane| LaneOperand { lane, value: value(lane) }).collect()
}
