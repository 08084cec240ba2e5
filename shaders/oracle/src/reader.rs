//! Reads a module: constants, variables and the meaning of words. Shares no code with the emitter.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{InterlockOrder, Order, ScalarType, Scope, Semantics, StorageClass, StorageClassSet};
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Decoration, ExecutionMode, MemoryModel, Op, StorageClass as SpirvClass, Word};

use shaders::ModuleError;

/// A module, indexed by id.
pub(crate) struct Reader {
    pub module: Module,
    constants: BTreeMap<Word, u64>,
    bindings: BTreeMap<Word, u32>,
    decorations: BTreeSet<(Word, Decoration)>,
    /// The stride of each array type in bytes.
    strides: BTreeMap<Word, u32>,
    /// The offset of each structure member in bytes.
    offsets: BTreeMap<(Word, u32), u32>,
    /// The instruction that defines each id.
    definitions: BTreeMap<Word, Instruction>,
    /// Variables of workgroup memory, in order of declaration.
    workgroup_variables: Vec<Word>,
}

/// The position of a pointer's target or a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub memory: KernelMemory,
    /// Number that is multiplied by the spacing, or added to the lane in explicitly laid out workgroup
    /// memory; `None` if the position does not depend on one.
    pub storage: Option<u32>,
    /// The type of the access: an unsigned integer or a floating-point type.
    pub element: ScalarType,
    /// Elements of one access: 1, or the components of a vector.
    pub components: u32,
    /// Bytes from the start of the storage.
    pub offset: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelMemory {
    /// A buffer or an image with this binding.
    Binding(u32),
    /// The location buffer by its address.
    Address,
    /// The workgroup variable with this index, in order of declaration.
    Workgroup(u32),
}

/// The target of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointee {
    Memory(Site, Word),
    /// A variable of the function, an input or a parameter.
    OtherMemory,
}

impl Reader {
    pub fn new(words: &[u32]) -> Result<Reader, ModuleError> {
        let module = shaders::parse_module(words)?;
        let mut reader = Reader {
            constants: BTreeMap::new(),
            bindings: BTreeMap::new(),
            decorations: BTreeSet::new(),
            strides: BTreeMap::new(),
            offsets: BTreeMap::new(),
            definitions: BTreeMap::new(),
            workgroup_variables: Vec::new(),
            module,
        };
        for instruction in reader.module.all_inst_iter() {
            match (instruction.class.opcode, instruction.result_id, &instruction.operands[..]) {
                (Op::Constant, Some(id), [Operand::LiteralBit32(value)]) => {
                    reader.constants.insert(id, u64::from(*value));
                }
                (Op::Constant, Some(id), [Operand::LiteralBit64(value)]) => {
                    reader.constants.insert(id, *value);
                }
                (Op::Decorate, _, [Operand::IdRef(id), Operand::Decoration(decoration), rest @ ..]) => {
                    reader.decorations.insert((*id, *decoration));
                    if let (Decoration::Binding, [Operand::LiteralBit32(binding)]) = (decoration, rest) {
                        reader.bindings.insert(*id, *binding);
                    }
                    if let (Decoration::ArrayStride, [Operand::LiteralBit32(stride)]) = (decoration, rest) {
                        reader.strides.insert(*id, *stride);
                    }
                }
                (
                    Op::MemberDecorate,
                    _,
                    [
                        Operand::IdRef(id),
                        Operand::LiteralBit32(member),
                        Operand::Decoration(Decoration::Offset),
                        Operand::LiteralBit32(offset),
                    ],
                ) => {
                    reader.offsets.insert((*id, *member), *offset);
                }
                (Op::Variable, Some(id), [Operand::StorageClass(SpirvClass::Workgroup), ..]) => {
                    reader.workgroup_variables.push(id);
                }
                _ => {}
            }
            if let Some(id) = instruction.result_id {
                reader.definitions.insert(id, instruction.clone());
            }
        }
        Ok(reader)
    }

    /// Returns the value of a 32-bit constant.
    pub fn constant(&self, id: Word) -> Option<u32> {
        self.constants.get(&id).and_then(|value| u32::try_from(*value).ok())
    }

    /// Returns the bits of a constant of any width.
    pub fn constant_bits(&self, id: Word) -> Option<u64> {
        self.constants.get(&id).copied()
    }

    pub fn is_decorated(&self, id: Word, decoration: Decoration) -> bool {
        self.decorations.contains(&(id, decoration))
    }

    /// Returns true if every variable of workgroup memory is zero-initialized; `None` if there is none.
    pub fn is_workgroup_zeroed(&self) -> Option<bool> {
        let is_null = |id: &Word| match self.definitions.get(id).map(|definition| &definition.operands[..]) {
            Some([_, Operand::IdRef(value)]) => self
                .definitions
                .get(value)
                .is_some_and(|definition| definition.class.opcode == Op::ConstantNull),
            _ => false,
        };
        (!self.workgroup_variables.is_empty()).then(|| self.workgroup_variables.iter().all(is_null))
    }

    /// Returns true if the entry point declares maximal reconvergence.
    pub fn is_maximally_reconverging(&self) -> bool {
        let required = Operand::ExecutionMode(ExecutionMode::MaximallyReconvergesKHR);
        self.module.execution_modes.iter().any(|mode| mode.operands.contains(&required))
    }

    /// Returns the order of interlocked sections by the execution mode; `None` if there are none or several
    /// modes.
    pub fn interlock_order(&self) -> Option<InterlockOrder> {
        let modes = self.module.execution_modes.iter().flat_map(|mode| &mode.operands);
        let mut orders = modes.filter_map(|operand| match operand {
            Operand::ExecutionMode(
                ExecutionMode::PixelInterlockOrderedEXT
                | ExecutionMode::SampleInterlockOrderedEXT
                | ExecutionMode::ShadingRateInterlockOrderedEXT,
            ) => Some(InterlockOrder::Ordered),
            Operand::ExecutionMode(
                ExecutionMode::PixelInterlockUnorderedEXT
                | ExecutionMode::SampleInterlockUnorderedEXT
                | ExecutionMode::ShadingRateInterlockUnorderedEXT,
            ) => Some(InterlockOrder::Unordered),
            _ => None,
        });
        orders.next().filter(|_| orders.next().is_none())
    }

    /// Returns true if the module uses the Vulkan memory model.
    pub fn has_vulkan_model(&self) -> bool {
        let operands = self.module.memory_model.as_ref().map(|model| &model.operands[..]);
        matches!(operands, Some([_, Operand::MemoryModel(MemoryModel::Vulkan)]))
    }

    pub fn definition(&self, id: Word) -> Option<&Instruction> {
        self.definitions.get(&id)
    }

    fn opcode_and_ids(&self, id: Word) -> Option<(Op, Vec<Word>)> {
        self.definition(id).map(|definition| (definition.class.opcode, operand_ids(definition)))
    }

    /// Returns the origin of a chain of copies and selections: the first alternative of each.
    fn trace_origin(&self, pointer: Word) -> Word {
        let mut pointer = pointer;
        // Phi chains of kernels are acyclic; the bound handles cyclic ones in other modules.
        for _ in 0..16 {
            pointer = match self.opcode_and_ids(pointer) {
                Some((Op::CopyObject | Op::Phi, operands)) => operands.first().copied().unwrap_or(pointer),
                Some((Op::Select, operands)) => operands.get(1).copied().unwrap_or(pointer),
                _ => break,
            };
        }
        pointer
    }

    /// Returns true if the other alternative of a selected pointer is in the same variable.
    pub fn has_one_base_variable(&self, pointer: Word) -> bool {
        let base = |id: Word| {
            self.opcode_and_ids(self.trace_origin(id)).and_then(|(_, operands)| operands.first().copied())
        };
        match self.opcode_and_ids(pointer) {
            Some((Op::Select, operands)) => {
                matches!(operands[..], [_, left, right] if base(left) == base(right))
            }
            Some((Op::Phi, operands)) => {
                matches!(operands[..], [left, _, right, _] if base(left) == base(right))
            }
            _ => true,
        }
    }

    /// Returns the target of a pointer; `None` if a kernel contains no such pointer.
    pub fn pointee(&self, pointer: Word) -> Option<Pointee> {
        let origin = self.trace_origin(pointer);
        match self.opcode_and_ids(origin)? {
            (Op::Variable, _) => Some(Pointee::OtherMemory),
            (Op::AccessChain, operands) => {
                // A unit and a member of it, or an element.
                let (base, index, place) = match operands[..] {
                    [base, _, unit, member] => (base, unit, Some(member)),
                    [base, .., index] => (base, index, None),
                    _ => return None,
                };
                let memory = match self.opcode_and_ids(base)? {
                    (Op::Bitcast, _) => KernelMemory::Address,
                    (Op::Variable, _) => {
                        match (self.bindings.get(&base), self.workgroup_variable_index(base)) {
                            (Some(binding), _) => KernelMemory::Binding(*binding),
                            (None, Some(number)) => KernelMemory::Workgroup(number),
                            (None, None) => return Some(Pointee::OtherMemory),
                        }
                    }
                    _ => return None,
                };
                let (element, components) = self.element_of_pointer(origin)?;
                let mut site = Site { components, ..self.element_site(memory, element, index) };
                if let Some(member) = place {
                    let (_, unit) = self.unit_layout(base)?;
                    site.offset = *self.offsets.get(&(unit, self.constant(member)?))?;
                }
                Some(Pointee::Memory(site, base))
            }
            (Op::ImageTexelPointer, operands) => {
                let (image, coordinates) = (*operands.first()?, *operands.get(1)?);
                let (element, _) = self.element_of_pointer(origin)?;
                Some(Pointee::Memory(self.texel_site(image, coordinates, element)?, image))
            }
            _ => None,
        }
    }

    /// Returns the required alignment of a vector access by address, derived from its position.
    pub fn required_alignment(&self, site: &Site, base: Word) -> Option<u32> {
        let bytes = site.element.bytes();
        if site.components == 1 {
            return Some(bytes);
        }
        let (stride, _) = self.unit_layout(base)?;
        let place = if site.offset == 0 { stride } else { site.offset & site.offset.wrapping_neg() };
        Some(place.min(stride).min((bytes * site.components).next_power_of_two()))
    }

    /// Returns stride and element type of the array in a pointer's block.
    fn unit_layout(&self, base: Word) -> Option<(u32, Word)> {
        let pointer = self.definition(base)?.result_type?;
        let (Op::TypePointer, to) = self.opcode_and_ids(pointer)? else { return None };
        let (Op::TypeStruct, members) = self.opcode_and_ids(*to.first()?)? else { return None };
        let array = *members.first()?;
        let (Op::TypeArray | Op::TypeRuntimeArray, element) = self.opcode_and_ids(array)? else {
            return None;
        };
        Some((*self.strides.get(&array)?, *element.first()?))
    }

    /// Returns the position of a texel, and the variable of its image.
    pub fn image_site(&self, image: Word, coordinates: Word, texels: Word) -> Option<(Site, Word)> {
        let (Op::Load, operands) = self.opcode_and_ids(image)? else { return None };
        let variable = *operands.first()?;
        let vector = self.definition(texels)?.result_type?;
        let (_, component) = self.opcode_and_ids(vector)?;
        let element = self.element_type(*component.first()?)?;
        Some((self.texel_site(variable, coordinates, element)?, variable))
    }

    fn texel_site(&self, image: Word, coordinates: Word, element: ScalarType) -> Option<Site> {
        let binding = self.bindings.get(&image)?;
        let unit = match self.opcode_and_ids(coordinates) {
            // Row and column of the same number.
            Some((Op::CompositeConstruct, parts)) => {
                let [column, row] = parts[..] else { return None };
                match (self.opcode_and_ids(column)?, self.opcode_and_ids(row)?) {
                    ((Op::UMod, column), (Op::UDiv, row)) if column == row => *column.first()?,
                    _ => return None,
                }
            }
            _ => coordinates,
        };
        Some(self.element_site(KernelMemory::Binding(*binding), element, unit))
    }

    fn workgroup_variable_index(&self, variable: Word) -> Option<u32> {
        self.workgroup_variables.iter().position(|known| *known == variable).map(|number| number as u32)
    }

    /// Returns storage index and offset of an element from its index formula.
    fn element_site(&self, memory: KernelMemory, element: ScalarType, index: Word) -> Site {
        let (mut unit, mut offset) = (index, 0);
        if let Some((Op::IAdd, operands)) = self.opcode_and_ids(unit)
            && let [rest, constant] = operands[..]
            && let Some(elements) = self.constant(constant)
        {
            (unit, offset) = (rest, elements.saturating_mul(element.bits()) / 8);
        }
        if let Some((Op::IMul, operands)) = self.opcode_and_ids(unit)
            && let [rest, constant] = operands[..]
            && self.constant(constant).is_some()
        {
            unit = rest;
        }
        let mut storage = None;
        if let Some((Op::IAdd, operands)) = self.opcode_and_ids(unit)
            && let [left, right] = operands[..]
        {
            storage = match self.opcode_and_ids(right) {
                Some((Op::IMul, factors)) => factors.first().and_then(|number| self.constant(*number)),
                _ => self.constant(left),
            };
        }
        Site { memory, storage, element, components: 1, offset }
    }

    /// Returns the element type of a pointer's target, and the number of elements.
    fn element_of_pointer(&self, pointer: Word) -> Option<(ScalarType, u32)> {
        let ty = self.definition(pointer)?.result_type?;
        let (Op::TypePointer, operands) = self.opcode_and_ids(ty)? else { return None };
        let to = self.definition(*operands.first()?)?;
        match (to.class.opcode, &to.operands[..]) {
            (Op::TypeVector, [Operand::IdRef(component), Operand::LiteralBit32(count)]) => {
                Some((self.element_type(*component)?, *count))
            }
            _ => Some((self.element_type(*operands.first()?)?, 1)),
        }
    }

    fn element_type(&self, ty: Word) -> Option<ScalarType> {
        let definition = self.definition(ty)?;
        Some(match (definition.class.opcode, definition.operands.first()?) {
            (Op::TypeInt, Operand::LiteralBit32(8)) => ScalarType::U8,
            (Op::TypeInt, Operand::LiteralBit32(16)) => ScalarType::U16,
            (Op::TypeInt, Operand::LiteralBit32(32)) => ScalarType::U32,
            (Op::TypeInt, Operand::LiteralBit32(64)) => ScalarType::U64,
            (Op::TypeFloat, Operand::LiteralBit32(32)) => ScalarType::F32,
            (Op::TypeFloat, Operand::LiteralBit32(64)) => ScalarType::F64,
            _ => return None,
        })
    }
}

/// Returns the id operands of an instruction in any role.
pub(crate) fn operand_ids(instruction: &Instruction) -> Vec<Word> {
    instruction.operands.iter().filter_map(Operand::id_ref_any).collect()
}

/// Converts a scope word; `None` for scopes that litmus tests do not have.
pub(crate) fn parse_scope(word: u32) -> Option<Scope> {
    Some(match word {
        0 => Scope::CrossDevice,
        1 => Scope::Device,
        2 => Scope::Workgroup,
        3 => Scope::Subgroup,
        4 => Scope::Invocation,
        5 => Scope::QueueFamily,
        _ => return None,
    })
}

/// Converts a memory semantics word; `None` for several orders, sequential consistency and bits that litmus
/// tests do not have.
pub(crate) fn parse_semantics(word: u32) -> Option<Semantics> {
    let order = match word & 0x1f {
        0x0 => Order::Relaxed,
        0x2 => Order::Acquire,
        0x4 => Order::Release,
        0x8 => Order::AcquireRelease,
        _ => return None,
    };
    let mut classes = StorageClassSet::EMPTY;
    for (bit, class) in [
        (0x40, StorageClass::Buffer),
        (0x100, StorageClass::Workgroup),
        (0x800, StorageClass::Image),
        (0x1000, StorageClass::Output),
    ] {
        if word & bit != 0 {
            classes = classes.with(class);
        }
    }
    const KNOWN_BITS: u32 = 0x1f | 0x40 | 0x100 | 0x800 | 0x1000 | 0x2000 | 0x4000;
    if word & !KNOWN_BITS != 0 {
        return None;
    }
    Some(Semantics {
        order,
        classes,
        make_available: word & 0x2000 != 0,
        make_visible: word & 0x4000 != 0,
        ..Semantics::RELAXED
    })
}
