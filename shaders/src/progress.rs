//! Kernels for forward-progress tests: unbounded loops that the host can release, and a record of each
//! thread's state.
//!
//! Such a kernel runs one round, with each thread as a loop over its basic blocks. For each thread it records
//! whether and when it started, its position, its number of iterations and whether it ended.
//!
//! # Placement of threads
//! The threads of a test are separated at some [`Level`]: in different workgroups, in different subgroups of
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
//! `(m × storages + s) × `[`SPACING`]. The next binding is the record buffer, filled with [`UNWRITTEN`]:
//! field `f` ([`Field`]) of thread `t` of copy `m` is word `(m × threads + t) × `[`FIELDS`]` + f`. The last
//! one is the control buffer: a nonzero word [`STOP`] ends all loops, word [`CLOCK`] counts starts and ends,
//! and word [`OVERFLOW`] counts invocations that the dispatch does not have, which run no thread. All are
//! initially 0.

mod emit;

use litmus::{Flow, InstructionKind, Test, ThreadId, ThreadPlace};
use rspirv::spirv::{self, AddressingModel, Capability, LoopControl};
use vocabulary::Feature;

use crate::contract::push_constants;
use crate::dispatch::storages;
use crate::kernel::CompileError;
use crate::memory::{Element, ReferenceMemory, ReferencePath, Uses};
use crate::module::{Module, Preamble};
use crate::placement::{Role, WorkgroupLayout};
use crate::rules::{self, Rule};
use crate::segments;
use crate::variant::Variant;
use emit::Emitter;

/// Words between two storages: a cache line.
pub const SPACING: u32 = 16;
/// The initial value of the record buffer.
pub const UNWRITTEN: u32 = u32::MAX;
/// Word of the control buffer: if nonzero, all loops end; its value is one more than the clock at the time of
/// the request.
pub const STOP: u64 = 0;
/// Word of the control buffer: the number of starts and ends so far.
pub const CLOCK: u64 = 16;
/// Word of the control buffer: the number of invocations outside the dispatch.
pub const OVERFLOW: u64 = 31;
/// Words of the control buffer.
pub const CONTROL_WORDS: u64 = 32;
/// Fields of a record.
pub const FIELDS: u32 = 5;

/// A field of a thread's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The clock at its start, before its first step.
    Began = 0,
    /// The clock at its end.
    Over = 1,
    /// [`ENDED`] or [`STUCK`], once it is over.
    State = 2,
    /// Its number of iterations, one for each executed basic block.
    Turns = 3,
    /// Index of its last access or control barrier, written before that.
    Place = 4,
}

/// The thread ended.
pub const ENDED: u32 = 1;
/// The thread was stopped, or reached its bound of iterations.
pub const STUCK: u32 = 2;

/// The level of the hierarchy at which the threads of a test are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Workgroups of a dispatch; some may contain several threads.
    Workgroups,
    /// Subgroups of one workgroup.
    Subgroups,
    /// Invocations of one subgroup.
    Invocations,
}

/// The compile options of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressConfig {
    /// Subgroup size of the device.
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
    pub whole_subgroups: bool,
    /// The maximum iterations of a thread, for drivers that end loops silently. A thread that reaches it stops all
    /// others.
    pub bound: Option<u32>,
    /// Polls of the stop word in each iteration; more polls make iterations longer.
    pub looks: u32,
    /// A memory barrier separates a thread's last access from the record of its end.
    pub settles: bool,
}

push_constants! {
    /// The push constants, in this order, each a 32-bit word.
    Parameters, Parameter;
    /// Copies of the test, from 1 to [`ProgressKernel::copies`].
    copies Copies,
    /// Parts that are assigned round-robin, from 1 to [`ProgressKernel::units`].
    near Near,
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct ProgressKernel {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// The subgroup size that it was compiled for, if it depends on one.
    pub subgroup_size: Option<u32>,
    /// The required features.
    pub features: Vec<Feature>,
    /// Threads of the test.
    pub threads: u32,
    /// The level at which they are separated.
    pub level: Level,
    /// Units of that level in a copy.
    pub units: u32,
    /// The maximum number of copies in a dispatch.
    pub copies: u32,
    /// Bindings of the location buffer.
    pub locations: u32,
    /// Storages of a copy.
    pub storages: u32,
    /// The initial value of each storage.
    pub initial: Vec<u32>,
    /// For each thread, its part of a copy, from 0 to [`ProgressKernel::units`].
    pub parts: Vec<u32>,
    /// For each thread, its minimum number of iterations. A thread with more iterations has waited.
    pub blocks: Vec<u32>,
}

/// Compiles a test whose loops may never end.
///
/// # Errors
/// [`CompileError::NotPlaceable`] names the [rule](crate::rules::Rule) that the test breaks.
/// [`CompileError::WorkgroupTooLarge`] means that the device is too small.
pub fn compile(test: &Test, config: &ProgressConfig) -> Result<ProgressKernel, CompileError> {
    rules::check_but_loops(test)?;
    rules::check_stage(test, crate::variant::CarrierStage::Compute)?;
    let has_split = |kind: &InstructionKind| matches!(kind, InstructionKind::SplitBarrier(_));
    if test.threads.iter().flat_map(|thread| &thread.instructions).any(|i| has_split(&i.kind)) {
        return Err(Rule::ProgressSplitBarrier.into());
    }
    if test.has_tangles() {
        return Err(Rule::SubgroupOperation.into());
    }
    let variant = Variant::default();
    let uses = Uses::of(test, variant)?;
    let words_of_buffers = |(path, kind): &(ReferencePath, ReferenceMemory)| {
        *kind == ReferenceMemory::Buffer
            && path.element == Element::U32
            && path.offset == 0
            && !path.is_vector()
    };
    if uses.storage_words != 1 || !uses.paths.iter().all(words_of_buffers) {
        return Err(Rule::ProgressMemory.into());
    }
    let spread = Spread::of(test, config)?;
    let segments = segments::cut(test, &spread.layout)?;
    let storages = storages(test);
    let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
    let mut features = vec![Feature::VulkanMemoryModel];
    if config.device_scope || uses.scopes.contains(&litmus::Scope::Device) {
        capabilities.push(Capability::VulkanMemoryModelDeviceScope);
        features.push(Feature::VulkanMemoryModelDeviceScope);
    }
    if spread.layout.subgroup_size.is_some() || uses.scopes.contains(&litmus::Scope::Subgroup) {
        capabilities.push(Capability::GroupNonUniform);
    }
    features.extend(uses.features());
    let mut emitter = Emitter {
        test,
        config,
        variant,
        spread: &spread,
        storages: &storages,
        module: Module::new(Preamble {
            version: (1, 5),
            capabilities,
            extensions: Vec::new(),
            addressing: AddressingModel::Logical,
            model: spirv::MemoryModel::Vulkan,
            loops: LoopControl::DONT_UNROLL,
        }),
    };
    let locations = emitter.main(&uses.paths, segments)?;
    let size = spread.layout.workgroup_size;
    Ok(ProgressKernel {
        words: emitter.module.finish(size).words,
        workgroup_size: size,
        subgroup_size: spread.layout.subgroup_size,
        features,
        threads: test.threads.len() as u32,
        level: spread.level,
        units: spread.units,
        copies: spread.copies,
        locations,
        storages: storages.count(),
        parts: spread.layout.roles.iter().map(|role| spread.part(role)).collect(),
        initial: storages.initial(test).iter().map(|value| *value as u32).collect(),
        blocks: test
            .threads
            .iter()
            .map(|thread| block_leaders(thread, 0..thread.instructions.len()).len() as u32)
            .collect(),
    })
}

/// The placement of threads and copies.
struct Spread {
    level: Level,
    layout: WorkgroupLayout,
    units: u32,
    copies: u32,
}

impl Spread {
    /// Returns the part of a copy that contains a thread.
    fn part(&self, role: &Role) -> u32 {
        match self.level {
            Level::Workgroups => role.class,
            Level::Subgroups => role.subgroup,
            Level::Invocations => role.share,
        }
    }

    fn of(test: &Test, config: &ProgressConfig) -> Result<Spread, CompileError> {
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
            (1, 1) if threads > 1 => Level::Invocations,
            (1, 2..) => Level::Subgroups,
            _ => Level::Workgroups,
        };
        if most_lanes > config.subgroup_size {
            return Err(Rule::SubgroupTooSmall.into());
        }
        let wanted = config.copies.max(1);
        let single = most_subgroups == 1 && most_lanes == 1;
        let fits =
            (config.max_workgroup_invocations / config.subgroup_size).min(config.max_workgroup_subgroups);
        let (units, copies, subgroups) = match level {
            Level::Workgroups => (classes.len() as u32, wanted, most_subgroups),
            Level::Subgroups => {
                let copies = wanted.min(fits / most_subgroups).max(1);
                (most_subgroups, copies, copies * most_subgroups)
            }
            Level::Invocations => (threads, wanted.min(config.subgroup_size / threads).max(1), 1),
        };
        let size = if single && !config.whole_subgroups { 1 } else { config.subgroup_size * subgroups };
        if size > config.max_workgroup_invocations || (!single && subgroups > config.max_workgroup_subgroups)
        {
            return Err(CompileError::WorkgroupTooLarge {
                needed: size,
                available: config.max_workgroup_invocations.min(config.subgroup_size * fits),
            });
        }
        let layout = WorkgroupLayout {
            roles,
            classes,
            lanes: 1,
            workgroup_size: size,
            shape: [size, 1, 1],
            divided: false,
            subgroups,
            subgroup_size: (!single).then_some(config.subgroup_size),
        };
        Ok(Spread { level, layout, units, copies })
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
