//! A module under construction: types, constants, interface and blocks of code.
//!
//! rspirv's builder has all declarations outside of functions. The only function is a separate list of
//! blocks, so that appending an instruction cannot fail.

use rspirv::binary::Assemble;
use rspirv::dr::{Block, Builder, Function, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, Dim, ExecutionMode, ExecutionModel, FunctionControl,
    ImageFormat, LoopControl, MemoryModel, Op, StorageClass, Word,
};

use crate::transform::{self, KernelForm};

/// The declarations of a module before its types.
pub(crate) struct Preamble {
    pub version: (u8, u8),
    pub capabilities: Vec<Capability>,
    pub extensions: Vec<&'static str>,
    pub addressing: AddressingModel,
    pub model: MemoryModel,
    pub loops: LoopControl,
}

impl Preamble {
    /// A module of the Vulkan memory model for a helper kernel, which has no form of a test.
    pub fn vulkan(device_scope: bool) -> Preamble {
        let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
        if device_scope {
            capabilities.push(Capability::VulkanMemoryModelDeviceScope);
        }
        Preamble { capabilities, model: MemoryModel::Vulkan, ..Preamble::minimal((1, 5)) }
    }

    /// A module of the GLSL450 memory model that needs only `Shader`: every Vulkan device supports it.
    pub fn minimal(version: (u8, u8)) -> Preamble {
        Preamble {
            version,
            capabilities: vec![Capability::Shader],
            extensions: Vec::new(),
            addressing: AddressingModel::Logical,
            model: MemoryModel::GLSL450,
            loops: LoopControl::NONE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleStage {
    /// `reconverges` declares maximal reconvergence.
    Compute { workgroup_size: [u32; 3], reconverges: bool },
    /// A vertex shader.
    Vertex,
    /// A mesh shader that emits no primitive.
    Mesh { workgroup_size: [u32; 3] },
    /// A task shader that launches no mesh workgroups.
    Task { workgroup_size: [u32; 3] },
    /// A fragment shader, with the execution mode of its interlocked sections if it has any.
    Fragment(Option<ExecutionMode>),
}

/// Scope and semantics of an atomic: the ids of two constants.
#[derive(Clone, Copy)]
pub(crate) struct AtomicOrder {
    pub scope: Word,
    pub semantics: Word,
}

impl AtomicOrder {
    /// Returns the operands up to the semantics.
    fn operands(self, pointer: Word) -> [Operand; 3] {
        let semantics = Operand::IdMemorySemantics(self.semantics);
        [Operand::IdRef(pointer), Operand::IdScope(self.scope), semantics]
    }
}

pub(crate) struct FinishedModule {
    pub words: Vec<u32>,
    /// The value of [`ModuleBuilder::identity_constant`]; 0 if the module does not use it.
    pub identity: u32,
    /// The iterations of the loops that its form adds to a round.
    pub added_iterations: u32,
}

/// A module under construction, with the ids of its types.
pub(crate) struct ModuleBuilder {
    builder: Builder,
    version: (u8, u8),
    loops: LoopControl,
    constants: Vec<(Word, Vec<u32>, Word)>,
    /// Blocks with one array of explicit layout: element type, length (`None` for a runtime array), and the
    /// block's id.
    blocks: Vec<(Word, Option<u32>, Word)>,
    /// Structures with one member at an offset: member, offset, structure.
    offset_structs: Vec<(Word, u32, Word)>,
    /// Global variables, and whether they are inputs or outputs: the entry point lists all since SPIR-V 1.4,
    /// and only inputs and outputs before.
    interface: Vec<(Word, bool)>,
    /// The id of a constant that contains a hash of the module.
    identity: Option<Word>,
    function: Function,
    /// The transformations of the finished module.
    pub form: Option<KernelForm>,
    /// The form may add loops.
    pub may_add_loops: bool,
    entry: Word,
    void: Word,
    pub u32: Word,
    pub bool: Word,
    uvec3: Word,
}

impl ModuleBuilder {
    /// Creates a module with its most frequent types.
    pub fn new(preamble: Preamble) -> ModuleBuilder {
        let mut builder = Builder::new();
        builder.set_version(preamble.version.0, preamble.version.1);
        for capability in preamble.capabilities {
            builder.capability(capability);
        }
        for extension in preamble.extensions {
            builder.extension(extension);
        }
        builder.memory_model(preamble.addressing, preamble.model);
        let void = builder.type_void();
        let entry = builder.id();
        let u32 = builder.type_int(32, 0);
        let bool = builder.type_bool();
        let uvec3 = builder.type_vector(u32, 3);
        ModuleBuilder {
            builder,
            version: preamble.version,
            loops: preamble.loops,
            constants: Vec::new(),
            blocks: Vec::new(),
            offset_structs: Vec::new(),
            interface: Vec::new(),
            identity: None,
            function: Function::new(),
            form: None,
            may_add_loops: false,
            entry,
            void,
            u32,
            bool,
            uvec3,
        }
    }

    /// Returns a new id.
    pub fn id(&mut self) -> Word {
        self.builder.id()
    }

    /// Returns an unsigned integer type.
    pub fn type_int(&mut self, bits: u32) -> Word {
        if bits == 32 { self.u32 } else { self.builder.type_int(bits, 0) }
    }

    /// Returns a floating-point type.
    pub fn type_float(&mut self, bits: u32) -> Word {
        self.builder.type_float(bits, None)
    }

    pub fn type_vector(&mut self, component: Word, count: u32) -> Word {
        self.builder.type_vector(component, count)
    }

    pub fn type_pointer(&mut self, class: StorageClass, to: Word) -> Word {
        self.builder.type_pointer(None, class, to)
    }

    /// Returns a storage image type with a format.
    pub fn type_image(&mut self, texel: Word, dimension: Dim, format: ImageFormat) -> Word {
        self.builder.type_image(texel, dimension, 0, 0, 0, 2, format, None)
    }

    /// Returns an array type without explicit layout.
    pub fn type_array(&mut self, element: Word, length: u32) -> Word {
        let length = self.constant(length);
        self.builder.type_array(element, length)
    }

    /// Returns a block with an array of elements of `bytes` bytes each; a runtime array if there is no
    /// length.
    pub fn type_array_block(&mut self, element: Word, bytes: u32, length: Option<u32>) -> Word {
        if let Some((.., block)) = self.blocks.iter().find(|(e, l, _)| *e == element && *l == length) {
            return *block;
        }
        let array = match length {
            None => self.builder.type_runtime_array(element),
            Some(length) => {
                // rspirv would reuse the id of an array without stride.
                let (id, length) = (self.builder.id(), self.constant(length));
                self.builder.type_array_id(Some(id), element, length)
            }
        };
        self.builder.decorate(array, Decoration::ArrayStride, [Operand::LiteralBit32(bytes)]);
        let block = self.builder.type_struct([array]);
        self.builder.decorate(block, Decoration::Block, []);
        self.builder.member_decorate(block, 0, Decoration::Offset, [Operand::LiteralBit32(0)]);
        self.blocks.push((element, length, block));
        block
    }

    /// Returns a structure whose only member is at `offset`.
    pub fn type_struct_at_offset(&mut self, member: Word, offset: u32) -> Word {
        if let Some((.., known)) = self.offset_structs.iter().find(|(m, o, _)| *m == member && *o == offset) {
            return *known;
        }
        // rspirv would reuse the id of a structure with another offset.
        let id = self.builder.id();
        let structure = self.builder.type_struct_id(Some(id), [member]);
        self.builder.member_decorate(structure, 0, Decoration::Offset, [Operand::LiteralBit32(offset)]);
        self.offset_structs.push((member, offset, structure));
        structure
    }

    /// Returns a 32-bit constant.
    pub fn constant(&mut self, value: u32) -> Word {
        self.typed_constant(self.u32, &[value])
    }

    /// Returns a constant of a scalar type from its words, the low one first.
    pub fn typed_constant(&mut self, ty: Word, words: &[u32]) -> Word {
        if let Some((.., id)) = self.constants.iter().find(|(t, w, _)| *t == ty && w == words) {
            return *id;
        }
        let id = match words {
            [low, high] => self.builder.constant_bit64(ty, u64::from(*high) << 32 | u64::from(*low)),
            _ => self.builder.constant_bit32(ty, words.first().copied().unwrap_or_default()),
        };
        self.constants.push((ty, words.to_vec(), id));
        id
    }

    /// Returns the constant whose value is the hash of the module.
    pub fn identity_constant(&mut self) -> Word {
        if let Some(known) = self.identity {
            return known;
        }
        let id = self.builder.id();
        self.name(id, "identity");
        self.identity = Some(id);
        id
    }

    /// Returns the number of elements of a buffer.
    pub fn array_length(&mut self, buffer: Word) -> Word {
        let operands = [Operand::IdRef(buffer), Operand::LiteralBit32(0)];
        self.emit_value(Op::ArrayLength, self.u32, operands)
    }

    /// Names an id in the disassembly.
    pub fn name(&mut self, id: Word, name: &str) {
        self.builder.name(id, name);
    }

    pub fn decorate(&mut self, id: Word, decoration: Decoration, operands: &[u32]) {
        self.builder.decorate(id, decoration, operands.iter().map(|word| Operand::LiteralBit32(*word)));
    }

    /// Declares a global variable.
    pub fn global_variable(&mut self, class: StorageClass, ty: Word, name: &str) -> Word {
        let pointer = self.type_pointer(class, ty);
        let id = self.builder.variable(pointer, None, class, None);
        self.name(id, name);
        self.interface.push((id, class == StorageClass::Input));
        id
    }

    /// Declares a zero-initialized variable in workgroup memory.
    pub fn zeroed_variable(&mut self, ty: Word, name: &str) -> Word {
        let pointer = self.type_pointer(StorageClass::Workgroup, ty);
        let null = self.builder.constant_null(ty);
        let id = self.builder.variable(pointer, None, StorageClass::Workgroup, Some(null));
        self.name(id, name);
        self.interface.push((id, false));
        id
    }

    /// Declares a variable of the function; call it in the first block.
    pub fn function_variable(&mut self, ty: Word, name: &str) -> Word {
        let pointer = self.type_pointer(StorageClass::Function, ty);
        let id = self.emit_value(Op::Variable, pointer, [Operand::StorageClass(StorageClass::Function)]);
        self.name(id, name);
        id
    }

    /// Declares a global variable at `binding` of set 0.
    pub fn bound_variable(&mut self, class: StorageClass, ty: Word, binding: u32, name: &str) -> Word {
        let id = self.global_variable(class, ty, name);
        self.decorate(id, Decoration::DescriptorSet, &[0]);
        self.decorate(id, Decoration::Binding, &[binding]);
        id
    }

    /// Declares a push-constant block of words, followed by `addresses` addresses of two words.
    pub fn push_constants(&mut self, words: u32, addresses: u32) -> Word {
        let mut members = vec![self.u32; words as usize];
        for _ in 0..addresses {
            members.push(self.type_vector(self.u32, 2));
        }
        let count = members.len() as u32;
        let block = self.builder.type_struct(members);
        self.builder.decorate(block, Decoration::Block, []);
        for member in 0..count {
            self.builder.member_decorate(
                block,
                member,
                Decoration::Offset,
                // Addresses have two words.
                [Operand::LiteralBit32(4 * (member + member.saturating_sub(words)))],
            );
        }
        self.global_variable(StorageClass::PushConstant, block, "parameters")
    }

    /// Declares a built-in input of one word.
    pub fn built_in_word(&mut self, built_in: BuiltIn) -> Word {
        self.built_in_input(built_in, self.u32)
    }

    /// Declares a built-in input of three words.
    pub fn built_in_vector(&mut self, built_in: BuiltIn) -> Word {
        self.built_in_input(built_in, self.uvec3)
    }

    /// Declares a built-in input.
    pub fn built_in_input(&mut self, built_in: BuiltIn, ty: Word) -> Word {
        self.built_in_variable(StorageClass::Input, built_in, ty)
    }

    /// Declares a built-in output.
    pub fn built_in_output(&mut self, built_in: BuiltIn, ty: Word) -> Word {
        self.built_in_variable(StorageClass::Output, built_in, ty)
    }

    /// Declares an output at a location, such as a color.
    pub fn located_output(&mut self, location: u32, ty: Word) -> Word {
        let id = self.listed_variable(StorageClass::Output, ty);
        self.builder.decorate(id, Decoration::Location, [Operand::LiteralBit32(location)]);
        id
    }

    /// Declares a flat input of one word at a location.
    pub fn flat_input(&mut self, location: u32) -> Word {
        let id = self.listed_variable(StorageClass::Input, self.u32);
        self.builder.decorate(id, Decoration::Location, [Operand::LiteralBit32(location)]);
        self.builder.decorate(id, Decoration::Flat, []);
        id
    }

    fn built_in_variable(&mut self, class: StorageClass, built_in: BuiltIn, ty: Word) -> Word {
        let id = self.listed_variable(class, ty);
        self.builder.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(built_in)]);
        id
    }

    fn listed_variable(&mut self, class: StorageClass, ty: Word) -> Word {
        let pointer = self.type_pointer(class, ty);
        let id = self.builder.variable(pointer, None, class, None);
        self.interface.push((id, true));
        id
    }

    /// Loads the first component of a vector input.
    pub fn load_x(&mut self, vector: Word) -> Word {
        let loaded = self.emit_value(Op::Load, self.uvec3, [Operand::IdRef(vector)]);
        self.extract(self.u32, loaded, 0)
    }

    /// Loads the components of a vector input.
    pub fn load_components(&mut self, vector: Word) -> [Word; 3] {
        let loaded = self.emit_value(Op::Load, self.uvec3, [Operand::IdRef(vector)]);
        [0, 1, 2].map(|component| self.extract(self.u32, loaded, component))
    }

    /// Appends the extraction of a component.
    pub fn extract(&mut self, ty: Word, composite: Word, component: u32) -> Word {
        let operands = [Operand::IdRef(composite), Operand::LiteralBit32(component)];
        self.emit_value(Op::CompositeExtract, ty, operands)
    }

    /// Loads a word of the block of [`ModuleBuilder::push_constants`].
    pub fn push_constant(&mut self, block: Word, position: u32) -> Word {
        let member = self.constant(position);
        let ty = self.type_pointer(StorageClass::PushConstant, self.u32);
        let pointer = self.emit_on_ids(Op::AccessChain, ty, &[block, member]);
        self.emit_word(Op::Load, &[pointer])
    }

    pub fn word_pointer(&mut self, buffer: Word, index: Word) -> Word {
        let member = self.constant(0);
        let ty = self.type_pointer(StorageClass::StorageBuffer, self.u32);
        self.emit_on_ids(Op::AccessChain, ty, &[buffer, member, index])
    }

    /// Returns the label of the block under construction.
    pub fn current_block(&self) -> Word {
        self.function.blocks.last().and_then(Block::label_id).unwrap_or_default()
    }

    /// Starts a block; the previous one must have a terminator.
    pub fn begin_block(&mut self, label: Word) {
        let mut block = Block::new();
        block.label = Some(Instruction::new(Op::Label, None, Some(label), Vec::new()));
        self.function.blocks.push(block);
    }

    fn push(&mut self, instruction: Instruction) {
        if let Some(block) = self.function.blocks.last_mut() {
            block.instructions.push(instruction);
        }
    }

    /// Appends an instruction with a result and returns its id.
    pub fn emit_value(&mut self, op: Op, ty: Word, operands: impl IntoIterator<Item = Operand>) -> Word {
        let id = self.id();
        self.emit_value_as(id, op, ty, operands);
        id
    }

    /// Appends an instruction whose result has this id.
    pub fn emit_value_as(&mut self, id: Word, op: Op, ty: Word, operands: impl IntoIterator<Item = Operand>) {
        self.push(Instruction::new(op, Some(ty), Some(id), operands.into_iter().collect()));
    }

    /// Appends an instruction whose operands are all ids.
    pub fn emit_on_ids(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        self.emit_value(op, ty, operands.iter().copied().map(Operand::IdRef))
    }

    /// Appends an instruction on words whose result is a word.
    pub fn emit_word(&mut self, op: Op, operands: &[Word]) -> Word {
        self.emit_on_ids(op, self.u32, operands)
    }

    pub fn emit_bool(&mut self, op: Op, operands: &[Word]) -> Word {
        self.emit_on_ids(op, self.bool, operands)
    }

    /// Appends an instruction without a result.
    pub fn emit_void(&mut self, op: Op, operands: impl IntoIterator<Item = Operand>) {
        self.push(Instruction::new(op, None, None, operands.into_iter().collect()));
    }

    /// Ends the block with a jump to `label`.
    pub fn branch(&mut self, label: Word) {
        self.emit_void(Op::Branch, [Operand::IdRef(label)]);
    }

    /// Ends the block with a jump to `yes` or `no`.
    pub fn branch_if(&mut self, condition: Word, yes: Word, no: Word) {
        self.emit_void(Op::BranchConditional, [condition, yes, no].map(Operand::IdRef));
    }

    /// Ends the block with a jump to `label`, and starts that block.
    pub fn continue_at(&mut self, label: Word) {
        self.branch(label);
        self.begin_block(label);
    }

    /// Starts the block `body` of a selection that skips it to `merge` unless the condition holds.
    pub fn begin_if(&mut self, condition: Word, body: Word, merge: Word) {
        self.selection_merge(merge);
        self.branch_if(condition, body, merge);
        self.begin_block(body);
    }

    /// Stores a value without memory operands.
    pub fn store(&mut self, pointer: Word, value: Word) {
        self.emit_void(Op::Store, [pointer, value].map(Operand::IdRef));
    }

    /// Appends an atomic addition to a word; returns the value before it.
    pub fn atomic_add(&mut self, pointer: Word, order: AtomicOrder, value: Word) -> Word {
        let operands = order.operands(pointer).into_iter().chain([Operand::IdRef(value)]);
        self.emit_value(Op::AtomicIAdd, self.u32, operands)
    }

    pub fn atomic_load(&mut self, pointer: Word, order: AtomicOrder) -> Word {
        self.emit_value(Op::AtomicLoad, self.u32, order.operands(pointer))
    }

    pub fn atomic_store(&mut self, pointer: Word, order: AtomicOrder, value: Word) {
        self.emit_void(Op::AtomicStore, order.operands(pointer).into_iter().chain([Operand::IdRef(value)]));
    }

    /// Appends a control barrier with constants for its scopes and semantics.
    pub fn control_barrier(&mut self, op: Op, execution: Word, memory: Word, semantics: Word) {
        let scopes = [execution, memory].map(Operand::IdScope);
        self.emit_void(op, scopes.into_iter().chain([Operand::IdMemorySemantics(semantics)]));
    }

    /// Appends a word that depends on the block before: each value with its block.
    pub fn phi(&mut self, values: [Word; 4]) -> Word {
        self.emit_value(Op::Phi, self.u32, values.map(Operand::IdRef))
    }

    /// Declares `merge` as the end of this block's selection.
    pub fn selection_merge(&mut self, merge: Word) {
        let control = Operand::SelectionControl(rspirv::spirv::SelectionControl::NONE);
        self.emit_void(Op::SelectionMerge, [Operand::IdRef(merge), control]);
    }

    /// Ends this block with a selection among cases, without code for other numbers.
    pub fn switch(&mut self, selector: Word, merge: Word, cases: impl IntoIterator<Item = (u32, Word)>) {
        self.selection_merge(merge);
        let mut operands = vec![Operand::IdRef(selector), Operand::IdRef(merge)];
        for (number, label) in cases {
            operands.extend([Operand::LiteralBit32(number), Operand::IdRef(label)]);
        }
        self.emit_void(Op::Switch, operands);
    }

    /// Declares this block as the header of a loop.
    pub fn loop_merge(&mut self, merge: Word, continuing: Word) {
        let control = Operand::LoopControl(self.loops);
        self.emit_void(Op::LoopMerge, [Operand::IdRef(merge), Operand::IdRef(continuing), control]);
    }

    /// Returns the assembled module: a compute shader `main` with this workgroup size.
    pub fn finish(self, workgroup_size: u32) -> FinishedModule {
        self.finish_as(ModuleStage::Compute { workgroup_size: [workgroup_size, 1, 1], reconverges: false })
    }

    /// Returns the assembled module: a shader `main` of a stage.
    pub fn finish_as(mut self, entry_point: ModuleStage) -> FinishedModule {
        let function_type = self.builder.type_function(self.void, []);
        let lists_all = self.version >= (1, 4);
        let listed = self.interface.iter().filter(|(_, input)| lists_all || *input);
        let interface: Vec<Word> = listed.map(|(id, _)| *id).collect();
        let model = match entry_point {
            ModuleStage::Compute { .. } => ExecutionModel::GLCompute,
            ModuleStage::Vertex => ExecutionModel::Vertex,
            ModuleStage::Mesh { .. } => ExecutionModel::MeshEXT,
            ModuleStage::Task { .. } => ExecutionModel::TaskEXT,
            ModuleStage::Fragment(_) => ExecutionModel::Fragment,
        };
        self.builder.entry_point(model, self.entry, "main", &interface);
        match entry_point {
            ModuleStage::Compute { workgroup_size, reconverges } => {
                self.builder.execution_mode(self.entry, ExecutionMode::LocalSize, workgroup_size);
                if reconverges {
                    self.builder.execution_mode(self.entry, ExecutionMode::MaximallyReconvergesKHR, []);
                }
            }
            ModuleStage::Vertex => {}
            ModuleStage::Mesh { workgroup_size } => {
                self.builder.execution_mode(self.entry, ExecutionMode::LocalSize, workgroup_size);
                self.builder.execution_mode(self.entry, ExecutionMode::OutputVertices, [1]);
                self.builder.execution_mode(self.entry, ExecutionMode::OutputPrimitivesEXT, [1]);
                self.builder.execution_mode(self.entry, ExecutionMode::OutputPoints, []);
            }
            ModuleStage::Task { workgroup_size } => {
                self.builder.execution_mode(self.entry, ExecutionMode::LocalSize, workgroup_size);
            }
            ModuleStage::Fragment(interlock) => {
                self.builder.execution_mode(self.entry, ExecutionMode::OriginUpperLeft, []);
                if let Some(mode) = interlock {
                    self.builder.execution_mode(self.entry, mode, []);
                }
            }
        }
        self.function.def = Some(Instruction::new(
            Op::Function,
            Some(self.void),
            Some(self.entry),
            vec![Operand::FunctionControl(FunctionControl::NONE), Operand::IdRef(function_type)],
        ));
        self.function.end = Some(Instruction::new(Op::FunctionEnd, None, None, Vec::new()));
        self.builder.module_mut().functions.push(self.function);
        let added_iterations =
            self.form.map_or(0, |form| transform::apply(&mut self.builder, form, self.may_add_loops));
        let mut module = self.builder.module();
        let Some(id) = self.identity else {
            return FinishedModule { words: module.assemble(), identity: 0, added_iterations };
        };
        // The hash covers the module with a zero in place of itself. rspirv would reuse the id of another zero.
        let declare = |value| {
            Instruction::new(Op::Constant, Some(self.u32), Some(id), vec![Operand::LiteralBit32(value)])
        };
        module.types_global_values.push(declare(0));
        let identity = fnv_1a(&module.assemble());
        if let Some(constant) = module.types_global_values.last_mut() {
            *constant = declare(identity);
        }
        FinishedModule { words: module.assemble(), identity, added_iterations }
    }
}

/// Returns the FNV-1a hash of words, with 32 bits.
fn fnv_1a(words: &[u32]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
