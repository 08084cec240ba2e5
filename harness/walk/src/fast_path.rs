//! The interpreter's fast path over pre-decoded instructions.
//!
//! An operation that returns `None` has changed nothing but what executing it again leaves the same, and the general
//! path in `execute.rs` executes the instruction instead.

use arithmetic::{Instruction, MAX_OPERANDS, NumberShape, Operand, sign_extend};
use rustc_hash::FxHashMap;

use super::bytecode::{
    AccessChainOp, AccessKinds, ArithmeticOp, BlockEdge, ConstructOp, DecodedOp, ExtractOp, ReduceOp,
};
use super::slots::{gather_slots, read_slot, scatter_value};
use entry_point::malformed;

use super::access::{AccessConflict, Accessor};
use super::launch_taint::reduces_positions;
use super::memory::{MemoryObject, PrivateObjects};
use super::program::DecodedFunction;
use super::race_check::AccessSite;
use super::state::{
    BlockEntries, CallFrame, DescriptorArray, Interpreter, InvocationCtx, WORKGROUP_TAG, WorkgroupState,
};
use super::step::{Step, StepInterrupt};
use super::value::{
    COMPUTED_FROM_UNWRITTEN, ConcretePointer, ConcreteValue, INPUT_MASK, PRIVATE_TAG, SITE_MASK, Taint,
    UNDEFINED, result_taint,
};

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
    memory: VisibleMemory<'m>,
    checks: AccessChecks<'m>,
    /// The number of accesses that changed shared memory.
    changes: u64,
    /// Descriptor arrays, whose elements the general path selects.
    descriptors: &'m FxHashMap<u32, DescriptorArray>,
    /// True in a probe of the launch, where the general path records computations on positions.
    tracks_launch: bool,
}

/// The memory that an invocation may access.
struct VisibleMemory<'m> {
    objects: &'m mut [MemoryObject],
    workgroup_objects: &'m mut [MemoryObject],
    locals: &'m mut PrivateObjects,
}

impl VisibleMemory<'_> {
    #[inline(always)]
    fn object_mut(&mut self, object: u32) -> Option<&mut MemoryObject> {
        match object & (PRIVATE_TAG | WORKGROUP_TAG) {
            0 => self.objects.get_mut(object as usize),
            WORKGROUP_TAG => self.workgroup_objects.get_mut((object & !WORKGROUP_TAG) as usize),
            _ => self.locals.as_mut_slice().get_mut((object & !PRIVATE_TAG) as usize),
        }
    }
}

/// The race checks of shared accesses.
struct AccessChecks<'m> {
    /// The invocation as seen by race checks; `None` if the general path executes shared accesses.
    accessor: Option<Accessor<'m>>,
    /// The instruction and the call stack that race checks record.
    instruction: u32,
    calls: u32,
    /// The number of shared accesses.
    accesses: u64,
    /// The conflict that the last access showed.
    conflict: Option<(ConcretePointer, Box<AccessConflict>)>,
}

impl AccessChecks<'_> {
    /// Checks an access of shared memory and records it; `None` if the general path has to.
    #[inline(always)]
    fn check_access(
        &mut self,
        object: &mut MemoryObject,
        pointer: &ConcretePointer,
        (offset, bytes): (u64, u32),
        kinds: &AccessKinds,
        repeated_store: Option<Taint>,
    ) -> Option<()> {
        let (class, accessor) = (object.class?, self.accessor.as_ref()?);
        let kind = kinds[class][usize::from(object.coherent || pointer.coherent)]?;
        if pointer.taint != 0 {
            return None;
        }
        let site = AccessSite { instruction: self.instruction, calls: self.calls, kind, mask: 0 };
        let (shadow, place) = (&mut object.shadow, (class, offset, bytes));
        let (_, conflict) = accessor.record_access(shadow, place, (site, repeated_store), |_| None, None);
        self.accesses += 1;
        if let (None, Some(conflict)) = (&self.conflict, conflict) {
            self.conflict = Some((*pointer, conflict));
        }
        Some(())
    }
}

/// Writes a number to a slot.
#[inline(always)]
fn set_bits(values: &mut [ConcreteValue], to: u32, bits: u64, taint: Taint) -> Option<()> {
    match values.get_mut(to as usize)? {
        // Without the tag and the check for a shared part.
        ConcreteValue::Bits(old, known) => (*old, *known) = (bits, taint),
        other => *other = ConcreteValue::Bits(bits, taint),
    }
    Some(())
}

impl FastPathCtx<'_> {
    /// Executes an operation; `None` means that nothing has changed and the general path must run.
    #[inline(always)]
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
                return set_bits(values, to, compute(a, b)?, taint);
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
            DecodedOp::Load { pointer, to, offset, access, bytes, is_bool } => {
                let ConcreteValue::Pointer(pointer) = *value(pointer)? else { return None };
                // An address may depend on inputs alone; other taints are recorded by the general
                // path.
                if pointer.is_out_of_bounds || pointer.taint & !INPUT_MASK != 0 || pointer.row_major {
                    return None;
                }
                let at = (pointer.offset.wrapping_add(offset.into()), u32::from(bytes));
                let object = self.memory.object_mut(pointer.object)?;
                if !object.contains_range(at.0, at.1) {
                    return None;
                }
                let (bits, taint) = object.read_scalar(at.0, at.1);
                if object.class.is_some() {
                    let kinds = self.function.access_kinds.get(access as usize)?;
                    self.checks.check_access(object, &pointer, at, kinds, None)?;
                }
                let bits = if is_bool { u64::from(bits != 0) } else { bits };
                return set_bits(values, to, bits, taint | pointer.taint);
            }
            DecodedOp::Store { pointer, value: stored, offset, access, bytes } => {
                let (&ConcreteValue::Pointer(pointer), &ConcreteValue::Bits(bits, taint)) =
                    (value(pointer)?, value(stored)?)
                else {
                    return None;
                };
                if pointer.is_out_of_bounds || pointer.row_major {
                    return None;
                }
                let at = (pointer.offset.wrapping_add(offset.into()), u32::from(bytes));
                let is_private = pointer.object & PRIVATE_TAG != 0;
                let object = self.memory.object_mut(pointer.object)?;
                if !object.contains_range(at.0, at.1) || is_private != object.class.is_none() {
                    return None;
                }
                if !is_private {
                    // The general path observes undefined and unwritten values, and compares with earlier plain stores.
                    if taint & (SITE_MASK | COMPUTED_FROM_UNWRITTEN) != 0 || object.has_plain_words() {
                        return None;
                    }
                    let is_same = object.read_scalar(at.0, at.1) == (bits, taint);
                    let kinds = self.function.access_kinds.get(access as usize)?;
                    self.checks.check_access(object, &pointer, at, kinds, is_same.then_some(taint))?;
                    self.changes += u64::from(!is_same);
                }
                object.write_scalar(at.0, at.1, bits, taint);
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
                let part = chain.apply_to(base, value)?;
                match values.get_mut(to as usize)? {
                    ConcreteValue::Pointer(old) => *old = part,
                    other => *other = ConcreteValue::Pointer(part),
                }
                return Some(());
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
                return set_bits(values, to, bits, taint);
            }
            DecodedOp::Undefine { to } => return set_bits(values, to, 0, UNDEFINED),
            DecodedOp::Variable { to, id, ty, bytes } => {
                let at = self.memory.locals.push_variable(id, bytes as usize);
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
    #[inline(never)]
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
        let (numbers, kind) = (numbers.get(..self.count)?, self.kind.to_arithmetic());
        let result = self.instruction.compute_component(numbers, kind, self.from, self.bits)?;
        let may_vary = self.instruction.may_vary_component(numbers, kind, self.from, self.bits, result);
        (!may_vary).then_some(ConcreteValue::Bits(result, taint))
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
        let given = given.get(..self.operands.len())?;
        let all = self.instruction.compute(given, &[self.result])?;
        if all.len() != self.to.as_slice().len() || self.instruction.may_vary(given, &[self.result], &all) {
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
    #[inline(always)]
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

/// Follows an edge: updates loops and evaluates the phis of the target. Returns `None` if a phi lacks a value.
fn follow_edge(
    edge: &BlockEdge,
    frame: &mut CallFrame,
    function: &DecodedFunction<'_>,
    globals: &[ConcreteValue],
    entries: &mut BlockEntries,
) -> Option<()> {
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
    let moves = edge.phi_moves.as_ref()?;
    // One move cannot overwrite the source of another, so it needs no temporary.
    if let [(to, from)] = moves[..] {
        let value = read_slot(&frame.values, globals, from).cloned()?;
        *frame.values.get_mut(to as usize)? = value;
    } else if !moves.is_empty() {
        // Phis of a block read their operands simultaneously: all are read before any is written.
        let chosen = moves.iter().map(|(_, from)| read_slot(&frame.values, globals, *from).cloned());
        let chosen: Vec<ConcreteValue> = chosen.collect::<Option<_>>()?;
        for ((to, _), value) in moves.iter().zip(chosen) {
            *frame.values.get_mut(*to as usize)? = value;
        }
    }
    Some(())
}

/// Returns the refusal of an edge whose target has a phi without a value for it.
fn missing_phi() -> StepInterrupt {
    malformed("OpPhi without a value for its predecessor").into()
}

impl Interpreter<'_> {
    /// Executes decoded instructions, at most `most`. Returns false if the general path has to execute the next one.
    pub(super) fn run_fast_path(&mut self, ctx: &mut InvocationCtx<'_>, most: u64) -> Step<bool> {
        let has_plain_checks =
            !self.setup.has_mixed_visibility && !self.is_probing() && self.accessed.is_none();
        let WorkgroupState { invocations, objects, barrier_epochs, .. } = &mut *ctx.workgroup;
        let me = &mut invocations[ctx.index];
        self.block_entries.invocation = me.number;
        let has_plain_checks = has_plain_checks && me.self_visible.is_empty();
        let accessor = match has_plain_checks {
            true => Some(Accessor::new(me, &me.views, barrier_epochs, self.setup)),
            false => None,
        };
        let frame = me.frames.last_mut().ok_or(StepInterrupt::Ended)?;
        let function = &self.program.functions[frame.function];
        let globals = &self.globals[..];
        let mut fast_path_ctx = FastPathCtx {
            function,
            globals,
            memory: VisibleMemory {
                objects: &mut self.objects,
                workgroup_objects: objects,
                locals: &mut me.locals,
            },
            checks: AccessChecks {
                accessor,
                instruction: 0,
                calls: frame.calls,
                accesses: 0,
                conflict: None,
            },
            changes: 0,
            descriptors: &self.descriptors,
            tracks_launch: self.setup.launch_taint.is_tracked(),
        };
        let mut executed = 0;
        let mut has_executed = true;
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
                    fast_path_ctx.checks.instruction = function.first_site + frame.at as u32;
                    has_executed = fast_path_ctx.execute_op(decoded_op, &mut frame.values).is_some();
                    if !has_executed || fast_path_ctx.checks.conflict.is_some() {
                        break;
                    }
                    let nops = u64::from(function.following_nops[frame.at]);
                    let length = 1 + nops.min(most - executed - 1);
                    frame.at += length as usize;
                    executed += length;
                    continue;
                }
            };
            let Some(edge) = function.edges.get(edge as usize) else { break };
            executed += 1;
            follow_edge(edge, frame, function, globals, &mut self.block_entries).ok_or_else(missing_phi)?;
        }
        let FastPathCtx { checks: AccessChecks { accesses, conflict, .. }, changes, .. } = fast_path_ctx;
        let mut is_done = executed >= most;
        if let Some((pointer, conflict)) = conflict {
            self.report_conflict(ctx, &pointer, &conflict);
            if has_executed {
                ctx.frame_mut()?.at += 1;
                (executed, is_done) = (executed + 1, true);
            }
        }
        (self.steps, self.accesses) = (self.steps + executed, self.accesses + accesses);
        self.changes += changes;
        Ok(is_done)
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
        follow_edge(edge, frame, function, &self.globals, &mut self.block_entries).ok_or_else(missing_phi)
    }
}
