//! A module under construction: types, constants, interface and blocks of code.
//!
//! rspirv's builder holds everything outside functions. The one function is kept as a list of blocks, so that appending
//! an instruction cannot fail.

use rspirv::binary::Assemble;
use rspirv::dr::{Block, Builder, Function, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    MemoryModel, Op, StorageClass, Word,
};

/// A module under construction, and the ids of its types.
pub(crate) struct Module {
    builder: Builder,
    constants: Vec<(u32, Word)>,
    /// Global variables, all of which SPIR-V 1.4 and later list in the entry point.
    interface: Vec<Word>,
    function: Function,
    entry: Word,
    void: Word,
    pub u32: Word,
    pub bool: Word,
    uvec3: Word,
    pub pointer_to_word: Word,
    pub pointer_to_parameter: Word,
    pub pointer_to_register: Word,
    pointer_to_words: Word,
}

impl Module {
    /// A module with the Vulkan memory model and its types.
    pub fn new(capabilities: &[Capability]) -> Module {
        let mut builder = Builder::new();
        builder.set_version(1, 5);
        for capability in capabilities {
            builder.capability(*capability);
        }
        builder.memory_model(AddressingModel::Logical, MemoryModel::Vulkan);
        let void = builder.type_void();
        let entry = builder.id();
        let u32 = builder.type_int(32, 0);
        let bool = builder.type_bool();
        let uvec3 = builder.type_vector(u32, 3);
        let words = builder.type_runtime_array(u32);
        builder.decorate(words, Decoration::ArrayStride, [Operand::LiteralBit32(4)]);
        let block = builder.type_struct([words]);
        builder.decorate(block, Decoration::Block, []);
        builder.member_decorate(block, 0, Decoration::Offset, [Operand::LiteralBit32(0)]);
        let pointer_to_words = builder.type_pointer(None, StorageClass::StorageBuffer, block);
        let pointer_to_word = builder.type_pointer(None, StorageClass::StorageBuffer, u32);
        let pointer_to_parameter = builder.type_pointer(None, StorageClass::PushConstant, u32);
        let pointer_to_register = builder.type_pointer(None, StorageClass::Function, u32);
        Module {
            builder,
            constants: Vec::new(),
            interface: Vec::new(),
            function: Function::new(),
            entry,
            void,
            u32,
            bool,
            uvec3,
            pointer_to_word,
            pointer_to_parameter,
            pointer_to_register,
            pointer_to_words,
        }
    }

    /// A fresh id.
    pub fn id(&mut self) -> Word {
        self.builder.id()
    }

    /// A 32-bit constant.
    pub fn constant(&mut self, value: u32) -> Word {
        if let Some((_, id)) = self.constants.iter().find(|(known, _)| *known == value) {
            return *id;
        }
        let id = self.builder.constant_bit32(self.u32, value);
        self.constants.push((value, id));
        id
    }

    /// A name for people who read the disassembly.
    pub fn name(&mut self, id: Word, name: &str) {
        self.builder.name(id, name);
    }

    /// A storage buffer of words at `binding` of set 0.
    pub fn buffer(&mut self, binding: u32, name: &str, aliased: bool) -> Word {
        let id = self.builder.variable(self.pointer_to_words, None, StorageClass::StorageBuffer, None);
        self.name(id, name);
        self.builder.decorate(id, Decoration::DescriptorSet, [Operand::LiteralBit32(0)]);
        self.builder.decorate(id, Decoration::Binding, [Operand::LiteralBit32(binding)]);
        if aliased {
            self.builder.decorate(id, Decoration::Aliased, []);
        }
        self.interface.push(id);
        id
    }

    /// A push-constant block with this many words.
    pub fn push_constants(&mut self, words: u32) -> Word {
        let block = self.builder.type_struct((0..words).map(|_| self.u32).collect::<Vec<_>>());
        self.builder.decorate(block, Decoration::Block, []);
        for word in 0..words {
            self.builder.member_decorate(block, word, Decoration::Offset, [Operand::LiteralBit32(4 * word)]);
        }
        let pointer = self.builder.type_pointer(None, StorageClass::PushConstant, block);
        let id = self.builder.variable(pointer, None, StorageClass::PushConstant, None);
        self.name(id, "parameters");
        self.interface.push(id);
        id
    }

    /// An input of one word that the device provides.
    pub fn built_in_word(&mut self, built_in: BuiltIn) -> Word {
        self.built_in(built_in, self.u32)
    }

    /// An input of three words that the device provides.
    pub fn built_in_vector(&mut self, built_in: BuiltIn) -> Word {
        self.built_in(built_in, self.uvec3)
    }

    fn built_in(&mut self, built_in: BuiltIn, ty: Word) -> Word {
        let pointer = self.builder.type_pointer(None, StorageClass::Input, ty);
        let id = self.builder.variable(pointer, None, StorageClass::Input, None);
        self.builder.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(built_in)]);
        self.interface.push(id);
        id
    }

    /// Loads the first component of a vector input.
    pub fn load_x(&mut self, vector: Word) -> Word {
        let loaded = self.value(Op::Load, self.uvec3, [Operand::IdRef(vector)]);
        self.value(Op::CompositeExtract, self.u32, [Operand::IdRef(loaded), Operand::LiteralBit32(0)])
    }

    /// The label of the block under construction.
    pub fn block(&self) -> Word {
        self.function.blocks.last().and_then(Block::label_id).unwrap_or_default()
    }

    /// Begins a block; the one before must have been ended by a terminator.
    pub fn begin(&mut self, label: Word) {
        let mut block = Block::new();
        block.label = Some(Instruction::new(Op::Label, None, Some(label), Vec::new()));
        self.function.blocks.push(block);
    }

    fn push(&mut self, instruction: Instruction) {
        if let Some(block) = self.function.blocks.last_mut() {
            block.instructions.push(instruction);
        }
    }

    /// Appends an instruction with a result and returns it.
    pub fn value(&mut self, op: Op, ty: Word, operands: impl IntoIterator<Item = Operand>) -> Word {
        let id = self.id();
        self.value_as(id, op, ty, operands);
        id
    }

    /// Appends an instruction whose result has an id already.
    pub fn value_as(&mut self, id: Word, op: Op, ty: Word, operands: impl IntoIterator<Item = Operand>) {
        self.push(Instruction::new(op, Some(ty), Some(id), operands.into_iter().collect()));
    }

    /// Appends an instruction on words with a word for a result.
    pub fn word(&mut self, op: Op, operands: &[Word]) -> Word {
        self.value(op, self.u32, operands.iter().copied().map(Operand::IdRef))
    }

    /// Appends a comparison.
    pub fn truth(&mut self, op: Op, operands: &[Word]) -> Word {
        self.value(op, self.bool, operands.iter().copied().map(Operand::IdRef))
    }

    /// Appends an instruction without a result.
    pub fn effect(&mut self, op: Op, operands: impl IntoIterator<Item = Operand>) {
        self.push(Instruction::new(op, None, None, operands.into_iter().collect()));
    }

    /// Ends the block with a jump to `label`.
    pub fn branch(&mut self, label: Word) {
        self.effect(Op::Branch, [Operand::IdRef(label)]);
    }

    /// Ends the block with a jump to `yes` or `no`.
    pub fn branch_if(&mut self, condition: Word, yes: Word, no: Word) {
        self.effect(Op::BranchConditional, [condition, yes, no].map(Operand::IdRef));
    }

    /// Announces that the selection of this block ends at `merge`.
    pub fn selection_merge(&mut self, merge: Word) {
        let control = Operand::SelectionControl(rspirv::spirv::SelectionControl::NONE);
        self.effect(Op::SelectionMerge, [Operand::IdRef(merge), control]);
    }

    /// Announces that this block heads a loop.
    pub fn loop_merge(&mut self, merge: Word, continuing: Word) {
        let control = Operand::LoopControl(rspirv::spirv::LoopControl::NONE);
        self.effect(Op::LoopMerge, [Operand::IdRef(merge), Operand::IdRef(continuing), control]);
    }

    /// The assembled module: a compute shader `main` with this workgroup size.
    pub fn finish(mut self, workgroup_size: u32) -> Vec<u32> {
        let function_type = self.builder.type_function(self.void, []);
        self.builder.entry_point(ExecutionModel::GLCompute, self.entry, "main", &self.interface);
        self.builder.execution_mode(self.entry, ExecutionMode::LocalSize, [workgroup_size, 1, 1]);
        self.function.def = Some(Instruction::new(
            Op::Function,
            Some(self.void),
            Some(self.entry),
            vec![Operand::FunctionControl(FunctionControl::NONE), Operand::IdRef(function_type)],
        ));
        self.function.end = Some(Instruction::new(Op::FunctionEnd, None, None, Vec::new()));
        self.builder.module_mut().functions.push(self.function);
        self.builder.module().assemble()
    }
}
