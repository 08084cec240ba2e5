//! Selects the lowering of each operation, and refuses unsupported operations.

use spirv_reader::{CompositeOperation, ImageOperation, ImageQuery, SpirvOperation};

use super::Lowering;
use crate::instruction::{LoadError, LocatedInstruction};
use crate::program::Op;

impl Lowering<'_> {
    pub(super) fn lower_instruction(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        match self.module.decode_instruction(placed)? {
            SpirvOperation::Nop | SpirvOperation::LoopMerge { .. } => Ok(()),
            SpirvOperation::Label => self.begin_block(placed.result_id()?),
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
            SpirvOperation::Image(operation) => self.lower_image(placed, operation),
            SpirvOperation::Subgroup(operation) => self.lower_group(placed, operation),
            SpirvOperation::BallotQuery { query, scope, ballot } => {
                self.lower_ballot(placed, query, scope, ballot)
            }
            SpirvOperation::Undef => self.lower_undef(placed),
            SpirvOperation::Copy { value } => self.lower_copy(placed, value),
            SpirvOperation::Select { condition, yes, no } => self.lower_select(placed, condition, yes, no),
            SpirvOperation::Composite(operation) => self.lower_composite(placed, operation),
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
            | SpirvOperation::CooperativeMatrix(_)
            | SpirvOperation::Derivative { .. }
            | SpirvOperation::ReadClock { .. }
            | SpirvOperation::IsHelperInvocation
            | SpirvOperation::RayQuery { .. }
            | SpirvOperation::Unknown { .. } => Err(placed.unsupported_error("")),
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

    fn lower_undef(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let to = self.pending_register(placed, placed.result_id()?)?;
        for word in 0..self.width_of(placed.result_id()?) {
            self.program.ops.push(Op::Copy { to: to + word, from: self.fixed.zero });
        }
        Ok(())
    }

    fn lower_copy(&mut self, placed: &LocatedInstruction, value: u32) -> Result<(), LoadError> {
        let (from, reference) = self.awaited_value_or_address(placed, value)?;
        let to = self.destination(placed, reference)?;
        self.emit_copies(to, from, self.width_of(value));
        Ok(())
    }

    fn lower_image(
        &mut self,
        placed: &LocatedInstruction,
        operation: ImageOperation,
    ) -> Result<(), LoadError> {
        match operation {
            ImageOperation::Read { image, coordinate, operands } => {
                self.lower_texel_read(placed, [image, coordinate], &operands)
            }
            ImageOperation::Write { image, coordinate, texel, operands } => {
                self.lower_texel_write(placed, [image, coordinate, texel], &operands)
            }
            ImageOperation::TexelPointer { image, coordinate } => {
                self.lower_texel_pointer(placed, image, coordinate)
            }
            ImageOperation::Query { query: ImageQuery::Size, image } => self.lower_image_size(placed, image),
            ImageOperation::Fetch { .. }
            | ImageOperation::Sample { .. }
            | ImageOperation::Query { .. }
            | ImageOperation::ImageOf { .. }
            | ImageOperation::Combine { .. } => Err(placed.unsupported_error("")),
        }
    }

    fn lower_composite(
        &mut self,
        placed: &LocatedInstruction,
        operation: CompositeOperation<'_>,
    ) -> Result<(), LoadError> {
        match operation {
            CompositeOperation::Construct { parts } => self.lower_composite_construct(placed, parts),
            CompositeOperation::Extract { composite, path } => {
                self.lower_composite_extract(placed, composite, path)
            }
            CompositeOperation::Insert { value, composite, path } => {
                self.lower_composite_insert(placed, [value, composite], path)
            }
            CompositeOperation::Shuffle { first, second, components } => {
                self.lower_vector_shuffle(placed, [first, second], components)
            }
            CompositeOperation::ExtractDynamic { vector, index } => {
                self.lower_vector_extract(placed, vector, index)
            }
            CompositeOperation::InsertDynamic { vector, component, index } => {
                self.lower_vector_insert(placed, [vector, component, index])
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
