//! The flags of Vulkan for the stages of plans.

use ash::vk;
use plan::{KernelStage, Stages};

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
pub(crate) fn pipeline_stages(stages: Stages) -> vk::PipelineStageFlags {
    let kinds = [
        (Stages::COMPUTE, vk::PipelineStageFlags::COMPUTE_SHADER),
        (Stages::VERTEX, vk::PipelineStageFlags::VERTEX_SHADER),
        (Stages::FRAGMENT, vk::PipelineStageFlags::FRAGMENT_SHADER),
        (Stages::MESH, vk::PipelineStageFlags::MESH_SHADER_EXT),
        (Stages::TASK, vk::PipelineStageFlags::TASK_SHADER_EXT),
        (Stages::TRANSFER, vk::PipelineStageFlags::TRANSFER),
        (Stages::HOST, vk::PipelineStageFlags::HOST),
        (Stages::ALL, vk::PipelineStageFlags::ALL_COMMANDS),
        (Stages::TOP, vk::PipelineStageFlags::TOP_OF_PIPE),
        (Stages::BOTTOM, vk::PipelineStageFlags::BOTTOM_OF_PIPE),
    ];
    let named = kinds.into_iter().filter(|(kind, _)| stages.intersects(*kind));
    named.fold(vk::PipelineStageFlags::empty(), |all, (_, flag)| all | flag)
}
