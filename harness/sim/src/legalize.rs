//! Legalization: rewrites user modules into the form that lowering takes.
//!
//! It strips debug information, folds specialization constants, replaces instructions that lowering does not
//! support, and inlines all calls into one function.

mod constant;

use std::collections::{HashMap, HashSet};

use plan::Interface;
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{BuiltIn, Decoration, ExecutionMode, GlslStd450Op, Op, StorageClass, Word};

use crate::instruction::{LoadError, LocatedInstruction, malformed_module};

/// The maximal call depth; SPIR-V has no recursion.
const MAX_DEPTH: u32 = 32;
/// The maximal number of instructions in the inlined function.
const MAX_BODY: usize = 100_000;

/// Instructions that the machine ignores.
const SILENT: [Op; 9] = [
    Op::Source,
    Op::SourceContinued,
    Op::SourceExtension,
    Op::String,
    Op::Line,
    Op::NoLine,
    Op::ModuleProcessed,
    Op::ExtInstImport,
    Op::Nop,
];

/// A function: its parameters and its code, labels included.
#[derive(Default)]
struct Function {
    parameters: Vec<Word>,
    code: Vec<Instruction>,
}

struct Legalizer<'m> {
    interface: &'m Interface,
    bound: Word,
    head: Vec<Instruction>,
    /// Type and words of scalar constants.
    constants: HashMap<Word, (Word, Vec<u32>)>,
    /// Composite constants in module order: ids, types and members.
    composites: Vec<(Word, Word, Vec<Word>)>,
    /// Private variables of an invocation with their initializers.
    own: Vec<Instruction>,
    spec_ids: HashMap<Word, u32>,
    /// Extended instruction sets that compute nothing.
    silent: Vec<Word>,
    /// The GLSL.std.450 instruction sets.
    glsl: Vec<Word>,
    functions: HashMap<Word, Function>,
    types: HashMap<Word, Instruction>,
    /// The pointee type of each pointer.
    pointee: HashMap<Word, Word>,
    sets: HashMap<Word, u32>,
    bindings: HashMap<Word, u32>,
}

fn instruction(op: Op, ty: Option<Word>, result: Option<Word>, operands: Vec<Operand>) -> Instruction {
    Instruction::new(op, ty, result, operands)
}

fn id_of(instruction: &Instruction, index: usize) -> Result<Word, LoadError> {
    match instruction.operands.get(index) {
        Some(Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id)) => Ok(*id),
        _ => Err(malformed_module(
            0,
            format!("operand {index} of Op{:?} is not an id", instruction.class.opcode),
        )),
    }
}

/// Legalizes a module for an interface.
pub(crate) fn legalize(
    all: Vec<LocatedInstruction>,
    interface: &Interface,
) -> Result<Vec<LocatedInstruction>, LoadError> {
    let ids = all.iter().filter_map(|placed| placed.instruction.result_id);
    let mut plain = Legalizer {
        interface,
        bound: ids.max().unwrap_or(0) + 1,
        head: Vec::new(),
        constants: HashMap::new(),
        composites: Vec::new(),
        own: Vec::new(),
        spec_ids: HashMap::new(),
        silent: Vec::new(),
        glsl: Vec::new(),
        functions: HashMap::new(),
        types: HashMap::new(),
        pointee: HashMap::new(),
        sets: HashMap::new(),
        bindings: HashMap::new(),
    };
    let entry = plain.read(all)?;
    let body = plain.body(entry)?;
    plain.place_bindings();
    let mut code = plain.head;
    code.extend(body);
    // Word offsets are lost here; lowering only needs the order of instructions.
    Ok(code
        .into_iter()
        .enumerate()
        .map(|(word, instruction)| LocatedInstruction { word, instruction })
        .collect())
}

impl Legalizer<'_> {
    fn fresh(&mut self) -> Word {
        self.bound += 1;
        self.bound - 1
    }

    /// Reads declarations and functions; returns the id of the entry point function.
    fn read(&mut self, all: Vec<LocatedInstruction>) -> Result<Word, LoadError> {
        let mut entry = None;
        let mut function: Option<(Word, Function)> = None;
        let mut modes = Vec::new();
        for LocatedInstruction { word, instruction: own } in all {
            let op = own.class.opcode;
            if let (Op::ExtInstImport, Some(Operand::LiteralString(name))) = (op, own.operands.first()) {
                match name.as_str() {
                    "GLSL.std.450" => self.glsl.extend(own.result_id),
                    name if name.starts_with("NonSemantic.") => self.silent.extend(own.result_id),
                    _ => {}
                }
            }
            if SILENT.contains(&op) {
                continue;
            }
            match (op, &mut function) {
                (Op::Function, _) => {
                    let id =
                        own.result_id.ok_or_else(|| malformed_module(word, "a function without an id"))?;
                    function = Some((id, Function::default()));
                }
                (Op::FunctionEnd, _) => {
                    if let Some((id, own)) = function.take() {
                        self.functions.insert(id, own);
                    }
                }
                (Op::FunctionParameter, Some((_, function))) => function.parameters.extend(own.result_id),
                (_, Some((_, function))) => function.code.push(own),
                (Op::EntryPoint, None) => {
                    if matches!(own.operands.get(2), Some(Operand::LiteralString(name)) if *name == self.interface.entry)
                    {
                        entry = Some(id_of(&own, 1)?);
                        self.head.push(own);
                    }
                }
                (Op::ExecutionMode | Op::ExecutionModeId, None) => modes.push(own),
                _ => self.declare(own, word)?,
            }
        }
        let entry =
            entry.ok_or_else(|| malformed_module(0, format!("no entry point `{}`", self.interface.entry)))?;
        for own in modes {
            self.mode(own, entry)?;
        }
        self.workgroup_size(entry)?;
        Ok(entry)
    }

    fn declare(&mut self, own: Instruction, word: usize) -> Result<(), LoadError> {
        let (ty, result) = (own.result_type, own.result_id);
        match own.class.opcode {
            Op::ExtInst => return Ok(()),
            Op::Decorate => match (own.operands.get(1), own.operands.get(2)) {
                (Some(Operand::Decoration(Decoration::SpecId)), Some(Operand::LiteralBit32(id))) => {
                    self.spec_ids.insert(id_of(&own, 0)?, *id);
                    return Ok(());
                }
                (Some(Operand::Decoration(Decoration::DescriptorSet)), Some(Operand::LiteralBit32(set))) => {
                    self.sets.insert(id_of(&own, 0)?, *set);
                    return Ok(());
                }
                (Some(Operand::Decoration(Decoration::Binding)), Some(Operand::LiteralBit32(binding))) => {
                    self.bindings.insert(id_of(&own, 0)?, *binding);
                    return Ok(());
                }
                _ => {}
            },
            Op::Constant | Op::SpecConstant => {
                let (Some(ty), Some(result)) = (ty, result) else {
                    return Err(malformed_module(word, "an invalid constant"));
                };
                let mut words = match own.operands.first() {
                    Some(Operand::LiteralBit32(low)) => vec![*low],
                    Some(Operand::LiteralBit64(number)) => vec![*number as u32, (*number >> 32) as u32],
                    _ => return Err(malformed_module(word, "a constant without a number")),
                };
                if let Some(given) = self.given(result) {
                    words = given
                        .chunks(4)
                        .map(|four| four.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
                        .collect();
                }
                let number = words.iter().rev().fold(0, |all, word| all << 32 | u64::from(*word));
                return self.constant(ty, result, &[number]);
            }
            Op::SpecConstantOp => return self.computed(&own, word),
            op @ (Op::ConstantTrue | Op::ConstantFalse) => {
                let (Some(ty), Some(result)) = (ty, result) else {
                    return Err(malformed_module(word, "an invalid constant"));
                };
                return self.constant(ty, result, &[u64::from(op == Op::ConstantTrue)]);
            }
            op @ (Op::SpecConstantTrue | Op::SpecConstantFalse) => {
                let given = result.and_then(|result| self.given(result));
                let holds =
                    given.map_or(op == Op::SpecConstantTrue, |bytes| bytes.iter().any(|byte| *byte != 0));
                let (Some(ty), Some(result)) = (ty, result) else {
                    return Err(malformed_module(word, "an invalid constant"));
                };
                return self.constant(ty, result, &[u64::from(holds)]);
            }
            Op::ConstantComposite | Op::SpecConstantComposite => {
                let parts =
                    (0..own.operands.len()).map(|index| id_of(&own, index)).collect::<Result<_, _>>()?;
                if let (Some(ty), Some(result)) = (ty, result) {
                    self.composites.push((result, ty, parts));
                }
                return Ok(());
            }
            Op::ConstantNull | Op::Undef => {
                let of = ty.and_then(|ty| self.types.get(&ty)).map(|of| of.class.opcode);
                if let (Some(Op::TypeInt | Op::TypeFloat | Op::TypeBool), Some(ty), Some(result)) =
                    (of, ty, result)
                {
                    return self.constant(ty, result, &[0]);
                }
            }
            Op::Variable => match own.operands[..] {
                [Operand::StorageClass(StorageClass::Private), ..] => {
                    self.own.push(own);
                    return Ok(());
                }
                [_, Operand::IdRef(_)] => {
                    return Err(LoadError::Lacks("variables of the module with initial values".into()));
                }
                _ => {}
            },
            op if format!("{op:?}").starts_with("Type") => {
                if let Some(result) = result {
                    self.types.insert(result, own.clone());
                }
            }
            _ => {}
        }
        self.head.push(own);
        Ok(())
    }

    /// Returns the value that the interface gives a specialization constant.
    fn given(&self, result: Word) -> Option<Vec<u8>> {
        let id = self.spec_ids.get(&result)?;
        let constants = &self.interface.constants;
        constants.iter().find(|(own, _)| own == id).map(|(_, bytes)| {
            let mut bytes = bytes.clone();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        })
    }

    fn number(&self, id: Word) -> Option<u32> {
        self.constants.get(&id).and_then(|(_, words)| words.first()).copied()
    }

    fn mode(&mut self, mut own: Instruction, entry: Word) -> Result<(), LoadError> {
        if id_of(&own, 0)? != entry {
            return Ok(());
        }
        if own.operands.get(1) == Some(&Operand::ExecutionMode(ExecutionMode::LocalSizeId)) {
            let mut operands = vec![Operand::IdRef(entry), Operand::ExecutionMode(ExecutionMode::LocalSize)];
            for index in 2..5 {
                let size = self.number(id_of(&own, index)?);
                operands.push(Operand::LiteralBit32(
                    size.ok_or_else(|| malformed_module(0, "a local size that is not a number"))?,
                ));
            }
            own = instruction(Op::ExecutionMode, None, None, operands);
        }
        self.head.push(own);
        Ok(())
    }

    /// Writes the workgroup size as an execution mode; a decorated constant takes precedence.
    fn workgroup_size(&mut self, entry: Word) -> Result<(), LoadError> {
        let decorated = self.head.iter().find_map(|own| match &own.operands[..] {
            [
                Operand::IdRef(id),
                Operand::Decoration(Decoration::BuiltIn),
                Operand::BuiltIn(BuiltIn::WorkgroupSize),
            ] => Some(*id),
            _ => None,
        });
        let composite = |id: Word| self.composites.iter().find(|(own, ..)| *own == id);
        let Some((_, _, parts)) = decorated.and_then(composite) else { return Ok(()) };
        let mut operands = vec![Operand::IdRef(entry), Operand::ExecutionMode(ExecutionMode::LocalSize)];
        for part in parts {
            let size =
                self.number(*part).ok_or_else(|| malformed_module(0, "a local size that is not a number"))?;
            operands.push(Operand::LiteralBit32(size));
        }
        self.head
            .retain(|own| own.operands.get(1) != Some(&Operand::ExecutionMode(ExecutionMode::LocalSize)));
        self.head.push(instruction(Op::ExecutionMode, None, None, operands));
        Ok(())
    }

    /// Numbers bindings in the order of the interface, all in one set.
    fn place_bindings(&mut self) {
        let mut bindings: Vec<(Word, u32)> =
            self.bindings.iter().map(|(id, binding)| (*id, *binding)).collect();
        bindings.sort_unstable();
        for (id, binding) in bindings {
            let set = self.sets.get(&id).copied().unwrap_or(0);
            // A variable without a binding in the interface is unused.
            let place =
                self.interface.binding_position(set, binding).map_or(u32::MAX, |position| position as u32);
            let operands = vec![
                Operand::IdRef(id),
                Operand::Decoration(Decoration::Binding),
                Operand::LiteralBit32(place),
            ];
            self.head.insert(0, instruction(Op::Decorate, None, None, operands));
        }
    }

    /// Builds the inlined function.
    fn body(&mut self, entry: Word) -> Result<Vec<Instruction>, LoadError> {
        let mut inlined = Inlined::default();
        let names = HashMap::new();
        inlined.put(self, entry, names, 0)?;
        let Inlined { variables, code } = inlined;
        let known = self.head.iter().chain(&self.own).chain(&variables).chain(&code);
        self.pointee = known
            .filter_map(|own| {
                let pointer = self.types.get(&own.result_type?)?;
                let to = (pointer.class.opcode == Op::TypePointer).then(|| id_of(pointer, 1).ok())??;
                Some((own.result_id?, to))
            })
            .collect();
        let mut code = Simple::default().all(self, code)?;
        let used = |code: &[Instruction]| -> HashSet<Word> {
            let operands = code.iter().flat_map(|own| &own.operands);
            operands
                .filter_map(|operand| if let Operand::IdRef(id) = operand { Some(*id) } else { None })
                .collect()
        };
        let mut needed = used(&code);
        let own = std::mem::take(&mut self.own);
        let (mut first, mut stores) = (variables, Vec::new());
        for mut variable in own.into_iter().filter(|own| own.result_id.is_some_and(|id| needed.contains(&id)))
        {
            if let (Some(value), Some(result)) = (variable.operands.get(1).cloned(), variable.result_id) {
                stores.push(instruction(Op::Store, None, None, vec![Operand::IdRef(result), value]));
                variable.operands.truncate(1);
            }
            first.push(variable);
        }
        needed.extend(used(&stores));
        let mut composites = Vec::new();
        for (result, ty, parts) in std::mem::take(&mut self.composites).into_iter().rev() {
            if needed.contains(&result) {
                needed.extend(&parts);
                let parts = parts.into_iter().map(Operand::IdRef).collect();
                composites.push(instruction(Op::CompositeConstruct, Some(ty), Some(result), parts));
            }
        }
        first.extend(composites.into_iter().rev());
        first.extend(stores);
        let at = code.iter().position(|own| own.class.opcode == Op::Label).map_or(0, |label| label + 1);
        code.splice(at..at, first);
        let mut body = vec![instruction(Op::Function, None, Some(entry), Vec::new())];
        body.extend(code);
        body.push(instruction(Op::FunctionEnd, None, None, Vec::new()));
        Ok(body)
    }
}

/// The code of the entry point with its callees inlined.
#[derive(Default)]
struct Inlined {
    variables: Vec<Instruction>,
    code: Vec<Instruction>,
}

impl Inlined {
    /// Appends the code of a function, with fresh ids if it was called. Returns its result and the block that
    /// the result comes from.
    fn put(
        &mut self,
        plain: &mut Legalizer<'_>,
        function: Word,
        mut names: HashMap<Word, Word>,
        depth: u32,
    ) -> Result<Vec<(Word, Option<Word>)>, LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::Lacks("calls nested this deep".into()));
        }
        let Some(own) = plain.functions.get(&function) else {
            return Err(malformed_module(0, "a call without a function"));
        };
        let code = own.code.clone();
        if depth > 0 {
            for id in code.iter().filter_map(|own| own.result_id) {
                let fresh = plain.fresh();
                names.insert(id, fresh);
            }
        }
        let (mut block, mut returns) = (0, Vec::new());
        // After an inlined call, a block continues under another label.
        let mut tails: HashMap<Word, Word> = HashMap::new();
        let first = self.code.len();
        for mut own in code {
            if self.code.len() > MAX_BODY {
                return Err(LoadError::Lacks("a function of this size".into()));
            }
            rename(&mut own, &names);
            match own.class.opcode {
                Op::Label => {
                    block = own.result_id.unwrap_or(0);
                    if depth > 0 && self.code.len() == first {
                        self.code.push(branch(block));
                    }
                    self.code.push(own);
                }
                Op::Variable => {
                    if let (Some(value), Some(result)) = (own.operands.get(1).cloned(), own.result_id) {
                        self.code.push(instruction(
                            Op::Store,
                            None,
                            None,
                            vec![Operand::IdRef(result), value],
                        ));
                        own.operands.truncate(1);
                    }
                    self.variables.push(own);
                }
                Op::FunctionCall => {
                    let called = id_of(&own, 0)?;
                    let parameters =
                        plain.functions.get(&called).map(|f| f.parameters.clone()).unwrap_or_default();
                    let arguments: Vec<Word> =
                        (1..own.operands.len()).map(|index| id_of(&own, index)).collect::<Result<_, _>>()?;
                    let inner = parameters.into_iter().zip(arguments).collect();
                    let start = self.code.len();
                    let given = self.put(plain, called, inner, depth + 1)?;
                    let after = plain.fresh();
                    // Each return of the callee becomes a branch to the code after the call.
                    for own in self.code.iter_mut().skip(start).filter(|own| own.class.opcode == Op::Return) {
                        if own.result_id == Some(RETURNED) {
                            *own = branch(after);
                        }
                    }
                    self.code.push(instruction(Op::Label, None, Some(after), Vec::new()));
                    let is_value = given.iter().all(|(_, value)| value.is_some()) && !given.is_empty();
                    if let (true, Some(ty), Some(result)) = (is_value, own.result_type, own.result_id) {
                        let operands = given.iter().flat_map(|(from, value)| {
                            [Operand::IdRef(value.unwrap_or(0)), Operand::IdRef(*from)]
                        });
                        self.code.push(instruction(Op::Phi, Some(ty), Some(result), operands.collect()));
                    }
                    tails.insert(block, after);
                    tails.values_mut().for_each(|tail| {
                        if *tail == block {
                            *tail = after;
                        }
                    });
                    block = after;
                }
                Op::Return | Op::ReturnValue | Op::Unreachable if depth > 0 => {
                    if own.class.opcode != Op::Unreachable {
                        let value =
                            if own.class.opcode == Op::ReturnValue { Some(id_of(&own, 0)?) } else { None };
                        returns.push((block, value));
                    }
                    // Marked, so that the call can turn it into a branch.
                    self.code.push(Instruction {
                        result_id: Some(RETURNED),
                        ..instruction(Op::Return, None, None, Vec::new())
                    });
                }
                Op::Unreachable => self.code.push(instruction(Op::Return, None, None, Vec::new())),
                _ => self.code.push(own),
            }
        }
        for own in self.code.iter_mut().skip(first).filter(|own| own.class.opcode == Op::Phi) {
            for from in own.operands.iter_mut().skip(1).step_by(2) {
                if let Operand::IdRef(label) = from
                    && let Some(tail) = tails.get(label)
                {
                    *label = *tail;
                }
            }
        }
        Ok(returns)
    }
}

/// Marks the returns of a call that is being inlined.
const RETURNED: Word = Word::MAX;

fn branch(label: Word) -> Instruction {
    instruction(Op::Branch, None, None, vec![Operand::IdRef(label)])
}

fn rename(own: &mut Instruction, names: &HashMap<Word, Word>) {
    let new = |id: &mut Word| {
        if let Some(name) = names.get(id) {
            *id = *name;
        }
    };
    own.result_id.iter_mut().for_each(new);
    for operand in &mut own.operands {
        match operand {
            Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id) => new(id),
            _ => {}
        }
    }
}

/// Replaces instructions that lowering does not support by ones that it does.
#[derive(Default)]
struct Simple {
    /// Access chains: the variable, and the indices from there.
    chains: HashMap<Word, (Word, Vec<Operand>)>,
}

impl Simple {
    fn all(
        mut self,
        plain: &mut Legalizer<'_>,
        code: Vec<Instruction>,
    ) -> Result<Vec<Instruction>, LoadError> {
        let mut simple = Vec::with_capacity(code.len());
        for own in code {
            self.one(plain, own, &mut simple)?;
        }
        Ok(simple)
    }

    fn one(
        &mut self,
        plain: &mut Legalizer<'_>,
        own: Instruction,
        simple: &mut Vec<Instruction>,
    ) -> Result<(), LoadError> {
        let (ty, result) = (own.result_type, own.result_id);
        match own.class.opcode {
            Op::ExtInst => {
                let set = id_of(&own, 0)?;
                if plain.glsl.contains(&set) {
                    // The integer part is stored through the pointer; the fractional part is the result.
                    if own.operands.get(1) == Some(&Operand::LiteralExtInstInteger(GlslStd450Op::Modf as u32))
                    {
                        let (from, to, whole) = (id_of(&own, 2)?, id_of(&own, 3)?, plain.fresh());
                        let trunc = Operand::LiteralExtInstInteger(GlslStd450Op::Trunc as u32);
                        let operands = vec![Operand::IdRef(set), trunc, Operand::IdRef(from)];
                        simple.push(instruction(Op::ExtInst, ty, Some(whole), operands));
                        let operands = [to, whole].map(Operand::IdRef).to_vec();
                        simple.push(instruction(Op::Store, None, None, operands));
                        let operands = [from, whole].map(Operand::IdRef).to_vec();
                        simple.push(instruction(Op::FSub, ty, result, operands));
                        return Ok(());
                    }
                    simple.push(own);
                } else if !plain.silent.contains(&set) {
                    return Err(LoadError::Lacks(
                        "extended instructions other than those of GLSL.std.450".into(),
                    ));
                }
            }
            Op::InBoundsAccessChain | Op::AccessChain => {
                let base = id_of(&own, 0)?;
                let (root, mut indices) = self.chains.get(&base).cloned().unwrap_or((base, Vec::new()));
                indices.extend(own.operands.into_iter().skip(1));
                if let Some(result) = result {
                    self.chains.insert(result, (root, indices.clone()));
                }
                let operands = std::iter::once(Operand::IdRef(root)).chain(indices).collect();
                simple.push(instruction(Op::AccessChain, ty, result, operands));
            }
            Op::CopyMemory => {
                let (to, from) = (id_of(&own, 0)?, id_of(&own, 1)?);
                let ty = plain.pointee.get(&from).copied();
                let ty = ty
                    .ok_or_else(|| malformed_module(0, "OpCopyMemory of an operand that is not a pointer"))?;
                let value = plain.fresh();
                let access = own.operands.get(2..).unwrap_or_default();
                let with = |ids: Vec<Operand>| ids.into_iter().chain(access.iter().cloned()).collect();
                let load = with(vec![Operand::IdRef(from)]);
                simple.push(instruction(Op::Load, Some(ty), Some(value), load));
                let store = with(vec![Operand::IdRef(to), Operand::IdRef(value)]);
                simple.push(instruction(Op::Store, None, None, store));
            }
            Op::CopyLogical => simple.push(instruction(Op::CopyObject, ty, result, own.operands)),
            op @ (Op::AtomicIIncrement | Op::AtomicIDecrement) => {
                let ty = ty.ok_or_else(|| malformed_module(0, "an atomic without a type"))?;
                let one = plain.fresh();
                plain.constant(ty, one, &[1])?;
                let mut operands = own.operands.clone();
                operands.push(Operand::IdRef(one));
                let op = if op == Op::AtomicIIncrement { Op::AtomicIAdd } else { Op::AtomicISub };
                simple.push(instruction(op, Some(ty), result, operands));
            }
            _ => simple.push(own),
        }
        Ok(())
    }
}
