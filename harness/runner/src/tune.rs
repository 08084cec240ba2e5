//! Candidates for a search of stress parameters: random ones, and neighbours of a good one.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stress::{Lanes, MemoryStress, Pairing, Pattern, Strategy, Stress, Unit};

/// Draws candidates from a seed. All are valid and within the loop budget of the device.
#[derive(Clone, Debug)]
pub struct Candidates {
    generator: Xoshiro256PlusPlus,
    capabilities: plan::Capabilities,
    base: Stress,
}

/// The parameters that a search changes.
#[derive(Clone, Copy)]
enum StressParameters {
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
    OtherQueue,
}

const PARTS: [StressParameters; 21] = [
    StressParameters::Groups,
    StressParameters::Rounds,
    StressParameters::Spin,
    StressParameters::Interval,
    StressParameters::Hold,
    StressParameters::Pairing,
    StressParameters::Layout,
    StressParameters::MixGroups,
    StressParameters::MixLanes,
    StressParameters::Lanes,
    StressParameters::ThreadLoops,
    StressParameters::Parallel,
    StressParameters::MemoryStress,
    StressParameters::StressWorkgroups,
    StressParameters::StressIterations,
    StressParameters::PreStress,
    StressParameters::Patterns,
    StressParameters::Lines,
    StressParameters::Strategy,
    StressParameters::MixWorkgroups,
    StressParameters::OtherQueue,
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
            for part in PARTS {
                self.change(&mut candidate, part);
            }
            if self.fits(&candidate) {
                return candidate;
            }
        }
    }

    /// Returns a candidate that differs from `stress` in one or two parameters.
    pub fn neighbour(&mut self, stress: &Stress) -> Stress {
        loop {
            let mut candidate = stress.clone();
            for _ in 0..self.generator.random_range(1..=2) {
                let part = self.one_of(&PARTS);
                self.change(&mut candidate, part);
            }
            // A change may draw the present value, and some combinations fit no device.
            if candidate != *stress && self.fits(&candidate) {
                return candidate;
            }
        }
    }

    fn fits(&self, candidate: &Stress) -> bool {
        candidate.validate().is_ok()
            && candidate.check_limits(&self.capabilities).is_ok()
            && candidate.check_loop_budget(self.capabilities.loop_budget).is_ok()
    }

    fn change(&mut self, stress: &mut Stress, part: StressParameters) {
        if let Some(memory) = &mut stress.memory_stress {
            self.change_memory(memory, part);
        }
        let cpu = self.capabilities.is_cpu;
        let point = |value: u32| (value, value);
        match part {
            StressParameters::Groups => {
                let groups = if cpu { self.one_of(&[1, 1, 2, 4]) } else { 16 << self.below(9) };
                stress.groups = point(groups);
            }
            StressParameters::Rounds => {
                stress.rounds = point(if cpu { self.one_of(&ROUNDS) } else { 1 << self.below(7) });
            }
            StressParameters::Spin => {
                // Threads of a CPU driver start in sequence, and late on a busy machine.
                let spin = match (cpu, self.capabilities.loop_budget) {
                    (true, Some(budget)) => budget / self.one_of(&[2, 3, 4, 6, 8]),
                    (true, None) => self.one_of(&[20_000, 50_000, 100_000, 200_000, 400_000]),
                    (false, _) => self.one_of(&[0, 16, 64, 128, 512]),
                };
                stress.spin = point(spin);
                stress.meeting_percent = if cpu { 100 } else { self.one_of(&[100, 100, 50]) };
            }
            StressParameters::Interval => stress.interval = point(self.one_of(&[1, 1, 2, 3, 4, 6, 8, 12])),
            StressParameters::Hold => {
                stress.hold = point(self.one_of(&[0, 0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 48]));
            }
            StressParameters::Pairing => {
                stress.pairing = self.one_of(&[Pairing::Alternating, Pairing::Contiguous, Pairing::Any]);
            }
            StressParameters::Layout => {
                stress.spacing = point(self.one_of(&[1, 1, 1, 2, 4, 8, 16]));
                stress.padding = point(self.one_of(&[0, 0, 0, 2, 14]));
            }
            StressParameters::MixGroups => stress.mix_groups = self.one_of(&[false, true]),
            StressParameters::MixLanes => stress.mix_lanes = self.one_of(&[false, true]),
            StressParameters::Lanes => {
                let subgroup = Lanes::Of(Unit::Subgroup);
                // A CPU driver runs the subgroups of a workgroup sequentially, so wide workgroups do not
                // overlap between rendezvous.
                let narrow = [subgroup, subgroup, Lanes::Count(16), Lanes::Count(32)];
                let wide = [subgroup, Lanes::Count(64), Lanes::Count(128), Lanes::Count(256)];
                stress.lanes = if cpu { self.one_of(&narrow) } else { self.one_of(&wide) };
            }
            StressParameters::ThreadLoops => stress.thread_loops = self.one_of(&[false, true]),
            StressParameters::Parallel => stress.parallel = self.below(4) == 0,
            StressParameters::MemoryStress => {
                // On CPU drivers, a stress invocation takes a processor from the test.
                let wanted = self.below(if cpu { 4 } else { 2 }) == 0;
                stress.memory_stress = wanted.then(|| stress.memory_stress.take().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn change_memory(&mut self, memory: &mut MemoryStress, part: StressParameters) {
        let cpu = self.capabilities.is_cpu;
        let point = |value: u32| (value, value);
        match part {
            StressParameters::StressWorkgroups => {
                let few = [0, 1, 2, 4];
                let many = [0, 8, 32, 66, 132, 264, 512, 1024];
                memory.workgroups = point(if cpu { self.one_of(&few) } else { self.one_of(&many) });
            }
            StressParameters::StressIterations => {
                memory.iterations = point(1 << self.below(if cpu { 5 } else { 9 }))
            }
            StressParameters::PreStress => {
                memory.pre_stress = point(self.one_of(&[0, 0, 0, 1, 2, 4, 8, 16, 32]))
            }
            StressParameters::Patterns => {
                let all = self.below(5) == 0;
                memory.patterns = if all { Pattern::ALL.to_vec() } else { vec![self.one_of(&Pattern::ALL)] };
            }
            StressParameters::Lines => {
                memory.line_words = point(self.one_of(&[8, 16, 32, 64, 128, 256, 1024]));
                memory.lines = point(self.one_of(&[1, 2, 4, 8, 16, 32, 64, 256]));
            }
            StressParameters::Strategy => {
                memory.strategy = self.one_of(&[Strategy::RoundRobin, Strategy::Chunks, Strategy::Any]);
            }
            StressParameters::MixWorkgroups => memory.mix_workgroups = self.one_of(&[false, true]),
            StressParameters::OtherQueue => {
                let queues: u32 = self.capabilities.compute_queues.iter().sum();
                let workgroups = if queues > 1 && !cpu { self.one_of(&[0, 0, 0, 8, 32, 132]) } else { 0 };
                memory.queue_workgroups = point(workgroups);
                memory.queue_iterations = point(1 << self.below(9));
            }
            _ => {}
        }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.generator.random_range(0..choices.len())]
    }

    fn below(&mut self, bound: u32) -> u32 {
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
