//! Draws what memory stress does in a dispatch.

use rand::RngExt;
use shaders::StressParameters;

use super::{Draw, gcd};
use crate::stress::{LOOP_MARGIN, MemoryStress, Strategy, each_round};

/// Workgroups up to which they can be shuffled: products of two such numbers stay below 2³².
const MOST_SHUFFLED: u32 = 65_535;
/// Attempts to find a multiplier before workgroups stay in order.
const ATTEMPTS: u32 = 64;

impl Draw {
    /// Stress workgroups of a dispatch of `groups` groups.
    pub fn stress_workgroups(&mut self, groups: u32) -> u32 {
        let Some(MemoryStress { workgroups, percent, .. }) = self.stress.memory_stress else { return 0 };
        let (on, wanted) = (self.happens(percent), self.within(workgroups));
        let room = self.bounds.max_workgroups.saturating_sub(self.bounds.classes.saturating_mul(groups));
        if on { wanted.min(room) } else { 0 }
    }

    /// What memory stress does in a dispatch of `groups` groups and so many stress workgroups; none where kernels make none.
    pub fn stress(&mut self, groups: u32, workgroups: u32) -> Option<StressParameters> {
        let memory = self.stress.memory_stress.clone()?;
        let most = self.most_turns();
        let iterations = self.within(memory.iterations).min(most);
        let (on, before) = (self.happens(memory.percent), self.within(memory.pre_stress).min(most));
        let (workgroup_multiplier, workgroup_offset) =
            self.shuffle(groups, workgroups, memory.mix_workgroups);
        let all = self.bounds.classes.saturating_mul(groups).saturating_add(workgroups);
        Some(StressParameters {
            workgroups,
            workgroup_multiplier,
            workgroup_offset,
            iterations: if workgroups > 0 { iterations } else { 0 },
            before: if on { before } else { 0 },
            ..self.targets(&memory, all)
        })
    }

    /// What a dispatch on another queue does beside one of `rounds` rounds, and with how many workgroups; none where none is
    /// asked for.
    pub fn beside(&mut self, rounds: u32) -> Option<(u32, StressParameters)> {
        let memory = self.stress.memory_stress.clone().filter(|memory| memory.queue_workgroups.1 > 0)?;
        let workgroups = self.within(memory.queue_workgroups).clamp(1, self.bounds.max_workgroups.max(1));
        let turns = self.within(memory.queue_iterations).saturating_mul(rounds);
        let most = self.bounds.loop_budget.map_or(u32::MAX, |budget| budget.saturating_sub(LOOP_MARGIN));
        Some((
            workgroups,
            StressParameters { iterations: turns.min(most), ..self.targets(&memory, workgroups) },
        ))
    }

    /// Loop iterations of a round.
    pub(super) fn each_round(stress: Option<&StressParameters>) -> u32 {
        stress.map_or(1, |stress| each_round(stress.iterations.max(stress.before)))
    }

    /// Pattern and targets, for so many workgroups.
    fn targets(&mut self, memory: &MemoryStress, workgroups: u32) -> StressParameters {
        let pattern = memory.patterns.get(self.generator.random_range(0..memory.patterns.len().max(1)));
        let doublings = (memory.line_words.1 / memory.line_words.0.max(1)).max(1).ilog2();
        let line = (memory.line_words.0 << self.within((0, doublings))).max(1);
        let lines = self.within(memory.lines);
        let regions = MemoryStress::regions(self.bounds.scratch_words, line, lines);
        let lines = lines.min(regions).max(1);
        let line = line.min(u32::try_from(self.bounds.scratch_words).unwrap_or(u32::MAX)).max(1);
        let (multiplier, first) = (self.coprime(regions), self.within((0, regions - 1)));
        let word = self.within((0, line - 1));
        let words = regions * line;
        let in_chunks = match memory.strategy {
            Strategy::RoundRobin => false,
            Strategy::Chunks => true,
            Strategy::Any => self.generator.random(),
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

    /// Turns of a round such that one fits the driver's loop budget beside the shortest wait.
    fn most_turns(&self) -> u32 {
        let Some(budget) = self.bounds.loop_budget else { return u32::MAX };
        let wait = self.loads(self.stress.spin.0).saturating_add(2 * (3 + self.stress.hold.1));
        budget.saturating_sub(wait.saturating_add(LOOP_MARGIN + each_round(0))).max(1)
    }

    /// Multiplier and offset that shuffle the workgroups of every kernel of the program.
    fn shuffle(&mut self, groups: u32, workgroups: u32, mix: bool) -> (u32, u32) {
        let all = |classes: u32| classes.saturating_mul(groups).saturating_add(workgroups);
        let counts = self.bounds.class_counts;
        let most = all(self.bounds.classes);
        if !mix || most > MOST_SHUFFLED || counts == 0 {
            return (1, 0);
        }
        let fits = |multiplier| {
            (0..u64::BITS)
                .filter(|classes| counts >> classes & 1 == 1)
                .all(|classes| gcd(multiplier, all(classes)) == 1)
        };
        let found = (0..ATTEMPTS).map(|_| self.generator.random_range(1..=most)).find(|number| fits(*number));
        found.map_or((1, 0), |multiplier| (multiplier, self.within((0, most - 1))))
    }

    /// Whether something happens that does in `percent` of all cases.
    fn happens(&mut self, percent: u32) -> bool {
        self.within((1, 100)) <= percent
    }
}
