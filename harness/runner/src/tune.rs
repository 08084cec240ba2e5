//! Where to look for a better stress: candidates drawn at random, and neighbours of a good one.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stress::{Lanes, Pairing, Stress, Unit};

/// Draws candidates from a seed. All of them are valid, and within the loop budget of the device.
#[derive(Clone, Debug)]
pub struct Candidates {
    generator: Xoshiro256PlusPlus,
    capabilities: plan::Capabilities,
    base: Stress,
}

/// What a search changes.
#[derive(Clone, Copy)]
enum Part {
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
}

const PARTS: [Part; 10] = [
    Part::Groups,
    Part::Rounds,
    Part::Spin,
    Part::Interval,
    Part::Hold,
    Part::Pairing,
    Part::Layout,
    Part::MixGroups,
    Part::MixLanes,
    Part::Lanes,
];

/// Rounds that fit into every loop budget in use, and more where there is none.
const ROUNDS: [u32; 7] = [500, 1000, 2000, 4000, 8000, 16_000, 32_000];

impl Candidates {
    /// Candidates for a device; what is not searched stays as in `base`.
    pub fn new(seed: u64, capabilities: &plan::Capabilities, base: &Stress) -> Candidates {
        Candidates {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            capabilities: capabilities.clone(),
            base: base.clone(),
        }
    }

    /// A candidate with every parameter drawn.
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

    /// A candidate that differs from `stress` in one or two parameters.
    pub fn neighbour(&mut self, stress: &Stress) -> Stress {
        loop {
            let mut candidate = stress.clone();
            for _ in 0..self.generator.random_range(1..=2) {
                let part = self.one_of(&PARTS);
                self.change(&mut candidate, part);
            }
            if candidate != *stress && self.fits(&candidate) {
                return candidate;
            }
        }
    }

    fn fits(&self, candidate: &Stress) -> bool {
        candidate.validate().is_ok() && candidate.check_loop_budget(self.capabilities.loop_budget).is_ok()
    }

    fn change(&mut self, stress: &mut Stress, part: Part) {
        let cpu = self.capabilities.is_cpu;
        let point = |value: u32| (value, value);
        match part {
            Part::Groups => {
                let groups = if cpu { self.one_of(&[1, 1, 2, 4]) } else { 16 << self.below(7) };
                stress.groups = point(groups);
            }
            Part::Rounds => {
                stress.rounds = point(if cpu { self.one_of(&ROUNDS) } else { 1 << self.below(7) });
            }
            Part::Spin => {
                // A CPU driver's threads begin one after the other, on a busy machine late.
                let spin = match (cpu, self.capabilities.loop_budget) {
                    (true, Some(budget)) => budget / self.one_of(&[2, 3, 4, 6, 8]),
                    (true, None) => self.one_of(&[20_000, 50_000, 100_000, 200_000, 400_000]),
                    (false, _) => self.one_of(&[0, 16, 64, 128, 512]),
                };
                stress.spin = point(spin);
            }
            Part::Interval => stress.interval = point(self.one_of(&[1, 1, 1, 2, 3, 4, 8])),
            Part::Hold => {
                stress.hold = point(self.one_of(&[0, 0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 48]));
            }
            Part::Pairing => {
                stress.pairing = self.one_of(&[Pairing::Alternating, Pairing::Contiguous, Pairing::Any]);
            }
            Part::Layout => {
                stress.spacing = point(self.one_of(&[1, 1, 1, 2, 4, 16]));
                stress.padding = point(self.one_of(&[0, 0, 0, 2, 14]));
            }
            Part::MixGroups => stress.mix_groups = self.one_of(&[false, true]),
            Part::MixLanes => stress.mix_lanes = self.one_of(&[false, true]),
            Part::Lanes => {
                let subgroup = Lanes::Of(Unit::Subgroup);
                // A CPU driver runs a workgroup one subgroup after another: more cannot meet.
                let wide = [subgroup, Lanes::Count(64), Lanes::Count(128), Lanes::Count(256)];
                stress.lanes = if cpu { subgroup } else { self.one_of(&wide) };
            }
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
        let gpu = plan::Capabilities::default();
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
