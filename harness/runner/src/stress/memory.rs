//! Memory stress as data: the accesses of stress workgroups, their memory and their frequency.

use litmus::closed_enum;
use serde::{Deserialize, Serialize};

use super::{Stress, StressError};

/// The maximum words of scratch memory.
const SCRATCH_WORDS: u32 = 1 << 20;
/// Regions of scratch memory for each target line.
const REGIONS: u32 = 32;

/// Accesses to scratch memory, which no test uses, while a test runs. Every key is optional; pairs are
/// ranges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryStress {
    /// Stress workgroups: additional workgroups in the dispatch of the test.
    pub workgroups: (u32, u32),
    /// Iterations of their invocations in each round, with two accesses each.
    pub iterations: (u32, u32),
    /// Pre-stress: iterations of the test's invocations before each round, after the rendezvous.
    pub pre_stress: (u32, u32),
    /// The percentage of dispatches with stress workgroups, and (drawn independently) of those with
    /// pre-stress.
    pub percent: u32,
    /// The access patterns of an iteration.
    pub patterns: Vec<Pattern>,
    /// Words of a line: the first number times a random power of two.
    pub line_words: (u32, u32),
    /// The number of target lines, with one word each.
    pub lines: (u32, u32),
    /// The assignment of targets to workgroups.
    pub strategy: TargetAssignment,
    /// If true, the workgroups of a dispatch are shuffled, so that stress workgroups run between those of the
    /// test.
    pub mix_workgroups: bool,
    /// Workgroups of a separate dispatch on another queue, at the same time.
    pub queue_workgroups: (u32, u32),
    /// Iterations of its invocations for each round of the test's dispatch.
    pub queue_iterations: (u32, u32),
}

impl Default for MemoryStress {
    fn default() -> MemoryStress {
        MemoryStress {
            workgroups: (0, 0),
            iterations: (16, 16),
            pre_stress: (0, 0),
            percent: 100,
            patterns: Pattern::ALL.to_vec(),
            line_words: (64, 64),
            lines: (2, 2),
            strategy: TargetAssignment::Any,
            mix_workgroups: false,
            queue_workgroups: (0, 0),
            queue_iterations: (16, 16),
        }
    }
}

closed_enum! {
    /// The two accesses of a turn.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Pattern {
        StoreStore = "store-store",
        /// A store, then a load.
        StoreLoad = "store-load",
        /// A load, then a store.
        LoadStore = "load-store",
        LoadLoad = "load-load",
    }
}

impl Pattern {
    /// Returns the code of the pattern in kernels.
    pub(crate) fn word(self) -> u32 {
        match self {
            Pattern::StoreStore => shaders::stress::AccessPattern::StoreStore,
            Pattern::StoreLoad => shaders::stress::AccessPattern::StoreLoad,
            Pattern::LoadStore => shaders::stress::AccessPattern::LoadStore,
            Pattern::LoadLoad => shaders::stress::AccessPattern::LoadLoad,
        }
        .to_word()
    }
}

/// The assignment of targets to workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetAssignment {
    /// Neighbours have different targets.
    RoundRobin,
    /// Neighbours share a target, if there are more workgroups than targets.
    Chunks,
    /// Drawn for each dispatch.
    Any,
}

impl MemoryStress {
    /// Returns the minimum iterations of an invocation in a round.
    pub(crate) fn min_iterations(&self) -> u32 {
        let of_workgroups = if self.workgroups.1 > 0 { self.iterations.0 } else { 0 };
        of_workgroups.max(self.pre_stress.0)
    }

    /// Returns the maximum words of scratch memory of any dispatch.
    pub(crate) fn scratch_words(&self) -> u64 {
        let targets = u64::from(self.lines.1) * u64::from(self.line_words.1);
        (targets * u64::from(REGIONS)).clamp(1, u64::from(SCRATCH_WORDS))
    }

    /// Returns the number of regions for this many lines of `line_words` words.
    pub(crate) fn region_count(words: u64, line_words: u32, lines: u32) -> u32 {
        let room = u32::try_from(words / u64::from(line_words.max(1))).unwrap_or(u32::MAX);
        room.min(lines.saturating_mul(REGIONS)).max(1)
    }

    /// Reduces values that exceed limits of the device, and describes each change.
    pub(super) fn reduce_to_limits(&mut self, capabilities: &plan::Capabilities) -> Vec<String> {
        let mut changes = Vec::new();
        let limit = capabilities.max_workgroups.saturating_sub(1);
        for (key, range) in
            [("workgroups", &mut self.workgroups), ("queue_workgroups", &mut self.queue_workgroups)]
        {
            if range.1 > limit {
                *range = (range.0.min(limit), limit);
                changes.push(format!("`memory_stress.{key}` to [{}, {}]", range.0, range.1));
            }
        }
        if self.queue_workgroups.1 > 0 && capabilities.compute_queues.iter().sum::<u32>() < 2 {
            self.queue_workgroups = (0, 0);
            changes.push("`memory_stress.queue_workgroups` to [0, 0] (it has one queue)".to_owned());
        }
        changes
    }
}

impl Stress {
    /// Checks the conditions on memory stress that hold for every device.
    pub(super) fn validate_memory(&self, memory: &MemoryStress) -> Result<(), StressError> {
        self.check_range("memory_stress.workgroups", memory.workgroups, 0..=65_535)?;
        self.check_range("memory_stress.iterations", memory.iterations, 0..=1 << 16)?;
        self.check_range("memory_stress.pre_stress", memory.pre_stress, 0..=1 << 16)?;
        self.check_value("memory_stress.percent", memory.percent, 0..=100)?;
        self.check_range("memory_stress.line_words", memory.line_words, 1..=4096)?;
        self.check_range("memory_stress.lines", memory.lines, 1..=4096)?;
        self.check_range("memory_stress.queue_workgroups", memory.queue_workgroups, 0..=65_535)?;
        self.check_range("memory_stress.queue_iterations", memory.queue_iterations, 0..=1 << 16)?;
        let name = || self.name.clone();
        if memory.patterns.is_empty() {
            return Err(StressError::NoPattern { name: name() });
        }
        let (lines, line_words) = (memory.lines.1, memory.line_words.1);
        if lines * line_words > SCRATCH_WORDS {
            return Err(StressError::Scratch { name: name(), lines, line_words, most: SCRATCH_WORDS });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = include_str!("../../presets/gpu.toml");

    fn parse_stress(table: &str) -> Result<Stress, StressError> {
        let plain = PLAIN.split("[memory_stress]").next().unwrap();
        Stress::from_toml("mine", &format!("{plain}\n[memory_stress]\n{table}"))
    }

    fn parse_error(table: &str) -> String {
        parse_stress(table).unwrap_err().to_string()
    }

    /// Every key is optional, and an absent key disables its stress.
    #[test]
    fn an_empty_table_disables_stress() {
        let memory = parse_stress("").unwrap().memory_stress.unwrap();
        assert_eq!((memory.workgroups, memory.pre_stress, memory.queue_workgroups), ((0, 0), (0, 0), (0, 0)));
        assert_eq!(memory, MemoryStress::default());
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        assert!(parse_error("workgroup = [1, 2]").contains("unknown field `workgroup`"));
        assert!(parse_error("patterns = [\"store\"]").contains("unknown variant `store`"));
        assert_eq!(
            parse_error("percent = 101"),
            "stress `mine`: `memory_stress.percent` = 101 is outside 0 to 100"
        );
        assert_eq!(
            parse_error("iterations = [5, 4]"),
            "stress `mine`: `memory_stress.iterations` = [5, 4] ends before it starts"
        );
        assert_eq!(
            parse_error("lines = [1, 4096]\nline_words = [64, 512]"),
            "stress `mine`: 4096 lines of 512 words are more than the 1048576 words of scratch memory"
        );
        assert_eq!(
            parse_error("patterns = []"),
            "stress `mine`: `memory_stress.patterns` is empty; expected some of store-store, store-load, load-store, load-load"
        );
    }

    #[test]
    fn meetings_have_a_percentage() {
        let with = |line: &str| Stress::from_toml("mine", &format!("{line}\n{PLAIN}"));
        assert_eq!(with("").unwrap().meeting_percent, 100);
        assert_eq!(with("meeting_percent = 30").unwrap().meeting_percent, 30);
        let error = with("meeting_percent = 101").unwrap_err().to_string();
        assert_eq!(error, "stress `mine`: `meeting_percent` = 101 is outside 0 to 100");
    }

    #[test]
    fn turns_past_the_loop_budget_are_refused() {
        let stress = parse_stress("pre_stress = [65000, 65500]").unwrap();
        assert_eq!(stress.check_loop_budget(None), Ok(()));
        assert_eq!(stress.check_loop_budget(Some(65_535)), Ok(()));
        let stress = parse_stress("workgroups = [1, 1]\niterations = [65530, 65530]").unwrap();
        assert_eq!(
            stress.check_loop_budget(Some(65_535)).unwrap_err().to_string(),
            "stress `mine`: one round with 65530 turns of memory stress and `spin` = 0 needs more than the 65535 loop \
             iterations that the driver allows"
        );
        // No invocation executes these iterations.
        assert_eq!(
            parse_stress("iterations = [65530, 65530]").unwrap().check_loop_budget(Some(65_535)),
            Ok(())
        );
    }

    #[test]
    fn unsupported_memory_stress_is_reduced() {
        let stress = parse_stress("workgroups = [8, 900]\nqueue_workgroups = [4, 8]").unwrap();
        let small = plan::Capabilities {
            max_workgroups: 600,
            max_workgroup_invocations: 1024,
            compute_queues: vec![1],
            ..plan::Capabilities::default()
        };
        let (reduced, changes) = stress.reduced_to_limits(&small);
        assert_eq!(
            changes[changes.len() - 2..],
            [
                "`memory_stress.workgroups` to [8, 599]",
                "`memory_stress.queue_workgroups` to [0, 0] (it has one queue)"
            ]
        );
        assert_eq!(reduced.reduced_to_limits(&small), (reduced.clone(), Vec::new()));
        let large = plan::Capabilities { compute_queues: vec![1, 8], ..small };
        assert_eq!(stress.reduced_to_limits(&large).0.memory_stress.unwrap().queue_workgroups, (4, 8));
        let message =
            parse_stress("workgroups = [601, 900]").unwrap().check_limits(&large).unwrap_err().to_string();
        assert_eq!(
            message,
            "stress `mine`: `memory_stress.workgroups` = 601 is more than the 599 that the device allows"
        );
    }

    /// A preset that `tune` writes can be read back.
    #[test]
    fn memory_stress_survives_its_file() {
        let stress =
            parse_stress("workgroups = [1, 2]\npatterns = [\"load-store\"]\nstrategy = \"round-robin\"")
                .unwrap();
        let text = stress.to_toml().unwrap();
        assert_eq!(Stress::from_toml("mine", &text), Ok(stress));
    }

    #[test]
    fn names_are_those_of_files() {
        for pattern in Pattern::ALL {
            let read = parse_stress(&format!("patterns = [\"{pattern}\"]")).unwrap().memory_stress.unwrap();
            assert_eq!(read.patterns, [pattern]);
        }
    }
}
