//! Lowering: translates a module into flat operations on numbered registers.
//!
//! Every register is numbered above those that its operation reads, except those of phis and variables; so
//! splitting the register file once separates sources from the destination. Loads complete late: a wait
//! precedes an operation that needs the value.

mod finish;
mod group;
mod image;
mod load_sinking;
mod memory;
mod number;
mod operation;
mod path;
mod workgroup;

use std::collections::{HashMap, HashSet};

use arithmetic::TexelFormat;
use rspirv::spirv::{BuiltIn as SpirvBuiltIn, Op as SpirvOp, StorageClass};
use spirv_reader::{ImageOperation, SpirvOperation, SpirvType, Stage};

use crate::fault::Fault;
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::legalize::legalize;
use crate::module::{ImageType, LoadedModule, Variable};
use crate::program::{DEVICE, Edge, Op, Program, Reference, ReferencePlace, Register};

/// The lowered form of an id.
#[derive(Clone, Copy, Debug)]
enum LoweredValue {
    /// A word, or the first of the words of a wider number or a vector.
    Value(Register),
    /// An address in memory.
    Pointer { reference: u16, address: Register },
    /// A variable of the function.
    Variable(Register),
    /// An element of a function variable at a computed index, in words; and the words of the variable.
    Element { first: Register, offset: u32, index: Register, words: u32 },
    /// A member of the push constants, `bytes` bytes after the offset in `index`.
    PushConstant { bytes: u32, index: Register },
    /// The block of push constants.
    PushConstantBlock,
    /// An input variable.
    Input(SpirvBuiltIn),
    /// A word that the vertex shader passes to its fragments.
    VertexWord,
    /// A component of an input variable.
    InputComponent(SpirvBuiltIn, u8),
    /// A whole variable in memory that is not a number.
    MemoryVariable { reference: u16, ty: u32 },
    /// An image.
    Image { reference: u16, dimensions: u32, format: Option<TexelFormat> },
}

/// Lowers a module's words to a program.
///
/// # Errors
/// Returns the error in the module, or the unsupported feature.
pub(crate) fn lower_module(
    words: &[u32],
    interface: Option<&plan::Interface>,
    fault: Fault,
) -> Result<Program, LoadError> {
    let source = spirv_reader::read_words(words)?;
    let mut module = LoadedModule::new(&source, interface)?;
    module.body = legalize(&mut module, fault)?;
    let start = LocatedInstruction {
        index: 0,
        word: 0,
        op: SpirvOp::Nop,
        ty: 0,
        result: 0,
        operands: Vec::new(),
        selector_bits: 0,
    };
    let mut lowering = Lowering {
        module: &module,
        program: Program::default(),
        lowered_values: HashMap::new(),
        blocks: HashMap::new(),
        loaded_registers: Vec::new(),
        awaited_registers: Vec::new(),
        phis: HashMap::new(),
        indices: Vec::new(),
        types: HashMap::new(),
        texel_addresses: HashMap::new(),
        early_texels: HashMap::new(),
        addresses: HashMap::new(),
        coherent_references: Vec::new(),
        strides: HashMap::new(),
        coherent_pointers: HashSet::new(),
        deferred: Vec::new(),
        fixed: FixedRegisters::default(),
        current: &start,
        block: 0,
        label: 0,
    };
    lowering.lower_globals(fault)?;
    lowering.allocate_registers()?;
    lowering.program.nested_blocks = vec![false; lowering.blocks.len()];
    lowering.lower_body()?;
    lowering.program.independent_invocations = interface.is_some();
    lowering.program.interlock_is_ordered = module.interlock_is_ordered;
    let reconverges = module.has_maximal_reconvergence && fault != Fault::MaximalReconvergenceIgnored;
    let exchanges = lowering.program.ops.iter().any(|op| matches!(op, Op::Group(_)));
    if reconverges || lowering.program.independent_invocations || !exchanges {
        lowering.program.nested_blocks.clear();
    }
    lowering.program.layers = interface.map_or([1, 1], |interface| interface.layers);
    lowering.finish(fault)
}

/// A lowered phi: the first register, the number of registers, and the values with their predecessors.
type Phi = (Register, u32, Vec<[u32; 2]>);

/// Constant registers that lowering itself needs.
#[derive(Clone, Copy, Debug, Default)]
struct FixedRegisters {
    zero: Register,
    one: Register,
    one_as_float: Register,
    byte: Register,
    half: Register,
}

struct Lowering<'m> {
    module: &'m LoadedModule<'m>,
    program: Program,
    lowered_values: HashMap<u32, LoweredValue>,
    /// The block number of each label.
    blocks: HashMap<u32, u32>,
    /// Registers that loads fill.
    loaded_registers: Vec<Register>,
    /// Loaded registers that this block has already waited for.
    awaited_registers: Vec<Register>,
    /// The phis of each block.
    phis: HashMap<u32, Vec<Phi>>,
    /// Ids that buffer addresses are computed from, with the reference.
    indices: Vec<(u32, u16)>,
    /// Types of constants and results.
    types: HashMap<u32, u32>,
    /// Registers for texel addresses, by the index of the instruction.
    texel_addresses: HashMap<usize, Register>,
    /// Image variables that are read at given coordinates, with the register of the address. Texel addresses
    /// are known as early as buffer addresses, so that texels may be prefetched.
    early_texels: HashMap<u32, Vec<(u32, Register)>>,
    /// Ids that are a buffer address, with the word of the push constants that contains it.
    addresses: HashMap<u32, u32>,
    /// By reference: under GLSL450, whether non-atomic accesses are coherent.
    coherent_references: Vec<bool>,
    /// Pointers to matrices, or to rows of them, whose memory layout has explicit strides.
    strides: HashMap<u32, (u32, bool)>,
    /// Under GLSL450, pointers into coherent members.
    coherent_pointers: HashSet<u32>,
    /// Arithmetic of this block whose results no instruction has needed yet.
    deferred: Vec<&'m LocatedInstruction>,
    fixed: FixedRegisters,
    /// The instruction that is lowered.
    current: &'m LocatedInstruction,
    block: u32,
    label: u32,
}

impl Lowering<'_> {
    fn new_register(&mut self) -> Register {
        self.program.registers += 1;
        (self.program.registers - 1) as Register
    }

    /// Lowers constants and global variables.
    fn lower_globals(&mut self, fault: Fault) -> Result<(), LoadError> {
        let module = self.module;
        self.program.stage = module.stage;
        let [x, y, z] = match module.stage {
            Stage::Compute | Stage::Mesh | Stage::Task => module.workgroup_size,
            // Vertex and fragment shaders have no workgroups.
            Stage::Vertex | Stage::Fragment => [1, 1, 1],
        };
        let size = x.checked_mul(y).and_then(|size| size.checked_mul(z)).unwrap_or(u32::MAX);
        if !(1..=crate::limits::MAX_WORKGROUP_INVOCATIONS).contains(&size) {
            return Err(LoadError::Unsupported(format!("workgroups of {size} invocations")));
        }
        (self.program.workgroup_size, self.program.local_size) = (size, [x, y]);
        let mut fixed = |value: u32| {
            let register = self.new_register();
            self.program.constants.push((register, value));
            register
        };
        self.fixed = FixedRegisters {
            zero: fixed(0),
            one: fixed(1),
            one_as_float: fixed(1f32.to_bits()),
            byte: fixed(0xff),
            half: fixed(0xffff),
        };
        let mut constants: Vec<(u32, (u32, u64))> =
            module.constants.iter().map(|(id, value)| (*id, *value)).collect();
        constants.sort_unstable();
        for (id, (ty, value)) in constants {
            let register = self.new_register();
            self.program.constants.push((register, value as u32));
            if module.registers_of(ty) == Some(2) {
                let high = self.new_register();
                self.program.constants.push((high, (value >> 32) as u32));
            }
            self.types.insert(id, ty);
            self.lowered_values.insert(id, LoweredValue::Value(register));
        }
        for (id, ty) in &module.nulls {
            let Some(words) = module.registers_of(*ty) else { continue };
            let first = self.program.registers as Register;
            self.program.registers += words as usize;
            self.types.insert(*id, *ty);
            self.lowered_values.insert(*id, LoweredValue::Value(first));
        }
        for Variable { id, ty: to, class, has_initializer: initialized, word } in &module.variables {
            let decorations = module.source().decorations_of(*id);
            let meaning = match class {
                StorageClass::PushConstant => LoweredValue::PushConstantBlock,
                StorageClass::Input => match (decorations.built_in, decorations.location) {
                    (Some(built_in), _) => LoweredValue::Input(built_in),
                    (None, Some(0)) if self.module.registers_of(*to) == Some(1) => LoweredValue::VertexWord,
                    (None, Some(_)) => {
                        return Err(LoadError::Unsupported("inputs of more than one word".into()));
                    }
                    (None, None) => return Err(malformed_module(*word, "an input that is not a built-in")),
                },
                StorageClass::Output => self.lower_output(*id, *to, *word)?,
                StorageClass::StorageBuffer | StorageClass::Uniform => {
                    let binding = module.bindings.get(id).copied();
                    let binding =
                        binding.ok_or_else(|| LoadError::Unsupported("buffers without a binding".into()))?;
                    let reference = self.add_reference(
                        *id,
                        ReferencePlace::Binding(binding),
                        vocabulary::StorageClass::Buffer,
                    );
                    LoweredValue::MemoryVariable { reference, ty: *to }
                }
                StorageClass::UniformConstant => {
                    let Some(ImageType { dimensions, format }) = module.image_type_of(*to) else {
                        return Err(LoadError::Unsupported(
                            "variables of class UniformConstant other than images".into(),
                        ));
                    };
                    let binding = module.bindings.get(id).copied();
                    let binding =
                        binding.ok_or_else(|| LoadError::Unsupported("images without a binding".into()))?;
                    let reference = self.add_reference(
                        *id,
                        ReferencePlace::Image(binding),
                        vocabulary::StorageClass::Image,
                    );
                    LoweredValue::Image { reference, dimensions, format }
                }
                StorageClass::Workgroup => {
                    let meaning = match module.source().decorations_of(*to).block {
                        true => {
                            let words = module.bytes_of(*to).div_ceil(4);
                            LoweredValue::MemoryVariable {
                                reference: self.add_workgroup_block(*id, words),
                                ty: *to,
                            }
                        }
                        false => self.add_workgroup_variable(*id, *to),
                    };
                    if *initialized {
                        self.zero_initialize(&meaning, fault)?;
                    }
                    meaning
                }
                other => return Err(LoadError::Unsupported(format!("variables of class {other:?}"))),
            };
            self.lowered_values.insert(*id, meaning);
        }
        Ok(())
    }

    /// Lowers an output variable, which only the rasterizer reads.
    fn lower_output(&mut self, id: u32, ty: u32, word: usize) -> Result<LoweredValue, LoadError> {
        let decorations = self.module.source().decorations_of(id);
        let number = match decorations.built_in {
            Some(SpirvBuiltIn::Position) => 0,
            Some(SpirvBuiltIn::PointSize) => 1,
            Some(other) => return Err(LoadError::Unsupported(format!("the output {other:?}"))),
            None if self.module.stage == Stage::Vertex && decorations.location == Some(0) => 2,
            None => return Err(LoadError::Unsupported("outputs that are not built-ins".into())),
        };
        let wanted = [4, 1, 1][number];
        let count = self.module.registers_of(ty);
        if count != Some(wanted) {
            return Err(malformed_module(word, "a position, a size or a word of another type"));
        }
        let first = self.program.registers as Register;
        self.program.registers += wanted as usize;
        if let Some(output) = self.program.outputs.get_mut(number) {
            *output = Some(first);
        }
        Ok(LoweredValue::Variable(first))
    }

    fn add_reference(&mut self, id: u32, place: ReferencePlace, class: vocabulary::StorageClass) -> u16 {
        let name = self.module.source().names.get(&id).cloned().unwrap_or_else(|| match place {
            ReferencePlace::Binding(binding) | ReferencePlace::Image(binding) => format!("binding {binding}"),
            ReferencePlace::Address(word) => format!("address in word {word}"),
            ReferencePlace::Fixed { memory, .. } => format!("memory {memory}"),
            ReferencePlace::Workgroup(first, _) => format!("workgroup word {first}"),
        });
        let decorations = self.module.source().decorations_of(id);
        let coherent =
            class == vocabulary::StorageClass::Workgroup || decorations.coherent || decorations.volatile;
        let references = &mut self.program.references;
        // Several variables access numbers of several sizes through one reference.
        if let Some(known) = references.iter().position(|known| known.name == name && known.place == place) {
            return known as u16;
        }
        self.coherent_references.push(coherent);
        references.push(Reference {
            name,
            place,
            class,
            lowest: DEVICE,
            write_only: false,
            is_auxiliary: false,
            aliased: false,
            uniform_atomic_scope: None,
            is_zero_initialized: false,
        });
        (references.len() - 1) as u16
    }

    /// Allocates registers for all results and numbers for all blocks, in module order.
    fn allocate_registers(&mut self) -> Result<(), LoadError> {
        let module = self.module;
        let mut block = 0;
        for placed in &module.body {
            self.current = placed;
            if placed.op == SpirvOp::Label {
                self.blocks.insert(placed.result_id()?, block);
                block += 1;
            }
            let operation = module.decode_instruction(placed)?;
            if let SpirvOperation::Image(ImageOperation::Read { .. } | ImageOperation::Write { .. }) =
                operation
            {
                let register = self.new_register();
                self.texel_addresses.insert(placed.index, register);
                if let SpirvOperation::Image(ImageOperation::Read { image, coordinate, .. }) = operation
                    && let Some(load) = module.body.iter().find(|p| p.result == image)
                    && let SpirvOperation::Load { pointer, .. } = module.decode_instruction(load)?
                {
                    self.early_texels.entry(coordinate).or_default().push((pointer, register));
                }
            }
            let (id, ty) = (placed.result, placed.ty);
            if id == 0 || ty == 0 {
                continue;
            }
            self.types.insert(id, ty);
            let meaning = match module.type_of(ty) {
                Some(SpirvType::Pointer { pointee: to, .. }) if placed.op == SpirvOp::Variable => {
                    LoweredValue::Variable(self.allocate_value(*to)?)
                }
                Some(SpirvType::Pointer { class, .. }) if Self::has_no_address(*class) => continue,
                // A variable of composite type has no address operand; its parts do.
                Some(SpirvType::Pointer { pointee: to, .. })
                    if matches!(module.type_of(*to), Some(SpirvType::Struct { .. })) =>
                {
                    continue;
                }
                Some(SpirvType::Pointer { .. }) => {
                    LoweredValue::Pointer { reference: u16::MAX, address: self.new_register() }
                }
                Some(SpirvType::Void | SpirvType::Handle(_)) => continue,
                _ => LoweredValue::Value(self.allocate_value(ty)?),
            };
            self.lowered_values.insert(id, meaning);
        }
        for placed in &module.body {
            self.current = placed;
            let SpirvOperation::Phi { sources } = module.decode_instruction(placed)? else { continue };
            let (to, count) = match self.lowered_value(placed.result_id()?)? {
                LoweredValue::Value(to) => (to, module.registers_of(placed.result_type_id()?).unwrap_or(1)),
                LoweredValue::Pointer { address, .. } => (address, 1),
                _ => return Err(LoadError::Unsupported("OpPhi of this type".into())),
            };
            let block = self.block_of(placed.index);
            self.phis.entry(block).or_default().push((to, count, sources.to_vec()));
        }
        Ok(())
    }

    /// Allocates registers for a value of a type; returns the first.
    fn allocate_value(&mut self, ty: u32) -> Result<Register, LoadError> {
        let count = self.module.registers_of(ty);
        let count = count.ok_or_else(|| self.current.unsupported_error(" of this type"))?;
        let first = self.program.registers as Register;
        self.program.registers += count as usize;
        Ok(first)
    }

    /// Returns the number of registers for the value of an id.
    fn width_of(&self, id: u32) -> u32 {
        self.types.get(&id).and_then(|ty| self.module.registers_of(*ty)).unwrap_or(1)
    }

    /// Returns the block that contains an instruction.
    fn block_of(&self, index: usize) -> u32 {
        let labels = self.module.body.iter().filter(|placed| placed.op == SpirvOp::Label);
        (labels.filter(|label| label.index <= index).count() as u32).saturating_sub(1)
    }

    fn lowered_value(&self, id: u32) -> Result<LoweredValue, LoadError> {
        self.lowered_values
            .get(&id)
            .copied()
            .ok_or_else(|| malformed_module(self.current.word, format!("no value %{id} here")))
    }

    /// Returns the register of a value without waiting for it.
    fn pending_register(&self, id: u32) -> Result<Register, LoadError> {
        match self.lowered_value(id)? {
            LoweredValue::Value(register) => Ok(register),
            _ => Err(malformed_module(self.current.word, format!("%{id} is not a number"))),
        }
    }

    /// Returns the register of a value after waiting for its load.
    fn awaited_register(&mut self, id: u32) -> Result<Register, LoadError> {
        let register = self.pending_register(id)?;
        let ty = self.types.get(&id).copied().unwrap_or(0);
        for leaf in self.value_leaves(ty, register) {
            self.wait_for(leaf.register);
        }
        Ok(register)
    }

    /// Returns the register of a value or an address, and the reference that the address points into.
    fn awaited_value_or_address(&mut self, id: u32) -> Result<(Register, Option<u16>), LoadError> {
        match self.lowered_value(id)? {
            LoweredValue::Pointer { reference, address } => Ok((address, Some(reference))),
            _ => Ok((self.awaited_register(id)?, None)),
        }
    }

    fn wait_for(&mut self, register: Register) {
        if self.loaded_registers.contains(&register) && !self.awaited_registers.contains(&register) {
            self.awaited_registers.push(register);
            self.program.ops.push(Op::Await { register });
        }
    }

    fn constant_operand(&self, id: u32) -> Result<u32, LoadError> {
        let value = self.module.constants.get(&id).map(|(_, value)| *value as u32);
        value.ok_or_else(|| self.current.unsupported_error(" with an operand that is not a constant"))
    }

    fn lower_body(&mut self) -> Result<(), LoadError> {
        // Loaded registers must be known before their first use, which a loop can place before the load.
        for placed in &self.module.body {
            self.current = placed;
            let operation = self.module.decode_instruction(placed)?;
            if memory::reads_memory(&operation)
                && let Ok(LoweredValue::Value(register)) = self.lowered_value(placed.result_id()?)
                && !self.reads_no_memory(&operation)
            {
                let leaves = self.value_leaves(placed.result_type_id()?, register);
                self.loaded_registers.extend(leaves.iter().map(|leaf| leaf.register));
            }
        }
        for placed in &self.module.body {
            self.current = placed;
            self.lower_or_defer(placed)?;
        }
        let end = self.program.ops.len() as u32;
        self.program.blocks.push(end);
        Ok(())
    }

    /// Returns true if an OpLoad reads a function variable, an input or a push constant.
    fn reads_no_memory(&self, operation: &SpirvOperation<'_>) -> bool {
        let SpirvOperation::Load { pointer, .. } = operation else { return false };
        match self.lowered_values.get(pointer) {
            Some(LoweredValue::Pointer { .. } | LoweredValue::MemoryVariable { .. }) => false,
            Some(_) => true,
            // A pointer whose lowered form is set by its access chain.
            None => {
                let class = self.types.get(pointer).and_then(|ty| self.module.type_of(*ty));
                !matches!(class, Some(SpirvType::Pointer { class, .. }) if !Self::has_no_address(*class))
            }
        }
    }

    fn lower_select(&mut self, condition: u32, yes: u32, no: u32) -> Result<(), LoadError> {
        // The condition is one for all components, or one for each.
        let conditions = self.width_of(condition);
        let condition = self.awaited_register(condition)?;
        let (yes, reference) = self.awaited_value_or_address(yes)?;
        let (no, other) = self.awaited_value_or_address(no)?;
        if reference != other {
            return Err(LoadError::Unsupported("OpSelect of pointers to several variables".into()));
        }
        let to = self.destination(reference)?;
        let width = self.width_of(self.current.result_id()?);
        let each = if conditions > 1 { (width / conditions).max(1) } else { width.max(1) };
        for word in 0..width {
            let (to, yes, no) = (to + word, yes + word, no + word);
            self.program.ops.push(Op::Select { to, condition: condition + word / each, yes, no });
        }
        Ok(())
    }

    /// Returns the register of a result: of a value, or of an address that points into `reference`.
    fn destination(&mut self, reference: Option<u16>) -> Result<Register, LoadError> {
        let result = self.current.result_id()?;
        match (self.lowered_value(result)?, reference) {
            (LoweredValue::Value(to), None) => Ok(to),
            (LoweredValue::Pointer { address, .. }, Some(reference)) => {
                self.lowered_values.insert(result, LoweredValue::Pointer { reference, address });
                Ok(address)
            }
            _ => Err(self.current.unsupported_error(" of this type")),
        }
    }

    /// Lowers a phi: edges copy its values; only a pointer's reference is fixed here.
    fn lower_phi(&mut self, sources: &[[u32; 2]]) -> Result<(), LoadError> {
        if !matches!(self.lowered_value(self.current.result_id()?)?, LoweredValue::Pointer { .. }) {
            return Ok(());
        }
        let mut common = None;
        for [value, _] in sources {
            let (_, reference) = self.awaited_value_or_address(*value)?;
            if reference
                .is_none_or(|reference| reference == u16::MAX || common.is_some_and(|c| c != reference))
            {
                return Err(LoadError::Unsupported("OpPhi of pointers to several variables".into()));
            }
            common = reference;
        }
        self.destination(common).map(|_| ())
    }

    fn emit_copies(&mut self, to: Register, from: Register, count: u32) {
        for word in 0..count {
            self.program.ops.push(Op::Copy { to: to.wrapping_add(word), from: from.wrapping_add(word) });
        }
    }

    fn lower_variable(&mut self, initializer: Option<u32>) -> Result<(), LoadError> {
        let LoweredValue::Variable(to) = self.lowered_value(self.current.result_id()?)? else {
            return Err(LoadError::Unsupported("OpVariable of this class in a function".into()));
        };
        if let Some(id) = initializer {
            let from = self.awaited_register(id)?;
            self.emit_assignments(to, from, self.width_of(id));
        }
        Ok(())
    }

    fn emit_assignments(&mut self, to: Register, from: Register, count: u32) {
        for word in 0..count {
            self.program.ops.push(Op::Assign { to: to.wrapping_add(word), from: from.wrapping_add(word) });
        }
    }

    fn lower_switch(&mut self, selector_id: u32, default: u32, literals: &[u32]) -> Result<(), LoadError> {
        let selector = self.awaited_register(selector_id)?;
        let is_wide = self.width_of(selector_id) == 2;
        let mut cases = Vec::new();
        for case in spirv_reader::switch_cases(literals, self.current.selector_bits) {
            cases.push((case.literal, self.add_edge(case.target)?));
        }
        let otherwise = self.add_edge(default)?;
        let first = self.program.cases.len() as u32;
        self.program.cases.extend(cases);
        let cases = (first, self.program.cases.len() as u32);
        self.program.ops.push(Op::Switch(crate::program::Switch { selector, is_wide, cases, otherwise }));
        // A selector that is computed without memory decides the role of an invocation. This applies to the
        // first block, and to later ones in stages whose idle invocations return earlier.
        let body = || self.module.body.iter();
        let end = match self.module.stage {
            Stage::Compute | Stage::Mesh | Stage::Task => body().filter(|p| p.op == SpirvOp::Label).nth(1),
            Stage::Vertex | Stage::Fragment => body()
                .find(|p| self.module.decode_instruction(p).is_ok_and(|one| operation::touches_memory(&one))),
        };
        let defined = body().find(|p| p.result == selector_id);
        let is_early = match (defined, end) {
            (Some(defined), Some(end)) => defined.index < end.index,
            _ => false,
        };
        if is_early
            && !is_wide
            && !self.loaded_registers.contains(&selector)
            && !self.program.role_selectors.contains(&selector)
        {
            self.program.role_selectors.push(selector);
        }
        Ok(())
    }

    /// Checks that the output counts of a mesh or task shader are the constant 0.
    fn check_no_outputs(&self, counts: &[u32]) -> Result<(), LoadError> {
        let is_zero = |id| self.module.constants.get(id).is_some_and(|(_, value)| *value == 0);
        if counts.iter().all(is_zero) {
            Ok(())
        } else {
            Err(self.current.unsupported_error(" of an operand"))
        }
    }

    /// Adds an edge from this block to the block with this label.
    fn add_edge(&mut self, label: u32) -> Result<u32, LoadError> {
        let to = self.blocks.get(&label).copied();
        let to = to.ok_or_else(|| malformed_module(self.current.word, format!("no block %{label}")))?;
        let mut copies = Vec::new();
        for (register, count, sources) in self.phis.get(&to).cloned().unwrap_or_default() {
            let from = sources.iter().find(|[_, from]| *from == self.label).map(|[value, _]| *value);
            let from = from
                .ok_or_else(|| malformed_module(self.current.word, "a phi without a value for this block"))?;
            let (from, _) = self.awaited_value_or_address(from)?;
            copies.extend((0..count).map(|word| (register + word, from + word)));
        }
        let crossing = copies
            .iter()
            .enumerate()
            .any(|(at, (to, _))| copies.iter().skip(at + 1).any(|(_, from)| from == to));
        let first = self.program.copies.len() as u32;
        self.program.copies.extend(copies);
        let copies = (first, self.program.copies.len() as u32);
        // Outermost loops are only known once all blocks are lowered.
        self.program.edges.push(Edge {
            to,
            copies,
            needs_temporaries: crossing,
            ends_round: to <= self.block,
        });
        Ok((self.program.edges.len() - 1) as u32)
    }
}
