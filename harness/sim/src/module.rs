//! The declarations of a module, and its entry point with all calls inlined.

use std::collections::{HashMap, HashSet};

use arithmetic::TexelFormat;
use plan::Interface;
use rspirv::spirv::{Dim, ExecutionMode, ImageFormat, Op, StorageClass};
use spirv_reader::{
    ConstantValue, SourcePosition, Specialized, SpirvConstant, SpirvModule, SpirvOperation, SpirvType, Stage,
};

use crate::instruction::{LoadError, LocatedInstruction, malformed_module};

/// The maximal number of words in a value: each invocation has a register for each.
const MAX_VALUE_WORDS: u32 = 1024;

/// The declarations that the machine uses or ignores, by the names of SPIR-V.
const DECLARATIONS: &str = include_str!("../data/declarations.txt");

/// A storage image type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageType {
    /// The number of coordinates.
    pub dimensions: u32,
    /// The format of texels with more than one number.
    pub format: Option<TexelFormat>,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub id: u32,
    /// The type of its content.
    pub ty: u32,
    pub class: StorageClass,
    /// An initializer sets its first value: in workgroup memory a null constant.
    pub has_initializer: bool,
    /// The offset of the declaration in words.
    pub word: usize,
}

/// The declarations of a module and the body of its function.
pub(crate) struct LoadedModule<'m> {
    pub layout: Specialized<'m>,
    /// Numbers and booleans: type and bits.
    pub constants: HashMap<u32, (u32, u64)>,
    /// Null and undefined constants that are not numbers: ids and types.
    pub nulls: Vec<(u32, u32)>,
    /// Global variables, in the order of the module.
    pub variables: Vec<Variable>,
    pub bindings: HashMap<u32, u32>,
    images: HashMap<u32, ImageType>,
    /// The function of the entry point.
    pub entry: u32,
    pub stage: Stage,
    pub workgroup_size: [u32; 3],
    /// True if the entry point declares maximal reconvergence.
    pub has_maximal_reconvergence: bool,
    /// True if interlocked sections are ordered by primitive, if the entry point declares an interlock.
    pub interlock_is_ordered: Option<bool>,
    /// The instructions of the only function, from its first label.
    pub body: Vec<LocatedInstruction>,
}

impl<'m> LoadedModule<'m> {
    /// Specializes a module for an interface. [`legalize`](crate::legalize::legalize) adds the body.
    pub fn new(
        module: &'m SpirvModule,
        interface: Option<&Interface>,
    ) -> Result<LoadedModule<'m>, LoadError> {
        let known: HashSet<&str> = DECLARATIONS.lines().collect();
        for (_, op) in module.declarations() {
            let name = format!("{op:?}");
            if !known.contains(name.as_str()) {
                return Err(LoadError::Unsupported(format!("Op{name}")));
            }
        }
        let entry = module.find_entry(Some(interface.map_or("main", |interface| &interface.entry)))?;
        let constants = interface.map(|interface| interface.constants.as_slice()).unwrap_or_default();
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let given = constants.iter().map(|(id, bytes)| (*id, number(bytes))).collect();
        let layout = Specialized::new(module, &given, &HashMap::new(), None)?;
        let modes = module.execution_modes(entry.function);
        let mut loaded = LoadedModule {
            workgroup_size: layout.local_size(entry.function)?,
            layout,
            constants: HashMap::new(),
            nulls: Vec::new(),
            variables: Vec::new(),
            bindings: HashMap::new(),
            images: HashMap::new(),
            entry: entry.function,
            stage: entry.shader_stage(),
            has_maximal_reconvergence: modes.contains(&ExecutionMode::MaximallyReconvergesKHR),
            interlock_is_ordered: modes.iter().rev().find_map(|mode| interlock_order(*mode)),
            body: Vec::new(),
        };
        loaded.check_types()?;
        loaded.add_constants();
        loaded.add_variables(interface)?;
        Ok(loaded)
    }

    /// Returns an instruction with named operands.
    pub fn decode_instruction<'o>(
        &self,
        placed: &'o LocatedInstruction,
    ) -> Result<SpirvOperation<'o>, LoadError> {
        let decoded = self.source().decode_operation(placed.op, &placed.operands);
        decoded.map_err(|problem| problem.located_at(SourcePosition::Word(placed.word as u32)).into())
    }

    pub fn source(&self) -> &'m SpirvModule {
        self.layout.module
    }

    /// Refuses types that the machine lacks.
    fn check_types(&mut self) -> Result<(), LoadError> {
        let module = self.source();
        let mut ids: Vec<u32> = module.types.keys().copied().collect();
        // A map has no fixed order, but the first refusal is shown.
        ids.sort_unstable();
        for id in ids {
            let lacks = match &module.types[&id] {
                SpirvType::Integer { bits, .. } if !matches!(bits, 8 | 16 | 32 | 64) => {
                    format!("OpTypeInt {bits}")
                }
                SpirvType::Float { bits } if !matches!(bits, 16 | 32 | 64) => format!("OpTypeFloat {bits}"),
                SpirvType::Vector { count, .. } if !matches!(count, 2..=4) => format!("a vector of {count}"),
                SpirvType::Matrix { count, .. } if !matches!(count, 2..=4) => {
                    format!("a matrix of {count} columns")
                }
                SpirvType::Handle(Op::TypeImage) => {
                    let image =
                        self.image_type(module.handle_operands.get(&id).map_or(&[], Vec::as_slice))?;
                    self.images.insert(id, image);
                    continue;
                }
                SpirvType::Handle(op) => format!("Op{op:?}"),
                _ => continue,
            };
            return Err(LoadError::Unsupported(lacks));
        }
        Ok(())
    }

    fn image_type(&self, operands: &[u32]) -> Result<ImageType, LoadError> {
        let [texel, dimension, depth, arrayed, samples, sampled, format, ..] = *operands else {
            return Err(malformed_module(0, "an image type without all operands"));
        };
        let dimensions = match Dim::from_u32(dimension) {
            Some(Dim::Dim1D | Dim::DimBuffer) => 1,
            Some(Dim::Dim2D) => 2,
            _ => return Err(LoadError::Unsupported("OpTypeImage of this dimension".into())),
        };
        let one = [ImageFormat::R32f, ImageFormat::R32i, ImageFormat::R32ui, ImageFormat::Unknown];
        let format = match ImageFormat::from_u32(format) {
            Some(format) if !one.contains(&format) => {
                let known = TexelFormat::from_spirv_format(format as u32)
                    .filter(|known| known.texel_bytes() == 4 && known.pack([0; 4]).is_some());
                Some(known.ok_or_else(|| LoadError::Unsupported(format!("images of format {format:?}")))?)
            }
            _ => None,
        };
        match [depth, arrayed, samples, sampled] {
            [0, 0, 0, 2] if self.number_bits(texel) == Some(32) => Ok(ImageType { dimensions, format }),
            _ => Err(LoadError::Unsupported("OpTypeImage of this kind".into())),
        }
    }

    fn add_constants(&mut self) {
        let module = self.source();
        let mut ids: Vec<u32> = module.constants.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            if let (Some((ty, _)), Some(value)) =
                (module.constants.get(&id), self.layout.constants().get(&id))
            {
                let value = value.clone();
                self.add_constant(id, *ty, &value);
            }
        }
    }

    /// Declares a constant; returns its parts if it is a composite.
    pub fn add_constant<'v>(&mut self, id: u32, ty: u32, value: &'v ConstantValue) -> &'v [ConstantValue] {
        match value {
            ConstantValue::Composite(parts) => return parts,
            // An undefined number is 0.
            _ if self.is_number(ty) => {
                self.constants.insert(id, (ty, value.as_number().unwrap_or(0)));
            }
            _ if self.nulls.contains(&(id, ty)) => {}
            _ => self.nulls.push((id, ty)),
        }
        &[]
    }

    /// Returns the ids of the parts of a composite constant, if they have any.
    pub fn constituents(&self, id: u32) -> Option<&'m [u32]> {
        match self.source().constants.get(&id) {
            Some((_, SpirvConstant::Composite(parts))) => Some(parts),
            _ => None,
        }
    }

    /// Adds the variables of a module, except private ones.
    fn add_variables(&mut self, interface: Option<&Interface>) -> Result<(), LoadError> {
        let module = self.source();
        let mut variables: Vec<_> = module.variables.iter().collect();
        variables.sort_by_key(|(_, variable)| variable.place);
        for (id, variable) in variables {
            let decorations = module.decorations_of(*id);
            let (set, initialized) = (decorations.set.unwrap_or(0), variable.initializer != 0);
            let binding = decorations.binding.map(|binding| match interface {
                // A variable without a binding in the interface is unused.
                Some(interface) => {
                    interface.binding_position(set, binding).map_or(u32::MAX, |place| place as u32)
                }
                None => binding,
            });
            if interface.is_none() && set != 0 {
                return Err(LoadError::Unsupported("descriptor sets other than 0".into()));
            }
            if variable.declared_class == StorageClass::Private {
                continue;
            }
            if interface.is_some() && initialized {
                return Err(LoadError::Unsupported("variables of the module with initial values".into()));
            }
            self.bindings.extend(binding.map(|binding| (*id, binding)));
            let word = match variable.place {
                SourcePosition::Word(word) => word as usize,
                SourcePosition::Line(_) | SourcePosition::Module => 0,
            };
            let class = variable.declared_class;
            self.variables.push(Variable {
                id: *id,
                ty: variable.ty,
                class,
                has_initializer: initialized,
                word,
            });
        }
        Ok(())
    }

    pub fn type_of(&self, ty: u32) -> Option<&'m SpirvType> {
        self.source().types.get(&ty)
    }

    pub fn image_type_of(&self, ty: u32) -> Option<ImageType> {
        self.images.get(&ty).copied()
    }

    /// Returns the bits of an integer or float.
    pub fn number_bits(&self, ty: u32) -> Option<u32> {
        match self.type_of(ty)? {
            SpirvType::Integer { bits, .. } | SpirvType::Float { bits } => Some(*bits),
            _ => None,
        }
    }

    /// Returns true for numbers and booleans.
    fn is_number(&self, ty: u32) -> bool {
        self.number_bits(ty).is_some() || self.type_of(ty) == Some(&SpirvType::Bool)
    }

    /// Returns the length of an array; `None` if it has none.
    pub fn array_length(&self, length: u32) -> Option<u32> {
        self.layout.array_length(length).ok().and_then(|length| u32::try_from(length).ok())
    }

    /// Returns the size of a type in bytes; 0 for arrays of unknown length.
    pub fn bytes_of(&self, ty: u32) -> u32 {
        match self.type_of(ty) {
            Some(SpirvType::Pointer { .. }) | None => 0,
            Some(_) => {
                self.layout.size_of(ty).map_or(u32::MAX, |size| u32::try_from(size).unwrap_or(u32::MAX))
            }
        }
    }

    /// Returns the number of one-word registers of a value, low word first; `None` if it does not fit into
    /// registers.
    pub fn registers_of(&self, ty: u32) -> Option<u32> {
        let (inner, count) = match self.type_of(ty)? {
            SpirvType::Bool => return Some(1),
            SpirvType::Integer { bits, .. } | SpirvType::Float { bits } => return Some(bits.div_ceil(32)),
            SpirvType::Vector { element, count } => (*element, *count),
            SpirvType::Matrix { column, count } => (*column, *count),
            SpirvType::Array { element, length } => (*element, self.array_length(*length)?),
            SpirvType::Struct { members } => {
                let sum =
                    members.iter().try_fold(0u32, |sum, member| sum.checked_add(self.registers_of(*member)?));
                return sum.filter(|words| *words <= MAX_VALUE_WORDS);
            }
            SpirvType::Void
            | SpirvType::RuntimeArray { .. }
            | SpirvType::Pointer { .. }
            | SpirvType::Function { .. }
            | SpirvType::Handle(_) => return None,
        };
        self.registers_of(inner)?.checked_mul(count).filter(|words| *words <= MAX_VALUE_WORDS)
    }

    /// Returns the stride of an array in bytes.
    pub fn stride_of(&self, array: u32, element: u32) -> u32 {
        let stride = self.source().decorations_of(array).stride;
        stride.map_or_else(|| self.bytes_of(element), |stride| stride as u32)
    }

    /// Returns the offset of a structure member in bytes.
    pub fn offset_of(&self, structure: u32, member: u32) -> u32 {
        self.layout.part_of(structure, member.into()).map_or(0, |part| part.offset as u32)
    }

    /// Returns the explicit layout of a member that is a matrix or an array of them: the matrix stride in bytes, and
    /// true for row-major.
    pub fn matrix_layout(&self, structure: u32, member: u32) -> Option<(u32, bool)> {
        let decorations = self.source().member_decorations.get(&(structure, member))?;
        decorations.matrix_stride.map(|stride| (stride as u32, decorations.row_major))
    }

    /// Returns true for a member that is Coherent or Volatile.
    pub fn is_coherent_member(&self, structure: u32, member: u32) -> bool {
        let decorations = self.source().member_decorations.get(&(structure, member));
        decorations.is_some_and(|own| own.coherent || own.volatile)
    }
}

/// Returns true for interlocks ordered by primitive; `None` for modes that declare no interlock.
fn interlock_order(mode: ExecutionMode) -> Option<bool> {
    match mode {
        // Every fragment covers one pixel with one sample.
        ExecutionMode::PixelInterlockOrderedEXT | ExecutionMode::SampleInterlockOrderedEXT => Some(true),
        ExecutionMode::PixelInterlockUnorderedEXT | ExecutionMode::SampleInterlockUnorderedEXT => Some(false),
        _ => None,
    }
}
