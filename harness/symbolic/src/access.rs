//! Memory: access chains, and loads and stores of any type, split into scalars.

use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::{BuiltIn, StorageClass};
use spirv_reader::{MemoryOperands, PointerComparison, SpirvInstruction, SpirvType, TypePart};

use crate::constants::scalar_at;
use crate::context::LiftContext;
use crate::emit::{self, SCRATCH_REGISTER};
use crate::executor::{Executor, Step};
use crate::state::PathState;
use crate::value::{NumberDomain, SymbolicNumber, SymbolicPointer, SymbolicValue, UndefOrigin, ValueSet};
use entry_point::launch::{LaunchShape, invocation_share};
use entry_point::layout::{MemoryCell, ObjectId, is_storage_image};
use entry_point::order::access_strength;
use entry_point::{FindingCause, Problem, unsupported};

/// Upper bound on the scalars of one access to private memory.
const MAX_LEAVES: usize = 1 << 14;

impl Executor<'_> {
    pub(crate) fn pointer_of_id(&mut self, state: &PathState, id: u32) -> Step<SymbolicPointer> {
        match self.value_of_id(state, id)? {
            SymbolicValue::Pointer(pointer) => Ok(pointer),
            SymbolicValue::Null | SymbolicValue::Known(_) => {
                Err(unsupported("a null or integer-made pointer").into())
            }
            _ => Err(unsupported("a pointer without a unique object").into()),
        }
    }

    pub(crate) fn access_chain(
        &mut self,
        state: &mut PathState,
        base: u32,
        element: Option<u32>,
        indices: &[u32],
    ) -> Step<SymbolicValue> {
        let module = self.context.module();
        let mut pointer = self.pointer_of_id(state, base)?;
        if let Some(element) = element {
            let index = self.value_of_id(state, element)?;
            let index = self.fork_to_known(state, &index, "an index")?;
            let stride = self.stride_of_array(state, base, &pointer)?;
            let bits = self.specialized().scalar_bits(self.type_of_id(state, element)?)?;
            let index = arithmetic::sign_extend(index, bits) as u64;
            pointer.offset = pointer.offset.wrapping_add(index.wrapping_mul(stride));
            pointer.stride = Some(stride);
        }
        for id in indices {
            let index = self.value_of_id(state, *id)?;
            if let Some(element) = self.variable_element(state, &pointer, &index, *id)? {
                pointer = element;
                continue;
            }
            let index = self.fork_to_known(state, &index, "an index")?;
            let descriptors = pointer.offset == 0
                && matches!(
                    module.type_of_id(pointer.ty)?,
                    SpirvType::Array { .. } | SpirvType::RuntimeArray { .. }
                )
                && self.context.is_descriptor_array(pointer.object.variable, pointer.ty);
            if descriptors {
                pointer.object.instance = index + 1;
                pointer.ty = self.specialized().part_of(pointer.ty, 0)?.ty;
                continue;
            }
            let ty = pointer.ty;
            let part_pointer = self.part_of(&pointer, ty, index)?;
            let length = match (part_pointer.length, part_pointer.stride) {
                (Some(length), _) => Some(length),
                (None, Some(stride)) => {
                    Some(self.context.array_length(pointer.object, pointer.offset, stride))
                }
                (None, None) => None,
            };
            if length.is_some_and(|length| index >= length) {
                let name = module.display_name(pointer.object.variable);
                let length = length.unwrap_or(0);
                if self.context.is_robust && part_pointer.length.is_none() {
                    return Err(unsupported(format!(
                        "an access beyond the end of `{name}`, which robustness defines"
                    ))
                    .into());
                }
                let message = format!("element {index} of an array of {length} in `{name}`");
                self.report_conditionally(state, FindingCause::BeyondEnd, message, name)?;
            }
            if let Some(decorations) = module.member_decorations.get(&(ty, index as u32))
                && matches!(module.type_of_id(ty)?, SpirvType::Struct { .. })
            {
                pointer.coherent |= decorations.coherent || decorations.volatile;
            }
            pointer.offset = pointer.offset.wrapping_add(part_pointer.offset);
            pointer.ty = part_pointer.ty;
            pointer.stride = part_pointer.stride;
        }
        Ok(SymbolicValue::Pointer(pointer))
    }

    /// Returns the element stride of the array that a pointer of this id points into.
    fn stride_of_array(&self, state: &PathState, id: u32, pointer: &SymbolicPointer) -> Step<u64> {
        let ty = self.type_of_id(state, id)?;
        match self.context.module().decorations_of(ty).stride.or(pointer.stride) {
            Some(stride) => Ok(stride),
            None => Ok(self.specialized().size_of(pointer.ty)?),
        }
    }

    /// Compares two pointers, or returns the number of elements between them.
    pub(crate) fn compare_pointers(
        &mut self,
        state: &PathState,
        instruction: &SpirvInstruction,
        comparison: PointerComparison,
        [first, second]: [u32; 2],
    ) -> Step<SymbolicValue> {
        let place = |pointer: &SymbolicPointer| (pointer.object, pointer.offset);
        let is_variable = |value: &SymbolicValue| matches!(value, SymbolicValue::Pointer(pointer) if pointer.variable_offset.is_some());
        let (left, right) = (self.value_of_id(state, first)?, self.value_of_id(state, second)?);
        if is_variable(&left) || is_variable(&right) {
            return Err(unsupported("a comparison of pointers to variable positions").into());
        }
        let (same, ends) = match (&left, &right) {
            (lacking, _) | (_, lacking) if lacking.is_undefined_result() => return Ok(lacking.clone()),
            (SymbolicValue::Pointer(left), SymbolicValue::Pointer(right)) => {
                (place(left) == place(right), Some((*left, *right)))
            }
            (SymbolicValue::Null, SymbolicValue::Pointer(_))
            | (SymbolicValue::Pointer(_), SymbolicValue::Null) => (false, None),
            (SymbolicValue::Null, SymbolicValue::Null) => (true, None),
            _ => return Err(unsupported("a pointer without a unique object").into()),
        };
        match comparison {
            PointerComparison::Equal => return Ok(SymbolicValue::Known(u64::from(same))),
            PointerComparison::NotEqual => return Ok(SymbolicValue::Known(u64::from(!same))),
            PointerComparison::Difference => {}
        }
        let Some((left, right)) = ends.filter(|(left, right)| left.object == right.object) else {
            return Ok(self.undefined_result_value(instruction));
        };
        let stride = self.stride_of_array(state, first, &left)? as i64;
        let apart = left.offset.wrapping_sub(right.offset) as i64;
        Ok(match apart.checked_rem(stride) {
            Some(0) => SymbolicValue::Known(
                (apart / stride) as u64 & mask(self.specialized().scalar_bits(instruction.ty)?),
            ),
            _ => self.undefined_result_value(instruction),
        })
    }

    /// Returns a pointer to a part; refuses parts of matrices whose layout would be needed.
    fn part_of(&self, pointer: &SymbolicPointer, ty: u32, index: u64) -> Result<TypePart, Problem> {
        let variable = self.context.module().variables.get(&pointer.object.variable);
        Ok(match variable.map(|variable| variable.class) {
            Some(StorageClass::Uniform | StorageClass::PushConstant) => {
                self.specialized().part_of(ty, index)?
            }
            _ => self.specialized().dense_part_of(ty, index)?,
        })
    }

    /// Loads a value of any type.
    pub(crate) fn load_value(
        &mut self,
        state: &mut PathState,
        pointer: SymbolicPointer,
        ty: u32,
        operands: MemoryOperands,
    ) -> Step<SymbolicValue> {
        if !self.specialized().is_scalar(ty)? {
            let count = self.specialized().part_count(ty)?;
            let mut parts = Vec::with_capacity(count);
            for index in 0..count {
                let part_pointer = self.part_of(&pointer, ty, index as u64)?;
                let offset = pointer.offset.wrapping_add(part_pointer.offset);
                let inner = SymbolicPointer { offset, ty: part_pointer.ty, ..pointer };
                parts.push(self.load_value(state, inner, part_pointer.ty, operands)?);
            }
            return Ok(SymbolicValue::Composite(Rc::new(parts)));
        }
        if matches!(self.context.module().type_of_id(ty)?, SpirvType::Handle(_)) {
            // The handle of a storage image is a pointer to its first texel.
            let is_image = is_storage_image(self.context.module(), ty);
            return Ok(if is_image { SymbolicValue::Pointer(pointer) } else { SymbolicValue::Opaque });
        }
        let cell = self.cell_at(pointer, ty)?;
        let Some(class) = self.storage_class(cell.object) else { return self.read_private(state, cell, ty) };
        self.note_access(cell, true, false, false);
        if !self.is_shared(cell) {
            return self.read_private(state, cell, ty);
        }
        let module = self.context.module();
        let number = |id| self.specialized().constant_number(id);
        let access = access_strength(operands, class, module, pointer.coherent, false, number)?;
        let target = self.access_target(cell, class)?;
        self.emit_position(&pointer)?;
        self.shared_read(state, cell, |register| emit::load(register, target, access))
    }

    /// Emits a read and returns its possible values.
    pub(crate) fn shared_read(
        &mut self,
        state: &mut PathState,
        cell: MemoryCell,
        kind: impl Fn(u16) -> litmus::InstructionKind,
    ) -> Step<SymbolicValue> {
        if self.facts.opaque.contains(&cell) {
            self.emit_instruction(kind(SCRATCH_REGISTER))?;
            return Ok(SymbolicValue::Opaque);
        }
        let domain = self.cell_domain(cell)?;
        let single = domain.single_value();
        let register = match single {
            Some(_) => SCRATCH_REGISTER,
            None => self.new_register(state, domain)?,
        };
        self.emit_instruction(kind(register))?;
        Ok(single.map_or(SymbolicValue::Register(register), SymbolicValue::Known))
    }

    /// Returns the values that a cell may hold.
    pub(crate) fn cell_domain(&mut self, cell: MemoryCell) -> Step<NumberDomain> {
        let initial = self.initial_number(cell)?;
        let mut domain = NumberDomain::from_value(initial);
        if let Some(stored) = self.facts.domains.get(&cell) {
            domain.union_with(stored);
        }
        domain.union_with_open(self.context.open_memory(cell), cell);
        Ok(domain)
    }

    /// Returns the initial content of a shared cell.
    pub(crate) fn initial_number(&mut self, cell: MemoryCell) -> Step<u64> {
        Ok(match self.context.initial_value(cell)? {
            Some(value) => value,
            None => {
                // Workgroup memory is assumed to be written before it is read; the grid walk checks this.
                if self.context.is_in_buffer(cell) {
                    self.round.undefined.insert(UndefOrigin::from_cell(cell));
                }
                self.context.assigned_initial(cell)
            }
        })
    }

    /// Stores a value of any type.
    pub(crate) fn store_value(
        &mut self,
        state: &mut PathState,
        pointer: SymbolicPointer,
        value: &SymbolicValue,
        operands: MemoryOperands,
    ) -> Step<()> {
        if self.storage_class(pointer.object).is_none() {
            return self.store_private(state, pointer, pointer.ty, value);
        }
        // All scalars are evaluated first, so that a fork does not repeat an emitted store.
        let mut leaves = Vec::new();
        self.scalar_leaves(pointer, pointer.ty, value, &mut leaves)?;
        let mut numbers = Vec::with_capacity(leaves.len());
        for (at, ty, value) in &leaves {
            let cell = self.cell_at(*at, *ty)?;
            let number = match state.resolve_value(value) {
                SymbolicValue::Opaque => None,
                // Storing an unspecified value is harmless until it is observed.
                undefined @ SymbolicValue::Undefined(_)
                    if !undefined.is_undefined_result() && !self.is_shared(cell) =>
                {
                    self.note_access(cell, false, true, false);
                    self.write_private(state, cell, undefined)?;
                    continue;
                }
                SymbolicValue::Pointer(_) => {
                    return Err(unsupported("a pointer stored to shared memory").into());
                }
                other => Some(self.resolve_number(state, &other, "a stored value")?),
            };
            numbers.push((cell, number, *at));
        }
        let module = self.context.module();
        for (cell, number, at) in numbers {
            let Some(class) = self.storage_class(cell.object) else { continue };
            self.note_access(cell, false, true, false);
            match number {
                Some(number) => self.note_plain_store(cell, &state.domain_of(number)),
                None => {
                    self.round.facts.opaque.insert(cell);
                }
            }
            if !self.is_shared(cell) {
                let value = number.map_or(SymbolicValue::Opaque, SymbolicNumber::to_value);
                self.write_private(state, cell, value)?;
                continue;
            }
            let number_of = |id| self.specialized().constant_number(id);
            let access = access_strength(operands, class, module, pointer.coherent, true, number_of)?;
            let target = self.access_target(cell, class)?;
            self.emit_position(&at)?;
            self.emit_instruction(emit::store(target, number.unwrap_or(SymbolicNumber::Known(0)), access))?;
            state.effects += 1;
            state.writes += 1;
        }
        Ok(())
    }

    /// Returns the scalars of a value with their target cells.
    pub(crate) fn scalar_leaves(
        &mut self,
        pointer: SymbolicPointer,
        ty: u32,
        value: &SymbolicValue,
        out: &mut Vec<(SymbolicPointer, u32, SymbolicValue)>,
    ) -> Step<()> {
        if self.specialized().is_scalar(ty)? {
            if out.len() >= MAX_LEAVES {
                return Err(Problem::Budget { what: "members of a stored value", bound: MAX_LEAVES }.into());
            }
            out.push((SymbolicPointer { ty, ..pointer }, ty, value.clone()));
            return Ok(());
        }
        for index in 0..self.specialized().part_count(ty)? {
            let part_pointer = self.part_of(&pointer, ty, index as u64)?;
            let inner = SymbolicPointer {
                offset: pointer.offset.wrapping_add(part_pointer.offset),
                ty: part_pointer.ty,
                ..pointer
            };
            let value = self.extract_part(value, index)?;
            self.scalar_leaves(inner, part_pointer.ty, &value, out)?;
        }
        Ok(())
    }

    pub(crate) fn cell_at(&mut self, pointer: SymbolicPointer, ty: u32) -> Step<MemoryCell> {
        let bytes = u32::try_from(self.specialized().size_of(ty)?).unwrap_or(u32::MAX);
        Ok(match pointer.variable_offset {
            Some(_) => MemoryCell::at_variable_offset(pointer.object, bytes),
            None => MemoryCell { object: pointer.object, offset: pointer.offset, bytes },
        })
    }

    pub fn is_shared(&self, cell: MemoryCell) -> bool {
        self.context.keep_all
            || self.context.open_memory(cell).is_some()
            || self.facts.accesses.get(&cell).is_some_and(|touch| touch.is_shared())
    }

    pub(crate) fn note_access(&mut self, cell: MemoryCell, reads: bool, writes: bool, ordered: bool) {
        let me = 1 << self.thread;
        let touch = self.round.facts.accesses.entry(cell).or_default();
        touch.readers |= if reads { me } else { 0 };
        touch.writers |= if writes { me } else { 0 };
        touch.has_ordering_access |= ordered;
    }

    pub(crate) fn note_stored(&mut self, cell: MemoryCell, domain: &NumberDomain) {
        let narrow = mask(cell.bytes.saturating_mul(8));
        let domain = domain.map_values(&NumberDomain::from_value(0), |value, _| value & narrow);
        self.round.facts.domains.entry(cell).or_insert_with(NumberDomain::empty).union_with(&domain);
    }

    /// Records the values of a plain store, which are reached without a read-modify-write.
    pub(crate) fn note_plain_store(&mut self, cell: MemoryCell, domain: &NumberDomain) {
        self.note_stored(cell, domain);
        let known = self.round.facts.generations.entry(cell).or_default();
        known.extend(domain.finite_values().into_iter().flat_map(ValueSet::iter).map(|value| (*value, 0)));
    }

    /// Records the values of a read-modify-write, up to the possible number of them.
    pub(crate) fn note_update(
        &mut self,
        state: &mut PathState,
        cell: MemoryCell,
        old: &NumberDomain,
        operand: &NumberDomain,
        computes: bool,
        computed: impl Fn(u64, u64) -> u64,
    ) {
        if !computes {
            return self.note_plain_store(cell, operand);
        }
        let updates = Rc::make_mut(&mut state.updates).entry(cell).or_default();
        *updates += 1;
        let mine = self.round.facts.updates.entry(cell).or_default().entry(self.thread).or_default();
        *mine = (*mine).max(*updates);
        let Some(values) = old.finite_values() else { return self.note_stored(cell, &NumberDomain::Any) };
        let bound = self.facts.updates_of(cell);
        for value in values.iter() {
            let generation = self.facts.min_generation(cell, *value) + 1;
            if generation > bound {
                continue;
            }
            let stored = NumberDomain::from_value(*value).map_values(operand, &computed);
            self.note_stored(cell, &stored);
            for stored in stored.finite_values().into_iter().flat_map(ValueSet::iter) {
                let known = self.round.facts.generations.entry(cell).or_default();
                let known = known.entry(*stored).or_insert(generation);
                *known = (*known).min(generation);
            }
        }
    }

    /// Returns the values that a read-modify-write may read.
    ///
    /// They are bounded by the read-modify-writes of other threads plus the earlier ones of this path.
    pub(crate) fn values_before_update(
        &self,
        state: &PathState,
        cell: MemoryCell,
        domain: &NumberDomain,
    ) -> NumberDomain {
        let Some(by_thread) = self.facts.updates.get(&cell) else { return domain.clone() };
        let others: u32 =
            by_thread.iter().filter(|(thread, _)| **thread != self.thread).map(|(_, count)| *count).sum();
        let before = others + state.updates.get(&cell).copied().unwrap_or(0);
        domain.filter_values(|value| self.facts.min_generation(cell, value) <= before)
    }

    /// Stores a value to private memory.
    pub(crate) fn store_private(
        &mut self,
        state: &mut PathState,
        pointer: SymbolicPointer,
        ty: u32,
        value: &SymbolicValue,
    ) -> Step<()> {
        let mut leaves = Vec::new();
        self.scalar_leaves(pointer, ty, value, &mut leaves)?;
        for (at, ty, value) in leaves {
            let cell = self.cell_at(at, ty)?;
            self.write_private(state, cell, value)?;
        }
        Ok(())
    }

    pub(crate) fn write_private(
        &mut self,
        state: &mut PathState,
        cell: MemoryCell,
        value: SymbolicValue,
    ) -> Step<()> {
        self.check_overlap(state, cell)?;
        Rc::make_mut(&mut state.memory).insert((cell.object, cell.offset), (cell.bytes, value));
        Ok(())
    }

    pub(crate) fn check_overlap(&mut self, state: &PathState, cell: MemoryCell) -> Step<()> {
        let end = cell.offset.saturating_add(u64::from(cell.bytes));
        let first = (cell.object, cell.offset.saturating_sub(16));
        for ((_, offset), (bytes, _)) in state.memory.range(first..(cell.object, end)) {
            let overlaps = offset.saturating_add(u64::from(*bytes)) > cell.offset;
            if overlaps && (*offset, *bytes) != (cell.offset, cell.bytes) {
                let name = self.context.module().display_name(cell.object.variable);
                return Err(Problem::MixedSize { name, first: cell.bytes, second: *bytes }.into());
            }
        }
        Ok(())
    }

    pub(crate) fn read_private(
        &mut self,
        state: &PathState,
        cell: MemoryCell,
        ty: u32,
    ) -> Step<SymbolicValue> {
        self.check_overlap(state, cell)?;
        if let Some((_, value)) = state.memory.get(&(cell.object, cell.offset)) {
            return Ok(state.resolve_value(value));
        }
        let module = self.context.module();
        let object = cell.object;
        let Some(variable) = module.variables.get(&object.variable).copied() else {
            // A function variable.
            return Ok(SymbolicValue::Undefined(UndefOrigin::Memory(object, cell.offset, Some(self.thread))));
        };
        if variable.class == StorageClass::Input || self.context.is_built_in(object.variable) {
            return self.read_input(object, variable.ty, cell.offset);
        }
        if variable.class == StorageClass::PushConstant
            && let Some(value) = self.context.push_constant(cell.offset)
        {
            return Ok(SymbolicValue::Known(value & mask(self.specialized().scalar_bits(ty)?)));
        }
        if let Some(value) = self.context.initial_value(cell)? {
            return Ok(SymbolicValue::Known(value));
        }
        let mine = matches!(variable.class, StorageClass::Private | StorageClass::Function);
        Ok(SymbolicValue::Undefined(UndefOrigin::Memory(object, cell.offset, mine.then_some(self.thread))))
    }

    pub(crate) fn read_input(&mut self, object: ObjectId, ty: u32, offset: u64) -> Step<SymbolicValue> {
        let module = self.context.module();
        let spec = self.specialized();
        let decorations = module.decorations_of(object.variable);
        if let Some(built_in) = decorations.built_in {
            let value = self.built_in_value(built_in)?;
            return Ok(scalar_at(spec, &value, ty, offset)?);
        }
        if let SpirvType::Struct { members } = module.type_of_id(ty)?
            && let Some((index, at)) = spec.part_at(ty, offset, members.len() as u64)?
            && let Some(decorations) = module.member_decorations.get(&(ty, index as u32))
            && let Some(built_in) = decorations.built_in
        {
            let value = self.built_in_value(built_in)?;
            return Ok(scalar_at(spec, &value, at.ty, offset - at.offset)?);
        }
        if self.context.stage.has_external_inputs() {
            return Ok(self.given_input(decorations.location, ty, offset)?);
        }
        Ok(SymbolicValue::Undefined(UndefOrigin::Memory(object, offset, Some(self.thread))))
    }

    /// Returns a vertex or fragment input; opaque if it is not given.
    fn given_input(&self, location: Option<u32>, ty: u32, offset: u64) -> Result<SymbolicValue, Problem> {
        let spec = self.specialized();
        let bytes = location.and_then(|location| self.context.stage_inputs.get(&location));
        let width = (spec.scalar_bits(ty)? / 8) as usize;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let size = spec.size_of(ty)?;
        let part = bytes.and_then(|bytes| invocation_share(bytes, size, self.identity.workgroup_index));
        let part = part.and_then(|part| part.get(from..from.checked_add(width)?));
        let number = |part: &[u8]| part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        Ok(part.map_or(SymbolicValue::Opaque, |part| SymbolicValue::Known(number(part))))
    }

    /// Returns a built-in input.
    fn built_in_value(&self, built_in: BuiltIn) -> Result<SymbolicValue, Problem> {
        let &LiftContext { stage, grid, local_size, subgroup_size, .. } = self.context;
        let shape = LaunchShape { stage, grid, local_size, subgroup_size };
        let components = shape.built_in_components(built_in, self.identity);
        let components = components.ok_or_else(|| unsupported(format!("built-in {built_in:?}")))?;
        let part = |number: &Option<u32>| {
            number.map_or(SymbolicValue::Opaque, |number| SymbolicValue::Known(number.into()))
        };
        Ok(match &components[..] {
            [] => SymbolicValue::Opaque,
            [one] => part(one),
            parts => SymbolicValue::Composite(Rc::new(parts.iter().map(part).collect())),
        })
    }
}
