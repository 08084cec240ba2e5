//! What instructions that are done often need, looked up beforehand.

use arithmetic::{Instruction, MOST, NumberShape, computation, signed};
use rspirv::spirv::{GlslStd450Op as Extended, Op, StorageClass};
use rustc_hash::FxHashMap;

use super::execute::MAX_OWN;
use super::program::{Function, Inst, Kind, Layout, Program, Slots};
use super::quick::Quick;

/// The way from one block to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    /// The block it leads to, and where its label is.
    pub target: u32,
    pub position: usize,
    /// Where it goes on behind what its `OpPhi` choose.
    pub after: usize,
    pub header: bool,
    /// Headers of the loops that the target is in.
    pub around: Vec<u32>,
    /// What is chosen, as slots to and from; `None` where the target does not know this predecessor.
    pub moves: Option<Vec<(u32, u32)>>,
}

/// A number of others that is computed in no common way.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    pub instruction: Instruction,
    pub operands: [u32; MOST],
    pub count: usize,
    pub to: u32,
    pub kind: Kind,
    pub from: u32,
    pub bits: u32,
}

/// A composite that is no vector, made of its parts.
#[derive(Clone, Debug)]
pub(super) struct Making {
    pub parts: Vec<Slots>,
    pub to: u32,
}

/// What comes of all numbers of the operands together.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub instruction: Instruction,
    pub operands: Vec<(Slots, NumberShape)>,
    pub result: NumberShape,
    pub to: Slots,
}

/// A part of a composite, by the indices that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub of: u32,
    pub path: Vec<u32>,
    pub to: Slots,
}

/// The way to a part of an object.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// What the pointer points to at first and then.
    pub base: u32,
    pub ty: u32,
    pub offset: u64,
    pub coherent: bool,
    pub beyond: bool,
    pub stride: u64,
    pub indices: Vec<Index>,
}

/// An index that is no constant.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub slot: u32,
    pub bits: u32,
    pub stride: u64,
    pub length: Option<u64>,
}

impl Function {
    /// Finds all ways between blocks.
    pub fn find_edges(&mut self, program: &Program<'_>) {
        let (mut block, mut found) = (0, FxHashMap::default());
        let mut edges = Vec::new();
        for inst in &self.code {
            let operands = program.module.operands(&inst.raw);
            let targets = match inst.raw.op {
                Op::Label => {
                    block = inst.raw.result;
                    continue;
                }
                Op::Branch => operands,
                Op::BranchConditional => operands.get(1..).unwrap_or_default(),
                Op::Switch => operands.get(1..).unwrap_or_default(),
                _ => continue,
            };
            for target in targets.iter().filter(|target| self.labels.contains_key(target)) {
                found.entry((block, *target)).or_insert_with(|| {
                    edges.push(self.edge(program, block, *target));
                    (edges.len() - 1) as u32
                });
            }
        }
        (self.edges, self.by_ends) = (edges, found);
    }

    fn edge(&self, program: &Program<'_>, from: u32, target: u32) -> Edge {
        let position = self.labels.get(&target).copied().unwrap_or(0);
        let inside = |header: &u32| {
            let start = self.labels.get(header).copied().unwrap_or(0);
            let (merge, end) = self.loops.get(header).copied().unwrap_or((0, 0));
            target != merge && position >= start && position <= end
        };
        let around = self.loops.keys().copied().filter(inside).collect();
        let mut moves = Some(Vec::new());
        let mut after = position + 1;
        while let Some(inst) = self.code.get(after).filter(|inst| inst.raw.op == Op::Phi) {
            let pairs = program.module.operands(&inst.raw);
            let pair = pairs.chunks_exact(2).find(|pair| pair[1] == from);
            let from = pair.map(|pair| program.slots(pair[0])).filter(|from| from.is_somewhere());
            let from = from.filter(|from| from.count == inst.result.count);
            moves = moves.zip(from).map(|(mut moves, from)| {
                moves.extend(inst.result.all().iter().copied().zip(from.all().iter().copied()));
                moves
            });
            after += 1;
        }
        Edge { target, position, after, header: self.loops.contains_key(&target), around, moves }
    }

    /// Looks up what instructions need.
    pub fn look_up(&mut self, program: &Program<'_>) {
        let mut block = 0;
        let mut found = Found {
            program,
            several: Vec::new(),
            chains: Vec::new(),
            numbers: Vec::new(),
            parts: Vec::new(),
            makings: Vec::new(),
            wholes: Vec::new(),
        };
        for inst in &self.code {
            if inst.raw.op == Op::Label {
                block = inst.raw.result;
            }
            let quick = self.jump(program, inst, block).or_else(|| found.quick(inst));
            self.quick.push(quick.unwrap_or_default());
        }
        let Found { several, chains, numbers, parts, makings, wholes, .. } = found;
        (self.several, self.chains, self.numbers) = (several, chains, numbers);
        (self.parts, self.makings, self.wholes) = (parts, makings, wholes);
    }

    fn jump(&self, program: &Program<'_>, inst: &Inst, block: u32) -> Option<Quick> {
        let operands = program.module.operands(&inst.raw);
        let edge = |index: usize| self.by_ends.get(&(block, *operands.get(index)?)).copied();
        match inst.raw.op {
            Op::Branch => Some(Quick::Jump(edge(0)?)),
            Op::BranchConditional => {
                let condition = program.slots(*operands.first()?).one()?;
                Some(Quick::Branch { condition, yes: edge(1)?, no: edge(2)? })
            }
            _ => None,
        }
    }
}

/// What was looked up of a function.
struct Found<'p> {
    program: &'p Program<'p>,
    several: Vec<Quick>,
    chains: Vec<Chain>,
    numbers: Vec<Numbers>,
    parts: Vec<Part>,
    makings: Vec<Making>,
    wholes: Vec<Whole>,
}

/// An instruction on numbers, with their kind and size and the size of the result.
#[derive(Clone, Copy)]
struct Arithmetic {
    instruction: Instruction,
    kind: Kind,
    from: u32,
    bits: u32,
}

impl Found<'_> {
    fn quick(&mut self, inst: &Inst) -> Option<Quick> {
        let program = self.program;
        let operands = program.module.operands(&inst.raw);
        // Its parts are where they are.
        if inst.raw.ty != 0 && !inst.result.is_somewhere() && program.slots(inst.raw.result).is_somewhere() {
            return Some(Quick::Pass);
        }
        let id = |index: usize| operands.get(index).copied();
        let one = |index: usize| program.slots(id(index)?).one();
        Some(match inst.raw.op {
            Op::SelectionMerge | Op::LoopMerge | Op::Nop | Op::Phi => Quick::Pass,
            Op::Load => {
                let (kind, bits, _) = program.numbers(inst.raw.ty).filter(|of| of.0 != Kind::Address)?;
                let (pointer, bytes) = (one(0)?, bits.div_ceil(8));
                self.each(inst.result, |_, index, to| {
                    Some(Quick::Load {
                        pointer,
                        to,
                        offset: index as u32 * bytes,
                        bytes,
                        truth: kind == Kind::Bool,
                    })
                })?
            }
            Op::Store => {
                let stored = id(1)?;
                let (_, bits, _) =
                    program.numbers(program.type_of(stored)).filter(|of| of.0 != Kind::Address)?;
                let (pointer, bytes) = (one(0)?, bits.div_ceil(8));
                self.each(program.slots(stored), |_, index, value| {
                    Some(Quick::Store { pointer, value, offset: index as u32 * bytes, bytes })
                })?
            }
            Op::CompositeExtract => {
                let (of, path, to) = (one(0)?, operands.get(1..)?.to_vec(), inst.result);
                self.parts.push(Part { of, path, to });
                Quick::Part((self.parts.len() - 1) as u32)
            }
            Op::AccessChain | Op::InBoundsAccessChain => {
                self.chains.push(chain(program, operands)?);
                Quick::Chain {
                    pointer: one(0)?,
                    to: inst.result.one()?,
                    chain: (self.chains.len() - 1) as u32,
                }
            }
            Op::Select => {
                let [condition, yes, no] = [0, 1, 2].map(|index| id(index).map(|id| program.slots(id)));
                let (condition, yes, no) = (condition?, yes?, no?);
                if yes.count != inst.result.count || no.count != inst.result.count {
                    return None;
                }
                self.each(inst.result, |_, index, to| {
                    let of = |slots: Slots| slots.component(index);
                    Some(Quick::Select { condition: of(condition)?, yes: of(yes)?, no: of(no)?, to })
                })?
            }
            Op::VectorTimesScalar => self.arithmetic(inst, Instruction::Core(Op::FMul), operands)?,
            Op::ExtInst => {
                let set = program.module.extended.get(operands.first()?)?;
                if set.starts_with("NonSemantic.") {
                    return Some(Quick::Pass);
                }
                let op = Extended::from_u32(id(1)?).filter(|_| set == "GLSL.std.450")?;
                let instruction = Instruction::Extended(op);
                let operands = operands.get(2..)?;
                match instruction.is_componentwise() {
                    _ if op == Extended::Modf => return None,
                    true => self.arithmetic(inst, instruction, operands)?,
                    false => self.whole(inst, instruction, operands)?,
                }
            }
            Op::Label => Quick::Label(inst.raw.result),
            Op::Variable => {
                let (class, ty) = program.pointee(inst.raw.ty)?;
                let bytes =
                    u32::try_from(program.size(ty)).ok().filter(|bytes| *bytes as usize <= MAX_OWN)?;
                let plain = class == StorageClass::Function && operands.len() == 1;
                Quick::Variable { to: inst.result.one().filter(|_| plain)?, id: inst.raw.result, ty, bytes }
            }
            Op::CompositeConstruct => {
                let layout = program.layout(inst.raw.ty).ok()?;
                if !matches!(layout, Layout::Struct { .. } | Layout::Array { .. } | Layout::Matrix { .. }) {
                    return None;
                }
                let parts = operands.iter().map(|id| program.slots(*id)).collect();
                self.makings.push(Making { parts, to: inst.result.one()? });
                Quick::Make((self.makings.len() - 1) as u32)
            }
            Op::Dot | Op::Any | Op::All | Op::MatrixTimesVector | Op::VectorTimesMatrix => {
                self.whole(inst, Instruction::Core(inst.raw.op), operands)?
            }
            op if computes(op) => self.arithmetic(inst, Instruction::Core(op), operands)?,
            _ => return None,
        })
    }

    /// What is done for each component of a vector, or for what is in one slot.
    fn each(
        &mut self,
        slots: Slots,
        mut one: impl FnMut(&mut Self, usize, u32) -> Option<Quick>,
    ) -> Option<Quick> {
        if slots.count == 0 {
            return one(self, 0, slots.one()?);
        }
        let all = slots.all().iter().enumerate().map(|(index, slot)| one(self, index, *slot));
        let all = all.collect::<Option<Vec<_>>>()?;
        let first = self.several.len() as u32;
        self.several.extend(all);
        Some(Quick::Several { first, count: slots.count.into() })
    }

    /// Arithmetic on numbers, or on the components of vectors one by one.
    fn arithmetic(&mut self, inst: &Inst, instruction: Instruction, operands: &[u32]) -> Option<Quick> {
        let program = self.program;
        let (kind, from, _) = program.numbers(program.type_of(*operands.first()?))?;
        let (to, bits, _) = program.numbers(inst.raw.ty)?;
        let cast = instruction == Instruction::Core(Op::Bitcast) && from != bits;
        let vectors = inst.result.count == 0 && operands.iter().any(|id| program.slots(*id).count > 0);
        if kind == Kind::Address || to == Kind::Address || cast || vectors || operands.len() > MOST {
            return None;
        }
        let of = Arithmetic { instruction, kind, from, bits };
        self.each(inst.result, |found, index, to| found.number(of, operands, index, to))
    }

    /// What comes of all numbers together.
    fn whole(&mut self, inst: &Inst, instruction: Instruction, operands: &[u32]) -> Option<Quick> {
        let program = self.program;
        let shape = |ty: u32| match program.shapes(ty)[..] {
            [shape] => Some(shape),
            _ => None,
        };
        let numbers = |id: &u32| Some((program.slots(*id), shape(program.type_of(*id))?));
        let all = operands.iter().map(numbers).collect::<Option<Vec<_>>>()?;
        let result = shape(inst.raw.ty)?;
        if result.columns > 1 || all.len() > MOST || result.count() != inst.result.all().len() {
            return None;
        }
        self.wholes.push(Whole { instruction, operands: all, result, to: inst.result });
        Some(Quick::Whole((self.wholes.len() - 1) as u32))
    }

    fn number(&mut self, of: Arithmetic, operands: &[u32], index: usize, to: u32) -> Option<Quick> {
        let mut slots = [0; MOST];
        for (slot, id) in slots.iter_mut().zip(operands) {
            *slot = self.program.slots(*id).component(index)?;
        }
        let Arithmetic { instruction, kind, from, bits } = of;
        if let (Instruction::Core(op), 1 | 2) = (instruction, operands.len())
            && let Some(compute) = computation(op, kind.number(), from, bits)
        {
            let (left, right) = (slots[0], slots[operands.len() - 1]);
            return Some(Quick::Binary { left, right, to, op, compute });
        }
        self.numbers.push(Numbers {
            instruction,
            operands: slots,
            count: operands.len(),
            to,
            kind,
            from,
            bits,
        });
        Some(Quick::Number((self.numbers.len() - 1) as u32))
    }
}

/// Whether it is arithmetic on numbers one by one.
fn computes(op: Op) -> bool {
    let number = op as u32;
    // OpConvertFToU to OpQuantizeToF16, OpBitcast, OpSNegate to OpFMod, OpIsNan and OpIsInf, OpLogicalEqual to OpLogicalNot, OpIEqual to
    // OpFUnordGreaterThanEqual, OpShiftRightLogical to OpBitCount.
    matches!(number, 109..=116 | 124 | 126..=141 | 156 | 157 | 164..=168 | 170..=191 | 194..=205)
}

/// A chain whose parts lie at fixed places or are elements of arrays; `None` for others.
fn chain(program: &Program<'_>, operands: &[u32]) -> Option<Chain> {
    let (base, indices) = operands.split_first()?;
    let (_, base) = program.pointee(program.type_of(*base))?;
    let mut all =
        Chain { base, ty: base, offset: 0, coherent: false, beyond: false, stride: 0, indices: Vec::new() };
    for id in indices {
        let known = program.specialized.number(*id);
        all.stride = 0;
        let (stride, length) = match program.layout(all.ty).ok()? {
            Layout::Struct { members } => {
                let member = members.get(usize::try_from(known?).ok()?)?;
                if member.matrix_stride > 0 {
                    return None;
                }
                all.offset = all.offset.wrapping_add(member.offset);
                all.coherent |= member.coherent;
                all.ty = member.ty;
                continue;
            }
            Layout::Array { element, stride, length } => {
                (all.ty, all.stride) = (*element, *stride);
                (*stride, *length)
            }
            Layout::Vector { element, count, bits, .. } => {
                all.ty = *element;
                (u64::from(bits / 8).max(1), Some(u64::from(*count)))
            }
            _ => return None,
        };
        let (_, bits, None) = program.numbers(program.type_of(*id))? else { return None };
        match known {
            Some(index) => {
                let index = signed(index, bits) as u64;
                all.offset = all.offset.wrapping_add(stride.wrapping_mul(index));
                all.beyond |= length.is_some_and(|length| index >= length);
            }
            None => {
                let slot = program.slots(*id).one()?;
                all.indices.push(Index { slot, bits, stride, length });
            }
        }
    }
    Some(all)
}
