//! Rules for the declarations of a module (memory model, capabilities, interface, types and resources) and
//! for the positions of barriers.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, Capability, Decoration, ExecutionMode, ExecutionModel, ImageFormat, MemoryModel, Op,
    StorageClass,
};

use super::{Checker, ModuleFault, NumericType};
use crate::reader::{Reader, operand_ids};

/// The stages of kernels.
const STAGES: [ExecutionModel; 5] = [
    ExecutionModel::GLCompute,
    ExecutionModel::Vertex,
    ExecutionModel::Fragment,
    ExecutionModel::MeshEXT,
    ExecutionModel::TaskEXT,
];
const WORKGROUP_STAGES: [ExecutionModel; 3] =
    [ExecutionModel::GLCompute, ExecutionModel::MeshEXT, ExecutionModel::TaskEXT];

impl Checker<'_> {
    /// Checks a declaration, or the capabilities that an instruction requires.
    pub(super) fn check_declaration(&self, instruction: &Instruction, report: &mut impl FnMut(ModuleFault)) {
        let op = instruction.class.opcode;
        if !shaders::COMPUTE_OPCODES.contains(&op) && !shaders::STAGE_OPCODES.contains(&op) {
            report(ModuleFault::UnlistedInstruction);
        }
        if let Some(capability) = required_capability(op) {
            self.require_capability(capability, report);
        }
        match (op, &instruction.operands[..]) {
            (Op::Capability, [Operand::Capability(capability)]) => self.check_capability(*capability, report),
            (Op::MemoryModel, [Operand::AddressingModel(addressing), Operand::MemoryModel(model)]) => {
                match addressing {
                    AddressingModel::Logical => {}
                    AddressingModel::PhysicalStorageBuffer64 => {
                        self.require_capability(Capability::PhysicalStorageBufferAddresses, report);
                    }
                    _ => report(ModuleFault::AddressingModel),
                }
                if *model == MemoryModel::Vulkan && !self.has_capability(Capability::VulkanMemoryModel) {
                    report(ModuleFault::ModelWithoutCapability);
                }
            }
            (Op::EntryPoint, [Operand::ExecutionModel(model), ..]) => {
                if !STAGES.contains(model) {
                    report(ModuleFault::ExecutionModel(*model));
                }
                self.check_execution_modes(instruction, *model, report);
                self.check_interface(instruction, report);
            }
            (Op::ExecutionMode, [_, _, sizes @ ..]) if sizes.contains(&Operand::LiteralBit32(0)) => {
                report(ModuleFault::EmptyWorkgroup);
            }
            (
                Op::Decorate | Op::MemberDecorate,
                [.., Operand::Decoration(Decoration::Coherent | Decoration::Volatile)],
            ) if self.is_vulkan_model => {
                report(ModuleFault::DeprecatedDecoration);
            }
            (Op::TypeInt, [Operand::LiteralBit32(width), ..]) => match width {
                8 => self.require_capability(Capability::Int8, report),
                16 => self.require_capability(Capability::Int16, report),
                64 => self.require_capability(Capability::Int64, report),
                _ => {}
            },
            (Op::TypeFloat, [Operand::LiteralBit32(64), ..]) => {
                self.require_capability(Capability::Float64, report)
            }
            (Op::TypeImage, operands) if operands.contains(&Operand::ImageFormat(ImageFormat::Unknown)) => {
                report(ModuleFault::ImageFormat);
            }
            (Op::TypeImage, [_, Operand::Dim(dimension), ..]) => match dimension {
                rspirv::spirv::Dim::Dim1D => self.require_capability(Capability::Image1D, report),
                rspirv::spirv::Dim::DimBuffer => self.require_capability(Capability::ImageBuffer, report),
                _ => {}
            },
            (Op::TypePointer, [Operand::StorageClass(class), Operand::IdRef(to)]) => {
                self.check_small_types(*class, *to, report);
            }
            (Op::Variable, [Operand::StorageClass(class), ..]) => {
                self.check_variable(instruction, *class, report)
            }
            (Op::Select | Op::Phi, _) => {
                let class =
                    instruction.result_type.and_then(|ty| self.reader.definition(ty)).and_then(|ty| match ty
                        .operands
                        .first()
                    {
                        Some(Operand::StorageClass(class)) if ty.class.opcode == Op::TypePointer => {
                            Some(*class)
                        }
                        _ => None,
                    });
                match class {
                    Some(StorageClass::StorageBuffer) => {
                        self.require_capability(Capability::VariablePointersStorageBuffer, report);
                    }
                    Some(StorageClass::Workgroup) => {
                        self.require_capability(Capability::VariablePointers, report)
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Checks the execution modes: only stages with workgroups have a size, only mesh shaders have outputs,
    /// and only fragment shaders have an origin.
    fn check_execution_modes(
        &self,
        entry_point: &Instruction,
        model: ExecutionModel,
        report: &mut impl FnMut(ModuleFault),
    ) {
        let is_own_mode = |mode: &&Instruction| mode.operands.first() == entry_point.operands.get(1);
        let modes = self.reader.module.execution_modes.iter().filter(is_own_mode);
        let modes: Vec<_> = modes.filter_map(|mode| mode.operands.get(1)).collect();
        let has_mode = |mode| modes.contains(&&Operand::ExecutionMode(mode));
        let sized = has_mode(ExecutionMode::LocalSize) && !WORKGROUP_STAGES.contains(&model);
        let mesh = has_mode(ExecutionMode::OutputPrimitivesEXT) != (model == ExecutionModel::MeshEXT);
        let has_wrong_origin =
            has_mode(ExecutionMode::OriginUpperLeft) != (model == ExecutionModel::Fragment);
        if STAGES.contains(&model) && (sized || has_wrong_origin || mesh) {
            report(ModuleFault::StageModes(model));
        }
    }

    fn require_capability(&self, capability: Capability, report: &mut impl FnMut(ModuleFault)) {
        if !self.has_capability(capability) {
            report(ModuleFault::MissingCapability(capability));
        }
    }

    fn version(&self) -> (u8, u8) {
        self.reader.module.header.as_ref().map_or((1, 0), |header| header.version())
    }

    fn check_capability(&self, capability: Capability, report: &mut impl FnMut(ModuleFault)) {
        let from = match capability {
            Capability::VulkanMemoryModel if self.version() < (1, 5) => "SPV_KHR_vulkan_memory_model",
            Capability::PhysicalStorageBufferAddresses if self.version() < (1, 5) => {
                "SPV_KHR_physical_storage_buffer"
            }
            Capability::StorageBuffer8BitAccess if self.version() < (1, 5) => "SPV_KHR_8bit_storage",
            Capability::SplitBarrierINTEL => "SPV_EXT_split_barrier",
            Capability::MeshShadingEXT => "SPV_EXT_mesh_shader",
            Capability::FragmentShaderPixelInterlockEXT
            | Capability::FragmentShaderSampleInterlockEXT
            | Capability::FragmentShaderShadingRateInterlockEXT => "SPV_EXT_fragment_shader_interlock",
            Capability::WorkgroupMemoryExplicitLayoutKHR => "SPV_KHR_workgroup_memory_explicit_layout",
            Capability::AtomicFloat32AddEXT | Capability::AtomicFloat64AddEXT => {
                "SPV_EXT_shader_atomic_float_add"
            }
            Capability::AtomicFloat32MinMaxEXT | Capability::AtomicFloat64MinMaxEXT => {
                "SPV_EXT_shader_atomic_float_min_max"
            }
            _ => "",
        };
        let named = |instruction: &Instruction| matches!(instruction.operands.first(), Some(Operand::LiteralString(name)) if name == from);
        if !from.is_empty() && !self.reader.module.extensions.iter().any(named) {
            report(ModuleFault::MissingExtension(capability));
        }
        let model_capabilities = [Capability::VulkanMemoryModel, Capability::VulkanMemoryModelDeviceScope];
        if model_capabilities.contains(&capability) && !self.is_vulkan_model {
            report(ModuleFault::CapabilityWithoutModel);
        }
    }

    /// Checks the interface: since SPIR-V 1.4, entry points list all global variables; before, only inputs
    /// and outputs.
    fn check_interface(&self, entry_point: &Instruction, report: &mut impl FnMut(ModuleFault)) {
        let listed: BTreeSet<_> = operand_ids(entry_point).into_iter().skip(1).collect();
        let all = self.version() >= (1, 4);
        for variable in
            self.reader.module.types_global_values.iter().filter(|i| i.class.opcode == Op::Variable)
        {
            let input = matches!(
                variable.operands.first(),
                Some(Operand::StorageClass(StorageClass::Input | StorageClass::Output))
            );
            let is_listed = variable.result_id.is_some_and(|id| listed.contains(&id));
            if is_listed != (all || input) {
                report(ModuleFault::EntryPointInterface);
                return;
            }
        }
    }

    /// Checks the capabilities of 8-bit and 16-bit types in buffers.
    fn check_small_types(&self, class: StorageClass, to: u32, report: &mut impl FnMut(ModuleFault)) {
        let buffer = matches!(class, StorageClass::StorageBuffer | StorageClass::PhysicalStorageBuffer);
        match self.numeric_type(to) {
            Some(NumericType::Integer(8)) if buffer => {
                self.require_capability(Capability::StorageBuffer8BitAccess, report)
            }
            Some(NumericType::Integer(16)) if buffer => {
                self.require_capability(Capability::StorageBuffer16BitAccess, report)
            }
            _ => {}
        }
    }

    fn check_variable(
        &self,
        variable: &Instruction,
        class: StorageClass,
        report: &mut impl FnMut(ModuleFault),
    ) {
        let Some(id) = variable.result_id else { return };
        let pointer = variable.result_type.and_then(|ty| self.reader.definition(ty));
        let pointee = pointer.and_then(|pointer| operand_ids(pointer).first().copied());
        if matches!(class, StorageClass::StorageBuffer | StorageClass::UniformConstant)
            && !(self.is_decorated(id, Decoration::Binding)
                && self.is_decorated(id, Decoration::DescriptorSet))
        {
            report(ModuleFault::MissingBinding);
        }
        if !matches!(class, StorageClass::StorageBuffer | StorageClass::PushConstant) {
            return;
        }
        let Some(block) = pointee.and_then(|id| self.reader.definition(id)) else { return };
        let Some(block_id) = block.result_id else { return };
        if block.class.opcode != Op::TypeStruct || !self.is_decorated(block_id, Decoration::Block) {
            report(ModuleFault::MissingBlock);
            return;
        }
        if !self.has_explicit_layout(block_id) {
            report(ModuleFault::MissingLayout);
        }
    }

    /// Returns true if a block type has explicit offsets of all members and strides of all arrays.
    fn has_explicit_layout(&self, ty: u32) -> bool {
        let Some(maker) = self.reader.definition(ty) else { return false };
        let has_offset = |member: u32| {
            self.reader.module.annotations.iter().any(|annotation| {
                annotation.class.opcode == Op::MemberDecorate
                    && matches!(annotation.operands[..], [Operand::IdRef(of), Operand::LiteralBit32(number),
                        Operand::Decoration(Decoration::Offset), ..] if of == ty && number == member)
            })
        };
        match maker.class.opcode {
            Op::TypeStruct => {
                let members = operand_ids(maker);
                (0..members.len() as u32).all(has_offset)
                    && members.iter().all(|member| self.has_explicit_layout(*member))
            }
            Op::TypeArray | Op::TypeRuntimeArray => {
                self.is_decorated(ty, Decoration::ArrayStride)
                    && operand_ids(maker).first().is_some_and(|element| self.has_explicit_layout(*element))
            }
            _ => true,
        }
    }
}

/// Returns the capability that an instruction requires, if it is a subgroup operation of kernels.
fn required_capability(op: Op) -> Option<Capability> {
    Some(match op {
        Op::GroupNonUniformElect => Capability::GroupNonUniform,
        Op::GroupNonUniformAll | Op::GroupNonUniformAny | Op::GroupNonUniformAllEqual => {
            Capability::GroupNonUniformVote
        }
        Op::GroupNonUniformBallot | Op::GroupNonUniformBroadcast | Op::GroupNonUniformBroadcastFirst => {
            Capability::GroupNonUniformBallot
        }
        Op::GroupNonUniformShuffle | Op::GroupNonUniformShuffleXor => Capability::GroupNonUniformShuffle,
        Op::GroupNonUniformShuffleUp | Op::GroupNonUniformShuffleDown => {
            Capability::GroupNonUniformShuffleRelative
        }
        Op::GroupNonUniformRotateKHR => Capability::GroupNonUniformRotateKHR,
        Op::GroupNonUniformQuadBroadcast | Op::GroupNonUniformQuadSwap => Capability::GroupNonUniformQuad,
        Op::GroupNonUniformIAdd
        | Op::GroupNonUniformUMin
        | Op::GroupNonUniformUMax
        | Op::GroupNonUniformBitwiseAnd
        | Op::GroupNonUniformBitwiseOr
        | Op::GroupNonUniformBitwiseXor => Capability::GroupNonUniformArithmetic,
        _ => return None,
    })
}

/// Returns the indices of control barriers inside a thread's case, which other threads do not reach.
pub(super) fn divergent_barriers(reader: &Reader) -> BTreeSet<usize> {
    let mut divergent = BTreeSet::new();
    let mut number = 0;
    for function in &reader.module.functions {
        let owners = crate::lift::block_threads(&function.blocks).unwrap_or_default();
        for block in &function.blocks {
            let is_in_thread = block.label_id().is_some_and(|label| owners.contains_key(&label));
            for _ in block.instructions.iter().filter(|i| is_control_barrier(i.class.opcode)) {
                if is_in_thread {
                    divergent.insert(number);
                }
                number += 1;
            }
        }
    }
    divergent
}

fn is_control_barrier(op: Op) -> bool {
    matches!(op, Op::ControlBarrier | Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL)
}

/// Returns the indices of split-barrier halves that do not alternate. The order of the module is that of
/// execution, because all invocations execute these barriers once per round.
pub(super) fn non_alternating_barriers(reader: &Reader) -> BTreeSet<usize> {
    let blocks = reader.module.functions.iter().flat_map(|function| &function.blocks);
    let barriers: Vec<&Instruction> = blocks
        .flat_map(|block| &block.instructions)
        .filter(|instruction| is_control_barrier(instruction.class.opcode))
        .collect();
    // For each execution scope, the last arrival without a wait.
    let mut open: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    let mut non_alternating = BTreeSet::new();
    for (number, barrier) in barriers.iter().enumerate() {
        let execution = operand_ids(barrier).first().and_then(|scope| reader.constant(*scope));
        let alternates = match barrier.class.opcode {
            Op::ControlBarrierArriveINTEL => open.insert(execution, number).is_none(),
            Op::ControlBarrierWaitINTEL => open.remove(&execution).is_some(),
            _ => true,
        };
        if !alternates {
            non_alternating.insert(number);
        }
    }
    non_alternating.extend(open.values());
    non_alternating
}
