//! What instructions do that are neither control flow nor memory's own.

use std::rc::Rc;

use arithmetic::mask;
use litmus::InterlockEnd;
use rspirv::spirv::{Op, StorageClass};

use crate::error::{malformed, unsupported};
use crate::order::{MemoryOperands, scope, semantics};
use crate::stage;

use super::machine::{Doing, Here, Machine, Step, Stop, Workgroup};
use super::program::{Family, Inst, Layout};
use super::value::{LOCAL, OPAQUE, OPEN, Pointer, UNDEFINED, Value};

/// What a clock counts in a step of an invocation.
const TICKS: u64 = 16;
/// Bytes of a variable of a function at most.
pub(super) const MAX_OWN: usize = 1 << 18;

impl Machine<'_> {
    /// Does an instruction and goes on to the next.
    pub(super) fn execute(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        let program = self.program;
        let operands = program.module.operands(&inst.raw);
        let value = match inst.raw.op {
            Op::Variable => self.variable(here, inst)?,
            Op::Load => {
                let pointer = self.pointer(here, inst, 0)?;
                let memory = MemoryOperands::parse(operands.get(1..).unwrap_or_default());
                if inst.result.count > 0 {
                    return self.load_vector(here, inst, &pointer, memory);
                }
                self.load(here, &pointer, memory)?
            }
            Op::Store => {
                let pointer = self.pointer(here, inst, 0)?;
                let id = program.module.operand(&inst.raw, 1)?;
                let memory = MemoryOperands::parse(operands.get(2..).unwrap_or_default());
                if program.slots(id).count > 0 {
                    self.store_vector(here, id, &pointer, memory)?;
                } else {
                    let value = self.value(here, id)?;
                    self.store(here, &pointer, &value, memory)?;
                }
                Value::Nothing(0)
            }
            Op::CopyMemory | Op::CopyMemorySized => return self.copy(here, inst),
            Op::AccessChain | Op::InBoundsAccessChain => self.chain(here, inst, 1)?,
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.chain(here, inst, 2)?,
            Op::ArrayLength => self.array_length(here, inst)?,
            Op::Undef => program.filled(inst.raw.ty, UNDEFINED)?,
            Op::CompositeConstruct => self.construct(here, inst)?,
            Op::CompositeExtract => {
                let mut value = self.operand(here, inst, 0)?;
                for index in operands.get(1..).unwrap_or_default() {
                    value = self.component(&value, *index as usize)?;
                }
                value
            }
            Op::CompositeInsert => {
                let (value, into) = (self.operand(here, inst, 0)?, self.operand(here, inst, 1)?);
                self.inserted(&into, operands.get(2..).unwrap_or_default(), value)?
            }
            Op::VectorExtractDynamic => {
                let (value, index) = (self.operand(here, inst, 0)?, self.bits(here, inst, 1)?);
                match self.component(&value, index.0 as usize) {
                    Ok(element) => element.tainted(index.1),
                    Err(_) => Value::Bits(0, index.1 | self.lacks_result(here, inst.raw.op)?),
                }
            }
            Op::VectorInsertDynamic => {
                let (into, value) = (self.operand(here, inst, 0)?, self.operand(here, inst, 1)?);
                let index = self.bits(here, inst, 2)?;
                match self.inserted(&into, &[index.0 as u32], value) {
                    Ok(all) => all.tainted(index.1),
                    Err(_) => into.tainted(index.1 | self.lacks_result(here, inst.raw.op)?),
                }
            }
            Op::VectorShuffle => {
                let (left, right) = (self.operand(here, inst, 0)?, self.operand(here, inst, 1)?);
                let (Value::Many(left), Value::Many(right)) = (&left, &right) else {
                    return Err(malformed("a shuffle of what are no vectors").into());
                };
                let pick = |index: &u32| {
                    let index = *index as usize;
                    let found = left.get(index).or_else(|| right.get(index.checked_sub(left.len())?));
                    found.cloned().unwrap_or(Value::Bits(0, UNDEFINED))
                };
                Value::many(operands[2..].iter().map(pick))
            }
            Op::CopyObject | Op::CopyLogical => self.operand(here, inst, 0)?,
            Op::Select => self.select(here, inst)?,
            Op::Bitcast | Op::ConvertUToPtr | Op::ConvertPtrToU => self.bitcast(here, inst)?,
            Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff => self.compare(here, inst)?,
            Op::ExtInst => self.extended(here, inst)?,
            Op::ControlBarrier | Op::MemoryBarrier => return self.barrier(here, inst),
            Op::ControlBarrierArriveINTEL => return self.arrive(here),
            Op::ControlBarrierWaitINTEL => {
                self.events += 1;
                return Err(self.waits(here));
            }
            Op::BeginInvocationInterlockEXT => return self.section(here, InterlockEnd::Begin),
            Op::EndInvocationInterlockEXT => return self.section(here, InterlockEnd::End),
            Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR => self.matrix(here, inst)?,
            Op::IsHelperInvocationEXT => Value::truth(false, 0),
            op if stage::is_derivative(op) => program.filled(inst.raw.ty, OPAQUE)?,
            // Whoever looks at it looks at the order in which all go on.
            Op::ReadClockKHR => {
                let now = self.steps.wrapping_mul(TICKS);
                match program.layout(inst.raw.ty)? {
                    Layout::Vector { .. } => {
                        Value::many([now & mask(32), now >> 32].map(|part| Value::Bits(part, OPEN)))
                    }
                    _ => Value::Bits(now, OPEN),
                }
            }
            Op::CooperativeMatrixMulAddKHR => Value::Nothing(OPAQUE),
            _ => match inst.family {
                Family::Atomic => return self.atomic(here, inst),
                Family::Image => return self.image(here, inst),
                Family::Collective => return Err(self.waits(here)),
                Family::Ballot => return self.alone_in_group(here, inst),
                Family::Other => self.elementwise(here, inst)?,
            },
        };
        self.set(here, inst, value)
    }

    /// Whether two pointers are one, or how many elements are between them.
    fn compare(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let (left, right) = (self.pointer(here, inst, 0)?, self.pointer(here, inst, 1)?);
        let taint = left.taint | right.taint;
        let op = inst.raw.op;
        if op != Op::PtrDiff {
            let same = (left.object, left.offset) == (right.object, right.offset);
            return Ok(Value::truth(same == (op == Op::PtrEqual), taint));
        }
        let stride = self.stride_of(inst, &left);
        let apart = left.offset.wrapping_sub(right.offset) as i64;
        let bits = self.program.numbers(inst.raw.ty).map_or(32, |of| of.1);
        match apart.checked_rem(stride) {
            Some(0) if left.object == right.object => {
                Ok(Value::Bits((apart / stride) as u64 & mask(bits), taint))
            }
            _ => Ok(Value::Bits(0, taint | self.lacks_result(here, op)?)),
        }
    }

    /// The invocation waits for others.
    pub(super) fn waits(&mut self, here: &mut Here<'_>) -> Stop {
        let instance = self.instance(&here.workgroup.invocations[here.index]);
        here.me().doing = Doing::Waits(instance);
        Stop::Waits
    }

    fn barrier(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        self.events += 1;
        if inst.raw.op == Op::ControlBarrier {
            return Err(self.waits(here));
        }
        let vulkan = self.program.module.vulkan;
        let at = scope(self.number(here, inst, 0, "a scope")?, vulkan)?;
        let order = super::sync::narrowed(semantics(self.number(here, inst, 1, "semantics")?)?);
        if !self.setup.blind {
            here.me().fence(at, order);
        }
        here.frame()?.at += 1;
        Ok(())
    }

    fn variable(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let Some((class, to)) = program.pointee(inst.raw.ty) else {
            return Err(malformed("a variable whose type is no pointer").into());
        };
        if class != StorageClass::Function {
            return Err(malformed("a variable of another class in a function").into());
        }
        let size = usize::try_from(program.size(to)).ok().filter(|size| *size <= MAX_OWN);
        let size = size.ok_or_else(|| unsupported(format!("a variable of more than {MAX_OWN} bytes")))?;
        let initializer = program.module.operands(&inst.raw).get(1);
        let value = initializer.map(|id| self.value(here, *id)).transpose()?;
        let Workgroup { invocations, .. } = &mut *here.workgroup;
        let locals = &mut invocations[here.index].locals;
        let at = locals.begin(inst.raw.result, size, &mut self.spare_objects);
        if let (Some(value), Some(object)) = (value, locals.live_mut().get_mut(at)) {
            self.fill(object, &Pointer::to(0, to), to, &value)?;
        }
        Ok(Value::Pointer(Pointer::to(LOCAL | at as u32, to)))
    }

    fn array_length(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let pointer = self.pointer(here, inst, 0)?;
        let member = u64::from(program.module.operand(&inst.raw, 1)?);
        let array = super::access::part(program, &pointer, member)?;
        let Layout::Array { stride, .. } = program.layout(array.ty)? else {
            return Err(malformed("OpArrayLength of what is no array").into());
        };
        let bytes = self.object(here, array.object).map_or(0, |object| object.bytes.len() as u64);
        Ok(Value::Bits(bytes.saturating_sub(array.offset) / (*stride).max(1), 0))
    }

    fn construct(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let operands = program.module.operands(&inst.raw);
        let mut parts = Vec::with_capacity(operands.len());
        let vector = matches!(program.layout(inst.raw.ty)?, Layout::Vector { .. });
        for id in operands {
            match self.value(here, *id)? {
                // Vectors are made of numbers and of vectors.
                Value::Many(inner) if vector => parts.extend(inner.iter().cloned()),
                other => parts.push(other),
            }
        }
        if matches!(program.layout(inst.raw.ty)?, Layout::Handle) {
            return Ok(Value::Nothing(OPAQUE));
        }
        Ok(Value::many(parts))
    }

    fn inserted(&self, into: &Value, path: &[u32], value: Value) -> Step<Value> {
        let Some((first, rest)) = path.split_first() else { return Ok(value) };
        match into {
            Value::Many(parts) => {
                let inner = parts.get(*first as usize);
                let inner = inner.ok_or_else(|| malformed("an index beyond its composite"))?;
                let changed = self.inserted(inner, rest, value)?;
                let mut parts = Rc::clone(parts);
                Rc::make_mut(&mut parts)[*first as usize] = changed;
                Ok(Value::Many(parts))
            }
            Value::Nothing(taint) => Ok(Value::Nothing(*taint | OPAQUE)),
            _ => Err(malformed("a part of what has none").into()),
        }
    }

    fn select(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let (yes, no) = (self.operand(here, inst, 1)?, self.operand(here, inst, 2)?);
        match self.operand(here, inst, 0)? {
            Value::Bits(condition, taint) => {
                let chosen = if condition != 0 { yes } else { no };
                Ok(chosen.tainted(taint))
            }
            Value::Many(conditions) => {
                let mut parts = Vec::with_capacity(conditions.len());
                for (index, condition) in conditions.iter().enumerate() {
                    let Value::Bits(holds, taint) = condition else {
                        return Err(malformed("a condition that is no truth").into());
                    };
                    let from = if *holds != 0 { &yes } else { &no };
                    parts.push(self.component(from, index)?.tainted(*taint));
                }
                Ok(Value::many(parts))
            }
            other => Ok(yes.tainted(other.taint() | OPAQUE)),
        }
    }

    /// Loads and stores of cooperative matrices: every element is accessed by some lane of the subgroup, each by one.
    fn matrix(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let loads = inst.raw.op == Op::CooperativeMatrixLoadKHR;
        let operands = program.module.operands(&inst.raw);
        let pointer = self.pointer(here, inst, 0)?;
        let ty = if loads { inst.raw.ty } else { program.type_of(program.module.operand(&inst.raw, 1)?) };
        let shape = program.module.handles.get(&ty).map_or(&[][..], Vec::as_slice);
        let [component, matrix_scope, rows, columns, ..] = *shape else {
            return Err(malformed("a matrix of no matrix type").into());
        };
        let number =
            |id: u32| program.specialized.number(id).ok_or_else(|| unsupported("a matrix of no fixed size"));
        let (rows, columns) = (number(rows)?, number(columns)?);
        if number(matrix_scope)? != 3 {
            return Err(unsupported("cooperative matrices of a scope other than a subgroup's").into());
        }
        let first = if loads { 1 } else { 2 };
        let by_columns = self.number(here, inst, first, "the layout of a matrix")? == 1;
        let stride = match operands.get(first + 1) {
            Some(_) => self.number(here, inst, first + 1, "the stride of a matrix")?,
            None => return Err(unsupported("a matrix without a stride").into()),
        };
        let memory = MemoryOperands::parse(operands.get(first + 2..).unwrap_or_default());
        // The stride counts elements of what the pointer points to.
        let unit = program.size(pointer.ty);
        let bytes = program.size(component);
        let lanes = u64::from(self.setup.subgroup_size);
        let lane = u64::from(here.me().lane);
        let (outer, inner) = if by_columns { (columns, rows) } else { (rows, columns) };
        if outer.saturating_mul(inner) > 1 << 16 {
            return Err(unsupported("a matrix of so many elements").into());
        }
        self.notes.insert("elements of matrices are shared out among the lanes in one way".to_owned());
        for element in 0..outer * inner {
            if (element + u64::from(self.rotation)) % lanes != lane {
                continue;
            }
            let (line, at) = (element / inner, element % inner);
            let offset = pointer.offset.wrapping_add(line.wrapping_mul(stride).wrapping_mul(unit));
            let place = Pointer { offset: offset.wrapping_add(at * bytes), ty: component, ..pointer };
            if loads {
                self.load(here, &place, memory)?;
            } else {
                let value = Value::Bits(0, OPAQUE);
                self.store(here, &place, &value, memory)?;
            }
        }
        Ok(Value::Nothing(OPAQUE))
    }
}
