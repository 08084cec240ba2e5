//! The flags of Vulkan for the stages of plans.

use ash::vk;
use plan::{KernelStage, StageMask};

/// Returns the stage flag of a kernel's bindings and push constants.
pub(crate) fn stage_flag(stage: &KernelStage) -> vk::ShaderStageFlags {
    match stage {
        KernelStage::Compute => vk::ShaderStageFlags::COMPUTE,
        KernelStage::Vertex => vk::ShaderStageFlags::VERTEX,
        KernelStage::Fragment { .. } => vk::ShaderStageFlags::FRAGMENT,
        KernelStage::VertexAndFragment { .. } => {
            vk::ShaderStageFlags::VERTEX | vk::ShaderStageFlags::FRAGMENT
        }
        KernelStage::Mesh => vk::ShaderStageFlags::MESH_EXT,
        KernelStage::Task { .. } => vk::ShaderStageFlags::TASK_EXT,
    }
}

/// Returns the stage mask of a dependency.
pub(crate) fn pipeline_stages(stages: StageMask) -> vk::PipelineStageFlags {
    let kinds = [
        (StageMask::COMPUTE, vk::PipelineStageFlags::COMPUTE_SHADER),
        (StageMask::VERTEX, vk::PipelineStageFlags::VERTEX_SHADER),
        (StageMask::FRAGMENT, vk::PipelineStageFlags::FRAGMENT_SHADER),
        (StageMask::MESH, vk::PipelineStageFlags::MESH_SHADER_EXT),
        (StageMask::TASK, vk::PipelineStageFlags::TASK_SHADER_EXT),
        (StageMask::TRANSFER, vk::PipelineStageFlags::TRANSFER),
        (StageMask::HOST, vk::PipelineStageFlags::HOST),
        (StageMask::ALL, vk::PipelineStageFlags::ALL_COMMANDS),
        (StageMask::TOP, vk::PipelineStageFlags::TOP_OF_PIPE),
        (StageMask::BOTTOM, vk::PipelineStageFlags::BOTTOM_OF_PIPE),
    ];
    let named = kinds.into_iter().filter(|(kind, _)| stages.intersects(*kind));
    named.fold(vk::PipelineStageFlags::empty(), |all, (_, flag)| all | flag)
}
