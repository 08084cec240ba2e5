//! The interpreter's fast path over pre-decoded instructions.
//!
//! An operation that returns `None` has changed nothing, and the general path in `execute.rs` executes the
//! instruction instead. Only accesses to memory without race checks are decoded.

use arithmetic::{Instruction, MAX_OPERANDS, NumberShape, Operand, sign_extend};
use rustc_hash::FxHashMap;

use super::bytecode::{AccessChainOp, ArithmeticOp, BlockEdge, ConstructOp, DecodedOp, ExtractOp, ReduceOp};
use super::slots::{gather_slots, read_slot, scatter_value};
use crate::error::malformed;

use super::launch_taint::reduces_positions;
use super::memory::{MemoryObject, PrivateObjects};
use super::program::DecodedFunction;
use super::state::{
    BlockEntries, CallFrame, DescriptorArray, Interpreter, Invocation, InvocationCtx, WORKGROUP_TAG,
};
use super::step::{Step, StepInterrupt};
use super::value::{ConcretePointer, ConcreteValue, INPUT_MASK, PRIVATE_TAG, Taint, UNDEFINED, result_taint};

/// Upper bound on the components of all operands of a reduction.
const MAX_COMPONENTS: usize = 48;
const NO_OPERAND: Operand<'_> = Operand {
    numbers: &[],
    shape: NumberShape { kind: arithmetic::NumberKind::Bool, bits: 32, rows: 0, columns: 0 },
};

/// The state that a decoded operation may read and write.
struct FastPathCtx<'m> {
    function: &'m DecodedFunction<'m>,
    globals: &'m [ConcreteValue],
    objects: &'m [MemoryObject],
    locals: &'m mut PrivateObjects,
    /// Descriptor arrays, whose elements the general path selects.
    descriptors: &'m FxHashMap<u32, DescriptorArray>,
    /// True in a probe of the launch, where the general path records computations on positions.
    tracks_launch: bool,
}

impl FastPathCtx<'_> {
    /// Executes an operation; `None` means that nothing has changed and the general path must run.
    #[inline]
    fn execute_op(&mut self, decoded_op: &DecodedOp, values: &mut [ConcreteValue]) -> Option<()> {
        let value = |slot: u32| read_slot(values, self.globals, slot);
        let (to, result) = match *decoded_op {
            DecodedOp::Undecoded | DecodedOp::Jump(_) | DecodedOp::Branch { .. } | DecodedOp::Label(_) => {
                return None;
            }
            DecodedOp::Nop => return Some(()),
            DecodedOp::PerComponent { first, count } => {
                let all = self.function.component_ops.get(first as usize..)?.get(..count as usize)?;
                return all.iter().try_for_each(|one| self.execute_op_outlined(one, values));
            }
            DecodedOp::Binary { left, right, to, op, compute } => {
                let (&ConcreteValue::Bits(a, x), &ConcreteValue::Bits(b, y)) = (value(left)?, value(right)?)
                else {
                    return None;
                };
                // Most values have no taint, and then no result has.
                let taint = if x | y == 0 {
                    0
                } else if self.is_recorded(Instruction::Core(op), x | y) {
                    return None;
                } else {
                    result_taint(Instruction::Core(op), &[(a, x), (b, y)], u32::BITS)
                };
                (to, ConcreteValue::Bits(compute(a, b)?, taint))
            }
            DecodedOp::Arithmetic(number) => {
                let numbers = self.function.arithmetic.get(number as usize)?;
                let result = numbers.evaluate(value)?;
                if self.is_recorded(numbers.instruction, result.combined_taint()) {
                    return None;
                }
                (numbers.to, result)
            }
            DecodedOp::Select { condition, yes, no, to } => {
                let ConcreteValue::Bits(holds, taint) = *value(condition)? else { return None };
                if self.tracks_launch && taint & INPUT_MASK != 0 {
                    return None;
                }
                (to, value(if holds != 0 { yes } else { no })?.clone().with_taint(taint))
            }
            DecodedOp::Load { pointer, to, offset, bytes, is_bool: truth } => {
                let ConcreteValue::Pointer(pointer) = value(pointer)? else { return None };
                // An address may depend on inputs alone; other taints are recorded by the general
                // path.
                if pointer.is_out_of_bounds || pointer.taint & !INPUT_MASK != 0 || pointer.row_major {
                    return None;
                }
                let object = match pointer.object & PRIVATE_TAG {
                    0 => self.objects.get(pointer.object as usize)?,
                    _ => self.locals.as_slice().get((pointer.object & !PRIVATE_TAG) as usize)?,
                };
                let offset = pointer.offset.wrapping_add(offset.into());
                // Shared memory has a class, and needs the race checks of the general path.
                if object.class.is_some() || !object.contains_range(offset, bytes) {
                    return None;
                }
                let (bits, taint) = object.read_scalar(offset, bytes);
                let taint = taint | pointer.taint;
                (to, ConcreteValue::Bits(if truth { u64::from(bits != 0) } else { bits }, taint))
            }
            DecodedOp::Store { pointer, value: stored, offset, bytes } => {
                let (ConcreteValue::Pointer(pointer), &ConcreteValue::Bits(bits, taint)) =
                    (value(pointer)?, value(stored)?)
                else {
                    return None;
                };
                if pointer.is_out_of_bounds || pointer.row_major || pointer.object & PRIVATE_TAG == 0 {
                    return None;
                }
                let offset = pointer.offset.wrapping_add(offset.into());
                let object = self.locals.as_mut_slice().get_mut((pointer.object & !PRIVATE_TAG) as usize)?;
                if object.class.is_some() || !object.contains_range(offset, bytes) {
                    return None;
                }
                object.write_scalar(offset, bytes, bits, taint);
                return Some(());
            }
            DecodedOp::AccessChain { pointer, to, chain } => {
                let chain = self.function.chains.get(chain as usize)?;
                let ConcreteValue::Pointer(base) = value(pointer)? else { return None };
                // Only a global object can be an array of descriptors.
                let shared = base.object & (PRIVATE_TAG | WORKGROUP_TAG) == 0;
                if shared && !self.descriptors.is_empty() && self.descriptors.contains_key(&base.object) {
                    return None;
                }
                (to, ConcreteValue::Pointer(chain.apply_to(base, value)?))
            }
            DecodedOp::Extract(part) => {
                let ExtractOp { composite: of, path, to } = self.function.extracts.get(part as usize)?;
                let mut part = value(*of)?;
                for index in path {
                    let ConcreteValue::Composite(parts) = part else { return None };
                    part = parts.get(*index as usize)?;
                }
                let part = part.clone();
                return scatter_value(values, *to, part).ok();
            }
            DecodedOp::Construct(making) => {
                let ConstructOp { parts, to } = self.function.constructs.get(making as usize)?;
                let parts = parts.iter().map(|part| gather_slots(values, self.globals, *part));
                (*to, ConcreteValue::Composite(parts.collect::<Option<_>>()?))
            }
            DecodedOp::Reduce(whole) => {
                return self.function.reductions.get(whole as usize)?.evaluate_into(values, self.globals);
            }
            DecodedOp::Move { from, to } => {
                // As in memory, a value without bits is 0 there.
                let (bits, taint) = match value(from)? {
                    ConcreteValue::Bits(bits, taint) => (*bits & u64::from(u32::MAX), *taint),
                    other => (0, other.combined_taint()),
                };
                (to, ConcreteValue::Bits(bits, taint))
            }
            DecodedOp::Undefine { to } => (to, ConcreteValue::Bits(0, UNDEFINED)),
            DecodedOp::Variable { to, id, ty, bytes } => {
                let at = self.locals.push_variable(id, bytes as usize);
                (to, ConcreteValue::Pointer(ConcretePointer::at_object_start(PRIVATE_TAG | at as u32, ty)))
            }
        };
        *values.get_mut(to as usize)? = result;
        Some(())
    }

    fn is_recorded(&self, instruction: Instruction, taint: Taint) -> bool {
        self.tracks_launch && taint & INPUT_MASK != 0 && reduces_positions(instruction)
    }

    /// Recursion through a second function lets the compiler inline [`Self::execute_op`].
    fn execute_op_outlined(&mut self, decoded_op: &DecodedOp, values: &mut [ConcreteValue]) -> Option<()> {
        self.execute_op(decoded_op, values)
    }
}

impl ArithmeticOp {
    fn evaluate<'v>(&self, value: impl Fn(u32) -> Option<&'v ConcreteValue>) -> Option<ConcreteValue> {
        let (mut numbers, mut tainted) = ([0; MAX_OPERANDS], [(0, 0); MAX_OPERANDS]);
        for (at, slot) in self.operands.get(..self.count)?.iter().enumerate() {
            let &ConcreteValue::Bits(number, taint) = value(*slot)? else { return None };
            (numbers[at], tainted[at]) = (number, (number, taint));
        }
        let tainted = tainted.get(..self.count)?;
        let taint = result_taint(self.instruction, tainted, self.bits);
        let numbers = numbers.get(..self.count)?;
        let result =
            self.instruction.compute_component(numbers, self.kind.to_arithmetic(), self.from, self.bits);
        Some(ConcreteValue::Bits(result?, taint))
    }
}

impl ReduceOp {
    fn evaluate_into(&self, values: &mut [ConcreteValue], globals: &[ConcreteValue]) -> Option<()> {
        let mut numbers = [0; MAX_COMPONENTS];
        let mut operands = [const { None }; MAX_OPERANDS];
        let (mut rest, mut taint) = (&mut numbers[..], 0);
        for (operand, (slots, shape)) in operands.iter_mut().zip(&self.operands) {
            let own;
            (own, rest) = rest.split_at_mut_checked(shape.count())?;
            let mut places = own.iter_mut();
            for slot in slots.as_slice() {
                write_components(read_slot(values, globals, *slot)?, &mut places, &mut taint)?;
            }
            *operand = places.next().is_none().then_some(Operand { numbers: own, shape: *shape });
        }
        let given: [Operand<'_>; MAX_OPERANDS] = operands.map(|one| one.unwrap_or(NO_OPERAND));
        let all = self.instruction.compute(given.get(..self.operands.len())?, &[self.result])?;
        if all.len() != self.to.as_slice().len() {
            return None;
        }
        for (slot, number) in self.to.as_slice().iter().zip(all) {
            *values.get_mut(*slot as usize)? = ConcreteValue::Bits(number, taint);
        }
        Some(())
    }
}

/// Writes the components of a value to `places`.
fn write_components<'n>(
    value: &ConcreteValue,
    places: &mut impl Iterator<Item = &'n mut u64>,
    taint: &mut Taint,
) -> Option<()> {
    match value {
        ConcreteValue::Bits(bits, more) => {
            *places.next()? = *bits;
            *taint |= more;
            Some(())
        }
        ConcreteValue::Composite(parts) => {
            parts.iter().try_for_each(|part| write_components(part, places, taint))
        }
        _ => None,
    }
}

impl AccessChainOp {
    /// Applies the chain to a base pointer.
    fn apply_to<'v>(
        &self,
        base: &ConcretePointer,
        value: impl Fn(u32) -> Option<&'v ConcreteValue>,
    ) -> Option<ConcretePointer> {
        // Offsets and strides were decoded for one base type without matrix layout.
        if base.ty != self.base || base.matrix_stride != 0 {
            return None;
        }
        let mut part = ConcretePointer {
            offset: base.offset.wrapping_add(self.offset),
            ty: self.ty,
            coherent: base.coherent | self.coherent,
            is_out_of_bounds: base.is_out_of_bounds | self.is_out_of_bounds,
            stride: self.stride,
            ..*base
        };
        for index in &self.indices {
            // A tainted index decides an address, which only the general path records.
            let ConcreteValue::Bits(number, 0) = value(index.slot)? else { return None };
            // Sign-extended: a negative index becomes a large unsigned number and is out of bounds.
            let number = sign_extend(*number, index.bits) as u64;
            part.offset = part.offset.wrapping_add(index.stride.wrapping_mul(number));
            part.is_out_of_bounds |= index.length.is_some_and(|length| number >= length);
        }
        Some(part)
    }
}

/// Follows an edge: updates loops and evaluates the phis of the target.
fn follow_edge(
    edge: &BlockEdge,
    frame: &mut CallFrame,
    function: &DecodedFunction<'_>,
    globals: &[ConcreteValue],
    entries: &mut BlockEntries,
) -> Step<()> {
    entries.count_entry(function.first_site as usize + edge.position);
    // The edge leaves every loop that does not enclose its target.
    while let Some((header, _)) = frame.loops.last() {
        if *header == edge.target || edge.enclosing_loops.contains(header) {
            break;
        }
        frame.loops.pop();
    }
    // From inside the loop this is the back edge, which starts the next iteration.
    if edge.is_loop_header {
        match frame.loops.last_mut() {
            Some((header, bodies)) if *header == edge.target => *bodies += 1,
            _ => frame.loops.push((edge.target, 0)),
        }
    }
    (frame.block, frame.at) = (edge.target, edge.first_non_phi);
    let Some(moves) = &edge.phi_moves else {
        return Err(malformed("OpPhi without its predecessor").into());
    };
    let missing = || StepInterrupt::from(malformed("OpPhi of an id without a value"));
    // One move cannot overwrite the source of another, so it needs no temporary.
    if let [(to, from)] = moves[..] {
        let value = read_slot(&frame.values, globals, from).cloned().ok_or_else(missing)?;
        *frame.values.get_mut(to as usize).ok_or_else(missing)? = value;
    } else if !moves.is_empty() {
        // Phis of a block read their operands simultaneously: all are read before any is written.
        let chosen = moves.iter().map(|(_, from)| read_slot(&frame.values, globals, *from).cloned());
        let chosen: Vec<ConcreteValue> = chosen.collect::<Option<_>>().ok_or_else(missing)?;
        for ((to, _), value) in moves.iter().zip(chosen) {
            *frame.values.get_mut(*to as usize).ok_or_else(missing)? = value;
        }
    }
    Ok(())
}

impl Interpreter<'_> {
    /// Executes decoded instructions, at most `most`, and returns their number.
    pub(super) fn run_fast_path(&mut self, ctx: &mut InvocationCtx<'_>, most: u64) -> Step<u64> {
        let Invocation { frames, locals, number, .. } = &mut ctx.workgroup.invocations[ctx.index];
        self.block_entries.invocation = *number;
        let frame = frames.last_mut().ok_or(StepInterrupt::Ended)?;
        let function = &self.program.functions[frame.function];
        let (globals, objects) = (&self.globals[..], &self.objects[..]);
        let descriptors = &self.descriptors;
        let tracks_launch = self.setup.launch_taint.is_tracked();
        let mut fast_path_ctx =
            FastPathCtx { function, globals, objects, locals, descriptors, tracks_launch };
        let mut executed = 0;
        let mut jump_result = Ok(());
        while executed < most {
            let Some(decoded_op) = function.decoded.get(frame.at) else { break };
            let edge = match *decoded_op {
                DecodedOp::Label(block) => {
                    if frame.block == 0 {
                        frame.block = block;
                    }
                    self.block_entries.count_entry(function.first_site as usize + frame.at);
                    frame.at += 1;
                    executed += 1;
                    continue;
                }
                DecodedOp::Jump(edge) => edge,
                DecodedOp::Branch { condition, yes, no } => {
                    match read_slot(&frame.values, globals, condition) {
                        // The general path executes a branch on a tainted condition, and records its
                        // dependence.
                        Some(ConcreteValue::Bits(holds, 0)) => {
                            if *holds != 0 {
                                yes
                            } else {
                                no
                            }
                        }
                        _ => break,
                    }
                }
                _ => {
                    if fast_path_ctx.execute_op(decoded_op, &mut frame.values).is_none() {
                        break;
                    }
                    frame.at += 1;
                    executed += 1;
                    continue;
                }
            };
            let Some(edge) = function.edges.get(edge as usize) else { break };
            executed += 1;
            jump_result = follow_edge(edge, frame, function, globals, &mut self.block_entries);
            if jump_result.is_err() {
                break;
            }
        }
        self.steps += executed;
        jump_result.map(|()| executed)
    }

    /// Jumps to another block.
    pub(super) fn jump_to(&mut self, ctx: &mut InvocationCtx<'_>, target: u32) -> Step<()> {
        let program = self.program;
        let frame = ctx.frame_mut()?;
        let function = &program.functions[frame.function];
        let edge = function.edge_by_blocks.get(&(frame.block, target));
        let Some(edge) = edge.and_then(|edge| function.edges.get(*edge as usize)) else {
            return Err(malformed("a branch to an id that is not a label").into());
        };
        follow_edge(edge, frame, function, &self.globals, &mut self.block_entries)
    }
}
