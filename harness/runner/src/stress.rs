//! Stress: the parameters that control how a test is laid out on a device, from a preset or a file.
//!
//! The parameters follow litmus7 and the parallel testing environments (PTE) of MC Mutants: many instances
//! per dispatch, permuted assignments, rendezvous of partners, and memory stress.

mod memory;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::counting::CountingPlace;

pub use memory::{MemoryStress, Pattern, TargetAssignment};

/// The layout of a test on a device. Every pair is an inclusive range from which each dispatch draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stress {
    /// The name in records; not part of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Instance slots of a workgroup, if every thread has its own workgroup.
    pub lanes: Lanes,
    /// Groups: the number of workgroups of each class of threads that share one.
    pub groups: (u32, u32),
    /// The same for tests whose threads share one workgroup.
    pub groups_within: (u32, u32),
    pub rounds: (u32, u32),
    /// The maximum failed polls of an invocation that waits for its partners, over all rounds of a dispatch;
    /// 0 disables the rendezvous. It must cover the time between the start of the first and of the last
    /// processor.
    pub spin: (u32, u32),
    /// Rounds between two rendezvous of the partners.
    pub interval: (u32, u32),
    /// Loads of the last invocation to arrive before it continues, because the others detect its arrival
    /// later.
    pub hold: (u32, u32),
    /// Which workgroups are partners.
    pub pairing: Pairing,
    /// Words between two locations of an instance.
    pub spacing: (u32, u32),
    /// Unused words between the locations of two instances.
    pub padding: (u32, u32),
    /// If true, the threads of an instance come from groups that do not wait for each other.
    pub mix_groups: bool,
    /// If true, the threads of an instance come from different lanes.
    pub mix_lanes: bool,
    /// Concurrent submissions. With 2 or more, one is counted while others run.
    pub in_flight: u32,
    /// The target duration of a submission in milliseconds.
    pub submission_ms: u32,
    /// If true, dispatches grow until a submission has the target duration. If false, the parameters depend
    /// only on the seed.
    pub calibrate: bool,
    /// The percentage of dispatches with a rendezvous.
    #[serde(default = "always", skip_serializing_if = "is_always")]
    pub meeting_percent: u32,
    /// If true, each thread of a test has its own loop of rounds between two rendezvous, if the test allows
    /// it; false if absent. CPU drivers execute the code of all threads in every round of a shared loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thread_loops: bool,
    /// If true, each invocation runs every thread of a test, each for a different instance, if the test
    /// allows it; false if absent. Then all workgroups take part in one rendezvous, and none are partners.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// The memory stress; without it, kernels contain no code for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_stress: Option<MemoryStress>,
    /// The layout of graphics stages.
    #[serde(default, skip_serializing_if = "GraphicsLayout::is_default")]
    pub graphics: GraphicsLayout,
    /// Where outcomes are counted.
    #[serde(default)]
    pub classify: CountingPlace,
}

/// The layout of graphics stages. Invocations that a CPU driver assigns to one thread never run concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GraphicsLayout {
    /// Distance in pixels between the fragments of two workgroups in x and y; at least the size of the
    /// fragments' area.
    pub cell: (u32, u32),
    /// Instance slots of a vertex workgroup; those of other workgroups if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertex_lanes: Option<u32>,
}

impl Default for GraphicsLayout {
    fn default() -> GraphicsLayout {
        GraphicsLayout { cell: (16, 16), vertex_lanes: None }
    }
}

impl GraphicsLayout {
    fn is_default(&self) -> bool {
        *self == GraphicsLayout::default()
    }
}

const fn always() -> u32 {
    100
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_always(percent: &u32) -> bool {
    *percent == always()
}

/// A number of instance slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lanes {
    Count(u32),
    /// The subgroup size of the device. CPU drivers run the subgroups of a workgroup sequentially, so
    /// that more slots could not meet. Idle lanes of a workgroup may also execute the waiting loop.
    Of(LaneUnit),
}

/// The unit that determines a number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneUnit {
    Subgroup,
}

/// The assignment of workgroups to partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// Neighbours: the classes alternate from one workgroup to the next.
    Alternating,
    /// Each class has one contiguous range of workgroups.
    Contiguous,
    /// Drawn for each dispatch from all divisors of the number of groups.
    Any,
}

/// Why a stress is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StressError {
    /// The text is not TOML, or a key is missing or unknown.
    #[error("stress `{name}`: {error}")]
    Syntax { name: String, error: Box<toml::de::Error> },
    #[error("stress `{name}` cannot be written: {message}")]
    Unwritable { name: String, message: String },
    #[error("stress `{name}`: `{key}` = [{low}, {high}] ends before it starts")]
    EmptyRange { name: String, key: &'static str, low: u32, high: u32 },
    #[error("stress `{name}`: `{key}` = {value} is outside {low} to {high}")]
    OutOfRange { name: String, key: &'static str, value: u32, low: u32, high: u32 },
    /// Not even one round fits the driver's loop budget.
    #[error(
        "stress `{name}`: one round with `spin` = {spin} needs more than the {budget} loop iterations that the driver allows"
    )]
    LoopBudget { name: String, spin: u32, budget: u32 },
    /// Not even one round with memory stress fits the driver's loop budget.
    #[error(
        "stress `{name}`: one round with {turns} turns of memory stress and `spin` = {spin} needs more than the {budget} loop \
         iterations that the driver allows"
    )]
    TurnsPastBudget { name: String, turns: u32, spin: u32, budget: u32 },
    #[error(
        "stress `{name}`: {lines} lines of {line_words} words are more than the {most} words of scratch memory"
    )]
    Scratch { name: String, lines: u32, line_words: u32, most: u32 },
    /// Memory stress has no access pattern.
    #[error("stress `{name}`: `memory_stress.patterns` is empty; expected some of {}", Pattern::ALL.map(Pattern::name).join(", "))]
    NoPattern { name: String },
    #[error("stress `{name}`: `{key}` = {value} is more than the {limit} that the device allows")]
    TooLarge { name: String, key: &'static str, value: u32, limit: u32 },
    /// No preset has this name.
    #[error("unknown stress preset `{name}`; expected one of {}", known.join(", "))]
    Unknown { name: String, known: Vec<&'static str> },
}

impl StressError {
    /// Returns the bytes of the text that the error is about, if the parser found it.
    pub fn span(&self) -> Option<std::ops::Range<usize>> {
        match self {
            StressError::Syntax { error, .. } => error.span(),
            _ => None,
        }
    }

    /// Returns the key whose value is wrong, as in `memory_stress.percent`.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            StressError::EmptyRange { key, .. }
            | StressError::OutOfRange { key, .. }
            | StressError::TooLarge { key, .. } => Some(key),
            StressError::LoopBudget { .. } => Some("spin"),
            StressError::TurnsPastBudget { .. } => Some("memory_stress"),
            StressError::Scratch { .. } => Some("memory_stress.lines"),
            StressError::NoPattern { .. } => Some("memory_stress.patterns"),
            StressError::Syntax { .. } | StressError::Unwritable { .. } | StressError::Unknown { .. } => None,
        }
    }

    /// Returns the message without the excerpt of the text.
    pub fn message(&self) -> String {
        match self {
            StressError::Syntax { error, .. } => error.message().to_owned(),
            other => other.to_string(),
        }
    }
}

/// The maximum number of groups: products of a group number and a multiplier stay below 2³².
pub(crate) const MAX_GROUPS: u32 = 16_384;

/// The workgroup size up to which a GPU counts as small: the minimum that Vulkan requires.
const SMALL_GPU_INVOCATIONS: u32 = 128;

/// The maximum number of concurrent submissions: each has its own memory.
const MAX_IN_FLIGHT: u32 = 8;

/// The presets: name and text.
const PRESETS: [(&str, &str); 9] = [
    ("lavapipe", include_str!("../presets/lavapipe.toml")),
    ("swiftshader", include_str!("../presets/swiftshader.toml")),
    ("gpu", include_str!("../presets/gpu.toml")),
    ("small", include_str!("../presets/small.toml")),
    ("throughput", include_str!("../presets/throughput.toml")),
    ("sim", include_str!("../presets/sim.toml")),
    ("site", include_str!("../presets/site.toml")),
    ("pte", include_str!("../presets/pte.toml")),
    ("gpuharbor", include_str!("../presets/gpuharbor.toml")),
];

impl Stress {
    /// Parses a stress from TOML.
    ///
    /// # Errors
    /// If the text is invalid, or a value is out of range.
    pub fn from_toml(name: &str, text: &str) -> Result<Stress, StressError> {
        let stress: Stress = toml::from_str(text)
            .map_err(|error| StressError::Syntax { name: name.into(), error: Box::new(error) })?;
        let stress = Stress { name: name.into(), ..stress };
        stress.validate()?;
        Ok(stress)
    }

    /// Returns the stress with submissions halved `halvings` times: fewer rounds and groups, and a shorter
    /// target duration.
    #[must_use]
    pub fn halved(mut self, halvings: u32) -> Stress {
        let half = |most: u32| most.checked_shr(halvings).unwrap_or(0).max(1);
        for (least, most) in [&mut self.rounds, &mut self.groups, &mut self.groups_within] {
            *most = half(*most);
            *least = (*least).min(*most);
        }
        self.submission_ms = half(self.submission_ms);
        self
    }

    /// Returns the stress with other delays, distances between locations, and alignments of instances. The
    /// kernels stay the same.
    #[must_use]
    pub fn with_wider_layout(&self, loop_budget: Option<u32>) -> Stress {
        let widen = |(low, high): (u32, u32), most: u32| (low.min(1), high.max(most));
        let spread = Stress {
            spacing: (1, self.spacing.1.max(64)),
            // An odd number of words changes which lines of a cache the locations of two instances share.
            padding: (0, self.padding.1.max(63)),
            ..self.clone()
        };
        let delayed =
            Stress { interval: widen(self.interval, 16), hold: (0, self.hold.1.max(32)), ..spread.clone() };
        // Longer delays may not fit the loops of a driver.
        if delayed.check_loop_budget(loop_budget).is_ok() { delayed } else { spread }
    }

    /// Returns the form that [`Stress::from_toml`] reads.
    ///
    /// # Errors
    /// None for a stress that was read or drawn.
    pub fn to_toml(&self) -> Result<String, StressError> {
        let file = Stress { name: String::new(), ..self.clone() };
        toml::to_string(&file)
            .map_err(|error| StressError::Unwritable { name: self.name.clone(), message: error.to_string() })
    }

    /// Returns the preset with this name.
    ///
    /// # Errors
    /// [`StressError::Unknown`] if there is none.
    pub fn preset(name: &str) -> Result<Stress, StressError> {
        match PRESETS.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Stress::from_toml(name, text),
            None => Err(StressError::Unknown { name: name.into(), known: Stress::preset_names().collect() }),
        }
    }

    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// Returns the preset for a device. Good values for CPU drivers are bad ones for GPUs, and vice versa.
    ///
    /// # Errors
    /// None for the presets that are shipped.
    pub fn for_device(
        identity: &plan::Identity,
        capabilities: &plan::Capabilities,
    ) -> Result<Stress, StressError> {
        Stress::preset(match (identity.kind.as_str(), capabilities.is_cpu, capabilities.loop_budget) {
            ("simulated", ..) => "sim",
            (_, true, Some(_)) => "lavapipe",
            (_, true, None) => "swiftshader",
            _ if capabilities.max_workgroup_invocations <= SMALL_GPU_INVOCATIONS => "small",
            _ => "gpu",
        })
    }

    /// Returns the preset with the most instances per second, whether or not their threads overlap.
    ///
    /// # Errors
    /// None for the presets that are shipped.
    pub fn for_throughput(capabilities: &plan::Capabilities) -> Result<Stress, StressError> {
        Stress::preset(if capabilities.is_cpu { "throughput" } else { "gpu" })
    }

    /// Returns the compile options for a device under this stress.
    pub fn kernel_config(&self, capabilities: &plan::Capabilities) -> shaders::KernelConfig {
        let lanes = match self.lanes {
            Lanes::Count(lanes) => lanes,
            Lanes::Of(LaneUnit::Subgroup) => capabilities.subgroup_size,
        };
        shaders::KernelConfig {
            subgroup_size: capabilities.subgroup_size,
            subgroup_sizes: capabilities.subgroup_size_range,
            lanes: lanes.min(capabilities.max_workgroup_invocations).max(1),
            // See the field: drivers that bound loops silently have this second limit.
            max_lanes_with_loops: capabilities.loop_budget.map_or(u32::MAX, |_| capabilities.subgroup_size),
            max_workgroup_invocations: capabilities.max_workgroup_invocations,
            max_workgroup_size: capabilities.max_workgroup_size,
            device_scope: capabilities.device_scope,
            loop_bound: shaders::KernelConfig::LOOP_BOUND,
            has_stress: self.memory_stress.is_some(),
            // On devices whose rounds share choices, rounds are counted as batches; a loop over several
            // rounds would be a single batch.
            thread_loops: self.thread_loops && !capabilities.shares_choices,
            parallel: self.parallel,
            fragment_cell: self.graphics.cell,
            vertex_lanes: self.graphics.vertex_lanes.unwrap_or(lanes).max(1),
            variant: shaders::Variant::default(),
        }
    }

    /// Checks the conditions that hold for every device.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn validate(&self) -> Result<(), StressError> {
        if let Lanes::Count(lanes) = self.lanes {
            self.check_value("lanes", lanes, 1..=1024)?;
        }
        self.check_range("groups", self.groups, 1..=MAX_GROUPS)?;
        self.check_range("groups_within", self.groups_within, 1..=MAX_GROUPS)?;
        self.check_range("rounds", self.rounds, 1..=1 << 24)?;
        self.check_range("spin", self.spin, 0..=1 << 24)?;
        self.check_range("interval", self.interval, 1..=1 << 24)?;
        self.check_range("hold", self.hold, 0..=1 << 10)?;
        self.check_range("spacing", self.spacing, 1..=4096)?;
        self.check_range("padding", self.padding, 0..=4096)?;
        self.check_value("in_flight", self.in_flight, 1..=MAX_IN_FLIGHT)?;
        self.check_value("submission_ms", self.submission_ms, 1..=50)?;
        let GraphicsLayout { cell, vertex_lanes } = self.graphics;
        self.check_value("graphics.cell", cell.0, 1..=shaders::carrier::VIEWPORT_SIZE)?;
        self.check_value("graphics.cell", cell.1, 1..=shaders::carrier::VIEWPORT_SIZE)?;
        vertex_lanes.map_or(Ok(()), |lanes| self.check_value("graphics.vertex_lanes", lanes, 1..=1024))?;
        self.check_value("meeting_percent", self.meeting_percent, 0..=100)?;
        self.memory_stress.as_ref().map_or(Ok(()), |memory| self.validate_memory(memory))
    }

    /// Checks the stress against the driver's loop budget.
    ///
    /// # Errors
    /// [`StressError::LoopBudget`] or [`StressError::TurnsPastBudget`] if not even one round fits.
    pub fn check_loop_budget(&self, budget: Option<u32>) -> Result<(), StressError> {
        let Some(budget) = budget else { return Ok(()) };
        let loops = if self.thread_loops { litmus::MAX_THREADS as u32 } else { 0 };
        let after = self.hold.1.saturating_add(rendezvous_iterations(loops));
        let fits = |each| rounds_within(budget, self.spin.0, self.interval.0, after, each) > 0;
        let (name, spin) = (self.name.clone(), self.spin.0);
        if !fits(1) {
            return Err(StressError::LoopBudget { name, spin, budget });
        }
        match &self.memory_stress {
            Some(memory) if !fits(iterations_per_round(memory.min_iterations())) => {
                Err(StressError::TurnsPastBudget { name, turns: memory.min_iterations(), spin, budget })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the minimum of each range is within the limits of the device.
    ///
    /// # Errors
    /// [`StressError::TooLarge`] for the first key that is not.
    pub fn check_limits(&self, capabilities: &plan::Capabilities) -> Result<(), StressError> {
        let lanes = match self.lanes {
            Lanes::Count(lanes) => lanes,
            Lanes::Of(LaneUnit::Subgroup) => 1,
        };
        let workgroups = capabilities.max_workgroups;
        for (key, value, limit) in [
            ("lanes", lanes, capabilities.max_workgroup_invocations),
            ("groups", self.groups.0, workgroups),
            ("groups_within", self.groups_within.0, workgroups),
            (
                "memory_stress.workgroups",
                self.memory_stress.as_ref().map_or(0, |memory| memory.workgroups.0),
                workgroups.saturating_sub(1),
            ),
        ] {
            if value > limit {
                return Err(StressError::TooLarge { name: self.name.clone(), key, value, limit });
            }
        }
        Ok(())
    }

    /// Returns the stress reduced to the limits of a device, and a description of each reduced key.
    pub fn reduced_to_limits(&self, capabilities: &plan::Capabilities) -> (Stress, Vec<String>) {
        let mut reduced = self.clone();
        let mut changes = Vec::new();
        let limit = capabilities.max_workgroup_invocations.max(1);
        if let Lanes::Count(lanes) = &mut reduced.lanes
            && *lanes > limit
        {
            *lanes = limit;
            changes.push(format!("`lanes` to {limit}"));
        }
        let limit = capabilities.max_workgroups.max(1);
        for (key, range) in [("groups", &mut reduced.groups), ("groups_within", &mut reduced.groups_within)] {
            if range.1 > limit {
                *range = (range.0.min(limit), limit);
                changes.push(format!("`{key}` to [{}, {}]", range.0, range.1));
            }
        }
        if let Some(memory) = &mut reduced.memory_stress {
            changes.extend(memory.reduce_to_limits(capabilities));
        }
        (reduced, changes)
    }

    fn check_range(
        &self,
        key: &'static str,
        (low, high): (u32, u32),
        can_be: RangeInclusive<u32>,
    ) -> Result<(), StressError> {
        if low > high {
            return Err(StressError::EmptyRange { name: self.name.clone(), key, low, high });
        }
        self.check_value(key, low, can_be.clone())?;
        self.check_value(key, high, can_be)
    }

    fn check_value(
        &self,
        key: &'static str,
        value: u32,
        valid: RangeInclusive<u32>,
    ) -> Result<(), StressError> {
        if valid.contains(&value) {
            return Ok(());
        }
        Err(StressError::OutOfRange {
            name: self.name.clone(),
            key,
            value,
            low: *valid.start(),
            high: *valid.end(),
        })
    }
}

/// Returns the loop iterations of a round with this many iterations of memory stress: one of the round, the stress
/// iterations, and the end of their loop.
pub(crate) fn iterations_per_round(turns: u32) -> u32 {
    turns.saturating_add(2)
}

/// Returns the additional iterations of a rendezvous if this many threads have separate loops: one of the
/// outer loop and the end of each inner one. 0 if all threads share one loop.
pub(crate) fn rendezvous_iterations(thread_loops: u32) -> u32 {
    if thread_loops == 0 { 0 } else { thread_loops.saturating_add(1) }
}

/// Returns the number of rounds that fit a loop budget together with `spin` failed polls.
///
/// `iterations_per_round` is 1 for the kernel's loop without memory stress. Each rendezvous takes one iteration of
/// its waiting loop, and `after` + 1 that follow. Lanes that wait in lockstep count failed polls separately,
/// and their counts for one rendezvous differ by at most one: another iteration.
pub(crate) fn rounds_within(
    budget: u32,
    spin: u32,
    interval: u32,
    after: u32,
    iterations_per_round: u32,
) -> u32 {
    let remaining = u64::from(budget.saturating_sub(spin.saturating_add(LOOP_MARGIN)));
    let (interval, rendezvous, each) =
        (u64::from(interval), 3 + u64::from(after), u64::from(iterations_per_round.max(1)));
    let span = interval * each + rendezvous;
    let rounds = remaining / span * interval + (remaining % span).saturating_sub(rendezvous) / each;
    u32::try_from(rounds).unwrap_or(u32::MAX)
}

/// Unused iterations, for the final test of each loop.
pub(crate) const LOOP_MARGIN: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(change: (&str, &str)) -> String {
        let preset = include_str!("../presets/gpu.toml");
        assert!(preset.contains(change.0), "the preset has no `{}`", change.0);
        preset.replace(change.0, change.1)
    }

    #[test]
    fn every_preset_is_valid() {
        for name in Stress::preset_names() {
            assert_eq!(Stress::preset(name).unwrap().name, name);
        }
    }

    #[test]
    fn every_preset_can_be_spread_out() {
        for name in Stress::preset_names() {
            let stress = Stress::preset(name).unwrap();
            for budget in [None, Some(65_535)].into_iter().filter(|b| stress.check_loop_budget(*b).is_ok()) {
                let spread = stress.with_wider_layout(budget);
                assert_eq!((spread.validate(), spread.check_loop_budget(budget)), (Ok(()), Ok(())), "{name}");
                assert!(spread.spacing.1 >= 64 && spread.padding.1 >= 63 && spread != stress, "{name}");
            }
        }
    }

    #[test]
    fn presets_stay_below_the_loop_budget_of_lavapipe() {
        let stress = Stress::preset("lavapipe").unwrap();
        assert_eq!(stress.check_loop_budget(Some(65_535)), Ok(()));
        let after = stress.hold.1 + rendezvous_iterations(2);
        let most = rounds_within(65_535, stress.spin.1, stress.interval.0, after, 1);
        assert!(most >= stress.rounds.0);
    }

    #[test]
    fn the_device_decides_the_preset() {
        let cpu = |loop_budget| plan::Capabilities { is_cpu: true, loop_budget, ..Default::default() };
        let kind = |kind: &str| plan::Identity { kind: kind.into(), ..Default::default() };
        let name = |identity, capabilities| Stress::for_device(&identity, &capabilities).unwrap().name;
        assert_eq!(name(kind("cpu"), cpu(Some(65_535))), "lavapipe");
        assert_eq!(name(kind("cpu"), cpu(None)), "swiftshader");
        let gpu = |max_workgroup_invocations| plan::Capabilities {
            max_workgroup_invocations,
            ..plan::Capabilities::default()
        };
        assert_eq!(name(kind("discrete"), gpu(1024)), "gpu");
        assert_eq!(name(kind("integrated"), gpu(256)), "gpu");
        assert_eq!(name(kind("integrated"), gpu(128)), "small");
        assert_eq!(name(kind("simulated"), cpu(None)), "sim");
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = Stress::from_toml("mine", &text(("in_flight", "inflight"))).unwrap_err();
        assert!(error.to_string().contains("unknown field `inflight`"), "{error}");
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        let refused = |change| Stress::from_toml("mine", &text(change)).unwrap_err().to_string();
        assert_eq!(
            refused(("spacing = [", "spacing = [0, 9] # [")),
            "stress `mine`: `spacing` = 0 is outside 1 to 4096"
        );
        assert_eq!(
            refused(("rounds = [", "rounds = [9, 3] # [")),
            "stress `mine`: `rounds` = [9, 3] ends before it starts"
        );
        assert_eq!(
            refused(("in_flight = ", "in_flight = 9 # ")),
            "stress `mine`: `in_flight` = 9 is outside 1 to 8"
        );
    }

    #[test]
    fn a_wait_past_the_loop_budget_is_refused() {
        let stress = Stress::from_toml("mine", &text(("spin = [", "spin = [70000, 70000] # ["))).unwrap();
        assert_eq!(stress.check_loop_budget(None), Ok(()));
        assert!(matches!(stress.check_loop_budget(Some(65_535)), Err(StressError::LoopBudget { .. })));
    }

    #[test]
    fn thread_loops_follow_the_device() {
        let stress = Stress::preset("lavapipe").unwrap();
        let plain = plan::Capabilities { subgroup_size: 8, ..plan::Capabilities::default() };
        let bounding = plan::Capabilities { loop_budget: Some(65_535), ..plain.clone() };
        let batching = plan::Capabilities { shares_choices: true, ..plain.clone() };
        let of = |capabilities| {
            let config = stress.kernel_config(capabilities);
            (config.thread_loops, config.max_lanes_with_loops)
        };
        assert_eq!(of(&plain), (true, u32::MAX));
        assert_eq!(of(&bounding), (true, 8));
        assert_eq!(of(&batching), (false, u32::MAX));
    }

    #[test]
    fn unsupported_stress_is_refused_or_reduced() {
        let small = plan::Capabilities {
            max_workgroups: 20,
            max_workgroup_invocations: 32,
            ..plan::Capabilities::default()
        };
        let gpu = Stress::preset("gpu").unwrap();
        assert_eq!(
            gpu.check_limits(&small).unwrap_err().to_string(),
            "stress `gpu`: `lanes` = 64 is more than the 32 that the device allows"
        );
        let (reduced, changes) = gpu.reduced_to_limits(&small);
        assert_eq!(
            changes,
            [
                "`lanes` to 32",
                "`groups` to [20, 20]",
                "`groups_within` to [20, 20]",
                "`memory_stress.workgroups` to [19, 19]"
            ]
        );
        assert_eq!((reduced.check_limits(&small), reduced.validate()), (Ok(()), Ok(())));
        assert_eq!(reduced.reduced_to_limits(&small), (reduced.clone(), Vec::new()));
    }

    /// A preset that `tune` writes can be read back.
    #[test]
    fn a_stress_survives_its_file() {
        for name in Stress::preset_names() {
            let stress = Stress::preset(name).unwrap();
            assert_eq!(Stress::from_toml(name, &stress.to_toml().unwrap()), Ok(stress));
        }
    }

    #[test]
    fn unknown_presets_name_the_known_ones() {
        let error = Stress::preset("warp").unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown stress preset `warp`; expected one of lavapipe, swiftshader, gpu, small, throughput, sim, site, pte, gpuharbor"
        );
    }
}
