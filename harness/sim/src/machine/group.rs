//! Executes subgroup operations across waves, and computes which lanes meet at barriers in divergent control
//! flow.

use super::{BarrierArrivals, Machine};
use crate::fault::Fault;
use crate::program::{GroupKind, Program};
use crate::wave::{LaneOperand, LaneStatus, group_result};

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
        let mut there: Vec<(usize, usize)> = Vec::new();
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
                        LaneStatus::Before => return false,
                        LaneStatus::Past => {}
                        LaneStatus::There => {
                            there.push((other, lane));
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
        let mut given = Vec::with_capacity(there.len());
        for subgroup in subgroups {
            let mut here: Vec<LaneRef> = there
                .iter()
                .filter(|(wave, lane)| self.waves[*wave].paths[*lane][1] == subgroup)
                .map(|(wave, lane)| (self.waves[*wave].places[*lane][3], *wave, *lane))
                .collect();
            // By lane number, which decides election and the first lane of a broadcast.
            here.sort_unstable();
            for tangle in self.split_into_tangles(here) {
                let brought: Vec<LaneOperand> = tangle
                    .iter()
                    .map(|(number, wave, lane)| LaneOperand {
                        lane: *number,
                        value: self.waves[*wave].lane_operand(&group, *lane),
                    })
                    .collect();
                // A barrier in divergent control flow: the lanes of this tangle will meet there.
                if group.kind == GroupKind::Meet {
                    let meeting = self.tangled.len() as u32;
                    self.tangled
                        .push(BarrierArrivals { size: tangle.len() as u32, ..BarrierArrivals::default() });
                    given.extend(tangle.iter().map(|(_, wave, lane)| (*wave, *lane, [meeting, 0, 0, 0])));
                    continue;
                }
                for (number, wave, lane) in &tangle {
                    let argument = self.waves[*wave].register_value(group.argument, *lane);
                    let words = match self.fault {
                        Fault::SubgroupActiveLanesIgnored => group_result(
                            &group,
                            *number,
                            argument,
                            &with_all_lanes(&brought),
                            &mut self.random,
                        ),
                        _ => group_result(&group, *number, argument, &brought, &mut self.random),
                    };
                    given.push((*wave, *lane, words));
                }
            }
        }
        let width = group.width();
        for (wave, lane, words) in given {
            self.waves[wave].write_result(group.to, lane, words.get(..width).unwrap_or_default());
        }
        there.sort_unstable();
        there.dedup_by_key(|(wave, _)| *wave);
        for (wave, _) in there {
            self.waves[wave].finish_group_op();
        }
        true
    }

    /// Partitions the arrived lanes of a subgroup into tangles, which execute the operation together. Lanes
    /// with the same branch history are in one tangle, so lanes of shaders with maximal reconvergence never
    /// diverge here. In non-uniform control flow the specification leaves reconvergence of other lanes open:
    /// they reconverge at random. A complete subgroup forms one tangle.
    fn split_into_tangles(&mut self, here: Vec<LaneRef>) -> Vec<Vec<LaneRef>> {
        let way_of = |(_, wave, lane): &LaneRef| self.waves[*wave].branch_history(*lane);
        let mut ways: Vec<u64> = here.iter().map(way_of).collect();
        ways.sort_unstable();
        ways.dedup();
        if ways.len() < 2 || self.is_whole_subgroup(&here) {
            return vec![here];
        }
        // By random group: the branch history that its lanes continue with, and the lanes.
        let mut groups: Vec<(usize, u64, Vec<LaneRef>)> = Vec::new();
        for way in &ways {
            let own: Vec<LaneRef> = here.iter().filter(|lane| way_of(lane) == *way).copied().collect();
            // Histories that draw the same number form one tangle.
            let drawn = self.random.below(ways.len());
            match groups.iter_mut().find(|(number, ..)| *number == drawn) {
                Some((.., lanes)) => lanes.extend(own),
                None => groups.push((drawn, *way, own)),
            }
        }
        let mut tangles = Vec::with_capacity(groups.len());
        for (_, way, mut lanes) in groups {
            lanes.sort_unstable();
            for (_, wave, lane) in &lanes {
                self.waves[*wave].reconverge_lane(*lane, way);
            }
            tangles.push(lanes);
        }
        tangles
    }

    /// Returns true if these are all lanes of their subgroup.
    fn is_whole_subgroup(&self, here: &[LaneRef]) -> bool {
        let Some((_, wave, lane)) = here.first() else { return true };
        let (dispatch, subgroup) = (self.waves[*wave].dispatch, self.waves[*wave].paths[*lane][1]);
        let beside = self.waves.iter().filter(|wave| wave.dispatch == dispatch);
        let all = beside.flat_map(|wave| &wave.paths).filter(|path| path[1] == subgroup);
        all.count() == here.len()
    }
}

/// A lane: its number in the subgroup, its wave, and its index there.
type LaneRef = (u32, usize, usize);

/// Adds the inactive lanes with operand 1; for a fault.
fn with_all_lanes(brought: &[LaneOperand]) -> Vec<LaneOperand> {
    let value = |lane: u32| brought.iter().find(|known| known.lane == lane).map_or(1, |known| known.value);
    (0..crate::limits::SUBGROUP_SIZE).map(|lane| LaneOperand { lane, value: value(lane) }).collect()
}
