//! Draws the memory stress of a dispatch.

use rand::RngExt;
use shaders::StressParameters;

use super::{ParameterSampler, gcd, with_final_iterations};
use crate::stress::{LOOP_MARGIN, MemoryStress, TargetAssignment, iterations_per_round};

/// The maximum number of workgroups to shuffle: products of two such numbers stay below 2³².
const MAX_SHUFFLED: u32 = 65_535;
/// Attempts to find a multiplier before workgroups stay in order.
const ATTEMPTS: u32 = 64;

impl ParameterSampler {
    /// Returns the memory stress, if the kernels can generate any.
    fn memory_stress(&self) -> Option<MemoryStress> {
        (self.bounds.scratch_words > 0).then(|| self.stress.memory_stress.clone().unwrap_or_default())
    }

    /// Draws the stress workgroups of a dispatch of `groups` groups.
    pub fn sample_stress_workgroups(&mut self, groups: u32) -> u32 {
        let Some(MemoryStress { workgroups, percent, .. }) = self.memory_stress() else { return 0 };
        let (on, count) = (self.sample_percent(percent), self.sample_range(workgroups));
        // The workgroups of the test come first; stress gets the rest of the device's limit.
        let room = self.bounds.max_workgroups.saturating_sub(self.bounds.classes.saturating_mul(groups));
        if on { count.min(room) } else { 0 }
    }

    /// Draws the memory stress of a dispatch with `groups` groups and `workgroups` stress workgroups; `None`
    /// if the kernels have none.
    pub fn sample_stress(&mut self, groups: u32, workgroups: u32) -> Option<StressParameters> {
        let memory = self.memory_stress()?;
        let most = self.max_stress_iterations();
        let iterations = self.sample_range(memory.iterations).min(most);
        let (on, before) =
            (self.sample_percent(memory.percent), self.sample_range(memory.pre_stress).min(most));
        let (workgroup_multiplier, workgroup_offset) =
            self.sample_shuffle(groups, workgroups, memory.mix_workgroups);
        let all = self.bounds.classes.saturating_mul(groups).saturating_add(workgroups);
        Some(StressParameters {
            workgroups,
            workgroup_multiplier,
            workgroup_offset,
            iterations: if workgroups > 0 { iterations } else { 0 },
            before: if on { before } else { 0 },
            ..self.sample_targets(&memory, all)
        })
    }

    /// Draws workgroups and parameters of a stress dispatch on another queue, next to a dispatch of `rounds`
    /// rounds.
    pub fn sample_queue_stress(&mut self, rounds: u32) -> Option<(u32, StressParameters)> {
        let memory = self.memory_stress().filter(|memory| memory.queue_workgroups.1 > 0)?;
        let workgroups =
            self.sample_range(memory.queue_workgroups).clamp(1, self.bounds.max_workgroups.max(1));
        let turns = self.sample_range(memory.queue_iterations).saturating_mul(rounds);
        let most = self.bounds.loop_budget.map_or(u32::MAX, |budget| budget.saturating_sub(LOOP_MARGIN));
        Some((
            workgroups,
            StressParameters { iterations: turns.min(most), ..self.sample_targets(&memory, workgroups) },
        ))
    }

    /// Returns the loop iterations of a round.
    pub(super) fn iterations_per_round(stress: Option<&StressParameters>) -> u32 {
        stress.map_or(1, |stress| iterations_per_round(stress.iterations.max(stress.before)))
    }

    /// Draws access pattern and target addresses for this many workgroups.
    fn sample_targets(&mut self, memory: &MemoryStress, workgroups: u32) -> StressParameters {
        let pattern = memory.patterns.get(self.generator.random_range(0..memory.patterns.len().max(1)));
        // The largest power of two whose product with the minimum stays within the maximum.
        let doublings = (memory.line_words.1 / memory.line_words.0.max(1)).max(1).ilog2();
        let line = (memory.line_words.0 << self.sample_range((0, doublings))).max(1);
        let lines = self.sample_range(memory.lines);
        let regions = MemoryStress::region_count(self.bounds.scratch_words, line, lines);
        let lines = lines.min(regions).max(1);
        let line = line.min(u32::try_from(self.bounds.scratch_words).unwrap_or(u32::MAX)).max(1);
        // A coprime multiplier visits every region before it repeats one, so that all targets are
        // in different lines.
        let (multiplier, first) = (self.sample_coprime(regions), self.sample_range((0, regions - 1)));
        let word = self.sample_range((0, line - 1));
        let words = regions * line;
        let in_chunks = match memory.strategy {
            TargetAssignment::RoundRobin => false,
            TargetAssignment::Chunks => true,
            TargetAssignment::Any => self.generator.random(),
        };
        StressParameters {
            pattern: pattern.map_or(0, |pattern| pattern.word()),
            lines,
            chunk: if in_chunks { workgroups.div_ceil(lines).max(1) } else { 1 },
            step: multiplier * line % words,
            base: first * line + word,
            words,
            ..StressParameters::default()
        }
    }

    /// Returns the maximum stress iterations of a round that fits the driver's loop budget together with the shortest
    /// wait and the loops of the test.
    fn max_stress_iterations(&self) -> u32 {
        let Some(budget) = self.bounds.loop_budget else { return u32::MAX };
        // Rounding up may cost a second rendezvous.
        let rendezvous = 2 * (3 + self.stress.hold.1 + self.bounds.rendezvous_iterations);
        let others = self
            .failed_poll_iterations(self.stress.spin.0)
            .saturating_add(rendezvous + LOOP_MARGIN + iterations_per_round(0))
            .saturating_add(with_final_iterations(self.bounds.max_loop_iterations));
        budget.saturating_sub(others).max(1)
    }

    /// Returns multiplier and offset of a permutation of workgroups that is valid for every kernel of the
    /// program.
    fn sample_shuffle(&mut self, groups: u32, workgroups: u32, mix: bool) -> (u32, u32) {
        let all = |classes: u32| classes.saturating_mul(groups).saturating_add(workgroups);
        let counts = self.bounds.class_counts;
        let most = all(self.bounds.classes);
        if !mix || most > MAX_SHUFFLED || counts == 0 {
            return (1, 0);
        }
        // A multiplier is a permutation of the workgroups of a kernel if it is coprime to their number.
        let fits = |multiplier| {
            (0..u64::BITS)
                .filter(|classes| counts >> classes & 1 == 1)
                .all(|classes| gcd(multiplier, all(classes)) == 1)
        };
        let found = (0..ATTEMPTS).map(|_| self.generator.random_range(1..=most)).find(|number| fits(*number));
        found.map_or((1, 0), |multiplier| (multiplier, self.sample_range((0, most - 1))))
    }

    /// Returns true with a probability of `percent`.
    pub(super) fn sample_percent(&mut self, percent: u32) -> bool {
        self.sample_range((1, 100)) <= percent
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::{KernelLimits, ParameterSampler, rounds_within, with_final_iterations};
    use super::MemoryStress;
    use crate::stress::{Pattern, Stress, TargetAssignment as Assignment};

    fn range(most: u32) -> impl proptest::strategy::Strategy<Value = (u32, u32)> {
        (0..=most, 0..=most).prop_map(|(a, b)| (a.min(b), a.max(b)))
    }

    prop_compose! {
        fn memory()(
            workgroups in range(40), iterations in range(300), pre_stress in range(300), percent in 0u32..=100,
            line in 1u32..40, doublings in 0u32..4, lines in (1u32..60, 1u32..60), mix_workgroups: bool,
            strategy in prop_oneof![Just(Assignment::RoundRobin), Just(Assignment::Chunks), Just(Assignment::Any)],
            queue_workgroups in range(9), queue_iterations in range(9),
        ) -> MemoryStress {
            MemoryStress {
                workgroups, iterations, pre_stress, percent, strategy, mix_workgroups, queue_workgroups, queue_iterations,
                line_words: (line, line << doublings), lines: (lines.0.min(lines.1), lines.0.max(lines.1)),
                patterns: Pattern::ALL.to_vec(),
            }
        }
    }

    proptest! {
        #[test]
        fn stress_keeps_to_its_memory_and_to_the_loop_budget(
            memory in memory(), groups in 1u32..30, spin in (0u32..200, 0u32..2000), hold in 0u32..4, idle_lanes: bool,
            loops in prop_oneof![Just(0u32), 1u32..300], rendezvous_iterations in 0u32..18,
            scratch in prop_oneof![Just(1u64), 1u64..5000, Just(1 << 20)],
            classes in proptest::collection::btree_set(1u32..5, 1..4),
            budget in prop_oneof![Just(None), Just(Some(65_535u32)), Just(Some(1500u32))],
            seed: u64,
        ) {
            let stress = Stress {
                memory_stress: Some(memory.clone()), spin: (spin.0, spin.0 + spin.1), hold: (hold, hold), interval: (1, 1), rounds: (50, 50),
                ..Stress::preset("gpu").unwrap()
            };
            prop_assert_eq!(stress.validate(), Ok(()));
            let most = *classes.last().unwrap();
            let bounds = KernelLimits {
                classes: most, lanes: 4, storages: 2, slots: 2, min_groups: 1, groups: (groups, groups), min_dispatch_groups: 1, location_units: 1 << 20,
                storage_words: 1, max_loop_iterations: loops, rendezvous_iterations, result_words: 1 << 20, rendezvous_words: 1 << 16, claim_words: 0, loop_budget: budget,
                idle_lanes, party: most, scratch_words: scratch, max_workgroups: 150,
                class_counts: classes.iter().map(|count| 1 << count).sum(),
            };
            let mut draw = ParameterSampler::new(seed, stress, bounds, 1, 2);
            for _ in 0..4 {
                let workgroups = draw.sample_stress_workgroups(groups);
                prop_assert!(workgroups <= memory.workgroups.1);
                prop_assert!(workgroups == 0 || most * groups + workgroups <= 150);
                let s = draw.sample_stress(groups, workgroups).unwrap();
                prop_assert!(s.before <= memory.pre_stress.1 && s.iterations <= memory.iterations.1);
                prop_assert!(memory.percent > 0 || (workgroups, s.before) == (0, 0));
                // Each workgroup has a unique number, in every kernel.
                for classes in &classes {
                    let all = classes * groups + workgroups;
                    let number = |w: u32| (w * s.workgroup_multiplier + s.workgroup_offset) % all;
                    prop_assert_eq!((0..all).map(number).collect::<BTreeSet<_>>().len() as u32, all);
                }
                // Targets are distinct and within scratch memory.
                prop_assert!(u64::from(s.words) <= scratch && s.chunk >= 1);
                prop_assert!(u64::from(s.lines) * u64::from(s.step) + u64::from(s.base) < 1 << 32);
                let target = |number: u32| (number * s.step + s.base) % s.words;
                prop_assert_eq!((0..s.lines).map(target).collect::<BTreeSet<_>>().len() as u32, s.lines);
                let p = draw.sample_parameters(groups, 1.0, u64::MAX, u32::MAX, Some(&s));
                if let Some(budget) = budget {
                    let round = 2 + s.before.max(s.iterations) + with_final_iterations(loops);
                    let meeting = 2 + rendezvous_iterations + p.hold;
                    let waits = p.rounds * meeting + p.spin * if idle_lanes { 2 } else { 1 };
                    prop_assert!(p.rounds * round + waits < budget, "{p:?} {s:?}");
                }
                if let Some((workgroups, s)) = draw.sample_queue_stress(p.rounds) {
                    prop_assert!((1..=150).contains(&workgroups) && budget.is_none_or(|budget| s.iterations < budget));
                }
            }
        }
    }

    #[test]
    fn partners_meet_in_a_part_of_the_dispatches() {
        let dispatches_with_rendezvous = |percent| {
            let stress = Stress { meeting_percent: percent, spin: (5, 5), ..Stress::preset("sim").unwrap() };
            let bounds = KernelLimits {
                classes: 2,
                lanes: 4,
                storages: 2,
                slots: 2,
                min_groups: 1,
                groups: (2, 2),
                min_dispatch_groups: 1,
                location_units: 1 << 20,
                storage_words: 1,
                result_words: 1 << 20,
                rendezvous_words: 1 << 16,
                party: 2,
                max_workgroups: 150,
                class_counts: 4,
                ..KernelLimits::default()
            };
            let mut draw = ParameterSampler::new(1, stress, bounds, 1, 2);
            (0..200).filter(|_| draw.sample_parameters(2, 1.0, 100, u32::MAX, None).spin > 0).count()
        };
        assert_eq!((dispatches_with_rendezvous(0), dispatches_with_rendezvous(100)), (0, 200));
        assert!((60..140).contains(&dispatches_with_rendezvous(50)), "{}", dispatches_with_rendezvous(50));
    }

    /// More iterations mean fewer rounds; the product never grows.
    #[test]
    fn rounds_shrink_with_their_turns() {
        for budget in [100, 1000, 65_535] {
            for each in [1, 2, 7, 100] {
                let rounds = rounds_within(budget, 10, 2, 1, each);
                assert!(rounds * each + rounds.div_ceil(2) * 4 + 10 <= budget, "{budget} {each}: {rounds}");
                assert!(rounds <= rounds_within(budget, 10, 2, 1, 1));
            }
        }
    }
}
