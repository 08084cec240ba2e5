//! Selects the lowering of each operation, and refuses unsupported operations.

use spirv_reader::{ImageQuery, SpirvOperation};

use super::Lowering;
use crate::instruction::{LoadError, LocatedInstruction};
use crate::program::Op;

impl Lowering<'_> {
    pub(super) fn lower_instruction(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        match self.module.decode_instruction(placed)? {
            SpirvOperation::Nop | SpirvOperation::LoopMerge { .. } => Ok(()),
            SpirvOperation::Label => {
                self.label = placed.result_id()?;
                self.block = self.blocks.get(&self.label).copied().unwrap_or(0);
                self.awaited_registers.clear();
                // The first block begins with the addresses of global variables.
                let start = if self.block == 0 { 0 } else { self.program.ops.len() as u32 };
                self.program.blocks.push(start);
                Ok(())
            }
            SpirvOperation::SelectionMerge { merge } => {
                let merge = self.blocks.get(&merge).copied().unwrap_or(0);
                for inside in self.block + 1..merge {
                    if let Some(nested) = self.program.nested_blocks.get_mut(inside as usize) {
                        *nested = true;
                    }
                }
                Ok(())
            }
            SpirvOperation::Phi { sources } => self.lower_phi(placed, sources),
            SpirvOperation::Branch { target } => {
                let edge = self.add_edge(placed, target)?;
                self.program.ops.push(Op::Jump { edge });
                Ok(())
            }
            SpirvOperation::BranchConditional { condition, yes, no } => {
                let condition = self.awaited_register(placed, condition)?;
                let (yes, no) = (self.add_edge(placed, yes)?, self.add_edge(placed, no)?);
                self.program.ops.push(Op::Branch { condition, yes, no });
                Ok(())
            }
            SpirvOperation::Switch { selector, default, cases } => {
                self.lower_switch(placed, selector, default, cases)
            }
            SpirvOperation::Return { value: None } => {
                self.program.ops.push(Op::Return);
                Ok(())
            }
            // Nothing is rasterized here, and nothing launched.
            SpirvOperation::SetMeshOutputs { counts } => self.check_no_outputs(placed, &counts),
            SpirvOperation::EmitMeshTasks { groups } => {
                self.check_no_outputs(placed, &groups)?;
                self.program.ops.push(Op::Return);
                Ok(())
            }
            SpirvOperation::Variable { initializer } => self.lower_variable(placed, initializer),
            SpirvOperation::Load { pointer, memory } => self.lower_load(placed, pointer, memory),
            SpirvOperation::Store { pointer, value, memory } => {
                self.lower_store(placed, pointer, value, memory)
            }
            SpirvOperation::AccessChain { base, element: None, indices } => {
                self.lower_access_chain(placed, base, indices)
            }
            SpirvOperation::ArrayLength { block, member } => self.lower_array_length(placed, block, member),
            SpirvOperation::Atomic(access) => self.lower_atomic(placed, access),
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                self.lower_memory_barrier(placed, scope, semantics)
            }
            SpirvOperation::ControlBarrier { part, execution, scope, semantics } => {
                self.lower_control_barrier(placed, part, [execution, scope, semantics])
            }
            SpirvOperation::BeginInterlock => self.lower_interlock(placed, true),
            SpirvOperation::EndInterlock => self.lower_interlock(placed, false),
            SpirvOperation::ImageRead { image, coordinate, operands } => {
                self.lower_texel_read(placed, [image, coordinate], &operands)
            }
            SpirvOperation::ImageWrite { image, coordinate, texel, operands } => {
                self.lower_texel_write(placed, [image, coordinate, texel], &operands)
            }
            SpirvOperation::ImageTexelPointer { image, coordinate } => {
                self.lower_texel_pointer(placed, image, coordinate)
            }
            SpirvOperation::ImageQuery { query: ImageQuery::Size, image } => {
                self.lower_image_size(placed, image)
            }
            SpirvOperation::Subgroup(operation) => self.lower_group(placed, operation),
            SpirvOperation::BallotQuery { query, scope, ballot } => {
                self.lower_ballot(placed, query, scope, ballot)
            }
            SpirvOperation::Undef => {
                let to = self.pending_register(placed, placed.result_id()?)?;
                for word in 0..self.width_of(placed.result_id()?) {
                    self.program.ops.push(Op::Copy { to: to + word, from: self.fixed.zero });
                }
                Ok(())
            }
            SpirvOperation::Copy { value } => {
                let (from, reference) = self.awaited_value_or_address(placed, value)?;
                let to = self.destination(placed, reference)?;
                self.emit_copies(to, from, self.width_of(value));
                Ok(())
            }
            SpirvOperation::Select { condition, yes, no } => self.lower_select(placed, condition, yes, no),
            SpirvOperation::CompositeConstruct { parts } => self.lower_composite_construct(placed, parts),
            SpirvOperation::CompositeExtract { composite, path } => {
                self.lower_composite_extract(placed, composite, path)
            }
            SpirvOperation::CompositeInsert { value, composite, path } => {
                self.lower_composite_insert(placed, [value, composite], path)
            }
            SpirvOperation::VectorShuffle { first, second, components } => {
                self.lower_vector_shuffle(placed, [first, second], components)
            }
            SpirvOperation::VectorExtractDynamic { vector, index } => {
                self.lower_vector_extract(placed, vector, index)
            }
            SpirvOperation::VectorInsertDynamic { vector, component, index } => {
                self.lower_vector_insert(placed, [vector, component, index])
            }
            SpirvOperation::Bitcast { value } => self.lower_bitcast(placed, value),
            SpirvOperation::Compute { instruction, operands } => {
                self.lower_arithmetic(placed, instruction, operands)
            }
            SpirvOperation::UnknownExtended { set, number } => {
                Err(self.module.source().unknown_extended_instruction(set, number).into())
            }
            SpirvOperation::ComputeAndStore { instruction, .. } => {
                Err(LoadError::Unsupported(format!("OpExtInst {instruction:?}")))
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
            | SpirvOperation::Unknown { .. } => Err(placed.unsupported_error("")),
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
