//! The effect of each instruction on values of one invocation.
//!
//! Integers and booleans are modelled exactly. Floats, and integer functions without an operator here, are uninterpreted
//! functions of their operands. Results of images, subgroups, clocks and ray queries are arbitrary.
//!
//! Long because one match covers every instruction.

#![deny(clippy::wildcard_enum_match_arm)]

use std::rc::Rc;

use arithmetic::{Instruction, mask};
use rspirv::spirv::{BuiltIn, GlslStd450Op, Op, StorageClass};
use spirv_reader::{
    CompositeOperation, ImageOperation, ImageQuery, Specialized, SpirvConstant, SpirvInstruction,
    SpirvOperation, SpirvProblem, SpirvType, SubgroupFunction, TypePart,
};
use vocabulary::Scope;

use crate::execute::{Barrier, Election, Executor};
use crate::refusal::{Unproved, UnprovedReason};
use crate::representative_constant;
use crate::term::{FunctionKind, Operator, TermId, Uniformity};
use crate::value::{Descriptor, Pointer, Value};

/// Upper bound on the parts of a composite value that is followed.
const MAX_PARTS: usize = 256;

/// A function that returns a part of a type with its offset.
pub(crate) type PartFunction = fn(&Specialized<'_>, u32, u64) -> Result<TypePart, SpirvProblem>;

impl Executor<'_> {
    /// Executes an instruction that is not a branch.
    pub fn execute(&mut self, instruction: &SpirvInstruction) -> Result<(), Unproved> {
        let module = self.summary.module;
        let operation = module.operation(instruction);
        let (result, ty) = (instruction.result, instruction.ty);
        let refuse = |executor: &Self| {
            let name = format!("Op{:?}", instruction.op);
            Err(executor.unproved(UnprovedReason::Instruction(name)))
        };
        let value = match operation {
            SpirvOperation::Nop
            | SpirvOperation::Label
            | SpirvOperation::Phi { .. }
            | SpirvOperation::SelectionMerge { .. }
            | SpirvOperation::LoopMerge { .. }
            | SpirvOperation::Branch { .. }
            | SpirvOperation::BranchConditional { .. }
            | SpirvOperation::Switch { .. }
            | SpirvOperation::Call { .. }
            | SpirvOperation::Return { .. }
            | SpirvOperation::Unreachable
            | SpirvOperation::Kill { demotes: false } => return Ok(()),
            SpirvOperation::MemoryBarrier { .. } => return Ok(()),
            SpirvOperation::ControlBarrier { .. } => return self.execute_barrier(&operation),
            SpirvOperation::Variable { initializer } => {
                let frame = self.summary.graph.nodes[self.node].frame;
                let pointee = self.pointee(ty)?;
                let initial = match initializer {
                    Some(initializer) => self.value(initializer),
                    None => self.unwritten_value(pointee)?,
                };
                self.state.insert((frame, result), initial);
                Value::Pointer(Rc::new(Pointer::Local {
                    key: (frame, result),
                    path: Vec::new(),
                    ty: pointee,
                }))
            }
            SpirvOperation::Load { pointer, memory } => self.load(pointer, ty, memory)?,
            SpirvOperation::Store { pointer, value, memory } => {
                let value = self.value(value);
                return self.store(pointer, value, memory);
            }
            SpirvOperation::CopyMemory { target, source, memory: [of_store, of_load] } => {
                let Some(ty) = self.pointer_of(source)?.pointee() else { return refuse(self) };
                let value = self.load(source, ty, of_load)?;
                return self.store(target, value, of_store);
            }
            SpirvOperation::AccessChain { base, element, indices } => {
                self.access_chain(base, element, indices)?
            }
            SpirvOperation::ArrayLength { block, member } => self.array_length(block, member)?,
            SpirvOperation::Atomic(access) => self.atomic(access, ty)?,
            SpirvOperation::Image(operation) => self.execute_image(operation, ty)?,
            SpirvOperation::Subgroup(one) if one.function == SubgroupFunction::Elect => {
                let (everyone, range) = (Uniformity::Invocation, (0, 1));
                let result = self.unknown(FunctionKind::Elected, 1, range, everyone, Vec::new());
                self.summary.elections.push(Election { result, node: self.node, reach: self.reach });
                Value::Scalar(result)
            }
            SpirvOperation::Undef
            | SpirvOperation::Subgroup(_)
            | SpirvOperation::BallotQuery { .. }
            | SpirvOperation::Derivative { .. }
            | SpirvOperation::ReadClock { .. }
            | SpirvOperation::IsHelperInvocation
            | SpirvOperation::ComparePointers { .. } => self.arbitrary_value(ty)?,
            SpirvOperation::Copy { value } => self.value(value),
            SpirvOperation::ConvertPointer { .. } => Value::Opaque,
            SpirvOperation::Select { condition, yes, no } => {
                let (condition, yes, no) = (self.value(condition), self.value(yes), self.value(no));
                self.select_value(&condition, &yes, &no)
            }
            SpirvOperation::Composite(operation) => self.execute_composite(operation, ty)?,
            SpirvOperation::Bitcast { value } => {
                let from = self.value(value);
                match from {
                    Value::Pointer(_) => from,
                    Value::Scalar(_) | Value::Composite(_) | Value::Opaque => self.bitcast(&from, ty)?,
                }
            }
            SpirvOperation::Compute { instruction, operands } => self.compute(instruction, operands, ty)?,
            SpirvOperation::ComputeAndStore { instruction, value, pointer } => {
                let value = self.value(value).terms();
                let Some(stored) = self.pointer_of(pointer)?.pointee() else { return refuse(self) };
                let stored = self.uninterpreted(&format!("{instruction:?} stored"), &value, stored)?;
                self.store(pointer, stored, Default::default())?;
                self.uninterpreted(&format!("{instruction:?}"), &value, ty)?
            }
            SpirvOperation::RayQuery { .. } if result == 0 => return Ok(()),
            SpirvOperation::RayQuery { .. } => self.arbitrary_value(ty)?,
            SpirvOperation::Kill { demotes: true }
            | SpirvOperation::EmitMeshTasks { .. }
            | SpirvOperation::SetMeshOutputs { .. }
            | SpirvOperation::CopyMemorySized { .. }
            | SpirvOperation::BeginInterlock
            | SpirvOperation::EndInterlock
            | SpirvOperation::CooperativeMatrix(_)
            | SpirvOperation::UnknownExtended { .. }
            | SpirvOperation::Unknown { .. } => return refuse(self),
        };
        if result != 0 {
            self.define(result, value);
        }
        Ok(())
    }

    fn execute_image(&mut self, operation: ImageOperation, ty: u32) -> Result<Value, Unproved> {
        match operation {
            ImageOperation::Read { image, coordinate, operands } => {
                self.access_texel(image, coordinate, None, operands.memory)?;
                self.arbitrary_value(ty)
            }
            ImageOperation::Write { image, coordinate, texel, operands } => {
                let texel = self.value(texel);
                self.access_texel(image, coordinate, Some(texel), operands.memory)?;
                Ok(Value::Opaque)
            }
            ImageOperation::TexelPointer { image, coordinate } => {
                let coordinates = self.value(coordinate).terms();
                let pointee = self.pointee(ty)?;
                let pointer = self.pointer_of(image)?;
                let Pointer::Image { descriptor } = &*pointer else {
                    let name = format!("Op{:?}", Op::ImageTexelPointer);
                    return Err(self.unproved(UnprovedReason::Instruction(name)));
                };
                let descriptor = descriptor.clone();
                Ok(Value::Pointer(Rc::new(Pointer::Texel { descriptor, coordinates, ty: pointee })))
            }
            ImageOperation::Query { query, image } => {
                // Sizes of one image and level are the same for the whole grid.
                let mut sources = match query {
                    ImageQuery::SizeOfLevel { level } => self.value(level).terms(),
                    ImageQuery::Size | ImageQuery::Levels | ImageQuery::Samples => Vec::new(),
                };
                let uniformity = match self.pointer_of(image).as_deref() {
                    Ok(Pointer::Image { descriptor }) => {
                        sources.extend(descriptor.element);
                        self.terms().uniformity_of(&sources)
                    }
                    _ => Uniformity::Invocation,
                };
                self.build(ty, &mut |executor, width| executor.arbitrary(width, uniformity, sources.clone()))
            }
            ImageOperation::Fetch { .. } | ImageOperation::Sample { .. } => self.arbitrary_value(ty),
            ImageOperation::ImageOf { sampled: image } | ImageOperation::Combine { image, .. } => {
                Ok(self.value(image))
            }
        }
    }

    fn execute_composite(&mut self, operation: CompositeOperation<'_>, ty: u32) -> Result<Value, Unproved> {
        Ok(match operation {
            CompositeOperation::Construct { parts } => self.construct(ty, parts)?,
            CompositeOperation::Extract { composite, path } => {
                let mut value = self.value(composite);
                for index in path {
                    value = match &value {
                        Value::Composite(parts) => {
                            parts.get(*index as usize).cloned().unwrap_or(Value::Opaque)
                        }
                        Value::Scalar(_) | Value::Pointer(_) | Value::Opaque => Value::Opaque,
                    };
                }
                if value == Value::Opaque { self.arbitrary_value(ty)? } else { value }
            }
            CompositeOperation::Insert { value, composite, path } => {
                let (part, whole) = (self.value(value), self.value(composite));
                insert_part(&whole, path, &part)
            }
            CompositeOperation::Shuffle { first, second, components } => {
                let mut all = self.value(first).terms();
                all.extend(self.value(second).terms());
                let width = self.summary.specialized.scalar_bits(ty).unwrap_or(32);
                let parts = components.iter().map(|index| match all.get(*index as usize) {
                    Some(term) => Value::Scalar(*term),
                    None => Value::Scalar(self.arbitrary(width, Uniformity::Invocation, Vec::new())),
                });
                Value::Composite(parts.collect())
            }
            CompositeOperation::ExtractDynamic { vector, index } => {
                let (parts, index) = (self.value(vector), self.value(index).scalar());
                match index {
                    Some(index) => self.load_part(&parts, &[index], ty)?,
                    None => self.arbitrary_value(ty)?,
                }
            }
            CompositeOperation::InsertDynamic { vector, component, index } => {
                let (parts, value, index) = (self.value(vector), self.value(component), self.value(index));
                match index.scalar() {
                    Some(index) => self.store_part(&parts, &[index], &value),
                    None => self.arbitrary_value(ty)?,
                }
            }
        })
    }

    fn execute_barrier(&mut self, operation: &SpirvOperation<'_>) -> Result<(), Unproved> {
        let SpirvOperation::ControlBarrier { part, execution, scope, semantics } = operation else {
            return Ok(());
        };
        if *part != spirv_reader::BarrierPart::Whole {
            return Err(self.unproved(UnprovedReason::Instruction("a split barrier".to_owned())));
        }
        let module = self.summary.module;
        let number = |id: &u32| self.summary.specialized.constant_number(*id);
        let scope_of = |id: &u32| {
            number(id).and_then(|word| spirv_reader::scope_from_word(word, module.uses_vulkan_model).ok())
        };
        let semantics = number(semantics).and_then(|word| spirv_reader::semantics_from_word(word).ok());
        let (Some(execution), Some(scope), Some(semantics)) =
            (scope_of(execution), scope_of(scope), semantics)
        else {
            return Err(self.unproved(UnprovedReason::Instruction("a barrier of unknown scope".to_owned())));
        };
        // A barrier of a subgroup orders nothing between other invocations of the workgroup.
        if !matches!(execution, Scope::Subgroup | Scope::Invocation) {
            let (node, reach, line, place) = (self.node, self.reach, self.line, self.place);
            let history = self.terms().truth(true);
            self.summary.barriers.push(Barrier { node, scope, semantics, reach, history, line, place });
        }
        Ok(())
    }

    /// Returns the type that a pointer type points to.
    pub fn pointee(&self, ty: u32) -> Result<u32, Unproved> {
        match self.summary.module.types.get(&ty) {
            Some(SpirvType::Pointer { pointee, .. }) => Ok(*pointee),
            _ => Err(self.unproved(UnprovedReason::UnknownPointer)),
        }
    }

    /// Builds a value of a type from a function that returns a scalar of a width.
    pub fn build(
        &mut self,
        ty: u32,
        make: &mut dyn FnMut(&mut Self, u32) -> TermId,
    ) -> Result<Value, Unproved> {
        let start = self.terms().constant(64, 0);
        let part_of: PartFunction = |specialized, ty, index| specialized.part_of(ty, index);
        self.build_at(ty, start, part_of, &mut |executor, _, width| make(executor, width))
    }

    /// Builds a value from a function of the byte offset and the width of each scalar.
    pub fn build_at(
        &mut self,
        ty: u32,
        offset: TermId,
        part_of: PartFunction,
        make: &mut dyn FnMut(&mut Self, TermId, u32) -> TermId,
    ) -> Result<Value, Unproved> {
        if self.scalar_count(ty, 0).is_none_or(|count| count > MAX_PARTS) {
            return Ok(Value::Opaque);
        }
        let (module, specialized) = (self.summary.module, self.summary.specialized);
        Ok(match module.types.get(&ty) {
            Some(SpirvType::Bool | SpirvType::Integer { .. } | SpirvType::Float { .. }) => {
                let width = specialized.scalar_bits(ty).map_err(|_| self.too_large())?;
                Value::Scalar(make(self, offset, width))
            }
            Some(
                SpirvType::Vector { .. }
                | SpirvType::Matrix { .. }
                | SpirvType::Array { .. }
                | SpirvType::Struct { .. },
            ) => {
                let count = specialized.part_count(ty).map_err(|_| self.too_large())?;
                let mut parts = Vec::with_capacity(count);
                for index in 0..count {
                    let part = part_of(specialized, ty, index as u64).map_err(|_| self.too_large())?;
                    let offset = self.terms().sum(64, &[(offset, 1)], part.offset);
                    parts.push(self.build_at(part.ty, offset, part_of, make)?);
                }
                Value::Composite(parts.into())
            }
            Some(
                SpirvType::Void
                | SpirvType::RuntimeArray { .. }
                | SpirvType::Pointer { .. }
                | SpirvType::Function { .. }
                | SpirvType::Handle(_),
            )
            | None => Value::Opaque,
        })
    }

    /// Returns the number of scalars of a type; `None` if it is not finite.
    fn scalar_count(&self, ty: u32, depth: u32) -> Option<usize> {
        let (module, specialized) = (self.summary.module, self.summary.specialized);
        let inner = |index: usize| {
            let part = specialized.part_of(ty, index as u64).ok().filter(|_| depth < 16)?;
            self.scalar_count(part.ty, depth + 1)
        };
        match (module.types.get(&ty)?, specialized.part_count(ty).ok()?) {
            (SpirvType::Struct { .. }, count) => {
                (0..count).try_fold(0_usize, |all, index| all.checked_add(inner(index)?))
            }
            (_, 0) => Some(1),
            (_, count) => inner(0)?.checked_mul(count),
        }
    }

    /// Returns the contents of a variable before its first store.
    pub fn unwritten_value(&mut self, ty: u32) -> Result<Value, Unproved> {
        self.build(ty, &mut |executor, width| {
            let range = (0, mask(width));
            executor.unknown(FunctionKind::Unwritten, width, range, Uniformity::Invocation, Vec::new())
        })
    }

    pub fn arbitrary_value(&mut self, ty: u32) -> Result<Value, Unproved> {
        self.build(ty, &mut |executor, width| executor.arbitrary(width, Uniformity::Invocation, Vec::new()))
    }

    /// Returns a value as an uninterpreted function of terms.
    pub fn uninterpreted(&mut self, name: &str, arguments: &[TermId], ty: u32) -> Result<Value, Unproved> {
        let (mut part, shape) = (0, widths_name(arguments, &self.summary.terms));
        self.build(ty, &mut |executor, width| {
            part += 1;
            let kind = FunctionKind::Computation(format!("{name} {part} {shape}"));
            executor.terms().apply_named(kind, width, arguments)
        })
    }

    /// Returns the value of a module-level id.
    pub fn constant_value(&mut self, id: u32) -> Value {
        let module = self.summary.module;
        if let Some(variable) = module.variables.get(&id) {
            return self.variable_pointer(id, variable.ty, variable.class);
        }
        let Some((ty, constant)) = module.constants.get(&id) else { return Value::Opaque };
        let built_in = module.decorations_of(id).built_in;
        if built_in == Some(BuiltIn::WorkgroupSize) {
            return Value::Composite(self.summary.local_size.map(Value::Scalar).into());
        }
        let value = match constant {
            SpirvConstant::Composite(parts) => {
                let parts: Vec<Value> = parts.iter().map(|part| self.constant_value(*part)).collect();
                return Value::Composite(parts.into());
            }
            SpirvConstant::Undefined => self.arbitrary_value(*ty),
            SpirvConstant::Null => {
                self.build(*ty, &mut |executor, width| executor.terms().constant(width, 0))
            }
            SpirvConstant::Scalar(_) if self.symbolic_constants.contains(&id) => {
                let kind = FunctionKind::Specialization(representative_constant(self.summary.module, id));
                self.build(*ty, &mut |executor, width| executor.terms().apply_named(kind.clone(), width, &[]))
            }
            SpirvConstant::Scalar(_) => match self.summary.specialized.constant_number(id) {
                Some(number) => {
                    self.build(*ty, &mut |executor, width| executor.terms().constant(width, number))
                }
                None => self.arbitrary_value(*ty),
            },
            SpirvConstant::Operation(op, operands) => self.constant_operation(*op, operands, *ty),
        };
        value.unwrap_or(Value::Opaque)
    }

    fn constant_operation(&mut self, op: Op, operands: &[u32], ty: u32) -> Result<Value, Unproved> {
        let module = self.summary.module;
        let Ok(operation) = module.decode_operation(op, operands) else { return Ok(Value::Opaque) };
        if let SpirvOperation::Compute { instruction, operands } = operation {
            return self.compute(instruction, operands, ty);
        }
        if let SpirvOperation::Select { condition, yes, no } = operation {
            let (condition, yes, no) = (self.value(condition), self.value(yes), self.value(no));
            return Ok(self.select_value(&condition, &yes, &no));
        }
        if let SpirvOperation::Composite(CompositeOperation::Extract { composite, path: [index] }) = operation
            && let Value::Composite(parts) = self.value(composite)
        {
            return Ok(parts.get(*index as usize).cloned().unwrap_or(Value::Opaque));
        }
        self.arbitrary_value(ty)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other classes have no memory that is followed")]
    fn variable_pointer(&mut self, id: u32, ty: u32, class: StorageClass) -> Value {
        let decorations = self.summary.module.decorations_of(id);
        let descriptor = Descriptor {
            variable: self.canonical_variable(id),
            element: None,
            is_coherent: decorations.coherent || decorations.volatile,
        };
        let offset = self.terms().constant(64, 0);
        let pointer = match class {
            StorageClass::UniformConstant => Pointer::Image { descriptor },
            StorageClass::StorageBuffer
            | StorageClass::Uniform
            | StorageClass::PushConstant
            | StorageClass::Workgroup => Pointer::Memory { descriptor, offset, ty, in_bounds: None },
            StorageClass::Input | StorageClass::Private | StorageClass::Function | StorageClass::Output => {
                Pointer::Local { key: (0, id), path: Vec::new(), ty }
            }
            _ => return Value::Opaque,
        };
        Value::Pointer(Rc::new(pointer))
    }

    /// Returns the first variable of the same descriptor.
    pub fn canonical_variable(&self, id: u32) -> u32 {
        let module = self.summary.module;
        let decorations = module.decorations_of(id);
        let Some(binding) = decorations.binding else {
            // Blocks in workgroup memory share it, from its start.
            let is_shared_block = |id: u32| {
                module.variables.get(&id).is_some_and(|variable| {
                    variable.class == StorageClass::Workgroup && module.decorations_of(variable.ty).block
                })
            };
            let blocks = || module.variables.keys().copied().filter(|id| is_shared_block(*id));
            return blocks().min().filter(|_| is_shared_block(id)).unwrap_or(id);
        };
        module.variables_at((decorations.set.unwrap_or(0), binding)).first().copied().unwrap_or(id)
    }

    fn select_value(&mut self, condition: &Value, yes: &Value, no: &Value) -> Value {
        match (condition, yes, no) {
            (Value::Scalar(condition), _, _) => yes.select(no, *condition, &mut self.summary.terms),
            (Value::Composite(conditions), Value::Composite(yes), Value::Composite(no)) => Value::Composite(
                conditions
                    .iter()
                    .zip(yes.iter().zip(no.iter()))
                    .map(|(condition, (yes, no))| self.select_value(condition, yes, no))
                    .collect(),
            ),
            _ => Value::Opaque,
        }
    }

    fn construct(&mut self, ty: u32, parts: &[u32]) -> Result<Value, Unproved> {
        let values: Vec<Value> = parts.iter().map(|part| self.value(*part)).collect();
        // A vector may be made of smaller ones.
        if let Some(SpirvType::Vector { count, .. }) = self.summary.module.types.get(&ty) {
            let mut all = Vec::new();
            values.iter().for_each(|value| value.collect_terms(&mut all));
            if all.len() != *count as usize {
                return self.arbitrary_value(ty);
            }
            return Ok(Value::Composite(all.into_iter().map(Value::Scalar).collect()));
        }
        Ok(Value::Composite(values.into()))
    }

    fn bitcast(&mut self, from: &Value, ty: u32) -> Result<Value, Unproved> {
        let terms = from.terms();
        let width = self.summary.specialized.scalar_bits(ty).unwrap_or(0);
        if terms.iter().all(|term| self.summary.terms.width(*term) == width) && *from != Value::Opaque {
            return Ok(from.clone());
        }
        self.uninterpreted("Bitcast", &terms, ty)
    }

    /// Computes an instruction on numbers.
    pub fn compute(
        &mut self,
        instruction: Instruction,
        operands: &[u32],
        ty: u32,
    ) -> Result<Value, Unproved> {
        let values: Vec<Value> = operands.iter().map(|id| self.value(*id)).collect();
        if values.contains(&Value::Opaque) {
            return self.arbitrary_value(ty);
        }
        let is_float = operands.first().is_some_and(|id| self.is_float(*id));
        let name = format!("{instruction:?}");
        if let (Instruction::Core(op @ (Op::All | Op::Any)), [vector]) = (instruction, values.as_slice())
            && !vector.is_partly_opaque()
        {
            let (terms, parts) = (self.terms(), vector.terms());
            return Ok(Value::Scalar(if op == Op::All { terms.every(&parts) } else { terms.any(&parts) }));
        }
        if let (Instruction::Core(op), [a, b]) = (instruction, values.as_slice())
            && let Some(pair) = self.compute_pair(op, a, b)
        {
            return Ok(pair);
        }
        if !instruction.is_componentwise() {
            let terms: Vec<TermId> = values.iter().flat_map(Value::terms).collect();
            return self.uninterpreted(&name, &terms, ty);
        }
        let width = self.summary.specialized.scalar_bits(ty).unwrap_or(32);
        let count = match self.summary.module.types.get(&ty) {
            Some(SpirvType::Vector { count, .. }) => Some(*count as usize),
            Some(SpirvType::Bool | SpirvType::Integer { .. } | SpirvType::Float { .. }) => None,
            _ => {
                let terms: Vec<TermId> = values.iter().flat_map(Value::terms).collect();
                return self.uninterpreted(&name, &terms, ty);
            }
        };
        let lists: Vec<Vec<TermId>> = values.iter().map(Value::terms).collect();
        if lists.iter().any(Vec::is_empty) {
            return self.arbitrary_value(ty);
        }
        let mut component = |index: usize| {
            let arguments: Vec<TermId> = lists.iter().map(|list| list[index.min(list.len() - 1)]).collect();
            let modelled =
                if is_float { None } else { self.compute_component(instruction, &arguments, width) };
            modelled.unwrap_or_else(|| {
                let kind = FunctionKind::Computation(format!(
                    "{name} {}",
                    widths_name(&arguments, &self.summary.terms)
                ));
                self.summary.terms.apply_named(kind, width, &arguments)
            })
        };
        Ok(match count {
            None => Value::Scalar(component(0)),
            Some(count) => {
                Value::Composite((0..count).map(|index| Value::Scalar(component(index))).collect())
            }
        })
    }

    /// Computes the two results of an instruction on integers of at most 32 bits: the low and the high bits.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other instructions have one result")]
    fn compute_pair(&mut self, op: Op, a: &Value, b: &Value) -> Option<Value> {
        if let (Value::Composite(x), Value::Composite(y)) = (a, b) {
            let pairs: Option<Vec<Value>> =
                x.iter().zip(y.iter()).map(|(x, y)| self.compute_pair(op, x, y)).collect();
            let half = |half: usize, pairs: &[Value]| {
                let parts = pairs.iter().map(|pair| match pair {
                    Value::Composite(parts) => parts[half].clone(),
                    Value::Scalar(_) | Value::Pointer(_) | Value::Opaque => Value::Opaque,
                });
                Value::Composite(parts.collect())
            };
            return pairs.map(|pairs| Value::Composite([half(0, &pairs), half(1, &pairs)].into()));
        }
        let (a, b, terms) = (a.scalar()?, b.scalar()?, &mut self.summary.terms);
        let width = Some(terms.width(a)).filter(|width| *width <= 32)?;
        let [low, high] = match op {
            Op::UMulExtended | Op::SMulExtended => {
                let [x, y] = [a, b].map(|one| terms.extend(one, 2 * width, op == Op::SMulExtended));
                let (product, amount) = (terms.multiply(x, y), terms.constant(2 * width, width.into()));
                let high = terms.binary(Operator::ShiftRight, product, amount);
                [terms.multiply(a, b), terms.extend(high, width, false)]
            }
            Op::IAddCarry | Op::ISubBorrow => {
                let is_sum = op == Op::IAddCarry;
                let low = if is_sum { terms.add(a, b) } else { terms.subtract(a, b) };
                let (less, than) = if is_sum { (low, a) } else { (a, b) };
                let carry = terms.binary(Operator::Less, less, than);
                [low, terms.extend(carry, width, false)]
            }
            _ => return None,
        };
        Some(Value::Composite([Value::Scalar(low), Value::Scalar(high)].into()))
    }

    fn is_float(&self, id: u32) -> bool {
        let frame = self.summary.graph.nodes[self.node].frame;
        let function = self.summary.graph.frames[frame].function;
        let ty = function.types.get(&id).or_else(|| self.summary.module.constants.get(&id).map(|(ty, _)| ty));
        let mut ty = ty.and_then(|ty| self.summary.module.types.get(ty));
        while let Some(SpirvType::Vector { element, .. } | SpirvType::Matrix { column: element, .. }) = ty {
            ty = self.summary.module.types.get(element);
        }
        matches!(ty, Some(SpirvType::Float { .. }))
    }

    /// Computes one component on integers or booleans; `None` without a model.
    fn compute_component(
        &mut self,
        instruction: Instruction,
        arguments: &[TermId],
        width: u32,
    ) -> Option<TermId> {
        let (a, b) = (*arguments.first()?, arguments.get(1).copied());
        match instruction {
            Instruction::Core(op) => self.compute_core(op, a, b, arguments, width),
            Instruction::Extended(op) => self.compute_extended(op, a, b, arguments.get(2).copied()),
            Instruction::Unpack(_) | Instruction::Pack(_) => None,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "instructions without an arm have no model")]
    fn compute_core(
        &mut self,
        op: Op,
        a: TermId,
        b: Option<TermId>,
        arguments: &[TermId],
        width: u32,
    ) -> Option<TermId> {
        let from = self.summary.terms.width(a);
        let operator = match op {
            Op::UDiv => Some(Operator::Divide),
            Op::UMod => Some(Operator::Remainder),
            Op::SDiv => Some(Operator::DivideSigned),
            Op::SRem => Some(Operator::RemainderSigned),
            _ => None,
        };
        if let (Some(operator), Some(b)) = (operator.clone(), b) {
            self.assume_divisor(a, b, matches!(operator, Operator::DivideSigned | Operator::RemainderSigned));
            return Some(self.terms().binary(operator, a, b));
        }
        let shift = match op {
            Op::ShiftLeftLogical => Some(Operator::ShiftLeft),
            Op::ShiftRightLogical => Some(Operator::ShiftRight),
            Op::ShiftRightArithmetic => Some(Operator::ShiftRightSigned),
            _ => None,
        };
        if let (Some(operator), Some(amount)) = (shift, b) {
            let amount_width = self.summary.terms.width(amount);
            let limit = self.terms().constant(amount_width, from.into());
            let is_defined = self.terms().binary(Operator::Less, amount, limit);
            let amount = self.terms().extend(amount, from, false);
            let shifted = self.terms().binary(operator, a, amount);
            if self.summary.terms.constant_of(is_defined) == Some(1) {
                return Some(shifted);
            }
            // The result of a larger shift is undefined.
            let undefined = self.arbitrary(from, Uniformity::Invocation, Vec::new());
            return Some(self.terms().select(is_defined, shifted, undefined));
        }
        let terms = &mut self.summary.terms;
        Some(match op {
            Op::IAdd => terms.add(a, b?),
            Op::ISub => terms.subtract(a, b?),
            Op::IMul => terms.multiply(a, b?),
            Op::SNegate => terms.scale(a, u64::MAX),
            Op::Not => terms.sum(width, &[(a, u64::MAX)], u64::MAX),
            Op::SMod => {
                let b = b?;
                let are_positive = terms.is_non_negative(a) && terms.is_non_negative(b);
                self.assume_divisor(a, b, true);
                let terms = self.terms();
                if are_positive {
                    return Some(terms.binary(Operator::Remainder, a, b));
                }
                // A remainder that is not zero gets the sign of the divisor.
                let (zero, rest) = (terms.constant(width, 0), terms.binary(Operator::RemainderSigned, a, b));
                let signs = [rest, b].map(|one| terms.binary(Operator::LessSigned, one, zero));
                let (is_zero, has_sign) = (terms.equal(rest, zero), terms.equal(signs[0], signs[1]));
                let (is_modulus, moved) = (terms.any(&[is_zero, has_sign]), terms.add(rest, b));
                terms.select(is_modulus, rest, moved)
            }
            Op::BitwiseAnd => terms.binary(Operator::And, a, b?),
            Op::BitwiseOr => terms.binary(Operator::Or, a, b?),
            Op::BitwiseXor => terms.binary(Operator::Xor, a, b?),
            Op::UConvert => terms.extend(a, width, false),
            Op::SConvert => terms.extend(a, width, true),
            Op::LogicalNot => terms.not(a),
            Op::LogicalAnd => terms.every(&[a, b?]),
            Op::LogicalOr => terms.any(&[a, b?]),
            Op::LogicalEqual | Op::IEqual => terms.equal(a, b?),
            Op::LogicalNotEqual | Op::INotEqual => {
                let equal = terms.equal(a, b?);
                terms.not(equal)
            }
            Op::ULessThan => terms.binary(Operator::Less, a, b?),
            Op::UGreaterThan => terms.binary(Operator::Less, b?, a),
            Op::SLessThan => terms.binary(Operator::LessSigned, a, b?),
            Op::SGreaterThan => terms.binary(Operator::LessSigned, b?, a),
            Op::ULessThanEqual | Op::UGreaterThanEqual | Op::SLessThanEqual | Op::SGreaterThanEqual => {
                let operator = match op {
                    Op::ULessThanEqual | Op::UGreaterThanEqual => Operator::Less,
                    _ => Operator::LessSigned,
                };
                let is_less = matches!(op, Op::ULessThanEqual | Op::SLessThanEqual);
                let opposite =
                    if is_less { terms.binary(operator, b?, a) } else { terms.binary(operator, a, b?) };
                terms.not(opposite)
            }
            Op::Select => terms.select(a, b?, *arguments.get(2)?),
            Op::BitFieldUExtract => {
                let offset = terms.constant_of(b?)?;
                let count = terms.constant_of(*arguments.get(2)?)?;
                if offset.saturating_add(count) > width.into() {
                    return None;
                }
                let (offset, bits) =
                    (terms.constant(width, offset), terms.constant(width, mask(count as u32)));
                let shifted = terms.binary(Operator::ShiftRight, a, offset);
                terms.binary(Operator::And, shifted, bits)
            }
            Op::CopyObject | Op::CopyLogical => a,
            _ => return None,
        })
    }

    /// Assumes that a quotient is defined, as an execution without a defined result proves nothing.
    fn assume_divisor(&mut self, a: TermId, b: TermId, is_signed: bool) {
        let width = self.summary.terms.width(b);
        let terms = &mut self.summary.terms;
        let zero = terms.constant(width, 0);
        let is_zero = terms.equal(b, zero);
        let mut defined = vec![terms.not(is_zero)];
        if is_signed && !terms.is_non_negative(a) {
            let (least, minus) =
                (terms.constant(width, 1 << (width - 1)), terms.constant(width, mask(width)));
            let (overflow_a, overflow_b) = (terms.equal(a, least), terms.equal(b, minus));
            let overflows = terms.every(&[overflow_a, overflow_b]);
            defined.push(terms.not(overflows));
        }
        let defined = terms.every(&defined);
        self.summary.assumes_divisors |= self.summary.terms.constant_of(defined) != Some(1);
        let facts = self.facts;
        self.facts = self.terms().every(&[facts, defined]);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "functions without an arm have no model")]
    fn compute_extended(
        &mut self,
        op: GlslStd450Op,
        a: TermId,
        b: Option<TermId>,
        c: Option<TermId>,
    ) -> Option<TermId> {
        let terms = &mut self.summary.terms;
        let mut least = |operator: Operator, a: TermId, b: TermId, takes_less: bool| {
            let is_less = terms.binary(operator, a, b);
            if takes_less { terms.select(is_less, a, b) } else { terms.select(is_less, b, a) }
        };
        Some(match op {
            GlslStd450Op::UMin => least(Operator::Less, a, b?, true),
            GlslStd450Op::UMax => least(Operator::Less, a, b?, false),
            GlslStd450Op::SMin => least(Operator::LessSigned, a, b?, true),
            GlslStd450Op::SMax => least(Operator::LessSigned, a, b?, false),
            GlslStd450Op::UClamp => {
                let low = least(Operator::Less, a, b?, false);
                least(Operator::Less, low, c?, true)
            }
            GlslStd450Op::SClamp => {
                let low = least(Operator::LessSigned, a, b?, false);
                least(Operator::LessSigned, low, c?, true)
            }
            _ => return None,
        })
    }
}

/// Replaces the part of a value at a path.
fn insert_part(whole: &Value, path: &[u32], part: &Value) -> Value {
    let Some((index, path)) = path.split_first() else { return part.clone() };
    match whole {
        Value::Composite(parts) => {
            let mut parts = parts.to_vec();
            if let Some(here) = parts.get_mut(*index as usize) {
                *here = insert_part(here, path, part);
            }
            Value::Composite(parts.into())
        }
        Value::Scalar(_) | Value::Pointer(_) | Value::Opaque => Value::Opaque,
    }
}

/// Returns a name for the widths of terms, which tells functions of different types apart.
fn widths_name(arguments: &[TermId], terms: &crate::term::TermArena) -> String {
    arguments.iter().map(|argument| terms.width(*argument).to_string()).collect::<Vec<_>>().join(",")
}
