//! Access chains, loads and stores, with the race check of each access.

use arithmetic::mask;
use litmus::{Access, Scope, StorageClass};
use rspirv::spirv::{Op, StorageClass as GlobalClass};
use spirv_reader::{MemoryOperands, ShaderLanguage, SpirvType};

use super::access_recorder::RecordedAccess;
use super::race_check::{
    AccessOrder, AccessRecord, AccessSite, DefinedCollisions, InvocationNumbering, MemoryAccessKind,
    RaceCheck, SelfVisibleWrites,
};
use super::shadow::{ShadowMemory, WORD_BYTES};
use entry_point::order::access_strength;
use entry_point::{BufferRobustness, FindingCause, InvocationId, Problem, malformed, unsupported};

use super::happens_before::{ClassMap, Epoch, HappensBeforeView};
use super::memory::{address_of_byte, resolve_address};
use super::program::{DecodedInstruction, DecodedProgram};
use super::scalar_kind::ScalarKind;
use super::state::{Interpreter, Invocation, InvocationCtx, WORKGROUP_TAG, WalkSetup, WorkgroupState};
use super::step::Step;
use super::value::{
    ConcretePointer, ConcreteValue, INPUT_MASK, NULL_OBJECT, OPAQUE, PRIVATE_TAG, SITE_MASK, Taint,
};

/// The end of the description of an access through an address that no buffer has.
pub(crate) const NO_BUFFER: &str = "through an address that points to no buffer";
/// Returns a pointer to a part of the pointee.
pub(super) fn part_pointer(
    program: &DecodedProgram<'_>,
    pointer: &ConcretePointer,
    index: u64,
) -> Result<ConcretePointer, Problem> {
    let mut inner = *pointer;
    // Only a pointer to an array element has a stride, by which `PtrAccessChain` steps.
    inner.stride = 0;
    match program.module.type_of_id(pointer.ty)? {
        SpirvType::Vector { element, count } => {
            let step = match pointer.matrix_stride {
                // A column of a row-major matrix.
                stride if stride > 0 && pointer.row_major => u64::from(stride),
                _ => program.type_size(*element),
            };
            inner.is_out_of_bounds |= index >= u64::from(*count);
            inner.offset = pointer.offset.wrapping_add(step.wrapping_mul(index));
            inner.ty = *element;
            inner.matrix_stride = 0;
        }
        SpirvType::Matrix { column, count } => {
            let Some(SpirvType::Vector { element, count: rows }) = program.module.types.get(column) else {
                return Err(malformed("a matrix whose columns are not vectors"));
            };
            // A row-major matrix is stored by rows: neighbouring columns lie one number apart, and
            // the numbers of a column one stride.
            let bytes = program.type_size(*element) as u32;
            let own = if pointer.row_major { *count } else { *rows } * bytes;
            let stride = if pointer.matrix_stride > 0 { pointer.matrix_stride } else { own };
            let step = if pointer.row_major { bytes } else { stride };
            inner.is_out_of_bounds |= index >= u64::from(*count);
            inner.offset = pointer.offset.wrapping_add(u64::from(step).wrapping_mul(index));
            inner.ty = *column;
            inner.matrix_stride = stride;
        }
        SpirvType::Array { .. } | SpirvType::RuntimeArray { .. } => {
            let part = program.specialized.part_of(pointer.ty, 0)?;
            inner.is_out_of_bounds |= part.length.is_some_and(|length| index >= length);
            inner.stride = part.stride.unwrap_or(0);
            inner.offset = pointer.offset.wrapping_add(inner.stride.wrapping_mul(index));
            inner.ty = part.ty;
        }
        SpirvType::Struct { .. } => {
            let part = program.specialized.part_of(pointer.ty, index)?;
            inner.offset = pointer.offset.wrapping_add(part.offset);
            inner.ty = part.ty;
            if let Some(known) = program.module.member_decorations.get(&(pointer.ty, index as u32)) {
                inner.coherent |= known.coherent || known.volatile;
                if let Some(stride) = known.matrix_stride.filter(|stride| *stride > 0) {
                    (inner.matrix_stride, inner.row_major) = (stride as u32, known.row_major);
                }
            }
        }
        _ => return Err(malformed("an access chain into a type without members")),
    }
    Ok(inner)
}

/// Returns the access kind of a plain load or store of a class, coherent or not.
pub(super) fn plain_access_kind(
    program: &DecodedProgram<'_>,
    class: StorageClass,
    coherent: bool,
    writes: bool,
    operands: MemoryOperands,
) -> Result<MemoryAccessKind, Problem> {
    let number = |id| program.specialized.constant_number(id);
    let access = access_strength(operands, class, program.module, coherent, writes, number)?;
    let access_kind = MemoryAccessKind {
        writes,
        is_atomic: false,
        is_wide: false,
        is_private: access == Access::Private,
        is_published: false,
        scope: Scope::Device,
        operation: 0,
    };
    Ok(match access {
        Access::Coherent { scope } => MemoryAccessKind { is_published: true, scope, ..access_kind },
        Access::Private | Access::NonPrivate | Access::Atomic { .. } => access_kind,
    })
}

/// A race or an unpublished read that an access shows.
#[derive(Clone, Debug)]
pub(super) struct AccessConflict {
    pub earlier: AccessRecord,
    pub later: AccessRecord,
    pub order: AccessOrder,
    pub word: u64,
    pub class: StorageClass,
    /// The taint of the stored value, if memory already held it.
    pub repeated_store: Option<Taint>,
}

/// The parts of a race check that all accesses of an invocation between two synchronizations share.
pub(super) struct Accessor<'v> {
    epoch: Epoch,
    subgroup: u32,
    last_release: u32,
    views: &'v ClassMap<HappensBeforeView>,
    barrier_epochs: &'v ClassMap<u32>,
    has_fine_ordering: bool,
    numbering: InvocationNumbering,
    /// The collisions that the language defines in memory that all workgroups share.
    collisions: DefinedCollisions,
}

impl<'v> Accessor<'v> {
    pub fn new(
        me: &Invocation,
        views: &'v ClassMap<HappensBeforeView>,
        barrier_epochs: &'v ClassMap<u32>,
        setup: &WalkSetup,
    ) -> Accessor<'v> {
        let (invocation, time, workgroup) = (me.number, me.current_time(), me.identity.workgroup_index);
        let epoch =
            Epoch { invocation, workgroup, time, barrier_epoch: 0, subgroup_start: invocation - me.lane };
        let (subgroup, last_release) = (me.subgroup, me.last_release);
        let WalkSetup { has_fine_ordering, collisions, .. } = *setup;
        let numbering = me.numbering;
        Accessor {
            epoch,
            subgroup,
            last_release,
            views,
            barrier_epochs,
            has_fine_ordering,
            numbering,
            collisions,
        }
    }

    /// Checks an access at every word and records it. Returns true if it is unordered with a non-commuting atomic,
    /// and the first conflict.
    ///
    /// `seen` collects the writes that the access makes visible by itself.
    pub fn record_access<'s>(
        &self,
        shadow: &mut ShadowMemory,
        (class, offset, bytes): (StorageClass, u64, u32),
        (site, repeated_store): (AccessSite, Option<Taint>),
        self_visible: impl Fn(u64) -> Option<&'s SelfVisibleWrites>,
        mut seen: Option<&mut Vec<(u64, (u32, u32))>>,
    ) -> (bool, Option<Box<AccessConflict>>) {
        let epoch = Epoch { barrier_epoch: self.barrier_epochs[class], ..self.epoch };
        let mut collisions = self.collisions;
        collisions.of_stores &= class != StorageClass::Workgroup;
        collisions.of_equal_stores = collisions.of_stores && repeated_store.is_some();
        let changes = site.kind.writes && repeated_store.is_none();
        let end = offset + u64::from(bytes);
        let (mut unordered, mut conflict) = (false, None);
        for word in offset / WORD_BYTES..end.div_ceil(WORD_BYTES) {
            // The bytes of the word that the access covers.
            let first = offset.max(word * WORD_BYTES) - word * WORD_BYTES;
            let last = end.min((word + 1) * WORD_BYTES) - word * WORD_BYTES;
            let covered = (mask(last as u32) & !mask(first as u32)) as u8;
            let record =
                AccessRecord { epoch, subgroup: self.subgroup, site: AccessSite { mask: covered, ..site } };
            let race_check = RaceCheck {
                view: &self.views[class],
                self_visible: self_visible(word),
                has_fine_ordering: self.has_fine_ordering,
                last_release: self.last_release,
                numbering: self.numbering,
                collisions,
            };
            if let Some(seen) = &mut seen {
                let writes = shadow.cell_mut(word).self_visible_writes(&record, &race_check);
                seen.extend(writes.map(|write| (word, write)));
            }
            let result = shadow.record_access(word, &record, changes, &race_check);
            unordered |= result.is_unordered;
            // One report for each access is enough.
            if let (Some(found), None) = (result.conflict, &conflict) {
                let (earlier, order) = *found;
                let found = AccessConflict { earlier, later: record, order, word, class, repeated_store };
                conflict = Some(Box::new(found));
            }
        }
        (unordered, conflict)
    }
}

impl Interpreter<'_> {
    /// Returns the value of an id that is a pointer.
    pub(super) fn pointer_of_id(&self, ctx: &InvocationCtx<'_>, id: u32) -> Step<ConcretePointer> {
        match self.single_slot_value(ctx, id)? {
            ConcreteValue::Pointer(pointer) => Ok(*pointer),
            ConcreteValue::Bits(..) => Err(unsupported("a pointer converted from an integer").into()),
            _ => Err(unsupported("a pointer without a unique object").into()),
        }
    }

    /// Returns the element stride of the array that a pointer of this id points into.
    pub(super) fn stride_of(&self, id: u32, pointer: &ConcretePointer) -> i64 {
        let program = self.program;
        let declared = program.module.decorations.get(&program.type_of(id));
        let declared = declared.and_then(|decorations| decorations.stride);
        let stride = declared.or((pointer.stride > 0).then_some(pointer.stride));
        stride.unwrap_or_else(|| program.type_size(pointer.ty)) as i64
    }

    /// Evaluates an access chain.
    pub(super) fn access_chain(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        base: u32,
        element: Option<u32>,
        indices: &[u32],
    ) -> Step<ConcreteValue> {
        let program = self.program;
        let mut pointer = self.pointer_of_id(ctx, base)?;
        if let Some(element) = element {
            let stride = self.stride_of(base, &pointer) as u64;
            let (index, taint) = self.chain_index(ctx, element)?;
            pointer.taint |= taint;
            pointer.offset = pointer.offset.wrapping_add(index.wrapping_mul(stride));
            pointer.stride = stride;
        }
        for id in indices {
            let (index, taint) = self.chain_index(ctx, *id)?;
            pointer.taint |= taint;
            // An index into an array of descriptors selects another object.
            if let Some(shared) = self.select_descriptor(&pointer, index)? {
                pointer = shared;
                continue;
            }
            pointer = part_pointer(program, &pointer, index)?;
        }
        Ok(ConcreteValue::Pointer(pointer))
    }

    /// Evaluates an index as a signed, wrapping number. An undefined index is a finding only when the access
    /// is observed.
    fn chain_index(&mut self, ctx: &mut InvocationCtx<'_>, id: u32) -> Step<(u64, Taint)> {
        let bits = self.program.number_bits(id);
        let ConcreteValue::Bits(index, taint) = *self.single_slot_value(ctx, id)? else {
            return Err(malformed("an index that is not a number").into());
        };
        if taint & SITE_MASK == 0 {
            self.check_control_dependence(ctx, taint, "an index")?;
        }
        Ok((arithmetic::sign_extend(index, bits) as u64, taint & (SITE_MASK | INPUT_MASK)))
    }

    /// Returns the scalar kind of a type and its size in memory.
    pub(super) fn scalar_layout(&self, ty: u32) -> Option<(ScalarKind, u32)> {
        let (kind, bits, count) = self.program.number_layout(ty)?;
        count.is_none().then(|| (kind, bits.div_ceil(8)))
    }

    /// Loads a value of any type.
    pub(super) fn load_value(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        operands: MemoryOperands,
    ) -> Step<ConcreteValue> {
        if let Some((kind, bytes)) = self.scalar_layout(pointer.ty) {
            return self.load_scalar(ctx, pointer, kind, bytes, operands);
        }
        match self.program.module.type_of_id(pointer.ty)? {
            SpirvType::Handle(Op::TypeImage | Op::TypeSampledImage) => {
                let sampler = self.object_mut(ctx, pointer.object).and_then(|image| image.sampler);
                return Ok(ConcreteValue::Image(pointer.object, sampler));
            }
            SpirvType::Handle(_) => {
                let sampler = self.object_mut(ctx, pointer.object).and_then(|sampler| sampler.sampler);
                return Ok(sampler.map_or(ConcreteValue::NoBits(OPAQUE), ConcreteValue::Sampler));
            }
            _ => {}
        }
        let count = self.program.specialized.part_count(pointer.ty)?;
        let parts = (0..count).map(|index| {
            let inner = part_pointer(self.program, pointer, index as u64)?;
            self.load_value(ctx, &inner, operands)
        });
        Ok(ConcreteValue::from_components(parts.collect::<Step<Vec<_>>>()?))
    }

    /// Loads a vector whose components have separate slots.
    pub(super) fn load_vector(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        pointer: &ConcretePointer,
        operands: MemoryOperands,
    ) -> Step<()> {
        for (index, slot) in (0..).zip(inst.result.as_slice()) {
            let inner = part_pointer(self.program, pointer, index)?;
            let value = self.load_value(ctx, &inner, operands)?;
            if let Some(place) = ctx.frame_mut()?.values.get_mut(*slot as usize) {
                *place = value;
            }
        }
        ctx.frame_mut()?.at += 1;
        Ok(())
    }

    /// Stores a vector whose components have separate slots.
    pub(super) fn store_vector(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        id: u32,
        pointer: &ConcretePointer,
        operands: MemoryOperands,
    ) -> Step<()> {
        for (index, slot) in (0..).zip(self.program.slots_of(id).as_slice()) {
            let inner = part_pointer(self.program, pointer, index)?;
            let value =
                self.slot_value(ctx, *slot).cloned().ok_or_else(|| malformed("a vector without a value"))?;
            self.store_value(ctx, &inner, &value, operands)?;
        }
        Ok(())
    }

    fn load_scalar(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        kind: ScalarKind,
        bytes: u32,
        operands: MemoryOperands,
    ) -> Step<ConcreteValue> {
        self.note_inputs(ctx, pointer.taint);
        let Some(object) = self.object_mut(ctx, pointer.object) else {
            self.check_control_dependence(ctx, pointer.taint & !SITE_MASK, "an address")?;
            let message = format!("a read {NO_BUFFER}");
            let undefined_taint = self.undefined_result(ctx, FindingCause::NoBuffer, message, Some(false));
            let taint = pointer.taint & SITE_MASK | undefined_taint;
            return Ok(self.zero_value(pointer.ty, kind, taint));
        };
        if pointer.taint & SITE_MASK != 0 {
            // The address itself is undefined. The result carries the site, which is reported once
            // the result is observed.
            return Ok(self.zero_value(pointer.ty, kind, pointer.taint));
        }
        if pointer.is_out_of_bounds || !object.contains_range(pointer.offset, bytes) {
            if let Some(taint) = self.robust_taint(ctx, pointer) {
                return Ok(self.zero_value(pointer.ty, kind, taint));
            }
            let Some(object) = self.object_mut(ctx, pointer.object) else {
                return Ok(self.zero_value(pointer.ty, kind, 0));
            };
            let given = object.has_known_length || object.is_beyond_any_object(pointer, bytes);
            // What is read depends on the contents, as far as these are assumed.
            let contents = object.taint.last().copied().unwrap_or_default();
            if !given {
                self.note_exceeded_buffer(ctx, pointer, bytes);
            }
            // A buffer of assumed length has no end.
            let taint = match self.undefined_site_taint(ctx) {
                _ if !given => contents,
                Some(taint) => taint,
                None => {
                    let (message, _) = self.describe_out_of_bounds(ctx, "a read", pointer);
                    self.undefined_result(ctx, FindingCause::BeyondEnd, message, Some(false))
                }
            };
            return Ok(self.zero_value(pointer.ty, kind, taint));
        }
        let (bits, mut taint) = object.read_scalar(pointer.offset, bytes);
        let (class, coherent) = (object.class, object.coherent);
        if let Some(class) = class {
            let access_kind = self.plain_access_kind(class, coherent || pointer.coherent, false, operands)?;
            self.check_access(ctx, pointer, bytes, class, access_kind, true);
            taint |= pointer.taint;
        }
        Ok(match kind {
            ScalarKind::Address => {
                ConcreteValue::Pointer(self.pointer_from_address(bits, self.pointee_type(pointer.ty), taint))
            }
            ScalarKind::Bool => ConcreteValue::Bits(u64::from(bits != 0), taint),
            _ => ConcreteValue::Bits(bits, taint),
        })
    }

    fn zero_value(&self, ty: u32, kind: ScalarKind, taint: Taint) -> ConcreteValue {
        match kind {
            ScalarKind::Address => {
                ConcreteValue::Pointer(ConcretePointer::null_pointer(self.pointee_type(ty), taint))
            }
            _ => ConcreteValue::Bits(0, taint),
        }
    }

    fn pointee_type(&self, ty: u32) -> u32 {
        self.program.pointee_of(ty).map_or(0, |to| to.1)
    }

    /// Converts an address to a pointer.
    pub(super) fn pointer_from_address(&self, number: u64, ty: u32, taint: Taint) -> ConcretePointer {
        match resolve_address(number) {
            (Some(object), offset) if (object as usize) < self.objects.len() => {
                ConcretePointer { offset, taint, ..ConcretePointer::at_object_start(object, ty) }
            }
            // An address of no object keeps its number, so that it converts back.
            _ => {
                ConcretePointer { offset: number, taint, ..ConcretePointer::at_object_start(NULL_OBJECT, ty) }
            }
        }
    }

    /// Converts a pointer to its address.
    pub(super) fn address_of(&self, pointer: &ConcretePointer) -> u64 {
        if pointer.object == NULL_OBJECT {
            return pointer.offset;
        }
        address_of_byte(pointer.object, pointer.offset)
    }

    /// Stores a value of any type.
    pub(super) fn store_value(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        value: &ConcreteValue,
        operands: MemoryOperands,
    ) -> Step<()> {
        if let Some((_, bytes)) = self.scalar_layout(pointer.ty) {
            return self.store_scalar(ctx, pointer, value, bytes, operands);
        }
        for index in 0..self.program.specialized.part_count(pointer.ty)? {
            let inner = part_pointer(self.program, pointer, index as u64)?;
            let element = self.extract_component(value, index)?;
            self.store_value(ctx, &inner, &element, operands)?;
        }
        Ok(())
    }

    pub(super) fn extract_component(
        &self,
        value: &ConcreteValue,
        index: usize,
    ) -> Result<ConcreteValue, Problem> {
        match value {
            ConcreteValue::Composite(parts) => {
                parts.get(index).cloned().ok_or_else(|| malformed("an index beyond its composite"))
            }
            ConcreteValue::NoBits(taint) => Ok(ConcreteValue::NoBits(*taint)),
            _ => Err(malformed("a member of a type without members")),
        }
    }

    fn store_scalar(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        value: &ConcreteValue,
        bytes: u32,
        operands: MemoryOperands,
    ) -> Step<()> {
        let (bits, taint) = match value {
            ConcreteValue::Bits(bits, taint) => (*bits, *taint),
            ConcreteValue::Pointer(to) => (self.address_of(to), to.taint),
            other => (0, other.combined_taint()),
        };
        // In memory that others see, the address and the stored value are observed.
        if pointer.object & PRIVATE_TAG == 0 {
            self.check_control_dependence(ctx, pointer.taint, "an address")?;
            self.observe_undefined(taint);
        }
        let probes = self.is_probing();
        if !self.check_bounds(ctx, pointer, bytes, "a write")? {
            return Ok(());
        }
        let Some(object) = self.object_mut(ctx, pointer.object) else { return Ok(()) };
        let (class, coherent) = (object.class, object.coherent);
        let changed = object.read_scalar(pointer.offset, bytes) != (bits, taint);
        if class.is_some_and(|class| class != StorageClass::Workgroup) {
            self.observe_unwritten(ctx, taint);
        }
        let Some(object) = self.object_mut(ctx, pointer.object) else { return Ok(()) };
        // A probed iteration of a loop that would change shared memory does not spin; nothing is
        // written.
        if class.is_some() && changed && probes {
            self.changes += 1;
            return Ok(());
        }
        let is_equal = object.store_plain(pointer.offset, bytes, bits, taint);
        if let Some(class) = class {
            self.changes += u64::from(changed);
            let access_kind = self.plain_access_kind(class, coherent || pointer.coherent, true, operands)?;
            self.repeated_store = is_equal.then_some(taint);
            self.check_access(ctx, pointer, bytes, class, access_kind, false);
            self.repeated_store = None;
        }
        Ok(())
    }

    /// Reports a write or an atomic (`access`) that no object contains. Returns true if one contains it.
    pub(super) fn check_bounds(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        bytes: u32,
        access: &str,
    ) -> Step<bool> {
        let is_wgsl = self.program.module.language == Some(ShaderLanguage::Wgsl);
        match self.object_mut(ctx, pointer.object) {
            None => self.report_here(ctx, FindingCause::NoBuffer, format!("{access} {NO_BUFFER}")),
            Some(object) if !pointer.is_out_of_bounds && object.contains_range(pointer.offset, bytes) => {
                return Ok(true);
            }
            Some(object) if object.is_robust(pointer, is_wgsl) => {
                if pointer.is_out_of_bounds || object.robustness == BufferRobustness::WithinBuffer {
                    let name = &object.name;
                    let what = format!(
                        "{access} beyond the end of `{name}`, which robustBufferAccess may move to any of its bytes"
                    );
                    return Err(unsupported(what).into());
                }
            }
            Some(object) if object.has_known_length || object.is_beyond_any_object(pointer, bytes) => {
                let (message, element) = self.describe_out_of_bounds(ctx, access, pointer);
                self.report_element(ctx, FindingCause::BeyondEnd, message, element);
            }
            Some(_) => self.note_exceeded_buffer(ctx, pointer, bytes),
        }
        Ok(false)
    }

    /// Returns the taint of a load that its object does not contain: zero, or unknown bytes; `None` if it is not defined.
    ///
    /// Ranges are rounded up to the largest `robustStorageBufferAccessSizeAlignment` or `robustUniformBufferAccessSizeAlignment`.
    fn robust_taint(&mut self, ctx: &mut InvocationCtx<'_>, pointer: &ConcretePointer) -> Option<Taint> {
        let program = self.program;
        let is_wgsl = program.module.language == Some(ShaderLanguage::Wgsl);
        let object =
            self.object_mut(ctx, pointer.object).filter(|object| object.is_robust(pointer, is_wgsl))?;
        let declared = program.module.variables.get(&object.variable).map(|variable| variable.class);
        let alignment = if declared == Some(GlobalClass::Uniform) { 256 } else { 4 };
        let end = (object.bytes.len() as u64).next_multiple_of(alignment);
        let is_zero = object.robustness == BufferRobustness::Discarded
            && !pointer.is_out_of_bounds
            && pointer.offset >= end;
        Some(pointer.taint | if is_zero { 0 } else { OPAQUE })
    }

    /// Returns the access kind of a plain load or store.
    pub(super) fn plain_access_kind(
        &self,
        class: StorageClass,
        coherent: bool,
        writes: bool,
        operands: MemoryOperands,
    ) -> Result<MemoryAccessKind, Problem> {
        plain_access_kind(self.program, class, coherent, writes, operands)
    }

    /// Checks an access for races at every word and reports the first. Returns true if it is unordered with a
    /// non-commuting atomic.
    pub(super) fn check_access(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        bytes: u32,
        class: StorageClass,
        access_kind: MemoryAccessKind,
        reads: bool,
    ) -> bool {
        self.accesses += 1;
        if let Some(polled) = &mut self.spin_reads {
            polled.push((access_kind.is_atomic, pointer.object, pointer.offset));
        }
        let me = &ctx.workgroup.invocations[ctx.index];
        let (instruction, identity) = (self.current_site(me), me.identity);
        if let Some(accessed) = self.accessed.as_mut().filter(|_| pointer.object & WORKGROUP_TAG == 0) {
            let (object, start, writes) = (pointer.object, pointer.offset, access_kind.writes);
            let (site, invocation) = (instruction, identity);
            accessed.record(RecordedAccess { object, start, bytes, reads, writes, site, invocation });
            accessed.address_taint |= pointer.taint & INPUT_MASK;
        }
        if self.is_probing() {
            return false;
        }
        let place = self.location_key(ctx, pointer.object);
        let WorkgroupState { invocations, objects, barrier_epochs, .. } = &mut *ctx.workgroup;
        let me = &invocations[ctx.index];
        let calls = me.frames.last().map_or(0, |frame| frame.calls);
        let object = match pointer.object & WORKGROUP_TAG {
            0 => self.objects.get_mut(pointer.object as usize),
            _ => objects.get_mut((pointer.object & !WORKGROUP_TAG) as usize),
        };
        let Some(object) = object else { return false };
        let accessor = Accessor::new(me, &me.views, barrier_epochs, self.setup);
        let mut seen = Vec::new();
        let sees = self.setup.has_mixed_visibility && access_kind.is_published && reads;
        let site = AccessSite { instruction, calls, kind: access_kind, mask: 0 };
        let (unordered, conflict) = accessor.record_access(
            &mut object.shadow,
            (class, pointer.offset, bytes),
            (site, self.repeated_store),
            |word| me.self_visible.get(&(place.0, place.1, word)),
            sees.then_some(&mut seen),
        );
        // Each write gets its own time, so that others may see it without the next one.
        if self.setup.has_mixed_visibility && access_kind.writes {
            invocations[ctx.index].clock += 1;
        }
        for (word, (invocation, time)) in seen {
            let known = &mut invocations[ctx.index].self_visible;
            let known = known.entry((place.0, place.1, word)).or_default().entry(invocation).or_default();
            *known = time.max(*known);
        }
        if let Some(conflict) = conflict {
            self.report_conflict(ctx, pointer, &conflict);
        }
        unordered
    }

    /// Reports the race of an access with an earlier one.
    pub(super) fn invocation_id(&self, number: u32) -> InvocationId {
        let count: u32 = self.setup.local_size.iter().product();
        let (index, local_index) = (number / count.max(1), number % count.max(1));
        let [x, y, _] = self.setup.local_size;
        InvocationId {
            workgroup: self.setup.workgroup_position(index),
            local: [local_index % x, local_index / x % y, local_index / x / y],
            workgroup_index: index,
            local_index,
            stage: self.setup.stage,
        }
    }

    /// Selects an element of a descriptor array.
    fn select_descriptor(&mut self, pointer: &ConcretePointer, index: u64) -> Step<Option<ConcretePointer>> {
        if self.descriptors.is_empty() {
            return Ok(None);
        }
        let Some(elements) = self.descriptors.get(&pointer.object) else { return Ok(None) };
        if pointer.ty != elements.ty {
            return Ok(None);
        }
        if elements.has_assumed_length {
            let name = self.objects.get(pointer.object as usize).map_or("", |holder| holder.name.as_str());
            let count = elements.objects.len();
            self.notes.insert(format!("the number of descriptors of `{name}` is not given: {count} assumed"));
        }
        let is_given = u32::try_from(index).is_ok_and(|index| elements.given.contains(&index));
        if !elements.given.is_empty() && !is_given {
            let name = self.objects.get(pointer.object as usize).map_or("", |holder| holder.name.as_str());
            return Err(unsupported(format!("descriptor {index} of `{name}`, which the inputs lack")).into());
        }
        let object = elements.objects.get(index as usize).copied();
        let object = object.ok_or_else(|| {
            unsupported(format!("descriptor {index} of an array whose number of descriptors is not given"))
        })?;
        Ok(Some(ConcretePointer {
            coherent: pointer.coherent,
            ..ConcretePointer::at_object_start(object, elements.element)
        }))
    }
}
