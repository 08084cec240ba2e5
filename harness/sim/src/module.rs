//! Parses a SPIR-V module into located instructions and declarations.

use std::collections::{HashMap, HashSet};

use arithmetic::TexelFormat;
use plan::Interface;
use rspirv::binary::{Consumer, ParseAction, ParseState, parse_words};
use rspirv::dr::{Instruction, ModuleHeader, Operand};
use rspirv::spirv::{
    BuiltIn, Decoration, Dim, ExecutionMode, ExecutionModel, ImageFormat, MemoryModel, Op, StorageClass,
};

use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::legalize::legalize;
use crate::program::Stage;

const HEADER_WORDS: usize = 5;
/// The maximal number of words in a value: each invocation has a register for each.
const MOST_WORDS: u32 = 1024;

/// A type declaration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SpirvType {
    Void,
    Bool,
    /// An integer or a floating-point number of this many bits.
    Number {
        bits: u32,
        float: bool,
    },
    /// A storage image: the number of coordinates, and the format of texels with more than one number.
    Image {
        dimensions: u32,
        format: Option<TexelFormat>,
    },
    Vector {
        element: u32,
        count: u32,
    },
    Matrix {
        column: u32,
        count: u32,
    },
    Array {
        element: u32,
        count: Option<u32>,
    },
    Struct {
        members: Vec<u32>,
    },
    Pointer {
        class: StorageClass,
        to: u32,
    },
    Function,
}

/// A global variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub id: u32,
    /// The pointer type of the variable.
    pub pointer: u32,
    pub class: StorageClass,
    /// An initializer sets its first value: in workgroup memory a null constant.
    pub initialized: bool,
    /// The offset of the declaration in words.
    pub word: usize,
}

/// The declarations of a module and the body of its function.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedModule {
    pub types: HashMap<u32, SpirvType>,
    /// Numbers and booleans: type and bits.
    pub constants: HashMap<u32, (u32, u64)>,
    /// Null constants that are not numbers: ids and types.
    pub nulls: Vec<(u32, u32)>,
    /// The memory model is Vulkan's; GLSL450's otherwise.
    pub vulkan: bool,
    /// Global variables, in the order of the module.
    pub variables: Vec<Variable>,
    pub names: HashMap<u32, String>,
    pub bindings: HashMap<u32, u32>,
    pub built_ins: HashMap<u32, BuiltIn>,
    /// The locations of inputs and outputs that connect the stages of a draw.
    pub locations: HashMap<u32, u32>,
    pub aliased: Vec<u32>,
    /// Variables decorated `Restrict`.
    pub restrict: Vec<u32>,
    /// Variables decorated `NonWritable`.
    pub non_writable: Vec<u32>,
    /// Variables that are Coherent or Volatile.
    pub coherent: Vec<u32>,
    /// Structure members that are Coherent or Volatile.
    pub coherent_members: HashSet<(u32, u32)>,
    /// Structures with an explicit layout.
    pub blocks: Vec<u32>,
    /// Array strides in bytes.
    pub strides: HashMap<u32, u32>,
    /// Member offsets in bytes.
    pub offsets: HashMap<(u32, u32), u32>,
    /// Members that are matrices, or arrays of them: the matrix stride in bytes, and true for row-major.
    pub matrices: HashMap<(u32, u32), (u32, bool)>,
    pub stage: Stage,
    /// The workgroup size of a compute shader.
    pub workgroup_size: Option<[u32; 3]>,
    /// True if the entry point declares maximal reconvergence.
    pub reconverges: bool,
    /// True if interlocked sections are ordered by primitive, if the entry point declares an interlock.
    pub sections: Option<bool>,
    /// The instructions of the only function, from its first label.
    pub body: Vec<LocatedInstruction>,
}

#[derive(Default)]
struct InstructionCollector(Vec<Instruction>);

impl Consumer for InstructionCollector {
    fn initialize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn finalize(&mut self) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_header(&mut self, _: ModuleHeader) -> ParseAction {
        ParseAction::Continue
    }

    fn consume_instruction(&mut self, instruction: Instruction) -> ParseAction {
        self.0.push(instruction);
        ParseAction::Continue
    }
}

/// Parses the words into instructions.
pub(crate) fn parse_module(words: &[u32]) -> Result<Vec<LocatedInstruction>, LoadError> {
    check_word_counts(words)?;
    let mut collector = InstructionCollector::default();
    parse_words(normalize_words(words), &mut collector).map_err(|state| parse_error(words, &state))?;
    let mut word = HEADER_WORDS;
    let mut placed = Vec::with_capacity(collector.0.len());
    for instruction in collector.0 {
        placed.push(LocatedInstruction { word, instruction });
        word += (words.get(word).copied().unwrap_or(0) >> 16).max(1) as usize;
    }
    Ok(placed)
}

/// Instructions whose text the machine ignores, with the number of operands before the text.
const TEXT: [(Op, usize); 7] = [
    (Op::SourceContinued, 0),
    (Op::Source, 3),
    (Op::SourceExtension, 0),
    (Op::Name, 1),
    (Op::MemberName, 2),
    (Op::String, 1),
    (Op::ModuleProcessed, 0),
];

/// Replaces non-ASCII text in debug information by question marks. Compilers leave broken UTF-8 there
/// (glslang 12 of a source with an accent in a comment), which rspirv's reader refuses.
fn normalize_words(words: &[u32]) -> Vec<u32> {
    let mut words = words.to_vec();
    let mut word = HEADER_WORDS;
    while let Some(first) = words.get(word).copied() {
        let next = word + (first >> 16).max(1) as usize;
        if let Some((_, fixed)) = TEXT.iter().find(|(op, _)| *op as u32 == first & 0xffff) {
            let text = words.get_mut(word + 1 + fixed..next).unwrap_or_default();
            for four in text {
                *four = u32::from_le_bytes(
                    four.to_le_bytes().map(|byte| if byte.is_ascii() { byte } else { b'?' }),
                );
            }
        }
        word = next;
    }
    words
}

/// Checks that instructions end where the module does, as rspirv's reader assumes.
fn check_word_counts(words: &[u32]) -> Result<(), LoadError> {
    let mut word = HEADER_WORDS;
    while let Some(first) = words.get(word) {
        let (count, left) = ((first >> 16) as usize, words.len() - word);
        if count == 0 {
            return Err(malformed_module(word, "zero word count"));
        }
        if count > left {
            return Err(malformed_module(
                word,
                format!("an instruction of {count} words with {left} words left"),
            ));
        }
        word += count;
    }
    Ok(())
}

fn parse_error(words: &[u32], state: &ParseState) -> LoadError {
    let byte = match state {
        ParseState::HeaderIncomplete(_)
        | ParseState::HeaderIncorrect
        | ParseState::EndiannessUnsupported
        | ParseState::Complete
        | ParseState::ConsumerStopRequested
        | ParseState::ConsumerError(_) => 0,
        ParseState::WordCountZero(byte, _)
        | ParseState::OpcodeUnknown(byte, ..)
        | ParseState::OperandExpected(byte, _)
        | ParseState::OperandExceeded(byte, _)
        | ParseState::TypeUnsupported(byte, _)
        | ParseState::SpecConstantOpIntegerIncorrect(byte, _) => *byte,
        // The decoder reports positions in many error variants; the last complete instruction precedes all of
        // them.
        ParseState::OperandError(_) => last_instruction_offset(words) * 4,
    };
    malformed_module(byte / 4, state.to_string())
}

/// Returns the offset of the last instruction, following the word counts.
fn last_instruction_offset(words: &[u32]) -> usize {
    let mut word = HEADER_WORDS;
    while let Some(first) = words.get(word) {
        let next = word + (first >> 16).max(1) as usize;
        if next >= words.len() {
            break;
        }
        word = next;
    }
    word.min(words.len())
}

/// Returns the shader stage of an entry point.
fn entry_point_stage(entry: &LocatedInstruction) -> Result<Stage, LoadError> {
    match entry.instruction.operands.first() {
        Some(Operand::ExecutionModel(ExecutionModel::GLCompute)) => Ok(Stage::Compute),
        Some(Operand::ExecutionModel(ExecutionModel::Vertex)) => Ok(Stage::Vertex),
        Some(Operand::ExecutionModel(ExecutionModel::Fragment)) => Ok(Stage::Fragment),
        Some(Operand::ExecutionModel(ExecutionModel::MeshEXT)) => Ok(Stage::Mesh),
        Some(Operand::ExecutionModel(ExecutionModel::TaskEXT)) => Ok(Stage::Task),
        Some(Operand::ExecutionModel(other)) => Err(LoadError::Lacks(format!("the stage {other:?}"))),
        _ => Err(malformed_module(entry.word, "an entry point without a stage")),
    }
}

impl LoadedModule {
    /// Parses declarations and collects the function body.
    pub fn new(words: &[u32], interface: Option<&Interface>) -> Result<LoadedModule, LoadError> {
        let mut module = LoadedModule::default();
        let mut entry = None;
        let mut function = None;
        let placed = match interface {
            Some(interface) => legalize(parse_module(words)?, interface)?,
            None => parse_module(words)?,
        };
        for placed in placed {
            if !crate::OPCODES.contains(&placed.opcode()) {
                return Err(LoadError::Lacks(format!("Op{:?}", placed.opcode())));
            }
            match placed.opcode() {
                Op::EntryPoint => {
                    module.stage = entry_point_stage(&placed)?;
                    if entry.replace(placed.id_operand(1)?).is_some() {
                        return Err(LoadError::Lacks("several entry points".into()));
                    }
                }
                Op::Function => {
                    if function.replace(placed.result_id()?).is_some() {
                        return Err(LoadError::Lacks("several functions".into()));
                    }
                }
                Op::FunctionEnd => {}
                _ if function.is_some() => module.body.push(placed),
                _ => module.add_declaration(&placed)?,
            }
        }
        if entry.is_none() || entry != function {
            return Err(malformed_module(words.len(), "the entry point has no function"));
        }
        Ok(module)
    }

    fn add_declaration(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let operands = &placed.instruction.operands;
        match placed.opcode() {
            Op::Name => {
                if let (Ok(id), Some(Operand::LiteralString(name))) = (placed.id_operand(0), operands.get(1))
                {
                    self.names.insert(id, name.clone());
                }
            }
            Op::Decorate => self.add_decoration(placed)?,
            Op::MemoryModel => match operands.get(1) {
                Some(Operand::MemoryModel(MemoryModel::Vulkan)) => self.vulkan = true,
                Some(Operand::MemoryModel(MemoryModel::GLSL450)) => {}
                _ => return Err(LoadError::Lacks("this memory model".into())),
            },
            Op::MemberDecorate => {
                let member = (placed.id_operand(0)?, placed.literal_operand(1)?);
                match operands.get(2) {
                    Some(Operand::Decoration(Decoration::Offset)) => {
                        self.offsets.insert(member, placed.literal_operand(3)?);
                    }
                    Some(Operand::Decoration(Decoration::MatrixStride)) => {
                        self.matrices.entry(member).or_default().0 = placed.literal_operand(3)?;
                    }
                    Some(Operand::Decoration(Decoration::Coherent | Decoration::Volatile)) => {
                        self.coherent_members.insert(member);
                    }
                    Some(Operand::Decoration(Decoration::RowMajor)) => {
                        self.matrices.entry(member).or_default().1 = true;
                    }
                    _ => {}
                }
            }
            Op::ConstantNull | Op::Undef => self.nulls.push((placed.result_id()?, placed.result_type_id()?)),
            Op::ExecutionMode => match operands.get(1) {
                Some(Operand::ExecutionMode(ExecutionMode::LocalSize)) => {
                    let size =
                        [placed.literal_operand(2)?, placed.literal_operand(3)?, placed.literal_operand(4)?];
                    self.workgroup_size = Some(size);
                }
                Some(Operand::ExecutionMode(ExecutionMode::MaximallyReconvergesKHR)) => {
                    self.reconverges = true;
                }
                // Every fragment covers one pixel with one sample.
                Some(Operand::ExecutionMode(
                    ExecutionMode::PixelInterlockOrderedEXT | ExecutionMode::SampleInterlockOrderedEXT,
                )) => self.sections = Some(true),
                Some(Operand::ExecutionMode(
                    ExecutionMode::PixelInterlockUnorderedEXT | ExecutionMode::SampleInterlockUnorderedEXT,
                )) => self.sections = Some(false),
                _ => {}
            },
            Op::Constant => {
                let ty = placed.result_type_id()?;
                let bits = match self.types.get(&ty) {
                    Some(SpirvType::Number { bits, .. }) => *bits,
                    _ => return Err(LoadError::Lacks("OpConstant of this type".into())),
                };
                let value = match (bits, operands.first()) {
                    (64, Some(Operand::LiteralBit64(number))) => *number,
                    (0..=32, Some(Operand::LiteralBit32(number))) => {
                        (*number & (u32::MAX >> (32 - bits))).into()
                    }
                    _ => {
                        return Err(malformed_module(
                            placed.word,
                            "a constant of another size than its type",
                        ));
                    }
                };
                self.constants.insert(placed.result_id()?, (ty, value));
            }
            Op::ConstantTrue => {
                self.constants.insert(placed.result_id()?, (placed.result_type_id()?, 1));
            }
            Op::ConstantFalse => {
                self.constants.insert(placed.result_id()?, (placed.result_type_id()?, 0));
            }
            Op::Variable => {
                let Some(Operand::StorageClass(class)) = operands.first() else {
                    return Err(malformed_module(placed.word, "a variable without a storage class"));
                };
                self.variables.push(Variable {
                    id: placed.result_id()?,
                    pointer: placed.result_type_id()?,
                    class: *class,
                    initialized: operands.len() > 1,
                    word: placed.word,
                });
            }
            op => {
                if let Some(ty) = self.parse_type(op, placed)? {
                    self.check_member_type(&ty, placed.word)?;
                    if self.types.insert(placed.result_id()?, ty).is_some() {
                        return Err(malformed_module(placed.word, "a type that is declared twice"));
                    }
                }
            }
        }
        Ok(())
    }

    fn add_decoration(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let id = placed.id_operand(0)?;
        match placed.instruction.operands.get(1) {
            Some(Operand::Decoration(Decoration::Binding)) => {
                self.bindings.insert(id, placed.literal_operand(2)?);
            }
            Some(Operand::Decoration(Decoration::DescriptorSet)) if placed.literal_operand(2)? != 0 => {
                return Err(LoadError::Lacks("descriptor sets other than 0".into()));
            }
            Some(Operand::Decoration(Decoration::ArrayStride)) => {
                self.strides.insert(id, placed.literal_operand(2)?);
            }
            Some(Operand::Decoration(Decoration::Block)) => self.blocks.push(id),
            Some(Operand::Decoration(Decoration::Aliased)) => self.aliased.push(id),
            Some(Operand::Decoration(Decoration::Restrict)) => self.restrict.push(id),
            Some(Operand::Decoration(Decoration::NonWritable)) => self.non_writable.push(id),
            Some(Operand::Decoration(Decoration::Coherent | Decoration::Volatile)) => self.coherent.push(id),
            Some(Operand::Decoration(Decoration::Location)) => {
                self.locations.insert(id, placed.literal_operand(2)?);
            }
            Some(Operand::Decoration(Decoration::BuiltIn)) => {
                if let Some(Operand::BuiltIn(built_in)) = placed.instruction.operands.get(2) {
                    self.built_ins.insert(id, *built_in);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn parse_type(&self, op: Op, placed: &LocatedInstruction) -> Result<Option<SpirvType>, LoadError> {
        Ok(Some(match op {
            Op::TypeVoid => SpirvType::Void,
            Op::TypeBool => SpirvType::Bool,
            Op::TypeInt => match placed.literal_operand(0)? {
                bits @ (8 | 16 | 32 | 64) => SpirvType::Number { bits, float: false },
                width => return Err(LoadError::Lacks(format!("OpTypeInt {width}"))),
            },
            Op::TypeFloat => match placed.literal_operand(0)? {
                bits @ (16 | 32 | 64) => SpirvType::Number { bits, float: true },
                width => return Err(LoadError::Lacks(format!("OpTypeFloat {width}"))),
            },
            Op::TypeImage => {
                let dimensions = match placed.instruction.operands.get(1) {
                    Some(Operand::Dim(Dim::Dim1D | Dim::DimBuffer)) => 1,
                    Some(Operand::Dim(Dim::Dim2D)) => 2,
                    _ => return Err(LoadError::Lacks("OpTypeImage of this dimension".into())),
                };
                let texel = self.types.get(&placed.id_operand(0)?);
                let storage = (2..6).map(|at| placed.literal_operand(at)).collect::<Result<Vec<_>, _>>()?;
                let one = [ImageFormat::R32f, ImageFormat::R32i, ImageFormat::R32ui, ImageFormat::Unknown];
                let format = match placed.instruction.operands.get(6) {
                    Some(Operand::ImageFormat(format)) if !one.contains(format) => {
                        let known =
                            TexelFormat::of(*format as u32).filter(|known| known.packed([0; 4]).is_some());
                        Some(known.ok_or_else(|| LoadError::Lacks(format!("images of format {format:?}")))?)
                    }
                    _ => None,
                };
                match (texel, storage[..].last()) {
                    (Some(SpirvType::Number { bits: 32, .. }), Some(2)) if storage[..3] == [0, 0, 0] => {
                        SpirvType::Image { dimensions, format }
                    }
                    _ => return Err(LoadError::Lacks("OpTypeImage of this kind".into())),
                }
            }
            Op::TypeVector => match placed.literal_operand(1)? {
                count @ 2..=4 => SpirvType::Vector { element: placed.id_operand(0)?, count },
                count => return Err(malformed_module(placed.word, format!("a vector of {count}"))),
            },
            Op::TypeMatrix => match placed.literal_operand(1)? {
                count @ 2..=4 => SpirvType::Matrix { column: placed.id_operand(0)?, count },
                count => return Err(malformed_module(placed.word, format!("a matrix of {count} columns"))),
            },
            Op::TypeRuntimeArray => SpirvType::Array { element: placed.id_operand(0)?, count: None },
            Op::TypeArray => {
                let count = self.constants.get(&placed.id_operand(1)?).map_or(0, |(_, count)| *count as u32);
                SpirvType::Array { element: placed.id_operand(0)?, count: Some(count) }
            }
            Op::TypeStruct => {
                let count = placed.instruction.operands.len();
                SpirvType::Struct {
                    members: (0..count).map(|member| placed.id_operand(member)).collect::<Result<_, _>>()?,
                }
            }
            Op::TypePointer => {
                let Some(Operand::StorageClass(class)) = placed.instruction.operands.first() else {
                    return Err(malformed_module(placed.word, "a pointer without a storage class"));
                };
                SpirvType::Pointer { class: *class, to: placed.id_operand(1)? }
            }
            Op::TypeFunction => SpirvType::Function,
            _ => return Ok(None),
        }))
    }

    /// Returns the size of a type in bytes; 0 for arrays of unknown length.
    pub fn bytes_of(&self, ty: u32) -> u32 {
        match self.types.get(&ty) {
            Some(SpirvType::Number { bits, .. }) => bits / 8,
            Some(SpirvType::Bool) => 4,
            Some(SpirvType::Vector { element, count }) => self.bytes_of(*element).saturating_mul(*count),
            Some(SpirvType::Array { element, count }) => {
                self.stride_of(ty, *element).saturating_mul(count.unwrap_or(0))
            }
            Some(SpirvType::Matrix { column, count }) => self.bytes_of(*column).saturating_mul(*count),
            Some(SpirvType::Struct { members }) => {
                let end = |(member, inner): (u32, &u32)| {
                    let bytes = match self.matrices.get(&(ty, member)) {
                        // With an explicit stride, a matrix takes the stride for each of its columns or rows.
                        Some((stride, _)) => self.bytes_of(*inner).max(stride.saturating_mul(4)),
                        None => self.bytes_of(*inner),
                    };
                    self.offset_of(ty, member).saturating_add(bytes)
                };
                (0..).zip(members).map(end).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Returns the number of one-word registers of a value, low word first; `None` if registers cannot hold
    /// it.
    pub fn registers_of(&self, ty: u32) -> Option<u32> {
        match self.types.get(&ty) {
            Some(SpirvType::Number { bits: 64, .. }) => Some(2),
            Some(SpirvType::Number { .. } | SpirvType::Bool) => Some(1),
            Some(
                SpirvType::Vector { element: inner, count }
                | SpirvType::Matrix { column: inner, count }
                | SpirvType::Array { element: inner, count: Some(count) },
            ) => self.registers_of(*inner)?.checked_mul(*count).filter(|words| *words <= MOST_WORDS),
            Some(SpirvType::Struct { members }) => {
                let sum =
                    members.iter().try_fold(0u32, |sum, member| sum.checked_add(self.registers_of(*member)?));
                sum.filter(|words| *words <= MOST_WORDS)
            }
            _ => None,
        }
    }

    /// Checks that a member type is declared earlier, so that no type contains itself.
    fn check_member_type(&self, ty: &SpirvType, word: usize) -> Result<(), LoadError> {
        let known = |id: &u32| self.types.contains_key(id);
        let sound = match ty {
            SpirvType::Vector { element: inner, .. }
            | SpirvType::Array { element: inner, .. }
            | SpirvType::Matrix { column: inner, .. } => known(inner),
            SpirvType::Struct { members } => members.iter().all(known),
            _ => true,
        };
        sound.then_some(()).ok_or_else(|| malformed_module(word, "a type that uses an undeclared type"))
    }

    fn sum_of_sizes(&self, members: &[u32]) -> u32 {
        members.iter().fold(0, |bytes: u32, member| bytes.saturating_add(self.bytes_of(*member)))
    }

    /// Returns the stride of an array in bytes.
    pub fn stride_of(&self, array: u32, element: u32) -> u32 {
        self.strides.get(&array).copied().unwrap_or_else(|| self.bytes_of(element))
    }

    /// Returns the offset of a structure member in bytes.
    pub fn offset_of(&self, structure: u32, member: u32) -> u32 {
        if let Some(bytes) = self.offsets.get(&(structure, member)) {
            return *bytes;
        }
        match self.types.get(&structure) {
            Some(SpirvType::Struct { members }) => {
                self.sum_of_sizes(members.get(..member as usize).unwrap_or(members))
            }
            _ => 0,
        }
    }
}
