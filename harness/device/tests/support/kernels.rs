//! Small kernels.

use plan::{Kernel, Subgroups};
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    LoopControl, MemoryModel, StorageClass, Word,
};

/// Scope `QueueFamily`.
const QUEUE_FAMILY: u32 = 5;

/// A module under construction, inside its entry point: one-dimensional invocations, buffers of words, and
/// push constants.
struct Module {
    builder: Builder,
    u32_type: Word,
    word_pointer: Word,
    push_pointer: Word,
    buffers: Vec<Word>,
    push_constants: Word,
    words_pushed: u32,
    /// The index of the invocation in x.
    invocation: Word,
}

impl Module {
    fn new(workgroup_size: u32, bindings: u32, words_pushed: u32) -> Module {
        let mut b = Builder::new();
        b.set_version(1, 5);
        b.capability(Capability::Shader);
        b.capability(Capability::VulkanMemoryModel);
        b.memory_model(AddressingModel::Logical, MemoryModel::Vulkan);
        let void = b.type_void();
        let u32_type = b.type_int(32, 0);
        let vector = b.type_vector(u32_type, 3);
        let words = b.type_runtime_array(u32_type);
        b.decorate(words, Decoration::ArrayStride, [Operand::LiteralBit32(4)]);
        let block = b.type_struct([words]);
        b.decorate(block, Decoration::Block, []);
        b.member_decorate(block, 0, Decoration::Offset, [Operand::LiteralBit32(0)]);
        let block_pointer = b.type_pointer(None, StorageClass::StorageBuffer, block);
        let word_pointer = b.type_pointer(None, StorageClass::StorageBuffer, u32_type);
        let push_pointer = b.type_pointer(None, StorageClass::PushConstant, u32_type);

        let vector_pointer = b.type_pointer(None, StorageClass::Input, vector);
        let id = b.variable(vector_pointer, None, StorageClass::Input, None);
        b.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::GlobalInvocationId)]);
        let mut interface = vec![id];
        let mut buffers = Vec::new();
        for binding in 0..bindings {
            let buffer = b.variable(block_pointer, None, StorageClass::StorageBuffer, None);
            b.decorate(buffer, Decoration::DescriptorSet, [Operand::LiteralBit32(0)]);
            b.decorate(buffer, Decoration::Binding, [Operand::LiteralBit32(binding)]);
            // Two bindings may refer to one buffer.
            b.decorate(buffer, Decoration::Aliased, []);
            interface.push(buffer);
            buffers.push(buffer);
        }
        let mut push_constants = 0;
        if words_pushed > 0 {
            let members = vec![u32_type; words_pushed as usize];
            let pushed = b.type_struct(members);
            b.decorate(pushed, Decoration::Block, []);
            for member in 0..words_pushed {
                b.member_decorate(pushed, member, Decoration::Offset, [Operand::LiteralBit32(member * 4)]);
            }
            let pointer = b.type_pointer(None, StorageClass::PushConstant, pushed);
            push_constants = b.variable(pointer, None, StorageClass::PushConstant, None);
            interface.push(push_constants);
        }
        let function_type = b.type_function(void, []);
        let main = b.begin_function(void, None, FunctionControl::NONE, function_type).unwrap();
        b.entry_point(ExecutionModel::GLCompute, main, "main", interface);
        b.execution_mode(main, ExecutionMode::LocalSize, [workgroup_size, 1, 1]);
        b.begin_block(None).unwrap();
        let ids = b.load(vector, None, id, None, []).unwrap();
        let invocation = b.composite_extract(u32_type, None, ids, [0]).unwrap();
        Module {
            builder: b,
            u32_type,
            word_pointer,
            push_pointer,
            buffers,
            push_constants,
            words_pushed,
            invocation,
        }
    }

    fn constant(&mut self, value: u32) -> Word {
        self.builder.constant_bit32(self.u32_type, value)
    }

    /// Returns a pointer to word `index` of a binding.
    fn word(&mut self, binding: usize, index: Word) -> Word {
        let zero = self.constant(0);
        self.builder.access_chain(self.word_pointer, None, self.buffers[binding], [zero, index]).unwrap()
    }

    fn load(&mut self, binding: usize, index: Word) -> Word {
        let pointer = self.word(binding, index);
        self.builder.load(self.u32_type, None, pointer, None, []).unwrap()
    }

    fn store(&mut self, binding: usize, index: Word, value: Word) {
        let pointer = self.word(binding, index);
        self.builder.store(pointer, value, None, []).unwrap();
    }

    fn push_constant(&mut self, member: u32) -> Word {
        let member = self.constant(member);
        let pointer =
            self.builder.access_chain(self.push_pointer, None, self.push_constants, [member]).unwrap();
        self.builder.load(self.u32_type, None, pointer, None, []).unwrap()
    }

    fn add(&mut self, left: Word, right: Word) -> Word {
        self.builder.i_add(self.u32_type, None, left, right).unwrap()
    }

    fn multiply(&mut self, left: Word, right: Word) -> Word {
        self.builder.i_mul(self.u32_type, None, left, right).unwrap()
    }

    fn finish(mut self) -> Kernel {
        self.builder.ret().unwrap();
        self.builder.end_function().unwrap();
        Kernel {
            words: self.builder.module().assemble(),
            bindings: self.buffers.len() as u32,
            push_constant_bytes: self.words_pushed * 4,
            ..Kernel::default()
        }
    }
}

/// Word `i` of binding 0 becomes `i × pushed 0 + pushed 1`, for every invocation `i`.
pub fn linear_kernel(workgroup_size: u32) -> Kernel {
    let mut m = Module::new(workgroup_size, 1, 2);
    let (factor, summand) = (m.push_constant(0), m.push_constant(1));
    let i = m.invocation;
    let product = m.multiply(i, factor);
    let value = m.add(product, summand);
    m.store(0, i, value);
    m.finish()
}

/// Word `i` of binding 1 becomes word `i` of binding 0, plus one.
pub fn increment_kernel(workgroup_size: u32) -> Kernel {
    let mut m = Module::new(workgroup_size, 2, 0);
    let i = m.invocation;
    let value = m.load(0, i);
    let one = m.constant(1);
    let value = m.add(value, one);
    m.store(1, i, value);
    m.finish()
}

/// A kernel without accesses.
pub fn empty_kernel() -> Kernel {
    Module::new(1, 0, 0).finish()
}

/// Every invocation waits until word 0 of binding 0 is nonzero, then adds it to word 0 of binding 1.
pub fn waiting_kernel(workgroup_size: u32) -> Kernel {
    let mut m = Module::new(workgroup_size, 2, 0);
    let zero = m.constant(0);
    let scope = m.constant(QUEUE_FAMILY);
    let flag = m.word(0, zero);
    let counter = m.word(1, zero);
    let (u32_type, b) = (m.u32_type, &mut m.builder);
    let bool_type = b.type_bool();
    let (head, check, again, after) = (b.id(), b.id(), b.id(), b.id());
    b.branch(head).unwrap();
    b.begin_block(Some(head)).unwrap();
    b.loop_merge(after, again, LoopControl::NONE, []).unwrap();
    b.branch(check).unwrap();
    b.begin_block(Some(check)).unwrap();
    let value = b.atomic_load(u32_type, None, flag, scope, zero).unwrap();
    let closed = b.i_equal(bool_type, None, value, zero).unwrap();
    b.branch_conditional(closed, again, after, []).unwrap();
    b.begin_block(Some(again)).unwrap();
    b.branch(head).unwrap();
    b.begin_block(Some(after)).unwrap();
    b.atomic_i_add(u32_type, None, counter, scope, zero, value).unwrap();
    m.finish()
}

/// Word `i` of binding 0 becomes the index of the invocation in its subgroup. It needs full subgroups of
/// `subgroup_size`.
pub fn lane_index_kernel(workgroup_size: u32, subgroup_size: u32) -> Kernel {
    let mut m = Module::new(workgroup_size, 1, 0);
    m.builder.capability(Capability::GroupNonUniform);
    let pointer = m.builder.type_pointer(None, StorageClass::Input, m.u32_type);
    let lane = m.builder.variable(pointer, None, StorageClass::Input, None);
    m.builder.decorate(lane, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::SubgroupLocalInvocationId)]);
    if let Some(entry) = m.builder.module_mut().entry_points.first_mut() {
        entry.operands.push(Operand::IdRef(lane));
    }
    let i = m.invocation;
    let value = m.builder.load(m.u32_type, None, lane, None, []).unwrap();
    m.store(0, i, value);
    Kernel { subgroups: Subgroups::Full(subgroup_size), ..m.finish() }
}
