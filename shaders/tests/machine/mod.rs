//! A SPIR-V interpreter for kernels. It is sequentially consistent, executes one instruction of one
//! invocation at a time in an order from the caller, and is independent of the kernel compiler.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod stages;

use std::collections::{BTreeMap, HashMap};

use rspirv::dr::{self, Operand};
use rspirv::spirv::{BuiltIn, Decoration, Op, Scope, StorageClass, Word};
use shaders::{CompiledKernel, Parameters, StressParameters};

/// The value of a variable before its first store.
const UNSET: u32 = 0xdead_beef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferAccess {
    pub binding: u32,
    pub word: usize,
    pub op: Op,
    /// The value before the access, if it reads.
    pub read: Option<u32>,
    /// The value after the access, if it writes.
    pub written: Option<u32>,
}

/// A kernel prepared for execution.
pub struct Program {
    blocks: Vec<dr::Block>,
    index_of: HashMap<Word, usize>,
    constants: HashMap<Word, u32>,
    bindings: HashMap<Word, u32>,
    inputs: HashMap<Word, BuiltIn>,
    push_constants: Vec<u32>,
    /// True to execute `<` of unsigned numbers as `<=`, as in a miscompiled kernel.
    pub off_by_one: bool,
    /// Values that contain the coordinates of a fragment.
    coordinates: Vec<Word>,
    /// Values that contain the indexes of a workgroup.
    workgroups: Vec<Word>,
}

/// The target of a pointer.
#[derive(Clone, Copy, Debug)]
enum Pointer {
    Buffer { binding: u32, word: usize },
    PushConstant(usize),
}

/// The state of an invocation.
pub struct Invocation {
    /// The index of the workgroup in x, and in y.
    pub workgroup: u32,
    pub row: u32,
    pub local: u32,
    pub subgroup: u32,
    pub lane: u32,
    /// Of fragments: the position, and whether it is a helper.
    pub pixel: (u32, u32),
    pub helper: bool,
    /// Of vertices: the size of a workgroup.
    pub size: u32,
    block: usize,
    previous: Word,
    next: usize,
    values: HashMap<Word, u32>,
    pointers: HashMap<Word, Pointer>,
    variables: BTreeMap<Word, u32>,
    pub state: State,
    /// True while it waits at a barrier of its subgroup.
    pub in_subgroup: bool,
    pub accesses: Vec<BufferAccess>,
    pub loops: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    /// Waits at a control barrier: the position of the instruction.
    Waiting(usize, usize),
    Ended,
}

impl Program {
    pub fn new(kernel: &CompiledKernel, parameters: Parameters, stress: StressParameters) -> Program {
        let bytes: Vec<u8> = parameters.to_bytes().into_iter().chain(stress.to_bytes()).collect();
        let module = dr::load_words(&kernel.words).unwrap();
        let mut program = Program {
            blocks: module.functions[0].blocks.clone(),
            index_of: HashMap::new(),
            constants: HashMap::new(),
            bindings: HashMap::new(),
            inputs: HashMap::new(),
            off_by_one: false,
            coordinates: Vec::new(),
            workgroups: Vec::new(),
            push_constants: bytes[..kernel.push_constant_bytes() as usize]
                .chunks(4)
                .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
                .collect(),
        };
        for (index, block) in program.blocks.iter().enumerate() {
            program.index_of.insert(block.label_id().unwrap(), index);
        }
        for instruction in module.global_inst_iter() {
            match (instruction.class.opcode, &instruction.operands[..]) {
                (Op::Constant, [Operand::LiteralBit32(value)]) => {
                    program.constants.insert(instruction.result_id.unwrap(), *value);
                }
                (
                    Op::Decorate,
                    [
                        Operand::IdRef(id),
                        Operand::Decoration(Decoration::Binding),
                        Operand::LiteralBit32(binding),
                    ],
                ) => {
                    program.bindings.insert(*id, *binding);
                }
                (
                    Op::Decorate,
                    [
                        Operand::IdRef(id),
                        Operand::Decoration(Decoration::BuiltIn),
                        Operand::BuiltIn(built_in),
                    ],
                ) => {
                    program.inputs.insert(*id, *built_in);
                }
                _ => {}
            }
        }
        let loads_of = |built_in| {
            let loads = program.blocks.iter().flat_map(|block| &block.instructions);
            let loads = loads.filter(|load| {
                let from = load.operands.first().and_then(Operand::id_ref_any);
                load.class.opcode == Op::Load
                    && from.and_then(|id| program.inputs.get(&id)) == Some(&built_in)
            });
            loads.filter_map(|load| load.result_id).collect()
        };
        (program.coordinates, program.workgroups) =
            (loads_of(BuiltIn::FragCoord), loads_of(BuiltIn::WorkgroupId));
        program
    }

    pub fn invocation(&self, workgroup: u32, local: u32, subgroup_size: u32) -> Invocation {
        Invocation {
            workgroup,
            row: 0,
            local,
            subgroup: local / subgroup_size,
            lane: local % subgroup_size,
            pixel: (0, 0),
            helper: false,
            size: 1,
            block: 0,
            previous: 0,
            next: 0,
            values: HashMap::new(),
            pointers: HashMap::new(),
            variables: BTreeMap::new(),
            state: State::Running,
            in_subgroup: false,
            accesses: Vec::new(),
            loops: 0,
        }
    }
}

impl Invocation {
    fn value(&self, program: &Program, id: Word) -> u32 {
        program.constants.get(&id).or_else(|| self.values.get(&id)).copied().unwrap()
    }

    fn go_to(&mut self, program: &Program, label: Word) {
        self.previous = program.blocks[self.block].label_id().unwrap();
        self.block = program.index_of[&label];
        self.next = 0;
        // All phis of a block read before any of them writes.
        let mut merged = Vec::new();
        for instruction in &program.blocks[self.block].instructions {
            if instruction.class.opcode != Op::Phi {
                break;
            }
            let source = instruction
                .operands
                .chunks(2)
                .find(|pair| pair[1] == Operand::IdRef(self.previous))
                .map(|pair| pair[0].unwrap_id_ref())
                .unwrap();
            merged.push((instruction.result_id.unwrap(), self.value(program, source)));
            self.next += 1;
        }
        self.values.extend(merged);
    }

    pub fn step(&mut self, program: &Program, buffers: &mut [Vec<u32>], buffer_of: &[usize]) {
        let instruction = &program.blocks[self.block].instructions[self.next];
        let op = instruction.class.opcode;
        let ids: Vec<Word> = instruction.operands.iter().filter_map(Operand::id_ref_any).collect();
        self.next += 1;
        let words = |invocation: &Invocation| {
            ids.iter().map(|id| invocation.value(program, *id)).collect::<Vec<u32>>()
        };
        match op {
            Op::Branch => self.go_to(program, ids[0]),
            Op::BranchConditional => {
                let target = if self.value(program, ids[0]) != 0 { ids[1] } else { ids[2] };
                self.go_to(program, target);
            }
            Op::Switch => {
                let selector = self.value(program, ids[0]);
                let target = instruction.operands[2..]
                    .chunks(2)
                    .find(|case| case[0] == Operand::LiteralBit32(selector))
                    .map_or(ids[1], |case| case[1].unwrap_id_ref());
                self.go_to(program, target);
            }
            Op::Return => self.state = State::Ended,
            Op::SelectionMerge => {}
            Op::LoopMerge => self.loops += 1,
            Op::ControlBarrier | Op::ControlBarrierWaitINTEL => {
                self.in_subgroup = self.value(program, ids[0]) == Scope::Subgroup as u32;
                self.state = State::Waiting(self.block, self.next);
            }
            // Accesses complete in order, so an arrival has no effect.
            Op::ControlBarrierArriveINTEL => {}
            Op::MemoryBarrier => {}
            Op::Variable => {
                assert_eq!(instruction.operands[0], Operand::StorageClass(StorageClass::Function));
            }
            // Every element is a word.
            Op::ArrayLength => {
                let length = buffers[buffer_of[program.bindings[&ids[0]] as usize]].len();
                self.values.insert(instruction.result_id.unwrap(), length as u32);
            }
            Op::AccessChain => {
                let last = self.value(program, ids[ids.len() - 1]) as usize;
                let pointer = match program.bindings.get(&ids[0]) {
                    Some(binding) => Pointer::Buffer { binding: *binding, word: last },
                    None => Pointer::PushConstant(last),
                };
                self.pointers.insert(instruction.result_id.unwrap(), pointer);
            }
            // The coordinates are those of the centre of the pixel.
            Op::CompositeExtract if program.coordinates.contains(&ids[0]) => {
                let axis = if instruction.operands[1] == Operand::LiteralBit32(0) {
                    self.pixel.0
                } else {
                    self.pixel.1
                };
                self.values.insert(instruction.result_id.unwrap(), (axis as f32 + 0.5).to_bits());
            }
            Op::CompositeExtract
                if program.workgroups.contains(&ids[0])
                    && instruction.operands[1] != Operand::LiteralBit32(0) =>
            {
                let is_y = instruction.operands[1] == Operand::LiteralBit32(1);
                self.values.insert(instruction.result_id.unwrap(), if is_y { self.row } else { 0 });
            }
            Op::CompositeExtract => {
                assert_eq!(instruction.operands[1], Operand::LiteralBit32(0));
                let value = self.value(program, ids[0]);
                self.values.insert(instruction.result_id.unwrap(), value);
            }
            // The contract does not depend on subgroup operations.
            _ if format!("{op:?}").starts_with("GroupNonUniform") => {
                self.values.insert(instruction.result_id.unwrap(), 0);
            }
            // The position of a point.
            Op::CompositeConstruct => drop(self.values.insert(instruction.result_id.unwrap(), 0)),
            Op::Load | Op::Store | Op::AtomicLoad | Op::AtomicStore => {
                self.access(program, instruction, &ids, buffers, buffer_of);
            }
            _ if format!("{op:?}").starts_with("Atomic") => {
                self.access(program, instruction, &ids, buffers, buffer_of);
            }
            _ => {
                let w = words(self);
                let (left, right) = (w[0], w.get(1).copied().unwrap_or(0));
                let (sl, sr) = (left as i32, right as i32);
                let result = match op {
                    Op::IAdd => left.wrapping_add(right),
                    Op::ISub => left.wrapping_sub(right),
                    Op::IMul => left.wrapping_mul(right),
                    Op::UDiv => left / right,
                    Op::UMod => left % right,
                    Op::BitwiseAnd => left & right,
                    Op::BitwiseOr => left | right,
                    Op::BitwiseXor => left ^ right,
                    Op::LogicalAnd => left & right,
                    Op::LogicalOr => left | right,
                    Op::Not => !left,
                    Op::ConvertFToU => f32::from_bits(left) as u32,
                    Op::Select => {
                        if left != 0 {
                            w[1]
                        } else {
                            w[2]
                        }
                    }
                    Op::IEqual => u32::from(left == right),
                    Op::INotEqual => u32::from(left != right),
                    Op::SGreaterThan => u32::from(sl > sr),
                    Op::SGreaterThanEqual => u32::from(sl >= sr),
                    Op::SLessThan => u32::from(sl < sr),
                    Op::SLessThanEqual => u32::from(sl <= sr),
                    Op::UGreaterThanEqual => u32::from(left >= right),
                    Op::ULessThanEqual => u32::from(left <= right),
                    Op::ULessThan if program.off_by_one => u32::from(left <= right),
                    Op::ULessThan => u32::from(left < right),
                    other => panic!("the machine lacks {other:?}"),
                };
                self.values.insert(instruction.result_id.unwrap(), result);
            }
        }
    }

    fn access(
        &mut self,
        program: &Program,
        instruction: &dr::Instruction,
        ids: &[Word],
        buffers: &mut [Vec<u32>],
        buffer_of: &[usize],
    ) {
        let op = instruction.class.opcode;
        let result = instruction.result_id;
        if let Some(built_in) = program.inputs.get(&ids[0]) {
            if op == Op::Store {
                assert!(matches!(built_in, BuiltIn::Position | BuiltIn::PointSize));
                return;
            }
            let value = match built_in {
                BuiltIn::VertexIndex => self.workgroup * self.size + self.local,
                BuiltIn::HelperInvocation => u32::from(self.helper),
                BuiltIn::FragCoord => 0,
                BuiltIn::WorkgroupId => self.workgroup,
                BuiltIn::LocalInvocationIndex => self.local,
                BuiltIn::SubgroupId => self.subgroup,
                BuiltIn::SubgroupLocalInvocationId => self.lane,
                other => panic!("the machine lacks {other:?}"),
            };
            self.values.insert(result.unwrap(), value);
            return;
        }
        let Some(pointer) = self.pointers.get(&ids[0]).copied() else {
            // A function variable.
            if op == Op::Store {
                let value = self.value(program, ids[1]);
                self.variables.insert(ids[0], value);
            } else {
                // A lane may load variables of threads that it does not run, but never selects their values.
                let value = self.variables.get(&ids[0]).copied().unwrap_or(UNSET);
                self.values.insert(result.unwrap(), value);
            }
            return;
        };
        let (binding, word) = match pointer {
            Pointer::PushConstant(word) => {
                self.values.insert(result.unwrap(), program.push_constants[word]);
                return;
            }
            Pointer::Buffer { binding, word } => (binding, word),
        };
        let cell = &mut buffers[buffer_of[binding as usize]][word];
        let before = *cell;
        let operand = |index: usize| self.value(program, ids[index]);
        let (reads, after) = match op {
            Op::Load | Op::AtomicLoad => (true, None),
            Op::Store => (false, Some(operand(1))),
            Op::AtomicStore => (false, Some(operand(3))),
            Op::AtomicExchange => (true, Some(operand(3))),
            Op::AtomicIAdd => (true, Some(before.wrapping_add(operand(3)))),
            Op::AtomicISub => (true, Some(before.wrapping_sub(operand(3)))),
            Op::AtomicAnd => (true, Some(before & operand(3))),
            Op::AtomicOr => (true, Some(before | operand(3))),
            Op::AtomicXor => (true, Some(before ^ operand(3))),
            Op::AtomicUMin => (true, Some(before.min(operand(3)))),
            Op::AtomicUMax => (true, Some(before.max(operand(3)))),
            Op::AtomicSMin => (true, Some((before as i32).min(operand(3) as i32) as u32)),
            Op::AtomicSMax => (true, Some((before as i32).max(operand(3) as i32) as u32)),
            Op::AtomicCompareExchange => (true, (before == operand(5)).then(|| operand(4))),
            other => panic!("the machine lacks {other:?}"),
        };
        if let Some(after) = after {
            *cell = after;
        }
        if reads {
            self.values.insert(result.unwrap(), before);
        }
        self.accesses.push(BufferAccess { binding, word, op, read: reads.then_some(before), written: after });
    }
}
