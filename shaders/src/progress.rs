//! Kernels for questions of forward progress: loops without a bound of the test's own, which the host can release, and a
//! record of what became of each thread.
//!
//! A kernel here is no litmus kernel: it plays one round, each thread as a loop over its basic blocks, and says of each
//! thread whether and when it began, where it is, how many turns it has made and whether it came to its end.
//!
//! # Where threads run
//! The threads of a test part at some [`Level`]: in different workgroups, in different subgroups of one workgroup, or as
//! invocations of one subgroup. The dispatch holds `M` = [`Parameters::copies`] copies of the test, spread over *units* of
//! that level (workgroups of the dispatch, subgroups of the one workgroup, invocations of the one subgroup). With `C` =
//! [`ProgressKernel::units`] units a copy and `n` = [`Parameters::near`], unit `u` below `n × M` plays part `u mod n` of
//! copy `u / n`, and every other one part `u / M` of copy `u mod M`: `n` = C deals the parts out in turn, `n` = 1 gives
//! each part one contiguous range. Units beyond `C × M` and invocations without a thread end at once; they fill up
//! subgroups, since a driver has been seen to run missing lanes along in loops (lavapipe 22.3).
//!
//! # Buffers
//! Binding `b` below [`ProgressKernel::locations`] shows the location buffer: storage `s` of copy `m` is word
//! `(m × storages + s) × `[`SPACING`]. The next binding is the record buffer, filled with [`UNWRITTEN`]: field `f`
//! ([`Field`]) of thread `t` of copy `m` is word `(m × threads + t) × `[`FIELDS`]` + f`. The last one is the control buffer:
//! word [`STOP`] ends all loops as soon as it is not 0, word [`CLOCK`] counts beginnings and ends. Both are 0 at first.

use litmus::{InstructionKind, LocationInit, Place, RegisterId, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{
    self, AddressingModel, BuiltIn, Capability, Decoration, LoopControl, MemorySemantics, Op, Word,
};

use crate::dispatch::{Storages, storages};
use crate::kernel::CompileError;
use crate::memory::{Element, Kind, Path, Target, Uses};
use crate::module::{Module, Preamble};
use crate::placement::{Layout, Role};
use crate::rules::{self, Rule, label_position};
use crate::segments::{self, Segment};
use crate::semantics::semantics_word;
use crate::thread::{Registers, Surroundings, ThreadCode, scope_operand};
use crate::variant::Variant;

/// Words from one storage to the next: a cache line.
pub const SPACING: u32 = 16;
/// What the record buffer holds before the dispatch.
pub const UNWRITTEN: u32 = u32::MAX;
/// Word of the control buffer: where all loops are to end, one more than the clock when that was asked for.
pub const STOP: u64 = 0;
/// Word of the control buffer: the number of beginnings and ends so far.
pub const CLOCK: u64 = 16;
/// Words of the control buffer.
pub const CONTROL_WORDS: u64 = 32;
/// Fields of a record.
pub const FIELDS: u32 = 5;

/// What a record says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The clock when it began: it was about to take its first step, and not stopped before.
    Began = 0,
    /// The clock when it was over.
    Over = 1,
    /// [`ENDED`] or [`STUCK`], once it is over.
    State = 2,
    /// Turns that it has made, one for each basic block.
    Turns = 3,
    /// Index of its last access or control barrier, written before that.
    Place = 4,
}

/// A thread came to its end.
pub const ENDED: u32 = 1;
/// A thread was stopped, or has made all turns that it may make.
pub const STUCK: u32 = 2;

/// The level at which the threads of a test part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Workgroups of a dispatch; some may hold several threads.
    Workgroups,
    /// Subgroups of one workgroup.
    Subgroups,
    /// Invocations of one subgroup.
    Invocations,
}

/// What a kernel is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressConfig {
    /// Subgroup size of the device.
    pub subgroup_size: u32,
    /// Invocations of a workgroup at most.
    pub max_workgroup_invocations: u32,
    /// Subgroups of a workgroup at most.
    pub max_workgroup_subgroups: u32,
    /// The device has `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
    /// Copies of the test at most.
    pub copies: u32,
    /// Workgroups whose threads have one each are filled up to a whole subgroup.
    pub whole_subgroups: bool,
    /// Turns of a thread at most, for drivers that end loops without a word; a thread that has made them stops all others.
    pub bound: Option<u32>,
    /// Looks at the stop word in each turn: more make turns longer.
    pub looks: u32,
    /// A memory barrier stands between a thread's last access and its word that it is over.
    pub settles: bool,
}

/// The push constants, in this order, each a 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Copies of the test, from 1 to [`ProgressKernel::copies`].
    pub copies: u32,
    /// Parts that are dealt out in turn, from 1 to [`ProgressKernel::units`].
    pub near: u32,
}

impl Parameters {
    /// Their size.
    pub const BYTES: u32 = 8;

    /// The push constants as bytes.
    pub fn bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.copies.to_le_bytes());
        bytes[4..].copy_from_slice(&self.near.to_le_bytes());
        bytes
    }
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct ProgressKernel {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// The subgroup size that it was made for, where it depends on one.
    pub subgroup_size: Option<u32>,
    /// Vulkan names of the features that it needs.
    pub features: Vec<&'static str>,
    /// Threads of the test.
    pub threads: u32,
    /// Where they part.
    pub level: Level,
    /// Units of that level that a copy takes.
    pub units: u32,
    /// Copies that fit into a dispatch.
    pub copies: u32,
    /// Bindings that show the location buffer.
    pub locations: u32,
    /// Storages of a copy.
    pub storages: u32,
    /// What each storage holds at first.
    pub initial: Vec<u32>,
    /// By thread: the part of a copy that it belongs to, from 0 to [`ProgressKernel::units`].
    pub parts: Vec<u32>,
    /// By thread: turns that it makes at least. One that makes more has waited.
    pub blocks: Vec<u32>,
}

/// Compiles a test whose loops may go on for ever.
///
/// # Errors
/// [`CompileError::NotPlaceable`] names the [rule](crate::rules::Rule) for which the test cannot meet a device;
/// [`CompileError::WorkgroupTooLarge`] says that the device is too small.
pub fn compile(test: &Test, config: &ProgressConfig) -> Result<ProgressKernel, CompileError> {
    rules::check_but_loops(test)?;
    let variant = Variant::default();
    let uses = Uses::of(test, variant)?;
    let words_of_buffers = |(path, kind): &(Path, Kind)| {
        *kind == Kind::Buffer && path.element == Element::U32 && path.offset == 0
    };
    if uses.storage_words != 1 || !uses.paths.iter().all(words_of_buffers) {
        return Err(Rule::ProgressMemory.into());
    }
    let spread = Spread::of(test, config)?;
    let segments = segments::cut(test, &spread.layout)?;
    let storages = storages(test);
    let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
    let mut features = vec!["vulkanMemoryModel"];
    if config.device_scope || uses.scopes.contains(&litmus::Scope::Device) {
        capabilities.push(Capability::VulkanMemoryModelDeviceScope);
        features.push("vulkanMemoryModelDeviceScope");
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
        words: emitter.module.finish(size),
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
        initial: storages.initial(test).iter().map(|value| value.0 as u32).collect(),
        blocks: test
            .threads
            .iter()
            .map(|thread| leaders(thread, 0..thread.instructions.len()).len() as u32)
            .collect(),
    })
}

/// Where threads and copies go.
struct Spread {
    level: Level,
    layout: Layout,
    units: u32,
    copies: u32,
}

impl Spread {
    /// The part of a copy that a thread belongs to.
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
            let Place::Device(place) = thread.place else { return Err(Rule::HostThread.into()) };
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
        let layout = Layout {
            roles,
            classes,
            lanes: 1,
            workgroup_size: size,
            subgroups,
            subgroup_size: (!single).then_some(config.subgroup_size),
        };
        Ok(Spread { level, layout, units, copies })
    }
}

/// Where basic blocks of `range` begin.
fn leaders(thread: &litmus::Thread, range: std::ops::Range<usize>) -> Vec<usize> {
    let mut leaders = vec![range.start];
    for position in range.clone() {
        match thread.instructions.get(position).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Label(_)) => leaders.push(position),
            Some(InstructionKind::Goto(_) | InstructionKind::Branch { .. }) => leaders.push(position + 1),
            _ => {}
        }
    }
    leaders.sort_unstable();
    leaders.dedup();
    leaders.retain(|leader| *leader < range.end);
    leaders
}

/// The variables of a thread.
struct Own {
    registers: Vec<Word>,
    /// Number of the next block of the segment; that of the end where there is none.
    block: Word,
    turns: Word,
    /// 1 where it was stopped.
    stuck: Word,
}

/// What the first block computes.
struct Here {
    role: Word,
    /// First word of the record of thread 0 of the copy.
    record: Word,
    records: Word,
    control: Word,
    targets: Vec<(Path, Target)>,
}

struct Emitter<'a> {
    test: &'a Test,
    config: &'a ProgressConfig,
    variant: Variant,
    spread: &'a Spread,
    storages: &'a Storages,
    module: Module,
}

impl Emitter<'_> {
    /// The entry point; gives the number of bindings that show the location buffer.
    fn main(&mut self, paths: &[(Path, Kind)], segments: Vec<Segment>) -> Result<u32, CompileError> {
        let word = self.module.u32;
        let block = self.module.block_of(word, 4, None);
        let mut buffers: Vec<(litmus::LocationId, Word)> = Vec::new();
        for (path, _) in paths {
            if buffers.iter().any(|(location, _)| *location == path.location) {
                continue;
            }
            let (number, name) = (buffers.len() as u32, self.test.location(path.location).name.clone());
            let buffer = self.module.bound(spirv::StorageClass::StorageBuffer, block, number, &name);
            buffers.push((path.location, buffer));
        }
        if self.test.locations.iter().any(|location| matches!(location.init, LocationInit::AliasOf(_))) {
            for (_, buffer) in &buffers {
                self.module.decorate(*buffer, Decoration::Aliased, &[]);
            }
        }
        let locations = buffers.len() as u32;
        let records = self.module.bound(spirv::StorageClass::StorageBuffer, block, locations, "records");
        let control = self.module.bound(spirv::StorageClass::StorageBuffer, block, locations + 1, "control");
        let parameters = self.module.push_constants(2, false);
        let workgroup_input = self.module.built_in_vector(BuiltIn::WorkgroupId);
        let local_input = self.module.built_in_word(BuiltIn::LocalInvocationIndex);
        let subgroup_inputs = self.spread.layout.subgroup_size.map(|_| {
            let subgroup = self.module.built_in_word(BuiltIn::SubgroupId);
            (subgroup, self.module.built_in_word(BuiltIn::SubgroupLocalInvocationId))
        });

        let entry = self.module.id();
        self.module.begin(entry);
        let owns: Vec<Own> = (0..self.test.threads.len()).map(|thread| self.variables(thread)).collect();
        let zero = self.module.constant(0);
        for own in &owns {
            for variable in [own.turns, own.stuck] {
                self.module.effect(Op::Store, [variable, zero].map(Operand::IdRef));
            }
        }
        let copies = self.parameter(parameters, 0);
        let near = self.parameter(parameters, 1);
        let workgroup = self.module.load_x(workgroup_input);
        let local = self.module.word(Op::Load, &[local_input]);
        let (subgroup, lane) = match subgroup_inputs {
            None => (zero, local),
            Some((subgroup, lane)) => {
                (self.module.word(Op::Load, &[subgroup]), self.module.word(Op::Load, &[lane]))
            }
        };
        let unit = match self.spread.level {
            Level::Workgroups => workgroup,
            Level::Subgroups => subgroup,
            Level::Invocations => lane,
        };
        let dealt = self.module.word(Op::IMul, &[near, copies]);
        let in_turn = self.module.truth(Op::ULessThan, &[unit, dealt]);
        let mut pick = |op, in_turn_by: Word, else_by: Word| {
            let yes = self.module.word(op, &[unit, in_turn_by]);
            let no = self.module.word(op, &[unit, else_by]);
            (yes, no)
        };
        let (part_in_turn, copy_by_range) = pick(Op::UMod, near, copies);
        let (copy_in_turn, part_by_range) = pick(Op::UDiv, near, copies);
        let part = self.module.word(Op::Select, &[in_turn, part_in_turn, part_by_range]);
        let copy = self.module.word(Op::Select, &[in_turn, copy_in_turn, copy_by_range]);
        let role = self.role(part, subgroup, lane);

        let words = self.module.constant(FIELDS * self.test.threads.len() as u32);
        let record = self.module.word(Op::IMul, &[copy, words]);
        let first = self.module.constant(self.storages.count() * SPACING);
        let first = self.module.word(Op::IMul, &[copy, first]);
        let mut targets = Vec::with_capacity(paths.len());
        for (path, _) in paths {
            let Some((_, buffer)) = buffers.iter().find(|(location, _)| *location == path.location) else {
                continue;
            };
            let offset = self.module.constant(self.storages.number_of(path.location) * SPACING);
            let index = self.module.word(Op::IAdd, &[first, offset]);
            let pointer = self.element(*buffer, index);
            targets.push((*path, Target::Memory { pointer, alignment: None }));
        }
        let here = Here { role, record, records, control, targets };

        for (number, segment) in segments.iter().enumerate() {
            for part in &segment.parts {
                let Some(own) = owns.get(part.thread) else { continue };
                self.part(part, own, &here, number == 0, segment.barrier.is_some())?;
            }
            if let Some(barrier) = segment.barrier {
                let execution = self.scope(barrier.execution)?;
                let memory = self.scope(barrier.memory)?;
                let semantics = self.module.constant(semantics_word(barrier.semantics));
                self.module.effect(
                    Op::ControlBarrier,
                    [
                        Operand::IdScope(execution),
                        Operand::IdScope(memory),
                        Operand::IdMemorySemantics(semantics),
                    ],
                );
            }
        }
        self.module.effect(Op::Return, []);
        Ok(locations)
    }

    fn variables(&mut self, thread: usize) -> Own {
        let of = self.test.thread(ThreadId(thread as u16));
        let word = self.module.u32;
        let mut local = |what: &str| self.module.local(word, &format!("P{}:{what}", of.number));
        Own {
            registers: of.registers.iter().map(|register| local(&register.name)).collect(),
            block: local("block"),
            turns: local("turns"),
            stuck: local("stuck"),
        }
    }

    fn parameter(&mut self, block: Word, member: u32) -> Word {
        let member = self.module.constant(member);
        let ty = self.module.pointer(spirv::StorageClass::PushConstant, self.module.u32);
        let pointer = self.module.on_ids(Op::AccessChain, ty, &[block, member]);
        self.module.word(Op::Load, &[pointer])
    }

    /// The thread that an invocation plays; their number where it plays none.
    fn role(&mut self, part: Word, subgroup: Word, lane: Word) -> Word {
        let mut role = self.module.constant(self.test.threads.len() as u32);
        let roles = self.spread.layout.roles.clone();
        for (thread, own) in roles.iter().enumerate() {
            let mut wanted = match self.spread.level {
                Level::Workgroups => vec![(part, own.class), (subgroup, own.subgroup), (lane, own.share)],
                Level::Subgroups => vec![(part, own.subgroup), (lane, own.share)],
                Level::Invocations => vec![(part, own.share)],
            };
            if self.spread.layout.subgroup_size.is_none() {
                wanted.retain(|(value, _)| *value != subgroup);
            }
            let mut all = None;
            for (value, number) in wanted {
                let number = self.module.constant(number);
                let same = self.module.truth(Op::IEqual, &[value, number]);
                all = Some(match all {
                    None => same,
                    Some(others) => self.module.truth(Op::LogicalAnd, &[others, same]),
                });
            }
            let Some(all) = all else { continue };
            let number = self.module.constant(thread as u32);
            role = self.module.word(Op::Select, &[all, number, role]);
        }
        role
    }

    fn element(&mut self, buffer: Word, index: Word) -> Word {
        let member = self.module.constant(0);
        let ty = self.module.pointer(spirv::StorageClass::StorageBuffer, self.module.u32);
        self.module.on_ids(Op::AccessChain, ty, &[buffer, member, index])
    }

    fn scope(&mut self, scope: litmus::Scope) -> Result<Word, Rule> {
        let word = scope_operand(scope, self.variant)?;
        Ok(self.module.constant(word))
    }

    /// The widest scope that atomics may have here: for what the host sees and writes.
    fn widest(&mut self) -> Word {
        let scope = if self.config.device_scope { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        self.module.constant(scope as u32)
    }

    /// Where a field of a thread's record lies.
    fn field(&mut self, here: &Here, thread: usize, field: Field) -> Word {
        let offset = self.module.constant(thread as u32 * FIELDS + field as u32);
        let index = self.module.word(Op::IAdd, &[here.record, offset]);
        self.element(here.records, index)
    }

    /// Writes a field so that the host may see it while the kernel runs.
    fn note(&mut self, here: &Here, thread: usize, field: Field, value: Word) {
        let pointer = self.field(here, thread, field);
        self.store_relaxed(pointer, value);
    }

    fn store_relaxed(&mut self, pointer: Word, value: Word) {
        let (scope, relaxed) = (self.widest(), self.module.constant(0));
        self.module.effect(
            Op::AtomicStore,
            [
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(relaxed),
                Operand::IdRef(value),
            ],
        );
    }

    /// Reads the stop word, several times where turns are to take long.
    fn stop(&mut self, here: &Here, looks: u32) -> Word {
        let index = self.module.constant(STOP as u32);
        let pointer = self.element(here.control, index);
        let (scope, relaxed) = (self.widest(), self.module.constant(0));
        let word = self.module.u32;
        let mut seen: Option<Word> = None;
        for _ in 0..looks.max(1) {
            let look = self.module.value(
                Op::AtomicLoad,
                word,
                [Operand::IdRef(pointer), Operand::IdScope(scope), Operand::IdMemorySemantics(relaxed)],
            );
            seen = Some(match seen {
                None => look,
                Some(before) => self.module.word(Op::BitwiseOr, &[before, look]),
            });
        }
        seen.unwrap_or(here.role)
    }

    /// The clock, which goes on by one.
    fn tick(&mut self, here: &Here) -> Word {
        let index = self.module.constant(CLOCK as u32);
        let pointer = self.element(here.control, index);
        let (scope, relaxed, one) = (self.widest(), self.module.constant(0), self.module.constant(1));
        let word = self.module.u32;
        self.module.value(
            Op::AtomicIAdd,
            word,
            [
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(relaxed),
                Operand::IdRef(one),
            ],
        )
    }

    fn load(&mut self, variable: Word) -> Word {
        self.module.word(Op::Load, &[variable])
    }

    fn set(&mut self, variable: Word, value: Word) {
        self.module.effect(Op::Store, [variable, value].map(Operand::IdRef));
    }

    /// Code under a condition.
    fn when(
        &mut self,
        condition: Word,
        code: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let (body, merge) = (self.module.id(), self.module.id());
        self.module.selection_merge(merge);
        self.module.branch_if(condition, body, merge);
        self.module.begin(body);
        code(self)?;
        self.module.branch(merge);
        self.module.begin(merge);
        Ok(())
    }

    /// Code of one role alone. A switch, so that whoever executes the kernel can tell who plays what.
    fn as_role(
        &mut self,
        thread: usize,
        here: &Here,
        code: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let (body, merge) = (self.module.id(), self.module.id());
        self.module.selection_merge(merge);
        self.module.effect(
            Op::Switch,
            [
                Operand::IdRef(here.role),
                Operand::IdRef(merge),
                Operand::LiteralBit32(thread as u32),
                Operand::IdRef(body),
            ],
        );
        self.module.begin(body);
        code(self)?;
        self.module.branch(merge);
        self.module.begin(merge);
        Ok(())
    }

    /// What one thread does in a segment: its first block, then a loop over its blocks, then what follows. Every lane
    /// enters the loop, and those of other threads leave it at once.
    fn part(
        &mut self,
        part: &segments::Part,
        own: &Own,
        here: &Here,
        first: bool,
        meets: bool,
    ) -> Result<(), CompileError> {
        let thread = self.test.thread(ThreadId(part.thread as u16));
        let starts = leaders(thread, part.body.clone());
        let starts = if part.body.is_empty() { Vec::new() } else { starts };
        let end = self.module.constant(starts.len() as u32);
        let [zero, one, stuck_word, ended_word] =
            [0, 1, STUCK, ENDED].map(|value| self.module.constant(value));
        self.set(own.block, end);
        let acquire = part.acquire;
        self.as_role(part.thread, here, |this| {
            if first && part.first {
                for (register, variable) in own.registers.iter().enumerate() {
                    let initial =
                        this.test.initial_register(ThreadId(part.thread as u16), RegisterId(register as u16));
                    let initial = this.module.constant(initial.0 as u32);
                    this.set(*variable, initial);
                }
                let stop = this.stop(here, 1);
                let stopped = this.module.truth(Op::INotEqual, &[stop, zero]);
                let stuck = this.module.word(Op::Select, &[stopped, one, zero]);
                this.set(own.stuck, stuck);
                let goes_on = this.module.truth(Op::IEqual, &[stop, zero]);
                this.when(goes_on, |this| {
                    let clock = this.tick(here);
                    this.note(here, part.thread, Field::Began, clock);
                    Ok(())
                })?;
            }
            if let Some((scope, semantics)) = acquire {
                this.thread_code(part.thread, here, &mut Registers::Values(Vec::new()))
                    .fence(scope, semantics)?;
            }
            let stuck = this.load(own.stuck);
            let goes_on = this.module.truth(Op::IEqual, &[stuck, zero]);
            let start = this.module.word(Op::Select, &[goes_on, zero, end]);
            this.set(own.block, start);
            Ok(())
        })?;
        if !starts.is_empty() {
            self.turns(part, own, here, &starts)?;
        }
        self.as_role(part.thread, here, |this| {
            // A driver may have ended the loop without a word.
            let block = this.load(own.block);
            let left_early = this.module.truth(Op::INotEqual, &[block, end]);
            let stuck = this.load(own.stuck);
            let stuck = this.module.word(Op::Select, &[left_early, one, stuck]);
            this.set(own.stuck, stuck);
            if let Some((scope, semantics)) = part.release {
                this.thread_code(part.thread, here, &mut Registers::Values(Vec::new()))
                    .fence(scope, semantics)?;
            }
            let waits = thread.instructions.get(part.body.end).map(|instruction| &instruction.kind);
            if meets && matches!(waits, Some(InstructionKind::ControlBarrier(_))) {
                let goes_on = this.module.truth(Op::IEqual, &[stuck, zero]);
                this.when(goes_on, |this| {
                    let place = this.module.constant(part.body.end as u32);
                    this.note(here, part.thread, Field::Place, place);
                    Ok(())
                })?;
            }
            if part.last {
                let turns = this.load(own.turns);
                this.note(here, part.thread, Field::Turns, turns);
                // Its accesses have been performed before it says that it is over.
                if this.config.settles {
                    let scope = this.widest();
                    let order = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::UNIFORM_MEMORY;
                    let semantics = this.module.constant(order.bits());
                    let operands = [Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)];
                    this.module.effect(Op::MemoryBarrier, operands);
                }
                let is_stuck = this.module.truth(Op::INotEqual, &[stuck, zero]);
                let state = this.module.word(Op::Select, &[is_stuck, stuck_word, ended_word]);
                let clock = this.tick(here);
                this.note(here, part.thread, Field::Over, clock);
                this.note(here, part.thread, Field::State, state);
            }
            Ok(())
        })
    }

    fn thread_code<'t>(
        &'t mut self,
        thread: usize,
        here: &'t Here,
        registers: &'t mut Registers,
    ) -> ThreadCode<'t> {
        let around =
            Surroundings { test: self.test, variant: self.variant, targets: &here.targets, loop_bound: 0 };
        ThreadCode { module: &mut self.module, around, thread: ThreadId(thread as u16), registers }
    }

    /// The loop over a thread's blocks.
    fn turns(
        &mut self,
        part: &segments::Part,
        own: &Own,
        here: &Here,
        starts: &[usize],
    ) -> Result<(), CompileError> {
        let [header, test, body, continuing, merge] = std::array::from_fn(|_| self.module.id());
        let end = self.module.constant(starts.len() as u32);
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        self.module.branch(header);
        self.module.begin(header);
        self.module.loop_merge(merge, continuing);
        self.module.branch(test);
        self.module.begin(test);
        let block = self.load(own.block);
        let goes_on = self.module.truth(Op::INotEqual, &[block, end]);
        self.module.branch_if(goes_on, body, merge);
        self.module.begin(body);
        let made = self.load(own.turns);
        let made = self.module.word(Op::IAdd, &[made, one]);
        self.set(own.turns, made);
        self.note(here, part.thread, Field::Turns, made);
        let mut stop = self.stop(here, self.config.looks);
        if let Some(bound) = self.config.bound {
            let bound = self.module.constant(bound);
            let over = self.module.truth(Op::UGreaterThanEqual, &[made, bound]);
            let asked = stop;
            stop = self.module.word(Op::Select, &[over, one, stop]);
            let unasked = self.module.truth(Op::IEqual, &[asked, zero]);
            let gives_up = self.module.truth(Op::LogicalAnd, &[over, unasked]);
            self.when(gives_up, |this| {
                // Whoever begins or ends from now on has a later clock.
                let clock = this.tick(here);
                let index = this.module.constant(STOP as u32);
                let pointer = this.element(here.control, index);
                let clock = this.module.word(Op::IAdd, &[clock, one]);
                this.store_relaxed(pointer, clock);
                Ok(())
            })?;
        }
        let stopped = self.module.truth(Op::INotEqual, &[stop, zero]);
        let [leave, go_on, after] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(after);
        self.module.branch_if(stopped, leave, go_on);
        self.module.begin(leave);
        self.set(own.stuck, one);
        self.set(own.block, end);
        self.module.branch(after);
        self.module.begin(go_on);
        self.blocks(part, own, here, starts)?;
        self.module.branch(after);
        self.module.begin(after);
        self.module.branch(continuing);
        self.module.begin(continuing);
        self.module.branch(header);
        self.module.begin(merge);
        Ok(())
    }

    /// The block that is next.
    fn blocks(
        &mut self,
        part: &segments::Part,
        own: &Own,
        here: &Here,
        starts: &[usize],
    ) -> Result<(), CompileError> {
        let merge = self.module.id();
        let labels: Vec<Word> = starts.iter().map(|_| self.module.id()).collect();
        let block = self.load(own.block);
        self.module.selection_merge(merge);
        let mut operands = vec![Operand::IdRef(block), Operand::IdRef(merge)];
        for (number, label) in labels.iter().enumerate() {
            operands.extend([Operand::LiteralBit32(number as u32), Operand::IdRef(*label)]);
        }
        self.module.effect(Op::Switch, operands);
        for (number, label) in labels.iter().enumerate() {
            self.module.begin(*label);
            let to = starts.get(number + 1).copied().unwrap_or(part.body.end);
            let from = starts.get(number).copied().unwrap_or(to);
            self.block(part, own, here, starts, from..to)?;
            self.module.branch(merge);
        }
        self.module.begin(merge);
        Ok(())
    }

    /// One block. Within it registers are values, so that loads need not wait for one another.
    fn block(
        &mut self,
        part: &segments::Part,
        own: &Own,
        here: &Here,
        starts: &[usize],
        range: std::ops::Range<usize>,
    ) -> Result<(), CompileError> {
        let thread = self.test.thread(ThreadId(part.thread as u16));
        let before: Vec<Option<Word>> =
            own.registers.iter().map(|variable| Some(self.load(*variable))).collect();
        let mut registers = Registers::Values(before.clone());
        let number_of = |position: usize| {
            starts.iter().position(|start| *start == position).unwrap_or(starts.len()) as u32
        };
        let mut next = self.module.constant(number_of(range.end));
        for position in range {
            let Some(instruction) = thread.instructions.get(position) else { continue };
            match &instruction.kind {
                InstructionKind::Label(_) => {}
                InstructionKind::Goto(target) => {
                    next = self
                        .module
                        .constant(number_of(label_position(thread, *target).unwrap_or(usize::MAX)));
                }
                InstructionKind::Branch { target, .. } => {
                    let taken = self
                        .module
                        .constant(number_of(label_position(thread, *target).unwrap_or(usize::MAX)));
                    let condition =
                        self.thread_code(part.thread, here, &mut registers).condition_at(position);
                    if let Some(condition) = condition {
                        next = self.module.word(Op::Select, &[condition, taken, next]);
                    }
                }
                kind => {
                    if matches!(
                        kind,
                        InstructionKind::Load { .. }
                            | InstructionKind::Store { .. }
                            | InstructionKind::Rmw { .. }
                    ) {
                        let place = self.module.constant(position as u32);
                        self.note(here, part.thread, Field::Place, place);
                    }
                    self.thread_code(part.thread, here, &mut registers).instruction(instruction)?;
                }
            }
        }
        if let Registers::Values(after) = &registers {
            for ((variable, before), after) in own.registers.iter().zip(&before).zip(after) {
                if let Some(value) = after.filter(|_| before != after) {
                    self.module.effect(Op::Store, [*variable, value].map(Operand::IdRef));
                }
            }
        }
        self.set(own.block, next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ProgressConfig {
        ProgressConfig {
            subgroup_size: 8,
            max_workgroup_invocations: 256,
            max_workgroup_subgroups: 32,
            device_scope: true,
            copies: 64,
            whole_subgroups: true,
            bound: Some(60_000),
            looks: 2,
            settles: true,
        }
    }

    fn kernel(id: &str) -> Result<ProgressKernel, CompileError> {
        let entry = litmus::corpus::progress().into_iter().find(|entry| entry.id == id).unwrap();
        compile(&litmus::parse(entry.text, &entry.id).unwrap(), &config())
    }

    #[test]
    fn threads_part_at_their_highest_common_level() {
        let at = |id: &str| {
            let kernel = kernel(id).unwrap();
            (kernel.level, kernel.units, kernel.copies, kernel.workgroup_size)
        };
        assert_eq!(at("progress/handoff-down"), (Level::Workgroups, 2, 64, 8));
        assert_eq!(at("progress/handoff-down.subgroups"), (Level::Subgroups, 2, 16, 256));
        assert_eq!(at("progress/handoff-down.lanes"), (Level::Invocations, 2, 4, 8));
        assert_eq!(at("progress/two-level-handoff"), (Level::Workgroups, 2, 64, 16));
    }

    #[test]
    fn a_barrier_that_only_some_may_reach_is_refused_by_name() {
        let error = kernel("progress/barrier-in-loop").unwrap_err();
        assert_eq!(error.to_string(), CompileError::from(Rule::GuardedBarrier).to_string());
    }

    #[test]
    fn modules_keep_the_rules_that_validators_miss() {
        for entry in litmus::corpus::progress() {
            let test = litmus::parse(entry.text, &entry.id).unwrap();
            let Ok(kernel) = compile(&test, &config()) else { continue };
            assert_eq!(crate::check::check(&kernel.words).unwrap(), [], "{}", entry.id);
            for instruction in crate::load(&kernel.words).unwrap().all_inst_iter() {
                assert!(crate::OPCODES.contains(&instruction.class.opcode), "{:?}", instruction.class.opcode);
            }
        }
    }
}
