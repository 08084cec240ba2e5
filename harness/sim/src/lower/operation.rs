//! Selects the lowering of each operation, and refuses unsupported operations.

use spirv_reader::{CompositeOperation, ImageOperation, ImageQuery, SpirvOperation};

use super::Lowering;
use crate::instruction::LoadError;
use crate::program::Op;

impl Lowering<'_> {
    pub(super) fn lower_instruction(&mut self) -> Result<(), LoadError> {
        match self.module.decode_instruction(self.current)? {
            SpirvOperation::Nop | SpirvOperation::LoopMerge { .. } => Ok(()),
            SpirvOperation::Label => self.begin_block(self.current.result_id()?),
            SpirvOperation::SelectionMerge { merge } => {
                let merge = self.blocks.get(&merge).copied().unwrap_or(0);
                for inside in self.block + 1..merge {
                    if let Some(nested) = self.program.nested_blocks.get_mut(inside as usize) {
                        *nested = true;
                    }
                }
                Ok(())
            }
            SpirvOperation::Phi { sources } => self.lower_phi(sources),
            SpirvOperation::Branch { target } => {
                let edge = self.add_edge(target)?;
                self.program.ops.push(Op::Jump { edge });
                Ok(())
            }
            SpirvOperation::BranchConditional { condition, yes, no } => {
                let condition = self.awaited_register(condition)?;
                let (yes, no) = (self.add_edge(yes)?, self.add_edge(no)?);
                self.program.ops.push(Op::Branch { condition, yes, no });
                Ok(())
            }
            SpirvOperation::Switch { selector, default, cases } => {
                self.lower_switch(selector, default, cases)
            }
            SpirvOperation::Return { value: None } => {
                self.program.ops.push(Op::Return);
                Ok(())
            }
            // Nothing is rasterized here, and nothing launched.
            SpirvOperation::SetMeshOutputs { counts } => self.check_no_outputs(&counts),
            SpirvOperation::EmitMeshTasks { groups } => {
                self.check_no_outputs(&groups)?;
                self.program.ops.push(Op::Return);
                Ok(())
            }
            SpirvOperation::Variable { initializer } => self.lower_variable(initializer),
            SpirvOperation::Load { pointer, memory } => self.lower_load(pointer, memory),
            SpirvOperation::Store { pointer, value, memory } => self.lower_store(pointer, value, memory),
            SpirvOperation::AccessChain { base, element: None, indices } => {
                self.lower_access_chain(base, indices)
            }
            SpirvOperation::ArrayLength { block, member } => self.lower_array_length(block, member),
            SpirvOperation::Atomic(access) => self.lower_atomic(access),
            SpirvOperation::MemoryBarrier { scope, semantics } => self.lower_memory_barrier(scope, semantics),
            SpirvOperation::ControlBarrier { part, execution, scope, semantics } => {
                self.lower_control_barrier(part, [execution, scope, semantics])
            }
            SpirvOperation::BeginInterlock => self.lower_interlock(true),
            SpirvOperation::EndInterlock => self.lower_interlock(false),
            SpirvOperation::Image(operation) => self.lower_image(operation),
            SpirvOperation::Subgroup(operation) => self.lower_group(operation),
            SpirvOperation::BallotQuery { query, scope, ballot } => self.lower_ballot(query, scope, ballot),
            SpirvOperation::Undef => self.lower_undef(),
            SpirvOperation::Copy { value } => self.lower_copy(value),
            SpirvOperation::Select { condition, yes, no } => self.lower_select(condition, yes, no),
            SpirvOperation::Composite(operation) => self.lower_composite(operation),
            SpirvOperation::Bitcast { value } => self.lower_bitcast(value),
            SpirvOperation::Compute { instruction, operands } => self.lower_arithmetic(instruction, operands),
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
            | SpirvOperation::CooperativeMatrix(_)
            | SpirvOperation::Derivative { .. }
            | SpirvOperation::ReadClock { .. }
            | SpirvOperation::IsHelperInvocation
            | SpirvOperation::RayQuery { .. }
            | SpirvOperation::Unknown { .. } => Err(self.current.unsupported_error("")),
        }
    }

    fn begin_block(&mut self, label: u32) -> Result<(), LoadError> {
        self.label = label;
        self.block = self.blocks.get(&label).copied().unwrap_or(0);
        self.awaited_registers.clear();
        // The first block begins with the addresses of global variables.
        let start = if self.block == 0 { 0 } else { self.program.ops.len() as u32 };
        self.program.blocks.push(start);
        Ok(())
    }

    fn lower_undef(&mut self) -> Result<(), LoadError> {
        let to = self.pending_register(self.current.result_id()?)?;
        for word in 0..self.width_of(self.current.result_id()?) {
            self.program.ops.push(Op::Copy { to: to + word, from: self.fixed.zero });
        }
        Ok(())
    }

    fn lower_copy(&mut self, value: u32) -> Result<(), LoadError> {
        let (from, reference) = self.awaited_value_or_address(value)?;
        let to = self.destination(reference)?;
        self.emit_copies(to, from, self.width_of(value));
        Ok(())
    }

    fn lower_image(&mut self, operation: ImageOperation) -> Result<(), LoadError> {
        match operation {
            ImageOperation::Read { image, coordinate, operands } => {
                self.lower_texel_read([image, coordinate], &operands)
            }
            ImageOperation::Write { image, coordinate, texel, operands } => {
                self.lower_texel_write([image, coordinate, texel], &operands)
            }
            ImageOperation::TexelPointer { image, coordinate } => self.lower_texel_pointer(image, coordinate),
            ImageOperation::Query { query: ImageQuery::Size, image } => self.lower_image_size(image),
            ImageOperation::Fetch { .. }
            | ImageOperation::Sample { .. }
            | ImageOperation::Query { .. }
            | ImageOperation::ImageOf { .. }
            | ImageOperation::Combine { .. } => Err(self.current.unsupported_error("")),
        }
    }

    fn lower_composite(&mut self, operation: CompositeOperation<'_>) -> Result<(), LoadError> {
        match operation {
            CompositeOperation::Construct { parts } => self.lower_composite_construct(parts),
            CompositeOperation::Extract { composite, path } => self.lower_composite_extract(composite, path),
            CompositeOperation::Insert { value, composite, path } => {
                self.lower_composite_insert([value, composite], path)
            }
            CompositeOperation::Shuffle { first, second, components } => {
                self.lower_vector_shuffle([first, second], components)
            }
            CompositeOperation::ExtractDynamic { vector, index } => self.lower_vector_extract(vector, index),
            CompositeOperation::InsertDynamic { vector, component, index } => {
                self.lower_vector_insert([vector, component, index])
            }
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
            | SpirvOperation::Image(
                ImageOperation::Read { .. }
                    | ImageOperation::Write { .. }
                    | ImageOperation::TexelPointer { .. }
            )
    )
}
