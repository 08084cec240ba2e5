//! Candidates for a search of stress parameters: random ones, and neighbours of a good one.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stress::{LaneUnit, Lanes, MemoryStress, Pairing, Pattern, Stress, TargetAssignment};

/// Draws candidates from a seed. All are valid and within the loop budget of the device.
#[derive(Clone, Debug)]
pub struct Candidates {
    generator: Xoshiro256PlusPlus,
    capabilities: plan::Capabilities,
    base: Stress,
}

/// The parameters that a search changes.
#[derive(Clone, Copy)]
enum TunedParameter {
    Groups,
    Rounds,
    Spin,
    Interval,
    Hold,
    Pairing,
    Layout,
    MixGroups,
    MixLanes,
    Lanes,
    ThreadLoops,
    Parallel,
    /// Enables memory stress; without it, the following parameters have no effect.
    MemoryStress,
    StressWorkgroups,
    StressIterations,
    PreStress,
    Patterns,
    Lines,
    Strategy,
    MixWorkgroups,
    QueueStress,
}

const TUNED_PARAMETERS: [TunedParameter; 21] = [
    TunedParameter::Groups,
    TunedParameter::Rounds,
    TunedParameter::Spin,
    TunedParameter::Interval,
    TunedParameter::Hold,
    TunedParameter::Pairing,
    TunedParameter::Layout,
    TunedParameter::MixGroups,
    TunedParameter::MixLanes,
    TunedParameter::Lanes,
    TunedParameter::ThreadLoops,
    TunedParameter::Parallel,
    TunedParameter::MemoryStress,
    TunedParameter::StressWorkgroups,
    TunedParameter::StressIterations,
    TunedParameter::PreStress,
    TunedParameter::Patterns,
    TunedParameter::Lines,
    TunedParameter::Strategy,
    TunedParameter::MixWorkgroups,
    TunedParameter::QueueStress,
];

/// Rounds that fit every loop budget in use; larger values if there is no budget.
const ROUNDS: [u32; 7] = [500, 1000, 2000, 4000, 8000, 16_000, 32_000];

impl Candidates {
    /// Creates a generator for a device; parameters that are not searched stay as in `base`.
    pub fn new(seed: u64, capabilities: &plan::Capabilities, base: &Stress) -> Candidates {
        Candidates {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            capabilities: capabilities.clone(),
            base: base.clone(),
        }
    }

    /// Returns a candidate with every parameter drawn.
    pub fn random(&mut self) -> Stress {
        loop {
            let mut candidate = self.base.clone();
            for part in TUNED_PARAMETERS {
                self.change_parameter(&mut candidate, part);
            }
            if self.is_valid(&candidate) {
                return candidate;
            }
        }
    }

    /// Returns a candidate that differs from `stress` in one or two parameters.
    pub fn neighbour(&mut self, stress: &Stress) -> Stress {
        loop {
            let mut candidate = stress.clone();
            for _ in 0..self.generator.random_range(1..=2) {
                let parameter = self.choose(&TUNED_PARAMETERS);
                self.change_parameter(&mut candidate, parameter);
            }
            // A change may draw the present value, and some combinations fit no device.
            if candidate != *stress && self.is_valid(&candidate) {
                return candidate;
            }
        }
    }

    fn is_valid(&self, candidate: &Stress) -> bool {
        candidate.validate().is_ok()
            && candidate.check_limits(&self.capabilities).is_ok()
            && candidate.check_loop_budget(self.capabilities.loop_budget).is_ok()
    }

    fn change_parameter(&mut self, stress: &mut Stress, parameter: TunedParameter) {
        if let Some(memory) = &mut stress.memory_stress {
            self.change_memory(memory, parameter);
        }
        let cpu = self.capabilities.is_cpu;
        let point = |value: u32| (value, value);
        match parameter {
            TunedParameter::Groups => {
                let groups = if cpu { self.choose(&[1, 1, 2, 4]) } else { 16 << self.sample_below(9) };
                stress.groups = point(groups);
            }
            TunedParameter::Rounds => {
                stress.rounds = point(if cpu { self.choose(&ROUNDS) } else { 1 << self.sample_below(7) });
            }
            TunedParameter::Spin => {
                // Threads of a CPU driver start in sequence, and late on a busy machine.
                let spin = match (cpu, self.capabilities.loop_budget) {
                    (true, Some(budget)) => budget / self.choose(&[2, 3, 4, 6, 8]),
                    (true, None) => self.choose(&[20_000, 50_000, 100_000, 200_000, 400_000]),
                    (false, _) => self.choose(&[0, 16, 64, 128, 512]),
                };
                stress.spin = point(spin);
                stress.meeting_percent = if cpu { 100 } else { self.choose(&[100, 100, 50]) };
            }
            TunedParameter::Interval => stress.interval = point(self.choose(&[1, 1, 2, 3, 4, 6, 8, 12])),
            TunedParameter::Hold => {
                stress.hold = point(self.choose(&[0, 0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 48]));
            }
            TunedParameter::Pairing => {
                stress.pairing = self.choose(&[Pairing::Alternating, Pairing::Contiguous, Pairing::Any]);
            }
            TunedParameter::Layout => {
                stress.spacing = point(self.choose(&[1, 1, 1, 2, 4, 8, 16]));
                stress.padding = point(self.choose(&[0, 0, 0, 2, 14]));
            }
            TunedParameter::MixGroups => stress.mix_groups = self.choose(&[false, true]),
            TunedParameter::MixLanes => stress.mix_lanes = self.choose(&[false, true]),
            TunedParameter::Lanes => {
                let subgroup = Lanes::Of(LaneUnit::Subgroup);
                // A CPU driver runs the subgroups of a workgroup sequentially, so wide workgroups do not
                // overlap between rendezvous.
                let narrow = [subgroup, subgroup, Lanes::Count(16), Lanes::Count(32)];
                let wide = [subgroup, Lanes::Count(64), Lanes::Count(128), Lanes::Count(256)];
                stress.lanes = if cpu { self.choose(&narrow) } else { self.choose(&wide) };
            }
            TunedParameter::ThreadLoops => stress.thread_loops = self.choose(&[false, true]),
            TunedParameter::Parallel => stress.parallel = self.sample_below(4) == 0,
            TunedParameter::MemoryStress => {
                // On CPU drivers, a stress invocation takes a processor from the test.
                let is_enabled = self.sample_below(if cpu { 4 } else { 2 }) == 0;
                stress.memory_stress = is_enabled.then(|| stress.memory_stress.take().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn change_memory(&mut self, memory: &mut MemoryStress, parameter: TunedParameter) {
        let cpu = self.capabilities.is_cpu;
        let point = |value: u32| (value, value);
        match parameter {
            TunedParameter::StressWorkgroups => {
                let few = [0, 1, 2, 4];
                let many = [0, 8, 32, 66, 132, 264, 512, 1024];
                memory.workgroups = point(if cpu { self.choose(&few) } else { self.choose(&many) });
            }
            TunedParameter::StressIterations => {
                memory.iterations = point(1 << self.sample_below(if cpu { 5 } else { 9 }))
            }
            TunedParameter::PreStress => {
                memory.pre_stress = point(self.choose(&[0, 0, 0, 1, 2, 4, 8, 16, 32]))
            }
            TunedParameter::Patterns => {
                let all = self.sample_below(5) == 0;
                memory.patterns = if all { Pattern::ALL.to_vec() } else { vec![self.choose(&Pattern::ALL)] };
            }
            TunedParameter::Lines => {
                memory.line_words = point(self.choose(&[8, 16, 32, 64, 128, 256, 1024]));
                memory.lines = point(self.choose(&[1, 2, 4, 8, 16, 32, 64, 256]));
            }
            TunedParameter::Strategy => {
                memory.strategy = self.choose(&[
                    TargetAssignment::RoundRobin,
                    TargetAssignment::Chunks,
                    TargetAssignment::Any,
                ]);
            }
            TunedParameter::MixWorkgroups => memory.mix_workgroups = self.choose(&[false, true]),
            TunedParameter::QueueStress => {
                let queues: u32 = self.capabilities.compute_queues.iter().sum();
                let workgroups = if queues > 1 && !cpu { self.choose(&[0, 0, 0, 8, 32, 132]) } else { 0 };
                memory.queue_workgroups = point(workgroups);
                memory.queue_iterations = point(1 << self.sample_below(9));
            }
            _ => {}
        }
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.generator.random_range(0..choices.len())]
    }

    fn sample_below(&mut self, bound: u32) -> u32 {
        self.generator.random_range(0..bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_valid_and_follow_from_the_seed() {
        let gpu = plan::Capabilities {
            max_workgroups: 65_535,
            max_workgroup_invocations: 1024,
            compute_queues: vec![16, 8],
            ..plan::Capabilities::default()
        };
        let cpu = plan::Capabilities { is_cpu: true, ..gpu.clone() };
        let limited = plan::Capabilities { loop_budget: Some(65_535), ..cpu.clone() };
        for (capabilities, base) in [(gpu, "gpu"), (cpu, "swiftshader"), (limited, "lavapipe")] {
            let base = Stress::preset(base).unwrap();
            let draw = || {
                let mut candidates = Candidates::new(3, &capabilities, &base);
                let mut drawn: Vec<Stress> = (0..50).map(|_| candidates.random()).collect();
                let neighbours = drawn.clone();
                drawn.extend(neighbours.iter().map(|stress| candidates.neighbour(stress)));
                drawn
            };
            let drawn = draw();
            assert_eq!(drawn, draw());
            assert!(drawn.iter().any(|stress| stress.memory_stress.is_none()));
            let stressed: Vec<_> = drawn.iter().filter_map(|stress| stress.memory_stress.as_ref()).collect();
            assert!(stressed.iter().any(|memory| memory.workgroups.1 > 0 && memory.pre_stress.1 > 0));
            assert_eq!(stressed.iter().any(|memory| memory.queue_workgroups.1 > 0), !capabilities.is_cpu);
            for (stress, neighbour) in drawn.iter().zip(&drawn[50..]) {
                assert_ne!(stress, neighbour);
                for stress in [stress, neighbour] {
                    assert_eq!(stress.validate(), Ok(()));
                    assert_eq!(stress.check_loop_budget(capabilities.loop_budget), Ok(()));
                }
            }
        }
    }
}
