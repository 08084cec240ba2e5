//! Memory: chains of pointers, and loads and stores of whole types, part by part.

use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::{BuiltIn, Op, StorageClass};

use crate::emit;
use crate::error::{Problem, unsupported};
use crate::layout::Part;
use crate::lift::FindingKind;
use crate::module::{Instruction, Type};
use crate::order::MemoryOperands;
use crate::stage;
use crate::state::State;
use crate::value::{Cell, Domain, Number, Object, Origin, Pointer, Value};
use crate::walk::{SCRATCH, Step, Walk};

/// What is written to the dictionary for a whole type at most.
const MAX_LEAVES: usize = 1 << 14;

/// How an access of a whole type goes about its parts.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub operands: MemoryOperands,
    pub coherent: bool,
}

impl Walk<'_> {
    pub(crate) fn pointer(
        &mut self,
        state: &State,
        instruction: &Instruction,
        index: usize,
    ) -> Step<Pointer> {
        match self.operand(state, instruction, index)? {
            Value::Pointer(pointer) => Ok(pointer),
            Value::Null | Value::Known(_) => Err(unsupported("a null or integer-made pointer").into()),
            _ => Err(unsupported("a pointer without a unique object").into()),
        }
    }

    pub(crate) fn access_chain(
        &mut self,
        state: &mut State,
        instruction: &Instruction,
        first: usize,
    ) -> Step<Value> {
        let module = self.setting.module();
        let mut pointer = self.pointer(state, instruction, 0)?;
        let count = module.operands(instruction).len();
        if first == 2 {
            let index = self.operand(state, instruction, 1)?;
            let index = self.known(state, &index, "an index")?;
            let stride = self.stride_of(state, instruction, &pointer)?;
            let bits = {
                let ty = self.type_of_operand(state, instruction, 1)?;
                self.spec().bits(ty)?
            };
            let index = arithmetic::signed(index, bits) as u64;
            pointer.offset = pointer.offset.wrapping_add(index.wrapping_mul(stride));
            pointer.stride = Some(stride);
        }
        for position in first..count {
            let index = self.operand(state, instruction, position)?;
            let index = self.known(state, &index, "an index")?;
            let descriptors = pointer.offset == 0
                && matches!(module.ty(pointer.ty)?, Type::Array { .. } | Type::RuntimeArray { .. })
                && self.setting.is_descriptor_array(pointer.object.variable, pointer.ty);
            if descriptors {
                pointer.object.instance = index + 1;
                pointer.ty = self.spec().part_of(pointer.ty, 0)?.ty;
                continue;
            }
            let ty = pointer.ty;
            let at = self.part_of(&pointer, ty, index)?;
            let length = match (at.length, at.stride) {
                (Some(length), _) => Some(length),
                (None, Some(stride)) => {
                    Some(self.setting.array_length(pointer.object, pointer.offset, stride))
                }
                (None, None) => None,
            };
            if length.is_some_and(|length| index >= length) {
                let name = module.name(pointer.object.variable);
                let length = length.unwrap_or(0);
                let message = format!("element {index} of an array of {length} in `{name}`");
                self.suspect(state, FindingKind::OutOfBounds, message)?;
            }
            if let Some(decorations) = module.member_decorations.get(&(ty, index as u32))
                && matches!(module.ty(ty)?, Type::Struct { .. })
            {
                pointer.coherent |= decorations.coherent || decorations.volatile;
            }
            pointer.offset = pointer.offset.wrapping_add(at.offset);
            pointer.ty = at.ty;
            pointer.stride = at.stride;
        }
        Ok(Value::Pointer(pointer))
    }

    /// Bytes from one element to the next of what an instruction's first operand points into.
    fn stride_of(&self, state: &State, instruction: &Instruction, pointer: &Pointer) -> Step<u64> {
        let ty = self.type_of_operand(state, instruction, 0)?;
        match self.setting.module().decorations(ty).stride.or(pointer.stride) {
            Some(stride) => Ok(stride),
            None => Ok(self.spec().size(pointer.ty)?),
        }
    }

    /// Whether two pointers are one, or how many elements are between them.
    pub(crate) fn compare(&mut self, state: &State, instruction: &Instruction) -> Step<Value> {
        let place = |pointer: &Pointer| (pointer.object, pointer.offset);
        let (left, right) = (self.operand(state, instruction, 0)?, self.operand(state, instruction, 1)?);
        let (same, ends) = match (&left, &right) {
            (lacking, _) | (_, lacking) if lacking.is_lacking() => return Ok(lacking.clone()),
            (Value::Pointer(left), Value::Pointer(right)) => {
                (place(left) == place(right), Some((*left, *right)))
            }
            (Value::Null, Value::Pointer(_)) | (Value::Pointer(_), Value::Null) => (false, None),
            (Value::Null, Value::Null) => (true, None),
            _ => return Err(unsupported("a pointer without a unique object").into()),
        };
        if instruction.op != Op::PtrDiff {
            return Ok(Value::Known(u64::from(same == (instruction.op == Op::PtrEqual))));
        }
        let Some((left, right)) = ends.filter(|(left, right)| left.object == right.object) else {
            return Ok(self.lacking(instruction));
        };
        let stride = self.stride_of(state, instruction, &left)? as i64;
        let apart = left.offset.wrapping_sub(right.offset) as i64;
        Ok(match apart.checked_rem(stride) {
            Some(0) => Value::Known((apart / stride) as u64 & mask(self.spec().bits(instruction.ty)?)),
            _ => self.lacking(instruction),
        })
    }

    /// A part of what a pointer points to. Offsets in matrices of memory that is written are right, or refused.
    fn part_of(&self, pointer: &Pointer, ty: u32, index: u64) -> Result<Part, Problem> {
        let variable = self.setting.module().variables.get(&pointer.object.variable);
        match variable.map(|variable| variable.class) {
            Some(StorageClass::Uniform | StorageClass::PushConstant) => self.spec().part_of(ty, index),
            _ => self.spec().part_without_gaps(ty, index),
        }
    }

    /// Reads a whole type.
    pub(crate) fn load(&mut self, state: &mut State, pointer: Pointer, ty: u32, way: Way) -> Step<Value> {
        if !self.spec().is_scalar(ty)? {
            let count = self.spec().count(ty)?;
            let mut parts = Vec::with_capacity(count);
            for index in 0..count {
                let at = self.part_of(&pointer, ty, index as u64)?;
                let offset = pointer.offset.wrapping_add(at.offset);
                let inner = Pointer { offset, ty: at.ty, ..pointer };
                parts.push(self.load(state, inner, at.ty, way)?);
            }
            return Ok(Value::Composite(Rc::new(parts)));
        }
        if matches!(self.setting.module().ty(ty)?, Type::Handle(_)) {
            return Ok(Value::Opaque);
        }
        let cell = self.cell(pointer, ty)?;
        let Some(class) = self.class(cell.object) else { return self.read_private(state, cell, ty) };
        self.touch(cell, true, false, false);
        if !self.is_shared(cell) {
            return self.read_private(state, cell, ty);
        }
        let module = self.setting.module();
        let access =
            way.operands.access(class, module.vulkan, way.coherent, false, |id| self.spec().number(id))?;
        let target = self.target(cell, class)?;
        self.shared_read(state, cell, |register| emit::load(register, target, access))
    }

    /// Emits a read and says what it may give.
    pub(crate) fn shared_read(
        &mut self,
        state: &mut State,
        cell: Cell,
        kind: impl Fn(u16) -> litmus::InstructionKind,
    ) -> Step<Value> {
        if self.knowledge.opaque.contains(&cell) {
            self.emit(kind(SCRATCH))?;
            return Ok(Value::Opaque);
        }
        let domain = self.domain(cell)?;
        let single = domain.single();
        let register = match single {
            Some(_) => SCRATCH,
            None => self.register(state, domain)?,
        };
        self.emit(kind(register))?;
        Ok(single.map_or(Value::Register(register), Value::Known))
    }

    /// What a cell may hold.
    pub(crate) fn domain(&mut self, cell: Cell) -> Step<Domain> {
        let initial = self.initial(cell)?;
        let mut domain = Domain::one(initial);
        if let Some(stored) = self.knowledge.domains.get(&cell) {
            domain.add(stored);
        }
        Ok(domain)
    }

    /// What shared memory holds at first, as a number.
    pub(crate) fn initial(&mut self, cell: Cell) -> Step<u64> {
        Ok(match self.setting.initial(cell)? {
            Some(value) => value,
            None => {
                // Workgroup memory is written before it is read, but where the walk of the whole grid says otherwise.
                if self.setting.in_buffer(cell) {
                    self.round.undefined.insert(Origin::of(cell));
                }
                self.setting.assigned_to(cell)
            }
        })
    }

    /// Writes a whole type.
    pub(crate) fn store(
        &mut self,
        state: &mut State,
        pointer: Pointer,
        ty: u32,
        value: &Value,
        way: Way,
    ) -> Step<()> {
        if self.class(pointer.object).is_none() {
            return self.store_private(state, pointer, ty, value);
        }
        // What is stored is known before the first part is.
        let mut leaves = Vec::new();
        self.leaves(pointer, ty, value, &mut leaves)?;
        let mut numbers = Vec::with_capacity(leaves.len());
        for (at, ty, value) in &leaves {
            let cell = self.cell(*at, *ty)?;
            let number = match state.resolved(value) {
                Value::Opaque => None,
                // What nobody gave is no matter as long as nobody looks at it.
                undefined @ Value::Undefined(_) if !undefined.is_lacking() && !self.is_shared(cell) => {
                    self.touch(cell, false, true, false);
                    self.write_private(state, cell, undefined)?;
                    continue;
                }
                Value::Pointer(_) => return Err(unsupported("a pointer stored to shared memory").into()),
                other => Some(self.number(state, &other, "a stored value")?),
            };
            numbers.push((cell, number));
        }
        let module = self.setting.module();
        for (cell, number) in numbers {
            let Some(class) = self.class(cell.object) else { continue };
            self.touch(cell, false, true, false);
            match number {
                Some(number) => self.note_given(cell, &state.domain(number)),
                None => {
                    self.round.found.opaque.insert(cell);
                }
            }
            if !self.is_shared(cell) {
                let value = match number {
                    Some(Number::Known(known)) => Value::Known(known),
                    Some(Number::Register(register)) => Value::Register(register),
                    None => Value::Opaque,
                };
                self.write_private(state, cell, value)?;
                continue;
            }
            let access =
                way.operands.access(class, module.vulkan, way.coherent, true, |id| self.spec().number(id))?;
            let target = self.target(cell, class)?;
            self.emit(emit::store(target, number.unwrap_or(Number::Known(0)), access))?;
            state.effects += 1;
            state.writes += 1;
        }
        Ok(())
    }

    /// The scalars of a value with the places that they go to.
    pub(crate) fn leaves(
        &mut self,
        pointer: Pointer,
        ty: u32,
        value: &Value,
        out: &mut Vec<(Pointer, u32, Value)>,
    ) -> Step<()> {
        if self.spec().is_scalar(ty)? {
            if out.len() >= MAX_LEAVES {
                return Err(Problem::Budget { what: "parts of a stored value", bound: MAX_LEAVES }.into());
            }
            out.push((Pointer { ty, ..pointer }, ty, value.clone()));
            return Ok(());
        }
        for index in 0..self.spec().count(ty)? {
            let at = self.part_of(&pointer, ty, index as u64)?;
            let inner = Pointer { offset: pointer.offset.wrapping_add(at.offset), ty: at.ty, ..pointer };
            let value = self.part(value, index)?;
            self.leaves(inner, at.ty, &value, out)?;
        }
        Ok(())
    }

    pub(crate) fn cell(&mut self, pointer: Pointer, ty: u32) -> Step<Cell> {
        let bytes = u32::try_from(self.spec().size(ty)?).unwrap_or(u32::MAX);
        Ok(Cell { object: pointer.object, offset: pointer.offset, bytes })
    }

    pub(crate) fn is_shared(&self, cell: Cell) -> bool {
        self.setting.keep_all || self.knowledge.touched.get(&cell).is_some_and(|touch| touch.is_shared())
    }

    pub(crate) fn touch(&mut self, cell: Cell, reads: bool, writes: bool, ordered: bool) {
        let me = 1 << self.thread;
        let touch = self.round.found.touched.entry(cell).or_default();
        touch.readers |= if reads { me } else { 0 };
        touch.writers |= if writes { me } else { 0 };
        touch.ordered |= ordered;
    }

    pub(crate) fn note_stored(&mut self, cell: Cell, domain: &Domain) {
        let narrow = mask(cell.bytes.saturating_mul(8));
        let domain = domain.mapped(&Domain::one(0), |value, _| value & narrow);
        self.round.found.domains.entry(cell).or_insert_with(Domain::none).add(&domain);
    }

    /// Notes what a plain write may store: no read-modify-write is needed to get there.
    pub(crate) fn note_given(&mut self, cell: Cell, domain: &Domain) {
        self.note_stored(cell, domain);
        let known = self.round.found.generations.entry(cell).or_default();
        known.extend(domain.values().into_iter().flatten().map(|value| (*value, 0)));
    }

    /// Notes what a read-modify-write may store, as far as there are that many of them.
    pub(crate) fn note_update(
        &mut self,
        state: &mut State,
        cell: Cell,
        old: &Domain,
        operand: &Domain,
        computes: bool,
        computed: impl Fn(u64, u64) -> u64,
    ) {
        if !computes {
            return self.note_given(cell, operand);
        }
        let updates = Rc::make_mut(&mut state.updates).entry(cell).or_default();
        *updates += 1;
        let mine = self.round.found.updates.entry(cell).or_default().entry(self.thread).or_default();
        *mine = (*mine).max(*updates);
        let Some(values) = old.values() else { return self.note_stored(cell, &Domain::Any) };
        let bound = self.knowledge.updates_of(cell);
        for value in values {
            let generation = self.knowledge.generation(cell, *value) + 1;
            if generation > bound {
                continue;
            }
            let stored = Domain::one(*value).mapped(operand, &computed);
            self.note_stored(cell, &stored);
            for stored in stored.values().into_iter().flatten() {
                let known = self.round.found.generations.entry(cell).or_default();
                let known = known.entry(*stored).or_insert(generation);
                *known = (*known).min(generation);
            }
        }
    }

    /// What of a cell's values a read-modify-write may find: no more of them have been before it than others perform, and those that this
    /// path has behind it.
    pub(crate) fn before_update(&self, state: &State, cell: Cell, domain: &Domain) -> Domain {
        let Some(by_thread) = self.knowledge.updates.get(&cell) else { return domain.clone() };
        let others: u32 =
            by_thread.iter().filter(|(thread, _)| **thread != self.thread).map(|(_, count)| *count).sum();
        let before = others + state.updates.get(&cell).copied().unwrap_or(0);
        domain.filtered(|value| self.knowledge.generation(cell, value) <= before)
    }

    /// Writes a whole type to memory of this invocation alone.
    pub(crate) fn store_private(
        &mut self,
        state: &mut State,
        pointer: Pointer,
        ty: u32,
        value: &Value,
    ) -> Step<()> {
        let mut leaves = Vec::new();
        self.leaves(pointer, ty, value, &mut leaves)?;
        for (at, ty, value) in leaves {
            let cell = self.cell(at, ty)?;
            self.write_private(state, cell, value)?;
        }
        Ok(())
    }

    pub(crate) fn write_private(&mut self, state: &mut State, cell: Cell, value: Value) -> Step<()> {
        self.check_overlap(state, cell)?;
        Rc::make_mut(&mut state.memory).insert((cell.object, cell.offset), (cell.bytes, value));
        Ok(())
    }

    pub(crate) fn check_overlap(&mut self, state: &State, cell: Cell) -> Step<()> {
        let end = cell.offset.saturating_add(u64::from(cell.bytes));
        let first = (cell.object, cell.offset.saturating_sub(16));
        for ((_, offset), (bytes, _)) in state.memory.range(first..(cell.object, end)) {
            let overlaps = offset.saturating_add(u64::from(*bytes)) > cell.offset;
            if overlaps && (*offset, *bytes) != (cell.offset, cell.bytes) {
                let name = self.setting.module().name(cell.object.variable);
                return Err(Problem::MixedSize { name, first: cell.bytes, second: *bytes }.into());
            }
        }
        Ok(())
    }

    pub(crate) fn read_private(&mut self, state: &State, cell: Cell, ty: u32) -> Step<Value> {
        self.check_overlap(state, cell)?;
        if let Some((_, value)) = state.memory.get(&(cell.object, cell.offset)) {
            return Ok(state.resolved(value));
        }
        let module = self.setting.module();
        let object = cell.object;
        let Some(variable) = module.variables.get(&object.variable).copied() else {
            // A variable of a function.
            return Ok(Value::Undefined(Origin::Memory(object, cell.offset, Some(self.thread))));
        };
        if variable.class == StorageClass::Input || self.setting.is_built_in(object.variable) {
            return self.read_input(object, variable.ty, cell.offset);
        }
        if variable.class == StorageClass::PushConstant
            && let Some(value) = self.setting.push_constant(cell.offset)
        {
            return Ok(Value::Known(value & mask(self.spec().bits(ty)?)));
        }
        if let Some(value) = self.setting.initial(cell)? {
            return Ok(Value::Known(value));
        }
        let mine = matches!(variable.class, StorageClass::Private | StorageClass::Function);
        Ok(Value::Undefined(Origin::Memory(object, cell.offset, mine.then_some(self.thread))))
    }

    pub(crate) fn read_input(&mut self, object: Object, ty: u32, offset: u64) -> Step<Value> {
        let module = self.setting.module();
        let spec = self.spec();
        let decorations = module.decorations(object.variable);
        if let Some(built_in) = decorations.built_in {
            let value = self.built_in(built_in)?;
            return Ok(spec.scalar_at(&value, ty, offset)?);
        }
        if let Type::Struct { members } = module.ty(ty)?
            && let Some((index, at)) = spec.part_at(ty, offset, members.len() as u64)?
            && let Some(decorations) = module.member_decorations.get(&(ty, index as u32))
            && let Some(built_in) = decorations.built_in
        {
            let value = self.built_in(built_in)?;
            return Ok(spec.scalar_at(&value, at.ty, offset - at.offset)?);
        }
        if self.setting.stage.is_given() {
            return Ok(self.given(decorations.location, ty, offset)?);
        }
        Ok(Value::Undefined(Origin::Memory(object, offset, Some(self.thread))))
    }

    /// What a vertex or a fragment is given at a location; nothing is followed where nothing is said of it.
    fn given(&self, location: Option<u32>, ty: u32, offset: u64) -> Result<Value, Problem> {
        let spec = self.spec();
        let bytes = location.and_then(|location| self.setting.given.get(&location));
        let width = (spec.bits(ty)? / 8) as usize;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let size = spec.size(ty)?;
        let part = bytes.and_then(|bytes| stage::share_of(bytes, size, self.identity.workgroup_index));
        let part = part.and_then(|part| part.get(from..from.checked_add(width)?));
        let number = |part: &[u8]| part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        Ok(part.map_or(Value::Opaque, |part| Value::Known(number(part))))
    }

    /// What a built-in variable holds.
    fn built_in(&self, built_in: BuiltIn) -> Result<Value, Problem> {
        let me = self.identity;
        if let Some(told) = self.setting.stage.told(built_in, me.workgroup) {
            let part =
                |number: &Option<u32>| number.map_or(Value::Opaque, |number| Value::Known(number.into()));
            return Ok(match &told[..] {
                [] => Value::Opaque,
                [one] => part(one),
                parts => Value::Composite(Rc::new(parts.iter().map(part).collect())),
            });
        }
        let vector = |of: [u32; 3]| {
            Value::Composite(Rc::new(of.iter().map(|number| Value::Known(u64::from(*number))).collect()))
        };
        let scalar = |number: u32| Value::Known(u64::from(number));
        let setting = self.setting;
        Ok(match built_in {
            BuiltIn::NumWorkgroups => vector(setting.grid),
            BuiltIn::WorkgroupSize => vector(setting.local_size),
            BuiltIn::WorkgroupId => vector(me.workgroup),
            BuiltIn::LocalInvocationId => vector(me.local),
            BuiltIn::GlobalInvocationId => {
                let at = |axis: usize| {
                    me.workgroup[axis].wrapping_mul(setting.local_size[axis]).wrapping_add(me.local[axis])
                };
                vector([at(0), at(1), at(2)])
            }
            BuiltIn::LocalInvocationIndex => scalar(me.local_index),
            BuiltIn::SubgroupSize => scalar(setting.subgroup_size),
            BuiltIn::NumSubgroups => scalar(setting.invocations().div_ceil(setting.subgroup_size.max(1))),
            BuiltIn::SubgroupId => scalar(me.local_index / setting.subgroup_size.max(1)),
            BuiltIn::SubgroupLocalInvocationId => scalar(me.local_index % setting.subgroup_size.max(1)),
            BuiltIn::DeviceIndex | BuiltIn::ViewIndex => scalar(0),
            other => return Err(unsupported(format!("built-in {other:?}"))),
        })
    }
}
