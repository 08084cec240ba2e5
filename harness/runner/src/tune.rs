//! Candidates for a search of stress parameters: random ones, and neighbours of a good one.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stress::{LaneUnit, Lanes, Pairing, Pattern, Stress, TargetAssignment};

/// Draws candidates from a seed. All are valid and within the loop budget of the device.
#[derive(Clone, Debug)]
pub struct Candidates {
    generator: Xoshiro256PlusPlus,
    capabilities: plan::Capabilities,
    base: Stress,
}

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
            for change in CHANGES {
                change(self, &mut candidate);
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
                let change = self.choose(&CHANGES);
                change(self, &mut candidate);
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

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.generator.random_range(0..choices.len())]
    }

    fn sample_below(&mut self, bound: u32) -> u32 {
        self.generator.random_range(0..bound)
    }
}

/// Draws a parameter of a candidate again.
type Change = fn(&mut Candidates, &mut Stress);

/// Every parameter that a search changes. Those of memory stress have no effect without it.
const CHANGES: [Change; 21] = [
    |draw, stress| {
        let is_cpu = draw.capabilities.is_cpu;
        let groups = if is_cpu { draw.choose(&[1, 1, 2, 4]) } else { 16 << draw.sample_below(9) };
        stress.groups = single(groups);
    },
    |draw, stress| {
        let is_cpu = draw.capabilities.is_cpu;
        stress.rounds = single(if is_cpu { draw.choose(&ROUNDS) } else { 1 << draw.sample_below(7) });
    },
    |draw, stress| {
        let is_cpu = draw.capabilities.is_cpu;
        // Threads of a CPU driver start in sequence, and late on a busy machine.
        let spin = match (is_cpu, draw.capabilities.loop_budget) {
            (true, Some(budget)) => budget / draw.choose(&[2, 3, 4, 6, 8]),
            (true, None) => draw.choose(&[20_000, 50_000, 100_000, 200_000, 400_000]),
            (false, _) => draw.choose(&[0, 16, 64, 128, 512]),
        };
        stress.spin = single(spin);
        stress.meeting_percent = if is_cpu { 100 } else { draw.choose(&[100, 100, 50]) };
    },
    |draw, stress| stress.interval = single(draw.choose(&[1, 1, 2, 3, 4, 6, 8, 12])),
    |draw, stress| stress.hold = single(draw.choose(&[0, 0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 48])),
    |draw, stress| {
        stress.pairing = draw.choose(&[Pairing::Alternating, Pairing::Contiguous, Pairing::Any]);
    },
    |draw, stress| {
        stress.spacing = single(draw.choose(&[1, 1, 1, 2, 4, 8, 16]));
        stress.padding = single(draw.choose(&[0, 0, 0, 2, 14]));
    },
    |draw, stress| stress.mix_groups = draw.choose(&[false, true]),
    |draw, stress| stress.mix_lanes = draw.choose(&[false, true]),
    |draw, stress| {
        let subgroup = Lanes::Of(LaneUnit::Subgroup);
        // A CPU driver runs the subgroups of a workgroup sequentially, so wide workgroups do not overlap
        // between rendezvous.
        let narrow = [subgroup, subgroup, Lanes::Count(16), Lanes::Count(32)];
        let wide = [subgroup, Lanes::Count(64), Lanes::Count(128), Lanes::Count(256)];
        stress.lanes = draw.choose(if draw.capabilities.is_cpu { &narrow } else { &wide });
    },
    |draw, stress| stress.thread_loops = draw.choose(&[false, true]),
    |draw, stress| stress.parallel = draw.sample_below(4) == 0,
    |draw, stress| {
        // On CPU drivers, a stress invocation takes a processor from the test.
        let is_enabled = draw.sample_below(if draw.capabilities.is_cpu { 4 } else { 2 }) == 0;
        stress.memory_stress = is_enabled.then(|| stress.memory_stress.take().unwrap_or_default());
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        let (few, many) = ([0, 1, 2, 4], [0, 8, 32, 66, 132, 264, 512, 1024]);
        memory.workgroups =
            single(if draw.capabilities.is_cpu { draw.choose(&few) } else { draw.choose(&many) });
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        memory.iterations = single(1 << draw.sample_below(if draw.capabilities.is_cpu { 5 } else { 9 }));
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        memory.pre_stress = single(draw.choose(&[0, 0, 0, 1, 2, 4, 8, 16, 32]));
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        let all = draw.sample_below(5) == 0;
        memory.patterns = if all { Pattern::ALL.to_vec() } else { vec![draw.choose(&Pattern::ALL)] };
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        memory.line_words = single(draw.choose(&[8, 16, 32, 64, 128, 256, 1024]));
        memory.lines = single(draw.choose(&[1, 2, 4, 8, 16, 32, 64, 256]));
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        let assignments = [TargetAssignment::RoundRobin, TargetAssignment::Chunks, TargetAssignment::Any];
        memory.strategy = draw.choose(&assignments);
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        memory.mix_workgroups = draw.choose(&[false, true]);
    },
    |draw, stress| {
        let Some(memory) = &mut stress.memory_stress else { return };
        let has_queues = draw.capabilities.compute_queues.iter().sum::<u32>() > 1;
        let is_possible = has_queues && !draw.capabilities.is_cpu;
        memory.queue_workgroups = single(if is_possible { draw.choose(&[0, 0, 0, 8, 32, 132]) } else { 0 });
        memory.queue_iterations = single(1 << draw.sample_below(9));
    },
];

/// Returns the range of one value.
fn single(value: u32) -> (u32, u32) {
    (value, value)
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
