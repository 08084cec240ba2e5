//! Pointers, loads, stores and atomics of one invocation.
//!
//! The contents of memory that the entry point never writes are functions of the address. Those of other memory are
//! arbitrary. A plain load of workgroup memory at an address that a workgroup agrees on has one result for the workgroup:
//! if an invocation wrote there between the same barriers, it would race with the others. A pointer to one of two
//! variables is accessed twice, each time under its condition.
//!
//! Long because loads, stores and atomics share the forms of pointers.

use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::BuiltIn;
use spirv_reader::{AtomicAccess, AtomicFunction, AtomicKind, MemoryOperands, SpirvType};
use vocabulary::{Scope, StorageClass};

use crate::execute::{Access, Bound, Executor, Location, Strength, Ticket, written_pointer};
use crate::instruction::PartFunction;
use crate::refusal::{Unproved, UnprovedReason};
use crate::term::{FunctionKind, Operator, TermId, Uniformity};
use crate::value::{Descriptor, Pointer, Value};

/// Upper bound on the separate ranges of an access to a composite.
const MAX_RANGES: usize = 64;
/// Upper bound on what an addition to a counter adds: with more, a counter soon wraps.
const MAX_TICKET_STEP: u64 = 1 << 16;
/// Upper bound on the elements of a local array among which a store with an unknown index selects.
const MAX_SELECTED: usize = 64;
/// Upper bound on the nested selections of a value that are searched for unwritten contents.
const MAX_SELECTIONS: u32 = 16;

impl Executor<'_> {
    pub fn access_chain(
        &mut self,
        base: u32,
        element: Option<u32>,
        indices: &[u32],
    ) -> Result<Value, Unproved> {
        let mut pointer = (*self.pointer_of(base)?).clone();
        self.move_pointer(&mut pointer, element, indices)?;
        Ok(Value::Pointer(Rc::new(pointer)))
    }

    fn move_pointer(
        &mut self,
        pointer: &mut Pointer,
        element: Option<u32>,
        indices: &[u32],
    ) -> Result<(), Unproved> {
        if let Pointer::Choice { condition, yes, no } = pointer {
            for (side, target) in self.sides(*condition).into_iter().zip([yes, no]) {
                let facts = std::mem::replace(&mut self.facts, side);
                self.move_pointer(Rc::make_mut(target), element, indices)?;
                self.facts = facts;
            }
            return Ok(());
        }
        if let Some(element) = element {
            let index = self.index(element)?;
            self.move_by_elements(pointer, index)?;
        }
        for index in indices {
            let index = self.index(*index)?;
            self.enter_part(pointer, index)?;
        }
        Ok(())
    }

    /// Returns the facts of the current instruction if a condition holds, and if it does not.
    fn sides(&mut self, condition: TermId) -> [TermId; 2] {
        let (facts, terms) = (self.facts, &mut self.summary.terms);
        let negated = terms.not(condition);
        [condition, negated].map(|one| terms.every(&[facts, one]))
    }

    /// Adds what an access in bounds implies to the facts.
    fn assume(&mut self, condition: Option<TermId>) {
        let facts = self.facts;
        self.facts = condition.map_or(facts, |condition| self.terms().every(&[facts, condition]));
    }

    /// Returns an index as a signed number of 64 bits.
    fn index(&mut self, id: u32) -> Result<TermId, Unproved> {
        let Some(index) = self.value(id).scalar() else {
            return Ok(self.arbitrary(64, Uniformity::Invocation, Vec::new()));
        };
        Ok(self.terms().extend(index, 64, true))
    }

    fn move_by_elements(&mut self, pointer: &mut Pointer, index: TermId) -> Result<(), Unproved> {
        match pointer {
            _ if self.summary.terms.constant_of(index) == Some(0) => Ok(()),
            Pointer::Memory { offset, ty, .. } => {
                let stride = self.summary.specialized.size_of(*ty).map_err(|_| self.too_large())?;
                *offset = self.terms().sum(64, &[(*offset, 1), (index, stride)], 0);
                Ok(())
            }
            Pointer::Local { path, .. } => match path.last_mut() {
                Some(last) => {
                    *last = self.terms().add(*last, index);
                    Ok(())
                }
                None => Err(self.unproved(UnprovedReason::UnknownPointer)),
            },
            Pointer::Image { .. } | Pointer::Texel { .. } | Pointer::Choice { .. } => {
                Err(self.unproved(UnprovedReason::UnknownPointer))
            }
        }
    }

    pub fn too_large(&self) -> Unproved {
        self.unproved(UnprovedReason::TooLarge)
    }

    fn enter_part(&mut self, pointer: &mut Pointer, index: TermId) -> Result<(), Unproved> {
        let (module, specialized) = (self.summary.module, self.summary.specialized);
        let constant = self.summary.terms.constant_of(index);
        match pointer {
            Pointer::Image { descriptor } => {
                descriptor.element = Some(index);
                Ok(())
            }
            Pointer::Texel { .. } | Pointer::Choice { .. } => {
                Err(self.unproved(UnprovedReason::UnknownPointer))
            }
            Pointer::Local { key, path, ty } => {
                let part = specialized.part_of(*ty, constant.unwrap_or(0)).map_err(|_| self.too_large())?;
                path.push(index);
                *ty = part.ty;
                if let (Some(length), None) = (part.length, constant) {
                    let (name, facts) = (module.display_name(key.1), self.facts);
                    let length = self.terms().constant(64, length);
                    self.summary.bounds.push(Bound { name, facts, index, length });
                }
                Ok(())
            }
            Pointer::Memory { descriptor, offset, ty, in_bounds } => {
                let variable = module.variables.get(&descriptor.variable);
                let is_whole = variable.is_some_and(|variable| {
                    variable.ty == *ty && variable.class != rspirv::spirv::StorageClass::Workgroup
                });
                let is_descriptor_array = match module.types.get(ty) {
                    Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => {
                        descriptor.element.is_none() && (is_whole || module.decorations_of(*element).block)
                    }
                    _ => false,
                };
                let part =
                    specialized.dense_part_of(*ty, constant.unwrap_or(0)).map_err(|_| self.too_large())?;
                if is_descriptor_array {
                    (descriptor.element, *ty) = (Some(index), part.ty);
                    return Ok(());
                }
                if let Some(number) = constant {
                    let member = module.member_decorations.get(&(*ty, number as u32));
                    descriptor.is_coherent |= member.is_some_and(|member| member.coherent || member.volatile);
                }
                match (part.stride, constant) {
                    (Some(stride), None) => {
                        if part.length.is_none() && self.summary.terms.constant_of(*offset) != Some(0) {
                            let terms = &mut self.summary.terms;
                            let zero = terms.constant(64, 0);
                            let is_negative = terms.binary(Operator::LessSigned, index, zero);
                            let is_inside = terms.not(is_negative);
                            *in_bounds =
                                Some(in_bounds.map_or(is_inside, |known| terms.every(&[known, is_inside])));
                        }
                        *offset = self.terms().sum(64, &[(*offset, 1), (index, stride)], 0);
                        if let Some(length) = part.length {
                            let name = module.display_name(descriptor.variable);
                            let length = match self.symbolic_length(*ty) {
                                Some(length) => self.index(length)?,
                                None => self.terms().constant(64, length),
                            };
                            let facts = self.facts;
                            self.summary.bounds.push(Bound { name, facts, index, length });
                        }
                    }
                    (_, Some(_)) => *offset = self.terms().sum(64, &[(*offset, 1)], part.offset),
                    (None, None) => return Err(self.unproved(UnprovedReason::UnknownPointer)),
                }
                *ty = part.ty;
                Ok(())
            }
        }
    }

    /// Returns the contents of a local variable, which begin with a built-in value, an initializer or anything.
    fn local_value(&mut self, key: (usize, u32)) -> Result<Value, Unproved> {
        if let Some(value) = self.state.get(&key) {
            return Ok(value.clone());
        }
        let module = self.summary.module;
        let Some(variable) = module.variables.get(&key.1) else { return Ok(Value::Opaque) };
        if let Some(built_in) = module.decorations_of(key.1).built_in {
            return self.built_in(built_in, variable.ty);
        }
        let value = match variable.initializer {
            0 => self.arbitrary_value(variable.ty)?,
            initializer => self.constant_value(initializer),
        };
        self.state.insert(key, value.clone());
        Ok(value)
    }

    fn built_in(&mut self, built_in: BuiltIn, ty: u32) -> Result<Value, Unproved> {
        let components = |executor: &mut Self, make: &dyn Fn(&mut Self, usize) -> TermId| {
            let parts: Vec<Value> = (0..3).map(|axis| Value::Scalar(make(executor, axis))).collect();
            Value::Composite(parts.into())
        };
        Ok(match built_in {
            BuiltIn::LocalInvocationId => components(self, &|one, axis| one.summary.local_id(axis)),
            BuiltIn::WorkgroupId => components(self, &|one, axis| one.summary.group_id(axis)),
            BuiltIn::NumWorkgroups => components(self, &|one, axis| one.summary.group_count(axis)),
            BuiltIn::WorkgroupSize => Value::Composite(self.summary.local_size.map(Value::Scalar).into()),
            BuiltIn::GlobalInvocationId => components(self, &|one, axis| {
                let (group, local) = (one.summary.group_id(axis), one.summary.local_id(axis));
                let size = one.summary.local_size[axis];
                let first = one.terms().multiply(group, size);
                one.terms().add(first, local)
            }),
            BuiltIn::LocalInvocationIndex => {
                let [x, y, z] = [0, 1, 2].map(|axis| self.summary.local_id(axis));
                let [width, height, _] = self.summary.local_size;
                let terms = self.terms();
                let (row, plane) = (terms.multiply(y, width), terms.multiply(width, height));
                let layer = terms.multiply(z, plane);
                Value::Scalar(terms.sum(32, &[(x, 1), (row, 1), (layer, 1)], 0))
            }
            _ => match self.summary.subgroup_number(built_in) {
                Some(number) => Value::Scalar(number),
                None => self.arbitrary_value(ty)?,
            },
        })
    }

    pub fn array_length(&mut self, block: u32, member: u32) -> Result<Value, Unproved> {
        let Pointer::Memory { descriptor, ty, .. } = &*self.pointer_of(block)? else {
            return Err(self.unproved(UnprovedReason::UnknownPointer));
        };
        let part = self.summary.specialized.part_of(*ty, member.into()).map_err(|_| self.too_large())?;
        let stride = self.summary.specialized.part_of(part.ty, 0).ok().and_then(|part| part.stride);
        let kind = FunctionKind::BufferElements(descriptor.variable);
        // The range of a descriptor has 32 bits.
        let elements = mask(32) / stride.unwrap_or(1).max(1);
        let function = self.terms().named_function(kind, 32, (0, elements), Uniformity::Grid);
        // Blocks with other elements at this binding have other numbers of them.
        let stride = self.terms().constant(64, stride.unwrap_or(1));
        let arguments: Vec<TermId> = [stride].into_iter().chain(descriptor.element).collect();
        Ok(Value::Scalar(self.terms().apply(function, &arguments)))
    }

    /// Loads a part of a local composite.
    pub fn load_part(&mut self, whole: &Value, path: &[TermId], ty: u32) -> Result<Value, Unproved> {
        let Some((index, path)) = path.split_first() else { return Ok(whole.clone()) };
        let Value::Composite(parts) = whole else { return self.arbitrary_value(ty) };
        if let Some(number) = self.summary.terms.constant_of(*index) {
            return match parts.get(number as usize) {
                Some(part) => self.load_part(&part.clone(), path, ty),
                None => self.arbitrary_value(ty),
            };
        }
        if parts.len() > MAX_SELECTED {
            let mut sources = whole.terms();
            sources.push(*index);
            sources.extend(path);
            return self.build(ty, &mut |executor, width| {
                executor.arbitrary(width, Uniformity::Grid, sources.clone())
            });
        }
        // An index beyond the array reads anything; the last element stands for it.
        let width = self.summary.terms.width(*index);
        let mut result: Option<Value> = None;
        for (number, part) in parts.iter().enumerate().rev() {
            let part = self.load_part(part, path, ty)?;
            let number = self.terms().constant(width, number as u64);
            let is_here = self.terms().equal(*index, number);
            result = Some(match result {
                None => part,
                Some(other) => part.select(&other, is_here, &mut self.summary.terms),
            });
        }
        Ok(result.unwrap_or(Value::Opaque))
    }

    /// Stores a part of a local composite.
    pub fn store_part(&mut self, whole: &Value, path: &[TermId], value: &Value) -> Value {
        let Some((index, path)) = path.split_first() else { return value.clone() };
        let Value::Composite(parts) = whole else { return Value::Opaque };
        let constant = self.summary.terms.constant_of(*index);
        let width = self.summary.terms.width(*index);
        let mut stored = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let number = self.terms().constant(width, number as u64);
            let is_here = self.terms().equal(*index, number);
            stored.push(match (constant, self.summary.terms.constant_of(is_here)) {
                (_, Some(0)) => part.clone(),
                (_, Some(_)) => self.store_part(part, path, value),
                (_, None) => {
                    let new = self.store_part(part, path, value);
                    new.select(part, is_here, &mut self.summary.terms)
                }
            });
        }
        Value::Composite(stored.into())
    }

    pub fn load(&mut self, pointer: u32, ty: u32, memory: MemoryOperands) -> Result<Value, Unproved> {
        let pointer = self.pointer_of(pointer)?;
        self.load_from(&pointer, ty, memory)
    }

    fn load_from(&mut self, pointer: &Pointer, ty: u32, memory: MemoryOperands) -> Result<Value, Unproved> {
        match pointer {
            Pointer::Choice { condition, yes, no } => {
                self.on_both_sides(*condition, [yes, no], &mut |executor, pointer| {
                    executor.load_from(pointer, ty, memory)
                })
            }
            Pointer::Local { key, path, .. } => {
                let whole = self.local_value(*key)?;
                let value = self.load_part(&whole, path, ty)?;
                value.map_terms(&mut |term| {
                    let is_unwritten = self.may_be_unwritten(term, MAX_SELECTIONS);
                    self.summary.assumes_written |= is_unwritten;
                    term
                });
                Ok(value)
            }
            Pointer::Image { descriptor } => {
                Ok(Value::Pointer(Rc::new(Pointer::Image { descriptor: descriptor.clone() })))
            }
            Pointer::Memory { descriptor, offset, in_bounds, .. } => {
                self.assume(*in_bounds);
                self.load_memory(descriptor, *offset, ty, memory)
            }
            Pointer::Texel { .. } => Err(self.unproved(UnprovedReason::UnknownPointer)),
        }
    }

    /// Accesses one of two pointers: each under its side of a condition.
    fn on_both_sides(
        &mut self,
        condition: TermId,
        pointers: [&Pointer; 2],
        access: &mut dyn FnMut(&mut Self, &Pointer) -> Result<Value, Unproved>,
    ) -> Result<Value, Unproved> {
        let (facts, state) = (self.facts, self.state.clone());
        let [yes, no] = self.sides(condition);
        self.facts = yes;
        let first = access(self, pointers[0])?;
        let mut joined = std::mem::replace(&mut self.state, state);
        self.facts = no;
        let second = access(self, pointers[1])?;
        self.facts = facts;
        for (key, other) in std::mem::take(&mut self.state) {
            let value = joined.get(&key).map(|value| value.select(&other, condition, self.terms()));
            joined.insert(key, value.unwrap_or(other));
        }
        self.state = joined;
        Ok(first.select(&second, condition, &mut self.summary.terms))
    }

    /// Returns true if a value may be what a variable contains before its first store.
    fn may_be_unwritten(&self, term: TermId, depth: u32) -> bool {
        let terms = &self.summary.terms;
        let Some(depth) = depth.checked_sub(1) else { return true };
        let term = terms.term(term);
        match term.operator {
            Operator::Select => term.arguments.iter().skip(1).any(|one| self.may_be_unwritten(*one, depth)),
            Operator::Apply(function) => match terms.function(function).kind {
                FunctionKind::Unwritten => true,
                FunctionKind::Carried => {
                    let mut sources = terms.function(function).sources.iter();
                    sources.next().is_some_and(|initial| self.may_be_unwritten(*initial, depth))
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn load_memory(
        &mut self,
        descriptor: &Descriptor,
        offset: TermId,
        ty: u32,
        memory: MemoryOperands,
    ) -> Result<Value, Unproved> {
        let class = self.class_of(descriptor);
        let is_written = self.written.contains(&descriptor.variable);
        if class.is_some() && is_written {
            self.add_ranges(descriptor, offset, ty, false, memory, &[])?;
        }
        let Some(class) = class.filter(|_| is_written) else {
            let variable = self.summary.module.variables.get(&descriptor.variable);
            // Each workgroup, and each load, may see other contents of memory that nothing writes.
            return match variable.is_some_and(|variable| variable.initializer == 0) {
                true if class == Some(StorageClass::Workgroup) => self.unwritten_value(ty),
                _ => self.load_constant_memory(descriptor, offset, ty),
            };
        };
        let uniformity = match class {
            StorageClass::Workgroup => Uniformity::Workgroup,
            StorageClass::Buffer | StorageClass::Image | StorageClass::Output => Uniformity::Invocation,
        };
        let sources = vec![offset];
        self.build(ty, &mut |executor, width| executor.arbitrary(width, uniformity, sources.clone()))
    }

    /// Loads memory that no invocation writes: a function of the address.
    fn load_constant_memory(
        &mut self,
        descriptor: &Descriptor,
        offset: TermId,
        ty: u32,
    ) -> Result<Value, Unproved> {
        let (variable, element) = (descriptor.variable, descriptor.element);
        let part_of: PartFunction = |specialized, ty, index| specialized.dense_part_of(ty, index);
        self.build_at(ty, offset, part_of, &mut |executor, offset, width| {
            let summary = &mut executor.summary;
            let number = |of: TermId| summary.terms.constant_of(of);
            let place = element.map_or(Some(0), number).zip(number(offset));
            if let Some(given) =
                place.and_then(|(element, at)| summary.given_scalar(variable, element, at, width))
            {
                return given;
            }
            let arguments: Vec<TermId> = element.into_iter().chain([offset]).collect();
            executor.terms().apply_named(FunctionKind::Contents(variable, width), width, &arguments)
        })
    }

    pub fn store(&mut self, pointer: u32, value: Value, memory: MemoryOperands) -> Result<(), Unproved> {
        let pointer = self.pointer_of(pointer)?;
        self.store_to(&pointer, &value, memory)
    }

    fn store_to(&mut self, pointer: &Pointer, value: &Value, memory: MemoryOperands) -> Result<(), Unproved> {
        match pointer {
            Pointer::Choice { condition, yes, no } => {
                self.on_both_sides(*condition, [yes, no], &mut |executor, pointer| {
                    executor.store_to(pointer, value, memory).map(|()| Value::Opaque)
                })?;
                Ok(())
            }
            Pointer::Local { key, path, .. } => {
                let whole = if path.is_empty() { Value::Opaque } else { self.local_value(*key)? };
                let stored = self.store_part(&whole, path, value);
                self.state.insert(*key, stored);
                Ok(())
            }
            Pointer::Memory { descriptor, offset, ty, in_bounds } => {
                self.assume(*in_bounds);
                let values = self.stored_terms(value);
                self.add_ranges(descriptor, *offset, *ty, true, memory, &values)
            }
            Pointer::Image { .. } | Pointer::Texel { .. } => {
                Err(self.unproved(UnprovedReason::UnknownPointer))
            }
        }
    }

    /// Returns the terms of a stored value; one of them is arbitrary if a part has no term.
    fn stored_terms(&mut self, value: &Value) -> Vec<TermId> {
        let unknown =
            value.is_partly_opaque().then(|| self.arbitrary(32, Uniformity::Invocation, Vec::new()));
        value.terms().into_iter().chain(unknown).collect()
    }

    /// Returns the class of memory that invocations share.
    fn class_of(&self, descriptor: &Descriptor) -> Option<StorageClass> {
        let class = self.summary.module.variables.get(&descriptor.variable)?.class;
        match class {
            rspirv::spirv::StorageClass::UniformConstant => Some(StorageClass::Image),
            _ => spirv_reader::memory_class(class),
        }
    }

    /// Returns the strength of a plain access, as the memory model of the module decides it.
    fn strength_of(
        &self,
        class: StorageClass,
        is_coherent: bool,
        writes: bool,
        memory: MemoryOperands,
    ) -> Strength {
        let module = self.summary.module;
        if !module.uses_vulkan_model {
            let is_coherent = is_coherent || module.plain_access_scope.is_some();
            let is_published = class == StorageClass::Workgroup || is_coherent || memory.volatile;
            return if is_published { Strength::Published } else { Strength::Private };
        }
        let scope = if writes { memory.available } else { memory.visible };
        let scope = scope.and_then(|id| self.scope_of(id));
        match scope {
            Some(scope) if scope != Scope::Invocation && scope != Scope::Subgroup => Strength::Published,
            _ if module.plain_access_scope.is_some() => Strength::Published,
            _ if module.is_by_language && (is_coherent || class == StorageClass::Workgroup) => {
                Strength::Published
            }
            _ if memory.non_private => Strength::NonPrivate,
            _ => Strength::Private,
        }
    }

    fn scope_of(&self, id: u32) -> Option<Scope> {
        let number = self.summary.specialized.constant_number(id)?;
        spirv_reader::scope_from_word(number, self.summary.module.uses_vulkan_model).ok()
    }

    /// Adds an access for each range of bytes of a type.
    fn add_ranges(
        &mut self,
        descriptor: &Descriptor,
        offset: TermId,
        ty: u32,
        writes: bool,
        memory: MemoryOperands,
        values: &[TermId],
    ) -> Result<(), Unproved> {
        let mut ranges = Vec::new();
        self.collect_ranges(ty, 0, &mut ranges)?;
        for (from, size) in ranges {
            let offset = self.terms().sum(64, &[(offset, 1)], from);
            let location = Location::Bytes { offset, size };
            self.add_plain_access(descriptor, location, writes, memory, values)?;
        }
        Ok(())
    }

    fn add_plain_access(
        &mut self,
        descriptor: &Descriptor,
        location: Location,
        writes: bool,
        memory: MemoryOperands,
        values: &[TermId],
    ) -> Result<(), Unproved> {
        let access = self.new_access(descriptor, location, writes, values.to_vec())?;
        let strength = self.strength_of(access.class, descriptor.is_coherent, writes, memory);
        self.summary.accesses.push(Access { strength, ..access });
        Ok(())
    }

    /// Returns an access of the current instruction, which its kind of instruction completes.
    fn new_access(
        &mut self,
        descriptor: &Descriptor,
        location: Location,
        writes: bool,
        values: Vec<TermId>,
    ) -> Result<Access, Unproved> {
        let class = self.class_of(descriptor).ok_or_else(|| self.unproved(UnprovedReason::UnknownPointer))?;
        Ok(Access {
            node: self.node,
            descriptor: descriptor.clone(),
            location,
            writes,
            atomic: None,
            strength: Strength::Published,
            class,
            facts: self.facts,
            history: self.terms().truth(true),
            values,
            ticket: None,
            line: self.line,
            place: self.place,
        })
    }

    /// Returns the specialization constant that is the length of an array.
    fn symbolic_length(&self, ty: u32) -> Option<u32> {
        match self.summary.module.types.get(&ty) {
            Some(SpirvType::Array { length, .. }) => {
                Some(*length).filter(|length| self.symbolic_constants.contains(length))
            }
            _ => None,
        }
    }

    fn collect_ranges(&self, ty: u32, from: u64, ranges: &mut Vec<(u64, u64)>) -> Result<(), Unproved> {
        let (module, specialized) = (self.summary.module, self.summary.specialized);
        if self.symbolic_length(ty).is_some() {
            return Err(self.too_large());
        }
        let parts = match module.types.get(&ty) {
            Some(SpirvType::Matrix { .. } | SpirvType::Array { .. } | SpirvType::Struct { .. }) => {
                specialized.part_count(ty).map_err(|_| self.too_large())?
            }
            _ => 0,
        };
        if parts == 0 || parts > MAX_RANGES {
            ranges.push((from, specialized.size_of(ty).map_err(|_| self.too_large())?.max(1)));
            return Ok(());
        }
        for index in 0..parts {
            let part = specialized.dense_part_of(ty, index as u64).map_err(|_| self.too_large())?;
            self.collect_ranges(part.ty, from + part.offset, ranges)?;
        }
        // Parts without gaps are one range.
        ranges.dedup_by(|next, last| {
            let follows = last.0 + last.1 == next.0;
            last.1 += if follows { next.1 } else { 0 };
            follows
        });
        if ranges.len() > MAX_RANGES {
            return Err(self.too_large());
        }
        Ok(())
    }

    pub fn atomic(&mut self, access: AtomicAccess, ty: u32) -> Result<Value, Unproved> {
        let pointer = self.pointer_of(access.pointer)?;
        self.atomic_at(&pointer, access, ty)
    }

    fn atomic_at(&mut self, pointer: &Pointer, access: AtomicAccess, ty: u32) -> Result<Value, Unproved> {
        if let Pointer::Choice { condition, yes, no } = pointer {
            return self.on_both_sides(*condition, [yes, no], &mut |executor, pointer| {
                executor.atomic_at(pointer, access, ty)
            });
        }
        let scope = self.scope_of(access.scope).ok_or_else(|| {
            self.unproved(UnprovedReason::Instruction("an atomic of unknown scope".to_owned()))
        })?;
        let (descriptor, location) = match pointer {
            Pointer::Memory { descriptor, offset, ty, in_bounds } => {
                self.assume(*in_bounds);
                let size = self.summary.specialized.size_of(*ty).map_err(|_| self.too_large())?;
                (descriptor.clone(), Location::Bytes { offset: *offset, size })
            }
            Pointer::Texel { descriptor, coordinates, .. } => {
                (descriptor.clone(), Location::Texel { coordinates: coordinates.clone() })
            }
            // Atomics on memory of one invocation occur in optimized code only.
            Pointer::Local { .. } | Pointer::Image { .. } | Pointer::Choice { .. } => {
                return Err(self.unproved(UnprovedReason::UnknownPointer));
            }
        };
        let step = match access.kind {
            AtomicKind::Update { function: AtomicFunction::Add, value: None } => Some(1),
            AtomicKind::Update { function: AtomicFunction::Add, value: Some(value) } => {
                self.value(value).scalar().and_then(|term| self.summary.terms.signed_constant(term))
            }
            _ => None,
        };
        let result = if access.kind.reads() { self.arbitrary_value(ty)? } else { Value::Opaque };
        let step = step.and_then(|step| u64::try_from(step).ok());
        let step = step.filter(|step| (1..=MAX_TICKET_STEP).contains(step));
        let ticket = result.scalar().zip(step).map(|(result, step)| Ticket { result, step });
        let values = access.kind.value().map_or_else(Vec::new, |value| self.value(value).terms());
        let access = self.new_access(&descriptor, location, access.kind.writes(), values)?;
        self.summary.accesses.push(Access { atomic: Some(scope), ticket, ..access });
        Ok(result)
    }

    pub fn access_texel(
        &mut self,
        image: u32,
        coordinate: u32,
        written: Option<Value>,
        memory: MemoryOperands,
    ) -> Result<(), Unproved> {
        let coordinates = self.value(coordinate).terms();
        let pointer = self.pointer_of(image)?;
        let Pointer::Image { descriptor } = &*pointer else {
            return Err(self.unproved(UnprovedReason::UnknownPointer));
        };
        let writes = written.is_some();
        if writes || self.written.contains(&descriptor.variable) {
            let values = written.map_or_else(Vec::new, |value| self.stored_terms(&value));
            let location = Location::Texel { coordinates };
            self.add_plain_access(descriptor, location, writes, memory, &values)?;
        }
        Ok(())
    }

    /// Collects the variables whose memory the entry point may write.
    pub fn collect_written(&mut self) -> Result<(), Unproved> {
        let module = self.summary.module;
        for node in self.summary.graph.order.clone() {
            let frame = self.summary.graph.nodes[node].frame;
            for instruction in self.summary.graph.code(node) {
                (self.line, self.place) = (instruction.line, instruction.place);
                let operation = module.operation(instruction);
                let written = written_pointer(&operation).filter(|_| operation.may_change_memory());
                let Some(pointer) = written else { continue };
                let roots = self.root_variables(frame, pointer);
                let roots = roots.ok_or_else(|| self.unproved(UnprovedReason::UnknownPointer))?;
                for (_, id) in roots.into_iter().filter(|(frame, _)| *frame == 0) {
                    if module.variables.contains_key(&id) {
                        self.written.insert(self.canonical_variable(id));
                    }
                }
            }
        }
        Ok(())
    }
}
