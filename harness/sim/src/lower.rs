//! From a module to a program: registers for ids, flat operations for instructions.
//!
//! Every register is numbered above those that its operation reads, except what phis and variables hold; so one split
//! of the register file gives sources and destination. Loads give their values late: an operation that needs one is
//! preceded by a wait for it.

mod memory;

use std::collections::HashMap;

use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn as SpirvBuiltIn, Op as SpirvOp, StorageClass};

use crate::fault::Fault;
use crate::module::{LoadError, Module, Placed, Type, malformed};
use crate::order;
use crate::program::{
    Binary, BuiltIn, DEVICE, Edge, MemoryOp, NONE, Op, Place, Program, Reference, Register,
};

/// What an id stands for.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A word, or the first of the words of a vector.
    Value(Register),
    /// An address in memory.
    Pointer { reference: u16, address: Register },
    /// A variable of the function.
    Variable(Register),
    /// A word of the push constants.
    Parameter(u32),
    /// The block of push constants.
    Parameters,
    /// An input.
    Input(SpirvBuiltIn),
    /// A whole variable in memory that is no word.
    Whole { reference: u16, ty: u32 },
}

/// Makes a program of a module's words.
///
/// # Errors
/// What is wrong with the module, or what the machine lacks.
pub(crate) fn load(words: &[u32], fault: Fault) -> Result<Program, LoadError> {
    let module = Module::new(words)?;
    let mut lowering = Lowering {
        module: &module,
        program: Program::default(),
        meanings: HashMap::new(),
        blocks: HashMap::new(),
        loaded: Vec::new(),
        awaited: Vec::new(),
        phis: HashMap::new(),
        indices: Vec::new(),
        block: 0,
        label: 0,
    };
    lowering.globals()?;
    lowering.allocate()?;
    lowering.body()?;
    lowering.finish(fault)
}

/// What a phi fills, and the value by the label that execution comes from.
type Phi = (Register, Vec<(u32, u32)>);

struct Lowering<'m> {
    module: &'m Module,
    program: Program,
    meanings: HashMap<u32, Meaning>,
    /// Number of each label's block.
    blocks: HashMap<u32, u32>,
    /// Registers that loads fill.
    loaded: Vec<Register>,
    /// Those that this block has waited for.
    awaited: Vec<Register>,
    /// By block: result, and value by the label that execution comes from.
    phis: HashMap<u32, Vec<Phi>>,
    /// Ids that addresses of buffers are computed from, with the reference.
    indices: Vec<(u32, u16)>,
    block: u32,
    label: u32,
}

impl Lowering<'_> {
    fn register(&mut self) -> Register {
        self.program.registers += 1;
        (self.program.registers - 1) as Register
    }

    /// Constants and global variables.
    fn globals(&mut self) -> Result<(), LoadError> {
        let module = self.module;
        let [x, y, z] = module.workgroup_size.ok_or_else(|| malformed(0, "no LocalSize"))?;
        if (y, z) != (1, 1) {
            return Err(LoadError::Lacks("workgroups of more than one dimension".into()));
        }
        self.program.workgroup_size = x;
        let mut constants: Vec<(u32, u32)> =
            module.constants.iter().map(|(id, value)| (*id, *value)).collect();
        constants.sort_unstable();
        for (id, value) in constants {
            let register = self.register();
            self.program.constants.push((register, value));
            self.meanings.insert(id, Meaning::Value(register));
        }
        for (id, pointer, class, word) in &module.variables {
            let Some(Type::Pointer { to, .. }) = module.types.get(pointer) else {
                return Err(malformed(*word, "a variable whose type is no pointer"));
            };
            let meaning = match class {
                StorageClass::PushConstant => Meaning::Parameters,
                StorageClass::Input => {
                    let built_in = module.built_ins.get(id).copied();
                    Meaning::Input(built_in.ok_or_else(|| malformed(*word, "an input that is no built-in"))?)
                }
                StorageClass::StorageBuffer => {
                    let binding = module.bindings.get(id).copied();
                    let binding = binding.ok_or_else(|| malformed(*word, "a buffer without a binding"))?;
                    let reference = self.reference(*id, Place::Binding(binding), 0);
                    Meaning::Whole { reference, ty: *to }
                }
                StorageClass::Workgroup if module.blocks.contains(to) => {
                    Meaning::Whole { reference: self.workgroup_block(*id, module.words_of(*to)), ty: *to }
                }
                StorageClass::Workgroup => self.workgroup_variable(*id, *to),
                other => return Err(LoadError::Lacks(format!("variables of class {other:?}"))),
            };
            self.meanings.insert(*id, meaning);
        }
        Ok(())
    }

    /// A variable in workgroup memory of its own.
    fn workgroup_variable(&mut self, id: u32, ty: u32) -> Meaning {
        let (first, words) = (self.program.workgroup_words, self.module.words_of(ty));
        self.program.workgroup_words = first.saturating_add(words);
        let reference = self.reference(id, Place::Workgroup(first, words), 1);
        if !matches!(self.module.types.get(&ty), Some(Type::Word { .. })) {
            return Meaning::Whole { reference, ty };
        }
        let address = self.register();
        self.program.ops.push(Op::Address { to: address, reference, index: NONE, scale: 0, offset: 0 });
        Meaning::Pointer { reference, address }
    }

    /// Blocks in workgroup memory all lie at its start, and are one reference.
    fn workgroup_block(&mut self, id: u32, words: u32) -> u16 {
        self.program.workgroup_words = self.program.workgroup_words.max(words);
        let known =
            self.program.references.iter_mut().enumerate().find_map(
                |(number, reference)| match &mut reference.place {
                    Place::Workgroup(_, all) => {
                        *all = words.max(*all);
                        Some(number as u16)
                    }
                    Place::Binding(_) => None,
                },
            );
        known.unwrap_or_else(|| self.reference(id, Place::Workgroup(0, words), 1))
    }

    fn reference(&mut self, id: u32, place: Place, class: u8) -> u16 {
        let name = self.module.names.get(&id).cloned().unwrap_or_else(|| match place {
            Place::Binding(binding) => format!("binding {binding}"),
            Place::Workgroup(first, _) => format!("workgroup word {first}"),
        });
        let references = &mut self.program.references;
        references.push(Reference { name, place, class, lowest: DEVICE, write_only: false, aliased: false });
        (references.len() - 1) as u16
    }

    /// Registers for all results, and numbers for all blocks, in the order of the module.
    fn allocate(&mut self) -> Result<(), LoadError> {
        let module = self.module;
        let mut block = 0;
        for placed in &module.body {
            if placed.op() == SpirvOp::Label {
                self.blocks.insert(placed.result()?, block);
                block += 1;
            }
            let (Some(id), Some(ty)) = (placed.instruction.result_id, placed.instruction.result_type) else {
                continue;
            };
            let meaning = match module.types.get(&ty) {
                Some(Type::Word { .. } | Type::Bool) => Meaning::Value(self.register()),
                Some(Type::Vector { count, .. }) => {
                    let first = self.register();
                    for _ in 1..*count {
                        self.register();
                    }
                    Meaning::Value(first)
                }
                Some(Type::Pointer { class: StorageClass::Function, .. }) => {
                    Meaning::Variable(self.register())
                }
                Some(Type::Pointer { class: StorageClass::PushConstant | StorageClass::Input, .. }) => {
                    continue;
                }
                Some(Type::Pointer { .. }) => {
                    Meaning::Pointer { reference: u16::MAX, address: self.register() }
                }
                Some(Type::Void) => continue,
                _ => {
                    return Err(LoadError::Lacks(format!("Op{:?} of this type", placed.op())));
                }
            };
            self.meanings.insert(id, meaning);
        }
        for placed in module.body.iter().filter(|placed| placed.op() == SpirvOp::Phi) {
            let Meaning::Value(to) = self.meaning(placed, placed.result()?)? else {
                return Err(LoadError::Lacks("OpPhi of pointers".into()));
            };
            let sources = placed.instruction.operands.chunks(2).map(|pair| match pair {
                [Operand::IdRef(value), Operand::IdRef(from)] => Ok((*from, *value)),
                _ => Err(malformed(placed.word, "an odd phi")),
            });
            let sources: Vec<(u32, u32)> = sources.collect::<Result<_, _>>()?;
            let block = self.block_of(placed.word);
            self.phis.entry(block).or_default().push((to, sources));
        }
        Ok(())
    }

    /// The block that a word of the module lies in.
    fn block_of(&self, word: usize) -> u32 {
        let labels = self.module.body.iter().filter(|placed| placed.op() == SpirvOp::Label);
        (labels.filter(|label| label.word <= word).count() as u32).saturating_sub(1)
    }

    fn meaning(&self, placed: &Placed, id: u32) -> Result<Meaning, LoadError> {
        self.meanings.get(&id).copied().ok_or_else(|| malformed(placed.word, format!("no value %{id} here")))
    }

    /// The register of a value, without waiting for it.
    fn late(&self, placed: &Placed, id: u32) -> Result<Register, LoadError> {
        match self.meaning(placed, id)? {
            Meaning::Value(register) => Ok(register),
            _ => Err(malformed(placed.word, format!("%{id} is no word"))),
        }
    }

    /// The register of a value that is needed now.
    fn value(&mut self, placed: &Placed, id: u32) -> Result<Register, LoadError> {
        let register = self.late(placed, id)?;
        self.wait_for(register);
        Ok(register)
    }

    fn wait_for(&mut self, register: Register) {
        if self.loaded.contains(&register) && !self.awaited.contains(&register) {
            self.awaited.push(register);
            self.program.ops.push(Op::Await { register });
        }
    }

    fn constant(&self, placed: &Placed, id: u32) -> Result<u32, LoadError> {
        let value = self.module.constants.get(&id).copied();
        value.ok_or_else(|| {
            LoadError::Lacks(format!("Op{:?} with an operand that is no constant", placed.op()))
        })
    }

    fn body(&mut self) -> Result<(), LoadError> {
        // What loads fill has to be known before the first use, which a loop may bring before the load.
        for placed in &self.module.body {
            if memory::loads(placed.op())
                && let Ok(Meaning::Value(register)) = self.meaning(placed, placed.result()?)
                && !self.reads_no_memory(placed)
            {
                self.loaded.push(register);
            }
        }
        for placed in &self.module.body {
            self.instruction(placed)?;
        }
        let end = self.program.ops.len() as u32;
        self.program.blocks.push(end);
        Ok(())
    }

    /// Whether an OpLoad reads a variable of the function, an input or a push constant.
    fn reads_no_memory(&self, placed: &Placed) -> bool {
        let Ok(id) = placed.id(0) else { return false };
        match self.meanings.get(&id) {
            Some(Meaning::Pointer { .. }) => false,
            Some(_) | None => placed.op() == SpirvOp::Load,
        }
    }

    fn instruction(&mut self, placed: &Placed) -> Result<(), LoadError> {
        use SpirvOp::{
            AccessChain, Branch, BranchConditional, CompositeExtract, CopyObject, Label, LoopMerge, Phi,
            Return, Select, SelectionMerge, Switch, Variable,
        };
        match placed.op() {
            Label => {
                self.label = placed.result()?;
                self.block = self.blocks.get(&self.label).copied().unwrap_or(0);
                self.awaited.clear();
                // The first block begins with the addresses of global variables.
                let start = if self.block == 0 { 0 } else { self.program.ops.len() as u32 };
                self.program.blocks.push(start);
            }
            Phi | SelectionMerge | LoopMerge => {}
            Variable => self.variable(placed)?,
            AccessChain => self.access_chain(placed)?,
            CompositeExtract => {
                let first = self.value(placed, placed.id(0)?)?;
                let to = self.late(placed, placed.result()?)?;
                self.program.ops.push(Op::Copy { to, from: first.wrapping_add(placed.literal(1)?) });
            }
            CopyObject => {
                let from = self.value(placed, placed.id(0)?)?;
                let to = self.late(placed, placed.result()?)?;
                self.program.ops.push(Op::Copy { to, from });
            }
            Select => {
                let [condition, yes, no] = [0, 1, 2].map(|index| {
                    let id = placed.id(index)?;
                    self.value(placed, id)
                });
                let to = self.late(placed, placed.result()?)?;
                self.program.ops.push(Op::Select { to, condition: condition?, yes: yes?, no: no? });
            }
            Branch => {
                let edge = self.edge(placed, placed.id(0)?)?;
                self.program.ops.push(Op::Jump { edge });
            }
            BranchConditional => {
                let condition = self.value(placed, placed.id(0)?)?;
                let yes = self.edge(placed, placed.id(1)?)?;
                let no = self.edge(placed, placed.id(2)?)?;
                self.program.ops.push(Op::Branch { condition, yes, no });
            }
            Switch => self.switch(placed)?,
            Return => self.program.ops.push(Op::Return),
            op if memory::is_memory(op) => self.memory(placed)?,
            op => {
                let (op, swapped) =
                    binary(op).ok_or_else(|| LoadError::Lacks(format!("Op{:?}", placed.op())))?;
                let (mut left, mut right) =
                    (self.value(placed, placed.id(0)?)?, self.value(placed, placed.id(1)?)?);
                if swapped {
                    std::mem::swap(&mut left, &mut right);
                }
                let to = self.late(placed, placed.result()?)?;
                self.program.ops.push(Op::Binary { op, to, left, right });
            }
        }
        Ok(())
    }

    fn variable(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let Meaning::Variable(to) = self.meaning(placed, placed.result()?)? else {
            return Err(LoadError::Lacks("OpVariable of this class in a function".into()));
        };
        if placed.instruction.operands.len() > 1 {
            let from = self.value(placed, placed.id(1)?)?;
            self.program.ops.push(Op::Assign { to, from });
        }
        Ok(())
    }

    fn access_chain(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let base = self.meaning(placed, placed.id(0)?)?;
        let result = placed.result()?;
        let count = placed.instruction.operands.len();
        if let Meaning::Parameters = base {
            let member = self.constant(placed, placed.id(1)?)?;
            self.program.parameter_words = self.program.parameter_words.max(member.saturating_add(1));
            self.meanings.insert(result, Meaning::Parameter(member));
            return Ok(());
        }
        let Meaning::Whole { reference, mut ty } = base else {
            return Err(LoadError::Lacks("OpAccessChain into this variable".into()));
        };
        let Meaning::Pointer { address, .. } = self.meaning(placed, result)? else {
            return Err(malformed(placed.word, "an access chain whose type is no pointer"));
        };
        let (mut index, mut scale, mut offset) = (NONE, 0u32, 0u32);
        for position in 1..count {
            let id = placed.id(position)?;
            match self.module.types.get(&ty) {
                Some(Type::Struct { members }) => {
                    let member = self.constant(placed, id)?;
                    offset = offset.wrapping_add(self.module.offset_of(ty, member));
                    let inner = members.get(member as usize).copied();
                    ty = inner.ok_or_else(|| malformed(placed.word, "no such member"))?;
                }
                Some(Type::Array { element, .. }) => {
                    let stride = self.module.stride_of(ty, *element);
                    ty = *element;
                    match self.module.constants.get(&id) {
                        Some(constant) => offset = offset.wrapping_add(constant.wrapping_mul(stride)),
                        None if index == NONE => {
                            index = self.value(placed, id)?;
                            scale = stride;
                            self.indices.push((id, reference));
                        }
                        None => return Err(LoadError::Lacks("OpAccessChain with several indices".into())),
                    }
                }
                _ => return Err(LoadError::Lacks("OpAccessChain into this type".into())),
            }
        }
        if !matches!(self.module.types.get(&ty), Some(Type::Word { .. })) {
            return Err(LoadError::Lacks("OpAccessChain to something other than a word".into()));
        }
        self.meanings.insert(result, Meaning::Pointer { reference, address });
        self.program.ops.push(Op::Address { to: address, reference, index, scale, offset });
        Ok(())
    }

    fn switch(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let selector_id = placed.id(0)?;
        let selector = self.value(placed, selector_id)?;
        let mut ways = Vec::new();
        for pair in placed.instruction.operands.get(2..).unwrap_or_default().chunks(2) {
            let [Operand::LiteralBit32(literal), Operand::IdRef(label)] = pair else {
                return Err(malformed(placed.word, "an odd switch"));
            };
            ways.push((*literal, self.edge(placed, *label)?));
        }
        let otherwise = self.edge(placed, placed.id(1)?)?;
        let first = self.program.cases.len() as u32;
        self.program.cases.extend(ways);
        let cases = (first, self.program.cases.len() as u32);
        self.program.ops.push(Op::Switch { selector, cases, otherwise });
        // What the first block computes without memory is what an invocation plays.
        let second_label = self.module.body.iter().filter(|p| p.op() == SpirvOp::Label).nth(1);
        let defined = self.module.body.iter().find(|p| p.instruction.result_id == Some(selector_id));
        let early = match (defined, second_label) {
            (Some(defined), Some(label)) => defined.word < label.word,
            _ => false,
        };
        if early && !self.loaded.contains(&selector) && !self.program.keys.contains(&selector) {
            self.program.keys.push(selector);
        }
        Ok(())
    }

    /// A way from this block to the one with this label.
    fn edge(&mut self, placed: &Placed, label: u32) -> Result<u32, LoadError> {
        let to = self.blocks.get(&label).copied();
        let to = to.ok_or_else(|| malformed(placed.word, format!("no block %{label}")))?;
        let mut copies = Vec::new();
        for (register, sources) in self.phis.get(&to).cloned().unwrap_or_default() {
            let from = sources.iter().find(|(from, _)| *from == self.label).map(|(_, value)| *value);
            let from = from.ok_or_else(|| malformed(placed.word, "a phi without a value for this block"))?;
            copies.push((register, self.value(placed, from)?));
        }
        let crossing = copies
            .iter()
            .enumerate()
            .any(|(at, (to, _))| copies.iter().skip(at + 1).any(|(_, from)| from == to));
        let first = self.program.copies.len() as u32;
        self.program.copies.extend(copies);
        let copies = (first, self.program.copies.len() as u32);
        // Whether the loop is an outermost one is known when all blocks are.
        self.program.edges.push(Edge { to, copies, crossing, ends_round: to <= self.block });
        Ok((self.program.edges.len() - 1) as u32)
    }

    fn finish(mut self, fault: Fault) -> Result<Program, LoadError> {
        self.mark_outermost_loops();
        let program = &mut self.program;
        for (number, reference) in program.references.iter_mut().enumerate() {
            let own: Vec<&MemoryOp> = program
                .memory
                .iter()
                .filter(|op| op.is_access() && usize::from(op.reference) == number)
                .collect();
            let level = |op: &&MemoryOp| if op.is_atomic() { op.scope } else { 0 };
            reference.lowest = own.iter().map(level).min().unwrap_or(DEVICE);
            let declared_alone = !self.module.variables.iter().any(|(id, ..)| {
                self.module.aliased.contains(id)
                    && matches!(self.meanings.get(id), Some(Meaning::Whole { reference, .. }) if usize::from(*reference) == number)
            });
            let plain = |op: &&MemoryOp| !op.is_read() && !op.is_atomic() && op.private && !op.available;
            reference.write_only = declared_alone && reference.class == 0 && own.iter().all(plain);
            reference.aliased = self.indices.iter().any(|(id, own)| {
                usize::from(*own) == number
                    && self.indices.iter().any(|(other, of)| other == id && usize::from(*of) != number)
            });
        }
        let count = program.memory.len();
        program.order = (0..count * count)
            .map(|pair| {
                let (earlier, later) = (program.memory.get(pair / count), program.memory.get(pair % count));
                match (earlier, later) {
                    (Some(earlier), Some(later)) => order::wait(earlier, later, fault),
                    _ => crate::program::Wait::Always,
                }
            })
            .collect();
        Ok(self.program)
    }

    /// A round ends where the loop is in no other loop.
    fn mark_outermost_loops(&mut self) {
        let program = &self.program;
        let mut back: Vec<(u32, u32, usize)> = Vec::new();
        let starts = &program.blocks;
        for (position, op) in program.ops.iter().enumerate() {
            let block = starts.iter().take_while(|start| **start as usize <= position).count() as u32 - 1;
            let edges: Vec<u32> = match op {
                Op::Jump { edge } => vec![*edge],
                Op::Branch { yes, no, .. } => vec![*yes, *no],
                Op::Switch { cases, otherwise, .. } => {
                    let ways = program.cases.get(cases.0 as usize..cases.1 as usize).unwrap_or_default();
                    ways.iter().map(|(_, edge)| *edge).chain([*otherwise]).collect()
                }
                _ => continue,
            };
            for edge in edges {
                if let Some(way) = program.edges.get(edge as usize).filter(|way| way.ends_round) {
                    back.push((way.to, block, edge as usize));
                }
            }
        }
        for (head, from, edge) in &back {
            let inner = back.iter().any(|(outer, until, _)| outer < head && until >= from);
            if let Some(edge) = self.program.edges.get_mut(*edge) {
                edge.ends_round = !inner;
            }
        }
    }
}

fn binary(op: SpirvOp) -> Option<(Binary, bool)> {
    use Binary as B;
    Some(match op {
        SpirvOp::IAdd => (B::Add, false),
        SpirvOp::ISub => (B::Subtract, false),
        SpirvOp::IMul => (B::Multiply, false),
        SpirvOp::UDiv => (B::Divide, false),
        SpirvOp::UMod => (B::Modulo, false),
        SpirvOp::BitwiseAnd | SpirvOp::LogicalAnd => (B::And, false),
        SpirvOp::BitwiseOr | SpirvOp::LogicalOr => (B::Or, false),
        SpirvOp::BitwiseXor | SpirvOp::LogicalNotEqual => (B::Xor, false),
        SpirvOp::ShiftLeftLogical => (B::ShiftLeft, false),
        SpirvOp::ShiftRightLogical => (B::ShiftRight, false),
        SpirvOp::IEqual | SpirvOp::LogicalEqual => (B::Equal, false),
        SpirvOp::INotEqual => (B::NotEqual, false),
        SpirvOp::SLessThan => (B::SignedLess, false),
        SpirvOp::SGreaterThan => (B::SignedLess, true),
        SpirvOp::SLessThanEqual => (B::SignedLessEqual, false),
        SpirvOp::SGreaterThanEqual => (B::SignedLessEqual, true),
        SpirvOp::ULessThan => (B::Less, false),
        SpirvOp::UGreaterThan => (B::Less, true),
        SpirvOp::ULessThanEqual => (B::LessEqual, false),
        SpirvOp::UGreaterThanEqual => (B::LessEqual, true),
        _ => return None,
    })
}

/// What an input gives in each component.
fn components(built_in: SpirvBuiltIn) -> Option<BuiltIn> {
    Some(match built_in {
        SpirvBuiltIn::WorkgroupId => BuiltIn::Workgroup,
        SpirvBuiltIn::LocalInvocationIndex | SpirvBuiltIn::LocalInvocationId => BuiltIn::Local,
        SpirvBuiltIn::SubgroupId => BuiltIn::Subgroup,
        SpirvBuiltIn::SubgroupLocalInvocationId => BuiltIn::Lane,
        SpirvBuiltIn::GlobalInvocationId => BuiltIn::Global,
        _ => return None,
    })
}
