//! Memory stress: workgroups that play no thread and keep scratch memory busy, and the same before each round of the others.
//!
//! The contract for kernels with a [`Binding::Scratch`](crate::Binding::Scratch), beside that of [`crate::kernel`]:
//!
//! Each kernel is dispatched with `W = C × G + X` workgroups, `X` = [`StressParameters::workgroups`]. The workgroup with
//! the device's number `w` has the number `v = (w × workgroup_multiplier + workgroup_offset) mod W` and stands in the
//! formulas of the contract by that; those with `v ≥ C × G` play no thread, wait for nobody and report nothing.
//!
//! In every round, between the meeting and the threads, each invocation makes [`StressParameters::before`] turns, or
//! [`StressParameters::iterations`] where it plays no thread, of two accesses by [`Pattern`] to word
//! `(((v / chunk) mod lines) × step + base) mod words` of scratch memory. All of them are relaxed volatile atomics at device or queue-family
//! scope: no two race, none orders anything, and none may be left out. Pre-stress stands behind the meeting, since a
//! meeting ends with loads, which come back when the stores before them have left the invocation.
//!
//! Scratch memory is a buffer of its own, so nothing here touches what a test looks at. Each round adds one iteration and
//! those turns to the loops of an invocation.

use rspirv::dr::Operand;
use rspirv::spirv::{
    self, AddressingModel, BuiltIn, Capability, Decoration, LoopControl, MemorySemantics, Op, StorageClass,
    Word,
};

use crate::kernel::KernelConfig;
use crate::module::{Module, Preamble};
use crate::variant::MemoryModel;

/// What memory stress needs to know in a dispatch: push constants behind those of [`crate::Parameters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StressParameters {
    /// `X`: workgroups that play no thread.
    pub workgroups: u32,
    /// Co-prime to the number of workgroups of each kernel; its product with that number fits 32 bits.
    pub workgroup_multiplier: u32,
    /// Added to that product, which still fits.
    pub workgroup_offset: u32,
    /// Turns before each round of an invocation that plays no thread.
    pub iterations: u32,
    /// Turns before each round of all others.
    pub before: u32,
    /// A [`Pattern`] as a word.
    pub pattern: u32,
    /// Words that are targets; at least 1.
    pub lines: u32,
    /// Workgroups in a row with the same target; at least 1.
    pub chunk: u32,
    /// Words from one target to the next.
    pub step: u32,
    /// Word of the first target.
    pub base: u32,
    /// Words of scratch memory that are used; at least 1, and the product with `lines` fits 32 bits.
    pub words: u32,
}

/// Positions among all push constants.
pub(crate) mod position {
    /// The first one.
    pub const FIRST: u32 = crate::Parameters::BYTES / 4;
    pub const WORKGROUPS: u32 = FIRST;
    pub const WORKGROUP_MULTIPLIER: u32 = FIRST + 1;
    pub const WORKGROUP_OFFSET: u32 = FIRST + 2;
    pub const ITERATIONS: u32 = FIRST + 3;
    pub const BEFORE: u32 = FIRST + 4;
    pub const PATTERN: u32 = FIRST + 5;
    pub const LINES: u32 = FIRST + 6;
    pub const CHUNK: u32 = FIRST + 7;
    pub const STEP: u32 = FIRST + 8;
    pub const BASE: u32 = FIRST + 9;
    pub const WORDS: u32 = FIRST + 10;
    /// One more than the last one, with a word that keeps what follows aligned to 8 bytes.
    pub const END: u32 = FIRST + 12;
}

impl StressParameters {
    /// Size in bytes, a multiple of 8.
    pub const BYTES: u32 = (position::END - position::FIRST) * 4;

    /// The push constants as kernels read them.
    pub fn to_bytes(self) -> Vec<u8> {
        let words = [
            self.workgroups,
            self.workgroup_multiplier,
            self.workgroup_offset,
            self.iterations,
            self.before,
            self.pattern,
            self.lines,
            self.chunk,
            self.step,
            self.base,
            self.words,
            0,
        ];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The two accesses of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Two stores.
    StoreStore,
    /// A store, then a load.
    StoreLoad,
    /// A load, then a store.
    LoadStore,
    /// Two loads.
    LoadLoad,
}

impl Pattern {
    /// Bit 0: the first access is a load; bit 1: the second is.
    pub fn word(self) -> u32 {
        match self {
            Pattern::StoreStore => 0,
            Pattern::LoadStore => 1,
            Pattern::StoreLoad => 2,
            Pattern::LoadLoad => 3,
        }
    }
}

/// A kernel that is memory stress and nothing else, for dispatches beside those of a test.
#[derive(Clone, Debug)]
pub struct StressKernel {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// Workgroup size in x.
    pub workgroup_size: u32,
}

/// Makes the kernel whose every invocation makes [`StressParameters::iterations`] turns, workgroup `w` at the target of number
/// `w`. Binding 0 is scratch memory, and its push constants are those of [`StressParameters`] alone.
pub fn stress_kernel(config: &KernelConfig, workgroup_size: u32) -> StressKernel {
    let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
    if config.device_scope {
        capabilities.push(Capability::VulkanMemoryModelDeviceScope);
    }
    let mut module = Module::new(Preamble {
        version: (1, 5),
        capabilities,
        extensions: Vec::new(),
        addressing: AddressingModel::Logical,
        model: spirv::MemoryModel::Vulkan,
        loops: LoopControl::NONE,
    });
    let scratch = scratch(&mut module, 0, MemoryModel::Vulkan);
    let block = module.push_constants(position::END - position::FIRST, 0);
    let workgroup_id = module.built_in_vector(BuiltIn::WorkgroupId);
    let entry = module.id();
    module.begin(entry);
    let workgroup = module.load_x(workgroup_id);
    let mut parameter = |module: &mut Module, position: u32| {
        let member = module.constant(position - position::FIRST);
        let ty = module.pointer(StorageClass::PushConstant, module.u32);
        let pointer = module.on_ids(Op::AccessChain, ty, &[block, member]);
        module.word(Op::Load, &[pointer])
    };
    let turns = parameter(&mut module, position::ITERATIONS);
    let pressure = Pressure::new(&mut module, scratch, workgroup, turns, &mut parameter);
    pressure.emit(&mut module, MemoryModel::Vulkan, config.device_scope);
    module.effect(Op::Return, []);
    StressKernel { words: module.finish(workgroup_size), workgroup_size }
}

/// Declares scratch memory.
pub(crate) fn scratch(module: &mut Module, binding: u32, model: MemoryModel) -> Word {
    let block = module.block_of(module.u32, 4, None);
    let variable = module.bound(StorageClass::StorageBuffer, block, binding, "scratch");
    if model == MemoryModel::Glsl450 {
        // What each access says under the Vulkan memory model.
        module.decorate(variable, Decoration::Coherent, &[]);
        module.decorate(variable, Decoration::Volatile, &[]);
    }
    variable
}

/// What the turns of an invocation need, known before the first round.
#[derive(Clone, Copy)]
pub(crate) struct Pressure {
    /// Pointer to the target.
    target: Word,
    turns: Word,
    first_loads: Word,
    second_loads: Word,
}

impl Pressure {
    /// For the workgroup of a number, with so many turns; in the first block.
    pub fn new(
        module: &mut Module,
        scratch: Word,
        workgroup: Word,
        turns: Word,
        parameter: &mut dyn FnMut(&mut Module, u32) -> Word,
    ) -> Pressure {
        let chunk = parameter(module, position::CHUNK);
        let number = module.word(Op::UDiv, &[workgroup, chunk]);
        let lines = parameter(module, position::LINES);
        let number = module.word(Op::UMod, &[number, lines]);
        let step = parameter(module, position::STEP);
        let distance = module.word(Op::IMul, &[number, step]);
        let base = parameter(module, position::BASE);
        let index = module.word(Op::IAdd, &[distance, base]);
        let words = parameter(module, position::WORDS);
        let index = module.word(Op::UMod, &[index, words]);
        let zero = module.constant(0);
        let ty = module.pointer(StorageClass::StorageBuffer, module.u32);
        let target = module.on_ids(Op::AccessChain, ty, &[scratch, zero, index]);
        let pattern = parameter(module, position::PATTERN);
        let [first_loads, second_loads] = [1, 2].map(|bit| {
            let bit = module.constant(bit);
            let masked = module.word(Op::BitwiseAnd, &[pattern, bit]);
            module.truth(Op::INotEqual, &[masked, zero])
        });
        Pressure { target, turns, first_loads, second_loads }
    }

    /// The turns. Everything that decides how many there are is the same for a whole workgroup.
    pub fn emit(&self, module: &mut Module, model: MemoryModel, device_scope: bool) {
        let glsl = model == MemoryModel::Glsl450;
        let scope = if device_scope || glsl { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let volatile = if glsl { MemorySemantics::RELAXED } else { MemorySemantics::VOLATILE };
        let scope = Operand::IdScope(module.constant(scope as u32));
        let semantics = Operand::IdMemorySemantics(module.constant(volatile.bits()));
        let (zero, one) = (module.constant(0), module.constant(1));
        let [before, header, test, body, again, done] = std::array::from_fn(|_| module.id());
        module.branch(before);
        module.begin(before);
        module.branch(header);
        module.begin(header);
        let (turn, next) = (module.id(), module.id());
        let word = module.u32;
        module.value_as(turn, Op::Phi, word, [zero, before, next, again].map(Operand::IdRef));
        module.loop_merge(done, again);
        module.branch(test);
        module.begin(test);
        let more = module.truth(Op::ULessThan, &[turn, self.turns]);
        module.branch_if(more, body, done);
        module.begin(body);
        for loads in [self.first_loads, self.second_loads] {
            let [load, store, merge] = std::array::from_fn(|_| module.id());
            module.selection_merge(merge);
            module.branch_if(loads, load, store);
            module.begin(load);
            let operands = [Operand::IdRef(self.target), scope.clone(), semantics.clone()];
            module.value(Op::AtomicLoad, word, operands.clone());
            module.branch(merge);
            module.begin(store);
            module.effect(Op::AtomicStore, operands.into_iter().chain([Operand::IdRef(turn)]));
            module.branch(merge);
            module.begin(merge);
        }
        module.branch(again);
        module.begin(again);
        module.value_as(next, Op::IAdd, word, [turn, one].map(Operand::IdRef));
        module.branch(header);
        module.begin(done);
    }
}
