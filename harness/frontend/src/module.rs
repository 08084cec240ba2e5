//! A module: its instructions with their places, and what its declarations say.
//!
//! Long because what every kind of instruction says of a module is read in one pass.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arithmetic::mask;
use rspirv::spirv::{
    self, BuiltIn, Decoration, ExecutionMode, ExecutionModel, MemoryModel, Op, StorageClass,
};
use rustc_hash::FxHashMap;

use crate::annotations::Annotations;
use crate::error::{Place, Problem, Refusal, malformed, unsupported};
use crate::opcode;
use crate::section::Sections;
use crate::stage::Stage;
use crate::text::{MAX_INSTRUCTIONS, assemble, string_of};

pub(crate) const HEADER_WORDS: usize = 5;

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub op: Op,
    pub ty: u32,
    /// 0 where it has none.
    pub result: u32,
    /// Where its operands behind type and result lie among the words of the module.
    pub operands: (u32, u32),
    /// Its place in the text or the words.
    pub place: Place,
    /// The newest source line, an index into [`Module::lines`]; 0 where there is none.
    pub line: u32,
}

/// A line of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The file as the module names it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Void,
    Bool,
    Integer {
        bits: u32,
        signed: bool,
    },
    Float {
        bits: u32,
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
        length: u32,
    },
    RuntimeArray {
        element: u32,
    },
    Struct {
        members: Vec<u32>,
    },
    Pointer {
        class: StorageClass,
        to: u32,
    },
    Function {
        result: u32,
    },
    /// Images, samplers and whatever else has no bytes to look at.
    Handle(Op),
}

/// A constant, before specialization.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    Scalar(u64),
    Composite(Vec<u32>),
    Null,
    Undefined,
    Operation(Op, Vec<u32>),
}

/// A variable outside functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    /// What it points to.
    pub ty: u32,
    pub class: StorageClass,
    /// 0 where it has none.
    pub initializer: u32,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub parameters: Vec<u32>,
    pub code: Vec<Instruction>,
    /// Where each label stands in the code.
    pub labels: FxHashMap<u32, usize>,
    /// Types of parameters and results.
    pub types: FxHashMap<u32, u32>,
}

/// An entry point.
#[derive(Clone, Debug)]
pub(crate) struct EntryPoint {
    pub name: String,
    pub model: ExecutionModel,
    pub function: u32,
}

impl EntryPoint {
    /// Its stage: of one that [`Module::entry`] gives, one that is walked.
    pub fn stage(&self) -> Stage {
        Stage::of(self.model).unwrap_or_default()
    }
}

/// What decorations say of an id or a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decorations {
    pub offset: Option<u64>,
    pub stride: Option<u64>,
    pub matrix_stride: Option<u64>,
    pub row_major: bool,
    pub built_in: Option<BuiltIn>,
    pub set: Option<u32>,
    pub binding: Option<u32>,
    pub location: Option<u32>,
    pub specialization: Option<u32>,
    pub coherent: bool,
    pub volatile: bool,
    pub block: bool,
}

/// A module that was read.
#[derive(Clone, Debug, Default)]
pub struct Module {
    words: Vec<u32>,
    pub(crate) types: FxHashMap<u32, Type>,
    /// Type and value.
    pub(crate) constants: FxHashMap<u32, (u32, Constant)>,
    pub(crate) variables: BTreeMap<u32, Variable>,
    pub(crate) functions: BTreeMap<u32, Function>,
    pub(crate) entry_points: Vec<EntryPoint>,
    /// How deep each type is.
    depths: FxHashMap<u32, u32>,
    /// Pointers that are declared behind their use.
    forward: BTreeSet<u32>,
    local_sizes: FxHashMap<u32, ([u32; 3], bool)>,
    /// What the modes of each entry point say of its interlocked sections.
    sections: FxHashMap<u32, Sections>,
    pub(crate) decorations: FxHashMap<u32, Decorations>,
    pub(crate) member_decorations: FxHashMap<(u32, u32), Decorations>,
    pub(crate) names: FxHashMap<u32, String>,
    pub(crate) member_names: FxHashMap<(u32, u32), String>,
    pub(crate) lines: Vec<SourceLine>,
    pub(crate) extended: FxHashMap<u32, String>,
    /// What clspv says of push constants and specialization constants: instruction number and operands.
    pub(crate) reflection: Vec<(u32, Vec<u32>)>,
    /// Whether the memory model is Vulkan's; GLSL450's otherwise.
    pub vulkan: bool,
    /// Operands of the types of images, matrices and the like.
    pub(crate) handles: FxHashMap<u32, Vec<u32>>,
    /// The types of global variables, which are pointers.
    pub(crate) variable_types: FxHashMap<u32, u32>,
    /// Names that the text has for ids.
    pub(crate) text_names: BTreeMap<String, u32>,
    /// What the comments of the text say, in the peer's notation.
    pub annotations: Annotations,
}

/// Elements of a vector at most: more than any shader has, since peers have vectors for arrays.
const MAX_ELEMENTS: u32 = 1024;
/// Types in types at most.
const MAX_DEPTH: u32 = 64;

/// Reads a module: words, or text where the first word is no magic number.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read(bytes: &[u8]) -> Result<Module, Refusal> {
    let little = [0x03, 0x02, 0x23, 0x07];
    let big = [0x07, 0x23, 0x02, 0x03];
    if bytes.starts_with(&little) || bytes.starts_with(&big) {
        if !bytes.len().is_multiple_of(4) {
            return Err(malformed("its length is no multiple of four bytes").at(Place::Module));
        }
        let word = |four: &[u8]| match <[u8; 4]>::try_from(four) {
            Ok(four) if bytes.starts_with(&big) => u32::from_be_bytes(four),
            Ok(four) => u32::from_le_bytes(four),
            Err(_) => 0,
        };
        return Module::from_words(bytes.chunks_exact(4).map(word).collect(), None);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Problem::Syntax("neither a SPIR-V binary nor SPIR-V text".to_owned()).at(Place::Module)
    })?;
    let assembled = assemble(text)?;
    let mut module = Module::from_words(assembled.words, Some(&assembled.lines))?;
    module.text_names = assembled.names;
    for (name, id) in &module.text_names {
        module.names.entry(*id).or_insert_with(|| name.clone());
    }
    module.annotations = Annotations::parse(text)?;
    Ok(module)
}

/// The debug information that the reader has come past.
#[derive(Default)]
struct Debug {
    strings: HashMap<u32, String>,
    /// Sources of NonSemantic.Shader.DebugInfo.100: the string of the file.
    sources: HashMap<u32, u32>,
    known: HashMap<SourceLine, u32>,
    current: u32,
}

impl Module {
    fn from_words(words: Vec<u32>, lines: Option<&[u32]>) -> Result<Module, Refusal> {
        let mut module = Module { words, lines: vec![SourceLine::default()], ..Module::default() };
        let mut debug = Debug::default();
        let mut function: Option<(u32, Function)> = None;
        let mut at = HEADER_WORDS;
        let mut index = 0;
        if module.words.len() < HEADER_WORDS {
            return Err(malformed("it ends in its header").at(Place::Word(0)));
        }
        while at < module.words.len() {
            let place = match lines.and_then(|lines| lines.get(index)) {
                Some(line) => Place::Line(*line),
                None => Place::Word(at as u32),
            };
            let (mut instruction, next) = module.decode(at, place).map_err(|problem| problem.at(place))?;
            index += 1;
            at = next;
            if index > MAX_INSTRUCTIONS {
                let bound = MAX_INSTRUCTIONS;
                return Err(Problem::Budget { what: "instructions", bound }.at(place));
            }
            let done = module.take(&mut instruction, &mut debug, &mut function);
            done.map_err(|problem| problem.at(place))?;
        }
        if function.is_some() {
            return Err(malformed("a function does not end").at(Place::Word(at as u32)));
        }
        Ok(module)
    }

    /// The instruction at a word, and where the next one is.
    fn decode(&self, at: usize, place: Place) -> Result<(Instruction, usize), Problem> {
        let first = self.words[at];
        let (count, number) = ((first >> 16) as usize, first as u16);
        let end = at + count;
        if count == 0 || end > self.words.len() {
            return Err(malformed(format!("an instruction of {count} words")));
        }
        let Some(form) = opcode::by_number(number) else {
            return Err(unsupported(format!("instruction number {number}")));
        };
        let mut next = at + 1;
        let mut take = |wanted: bool| {
            if !wanted {
                return Ok(0);
            }
            next += 1;
            match self.words[..end].get(next - 1) {
                Some(0) | None => Err(malformed(format!("Op{} lacks an id", form.name))),
                Some(id) => Ok(*id),
            }
        };
        let (ty, result) = (take(form.has_type)?, take(form.has_result)?);
        let operands = (next as u32, end as u32);
        Ok((Instruction { op: form.op, ty, result, operands, place, line: 0 }, end))
    }

    /// Its words, those of a text as they were assembled.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// One more than the largest id, as the header says it.
    pub(crate) fn bound(&self) -> usize {
        self.words.get(3).map_or(0, |bound| *bound as usize)
    }

    /// The operands of an instruction behind its type and result.
    pub(crate) fn operands(&self, instruction: &Instruction) -> &[u32] {
        let (from, to) = instruction.operands;
        self.words.get(from as usize..to as usize).unwrap_or_default()
    }

    /// An operand.
    pub(crate) fn operand(&self, instruction: &Instruction, index: usize) -> Result<u32, Problem> {
        let operand = self.operands(instruction).get(index).copied();
        operand.ok_or_else(|| malformed(format!("Op{:?} lacks operand {index}", instruction.op)))
    }

    fn take(
        &mut self,
        instruction: &mut Instruction,
        debug: &mut Debug,
        function: &mut Option<(u32, Function)>,
    ) -> Result<(), Problem> {
        match instruction.op {
            Op::Line => {
                let (file, line) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
                self.at_line(debug, file, line);
                return Ok(());
            }
            Op::NoLine => {
                debug.current = 0;
                return Ok(());
            }
            Op::ExtInst => {
                let operands = self.operands(instruction).to_vec();
                let set =
                    operands.first().and_then(|set| self.extended.get(set)).cloned().unwrap_or_default();
                if set.starts_with("NonSemantic.") {
                    self.non_semantic(&set, instruction.result, operands.get(1..).unwrap_or_default(), debug);
                    return Ok(());
                }
            }
            _ => {}
        }
        instruction.line = debug.current;
        if let Some((_, function)) = function.as_mut().filter(|_| instruction.ty != 0) {
            function.types.insert(instruction.result, instruction.ty);
        }
        match (instruction.op, function.as_mut()) {
            (Op::Function, None) => *function = Some((instruction.result, Function::default())),
            (Op::Function, Some(_)) => return Err(malformed("a function in a function")),
            (Op::FunctionEnd, Some(_)) => {
                if let Some((id, mut function)) = function.take() {
                    self.inherit_lines(&mut function);
                    self.without_guards(&mut function);
                    if self.functions.insert(id, function).is_some() {
                        return Err(malformed("two functions of one id"));
                    }
                }
                debug.current = 0;
            }
            (Op::FunctionParameter, Some((_, function))) => function.parameters.push(instruction.result),
            (op, Some((_, function))) => {
                if op == Op::Label {
                    debug.current = 0;
                    instruction.line = 0;
                    if function.labels.insert(instruction.result, function.code.len()).is_some() {
                        return Err(malformed("two labels of one id"));
                    }
                }
                function.code.push(*instruction);
            }
            (_, None) => self.declare(instruction, debug)?,
        }
        Ok(())
    }

    fn at_line(&mut self, debug: &mut Debug, file: u32, line: u32) {
        let file = debug.strings.get(&file).cloned().unwrap_or_default();
        let source = SourceLine { file, line };
        let lines = &mut self.lines;
        debug.current = *debug.known.entry(source.clone()).or_insert_with(|| {
            lines.push(source);
            (lines.len() - 1) as u32
        });
    }

    fn non_semantic(&mut self, set: &str, result: u32, operands: &[u32], debug: &mut Debug) {
        let Some((number, operands)) = operands.split_first() else { return };
        if set.starts_with("NonSemantic.ClspvReflection") {
            self.reflection.push((*number, operands.to_vec()));
        } else if set == "NonSemantic.Shader.DebugInfo.100" {
            match (*number, operands) {
                // DebugSource: its file.
                (35, [file, ..]) => {
                    debug.sources.insert(result, *file);
                }
                // DebugLine: source and first line, which is the id of a constant.
                (103, [source, line, ..]) => {
                    let file = debug.sources.get(source).copied().unwrap_or(0);
                    if let Some((_, Constant::Scalar(line))) = self.constants.get(line) {
                        self.at_line(debug, file, *line as u32);
                    }
                }
                // DebugNoLine.
                (104, _) => debug.current = 0,
                _ => {}
            }
        }
    }

    fn declare(&mut self, instruction: &Instruction, debug: &mut Debug) -> Result<(), Problem> {
        let operands = self.operands(instruction).to_vec();
        let operand = |index: usize| {
            let operand = operands.get(index).copied();
            operand.ok_or_else(|| malformed(format!("Op{:?} lacks operand {index}", instruction.op)))
        };
        let result = instruction.result;
        match instruction.op {
            Op::String => {
                debug.strings.insert(result, string_of(&operands).0);
            }
            Op::ExtInstImport => {
                self.extended.insert(result, string_of(&operands).0);
            }
            Op::Name => {
                let name = string_of(operands.get(1..).unwrap_or_default()).0;
                if !name.is_empty() {
                    self.names.insert(operand(0)?, name);
                }
            }
            Op::MemberName => {
                let name = string_of(operands.get(2..).unwrap_or_default()).0;
                self.member_names.insert((operand(0)?, operand(1)?), name);
            }
            Op::MemoryModel => {
                self.vulkan = match MemoryModel::from_u32(operand(1)?) {
                    Some(MemoryModel::Vulkan) => true,
                    Some(MemoryModel::GLSL450) => false,
                    other => return Err(unsupported(format!("memory model {other:?}"))),
                };
            }
            Op::EntryPoint => {
                let model = operand(0)?;
                let model = ExecutionModel::from_u32(model)
                    .ok_or_else(|| unsupported(format!("execution model {model}")))?;
                let name = string_of(operands.get(2..).unwrap_or_default()).0;
                self.entry_points.push(EntryPoint { name, model, function: operand(1)? });
                // Their outputs and payloads are memory of another kind than those of other stages.
                let mesh = |entry: &EntryPoint| entry.model == ExecutionModel::MeshEXT;
                if self.entry_points.iter().any(mesh) && !self.entry_points.iter().all(mesh) {
                    return Err(unsupported("a mesh shader beside other stages in one module"));
                }
            }
            Op::ExecutionMode | Op::ExecutionModeId => {
                let mode = ExecutionMode::from_u32(operand(1)?);
                if let Some(mode @ (ExecutionMode::LocalSize | ExecutionMode::LocalSizeId)) = mode {
                    let size = [operand(2)?, operand(3)?, operand(4)?];
                    self.local_sizes.insert(operand(0)?, (size, mode == ExecutionMode::LocalSizeId));
                }
                if let Some(sections) = mode.and_then(Sections::of) {
                    self.sections.insert(operand(0)?, sections);
                }
            }
            Op::Decorate => {
                let entry = self.decorations.entry(operand(0)?).or_default();
                decorate(entry, operand(1)?, operands.get(2).copied());
            }
            Op::MemberDecorate => {
                let entry = self.member_decorations.entry((operand(0)?, operand(1)?)).or_default();
                decorate(entry, operand(2)?, operands.get(3).copied());
            }
            Op::Variable => {
                let Some(Type::Pointer { class, to }) = self.types.get(&instruction.ty) else {
                    return Err(malformed("a variable whose type is no pointer"));
                };
                let class = StorageClass::from_u32(operand(0)?).map_or(*class, |class| self.shared_as(class));
                let initializer = operands.get(1).copied().unwrap_or(0);
                self.variables.insert(result, Variable { ty: *to, class, initializer });
                self.variable_types.insert(result, instruction.ty);
            }
            Op::Undef => self.constant(instruction, Constant::Undefined)?,
            Op::Constant | Op::SpecConstant => {
                let low = u64::from(operand(0)?);
                let value = low | u64::from(operands.get(1).copied().unwrap_or(0)) << 32;
                let bits = match self.types.get(&instruction.ty) {
                    Some(Type::Integer { bits, .. } | Type::Float { bits }) => *bits,
                    _ => return Err(malformed("a constant of a type that has no numbers")),
                };
                self.constant(instruction, Constant::Scalar(value & mask(bits)))?;
            }
            // A pointer that structures may have before it is declared: they end there.
            Op::TypeForwardPointer => {
                self.forward.insert(operand(0)?);
            }
            Op::ConstantTrue | Op::SpecConstantTrue => self.constant(instruction, Constant::Scalar(1))?,
            Op::ConstantFalse | Op::SpecConstantFalse => self.constant(instruction, Constant::Scalar(0))?,
            Op::ConstantNull => self.constant(instruction, Constant::Null)?,
            Op::ConstantComposite | Op::SpecConstantComposite => {
                self.constant(instruction, Constant::Composite(operands))?;
            }
            Op::SpecConstantOp => {
                let number = operand(0)?;
                let op = u16::try_from(number).ok().and_then(opcode::by_number);
                let op = op.ok_or_else(|| malformed(format!("instruction number {number}")))?.op;
                self.constant(instruction, Constant::Operation(op, operands[1..].to_vec()))?;
            }
            op => {
                if let Some(ty) = self.type_of(op, &operands)? {
                    // What was announced as a pointer is one, so that no type has itself in it.
                    if self.forward.contains(&result) && !matches!(ty, Type::Pointer { .. }) {
                        return Err(malformed("a forward pointer that is no pointer"));
                    }
                    if matches!(ty, Type::Handle(_)) {
                        self.handles.insert(result, operands);
                    }
                    let depth = self.depth_of(&ty);
                    if depth > MAX_DEPTH {
                        return Err(malformed(format!("types more than {MAX_DEPTH} deep")));
                    }
                    self.depths.insert(result, depth);
                    if self.types.insert(result, ty).is_some() {
                        return Err(malformed("two types of one id"));
                    }
                }
            }
        }
        Ok(())
    }

    fn constant(&mut self, instruction: &Instruction, constant: Constant) -> Result<(), Problem> {
        let known = |id: &u32| self.constants.contains_key(id) || self.variables.contains_key(id);
        if let Constant::Composite(parts) | Constant::Operation(_, parts) = &constant {
            let ids = match &constant {
                // Behind its composites stand literals.
                Constant::Operation(Op::CompositeExtract, _) => &parts[..parts.len().min(1)],
                Constant::Operation(Op::CompositeInsert | Op::VectorShuffle, _) => {
                    &parts[..parts.len().min(2)]
                }
                _ => &parts[..],
            };
            if !ids.iter().all(known) {
                return Err(malformed("a constant of what is no constant before it"));
            }
        }
        if self.constants.insert(instruction.result, (instruction.ty, constant)).is_some() {
            return Err(malformed("two constants of one id"));
        }
        Ok(())
    }

    fn type_of(&self, op: Op, operands: &[u32]) -> Result<Option<Type>, Problem> {
        let operand = |index: usize| {
            operands.get(index).copied().ok_or_else(|| malformed(format!("Op{op:?} lacks operand {index}")))
        };
        // What a type consists of stands before it, so that none has itself in it.
        let inner = |index: usize| {
            let id = operand(index)?;
            match self.types.contains_key(&id) || self.forward.contains(&id) {
                true => Ok(id),
                false => Err(malformed(format!("Op{op:?} of what is no type before it"))),
            }
        };
        Ok(Some(match op {
            Op::TypeVoid => Type::Void,
            Op::TypeBool => Type::Bool,
            Op::TypeInt => match operand(0)? {
                bits @ 1..=64 => Type::Integer { bits, signed: operand(1)? != 0 },
                bits => return Err(unsupported(format!("integers of {bits} bits"))),
            },
            Op::TypeFloat => match operand(0)? {
                bits @ 8..=64 => Type::Float { bits },
                bits => return Err(unsupported(format!("floats of {bits} bits"))),
            },
            Op::TypeVector | Op::TypeMatrix if operand(1)? > MAX_ELEMENTS => {
                return Err(unsupported(format!("Op{op:?} of more than {MAX_ELEMENTS}")));
            }
            Op::TypeVector => Type::Vector { element: inner(0)?, count: operand(1)? },
            Op::TypeMatrix => Type::Matrix { column: inner(0)?, count: operand(1)? },
            Op::TypeArray => Type::Array { element: inner(0)?, length: operand(1)? },
            Op::TypeRuntimeArray => Type::RuntimeArray { element: inner(0)? },
            Op::TypeStruct => {
                Type::Struct { members: (0..operands.len()).map(inner).collect::<Result<_, _>>()? }
            }
            Op::TypePointer => {
                let class = operand(0)?;
                let class = StorageClass::from_u32(class)
                    .ok_or_else(|| unsupported(format!("storage class {class}")))?;
                Type::Pointer { class: self.shared_as(class), to: operand(1)? }
            }
            Op::TypeFunction => Type::Function { result: operand(0)? },
            _ if format!("{op:?}").starts_with("Type") => Type::Handle(op),
            _ => return Ok(None),
        }))
    }

    /// The class that memory of mesh and task shaders is like: what invocations of a workgroup share is workgroup memory, and what a mesh
    /// shader is given an input.
    fn shared_as(&self, class: StorageClass) -> StorageClass {
        let mesh = self.entry_points.iter().any(|entry| entry.model == ExecutionModel::MeshEXT);
        match class {
            StorageClass::TaskPayloadWorkgroupEXT if mesh => StorageClass::Input,
            StorageClass::TaskPayloadWorkgroupEXT => StorageClass::Workgroup,
            StorageClass::Output if mesh => StorageClass::Workgroup,
            other => other,
        }
    }

    /// How deep types are in a type: what it consists of was declared before it.
    fn depth_of(&self, ty: &Type) -> u32 {
        let depth = |id: &u32| self.depths.get(id).copied().unwrap_or(0);
        1 + match ty {
            Type::Vector { element, .. } | Type::Array { element, .. } | Type::RuntimeArray { element } => {
                depth(element)
            }
            Type::Matrix { column, .. } => depth(column),
            Type::Struct { members } => members.iter().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The type of an id.
    pub(crate) fn ty(&self, id: u32) -> Result<&Type, Problem> {
        self.types.get(&id).ok_or_else(|| malformed(format!("{} is no type", self.name(id))))
    }

    /// The id that a name of the text, or of the debug information, stands for.
    pub(crate) fn id_of(&self, name: &str) -> Option<u32> {
        if let Some(id) = self.text_names.get(name) {
            return Some(*id);
        }
        let mut ids: Vec<u32> =
            self.names.iter().filter(|(_, known)| *known == name).map(|(id, _)| *id).collect();
        ids.sort_by_key(|id| (!self.variables.contains_key(id), *id));
        ids.first().copied()
    }

    /// The number of a member of a structure.
    pub(crate) fn member_of(&self, ty: u32, name: &str) -> Option<u64> {
        let Some(Type::Struct { members }) = self.types.get(&ty) else { return None };
        let named = |index: &u32| self.member_names.get(&(ty, *index)).is_some_and(|known| known == name);
        (0..members.len() as u32).find(named).map(u64::from)
    }

    /// The names of the members of a structure.
    pub(crate) fn members(&self, ty: u32) -> Vec<String> {
        let Some(Type::Struct { members }) = self.types.get(&ty) else { return Vec::new() };
        let name = |index| self.member_names.get(&(ty, index)).filter(|name| !name.is_empty()).cloned();
        (0..members.len() as u32).filter_map(name).collect()
    }

    /// Whether a variable has no name of its own.
    pub(crate) fn is_unnamed(&self, id: u32) -> bool {
        self.names.get(&id).is_none_or(String::is_empty)
    }

    /// What a reader calls an id.
    pub(crate) fn name(&self, id: u32) -> String {
        match self.names.get(&id).filter(|name| !name.is_empty()) {
            Some(name) if name.starts_with(|c: char| c.is_ascii_digit()) => format!("%{name}"),
            Some(name) => name.clone(),
            None => format!("%{id}"),
        }
    }

    /// What a reader calls a variable of type `ty`: a block without a name of its own goes by that of its type.
    pub(crate) fn variable_name(&self, id: u32, ty: u32) -> String {
        let [own, block] = [id, ty].map(|id| self.name(id));
        if own.starts_with('%') && !block.starts_with('%') { block } else { own }
    }

    /// The names of the entry points of stages that are walked.
    pub fn entry_points(&self) -> Vec<&str> {
        self.entry_points
            .iter()
            .filter(|entry| Stage::of(entry.model).is_some())
            .map(|entry| entry.name.as_str())
            .collect()
    }

    /// Whether it has none of any stage.
    pub fn has_no_entry_point(&self) -> bool {
        self.entry_points.is_empty()
    }

    /// That no entry point is of such a stage, in words.
    pub fn no_entry_point(&self) -> String {
        let other =
            |of: &EntryPoint| format!("; `{}` is of stage {:?}, which `lint` takes", of.name, of.model);
        let others: String = self.entry_points.iter().map(other).collect();
        format!("no entry point of a compute, vertex, fragment, task or mesh shader{others}")
    }

    /// The source line of a [`crate::Spot`]; `None` where the module has none there.
    pub fn source_line(&self, index: u32) -> Option<&SourceLine> {
        self.lines.get(index as usize).filter(|_| index > 0)
    }

    /// The source that a line is of, where only one has it.
    pub fn file_of(&self, line: u32) -> Option<&str> {
        let mut files = self.lines.iter().filter(|known| known.line == line).map(|known| known.file.as_str());
        let first = files.next().filter(|file| !file.is_empty())?;
        files.all(|file| file == first).then_some(first)
    }

    /// The entry point that is meant: the named one, or the only one.
    pub(crate) fn entry(&self, name: Option<&str>) -> Result<&EntryPoint, Problem> {
        let mut found = self.entry_points.iter().filter(|entry| name.is_none_or(|name| entry.name == name));
        match (found.next(), found.next(), name) {
            (Some(entry), None, _) | (Some(entry), Some(_), Some(_)) => match Stage::of(entry.model) {
                Some(_) => Ok(entry),
                None => Err(unsupported(format!("entry points of execution model {:?}", entry.model))),
            },
            (Some(_), Some(_), None) => {
                let names: Vec<&str> = self.entry_points.iter().map(|entry| entry.name.as_str()).collect();
                Err(Problem::EntryPoint(format!("several entry points ({}): name one", names.join(", "))))
            }
            (None, _, Some(name)) => Err(Problem::EntryPoint(format!("no entry point `{name}`"))),
            (None, _, None) => Err(Problem::EntryPoint("no entry point".to_owned())),
        }
    }

    /// The local size of an entry point as its mode says it: numbers, or with `true` ids of constants.
    /// What the modes of an entry point say of interlocked sections.
    pub(crate) fn sections(&self, function: u32) -> Option<Sections> {
        self.sections.get(&function).copied()
    }

    pub(crate) fn local_size(&self, function: u32) -> Option<([u32; 3], bool)> {
        self.local_sizes.get(&function).copied()
    }

    /// What decorations say of an id.
    pub(crate) fn decorations(&self, id: u32) -> Decorations {
        self.decorations.get(&id).cloned().unwrap_or_default()
    }
}

fn decorate(entry: &mut Decorations, decoration: u32, parameter: Option<u32>) {
    match Decoration::from_u32(decoration) {
        Some(Decoration::Offset) => entry.offset = parameter.map(u64::from),
        Some(Decoration::ArrayStride) => entry.stride = parameter.map(u64::from),
        Some(Decoration::MatrixStride) => entry.matrix_stride = parameter.map(u64::from),
        Some(Decoration::RowMajor) => entry.row_major = true,
        Some(Decoration::BuiltIn) => entry.built_in = parameter.and_then(BuiltIn::from_u32),
        Some(Decoration::DescriptorSet) => entry.set = parameter,
        Some(Decoration::Binding) => entry.binding = parameter,
        Some(Decoration::Location) => entry.location = parameter,
        Some(Decoration::SpecId) => entry.specialization = parameter,
        Some(Decoration::Coherent) => entry.coherent = true,
        Some(Decoration::Volatile) => entry.volatile = true,
        Some(Decoration::Block) => entry.block = true,
        _ => {}
    }
}

/// The bits of a storage class for memory semantics, and of scopes, come from the tables of the grammar.
pub(crate) fn scope_of(number: u64) -> Option<spirv::Scope> {
    u32::try_from(number).ok().and_then(spirv::Scope::from_u32)
}
