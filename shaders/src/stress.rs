//! Memory stress: accesses to scratch memory by extra workgroups without threads, and by the others before
//! each round.
//!
//! The contract for kernels with a [`Binding::Scratch`](crate::Binding::Scratch), in addition to
//! [`crate::contract`]:
//!
//! Each kernel is dispatched with `W = C × G + X` workgroups, `X` = [`StressParameters::workgroups`]. The
//! workgroup with id `w` has the number `v = (w × workgroup_multiplier + workgroup_offset) mod W`, which
//! replaces `w` in the formulas of the contract. Workgroups with `v ≥ C × G` run no thread, take no part in
//! rendezvous and have no receipt.
//!
//! In every round, between the rendezvous and the threads, each invocation executes
//! [`StressParameters::before`] iterations, or [`StressParameters::iterations`] if it runs no thread. An iteration is
//! two accesses by [`AccessPattern`] to word `(((v / chunk) mod lines) × step + base) mod words` of scratch memory.
//! All of them are relaxed volatile atomics at device or queue-family scope: no two race, none orders
//! anything, and none may be omitted. This stress follows the rendezvous, because a rendezvous ends with
//! loads, which return after the stores before them have left the invocation.
//!
//! Scratch memory is a separate buffer, so stress never touches the locations of a test. In the loops of an
//! invocation, each round counts these iterations and one more.

use rspirv::spirv::{self, BuiltIn, Decoration, MemorySemantics, Op, StorageClass, Word};

use crate::contract::push_constants;
use crate::kernel::KernelConfig;
use crate::loops::LoopBuilder;
use crate::module::{AtomicOrder, ModuleBuilder, Preamble};
use crate::variant::MemoryModel;

push_constants! {
    /// The parameters of memory stress in a dispatch: push constants after those of [`crate::Parameters`].
    #[derive(Default)]
    StressParameters, StressParameter;
    /// `X`: workgroups that run no thread.
    workgroups Workgroups,
    /// Coprime to the number of workgroups of each kernel; the product with that number fits in 32 bits.
    workgroup_multiplier WorkgroupMultiplier,
    /// Added to that product; the sum fits in 32 bits.
    workgroup_offset WorkgroupOffset,
    /// Iterations before each round of an invocation that runs no thread.
    iterations Iterations,
    /// Iterations before each round of all other invocations.
    before Before,
    /// An [`AccessPattern`] as a word.
    pattern Pattern,
    /// The number of target words; at least 1.
    lines Lines,
    /// The number of consecutive workgroups with the same target; at least 1.
    chunk Chunk,
    /// The distance between two targets, in words.
    step Step,
    /// Word of the first target.
    base Base,
    /// The words of scratch memory in use; at least 1, and the product with `lines` fits in 32 bits.
    words Words,
}

/// The location of these parameters in a kernel.
#[derive(Clone, Copy)]
pub(crate) struct ParameterBlock {
    /// Its push constants.
    pub variable: Word,
    /// The index of the first one.
    pub first: u32,
}

impl ParameterBlock {
    pub fn load(self, module: &mut ModuleBuilder, parameter: StressParameter) -> Word {
        module.push_constant(self.variable, self.first + parameter as u32)
    }
}

/// The two accesses of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    StoreStore,
    /// A store, then a load.
    StoreLoad,
    /// A load, then a store.
    LoadStore,
    LoadLoad,
}

impl AccessPattern {
    /// Bit 0: the first access is a load; bit 1: the second is.
    pub fn to_word(self) -> u32 {
        match self {
            AccessPattern::StoreStore => 0,
            AccessPattern::LoadStore => 1,
            AccessPattern::StoreLoad => 2,
            AccessPattern::LoadLoad => 3,
        }
    }
}

/// A kernel of memory stress without a test, dispatched concurrently with tests.
#[derive(Clone, Debug)]
pub struct StressKernel {
    pub words: Vec<u32>,
    /// Workgroup size in x.
    pub workgroup_size: u32,
}

/// Returns the kernel whose invocations each execute [`StressParameters::iterations`] iterations; workgroup `w`
/// accesses target number `w`. Binding 0 is scratch memory, and its only push constants are
/// [`StressParameters`].
pub fn stress_kernel(config: &KernelConfig, workgroup_size: u32) -> StressKernel {
    let mut module = ModuleBuilder::new(Preamble::vulkan(config.device_scope));
    let scratch = declare_scratch(&mut module, 0, MemoryModel::Vulkan);
    let block = module.push_constants(StressParameters::WORDS, 0);
    let workgroup_id = module.built_in_vector(BuiltIn::WorkgroupId);
    let entry = module.id();
    module.begin_block(entry);
    let workgroup = module.load_x(workgroup_id);
    let block = ParameterBlock { variable: block, first: 0 };
    let iterations = block.load(&mut module, StressParameter::Iterations);
    let pressure = StressLoop::new(&mut module, scratch, workgroup, iterations, block);
    pressure.emit(&mut module, MemoryModel::Vulkan, config.device_scope);
    module.emit_void(Op::Return, []);
    StressKernel { words: module.finish(workgroup_size).words, workgroup_size }
}

pub(crate) fn declare_scratch(module: &mut ModuleBuilder, binding: u32, model: MemoryModel) -> Word {
    let block = module.type_array_block(module.u32, 4, None);
    let variable = module.bound_variable(StorageClass::StorageBuffer, block, binding, "scratch");
    if model == MemoryModel::Glsl450 {
        // The Vulkan memory model sets these on each access instead.
        module.decorate(variable, Decoration::Coherent, &[]);
        module.decorate(variable, Decoration::Volatile, &[]);
    }
    variable
}

/// The values that the iterations of an invocation need, computed before the first round.
#[derive(Clone, Copy)]
pub(crate) struct StressLoop {
    /// Pointer to the target.
    target: Word,
    iterations: Word,
    is_first_load: Word,
    is_second_load: Word,
}

impl StressLoop {
    /// Emits the values for the workgroup with this number, in the first block.
    pub fn new(
        module: &mut ModuleBuilder,
        scratch: Word,
        workgroup: Word,
        iterations: Word,
        block: ParameterBlock,
    ) -> StressLoop {
        let chunk = block.load(module, StressParameter::Chunk);
        let number = module.emit_word(Op::UDiv, &[workgroup, chunk]);
        let lines = block.load(module, StressParameter::Lines);
        let number = module.emit_word(Op::UMod, &[number, lines]);
        let step = block.load(module, StressParameter::Step);
        let distance = module.emit_word(Op::IMul, &[number, step]);
        let base = block.load(module, StressParameter::Base);
        let index = module.emit_word(Op::IAdd, &[distance, base]);
        let words = block.load(module, StressParameter::Words);
        let index = module.emit_word(Op::UMod, &[index, words]);
        let target = module.word_pointer(scratch, index);
        let zero = module.constant(0);
        let pattern = block.load(module, StressParameter::Pattern);
        let [first_loads, second_loads] = [1, 2].map(|bit| {
            let bit = module.constant(bit);
            let masked = module.emit_word(Op::BitwiseAnd, &[pattern, bit]);
            module.emit_bool(Op::INotEqual, &[masked, zero])
        });
        StressLoop { target, iterations, is_first_load: first_loads, is_second_load: second_loads }
    }

    /// Emits the iterations. Everything that determines their number is uniform in a workgroup.
    pub fn emit(&self, module: &mut ModuleBuilder, model: MemoryModel, device_scope: bool) {
        let glsl = model == MemoryModel::Glsl450;
        let scope = if device_scope || glsl { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let volatile = if glsl { MemorySemantics::RELAXED } else { MemorySemantics::VOLATILE };
        let scope = module.constant(scope as u32);
        let order = AtomicOrder { scope, semantics: module.constant(volatile.bits()) };
        let (zero, one) = (module.constant(0), module.constant(1));
        let before = module.id();
        let mut stress_loop = LoopBuilder::new(module);
        module.continue_at(before);
        let iteration = stress_loop.carry_counter(module, zero, one);
        stress_loop.enter(module, before);
        let more = module.emit_bool(Op::ULessThan, &[iteration, self.iterations]);
        stress_loop.begin_body_if(module, more);
        for is_load in [self.is_first_load, self.is_second_load] {
            let [load, store, merge] = std::array::from_fn(|_| module.id());
            module.selection_merge(merge);
            module.branch_if(is_load, load, store);
            module.begin_block(load);
            module.atomic_load(self.target, order);
            module.branch(merge);
            module.begin_block(store);
            module.atomic_store(self.target, order, iteration);
            module.continue_at(merge);
        }
        stress_loop.end_body(module);
    }
}
