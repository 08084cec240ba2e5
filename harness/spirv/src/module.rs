//! The module: instructions with their positions, and declarations by id.
//!
//! Long because one pass reads every kind of declaration.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arithmetic::mask;
use rspirv::spirv::{BuiltIn, Decoration, ExecutionMode, ExecutionModel, MemoryModel, Op, StorageClass};
use rustc_hash::{FxHashMap, FxHashSet};
use vocabulary::Scope;

use crate::annotations::Annotations;
use crate::error::{SourcePosition, SpirvError, SpirvProblem, malformed, unsupported};
use crate::kernel_argument::{KernelArgument, ReflectedIds};
use crate::language::{CoherenceDeclaration, HlslRules, ShaderLanguage, coherence_declarations};
use crate::opcode;
use crate::stage::Stage;
use crate::text::{MAGIC_NUMBER, MAX_INSTRUCTIONS, assemble_text, decode_string};

/// The words before the first instruction.
pub const HEADER_WORDS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct SpirvInstruction {
    pub op: Op,
    pub ty: u32,
    /// Result id; 0 for none.
    pub result: u32,
    /// The range of its operands (without type and result) in the module's words.
    pub operands: (u32, u32),
    /// The position in text or words.
    pub place: SourcePosition,
    /// The last source line before it, as an index into [`SpirvModule::lines`]; 0 for none.
    pub line: u32,
}

/// The place of an instruction in the source, or in the module if it has no source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodePlace {
    /// An index into [`SpirvModule::lines`].
    Source(u32),
    Module(SourcePosition),
}

impl CodePlace {
    /// Returns the place of a source line, which is 0 for none, and a position in the module.
    pub fn new(line: u32, place: SourcePosition) -> CodePlace {
        if line > 0 { CodePlace::Source(line) } else { CodePlace::Module(place) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The file name in the module.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

impl SpirvInstruction {
    pub fn code_place(&self) -> CodePlace {
        CodePlace::new(self.line, self.place)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpirvType {
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
        pointee: u32,
    },
    Function {
        result: u32,
    },
    /// Images, samplers and other types without bytes.
    Handle(Op),
}

/// A constant before specialization.
#[derive(Clone, Debug, PartialEq)]
pub enum SpirvConstant {
    Scalar(u64),
    Composite(Vec<u32>),
    Null,
    Undefined,
    Operation(Op, Vec<u32>),
}

#[derive(Clone, Copy, Debug)]
pub struct GlobalVariable {
    pub ty: u32,
    /// The class that its memory is treated as.
    pub class: StorageClass,
    pub declared_class: StorageClass,
    pub place: SourcePosition,
    /// 0 for none.
    pub initializer: u32,
}

#[derive(Clone, Debug, Default)]
pub struct SpirvFunction {
    pub parameters: Vec<u32>,
    pub code: Vec<SpirvInstruction>,
    /// The position of each label in the code.
    pub labels: FxHashMap<u32, usize>,
    /// The types of parameters and results.
    pub types: FxHashMap<u32, u32>,
}

#[derive(Clone, Debug)]
pub struct ModuleEntryPoint {
    pub name: String,
    pub model: ExecutionModel,
    pub function: u32,
}

impl ModuleEntryPoint {
    /// Returns the stage. [`SpirvModule::find_entry`] returns only supported ones.
    pub fn shader_stage(&self) -> Stage {
        Stage::from_execution_model(self.model).unwrap_or_default()
    }
}

/// The decorations of an id or member.
#[derive(Clone, Debug, Default)]
pub struct Decorations {
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
    pub aliased: bool,
    pub restrict: bool,
    pub non_writable: bool,
    pub volatile: bool,
    pub block: bool,
}

#[derive(Clone, Debug, Default)]
pub struct SpirvModule {
    pub(crate) words: Vec<u32>,
    /// See [`SpirvModule::aliases`].
    pub(crate) aliases: BTreeMap<(u32, u32), u32>,
    pub types: FxHashMap<u32, SpirvType>,
    /// Type and value.
    pub constants: FxHashMap<u32, (u32, SpirvConstant)>,
    pub variables: BTreeMap<u32, GlobalVariable>,
    pub functions: BTreeMap<u32, SpirvFunction>,
    pub entry_points: Vec<ModuleEntryPoint>,
    /// The nesting depth of each type.
    type_depths: FxHashMap<u32, u32>,
    /// Pointer types that are declared after their use.
    forward_pointers: BTreeSet<u32>,
    local_sizes: FxHashMap<u32, ([u32; 3], bool)>,
    /// The modes of each entry point that have no operands.
    execution_modes: FxHashMap<u32, Vec<ExecutionMode>>,
    pub decorations: FxHashMap<u32, Decorations>,
    pub member_decorations: FxHashMap<(u32, u32), Decorations>,
    pub names: FxHashMap<u32, String>,
    pub member_names: FxHashMap<(u32, u32), String>,
    pub lines: Vec<SourceLine>,
    pub extended_sets: FxHashMap<u32, String>,
    /// clspv's reflection of push and specialization constants: instruction number and operands.
    pub reflection: Vec<(u32, Vec<u32>)>,
    /// The arguments of kernels, from clspv's reflection.
    pub kernel_arguments: Vec<KernelArgument>,
    /// True for the Vulkan memory model, false for GLSL450.
    pub uses_vulkan_model: bool,
    /// The scope to which plain accesses of buffers and images are available and visible by the rules of the
    /// source language; see [`SpirvModule::by_language_rules`]. `None` if the module decides.
    pub plain_access_scope: Option<Scope>,
    /// True for a module by the rules of its source language; see [`SpirvModule::by_language_rules`].
    pub is_by_language: bool,
    /// The rules of HLSL for such a module.
    pub hlsl: HlslRules,
    /// The declarations in the text of a source that decide which memory is coherent.
    pub(crate) coherence_declarations: Vec<CoherenceDeclaration>,
    /// The source language: that of `OpSource`, else that of the extension of a source file.
    pub language: Option<ShaderLanguage>,
    /// The version that `OpSource` names, such as 120 for OpenCL C 1.2.
    pub(crate) language_version: u32,
    /// Operands of image, matrix and similar types.
    pub handle_operands: FxHashMap<u32, Vec<u32>>,
    /// The pointer type of each module-level variable.
    pub variable_types: FxHashMap<u32, u32>,
    /// The ids of names in the text.
    pub text_names: BTreeMap<String, u32>,
    /// The annotations in the text's comments.
    pub annotations: Annotations,
}

/// Upper bound on the elements of a vector; some tools use vectors as arrays.
const MAX_ELEMENTS: u32 = 1024;
/// Upper bound on the nesting of types.
const MAX_DEPTH: u32 = 64;

/// Reads a module from words, or from text if the first word is not the magic number.
///
/// # Errors
/// Returns the position of the first error.
pub fn read_module(bytes: &[u8]) -> Result<SpirvModule, SpirvError> {
    let little = [0x03, 0x02, 0x23, 0x07];
    let big = [0x07, 0x23, 0x02, 0x03];
    if bytes.starts_with(&little) || bytes.starts_with(&big) {
        if !bytes.len().is_multiple_of(4) {
            return Err(
                malformed("its length is not a multiple of four bytes").located_at(SourcePosition::Module)
            );
        }
        let word = |four: &[u8]| match <[u8; 4]>::try_from(four) {
            Ok(four) if bytes.starts_with(&big) => u32::from_be_bytes(four),
            Ok(four) => u32::from_le_bytes(four),
            Err(_) => 0,
        };
        let module = SpirvModule::from_words(bytes.chunks_exact(4).map(word).collect(), None)?;
        module.check_code()?;
        return Ok(module);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        SpirvProblem::Syntax("neither a SPIR-V binary nor SPIR-V text".to_owned())
            .located_at(SourcePosition::Module)
    })?;
    let assembled = assemble_text(text)?;
    let mut module = SpirvModule::from_words(assembled.words, Some(&assembled.lines))?;
    module.text_names = assembled.names;
    for (name, id) in &module.text_names {
        module.names.entry(*id).or_insert_with(|| name.clone());
    }
    // After the names, which its message uses.
    module.check_code()?;
    module.annotations = Annotations::parse(text)?;
    Ok(module)
}

/// Reads a module from words.
///
/// # Errors
/// Returns the position of the first error.
pub fn read_words(words: &[u32]) -> Result<SpirvModule, SpirvError> {
    if words.first() != Some(&MAGIC_NUMBER) {
        return Err(malformed("it does not start with the magic number").located_at(SourcePosition::Word(0)));
    }
    let module = SpirvModule::from_words(words.to_vec(), None)?;
    module.check_code()?;
    Ok(module)
}

/// Debug information up to the current instruction.
#[derive(Default)]
struct DebugInfo {
    strings: HashMap<u32, String>,
    /// Sources of `NonSemantic.Shader.DebugInfo.100`: the string of each file.
    sources: HashMap<u32, u32>,
    line_indices: HashMap<SourceLine, u32>,
    current_line: u32,
    /// Functions and argument names by the ids that clspv's reflection gives them.
    reflected: ReflectedIds,
}

impl SpirvModule {
    fn from_words(words: Vec<u32>, lines: Option<&[u32]>) -> Result<SpirvModule, SpirvError> {
        let mut module = SpirvModule { words, lines: vec![SourceLine::default()], ..SpirvModule::default() };
        let mut debug = DebugInfo::default();
        let mut function: Option<(u32, SpirvFunction)> = None;
        let (mut at, mut index) = (HEADER_WORDS, 0);
        let mut results = FxHashSet::default();
        if module.words.len() < HEADER_WORDS {
            return Err(malformed("it ends within its header").located_at(SourcePosition::Word(0)));
        }
        while at < module.words.len() {
            let place = match lines.and_then(|lines| lines.get(index)) {
                Some(line) => SourcePosition::Line(*line),
                None => SourcePosition::Word(at as u32),
            };
            let (mut instruction, next) =
                module.decode_instruction(at, place).map_err(|problem| problem.located_at(place))?;
            index += 1;
            at = next;
            if instruction.result != 0 && !results.insert(instruction.result) {
                return Err(malformed("two instructions with the same result id").located_at(place));
            }
            if index > MAX_INSTRUCTIONS {
                let bound = MAX_INSTRUCTIONS;
                return Err(SpirvProblem::Budget { what: "instructions", bound }.located_at(place));
            }
            let added = module.add_instruction(&mut instruction, &mut debug, &mut function);
            added.map_err(|problem| problem.located_at(place))?;
        }
        if function.is_some() {
            return Err(malformed("a function does not end").located_at(SourcePosition::Word(at as u32)));
        }
        let of_file = |line: &SourceLine| ShaderLanguage::from_extension(line.file.rsplit('.').next()?);
        module.language = module.language.or_else(|| module.lines.iter().find_map(of_file));
        Ok(module)
    }

    /// Decodes the instruction at a word; also returns the next word.
    fn decode_instruction(
        &self,
        at: usize,
        place: SourcePosition,
    ) -> Result<(SpirvInstruction, usize), SpirvProblem> {
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
        let mut take = |is_present: bool| {
            if !is_present {
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
        Ok((SpirvInstruction { op: form.op, ty, result, operands, place, line: 0 }, end))
    }

    /// Checks the functions of a module whose names are known.
    fn check_code(&self) -> Result<(), SpirvError> {
        self.check_operands()?;
        self.check_definitions()?;
        self.check_labels()?;
        self.check_calls()
    }

    /// Returns the words; for text, as assembled.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the position and the instruction of each declaration, which precede the functions.
    pub fn declarations(&self) -> impl Iterator<Item = (usize, Op)> {
        let mut at = HEADER_WORDS;
        std::iter::from_fn(move || {
            let (first, word) = (*self.words.get(at)?, at);
            at += ((first >> 16) as usize).max(1);
            let op = opcode::by_number(first as u16)?.op;
            (op != Op::Function).then_some((word, op))
        })
    }

    /// Returns the results of the declarations.
    pub(crate) fn declared_results(&self) -> impl Iterator<Item = u32> {
        let result = |(at, op): (usize, Op)| {
            let form = opcode::by_number(op as u16).filter(|form| form.has_result)?;
            self.words.get(at + 1 + usize::from(form.has_type)).copied()
        };
        self.declarations().filter_map(result)
    }

    /// Returns the compiler of WGSL that made the module, by the number of its generator in the header.
    pub fn wgsl_compiler(&self) -> Option<&'static str> {
        match self.words.get(2)? {
            // naga writes its number where the version belongs.
            28 => Some("naga"),
            generator if generator >> 16 == 23 => Some("tint"),
            _ => None,
        }
    }

    /// Returns the id bound of the header.
    pub fn id_bound(&self) -> usize {
        self.words.get(3).map_or(0, |bound| *bound as usize)
    }

    /// Returns the position of the first word of an instruction.
    pub fn first_word(&self, instruction: &SpirvInstruction) -> usize {
        let ids = usize::from(instruction.ty != 0) + usize::from(instruction.result != 0);
        (instruction.operands.0 as usize).saturating_sub(1 + ids)
    }

    /// Returns the function and the text of the instruction at a word of a binary, for modules without lines.
    pub fn describe_instruction(&self, place: SourcePosition) -> Option<String> {
        let SourcePosition::Word(word) = place else { return None };
        let name = |id: u32| match self.names.get(&id).filter(|name| !name.is_empty()) {
            Some(name) => format!("%{name}"),
            None => format!("%{id}"),
        };
        let find = |(id, function): (&u32, &SpirvFunction)| {
            Some((*id, *function.code.iter().find(|one| one.place == place)?))
        };
        let (function, instruction) = self.functions.iter().find_map(find)?;
        let operands = self.operands_of(&instruction);
        // Selectors have one word; the text is for people.
        let ids = opcode::id_positions(instruction.op, operands, u32::BITS);
        let mut text = match instruction.result {
            0 => format!("Op{:?}", instruction.op),
            result => format!("{} = Op{:?}", name(result), instruction.op),
        };
        for (at, operand) in operands.iter().enumerate() {
            text += " ";
            text += &if ids.contains(&at) { name(*operand) } else { operand.to_string() };
        }
        Some(format!("word {word} in {}: {text}", name(function)))
    }

    /// Returns the number of words of the instruction at a word.
    pub fn word_count(&self, word: u32) -> u32 {
        self.words.get(word as usize).map_or(1, |first| first >> 16)
    }

    /// Returns the operands of an instruction after its type and result.
    pub fn operands_of(&self, instruction: &SpirvInstruction) -> &[u32] {
        let (from, to) = instruction.operands;
        self.words.get(from as usize..to as usize).unwrap_or_default()
    }

    pub fn operand_at(&self, instruction: &SpirvInstruction, index: usize) -> Result<u32, SpirvProblem> {
        operand_of(instruction.op, self.operands_of(instruction), index)
    }

    fn add_instruction(
        &mut self,
        instruction: &mut SpirvInstruction,
        debug: &mut DebugInfo,
        function: &mut Option<(u32, SpirvFunction)>,
    ) -> Result<(), SpirvProblem> {
        match instruction.op {
            Op::Line => {
                let (file, line) = (self.operand_at(instruction, 0)?, self.operand_at(instruction, 1)?);
                // naga places what has no place in the source at the start of the file. No instruction of a source is there.
                match self.operand_at(instruction, 2)? == 1 && line == 1 {
                    true => debug.current_line = 0,
                    false => self.set_current_line(debug, file, line),
                }
                return Ok(());
            }
            Op::NoLine => {
                debug.current_line = 0;
                return Ok(());
            }
            Op::ExtInst => {
                let operands = self.operands_of(instruction).to_vec();
                let set =
                    operands.first().and_then(|set| self.extended_sets.get(set)).cloned().unwrap_or_default();
                if set.starts_with("NonSemantic.") {
                    self.add_debug_instruction(
                        &set,
                        instruction.result,
                        operands.get(1..).unwrap_or_default(),
                        debug,
                    );
                    return Ok(());
                }
            }
            _ => {}
        }
        instruction.line = debug.current_line;
        if let Some((_, function)) = function.as_mut().filter(|_| instruction.ty != 0) {
            function.types.insert(instruction.result, instruction.ty);
        }
        match (instruction.op, function.as_mut()) {
            (Op::Function, None) => *function = Some((instruction.result, SpirvFunction::default())),
            (Op::Function, Some(_)) => return Err(malformed("nested functions")),
            (Op::FunctionEnd, Some(_)) => {
                if let Some((id, mut function)) = function.take() {
                    self.inherit_lines(&mut function);
                    self.remove_loop_guards(&mut function);
                    self.functions.insert(id, function);
                }
                debug.current_line = 0;
            }
            (Op::FunctionParameter, Some((_, function))) => function.parameters.push(instruction.result),
            (op, Some((_, function))) => {
                if op == Op::Label {
                    debug.current_line = 0;
                    instruction.line = 0;
                    function.labels.insert(instruction.result, function.code.len());
                }
                function.code.push(*instruction);
            }
            (_, None) => self.add_declaration(instruction, debug)?,
        }
        Ok(())
    }

    fn set_current_line(&mut self, debug: &mut DebugInfo, file: u32, line: u32) {
        let file = debug.strings.get(&file).cloned().unwrap_or_default();
        let source = SourceLine { file, line };
        let lines = &mut self.lines;
        debug.current_line = *debug.line_indices.entry(source.clone()).or_insert_with(|| {
            lines.push(source);
            (lines.len() - 1) as u32
        });
    }

    fn add_debug_instruction(&mut self, set: &str, result: u32, operands: &[u32], debug: &mut DebugInfo) {
        let Some((number, operands)) = operands.split_first() else { return };
        if set.starts_with("NonSemantic.ClspvReflection") {
            self.add_reflection(result, *number, operands, &debug.strings, &mut debug.reflected);
        } else if set == "NonSemantic.Shader.DebugInfo.100" {
            match (*number, operands) {
                // `DebugSource`: its file.
                (35, [file, ..]) => {
                    debug.sources.insert(result, *file);
                }
                // `DebugLine`: source, and the id of its first line.
                (103, [source, line, ..]) => {
                    let file = debug.sources.get(source).copied().unwrap_or(0);
                    if let Some((_, SpirvConstant::Scalar(line))) = self.constants.get(line) {
                        self.set_current_line(debug, file, *line as u32);
                    }
                }
                // `DebugNoLine`.
                (104, _) => debug.current_line = 0,
                _ => {}
            }
        }
    }

    fn add_declaration(
        &mut self,
        instruction: &SpirvInstruction,
        debug: &mut DebugInfo,
    ) -> Result<(), SpirvProblem> {
        let operands = self.operands_of(instruction).to_vec();
        let operand = |index: usize| operand_of(instruction.op, &operands, index);
        let string_at = |index: usize| decode_string(operands.get(index..).unwrap_or_default()).0;
        let result = instruction.result;
        match instruction.op {
            Op::String => {
                debug.strings.insert(result, string_at(0));
            }
            Op::ExtInstImport => {
                self.extended_sets.insert(result, string_at(0));
            }
            Op::Name => {
                let name = string_at(1);
                if !name.is_empty() {
                    self.names.insert(operand(0)?, name);
                }
            }
            Op::MemberName => {
                self.member_names.insert((operand(0)?, operand(1)?), string_at(2));
            }
            Op::Source => {
                self.language = ShaderLanguage::from_source_number(operand(0)?);
                self.language_version = operand(1)?;
                if let Some(language) = self.language {
                    self.coherence_declarations = coherence_declarations(language, &string_at(3));
                }
            }
            Op::MemoryModel => {
                self.uses_vulkan_model = match MemoryModel::from_u32(operand(1)?) {
                    Some(MemoryModel::Vulkan) => true,
                    Some(MemoryModel::GLSL450) => false,
                    other => return Err(unsupported(format!("memory model {other:?}"))),
                };
            }
            Op::EntryPoint => self.add_entry_point(operand(0)?, operand(1)?, string_at(2))?,
            Op::ExecutionMode | Op::ExecutionModeId => {
                let mode = ExecutionMode::from_u32(operand(1)?);
                if let Some(mode @ (ExecutionMode::LocalSize | ExecutionMode::LocalSizeId)) = mode {
                    let size = [operand(2)?, operand(3)?, operand(4)?];
                    self.local_sizes.insert(operand(0)?, (size, mode == ExecutionMode::LocalSizeId));
                }
                if let (Some(mode), 2) = (mode, operands.len()) {
                    self.execution_modes.entry(operand(0)?).or_default().push(mode);
                }
            }
            Op::Decorate => {
                let entry = self.decorations.entry(operand(0)?).or_default();
                apply_decoration(entry, operand(1)?, operands.get(2).copied());
            }
            Op::MemberDecorate => {
                let entry = self.member_decorations.entry((operand(0)?, operand(1)?)).or_default();
                apply_decoration(entry, operand(2)?, operands.get(3).copied());
            }
            Op::Variable => self.add_variable(instruction, &operands)?,
            // A forward-declared pointer; the type nesting ends there.
            Op::TypeForwardPointer => {
                self.forward_pointers.insert(operand(0)?);
            }
            op => {
                if let Some(constant) = self.parse_constant(instruction, &operands)? {
                    self.add_constant(instruction, constant)?;
                } else if let Some(ty) = self.parse_type(op, &operands)? {
                    self.add_type(result, ty, operands)?;
                }
            }
        }
        Ok(())
    }

    fn add_entry_point(&mut self, model: u32, function: u32, name: String) -> Result<(), SpirvProblem> {
        let model =
            ExecutionModel::from_u32(model).ok_or_else(|| unsupported(format!("execution model {model}")))?;
        self.entry_points.push(ModuleEntryPoint { name, model, function });
        // Outputs and payloads of mesh stages are shared memory, unlike those of other stages.
        let mesh = |entry: &ModuleEntryPoint| entry.model == ExecutionModel::MeshEXT;
        if self.entry_points.iter().any(mesh) && !self.entry_points.iter().all(mesh) {
            return Err(unsupported("a mesh shader and another stage in one module"));
        }
        Ok(())
    }

    fn add_variable(&mut self, instruction: &SpirvInstruction, operands: &[u32]) -> Result<(), SpirvProblem> {
        let Some(SpirvType::Pointer { class, pointee: to }) = self.types.get(&instruction.ty) else {
            return Err(malformed("a variable whose type is not a pointer"));
        };
        let declared_class = StorageClass::from_u32(operand_of(Op::Variable, operands, 0)?).unwrap_or(*class);
        let variable = GlobalVariable {
            ty: *to,
            class: self.effective_class(declared_class),
            declared_class,
            place: instruction.place,
            initializer: operands.get(1).copied().unwrap_or(0),
        };
        self.variables.insert(instruction.result, variable);
        self.variable_types.insert(instruction.result, instruction.ty);
        Ok(())
    }

    fn add_type(&mut self, result: u32, ty: SpirvType, operands: Vec<u32>) -> Result<(), SpirvProblem> {
        // A forward declaration must become a pointer, so that no type contains itself.
        if self.forward_pointers.contains(&result) && !matches!(ty, SpirvType::Pointer { .. }) {
            return Err(malformed("a forward pointer that is not a pointer"));
        }
        if matches!(ty, SpirvType::Handle(_)) {
            self.handle_operands.insert(result, operands);
        }
        let depth = self.type_depth(&ty);
        if depth > MAX_DEPTH {
            return Err(malformed(format!("types more than {MAX_DEPTH} deep")));
        }
        self.type_depths.insert(result, depth);
        self.types.insert(result, ty);
        Ok(())
    }

    fn parse_constant(
        &self,
        instruction: &SpirvInstruction,
        operands: &[u32],
    ) -> Result<Option<SpirvConstant>, SpirvProblem> {
        Ok(Some(match instruction.op {
            Op::Undef => SpirvConstant::Undefined,
            Op::Constant | Op::SpecConstant => {
                let low = u64::from(operand_of(instruction.op, operands, 0)?);
                let value = low | u64::from(operands.get(1).copied().unwrap_or(0)) << 32;
                let bits = match self.types.get(&instruction.ty) {
                    Some(SpirvType::Integer { bits, .. } | SpirvType::Float { bits }) => *bits,
                    _ => return Err(malformed("a constant whose type is not a number")),
                };
                SpirvConstant::Scalar(value & mask(bits))
            }
            Op::ConstantTrue | Op::SpecConstantTrue => SpirvConstant::Scalar(1),
            Op::ConstantFalse | Op::SpecConstantFalse => SpirvConstant::Scalar(0),
            Op::ConstantNull => SpirvConstant::Null,
            Op::ConstantComposite | Op::SpecConstantComposite => SpirvConstant::Composite(operands.to_vec()),
            Op::SpecConstantOp => {
                let number = operand_of(instruction.op, operands, 0)?;
                let op = u16::try_from(number).ok().and_then(opcode::by_number);
                let op = op.ok_or_else(|| malformed(format!("instruction number {number}")))?.op;
                SpirvConstant::Operation(op, operands[1..].to_vec())
            }
            _ => return Ok(None),
        }))
    }

    fn add_constant(
        &mut self,
        instruction: &SpirvInstruction,
        constant: SpirvConstant,
    ) -> Result<(), SpirvProblem> {
        let known = |id: &u32| self.constants.contains_key(id) || self.variables.contains_key(id);
        if let SpirvConstant::Composite(parts) | SpirvConstant::Operation(_, parts) = &constant {
            let ids = match &constant {
                // Literals follow the composites.
                SpirvConstant::Operation(Op::CompositeExtract, _) => &parts[..parts.len().min(1)],
                SpirvConstant::Operation(Op::CompositeInsert | Op::VectorShuffle, _) => {
                    &parts[..parts.len().min(2)]
                }
                _ => &parts[..],
            };
            if !ids.iter().all(known) {
                return Err(malformed("a constant whose constituent is not a preceding constant"));
            }
        }
        self.constants.insert(instruction.result, (instruction.ty, constant));
        Ok(())
    }

    fn parse_type(&self, op: Op, operands: &[u32]) -> Result<Option<SpirvType>, SpirvProblem> {
        let operand = |index: usize| operand_of(op, operands, index);
        // A type must be declared before its use, so that none contains itself.
        let inner = |index: usize| {
            let id = operand(index)?;
            match self.types.contains_key(&id) || self.forward_pointers.contains(&id) {
                true => Ok(id),
                false => Err(malformed(format!("Op{op:?} of an id that is not a preceding type"))),
            }
        };
        Ok(Some(match op {
            Op::TypeVoid => SpirvType::Void,
            Op::TypeBool => SpirvType::Bool,
            Op::TypeInt => match operand(0)? {
                bits @ 1..=64 => SpirvType::Integer { bits, signed: operand(1)? != 0 },
                bits => return Err(unsupported(format!("integers of {bits} bits"))),
            },
            Op::TypeFloat => match operand(0)? {
                bits @ 8..=64 => SpirvType::Float { bits },
                bits => return Err(unsupported(format!("floats of {bits} bits"))),
            },
            Op::TypeVector | Op::TypeMatrix if operand(1)? > MAX_ELEMENTS => {
                return Err(unsupported(format!("Op{op:?} of more than {MAX_ELEMENTS}")));
            }
            Op::TypeVector => SpirvType::Vector { element: inner(0)?, count: operand(1)? },
            Op::TypeMatrix => SpirvType::Matrix { column: inner(0)?, count: operand(1)? },
            // A long vector may have a length that is specialized.
            Op::TypeArray | Op::TypeVectorIdEXT => {
                SpirvType::Array { element: inner(0)?, length: operand(1)? }
            }
            Op::TypeRuntimeArray => SpirvType::RuntimeArray { element: inner(0)? },
            Op::TypeStruct => {
                SpirvType::Struct { members: (0..operands.len()).map(inner).collect::<Result<_, _>>()? }
            }
            Op::TypePointer => {
                let class = operand(0)?;
                let class = StorageClass::from_u32(class)
                    .ok_or_else(|| unsupported(format!("storage class {class}")))?;
                SpirvType::Pointer { class: self.effective_class(class), pointee: operand(1)? }
            }
            Op::TypeFunction => SpirvType::Function { result: operand(0)? },
            _ if crate::opcode::declares_type(op) => SpirvType::Handle(op),
            _ => return Ok(None),
        }))
    }

    /// Returns the class that a mesh or task shader's memory is treated as.
    ///
    /// Memory shared by a workgroup counts as workgroup memory, and the payload of a mesh shader as input.
    fn effective_class(&self, class: StorageClass) -> StorageClass {
        let mesh = self.entry_points.iter().any(|entry| entry.model == ExecutionModel::MeshEXT);
        match class {
            StorageClass::TaskPayloadWorkgroupEXT if mesh => StorageClass::Input,
            StorageClass::TaskPayloadWorkgroupEXT => StorageClass::Workgroup,
            StorageClass::Output if mesh => StorageClass::Workgroup,
            other => other,
        }
    }

    /// Returns the nesting depth of a type whose parts are declared.
    fn type_depth(&self, ty: &SpirvType) -> u32 {
        let depth = |id: &u32| self.type_depths.get(id).copied().unwrap_or(0);
        1 + match ty {
            SpirvType::Vector { element, .. }
            | SpirvType::Array { element, .. }
            | SpirvType::RuntimeArray { element } => depth(element),
            SpirvType::Matrix { column, .. } => depth(column),
            SpirvType::Struct { members } => members.iter().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    pub fn type_of_id(&self, id: u32) -> Result<&SpirvType, SpirvProblem> {
        self.types.get(&id).ok_or_else(|| malformed(format!("{} is not a type", self.display_name(id))))
    }

    /// Returns the id of a name in the text or debug information.
    pub fn id_by_name(&self, name: &str) -> Option<u32> {
        if let Some(id) = self.text_names.get(name) {
            return Some(*id);
        }
        let mut ids: Vec<u32> =
            self.names.iter().filter(|(_, known)| *known == name).map(|(id, _)| *id).collect();
        ids.sort_by_key(|id| (!self.variables.contains_key(id), *id));
        ids.first().copied()
    }

    /// Returns the index of a structure member.
    pub fn member_by_name(&self, ty: u32, name: &str) -> Option<u64> {
        let Some(SpirvType::Struct { members }) = self.types.get(&ty) else { return None };
        let named = |index: &u32| self.member_names.get(&(ty, *index)).is_some_and(|known| known == name);
        (0..members.len() as u32).find(named).map(u64::from)
    }

    /// Returns the member names of a structure.
    pub fn names_of_members(&self, ty: u32) -> Vec<String> {
        let Some(SpirvType::Struct { members }) = self.types.get(&ty) else { return Vec::new() };
        let name = |index| self.member_names.get(&(ty, index)).filter(|name| !name.is_empty()).cloned();
        (0..members.len() as u32).filter_map(name).collect()
    }

    /// Returns true for a structure whose only member has no name in the source, as compilers of HLSL, Slang and
    /// WGSL make it around the array of a buffer.
    pub fn wraps_one_part(&self, ty: u32) -> bool {
        let Some(SpirvType::Struct { members }) = self.types.get(&ty) else { return false };
        let name = self.member_names.get(&(ty, 0)).map_or("", String::as_str);
        members.len() == 1 && is_synthetic_name(name)
    }

    /// Returns true for a structure with one member.
    pub fn has_one_member(&self, ty: u32) -> bool {
        matches!(self.types.get(&ty), Some(SpirvType::Struct { members }) if members.len() == 1)
    }

    /// Returns the variable at a set and binding, also of a descriptor that is an alias.
    pub fn variable_at(&self, at: (u32, u32)) -> Option<u32> {
        if let Some(id) = self.aliases.get(&at) {
            return Some(*id);
        }
        self.variables_at(at).first().copied()
    }

    /// Returns the variables of a descriptor, in the order of their ids.
    pub fn variables_at(&self, at: (u32, u32)) -> Vec<u32> {
        self.variables.keys().copied().filter(|id| self.descriptor_of(*id) == Some(at)).collect()
    }

    /// Returns the descriptor sets and bindings of the variables.
    pub fn descriptors(&self) -> BTreeSet<(u32, u32)> {
        self.variables.keys().filter_map(|id| self.descriptor_of(*id)).collect()
    }

    /// Returns true if a descriptor is an image, a sampler or another handle, and not a buffer.
    pub fn is_handle_at(&self, at: (u32, u32)) -> bool {
        let class = |id: u32| self.variables.get(&id).map(|variable| variable.declared_class);
        self.variables_at(at).into_iter().any(|id| class(id) == Some(StorageClass::UniformConstant))
    }

    /// Returns the descriptor set and binding of a variable, if it has a binding.
    pub fn descriptor_of(&self, id: u32) -> Option<(u32, u32)> {
        let own = self.decorations.get(&id)?;
        Some((own.set.unwrap_or(0), own.binding?))
    }

    /// Returns the type of the elements of nested arrays, or the type itself.
    pub fn element_type(&self, mut ty: u32) -> u32 {
        while let Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) =
            self.types.get(&ty)
        {
            ty = *element;
        }
        ty
    }

    /// Returns true if a variable has no name.
    pub fn is_unnamed(&self, id: u32) -> bool {
        self.names.get(&id).is_none_or(String::is_empty)
    }

    /// Returns the name of an id in the source; the numbers that assemblers write as names are none.
    pub fn source_name(&self, id: u32) -> Option<&str> {
        let name = self.names.get(&id)?;
        let first = name.chars().next()?;
        (!first.is_ascii_digit() && first != '%').then_some(name)
    }

    /// Returns the source name of a variable of type `ty`, or that of its block.
    pub fn source_name_of_variable(&self, id: u32, ty: u32) -> Option<&str> {
        self.source_name(id).or_else(|| self.source_name(ty))
    }

    pub fn display_name(&self, id: u32) -> String {
        let number = || match self.names.get(&id).map(|name| name.trim_start_matches('%')) {
            None | Some("") => format!("%{id}"),
            Some(number) => format!("%{number}"),
        };
        self.source_name(id).map_or_else(number, str::to_owned)
    }

    /// Returns the display name of a variable of type `ty`: that of the source, or the set and binding of a resource.
    pub fn variable_name(&self, id: u32, ty: u32) -> String {
        match (self.source_name_of_variable(id, ty), self.descriptor_of(id)) {
            (Some(name), _) => name.to_owned(),
            (None, Some((set, binding))) => format!("set {set} binding {binding}"),
            (None, None) => self.display_name(id),
        }
    }

    /// Returns the place of a variable as a name, if the module has none: `push`, or `buffer.` with set and binding.
    pub fn place_name(&self, id: u32) -> String {
        let decorations = self.decorations_of(id);
        match (self.variables.get(&id).map(|variable| variable.class), decorations.binding) {
            (Some(StorageClass::PushConstant), _) => "push".to_owned(),
            (_, Some(binding)) => format!("buffer.{}.{binding}", decorations.set.unwrap_or(0)),
            _ => self.display_name(id),
        }
    }

    /// Returns the names of the entry points of supported stages.
    pub fn entry_points(&self) -> Vec<&str> {
        self.entry_points
            .iter()
            .filter(|entry| Stage::from_execution_model(entry.model).is_some())
            .map(|entry| entry.name.as_str())
            .collect()
    }

    /// Returns true if the module has no entry point of any stage.
    pub fn has_no_entry_point(&self) -> bool {
        self.entry_points.is_empty()
    }

    /// Describes that no entry point has a supported stage.
    pub fn describe_missing_entry_point(&self) -> String {
        let other = |of: &ModuleEntryPoint| {
            format!("; `{}` has the stage {:?}; use `lint` for it", of.name, of.model)
        };
        let others: String = self.entry_points.iter().map(other).collect();
        format!("no entry point of a compute, vertex, fragment, task or mesh shader{others}")
    }

    /// Returns the source line of a position in the code, if the module has one.
    pub fn source_line(&self, index: u32) -> Option<&SourceLine> {
        self.lines.get(index as usize).filter(|_| index > 0)
    }

    /// Returns the file of a line, if it is unique.
    pub fn file_of(&self, line: u32) -> Option<&str> {
        let mut files = self.lines.iter().filter(|known| known.line == line).map(|known| known.file.as_str());
        let first = files.next().filter(|file| !file.is_empty())?;
        files.all(|file| file == first).then_some(first)
    }

    /// Returns the named entry point, or the only one.
    pub fn find_entry(&self, name: Option<&str>) -> Result<&ModuleEntryPoint, SpirvError> {
        let mut found = self.entry_points.iter().filter(|entry| name.is_none_or(|name| entry.name == name));
        let names = || {
            self.entry_points.iter().map(|entry| format!("`{}`", entry.name)).collect::<Vec<_>>().join(", ")
        };
        let problem = match (found.next(), found.next(), name) {
            (Some(entry), None, _) | (Some(entry), Some(_), Some(_)) => {
                match Stage::from_execution_model(entry.model) {
                    Some(_) => return Ok(entry),
                    None => unsupported(format!("entry points of execution model {:?}", entry.model)),
                }
            }
            (Some(_), Some(_), None) => {
                SpirvProblem::EntryPoint(format!("several entry points ({}): name one", names()))
            }
            (None, _, Some(name)) if !self.has_no_entry_point() => {
                SpirvProblem::EntryPoint(format!("no entry point `{name}`; expected one of {}", names()))
            }
            (None, _, Some(name)) => SpirvProblem::EntryPoint(format!("no entry point `{name}`")),
            (None, _, None) => SpirvProblem::EntryPoint("no entry point".to_owned()),
        };
        Err(problem.located_at(SourcePosition::Module))
    }

    /// Returns the execution modes of an entry point that have no operands.
    pub fn execution_modes(&self, function: u32) -> &[ExecutionMode] {
        self.execution_modes.get(&function).map_or(&[], Vec::as_slice)
    }

    /// Returns the declared local size of an entry point; true if it consists of ids.
    pub fn declared_local_size(&self, function: u32) -> Option<([u32; 3], bool)> {
        self.local_sizes.get(&function).copied()
    }

    pub fn decorations_of(&self, id: u32) -> Decorations {
        self.decorations.get(&id).cloned().unwrap_or_default()
    }
}

fn operand_of(op: Op, operands: &[u32], index: usize) -> Result<u32, SpirvProblem> {
    operands.get(index).copied().ok_or_else(|| malformed(format!("Op{op:?} lacks operand {index}")))
}

fn apply_decoration(entry: &mut Decorations, decoration: u32, parameter: Option<u32>) {
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
        Some(Decoration::Aliased) => entry.aliased = true,
        Some(Decoration::Restrict) => entry.restrict = true,
        Some(Decoration::NonWritable) => entry.non_writable = true,
        Some(Decoration::Volatile) => entry.volatile = true,
        Some(Decoration::Block) => entry.block = true,
        _ => {}
    }
}

/// Returns true for the names that compilers generate for members without a name in the source.
pub fn is_synthetic_name(name: &str) -> bool {
    name.is_empty() || name.starts_with('@')
}
