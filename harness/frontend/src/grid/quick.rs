//! Instructions that are done often, with what they need looked up beforehand.

use rspirv::spirv::Op;
use rustc_hash::FxHashMap;

use crate::error::malformed;
use arithmetic::signed;

use super::compute::computed;
use super::machine::{Here, Machine, Step, Stop};
use super::program::{Function, GLOBAL, Inst, Kind, Layout, NONE, Program};
use super::value::{LOCAL, Pointer, Value, of_result};

/// What is known of an instruction before it is executed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Quick {
    /// Nothing: it is looked at whenever it is executed.
    #[default]
    Slow,
    /// It does nothing in its place.
    Pass,
    /// A number of two others.
    Binary {
        left: u32,
        right: u32,
        kind: Kind,
        from: u32,
        bits: u32,
    },
    /// A number of one other.
    Unary {
        operand: u32,
        kind: Kind,
        from: u32,
        bits: u32,
    },
    Select {
        condition: u32,
        yes: u32,
        no: u32,
    },
    /// On to another block, by the number of the edge.
    Jump(u32),
    Branch {
        condition: u32,
        yes: u32,
        no: u32,
    },
    /// A number from memory that no other invocation writes.
    Load {
        pointer: u32,
        bytes: u32,
        truth: bool,
    },
    /// A number to memory that no other invocation reads.
    Store {
        pointer: u32,
        value: u32,
        bytes: u32,
    },
    /// A pointer to a part, by the number of the chain.
    Chain {
        pointer: u32,
        chain: u32,
    },
    Extract {
        from: u32,
        index: u32,
    },
}

/// The way from one block to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    /// The block it leads to, and where its label is.
    target: u32,
    position: usize,
    /// Where it goes on behind what its `OpPhi` choose.
    after: usize,
    header: bool,
    /// Headers of the loops that the target is in.
    around: Vec<u32>,
    /// What is chosen, as slots to and from; `None` where the target does not know this predecessor.
    moves: Option<Vec<(u32, u32)>>,
}

/// The way to a part of an object.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// What the pointer points to at first and then.
    base: u32,
    ty: u32,
    offset: u64,
    coherent: bool,
    beyond: bool,
    stride: u64,
    indices: Vec<Index>,
}

/// An index that is no constant.
#[derive(Clone, Debug)]
struct Index {
    slot: u32,
    bits: u32,
    stride: u64,
    length: Option<u64>,
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
            let chosen = pair.map(|pair| (inst.result, program.slot(pair[0])));
            let chosen = chosen.filter(|(_, from)| *from != NONE);
            moves = moves.zip(chosen).map(|(mut moves, chosen)| {
                moves.push(chosen);
                moves
            });
            after += 1;
        }
        Edge { target, position, after, header: self.loops.contains_key(&target), around, moves }
    }

    /// Looks up what instructions need.
    pub fn look_up(&mut self, program: &Program<'_>) {
        let mut block = 0;
        let mut chains = Vec::new();
        for at in 0..self.code.len() {
            let inst = self.code[at];
            if inst.raw.op == Op::Label {
                block = inst.raw.result;
            }
            let quick = self.quick(program, &inst, block, &mut chains);
            self.code[at].quick = quick.unwrap_or_default();
        }
        self.chains = chains;
    }

    fn quick(
        &self,
        program: &Program<'_>,
        inst: &Inst,
        block: u32,
        chains: &mut Vec<Chain>,
    ) -> Option<Quick> {
        let operands = program.module.operands(&inst.raw);
        let slot = |index: usize| Some(program.slot(*operands.get(index)?)).filter(|slot| *slot != NONE);
        let edge = |index: usize| self.by_ends.get(&(block, *operands.get(index)?)).copied();
        let number = |ty: u32| match program.layout(ty) {
            Ok(Layout::Scalar { kind, bits }) if *kind != Kind::Address => Some((*kind, bits.div_ceil(8))),
            _ => None,
        };
        Some(match inst.raw.op {
            Op::SelectionMerge | Op::LoopMerge | Op::Nop | Op::Phi => Quick::Pass,
            Op::Branch => Quick::Jump(edge(0)?),
            Op::BranchConditional => Quick::Branch { condition: slot(0)?, yes: edge(1)?, no: edge(2)? },
            Op::Load => {
                let (kind, bytes) = number(inst.raw.ty)?;
                Quick::Load { pointer: slot(0)?, bytes, truth: kind == Kind::Bool }
            }
            Op::Store => {
                let (_, bytes) = number(program.type_of(*operands.get(1)?))?;
                Quick::Store { pointer: slot(0)?, value: slot(1)?, bytes }
            }
            Op::CompositeExtract if operands.len() == 2 => {
                Quick::Extract { from: slot(0)?, index: *operands.get(1)? }
            }
            Op::AccessChain | Op::InBoundsAccessChain => {
                chains.push(chain(program, operands)?);
                Quick::Chain { pointer: slot(0)?, chain: (chains.len() - 1) as u32 }
            }
            Op::Select => Quick::Select { condition: slot(0)?, yes: slot(1)?, no: slot(2)? },
            op if converts(op) && operands.len() == 1 => {
                let (kind, from, None) = program.numbers(program.type_of(*operands.first()?))? else {
                    return None;
                };
                let (to, bits, None) = program.numbers(inst.raw.ty)? else { return None };
                if kind == Kind::Address || to == Kind::Address || op == Op::Bitcast && from != bits {
                    return None;
                }
                Quick::Unary { operand: slot(0)?, kind, from, bits }
            }
            op if computes(op) && operands.len() == 2 => {
                let (kind, from, _) = program.numbers(program.type_of(*operands.first()?))?;
                let (_, bits, None) = program.numbers(inst.raw.ty)? else { return None };
                Quick::Binary { left: slot(0)?, right: slot(1)?, kind, from, bits }
            }
            _ => return None,
        })
    }
}

/// Whether it is arithmetic on two numbers.
fn computes(op: Op) -> bool {
    let number = op as u32;
    // OpIAdd to OpFMod, OpLogicalEqual to OpLogicalAnd, OpIEqual to OpFUnordGreaterThanEqual, shifts and bits.
    matches!(number, 128..=141 | 164..=167 | 170..=191 | 194..=199)
}

/// Whether it is arithmetic on one number.
fn converts(op: Op) -> bool {
    let number = op as u32;
    // OpConvertFToU to OpFConvert, OpBitcast, the negations, OpIsNan and OpIsInf, OpNot.
    matches!(number, 109..=115 | 124 | 126 | 127 | 156 | 157 | 168 | 200)
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
                let slot = Some(program.slot(*id)).filter(|slot| *slot != NONE)?;
                all.indices.push(Index { slot, bits, stride, length });
            }
        }
    }
    Some(all)
}

/// The value in a slot.
#[inline]
fn at<'v>(values: &'v [Value], globals: &'v [Value], slot: u32) -> Option<&'v Value> {
    match slot & GLOBAL {
        0 => values.get(slot as usize),
        _ => globals.get((slot & !GLOBAL) as usize),
    }
}

impl Machine<'_> {
    /// Executes an instruction by what was looked up; `None` where that does not suffice, and nothing was done.
    #[inline]
    pub(super) fn quickly(
        &mut self,
        here: &mut Here<'_>,
        function: &Function,
        inst: &Inst,
    ) -> Option<Step<()>> {
        let me = &mut here.workgroup.invocations[here.index];
        let frame = me.frames.last_mut()?;
        let value = |slot: u32| at(&frame.values, &self.globals, slot);
        let result = match inst.quick {
            Quick::Slow => return None,
            Quick::Pass => {
                frame.at += 1;
                return Some(Ok(()));
            }
            Quick::Jump(edge) => return Some(self.follow(here, function.edges.get(edge as usize)?)),
            Quick::Branch { condition, yes, no } => {
                let Value::Bits(holds, 0) = value(condition)? else { return None };
                let edge = if *holds != 0 { yes } else { no };
                return Some(self.follow(here, function.edges.get(edge as usize)?));
            }
            Quick::Binary { left, right, kind, from, bits } => {
                let (&Value::Bits(a, x), &Value::Bits(b, y)) = (value(left)?, value(right)?) else {
                    return None;
                };
                let taint = if x | y == 0 { 0 } else { of_result(inst.raw.op, &[(a, x), (b, y)], bits) };
                Value::Bits(computed(inst.raw.op, &[a, b], kind, from, bits)?, taint)
            }
            Quick::Unary { operand, kind, from, bits } => {
                let &Value::Bits(number, taint) = value(operand)? else { return None };
                Value::Bits(computed(inst.raw.op, &[number], kind, from, bits)?, taint)
            }
            Quick::Select { condition, yes, no } => {
                let Value::Bits(holds, 0) = value(condition)? else { return None };
                value(if *holds != 0 { yes } else { no })?.clone()
            }
            Quick::Load { pointer, bytes, truth } => {
                let Value::Pointer(pointer) = value(pointer)? else { return None };
                if pointer.beyond || pointer.taint != 0 {
                    return None;
                }
                let object = match pointer.object & LOCAL {
                    0 => self.objects.get(pointer.object as usize)?,
                    _ => me.locals.get((pointer.object & !LOCAL) as usize)?,
                };
                if object.class.is_some() || !object.holds(pointer.offset, bytes) {
                    return None;
                }
                let (bits, taint) = object.read(pointer.offset, bytes);
                Value::Bits(if truth { u64::from(bits != 0) } else { bits }, taint)
            }
            Quick::Store { pointer, value: stored, bytes } => {
                let (Value::Pointer(pointer), &Value::Bits(bits, taint)) = (value(pointer)?, value(stored)?)
                else {
                    return None;
                };
                if pointer.beyond || pointer.object & LOCAL == 0 {
                    return None;
                }
                let offset = pointer.offset;
                let object = me.locals.get_mut((pointer.object & !LOCAL) as usize)?;
                if object.class.is_some() || !object.holds(offset, bytes) {
                    return None;
                }
                object.write(offset, bytes, bits, taint);
                frame.at += 1;
                return Some(Ok(()));
            }
            Quick::Chain { pointer, chain } => {
                let chain = function.chains.get(chain as usize)?;
                let Value::Pointer(base) = value(pointer)? else { return None };
                if base.ty != chain.base || base.matrix_stride != 0 || !self.descriptors.is_empty() {
                    return None;
                }
                let mut part = Pointer {
                    offset: base.offset.wrapping_add(chain.offset),
                    ty: chain.ty,
                    coherent: base.coherent | chain.coherent,
                    beyond: base.beyond | chain.beyond,
                    stride: chain.stride,
                    ..*base
                };
                for index in &chain.indices {
                    let Value::Bits(number, 0) = value(index.slot)? else { return None };
                    let number = signed(*number, index.bits) as u64;
                    part.offset = part.offset.wrapping_add(index.stride.wrapping_mul(number));
                    part.beyond |= index.length.is_some_and(|length| number >= length);
                }
                Value::Pointer(part)
            }
            Quick::Extract { from, index } => match value(from)? {
                Value::Many(parts) => parts.get(index as usize)?.clone(),
                _ => return None,
            },
        };
        *frame.values.get_mut(inst.result as usize)? = result;
        frame.at += 1;
        Some(Ok(()))
    }

    /// Goes on at another block.
    pub(super) fn jump(&mut self, here: &mut Here<'_>, target: u32) -> Step<()> {
        let program = self.program;
        let frame = here.frame()?;
        let function = &program.functions[frame.function];
        let edge = function.by_ends.get(&(frame.block, target));
        let Some(edge) = edge.and_then(|edge| function.edges.get(*edge as usize)) else {
            return Err(malformed("a jump to what is no label").into());
        };
        self.follow(here, edge)
    }

    fn follow(&mut self, here: &mut Here<'_>, edge: &Edge) -> Step<()> {
        let frame = here.workgroup.invocations[here.index].frames.last_mut().ok_or(Stop::Ended)?;
        let site = self.program.functions[frame.function].first_site as usize + edge.position;
        if let Some(reached) = self.reached.get_mut(site) {
            *reached = true;
        }
        while let Some((header, _)) = frame.loops.last() {
            if *header == edge.target || edge.around.contains(header) {
                break;
            }
            frame.loops.pop();
        }
        if edge.header {
            match frame.loops.last_mut() {
                Some((header, bodies)) if *header == edge.target => *bodies += 1,
                _ => frame.loops.push((edge.target, 0)),
            }
        }
        (frame.block, frame.at) = (edge.target, edge.after);
        let Some(moves) = &edge.moves else {
            return Err(malformed("OpPhi without its predecessor").into());
        };
        let missing = || Stop::from(malformed("OpPhi of what has no value"));
        if let [(to, from)] = moves[..] {
            let value = at(&frame.values, &self.globals, from).cloned().ok_or_else(missing)?;
            *frame.values.get_mut(to as usize).ok_or_else(missing)? = value;
        } else if !moves.is_empty() {
            let chosen = moves.iter().map(|(_, from)| at(&frame.values, &self.globals, *from).cloned());
            let chosen: Vec<Value> = chosen.collect::<Option<_>>().ok_or_else(missing)?;
            for ((to, _), value) in moves.iter().zip(chosen) {
                *frame.values.get_mut(*to as usize).ok_or_else(missing)? = value;
            }
        }
        Ok(())
    }
}
