//! Selects the lowering of each operation, and refuses unsupported operations.

use spirv_reader::{ImageQuery, SpirvOperation};

use super::Lowering;
use crate::instruction::{LoadError, LocatedInstruction};
use crate::program::Op;

impl Lowering<'_> {
    /// Lowers an instruction.
    pub(super) fn instruction(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        match self.module.operation(placed)? {
            SpirvOperation::Nop | SpirvOperation::LoopMerge { .. } => Ok(()),
            SpirvOperation::Label => {
                self.label = placed.result_id()?;
                self.block = self.blocks.get(&self.label).copied().unwrap_or(0);
                self.awaited.clear();
                // The first block begins with the addresses of global variables.
                let start = if self.block == 0 { 0 } else { self.program.ops.len() as u32 };
                self.program.blocks.push(start);
                Ok(())
            }
            SpirvOperation::SelectionMerge { merge } => {
                let merge = self.blocks.get(&merge).copied().unwrap_or(0);
                for inside in self.block + 1..merge {
                    if let Some(nested) = self.program.nested.get_mut(inside as usize) {
                        *nested = true;
                    }
                }
                Ok(())
            }
            SpirvOperation::Phi { sources } => self.phi(placed, sources),
            SpirvOperation::Branch { target } => {
                let edge = self.edge(placed, target)?;
                self.program.ops.push(Op::Jump { edge });
                Ok(())
            }
            SpirvOperation::BranchConditional { condition, yes, no } => {
                let condition = self.value(placed, condition)?;
                let (yes, no) = (self.edge(placed, yes)?, self.edge(placed, no)?);
                self.program.ops.push(Op::Branch { condition, yes, no });
                Ok(())
            }
            SpirvOperation::Switch { selector, default, cases } => {
                self.switch(placed, selector, default, cases)
            }
            SpirvOperation::Return { value: None } => {
                self.program.ops.push(Op::Return);
                Ok(())
            }
            // Nothing is rasterized here, and nothing launched.
            SpirvOperation::SetMeshOutputs { counts } => self.gives_nothing(placed, &counts),
            SpirvOperation::EmitMeshTasks { groups } => {
                self.gives_nothing(placed, &groups)?;
                self.program.ops.push(Op::Return);
                Ok(())
            }
            SpirvOperation::Variable { initializer } => self.variable(placed, initializer),
            SpirvOperation::Load { pointer, memory } => self.load(placed, pointer, memory),
            SpirvOperation::Store { pointer, value, memory } => self.store(placed, pointer, value, memory),
            SpirvOperation::AccessChain { base, element: None, indices } => {
                self.access_chain(placed, base, indices)
            }
            SpirvOperation::ArrayLength { block, member } => self.array_length(placed, block, member),
            SpirvOperation::Atomic(access) => self.atomic(placed, access),
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                self.memory_barrier(placed, scope, semantics)
            }
            SpirvOperation::ControlBarrier { part, execution, scope, semantics } => {
                self.control_barrier(placed, part, [execution, scope, semantics])
            }
            SpirvOperation::BeginInterlock => self.interlock(placed, true),
            SpirvOperation::EndInterlock => self.interlock(placed, false),
            SpirvOperation::ImageRead { image, coordinate, operands } => {
                self.read_texel(placed, [image, coordinate], &operands)
            }
            SpirvOperation::ImageWrite { image, coordinate, texel, operands } => {
                self.write_texel(placed, [image, coordinate, texel], &operands)
            }
            SpirvOperation::ImageTexelPointer { image, coordinate } => {
                self.texel_pointer(placed, image, coordinate)
            }
            SpirvOperation::ImageQuery { query: ImageQuery::Size, image } => self.image_size(placed, image),
            SpirvOperation::Subgroup(operation) => self.group(placed, operation),
            SpirvOperation::BallotQuery { query, scope, ballot } => self.ballot(placed, query, scope, ballot),
            SpirvOperation::Undef => {
                let to = self.late(placed, placed.result_id()?)?;
                for word in 0..self.width_of(placed.result_id()?) {
                    self.program.ops.push(Op::Copy { to: to + word, from: self.fixed.zero });
                }
                Ok(())
            }
            SpirvOperation::Copy { value } => {
                let (from, reference) = self.value_or_address(placed, value)?;
                let to = self.destination(placed, reference)?;
                self.copy(to, from, self.width_of(value));
                Ok(())
            }
            SpirvOperation::Select { condition, yes, no } => self.select(placed, condition, yes, no),
            SpirvOperation::CompositeConstruct { parts } => self.composite_construct(placed, parts),
            SpirvOperation::CompositeExtract { composite, path } => {
                self.composite_extract(placed, composite, path)
            }
            SpirvOperation::CompositeInsert { value, composite, path } => {
                self.composite_insert(placed, [value, composite], path)
            }
            SpirvOperation::VectorShuffle { first, second, components } => {
                self.vector_shuffle(placed, [first, second], components)
            }
            SpirvOperation::VectorExtractDynamic { vector, index } => {
                self.vector_extract(placed, vector, index)
            }
            SpirvOperation::VectorInsertDynamic { vector, component, index } => {
                self.vector_insert(placed, [vector, component, index])
            }
            SpirvOperation::Bitcast { value } => self.bitcast(placed, value),
            SpirvOperation::Compute { instruction, operands } => self.compute(placed, instruction, operands),
            SpirvOperation::UnknownExtended { set, number } => {
                Err(self.module.source().unknown_extended(set, number).into())
            }
            SpirvOperation::ComputeAndStore { instruction, .. } => {
                Err(LoadError::Lacks(format!("OpExtInst {instruction:?}")))
            }
            // Legalization has replaced calls, copies of memory and values of calls.
            SpirvOperation::Call { .. }
            | SpirvOperation::Return { value: Some(_) }
            | SpirvOperation::Kill { .. }
            | SpirvOperation::Unreachable
            | SpirvOperation::CopyMemory { .. }
            | SpirvOperation::CopyMemorySized { .. }
            | SpirvOperation::AccessChain { element: Some(_), .. }
            | SpirvOperation::ComparePointers { .. }
            | SpirvOperation::ConvertPointer { .. }
            | SpirvOperation::ImageFetch { .. }
            | SpirvOperation::ImageSample { .. }
            | SpirvOperation::ImageQuery { .. }
            | SpirvOperation::Image { .. }
            | SpirvOperation::SampledImage { .. }
            | SpirvOperation::CooperativeMatrixLoad(_)
            | SpirvOperation::CooperativeMatrixStore { .. }
            | SpirvOperation::CooperativeMatrixMulAdd { .. }
            | SpirvOperation::Derivative { .. }
            | SpirvOperation::ReadClock { .. }
            | SpirvOperation::IsHelperInvocation
            | SpirvOperation::RayQuery { .. }
            | SpirvOperation::Unknown { .. } => Err(placed.refuse("")),
        }
    }
}

/// Returns true if an instruction accesses memory by atomics or texels, or is a barrier.
pub(super) fn touches_memory(operation: &SpirvOperation<'_>) -> bool {
    matches!(
        operation,
        SpirvOperation::Atomic(_)
            | SpirvOperation::MemoryBarrier { .. }
            | SpirvOperation::ControlBarrier { .. }
            | SpirvOperation::BeginInterlock
            | SpirvOperation::EndInterlock
            | SpirvOperation::ImageRead { .. }
            | SpirvOperation::ImageWrite { .. }
            | SpirvOperation::ImageTexelPointer { .. }
    )
}
