//! Chains of pointers, loads and stores.

use arithmetic::mask;
use litmus::{Access, Scope, StorageClass};
use rspirv::spirv::Op;

use crate::error::{Problem, malformed, unsupported};
use crate::lift::{FindingKind, Identity};
use crate::order::MemoryOperands;

use super::clock::{Moment, class_index};
use super::machine::{Here, Machine, SHARED, Step, Workgroup};
use super::memory::{Object, address, place};
use super::program::{Inst, Kind, Layout, Program};
use super::shadow::{Manner, Record, Sight, Way};
use super::value::{LOCAL, NOWHERE, Pointer, SITES, Taint, Value};

/// Records at the words of one object at most.
pub(super) const WORD: u64 = 4;

/// The part of what a pointer points to.
pub(super) fn part(program: &Program<'_>, pointer: &Pointer, index: u64) -> Result<Pointer, Problem> {
    let mut inner = *pointer;
    inner.stride = 0;
    match program.layout(pointer.ty)? {
        Layout::Vector { element, count, bits, .. } => {
            let step = match pointer.matrix_stride {
                // A column of a matrix that lies in rows.
                stride if stride > 0 && pointer.row_major => u64::from(stride),
                _ => u64::from(bits / 8).max(1),
            };
            inner.beyond |= index >= u64::from(*count);
            inner.offset = pointer.offset.wrapping_add(step.wrapping_mul(index));
            inner.ty = *element;
            inner.matrix_stride = 0;
        }
        Layout::Matrix { column, count, rows, bytes } => {
            let own = if pointer.row_major { *count } else { *rows } * bytes;
            let stride = if pointer.matrix_stride > 0 { pointer.matrix_stride } else { own };
            let step = if pointer.row_major { *bytes } else { stride };
            inner.beyond |= index >= u64::from(*count);
            inner.offset = pointer.offset.wrapping_add(u64::from(step).wrapping_mul(index));
            inner.ty = *column;
            inner.matrix_stride = stride;
        }
        Layout::Array { element, stride, length } => {
            inner.beyond |= length.is_some_and(|length| index >= length);
            inner.offset = pointer.offset.wrapping_add(stride.wrapping_mul(index));
            inner.ty = *element;
            inner.stride = *stride;
        }
        Layout::Struct { members } => {
            let member =
                members.get(index as usize).ok_or_else(|| malformed("an index beyond its composite"))?;
            inner.offset = pointer.offset.wrapping_add(member.offset);
            inner.ty = member.ty;
            inner.coherent |= member.coherent;
            if member.matrix_stride > 0 {
                inner.matrix_stride = member.matrix_stride;
                inner.row_major = member.row_major;
            }
        }
        _ => return Err(malformed("a chain into what has no parts")),
    }
    Ok(inner)
}

/// How many parts a type has.
pub(super) fn count(program: &Program<'_>, ty: u32) -> Result<u64, Problem> {
    let count = match program.layout(ty)? {
        Layout::Vector { count, .. } | Layout::Matrix { count, .. } => u64::from(*count),
        Layout::Array { length: Some(length), .. } => *length,
        Layout::Struct { members } => members.len() as u64,
        Layout::Array { length: None, .. } => return Err(malformed("a value of an array without a length")),
        _ => 0,
    };
    let bound = crate::layout::MAX_PARTS;
    if count > bound as u64 { Err(Problem::Budget { what: "parts of a value", bound }) } else { Ok(count) }
}

impl Machine<'_> {
    pub(super) fn pointer(&self, here: &Here<'_>, inst: &Inst, index: usize) -> Step<Pointer> {
        match self.value_of(here, self.program.module.operand(&inst.raw, index)?)? {
            Value::Pointer(pointer) => Ok(*pointer),
            Value::Bits(..) => Err(unsupported("a pointer made of an integer").into()),
            _ => Err(unsupported("a pointer without a unique object").into()),
        }
    }

    /// Bytes from one element to the next of what an instruction's first operand points into.
    pub(super) fn stride_of(&self, inst: &Inst, pointer: &Pointer) -> i64 {
        let program = self.program;
        let ty = program.module.operand(&inst.raw, 0).map_or(0, |id| program.type_of(id));
        let declared = program.module.decorations.get(&ty).and_then(|decorations| decorations.stride);
        let stride = declared.or((pointer.stride > 0).then_some(pointer.stride));
        stride.unwrap_or_else(|| program.size(pointer.ty)) as i64
    }

    /// `first` is the operand of the first index behind the element of a `PtrAccessChain`.
    pub(super) fn chain(&mut self, here: &mut Here<'_>, inst: &Inst, first: usize) -> Step<Value> {
        let program = self.program;
        let mut pointer = self.pointer(here, inst, 0)?;
        let operands = program.module.operands(&inst.raw);
        if first == 2 {
            let stride = self.stride_of(inst, &pointer) as u64;
            let (index, taint) = self.index(here, inst, 1)?;
            pointer.taint |= taint;
            pointer.offset = pointer.offset.wrapping_add(index.wrapping_mul(stride));
            pointer.stride = stride;
        }
        for position in first..operands.len() {
            let (index, taint) = self.index(here, inst, position)?;
            pointer.taint |= taint;
            if let Some(shared) = self.descriptor(&pointer, index)? {
                pointer = shared;
                continue;
            }
            pointer = part(program, &pointer, index)?;
        }
        Ok(Value::Pointer(pointer))
    }

    /// An index, as a signed number that wraps. What has no defined value decides nothing as long as nobody looks at it.
    fn index(&mut self, here: &mut Here<'_>, inst: &Inst, position: usize) -> Step<(u64, Taint)> {
        let program = self.program;
        let id = program.module.operand(&inst.raw, position)?;
        let bits = program.numbers(program.type_of(id)).map_or(32, |of| of.1);
        let Value::Bits(index, taint) = *self.value_of(here, id)? else {
            return Err(malformed("an index that is no number").into());
        };
        if taint & SITES == 0 {
            self.decides(here, taint, "an index")?;
        }
        Ok((arithmetic::signed(index, bits) as u64, taint & SITES))
    }

    /// How many bytes a number has in memory, and what kind it is.
    pub(super) fn scalar(&self, ty: u32) -> Option<(Kind, u32)> {
        match self.program.layout(ty).ok()? {
            Layout::Scalar { kind, bits } => Some((*kind, bits.div_ceil(8))),
            _ => None,
        }
    }

    /// Reads a whole type.
    pub(super) fn load(
        &mut self,
        here: &mut Here<'_>,
        pointer: &Pointer,
        operands: MemoryOperands,
    ) -> Step<Value> {
        if let Some((kind, bytes)) = self.scalar(pointer.ty) {
            return self.load_scalar(here, pointer, kind, bytes, operands);
        }
        match self.program.layout(pointer.ty)? {
            Layout::Image => {
                let sampler = self.object(here, pointer.object).and_then(|image| image.sampler);
                return Ok(Value::Image(pointer.object, sampler));
            }
            Layout::Handle => {
                let sampler = self.object(here, pointer.object).and_then(|sampler| sampler.sampler);
                return Ok(sampler.map_or(Value::Nothing(super::value::OPAQUE), Value::Sampler));
            }
            Layout::Vector { count, kind: Kind::Integer | Kind::Float, bits, .. } => {
                let (count, bytes) = (*count, bits.div_ceil(8));
                if let Some(object) = self.own(here, pointer, count * bytes) {
                    let part = |index: u32| {
                        let (bits, taint) = object.read(pointer.offset + u64::from(index * bytes), bytes);
                        Value::Bits(bits, taint)
                    };
                    return Ok(Value::many((0..count).map(part)));
                }
            }
            _ => {}
        }
        let count = count(self.program, pointer.ty)?;
        let parts = (0..count).map(|index| {
            let inner = part(self.program, pointer, index)?;
            self.load(here, &inner, operands)
        });
        Ok(Value::many(parts.collect::<Step<Vec<_>>>()?))
    }

    /// Reads a vector whose components have a slot each.
    pub(super) fn load_vector(
        &mut self,
        here: &mut Here<'_>,
        inst: &Inst,
        pointer: &Pointer,
        operands: MemoryOperands,
    ) -> Step<()> {
        for (index, slot) in (0..).zip(inst.result.all()) {
            let inner = part(self.program, pointer, index)?;
            let value = self.load(here, &inner, operands)?;
            if let Some(place) = here.frame()?.values.get_mut(*slot as usize) {
                *place = value;
            }
        }
        here.frame()?.at += 1;
        Ok(())
    }

    /// Writes a vector whose components have a slot each.
    pub(super) fn store_vector(
        &mut self,
        here: &mut Here<'_>,
        id: u32,
        pointer: &Pointer,
        operands: MemoryOperands,
    ) -> Step<()> {
        for (index, slot) in (0..).zip(self.program.slots(id).all()) {
            let inner = part(self.program, pointer, index)?;
            let value =
                self.in_slot(here, *slot).cloned().ok_or_else(|| malformed("a vector without a value"))?;
            self.store(here, &inner, &value, operands)?;
        }
        Ok(())
    }

    /// Memory that no other invocation shares and that holds all of a vector, whose components lie one after the other.
    fn own<'m>(
        &'m mut self,
        here: &'m mut Here<'_>,
        pointer: &Pointer,
        bytes: u32,
    ) -> Option<&'m mut Object> {
        if pointer.beyond || pointer.taint != 0 || pointer.matrix_stride != 0 {
            return None;
        }
        let object = self.object(here, pointer.object)?;
        (object.class.is_none() && object.holds(pointer.offset, bytes)).then_some(object)
    }

    fn load_scalar(
        &mut self,
        here: &mut Here<'_>,
        pointer: &Pointer,
        kind: Kind,
        bytes: u32,
        operands: MemoryOperands,
    ) -> Step<Value> {
        let Some(object) = self.object(here, pointer.object) else {
            self.decides(here, pointer.taint & !SITES, "an address")?;
            let message = "a read through an address of nothing".to_owned();
            let lacks = self.lacks(here, (FindingKind::OutOfBounds, message), Some(false));
            let taint = pointer.taint & SITES | lacks;
            return Ok(self.zero(pointer.ty, kind, taint));
        };
        if pointer.taint & SITES != 0 {
            return Ok(self.zero(pointer.ty, kind, pointer.taint));
        }
        if pointer.beyond || !object.holds(pointer.offset, bytes) {
            let given = object.given || object.ends_before(pointer, bytes);
            if !given {
                self.note_unknown_length(here, pointer);
            }
            // Where nothing is said of the length, nothing is beyond it.
            let taint = match self.known_site(here) {
                _ if !given => 0,
                Some(taint) => taint,
                None => {
                    let message = self.beyond_end(here, "a read", pointer);
                    self.lacks(here, (FindingKind::OutOfBounds, message), Some(false))
                }
            };
            return Ok(self.zero(pointer.ty, kind, taint));
        }
        let (bits, mut taint) = object.read(pointer.offset, bytes);
        let (class, coherent) = (object.class, object.coherent);
        if let Some(class) = class {
            let manner = self.plain(class, coherent || pointer.coherent, false, operands)?;
            self.meet(here, pointer, bytes, class, manner, true);
            taint |= pointer.taint;
        }
        Ok(match kind {
            Kind::Address => Value::Pointer(self.pointer_at(bits, self.pointee(pointer.ty), taint)),
            Kind::Bool => Value::Bits(u64::from(bits != 0), taint),
            _ => Value::Bits(bits, taint),
        })
    }

    fn zero(&self, ty: u32, kind: Kind, taint: Taint) -> Value {
        match kind {
            Kind::Address => Value::Pointer(Pointer::null(self.pointee(ty), taint)),
            _ => Value::Bits(0, taint),
        }
    }

    fn pointee(&self, ty: u32) -> u32 {
        self.program.pointee(ty).map_or(0, |to| to.1)
    }

    /// The pointer of an address.
    pub(super) fn pointer_at(&self, number: u64, ty: u32, taint: Taint) -> Pointer {
        match place(number) {
            (Some(object), offset) if (object as usize) < self.objects.len() => {
                Pointer { offset, taint, ..Pointer::to(object, ty) }
            }
            _ => Pointer { offset: number, taint, ..Pointer::to(NOWHERE, ty) },
        }
    }

    /// The address of a pointer.
    pub(super) fn address_of(&self, pointer: &Pointer) -> u64 {
        if pointer.object == NOWHERE {
            return pointer.offset;
        }
        address(pointer.object, pointer.offset)
    }

    /// Writes a whole type.
    pub(super) fn store(
        &mut self,
        here: &mut Here<'_>,
        pointer: &Pointer,
        value: &Value,
        operands: MemoryOperands,
    ) -> Step<()> {
        if let Some((_, bytes)) = self.scalar(pointer.ty) {
            return self.store_scalar(here, pointer, value, bytes, operands);
        }
        if let (Layout::Vector { kind: Kind::Integer | Kind::Float, bits, .. }, Value::Many(parts)) =
            (self.program.layout(pointer.ty)?, value)
        {
            let bytes = bits.div_ceil(8);
            let whole = parts.iter().all(|part| matches!(part, Value::Bits(..)));
            if whole
                && pointer.object & LOCAL != 0
                && let Some(object) = self.own(here, pointer, parts.len() as u32 * bytes)
            {
                for (index, part) in (0..).zip(parts.iter()) {
                    if let Value::Bits(bits, taint) = part {
                        object.write(pointer.offset + index * u64::from(bytes), bytes, *bits, *taint);
                    }
                }
                return Ok(());
            }
        }
        let count = count(self.program, pointer.ty)?;
        for index in 0..count {
            let inner = part(self.program, pointer, index)?;
            let element = self.component(value, index as usize)?;
            self.store(here, &inner, &element, operands)?;
        }
        Ok(())
    }

    pub(super) fn component(&self, value: &Value, index: usize) -> Result<Value, Problem> {
        match value {
            Value::Many(parts) => {
                parts.get(index).cloned().ok_or_else(|| malformed("an index beyond its composite"))
            }
            Value::Nothing(taint) => Ok(Value::Nothing(*taint)),
            _ => Err(malformed("a part of what has none")),
        }
    }

    fn store_scalar(
        &mut self,
        here: &mut Here<'_>,
        pointer: &Pointer,
        value: &Value,
        bytes: u32,
        operands: MemoryOperands,
    ) -> Step<()> {
        let (bits, taint) = match value {
            Value::Bits(bits, taint) => (*bits, *taint),
            Value::Pointer(to) => (self.address_of(to), to.taint),
            other => (0, other.taint()),
        };
        if pointer.object & LOCAL == 0 {
            self.decides(here, pointer.taint, "an address")?;
            self.looked_at(taint);
        }
        let probes = self.probes();
        let Some(object) = self.object(here, pointer.object) else {
            self.finding(here, FindingKind::OutOfBounds, "a write through an address of nothing".to_owned());
            return Ok(());
        };
        if pointer.beyond || !object.holds(pointer.offset, bytes) {
            if object.given || object.ends_before(pointer, bytes) {
                let message = self.beyond_end(here, "a write", pointer);
                self.finding(here, FindingKind::OutOfBounds, message);
            } else {
                self.note_unknown_length(here, pointer);
            }
            return Ok(());
        }
        let (class, coherent) = (object.class, object.coherent);
        let changed = object.read(pointer.offset, bytes) != (bits, taint);
        if class.is_some() && changed && probes {
            self.changes += 1;
            return Ok(());
        }
        object.write(pointer.offset, bytes, bits, taint);
        if let Some(class) = class {
            self.changes += u64::from(changed);
            let manner = self.plain(class, coherent || pointer.coherent, true, operands)?;
            self.again = !changed;
            self.meet(here, pointer, bytes, class, manner, false);
            self.again = false;
        }
        Ok(())
    }

    /// How a plain access accesses.
    pub(super) fn plain(
        &self,
        class: StorageClass,
        coherent: bool,
        writes: bool,
        operands: MemoryOperands,
    ) -> Result<Manner, Problem> {
        let program = self.program;
        let number = |id| program.specialized.number(id);
        let access = operands.access(class, program.module.vulkan, coherent, writes, number)?;
        let manner = Manner {
            writes,
            atomic: false,
            wide: false,
            private: access == Access::Private,
            published: false,
            scope: Scope::Device,
            operation: 0,
        };
        Ok(match access {
            Access::Coherent { scope } => Manner { published: true, scope, ..manner },
            _ => manner,
        })
    }

    /// Looks at who else was at the words of an access. Whether an atomic that is not ordered with it was there.
    pub(super) fn meet(
        &mut self,
        here: &mut Here<'_>,
        pointer: &Pointer,
        bytes: u32,
        class: StorageClass,
        manner: Manner,
        reads: bool,
    ) -> bool {
        self.accesses += 1;
        if let Some(polled) = &mut self.polled {
            polled.push((manner.atomic, pointer.object, pointer.offset));
        }
        if self.setup.blind || self.probes() {
            return false;
        }
        let at = class_index(class);
        let epoch = here.workgroup.epochs[at];
        let site = self.site_of(&here.workgroup.invocations[here.index]);
        let me = &here.workgroup.invocations[here.index];
        let (invocation, workgroup, time) = (me.number, me.identity.workgroup_index, me.now());
        let moment = Moment { invocation, workgroup, time, epoch, first: invocation - me.lane };
        let (subgroup, identity) = (me.subgroup, me.identity);
        let calls = me.frames.last().map_or(0, |frame| frame.calls);
        let place = self.place_of(here, pointer.object);
        let Workgroup { invocations, objects, .. } = &mut *here.workgroup;
        let me = &invocations[here.index];
        let object = match pointer.object & SHARED {
            0 => self.objects.get_mut(pointer.object as usize),
            _ => objects.get_mut((pointer.object & !SHARED) as usize),
        };
        let Some(object) = object else { return false };
        let (view, fine) = (&me.views[at], self.setup.fine);
        let shape = self.setup.shape();
        let changes = manner.writes && !self.again;
        let end = pointer.offset + u64::from(bytes);
        let (mut unordered, mut conflict) = (false, None);
        let (sees, mut seen) = (self.setup.mixed && manner.published && reads, Vec::new());
        for word in pointer.offset / WORD..end.div_ceil(WORD) {
            let first = pointer.offset.max(word * WORD) - word * WORD;
            let last = end.min((word + 1) * WORD) - word * WORD;
            let covered = (mask(last as u32) & !mask(first as u32)) as u8;
            let record = Record { moment, subgroup, way: Way { site, calls, manner, mask: covered } };
            let seen_here = me.seen.get(&(place.0, place.1, word));
            let sight = Sight { view, seen: seen_here, fine, released: me.last_release, shape };
            let cell = object.shadow.cell(word);
            if sees {
                seen.extend(cell.seen_by(&record, sight).map(|write| (word, write)));
            }
            let met = cell.meet(&record, sight);
            if changes {
                cell.changed_by(moment.invocation);
            }
            unordered |= met.unordered;
            if let (Some((earlier, standing)), None) = (met.conflict, &conflict) {
                conflict = Some((earlier, record, standing, word));
            }
        }
        if self.setup.mixed && manner.writes {
            invocations[here.index].stamp += 1;
        }
        for (word, (invocation, time)) in seen {
            let known = &mut invocations[here.index].seen;
            let known = known.entry((place.0, place.1, word)).or_default().entry(invocation).or_default();
            *known = time.max(*known);
        }
        if let Some((earlier, later, standing, word)) = conflict {
            let name = self.element(here, pointer, word * WORD);
            let other = self.identity_of(earlier.moment.invocation);
            self.race(&name, (&earlier, other), (&later, identity), standing);
        }
        unordered
    }

    pub(super) fn identity_of(&self, number: u32) -> Identity {
        let count: u32 = self.setup.local_size.iter().product();
        let (index, local_index) = (number / count.max(1), number % count.max(1));
        let ([gx, gy, _], [x, y, _]) = (self.setup.grid, self.setup.local_size);
        Identity {
            workgroup: [index % gx, index / gx % gy, index / gx / gy],
            local: [local_index % x, local_index / x % y, local_index / x / y],
            workgroup_index: index,
            local_index,
            stage: self.setup.stage,
        }
    }

    /// Copies what one pointer points to to another.
    pub(super) fn copy(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        if inst.raw.op == Op::CopyMemorySized {
            return Err(unsupported("OpCopyMemorySized").into());
        }
        let (to, from) = (self.pointer(here, inst, 0)?, self.pointer(here, inst, 1)?);
        let operands = self.program.module.operands(&inst.raw);
        let operands = MemoryOperands::parse(operands.get(2..).unwrap_or_default());
        let value = self.load(here, &from, operands)?;
        self.store(here, &to, &value, operands)?;
        here.frame()?.at += 1;
        Ok(())
    }

    /// The element of an array of descriptors.
    fn descriptor(&mut self, pointer: &Pointer, index: u64) -> Step<Option<Pointer>> {
        if self.descriptors.is_empty() {
            return Ok(None);
        }
        let Some(elements) = self.descriptors.get(&pointer.object) else { return Ok(None) };
        if pointer.ty != elements.ty {
            return Ok(None);
        }
        if elements.assumed {
            let name = self.objects.get(pointer.object as usize).map_or("", |holder| holder.name.as_str());
            let count = elements.objects.len();
            self.notes
                .insert(format!("nothing is said of how many descriptors `{name}` has, taken as {count}"));
        }
        let object = elements.objects.get(index as usize).copied();
        let object = object.ok_or_else(|| {
            unsupported(format!("descriptor {index} of an array, of which nothing is said"))
        })?;
        Ok(Some(Pointer { coherent: pointer.coherent, ..Pointer::to(object, elements.element) }))
    }
}
