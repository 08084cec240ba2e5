//! A SPIR-V module as a list of instructions with their places, and what its declarations say.

use std::collections::HashMap;

use rspirv::binary::{Consumer, ParseAction, ParseState, parse_words};
use rspirv::dr::{Instruction, ModuleHeader, Operand};
use rspirv::spirv::{BuiltIn, Decoration, ExecutionMode, Op, StorageClass};

const HEADER_WORDS: usize = 5;

/// Why a module cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is no valid module.
    #[error("malformed SPIR-V at word {word}: {what}")]
    Malformed {
        /// Offset in words.
        word: usize,
        /// What is wrong there.
        what: String,
    },
    /// It uses something that the machine does not have.
    #[error("simulated GPU lacks {0}")]
    Lacks(String),
}

/// An error at a word.
pub(crate) fn malformed(word: usize, what: impl Into<String>) -> LoadError {
    LoadError::Malformed { word, what: what.into() }
}

/// An instruction and the word that it starts at.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub word: usize,
    pub instruction: Instruction,
}

impl Placed {
    pub fn op(&self) -> Op {
        self.instruction.class.opcode
    }

    /// The result's id.
    pub fn result(&self) -> Result<u32, LoadError> {
        self.instruction.result_id.ok_or_else(|| malformed(self.word, "no result id"))
    }

    /// The result's type.
    pub fn result_type(&self) -> Result<u32, LoadError> {
        self.instruction.result_type.ok_or_else(|| malformed(self.word, "no result type"))
    }

    /// The id that is operand number `index`.
    pub fn id(&self, index: usize) -> Result<u32, LoadError> {
        match self.instruction.operands.get(index) {
            Some(Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id)) => Ok(*id),
            _ => Err(malformed(self.word, format!("operand {index} is no id"))),
        }
    }

    /// The number that is operand number `index`.
    pub fn literal(&self, index: usize) -> Result<u32, LoadError> {
        match self.instruction.operands.get(index) {
            Some(Operand::LiteralBit32(number)) => Ok(*number),
            _ => Err(malformed(self.word, format!("operand {index} is no number"))),
        }
    }
}

/// What an id means outside functions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Void,
    Bool,
    Word { signed: bool },
    Vector { element: u32, count: u32 },
    Array { element: u32, count: Option<u32> },
    Struct { members: Vec<u32> },
    Pointer { class: StorageClass, to: u32 },
    Function,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub types: HashMap<u32, Type>,
    /// Constants of one word, and booleans.
    pub constants: HashMap<u32, u32>,
    /// Global variables: type of the pointer and class, in the order of the module.
    pub variables: Vec<(u32, u32, StorageClass, usize)>,
    pub names: HashMap<u32, String>,
    pub bindings: HashMap<u32, u32>,
    pub built_ins: HashMap<u32, BuiltIn>,
    pub aliased: Vec<u32>,
    /// Structures with an explicit layout.
    pub blocks: Vec<u32>,
    pub strides: HashMap<u32, u32>,
    pub offsets: HashMap<(u32, u32), u32>,
    pub workgroup_size: Option<[u32; 3]>,
    /// The instructions of the one function, from its first label on.
    pub body: Vec<Placed>,
}

#[derive(Default)]
struct Collector(Vec<Instruction>);

impl Consumer for Collector {
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

/// Reads the words.
pub(crate) fn read(words: &[u32]) -> Result<Vec<Placed>, LoadError> {
    check_counts(words)?;
    let mut collector = Collector::default();
    parse_words(words, &mut collector).map_err(|state| parse_error(words, &state))?;
    let mut word = HEADER_WORDS;
    let mut placed = Vec::with_capacity(collector.0.len());
    for instruction in collector.0 {
        placed.push(Placed { word, instruction });
        word += (words.get(word).copied().unwrap_or(0) >> 16).max(1) as usize;
    }
    Ok(placed)
}

/// Instructions end where the module does: rspirv's reader relies on it.
fn check_counts(words: &[u32]) -> Result<(), LoadError> {
    let mut word = HEADER_WORDS;
    while let Some(first) = words.get(word) {
        let (count, left) = ((first >> 16) as usize, words.len() - word);
        if count == 0 {
            return Err(malformed(word, "zero word count"));
        }
        if count > left {
            return Err(malformed(word, format!("an instruction of {count} words where {left} are left")));
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
        // The decoder's own errors say in many variants where they are; the last instruction that is whole is before.
        ParseState::OperandError(_) => last_start(words) * 4,
    };
    malformed(byte / 4, state.to_string())
}

/// Where the last instruction starts that the counts of words lead to.
fn last_start(words: &[u32]) -> usize {
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

impl Module {
    /// Reads declarations, and keeps the body.
    pub fn new(words: &[u32]) -> Result<Module, LoadError> {
        let mut module = Module::default();
        let mut entry = None;
        let mut function = None;
        for placed in read(words)? {
            if !crate::OPCODES.contains(&placed.op()) {
                return Err(LoadError::Lacks(format!("Op{:?}", placed.op())));
            }
            match placed.op() {
                Op::EntryPoint => {
                    if entry.replace(placed.id(1)?).is_some() {
                        return Err(LoadError::Lacks("several entry points".into()));
                    }
                }
                Op::Function => {
                    if function.replace(placed.result()?).is_some() {
                        return Err(LoadError::Lacks("several functions".into()));
                    }
                }
                Op::FunctionEnd => {}
                _ if function.is_some() => module.body.push(placed),
                _ => module.declare(&placed)?,
            }
        }
        if entry.is_none() || entry != function {
            return Err(malformed(words.len(), "no function is the entry point"));
        }
        Ok(module)
    }

    fn declare(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let operands = &placed.instruction.operands;
        match placed.op() {
            Op::Name => {
                if let (Ok(id), Some(Operand::LiteralString(name))) = (placed.id(0), operands.get(1)) {
                    self.names.insert(id, name.clone());
                }
            }
            Op::Decorate => self.decorate(placed)?,
            Op::MemberDecorate => {
                if let Some(Operand::Decoration(Decoration::Offset)) = operands.get(2) {
                    self.offsets.insert((placed.id(0)?, placed.literal(1)?), placed.literal(3)?);
                }
            }
            Op::ExecutionMode => {
                if let Some(Operand::ExecutionMode(ExecutionMode::LocalSize)) = operands.get(1) {
                    self.workgroup_size = Some([placed.literal(2)?, placed.literal(3)?, placed.literal(4)?]);
                }
            }
            Op::Constant => {
                match self.types.get(&placed.result_type()?) {
                    Some(Type::Word { .. }) => {}
                    _ => return Err(LoadError::Lacks("OpConstant of this type".into())),
                }
                self.constants.insert(placed.result()?, placed.literal(0)?);
            }
            Op::ConstantTrue => {
                self.constants.insert(placed.result()?, 1);
            }
            Op::ConstantFalse => {
                self.constants.insert(placed.result()?, 0);
            }
            Op::Variable => {
                let Some(Operand::StorageClass(class)) = operands.first() else {
                    return Err(malformed(placed.word, "a variable without a storage class"));
                };
                self.variables.push((placed.result()?, placed.result_type()?, *class, placed.word));
            }
            op => {
                if let Some(ty) = self.type_of(op, placed)? {
                    self.check_inner(&ty, placed.word)?;
                    if self.types.insert(placed.result()?, ty).is_some() {
                        return Err(malformed(placed.word, "a type that is there already"));
                    }
                }
            }
        }
        Ok(())
    }

    fn decorate(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let id = placed.id(0)?;
        match placed.instruction.operands.get(1) {
            Some(Operand::Decoration(Decoration::Binding)) => {
                self.bindings.insert(id, placed.literal(2)?);
            }
            Some(Operand::Decoration(Decoration::DescriptorSet)) if placed.literal(2)? != 0 => {
                return Err(LoadError::Lacks("descriptor sets other than 0".into()));
            }
            Some(Operand::Decoration(Decoration::ArrayStride)) => {
                self.strides.insert(id, placed.literal(2)?);
            }
            Some(Operand::Decoration(Decoration::Block)) => self.blocks.push(id),
            Some(Operand::Decoration(Decoration::Aliased)) => self.aliased.push(id),
            Some(Operand::Decoration(Decoration::BuiltIn)) => {
                if let Some(Operand::BuiltIn(built_in)) = placed.instruction.operands.get(2) {
                    self.built_ins.insert(id, *built_in);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn type_of(&self, op: Op, placed: &Placed) -> Result<Option<Type>, LoadError> {
        Ok(Some(match op {
            Op::TypeVoid => Type::Void,
            Op::TypeBool => Type::Bool,
            Op::TypeInt => match placed.literal(0)? {
                32 => Type::Word { signed: placed.literal(1)? != 0 },
                width => return Err(LoadError::Lacks(format!("OpTypeInt {width}"))),
            },
            Op::TypeVector => match placed.literal(1)? {
                count @ 2..=4 => Type::Vector { element: placed.id(0)?, count },
                count => return Err(malformed(placed.word, format!("a vector of {count}"))),
            },
            Op::TypeRuntimeArray => Type::Array { element: placed.id(0)?, count: None },
            Op::TypeArray => {
                let count = self.constants.get(&placed.id(1)?).copied();
                Type::Array { element: placed.id(0)?, count: Some(count.unwrap_or(0)) }
            }
            Op::TypeStruct => {
                let count = placed.instruction.operands.len();
                Type::Struct {
                    members: (0..count).map(|member| placed.id(member)).collect::<Result<_, _>>()?,
                }
            }
            Op::TypePointer => {
                let Some(Operand::StorageClass(class)) = placed.instruction.operands.first() else {
                    return Err(malformed(placed.word, "a pointer without a storage class"));
                };
                Type::Pointer { class: *class, to: placed.id(1)? }
            }
            Op::TypeFunction => Type::Function,
            _ => return Ok(None),
        }))
    }

    /// Words of a type; 0 for arrays of no fixed length.
    pub fn words_of(&self, ty: u32) -> u32 {
        match self.types.get(&ty) {
            Some(Type::Word { .. } | Type::Bool) => 1,
            Some(Type::Vector { count, .. }) => *count,
            Some(Type::Array { element, count }) => {
                self.stride_of(ty, *element).saturating_mul(count.unwrap_or(0))
            }
            Some(Type::Struct { members }) => self.sum(members),
            _ => 0,
        }
    }

    /// What a type is made of comes before it: no type holds itself.
    fn check_inner(&self, ty: &Type, word: usize) -> Result<(), LoadError> {
        let known = |id: &u32| self.types.contains_key(id);
        let sound = match ty {
            Type::Vector { element, .. } | Type::Array { element, .. } => known(element),
            Type::Struct { members } => members.iter().all(known),
            _ => true,
        };
        sound.then_some(()).ok_or_else(|| malformed(word, "a type made of what is not there"))
    }

    fn sum(&self, members: &[u32]) -> u32 {
        members.iter().fold(0, |words: u32, member| words.saturating_add(self.words_of(*member)))
    }

    /// Words from one element of an array to the next.
    pub fn stride_of(&self, array: u32, element: u32) -> u32 {
        self.strides.get(&array).map_or_else(|| self.words_of(element), |bytes| bytes / 4)
    }

    /// Where a member of a structure starts, in words.
    pub fn offset_of(&self, structure: u32, member: u32) -> u32 {
        if let Some(bytes) = self.offsets.get(&(structure, member)) {
            return bytes / 4;
        }
        match self.types.get(&structure) {
            Some(Type::Struct { members }) => self.sum(members.get(..member as usize).unwrap_or(members)),
            _ => 0,
        }
    }
}
