//! Kernels for forward-progress tests: unbounded loops that the host can release, and a record of each
//! thread's state.
//!
//! Such a kernel runs one round, with each thread as a loop over its basic blocks. For each thread it records
//! whether and when it started, its position, its number of iterations and whether it ended.
//!
//! # Placement of threads
//! The threads of a test are separated at a [`SeparationLevel`]: in different workgroups or subgroups of
//! one workgroup, or as invocations of one subgroup. The dispatch contains `M` = [`Parameters::copies`]
//! copies of the test, on *units* of that level (workgroups of the dispatch, subgroups of the workgroup,
//! invocations of the subgroup). With `C` = [`ProgressKernel::units`] units per copy and `n` =
//! [`Parameters::near`], unit `u` below `n × M` runs part `u mod n` of copy `u / n`, and every other unit
//! runs part `u / M` of copy `u mod M`. `n` = C assigns the parts round-robin; `n` = 1 gives each part one
//! contiguous range. Units beyond `C × M` and invocations without a thread end at once. They fill up
//! subgroups, because lavapipe 22.3 executes missing lanes in loops.
//!
//! # Buffers
//! Binding `b` below [`ProgressKernel::locations`] is the location buffer: storage `s` of copy `m` is word
//! `(m × storages + s) × `[`STORAGE_SPACING`]. The next binding is the record buffer, full of [`UNWRITTEN`]:
//! field `f` of thread `t` of copy `m` is word `(m × threads + t) × `[`RECORD_FIELDS`]` + f`. The last
//! one is the control buffer: a nonzero [`STOP_WORD`] ends all loops, [`CLOCK_WORD`] counts starts and ends,
//! and [`OVERFLOW_WORD`] counts invocations that the dispatch does not have, which run no thread. All are
//! initially 0.

mod emit;

use litmus::{Flow, InstructionKind, Test, ThreadId, ThreadPlace};
use rspirv::spirv::{self, AddressingModel, Capability, LoopControl};
use vocabulary::Feature;

use crate::contract::push_constants;
use crate::dispatch::number_storages;
use crate::kernel::CompileError;
use crate::memory::{ElementType, ReferenceMemory, ReferencePath, TestUsage};
use crate::module::{ModuleBuilder, Preamble};
use crate::placement::{Role, WorkgroupLayout};
use crate::rules::{self, Rule};
use crate::segments;
use crate::variant::Variant;
use emit::ProgressEmitter;

/// Words between two storages: a cache line.
pub const STORAGE_SPACING: u32 = 16;
/// The initial value of the record buffer.
pub const UNWRITTEN: u32 = u32::MAX;
/// Word of the control buffer: if nonzero, all loops end; its value is one more than the clock at the time of
/// the request.
pub const STOP_WORD: u64 = 0;
/// Word of the control buffer: the number of starts and ends so far.
pub const CLOCK_WORD: u64 = 16;
/// Word of the control buffer: the number of invocations outside the dispatch.
pub const OVERFLOW_WORD: u64 = 31;
/// Words of the control buffer.
pub const CONTROL_WORDS: u64 = 32;
pub const RECORD_FIELDS: u32 = 5;

/// A field of a thread's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordField {
    /// The clock at its start, before its first step.
    StartClock = 0,
    EndClock = 1,
    /// [`ENDED`] or [`STUCK`], once it is over.
    State = 2,
    /// Its number of iterations, one for each executed basic block.
    Iterations = 3,
    /// Index of its last access or control barrier, written before that.
    Position = 4,
}

/// The thread ended.
pub const ENDED: u32 = 1;
/// The thread was stopped, or reached its bound of iterations.
pub const STUCK: u32 = 2;

/// The level of the hierarchy at which the threads of a test are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeparationLevel {
    /// Workgroups of a dispatch; some may contain several threads.
    Workgroups,
    Subgroups,
    /// Invocations of one subgroup.
    Invocations,
}

/// The compile options of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressConfig {
    pub subgroup_size: u32,
    /// The maximum invocations of a workgroup.
    pub max_workgroup_invocations: u32,
    /// The maximum subgroups of a workgroup.
    pub max_workgroup_subgroups: u32,
    /// The device has `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
    /// The maximum number of copies.
    pub copies: u32,
    /// Workgroups with one thread are filled up to a whole subgroup.
    pub fills_subgroups: bool,
    /// The maximum iterations of a thread, for drivers that end loops silently. A thread that reaches it stops all
    /// others.
    pub max_iterations: Option<u32>,
    /// Polls of the stop word in each iteration; more polls make iterations longer.
    pub stop_polls: u32,
    /// A memory barrier separates a thread's last access from the record of its end.
    pub has_final_barrier: bool,
}

push_constants! {
    /// The push constants, in this order, each a 32-bit word.
    Parameters, Parameter;
    /// Copies of the test, from 1 to [`ProgressKernel::copies`].
    copies Copies,
    /// Parts that are assigned round-robin, from 1 to [`ProgressKernel::units`].
    near Near,
}

#[derive(Clone, Debug)]
pub struct ProgressKernel {
    pub words: Vec<u32>,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// The subgroup size that it was compiled for, if it depends on one.
    pub subgroup_size: Option<u32>,
    pub features: Vec<Feature>,
    pub threads: u32,
    /// The level at which they are separated.
    pub level: SeparationLevel,
    /// Units of that level in a copy.
    pub units: u32,
    /// The maximum number of copies in a dispatch.
    pub copies: u32,
    /// Bindings of the location buffer.
    pub locations: u32,
    /// Storages of a copy.
    pub storages: u32,
    /// The initial value of each storage.
    pub initial_values: Vec<u32>,
    /// For each thread, its part of a copy, from 0 to [`ProgressKernel::units`].
    pub parts: Vec<u32>,
    /// For each thread, its minimum number of iterations. A thread with more iterations has waited.
    pub min_iterations: Vec<u32>,
}

/// Compiles a test whose loops may never end.
///
/// # Errors
/// [`CompileError::NotPlaceable`] names the [rule](crate::rules::Rule) that the test breaks.
/// [`CompileError::WorkgroupTooLarge`] means that the device is too small.
pub fn compile(test: &Test, config: &ProgressConfig) -> Result<ProgressKernel, CompileError> {
    rules::check_except_loops(test)?;
    rules::check_stage(test, crate::variant::CarrierStage::Compute)?;
    let has_split = |kind: &InstructionKind| matches!(kind, InstructionKind::SplitBarrier(_));
    Rule::ProgressSplitBarrier
        .when(test.threads.iter().flat_map(|thread| &thread.instructions).any(|i| has_split(&i.kind)))?;
    Rule::SubgroupOperation.when(test.has_tangles())?;
    let variant = Variant::default();
    let uses = TestUsage::analyze(test, variant)?;
    let words_of_buffers = |(path, kind): &(ReferencePath, ReferenceMemory)| {
        *kind == ReferenceMemory::Buffer
            && path.element == ElementType::U32
            && path.offset == 0
            && !path.is_vector()
    };
    Rule::ProgressMemory.when(uses.storage_words != 1 || !uses.paths.iter().all(words_of_buffers))?;
    let placement = CopyPlacement::new(test, config)?;
    let segments = segments::cut_into_segments(test, &placement.layout)?;
    let storages = number_storages(test);
    let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
    let mut features = vec![Feature::VulkanMemoryModel];
    if config.device_scope || uses.scopes.contains(&litmus::Scope::Device) {
        capabilities.push(Capability::VulkanMemoryModelDeviceScope);
        features.push(Feature::VulkanMemoryModelDeviceScope);
    }
    if placement.layout.subgroup_size.is_some() || uses.scopes.contains(&litmus::Scope::Subgroup) {
        capabilities.push(Capability::GroupNonUniform);
    }
    features.extend(uses.features());
    let mut emitter = ProgressEmitter {
        test,
        config,
        variant,
        placement: &placement,
        storages: &storages,
        module: ModuleBuilder::new(Preamble {
            version: (1, 5),
            capabilities,
            extensions: Vec::new(),
            addressing: AddressingModel::Logical,
            model: spirv::MemoryModel::Vulkan,
            loops: LoopControl::DONT_UNROLL,
        }),
    };
    let locations = emitter.emit_main(&uses.paths, segments)?;
    let size = placement.layout.workgroup_size;
    Ok(ProgressKernel {
        words: emitter.module.finish(size).words,
        workgroup_size: size,
        subgroup_size: placement.layout.subgroup_size,
        features,
        threads: test.threads.len() as u32,
        level: placement.level,
        units: placement.units,
        copies: placement.copies,
        locations,
        storages: storages.count(),
        parts: placement.layout.roles.iter().map(|role| placement.part_of_role(role)).collect(),
        initial_values: storages.initial_values(test).iter().map(|value| *value as u32).collect(),
        min_iterations: test
            .threads
            .iter()
            .map(|thread| block_leaders(thread, 0..thread.instructions.len()).len() as u32)
            .collect(),
    })
}

/// The placement of threads and copies.
struct CopyPlacement {
    level: SeparationLevel,
    layout: WorkgroupLayout,
    units: u32,
    copies: u32,
}

impl CopyPlacement {
    /// Returns the part of a copy that contains a thread.
    fn part_of_role(&self, role: &Role) -> u32 {
        match self.level {
            SeparationLevel::Workgroups => role.class,
            SeparationLevel::Subgroups => role.subgroup,
            SeparationLevel::Invocations => role.share,
        }
    }

    fn new(test: &Test, config: &ProgressConfig) -> Result<CopyPlacement, CompileError> {
        let mut placed = Vec::with_capacity(test.threads.len());
        for (index, thread) in test.threads.iter().enumerate() {
            let ThreadPlace::Device(place) = thread.place else { return Err(Rule::HostThread.into()) };
            placed.push((place.workgroup, place.subgroup, index));
        }
        placed.sort_unstable();
        let mut roles = vec![Role { class: 0, subgroup: 0, share: 0 }; placed.len()];
        let mut classes: Vec<Vec<ThreadId>> = Vec::new();
        let (mut most_subgroups, mut most_lanes) = (1, 1);
        for (class, workgroup) in placed.chunk_by(|left, right| left.0 == right.0).enumerate() {
            classes.push(workgroup.iter().map(|(.., thread)| ThreadId(*thread as u16)).collect());
            for (number, subgroup) in workgroup.chunk_by(|left, right| left.1 == right.1).enumerate() {
                for (share, (.., thread)) in subgroup.iter().enumerate() {
                    roles[*thread] =
                        Role { class: class as u32, subgroup: number as u32, share: share as u32 };
                }
                most_subgroups = most_subgroups.max(number as u32 + 1);
                most_lanes = most_lanes.max(subgroup.len() as u32);
            }
        }
        let threads = placed.len() as u32;
        let level = match (classes.len(), most_subgroups) {
            (1, 1) if threads > 1 => SeparationLevel::Invocations,
            (1, 2..) => SeparationLevel::Subgroups,
            _ => SeparationLevel::Workgroups,
        };
        Rule::SubgroupTooSmall.when(most_lanes > config.subgroup_size)?;
        let wanted = config.copies.max(1);
        let is_single = most_subgroups == 1 && most_lanes == 1;
        let max_subgroups =
            (config.max_workgroup_invocations / config.subgroup_size).min(config.max_workgroup_subgroups);
        let (units, copies, subgroups) = match level {
            SeparationLevel::Workgroups => (classes.len() as u32, wanted, most_subgroups),
            SeparationLevel::Subgroups => {
                let copies = wanted.min(max_subgroups / most_subgroups).max(1);
                (most_subgroups, copies, copies * most_subgroups)
            }
            SeparationLevel::Invocations => (threads, wanted.min(config.subgroup_size / threads).max(1), 1),
        };
        let size = if is_single && !config.fills_subgroups { 1 } else { config.subgroup_size * subgroups };
        if size > config.max_workgroup_invocations
            || (!is_single && subgroups > config.max_workgroup_subgroups)
        {
            return Err(CompileError::WorkgroupTooLarge {
                needed: size,
                available: config.max_workgroup_invocations.min(config.subgroup_size * max_subgroups),
            });
        }
        let layout = WorkgroupLayout {
            roles,
            classes,
            lanes: 1,
            workgroup_size: size,
            shape: [size, 1, 1],
            has_virtual_subgroups: false,
            subgroups,
            subgroup_size: (!is_single).then_some(config.subgroup_size),
        };
        Ok(CopyPlacement { level, layout, units, copies })
    }
}

/// Returns the starts of the basic blocks in `range`.
fn block_leaders(thread: &litmus::Thread, range: std::ops::Range<usize>) -> Vec<usize> {
    let mut leaders = vec![range.start];
    for position in range.clone() {
        match thread.instructions.get(position).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Flow(Flow::Label(_))) => leaders.push(position),
            Some(InstructionKind::Flow(Flow::Goto(_) | Flow::Branch { .. })) => leaders.push(position + 1),
            _ => {}
        }
    }
    leaders.sort_unstable();
    leaders.dedup();
    leaders.retain(|leader| *leader < range.end);
    leaders
}
